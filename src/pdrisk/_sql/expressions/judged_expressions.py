"""SQL expressions written anew from the tree, so that none can fail on a record; each with its kind.

What is written out is made from the tree, never copied from the query: what was checked is what runs. Comparisons, AND,
OR, NOT, CASE, IN, BETWEEN, IS NULL and CAST are syntax; everything else is a function of the system's own schema, which
no macro of the same name can stand in for.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace

from pdrisk._model.expressions.kinds import (
    DATE,
    INTERVAL,
    NO_NUMBERS,
    NOTHING,
    NUMBER,
    TEXT,
    TIME,
    TRUTH,
    number_advice,
)
from pdrisk._model.expressions.nodes import (
    COMPARISONS,
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
    Window,
    below,
)
from pdrisk._model.expressions.operands import compares_as, gives, no_arithmetic, takes
from pdrisk._sql.expressions.allowed_functions import signatures
from pdrisk._sql.expressions.duckdb_arithmetic import (
    as_double,
    chosen,
    compared,
    first,
    is_whole,
)
from pdrisk._sql.expressions.duckdb_casts import cast, constant_cast, number_as_text, type_of_cast
from pdrisk._sql.expressions.duckdb_dates import INTERVALS, as_time, date_arithmetic, interval
from pdrisk._sql.expressions.duckdb_functions import function, ranged
from pdrisk._sql.expressions.noisy_functions import function_of_noisy, with_whole_counts
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.expressions.windows import of_records, window
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import (
    INTEGERS,
    Expression,
    case,
    constant,
    operation,
    public,
    word,
)
from pdrisk._sql.syntax.ranges import ANYTHING, Range, hull, listed
from pdrisk.errors import ParameterError

__all__ = ["TRUNCATED", "Scope", "bucketed", "calculated", "dated", "numbers_read", "text", "truth", "untruncated"]

COMPARING = {*COMPARISONS, "between", "in", "not in", "is distinct from", "is not distinct from"}
WHOLE = re.compile(r"[+-]?\d{1,18}")  # that every engine can hold

# Characters; a name used twice in each of n nested subqueries grows as 2**n. What is written out comes on top.
LONGEST, OF_ONE = 100_000, 200
# Numbers that DuckDB compares with each other without a cast that could fail.
SIMPLE = frozenset({*INTEGERS[:-2], "DOUBLE", "constant"})
JOINING = frozenset({"||", "concat"})
MOST_BUCKETS = 10_000
TRUNCATED = "TRUNCATED "  # before the type of a cast


def text(node: Node, scope: Scope) -> Expression:
    """The SQL of a node."""
    known = scope.known(node)
    if known is None:
        match node:
            case Constant():
                known = public(constant(node.value), node)
            case Cast():
                known = _cast(node, scope)
            case Case():
                known = _case(node, scope)
            case Call():
                known = _call(node, scope)
            case Operation():
                known = _operation(node, scope)
            case Window():
                known = _window(node, scope)
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
    node = untruncated(node, scope)
    if node.to.upper() == "INTERVAL":
        return interval(node)
    to = type_of_cast(node.to)
    if isinstance(node.operand, Constant) and not node.forgiving:
        return constant_cast(node.operand, to)
    operand = text(node.operand, scope)
    return cast(with_whole_counts(operand) if to == "VARCHAR" else operand, to, scope, forgiving=node.forgiving)


def untruncated(node: Cast, scope: Scope) -> Cast:
    """A cast of Spark to a whole number, which drops the fraction, as one that rounds."""
    if not node.to.startswith(TRUNCATED):
        return node
    to, kind = node.to.removeprefix(TRUNCATED), text(node.operand, scope).kind
    if kind == TEXT:
        raise ParameterError(
            f"a cast of text to {to} drops the fraction in Spark: write CAST(CAST(x AS DOUBLE) AS {to}), which does so "
            "here, too."
        )
    operand = Call("trunc", (node.operand,), ("",)) if kind == NUMBER else node.operand
    return Cast(operand, to, node.forgiving)


def _window(node: Window, scope: Scope) -> Expression:
    if scope.of_people:
        raise of_records(node)
    kept = None if node.function.condition is None else truth(text(node.function.condition, scope), "FILTER").condition
    made = window(
        node,
        [text(argument, scope) for argument in node.function.arguments],
        [text(partition, scope).sql for partition in node.partitions],
        [f"{text(item, scope).sql} {scope.order(how)}" for item, how in node.order],
        kept,
    )
    return scope.windowed(made)


def _case(node: Case, scope: Scope) -> Expression:
    conditions = [truth(text(when, scope), "WHEN").condition for when, _ in node.branches]
    results = [text(then, scope) for _, then in node.branches] + [text(node.otherwise, scope)]
    kind, sql_type, results = _alike(results, "the branches of CASE are")
    values = listed([part.values for part in results])
    if kind == NUMBER:
        return replace(chosen(conditions, results), range=_hull(results), values=values)
    *arms, otherwise = (part.sql for part in results)
    made = f"({case(zip(conditions, arms, strict=True), otherwise)})"
    return Expression(made, kind, sql_type, values=values, range=_hull(results))


def _hull(results: Sequence[Expression]) -> Range:
    """Range that holds the values of several expressions; NULL has no value."""
    ranges = [part.range for part in results if part.kind != NOTHING]
    return hull(ranges) if ranges else ANYTHING


def _operation(node: Operation, scope: Scope) -> Expression:
    symbol = node.symbol
    if symbol in LOGIC:
        return _logic(symbol, [truth(text(part, scope), word(symbol)) for part in node.parts])
    if symbol in COMPARING:
        node = Operation(symbol, numbers_read(node.parts, scope))
    parts = [text(part, scope) for part in node.parts]
    if symbol in MISSING:
        return _missing(symbol, parts[0])
    if symbol == "try":
        return parts[0]  # nothing here fails
    if symbol == "coalesce":
        kind, sql_type, parts = _alike(parts, "the arguments of COALESCE are")
        if kind == NUMBER:
            return replace(first(parts), range=_hull(parts))
        made = f"COALESCE({', '.join(part.sql for part in parts)})"
        return Expression(made, kind, sql_type, range=_hull(parts))
    if gives(symbol) == NUMBER:
        return calculated(node, parts)
    return _comparison(node, parts)


def _logic(symbol: str, parts: list[Expression]) -> Expression:
    """AND, OR or NOT of conditions."""
    made = Expression(operation(symbol, [part.sql for part in parts]), TRUTH, "BOOLEAN")
    if not any(part.holds for part in parts):
        return made
    if symbol == "not":
        return replace(made, holds=parts[0].negation, denied=parts[0].condition)
    dual = "or" if symbol == "and" else "and"
    holds = operation(symbol, [part.condition for part in parts])
    return replace(made, holds=holds, denied=operation(dual, [part.negation for part in parts]))


def _missing(symbol: str, part: Expression) -> Expression:
    """IS NULL or IS NOT NULL, which NaN is, too."""
    sql = operation(symbol, [part.wide or part.sql])
    if part.may_be_nan:
        sql = f"({sql} OR NOT {part.present})" if symbol == "isna" else f"({sql} AND {part.present})"
    return Expression(sql, TRUTH, "BOOLEAN")


def _bucket(value: Node, lo: Node, hi: Node, n: Node, scope: Scope) -> Expression:
    """WIDTH_BUCKET as standard SQL has it: 1 to n, and 0 and n + 1 outside. DuckDB has none."""
    ends = [text(argument, scope) for argument in (lo, hi, n)]
    low, high, size = (end.value for end in ends)
    if (
        not all(end.constant and end.kind == NUMBER for end in ends)
        or type(size) is not int
        or not 1 <= size <= MOST_BUCKETS
        or not float(low) < float(high)  # type: ignore[arg-type]
    ):
        raise ParameterError(
            f"width_bucket takes a number, two constants that are its ends, the lower one first, and up to "
            f"{MOST_BUCKETS} buckets: width_bucket(x, 0, 100, 10)."
        )
    bucket = _case(bucketed(value, lo, hi, n), scope)
    if any(end.values is None for end in ends):  # of parameters
        return replace(bucket, range=ANYTHING, values=None)
    return replace(bucket, range=Range(0.0, size + 1.0), values=tuple(range(size + 2)))


def bucketed(value: Node, lo: Node, hi: Node, n: Node) -> Case:
    """WIDTH_BUCKET in other words."""
    above = Operation("-", (value, lo))
    share = Operation("/", (Operation("*", (above, n)), Operation("-", (hi, lo))))
    one = Constant(1)
    place = Operation("+", (Cast(Call("floor", (share,)), "BIGINT", forgiving=True), one))
    outside = (Operation("<", (value, lo)), Constant(0)), (Operation(">=", (value, hi)), Operation("+", (n, one)))
    return Case((*outside, (Operation("<", (value, hi)), place)), Constant(None))


def calculated(node: Operation, parts: list[Expression]) -> Expression:
    """Arithmetic of numbers, or of dates and times, by its parts."""
    if any(part.kind in (DATE, TIME, INTERVAL) for part in parts) and len(parts) == 2:
        parts = [dated(part, raw) for part, raw in zip(parts, node.parts, strict=True)]
        pairs = zip(node.parts, parts, strict=True)
        return date_arithmetic(node.symbol, parts, [f"{heading(raw)} ({part.kind})" for raw, part in pairs])
    for raw, part in zip(node.parts, parts, strict=True):
        if not takes(node.symbol, part.kind, sql=True):
            refusal = no_arithmetic(node.symbol, f"{heading(raw)} ({part.kind})")
            raise ParameterError(f"{refusal}: {number_advice(part.kind, sql=True)}.")
    return ranged(word(node.symbol), parts)


def _call(node: Call, scope: Scope) -> Expression:
    if node.distinct or node.ordered or node.condition is not None:
        signatures(node.name)  # of another aggregate it is said why it is none
        raise ParameterError(f"DISTINCT, ORDER BY and FILTER belong to aggregates, and {node.name} is none.")
    if any(node.names):
        raise ParameterError(f"{node.name} takes its arguments by position.")
    if node.name in INTERVALS:
        return interval(node)
    match node:
        case Call("if", (condition, then, otherwise)):
            return _case(Case(((condition, then),), otherwise), scope)
        case Call("nullif", (value, _)):
            return _case(Case(((Operation("==", node.arguments), Constant(None)),), value), scope)
        case Call("date_part" | "datepart", (Constant(str() as unit), value)) if unit.lower() == "epoch":
            return _call(Call("epoch", (value,)), scope)
        case Call("isnan", (value,)):
            return _operation(Operation("isna", (value,)), scope)
        case Call("width_bucket", (value, lo, hi, n)):
            return _bucket(value, lo, hi, n, scope)
        case Call("if"):
            raise ParameterError("if takes a condition and two values: write if(x > 1, 'many', 'one').")
    if not scope.of_people:
        return function_of_noisy(node.name, (text(argument, scope) for argument in node.arguments))
    signatures(node.name)  # what is not allowed is refused before its arguments are
    arguments = [text(argument, scope) for argument in node.arguments]
    if node.name in JOINING and any(part.kind == TEXT for part in arguments):
        arguments = [number_as_text(part, scope) if part.kind == NUMBER else part for part in arguments]
    return function(node.name, arguments)


def _comparison(node: Operation, arguments: list[Expression]) -> Expression:
    if any(part.kind in (DATE, TIME) for part in arguments):
        arguments = [dated(part, raw) for part, raw in zip(arguments, node.parts, strict=True)]
    kind, _, arguments = _alike(arguments, f"{word(node.symbol)} compares")
    there = [part for part in arguments if part.kind != NOTHING]
    if kind == NUMBER and not is_whole(there):
        types = {part.type for part in there}
        alike = types <= SIMPLE or types == {"FLOAT", "constant"} or (len(types) == 1 and "" not in types)
        if not alike or any(part.wide for part in there):
            arguments = list(map(as_double, arguments))
    return compared(node.symbol, arguments)


def numbers_read(parts: tuple[Node, ...], scope: Scope) -> tuple[Node, ...]:
    """Operands of a comparison: a whole number that is written as text is one beside numbers, as SQL has it."""
    written = [
        isinstance(part, Constant) and isinstance(part.value, str) and WHOLE.fullmatch(part.value) is not None
        for part in parts
    ]
    others = [part for part, is_written in zip(parts, written, strict=True) if not is_written]
    if not any(written) or {text(part, scope).kind for part in others} != {NUMBER}:
        return parts
    return tuple(
        Constant(int(part.value), part.given) if is_written and isinstance(part, Constant) else part
        for part, is_written in zip(parts, written, strict=True)
    )


def dated(part: Expression, node: Node) -> Expression:
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
    """Common kind and type of all arguments, with casts where dates stand among times.

    DuckDB would cast by itself, but what it adds it may also move: out of a TRY, if another expression needs the same.
    So no cast that could fail is left to it.
    """
    present = [part for part in arguments if part.kind != NOTHING]
    kinds = list(dict.fromkeys(compares_as(part.kind, sql=True) for part in present))
    if len(kinds) > 1:
        advice = {
            frozenset({NUMBER, TEXT}): "write numbers without quotes and text in quotes, or TRY_CAST(x AS DOUBLE)",
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
        return TIME, "TIMESTAMP", [as_time(part) for part in arguments]
    return kinds[0], "", arguments


def truth(expression: Expression, where: str) -> Expression:
    """The expression, which must be a condition."""
    if not takes("and", expression.kind, sql=True):
        raise ParameterError(f"{where} needs a condition, but has {expression.kind}: compare it with something.")
    return expression
