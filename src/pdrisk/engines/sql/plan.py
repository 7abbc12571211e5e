"""Summary plan: what a query reads, in the SQL of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pdrisk._core.lattice import Lattice, Points, power_of_two_below
from pdrisk._core.once import once
from pdrisk._core.summary import Needs
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.query import Query

__all__ = ["INFINITY", "Counted", "Measured", "MeasuredPair", "SummaryPlan", "combined", "plan_of_columns"]

INFINITY = "CAST('infinity' AS DOUBLE)"


@dataclass(frozen=True)
class Measured:
    """Records of one expression under one universe.

    Attributes
    ----------
    value : str
        SQL of type DOUBLE over the columns of the source; NULL and NaN are missing.
    column : str or None
        The column in SQL, where the value is nothing else but its numbers.
    """

    value: str
    universe: Universe
    needs: Needs
    column: str | None = None

    def columns(self, value: str, other: str) -> list[tuple[str, str, Universe]]:
        """What stands before the names of each column's ends, its name in SQL out of these, and its universe."""
        own = ("", value, self.universe)
        return [own, ("other_", other, self.universe.other)] if isinstance(self.universe, Rectangle) else [own]

    @once
    def grid(self) -> float:
        """Steps to one unit of the exact sum: a power of two that makes the largest record 2**51 to 2**52 steps."""
        return 2.0**51 / power_of_two_below(self.universe.magnitude)

    @once
    def points(self) -> dict[str, Points]:
        """The public points that records are counted at, by the part of a `Summary` that tells."""
        universe, needs = self.universe, self.needs
        wanted = [(name, whole) for name, whole in (("cells", False), ("whole_cells", True)) if getattr(needs, name)]
        return {name: Points.between(universe.lo, universe.hi, whole) for name, whole in wanted}

    @once
    def coarse_grid(self) -> float:
        """Steps to one unit of the grid that sums are released on."""
        return 1 / Lattice.of_records(self.universe.magnitude).step

    @once
    def square_grid(self) -> float:
        """Steps to one squared unit, so that the largest squared distance is below 2**90 steps.

        Half a step off, a standard deviation of nothing would be off by the root of it: 2**-45 of the width.
        """
        return float(2.0**90 / (2 * power_of_two_below(self.universe.width)) ** 2)


@dataclass(frozen=True)
class MeasuredPair(Measured):
    """Records of two expressions, where both have a value. Its universe is a `Rectangle`.

    Attributes
    ----------
    other : str
        The second value in SQL, like the first one.
    """

    other: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """Records for which a condition holds; all, if it is None."""

    condition: str | None


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """What is to be read.

    Attributes
    ----------
    source : str
        As it stands in FROM.
    inner, where : tuple of str
        Conditions, those of subqueries and the query's own.
    groups : tuple of str
        Group keys in SQL.
    keys : str or None
        A relation with the columns g0, g1, ... and code, one line for each listed key; None for the keys observed.
    """

    source: str
    inner: tuple[str, ...]
    where: tuple[str, ...]
    groups: tuple[str, ...]
    keys: str | None
    parts: tuple[Measured | Counted, ...]


def combined(asked: Sequence[Measured | Counted]) -> tuple[tuple[Measured | Counted, ...], tuple[int, ...]]:
    """What is to be read, each thing once, and where each of those who ask finds it."""
    found: dict[tuple[object, ...], Measured | Counted] = {}
    keys: list[tuple[object, ...]] = []
    for one in asked:
        keys.append(_read(one))
        before = found.get(keys[-1])
        if isinstance(before, Measured) and isinstance(one, Measured):
            one = replace(one, needs=one.needs | before.needs)
        found[keys[-1]] = one
    order = list(found)
    return tuple(found.values()), tuple(order.index(key) for key in keys)


def _read(one: Measured | Counted) -> tuple[object, ...]:
    """What a part looks at, but for its needs."""
    if isinstance(one, Counted):
        return (one.condition,)
    return (one.value, one.universe, one.other) if isinstance(one, MeasuredPair) else (one.value, one.universe)


def plan_of_columns(query: Query, source: str) -> tuple[SummaryPlan, tuple[int, ...]]:
    """The plan of a query of stored columns, all records of them, by at most one column of text.

    Parameters
    ----------
    query : Query
        Without a filter, conditions or derived columns: those are written by `pdrisk.sql`.
    source : str
        As it stands in FROM.

    Returns
    -------
    (SummaryPlan, tuple of int)
        And where each line finds its part.
    """
    assert query.where is None and not query.derived and not query.missing
    asked: list[Measured | Counted] = []
    for line in query.lines:
        value = f'CAST("{line.column}" AS DOUBLE)'
        if line.other is not None and line.universe is not None:
            asked.append(MeasuredPair(value, line.universe, line.needs, other=f'CAST("{line.other}" AS DOUBLE)'))
        elif line.universe is None or not line.statistic.bounded:
            asked.append(Counted(None if line.column is None else f"({value} <= {INFINITY})"))
        else:
            asked.append(Measured(value, line.universe, line.needs))
    parts, places = combined(asked)
    if query.groups is None:
        return SummaryPlan(source, (), (), (), None, parts), places
    (by,) = query.groups.columns
    listed = "unnest(CAST($1 AS VARCHAR[])) AS g0, unnest(range(len($1))) AS code"
    return SummaryPlan(source, (), (), (f'"{by}"',), f"(SELECT {listed}) AS keys_listed", parts), places
