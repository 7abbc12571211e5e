"""What answers meant for each person in mu: for the curator, never less than the truth."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import tables, version_one
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, mu_of_pure, success_of
from pdrisk._ledger.rules.success_limits import mu_of_losses

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
LAPLACE = {"bounds": (0, 10), "mechanism": "laplace"}
FRAME = pd.DataFrame({"pid": range(6), "x": [0.0, 1, 2.5, 5, 7.5, 10], "half": [0, 0, 0, 1, 1, 1]})


def dataset(path, **limits):
    ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", policy={"curators": ["ann"]}, **limits)
    return pdrisk.Dataset(FRAME, ledger=ledger, person="pid", per_person="one"), ledger


class TestLosses:
    """m of a loss: above the least everywhere, by 1 % at most where losses are usual."""

    def test_upper(self):
        losses = np.concatenate([[0.0], np.geomspace(1e-9, 900, 3001), [600.0, np.nextafter(600, 601)]])
        least = np.array([mu_of_pure(float(loss)) if loss else 0.0 for loss in losses])
        upper, usual = mu_of_losses(losses), losses <= 590
        assert np.all(upper >= least) and np.all(upper[usual] <= 1.01 * least[usual] + 1e-300)


class TestOdometer:
    """The reading of each person, had all eps been fixed beforehand."""

    def test_of_each(self, path):
        data, ledger = dataset(path, eps=20)
        for eps in (0.5, 1.0, 2.0):
            data.sum("x", eps=eps, **LAPLACE)
        table = ledger.odometer(FRAME)
        shares = FRAME["x"].to_numpy() / 10
        squares = sum(np.array([mu_of_laplace(eps * s) ** 2 if s else 0.0 for s in shares]) for eps in (0.5, 1.0, 2.0))
        truth = np.array([success_of(each) for each in squares])
        assert np.all(table["fixed_success"] >= truth - 1e-12)
        assert np.all(table["fixed_success"] <= ledger.remaining().fixed_success + 1e-12)
        assert np.all(table["fixed_success"] <= table["two_worlds"] + 1e-3)
        assert table["fixed_success"].iloc[0] == 0.5 and table["fixed_success"].is_monotonic_increasing

    def test_disjoint_groups_at_the_largest(self, path):
        """Two halves are asked apart: nobody bears both."""
        data, ledger = dataset(path, eps=20)
        data.count(eps=1, where="half == 0")
        data.count(eps=1, where="half == 1")
        table = ledger.odometer(FRAME)
        assert table["fixed_success"].tolist() == pytest.approx([success_of(mu_of_pure(1) ** 2)] * 6, abs=1e-6)
        assert ledger.remaining().fixed_success == pytest.approx(success_of(2 * mu_of_pure(1) ** 2), abs=1e-9)

    def test_old_ledgers(self, path):
        """They kept sums of losses alone: those of one answer, at worst."""
        data, ledger = dataset(path, eps=20)
        data.sum("x", eps=1, **LAPLACE)
        data.sum("x", eps=1, **LAPLACE, where="x < 20")
        before = ledger.odometer(FRAME)["fixed_success"]
        tables(path, "UPDATE curator_people SET mu2 = NULL")
        after = ledger.odometer(FRAME)["fixed_success"]
        assert np.all(after >= before) and np.all(after <= ledger.remaining().fixed_success + 1e-12)
        ledger.close()
        version_one(path)
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann")
        said = ledger.odometer(FRAME)["fixed_success"].tolist()
        assert said == pytest.approx([ledger.remaining().fixed_success] * 6, abs=1e-9)


def test_facts(path):
    """Of each answer the most exposed person's mu, which is not above what was paid."""
    data, ledger = dataset(path, eps=20)
    ledger.amend(policy={"curators": ["ann"], "curator_facts": True})
    data.sum("x", eps=1, **LAPLACE)
    data.sum("x", eps=1, **LAPLACE, where="x < 3")
    data.count(eps=1)
    facts, history = ledger.facts(), ledger.history()
    paid = history.loc[history["event"] == "paid", "mu"].to_numpy()
    truth = np.array([mu_of_laplace(1), mu_of_laplace(0.25), mu_of_pure(1)])
    assert np.all(facts["mu"] >= truth * (1 - 1e-12)) and np.all(facts["mu"] <= paid * (1 + 1e-9))
    assert facts["fixed_success"].iloc[-1] == pytest.approx(success_of(float((facts["mu"] ** 2).sum())), abs=1e-9)
    assert facts["fixed_success"].iloc[0] == pytest.approx(success_of(mu_of_laplace(1) ** 2), abs=1e-3)
