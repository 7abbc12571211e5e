"""Any query of a small grammar gives what brute force gives, and one person changes it by no more than it says."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import pdrisk
from sql_people import lines, risks, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

LO, HI = 0.0, 4.0
Record = tuple  # a: integer, x: float, g: text, b: truth value; None is missing in each
Value = bool | int | float | str | None


@dataclass(frozen=True)
class Said:
    """An expression as SQL says it, and what it is for a record."""

    sql: str
    of: Callable[[Record], Value]

    def __repr__(self) -> str:
        return self.sql


records = st.tuples(
    st.sampled_from([None, -2, 0, 1, 2, 3, 3, 6]),
    st.sampled_from([None, -1.0, 0.0, 0.5, 2.25, 4.0, 7.5]),
    st.sampled_from([None, "u", "u", "v", "w"]),
    st.sampled_from([None, True, False]),
)
tables = st.lists(records, max_size=7)
A, X, G, B = (Said(name, lambda record, at=at: record[at]) for at, name in enumerate("axgb"))
SUM = Said("a + x", lambda r: None if r[0] is None or r[1] is None else r[0] + r[1])
EITHER = Said("CASE WHEN b THEN a ELSE x END", lambda r: r[0] if r[3] else r[1])
FIRST = Said("COALESCE(x, a)", lambda r: r[0] if r[1] is None else r[1])
# None where DuckDB would stop: a record that fails leaves the others as they are.
INVERSE = Said("12 // (a - 3)", lambda r: None if r[0] in (None, 3) else int(12 / (r[0] - 3)))
LARGE = Said("a + 2147483645 - 2147483645", lambda r: r[0])
ROOT = Said("sqrt(abs(4 - a - a))", lambda r: None if r[0] is None else math.sqrt(abs(4 - 2 * r[0])))
numbers = st.sampled_from([A, X, SUM, EITHER, FIRST, INVERSE, LARGE, ROOT])


def compared(left: Said, operator: str, right: float) -> Said:
    tests = {
        "<": lambda v: v < right,
        ">=": lambda v: v >= right,
        "=": lambda v: v == right,
        "<>": lambda v: v != right,
    }
    test = tests[operator]
    return Said(f"{left} {operator} {right}", lambda r: None if left.of(r) is None else test(left.of(r)))


def either(left: Said, right: Said) -> Said:
    def of(record: Record) -> Value:
        found = (left.of(record), right.of(record))
        return True if True in found else None if None in found else False

    return Said(f"({left} OR {right})", of)


def negated(one: Said) -> Said:
    return Said(f"(NOT {one})", lambda r: None if one.of(r) is None else not one.of(r))


def both(left: Said, right: Said) -> Said:
    denied = either(negated(left), negated(right))
    return Said(f"({left} AND {right})", lambda r: None if denied.of(r) is None else not denied.of(r))


def chosen(when: Said, then: Said, otherwise: Said) -> Said:
    sql = f"(CASE WHEN {when} THEN {then} ELSE {otherwise} END)"
    return Said(sql, lambda r: then.of(r) if when.of(r) else otherwise.of(r))


atoms = st.one_of(
    st.builds(compared, numbers, st.sampled_from(["<", ">=", "=", "<>"]), st.sampled_from([0, 1.5, 3])),
    st.builds(lambda n: Said(f"{n} IS NULL", lambda r: n.of(r) is None), st.sampled_from([A, X, G, B])),
    st.builds(lambda t: Said(f"g = '{t}'", lambda r: None if r[2] is None else r[2] == t), st.sampled_from("uvz")),
    st.just(Said("a IN (1, 3)", lambda r: None if r[0] is None else r[0] in (1, 3))),
    st.just(Said("x BETWEEN 0.5 AND 4", lambda r: None if r[1] is None else 0.5 <= r[1] <= 4)),
    st.just(Said("g IS NOT DISTINCT FROM 'u'", lambda r: r[2] == "u")),
    st.just(B),
    st.just(Said("g LIKE '%v%'", lambda r: None if r[2] is None else "v" in r[2])),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(both, inner, inner), st.builds(either, inner, inner), st.builds(negated, inner),
        st.builds(chosen, inner, inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """One release: how it is written, and by which definition it is answered."""

    sql: str
    label: str
    of: Said | None
    condition: Said | None

    def __repr__(self) -> str:
        return self.sql + (f" FILTER (WHERE {self.condition})" if self.condition else "")

    def answer(self, rows: list[Record]) -> float:
        kept = [row for row in rows if self.condition is None or self.condition.of(row) is True]
        values = [0 if self.of is None else self.of.of(row) for row in kept]
        clamped = [min(max(float(value), LO), HI) for value in values if value is not None]
        ends = oracle.fractions((LO, HI))
        return oracle.DEFINITIONS[self.label].value(oracle.fractions(clamped), *ends)


WRITTEN = {
    "count": "dp_count({})", "sum": "dp_sum({}, lo := 0, hi := 4)", "mean": "dp_mean({}, lo := 0, hi := 4)",
    "median": "dp_median({}, lo := 0, hi := 4)", "quantile(0.9)": "dp_quantile({}, 0.9, lo := 0, hi := 4)",
    "min": "dp_min({}, lo := 0, hi := 4)", "max": "dp_max({}, lo := 0, hi := 4)",
    "var": "dp_var({}, lo := 0, hi := 4)", "std(ddof=0)": "dp_std({}, lo := 0, hi := 4, ddof := 0)",
}  # fmt: skip
aggregates = st.builds(
    lambda label, of, condition: Aggregate(WRITTEN[label].format(of), label, of, condition),
    st.sampled_from(sorted(WRITTEN)), numbers, st.none() | conditions,
) | st.builds(lambda condition: Aggregate("COUNT(*)", "count", None, condition), st.none() | conditions)  # fmt: skip
GROUPS = [
    None,
    (G, ["v", None, "u", "nobody"]),
    (A, [3, 0, None, 1]),
    (Said("a > 1", lambda r: None if r[0] is None else r[0] > 1), [False, True]),
    (Said("upper(g)", lambda r: None if r[2] is None else r[2].upper()), ["U", "v", "V"]),
    (EITHER, [0, None, 2.25, 3]),
]


@dataclass(frozen=True)
class Query:
    """A query of the grammar."""

    asked: list[Aggregate]
    where: Said | None
    inner: Said | None
    group: tuple[Said, list] | None

    def text(self, table: str) -> str:
        source = table if self.inner is None else f"(SELECT * FROM {table} WHERE {self.inner}) AS p"
        where = "" if self.where is None else f" WHERE {self.where}"
        by = "" if self.group is None else f" GROUP BY {self.group[0]}"
        return f"SELECT {', '.join(map(repr, self.asked))} FROM {source}{where}{by}"

    def parts(self, rows: list[Record]) -> list[list[Record]]:
        """The records of each group."""
        kept = [row for row in rows if all(c is None or c.of(row) is True for c in (self.inner, self.where))]
        if self.group is None:
            return [kept]
        by, keys = self.group
        return [[row for row in kept if by.of(row) == key] for key in keys]


queries = st.builds(
    Query,
    st.lists(aggregates, min_size=1, max_size=3, unique_by=repr),
    st.none() | conditions, st.none() | conditions, st.sampled_from(GROUPS),
)  # fmt: skip


@pytest.fixture(scope="module")
def con():
    return duckdb.connect(config={"threads": 1})


@pytest.fixture(scope="module")
def drawn():
    with pytest.MonkeyPatch.context() as patch:
        yield without_noise(patch)


def written(value: Value) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def answered(query: Query, rows: list[Record], con, drawn):
    """Exact values and facts of each release."""
    values = ", ".join("(" + ", ".join(map(written, row)) + ")" for row in rows)
    con.execute("CREATE OR REPLACE TABLE t (a INTEGER, x DOUBLE, g VARCHAR, b BOOLEAN)")
    if rows:
        con.execute(f"INSERT INTO t VALUES {values}")
    drawn.clear()
    keys = None if query.group is None else query.group[1]
    answer = pdrisk.sql(query.text("t"), con, eps=1, keys=keys, curator=True)
    known = [
        {**facts, "whole": line.global_sensitivity} for facts, line in zip(risks(answer), lines(answer), strict=True)
    ]
    return list(drawn.answers), known


SLACK = 2.0**-25  # the lattice: some 2**-30 of a sensitivity for each record


class TestRandomQueries:
    """Values are those of brute force; a neighbour's differ in one group at most, and by its local sensitivity."""

    @pytest.mark.slow
    @given(query=queries, rows=tables)
    def test_values_and_numbers_of_records(self, query, rows, con, drawn):
        values, facts = answered(query, rows, con, drawn)
        for one, found, known in zip(query.asked, values, facts, strict=True):
            expected = [one.answer(part) for part in query.parts(rows)]
            assert found.tolist() == pytest.approx(expected, abs=32 * SLACK), one
            assert (known["local_sensitivity"] <= known["whole"]).all()

    @given(query=queries, rows=tables, person=records)
    def test_one_person(self, query, rows, person, con, drawn):
        without, facts_without = answered(query, rows, con, drawn)
        including, facts_with = answered(query, [*rows, person], con, drawn)
        for before, after, known, other in zip(without, including, facts_without, facts_with, strict=True):
            change = abs(after - before)
            whole = known["whole"]
            assert (change > 0).sum() <= 1  # groups are disjoint: their changes add up to that of one
            assert (change <= known["local_sensitivity"] + whole * SLACK).all()
            assert (change <= other["local_sensitivity"] + whole * SLACK).all()
            assert change.sum() <= whole * (1 + SLACK)
            assert abs(known["n"] - other["n"]).sum() <= 1
