"""Intervals of noisy answers that include the sampling error, from published numbers alone."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Final

import numpy as np

from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._caller_frame import caller
from pdrisk._core.replaced import OfSize
from pdrisk._core.risks.simple_random_sample import expected_mean, expected_mean_by_spread, expected_total
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Mean, Sum
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.weighted import WEIGHTED, change_of
from pdrisk._mechanisms import Bernstein
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk.errors import NoisyReleaseWarning, ParameterError

TO_NOISE: Final = 0.1  # of how often an interval fails: noise falls off faster than sampling error grows
NARROWER: Final = (
    "mechanism {mechanism!r} does not tell how much values spread, so this interval of the population holds for the "
    'widest spread that the bounds allow. If the values are not mostly at both bounds, ask with mechanism="bernstein": '
    "its release tells the variance, too, and this interval is much narrower."
)


def sampling_interval(noisy: NoisyAnswers, level: float, se: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Interval of the population's number, if the records are a simple random sample of it, shape (G,).

    With ``se``, the standard error by another design, by that.

    ``noisy``: of a mean or proportion, whose mechanism tells how many records there are; of a count, or of a sum of
        numbers of one sign.
    ``se``: the standard error by another design, whose interval is asked for.
    """
    if se is not None:
        return design_interval(noisy, np.array([se]), level)
    mechanism, fails = noisy.mechanism, 1 - level
    statistic, universe = mechanism.statistic, mechanism.universe
    if noisy.clip is not None:
        raise ParameterError(
            'kind="sampling" is about values whose bounds the sample did not decide, and it decided where these are '
            'clipped: ask without clip="private".'
        )
    sampled = 1 - fails * (1 - TO_NOISE)
    if isinstance(statistic, Mean | OfSize):
        noise = 1 - fails * TO_NOISE / (3 if isinstance(mechanism, Bernstein) else 2)
        known, times = mechanism.least_records(noisy.drawn, noise), 1
        if isinstance(statistic, OfSize):
            known, times = np.full(noisy.withheld.shape, float(statistic.size)), statistic.times
        if known is None:
            raise ParameterError(
                f'kind="sampling" needs to know how many records there are, which mechanism {mechanism.name!r} does '
                'not tell: ask with mechanism="two_sums".'
            )
        shares = (np.array(noisy.interval(noise)) / times - universe.lo) / universe.width
        low, high = np.clip(shares, 0.0, 1.0)
        if isinstance(mechanism, Bernstein):  # whose sums tell the variance, too
            of_records = replace(mechanism, statistic=Var(ddof=0))
            spread = of_records.interval(noisy.drawn, noise)[1] / universe.width**2
            low, high = expected_mean_by_spread(low, high, spread, known, sampled)
        else:
            low, high = expected_mean(low, high, known, sampled)
            if type(statistic) is Mean:
                warnings.warn(NARROWER.format(mechanism=mechanism.name), NoisyReleaseWarning, stacklevel=caller()[1])
        return noisy.shown(times * (universe.lo + universe.width * low), times * (universe.lo + universe.width * high))
    low, high = noisy.interval(1 - fails * TO_NOISE)
    if statistic.name.startswith(WEIGHTED) and change_of(statistic) is None:
        raise ParameterError(
            f'kind="sampling" of a {statistic.label} depends on how the sample was drawn: ask a Dataset with design='
            "pdrisk.Design(...), with sampling=."
        )
    if type(statistic) is Count:
        return noisy.shown(*expected_total(low, high, sampled))
    if isinstance(statistic, Sum) and universe.lo >= 0:
        low, high = expected_total(low / universe.hi, high / universe.hi, sampled)
        return noisy.shown(low * universe.hi, high * universe.hi)
    if isinstance(statistic, Sum) and universe.hi <= 0:
        low, high = expected_total(high / universe.lo, low / universe.lo, sampled)
        return noisy.shown(high * universe.lo, low * universe.lo)
    if isinstance(statistic, Sum):
        raise ParameterError(
            'kind="sampling" of a sum needs bounds on one side of 0: with both signs its sampling error depends on how '
            "many records there are. Ask for the mean, or for the sums of positive and negative values apart."
        )
    raise ParameterError(
        f'kind="sampling" is known for count, sum, mean and proportion, not for {statistic.label}: leave it out.'
    )


def design_interval(noisy: NoisyAnswers, se: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of the population over the noise and the choice of the sample, by standard errors of its design.

    In first order the noise moves a sum by its weights, and a mean by ``(top - mean bottom) / weight``; the sample
    moves both by a nearly normal error.
    """
    law, values = noisy.mechanism.law(noisy.drawn), noisy.values.astype(np.float64)
    assert law is not None and law.top
    moved = np.array(law.top)[:, np.newaxis] + np.zeros(values.shape)
    if law.bottom:
        bottom = np.array(law.bottom)[:, np.newaxis]
        weight = np.maximum((bottom * law.measured(noisy.drawn)).sum(axis=0), float(law.scale))
        moved = (moved - values * bottom) / weight
    known = ~np.isnan(se) & ~noisy.withheld
    moved = np.where(known, moved, 1.0) * float(law.scale)
    reach = critical_of_sum(moved, level, variance=np.where(known, se, 0.0) ** 2)
    least, most = noisy.shown_range
    low, high = noisy.shown(np.clip(values - reach, least, most), np.clip(values + reach, least, most))
    return np.where(known, low, np.nan), np.where(known, high, np.nan)
