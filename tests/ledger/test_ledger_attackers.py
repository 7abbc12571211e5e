"""Attackers who choose each question by the answers before, as `benchmarks/ledger_attackers.py` plays them."""

import sys

import pytest

from paths import BENCHMARKS

LEDGERS = 60_000
TIGHT = {"one count": 0.005, "one Laplace": 0.006}  # how far below the limit they may stay, of 60,000 ledgers


@pytest.fixture(scope="module")
def attackers():
    if not BENCHMARKS.is_dir():
        pytest.skip("benchmarks are not part of this installation")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import ledger_attackers

        yield ledger_attackers
    sys.modules.pop("ledger_attackers")


@pytest.mark.slow
@pytest.mark.parametrize("success", [0.6, 0.75, 0.9])
def test_nobody_is_right_more_often(attackers, success):
    assert len(attackers.STRATEGIES) >= 15
    for seed, name in enumerate(attackers.STRATEGIES):
        right, above = attackers.attacked(name, success, LEDGERS, seed)
        assert above <= 4, name
        assert right >= success - TIGHT.get(name, 1), name


def test_tight(attackers):
    """One answer reaches the limit; the same answer at a tenth less than its price goes beyond it."""
    right, above = attackers.attacked("one count", 0.75, LEDGERS, 1)
    assert abs(above) <= 4 and right == pytest.approx(0.75, abs=0.005)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(attackers.MU, "count", lambda eps: 0.9 * attackers.mu_of_pure(eps))
        assert attackers.attacked("one count", 0.75, LEDGERS, 1)[1] > 4


@pytest.mark.parametrize("name", ["20 equal Laplace", "until sure", "more when sure"])
def test_several_steps(attackers, name):
    """20 equal Laplace answers reach .707, by their exact composition; who stops when he is sure gains nothing."""
    right, above = attackers.attacked(name, 0.75, LEDGERS, 2)
    assert above < 4 and (name != "20 equal Laplace" or right == pytest.approx(0.707, abs=0.008))
