"""Aggregates of both passes over the records of a plan, in the SQL of an engine: a name and an expression each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pdrisk._core.lattice import LARGEST_STEPS, PLACE_BITS
from pdrisk._core.once import once
from pdrisk._core.products import Degrees, divided
from pdrisk._core.summary import Ranks
from pdrisk.engines.sql.dialects.dialect import BY_RECORD, LARGEST, Dialect
from pdrisk.engines.sql.summary.bands import within_band
from pdrisk.engines.sql.summary.binned import beyond_edges
from pdrisk.engines.sql.summary.person_rows import tells_offered
from pdrisk.engines.sql.summary.placing import Placing, Sums
from pdrisk.engines.sql.summary.summary_plan import (
    Binned,
    Counted,
    Different,
    DifferentNumbers,
    Summarised,
    SummaryPlan,
    pivots,
    sides,
    sides_of,
)

FEW = 25  # quantiles in a statement
LARGEST_SQUARE = 2.0**52  # of a distance: rounded to a whole number, it is off by less than any float
LEAST = 2.0**-40  # of the shortest step


@dataclass(frozen=True)
class Aggregates:
    """Aggregates of the columns that `Placing` makes."""

    plan: SummaryPlan
    placing: Placing
    banded: bool  # whether order statistics are looked for in bands
    # what `centred` says of parts, by their numbers, for a second pass
    centre_of: Mapping[int, tuple[float, float]] | None = None

    @property
    def dialect(self) -> Dialect:
        """Dialect of the engine."""
        return self.placing.dialect

    @once
    def measured(self) -> list[tuple[int, Summarised]]:
        """The parts that measure records, and their numbers."""
        return [(i, part) for i, part in enumerate(self.plan.parts) if isinstance(part, Summarised)]

    @once
    def many(self) -> bool:
        """Whether there are so many quantiles that FILTER is slow: planning n of them takes a time that is n**2."""
        return self.dialect.skips and sum(len(part.needs.windows) for _, part in self.measured) > FEW

    def told_apart(self, part: Summarised) -> tuple[Ranks, ...]:
        """Ranks of a part whose records are listed one by one."""
        return part.ranks if self.dialect.by_pivot or self.dialect.by_rank else ()

    def is_ranked_alone(self, part: Summarised) -> bool:
        """Whether records by their ranks in groups are all that is read of a part: they tell how many there are."""
        needs = part.needs
        summed = needs.total or needs.squares or needs.steps or needs.on_places or needs.whole or needs.size_sums
        ranked = needs.windows or needs.seconds or self.told_apart(part)
        return bool(self.dialect.by_rank and self.plan.groups and ranked and not (summed or self.plan.has_facts))

    def first(self) -> Iterator[tuple[str, str]]:
        """Aggregates of the first pass: numbers, sums, ends and pivots."""
        call = self.dialect.call
        offered = tells_offered(self.plan, self.dialect)
        for i, part in enumerate(self.plan.parts):
            if offered and not isinstance(part, Binned):
                yield f"offered_{i}", self.dialect.counted(f"b{i}")
            if isinstance(part, Different):
                yield f"n_{i}", call("COUNT", f"u{i}")
                if isinstance(part, DifferentNumbers):
                    lo, hi = (self.dialect.number(end) for end in (part.universe.lo, part.universe.hi))
                    yield f"clamped_{i}", self.dialect.counted(f"NOT (u{i} BETWEEN {lo} AND {hi})")
            elif isinstance(part, Counted):
                yield f"n_{i}", call("COUNT", "*") if part.condition is None else self.dialect.counted(f"c{i}")
            elif not self.is_ranked_alone(part):
                yield from self._numbers(i, part)
                yield from self._sums(i, part)
                yield from self._ends(i, part)
                yield from self._order(i, part)

    def second(self) -> Iterator[tuple[str, str]]:
        """Aggregates of the second pass, which need the mean or a pivot of the first."""
        call = self.dialect.call
        for i, part in self.measured:
            if (root := self.root(i, part)) is not None:
                square = self.dialect.nearest_whole(self.dialect.infix(root, "*", root))
                yield f"squares_{i}", self.dialect.double(self.dialect.whole_sum(square))
                yield f"nearest_{i}", call("MIN", root if self.plan.contributions is None else call("ABS", root))
            for k, q in enumerate([] if self.banded else self._pivots(part)):
                p, pivot = f"p{i}", f"pivot_{i}_{k}"
                yield f"less_{i}_{k}", self._counted(f"{p} < {pivot}")
                yield f"equal_{i}_{k}", self._counted(f"{p} = {pivot}")
                for side, name, operator, size in zip(
                    ("below", "above"), ("MAX", "MIN"), ("<", ">"), sides(part, q), strict=True
                ):
                    several = (str(size),) if size > 1 else ()
                    yield f"{side}_{i}_{k}", self._kept(name, p, f"{p} {operator} {pivot}", *several)

    def root(self, i: int, part: Summarised) -> str | None:
        """The distance of a record from the mean, in steps, where that is needed: see `distances`."""
        return next((name if self.dialect.once else sql for name, sql in self.distances(i, part)), None)

    def centred(self, select: str) -> str:
        """SELECT of the first pass with the mean of each part, and steps to one unit of the distances from it.

        The mean lies between the records, whatever rounding or a NaN made of it. So a square is at most
        `LARGEST_SQUARE`, and the largest one nearly that, unless all records are about equal.
        """
        infix, number, clamped = self.dialect.infix, self.dialect.number, self.dialect.clamped
        ends, centres, root = [], [], math.sqrt(LARGEST_SQUARE)
        for i, part in self.measured:
            if part.needs.squares:
                lo, hi = number(part.universe.lo), number(part.universe.hi)
                highest = self.dialect.negative(f"lowest_of_negatives_{i}")
                ends.append(
                    f"{clamped(f'lowest_{i}', lo, hi)} AS smallest_{i}, {clamped(highest, lo, hi)} AS largest_{i}"
                )
                mean = infix(infix(f"total_{i}", "*", number(1 / part.grid)), "/", f"n_{i}")
                width, finest = infix(f"largest_{i}", "-", f"smallest_{i}"), part.finest_distance
                steps, is_wide = infix(number(root), "/", width), f"{width} > {number(root * finest)}"
                centres.append(f"{clamped(mean, f'smallest_{i}', f'largest_{i}')} AS mean_{i}")
                centres.append(f"CASE WHEN {is_wide} THEN {steps} ELSE {number(1 / finest)} END AS per_unit_{i}")
        if not centres:
            return select
        select = f"SELECT *, {', '.join(ends)} FROM ({select}) AS found"
        return f"SELECT *, {', '.join(centres)} FROM ({select}) AS bounded"

    def distances(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        """The distance of a record from the mean, in steps; so little too long that no square of it vanishes.

        It is negative below the mean.
        """
        call, infix = self.dialect.call, self.dialect.infix
        if part.needs.squares:
            mean, per_unit = f"mean_{i}", f"per_unit_{i}"
            if self.centre_of is not None:
                mean, per_unit = map(self.dialect.number, self.centre_of[i])
            elif self.dialect.once and not self.plan.groups:
                mean, per_unit = (f"(SELECT {name} FROM first_pass)" for name in (mean, per_unit))
            ends = self.dialect.number(part.universe.lo), self.dialect.number(part.universe.hi)
            value = self.dialect.clamped(f"x{i}", *ends)
            off = infix(call("ABS", infix(value, "-", mean)), "+", self.dialect.number(part.finest_distance * LEAST))
            root = infix(off, "*", per_unit)
            if self.plan.contributions is not None:
                root = f"CASE WHEN {value} < {mean} THEN {self.dialect.negative(root)} ELSE {root} END"
            yield f"r{i}", root

    def _numbers(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        """How many records there are, and how many lay outside."""
        needs = part.needs
        is_summed = self.placing.is_summed(part)
        on_grid = ((needs.total or needs.squares, "s"), (needs.steps, "t"), (needs.on_places, "k"), (needs.whole, "w"))
        counted = "x" if is_summed else next((name for wanted, name in on_grid if wanted), "p")
        n = self.dialect.call("COUNT", f"{counted}{i}")
        yield f"n_{i}", n
        if self.plan.has_facts:
            number = self.dialect.number
            within = " AND ".join(
                f"{value} BETWEEN {number(universe.lo)} AND {number(universe.hi)}"
                for _, value, universe in part.columns(f"x{i}", f"y{i}")
            )
            yield f"clamped_{i}", self.dialect.infix(n, "-", self.dialect.counted(within))
        if isinstance(part, Binned):
            yield from beyond_edges(self.dialect, i, part)

    def _sums(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        needs, dialect = part.needs, self.dialect
        if needs.total or needs.squares:
            yield f"total_{i}", dialect.double(dialect.whole_sum(f"s{i}"))
        if needs.steps:
            yield f"steps_{i}", held(dialect, f"t{i}")
        if self.placing.is_summed(part):
            term = f"h{i}"
            if self.placing.sums is Sums.WHOLES:
                term = self.placing.whole_term(term)
                yield f"finite_{i}", dialect.call("COUNT", term)
                yield f"terms_{i}", held(dialect, term, LARGEST)
            else:
                yield f"terms_{i}", dialect.call("SUM", term)
        elif needs.places:
            yield f"places_{i}", held(dialect, f"k{i}", LARGEST)
        if needs.whole:
            yield f"whole_{i}", held(dialect, f"w{i}")
        if needs.place_squares:
            square = dialect.infix(f"k{i}", "*", f"k{i}")  # at most 2**60: no overflow
            yield f"place_squares_{i}", held(dialect, dialect.infix(square, ">>", f"{PLACE_BITS}"), LARGEST)
        for degrees in sorted(needs.products):
            for at, product in enumerate(divided(f"k{i}", f"l{i}", degrees, self.placing.arithmetic())):
                yield product_name(degrees, at, i), held(dialect, product, LARGEST)

    def _ends(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        """The smallest and the largest record of each column.

        NaN counts as the largest number or as none; of the negatives the smallest is the largest either way.
        """
        if not (part.needs.ends or part.needs.squares or part.needs.seconds or self.told_apart(part)):
            return
        for of, value, _ in part.columns(f"x{i}", f"y{i}"):
            negative = self.dialect.negative
            if self._is_whole_column(part):
                low, high = self._end(part, "ASC"), negative(self._end(part, "DESC"))
            else:
                low, high = map(self.dialect.smallest, (value, negative(value)))
            yield f"{of}lowest_{i}", low
            yield f"{of}lowest_of_negatives_{i}", high

    def _is_whole_column(self, part: Summarised) -> bool:
        plan = self.plan
        everything = not (plan.groups or plan.inner or plan.where or plan.people)
        skips = self.dialect.skips and BY_RECORD not in plan.source  # where nothing is skipped, it is one more scan
        return skips and everything and part.column is not None

    def _end(self, part: Summarised, direction: str, before: int = 0) -> str:
        """The first record of a stored column in an order, or the one that some are before."""
        return f"({self._in_order(part, direction)} LIMIT 1 OFFSET {before})"

    def _in_order(self, part: Summarised, direction: str) -> str:
        """SELECT of the records of a stored column in order; a LIMIT then skips most blocks."""
        real = f"{part.value} <= {self.dialect.infinity}"
        return f"SELECT {part.value} AS p FROM {self.plan.source} WHERE {real} ORDER BY {part.column} {direction}"

    def _order(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        """Second ends, the records of ranks at an end, and pivots."""
        call = self.dialect.call
        if part.needs.seconds and self.dialect.by_pivot:
            for name, function, direction in (("lowest", "MIN", "ASC"), ("highest", "MAX", "DESC")):
                of_group = call("ARRAY_EXTRACT", call(function, f"p{i}", "2"), "2")
                yield f"second_{name}_{i}", self._end(part, direction, 1) if self._is_whole_column(part) else of_group
        for j, ranks in enumerate(self.told_apart(part) if self.dialect.by_pivot else ()):
            below, above = sides_of(ranks)
            if not below or not above:
                yield f"end_{i}_{j}", self._from_end(i, part, below, above)
        for k, q in enumerate(self._pivots(part)):
            if self.banded:
                yield from within_band(self.dialect, i, k)
            else:
                yield f"pivot_{i}_{k}", call("QUANTILE_DISC", f"p{i}", f"{q!r}")

    def _from_end(self, i: int, part: Summarised, below: int, above: int) -> str:
        """The list of so many records below the largest, or above the smallest, that one first."""
        if not self._is_whole_column(part):
            return self.dialect.call("MAX" if below else "MIN", f"p{i}", f"{below or above}")
        listed = self.dialect.listed("p", self.dialect.negative("p") if below else "p")
        rows = f"{self._in_order(part, 'DESC' if below else 'ASC')} LIMIT {below or above}"
        return f"(SELECT {listed} FROM ({rows}) AS at_end)"

    def _pivots(self, part: Summarised) -> list[float]:
        return pivots(part) if self.dialect.by_pivot else []

    def _counted(self, condition: str) -> str:
        return self.dialect.counted(condition) if self.many else Dialect.counted(self.dialect, condition)

    def _kept(self, name: str, value: str, condition: str, *more: str) -> str:
        """Aggregate of the records for which a condition holds."""
        if self.many:
            return self.dialect.call(name, f"CASE WHEN {condition} THEN {value} END", *more)
        return f"{self.dialect.call(name, value, *more)} FILTER (WHERE {condition})"


def held(dialect: Dialect, column: str, end: int = LARGEST_STEPS) -> str:
    """Sum of whole numbers, moved to the ends of the range that noise is added to: nothing fails on large data.

    Sums of places go as far as 64 bits do, for mechanisms subtract one from another first.
    """
    sum_, most, least = dialect.whole_sum(column), f"{end}", f"CAST('-{end}' AS BIGINT)"
    return f"CAST(CASE WHEN {sum_} > {most} THEN {most} WHEN {sum_} < {least} THEN {least} ELSE {sum_} END AS BIGINT)"


def product_name(degrees: Degrees, at: int, part: int) -> str:
    """Name of the column with one of the sums of products of two columns."""
    return f"product_{degrees[0]}{degrees[1]}_{at}_{part}"
