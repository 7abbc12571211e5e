"""Stored values that DuckDB takes for others: durations, periods, truth values in Parquet and Arrow, and NaN.

Parquet has no types for them. pandas, Polars and R write numbers, and into the file's metadata what they mean: Arrow's
schema, which pyarrow reads. A file whose schema cannot be read is refused: its numbers could mean anything.

Statistics of Parquet files leave NaN out, and DuckDB decides conditions by them: of a file with 1, 2 and NaN ``x <= 5``
holds for every record, and `CASE`, `FILTER`, `MAX` and so on follow. Of Arrow's columns DuckDB 1 has Arrow decide, for
which NaN is above nothing. So one record decides what is read of others, unless DuckDB reads floats `by_record`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pdrisk._model.expressions.kinds import PERIODS_IN_SQL, UNCLEAR
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import INTEGERS, lowered, quoted
from pdrisk.engines.sql.servers.parquet_scan import CAN_HAVE_NAN, written_paths
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEANT = {  # what DuckDB sees, what it is, as the name of a type, and how it is read
    "duration[s]": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(TRY(system.main."*"({}, 1000000)))'),
    "duration[ms]": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(TRY(system.main."*"({}, 1000)))'),
    "duration[us]": ("BIGINT", "INTERVAL", "system.main.to_microseconds({})"),
    "duration[ns]": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(system.main."//"({}, 1000))'),
    "arrow.bool8": ("TINYINT", "BOOLEAN", "CAST({} AS BOOLEAN)"),
    "pandas.period": ("BIGINT", PERIODS_IN_SQL.upper(), "{}"),
    "": ("BIGINT", UNCLEAR.upper(), "{}"),
}
_STORED = frozenset(stored for stored, *_ in _MEANT.values())


def as_meant(sql: str, columns: Mapping[str, str], meanings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A source and its SQL types, with its columns in the types that they mean."""
    types, read = dict(columns), {}
    for name, meaning in meanings.items():
        stored, meant, form = _MEANT[meaning]
        if types[name] == stored:
            types[name] = meant
            if form != "{}":
                read[name] = f"{form.format(quoted(name))} AS {quoted(name)}"
    return f"(SELECT * REPLACE ({', '.join(read.values())}) FROM {sql}) AS as_meant" if read else sql, types


_NAME = r'"(?:[^"]|"")+"'
_BY_RECORD = re.compile(
    rf"\(SELECT \* REPLACE \((?:TRY\({_NAME}\) AS {_NAME}(?:, )?)+\) FROM (.*?)\) AS by_record", re.DOTALL
)


def as_remembered(sql: str) -> str:
    """A statement without `by_record` and `CAN_HAVE_NAN`: ledgers know questions by what they were before these."""
    return _BY_RECORD.sub(r"\1", sql).replace(CAN_HAVE_NAN, "")


def metadata(connection: DuckDBPyConnection, path: str | tuple[str, ...]) -> dict[str, dict[str, bytes]]:
    """Metadata that pandas and Arrow wrote into Parquet files, for each file that has any."""
    source = f"system.main.parquet_kv_metadata({written_paths(path)})"
    keys = "'PANDAS_ATTRS', 'ARROW:schema', 'pandas'"
    sql = f"SELECT file_name, CAST(key AS VARCHAR), value FROM {source} WHERE key IN ({keys})"
    file_metadata: dict[str, dict[str, bytes]] = {}
    for name, key, value in _rows(connection, sql):
        file_metadata.setdefault(name, {})[key] = value
    return file_metadata


def meanings_in_files(
    connection: DuckDBPyConnection,
    path: str | tuple[str, ...],
    file_metadata: Mapping[str, Mapping[str, bytes]],
    columns: Mapping[str, str],
) -> dict[str, str]:
    """Meanings of columns in any of the files; "" where files do not agree."""
    if _STORED.isdisjoint(columns.values()):
        return {}
    files = [_by_name(_in_schema(words["ARROW:schema"])) for words in file_metadata.values() if "ARROW:schema" in words]
    names = [name for name in columns if any(lowered(name) in meanings for meanings in files)]
    if not names:
        return {}
    every = _rows(connection, f"SELECT file_name FROM system.main.parquet_file_metadata({written_paths(path)})")
    files += [{}] * (len(every) - len(files))
    by_column = {name: {meanings.get(lowered(name)) for meanings in files} for name in names}
    return {name: (meanings.pop() or "") if len(meanings) == 1 else "" for name, meanings in by_column.items()}


def meanings_in_arrow(frame: Any, columns: Mapping[str, str]) -> dict[str, str]:
    """Meanings of an Arrow table's columns; none for other frames."""
    if not type(frame).__module__.startswith("pyarrow"):
        return {}
    meanings = _by_name(_fields(frame.schema))
    return {name: meanings[lowered(name)] for name in columns if lowered(name) in meanings}


def whole_in_files(file_metadata: Mapping[str, Mapping[str, bytes]], columns: Mapping[str, str]) -> frozenset[str]:
    """Columns of whole numbers, by pandas' metadata, that one missing value would make floats."""
    return frozenset().union(*(_whole(words.get("pandas"), columns) for words in file_metadata.values()))


def whole_in_arrow(frame: Any, columns: Mapping[str, str]) -> frozenset[str]:
    """Such columns of an Arrow table that was made of a pandas frame."""
    if not type(frame).__module__.startswith("pyarrow"):
        return frozenset()
    return _whole((frame.schema.metadata or {}).get(b"pandas"), columns)


def _whole(words: bytes | None, columns: Mapping[str, str]) -> frozenset[str]:
    try:
        entries = json.loads(words or b"{}").get("columns", ())
        kinds = {lowered(str(one["name"])): str(one["numpy_type"]) for one in entries}
    except (ValueError, AttributeError, LookupError, TypeError, RecursionError):  # it is broken
        return frozenset()
    whole = (name for name, sql_type in columns.items() if sql_type in INTEGERS)
    return frozenset(name for name in whole if re.fullmatch(r"u?int\d+", kinds.get(lowered(name), "")))


def _rows(connection: DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    import duckdb

    try:
        return connection.execute(sql).fetchall()
    except duckdb.Error:
        return []


def _by_name(fields: list[tuple[str, str | None]]) -> dict[str, str]:
    """Meanings by DuckDB's names in lower case; names that differ in case only get numbers."""
    names = unique([name for name, _ in fields])
    return {lowered(name): meaning for name, (_, meaning) in zip(names, fields, strict=True) if meaning in _MEANT}


def _in_schema(words: bytes) -> list[tuple[str, str | None]]:
    """`_fields` of an Arrow schema as a Parquet file holds it, in base64."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError:
        problem = 'needs pyarrow: pip install "pdrisk[arrow]"'
    else:
        try:
            return _fields(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(words, validate=True))))
        except Exception:  # noqa: BLE001 - of base64, of pyarrow, or of an extension type that is registered there
            problem = "fails: update pyarrow, or write the file anew without columns of unusual types"
    raise ParameterError(
        "the Arrow schema in this Parquet file tells whether its whole numbers are durations, periods or truth values, "
        f"and reading it {problem}."
    )


def _fields(schema: Any) -> list[tuple[str, str | None]]:
    """Columns of an Arrow schema: names, and their meaning beyond bare numbers."""
    from pyarrow.types import is_dictionary, is_duration

    fields: list[tuple[str, str | None]] = []
    for field in schema:
        extension = (field.metadata or {}).get(b"ARROW:extension:name")  # of a type that pyarrow does not know
        meaning = getattr(field.type, "extension_name", None) or (extension and extension.decode(errors="replace"))
        stored = getattr(field.type, "storage_type", field.type)
        held = stored.value_type if is_dictionary(stored) else stored
        fields.append((field.name, str(held) if is_duration(held) else meaning))
    return fields
