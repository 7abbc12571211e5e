"""`register`: on which connections the functions are, what it leaves behind, and what it refuses."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import duckdb
import pytest

import pdrisk._functions
from functions_on_duckdb import FUNCTIONS, MEAN, connection, one, refusal, rows, table
from pdrisk import ColumnTypeError
from pdrisk._functions import register
from pdrisk._functions.macros import MACROS

CALL = "SELECT dp_mean(i, eps := 1, lo := 0, hi := 5) FROM range(4) r (i)"
RISK = "SELECT dp_mean_risk(i, eps := 1, lo := 0, hi := 5) FROM range(4) r (i)"


def works(con) -> bool:
    ((value,),) = rows(con, CALL)
    return isinstance(value, float)


def has(con, name: str) -> bool:
    return bool(rows(con, "SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [name]))


class TestConnections:
    """The functions are on the connections that were registered, and nowhere else."""

    def test_twice(self):
        with duckdb.connect() as con:
            register(con)
            register(con)
            assert works(con)

    def test_cursors_are_connections_of_their_own(self):
        with connection() as con, con.cursor() as cursor:
            assert "does not exist" in refusal(cursor, CALL)
            register(cursor)
            assert works(cursor) and works(con)

    def test_what_a_cursor_registered_outlives_it(self):
        with duckdb.connect() as con:
            with con.cursor() as cursor:
                register(cursor)
            assert "does not exist" in refusal(con, CALL)
            register(con)
            assert works(con)

    @pytest.mark.slow
    def test_several_connections_of_a_file(self, tmp_path):
        first, second = duckdb.connect(tmp_path / "people.db"), duckdb.connect(tmp_path / "people.db")
        register(first)
        assert "does not exist" in refusal(second, CALL)
        register(second, curator=True)
        assert works(first) and works(second)
        first.close()
        assert works(second)
        second.close()

    def test_after_another_thread(self):
        with duckdb.connect() as con, con.cursor() as cursor:
            thread = threading.Thread(target=register, args=[cursor])
            thread.start()
            thread.join()
            register(con)
            assert works(con) and works(cursor)

    @pytest.mark.slow
    def test_many_threads_at_once(self, tmp_path):
        everybody = threading.Barrier(8)

        def work(_):
            con = duckdb.connect(tmp_path / "people.db")
            everybody.wait()
            register(con, curator=True)
            found = [works(con) for _ in range(5)]
            con.close()
            return found

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [[True] * 5] * 8

    @pytest.mark.slow
    def test_a_read_only_file(self, tmp_path):
        with duckdb.connect(tmp_path / "people.db") as con:
            con.execute("CREATE TABLE t AS SELECT 3.0 AS x")
        with connection(database=tmp_path / "people.db", read_only=True) as con:
            for function in FUNCTIONS:
                assert isinstance(one(con, function.call()), float)
                assert isinstance(one(con, function.call(risk=True)), dict)

    def test_another_schema_in_use(self):
        with connection() as con:
            con.execute("CREATE SCHEMA other; USE other; ATTACH ':memory:' AS far")
            assert works(con)
            con.execute("USE far")
            assert works(con)
            register(con)
            assert works(con)

    @pytest.mark.parametrize("end", ["rollback", "commit"])
    def test_in_a_transaction(self, end):
        with duckdb.connect() as con:
            con.begin()
            con.execute("CREATE TABLE other (x INTEGER)")
            register(con)
            assert works(con)
            getattr(con, end)()
            assert has(con, "dp_mean") == (end == "commit")
            register(con)
            assert works(con)

    def test_while_another_connection_is_in_a_transaction(self, tmp_path):
        first, second = duckdb.connect(tmp_path / "people.db"), duckdb.connect(tmp_path / "people.db")
        first.begin()
        register(first)
        register(second)
        assert works(first) and works(second)
        first.rollback()
        assert works(second)
        first.close()
        second.close()


class TestCurator:
    """The risk functions come and go with ``curator``."""

    @pytest.mark.slow
    def test_they_go_again(self):
        with connection(curator=True) as con:
            assert rows(con, RISK)
            register(con, curator=False)
            assert "dp_mean_risk does not exist" in refusal(con, RISK)
            assert not any(has(con, macro.name) for macro in MACROS if macro.risk)
            assert works(con)
            register(con, curator=True)
            assert rows(con, RISK)

    def test_only_on_this_connection(self):
        with connection(curator=True) as con, con.cursor() as cursor:
            register(cursor)
            assert "dp_mean_risk does not exist" in refusal(cursor, RISK)
            assert rows(con, RISK)

    def test_a_macro_of_the_same_name_in_the_file_is_not_ours_to_drop(self):
        with duckdb.connect() as con:
            con.execute("CREATE MACRO dp_mean_risk(x, eps, lo, hi) AS 42")
            register(con)
            assert rows(con, RISK.replace(":=", "=>")) == [(42,)] * 4


class TestTraces:
    """What stays: nothing in the file, and functions that say whose they are."""

    def test_names(self):
        with duckdb.connect() as con:
            before = set(rows(con, "SELECT database_name, function_name FROM duckdb_functions()"))
            register(con, curator=True)
            new = set(rows(con, "SELECT database_name, function_name FROM duckdb_functions()")) - before
        assert {name for database, name in new if database == "temp"} == {macro.name for macro in MACROS}
        assert {database for database, _ in new} == {"temp", "system"}
        assert all(name.startswith("__pdrisk_") for database, name in new if database == "system")

    def test_nothing_is_written(self, tmp_path):
        with connection(database=tmp_path / "people.db") as con:
            con.execute("CREATE TABLE t AS SELECT 3.0 AS x")
            con.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
        exported = "".join(path.read_text() for path in (tmp_path / "exported").glob("*.sql"))
        assert "CREATE TABLE" in exported and "dp_" not in exported and "pdrisk" not in exported
        with duckdb.connect(tmp_path / "people.db") as con:
            assert not has(con, "dp_mean") and not has(con, "__pdrisk_dp_mean")

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("end", ["", "con.close()"])
    def test_nothing_is_said_at_the_end(self, end):
        """nanobind, under DuckDB 2, complains of what a function keeps alive."""
        code = f"""
import duckdb, pdrisk._functions
con = duckdb.connect()
pdrisk._functions.register(con)
print(con.execute({CALL!r}).fetchall())
{end}
"""
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == "" and done.stdout

    @pytest.mark.slow
    def test_reloading_the_module(self):
        """DuckDB has a pointer to the functions, and must not be left with a dangling one."""
        code = f"""
import gc, importlib, duckdb, pdrisk._functions, pdrisk._functions.scalars, pdrisk._functions.macros
con = duckdb.connect()
for _ in range(3):
    pdrisk._functions.register(con, curator=True)
    con.execute({CALL!r}).fetchall()
    for module in (pdrisk._functions.macros, pdrisk._functions.scalars, pdrisk._functions):
        importlib.reload(module)
    gc.collect()
    con.execute({CALL!r}).fetchall()
con.close()
"""
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0

    @pytest.mark.slow
    def test_what_importing_costs(self):
        code = "import sys, pdrisk._functions; print([m for m in ('duckdb', 'opendp') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestRefusals:
    @pytest.mark.parametrize("con", [None, "people.db", duckdb, duckdb.connect])
    def test_what_is_no_connection(self, con):
        with pytest.raises(ColumnTypeError, match=r"register takes a DuckDB connection, as duckdb.connect\(\)"):
            register(con)

    def test_a_connection_to_something_else(self):
        with closing(sqlite3.connect(":memory:")) as con, pytest.raises(ColumnTypeError, match="a DuckDB connection"):
            register(con)

    def test_a_closed_connection(self):
        con = duckdb.connect()
        con.close()
        with pytest.raises(duckdb.ConnectionException):
            register(con)

    def test_without_pyarrow(self, monkeypatch):
        monkeypatch.setattr(pdrisk._functions, "find_spec", lambda name: None)
        with duckdb.connect() as con, pytest.raises(ImportError, match=r"needs pyarrow.*: pip install pyarrow"):
            register(con)


class TestSettings:
    """Settings of a connection that change how DuckDB hands over Arrow do not change an answer."""

    SETTINGS = (
        *("arrow_lossless_conversion", "arrow_large_buffer_size", "produce_arrow_string_view"),
        "arrow_output_list_view",
    )

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("setting", SETTINGS)
    def test_each(self, setting):
        with connection() as con:
            table(con, [1.0, 3.5, 3.5, None, 7.0] * 3, [0, 1, 2] * 5)
            queries = [f"SELECT g, {f.call(risk=True)} FROM t GROUP BY g ORDER BY g" for f in FUNCTIONS]
            expected = [rows(con, query) for query in queries]
            con.execute(f"SET {setting} = true")
            assert [rows(con, query) for query in queries] == expected
            assert all(isinstance(one(con, function.call()), float) for function in FUNCTIONS)
            assert "dp_mean: eps is missing" in refusal(con, f"SELECT {MEAN.call(eps='NULL')} FROM t")
