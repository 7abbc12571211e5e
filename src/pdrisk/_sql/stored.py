"""What columns mean that are bare whole numbers to DuckDB: durations, periods and truth values in Parquet and Arrow.

Parquet has no types for them. pandas, Polars and R write numbers, and into the file's metadata what they mean: Arrow's
schema, a FlatBuffer in base64. It is read here without pyarrow, so that answers do not depend on what is installed.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pdrisk._sql.allowed import PERIOD, UNCLEAR
from pdrisk._sql.headings import unique
from pdrisk._sql.pieces import INTEGERS, lowered, quoted, written_constant

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "arrow_fields",
    "as_meant",
    "meanings_in_arrow",
    "meanings_in_files",
    "metadata",
    "whole_in_arrow",
    "whole_in_files",
]

UNITS = ("s", "ms", "us", "ns")  # in the order of Arrow's TimeUnit
_DURATION = 18  # among Arrow's types
_MEANT = {  # what DuckDB sees, what it is, as the name of a type, and how it is read
    "s": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(TRY(system.main."*"({}, 1000000)))'),
    "ms": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(TRY(system.main."*"({}, 1000)))'),
    "us": ("BIGINT", "INTERVAL", "system.main.to_microseconds({})"),
    "ns": ("BIGINT", "INTERVAL", 'system.main.to_microseconds(system.main."//"({}, 1000))'),
    "arrow.bool8": ("TINYINT", "BOOLEAN", "CAST({} AS BOOLEAN)"),
    "pandas.period": ("BIGINT", PERIOD.upper(), "{}"),
    "": ("BIGINT", UNCLEAR.upper(), "{}"),
}

Fields = Sequence[tuple[str, str | None]]  # names and what they mean beyond their numbers


def as_meant(sql: str, columns: Mapping[str, str], meanings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A source and its SQL types, with its columns as what they mean."""
    types, read = dict(columns), {}
    for name, meaning in meanings.items():
        stored, meant, form = _MEANT[meaning]
        if types[name] == stored:
            types[name] = meant
            if form != "{}":
                read[name] = f"{form.format(quoted(name))} AS {quoted(name)}"
    return f"(SELECT * REPLACE ({', '.join(read.values())}) FROM {sql}) AS as_meant" if read else sql, types


def metadata(connection: DuckDBPyConnection, path: str) -> dict[str, dict[str, bytes]]:
    """What pandas and Arrow wrote into Parquet files, for each that has such metadata."""
    source = f"system.main.parquet_kv_metadata({written_constant(path)})"
    keys = "'PANDAS_ATTRS', 'ARROW:schema', 'pandas'"
    sql = f"SELECT file_name, CAST(key AS VARCHAR), value FROM {source} WHERE key IN ({keys})"
    found: dict[str, dict[str, bytes]] = {}
    for name, key, value in _rows(connection, sql):
        found.setdefault(name, {})[key] = value
    return found


def meanings_in_files(
    connection: DuckDBPyConnection, path: str, said: Mapping[str, Mapping[str, bytes]], columns: Mapping[str, str]
) -> dict[str, str]:
    """The meanings of columns that any file gives one; "" where the files do not agree."""
    files = [_by_name(_fields(words)) for words in said.values()]
    names = [name for name in columns if any(lowered(name) in meanings for meanings in files)]
    if not names:
        return {}
    every = _rows(connection, f"SELECT file_name FROM system.main.parquet_file_metadata({written_constant(path)})")
    files += [{}] * (len(every) - len(files))
    found = {name: {meanings.get(lowered(name)) for meanings in files} for name in names}
    return {name: (meanings.pop() or "") if len(meanings) == 1 else "" for name, meanings in found.items()}


def meanings_in_arrow(frame: Any, columns: Mapping[str, str]) -> dict[str, str]:
    """The meanings of the columns of an Arrow table; none for other frames."""
    if not type(frame).__module__.startswith("pyarrow"):
        return {}
    meanings = _by_name(arrow_fields(frame.schema.serialize().to_pybytes()))
    return {name: meanings[lowered(name)] for name in columns if lowered(name) in meanings}


def whole_in_files(said: Mapping[str, Mapping[str, bytes]], columns: Mapping[str, str]) -> frozenset[str]:
    """The columns that pandas wrote as whole numbers of a kind that one missing value makes floats."""
    return frozenset().union(*(_whole(words.get("pandas"), columns) for words in said.values()))


def whole_in_arrow(frame: Any, columns: Mapping[str, str]) -> frozenset[str]:
    """Those of an Arrow table that was made of a pandas frame."""
    if not type(frame).__module__.startswith("pyarrow"):
        return frozenset()
    return _whole((frame.schema.metadata or {}).get(b"pandas"), columns)


def _whole(words: bytes | None, columns: Mapping[str, str]) -> frozenset[str]:
    try:
        said = json.loads(words or b"{}").get("columns", ())
        kinds = {lowered(str(one["name"])): str(one["numpy_type"]) for one in said}
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


def _by_name(fields: Fields) -> dict[str, str]:
    """By DuckDB's names in lower case: those that differ in case only get numbers."""
    names = unique([name for name, _ in fields])
    return {lowered(name): meaning for name, (_, meaning) in zip(names, fields, strict=True) if meaning in _MEANT}


def _fields(words: Mapping[str, bytes]) -> Fields:
    try:
        return arrow_fields(base64.b64decode(words["ARROW:schema"]))
    except (LookupError, ValueError, struct.error):  # there is none, or it is broken
        return []


def arrow_fields(message: bytes) -> Fields:
    """The columns of an Arrow schema, from the message that Arrow writes it as.

    Notes
    -----
    Arrow's Message.fbs and Schema.fbs: a message's field 2 is its header, a schema's field 1 its columns. A column's
    field 0 is its name, 2 the number of its type, 3 the type, 6 its metadata; a duration's field 0 is its unit.
    """
    visits = len(message) // 4  # at most, of a message whose parts are written once
    start = 8 if message.startswith(b"\xff\xff\xff\xff") else 4
    schema = _below(message, _below(message, start), 2)
    fields: list[tuple[str, str | None]] = []
    for field in _listed(message, schema, 1, visits):
        pairs = [*_listed(message, field, 6, visits)]
        visits -= 1 + len(pairs)
        metadata = {_text(message, pair, 0): _text(message, pair, 1) for pair in pairs}
        meaning = metadata.get("ARROW:extension:name")
        if _number("B", message, _place(message, field, 2)) == _DURATION:
            unit = _place(message, _below(message, field, 3), 0)
            meaning = UNITS[_number("h", message, unit) if unit else 1]
        fields.append((_text(message, field, 0), meaning))
    return fields


def _number(form: str, data: bytes, at: int) -> int:
    return int(struct.unpack_from(f"<{form}", data, at)[0])


def _place(data: bytes, table: int, slot: int) -> int:
    """Where a field of a FlatBuffer's table stands; 0 if it is left out."""
    slots = table - _number("i", data, table)
    at = 4 + 2 * slot
    offset = _number("H", data, slots + at) if at < _number("H", data, slots) else 0
    return table + offset if offset else 0


def _below(data: bytes, table: int, slot: int | None = None) -> int:
    """Where the thing stands that a field points to."""
    at = table if slot is None else _place(data, table, slot)
    return at + _number("I", data, at)


def _listed(data: bytes, table: int, slot: int, most: int) -> Iterator[int]:
    if not _place(data, table, slot):
        return
    start = _below(data, table, slot)
    number = _number("I", data, start)
    if number > most:
        raise ValueError
    for at in range(number):
        yield _below(data, start + 4 + 4 * at)


def _text(data: bytes, table: int, slot: int) -> str:
    start = _below(data, table, slot)
    return data[start + 4 : start + 4 + _number("I", data, start)].decode(errors="replace")
