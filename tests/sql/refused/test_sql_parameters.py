"""A parameter's value is the caller's word: it is marked, texts have its name instead, and it decides as ever."""

import datetime
import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import pandas as pd
import pytest

import pdrisk
from errors_said import everything_said
from sql_people import PEOPLE, described, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

NUMBER, WORD, DAY = 47.8125, "north-east_of_nowhere", datetime.date(2020, 3, 17)
MEAN = float(PEOPLE["distance"].mean())
COUNT = "SELECT COUNT(*) AS n FROM people"
# Query, parameters, and what public texts say of the filter.
QUERIES = {
    "WHERE": (f"{COUNT} WHERE distance > ?", [MEAN], "(distance > ?)"),
    "by name": (f"{COUNT} WHERE distance > $mean AND age < 50", {"mean": MEAN}, "((distance > $mean) AND (age < 50))"),
    "both sides": (f"{COUNT} WHERE ? < distance", [NUMBER], "(? < distance)"),
    "IN": (f"{COUNT} WHERE region IN (?, 'south')", [WORD], "(region IN (?, 'south'))"),
    "BETWEEN": (f"{COUNT} WHERE distance BETWEEN ? AND ?", [NUMBER, 99.5], "(distance BETWEEN ? AND ?)"),
    "a pattern": (f"{COUNT} WHERE region LIKE ?", [WORD], "(region ~~ ?)"),
    "an expression": (f"{COUNT} WHERE distance * ? // ? > 1", [NUMBER, 2], "(((distance * ?) // ?) > 1)"),
    "a cast": (f"{COUNT} WHERE distance > CAST(? AS DOUBLE)", [f"{NUMBER}"], "(distance > CAST(? AS DOUBLE))"),
    "a date": (f"{COUNT} WHERE day > $day", {"day": DAY}, "(day > $day)"),
    "a decimal": (f"{COUNT} WHERE distance < ?", [Decimal("47.8125")], "(distance < ?)"),
    "CASE": (f"{COUNT} WHERE CASE WHEN age > $a THEN distance > $b ELSE false END", {"a": 40, "b": NUMBER},
             "CASE WHEN (age > $a) THEN (distance > $b) ELSE false END"),
    "a subquery": ("SELECT COUNT(*) AS n FROM (SELECT * FROM people WHERE distance > ?)", [NUMBER], "(distance > ?)"),
    "a column of one": ("SELECT COUNT(*) AS n FROM (SELECT distance - ? AS off FROM people) WHERE off > 0", [NUMBER],
                        "((distance - ?) > 0)"),
    "a CTE": ("WITH far AS (SELECT * FROM people WHERE distance > $m) SELECT COUNT(*) AS n FROM far", {"m": NUMBER},
              "(distance > $m)"),
    "an alias": ("SELECT distance > ? AS far, COUNT(*) AS n FROM people WHERE far GROUP BY far", [NUMBER],
                 "(distance > ?)"),
}  # fmt: skip
# Those that decide what is read elsewhere: nothing is said of a filter then.
ELSEWHERE = {
    "FILTER": ("SELECT COUNT(*) FILTER (WHERE distance > ?) AS n FROM people", [NUMBER]),
    "an argument": (
        "SELECT dp_sum(CASE WHEN distance > ? THEN 1 ELSE 0 END, lo := 0, hi := 1) AS n FROM people",
        [NUMBER],
    ),
    "a group": ("SELECT distance > $m AS far, COUNT(*) AS n FROM people GROUP BY far", {"m": NUMBER}),
    "a column": ("SELECT dp_sum(x, lo := 0, hi := 1) FROM (SELECT distance * ? AS x FROM people)", [NUMBER]),
}
DECLARED = {
    "eps, lo and hi": ("SELECT dp_mean(distance, eps := ?, lo := ?, hi := ?) FROM people", [1, 1, 675]),
    "q": ("SELECT QUANTILE_CONT(distance, $q) FROM people", {"q": 0.25}),
    "what is noisy": ("SELECT COUNT(*) * ? AS n FROM people HAVING COUNT(*) > ? ORDER BY COUNT(*) * ? LIMIT ?",
                      [2, 3, 4, 5]),
    "none": (f"{COUNT} WHERE distance > 47.8125", None),
}  # fmt: skip


def asked(query: str, params: object, **options):
    keys = {"keys": [True, False]} if "GROUP BY" in query else {}
    return pdrisk.sql(query, eps=None if "eps :=" in query else 1, params=params, bounds=(1, 675),
                      **keys, **{"people": PEOPLE} | options)  # fmt: skip


def secrets(params) -> list[str]:
    listed = params.values() if isinstance(params, dict) else params
    return [str(value) for value in listed if str(value) not in ("2", "40", "99.5")]


class TestMarked:
    """attrs, headings and the ledger say `where_trusted`, and the parameter's name in the place of its value."""

    @pytest.mark.parametrize("name", QUERIES)
    def test_a_filter(self, name):
        query, params, where = QUERIES[name]
        answer = asked(query, params)
        assert described(answer).where_trusted is True
        assert described(answer).where.replace('"', "") == where
        said = json.dumps([answer.attrs, *map(str, answer.columns)], default=str)
        said += pdrisk.explain(answer, "publication") + pdrisk.explain(answer)
        assert not [value for value in secrets(params) if value in said]

    @pytest.mark.parametrize("name", ELSEWHERE)
    def test_what_is_read(self, name):
        query, params = ELSEWHERE[name]
        answer = asked(query, params)
        assert described(answer).where_trusted is True
        assert f"{NUMBER}" not in json.dumps([answer.attrs, *map(str, answer.columns)], default=str)

    @pytest.mark.parametrize("name", DECLARED)
    def test_what_is_declared_or_written_out(self, name):
        answer = asked(*DECLARED[name])
        assert described(answer).where_trusted is False

    def test_a_truth_value_as_text(self):
        """DuckDB 1 has the same tree for ``true`` and for a cast of ``'t'``."""
        answer = asked(f"{COUNT} WHERE member = CAST(? AS BOOLEAN)", ["t"])
        assert described(answer).where_trusted is True
        assert described(answer).where.replace('"', "") == "(member = CAST(? AS BOOLEAN))"
        assert described(asked(f"{COUNT} WHERE member = true", None)).where_trusted is False

    def test_a_view_and_a_table(self):
        con = duckdb.connect()
        con.register("frame", PEOPLE)
        con.execute("CREATE TABLE people AS FROM frame; CREATE VIEW near AS SELECT * FROM people WHERE distance < 300")
        answer = pdrisk.sql("SELECT COUNT(*) FROM near WHERE age > $a", con, eps=1, params={"a": NUMBER})
        assert described(answer).where == '("distance" < 300) AND ("age" > $a)'
        assert described(pdrisk.sql("SELECT COUNT(*) FROM near", con, eps=1)).where_trusted is False

    @pytest.mark.parametrize("query", [
        "SELECT AVG(distance - ?) FROM people", "SELECT nonsense(?) FROM people", "SELECT distance > ? FROM people",
        "SELECT COUNT(*) FROM people WHERE region > ?", "SELECT COUNT(*) FROM people WHERE left(region, ?) = 'a'",
        "SELECT COUNT(*) FROM people WHERE ? + 1 > age",
        "SELECT COUNT(*) FROM people WHERE ? + 1", "SELECT COUNT(*) FROM people GROUP BY ?",
        "SELECT CAST(COUNT(*) AS INTEGER) + left('a', ?) FROM people", "SELECT COUNT(*) FROM people ORDER BY ?",
        "SELECT COUNT(*) + CAST(? AS TINYINT) FROM people", "SELECT substr('abc', ?, 2), COUNT(*) FROM people",
        "SELECT round(COUNT(*), ?) FROM people", "SELECT COUNT(*) FROM people WHERE regexp_matches(region, ?)",
        "SELECT COUNT(*) FROM people WHERE day > ?", "SELECT COUNT(*) FROM people LIMIT ?",
        "SELECT COUNT(*) FROM people WHERE round(distance, ?) = 1",
        "SELECT COUNT(*) FROM people GROUP BY left(region, ?)",
        "SELECT COUNT(*) FROM people WHERE distance = CAST(? AS DATE)",
    ])  # fmt: skip
    @pytest.mark.parametrize("value", ["SENTINEL[", 987654321987654321987654321, Decimal("9876.54321"), DAY])
    def test_errors(self, query, value):
        try:
            pdrisk.sql(query, eps=1, bounds=(1, 675), params=[value], people=PEOPLE)
        except pdrisk.ParameterError as error:
            said = everything_said(error)
            assert "SENTINEL" not in said
            assert "98765" not in said
            assert "9876.5" not in said
            assert "2020-03-17" not in said

    def test_a_missing_code(self):
        frame = PEOPLE.dprisk.declare(missing={"region": [WORD]})
        with pytest.raises(pdrisk.ParameterError) as caught:
            pdrisk.sql(f"{COUNT} WHERE region = $r", eps=1, params={"r": WORD}, people=frame)
        assert str(caught.value).startswith("$r is declared to stand for a missing answer")
        with pytest.raises(pdrisk.ParameterError, match=f"{WORD!r} is declared to stand"):
            pdrisk.sql(f"{COUNT} WHERE region = '{WORD}'", eps=1, people=frame)


class TestLedger:
    """The record of a question says so too; the value still tells questions apart."""

    @pytest.mark.parametrize("name", [*QUERIES, *ELSEWHERE])
    def test_records(self, name, path):
        query, params = (QUERIES | ELSEWHERE)[name][:2]
        ledger = pdrisk.Ledger(path, dataset="people", eps=5)
        asked(query, params, ledger=ledger)
        history = ledger.history()
        said = history.astype(str).to_csv()
        assert not [value for value in secrets(params) if value in said]
        with closing(sqlite3.connect(path)) as con:
            bodies = " ".join(row[0] for row in con.execute("SELECT body FROM records"))
        assert '"where_trusted":true' in bodies.replace(" ", "")
        assert not [value for value in secrets(params) if value in bodies]

    def test_columns_that_the_owner_refuses(self, path):
        ledger = pdrisk.Ledger(path, dataset="people", eps=5, policy={"refuse_columns": ["sex"]})
        assert len(asked(f"{COUNT} WHERE distance > ?", [NUMBER], ledger=ledger)) == 1
        with pytest.raises(pdrisk.PolicyError, match="'sex'"):
            asked(f"{COUNT} WHERE sex = ?", ["f"], ledger=ledger)

    @pytest.mark.parametrize("form", [
        f"{COUNT} WHERE distance > ?", "SELECT COUNT(*) FILTER (WHERE distance > ?) AS n FROM people",
        "SELECT dp_sum(CASE WHEN distance > ? THEN 1 ELSE 0 END, lo := 0, hi := 1) AS n FROM people",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM people WHERE distance > ?)",
    ])  # fmt: skip
    def test_other_values_are_other_questions(self, form, path):
        ledger = pdrisk.Ledger(path, dataset="people", eps=1e9)
        d = pdrisk.Dataset({"people": PEOPLE}, ledger=ledger)
        values = [47.8125, 100, 100.5, 300]
        first = [
            d.sql(form, eps=1, bounds=(1, 675), params=[value], mechanism="laplace")["n"].item() for value in values
        ]
        spent = str(ledger.remaining())
        again = [
            d.sql(form, eps=1, bounds=(1, 675), params=[value], mechanism="laplace")["n"].item() for value in values
        ]
        assert len(set(first)) == len(values)
        assert again == first
        assert str(ledger.remaining()) == spent

    def test_a_least_group_is_counted_for_each_value(self, path, monkeypatch):
        # Both are written alike, COUNT(*) FILTER (WHERE (distance > ?)).
        ledger = pdrisk.Ledger(path, dataset="people", eps=1e9, policy={"least_group": {"size": 50, "eps": 1e5}})
        query = (
            "SELECT COUNT(*) FILTER (WHERE distance > ?) AS a, COUNT(*) FILTER (WHERE distance > ?) AS b FROM people"
        )
        answer = pdrisk.sql(query, eps=1e5, params=[1, 900], people=PEOPLE, ledger=ledger)
        assert answer["a"].notna().all()
        assert answer["b"].isna().all()


class TestValuesDecide:
    """What is computed is what the value says, whatever stands in texts."""

    def test_as_written_out(self, monkeypatch):
        draws = without_noise(monkeypatch)
        for query, params, _ in QUERIES.values():
            written = query
            for name, value in params.items() if isinstance(params, dict) else [("?", value) for value in params]:
                literal = f"DATE '{value}'" if isinstance(value, datetime.date) else f"{value}"
                literal = f"'{value}'" if isinstance(value, str) else literal
                written = written.replace("?", literal, 1) if name == "?" else written.replace(f"${name}", literal)
            asked(query, params)
            asked(written, None)
        values = [exact.tolist() for exact, _, _ in draws]
        assert values[::2] == values[1::2]

    def test_groups_by_equal_values_are_one(self):
        frame = pd.DataFrame({"age": [20, 31, 32]})
        query = "SELECT age // ? AS k, COUNT(*) AS n FROM t GROUP BY age // ?"
        answer = pdrisk.sql(query, eps=1e6, keys=[2, 3], params=[10, 10], t=frame)
        assert answer["k"].tolist() == [2, 3]
