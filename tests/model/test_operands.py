"""Filters and SQL judge operands by one rule, and differ where the languages do."""

import itertools

import pandas as pd
import pytest

from pdrisk._model.expressions.kinds import DATE, DURATION, MIXED, NOTHING, NUMBER, PERIOD, TEXT, TIME, TRUTH, ZONED
from pdrisk._model.expressions.nodes import ARITHMETIC, COMPARISONS, LOGIC, MEMBERSHIP, MISSING, SIGNS
from pdrisk._model.expressions.operands import comparable, gives, takes
from pdrisk._model.rowwise import judged
from pdrisk._sql.expressions.judged_expressions import text
from pdrisk._sql.relations.from_clause import Rows, relation_of
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.parse import parsed
from pdrisk.errors import ParameterError

ONE = pd.Timestamp("2020-01-31 12:00")
FRAME = pd.DataFrame(
    {
        "number": [1, 2], "other": [1.5, 2.5], "truth": [True, False], "word": ["a", "b"], "time": [ONE, ONE],
        "zoned": [ONE.tz_localize("UTC")] * 2,
    }
)  # fmt: skip
KINDS = {"number": NUMBER, "other": NUMBER, "truth": TRUTH, "word": TEXT, "time": TIME, "zoned": ZONED}
SAME_IN_SQL = {"==": "=", "!=": "<>"}


def is_filter(where: str) -> bool:
    try:
        return judged(where, FRAME.astype({"word": "string"}), dict) is not None
    except ParameterError:
        return False


@pytest.fixture(scope="module")
def rows():
    return Rows(relation_of(parsed("SELECT 1 FROM t"), Sources(None, {"t": FRAME})), {})


def is_sql(where: str, rows: Rows) -> bool:
    node = parsed(f"SELECT count(*) FROM t WHERE {where}").where
    assert node is not None
    try:
        return text(node, rows).kind == TRUTH
    except ParameterError:
        return False


class TestBothFrontEnds:
    """What either takes is what the judge says."""

    def test_comparisons(self, rows):
        for left, right in itertools.product(KINDS, repeat=2):
            for symbol in COMPARISONS:
                said = comparable(KINDS[left], KINDS[right])
                assert is_filter(f"{left} {symbol} {right}") == said, (left, symbol, right)
            for symbol in ("==", "!=", "<"):
                said = comparable(KINDS[left], KINDS[right], sql=True)
                assert is_sql(f"{left} {SAME_IN_SQL.get(symbol, symbol)} {right}", rows) == said, (left, symbol, right)

    def test_arithmetic(self, rows):
        for left, right in itertools.product(KINDS, repeat=2):
            kinds = (KINDS[left], KINDS[right])
            for symbol in ("+", "//"):
                said = all(takes(symbol, kind) for kind in kinds) and set(kinds) != {TRUTH}
                assert is_filter(f"{left} {symbol} {right} > 1") == said, (left, symbol, right)
                said = all(takes(symbol, kind, sql=True) for kind in kinds)
                assert is_sql(f"{left} {symbol} {right} > 1", rows) == said, (left, symbol, right)

    def test_conditions(self, rows):
        for name, kind in KINDS.items():
            assert is_filter(f"not {name}") == takes("not", kind), name
            assert is_sql(f"NOT {name}", rows) == takes("not", kind, sql=True), name
            assert is_filter(f"{name} or number > 1") == takes("or", kind), name
            assert is_sql(f"{name} OR number > 1", rows) == takes("or", kind, sql=True), name


def test_what_operations_give():
    assert {gives(symbol) for symbol in (*ARITHMETIC, *SIGNS)} == {NUMBER}
    assert {gives(symbol) for symbol in (*COMPARISONS, *MEMBERSHIP, *MISSING, *LOGIC, "between")} == {TRUTH}


@pytest.mark.parametrize("sql", [False, True])
def test_kinds_are_of_one_family_or_another(sql):
    kinds = (NUMBER, TRUTH, TEXT, DATE, TIME, ZONED, DURATION, PERIOD, MIXED, "uuid")
    alike = {frozenset(pair) for pair in itertools.combinations(kinds, 2) if comparable(*pair, sql=sql)}
    assert alike == {frozenset({DATE, TIME}), *([] if sql else [frozenset({NUMBER, TRUTH})])}
    assert all(comparable(kind, kind, sql=sql) and comparable(kind, NOTHING, sql=sql) for kind in kinds)


def test_a_null_without_a_type_stands_in_sql_only():
    for symbol in (*ARITHMETIC, *SIGNS, *LOGIC):
        assert takes(symbol, NOTHING, sql=True)
        assert not takes(symbol, NOTHING)


def test_what_operations_take():
    kinds = (NUMBER, TRUTH, TEXT, DATE, TIME, ZONED, DURATION, PERIOD, MIXED, "uuid")
    for symbol in (*ARITHMETIC, *SIGNS):
        assert [kind for kind in kinds if takes(symbol, kind)] == [NUMBER, TRUTH]
        assert [kind for kind in kinds if takes(symbol, kind, sql=True)] == [NUMBER]
    for symbol, sql in itertools.product(LOGIC, (False, True)):
        assert [kind for kind in kinds if takes(symbol, kind, sql=sql)] == [TRUTH]
    for symbol in (*COMPARISONS, *MEMBERSHIP, *MISSING):
        assert all(takes(symbol, kind) for kind in kinds)
