"""``max_noise95=`` refuses before anything is paid, where public facts decide how far the noise reaches."""

import pandas as pd
import pytest

import pdrisk

FRAME = pd.DataFrame({"x": range(100)})


@pytest.mark.parametrize(
    ("ask", "reach"),
    [
        (lambda **o: FRAME.dprisk.sum("x", eps=1, bounds=(0, 100), **o), 299.5733),  # 100 ln 20
        (lambda **o: FRAME.dprisk.count(eps=1, **o), 3),  # 2 e**-4 / (1 + e**-1) < .05 < 2 e**-3 / (1 + e**-1)
        (lambda **o: FRAME.dprisk.count(eps=1, by="x", keys=[1, 2], **o), 3),
    ],
)
def test_decided_beforehand(ask, reach, tmp_path):
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=10)
    assert ask(max_noise95=reach + 1e-3, ledger=ledger) is not None
    with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
        ask(max_noise95=reach - 1e-3, ledger=ledger)
    assert ledger.remaining().spent == 1


def test_what_depends_on_the_number_of_records_cannot_be_judged():
    with pytest.raises(pdrisk.ParameterError, match="depends on how many records"):
        FRAME.dprisk.mean("x", eps=1, bounds=(0, 100), max_noise95=5)
    assert FRAME.dprisk.mean("x", eps=400, bounds=(0, 100), max_noise95=5, mechanism="laplace") is not None


@pytest.mark.parametrize("most", [0, -1, float("nan"), float("inf"), "1", True, [1]])
def test_refusals(most):
    with pytest.raises(pdrisk.PdriskError, match="max_noise95 must be"):
        FRAME.dprisk.count(eps=1, max_noise95=most)
