"""Functions of SQL written out, with what is known of their results."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from pdrisk._model.expressions.kinds import DATE, INTERVAL, NUMBER, TEXT, TIME
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS, PARTS, UNITS, Signature, signatures
from pdrisk._sql.expressions.duckdb_arithmetic import as_bigint, as_double, computed
from pdrisk._sql.expressions.duckdb_dates import as_time, date_function
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import Expression, constant, quoted, written_constant
from pdrisk._sql.syntax.ranges import ANYTHING, DATE_PARTS, Range, range_of_function, range_of_time
from pdrisk.errors import ParameterError

LONGEST_PADDED = 1000
TIMES = (DATE, TIME, INTERVAL)
OF_INTERVALS = frozenset({"day", "hour", "minute", "second"})  # between two moments there are no months
LENGTHS, OF_DATES = (0, 2**40), (-(2**50), 2**50)  # what functions of text and of dates give at most


def ranged(name: str, parts: list[Expression]) -> Expression:
    """An operator or function of numbers, with its range."""
    expression = computed(name, parts)
    if expression.constant:
        return expression if parts[0].values is not None else replace(expression, range=ANYTHING, values=None)
    lies = range_of_function(name, [part.range for part in parts], [part.constant for part in parts])
    return replace(expression, range=lies, values=None)


def form_of(name: str, arguments: Sequence[Expression]) -> Signature | None:
    """Form of an allowed function that takes these arguments; None of any other."""
    kinds, fixed = tuple(part.kind for part in arguments), tuple(part.constant for part in arguments)
    return next((form for form in FUNCTIONS.get(name, ()) if form.fits(kinds, fixed)), None)


def function(name: str, arguments: list[Expression]) -> Expression:
    """A function of the list, inside TRY."""
    forms, form = signatures(name), form_of(name, arguments)
    kinds = tuple(part.kind for part in arguments)
    if form is None:
        wanted = " or ".join(f"({', '.join(_LETTERS[letter] for letter in form.arguments)})" for form in forms)
        raise ParameterError(f"{name} takes {wanted}, but is given ({', '.join(kinds)}).")
    _check_constants(name, form, arguments)
    if form.result == NUMBER and form.arguments.startswith("n"):
        return ranged(name, arguments)
    if name == "pi":
        return constant(math.pi)
    if (dated_ := date_function(name, arguments)) is not None:
        return dated_
    if {DATE, TIME} <= set(kinds):
        arguments = [as_time(part) for part in arguments]
    # A number beside text counts letters.
    counts = form.result == TEXT
    passed = [
        part.sql
        if part.kind != NUMBER or (counts and part.constant)
        else as_bigint(part)
        if counts
        else as_double(part).clean  # isfinite and isinf say no to NaN
        for part in arguments
    ]
    sql = f"TRY(system.main.{quoted(name)}({', '.join(passed)}))"
    if form.result != NUMBER:
        return Expression(sql, form.result, "VARCHAR" if form.result == TEXT else "BOOLEAN")
    span = LENGTHS if TEXT in kinds and form.arguments in ("t", "tt") else OF_DATES
    part = PARTS[str(arguments[0].value).lower()] if form.arguments == "ud" else name
    if part not in DATE_PARTS:
        times, unit = [argument.range for argument in arguments if argument.kind in TIMES], arguments[0]
        is_outside = unit.constant and unit.values is None  # of a parameter, which public texts would show
        lies = ANYTHING if is_outside else range_of_time(part, times, str(unit.value))
        return Expression(sql, NUMBER, "BIGINT", span=span, range=lies)
    public = DATE_PARTS[part]
    return Expression(
        sql, NUMBER, "BIGINT", span=(public[0], public[-1]), range=Range(public[0], public[-1]), values=tuple(public)
    )


def _check_constants(name: str, form: Signature, arguments: list[Expression]) -> None:
    if form.arguments.startswith(("u", "w")):
        unit, known = arguments[0].value, {"ud": PARTS, "wv": OF_INTERVALS}.get(form.arguments, UNITS)
        if not isinstance(unit, str) or unit.lower() not in known:
            listed = ", ".join(sorted(known if known is OF_INTERVALS else UNITS))
            raise ParameterError(f"{name} takes one of these units: {listed}.")
    if name.startswith("regexp_"):  # only when it meets a record would DuckDB see that a pattern is none
        trial_text = ", ".join(part.sql for part in arguments[1:])
        workspace.compute(f"SELECT system.main.{name}('', {trial_text})", f"the pattern of {name}")
    if name == "regexp_replace":
        _check_growth(*(str(part.value) for part in arguments[1:]))
    if name in ("lpad", "rpad"):
        length, filling = arguments[1].value, arguments[2].value
        if type(length) is not int or not 0 <= length <= LONGEST_PADDED or not filling:
            raise ParameterError(
                f"{name} takes a length up to {LONGEST_PADDED} and a text to fill it with: {name}(x, 5, '0')."
            )
    if name == "replace":
        # Text that grows could be made to fill the memory for one record alone.
        old, new = (str(part.value) for part in arguments[1:])
        if not old or len(new) > len(old):
            raise ParameterError(
                "replace may not put in more characters than it takes out: write CASE WHEN x = 'a' THEN 'bc' ..."
            )


def _check_growth(pattern: str, new: str, how: str = "") -> None:
    """Refuse a replacement that could make a text longer each time it is applied."""
    grows = new.count("\\") > 1 or not set(how) <= {"g", "i"}
    if "g" in how and new and not re.fullmatch(r"\\[0-9]", new):
        # Where nothing is matched, and put in at every letter, a text would double.
        empty = workspace.compute(f"SELECT system.main.regexp_matches('', {written_constant(pattern)})", "the pattern")
        grows = grows or len(new) > 1 or bool(empty) or any(part in pattern for part in (r"\b", r"\B", "(?"))
    if grows:
        raise ParameterError(
            "regexp_replace takes the options g and i; with g it puts in nothing, one letter or one \\1 for each "
            "match: a text that grows could fill the memory."
        )


_LETTERS = {
    "n": "number", "t": "text", "b": "truth value", "d": "date",
    "c": "constant text", "u": "unit", "i": "constant number", "p": "interval", "v": "interval", "w": "unit",
    "*": "...",
}  # fmt: skip
