"""Comparison of mechanisms: noise against risk, for one statistic of one column of these very data."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.facts import facts
from pdrisk._core.risks.gaussian_dp import largest_eps, limit_of
from pdrisk._core.risks.risk import posterior
from pdrisk._core.risks.worlds import positive
from pdrisk._core.summary import Summary
from pdrisk._core.surveys.weighted import Weighted
from pdrisk._digits import rounded_up
from pdrisk._guard import guarded
from pdrisk._mechanisms import MECHANISMS, ClippedSums, Mechanism
from pdrisk._model.arguments import (
    checked_success,
    epsilon,
    statistic,
)
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.query import (
    Line,
    Query,
    written,
)
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pictures.canvas import (
    COLOURS,
    DASHES,
    DOTTED,
    INK,
    SIZE,
    WORDS,
    canvas,
    legible,
    lines_of,
    styled,
    tick_label,
    under,
)
from pdrisk.engines.numpy.frame import FrameReading
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST_EPS, LARGEST_EPS = 1e-6, 1e9  # that are looked for: the paper's mean needs thousands for little noise
FRONTIER: Final = np.geomspace(0.01, 10, 31)
RISKS: Final = ("worst_case", "two_worlds", "many_worlds", "identifiability", "success")


class Comparison(pd.DataFrame):
    """Comparison table with a row for each mechanism, as ``df.dprisk.compare`` returns it. Curator only.

    Its columns are ``mechanism eps noise95 worst_case two_worlds many_worlds identifiability success``; `picture` draws
    the frontier. Tables made from it, as by ``sort_values``, are plain DataFrames.
    """

    _metadata: ClassVar = ["_asked", "_frontier"]  # so that pandas keeps them, and makes no columns of them
    _asked: str
    _frontier: dict[str, pd.DataFrame]

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def picture(self) -> Figure:
        """Frontier: worst-case risk against the 95 % noise, a line for each mechanism; two_worlds is dotted.

        Returns: curator only.
        """
        figure = canvas(3.4, f"{legible(self._asked)}: noise against risk")
        from matplotlib.ticker import LogLocator, NullLocator

        axes = styled(figure.subplots())
        dashes = [style for style in DASHES if style != DOTTED]  # which is that of two_worlds
        for at, (name, table) in enumerate(self._frontier.items()):
            colour, dash = COLOURS[at % len(COLOURS)], dashes[at % len(dashes)]
            shown = table[table["noise95"] > 0]
            axes.plot(shown["noise95"], shown["worst_case"], color=colour, linestyle=dash, linewidth=1.4, label=name)
            axes.plot(shown["noise95"], shown["two_worlds"], color=colour, linestyle=DOTTED, linewidth=1)
        for name, noise, risk in zip(self["mechanism"], self["noise95"], self["worst_case"], strict=True):
            colour = COLOURS[list(self._frontier).index(name) % len(COLOURS)]
            if noise > 0:  # else it has no place on this axis
                axes.plot(noise, risk, "o", color=colour, markeredgecolor=INK, markersize=5, clip_on=False)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=5))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda place, _: tick_label(place))
        axes.set_ylim(0.5, 1.0)
        axes.set_xlabel("95 % noise ±, in units of the answer", labelpad=2, **WORDS)
        axes.set_ylabel("attacker's belief, from a coin's", labelpad=3, **WORDS)
        axes.legend(frameon=False, fontsize=SIZE, labelcolor=INK)
        caption = "Dots: as asked. Lines: worst case. Dotted: two_worlds, from the data. Curator only."
        under(figure, lines_of(caption, 3.3))
        return figure


def comparison(
    frame: pd.DataFrame, column: Hashable | None, spec: object, request: Request, *, noise95: object, mechanisms: object
) -> Comparison:
    """One row for each mechanism that can answer a statistic."""
    eps, risk, success = request.eps, request.risk, request.success
    if sum(option is not None for option in (eps, risk, success, noise95)) != 1:
        raise ParameterError(
            "pass exactly one of eps=, risk=, success= and noise95=: the privacy loss, the worst-case risk, an "
            "attacker's success, or the 95 % noise at which mechanisms are compared."
        )
    wanted = None if noise95 is None else positive("noise95", noise95)
    limit = None if success is None else limit_of(checked_success(success))
    share = epsilon(eps, risk) if wanted is None and limit is None else None
    lines = tuple(_lines(frame, column, spec, mechanisms, request))
    query, engine = judged_selection(frame, lines, request)
    reading = engine.read(query)

    def found() -> Comparison:
        rows, frontier = [], {}
        for at, line in enumerate(lines):
            one = _Asked(query, at, reading)
            loss = share if wanted is None else _loss_for(one, wanted)
            if limit is not None:
                loss = largest_eps(partial(query.mu2_at, at), limit)
            rows.append({"mechanism": line.mechanism, **_row(one, loss)})
            frontier[line.mechanism] = pd.DataFrame(
                [_row(one, Fraction(str(point))) for point in FRONTIER.round(6).tolist()]
            )
        table = Comparison(rows)
        table._asked, table._frontier = written(lines[0].statistic.label, column), frontier
        return mark_exact(table)

    return guarded(found)


def _lines(
    frame: pd.DataFrame, column: Hashable | None, spec: object, mechanisms: object, request: Request
) -> Iterable[Line]:
    """A line for each mechanism: the named ones, or all that can answer."""
    asked = statistic(spec)
    if mechanisms is None:
        # A declared whole sum is another statistic, which Laplace noise does not answer.
        (best,) = judged_lines(frame, column, (asked,), replace(request, mechanism="auto"))
        able = [name for name, mechanism in MECHANISMS.items() if mechanism.answers(best.statistic)]
        if not isinstance(best.statistic, Weighted) and "laplace" not in able:
            able = ["laplace", *able]
        names = [name for name in able if name != ClippedSums.name]  # of clipped values: another question
    elif isinstance(mechanisms, list | tuple) and all(isinstance(name, str) for name in mechanisms) and mechanisms:
        names = list(mechanisms)
        if len(set(names)) < len(names):
            raise ParameterError("mechanisms= names one twice: name each once.")
    else:
        raise ColumnTypeError('mechanisms is a list of names, as in ["laplace", "two_sums"]; all that can, without it.')
    for name in names:
        yield from judged_lines(frame, column, (asked,), replace(request, mechanism=name))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A line of a query whose mechanism is tried at many eps."""

    query: Query
    at: int
    reading: FrameReading

    @property
    def summary(self) -> Summary:
        return self.reading.summaries[self.at]

    def mechanism(self, loss: Fraction) -> Mechanism:
        """The mechanism, calibrated to one record if a person may have several."""
        return self.query.mechanism(self.at, self.reading.universes[self.at], loss)

    def known(self, mechanism: Mechanism, loss: Fraction) -> dict[str, float]:
        """Risks in these data, and `success` of the worst case."""
        weight = self.query.weight(self.at, loss)
        release_facts = facts(mechanism, self.summary, 0.0, self.query.unit, weight, self.reading.people(self.at))
        risks = {name: float(getattr(release_facts, name)[0]) for name in RISKS[1:-1]}
        return risks | {"success": mechanism.success_of(weight, self.query.mu2_at(self.at, loss))}


def _row(one: _Asked, loss: Fraction | None) -> dict[str, float]:
    """The numbers of one mechanism; NaN if no eps within reach gives this noise."""
    try:
        mechanism = None if loss is None else one.mechanism(loss)
        if mechanism is not None:
            mechanism.check()
    except ParameterError:
        mechanism = None
    if mechanism is None or loss is None:
        return dict.fromkeys(("eps", "noise95", *RISKS), math.nan)
    noise, worst = float(mechanism.noise95(one.summary)[0]), float(posterior(float(loss)))
    return {"eps": float(loss), "noise95": noise, "worst_case": worst, **one.known(mechanism, loss)}


def _loss_for(one: _Asked, wanted: float) -> Fraction | None:
    """The eps, to six digits, at which the 95 % noise falls to what is wanted; None if no eps within reach does."""

    def noise(loss: float) -> float:
        return float(one.mechanism(Fraction(loss)).noise95(one.summary)[0])

    low, high = math.log(SMALLEST_EPS), math.log(LARGEST_EPS)
    if not noise(math.exp(high)) <= wanted:
        return None
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if noise(math.exp(middle)) <= wanted else (middle, high)
    return Fraction(rounded_up(math.exp(high), 6))
