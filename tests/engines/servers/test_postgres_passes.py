"""A variance reads a table of PostgreSQL twice: in one state of the data, whoever writes between the passes."""

import pandas as pd
import pytest

import pdrisk
from pdrisk._tables import postgres_table as postgres
from postgres_databases import connected, database, needs_server

pytestmark = [needs_server, pytest.mark.filterwarnings("ignore::UserWarning")]
BOUNDS = {"x": (0, 100)}
BEFORE, WRITTEN = [1.0, 2.0, 4.0, 50.0], [99.0, 3.0]  # those written would move ends, mean and the nearest record


@pytest.fixture(scope="module")
def server():
    with database() as url:
        yield url


@pytest.fixture
def sent(server, monkeypatch):
    """The statements of answers, after each of which another session writes."""
    statements, fetch = [], postgres.fetched
    with connected(server) as other:
        other.execute("DROP TABLE IF EXISTS written CASCADE; CREATE TABLE written (x double precision)")
        other.cursor().executemany("INSERT INTO written VALUES (%s)", [(each,) for each in BEFORE])
        other.commit()

        def noted(cursor, sql, values):
            found = fetch(cursor, sql, values)
            statements.append(sql)
            other.cursor().executemany("INSERT INTO written VALUES (%s)", [(each,) for each in WRITTEN])
            other.commit()
            return found

        monkeypatch.setattr(postgres, "fetched", noted)
        yield statements


def found(data):
    """What the curator sees; the sensitivity needs the mean, the squares and the record nearest to the mean."""
    curator = data.var("x", eps=1, curator=True).curator
    return curator.n, curator.local_sensitivity


def expected(values):
    n, sensitivity = found(pdrisk.Dataset(pd.DataFrame({"x": values}), bounds=BOUNDS))
    return n, pytest.approx(sensitivity, rel=1e-12)


def of(given):
    return pdrisk.Dataset((given, "written"), bounds=BOUNDS)


class TestOneState:
    """Both passes see what was there when the first one began."""

    def test_of_a_url(self, server, sent):
        assert found(of(server)) == expected(BEFORE)
        assert len(sent) == 2

    @pytest.mark.parametrize("autocommit", [False, True])
    def test_of_psycopg(self, server, sent, autocommit):
        with connected(server) as con:
            con.autocommit = autocommit
            assert found(of(con)) == expected(BEFORE)
            assert found(of(con)) == expected(BEFORE + 2 * WRITTEN)  # no state is kept from one answer to the next
        assert len(sent) == 4

    @pytest.mark.parametrize("level", [None, "AUTOCOMMIT", "READ COMMITTED", "SERIALIZABLE"])
    def test_of_sqlalchemy(self, server, sent, level):
        options = {} if level is None else {"isolation_level": level}
        engine = pytest.importorskip("sqlalchemy").create_engine(server.replace("://", "+psycopg://"), **options)
        assert found(of(engine)) == expected(BEFORE)
        assert len(sent) == 2
        with engine.connect() as con:
            assert found(of(con)) == expected(BEFORE + 2 * WRITTEN)
        engine.dispose()

    @pytest.mark.parametrize(
        ("level", "statements"), [("READ COMMITTED", 1), ("REPEATABLE READ", 2), ("SERIALIZABLE", 2)]
    )
    def test_in_a_transaction(self, server, sent, level, statements):
        """Where each statement sees a state of its own, one reads both passes."""
        with connected(server) as con:
            con.autocommit = True
            with con.transaction():
                con.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                con.execute("INSERT INTO written VALUES (7)")
                assert found(of(con)) == expected([*BEFORE, 7.0])
        assert len(sent) == statements

    def test_in_sql(self, server, sent):
        asked = "SELECT VAR_SAMP(x) AS v, MEDIAN(x) AS m FROM written"
        table = pdrisk.sql(asked, server, eps=2, bounds=BOUNDS, curator=True)
        assert (table["v_n"].item(), table["v_local_sensitivity"].item()) == expected(BEFORE)
        assert table["m_n"].item() == len(BEFORE)
        assert len(sent) == 2


class TestReadLater:
    """What only curators see is read when they look, and only of what noise was added to."""

    @pytest.mark.parametrize("name", ["mean", "var"])
    def test_the_same_numbers(self, server, name):
        with connected(server) as con:
            con.execute(
                "CREATE TEMP TABLE still AS SELECT i / 7.0::double precision AS x FROM generate_series(1, 99) i"
            )
            data = pdrisk.Dataset((con, "still"), bounds=BOUNDS)
            later, at_once = (getattr(data, name)("x", eps=1, curator=asked).curator for asked in (False, True))
        assert later == at_once

    @pytest.mark.parametrize("name", ["mean", "var"])
    def test_somebody_wrote_meanwhile(self, server, sent, name):
        with connected(server) as con:
            release = getattr(of(con), name)("x", eps=1)
            assert len(sent) == 1
            with pytest.raises(pdrisk.QueryFailedError, match="has changed since the answer"):
                release.curator  # noqa: B018


class TestBySeveralProcesses:
    """Each pass is a plain aggregate, which a server reads by several processes."""

    def test_plans(self, server, sent):
        with connected(server) as con:
            found(of(con))
            con.execute(
                "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
            )
            for sql in sent:
                plan = "\n".join(line for (line,) in con.execute(f"EXPLAIN {sql}"))
                assert "Partial Aggregate" in plan
                assert "Parallel Seq Scan on written" in plan
        assert len(sent) == 2

    def test_of_people(self, server, sent):
        """Records of people are made once, in the statement that has both passes."""
        with connected(server) as con:
            con.execute("CREATE VIEW of_people AS SELECT x, 1 AS pid FROM written")
            con.commit()
            pdrisk.Dataset((con, "of_people"), bounds=BOUNDS, person="pid", per_person="mean").var("x", eps=1)
        assert len(sent) == 1
