"""Shrunk tables: noisy means of small areas, drawn towards their common mean."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, WEIGHT, Answer
from pdrisk._answer.arithmetic.measured import DRAW, MEASURED_COLUMNS, Measurements
from pdrisk._answer.tables.measured_tables import measurements_of, rows_of_line
from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.summary import IntArray
from pdrisk._core.surveys.shrinkage import FEWEST, shrinkage
from pdrisk._model.plain import plain_label
from pdrisk.errors import ColumnTypeError, ParameterError

ALL_AREAS: Final = "all"
MECHANISM: Final = "two_sums"  # whose two numbers are the noisy sums that the formulas are about


@own_errors
def shrink(table: pd.DataFrame, towards: Hashable = ALL_AREAS) -> pd.DataFrame:
    """Shrinkage estimates of small areas: noisy means drawn towards their common mean, the more the noisier they are.

    It is computed from what was published: it costs no eps, and tells nothing more about anybody. The mean error
    falls, but **areas that truly differ most are drawn to the middle, and become worse**: see Notes. Do not use it to
    find or rank such areas, nor to decide about one.

    Parameters
    ----------
    table : DataFrame
        Means with ``by=`` by mechanism ``"two_sums"``, the usual one, as pdrisk returned it.
    towards : "all" or an index level
        Whose common mean: that of all areas, or of those with the same key in a column of ``by``, each apart.

    Returns
    -------
    DataFrame
        With ``value``, and ``weight``, the share of an area's own measurement in it, from 0 to 1. ``low`` and ``high``
        are the ends of the area's own 95 % noise interval, widened where the value lies beyond.

    Raises
    ------
    ParameterError
        If the table is not one of such means, has margins, or has fewer than 10 areas (for each key of ``towards``).

    Notes
    -----
    Empirical Bayes after Fay & Herriot (1979), with the noise as the known error of an area; its formulas are in
    `pdrisk._core.surveys.shrinkage`. In simulations (``benchmarks/small_areas.py``) the mean error of 200 areas of 74
    people was halved, but that of the tenth of areas that differ most grew by a tenth, and where areas differ more by
    60 to 80 %. There is no interval of a shrunk value that holds for each area.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pdrisk
    >>> area = np.repeat(np.arange(100), 40)
    >>> people = pd.DataFrame({"area": area, "hours": 38 + np.tile([-3.0, 3.0], 2000)})
    >>> table = people.dprisk.mean("hours", eps=1, bounds=(20, 60), by="area", keys=range(100))
    >>> shrunk = pdrisk.shrink(table)
    >>> bool(((shrunk["value"] - 38).abs().mean() < (table["value"] - 38).abs().mean() / 2))
    True
    """
    answer, measured = _means(table)
    rows = rows_of_line(table, 0)
    (lo, hi) = answer.lines[0].bounds or (0.0, 1.0)
    value = np.full(len(table), np.nan)
    weight = np.full(len(table), np.nan)
    for area in _areas(table, rows, measured, towards):
        above, below = measured.take(area).numbers
        estimates = shrinkage(above, below, measured.variance)
        value[rows[area]], weight[rows[area]] = np.clip(lo + (hi - lo) * estimates.share, lo, hi), estimates.weight
    kept = table.drop(columns=[name for name in (*MEASURED_COLUMNS, DRAW) if name in table])
    low, high = np.fmin(table["low"], value), np.fmax(table["high"], value)
    result = kept.assign(value=value, low=low, high=high)
    result.insert(list(result.columns).index("high") + 1, WEIGHT, weight)
    line = replace(answer.lines[0], noise95=float(np.fmax(high - value, value - low).max()))
    label = "" if towards == ALL_AREAS else str(plain_label(towards))
    return replace(answer, lines=(line,), shrunk=label, measured=None).attach(result)


def _means(table: object) -> tuple[Answer, Measurements]:
    """What a table says of itself, and its measurements; refuses all but means with two measured sums."""
    if not isinstance(table, pd.DataFrame):
        raise ColumnTypeError(f"shrink takes a table that pdrisk returned, not one of type {type(table).__name__}.")
    answer = Answer.from_attrs(table.attrs)
    if answer is None:
        raise ParameterError(NO_ANSWER)
    if answer.shrunk is not None:
        raise ParameterError("this table was shrunk already: pass the one that was asked for.")
    if not answer.grouped or answer.headings is not None or "value" not in table or len(answer.lines) != 1:
        raise ParameterError(
            "shrink takes the means of one column by areas, in the form that df.dprisk gives: ask "
            'df.dprisk.mean("x", by="area", ...).'
        )
    if answer.tables or answer.adjusted:
        raise ParameterError("this table has margins, to which shrunk cells would not add up: ask without margins=.")
    answer.check_numbers("shrink")
    measured = measurements_of(table)[0] if answer.lines[0].mechanism == MECHANISM else None
    if measured is None or not measured.law.bottom:
        raise ParameterError(
            f"{answer.lines[0].name} has no measured sums to shrink by: ask for a mean by the usual mechanism, "
            "two_sums, under a ledger without round_to."
        )
    return answer, measured


def _areas(table: pd.DataFrame, rows: IntArray, measured: Measurements, towards: Hashable) -> list[IntArray]:
    """Positions of the measurements of areas that are shrunk together; refuses too few."""
    known = np.flatnonzero(~measured.withheld)
    names = list(table.index.names)
    if isinstance(towards, str) and towards == ALL_AREAS:
        parts = [known]
    elif isinstance(towards, Hashable) and towards in names:
        if len(names) < 2:
            raise ParameterError(f"towards={shown(towards)} is the areas themselves: leave it out.")
        codes = pd.factorize(table.index.get_level_values(names.index(towards))[rows], use_na_sentinel=False)[0]
        parts = [known[codes[known] == code] for code in range(int(codes.max()) + 1)]
    else:
        raise ParameterError(f'towards is "all" or one of {", ".join(map(str, names))}, not {shown(towards)}.')
    if (fewest := min(map(len, parts))) < FEWEST:
        raise ParameterError(
            f"shrink estimates a common mean and spread from at least {FEWEST} areas that are shown, and here are "
            f"{fewest}: merge no areas for it, but use the table as it is."
        )
    return parts
