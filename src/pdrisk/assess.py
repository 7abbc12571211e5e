"""The curator's views: exact sensitivities and risks, with no noise, no spending, and nothing to publish."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk.answer import Facts, facts
from pdrisk.core.risk import METRICS, check_metric, epsilon_for
from pdrisk.core.statistics import Statistic
from pdrisk.core.summary import FloatArray, Summary
from pdrisk.core.universe import Universe
from pdrisk.engines.chunks import SIZE
from pdrisk.engines.frame import column_values, present_rows, read
from pdrisk.engines.guard import guarded
from pdrisk.errors import ParameterError
from pdrisk.frames import judged_lines, judged_selection, lines_of_columns
from pdrisk.query import Line, checked_probability, epsilon, statistic
from pdrisk.release import CURATOR_ONLY, half_width

__all__ = ["assessment", "individual_risk", "planned_epsilon"]


def assessment(
    frame: pd.DataFrame,
    columns: object,
    statistics: object,
    eps: object,
    *,
    bounds: object,
    where: object,
    by: object,
    keys: object,
) -> pd.DataFrame:
    """One row for each column, statistic, group and eps."""
    lines = lines_of_columns(frame, columns, statistics, bounds)
    listed = list(eps) if isinstance(eps, list | tuple | np.ndarray | pd.Series) and np.ndim(eps) else [eps]
    if not listed:
        raise ParameterError("eps must be a number or a list with at least one.")
    losses = [epsilon(value) for value in listed]
    reading = read(frame, lines, *judged_selection(frame, lines, where, by, keys))
    labels = None if reading.groups is None else list(reading.groups)
    blocks = [
        _block(line.column, line.statistic.label, [facts(line, universe, summary, loss) for loss in losses], labels)
        for line, universe, summary in zip(lines, reading.universes, reading.summaries, strict=True)
    ]
    table = pd.concat(blocks, ignore_index=True)
    table.attrs = {"curator_only": list(CURATOR_ONLY), "no_noise": True}
    return table


def _block(column: Hashable, label: str, known: list[Facts], groups: list[Hashable] | None) -> pd.DataFrame:
    """The rows of one column and statistic: groups outside, eps inside."""
    size = 1 if groups is None else len(groups)

    def spread(name: str) -> FloatArray:
        parts = [np.broadcast_to(getattr(each, name), size) for each in known]
        return np.stack(parts, axis=1).ravel()

    risks = {name: np.stack([each.risk[name] for each in known], axis=1).ravel() for name in METRICS}
    grouped = {} if groups is None else {"group": pd.Index(groups).repeat(len(known))}
    return pd.DataFrame(
        {
            "column": pd.Series([column] * (size * len(known))),
            "statistic": label,
            **grouped,
            "eps": spread("eps"),
            "n": spread("n"),
            "global_sensitivity": spread("global_sensitivity"),
            "local_sensitivity": spread("local_sensitivity"),
            "noise95": half_width(spread("scale")),
            **risks,
        }
    )


def planned_epsilon(
    frame: pd.DataFrame,
    column: Hashable | None,
    spec: object,
    *,
    risk: object,
    metric: object,
    prior: object,
    bounds: object,
    where: object,
) -> float:
    """The eps at which a metric reaches ``risk`` for this very column."""
    check_metric(metric)
    highest = checked_probability("risk", risk)
    own_prior = None if prior is None else checked_probability("prior", prior)
    (line,) = judged_lines(frame, column, (statistic(spec),), bounds)
    selection = judged_selection(frame, (line,), where, None, None)
    fixed = 0.5 if own_prior is None and metric in ("worst_case", "two_worlds") else own_prior
    if metric == "worst_case" or (fixed is not None and highest < fixed):
        return float(epsilon_for(highest, fixed))
    reading = read(frame, (line,), *selection)
    known = facts(line, reading.universes[0], reading.summaries[0], Fraction(1))
    try:
        return float(
            epsilon_for(
                highest,
                own_prior,
                metric=str(metric),
                n=int(known.n[0]),
                global_sensitivity=known.global_sensitivity,
                local_sensitivity=float(known.local_sensitivity[0]),
                world_range=float(known.world_range[0]),
            )
        )
    except ParameterError:
        pass  # its words would tell n
    raise ParameterError(
        f"a {metric} risk of {highest:g} cannot be had in these data: an attacker is there without any release. "
        "Ask for a higher risk."
    )


def individual_risk(
    frame: pd.DataFrame, column: Hashable | None, spec: object, *, eps: object, bounds: object, where: object
) -> pd.Series:
    """The two-worlds risk of every row, NaN where the value is missing or not selected."""
    (line,) = judged_lines(frame, column, (statistic(spec),), bounds)
    loss = float(epsilon(eps))
    reading = read(frame, (line,), *judged_selection(frame, (line,), where, None, None))
    values = guarded(lambda: _values(reading.frame, line))
    risks = _risks(values, reading.selected, line.statistic, reading.universes[0], reading.summaries[0], loss)
    return pd.Series(risks, index=frame.index, name="two_worlds", copy=False)


def _values(frame: pd.DataFrame, line: Line) -> NDArray[np.generic]:
    if line.column is None:
        return np.zeros(len(frame))
    if line.statistic.bounded:
        return column_values(frame[line.column])
    return np.where(present_rows(frame[line.column]), 0.0, np.nan)  # counted, whatever it is


def _risks(
    values: NDArray[np.generic],
    selected: NDArray[np.bool_] | None,
    wanted: Statistic,
    universe: Universe,
    summary: Summary,
    loss: float,
) -> FloatArray:
    result = np.empty(len(values))
    if summary.n[0] == 0:
        result.fill(np.nan)
        return result
    per_unit = loss / wanted.global_sensitivity(universe)

    def fill(start: int) -> None:
        rows = slice(start, start + SIZE)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            records = np.asarray(values[rows], dtype=np.float64)
        out = result[rows]
        clamped = np.clip(records, universe.lo, universe.hi)
        np.multiply(wanted.influence(clamped, summary, universe), -per_unit, out=out)
        np.exp(out, out=out)
        out += 1
        np.reciprocal(out, out=out)
        left_out = np.isnan(records)
        if selected is not None:
            left_out |= ~selected[rows]
        out[left_out] = np.nan

    with ThreadPoolExecutor(2) as threads:  # numpy lets go of the interpreter lock
        list(threads.map(fill, range(0, len(values), SIZE)))
    return result
