"""``Dataset.join`` of tables that PostgreSQL or Spark have: the numbers of the same join on DuckDB, joined there."""

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk.errors import ParameterError
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from test_sql_elsewhere_joins import OF_POSTGRES, OF_SPARK, TABLES, filled, rows

pytestmark = pytest.mark.filterwarnings("ignore")
BOUNDS = {"patients": {"weight": (0, 100)}, "diagnoses": {"cost": (0, 50)}, "wards": None}
ASKS = {
    "people": lambda d: d.count(eps=1, where="weight > 50"),
    "mean": lambda d: d.mean("cost", eps=1, rows=9),
    "one number": lambda d: d.mean("cost", eps=1, per_person="max"),
    "groups": lambda d: d.sum("weight", eps=1, rows=9, by="canton", keys=["ZH", "BE", "GE"], groups=1, curator=True),
    "a filter": lambda d: d.query("cost > 10 and code != 'I10'").median("weight", eps=1, rows=9),
    "assigned": lambda d: d.assign(dear="cost * 2 > weight").proportion("dear", eps=1, rows=9),
    "different": lambda d: d.nunique("code", eps=1, rows=9),
    "bins": lambda d: d.hist("weight", bins=4, eps=1, rows=9),
}


def joined(tables, how="inner"):
    people = pdrisk.Dataset(tables["patients"], person="pid", per_person="one", bounds=BOUNDS["patients"])
    return people.join(pdrisk.Dataset(tables["diagnoses"], person="pid", bounds=BOUNDS["diagnoses"]), how=how)


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as con:
        for name, listed in filled(con, {}).items():
            con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(TABLES[name]))})", listed)
        yield {name: (con, name) for name in TABLES}


@pytest.fixture(scope="module")
def postgres():
    with database() as url, connected(url) as con:
        for name, listed in filled(con, OF_POSTGRES).items():
            con.cursor().executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(TABLES[name]))})", listed)
        con.commit()
        yield {name: (url, name) for name in TABLES}


@pytest.fixture(scope="module")
def spark():
    own, frames = session(), {}
    for name, columns in TABLES.items():
        types = {each: OF_SPARK.get(of, of) for each, of in columns.items()}
        texts = ", ".join(f"{each} {of}" for each, of in types.items()).replace("DATE", "string")
        found = own.createDataFrame(rows()[name], texts)
        frames[name] = found.selectExpr(*(f"CAST({each} AS {of}) {each}" for each, of in types.items()))
    yield frames
    own.stop()


@pytest.fixture(
    params=[pytest.param("postgres", marks=needs_server), pytest.param("spark", marks=[needs_spark, pytest.mark.slow])]
)
def server(request):
    return request.getfixturevalue(request.param)


def exact(answer):
    """The curator's number of records and the facts that are exact on every engine."""
    if isinstance(answer, pd.DataFrame):
        return answer.reset_index(drop=True)
    return [answer.curator.n, answer.global_sensitivity, answer.curator.clamped]


@pytest.mark.whole
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("ask", ASKS)
def test_the_numbers_of_duckdb(duck, server, ask, how):
    wanted, found = (ASKS[ask](joined(tables, how)) for tables in (duck, server))
    if isinstance(wanted, pd.DataFrame):
        assert list(found.index) == list(wanted.index)
        columns = [each for each in ("n", "local_sensitivity", "clamped") if each in wanted]
        pd.testing.assert_frame_equal(found[columns], wanted[columns])
    else:
        assert exact(found) == exact(wanted)


def test_a_public_table_and_sql(duck, server):
    """Sums at an eps so large that the noise is nothing: the exact number of the same join."""
    answers = []
    for tables in (duck, server):
        people = pdrisk.Dataset(tables["patients"], person="pid", per_person="one", bounds=BOUNDS["patients"])
        data = people.join(tables["wards"], on="ward")
        answers.append(
            data.sql("SELECT COUNT(*) AS n, SUM(floor) AS s FROM data", eps=1e7, rows=2, bounds={"floor": (0, 9)})
        )
        assert data.count(eps=1e7, where="kind == 'b'", rows=2).value > 0
    pd.testing.assert_frame_equal(answers[0], answers[1], atol=0.01)


@needs_server
def test_what_is_refused(postgres, duck):
    people = pdrisk.Dataset(postgres["patients"], person="pid")
    with pytest.raises(ParameterError, match="together with others"):
        people.join(pdrisk.Dataset(duck["diagnoses"], person="pid")).count(eps=1)
    with pytest.raises(ParameterError, match="on= leaves out"):
        people.join(pdrisk.Dataset(postgres["diagnoses"], person="pid"), on="weight")
