"""Functions of sqlglot as calls of DuckDB's, each from an allow-list: what a language means otherwise is refused."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from typing import Any, Final, NoReturn

from pdrisk._model.expressions.nodes import Call, Cast, Constant, Node, Operation
from pdrisk._sql.expressions.judged_expressions import TRUNCATED
from pdrisk._sql.expressions.number_patterns import NUMBER_PATTERN
from pdrisk._sql.syntax.languages import POSTGRES, Language
from pdrisk._sql.text.constant_series import is_day
from pdrisk._sql.text.sqlglot_fractions import Types, fractional_names, is_fractional
from pdrisk._sql.text.sqlglot_names import (
    ENDS,
    OF_NUMBERS,
    OF_TEXT,
    OF_TIMES,
    PARTS,
    TYPES,
)
from pdrisk.errors import ParameterError

Expression = Any  # a node of sqlglot, which is imported where a query is read
FORMAT: Final = re.compile(r"(%[YmdHMj]|[-/:. ])+")
EVERY_MONTH: Final = 28  # days; DuckDB goes on from a day that was cut to the end of a month
UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")  # of DATEDIFF
NAMED: Final = {"make_date": "make_date", "octet_length": "strlen"}


def call(name: str, *arguments: Node) -> Call:
    """A function of arguments by position."""
    return Call(name, arguments, ("",) * len(arguments))


class FunctionsOfSqlglot(ABC):
    """Reader of functions in a language."""

    language: Language
    types: Types | None = None  # of the columns of a table
    fractions: frozenset[str] | None = None  # columns that hold no whole numbers, once somebody asked

    @abstractmethod
    def table_name(self, node: Expression) -> str:
        """Name of a table as its engine keeps it."""

    @abstractmethod
    def node(self, node: Expression) -> Node:
        """An expression."""

    @abstractmethod
    def refuse(self, node: Expression | str) -> NoReturn:
        """Refuse a node, or what an advice is about."""

    @abstractmethod
    def only(self, node: Expression, *known: str) -> Expression:
        """The node, if it has no field beyond the known ones."""

    def inner(self, node: Expression) -> Node:
        return self.node(self.only(node, "this").this)

    def fields(self, node: Expression, *names: str) -> tuple[Node, ...]:
        """Arguments in these fields, without those that are missing."""
        self.only(node, *names)
        return tuple(self.node(node.args[name]) for name in names if node.args.get(name) is not None)

    # Casts

    def cast(self, node: Expression) -> Node:
        """A cast; a text that is written out becomes the date that it says."""
        self.only(node, "this", "to", "safe")
        to = self.type(node.args["to"])
        operand = self.node(node.this)
        if to in ("DATE", "TIMESTAMP") and isinstance(operand, Constant) and isinstance(operand.value, str):
            return Constant(_moment(to, operand.value))
        if re.fullmatch(r"(TINY|SMALL|BIG)?INT(EGER)?", to) and self.language is not POSTGRES:
            to = f"{TRUNCATED}{to}"
        return Cast(operand, to, forgiving=True)

    def type(self, node: Expression) -> str:
        """DuckDB's name of a type."""
        name = getattr(node.this, "name", str(node.this))
        written = TYPES.get(name)
        if name == "FLOAT":  # of 32 bits in Spark, as in DuckDB
            written = "DOUBLE" if self.language is POSTGRES else "FLOAT"
        if written is None:
            self.refuse("Cast")
        sizes = [str(expression.this.this) for expression in node.expressions]
        if written == "DECIMAL":
            if not sizes:  # of PostgreSQL, any number of digits
                return "DOUBLE"
            return f"DECIMAL({sizes[0]},{sizes[1] if len(sizes) > 1 else 0})"
        if sizes and written != "VARCHAR":
            self.refuse("Cast")
        return written

    def as_date(self, node: Expression) -> Node:
        """What Spark's functions make a date of."""
        if type(node).__name__ == "TsOrDsToDate":
            node = self.only(node, "this", "safe").this
        return Cast(self.node(node), "DATE", forgiving=True)

    # Times

    def extract(self, node: Expression) -> Node:
        self.only(node, "this", "expression")
        unit = str(node.this.name).lower()
        value = self.node(node.expression)
        if unit == "epoch":
            return call("epoch", value)
        if unit not in PARTS[self.language.name]:
            self.refuse("Extract")
        return call("date_part", Constant(unit), value)

    def of_time(self, node: Expression) -> Node:
        of = self.only(node, "this").this
        if type(of).__name__ == "TsOrDsToDate":  # as sqlglot reads Spark's year(d)
            of = self.only(of, "this").this
        return call("date_part", Constant(OF_TIMES[type(node).__name__]), self.node(of))

    def weekday(self, node: Expression) -> Node:
        """Spark's DAYOFWEEK, 1 on Sundays."""
        if self.language is POSTGRES:
            self.refuse(node)
        day = call("date_part", Constant("dayofweek"), self.as_date(self.only(node, "this").this))
        return Operation("+", (day, Constant(1)))

    def truncated(self, node: Expression) -> Node:
        self.only(node, "this", "unit")
        unit = node.args["unit"]
        truncated = call("date_trunc", Constant(str(unit.name).lower()), self.node(node.this))
        return Cast(truncated, "DATE", forgiving=True) if type(node).__name__ == "DateTrunc" else truncated

    def interval(self, node: Expression) -> Node:
        self.only(node, "this", "unit")
        written, unit = node.this, node.args.get("unit")
        if type(written).__name__ != "Literal":
            self.refuse(node)
        text = str(written.this)
        if unit is None:
            return Cast(Constant(text), "INTERVAL", forgiving=False)
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            self.refuse(node)
        return call(f"to_{str(unit.name).lower().rstrip('s')}s", Constant(int(text)))

    def days_later(self, node: Expression) -> Node:
        """Spark's DATE_ADD and DATE_SUB."""
        self.only(node, "this", "expression", "unit")
        if str(node.args["unit"].name) != "DAY":
            self.refuse(node)
        return Operation("+", (self.as_date(node.this), self.node(node.expression)))

    def months_later(self, node: Expression) -> Node:
        self.only(node, "this", "expression")
        months = self.node(node.expression)
        return Cast(Operation("+", (self.as_date(node.this), call("to_months", months))), "DATE", forgiving=True)

    def time_between(self, node: Expression) -> Node:
        """Spark's DATEDIFF: days from the second date to the first; with a unit, whole ones between two times."""
        self.only(node, "this", "expression", "unit")
        if (unit := node.args.get("unit")) is None:
            return Operation("-", (self.as_date(node.this), self.as_date(node.expression)))
        if (name := str(unit.this).lower()) not in UNITS:
            self.refuse(f"DATEDIFF of {name}s")
        return call("date_sub", Constant(name), *map(self._end_of_time, (node.expression, node.this)))

    def _end_of_time(self, node: Expression) -> Node:
        """A side of DATEDIFF with a unit, which compares times, and reads dates that are written out."""
        inner = node.this if type(node).__name__ == "TsOrDsToDate" else node
        return self.as_date(node) if getattr(inner, "is_string", False) else self.node(inner)

    def dated(self, node: Expression) -> Node:
        return self.as_date(node)

    def last_day(self, node: Expression) -> Node:
        return call("last_day", self.as_date(self.only(node, "this").this))

    def written_time(self, node: Expression) -> Node:
        """TO_CHAR and DATE_FORMAT, by the plainest signs."""
        self.only(node, "this", "format")
        value, how = node.this, node.args["format"]
        if type(value).__name__ == "TimeStrToTime":
            value = self.only(value, "this").this
        written = str(how.this) if type(how).__name__ == "Literal" else ""
        if self.language is POSTGRES and re.search("[90]", written):
            if not NUMBER_PATTERN.fullmatch(written):
                self.refuse("Number by a pattern")
            return call("to_char", self.node(value), Constant(written))
        if type(how).__name__ != "Literal" or not FORMAT.fullmatch(str(how.this)):
            self.refuse("TimeToStr")
        return call("strftime", self.node(value), Constant(str(how.this)))

    def series_of_rows(self, node: Expression) -> Node:
        """Spark's EXPLODE of a SEQUENCE, which DuckDB has as UNNEST; a series of dates there holds times."""
        self.only(node, "this")
        if type(node.this).__name__ != "GenerateSeries" or self.language is POSTGRES:
            self.refuse(node)
        first, last, *steps = self.fields(node.this, "start", "end", "step")
        if not isinstance(first, Constant) or not is_day(first):
            return call("unnest", call("generate_series", first, last, *steps))
        step = steps[0] if steps else call("to_days", Constant(1))
        by_days = isinstance(step, Call) and step.name in ("to_days", "to_weeks")
        if not by_days and first.value.day > EVERY_MONTH:
            self.refuse("Series of months")
        return Cast(call("unnest", call("generate_series", first, last, step)), "DATE", forgiving=True)

    # Numbers

    def round(self, node: Expression) -> Node:
        return call("trunc" if type(node).__name__ == "Trunc" else "round", *self.fields(node, "this", "decimals"))

    def of_number(self, node: Expression) -> Node:
        return call(OF_NUMBERS[type(node).__name__], self.inner(node))

    def of_two_numbers(self, node: Expression) -> Node:
        one, other = self.fields(node, "this", "expression")
        match type(node).__name__:
            case "Pow":
                return call("pow", one, other)
            case "Mod":
                return Operation("%", (one, other))
        return Operation("//", (one, other))

    def logarithm(self, node: Expression) -> Node:
        values = self.fields(node, "this", "expression")
        if len(values) == 1:
            return call("log10", *values)
        base = values[0].value if isinstance(values[0], Constant) else None
        if base not in (2, 10):
            self.refuse(node)
        return call(f"log{base}", values[1])

    def pi(self, node: Expression) -> Node:
        self.only(node)
        return call("pi")

    def bucket(self, node: Expression) -> Node:
        return call("width_bucket", *self.fields(node, "this", "min_value", "max_value", "num_buckets"))

    def end(self, node: Expression) -> Node:
        self.only(node, "this", "expressions", "ignore_nulls")
        return call(ENDS[type(node).__name__], self.node(node.this), *map(self.node, node.expressions))

    # Text

    def of_text(self, node: Expression) -> Node:
        name, *names = OF_TEXT[type(node).__name__]
        return call(name, *self.fields(node, *names))

    def trimmed(self, node: Expression) -> Node:
        self.only(node, "this", "position")
        side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
        return call(side, self.node(node.this))

    def like(self, node: Expression) -> Node:
        self.only(node, "this", "expression", "negate")
        text, pattern = self.node(node.this), self.node(node.expression)
        if not isinstance(pattern, Constant) or not isinstance(pattern.value, str) or "\\" in pattern.value:
            self.refuse("Like")
        comparison = call("~~*" if type(node).__name__ == "ILike" else "~~", text, pattern)
        return Operation("not", (comparison,)) if node.args.get("negate") else comparison

    def joined_text(self, node: Expression) -> Node:
        """Texts one after the other: what is missing is left out by PostgreSQL's CONCAT alone."""
        if type(node).__name__ == "DPipe":
            self.only(node, "this", "expression", "safe")
            return call("||", self.node(node.this), self.node(node.expression))
        self.only(node, "expressions", "safe", "coalesce")
        texts = list(map(self.node, node.expressions))
        if node.args.get("coalesce"):
            return call("concat", *texts)
        joined = texts[0]
        for text in texts[1:]:
            joined = call("||", joined, text)
        return joined

    def padded(self, node: Expression) -> Node:
        self.only(node, "this", "expression", "fill_pattern", "is_left")
        fill = node.args.get("fill_pattern")
        filling = Constant(" ") if fill is None else self.node(fill)
        name = "lpad" if node.args.get("is_left") else "rpad"
        return call(name, self.node(node.this), self.node(node.expression), filling)

    # Conditions

    def conditional(self, node: Expression) -> Node:
        self.only(node, "this", "true", "false")
        other = node.args.get("false")
        rest = Constant(None) if other is None else self.node(other)
        return call("if", self.node(node.this), self.node(node.args["true"]), rest)

    def distinct_from(self, node: Expression) -> Node:
        word = "is not distinct from" if type(node).__name__ == "NullSafeEQ" else "is distinct from"
        return Operation(word, self.fields(node, "this", "expression"))

    def coalesce(self, node: Expression) -> Node:
        self.only(node, "this", "expressions")
        return Operation("coalesce", (self.node(node.this), *map(self.node, node.expressions)))

    def nullif(self, node: Expression) -> Node:
        return call("nullif", *self.fields(node, "this", "expression"))

    def arithmetic(self, node: Expression, symbol: str) -> Node:
        self.only(node, "this", "expression", *(("typed", "safe") if symbol == "/" else ()))
        if symbol == "/" and self.language.divides_whole and not self.has_fraction(node):
            raise ParameterError(
                f"{self.language.engine} drops the fraction where it divides whole numbers, and quotients of noisy "
                "numbers have one: write CAST(a AS DOUBLE PRECISION) / b, or a / 2.0."
            )
        return Operation(symbol, (self.node(node.this), self.node(node.expression)))

    def has_fraction(self, node: Expression) -> bool:
        """Whether an operand is no whole number, by what is written or by the types of columns."""
        sides = (node.this, node.expression)
        if any(map(is_fractional, sides)):
            return True
        if self.fractions is None:
            self.fractions = frozenset()
            if self.types is not None:
                self.fractions = fractional_names(node.root(), self.types, self.table_name)
        return any(is_fractional(side, self.fractions) for side in sides)

    def plain_function(self, node: Expression) -> Node | None:
        """A function that sqlglot has no node for; None if it is not on the list."""
        name = str(node.this).lower()
        arguments = tuple(map(self.node, node.expressions)) if name in NAMED or name == "weekday" else ()
        if name == "weekday" and self.language is not POSTGRES and len(arguments) == 1:  # of Spark, 0 on Mondays
            day = call("date_part", Constant("isodow"), Cast(arguments[0], "DATE", forgiving=True))
            return Operation("-", (day, Constant(1)))
        return call(NAMED[name], *arguments) if name in NAMED else None


def _moment(to: str, written: str) -> datetime.date:
    """A date or time that is written out."""
    read = datetime.date.fromisoformat if to == "DATE" else datetime.datetime.fromisoformat
    try:
        moment = read(written)
    except ValueError:
        moment = None
    if moment is None or getattr(moment, "tzinfo", None) is not None:
        raise ParameterError("a date is written like '2020-12-31', a time like '2020-12-31 23:59:00', zone aside.")
    return moment
