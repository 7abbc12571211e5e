"""Findings of the SOEP paper (Allmann et al. 2024, section 4.3), as checks on the result of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._digits import probability, rounded_down, rounded_up
from pdrisk._model.attributes import mark_exact
from pdrisk._model.plain import plain_label
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["findings"]

COLUMNS: Final = (
    "column", "statistic", "sample_size", "repetition", "eps", "n", "global_sensitivity", "local_sensitivity",
    "worst_case", "two_worlds", "many_worlds",
)  # fmt: skip
EVERY: Final = "all"  # in the column of statistics: whatever was asked
BY_FORMULA: Final = "by formula"
DATA: Final = "about these data"

ROUNDING: Final = 1e-9
USUAL: Final = 1.0  # the largest eps at which min is looked at: beyond, risks are near their ends
LARGE: Final = 10.0  # the largest eps at which many_worlds has to fall: beyond, most risks are near 1 in any sample
SMALL: Final = 0.1  # an eps at which every risk is near its prior
TENFOLD: Final = 10  # how far apart sample sizes must be to compare them
BOTTOM_HEAVY: Final = 0.25  # where the median of a bottom-heavy column lies at most, between the bounds
NEAR_HALF: Final = 0.2  # of the way from a coin to the worst case
LOW: Final = 0.55  # two-worlds risks that span the range
HIGH: Final = 0.95
KEPT: Final = 0.5  # of the excess over a coin, after a slight fall
STEEP: Final = 0.5  # the fall is at least that of 1 / n to this power
VANISHED: Final = 0.25  # of the largest effect of the sample size
NOTICEABLE: Final = 0.01  # an effect of the sample size on a risk


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of a finding in one sample; ``passed`` is None where the data cannot show it."""

    observed: str
    passed: bool | None


def _cannot(why: str) -> Evidence:
    return Evidence(f"not applicable: {why}", None)


@own_errors
def findings(result: pd.DataFrame) -> pd.DataFrame:
    """Curator only: whether the findings of the SOEP paper hold in the result of a study.

    Parameters
    ----------
    result : DataFrame
        As `pdrisk.study.run` returned it, with all statistics, sizes and eps that the findings are about; what is
        missing makes those "not applicable".

    Returns
    -------
    DataFrame
        One row for each finding and column: ``finding column statistic expected observed passed kind``. ``passed`` is
        NA where ``observed`` says "not applicable" and why. ``kind`` is "by formula" where no data can contradict the
        finding, so that its failure would be a mistake in the table or the program; "about these data" where data can.
        Risks are rounded up, as in ``0.5001``, and near 1 called ``> 0.9999``.

    Raises
    ------
    ParameterError
        If the frame is not the result of a study, or lacks a risk.

    Notes
    -----
    Section 4.3 of the paper. It gives no thresholds; those here are ours, and lenient. By formula:

    two_worlds_floor
        The two-worlds risk is never below 0.5.
    many_worlds_prior
        At a small eps the many-worlds risk is near 1/n: at most exp(eps)/n, at least 1/n.
    worst_case_bound
        The worst case is at least the other two, for two people or more.
    equal_sensitivities
        Where LS = GS, the two-worlds risk is the worst case.

    About these data, by means over the samples:
    max_spans
        The two-worlds risk of max spans the whole range, at most 0.55 to at least 0.95, in a bottom-heavy column (its
        median in the lowest quarter of the bounds).
    min_near_half
        In such a column that of min stays near 0.5: its mean over samples rises at most a fifth of the way to the worst
        case, at the largest eps up to 1.
    many_worlds_falls
        The many-worlds risk of max falls steeply from the smallest to the largest sample size, at least like 1/sqrt(n),
        at every eps up to 10 ("even for a large value") at which it could do otherwise. At a small eps it cannot: it
        is between 1/n and exp(eps)/n.
    two_worlds_falls_slightly
        That of two worlds, for max, falls only slightly: at least half of its excess over 0.5 is left, at every eps at
        which one of both sizes reaches 0.55. It does not rise either, by more than 0.01.
    middle_window
        The sample size matters to the two-worlds risk of max at middle eps only: at the smallest and at the largest eps
        a quarter as much at most as where it matters most. Where LS = 0 in the largest sample, as when several people
        share the maximum, this is false: no eps makes that risk rise. (The paper says it of both metrics. At a small
        eps the many-worlds risk is 1/n, where nothing but the size matters.)

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like(missing="nan")
    >>> result = pdrisk.study.run(survey, "distance", repetitions=20)
    >>> table = pdrisk.study.findings(result)
    >>> table.loc[3, ["finding", "statistic", "observed"]].tolist()
    ['max_spans', 'max', '0.5001 to > 0.9999']
    """
    if not isinstance(result, pd.DataFrame):
        raise ColumnTypeError(f"findings takes the result of pdrisk.study.run, not {type(result).__name__}.")
    if lacking := [name for name in COLUMNS if name not in result.columns]:
        raise ParameterError(
            f"findings needs the columns {', '.join(lacking)}: pass the result of pdrisk.study.run, with all of its "
            "risks (metrics)."
        )
    if "mechanism" in result.columns and not (result["mechanism"] == "laplace").all():
        raise ParameterError('the findings are about Laplace noise: pass a study that ran with mechanism="laplace".')
    if not len(result):
        raise ParameterError("there is nothing in this result to find: pass it as pdrisk.study.run returned it.")
    rows = [
        (finding.name, column, finding.statistic, finding.expected, seen.observed, seen.passed, finding.kind)
        for column, part, median_at in _columns(result)
        for finding in FINDINGS
        for seen in [finding.seen(part, median_at)]
    ]
    table = pd.DataFrame(rows, columns=["finding", "column", "statistic", "expected", "observed", "passed", "kind"])
    table["passed"] = table["passed"].astype("boolean")
    return mark_exact(table)


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim about a column and how to see it.

    Attributes
    ----------
    name, expected : str
    statistic : str
        The one it is about, or `EVERY`.
    kind : str
        `BY_FORMULA` or `DATA`.
    look : callable
        Of the rows of one column and that statistic.
    bottom_heavy : bool
        Whether it is about bottom-heavy columns only.
    """

    name: str
    statistic: str
    expected: str
    kind: str
    look: Callable[[pd.DataFrame], Evidence]
    bottom_heavy: bool = False

    def seen(self, rows: pd.DataFrame, median_at: float | None) -> Evidence:
        """Whether the claim holds in the rows of a column, whose median lies there between its bounds."""
        if self.statistic != EVERY:
            rows = rows[rows["statistic"] == self.statistic]
        if not len(rows):
            return _cannot(f"{self.statistic} was not asked for")
        if self.bottom_heavy and median_at is None:
            return _cannot("the result does not say any more where the median lies (attrs)")
        if self.bottom_heavy and median_at is not None and median_at > BOTTOM_HEAVY:
            return _cannot(f"the column is not bottom-heavy, its median lies at {median_at:.2f} of the range")
        return self.look(rows)


def _columns(result: pd.DataFrame) -> Iterator[tuple[Hashable, pd.DataFrame, float | None]]:
    """Each column with its rows, and where its median lies between its bounds, if that is known."""
    study: Any = result.attrs.get("study")
    told = study.get("columns", []) if isinstance(study, dict) else []
    for column, rows in result.groupby("column", sort=False, dropna=False):
        yield column, rows, next((each["median_at"] for each in told if each["column"] == plain_label(column)), None)


def _two_worlds_floor(rows: pd.DataFrame) -> Evidence:
    lowest = float(rows["two_worlds"].to_numpy().min())
    return Evidence(f"lowest {probability(lowest) if lowest >= 0.5 else repr(lowest)}", lowest >= 0.5)


def _many_worlds_prior(rows: pd.DataFrame) -> Evidence:
    eps = float(rows["eps"].min())
    if eps > SMALL:
        return _cannot(f"the smallest eps, {eps:g}, is above {SMALL:g}")
    at = rows[rows["eps"] == eps]
    times = (at["many_worlds"] * at["n"]).to_numpy()
    low, high = float(times.min()), float(times.max())
    # posterior(L, p) <= p exp(L), and L <= eps
    passed = low >= 1 - ROUNDING and high <= math.exp(eps) * (1 + ROUNDING)
    lowest = low if low < 1 - ROUNDING else max(low, 1.0)
    return Evidence(f"{rounded_down(lowest, 6)}/n to {rounded_up(high, 6)}/n at eps {eps:g}", passed)


def _worst_case_bound(rows: pd.DataFrame) -> Evidence:
    several = rows[rows["n"] >= 2]
    if not len(several):
        return _cannot("every sample is one person")
    margin = several["worst_case"] - np.maximum(several["two_worlds"], several["many_worlds"])
    lowest = float(margin.to_numpy().min())
    return Evidence(f"smallest margin {rounded_down(lowest, 2)}", lowest >= -ROUNDING)


def _max_spans(rows: pd.DataFrame) -> Evidence:
    possible = float(rows["worst_case"].min()), float(rows["worst_case"].max())
    if possible[0] > LOW or possible[1] < HIGH:
        return _cannot(f"with these eps no risk could span the range; the worst case is {_to(*possible)}")
    low, high = float(rows["two_worlds"].min()), float(rows["two_worlds"].max())
    return Evidence(_to(low, high), low <= LOW and high >= HIGH)


def _min_near_half(rows: pd.DataFrame) -> Evidence:
    usual = rows[rows["eps"] <= USUAL]
    if not len(usual):
        return _cannot(f"no eps is {USUAL:g} or less")
    at = usual[usual["eps"] == usual["eps"].max()]
    worst, mean = float(at["worst_case"].max()), float(at["two_worlds"].mean())
    if worst < LOW:
        return _cannot("at the largest eps up to 1 every risk is near 0.5")
    return Evidence(
        f"mean {probability(mean)}, worst case {probability(worst)}", mean - 0.5 <= NEAR_HALF * (worst - 0.5)
    )


@dataclass(frozen=True, slots=True)
class Ends:
    """The mean risks at the smallest and at the largest sample size, by eps."""

    sizes: tuple[int, int]
    small: pd.DataFrame
    large: pd.DataFrame


def _ends(rows: pd.DataFrame) -> Ends | Evidence:
    least, most = int(rows["sample_size"].min()), int(rows["sample_size"].max())
    if most < TENFOLD * least:
        return _cannot(f"sample sizes {least} to {most} are not ten times apart")
    means = rows.groupby(["sample_size", "eps"])[["two_worlds", "many_worlds"]].mean()
    small, large = (means.loc[[size]].droplevel("sample_size") for size in (least, most))
    small, large = small.align(large, join="inner")
    return Ends((least, most), small, large)


def _many_worlds_falls(rows: pd.DataFrame) -> Evidence:
    rows = rows[rows["eps"] <= LARGE]
    if not len(rows):
        return _cannot(f"no eps is {LARGE:g} or less")
    ends = _ends(rows)
    if isinstance(ends, Evidence):
        return ends
    least, most = ends.sizes
    # In the small sample it is 1/n at least, in the large one this at most, so only at some eps could it stay.
    highest = 1 / (1 + (most - 1) * np.exp(-ends.large.index.to_numpy(dtype=float)))
    open_to_data = highest * least > (least / most) ** STEEP
    if not open_to_data.any():
        return _cannot("with these sizes and eps it falls steeply whatever the data are")
    small, large = ends.small.loc[open_to_data, "many_worlds"], ends.large.loc[open_to_data, "many_worlds"]
    power = np.log(small / large) / math.log(most / least)
    at = power.index[int(power.to_numpy().argmin())]
    slowest = math.floor(1000 * float(power[at]) + ROUNDING) / 1000 if power.notna().all() else math.nan
    told = f"{probability(small[at])} to {probability(large[at])} at eps {at:g}, like n^{0 - slowest:.3g}"
    return Evidence(told, bool((power >= STEEP - ROUNDING).all()))


def _two_falls(rows: pd.DataFrame) -> Evidence:
    ends = _ends(rows)
    if isinstance(ends, Evidence):
        return ends
    visible = np.maximum(ends.small["two_worlds"], ends.large["two_worlds"]) >= LOW
    small, large = ends.small.loc[visible, "two_worlds"], ends.large.loc[visible, "two_worlds"]
    if not len(small):
        return _cannot(f"neither the smallest nor the largest samples reach a risk of {LOW:g}")
    rise = (large - small).to_numpy()
    # Means over samples are random: a hundredth up is no rise.
    if rises := bool(rise.max() > NOTICEABLE):
        at = small.index[int(rise.argmax())]
        what = "it rises"
    else:
        kept = ((large - 0.5) / (small - 0.5)).to_numpy()
        at = small.index[int(kept.argmin())]
        what = f"{math.floor(100 * float(kept.min()) + ROUNDING)} % of the excess over 0.5 is left"
    told = f"{probability(small[at])} to {probability(large[at])} at eps {at:g}: {what}"
    return Evidence(told, not rises and bool(kept.min() >= KEPT))


def _middle_window(rows: pd.DataFrame) -> Evidence:
    means = rows.groupby(["sample_size", "eps"])["two_worlds"].mean().unstack()
    if len(means) < 2 or means.shape[1] < 3:
        return _cannot("it takes two sample sizes and three eps")
    if (smallest := float(rows["eps"].min())) > SMALL:
        return _cannot(f"the smallest eps, {smallest:g}, is above {SMALL:g}")
    if isinstance(ends := _ends(rows), Evidence):
        return ends
    effect = (means.max() - means.min()).sort_index()
    peak, first, last = float(effect.max()), float(effect.iloc[0]), float(effect.iloc[-1])
    if peak < NOTICEABLE:
        return _cannot(f"the sample size moves the risk by {probability(peak)} at most")
    told = (
        f"{probability(first)} at eps {effect.index[0]:g}, {probability(peak)} at {effect.idxmax():g}, "
        f"{probability(last)} at {effect.index[-1]:g}"
    )
    if last > VANISHED * peak:
        share = rows["local_sensitivity"] / rows["global_sensitivity"]
        if share[rows["sample_size"] == means.index.max()].max() == 0:
            return Evidence(f"{told}; in the largest sample LS = 0, and no eps makes its risk rise", False)
        if float(means.iloc[:, -1].min()) < HIGH:
            return _cannot(f"{told}; at the largest eps not every risk is near 1 yet")
    return Evidence(told, first <= VANISHED * peak and last <= VANISHED * peak)


def _equal_sensitivities(rows: pd.DataFrame) -> Evidence:
    equal = rows[rows["local_sensitivity"] == rows["global_sensitivity"]]
    if not len(equal):
        return _cannot("no sample has LS = GS")
    farthest = float((equal["two_worlds"] - equal["worst_case"]).abs().to_numpy().max())
    return Evidence(f"farthest {rounded_up(farthest, 2)} in {len(equal)} rows", farthest <= ROUNDING)


def _to(low: float, high: float) -> str:
    return f"{probability(low)} to {probability(high)}"


FINDINGS: Final = (
    Finding("two_worlds_floor", EVERY, "two_worlds is never below 0.5", BY_FORMULA, _two_worlds_floor),
    Finding(
        "many_worlds_prior", EVERY, "many_worlds tends to 1/n, its prior, for small eps", BY_FORMULA, _many_worlds_prior
    ),
    Finding(
        "worst_case_bound", EVERY, "worst_case is at least two_worlds and many_worlds", BY_FORMULA, _worst_case_bound
    ),
    Finding("max_spans", "max", "two_worlds spans the range on bottom-heavy data", DATA, _max_spans, bottom_heavy=True),
    Finding(
        "min_near_half",
        "min",
        "two_worlds stays near 0.5 on bottom-heavy data",
        DATA,
        _min_near_half,
        bottom_heavy=True,
    ),
    Finding("many_worlds_falls", "max", "many_worlds falls steeply with the sample size", DATA, _many_worlds_falls),
    Finding(
        "two_worlds_falls_slightly", "max", "two_worlds falls only slightly with the sample size", DATA, _two_falls
    ),
    Finding("middle_window", "max", "the sample size matters in a middle window of eps only", DATA, _middle_window),
    Finding("equal_sensitivities", EVERY, "where LS = GS, two_worlds is worst_case", BY_FORMULA, _equal_sensitivities),
)
