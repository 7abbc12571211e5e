"""Reading of an engine of SQL: one `Summary` for each part of a plan, from one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import MOST_PLACED, PlaceGrid
from pdrisk._core.products import Degrees
from pdrisk._core.summary import FloatArray, Summary, window_start
from pdrisk._core.universe import Rectangle, Universe
from pdrisk.engines.base import GroupSizes, Reading
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.aggregates import product_name
from pdrisk.engines.sql.summary.bands import can_be_banded
from pdrisk.engines.sql.summary.binned import summary_of_bins
from pdrisk.engines.sql.summary.cell_search import Look, Looked
from pdrisk.engines.sql.summary.contributions import contributions_of
from pdrisk.engines.sql.summary.listed_span import at_keys
from pdrisk.engines.sql.summary.order_lists import (
    Around,
    Band,
    BandMissedError,
    Listed,
    Spanned,
    counted,
    listed,
    summed,
)
from pdrisk.engines.sql.summary.placing import MOST_IN_DOUBLES, MOST_PLACES, Placing, Sums, places_of
from pdrisk.engines.sql.summary.ranked import spanned
from pdrisk.engines.sql.summary.sizes import SIZE_LISTS
from pdrisk.engines.sql.summary.statements import (
    RANKED,
    in_steps,
    looked_at,
    packed_counts,
    second_statement,
    statement,
)
from pdrisk.engines.sql.summary.summary_plan import (
    Binned,
    Counted,
    Different,
    DifferentNumbers,
    Part,
    Summarised,
    SummaryPlan,
    all_told_apart,
    pivots,
)

Columns = dict[str, Any]  # by name, arrays of one value for each line of an answer, masked where it is NULL
Fetch = Callable[[str, list[list[Any]]], Columns]  # runs a statement with the parameters of its keys


@dataclass(frozen=True, slots=True)
class TableReading(Reading):
    """Reading of a table."""

    keys: list[list[Any]]  # the keys of the groups of the answer, a list for each expression of GROUP BY


def read(
    fetch: Fetch, plan: SummaryPlan, key_lists: list[list[Any]] | None, dialect: Dialect
) -> tuple[tuple[Summary, ...], list[list[Any]]]:
    """Summaries of a plan's parts, and the keys of the groups, one list for each expression of GROUP BY.

    ``fetch``: whatever it raises comes out, and may quote a record.
    ``key_lists``: the parameters of ``plan.keys``; without them, the keys observed are returned.
    """
    ways = [(plan, False), (all_told_apart(plan), False)]
    if can_be_banded(plan, dialect):
        ways.insert(0, (plan, True))
    sums, summaries = Sums.first(plan, dialect), None
    while summaries is None:
        tried, banded = ways[0]
        columns = fetch(
            statement(tried, dialect, banded, sums), key_lists if tried.between is None and key_lists else []
        )
        if tried.between is not None and key_lists is not None:
            columns = at_keys(columns, tried.between, key_lists[0])
        size = len(next(iter(columns.values())))
        measured = ((i, part) for i, part in enumerate(tried.parts) if isinstance(part, Summarised))
        if (
            sure := max((_sure_sums(i, part, columns, dialect, sums) for i, part in measured), default=sums)
        ) is not sums:
            sums = sure
            continue
        columns |= _second_pass(fetch, tried, dialect, columns)
        looked = _looked(fetch, tried, dialect, columns)
        try:
            summaries = tuple(
                _summary(i, part, columns, size, dialect, banded, looked.get(i)) for i, part in enumerate(tried.parts)
            )
        except BandMissedError:  # once in millions of times: then all is read again, in the next way
            del ways[0]
    summaries = tuple(
        replace(summary, offered=_integers(columns, f"offered_{i}", size)) if f"offered_{i}" in columns else summary
        for i, summary in enumerate(summaries)
    )
    if plan.contributions is not None:
        summaries = tuple(
            summary
            if isinstance(part, Binned)
            else replace(summary, contributions=contributions_of(columns, i, part, summary))
            for i, (part, summary) in enumerate(zip(tried.parts, summaries, strict=True))
        )
    if key_lists is None:
        key_lists = [np.ma.asarray(columns[f"g{i}"]).tolist() for i in range(len(plan.groups))]  # None where masked
    return summaries, key_lists


def statements(plan: SummaryPlan, dialect: Dialect) -> list[str]:
    """The statements that `read` sends, each step once, without the numbers that one before has found.

    The means and steps that a second statement needs are 0 and 1 here. Looks are the first ones, at everything
    between the bounds; later ones look inside the cells that hold what is asked for. What is asked again in another way
    for large data or a sample is left out.
    """
    first = statement(plan, dialect, can_be_banded(plan, dialect))
    again = _second_parts(plan, dialect)
    second = [second_statement(plan, dialect, {i: (0.0, 1.0) for i, _ in again})] if again else []
    looks = [
        looked_at(plan, dialect, i, [Look(part.universe.lo, part.universe.hi)]) for i, part in _looks(plan, dialect)
    ]
    return [first, *second, *looks]


def group_sizes(fetch: Fetch, plan: SummaryPlan, dialect: Dialect) -> GroupSizes:
    """Groups without missing keys that occur in a plan's rows, and their numbers of people; raises as ``fetch``."""
    present = tuple(f"({key}) IS NOT NULL" for key in plan.groups)
    if plan.people is not None and plan.people.waves:  # rows of the earlier wave count in whatever group
        present = tuple(f"({key} OR {plan.people.waves[0]})" for key in present)
    each_once = None
    if (people := plan.people) is not None:
        each_once = replace(people, unit=replace(people.unit, per_person=None, rows=1))
    # All conditions are inner ones, so that groups are looked for where WHERE holds: there commas are joined.
    kept = (*plan.inner, *plan.where, *present)
    counted = replace(
        plan, keys=None, inner=kept, where=(), parts=(Counted(None),), people=each_once, lists_missing=False
    )
    (summary,), keys = read(fetch, counted, None, dialect)
    return GroupSizes(tuple(zip(*keys, strict=True)), summary.n)


def _second_parts(plan: SummaryPlan, dialect: Dialect) -> list[tuple[int, Summarised]]:
    """The parts that a statement of its own reads a second time."""
    if not in_steps(plan, dialect):
        return []
    return [(i, part) for i, part in enumerate(plan.parts) if isinstance(part, Summarised) and part.needs.squares]


def _looks(plan: SummaryPlan, dialect: Dialect) -> list[tuple[int, Summarised]]:
    """The parts whose order statistics are found by looks."""
    if dialect.by_pivot or dialect.by_rank or plan.groups:
        return []
    parts = ((i, part) for i, part in enumerate(plan.parts) if isinstance(part, Summarised))
    return [(i, part) for i, part in parts if part.needs.windows or part.needs.seconds]


def _second_pass(fetch: Fetch, plan: SummaryPlan, dialect: Dialect, columns: Columns) -> Columns:
    """Result of the second pass over all records, for engines that need the means in the statement."""
    parts = _second_parts(plan, dialect)
    if not parts:
        return {}
    centre_of = {
        i: (float(_floats(columns, f"mean_{i}", 1, 0.0)[0]), float(_floats(columns, f"per_unit_{i}", 1, 1.0)[0]))
        for i, _ in parts
    }
    return fetch(second_statement(plan, dialect, centre_of), [])


def _looked(fetch: Fetch, plan: SummaryPlan, dialect: Dialect, columns: Columns) -> dict[int, Looked]:
    """Order statistics of all records, for engines that find them by cells."""

    def counted_in_cells(i: int, looks: Sequence[Look]) -> Columns:
        return fetch(looked_at(plan, dialect, i, looks), [])

    looked = {}
    for i, part in _looks(plan, dialect):
        n = _integers(columns, f"n_{i}", 1)
        ranks = [window_start(n, q) + np.arange(4) for q in part.needs.windows]
        if part.needs.seconds:
            ranks.append(np.append(n - 1, 2))
        looked[i] = Looked.of(partial(counted_in_cells, i), part.universe, int(n[0]), np.concatenate(ranks))
    return looked


def _summary(
    i: int, part: Part, columns: Columns, size: int, dialect: Dialect, banded: bool, looked: Looked | None
) -> Summary:
    n = _integers(columns, f"n_{i}", size)
    if isinstance(part, Counted):
        return Summary(n)
    if isinstance(part, Different):
        distinct, singles = (_integers(columns, f"{name}_{i}", size) for name in ("distinct", "singles"))
        if not isinstance(part, DifferentNumbers):
            return Summary(n, distinct=distinct, singles=singles)
        ends = [_floats(columns, f"{name}_{i}", size, 0.0)[None] for name in ("lowest", "highest")]
        return Summary(
            n,
            distinct=distinct,
            singles=singles,
            steps=_integers(columns, f"steps_{i}", size) if part.needs.steps else None,
            whole=_integers(columns, f"whole_{i}", size) if part.needs.whole else None,
            clamped=_integers(columns, f"clamped_{i}", size),
            other=Summary(singles, lowest=ends[0], highest=ends[1]),
        )
    if isinstance(part, Binned):
        return summary_of_bins(columns, i, part)
    needs, universe = part.needs, part.universe

    def inside(name: str, padding: float) -> FloatArray:
        """Clamping a record found by its rank is finding it among the clamped ones."""
        return np.clip(_floats(columns, f"{name}_{i}", size, padding), universe.lo, universe.hi)

    lowest = highest = other = None
    spans = spanned(columns, i, part, dialect) if dialect.by_rank else []
    told_apart = part.ranks if dialect.by_pivot or dialect.by_rank else ()
    if needs.ends or needs.seconds or told_apart:
        lowest, highest = _ends(columns, f"lowest_{i}", f"lowest_of_negatives_{i}", n, universe)
        if needs.seconds:
            several = n > 1
            second, last_but_one = spans[-2:] or (looked, looked)
            low = second.at(2 + 0 * n) if second else inside("second_lowest", universe.hi)
            high = last_but_one.at(n - 1) if last_but_one else inside("second_highest", universe.lo)
            lowest[1, several] = np.clip(low, universe.lo, universe.hi)[several]
            highest[1, several] = np.clip(high, universe.lo, universe.hi)[several]
        if isinstance(universe, Rectangle):
            names = f"other_lowest_{i}", f"other_lowest_of_negatives_{i}"
            other_lowest, other_highest = _ends(columns, *names, n, universe.other)
            other = Summary(n, lowest=other_lowest, highest=other_highest)
    squares = nearest = None
    if needs.squares:
        per_unit = _floats(columns, f"per_unit_{i}", size, 1.0)
        squares = _floats(columns, f"squares_{i}", size, 0.0) / per_unit**2
        nearest = _floats(columns, f"nearest_{i}", size, 0.0) / per_unit
    asked = enumerate(pivots(part) if dialect.by_pivot else ())
    around: list[Around | Band]
    around = [(Band if banded else Around).of(columns, i, k, q, n, part) for k, q in asked]
    by_quantile: dict[float, Around | Band | Looked | Spanned] = {near.q: near for near in around}
    by_quantile |= {span.q: span for span in spans if span.q is not None}
    if looked:
        by_quantile = dict.fromkeys(needs.windows, looked)
    if told_apart:
        assert lowest is not None and highest is not None
        if dialect.by_rank:
            records = Listed.of([one for span in spans for one in span.known()], n, lowest[0], highest[0])
        else:
            records = listed(columns, i, part, around, n, lowest[0], highest[0])
        cells = {name: records.cells(points) for name, points in part.points.items()}
    else:
        cells = {
            name: counted(columns[f"{name}_{i}"], points, packed_counts(points)) for name, points in part.points.items()
        }
    return Summary(
        n,
        total=_floats(columns, f"total_{i}", size, 0.0) / part.grid if needs.total or needs.squares else None,
        steps=_integers(columns, f"steps_{i}", size) if needs.steps else None,
        lowest=lowest,
        highest=highest,
        squares=squares,
        nearest=nearest,
        windows=_windows(i, part, n, columns, by_quantile),
        places=_places(columns, i, n) if needs.places else None,
        place_squares=_integers(columns, f"place_squares_{i}", size) if needs.place_squares else None,
        whole=_integers(columns, f"whole_{i}", size) if needs.whole else None,
        clamped=_integers(columns, f"clamped_{i}", size) if f"clamped_{i}" in columns else None,
        cells=cells.get("cells"),
        whole_cells=cells.get("whole_cells"),
        products={degrees: _products(columns, degrees, i, size) for degrees in needs.products},
        other=other,
        size_sums=summed(*(columns[f"{name}_{i}"] for name in SIZE_LISTS)) if needs.size_sums else None,
    )


def _sure_sums(i: int, part: Summarised, columns: Columns, dialect: Dialect, sums: Sums) -> Sums:
    """The way to add up places that is exact for these data: the present one if it was."""
    placing = Placing(dialect, sums)
    if not placing.is_near(part):
        return sums
    if not placing.is_summed(part):
        return Sums.CASES if _is_far(i, part, columns) else sums
    n = np.ma.filled(np.ma.asarray(columns[f"n_{i}"], dtype=np.int64), 0)
    if sums is Sums.WHOLES:
        finite = np.ma.filled(np.ma.asarray(columns[f"finite_{i}"], dtype=np.int64), 0)
        return sums if (finite == n).all() and (n <= MOST_PLACED).all() else Sums.CASES
    if np.isfinite(np.ma.filled(np.ma.asarray(columns[f"terms_{i}"], dtype=np.float64), 0.0)).all():
        return sums if (n <= MOST_PLACED).all() else Sums.CASES
    return Sums.WHOLES if (n > MOST_IN_DOUBLES).any() else Sums.CASES


def _is_far(i: int, part: Summarised, columns: Columns) -> bool:
    """Whether a record of two columns is so far outside that float arithmetic may have misplaced it."""
    for of, _, universe in part.columns("", ""):
        lowest, negative = (
            np.ma.filled(np.ma.asarray(columns[f"{of}{name}_{i}"], dtype=np.float64), nobody)
            for name, nobody in (("lowest", universe.lo), ("lowest_of_negatives", -universe.lo))
        )
        farthest = np.fmax(np.abs(lowest - universe.lo), np.abs(negative + universe.lo))  # NaN is no record
        if np.any(farthest * PlaceGrid.of(universe).per_unit > MOST_PLACES):
            return True
    return False


def _ends(
    columns: Columns, lowest_name: str, lowest_of_negatives: str, n: NDArray[np.int64], universe: Universe
) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest records of one column, in the first rows; padded."""
    size, some = len(n), n > 0
    lowest, highest = np.full((2, size), universe.hi), np.full((2, size), universe.lo)
    lowest[0, some] = np.clip(_floats(columns, lowest_name, size, universe.hi), universe.lo, universe.hi)[some]
    negatives = _floats(columns, lowest_of_negatives, size, -universe.lo)
    highest[0, some] = np.clip(-negatives, universe.lo, universe.hi)[some]
    return lowest, highest


def _places(columns: Columns, i: int, n: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of places, or of the terms that make them."""
    if f"terms_{i}" not in columns:
        return _integers(columns, f"places_{i}", len(n))
    return places_of(np.ma.filled(np.ma.asarray(columns[f"terms_{i}"]), 0), n)


def _products(columns: Columns, degrees: Degrees, part: int, size: int) -> NDArray[np.int64]:
    """The sums of products of two columns, shape (m, G)."""
    parts = range((degrees[0] + 1) * (degrees[1] + 1))
    return np.stack([_integers(columns, product_name(degrees, at, part), size) for at in parts])


def _windows(
    i: int,
    part: Summarised,
    n: NDArray[np.int64],
    columns: Columns,
    by_quantile: dict[float, Around | Band | Looked | Spanned],
) -> dict[float, FloatArray]:
    """For each quantile the four order statistics from `window_start` on, padded."""
    lo, hi = part.universe.lo, part.universe.hi
    windows = {}
    for k, q in enumerate(sorted(part.needs.windows)):
        ranks = window_start(n, q) + np.arange(4)[:, None]
        if q in by_quantile:
            values = by_quantile[q].at(ranks)
        else:
            known = np.stack([_floats(columns, f"ranked_{at}_{i}_{k}", len(n), 0.0) for at in range(len(RANKED))])
            place = ranks - _integers(columns, f"base_{i}_{k}", len(n))
            values = known[np.clip(place, 0, len(known) - 1), np.arange(len(n))]
        windows[q] = np.where(ranks < 1, lo, np.where(ranks > n, hi, np.clip(values, lo, hi)))
    return windows


def _floats(columns: Columns, name: str, size: int, missing: float) -> FloatArray:
    values = np.ma.filled(np.ma.asarray(columns[name], dtype=np.float64), missing)
    assert values.shape == (size,)
    return values


def _integers(columns: Columns, name: str, size: int) -> NDArray[np.int64]:
    values = np.ma.filled(np.ma.asarray(columns[name], dtype=np.int64), 0)
    assert values.shape == (size,)
    return values
