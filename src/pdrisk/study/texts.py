"""Figures of a study as tables of text with the same numbers; each function takes what its figure takes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from pdrisk._answer.answers.formatting import number, thousands
from pdrisk._core.foreign import own_errors
from pdrisk._digits import probability
from pdrisk.study.points import COIN, FLOOR, NAMES, Panel, by_epsilon, by_proportion, by_query, noise_and_risk

RISKS = ("lowest", "lower", "median", "upper", "highest", "worst_case")
PLAIN = {"statistic": "query", "sample_size": "people", "worst_case": "worst case", "proportion": "share",
    "above": "median above 0.5",
}  # fmt: skip


@own_errors
def risk_by_query(
    result: pd.DataFrame, *, metrics: Any = ("many_worlds", "two_worlds"), eps: float | list[float] | None = None
) -> str:
    """Table of `figures.risk_by_query`; half of the risks lie between lower and upper."""
    return _text("Risk by query and variable, over all samples and eps", by_query(result, metrics=metrics, eps=eps))


@own_errors
def risk_by_proportion(
    result: pd.DataFrame,
    *,
    statistic: str = "max",
    metrics: Any = ("many_worlds", "two_worlds"),
    eps: float | list[float] | None = None,
) -> str:
    """Table of `figures.risk_by_proportion`; nine of ten samples lie between lower and upper."""
    panels = by_proportion(result, statistic=statistic, metrics=metrics, eps=eps)
    return _text(f"Risk of {statistic} by the share of people in the sample", panels)


@own_errors
def risk_by_epsilon(result: pd.DataFrame, *, metric: str = "two_worlds", proportion: float | None = None) -> str:
    """Table of `figures.risk_by_epsilon`; nine of ten samples lie between lower and upper."""
    return _text("Risk by eps", by_epsilon(result, metric=metric, proportion=proportion))


@own_errors
def noise_against_risk(
    result: pd.DataFrame,
    *,
    metric: str = "two_worlds",
    proportion: float | None = None,
    units: Mapping[Hashable, str] | None = None,
) -> str:
    """Table of `figures.noise_against_risk`; nine of ten samples lie between lower and upper."""
    panels = noise_and_risk(result, metric=metric, proportion=proportion, units=units)
    return _text("What accuracy costs: the half-width of the noise (95 %), and the risk", panels)


def _text(title: str, panels: list[Panel]) -> str:
    lines = [
        title,
        *dict.fromkeys(f"({panel.note})" for panel in panels),
        *dict.fromkeys(f"({panel.part})" for panel in panels if panel.part),
    ]
    for panel in panels:
        lines += ["", f"{panel.heading}: {NAMES[panel.metric]}, from {_prior(panel)}"]
        lines += _table(panel)
        if panel.sampling:
            errors = ", ".join(f"{name} {thousands(error)}" for name, error in panel.sampling.items())
            lines.append(f"  sampling error ±, {panel.unit} (95 %, of all values): {errors}")
    return "\n".join(lines)


def _prior(panel: Panel) -> str:
    if panel.metric in COIN:
        return "a prior of 0.5"
    least, most = map(probability, panel.priors)
    return f"a prior of 1/n, {least}" + (f" (the largest sample) to {most}" if most != least else "")


def _table(panel: Panel) -> list[str]:
    """Aligned columns: words to the left, numbers to the right."""
    columns = []
    points = panel.points
    if panel.shows_excess:
        points = points.assign(above=(points["median"] - 0.5).clip(lower=0.0))
    for name in points.columns:
        head = f"noise ±, {panel.unit}" if name == "noise95" else PLAIN.get(name, name)
        cells = [_cell(name, value) for value in points[name]]
        width = max(map(len, [head, *cells]))
        columns.append([f"{cell:<{width}}" if name == "statistic" else f"{cell:>{width}}" for cell in [head, *cells]])
    return ["  " + "  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def _cell(name: str, value: Any) -> str:
    if name in RISKS:
        return probability(value)
    if name == "above":
        return "0" if value <= FLOOR else probability(value)
    if name == "proportion":
        return f"{100 * value:.3g} %"
    if name == "sample_size":
        return f"{value:,}"
    if name == "noise95":
        return thousands(value)
    return number(value) if name == "eps" else str(value)
