"""An attacker who knows everything but one record: never right more often than pdrisk says, and nearly as often.

How far a share of draws may be off: see `attacks`. What a posterior may not exceed is compared without a tolerance
for chance: that holds for every draw.
"""

import math

import numpy as np
import pandas as pd
import pytest

from attacks import DRAWS, HI, LO, SIGMAS, STATISTICS, close, exact, releases
from noisy_answers import with_scale
from pdrisk.risk import exact_identifiability, posterior

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

ROUNDING = 1e-9
EVERY = pytest.mark.parametrize("name", STATISTICS)
PEOPLE = [1.0, 2.0, 2.5, 6.0, 9.0]


def without(records, i):
    return [*records[:i], *records[i + 1 :]]


def evidence(seen, first, second, scale):
    """Log-likelihood ratio of the second world against the first.

    ``|o - first| - |o - second|`` differs in its last bit by world, which would help him more than he deserves.
    """
    gap = second - first
    return np.sign(gap) * np.clip(2 * (seen - first) - gap, -abs(gap), abs(gap)) / scale


def belief(log_odds):
    return 1 / (1 + np.exp(-log_odds))


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

    @pytest.mark.sampled(3)
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

    @pytest.mark.sampled(99)
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

    @pytest.mark.sampled(5)
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

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("name", ["mean", "median", "max", "var1", "count"])
    def test_of_single_releases(self, name):
        """The risk written on a `Release` itself, and its own value, 200 times."""
        method, parameters, *_ = STATISTICS[name]
        other = most_telling_neighbour(name, PEOPLE)
        first, second = exact(name, PEOPLE), exact(name, other)
        held, right = [], []
        for truth, world in enumerate((PEOPLE, other)):
            column = pd.Series(world).dprisk
            for _ in range(100):
                release = getattr(column, method)(**parameters, eps=1.5, bounds=(LO, HI), mechanism="laplace")
                found = evidence(release.value, first, second, release.scale)
                held.append(belief(abs(found)))
                right.append((found > 0) == bool(truth))
                if not truth:
                    claim = release.curator.two_worlds
                    loss = 1.5 * release.curator.local_sensitivity / release.global_sensitivity
                    assert loss == pytest.approx(release.curator.loss)
        assert max(held) == pytest.approx(claim, abs=ROUNDING)
        assert close(np.mean(right), success_rate(loss), len(right))

    @pytest.mark.sampled(9)
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

    @pytest.mark.slow
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
        options = {"bounds": (LO, HI), "by": "g", "keys": range(2 * DRAWS), "mechanism": "laplace"}
        table = with_scale(frame.dprisk.agg({"x": names}, eps=eps, **options))
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

    @pytest.mark.sampled(3)
    @EVERY
    def test_nobody_is_found_more_surely_than_their_row_says(self, name):
        method, parameters, *_ = STATISTICS[name]
        people = pd.DataFrame({"x": [*PEOPLE[:2], math.nan, *PEOPLE[2:], 2.0]})
        known = people["x"].dropna().tolist()
        spec = (method, parameters) if parameters else method
        rows = people.dprisk.individual_risk("x", spec, eps=2.0, bounds=(LO, HI), mechanism="laplace")
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

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("people", GROUPS, ids=str)
    @EVERY
    def test_belief_and_best_guess(self, name, people):
        method, parameters, *_ = STATISTICS[name]
        eps, n, draws = 2.0, len(people), 2000
        spec = (method, parameters) if parameters else method
        options = {"bounds": (LO, HI), "mechanism": "laplace"}
        claim = pd.DataFrame({"x": people}).dprisk.assess("x", [spec], eps, **options).iloc[0]["identifiability"]
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
        options = {"bounds": (-1, 1), "mechanism": "laplace"}
        table = frame.dprisk.mean("x", eps=1, by="g", keys=range(2 * DRAWS), **options)
        own = pd.DataFrame({"x": [-1.0, 1.0]}).dprisk.assess("x", "mean", 1, **options).iloc[0]
        held = belief(np.abs(evidence(table["value"].to_numpy(), 1.0, -1.0, 1.0)))
        assert own["many_worlds"] == pytest.approx(0.7310586, abs=5e-8)
        assert held.max() == pytest.approx(own["identifiability"], abs=ROUNDING)
        assert own["identifiability"] == pytest.approx(0.8807971, abs=5e-8)


@EVERY
def test_the_attacker_knows_the_answers(name):
    """The oracle of these attacks agrees with pdrisk, so that no attack fails for want of knowledge."""
    for records in ([], [3.0], PEOPLE):
        seen, table = releases(name, [records], 1e6, 20)
        assert seen == pytest.approx(exact(name, records), abs=60 * float(table["scale"].iloc[0]))
