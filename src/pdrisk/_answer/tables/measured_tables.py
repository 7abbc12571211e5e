"""Measurements in tables: as columns, in the attrs, and read back from either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.arithmetic.forms import form_of
from pdrisk._answer.arithmetic.measured import (
    DRAW,
    MEASURED,
    Measurements,
    digest_of,
    packed,
    packed_ends,
    unpacked,
    unpacked_ends,
)
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ParameterError

LARGEST_EXACT: Final = 2.0**53  # below which floats hold every whole number


def measured_columns(
    measured: Sequence[Measurements | None], at: int, size: int, line: int | None = None
) -> dict[str, Any]:
    """Columns with the uncut numbers of each cell of a line, and their identity; missing where there are none.

    ``measured``: of all lines of the answer.
    ``at``: which line it is.
    ``size``: how many cells it has.
    ``line``: what number of the line ``draw`` holds, if not ``at``.
    """
    measurements = measured[at]
    columns = number_columns(measurements, max(0 if other is None else len(other.drawn) for other in measured), size)
    columns[DRAW] = None if measurements is None else _draws(measurements, at if line is None else line)
    return columns


def number_columns(measured: Measurements | None, most: int, size: int, name: str = MEASURED) -> dict[str, Any]:
    """Columns with the uncut numbers of each cell: one of this name, or several with their number behind."""
    names = [name] if most <= 1 else [f"{name}_{at}" for at in range(most)]
    columns: dict[str, Any] = {column: np.full(size, np.nan) for column in names}
    if measured is None:
        return columns
    numbers = measured.numbers
    is_whole = measured.law.unit == 1 and bool((np.abs(numbers) < LARGEST_EXACT).all())
    for column, values in zip(names, numbers, strict=False):
        columns[column] = values.astype(np.int64) if is_whole else values
    return columns


def _draws(measured: Measurements, line: int) -> Any:
    """Identity of each cell: draw, line of the answer, and cell."""
    return np.char.add(f"{measured.draw}:{line}:", measured.cells.astype(np.str_)).astype(object)


def said_of(measured: Sequence[Measurements | None], index: pd.Index, *, by_group: bool = False) -> dict[str, Any]:
    """Measurements of the lines of a table for its attrs.

    ``measured``: of each line, for all groups.
    ``index``: of the table.
    ``by_group``: whether the rows of a group follow each other, and not those of a line.
    """
    return packed(measured, digest_of(index)) | ({"by_group": True} if by_group else {})


def sorted_table(table: pd.DataFrame) -> pd.DataFrame:
    """A table of one line with its largest values first, and its measurements in the same order."""
    ordered, answer = table.sort_values("value", ascending=False, kind="stable"), Answer.from_attrs(table.attrs)
    if answer is None or answer.measured is None:
        return ordered
    order = table.index.get_indexer(ordered.index)
    measured = [
        None if measurements is None else measurements.take(order) for measurements in unpacked(answer.measured)
    ]
    return replace(answer, measured=said_of(measured, ordered.index)).attach(ordered)


def wide_said(answer: Answer, index: pd.Index, wide: pd.DataFrame) -> dict[str, Any] | None:
    """Measurements of a table of one line for its attrs, once its second index level has become columns.

    They are those of its cells row by row; None where it has cells that the long table lacks.
    """
    if answer.measured is None:
        return None
    places = index.get_indexer(pd.MultiIndex.from_product([wide.index, wide.columns]))
    if (places < 0).any():
        return None
    measured = [
        None if measurements is None else measurements.take(places) for measurements in unpacked(answer.measured)
    ]
    return packed(measured, digest_of(wide.index, wide.columns)) | {"wide": True}


def follow_from(measured: dict[str, Any] | None) -> bool:
    """Whether the intervals of a crosstab follow from what was drawn for it."""
    drawn = [] if measured is None else unpacked(measured)
    return bool(drawn) and all(measurements is not None and form_of(measurements) is not None for measurements in drawn)


def wide_ends(wide: pd.DataFrame, low: pd.Series, high: pd.Series) -> dict[str, Any]:
    """Ends of the intervals of a crosstab for its attrs, of its cells row by row."""
    ends = [column.to_numpy(dtype=np.float64, na_value=np.nan) for column in (low, high)]
    return packed_ends(ends[0], ends[1], digest_of(wide.index, wide.columns))


def ends_of(table: pd.DataFrame) -> tuple[FloatArray, FloatArray] | None:
    """Ends of the intervals of a crosstab whose attrs have them; None of others, and of a part of one."""
    answer = Answer.from_attrs(table.attrs)
    if answer is None or answer.ends is None or answer.ends["digest"] != digest_of(table.index, table.columns):
        return None
    return unpacked_ends(answer.ends)


def measurements_of(table: pd.DataFrame) -> list[Measurements | None]:
    """Measurements of each line of a table that pdrisk returned; None of opaque ones.

    ``table``: as it was returned; with other rows or another order only if it has the columns of ``measured=True``.
    """
    answer = Answer.from_attrs(table.attrs)
    if answer is None:
        raise ParameterError(NO_ANSWER)
    if answer.measured is None:
        return [None] * len(answer.lines)
    measured = unpacked(answer.measured)
    indexes = (table.index, table.columns) if answer.measured.get("wide") else (table.index,)
    if answer.measured["digest"] == digest_of(*indexes):
        return measured
    if DRAW not in table or answer.tables:
        hint = "." if answer.tables else ", or ask with measured=True, so that each row holds its own."
        raise ParameterError(
            "the rows of this table were edited, so pdrisk does not know which measurement belongs to which: pass it "
            f"as it was returned{hint}"
        )
    return _of_columns(table, measured)


def rows_of_line(table: pd.DataFrame, line: int) -> Any:
    """Positions of the rows of a line in a table of which `measurements_of` gives the measurements, in their order."""
    answer = Answer.from_attrs(table.attrs)
    assert answer is not None
    number, size = len(answer.lines), table.size if "value" not in table else len(table)
    if DRAW in table and answer.measured is not None and answer.measured["digest"] != digest_of(table.index):
        lines = table[DRAW].str.extract(r":(\d+):", expand=False).fillna("-1").astype(np.int64).to_numpy()
        return np.flatnonzero(lines == line)
    if answer.measured is not None and answer.measured.get("by_group"):
        return np.arange(line, size, number)
    return np.arange(line * (size // number), (line + 1) * (size // number))


def _of_columns(table: pd.DataFrame, known: list[Measurements | None]) -> list[Measurements | None]:
    """The measurements whose identity stands in a column: those that the table still has."""
    parts = table[DRAW].dropna().astype(str).str.extract(r"^([0-9a-f]{32}):(\d+):(\d+)$")
    wrong = ParameterError(f"the column {DRAW!r} of this table was edited: pass the table as it was returned.")
    if parts.isna().to_numpy().any():
        raise wrong
    line, cell = parts[1].to_numpy().astype(np.int64), parts[2].to_numpy().astype(np.int64)
    measured: list[Measurements | None] = []
    for at, measurements in enumerate(known):
        cells = cell[line == at]
        if measurements is None:
            measured.append(None)
            continue
        order = np.argsort(measurements.cells, kind="stable")
        places = order[np.minimum(np.searchsorted(measurements.cells, cells, sorter=order), len(order) - 1)]
        if (measurements.cells[places] != cells).any() or (parts[0].to_numpy()[line == at] != measurements.draw).any():
            raise wrong
        measured.append(measurements.take(places))
    return measured
