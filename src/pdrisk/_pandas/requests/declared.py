"""Bounds, group keys and missing codes declared once for a frame, kept in its ``attrs`` as one JSON text.

``attrs`` travel with copies, queries, pickles and Parquet files. A text, because pandas copies ``attrs`` deeply with
every step of a chain.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.universe import Days
from pdrisk._model.arguments import universe
from pdrisk._model.declared.attributes import ATTRIBUTE
from pdrisk._model.declared.declarations import BadTextError, Declaration, Declarations, from_text
from pdrisk._model.declared.known_column import Known, written_ends
from pdrisk._model.declared.missing_codes import check_codes
from pdrisk._model.declared.pandera_schema import entries_of, people_of_schema, weights_of_schema
from pdrisk._model.expressions.columns import check_column, column_kind
from pdrisk._model.expressions.kinds import DATE, TIME
from pdrisk._model.groups.frame_keys import checked_keys
from pdrisk._model.plain import plain_value
from pdrisk._model.unit import People
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = [
    "ATTRIBUTE",
    "attach",
    "check_no_na_of_r",
    "codes_of",
    "days",
    "declarations",
    "declarations_of",
    "declare",
    "declared",
    "declared_table",
    "knowing",
    "text_of",
]

NA_OF_R: Final = -(2**31)  # as reticulate hands over what is missing in whole numbers
OF_R: Final = {np.dtype(np.int32): "Int32", np.dtype(np.int64): "Int64"}  # what it may be in, and who can hold NA

BY_HAND = "declare"
NOTHING = Declarations()


def declare(
    frame: pd.DataFrame,
    schema: object = None,
    *,
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
    missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
    people: People | None = None,
) -> pd.DataFrame:
    """Copy of the frame with these declarations beside the earlier ones."""
    before = declarations_of(frame)
    known = declarations(frame, before, schema, bounds=bounds, keys=keys, missing=missing, people=people)
    return knowing(frame.assign(), known)  # a lazy copy where pandas has them


def knowing(copied: pd.DataFrame, known: Declarations) -> pd.DataFrame:
    """This copy of a frame, with these declarations instead of others."""
    copied.attrs[ATTRIBUTE] = _text(known)
    return copied


def declarations(
    frame: pd.DataFrame,
    before: Declarations,
    schema: object = None,
    *,
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
    missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
    people: People | None = None,
) -> Declarations:
    """Earlier declarations of a frame's columns with these, judged by names and dtypes."""
    if schema is None and bounds is None and keys is None and missing is None and people is None:
        raise ParameterError(
            'declare needs a pandera schema, or bounds={"column": (lo, hi)}, keys={"column": [...]}, '
            'missing={"column": [...]} or person="column".'
        )
    by_label = {entry.column: entry for entry in before.own}
    columns: list[Hashable] = []
    for part, given in (("bounds", bounds), ("keys", keys), ("missing", missing)):
        for column, value in _items(part, given):
            check_column(frame, column)
            label = plain_value(column, "a column's label")
            columns.append(column)
            by_label[label] = replace(
                by_label.get(label, Declaration(label, BY_HAND)), **_judged(frame, column, part, value)
            )
    known = Declarations(
        tuple(by_label.values()), before.schema, before.people if people is None else people, before.weights
    )
    if schema is not None:
        entries = entries_of(schema)
        named = [column for column in frame.columns.unique() if Declarations(schema=entries).names(column)]
        of_schema = people_of_schema(schema)
        if not named and of_schema is None and len(frame.columns):
            raise ParameterError(
                f"the schema names none of the frame's columns: it has {_some(entry.column for entry in entries)}, "
                f"the frame has {_some(frame.columns)}."
            )
        known, columns = (
            known.and_schema(
                entries, of_schema if people is None else people, weights_of_schema(schema), _objects(frame)
            ),
            columns + named,
        )
    if known.weights is not None:
        check_column(frame, known.weights)
    if known.people is not None:
        for column in (*known.people.columns, *known.people.constant):
            check_column(frame, column)
    for column in dict.fromkeys(columns):
        one = known.of(column)
        one.narrowed(one.universe)
        if one.missing:
            check_column(frame, column)
            check_codes(frame[column], one.missing)
    return known


def declared(data: pd.DataFrame | pd.Series, column: Hashable) -> Known:
    """Merged declarations of a column."""
    known = declarations_of(data)
    return known.of(column) if known.own or known.schema else Known(column)


def check_no_na_of_r(
    frame: pd.DataFrame, columns: Iterable[Hashable] | None = None, looked_up: pd.Series | None = None
) -> None:
    """Refuse integers that hold R's NA as a number; for whoever holds the frame, since it looks at the data.

    R hands over 32 bits, and what does not go by way of numpy arrives with 64.

    ``columns``: those that are asked for; all without it.
    ``looked_up``: the one column that is asked for, where it is at hand.
    """
    for column in frame.columns if columns is None else columns:
        series = frame.get(column) if looked_up is None else looked_up
        if not isinstance(series, pd.Series) or series.dtype not in OF_R:
            continue
        if NA_OF_R in (declarations_of(frame).of(column).missing or ()):
            continue
        if len(series) and series.to_numpy().min() == NA_OF_R:
            raise ParameterError(
                f"column {shown(column)} holds {NA_OF_R}, which is R's NA as a number: write "
                f"frame[{column!r}] = frame[{column!r}].astype('{OF_R[series.dtype]}').replace({NA_OF_R}, pandas.NA), "
                f"hand the data over by Arrow, or declare missing={{{column!r}: [{NA_OF_R}]}}."
            )


def codes_of(frame: pd.DataFrame, columns: Iterable[Hashable]) -> dict[Hashable, tuple[Hashable, ...]]:
    """Missing codes of those columns that have any."""
    known = declarations_of(frame)
    if not known.speak_of_codes:
        return {}
    by_column = {column: codes for column in dict.fromkeys(columns) if (codes := known.of(column).missing)}
    for column in by_column:
        check_column(frame, column)
    # The kind of a column of objects is that of its values, which are not looked at before they are paid for.
    return {
        column: codes if frame[column].dtype == object else check_codes(frame[column], codes)
        for column, codes in by_column.items()
    }


ENDS = ("lo", "hi", "valid_lo", "valid_hi")


def declared_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of all columns with declarations, and who made these."""
    all_known = declarations_of(frame)
    known = [_shown(all_known, column) for column in frame.columns.unique() if all_known.speak_of(column)]
    ends = [
        (*written_ends(one.ends or (math.nan, math.nan), dates=one.dates), *written_ends(one.valid, dates=one.dates))
        for one in known
    ]
    of_numbers = float if not any(one.dates for one in known) else object
    table = pd.DataFrame(
        {
            **{name: pd.Series([end[at] for end in ends], dtype=of_numbers) for at, name in enumerate(ENDS)},
            "keys": pd.Series([None if one.keys is None else list(one.keys) for one in known], dtype=object),
            "missing": pd.Series([list(one.missing) if one.missing else None for one in known], dtype=object),
            "source": [one.source for one in known],
        }
    )
    table.index = pd.Index([one.column for one in known], name="column", tupleize_cols=False, dtype=object)
    return table


def attach(data: pd.DataFrame | pd.Series, schema: Any) -> None:
    """Write a schema's declarations into the ``attrs`` of data that pandera validated by it."""
    before = _stored(data)
    now = _with_schema(before, schema, data)
    if now != before:
        data.attrs[ATTRIBUTE] = _text(now)


def declarations_of(data: pd.DataFrame | pd.Series) -> Declarations:
    """All that is declared for a frame or series."""
    stored = _stored(data)
    if stored.schema or "pandera" not in sys.modules:
        return stored
    schema = getattr(getattr(data, "pandera", None), "schema", None)  # validated before pdrisk was imported
    return stored if schema is None else _with_schema(stored, schema, data)


def text_of(data: pd.DataFrame | pd.Series) -> str | None:
    """All that is declared for data, as it is kept; "" without anything, None if it stands elsewhere or is damaged."""
    text = data.attrs.get(ATTRIBUTE, "")
    if type(text) is not str:
        return None
    is_of_pandera = "pandera" in sys.modules and getattr(getattr(data, "pandera", None), "schema", None) is not None
    return None if is_of_pandera else text


def _with_schema(before: Declarations, schema: object, data: pd.DataFrame | pd.Series) -> Declarations:
    """Declarations of data with those of a later schema."""
    told = people_of_schema(schema), weights_of_schema(schema)
    return before.and_schema(entries_of(schema), *told, _objects(data))


def _objects(data: pd.DataFrame | pd.Series) -> list[Hashable]:
    """Columns of Python objects."""
    frame = data.to_frame() if isinstance(data, pd.Series) else data
    return [name for name, dtype in frame.dtypes.items() if pd.api.types.is_object_dtype(dtype)]


def _text(known: Declarations) -> str:
    """The text in ``attrs``, if it can be read again."""
    try:
        text = known.text
        from_text(text)
    except (BadTextError, ValueError, RecursionError):
        pass
    else:
        return text
    raise ParameterError(
        "a label, key or code cannot be kept: it is nested too deeply, or a date or number beyond what can be written "
        "down. Use text."
    )


def _stored(data: pd.DataFrame | pd.Series) -> Declarations:
    text = data.attrs.get(ATTRIBUTE)
    if text is None:
        return NOTHING
    try:
        if type(text) is str:
            return from_text(text)
    except BadTextError:
        pass
    raise ParameterError(
        f"attrs[{ATTRIBUTE!r}] of this frame is not what declare wrote: take it out with del df.attrs[{ATTRIBUTE!r}], "
        "and declare again."
    )


FORMS = {
    "bounds": 'the range of its values, as in {"distance": (1, 675)}',
    "keys": 'the list of its public keys, as in {"region": ["north", "south"]}',
    "missing": 'the list of its codes, as in {"distance": [-1, -2]}',
}


def _items(name: str, given: object) -> Iterator[tuple[Hashable, Any]]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise ColumnTypeError(
            f"declare takes {name} as a dict from column to {FORMS[name]}, not {type(given).__name__}."
        )
    yield from given.items()


def _judged(frame: pd.DataFrame, column: Hashable, part: str, value: Any) -> dict[str, Any]:
    """What a part of a declaration says, as fields of it."""
    if part == "bounds":
        kind = column_kind(frame[column])
        interval = days(column, kind, value) if kind in (DATE, TIME) else universe(value)
        return {"bounds": (interval.lo, interval.hi), "dates": isinstance(interval, Days)}
    if part == "keys":
        return {part: tuple(plain_value(key, "a key") for (key,) in checked_keys(frame, (column,), value))}
    return {part: tuple(plain_value(code, "a missing code") for code in check_codes(frame[column], value))}


def days(column: Hashable, kind: str, bounds: object) -> Days:
    """Bounds of a column of dates or times."""
    span = universe(bounds, dates=True)
    if isinstance(span, Days):
        return span
    raise ColumnTypeError(
        f"the bounds are numbers, but column {column!r} holds {kind}: write dates, as in "
        "bounds=('2020-01-01', '2020-12-31')."
    )


def _shown(all_known: Declarations, column: Hashable) -> Known:
    """Declarations of a column as a row; where they cannot be understood, the reason instead of the source."""
    try:
        known = all_known.of(column)
        known.narrowed(known.universe)
    except ParameterError as error:
        return Known(column, bounds_from=str(error))
    return known


def _some(names: Iterable[Hashable]) -> str:
    listed = list(map(str, names))
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")
