"""How far answers of the exponential mechanism are from the exact one: by the probabilities of all points."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential import Exponential
from pdrisk.engines.numpy.grouped import summary_of_groups
from test_exponential import masses

SIZE = 5
UNIVERSE = Universe(0.0, SIZE - 1.0)


def probabilities(mechanism, records):
    """Of each point, by the definition."""
    found = masses(mechanism, tuple(records))
    return [Fraction(each, sum(found)) for each in found]


@pytest.mark.parametrize("eps", ["1/10", "1", "4"])
@pytest.mark.parametrize(
    "statistic",
    [Median(whole=True), Quantile(0.9, whole=True), Max(whole=True), Min(whole=True)],
    ids=lambda each: each.label,
)
def test_the_smallest_distance_that_19_of_20_answers_keep(statistic, eps):
    """Of all small data at once, each a group."""
    data = [each for n in range(4) for each in itertools.combinations_with_replacement(range(SIZE), n)]
    mechanism = Exponential(statistic, UNIVERSE, Fraction(eps))
    codes = np.repeat(np.arange(len(data)), [len(each) for each in data]).astype(np.int32)
    values = np.array([x for each in data for x in each], dtype=float)
    summary = summary_of_groups(values, codes, len(data), UNIVERSE, mechanism.needs(statistic))
    found = mechanism.noise95(summary)
    exact = statistic.value(summary, UNIVERSE)
    for at, records in enumerate(data):
        chance = probabilities(mechanism, records)
        off = [abs(y - exact[at]) for y in range(SIZE)]
        within = float(sum(p for p, d in zip(chance, off, strict=True) if d <= found[at] + 1e-9))
        assert within >= 0.95 - 1e-9, records
        nearer = float(sum(p for p, d in zip(chance, off, strict=True) if d < found[at] - 1e-9))
        assert nearer < 0.95 + 1e-9, records
