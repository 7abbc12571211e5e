"""Sums of records by their sizes, in the SQL of an engine."""

from __future__ import annotations

from collections.abc import Sequence

from pdrisk._core.size_sums import HALF_BITS, SIZE_PLACES, SizePoints
from pdrisk._core.universe import Universe
from pdrisk.engines.sql.dialects.dialect import Dialect

SIZE_LISTS = ("bin", "size", "high", "low")  # of a part's `SizeSums`


def size_place(dialect: Dialect, x: str, universe: Universe) -> str:
    """The place of a record on the grid of `SizePoints`, as a BIGINT; NULL where it is missing."""
    per_unit = SizePoints.between(universe.lo, universe.hi).per_unit
    scaled = dialect.scaled(dialect.infix(x, "-", dialect.number(universe.lo)), per_unit)
    place = f"CAST({dialect.call('FLOOR', dialect.infix(scaled, '+', dialect.number(0.5)))} AS BIGINT)"
    return dialect.inside(
        x, place, dialect.number(universe.lo), dialect.number(universe.hi), _whole(0), _whole(SIZE_PLACES)
    )


def sums_by_size(dialect: Dialect, part: int, column: str, universe: Universe, rows: str, groups: Sequence[str]) -> str:
    """The SELECT of the lists `SIZE_LISTS` of a part, in one order, for each group.

    ``column``: the records' places.
    ``rows``: what holds it, as it stands in FROM.
    """
    call, infix = dialect.call, dialect.infix
    keys, by = "".join(f"{name}, " for name in groups), ", ".join(groups)
    thresholds = SizePoints.between(universe.lo, universe.hi).thresholds.tolist()
    bins = searched(column, list(map(_whole, thresholds)), dialect)
    high, low = infix(column, ">>", f"{HALF_BITS}"), infix(column, "&", _whole(2**HALF_BITS - 1))
    summed = (
        f"(SELECT {keys}bin, {call('COUNT', '*')} AS size, CAST({call('SUM', high)} AS BIGINT) AS high, "
        f"CAST({call('SUM', low)} AS BIGINT) AS low FROM (SELECT *, {bins} AS bin FROM {rows}) AS placed "
        f"WHERE {column} IS NOT NULL GROUP BY {keys}bin) AS summed"
    )
    lists = ", ".join(f"{dialect.listed(name, 'bin')} AS {name}_{part}" for name in SIZE_LISTS)
    return f"(SELECT {keys}{lists} FROM {summed}{f' GROUP BY {by}' if by else ''})"


def searched(value: str, thresholds: Sequence[str], dialect: Dialect, below: int = 0) -> str:
    """Number of ascending thresholds that are not above a value, in few comparisons."""
    if not thresholds:
        return dialect.whole(below)
    middle = len(thresholds) // 2
    less = searched(value, thresholds[:middle], dialect, below)
    more = searched(value, thresholds[middle + 1 :], dialect, below + middle + 1)
    return f"CASE WHEN {value} < {thresholds[middle]} THEN {less} ELSE {more} END"


def _whole(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"
