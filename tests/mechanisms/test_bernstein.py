"""Variances by three noisy sums: losses, risks, worlds, values and intervals, from the definitions."""

import itertools
import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from attacks import watch
from noisy_answers import seeded
from pdrisk._core.lattice import PLACES
from pdrisk._core.risks.worlds import exact_of_worlds, tight_of_worlds
from pdrisk._core.spread import Std, Var
from pdrisk._core.summary import Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.laws.laplace_sums import critical, tail
from pdrisk.datasets import soep_like
from pdrisk.engines.numpy.single import summary_of_one
from places import place
from sql_people import lines

LO, HI = 1.0, 675.0
BOUNDS, UNIT = Universe(LO, HI), Universe(0.0, 1.0)
RECORDS = st.lists(st.floats(-100, 1000), max_size=6)
EPS = (Fraction(1, 10), Fraction(1), Fraction(3))


def shares(k, whole=PLACES):
    """What a record at place k adds to the three sums."""
    first, last = math.floor(Fraction((whole - k) ** 2, whole)), math.floor(Fraction(k * k, whole))
    return first, whole - first - last, last


def apart(a, b):
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def places_of(records, universe):
    return [place(x, universe) for x in records]


def summarised(mechanism, records):
    return summary_of_one(np.array(records, dtype=float), mechanism.universe, mechanism.needs(mechanism.statistic))


def exact(mechanism, summary):
    """What noise is added to, and the change and eps that it is calibrated to."""
    asked = []

    def sampler(numbers, change, eps):
        asked.append((numbers, change, eps))
        return numbers

    mechanism.draw(summary, sampler)
    (found,) = asked
    return found


def many(shares_of_one, n, groups):
    """A batch of groups of n records that add so much each, as fractions of 1."""
    first, last = (round(n * each * PLACES) for each in (shares_of_one[0], shares_of_one[2]))
    places = (n * PLACES - first + last) // 2
    return Summary(np.full(groups, n), places=np.full(groups, places), place_squares=np.full(groups, min(last, places)))


SHAPES = {
    "all at lo": lambda n: np.zeros(n),
    "all in the middle": lambda n: np.full(n, 0.5),
    "half at each end": lambda n: np.arange(n) % 2 * 1.0,
    "one of ten at hi": lambda n: (np.arange(n) % 10 == 0) * 1.0,
    "one at hi": lambda n: (np.arange(n) == 0) * 1.0,
    "even": lambda n: (np.arange(n) + 0.5) / n,
    "near lo": lambda n: np.minimum(-0.05 * np.log1p(-(np.arange(n) + 0.5) / n), 1.0),
}


class TestLoss:
    """Whatever a record is, it moves the three sums by S in all: everybody loses eps."""

    @given(records=RECORDS, one=st.floats(-1e9, 1e9), eps=st.sampled_from(EPS))
    def test_the_change_of_one_record(self, records, one, eps):
        mechanism = calibrated("bernstein", Var(), BOUNDS, eps)
        before, change, asked = exact(mechanism, summarised(mechanism, records))
        after, *_ = exact(mechanism, summarised(mechanism, [*records, one]))
        assert int(np.abs(after - before).sum()) == change == PLACES
        assert (after >= before).all()
        assert asked == eps

    @given(records=RECORDS)
    def test_the_sums_are_those_of_exact_numbers(self, records):
        mechanism = calibrated("bernstein", Std(), BOUNDS, EPS[1])
        found, *_ = exact(mechanism, summarised(mechanism, records))
        expected = [shares(k) for k in places_of(records, BOUNDS)]
        assert found[:, 0].tolist() == [sum(each) for each in zip((0, 0, 0), *expected, strict=True)]

    def test_every_output_of_small_lattices(self):
        """The largest log-ratio of any output, over all neighbours: eps, and reached."""
        for whole in (2, 3, 4, 8):
            reach = range(-1, whole + 2)
            outputs = np.stack(np.meshgrid(reach, reach, reach, indexing="ij")).reshape(3, -1)
            for k in range(whole + 1):
                assert min(shares(k, whole)) >= 0 and sum(shares(k, whole)) == whole
                lead = np.abs(outputs - np.array(shares(k, whole))[:, None]) - np.abs(outputs)
                assert np.abs(lead.sum(axis=0)).max() == whole  # in units of S / eps

    def test_between_worlds_on_small_lattices(self):
        """The first sum falls and the last rises, and the loss is twice the larger change."""
        for whole in (2, 3, 8, 64, 257):
            every = [shares(k, whole) for k in range(whole + 1)]
            for a, b in itertools.combinations(every, 2):
                assert a[0] >= b[0] and a[2] <= b[2]
                assert apart(a, b) == 2 * max(a[0] - b[0], b[2] - a[2])

    @given(records=st.lists(st.floats(LO, HI), min_size=1, max_size=6))
    def test_between_worlds(self, records):
        mechanism = calibrated("bernstein", Var(), BOUNDS, Fraction(2))
        each = [shares(k) for k in places_of(records, BOUNDS)]
        largest = max(apart(a, b) for a, b in itertools.product(each, each)) * 2 / PLACES
        assert mechanism.loss_between_worlds(summarised(mechanism, records))[0] == pytest.approx(largest, rel=1e-12)
        lines, unit = mechanism.worlds(np.array(records), summarised(mechanism, records))
        assert np.ptp(lines, axis=1).max() / unit == pytest.approx(largest, rel=1e-12)

    def test_of_nobody(self):
        mechanism = calibrated("bernstein", Var(), BOUNDS, Fraction(2))
        summary = summarised(mechanism, [])
        assert (mechanism.loss_between_worlds(summary).tolist(), mechanism.loss(summary).tolist()) == ([0.0], [2.0])


class TestWorlds:
    """Exact identifiability: no output is more telling than the sums of a world themselves."""

    @given(
        records=st.lists(st.floats(0, 1) | st.sampled_from([0, 0.2, 0.5, 0.8, 1]), min_size=1, max_size=9),
        eps=st.sampled_from([0.01, 1, 5, 60, 2000]),
        beliefs=st.none() | st.lists(st.floats(0.01, 1), min_size=9, max_size=9),
    )
    def test_by_brute_force(self, records, eps, beliefs):
        mechanism = calibrated("bernstein", Var(), UNIT, Fraction(eps))
        each = [shares(k) for k in places_of(records, UNIT)]
        prior = np.ones(len(each)) if beliefs is None else np.array(beliefs[: len(each)])
        prior = prior / prior.sum()
        losses = np.array([[apart(a, b) / PLACES * eps for b in each] for a in each])
        largest = float((prior / (np.exp(-losses) @ prior)).max())
        lines, unit = mechanism.worlds(np.array(records, dtype=float), summarised(mechanism, records))
        found = exact_of_worlds(lines, unit, None if beliefs is None else prior)
        assert found == pytest.approx(largest, rel=1e-11)

    def test_outputs_of_a_small_lattice(self):
        """The formula itself: over every output of a lattice, no belief exceeds that at the sums of a world."""
        whole, eps = 8, 3.0
        reach = range(-2, whole + 3)
        outputs = np.stack(np.meshgrid(reach, reach, reach, indexing="ij")).reshape(3, 1, -1)
        each = np.array([shares(k, whole) for k in (0, 2, 3, 3, 7)])
        likely = np.exp(-np.abs(outputs - each.T[:, :, None]).sum(axis=0) * eps / whole)
        losses = np.abs(each[:, None] - each[None]).sum(axis=2) * eps / whole
        assert (likely / likely.sum(axis=0)).max() == pytest.approx((1 / np.exp(-losses).sum(axis=1)).max(), rel=1e-12)

    def test_tight_eps_keeps_its_promise(self):
        records = [1.0, 2.0, 300.0, 500.0, 675.0, 20.0]
        mechanism = calibrated("bernstein", Var(), BOUNDS, Fraction(1))
        lines, unit = mechanism.worlds(np.array(records), summarised(mechanism, records))
        eps = tight_of_worlds(lines, 0.5, unit)
        assert exact_of_worlds(lines, unit / eps) <= 0.5 < exact_of_worlds(lines, unit / (eps * (1 + 1e-9)))

    def test_of_a_column(self):
        frame = pd.DataFrame({"x": [0.0, 0.0, 0.5, 1.0, 0.8]})
        found = frame.dprisk.identifiability("x", "std", eps=2, bounds=(0, 1))
        risks = frame.dprisk.assess("x", ["std"], eps=2, bounds=(0, 1)).iloc[0]
        assert (found.worlds, found.sensitive_range, found.sensitivity) == (5, 1.0, 0.5)
        assert found.bound == pytest.approx(risks["identifiability"]) == pytest.approx(1 / (1 + 4 * math.exp(-4)))
        assert 0.2 < found.exact < found.bound
        half = frame.dprisk.identifiability("x", "std", eps=2, bounds=(0, 1), where="x <= 0.5")
        assert half.bound == pytest.approx(1 / (1 + 2 * math.exp(-3)))  # 0 against 1/2: 1.5 eps


class TestSuccess:
    """The best attacker with a coin's prior is never right more often than said, and so often at a bound."""

    @pytest.mark.parametrize(
        ("whole", "eps"), [(2, 1.0), (4, 3.0), (8, 3.0), pytest.param(8, 1.0, marks=pytest.mark.slow)]
    )
    def test_total_variation_of_small_lattices(self, whole, eps):
        claimed = calibrated("bernstein", Var(), UNIT, Fraction(eps)).success
        a = math.exp(-eps / whole)
        reach = math.ceil(20 / -math.log(a)) if whole < 8 else math.ceil(14 / -math.log(a))
        at = np.arange(-reach, reach + 1)

        def likely(shift):
            return (1 - a) / (1 + a) * a ** np.abs(at - shift)

        right = []
        for k in range(whole + 1):
            moved = [shift for shift in shares(k, whole) if shift]  # the others tell nothing
            pair = [likely(0), likely(moved[0])]
            for shift in moved[1:]:
                pair = [np.multiply.outer(p, likely(s)).ravel() for p, s in zip(pair, (0, shift), strict=True)]
            right.append(1 - np.minimum(*pair).sum() / 2)
        assert max(right) <= claimed + 1e-5
        assert right[0] == right[-1] == pytest.approx(claimed, abs=1e-5)

    @pytest.mark.parametrize(("record", "reached"), [(1.0, True), (0.0, True), (0.5, False)])
    def test_an_attacker(self, record, reached):
        draws = 60_000
        mechanism = calibrated("bernstein", Var(), UNIT, Fraction(1))
        worlds = [exact(mechanism, summarised(mechanism, each))[0] for each in ([0.3] * 5, [0.3] * 5 + [record])]
        right, sampler = 0.0, seeded(2)
        for own, other in (worlds, worlds[::-1]):
            drawn = sampler(np.repeat(own, draws, axis=1), PLACES, Fraction(1))
            lead = np.abs(drawn - other).sum(axis=0) - np.abs(drawn - own).sum(axis=0)
            assert np.abs(lead).max() <= PLACES
            right += (np.mean(lead > 0) + np.mean(lead == 0) / 2) / 2
        spread = 5 / math.sqrt(8 * draws)
        assert right <= mechanism.success + spread
        assert (right > mechanism.success - spread) == reached


class TestValue:
    """Without noise it is the statistic; with it, it stays within the range of possible answers."""

    @given(records=st.lists(st.floats(LO, HI), max_size=8), ddof=st.sampled_from([0, 1]))
    def test_of_the_exact_sums(self, records, ddof):
        for statistic, width in ((Var(ddof), HI - LO), (Std(ddof), math.sqrt(HI - LO))):
            mechanism = calibrated("bernstein", statistic, BOUNDS, Fraction(1))
            summary = summarised(mechanism, records)
            drawn, *_ = exact(mechanism, summary)
            found = float(mechanism.value(drawn)[0])
            wanted = float(statistic.value(summary, BOUNDS)[0])
            if isinstance(statistic, Std):
                found, wanted = found**2, wanted**2
            assert found == pytest.approx(wanted, rel=1e-9, abs=8 * (HI - LO) ** 2 / PLACES), width

    @pytest.mark.parametrize("ddof", [0, 1])
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("records", [[], [LO], [LO, HI], [HI] * 3, [300.0] * 40, [LO, HI] * 20])
    def test_within_the_range(self, records, ddof):
        for statistic in (Var(ddof), Std(ddof)):
            mechanism = calibrated("bernstein", statistic, BOUNDS, Fraction(1, 2))
            summary = summarised(mechanism, records).of_rows(np.zeros(1000, dtype=np.int64))
            drawn = mechanism.draw(summary)
            values, (low, high) = mechanism.value(drawn), mechanism.interval(drawn, 0.95)
            least, most = statistic.value_range(BOUNDS)
            assert (least <= low).all() and (low <= values).all()
            assert (values <= high).all() and (high <= most).all()

    def test_nobody_seems_to_be_there(self):
        mechanism = calibrated("bernstein", Var(), BOUNDS, Fraction(1))
        drawn = np.array([[-5, 0, PLACES // 2, np.iinfo(np.int64).min]] * 3)
        assert mechanism.value(drawn)[[0, 1, 3]].tolist() == [0, 0, 0]
        low, high = mechanism.interval(drawn, 0.95)
        assert low.tolist() == [0] * 4 and high.tolist() == [674**2 / 2] * 4
        alone = np.array([[PLACES // 2], [0], [PLACES // 2]])
        assert mechanism.value(alone).tolist() == [0.0]  # ddof=1: of one record at most, none

    def test_too_small_an_eps_is_refused(self):
        frame = pd.DataFrame({"x": [1.0]})
        for eps, words in ((1e-9, "64-bit"), (1e-13, "below 1e-12")):
            with pytest.raises(pdrisk.ParameterError, match=words):
                frame.dprisk.var("x", eps=eps, bounds=(0, 1))


class TestInterval:
    """It holds the truth as often as it says, among few and among many."""

    def covered(self, statistic, shape, n, eps, groups, seed):
        w = SHAPES[shape](n)
        mechanism = calibrated("bernstein", statistic, UNIT, Fraction(eps))
        summary = many(((1 - w) ** 2).mean() * np.array([1, 0, 0]) + np.array([0, 0, (w**2).mean()]), n, groups)
        low, high = mechanism.interval(mechanism.draw(summary, seeded(seed)), 0.95)
        truth = float(np.var(w, ddof=statistic.ddof)) if n > statistic.ddof else 0.0
        truth = math.sqrt(truth) if isinstance(statistic, Std) else truth
        return float(np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high)))

    @pytest.mark.parametrize("n", [1, 12, 300])
    @pytest.mark.parametrize("shape", ["all at lo", "one of ten at hi", "near lo"])
    def test_coverage(self, shape, n):
        found = self.covered(Var(), shape, n, 1, 40_000, 3)
        assert 0.943 < found < (1 if n < 300 else 0.985)  # 6 standard deviations below .95

    @pytest.mark.slow
    @pytest.mark.parametrize("eps", ["1", "1/10"])
    @pytest.mark.parametrize("statistic", [Var(0), Var(1), Std(1)], ids=["var0", "var1", "std1"])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_coverage_everywhere(self, shape, statistic, eps):
        """The table of docs/numbers.md is printed by it (``-s``)."""
        sizes = (1, 2, 5, 10, 12, 20, 50, 100, 300, 1000, 10_000, 10**6)
        found = [self.covered(statistic, shape, n, eps, 20_000, 7) for n in sizes]
        print(f"\n{statistic.label} eps={eps} | {shape} | " + " | ".join(f"{each:.3f}".lstrip("0") for each in found))  # noqa: T201
        assert min(found) > 0.943

    @pytest.mark.parametrize("weights", [(1, 1, 1), (0, 0, 1), (0.2, 0.2, 1), (1, 1.0001, 0.5), (3, 2, 1)])
    def test_the_critical_value_is_that_of_three_laplace_variables(self, weights):
        generator = np.random.default_rng(5)
        size = np.abs(np.array(weights) @ generator.laplace(size=(3, 400_000)))
        scales = np.array(weights, dtype=float)[:, None]
        for level in (0.5, 0.95, 0.999):
            found = critical(scales, level)
            assert np.mean(size <= found[0]) == pytest.approx(level, abs=0.003)
            assert tail(found, scales)[0] == pytest.approx(1 - level, rel=1e-6)

    def test_equal_and_single_weights_in_closed_form(self):
        # One: exp(-t). Three of scale 1: (8 + 5 t + t**2) exp(-t) / 8. Made wider to be told apart, never narrower.
        for scales, of in (
            ((1, 0, 0), lambda t: math.exp(-t)),
            ((1,) * 3, lambda t: (8 + 5 * t + t * t) / 8 / math.e**t),
        ):
            for t in (0.5, 3.0, 9.0):
                found = float(tail(np.array([t]), np.array(scales, dtype=float)[:, None])[0])
                assert of(t) * (1 - 1e-9) <= found <= of(t) * 1.02

    def test_accuracy(self):
        """Mean absolute error at eps 1 of a variance of 0, 1, ..., 100, and of the survey's distances."""
        for records, bounds, worst in (
            (np.arange(1000) % 101, (0, 100), 5.2),
            (soep_like()["distance"].dropna().to_numpy()[:1000], (1, 675), 400.0),
        ):
            universe = Universe(*map(float, bounds))
            mechanism = calibrated("bernstein", Var(), universe, Fraction(1))
            summary = summarised(mechanism, records)
            values = mechanism.value(mechanism.draw(summary.of_rows(np.zeros(3000, dtype=np.int64))))
            assert np.abs(values - mechanism.statistic.value(summary, universe)).mean() < worst


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
class TestFrontEnds:
    """The same sums from every engine and front end, by default."""

    FRAME = pd.DataFrame({"x": [1.0, 2.5, np.nan, 700.0, 30.0, -4.0, 9.0, 9.0], "g": list("aabbabab")})
    ALL = ("count", "mean", "var", "std", "sum")

    def test_it_is_the_default(self):
        for name in ("var", "std"):
            release = getattr(self.FRAME.dprisk, name)("x", eps=60, bounds=(LO, HI))
            assert (release.mechanism, release.scale) == ("bernstein", None)
            assert release.low <= release.value <= release.high
            by_paper = getattr(self.FRAME.dprisk, name)("x", eps=60, bounds=(LO, HI), mechanism="laplace")
            assert by_paper.scale == by_paper.global_sensitivity / 60 == release.global_sensitivity / 60
        table = self.FRAME.dprisk.agg({"x": list(self.ALL)}, eps=300, bounds=(LO, HI))
        used = [line.mechanism for line in lines(table)]
        assert used == ["bernstein"] * 5

    def test_frames_and_sql_draw_about_the_same_sums(self, monkeypatch):
        asked = []

        def kept(numbers, change, eps):
            asked.append(numbers.tolist())
            return numbers

        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", kept)
        con = duckdb.connect()
        con.register("people", self.FRAME)
        options = {"eps": 2, "bounds": (LO, HI)}
        by = {"by": "g", "keys": ["a", "b", "nobody"]}
        self.FRAME.dprisk.var("x", **options)
        pdrisk.sql("SELECT VAR_SAMP(x) FROM people", con, **options)
        self.FRAME.dprisk.std("x", **options, **by)
        pdrisk.sql("SELECT g, STDDEV(x) FROM people GROUP BY g", con, **options, keys=by["keys"])
        held = [shares(k) for k in places_of(self.FRAME["x"].dropna(), BOUNDS)]
        assert asked[0] == asked[1] == [[sum(each)] for each in zip(*held, strict=True)]
        assert asked[2] == asked[3]
        assert [row[2] for row in asked[2]] == [0, 0, 0]
        assert np.array(asked[2]).sum(axis=1).tolist() == np.array(asked[0]).sum(axis=1).tolist()

    def test_functions_draw_about_the_same_sums(self, monkeypatch):
        seen = watch(monkeypatch)
        con = duckdb.connect()
        con.register("people", self.FRAME)
        pdrisk.register(con, curator=True)
        ((value, risk),) = con.execute(
            "SELECT dp_var(x, eps := 40, lo := 1, hi := 675), dp_var_risk(x, eps := 1, lo := 1, hi := 675) FROM people"
        ).fetchall()
        assert [each.shape for each in seen] == [(3, 1)]
        mechanism = calibrated("bernstein", Var(), BOUNDS, Fraction(40))
        assert value == mechanism.value(seen[0])[0]
        own = exact(mechanism, summarised(mechanism, self.FRAME["x"].to_numpy()))[0]
        assert np.abs(seen[0] - own).max() < 2 * PLACES
        risks = self.FRAME.dprisk.assess("x", ["var"], eps=1, bounds=(LO, HI)).iloc[0]
        assert risk["two_worlds"] == risks["two_worlds"] == pytest.approx(0.7310586)
        assert risk["identifiability"] == pytest.approx(risks["identifiability"], rel=1e-12)
        assert risk["local_sensitivity"] == pytest.approx(risks["local_sensitivity"], rel=1e-9)

    def test_what_a_curator_sees(self):
        release = self.FRAME.dprisk.var("x", eps=1, bounds=(LO, HI), curator=True)
        by_paper = self.FRAME.dprisk.var("x", eps=1, bounds=(LO, HI), mechanism="laplace", curator=True)
        assert release.curator.local_sensitivity == pytest.approx(by_paper.curator.local_sensitivity, rel=1e-9)
        assert release.curator.two_worlds == release.risk.worst_case > by_paper.curator.two_worlds
        assert release.risk == by_paper.risk
        risks = self.FRAME.dprisk.individual_risk("x", "var", eps=1, bounds=(LO, HI))
        assert risks.dropna().unique().tolist() == [pytest.approx(0.7310586)] and risks.isna().tolist()[2]
        assert "all of eps, for every person alike" in str(release.explain("curator"))

    def test_what_is_read(self):
        needs = calibrated("bernstein", Std(), UNIT, Fraction(1)).needs(Std())
        assert needs == Needs(total=True, ends=True, squares=True, places=True, place_squares=True)
        assert "place" not in repr(Std().needs)  # questions of the paper's mechanism keep their spelling
