"""Worlds that an attacker compares: their records, and what a mechanism draws in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.foreign import shown
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.size_sums import SizeSums
from pdrisk._core.statistics import Mean, Proportion
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.surveys.weighted import WEIGHTED, weighted
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._guard import guarded
from pdrisk._mechanisms import Drawn, Mechanism
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._model.answering import answered_by, joined
from pdrisk._model.arguments import (
    OF_TWO_COLUMNS,
    check_step,
    epsilon,
    statistic,
    statistic_of_two,
    statistics,
    universe,
)
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import UNIT, Line, Query
from pdrisk.engines.numpy.frame import FrameEngine
from pdrisk.errors import ColumnTypeError, ParameterError

AT_ONCE = 2_000_000  # cells and groups that are drawn for at a time


def mechanism_of(
    asked: Any, *, eps: object, bounds: object, mechanism: object, step: object, interval: object, n_at_least: object
) -> Mechanism:
    """Mechanism of a release, or of a question as in ``agg`` that one release answers."""
    noisy = getattr(asked, "noisy", None)
    if noisy is not None:
        if not all(option is None for option in (eps, bounds, step, n_at_least)):
            raise ParameterError(
                "a release already says what was asked: leave eps=, bounds=, step= and n_at_least= out."
            )
        if asked.bounds_from_data:
            raise ParameterError("a release whose bounds came from the data claims nothing: declare bounds=(lo, hi).")
        return noisy.mechanism
    check_step(step)
    unread = _of_two(asked, bounds) or _of_units(asked, bounds) or _of_one(asked, bounds, n_at_least)
    lines = [
        answered_by(line, mechanism, whole=step is not None, joint=len(unread) > 1, interval=interval)
        for line in unread
    ]
    joined_lines, releases = joined(lines, str(mechanism))
    if max(releases):
        raise ParameterError("these statistics come from several releases: attack one of them at a time.")
    lead = Query(joined_lines, (), releases=releases).leads[0]
    calibrated = joined_lines[lead].calibrated(epsilon(eps))
    calibrated.check()
    return calibrated


def _of_two(asked: Any, bounds: Any) -> list[Line]:
    """Lines of statistics of two columns, weighted ones among them; none if others are asked for."""
    listed = asked if isinstance(asked, list) else [asked]
    texts = [text for text in listed if isinstance(text, str)]
    if len(texts) == len(listed) == 1 and texts[0] in OF_TWO_COLUMNS:
        return [Line("x", statistic_of_two(texts[0]), _rectangle(bounds), "given", other="y")]
    if not texts or len(texts) < len(listed) or not all(text.startswith(WEIGHTED) for text in texts):
        return []
    named = [(text, weighted(statistic(text.removeprefix(WEIGHTED)))) for text in texts]
    if unknown := next((text for text, one in named if one is None), None):
        raise ParameterError(f"there is no {shown(unknown)}: a variance has ddof=0 then, as in 'weighted var(ddof=0)'.")
    within = _rectangle(bounds)
    if within.other.lo != 0:
        raise ParameterError("weights lie between 0 and the largest one: pass bounds=[(lo, hi), (0, W)].")
    return [Line("x", one, within, "given", other="y") for _, one in named if one is not None]


def _of_units(asked: Any, bounds: object) -> list[Line]:
    """The line of the second moments of a sample's units, whose records are deviations; none if others are asked for.

    It is asked by this name alone: a release with ``sampling=`` asks it about sums over units.
    """
    if not isinstance(asked, str) or asked != SecondMoments.name:
        return []
    within = universe(bounds)
    if within.lo != -within.hi:
        raise ParameterError("deviations lie between -c and c: pass bounds=(-c, c).")
    return [Line("x", SecondMoments(), within, "given")]


def _of_one(asked: Any, bounds: object, n_at_least: object) -> list[Line]:
    """Lines of statistics of one column."""
    wanted = statistics(asked)
    if n_at_least is not None:
        wanted = tuple(_with_number(unnumbered, n_at_least) for unnumbered in wanted)
    declared, lines = None if bounds is None else universe(bounds), []
    for wanted_statistic in wanted:
        within = UNIT if isinstance(wanted_statistic, Proportion) else declared if wanted_statistic.bounded else None
        if wanted_statistic.bounded and within is None:
            raise ParameterError(f"{wanted_statistic.label} needs bounds=(lo, hi), the range that values can have.")
        lines.append(Line("x", wanted_statistic, within, "given"))
    return lines


def _with_number(statistic: Any, n_at_least: object) -> Any:
    if type(statistic) is not Mean or not isinstance(n_at_least, int):
        raise ParameterError("n_at_least= is a whole number, for a mean.")
    return replace(statistic, n_at_least=n_at_least)


def _rectangle(bounds: Any) -> Rectangle:
    pairs = isinstance(bounds, list | tuple) and all(isinstance(pair, list | tuple) for pair in bounds)
    if not pairs or len(bounds) != 2:
        raise ParameterError("a statistic of two columns needs bounds=[(lo, hi), (lo, hi)], one pair for each.")
    first, second = (universe(pair) for pair in bounds)
    return Rectangle(first.lo, first.hi, Universe(second.lo, second.hi))


def records_of(mechanism: Mechanism, records: Any) -> FloatArray:
    """Records as numbers, NaN where one is missing: shape (n,), of two columns (n, 2)."""
    pair = isinstance(mechanism.statistic, OfTwoColumns)
    numbers: Any
    try:
        if isinstance(records, pd.Series | pd.DataFrame):
            numbers = records.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            numbers = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = None
    shape = "pairs of numbers, one for each record" if pair else "one number for each record, such as a column"
    if numbers is None or numbers.ndim != 1 + pair or (pair and numbers.shape[1] != 2):
        raise ColumnTypeError(f"records are {shape}.")
    return numbers


def present(records: FloatArray) -> FloatArray:
    """The records that are not missing."""
    return records[~missing(records)]


def missing(records: FloatArray) -> NDArray[np.bool_]:
    """Which records are missing; of two columns, those without either value."""
    absent: NDArray[np.bool_] = np.asarray(np.isnan(records))
    return absent if absent.ndim == 1 else np.logical_or.reduce(absent, axis=1)


def summary_of(mechanism: Mechanism, worlds: Sequence[ArrayLike]) -> Summary:
    """Summary of each of several worlds, given by their records."""
    held = [present(records_of(mechanism, world)) for world in worlds]
    group = np.repeat(np.arange(len(held)), [len(records) for records in held])
    stacked = np.concatenate(held)
    pair = isinstance(mechanism.statistic, OfTwoColumns)
    frame = pd.DataFrame({"g": group, "x": stacked[:, 0] if pair else stacked})
    if pair:
        frame["y"] = stacked[:, 1]
    unread = Line(
        "x", mechanism.statistic, mechanism.universe, "given", mechanism=mechanism.name, other="y" if pair else None
    )
    groups = Groups(("g",), tuple((at,) for at in range(len(held))), "given")
    query = Query((unread,), (Fraction(mechanism.eps),), groups=groups, reads=tuple(frame.columns))
    return guarded(lambda: FrameEngine(frame, frame).read(query).summaries[0])


def draws_of(mechanism: Mechanism, summary: Summary, draws: int) -> Drawn:
    """Real draws of a mechanism about each of G worlds, shape (..., G * draws), those of one world together."""
    if summary.size_sums is not None:  # points that all groups share are chosen anew in each draw
        parts = [drawn_once(mechanism, _alone(summary, group)) for group in range(len(summary.n)) for _ in range(draws)]
    else:
        parts = [drawn_once(mechanism, _repeated(summary, rows)) for rows in _batches(summary, draws)]
    return np.concatenate(parts, axis=-1)


def _batches(summary: Summary, draws: int) -> Iterator[Any]:
    """The group of each draw, as many at a time as memory holds."""
    cells = summary.cells or summary.whole_cells
    size = int(np.diff(cells.first).max()) + 1 if cells is not None else 1
    rows = np.repeat(np.arange(len(summary.n)), draws)
    return iter(np.array_split(rows, max(1, -(-len(rows) * size // AT_ONCE))))


def _alone(summary: Summary, group: int) -> Summary:
    """Summary of one of the groups, with sums by size."""
    sums = summary.size_sums
    assert sums is not None
    span = slice(sums.first[group], sums.first[group + 1])
    alone = SizeSums(
        sums.bin[span], sums.n[span], sums.high[span], sums.low[span], np.array([0, span.stop - span.start])
    )
    return replace(_repeated(summary, np.array([group])), size_sums=alone)


def _repeated(summary: Summary, rows: Any) -> Summary:
    """A summary of one group for each row, each a copy of one of these groups."""
    cells, whole_cells = (_repeated_cells(old_cells, rows) for old_cells in (summary.cells, summary.whole_cells))
    return replace(summary.of_rows(rows), cells=cells, whole_cells=whole_cells)


def _repeated_cells(cells: Cells | None, rows: Any) -> Cells | None:
    if cells is None:
        return None
    sizes = np.diff(cells.first)[rows]
    first = np.concatenate([[0], np.cumsum(sizes)])
    at = np.arange(first[-1]) - np.repeat(first[:-1] - cells.first[rows], sizes)
    return Cells(cells.point[at], cells.count[at], first)
