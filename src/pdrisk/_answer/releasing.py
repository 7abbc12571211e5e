"""From a judged query to noisy answers: the order of things that privacy depends on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.release import CURATOR_ONLY, Release, half_width
from pdrisk._caller_frame import caller
from pdrisk._core.risk import METRICS, Risk, metrics
from pdrisk._core.statistics import Count
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._guard import guarded
from pdrisk._ledger import Meaning, Policy, paying
from pdrisk._mechanisms.laplace import laplace
from pdrisk._model.columns import plain_label
from pdrisk._model.query import MECHANISM, Line, Query
from pdrisk.engines.numpy.frame import Reading, read
from pdrisk.engines.numpy.influence import losses
from pdrisk.errors import LedgerError, NoisyReleaseWarning

__all__ = ["Facts", "Released", "answered", "answers", "drawn", "facts", "released"]


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


@dataclass(frozen=True, slots=True)
class Released:
    """The noisy values of one line, shape (G,), and everything else about them.

    ``least_group`` is the least number of people it must be about and the eps paid to see that, if a ledger wants it,
    ``rounded_to`` the base it wants answers rounded to.
    """

    line: Line
    universe: Universe
    values: FloatArray
    facts: Facts
    least_group: tuple[int, float] | None = None
    rounded_to: float | None = None


class Read(Protocol):
    """What an engine found: for each line its universe and summary."""

    @property
    def universes(self) -> tuple[Universe, ...]: ...

    @property
    def summaries(self) -> tuple[Summary, ...]: ...


COUNT = Count()
People = tuple[pd.Series, FloatArray]
Found = TypeVar("Found", bound=Read)
Answer = TypeVar("Answer")


def released(
    query: Query,
    read: Callable[[], Found],
    shown: Callable[[list[Released], Found], Answer],
    ledger: object = None,
    *,
    fresh: object = False,
    people: Callable[[Found, Hashable], People | None] = lambda *_: None,
) -> Answer:
    """The releases of a query, for every front end: warned of, paid, read, drawn and shown in this order.

    Parameters
    ----------
    query : Query
    read : callable
        Reads the data; it hides whatever goes wrong, as `guarded` does.
    shown : callable
        Makes the answer of the releases and of what was read.
    ledger : Ledger or None
        What pays; None: that of the ``with`` block around, if there is one.
    fresh : bool
        Pay and draw even if the ledger remembers the answer.
    people : callable
        For the curator: who stands in each row, by the column of that name, and the privacy loss of each; None where
        that is not known.
    """
    _warn_of_noise(query)
    with paying(query, ledger, fresh) as payment:
        reading = read()
        rules = payment.policy
        parts = list(zip(query.lines, query.shares, reading.universes, reading.summaries, strict=True))
        known = [facts(line, universe, summary, eps) for line, eps, universe, summary in parts]
        noisy = payment.remembered
        if noisy is None:
            noisy = drawn(query.lines, query.shares, reading, rules)
        elif [each.shape for each in noisy] != [each.n.shape for each in known]:
            raise LedgerError("the ledger remembers the answer to another question: it is damaged. See verify().")
        if query.is_private:  # else eps says nothing, and counts in full
            payment.settle(noisy, lambda: guarded(lambda: _meant(query, known, rules, people, reading)))
        result = [
            _ruled(line, universe, values, own, rules)
            for (line, _, universe, _), values, own in zip(parts, noisy, known, strict=True)
        ]
        return shown(result, reading)


def _ruled(line: Line, universe: Universe, noisy: FloatArray, known: Facts, rules: Policy) -> Released:
    """What is shown under the owner's rules."""
    least, base = rules.least_group_of(line), rules.base_of(line.statistic.name)
    return Released(
        line=line,
        universe=universe,
        values=rules.rounded(line.statistic.name, noisy),
        facts=known,
        least_group=None if least is None else (least.size, float(least.eps)),
        rounded_to=base,
    )


def drawn(lines: Sequence[Line], shares: Sequence[Fraction], reading: Read, rules: Policy) -> list[FloatArray]:
    """Noisy values of each line; NaN where the owner wants more people than there are, by a noisy number of them."""
    result: list[FloatArray] = []
    sizes: dict[Any, FloatArray] = {}
    for line, eps, universe, summary in zip(lines, shares, reading.universes, reading.summaries, strict=True):
        values = laplace(line.statistic.steps(summary, universe), line.statistic.lattice(universe), eps)
        if (least := rules.least_group_of(line)) is not None:
            if line.people not in sizes:
                steps = COUNT.steps(Summary(summary.n), universe)
                sizes[line.people] = laplace(steps, COUNT.lattice(universe), least.eps)
            values = np.where(sizes[line.people] < least.size, np.nan, values)
        result.append(values)
    return result


def _meant(
    query: Query, known: list[Facts], rules: Policy, people: Callable[[Found, Hashable], People | None], reading: Found
) -> Meaning:
    """What an answer means for the people in these data."""
    of_groups = sum(one.eps * one.local_sensitivity / one.global_sensitivity for one in known)
    return Meaning(
        loss=float(np.max(of_groups, initial=0.0)),
        counting=float(rules.cost(query) - query.eps),
        local_sensitivity=[float(np.max(one.local_sensitivity, initial=0.0)) for one in known],
        n=[int(np.min(one.n, initial=np.iinfo(np.int64).max)) for one in known],
        people=None if rules.person is None else people(reading, rules.person),
    )


def answered(frame: pd.DataFrame, query: Query, ledger: object = None, fresh: object = False) -> Release | pd.DataFrame:
    """The answer to a query of one line: a `Release`, or a frame of one row for each group."""
    return _of_frame(frame, query, lambda found, reading: _one(query, found[0], reading), ledger, fresh)


def answers(frame: pd.DataFrame, query: Query, ledger: object = None, fresh: object = False) -> pd.DataFrame:
    """The answers to a query of several lines, indexed by column and statistic, and by group if there are groups."""
    return _of_frame(frame, query, lambda found, reading: _several(query, found, reading), ledger, fresh)


def _of_frame(
    frame: pd.DataFrame,
    query: Query,
    shown: Callable[[list[Released], Reading], Answer],
    ledger: object,
    fresh: object,
) -> Answer:
    def people(reading: Reading, column: Hashable) -> People | None:
        if [str(label) for label in frame.columns].count(str(column)) != 1 or column not in frame.columns:
            return None
        return frame[column], losses(reading, query.lines, tuple(map(float, query.shares)))

    return released(query, lambda: _read(frame, query), shown, ledger, fresh=fresh, people=people)


def _read(frame: pd.DataFrame, query: Query) -> Reading:
    return read(frame, query.lines, query.where, query.groups, query.missing)


def _one(query: Query, one: Released, reading: Reading) -> Release | pd.DataFrame:
    if reading.groups is not None:
        return _table(query, [one], reading.groups)
    line, universe, known = one.line, one.universe, one.facts
    return Release(
        statistic=line.statistic.label,
        column=line.column,
        value=float(one.values[0]),
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
        least_group=one.least_group,
        rounded_to=one.rounded_to,
    )


def _several(query: Query, several: list[Released], reading: Reading) -> pd.DataFrame:
    names = ["column", "statistic"]
    labels: list[tuple[Any, ...]] = [(one.line.column, one.line.statistic.label) for one in several]
    if reading.groups is not None:
        names.append("group")
        labels = [(*label, group) for label in labels for group in reading.groups]
    index = pd.MultiIndex.from_tuples(labels, names=names)
    return _table(query, several, index)


def _rows(one: Released) -> pd.DataFrame:
    known = one.facts
    return pd.DataFrame(
        {
            "value": one.values,
            "eps": known.eps,
            "scale": known.scale,
            "global_sensitivity": known.global_sensitivity,
            "local_sensitivity": known.local_sensitivity,
            "n": known.n,
            **known.risk,
        }
    )


def _table(query: Query, several: list[Released], index: pd.Index) -> pd.DataFrame:
    parts = [_rows(one) for one in several]
    table = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    table.index = index
    table.attrs = {
        "curator_only": list(CURATOR_ONLY),
        "bounds_from_data": any(line.bounds_from == "data" for line in query.lines),
        "keys_from_data": query.groups is not None and query.groups.keys_from == "data",
        "index": [plain_label(name) for name in index.names],
        "lines": [_described(one) for one in several],
        "eps": float(query.eps),
        "mechanism": MECHANISM,
        "where": _where_text(query),
        "where_trusted": query.where is not None and query.where.trusted,
        **({} if several[0].least_group is None else {"least_group": list(several[0].least_group)}),
    }
    return table


def _described(one: Released) -> dict[str, Any]:
    line = one.line
    bounds = None if line.universe is None or not line.statistic.bounded else [line.universe.lo, line.universe.hi]
    said = {"column": plain_label(line.column), "statistic": line.statistic.label, "bounds": bounds}
    return said if one.rounded_to is None else said | {"rounded_to": one.rounded_to}


def _where_text(query: Query) -> str | None:
    if query.where is None:
        return None
    return "a mask or function" if query.where.text is None else query.where.text


def _warn_of_noise(query: Query) -> None:
    """Say so if the noise is wider than the range of possible answers: public facts, before anything is paid."""
    wide = []
    unit, is_even = Universe(0.0, 1.0), len(set(query.shares)) == 1
    for line, share in zip(query.lines, query.shares, strict=True):
        # The ratio of noise to range is the same in every universe, so bounds from the data stay out of it.
        low, high = line.statistic.value_range(unit)
        ratio = half_width(line.statistic.global_sensitivity(unit) / float(share)) / (high - low)
        if ratio <= 1 or not math.isfinite(high):
            continue
        at = line.name if is_even else f"{line.name} at eps={float(share):.3g}"
        if line.universe is None:
            wide.append(f"{at}: {ratio:.2g} times the range of possible answers")
        else:
            reach = half_width(line.statistic.global_sensitivity(line.universe) / float(share))
            low, high = line.statistic.value_range(line.universe)
            wide.append(f"{at}: {reach:.4g}, where all possible answers lie in {low:.6g} to {high:.6g}")
    if wide:
        loss = f" at eps={float(query.shares[0]):.3g}" if is_even else ""
        means = any(line.statistic.name == "mean" for line in query.lines)
        advice = " So does asking for a sum and a count instead of a mean, if the records are many." * means
        shown = "; ".join(wide[:3]) + (f"; and {len(wide) - 3} more" if len(wide) > 3 else "")
        warnings.warn(
            f"the noise is wider than the answer: its 95 % half-width{loss} is {shown}. "
            f"A larger eps or narrower bounds make it smaller.{advice}",
            NoisyReleaseWarning,
            stacklevel=caller()[1],
        )
