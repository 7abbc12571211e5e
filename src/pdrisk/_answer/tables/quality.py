"""Quality of tables: classes by how large the noise is beside the numbers, and numbers rounded to what noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.arithmetic.exact_expressions import error_deviation, interval
from pdrisk._answer.arithmetic.forms import form_of
from pdrisk._answer.tables.measured_tables import ends_of, measurements_of, rows_of_line
from pdrisk._core.foreign import own_errors
from pdrisk._core.summary import FloatArray
from pdrisk._model.plain import float_of, plain_number
from pdrisk.errors import ColumnTypeError, ParameterError

CLASSES: Final = ("A", "B", "C")
DEVIATIONS: Final = 1.96  # of a normal variable in half of its 95 % interval
STEPS: Final = np.array([1.0, 2.0, 5.0])  # times a power of ten, that numbers are rounded to
CLOSE: Final = 1 + 1e-9
ENDS: Final = {"low", "high"}


@own_errors
def quality(table: pd.DataFrame, limits: Sequence[float] = (0.1, 0.33)) -> pd.Series | pd.DataFrame:
    """Quality classes of the cells of a table, by how wide the noise interval is beside the value.

    Parameters
    ----------
    table : DataFrame
        As pdrisk returned it, with columns ``value low high``; or a crosstab.
    limits : (float, float)
        Largest half-width of the 95 % noise interval over the size of the value for class A, and for class B.

    Returns
    -------
    Series, or DataFrame for a crosstab
        ``"A"``, ``"B"`` or ``"C"`` for each row or cell, an ordered categorical; missing where a value is withheld or
        its interval is not known. It comes from published numbers alone and costs nothing.

    Raises
    ------
    ParameterError
        If the table has no intervals, or the limits do not rise.

    Notes
    -----
    The sampling error comes on top: classes say how much the protection costs, not how good the survey is.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 5000})
    >>> table = frame.dprisk.count(eps=1, by="sex", keys=["f", "m", "x"])
    >>> pdrisk.quality(table).tolist()
    ['A', 'A', 'C']
    """
    good, fair = _limits(limits)
    check_unscaled(table)
    values, low, high = intervals(table)
    size = np.abs(values)
    share = np.divide((high - low) / 2, size, out=np.full(values.shape, np.inf), where=size > 0)
    codes: Any = np.where(share <= good, 0, np.where(share <= fair, 1, 2))
    codes = np.where(np.isnan(values) | np.isnan(high - low), -1, codes)

    def classes(column_codes: Any) -> Any:
        return pd.Categorical.from_codes(column_codes, categories=pd.Index(CLASSES), ordered=True)

    if codes.ndim == 1:
        return pd.Series(classes(codes), index=table.index, name="quality")
    return pd.DataFrame({at: classes(codes[:, at]) for at in range(codes.shape[1])}, index=table.index).set_axis(
        table.columns, axis=1
    )


@own_errors
def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Table with numbers rounded to what their noise leaves: the largest 1, 2 or 5 times a power of ten that fits.

    That is at most half a standard deviation of the noise of each number, so that rounding adds next to no error (1 %
    of the root mean squared error); ends of intervals are rounded outwards. Whole numbers stay whole, and what is
    smaller than that stays as it is. Rounded cells no longer add up to rounded margins.

    Parameters
    ----------
    table : DataFrame
        As pdrisk returned it, with columns ``value low high``; or a crosstab.

    Returns
    -------
    DataFrame
        The same columns and types.

    Raises
    ------
    ParameterError
        If the table does not say how large its noise is.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 5000})
    >>> table = frame.dprisk.count(eps=0.02, by="sex", keys=["f", "m"])
    >>> bool((pdrisk.rounded(table)["value"] % 20 == 0).all())
    True
    """
    base: Any = bases(deviations(table))
    if "value" not in table:
        rounded_table = table.apply(lambda column: column)  # a copy with the same attrs
        for at in range(table.shape[1]):
            rounded_table.isetitem(at, to_multiples(table.iloc[:, at], base[:, at], np.rint))
        return rounded_table
    rounded_table = table.copy()
    for name, how in (("value", np.rint), ("low", np.floor), ("high", np.ceil)):
        rounded_table[name] = to_multiples(table[name], base, how)
    return rounded_table


def _limits(limits: Sequence[float]) -> tuple[float, float]:
    if isinstance(limits, str) or not isinstance(limits, Sequence) or len(limits) != 2:
        raise ColumnTypeError("limits are two numbers, those of class A and of class B, as in (0.1, 0.33).")
    good, fair = (float_of("a limit", plain_number("a limit", limit)) for limit in limits)
    if not 0 < good < fair:
        raise ParameterError(f"limits must rise from above 0, but are ({good:g}, {fair:g}): write (0.1, 0.33).")
    return good, fair


def intervals(table: pd.DataFrame) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values and ends of a table, of its shape."""
    _check(table)
    if "value" in table:
        values, low, high = (
            table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("value", "low", "high")
        )
        return values, low, high
    shape = table.shape
    if (ends := ends_of(table)) is not None:
        return table.to_numpy(dtype=np.float64, na_value=np.nan), ends[0].reshape(shape), ends[1].reshape(shape)
    measured = measurements_of(table)
    form = form_of(measured[0]) if len(measured) == 1 and measured[0] is not None else None
    if form is None or form.size != table.size:
        raise _no_intervals()
    low, high = interval(form, 0.95)
    return table.to_numpy(dtype=np.float64, na_value=np.nan), low.reshape(shape), high.reshape(shape)


def check_unscaled(table: pd.DataFrame) -> None:
    """Refuse a crosstab computed from others, such as 100 times one: its numbers are not those of its noise."""
    try:
        values, low, high = intervals(table)
    except ParameterError:  # of a part, whose intervals are not known
        return
    slack = 1e-6 * np.maximum(np.abs(low), np.abs(high)) + 1e-9
    if ((values < low - slack) | (values > high + slack)).any():
        raise ParameterError(
            "this table was computed from others, so that its noise is not that of its numbers: pass it as pdrisk "
            "returned it. Of shares in per cent, plot the shares, and write "
            "axes.xaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1))."
        )


def _check(table: pd.DataFrame) -> None:
    if not isinstance(table, pd.DataFrame):
        library = type(table).__module__.partition(".")[0].removeprefix("builtins")
        kind = f"{library}.{type(table).__name__}".removeprefix(".")
        raise ColumnTypeError(f"a table is a pandas DataFrame that pdrisk returned, not of type {kind}.")
    if (answer := Answer.from_attrs(table.attrs)) is None:
        raise ParameterError(NO_ANSWER)
    answer.check_unchanged(table)
    if not answer.groups:  # of SQL, whose columns are none of these
        answer.check_numbers("this function")
    if "value" in table and not set(table.columns) >= ENDS:
        raise _no_intervals()


def _no_intervals() -> ParameterError:
    return ParameterError(
        "this table has no noise intervals: ask with by=, for one row for each group with columns value, low and high."
    )


def deviations(table: pd.DataFrame) -> FloatArray:
    """Standard deviations of the noise of all numbers, of the table's shape; NaN where they are not known."""
    check_unscaled(table)
    values, low, high = intervals(table)
    half = (high - low).ravel() / 2
    spreads = np.where(np.isfinite(half), half, np.nan) / DEVIATIONS
    for at, measured in enumerate(measurements_of(table)):
        form = None if measured is None else form_of(measured)
        if form is not None:
            deviation, rows = error_deviation(form), rows_of_line(table, at)
            spreads[rows] = np.where(np.isfinite(deviation), deviation, spreads[rows])
    return spreads.reshape(values.shape)


def bases(deviation: FloatArray) -> FloatArray:
    """The largest 1, 2 or 5 times a power of ten that is at most half a standard deviation; 0 where there is none."""
    known = np.isfinite(deviation) & (deviation > 0)
    half = np.where(known, deviation, 1.0) / 2 * CLOSE
    power = 10.0 ** np.floor(np.log10(half))
    digit = STEPS[np.searchsorted(STEPS, half / power, side="right") - 1]
    return np.where(known, digit * power, 0.0)


def to_multiples(column: pd.Series, base: Any, how: Any) -> Any:
    """Numbers as multiples of their bases, by rint, floor or ceil; with base 0, and whole ones below 1, unchanged."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    is_whole = pd.api.types.is_integer_dtype(column.dtype)
    base = np.where(is_whole & (base < 1), 0.0, base)
    some = (base > 0) & np.isfinite(values)
    steps = np.where(base > 0, base, 1.0)
    # A power of ten below 1 is no float: divided by its inverse, 0.3 is 3 / 10.
    fine: Any = steps < 1
    inverse = np.maximum(np.rint(1 / steps), 1.0)
    rounded_values = np.where(fine, how(values * inverse) / inverse, how(values / steps) * steps)
    multiples = pd.Series(np.where(some, rounded_values, values), index=column.index)
    return multiples.astype(column.dtype).array
