"""Contributions of people in SQL: of what each person has in a group, those that can move an answer farthest.

    records ──> one line for each contribution ──> for each size, or around each rank, the few that matter

Among contributions of one size, the mean without a contribution is monotone in its sum, and the variance in what the
sum of squares loses with it. The maximum changes only without the first contribution at it, and is then that of the
second; likewise the minimum. The quantile without a contribution has one of the ranks to which k records can move it.
The contribution's size, its records near these ranks, and how many records it has below them decide which one. So
contributions without a record there differ in two numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pdrisk._core.contributions import Contributions, ExtremeContributions, OrderedContributions
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._core.universe import Universe
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.order_lists import Lists
from pdrisk.engines.sql.summary.summary_plan import ContributionColumns, Different, DifferentNumbers, Part, Summarised

# For each size of contributions: the size, their number, their smallest and largest sum, and the total of their sums.
SUMS = ("sizes", "held", "low_sums", "high_sums", "all_sums")
# For each size, the least and the most that the sum of squared distances from the mean loses without a contribution.
SPREAD = ("spread_sizes", "low_spread", "high_spread")
# Around a rank, a line for each record: the size of its contribution, how many records of that are below the first rank
# read, the first rank of one that is not, the record's own rank, its value. All other contributions share a line for
# each size and number of records below, with three zeros.
AROUND = ("size", "below", "owner", "place", "own")
FINE = 2.0**26  # parts of a step, in sums of distances, which are 2**26 steps at most


@dataclass(frozen=True, slots=True)
class ContributionSelects:
    """SELECTs that read contributions."""

    dialect: Dialect
    # `rows`, `measured`: Relations of the records, as s0, u0, c0, p0, ... by their part; in the second one,
    # `Summarised.needs` with squares have what `Aggregates.root` needs. Both are called ``rows_read``.
    rows: str
    measured: str
    groups: Sequence[str]  # the columns that tell groups apart
    whose: ContributionColumns

    def of(self, i: int, part: Part, root: str | None) -> Iterator[tuple[str, str]]:
        """The SELECTs for part i, by name.

        ``root``: the distance of a record from the mean, in steps, negative below it, where that is needed.
        """
        yield f"contributions_{i}", self._sums(i, part)
        if isinstance(part, Different) and not isinstance(part, DifferentNumbers):
            yield f"alone_{i}", self._alone(i)
        if isinstance(part, Summarised):
            if root is not None:
                yield f"spread_{i}", self._spread(i, root)
            if part.needs.seconds:
                yield f"firsts_{i}", self._ends(i)
            for k, q in enumerate(sorted(part.needs.windows)):
                yield f"around_{i}_{k}", self._around(i, k, q)

    @property
    def _keys(self) -> str:
        return "".join(f"{name}, " for name in self.groups)

    @property
    def _contribution(self) -> str:
        return ", ".join([*self.groups, *self.whose.columns])

    def _over(self, *by: str, order: str = "") -> str:
        keys = ", ".join([*self.groups, *by])
        return f"OVER ({f'PARTITION BY {keys}' if keys else ''}{f' ORDER BY {order}' if order else ''})"

    def _grouped(self, columns: Sequence[str], relation: str) -> str:
        """One line for each group."""
        by = f" GROUP BY {', '.join(self.groups)}" if self.groups else ""
        return f"(SELECT {self._keys}{', '.join(columns)} FROM ({relation}) AS contributions_read{by})"

    def _listed(self, names: Sequence[str], suffix: str, by: str, relation: str) -> str:
        return self._grouped([f"{self.dialect.listed(name, by)} AS {name}_{suffix}" for name in names], relation)

    def _sums(self, i: int, part: Part) -> str:
        dialect, call, double = self.dialect, self.dialect.call, self.dialect.double
        total = dialect.whole(0)
        if isinstance(part, Summarised):
            size, total = call("COUNT", f"s{i}"), dialect.whole_sum(f"s{i}")
        else:
            size = call("COUNT", f"u{i}") if isinstance(part, Different) else dialect.counted(f"c{i}")
        contributions = (
            f"SELECT {self._keys}{size} AS sizes, {total} AS total FROM {self.rows} GROUP BY {self._contribution}"
        )
        sized = (
            f"SELECT {self._keys}sizes, {call('COUNT', '*')} AS held, {double(call('MIN', 'total'))} AS low_sums, "
            f"{double(call('MAX', 'total'))} AS high_sums, {double(call('SUM', 'total'))} AS all_sums "
            f"FROM ({contributions}) AS contributions WHERE sizes > {dialect.whole(0)} GROUP BY {self._keys}sizes"
        )
        return self._listed(SUMS, f"{i}", "sizes", sized)

    def _alone(self, i: int) -> str:
        """Number of values that no other contribution has."""
        call = self.dialect.call
        held = f"SELECT DISTINCT {self._contribution}, u{i} AS u FROM {self.rows} WHERE u{i} IS NOT NULL"
        shared = f"SELECT *, {call('COUNT', '*')} {self._over('u')} AS holders FROM ({held}) AS held"
        alone = (
            f"SELECT {self._keys}{self.dialect.counted('holders = 1')} AS alone FROM ({shared}) AS shared "
            f"GROUP BY {self._contribution}"
        )
        return self._grouped([f"{call(end, 'alone')} AS {end.lower()}_alone_{i}" for end in ("MIN", "MAX")], alone)

    def _spread(self, i: int, root: str) -> str:
        """Loss of squares: those of the contribution, and the change by the mean of the others."""
        dialect, call, infix = self.dialect, self.dialect.call, self.dialect.infix
        keys = "".join(f"rows_read.{name} AS {name}, " for name in self.groups)
        by = ", ".join([*(f"rows_read.{name}" for name in self.groups), *self.whose.columns])
        off = dialect.wide(dialect.whole_sum(dialect.nearest_whole(infix(root, "*", dialect.number(FINE)))))
        squares = dialect.double(dialect.whole_sum(dialect.nearest_whole(infix(root, "*", root))))
        contributions = (
            f"SELECT {keys}{call('COUNT', '*')} AS sizes, {off} AS away, {squares} AS squares "
            f"FROM {self.measured} WHERE {root} IS NOT NULL GROUP BY {by}"
        )
        summed = ", ".join(f"{call('SUM', name)} {self._over()} AS all_{name}" for name in ("sizes", "away"))
        away = infix(dialect.double(infix("all_away", "-", "away")), "*", dialect.number(1 / FINE))
        left = call("GREATEST", dialect.double(infix("all_sizes", "-", "sizes")), dialect.number(1.0))
        taken = infix("squares", "+", infix(infix(away, "*", away), "/", left))
        by_size = (
            f"SELECT {self._keys}sizes, {taken} AS taken FROM (SELECT *, {summed} FROM ({contributions}) AS p) AS q"
        )
        sized = (
            f"SELECT {self._keys}sizes AS spread_sizes, {call('MIN', 'taken')} AS low_spread, "
            f"{call('MAX', 'taken')} AS high_spread FROM ({by_size}) AS sized GROUP BY {self._keys}sizes"
        )
        return self._listed(SPREAD, f"{i}", "spread_sizes", sized)

    def _ends(self, i: int) -> str:
        """First contribution at each end, and the second one."""
        call = self.dialect.call
        ends = (
            f"SELECT {self._keys}{call('MIN', f'p{i}')} AS low, {call('MAX', f'p{i}')} AS high "
            f"FROM {self.rows} WHERE p{i} IS NOT NULL GROUP BY {self._contribution}"
        )
        number = call("ROW_NUMBER")
        places = (("low", "low ASC"), ("high", "high DESC"))
        placed = ", ".join(f"{number} {self._over(order=order)} AS place_of_{end}" for end, order in places)
        columns = [
            f"{call('MAX', f'CASE WHEN place_of_{end} = {at} THEN {end} END')} AS {end}_{at}_{i}"
            for end, _ in places
            for at in (1, 2)
        ]
        return self._grouped(columns, f"SELECT *, {placed} FROM ({ends}) AS ends")

    def _around(self, i: int, k: int, q: float) -> str:
        """Records that the quantile may be if k are added or removed, one rank to spare, with their contributions."""
        dialect, call = self.dialect, self.dialect.call
        ranked = (
            f"SELECT {self._contribution}, p{i} AS value, {call('ROW_NUMBER')} {self._over(order=f'p{i}')} AS rank_, "
            f"{call('COUNT', '*')} {self._over()} AS n FROM {self.rows} WHERE p{i} IS NOT NULL"
        )
        middle = call("FLOOR", dialect.infix(dialect.double("n - 1"), "*", dialect.number(q)))
        first = f"SELECT *, CAST({middle} AS BIGINT) - {self.whose.most} AS first_ FROM ({ranked}) AS ranked"
        inside = f"rank_ BETWEEN first_ AND first_ + {2 * self.whose.most + 3}"
        over = self._over(*self.whose.columns)
        owned = (
            f"SELECT *, {call('COUNT', '*')} {over} AS size, "
            f"{call('COUNT', 'CASE WHEN rank_ < first_ THEN 1 END')} {over} AS below, "
            f"{call('MIN', f'CASE WHEN {inside} THEN rank_ END')} {over} AS owner_ FROM ({first}) AS placed"
        )
        zero = dialect.whole(0)
        chosen = (
            f"SELECT DISTINCT {self._keys}size, below, CASE WHEN {inside} THEN owner_ ELSE {zero} END AS owner, "
            f"CASE WHEN {inside} THEN rank_ ELSE {zero} END AS place, "
            f"CASE WHEN {inside} THEN value ELSE {dialect.number(0.0)} END AS own "
            f"FROM ({owned}) AS owned WHERE {inside} OR owner_ IS NULL"
        )
        order = self._over(order="place, size, below")
        lined = f"SELECT *, {call('ROW_NUMBER')} {order} AS line FROM ({chosen}) AS chosen"
        return self._listed(AROUND, f"around_{i}_{k}", "line", lined)


def contributions_of(columns: dict[str, Any], i: int, part: Part, summary: Summary) -> ExtremeContributions:
    """Contributions of a part, from these SELECTs and its summary."""
    size = len(summary.n)
    lists = [Lists.of(columns[f"{name}_{i}"]) for name in SUMS]
    groups = lists[0].group
    sizes, held = (ragged.values.astype(np.int64) for ragged in lists[:2])
    grid = part.grid if isinstance(part, Summarised) else 1.0
    low, high, added = (ragged.values.astype(np.float64) / grid for ragged in lists[2:])
    number, n, total = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size)
    np.add.at(number, groups, held)
    np.add.at(n, groups, sizes * held)
    np.add.at(total, groups, added)
    extremes = ExtremeContributions(
        number, Contributions(np.append(groups, groups), np.append(sizes, sizes), n, total, np.append(low, high))
    )
    if f"min_alone_{i}" in columns:
        of, alone = _some(columns, f"min_alone_{i}", f"max_alone_{i}")
        return replace(
            extremes, different=Contributions(of, np.zeros_like(of), n, summary.distinct, alone.astype(np.int64))
        )
    if not isinstance(part, Summarised):
        return extremes
    if f"spread_sizes_{i}" in columns:
        lists = [Lists.of(columns[f"{name}_{i}"]) for name in SPREAD]
        of, sizes = (np.tile(numbers, 2).astype(np.int64) for numbers in (lists[0].group, lists[0].values))
        taken = np.concatenate([ragged.values for ragged in lists[1:]]).astype(np.float64)
        taken /= np.ma.filled(np.ma.asarray(columns[f"per_unit_{i}"], dtype=np.float64), 1.0)[of] ** 2
        extremes = replace(
            extremes, spread=Contributions(of, sizes, n, summary.squares, taken, total / np.maximum(n, 1))
        )
    if f"low_1_{i}" in columns:
        lowest, highest = (_ends(columns, f"{end}_1_{i}", f"{end}_2_{i}", n, part.universe) for end in ("low", "high"))
        extremes = replace(extremes, lowest=lowest, highest=highest)
    windows = enumerate(sorted(part.needs.windows))
    return replace(extremes, ordered={q: _ordered(columns, f"around_{i}_{k}", n, part.universe) for k, q in windows})


def _some(answer: dict[str, Any], *names: str) -> tuple[IntArray, FloatArray]:
    """Values of columns where there are any, and their groups."""
    columns = [np.ma.asarray(answer[name], dtype=np.float64) for name in names]
    there = [np.flatnonzero(~np.ma.getmaskarray(column)) for column in columns]
    values = [np.ma.getdata(column)[places] for column, places in zip(columns, there, strict=True)]
    return np.concatenate(there), np.concatenate(values)


def _ends(columns: dict[str, Any], first: str, second: str, n: IntArray, universe: Universe) -> Contributions:
    of, values = _some(columns, first, second)
    return Contributions(of, np.zeros_like(of), n, own=_inside(values, universe))


def _inside(values: FloatArray, universe: Universe) -> FloatArray:
    return np.clip(values, universe.lo, universe.hi)


def _ordered(columns: dict[str, Any], suffix: str, n: IntArray, universe: Universe) -> OrderedContributions:
    """Records around a rank with their contributions, and each contribution's numbers of records below and above."""
    lists = [Lists.of(columns[f"{name}_{suffix}"]) for name in AROUND]
    group, number = lists[0].group, len(n)
    size, below, owner, place = (ragged.values.astype(np.int64) for ragged in lists[:4])
    inside = place > 0
    line = np.arange(len(group))
    names = np.stack([group, np.where(inside, owner, -1 - line)])
    _, at, whose = np.unique(names, axis=1, return_index=True, return_inverse=True)
    whose = whose.reshape(-1)
    within = np.bincount(group[inside], minlength=number)
    first = np.full(number, np.iinfo(np.int64).max)
    np.minimum.at(first, group[inside], place[inside])
    first = np.where(within > 0, first, 1)
    of, contribution = group[at], np.arange(len(at))
    above = size[at] - below[at] - np.bincount(whose[inside], minlength=len(at))
    ranks = [place[inside], np.repeat((first - 1)[of], below[at]), np.repeat((first + within)[of], above)]
    return OrderedContributions(
        of, size[at], n,
        whose=np.concatenate([whose[inside], np.repeat(contribution, below[at]), np.repeat(contribution, above)]),
        ranks=np.concatenate(ranks),
        values=_inside(lists[4].values[inside].astype(np.float64), universe),
        begins=np.concatenate([[0], np.cumsum(within)]),
        first=first,
    )  # fmt: skip
