"""Several tables: what each accepted shape gives, and by the definition of neighbours what one person can change."""

import math
from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, ParameterError
from pdrisk._sql.tables import compiled_sources
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

CODES = pd.DataFrame({"code": ["a", "b", "c"], "chapter": ["I", "I", "II"], "weight": [1, 2, 3]})
WORDS = pd.DataFrame({"code": ["a", "a", "b", None], "word": ["cold", "cough", "flu", "none"]})
PUBLIC = ["codes", "words"]
TABLES = ("patients", "stays", "drugs")
CANTONS, CHAPTERS, CODE_KEYS = ["ZH", "BE", "GE"], ["I", "II"], ["a", "b", "c"]


def tables(seed, people=4):
    """Patients with one row each, stays and drugs with none to three; some ids are missing, some without a patient."""
    rng = np.random.default_rng(seed)
    patients = pd.DataFrame({"pid": np.arange(people), "canton": rng.choice(CANTONS, people)})
    patients["age"] = rng.integers(0, 90, people)

    def several(most):
        pid = np.repeat(np.arange(people + 1), rng.integers(0, most + 1, people + 1))
        return pd.DataFrame({"pid": pid, "code": rng.choice([*CODE_KEYS, None], len(pid))})

    stays, drugs = several(3), several(2)
    stays["days"] = rng.integers(0, 9, len(stays))
    stays["cost"] = rng.choice([0.1, 0.2, 0.7, 3.3, math.nan], len(stays))
    drugs["dose"] = rng.choice([-0.0, 0.0, 1.5], len(drugs))
    nobody = pd.DataFrame({"pid": [None], "code": ["a"]}, dtype=object)
    drugs = pd.concat([drugs.astype({"pid": "Int64"}), nobody.astype({"pid": "Int64"})], ignore_index=True)
    stays = stays.astype({"pid": "Int64"})
    return {
        "patients": patients.astype({"pid": "Int64"}),
        "stays": stays,
        "drugs": drugs,
        "codes": CODES,
        "words": WORDS,
    }


def without(data, pid):
    return {name: frame if name in PUBLIC else frame[frame["pid"] != pid] for name, frame in data.items()}


PEOPLE = {"person": "pid", "public": PUBLIC, "constant": "canton"}
BOUNDS = {"days": (0, 8), "cost": (0, 4), "age": (0, 90), "total": (0, 20), "n": (0, 6), "worst": (0, 4), "m": (0, 8)}
BY_CANTON = {"keys": CANTONS}
ONE = {"per_person": {"patients": "one"}}
# Name: query, options. Of those with rows=12 no row is left out, so that DuckDB itself tells the answer.
SHAPES = {
    "inner": ("SELECT COUNT(DISTINCT p.pid) AS v FROM patients p JOIN stays s USING (pid)", {}),
    "headline": (
        "SELECT p.canton, COUNT(DISTINCT p.pid) AS v FROM patients p JOIN stays s USING (pid) JOIN drugs d USING (pid) "
        "WHERE s.code = 'a' AND d.code = 'b' GROUP BY p.canton",
        BY_CANTON,
    ),
    "in": (
        "SELECT canton, COUNT(DISTINCT pid) AS v FROM patients WHERE pid IN (SELECT pid FROM stays WHERE code = 'a') "
        "AND pid IN (SELECT d.pid FROM drugs AS d WHERE d.code = 'b') GROUP BY canton",
        BY_CANTON,
    ),
    "exists": (
        "SELECT canton, COUNT(DISTINCT pid) AS v FROM patients p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.pid "
        "= p.pid AND s.code = 'a') AND EXISTS (SELECT * FROM drugs WHERE drugs.pid = p.pid AND code = 'b') GROUP BY "
        "canton",
        BY_CANTON,
    ),
    "not exists": (
        "SELECT COUNT(DISTINCT pid) AS v FROM patients p WHERE NOT EXISTS (SELECT 1 FROM stays s WHERE p.pid = s.pid "
        "AND s.days > p.age / 30)",
        {},
    ),
    "not in": ("SELECT COUNT(DISTINCT pid) AS v FROM patients WHERE pid NOT IN (SELECT pid FROM stays)", {}),
    "comma": (
        "SELECT COUNT(DISTINCT d.pid) AS v FROM patients p, stays s, drugs d WHERE p.pid = s.pid AND s.pid = d.pid AND "
        "s.code = d.code",
        {},
    ),
    "semi": ("SELECT COUNT(*) AS v FROM stays SEMI JOIN drugs USING (pid)", {"rows": 12}),
    "anti": ("SELECT SUM(days) AS v FROM stays ANTI JOIN drugs ON stays.pid = drugs.pid AND dose > 1", {"rows": 12}),
    "rows": ("SELECT COUNT(*) AS v FROM stays s JOIN drugs d ON s.pid = d.pid", {"rows": 12}),
    "few rows": ("SELECT COUNT(*) AS v FROM stays s JOIN drugs d ON s.pid = d.pid", {"rows": 1}),
    "left": ("SELECT SUM(age) AS v FROM patients p LEFT JOIN drugs d USING (pid)", {"rows": 12}),
    "right": ("SELECT SUM(age) AS v FROM drugs d RIGHT JOIN patients p USING (pid)", {"rows": 12}),
    "right, all columns": (
        "SELECT SUM(age) AS v FROM (SELECT * FROM drugs RIGHT JOIN patients USING (pid)) q",
        {"rows": 12},
    ),
    "left counts": ("SELECT COUNT(d.code) AS v FROM patients p LEFT JOIN drugs d USING (pid)", {"rows": 12}),
    "mean of people": (
        "SELECT AVG(days) AS v FROM patients p JOIN stays s USING (pid) WHERE age < 60",
        {"per_person": "mean"},
    ),
    "one row": ("SELECT SUM(age) AS v FROM patients SEMI JOIN stays USING (pid)", ONE),
    "one row by canton": (
        "SELECT canton, AVG(age) AS v FROM patients p SEMI JOIN stays USING (pid) GROUP BY canton",
        {**ONE, **BY_CANTON},
    ),
    "codes": ("SELECT COUNT(*) AS v FROM stays JOIN codes USING (code) WHERE chapter = 'I'", {"rows": 12}),
    "codes first": ("SELECT SUM(days) AS v FROM codes c JOIN stays s ON s.code = c.code", {"rows": 12}),
    "codes by chapter": (
        "SELECT chapter, COUNT(DISTINCT pid) AS v FROM stays LEFT JOIN codes USING (code) GROUP BY chapter",
        {"groups": 2, "keys": CHAPTERS},
    ),
    "words": ("SELECT COUNT(*) AS v FROM stays s JOIN words w ON w.code = s.code", {"rows": 12}),
    "crossed with words": ("SELECT COUNT(*) AS v FROM patients CROSS JOIN words", ONE),
    "in a public list": (
        "SELECT COUNT(DISTINCT pid) AS v FROM stays WHERE code IN (SELECT code FROM codes WHERE weight > 1)",
        {},
    ),
    "exists in public": (
        "SELECT COUNT(DISTINCT pid) AS v FROM stays s WHERE EXISTS (SELECT 1 FROM codes c WHERE c.weight < s.days)",
        {},
    ),
    "totals": (
        "SELECT AVG(total) AS v FROM (SELECT pid, SUM(days) AS total FROM stays GROUP BY pid) AS t",
        {},
    ),
    "float totals": ("SELECT SUM(total) AS v FROM (SELECT pid, SUM(cost) AS total FROM stays GROUP BY pid)", {}),
    "means of people by canton": (
        "SELECT canton, SUM(m) AS v FROM patients p JOIN (SELECT pid, AVG(days) AS m FROM stays GROUP BY ALL) s USING "
        "(pid) GROUP BY canton",
        {**ONE, **BY_CANTON},
    ),
    "expressions of aggregates": (
        "WITH t AS (SELECT s.pid AS who, COALESCE(MAX(cost), 0) - MIN(days) * 0 AS worst, COUNT(*) FILTER (WHERE days "
        "> 3) AS n FROM stays s WHERE days < 8 GROUP BY s.pid HAVING COUNT(*) > 1) SELECT SUM(worst) AS v FROM t "
        "WHERE n < 3",
        {},
    ),
    "distinct": ("SELECT COUNT(*) AS v FROM (SELECT DISTINCT pid FROM stays WHERE code = 'a')", {}),
    "distinct codes": (
        "SELECT code, COUNT(*) AS v FROM (SELECT DISTINCT pid, code FROM stays) GROUP BY code",
        {"groups": 3, "keys": CODE_KEYS},
    ),
    "numbers of codes": (
        "SELECT SUM(n) AS v FROM (SELECT pid, COUNT(DISTINCT code) AS n FROM stays GROUP BY 1 HAVING BOOL_OR(days "
        "> 2))",
        {},
    ),
    "zeros": ("SELECT COUNT(DISTINCT dose) AS v FROM (SELECT pid, MIN(dose) AS dose FROM drugs GROUP BY pid)", {}),
    "union": (
        "SELECT COUNT(DISTINCT who) AS v FROM (SELECT pid AS who, code FROM stays UNION ALL SELECT pid, code FROM "
        "drugs) WHERE code = 'a'",
        {},
    ),
    "union of different rows": (
        "SELECT COUNT(*) AS v FROM (SELECT pid, code FROM stays UNION SELECT pid, code FROM drugs)",
        {"rows": 12},
    ),
    "union of different people": (
        "SELECT COUNT(*) AS v FROM (SELECT pid FROM stays UNION SELECT pid FROM drugs UNION SELECT pid FROM patients)",
        {},
    ),
    "union of people": (
        "SELECT COUNT(*) AS v FROM (SELECT pid FROM patients UNION ALL SELECT DISTINCT pid FROM stays "
        "UNION ALL SELECT pid FROM (SELECT DISTINCT pid FROM drugs))",
        ONE,
    ),
    "themselves": (
        "SELECT COUNT(*) AS v FROM stays a JOIN stays b ON a.pid = b.pid AND a.days < b.days",
        {"rows": 12},
    ),
    "first rows": (
        "SELECT SUM(days) AS v FROM (SELECT pid, days, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY days DESC) AS rn "
        "FROM stays WHERE days < 7) WHERE rn <= 2",
        {},
    ),
    "qualify": (
        "SELECT COUNT(*) AS v FROM patients JOIN (SELECT *, RANK() OVER (PARTITION BY pid ORDER BY days) AS r FROM "
        "stays QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY days) = 1) s USING (pid) WHERE r = 1",
        ONE,
    ),
    "distinct on": (
        "SELECT SUM(days) AS v FROM (SELECT DISTINCT ON (1) pid AS who, days FROM stays WHERE days < 7 ORDER BY who, "
        "days DESC)",
        {},
    ),
    "distinct on more": (
        "SELECT COUNT(*) AS v FROM (SELECT DISTINCT ON (pid, code) * FROM stays ORDER BY days) WHERE days > 2",
        {"rows": 12},
    ),
    "any row": (
        "SELECT COUNT(*) AS v FROM (SELECT DISTINCT ON (pid) pid, days FROM stays) JOIN patients USING (pid) "
        "WHERE age > 30 OR pid > 7",
        ONE,
    ),
    "union with a constant": (
        "SELECT SUM(r) AS v FROM (SELECT 0 AS r FROM drugs UNION ALL SELECT days FROM stays WHERE (days) > 1)",
        {"rows": 12},
    ),
    "ranks": (
        "SELECT SUM(n) AS v FROM (SELECT DENSE_RANK() OVER (PARTITION BY s.pid, s.code ORDER BY days + 1) AS n FROM "
        "stays s JOIN drugs d USING (pid))",
        {"rows": 12},
    ),
    "medians of people": (
        "SELECT SUM(m) AS v FROM (SELECT pid, MEDIAN(cost) + QUANTILE_CONT(days, 0.25) FILTER (WHERE days > 2) / 9 AS "
        "m FROM stays GROUP BY pid)",
        {},
    ),
    "spreads of people": (
        "SELECT SUM(m) AS v FROM (SELECT pid, VAR_SAMP(cost) + STDDEV_POP(days) FILTER (WHERE cost > 0.1) AS m FROM "
        "stays GROUP BY pid)",
        {},
    ),
    "from one to the next": (
        "SELECT SUM(m) AS v FROM (SELECT pid, days - LAG(days) OVER (PARTITION BY pid ORDER BY days) AS m FROM stays)",
        {"rows": 3},
    ),
    "the next but one": (
        "SELECT COUNT(*) AS v FROM (SELECT pid, code, LEAD(code, 2, 'a') OVER (PARTITION BY pid ORDER BY code DESC "
        "NULLS LAST) AS later FROM stays QUALIFY later = code)",
        {"rows": 3},
    ),
    "swapped names": (
        "SELECT COUNT(DISTINCT q.age) AS v FROM (SELECT pid AS age, age AS pid FROM patients) q JOIN stays s ON q.age "
        "= s.pid",
        {},
    ),
    "nested": (
        "SELECT COUNT(DISTINCT p.pid) AS v FROM (SELECT p.pid, s.code FROM patients p JOIN stays s USING (pid)) p "
        "JOIN (SELECT pid FROM drugs WHERE pid NOT IN (SELECT pid FROM stays WHERE days = 0)) d ON d.pid = p.pid",
        {},
    ),
}  # fmt: skip


def ask(data, query, options, **how):
    said = {"eps": 1, **PEOPLE, **options, **how}
    bounds = {name: each for name, each in BOUNDS.items() if f"({name})" in query}
    return pdrisk.sql(query, **said, bounds=bounds, **data)


class TestAnswers:
    @pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("few rows", "mean of people")])
    def test_as_duckdb_answers(self, name):
        """The plain SELECT, over the rows that are somebody's; of nobody it says NULL where a sum is 0."""
        query, options = SHAPES[name]
        data = tables(5, people=40)
        con = duckdb.connect()
        for table, frame in data.items():
            con.register(table, frame.dropna(subset=["pid"]) if "pid" in frame else frame)
        plain = con.execute(query).df()
        if len(plain.columns) > 1:
            plain = plain.set_index(plain.columns[0])
        found = ask(data, query, options, eps=10**7, mechanism="laplace")
        for _, row in found.iterrows():
            expected = plain["v"].iloc[0] if len(row) == 1 else plain["v"].get(row.iloc[0], 0)
            assert row["v"] == pytest.approx(expected, rel=2e-3, abs=2e-3), name


def losses(data, query, options, draws):
    """What the noise was to be added to, and by what one eps is lost."""
    draws.clear()
    ask(data, query, options)
    return list(draws)


QUICK = ("headline", "rows", "float totals", "codes by chapter", "union", "spreads of people", "from one to the next")


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        *((name, range(2)) for name in QUICK),
        *(pytest.param(name, range(2, 6), marks=pytest.mark.slow) for name in SHAPES),
    ],
)
def test_one_person_loses_at_most_eps(name, seeds, monkeypatch):
    """All rows of one person out of every table, each person of each small set of tables."""
    draws = without_noise(monkeypatch)
    query, options = SHAPES[name]
    for seed in seeds:
        data = tables(seed)
        whole = losses(data, query, options, draws)
        for pid in range(5):
            rest = losses(without(data, pid), query, options, draws)
            assert len(rest) == len(whole)
            lost = 0.0
            for (exact, change, eps), (other, same, _) in zip(whole, rest, strict=True):
                assert change == same
                difference = np.abs(np.asarray(exact, dtype=object) - np.asarray(other, dtype=object)).sum()
                lost += float(difference * eps / change)
            assert lost <= 1 + 1e-6, (name, seed, pid)


NUMBERED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY code) AS rn FROM b)"


class TestMultiplicity:
    """How many rows a person has by what tables are made of; noise is that much larger, and the label says so."""

    @pytest.mark.parametrize(
        ("query", "most"),
        [
            ("SELECT COUNT(*) AS v FROM a JOIN b USING (pid)", 6),
            ("SELECT COUNT(*) AS v FROM a LEFT JOIN b USING (pid)", 6),
            ("SELECT COUNT(*) AS v FROM a SEMI JOIN b USING (pid)", 2),
            ("SELECT COUNT(*) AS v FROM a WHERE pid IN (SELECT pid FROM b)", 2),
            ("SELECT COUNT(*) AS v FROM a JOIN codes USING (code)", 2),
            ("SELECT COUNT(*) AS v FROM a JOIN words USING (code)", 4),
            ("SELECT COUNT(*) AS v FROM codes JOIN a USING (code)", 2),
            ("SELECT COUNT(*) AS v FROM words w, a WHERE w.code = a.code", 4),
            ("SELECT COUNT(*) AS v FROM a JOIN words ON true", 8),
            ("SELECT COUNT(*) AS v FROM a LEFT JOIN words ON a.code = words.code AND word = 'flu'", 4),
            ("SELECT COUNT(*) AS v FROM (SELECT pid FROM a UNION ALL SELECT pid FROM b)", 5),
            ("SELECT COUNT(*) AS v FROM (SELECT DISTINCT pid FROM b)", 1),
            ("SELECT COUNT(*) AS v FROM (SELECT pid, code FROM b GROUP BY pid, code)", 3),
            ("SELECT COUNT(DISTINCT a.pid) AS v FROM a JOIN b USING (pid)", 1),
            (f"SELECT COUNT(*) AS v FROM {NUMBERED} WHERE rn <= 2", 2),
            (f"SELECT COUNT(*) AS v FROM {NUMBERED} WHERE rn < 2 AND code = 'a'", 1),
            (f"SELECT COUNT(*) AS v FROM (SELECT * FROM {NUMBERED} WHERE rn = 2) q JOIN a USING (pid)", 2),
            (f"SELECT COUNT(*) AS v FROM {NUMBERED} WHERE rn <= 2 OR code = 'a'", 3),
            (f"SELECT COUNT(*) AS v FROM {NUMBERED} JOIN a USING (pid) WHERE rn <= 1", 6),
        ],
    )
    def test_rows_of_a_person(self, query, most):
        frame = pd.DataFrame({"pid": [1, 2], "code": ["a", "b"]})
        answer = pdrisk.sql(
            query, eps=1, person="pid", rows={"a": 2, "b": 3}, public=PUBLIC, a=frame, b=frame, codes=CODES, words=WORDS
        )
        said = " ".join(pdrisk.explain(answer, "publication").split())
        assert f"scale {most}; " in said
        assert most == 1 or f"at most {most} rows of each count" in said

    def test_uniqueness_is_that_of_the_comparison(self):
        """1 and 1.0 are one number: a table of codes has both, so that one row may go with two."""
        numbers = pd.DataFrame({"code": [1.0, 1.0, 2.0]})
        frame = pd.DataFrame({"pid": [1], "code": [1]})
        answer = pdrisk.sql(
            "SELECT COUNT(*) AS v FROM a JOIN numbers n ON a.code = n.code", eps=1, person="pid", rows={"a": 1},
            public={"numbers": numbers}, a=frame,
        )  # fmt: skip
        assert "scale 2; " in pdrisk.explain(answer, "publication")


ONE_EACH = "SELECT pid, SUM(days) AS d, MAX(code) AS c FROM stays GROUP BY pid"


class TestProof:
    """Rows of people are chosen, by hashes and windows, unless the statement itself lets nobody have several."""

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("query", "chooses"),
        [
            (f"SELECT AVG(d), COUNT(*) FROM ({ONE_EACH}) AS s", False),
            (f"SELECT c, MEDIAN(d), COUNT(DISTINCT pid) FROM ({ONE_EACH}) AS s WHERE d > 1 GROUP BY c", False),
            (f"SELECT AVG(d) FROM (SELECT d + 1 AS d FROM ({ONE_EACH}) AS s WHERE c = 'a') AS s", False),
            (f"SELECT AVG(s.d) FROM ({ONE_EACH}) AS s JOIN ({ONE_EACH}) AS t USING (pid)", False),
            # What was counted in a public table, or is declared, may be wrong: whose rows count is decided there.
            (f"SELECT AVG(s.d) FROM ({ONE_EACH}) AS s JOIN codes ON s.c = codes.code", True),
            (f"SELECT AVG(s.d) FROM ({ONE_EACH}) AS s JOIN patients USING (pid)", True),
            ("SELECT AVG(d) FROM (SELECT pid, code, SUM(days) AS d FROM stays GROUP BY pid, code) AS s", True),
            ("SELECT AVG(days) FROM stays", True),
        ],
    )  # fmt: skip
    def test_what_need_not_be_chosen(self, query, chooses, monkeypatch):
        sent, fetched_there = [], compiled_sources.fetched

        def noted(connection, sql, values):
            sent.append(sql)
            return fetched_there(connection, sql, values)

        without_noise(monkeypatch)
        monkeypatch.setattr(compiled_sources, "fetched", noted)
        data, options = tables(3, 30), {"bounds": {"d": (0, 20)} if "AS d" in query else {"days": (0, 9)}}
        options |= {"keys": {"c": CODE_KEYS}} if "AS c" in query else {}
        rows = {"rows": {"patients": 1} if "patients" in query else None if "(SELECT" in query and not chooses else 1}
        found = pdrisk.sql(query, eps=1, person="pid", public=PUBLIC, **options, **rows, **data)
        assert any("ROW_NUMBER" in sql.upper() for sql in sent) == chooses
        con = duckdb.connect()
        for name, frame in data.items():
            con.register(name, frame)
        if not chooses and "COUNT" not in query:
            assert found.iloc[0, 0] == pytest.approx(con.execute(query).fetchone()[0], abs=1e-6)


class TestWhereTablesAre:
    QUERY = "SELECT COUNT(DISTINCT p.pid) AS v FROM patients p JOIN stays s ON p.pid = s.who"
    PATIENTS = pd.DataFrame({"pid": [1, 2, 3]})
    STAYS = pd.DataFrame({"who": [1, 1, 2, 9]})
    PERSON = {"patients": "pid", "stays": "who"}  # noqa: RUF012 - never changed

    def con(self):
        con = duckdb.connect()
        con.register("p", self.PATIENTS)
        con.register("s", self.STAYS)
        con.execute("CREATE TABLE patients AS FROM p; CREATE TABLE stays AS FROM s; CREATE SCHEMA other;")
        con.execute("CREATE TABLE other.codes AS SELECT 1 AS who; CREATE TABLE codes AS SELECT 1 AS code")
        con.unregister("p")
        con.unregister("s")
        return con

    def test_frames_tables_and_both(self, tmp_path):
        con, path = self.con(), str(tmp_path / "stays.parquet")
        self.STAYS.to_parquet(path)
        for where in (
            {"patients": self.PATIENTS, "stays": self.STAYS},
            {"con": con},
            {"con": con, "stays": self.STAYS},
            {"con": con, "stays": path},
            {"patients": self.PATIENTS, "stays": path},
            {"tables": {"patients": self.PATIENTS}, "stays": self.STAYS},
        ):
            assert pdrisk.sql(self.QUERY, eps=100, person=self.PERSON, **where)["v"].tolist() == [2]
        assert [row[0] for row in con.execute("SHOW TABLES").fetchall()] == ["codes", "patients", "stays"]

    def test_temporary_tables(self):
        con = self.con()
        con.execute("CREATE TEMP TABLE visits AS FROM stays")
        person = {"patients": "pid", "visits": "who"}
        query = self.QUERY.replace("stays", "visits")
        assert pdrisk.sql(query, con, eps=100, person=person)["v"].tolist() == [2]
        with pytest.raises(ParameterError, match="make a table of them on the connection first"):
            pdrisk.sql(query, con, eps=100, person=person, patients=self.PATIENTS)

    def test_view_of_a_join(self):
        con = self.con()
        con.execute("CREATE VIEW both_of AS SELECT p.pid, s.who AS id FROM patients p JOIN stays s ON p.pid = s.who")
        found = pdrisk.sql("SELECT COUNT(DISTINCT id) AS v FROM both_of", con, eps=100, person=self.PERSON)
        assert found["v"].tolist() == [2]

    def test_a_public_table_is_the_one_that_is_named(self):
        """Not another one of the same name."""
        query = "SELECT COUNT(DISTINCT s.who) AS v FROM stays s JOIN other.codes c ON s.who = c.who"
        with pytest.raises(ParameterError, match="person= names table stays, and the query reads codes"):
            pdrisk.sql(query, self.con(), eps=1, person={"stays": "who"}, public=["codes"])
        answer = pdrisk.sql(query, self.con(), eps=100, person={"stays": "who"}, public=["other.codes"])
        assert answer["v"].tolist() == [1]

    def test_a_dataset(self, book):
        ledger = book(eps=300)
        tables = {"patients": self.PATIENTS, "stays": self.STAYS}
        d = Dataset(
            tables, person=self.PERSON, per_person={"patients": "one"}, public={"codes": CODES}, ledger=ledger
        )  # fmt: skip
        assert d.sql(self.QUERY, eps=100)["v"].tolist() == [2]
        assert d.sql("SELECT COUNT(*) AS v FROM patients", eps=100)["v"].tolist() == [3]
        assert d.sql("SELECT COUNT(DISTINCT who) AS v FROM stays", eps=100)["v"].tolist() == [3]
        assert ledger.remaining().eps == 0
        with pytest.raises(ParameterError, match="a budget holds for one kind of person"):
            Dataset(tables, person={"stays": "who", "patients": "pid"}, ledger=ledger).sql(self.QUERY, eps=1)

    def test_a_dataset_of_one_table_with_public_ones(self):
        frame = pd.DataFrame({"pid": [1, 2, 2], "code": ["a", "a", "c"]})
        d = Dataset(frame, person="pid", public={"codes": CODES})
        query = "SELECT chapter, COUNT(DISTINCT pid) AS v FROM data JOIN codes USING (code) GROUP BY chapter"
        assert d.sql(query, eps=100, groups=2, keys=CHAPTERS)["v"].tolist() == [2, 1]
        assert d.sql(query, eps=100, groups=2)["v"].tolist() == [2, 1]

    @pytest.mark.parametrize(
        ("data", "said", "why"),
        [
            (("patients", "stays"), {"person": {"patients": "pid"}}, "says nothing of table stays"),
            (("patients", "stays"), {"person": "pid"}, "unknown column 'pid'"),
            (("patients",), {"person": {"patients": "pid", "drugs": "pid"}}, "names drugs, which is no table"),
            (("patients",), {"per_person": "one"}, "per_person= needs person="),
            (("patients",), {"person": "pid", "per_person": {"patients": "mean"}}, 'per_person= by table is "one"'),
            (("patients", "stays"), {"person": {"patients": "pid", "stays": ["who", "x"]}}, "different numbers of col"),
            (("patients",), {"person": "pid", "public": {"patients": CODES}}, "which is a table of the data already"),
        ],
    )
    def test_datasets_that_do_not_fit(self, data, said, why):
        own = {"patients": self.PATIENTS, "stays": self.STAYS.assign(x=1)}
        with pytest.raises(pdrisk.PdriskError, match=why):
            Dataset({name: own[name] for name in data}, **said)

    @pytest.mark.parametrize("kind", ["UUID", "UBIGINT", "HUGEINT", "VARCHAR", "DATE"])
    def test_ids_of_all_kinds(self, kind):
        con = duckdb.connect()
        made = {"UUID": "gen_random_uuid()", "DATE": "DATE '2020-01-01' + range::INT"}.get(
            kind, f"CAST(range AS {kind})"
        )
        con.execute(f"CREATE TABLE patients AS SELECT {made} AS pid FROM range(9)")
        con.execute("CREATE TABLE stays AS SELECT pid AS who FROM (FROM patients LIMIT 5) CROSS JOIN range(3)")
        assert pdrisk.sql(self.QUERY, con, eps=100, person=self.PERSON)["v"].tolist() == [5]

    def test_a_composite_person(self):
        days = pd.DataFrame({"pid": [1, 1, 2], "day": [1, 2, 1], "x": [1, 2, 3]})
        query = "SELECT COUNT(*) AS v FROM a JOIN b ON a.pid = b.pid AND a.day = b.day"
        answer = pdrisk.sql(query, eps=100, person=["pid", "day"], rows=1, a=days, b=days)
        assert answer["v"].tolist() == [3]
        with pytest.raises(ParameterError, match=r"write a\.pid = b\.pid AND a\.day = b\.day"):
            pdrisk.sql(query.partition(" AND")[0], eps=100, person=["pid", "day"], rows=1, a=days, b=days)


class TestWhatIsSaid:
    @pytest.mark.parametrize("name", ["headline", "in", "exists"])
    def test_the_noise_of_one_person(self, name):
        """At eps 1 a count is off by k with probability (e - 1) / (e + 1) e^-|k|: by 3 at most in 97 % of cases."""
        query, options = SHAPES[name]
        said = " ".join(pdrisk.explain(ask(tables(3), query, options), "publication").split())
        assert "discrete Laplace noise, scale 1; global sensitivity of the statistic 1; eps 1 " in said

    def test_who_is_selected(self):
        frame = pd.DataFrame({"pid": [1], "x": [1]})
        answer = pdrisk.sql(
            "SELECT COUNT(DISTINCT pid) AS v FROM a WHERE pid NOT IN (SELECT pid FROM b WHERE x > $low) AND x < 3",
            eps=1, person="pid", params={"low": 5}, a=frame, b=frame,
        )  # fmt: skip
        said = " ".join(pdrisk.explain(answer, "publication").split())
        assert 'NOT EXISTS (b WHERE ("x" > $low))' in said and '("x" < 3)' in said and "publisher's word" in said

    def test_codes_of_missing_values_are_missing_in_every_table(self):
        a = pd.DataFrame({"pid": [1, 2, -1], "x": [1, -9, 3]}).dprisk.declare(missing={"pid": [-1], "x": [-9]})
        b = pd.DataFrame({"pid": [1, 2, -1]}).dprisk.declare(missing={"pid": [-1]})
        query = "SELECT COUNT(x) AS v, COUNT(DISTINCT a.pid) AS n FROM a JOIN b USING (pid)"
        answer = pdrisk.sql(query, eps=1000, person="pid", rows=1, a=a, b=b)
        assert answer.iloc[0].tolist() == [1, 2]

    def test_declared_bounds_and_keys_go_along(self):
        a = pd.DataFrame({"pid": [1, 2], "x": [10.0, 20.0]}).dprisk.declare(bounds={"x": (0, 40)})
        b = pd.DataFrame({"pid": [1, 2], "g": ["u", "v"]}).dprisk.declare(keys={"g": ["u", "v"]})
        query = "SELECT g, SUM(x) AS v FROM a JOIN b USING (pid) GROUP BY g"
        answer = pdrisk.sql(query, eps=10**6, person="pid", rows=1, constant=["g"], a=a, b=b)
        assert answer["v"].tolist() == pytest.approx([10, 20], abs=0.01)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT SUM(day) AS s, COUNT(*) FILTER (WHERE 1 / x > 0) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION "
            "BY pid ORDER BY x) AS rn FROM a) WHERE rn <= 3",
            "SELECT SUM(day) FILTER (WHERE before > day) AS s, COUNT(*) FILTER (WHERE 1 / later > 0) AS n FROM (SELECT "
            "*, LAG(day) OVER (PARTITION BY pid ORDER BY x) AS before, LEAD(x, 2) OVER (PARTITION BY pid ORDER BY x "
            "DESC) AS later FROM a)",
        ],
    )
    def test_numbers_of_rows_do_not_depend_on_their_order(self, query, seed, monkeypatch):
        """Of rows that ORDER BY leaves equal the other columns decide, and of 0 and -0 the sign."""
        draws = without_noise(monkeypatch)
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"pid": np.repeat(np.arange(30), 8), "x": rng.choice([0.0, -0.0, 2.0, math.nan], 240)})
        frame["day"] = rng.integers(0, 3, 240)
        found = []
        for one in (frame, frame.sample(frac=1, random_state=seed)):
            draws.clear()
            pdrisk.sql(query, eps=1, person="pid", rows={"a": 8}, bounds={"day": (0, 2)}, a=one)
            found.append([np.asarray(exact).tolist() for exact, _, _ in draws])
        assert found[0] == found[1]

    @pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV", "MEDIAN"])
    def test_numbers_of_people_do_not_depend_on_the_order_of_rows(self, aggregate):
        """To the last bit: sums of 0.1, 0.2 and 0.3 would. All people have the same values, each in another order."""
        rng = np.random.default_rng(0)
        values = rng.choice([0.1, 0.2, 0.3, 1e6, -0.0, 0.0], 40)
        frame = pd.DataFrame({"pid": np.repeat(np.arange(50), 40)})
        frame["x"] = np.concatenate([rng.permutation(values) for _ in range(50)])
        query = f"SELECT COUNT(DISTINCT total) AS v FROM (SELECT pid, {aggregate}(x) AS total FROM a GROUP BY pid)"
        asked = {"eps": 100, "person": "pid", "bounds": {"x": (0, 10**6)}}
        assert pdrisk.sql(query, a=frame, **asked)["v"].iloc[0] == 1

    def test_spreads_of_people_fail_for_nobody(self):
        """However large a person's values are."""
        frame = pd.DataFrame({"pid": [1, 1, 2, 2], "x": [1e308, -1e308, math.inf, 0.0]})
        query = "SELECT COUNT(*) AS v FROM (SELECT pid, VAR_SAMP(x) AS s FROM a GROUP BY pid) WHERE s > 1e299"
        assert pdrisk.sql(query, eps=100, person="pid", a=frame)["v"].iloc[0] == 2


class TestAggregatesOfRows:
    """SQL's aggregates go by rows: what the number of a person's rows decides is refused until it is said."""

    TABLES: ClassVar = {
        "patients": pd.DataFrame({"pid": [1, 2, 3], "sex": ["f", "m", "f"], "age": [20.0, 30.0, 70.0]}),
        "visits": pd.DataFrame({"pid": np.repeat([1, 2, 3], [90, 9, 1]), "cost": np.arange(100.0)}),
    }
    JOINED = "patients JOIN visits USING (pid)"
    BY_ROWS = (
        "COUNT(*)", "COUNT(pid)", "COUNT(sex)", "COUNT(age)", "COUNT_IF(age > 25)", "SUM(age)", "AVG(age)",
        "MEDIAN(age)", "QUANTILE_CONT(age, 0.9)", "STDDEV_POP(age)", "AVG(age) FILTER (WHERE cost > 5)",
    )  # fmt: skip
    BY_VALUES = ("COUNT(DISTINCT pid)", "COUNT(DISTINCT sex)", "SUM(DISTINCT age)", "MIN(age)", "MAX(age)")

    def both(self, aggregate, **options):
        """What pdrisk answers nearly without noise, and what DuckDB does."""
        query = f"SELECT {aggregate} AS v FROM {self.JOINED}"
        known = {"person": "pid", "constant": {"patients": ["sex", "age"]}, "bounds": {"age": (0, 100)}}
        if aggregate.startswith(("MIN", "MAX", "MEDIAN", "QUANTILE")):
            known["mechanism"] = "laplace"  # the usual one stays away from the ends of few records
        with duckdb.connect() as con:
            for name, frame in self.TABLES.items():
                con.register(name, frame)
            exact = con.execute(query).fetchone()[0]
        return pdrisk.sql(query, **self.TABLES, eps=1e5, **known, **options)["v"].item(), exact

    @pytest.mark.parametrize("aggregate", BY_ROWS)
    def test_by_rows(self, aggregate):
        with pytest.raises(ParameterError, match="rows=k"):
            self.both(aggregate)
        for rows in (90, {"patients": 1, "visits": 90}):
            found, exact = self.both(aggregate, rows=rows)
            assert found == pytest.approx(exact, abs=0.5)

    @pytest.mark.parametrize("aggregate", BY_VALUES)
    def test_by_values(self, aggregate):
        found, exact = self.both(aggregate)
        assert found == pytest.approx(exact, abs=0.5)

    @pytest.mark.parametrize(
        ("aggregate", "wanted"), [("COUNT(pid)", 3), ("COUNT(sex)", 3), ("AVG(age)", 40), ("SUM(age)", 120)]
    )
    def test_one_row_each(self, aggregate, wanted):
        found, _ = self.both(aggregate, per_person="one")
        assert found == pytest.approx(wanted, abs=0.5)
