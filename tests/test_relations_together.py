"""Several tables in statements of several queries: each query joins what it names, and all of them see one moment."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, Ledger, ParameterError
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

RNG = np.random.default_rng(7)
PATIENTS = pd.DataFrame({"pid": np.arange(60), "canton": RNG.choice(["ZH", "BE"], 60), "age": RNG.integers(0, 90, 60)})
STAYS = pd.DataFrame(
    {"pid": RNG.integers(0, 70, 90), "code": RNG.choice(["a", "b"], 90), "days": RNG.integers(0, 9, 90)}
)
TABLES = {"patients": PATIENTS, "stays": STAYS}
JOINED = "patients p JOIN stays s USING (pid)"
# All rows count, so that DuckDB itself tells the answer.
EVERYTHING = {"person": "pid", "rows": 50, "bounds": (0, 100)}
QUERIES = {
    "answers of joins": (
        "SELECT COUNT(*) FROM patients p JOIN stays s USING (pid) UNION ALL SELECT COUNT(*) FROM stays WHERE pid "
        "IN (SELECT pid FROM patients)"
    ),
    "one table, then two": (
        "SELECT COUNT(*) FROM stays UNION ALL SELECT COUNT(*) FROM patients p JOIN stays s USING (pid) UNION ALL "
        "SELECT COUNT(*) FROM patients"
    ),
    "rows in an answer": (
        "SELECT COUNT(*) FROM (SELECT pid FROM stays UNION ALL SELECT pid FROM patients) UNION ALL SELECT "
        "COUNT(*) FROM patients"
    ),
    "different rows": "SELECT COUNT(*) FROM (SELECT pid, code FROM stays UNION SELECT pid, canton FROM patients)",
    "people in parts": (
        "SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid UNION ALL SELECT pid, 1 AS n FROM "
        "patients)"
    ),
    "people in all parts": (
        "SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid UNION ALL SELECT pid, COUNT(*) AS "
        "n FROM patients GROUP BY pid)"
    ),
    "answers over people": (
        "SELECT COUNT(*) AS v FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid) WHERE n > 1 UNION ALL "
        "SELECT COUNT(*) FROM (SELECT DISTINCT pid FROM stays)"
    ),
    "joins inside a sum of answers": (
        "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM patients p JOIN stays s USING (pid) UNION ALL SELECT "
        "COUNT(*) FROM stays)"
    ),
    "scalar": "SELECT COUNT(*) FROM patients p JOIN stays s USING (pid) WHERE age > (SELECT AVG(age) FROM patients)",
    "scalar of a join": (
        "SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients p JOIN stays s USING (pid))"
    ),
    "scalar in ON": (
        "SELECT COUNT(*) FROM patients p JOIN stays s ON p.pid = s.pid AND days > (SELECT AVG(days) FROM stays)"
    ),
    "scalar in IN": (
        "SELECT COUNT(*) FROM patients WHERE pid IN (SELECT pid FROM stays WHERE days > (SELECT AVG(days) FROM stays))"
    ),
    "scalar in EXISTS": (
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid AND days > "
        "(SELECT AVG(days) FROM stays))"
    ),
    "scalar over people": (
        "SELECT COUNT(*) FROM stays WHERE days >= (SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP"
        " BY pid))"
    ),
    "scalar of a CTE in a join": (
        "WITH old AS (SELECT * FROM patients WHERE age > 40), both_ AS (SELECT s.pid, days FROM old p JOIN stays "
        "s USING (pid)) SELECT COUNT(*) FROM stays WHERE days > (SELECT AVG(days) FROM both_)"
    ),
    "scalar of a CTE named like a table": (
        "WITH patients AS (SELECT * FROM patients WHERE age > 40) SELECT COUNT(*) + (SELECT COUNT(*) FROM stays s "
        "JOIN patients p USING (pid)) FROM stays"
    ),
    "scalar of a CTE in EXISTS": (
        "WITH patients AS (SELECT * FROM patients WHERE age > 40) SELECT COUNT(*) + (SELECT COUNT(*) FROM stays s "
        "WHERE EXISTS (SELECT 1 FROM patients p WHERE p.pid = s.pid)) FROM stays"
    ),
    "grouping sets of a join": (
        "SELECT canton, COUNT(*), SUM(days) FROM patients p JOIN stays s USING (pid) GROUP BY ROLLUP (canton) "
        "ORDER BY ALL"
    ),
    "grouping sets with IN": (
        "SELECT canton, COUNT(*) FROM patients WHERE pid IN (SELECT pid FROM stays WHERE code = 'a') GROUP BY "
        "ROLLUP (canton) ORDER BY ALL"
    ),
    "grouping sets with NOT EXISTS": (
        "SELECT canton, COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid) "
        "GROUP BY ROLLUP (canton) ORDER BY ALL"
    ),
    "grouping sets over people": (
        "SELECT n, COUNT(*) FROM (SELECT pid, BOOL_OR(days > 4) AS n FROM stays GROUP BY pid) GROUP BY ROLLUP (n)"
        " ORDER BY ALL"
    ),
}


def opened(tmp_path):
    con = duckdb.connect(tmp_path / "people.db")
    for name, frame in TABLES.items():
        con.register("frame", frame)
        con.execute(f"CREATE TABLE {name} AS FROM frame")
        con.unregister("frame")
    return con


def groups_of(name):
    if not name.startswith("grouping"):
        return {}
    if name == "grouping sets over people":
        return {"keys": {"n": [False, True]}}
    return {"keys": {"canton": ["ZH", "BE"]}, "constant": {"patients": ["canton"]}}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("kind", ["frames", "tables", "both"])
def test_as_duckdb(name, kind, tmp_path, monkeypatch):
    without_noise(monkeypatch)
    con = opened(tmp_path)
    named = {"frames": TABLES, "tables": {}, "both": {"stays": STAYS}}[kind]
    asked = {**EVERYTHING, "eps": 5, **groups_of(name)}
    answer = pdrisk.sql(QUERIES[name], None if kind == "frames" else con, tables=named, **asked)
    expected = con.execute(QUERIES[name]).df()
    assert len(answer) == len(expected)
    for own, theirs in zip(answer, expected, strict=True):
        for value, other in zip(answer[own].tolist(), expected[theirs].tolist(), strict=True):
            if isinstance(other, float):  # margins are least squares, whose last digits differ between processors
                assert value == pytest.approx(other, rel=1e-12, nan_ok=True)
            else:
                assert (None if pd.isna(value) else value) == (None if pd.isna(other) else other)


FORBIDDEN = {  # of patients, whose age the owner does not allow
    "an aggregate": "SELECT AVG(n) FROM (SELECT pid, SUM(age) AS n FROM patients GROUP BY pid)",
    "a condition": "SELECT COUNT(*) FROM stays WHERE pid IN (SELECT pid FROM patients WHERE age > 1)",
    "a renamed column": (
        "SELECT COUNT(*) FROM (SELECT pid, age AS q FROM patients) p JOIN stays s USING (pid) WHERE q > 1"
    ),
    "a column behind a quote": (
        "SELECT COUNT(*) FROM patients p JOIN (SELECT * FROM stays WHERE code = '\"' OR code = '\" AS \"') s ON "
        "p.pid = s.pid AND p.age > 1"
    ),
    "a name in capitals": "SELECT COUNT(*) FROM patients p JOIN stays s ON p.pid = s.pid AND p.AGE > s.days",
    "a star": "SELECT AVG(age) FROM (SELECT * FROM patients) p JOIN stays s USING (pid)",
    "an order": (
        "SELECT COUNT(*) FROM (SELECT pid, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY age) AS r FROM patients) WHERE "
        "r = 1"
    ),
    "the row before": (
        "SELECT COUNT(*) FROM (SELECT pid, LAG(age) OVER (PARTITION BY pid ORDER BY canton) AS q FROM patients) WHERE "
        "q > 1"
    ),
    "a group": "SELECT COUNT(*) FROM (SELECT pid, age FROM patients GROUP BY ALL)",
}
ALLOWED = {
    "a join": "SELECT SUM(days) FROM patients p JOIN stays s USING (pid)",
    "a text of its name": "SELECT COUNT(*) FROM patients JOIN stays USING (pid) WHERE canton = 'age' OR code = '\"age'",
    "another alias of its name": "SELECT COUNT(*) AS age FROM patients p JOIN stays s USING (pid)",
    "people": "SELECT COUNT(*) FROM (SELECT pid, SUM(days) AS n FROM stays GROUP BY pid) WHERE n > 1",
}


class TestForbiddenColumns:
    """What an owner does not allow is not read inside FROM either; tables that have it may be joined."""

    def ask(self, query, book):
        ledger = book(eps=9, policy={"refuse_columns": ["Age"]})
        pdrisk.sql(query, eps=1, ledger=ledger, tables=TABLES, **EVERYTHING)
        return ledger

    @pytest.mark.whole
    @pytest.mark.parametrize("query", FORBIDDEN.values(), ids=FORBIDDEN.keys())
    def test_refused(self, query, book):
        with pytest.raises(pdrisk.PolicyError, match="the owner does not allow column 'age'"):
            self.ask(query, book)

    @pytest.mark.whole
    @pytest.mark.parametrize("query", ALLOWED.values(), ids=ALLOWED.keys())
    def test_answered(self, query, book):
        assert self.ask(query, book).remaining().spent == 1


REFUSED = [
    (
        (
            "SELECT COUNT(*) FROM (SELECT pid FROM stays UNION SELECT pid FROM patients) LIMIT (SELECT COUNT(*) FROM "
            "stays)"
        ),
        "LIMIT takes a whole number",
    ),
    ("SELECT COUNT(*) FROM (SELECT days FROM stays UNION SELECT age FROM patients)", "group by pid"),
    ("SELECT COUNT(*) FROM (SELECT pid FROM stays UNION ALL SELECT pid FROM patients LIMIT 9)", "LIMIT in a subquery"),
    (
        (
            "SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid UNION ALL SELECT 1, COUNT(*) FROM "
            "stays)"
        ),
        "group by pid",
    ),
    ("SELECT SUM(n) FROM (SELECT pid, 1 AS n FROM stays UNION ALL SELECT 1, COUNT(*) FROM stays)", "group by pid"),
    ("SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY ROLLUP (pid))", "needs the public list"),
    (
        (
            "SELECT COUNT(*) FROM patients p JOIN (SELECT pid, COUNT(*) AS n FROM stays GROUP BY ROLLUP (pid)) s "
            "USING (pid)"
        ),
        "group by pid",
    ),
    ("SELECT COUNT(*) FROM (SELECT 1 AS x FROM stays GROUP BY GROUPING SETS ((), ()))", "GROUP BY in a subquery"),
    (
        "SELECT COUNT(*) FROM patients WHERE pid IN (SELECT pid FROM stays GROUP BY GROUPING SETS ((pid), ()))",
        "group by pid",
    ),
    (
        (
            "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid GROUP BY "
            "GROUPING SETS ((), ()))"
        ),
        "EXISTS asks",
    ),
    (
        "SELECT COUNT(*) FROM patients p WHERE age > (SELECT AVG(days) FROM stays s WHERE s.pid = p.pid)",
        "around the subquery",
    ),
    ("SELECT COUNT(*) FROM patients WHERE age IN (SELECT AVG(age) FROM patients)", "group by pid"),
    ("SELECT COUNT(*) FROM patients JOIN (SELECT COUNT(*) AS pid FROM stays) s USING (pid)", "group by pid"),
    ("SELECT pid FROM stays UNION ALL SELECT pid FROM patients", "neither aggregated"),
    ("SELECT * FROM (SELECT COUNT(*) AS n FROM stays) WHERE n IN (SELECT days FROM stays)", "over noisy values"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED)
def test_refused(query, why):
    with pytest.raises(ParameterError, match=why):
        pdrisk.sql(query, eps=1, tables=TABLES, **EVERYTHING)


def test_all_queries_see_one_moment(tmp_path, monkeypatch):
    without_noise(monkeypatch)
    con = opened(tmp_path)
    writer = con.cursor()
    released = pdrisk._sql.released

    def and_then_somebody_comes(*args, **options):
        found = released(*args, **options)
        writer.execute("INSERT INTO stays VALUES (1, 'a', 3)")
        return found

    monkeypatch.setattr(pdrisk._sql, "released", and_then_somebody_comes)
    query = f"SELECT COUNT(*) AS n FROM {JOINED} UNION ALL SELECT COUNT(*) FROM {JOINED} WHERE age >= 0"
    first, second = pdrisk.sql(query, con, eps=1, **EVERYTHING)["n"]
    assert first == second == con.execute(f"SELECT COUNT(*) FROM {JOINED}").fetchone()[0] - 2


def test_a_query_of_one_frame_costs_once_wherever_it_stands(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=9)
    data = Dataset(TABLES, person="pid", ledger=ledger)
    before = data.sql("SELECT COUNT(DISTINCT pid) AS n FROM stays", eps=1)
    left = ledger.remaining().eps
    query = f"SELECT COUNT(DISTINCT pid) AS n FROM {JOINED} UNION ALL SELECT COUNT(DISTINCT pid) FROM stays"
    after = data.sql(query, eps=2)
    assert after["n"].iloc[1] == before["n"].item() and ledger.remaining().eps == left - 1


def test_files_that_are_one_table(tmp_path, monkeypatch):
    without_noise(monkeypatch)
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    STAYS[:40].to_parquet(paths[0])
    STAYS[40:].to_parquet(paths[1])
    codes = [tmp_path / "codes.parquet"]
    pd.DataFrame({"code": ["a"]}).to_parquet(codes[0])
    query = "SELECT COUNT(*) AS n FROM patients p JOIN stays s USING (pid) JOIN codes USING (code)"
    asked = {**EVERYTHING, "public": ["codes"]}
    answer = pdrisk.sql(query, eps=1, patients=PATIENTS, stays=paths, codes=codes, **asked)
    expected = PATIENTS.merge(STAYS, on="pid")["code"].eq("a").sum()
    assert answer["n"].item() == expected


def test_people_that_a_frame_declares_are_not_forgotten():
    declared = {name: frame.dprisk.declare(person="pid") for name, frame in TABLES.items()}
    with pytest.raises(ParameterError, match="joins are refused"):
        pdrisk.sql(f"SELECT COUNT(*) FROM {JOINED}", eps=1, tables=declared)
    with pytest.raises(ParameterError, match="COUNT is a number of rows"):
        pdrisk.sql(f"SELECT COUNT(*) FROM {JOINED}", eps=1, tables=declared, person="pid")
    with pytest.raises(ParameterError, match="person= is age here and pid"):
        pdrisk.sql("SELECT COUNT(DISTINCT age) FROM patients", eps=1, tables=declared, person="age")
    for data in (declared["stays"], {"stays": declared["stays"]}, declared):
        name = "stays" if isinstance(data, dict) else "data"
        with pytest.raises(ParameterError, match="COUNT is a number of rows"):
            Dataset(data).sql(f"SELECT COUNT(*) FROM {name}", eps=1)


def test_what_is_declared_of_one_table_does_not_hinder_another():
    declared = {"constant": {"patients": ["canton"]}, "per_person": {"patients": "one"}}
    data = Dataset(TABLES, person="pid", **declared)
    query = f"SELECT COUNT(DISTINCT pid) AS n FROM {JOINED} UNION ALL SELECT COUNT(DISTINCT pid) FROM stays"
    answer = data.sql(query, eps=200)
    assert answer["n"].tolist() == [len(set(STAYS["pid"]) & set(PATIENTS["pid"])), STAYS["pid"].nunique()]
    with pytest.raises(ParameterError, match="COUNT is a number of rows"):  # which only patients have one of
        data.sql("SELECT COUNT(*) FROM stays", eps=1)
