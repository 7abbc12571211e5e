"""Texts of the options of all statistics: their documentation, and what to write for options of pandas."""

from __future__ import annotations

import re

OPTIONS_DOC = """
Other Parameters
----------------
eps : float
    Privacy loss to spend, in nats; finite and above 0. Give exactly one of ``eps``, ``risk`` and ``success``.
risk : float
    Instead of ``eps``, the highest belief that an attacker may reach who starts at ``prior`` (1/2 unless given). It
    lies in (0, 1) and above the prior. The ``worst_case`` of a release is always that of a prior of 1/2. ``metric`` can
    only be ``"worst_case"``: an eps from any other metric would depend on the data.
success : float
    Instead of ``eps``, how often an attacker may be right about whether a person is in the data who gives even odds, in
    (1/2, 1): by all answers of this call together, whose eps is the largest that keeps to it. It is a mean over noise,
    where ``risk`` bounds the belief after any. What a rule of a ledger costs besides comes on top.
bounds : (lo, hi) or "column"
    The range that values can have, in the unit of the column; values outside count as its ends. Of dates and times two
    dates, also as text. Not needed where bounds are declared with ``df.dprisk.declare``. ``"column"`` takes the
    smallest and the largest value of the data, which is not differential privacy.
where : str, pd.col or Polars expression, boolean mask or callable
    Filter: which rows to use, decided row by row. A comparison with a missing value is unknown, and so is its negation;
    a row counts where the condition is known to be true. ``"x != 9"`` leaves out rows without x: write ``"x != 9 or
    x.isna()"`` to keep them.
by, keys : column or list of columns, and the public list of their keys
    Groups, one answer for each key. Keys of several columns are tuples, the rows of a frame with these columns, or a
    dict with a list for each column, which stands for all combinations, whether they occur or not. In a dict, columns
    that are no groups here are not used. Keys may be dates as text, such as ``"2020-01-31"``. Records with a missing
    key are left out, unless None is listed. ``"categories"`` declares that the categories of a categorical are public,
    ``"observed"`` that the keys which occur are public, a missing one included. ``"private"`` shows the keys that
    enough people share, which is decided by chance, for half of ``eps`` and for ``delta``. Not for a series.
delta : float, optional
    Needed with ``keys="private"``, and only there: the probability with which the list of groups may show that
    somebody is in the data. At most 0.001; choose far less than one over the number of people, such as 1e-6.
least_group : int, optional
    With ``keys="private"``: groups of fewer people are never shown.
mechanism : {"auto", "laplace", "geometric", "two_sums", "bernstein", "bernstein_products", "exponential", ...}
    Noise mechanism. ``"auto"`` takes the most accurate one for each statistic, or for several statistics of one column
    together. ``"laplace"``, that of the SOEP paper, answers every statistic of one column.
person : column or list of columns, optional
    Column of people's ids, where a person may have several rows: all rows of a person are protected together. With
    several columns, as in ``["pid", "day"]``, the unit is each combination of their values: a person's day. Rows
    without an id are left out. A `Dataset` declares it once.
per_person : {"mean", "sum", "min", "max", "count", "any", "all", "one"}, optional
    How the rows of a person become one number, in each group, before the statistic is computed over people. ``bounds``
    are then those of that number. ``"one"`` declares that each person has one row; if somebody has more, one of them
    is chosen.
rows : int, optional
    Instead of ``per_person``: at most so many rows of a person count, chosen at random: in all groups together, or with
    ``groups`` in each group. The noise grows by this factor.
groups : int, optional
    In how many groups of ``by`` a person counts. The noise grows by this factor. Not needed with ``rows``, or if the
    columns of ``by`` are ``constant``.
unit : "row", optional
    Protect each single row, not a person.
constant : list of columns, optional
    Columns with the same value in all rows of a person.
unit_label : str, optional
    What texts call one person, such as ``"household"``; without it they say the name of the column.
weights : column or False, optional
    For ``count``, ``sum``, ``mean``, ``proportion``, ``var``, ``std``, ``median``, ``quantile`` and ``change``: how
    much each row counts, as in surveys.
    ``bounds`` are a dict then, as in ``{"income": (0, 9000), "w": (0, 8)}``: weights above the declared largest one are
    trimmed at it, and the noise grows with it. A person loses ``eps`` times her weight over the largest. That weights
    were made without looking at these records is taken on your word.
step : 1, optional
    For ``sum``, ``median``, ``quantile``, ``min`` and ``max``: declares that all values are whole numbers. Then the
    answer is one, too.
interval : bool
    Get ``low`` and ``high`` also for answers by ``"exponential"``, which then becomes ``"exponential_interval"``: it
    chooses the answer and the ends together, so that the answer has about twice the error. For ``min`` and ``max`` one
    end is a bound. Other mechanisms give an interval in any case, at no cost.
clip : "private", optional
    For ``mean`` and ``sum`` if nobody knows good bounds: half of ``eps`` finds round numbers within the declared bounds
    that few values exceed, and values are clipped there. `Release.clip` tells them. The answer and its interval are
    those of the clipped values; nothing says how much clipping changed. All groups share both points. The mechanism
    is ``"clipped_sums"``.
neighbours : {"add-or-remove-one", "replace-one"}
    ``"replace-one"``, for ``sum``, ``mean`` and ``proportion`` of all rows, declares that the number of rows is public
    and that no value is missing. The noise then hides the value of each person, but not who is in the data. It excludes
    ``where``, ``by`` and a ledger. Replacing a record is removing one and adding one, so eps 2 promises here what eps 1
    promises otherwise.
max_noise95 : float, optional
    Refuse the request, before anything is paid, unless public facts say that ``noise95`` of the answer will be at most
    this, whatever the values are: always for mechanisms whose noise does not depend on the records, and, with
    ``n_at_least``, 99 times in 100 for those whose noise depends on the number of records. A rule of a ledger that
    rounds answers comes on top.
n_at_least : int, optional
    For ``max_noise95`` and ``mechanism="two_stage"``: declares that an answer, or the answer for each group, is about
    at least so many rows. It is not compared with the data.
curator : bool
    Also show the curator's numbers: the sensitivity and the risks of the answer in these very data. They depend on the
    data without noise. Under a ledger only analysts whom its policy names may see them.
measured : bool
    Add columns to tables with what was drawn, before it was cut to the range of possible answers: ``measured``, or
    ``measured_0``, ``measured_1``, ... of statistics that are made of several numbers, and ``draw``, which tells the
    noise of each row from that of others. Sums of ``measured`` are unbiased; see `Release.measured`.
ledger : Ledger, optional
    The budget that pays before the data is read. Default: the ledger of the ``with pdrisk.Ledger(...)`` block around
    the call, if there is one.
fresh : bool
    Pay and draw a new answer even if the ledger remembers one to this question.

Returns
-------
Release
    The noisy value, its 95 % noise interval and its risk.
DataFrame
    Instead, with ``by`` or from ``agg``: one row for each key or statistic, with columns ``value low high eps
    worst_case``. ``low`` and ``high`` are the ends of the 95 % noise interval. They are NaN for answers by
    ``"exponential"`` without ``interval=True``; `Release.rank95` tells how many records such an answer may be from
    its rank.

Raises
------
ParameterError
    If the request is wrong, as far as this can be known without the data; the text says what to write instead.
QueryFailedError
    If anything fails after reading began. Its text is always the same, so it tells nothing about the data.
"""

KEYS_DECIDE = "the groups are those that keys= lists, in its order, whoever is in them: leave it out"
#: Options of pandas that mean nothing here, and why.
OF_PANDAS: dict[str, str] = {
    **dict.fromkeys(("observed", "sort"), KEYS_DECIDE),
    "dropna": "missing values are never used, and rows with a missing key are in no group: leave it out, or list None "
    "among the keys",
    "skipna": "missing values are never used: leave it out",
    "as_index": "groups are the index of the answer: leave it out, and write .reset_index() after the call",
    "group_keys": "groups are the index of the answer: leave it out",
    "numeric_only": "only the columns you name are used: leave it out",
    "axis": "statistics are always over rows: leave it out",
    "level": "groups are columns: write by=, after df.reset_index() for a level of the index",
    "normalize": "shares with intervals are those of .count(by='g', normalize=True, eps=..., keys=...)",
    "range": "bins= lists the edges, or divides bounds= evenly: write bounds=(lo, hi)",
    "density": "normalize=True gives shares, and plot() draws bins of several widths by their areas",
    "cumulative": "write .cumsum() on the values of the answer, whose noise adds up",
    "ascending": "the largest number comes first: write .sort_values('value') after the call",
    "bins": "bins are those of hist('age', bins=[0, 18, 65, 100], eps=...)",
    "margins_name": "margins are called pdrisk.ALL: write .rename(index={pdrisk.ALL: 'Total'}) on what you export",
    "method": "corr is Pearson's: leave it out",
    "min_periods": "noise says how much a number of few records is worth: leave it out",
    **dict.fromkeys(("include", "exclude"), "describe takes the columns: name them"),
    "interpolation": "a noisy quantile is one of many public points: leave it out",
    "percentiles": "describe has the quartiles; others are quantile(q=[0.1, 0.9])",
    "margins": "margins are for count, sum, mean, agg and crosstab, whose tables add up: leave it out",
    **dict.fromkeys(("epsilon", "privacy_budget", "budget"), "write eps="),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise has no seed: whoever knew it could take the noise away"),
    "groupby": "write by=",
    "missing": "codes for missing answers are declared before, as in df.dprisk.declare(missing={'age': [-1, -9]})",
    "schema": "a schema is declared before, as in df.pipe(schema.validate) or df.dprisk.declare(schema)",
    "lower": "write bounds=(lo, hi)",
    "upper": "write bounds=(lo, hi)",
}  # fmt: skip


def documented(text: str) -> str:
    """The documentation of a statistic, with the options of all; what it says of its own result holds."""
    if "\nReturns\n" not in text:
        return f"{text}\n{OPTIONS_DOC}"
    return text + "\n" + re.sub(r"Returns\n.*?(?=Raises\n)", "", OPTIONS_DOC, flags=re.DOTALL)
