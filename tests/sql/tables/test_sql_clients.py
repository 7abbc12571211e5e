"""Tools around SQL: SQLAlchemy's engines, connections and texts, text that ibis writes, and lists of files."""

import re

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset
from sql_people import BOUNDS, PEOPLE, REGIONS, people, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

QUERY = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > {} GROUP BY region ORDER BY region"
OPTIONS = {"eps": 1, "bounds": BOUNDS, "keys": REGIONS}


@pytest.fixture
def exact(monkeypatch):
    return without_noise(monkeypatch)


@pytest.fixture
def expected(exact):
    return pdrisk.sql(QUERY.format(40), people=people(), **OPTIONS)


class TestSqlalchemy:
    @pytest.fixture
    def engine(self):
        alchemy = pytest.importorskip("sqlalchemy")
        pytest.importorskip("duckdb_engine")
        engine = alchemy.create_engine("duckdb:///:memory:")
        with engine.connect() as con:
            con.connection.driver_connection.register("frame", people())
            con.execute(alchemy.text("CREATE TABLE people AS SELECT * FROM frame"))
            con.commit()
        yield engine
        engine.dispose()

    def test_engines_and_connections(self, engine, expected):
        pd.testing.assert_frame_equal(pdrisk.sql(QUERY.format(40), engine, **OPTIONS), expected)
        with engine.connect() as con:
            pd.testing.assert_frame_equal(pdrisk.sql(QUERY.format(40), con, **OPTIONS), expected)
            with con.begin(), pytest.raises(pdrisk.ParameterError, match=r"ROLLBACK first\. .* pass the Engine"):
                pdrisk.sql(QUERY.format(40), con, **OPTIONS)
            pd.testing.assert_frame_equal(pdrisk.sql(QUERY.format(40), con, **OPTIONS), expected)

    def test_texts(self, engine, expected):
        from sqlalchemy import text

        said = text(QUERY.format(":least"))
        for query, params in (
            (said, {"least": 40}),
            (said.bindparams(least=40), None),
            (said.bindparams(least=9), {"least": 40}),
        ):
            answer = pdrisk.sql(query, engine, params=params, **OPTIONS)
            pd.testing.assert_frame_equal(answer, expected)
            assert not re.search(r"\b40\b", answer.attrs["dprisk"])  # nor is the value of any other parameter shown
        frame = people()
        pd.testing.assert_frame_equal(pdrisk.sql(said, people=frame, params={"least": 40}, **OPTIONS), expected)
        pd.testing.assert_frame_equal(Dataset({"people": frame}).sql(said, params={"least": 40}, **OPTIONS), expected)

    def test_statements_of_its_own(self, engine, exact):
        import sqlalchemy as sa

        table = sa.table("people", sa.column("age"), sa.column("sex"))
        asked = sa.select(sa.func.count().label("n")).where(table.c.age > 40, table.c.sex.in_(["f", "m"]))
        assert pdrisk.sql(asked, engine, eps=1)["n"].item() == (PEOPLE["age"] > 40).sum()

    @pytest.mark.parametrize(
        ("params", "why"),
        [
            (None, "no value for :least"),
            ({}, "no value for :least"),
            ({"least": 1, "x": 2}, "no place for parameter 'x'"),
        ],
    )
    def test_parameters_that_do_not_fit(self, engine, params, why):
        from sqlalchemy import text

        with pytest.raises(pdrisk.ParameterError, match=why):
            pdrisk.sql(text("SELECT COUNT(*) FROM people WHERE age > :least"), engine, eps=1, params=params)

    def test_what_it_is_not(self, engine):
        import sqlalchemy as sa
        from sqlalchemy.orm import Session

        other = sa.create_engine("sqlite://")
        for con, why in ((other, "not to sqlite"), (Session(engine), r"session\.get_bind\(\)")):
            with pytest.raises(pdrisk.ColumnTypeError, match=why):
                pdrisk.sql("SELECT COUNT(*) FROM people", con, eps=1)
        other.dispose()
        with pytest.raises(pdrisk.ColumnTypeError, match="is a dict"):
            pdrisk.sql(sa.text("SELECT COUNT(*) FROM people"), engine, eps=1, params=[1])
        with pytest.raises(pdrisk.ColumnTypeError, match="a query is text"):
            pdrisk.sql(sa.table("people").c, engine, eps=1)


class TestIbis:
    """What ibis writes for DuckDB is read as it is."""

    @pytest.fixture
    def con(self):
        con = duckdb.connect()
        con.register("frame", people())
        con.execute("CREATE TABLE people AS SELECT * FROM frame")
        return con

    def test_texts(self, con, exact):
        ibis = pytest.importorskip("ibis")
        columns = {"age": "int64", "region": "string", "sex": "string", "member": "boolean", "day": "timestamp"}
        t, own = ibis.table(columns, name="people"), ibis._
        by_region = t.filter(own.region != "west").group_by("region").agg(n=own.count())
        asked = {
            t.aggregate(n=t.count(), a=t.age.mean(), s=t.age.std(how="pop")): None,
            by_region.order_by(ibis.desc("n"), "region"): REGIONS[:2],
            by_region.mutate(share=own.n / own.n.sum()).order_by("region"): REGIONS[:2],
            t.group_by(old=own.age > 40).agg(n=own.count()).order_by("old"): None,
            t.aggregate(n=t.count(where=t.age > 40), m=t.member.mean(), d=t.sex.nunique()): None,
            t.filter(own.sex.isin(["m", "f"])).group_by("sex").agg(n=own.count()).order_by("sex"): None,
            t.filter(own.age > t.age.mean()).aggregate(n=own.count()): None,
            t.filter(own.member).agg(n=own.count()).union(t.filter(~own.member).agg(n=own.count())).order_by("n"): None,
            t.filter(own.day >= "2021-01-01", own.day < "2021-04-01")
            .group_by(m=own.day.truncate("M"))
            .agg(n=own.count())
            .order_by("m"): None,
        }
        for expression, keys in asked.items():
            text = ibis.to_sql(expression, dialect="duckdb")
            answer = pdrisk.sql(text, con, eps=1, bounds=BOUNDS | {"age": (11, 93)}, keys=keys)
            wanted = con.execute(text).df()
            pd.testing.assert_frame_equal(answer, wanted, check_dtype=False, check_column_type=False, rtol=1e-4)


class TestFiles:
    @pytest.fixture
    def paths(self, tmp_path):
        frame = people()
        parts = [frame[:50], frame[50:51], frame[51:]]
        for at, part in enumerate(parts):
            part.to_parquet(tmp_path / f"part {at}.parquet")
        return [tmp_path / f"part {at}.parquet" for at in range(3)]

    def test_a_list_is_one_table(self, paths, expected):
        for files in (paths, tuple(map(str, paths)), [str(paths[0]), *paths[1:]]):
            pd.testing.assert_frame_equal(pdrisk.sql(QUERY.format(40), people=files, **OPTIONS), expected)
        d = Dataset({"people": paths})
        paths.pop()
        pd.testing.assert_frame_equal(d.sql(QUERY.format(40), **OPTIONS), expected)

    def test_what_is_no_list_of_files(self, paths, tmp_path):
        for wrong in ([], [1], [paths], ["a", None], {*paths}):
            with pytest.raises(pdrisk.ColumnTypeError, match="the path of a Parquet file"):
                pdrisk.sql("SELECT COUNT(*) FROM people", eps=1, people=wrong)
        with pytest.raises(pdrisk.ParameterError, match="cannot open this Parquet file"):
            pdrisk.sql("SELECT COUNT(*) FROM people", eps=1, people=[*paths, tmp_path / "none.parquet"])
        people().rename(columns={"age": "years"}).to_parquet(paths[2])
        with pytest.raises(pdrisk.ParameterError, match=r"'part 2\.parquet' has other columns or types"):
            pdrisk.sql("SELECT COUNT(*) FROM people", eps=1, people=paths)

    def test_a_ledger_remembers_until_one_is_written(self, paths, book):
        ledger = book()

        def ask():
            before = ledger.remaining().spent
            d = Dataset({"people": paths}, ledger=ledger, version="1")
            d.sql("SELECT COUNT(*) FROM people", eps=1)
            return ledger.remaining().spent - before

        assert [ask(), ask()] == [1, 0]
        people()[:7].to_parquet(paths[1])
        assert ask() == 1
