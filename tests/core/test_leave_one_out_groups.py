"""Leaving each record out of its own group gives what each group alone gives, bit for bit."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from noisy_answers import HI, LO
from oracle import DEFINITIONS, QUANTILES, fractions
from pdrisk._core.universe import Universe
from pdrisk._model.arguments import statistic
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.numpy.influence import losses, losses_of_line

NAMES = [
    "count", "sum", "mean", "median", "min", "max", "var", "std", ("var", {"ddof": 0}), ("std", {"ddof": 0}),
    *(("quantile", {"q": q}) for q in QUANTILES),
]  # fmt: skip
UNIVERSE = Universe(LO, HI)
SIZES = [0, 1, 2, 3, 4, 5, 17, 64]


def data(seed=0):
    draw = np.random.default_rng(seed)
    sizes = [size for size in SIZES for _ in range(3)]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    values = draw.choice([1, 1.1, 2, 2.5, 3.7, 4, 4, 6.9, 7, 99, -3, np.nan], len(groups))
    frame = pd.DataFrame({"g": groups, "x": values, "keep": draw.random(len(groups)) < 0.7})
    return frame.sample(frac=1, random_state=seed, ignore_index=True), range(len(sizes))


def reading_of(frame, chosen, keys=None, where=None, share=1):
    (line,) = judged_lines(frame, "x", (chosen,), Request(bounds=(LO, HI), mechanism="laplace"))
    by = None if keys is None else "g"
    query, engine = judged_selection(frame, (line,), Request(where=where, by=by, keys=keys), Fraction(share), (0,))
    return query, engine.read(query)


def influences(query, reading, eps=1):
    """How far each row's record moves the answer, of the losses of noise whose scale is known."""
    mechanism = query.mechanism(0, reading.universes[0], Fraction(eps))
    return losses_of_line(reading, 0, mechanism) * mechanism.scale


def close(name, found, expected):
    """Equal to the last bit; of spreads only nearly, as their sums are made in another order."""
    spread = "var" in name or "std" in name or "mean" in name or "sum" in name
    np.testing.assert_allclose(found, expected, rtol=1e-12 if spread else 0, atol=1e-7 if "std" in name else 1e-13)


@pytest.mark.parametrize("name", NAMES, ids=str)
class TestEachGroupAlone:
    """Groups of no, one, two and more records, with a filter and without."""

    def of(self, name, where):
        frame, keys = data()
        return frame, keys, *reading_of(frame, statistic(name), keys, where)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("where", [None, "keep == True"])
    def test_influences(self, name, where):
        frame, keys, query, reading = self.of(name, where)
        found = influences(query, reading)
        for key in keys:
            rows = frame["g"] == key
            expected = influences(*reading_of(frame[rows], statistic(name), None, where))
            close(str(name), found[rows], expected)

    def test_leave_one_out(self, name):
        """With the very summaries of the groups: bit for bit, where it is made in the same way."""
        frame, _, query, reading = self.of(name, None)
        summary, chosen = reading.summaries[0], query.lines[0].statistic
        known = frame["x"].notna()
        groups, records = frame["g"][known].to_numpy(), frame["x"][known].clip(LO, HI).to_numpy()
        for way in (chosen.leave_one_out, chosen.influence):
            found = way(records.copy(), summary.of_rows(groups), UNIVERSE)
            for key in np.unique(groups):
                rows = groups == key
                alone = way(records[rows].copy(), summary.of_rows(np.array([key])), UNIVERSE)
                slack = 1e-14 if name == "mean" and way == chosen.influence else 0  # which has a shorter way from n = 2
                np.testing.assert_allclose(found[rows], np.broadcast_to(alone, found[rows].shape), rtol=0, atol=slack)

    @pytest.mark.sampled(3)
    def test_definition(self, name):
        frame, keys, query, reading = self.of(name, None)
        found = influences(query, reading)
        definition = DEFINITIONS.get(query.lines[0].statistic.label)
        for key in keys:
            rows = (frame["g"] == key) & frame["x"].notna()
            if definition is None or rows.sum() > 20:
                continue
            records = fractions(frame["x"][rows].clip(LO, HI))
            np.testing.assert_allclose(found[rows], definition.influence(records, *fractions((LO, HI))), atol=1e-7)
            assert np.isnan(found[(frame["g"] == key) & frame["x"].isna()]).all()

    def test_no_arguments_are_changed(self, name):
        *_, query, reading = self.of(name, None)
        summary = reading.summaries[0]
        records, groups = np.array([2.0, 3.0, 4.0]), np.array([len(SIZES) * 3 - 1] * 3)
        query.lines[0].statistic.influence(records, summary.of_rows(groups), UNIVERSE)
        query.lines[0].statistic.leave_one_out(records, summary.of_rows(groups), UNIVERSE)
        assert records.tolist() == [2, 3, 4]


class TestLosses:
    """eps |f(D) - f(D - x)| / GS, added over lines; never above eps, and NaN where no line uses the row."""

    @pytest.mark.parametrize("n", [0, 1, 40_000])
    def test_pieces(self, n):
        """Of more rows than are worked on at once."""
        frame = pd.DataFrame({"g": np.arange(n) % 3, "x": 1.0 + np.arange(n) % 7})
        query, reading = reading_of(frame, statistic("mean"), [0, 1], share=2)
        found = losses(reading, query)
        assert found.shape == (n,) and np.isnan(found[frame["g"] == 2]).all()
        for key in (0, 1):
            rows = frame["g"] == key
            own = frame["x"][rows]
            expected = 2 / 3 * (own - own.mean()).abs() / (len(own) - 1) if len(own) > 1 else 2 / 3 * abs(own - 4)
            np.testing.assert_allclose(found[rows], expected, rtol=1e-9)

    def test_two_lines(self):
        frame = pd.DataFrame({"x": [1.0, np.nan, np.nan, 7.0], "y": [1.0, 2.0, np.nan, np.nan]})
        lines = [judged_lines(frame, column, (statistic("count"),), Request())[0] for column in "xy"]
        query, engine = judged_selection(frame, tuple(lines), Request(), share=Fraction(1), releases=(0, 1))
        query = replace(query, shares=(Fraction(1, 2), Fraction(1, 4)))
        np.testing.assert_array_equal(losses(engine.read(query), query), [0.75, 0.25, np.nan, 0.5])

    def test_never_above_eps(self):
        frame = pd.DataFrame({"x": [LO, HI] * 3 + [1e300, -1e300]})
        for name in NAMES:
            query, reading = reading_of(frame, statistic(name), share="0.3")
            assert (losses(reading, query) <= 0.3).all()
