"""Each payment stands in the ledger with the events of its mechanisms, which add up to what was paid."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import pdrisk
from ledgers import REGIONS, people, tables
from pdrisk._core.statistics import Count
from pdrisk._ledger.rules.question import question
from pdrisk._model.query import Line, Query

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FRAME = people()
LINE = Line("age", Count(), None, None)


def event(mechanism, eps):
    return {"mechanism": mechanism, "eps": eps}


WAYS = {
    "one answer": (lambda led: FRAME.dprisk.count(eps=0.1, ledger=led), [event("geometric", "1/10")]),
    "groups": (lambda led: FRAME.dprisk.count(eps=1, by="region", keys=REGIONS, ledger=led), [event("geometric", "1")]),
    "several": (
        lambda led: FRAME.dprisk.agg({"age": ["mean", "max"], "sex": "count"}, eps=1, bounds=(0, 9), ledger=led),
        [event(name, "1/3") for name in ("two_sums", "exponential", "geometric")],
    ),
    "joint": (
        lambda led: FRAME.dprisk.agg({"age": ["mean", "std", "max", "count"]}, eps=1, bounds=(0, 9), ledger=led),
        [event(name, "1/2") for name in ("bernstein", "exponential")],
    ),
    "sql": (
        lambda led: pdrisk.sql("SELECT dp_count(eps := 0.5), COUNT(age) FROM t", eps=2, ledger=led, t=FRAME),
        [event("geometric", "1/2"), event("geometric", "3/2")],
    ),
    "by name": (
        lambda led: FRAME.dprisk.mean("age", eps=1, bounds=(0, 9), mechanism="laplace", ledger=led),
        [event("laplace", "1")],
    ),
}


class TestEvents:
    """One for each release, with its own eps; also for the counts that decide what is withheld."""

    @pytest.mark.parametrize(("ask", "events"), WAYS.values(), ids=WAYS)
    @pytest.mark.parametrize("least", [None, {"size": 2, "eps": 0.25}])
    def test_recorded(self, book, path, ask, events, least):
        ledger = book(policy={} if least is None else {"least_group": least})
        ask(ledger)
        *_, (body, paid) = tables(path, "SELECT body, eps FROM records WHERE event = 'paid' ORDER BY seq")
        found = json.loads(body)["events"]
        extra = found[len(events) :]
        assert found[: len(events)] == events
        assert all(each == event("geometric", "1/4") for each in extra) and bool(extra) == (least is not None)
        assert sum(Fraction(each["eps"]) for each in found) == Fraction(paid)
        ledger.verify()

    def test_not_of_what_was_not_paid(self, book, path):
        d = pdrisk.Dataset(FRAME, ledger=book(eps=1))
        for eps in (1, 1, 2):
            try:
                d.count(eps=eps)
            except pdrisk.BudgetExceededError:
                pass
        told = [json.loads(body) for (body,) in tables(path, "SELECT body FROM records")]
        assert ["events" in each for each in told].count(True) == 1 == d.ledger.history()["event"].eq("paid").sum()


class TestMechanisms:
    """Which mechanism answers is part of the question; of laplace, as it always was, it is written once."""

    def asked(self, *names):
        lines = tuple(replace(LINE, mechanism=name) for name in names)
        return question(Query(lines, (Fraction(1, 2),) * len(lines)))

    def test_laplace(self):
        line = {"statistic": "count", "column": "age", "bounds": None, "eps": "1/2"}
        assert self.asked("laplace") == {"lines": [line], "eps": "1/2", "mechanism": "laplace"}

    def test_others(self):
        found = self.asked("laplace", "geometric", "two_sums", "laplace")
        assert found["mechanism"] == "laplace, geometric, two_sums"
        assert [line.get("mechanism") for line in found["lines"]] == [None, "geometric", "two_sums", None]
        assert len({json.dumps(self.asked(*names)) for names in (["laplace"], ["geometric"], ["two_sums"])}) == 3
