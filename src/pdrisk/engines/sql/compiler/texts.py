"""Functions of text in SQL: by code points, whatever the collation or the language of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pdrisk._model.expressions.kinds import NUMBER, TEXT
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.values import Value, checked
from pdrisk.engines.sql.dialects.dialect import Dialect

LENGTHS: Final = (0, 2**40)
SPACES: Final = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"  # Unicode's Zs
ESCAPES: Final = "~!#$%&*+-/:;<=>?@^|"  # one of which a pattern has not


def of_text(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """A function of text by its name in SQL; ``constants`` are the values that are written out, else None."""
    made = TEXTUAL.get(name)
    if made is None:
        refuse(dialect, f"{name}()")
    return made(dialect, name, values, constants)


def _text(sql: str) -> Value:
    return Value(checked(sql), TEXT)


def _truth(sql: str) -> Value:
    return Value(checked(f"({sql})"), is_truth=True)


def _length(sql: str) -> Value:
    return Value(checked(f"CAST({sql} AS BIGINT)"), NUMBER, LENGTHS)


def _cased(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    how = {"lcase": "lower", "ucase": "upper"}.get(name, name)
    return _text(dialect.exact_text(dialect.cased(how, values[0].sql)))


def _trimmed(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return _text(dialect.exact_text(dialect.trimmed(name, values[0].sql, dialect.text(SPACES))))


def _measured(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return _length(dialect.call(dialect.octets if name == "strlen" else dialect.letters, values[0].sql))


def _found(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return _length(dialect.found_at(values[0].sql, values[1].sql))


def _holds(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """Whether a text has another one in it, at its beginning or its end."""
    text, part = values[0].sql, values[1].sql
    if name == "contains":
        return _truth(f"{dialect.found_at(text, part)} > 0")
    side = "LEFT" if name in ("starts_with", "prefix") else "RIGHT"
    size = f"CAST({dialect.call(dialect.letters, part)} AS INTEGER)"
    return _truth(f"{dialect.exact_text(dialect.call(side, text, size))} = {part}")


def _cut(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """LEFT, RIGHT or SUBSTRING, of places that are written out: engines differ in what is before the first letter."""
    text, places = values[0].sql, constants[1:]
    least = 0 if name in ("left", "right") else 1
    if not all(type(place) is int for place in places) or places[0] < least or any(place < 0 for place in places[1:]):
        refuse(dialect, f"{name}() at a place that is not written out, or before the first letter")
    numbers = [str(min(place, 2**30)) for place in places]
    if least:
        return _text(dialect.exact_text(dialect.call("SUBSTRING", text, *numbers)))
    return _text(dialect.exact_text(dialect.call(name.upper(), text, *numbers)))


def _padded(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    return _text(dialect.exact_text(dialect.call(name.upper(), values[0].sql, str(constants[1]), values[2].sql)))


def _replaced(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return _text(dialect.exact_text(dialect.call("REPLACE", *(value.sql for value in values))))


def _split(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    if not constants[1] or type(constants[2]) is not int or constants[2] < 1:
        refuse(dialect, f"{name}() by nothing, or counted from the end")
    return _text(dialect.exact_text(dialect.call("SPLIT_PART", values[0].sql, values[1].sql, str(constants[2]))))


def _joined(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """Texts one after the other; whole numbers as they are written."""
    if not all(value.family == TEXT or value.span is not None for value in values):
        refuse(dialect, f"{name}() of numbers with a fraction, or of truth values and dates")
    texts = [value.sql if value.family == TEXT else f"CAST({value.sql} AS {dialect.text_type})" for value in values]
    if name == "concat":  # which leaves out what is missing
        return _text(dialect.exact_text(dialect.call("CONCAT_WS", "''", *texts)))
    return _text(dialect.exact_text(f"({' || '.join(texts)})"))


def _like(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """LIKE or ILIKE of a pattern that is written out, in which % and _ alone mean something."""
    pattern = str(constants[1])
    escape = next((sign for sign in ESCAPES if sign not in pattern and sign not in "%_"), None)
    if escape is None:
        refuse(dialect, "LIKE with so many signs")
    text, wanted = values[0].sql, values[1].sql
    if name.endswith("*"):
        text, wanted = (dialect.exact_text(dialect.cased("lower", side)) for side in (text, wanted))
    word = "NOT LIKE" if name.startswith("!") else "LIKE"
    return _truth(f"{text} {word} {wanted} ESCAPE '{escape}'")


Made = Callable[[Dialect, str, Sequence[Value], Sequence[Any]], Value]
TEXTUAL: Final[Mapping[str, Made]] = {
    **dict.fromkeys(("lower", "upper", "lcase", "ucase"), _cased),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trimmed),
    **dict.fromkeys(("length", "len", "strlen", "char_length", "character_length"), _measured),
    **dict.fromkeys(("strpos", "instr", "position"), _found),
    **dict.fromkeys(("contains", "starts_with", "prefix", "ends_with", "suffix"), _holds),
    **dict.fromkeys(("left", "right", "substr", "substring"), _cut), **dict.fromkeys(("lpad", "rpad"), _padded),
    "replace": _replaced, "split_part": _split, **dict.fromkeys(("||", "concat"), _joined),
    **dict.fromkeys(("~~", "!~~", "~~*", "!~~*"), _like),
}  # fmt: skip
