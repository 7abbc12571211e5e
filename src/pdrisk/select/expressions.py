"""From `Node` to SQL that cannot fail on a record, with the kind of thing it gives.

What is written out is made from the tree, never copied from the query: what was checked is what runs. Comparisons, AND,
OR, NOT, CASE, IN, BETWEEN, IS NULL and CAST are syntax; everything else is a function of the system's own schema, which
no macro of the same name can stand in for.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from pdrisk.errors import ParameterError
from pdrisk.select import workspace
from pdrisk.select.allowed import (
    DATE,
    NO_NUMBERS,
    NOTHING,
    NUMBER,
    PERIOD,
    TEXT,
    TIME,
    TRUTH,
    UNCLEAR,
    UNITS,
    Signature,
    signatures,
)
from pdrisk.select.tree import Call, Case, Cast, Column, Constant, Node, Scalar

__all__ = ["Expression", "Scope", "kind_of_type", "lowered", "quoted", "text", "written_constant"]

LONGEST = 100_000  # characters; a name used twice in each of n nested subqueries grows as 2**n
INTEGERS = ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT")
# Numbers that DuckDB compares with each other without a cast that could fail.
WHOLE = frozenset({*INTEGERS[:-2], "integer"})
SIMPLE = WHOLE | {"FLOAT", "DOUBLE", "constant"}
KEEP_WHOLE = {"+", "-", "*", "//", "%", "abs", "mod", "length", "len", "strlen"}  # of integers, integers again
COMPARISONS = {"=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from", "in", "not in", "between"}
SYNTAX = COMPARISONS | {"and", "or", "not", "is null", "is not null", "if", "nullif", "try", "coalesce"}
CASTS = re.compile(
    r"(U?(TINY|SMALL|BIG)INT|U?INTEGER|HUGEINT|FLOAT|DOUBLE|BOOLEAN|VARCHAR|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\))"
)
NAMES = {
    "INT": "INTEGER",
    "STRING": "VARCHAR",
    "TEXT": "VARCHAR",
    "REAL": "FLOAT",
    "BOOL": "BOOLEAN",
    "DECIMAL": "DECIMAL(18,3)",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of SQL.

    Attributes
    ----------
    sql : str
    kind : str
        numbers, truth values, text, dates, times, nothing, or the name of another type.
    type : str
        The SQL type where it is known for certain; ``integer`` for one of at most 64 bits, ``constant`` for a short
        decimal literal, else "".
    column : str or None
        The column of the source, if it is nothing else.
    constant : bool
    """

    sql: str
    kind: str
    type: str = ""
    column: str | None = None
    constant: bool = False
    value: Scalar = None


class Scope(Protocol):
    """What names mean in one place of a query."""

    def known(self, node: Node) -> Expression | None:
        """What a node is, if the scope has a meaning for it as a whole; a `Column` always has, or is an error."""


def kind_of_type(sql_type: str) -> str:
    """What a column of this type holds."""
    if sql_type.endswith("]"):
        return "lists"
    name = sql_type.partition("(")[0]
    if name in INTEGERS or name in ("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"):
        return NUMBER
    plain = {"BOOLEAN": TRUTH, "VARCHAR": TEXT, "ENUM": TEXT, "DATE": DATE, "TIMESTAMP": TIME}
    return plain.get(name, name.lower())


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def lowered(name: str) -> str:
    """A name as DuckDB compares names: ASCII letters without case, others as they are."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def written_constant(value: Scalar) -> str:
    """A literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
        case datetime.date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)" if value < 0 else f"{value!r}" + ("" if "e" in repr(value) else "e0")
        case int():
            return f"CAST('{value}' AS {_integer(value)})" if value < 0 else f"{value}"
        case Decimal():
            if not value.is_finite():
                raise ParameterError("a number in the query is not finite.")
            return f"({value:f})" if value >= 0 else f"CAST('{value:f}' AS DOUBLE)"


def _integer(value: int) -> str:
    return next((name for name, bits in (("INTEGER", 31), ("BIGINT", 63)) if -(2**bits) <= value < 2**bits), "HUGEINT")


def text(node: Node, scope: Scope) -> Expression:
    """The SQL of a node.

    Raises
    ------
    ParameterError
        If it is not allowed, or compares things of different kinds.
    """
    known = scope.known(node)
    if known is None:
        match node:
            case Constant():
                known = _constant(node.value)
            case Cast():
                known = _cast(node, scope)
            case Case():
                known = _case(node, scope)
            case Call():
                known = _call(node, scope)
            case Column():
                raise AssertionError("a scope knows its columns")
    if len(known.sql) > LONGEST:
        raise ParameterError("an expression of this query grows too long when its subqueries are put together.")
    return known


def _constant(value: Scalar) -> Expression:
    kind, sql_type = _kind_of_constant(value)
    return Expression(written_constant(value), kind, sql_type, constant=True, value=value)


def _kind_of_constant(value: Scalar) -> tuple[str, str]:
    match value:
        case None:
            return NOTHING, ""
        case bool():
            return TRUTH, "BOOLEAN"
        case str():
            return TEXT, "VARCHAR"
        case datetime.datetime():
            return TIME, "TIMESTAMP"
        case datetime.date():
            return DATE, "DATE"
        case Decimal():
            # As a DECIMAL of many digits it would pull the other side into one that may not hold it.
            return NUMBER, "constant" if len(f"{value:f}") <= 12 else ""
        case int():
            return NUMBER, "integer" if abs(value) < 2**63 else ""
    return NUMBER, "DOUBLE"


def _cast(node: Cast, scope: Scope) -> Expression:
    to = NAMES.get(node.to.upper(), node.to.upper())
    if not CASTS.fullmatch(to):
        raise ParameterError(
            f"a cast to {node.to} is not understood: cast to a number, VARCHAR, DATE, TIMESTAMP or BOOLEAN."
        )
    if isinstance(node.operand, Constant) and not node.forgiving:
        return _constant_cast(node.operand, to)
    operand = text(node.operand, scope)
    kind = kind_of_type(to)
    if operand.kind in (PERIOD, UNCLEAR) or (operand.kind in NO_NUMBERS and kind in (NUMBER, TRUTH)):
        raise ParameterError(f"no {kind} can be made of {operand.kind} by a cast: {NO_NUMBERS[operand.kind]}.")
    if node.forgiving:
        return Expression(f"TRY_CAST({operand.sql} AS {to})", kind, to)
    if operand.type == to:
        return operand
    if not _cannot_fail(operand, to):
        raise ParameterError(
            f"CAST to {to} of {operand.kind} could fail at a record, and so tell of it: write TRY_CAST, which gives "
            "NULL."
        )
    return Expression(f"CAST({operand.sql} AS {to})", kind, to)


def _cannot_fail(operand: Expression, to: str) -> bool:
    if operand.kind == NOTHING:
        return True
    if to == "VARCHAR":
        return operand.kind in (NUMBER, TRUTH, TEXT, DATE, TIME)
    if operand.kind == TRUTH:
        return to in INTEGERS or to == "DOUBLE"
    if operand.kind == NUMBER and to == "DOUBLE":
        return True
    if operand.type in INTEGERS and to in INTEGERS:
        wider = INTEGERS.index(operand.type) // 2 < INTEGERS.index(to) // 2
        return wider and (operand.type.startswith("U") or not to.startswith("U"))
    return False


def _constant_cast(operand: Constant, to: str) -> Expression:
    """A cast that is done now: whether it fails has nothing to do with data."""
    sql = f"CAST({written_constant(operand.value)} AS {to})"
    value = workspace.compute(f"SELECT {sql}", f"the constant in a cast to {to}")
    return Expression(sql, NOTHING if operand.value is None else kind_of_type(to), to, constant=True, value=value)


def _case(node: Case, scope: Scope) -> Expression:
    conditions = [_truth(when, scope, "WHEN").sql for when, _ in node.branches]
    results = [text(then, scope) for _, then in node.branches] + [text(node.otherwise, scope)]
    kind, sql_type, results = _together(results, "the branches of CASE are")
    arms = " ".join(f"WHEN {when} THEN {then.sql}" for when, then in zip(conditions, results[:-1], strict=True))
    return Expression(f"(CASE {arms} ELSE {results[-1].sql} END)", kind, sql_type)


def _call(node: Call, scope: Scope) -> Expression:
    if node.distinct or node.ordered or node.condition is not None:
        raise ParameterError(f"DISTINCT, ORDER BY and FILTER belong to aggregates, and {node.name} is none.")
    if any(node.names):
        raise ParameterError(f"{node.name} takes its arguments by position.")
    forms = () if node.name in SYNTAX else signatures(node.name)
    if node.name in ("and", "or", "not"):
        parts = [_truth(part, scope, node.name.upper()).sql for part in node.arguments]
        sql = f"NOT {parts[0]}" if node.name == "not" else f" {node.name.upper()} ".join(parts)
        return Expression(f"({sql})", TRUTH, "BOOLEAN")
    if node.name in ("is null", "is not null"):
        return Expression(f"({text(node.arguments[0], scope).sql} {node.name.upper()})", TRUTH, "BOOLEAN")
    if node.name == "if":
        return _case(Case(((node.arguments[0], node.arguments[1]),), node.arguments[2]), scope)
    if node.name == "nullif":
        same = Call("=", node.arguments)
        return _case(Case(((same, Constant(None)),), node.arguments[0]), scope)
    arguments = [text(argument, scope) for argument in node.arguments]
    if node.name == "try":
        return arguments[0]  # nothing here fails
    if node.name == "coalesce":
        kind, sql_type, arguments = _together(arguments, "the arguments of COALESCE are")
        return Expression(f"COALESCE({', '.join(part.sql for part in arguments)})", kind, sql_type)
    return _function(node.name, forms, arguments) if forms else _comparison(node, arguments)


def _comparison(node: Call, arguments: list[Expression]) -> Expression:
    if any(part.kind in (DATE, TIME) for part in arguments):
        arguments = [_dated(part, raw) for part, raw in zip(arguments, node.arguments, strict=True)]
    *_, arguments = _together(arguments, f"{node.name.upper()} compares")
    first, *rest = (part.sql for part in arguments)
    match node.name:
        case "in" | "not in":
            sql = f"({first} {node.name.upper()} ({', '.join(rest)}))"
        case "between":
            sql = f"({first} BETWEEN {rest[0]} AND {rest[1]})"
        case _:
            sql = f"({first} {node.name.upper()} {rest[0]})"
    return Expression(sql, TRUTH, "BOOLEAN")


def _dated(part: Expression, node: Node) -> Expression:
    """A date written as text, as SQL allows."""
    if part.kind != TEXT or not isinstance(node, Constant) or not isinstance(node.value, str):
        return part
    try:
        if len(node.value) == 10:
            return _constant(datetime.date.fromisoformat(node.value))
        moment = datetime.datetime.fromisoformat(node.value)
    except ValueError:
        raise ParameterError("a text compared with dates is none: write it like '2020-12-31'.") from None
    if moment.tzinfo is not None:
        raise ParameterError("a time compared with dates has a time zone: write it without.")
    return _constant(moment)


def _together(arguments: list[Expression], who: str) -> tuple[str, str, list[Expression]]:
    """The one kind and type of all arguments, and the arguments with the casts that make them so.

    DuckDB would cast by itself, but what it adds it may also move: out of a TRY, if another expression needs the same.
    So no cast that could fail is left to it.
    """
    present = [part for part in arguments if part.kind != NOTHING]
    kinds = list(dict.fromkeys(TIME if part.kind == DATE else part.kind for part in present))
    if len(kinds) > 1:
        advice = {
            frozenset({NUMBER, TEXT}): "write numbers without quotes, or TRY_CAST(x AS DOUBLE)",
            frozenset({NUMBER, TRUTH}): "compare truth values with true and false",
        }.get(frozenset(kinds))
        if advice is None and NUMBER in kinds:
            advice = next((NO_NUMBERS[kind] for kind in kinds if kind in NO_NUMBERS), None)
        advice = advice or "cast one of them with TRY_CAST"
        raise ParameterError(f"{who} {' with '.join(kinds)}: {advice}.")
    if not kinds:
        return NOTHING, "", arguments
    types = {part.type for part in present}
    if len(types) == 1 and "" not in types:
        return present[0].kind, types.pop(), arguments
    if kinds == [TIME]:
        return TIME, "TIMESTAMP", [_as_time(part) for part in arguments]
    if kinds == [NUMBER] and not types <= SIMPLE:
        return NUMBER, "DOUBLE", [_as_double(part) for part in arguments]
    return kinds[0], "integer" if types <= WHOLE else "", arguments


def _as_double(part: Expression) -> Expression:
    if part.type == "DOUBLE" or part.kind == NOTHING:
        return part
    return replace(part, sql=f"CAST({part.sql} AS DOUBLE)", type="DOUBLE")


def _as_time(part: Expression) -> Expression:
    if part.kind != DATE:
        return part
    return replace(part, sql=f"TRY_CAST({part.sql} AS TIMESTAMP)", kind=TIME, type="TIMESTAMP")


def _truth(node: Node, scope: Scope, where: str) -> Expression:
    found = text(node, scope)
    if found.kind not in (TRUTH, NOTHING):
        raise ParameterError(f"{where} needs a condition, but has {found.kind}: compare it with something.")
    return found


def _function(name: str, forms: tuple[Signature, ...], arguments: list[Expression]) -> Expression:
    kinds = tuple(part.kind for part in arguments)
    form = next((form for form in forms if form.fits(kinds, tuple(part.constant for part in arguments))), None)
    if form is None:
        wanted = " or ".join(f"({', '.join(_LETTERS[letter] for letter in form.arguments)})" for form in forms)
        raise ParameterError(f"{name} takes {wanted}, but is given ({', '.join(kinds)}).")
    _check_constants(name, form, arguments)
    arguments = [_as_double(part) if part.kind == NUMBER and part.type not in SIMPLE else part for part in arguments]
    if {DATE, TIME} <= set(kinds):
        arguments = [_as_time(part) for part in arguments]
    sql = f"TRY(system.main.{quoted(name)}({', '.join(part.sql for part in arguments)}))"
    whole = name in KEEP_WHOLE and all(part.type in WHOLE or part.kind == TEXT for part in arguments)
    return Expression(sql, form.result, "integer" if whole else "")


def _check_constants(name: str, form: Signature, arguments: list[Expression]) -> None:
    if form.arguments.startswith("u"):
        unit = arguments[0].value
        if not isinstance(unit, str) or unit.lower() not in UNITS:
            raise ParameterError(f"{name} takes one of these units: {', '.join(sorted(UNITS))}.")
    if name.startswith("regexp_"):  # only when it meets a record would DuckDB see that a pattern is none
        trial_text = ", ".join(part.sql for part in arguments[1:])
        workspace.compute(f"SELECT system.main.{name}('', {trial_text})", f"the pattern of {name}")
    if name == "replace":
        # Text that grows could be made to fill the memory for one record alone.
        old, new = (str(part.value) for part in arguments[1:])
        if not old or len(new) > len(old):
            raise ParameterError(
                "replace puts in no more characters than it takes out: write CASE WHEN x = 'a' THEN 'bc' ..."
            )


_LETTERS = {
    "n": "number", "t": "text", "b": "truth value", "d": "date",
    "c": "constant text", "u": "unit", "i": "constant number", "*": "...",
}  # fmt: skip
