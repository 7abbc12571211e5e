"""Axes of the figures: risks from their priors, noise and eps by powers of ten, shares of the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdrisk._pictures.canvas import PALE, tick_label
from pdrisk.study.points import BESIDE, COIN, Panel, show_excess

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ZONE: dict[str, Any] = {"color": PALE, "alpha": 0.25, "linewidth": 0, "zorder": -1}  # where 0 is
LETTERS = 40  # that an axis is long
APART = 2  # letters between the labels of two ticks


def risk_axis(axes: Axes, panels: Sequence[Panel], *, vertical: bool) -> None:
    """Axis of risk from the prior up: even from a coin's 1/2, logarithmic from 1/n; one scale for a metric's panels."""
    axis, limits = (axes.yaxis, axes.set_ylim) if vertical else (axes.xaxis, axes.set_xlim)
    every = 1  # how many ticks to a label
    if show_excess(panels):
        least = min(panel.least_excess for panel in panels)
        zeros = [place - 0.5 for panel in panels for place in panel.zeros]
        bottom = min(zeros) * (2 * least) ** BESIDE if zeros else least
        (axes.set_yscale if vertical else axes.set_xscale)("function", functions=_excess(bottom))
        limits(0.5, 1.0)
        powers = range(-1, round(math.log10(least)) - 1, -1)
        every = max(1, math.ceil(len(powers) / (4 if vertical else 2)))
        zero = math.sqrt(min(zeros) * max(zeros)) if zeros else least
        ticks = [1.0, *(0.5 + 10.0**power for power in powers[:-1]), 0.5 + zero]
        texts = ["0.5", *(tick_label(10.0**power) for power in powers[:-1]), "0"]
        kept = [place == 0 or (place - 1) % every == every - 1 for place in range(len(ticks) - 1)]
        if zeros:
            (axes.axhspan if vertical else axes.axvspan)(0.5, 0.5 + least, **ZONE)
        axis.set_ticks(ticks, [text if keep else "" for text, keep in zip(texts, [*kept, True], strict=True)])
        return
    if panels[0].metric in COIN:
        limits(0.5, 1.0)
        ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if vertical else [0.5, 0.75, 1.0]
    else:
        start = min(panel.start for panel in panels)
        (axes.set_yscale if vertical else axes.set_xscale)("log")
        limits(min(start, 0.5), 1.0)
        lowest = math.ceil(math.log10(start) - 1e-9)
        every = max(1, math.ceil(-lowest / (5 if vertical else 2)))
        ticks = [10.0**power for power in range(0, lowest - 1, -1)]
    labels = [tick_label(tick) if place % every == 0 else "" for place, tick in enumerate(ticks)]
    axis.set_ticks(ticks, labels)
    axis.set_tick_params(which="minor", length=1.5, width=0.4, labelleft=False, labelbottom=False)


def _excess(least: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Transform between a risk and its excess over 1/2 on a logarithmic scale, and back."""
    return (
        lambda risk: np.log10(np.maximum(np.asarray(risk, dtype=float) - 0.5, least)),
        lambda power: 0.5 + 10.0 ** np.asarray(power, dtype=float),
    )


def places_of_zero(values: pd.Series, names: Sequence[Hashable]) -> dict[Hashable, float]:
    """Places of 0 on a `log_axis` of values of 0 or more, one for each name: from a tenth of the smallest other on."""
    above = values[values > 0]
    wide = math.log10(float(above.max()) / _smallest(above)) + 1 if len(above) else 1
    return {name: _smallest(above) / 10 ** (1 + at * wide * BESIDE) for at, name in enumerate(names)}


def log_axis(axes: Axes, values: pd.Series, zeros: Sequence[float] = ()) -> None:
    """Powers of ten as people write them, few enough to be read; and 0 in the middle of its places."""
    above = values[values > 0]
    low = _smallest(above)
    high = float(above.max()) if len(above) else low
    axes.set_xscale("log")
    edge = (min(zeros) * (low / high) ** BESIDE if zeros else low) / 1.15
    axes.set_xlim(edge, high * 1.15)
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    longest = max((len(tick_label(10.0**power)) for power in powers), default=0) + APART
    apart = longest / LETTERS * math.log10(high / low * 1.15**2)  # powers that the longest label needs
    every = max(1, math.ceil(len(powers) / 5), math.ceil(apart))
    ticks = [10.0**power for power in powers[::every]] or [float(f"{low:.2g}")]
    labels = [tick_label(tick) for tick in ticks]
    if zeros:
        ticks, labels = [math.sqrt(min(zeros) * max(zeros)), *ticks], ["0", *labels]
        axes.axvspan(edge, low / math.sqrt(10), **ZONE)
    axes.set_xticks(ticks, labels)
    axes.tick_params(axis="x", which="minor", length=1.5, width=0.4, labelbottom=False)


def _smallest(values: pd.Series) -> float:
    return float(values.min()) if len(values) else 1.0


def share_axis(axes: Axes, shares: pd.Series) -> None:
    """Shares in per cent, by powers of ten if there are small ones."""
    low = float(shares.min())
    if low > 0.05:
        axes.set_xlim(0, 1.02)
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        return
    axes.set_xscale("log")
    axes.set_xlim(low / 1.2, 1.15)
    ticks = [10.0**power for power in range(math.ceil(math.log10(low) - 0.1), 1)]
    axes.set_xticks(ticks, [f"{100 * tick:g}" for tick in ticks])
    axes.tick_params(axis="x", which="minor", length=1.5, width=0.4, labelbottom=False)
