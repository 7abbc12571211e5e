"""Databases of few people with hostile values, and expressions with their definition in plain Python.

Nothing here is shared with `pdrisk`. A value that is missing is None, and so is NaN. A row is a dict; what a person is
called stands in ``pid``, and rows of nobody known are in no table.
"""

import datetime
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

LARGE = 2**53
NAN, INF = float("nan"), float("inf")
DAY = datetime.date
#: Who people are, by the type of their ids. Of DOUBLEs 0 and -0 are one person, and NaN is nobody.
IDS = {
    "VARCHAR": ["a", "A", "ä", "a ", "", None],
    "DOUBLE": [0.0, 0.5, float(LARGE), -INF, NAN, None],
    "DECIMAL(20, 2)": [Decimal("9007199254740993"), Decimal("9007199254740992"), Decimal("0.10"), Decimal(-1), None],
}
VALUES = {
    "x": ("DOUBLE", [NAN, -0.0, 0.0, INF, -INF, None, 0.5, 2.5, -1.5, float(LARGE), 1e308, 5e-324, 40.0]),
    "k": ("BIGINT", [None, 0, 1, 2, 40, -3, LARGE, LARGE + 1, -LARGE - 1, 2**63 - 1, -(2**63)]),
    "t": ("VARCHAR", [None, "", "a", "A", "ä", "a ", "12", " 7", "2.5", "1e3", "-0.5"]),
    "d": ("DATE", [None, DAY(1, 1, 1), DAY(9999, 12, 31), DAY(2020, 2, 29), DAY(1969, 12, 31), DAY(1970, 1, 1)]),
    "b": ("BOOLEAN", [None, True, False]),
}
KINDS = {"x": "float", "k": "int", "t": "text", "d": "day", "b": "truth"}
TABLES = {"visits": "xktdb", "drugs": "xktb", "codes": "kwt"}  # nobody is in the last one
ROWS = 3  # of one person in one table, at most
CODES = [(0, 0.5, "a"), (1, NAN, "A"), (1, -0.0, ""), (LARGE, 2.5, None), (LARGE + 1, 40.0, "a"), (None, 1.0, "ä")]


def types_of(table, id_type):
    """SQL types of a table's columns."""
    own = {name: "DOUBLE" if name == "w" else VALUES[name][0] for name in TABLES[table]}
    return own if table == "codes" else {"pid": id_type, **own}


def databases(id_type, number=3):
    """Databases of few people, the same in every run, with equal rows and rows of nobody."""
    draw = random.Random(f"hostile {id_type}")
    for _ in range(number):
        found = {"codes": [dict(zip("kwt", row, strict=True)) for row in CODES]}
        for table in ("visits", "drugs"):
            rows = []
            for pid in IDS[id_type]:
                own = [
                    {name: draw.choice(VALUES[name][1]) for name in TABLES[table]} for _ in range(draw.randint(0, ROWS))
                ]
                if len(own) > 1 and draw.random() < 0.5:
                    own[-1] = own[0]
                rows += [{"pid": draw.choice([pid, -pid]) if pid == 0 else pid, **row} for row in own]
            draw.shuffle(rows)
            found[table] = rows
        yield found


def known(value):
    """The value, None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def without(database, person):
    """The database without the rows of one person."""
    return {
        name: rows if name == "codes" else [row for row in rows if known(row["pid"]) != person]
        for name, rows in database.items()
    }


def people_of(database):
    """Everybody in a database."""
    return sorted({known(row["pid"]) for name in ("visits", "drugs") for row in database[name]} - {None})


# --- Expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """SQL and its definition: the value of a row, None where it is missing."""

    sql: str
    kind: str
    of: Callable
    is_wide: bool = False  # whether BIGINT may not hold it


def lifted(function):
    """A function that is missing where an argument is, or where it has no value."""

    def value(*arguments):
        return None if None in arguments else known(function(*arguments))

    return value


def both(one, other):
    """AND of three values."""
    return False if False in (one, other) else None if None in (one, other) else True


def negation(one):
    return None if one is None else not one


def quotient(left, right):
    """Of DOUBLEs; by zero of either sign an infinity with the sign of the left."""
    if right == 0:
        return None if left == 0 else math.copysign(INF, left)
    return left / right


def half_even(number):
    """The BIGINT nearest to a DOUBLE."""
    return round(number) if -(2.0**63) <= number < 2.0**63 else None


def whole_of_text(text):
    """The INTEGER that a text says, halves away from zero."""
    if not re.fullmatch(" *[+-]?[0-9]+([.][0-9]*)? *", text):
        return None
    number = Fraction(text.strip())
    found = math.floor(abs(number) + Fraction(1, 2)) * (1 if number >= 0 else -1)
    return found if -(2**31) <= found < 2**31 else None


COMPARED = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
SUMS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b}
CONSTANTS = {
    "int": [(str(each), each) for each in (0, 1, 2, 40, LARGE + 1)],
    "float": [(f"CAST({each} AS DOUBLE PRECISION)", each) for each in (0.0, 0.5, 2.5, 40.0)],
    "text": [(f"'{each}'", each) for each in ("", "a", "A", "ä", "12", "b")],
    "day": [("DATE '2020-02-29'", DAY(2020, 2, 29)), ("DATE '1970-01-01'", DAY(1970, 1, 1))],
    "truth": [("true", True), ("false", False)],
}


def made(sql, kind, function, *parts, is_wide=False):
    """An expression of others."""
    value = lifted(function)
    return Expression(sql, kind, lambda row: value(*(part.of(row) for part in parts)), is_wide)


class Expressions:
    """Makes expressions over columns, by numbers that are drawn: ``number(most)`` is one from 0 to ``most``.

    ``mixes`` says whether a whole number is compared with a DOUBLE, before which DuckDB rounds it.
    """

    def __init__(self, number):
        self.number, self.names, self.mixes = number, 0, False

    def few(self, most):
        """A number from 0 on."""
        return self.number(most)

    def one(self, listed):
        return listed[self.few(len(listed) - 1)]

    def shuffled(self, listed):
        left = list(listed)
        return [left.pop(self.few(len(left) - 1)) for _ in listed]

    def alias(self):
        self.names += 1
        return f"a{self.names}"

    # --- Expressions over columns, by their SQL and kind ---

    def constant(self, kind):
        sql, value = self.one(CONSTANTS[kind])
        return Expression(sql, kind, lambda _: value)

    def column(self, columns, kind):
        there = [each for each in columns if each.kind == kind]
        return self.one(there) if there else None

    def expression(self, columns, kind, depth=2):
        """One of a kind; of whole numbers perhaps one that BIGINT does not hold."""
        plain = self.column(columns, kind)
        if plain is not None and (depth == 0 or self.few(2) == 0):
            return plain
        if depth == 0:
            return self.constant(kind)
        makers = {"int": self.whole, "float": self.double, "text": self.text, "day": self.chosen, "truth": self.chosen}
        return makers[kind](columns, kind, depth - 1)

    def chosen(self, columns, kind, depth):
        """CASE or COALESCE."""
        one, other = (self.expression(columns, kind, depth) for _ in "ab")
        is_wide = one.is_wide or other.is_wide
        if self.few(1):
            when = self.condition(columns, depth)
            sql = f"CASE WHEN {when.sql} THEN {one.sql} ELSE {other.sql} END"
            return Expression(sql, kind, lambda row: (one if when.of(row) else other).of(row), is_wide)

        def first(row):
            found = one.of(row)
            return other.of(row) if found is None else found

        return Expression(f"COALESCE({one.sql}, {other.sql})", kind, first, is_wide)

    def whole(self, columns, kind, depth):
        match self.few(5):
            case 0:
                part = self.expression(columns, "float", depth)
                return made(f"CAST({part.sql} AS BIGINT)", kind, half_even, part)
            case 1:
                part = self.expression(columns, "text", depth)
                if part.sql.startswith("'"):  # a constant that is no number is refused
                    return self.constant(kind)
                return made(f"CAST({part.sql} AS INTEGER)", kind, whole_of_text, part)
            case 2:
                part = self.expression(columns, "text", depth)
                return made(f"LENGTH({part.sql})", kind, len, part)
            case 3:
                one, other = (self.expression(columns, "day", depth) for _ in "ab")
                return made(f"({one.sql} - {other.sql})", kind, lambda a, b: (a - b).days, one, other)
            case 4:
                one, other, symbol = *(self.expression(columns, kind, 0) for _ in "ab"), self.one("+-")
                return made(f"({one.sql} {symbol} {other.sql})", kind, SUMS[symbol], one, other, is_wide=True)
        return self.chosen(columns, kind, depth)

    def double(self, columns, kind, depth):
        match self.few(4):
            case 0:
                part = self.expression(columns, "int", depth)
                return made(f"CAST({part.sql} AS DOUBLE PRECISION)", kind, float, part)
            case 1:
                one, other = (self.expression(columns, kind, depth) for _ in "ab")
                return made(f"(CAST({one.sql} AS DOUBLE PRECISION) / {other.sql})", kind, quotient, one, other)
            case 2:
                one, other, symbol = *(self.expression(columns, kind, depth) for _ in "ab"), self.one("+-")
                return made(f"({one.sql} {symbol} {other.sql})", kind, SUMS[symbol], one, other)
            case 3:
                one, other = (self.expression(columns, kind, depth) for _ in "ab")
                return made(f"({one.sql} * {other.sql})", kind, lambda a, b: a * b, one, other)
        return self.chosen(columns, kind, depth)

    def text(self, columns, kind, depth):
        part = self.expression(columns, kind, depth)
        match self.few(3):
            case 0:
                return made(f"UPPER({part.sql})", kind, str.upper, part)
            case 1:
                return made(f"LEFT({part.sql}, 1)", kind, lambda text: text[:1], part)
            case 2:
                other = self.expression(columns, kind, depth)
                return made(f"({part.sql} || {other.sql})", kind, lambda a, b: a + b, part, other)
        return self.chosen(columns, kind, depth)

    def condition(self, columns, depth=2):
        kinds = sorted({each.kind for each in columns} - {"truth"}) or ["text"]
        match self.few(6) if depth else 4:
            case 0:
                one, other = (self.condition(columns, depth - 1) for _ in "ab")
                return Expression(f"({one.sql} AND {other.sql})", "truth", lambda row: both(one.of(row), other.of(row)))
            case 1:
                one, other = (self.condition(columns, depth - 1) for _ in "ab")
                return Expression(
                    f"({one.sql} OR {other.sql})", "truth",
                    lambda row: negation(both(negation(one.of(row)), negation(other.of(row)))),
                )  # fmt: skip
            case 2:
                part = self.condition(columns, depth - 1)
                return Expression(f"(NOT {part.sql})", "truth", lambda row: negation(part.of(row)))
            case 3:
                part, word = self.expression(columns, self.one(kinds), depth - 1), self.one(["", "NOT "])
                return Expression(
                    f"({part.sql} IS {word}NULL)", "truth", lambda row: (part.of(row) is None) != bool(word)
                )
            case 5:
                kind, word = self.one(kinds), self.one(["", "NOT "])
                part, listed = self.expression(columns, kind, depth - 1), [self.constant(kind) for _ in range(2)]
                values = [each.of({}) for each in listed]
                return made(
                    f"({part.sql} {word}IN ({', '.join(each.sql for each in listed)}))", "truth",
                    lambda value: (value in values) != bool(word), part,
                )  # fmt: skip
            case 6 if (column := self.column(columns, "truth")) is not None:
                return column
        kind, symbol = self.one(kinds), self.one(list(COMPARED))
        others = [kind, "float"] if kind == "int" else [kind]
        one, other = self.expression(columns, kind, depth and 1), self.expression(columns, self.one(others), 0)
        self.mixes |= one.kind != other.kind
        return made(f"({one.sql} {symbol} {other.sql})", "truth", COMPARED[symbol], one, other)
