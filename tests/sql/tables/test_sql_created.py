"""CREATE TABLE AS: noisy answers become tables where they were asked, whole or not at all."""

import duckdb
import pandas as pd
import pytest
import sqlalchemy

import pdrisk
from pdrisk._sql.together.created import MARK, NewTable
from pdrisk.errors import ParameterError
from postgres_databases import connected, database, needs_server, role

QUERY = "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM people GROUP BY g"
OPTIONS = {"eps": 2, "keys": ["a", "b"], "bounds": {"x": (0, 9)}}
PEOPLE = "CREATE TABLE people AS SELECT ['a', 'b'][1 + i % 2] AS g, i % 10 AS x FROM range(2000) r (i)"


@pytest.fixture
def con():
    with duckdb.connect() as own:
        own.execute(PEOPLE)
        yield own


def tables(con):
    return sorted(name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall())


class TestWritten:
    @pytest.mark.parametrize("words", [
        "CREATE TABLE out AS ", "create or replace table out as\n", 'CREATE TEMP TABLE "out" AS ',
        "-- monthly\nCREATE /* new */ TABLE main.out AS ",
    ])  # fmt: skip
    def test_what_is_answered(self, con, words):
        answer = pdrisk.sql(words + QUERY, con, **OPTIONS)
        assert con.execute("FROM out").fetchall() == [tuple(row) for row in answer.to_numpy().tolist()]
        assert tables(con) == ["out", "people"]
        assert con.execute("SELECT count(*) FROM people").fetchone() == (2000,)

    def test_its_label_is_its_comment(self, con):
        answer = pdrisk.sql("CREATE TABLE out AS " + QUERY, con, **OPTIONS)
        comment = con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'out'").fetchone()[0]
        assert comment == f"{MARK}\n{pdrisk.explain(answer, 'publication')}"

    def test_in_parentheses_with_params_and_ctes(self, con):
        query = "CREATE TABLE out AS (WITH old AS (SELECT * FROM people WHERE x >= ?) SELECT COUNT(*) AS n FROM old)"
        answer = pdrisk.sql(query, con, eps=1, params=[5])
        assert con.execute("FROM out").fetchall() == [tuple(answer.loc[0])]

    def test_a_frame_in_a_table_of_the_connection(self, con):
        pdrisk.sql("CREATE TABLE out AS SELECT COUNT(*) AS n FROM f", con, eps=1, f=pd.DataFrame({"a": [1, 2]}))
        assert tables(con) == ["out", "people"]

    def test_by_sqlalchemy(self, tmp_path):
        engine = sqlalchemy.create_engine(f"duckdb:///{tmp_path / 'own.db'}")
        with engine.connect() as made:
            made.exec_driver_sql(PEOPLE)
            made.commit()
        answer = pdrisk.sql("CREATE TABLE out AS " + QUERY, engine, **OPTIONS)
        assert pd.read_sql("FROM out", engine)["n"].tolist() == answer["n"].tolist()

    def test_it_replaces_its_own(self, con, book):
        for _ in range(2):
            answer = pdrisk.sql("CREATE OR REPLACE TABLE out AS " + QUERY, con, ledger=book(eps=4), **OPTIONS)
            assert con.execute("SELECT n FROM out").fetchall() == [(n,) for n in answer["n"]]

    def test_a_preview_writes_nothing(self, con):
        preview = pdrisk.sql("CREATE TABLE out AS " + QUERY, con, explain=True, **OPTIONS)
        assert len(preview) == 2 and tables(con) == ["people"]


class TestRefused:
    """Before anything is paid, and nothing of it stays."""

    @pytest.mark.whole
    @pytest.mark.parametrize(("words", "options", "said"), [
        ("CREATE TABLE people AS", {}, "the table cannot be made: .*already exists"),
        ("CREATE OR REPLACE TABLE people AS", {}, "a table people that pdrisk did not write"),
        ('CREATE OR REPLACE TABLE "PEOPLE" AS', {}, 'a table "PEOPLE" that pdrisk did not write'),
        ("CREATE OR REPLACE TABLE seen AS", {}, "the table cannot be made"),
        ("CREATE TABLE nowhere.out AS", {}, "the table cannot be made"),
        ("CREATE TABLE IF NOT EXISTS out AS", {}, "IF NOT EXISTS may leave out what was paid for"),
        ("CREATE TABLE out AS", {"curator": True}, "for all who read it"),
        ("CREATE VIEW out AS", {}, "answers one SELECT, nothing else, but this is CREATE"),
        ("EXPLAIN CREATE TABLE out AS", {}, "answers one SELECT, nothing else, but this is CREATE"),
        ("CREATE TABLE out AS EXPLAIN", {}, "no SQL that DuckDB understands"),
    ])  # fmt: skip
    def test_nothing_is_paid(self, con, book, words, options, said):
        con.execute("CREATE VIEW seen AS FROM people")
        ledger = book(eps=2)
        with pytest.raises(ParameterError, match=said):
            pdrisk.sql(f"{words} {QUERY}", con, ledger=ledger, **OPTIONS, **options)
        assert ledger.remaining().eps == 2
        assert tables(con) == ["people"]
        assert con.execute("SELECT count(*) FROM people").fetchone() == (2000,)

    def test_a_name_that_ends_in_a_quote(self, con):
        con.execute('CREATE TABLE "q""" AS SELECT 1 AS own')
        with pytest.raises(ParameterError, match="that pdrisk did not write"):
            pdrisk.sql('CREATE OR REPLACE TABLE "q""" AS ' + QUERY, con, **OPTIONS)
        assert con.execute('FROM "q"""').fetchall() == [(1,)]

    def test_words_in_comments(self, con):
        pdrisk.sql("CREATE TABLE out AS " + QUERY, con, **OPTIONS)
        with pytest.raises(ParameterError, match="already exists"):
            pdrisk.sql("CREATE /* OR REPLACE later */ TABLE out AS " + QUERY, con, **OPTIONS)

    def test_a_table_of_people_that_came_in_between(self, con, monkeypatch):
        monkeypatch.setattr(NewTable, "check", lambda *_: None)
        con.execute("CREATE TABLE out AS SELECT 1 AS own")
        with pytest.warns(UserWarning, match="not written to out: there is a table out that pdrisk did not write"):
            pdrisk.sql("CREATE OR REPLACE TABLE out AS " + QUERY, con, **OPTIONS)
        assert con.execute("FROM out").fetchall() == [(1,)]

    def test_a_refused_select_makes_no_table(self, con):
        with pytest.raises(ParameterError):
            pdrisk.sql("CREATE TABLE out AS SELECT x FROM people", con, eps=1)
        assert tables(con) == ["people"]

    def test_where_nobody_may_write(self, tmp_path, book):
        with duckdb.connect(tmp_path / "own.db") as own:
            own.execute(PEOPLE)
        ledger = book(eps=2)
        with (
            duckdb.connect(tmp_path / "own.db", read_only=True) as own,
            pytest.raises(ParameterError, match=r"the table cannot be made: .*read-only"),
        ):
            pdrisk.sql("CREATE TABLE out AS " + QUERY, own, ledger=ledger, **OPTIONS)
        assert ledger.remaining().eps == 2

    def test_an_open_transaction_stays_open(self, con):
        con.execute("BEGIN; CREATE TABLE mine (a INT)")
        with pytest.raises(ParameterError, match="open transaction"):
            pdrisk.sql("CREATE TABLE out AS " + QUERY, con, **OPTIONS)
        con.execute("COMMIT")
        assert tables(con) == ["mine", "people"]

    def test_without_a_connection(self):
        with pytest.raises(ParameterError, match="pass it as con"):
            pdrisk.sql("CREATE TABLE out AS SELECT COUNT(*) FROM f", eps=1, f=pd.DataFrame({"a": [1]}))

    def test_a_table_that_came_in_between(self, con, monkeypatch):
        """The answer is paid: it is returned, and that it was not written is said."""
        monkeypatch.setattr(NewTable, "check", lambda *_: None)
        con.execute("CREATE TABLE out AS SELECT 1 AS own")
        with pytest.warns(UserWarning, match="paid and is returned, but not written to out: .*already exists"):
            answer = pdrisk.sql("CREATE TABLE out AS " + QUERY, con, **OPTIONS)
        assert len(answer) == 2 and con.execute("FROM out").fetchall() == [(1,)]


@pytest.fixture(scope="module")
def url():
    with database() as url, connected(url) as con:
        con.execute(
            "CREATE TABLE people AS SELECT (ARRAY['a', 'b'])[1 + i % 2] AS g, i % 10 AS x, "
            "DATE '2020-01-01' + i % 2 AS d FROM generate_series(0, 1999) AS r (i)"
        )
        yield url


@needs_server
@pytest.mark.filterwarnings("ignore::pdrisk.errors.NoisyReleaseWarning")
class TestOnPostgres:
    """Likewise, whatever connection was given."""

    query = "SELECT g, d, COUNT(*) AS n, AVG(x) AS m, COUNT(*) > 5 AS many FROM people GROUP BY g, d"

    def written(self, con, query="CREATE TABLE out AS ", **options):
        keys = {"g": ["a", "b", None], "d": ["2020-01-01", "2020-01-02"]}
        return pdrisk.sql(query + self.query, con, **{**OPTIONS, "keys": keys, **options})

    def stored(self, url):
        with connected(url) as con:
            rows = con.execute("SELECT * FROM out").fetchall()
            types = con.execute(
                "SELECT array_agg(format_type(atttypid, atttypmod) ORDER BY attnum) FROM pg_attribute WHERE attrelid = "
                "'out'::regclass AND attnum > 0"
            ).fetchone()[0]
            (comment,) = con.execute("SELECT obj_description('out'::regclass)").fetchone()
            con.execute("DROP TABLE out")
        return rows, types, comment

    @pytest.mark.parametrize("how", ["psycopg", "not autocommit", "in a transaction", "url", "engine", "alchemy"])
    def test_what_is_answered(self, url, how):
        import psycopg

        alchemy = url.replace("postgresql://", "postgresql+psycopg://")
        if how == "url":
            answer = self.written(url)
        elif how == "engine":
            answer = self.written(sqlalchemy.create_engine(alchemy, poolclass=sqlalchemy.NullPool))
        elif how == "alchemy":
            with sqlalchemy.create_engine(alchemy, poolclass=sqlalchemy.NullPool).connect() as con:
                con.execute(sqlalchemy.text("SELECT 1"))
                answer = self.written(con)
                con.commit()
        else:
            with psycopg.connect(url, autocommit=how == "psycopg") as con:
                if how == "in a transaction":
                    con.execute("SELECT 1")
                answer = self.written(con)
        rows, types, comment = self.stored(url)
        shown = answer.astype(object)
        expected = shown.where(answer.notna(), None).to_numpy().tolist()
        assert [list(row) for row in rows] == expected
        assert types == ["text", "timestamp without time zone", "bigint", "double precision", "boolean"]
        assert comment == f"{MARK}\n{pdrisk.explain(answer, 'publication')}"

    def test_a_transaction_rolled_back_has_no_table(self, url):
        import psycopg

        with psycopg.connect(url) as con:
            self.written(con)
            con.execute("SELECT 1")
            assert con.execute("SELECT to_regclass('out') IS NULL").fetchone() == (False,)
            con.rollback()
            con.execute("BEGIN")
            self.written(con, query="CREATE OR REPLACE TABLE out AS ")
            con.rollback()
        assert len(self.stored(url)[0]) == 6

    def test_it_replaces_its_own_alone(self, url, book):
        with connected(url) as con:
            ledger = book(eps=6)
            for _ in range(2):
                answer = self.written(con, "create or replace table out as\n", ledger=ledger)
            for name, said in {
                "people": "that pdrisk did not write",
                "public.people": "that pdrisk did not write",
            }.items():
                with pytest.raises(ParameterError, match=said):
                    self.written(con, f"CREATE OR REPLACE TABLE {name} AS ", ledger=ledger)
            with pytest.raises(ParameterError, match=r"the table cannot be made: .*already exists"):
                self.written(con, "CREATE TABLE people AS ", ledger=ledger)
            with pytest.raises(ParameterError, match=r"the table cannot be made: .*does not exist"):
                self.written(con, "CREATE TABLE nowhere.out AS ", ledger=ledger)
            assert ledger.remaining().eps == 2
            assert con.execute("SELECT count(*) FROM people").fetchone() == (2000,)
        assert [row[2] for row in self.stored(url)[0]] == answer["n"].tolist()

    def test_a_table_of_people_that_came_in_between(self, url, monkeypatch):
        with connected(url) as con:
            self.written(con)
            monkeypatch.setattr(NewTable, "check", lambda *_: None)
            con.execute("DROP TABLE out; CREATE TABLE out AS SELECT 1 AS own")
            with pytest.warns(UserWarning, match="not written to out: there is a table out that pdrisk did not write"):
                self.written(con, "CREATE OR REPLACE TABLE out AS ")
            assert con.execute("SELECT * FROM out").fetchall() == [(1,)]
            con.execute("DROP TABLE out")

    def test_names_and_clients(self, url):
        """Another encoding, rows as dicts, a name with a sign of parameters, one table in two schemas."""
        import psycopg
        from psycopg.rows import dict_row

        with connected(url) as con:
            for own in (psycopg.connect(url, client_encoding="latin1"), psycopg.connect(url, row_factory=dict_row)):
                with own:
                    for _ in range(2):
                        self.written(own, 'CREATE OR REPLACE TABLE "ü 50%" AS ')
            assert con.execute('SELECT count(*) FROM "ü 50%"', prepare=False).fetchone() == (6,)
            con.execute("CREATE SCHEMA s; CREATE TABLE s.twice AS SELECT 1 AS own")
            self.written(con, "CREATE OR REPLACE TABLE twice AS ")
            con.execute("SET search_path = s, public")
            for words in ("CREATE OR REPLACE TABLE twice AS ", "CREATE OR REPLACE TABLE s.twice AS "):
                with pytest.raises(ParameterError, match="that pdrisk did not write"):
                    self.written(con, words)
            self.written(con, "CREATE OR REPLACE TEMP TABLE twice AS ")
            assert con.execute("SELECT count(*) FROM public.twice").fetchone() == (6,)
            assert con.execute("SELECT count(*) FROM s.twice").fetchone() == (1,)
            with pytest.raises(ParameterError, match="the table cannot be made"):
                self.written(con, "CREATE OR REPLACE TABLE other.public.x AS ")

    def test_a_temporary_one(self, url):
        with connected(url) as con:
            self.written(con, 'CREATE TEMP TABLE "own one" AS ')
            assert con.execute('SELECT count(*) FROM pg_temp."own one"').fetchone() == (6,)

    def test_where_nobody_may_write(self, url, book):
        with role(url) as (theirs, name), connected(url) as con:
            con.execute(f"GRANT SELECT ON people TO {name}")
            con.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            ledger = book(eps=2)
            with connected(theirs) as own, pytest.raises(ParameterError, match="cannot be made: permission denied"):
                self.written(own, ledger=ledger)
            assert ledger.remaining().eps == 2
