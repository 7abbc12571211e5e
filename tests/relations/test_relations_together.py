"""Several tables in statements of several queries: each query joins what it names, and all of them see one moment."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, Ledger, ParameterError
from pdrisk._answer.answers.answer import Answer
from pdrisk._sql.relations import from_clause
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


class TestColumnsOfSubqueries:
    """Types and bounds of what subqueries show."""

    def asked(self, query, **options):
        con = duckdb.connect()
        con.execute("CREATE TABLE patients (pid INTEGER, born SMALLINT, paid DECIMAL(7,2), seen DATE)")
        con.execute("INSERT INTO patients SELECT i, 1950 + i % 3, i % 7, DATE '2020-01-01' + (i % 5)::INT "
                    "FROM range(90) t(i)")  # fmt: skip
        con.execute("INSERT INTO patients VALUES (90, NULL, NULL, NULL)")
        bounds = {"born": (1940, 2000), "paid": (0, 9), "seen": ("2020-01-01", "2020-12-31")}
        asked = {"person": "pid", "per_person": {"patients": "one"}, "bounds": bounds}
        return pdrisk.sql(query, con, eps=10**9, **{**asked, **options}), con.execute(query).df()

    @pytest.mark.parametrize(
        ("part", "other", "bounds"),
        [
            ("0 AS r", "paid", (0, 9)), ("paid AS r", "born", (0, 2000)), ("paid AS r", "paid", (0, 9)),
            ("CAST(0 AS DECIMAL(7,2)) AS r", "paid", (0, 9)), ("-paid AS r", "12", (-9, 12)),
        ],
    )  # fmt: skip
    def test_bounds_of_a_union_are_those_of_its_parts(self, part, other, bounds):
        query = f"SELECT AVG(r) AS m FROM (SELECT {part} FROM patients UNION ALL SELECT {other} FROM patients)"
        answer, plain = self.asked(query)
        assert Answer.from_attrs(answer.attrs).lines[0].bounds == bounds
        assert answer["m"][0] == pytest.approx(plain["m"][0], rel=1e-4)

    def test_bounds_of_the_call_are_those_of_a_union(self):
        query = "SELECT AVG(r) AS m FROM (SELECT 0 AS r FROM patients UNION ALL SELECT paid FROM patients)"
        answer, _ = self.asked(query, bounds={"r": (0, 20)})
        assert Answer.from_attrs(answer.attrs).lines[0].bounds == (0, 20)

    @pytest.mark.parametrize("whole", ["CAST(b AS VARCHAR)", "CAST(n AS VARCHAR)", "'x' || b",
                                       "CAST(CAST(FLOOR(b / 10) * 10 AS INTEGER) AS VARCHAR)"])  # fmt: skip
    def test_whole_numbers_of_people_as_text(self, whole):
        inner = "SELECT pid, born AS b, COUNT(*) AS n FROM patients WHERE born > 0 GROUP BY pid, born"
        query = f"SELECT {whole} AS y, COUNT(*) AS n FROM ({inner}) GROUP BY y ORDER BY y"
        keys = ["1950", "1951", "1952", "1", "x1950", "x1951", "x1952"]
        answer, plain = self.asked(query, keys=keys)
        assert answer[answer["n"] > 0].values.tolist() == plain.values.tolist()

    def test_numbers_with_fractions_as_text(self):
        with pytest.raises(
            ParameterError, match=r"depends on the engine.*CAST\(CAST\(FLOOR\(x\) AS INTEGER\) AS VARCHAR\)"
        ):
            self.asked("SELECT COUNT(*) FROM patients WHERE CAST(FLOOR(born / 10) * 10 AS VARCHAR) = '1950.0'")

    @pytest.mark.parametrize(
        "first",
        [
            "seen FROM patients ORDER BY seen LIMIT 1", "seen FROM patients ORDER BY 1 DESC LIMIT 1",
            "seen AS s FROM patients p WHERE born > 1950 ORDER BY s DESC, pid LIMIT 1",
            "seen FROM patients WHERE seen IS NOT NULL ORDER BY Seen DESC NULLS FIRST LIMIT 1",
        ],
    )  # fmt: skip
    def test_the_first_in_order_is_an_end(self, first):
        answer, plain = self.asked(f"SELECT COUNT(*) AS n FROM patients WHERE seen = (SELECT {first})")
        assert answer["n"].tolist() == plain["n"].tolist()

    @pytest.mark.parametrize(
        "first",
        [
            "seen FROM patients ORDER BY pid LIMIT 1", "seen FROM patients ORDER BY seen DESC NULLS FIRST LIMIT 1",
            "seen FROM patients ORDER BY seen LIMIT 1 OFFSET 1", "seen FROM patients ORDER BY seen LIMIT 2",
        ],
    )  # fmt: skip
    def test_any_other_is_none(self, first):
        with pytest.raises(ParameterError, match="neither aggregated nor in GROUP BY"):
            self.asked(f"SELECT COUNT(*) FROM patients WHERE seen = (SELECT {first})")

    def test_one_list_serves_both_columns_of_its_name(self):
        joined = "patients a JOIN patients b ON a.pid = b.pid"
        query = f"SELECT a.born, b.born, COUNT(*) AS n FROM {joined} WHERE a.born > 1950 GROUP BY a.born, b.born"
        answer, _ = self.asked(query, keys={"born": [1950, 1951, 1952]})
        assert answer.iloc[:, :2].values.tolist() == [[a, b] for a in (1951, 1952) for b in (1950, 1951, 1952)]
        own, _ = self.asked(query, keys={"born": [1950, 1951]})
        assert own["n"].tolist() == [0, 30]
        with pytest.raises(ParameterError, match="GROUP BY y needs"):  # another column, of the name of an alias
            self.asked("SELECT paid AS born, born AS y, COUNT(*) FROM patients GROUP BY paid, y", keys={"born": [1]})


class TestWhatIsSaid:
    def test_rows_of_a_product(self):
        joined = " ".join(f"JOIN stays s{at} USING (pid)" for at in range(5))
        query = f"SELECT COUNT(*) FROM patients {joined}"
        rows = {"patients": 1, "stays": 25}
        with pytest.raises(
            ParameterError, match=r"may have 9,765,625 rows here, 1 of patients times 25 of stays times"
        ):
            pdrisk.sql(query, eps=1, person="pid", rows=rows, tables=TABLES)
        assert len(pdrisk.sql(query, eps=1, person="pid", rows=9, tables=TABLES)) == 1

    def test_groups_by_their_text(self):
        query = "SELECT days % 2 AS d, COUNT(DISTINCT pid) FROM stays GROUP BY days % 2"
        with pytest.raises(ParameterError, match=r"several groups of by=\(days % 2\), and.*with k times the noise\.$"):
            pdrisk.sql(query, eps=1, person="pid", keys=[0, 1], tables=TABLES)


class TestOnce:
    """Each FROM of a text is judged once, however often it stands in what is planned."""

    def test_over_grouping_sets(self, monkeypatch):
        judged = []
        own = from_clause._judged
        monkeypatch.setattr(from_clause, "_judged", lambda *asked: judged.append(asked) or own(*asked))
        query = (
            "WITH a AS (SELECT canton, COUNT(*) AS n FROM patients p JOIN stays s USING (pid) GROUP BY canton), "
            "b AS (SELECT canton, COUNT(*) AS n FROM patients GROUP BY canton), "
            "c AS (SELECT 'a' AS w, * FROM a UNION ALL SELECT 'b' AS w, * FROM b) "
            "SELECT w, canton, SUM(n) FROM c GROUP BY ROLLUP (w, canton)"
        )
        options = {**EVERYTHING, "keys": {"canton": ["ZH", "BE"]}, "constant": {"patients": ["canton"]}}
        pdrisk.sql(query, eps=1, tables=TABLES, **options)
        assert len(judged) == 2

    def test_is_read_anew_with_other_values(self):
        """A condition by a noisy value is another one once the value is known."""
        query = "SELECT COUNT(*) AS n FROM (SELECT * FROM patients WHERE age >= (SELECT MAX(age) FROM patients) - 90)"
        found = pdrisk.sql(query, eps=10**9, tables=TABLES, **EVERYTHING)
        assert found["n"].tolist() == [60]


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
        "needs the public list",
    ),
    (
        (
            "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid GROUP BY "
            "GROUPING SETS ((), ()))"
        ),
        "EXISTS asks",
    ),
    (
        "SELECT COUNT(*) FROM patients p WHERE age > (SELECT AVG(days) FROM stays s WHERE s.pid <= p.pid)",
        "around the subquery",
    ),
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
