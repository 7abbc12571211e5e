"""The `Summary` as SQL: one statement in few, portable words.

One statement reads the data, so that all of it sees the same records. Groups are read in a first pass; what needs to
know the mean or a pivot is read in a second, joined to the first. Sums are sums of integers on public grids: the same
records give the same answer in whatever order, and however many threads, add them.

    keys ──┐
    rows ──┴─> first (n, sums, ends, pivots) ──> second (squares, nearest, what is around pivots) ──> a line a group
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pdrisk._core.lattice import LARGEST_STEPS, PLACE_BITS, PLACES, Points, places_per_unit
from pdrisk._core.products import Degrees, WholeArithmetic, divided
from pdrisk._core.summary import Needs, Ranks
from pdrisk._core.universe import Rectangle, Universe
from pdrisk.engines.sql.bands import bands, within_band
from pdrisk.engines.sql.binned import beyond_edges, in_bins
from pdrisk.engines.sql.dialect import Dialect
from pdrisk.engines.sql.different import different_values
from pdrisk.engines.sql.looks import Look, counted_in
from pdrisk.engines.sql.people import records_of_people, with_people
from pdrisk.engines.sql.plan import (
    Binned,
    Counted,
    Different,
    DifferentNumbers,
    Measured,
    MeasuredPair,
    SummaryPlan,
    pivots,
    sides,
    sides_of,
)
from pdrisk.engines.sql.sizes import size_place, sums_by_size

__all__ = [
    "MOST_PLACES",
    "RANKED",
    "is_read_whole",
    "looked_at",
    "packed_counts",
    "product_name",
    "records_read",
    "statement",
]


def records_read(plan: SummaryPlan, dialect: Dialect) -> str:
    """The SELECT of the records that a plan reads: groups as g0, ..., values as x0, y0, u0, c0, ... by their part."""
    return _Statement(plan, dialect).records()


def looked_at(plan: SummaryPlan, dialect: Dialect, i: int, looks: Sequence[Look]) -> str:
    """The SELECT that counts the records of part i by cells, of a plan without groups: see `Looked`."""
    return _Statement(plan, dialect).looked_at(i, looks)


def statement(plan: SummaryPlan, dialect: Dialect, banded: bool = False, near: bool = True) -> str:
    """The SELECT that gives one line for each group, in the order of the keys.

    With ``banded``, order statistics are looked for in a band that a sample tells, and may not be found there. With
    ``near``, records are placed by arithmetic that holds within `MOST_PLACES` of the lower bound.

    Columns: ``g0``, ``g1``, ... where there are groups; for part i, ``n_i``, ``clamped_i``, ``total_i``, ``steps_i``,
    ``places_i``, ``place_squares_i``, ``whole_i``, ``lowest_i``, ``lowest_of_negatives_i``, ``second_lowest_i``,
    ``second_highest_i``, ``squares_i``, ``nearest_i``, ``cells_i``, ``whole_cells_i``, and the lists ``bin_i``,
    ``size_i``, ``high_i`` and ``low_i`` as its needs say; of bins the lists ``bins_i`` and ``held_i``, ``under_i`` and
    ``over_i``; of two columns ``other_lowest_i``,
    ``other_lowest_of_negatives_i`` and the products named by `product_name`.
    For its k-th band ``lower_i_k`` and ``upper_i_k``, the numbers of records ``less_i_k``, ``at_lower_i_k``,
    ``at_upper_i_k``, and the list ``inside_i_k`` of those between.
    For its k-th pivot ``pivot_i_k``, ``less_i_k``, ``equal_i_k``, and the nearest records ``below_i_k`` and
    ``above_i_k``, which are lists if `sides` is more than 1; for its j-th ranks ``end_i_j``, if they are at an end.
    Of different values ``distinct_i`` and ``singles_i``; of numbers also ``highest_i``, and both ends are those of
    values that one record alone has.
    By row number within groups, for its k-th quantile: ``base_i_k``, and the records from that rank on,
    ``ranked_0_i_k``, ...
    """
    return _Statement(plan, dialect, banded, near).text()


MEAN, PLACED_MEAN = Needs(total=True, ends=True), Needs(places=True, ends=True)
MOST_PLACES = 2.0**50  # from the lower bound, of records that are placed by arithmetic
FEW = 25  # quantiles in a statement
RANKED = range(-2, 5)  # around floor(n q), which rounding may move by one


def is_read_whole(plan: SummaryPlan, part: Measured, dialect: Dialect) -> bool:
    """Whether a part is the mean of a stored column, of all records, which is summed without placing each."""
    everything = not (plan.groups or plan.inner or plan.where or plan.people)
    return dialect.skips and everything and part.column is not None and part.needs in (MEAN, PLACED_MEAN)


class _Statement:
    def __init__(self, plan: SummaryPlan, dialect: Dialect, banded: bool = False, near: bool = True) -> None:
        self.plan = plan = with_people(plan)
        self.banded = banded
        self.near = near and dialect.skips
        self.dialect = dialect
        self.groups = [f"g{i}" for i in range(len(plan.groups))]
        self.measured = [(i, part) for i, part in enumerate(plan.parts) if isinstance(part, Measured)]
        # FILTER is fast, but planning n of them takes a time that grows as n**2.
        self.many = dialect.skips and sum(len(part.needs.windows) for _, part in self.measured) > FEW
        self.whole_columns = {i for i, part in self.measured if is_read_whole(plan, part, dialect)}

    def text(self) -> str:
        first = list(self._first())
        passes = {
            f"column_{i}": f"({self._whole_column(i, part)})" for i, part in self.measured if i in self.whole_columns
        }
        rows = self._rows()
        if self.banded:
            passes["bands"] = f"{self.dialect.materialized}({bands(self.plan, self.dialect, self._rows())})"
            rows = f"{rows} CROSS JOIN bands"
        if first:
            passes["first_pass"] = f"{self.dialect.materialized}({self._grouped(first, rows, '')})"
        if second := list(self._second()):
            passes["second_pass"] = f"({self._grouped(second, self._rows_and_first_pass(), 'rows_read.')})"
        passes |= dict(self._by_row_number())
        passes |= dict(self._cells())
        passes |= dict(self._size_sums())
        for i, part in self.measured:
            if isinstance(part, Binned):
                passes[f"binned_{i}"] = in_bins(self.dialect, i, part, self._rows())
        passes |= dict(self._different())
        ctes = self._with_people(passes)
        if len(passes) == 1 and not self.groups and self.plan.people is None:
            return next(iter(passes.values())).removeprefix(self.dialect.materialized)[1:-1]
        if not self.groups:
            return f"{ctes}SELECT * FROM {' CROSS JOIN '.join(passes)}"
        joins = " ".join(f"LEFT JOIN {name} ON {self._same('listed', name)}" for name in passes)
        keys = ["code"] if self.plan.keys is not None else self.groups
        order = ", ".join(f"listed.{name} ASC NULLS LAST" for name in keys)  # whatever the settings say
        ctes = self._with_people(passes | {"listed": f"({self._keys()})"})
        return f"{ctes}SELECT * FROM listed {joins} ORDER BY {order}"

    def _with_people(self, passes: dict[str, str]) -> str:
        """The records of people, if it is of people, and some passes over them, before a SELECT."""
        made = {}
        if self.plan.people is not None:
            records = records_of_people(self.plan, self.dialect, self._values_read())
            made = {"people_records": f"{self.dialect.materialized}({records})"}
        ctes = ", ".join(f"{name} AS {body}" for name, body in (made | passes).items())
        return f"WITH {ctes} " if ctes else ""

    def _grouped(self, columns: list[tuple[str, str]], rows: str, prefix: str) -> str:
        keys = [f"{prefix}{name}" for name in self.groups]
        chosen = [*(f"{key} AS {name}" for key, name in zip(keys, self.groups, strict=True))]
        chosen += [f"{sql} AS {name}" for name, sql in columns]
        return f"SELECT {', '.join(chosen)} FROM {rows}" + (f" GROUP BY {', '.join(keys)}" if keys else "")

    def _keys(self) -> str:
        if self.plan.keys is not None:
            return f"SELECT * FROM {self.plan.keys}"
        keys = ", ".join(f"{sql} AS {name}" for sql, name in zip(self.plan.groups, self.groups, strict=True))
        present = " AND ".join(f"{name} IS NOT NULL" for name in self.groups)
        rows = f"(SELECT {keys} FROM {self.plan.source}{_where(self.plan.inner)}) AS all_rows"
        return f"SELECT DISTINCT {', '.join(self.groups)} FROM {rows} WHERE {present}"

    def _same(self, left: str, right: str) -> str:
        pairs = [(f"{left}.{g}", f"{right}.{g}") for g in self.groups]
        return self.dialect.same_keys(pairs, missing=self.plan.lists_missing)

    def _columns(self) -> list[str]:
        """The values of groups and parts."""
        plan = self.plan
        read = [f"{sql} AS {name}" for sql, name in zip(plan.groups, self.groups, strict=True)]
        for i, part in enumerate(plan.parts):
            if isinstance(part, MeasuredPair):
                read.append(f"CASE WHEN {part.other} <= {self.dialect.infinity} THEN {part.value} END AS x{i}")
                read.append(f"CASE WHEN {part.value} <= {self.dialect.infinity} THEN {part.other} END AS y{i}")
            elif isinstance(part, Measured):
                read.append(f"{part.value} AS x{i}")
            elif isinstance(part, DifferentNumbers):
                read.append(f"CASE WHEN {part.value} <= {self.dialect.infinity} THEN {part.value} END AS u{i}")
            elif isinstance(part, Different):
                read.append(f"{part.value} AS u{i}")
            elif part.condition is not None:
                read.append(f"{part.condition} AS c{i}")
        return read

    def _rows(self) -> str:
        """The records read, with their values on the grids."""
        derived = [f"{sql} AS {name}" for i, part in self.measured for name, sql in self._derived(i, part)]
        return f"(SELECT {', '.join(['*', *derived, *self.dialect.once])} FROM {self._records()}) AS rows_read"

    def _records(self) -> str:
        """The records as they stand in FROM."""
        return "people_records" if self.plan.people is not None else self._values_read()

    def _values_read(self) -> str:
        """All rows, with the values of groups and parts, and of people's ids."""
        plan = self.plan
        read = self._columns()
        if plan.people is not None:
            read += [f"{sql} AS p{at}" for at, sql in enumerate(plan.people.keys)]
        name = "values_read" if plan.people is None else "people_read"
        where = _where((*plan.inner, *plan.where))
        return f"(SELECT {', '.join(read or ['1 AS one'])} FROM {plan.source}{where}) AS {name}"

    def _derived(self, i: int, part: Measured) -> Iterator[tuple[str, str]]:
        """The value without NaN, clamped, and on the grids: those that the needs ask for."""
        needs, x = part.needs, f"x{i}"
        lo, hi = part.universe.lo, part.universe.hi
        ends = self.dialect.number(lo), self.dialect.number(hi)
        placed = needs.places or needs.place_squares or bool(needs.products)
        on_grid = needs.total or needs.squares or needs.steps or placed or needs.whole
        if needs.windows or needs.seconds or self._told_apart(part) or not on_grid:
            yield f"p{i}", f"CASE WHEN {x} <= {self.dialect.infinity} THEN {x} END"
        if needs.squares:
            yield f"v{i}", self.dialect.clamped(x, *ends)
        for wanted, name, grid in (
            (needs.total or needs.squares, "s", part.grid),
            (needs.steps, "t", part.coarse_grid),
        ):
            if wanted:
                steps = self.dialect.nearest_whole(self.dialect.scaled(x, grid))
                yield f"{name}{i}", self.dialect.inside(x, steps, *ends, _steps(lo, grid), _steps(hi, grid))
        if placed:
            yield f"k{i}", self._whole_place(x, part.universe, near=self.near and needs.ends)
        if isinstance(part.universe, Rectangle):
            yield f"l{i}", self._whole_place(f"y{i}", part.universe.other, near=self.near and needs.ends)
        if needs.size_sums:
            yield f"z{i}", size_place(self.dialect, x, part.universe)
        if needs.whole:
            rounded = f"CAST({self._rounded(x)} AS BIGINT)"
            yield f"w{i}", self.dialect.inside(x, rounded, *ends, *_places(math.floor(lo + 0.5), math.floor(hi + 0.5)))

        for name, points in {} if self._told_apart(part) else part.points.items():
            scaled = self.dialect.scaled(x, points.factor, divides=points.divides)
            index = self.dialect.infix(self._rounded(scaled), "-", self.dialect.number(float(points.first)))
            yield f"{name}{i}", self.dialect.inside(x, f"CAST({index} AS BIGINT)", *ends, *_places(0, points.size - 1))

    def _whole_place(self, x: str, universe: Universe, *, near: bool) -> str:
        """The place of a record that may lie outside, as a BIGINT; NULL where it is missing.

        Of records that are near, y clamped to [0, S] is ``(|y| - |y - S| + S) / 2``: all whole numbers below 2**53, so
        exact. A CASE for each record would cost more than all the rest.
        """
        if near:
            call, infix, y, s = (
                self.dialect.call,
                self.dialect.infix,
                self._place(x, universe),
                self.dialect.number(float(PLACES)),
            )
            twice = infix(infix(call("ABS", y), "-", call("ABS", infix(y, "-", s))), "+", s)
            return f"TRY_CAST({infix(twice, '*', self.dialect.number(0.5))} AS BIGINT)"
        place, ends = (
            f"CAST({self._place(x, universe)} AS BIGINT)",
            (self.dialect.number(universe.lo), self.dialect.number(universe.hi)),
        )
        return self.dialect.inside(x, place, *ends, *_places(0, PLACES))

    def _place(self, x: str, universe: Universe) -> str:
        """The place of a record on the grid of `places_per_unit`, as a whole DOUBLE."""
        above = self.dialect.infix(x, "-", self.dialect.number(universe.lo))
        return self._rounded(self.dialect.scaled(above, places_per_unit(universe.width)))

    def _rounded(self, x: str) -> str:
        """The nearest whole number, halves up, on every engine."""
        return self.dialect.call("FLOOR", self.dialect.infix(x, "+", self.dialect.number(0.5)))

    def _first(self) -> Iterator[tuple[str, str]]:
        call, infix = self.dialect.call, self.dialect.infix
        for i, part in enumerate(self.plan.parts):
            if i in self.whole_columns:
                continue
            if isinstance(part, Different):
                yield f"n_{i}", call("COUNT", f"u{i}")
                if isinstance(part, DifferentNumbers):
                    lo, hi = (self.dialect.number(end) for end in (part.universe.lo, part.universe.hi))
                    yield f"clamped_{i}", self.dialect.counted(f"NOT (u{i} BETWEEN {lo} AND {hi})")
                continue
            if isinstance(part, Counted):
                yield f"n_{i}", call("COUNT", "*") if part.condition is None else self.dialect.counted(f"c{i}")
                continue
            needs, x = part.needs, f"x{i}"
            placed = needs.places or needs.place_squares or bool(needs.products)
            on_grid = ((needs.total or needs.squares, "s"), (needs.steps, "t"), (placed, "k"), (needs.whole, "w"))
            found = call("COUNT", next((name for wanted, name in on_grid if wanted), "p") + f"{i}")
            yield f"n_{i}", found
            columns = part.columns(x, f"y{i}")
            within = " AND ".join(
                f"{value} BETWEEN {self.dialect.number(own.lo)} AND {self.dialect.number(own.hi)}"
                for _, value, own in columns
            )
            yield f"clamped_{i}", infix(found, "-", self.dialect.counted(within))
            if isinstance(part, Binned):
                yield from beyond_edges(self.dialect, i, part)
            if needs.total or needs.squares:
                yield f"total_{i}", self.dialect.double(self.dialect.whole_sum(f"s{i}"))
            if needs.steps:
                yield f"steps_{i}", self._held(f"t{i}")
            if needs.places:
                yield f"places_{i}", self._held(f"k{i}", 2**63 - 1)
            if needs.whole:
                yield f"whole_{i}", self._held(f"w{i}")
            if needs.place_squares:
                square = self.dialect.infix(f"k{i}", "*", f"k{i}")  # at most 2**60: no overflow
                yield f"place_squares_{i}", self._held(self.dialect.infix(square, ">>", f"{PLACE_BITS}"), 2**63 - 1)
            told_apart = self._told_apart(part)
            if needs.ends or needs.seconds or told_apart:
                # NaN counts as the largest number or as none; of the negatives the smallest is the largest either way.
                for of, value, _ in columns:
                    yield f"{of}lowest_{i}", call("MIN", value)
                    yield f"{of}lowest_of_negatives_{i}", call("MIN", self.dialect.negative(value))
            for degrees in sorted(needs.products):
                for at, product in enumerate(divided(f"k{i}", f"l{i}", degrees, self._arithmetic())):
                    yield product_name(degrees, at, i), self._held(product, 2**63 - 1)
            if needs.seconds and self.dialect.by_pivot:
                yield f"second_lowest_{i}", call("ARRAY_EXTRACT", call("MIN", f"p{i}", "2"), "2")
                yield f"second_highest_{i}", call("ARRAY_EXTRACT", call("MAX", f"p{i}", "2"), "2")
            for j, ranks in enumerate(told_apart):
                below, above = sides_of(ranks)
                if not below or not above:
                    yield f"end_{i}_{j}", call("MAX" if below else "MIN", f"p{i}", f"{below or above}")
            for k, q in enumerate(self._pivots(part)):
                if self.banded:
                    yield from within_band(self.dialect, i, k)
                else:
                    yield f"pivot_{i}_{k}", call("QUANTILE_DISC", f"p{i}", f"{q!r}")

    def _arithmetic(self) -> WholeArithmetic[str]:
        """That of places: no product exceeds 2**60."""
        infix = self.dialect.infix
        (whole,) = _places(PLACES)
        return WholeArithmetic(
            whole, lambda a, b: infix(a, "-", b), lambda a, b: infix(infix(a, "*", b), ">>", f"{PLACE_BITS}")
        )

    def _told_apart(self, part: Measured) -> tuple[Ranks, ...]:
        return part.ranks if self.dialect.by_pivot else ()

    def _pivots(self, part: Measured) -> list[float]:
        return pivots(part) if self.dialect.by_pivot else []

    def _held(self, column: str, end: int = LARGEST_STEPS) -> str:
        """The sum of whole numbers, moved to the ends of what noise is added to: nothing fails on large data.

        Sums of places are told as far as 64 bits go, for mechanisms subtract one from another first.
        """
        sum_, most, least = self.dialect.whole_sum(column), f"{end}", f"CAST('-{end}' AS BIGINT)"
        return (
            f"CAST(CASE WHEN {sum_} > {most} THEN {most} WHEN {sum_} < {least} THEN {least} ELSE {sum_} END AS BIGINT)"
        )

    def _whole_column(self, i: int, part: Measured) -> str:
        """What a mean needs of a whole column, without clamping each record, which costs more than all the rest.

        All records are summed as they are; those outside the bounds, which are few or none, are summed again, taken
        off, and put back at the ends. A record too large for a step is NULL in both sums.
        """
        call, infix, source = self.dialect.call, self.dialect.infix, self.plan.source
        lo, hi = self.dialect.number(part.universe.lo), self.dialect.number(part.universe.hi)
        placed = part.needs == PLACED_MEAN
        step = (
            self._place(part.value, part.universe) if placed else infix(part.value, "*", self.dialect.number(part.grid))
        )
        at_ends = (
            _places(0, PLACES) if placed else [_steps(end, part.grid) for end in (part.universe.lo, part.universe.hi)]
        )
        steps = call("SUM", f"TRY_CAST({step} AS BIGINT)")

        def outside(suffix: str, condition: str) -> str:
            counts = f"{call('COUNT', '*')} AS n_{suffix}"
            kept = f"{call('COUNT', '*')} FILTER (WHERE {part.value} <= {self.dialect.infinity}) AS real_{suffix}"
            return f"(SELECT {counts}, {kept}, {steps} AS steps_{suffix} FROM {source} WHERE {condition}) AS {suffix}"

        def end(direction: str) -> str:
            real = f"{part.value} <= {self.dialect.infinity}"
            return f"(SELECT {part.value} FROM {source} WHERE {real} ORDER BY {part.column} {direction} LIMIT 1)"

        total = "steps_all"
        for suffix, at_end in zip(("below", "above"), at_ends, strict=True):
            moved = infix(f"CAST(real_{suffix} AS HUGEINT)", "*", at_end)
            total = infix(infix(total, "-", f"COALESCE(steps_{suffix}, 0)"), "+", moved)
        n = infix("n_all", "-", infix("n_above", "-", "real_above"))  # NaN is above everything
        present = call("COUNT", part.value)
        counted = f"(SELECT {present} AS n_all, COALESCE({steps}, 0) AS steps_all FROM {source}) AS everything"
        sides_ = f"{outside('below', f'{part.value} < {lo}')} CROSS JOIN {outside('above', f'{part.value} > {hi}')}"
        sum_ = f"CAST({total} AS BIGINT) AS places" if placed else f"{self.dialect.double(total)} AS total"
        return (
            f"SELECT {n} AS n_{i}, {infix('real_below', '+', 'real_above')} AS clamped_{i}, {sum_}_{i}, "
            f"{end('ASC')} AS lowest_{i}, {self.dialect.negative(end('DESC'))} AS lowest_of_negatives_{i} "
            f"FROM {counted} CROSS JOIN {sides_}"
        )

    def _rows_and_first_pass(self) -> str:
        """The records read, beside what the first pass found about their group."""
        joined = f"{self._rows()} JOIN first_pass ON {self._same('rows_read', 'first_pass')}"
        if not self.dialect.once:
            return joined
        if not self.groups:  # a join would keep it from several threads
            return self._rows()
        distances = [f"{sql} AS {name}" for i, part in self.measured for name, sql in self._distances(i, part)]
        return f"(SELECT {', '.join(['rows_read.*', *distances, *self.dialect.once])} FROM {joined}) AS rows_read"

    def _distances(self, i: int, part: Measured) -> Iterator[tuple[str, str]]:
        """The distance of a record from the mean, and its square's root on the grid of squares."""
        infix = self.dialect.infix
        if part.needs.squares:
            mean = infix(infix(f"total_{i}", "*", self.dialect.number(1 / part.grid)), "/", f"n_{i}")
            if self.dialect.once and not self.groups:
                mean = f"(SELECT {mean} FROM first_pass)"
            off = infix(f"v{i}", "-", mean)
            yield f"d{i}", off
            yield f"r{i}", self.dialect.scaled(off, math.sqrt(part.square_grid))

    def _second(self) -> Iterator[tuple[str, str]]:
        call = self.dialect.call
        for i, part in self.measured:
            if part.needs.squares:
                is_made = self.groups and self.dialect.once
                off, root = (name if is_made else sql for name, sql in self._distances(i, part))
                yield f"squares_{i}", self.dialect.square_sum(root)
                yield f"nearest_{i}", call("MIN", call("ABS", off))
            for k, q in enumerate([] if self.banded else self._pivots(part)):
                p, pivot = f"p{i}", f"pivot_{i}_{k}"
                yield f"less_{i}_{k}", self._counted(f"{p} < {pivot}")
                yield f"equal_{i}_{k}", self._counted(f"{p} = {pivot}")
                for side, name, operator, size in zip(
                    ("below", "above"), ("MAX", "MIN"), ("<", ">"), sides(part, q), strict=True
                ):
                    several = (str(size),) if size > 1 else ()
                    yield f"{side}_{i}_{k}", self._kept(name, p, f"{p} {operator} {pivot}", *several)

    def _counted(self, condition: str) -> str:
        return self.dialect.counted(condition) if self.many else Dialect.counted(self.dialect, condition)

    def _kept(self, name: str, value: str, condition: str, *more: str) -> str:
        """An aggregate of the records for which a condition holds."""
        if self.many:
            return self.dialect.call(name, f"CASE WHEN {condition} THEN {value} END", *more)
        return f"{self.dialect.call(name, value, *more)} FILTER (WHERE {condition})"

    def _cells(self) -> Iterator[tuple[str, str]]:
        """The numbers of records at public points, packed into one list of integers for each group."""
        call, infix = self.dialect.call, self.dialect.infix
        keys, by = "".join(f"{name}, " for name in self.groups), ", ".join(self.groups)
        for i, part in self.measured:
            for name, points in {} if self._told_apart(part) else part.points.items():
                column = f"{name}{i}"
                counted = (
                    f"(SELECT {keys}{column} AS point, {call('COUNT', '*')} AS n FROM {self._rows()} "
                    f"WHERE {column} IS NOT NULL GROUP BY {keys}{column}) AS counted"
                )
                size = str(packed_counts(points))
                most = str(packed_counts(points) - 1)
                packed = infix(infix("point", "*", size), "+", f"CASE WHEN n > {most} THEN {most} ELSE n END")
                listed = call("ARRAY_AGG", packed)
                yield (
                    f"{name}_{i}",
                    f"(SELECT {keys}{listed} AS {name}_{i} FROM {counted}{f' GROUP BY {by}' if by else ''})",
                )

    def _size_sums(self) -> Iterator[tuple[str, str]]:
        """Sums of records by their sizes."""
        for i, part in self.measured:
            if part.needs.size_sums:
                found = sums_by_size(self.dialect, i, f"z{i}", part.universe, self._rows(), self.groups)
                yield f"sizes_{i}", found

    def _different(self) -> Iterator[tuple[str, str]]:
        """Numbers of different values, and their sums."""
        for i, part in enumerate(self.plan.parts):
            if isinstance(part, Different):
                yield f"different_{i}", different_values(self.dialect, i, part, self._rows(), self.groups, self._held)

    def _by_row_number(self) -> Iterator[tuple[str, str]]:
        """Order statistics of many groups for engines without a pivot, each group sorted for itself."""
        if self.dialect.by_pivot or not self.groups:
            return
        keys, by = ", ".join(self.groups), f" GROUP BY {', '.join(self.groups)}"
        for i, part in self.measured:
            placed = (
                f"(SELECT {keys}, p{i} AS p, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY p{i}) AS place, "
                f"COUNT(*) OVER (PARTITION BY {keys}) AS n FROM {self._rows()} WHERE p{i} IS NOT NULL) AS placed"
            )
            if part.needs.seconds:
                second = f"MAX(CASE WHEN place = 2 THEN p END) AS second_lowest_{i}"
                other = f"MAX(CASE WHEN place = n - 1 THEN p END) AS second_highest_{i}"
                yield f"seconds_{i}", f"(SELECT {keys}, {second}, {other} FROM {placed}{by})"
            for k, q in enumerate(sorted(part.needs.windows)):
                start = f"CAST(FLOOR(n * {self.dialect.number(q)}) AS BIGINT)"
                found = [
                    f"MAX(CASE WHEN place = base + {at} THEN p END) AS ranked_{at}_{i}_{k}" for at in range(len(RANKED))
                ]
                based = f"(SELECT *, {start} + ({RANKED.start}) AS base FROM {placed}) AS based"
                near = f"WHERE place BETWEEN base AND base + {len(RANKED) - 1}"
                yield (
                    f"ranked_{i}_{k}",
                    f"(SELECT {keys}, MAX(base) AS base_{i}_{k}, {', '.join(found)} FROM {based} {near}{by})",
                )

    def records(self) -> str:
        return f"{self._with_people({})}SELECT * FROM {self._records()}"

    def looked_at(self, i: int, looks: Sequence[Look]) -> str:
        part = self.plan.parts[i]
        assert isinstance(part, Measured)
        return self._with_people({}) + counted_in(looks, self.dialect, f"x{i}", part.universe, self._records())


def product_name(degrees: Degrees, at: int, part: int) -> str:
    """The column that holds one of the sums of products of two columns."""
    return f"product_{degrees[0]}{degrees[1]}_{at}_{part}"


def packed_counts(points: Points) -> int:
    """By how much the index of a point is multiplied, so that it and a smaller number of records make 62 bits.

    More records at one point than fit, of whole numbers up to 2**31 a thousand million, count as as many as do.
    """
    return 2 ** (62 - points.size.bit_length())


def _steps(value: float, grid: float) -> str:
    """As the engine casts: half to even. The product with a power of two is exact."""
    return f"CAST('{round(value * grid)}' AS BIGINT)"


def _places(*numbers: int) -> list[str]:
    """Whole numbers as literals."""
    return [f"CAST('{number}' AS BIGINT)" for number in numbers]


def _where(conditions: tuple[str, ...]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
