"""An attacker who knows everything but one record: never right more often than pdrisk says, and nearly as often.

Attacks end to end are not seeded, because no noise is. A share of n draws is compared with its expectation within
`SIGMAS` = 7 standard deviations (false failure 3e-12 each, some 1e-9 for the whole file). What a posterior may
not exceed is compared without a tolerance for chance: that holds for every draw.
"""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats

from pdrisk.noise import laplace
from pdrisk.risk import exact_identifiability, posterior

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

DRAWS = 20_000
SIGMAS = 7
ROUNDING = 1e-9
LO, HI = 0.0, 10.0

# name: method, parameters, the answer of a list of records by numpy, of nothing, GS (docs/numbers.md)
STATISTICS = {
    "count": ("count", {}, len, 0.0, 1.0),
    "sum": ("sum", {}, sum, 0.0, 10.0),
    "mean": ("mean", {}, np.mean, 5.0, 5.0),
    "median": ("median", {}, np.median, 5.0, 5.0),
    "quantile": ("quantile", {"q": 0.9}, lambda x: np.quantile(x, 0.9), 5.0, 9.0),
    "min": ("min", {}, min, 10.0, 10.0),
    "max": ("max", {}, max, 0.0, 10.0),
    "var0": ("var", {"ddof": 0}, np.var, 0.0, 25.0),
    "var1": ("var", {"ddof": 1}, lambda x: np.var(x, ddof=1) if len(x) > 1 else 0.0, 0.0, 50.0),
    "std0": ("std", {"ddof": 0}, np.std, 0.0, 5.0),
    "std1": ("std", {"ddof": 1}, lambda x: np.std(x, ddof=1) if len(x) > 1 else 0.0, 0.0, 10 / math.sqrt(2)),
}
EVERY = pytest.mark.parametrize("name", STATISTICS)
PEOPLE = [1.0, 2.0, 2.5, 6.0, 9.0]


def exact(name, records):
    _, _, answer, nothing, _ = STATISTICS[name]
    return float(answer(records)) if len(records) else nothing


def without(records, i):
    return [*records[:i], *records[i + 1 :]]


def releases(name, worlds, eps, draws=DRAWS):
    """Real answers about each world, shape (worlds, draws): every group of one ``by=`` call is a copy of a world."""
    method, parameters, *_ = STATISTICS[name]
    size = [len(world) for world in worlds for _ in range(draws)]
    records = np.concatenate([np.tile(np.asarray(world, dtype=float), draws) for world in worlds])
    frame = pd.DataFrame({"g": np.repeat(np.arange(len(size)), size), "x": records})
    keys = range(len(size))
    table = getattr(frame.dprisk, method)("x", **parameters, eps=eps, bounds=(LO, HI), by="g", keys=keys)
    return table["value"].to_numpy().reshape(len(worlds), draws), table.iloc[::draws]


def evidence(seen, first, second, scale):
    """Log-likelihood ratio of the second world against the first.

    ``|o - first| - |o - second|`` differs in its last bit by world, which would help him more than he deserves.
    """
    gap = second - first
    return np.sign(gap) * np.clip(2 * (seen - first) - gap, -abs(gap), abs(gap)) / scale


def belief(log_odds):
    return 1 / (1 + np.exp(-log_odds))


def close(share, expected, draws):
    """Whether the share of so many draws is within 7 standard deviations of its expectation."""
    return abs(share - expected) <= SIGMAS * math.sqrt(max(expected * (1 - expected), 1 / draws) / draws)


def success_rate(loss, prior=0.5):
    """docs/numbers.md: how often the better guess is right."""
    lean = math.log(prior / (1 - prior))
    if abs(lean) >= loss:
        return max(prior, 1 - prior)
    right_about_first = 1 - math.exp(-(loss + lean) / 2) / 2
    return prior * right_about_first + (1 - prior) * (1 - math.exp(-(loss - lean) / 2) / 2)


class TestFormulas:
    """How often an attacker is right, against numpy's own Laplace noise (seeded: no chance of failure)."""

    # docs/numbers.md, "Attack success"
    PRINTED = (
        (0.1, 0.5249792, 0.5243853, 0.9524187),
        (0.5, 0.6224593, 0.6105996, 0.8032653),
        (1.0, 0.7310586, 0.6967347, 0.6839397),
        (2.0, 0.8807971, 0.8160603, 0.5676676),
    )
    N = 1_000_000

    @pytest.mark.parametrize(("loss", "claim", "success", "attained"), PRINTED)
    def test_two_worlds(self, loss, claim, success, attained):
        generator = np.random.default_rng(7)
        second = generator.random(self.N) < 0.5
        found = evidence(loss * second + generator.laplace(size=self.N), 0.0, loss, 1.0)
        assert float(posterior(loss)) == pytest.approx(claim, abs=5e-8)
        assert success_rate(loss) == pytest.approx(success, abs=5e-8)
        assert (1 + math.exp(-loss)) / 2 == pytest.approx(attained, abs=5e-8)
        assert close(((found > 0) == second).mean(), success, self.N)
        held = belief(np.abs(found))
        assert held.max() <= claim + 1e-7
        assert close((held >= float(posterior(loss)) - ROUNDING).mean(), attained, self.N)
        # A belief is right as often as it says.
        assert close(((found > 0) == second).mean(), held.mean(), self.N)

    @pytest.mark.parametrize("prior", [0.01, 0.2, 0.5, 0.7])
    @pytest.mark.parametrize("loss", [0.1, 0.5, 1.0, 2.0])
    def test_any_prior(self, loss, prior):
        generator = np.random.default_rng(8)
        second = generator.random(self.N) < prior
        found = evidence(loss * second + generator.laplace(size=self.N), 0.0, loss, 1.0)
        guess = found + math.log(prior / (1 - prior)) > 0
        assert close((guess == second).mean(), success_rate(loss, prior), self.N)
        assert belief(found + math.log(prior / (1 - prior))).max() <= float(posterior(loss, prior)) + ROUNDING

    @pytest.mark.parametrize("loss", [0.1, 1.0, 2.0])
    def test_two_releases(self, loss):
        generator = np.random.default_rng(9)
        second = generator.random(self.N) < 0.5
        found = sum(evidence(loss * second + generator.laplace(size=self.N), 0.0, loss, 1.0) for _ in range(2))
        undecided = found == 0  # with clipping the two can cancel exactly; he then tosses a coin
        right = np.where(undecided, 0.5, (found > 0) == second).mean()
        assert close(right, 1 - math.exp(-loss) * (1 + loss / 2) / 2, self.N)
        assert belief(np.abs(found)).max() <= float(posterior(2 * loss)) + ROUNDING


def most_telling_neighbour(name, records):
    """The neighbour with the answer farthest away: any value on a fine grid or the mean added, anyone removed."""
    added = [[*records, value] for value in (*np.linspace(LO, HI, 101), *([np.mean(records)] if records else []))]
    removed = [without(records, i) for i in range(len(records))]
    return max(added + removed, key=lambda other: abs(exact(name, other) - exact(name, records)))


class TestTwoWorlds:
    """Someone who knows everything but whether one record is there holds ``two_worlds`` at most, and reaches it."""

    def attack(self, name, records, loss):
        other = most_telling_neighbour(name, records)
        first, second = exact(name, records), exact(name, other)
        eps = loss * STATISTICS[name][-1] / abs(second - first)
        seen, table = releases(name, [records, other], eps)
        return evidence(seen, first, second, float(table["scale"].iloc[0])), table.iloc[0]

    @pytest.mark.parametrize(
        ("name", "loss"),
        [*((name, 1.0) for name in STATISTICS)]
        + [(name, loss) for name in ("mean", "median", "count") for loss in (0.1, 0.5, 2.0)],
    )
    def test_success_and_belief(self, name, loss):
        found, own = self.attack(name, PEOPLE, loss)
        right = np.concatenate([found[0] < 0, found[1] > 0])
        assert float(posterior(loss)) == pytest.approx(own["two_worlds"], abs=ROUNDING)
        assert close(right.mean(), 1 - math.exp(-loss / 2) / 2, right.size)
        held = belief(np.abs(found))
        assert held.max() <= own["two_worlds"] + ROUNDING
        assert close((held >= own["two_worlds"] - ROUNDING).mean(), (1 + math.exp(-loss)) / 2, right.size)
        assert own["two_worlds"] <= own["worst_case"] + ROUNDING

    @pytest.mark.parametrize("records", [[], [3.0], [2.0, 2.0], [0.0, 0.0, 10.0, 10.0]], ids=str)
    @EVERY
    def test_of_few_records(self, name, records):
        other = most_telling_neighbour(name, records)
        first, second = exact(name, records), exact(name, other)
        seen, table = releases(name, [records, other], 1.0, 4000)
        own = table.iloc[0]
        held = belief(np.abs(evidence(seen, first, second, own["scale"])))
        assert held.max() <= own["two_worlds"] + ROUNDING
        assert held.max() >= own["two_worlds"] - ROUNDING  # missed with .5 to the 8000

    @pytest.mark.parametrize("name", ["mean", "median", "max", "var1", "count"])
    def test_of_single_releases(self, name):
        """The risk written on a `Release` itself, and its own value, 300 times."""
        method, parameters, *_ = STATISTICS[name]
        other = most_telling_neighbour(name, PEOPLE)
        first, second = exact(name, PEOPLE), exact(name, other)
        held, right = [], []
        for truth, world in enumerate((PEOPLE, other)):
            column = pd.Series(world).dprisk
            for _ in range(150):
                release = getattr(column, method)(**parameters, eps=1.5, bounds=(LO, HI))
                found = evidence(release.value, first, second, release.scale)
                held.append(belief(abs(found)))
                right.append((found > 0) == bool(truth))
                if not truth:
                    claim = release.risk.two_worlds
                    loss = 1.5 * release.local_sensitivity / release.global_sensitivity
        assert max(held) == pytest.approx(claim, abs=ROUNDING)
        assert close(np.mean(right), success_rate(loss), len(right))

    @pytest.mark.parametrize("prior", [0.01, 0.2, 0.8])
    @pytest.mark.parametrize("name", ["mean", "median", "var1"])
    def test_with_any_prior(self, name, prior):
        loss = 1.5
        found, _ = self.attack(name, PEOPLE, loss)
        odds = found + math.log(prior / (1 - prior))
        claim = float(posterior(loss, prior))
        assert belief(odds).max() <= claim + ROUNDING
        assert belief(odds).max() >= claim - ROUNDING
        mine = prior * (odds[1] > 0).mean() + (1 - prior) * (odds[0] <= 0).mean()
        # Each world's share has a standard deviation of at most .5/sqrt(DRAWS), and the weights add up to 1.
        assert abs(mine - success_rate(loss, prior)) <= SIGMAS * 0.5 / math.sqrt(DRAWS)

    def test_several_releases_add_up(self):
        """One eps for mean, max and count together: the losses of the person add, as the claims say."""
        person, eps = 4, 3.0
        names = ["mean", "max", "count"]
        worlds = [PEOPLE, without(PEOPLE, person)]
        frames = []
        for start, world in zip((0, DRAWS), worlds, strict=True):
            keys = np.repeat(np.arange(start, start + DRAWS), len(world))
            frames.append(pd.DataFrame({"g": keys, "x": np.tile(world, DRAWS)}))
        frame = pd.concat(frames, ignore_index=True)
        table = frame.dprisk.agg({"x": names}, eps=eps, bounds=(LO, HI), by="g", keys=range(2 * DRAWS))
        values = table["value"].to_numpy().reshape(len(names), 2, DRAWS)
        scales = table["scale"].to_numpy().reshape(len(names), -1)[:, 0]
        found, loss = 0.0, 0.0
        for i, name in enumerate(names):
            first, second = (exact(name, world) for world in worlds)
            found = found + evidence(values[i], first, second, scales[i])
            loss += eps / 3 * abs(first - second) / STATISTICS[name][-1]
        assert loss < eps
        held = belief(np.abs(found))
        assert held.max() <= float(posterior(loss)) + ROUNDING
        assert held.max() >= float(posterior(loss)) - ROUNDING
        # A belief is right as often as it says: only then is it the best attack.
        right = np.concatenate([found[0] < 0, found[1] > 0]).mean()
        assert abs(right - held.mean()) <= SIGMAS * 0.5 / math.sqrt(DRAWS)


class TestIndividualRisk:
    """Each person's own risk bounds what is learnt about this person, and is reached."""

    @EVERY
    def test_nobody_is_found_more_surely_than_their_row_says(self, name):
        method, parameters, *_ = STATISTICS[name]
        people = pd.DataFrame({"x": [*PEOPLE[:2], math.nan, *PEOPLE[2:], 2.0]})
        known = people["x"].dropna().tolist()
        spec = (method, parameters) if parameters else method
        rows = people.dprisk.individual_risk("x", spec, eps=2.0, bounds=(LO, HI))
        claims = rows.dropna().tolist()
        assert rows.isna().tolist() == people["x"].isna().tolist()
        worlds = [known, *(without(known, i) for i in range(len(known)))]
        seen, table = releases(name, worlds, 2.0, 2000)
        for i, claim in enumerate(claims):
            first, second = exact(name, known), exact(name, worlds[i + 1])
            found = evidence(seen[[0, i + 1]], first, second, table["scale"].iloc[0])
            held = belief(np.abs(found))
            assert held.max() <= claim + ROUNDING
            assert held.max() >= claim - ROUNDING  # missed with .5 to the 4000
            assert claim <= table["two_worlds"].iloc[0] + ROUNDING
            right = np.where(found == 0, 0.5, (found > 0) == np.array([[False], [True]]))  # he tosses a coin
            assert close(right.mean(), success_rate(2.0 * abs(first - second) / STATISTICS[name][-1]), right.size)


class TestManyWorlds:
    """One of n people is missing and each is as likely: the attacker knows all values and asks who."""

    GROUPS = ([1.0, 2.0, 2.5, 6.0, 9.0], [0.0, 10.0], [4.0, 4.0, 4.0, 10.0], [0.0, 0.0, 5.0, 10.0, 10.0, 3.0])

    @pytest.mark.parametrize("people", GROUPS, ids=str)
    @EVERY
    def test_belief_and_best_guess(self, name, people):
        method, parameters, *_ = STATISTICS[name]
        eps, n, draws = 2.0, len(people), 2000
        spec = (method, parameters) if parameters else method
        claim = pd.DataFrame({"x": people}).dprisk.assess("x", [spec], eps, bounds=(LO, HI)).iloc[0]["identifiability"]
        worlds = [without(people, i) for i in range(n)]
        answers = np.array([exact(name, world) for world in worlds])
        seen, table = releases(name, worlds, eps, draws)
        scale = float(table["scale"].iloc[0])
        weight = -np.abs(seen[..., np.newaxis] - answers) / scale
        weight -= weight.max(axis=-1, keepdims=True)
        held = np.exp(weight)
        held /= held.sum(axis=-1, keepdims=True)
        largest = exact_identifiability(answers, scale)
        assert held.max() <= largest + ROUNDING
        assert largest <= claim + ROUNDING
        assert claim <= float(posterior(2 * eps, 1 / n)) + ROUNDING
        # Reached where r = f_i, so within how near n * draws answers come to it: a belief e away is off by e / scale.
        at = np.abs(seen.reshape(-1, 1) - answers).min(axis=0).max()
        assert held.max() >= largest - 2 * at / scale
        assert at / scale < 0.05  # missed with exp(-100): 2000 draws of that very world

        guess = answers[held.argmax(axis=-1)]
        # Worlds with the same answer cannot be told apart: he picks one of them, so a hit counts 1/(their number).
        order, index, size = np.unique(answers.round(9), return_inverse=True, return_counts=True)
        hit = np.isclose(guess, answers[:, np.newaxis], atol=1e-9) / size[index][:, np.newaxis]
        # Sum over distinct answers of the largest density: (1 + sum over gaps (1 - exp(-gap / 2b))) / n.
        best = (1 + (1 - np.exp(-np.diff(order) / (2 * scale))).sum()) / n
        assert best <= claim + ROUNDING
        # The mean of each world has a standard deviation of at most .5/sqrt(draws).
        assert abs(hit.mean() - best) <= SIGMAS * 0.5 / math.sqrt(draws * n)

    def test_the_two_people_whom_many_worlds_forgets(self):
        """docs/numbers.md: {-1, 1} in [-1, 1], mean, eps=1: many_worlds says .7311, the truth is .8808."""
        frame = pd.DataFrame({"g": np.repeat(["without -1", "without 1"], DRAWS)})
        frame = frame.assign(x=np.repeat([1.0, -1.0], DRAWS), g=np.arange(2 * DRAWS))
        table = frame.dprisk.mean("x", eps=1, bounds=(-1, 1), by="g", keys=range(2 * DRAWS))
        own = pd.DataFrame({"x": [-1.0, 1.0]}).dprisk.assess("x", "mean", 1, bounds=(-1, 1)).iloc[0]
        held = belief(np.abs(evidence(table["value"].to_numpy(), 1.0, -1.0, 1.0)))
        assert own["many_worlds"] == pytest.approx(0.7310586, abs=5e-8)
        assert held.max() == pytest.approx(own["identifiability"], abs=ROUNDING)
        assert own["identifiability"] == pytest.approx(0.8807971, abs=5e-8)


class TestAudit:
    """No event is more than exp(eps) times as likely with a person as without, and half the noise would be caught.

    Thresholds are fixed beforehand, with Clopper-Pearson bounds at 1e-13 each side: a sound mechanism, whose worst
    event sits exactly at exp(eps), is accused falsely with at most 2e-13 for each event, 3e-10 for all 1300.
    """

    # The pairs that reach the global sensitivity, and for var and std the empty set beside them
    PAIRS = (
        ("count", [], [4.0]),
        ("count", [1.0, 2.0], [1.0, 2.0, 3.0]),
        ("sum", [], [HI]),
        ("sum", [LO, 5.0], [LO, 5.0, HI]),
        ("mean", [], [HI]),
        ("mean", [], [LO]),
        ("mean", [LO], [LO, HI]),
        ("median", [], [HI]),
        ("median", [HI], [LO, HI]),
        ("quantile", [LO], [LO, HI]),
        ("min", [], [LO]),
        ("min", [HI], [LO, HI]),
        ("max", [], [HI]),
        ("max", [LO], [LO, HI]),
        ("var0", [LO], [LO, HI]),
        ("var1", [LO], [LO, HI]),
        ("std0", [LO], [LO, HI]),
        ("std1", [HI], [LO, HI]),
    )
    SAME = (("quantile", [], [HI]), ("var0", [], [HI]), ("var1", [], [LO]), ("std0", [], [5.0]), ("std1", [], [HI]))
    EPS = 1.0

    def violations(self, name, without_person, with_person, draws=8000):
        worlds = [without_person, with_person]
        return self.events(name, worlds, releases(name, worlds, self.EPS, draws)[0])

    def events(self, name, worlds, seen):
        """Which of the events ``o <= t`` and ``o > t`` are too likely in one world for what they are in the other."""
        answers, draws = [exact(name, world) for world in worlds], seen.shape[1]
        scale = STATISTICS[name][-1] / self.EPS
        thresholds = sorted({f + shift * scale for f in answers for shift in (-2, -1, -0.5, 0, 0.5, 1, 2)})
        below = np.array([[(row <= t).sum() for t in thresholds] for row in seen])
        found = []
        for counts in (below, draws - below):
            lower = np.where(counts > 0, scipy.stats.beta.ppf(1e-13, counts, draws - counts + 1), 0.0)
            upper = np.where(counts < draws, scipy.stats.beta.isf(1e-13, counts + 1, draws - counts), 1.0)
            for one, other in ((0, 1), (1, 0)):
                found += list(np.flatnonzero(lower[one] > math.exp(self.EPS) * upper[other]))
        return found

    @pytest.mark.parametrize(("name", "one", "other"), PAIRS + SAME)
    def test_real_noise_passes(self, name, one, other):
        assert self.violations(name, one, other, DRAWS) == []

    @pytest.mark.parametrize(("name", "one", "other"), PAIRS)
    def test_these_pairs_reach_the_global_sensitivity(self, name, one, other):
        assert abs(exact(name, one) - exact(name, other)) == pytest.approx(STATISTICS[name][-1])

    @pytest.mark.parametrize(("name", "one", "other"), PAIRS)
    def test_half_the_noise_is_caught(self, monkeypatch, name, one, other):
        monkeypatch.setattr("pdrisk.answer.laplace", lambda s, lattice, eps: laplace(s, lattice, eps * 2))
        assert self.violations(name, one, other) != []

    def test_three_quarters_of_the_noise_are_caught(self, monkeypatch):
        monkeypatch.setattr("pdrisk.answer.laplace", lambda s, lattice, eps: laplace(s, lattice, eps * 4 / 3))
        assert self.violations("mean", [], [HI], DRAWS) != []

    def test_another_answer_of_nothing_is_caught(self):
        """With f(empty) = lo the mean of one hi would be two global sensitivities away (docs/numbers.md)."""
        worlds = [[], [HI]]
        seen, _ = releases("mean", worlds, self.EPS)
        assert self.events("mean", worlds, seen) == []
        assert self.events("mean", worlds, seen - np.array([[5.0], [0.0]])) != []


class TestLastBits:
    """Mironov 2012: the last bits of floating-point noise tell which answer is under it; a lattice has none to tell."""

    @staticmethod
    def finer_than_one(values):
        """Whether a value close to 0 has bits that a sum ``1 + noise`` cannot have."""
        near = np.abs(values) < 0.2
        return near, near & (np.rint(values * 2.0**53) != values * 2.0**53)

    def test_numpy_noise_gives_the_answer_away(self):
        generator = np.random.default_rng(3)
        near_zero, fine_zero = self.finer_than_one(0.0 + generator.laplace(size=DRAWS))
        _, fine_one = self.finer_than_one(1.0 + generator.laplace(size=DRAWS))
        assert fine_zero.sum() > 0.5 * near_zero.sum() > 100
        assert fine_one.sum() == 0  # an event of probability above 0 in one world, and 0 in the other

    def test_pdrisk_does_not(self):
        seen, _ = releases("count", [[], [3.0]], 1.0)
        for values in seen:
            near, fine = self.finer_than_one(values)
            assert near.sum() > 100
            assert fine.sum() == 0
        # Any single bit of the steps is as even in one world as in the other: 7 standard deviations.
        steps = (seen * 2.0**30).astype(np.int64)
        for bit in range(26):
            one, other = (steps >> bit & 1).mean(axis=1)
            assert abs(one - other) < SIGMAS * 0.5 * math.sqrt(2 / DRAWS)


class TestAveraging:
    """Asking again and again averages the noise away: why answers are paid for. A count of 4, eps=.5: scale 2."""

    @staticmethod
    def mean_is_within_a_half(answers, scale=2.0):
        """P(|mean of so many noises| < 1/2), exactly: their sum has the characteristic function (1 + (bt)**2)**-n."""

        def integrand(t):
            return answers / 2 * np.sinc(answers * t / (2 * math.pi)) * (1 + (scale * t) ** 2) ** -answers

        value, error = scipy.integrate.quad(integrand, 0, 2, limit=500)
        assert error < 1e-6
        return 2 / math.pi * value

    @staticmethod
    def median_is_within_a_half(answers, scale=2.0):
        """The same for the median of an odd number: more than half of them must not be beyond either end."""
        beyond = math.exp(-0.5 / scale) / 2
        return 1 - 2 * scipy.stats.binom.sf(answers // 2, answers, beyond)

    def test_printed_numbers(self):
        # docs/numbers.md
        assert self.mean_is_within_a_half(123) == pytest.approx(0.9499, abs=1e-4)
        assert self.mean_is_within_a_half(123) < 0.95 <= self.mean_is_within_a_half(124)
        assert self.mean_is_within_a_half(130) == pytest.approx(0.956, abs=5e-4)
        assert self.median_is_within_a_half(73) < 0.95 < self.median_is_within_a_half(79)

    def test_simulation(self):
        noise = np.random.default_rng(4).laplace(scale=2.0, size=(40_000, 124))
        assert close((np.rint(4 + noise.mean(axis=1)) == 4).mean(), self.mean_is_within_a_half(124), len(noise))
        half = (np.rint(4 + np.median(noise[:, :76], axis=1)) == 4).mean()
        assert half == pytest.approx(0.95, abs=0.01)
        less = np.abs(noise[:, :30].mean(axis=1)) < 0.5
        assert close(less.mean(), self.mean_is_within_a_half(30), len(noise))

    def test_real_releases(self):
        repetitions = 1000
        seen, table = releases("count", [[1.0, 2.0, 3.0, 4.0]], 0.5, 124 * repetitions)
        assert table["scale"].iloc[0] == 2.0
        right = np.rint(seen.reshape(repetitions, 124).mean(axis=1)) == 4
        assert close(right.mean(), self.mean_is_within_a_half(124), repetitions)
        once = np.rint(seen) == 4
        assert close(once.mean(), 1 - math.exp(-0.25), once.size)


@EVERY
def test_the_attacker_knows_the_answers(name):
    """The oracle of these attacks agrees with pdrisk, so that no attack fails for want of knowledge."""
    for records in ([], [3.0], PEOPLE):
        seen, table = releases(name, [records], 1e6, 20)
        assert seen == pytest.approx(exact(name, records), abs=60 * float(table["scale"].iloc[0]))
