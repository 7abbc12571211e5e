"""An attacker of counts, whole sums, means and variances by the accurate mechanisms, who sees all that was drawn.

He is never right more often than ``release.risk.success`` says, and reaches it; his belief never exceeds
``worst_case``. A mean's value and interval are made of its two noisy sums, so who sees these sees all there is.
"""

import math

import numpy as np
import pandas as pd
import pytest

from attacks import DRAWS, HI, LO, SIGMAS, close, watch
from pdrisk._core.lattice import PLACES
from pdrisk.risk import exact_identifiability, posterior

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

ROUNDING = 1e-9
FEW = 5_000  # draws where the tolerance follows them
PEOPLE = [1.0, 2.0, 2.5, 6.0, 9.0]
WIDTH = HI - LO


def whole(records):
    return sum(math.floor(x + 0.5) for x in records)


def places(records):
    """The sums of distances from both bounds, in steps that two_sums counts in."""
    above = sum(math.floor(x / WIDTH * PLACES + 0.5) for x in records)
    return np.array([above, len(records) * PLACES - above])


def shares(records):
    """The three sums that bernstein counts in: of (1 - w)**2, 2 w (1 - w) and w**2, in whole numbers."""
    each = [math.floor(x / WIDTH * PLACES + 0.5) for x in records]
    first, last = (sum(k * k // PLACES for k in ks) for ks in ([PLACES - k for k in each], each))
    return np.array([first, len(each) * PLACES - first - last, last])


# question: method, its options, the exact whole numbers that are hidden, their largest change
QUESTIONS = {
    "count": ("count", {}, lambda records: np.array([len(records)]), 1),
    "nunique": ("nunique", {}, lambda records: np.array([len(set(records))]), 1),
    "sum of even bounds": ("sum", {"bounds": (LO, HI), "step": 1}, lambda records: np.array([whole(records)]), 10),
    "sum of odd bounds": ("sum", {"bounds": (LO, 9), "step": 1}, lambda records: np.array([whole(records)]), 9),
    "mean": ("mean", {"bounds": (LO, HI)}, places, PLACES),
    "var": ("var", {"bounds": (LO, HI)}, shares, PLACES),
}
# One record more that moves the answer most: how often the attacker is right is the claim itself.
WORST = {"count": 3.0, "nunique": 3.0, "sum of even bounds": 10.0, "sum of odd bounds": 9.0, "mean": HI, "var": HI}
EVERY = pytest.mark.parametrize("question", QUESTIONS)


def frame_of(worlds, draws):
    """Every group is a copy of a world, ``draws`` of each one after another."""
    size = [len(world) for world in worlds for _ in range(draws)]
    records = np.concatenate([np.tile(np.asarray(world, dtype=float), draws) for world in worlds])
    return pd.DataFrame({"g": np.repeat(np.arange(len(size)), size), "x": records})


def drawn(monkeypatch, question, worlds, eps, draws=DRAWS):
    """What was drawn for real answers about each world, shape (k, worlds, draws), and these answers."""
    method, options, *_ = QUESTIONS[question]
    seen = watch(monkeypatch)
    keys = range(len(worlds) * draws)
    table = getattr(frame_of(worlds, draws).dprisk, method)("x", eps=eps, by="g", keys=keys, **options)
    (noisy,) = seen
    return np.atleast_2d(noisy).reshape(-1, len(worlds), draws), table


def log_likelihoods(question, worlds, seen, eps):
    """Of each world, up to a common constant: the noise is two-sided geometric, so distances count. Last axis: worlds.

    As whole numbers, before the scale: what is equally far from two worlds is exactly so.
    """
    *_, exact, change = QUESTIONS[question]
    apart = [np.abs(seen - exact(world)[:, np.newaxis, np.newaxis]).sum(axis=0) for world in worlds]
    return -np.stack(apart, axis=-1) * (eps / change)


def belief(log_odds):
    return 1 / (1 + np.exp(-log_odds))


def attack(monkeypatch, question, worlds, eps, draws=DRAWS):
    """Log-likelihood ratios of the second world against the first, for draws of both, and how often the guess is right.

    Undecided, the attacker tosses a coin.
    """
    seen, table = drawn(monkeypatch, question, worlds, eps, draws)
    likely = log_likelihoods(question, worlds, seen, eps)
    found = likely[..., 1] - likely[..., 0]
    found[np.abs(found) < ROUNDING] = 0
    right = np.where(found == 0, 0.5, (found > 0) == np.array([[False], [True]]))
    return found, right, table


def release_of(question, records, eps):
    method, options, *_ = QUESTIONS[question]
    return getattr(pd.DataFrame({"x": records}, dtype=float).dprisk, method)("x", eps=eps, **options)


class TestTwoWorlds:
    """Someone who knows everything but whether one record is there."""

    @pytest.mark.sampled(5)
    @EVERY
    @pytest.mark.parametrize("eps", [0.1, 1.0, 2.0])
    def test_the_worst_record_reaches_the_claims(self, monkeypatch, question, eps):
        found, right, _ = attack(monkeypatch, question, [PEOPLE, [*PEOPLE, WORST[question]]], eps, FEW)
        risk = release_of(question, PEOPLE, eps).risk
        assert close(right.mean(), risk.success, right.size)
        held = belief(np.abs(found))
        assert risk.worst_case == pytest.approx(float(posterior(eps)), abs=ROUNDING)
        assert held.max() == pytest.approx(risk.worst_case, abs=ROUNDING)  # reached, and never exceeded
        assert risk.success <= risk.worst_case + ROUNDING

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("records", [[], [HI], [LO, HI]], ids=str)
    @EVERY
    def test_of_few_records(self, monkeypatch, question, records):
        """Nobody is so alone that more is learnt: the claims hold in the empty set too."""
        found, right, _ = attack(monkeypatch, question, [records, [*records, WORST[question]]], 1.0, 4000)
        risk = release_of(question, records, 1.0).risk
        assert belief(np.abs(found)).max() <= risk.worst_case + ROUNDING
        assert right.mean() <= risk.success + SIGMAS * 0.5 / math.sqrt(right.size)

    @pytest.mark.parametrize(("record", "success"), [(LO, 0.6967), (2.5, None), (5.0, 0.6209), (HI, 0.6967)])
    def test_of_a_mean_everybody_bears_the_same_loss(self, monkeypatch, record, success):
        """At the middle of the bounds two sums move by half each: the attacker is right less often, and as sure."""
        found, right, _ = attack(monkeypatch, "mean", [PEOPLE, [*PEOPLE, record]], 1.0, FEW)
        risk = release_of("mean", [*PEOPLE, record], 1.0).risk
        assert belief(np.abs(found)).max() == pytest.approx(risk.worst_case, abs=1e-8)
        assert right.mean() <= risk.success + SIGMAS * 0.5 / math.sqrt(right.size)
        if success is not None:  # MECHANISMS.md, at eps 1
            assert right.mean() == pytest.approx(success, abs=5e-5 + SIGMAS * 0.5 / math.sqrt(right.size))
        assert belief(np.abs(found)).mean() == pytest.approx(right.mean(), abs=SIGMAS * 0.5 / math.sqrt(right.size))

    @pytest.mark.slow
    def test_less_noise_than_was_paid_is_caught(self, monkeypatch):
        """Half the noise: he is right as after eps = 2, far above what is said for 1."""
        for question, record in WORST.items():
            _, right, _ = attack(monkeypatch, question, [PEOPLE, [*PEOPLE, record]], 2.0, FEW)
            assert right.mean() > release_of(question, PEOPLE, 1.0).risk.success + SIGMAS / math.sqrt(right.size)
            monkeypatch.undo()

    @pytest.mark.sampled(3)
    @EVERY
    def test_each_person_of_the_data(self, monkeypatch, question):
        """`individual_risk` is the belief that the attacker can reach in this very person."""
        method, options, *_ = QUESTIONS[question]
        people, eps = [*PEOPLE[:4], 9.0, 2.0], 2.0
        bounds = {"bounds": options["bounds"]} if "bounds" in options else {}
        mechanism = release_of(question, people, eps).mechanism
        if "step" in options:  # a schema's whole numbers, or step=1, decide the mechanism of a sum
            claims = [float(posterior(eps * math.floor(x + 0.5) / QUESTIONS[question][-1])) for x in people]
        else:
            rows = pd.DataFrame({"x": people}).dprisk.individual_risk("x", method, eps=eps, **bounds)
            claims = rows.tolist()
        worlds = [people, *([*people[:i], *people[i + 1 :]] for i in range(len(people)))]
        seen, _ = drawn(monkeypatch, question, worlds, eps, 2000)
        for i, claim in enumerate(claims, 1):
            pair = [worlds[0], worlds[i]]
            likely = log_likelihoods(question, pair, seen[:, [0, i]], eps)
            held = belief(np.abs(likely[..., 1] - likely[..., 0]))
            assert held.max() == pytest.approx(claim, abs=1e-8), (mechanism, people[i - 1])

    def test_several_answers_add_up(self, monkeypatch):
        """A mean and a count, half of eps each: of a record at a bound the losses add to eps."""
        eps, worlds = 2.0, [PEOPLE, [*PEOPLE, HI]]
        seen = watch(monkeypatch)
        options = {"by": "g", "keys": range(2 * FEW), "bounds": (LO, HI)}
        frame = frame_of(worlds, FEW)
        frame.dprisk.mean("x", eps=eps / 2, **options)
        frame.dprisk.count("x", eps=eps / 2, **options | {"bounds": None})
        found = 0.0
        for question, noisy in zip(("mean", "count"), seen, strict=True):
            shaped = np.atleast_2d(noisy).reshape(-1, 2, FEW)
            likely = log_likelihoods(question, worlds, shaped, eps / 2)
            found = found + likely[..., 1] - likely[..., 0]
        held = belief(np.abs(found))
        assert held.max() == pytest.approx(float(posterior(eps)), abs=ROUNDING)
        right = np.where(np.abs(found) < ROUNDING, 0.5, (found > 0) == np.array([[False], [True]]))
        assert close(right.mean(), held.mean(), right.size)  # a belief is right as often as it says

    @pytest.mark.parametrize(("others", "question"), [([], "mean"), (["std"], "var")])
    def test_one_release_of_several_statistics_costs_eps_once(self, others, question, monkeypatch):
        """All that is shown of them is made of one draw, of which an attacker learns eps and no more."""
        eps, worlds = 1.0, [PEOPLE, [*PEOPLE, HI]]
        seen = watch(monkeypatch)
        options = {"by": "g", "keys": range(2 * FEW), "bounds": (LO, HI)}
        table = frame_of(worlds, FEW).dprisk.agg({"x": ["count", "sum", "mean", *others]}, eps=eps, **options)
        assert (table["eps"] == eps).all() and (table["release"] == 1).all() and len(seen) == 1
        shaped = seen[0].reshape(-1, 2, FEW)
        likely = log_likelihoods(question, worlds, shaped, eps)
        assert np.abs(likely[..., 1] - likely[..., 0]).max() <= eps + ROUNDING
        # Each answer is a function of what was drawn, which each line of a release sees alike.
        again = table["value"].unstack("statistic")
        n = shaped.reshape(len(shaped), -1).sum(axis=0) / PLACES
        np.testing.assert_array_equal(again["count"], np.rint(n).clip(0))


class TestTheAnswer:
    """What is published is made of what was drawn, and of nothing else."""

    def test_of_a_mean(self, monkeypatch):
        seen, table = drawn(monkeypatch, "mean", [PEOPLE, []], 1.0, 3000)
        above, below = seen.astype(float).reshape(2, -1)
        share = np.where(above + below > 0, above / np.where(above + below == 0, 1, above + below), 0.5)
        np.testing.assert_allclose(table["value"], LO + WIDTH * np.clip(share, 0, 1), rtol=1e-12)
        assert (table["low"] <= table["high"]).all()
        assert table["low"].min() >= LO and table["high"].max() <= HI

    @pytest.mark.parametrize("question", ["count", "nunique", "sum of even bounds"])
    def test_of_whole_numbers(self, monkeypatch, question):
        seen, table = drawn(monkeypatch, question, [PEOPLE, []], 1.0, 3000)
        assert table["value"].tolist() == np.maximum(seen.ravel(), 0).tolist()
        assert table["value"].dtype == np.int64


class TestManyWorlds:
    """One of n people is missing and each is as likely: the attacker knows all values and asks who."""

    GROUPS = ([1.0, 2.0, 2.5, 6.0, 9.0], [0.0, 10.0], [4.0, 4.0, 4.0, 10.0], [0.0, 0.0, 5.0, 10.0, 10.0, 3.0])

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("question", ["count", "nunique", "mean", "var"])
    @pytest.mark.parametrize("people", GROUPS, ids=str)
    def test_belief_and_best_guess(self, monkeypatch, people, question):
        method, options, exact, change = QUESTIONS[question]
        eps, n, draws = 2.0, len(people), 2000
        bounds = {"bounds": (LO, HI)} if "bounds" in options else {}
        column = pd.DataFrame({"x": people}).dprisk
        claim = column.assess("x", [method], eps, **bounds).iloc[0]["identifiability"]
        largest = column.identifiability("x", method, eps=eps, **bounds).exact
        worlds = [[*people[:i], *people[i + 1 :]] for i in range(n)]
        seen, _ = drawn(monkeypatch, question, worlds, eps, draws)
        likely = log_likelihoods(question, worlds, seen, eps)
        held = np.exp(likely - likely.max(axis=-1, keepdims=True))
        held /= held.sum(axis=-1, keepdims=True)
        assert held.max() <= largest + 1e-8  # records are rounded to places of 2**-30 of the bounds
        assert largest <= claim + ROUNDING
        assert claim <= float(posterior(2 * eps, 1 / n)) + ROUNDING
        # Reached where the draw is a world's own numbers: a belief as far away is off by twice that in scales.
        own = max(range(n), key=lambda i: held[..., i].max())
        at = np.abs(seen - exact(worlds[own])[:, np.newaxis, np.newaxis]).sum(axis=0).min() * eps / change
        # Missed with (1 - .017)**2000 = 1e-15: two Laplace variables within .2 of their own centre; three within .5
        # with (1 - .014)**2000 = 1e-12.
        assert at < (0.5 if question == "var" else 0.2)
        assert held.max() >= largest - 2 * at
        # A belief is right as often as it says: it is the best attack.
        best = held.max(axis=-1)
        truth = np.arange(n)[:, np.newaxis]
        ties = np.isclose(held, best[..., np.newaxis], atol=1e-12)
        hit = np.where(np.take_along_axis(ties, truth[..., np.newaxis], axis=-1)[..., 0], 1 / ties.sum(axis=-1), 0.0)
        assert abs(hit.mean() - best.mean()) <= SIGMAS * 0.5 / math.sqrt(draws * n)
        assert best.mean() <= largest + ROUNDING

    def test_two_people_at_the_bounds(self, monkeypatch):
        """The claim itself is reached: the worlds are as far apart as worlds of a mean can be, 2 eps."""
        eps = 1.0
        seen, _ = drawn(monkeypatch, "mean", [[HI], [LO]], eps)
        likely = log_likelihoods("mean", [[HI], [LO]], seen, eps)
        held = belief(np.abs(likely[..., 1] - likely[..., 0]))
        people = pd.DataFrame({"x": [LO, HI]})
        release = people.dprisk.mean("x", eps=eps, bounds=(LO, HI))
        assert held.max() == pytest.approx(release.curator.identifiability, abs=ROUNDING)
        assert release.curator.identifiability == pytest.approx(float(posterior(2 * eps)), abs=ROUNDING)
        assert release.curator.identifiability == pytest.approx(0.8807971, abs=5e-8)
        assert release.curator.two_worlds == pytest.approx(release.risk.worst_case, abs=ROUNDING)

    def test_the_formula_of_given_worlds_is_that_of_two_sums(self):
        """Worlds stand on a line, as the records do, on a scale of R / 2 eps."""
        people = [1.0, 2.0, 2.5, 6.0, 9.0]
        found = pd.DataFrame({"x": people}).dprisk.identifiability("x", eps=3, bounds=(LO, HI))
        assert found.exact == pytest.approx(exact_identifiability(people, WIDTH / 6), rel=1e-8)
