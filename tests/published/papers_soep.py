"""Allmann, Nuñez von Voigt & Tschorsch 2024, and Mehner, Nuñez von Voigt & Tschorsch 2021."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import numpy as np

from papers_numbers import Number
from pdrisk._core.order import Max, Median, Min
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.universe import Universe
from pdrisk.datasets import soep_like
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.risk import metrics, posterior

SOEP = Universe(1.0, 675.0)
PEOPLE = (3.0, 1.0, 10.0, 675.0, 17.0)
SAMPLE = (3.0, 1.0, 10.0, 17.0)
WITHOUT_ONE = (3.0, 10.0, 675.0, 17.0)


def value(statistic: Statistic, records: Sequence[float], universe: Universe = SOEP) -> float:
    return float(statistic.value(summary_of_one(np.array(records), universe, statistic.needs), universe)[0])


def local(statistic: Statistic, records: tuple[float, ...], universe: Universe = SOEP) -> float:
    summary = summary_of_one(np.array(records), universe, statistic.needs)
    return float(statistic.local_sensitivity(summary, universe)[0])


def risk(metric: str, statistic: Statistic, records: tuple[float, ...], universe: Universe = SOEP) -> float:
    summary = summary_of_one(np.array(records), universe, statistic.needs)
    found = metrics(
        1.0,
        summary.n,
        global_sensitivity=statistic.global_sensitivity(universe),
        local_sensitivity=statistic.local_sensitivity(summary, universe),
        world_range=statistic.world_range(summary, universe),
    )
    return float(found[metric][0])


def influence(statistic: Statistic, person: int) -> float:
    people = np.array(PEOPLE)
    return float(statistic.influence(people, summary_of_one(people, SOEP, statistic.needs), SOEP)[person])


def risk_of(statistic: Statistic, person: int) -> float:
    return float(posterior(influence(statistic, person) / statistic.global_sensitivity(SOEP)))


def table_one() -> Iterator[Number]:
    """The numbers that stand in its sentences."""
    yield Number("GS of the mean", "337", partial(Mean().global_sensitivity, SOEP))
    yield Number("mean of 3, 1, 10, 17", "7.75", partial(value, Mean(), SAMPLE))
    yield Number("mean with 675 added", "141.2", partial(value, Mean(), PEOPLE))
    yield Number("LS of the mean of 3, 1, 10, 17", "133.45", partial(local, Mean(), SAMPLE))
    yield Number("median of all five", "10", partial(value, Median(), PEOPLE))
    yield Number("median of 3, 1, 10, 17", "6.5", partial(value, Median(), SAMPLE))
    yield Number("median of 3, 10, 675, 17", "13.5", partial(value, Median(), WITHOUT_ONE))
    yield Number("LS of the median of all five", "3.5", partial(local, Median(), PEOPLE))
    yield Number("GS of the variance, ddof 1", "227138", partial(Var(1).global_sensitivity, SOEP))


def derived_of_table_one() -> Iterator[Number]:
    """What follows from its rules and equations."""
    for name, statistic, whole in (("median", Median(), "337"), ("min", Min(), "674"), ("max", Max(), "674")):
        yield Number(f"GS of the {name}", whole, partial(statistic.global_sensitivity, SOEP))
    for ddof, of_all, of_sample, least in (
        (0, "71267.36", "39.6875", "71227.6725"),
        (1, "89084.2", "52.916667", "89031.283333"),
    ):
        yield Number(f"variance of all five, ddof {ddof}", of_all, partial(value, Var(ddof), PEOPLE))
        yield Number(f"variance of 3, 1, 10, 17, ddof {ddof}", of_sample, partial(value, Var(ddof), SAMPLE))
        yield Number(f"LS of the variance of 3, 1, 10, 17, ddof {ddof}", least, partial(local, Var(ddof), SAMPLE))
    listed = {"mean": Mean(), "median": Median(), "variance, ddof 0": Var(0), "variance, ddof 1": Var(1)}
    shares = ("0.395994", "0.0103858", "0.627175", "0.391970")
    two = ("0.597725", "0.502596", "0.651849", "0.596757")
    many = ("0.331232", "0.251952", "0.384276", "0.330341")
    for (name, each), share, of_two, of_many in zip(listed.items(), shares, two, many, strict=True):
        whole = each.global_sensitivity(SOEP)
        yield Number(f"LS/GS of the {name}", share, lambda s=each, w=whole: local(s, SAMPLE) / w)
        yield Number(f"two_worlds of the {name}, eq. 6", of_two, partial(risk, "two_worlds", each, SAMPLE))
        yield Number(f"many_worlds of the {name}, eq. 4", of_many, partial(risk, "many_worlds", each, SAMPLE))
    moved = ("34.55", "35.05", "32.8", "133.45", "31.05")
    risks = ("0.5256", "0.5260", "0.5243", "0.5977", "0.5230")
    for person, (change, posteriors) in enumerate(zip(moved, risks, strict=True)):
        yield Number(f"mean, influence of {PEOPLE[person]:g}", change, partial(influence, Mean(), person))
        yield Number(f"mean, two_worlds of {PEOPLE[person]:g}", posteriors, partial(risk_of, Mean(), person))
    yield Number("max, two_worlds of 675", "0.7264", partial(risk_of, Max(), 3))
    yield Number("max, two_worlds of 17", "0.5", partial(risk_of, Max(), 4))


def corrections() -> Iterator[Number]:
    unit, small = Universe(0.0, 1.0), Universe(0.0, 4.0)
    yield Number(
        "LS of the variance (ddof 0) of 0, 0, 1, 1 in [0, 1]", "0.0278",
        partial(local, Var(0), (0.0, 0.0, 1.0, 1.0), unit), "corrected", "1/20: adding 0.5, not an extreme",
    )  # fmt: skip
    yield Number(
        "LS of the variance (ddof 1) of 0, 1, 3 in [0, 4]", "1.8333",
        partial(local, Var(1), (0.0, 1.0, 3.0), small), "corrected", "13/6: removing the 1",
    )  # fmt: skip
    yield Number(
        "GS of the variance, ddof 0", "227138",
        partial(Var(0).global_sensitivity, SOEP), "corrected", "a quarter, not half, of the squared width",
    )  # fmt: skip
    yield Number(
        "LS of the median of 675 alone", "0",
        partial(local, Median(), (675.0,)), "corrected", "adding 1, not the largest value",
    )  # fmt: skip


@lru_cache
def survey_figure(column: str, figure: str) -> float:
    series = soep_like(missing="nan")[column].dropna()
    return float(getattr(series, figure)())


def table_two() -> Iterator[Number]:
    table = {
        "hours": ("25238", "0", "18", "5.35", "7", "4.38"),
        "distance": ("14734", "1", "675", "15.07", "10", "19.90"),
        "income": ("16594", "0", "2700000", "3432.00", "2500", "21669.00"),
    }
    for column, row in table.items():
        for figure, printed in zip(("count", "min", "max", "mean", "median", "std"), row, strict=True):
            yield Number(f"{column}: {figure}", printed, partial(survey_figure, column, figure), "percent")


def worst_cases() -> Iterator[Number]:
    for eps, shown, printed in (
        (0.01, "0.01", "0.5025"), (0.1, "0.1", "0.524979"), (0.5, "0.5", "0.622459"), (math.log(2), "ln 2", "0.666667"),
        (1, "1", "0.731059"), (2, "2", "0.880797"), (5, "5", "0.993307"), (10, "10", "0.9999546"),
    ):  # fmt: skip
        yield Number(f"worst_case at eps {shown}", printed, lambda eps=eps: float(posterior(eps)))
