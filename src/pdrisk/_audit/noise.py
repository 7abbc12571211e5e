"""Noise of this installation: whether it has the distributions that the proofs ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from pdrisk._audit.findings import Check
from pdrisk._core.statistics import Count
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms import Sampler, calibrated, discrete_laplace
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._mechanisms.noise.entropy import system_bits
from pdrisk._mechanisms.noise.reference import has_opendp, opendp_laplace
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._model.query import UNIT
from pdrisk.attack._likelihood import log_shares
from pdrisk.attack._worlds import draws_of, mechanism_of, summary_of

SIGMAS: Final = 7.0  # standard deviations: a sound sampler fails a check once in 4e11
DISTANCE: Final = 4.0  # of distribution functions, times sqrt(draws): 3e-14 by Massart's inequality
FEW: Final = 100  # numbers of one call
SCALES: Final = (Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(2**30))
OFF: Final = (Fraction(9, 10), Fraction(11, 10))


def noise_checks(draws: int) -> Iterator[Callable[[], Check]]:
    """The checks of noise, each to be run with so many draws."""
    samplers: list[tuple[str, Sampler, int]] = [
        ("a few at a time", discrete_laplace, FEW),
        ("all at once", discrete_laplace, draws),
    ]
    if has_opendp():
        samplers.append(("OpenDP for comparison", opendp_laplace, FEW))
    for scale in SCALES:
        for name, draw, at_once in samplers:
            yield partial(_scale, scale, name, draw, at_once, draws)
    yield lambda: _fresh(draws)
    yield lambda: _of_a_count(draws)
    for asked in ("median", "max"):
        yield lambda asked=asked: _choice(asked, draws)  # type: ignore[misc]
    yield lambda: _groups_shown(draws)
    yield lambda: _randomized(draws)
    yield lambda: _bits(draws)


def _scale(scale: Fraction, name: str, draw: Sampler, at_once: int, draws: int) -> Check:
    """Discrete Laplace noise of this scale fits its distribution, and none whose scale is a tenth off."""
    change, eps = scale.numerator, Fraction(scale.denominator)
    parts = [draw(np.zeros(at_once, dtype=np.int64), change, eps) for _ in range(-(-draws // at_once))]
    noise = np.concatenate(parts)
    measured, problem = float(np.abs(noise).mean()), ""
    if difference := _unlike(noise, scale):
        problem = difference
    elif any(not _unlike(noise, scale * off) for off in OFF):
        problem = "too few draws to tell a scale that is a tenth off"
    return Check("noise", f"scale {float(scale):g}, {name}", not problem, _mean(scale), measured, len(noise), problem)


def _mean(scale: Fraction) -> float:
    """Mean absolute value of discrete Laplace noise: ``2 a / (1 - a**2)`` with ``a = exp(-1/scale)``."""
    rate = float(1 / scale)
    return 1 / math.sinh(rate)


def _unlike(noise: IntArray, scale: Fraction) -> str:
    """The first difference of noise from the discrete Laplace distribution of a scale; "" if there is none."""
    rate, n = float(1 / scale), len(noise)
    mean = _mean(scale)
    # E k**2 = 2 a / (1 - a)**2, and so the variance of the absolute value.
    square = 1 / (math.cosh(rate) - 1) if rate > 1e-6 else 2 / rate**2
    off = abs(float(np.abs(noise).mean()) - mean) / math.sqrt((square - mean**2) / n)
    if off > SIGMAS:
        return f"its mean absolute value is {off:.1f} standard deviations off"
    values, times = np.unique(noise, return_counts=True)
    seen = np.cumsum(times) / n
    expected, before = _below(values, rate), _below(values - 1, rate)
    distance = max(float(np.abs(seen - expected).max()), float(np.abs(seen - times / n - before).max()))
    if distance * math.sqrt(n) > DISTANCE:
        return f"its distribution function is {distance:.3g} off"
    return ""


def _below(values: IntArray, rate: float) -> FloatArray:
    """``P(noise <= k)``."""
    tail = np.exp(-rate * np.abs(values).astype(np.float64)) / (1 + math.exp(-rate))
    return np.where(values < 0, tail, 1 - tail * math.exp(-rate))


def _fresh(draws: int) -> Check:
    """Numbers of one call are independent of their neighbours, of other calls, and of the exact numbers."""
    problem, worst = "", 0.0
    for at_once in (FEW, draws):
        calls = max(2, draws // at_once)
        exact = np.arange(at_once, dtype=np.int64) << 40
        noise = np.stack([discrete_laplace(exact, 2**30, Fraction(1)) - exact for _ in range(calls)])
        up = np.where(noise > 0, 1.0, -1.0)
        for one, other in ((up[:, 1:], up[:, :-1]), (up[1:], up[:-1]), (up, up[:, ::-1])):
            agree = abs(float((one * other).mean())) * math.sqrt(one.size / 2)
            worst = max(worst, agree)
    if worst > SIGMAS:
        problem = f"signs agree {worst:.1f} standard deviations more often than by chance"
    return Check("noise", "independence of draws", not problem, SIGMAS, worst, 2 * draws, problem)


def _of_a_count(draws: int) -> Check:
    """The noise in a count that was released has scale 1/eps, whatever was done to it on the way."""
    mechanism = calibrated("geometric", Count(), UNIT, Fraction(1, 2))
    drawn = draws_of(mechanism, Summary(np.array([10**6])), draws)
    problem = _unlike(mechanism.value(drawn) - 10**6, Fraction(2))
    measured = float(np.abs(drawn - 10**6).mean())
    return Check("noise", "answers to a count, eps 0.5", not problem, _mean(Fraction(2)), measured, draws, problem)


def _groups_shown(draws: int) -> Check:
    """Of private keys, groups of each size are shown as often as the best (eps, delta) rule says, of nobody never."""
    rule, e, delta = PartitionSelection(Fraction(1), Fraction(1, 1000)), math.e, 1e-3
    shares = [0.0]
    while shares[-1] < 1:
        shares.append(min(e * shares[-1] + delta, 1 - (1 - shares[-1] - delta) / e, 1.0))
    expected = np.array(shares)
    sizes = np.arange(len(expected)).repeat(draws // len(expected))
    seen = drawn_once(rule, Summary(sizes)).reshape(len(expected), -1)
    spread = np.sqrt(np.maximum(expected * (1 - expected), 1e-12) / seen.shape[1])
    worst = float((np.abs(seen.mean(axis=1) - expected) / spread).max())
    problem = f"groups are shown {worst:.1f} standard deviations too often or too seldom" if worst > SIGMAS else ""
    return Check("noise", "private keys, eps 1, delta 0.001", not problem, SIGMAS, worst, len(sizes), problem)


def _choice(asked: str, draws: int) -> Check:
    """Points are chosen as often as their exact weights say."""
    mechanism = mechanism_of(
        asked, eps=2, bounds=(0, 10), mechanism="auto", step=1, interval=False, n_at_least=None
    )  # fmt: skip
    summary = summary_of(mechanism, [[1.0, 2.0, 2.0, 3.0, 7.0, 9.0]])
    drawn = draws_of(mechanism, summary, draws)
    points = np.arange(mechanism.points.size)  # type: ignore[attr-defined]
    choice = mechanism._choice  # type: ignore[attr-defined]
    expected = np.exp(log_shares(choice, mechanism._cells(summary), points)[0])  # type: ignore[attr-defined]
    seen = np.bincount(drawn, minlength=len(points)) / draws
    off = np.abs(seen - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1 / draws) / draws)
    worst = float(off.max())
    problem = f"a point is chosen {worst:.1f} standard deviations too often or too seldom" if worst > SIGMAS else ""
    return Check("noise", f"choice of a {asked}", not problem, SIGMAS, worst, draws, problem)


def _randomized(draws: int) -> Check:
    """Randomised responses are true as often as their design says, and all false ones are equally likely."""
    design = RandomizedResponse(eps=1.0, categories=3)
    truths = np.arange(draws) % 3
    drawn = drawn_once(design, Summary(np.ones(draws, dtype=np.int64), whole=truths))
    seen = np.bincount((drawn - truths) % 3, minlength=3) / draws
    expected = np.array([design.p_truth, design.p_other, design.p_other])
    worst = float((np.abs(seen - expected) / np.sqrt(expected * (1 - expected) / draws)).max())
    problem = f"answers are {worst:.1f} standard deviations from their shares" if worst > SIGMAS else ""
    return Check("noise", "randomised response", not problem, SIGMAS, worst, draws, problem)


def _bits(draws: int) -> Check:
    """Each of 64 bits is fair, and no call repeats another."""
    words = system_bits(draws)
    shares = np.array([float((words >> np.uint64(bit) & np.uint64(1)).mean()) for bit in range(64)])
    worst = float(np.abs(shares - 0.5).max() * 2 * math.sqrt(draws))
    problem = f"a bit is {worst:.1f} standard deviations from fair" if worst > SIGMAS else ""
    if len(np.intersect1d(words, system_bits(draws))) > 1:
        problem = "random bits repeat"
    return Check("noise", "random bits", not problem, SIGMAS, worst, draws, problem)
