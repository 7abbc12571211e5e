"""Cells of an answer for pictures: labels, published values and the ends of their noise intervals, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.arithmetic.combined import Combined, releases_of
from pdrisk._answer.publishing import check_bounds
from pdrisk._answer.release import Release
from pdrisk._answer.tables.quality import DEVIATIONS, bases, check_unscaled, deviations, intervals
from pdrisk._core.summary import FloatArray
from pdrisk._model.declared.attributes import ATTRIBUTE
from pdrisk._model.plain import plain_label
from pdrisk.errors import ColumnTypeError, ParameterError

LINES = "answer"  # name of the labels that tell statistics apart


@dataclass(frozen=True, slots=True)
class PublishedCells:
    """Published numbers of an answer, one row for each: nothing of the curator's is in them."""

    # labels of each number: a column for each key, and ``answer`` where there are several statistics
    keys: pd.DataFrame
    # `values`, `low`, `high`, `bases`: numbers, ends of their 95 % noise intervals (NaN where they are not
    # known), and to which multiples of what the noise lets them be rounded (0 where that is not known); shape
    # (n,)
    values: FloatArray
    low: FloatArray
    high: FloatArray
    bases: FloatArray
    title: str  # name of the answer, for an axis
    is_count: bool  # whether all are counts, or shares of them

    @property
    def texts(self) -> list[str]:
        """The values as texts, rounded to what their noise leaves."""
        return written_cells(self.values, self.bases)


def cells_of(answer: Any) -> PublishedCells:
    """Cells of a release or a table.

    ``answer``: as pdrisk returned it; also of Polars, or a table of Arrow.
    """
    if isinstance(answer, Combined):
        return _of_computed(answer)
    if isinstance(answer, Release):
        answer.answer.check_numbers("a plot")
        description, keys = answer.answer, pd.DataFrame({LINES: [answer.name]})
        ends = (np.array([float(number)]) for number in (answer.value, answer.low, answer.high))
        return _checked(description, keys, *ends)
    table, known = pandas_table(answer)
    if known is None:
        return _of_columns(table)
    if is_of_sql(known):
        return _of_sql(table, known)
    known.check_numbers("a plot")
    known.check_unchanged(table)
    table = with_keys(table, known)
    if "value" in table:
        return _checked(known, _levels(table.index, known), *_ends(table), deviation=_noise(table))
    check_unscaled(table)
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        _, low, high = intervals(table)
    except ParameterError:  # of a part of it, or of private keys
        low = high = np.full(values.shape, np.nan)
    rows = _levels(table.index, known).loc[lambda frame: frame.index.repeat(table.shape[1])].reset_index(drop=True)
    across = str(table.columns.name or "column")
    rows[across if across not in rows else f"{across}_"] = list(table.columns) * len(table)
    return _checked(known, rows, values.ravel(), low.ravel(), high.ravel(), deviation=_noise(table))


def _of_computed(number: Combined) -> PublishedCells:
    """The cell of a number that was computed from releases."""
    for release in releases_of(number):
        check_bounds(release.answer)
    value, low, high = (np.array([end]) for end in (number.value, *number.interval()))
    low, high = np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
    step = bases((high - low) / 2 / DEVIATIONS)
    return PublishedCells(pd.DataFrame({LINES: ["computed"]}), value, low, high, step, "noisy value", is_count=False)


def pandas_table(answer: Any) -> tuple[pd.DataFrame, Answer | None]:
    """An answer as a frame of pandas, and its description; None of a frame of Polars, which has no room for one."""
    if isinstance(answer, pd.DataFrame):
        description = Answer.from_attrs(answer.attrs)
        if description is None:
            raise ParameterError(NO_ANSWER)
        return answer, description
    library = type(answer).__module__.partition(".")[0]
    if library == "polars" and type(answer).__name__ == "DataFrame":
        return pd.DataFrame(answer.to_dict(as_series=False)), None
    if library == "pyarrow" and type(answer).__name__ == "Table":
        encoded = (answer.schema.metadata or {}).get(ATTRIBUTE.encode())
        description = None if encoded is None else Answer.from_attrs({ATTRIBUTE: encoded.decode()})
        if description is not None:
            check_bounds(description)
        return pd.DataFrame(answer.to_pydict()), None
    raise ColumnTypeError(
        f"this takes a release or a table that pdrisk returned, not of type {library}.{type(answer).__name__}."
    )


def is_of_sql(answer: Answer) -> bool:
    """Whether it describes an answer of `sql`, whose columns are those of the statement."""
    return answer.headings is not None and (bool(answer.groups) or not answer.index)


def with_keys(table: pd.DataFrame, answer: Answer) -> pd.DataFrame:
    """The table with its keys in the index, also where ``reset_index()`` made columns of them."""
    names = [name for name in table.columns if plain_label(name) in answer.index]
    if not names or len(names) != len(answer.index) or type(table.index) is not pd.RangeIndex:
        return table
    return table.set_index(names)


def label_of(key: Any) -> str:
    """Text of a key: a bin as ``0 to 5``, a day without its time."""
    if isinstance(key, pd.Interval):
        return f"{label_of(key.left)} to {label_of(key.right)}"
    if key is None or key is pd.NA or key != key:  # NaN, NaT
        return "missing"
    if isinstance(key, pd.Timestamp) and key == key.normalize():
        return str(key.date())
    return f"{key:g}" if isinstance(key, float) else str(key)


def written_cells(values: FloatArray, base: FloatArray) -> list[str]:
    """Numbers as multiples of their bases, with no digit more; a dash for a missing one.

    Examples
    --------
    >>> written_cells(np.array([1234.0, 0.3333, np.nan]), np.array([50.0, 0.02, 1.0]))
    ['1,250', '0.34', '–']
    """
    steps: Any = np.where(base > 0, base, 1.0)
    inverse = np.maximum(np.rint(1 / steps), 1.0)  # a power of ten below 1 is no float
    near = np.where(steps < 1, np.rint(values * inverse) / inverse, np.rint(values / steps) * steps) + 0.0
    digits = np.maximum(-np.floor(np.log10(steps) + 1e-9), 0).astype(int).tolist()
    pairs = zip(values.tolist(), near.tolist(), digits, base.tolist(), strict=True)
    return [
        "–" if value != value else f"{value:,.6g}" if step <= 0 else f"{fitting:,.{places}f}"
        for value, fitting, places, step in pairs
    ]


def _checked(
    answer: Answer, keys: pd.DataFrame, *ends: FloatArray, deviation: Any = None, title: str = ""
) -> PublishedCells:
    check_bounds(answer)
    values, low, high = ends
    low, high = np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
    if deviation is None:
        deviation = (high - low) / 2 / DEVIATIONS
    step: Any = bases(np.ravel(deviation))
    of_counts = all(line.statistic.partition("(")[0] in ("count", "hist") for line in answer.lines)
    shares = answer.share_of is not None
    if of_counts and not shares:
        step = np.where((step < 1) & (step > 0), 1.0, step)
    name = title or (answer.lines[0].name if len(answer.lines) == 1 else "noisy value")
    if of_counts and (answer.bins_clamp is not None or name == "count()"):
        name = "count"
    if shares:
        name = "share" if name == "count" else f"share of {name}"
    return PublishedCells(keys, values, low, high, step, name, of_counts)


def _levels(index: pd.Index, answer: Answer) -> pd.DataFrame:
    """Labels of the rows by level; column and statistic become one."""
    levels = {str(index.names[at] or "group"): list(index.get_level_values(at)) for at in range(index.nlevels)}
    if list(levels)[:2] == ["column", "statistic"] and not answer.names:
        pairs = zip(levels.pop("column"), levels.pop("statistic"), strict=True)
        texts = [f"{what} of {label_of(column)}" if isinstance(column, str) else str(what) for column, what in pairs]
        return pd.DataFrame({LINES: texts, **_objects(levels)})
    if answer.names and "name" in levels:
        return pd.DataFrame({LINES: levels.pop("name"), **_objects(levels)})
    return pd.DataFrame(_objects(levels))


def _objects(levels: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: pd.Series(labels, dtype=object) for name, labels in levels.items()}


def _ends(table: pd.DataFrame) -> list[FloatArray]:
    if missing := [name for name in ("low", "high") if name not in table]:
        raise ParameterError(f"this table has no column {missing[0]!r}: pass the answer as pdrisk returned it.")
    return [table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("value", "low", "high")]


def _noise(table: pd.DataFrame) -> FloatArray | None:
    """Deviations of the noise; None where rows were taken out, and half an interval must do."""
    try:
        return deviations(table)
    except ParameterError:
        return None


def noisy_headings(table: pd.DataFrame, answer: Answer) -> list[Any]:
    """Columns of noisy numbers in an answer of `sql`, without those of their intervals and risks."""
    headings = [name for name in table.columns if name in (answer.headings or ())]
    extra = {f"{name}_{end}" for name in headings for end in ("low", "high", "eps", "worst_case", "delta", "success")}
    candidates = [name for name in headings if name not in answer.groups and name not in extra]
    return [name for name in candidates if pd.api.types.is_numeric_dtype(table[name].dtype)]


def _of_sql(table: pd.DataFrame, answer: Answer) -> PublishedCells:
    """Cells of an answer in SQL: its noisy columns beside each other, with intervals where it has columns of them."""
    headings = [name for name in table.columns if name in (answer.headings or ())]
    keys, noisy = [name for name in headings if name in answer.groups], noisy_headings(table, answer)
    if not noisy:
        raise ParameterError("this answer has no column of noisy numbers to draw.")

    def column(name: Any) -> FloatArray:
        missing = np.full(len(table), np.nan)
        return table[name].to_numpy(dtype=np.float64, na_value=np.nan) if name in headings else missing

    ends = [np.column_stack([column(f"{name}{end}") for name in noisy]).ravel() for end in ("", "_low", "_high")]
    rows = {str(key): pd.Series(np.repeat(table[key].to_numpy(dtype=object), len(noisy))) for key in keys}
    title = str(noisy[0]) if len(noisy) == 1 else "noisy value"
    lines = {LINES: list(map(str, noisy)) * len(table)} if len(noisy) > 1 or not keys else {}
    return _checked(answer, pd.DataFrame({**rows, **lines}), *ends, title=title)


def _of_columns(table: pd.DataFrame) -> PublishedCells:
    """Cells of a table of another library: the columns before ``value`` are its keys."""
    names = list(table.columns)
    if not {"value", "low", "high"} <= set(names):
        raise ParameterError(
            "a table of Polars or Arrow needs its columns value, low and high: ask with by=, or pass the pandas table."
        )
    keys = names[: names.index("value")]
    labels = {name: table[name].astype(object) for name in keys}
    if {"left", "right"} <= set(keys):
        pairs = zip(labels.pop("left"), labels.pop("right"), strict=True)
        labels["bin"] = pd.Series([pd.Interval(*pair, closed="left") for pair in pairs], dtype=object)
    if {"column", "statistic"} <= set(labels):
        pairs = zip(labels.pop("column"), labels.pop("statistic"), strict=True)
        labels = {LINES: pd.Series([f"{what} of {column}" for column, what in pairs]), **labels}
    values, low, high = (pd.to_numeric(table[name]).to_numpy(dtype=np.float64) for name in ("value", "low", "high"))
    low, high = np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
    step = bases((high - low) / 2 / DEVIATIONS)
    keyed = pd.DataFrame(labels) if labels else pd.DataFrame({LINES: ["noisy value"] * len(table)})
    is_whole = pd.api.types.is_integer_dtype(table["value"].dtype)
    step = np.where(is_whole & (step > 0), np.maximum(step, 1.0), step)
    return PublishedCells(keyed, values, low, high, step, "noisy value", bool(is_whole))
