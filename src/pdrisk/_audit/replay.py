"""Record and replay: one question about two neighbouring data sets, with the same noise frozen in both.

What an answer owes to noise is then the same, so that all that differs is what the data did: whether draws were asked
for in the same way, how far apart the exact numbers under the noise are, and whether anything shown depends on more
than what was drawn.
"""

from __future__ import annotations

import itertools
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer import releasing
from pdrisk._answer.release import Release
from pdrisk._core.cells import Cells
from pdrisk._core.summary import IntArray, Summary
from pdrisk._mechanisms import Drawn, Mechanism, discrete_laplace
from pdrisk._mechanisms.clipped_sums import ClippedSums
from pdrisk._mechanisms.contract.draws import Drawing
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.choice import Choice
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.k_norm_products import KNormProducts
from pdrisk._mechanisms.noise.entropy import Words
from pdrisk.attack._likelihood import log_shares
from pdrisk.errors import PdriskError

ROUNDING: Final = 1e-9  # nats: of shares of points, which are computed as floats
_SWAPPING = threading.RLock()

Ask = Callable[[Any], Any]


class Diverged(Exception):  # noqa: N818 - a finding, no error of the program
    """The answers about two neighbours differ by more than noise."""


@dataclass(frozen=True, slots=True)
class NoiseCall:
    """One request for noise: the exact integers, their largest change, the eps paid, and the noisy integers."""

    exact: IntArray
    change: int
    eps: Fraction
    noisy: IntArray


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of a mechanism, and the noise it asked for."""

    mechanism: Mechanism
    summary: Summary
    drawn: Drawn
    calls: tuple[NoiseCall, ...]


@dataclass(slots=True)
class Run:
    """All draws of one question, what was shown, and the loss measured against another run."""

    draws: list[Draw] = field(default_factory=list)
    shown: object = None
    # privacy loss between both runs, but for draws whose law depends on random numbers that are not shown: only
    # black-box tests can look into these
    loss: float = 0.0


def recorded(ask: Ask, data: Any) -> Run:
    """Recorded run: a question asked of data with fresh noise, with every draw kept."""
    run = Run()

    def draw(mechanism: Mechanism, summary: Summary) -> Drawn:
        calls: list[NoiseCall] = []

        def sampler(exact: IntArray, change: int, eps: Fraction) -> IntArray:
            noisy = discrete_laplace(exact, change, eps)
            calls.append(NoiseCall(exact.copy(), change, eps, noisy))
            return noisy.copy()

        drawn = mechanism.draw(summary, sampler)
        run.draws.append(Draw(mechanism, summary, drawn.copy(), tuple(calls)))
        return drawn

    with _drawing_by(draw):
        run.shown = _shown(ask, data)
    return run


def replayed(ask: Ask, data: Any, before: Run) -> Run:
    """Replayed run: the same question asked of a neighbour, with the noise of the first run."""
    run, left = Run(), iter(before.draws)
    divergences: list[Diverged] = []  # raised at the end, beyond whatever hides errors of others

    def draw(mechanism: Mechanism, summary: Summary) -> Drawn:
        first = next(left, None)
        if first is None:
            divergences.append(Diverged("a draw is asked for that the neighbour has not"))
            return mechanism.draw(summary, discrete_laplace)
        try:
            loss = _compared(first, mechanism, summary)
        except Diverged as one:
            divergences.append(one)
        else:
            run.loss += loss or 0.0
        return first.drawn.copy()

    with _drawing_by(draw):
        run.shown = _shown(ask, data)
    if divergences:
        raise divergences[0]
    if next(left, None) is not None:
        raise Diverged("a draw is missing that the neighbour has")
    if run.shown != before.shown:
        raise Diverged(f"with the same draws something else is shown: {_difference(before.shown, run.shown)}")
    return run


@contextmanager
def _drawing_by(draw: Callable[[Mechanism, Summary], Drawn]) -> Iterator[None]:
    """Let this thread draw by another function, and number its draws; other threads draw as always."""
    me, original, own_draw, numbers = threading.get_ident(), releasing.drawn_once, releasing.new_draw, itertools.count()

    def drawn_once(mechanism: Drawing, summary: Summary) -> Drawn:
        if threading.get_ident() == me and isinstance(mechanism, Mechanism):
            return draw(mechanism, summary)
        return original(mechanism, summary)

    def new_draw() -> str:
        return f"{next(numbers):032x}" if threading.get_ident() == me else own_draw()

    with _SWAPPING:
        releasing.drawn_once, releasing.new_draw = drawn_once, new_draw
        try:
            yield
        finally:
            releasing.drawn_once, releasing.new_draw = original, own_draw


class _Choosing(BaseException):
    """Signal that a mechanism asks for random bits: its draw is a choice."""


def _bits(_: int) -> Words:
    raise _Choosing


def _compared(first: Draw, mechanism: Mechanism, summary: Summary) -> float | None:
    """Privacy loss between a recorded draw and the same one of a neighbour; None where its law is not known."""
    if mechanism != first.mechanism:
        raise Diverged(f"{mechanism.name} is calibrated otherwise than about the neighbour, or answers something else")
    if summary.n.shape != first.summary.n.shape:
        raise Diverged(f"there are {len(summary.n)} groups, and about the neighbour {len(first.summary.n)}")
    left, loss = iter(first.calls), Fraction(0)

    def sampler(exact: IntArray, change: int, eps: Fraction) -> IntArray:
        nonlocal loss
        call = next(left, None)
        if call is None or (call.change, call.eps, call.exact.shape) != (change, eps, exact.shape):
            raise Diverged(f"{mechanism.name} asks for other noise than about the neighbour")
        apart = sum(abs(int(one) - int(other)) for one, other in _differing(exact, call.exact))
        loss += apart * eps / change
        return call.noisy.copy()

    try:
        drawn = mechanism.draw(summary, sampler, _bits)
    except _Choosing:
        if isinstance(mechanism, Exponential):
            cells = mechanism._cells(first.summary), mechanism._cells(summary)
            if isinstance(mechanism, ExponentialInterval):
                return mechanism.joint.loss(*cells)
            return _loss_of_choice(mechanism._choice, *cells)
        if isinstance(mechanism, KNormProducts):
            return mechanism.loss_between(first.summary, summary)
        if not isinstance(mechanism, ClippedSums):
            return None
        lower, upper = (int(end) for end in first.drawn[2:, 0])  # the same for all groups
        sums = mechanism._within(lower, upper).draw(mechanism._clipped(summary, lower, upper), sampler)
        if not np.array_equal(sums, first.drawn[:2]):
            raise Diverged(f"what {mechanism.name} draws depends on more than its noise") from None
        chosen = zip(mechanism._choices(first.summary), mechanism._choices(summary), strict=True)
        return float(loss) + sum(_loss_of_choice(choice, one, other) for (_, choice, one), (_, _, other) in chosen)
    if next(left, None) is not None:
        raise Diverged(f"{mechanism.name} asks for less noise than about the neighbour")
    if not np.array_equal(drawn, first.drawn, equal_nan=drawn.dtype.kind == "f"):
        raise Diverged(f"what {mechanism.name} draws depends on more than its noise")
    return float(loss)


def _differing(one: IntArray, other: IntArray) -> Iterator[tuple[int, int]]:
    at = np.flatnonzero(one.ravel() != other.ravel())
    return zip(one.ravel()[at].tolist(), other.ravel()[at].tolist(), strict=True)


def _loss_of_choice(choice: Choice, first: Cells, second: Cells) -> float:
    """Largest log-ratio of the probabilities of all points, added up over groups."""
    points = np.union1d(_starts(choice, first), _starts(choice, second))
    apart = log_shares(choice, first, points) - log_shares(choice, second, points)
    return float(np.abs(apart).max(axis=1).sum())


def _starts(choice: Choice, cells: Cells) -> IntArray:
    """First point with places of each run of points that score alike."""
    items, measure = choice.losses(cells).items, choice.measure
    return measure.point(measure.before(items.start[items.places > 0]))


def _shown(ask: Ask, data: Any) -> object:
    """Everything that leaves pdrisk: the answer's public part, warnings, or the error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            answer = _public(ask(data))
        except PdriskError as error:
            answer = type(error).__name__, str(error)
        except Exception as error:  # noqa: BLE001 - whatever else fails is a finding, if it does about one of the two
            answer = type(error).__name__, str(error)
    return answer, tuple((warning.category.__name__, str(warning.message)) for warning in warned)


def _public(answer: Any) -> object:
    if isinstance(answer, tuple):
        return tuple(_public(part) for part in answer)
    if isinstance(answer, Release):
        return repr(answer), json.dumps(answer.to_dict(), default=repr)
    if isinstance(answer, pd.DataFrame):
        kinds = tuple(map(str, answer.dtypes)), str(answer.index.dtype)
        return answer.to_json(orient="split", double_precision=15), kinds, json.dumps(answer.attrs, default=repr)
    return repr(answer)


def _difference(one: object, other: object) -> str:
    """The place where two texts begin to differ, in short."""
    first, second = repr(one), repr(other)
    at = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
    return f"...{first[max(at - 30, 0) : at + 40]}... instead of ...{second[max(at - 30, 0) : at + 40]}..."
