"""Conformance suite of engines: the same integers and order statistics from each of them, by exact fractions.

An engine passes if `check` does not raise for a function that opens a small table with it:

>>> import pandas as pd
>>> from pdrisk.engines.conformance import TABLES, check
>>> from pdrisk.engines.numpy.frame import FrameEngine
>>> def opened(table, query):
...     frame = pd.DataFrame({"x": table.values, "y": table.others, "g": table.groups}, dtype=object)
...     return FrameEngine(frame, stored=frame)
>>> check(opened, TABLES[1:3])

What is read is compared with the definitions, spelled out here on `fractions.Fraction`: slow, obvious, and sharing no
code with any engine. Docs: docs/architecture.md, "Add an engine".
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from pdrisk._core.lattice import PLACES
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import Corr, Cov, Slope
from pdrisk._core.size_sums import SizePoints
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Mean, Statistic, Sum, WholeSum
from pdrisk._core.summary import Needs, Ranks, Summary
from pdrisk._core.surveys.weighted import WeightedMean, WeightedMedian, WeightedVar
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk.engines.base import Engine, Reading
from pdrisk.engines.definitions import place, point, products, weight_steps

Value = float | int | Decimal | None


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """Test table of three columns: numbers, ``x`` and ``y``, and the group of each row, ``g``."""

    # {"DOUBLE", "BIGINT", "TINYINT", "DECIMAL(20, 4)"}; SQL type of the numbers; None is missing, and so is
    # NaN. Groups are text.
    type: str
    values: tuple[Value, ...]  # the numbers of ``x``
    groups: tuple[str | None, ...]  # the group of each row; None is a missing key
    keys: tuple[str, ...]  # the groups that are asked about, in the order of the answer; a group may be empty

    @property
    def others(self) -> tuple[Value, ...]:
        """The column ``y``: the same numbers, a row later."""
        return (*self.values[-1:], *self.values[:-1])


Opened = Callable[[GroupedColumn, Query], Engine[Reading]]

QUANTILES: Final = (0.0, 0.1, 1 / 3, 0.5, 0.95, 1.0)
ASKED: Final[tuple[tuple[Statistic, str], ...]] = (
    (Count(), "geometric"),
    (Mean(), "two_sums"),
    (Mean(), "laplace"),
    (Sum(), "laplace"),
    (WholeSum(), "geometric"),
    (Mean(), "clipped_sums"),
    (Var(), "laplace"),
    (Var(), "bernstein"),
    (Min(), "laplace"),
    (Max(), "laplace"),
    *((Quantile(q), "laplace") for q in QUANTILES),
    *((Quantile(q, whole=whole), "exponential") for q in (0.0, 0.3, 0.5) for whole in (False, True)),
)
PAIRS: Final[tuple[tuple[Statistic, str], ...]] = (
    *((statistic, "bernstein_products") for statistic in (Cov(), Slope(), Corr())),
    (WeightedMean(), "weighted_two_sums"),
    (WeightedVar(), "weighted_bernstein"),
    (WeightedMedian(), "weighted_exponential"),
)
BESIDE: Final = Universe(-0.5, 2.0)  # of the other column
SHARE: Final = Fraction(10)  # eps, at which a quantile reads a few of the records of "many"
UNIVERSES: Final = (Universe(-1.0, 3.0), Universe(0.0, 1.0), Universe(2.0, 2.0**40), Universe(-1e9, 1e-9))
NAN, INF = math.nan, math.inf

_GROUPS: dict[str, tuple[Value, ...]] = {
    "all missing": (None, None, None),
    "all NaN": (NAN, NAN),
    "infinities": (INF, -INF, INF),
    "one": (0.625,),
    "two": (3.0, -1.0),
    "two alike": (0.5, 0.5),
    "three": (0.1, 0.2, 0.3),
    "ties at the median": (0.0, 1.0, 1.0, 1.0, 2.0),
    "ties at both ends": (-1.0, -1.0, 0.25, 3.0, 3.0),
    "zeros of both signs": (-0.0, 0.0, -0.0, 0.0),
    "nearly constant": (0.1, math.nextafter(0.1, 1), 0.1, math.nextafter(0.1, 0)),
    "outside": (-7.0, 1e300, 2.0, 4.0, -1e300, None, NAN),
    "halves of a place": tuple((k + 0.5) / PLACES for k in (0, 1, 2, 3, 2**29, 2**30 - 1)),
    "halves": (-0.5, 0.5, 1.5, 2.5, 3.5),
    "tiny": (5e-324, -5e-324, 1e-300, 2.0**-31),
    "all tiny": (5e-324, -5e-324, 1e-200),
    "many": tuple((7 * k % 101) / 16 - 2 for k in range(101)),
}
_INTEGERS: dict[str, tuple[Value, ...]] = {
    "beyond 2**53": (2**53 + 1, 2**53, -(2**53) - 1, 2**62, None),
    "small": (0, 1, 2, 3, -1, 1, 1),
    "one": (3,),
}
_NARROW: dict[str, tuple[Value, ...]] = {"narrow": (127, -128, 127, 3, 2, None), "one": (1,)}
_DECIMALS: dict[str, tuple[Value, ...]] = {
    "decimals": tuple(map(Decimal, ("0.1000", "0.3000", "2.9999", "-1.0001", "12345678901234.5678"))),
    "one": (Decimal("0.5000"),),
}


def _table(kind: str, groups: dict[str, tuple[Value, ...]]) -> GroupedColumn:
    """Test table with the groups' rows mixed, rows without a key, and a key that nobody has."""
    rows: list[tuple[Value, str | None]] = [(value, name) for name, values in groups.items() for value in values]
    rows = rows[::2] + rows[1::2]
    rows.insert(len(rows) // 2, (next((value for value, _ in rows if value is not None), None), None))
    return GroupedColumn(kind, tuple(value for value, _ in rows), tuple(name for _, name in rows), (*groups, "nobody"))


TABLES: Final = (
    _table("DOUBLE", _GROUPS),
    *(_table("DOUBLE", {name: values}) for name, values in _GROUPS.items()),
    _table("BIGINT", _INTEGERS),
    _table("TINYINT", _NARROW),
    _table("DECIMAL(20, 4)", _DECIMALS),
    GroupedColumn("DOUBLE", (), (), ("nobody",)),
)


def questions(universe: Universe, keys: Sequence[str] | None) -> Iterator[Query]:
    """Questions about a table, by group or for all rows: every statistic alone and many at once.

    Without the numbers for curators, where an engine may read only what noise is added to, each sum is asked alone, and
    order statistics by their mechanism.
    """
    lines = tuple(Line("x", statistic, universe, "given", mechanism=mechanism) for statistic, mechanism in ASKED)
    groups = None if keys is None else Groups(("g",), tuple((key,) for key in keys), "given")
    both = Rectangle(universe.lo, universe.hi, BESIDE)
    pairs = tuple(Line("x", statistic, both, "given", mechanism=mechanism, other="y") for statistic, mechanism in PAIRS)
    reads = ("x", "y") if groups is None else ("x", "y", "g")
    for asked in (*((line,) for line in lines), pairs, (*lines, *pairs[:1])):
        yield Query(asked, (), groups=groups, reads=reads)
    ordered = [line for line in lines if isinstance(line.statistic, Min | Max | Quantile)]
    by_mechanism = (
        tuple(line for line in ordered if line.mechanism == mechanism) for mechanism in ("laplace", "exponential")
    )
    for asked in (*((line,) for line in lines if line not in ordered), pairs, *by_mechanism):
        yield Query(asked, (SHARE,) * len(asked), groups=groups, reads=reads, has_facts=False)


def check(
    opened: Opened,
    tables: Sequence[GroupedColumn] = TABLES,
    universes: Sequence[Universe] = UNIVERSES,
    grouped: Sequence[bool] = (False, True),
) -> None:
    """Conformance check: asks an engine about adversarial tables and compares what it reads with the definitions.

    ``opened``: takes a `GroupedColumn` and a `Query` about it, and returns the `Engine` that reads it.
    ``grouped``: whether questions are asked of all rows (False), by group (True), or both.
    """
    for table, universe, by_group in itertools.product(tables, universes, grouped):
        rows = list(zip(table.values, table.others, table.groups, strict=True))
        groups = {"all rows": [(value, other) for value, other, _ in rows]}
        if by_group:
            groups = {
                f"group {key!r}": [(value, other) for value, other, group in rows if group == key] for key in table.keys
            }
        for query in questions(universe, table.keys if by_group else None):
            reading = opened(table, query).read(query)
            for number, (line, summary) in enumerate(zip(query.lines, reading.summaries, strict=True)):
                needs = line.needs if query.has_facts else query.mechanism(number).draws
                asked = f"{universe}, {line.statistic.label} by {line.mechanism}"
                if not query.has_facts:
                    asked += " without facts"
                for at, (name, values) in enumerate(groups.items()):
                    differing = (
                        _wrong(summary, at, [value for value, _ in values], universe, needs)
                        if line.other is None
                        else _wrong_pairs(summary, at, values, universe, needs)
                    )
                    for wrong in differing:
                        raise AssertionError(f"{table.type}, {name}, {asked}: {wrong}")


def check_group_sizes(opened: Opened, tables: Sequence[GroupedColumn] = TABLES) -> None:
    """Conformance check of the groups that occur and their numbers of records; raises as `check` does.

    Private keys are never missing; of the keys observed a missing one is the last.
    """
    private, observed = (
        Query((Line(None, Count(), UNIVERSES[0], None),), (), groups=Groups(("g",), None, keys_from), reads=("g",))
        for keys_from in ("private", "data")
    )
    for table in tables:
        group_sizes = opened(table, private).group_sizes(private)
        wanted = sorted(Counter((key,) for key in table.groups if key is not None).items())
        if (listed := list(zip(group_sizes.keys, group_sizes.n.tolist(), strict=True))) != wanted:
            raise AssertionError(f"{table.type}: the groups are {listed!r}, and should be {wanted!r}")
        sizes = opened(table, observed).read(observed).summaries[0].n.tolist()
        missing = table.groups.count(None)
        if sizes != [*(number for _, number in wanted), *[missing] * (missing > 0)]:
            raise AssertionError(f"{table.type}: groups of the keys observed have {sizes!r} records")


def _wrong_pairs(
    summary: Summary, group: int, rows: Sequence[tuple[Value, Value]], universe: Universe, needs: Needs
) -> Iterator[str]:
    """Error in the summary of two columns of one group."""
    pairs = [(float(x), float(y)) for x, y in rows if x is not None and y is not None]
    pairs = [(x, y) for x, y in pairs if not (math.isnan(x) or math.isnan(y))]
    columns = universe, BESIDE
    inside = [
        tuple(min(max(z, column.lo), column.hi) for z, column in zip(pair, columns, strict=True)) for pair in pairs
    ]
    compared: list[tuple[str, object, object]] = [("n", int(summary.n[group]), len(pairs))]
    moved = sum(pair != clamped for pair, clamped in zip(pairs, inside, strict=True))
    if summary.clamped is not None:
        compared.append(("clamped", int(summary.clamped[group]), moved))
    for part, bounds, at in ((summary, universe, 0), (summary.other, BESIDE, 1)):
        if part is None or part.lowest is None or part.highest is None:
            yield "the ends of a column are missing"
            continue
        ends = float(part.lowest[0, group]), float(part.highest[0, group])
        records = [pair[at] for pair in inside]
        compared.append(("ends", ends, (min(records, default=bounds.hi), max(records, default=bounds.lo))))
    if needs.cells and summary.cells is not None:
        weights = Counter[int]()
        for x, y in inside:
            weights[point(x, universe, whole=False)] += weight_steps(place(y, BESIDE))
        first, end = summary.cells.first[group : group + 2].tolist()
        at, steps = (numbers[first:end].tolist() for numbers in (summary.cells.point, summary.cells.count))
        compared.append(("weights at points", dict(zip(at, steps, strict=True)), dict(+weights)))
    for degrees in needs.products:
        if degrees not in summary.products:
            yield f"products {degrees} are missing"
            continue
        sums = [0] * ((degrees[0] + 1) * (degrees[1] + 1))
        for pair in inside:
            k, l = (place(z, column) for z, column in zip(pair, columns, strict=True))  # noqa: E741
            sums = [before + more for before, more in zip(sums, products(k, l, degrees), strict=True)]
        compared.append((f"products {degrees}", summary.products[degrees][:, group].tolist(), sums))
    yield from (f"{name} is {has!r}, and should be {wanted!r}" for name, has, wanted in compared if has != wanted)


def _around(ranks: Ranks, n: int) -> range:
    """The ranks whose records are told apart, of n."""
    middle = Fraction(ranks.a * n + ranks.offset, ranks.b)
    first = 1 if ranks.before is None else math.floor(middle) - ranks.before
    last = n if ranks.after is None else math.ceil(middle) + ranks.after
    return range(max(first, 1), min(last, n) + 1)


def _wrong_sizes(summary: Summary, group: int, records: Sequence[float], universe: Universe) -> Iterator[str]:
    """Error in the sums of records by their sizes."""
    points, sums = SizePoints.between(universe.lo, universe.hi), summary.size_sums
    if sums is None:
        yield "size_sums are missing"
        return
    below, above = points.lower_places.tolist()[::-1], points.upper_places.tolist()
    wanted: dict[int, list[int]] = {}
    for x in records:
        place = math.floor((x - universe.lo) * (2.0**50 / universe.width) + 0.5)  # the one rule, in float64
        if place < points.middle:
            bin_number = sum(limit <= place for limit in below)
        else:
            bin_number = len(below) + 1 + sum(limit < place for limit in above)
        before = wanted.get(bin_number, [0, 0, 0])
        wanted[bin_number] = [before[0] + 1, before[1] + place // 2**25, before[2] + place % 2**25]
    part = slice(sums.first[group], sums.first[group + 1])
    bins = zip(sums.bin[part].tolist(), sums.n[part], sums.high[part], sums.low[part], strict=True)
    listed = [(number, [int(amount) for amount in parts]) for number, *parts in bins]
    if listed != sorted(wanted.items()):
        yield f"size_sums are {listed!r}, and should be {sorted(wanted.items())!r}"


def _wrong(summary: Summary, group: int, values: Sequence[Value], universe: Universe, needs: Needs) -> Iterator[str]:
    """Error in the summary of one group."""
    lo, hi = universe.lo, universe.hi
    present = [float(value) for value in values if value is not None and not math.isnan(value)]
    records = sorted(min(max(x, lo), hi) for x in present)
    exact, n = [Fraction(x) for x in records], len(records)
    size = Fraction(universe.magnitude)

    def differs(name: str, read: object, wanted: object) -> Iterator[str]:
        if read != wanted:
            yield f"{name} is {read!r}, and should be {wanted!r}"

    def far(name: str, read: float, wanted: Fraction, slack: Fraction) -> Iterator[str]:
        if abs(Fraction(float(read)) - wanted) > slack:
            yield f"{name} is {read!r}, too far from {float(wanted)!r}"

    yield from differs("n", int(summary.n[group]), n)
    for part in ("total", "steps", "squares", "places", "place_squares", "whole", "cells", "whole_cells"):
        if getattr(needs, part) and getattr(summary, part) is None:
            yield f"{part} is missing"
    total = sum(exact, Fraction(0))
    mean = total / n if n else Fraction(0)
    if summary.clamped is not None:
        yield from differs("clamped", int(summary.clamped[group]), sum(not lo <= x <= hi for x in present))
    if needs.places and summary.places is not None:
        places = [place(x, universe) for x in records]
        yield from differs("places", int(summary.places[group]), sum(places))
        if needs.place_squares and summary.place_squares is not None:
            squared = sum(math.floor(Fraction(k * k, PLACES)) for k in places)
            yield from differs("place_squares", int(summary.place_squares[group]), squared)
    if needs.size_sums:
        yield from _wrong_sizes(summary, group, records, universe)
    if needs.whole and summary.whole is not None:
        yield from differs("whole", int(summary.whole[group]), sum(math.floor(x + 0.5) for x in records))
    for name, at_points in (("cells", summary.cells), ("whole_cells", summary.whole_cells)):
        if getattr(needs, name) and at_points is not None:
            span = slice(at_points.first[group], at_points.first[group + 1])
            cells = np.repeat(at_points.point[span], at_points.count[span]).tolist()
            points = [point(x, universe, whole=name == "whole_cells") for x in records]
            if needs.ranks and len(cells) == n:  # the other records lie anywhere on their side of these
                told_apart = set().union(*(_around(rank, n) for rank in needs.ranks))
                points = sorted((points if k + 1 in told_apart else cells)[k] for k in range(n))
            yield from differs(name, cells, points)
    if needs.steps and summary.steps is not None:
        step = Fraction(2) ** (math.floor(math.log2(universe.magnitude)) - 30)
        yield from differs("steps", int(summary.steps[group]), sum(round(x / step) for x in exact))
    if needs.total and summary.total is not None:
        yield from far("total", summary.total[group], total, (n * size + abs(total)) / 2**50)
    wanted = 2 if needs.seconds else 1
    if (needs.ends or needs.seconds) and summary.lowest is not None and summary.highest is not None:
        yield from differs("lowest", summary.lowest[:wanted, group].tolist(), [*records, hi, hi][:wanted])
        yield from differs("highest", summary.highest[:wanted, group].tolist(), [*records[::-1], lo, lo][:wanted])
    if needs.squares and summary.squares is not None and summary.nearest is not None:
        squares = sum(((x - mean) ** 2 for x in exact), Fraction(0))
        slack = n * (size * size / 2**50 + Fraction(universe.width) ** 2 / 2**50) + squares / 10**9
        yield from far("squares", summary.squares[group], squares, slack)
        nearest = min((abs(x - mean) for x in exact), default=Fraction(0))
        yield from far("nearest", summary.nearest[group], nearest, size / 2**49 + nearest / 10**9)
    yield from differs("windows", needs.windows - set(summary.windows), frozenset())
    for q in needs.windows & set(summary.windows):
        window = summary.windows[q]
        start = math.floor(n * Fraction(q)) - (q > 0.5)
        # The median reads two of an even number, three of an odd one; the others may be any value.
        ranks = range(start, start + (4 if q != 0.5 else 3 if n % 2 else 2))
        around = [lo if k < 1 else hi if k > n else records[k - 1] for k in ranks]
        yield from differs(f"window at {q:g}", np.asarray(window)[: len(ranks), group].tolist(), around)
