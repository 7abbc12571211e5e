"""Attacks on tables: differencing, trackers, disclosure, membership and reconstruction, by what they must find."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import pdrisk
from pdrisk import attack
from pdrisk._mechanisms import discrete_laplace

SURE = 1 - 1e-6


def half_the_noise(exact, change, eps):
    return discrete_laplace(exact, change, 8 * eps)


@pytest.fixture(scope="module")
def staff():
    rng = np.random.default_rng(3)
    n = 400
    table = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.integers(20, 70, n), "job": rng.choice(list("abcde"), n)}
    )
    table["ill"] = rng.random(n) < 0.3
    table.loc[7, ["sex", "age", "job"]] = ["f", 71, "a"]
    return table


class TestClopperPearson:
    """The interval is the one of the definition: tails of the binomial distribution."""

    @pytest.mark.parametrize(("times", "trials"), [(0, 1), (1, 1), (0, 50), (3, 10), (500, 1000), (9_999, 20_000)])
    @pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-9])
    def test_of_the_definition(self, times, trials, level):
        low, high = attack.clopper_pearson(times, trials, level)
        beyond = (1 - level) / 2
        expected = scipy.stats.beta.ppf(beyond, times, trials - times + 1) if times else 0.0
        assert low == pytest.approx(expected, rel=1e-9)
        expected = scipy.stats.beta.isf(beyond, times + 1, trials - times) if times < trials else 1.0
        assert high == pytest.approx(expected, rel=1e-9)

    def test_printed(self):
        # Clopper & Pearson 1934, as tabled everywhere: 95 % for 10 of 10 is 1 - .025**(1/10)
        assert attack.clopper_pearson(0, 10, 0.95) == (0.0, pytest.approx(1 - 0.025 ** (1 / 10), rel=1e-12))

    def test_coverage(self):
        for p in (0.01, 0.3, 0.5):
            held = [attack.clopper_pearson(k, 30, 0.9) for k in range(31)]
            inside = sum(scipy.stats.binom.pmf(k, 30, p) for k, (low, high) in enumerate(held) if low <= p <= high)
            assert inside >= 0.9


class TestDifferencing:
    """Two filters that differ by one person."""

    def test_what_each_publication_gives_away(self, staff):
        found = attack.differencing(staff, "ill", "age > 30", "age > 30 and age < 71", level=SURE)
        assert found["exact"].achieved == found["restricted"].achieved == 1
        assert found["noisy"].verdict == "kept"
        # P(D > 1/2) of the difference D of two discrete Laplace variables of eps .5, less or more one
        a = math.exp(-0.5)
        k = np.arange(-200, 201)
        own = (1 - a) / (1 + a) * a ** np.abs(k)
        both = np.convolve(own, own)
        right = both[np.arange(-400, 401) <= 0].sum()
        assert found["noisy"].low <= right <= found["noisy"].high

    def test_rounding_protects_only_where_no_edge_is_crossed(self):
        for others, crossed in ((14, True), (11, False)):
            people = pd.DataFrame({"age": range(40), "ill": [at < others for at in range(40)]})
            found = attack.differencing(people, "ill", "age >= 0", "age < 39", base=10)["rounded"]
            assert (found.achieved == 1) == crossed
            assert found.achieved == pytest.approx(1.0 if crossed else 0.5, abs=0.06)

    def test_a_refusal_protects_whom_it_concerns(self, staff):
        found = attack.differencing(staff, "ill", "age == 71", "age == 72", level=SURE)
        assert found["exact"].achieved == 1
        assert found["restricted"].low <= 0.5 <= found["restricted"].high

    @pytest.mark.parametrize("without", ["age > 30 and age < 60", "age > 30", "age > 20"])
    def test_filters_that_isolate_nobody(self, staff, without):
        with pytest.raises(pdrisk.ParameterError, match="isolate nobody"):
            attack.differencing(staff, "ill", "age > 30", without)

    @pytest.mark.parametrize("condition", ["nope > 3", "age +", "age + 1"])
    def test_no_condition(self, staff, condition):
        with pytest.raises(pdrisk.ParameterError, match=r"cannot be read|yes or no"):
            attack.differencing(staff, condition, "age > 30", "age > 31")

    def test_less_noise_is_caught(self, staff, monkeypatch):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", half_the_noise)
        assert attack.differencing(staff, "ill", "age > 30", "age > 30 and age < 71")["noisy"].verdict == "broken"


class TestTracker:
    """Padded queries isolate a person whom no query alone may be about."""

    @pytest.mark.parametrize("kind", ["individual", "general"])
    @pytest.mark.parametrize("person", [{"sex": "f", "age": 71}, {"sex": "f", "age": 71, "job": "a"}], ids=len)
    def test_its_queries_do_what_they_say(self, staff, kind, person):
        """The shown queries, run by pandas, differ by exactly the person, and each is answered."""
        least = 5
        found = attack.tracker(staff, person, "ill", kind=kind, least=least, level=SURE)
        assert found["restricted"].achieved == 1
        assert found["noisy"].verdict == "kept"
        total, sick = 0, 0
        for part in found["exact"].details["queries"].replace("- [", "[-").replace("+ [", "[").split("[")[1:]:
            query, sign = part.strip().rstrip("]").removeprefix("-"), -1 if part.startswith("-") else 1
            rows = staff.query(query)
            assert least <= len(rows) <= len(staff) - least
            total, sick = total + sign * len(rows), sick + sign * int(rows["ill"].sum())
        assert total == 1
        assert sick == int(staff.loc[7, "ill"])

    def test_what_is_claimed_counts_the_answers_that_the_person_is_in(self, staff):
        one = attack.tracker(staff, {"sex": "f", "age": 71}, "ill", eps=0.5)["noisy"]
        other = attack.tracker(staff, {"sex": "f", "age": 71}, "ill", eps=0.5, kind="general")["noisy"]
        assert one.claimed == pytest.approx(float(pdrisk.risk.posterior(0.5)))
        assert other.claimed == pytest.approx(float(pdrisk.risk.posterior(1.5)))

    def test_none(self, staff):
        with pytest.raises(pdrisk.ParameterError, match="no individual tracker"):
            attack.tracker(staff, {"sex": "f", "age": 71}, "ill", least=250)
        with pytest.raises(pdrisk.ParameterError, match="no general tracker"):
            attack.tracker(staff, {"sex": "f", "age": 71}, "ill", least=150, kind="general")
        with pytest.raises(pdrisk.ParameterError, match="where it should be one"):
            attack.tracker(staff, {"sex": "f"}, "ill")
        with pytest.raises(pdrisk.ParameterError, match="unknown column"):
            attack.tracker(staff, {"nope": 1}, "ill")
        with pytest.raises(pdrisk.ParameterError, match="kind is one of"):
            attack.tracker(staff, {"sex": "f"}, "ill", kind="double")


class TestDisclosure:
    """A class in which all are alike gives everybody away, however large it is."""

    def test_brute_force(self, staff):
        """The share that is right by chance is that of everybody's guess from the others, one by one."""
        staff = staff.head(120)
        found = attack.attribute_disclosure(staff, ["sex", "job"], "ill")
        sure, expected, others = 0, 0.0, 0.0
        for at, row in staff.iterrows():
            own = staff[(staff["sex"] == row["sex"]) & (staff["job"] == row["job"])]
            sure += own["ill"].nunique() == 1
            for frame, into in ((own, "own"), (own.drop(at), "others")):
                times = frame["ill"].value_counts()
                best = times[times == times.max()].index
                part = (row["ill"] in best) / len(best)
                expected, others = (expected + part, others) if into == "own" else (expected, others + part)
        assert found["exact"].details["sure"] == pytest.approx(sure / len(staff))
        assert found["exact"].achieved == pytest.approx(expected / len(staff), abs=0.08)
        assert found["exact"].chance == pytest.approx(others / len(staff), abs=0.08)

    def test_alone_everybody_is_known(self, staff):
        alone = staff.assign(id=range(len(staff)))
        found = attack.attribute_disclosure(alone, "id", "ill", eps=0.1)
        assert found["exact"].achieved == found["exact"].details["sure"] == 1
        assert found["noisy"].low <= 0.5 + 0.05
        assert found["exact"].chance == pytest.approx(1 - staff["ill"].mean())

    def test_missing_values_are_values(self):
        people = pd.DataFrame({"job": ["a", None, None, "b"], "ill": [True, None, None, False]}, dtype=object)
        assert attack.attribute_disclosure(people, "job", "ill")["exact"].details["sure"] == 1

    @pytest.mark.parametrize(("frame", "said"), [([], "DataFrame"), (pd.DataFrame({"a": [], "b": []}), "empty")])
    def test_refusals(self, frame, said):
        with pytest.raises(pdrisk.ParameterError, match=said):
            attack.attribute_disclosure(frame, "a", "b")
        with pytest.raises(pdrisk.ParameterError, match="unknown column"):
            attack.attribute_disclosure(pd.DataFrame({"a": [1]}), "a", "b")


class TestIntersection:
    """Two tables in which everybody has company leave one secret to each."""

    def test_every_person_is_found(self):
        """Classes of 3 by one column, of 3 by another, which meet in one person: 3-anonymous twice, and all known."""
        grid = pd.DataFrame(list(itertools.product(range(3), range(3))), columns=["row", "column"])
        grid["secret"] = (grid["row"] + grid["column"]) % 3  # a Latin square: all three secrets in every class
        found = attack.intersection(grid, grid, ["row", "column"], "secret")
        assert found["first"].details == {"k": 3, "sure": 0.0}
        assert found["both"].details["sure"] == 0.0  # each class has all secrets
        grid["secret"] = [0, 1, 2, 1, 3, 4, 2, 4, 5]  # no two classes share more than what is in both
        found = attack.intersection(grid, grid.sample(frac=1, random_state=1), ["row", "column"], "secret")
        assert found["first"].details["sure"] == 0
        brute = 0
        for _, row in grid.iterrows():
            own = set(grid.loc[grid["row"] == row["row"], "secret"])
            other = set(grid.loc[grid["column"] == row["column"], "secret"])
            brute += len(own & other) == 1
        assert found["both"].details["sure"] == pytest.approx(brute / 9)
        assert found["both"].achieved >= brute / 9  # who is sure is right; the others are guessed

    def test_of_people_in_both_only(self):
        first = pd.DataFrame({"a": [1, 1, 2], "s": ["x", "y", "x"]}, index=["p", "q", "r"])
        second = pd.DataFrame({"b": [1, 1, 1], "s": ["y", "x", "z"]}, index=["q", "r", "t"])
        assert attack.intersection(first, second, ["a", "b"], "s")["both"].trials == 2

    def test_refusals(self):
        one = pd.DataFrame({"a": [1, 2], "s": [1, 2]})
        with pytest.raises(pdrisk.ParameterError, match="nobody is in both"):
            attack.intersection(one, one.set_index(pd.Index([8, 9])), ["a", "a"], "s")
        with pytest.raises(pdrisk.ParameterError, match="differs between"):
            attack.intersection(one, one.assign(s=[2, 1]), ["a", "a"], "s")
        with pytest.raises(pdrisk.ParameterError, match="each person once"):
            attack.intersection(one, one.set_index(pd.Index([0, 0])), ["a", "a"], "s")
        with pytest.raises(pdrisk.ParameterError, match="pair"):
            attack.intersection(one, one, "a", "s")


class TestMembershipAndReconstruction:
    """Many exact numbers about few people give everybody away; as many noisy ones keep what they claim."""

    def test_members(self):
        found = attack.membership(people=50, attributes=500, trials=600, level=SURE)
        assert found["exact"].achieved > 0.88  # Phi(sqrt(10) / 2) = .943
        assert found["noisy"].verdict == "kept"
        few = attack.membership(people=2000, attributes=20, trials=600)["exact"]
        assert few.achieved < 0.65  # attributes far fewer than people

    def test_exact_members_by_the_normal_law(self):
        """Of so many attributes the evidence is all but normal: right with Phi(sqrt(attributes / people) / 2)."""
        people, attributes = 400, 400
        found = attack.membership(people=people, attributes=attributes, trials=4000, level=SURE)["exact"]
        expected = scipy.stats.norm.cdf(math.sqrt(attributes / people) / 2)
        assert found.achieved == pytest.approx(expected, abs=0.06)

    def test_census(self):
        found = attack.reconstruction(people=40, queries=160, trials=600, level=SURE)
        assert found["exact"].achieved == found["exact"].details["share of all"] == 1
        assert found["rounded"].achieved > 0.9
        assert found["noisy"].verdict == "kept"
        few = attack.reconstruction(people=200, queries=5, trials=600)["exact"]
        assert few.details["share of all"] < 0.6

    def test_too_little_noise_gives_everybody_away(self):
        assert attack.reconstruction(people=40, queries=160, eps=2000, trials=600)["noisy"].achieved > 0.99

    def test_noise_that_is_not_what_it_says_is_caught(self, monkeypatch):
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: discrete_laplace(exact, change, 3000 * eps),
        )
        assert attack.reconstruction(people=40, queries=160, trials=600)["noisy"].verdict == "broken"
        assert attack.membership(people=50, attributes=500, trials=600)["noisy"].verdict == "broken"

    @pytest.mark.parametrize(
        "asked",
        [
            lambda: attack.membership(people=1),
            lambda: attack.membership(attributes=10**6),
            lambda: attack.reconstruction(people=5000),
            lambda: attack.reconstruction(queries=10**6),
            lambda: attack.reconstruction(eps=-1),
            lambda: attack.reconstruction(trials=True),
        ],
    )
    def test_refusals(self, asked):
        with pytest.raises(pdrisk.ParameterError):
            asked()


class TestBlackBox:
    """A lower bound on eps from answers alone, of any callable."""

    @staticmethod
    def laplace(scale, seed):
        rng = np.random.default_rng(seed)
        return lambda data: np.sum(data) + rng.laplace(scale=scale, size=10_000)

    def test_a_sound_claim_holds_and_the_bound_is_close(self):
        for seed in range(5):
            found = attack.epsilon_lower_bound(self.laplace(1.0, seed), [1], [1, 1], eps=1, at_once=10_000, level=SURE)
            assert 0.6 < found.low <= 1

    @pytest.mark.parametrize("scale", [0.5, 0.75])
    def test_too_little_noise_is_caught(self, scale):
        found = attack.epsilon_lower_bound(
            self.laplace(scale, 1), [1], [1, 1], eps=1, at_once=10_000, draws=20_000, level=SURE
        )
        assert found.verdict == "broken"

    @pytest.mark.slow
    def test_our_own(self):
        frame = pd.DataFrame({"x": [1.0, 2.0]})
        answer = lambda data: float(data.dprisk.count(eps=1))  # noqa: E731
        found = attack.epsilon_lower_bound(answer, frame, frame[:1], eps=1, draws=600, level=SURE)
        assert found.verdict != "broken"

    @pytest.mark.parametrize(
        "answer",
        [
            lambda data: math.nan if len(data) == 1 else 1.0,  # a NaN that tells
            lambda data: np.random.default_rng().normal() + 100 * len(data),
            lambda data: [0.0, float(len(data))],  # the second of two numbers
        ],
    )
    def test_what_tells_everything_is_caught(self, answer):
        assert attack.epsilon_lower_bound(answer, [1], [1, 1], eps=3, draws=2000, level=SURE).verdict == "broken"

    def test_several_numbers_that_tell_only_together(self):
        rng = np.random.default_rng(4)

        def answer(data):  # each is noise; their difference is the number of records
            noise = rng.normal(scale=50, size=5000)
            return np.stack([noise, noise + len(data) + rng.laplace(scale=0.1, size=5000)], axis=1)

        assert attack.epsilon_lower_bound(answer, [1], [1, 1], eps=2, at_once=5000, level=SURE).verdict == "broken"

    @pytest.mark.parametrize("answer", [lambda data: "a", lambda data: None, 3])
    def test_no_answer(self, answer):
        with pytest.raises(pdrisk.ColumnTypeError):
            attack.epsilon_lower_bound(answer, [1], [1, 1])
        with pytest.raises(pdrisk.ColumnTypeError, match="7 answers"):
            attack.epsilon_lower_bound(lambda data: [1, 2], [1], [1, 1], at_once=7)
