"""What depends on the data is shown to nobody but the curators whom the owner of a ledger names."""

import pandas as pd
import pytest

import pdrisk
from ledgers import events, people
from pdrisk import Dataset
from pdrisk._ledger import check_curator

AGES = {"bounds": (0, 100)}
VIEWS = {
    "assess()": lambda d: d.assess("age", **AGES),
    "compare()": lambda d: d.compare("age", eps=1, **AGES),
    "individual_risk()": lambda d: d.individual_risk("age", eps=1, **AGES),
    "epsilon_for()": lambda d: d.epsilon_for("age", risk=0.7, metric="two_worlds", **AGES),
    "identifiability()": lambda d: d.identifiability("age", eps=1, **AGES),
}
DISCLOSURE = {
    "k_anonymity()": lambda d: d.k_anonymity("age"),
    "k_map()": lambda d: d.k_map("age", weights=2),
    "delta_presence()": lambda d: d.delta_presence("age", population=people()),
    "l_diversity()": lambda d: d.l_diversity("age", "hours"),
    "t_closeness()": lambda d: d.t_closeness("age", "hours"),
    "unique_rows()": lambda d: d.unique_rows("age"),
    "suggest_generalization()": lambda d: d.suggest_generalization("age", k=2),
}
SERIES = {
    "assess()": lambda s: s.dprisk.assess(**AGES),
    "compare()": lambda s: s.dprisk.compare(eps=1, **AGES),
    "individual_risk()": lambda s: s.dprisk.individual_risk(eps=1, **AGES),
    "epsilon_for()": lambda s: s.dprisk.epsilon_for(risk=0.7, metric="two_worlds", **AGES),
    "identifiability()": lambda s: s.dprisk.identifiability(eps=1, **AGES),
}
KEPT = {"facts()": lambda ledger: ledger.facts(), "odometer()": lambda ledger: ledger.odometer([101])}
NAMED = ["bob", " ANN"]


def read_nothing(monkeypatch):
    for reader in ("pdrisk.engines.numpy.frame.FrameEngine", "pdrisk._disclosure.tables.FrameKeys"):
        monkeypatch.setattr(f"{reader}.read", lambda *_: pytest.fail("the data were read"))
    for name in ("facts", "odometer"):
        monkeypatch.setattr(f"pdrisk._ledger.accounts.account.Account.{name}", lambda *_: pytest.fail("they were read"))


def assert_refused(monkeypatch, ledger, name, call):
    """Before anything is read, for nothing, and written down."""
    with monkeypatch.context() as patched:
        read_nothing(patched)
        with pytest.raises(pdrisk.PolicyError, match=r"'ann' is not one of the curators of dataset 'survey'"):
            call()
    last = ledger.history().iloc[-1]
    assert (last["event"], last["query"], last["eps"], last["analyst"]) == ("refused", name, 0, "ann")
    assert "not one of the curators" in last["reason"]
    ledger.verify()


class TestWhoIsNamed:
    """Names are those of analysts: capitals, blanks and the way letters are composed make no other one."""

    @pytest.mark.parametrize("names", [["ann"], ["Ann"], NAMED, ("x", "a\u006en")], ids=str)
    def test_named(self, book, names):
        assert isinstance(book(policy={"curators": names}).facts(), pd.DataFrame)

    @pytest.mark.parametrize("policy", [None, {}, {"curators": []}, {"curators": ["anna", "bob", ""]}], ids=str)
    def test_not_named(self, book, monkeypatch, policy):
        ledger = book(policy=policy)
        assert_refused(monkeypatch, ledger, "facts()", ledger.facts)

    def test_from_now_on(self, book):
        ledger = book(policy={"curators": ["ann"]})
        ledger.facts()
        ledger.amend(policy={})
        with pytest.raises(pdrisk.PolicyError):
            ledger.facts()
        assert events(ledger) == ["opened", "amended", "refused"]

    @pytest.mark.parametrize("names", ["ann", 3, None, True], ids=repr)
    def test_names_are_a_list(self, book, names):
        with pytest.raises(pdrisk.ColumnTypeError, match="curators must be a list of names"):
            book(policy={"curators": names})

    def test_the_gate_itself(self, book):
        check_curator(None, "anything")
        check_curator(book(policy={"curators": ["ann"]}), "anything")
        with pytest.raises(pdrisk.PolicyError, match="cannot answer anything"):
            check_curator(book(dataset="other"), "anything")
        with pytest.raises(pdrisk.ColumnTypeError, match=r"ledger must be a pdrisk\.Ledger"):
            check_curator("budget.db", "anything")


class TestWhatIsTheCurators:
    """Exact sensitivities and risks, under the ledger of a Dataset or of a block, and what a ledger keeps of them."""

    @pytest.mark.parametrize("name", VIEWS)
    def test_of_a_dataset(self, book, monkeypatch, name):
        d = Dataset(people(), ledger=book())
        assert_refused(monkeypatch, d.ledger, name, lambda: VIEWS[name](d))
        assert_refused(monkeypatch, d.ledger, name, lambda: VIEWS[name](d.query("age > 30")))
        d.ledger.amend(policy={"curators": NAMED})
        VIEWS[name](d)

    @pytest.mark.parametrize("name", DISCLOSURE)
    def test_disclosure_measures(self, book, monkeypatch, name):
        call, frame = DISCLOSURE[name], people()
        with book() as ledger:
            for asked in (frame.dprisk, Dataset(frame), Dataset(frame, ledger=ledger).query("age > 30")):
                assert_refused(monkeypatch, ledger, name, lambda asked=asked: call(asked))
            ledger.amend(policy={"curators": NAMED})
            call(frame.dprisk)
        assert call(frame.dprisk) is not None  # without a ledger whoever holds the frame is its curator

    @pytest.mark.parametrize("name", VIEWS)
    def test_in_a_block(self, book, monkeypatch, name):
        frame = people()
        with book() as ledger:
            for call in (lambda: VIEWS[name](frame.dprisk), lambda: VIEWS[name](Dataset(frame))):
                assert_refused(monkeypatch, ledger, name, call)
            assert_refused(monkeypatch, ledger, name, lambda: SERIES[name](frame["age"]))
            ledger.amend(policy={"curators": NAMED})
            VIEWS[name](frame.dprisk)

    @pytest.mark.parametrize("name", VIEWS)
    def test_without_a_ledger(self, name):
        frame = people()
        for found in (VIEWS[name](frame.dprisk), VIEWS[name](Dataset(frame)), SERIES[name](frame["age"])):
            assert found is not None

    @pytest.mark.parametrize("name", KEPT)
    def test_what_a_ledger_keeps(self, book, monkeypatch, name):
        ledger = book(policy={"curator_facts": True})
        assert_refused(monkeypatch, ledger, name, lambda: KEPT[name](ledger))
        ledger.amend(policy={"curators": NAMED})
        KEPT[name](ledger)

    def test_a_workshop_of_the_owner(self, book):
        with pytest.raises(pdrisk.PolicyError, match="cannot answer curator=True"):
            Dataset(people(), ledger=book(), curator=True)
        book().amend(policy={"curators": ["ann"]})
        Dataset(people(), ledger=book(), curator=True)
