"""A ledger that the first edition wrote: whole, with its sums, its remembered answers and its losses."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import pdrisk
from paths import GOLDEN
from pdrisk._ledger.accounts.account import Account
from sql_people import BOUNDS, PEOPLE, REGIONS

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

WRITTEN = json.loads((GOLDEN / "ledger_first_edition.json").read_text(encoding="utf-8"))
HEAD = tuple(WRITTEN["head"])
AGES = {"age": (18, 90)}
QUERY = "SELECT region, AVG(age) AS a, COUNT(*) AS c FROM people WHERE age > 30 GROUP BY region"
ONE = {"mechanism": "laplace"}
ASKS = {
    "mean": lambda d: d.mean("distance", eps=1, bounds=(1, 675), **ONE).value,
    "count where": lambda d: d.count(eps=0.1, where="age > 40 and region == 'north'", **ONE).value,
    "sum by region": lambda d: d.sum("age", eps=0.5, bounds=(18, 90), by="region", keys=REGIONS, **ONE)["value"],
    "agg": lambda d: d.agg(
        {"age": ["median", ("quantile", {"q": 0.9})], "distance": ["var"]}, eps=2,
        bounds=AGES | {"distance": (1, 675)}, **ONE,
    )["value"],
}  # fmt: skip


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A copy of the file, under the secret that it was written with."""
    monkeypatch.setenv("PDRISK_SECRET", "the secret of the fixture")
    return shutil.copy(GOLDEN / "ledger_first_edition.db", tmp_path / "first.db")


@pytest.fixture
def ledger(path):
    return pdrisk.Ledger(path, dataset="people", analyst="anna", head=HEAD)


def dataset(ledger, data=PEOPLE, **said):
    return pdrisk.Dataset(data, name="people", ledger=ledger, version="2026", **said)


class TestTheFile:
    """Nothing of it is changed by being opened, and it says what it said."""

    def test_records(self, ledger):
        """Up to the head that was noted down, and one question that was asked again after that."""
        assert ledger.verify(HEAD)[0] == HEAD[0] + 1
        assert ledger.history()["event"].tolist() == [*WRITTEN["events"], "remembered"]

    def test_sums(self, ledger):
        assert ledger.remaining().spent == WRITTEN["spent"] == WRITTEN["total"]

    def test_a_dataset_of_the_same_data_writes_nothing(self, ledger):
        before = ledger.verify(HEAD)
        dataset(ledger)
        dataset(ledger, person="id", per_person="one")
        assert ledger.verify(HEAD) == before

    @pytest.mark.parametrize("policy", [None, {"refuse_columns": ["member"]}])
    def test_its_rules_are_amended_but_not_who_a_person_is(self, ledger, policy):
        ledger.amend(policy=policy, eps=200)
        assert ledger.limits.eps == 200
        with pytest.raises(pdrisk.ParameterError, match=r"told apart by column 'id', not 'age'"):
            dataset(ledger, person="age", per_person="one")

    def test_its_rules_may_be_said_again(self, path):
        policy = {"round_to": {"count": 5}, "refuse_columns": ["member"], "curator_facts": True}
        pdrisk.Ledger(path, dataset="people", analyst="anna", policy=policy)
        with pytest.raises(pdrisk.ParameterError, match="other limits"):
            pdrisk.Ledger(path, dataset="people", analyst="anna", policy=policy | {"round_to": {"count": 6}})


# A question belongs to columns of a type, and the fixture was written by pandas 3, whose text columns are no objects.
TEXT = pytest.mark.skipif(PEOPLE["region"].dtype == object, reason="text columns of pandas 2 are other columns")
READ_TEXT = ("count where", "sum by region")


class TestRememberedAnswers:
    """Every question that was paid for gets the very values that were drawn then, for nothing."""

    @pytest.mark.parametrize("asked", [pytest.param(name, marks=TEXT if name in READ_TEXT else ()) for name in ASKS])
    def test_of_a_frame(self, ledger, asked):
        found = ASKS[asked](dataset(ledger))
        assert np.ravel(found).tolist() == np.ravel(WRITTEN[asked]).tolist()
        assert ledger.remaining().spent == WRITTEN["spent"]
        assert ledger.history()["event"].tolist()[-1] == "remembered"

    @TEXT
    def test_in_sql(self, ledger):
        """Questions of SQL have a canonical text of their own by now: they are drawn once more (docs/ledger.md)."""
        d = dataset(ledger, {"people": PEOPLE})
        found = d.sql(QUERY, eps=1, bounds=BOUNDS, keys=REGIONS, **ONE)
        assert [found["a"].tolist(), found["c"].tolist()] != WRITTEN["sql"]
        assert ledger.remaining().spent == WRITTEN["spent"] + 1
        again = d.sql(QUERY, eps=1, bounds=BOUNDS, keys=REGIONS, **ONE)
        assert again["a"].tolist() == found["a"].tolist()
        assert ledger.remaining().spent == WRITTEN["spent"] + 1

    @TEXT
    def test_of_a_selection(self, ledger):
        """What ``query`` selects is what ``where`` selected."""
        north = dataset(ledger).query("age > 40").query("region == 'north'")
        assert north.count(eps=0.1, **ONE).value == WRITTEN["count where"]
        assert ledger.remaining().spent == WRITTEN["spent"]

    def test_other_questions_and_data_are_paid(self, ledger):
        dataset(ledger).mean("distance", eps=1, bounds=(1, 674), **ONE)
        pdrisk.Dataset(PEOPLE, ledger=ledger, version="2027").mean("distance", eps=1, bounds=(1, 675), **ONE)
        PEOPLE.dprisk.mean("distance", eps=1, bounds=(1, 675), ledger=ledger, **ONE)
        assert ledger.remaining().spent == pytest.approx(WRITTEN["spent"] + 3)


class TestLosses:
    """Its rule ``person`` is still understood: by that column people's losses go on."""

    @pytest.fixture
    def curator(self, ledger):
        ledger.amend(policy={"curators": ["Anna"], "refuse_columns": ["member"]})
        return ledger

    def test_as_they_were(self, curator):
        assert curator.odometer(PEOPLE)["loss"].round(9).tolist() == WRITTEN["loss"]

    @pytest.mark.parametrize(
        "asked",
        [
            lambda ledger: PEOPLE.dprisk.count(eps=0.25, where="age > 50", ledger=ledger, **ONE),
            lambda ledger: dataset(ledger).count(eps=0.25, where="age > 50", **ONE),
            lambda ledger: dataset(ledger, person="id", per_person="one").query("age > 50").count(eps=0.25, **ONE),
            lambda ledger: dataset(ledger).assign(id="age * 2").count("id", eps=0.25, where="id > 100", **ONE),
        ],
        ids=["without a Dataset", "not said", "said again", "replaced"],
    )
    def test_what_follows_adds(self, curator, asked):
        before = curator.odometer(PEOPLE)["loss"]
        asked(curator)
        added = curator.odometer(PEOPLE)["loss"] - before
        assert added.to_numpy() == pytest.approx(np.where(PEOPLE["age"] > 50, 0.25, 0.0), abs=1e-12)

    def test_to_nobody_else(self, ledger, monkeypatch):
        """Before its owner names a curator there is none."""
        monkeypatch.setattr(Account, "odometer", lambda *_: pytest.fail("the losses were read"))
        with pytest.raises(pdrisk.PolicyError, match="not one of the curators"):
            ledger.odometer(PEOPLE)
        with pytest.raises(pdrisk.PolicyError, match="not one of the curators"):
            ledger.facts()
        last = ledger.history().iloc[-1]
        assert (last["event"], last["query"], last["eps"]) == ("refused", "facts()", 0)
        assert isinstance(ledger.history(), pd.DataFrame) and ledger.verify()[0] == HEAD[0] + 3
