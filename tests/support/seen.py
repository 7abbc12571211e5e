"""What somebody sees of a matplotlib figure: its words, whether they can be read, and the numbers in them."""

import re
from itertools import combinations

from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text


def words_of(figure: Figure, ticks: bool = False) -> list[Text]:
    """Every text that is drawn; the numbers beside axes only if asked for."""
    figure.draw_without_rendering()
    beside = {}
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                drawn = axes.axison and low <= tick.get_loc() <= high
                beside |= {id(label): drawn for label in (tick.label1, tick.label2)}
    found = {id(text): text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
    return [text for key, text in found.items() if (ticks and beside[key] if key in beside else True)]


def lines_of(figure: Figure) -> set[str]:
    return {line for text in words_of(figure) for line in text.get_text().splitlines()}


def numbers(text: str) -> set[str]:
    return {found.replace(",", "").rstrip(".") for found in re.findall(r"\d[\d,.]*(?:e-?\d+)?", text)}


def unreadable(figure: Figure) -> list[str]:
    """Texts that are cut off by the edge of the figure or lie on each other."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in words_of(figure, ticks=True)]
    whole, slack = figure.bbox, 1.0  # pixels of the white around letters
    cut = [
        f"cut: {text}"
        for text, box in boxes
        if box.x0 < whole.x0 or box.y0 < whole.y0 or box.x1 > whole.x1 or box.y1 > whole.y1
    ]
    return cut + [
        f"{one!r} on {other!r}"
        for (one, a), (other, b) in combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > slack and min(a.y1, b.y1) - max(a.y0, b.y0) > slack
    ]


def marks(figure: Figure) -> list[PathCollection]:
    """Scattered signs that are drawn at least once."""
    return [each for each in figure.findobj(PathCollection) if len(each.get_offsets())]
