"""BigQuery, Snowflake and Trino: their dialects and types, as text only, which nobody has run there.

What follows is taken from their documents: a grammar has parsed the statements, and DuckDB has run what becomes of them
there, but no integer of these engines was ever compared with another engine's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.errors import ParameterError

DAY: Final = 86_400 * 10**6  # in microseconds
FIRST, LAST = -719_162, 2_932_896  # days of the years 1 to 9999, since 1970
MOST_ROWS: Final = 16_384  # of VALUES in Snowflake
STRING: Final = pd.StringDtype("python")
US: Final = np.dtype("datetime64[us]")
SAFE: Final = {"+": "SAFE_ADD", "-": "SAFE_SUBTRACT", "*": "SAFE_MULTIPLY"}
ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Warehouse(Dialect):
    """Dialect that warehouses share: casts round halves away from zero, sums of BIGINTs may overflow, and so on."""

    materialized = ""
    writes_all_digits = False  # as far as their documents say
    engine = ""  # for people
    most = 1_000_000  # characters of a statement
    wide_type = "DECIMAL(38, 0)"
    days = "DATE_DIFF('day', CAST('1970-01-01' AS DATE), {})"  # since 1970
    hashed = "MD5({})"  # of a text, as a text
    words: Mapping[str, str] = {}  # functions in the place of others, and of operators
    # By the names of types in capitals: a dtype of pandas, or "decimal", "text", "date", "datetime", "timestamp".
    types: Mapping[str, str] = {}

    def call(self, name: str, *arguments: str) -> str:  # noqa: D102
        return super().call(self.words.get(name, name), *arguments)

    def infix(self, left: str, operator: str, right: str) -> str:  # noqa: D102
        return self.call(operator, left, right) if operator in self.words else super().infix(left, operator, right)

    def counted(self, condition: str) -> str:  # noqa: D102
        return self.call("COUNT_IF", condition)

    def smallest(self, value: str) -> str:
        """Smallest of the values that are numbers: NaN may be the least."""
        return super().smallest(f"CASE WHEN {value} <= {self.infinity} THEN {value} END")

    def keyed_hash(self, secret: str, texts: Sequence[str]) -> str:  # noqa: D102
        pieces = (self.call("COALESCE", self.call("CONCAT", "'|'", text), "''") for text in texts)
        return self.hashed.format(self.call("CONCAT", f"'{secret}'", *pieces))

    def wide(self, value: str) -> str:  # noqa: D102
        return f"CAST({value} AS {self.wide_type})"

    def quotient(self, value: str, divisor: str) -> str:
        """Quotient of the value without the remainder: a decimal quotient would be rounded."""
        return self.wide(f"({self.infix(value, '-', self.remainder(value, divisor))} / {divisor})")

    def whole_sum(self, value: str) -> str:  # noqa: D102
        return self.call("SUM", self.wide(value))

    def nearest_whole(self, value: str) -> str:
        """BIGINT nearest to a DOUBLE by FLOOR, which is exact."""
        floor, half = self.call("FLOOR", value), self.number(0.5)
        below, rest = f"CAST({floor} AS BIGINT)", self.infix(value, "-", floor)
        is_up = f"{rest} > {half} OR ({rest} = {half} AND {self.remainder(below, '2')} <> 0)"
        return f"({below} + CASE WHEN {is_up} THEN 1 ELSE 0 END)"

    def stored_column(self, label: str, written: str) -> StoredColumn:
        """Column by its label and type; columns of types other than `types` cannot be asked for."""
        name = self.name(label)
        dtype, value, exact = self._read(name, self.kind(written.upper()))
        return StoredColumn(name, value, dtype, written, exact)

    def kind(self, written: str) -> str:
        """How a type in capitals is read."""
        plain = re.fullmatch(r"([A-Z0-9_ ]+?)\s*(\([0-9, ]*\))?", written.strip())
        return "" if plain is None else self.types.get(plain[1], "")

    def _read(self, name: str, kind: str) -> tuple[Any, str, str | None]:
        """The dtype, the values in normal form and, where those are rounded, an expression that tells values apart."""
        match kind:
            case "decimal":
                return np.dtype("float64"), self.double(name), name
            case "text":
                return STRING, f"CAST({name} AS {self.text_type})", None
            case "date":
                days = self.days.format(name)
                return US, f"(CASE WHEN {days} BETWEEN {FIRST} AND {LAST} THEN {days} * {DAY} END)", None
            case "datetime":
                since = f"DATETIME_DIFF({name}, CAST('1970-01-01 00:00:00' AS DATETIME), MICROSECOND)"
                return US, since, None
            case "timestamp":
                return pd.DatetimeTZDtype("us", "UTC"), f"UNIX_MICROS({name})", None
            case "":
                return np.dtype(object), name, None
        return pd.api.types.pandas_dtype(kind), name, None


class BigQueryDialect(Warehouse):
    """GoogleSQL: overflow is an error, a SUM of INT64 may overflow, texts have escapes."""

    engine = "BigQuery"
    groups_by_floats = False  # PARTITION BY takes none
    double_type = "FLOAT64"
    text_type = "STRING"
    wide_type = "BIGNUMERIC"
    days = "UNIX_DATE({})"
    hashed = "TO_HEX(MD5({}))"
    words: Mapping[str, str] = {
        "COUNT_IF": "COUNTIF", "BOOL_OR": "LOGICAL_OR", "/": "IEEE_DIVIDE", "%": "MOD", "//": "DIV",
    }  # fmt: skip
    types: Mapping[str, str] = {
        **dict.fromkeys(("INT64", "INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "BYTEINT"), "Int64"),
        **dict.fromkeys(("FLOAT64", "FLOAT"), "float64"),
        **dict.fromkeys(("NUMERIC", "DECIMAL", "BIGNUMERIC", "BIGDECIMAL"), "decimal"),
        **dict.fromkeys(("BOOL", "BOOLEAN"), "boolean"),
        "STRING": "text", "DATE": "date", "DATETIME": "datetime", "TIMESTAMP": "timestamp",
    }  # fmt: skip

    def name(self, name: str) -> str:  # noqa: D102
        return f"`{_escaped(name)}`"

    def text(self, value: str) -> str:  # noqa: D102
        return f"'{_escaped(value)}'"

    def exact_text(self, value: str) -> str:  # noqa: D102
        return f"COLLATE({value}, '')"

    def quotient(self, value: str, divisor: str) -> str:  # noqa: D102
        return self.infix(value, "//", divisor)

    def arithmetic(self, left: str, operator: str, right: str) -> str:
        """Arithmetic of DOUBLEs; an overflow becomes an infinity with the sign of the result."""
        signs = self.infix(f"SIGN({left})", operator, f"SIGN({right})")
        return f"COALESCE({SAFE[operator]}({left}, {right}), {self.infix(signs, '/', self.number(0.0))})"

    def double_remainder(self, left: str, right: str) -> str | None:  # noqa: ARG002, D102
        return None

    def same(self, left: str, right: str) -> str:
        """Equality of texts, which an outer join needs: a missing key has the text ``null``, others never."""
        return " = ".join(f"COALESCE(TO_JSON_STRING({key}), 'null')" for key in (left, right))

    def all_columns(self, passes: Sequence[str], groups: Sequence[str]) -> str:
        """All columns, each name once, as answers must have it."""
        return ", ".join(["listed.*", *(f"{name}.* EXCEPT ({', '.join(groups)})" for name in passes)])

    def rows_carried(self, names: Sequence[str], types: Sequence[str], rows: Sequence[str]) -> str:  # noqa: D102
        fields = ", ".join(f"{name} {sql_type}" for name, sql_type in zip(names, types, strict=True))
        return f"UNNEST(ARRAY<STRUCT<{fields}>>[{', '.join(rows)}]) AS keys_carried"


class SnowflakeDialect(Warehouse):
    """Snowflake: each whole number is a NUMBER of 38 digits, whatever its type is called; texts have escapes."""

    engine = "Snowflake"
    any_order = " ORDER BY {}"  # a float may have more digits than its text, by which rows are chosen
    infinite = "inf"
    wide_type = "NUMBER(38, 0)"
    days = "DATEDIFF('day', CAST('1970-01-01' AS DATE), {})"
    words: Mapping[str, str] = {"BOOL_OR": "BOOLOR_AGG", ">>": "BITSHIFTRIGHT", "&": "BITAND"}
    types: Mapping[str, str] = {
        **dict.fromkeys(("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "BYTEINT"), "Int64"),
        **dict.fromkeys(("FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "DOUBLE PRECISION", "REAL"), "float64"),
        **dict.fromkeys(("NUMBER", "DECIMAL", "NUMERIC"), "decimal"),
        **dict.fromkeys(("VARCHAR", "STRING", "TEXT", "CHAR", "CHARACTER"), "text"),
        "BOOLEAN": "boolean", "DATE": "date",
    }  # fmt: skip

    def text(self, value: str) -> str:  # noqa: D102
        return super().text(value.replace("\\", "\\\\"))

    def exact_text(self, value: str) -> str:  # noqa: D102
        return f"COLLATE({value}, 'utf8')"

    def rows_carried(self, names: Sequence[str], types: Sequence[str], rows: Sequence[str]) -> str:
        """As many rows as VALUES has."""
        if len(rows) > MOST_ROWS:
            raise ParameterError(f"Snowflake takes a list of {MOST_ROWS:,} keys at most: list fewer.")
        return super().rows_carried(names, types, rows)

    def listed(self, value: str, by: str) -> str:  # noqa: D102
        return f"ARRAY_AGG({value}) WITHIN GROUP (ORDER BY {by})"

    def double_remainder(self, left: str, right: str) -> str | None:  # noqa: ARG002, D102
        return None

    def kind(self, written: str) -> str:
        """A NUMBER of few digits, none behind the point, is a whole number of 64 bits."""
        few = re.fullmatch(r"(NUMBER|DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(,\s*0\s*)?\)", written.strip())
        return "Int64" if few is not None and int(few[2]) <= 18 else super().kind(written)


class TrinoDialect(Warehouse):
    """Trino: arithmetic of DOUBLEs is Java's, so IEEE 754's; a SUM of BIGINTs may overflow."""

    engine = "Trino"
    infinite = "Infinity"
    hashed = "TO_HEX(MD5(TO_UTF8({})))"
    words: Mapping[str, str] = {">>": "BITWISE_RIGHT_SHIFT", "&": "BITWISE_AND"}
    types: Mapping[str, str] = {
        "TINYINT": "Int8", "SMALLINT": "Int16", "INTEGER": "Int32", "INT": "Int32", "BIGINT": "Int64",
        "REAL": "float32", "DOUBLE": "float64", "DECIMAL": "decimal", "BOOLEAN": "boolean", "VARCHAR": "text",
        "DATE": "date",
    }  # fmt: skip


def _escaped(text: str) -> str:
    """A text with the escapes of BigQuery."""
    return "".join(
        ESCAPES.get(sign) or (sign if sign.isprintable() or ord(sign) > 127 else f"\\u{ord(sign):04x}") for sign in text
    )
