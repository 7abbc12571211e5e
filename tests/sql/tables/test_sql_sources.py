"""Where the people may be: tables, views, frames and named files, under any name that SQL can write."""

import os
import pathlib

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pdrisk
from sql_people import BOUNDS, PEOPLE, ask, assert_same_facts, by_accessor, connection, lines, risks, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FRAME = PEOPLE[["age", "distance", "region", "sex"]]
BOUNDS = {name: BOUNDS[name] for name in ("age", "distance")}
ASKS = (ask("mean", "age", "sex == 'f'"), ask("count", "distance", "sex == 'f'"))


def prepared(*statements: str, database: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A database with the table people, after these statements."""
    con = duckdb.connect(database)
    frame = FRAME  # noqa: F841 - DuckDB finds it by its name
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    for statement in statements:
        con.execute(statement)
    return con


def parquet(folder: pathlib.Path, name: str = "people.parquet") -> str:
    path = folder / name
    pq.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), path)
    return str(path)


def read_only(folder: pathlib.Path) -> duckdb.DuckDBPyConnection:
    path = str(folder / "people.db")
    prepared(database=path).close()
    return duckdb.connect(path, read_only=True)


def attached(folder: pathlib.Path) -> duckdb.DuckDBPyConnection:
    path = str(folder / "other.db")
    prepared(database=path).close()
    return connection_to(f"ATTACH '{path}' AS other (READ_ONLY)")


def connection_to(*statements: str) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for statement in statements:
        con.execute(statement)
    return con


TABLES = {  # FROM: what makes it
    "people": (),
    "PEOPLE": (),
    '"People"': (),
    "main.people": (),
    "memory.main.people": (),
    "memory.people": (),
    "survey.others": ("CREATE SCHEMA survey", "CREATE TABLE survey.others AS FROM people"),
    'memory."Ünï".p': ('CREATE SCHEMA "Ünï"', 'CREATE TABLE "Ünï".p AS FROM people'),
    "others": ("CREATE SCHEMA survey", "CREATE TABLE survey.others AS FROM people", "SET search_path = 'survey'"),
    "drafts": ("CREATE TEMP TABLE drafts AS FROM people",),
    "temp.drafts": ("CREATE TEMP TABLE drafts AS FROM people",),
    '"Größe, m ""x"""': ('CREATE TABLE "Größe, m ""x""" AS FROM people',),
    '"select"': ('CREATE TABLE "select" AS FROM people',),
    "'people'": (),
    "people AS p": (),
    "seen": ("CREATE VIEW seen AS SELECT * FROM people",),
    "seen AS s": ("CREATE OR REPLACE VIEW seen AS SELECT age, distance, sex FROM people;",),
    "again": ("CREATE VIEW seen AS FROM people", "CREATE VIEW again AS SELECT p.* FROM seen AS p WHERE true"),
    "renamed": ("CREATE VIEW renamed(AGE, d, region, sex) AS FROM people",),
    "survey.seen": (
        "CREATE SCHEMA survey",
        "CREATE TABLE survey.inner_people AS FROM people",
        "CREATE TABLE inner_people AS FROM people WHERE false",
        "CREATE VIEW survey.seen AS SELECT * FROM survey.inner_people",
    ),
    "brief": ("CREATE TEMP VIEW brief AS SELECT age, distance, sex FROM people",),
    '"a view ( AS "': ('CREATE VIEW "a view ( AS " AS SELECT * FROM people -- AS SELECT 1\n',),
}


def answered(source: str, con: object = None, **frames: object):
    """Facts of the same two releases from any source."""
    column = "d" if source == "renamed" else "distance"
    return risks(
        pdrisk.sql(
            f"SELECT AVG(age), COUNT({column}) FROM {source} WHERE sex = 'f'",
            con, eps=2, bounds={"age": BOUNDS["age"]}, curator=True, **frames,
        )
    )  # fmt: skip


def assert_the_people(found) -> None:
    for one, facts in zip(ASKS, found, strict=True):
        assert_same_facts(facts, by_accessor(one, 1))


class TestTables:
    """A name means what DuckDB would take it for."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("source", TABLES)
    def test_a_table_or_view(self, source):
        assert_the_people(answered(source, prepared(*TABLES[source])))

    def test_columns_renamed_in_from(self):
        answer = pdrisk.sql(
            "SELECT AVG(years), COUNT(p.km) FROM people AS p(years, km) WHERE sex = 'f'",
            prepared(), eps=2, bounds={"years": BOUNDS["age"]}, curator=True,
        )  # fmt: skip
        assert_the_people(risks(answer))

    def test_a_database_that_cannot_be_written_to(self, tmp_path):
        con = read_only(tmp_path)
        assert_the_people(answered("people", con))
        keys = pdrisk.sql("SELECT sex, COUNT(*) FROM people GROUP BY sex", con, eps=1, keys=["f", "m"])
        assert keys["sex"].tolist() == ["f", "m"]

    @pytest.mark.parametrize("source", ["other.people", "other.main.people"])
    def test_an_attached_database(self, source, tmp_path):
        assert_the_people(answered(source, attached(tmp_path)))

    def test_the_default_connection(self, monkeypatch):
        con = prepared()
        monkeypatch.setattr(duckdb, "default_connection", lambda: con)
        assert_the_people(answered("people"))

    def test_what_is_temporary_comes_first(self):
        con = prepared("CREATE TEMP TABLE people AS SELECT 1 AS age, 2 AS distance, 'f' AS sex")
        assert answered("people", con)[0]["n"] == con.execute("SELECT COUNT(*) FROM people").fetchall()[0]
        assert_the_people(answered("memory.people", con))

    def test_the_same_text_means_what_is_there_when_it_is_asked(self):
        con = prepared()
        assert_the_people(answered("people", con))
        for n, change in enumerate((
            "CREATE OR REPLACE TABLE people AS SELECT 7 AS age, 2.5 AS distance, 'f' AS sex",
            "CREATE OR REPLACE TABLE people AS SELECT 'f' AS sex, i AS distance, 9.5 AS age FROM range(2) AS r(i)",
            "CREATE TEMP TABLE people AS SELECT 'f' AS sex, i AS distance, 8 AS age FROM range(3) AS r(i)",
        ), start=1):  # fmt: skip
            con.execute(change)
            assert [one["n"] for one in answered("people", con)] == [n, n]
        con.execute("CREATE OR REPLACE TEMP TABLE people AS SELECT 'f' AS sex, 1 AS distance, 'old' AS age")
        with pytest.raises(pdrisk.PdriskError, match="holds text"):
            answered("people", con)

    def test_a_view_does_not_see_what_was_passed_by_keyword(self):
        con = prepared("CREATE VIEW seen AS FROM people")
        assert_the_people(answered("seen", con, people=FRAME.head(3)))

    def test_columns_called_like_tables_aliases_and_words(self):
        con = connection_to(
            'CREATE TABLE t AS SELECT i AS t, i % 2 = 0 AS "select", i AS "Füße", i AS "a ""b""" FROM range(6) r(i)'
        )
        query = 'SELECT AVG(t), AVG(t.t), SUM("FüßE"), SUM("A ""B""") FROM t WHERE "select" GROUP BY "SELECT"'
        answer = pdrisk.sql(query, con, eps=3, bounds=(0, 5), keys=[True], curator=True)
        assert [line.column for line in lines(answer)] == ["t", "FüßE", 'A "B"']
        assert [facts["n"].tolist() for facts in risks(answer)] == [[3.0]] * 3


FRAMES = {
    "pandas": lambda folder: FRAME,
    "pandas with another index": lambda folder: FRAME.set_index(FRAME["age"] * 7),
    "Polars": lambda folder: pl.from_pandas(FRAME, nan_to_null=True),
    "lazy Polars": lambda folder: pl.from_pandas(FRAME, nan_to_null=True).lazy(),
    "Arrow": lambda folder: pa.Table.from_pandas(FRAME),
    "an Arrow batch": lambda folder: pa.Table.from_pandas(FRAME).combine_chunks().to_batches()[0],
    "an Arrow data set": lambda folder: pyarrow.dataset.dataset(pa.Table.from_pandas(FRAME)),
    "a path": parquet,
    "a Path": lambda folder: pathlib.Path(parquet(folder)),
    "a path with a quote": lambda folder: parquet(folder, "peo'ple; --.parquet"),
}


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES.keys())
class TestFrames:
    """Whatever is passed by keyword, with a connection or without."""

    def test_by_keyword(self, made, tmp_path):
        assert_the_people(answered("survey", survey=made(tmp_path)))

    @pytest.mark.sampled(3)
    def test_beside_a_connection_that_has_the_same_name(self, made, tmp_path):
        con = connection_to("CREATE TABLE survey AS SELECT 3 AS age")
        assert_the_people(answered("Survey AS s", con, survey=made(tmp_path)))


@pytest.mark.parametrize("name", ["pandas", "pandas with another index"])
def test_a_registered_frame(name, tmp_path):
    con = duckdb.connect()
    con.register("people", FRAMES[name](tmp_path))
    assert_the_people(answered("people", con))
    con.execute("CREATE TEMP VIEW seen AS SELECT age, distance, sex FROM people")
    assert_the_people(answered("seen", con))


class TestFiles:
    """Parquet files are read if they were named; a view may name others."""

    def test_by_the_path_that_was_named(self, tmp_path):
        path = parquet(tmp_path)
        assert_the_people(answered(f"read_parquet('{path}')", survey=path))
        assert_the_people(answered(f"parquet_scan('{path}') AS p", survey=path))
        assert_the_people(answered(f"'{path}'", survey=path))

    def test_several_by_a_pattern(self, tmp_path):
        half = len(FRAME) // 2
        pq.write_table(pa.Table.from_pandas(FRAME[:half], preserve_index=False), tmp_path / "a.parquet")
        pq.write_table(pa.Table.from_pandas(FRAME[half:], preserve_index=False), tmp_path / "b.parquet")
        assert_the_people(answered("survey", survey=os.path.join(tmp_path, "*.parquet")))

    @pytest.mark.parametrize("form", ["read_parquet('{}')", "'{}'"])
    def test_a_view_on_a_file(self, form, tmp_path):
        source = form.format(parquet(tmp_path))
        con = connection_to(f"CREATE VIEW people AS SELECT * FROM {source}")
        assert_the_people(answered("people", con))


class TestDeclared:
    """Bounds and keys that were declared for a pandas frame are known."""

    FRAME = FRAME.dprisk.declare(bounds={"age": (18, 90)}, keys={"sex": ["m", "f"]})

    def test_bounds_and_keys(self):
        query = "SELECT sex, AVG(years) FROM (SELECT age AS years, sex FROM survey) GROUP BY sex"
        answer = pdrisk.sql(query, eps=1, survey=self.FRAME, curator=True)
        assert answer["sex"].tolist() == ["m", "f"]
        assert_same_facts(risks(answer)[0], by_accessor(ask("mean", "age"), 1, "sex", ["m", "f"]))

    def test_what_the_call_says_comes_first(self):
        query = "SELECT sex, AVG(age) FROM survey GROUP BY sex"
        answer = pdrisk.sql(query, eps=1, survey=self.FRAME, bounds={"age": (0, 99)}, keys=["f"])
        assert answer["sex"].tolist() == ["f"]
        assert lines(answer)[0].bounds == (0.0, 99.0)

    def test_bounds_of_an_expression_are_made_of_its_columns(self):
        for query in ("SELECT AVG(age + 1) FROM survey", "SELECT AVG(a) FROM (SELECT age + 1 AS a FROM survey)"):
            answer = pdrisk.sql(query, eps=1, survey=self.FRAME)
            assert lines(answer)[0].bounds == (19.0, 91.0)
            answer = pdrisk.sql(query, eps=1, survey=self.FRAME, bounds={"age": (0, 99)})
            assert lines(answer)[0].bounds == (1.0, 100.0)


def test_the_connection_is_left_as_it_was():
    con = connection()
    before = con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
    query = "SELECT region, AVG(age) FROM people GROUP BY region"
    for keys in (["north"], "observed"):
        pdrisk.sql(query, con, eps=1, bounds={"age": (18, 90)}, keys=keys)
    assert con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall() == before


def test_a_view_reads_what_duckdb_reads(monkeypatch):
    without_noise(monkeypatch)
    con = connection()
    con.execute(
        "CREATE VIEW seen AS FROM people; CREATE TEMP TABLE people AS SELECT 'x' AS id, 5 AS distance, 7 AS age"
    )
    assert con.execute("SELECT MAX(age), COUNT(*) FROM seen").fetchall() == [(7, 1)]
    found = pdrisk.sql("SELECT MAX(age), COUNT(*) FROM seen", con, eps=1, bounds=(0, 99)).iloc[0].tolist()
    assert found == [7, 1]


@pytest.mark.slow
def test_a_file_larger_than_memory(tmp_path):
    path = str(tmp_path / "large.parquet")
    duckdb.connect().execute(f"COPY (SELECT random() AS x FROM range(8000000)) TO '{path}' (FORMAT parquet)")  # 64 MB
    con = duckdb.connect(config={"memory_limit": "40MB"})
    answer = pdrisk.sql("SELECT AVG(x) AS m, VARIANCE(x) FROM t", con, eps=100, bounds=(0, 1), t=path)
    assert abs(answer["m"].item() - 0.5) < 0.2
