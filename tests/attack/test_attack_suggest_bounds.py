"""An attacker who wants one person out of ``suggest_bounds``: from the pair, and from the noisy counts behind it.

Noise is not seeded. What an honest mechanism may not do is judged by Clopper-Pearson bounds at 1e-10 each side, what a
broken one must show holds all but surely: this file fails by chance with less than 1e-7.
"""

import itertools
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
import pdrisk._answer.releasing
import pdrisk._pandas.suggested_bounds
from attacks import close
from pdrisk._mechanisms import discrete_laplace
from pdrisk.engines.numpy.bins import LARGEST, SIZES, SMALLEST, size_counts
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.risk import posterior

ALL = 2 * SIZES + 1
ONE_OF_EACH = [sign * math.ldexp(0.75, size) for sign in (-1, 1) for size in range(SMALLEST, LARGEST + 1)] + [0.0]
LEVEL = 1e-10

# name: what everybody else has, what one person has, and how many others share it where that person decides the answer
PAIRS = {
    "alone": ({}, 42.0, 12),
    "the next size": ({3.0: 100}, 5.0, 6),
    "a size far away": ({3.0: 100}, 2.0**270, 17),
    "nothing": ({-3.0: 100}, 0.0, 6),
}
# What each world of a pair shows where no noise changes it.
EXPECTED = {
    42.0: (None, (32.0, 64.0)),
    5.0: ((2.0, 4.0), (2.0, 8.0)),
    2.0**270: ((2.0, 4.0), (2.0, 2.0**271)),
    0.0: ((-4.0, -2.0), (-4.0, 0.0)),
}
EVERY = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


def no_noise(exact, change, eps):
    return exact


def a_tenth(exact, change, eps):
    noise = np.random.default_rng().laplace(scale=float(change / (10 * eps)), size=len(exact))
    return exact + np.rint(noise).astype(np.int64)


def worlds(pair):
    """Without the person and with: neighbours."""
    others, value, sharing = pair
    records = [x for x, n in others.items() for _ in range(n)] + [value] * sharing
    return [pd.DataFrame({"x": [*records, *more]}, dtype=float) for more in ([], [value])]


def answer(frame, eps=1):
    try:
        return tuple(frame.dprisk.suggest_bounds("x", eps=eps))
    except pdrisk.BoundsNotFoundError:
        return None


def at_least(hits, draws):
    return np.where(hits > 0, scipy.stats.beta.ppf(LEVEL, hits, draws - hits + 1), 0.0)


def at_most(hits, draws):
    return np.where(hits < draws, scipy.stats.beta.isf(LEVEL, hits + 1, draws - hits), 1.0)


def belief(hits, draws):
    """What the two worlds' shares of an event surely allow an attacker to believe who starts at 1/2, the larger."""
    one, other = hits
    odds = np.maximum(at_least(one, draws) / at_most(other, draws), at_least(other, draws) / at_most(one, draws))
    return (odds / (1 + odds)).max()


def from_pairs(pair, draws):
    """The belief of one who sees the pair, or that there is none, and knows what either world would show."""
    seen = [[answer(frame) for _ in range(draws)] for frame in worlds(pair)]
    return max(belief([np.array(each.count(event)) for each in seen], draws) for event in EXPECTED[pair[1]])


class TestSensitivity:
    """Neighbours differ by one in one count: all counts together have a sensitivity of 1."""

    @given(st.lists(st.floats(), max_size=20), st.floats(allow_nan=False), st.integers(0, 20))
    def test_of_any_record(self, values, record, at):
        more = [*values[:at], record, *values[at:]]
        change = size_counts(np.array(more)) - size_counts(np.array(values, dtype=float))
        assert (change.sum(), np.abs(change).sum()) == (1, 1)

    def test_of_one_among_many(self):
        values = np.concatenate([np.arange(-SIZE, SIZE), [1e300, 1e-300]])
        whole = size_counts(values)
        for at in (0, SIZE - 1, SIZE, SIZE + 1, len(values) - 1):
            change = whole - size_counts(np.delete(values, at))
            assert (change.sum(), np.abs(change).sum()) == (1, 1)
        assert (size_counts(np.append(values, math.nan)) == whole).all()


class TestThePair:
    """Who sees the bounds believes at most ``posterior(eps)``, however near to a threshold the counts are."""

    @pytest.mark.slow
    @EVERY
    def test_of_one_person_who_decides(self, pair):
        assert from_pairs(pair, 100) <= float(posterior(1.0))

    @pytest.mark.sampled(99)
    @EVERY
    def test_an_answer_without_noise_is_caught(self, monkeypatch, pair):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", no_noise)
        assert [answer(frame) for frame in worlds(pair)] == list(EXPECTED[pair[1]])
        assert from_pairs(pair, 100) > float(posterior(1.0))

    @pytest.mark.slow
    def test_a_tenth_of_the_noise_is_caught(self, monkeypatch):
        # One world shows the far size with exp(-6.8) / 2 = .0006, the other with 1 - exp(-3.2) / 2 = .98.
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", a_tenth)
        assert from_pairs(PAIRS["a size far away"], 200) > float(posterior(1.0))

    def test_an_end_chosen_by_exact_counts_is_caught(self, monkeypatch):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", a_tenth)  # whatever was drawn
        monkeypatch.setattr(
            "pdrisk._pandas.suggested_bounds.released", exactly(pdrisk._pandas.suggested_bounds.released)
        )
        assert from_pairs(PAIRS["the next size"], 100) > float(posterior(1.0))

    @pytest.mark.parametrize("seed", range(3))
    def test_it_is_made_of_the_noisy_counts_and_of_nothing_else(self, monkeypatch, seed):
        """The same noisy counts give the same words, whatever the data."""
        noisy = np.random.default_rng(seed).laplace(size=ALL) + 100 * seed * (np.arange(ALL) == SIZES + 335)
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: np.rint(noisy * change).astype(np.int64),
        )
        said = set()
        for records in ([], [1.0], [math.nan], [math.inf] * 500, [-3.0] * 1000, np.arange(100_000) - 7.0):
            frame = pd.DataFrame({"x": records}, dtype=float)
            try:
                found = frame.dprisk.suggest_bounds("x", eps=1)
                said.add((*found, repr(found), *map(str, vars(found).items())))
            except pdrisk.BoundsNotFoundError as error:
                said.add((str(error), error.args))
        assert len(said) == 1


def exactly(released):
    """Forgets the noise after it was paid."""

    def broken(query, read, shown, ledger, **options):
        def forgetful(result, found):
            result.releases[0].noisy.drawn[:] = found.summaries[0].n
            return shown(result, found)

        return released(query, read, forgetful, ledger, **options)

    return broken


class TestTheCounts:
    """Who sees all noisy counts learns of a record what the noisy count of its own size tells, which is worth eps.

    Every size has ``SHARING`` people in one world and one more in the other: each is an attack of its own on the
    person who came last, as one more person changes one of the counts and no other.
    """

    SHARING, CALLS = 3, 8

    def histograms(self, monkeypatch, eps, calls=CALLS, more=0):
        """Noisy counts as `released` gives them, shape (calls, all sizes)."""
        seen = []

        def spy(query, read, shown, ledger, **options):
            def seeing(result, found):
                seen.extend(one.noisy.values for one in result.releases)
                return shown(result, found)

            return released(query, read, seeing, ledger, **options)

        released = pdrisk._answer.releasing.released
        monkeypatch.setattr("pdrisk._pandas.suggested_bounds.released", spy)
        frame = pd.DataFrame({"x": np.repeat(ONE_OF_EACH, self.SHARING + more)})
        for _ in range(calls):
            answer(frame, eps)
        assert {values.shape for values in seen} == {(ALL,)}
        assert len(seen) == calls  # one release for each call
        return np.array(seen)

    def attack(self, monkeypatch, eps):
        """Noisy counts of the two worlds, shape (2, draws), without what the attacker knows."""
        both = [self.histograms(monkeypatch, eps, more=more) for more in (0, 1)]
        return np.array(both).reshape(2, -1) - self.SHARING

    def belief(self, seen, eps):
        """The largest that the events ``o <= t`` and ``o > t`` surely allow."""
        draws = seen.shape[1]
        thresholds = [shift / eps + person for person in (0, 0.5, 1) for shift in (-2, -1, -0.5, 0, 0.5, 1, 2)]
        below = np.array([[(row <= t).sum() for t in thresholds] for row in seen])
        return max(belief(below, draws), belief(draws - below, draws))

    @pytest.mark.parametrize("eps", [0.1, 1, 2])
    def test_what_the_attacker_learns_and_how_often_he_is_right(self, monkeypatch, eps):
        seen = self.attack(monkeypatch, eps)
        assert self.belief(seen, eps) <= float(posterior(eps))
        right = np.concatenate([seen[0] < 0.5, seen[1] > 0.5])
        assert close(right.mean(), 1 - math.exp(-eps / 2) / 2, right.size)  # docs/numbers.md

    @pytest.mark.parametrize("too_little", [1.5, 2, 10])
    def test_too_little_noise_is_caught(self, monkeypatch, too_little):
        factor = Fraction(too_little)
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: discrete_laplace(exact, change, factor * eps),
        )
        assert self.belief(self.attack(monkeypatch, 1), 1) > float(posterior(1.0))

    def test_a_record_that_counts_twice_is_caught(self, monkeypatch):
        monkeypatch.setattr("pdrisk.engines.numpy.bins.size_counts", lambda values: 2 * size_counts(values))
        seen = self.attack(monkeypatch, 1) - self.SHARING
        assert self.belief(seen, 1) > float(posterior(1.0))

    def test_noise_is_fresh_for_every_size_and_call(self, monkeypatch):
        """Signs of two counts agree half of the time: n = 10,600 of them are off by .05 with 2 exp(-2 n .05^2)."""
        up = self.histograms(monkeypatch, 0.1) > self.SHARING
        assert abs(up.mean() - 0.5) < 0.05
        for lag in (1, 2, 3, SIZES // 2, SIZES):
            assert abs((up[:, lag:] == up[:, :-lag]).mean() - 0.5) < 0.05 * math.sqrt(ALL / (ALL - lag))
        assert abs((up == up[:, ::-1])[:, :SIZES].mean() - 0.5) < 0.05 * math.sqrt(2)
        agree = [(one == other).mean() for one, other in itertools.combinations(up, 2)]
        assert max(abs(share - 0.5) for share in agree) < 0.13  # 28 pairs of 1325: 1e-18

    def test_no_count_goes_without_noise(self, monkeypatch):
        seen = self.histograms(monkeypatch, 0.01)
        assert not (seen == self.SHARING).all(axis=0).any()


class TestOneRelease:
    """All counts together are one release by the one way there is, with eps exactly as asked, drawn once."""

    FRAME = pd.DataFrame({"x": [42.0] * 500, "y": "text", "z": 1})

    @pytest.fixture
    def calls(self, monkeypatch):
        """What was asked of the order of things, of the reader and of the only function that draws."""
        found = []
        released, read = pdrisk._answer.releasing.released, size_counts
        monkeypatch.setattr(
            "pdrisk._pandas.suggested_bounds.released",
            lambda query, *rest, **options: found.append(("query", query)) or released(query, *rest, **options),
        )
        monkeypatch.setattr(
            "pdrisk.engines.numpy.bins.size_counts",
            lambda values: found.append(("read", values)) or read(values),
        )
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda *asked: found.append(("draw", *asked)) or discrete_laplace(*asked),
        )
        return found

    @pytest.mark.parametrize(
        ("eps", "exact"),
        [(0.1, Fraction(1, 10)), (1, 1), (Fraction(1, 3), Fraction(1, 3)), (np.float64(0.7), Fraction(7, 10))],
    )
    def test_of_one_query(self, calls, eps, exact):
        answer(self.FRAME, eps)
        (_, query), (_, values), (_, steps, change, paid) = calls
        assert [name for name, *_ in calls] == ["query", "read", "draw"]
        assert (query.shares, query.eps, paid) == ((exact,), exact, exact)
        assert (query.where, query.groups, [line.column for line in query.lines]) == (None, None, ["x"])
        # The noise is made for a change of one record in one count.
        assert (steps == size_counts(values) * change).all()

    def test_the_pair_says_what_was_paid(self, calls):
        found = self.FRAME.dprisk.suggest_bounds("x", eps=Fraction(7, 2))
        assert (found.eps, found.worst_case) == (3.5, float(posterior(3.5)))
        assert vars(found) == {"column": "x", "eps": 3.5, "worst_case": found.worst_case}

    def test_looking_at_it_draws_nothing(self, calls):
        found = self.FRAME.dprisk.suggest_bounds("x", eps=5)
        calls.clear()
        assert [repr(found), str(found), found.worst_case, found == (32, 64), hash(found)]
        assert calls == []

    EPS = (0, -1, math.nan, math.inf, "1", True, 1j, 1e-13, 1e13, Decimal("Infinity"))

    @pytest.mark.parametrize("eps", EPS)
    @pytest.mark.parametrize("series", [False, True], ids=["frame", "series"])
    def test_eps_is_refused_as_elsewhere(self, calls, eps, series):
        suggest = self.FRAME["x"].dprisk.suggest_bounds if series else partial(self.FRAME.dprisk.suggest_bounds, "x")
        with pytest.raises(pdrisk.ParameterError) as elsewhere:
            self.FRAME.dprisk.count(eps=eps, mechanism="laplace")
        with pytest.raises(type(elsewhere.value), match=re.escape(str(elsewhere.value))):
            suggest(eps=eps)
        with pytest.raises(pdrisk.ParameterError, match="exactly one of eps="):
            suggest()  # eps has no default
        with pytest.raises(TypeError):
            suggest(1)  # and is passed by name
        assert calls == []

    @pytest.mark.parametrize(("column", "eps"), [("x", None), ("w", 1), ("y", 1), (["x"], 1), (("x", "z"), 1)], ids=str)
    def test_a_refusal_reads_and_draws_nothing(self, calls, column, eps):
        with pytest.raises(pdrisk.ParameterError):
            self.FRAME.dprisk.suggest_bounds(column, eps=eps)
        assert calls == []

    def test_what_fails_on_the_data_draws_nothing_and_hides_why(self, calls, monkeypatch):
        def failing(values):
            raise ValueError(f"a record is {values[0]}")

        monkeypatch.setattr("pdrisk.engines.numpy.bins.size_counts", failing)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            self.FRAME.dprisk.suggest_bounds("x", eps=1)
        assert "42" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert [name for name, *_ in calls] == ["query"]


class TestWhatIsSaid:
    """What is not found says nothing of the data but that, and noise alone finds hardly anything."""

    @pytest.mark.parametrize(
        ("eps", "frames"),
        [
            (0.01, ([], [math.nan] * 99, [42.0] * 1200, [-1.0, 1.0] * 1200 + [0.0] * 600)),
            (1, ([], [math.inf] * 11, [42.0] * 12, [0.0] * 6 + [5.0])),
            (50, ([], [math.nan])),
        ],
    )
    def test_one_sentence(self, monkeypatch, eps, frames):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", no_noise)
        said = set()
        for records in frames:
            with pytest.raises(pdrisk.BoundsNotFoundError) as caught:
                pd.DataFrame({"x": records}, dtype=float).dprisk.suggest_bounds("x", eps=eps)
            assert caught.value.__cause__ is caught.value.__context__ is None
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
            said.add(str(caught.value))
        (sentence,) = said
        for part in ("suggest_bounds(x) found no size", f"eps={eps:g}", "stays paid", "larger eps", "declare"):
            assert part in sentence
        assert int(sentence.split("Some ")[1].split()[0]) >= max(1, math.floor(12 / eps))

    @pytest.mark.parametrize("records", [[], [42.0], [1.0, -1.0, 0.0]], ids=str)
    def test_tiny_frames(self, records):
        """Noise finds something with one in a hundred at most: all of six times with 1e-12."""
        assert None in [answer(pd.DataFrame({"x": records}, dtype=float), 0.1) for _ in range(6)]
