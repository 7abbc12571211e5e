"""Evidence of the findings of the SOEP paper in the rows of one column: one function for each, and its thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from pdrisk._digits import probability, rounded_down, rounded_up

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
CALM: Final = 0.6  # a mean two-worlds risk that is low
QUERIES: Final = ("mean", "median", "min", "max", "var", "var(ddof=0)")  # the paper's


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of a finding in one sample; ``passed`` is None where the data cannot show it."""

    observed: str
    passed: bool | None


def cannot(why: str) -> Evidence:
    """Evidence that the data cannot give, with the reason."""
    return Evidence(f"not applicable: {why}", None)


def two_worlds_floor(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk is a coin's at least."""
    lowest = float(rows["two_worlds"].to_numpy().min())
    return Evidence(f"lowest {probability(lowest) if lowest >= 0.5 else repr(lowest)}", lowest >= 0.5)


def many_worlds_prior(rows: pd.DataFrame) -> Evidence:
    """Whether the many-worlds risk is near 1/n at the smallest eps."""
    eps = float(rows["eps"].min())
    if eps > SMALL:
        return cannot(f"the smallest eps, {eps:g}, is above {SMALL:g}")
    at = rows[rows["eps"] == eps]
    times = (at["many_worlds"] * at["n"]).to_numpy()
    low, high = float(times.min()), float(times.max())
    # posterior(L, p) <= p exp(L), and L <= eps
    passed = low >= 1 - ROUNDING and high <= math.exp(eps) * (1 + ROUNDING)
    lowest = low if low < 1 - ROUNDING else max(low, 1.0)
    return Evidence(f"{rounded_down(lowest, 6)}/n to {rounded_up(high, 6)}/n at eps {eps:g}", passed)


def worst_case_bound(rows: pd.DataFrame) -> Evidence:
    """Whether the worst case is at least the other risks."""
    several = rows[rows["n"] >= 2]
    if not len(several):
        return cannot("every sample is one person")
    margin = several["worst_case"] - np.maximum(several["two_worlds"], several["many_worlds"])
    lowest = float(margin.to_numpy().min())
    return Evidence(f"smallest margin {rounded_down(lowest, 2)}", lowest >= -ROUNDING)


def max_spans(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk of max spans the whole range."""
    possible = float(rows["worst_case"].min()), float(rows["worst_case"].max())
    if possible[0] > LOW or possible[1] < HIGH:
        return cannot(f"with these eps no risk could span the range; the worst case is {_to(*possible)}")
    low, high = float(rows["two_worlds"].min()), float(rows["two_worlds"].max())
    return Evidence(_to(low, high), low <= LOW and high >= HIGH)


def min_near_half(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk of min stays near a coin's."""
    usual = rows[rows["eps"] <= USUAL]
    if not len(usual):
        return cannot(f"no eps is {USUAL:g} or less")
    at = usual[usual["eps"] == usual["eps"].max()]
    worst, mean = float(at["worst_case"].max()), float(at["two_worlds"].mean())
    if worst < LOW:
        return cannot("at the largest eps up to 1 every risk is near 0.5")
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
        return cannot(f"sample sizes {least} to {most} are not ten times apart")
    means = rows.groupby(["sample_size", "eps"])[["two_worlds", "many_worlds"]].mean()
    small, large = (means.loc[[size]].droplevel("sample_size") for size in (least, most))
    small, large = small.align(large, join="inner")
    return Ends((least, most), small, large)


def many_worlds_falls(rows: pd.DataFrame) -> Evidence:
    """Whether the many-worlds risk of max falls steeply with the sample size."""
    rows = rows[rows["eps"] <= LARGE]
    if not len(rows):
        return cannot(f"no eps is {LARGE:g} or less")
    ends = _ends(rows)
    if isinstance(ends, Evidence):
        return ends
    least, most = ends.sizes
    # In the small sample it is 1/n at least, in the large one this at most, so only at some eps could it stay.
    highest = 1 / (1 + (most - 1) * np.exp(-ends.large.index.to_numpy(dtype=float)))
    open_to_data = highest * least > (least / most) ** STEEP
    if not open_to_data.any():
        return cannot("with these sizes and eps it falls steeply whatever the data are")
    small, large = ends.small.loc[open_to_data, "many_worlds"], ends.large.loc[open_to_data, "many_worlds"]
    power = np.log(small / large) / math.log(most / least)
    at = power.index[int(power.to_numpy().argmin())]
    slowest = math.floor(1000 * float(power[at]) + ROUNDING) / 1000 if power.notna().all() else math.nan
    measured = f"{probability(small[at])} to {probability(large[at])} at eps {at:g}, like n^{0 - slowest:.3g}"
    return Evidence(measured, bool((power >= STEEP - ROUNDING).all()))


def two_falls(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk of max falls slightly with the sample size."""
    ends = _ends(rows)
    if isinstance(ends, Evidence):
        return ends
    visible = np.maximum(ends.small["two_worlds"], ends.large["two_worlds"]) >= LOW
    small, large = ends.small.loc[visible, "two_worlds"], ends.large.loc[visible, "two_worlds"]
    if not len(small):
        return cannot(f"neither the smallest nor the largest samples reach a risk of {LOW:g}")
    rise = (large - small).to_numpy()
    # Means over samples are random: a hundredth up is no rise.
    if rises := bool(rise.max() > NOTICEABLE):
        at = small.index[int(rise.argmax())]
        what = "it rises"
    else:
        kept = ((large - 0.5) / (small - 0.5)).to_numpy()
        at = small.index[int(kept.argmin())]
        what = f"{math.floor(100 * float(kept.min()) + ROUNDING)} % of the excess over 0.5 is left"
    measured = f"{probability(small[at])} to {probability(large[at])} at eps {at:g}: {what}"
    return Evidence(measured, not rises and bool(kept.min() >= KEPT))


def middle_window(rows: pd.DataFrame) -> Evidence:
    """Whether the sample size matters at middle eps only."""
    means = rows.groupby(["sample_size", "eps"])["two_worlds"].mean().unstack()
    if len(means) < 2 or means.shape[1] < 3:
        return cannot("it takes two sample sizes and three eps")
    if (smallest := float(rows["eps"].min())) > SMALL:
        return cannot(f"the smallest eps, {smallest:g}, is above {SMALL:g}")
    if isinstance(ends := _ends(rows), Evidence):
        return ends
    effect = (means.max() - means.min()).sort_index()
    peak, first, last = float(effect.max()), float(effect.iloc[0]), float(effect.iloc[-1])
    if peak < NOTICEABLE:
        return cannot(f"the sample size moves the risk by {probability(peak)} at most")
    measured = (
        f"{probability(first)} at eps {effect.index[0]:g}, {probability(peak)} at {effect.idxmax():g}, "
        f"{probability(last)} at {effect.index[-1]:g}"
    )
    if last > VANISHED * peak:
        share = rows["local_sensitivity"] / rows["global_sensitivity"]
        if share[rows["sample_size"] == means.index.max()].max() == 0:
            return Evidence(f"{measured}; in the largest sample LS = 0, and no eps makes its risk rise", False)
        if float(means.iloc[:, -1].min()) < HIGH:
            return cannot(f"{measured}; at the largest eps not every risk is near 1 yet")
    return Evidence(measured, first <= VANISHED * peak and last <= VANISHED * peak)


def equal_sensitivities(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk is the worst case where LS = GS."""
    equal = rows[rows["local_sensitivity"] == rows["global_sensitivity"]]
    if not len(equal):
        return cannot("no sample has LS = GS")
    farthest = float((equal["two_worlds"] - equal["worst_case"]).abs().to_numpy().max())
    return Evidence(f"farthest {rounded_up(farthest, 2)} in {len(equal)} rows", farthest <= ROUNDING)


def max_varies(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk of max varies more than that of other queries."""
    spread = _of_queries(rows).groupby("statistic")["two_worlds"].std(ddof=0)
    if "max" not in spread.index or len(spread) < 2:
        return cannot("it takes max and another query of the paper")
    others = spread.drop("max")
    measured = f"max {spread['max']:.3g}, {others.idxmax()} {others.max():.3g}"
    return Evidence(measured, bool(spread["max"] > others.max()))


def min_low(rows: pd.DataFrame) -> Evidence:
    """Whether the two-worlds risk of min is low on average."""
    if (possible := float(rows["worst_case"].mean())) <= CALM:
        return cannot(f"with these eps every query stays below {CALM:g}, the worst case is {probability(possible)}")
    mean = float(rows["two_worlds"].mean())
    return Evidence(f"mean {probability(mean)}, mean worst case {probability(possible)}", mean <= CALM)


def subgroups(rows: pd.DataFrame) -> Evidence:
    """Whether small samples have greater two-worlds risks than large ones."""
    by_query = _by_query(rows, "two_worlds")
    if isinstance(by_query, Evidence):
        return by_query
    more = by_query["small"] - by_query["large"]
    at = more.idxmin() if more.min() < -ROUNDING else more.idxmax()
    if more.abs().max() < NOTICEABLE:
        return cannot(f"the sample size moves no risk by {NOTICEABLE:g}")
    means = by_query.to_dict("index")[at]
    measured = f"{at}: {_to(means['small'], means['large'])} from the smallest to the largest samples"
    return Evidence(measured, bool(more.min() >= -ROUNDING and more.max() >= NOTICEABLE))


def sensitivity_falls(rows: pd.DataFrame) -> Evidence:
    """Whether most queries are less locally sensitive on large samples."""
    by_query = _by_query(rows, "local_sensitivity")
    if isinstance(by_query, Evidence):
        return by_query
    fallen = by_query.index[by_query["large"] < by_query["small"]]
    measured = f"{len(fallen)} of {len(by_query)}" + (f": {', '.join(map(str, fallen))}" if len(fallen) else "")
    return Evidence(measured, 2 * len(fallen) > len(by_query))


def _of_queries(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["statistic"].isin(QUERIES)]


def _by_query(rows: pd.DataFrame, value: str) -> pd.DataFrame | Evidence:
    """Means of each query of the paper over all samples and eps, in the smallest and in the largest sample size."""
    rows = _of_queries(rows)
    if not len(rows):
        return cannot("no query of the paper was asked for")
    if isinstance(ends := _ends(rows), Evidence):
        return ends
    means = rows.groupby(["sample_size", "statistic"])[value].mean()
    return pd.DataFrame({"small": means.loc[ends.sizes[0]], "large": means.loc[ends.sizes[1]]})


def _to(low: float, high: float) -> str:
    return f"{probability(low)} to {probability(high)}"
