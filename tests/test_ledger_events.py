"""Each payment stands in the ledger with the events of its mechanisms, which add up to what was paid."""

import json
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest

import pdrisk
from ledgers import REGIONS, people, tables
from pdrisk._core.statistics import Count
from pdrisk._ledger.question import question
from pdrisk._model.query import Line, Query

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FRAME = people()
LINE = Line("age", Count(), None, None)


def laplace(eps, **said):
    return {"mechanism": "laplace", "eps": eps, **said}


def functions(ledger):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT range % 3 AS region FROM range(60)")
        pdrisk.register(con, ledger=ledger)
        con.execute("SELECT region, dp_count_star(eps := 0.5) FROM t GROUP BY region").fetchall()


WAYS = {
    "one answer": (lambda led: FRAME.dprisk.count(eps=0.1, ledger=led), [laplace("1/10")]),
    "groups": (lambda led: FRAME.dprisk.count(eps=1, by="region", keys=REGIONS, ledger=led), [laplace("1")]),
    "several": (
        lambda led: FRAME.dprisk.agg({"age": ["mean", "max"], "sex": "count"}, eps=1, bounds=(0, 9), ledger=led),
        [laplace("1/3")] * 3,
    ),
    "sql": (
        lambda led: pdrisk.sql("SELECT dp_count(eps := 0.5), COUNT(age) FROM t", eps=2, ledger=led, t=FRAME),
        [laplace("1/2"), laplace("3/2")],
    ),
    "registered": (functions, [laplace("1/2", times=3)]),
}


class TestEvents:
    """One for each line, with its own eps; also for the counts that decide what is withheld."""

    @pytest.mark.parametrize(("ask", "events"), WAYS.values(), ids=WAYS)
    @pytest.mark.parametrize("least", [None, {"size": 2, "eps": 0.25}])
    def test_recorded(self, book, path, ask, events, least):
        ledger = book(policy={} if least is None else {"least_group": least})
        ask(ledger)
        *_, (body, paid) = tables(path, "SELECT body, eps FROM records WHERE event = 'paid' ORDER BY seq")
        found = json.loads(body)["events"]
        if ask is functions:  # DuckDB asks for several groups at once, or for one after the other
            events = [laplace("1/2", times=n) if n > 1 else laplace("1/2") for n in [found[0].get("times", 1)]]
        extra = found[len(events) :]
        assert found[: len(events)] == events
        assert {each["eps"] for each in extra} == (set() if least is None else {"1/4"})
        assert sum(Fraction(each["eps"]) * each.get("times", 1) for each in found) == Fraction(paid)
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
