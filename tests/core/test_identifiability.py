"""Possible worlds and what an answer tells about them (Lee & Clifton 2011, 2012)."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import pdrisk
from pdrisk.errors import ColumnTypeError, ParameterError, QueryFailedError, UnknownColumnError
from pdrisk.identifiability import of_worlds, worlds_with, worlds_without_one
from pdrisk.risk import epsilon_for, exact_identifiability, posterior, tight_epsilon

SPECS = {
    "count": "count", "sum": "sum", "mean": "mean", "median": "median", "min": "min", "max": "max",
    "quantile(0.1)": ("quantile", {"q": 0.1}), "quantile(0.75)": ("quantile", {"q": 0.75}),
    "var": "var", "var(ddof=0)": ("var", {"ddof": 0}), "std": "std", "std(ddof=0)": ("std", {"ddof": 0}),
}  # fmt: skip
records_of = st.lists(st.integers(-3, 3) | st.floats(-3, 3, allow_subnormal=False), max_size=7)
LO, HI = Fraction(-3), Fraction(3)


def close(label, found, expected):
    """As floats can tell: of variances that cancel half of the digits are left in their roots, so those are squared."""
    power = 2 if label.startswith("std") else 1
    expected = [float(each) ** power for each in expected]
    assert (np.asarray(found) ** power).tolist() == pytest.approx(expected, rel=1e-9, abs=3e-7)


@pytest.mark.parametrize("label", SPECS)
class TestWorlds:
    """Every world's answer is what computing the statistic on that world alone gives."""

    @given(records=records_of)
    def test_without_one(self, label, records):
        expected = oracle.DEFINITIONS[label].leave_one_out(oracle.fractions(records), LO, HI)
        close(label, worlds_without_one(records, SPECS[label], bounds=(-3, 3)), expected)
        if len(records) > 1:
            close(label, worlds_without_one(records, SPECS[label]), expected)

    @given(known=records_of, others=st.lists(st.integers(-3, 3), min_size=1, max_size=5), data=st.data())
    def test_with_others(self, label, known, others, data):
        others = [other for other in others if other not in known]  # so that their order is known
        assume(others)
        everybody = data.draw(st.permutations(known)) + others
        definition = oracle.DEFINITIONS[label]
        expected = [definition.value(oracle.fractions([*known, other]), LO, HI) for other in others]
        close(label, worlds_with(known, everybody, SPECS[label]), expected)
        close(label, worlds_with(known, everybody, SPECS[label], unknown=1, bounds=(-3, 3)), expected)


class TestWorldsWith:
    """The universe lists people: whoever is not known could be the missing one."""

    def test_equal_numbers_are_different_people(self):
        assert worlds_with([5], [1, 5, 5, 5, 2], "max").tolist() == [5, 5, 5, 5]
        assert worlds_with([5], [1, 5, 5, 5, 2], "sum").tolist() == [6, 10, 10, 7]
        assert worlds_with([5, 5, 5], [1, 5, 5, 5, 2], "sum").tolist() == [16, 17]
        assert worlds_with([2, 5], [5, 1, 2, 5, 2], "sum").tolist() == [8, 12, 9]
        everybody = [3] * 500 + [1, 2] * 500
        assert worlds_with([1, 2] * 250, everybody, "sum").tolist() == [753] * 500 + [751, 752] * 250

    def test_nobody_known(self):
        assert worlds_with([], [4, 1, 9], "mean").tolist() == [4, 1, 9]

    def test_bounds_clamp(self):
        assert worlds_with([1, 3], [1, 3, 50, 700], "max", bounds=(0, 60)).tolist() == [50, 60]
        assert worlds_without_one([1, 3, 700], "max", bounds=(0, 60)).tolist() == [60, 60, 3]

    @pytest.mark.parametrize("statistic", [*SPECS.values()], ids=[*SPECS])
    def test_many(self, statistic):
        generator = np.random.default_rng(5)
        known, others = generator.normal(1e6, 10, 997), generator.normal(1e6, 30, 500)
        found = worlds_with(known, np.concatenate([others, known]), statistic)
        label = pdrisk._model.arguments.statistic(statistic).label
        direct = {
            "count": len, "sum": np.sum, "mean": np.mean, "median": np.median, "min": np.min, "max": np.max,
            "quantile(0.1)": lambda x: np.quantile(x, 0.1), "quantile(0.75)": lambda x: np.quantile(x, 0.75),
            "var": lambda x: np.var(x, ddof=1), "var(ddof=0)": np.var,
            "std": lambda x: np.std(x, ddof=1), "std(ddof=0)": np.std,
        }[label]  # fmt: skip
        for at in (0, 1, 250, 499):
            assert found[at] == pytest.approx(direct(np.append(known, others[at])), rel=1e-11)

    @pytest.mark.parametrize(
        ("known", "everybody", "options", "message"),
        [
            ([1, 7], [1, 2, 3], {}, "known holds people who are not in the universe"),
            ([1, 1], [1, 2, 3], {}, "known holds people who are not in the universe"),
            ([1, 2, 3], [1, 2, 3], {}, "at least one person beside the known ones"),
            ([], [], {}, "at least one person beside the known ones"),
            ([1], [1, 2, 3], {"unknown": 0}, "unknown must be 1"),
            ([1], [1, 2, 3], {"unknown": 2}, "understates the belief in a person"),
            ([1], [1, math.nan], {}, "universe must hold finite numbers"),
            ([math.inf], [1, 2], {}, "known must hold finite numbers"),
            ([1], [1, 2], {"bounds": (2, 1)}, "is reversed"),
        ],
    )
    def test_refusals(self, known, everybody, options, message):
        with pytest.raises(ParameterError, match=message):
            worlds_with(known, everybody, **options)

    def test_why_there_are_no_worlds_of_several_unknown_people(self):
        everybody, eps = [0, 0, 0, 10], 5
        pairs = list(itertools.combinations(range(4), 2))
        answers = [(everybody[one] + everybody[other]) / 2 for one, other in pairs]
        beliefs = oracle.laplace_posteriors(answers, 5 / eps, 5.0, [1 / 6] * 6)
        in_it = math.fsum(belief for pair, belief in zip(pairs, beliefs, strict=True) if 3 in pair)
        assert of_worlds(answers, eps=eps).exact == pytest.approx(max(beliefs)) == pytest.approx(0.331, abs=5e-4)
        assert in_it == pytest.approx(float(posterior(eps, 0.5))) == pytest.approx(0.9933, abs=5e-5)
        with pytest.raises(ParameterError, match="unknown must be 1"):
            worlds_with([], everybody, unknown=2)

    @pytest.mark.parametrize(
        ("known", "everybody", "options"),
        [(["a"], [1, 2], {}), ([1], [[1, 2]], {}), ([1], [1, 2], {"unknown": 1.0}), ([1], [1, 2], {"unknown": True}),
         (3, [1, 2], {}), ([True], [1, 2], {})],
    )  # fmt: skip
    def test_what_is_no_number(self, known, everybody, options):
        with pytest.raises(ColumnTypeError):
            worlds_with(known, everybody, **options)


class TestWorldsWithoutOne:
    def test_of_one_person_the_bounds_decide(self):
        with pytest.raises(ParameterError, match="without it none is left"):
            worlds_without_one([4.0])
        assert worlds_without_one([4.0], bounds=(0, 10)).tolist() == [5.0]
        assert worlds_without_one([4.0], "count").tolist() == [0.0]
        assert worlds_without_one([]).tolist() == []


worlds_of = st.lists(st.floats(-10, 10) | st.sampled_from([0.0, 1.0, 1.5]), min_size=2, max_size=8)


class TestOfWorlds:
    """Sensitive range, loose and tight eps, and the exact posterior, of any worlds and beliefs."""

    @given(worlds=worlds_of, eps=st.floats(0.01, 20), share=st.floats(0.001, 0.99), sensitivity=st.floats(0.5, 50))
    def test_one_belief_is_that_in_each_person_in_turn(self, worlds, eps, share, sensitivity):
        m = len(worlds)
        prior = 1 / m + share * (1 - 1 / m)
        found = of_worlds(worlds, eps=eps, sensitivity=sensitivity, prior=prior)
        most = 0.0
        for world in range(m):
            believed = [prior if other == world else (1 - prior) / (m - 1) for other in range(m)]
            for output in worlds:
                most = max(most, oracle.laplace_posteriors(worlds, sensitivity / eps, output, believed)[world])
        assert found.exact == pytest.approx(most, rel=1e-9)
        assert found.prior == prior and prior <= found.exact <= found.bound <= 1

    @given(worlds=worlds_of, eps=st.floats(0.01, 20), data=st.data())
    def test_a_belief_for_each_world(self, worlds, eps, data):
        weights = [data.draw(st.floats(0.01, 5)) for _ in worlds]
        shares = np.array(weights) / math.fsum(weights)
        found = of_worlds(worlds, eps=eps, sensitivity=3.0, prior=weights)
        assert found.prior == pytest.approx(shares.max(), rel=1e-12)
        assert found.exact == pytest.approx(exact_identifiability(worlds, 3.0 / eps, shares / shares.sum()), rel=1e-9)
        assert found.bound == pytest.approx(float(posterior(eps * np.ptp(worlds) / 3, shares.max())), rel=1e-12)

    @given(worlds=worlds_of, share=st.floats(0.01, 0.95), prior=st.none() | st.floats(0.01, 0.9))
    def test_the_eps_of_a_risk(self, worlds, share, prior):
        m = len(worlds)
        assume(np.ptp(worlds) > 1e-3)
        start = 1 / m if prior is None else 1 / m + prior * (1 - 1 / m)
        risk = start + share * (1 - start)
        found = of_worlds(worlds, risk=risk, prior=None if prior is None else start)
        assert found.eps == found.loose_eps <= found.tight_eps
        assert found.loose_eps == pytest.approx(float(epsilon_for(risk, start)), rel=1e-12)
        assert (found.bound, found.sensitive_range) == (pytest.approx(risk, rel=1e-12), np.ptp(worlds))
        if found.tight_eps < 1e300:  # beyond, worlds that lie a subnormal apart decide, and eps ends
            at = {"prior": None if prior is None else start}
            assert of_worlds(worlds, eps=found.tight_eps, **at).exact <= risk * (1 + 1e-12)
            above = of_worlds(worlds, eps=found.tight_eps * 1.01, **at).exact
            assert above > risk or of_worlds(worlds, eps=1e9, **at).exact == pytest.approx(risk, abs=1e-3)

    def test_equal_beliefs_however_they_are_said(self):
        worlds = [1.0, 2.0, 3.5, 9.0]
        for risk in (0.3, 0.9):
            plain = of_worlds(worlds, risk=risk)
            assert plain.tight_eps == tight_epsilon(worlds, risk)
            for prior in (0.25, [1, 1, 1, 1], np.full(4, 7.0)):
                told = of_worlds(worlds, risk=risk, prior=prior)
                fields = told.to_dict()
                assert fields.pop("name") == "these worlds"
                assert fields == pytest.approx({name: getattr(plain, name) for name in fields}, rel=1e-12)

    def test_worlds_that_all_give_the_same(self):
        for options in ({}, {"sensitivity": 2.0}):
            told = of_worlds([3.0, 3.0], eps=5, **options)
            assert (told.prior, told.bound, told.exact, told.sensitive_range) == (0.5, 0.5, 0.5, 0)
            for risk in (0.5, 0.7):
                wanted = of_worlds([3.0, 3.0], risk=risk, **options)
                assert (wanted.loose_eps, wanted.tight_eps, wanted.exact) == (math.inf, math.inf, 0.5)
        alone = of_worlds([3.0], eps=1)
        assert (alone.worlds, alone.prior, alone.exact) == (1, 1.0, 1.0)

    @pytest.mark.parametrize(
        ("worlds", "options", "message"),
        [
            ([1, 2], {}, "exactly one of eps= and risk= .neither"),
            ([1, 2], {"eps": 1, "risk": 0.9}, "exactly one of eps= and risk= .not both"),
            ([1, 2], {"eps": 0}, "eps must be finite and above 0"),
            ([1, 2], {"risk": 1}, "risk must be a probability"),
            ([1, 2], {"risk": 0.5}, "is not possible"),
            ([1, 2, 3], {"risk": 0.4, "prior": 0.4}, "is not possible"),
            ([], {"eps": 1}, "at least one world"),
            ([1, math.nan], {"eps": 1}, "finite"),
            ([1, 2], {"eps": 1, "sensitivity": 0}, "sensitivity must be finite and above 0"),
            ([1, 2], {"eps": 1, "prior": 0.4}, "cannot be below an equal share"),
            ([1, 2], {"eps": 1, "prior": 1.0}, "prior must be a probability"),
            ([1, 2], {"eps": 1, "prior": [1.0]}, "one number for each world"),
            ([1, 2], {"eps": 1, "prior": [1.0, 0.0]}, "finite and above 0"),
            ([1, 2], {"eps": 1, "prior": [1.0, math.nan]}, "finite"),
        ],
    )
    def test_refusals(self, worlds, options, message):
        with pytest.raises(ParameterError, match=message):
            of_worlds(worlds, **options)
        if "sensitivity" in options:
            with pytest.raises(ColumnTypeError, match="sensitivity must be a number"):
                of_worlds(worlds, eps=1, sensitivity="1")


DISTANCES = pd.DataFrame(
    {"distance": [3, 1, None, 10, 675, 17, 2000], "home": ["a", "b", "a", "a", "b", "b", None]}, index=list("tuvwxyz")
)
BOUNDS = (1, 675)


class TestOfAColumn:
    """``df.dprisk.identifiability``: one of the people of a column is missing, and the noise is that of a release."""

    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    @pytest.mark.parametrize("label", SPECS)
    @pytest.mark.parametrize("where", [None, "home == 'b'", "distance < 20"])
    def test_it_agrees_with_assess_and_with_bayes(self, label, where, mechanism):
        if label.startswith(("median", "quantile", "min", "max")):  # test_exponential_answers.py has theirs
            mechanism = "laplace"
        by_bernstein = label.startswith(("var", "std")) and mechanism == "auto"
        options = {"eps": 3, "bounds": BOUNDS, "where": where, "mechanism": mechanism}
        found = DISTANCES.dprisk.identifiability("distance", SPECS[label], **options)
        (row,) = DISTANCES.dprisk.assess("distance", [SPECS[label]], **options).itertuples()
        unit = 337.0 if by_bernstein else row.global_sensitivity
        assert (found.worlds, found.sensitivity, found.eps) == (row.n, unit, 3)
        assert found.bound == pytest.approx(row.identifiability, rel=1e-12)
        assert found.prior == 1 / row.n
        rows = DISTANCES if where is None else DISTANCES.query(where)
        records = [min(float(value), 675.0) for value in rows["distance"].dropna()]
        lo, hi = map(Fraction, BOUNDS)
        if by_bernstein:
            # Without x, the sums lack (1 - w)**2, 2 w (1 - w) and w**2: worlds differ by twice the larger of what the
            # first and the last differ by, in units of 1 / eps.
            w = (np.array(records) - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
            apart = 2 * np.maximum(*(np.abs(np.subtract.outer(each, each)) for each in (w**2, (1 - w) ** 2)))
            assert found.exact == pytest.approx(float((1 / np.exp(-3 * apart).sum(axis=1)).max()), rel=1e-8)
            assert found.sensitive_range == pytest.approx(337 * apart.max(), rel=1e-8)
            return
        definition = oracle.DEFINITIONS[label]
        worlds = definition.leave_one_out(oracle.fractions(records), lo, hi)
        if (label, mechanism) == ("mean", "auto"):
            # Without x, both noisy sums lack it, one by x - lo, the other by hi - x: worlds differ in twice |x_i - x_j|
            # of R / eps, so they are as far apart as the records are, on a scale of R / 2 eps.
            worlds = oracle.fractions(records)
        each = [1 / len(worlds)] * len(worlds)
        most = max(max(oracle.laplace_posteriors(worlds, found.scale, output, each)) for output in worlds)
        assert found.exact == pytest.approx(most, rel=1e-8)
        assert found.sensitive_range == pytest.approx(max(worlds) - min(worlds), rel=1e-9, abs=674 / 2**29)

    def test_counting_rows(self):
        found = DISTANCES.dprisk.identifiability(None, "count", eps=1)
        assert (found.name, found.worlds, found.sensitive_range, found.exact) == ("count()", 7, 0, 1 / 7)
        assert DISTANCES.dprisk.identifiability("home", "count", eps=1).worlds == 6
        assert DISTANCES.dprisk.identifiability("home", "count", eps=1, where="distance > 5").worlds == 3

    def test_a_risk_gives_both_eps(self):
        records = DISTANCES["distance"].dropna().clip(*BOUNDS).to_numpy()
        for mechanism, worlds in (("laplace", worlds_without_one(records)), ("auto", records)):
            options = {"risk": 0.5, "bounds": BOUNDS, "mechanism": mechanism}
            found = DISTANCES.dprisk.identifiability("distance", **options)
            planned = DISTANCES.dprisk.epsilon_for("distance", metric="identifiability", **options)
            assert found.loose_eps == pytest.approx(planned, rel=1e-12)
            assert found.tight_eps == pytest.approx(tight_epsilon(worlds, 0.5, 337.0), rel=1e-7)
            assert found.loose_eps < found.tight_eps and found.exact < found.bound == pytest.approx(0.5)

    def test_beliefs_belong_to_rows(self):
        beliefs = pd.Series([1, 2, 100, 3, 4, 5, 6], index=DISTANCES.index)
        used = beliefs[DISTANCES["distance"].notna()].to_numpy()
        worlds = worlds_without_one(DISTANCES["distance"].dropna().clip(*BOUNDS).to_numpy())
        expected = exact_identifiability(worlds, 337.0, used / used.sum())
        unknown = beliefs.mask(DISTANCES["distance"].isna())  # nobody has a belief about who gave no answer
        for prior in (beliefs, beliefs.to_numpy(), beliefs.to_list(), unknown, unknown.astype("Float64")):
            found = DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, prior=prior, mechanism="laplace")
            assert (found.prior, found.exact) == (6 / 21, pytest.approx(expected, rel=1e-12))
        some = DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, prior=beliefs, where="home == 'b'")
        assert some.prior == 5 / 11
        for wrong in (beliefs.iloc[::-1], beliefs.reset_index(drop=True)):
            with pytest.raises(ParameterError, match="index of the frame"):
                DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, prior=wrong)
        with pytest.raises(ParameterError, match="one number for each row"):
            DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, prior=[0.5, 0.5])

    def test_one_belief(self):
        # Lee & Clifton 2012: 1/68, for 1.5 % (a person over 85 in a census), and m = 1/prior in the loose bound.
        people = pd.DataFrame({"x": np.arange(100.0)})
        for mechanism, loss in (("laplace", 2 * 2 / 99), ("auto", 2 * 2)):
            options = {"eps": 2, "bounds": (0, 99), "mechanism": mechanism}
            found = people.dprisk.identifiability("x", **options, prior=1 / 68)
            assert found.bound == pytest.approx(float(posterior(loss, 1 / 68)), rel=1e-12)
            assert people.dprisk.identifiability("x", **options).exact < found.exact < found.bound

    def test_declared_bounds_and_missing_codes(self):
        coded = DISTANCES.fillna({"distance": -1}).dprisk.declare(
            bounds={"distance": BOUNDS}, missing={"distance": [-1]}
        )
        found = coded.dprisk.identifiability("distance", eps=1)
        assert found == DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS)

    @pytest.mark.parametrize("dtype", ["Float64", "float32", "object"])
    def test_kinds_of_columns(self, dtype):
        other = DISTANCES.astype({"distance": dtype})
        expected = DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS)
        assert other.dprisk.identifiability("distance", eps=1, bounds=BOUNDS) == expected

    def test_a_series(self):
        series = DISTANCES["distance"]
        for options in ({"eps": 1}, {"risk": 0.5}, {"eps": 1, "prior": 0.4}):
            expected = DISTANCES.dprisk.identifiability("distance", "max", bounds=BOUNDS, **options)
            assert series.dprisk.identifiability("max", bounds=BOUNDS, **options) == expected
        some = series.dprisk.identifiability(eps=1, bounds=BOUNDS, where=lambda x: x < 20)
        assert some == DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, where="distance < 20")

    def test_nobody_and_one(self):
        nobody = DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, where="distance > 9999")
        assert nobody.worlds == 0 and all(map(math.isnan, (nobody.prior, nobody.exact, nobody.bound)))
        one = DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, where="distance == 17")
        assert (one.worlds, one.prior, one.exact, one.bound) == (1, 1, 1, 1)
        for where in ("distance > 9999", "distance == 17"):
            with pytest.raises(ParameterError, match=r"risk of 0\.9 is not possible in these data"):
                DISTANCES.dprisk.identifiability("distance", risk=0.9, bounds=BOUNDS, where=where)

    def test_errors_hold_nothing_of_the_data(self):
        wrong = [
            ({"risk": 0.05}, ParameterError), ({"risk": 1 / 6}, ParameterError),
            ({"eps": 1, "prior": 0.01}, ParameterError), ({"eps": 1, "prior": [1.0] * 6}, ParameterError),
            ({"eps": 1, "prior": [0.0] * 7}, ParameterError), ({"eps": 1, "prior": ["a"] * 7}, ColumnTypeError),
            ({"eps": 1, "prior": pd.Series(["a"] * 7, index=DISTANCES.index)}, ColumnTypeError),
            ({"eps": 1, "prior": np.ones((7, 7))}, ParameterError), ({"eps": 1, "prior": "a"}, ColumnTypeError),
            ({}, ParameterError), ({"eps": -1}, ParameterError),
        ]  # fmt: skip
        for options, error in wrong:
            with pytest.raises(error) as caught:
                DISTANCES.dprisk.identifiability("distance", bounds=BOUNDS, **options)
            words = str(caught.value)
            for secret in ("0.1667", "0.166667 ", "2000", " 6 ", " 7 "):
                assert secret not in words.replace("risk of 0.166667", "")
        with pytest.raises(UnknownColumnError):
            DISTANCES.dprisk.identifiability("distnace", eps=1, bounds=BOUNDS)
        with pytest.raises(ParameterError, match="needs bounds"):
            DISTANCES.dprisk.identifiability("distance", eps=1)
        mixed = pd.DataFrame({"x": pd.Series([1, 2.5, "secret"], dtype=object)})
        with pytest.raises((ColumnTypeError, QueryFailedError)) as caught:
            mixed.dprisk.identifiability("x", eps=1, bounds=(0, 3))
        assert "secret" not in str(caught.value)

    def test_nothing_is_spent(self, tmp_path):
        policy = {"curators": ["ann"]}
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="distances", eps=1, analyst="ann", policy=policy)
        with ledger:
            DISTANCES.dprisk.identifiability("distance", eps=1, bounds=BOUNDS)
            DISTANCES.dprisk.identifiability("distance", risk=0.5, bounds=BOUNDS)
        assert ledger.remaining().eps == 1

    def test_many_people(self):
        generator = np.random.default_rng(2)
        people = pd.DataFrame({"x": generator.lognormal(3, 1, 100_000)})
        found = people.dprisk.identifiability("x", eps=40_000, bounds=(0, 1000), mechanism="laplace")
        worlds = worlds_without_one(people["x"].to_numpy(), bounds=(0, 1000))
        far = np.argmax(np.abs(worlds - worlds.mean()))
        alone = 1 / math.fsum(np.exp(-np.abs(worlds - worlds[far]) / found.scale).tolist())
        assert found.exact == pytest.approx(alone, rel=1e-9) and found.prior < alone < found.bound
