"""No setting of the connection changes what the registered functions answer."""

from contextlib import suppress
from functools import cache

import duckdb
import pytest

from functions_on_duckdb import FUNCTIONS, rows, table
from pdrisk._functions import register

OTHERS = {
    "default_collation": "nocase", "default_order": "DESC", "default_null_order": "NULLS_FIRST", "Calendar": "buddhist",
    "TimeZone": "Asia/Tokyo", "regex_match_operator_semantics": "full",
}  # fmt: skip
APART = {"lock_configuration", "enable_external_access", "enable_profiling", "access_mode"}
CALLS = ", ".join(function.call(risk=True) for function in FUNCTIONS)
QUERY = f"SELECT g, {CALLS} FROM t GROUP BY g ORDER BY g ASC"


def people() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    table(con, [1.0, 3.5, 3.5, None, 7.0] * 3, [0, 1, 2] * 5)
    return con


def settings() -> list[tuple[str, str]]:
    known = duckdb.connect().execute("SELECT name, value, input_type FROM duckdb_settings()").fetchall()
    flipped = {name: "false" if value == "true" else "true" for name, value, kind in known if kind == "BOOLEAN"}
    others = flipped | OTHERS
    return sorted({(name, others[name]) for name, *_ in known if name in others and name not in APART})


@cache
def expected() -> list[object]:
    con = people()
    register(con, curator=True)
    return rows(con, QUERY)


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("part", range(6))
def test_whatever_is_set_later(part):
    con = people()
    register(con, curator=True)
    for name, value in settings()[part::6]:
        try:
            con.execute(f"SET {name} = '{value}'")
        except duckdb.Error:  # of a running database, or for want of an extension
            continue
        assert rows(con, QUERY) == expected(), name
        with suppress(duckdb.Error):  # some stay
            con.execute(f"RESET {name}")


@pytest.mark.sampled(99)
@pytest.mark.parametrize("name", [*OTHERS, "integer_division", "ieee_floating_point_ops", "errors_as_json"])
def test_whatever_was_set_before(name):
    if name in dict(settings()):
        con = people()
        con.execute(f"SET {name} = '{dict(settings())[name]}'")
        register(con, curator=True)
        assert rows(con, QUERY) == expected()
