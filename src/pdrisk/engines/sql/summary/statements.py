"""The `Summary` as SQL: one statement in few words that most engines share.

One statement reads the data, so that all of it sees the same records. Groups are read in a first pass; what needs to
know the mean or a pivot is read in a second, joined to the first. Sums are sums of integers on public grids: the same
records give the same answer in whatever order, and however many threads, add them.

    keys ──┐
    rows ──┴─> first (n, sums, ends, pivots) ──> second (squares, nearest, what is around pivots) ──> a line a group
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pdrisk._core.lattice import PLACE_BITS, PLACES, Points
from pdrisk._core.products import WEIGHT_BITS
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.aggregates import Aggregates, held
from pdrisk.engines.sql.summary.bands import bands
from pdrisk.engines.sql.summary.binned import in_bins
from pdrisk.engines.sql.summary.cell_search import Look, counted_in
from pdrisk.engines.sql.summary.contributions import ContributionSelects
from pdrisk.engines.sql.summary.different_values import different_values
from pdrisk.engines.sql.summary.person_rows import records_of_people, with_people
from pdrisk.engines.sql.summary.placing import Placing, Sums
from pdrisk.engines.sql.summary.ranked import grouped_at_ranks, records_at_ranks
from pdrisk.engines.sql.summary.sizes import sums_by_size
from pdrisk.engines.sql.summary.summary_plan import (
    Binned,
    Different,
    DifferentNumbers,
    Summarised,
    SummarisedPair,
    SummaryPlan,
)


def records_read(plan: SummaryPlan, dialect: Dialect) -> str:
    """SELECT of the records that a plan reads: groups as g0, ..., values as x0, y0, u0, c0, ... by part."""
    return _Statement(plan, dialect).records()


def looked_at(plan: SummaryPlan, dialect: Dialect, i: int, looks: Sequence[Look]) -> str:
    """SELECT that counts the records of part i by cells, without groups: see `Looked`."""
    return _Statement(plan, dialect).looked_at(i, looks)


def statement(plan: SummaryPlan, dialect: Dialect, banded: bool = False, sums: Sums | None = None) -> str:
    """SELECT with one line for each group, in the order of the keys; in any, where groups are read `by_span`.

    With ``banded``, order statistics are looked for in a band that a sample tells, and may not be found there. Places
    are added up as ``sums`` says, at first as `Sums.first` does.

    Columns: ``g0``, ``g1``, ... where there are groups; for part i, ``n_i``, ``clamped_i``, ``total_i``, ``steps_i``,
    ``places_i`` (or ``terms_i``, see `Sums`, and of whole terms how many there are, ``finite_i``),
    ``place_squares_i``, ``whole_i``, ``lowest_i``, ``lowest_of_negatives_i``, ``second_lowest_i``,
    ``second_highest_i``, ``squares_i``, ``nearest_i``, ``cells_i``, ``whole_cells_i``, and the lists ``bin_i``,
    ``size_i``, ``high_i`` and ``low_i`` as its needs say; of bins the lists ``bins_i`` and ``held_i``, ``under_i`` and
    ``over_i``; of two columns ``other_lowest_i``,
    ``other_lowest_of_negatives_i`` and the products named by `product_name`.
    By rank, for its k-th span of ranks ``from_i_k`` and ``ranked_i_k``: see `records_at_ranks`.
    For its k-th band ``lower_i_k`` and ``upper_i_k``, the numbers of records ``less_i_k``, ``at_lower_i_k``,
    ``at_upper_i_k``, and the list ``inside_i_k`` of those between.
    For its k-th pivot ``pivot_i_k``, ``less_i_k``, ``equal_i_k``, and the nearest records ``below_i_k`` and
    ``above_i_k``, which are lists if `sides` is more than 1; for its j-th ranks ``end_i_j``, if they are at an end.
    Of people ``offered_i``, see `Summary`, where the plan has facts.
    Of different values ``distinct_i`` and ``singles_i``; of numbers also ``highest_i``, and both ends are those of
    values that one record alone has.
    By row number within groups, for its k-th quantile: ``base_i_k``, and the records from that rank on,
    ``ranked_0_i_k``, ...
    """
    return _Statement(plan, dialect, banded, sums).text()


def second_statement(plan: SummaryPlan, dialect: Dialect, centre_of: Mapping[int, tuple[float, float]]) -> str:
    """SELECT of the second pass over all records, around the means of some parts.

    It is for plans that are read `in_steps`, whose `statement` has the first pass alone.
    """
    return _Statement(plan, dialect, centre_of=centre_of).second_text()


def in_steps(plan: SummaryPlan, dialect: Dialect) -> bool:
    """Whether a second pass over all records is a statement of its own; people's records are made once for both."""
    return dialect.stepwise and not (plan.groups or plan.people or plan.at_once)


RANKED = range(-2, 5)  # around floor(n q), which rounding may move by one


class _Statement:
    def __init__(
        self,
        plan: SummaryPlan,
        dialect: Dialect,
        banded: bool = False,
        sums: Sums | None = None,
        centre_of: Mapping[int, tuple[float, float]] | None = None,
    ) -> None:
        self.plan = plan = with_people(plan)
        self.banded = banded
        self.dialect = dialect
        self.placing = Placing(dialect, Sums.first(plan, dialect) if sums is None else sums)
        self.aggregates = Aggregates(plan, self.placing, banded, centre_of)
        self.measured = self.aggregates.measured
        self.groups = [f"g{i}" for i in range(len(plan.groups))]

    def text(self) -> str:
        passes: dict[str, str] = {}
        rows = self._rows()
        if self.plan.between is not None:
            low, high = map(self.dialect.whole, self.plan.between)
            within = f"{rows} WHERE g0 BETWEEN {low} AND {high}"
            return self._grouped(list(self.aggregates.first()), within, "")
        if self.banded:
            passes["bands"] = f"{self.dialect.materialized}({bands(self.plan, self.dialect, self._rows())})"
            rows = f"{rows} CROSS JOIN bands"
        if first := list(self.aggregates.first()):
            select = self._grouped(first, rows, "")
            passes["first_pass"] = f"{self.dialect.materialized}({self.aggregates.centred(select)})"
        if not in_steps(self.plan, self.dialect) and (second := list(self.aggregates.second())):
            passes["second_pass"] = f"({self._grouped(second, self._rows_and_first_pass(), 'rows_read.')})"
        passes |= dict(self._by_rank() if self.dialect.by_rank else self._by_row_number())
        passes |= dict(self._cells())
        passes |= dict(self._size_sums())
        for i, part in self.measured:
            if isinstance(part, Binned):
                passes[f"binned_{i}"] = in_bins(self.dialect, i, part, self._rows())
        passes |= dict(self._different())
        passes |= dict(self._contributions())
        ctes = self._with_people(passes)
        if len(passes) == 1 and not self.groups and self.plan.people is None:
            return next(iter(passes.values())).removeprefix(self.dialect.materialized)[1:-1]
        if not self.groups:
            return f"{ctes}SELECT * FROM {' CROSS JOIN '.join(passes)}"
        joins = " ".join(f"LEFT JOIN {name} ON {self._same('listed', name)}" for name in passes)
        keys = ["code"] if self.plan.keys is not None else self.groups
        order = ", ".join(f"listed.{name} ASC NULLS LAST" for name in keys)  # whatever the settings say
        ctes = self._with_people(passes | {"listed": f"({self._keys()})"})
        ordered = "" if keys == ["code"] and not self.dialect.orders else f" ORDER BY {order}"
        return f"{ctes}SELECT {self.dialect.all_columns(list(passes), self.groups)} FROM listed {joins}{ordered}"

    def second_text(self) -> str:
        rows = self._rows_and_first_pass() if self.dialect.once else self._rows()
        return self._grouped(list(self.aggregates.second()), rows, "rows_read.")

    def _contributions(self) -> Iterator[tuple[str, str]]:
        """Contributions of single people for each part, as far as they can move an answer."""
        whose = self.plan.contributions
        if whose is None:
            return
        made = ContributionSelects(self.dialect, self._rows(), self._rows_and_first_pass(), self.groups, whose)
        for i, part in enumerate(self.plan.parts):
            if not isinstance(part, Binned):
                yield from made.of(i, part, self.aggregates.root(i, part) if isinstance(part, Summarised) else None)

    def _with_people(self, passes: dict[str, str]) -> str:
        """CTEs before a SELECT: people's records, if the plan is of people, and passes over them."""
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
        rows = f"(SELECT {keys} FROM {self.plan.source}{_where(self.plan.inner)}) AS all_rows"
        present = () if self.plan.lists_missing else tuple(f"{name} IS NOT NULL" for name in self.groups)
        return f"SELECT DISTINCT {', '.join(self.groups)} FROM {rows}{_where(present)}"

    def _same(self, left: str, right: str) -> str:
        pairs = [(f"{left}.{g}", f"{right}.{g}") for g in self.groups]
        return self.dialect.same_keys(pairs, missing=self.plan.lists_missing)

    def _columns(self) -> list[str]:
        """The values of groups and parts."""
        plan = self.plan
        read = [f"{sql} AS {name}" for sql, name in zip(plan.groups, self.groups, strict=True)]
        if plan.contributions is not None and plan.people is None:  # records of people that are kept
            read += plan.contributions.columns
        for i, part in enumerate(plan.parts):
            if isinstance(part, SummarisedPair):
                kept = f"CASE WHEN {part.other} <= {self.dialect.infinity} THEN {part.value} END"
                of_waves = plan.people is not None and plan.people.waves  # the earlier of which needs no weight
                read.append(f"{part.value if of_waves else kept} AS x{i}")
                read.append(f"CASE WHEN {part.value} <= {self.dialect.infinity} THEN {part.other} END AS y{i}")
            elif isinstance(part, Summarised):
                read.append(f"{part.value} AS x{i}")
            elif isinstance(part, DifferentNumbers):
                read.append(f"CASE WHEN {part.value} <= {self.dialect.infinity} THEN {part.value} END AS u{i}")
            elif isinstance(part, Different):
                read.append(f"{part.value} AS u{i}")
            elif part.condition is not None:
                read.append(f"{part.condition} AS c{i}")
        return read

    def _rows(self) -> str:
        """The records with their values on the grids."""
        derived = [
            f"{sql} AS {name}"
            for i, part in self.measured
            for name, sql in self.placing.derived(
                i, part, apart=bool(self.aggregates.told_apart(part)), summed=self.plan.contributions is not None
            )
        ]
        placed = [f"{sql} AS {name}" for i, part in self.measured for name, sql in self.placing.placed(i, part)]
        records = self._records()
        if placed:
            records = f"(SELECT {', '.join(['*', *placed])} FROM {records}) AS rows_placed"
        return f"(SELECT {', '.join(['*', *derived, *self.dialect.once])} FROM {records}) AS rows_read"

    def _records(self) -> str:
        """The records as SQL for FROM."""
        return "people_records" if self.plan.people is not None else self._values_read()

    def _values_read(self) -> str:
        """All rows, with the values of groups and parts, and of people's ids."""
        plan = self.plan
        read = self._columns()
        if plan.people is not None:
            read += [f"{sql} AS p{at}" for at, sql in enumerate(plan.people.keys)]
            read += [f"{sql} AS wave{at}" for at, sql in enumerate(plan.people.waves)]
        name = "values_read" if plan.people is None else "people_read"
        where = _where((*plan.inner, *plan.where))
        return f"(SELECT {', '.join(read or ['1 AS one'])} FROM {plan.source}{where}) AS {name}"

    def _rows_and_first_pass(self) -> str:
        """The records beside the first pass's results for their group, and their distances from the mean."""
        rows, name, whose = self._rows(), "rows_read", self.plan.contributions
        if self.dialect.once:
            rows, name = self._records(), "values_read" if self.plan.people is None else "people_records"
        # Without groups a join would keep it from several threads.
        is_joined = self.groups or not self.dialect.once
        joined = f"{rows} JOIN first_pass ON {self._same(name, 'first_pass')}" if is_joined else rows
        if not self.dialect.once:
            return joined
        keys = [f"{name}.{key} AS {key}" for key in [*self.groups, *(() if whose is None else whose.columns)]]
        distances = [
            f"{sql} AS {root}" for i, part in self.measured for root, sql in self.aggregates.distances(i, part)
        ]
        return f"(SELECT {', '.join([*keys, *distances, *self.dialect.once])} FROM {joined}) AS rows_read"

    def _cells(self) -> Iterator[tuple[str, str]]:
        """The numbers of records at public points, packed into one list of integers for each group."""
        call, infix = self.dialect.call, self.dialect.infix
        keys, by = "".join(f"{name}, " for name in self.groups), ", ".join(self.groups)
        for i, part in self.measured:
            for name, points in {} if self.aggregates.told_apart(part) else part.points.items():
                column = f"{name}{i}"
                number, kept = call("COUNT", "*"), f"{column} IS NOT NULL"
                if isinstance(part, SummarisedPair):
                    steps = weight_steps(self.dialect, f"l{i}")
                    number, kept = held(self.dialect, steps), f"{kept} AND {steps} > 0"
                counted = (
                    f"(SELECT {keys}{column} AS point, {number} AS n FROM {self._rows()} WHERE {kept} "
                    f"GROUP BY {keys}{column}) AS counted"
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
                sizes = sums_by_size(self.dialect, i, f"z{i}", part.universe, self._rows(), self.groups)
                yield f"sizes_{i}", sizes

    def _different(self) -> Iterator[tuple[str, str]]:
        """Numbers of different values, and their sums."""
        for i, part in enumerate(self.plan.parts):
            if isinstance(part, Different):
                yield (
                    f"different_{i}",
                    different_values(self.dialect, i, part, self._rows(), self.groups, partial(held, self.dialect)),
                )

    def _by_rank(self) -> Iterator[tuple[str, str]]:
        """Order statistics, for engines that list records by rank."""
        for i, part in self.measured:
            if self.groups:
                alone = self.aggregates.is_ranked_alone(part)
                select = grouped_at_ranks(self.dialect, i, part, self._rows(), self.groups, alone=alone)
            else:
                n = f"(SELECT n_{i} FROM first_pass)"
                columns = ", ".join(f"{sql} AS {name}" for name, sql in records_at_ranks(self.dialect, i, part, n))
                select = f"SELECT {columns} FROM {self._rows()}" if columns else None
            if select is not None:
                yield f"by_rank_{i}", f"({select})"

    def _by_row_number(self) -> Iterator[tuple[str, str]]:
        """Order statistics of many groups, for engines without a pivot; each group is sorted."""
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
                columns = [
                    f"MAX(CASE WHEN place = base + {at} THEN p END) AS ranked_{at}_{i}_{k}" for at in range(len(RANKED))
                ]
                based = f"(SELECT *, {start} + ({RANKED.start}) AS base FROM {placed}) AS based"
                near = f"WHERE place BETWEEN base AND base + {len(RANKED) - 1}"
                yield (
                    f"ranked_{i}_{k}",
                    f"(SELECT {keys}, MAX(base) AS base_{i}_{k}, {', '.join(columns)} FROM {based} {near}{by})",
                )

    def records(self) -> str:
        return f"{self._with_people({})}SELECT * FROM {self._records()}"

    def looked_at(self, i: int, looks: Sequence[Look]) -> str:
        part = self.plan.parts[i]
        assert isinstance(part, Summarised)
        return self._with_people({}) + counted_in(looks, self.dialect, f"x{i}", part.universe, self._records())


def weight_steps(dialect: Dialect, place: str) -> str:
    """Place of a weight in the coarser steps in which weights are counted at points."""
    fine = dialect.infix(dialect.infix(place, "*", f"{2**WEIGHT_BITS}"), "+", f"{PLACES // 2}")
    return dialect.infix(fine, ">>", f"{PLACE_BITS}")


def packed_counts(points: Points) -> int:
    """Factor of a point's index, so that it and a smaller number of records fit 62 bits.

    More records at one point than fit, of whole numbers up to 2**31 a thousand million, count as as many as do.
    """
    return 2 ** (62 - points.size.bit_length())


def _where(conditions: tuple[str, ...]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
