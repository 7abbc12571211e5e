"""Numbers and truth values of any SQL type are the floats nearest to them; anything else is refused, but counted."""

import math

import pytest

from functions_on_duckdb import FUNCTIONS, MEAN, connection, one, refusal

NUMBERS = {
    "BOOLEAN": "true",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER"), "3"),
    **dict.fromkeys(
        ("UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL(4, 1)", "DECIMAL(18, 3)", "DECIMAL(38, 9)"), "3"
    ),
}
OTHERS = {
    "VARCHAR": "'3'",
    "DATE": "DATE '2020-01-01'",
    "TIMESTAMP": "TIMESTAMP '2020-01-01 00:00:00'",
    "TIME": "TIME '12:00:00'",
    "INTERVAL": "INTERVAL 3 DAY",
    "BLOB": "'3'::BLOB",
    "BIT": "'101'::BIT",
    "UUID": "'00000000-0000-0000-0000-000000000003'::UUID",
    "ENUM('3', 'b')": "'3'",
    "INTEGER[]": "[3]",
    "INTEGER[1]": "[3]",
    "STRUCT(a INTEGER)": "{'a': 3}",
    "MAP(INTEGER, INTEGER)": "MAP {1: 3}",
    "JSON": "'3'",
}
BOUNDED = [function for function in FUNCTIONS if function.bounded]


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        yield own


def column(con, kind: str, value: str) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE t (x {kind})")
    con.execute(f"INSERT INTO t VALUES ({value}), (NULL), ({value})")


class TestNumbers:
    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("kind", NUMBERS)
    def test_every_function(self, con, kind):
        column(con, kind, NUMBERS[kind])
        for function in FUNCTIONS:
            assert isinstance(one(con, function.call()), float)
            present = 3 if function.name == "dp_count_star" else 2
            assert one(con, function.call(risk=True))["n"] == present

    @pytest.mark.parametrize(("kind", "value"), NUMBERS.items())
    def test_the_value(self, con, kind, value):
        column(con, kind, value)
        found = one(con, MEAN.call(lo="0", hi="4", risk=True))
        assert found["local_sensitivity"] == pytest.approx(1.0)  # two of 1 or 3 in [0, 4]: adding the far end

    @pytest.mark.parametrize(
        ("kind", "value", "clamped"),
        [
            ("HUGEINT", f"{2**126}", 4.0),
            ("HUGEINT", f"(-{2**126})", 0.0),
            ("UHUGEINT", f"{2**127}", 4.0),
            ("UBIGINT", f"{2**64 - 1}", 4.0),
            ("BIGINT", f"(-{2**62})", 0.0),
            ("DOUBLE", "'inf'", 4.0),
            ("FLOAT", "'-inf'", 0.0),
            ("DECIMAL(38, 0)", "9" * 38, 4.0),
        ],
    )
    def test_beyond_the_bounds(self, con, kind, value, clamped):
        column(con, kind, value)
        found = one(con, "dp_max_risk(x, 1, 0, 4)")
        assert found["local_sensitivity"] == 4.0 - clamped and found["n"] == 2

    @pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
    def test_nan_is_missing(self, con, kind):
        column(con, kind, "'nan'")
        for function in FUNCTIONS:
            present = 3 if function.name == "dp_count_star" else 0
            assert one(con, function.call(risk=True))["n"] == present
            assert math.isfinite(one(con, function.call()))

    def test_a_float_is_what_it_is(self, con):
        column(con, "FLOAT", "0.1")
        found = one(con, "dp_max_risk(x, 1, 0, 0.1)")  # a float32 of 0.1 is above 0.1: clamped to it
        assert found["local_sensitivity"] == 0.1 - 0.1
        assert one(con, "dp_max_risk(x, 1, 0, 0.3)")["local_sensitivity"] == 0.3 - 0.10000000149011612


class TestOthers:
    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("kind", OTHERS)
    @pytest.mark.parametrize("function", BOUNDED, ids=str)
    def test_is_refused(self, con, function, kind):
        column(con, kind, OTHERS[kind])
        word = kind.split("(")[0].split("[")[0] + ("[]" if kind.endswith("]") else "")
        said = refusal(con, f"SELECT {function.call()} FROM t")
        assert f"{function.name} needs numbers or truth values, but this column is of type {word}: CAST it" in said

    @pytest.mark.parametrize("kind", OTHERS)
    def test_is_counted(self, con, kind):
        column(con, kind, OTHERS[kind])
        assert one(con, "dp_count_risk(x, 1)")["n"] == 2
        assert isinstance(one(con, "dp_count(x, 1)"), float)

    def test_a_word_is_no_missing_number(self, con):
        column(con, "VARCHAR", "'nan'")
        assert one(con, "dp_count_risk(x, 1)")["n"] == 2
