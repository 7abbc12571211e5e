"""DuckDB engine: one `Summary` for each part of a plan, from one statement."""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import places_per_unit
from pdrisk._core.products import Degrees
from pdrisk._core.summary import FloatArray, Summary, window_start
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._guard import guarded
from pdrisk._model.query import Query
from pdrisk.engines.base import Origin, Reading
from pdrisk.engines.sql.bands import can_be_banded
from pdrisk.engines.sql.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.ordered import Around, Band, BandMissedError, counted, listed, summed
from pdrisk.engines.sql.plan import Counted, Different, Measured, Part, SummaryPlan, all_told_apart, pivots
from pdrisk.engines.sql.render import MOST_PLACES, RANKED, is_read_whole, packed_counts, product_name, statement
from pdrisk.engines.sql.sizes import SIZE_LISTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDBEngine", "TableReading", "read"]

Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TableReading(Reading):
    """What the rows of a table say.

    Attributes
    ----------
    keys : list of list
        The keys of the groups of the answer, a list for each expression of GROUP BY.
    """

    keys: list[list[Any]]


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Engine of what a DuckDB connection can read, with the plan of the one query that it is made for.

    Attributes
    ----------
    connection : DuckDBPyConnection
    plan : SummaryPlan
    places : tuple of int
        Which part of the plan each line of the query finds its summary in.
    keys : list of list, or None
        The listed keys, the parameters of ``plan.keys``; None for those observed.
    origin : Origin
    dialect : Dialect
    """

    connection: DuckDBPyConnection
    plan: SummaryPlan
    places: tuple[int, ...]
    keys: list[list[Any]] | None = None
    origin: Origin = field(default_factory=Origin)
    dialect: Dialect = field(default_factory=DuckDBDialect)

    def read(self, query: Query) -> TableReading:
        """What the rows say to the query that the plan is of; fails as `guarded` does."""
        parts, keys = guarded(lambda: read(self.connection, self.plan, self.keys, self.dialect))
        universes = tuple(line.universe for line in query.lines if line.universe is not None)
        return TableReading(universes, tuple(parts[place] for place in self.places), keys)


def read(
    connection: DuckDBPyConnection,
    plan: SummaryPlan,
    key_lists: list[list[Any]] | None = None,
    dialect: Dialect | None = None,
) -> tuple[tuple[Summary, ...], list[list[Any]]]:
    """The summaries of a plan's parts, and the keys of the groups, a list for each expression of GROUP BY.

    Parameters
    ----------
    connection : DuckDBPyConnection
    plan : SummaryPlan
    key_lists : list of list, optional
        The parameters of ``plan.keys``; without them, the keys observed are returned.
    dialect : Dialect, optional

    Raises
    ------
    duckdb.Error
        Whatever goes wrong; its dialect may quote a record.
    """
    dialect = dialect or DuckDBDialect()
    ways = [(plan, False), (all_told_apart(plan), False)]
    if can_be_banded(plan, dialect):
        ways.insert(0, (plan, True))
    near, summaries = True, None
    while summaries is None:
        own, banded = ways[0]
        found = _fetched(connection, statement(own, dialect, banded, near), key_lists or [])
        size = len(next(iter(found.values())))
        placed = (
            (i, part)
            for i, part in enumerate(own.parts)
            if isinstance(part, Measured) and not is_read_whole(own, part, dialect)
        )
        if near and any(_is_far(i, part, found) for i, part in placed):
            near = False
            continue
        try:
            summaries = tuple(_summary(i, part, found, size, dialect, banded) for i, part in enumerate(own.parts))
        except BandMissedError:  # once in millions of times: then all is read again, in the next way
            del ways[0]
    if key_lists is None:
        key_lists = [np.ma.getdata(found[f"g{i}"]).tolist() for i in range(len(plan.groups))]
    return summaries, key_lists


def _fetched(connection: DuckDBPyConnection, sql: str, values: list[Any]) -> Columns:
    """The columns of an answer.

    DuckDB lets signal handlers run while it works, and says no more of what one raised than that there was something,
    be it Ctrl-C or a timeout. So the thread in which handlers run only waits, and what they raise comes out there.
    """
    import duckdb

    if threading.current_thread() is not threading.main_thread():
        return connection.execute(sql, values).fetchnumpy()
    found: list[Columns] = []
    failed: list[BaseException] = []
    begun, ended = threading.Lock(), threading.Lock()
    ended.acquire()

    def work() -> None:
        if begun.acquire(blocking=False):  # else nobody waits for it any more
            try:
                found.append(connection.execute(sql, values).fetchnumpy())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                failed.append(error)
            ended.release()

    try:
        # Not a Thread, nor a Future: a handler that raises while they hold a lock of their own leaves it held.
        start_new_thread(work, ())
        ended.acquire()
    finally:
        while not (found or failed or begun.acquire(blocking=False)):
            with suppress(duckdb.Error):  # "busy" between two steps of its work
                connection.interrupt()
            time.sleep(0.005)
    if failed:
        raise failed[0]
    return found[0]


def _summary(i: int, part: Part, found: Columns, size: int, dialect: Dialect, banded: bool) -> Summary:
    n = _integers(found, f"n_{i}", size)
    if isinstance(part, Counted):
        return Summary(n)
    if isinstance(part, Different):
        distinct, singles = (_integers(found, f"{name}_{i}", size) for name in ("distinct", "singles"))
        return Summary(n, distinct=distinct, singles=singles)
    needs, universe = part.needs, part.universe

    def inside(name: str, padding: float) -> FloatArray:
        """Clamping a record found by its rank is finding it among the clamped ones."""
        return np.clip(_floats(found, f"{name}_{i}", size, padding), universe.lo, universe.hi)

    lowest = highest = other = None
    told_apart = part.ranks if dialect.by_pivot else ()
    if needs.ends or needs.seconds or told_apart:
        lowest, highest = _ends(found, f"lowest_{i}", f"lowest_of_negatives_{i}", n, universe)
        if needs.seconds:
            several = n > 1
            lowest[1, several] = inside("second_lowest", universe.hi)[several]
            highest[1, several] = inside("second_highest", universe.lo)[several]
        if isinstance(universe, Rectangle):
            own = f"other_lowest_{i}", f"other_lowest_of_negatives_{i}"
            other_lowest, other_highest = _ends(found, *own, n, universe.other)
            other = Summary(n, lowest=other_lowest, highest=other_highest)
    squares = nearest = None
    if needs.squares:
        squares = _floats(found, f"squares_{i}", size, 0.0) / part.square_grid
        nearest = _floats(found, f"nearest_{i}", size, 0.0)
    asked = enumerate(pivots(part) if dialect.by_pivot else ())
    around: list[Around | Band]
    around = [(Band if banded else Around).of(found, i, k, q, n, part) for k, q in asked]
    if told_apart:
        assert lowest is not None and highest is not None
        records = listed(found, i, part, around, n, lowest[0], highest[0])
        cells = {name: records.cells(points) for name, points in part.points.items()}
    else:
        cells = {
            name: counted(found[f"{name}_{i}"], points, packed_counts(points)) for name, points in part.points.items()
        }
    return Summary(
        n,
        total=_floats(found, f"total_{i}", size, 0.0) / part.grid if needs.total or needs.squares else None,
        steps=_integers(found, f"steps_{i}", size) if needs.steps else None,
        lowest=lowest,
        highest=highest,
        squares=squares,
        nearest=nearest,
        windows=_windows(i, part, n, found, around),
        places=_integers(found, f"places_{i}", size) if needs.places else None,
        place_squares=_integers(found, f"place_squares_{i}", size) if needs.place_squares else None,
        whole=_integers(found, f"whole_{i}", size) if needs.whole else None,
        clamped=_integers(found, f"clamped_{i}", size),
        cells=cells.get("cells"),
        whole_cells=cells.get("whole_cells"),
        products={degrees: _products(found, degrees, i, size) for degrees in needs.products},
        other=other,
        size_sums=summed(*(found[f"{name}_{i}"] for name in SIZE_LISTS)) if needs.size_sums else None,
    )


def _is_far(i: int, part: Measured, found: Columns) -> bool:
    """Whether a record lies so far outside that arithmetic by floats may have placed it wrongly."""
    if not ((part.needs.places or part.needs.place_squares or part.needs.products) and part.needs.ends):
        return False
    for of, _, universe in part.columns("", ""):
        lowest, negative = (
            np.ma.filled(np.ma.asarray(found[f"{of}{name}_{i}"], dtype=np.float64), nobody)
            for name, nobody in (("lowest", universe.lo), ("lowest_of_negatives", -universe.lo))
        )
        farthest = np.fmax(np.abs(lowest - universe.lo), np.abs(negative + universe.lo))  # NaN is no record
        if np.any(farthest * places_per_unit(universe.width) > MOST_PLACES):
            return True
    return False


def _ends(
    found: Columns, lowest_name: str, lowest_of_negatives: str, n: NDArray[np.int64], universe: Universe
) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest records of one column, in the first rows; padded."""
    size, some = len(n), n > 0
    lowest, highest = np.full((2, size), universe.hi), np.full((2, size), universe.lo)
    lowest[0, some] = np.clip(_floats(found, lowest_name, size, universe.hi), universe.lo, universe.hi)[some]
    negatives = _floats(found, lowest_of_negatives, size, -universe.lo)
    highest[0, some] = np.clip(-negatives, universe.lo, universe.hi)[some]
    return lowest, highest


def _products(found: Columns, degrees: Degrees, part: int, size: int) -> NDArray[np.int64]:
    """The sums of products of two columns, shape (m, G)."""
    parts = range((degrees[0] + 1) * (degrees[1] + 1))
    return np.stack([_integers(found, product_name(degrees, at, part), size) for at in parts])


def _windows(
    i: int, part: Measured, n: NDArray[np.int64], found: Columns, around: list[Around | Band]
) -> dict[float, FloatArray]:
    """For each quantile the four order statistics from `window_start` on, padded."""
    lo, hi = part.universe.lo, part.universe.hi
    windows = {}
    by_pivot = {each.q: each for each in around}
    for k, q in enumerate(sorted(part.needs.windows)):
        ranks = window_start(n, q) + np.arange(4)[:, None]
        if q in by_pivot:
            values = by_pivot[q].at(ranks)
        else:
            known = np.stack([_floats(found, f"ranked_{at}_{i}_{k}", len(n), 0.0) for at in range(len(RANKED))])
            place = ranks - _integers(found, f"base_{i}_{k}", len(n))
            values = known[np.clip(place, 0, len(known) - 1), np.arange(len(n))]
        windows[q] = np.where(ranks < 1, lo, np.where(ranks > n, hi, np.clip(values, lo, hi)))
    return windows


def _floats(found: Columns, name: str, size: int, missing: float) -> FloatArray:
    values = np.ma.filled(np.ma.asarray(found[name], dtype=np.float64), missing)
    assert values.shape == (size,)
    return values


def _integers(found: Columns, name: str, size: int) -> NDArray[np.int64]:
    values = np.ma.filled(np.ma.asarray(found[name], dtype=np.int64), 0)
    assert values.shape == (size,)
    return values
