"""Charts of noisy answers with their noise intervals: points, bars, histograms and lines, drawn with matplotlib."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.release import Release
from pdrisk._answer.tables.table_cells import LINES, PublishedCells, cells_of, label_of
from pdrisk._core.foreign import own_errors, shown
from pdrisk._pictures.canvas import (
    COLOURS,
    DASHES,
    INK,
    LINE,
    MARKERS,
    PALE,
    SIZE,
    WORDS,
    canvas,
    legible,
    shortened,
    styled,
)
from pdrisk._pictures.canvas import tick_label as label_of_tick
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: Final = ("points", "bars", "line", "histogram")
OF_PANDAS: Final = {"bar": "bars", "barh": "bars", "hist": "histogram"}  # names that pandas has for them
LETTERS: Final = 24  # of a key beside an axis
DAY: Final = re.compile(r"\d{4}(-\d\d){1,2}")
YEARS: Final = (1000, 2999)


@own_errors
def plot(answer: Release | pd.DataFrame | Any, *, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot of noisy answers with their 95 % noise intervals, drawn with matplotlib.

    Parameters
    ----------
    answer : Release, sum or quotient of releases, or DataFrame
        As pdrisk returned it: groups, several statistics, a crosstab, a histogram, an answer of `sql`; also of Polars
        or Arrow. Columns of the curator are not drawn.
    kind : {"points", "bars", "line", "histogram"}, optional
        By default a histogram of bins, a line over days and years, bars of counts and shares, and points of everything
        else. The names that pandas has for bars and histograms (``"bar"``, ``"barh"``, ``"hist"``) mean the same.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own, which a notebook shows, and ``plot(...).figure.savefig``
        saves. Make several with ``plt.subplots(1, 2, layout="constrained")``: without a layout there is no room for
        numbers beside the bars.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    NotPublicError
        If the bounds came from the data.
    ParameterError
        If matplotlib is not installed, the kind is unknown or does not fit, or the frame is no answer.

    Notes
    -----
    A hollow mark has no interval: none is known, as for a median without ``interval=True``. Numbers beside points and
    bars are rounded to what the noise leaves, as by `rounded`; a dash stands for a missing one. Bars of bins of several
    widths show the number per unit of the column. The sampling error is not drawn.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 5000})
    >>> axes = pdrisk.plot(frame.dprisk.count(eps=1, by="sex", keys=["f", "m"]))
    >>> axes.get_xlabel()
    'count, with 95 % noise intervals'
    """
    if isinstance(kind, str):
        kind = OF_PANDAS.get(kind, kind)
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        raise ParameterError(f"kind can be {', '.join(map(repr, KINDS))}, not {shown(kind)}.")
    cells = cells_of(answer)
    if not len(cells.values):
        raise ParameterError("this table has no rows to draw.")
    across, series = _split(cells)
    first = cells.keys[across[0]] if len(across) == 1 else None
    fitting = _kind(cells, first)
    if kind == "histogram" and (first is None or not _are_bins(first)):
        raise ParameterError('kind="histogram" needs bins along its axis, as hist returns them: draw kind="bars".')
    chosen = kind or fitting
    places, ticks = _places(cells, across, chosen)
    groups = _series(cells, series)
    upright = chosen in ("points", "bars")
    lines = len(ticks) * max(len(groups), 1) + (0 if len(groups) < 2 else 1 + math.ceil(len(groups) / 2))  # of a legend
    axes = _axes(ax, (lines * LINE * 1.15 + 0.75) if upright else 2.2)
    inches = axes.get_window_extent().height / axes.figure.dpi
    is_alone = ax is None or len(axes.figure.axes) == 1 or axes.figure.get_layout_engine() is not None
    has_room = is_alone and (ax is None or inches / (len(ticks) * len(groups) or 1) >= LINE)
    every = 1 if ax is None else max(1, math.ceil(len(ticks) * LINE / inches))
    if chosen == "histogram":
        _histogram(axes, cells, list(cells.keys[across[0]]), groups)
    elif chosen == "line":
        _line(axes, cells, places, groups)
    else:
        _rows(axes, cells, places, groups, chosen == "bars", has_room)
    _dress(axes, cells, chosen, across, ticks, places, named=series, has_legend=len(groups) > 1, every=every)
    return axes


def _axes(ax: Any, height: float) -> Axes:
    if ax is None:
        figure = canvas(max(height, 1.0))
        from pdrisk._pictures.notebook_figure import NotebookAxes  # without matplotlib there is no canvas

        return styled(figure.add_subplot(axes_class=NotebookAxes))
    if not hasattr(ax, "errorbar") or not hasattr(ax, "figure"):
        raise ColumnTypeError(f"ax is an Axes of matplotlib, not of type {type(ax).__name__}.")
    return styled(ax)


def _split(cells: PublishedCells) -> tuple[list[str], str | None]:
    """Keys along the axis, and the one that colours tell apart: of statistics, else of the fewest labels."""
    names = list(cells.keys.columns)
    if len(names) == 1:
        return names, None
    sizes = {name: cells.keys[name].nunique(dropna=False) for name in names}
    free = [name for name in names if sizes[name] <= len(COLOURS) and not _is_ordered(cells.keys[name])]
    free = free or [names[-1]] * (sizes[names[-1]] <= len(COLOURS))
    if not free:
        return names, None
    coloured = LINES if LINES in free else min(reversed(free), key=sizes.__getitem__)
    return [name for name in names if name != coloured], coloured


def _kind(cells: PublishedCells, keys: pd.Series | None) -> str:
    if keys is not None and _are_bins(keys):
        return "histogram"
    if keys is not None and _dated(keys) is not None:
        return "line"
    return "bars" if cells.is_count else "points"


def _are_bins(keys: pd.Series) -> bool:
    return all(
        isinstance(key, pd.Interval) and isinstance(key.left, float | int) and np.isfinite([key.left, key.right]).all()
        for key in keys
    )


def _is_ordered(keys: pd.Series) -> bool:
    return _are_bins(keys) or _dated(keys) is not None


def _dated(keys: pd.Series) -> Any:
    """Keys as days or years along an axis; None if they are neither, or there is one alone."""
    if keys.nunique() < 2 or keys.isna().any():
        return None
    if all(isinstance(key, (int, np.integer)) and YEARS[0] <= key <= YEARS[1] for key in keys):
        return keys.to_numpy(dtype=np.float64)
    days = [str(key) if isinstance(key, pd.Period) else key for key in keys]
    if all(hasattr(key, "year") or (isinstance(key, str) and DAY.fullmatch(key)) for key in days):
        try:
            return pd.to_datetime(pd.Series(days)).to_numpy(dtype="datetime64[us]")
        except (ValueError, TypeError):  # 2020-13
            return None
    return None


def _places(cells: PublishedCells, across: list[str], kind: str) -> tuple[Any, list[str]]:
    """Place of each cell along the axis of keys, and the texts of the places."""
    if kind == "line" and len(across) == 1 and (dated := _dated(cells.keys[across[0]])) is not None:
        return dated, []
    texts = [", ".join(map(label_of, keys)) for keys in cells.keys[across].itertuples(index=False, name=None)]
    codes, labels = pd.factorize(np.array(texts, dtype=object))
    return codes.astype(np.float64), list(labels)


def _told_apart(labels: list[str]) -> list[str]:
    """Labels short enough to stand beside an axis: cut behind, or in the middle where they begin alike."""
    cut_labels = [shortened(label, LETTERS) for label in labels]
    if len(set(cut_labels)) == len(set(labels)):
        return cut_labels
    half = LETTERS // 2 - 1
    return [
        label if whole == label else shortened(f"{legible(label)[:half]}…{legible(label)[-half:]}", LETTERS)
        for whole, label in zip(cut_labels, labels, strict=True)
    ]


def _series(cells: PublishedCells, name: str | None) -> list[tuple[str, Any]]:
    """Text and cells of each colour."""
    if name is None:
        return [("", np.arange(len(cells.values)))]
    codes, labels = pd.factorize(cells.keys[name].map(label_of))
    return [(str(label), np.flatnonzero(codes == at)) for at, label in enumerate(labels)]


def _reach(cells: PublishedCells, group: Any) -> Any:
    """Reach of the intervals to both sides, 0 where there is none; an adjusted value may lie outside its own."""
    ends = np.array([cells.values[group] - cells.low[group], cells.high[group] - cells.values[group]])
    return np.maximum(np.nan_to_num(ends), 0)


def _marks(axes: Axes, x: Any, y: Any, known: Any, at: int) -> None:
    """Marks: hollow ones where no interval is known."""
    style: Any = {"marker": MARKERS[at], "linestyle": "none", "markersize": 3.5, "color": COLOURS[at], "zorder": 3}
    axes.plot(x[known], y[known], **style)
    axes.plot(x[~known], y[~known], markerfacecolor="white", **style)


def _rows(axes: Axes, cells: PublishedCells, places: Any, groups: Any, bars: bool, has_room: bool) -> None:
    """Points or bars, a row for each, with the rounded value at the right."""
    thick = 0.8 / len(groups)
    texts = cells.texts
    for at, (label, group) in enumerate(groups):
        y = places[group] + (at - (len(groups) - 1) / 2) * thick
        x, reach, known = cells.values[group], _reach(cells, group), ~np.isnan(cells.high[group] - cells.low[group])
        if bars:
            some = ~np.isnan(x)
            axes.barh(y[some], x[some], thick * 0.85, color=COLOURS[at], alpha=0.45, label=label, linewidth=0)
        else:
            axes.plot([], [], marker=MARKERS[at], linestyle="none", markersize=3.5, color=COLOURS[at], label=label)
            _marks(axes, x, y, known, at)
        some = known & ~np.isnan(x)
        colour = INK if bars else COLOURS[at]
        axes.errorbar(x[some], y[some], xerr=reach[:, some], fmt="none", ecolor=colour, elinewidth=1, capsize=1.5)
        for row, cell in zip(y.tolist(), group.tolist(), strict=True) if has_room else ():
            axes.annotate(
                texts[cell], (1, row), (4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                va="center", ha="left", annotation_clip=False, **WORDS,
            )  # fmt: skip


def _line(axes: Axes, cells: PublishedCells, places: Any, groups: Any) -> None:
    for at, (label, group) in enumerate(groups):
        order = group[np.argsort(places[group], kind="stable")]
        x, y, known = places[order], cells.values[order], ~np.isnan(cells.high[order] - cells.low[order])
        axes.plot(x, y, linestyle=DASHES[at], linewidth=1, color=COLOURS[at], label=label, marker=MARKERS[at], ms=0.1)
        _marks(axes, x, y, known & ~np.isnan(y), at)
        some = known & ~np.isnan(y)
        reach = _reach(cells, order)[:, some]
        axes.errorbar(x[some], y[some], yerr=reach, fmt="none", ecolor=COLOURS[at], elinewidth=1, capsize=1.5)


def _widths(bins: list[Any]) -> Any:
    """Widths of bins, by which numbers are divided; 1 where all are equally wide."""
    widths = np.array([float(interval.right) - float(interval.left) for interval in bins])
    return np.ones(len(widths)) if np.allclose(widths, widths[0]) else widths


def _histogram(axes: Axes, cells: PublishedCells, bins: list[Any], groups: Any) -> None:
    left, right = (np.array([float(getattr(interval, end)) for interval in bins]) for end in ("left", "right"))
    unit = _widths(bins)
    for at, (label, group) in enumerate(groups):
        height, reach = cells.values[group] / unit[group], _reach(cells, group) / unit[group]
        wide, known = right[group] - left[group], ~np.isnan(cells.high[group] - cells.low[group]) & ~np.isnan(height)
        look: Any = {"color": COLOURS[at], "alpha": 0.45, "linewidth": 0} if len(groups) == 1 else {
            "fill": False, "edgecolor": COLOURS[at], "linestyle": DASHES[at], "linewidth": 1,
        }  # fmt: skip
        some = ~np.isnan(height)
        axes.bar(left[group][some], height[some], wide[some], align="edge", label=label, **look)
        centre = left[group] + wide * (at + 1) / (len(groups) + 1)
        ink = INK if len(groups) == 1 else COLOURS[at]
        axes.errorbar(
            centre[known], height[known], yerr=reach[:, known], fmt="none", ecolor=ink, elinewidth=1, capsize=1.5
        )


def _dress(
    axes: Axes, cells: PublishedCells, kind: str, across: list[str], ticks: list[str], places: Any, *,
    named: str | None, has_legend: bool, every: int,
) -> None:  # fmt: skip
    """Axes, their names and the legend."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    known = ~np.isnan(cells.high - cells.low)
    by = ", ".join(name for name in across if name != LINES)
    unit = kind == "histogram" and bool((_widths(list(cells.keys[across[0]])) != 1).any())
    title = shortened(f"{cells.title} per unit of {by}" if unit else cells.title, 40)
    noise = "with 95 % noise intervals" if known.any() else "noise intervals not known"
    upright = kind in ("points", "bars")
    numbers = axes.xaxis if upright else axes.yaxis
    numbers.set_major_locator(
        MaxNLocator((2 if max(map(len, ticks)) > 12 else 3) if upright else 5, steps=[1, 2, 5, 10])
    )
    numbers.set_major_formatter(FuncFormatter(lambda place, _: label_of_tick(float(f"{place:.12g}"))))
    if upright:
        axes.set_yticks(range(0, len(ticks), every), _told_apart(ticks)[::every], **WORDS)
        axes.set_ylim(len(ticks) - 0.4, -0.6)
        axes.set_xlabel(f"{title}, {noise}" if len(title) < 24 else f"{title},\n{noise}", loc="right", **WORDS)
        axes.margins(x=0.08)
        if by and ticks != [""]:
            axes.set_ylabel(shortened(by, 30), **WORDS)
    else:
        axes.set_ylabel(title if len(title) < 30 else title.replace(" per ", "\nper "), **WORDS)
        axes.set_xlabel(f"{shortened(by, 30)} ({noise})" if by else noise, **WORDS)
        if ticks and kind == "line":
            axes.set_xticks(
                range(len(ticks)), [shortened(tick, 12) for tick in ticks], rotation=45, ha="right", **WORDS
            )
        elif kind == "line" and np.asarray(places).dtype.kind == "M":
            locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=kind == "line"))
            wide = kind == "histogram"
            axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: label_of_tick(at) if wide else f"{at:.0f}"))
    if kind == "histogram" or kind == "bars":
        (axes.axvline if upright else axes.axhline)(0, color=PALE, linewidth=0.6, zorder=0)
    if has_legend:
        legend = axes.legend(
            title=None if named in (None, LINES) else shortened(str(named), 30), fontsize=SIZE, title_fontsize=SIZE,
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2, handlelength=2,
        )  # fmt: skip
        for text in (*legend.get_texts(), legend.get_title()):
            text.set_text(shortened(text.get_text(), LETTERS))
            text.set_parse_math(False)
