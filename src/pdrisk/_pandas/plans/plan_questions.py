"""Plan of questions: the noise to expect of each, from public facts alone, before there are data."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import as_integer, own_errors, shown
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Count, Statistic
from pdrisk._core.surveys.mean_change import MeanChange, differences
from pdrisk._model.answering import answered_by, joined
from pdrisk._model.arguments import (
    MOST_STATISTICS,
    check_step,
    checked_success,
    epsilon,
    statistic,
    statistics,
    universe,
)
from pdrisk._model.declared.aliases import Bounds, Eps
from pdrisk._model.margins import MOST_COLUMNS, MarginsAsked
from pdrisk._model.query import (
    UNIT,
    Line,
    Query,
    written,
)
from pdrisk._pandas.plans.plan_margins import planned_margins
from pdrisk._pandas.plans.plan_tables import PlannedTable, planned_tables, reading
from pdrisk._pandas.plans.plan_weights import PlannedWeights, planned_weights
from pdrisk._pandas.plans.planned import allotted
from pdrisk.errors import ColumnTypeError, ParameterError

LARGEST: Final = 2**63 - 1  # rows
WITH_PARAMETER = re.compile(r"\s*(\w+)\(\s*(?:(\w+)\s*=)?\s*([\w.+-]+)\s*\)\s+of\s+(.+)")
OWN_PARAMETER: Final = {"var": "ddof", "std": "ddof", "min": "bounds_reached", "max": "bounds_reached"}
PLAIN = re.compile(r"\s*(\w+)\((.*)\)\s*")
IN_WORDS = re.compile(r"\s*(\w+)\s+of\s+(.+)")
FORMS = '"mean(distance)", "quantile(0.9) of distance" or "count()"'


@own_errors
def plan(
    questions: Mapping[Any, Any] | str | Iterable[str],
    *,
    n: int,
    eps: Eps | None = None,
    success: float | None = None,
    bounds: Bounds | None = None,
    groups: int | Mapping[Any, int] = 1,
    margins: Any = False,
    allot: Any = None,
    mechanism: str = "auto",
    step: int | None = None,
    interval: bool = False,
    clip: str | None = None,
    weights: Hashable = None,
    total_weight: float | None = None,
) -> Any:
    """Accuracy plan: the noise to expect of each question, from public facts alone, without data and without spending.

    With ``success=`` or with targets it allots a budget: the eps that each question needs for the noise that is wanted
    of it, what does not fit, and how much success less noise would cost.

    Parameters
    ----------
    questions : dict, str or list of str
        As `agg` takes them, ``{"distance": ["mean", "median"]}``, or as pdrisk writes them, ``"mean(distance)"``,
        ``"quantile(0.9) of distance"``, ``"count()"``; also ``"mean of distance"``. With targets a dict from question
        to its options, as in ``{"count()": {"noise95": 5}}``, or from the name of a table to a dict of questions about
        the same groups, with the options that all of them have. See Notes.
    n : int
        About how many records there will be.
    eps : float
        Privacy loss of all questions together, in nats, split evenly over releases. Count, sum, mean, var and std of
        one column share a release, and so do three or more quantiles, as in `agg`.
    success : float, optional
        How often an attacker may be right at most, by all answers together, as in ``Ledger(success=.75)``. Questions
        without a target share evenly, by the square of their m, what those with one leave.
    bounds : (lo, hi) or dict from column to (lo, hi)
        Range of the values, in the column's unit.
    groups : int or dict from column to int, default 1
        Number of groups, of equal size, for which each question is asked; they cost eps once. A dict has the number of
        keys of each column of ``by``.
    margins, allot
        With such a dict, and without targets: plan the cells and their margins as one table that adds up, as
        ``df.dprisk.crosstab`` takes both. There is a row for each table, with ``table`` and the ``share`` of eps that
        measures it.
    mechanism : str, default "auto"
        As for every statistic.
    step : 1, optional
        Declares that the values are whole numbers.
    interval : bool, default False
        Get an interval for every answer; medians, quantiles and extremes have more noise for it.
    clip : "private", optional
        Clip the values of means and sums at points that half of their eps finds. This plan assumes evenly spread
        values, which are hardly clipped. With a long tail, clipping makes the noise narrower.
    weights : column, optional
        Weigh all questions but those about extremes, as in surveys. ``bounds`` has the largest weight W, ``{"income":
        (0, 9000), "w": (0, 8)}``.
    total_weight : float, optional
        Needed with ``weights``: the sum of the weights of all ``n`` records, after trimming at W, as it is publicly
        known, such as the size of the population. This plan assumes equal weights; the noise of others with this sum is
        about the same.

    Returns
    -------
    DataFrame or BudgetPlan
        A `BudgetPlan` with ``success=`` or targets: its ``table`` is this frame and more. Else a row for each question,
        with columns ``question mechanism eps n noise95 noise95_widest worst_case success``; n
        is the size of one group. In 95 % of cases an answer is within ``noise95`` of the exact one, if values are
        spread evenly between the bounds. ``noise95_widest`` is what `Release.noise95` stays within whatever the values
        are, 99 % sure: of a mean up to a half wider, where all values lie near one bound; of a standard deviation many
        times as wide, where values hardly vary. NaN for quantiles, whose noise depends on how many values lie around
        them.

    Raises
    ------
    ParameterError, ColumnTypeError
        If a question cannot be asked like this, or a target cannot be had; the text says what to write instead.

    Notes
    -----
    Options of a question: one target, ``noise95`` or ``noise95_widest`` as in the columns, or ``relative``, the share
    of the answer that evenly spread values have; and ``bounds``, ``mechanism``, ``step``, ``interval``, ``clip``.
    Options of a table, or of a question asked alone: ``by``, the number of its groups or a dict from column to number
    of keys; ``n``; ``person``, ``per_person``, ``constant``, ``rows`` and ``groups``, as in the question itself; and
    ``margins=True``, which plans the table of each smaller set of the columns of ``by``, too. Where sums of the noisy
    answers are precise enough for a margin, as for counts with a relative target, it costs nothing.

    Examples
    --------
    >>> import pdrisk
    >>> pdrisk.plan("mean(distance)", n=14_734, eps=1, bounds=(1, 675)).round(3).to_dict("records")
    [{'question': 'mean(distance)', 'mechanism': 'two_sums', 'eps': 1.0, 'n': 14734, 'noise95': 0.094,
    'noise95_widest': 0.137, 'worst_case': 0.731, 'success': 0.697}]
    >>> found = pdrisk.plan(
    ...     {"count()": {"noise95": 5}, "mean(distance)": {"relative": 0.01, "bounds": (1, 675)}}, success=0.75, n=500
    ... )
    >>> found.fits, found.table["eps"].tolist()
    (True, [0.5382, 0.8203])
    """
    tables = MarginsAsked(margins, allot)
    columns, cells = _groups(groups)
    targets = isinstance(questions, Mapping) and any(isinstance(question, Mapping) for question in questions.values())
    if tables.named and (targets or success is not None or columns is None):
        raise ParameterError(
            "margins= plans a table of a given eps, and needs groups={column: number of keys, ...}: with targets write "
            "margins in the options of the table."
        )
    weighing = planned_weights(weights, total_weight, bounds, _whole("n", n, 0))
    weight = None if weighing is None else weighing.mean
    if weighing is not None and tables.named:
        raise ParameterError("margins= plans questions without weights: plan each table of weighted ones by itself.")
    if targets or success is not None:
        common: dict[str, Any] = {
            "bounds": bounds,
            "mechanism": mechanism,
            "step": step,
            "interval": interval,
            "clip": clip,
        }
        ask = partial(_asked_alone, weighing=weighing)
        parts: list[PlannedTable] = []
        if isinstance(questions, Mapping) and targets:
            if (number := _whole("groups", cells, 1)) > 1:
                common["by"] = number
            parts = planned_tables(questions, ask, _whole("n", n, 0), common, _whole, weight)
        else:
            size = _whole("n", n, 0) // _whole("groups", cells, 1)
            asked = _joined(questions, bounds, mechanism, step, interval, clip, weighing)
            parts = [PlannedTable.without_targets(*asked, size, weight)]
        limit = None if success is None else checked_success(success)
        return allotted(parts, limit, None if eps is None else epsilon(eps))
    size = _whole("n", n, 0) // _whole("groups", cells, 1)
    lines, releases = _joined(questions, bounds, mechanism, step, interval, clip, weighing)
    share = epsilon(eps) / (max(releases) + 1)
    for line in lines:
        line.calibrated(share).check()
    leads = Query(lines, (), releases=releases).leads
    if columns is not None and tables.margins is not False:
        lead_lines = [lines[leads[release]] for release in releases]
        return planned_margins(lines, lead_lines, share, _whole("n", n, 0), columns, tables)
    return pd.DataFrame(
        [_row(line, lines[leads[release]], share, size, weight) for line, release in zip(lines, releases, strict=True)]
    )


def _groups(groups: object) -> tuple[dict[Any, int] | None, object]:
    """The numbers of keys by column, if they are given; and the number of groups."""
    if not isinstance(groups, Mapping):
        return None, groups
    columns = {
        column: _whole(f"groups of {column}", size, 1) for column, size in islice(groups.items(), MOST_COLUMNS + 1)
    }
    if not columns or len(columns) > MOST_COLUMNS:
        raise ParameterError(f"groups has the numbers of keys of 1 to {MOST_COLUMNS} columns.")
    return columns, math.prod(columns.values())


def _joined(
    questions: object,
    bounds: object,
    mechanism: Any,
    step: object,
    interval: object,
    clip: object,
    weighing: PlannedWeights | None,
) -> tuple[tuple[Line, ...], tuple[int, ...]]:
    """The lines of questions, and the number of the release that answers each."""
    asked = [
        _line(column, wanted, bounds, mechanism, step, interval, clip, weighing)
        for column, wanted in questions_asked(questions)
    ]
    if not asked:
        raise ParameterError(f"questions lists nothing: pass one at least, such as {FORMS}.")
    return joined(asked, mechanism)


def _asked_alone(question: object, options: Mapping[str, Any], weighing: PlannedWeights | None) -> Iterator[Line]:
    """The line of a question with a target, which has its own options."""
    column, statistic = _parsed(question)
    bounds, step, clip = (options.get(name) for name in ("bounds", "step", "clip"))
    mechanism, interval = options.get("mechanism", "auto"), options.get("interval", False)
    yield _line(column, statistic, bounds, mechanism, step, interval, clip, weighing)


def _row(line: Line, lead: Line, share: Any, size: int, weight: float | None) -> dict[str, Any]:
    """The plan of a line, of the records that its release is drawn from."""
    mechanism = line.calibrated(share)
    widest = mechanism.widest_noise95(size)
    return {
        "question": line.name,
        "mechanism": line.mechanism,
        "eps": float(share),
        "n": size,
        "noise95": float(mechanism.noise95(reading(lead, share, size, weight))[0]),
        "noise95_widest": math.nan if widest is None else widest,
        "worst_case": float(posterior(float(share))),
        "success": mechanism.success,
    }


def _line(
    column: Hashable | None,
    asked: Statistic,
    bounds: object,
    mechanism: object,
    step: object,
    interval: object,
    clip: object,
    weighing: PlannedWeights | None,
) -> Line:
    check_step(step)
    column_bounds = bounds.get(column) if isinstance(bounds, Mapping) else bounds
    weighted = None if weighing is None else weighing.line(column, asked, column_bounds)
    if weighing is not None and weighted is not None:
        weighing.check(step, clip)
        return answered_by(weighted, mechanism, joint=True, interval=interval)
    if isinstance(asked, Count):
        return answered_by(Line(column, asked, UNIT, None), mechanism, joint=True, interval=interval)
    if column is None:
        raise ParameterError(f"{asked.label} needs a column.")
    if column_bounds is None and asked.name == "proportion":
        column_bounds = (0, 1)
    if column_bounds is None:
        raise ParameterError(
            f"{written(asked.label, column)} needs bounds, the range its values can have: pass bounds=(lo, hi), or "
            f"bounds={{{shown(column)}: (lo, hi)}}."
        )
    within = universe(column_bounds)
    if isinstance(asked, MeanChange) and isinstance(bounds, Mapping):  # which has the bounds of the column
        within = differences(within)
    line = Line(column, asked, within, "given")
    return answered_by(line, mechanism, whole=step is not None, joint=True, interval=interval, clip=clip)


def questions_asked(questions: object) -> Iterator[tuple[Hashable | None, Statistic]]:
    """Column and statistic of each question."""
    if isinstance(questions, Mapping):
        for column, specs in questions.items():
            yield from ((column, wanted) for wanted in statistics(specs))
        return
    if not isinstance(questions, str | list | tuple):
        raise ColumnTypeError(
            f"questions is a dict from column to statistics, or texts such as {FORMS}, not of type "
            f"{type(questions).__name__}."
        )
    listed = [questions] if isinstance(questions, str) else list(islice(questions, MOST_STATISTICS + 1))
    if len(listed) > MOST_STATISTICS:
        raise ParameterError(f"questions lists more than {MOST_STATISTICS:,}: list fewer.")
    for question in listed:
        yield _parsed(question)


def _parsed(question: object) -> tuple[Hashable | None, Statistic]:
    if not isinstance(question, str):
        raise ColumnTypeError(f"a question is a text such as {FORMS}, not of type {type(question).__name__}.")
    if match := WITH_PARAMETER.fullmatch(question):
        name, parameter, value, column = match.groups()
        return column.strip(), statistic((name, {parameter or OWN_PARAMETER.get(name, "q"): _plain(value)}))
    if match := PLAIN.fullmatch(question) or IN_WORDS.fullmatch(question):
        return match[2].strip() or None, statistic(match[1])
    raise ParameterError(f"{shown(question)} is no question: write {FORMS}.")


def _plain(text: str) -> object:
    """A parameter as pdrisk writes it: a number, a truth value, or else text, which no statistic takes."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _whole(name: str, value: object, least: int) -> int:
    value = as_integer(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ColumnTypeError(f"{name} is a whole number, not of type {type(value).__name__}.")
    if value < least:
        raise ParameterError(f"{name} must be at least {least}, but is {int(value)}.")
    if int(value) > LARGEST:
        raise ParameterError(f"{name} must be at most {LARGEST:,}, the largest number of rows that a table can have.")
    return int(value)
