"""The attack on a whole ledger: it reaches what theory says of the very questions, and never passes a limit."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import pdrisk
from pdrisk import attack

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
FRAME = pd.DataFrame({"x": np.arange(600) % 100, "g": np.arange(600) % 4, "pid": np.arange(600) // 2})


@pytest.fixture
def asked(book):
    def asked(*questions, **limits):
        ledger = book(**({"eps": None, "success": 0.9} | limits))
        for ask in questions:
            ask(FRAME.dprisk, ledger)
        return ledger

    return asked


def count(eps, **options):
    return lambda data, ledger: data.count(eps=eps, ledger=ledger, **options)


def of(name, eps, **options):
    return lambda data, ledger: getattr(data, name)("x", eps=eps, bounds=(0, 100), ledger=ledger, **options)


def majority(eps, number):
    """How often the majority of so many coins is right, each right with e**eps / (1 + e**eps); ties by one more."""
    odd = number - 1 + number % 2
    right = math.exp(eps) / (1 + math.exp(eps))
    return float(binom.sf(odd // 2, odd, right))


class TestTheory:
    """Numbers that other ways of computing give."""

    @pytest.mark.parametrize(("eps", "number"), [(0.3, 1), (0.3, 12), (0.24, 20)])
    def test_counts_are_coins(self, asked, eps, number):
        """A count reveals one coin; SUCCESS.md: twenty at .316 reach what their composed curve says."""
        found = attack.ledger(asked(*[count(eps)] * number))
        assert found.low <= majority(eps, number) <= found.high
        assert found.details["answers"] == number and found.details["left out"] == 0

    def test_twenty_laplace_answers(self, asked):
        """SUCCESS.md: at .75, twenty equal ones reach .707."""
        found = attack.ledger(asked(*[of("sum", 0.255, mechanism="laplace")] * 20, success=0.75), trials=20_000)
        assert found.low <= 0.707 + 0.0005 and found.high >= 0.707 - 0.0005
        assert (found.claimed, found.verdict) == (0.75, "kept")

    def test_one_count_uses_the_limit_up(self, asked):
        eps = math.floor(1e6 * math.log(0.75 / 0.25)) / 1e6
        found = attack.ledger(asked(count(eps), success=0.75), trials=40_000)
        assert found.verdict == "reached"

    def test_rows_and_groups_of_a_person(self, asked):
        """Of three rows the noise is three times as wide, and the person moves the number by three: no less is told."""
        rows = attack.ledger(asked(count(0.8, person="pid", rows=3)), trials=40_000)
        theory = 1 - math.exp(-0.4) / (2 * math.cosh(0.4 / 3))  # SUCCESS.md, geometric with odd d
        assert rows.low <= theory <= rows.high

    def test_rows_of_a_person_in_listed_groups(self, asked):
        """Two groups of which one row each moves the largest value across its range, at half of eps each."""
        how = {"by": "g", "keys": [0, 1], "person": "pid", "rows": 3, "mechanism": "laplace"}
        found = attack.ledger(asked(of("max", 2, **how)), trials=40_000)
        moved = np.random.default_rng(1).laplace(size=(2, 2, 200_000)) + np.array([0.5, -0.5]).reshape(2, 1, 1)
        odds = np.clip(moved, -0.5, 0.5).sum(axis=1)  # half of the log-likelihood ratio of either world
        theory = ((odds[0] > 0).mean() + (odds[1] < 0).mean() + (odds == 0).mean()) / 2
        assert found.low - 0.003 <= theory <= found.high + 0.003
        assert found.details["worst_case"] == pytest.approx(1 / (1 + math.exp(-2)))

    def test_groups_of_a_person(self, asked):
        three = count(1.2, by="g", keys=[0, 1, 2, 3], person="pid", rows=1, groups=3)
        found = attack.ledger(asked(three), trials=40_000)
        assert majority(0.4, 1) < found.low <= majority(0.4, 3) <= found.high


class TestMechanisms:
    """Whatever was asked, the limit and what fixed questions allow are kept."""

    def test_a_mixture(self, asked):
        ledger = asked(
            count(0.2),
            of("sum", 0.2, step=1),
            of("sum", 0.2, mechanism="laplace"),
            of("mean", 0.2),
            of("std", 0.2),
            of("median", 0.2),
            of("median", 0.2, interval=True),
            lambda data, ledger: data.agg({"x": ["mean", "count"]}, eps=0.2, bounds=(0, 100), ledger=ledger),
            lambda data, ledger: data.hist("x", bins=[0, 50, 100], eps=0.2, ledger=ledger),
            success=0.75,
        )
        found = attack.ledger(ledger, trials=4000)
        assert (found.details["answers"], found.details["left out"], found.verdict) == (9, 0, "kept")
        assert 0.58 < found.achieved < found.details["if fixed"] < 0.75
        assert found.details["highest belief"] <= found.details["worst_case"] + 1e-9

    def test_what_cannot_be_told_is_left_out(self, asked):
        quantiles = ["quantile(0.1)", "quantile(0.5)", "quantile(0.9)", "quantile(0.95)"]
        ledger = asked(
            count(0.2), lambda data, ledger: data.agg({"x": quantiles}, eps=0.2, bounds=(0, 100), ledger=ledger)
        )
        assert {**attack.ledger(ledger).details}["left out"] == 1
        assert "left out            1" in repr(attack.ledger(ledger))

    def test_a_look_at_the_number_of_people_tells_too(self, asked):
        ledger = asked(count(0.2), policy={"least_group": {"size": 5, "eps": 0.6}})
        found = attack.ledger(ledger, trials=40_000)
        both = ndtr(math.sqrt(sum((2 * -_z(1 / (1 + math.exp(eps)))) ** 2 for eps in (0.2, 0.6))) / 2)
        assert found.details["answers"] == 2 and found.low < majority(0.6, 1) < found.high and found.achieved < both

    def test_remembered_answers_tell_nothing_and_failed_ones_as_much_as_others(self, book):
        """That one failed is the curator's to know: the outcome that may be published must not tell it."""
        ledger = book(eps=None, success=0.9, policy={"curators": ["ann"]})
        data = pdrisk.Dataset(FRAME, ledger=ledger, version="1")
        for _ in range(3):
            data.count(eps=0.2)
        with pytest.raises(pdrisk.QueryFailedError):
            FRAME.dprisk.count(eps=0.4, where=lambda row: row["x"] / 0 > "", ledger=ledger)
        assert ledger.history()["event"].tolist().count("paid") == 2
        found = attack.ledger(ledger, trials=20_000)
        assert found.details["answers"] == 2 and found.low <= majority(0.4, 1) <= found.high
        assert attack.ledger(ledger, FRAME, 3).details["answers"] == 1


class TestClaims:
    """What is printed beside the attacker's success."""

    def test_limits(self, asked):
        assert attack.ledger(asked(count(0.2), eps=1, success=None)).claimed == pytest.approx(0.7310586)

    def test_no_limit_claims_nothing(self, asked):
        found = attack.ledger(asked(count(0.2), success=None, queries=9))
        assert (found.claimed, found.verdict) == (None, "unprotected")
        assert found.details["if fixed"] == pytest.approx(math.exp(0.2) / (1 + math.exp(0.2)), abs=1e-9)

    def test_more_than_is_claimed_is_seen(self, asked, monkeypatch):
        """A ledger whose answers had half the noise that they paid for."""
        ledger = asked(*[count(0.3)] * 15, success=0.8)
        mechanism = attack._ledger._mechanism

        def careless(labels, eps, *others):
            return mechanism(labels, 2 * eps, *others)

        monkeypatch.setattr("pdrisk.attack._ledger._mechanism", careless)
        assert attack.ledger(ledger).verdict == "broken"

    def test_nothing_to_attack(self, book):
        with pytest.raises(pdrisk.ParameterError, match="nothing was paid"):
            attack.ledger(book())
        with pytest.raises(pdrisk.ColumnTypeError, match="takes a Ledger, not int"):
            attack.ledger(3)


class TestData:
    """Of given data, whose curator alone may ask."""

    def test_a_person_with_a_middle_value_is_safer(self, asked):
        ledger = asked(*[of("sum", 0.4, mechanism="laplace")] * 8, policy={"curators": ["ann"]})
        found = [attack.ledger(ledger, FRAME, at, trials=4000).achieved for at in (99, 50, 0)]
        assert found[0] > found[1] + 0.05 > found[2] and abs(found[2] - 0.5) < 0.03  # values 99, 50 and 0
        assert found[0] == pytest.approx(attack.ledger(ledger, trials=4000).achieved, abs=0.04)

    def test_filters_and_groups(self, asked):
        ledger = asked(count(1, where="x > 50"), count(1, by="g", keys=[0, 1, 2, 3]), policy={"curators": ["ann"]})
        inside, outside = (attack.ledger(ledger, FRAME, at, trials=20_000) for at in (60, 10))
        assert inside.low <= majority(1, 2) <= inside.high and outside.low <= majority(1, 1) <= outside.high
        twice = attack.ledger(asked_again(ledger), FRAME, 10, trials=20_000)
        assert twice.achieved > outside.achieved

    def test_people_of_several_columns(self, asked):
        """Nobody has more than one row, though noise is drawn for three."""
        ledger = asked(count(1.5, person=["pid", "g"], rows=3), policy={"curators": ["ann"]})
        told = attack.ledger(ledger, FRAME, 7, trials=20_000)
        assert told.achieved == pytest.approx(majority(0.5, 1), abs=0.03)

    @pytest.mark.parametrize("dtype", ["Int64", "string", "category", "float64"])
    def test_people_whose_ids_may_be_missing(self, book, dtype):
        frame = FRAME.assign(pid=FRAME["pid"].mask(FRAME["pid"] == 7).astype("Int64").astype(dtype))
        ledger = book(eps=None, success=0.9, policy={"curators": ["ann"]})
        frame.dprisk.count(eps=1.5, person=["g", "pid"], rows=3, ledger=ledger)
        told = attack.ledger(ledger, frame, 9, trials=20_000)
        assert told.achieved == pytest.approx(majority(0.5, 1), abs=0.03)

    def test_curators_only(self, asked):
        with pytest.raises(pdrisk.PolicyError):
            attack.ledger(asked(count(1)), FRAME, 3)

    def test_a_person_and_records(self, asked):
        with pytest.raises(pdrisk.ParameterError, match="pass both, or neither"):
            attack.ledger(asked(count(1)), FRAME)


def asked_again(ledger):
    for _ in range(2):
        FRAME.dprisk.count(eps=1, ledger=ledger)
    return ledger


def _z(tail):
    from scipy.special import ndtri

    return float(ndtri(tail))
