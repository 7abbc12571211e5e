"""The condition of a proportion is judged and told like a filter: it is one."""

import json

import pandas as pd
import pytest

import pdrisk

FRAME = pd.DataFrame({"age": [20, 41, 63, -1] * 500})


def test_a_value_of_the_caller_is_his_word_and_not_shown(tmp_path):
    limit = 4321  # noqa: F841 - the condition names it
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=9)
    release = FRAME.dprisk.proportion("age > @limit", eps=1, ledger=ledger)
    assert release.where_trusted
    assert "4321" not in json.dumps(ledger.history().astype(str).to_dict()) + repr(release)
    assert not FRAME.dprisk.proportion("age > 40", eps=1).where_trusted


def test_other_values_of_the_caller_are_other_questions(tmp_path):
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=9)
    d = pdrisk.Dataset(FRAME, ledger=ledger)
    shares = [d.proportion("age > @limit", eps=1) for limit in (0, 50)]
    assert shares[0].value > 0.6 > 0.4 > shares[1].value
    assert ledger.remaining().spent == 2


def test_missing_codes_are_refused_in_it():
    known = FRAME.dprisk.declare(missing={"age": [-1]})
    with pytest.raises(pdrisk.ParameterError, match="missing answer"):
        known.dprisk.proportion("age == -1", eps=1)


@pytest.mark.parametrize("dtype", ["object", "category", "string"])
def test_of_text(dtype):
    """Records of which it is not known are left out."""
    people = pd.DataFrame({"sex": pd.Series(["f", "m", None, "f"] * 500, dtype=dtype)})
    for condition, share in {
        "sex == 'f'": 2 / 3, "sex in ['m', 'x']": 1 / 3, "sex != 'f'": 1 / 3, "not sex == 'f'": 1 / 3,
        "sex == 'f' and not sex.isna()": 1 / 2, "sex.isna()": 1 / 4, "sex == 'f' or sex.isna()": 3 / 4,
    }.items():  # fmt: skip
        release = people.dprisk.proportion(condition, eps=50)
        assert release.value == pytest.approx(share, abs=0.01), condition
        assert release.curator.n == (2000 if "isna" in condition else 1500)


def test_it_needs_no_bounds():
    with pytest.raises(pdrisk.ParameterError, match="no bounds"):
        FRAME.dprisk.proportion("age > 40", eps=1, bounds=(0, 5))
