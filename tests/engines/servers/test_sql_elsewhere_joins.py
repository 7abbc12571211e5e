"""Joins on the person, and with public tables, of tables that another engine than DuckDB has."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._sql.syntax.languages import POSTGRES, SPARK
from pdrisk.errors import ParameterError, PdriskError
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from test_sql_elsewhere import Elsewhere, Server, not_drawn

TABLES = {
    "patients": {"pid": "BIGINT", "canton": "VARCHAR", "born": "DATE", "weight": "DOUBLE", "ward": "INTEGER"},
    "diagnoses": {"pid": "INTEGER", "code": "VARCHAR", "cost": "DOUBLE"},
    "treatments": {"patient": "BIGINT", "what": "VARCHAR", "weight": "DOUBLE"},
    "wards": {"ward": "BIGINT", "floor": "INTEGER", "kind": "VARCHAR"},
    "names": {"name": "VARCHAR", "canton": "VARCHAR"},
}
OF_POSTGRES = {"DOUBLE": "double precision", "VARCHAR": "text"}
OF_SPARK = {"VARCHAR": "string", "INTEGER": "int"}
NAN = float("nan")


def rows():
    """Few people with many rows, with missing ids, codes of people who are nowhere else, and people without any."""
    draw = np.random.default_rng(18)
    cantons = ["ZH", "BE", "GE", None]
    patients = [
        (int(pid), cantons[draw.integers(4)], f"19{draw.integers(30, 99)}-02-03", float(draw.integers(40, 99)),
         None if draw.random() < 0.1 else int(draw.integers(1, 5)))
        for pid in range(1, 61)
    ]  # fmt: skip
    patients += [(None, "ZH", None, NAN, 1), (99, "GE", "2000-01-01", None, 4)]
    diagnoses = [
        (int(draw.integers(1, 80)), ("C18", "C19", "I10", None)[draw.integers(4)], float(draw.integers(0, 50)))
        for _ in range(150)
    ] + [(None, "C18", 1.0), (99, "C18", NAN)]
    treatments = [
        (int(draw.integers(1, 70)), ("X", "Y")[draw.integers(2)], float(draw.integers(1, 9))) for _ in range(90)
    ] + [(None, "X", 1.0)]
    wards = [(1, 0, "a"), (2, 0, "b"), (2, 1, "b"), (3, 1, "a"), (None, 9, "n")]
    names = [("Zürich", "ZH"), ("Zurich", "ZH"), ("Bern", "BE"), ("nowhere", None)]
    return dict(zip(TABLES, (patients, diagnoses, treatments, wards, names), strict=True))


def filled(con, types):
    for name, columns in TABLES.items():
        con.execute(f"CREATE TABLE {name} ({', '.join(f'{each} {types.get(of, of)}' for each, of in columns.items())})")
    return rows()


@pytest.fixture(scope="module")
def duck():
    con = duckdb.connect()
    for name, listed in filled(con, {}).items():
        con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(TABLES[name]))})", listed)
    return con


@pytest.fixture(scope="module")
def server():
    with database() as url, connected(url) as con:
        for name, listed in filled(con, OF_POSTGRES).items():
            con.cursor().executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(TABLES[name]))})", listed)
        con.commit()
        yield con


@pytest.fixture(scope="module", params=["portable", "Spark's", pytest.param("PostgreSQL", marks=needs_server)])
def other(request, duck):
    if request.param == "PostgreSQL":
        return Server(request.getfixturevalue("server"))
    return Elsewhere(duck, {"portable": POSTGRES, "Spark's": SPARK}[request.param], TABLES)


PEOPLE = {"patients": "pid", "diagnoses": "pid", "treatments": "patient"}
PUBLIC = ["wards", "names"]
CANTONS = {"canton": ["ZH", "BE", "GE", "TI"], "p.canton": ["ZH", "BE", "GE", "TI"]}
ONE = {"rows": {"patients": 1, "diagnoses": 3, "treatments": 2}}
C18 = (
    "SELECT canton, COUNT(DISTINCT p.pid) AS n FROM patients p JOIN diagnoses d ON p.pid = d.pid "
    "JOIN treatments t ON t.patient = p.pid WHERE d.code = 'C18' AND t.what = 'X' GROUP BY canton"
)
SAME = {
    C18: {"keys": ["ZH", "BE", "GE", "TI"], "groups": 1},
    "SELECT COUNT(DISTINCT pid) AS n FROM patients JOIN diagnoses USING (pid) WHERE code IN ('C18', 'C19')": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM patients WHERE pid IN (SELECT pid FROM diagnoses WHERE code = 'C18')": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM patients WHERE pid NOT IN (SELECT pid FROM diagnoses WHERE cost > 20.0)": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM patients p WHERE EXISTS (SELECT 1 FROM treatments t "
    "WHERE t.patient = p.pid AND t.weight * 10 < p.weight)": {},
    "SELECT COUNT(DISTINCT p.pid) AS n, AVG(p.weight) AS m FROM patients p WHERE NOT EXISTS (SELECT * FROM treatments "
    "WHERE patient = p.pid) AND p.weight > 50": {"per_person": "one"},
    "SELECT COUNT(DISTINCT p.pid) AS n, SUM(cost) AS s FROM patients p LEFT JOIN diagnoses d "
    "ON d.pid = p.pid AND d.code <> 'I10'": ONE,
    "SELECT AVG(d.cost) AS m FROM patients p, diagnoses d WHERE p.pid = d.pid AND p.canton = 'ZH'":
        {"rows": {"patients": 1, "diagnoses": 9}},  # of everybody: which rows are left of more is each Dataset's secret
    "SELECT COUNT(*) AS n FROM patients p JOIN diagnoses d USING (pid) JOIN treatments t ON t.patient = p.pid": ONE,
    "SELECT kind, COUNT(DISTINCT pid) AS n FROM patients JOIN wards USING (ward) GROUP BY kind":
        {"keys": ["a", "b", "n"], "groups": 2},
    # Keys that a public table lists, and SELECTs over public tables and constants alone.
    "SELECT kind, floor, COUNT(DISTINCT pid) AS n FROM patients JOIN wards USING (ward) WHERE floor < 9 "
    "GROUP BY kind, floor": {"groups": 2},
    "SELECT kind, COUNT(DISTINCT pid) AS n FROM patients p LEFT JOIN wards w ON w.ward = p.ward AND w.floor > 0 "
    "GROUP BY kind": {"groups": 2},
    "SELECT t.kind, COUNT(DISTINCT pid) AS n FROM patients p JOIN (SELECT kind, MAX(ward) AS top FROM wards "
    "GROUP BY kind) AS t ON t.top = p.ward GROUP BY t.kind": {"groups": 1},
    "SELECT l, COUNT(DISTINCT pid) AS n FROM patients JOIN (SELECT 'ZH' AS canton, 'big' AS l UNION ALL "
    "SELECT 'TI', NULL) AS v USING (canton) GROUP BY l": {"groups": 1},
    "SELECT COUNT(DISTINCT pid) AS n FROM patients WHERE ward IN (SELECT DISTINCT ward FROM wards WHERE floor > 0)": {},
    "SELECT COUNT(*) AS n, SUM(floor) AS s FROM patients p LEFT JOIN wards w ON w.ward = p.ward":
        {"rows": {"patients": 1}},
    "SELECT COUNT(*) AS n FROM patients p JOIN names USING (canton) JOIN wards w ON w.ward = p.ward AND floor < 1":
        {"rows": {"patients": 1}},
    "WITH old AS (SELECT pid AS who, canton FROM patients WHERE born < '1960-01-01') "
    "SELECT COUNT(DISTINCT who) AS n FROM old JOIN (SELECT pid, cost FROM diagnoses WHERE cost >= 3) AS d "
    "ON d.pid = who AND cost > 5.5": {},
    "SELECT COUNT(DISTINCT a.pid) AS n FROM diagnoses a JOIN diagnoses b ON a.pid = b.pid AND a.code = 'C18' "
    "AND b.code = 'I10'": {},
    # UNION of rows, computed columns, one row of a person's, numbered rows and the row before.
    "SELECT COUNT(*) AS n FROM (SELECT pid AS who, weight FROM patients UNION ALL SELECT patient, weight FROM "
    "treatments) "
    "AS u WHERE weight > 5": {"person": {**PEOPLE, "u": "who"}, "rows": {"patients": 1, "treatments": 3}},
    "SELECT kind, COUNT(DISTINCT who) AS n FROM (SELECT pid AS who, 'd' AS kind FROM diagnoses WHERE code LIKE 'C%' "
    "UNION ALL SELECT patient, what FROM treatments) AS u GROUP BY kind": {"keys": ["d", "X", "Y"], "groups": 2},
    "SELECT AVG(total) AS m FROM (SELECT pid, SUM(cost) AS total FROM diagnoses GROUP BY pid) AS t":
        {"bounds": {"cost": (0, 50), "total": (0, 200)}},
    "SELECT COUNT(*) AS n, AVG(k) AS m FROM (SELECT pid, COUNT(*) AS k, MAX(code) AS c FROM diagnoses WHERE cost < 40 "
    "GROUP BY pid HAVING COUNT(*) > 1) AS t WHERE c >= 'C19'": {"bounds": {"k": (0, 9)}},
    "SELECT COUNT(*) AS n FROM (SELECT pid, AVG(cost) AS a, MIN(cost) AS lo, MAX(cost) AS hi, COUNT(DISTINCT code) "
    "AS c, "
    "COUNT(code) AS k FROM diagnoses GROUP BY pid) AS t WHERE a > 20 AND hi - lo > 3 AND c > 1 AND k < 9":
        {"bounds": {"cost": (0, 50)}},
    "SELECT c, COUNT(*) AS n FROM (SELECT pid, code AS c, SUM(CASE WHEN cost > 10 THEN 1 ELSE 0 END) AS dear "
    "FROM diagnoses GROUP BY pid, code) AS t WHERE dear >= 1 GROUP BY c": {"keys": ["C18", "I10"], "groups": 2},
    "SELECT COUNT(*) AS n FROM (SELECT pid, STDDEV_SAMP(cost) AS s, VAR_POP(cost) AS v, "
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) AS q FROM diagnoses GROUP BY pid) AS t "
    "WHERE s > 5 OR v < 1 OR q BETWEEN 20 AND 30": {},
    "SELECT COUNT(*) AS n, SUM(cost) AS s FROM (SELECT pid, cost, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY cost "
    "DESC NULLS LAST) "
    "AS r FROM diagnoses) AS t WHERE r = 1": {},
    "SELECT COUNT(*) AS n FROM (SELECT pid, cost, LAG(cost) OVER (PARTITION BY pid ORDER BY code NULLS LAST, cost "
    "NULLS LAST) AS before "
    "FROM diagnoses) AS t WHERE cost > before + 1": {"rows": {"diagnoses": 9}},
    "SELECT AVG(w) AS m FROM (SELECT pid, weight * 2 - 1 AS w, UPPER(canton) AS c FROM patients) AS p "
    "JOIN diagnoses d USING (pid) WHERE c = 'ZH' AND d.cost > w / 10.0": {"bounds": {"w": (0, 200)}, **ONE},
    "SELECT SUBSTRING(c FROM 1 FOR 1) AS s, COUNT(DISTINCT pid) AS n FROM (SELECT pid, canton || '-' || ward AS c "
    "FROM patients) AS p GROUP BY s": {"keys": ["Z", "B", "G"], "groups": 1},
    "SELECT COUNT(DISTINCT p.pid) AS n FROM patients p JOIN (SELECT pid, MIN(cost) AS least FROM diagnoses GROUP BY "
    "pid) "
    "AS d ON d.pid = p.pid WHERE least < p.weight - 30 AND EXTRACT(YEAR FROM p.born) < 1970": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM (SELECT DISTINCT pid, code FROM diagnoses) AS d WHERE code = 'C18'": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM diagnoses WHERE pid IN (SELECT patient FROM treatments GROUP BY patient "
    "HAVING COUNT(*) > 1)": {},
    "SELECT COUNT(*) AS n FROM (SELECT pid FROM patients WHERE weight > 50 EXCEPT SELECT pid FROM diagnoses) AS d": {},
    "SELECT COUNT(DISTINCT pid) AS n FROM diagnoses WHERE pid IN (SELECT pid FROM patients INTERSECT SELECT patient "
    "FROM treatments WHERE what = 'X')": {},
    "SELECT SUM(c) AS n FROM (SELECT 3 AS c FROM patients UNION ALL SELECT cost FROM diagnoses) AS u":
        {"rows": {"patients": 1, "diagnoses": 9}},
    "SELECT COUNT(*) AS n FROM patients WHERE weight >= (SELECT weight FROM patients WHERE weight IS NOT NULL "
    "ORDER BY weight DESC LIMIT 1) - 100": ONE,
}  # fmt: skip
BOUNDS = {"weight": (0, 100), "cost": (0, 50), "floor": (0, 9)}


def options_of(query):
    bounds = {name: each for name, each in BOUNDS.items() if name in query}
    return {"person": PEOPLE, "public": PUBLIC, "bounds": bounds or None, "eps": 1, **SAME[query]}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("query", SAME)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_same_numbers_as_on_duckdb(duck, other, query):
    wanted = pdrisk.sql(query, duck, curator=True, risk_columns=True, **options_of(query))
    found = other.sql(query, **options_of(query))
    assert list(found.columns) == list(wanted.columns)
    pd.testing.assert_frame_equal(not_drawn(found), not_drawn(wanted), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("order", ["ORDER BY pid, cost DESC NULLS LAST", "ORDER BY 1, cost NULLS FIRST"])
def test_the_first_row_of_each(duck, other, order):
    """DISTINCT ON, which Spark does not have."""
    first = f"SELECT DISTINCT ON (pid) pid, cost FROM diagnoses {order}"
    query = f"SELECT COUNT(*) AS n FROM ({first}) AS d WHERE pid > 0 AND cost BETWEEN 10 AND 60"  # not NaN
    asked = {"person": PEOPLE, "bounds": None, "public": PUBLIC, "eps": 1e9}
    found = other.sql(query, curator=False, risk_columns=False, **asked)
    assert found["n"].tolist() == duck.cursor().sql(query).df()["n"].tolist()
    with pytest.raises(ParameterError, match="that of any row of a person"):
        other.sql(query.replace(order, ""), **asked)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_noisy_values_beside_names(duck, other):
    """A join of noisy counts with a public table is the private DuckDB's, wherever the people are."""
    query = (
        "WITH n AS (SELECT canton, COUNT(DISTINCT pid) AS n FROM patients GROUP BY canton) "
        "SELECT names.name, n.n FROM n JOIN names USING (canton) ORDER BY names.name"
    )
    asked = {"person": PEOPLE, "public": PUBLIC, "bounds": None, "groups": 1, "keys": ["ZH", "BE"], "eps": 1e9}
    found = other.sql(query, curator=False, risk_columns=False, **asked)
    assert found["name"].tolist() == ["Bern", "Zurich", "Zürich"]
    assert found["n"].tolist() == duck.cursor().sql(query).df()["n"].tolist()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_patients_by_canton(duck, other):
    """Patients with diagnosis C18 and treatment X: sensitivity 1, and of a large eps the number that is there."""
    found = other.sql(C18, **options_of(C18)).set_index("canton")
    assert (found["n_global_sensitivity" if "n_global_sensitivity" in found else "n_local_sensitivity"] <= 1).all()
    exactly = duck.cursor().sql(C18).df().set_index("canton")["n"]
    assert found["n_n"].to_dict() == {key: exactly.get(key, 0) for key in ["ZH", "BE", "GE", "TI"]}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT COUNT(*) FROM patients p JOIN diagnoses d ON p.canton = d.code", "else than who a person is"),
        ("SELECT COUNT(*) FROM patients p JOIN diagnoses d ON true", "else than who a person is"),
        ("SELECT COUNT(*) FROM patients, diagnoses", "else than who a person is"),
        ("SELECT COUNT(*) FROM patients p JOIN diagnoses d ON p.pid = d.pid OR d.cost > 3", "else than who"),
        ("SELECT COUNT(*) FROM patients p JOIN diagnoses d ON p.pid = d.pid + 0", "else than who a person is"),
        (
            "SELECT COUNT(DISTINCT p.pid) FROM wards LEFT JOIN patients p USING (ward) WHERE p.pid IS NULL",
            "without anybody",
        ),
        ("SELECT COUNT(*) FROM patients WHERE pid IN (SELECT ward FROM wards)", "rows="),
        ("SELECT COUNT(*) FROM patients WHERE canton IN (SELECT code FROM diagnoses)", "else than who a person is"),
        ("SELECT COUNT(*) FROM patients p RIGHT JOIN diagnoses d ON p.pid = d.pid", "rows="),
        ("SELECT COUNT(*) FROM patients p JOIN names n ON n.canton || 'x' = p.canton", "may have several"),
        ("SELECT COUNT(*) FROM (SELECT pid FROM patients UNION ALL SELECT pid FROM diagnoses) AS p",
        "may have several"),
        ("SELECT COUNT(*) FROM (SELECT pid, ROW_NUMBER() OVER (ORDER BY weight) AS r FROM patients) AS d WHERE r = 1",
         "write PARTITION BY the person"),
        ("SELECT COUNT(*) FROM (SELECT pid, RANK() OVER (PARTITION BY canton ORDER BY pid) AS r FROM patients) AS d",
         "write PARTITION BY the person"),
        ("SELECT COUNT(*) FROM patients JOIN (SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward) AS w USING "
        "(ward)",
         "makes its records depend on each other"),
        ("SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM diagnoses GROUP BY pid) AS d", "bounds|is a view"),
        ("SELECT COUNT(*) FROM patients JOIN nowhere USING (pid)", "nowhere"),
        ("SELECT COUNT(*) FROM patients p JOIN names n ON n.canton = p.canton JOIN treatments t ON t.what = n.name",
         "else than who a person is"),
    ],
)  # fmt: skip
def test_what_would_mix_people_is_refused(duck, query, said):
    own = Elsewhere(duck, POSTGRES, TABLES)
    with pytest.raises(PdriskError, match=said):
        own.sql(query, person=PEOPLE, public=PUBLIC, bounds=None)
    assert not [each for each in own.sent if "diagnoses" in each or "patients" in each]


def test_nobody_says_who_a_person_is(duck):
    with pytest.raises(ParameterError, match="person="):
        Elsewhere(duck, POSTGRES, TABLES).sql(C18, public=PUBLIC)


FORBIDDEN = {
    "in WHERE of a join": "FROM patients p JOIN diagnoses d ON p.pid = d.pid WHERE d.cost > 5",
    "in ON": "FROM patients p JOIN diagnoses d ON p.pid = d.pid AND p.weight > d.cost",
    "in IN": "FROM patients p WHERE p.pid IN (SELECT pid FROM diagnoses WHERE cost > 5)",
    "in NOT EXISTS": "FROM patients p WHERE NOT EXISTS (SELECT 1 FROM diagnoses d WHERE d.pid = p.pid AND d.cost > 5)",
    "by another name": "FROM patients p JOIN (SELECT pid, cost AS z FROM diagnoses) d ON p.pid = d.pid WHERE z > 4",
    "by the place of a column": "FROM diagnoses AS p(pid, b, z) JOIN patients q ON p.pid = q.pid WHERE z > 4",
    "on a public table": "FROM diagnoses p JOIN wards w ON p.cost = w.floor",
    "left": "FROM patients p LEFT JOIN diagnoses d ON p.pid = d.pid AND d.cost = 3",
}


class TestForbiddenColumns:
    """What an owner does not allow is not read inside FROM either; tables that have it may be joined."""

    def ask(self, other, query, book):
        ledger = book(eps=9, policy={"refuse_columns": ["Cost"]})
        asked = {"person": PEOPLE, "public": PUBLIC, "bounds": None, "curator": False}
        other.sql(f"SELECT COUNT(DISTINCT p.pid) AS n {query}", ledger=ledger, **asked)
        return ledger

    @pytest.mark.parametrize("query", FORBIDDEN.values(), ids=FORBIDDEN.keys())
    def test_refused(self, other, query, book):
        with pytest.raises(pdrisk.PolicyError, match="the owner does not allow column 'cost'"):
            self.ask(other, query, book)

    def test_answered(self, other, book):
        query = "FROM patients p JOIN diagnoses d ON p.pid = d.pid AND d.code <> 'cost'"
        assert self.ask(other, query, book).remaining().spent == 1


@pytest.mark.parametrize("name", ["Wards", "other.wards"])
def test_which_table_is_public(duck, name):
    """``"Wards"`` and ``"other.wards"`` of PostgreSQL are other tables than ``wards`` and ``other.wards``."""
    own = Elsewhere(duck, POSTGRES, {**TABLES, name: TABLES["wards"]})
    own.tables["other", "wards"] = own.tables["wards",]
    query = "SELECT COUNT(DISTINCT pid) AS n FROM patients JOIN {} USING (ward)"
    asked = {"person": PEOPLE, "public": ["wards", "other.wards"], "bounds": None, "curator": False}
    with pytest.raises(PdriskError, match="person="):
        own.sql(query.format(f'"{name}"'), **asked)
    assert len(own.sql(query.format(name.lower()), **asked)) == 1


@pytest.mark.sampled(11)
@pytest.mark.parametrize("removed", range(1, 12))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_person_moves_an_answer_by_one(duck, removed):
    """Brute force over the neighbours: all rows of one person are gone from all tables."""
    queries = [query for query in SAME if "COUNT(DISTINCT" in query and "SUM" not in query and "AVG" not in query]
    smaller = duckdb.connect()
    for name in TABLES:
        frame = duck.cursor().sql(f"SELECT * FROM {name}").df()
        person = PEOPLE.get(name)
        frame = frame if person is None else frame[frame[person] != removed]
        smaller.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    for query in queries:
        one, other = (
            Elsewhere(con, POSTGRES, TABLES).sql(query, **options_of(query))["n_n"].sum() for con in (duck, smaller)
        )
        assert abs(one - other) <= SAME[query].get("groups", 1), query


@needs_server
@pytest.mark.parametrize("names", [("patients", "public.patients"), ("public.patients", "patients")])
def test_people_that_are_public_by_another_name(server, names):
    tables = dict(zip(("people", "codes"), ((server, name) for name in names), strict=True))
    data = pdrisk.Dataset(tables, person={"people": "pid"}, public=["codes"])
    with pytest.raises(ParameterError, match="names under another name, and people are in it"):
        data.sql("SELECT COUNT(DISTINCT p.pid) AS n FROM people p JOIN codes c ON p.ward = c.ward", eps=1)
    query = "SELECT COUNT(DISTINCT p.pid) AS n FROM {} p JOIN {} c ON p.ward = c.ward".format(*names)
    with pytest.raises(ParameterError, match="names under another name, and people are in it"):
        pdrisk.sql(query, server, eps=1, person="pid", public=[names[1]])


@needs_spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_spark(duck):
    """Tables of a session, and DataFrames of a Dataset; no view is left behind."""
    spark, frames = session(), {}
    for name, columns in TABLES.items():
        types = {each: OF_SPARK.get(of, of) for each, of in columns.items()}
        texts = ", ".join(f"{each} {of}" for each, of in types.items()).replace("DATE", "string")
        found = spark.createDataFrame(rows()[name], texts)
        frames[name] = found.selectExpr(*(f"CAST({each} AS {of}) {each}" for each, of in types.items()))
        frames[name].createOrReplaceTempView(name)
    before = {each.name for each in spark.catalog.listTables()}
    data = pdrisk.Dataset(frames, person=PEOPLE, public=PUBLIC)
    for query in [C18, *list(SAME)[4::3]]:
        options = options_of(query)
        wanted = pdrisk.sql(query, duck, curator=True, **options)
        found = pdrisk.sql(query, spark, curator=True, **options)
        if "rows" in options:  # of people with several rows Spark knows no sensitivity, and so an upper bound of risk
            bound = [name for name in found if name.endswith(("_sensitivity", "_many_worlds", "_identifiability"))]
            assert not (found[bound] < wanted[bound] - 1e-9).any(axis=None)
            found, wanted = found.drop(columns=bound), wanted.drop(columns=bound)
        pd.testing.assert_frame_equal(not_drawn(found), not_drawn(wanted), rtol=1e-12)
    again = data.sql(C18, eps=1, keys=["ZH", "BE"], groups=1, curator=True)
    assert again["n_n"].tolist() == pdrisk.sql(C18, duck, curator=True, **options_of(C18))["n_n"][:2].tolist()
    days = "explode(sequence(DATE '1930-02-03', DATE '1999-02-03', INTERVAL 12 MONTH)) AS d"
    query = (
        f"SELECT s.d, {{}} AS n FROM (SELECT {days}) s LEFT JOIN patients p ON p.born = s.d GROUP BY s.d ORDER BY s.d"
    )
    quotient = "CAST(COUNT(p.pid) / 7 AS FLOAT)"
    found = pdrisk.sql(query.format(quotient), spark, eps=1e9, person="pid", rows=1)
    wanted = spark.sql(query.format(quotient)).toPandas()
    assert found["d"].astype(str).tolist() == wanted["d"].astype(str).tolist()
    assert found["n"].tolist() == wanted["n"].tolist()
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR"):
        for ends in ("born, DATE '1971-01-31'", "TIMESTAMP_NTZ '1955-03-01 10:00:00', born"):
            ask = f"SELECT COUNT(*) AS n, AVG(DATEDIFF({unit}, {ends})) AS s FROM patients WHERE pid IS NOT NULL"
            found = pdrisk.sql(ask, spark, eps=1e12, person="pid", rows=1, bounds={"s": (-(10**7), 10**7)})
            assert found.iloc[0].tolist() == pytest.approx(list(spark.sql(ask).first()), abs=0.01), ask
    assert {each.name for each in spark.catalog.listTables()} == before
    spark.stop()


@pytest.mark.parametrize("condition", ["m > 5", "NOT m < 5", "m IS NULL"])
def test_a_median_between_infinities_is_missing(condition):
    """Of one person with both infinities: halfway there is no number, which to engines is above all others."""
    con = duckdb.connect()
    con.execute("CREATE TABLE v AS SELECT * FROM (VALUES (1, '-inf'::DOUBLE), (1, 'inf'::DOUBLE)) AS t (pid, x)")
    elsewhere = Elsewhere(con, POSTGRES, {"v": {"pid": "INTEGER", "x": "DOUBLE"}})
    median = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"
    query = f"SELECT COUNT(*) AS c FROM (SELECT pid, {median} AS m FROM v GROUP BY pid) AS own WHERE {condition}"
    found = [elsewhere.sql(query, person="pid"), pdrisk.sql(query, con, eps=1, person="pid", curator=True)]
    assert [each["c_n"].item() for each in found] == [int(condition == "m IS NULL")] * 2


@needs_server
class TestOnAServer:
    def test_a_dataset_of_several_tables(self, server, duck):
        tables = {name: (server, name) for name in TABLES}
        data = pdrisk.Dataset(tables, person=PEOPLE, public=PUBLIC)
        wanted = pdrisk.sql(C18, duck, curator=True, **options_of(C18))
        found = data.sql(C18, eps=1, keys=["ZH", "BE", "GE", "TI"], curator=True, groups=1)
        pd.testing.assert_frame_equal(not_drawn(found), not_drawn(wanted))

    @pytest.mark.parametrize("text", ["", "abc", "12"])
    def test_texts_that_are_written_out_and_are_no_numbers(self, server, text):
        """No failure, since it would come after the payment: as in a column they are missing."""
        query = f"SELECT COUNT(*) AS c FROM wards WHERE floor < CAST('{text}' AS INTEGER)"
        assert pdrisk.sql(query, server, eps=1, curator=True)["c_n"].item() == (5 if text == "12" else 0)

    def test_ids_of_two_types(self, server):
        """A decimal and a float are compared as floats, which could make one person of two."""
        with server.transaction(force_rollback=True):
            server.execute("CREATE TABLE a (pid numeric); CREATE TABLE b (pid double precision)")
            with pytest.raises(ParameterError, match="in one type"):
                pdrisk.sql("SELECT COUNT(DISTINCT pid) FROM a JOIN b USING (pid)", server, eps=1, person="pid")

    def test_texts_are_equal_by_their_code_points(self, server):
        with server.transaction(force_rollback=True):
            server.execute(
                "CREATE COLLATION ignores (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
                "CREATE TABLE a AS SELECT CAST(unnest(ARRAY['ann', 'bob']) AS text) COLLATE ignores AS pid;"
                "CREATE TABLE b AS SELECT CAST(unnest(ARRAY['Ann', 'bob']) AS text) COLLATE ignores AS pid"
            )
            query = "SELECT COUNT(DISTINCT pid) AS c FROM a JOIN b USING (pid)"
            found = pdrisk.sql(query, server, eps=1, person="pid", curator=True)
            assert found["c_n"].item() == 1
            assert server.execute("SELECT COUNT(DISTINCT pid) FROM a JOIN b USING (pid)").fetchone()[0] == 2

    @pytest.mark.parametrize(
        ("query", "options"),
        [
            ("SELECT COUNT(*) AS n FROM a", {"rows": 1}),
            ("SELECT COUNT(DISTINCT pid) AS n FROM a", {}),
            ("SELECT AVG(x) AS n FROM a", {"per_person": "max"}),
            ("SELECT g, COUNT(*) AS n FROM a GROUP BY g", {"rows": 1, "groups": 1, "keys": ["u", "v"]}),
            ("SELECT COUNT(*) AS n FROM a JOIN b USING (pid)", {"rows": {"a": 2, "b": 1}}),
            ("SELECT COUNT(DISTINCT pid) AS n FROM a WHERE pid NOT IN (SELECT pid FROM b)", {}),
        ],
    )
    def test_people_are_told_apart_by_code_points(self, server, query, options):
        """No two people of a collation are one, whatever it takes for equal."""
        people = [("a", "u", 1), ("A", "u", 2), ("A", "v", 3), ("\xe4", "u", 4), ("\xc4", "v", 5), (None, "u", 6)]
        frames = {"a": pd.DataFrame(people, columns=["pid", "g", "x"]), "b": pd.DataFrame({"pid": ["A", "\xe4", "b"]})}
        how = {"eps": 50, "person": "pid", "bounds": {"x": (0, 9)}, "curator": True, **options}
        words = query.replace(")", "").split()
        wanted = pdrisk.sql(query, **how, **{name: frame for name, frame in frames.items() if name in words})
        with server.transaction(force_rollback=True):
            server.execute(
                "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
                "CREATE TABLE a (pid text COLLATE loose, g text, x float); CREATE TABLE b (pid text COLLATE loose)"
            )
            server.cursor().executemany("INSERT INTO a VALUES (%s, %s, %s)", people)
            server.cursor().executemany("INSERT INTO b VALUES (%s)", [("A",), ("\xe4",), ("b",)])
            assert pdrisk.sql(query, server, **how)["n_n"].tolist() == wanted["n_n"].tolist()
            assert server.execute("SELECT COUNT(DISTINCT pid) FROM a").fetchone()[0] == 1


class TestQueriesOfNobody:
    """What pdrisk does not understand of public tables alone is written anew for DuckDB, and runs on copies of them."""

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(*) AS n FROM names WHERE canton IN (SELECT kind FROM wards) OR name IS NULL",
            "SELECT COUNT(*) AS n FROM wards WHERE ward NOT IN (SELECT floor FROM wards WHERE floor IS NOT NULL)",
            "SELECT COUNT(*) AS n FROM wards WHERE floor NOT IN (SELECT ward FROM wards)",
            "SELECT m.k, (SELECT COUNT(*) FROM wards WHERE kind = m.k) AS n FROM (SELECT DISTINCT kind AS k FROM wards)"
            " AS m ORDER BY m.k",
            "SELECT name FROM names n WHERE EXISTS (SELECT * FROM names o WHERE o.canton = n.canton AND o.name > "
            "n.name) OR n.canton IS NULL ORDER BY name",
            "WITH w AS (SELECT kind, AVG(floor) AS m FROM wards GROUP BY kind) SELECT kind FROM w WHERE m >= (SELECT "
            "MAX(m) FROM w v WHERE v.kind <> w.kind) ORDER BY kind",
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY floor, ward) AS r FROM wards WHERE ward IN "
            "(SELECT ward FROM wards) ORDER BY ward, floor LIMIT 3",
            "SELECT w.kind || '!' AS k, SUM(CASE WHEN floor > 0 THEN 1 ELSE 0 END) AS s FROM wards w LEFT JOIN names n "
            "ON n.canton = w.kind WHERE w.ward IN (SELECT ward FROM wards) GROUP BY w.kind ORDER BY 1",
            "SELECT kind, floor, COUNT(*) AS n FROM wards WHERE ward IN (SELECT ward FROM wards) GROUP BY "
            "ROLLUP (kind, floor) ORDER BY kind NULLS LAST, floor NULLS LAST, n",
        ],
    )
    def test_are_those_of_duckdb(self, other, duck, query):
        found = other.sql(query, public=PUBLIC, curator=False, risk_columns=False)
        wanted = duck.execute(query.replace("ORDER BY m.k", "ORDER BY m.k NULLS LAST")).df()
        assert list(found.columns) == list(wanted.columns)
        own, other_rows = (each.astype(object).where(each.notna(), -1) for each in (found, wanted))
        assert own.to_numpy().tolist() == other_rows.to_numpy().tolist()
        assert pdrisk.explain(found).startswith("Rows of public tables, without noise: nobody is in them")

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(*) FROM wards WHERE ward IN (SELECT ward FROM patients)",
            "SELECT kind, (SELECT MAX(weight) FROM patients p WHERE p.ward = wards.ward) FROM wards",
            "SELECT kind FROM wards, (WITH patients AS (SELECT 1 AS x FROM names) SELECT x FROM patients) p, patients",
            "WITH w AS (SELECT ward FROM patients) SELECT COUNT(*) FROM wards WHERE ward IN (SELECT ward FROM w)",
            "SELECT read_text('/etc/passwd') FROM wards WHERE ward IN (SELECT ward FROM wards)",
            "SELECT kind FROM wards, read_csv('people.csv') WHERE ward IN (SELECT ward FROM wards)",
            "SELECT COUNT(*) FROM wards WHERE ward IN (SELECT oid FROM pg_catalog.pg_class)",
            "SELECT COUNT(*) FROM wards WHERE ward IN (SELECT ward FROM other.wards)",
        ],
    )
    def test_reach_nobody(self, other, query):
        with pytest.raises(PdriskError):
            other.sql(query, public=PUBLIC, person=PEOPLE, curator=False, risk_columns=False)

    @pytest.mark.parametrize(
        "query",
        [
            # Names that DuckDB would look for elsewhere than PostgreSQL does.
            "SELECT (SELECT w.kind AS f FROM wards w WHERE f = 1 LIMIT 1) AS x FROM (SELECT floor AS f FROM wards) t",
            "SELECT (SELECT COUNT(*) FROM wards WHERE rowid = 1) FROM (SELECT 1 AS rowid FROM names) t",
            "SELECT (SELECT COUNT(*) FROM wards w WHERE w = 1) FROM (SELECT 1 AS w FROM names) t",
            "SELECT -floor AS floor FROM wards WHERE ward IN (SELECT ward FROM wards) ORDER BY floor + 0",
            "SELECT floor AS f FROM wards WHERE ward IN (SELECT ward FROM wards) AND f = 1",
            # Values that it would write in another way.
            "SELECT CAST(w AS TEXT) FROM (SELECT AVG(floor) AS w FROM wards WHERE ward IN (SELECT ward FROM wards)) t",
            "SELECT SUBSTRING(kind FROM 0 FOR 1) FROM wards WHERE ward IN (SELECT ward FROM wards)",
            "SELECT kind FROM wards WHERE ward IN (SELECT ward FROM wards) INTERSECT SELECT 'a'",
            "SELECT ward / floor FROM wards WHERE ward IN (SELECT ward FROM wards)",
        ],
    )
    def test_that_could_mean_something_else_are_refused(self, duck, query):
        own = Elsewhere(duck, POSTGRES, TABLES)
        with pytest.raises(PdriskError) as failed:
            own.sql(query, public=PUBLIC, curator=False, risk_columns=False)
        assert "DuckDB fails" not in str(failed.value)

    def test_nothing_of_the_text_reaches_the_engine(self, duck):
        own = Elsewhere(duck, POSTGRES, TABLES)
        query = "SELECT name FROM names WHERE canton = 'ZH' AND name IN (SELECT name FROM names) ORDER BY name"
        assert own.sql(query, public=PUBLIC, curator=False, risk_columns=False)["name"].tolist() == ["Zurich", "Zürich"]
        assert own.sent
        assert all("ZH" not in sql and "LIMIT 1000001" in sql for sql in own.sent)

    def test_keep_every_value(self, duck):
        kinds = {"b": "BIGINT", "f": "DOUBLE", "t": "VARCHAR", "d": "DATE", "s": "TIMESTAMP", "w": "BOOLEAN"}
        duck.execute(
            "CREATE OR REPLACE TEMP TABLE odd AS SELECT * FROM (VALUES (9007199254740993, 0.1::DOUBLE, 'x', DATE "
            "'9999-12-31', TIMESTAMP '1600-01-01 00:00:00.000001', true), (NULL, 'nan', '', NULL, NULL, false), "
            "(-1, NULL, NULL, DATE '0001-01-01', NULL, NULL)) t(b, f, t, d, s, w)"
        ).fetchall()
        query = "SELECT * FROM odd WHERE NOT EXISTS (SELECT 1 FROM names WHERE name = t)"
        own = Elsewhere(duck, POSTGRES, {"odd": kinds, "names": TABLES["names"]})
        found = own.sql(f"{query} ORDER BY b", public=["odd", "names"], curator=False, risk_columns=False)
        assert found.astype(str).equals(duck.execute(f"{query} ORDER BY b NULLS LAST").df().astype(str))

    def test_tables_with_times_of_zones_are_refused_if_these_are_read(self, duck):
        duck.execute(
            "CREATE OR REPLACE TEMP TABLE zoned AS SELECT 1 AS a, TIMESTAMPTZ '2020-01-01 00:00:00+02' AS z"
        ).fetchall()
        own = Elsewhere(duck, POSTGRES, {"zoned": {"a": "INTEGER", "z": "TIMESTAMP WITH TIME ZONE"}})
        how = {"public": ["zoned"], "curator": False, "risk_columns": False}
        assert own.sql("SELECT a FROM zoned WHERE a IN (SELECT a FROM zoned)", **how)["a"].tolist() == [1]
        with pytest.raises(ParameterError):
            own.sql("SELECT z FROM zoned WHERE a IN (SELECT a FROM zoned)", **how)


@pytest.mark.parametrize("join", ["p.ward > 1 AND (p.ward < 4 AND {})", "({} AND p.ward > 1) AND p.ward < 4"])
@pytest.mark.parametrize(
    "condition",
    ["EXISTS (SELECT 1 FROM diagnoses d WHERE d.pid = p.pid)", "NOT (p.pid IN (SELECT pid FROM diagnoses))"],
)
def test_memberships_in_brackets(other, duck, join, condition):
    query = f"SELECT COUNT(DISTINCT p.pid) AS n FROM patients p WHERE {join.format(condition)}"
    plain = query.replace("FROM diagnoses)", "FROM diagnoses WHERE pid IS NOT NULL)")
    wanted = duck.execute(plain).fetchone()[0]
    found = other.sql(query, person=PEOPLE, public=PUBLIC)
    assert found["n_n"].item() == wanted
    found = pdrisk.sql(query, duck, eps=1, person=PEOPLE, public=PUBLIC, curator=True)
    assert found["n_n"].item() == wanted


LISTED = [
    "canton = 'ZH' OR ward IN (SELECT ward FROM wards WHERE kind = 'b')",
    "canton = 'ZH' OR ward NOT IN (SELECT ward FROM wards WHERE kind = 'b')",
    "canton = 'ZH' OR NOT (ward IN (SELECT ward FROM wards))",  # one of which is missing
    "canton = 'ZH' OR ward IN (SELECT ward FROM wards WHERE ward > 9)",
    "canton = 'ZH' OR ward IN (SELECT MAX(ward) FROM wards GROUP BY kind)",
    "canton = 'ZH' OR canton IN (SELECT canton FROM names) AND ward > 2",
    "CASE WHEN ward IN (SELECT ward FROM wards WHERE kind = 'b') THEN weight > 60 END",
]


@pytest.mark.parametrize("condition", LISTED)
def test_values_of_nobody_are_a_list(other, duck, condition):
    query = f"SELECT COUNT(DISTINCT pid) AS n FROM patients WHERE {condition}"
    found = other.sql(query, person=PEOPLE, public=PUBLIC)
    assert found["n_n"].item() == duck.execute(query).fetchone()[0]
