"""Tables of PostgreSQL and of engines with portable words have the same measures as the frame of the same rows."""

from functools import partial

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk._disclosure import measures
from pdrisk._disclosure.measures import asked
from pdrisk._disclosure.sql_table import SQLKeys
from pdrisk._model.declared.declarations import Declarations
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ColumnTypeError, UnknownColumnError
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from test_disclosure_in_duckdb import ASKED, FRAME, MEASURES, assert_same

TYPES = {"BIGINT": "bigint", "DOUBLE": "double precision", "VARCHAR": "text", "BOOLEAN": "boolean", "ENUM": "text"}
UNDECLARED = Declarations()
OF_POPULATION = {
    "population": pd.concat([FRAME, FRAME]), "population_counts": None, "weights": None, "model": None,
    "on_missing": "error",
}  # fmt: skip
OF_CLASSES = {
    "k_anonymity": lambda table, wanted: measures.k_anonymity(table, wanted),
    "k_map": lambda table, wanted: measures.k_map(table, wanted, **OF_POPULATION),
    "l_diversity": lambda table, wanted: measures.l_diversity(table, wanted, "illness"),
    "unique_rows": lambda table, wanted: measures.unique_rows(table, wanted, weights=None, model="auto"),
}


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.register("shown", FRAME)
    connection.execute("CREATE TABLE people AS SELECT * FROM shown")
    return connection


def table(con, declared=UNDECLARED):
    types = {name: kind for name, kind, *_ in con.execute("DESCRIBE people").fetchall()}
    return SQLKeys(SQLTable("people", stored_columns(types), Dialect(), partial(fetched, con)), declared)


@pytest.fixture(scope="module")
def server(con):
    with database() as url, connected(url) as connection:
        described = con.execute("DESCRIBE people").fetchall()
        names = {
            name: TYPES.get(kind, "text" if kind.startswith("ENUM") else "timestamp") for name, kind, *_ in described
        }
        connection.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in names.items())})")
        rows = con.execute("SELECT * FROM people").fetchall()
        connection.cursor().executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(names))})", rows)
        yield connection


@pytest.mark.parametrize("at", range(len(ASKED)))
@pytest.mark.parametrize("measure", OF_CLASSES)
def test_the_same_classes(con, measure, at):
    on, said = ASKED[at]
    wanted = MEASURES[measure](FRAME.dprisk, on, **said)
    assert_same(OF_CLASSES[measure](table(con), asked(on, **said)), wanted)


def test_an_unknown_column(con):
    with pytest.raises(UnknownColumnError, match="nothing"):
        table(con).read(asked(["nothing"]))


@needs_spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_spark():
    spark = session()
    rows = [tuple(None if pd.isna(each) else each for each in row) for row in FRAME[["age", "sex", "pid"]].to_numpy()]
    data = spark.createDataFrame(rows, "age bigint, sex string, pid bigint")
    selected = [pdrisk.Dataset(each).query("age > 21") for each in (data, FRAME)]
    for said in ({}, {"person": "pid"}):
        found, wanted = (each.k_anonymity(["age", "sex"], **said) for each in selected)
        assert found.to_dict() == wanted.to_dict()
    spark.stop()


@needs_server
class TestOnAServer:
    @pytest.mark.parametrize("at", range(len(ASKED)))
    @pytest.mark.parametrize("measure", [name for name in MEASURES if name != "estimate"])
    def test_the_same_classes(self, server, measure, at):
        on, said = ASKED[at]
        wanted = MEASURES[measure](FRAME.dprisk, on, **said)
        assert_same(MEASURES[measure](pdrisk.Dataset((server, "people")), on, **said), wanted)

    def test_decimals(self, server):
        """Those that floats tell apart are keys, others are not."""
        with server.transaction(force_rollback=True):
            server.execute("CREATE TABLE t AS SELECT CAST(1.5 AS numeric(5, 2)) AS a, CAST(1 AS numeric) AS b")
            data = pdrisk.Dataset((server, "t"))
            assert data.k_anonymity("a").k == 1
            with pytest.raises(ColumnTypeError, match="cast it to text"):
                data.k_anonymity("b")

    def test_functions_and_operators_of_another_schema(self, server):
        """Those that come first in the connection's search_path stand in for none that a measure calls."""
        with server.transaction(force_rollback=True):
            server.execute("""
                CREATE SCHEMA evil;
                CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
                CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
                CREATE OPERATOR evil.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
                CREATE FUNCTION evil.more(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 42';
                CREATE AGGREGATE evil.count(*) (SFUNC = evil.more, STYPE = bigint, INITCOND = '0');
                CREATE FUNCTION evil.most(bigint, anyelement) RETURNS bigint IMMUTABLE LANGUAGE sql
                    AS 'SELECT 42::bigint';
                CREATE AGGREGATE evil.sum(bigint) (SFUNC = evil.most, STYPE = bigint, INITCOND = '0');
                CREATE AGGREGATE evil.sum(integer) (SFUNC = evil.most, STYPE = bigint, INITCOND = '0');
                SET LOCAL search_path = evil, pg_catalog, public;
            """)
            assert server.execute("SELECT count(*), sum(age), 1::bigint = 1::bigint FROM people").fetchall() == [
                (42 * len(FRAME), 42, False)
            ]
            for on, said in (ASKED[0], ASKED[3]):
                data = pdrisk.Dataset((server, "public.people"))
                assert_same(data.k_anonymity(on, **said), FRAME.dprisk.k_anonymity(on, **said))

    def test_analysts_see_nothing(self, server, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1, policy={"curators": ["somebody else"]})
        data = pdrisk.Dataset((server, "people"), ledger=ledger)
        with pytest.raises(pdrisk.PolicyError):
            data.k_anonymity("age")

    def test_what_a_dataset_selects(self, server):
        check_selected((server, "people"))


def test_what_a_dataset_of_duckdb_selects(con):
    """A measure of all rows would be another, and larger."""
    check_selected((con, "people"))


def check_selected(given):
    data, frame = map(pdrisk.Dataset, (given, FRAME))
    for made in (
        lambda d: d.query("age > 22"),
        lambda d: d.query("age > 22 and zip != 'nowhere'").query("age < 29"),
        lambda d: d.assign(old="age > 22"),
    ):
        assert_same(made(data).k_anonymity(["age"]), made(frame).k_anonymity(["age"]))
        assert_same(made(data).l_diversity(["sex"], "illness"), made(frame).l_diversity(["sex"], "illness"))
    codes = {"missing": {"age": [23, 24]}}
    found, wanted = (pdrisk.Dataset(each, **codes).query("pid > 0") for each in (given, FRAME))
    assert found.k_anonymity(["age", "zip"]).to_dict() == wanted.k_anonymity(["age", "zip"]).to_dict()
    assert len(found.k_anonymity(["age"]).classes) != len(frame.query("pid > 0").k_anonymity(["age"]).classes)
    found, wanted = (d.assign(old="age > 22").k_anonymity(["old", "sex"]) for d in (data, frame))
    assert found.to_dict() == wanted.to_dict()
    assert data.query("age > 22").k_anonymity(["age"]).to_dict() != data.k_anonymity(["age"]).to_dict()
