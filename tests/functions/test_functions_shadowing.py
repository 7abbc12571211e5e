"""A macro of the user's named like a function that ours call does not stand in for it; operators included."""

import re

import duckdb
import pytest

from functions_on_duckdb import FUNCTIONS, rows, table
from pdrisk._functions import register
from pdrisk._functions.macros import MACROS

CALLED = sorted({name for macro in MACROS for name in re.findall(r'system\.main\."?([^\s("]+)', macro.definition())})
BUILT_IN = [name for name in CALLED if not name.startswith("__pdrisk_")]
NO_FUNCTIONS = {"CAST", "TRY_CAST", "DECIMAL", "IN"}


def words(definition: str) -> str:
    """The body without its constants, operators' names and what only looks like an operator."""
    body = re.sub(r"'[^']*'", "''", definition.split(" AS ", 1)[1])
    return re.sub(r'"[>&]+"', "operator", body).replace("IS NOT NULL", "IS THERE")


@pytest.mark.parametrize("macro", MACROS, ids=lambda macro: macro.name)
class TestText:
    def test_every_function_is_called_by_its_full_name(self, macro):
        called = re.findall(r"([\w.]+) ?\(", words(macro.definition()))
        assert all(name.startswith("system.main.") or name in NO_FUNCTIONS for name in called)

    def test_no_operator_is_used(self, macro):
        assert not re.search(r"[-+*/%|^~!&\[\]{}]|>>|::|\b(NOT|LIKE|COLLATE)\b", words(macro.definition()))

    def test_it_has_two_aggregates_or_more(self, macro):
        aggregates = "count_star|count|sum|min|max|any_value|list|median"
        assert len(re.findall(rf"system\.main\.({aggregates})\(", macro.definition())) >= 2


class TestMacros:
    def test_the_functions_that_are_called_are_known(self):
        assert {"count", "sum", "min", "max", "strftime", "typeof", "multiply", "&"} <= set(BUILT_IN)

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("registered", ["before", "after"])
    def test_they_do_not_matter(self, registered):
        queries = [f"SELECT g, {f.call(risk=True)} FROM t GROUP BY g ORDER BY g" for f in FUNCTIONS]
        values, groups = [1.0, 3.5, 3.5, None, 7.0] * 3, [0, 1, 2] * 5
        with duckdb.connect() as con:
            register(con, curator=True)
            table(con, values, groups)
            expected = [rows(con, query) for query in queries]
        with duckdb.connect() as con:
            if registered == "before":
                register(con, curator=True)
            called = CALLED if registered == "before" else BUILT_IN
            for name in (*called, "+", "-", "*", "/", ">", "<=", ">>", "~~", "||", "list_value", "struct_pack"):
                for parameters in ("", "a", "a, b", "a, b, c"):
                    con.execute(f'CREATE OR REPLACE TEMP MACRO "{name}"({parameters}) AS 42')
                    con.execute(f'CREATE OR REPLACE MACRO "{name}"({parameters}) AS 42')
            con.execute('CREATE TEMP MACRO "duckdb_functions"() AS TABLE SELECT 1')
            if registered == "after":
                register(con, curator=True)
            table(con, values, groups)
            assert [rows(con, query) for query in queries] == expected
            assert all(isinstance(rows(con, f"SELECT {f.call()} FROM t")[0][0], float) for f in FUNCTIONS)

    def test_they_would(self):
        """What is guarded against happens: the test above can fail."""
        with duckdb.connect() as con:
            con.execute('CREATE TEMP MACRO "+"(a, b) AS 42; CREATE TEMP MACRO count(a) AS 42')
            assert rows(con, "SELECT 1 + 1, count(3)") == [(42, 42)]
