"""A budget of delta: ``keys="private"`` spends it beside eps, exactly, and never without the owner's word."""

import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import events, tables, typed, version_one
from pdrisk import Dataset
from pdrisk._cli import main
from pdrisk._core.risks.risk import success_bound

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

PRIVATE = {"by": "g", "keys": "private", "delta": 1e-6}


def frame():
    """One group that is shown in any case, forty that may be, and one of one person."""
    names = ["sure"] * 400 + [f"maybe {at % 40:02}" for at in range(40 * 26)] + ["Fedje"]
    return typed(pd.DataFrame({"g": names, "x": np.arange(len(names)) % 7 * 1.0, "pid": range(len(names))}))


def opened(place, **said):
    """As the session's role on a server, else as ann."""
    own = {} if str(place).startswith("postgresql") else {"analyst": "ann"}
    return pdrisk.Ledger(place, **({"dataset": "survey", "eps": 100} | own | said))


def ask(ledger, **options):
    return frame().dprisk.count(ledger=ledger, **({"eps": 1} | PRIVATE | options))


class TestWithoutDelta:
    """A budget of eps alone pays for no delta: refused in words, recorded, nothing spent."""

    def test_refused(self, store):
        ledger = opened(store)
        for call in (
            lambda: ask(ledger),
            lambda: pdrisk.sql(
                "SELECT g, COUNT(*) AS n FROM t GROUP BY g", eps=1, keys="private", delta=1e-6, ledger=ledger, t=frame()
            ),
        ):
            with pytest.raises(
                pdrisk.PolicyError, match=r"spends delta=0.000001.*'survey' has none.*amend\(delta=1e-6\)"
            ):
                call()
        left = ledger.remaining()
        assert (left.eps, left.spent, left.delta, left.delta_spent) == (100, 0, None, 0)
        assert events(ledger) == ["opened", "refused", "refused"]
        assert "delta" not in repr(ledger)

    def test_the_owner_allows_it(self, store):
        ledger = opened(store)
        ledger.amend(delta=1e-6)
        ask(ledger)
        assert ledger.remaining().delta == 0
        ledger.amend(delta=None)
        with pytest.raises(pdrisk.PolicyError, match="has none"):
            ask(ledger)

    def test_delta_alone_is_no_limit(self, path):
        with pytest.raises(pdrisk.ParameterError, match="give it a limit"):
            opened(path, eps=None, delta=1e-6)

    @pytest.mark.parametrize("delta", [0, 0.5, -1e-6, "1e-6", True])
    def test_no_budget(self, path, delta):
        with pytest.raises(pdrisk.PdriskError, match="delta must be"):
            opened(path, delta=delta)


class TestSpending:
    """Both are charged before anything is read, to the last digit, and shown wherever eps is."""

    def test_sums_are_exact(self, store):
        ledger = opened(store, delta=1e-6)
        for _ in range(10):
            ask(ledger, delta=1e-7)
        left = ledger.remaining()
        assert (left.eps, left.spent, left.delta, left.delta_spent) == (90, 10, 0, 1e-6)
        assert left.risk == success_bound(10.0, 1e-6)
        assert "delta left        none (1e-06 spent)" in repr(ledger) and "worst-case" not in repr(ledger)
        ledger.verify()
        with pytest.raises(pdrisk.BudgetExceededError, match=r"asks for delta 0\.0000001, nothing of 0\.000001 is"):
            ask(ledger, delta=1e-7)
        assert ledger.remaining() == left

    def test_the_words_when_some_is_left(self, path):
        ledger = opened(path, delta=3e-6)
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            ask(ledger, delta=1e-5)
        assert "0.000003 of 0.000003 is left (0.000007 short). Ask with delta=0.000003 or less" in str(caught.value)
        ask(ledger, delta=3e-6)

    def test_each_analyst(self, path):
        opened(path, analyst="the owner", delta=1e-5, each_analyst={"delta": 1e-6})
        ledger = opened(path, eps=None)
        ask(ledger)
        assert ledger.remaining().delta == 0
        with pytest.raises(pdrisk.BudgetExceededError, match="analyst 'ann'"):
            ask(ledger)
        bob = opened(path, eps=None, analyst="bob")
        assert bob.remaining().delta == 1e-6
        ask(bob)
        assert bob.remaining().delta_spent == 2e-6

    def test_history_and_export(self, path, tmp_path):
        ledger = opened(path, delta=1e-5)
        ask(ledger, least_group=5)
        frame().dprisk.count(eps=1, ledger=ledger)
        table = ledger.history()
        assert table["delta"].tolist() == [0, 1e-6, 0] and table["eps"].tolist() == [0, 1, 1]
        ledger.export(tmp_path / "all.json")
        said = json.loads((tmp_path / "all.json").read_text())[1]
        assert said["delta"] == 1e-6
        assert {name: said["question"][name] for name in ("keys", "delta", "least_group")} == {
            "keys": "private", "delta": "1/1000000", "least_group": 5,
        }  # fmt: skip

    def test_events(self, path):
        """Accounting knows both mechanisms, and that their eps add up to what was paid."""
        ask(opened(path, delta=1e-5), eps=3)
        ((body,),) = tables(path, "SELECT body FROM records WHERE event = 'paid'")
        found = json.loads(body)["events"]
        assert [each["mechanism"] for each in found] == ["geometric", "partition_selection"]
        assert sum(Fraction(each["eps"]) for each in found) == 3
        assert found[1]["delta"] == "1/1000000"

    def test_explained(self, path):
        ledger = opened(path, delta=1e-3)
        table = ask(ledger, eps=1e-2, delta=1e-3, where="x >= 0")
        plain = frame().dprisk.count(eps=1e-2, ledger=ledger)
        bound = success_bound(0.02, 1e-3)
        assert ledger.remaining().risk == bound
        for answer in (table, plain):  # what is counted after all releases, includes delta
            text = " ".join(pdrisk.explain(answer, "analyst", so_far=ledger).split())
            found = re.search(r"together: eps 0.02, right at most ([\d,]+) times out of ([\d,]+)", text).groups()
            times, out_of = (int(each.replace(",", "")) for each in found)
            assert times - 1 < bound * out_of <= times
        with pytest.raises(pdrisk.ParameterError, match="with delta no such bound"):
            pdrisk.explain(plain, "analyst", so_far=ledger, prior=0.1)


class TestMemory:
    """The same question gives the same groups and the same values, for nothing."""

    def dataset(self, ledger, **said):
        return Dataset(frame(), ledger=ledger, name="survey", person="pid", per_person="one", **said)

    def test_again(self, store):
        ledger = opened(store, delta=1e-6)
        first = self.dataset(ledger).count(eps=1, **PRIVATE)
        assert 5 < len(first) < 38 and "Fedje" not in first.index
        for _ in range(3):
            again = self.dataset(ledger).count(eps=1, **PRIVATE)
            pd.testing.assert_frame_equal(again, first)
        assert ledger.remaining().delta_spent == 1e-6
        assert events(ledger, "paid", "remembered", "kept") == [
            "paid",
            "kept",
            "remembered",
            "remembered",
            "remembered",
        ]
        ledger.verify()

    def test_in_sql(self, path):
        ledger = opened(path, delta=1e-5)
        query = "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM data GROUP BY g"
        options = {"eps": 1, "keys": "private", "delta": 1e-6, "bounds": (0, 10)}
        first = self.dataset(ledger, version="1").sql(query, **options)
        pd.testing.assert_frame_equal(self.dataset(ledger, version="1").sql(query, **options), first)
        assert ledger.remaining().delta_spent == 1e-6 and len(first) > 5

    @pytest.mark.parametrize("name", ["mean", "sum", "median", "max", "var"])
    def test_every_kind_of_value(self, path, name):
        ledger = opened(path, delta=1e-5)
        for where, rows in ((None, None), ("x > 100", 0)):
            first, again = (
                getattr(self.dataset(ledger), name)("x", eps=1, bounds=(0, 10), where=where, **PRIVATE)
                for _ in range(2)
            )
            pd.testing.assert_frame_equal(again, first)
            assert rows is None or len(first) == rows
        assert ledger.remaining().delta_spent == 2e-6

    def test_other_questions(self, path):
        ledger = opened(path, delta=1e-5)
        d = self.dataset(ledger)
        for options in ({}, {"delta": 2e-6}, {"least_group": 2}, {"eps": 2}, {"fresh": True}):
            d.count(**({"eps": 1} | PRIVATE | options))
        d.count(eps=0.5, by="g", keys=["sure"])
        assert len(events(ledger, "paid")) == 6
        assert ledger.remaining().delta_spent == 6e-6

    def test_least_groups_of_the_question_beside_those_of_the_policy(self, path):
        """An answer that shows small groups is not given again to whoever asks for large ones alone."""
        ledger = opened(path, delta=1e-5, policy={"least_group": {"size": 2, "eps": 1}})
        d = self.dataset(ledger)
        assert len(d.count(eps=9, **PRIVATE)) > 1 == len(d.count(eps=9, least_group=300, **PRIVATE))
        assert d.count(eps=9, least_group=300, **PRIVATE).index.tolist() == ["sure"]
        assert len(events(ledger, "paid")) == 2

    def test_nothing_kept_tells_of_groups_that_are_not_shown(self, path):
        ledger = opened(path, delta=1e-5, policy={"curator_facts": True})
        shown = set(self.dataset(ledger).count(eps=1, **PRIVATE).index)
        with closing(sqlite3.connect(path)) as file:
            everything = "\n".join(file.iterdump())
        hidden = set(frame()["g"]) - shown
        assert len(hidden) > 2 and not any(f'"{name}' in everything or f"'{name}" in everything for name in hidden)
        ((answer,),) = tables(path, "SELECT body FROM answers")
        assert {json.loads(key)[0] for key in json.loads(answer)["keys"]} == shown

    def test_keys_that_are_changed(self, path):
        """Whoever changes what is kept is found out, by the answer and by verify."""
        ledger = opened(path, delta=1e-5)
        self.dataset(ledger).count(eps=1, **PRIVATE)
        tables(path, "UPDATE answers SET body = replace(body, 'sure', 'Fedje')")
        with pytest.raises(pdrisk.LedgerError, match="damaged"):
            self.dataset(ledger).count(eps=1, **PRIVATE)
        with pytest.raises(pdrisk.LedgerError, match="an answer that it keeps"):
            ledger.verify()


class TestPeople:
    """The odometer charges everybody in full: what private keys cost a person is no sum of eps alone."""

    def test_odometer(self, path):
        ledger = opened(path, delta=1e-5, policy={"curators": ["ann"]})
        d = Dataset(frame(), ledger=ledger, name="survey", person="pid", per_person="one")
        d.count(eps=1, **PRIVATE)
        d.mean("x", eps=0.5, bounds=(0, 10), by="g", keys=["sure"])
        assert ledger.odometer([0, len(frame()) - 1])["loss"].tolist() == pytest.approx([1.5, 1.0])
        assert ledger.facts()["loss"].tolist() == pytest.approx([1.0, 0.5])


class TestAudit:
    """Records, sums and tables of delta are verified, and older ledgers get them."""

    def test_sums_that_were_changed(self, path):
        ledger = opened(path, delta=1e-5)
        ask(ledger)
        tables(path, "UPDATE spending SET delta = '0'")
        with pytest.raises(pdrisk.LedgerError, match="its sums are not those of its records"):
            ledger.verify()

    @pytest.mark.parametrize("delta", ["'much'", "'-1'", "''"])
    def test_nonsense(self, path, delta):
        ledger = opened(path, delta=1e-5)
        ask(ledger)
        tables(path, f"UPDATE spending SET delta = {delta}")
        for call in (ledger.remaining, ledger.verify, lambda: ask(ledger)):
            with pytest.raises(pdrisk.LedgerError):
                call()

    def test_a_payment_over_the_limit_that_held(self, path):
        ledger = opened(path, delta=1e-5)
        ask(ledger)
        ledger.amend(delta=1e-7)  # what was paid before, held then
        ledger.verify()
        assert ledger.remaining().delta == 0

    def test_a_payment_where_no_delta_was_allowed(self, path):
        """The owner's word is put into the file for a while, and taken out again."""
        ledger = opened(path)
        (was,) = tables(path, "SELECT limits FROM datasets")
        tables(path, """UPDATE datasets SET limits = replace(limits, '"eps"', '"delta": "1/1000", "eps"')""")
        ask(ledger)
        tables(path, "UPDATE datasets SET limits = ?", *was)
        with pytest.raises(pdrisk.LedgerError, match="record 2 went over the limits that held then"):
            ledger.verify()

    def test_an_older_file(self, path):
        opened(path).amend(eps=50)
        frame().dprisk.count(eps=1, ledger=opened(path, eps=None))
        version_one(path)
        ledger = opened(path, eps=None)
        assert (ledger.remaining().spent, ledger.remaining().delta) == (1, None)
        ledger.amend(delta=1e-5)
        ask(ledger)
        ledger.verify()
        assert ledger.remaining().delta_spent == 1e-6


class TestCommandLine:
    """``pdrisk ledger show`` has a column of delta where some was spent."""

    def test_show(self, path, capsys):
        ledger = opened(path, delta=1e-5)
        for ask_it, there in ((lambda: frame().dprisk.count(eps=1, ledger=ledger), False), (lambda: ask(ledger), True)):
            ask_it()
            assert main(["ledger", "show", str(path)]) == 0
            assert (" delta " in capsys.readouterr().out.partition("\n\n")[2]) == there
