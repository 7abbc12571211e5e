"""Columns and sizes of a study, judged before anything is computed; one error names everything that is wrong."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.risks.risk import METRICS, check_metric
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray
from pdrisk._core.universe import Universe
from pdrisk._model.arguments import MOST_STATISTICS, of_numbers, statistics, universe
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.columns import check_column, column_kind
from pdrisk._model.expressions.kinds import COUNTED, TEXT, TRUTH, number_advice
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.query import UNIT
from pdrisk._pandas.requests.declared import codes_of, declared
from pdrisk._pandas.requests.judged_requests import eps_values
from pdrisk._pandas.requests.lines import listed_columns
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.frame import column_values
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError
from pdrisk.study.set_aside import set_aside

#: Sample sizes as shares of a column's values where none are given: the paper says that it takes "a set of sample
#: sizes" for each variable, its text names none.
PROPORTIONS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)

#: How reports say where bounds come from; of declared ones they name what declared them, if they know it.
SOURCES: Final = {"given": "given", "declared": "declared", "type": "of its type", "data": "the data's own"}
SOME = 20  # columns in one sentence of an error
MOST_SIZES = 10_000  # that one study may ask for
Size = int | float  # a count, or a share in (0, 1]
Advice = Callable[[pd.Series, str], str]  # what to do with a column of a kind that is no numbers, "" for nothing


@dataclass(frozen=True, slots=True)
class Variable:
    """Column as its own universe.

    Attributes
    ----------
    column : hashable
    universe : Universe
    bounds_from : {"given", "declared", "type", "data"}
        ``"type"`` for the 0 and 1 of truth values.
    values : ndarray of float64, shape (N,)
        Clamped, not missing, ascending: a study depends on the values and not on the order of rows.
    sizes : dict of int to float
        Of the samples, ascending, each at most N, with the share of the values that each is.
    """

    column: Hashable
    universe: Universe
    bounds_from: Source | Literal["type"]
    values: FloatArray
    sizes: dict[int, float]


class _UnfitError(Exception):
    """Reason why a column cannot be studied, worded to follow its name.

    ``kind`` is that of the error, ``short`` the reason for who did not ask for this column.
    """

    def __init__(self, reason: str, kind: type[ParameterError] = ParameterError, short: str = "") -> None:
        super().__init__(reason)
        self.reason, self.kind, self.short = reason, kind, short or reason


def _in_python(_: pd.Series, kind: str) -> str:
    return number_advice(kind)


def variables(
    frame: object, columns: object, bounds: object, sample_sizes: object, advice: Advice = _in_python
) -> list[Variable]:
    """Every column with its universe, values and sample sizes.

    ``advice`` says what to do with columns of other kinds than numbers; by default in Python.
    """
    if not isinstance(frame, pd.DataFrame):
        raise ColumnTypeError(f"a study needs a pandas DataFrame, not {type(frame).__name__}.")
    listed = listed_columns(frame, columns)
    labels = Counter(column for column in listed if _is_label(column))
    given: Mapping[Any, Any] = bounds if isinstance(bounds, Mapping) else dict.fromkeys(labels, bounds)
    others = [name for name in islice(given, len(frame.columns) + 1) if name not in labels]
    wanted = None if sample_sizes is None else _sizes(sample_sizes)
    fit: list[Variable] = []
    unfit: dict[tuple[str, type[ParameterError]], list[object]] = {}
    for column in [*labels, *(column for column in listed if not _is_label(column)), *others]:
        try:
            times = labels[column] if _is_label(column) else 1
            _check_named(frame, column, times)
            if times:
                fit.append(_variable(frame, column, given.get(column), wanted, advice))
        except _UnfitError as why:
            unfit.setdefault((why.reason, why.kind), []).append(column)
    if unfit:
        raise _error(frame, unfit)
    return fit


def usable(
    frame: object, bounds: object = None, without: Sequence[Hashable] = (), advice: Advice = _in_python
) -> tuple[list[Hashable], dict[Hashable, str]]:
    """Columns of a frame that can be studied, without ids and weights; and the others with reasons.

    ``without``: that are not looked at.
    """
    if not isinstance(frame, pd.DataFrame):
        raise ColumnTypeError(f"a study needs a pandas DataFrame, not {type(frame).__name__}.")
    given: Mapping[Any, Any] = bounds if isinstance(bounds, Mapping) else {}
    if given:
        variables(frame, list(given), bounds, None, advice)
    fit: list[Hashable] = []
    left_out: dict[Hashable, str] = {}
    for column in frame.columns.unique():
        if column in without:
            continue
        try:
            _check_named(frame, column, 1)
            limits = given.get(column) if isinstance(bounds, Mapping) else bounds
            one = _variable(frame, column, limits, None, advice)
        except _UnfitError as why:
            left_out[column] = why.short
            continue
        reason = set_aside(column, one.values) if one.bounds_from == "data" else ""
        if reason:
            left_out[column] = reason
        else:
            fit.append(column)
    if not fit:
        reasons = "; ".join(f"{column!r} {reason}" for column, reason in left_out.items())
        raise ParameterError(f"no column can be studied: {reasons or 'there is none'}.")
    return fit, left_out


def _is_label(column: object) -> bool:
    try:
        hash(column)
    except (TypeError, RecursionError):
        return False
    return True


def _check_named(frame: pd.DataFrame, column: Any, times: int) -> None:
    if times > 1:
        raise _UnfitError("named twice; name it once")
    try:
        check_column(frame, column)
    except UnknownColumnError:
        problem = _UnfitError("", UnknownColumnError)
    except ParameterError as error:
        problem = _UnfitError(str(error), type(error))
    else:
        return
    raise problem


def _variable(
    frame: pd.DataFrame, column: Hashable, bounds: object, wanted: list[Size] | None, advice: Advice
) -> Variable:
    kind = column_kind(frame[column])
    if kind not in COUNTED:
        hint = advice(frame[column], kind)
        raise _UnfitError(
            f"holds {kind}, and a study needs numbers; leave it out" + (f", or {hint}" if hint else ""),
            ColumnTypeError,
            f"holds {kind}" + (f"; {hint}" if hint else ""),
        )
    try:
        interval, source = _declared_universe(frame, column, kind, bounds)
        clean = without_codes(frame[[column]], codes_of(frame, [column]))[column]
    except ParameterError as error:
        raise _UnfitError(str(error), type(error)) from None
    values = _numbers(clean)
    if values is None:
        hint = advice(clean, TEXT)
        reason = "cannot be read as numbers; leave it out" + (f", or {hint}" if hint else "")
        raise _UnfitError(reason, ColumnTypeError)
    if not len(values):
        raise _UnfitError("has no value at all; leave it out")
    interval = _own_universe(values) if interval is None else interval
    values = np.sort(np.clip(values, interval.lo, interval.hi))
    return Variable(column, interval, source, values, _counts(len(values), wanted))


def _numbers(series: pd.Series) -> FloatArray | None:
    """The values that are not missing; None if they are no numbers."""
    try:
        values = column_values(series).astype(np.float64)
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        return None
    return values[~np.isnan(values)]


def _declared_universe(
    frame: pd.DataFrame, column: Hashable, kind: str, bounds: object
) -> tuple[Universe | None, Source | Literal["type"]]:
    """Bounds given by the caller, declared or of truth values; None for the column's own range."""
    if isinstance(bounds, str):
        if bounds != "column":
            raise ParameterError(f'bounds must be (lo, hi) or the word "column", but are {shown(bounds)}')
        return None, "data"
    known = declared(frame, column)
    if bounds is not None:
        return known.narrowed(universe(bounds)), "given"
    interval = known.narrowed(known.universe)
    if interval is None and kind == TRUTH:
        return known.narrowed(UNIT), "type"
    return interval, "data" if interval is None else "declared"


def _own_universe(values: FloatArray) -> Universe:
    """The finite range, as the SOEP paper takes it."""
    finite = values[np.isfinite(values)]
    try:
        return Universe(float(finite.min()), float(finite.max()))
    except ValueError:  # its words would quote the ends
        pass
    constant = len(finite) and finite.min() == finite.max()
    raise _UnfitError(
        ("has one value only, so its own range is none" if constant else "has no range of ordinary size")
        + "; pass its bounds, as the questionnaire has them: bounds={column: (lo, hi)}, on the command line --bounds "
        "column=lo:hi; or leave it out"
    )


def _sizes(given: object) -> list[Size]:
    """Sample sizes as counts (int) and shares (float)."""
    several = isinstance(given, list | tuple | range | pd.Series) or (isinstance(given, np.ndarray) and given.ndim > 0)
    listed = list(islice(given, MOST_SIZES + 1)) if several and isinstance(given, Iterable) else [given]
    if len(listed) > MOST_SIZES:
        raise ParameterError(f"sample_sizes lists more than {MOST_SIZES:,} sizes: list fewer.")
    judged = [_size(size) for size in listed]
    sizes = [size for size in judged if size is not None]
    bad = [
        (shown(written) if isinstance(written, int | float) else f"a value of type {type(written).__name__}")
        for written, size in zip(listed, judged, strict=True)
        if size is None
    ]
    if bad or not sizes:
        raise ParameterError(
            "sample_sizes must be whole numbers of people from 1 on, or shares of a column's values above 0 and up to "
            f"1.0, all of them; {', '.join(bad) + ' is neither' if bad else 'there is none'}."
        )
    return sizes


def _size(given: object) -> Size | None:
    """A count or a share; None if it is neither."""
    if isinstance(given, bool | np.bool_ | np.timedelta64) or not isinstance(given, numbers.Real):
        return None
    size = _as_float(given)
    if not math.isfinite(size):
        return None
    if isinstance(given, numbers.Integral) or (size > 1 and size.is_integer()):
        return int(size) if size >= 1 else None
    return size if 0 < size <= 1 else None


def _as_float(number: numbers.Real) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf  # or as far below 0: neither is a size


def _counts(people: int, wanted: Sequence[Size] | None) -> dict[int, float]:
    """Sizes as counts, ascending, with their shares; a share is at least one person, of the usual ones two."""
    shares = PROPORTIONS if wanted is None else [size for size in wanted if isinstance(size, float)]
    counts = [] if wanted is None else [size for size in wanted if isinstance(size, int)]
    if too_many := sorted({size for size in counts if size > people}):
        raise _UnfitError(
            f"has fewer values than samples of {', '.join(map(str, too_many))} need; pass smaller sizes, or shares "
            "such as 0.5 (1.0: all)"
        )
    least = min(2 if wanted is None else 1, people)
    meant = [max(round(share * people), least) for share in shares]
    times = Counter(meant)
    # A share as it was asked for is the same for every column. It is less than a person off, or the true one stands.
    asked = {size: share for share, size in zip(shares, meant, strict=True) if times[size] == 1}
    asked = {size: share for size, share in asked.items() if abs(share * people - size) < 1}
    return {size: asked.get(size, size / people) for size in sorted({*counts, *meant})}


def _error(frame: pd.DataFrame, unfit: Mapping[tuple[str, type[ParameterError]], list[Any]]) -> ParameterError:
    """One error for all columns; of their class if it is the same."""
    lines = []
    for (reason, kind), columns in unfit.items():
        left = f" And {len(columns) - SOME:,} more." * (len(columns) > SOME)
        if kind is UnknownColumnError:
            first, *others = (str(unknown_column(column, frame.columns)) for column in columns[:SOME])
            # The list of columns is given once.
            lines += [
                first,
                *(re.sub("; the frame has: .*?[.](?= Did you mean|$)", ".", line) for line in others),
                *[left.strip()] * bool(left),
            ]
        else:
            lines.append(f"{', '.join(map(shown, columns[:SOME]))}: {reason.removesuffix('.')}.{left}")
    kinds = {kind for _, kind in unfit}
    total = sum(map(len, unfit.values()))
    raised = kinds.pop() if len(kinds) == 1 else ParameterError
    heading = (
        "a study of this column cannot be run" if total == 1 else f"a study of these {total} columns cannot be run"
    )
    return raised(f"{heading}:\n  " + "\n  ".join(lines))


def statistics_of(specs: object, ddof: object) -> tuple[Statistic, ...]:
    """The statistics, with ``ddof`` for variances and standard deviations that say none of their own."""

    def one(spec: Any) -> Any:
        if isinstance(spec, str) and spec in ("var", "std"):
            return spec, {"ddof": ddof}
        if isinstance(spec, tuple) and len(spec) == 2 and spec[0] in ("var", "std") and isinstance(spec[1], Mapping):
            return spec[0], {"ddof": ddof, **spec[1]}
        return spec

    statistics(("var", {"ddof": ddof}))  # refuses what cannot be one, also where nothing uses it
    pair = isinstance(specs, tuple) and len(specs) == 2 and isinstance(specs[1], Mapping)
    if isinstance(specs, list | tuple) and not pair:
        parsed = statistics([one(spec) for spec in islice(specs, MOST_STATISTICS + 1)])
    else:
        parsed = statistics(one(specs))
    return tuple(of_numbers(statistic) for statistic in parsed)


def eps_list(eps: object) -> tuple[float, ...]:
    """The privacy losses, ascending and different."""
    return tuple(sorted(set(map(float, eps_values(eps)))))


def metric_names(metrics: object) -> tuple[str, ...]:
    """The risks that are wanted, in the usual order."""
    listed = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(listed, list | tuple) or not listed:
        raise ColumnTypeError(f"metrics must be a list of {', '.join(METRICS)}.")
    for metric in listed:
        check_metric(metric)
    return tuple(name for name in METRICS if name in listed)


def share(name: str, value: object) -> float:
    """A share of all, above 0 and up to 1."""
    judged = _size(value)
    if judged is None or judged > 1:
        raise ParameterError(f"{name} must be above 0 and at most 1, but is {shown(value)}.")
    return float(judged)


def whole_number(name: str, value: object, least: int) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Integral):
        raise ColumnTypeError(f"{name} must be a whole number, not of type {type(value).__name__}.")
    if value < least:
        raise ParameterError(f"{name} must be at least {least}, but is {shown(value)}.")
    return int(value)
