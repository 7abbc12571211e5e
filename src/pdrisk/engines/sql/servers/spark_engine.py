"""Spark: its SQL dialect, and readings of a DataFrame, classic or of Spark Connect, that leave nothing behind."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.dialects.dialect import TEXT, WHOLE, Dialect
from pdrisk.engines.sql.dialects.letters import letters_cased
from pdrisk.engines.sql.servers.spark_files import finds_the_same
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.caching import is_drawn_at_once, is_read_once, of_records
from pdrisk.engines.sql.summary.reading import Columns, Fetch, statements
from pdrisk.engines.sql.summary.statements import records_read
from pdrisk.engines.sql.summary.summary_plan import SummaryPlan
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

HALF_BITS: Final = 26  # of the lower half of a whole number that is summed: 2**37 of them are below 2**63
MICROSECONDS: Final = 86_400_000_000  # of a day
FIRST: Final = "CAST('-62135596800000000' AS BIGINT)"  # the year 1, in microseconds since 1970
END: Final = "CAST('253402300800000000' AS BIGINT)"  # the year 10000
US: Final = np.dtype("datetime64[us]")
INTEGERS: Final = {"tinyint": "Int8", "smallint": "Int16", "int": "Int32", "bigint": "Int64"}


class SparkDialect(Dialect):
    """Spark SQL.

    Words mean the same whatever ``spark.sql.ansi.enabled`` is: nothing overflows, no cast fails, nothing is divided by
    zero; and whatever ``spark.sql.parser.escapedStringLiterals`` is. Functions are called by their full names, for a
    user's own could stand in for them.
    """

    engine = "Spark"
    letters, octets = "CHAR_LENGTH", "OCTET_LENGTH"
    text_type = "STRING"
    materialized = ""  # Spark puts a CTE wherever it is read
    any_order = " ORDER BY NULL"
    stepwise = True  # in one statement it would plan the first pass once for each use
    orders = False  # it would sort by another job

    def call(self, name: str, *arguments: str) -> str:  # noqa: D102
        return f"system.builtin.{name.lower()}({', '.join(arguments)})"

    def listed(self, value: str, by: str) -> str:  # noqa: D102
        pair = self.call("NAMED_STRUCT", "'place'", by, "'own'", value)
        return self.call("TRANSFORM", self.call("ARRAY_SORT", self.call("ARRAY_AGG", pair)), "pair -> pair.own")

    def infix(self, left: str, operator: str, right: str) -> str:  # noqa: D102
        return self.call("SHIFTRIGHT", left, right) if operator == ">>" else super().infix(left, operator, right)

    def same(self, left: str, right: str) -> str:  # noqa: D102
        return f"{left} <=> {right}"

    def name(self, name: str) -> str:  # noqa: D102
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:  # noqa: D102
        return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex()}' AS STRING)"

    def exact_text(self, value: str) -> str:  # noqa: D102
        return f"(CAST({value} AS STRING) COLLATE UTF8_BINARY)"

    def nearest_whole(self, value: str) -> str:  # noqa: D102
        return f"CAST({self.call('RINT', value)} AS BIGINT)"

    def let(self, value: str, body: Callable[[str], str]) -> str:
        """A lambda function of an array of one: an expression of many copies takes Spark minutes to compile."""
        name = f"v{hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()[:12]}"
        return f"{self.call('TRANSFORM', self.call('ARRAY', value), f'{name} -> {body(name)}')}[0]"

    def truncated(self, value: str) -> str:  # noqa: D102
        sides = (self.rounded(direction, value) for direction in ("CEIL", "FLOOR"))
        return "(CASE WHEN {} < {} THEN {} ELSE {} END)".format(value, self.number(0.0), *sides)

    def matches(self, value: str, pattern: str) -> str:  # noqa: D102
        return self.call("RLIKE", value, self.text(rf"^(?:{pattern})\z"))

    def cased(self, how: str, value: str) -> str:
        """Each letter by itself: Spark's own functions make two of some, and look at those around others."""
        return self.call("TRANSLATE", value, *map(self.text, letters_cased(how)))

    def trimmed(self, how: str, value: str, signs: str) -> str:  # noqa: D102
        side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[how]
        return f"TRIM({side} {signs} FROM {value})"

    def found_at(self, value: str, part: str) -> str:  # noqa: D102
        return self.call("INSTR", value, part)

    def add_months(self, day: str, months: int) -> str:  # noqa: D102
        return self.call("ADD_MONTHS", day, f"{months}")

    def rounded(self, direction: str, value: str) -> str:
        """FLOOR or CEIL by RINT: Spark's own give a BIGINT, which fails for large values."""
        nearest = self.call("RINT", value)
        beyond, back = (">", "-") if direction == "FLOOR" else ("<", "+")
        return f"(CASE WHEN {nearest} {beyond} {value} THEN {nearest} {back} {self.number(1.0)} ELSE {nearest} END)"

    def wide(self, value: str) -> str:  # noqa: D102
        return f"CAST({value} AS DECIMAL(38, 0))"

    def whole_double(self, value: str) -> str:
        """Whole DOUBLE by two halves: a cast to DECIMAL keeps 17 digits."""
        half = 2**53
        high = self.call("FLOOR", self.infix(value, "/", self.number(float(half))))
        low = self.infix(value, "-", self.infix(high, "*", self.number(float(half))))
        return f"({self.wide(high)} * {self.wide(f'{half}')} + {self.wide(f'CAST({low} AS BIGINT)')})"

    def quotient(self, value: str, divisor: str) -> str:
        """Quotient of the value without the remainder: DIV gives a BIGINT."""
        return self.wide(f"(({value} - {self.remainder(value, divisor)}) / {divisor})")

    def double_remainder(self, left: str, right: str) -> str | None:  # noqa: D102
        return f"({left} % {right})"

    def whole_sum(self, value: str) -> str:
        """Sum by halves: BIGINTs could overflow, DECIMALs are slow."""
        high = self.call("SUM", self.call("SHIFTRIGHT", value, f"{HALF_BITS}"))
        low = self.call("SUM", f"({value} & CAST({2**HALF_BITS - 1} AS BIGINT))")
        high, low = (f"CAST({half} AS DECIMAL(20, 0))" for half in (high, low))
        return f"({high} * CAST({2**HALF_BITS} AS DECIMAL(8, 0)) + {low})"

    def day(self, days: str) -> str:  # noqa: D102
        return self.call("DATE_FROM_UNIX_DATE", f"CAST({days} AS INT)")

    def days_since(self, day: str) -> str:  # noqa: D102
        return f"CAST({self.call('UNIX_DATE', day)} AS BIGINT)"

    def first_day(self, unit: str, day: str) -> str:  # noqa: D102
        return self.call("TRUNC", day, self.text(unit))

    def quantile(self, value: str, q: float) -> str:  # noqa: D102
        return self.call("PERCENTILE", value, f"{q!r}D")

    def spread(self, name: str, value: str) -> str:
        """The sum of squares of the distances from the mean, one value after the other."""
        values, zero = self.call("ARRAY_SORT", self.call("ARRAY_AGG", value)), self.number(0.0)
        n = self.double(self.call("SIZE", values))
        total = self.call("AGGREGATE", values, zero, "(sum, each) -> sum + each")
        distances = self.call("TRANSFORM", values, f"each -> each - ({total} / {n})")
        squares = self.call("AGGREGATE", distances, zero, "(sum, each) -> sum + each * each")
        least, off = (1, 1) if name.endswith("samp") else (0, 0)
        spread = f"{squares} / ({n} - {self.number(float(off))})"
        spread = self.call("SQRT", spread) if name.startswith("stddev") else spread
        return f"(CASE WHEN {self.call('SIZE', values)} > {least} THEN {spread} END)"

    def keys(self, carriers: Sequence[str], lists: Sequence[list[Any]]) -> tuple[str, list[list[Any]]]:
        """One parameter for all, so that a million keys are no million expressions; no setting reads escapes in it.

        Columns are carried one after the other: to read an object for each key would take more than to join them.
        """
        names = [f"g{at}" for at in range(len(carriers))]
        is_whole = [carrier == WHOLE for carrier in carriers]
        fields = ", ".join(
            f"{name} ARRAY<{WHOLE if whole else 'STRING'}>" for name, whole in zip(names, is_whole, strict=True)
        )
        text = f"CAST({self.call('UNBASE64', ':listed_keys')} AS STRING)"
        parsed = self.call("FROM_JSON", text, f"'STRUCT<{fields}>'")
        columns = ", ".join(f"parsed.{name} AS {name}" for name in names)
        listed = f"(SELECT {columns} FROM (SELECT {parsed} AS parsed) AS keys_parsed) AS keys_by_column"
        zipped = self.call("ARRAYS_ZIP", *names)
        carried = f"(SELECT {self.call('POSEXPLODE', zipped)} AS (code, listed_key) FROM {listed}) AS keys_carried"
        expressions = [
            self.exact_text(f"listed_key.{name}") if carrier == TEXT else f"CAST(listed_key.{name} AS {carrier})"
            for name, carrier in zip(names, carriers, strict=True)
        ]
        chosen = ", ".join(f"{sql} AS {name}" for sql, name in zip(expressions, names, strict=True))
        texts = [
            values if whole else [None if value is None else str(value) for value in values]
            for values, whole in zip(lists, is_whole, strict=True)
        ]
        packed = b64encode(json.dumps(dict(zip(names, texts, strict=True))).encode()).decode()
        return f"(SELECT {chosen}, code FROM {carried}) AS keys_listed", [[packed]]


def is_spark(value: object) -> bool:
    """Whether a value is a DataFrame of Spark, classic or of Connect."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql.") for base in type(value).__mro__
    )


def is_spark_session(value: object) -> bool:
    """Whether a value is a session of Spark, classic or of Connect."""
    return any(
        base.__name__ == "SparkSession" and base.__module__.startswith("pyspark.sql.") for base in type(value).__mro__
    )


def table_of_session(session: SparkSession, path: tuple[str, ...]) -> SparkFrame:
    """A table or view that a session knows."""
    name = ".".join(map(SparkDialect().name, path))
    if not session.catalog.tableExists(name):
        raise ParameterError(f"Spark knows no table {'.'.join(path)!r}: create it there, or a view of that name.")
    return SparkFrame(session.table(name))


@dataclass(frozen=True)
class SparkFrame:
    """A DataFrame of Spark, classic or of Connect."""

    frame: DataFrame

    def table(self) -> SparkTable:
        """The table as its schema describes it, without data."""
        fields = self.frame.schema.fields
        labels = [column.name for column in fields]
        if any(labels.count(label) > 1 for label in labels):
            raise ColumnTypeError(
                "the DataFrame of Spark has several columns of one name, and nobody can say which is meant: rename "
                "them by toDF(...)."
            )
        columns = stored_columns_of_spark({column.name: column.dataType.simpleString() for column in fields})
        view = f"pdrisk_{secrets.token_hex(16)}"
        return SparkTable(
            view,
            columns,
            SparkDialect(),
            partial(fetched, self.frame.sparkSession),
            views={view: self.frame.toDF(*(f"c{at}" for at in range(len(fields))))},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable(SQLTable):
    """Reader of DataFrames of Spark, by views that exist while it reads."""

    # by the names of the views, with the columns c0, c1,
    views: Mapping[str, DataFrame] = field(repr=False, default_factory=dict)

    def made(self, source: str, columns: Mapping[str, StoredColumn], other: SQLTable | None = None) -> SQLTable:
        """Table of a SELECT from it, and from another table of the same session."""
        views = {**self.views, **(other.views if isinstance(other, SparkTable) else {})}
        return replace(self, source=source, columns=columns, views=views)

    @contextmanager
    def reading(self, plan: SummaryPlan, keys: list[list[Any]] | None) -> Iterator[tuple[Fetch, SummaryPlan]]:
        """Fetch for one answer, and the plan for it.

        Records that are looked at more than once are kept at the executors meanwhile, in memory and on their disks: all
        looks find the same ones, and a slow source is read once. They are not where the first look finds all that noise
        is added to and `finds_the_same` holds: if a file changes between two looks, it is facts for curators alone that
        may be of both states.
        """
        from pyspark import StorageLevel

        first, frame = next(iter(self.views.items()))
        session, views, kept = frame.sparkSession, list[str](), None
        try:
            for name, viewed_frame in self.views.items():
                viewed_frame.createOrReplaceTempView(name)
                views.append(name)
            records, plan = self._steps(plan, f"{first}_kept")
            if records is not None:
                views.append(f"{first}_kept")
                kept = _asked(session, records, keys or [])
                kept.persist(StorageLevel.MEMORY_AND_DISK)
                kept.createOrReplaceTempView(views[-1])
            yield self.fetch, plan
        finally:
            try:
                if kept is not None:
                    kept.unpersist()  # of Connect while there is what it is made of: it looks the views up again
            finally:
                for view in views:
                    session.catalog.dropTempView(view)

    def statements(self, plan: SummaryPlan) -> list[str]:
        """The records that are kept, where they are, as the view of the same name with ``_kept``; and all that read."""
        records, plan = self._steps(plan, self.dialect.name(self.source.strip("`") + "_kept"))
        return [*([] if records is None else [records]), *statements(plan, self.dialect)]

    def _steps(self, plan: SummaryPlan, kept: str) -> tuple[str | None, SummaryPlan]:
        """The SELECT of the records that are kept in a view, or none, and the plan of what is read then."""
        if is_read_once(plan) or (plan.keys is None and plan.groups) or self._can_look_again(plan):
            return None, plan
        return records_read(plan, self.dialect), of_records(plan, kept)

    def _can_look_again(self, plan: SummaryPlan) -> bool:
        """Whether a second look needs no kept records: it finds the same, and no noise is added to what it finds."""
        frame = self.views.get(plan.source)
        return frame is not None and is_drawn_at_once(plan) and finds_the_same(frame)


def fetched(session: SparkSession, sql: str, values: list[list[Any]]) -> Columns:
    """The columns of an answer.

    ``values``: of one text, that of the listed keys, as `SparkDialect.keys` gives it; or none.
    """
    answer = _asked(session, sql, values)
    names = answer.columns
    table = answer.toDF(*(f"c{at}" for at in range(len(names)))).toArrow()  # a name may be there twice
    if "code" in names:
        table = table.take(np.argsort(table.column(names.index("code")).to_numpy()))
    return {name: _column(table.column(at)) for at, name in reversed(list(enumerate(names)))}


def _asked(session: SparkSession, sql: str, values: list[list[Any]]) -> DataFrame:
    return session.sql(sql, {"listed_keys": values[0][0]}) if ":listed_keys" in sql else session.sql(sql)


def _column(values: pa.ChunkedArray) -> np.ma.MaskedArray[Any, Any]:
    import pyarrow as pa

    missing = values.is_null().to_numpy(zero_copy_only=False)
    if values.null_count and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        values = values.fill_null(0)
    return np.ma.MaskedArray(values.to_numpy(), missing)


def stored_columns_of_spark(types: Mapping[str, str]) -> dict[str, StoredColumn]:
    """Columns as they are read in a view, where they are called c0, c1, ...: their dtypes and values in normal form."""
    columns = {}
    for at, (label, kind) in enumerate(types.items()):
        dtype, value, exact = _read(f"c{at}", kind)
        columns[label] = StoredColumn(f"c{at}", value, dtype, kind, exact)
    return columns


def _read(name: str, kind: str) -> tuple[Any, str, str | None]:
    if kind in INTEGERS:
        return pd.api.types.pandas_dtype(INTEGERS[kind]), name, None
    if kind in ("float", "double"):
        return np.dtype("float32" if kind == "float" else "float64"), name, None
    if kind.startswith("decimal("):
        return np.dtype("float64"), f"CAST({name} AS DOUBLE)", name
    if kind == "boolean":
        return pd.BooleanDtype(), name, None
    if kind.split("(")[0].split()[0] in ("string", "varchar", "char"):
        return pd.StringDtype("python"), f"CAST({name} AS STRING)", None
    if kind == "date":
        days = f"CAST(system.builtin.unix_date({name}) AS BIGINT) * CAST({MICROSECONDS} AS BIGINT)"
        return US, _of_this_age(name, "DATE'0001-01-01'", "DATE'+10000-01-01'", days), None
    if kind == "timestamp":
        microseconds = f"system.builtin.unix_micros({name})"
        return pd.DatetimeTZDtype("us", "UTC"), _of_this_age(microseconds, FIRST, END, microseconds), None
    if kind == "timestamp_ntz":
        first, end = "TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'+10000-01-01 00:00:00'"
        since = f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {name})"
        return US, _of_this_age(name, first, end, since), None
    return np.dtype(object), name, None


def _of_this_age(value: str, first: str, end: str, count: str) -> str:
    """Times in the years 1 to 9999, as Python's are; those farther away are missing."""
    return f"(CASE WHEN {value} >= {first} AND {value} < {end} THEN {count} END)"
