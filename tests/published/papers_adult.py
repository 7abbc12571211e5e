"""Lee & Clifton 2012, section 5: the Adult tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from papers_numbers import Number, adult_folder
from papers_soep import value
from pdrisk._core.spread import Std
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.universe import Universe
from pdrisk.risk import epsilon_for

ROWS = 48_842
# Tables 3 and 4: smallest and largest value; S(f) of the mean; λ at ρ = 0.1 and at 0.001.
ADULT = {
    "age": (17, 90, "0.0015", "0.0007", "∞"),
    "education-num": (1, 16, "0.0003", "0.0006", "∞"),
    "capital-gain": (0, 99_999, "2.0474", "0.2198", "0.4445"),
    "capital-loss": (0, 4_356, "0.0892", "0.0144", "0.0606"),
    "hours-per-week": (1, 99, "0.0020", "0.0008", "∞"),
}
# Table 4, f(D): mean and standard deviation; they need the records themselves.
ANSWERS = {
    "age": ("38.6435", "13.7105"),
    "education-num": ("10.0780", "2.5709"),
    "capital-gain": ("1079.067", "7452.019"),
    "capital-loss": ("87.5023", "403.0045"),
    "hours-per-week": ("40.4223", "12.3914"),
}
CUT_OFF = {"38.6435", "10.0780", "1079.067", "40.4223", "2.5709", "403.0045"}
# Table 4, the standard deviation: S(f) as printed, and the λ it gives at ρ = 0.1 and at 0.001.
DEVIATIONS = {
    "age": (0.0019, "0.0009", "∞"),
    "education-num": (0.0251, "0.0491", "∞"),
    "capital-gain": (26.8833, "2.8858", "5.8364"),
    "capital-loss": (0.4623, "0.0748", "0.3139"),
    "hours-per-week": (0.0056, "0.0023", "∞"),
}


@lru_cache
def adult_people() -> pd.DataFrame:
    """Training and test part: the 48,842 people of the paper."""
    folder = adult_folder()
    assert folder is not None
    columns = dict(zip((0, 4, 10, 11, 12), ADULT, strict=True))
    parts = [
        pd.read_csv(folder / name, header=None, usecols=list(columns), skiprows=skipped)
        for name, skipped in (("adult.data", 0), ("adult.test", 1))
    ]
    return pd.concat(parts, ignore_index=True).rename(columns=columns).astype(np.float64)


def adult_answer(column: str, statistic: Statistic) -> float:
    records = adult_people()[column].to_numpy()
    lo, hi, *_ = ADULT[column]
    return value(statistic, records, Universe(lo, hi))


def adult_range(column: str) -> float:
    """Of the means of all worlds: a known rest, whatever it is, and each value that one more person can have."""
    lo, hi, *_ = ADULT[column]
    return (hi - lo) / ROWS


def adult_scale(column: str, rho: float, spread: float) -> float:
    lo, hi, *_ = ADULT[column]
    given = {"metric": "identifiability", "global_sensitivity": spread, "world_range": spread}
    return spread / float(epsilon_for(rho, 1 / (hi - lo + 1), **given))


def adult() -> Iterator[Number]:
    for column, (_, _, spread, *scales) in ADULT.items():
        yield Number(f"{column}: S of the mean", spread, partial(adult_range, column))
        for rho, printed in zip((0.1, 0.001), scales, strict=True):
            scale = partial(adult_scale, column, rho, adult_range(column))
            yield _scale(f"{column}, ρ = {rho:g}: λ of the mean", printed, scale)
        mean, deviation = ANSWERS[column]
        for name, statistic, printed in (("mean", Mean(), mean), ("standard deviation", Std(1), deviation)):
            answer = partial(adult_answer, column, statistic)
            note = "cut off, not rounded" if printed in CUT_OFF else ""
            yield Number(f"{column}: {name} f(D)", printed, answer, "file", note)
    exact = partial(adult_scale, "hours-per-week", 0.1, adult_range("hours-per-week"))
    yield Number("hours-per-week, ρ = 1/10, in the text: λ", "0.00084032", exact)
    for column, (spread, *scales) in DEVIATIONS.items():
        for rho, printed in zip((0.1, 0.001), scales, strict=True):
            scale = partial(adult_scale, column, rho, spread)
            yield _scale(f"{column}, ρ = {rho:g}: λ of the standard deviation, from the printed S", printed, scale)
    for power, printed in zip(
        (1, 4, 7, 10, 13, 16), ("11.513", "8.805", "6.669", "4.582", "2.502", "0.423"), strict=True
    ):
        yield Number(
            f"Figure 3, capital-gain, ρ = 2^-{power}: eps", printed,
            lambda power=power: float(epsilon_for(2.0**-power, 1 / 100_000)),
        )  # fmt: skip


def _scale(what: str, printed: str, ours: Callable[[], float]) -> Number:
    if printed == "∞":
        return Number(what, printed, ours, "infeasible", "ρ is below the prior")
    return Number(what, printed, ours)
