"""Records of people in SQL: the rows or numbers that count for each person, chosen before anything is summarised.

    rows ──> rows of listed groups ──> groups of each person that count ──> rows that count | one row for each person
                    └──────────── rows of all groups together ──────────────────┘

A row that does not count keeps its place with NULLs, so that each part of a plan has rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pdrisk._core.lattice import numbers_grid
from pdrisk._core.universe import Rectangle, Universe
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.summary_plan import (
    ContributionColumns,
    Counted,
    Different,
    Part,
    PeopleRead,
    Summarised,
    SummarisedPair,
    SummaryPlan,
)

ORDERED = {"min": "MIN", "all": "MIN", "max": "MAX", "any": "MAX"}


def with_people(plan: SummaryPlan) -> SummaryPlan:
    """Plan with a condition in every count, so that rows that do not count are not counted."""
    if plan.people is None:
        return plan
    parts = tuple(Counted("true") if part == Counted(None) else part for part in plan.parts)
    return replace(plan, parts=parts)


def records_of_people(plan: SummaryPlan, dialect: Dialect, rows: str) -> str:
    """SELECT of people's records, with the columns of ``rows``, which holds the parts of ids as p0, p1, ...

    ``plan``: With people; their ids come along as person0, person1, ... where the plan tells of them.
    ``rows``: A relation of all rows: groups as g0, ..., values as x0, y0, u0, c0, ... by the number of their part.
    """
    people = plan.people
    assert people is not None
    if people.waves:
        return _changes(plan, people, dialect, rows)
    made = _People(plan, people, dialect)
    known = " AND ".join(f"p{at} IS NOT NULL" for at in range(len(people.keys)))
    listed = (
        "" if plan.keys is None else f" AND EXISTS (SELECT 1 FROM {plan.keys} WHERE {made.same_group('keys_listed')})"
    )
    body = f"SELECT * FROM {rows} WHERE {known}{listed}"
    if people.have_one and people.unit.per_person is None:  # nothing is left out
        read = [*made.groups, *made.alone(), *made.offered()]
        return f"SELECT {', '.join([*read, *made.whose()])} FROM ({body}) AS people_known"
    if plan.groups and not people.unit.overall:
        body = f"SELECT *, {', '.join(made.places_of_groups())} FROM ({body}) AS people_known"
    if made.is_collapsed:
        by = ", ".join([*made.person, *made.groups])
        chosen = ", ".join([*made.groups, *made.collapsed(), *made.offered(), *made.whose()])
        return f"SELECT {chosen} FROM ({body}) AS people_grouped GROUP BY {by}"
    body = f"SELECT *, {', '.join(made.numbers())} FROM ({body}) AS people_grouped"
    body = f"SELECT *, {', '.join(made.places_of_rows())} FROM ({body}) AS people_numbered"
    read = [*made.groups, *made.whose(), *made.kept(), *made.offered()]
    return f"SELECT {', '.join(read)} FROM ({body}) AS people_placed"


def _changes(plan: SummaryPlan, people: PeopleRead, dialect: Dialect, rows: str) -> str:
    """SELECT of one record for each person in both waves: the number of the later wave less that of the earlier one."""
    whose = ContributionColumns(len(people.keys), 1)
    once = replace(people, unit=people.unit.in_each_wave, waves=())
    groups = [f"g{at}" for at in range(len(plan.groups))]
    rows_within = None if people.unit.waves is None else people.unit.waves.universe

    def read_in(wave: int, part: Part) -> Part:
        """A part as rows of a wave are read: weights are those of the later one alone."""
        if rows_within is not None and isinstance(part, Summarised):
            part = replace(part, universe=rows_within)
        if wave or not isinstance(part, SummarisedPair):
            return part
        return Summarised(part.value, Universe(part.universe.lo, part.universe.hi), part.needs)

    def of_each(wave: int, listed: list[str]) -> str:
        """Number of each person in a wave; of several rows of a person one alone has it, and others have NULL."""
        parts = tuple(read_in(wave, part) for part in plan.parts)
        wave_plan = replace(plan, people=once, has_facts=False, contributions=whose, parts=parts)
        wave_plan = wave_plan if listed else replace(wave_plan, groups=(), keys=None)
        records = records_of_people(wave_plan, dialect, f"(SELECT * FROM {rows} WHERE wave{wave}) AS people_read")
        columns = [*whose.columns, *listed]
        for i, part in enumerate(parts):
            call = "BOOL_OR" if isinstance(part, Counted) else "MAX"
            columns += [f"{dialect.call(call, name)} AS {name}" for name in _columns_of(i, part)]
        by = ", ".join([*whose.columns, *listed])
        return f"(SELECT {', '.join(columns)} FROM ({records}) AS people_of_wave GROUP BY {by}) AS wave_{wave}"

    read = [f"wave_1.{name} AS {name}" for name in groups]
    for i, part in enumerate(plan.parts):
        if isinstance(part, Counted):
            read.append(f"(wave_0.c{i} AND wave_1.c{i}) AS c{i}")
        else:
            change = dialect.arithmetic(f"wave_1.x{i}", "-", f"wave_0.x{i}")
            known = f"{change} <= {dialect.infinity}"  # which infinite less infinite is not
            expressions = dict.fromkeys(_columns_of(i, part), f"wave_1.y{i}") | {f"x{i}": change}
            read += [f"CASE WHEN {known} THEN {sql} END AS {name}" for name, sql in expressions.items()]
    same = " AND ".join(f"wave_0.{name} = wave_1.{name}" for name in whose.columns)
    return f"SELECT {', '.join(read)} FROM {of_each(0, [])} JOIN {of_each(1, groups)} ON {same}"


def _columns_of(i: int, part: Part) -> list[str]:
    """The columns of a part with this number."""
    if isinstance(part, SummarisedPair):
        return [f"x{i}", f"y{i}"]
    return [f"x{i}" if isinstance(part, Summarised) else f"u{i}" if isinstance(part, Different) else f"c{i}"]


def tells_offered(plan: SummaryPlan, dialect: Dialect) -> bool:
    """Whether `records_of_people` says as b0, ... which rows would be records of each part if every row counted."""
    return plan.people is not None and _People(plan, plan.people, dialect).tells_offered


class _People:
    """Expressions of each step."""

    def __init__(self, plan: SummaryPlan, people: PeopleRead, dialect: Dialect) -> None:
        self.plan, self.people, self.unit = plan, people, people.unit
        self.dialect, self.call = dialect, dialect.call
        self.groups = [f"g{at}" for at in range(len(plan.groups))]
        self.person = [f"p{at}" for at in range(len(people.keys))]
        all_counted = self.unit.rows == 1 and all(isinstance(part, Counted) for part in plan.parts)
        # Of people who are only counted nothing is chosen.
        self.is_collapsed = self.unit.per_person is not None or (all_counted and not self.unit.overall)
        # Of waves nobody counts how many people are in one of them alone.
        self.tells_offered = plan.has_facts and not people.waves and bool(plan.groups or not self.is_collapsed)
        self.within = [] if self.unit.overall else self.groups  # what tells apart the rows of a person that may count

    def whose(self) -> Iterator[str]:
        """The parts of ids, where contributions of people are read."""
        names = [] if self.plan.contributions is None else self.plan.contributions.columns
        yield from (f"{part} AS {name}" for part, name in zip(self.person, names, strict=False))

    def same_group(self, other: str) -> str:
        """Condition that a row is in the group of a listed key."""
        pairs = [(f"{other}.{g}", f"people_read.{g}") for g in self.groups]
        return self.dialect.same_keys(pairs, missing=self.plan.lists_missing)

    def values(self, i: int) -> list[str]:
        """The columns of a part."""
        return _columns_of(i, self.plan.parts[i])

    def present(self, i: int) -> str:
        """Condition that a row has the values that a part reads."""
        part = self.plan.parts[i]
        if isinstance(part, Summarised):
            return " AND ".join(f"{value} <= {self.dialect.infinity}" for value in self.values(i))
        return f"u{i} IS NOT NULL" if isinstance(part, Different) else f"c{i}"

    def counted(self, i: int) -> str:
        """Condition that a row has these values and is in a group that counts."""
        in_group = f" AND place_of_group_{i} <= {self.unit.groups}" if self.within else ""
        return f"({self.present(i)}){in_group}"

    def hashed(self, *expressions: str) -> str:
        """Keyed hash of a person together with other expressions."""
        texts = [f"CAST({expression} AS {self.dialect.text_type})" for expression in (*self.person, *expressions)]
        return self.dialect.keyed_hash(self.people.secret, texts)

    def places_of_groups(self) -> Iterator[str]:
        """Position of each row's group among those of its person in which a part has rows."""
        for i in range(len(self.plan.parts)):
            by = ", ".join([*self.person, f"({self.present(i)})"])
            order = ", ".join([self.hashed(*self.groups), *self.groups])
            yield f"{self.call('DENSE_RANK')} OVER (PARTITION BY {by} ORDER BY {order}) AS place_of_group_{i}"

    def numbers(self) -> Iterator[str]:
        """Number of each row among equal rows of a person; equal as texts, so 0.0 and -0.0 differ."""
        for i in range(len(self.plan.parts)):
            by = ", ".join([*self.person, *self.groups, *self.content(i)])
            order = self.dialect.any_order.format(", ".join(self.values(i)))
            yield f"{self.call('ROW_NUMBER')} OVER (PARTITION BY {by}{order}) AS same_{i}"
            if self.counts_people(i):
                by = ", ".join([*self.person, *self.groups, f"({self.present(i)})"])
                yield f"{self.call('ROW_NUMBER')} OVER (PARTITION BY {by}{order}) AS first_{i}"

    def content(self, i: int) -> list[str]:
        """Expressions that are equal where texts of a part's values are: no hash, if numbers need none."""
        if not (self.dialect.writes_all_digits and isinstance(self.plan.parts[i], Summarised)):
            return [self.hashed(*self.values(i))]
        zero, text = self.dialect.number(0.0), self.dialect.text_type
        signs = (f"CASE WHEN {x} = {zero} THEN CAST({x} AS {text}) END" for x in self.values(i))
        # Not the columns themselves: DuckDB 1 gives back 0.0 for the -0.0 of a column that it partitions by.
        return [*(self.dialect.infix(x, "+", zero) for x in self.values(i)), *signs]

    def counts_people(self, i: int) -> bool:
        """Whether the records of a part are people in groups, whichever of their rows count."""
        return isinstance(self.plan.parts[i], Counted) and self.unit.rows == 1

    def offered(self) -> Iterator[str]:
        """Whether a row would be a record if every row counted, where curators want to know."""
        for i in range(len(self.plan.parts)) if self.tells_offered else ():
            present = f"({self.present(i)})"
            if self.people.have_one and self.unit.per_person is None:
                pass
            elif self.is_collapsed:
                present = self.call("BOOL_OR", present)
            elif self.counts_people(i):
                present += f" AND first_{i} = 1"
            yield f"{present} AS b{i}"

    def places_of_rows(self) -> Iterator[str]:
        """Position of each row among those of its person that a part reads, by hashes of their content."""
        for i in range(len(self.plan.parts)):
            by = ", ".join([*self.person, *self.within, f"({self.counted(i)})"])
            contents = [*(self.groups if self.unit.overall else ()), *self.values(i), f"same_{i}"]
            order = ", ".join([self.hashed(*contents), *contents])
            yield f"{self.call('ROW_NUMBER')} OVER (PARTITION BY {by} ORDER BY {order}) AS place_{i}"

    def alone(self) -> Iterator[str]:
        """Values of rows that are the only ones of their people; NULL, or false, for rows that do not count."""
        for i in range(len(self.plan.parts)):
            for value in self.values(i):
                yield f"CASE WHEN {self.present(i)} THEN {value} END AS {value}"

    def kept(self) -> Iterator[str]:
        """Values of rows that count; NULL, or false, for others."""
        for i in range(len(self.plan.parts)):
            for value in self.values(i):
                yield f"CASE WHEN {self.counted(i)} AND place_{i} <= {self.unit.rows} THEN {value} END AS {value}"

    def collapsed(self) -> Iterator[str]:
        """Number that the rows of each person become; NULL if none counts."""
        for i, part in enumerate(self.plan.parts):
            if isinstance(part, Counted):
                yield f"{self.call('BOOL_OR', self.counted(i))} AS c{i}"
                continue
            assert isinstance(part, Summarised)
            sides = [part.universe]
            if isinstance(part.universe, Rectangle):
                sides.append(part.universe.other)
            way = str(self.unit.per_person)
            for value, universe in zip(self.values(i), sides, strict=True):
                counted = f"CASE WHEN {self.counted(i)} THEN {value} END"
                yield f"{number_of_rows(way, counted, universe, self.dialect)} AS {value}"


def number_of_rows(way: str, value: str, universe: Universe, dialect: Dialect) -> str:
    """One number of a person's values, to the last digit as on frames, whatever the order of rows.

    ``way``: ``"mean"``, ``"sum"``, ``"count"`` or one of `ORDERED`.
    ``value``: SQL of type DOUBLE.
    ``universe``: whose size decides how finely sums are rounded.
    """
    call, infix, number = dialect.call, dialect.infix, dialect.number
    n = dialect.double(call("COUNT", value))
    if way == "count":
        return f"NULLIF({n}, {dialect.double('0')})"
    if way in ORDERED:
        return call(ORDERED[way], value)
    grid = numbers_grid(universe, is_sum=way == "sum")
    off, reach = infix(value, "-", number(grid.origin)), number(grid.reach)
    inside = call("GREATEST", call("LEAST", off, reach), dialect.negative(reach))
    place = call("FLOOR", infix(dialect.scaled(inside, grid.per_unit), "+", number(0.5)))
    # LEAST and GREATEST leave NULL out: a row that does not count would be one at an end.
    sums = dialect.whole_sum(f"CASE WHEN ({value}) IS NOT NULL THEN CAST({place} AS BIGINT) END")
    total = infix(dialect.double(sums), "/", number(grid.per_unit))
    return total if way == "sum" else infix(number(grid.origin), "+", infix(total, "/", n))
