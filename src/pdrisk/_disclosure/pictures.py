"""Pictures of classes: how many people are in classes of which size, drawn and in text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._pictures.canvas import COLOURS, INK, SIZE, WORDS, canvas, few_ticks, legible, lines_of, styled, under
from pdrisk._printing import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES: Final = (1, 2, 3, 5, 10, 20, 50, 100, 1000)  # where a bar begins
SHARES: Final = tuple(round(0.1 * at, 1) for at in range(11))
ACROSS: Final = 40  # signs of the longest bar in text
CURATOR_ONLY: Final = "Curator only: these come from the data, do not publish."


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of the numbers of people by a property of their class."""

    title: str
    axis: str
    labels: Sequence[str]
    people: Sequence[int]

    def figure(self) -> Figure:
        """Horizontal bars; `text` is the same in words."""
        figure = canvas(0.9 + 0.17 * len(self.labels), legible(self.title))
        axes = styled(figure.subplots())
        places = np.arange(len(self.labels))
        axes.barh(places, self.people, height=0.7, color=COLOURS[0], edgecolor=INK, linewidth=0.4)
        axes.set_yticks(places, self.labels)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.18 * max(1, *self.people))
        for place, number in zip(places.tolist(), self.people, strict=True):
            axes.annotate(
                f"{number:,}",
                (number, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=SIZE,
                color=INK,
            )
        few_ticks(axes)
        axes.set_ylabel(self.axis, labelpad=3, **WORDS)
        axes.set_xlabel("people", labelpad=2, **WORDS)
        under(figure, lines_of(CURATOR_ONLY, 3.3))
        return figure

    def text(self) -> str:
        """The bars in signs and numbers."""
        most, total = max(1, *self.people), max(1, sum(self.people))
        wide = max(map(len, [self.axis, *self.labels]))
        numbers = [f"{number:,}" for number in self.people]
        digits = max(len("people"), *map(len, numbers))
        lines = [self.title, f"  {self.axis:<{wide}}  {'people':>{digits}}  share"]
        for label, number, shown in zip(self.labels, self.people, numbers, strict=True):
            bar = "#" * (-(-number * ACROSS // most))  # upwards: one person shows
            lines.append(f"  {label:<{wide}}  {shown:>{digits}}  {number / total:5.1%}  {bar}".rstrip())
        return printable("\n".join([*lines, f"  {CURATOR_ONLY}"]), keep="\n")


def of_sizes(title: str, axis: str, sizes: NDArray[np.generic], people: NDArray[np.generic]) -> Bars:
    """Bars by size of class: 1, 2, 3 to 4, 5 to 9, ..."""
    labels = [str(low) if high == low + 1 else f"{low} to {high - 1}" for low, high in pairwise(SIZES)]
    return _bars(
        title, axis, [*labels, f"{SIZES[-1]} or more"], np.searchsorted(SIZES, sizes, side="right") - 1, people
    )


def of_shares(title: str, axis: str, shares: NDArray[np.float64], people: NDArray[np.generic]) -> Bars:
    """Bars by a share of each class: 0, above 0 to .1, ..., .9 to below 1, 1."""
    labels = ["0", *(f"to {high:.1f}" for high in SHARES[1:-1]), "below 1", "1"]
    at = np.where(shares >= 1, len(labels) - 1, np.searchsorted(SHARES, shares, side="left"))
    return _bars(title, axis, labels, np.minimum(at, len(labels) - 1), people)


def _bars(title: str, axis: str, labels: list[str], at: NDArray[np.generic], people: NDArray[np.generic]) -> Bars:
    """The bars up to the last with people in it."""
    numbers = np.rint(np.bincount(at, weights=people, minlength=len(labels))).astype(int)
    last = int(np.flatnonzero(numbers).max()) + 1 if numbers.any() else 1
    return Bars(title, axis, labels[:last], numbers[:last].tolist())
