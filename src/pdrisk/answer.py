"""From a judged query to noisy answers: the order of things that privacy depends on."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk.callers import caller
from pdrisk.columns import plain_label
from pdrisk.core.risk import METRICS, Risk, metrics
from pdrisk.core.summary import FloatArray, Summary
from pdrisk.core.universe import Universe
from pdrisk.engines.frame import Reading, read
from pdrisk.errors import NoisyReleaseWarning
from pdrisk.noise import laplace
from pdrisk.query import MECHANISM, Line, Query
from pdrisk.release import CURATOR_ONLY, Release, half_width

__all__ = ["Facts", "answered", "answers", "facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything but the noisy value, for the G groups of one line."""

    eps: float
    scale: float
    global_sensitivity: float
    local_sensitivity: FloatArray
    world_range: FloatArray
    n: NDArray[np.int64]
    risk: dict[str, FloatArray]


def facts(line: Line, universe: Universe, summary: Summary, eps: Fraction) -> Facts:
    """Sensitivities and risks of a release with ``eps``."""
    whole = line.statistic.global_sensitivity(universe)
    local = line.statistic.local_sensitivity(summary, universe)
    between = line.statistic.world_range(summary, universe)
    loss = float(eps)
    risk = metrics(loss, summary.n, global_sensitivity=whole, local_sensitivity=local, world_range=between)
    return Facts(loss, whole / loss, whole, local, between, summary.n, risk)


def answered(frame: pd.DataFrame, query: Query) -> Release | pd.DataFrame:
    """The answer to a query of one line: a `Release`, or a frame of one row for each group."""
    _warn_of_noise(query)
    ((line, universe, values, known),), reading = _noisy(frame, query)
    if reading.groups is not None:
        return _table(query, [_rows(values, known)], reading.groups)
    return Release(
        statistic=line.statistic.label,
        column=line.column,
        value=float(values[0]),
        eps=known.eps,
        bounds=(universe.lo, universe.hi) if line.statistic.bounded else None,
        mechanism=MECHANISM,
        scale=known.scale,
        global_sensitivity=known.global_sensitivity,
        local_sensitivity=float(known.local_sensitivity[0]),
        n=int(known.n[0]),
        risk=Risk(**{name: float(known.risk[name][0]) for name in METRICS}),
        where=_where_text(query),
        where_trusted=query.where is not None and query.where.trusted,
        bounds_from_data=line.bounds_from == "data",
    )


def answers(frame: pd.DataFrame, query: Query) -> pd.DataFrame:
    """The answers to a query of several lines, indexed by column and statistic, and by group if there are groups."""
    _warn_of_noise(query)
    lines, reading = _noisy(frame, query)
    names = ["column", "statistic"]
    labels: list[tuple[Any, ...]] = [(line.column, line.statistic.label) for line, *_ in lines]
    if reading.groups is not None:
        names.append("group")
        labels = [(*label, group) for label in labels for group in reading.groups]
    index = pd.MultiIndex.from_tuples(labels, names=names)
    return _table(query, [_rows(values, known) for _, _, values, known in lines], index)


def _noisy(frame: pd.DataFrame, query: Query) -> tuple[list[tuple[Line, Universe, FloatArray, Facts]], Reading]:
    # A ledger is charged here, before the data is read: what fails from now on stays paid.
    reading = read(frame, query.lines, query.where, query.groups)
    eps = query.eps_each
    result = []
    for line, universe, summary in zip(query.lines, reading.universes, reading.summaries, strict=True):
        known = facts(line, universe, summary, eps)
        steps = line.statistic.steps(summary, universe)
        result.append((line, universe, laplace(steps, line.statistic.lattice(universe), eps), known))
    return result, reading


def _rows(values: FloatArray, known: Facts) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "value": values,
            "eps": known.eps,
            "scale": known.scale,
            "global_sensitivity": known.global_sensitivity,
            "local_sensitivity": known.local_sensitivity,
            "n": known.n,
            **known.risk,
        }
    )


def _table(query: Query, parts: list[pd.DataFrame], index: pd.Index) -> pd.DataFrame:
    table = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    table.index = index
    table.attrs = {
        "curator_only": list(CURATOR_ONLY),
        "bounds_from_data": any(line.bounds_from == "data" for line in query.lines),
        "keys_from_data": query.groups is not None and query.groups.keys_from == "data",
        "index": [plain_label(name) for name in index.names],
        "lines": [_described(line) for line in query.lines],
        "eps": float(query.eps),
        "mechanism": MECHANISM,
        "where": _where_text(query),
        "where_trusted": query.where is not None and query.where.trusted,
    }
    return table


def _described(line: Line) -> dict[str, Any]:
    bounds = None if line.universe is None or not line.statistic.bounded else [line.universe.lo, line.universe.hi]
    return {"column": plain_label(line.column), "statistic": line.statistic.label, "bounds": bounds}


def _where_text(query: Query) -> str | None:
    if query.where is None:
        return None
    return "a mask or function" if query.where.text is None else query.where.text


def _warn_of_noise(query: Query) -> None:
    """Say so if the noise is wider than the range of possible answers: public facts, before anything is paid."""
    wide = []
    unit = Universe(0.0, 1.0)
    for line in query.lines:
        # The ratio of noise to range is the same in every universe, so bounds from the data stay out of it.
        low, high = line.statistic.value_range(unit)
        ratio = half_width(line.statistic.global_sensitivity(unit) / float(query.eps_each)) / (high - low)
        if ratio <= 1 or not math.isfinite(high):
            continue
        if line.universe is None:
            wide.append(f"{line.name}: {ratio:.2g} times the range of possible answers")
        else:
            reach = half_width(line.statistic.global_sensitivity(line.universe) / float(query.eps_each))
            low, high = line.statistic.value_range(line.universe)
            wide.append(f"{line.name}: {reach:.4g}, where all possible answers lie in {low:.6g} to {high:.6g}")
    if wide:
        shown = "; ".join(wide[:3]) + (f"; and {len(wide) - 3} more" if len(wide) > 3 else "")
        warnings.warn(
            f"the noise is wider than the answer: its 95 % half-width at eps={float(query.eps_each):.3g} is {shown}. "
            "A larger eps or narrower bounds make it smaller.",
            NoisyReleaseWarning,
            stacklevel=caller()[1],
        )
