"""What a hostile reader found in the ledger."""

import gc
import itertools
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from fractions import Fraction

import pandas as pd
import pytest

import pdrisk

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def people():
    return pd.DataFrame({"age": [30, 41, 52, 63, 40] * 20, "income": range(100), "sex": ["f", "m"] * 50})


@pytest.fixture
def ledger(path):
    return pdrisk.Ledger(path, dataset="people", eps=1, analyst="ann")


def ask(ledger, eps=0.1):
    return people().dprisk.count(eps=eps, ledger=ledger).eps


def answered(ledger, eps):
    try:
        return ask(ledger, eps)
    except pdrisk.PdriskError:
        return 0


class TestWithinItself:
    """Whoever asks while a payment is being written gets no answer, and the payment stays whole."""

    @pytest.mark.slow
    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the operating system")
    def test_a_signal_handler(self, ledger):
        ledger.amend(eps=20)
        given = []

        def handler(*_):
            given.extend(answered(ledger, 0.5) for _ in range(2))

        before = signal.signal(signal.SIGALRM, handler)
        try:
            for place in range(200):
                signal.setitimer(signal.ITIMER_REAL, 2e-4 * (1 + place % 20))  # once, somewhere in what follows
                given.append(answered(ledger, 0.001))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert sum(Fraction(str(each)) for each in given) <= Fraction(str(ledger.remaining().spent)) <= 20
        ledger.verify()

    def test_a_label_that_asks(self, ledger):
        class Label:
            def __str__(self):
                given.extend(answered(ledger, 0.5) for _ in range(2))
                return "label"

        given, label = [], Label()
        frame = people().rename(columns={"age": label})
        for _ in range(5):
            try:
                given.append(frame.dprisk.count(label, eps=0.1, ledger=ledger).eps)
            except pdrisk.PdriskError:
                given.append(0)
        assert sum(given) <= ledger.remaining().spent + 1e-9 <= 1 + 2e-9
        ledger.verify()

    @pytest.mark.slow
    def test_a_finalizer_that_asks(self, ledger):
        ledger.amend(eps=100)

        class Last:
            def __init__(self):
                self.me = self

            def __del__(self):
                answered(ledger, 0.01)

        thresholds = gc.get_threshold()
        gc.set_threshold(50)
        try:
            for _ in range(50):
                Last()
                assert ask(ledger) == 0.1
        finally:
            gc.set_threshold(*thresholds)
        ledger.verify()


class TestBlocks:
    """A block pays for what is asked in it, whatever other blocks end meanwhile."""

    def test_a_generator_closed_in_another_block(self, ledger, tmp_path):
        other = pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=1)

        def rows():
            with other:
                yield

        import contextvars

        generator = rows()
        contextvars.copy_context().run(next, generator)
        with ledger:
            generator.close()
            with pytest.raises(pdrisk.BudgetExceededError):
                people().dprisk.count(eps=50)
        assert people().dprisk.count(eps=50).eps == 50


class TestTheFile:
    """What is done to the file is found, and never gives an answer."""

    def change(self, path, *statements):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            for statement in statements:
                other.execute(statement)

    def test_limits_raised_for_a_while(self, ledger, path):
        ask(ledger, 0.9)
        head = ledger.verify()
        self.change(path, """UPDATE datasets SET limits = replace(limits, '"1"', '"100"')""")
        assert ask(ledger, 5) == 5
        self.change(path, """UPDATE datasets SET limits = replace(limits, '"100"', '"1"')""")
        with pytest.raises(pdrisk.LedgerError, match="record 3 went over the limits"):
            ledger.verify(head)

    @pytest.mark.parametrize("what", ["INSERT ON records", "INSERT ON spending", "UPDATE ON spending"])
    def test_triggers_that_forget(self, ledger, path, what):
        ask(ledger)
        self.change(path, f"CREATE TRIGGER forget BEFORE {what} BEGIN SELECT RAISE(IGNORE); END")
        given = sum(answered(ledger, 0.3) for _ in range(5))
        assert given <= 0.9
        with pytest.raises(pdrisk.LedgerError, match=r"tables or triggers|sums"):
            ledger.verify()

    def test_replaced(self, ledger, path, tmp_path):
        shutil.copy(path, tmp_path / "copy.db")
        ask(ledger)
        os.replace(tmp_path / "copy.db", path)
        for look in (ask, pdrisk.Ledger.remaining, pdrisk.Ledger.verify):
            with pytest.raises(pdrisk.LedgerError, match="was moved or replaced"):
                look(ledger)

    def test_gone(self, ledger, path):
        path.unlink()
        for look in (ask, pdrisk.Ledger.remaining, pdrisk.Ledger.history):
            with pytest.raises(pdrisk.LedgerError):
                look(ledger)

    def test_exported_onto_itself(self, tmp_path):
        path = tmp_path / "budget.json"
        ledger = pdrisk.Ledger(path, dataset="people", eps=1)
        with pytest.raises(pdrisk.ParameterError, match="overwrite the ledger"):
            ledger.export(path)
        assert ledger.verify()[0] == 1


class TestQuestions:
    """Odd questions are paid like others."""

    def test_labels_of_several_levels(self, ledger):
        frame = people().pivot_table(index="income", columns=["sex", "age"], values="income")
        for column in frame.columns[:2]:
            assert frame.dprisk.count(column, eps=0.1, ledger=ledger).eps == 0.1

    def test_fractions_that_would_make_the_sums_long(self, ledger):
        primes = (n for n in itertools.count(10**40) if n % 2 and n % 5)
        for _, denominator in zip(range(20), primes, strict=False):
            ask(ledger, Fraction(denominator // 1000, denominator))
        assert len(str(Fraction(ledger.history()["total"].iloc[-1]))) < 100
        assert ask(ledger, Fraction(1, 3)) > 0
        ledger.verify()

    @pytest.mark.parametrize("rule", ["age", "AGE ", "a\u0301ge"])
    def test_names_as_people_read_them(self, path, rule):
        ledger = pdrisk.Ledger(path, dataset="people", eps=1, policy={"refuse_columns": [rule]})
        frame = people().rename(columns={"age": "\u00e1ge" if "\u0301" in rule else "Age"})
        wide = frame.set_axis(pd.MultiIndex.from_product([["x"], frame.columns]), axis="columns")
        for asked, column in ((frame, frame.columns[0]), (wide, wide.columns[0])):
            with pytest.raises(pdrisk.PolicyError, match="does not allow column"):
                asked.dprisk.count(column, eps=0.1, ledger=ledger)

    @pytest.mark.parametrize(("rule", "q"), [("min", 0), ("median", 0.5), ("max", 1)])
    def test_statistics_by_another_name(self, path, rule, q):
        ledger = pdrisk.Ledger(path, dataset="people", eps=1, policy={"refuse_statistics": [rule, "suggest_bounds"]})
        with pytest.raises(pdrisk.PolicyError, match=f"does not allow {rule}"):
            people().dprisk.quantile("age", q, eps=1, bounds=(0, 99), ledger=ledger)
        with pytest.raises(pdrisk.PolicyError, match="suggest_bounds"):
            people().dprisk.suggest_bounds("age", eps=1, ledger=ledger)
