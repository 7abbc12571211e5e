"""Filters in SQL that ask for a declared missing code, which is NULL before they see it."""

import pandas as pd
import pytest

import pdrisk

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

DAY = pd.Timestamp("1900-01-01")
FRAME = pd.DataFrame(
    {"x": [-1, 3, 5, -2, 7], "g": ["?", "a", "b", "a", "a"], "day": [DAY, DAY, *[DAY.replace(2020)] * 3]}
)
DECLARED = FRAME.dprisk.declare(missing={"x": [-1, -2], "g": ["?"], "day": [DAY]})
REFUSED = {
    "x = -1": "x",
    "-1 = x": "x",
    "x IN (3, -2)": "x",
    "x IN (-1.0)": "x",
    "x > 9 OR x = -1": "x",
    "g = '?' AND x > 3": "g",
    "day = '1900-01-01'": "day",
    "day = DATE '1900-01-01'": "day",
    "x = $one": "x",
}


class TestCodes:
    """A code in a condition is refused before anything is paid; elsewhere it does no harm."""

    @pytest.mark.parametrize("form", ["SELECT COUNT(*) FROM t WHERE {}", "SELECT COUNT(*) FILTER (WHERE {}) FROM t"])
    @pytest.mark.parametrize("where", REFUSED)
    def test_refused(self, where, form, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        named = {"params": {"one": -1}} if "$" in where else {}
        with pytest.raises(pdrisk.ParameterError, match=f"no record has it: ask for {REFUSED[where]} IS NULL"):
            pdrisk.sql(form.format(where), eps=1, t=DECLARED, ledger=ledger, **named)
        assert ledger.history()["event"].tolist() == ["opened"]

    def test_refused_under_another_name(self):
        with pytest.raises(pdrisk.ParameterError, match="ask for x IS NULL"):
            pdrisk.sql("SELECT COUNT(*) FROM (SELECT x AS y FROM t) WHERE y = -1", eps=1, t=DECLARED)
        with pytest.raises(pdrisk.ParameterError, match="ask for x IS NULL"):
            pdrisk.sql("SELECT COUNT(*) FROM (SELECT g FROM t WHERE x = -1)", eps=1, t=DECLARED)

    def test_an_odd_name_is_told_as_sql_writes_it(self):
        odd = FRAME.rename(columns={"x": "hours a week"}).dprisk.declare(missing={"hours a week": [-1]})
        with pytest.raises(pdrisk.ParameterError, match=r'in "hours a week", so no .* ask for "hours a week" IS'):
            pdrisk.sql('SELECT COUNT(*) FROM t WHERE "hours a week" = -1', eps=1, t=odd)

    @pytest.mark.parametrize(
        "where",
        [
            *("x = 3", "x > -1", "x + 0 = -1", "x IS NULL", "x IN (3, 5)", "g <> 'a'", "day > '1900-01-01'"),
            *(
                "NOT x = -1",
                "x <> -1",
                "x NOT IN (-1, 3)",
                "NULLIF(x, -1) = 3",
                "CASE WHEN x = -1 THEN false ELSE true END",
            ),
        ],
    )
    def test_answered(self, where):
        answer = pdrisk.sql(f"SELECT COUNT(*) FROM t WHERE {where}", eps=1, t=DECLARED)
        assert len(answer) == 1

    def test_without_declaration(self):
        answer = pdrisk.sql("SELECT COUNT(*) AS k FROM t WHERE x = -1", eps=1000, t=FRAME)
        assert answer["k"].iloc[0] == pytest.approx(1, abs=0.5)

    def test_a_schema_over_a_table(self):
        duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema({"x": pa.Column(metadata={"dprisk": {"missing": [-1]}})})
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT unnest([-1, 3]) AS X")
        with pytest.raises(pdrisk.ParameterError, match="ask for X IS NULL"):
            pdrisk.sql("SELECT COUNT(*) FROM t WHERE x = -1", con, eps=1, schema=schema)
