"""SQL expressions written anew from the tree, so that none can fail on a record; each with its kind.

What is written out is made from the tree, never copied from the query: what was checked is what runs. Comparisons, AND,
OR, NOT, CASE, IN, BETWEEN, IS NULL and CAST are syntax; everything else is a function of the system's own schema, which
no macro of the same name can stand in for.
"""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from pdrisk._model.kinds import (
    DATE,
    INTERVAL,
    NO_NUMBERS,
    NOTHING,
    NUMBER,
    PERIODS_IN_SQL,
    TEXT,
    TIME,
    TRUTH,
    UNCLEAR,
    ZONED,
    number_advice,
)
from pdrisk._model.nodes import (
    LOGIC,
    MISSING,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    below,
)
from pdrisk._model.operands import compares_as, gives, no_arithmetic, takes
from pdrisk._sql import workspace
from pdrisk._sql.allowed import UNITS, Signature, signatures
from pdrisk._sql.arithmetic import (
    as_bigint,
    as_double,
    cast_number,
    cast_result,
    chosen,
    compared,
    computed,
    first,
    is_whole,
)
from pdrisk._sql.headings import heading
from pdrisk._sql.pieces import (
    INTEGERS,
    Expression,
    case,
    constant,
    kind_of_type,
    operation,
    quoted,
    word,
    written_constant,
)
from pdrisk.errors import ParameterError

__all__ = ["Scope", "text", "truth"]

# Characters; a name used twice in each of n nested subqueries grows as 2**n. What is written out comes on top.
LONGEST, OF_ONE = 100_000, 200
# Numbers that DuckDB compares with each other without a cast that could fail.
SIMPLE = frozenset({*INTEGERS[:-2], "DOUBLE", "constant"})
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
# How one is written depends on the type of its column, which one record more can change.
NO_TEXT = {
    NUMBER: "compare numbers with numbers",
    TRUTH: "compare truth values with true and false",
    **dict.fromkeys((DATE, TIME, ZONED), "compare dates with dates, or ask for year(x)"),
    INTERVAL: "make a column of numbers, such as days",
}
LENGTHS, OF_DATES = (0, 2**40), (-(2**50), 2**50)  # what functions of text and of dates give at most


class Scope(Protocol):
    """What names mean in one place of a query."""

    @property
    def of_people(self) -> bool:
        """Whether the values are people's, not noisy ones."""

    @property
    def untyped(self) -> frozenset[str]:
        """Columns of Python objects, whose type is read off their values."""

    @property
    def zone(self) -> str:
        """The clock that times with a zone are read by."""

    def known(self, node: Node) -> Expression | None:
        """What a node is, if the scope has a meaning for it as a whole; it has one for each column, or an error."""


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
                known = constant(node.value)
            case Cast():
                known = _cast(node, scope)
            case Case():
                known = _case(node, scope)
            case Call():
                known = _call(node, scope)
            case Operation():
                known = _operation(node, scope)
            case Column() | Rank():
                raise AssertionError("a scope knows its columns, which have no ranks")
    size = max(len(known.sql), len(known.wide))
    if size > LONGEST and size > LONGEST + sum(OF_ONE + _length(part) for part in below(node)):
        raise ParameterError(
            f"an expression of this query grows beyond {LONGEST:,} characters when its subqueries are put together: "
            "write it shorter, or make a column of it in a table first."
        )
    return known


def _length(node: Node) -> int:
    return 2 * len(node.value) if isinstance(node, Constant) and isinstance(node.value, str) else 0


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
    if operand.kind in (PERIODS_IN_SQL, UNCLEAR) or (operand.kind in NO_NUMBERS and kind in (NUMBER, TRUTH)):
        raise ParameterError(f"no {kind} can be made of {operand.kind} by a cast: {NO_NUMBERS[operand.kind]}.")
    if scope.of_people and not operand.constant:
        _check_cast(operand, kind, scope)
    if operand.kind == ZONED:
        clock = f"TRY(system.main.timezone({written_constant(scope.zone)}, {operand.sql}))"
        operand = Expression(clock, TIME, "TIMESTAMP" if node.forgiving else "")
    if operand.type == to:
        return operand
    if not node.forgiving and not _cannot_fail(operand, to, scope):
        raise ParameterError(
            f"CAST to {to} of {operand.kind} could fail at a record, and so tell of it: write TRY_CAST, which gives "
            "NULL."
        )
    return cast_result(cast_number(operand, to, node.forgiving), kind, to)


def _check_cast(operand: Expression, kind: str, scope: Scope) -> None:
    """Refuse casts whose result depends on the type of a column, where one record can change that type."""
    if kind == TEXT and operand.kind in NO_TEXT:
        raise ParameterError(
            f"a cast of {operand.kind} to VARCHAR is refused: how they are written depends on the column's type, which "
            f"one record more can change. Instead, {NO_TEXT[operand.kind]}."
        )
    if name := next((name for name in sorted(scope.untyped) if quoted(name) in operand.sql), None):
        raise ParameterError(
            f"a cast of column {name!r} is refused: it holds Python objects, which are cast by what each of them is. "
            f'Convert the column before, such as frame.astype({{{name!r}: "string"}}).'
        )


def _cannot_fail(operand: Expression, to: str, scope: Scope) -> bool:
    if operand.kind == NOTHING:
        return True
    if to == "VARCHAR":
        return operand.kind == TEXT or (not scope.of_people and operand.kind in NO_TEXT)
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
    if to == "DATE" and isinstance(operand.value, str) and re.fullmatch(r"[1-9]\d{3}-\d\d-\d\d", operand.value):
        with suppress(ValueError):  # lists of them may be long, and to ask DuckDB takes a while
            return replace(constant(datetime.date.fromisoformat(operand.value)), sql=sql)
    value = workspace.compute(f"SELECT {sql}", f"the constant in a cast to {to}")
    kind = NOTHING if operand.value is None else kind_of_type(to)
    return replace(cast_result(sql, kind, to), constant=True, value=value)


def _case(node: Case, scope: Scope) -> Expression:
    conditions = [truth(text(when, scope), "WHEN").sql for when, _ in node.branches]
    results = [text(then, scope) for _, then in node.branches] + [text(node.otherwise, scope)]
    kind, sql_type, results = _alike(results, "the branches of CASE are")
    if kind == NUMBER:
        return chosen(conditions, results)
    *arms, otherwise = (part.sql for part in results)
    return Expression(f"({case(zip(conditions, arms, strict=True), otherwise)})", kind, sql_type)


def _operation(node: Operation, scope: Scope) -> Expression:
    symbol = node.symbol
    if symbol in LOGIC:
        conditions = [truth(text(part, scope), word(symbol)).sql for part in node.parts]
        return Expression(operation(symbol, conditions), TRUTH, "BOOLEAN")
    parts = [text(part, scope) for part in node.parts]
    if symbol in MISSING:
        return Expression(operation(symbol, [parts[0].wide or parts[0].sql]), TRUTH, "BOOLEAN")
    if symbol == "try":
        return parts[0]  # nothing here fails
    if symbol == "coalesce":
        kind, sql_type, parts = _alike(parts, "the arguments of COALESCE are")
        if kind == NUMBER:
            return first(parts)
        return Expression(f"COALESCE({', '.join(part.sql for part in parts)})", kind, sql_type)
    if gives(symbol) == NUMBER:
        return _arithmetic(node, parts)
    return _comparison(node, parts)


def _arithmetic(node: Operation, parts: list[Expression]) -> Expression:
    for raw, part in zip(node.parts, parts, strict=True):
        if not takes(node.symbol, part.kind, sql=True):
            said = no_arithmetic(node.symbol, f"{heading(raw)} ({part.kind})")
            raise ParameterError(f"{said}: {number_advice(part.kind, sql=True)}.")
    return computed(word(node.symbol), parts)


def _call(node: Call, scope: Scope) -> Expression:
    if node.distinct or node.ordered or node.condition is not None:
        raise ParameterError(f"DISTINCT, ORDER BY and FILTER belong to aggregates, and {node.name} is none.")
    if any(node.names):
        raise ParameterError(f"{node.name} takes its arguments by position.")
    match node:
        case Call("if", (condition, then, otherwise)):
            return _case(Case(((condition, then),), otherwise), scope)
        case Call("nullif", (value, _)):
            return _case(Case(((Operation("==", node.arguments), Constant(None)),), value), scope)
        case Call("if"):
            raise ParameterError("if takes a condition and two values: write if(x > 1, 'many', 'one').")
    signatures(node.name)  # what is not allowed is refused before its arguments are
    return _function(node.name, [text(argument, scope) for argument in node.arguments])


def _comparison(node: Operation, arguments: list[Expression]) -> Expression:
    if any(part.kind in (DATE, TIME) for part in arguments):
        arguments = [_dated(part, raw) for part, raw in zip(arguments, node.parts, strict=True)]
    kind, _, arguments = _alike(arguments, f"{word(node.symbol)} compares")
    there = [part for part in arguments if part.kind != NOTHING]
    if kind == NUMBER and not is_whole(there):
        types = {part.type for part in there}
        alike = types <= SIMPLE or types == {"FLOAT", "constant"} or (len(types) == 1 and "" not in types)
        if not alike or any(part.wide for part in there):
            arguments = list(map(as_double, arguments))
    return compared(node.symbol, arguments)


def _dated(part: Expression, node: Node) -> Expression:
    """A date written as text, as SQL allows."""
    if part.kind != TEXT or not isinstance(node, Constant) or not isinstance(node.value, str):
        return part
    try:
        if len(node.value) == 10:
            return constant(datetime.date.fromisoformat(node.value))
        moment = datetime.datetime.fromisoformat(node.value)
    except ValueError:
        moment = None
    if moment is None:
        raise ParameterError("a text compared with dates is none: write it like '2020-12-31'.")
    if moment.tzinfo is not None:
        raise ParameterError("a time compared with dates has a time zone: write it without.")
    return constant(moment)


def _alike(arguments: list[Expression], who: str) -> tuple[str, str, list[Expression]]:
    """The one kind and type of all arguments, and the arguments with the casts that dates among times need.

    DuckDB would cast by itself, but what it adds it may also move: out of a TRY, if another expression needs the same.
    So no cast that could fail is left to it.
    """
    present = [part for part in arguments if part.kind != NOTHING]
    kinds = list(dict.fromkeys(compares_as(part.kind, sql=True) for part in present))
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
    return kinds[0], "", arguments


def _as_time(part: Expression) -> Expression:
    if part.kind != DATE:
        return part
    return replace(part, sql=f"TRY_CAST({part.sql} AS TIMESTAMP)", kind=TIME, type="TIMESTAMP")


def truth(found: Expression, where: str) -> Expression:
    """The expression, if a condition can stand there."""
    if not takes("and", found.kind, sql=True):
        raise ParameterError(f"{where} needs a condition, but has {found.kind}: compare it with something.")
    return found


def _function(name: str, arguments: list[Expression]) -> Expression:
    forms = signatures(name)
    kinds = tuple(part.kind for part in arguments)
    form = next((form for form in forms if form.fits(kinds, tuple(part.constant for part in arguments))), None)
    if form is None:
        wanted = " or ".join(f"({', '.join(_LETTERS[letter] for letter in form.arguments)})" for form in forms)
        raise ParameterError(f"{name} takes {wanted}, but is given ({', '.join(kinds)}).")
    _check_constants(name, form, arguments)
    if form.result == NUMBER and form.arguments.startswith("n"):
        return computed(name, arguments)
    if {DATE, TIME} <= set(kinds):
        arguments = [_as_time(part) for part in arguments]
    # A number beside text counts letters.
    counts = form.result == TEXT
    passed = [
        part.sql if part.kind != NUMBER or (counts and part.constant) else as_bigint(part) if counts else part.double
        for part in arguments
    ]
    sql = f"TRY(system.main.{quoted(name)}({', '.join(passed)}))"
    if form.result != NUMBER:
        return Expression(sql, form.result, "VARCHAR" if form.result == TEXT else "BOOLEAN")
    return Expression(sql, NUMBER, "BIGINT", span=LENGTHS if TEXT in kinds and form.arguments == "t" else OF_DATES)


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
