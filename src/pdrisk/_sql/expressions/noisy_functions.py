"""Functions over noisy values: any function of DuckDB that decides a row by its arguments, in which no person is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from pdrisk._model.expressions.kinds import DATE, INTERVAL, NOTHING, NUMBER, TEXT, TIME, TRUTH
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS, has_reason, signatures
from pdrisk._sql.expressions.duckdb_arithmetic import as_bigint
from pdrisk._sql.expressions.duckdb_functions import form_of, function
from pdrisk._sql.expressions.number_patterns import number_by_pattern
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import INTEGERS, TYPES, Expression, kind_of_type, number, quoted
from pdrisk.errors import ParameterError

#: A value of each kind, on which a function is tried before anything is paid.
SOMETHING: Final = {
    NUMBER: "1", TEXT: "'a'", TRUTH: "true", DATE: "DATE '2020-01-31'", TIME: "TIMESTAMP '2020-01-31 12:00:00'",
    INTERVAL: "INTERVAL 1 DAY", NOTHING: "NULL",
}  # fmt: skip
PADDING: Final = frozenset({"repeat", "lpad", "rpad"})
LONGEST: Final = 1_000_000  # letters that one of these makes
WIDE: Final = re.compile(r"\d{5}")  # in a format


def with_whole_counts(part: Expression) -> Expression:
    """A noisy count as the whole number that it is."""
    return replace(number(as_bigint(part), "BIGINT"), range=part.range) if part.counts else part


def function_of_noisy(name: str, given: Iterable[Expression]) -> Expression:
    """A function of noisy values, NULL where it fails; it is refused before what it is given."""
    if name != "to_char" and (has_reason(name) or name not in (FUNCTIONS.keys() | _functions())):
        signatures(name)
    arguments = list(given)
    if name == "to_char" and len(arguments) == 2:
        return number_by_pattern(arguments[0], arguments[1].value)
    if form_of(name, arguments) is not None or name not in _functions():
        return function(name, arguments)
    if any(part.kind not in SOMETHING for part in arguments):
        raise ParameterError(f"{name} is given {', '.join(part.kind for part in arguments)}, of which nothing is made.")
    if any(
        isinstance(part.value, str) and WIDE.search(part.value) for part in arguments if name in ("format", "printf")
    ):
        raise ParameterError(f"the format of {name} has a width of more than four digits.")
    tried = [_tried(name, arguments, _given(arguments, whole)) for whole in ("", "BIGINT", "INTEGER")]
    _, sql_type, written = min(tried, key=lambda trial: trial[0])
    if not sql_type:
        kinds = ", ".join(part.kind for part in arguments)
        raise ParameterError(f"{name} is given ({kinds}), and DuckDB has no such function: see how it takes them.")
    kind = kind_of_type(sql_type)
    if kind not in TYPES or kind == NOTHING:
        raise ParameterError(f"{name} gives {kind} here, which no table of answers holds.")
    sql = f"TRY(system.main.{quoted(name)}({', '.join(written)}))"
    if name in PADDING:
        letters = f"system.main.length({written[0]}) * CAST({written[1]} AS DOUBLE)" if name == "repeat" else written[1]
        sql = f"(CASE WHEN {letters} <= {LONGEST} THEN {sql} END)"
    if kind != NUMBER:
        return Expression(sql, kind, TYPES[kind])
    return number(sql, sql_type) if sql_type in INTEGERS[:-2] else number(f"CAST({sql} AS DOUBLE)", "DOUBLE")


def _given(arguments: Sequence[Expression], whole: str) -> list[tuple[str, str]]:
    """SQL and type of the arguments, with numbers as this type, or as SQL has them; no type of constants."""
    pairs = []
    for part in map(with_whole_counts, arguments):
        if part.constant:
            pairs.append((part.sql, ""))
        elif part.kind != NUMBER:
            pairs.append((part.sql, TYPES.get(part.kind, part.kind.upper())))
        elif whole:
            pairs.append((f"TRY_CAST({as_bigint(part)} AS {whole})", whole))
        else:
            is_whole = part.span is not None and not part.wide
            pairs.append((part.sql, part.type) if is_whole else (part.double, "DOUBLE"))
    return pairs


def _tried(name: str, arguments: Sequence[Expression], given: Sequence[tuple[str, str]]) -> tuple[int, str, list[str]]:
    """How well a function takes arguments of these types, the best first; the type of its result, "" of none."""
    import duckdb

    samples = [
        f"CAST({SOMETHING[part.kind]} AS {sql_type})" if sql_type else sql
        for part, (sql, sql_type) in zip(arguments, given, strict=True)
    ]
    call = f"system.main.{quoted(name)}({', '.join(samples)})"
    bench, sql_type = workspace.bench(), ""
    try:
        sql_type = str(bench.execute(f"DESCRIBE SELECT {call} AS found").fetchall()[0][1])
        bench.execute(f"SELECT {call}").fetchall()
    except duckdb.Error:
        return 1 if sql_type else 2, sql_type, [sql for sql, _ in given]
    finally:
        bench.close()
    return 0, sql_type, [sql for sql, _ in given]


@cache
def _functions() -> frozenset[str]:
    """Functions that give the same whenever they are asked, whatever the settings, and do nothing else."""
    rows = (
        workspace.bench()
        .execute(
            "SELECT lower(function_name) FROM system.main.duckdb_functions() WHERE function_type = 'scalar' "
            "AND function_name NOT LIKE '%serialize%' "  # of statements: they fail in spite of TRY
            "GROUP BY ALL HAVING bool_and(stability = 'CONSISTENT')"
        )
        .fetchall()
    )
    return frozenset(name for (name,) in rows if re.fullmatch(r"[a-z][a-z0-9_]*|\|\|", name))
