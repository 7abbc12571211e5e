"""Correlations of several columns in one release: the noise of the largest norm, losses, values and intervals."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from correlated import repeated, summarised
from noisy_answers import seeded
from pdrisk._audit.replay import recorded, replayed
from pdrisk._core.lattice import LARGEST_PLACES, PLACES
from pdrisk._core.pairs import CorrAmong
from pdrisk._core.products import products_of_places
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.k_norm_products import CHANGE, LARGEST_EPS
from pdrisk._mechanisms.noise.cube import cube_noise, uniform_below
from pdrisk._mechanisms.noise.entropy import system_bits
from pdrisk._mechanisms.noise.sampler import discrete_laplace

SQUARE = Rectangle(0.0, 1.0, Universe(0.0, 1.0))
PLACE = st.sampled_from([0, 1, 2**29, PLACES - 1, PLACES]) | st.integers(0, PLACES)
BOUNDS = {"age": (0, 90), "hours": (0, 80), "income": (0, 1000)}
SURE = 10**9  # an eps at which no noise is left to see

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def mechanism_of(pair, eps=1):
    return calibrated("k_norm_products", pair, SQUARE, Fraction(eps))


def people(n=400):
    at = np.arange(n)
    hours = (at * 37 % 101) * 0.7
    frame = pd.DataFrame(
        {"age": at * 7.0 % 90, "hours": hours, "income": np.clip(hours * 9 + at * 53 % 89 * 5.0, 0, 999)}
    )
    frame["sex"] = np.where(at % 3, "f", "m")
    frame.loc[::7, "hours"], frame.loc[::11, "income"], frame.loc[::13, "age"] = np.nan, np.nan, -1
    frame["age"] = frame["age"].astype("int64")
    return frame


FRAME = people()
DECLARED = {"bounds": BOUNDS, "missing": {"age": [-1]}}
ASKED = FRAME.dprisk.declare(**DECLARED).dprisk


def exactly(frame=FRAME):
    """Correlations of the records with a value in every column, by their definition."""
    known = frame[[*BOUNDS]].replace({"age": {-1: np.nan}}).dropna().astype(float).clip(0, [90, 80, 1000], axis=1)
    return [known[one].corr(known[other]) for one, other in itertools.combinations(BOUNDS, 2)]


class TestNoise:
    """Whole vectors with probability proportional to exp(-eps |z| / change), |z| the largest component."""

    @pytest.mark.parametrize(("numbers", "change", "eps"), [(1, 3, 1), (2, 2, 1), (3, 1, "1/2")])
    def test_law(self, numbers, change, eps):
        draws, eps = 60_000, Fraction(eps)
        found = cube_noise(numbers, draws, change, eps, discrete_laplace, system_bits)
        reach = int(25 * change / eps)
        norm = np.arange(reach)
        shell = (2 * norm + 1.0) ** numbers - np.maximum(2 * norm - 1.0, 0) ** numbers
        weight = np.exp(-float(eps) / change * norm)
        total = (shell * weight).sum()
        largest = np.abs(found).max(axis=0)
        for r in range(6):  # how often each size occurs
            share = shell[r] * weight[r] / total
            assert (largest == r).mean() == pytest.approx(share, abs=5 * math.sqrt(share / draws))
        for r in range(1, 4):  # within a size all vectors are alike
            own = found[:, largest == r]
            _, times = np.unique(own, axis=1, return_counts=True)
            assert len(times) == shell[r]
            each = own.shape[1] / shell[r]
            assert ((times - each) ** 2 / each).sum() < shell[r] + 6 * math.sqrt(2 * shell[r])

    def test_sizes_are_kept_with_the_right_probability(self):
        """``C(R + d, d)`` times what is kept of it is proportional to ``(2 R + 1)**d``, in whole numbers."""
        for numbers, radius in itertools.product((1, 2, 3, 10), (0, 1, 2, 17)):
            kept = math.prod(Fraction(2 * radius + 1, 2 * radius + 2 * i) for i in range(1, numbers + 1))
            assert math.comb(radius + numbers, numbers) * kept * 2**numbers * math.factorial(numbers) == (
                (2 * radius + 1) ** numbers
            )

    def test_wide_noise_is_uniform_in_its_cube(self):
        found = cube_noise(15, 4000, CHANGE, Fraction(1), discrete_laplace, system_bits) / CHANGE
        assert found.std() == pytest.approx(math.sqrt(16 * 17 / 3), rel=0.03)
        share = np.abs(found) / np.abs(found).max(axis=0)
        assert share[share < 1].mean() == pytest.approx(0.5, abs=0.01)

    def test_whole_numbers_below_limits(self):
        for limit in (1, 2, 3, 5, 8):
            found = uniform_below(np.full(20_000, limit), system_bits)
            times = np.bincount(found, minlength=limit)
            assert len(times) == limit and np.abs(times - 20_000 / limit).max() < 5 * math.sqrt(20_000 / limit) + 1e-9

    @pytest.mark.parametrize("limit", [2**53 + 1, 2**53 - 1, 2**62 - 1, 2**62, 2**62 + 1])
    def test_limits_that_floats_round(self, limit):
        """The largest number is drawn, and nothing above: bits that say so come first, then the largest, then 0."""
        length = max((limit - 1).bit_length(), limit.bit_length())
        asked = iter([limit << (64 - length), (limit - 1) << (64 - length), 0])

        def bits(size):
            return np.array([next(asked) & (2**64 - 1) for _ in range(size)], dtype=np.uint64)

        assert uniform_below(np.array([limit]), bits).tolist() in ([limit - 1], [0])

    def test_a_source_of_no_noise_ends(self):
        with pytest.raises(RuntimeError, match="gave none"):
            cube_noise(15, 1, CHANGE, Fraction(1), lambda exact, *_: exact, system_bits)


class TestLoss:
    """No record moves any of the numbers by more than `CHANGE`, to which the noise is calibrated."""

    @given(records=st.lists(st.tuples(PLACE, PLACE, PLACE), min_size=1, max_size=4))
    def test_of_neighbours(self, records):
        mechanism = mechanism_of(CorrAmong(0, 1, 3), "1/3")
        first, second = summarised(records), summarised([*records, (0, 0, 0)])
        without = summarised(records[1:]) if records[1:] else None
        for one, other in [(first, second), *([(first, without)] if without else ())]:
            moved = np.abs(mechanism.exact(one) - mechanism.exact(other))
            assert PLACES <= moved.max() <= CHANGE  # the number of records alone moves by `PLACES`
            assert mechanism.loss_between(one, other) <= 1 / 3
        assert mechanism.loss(first).tolist() == [1 / 3]

    def test_of_squares_in_the_middle(self):
        """They lie within ±1, but for what rounding costs at worst, which happens."""
        random = np.random.default_rng(1)
        own, near = random.integers(0, PLACES, 10**6), PLACES // 2 + random.integers(-3000, 3000, 10**6)
        sums = Summary(np.ones(10**6, dtype=np.int64), products={(2, 2): products_of_places(own, near, (2, 2))})
        assert np.abs(mechanism_of(CorrAmong(0, 1, 3)).exact(sums)).max() == CHANGE

    def test_of_more_people_than_the_sums_hold(self):
        mechanism = mechanism_of(CorrAmong(0, 1, 3))
        part = products_of_places(np.array([PLACES // 2]), np.array([0]), (2, 2))
        for less in (0, 1, PLACES):
            sums = [np.full((9, 1), (LARGEST_PLACES - less) // 9), np.full((9, 1), (LARGEST_PLACES - less) // 9) + part]
            own = [Summary(np.array([2**32]), products={(2, 2): each}) for each in sums]
            before, after = (mechanism.exact(replace(each, together=(each,) * 3)) for each in own)
            assert np.abs(before - after).max() <= CHANGE and np.abs(after).max() <= LARGEST_PLACES

    def test_success(self):
        """Of the densest worst case, a small cube whose numbers all move, no test is right more often than said."""
        eps, change, reach = 1.0, 2, 60
        at = np.arange(-reach, reach + 1)
        norm = np.maximum(np.abs(at)[:, None], np.abs(at)[None])
        before = np.exp(-eps / change * norm)
        after = np.exp(-eps / change * np.maximum(np.abs(at - change)[:, None], np.abs(at - change)[None]))
        found = 1 - np.minimum(before / before.sum(), after / after.sum()).sum() / 2
        mechanism = mechanism_of(CorrAmong(0, 1, 3))
        assert 0.6 < found < mechanism.success == pytest.approx(math.e / (1 + math.e))
        assert mechanism.loss_between_worlds(summarised([(0, 1, 2), (3, 4, 5)])).tolist() == [2]

    def test_of_questions(self):
        """Record and replay: with the same noise the answers about neighbours are the same, and eps is never passed."""
        frame = FRAME.iloc[:40]

        def ask(data):
            own = data.dprisk.declare(**DECLARED).dprisk
            return own.corr([*BOUNDS], eps=0.5, by="sex", keys=["f", "m"])

        before = recorded(ask, frame)
        losses = [replayed(ask, frame.drop(index=at), before).loss for at in range(12)]
        assert max(losses) == pytest.approx(0.5) and max(losses) <= 0.5
        unknown = frame[[*BOUNDS]].replace({"age": {-1: np.nan}}).isna().any(axis=1)
        assert [loss == 0 for loss in losses] == unknown[:12].tolist()


class TestAnswers:
    """The correlations of the records that have a value in every column, for one eps."""

    def test_without_noise(self):
        found = ASKED.corr([*BOUNDS], eps=SURE)
        assert found["value"].tolist() == pytest.approx(exactly(), abs=1e-3)
        assert found.index.tolist() == [*itertools.combinations(BOUNDS, 2)]
        assert found["value"].tolist() != pytest.approx(
            [ASKED.corr(*pair, eps=SURE).value for pair in found.index], abs=1e-3
        )  # of each pair's own records

    def test_everywhere_the_same(self, tmp_path):
        wanted = [exactly(FRAME[FRAME["sex"] == sex]) for sex in ("f", "m")]
        file = tmp_path / "people.parquet"
        FRAME.to_parquet(file)
        with duckdb.connect() as con:
            con.register("people", FRAME)
            con.execute("CREATE TABLE t AS SELECT * FROM people")
            for data in (FRAME, con.table("t"), file):
                own = pdrisk.Dataset(data, **DECLARED)
                found = own.corr([*BOUNDS], eps=SURE, by="sex", keys=["f", "m"], where="age > 5")
                assert len(found) == 6
                found = own.corr([*BOUNDS], eps=SURE, by="sex", keys=["f", "m"])
                for sex, each in zip(("f", "m"), wanted, strict=True):
                    assert found.loc[sex]["value"].tolist() == pytest.approx(each, abs=2e-3)

    def test_people_with_several_rows(self):
        twice = pd.concat([FRAME, FRAME]).assign(pid=[*range(len(FRAME))] * 2)
        once = pdrisk.Dataset(twice, person="pid", per_person="mean", **DECLARED)
        assert once.corr([*BOUNDS], eps=SURE)["value"].tolist() == pytest.approx(exactly(), abs=1e-3)

    def test_one_release(self, book):
        ledger = book(eps=2, policy={"curators": ["ann"]})
        data = pdrisk.Dataset(FRAME, ledger=ledger, **DECLARED)
        first = data.corr([*BOUNDS], eps=1)
        assert first["release"].tolist() == [1, 1, 1] and first["eps"].tolist() == [1, 1, 1]
        again = data.corr([*BOUNDS], eps=1)
        assert again["value"].tolist() == first["value"].tolist() and ledger.remaining().eps == 1
        ledger.verify()
        text = pdrisk.explain(first, audience="publication")
        assert "age.notna() and hours.notna() and income.notna()" in text and "K-norm noise" in text
        assert "come from one release" in text

    def test_where_pairs_are_apart(self):
        apart = ASKED.corr([*BOUNDS], eps=1, mechanism="bernstein_products")
        assert apart["release"].tolist() == [1, 2, 3] and apart["eps"].tolist() == pytest.approx([1 / 3] * 3)
        assert ASKED.corr([*BOUNDS], success=0.7)["release"].nunique() == 3
        assert ASKED.corr(["age", "hours"], eps=1)["release"].tolist() == [1]
        joint = ASKED.corr([*BOUNDS], success=0.7, mechanism="k_norm_products")
        assert joint["release"].tolist() == [1, 1, 1]
        with pytest.raises(pdrisk.ParameterError, match="available for it: auto, bernstein_products"):
            ASKED.corr("age", "hours", eps=1, mechanism="k_norm_products")
        with pytest.raises(pdrisk.ParameterError, match="leaves nothing of correlations"):
            ASKED.corr([*BOUNDS], eps=1e-6)

    @pytest.mark.parametrize("columns", [3, 5, 8])
    def test_accuracy(self, columns):
        """Of 5,000 records with correlations of .36 the error is below that of pairs which share eps."""
        places, pairs = records(columns, 5000), CorrAmong.all_of(columns)
        many, exact = repeated(summarised(places), 300), np.corrcoef(places.T)
        drawn = mechanism_of(pairs[0]).draw(many, seeded(1))
        errors = []
        for pair, own in zip(pairs, many.together, strict=True):
            alone = calibrated("bernstein_products", super_of(pair), SQUARE, Fraction(1, len(pairs)))
            answers = mechanism_of(pair).value(drawn), alone.value(alone.draw(own, seeded(2)))
            errors.append([np.abs(each - exact[pair.first, pair.second]).mean() for each in answers])
        together, apart = np.mean(errors, axis=0)
        assert together / apart < {3: 0.95, 5: 0.55, 8: 0.42}[columns]

    @pytest.mark.parametrize("columns", [3, pytest.param(8, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("n", [30, 200, 1000, 20_000])
    @pytest.mark.parametrize("kind", ["even", "heaped", "yes and no"])
    def test_coverage(self, columns, n, kind):
        places = records(columns, n, kind)
        many, exact = repeated(summarised(places), 1500), np.corrcoef(places.T)
        pair = CorrAmong(0, columns - 1, columns)
        low, high = mechanism_of(pair).interval(mechanism_of(pair).draw(many, seeded(3)), 0.95)
        wanted = exact[pair.first, pair.second]
        assert ((low <= wanted) & (wanted <= high)).mean() > 0.935  # .95 but for 2.5 standard deviations


def super_of(pair):
    """The correlation of two columns alone."""
    return next(each for each in type(pair).__mro__[1:2])()


def records(columns, n, kind="even"):
    """Places of records whose columns have a part in common."""
    random = np.random.default_rng(columns * n)
    value = 0.6 * random.standard_normal((n, 1)) + 0.8 * random.standard_normal((n, columns))
    if kind == "yes and no":
        value = np.where(value > 0, 3.0, -3.0)
    elif kind == "heaped":
        value = np.clip(np.exp(value), 0, 8) * 0.75 - 3
    return np.rint((np.clip(value / 3, -1, 1) + 1) / 2 * PLACES).astype(np.int64)


def test_its_numbers_are_those_of_the_records():
    """Number, sums, squares and products by their definition, in the rows where they stand."""
    places = records(4, 50)
    values = places / PLACES * 2 - 1
    products = [(values[:, one] * values[:, other]).sum() for one, other in itertools.combinations(range(4), 2)]
    wanted = [50, *values.sum(axis=0), *(2 * values**2 - 1).sum(axis=0), *products]
    found = mechanism_of(CorrAmong(1, 2, 4)).exact(summarised(places))[:, 0] / PLACES
    assert found == pytest.approx(wanted, abs=1e-5)


def test_noise_is_as_wide_as_eps_says():
    mechanism = mechanism_of(CorrAmong(0, 1, 3), "1/4")
    summary = repeated(summarised(records(3, 20)), 4000)
    off = (mechanism.draw(summary) - mechanism.exact(summary)) / PLACES
    assert off.std() == pytest.approx(4 * math.sqrt(11 * 12 / 3), rel=0.03)  # d = 1 + 3 + 3 + 3


def test_noise_does_not_shrink_for_ever():
    """At an eps beyond `LARGEST_EPS` the noise stays what it is there: less than a thousandth of a record."""
    pair = CorrAmong(0, 1, 3)
    summary = repeated(summarised(records(3, 20)), 50)
    mechanism = mechanism_of(pair, 10**12)
    off = (mechanism.draw(summary) - mechanism.exact(summary)) / PLACES
    assert 0 < np.abs(off).max() < 20 * 12 / float(LARGEST_EPS) < 0.004
