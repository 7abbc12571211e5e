"""Builder of filters: what may stand in one, and how its tree is written out."""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from keyword import iskeyword
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from pdrisk._model.expressions.columns import check_column
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._model.expressions.nearest import misspelt
from pdrisk._model.expressions.nodes import (
    ARITHMETIC,
    LOGIC,
    MEMBERSHIP,
    MISSING,
    SIGNS,
    Call,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    is_given,
)
from pdrisk._model.expressions.operands import gives
from pdrisk._model.rowwise.functions import OF_TEXT, OF_TIME, PATTERN, call_of_text, call_of_time, spelled
from pdrisk.errors import ParameterError

WHY = "A filter must decide each record by that record and constants alone, or one record could change many decisions"
INSTEAD = "Compute it without the data and write the constant, or pass a mask, which is then marked as your word"
GIVEN = "@value"  # Python has computed every constant of an expression before anything is seen of it
EXAMPLE = "Write a comparison of columns and constants, as in `age > 40`"
IN_FRAME = (
    "Compute it as a column in the frame before, as in df.assign(weekday=df['day'].dt.weekday), or ask pdrisk.sql, "
    "which has dayofweek(day) and lower(name)"
)
COLLECTIONS = (list, tuple, set, frozenset)

Levels = Callable[[Hashable], tuple[Hashable, ...] | None]  # the categories that were declared for a column, in order
# fmt: off
RANK = {"or": 1, "and": 2, "not": 3, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "**": 8} | dict.fromkeys(SIGNS, 7)
RANK |= dict.fromkeys(MISSING, 9)
# fmt: on
UNARY = {*SIGNS, *MISSING, "not"}

MISSING_VALUES = (float, np.float64, type(pd.NA), type(pd.NaT))
METHODS = {
    "isna": (),
    "notna": (),
    "between": ("left", "right"),
    "isin": ("values",),
}  # of a column, and what they take
BEHIND: dict[str, Mapping[str, str]] = {
    "str": OF_TEXT,
    "dt": OF_TIME,
}  # functions of a column that is behind one of these words
SAME = {"isnull": "isna", "notnull": "notna"}
# Functions that make times of constants.
_TIME = "Write the time as text, as in `day >= '2020-01-31'`, or name a variable that holds it, as in `day >= @start`"
_SPAN = "Name a variable that holds it, as in `stay < @limit` after limit = pd.Timedelta('3 days')"
OF_TIMES = {
    **dict.fromkeys(("Timestamp", "to_datetime", "datetime", "date", "datetime64", "strptime"), _TIME),
    **dict.fromkeys(("Timedelta", "to_timedelta", "timedelta", "timedelta64"), _SPAN),
}
# What looks at one record only, given constants. `.cat` is missing: categories may be other records' values.
ROW_WISE = {
    *METHODS, "str", "dt", "isnull", "notnull", "abs", "astype", "ceil", "clip", "fillna", "floor", "length", "round",
    *("sqrt", "exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow"),
}  # fmt: skip


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def _rank(node: Node) -> int:
    if isinstance(node, Operation):
        return RANK.get(node.symbol, 4)
    if isinstance(node, Constant) and node.given is not None:
        return 9 if node.given.startswith("@") and node.given[1:].isidentifier() else 0
    return 7 if isinstance(node, Constant) and _literal(node.value).startswith("-") else 9


def is_row_wise(name: str) -> bool:
    """Whether a method, as in ``round`` or ``str.len``, looks at one record only."""
    outer, _, inner = name.rpartition(".")
    # `.str.cat` joins all records, and `.str.get_dummies` asks which texts there are.
    return inner not in ("cat", "get_dummies") if outer else name in ROW_WISE


def not_offered(name: str, row_wise: bool) -> str:
    """Why a filter does not accept a function, method or attribute."""
    if name in SAME:
        return f"it uses `{name}`, which filters do not have. Did you mean {SAME[name]!r}?"
    if name in OF_TIMES:
        return f"it uses `{name}`, which filters do not have. {OF_TIMES[name]}."
    if row_wise:
        kind, _, method = name.rpartition(".")
        question = misspelt(method, BEHIND[kind]) if kind in BEHIND else ""
        return f"it uses `{name}`, which filters do not have.{question or f' {IN_FRAME}.'}"
    if question := misspelt(name, METHODS):
        return f"it uses `{name}`, which filters do not have.{question}"
    return f"it uses `{name}`, which may look at other records. {WHY}. {INSTEAD}."


def needs_backticks(name: str) -> bool:
    """Whether Python would not read the name as it is; it reads a micro sign as another letter."""
    return not name.isidentifier() or iskeyword(name) or not unicodedata.is_normalized("NFKC", name)


def text_of(node: Node) -> str:
    """Text of a tree, one spelling for one meaning; values of Python variables stand as ``@names``."""
    if isinstance(node, Column | Rank):
        name = str(node.name)
        return "`" + name.replace("`", "``") + "`" if needs_backticks(name) else name
    if isinstance(node, Constant):
        return _literal(node.value) if node.given is None else node.given
    if isinstance(node, Call):
        return spelled(node, text_of)
    assert isinstance(node, Operation)
    symbol = node.symbol
    if symbol in MISSING:
        (part,) = node.parts
        return f"{text_of(part)}.{symbol}()" if isinstance(part, Column) else f"({text_of(part)}).{symbol}()"
    parts = [f"({text_of(part)})" if _rank(part) <= _rank(node) else text_of(part) for part in node.parts]
    if symbol in UNARY:
        return symbol.removeprefix("unary ") + " " * symbol.isalpha() + parts[0]
    if symbol in MEMBERSHIP and isinstance(node.parts[1], Constant):
        values, given = node.parts[1].value, node.parts[1].given
        is_one = given.startswith("[") if given else len(values) == 1 and type(values[0]) is str
        if is_one:
            return f"{parts[0]} {'==' if symbol == 'in' else '!='} {given[1:-1] if given else repr(values[0])}"
    return f" {symbol} ".join(parts)


class Builder:
    """Builder of the nodes of one ``where`` on one frame; it refuses what is not on the allow-list."""

    def __init__(self, shown: str, frame: pd.DataFrame, levels: Levels, option: str = "where") -> None:
        self.shown = shown if len(shown) <= 200 else shown[:200] + "..."
        self.option = option
        self.frame = frame
        self.levels = levels
        self.columns: dict[Hashable, None] = {}  # those it reads, in order

    def refuse(self, sentence: str) -> NoReturn:
        why = f" {GIVEN} is a constant that Python computed, perhaps from the data, so it is not shown."
        raise ParameterError(f"cannot use {self.option}={self.shown}: {sentence}{why * (GIVEN in sentence)}")

    def is_index(self, name: Hashable) -> bool:
        """Whether DataFrame.query would take the name for the index."""
        named = name in {"index", "columns", *self.frame.index.names} or re.fullmatch(r"[ic]level_\d+", str(name))
        return bool(named) and name not in self.frame.columns

    def column(self, name: Hashable) -> Column:
        if self.is_index(name):
            self.refuse(
                f"{str(name)!r} is the index. An index is a position or a label beside the records; if it holds a "
                "property of the record, make it a column: reset_index() first."
            )
        check_column(self.frame, name)
        self.columns[name] = None
        return Column(name)

    def scalar(self, value: Any, phrase: str) -> Any:
        """A constant in plain form. Exact types only: a subclass could bring operators of its own."""
        kind = type(value)
        if value is None:
            self.refuse(f"{phrase} is None, a missing value, and nothing equals one: write `x.isna()` or `x.notna()`.")
        if kind in (bool, str, dt.date):
            plain = value
        elif kind in (pd.Timestamp, pd.Timedelta, dt.datetime, dt.timedelta):
            plain = self.instant(value, phrase)
        elif kind in (np.bool_, np.str_):
            plain = value.item()
        elif kind in (np.datetime64, np.timedelta64):
            plain = pd.Timestamp(value) if kind is np.datetime64 else pd.Timedelta(value)
        elif kind is int or issubclass(kind, np.integer):
            plain = int(value)
            if not -(2**63) <= plain < 2**64:
                self.refuse(f"{phrase} is a number beyond 64 bits. Write a smaller one.")
        elif kind is float or issubclass(kind, np.floating):
            plain = float(value)  # query() narrows constants to a float32 column, as numpy does with a plain float
        else:
            self.refuse(
                f"{phrase} is a {kind.__name__}; only a number, text, date or True/False can stand there, and after "
                f"`in` a list, tuple or set of them. Anything else could be computed from the data. {WHY}."
            )
        if pd.isna(plain):
            self.refuse(f"{phrase} is a missing value, and nothing compares equal to one. Leave it out.")
        if isinstance(plain, str) and not plain.isascii() and any("\ud800" <= letter <= "\udfff" for letter in plain):
            self.refuse(f"{phrase} holds half of a surrogate pair. Take it out.")
        return plain

    def instant(self, value: Any, phrase: str) -> Any:
        """A time or duration of pandas'; with a time zone that of UTC, so that no zone's own code runs later."""
        plain: Any = None
        with suppress(Exception):
            plain = pd.Timedelta(value) if isinstance(value, dt.timedelta) else pd.Timestamp(value)
            plain = plain.tz_convert("UTC") if getattr(plain, "tzinfo", None) is not None else plain
        if plain is None:
            self.refuse(f"{phrase} is a date or duration beyond those of pandas. Write one nearer to today.")
        return plain

    def constant(self, value: Any, phrase: str, given: str | None = None) -> Constant:
        if type(value) in COLLECTIONS:
            self.refuse(f"{phrase} is a collection, which stands only after `in`: write `in` instead of `==`.")
        return Constant(self.scalar(value, phrase), given)

    def members(self, values: Any, phrase: str, given: str | None = None) -> Constant:
        if type(values) not in COLLECTIONS:
            self.refuse(f"{phrase} must be a list, tuple or set of constants, as in `region in ['north', 'south']`.")
        if any(value is None or (type(value) in MISSING_VALUES and pd.isna(value)) for value in values):
            self.refuse(
                f"{phrase} holds a missing value, and nothing equals one. Leave it out, and select records without a "
                "value by `or x.isna()`."
            )
        plain = [self.scalar(value, phrase) for value in values]
        if isinstance(values, set | frozenset):
            plain.sort(key=lambda v: (type(v).__name__, repr(v)))  # texts in sets: another order in every process
        return Constant(plain, given)

    def operation(self, symbol: str, *parts: Node) -> Node:
        constants = [part.value for part in parts if isinstance(part, Constant)]
        if gives(symbol) == NUMBER:
            if any(not isinstance(value, int | float) for value in constants):
                self.refuse(f"`{symbol}` takes numbers only. Compare a column with the text or date itself.")
            if len(constants) == len(parts):
                folded = Operation(symbol, parts)
                return self.folded(symbol, constants, text_of(folded) if is_given(folded) else None)
            if symbol in ("/", "//", "%") and isinstance(parts[1], Constant) and parts[1].value == 0:
                self.refuse("it divides by zero. Write another divisor.")
        elif len(constants) == len(parts):
            self.refuse("it compares constants with each other. Every comparison needs a column, as in `age > 40`.")
        elif symbol in LOGIC and any(type(value) is not bool for value in constants):
            self.refuse(f"`{symbol}` joins conditions, not constants. Write each out: `age == 40 or age == 41`.")
        return Operation(symbol, parts)

    def function(self, name: str, column: Node, given: Sequence[Constant], options: Mapping[str, Any]) -> Node:
        """A function behind ``.str`` or ``.dt``, as in ``str.contains``, with what was passed to it."""
        kind, _, method = name.partition(".")
        if not isinstance(column, Column):
            self.refuse(f"`{name}` stands behind the name of a column, as in `name.str.contains('a')`.")
        if method not in BEHIND[kind]:
            self.refuse(not_offered(name, is_row_wise(name)))
        if kind == "dt":
            return call_of_time(method, column)
        if "na" in options:
            self.refuse(f"`{name}` never finds a missing text: leave na= out, and add `or name.isna()` to count those.")
        literal = options.get("regex") if method == "contains" else False
        if len(given) != 1 or set(options) - ({"regex"} if method == "contains" else set()) or literal:
            self.refuse(f"`{name}` takes one text, which is looked for as it stands: write `name.{name}('a')`.")
        (part,) = given
        if not isinstance(part.value, str) or not part.value:
            self.refuse(f"`{name}` takes one text of a letter or more, as in `name.{name}('a')`.")
        if literal is None and PATTERN & set(part.value):
            self.refuse(
                f"pandas reads the text of `{name}` as a regular expression, of which filters have none: write "
                "regex=False behind it, or in Polars literal=True, to look for it as it stands."
            )
        return call_of_text(method, column, part)

    def folded(self, symbol: str, values: list[Any], given: str | None) -> Constant:
        result: Any = None
        # An integer power is sized before it is taken: 9**9**9 would never come back.
        if symbol != "**" or isinstance(values[0], float) or values[0].bit_length() * abs(values[1]) < 1024:
            with suppress(ArithmeticError):
                result = (ARITHMETIC | SIGNS)[symbol](*values)
        if not isinstance(result, int | float) or not math.isfinite(result):
            self.refuse(f"a constant in it cannot be computed: `{symbol}` overflows, divides by zero or is not real.")
        return self.constant(result, "a constant", given)
