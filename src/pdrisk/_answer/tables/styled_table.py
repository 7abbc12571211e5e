"""Styled tables for notebooks and reports: numbers rounded to their noise, those that are mostly noise in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answer import NO_ANSWER
from pdrisk._answer.publishing import public
from pdrisk._answer.tables.quality import DEVIATIONS, bases, deviations, intervals, rounded
from pdrisk._answer.tables.table_cells import pandas_table, written_cells
from pdrisk._core.foreign import own_errors
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

__all__ = ["show"]

GREY: Final = "color: #999999"
ENDS: Final = ("value", "low", "high")


@own_errors
def show(table: pd.DataFrame) -> Styler:
    """Styled table: values rounded to what their noise leaves, and grey where the noise is wider than the value.

    Parameters
    ----------
    table : DataFrame
        As pdrisk returned it, with columns ``value low high``; or a crosstab. Columns of the curator are left out.

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
    _, said = pandas_table(table)
    if said is None:
        raise ParameterError(NO_ANSWER)
    values, low, high = intervals(table)
    own: Any = public(table)
    fitting = own
    try:
        step, fitting = bases(np.ravel(deviations(table))), public(rounded(table))  # ends of intervals outwards
    except ParameterError:  # rows were taken out: half an interval must do
        step = bases(np.ravel(high - low) / 2 / DEVIATIONS)
    try:
        style = own.style
    except (ImportError, AttributeError):
        raise ParameterError(
            'a styled table needs jinja2: pip install "pdrisk[plots]", or write rounded(table).'
        ) from None
    kept = [name for name in ENDS if name in own] if "value" in own else list(own.columns)
    size = step.reshape(values.shape)
    texts = pd.DataFrame("", index=own.index, columns=own.columns, dtype=object)
    for at, name in enumerate(own.columns):
        if name in kept:
            numbers = fitting.iloc[:, at].to_numpy(dtype=np.float64, na_value=np.nan)
            whole = pd.api.types.is_integer_dtype(own["value" if "value" in own else name].dtype)
            base = size if size.ndim == 1 else size[:, at]
            base = np.where(whole & (base > 0), np.maximum(base, 1.0), base)
            texts.isetitem(at, written_cells(numbers, base))
    colours = np.where((high - low) / 2 > np.abs(values), GREY, "")
    for at, name in enumerate(own.columns):
        if name in kept:
            column = iter(texts.iloc[:, at].tolist())
            style = style.format(lambda _, column=column: next(column), subset=pd.IndexSlice[:, [name]])
        elif pd.api.types.is_float_dtype(own.iloc[:, at].dtype):
            style = style.format("{:.4g}", subset=pd.IndexSlice[:, [name]])

    def grey(frame: pd.DataFrame) -> Any:
        found = np.full(frame.shape, "", dtype=object)
        for at, name in enumerate(frame.columns):
            if name in kept:
                found[:, at] = colours if colours.ndim == 1 else colours[:, at]
        return found

    return style.apply(grey, axis=None)
