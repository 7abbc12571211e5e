"""Three pictures of a release, and each in words: an icon array, two worlds, risk against eps.

`icons` and `risk` need eps only and may be published; `two_worlds` is the curator's.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pdrisk._answer.answers import formatting
from pdrisk._answer.words import ENGLISH, common_denominator, counted, not_for_others, reached, texts
from pdrisk._core.foreign import shown
from pdrisk._core.risks.risk import posterior
from pdrisk._pictures.canvas import (
    COLOURS,
    EDGE,
    INK,
    LINE,
    PALE,
    SIZE,
    WIDTH,
    WORDS,
    canvas,
    few_ticks,
    legible,
    lines_of,
    styled,
    under,
)
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdrisk._answer.release import Release

ANYWAY, EXTRA, MIXED, WRONG = "o", "#", "%", "."
BLUE, ORANGE, RED = COLOURS[0], COLOURS[1], COLOURS[5]
ACROSS: Final = 54  # letters below an axis


@dataclass(frozen=True, slots=True)
class _Icons:
    """A hundred signs, each for ``each`` attempts; a sign for attempts of two kinds is shown enlarged."""

    times: int
    at_most: bool
    out_of: int

    @property
    def each(self) -> int:
        return self.out_of // 100

    @property
    def signs(self) -> str:
        """The signs in reading order."""
        return "".join(self._sign(place * self.each, self.each) for place in range(100))

    @property
    def enlarged(self) -> str:
        """The attempts behind the mixed sign as text, "" without one."""
        whole, rest = divmod(self.times, self.each)
        return "".join(self._sign(whole * self.each + at, 1) for at in range(self.each)) if rest else ""

    def _sign(self, first: int, number: int) -> str:
        if first + number <= self.out_of // 2:
            return ANYWAY
        if first + number <= self.times:
            return EXTRA
        return MIXED if first < self.times else WRONG

    def legend(self, wording: Mapping[str, str]) -> list[tuple[str, str]]:
        coin, over = self.out_of // 2, "" if self.at_most else "_over"
        return [
            (ANYWAY, wording["anyway"].format(times=f"{coin:,}")),
            (EXTRA, wording[f"extra{over}"].format(times=f"{self.times - coin:,}")),
            (WRONG, wording[f"wrong{over}"].format(times=f"{self.out_of - self.times:,}")),
        ]


def _icons(eps: float) -> _Icons:
    worst = reached(eps)
    out_of = common_denominator([worst])
    return _Icons(*counted(worst, out_of), out_of)


def icons(eps: float, wording: Mapping[str, str] = ENGLISH) -> Figure:
    """Icon array: how often an attacker is right anyway, right because of a release, and wrong.

    ``eps``: of the release; its worst case is drawn.
    ``wording``: texts, by field.
    Returns: Publishable. In words: `icons_text`.
    """
    array = _icons(eps)
    keys = array.legend(wording) + ([(MIXED, wording["icons_enlarged"])] if array.enlarged else [])
    apart = 0.065 * math.ceil(len(array.enlarged) / 10)
    beside = sum(_key_height(text) for _, text in keys) + apart
    height = max(2.15 if array.each == 1 else 2.45, 0.3 + beside + EDGE)
    figure = canvas(height)
    figure.set_layout_engine("none")  # a grid of signs is drawn to scale, in inches
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    style: dict[str, Any] = {"va": "top", "linespacing": 1.15, **WORDS}
    axes.text(EDGE, EDGE, wording["icons_title"].format(out_of=f"{array.out_of:,}"), **style)
    _signs(axes, array.signs, EDGE, 0.27, 0.18)
    top = 0.3
    for sign, text in keys:
        _signs(axes, sign, 2.0, top, 0.18)
        axes.text(2.25, top, "\n".join(_key_lines(text)), **style)
        top += _key_height(text)
    _signs(axes, array.enlarged, 2.25, top, 0.065)
    if array.each > 1:
        axes.text(EDGE, 2.2, wording["icons_each"].format(each=array.each), **style)
    return figure


def _key_lines(text: str) -> list[str]:
    return lines_of(text, WIDTH - 2.3)


def _key_height(text: str) -> float:
    return LINE * len(_key_lines(text)) + 0.1


def _signs(axes: Axes, signs: str, left: float, top: float, inches: float) -> None:
    """Signs in rows of ten, each so many inches wide; each kind has a colour, a shape and a filling of its own."""
    for sign, marker, style in (
        (ANYWAY, "o", {"facecolor": BLUE, "edgecolor": BLUE}),
        (EXTRA, "D", {"facecolor": ORANGE, "edgecolor": INK}),
        (MIXED, "s", {"facecolor": "white", "edgecolor": INK, "hatch": "//////"}),
        (WRONG, "o", {"facecolor": "white", "edgecolor": PALE}),
    ):
        at = np.array([place for place, kind in enumerate(signs) if kind == sign])
        share = 0.6 if marker == "D" else 0.7
        x, y = left + inches * (at % 10 + 0.5), top + inches * (at // 10 + 0.5)
        axes.scatter(x, y, s=(72 * inches * share) ** 2, marker=marker, linewidth=0.6, **style)  # type: ignore[arg-type]


def icons_text(eps: float, wording: Mapping[str, str] = ENGLISH) -> str:
    """`icons` as signs and words.

    Examples
    --------
    >>> print(icons_text(1))
    Is one person in the data? 100 attempts to tell
      o o o o o o o o o o
      o o o o o o o o o o
      o o o o o o o o o o
      o o o o o o o o o o
      o o o o o o o o o o
      # # # # # # # # # #
      # # # # # # # # # #
      # # # # . . . . . .
      . . . . . . . . . .
      . . . . . . . . . .
      o  right anyway, with a coin: 50
      #  right because of this release: at most 24 more
      .  wrong: at least 26
    """
    array = _icons(eps)
    lines = [wording["icons_title"].format(out_of=f"{array.out_of:,}"), *_rows(array.signs, 10)]
    lines += [f"  {sign}  {text}" for sign, text in array.legend(wording)]
    if array.each > 1:
        lines.append(f"  {wording['icons_each'].format(each=array.each)}")
    if array.enlarged:
        lines += [f"  {MIXED}  {wording['icons_enlarged']}", *_rows(array.enlarged, 10)]
    return "\n".join(lines)


def _rows(signs: str, across: int) -> list[str]:
    return ["  " + " ".join(signs[at : at + across]) for at in range(0, len(signs), across)]


def two_worlds(
    local_sensitivity: float,
    scale: float,
    wording: Mapping[str, str] = ENGLISH,
    *,
    unit: str = "",
    sketch: bool = False,
) -> Figure:
    """The Laplace curves of the noisy answer with and without the most exposed person, and where they overlap.

    Parameters
    ----------
    local_sensitivity, scale : float
        In the unit of the answer; scale above 0.
    wording : mapping of str
        Texts, by field.
    unit : str, optional
        Of the answer, for the axis.
    sketch : bool
        Whether the noise is of another kind, and has only its privacy loss in common with the curves.

    Returns
    -------
    matplotlib.figure.Figure
        Curator only, and it says so. In words: `two_worlds_text`.
    """
    distance, b = local_sensitivity, scale
    facts = [line for fact in _worlds_facts(wording, distance, b, sketch) for line in lines_of(fact, WIDTH - 2 * EDGE)]
    facts += [wording["font_lacks"]] if legible(unit) != unit else []
    axis = textwrap.wrap(legible(wording["worlds_axis"].format(unit=f", {unit}" if unit else "")), ACROSS)
    notes = [*facts, wording["curator_only"]]
    figure = canvas(2.1 + LINE * (len(axis) + len(notes)), wording["worlds_title"])
    axes = styled(figure.subplots())
    reach = max(4 * b, 1.3 * distance)
    x = np.unique(np.concatenate([np.linspace(-reach, distance + reach, 801), [0.0, distance]]))
    without, with_person = (np.exp(-np.abs(x - centre) / b) / (2 * b) for centre in (0.0, distance))
    axes.fill_between(x, np.minimum(without, with_person), color="#dddddd", linewidth=0)
    axes.plot(x, without, color=BLUE, linewidth=1.4)
    axes.plot(x, with_person, color=RED, linewidth=1.4, linestyle=(0, (4, 1.5)))
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(0, 1.08 / (2 * b))
    axes.set_yticks([])
    few_ticks(axes)
    style: dict[str, Any] = {"fontsize": SIZE, "textcoords": "offset points", "va": "center"}
    peak = 0.95 / (2 * b)
    axes.annotate(wording["worlds_without"], (0, peak), (-8, 0), ha="right", color=BLUE, **style)
    axes.annotate(wording["worlds_with"], (distance, peak), (8, 0), ha="left", color=RED, **style)
    axes.set_xlabel("\n".join(axis), labelpad=2, **WORDS)
    axes.set_ylabel(wording["worlds_density"], labelpad=3, **WORDS)
    under(figure, notes)
    return figure


def two_worlds_text(
    local_sensitivity: float,
    scale: float,
    wording: Mapping[str, str] = ENGLISH,
    *,
    unit: str = "",
    sketch: bool = False,
) -> str:
    """`two_worlds` as a table of both curves.

    Examples
    --------
    >>> print(two_worlds_text(1.0, 2.0))
    The noisy answer with and without one person
      noisy answer, from the answer without the person  without     with
                                                    -4  0.03383  0.02052
                                                    -2  0.09197  0.05578
                                                     0     0.25   0.1516
                                                     1   0.1516     0.25
                                                     3  0.05578  0.09197
                                                     5  0.02052  0.03383
      distance 1 (local sensitivity), noise of scale 2
      overlap: 0.779 of each curve
      an attacker is right 50 times out of 100 without, at most 63 with this release
      curator only: these come from the data, do not publish
    """
    distance, b = local_sensitivity, scale
    rows = [
        (
            wording["worlds_axis"].format(unit=f", {unit}" if unit else ""),
            wording["worlds_without"],
            wording["worlds_with"],
        )
    ]
    for at in sorted({-2 * b, -b, 0.0, distance, distance + b, distance + 2 * b}):
        one, other = (math.exp(-abs(at - centre) / b) / (2 * b) for centre in (0.0, distance))
        rows.append((formatting.thousands(at), f"{one:.4g}", f"{other:.4g}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    facts = [f"  {text}" for text in [*_worlds_facts(wording, distance, b, sketch), wording["curator_only"]]]
    return "\n".join([wording["worlds_title"], *table, *facts])


def _worlds_facts(wording: Mapping[str, str], distance: float, scale: float, sketch: bool) -> list[str]:
    """Facts of two Laplace curves: they overlap in exp(-distance / 2 scale) of each."""
    distances = wording["worlds_distance"].format(
        distance=formatting.thousands(distance), scale=formatting.thousands(scale)
    )
    if sketch:
        distances = wording["worlds_sketch"].format(loss=formatting.thousands(distance / scale))
    if distance == 0:
        return [distances, wording["worlds_same"]]
    believed = reached(distance / scale)
    out_of = common_denominator([believed])
    times, at_most = counted(believed, out_of)
    right = wording["worlds_right" if at_most else "worlds_right_over"].format(
        coin=f"{out_of // 2:,}", times=f"{times:,}", out_of=f"{out_of:,}"
    )
    return [distances, wording["worlds_overlap"].format(overlap=f"{math.exp(-distance / (2 * scale)):.3g}"), right]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A point on the risk curve with its label."""

    eps: float
    risk: float
    text: str


def _marks(wording: Mapping[str, str], eps: float) -> tuple[list[_Mark], int]:
    """Half the eps, the release's own eps, and twice it, with one denominator to compare them."""
    chosen = {"half": eps / 2, "here": eps, "twice": 2 * eps}
    risks = {name: reached(loss) for name, loss in chosen.items()}
    out_of = common_denominator(risks.values())
    marks = []
    for name, worst in risks.items():
        times, at_most = counted(worst, out_of)
        field = f"curve_{name}" if at_most else f"curve_{name}_over"
        marks.append(_Mark(chosen[name], worst, wording[field].format(eps=f"{eps:.6g}", times=f"{times:,}")))
    return marks, out_of


def risk(eps: float, wording: Mapping[str, str] = ENGLISH) -> Figure:
    """The worst case against eps, with a release marked, half its eps and twice.

    Parameters
    ----------
    eps : float
        Of the release.
    wording : mapping of str
        Texts, by field.

    Returns
    -------
    matplotlib.figure.Figure
        Publishable. In words: `risk_text`.
    """
    marks, out_of = _marks(wording, eps)
    figure = canvas(2.75, wording["curve_title"])
    axes = styled(figure.subplots())
    x = np.linspace(0, 2.6 * eps, 400)
    axes.plot(x, posterior(x), color=INK, linewidth=1.4)
    axes.set_xlim(0, x[-1])
    axes.set_ylim(0.5, 1.0)
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9]
    axes.set_yticks(ticks, [f"{round(tick * out_of):,}" for tick in ticks])
    few_ticks(axes)
    axes.set_xlabel(wording["curve_axis"], labelpad=2, **WORDS)
    axes.set_ylabel(wording["curve_risk"].format(out_of=f"{out_of:,}"), labelpad=3, **WORDS)
    for mark, marker, size in zip(marks, "oDs", (5, 7, 5), strict=True):
        style: dict[str, Any] = {"color": ORANGE if marker == "D" else "white", "markeredgecolor": INK}
        axes.plot(mark.eps, mark.risk, marker, linestyle="", markersize=size, clip_on=False, label=mark.text, **style)
    figure.legend(loc="outside lower left", frameon=False, fontsize=SIZE, labelcolor=INK, borderaxespad=0)
    return figure


def risk_text(eps: float, wording: Mapping[str, str] = ENGLISH) -> str:
    """`risk` in words.

    Examples
    --------
    >>> print(risk_text(1))
    How often an attacker is right, in the worst case
      a coin: 50 of 100
      half the eps: at most 63
      this release, eps 1: at most 74
      twice the eps: at most 89
    """
    marks, out_of = _marks(wording, eps)
    coin = wording["curve_coin"].format(coin=f"{out_of // 2:,}", out_of=f"{out_of:,}")
    return "\n".join([wording["curve_title"], f"  {coin}", *(f"  {mark.text}" for mark in marks)])


#: Each kind of picture, drawn and in words.
KINDS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "icons": (icons, icons_text), "two_worlds": (two_worlds, two_worlds_text), "risk": (risk, risk_text),
}  # fmt: skip


def of_release(release: Release, kind: object, in_words: bool, unit: str, language: str) -> Any:
    """One of the pictures of a release, drawn or in words."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"unknown picture {shown(kind)}; available: {', '.join(KINDS)}.")
    if release.answer.replaces:
        raise ParameterError(
            "pictures show whether somebody is in the data, which this answer does not hide: use explain()."
        )
    draw, wording = KINDS[kind][in_words], texts(language, release.answer)
    if kind == "two_worlds":
        if release.curator is None:
            raise ParameterError("this answer does not hold the curator's numbers, of which this picture is made.")
        sketch = release.mechanism != "laplace"
        if release.scale is None:  # two shifted curves all the same, one unit of loss apart for each scale
            unit = wording["worlds_scales"]
            return draw(release.curator.loss, 1.0, wording, unit=unit, sketch=sketch)
        return draw(release.curator.loss * release.scale, release.scale, wording, unit=unit, sketch=sketch)
    if release.bounds_from_data:
        raise not_for_others(release.name)
    return draw(release.answer.eps, wording)
