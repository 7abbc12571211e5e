"""Noisy answers as the owner lets them be shown."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import typed
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def people():
    return typed(pd.DataFrame({"age": [30, 41, 52, 63, 40] * 20, "sex": ["f", "m"] * 50}))


@pytest.fixture
def ledger(tmp_path):
    rules = {"round_to": {"count": 5, "mean": 0.25}}
    return pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1000, policy=rules)


def multiples(values, base):
    return np.allclose(np.asarray(values, dtype=float) % base, 0)


class TestRounding:
    """Whatever way an answer comes, it is a multiple of its base; what is not listed stays as it is."""

    def test_one_value(self, ledger):
        with ledger:
            assert all(multiples(people().dprisk.count(eps=0.1).value, 5) for _ in range(20))
            assert all(multiples(people().dprisk.mean("age", eps=9, bounds=(0, 99)).value, 0.25) for _ in range(20))
            assert not all(multiples(people().dprisk.sum("age", eps=1, bounds=(0, 99)).value, 0.25) for _ in range(20))
        assert not all(multiples(people().dprisk.count(eps=0.1).value, 5) for _ in range(20))

    def test_tables(self, ledger):
        with ledger:
            assert multiples(people().dprisk.count(eps=1, by="sex", keys=list("fmx"))["value"], 5)
            table = people().dprisk.agg({"age": ["count", "mean", "sum"]}, eps=9, bounds=(0, 99))
        assert multiples(table.loc[("age", "count"), "value"], 5)
        assert multiples(table.loc[("age", "mean"), "value"], 0.25)
        assert not multiples(table.loc[("age", "sum"), "value"], 0.25)

    def test_sql_computes_with_what_is_shown(self, ledger):
        query = "SELECT count(*) AS n, count(*) / 5 AS fifth FROM people"
        answer = pdrisk.sql(query, eps=1, ledger=ledger, people=people())
        assert multiples(answer["n"], 5) and multiples(answer["fifth"], 1)

    @pytest.mark.parametrize(("people_more", "ends"), [(0, (95, 105)), (2, (100, 105)), (-2, (95, 100))])
    @pytest.mark.parametrize("mechanism", ["laplace", "geometric"])
    def test_intervals(self, ledger, noiseless, mechanism, people_more, ends):
        """They reach what was rounded, and do not show it: their ends are multiples too."""
        frame = people().sample(100 + people_more, replace=True, random_state=1)
        release = frame.dprisk.count(eps=100, mechanism=mechanism, ledger=ledger)
        assert release.value == 100 and release.interval() == (release.low, release.high)
        reach = 0.03 if mechanism == "laplace" else 0
        expected = (100, 100) if not reach and not people_more else ends
        assert release.interval() == expected

    def test_is_told(self, ledger, noiseless):
        release = people().dprisk.count(eps=100, mechanism="laplace", ledger=ledger)
        assert release.public()["rounded_to"] == 5 and release.to_dict(curator=True)["rounded_to"] == 5
        assert "multiples of 5" in repr(release) and "multiples of 5" in release._repr_html_()
        for audience in ("analyst", "publication"):
            assert "95 % interval 95 to 105" in release.explain(audience)
        exact = people().dprisk.count(eps=100)
        assert "rounded_to" not in exact.public() | exact.to_dict(curator=True) and "multiples" not in repr(exact)

    def test_is_told_of_tables(self, ledger, noiseless):
        by = people().dprisk.count(eps=100, by="sex", keys=["f"], mechanism="laplace", ledger=ledger)
        options = {"bounds": (0, 99), "mechanism": "laplace", "ledger": ledger}
        agg = people().dprisk.agg({"age": ["mean", "count", "max"]}, eps=300, **options)
        sql = pdrisk.sql("SELECT COUNT(*), MAX(age) FROM p", eps=200, p=people(), **options)
        told = [[line.rounded_to for line in Answer.from_attrs(table.attrs).lines] for table in (by, agg, sql)]
        assert told == [[5], [0.25, 5, None], [5, None]]
        for table in (by, agg, sql):
            assert "with noise: ±5" in pdrisk.explain(table, "analyst")

    def test_to_the_nearest(self, ledger):
        assert people().dprisk.count(eps=1e2, ledger=ledger, where="sex == 'f' and age > 40").value == 30

    def test_a_rule_of_the_ledger(self, ledger):
        again = pdrisk.Ledger(ledger._store._path, dataset="people", policy={"round_to": {"mean": 0.25, "count": 5.0}})
        assert again.verify()[0] == 1
        again.amend(policy={})
        assert not all(multiples(people().dprisk.count(eps=0.1, ledger=ledger).value, 5) for _ in range(20))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (5, "must be a dict"),
        ({"cuont": 5}, "unknown statistic 'cuont'"),
        ({"count": 0}, "above 0"),
        ({"count": -5}, "above 0"),
        ({"count": float("nan")}, "above 0"),
        ({"count": float("inf")}, "finite"),
        ({"count": "5"}, "must be a number"),
        ({"count": True}, "must be a number"),
    ],
)
def test_wrong_bases(tmp_path, rule, problem):
    with pytest.raises(pdrisk.ParameterError, match=problem):
        pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1, policy={"round_to": rule})
    assert not (tmp_path / "budget.db").exists()
