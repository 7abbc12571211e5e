"""Figures of a study, as in the SOEP paper: as wide as a printed column, readable in grey. Curator only.

Each function takes the frame of `pdrisk.study.run` and returns a matplotlib ``Figure``. `pdrisk.study.texts` has a
function of the same name that gives the same numbers as text. matplotlib is needed: ``pip install "pdrisk[plots]"``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._pictures.canvas import (
    COLOURS,
    DASHES,
    EDGE,
    INK,
    LINE,
    MARKERS,
    PALE,
    WORDS,
    apart,
    breadth,
    canvas,
    legible,
    shortened,
    styled,
    under,
)
from pdrisk.study.axes import log_axis, places_of_zero, risk_axis, share_axis
from pdrisk.study.points import NAMES, Panel, by_epsilon, by_proportion, by_query, noise_and_risk, show_excess

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_End = tuple[float, float, str, str, int]  # where a curve ends, its name, colour and rank; -1 is the worst case

ROW: Final = 1.9  # inches of a panel of curves with its words
TALL: Final = 1.1  # and of its axes, at least: what constrained layout leaves of it
BAR: Final = 0.15  # and of a row of `risk_by_query`
SHORT: Final = 16  # characters of a name
BOXES: Final = "□: a letter that this font lacks"
KEY: Final = "line: all risks; bar: the middle half; diamond: median"
SAMPLING: Final = "dotted: the sampling error of a query (95 %), of all values"
EXACT: Final = "0, a column each: 95 of 100 answers are exact"
WORST: Final = "grey: the worst case, with the marks of its queries"


@own_errors
def risk_by_query(
    result: pd.DataFrame, *, metrics: Any = ("many_worlds", "two_worlds"), eps: float | list[float] | None = None
) -> Figure:
    """Curator only: spread of the risks of each query and column, over all samples and eps (the paper's Figure 1).

    A thin line spans the smallest to the largest risk, a bar the middle half, and a mark shows the median. Every sample
    size and every eps has the same weight.

    ``result``: as `pdrisk.study.run` returned it.
    ``metrics``: risk metrics, one panel each, side by side.
    ``eps``: by default all.
    """
    panels = by_query(result, metrics=metrics, eps=eps)
    across = len({panel.metric for panel in panels})
    blocks = [panels[at : at + across] for at in range(0, len(panels), across)]
    notes = [KEY, *_notes(panels)]
    heights = [BAR * len(row[0].points) for row in blocks]
    figure = canvas(sum(heights) + 0.6 * len(blocks) + 0.2 + LINE * len(notes))
    grid = figure.subplots(len(blocks), across, squeeze=False, height_ratios=heights)
    for place, row in enumerate(blocks):
        for at, panel in enumerate(row):
            axes = styled(grid[place, at])
            _spread(axes, panel)
            column = [other[at] for other in blocks]
            risk_axis(axes, column, vertical=False)
            names = [_short(name) for name in panel.points["statistic"]]
            axes.set_yticks(range(len(names)), names if at == 0 else [""] * len(names))
            axes.tick_params(axis="y", length=0)
            if at == 0:
                axes.set_title(_short(panel.title), loc="left", pad=4, fontweight="bold", **WORDS)
            if place == len(blocks) - 1:
                axes.set_xlabel(_risk(column), labelpad=2, **WORDS)
    under(figure, notes)
    _cut_titles(figure)
    return figure


@own_errors
def risk_by_proportion(
    result: pd.DataFrame,
    *,
    statistic: str = "max",
    metrics: Any = ("many_worlds", "two_worlds"),
    eps: float | list[float] | None = None,
) -> Figure:
    """Curator only: risk against the share of the values in the sample, a curve for each eps (Figure 2).

    The curves are medians over the samples; a band holds nine tenths of them.

    ``result``: as `pdrisk.study.run` returned it.
    ``statistic``: name of one statistic in it.
    ``metrics``: risk metrics, one panel each.
    ``eps``: at most six; by default six of those in the result, from the smallest to the largest.
    """
    panels = by_proportion(result, statistic=statistic, metrics=metrics, eps=eps)
    panels = [panel.apart_at_zero("eps") for panel in panels]
    across = min(len({panel.metric for panel in panels}), 2)
    losses = sorted({float(loss) for panel in panels for loss in panel.points["eps"]})
    figure, places = _grid(panels, across)
    shades = _shades(losses)
    named: dict[Axes, list[_End]] = {}
    for panel, (axes, last) in zip(panels, places, strict=True):
        ends = named.setdefault(axes, [])
        for rank, loss in enumerate(sorted(panel.points["eps"].unique().tolist())):
            curve, colour = panel.points[panel.points["eps"] == loss], shades[loss]
            axes.fill_between(
                curve["proportion"], curve["lower"], curve["upper"], color=colour, alpha=0.15, linewidth=0
            )
            _curve(axes, curve["proportion"], curve["median"], colour, rank)
            ends.append(_end(curve, "proportion", f"{loss:g}", colour, rank))
        share_axis(axes, panel.points["proportion"])
        _words(axes, panel, xlabel="sample, % of values" if last else "")
    _name_curves(figure, named, head="eps")
    return figure


@own_errors
def risk_by_epsilon(result: pd.DataFrame, *, metric: str = "two_worlds", proportion: float | None = None) -> Figure:
    """Curator only: risk against eps, a curve for each query, and the worst case as a line.

    ``result``: as `pdrisk.study.run` returned it, with at most six statistics.
    ``metric``: a risk metric.
    ``proportion``: Share of the values; the nearest sample size is shown. By default the largest.
    Returns: the curves are medians over the samples; a band holds nine tenths of them.
    """
    panels = [panel.apart_at_zero() for panel in by_epsilon(result, metric=metric, proportion=proportion)]
    figure, places = _grid(panels, 1)
    named: dict[Axes, list[_End]] = {}
    for panel, (axes, last) in zip(panels, places, strict=True):
        worst = panel.points.drop_duplicates("eps").sort_values("eps")
        _worst_curve(axes, worst, "eps")
        named[axes] = ends = [_worst_end(worst, "eps")]
        for rank, (name, curve) in enumerate(panel.points.groupby("statistic", sort=False)):
            dense = _between(curve.sort_values("eps"))
            _band(axes, dense, "eps", COLOURS[rank])
            _curve(axes, curve["eps"], curve["median"], COLOURS[rank], rank, line=(dense["eps"], dense["median"]))
            ends.append(_end(dense, "eps", str(name), COLOURS[rank], rank))
        log_axis(axes, worst["eps"])
        share = panel.points["proportion"].iloc[0]
        _words(axes, panel, xlabel="eps, the privacy loss" if last else "", more=f", {_percent(share)} of the values")
    _name_curves(figure, named)
    return figure


@own_errors
def noise_against_risk(
    result: pd.DataFrame,
    *,
    metric: str = "two_worlds",
    proportion: float | None = None,
    units: Mapping[Hashable, str] | None = None,
) -> Figure:
    """Curator only: cost of accuracy, the half-width of the noise against the risk, a curve for each query.

    Each mark is an eps. A dotted line is the sampling error of a query about all values: the noise of marks to the
    right of it is smaller. Thin grey lines with hollow marks are the worst case, which holds whatever the data are: one
    for all queries of the same global sensitivity.

    ``result``: as `pdrisk.study.run` returned it, with at most six statistics.
    ``metric``: a risk metric.
    ``proportion``: Share of the values; the nearest sample size is shown. By default the largest.
    ``units``: units for the axes, as in ``{"distance": "km"}``; the variance has a panel of its own, in km².
    """
    panels = noise_and_risk(result, metric=metric, proportion=proportion, units=units)
    panels = [panel.apart_at_zero() for panel in panels]
    key = [WORST, *([SAMPLING] if any(panel.sampling for panel in panels) else [])]
    key += [EXACT] if any((panel.points["noise95"] == 0).any() for panel in panels) else []
    figure, places = _grid(panels, 1, key=key)
    named: dict[Axes, list[_End]] = {}
    order = list(dict.fromkeys(name for panel in panels for name in panel.points["statistic"]))
    for panel, (axes, _) in zip(panels, places, strict=True):
        errors = {order.index(name): error for name, error in panel.sampling.items() if name in order and error > 0}
        widths = pd.Series([*panel.points["noise95"], *errors.values()])
        exact = panel.points.loc[panel.points["noise95"] == 0, "statistic"]
        zeros = places_of_zero(widths, list(dict.fromkeys(exact)))  # a column for each, so that none lies on another
        drawn = panel.noise_from_zero(zeros)
        ends = named.setdefault(axes, [])
        for _, same in drawn.points.groupby(drawn.points.groupby("statistic")["noise95"].transform("min")):
            worst = same.drop_duplicates("eps").sort_values("noise95", ascending=False)
            _worst_curve(axes, worst, "noise95", width=0.9)
            ranks = [order.index(name) for name in same["statistic"].unique()]
            for place, rank in enumerate(ranks):  # in turn, so that none lies on another
                some = worst.iloc[place :: len(ranks)] if len(worst) >= len(ranks) else worst
                hollow: dict[str, Any] = {"color": "white", "markeredgecolor": PALE, "markeredgewidth": 0.8}
                axes.plot(some["noise95"], some["worst_case"], MARKERS[rank], markersize=3.4, **hollow)
            if not ends:
                ends.append(_worst_end(worst, "noise95"))
        for name, curve in drawn.points.groupby("statistic", sort=False):
            rank = order.index(name)
            dense = _between(curve.sort_values("eps"))
            line = (dense["noise95"], dense["median"])
            _curve(axes, curve["noise95"], curve["median"], COLOURS[rank], rank, line=line)
            ends.append(_end(dense, "noise95", str(name), COLOURS[rank], rank))
        log_axis(axes, widths, list(zeros.values()))
        axes.invert_xaxis()
        for rank, error in errors.items():
            axes.axvline(error, color=COLOURS[rank], linestyle=(0, (1, 1.5)), linewidth=0.9, zorder=0)
        share = f", {_percent(drawn.points['proportion'].iloc[0])} of the values"
        _words(axes, drawn, more=share, xlabel=f"noise ± (95 %), {_short(drawn.unit, 24)}; less →")
    _name_curves(figure, named)
    return figure


def _grid(panels: Sequence[Panel], across: int, *, key: Sequence[str] = ()) -> tuple[Figure, list[tuple[Axes, bool]]]:
    """Panels in rows, and whether each is in the last one."""
    number, notes = len(panels), [*key, *_notes(panels)]
    rows = math.ceil(number / across)
    figure = canvas(rows * ROW + LINE * len(notes) + 0.25)
    grid = figure.subplots(rows, across, squeeze=False).ravel()
    for axes in grid[number:]:
        axes.remove()
    under(figure, notes)
    return figure, [(styled(axes), at + across >= number) for at, axes in enumerate(grid[:number])]


def _notes(panels: Sequence[Panel]) -> list[str]:
    """Notes below all panels, line by line."""
    parts = dict.fromkeys(panel.part for panel in panels if panel.part)
    drawn = {str(name) for panel in panels for name in (panel.title, panel.unit, *panel.points.get("statistic", ()))}
    boxes = [] if all(legible(name) == name for name in drawn) else [BOXES]
    return [*boxes, *parts, panels[0].note]


def _curve(axes: Axes, x: pd.Series, y: pd.Series, colour: str, rank: int, line: Any = None) -> None:
    """Marks at the points, and a line through them."""
    axes.plot(*((x, y) if line is None else line), color=colour, linestyle=DASHES[rank], linewidth=1.1)
    axes.plot(x, y, MARKERS[rank], color=colour, markersize=3.4, markeredgewidth=0.5, markeredgecolor="white")


def _between(curve: pd.DataFrame) -> pd.DataFrame:
    """A curve between its eps; of Laplace noise exactly: the log odds of every risk are linear in eps."""
    known = curve["eps"].to_numpy()
    dense = np.unique(np.concatenate([np.geomspace(known[0], known[-1], 200), known]))
    columns = {"eps": dense}
    for name in ("lower", "median", "upper"):
        odds = curve[name].clip(upper=1 - 1e-15).to_numpy()
        columns[name] = 1 / (1 + np.exp(-np.interp(dense, known, np.log(odds) - np.log1p(-odds))))
    if "noise95" in curve:
        noise = curve["noise95"].clip(lower=np.finfo(float).tiny).to_numpy()
        columns["noise95"] = np.exp(np.interp(np.log(dense), np.log(known), np.log(noise)))
        zero = np.interp(dense, known, curve["is_zero"].to_numpy(dtype=float)) if "is_zero" in curve else dense * 0
        columns["noise95"][(zero > 0) & (zero < 1)] = np.nan  # no way leads to 0 on such an axis
    return pd.DataFrame(columns)


def _worst_curve(axes: Axes, worst: pd.DataFrame, x: str, width: float = 2.2) -> None:
    points = worst.sort_values("eps")
    dense = _between(points.assign(lower=0.5, upper=0.5, median=points["worst_case"]))
    axes.plot(dense[x], dense["median"], color=PALE, linewidth=width, solid_capstyle="round")


def _band(axes: Axes, curve: pd.DataFrame, x: str, colour: str) -> None:
    axes.fill_between(curve[x], curve["lower"], curve["upper"], color=colour, alpha=0.15, linewidth=0)


def _end(curve: pd.DataFrame, x: str, name: str, colour: str, rank: int) -> _End:
    return float(curve[x].iloc[-1]), float(curve["median"].iloc[-1]), name, colour, rank


def _worst_end(worst: pd.DataFrame, x: str) -> _End:
    return float(worst[x].iloc[-1]), float(worst["worst_case"].iloc[-1]), "worst case", PALE, -1


def _words(axes: Axes, panel: Panel, *, xlabel: str, more: str = "") -> None:
    """Label of the risk axis, and titles."""
    risk_axis(axes, [panel], vertical=True)
    place = axes.get_subplotspec()
    first = place is not None and place.is_first_col()
    axes.set_title(" ", loc="left", pad=17, **WORDS)
    # Left out of the layout, which would narrow the panel for a wide line; a blank title keeps the height of both.
    near: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "in_layout": False}
    axes.annotate(_short(panel.heading, 40) if first else "", (0, 1), (0, 17), fontweight="bold", **near, **WORDS)
    axes.annotate(_risk([panel]) + more, (0, 1), (0, 6), **near, **WORDS)
    axes.set_xlabel(xlabel, labelpad=2, **WORDS)


def _risk(panels: Sequence[Panel]) -> str:
    """Label of a shared risk axis."""
    return NAMES[panels[0].metric] + (" − 0.5" if show_excess(panels) else "")


def _name_curves(figure: Figure, ends: Mapping[Axes, list[_End]], head: str = "") -> None:
    """The name of each curve beside its end, and one line of text apart."""
    from matplotlib.transforms import ScaledTranslation

    line = LINE / TALL
    for axes, curve_ends in ends.items():
        beside = [axes.transAxes + ScaledTranslation(x / 72, 0, figure.dpi_scale_trans) for x in (7, 10, 14)]
        to_axes = axes.transData + axes.transAxes.inverted()
        places = apart([float(to_axes.transform(end[:2])[1]) for end in curve_ends], 0.93 * line, 0.0, 1.0)
        for (x, y, name, colour, rank), place in zip(curve_ends, places, strict=True):
            arrow = {"arrowstyle": "-", "color": PALE, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}
            axes.annotate(
                "", (x, y), (1, place), textcoords=beside[0], arrowprops=arrow, annotation_clip=False, zorder=0
            )
            if rank >= 0:
                axes.plot(
                    1, place, MARKERS[rank], color=colour, markersize=3.6, transform=beside[1],
                    markeredgewidth=0.3, markeredgecolor=INK, clip_on=False,
                )  # fmt: skip
            axes.text(1, place, _short(name), va="center", transform=beside[2 if rank >= 0 else 0], **WORDS)
        if head:
            axes.text(1, max(places) + 0.45 * line, head, va="bottom", transform=beside[2], **WORDS)
    _cut_titles(figure)


def _cut_titles(figure: Figure) -> None:
    """Shorten titles that would go beyond the figure: the layout leaves their width out, which depends on the font."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    for title in figure.findobj(Text):
        if isinstance(title, Text) and title.get_fontweight() == "bold":
            text = title.get_text()
            letters = breadth(text)
            while letters > 1 and title.get_window_extent().x1 > figure.bbox.x1 - EDGE * figure.dpi:
                letters -= 1
                title.set_text(shortened(text, letters))


def _spread(axes: Axes, panel: Panel) -> None:
    """One row for each query, the first on top."""
    rows = panel.points
    at = np.arange(len(rows))
    axes.hlines(at, rows["lowest"], rows["highest"], color=PALE, linewidth=0.8)
    axes.hlines(at, rows["lower"], rows["upper"], color=COLOURS[0], linewidth=4.5, alpha=0.65)
    axes.plot(rows["median"], at, "D", color="white", markeredgecolor=INK, markersize=3.6, clip_on=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)


def _shades(losses: list[float]) -> dict[float, str]:
    """From light to dark, as in grey."""
    light, dark = np.array([0x8F, 0xC1, 0xE8]), np.array([0x05, 0x23, 0x55])
    steps = np.linspace(0, 1, len(losses)) if len(losses) > 1 else np.array([1.0])
    mixed = (np.rint(light + step * (dark - light)).astype(int).tolist() for step in steps)
    return {loss: "#{:02x}{:02x}{:02x}".format(*colour) for loss, colour in zip(losses, mixed, strict=True)}


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _short(name: object, letters: int = SHORT) -> str:
    return shortened(str(name), letters)
