"""Drawing style: one column of print, 8 pt, readable in grey and without a display. No state of pyplot."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 3.4  # inches: a column
SIZE: Final = 8  # points
LINE: Final = 0.135  # inches, from one line of text to the next
LETTER: Final = 0.062  # inches, of a wide one: an average over a line is smaller
EDGE: Final = 0.07  # inches of white around everything
INK: Final = "#222222"
PALE: Final = "#999999"
WORDS: Final[Any] = {"fontsize": SIZE, "color": INK, "parse_math": False}  # a dollar sign in them is a dollar sign
# Okabe & Ito's colours in an order that also differs in grey; with each a line style and a marker.
COLOURS: Final = ("#0072B2", "#E69F00", "#000000", "#CC79A7", "#009E73", "#D55E00")
DOTTED: Final[Any] = (0, (1, 1.2))
DASHES: Final[Any] = ("-", (0, (5, 1.5)), DOTTED, (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)))
MARKERS: Final = ("o", "s", "^", "D", "v", "P")
BOX: Final = "□"  # for a letter that the font lacks


def canvas(height: float, title: str = "") -> Figure:
    """An empty figure one column wide that can be shown in a notebook and saved without a display.

    matplotlib's constrained layout gives every text its room, and the axes what is left.

    ``height``: in inches.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from pdrisk._pictures.notebook_figure import NotebookFigure
    except ModuleNotFoundError:
        raise _no_matplotlib() from None
    layout = ConstrainedLayoutEngine(w_pad=EDGE, h_pad=EDGE, wspace=0, hspace=0)
    figure = NotebookFigure(figsize=(WIDTH, height), dpi=200, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, x=EDGE / WIDTH, ha="left", **WORDS)
    return figure


def _no_matplotlib() -> ParameterError:
    return ParameterError(
        'figures need matplotlib: pip install "pdrisk[plots]". The same numbers as text need nothing more: use the '
        "function of the same name that returns text."
    )


def styled(axes: Axes) -> Axes:
    """Axes in the look of all: thin lines at the left and below, small ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)
    axes.tick_params(labelsize=SIZE, width=0.6, length=3, pad=2, colors=INK)
    return axes


def under(figure: Figure, lines: Sequence[str]) -> None:
    """Lines of text below everything else."""
    figure.supxlabel("\n".join(lines), x=EDGE / WIDTH, ha="left", style="italic", linespacing=1.15, **WORDS)


def few_ticks(axes: Axes) -> None:
    """Round numbers along x, few enough to be read, each written out."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    round_numbers = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
    places = [float(place) for place in round_numbers if low <= place <= high]
    axes.set_xticks(places, [tick_label(place) for place in places])


def tick_label(place: float) -> str:
    """A round number beside an axis: with all its digits up to a million, then short.

    Examples
    --------
    >>> [tick_label(place) for place in (0.0001, 0.25, 100_000, 2_500_000, 1e12)]
    ['0.0001', '0.25', '100,000', '2.5 M', '1e12']
    """
    size = abs(place)
    if size >= 1e9 or 0 < size < 1e-4:
        return f"{place:.3g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    return f"{place / 1e6:.4g} M" if size >= 1e6 else f"{place:,.10g}"


def legible(text: str) -> str:
    """Text on one line, with a box for every letter that the fonts of ``rcParams["font.family"]`` lack.

    matplotlib would draw a box too, and warn of it whenever the figure is drawn.
    """
    if text.isascii() and text.isprintable():
        return text
    try:
        from matplotlib.font_manager import FontProperties, findfont, get_font
    except ModuleNotFoundError:
        raise _no_matplotlib() from None
    known: list[set[int]] = []  # of each weight that is drawn
    for weight in ("normal", "bold"):
        letters: set[int] = set()
        for family in FontProperties().get_family():
            try:
                path = findfont(FontProperties(family=[family], weight=weight), fallback_to_default=False)
            except ValueError:  # a family that is not installed: matplotlib passes over it too
                continue
            letters |= get_font(path).get_charmap().keys()
        known.append(letters or set(get_font(findfont(FontProperties(weight=weight))).get_charmap()))
    return "".join(
        " " if letter.isspace() else letter if all(ord(letter) in codes for codes in known) else BOX for letter in text
    )


def breadth(text: str) -> int:
    """Width of a text in letters; an East Asian letter or a box counts as two."""
    return sum(2 if letter == BOX or unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def shortened(text: str, letters: int) -> str:
    """Text that can be drawn, at most ``letters`` wide; "…" where it was cut."""
    drawn = legible(text)
    if breadth(drawn) <= letters:
        return drawn
    while breadth(drawn) > letters - 1:
        drawn = drawn[:-1]
    return drawn + "…"


def lines_of(text: str, inches: float) -> list[str]:
    """Text broken into lines of a width."""
    return textwrap.wrap(text, int(inches / LETTER), break_on_hyphens=False)


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least ``gap`` apart and within [low, high] if they fit, each as near as possible to its own.

    Examples
    --------
    >>> apart([1.0, 1.0, 5.0], 1.0, 0.0, 6.0)
    [0.5, 1.5, 5.0]
    """
    order = np.argsort(places, kind="stable")
    # Less their gaps, positions must not fall: the nearest such sequence is that of pooled means.
    pools: list[tuple[float, int]] = []
    for rank, at in enumerate(order.tolist()):
        pools.append((places[at] - rank * gap, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, few), (other, more) = pools[-2:]
            pools[-2:] = [((one * few + other * more) / (few + more), few + more)]
    shifted = [value for value, times in pools for _ in range(times)]
    top = max(high - (len(shifted) - 1) * gap, low)
    positions = [0.0] * len(shifted)
    for rank, at in enumerate(order.tolist()):
        positions[at] = float(min(max(shifted[rank], low), top) + rank * gap)
    return positions
