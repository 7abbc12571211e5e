"""Randomised response: each answer is randomised by itself, so that nobody has to be trusted with the true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.risks.binomial import clopper_pearson
from pdrisk._core.risks.gaussian_dp import mu_of_coin
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms.exponential.choosing import uniform_below
from pdrisk._mechanisms.exponential.weights import BITS, exp_below
from pdrisk._mechanisms.noise.entropy import Bits, Words, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk.errors import ColumnTypeError, ParameterError

WORD: Final = 64
MOST_CATEGORIES: Final = 10_000
LARGEST_EPS: Final = 40  # beyond, a true answer is given with a probability that 64 bits do not tell from 1
MOST_RESPONDENTS: Final = 10**9


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Randomised response: design of a survey, with its privacy loss, its estimates and the number of people it needs.

    Everybody gives their true answer with probability ``p_truth``, else one of the other ``categories - 1`` answers at
    random (Warner 1965). So whatever a person answers, no true answer becomes more than ``exp(eps)`` times likelier.
    This is *local* differential privacy: it protects the answer, not the fact that a person took part.

    Parameters
    ----------
    eps : float, optional
        Local privacy loss of one answer, in nats; a survey with two coins has ``ln 3``.
    p_truth : float, optional
        Instead of ``eps``, the probability that an answer is the true one, above ``1/categories`` and below 1. It is
        3/4 with two coins, if the first decides whether to tell the truth and the second what to say otherwise.
    categories : int
        Number of possible answers, 2 to 10,000.

    Raises
    ------
    ParameterError
        If not exactly one of ``eps`` and ``p_truth`` is given, or one is out of its range.

    Notes
    -----
    ``p_truth = e**eps / (e**eps + k - 1)`` (Kairouz, Oh & Viswanath 2014). It is rounded down to a multiple of 2**-64,
    and drawn exactly: the loss is at most ``eps``.

    Examples
    --------
    >>> import math
    >>> coins = RandomizedResponse(eps=math.log(3))
    >>> coins.p_truth, round(coins.posterior(0.5), 4), coins.respondents(0.05)
    (0.75, 0.75, 1574)
    >>> round(RandomizedResponse(p_truth=0.75).eps, 4)
    1.0986
    """

    categories: int
    threshold: int  # of 2**64: an answer is the true one with this probability

    @own_errors
    def __init__(self, *, eps: float | None = None, p_truth: float | None = None, categories: int = 2) -> None:
        if isinstance(categories, bool | np.bool_) or not isinstance(categories, int | np.integer):
            raise ColumnTypeError(f"categories is a whole number, not {shown(categories)}.")
        if not 2 <= categories <= MOST_CATEGORIES:
            raise ParameterError(f"categories is 2 to {MOST_CATEGORIES:,}, not {int(categories):,}.")
        if (eps is None) == (p_truth is None):
            raise ParameterError("pass exactly one of eps= and p_truth=: the privacy loss, or how often truth is told.")
        k = int(categories)
        if eps is not None:
            loss = _number("eps", eps)
            if not 0 < loss <= LARGEST_EPS:
                raise ParameterError(f"eps must be above 0 and at most {LARGEST_EPS} here, but is {float(loss):g}.")
            odds = Fraction(exp_below(loss), 1 << BITS)
            truth = odds / (odds + k - 1)
        else:
            truth = _number("p_truth", p_truth)
            if not Fraction(1, k) < truth < 1:
                raise ParameterError(
                    f"p_truth must be above 1/{k}, where answers tell nothing, and below 1, but is {float(truth):g}."
                )
        object.__setattr__(self, "categories", k)
        object.__setattr__(self, "threshold", math.floor(truth * 2**WORD))

    @property
    def p_truth(self) -> float:
        """Probability that an answer is the true one."""
        return float(Fraction(self.threshold, 2**WORD))

    @property
    def p_other(self) -> float:
        """Probability of each other answer."""
        return float((1 - Fraction(self.threshold, 2**WORD)) / (self.categories - 1))

    @property
    def eps(self) -> float:
        """Local privacy loss of one answer, in nats."""
        lies = 2**WORD - self.threshold
        return max(math.log(Fraction(self.threshold * (self.categories - 1), lies)), 0.0)

    @property
    def mu(self) -> float:
        """The m of Gaussian differential privacy of one answer, about which of two answers is the true one."""
        return mu_of_coin(float(1 - Fraction(self.threshold, 2**WORD)), self.p_other)

    @own_errors
    def posterior(self, prior: float = 0.5, *, answered: bool = True) -> float:
        """Posterior belief that an answer is a person's true one, after they gave it; or after they gave another one.

        Parameters
        ----------
        prior : float
            Belief, before, that this is the true answer, in (0, 1).
        answered : bool
            False: they gave another answer.

        Returns
        -------
        float
        """
        before = _number("prior", prior)
        if not 0 < before < 1:
            raise ParameterError(f"prior must be a probability above 0 and below 1, but is {float(before):g}.")
        likely, unlikely = self.p_truth, self.p_other
        if not answered:
            likely, unlikely = 1 - likely, 1 - unlikely
        held = likely * float(before)
        return held / (held + unlikely * float(1 - before))

    @own_errors
    def estimate(self, counts: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Unbiased estimates of the shares of the true answers, with confidence intervals.

        Parameters
        ----------
        counts : array_like of int, shape (categories,)
            How often each answer was given.
        level : float
            Confidence level of each interval, in (0, 1).

        Returns
        -------
        (ndarray, ndarray, ndarray) of float64, shape (categories,)
            Estimate, low and high. An estimate may lie below 0 or above 1, the ends do not. NaN if there are no
            answers.

        Notes
        -----
        A share f of answers estimates ``(f - q) / (p - q)``, p = ``p_truth`` and q = ``p_other``. The interval is
        Clopper & Pearson's of f, transformed in the same way. It holds for the population of which the respondents are
        a random sample. It also holds for the respondents themselves: the number of those who give this answer is then
        a sum of unequal trials, which varies less than a binomial one of the same mean (Hoeffding 1956).
        """
        times = np.asarray(counts)
        if times.dtype.kind not in "iu" or times.shape != (self.categories,) or (times < 0).any():
            raise ColumnTypeError(f"counts are {self.categories:,} whole numbers, one for each answer.")
        sure, n = _number("level", level), int(times.sum())
        if not 0 < sure < 1:
            raise ParameterError(f"level must be a probability above 0 and below 1, but is {float(sure):g}.")
        if n == 0:
            unknown = np.full(times.shape, np.nan)
            return unknown, unknown.copy(), unknown.copy()
        ends = np.array([clopper_pearson(time, n, float(sure)) for time in times.tolist()])
        low, high = np.clip(self._share(ends.T), 0.0, 1.0)
        return self._share(times / n), low, high

    @own_errors
    def respondents(self, half_width: float, *, share: float = 0.5, level: float = 0.95) -> int:
        """Sample size: how many people have to answer for an interval of this half-width.

        Parameters
        ----------
        half_width : float
            Half-width of the interval of one share, in (0, 1/2).
        share : float
            The true share that is expected. With two answers, 1/2 needs the most people.
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        int
            The least number at which the interval around the expected number of answers is narrow enough. Larger
            numbers are enough, too, up to steps of one answer.

        Raises
        ------
        ParameterError
            If that takes more than a billion people, or an argument is out of its range.
        """
        width, expected, sure = _number("half_width", half_width), _number("share", share), _number("level", level)
        if not (0 < width < Fraction(1, 2) and 0 <= expected <= 1 and 0 < sure < 1):
            raise ParameterError("half_width lies between 0 and 1/2, share from 0 to 1, level between 0 and 1.")
        given = self.p_other + (self.p_truth - self.p_other) * float(expected)

        def is_enough(n: int) -> bool:
            low, high = clopper_pearson(round(n * given), n, float(sure))
            return (high - low) / 2 <= float(width) * (self.p_truth - self.p_other)

        few, many = 0, 1
        while not is_enough(many):
            few, many = many, 2 * many
            if many > 2 * MOST_RESPONDENTS:
                raise ParameterError(
                    "that takes more than a billion people: ask with a larger eps, or a wider interval."
                )
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if is_enough(middle) else (middle, many)
        return many

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> IntArray:
        """Randomised answer for each of G people: groups of one, whose value is the number of their answer.

        If a person's answer is none of the categories, a random one is drawn: each with probability 1/k, which lies
        between `p_other` and `p_truth`.
        """
        assert summary.whole is not None  # group by group the number of the one answer
        answers, k = summary.whole, self.categories
        sizes = np.full(answers.shape, k, dtype=np.int64)
        listed = answers < k
        words: Words = bits(len(answers))
        truthful = listed & (words < np.uint64(self.threshold))
        other = uniform_below(sizes - listed, bits)
        return np.where(truthful, answers, np.where(listed, (answers + 1 + other) % k, other))

    def _share(self, given: FloatArray) -> FloatArray:
        return (given - self.p_other) / (self.p_truth - self.p_other)


def _number(name: str, value: object) -> Fraction:
    """A finite number, exactly as it is written."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | Fraction | np.integer | np.floating):
        raise ColumnTypeError(f"{name} must be a number, not {shown(value)}.")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        is_finite = False
    if not is_finite:
        raise ParameterError(f"{name} must be finite and fit a float, but is {shown(value)}.")
    return value if isinstance(value, Fraction) else Fraction(str(value))
