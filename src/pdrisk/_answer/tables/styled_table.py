"""Styled tables for notebooks and reports: numbers rounded to their noise, those that are mostly noise in grey."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.publishing import public
from pdrisk._answer.release import Release
from pdrisk._answer.tables.quality import (
    DEVIATIONS,
    bases,
    check_unscaled,
    deviations,
    intervals,
    rounded,
    to_multiples,
)
from pdrisk._answer.tables.table_cells import is_of_sql, noisy_headings, with_keys, written_cells
from pdrisk._core.foreign import own_errors
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

Looks = dict[int, tuple[list[str], Any]]  # texts and colours of columns, by position

GREY: Final = "color: #999999"
ENDS: Final = ("value", "low", "high")


@own_errors
def show(table: pd.DataFrame) -> Styler:
    """Styled table: values rounded to what their noise leaves, and grey where the noise is wider than the value.

    Parameters
    ----------
    table : DataFrame
        As pdrisk returned it, with columns ``value low high``; a crosstab; or an answer of `sql` with
        ``risk_columns=True``. Columns of the curator are left out.

    Returns
    -------
    pandas.io.formats.style.Styler
        A notebook shows it; ``to_html()`` and ``to_latex()`` write it. The numbers in ``.data`` are not rounded.

    Raises
    ------
    NotPublicError
        If the bounds came from the data.
    ParameterError
        If the table has no intervals, or jinja2 is not installed, which pandas styles with.

    Notes
    -----
    Grey: half of the 95 % noise interval is wider than the size of the value.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 5000})
    >>> text = pdrisk.show(frame.dprisk.count(eps=0.02, by="sex", keys=["f", "m", "x"])).to_html()
    >>> "#999999" in text
    True
    """
    if isinstance(table, Release):
        raise ColumnTypeError("show takes a table, and this is a release: print it, or draw it with release.plot().")
    if not isinstance(table, pd.DataFrame):
        library = type(table).__module__.partition(".")[0]
        raise ColumnTypeError(f"show takes a pandas table of pdrisk, not one of type {library}.{type(table).__name__}.")
    answer = Answer.from_attrs(table.attrs)
    if answer is None:
        raise ParameterError(NO_ANSWER)
    published, looks = _of_sql(table, answer) if is_of_sql(answer) else _of_table(with_keys(table, answer))
    try:
        style = published.style
    except (ImportError, AttributeError):
        raise ParameterError(
            'a styled table needs jinja2: pip install "pdrisk[plots]", or write rounded(table).'
        ) from None
    for at, name in enumerate(published.columns):
        if at in looks:
            column = iter(looks[at][0])
            style = style.format(partial(_next, column), subset=pd.IndexSlice[:, [name]])
        elif pd.api.types.is_float_dtype(published.iloc[:, at].dtype):
            style = style.format("{:.4g}", subset=pd.IndexSlice[:, [name]])

    def grey(frame: pd.DataFrame) -> Any:
        styles = np.full(frame.shape, "", dtype=object)
        for at, (_, colours) in looks.items():
            styles[:, at] = colours
        return styles

    return style.apply(grey, axis=None)


def _next(texts: Iterator[str], _: object) -> str:
    return next(texts)


def _of_table(table: pd.DataFrame) -> tuple[pd.DataFrame, Looks]:
    """A table of one row for each number, or a crosstab: what may be published, and the looks of its columns."""
    check_unscaled(table)
    values, low, high = intervals(table)
    published: Any = public(table)
    fitting = published
    try:
        step, fitting = bases(np.ravel(deviations(table))), public(rounded(table))  # ends of intervals outwards
    except ParameterError:  # rows were taken out: half an interval must do
        step = bases(np.ravel(high - low) / 2 / DEVIATIONS)
    is_long = "value" in published
    size, colours = step.reshape(values.shape), _colours(values, low, high)
    looks: Looks = {}
    for at, name in enumerate(published.columns):
        if is_long and name not in ENDS:
            continue
        cells = (slice(None), at) if size.ndim > 1 else slice(None)
        whole = pd.api.types.is_integer_dtype(published["value" if is_long else name].dtype)
        looks[at] = _texts(fitting.iloc[:, at], size[cells], whole), colours[cells]
    return published, looks


def _of_sql(table: pd.DataFrame, answer: Answer) -> tuple[pd.DataFrame, Looks]:
    """An answer of `sql`: each noisy column with those of its interval."""
    published: Any = public(table)
    looks: Looks = {}
    for name in noisy_headings(table, answer):
        names = [name, f"{name}_low", f"{name}_high"]
        if not set(names) <= set(published.columns):
            continue
        values, low, high = (published[column].to_numpy(dtype=np.float64, na_value=np.nan) for column in names)
        step, colours = bases((high - low) / 2 / DEVIATIONS), _colours(values, low, high)
        whole = pd.api.types.is_integer_dtype(published[name].dtype)
        for column, how in zip(names, (np.rint, np.floor, np.ceil), strict=True):  # ends of intervals outwards
            fitting = pd.Series(to_multiples(published[column], step, how))
            looks[published.columns.get_loc(column)] = _texts(fitting, step, whole), colours
    if not looks:
        raise ParameterError("this answer has no noise intervals: ask pdrisk.sql with risk_columns=True.")
    return published, looks


def _texts(column: pd.Series, step: FloatArray, whole: bool) -> list[str]:
    base = np.where(whole & (step > 0), np.maximum(step, 1.0), step)
    return written_cells(column.to_numpy(dtype=np.float64, na_value=np.nan), base)


def _colours(values: FloatArray, low: FloatArray, high: FloatArray) -> Any:
    return np.where((high - low) / 2 > np.abs(values), GREY, "")
