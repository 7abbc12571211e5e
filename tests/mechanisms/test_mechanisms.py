"""Mechanisms: what each draws, the loss it claims, its interval, and the attacker's success, from the definitions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk._core.lattice import PLACES, Lattice
from pdrisk._core.order import Max, Median, Quantile
from pdrisk._core.pairs import Corr, CorrAmong
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Sum, WholeSum
from pdrisk._core.summary import Summary
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.surveys.weighted import WeightedMedian
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS, calibrated, discrete_laplace, mechanism_for
from pdrisk._mechanisms.contract.base import SMALLEST_EPS
from pdrisk._mechanisms.laplace import noisy_steps
from pdrisk._mechanisms.laws.fieller import CELLS, mean_interval
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE
from pdrisk._mechanisms.two_sums import _critical, _tail
from pdrisk.engines.numpy.single import summary_of_one
from places import place

LO, HI = 1.0, 675.0
BOUNDS = Universe(LO, HI)
RECORDS = st.lists(st.floats(-100, 1000), max_size=6)
EPS = (Fraction(1, 10), Fraction(1), Fraction(3))


def summarised(mechanism, records):
    values = np.array(records, dtype=float)
    return summary_of_one(values, mechanism.universe, mechanism.needs(mechanism.statistic))


def exact(mechanism, records):
    """What a mechanism adds noise to, as whole numbers, and the change and eps that the noise is calibrated to."""
    asked = []

    def sampler(numbers, change, eps):
        asked.append((numbers, change, eps))
        return numbers

    mechanism.draw(summarised(mechanism, records), sampler)
    (found,) = asked
    return found


ANSWERED = (Count(), Sum(), WholeSum(), Mean(), Mean(n_at_least=200), Var(), Std(0), Median(), Quantile(0.9), Max())


class TestDraws:
    """A draw reads no more than `Mechanism.draws`, which is part of what the mechanism reads."""

    @pytest.mark.parametrize(
        ("name", "statistic"),
        [
            (name, statistic)
            for name, one in MECHANISMS.items()
            for statistic in ANSWERED
            if one.answers(statistic) or one.joins(statistic)
        ],
        ids=str,
    )
    def test_nothing_else_is_looked_at(self, name, statistic):
        mechanism = calibrated(name, statistic, BOUNDS, Fraction(2))
        assert mechanism.reads | mechanism.draws == mechanism.reads
        values = np.random.default_rng(5).gamma(2, 60, 400)

        def drawn(needs):
            stream, asked = np.random.default_rng(8), []

            def bits(size):
                return stream.integers(0, 2**64, size, dtype=np.uint64)

            def sampler(numbers, change, eps):
                asked.append((numbers.tolist(), np.asarray(change).tolist(), eps))
                return numbers

            summary = summary_of_one(values, BOUNDS, needs)
            return mechanism.draw(summary, sampler, bits).tolist(), asked

        assert drawn(mechanism.draws) == drawn(mechanism.reads)


class TestChoice:
    """``"auto"`` takes the accurate mechanism where there is one; a name is taken at its word."""

    @pytest.mark.parametrize(
        ("statistic", "name"),
        [
            (Count(), "geometric"), (Distinct(), "geometric"), (WholeSum(), "geometric"), (Sum(), "laplace"),
            (Mean(), "two_sums"), (Var(), "bernstein"), (Std(0), "bernstein"), (Median(), "exponential"),
            (Quantile(0.9), "exponential"), (Max(), "exponential"), (Max(bounds_reached=True), "exponential"),
        ],
    )  # fmt: skip
    def test_auto(self, statistic, name):
        assert mechanism_for(statistic, "auto").name == name

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("name", ["count", "mean", "median", "sum", "var"])
    def test_the_papers_answers_everything(self, name):
        frame = pd.DataFrame({"x": [1.0, 2.0, 600.0]})
        release = getattr(frame.dprisk, name)("x", eps=5, bounds=(LO, HI), mechanism="laplace")
        assert release.mechanism == "laplace"
        assert release.scale == release.global_sensitivity / 5

    @pytest.mark.parametrize(
        ("mechanism", "words"),
        [
            ("gaussian", "unknown mechanism 'gaussian'; available: auto, laplace, geometric, two_sums, bernstein"),
            ("two_sums", "'two_sums' cannot answer median; available for it: auto, laplace"),
            ("geometric", "'geometric' cannot answer median"),
            (None, "mechanism is a name"),
        ],
    )
    def test_refusals(self, mechanism, words):
        frame = pd.DataFrame({"x": [1.0]})
        with pytest.raises(pdrisk.PdriskError, match=words):
            frame.dprisk.median("x", eps=1, bounds=(LO, HI), mechanism=mechanism)


class TestTwoSums:
    """One record moves the pair of sums by exactly the number of places, whatever it is, so everybody loses eps."""

    @given(records=RECORDS, one=st.floats(-1e9, 1e9), eps=st.sampled_from(EPS))
    def test_the_change_of_one_record(self, records, one, eps):
        mechanism = calibrated("two_sums", Mean(), BOUNDS, eps)
        before, change, asked = exact(mechanism, records)
        after, *_ = exact(mechanism, [*records, one])
        assert int(np.abs(after - before).sum()) == change == PLACES
        assert asked == eps

    @given(records=RECORDS)
    def test_places_are_the_one_rule_on_exact_numbers(self, records):
        (above, below), *_ = exact(calibrated("two_sums", Mean(), BOUNDS, EPS[1]), records)
        places = [place(x, Universe(LO, HI)) for x in records]
        assert (above, below) == (sum(places), len(records) * PLACES - sum(places))

    @given(records=st.lists(st.floats(LO, HI), min_size=2, max_size=6))
    def test_loss_between_worlds(self, records):
        mechanism = calibrated("two_sums", Mean(), BOUNDS, Fraction(1))
        worlds = [exact(mechanism, records[:at] + records[at + 1 :])[0] for at in range(len(records))]
        largest = max(int(np.abs(a - b).sum()) for a, b in itertools.combinations(worlds, 2)) / PLACES
        claimed = float(mechanism.loss_between_worlds(summarised(mechanism, records))[0])
        assert claimed == pytest.approx(largest, rel=1e-12)
        places, unit = mechanism.worlds(np.array(records), summarised(mechanism, records))
        assert np.ptp(places) / unit == pytest.approx(claimed)

    @pytest.mark.parametrize("records", [[], [LO], [HI], [300.0] * 3, [LO, HI]])
    def test_answers_lie_within_the_bounds(self, records):
        mechanism = calibrated("two_sums", Mean(), BOUNDS, Fraction(1, 10))
        summary = summarised(mechanism, records)
        many = Summary(np.repeat(summary.n, 3000), places=np.repeat(summary.places, 3000))
        drawn = mechanism.draw(many)
        values, (low, high) = mechanism.value(drawn), mechanism.interval(drawn, 0.95)
        for each in (values, low, high):
            assert each.min() >= LO and each.max() <= HI
        assert (low <= values).all() and (values <= high).all()

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
    @pytest.mark.parametrize("n", [0, 1, 2, 5, 20, 300])
    @pytest.mark.parametrize("level", [0.95, 0.5])
    def test_coverage(self, share, n, level):
        mechanism = calibrated("two_sums", Mean(), Universe(0.0, 1.0), Fraction(1))
        size = 10_000
        many = Summary(np.full(size, n), places=np.full(size, round(n * share * PLACES)))
        low, high = mechanism.interval(mechanism.draw(many), level)
        truth = round(n * share * PLACES) / (n * PLACES) if n else 0.5
        covered = np.mean((low <= truth) & (truth <= high))
        assert covered > level - 6 * math.sqrt(level * (1 - level) / size)
        if n == 300 and share == 0.5:
            assert covered < level + 0.03

    @pytest.mark.parametrize("share", [0, 1])
    @pytest.mark.parametrize("name", ["two_sums", "bernstein"])
    def test_records_at_an_end_have_narrow_intervals(self, name, share):
        """However far the noise of the sum that is 0 goes: in one of 40 draws, beyond all that is accepted."""
        mechanism = calibrated(name, Mean(), Universe(0.0, 1.0), Fraction(1))
        places = np.full(4000, 1000 * share * PLACES)
        low, high = mechanism.interval(
            mechanism.draw(Summary(np.full(4000, 1000), places=places, place_squares=places)), 0.95
        )
        assert (high - low).max() < 8 / 1000
        assert np.mean((low <= share) & (share <= high)) > 0.96

    @pytest.mark.parametrize("universe", [Universe(0.0, 1.0), BOUNDS, Universe(-3.3, 0.1)], ids=str)
    def test_no_group_changes_the_interval_of_another(self, universe):
        mechanism = calibrated("two_sums", Mean(), universe, Fraction(7, 5))
        size = 20_000  # more than are looked at together
        counts = np.arange(size) % 40
        drawn = mechanism.draw(Summary(counts, places=counts * (PLACES // 3)))
        low, high = mechanism.interval(drawn, 0.95)
        for group in (*range(40), 8191, 8192, size - 1):
            own = drawn[:, group : group + 1]
            alone = mechanism.interval(own, 0.95)
            assert (low[group], high[group]) == (alone[0][0], alone[1][0])
            assert mechanism.value(drawn)[group] == mechanism.value(own)[0]

    @given(parts=st.tuples(*[st.floats(-9, 9) | st.floats(-500, 500)] * 2))
    def test_the_interval_is_the_hull_of_all_accepted_means(self, parts):
        """Looked for in each cell between two known critical values: its ends, and where the lines cross."""
        critical, knots = _critical(0.95), np.arange(CELLS + 1) / CELLS
        a, b = parts
        low, high = (ends[0] for ends in mean_interval(np.array([a]), np.array([b]), 1.0, critical))
        if a + b <= 0:
            assert (low, high) == (0, 1)
            return
        accepted = knots[np.abs((1 - knots) * a - knots * b) <= critical]
        assert not len(accepted) or low <= accepted[0] + 1e-9 <= accepted[-1] + 2e-9 <= high + 3e-9
        a, b = max(a, 0.0), max(b, 0.0)
        found = list(knots[np.abs((1 - knots) * a - knots * b) <= critical])
        for sign in (1, -1):
            excess = critical - sign * ((1 - knots) * a - knots * b)
            at = np.flatnonzero(np.sign(excess[1:]) * np.sign(excess[:-1]) < 0)
            crossing = knots[at] + excess[at] / (excess[at] - excess[at + 1]) / CELLS
            limit = np.interp(crossing, knots, critical)
            found += list(crossing[np.abs((1 - crossing) * a - crossing * b) <= limit + 1e-9])
        assert low == pytest.approx(min(found), abs=1e-9)
        assert high == pytest.approx(max(found), abs=1e-9)

    def test_the_tail_is_that_of_two_laplace_variables(self):
        rng = np.random.default_rng(5)
        x, y = rng.laplace(size=(2, 400_000))
        for m in (0.0, 0.2, 0.5, 0.5000001, 0.9, 1.0):
            for t in (0.1, 1.0, 3.0):
                measured = np.mean(np.abs((1 - m) * x - m * y) > t)
                assert float(_tail(np.array(t), np.array(m))) == pytest.approx(measured, abs=0.004)

    def test_the_critical_value_is_convex_in_the_mean(self):
        """On which the search for the ends of the interval relies."""
        from scipy.optimize import brentq

        means = np.linspace(0, 1, 401)
        for beyond in (0.5, 0.05, 1e-4):
            critical = [brentq(lambda t, m=m, b=beyond: _tail(np.array(t), np.array(m)) - b, 0, 40) for m in means]
            assert np.diff(critical, 2).min() > -1e-9

    @pytest.mark.parametrize(("n", "worst"), [(300, 0.0035), (10_000, 1.1e-4)])
    def test_accuracy(self, n, worst):
        """MECHANISMS.md: mean absolute error R / (n eps) (1 - m (1 - m))."""
        mechanism = calibrated("two_sums", Mean(), Universe(0.0, 1.0), Fraction(1))
        size = 5000
        many = Summary(np.full(size, n), places=np.full(size, n * PLACES // 5))
        error = np.abs(mechanism.value(mechanism.draw(many)) - 0.2).mean()
        assert error == pytest.approx((1 - 0.2 * 0.8) / n, rel=0.1)
        assert error < worst

    def test_too_small_an_eps_is_refused(self):
        with pytest.raises(pdrisk.ParameterError, match="64-bit"):
            pd.DataFrame({"x": [1.0]}).dprisk.mean("x", eps=1e-9, bounds=(0, 1))

    def test_the_interval_holds_the_mean_of_rounded_records(self):
        """Among so many that noise is nothing: each record may be half a place from the place it counts with."""
        mechanism = calibrated("two_sums", Mean(), Universe(0.0, 1.0), Fraction(20))
        low, high = mechanism.interval(np.array([[2**60], [2**60]]), 0.95)
        assert 0.5 - 2 / PLACES <= low[0] <= 0.5 - 0.5 / PLACES
        assert 0.5 + 0.5 / PLACES <= high[0] <= 0.5 + 2 / PLACES


@pytest.mark.parametrize("name", ["laplace", "geometric"])
def test_the_smallest_eps(name):
    calibrated(name, Count(), BOUNDS, SMALLEST_EPS).check()
    with pytest.raises(pdrisk.ParameterError, match="is below 1e-12"):
        calibrated(name, Count(), BOUNDS, SMALLEST_EPS * Fraction(999, 1000)).check()


class TestLaplace:
    """Noise as wide as the statistic can change, on whole steps."""

    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_the_interval_is_as_wide_as_its_level(self, level):
        mechanism = calibrated("laplace", Mean(), Universe(0.0, 8.0), Fraction(1, 2))
        low, high = mechanism.interval(np.array([3.0]), level)
        (reach,) = high - 3.0
        assert reach == pytest.approx(3.0 - low[0])
        assert 1 - math.exp(-reach / 8) == pytest.approx(level)  # the scale is 4 / 0.5

    @given(answer=st.integers(-(2**40), 2**40), change=st.integers(2**31, 2**32))
    def test_steps_too_fine_for_so_much_noise_are_joined(self, answer, change):
        """Low bits are dropped, and neighbours are then no farther apart than the noise is for."""
        asked = []

        def sampler(numbers, kept, eps):
            asked.append((numbers, kept))
            assert kept / eps <= WIDEST_SCALE
            return numbers

        noisy_steps(np.array([answer, answer + change]), Lattice(1.0, change), Fraction(1, 10**9), sampler)
        ((numbers, kept),) = asked
        assert change // 2**9 < abs(int(numbers[1] - numbers[0])) <= kept


class TestGeometric:
    """Whole numbers with whole noise, within the range of possible answers."""

    @given(records=RECORDS, one=st.floats(-1e9, 1e9), eps=st.sampled_from(EPS))
    def test_the_change_of_one_record(self, records, one, eps):
        whole = Universe(-7.0, 12.0)
        for statistic, largest in ((Count(), 1), (WholeSum(), 12)):
            mechanism = calibrated("geometric", statistic, whole, eps)
            before, change, _ = exact(mechanism, records)
            after, *_ = exact(mechanism, [*records, one])
            assert abs(int(after[0]) - int(before[0])) <= change == largest

    @given(records=RECORDS)
    def test_whole_sum_is_the_sum_of_rounded_records(self, records):
        found, *_ = exact(calibrated("geometric", WholeSum(), Universe(-7.0, 12.0), EPS[1]), records)
        assert found[0] == sum(math.floor(min(max(x, -7.0), 12.0) + 0.5) for x in records)

    @pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_interval_is_the_shortest_that_holds(self, eps, level):
        mechanism = calibrated("geometric", Count(), Universe(0.0, 1.0), Fraction(eps))
        low, high = mechanism.interval(np.array([10**6]), level)
        reach = int(high[0]) - 10**6
        assert int(low[0]) == 10**6 - reach
        a = math.exp(-eps)

        def within(t):
            return (1 - a) / (1 + a) * sum(a ** abs(k) for k in range(-t, t + 1))

        assert within(reach) >= level - 1e-12
        assert reach == 0 or within(reach - 1) < level

    @pytest.mark.parametrize("change", [1, 2, 3, 8])
    @pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
    def test_success_is_the_total_variation(self, change, eps):
        mechanism = calibrated("geometric", WholeSum(), Universe(0.0, float(change)), Fraction(eps))
        a = math.exp(-eps / change)
        reach = int(60 * change / eps)
        likely = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + change + 1)}
        variation = sum(abs(p - likely.get(k - change, 0.0)) for k, p in likely.items()) / 2
        assert mechanism.success == pytest.approx((1 + variation) / 2, abs=1e-9)

    def test_counts_are_integers_within_their_range(self):
        frame = pd.DataFrame({"x": [1.0]})
        releases = [frame.dprisk.count(eps=0.2) for _ in range(200)]
        assert {type(release.value) for release in releases} == {int}
        assert min(release.value for release in releases) == 0 == min(release.low for release in releases)

    def test_step_declares_whole_numbers(self):
        frame = pd.DataFrame({"age": [20, 40, np.nan]})
        release = frame.dprisk.sum("age", eps=1, bounds=(17.5, 90.2), step=1)
        assert type(release.value) is int
        assert release.bounds == (18.0, 90.0)
        assert release.mechanism == "geometric"

    @pytest.mark.parametrize(
        ("statistic", "options"),
        [
            ("mean", {"step": 1}),
            ("sum", {"step": 2}),
            ("sum", {"step": True}),
            ("sum", {"step": 1, "bounds": (0.2, 0.9)}),
        ],
    )
    def test_refusals_of_step(self, statistic, options):
        frame = pd.DataFrame({"age": [20.0]})
        with pytest.raises(pdrisk.ParameterError):
            getattr(frame.dprisk, statistic)("age", **{"eps": 1, "bounds": (0, 90)} | options)


class TestSuccess:
    """The best attacker with a coin's prior reaches the claimed success, and never exceeds it."""

    DRAWS = 40_000

    @pytest.mark.parametrize(("record", "attained"), [(1.0, 0.6967), (0.5, 0.6209)])  # MECHANISMS.md, at eps 1
    def test_two_sums(self, record, attained):
        mechanism = calibrated("two_sums", Mean(), Universe(0.0, 1.0), Fraction(1))
        without, with_one = ([0.3] * 5, [0.3] * 5 + [record])
        (first, *_), (second, *_) = exact(mechanism, without), exact(mechanism, with_one)
        right = 0
        for own, other in ((first, second), (second, first)):
            drawn = discrete_laplace(np.repeat(own[:, np.newaxis], self.DRAWS, axis=1), PLACES, Fraction(1))
            # Log-likelihood of the world it came from against the other; ties are guessed.
            lead = np.abs(drawn - other[:, np.newaxis]).sum(axis=0) - np.abs(drawn - own[:, np.newaxis]).sum(axis=0)
            right += np.mean(lead > 0) + np.mean(lead == 0) / 2
        measured = right / 2
        spread = 6 / math.sqrt(8 * self.DRAWS)  # standard deviations, at most
        assert measured == pytest.approx(attained, abs=spread)
        assert measured < mechanism.success + spread

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_it_lies_between_a_coin_and_the_worst_case(self, name):
        deciles = tuple(Quantile(k / 10) for k in range(1, 10))
        statistic = {
            "geometric": Count(), "bernstein": Var(), "exponential_interval": Median(), "two_stage": Mean(n_at_least=9),
            "approximate_quantiles": deciles[4], "bernstein_products": Corr(), "exponential": Median(),
            "weighted_exponential": WeightedMedian(), "weighted_exponential_interval": WeightedMedian(),
            "noisy_moments": SecondMoments(), "k_norm_products": CorrAmong(0, 1, 3),
        }.get(name, Mean())  # fmt: skip
        for eps in (0.01, 1, 5):
            mechanism = calibrated(name, statistic, Universe(0.0, 1.0), Fraction(eps), deciles)
            assert 0.5 < mechanism.success <= 1 / (1 + math.exp(-eps)) + 1e-15


class TestDistinct:
    """A number of different values moves by one at most."""

    @given(values=st.lists(st.sampled_from("abcd"), max_size=7))
    def test_by_brute_force(self, values):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "k": 1})
        release = frame.dprisk.nunique("x", eps=1, curator=True)
        answers = [len(set(values[:at] + values[at + 1 :])) for at in range(len(values))]
        assert release.curator.local_sensitivity == 1  # a new value can always come
        assert release.curator.n == len(values)
        between = max(answers, default=0) - min(answers, default=0)
        expected = 1 / (1 + (len(values) - 1) * math.exp(-between)) if values else math.nan
        assert release.curator.identifiability == pytest.approx(expected, nan_ok=True)
        losses = frame.dprisk.individual_risk("x", "nunique", eps=1)
        moved = [len(set(values)) - without for without in answers]
        assert list(losses) == pytest.approx([1 / (1 + math.exp(-loss)) for loss in moved])

    def test_groups_and_missing_values(self):
        frame = pd.DataFrame({"x": ["a", "b", "a", None, "c"], "g": ["u", "u", "u", "u", "v"]})
        table = frame.dprisk.nunique("x", eps=40, by="g", keys=["v", "u", "w"])
        assert table["value"].tolist() == [1, 2, 0]
        assert table["value"].dtype == np.int64
        assert frame.dprisk.nunique("x", eps=40, where="g == 'u'").value == 2
