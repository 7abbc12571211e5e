"""A ledger: who may change its limits, what its owner allows, the order of things, and what happens when they fail."""

import asyncio
import math
import pickle
import sqlite3
import warnings
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import opened_by_owner, typed
from pdrisk._core.risks.gaussian_dp import mu_of_pure, success_of
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Mean
from pdrisk._core.universe import Universe
from pdrisk._ledger.rules.policy import Policy
from pdrisk._model.query import Line, Query
from pdrisk._sql.select.compiled_query import CompiledQuery
from pdrisk.engines.numpy.frame import FrameEngine

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
PARTS = {"bounds": (1, 675)}
LAPLACE = {**PARTS, "mechanism": "laplace"}


def people() -> pd.DataFrame:
    frame = pd.DataFrame({"distance": [3, 1, 10, 675, 17], "age": [30, 41, 52, 63, 40], "Income": [9, 8, 7, 6, 5]})
    return typed(frame.assign(region=["north", "south", "north", "south", "east"]))


def count(ledger, eps=0.1):
    return people().dprisk.count(eps=eps, ledger=ledger)


def sql(query, ledger, **options):
    return pdrisk.sql(query, eps=0.3, ledger=ledger, people=people(), bounds=(1, 675), **options)


def events(ledger) -> list[str]:
    return ledger.history()["event"].tolist()


@pytest.fixture
def book(tmp_path):
    """Opens the ledger of this test, as ann unless said otherwise."""
    return lambda **said: opened_by_owner(tmp_path / "budget.db", **{"analyst": "ann"} | said)


GIVEN = {"eps": 1, "queries_per_day": 5, "each_analyst": {"eps": 0.5}, "policy": {"refuse_columns": ["Income"]}}


class TestOpening:
    """A dataset gets its limits once; who comes later has the same ones, or is told so."""

    @pytest.mark.parametrize(
        "again",
        [{}, GIVEN, {"each_analyst": {"eps": Fraction(1, 2)}}, {"eps": 1.0}, {"queries_per_day": np.int64(5)}],
    )
    def test_with_the_same_or_none(self, book, again):
        first = book(**GIVEN)
        count(first)
        second = book(**again)
        assert (second.limits, second.remaining()) == (first.limits, first.remaining())
        assert events(second) == ["opened", "paid"]

    @pytest.mark.parametrize(
        "again",
        [
            *({"eps": 2}, {"eps": 1, "queries_per_day": 4}, {"eps": 1, "queries": 1}, {"risk": 0.9}),
            *({"each_analyst": each} for each in ({}, {"eps": 0.6})),
            *({"policy": rules} for rules in ({}, {"keys_from_data": True})),
        ],
        ids=str,
    )
    def test_with_others(self, book, again):
        ledger = book(**GIVEN)
        with pytest.raises(pdrisk.ParameterError) as caught:
            book(**again)
        for part in ("'survey' has other limits (eps=1, queries_per_day=5, eps=0.5 for each analyst, ", "amend"):
            assert part in str(caught.value)
        assert events(ledger) == ["opened"] and ledger.limits == book().limits

    def test_two_ways_to_say_eps_hold_both(self, book):
        assert float(book(eps=2, risk=0.75).limits.eps) == pytest.approx(np.log(3))


class TestAmend:
    """What an owner changes holds from now on, for everybody, and the audit shows it."""

    def test_raised(self, book):
        ledger, other = book(eps=0.2), book(analyst="bob")
        count(ledger, 0.2)
        ledger.amend(eps=0.3)
        count(other)
        with pytest.raises(pdrisk.BudgetExceededError):
            count(other)
        assert events(ledger) == ["opened", "paid", "amended", "paid", "refused"]
        assert ledger.verify()[0] == 5

    def test_lowered_below_what_is_spent(self, book):
        ledger = book(eps=1, queries=9)
        count(ledger, 0.5)
        ledger.amend(eps=0.2)
        assert (ledger.remaining().eps, ledger.remaining().queries_at_tenth) == (0, 0)
        with pytest.raises(pdrisk.BudgetExceededError, match=r"nothing of 0\.2 is left") as caught:
            count(ledger)
        assert (caught.value.remaining, caught.value.missing) == (0, Fraction(2, 5))

    def test_what_is_not_named_stays(self, book):
        ledger = book(**GIVEN)
        ledger.amend(queries=7)
        assert (ledger.limits.eps, ledger.limits.queries_per_day, ledger.limits.queries) == (1, 5, 7)
        with pytest.raises(pdrisk.PolicyError):
            people().dprisk.max("Income", eps=0.1, ledger=ledger, **PARTS)
        with pytest.raises(pdrisk.BudgetExceededError, match="analyst 'ann'"):
            count(ledger, 0.6)

    def test_taken_away(self, book):
        ledger = book(eps=1, queries=2, each_analyst={"eps": 0.5})
        ledger.amend(eps=None, each_analyst={})
        count(ledger, 5)
        assert (ledger.limits.eps, ledger.limits.queries) == (None, 2)
        with pytest.raises(pdrisk.ParameterError, match="needs a limit"):
            ledger.amend(queries=None)

    @pytest.mark.parametrize(
        "said", [{"risk": 0.75}, {"eps": None, "risk": 0.75}, {"risk": 0.75, "eps": None}], ids=str
    )
    def test_to_a_risk(self, book, said):
        ledger = book(eps=1, queries=3)
        ledger.amend(**said)
        assert float(ledger.limits.eps) == pytest.approx(np.log(3))

    def test_rules(self, book):
        ledger = book(eps=9, policy={"refuse_statistics": ["max"]})
        ledger.amend(policy={"refuse_columns": ["age"]})
        with pytest.raises(pdrisk.PolicyError, match="column 'age'"):
            people().dprisk.max("age", eps=0.1, ledger=ledger, **PARTS)

    @pytest.mark.parametrize(
        "said", [{"ep": 1}, {"eps": -1}, {"queries": 0}, {"policy": {"a": 1}}, {"each_analyst": 5}]
    )
    def test_a_wrong_one_changes_nothing(self, book, said):
        ledger = book(eps=1)
        with pytest.raises(pdrisk.ParameterError):
            ledger.amend(**{"eps": 5} | said)
        assert (ledger.limits.eps, events(ledger)) == (1, ["opened"])


INNER = "SELECT * FROM (SELECT Income AS i, age FROM people) AS t"
COLUMN = {
    "value": lambda led: people().dprisk.mean("Income", eps=0.1, ledger=led, **PARTS),
    "counted": lambda led: people().dprisk.count("Income", eps=0.1, ledger=led),
    "series": lambda led: people()["Income"].dprisk.max(eps=0.1, ledger=led, **PARTS),
    "one of agg": lambda led: people().dprisk.agg({"age": "max", "Income": "max"}, eps=0.1, ledger=led, **PARTS),
    "by": lambda led: people().dprisk.count(eps=0.1, by=["region", "Income"], keys=[("north", 9)], ledger=led),
    "where": lambda led: people().dprisk.count(eps=0.1, where="age > 3 and not (Income > 7)", ledger=led),
    "callable": lambda led: people().dprisk.count(eps=0.1, where=lambda frame: frame["age"] > 3, ledger=led),
    "mask": lambda led: people().dprisk.count(eps=0.1, where=people()["Income"] > 7, ledger=led),
    "list": lambda led: people().dprisk.count(eps=0.1, where=[True] * 5, ledger=led),
    "suggest_bounds": lambda led: people().dprisk.suggest_bounds("Income", eps=0.1, ledger=led),
    "sql": lambda led: sql("SELECT AVG(income) AS age FROM people", led),
    "sql, quoted": lambda led: sql('SELECT dp_sum(p."iNCOME" + 1, lo := 0, hi := 9) FROM people AS p', led),
    "sql, counted": lambda led: sql("SELECT COUNT(Income) FROM people", led),
    "sql, WHERE": lambda led: sql("SELECT COUNT(*) FROM people WHERE age > 3 OR Income > 7", led),
    "sql, FILTER": lambda led: sql("SELECT COUNT(*) FILTER (WHERE Income > 7) FROM people", led),
    "sql, GROUP BY": lambda led: sql("SELECT Income, COUNT(*) FROM people GROUP BY 1", led, keys=[9]),
    "sql, an alias": lambda led: sql("SELECT Income > 7 AS rich, COUNT(*) FROM people GROUP BY rich", led, keys=[True]),
    "sql, a subquery": lambda led: sql(f"SELECT AVG(i) FROM ({INNER})", led),
    "sql, a CTE": lambda led: sql(f"WITH w(a, b) AS ({INNER}) SELECT AVG(a) FROM w", led),
    "sql, WHERE of a subquery": lambda led: sql("SELECT AVG(age) FROM (SELECT age FROM people WHERE Income > 7)", led),
    "sql, HAVING": lambda led: sql("SELECT region FROM people GROUP BY region HAVING MAX(Income) > 3", led, keys=["x"]),
}
OTHERS = {
    "value": lambda led: people().dprisk.agg({"age": "max", None: "count"}, eps=0.1, ledger=led, **PARTS),
    "where": lambda led: people().dprisk.count(eps=0.1, where="age > 3", by="region", keys=["x"], ledger=led),
    "sql": lambda led: sql("SELECT AVG(age) AS Income FROM people WHERE region = 'Income'", led),
    "sql, not chosen": lambda led: sql(f"SELECT AVG(age) FROM ({INNER})", led),
}
OWN = {"age": (0, 99), "distance": "column"}
VALUE = {
    "frame": lambda led: people().dprisk.max("age", eps=0.1, bounds="column", ledger=led),
    "series": lambda led: people()["age"].dprisk.max(eps=0.1, bounds="column", ledger=led),
    "agg": lambda led: people().dprisk.agg({"age": "max", "distance": "max"}, eps=0.1, ledger=led, bounds=OWN),
}
KEYS = {
    "frame": lambda led: people().dprisk.count(eps=0.1, by="region", keys="observed", ledger=led),
    "sql": lambda led: sql("SELECT region, COUNT(*) FROM people GROUP BY region", led, keys="observed"),
}


class TestPolicies:
    """What the owner does not allow is refused by every way that leads there, written down, and costs nothing."""

    def refused(self, ledger, call, words):
        with pytest.raises(pdrisk.PolicyError, match=words) as caught:
            call(ledger)
        assert events(ledger) == ["opened", "refused"] and ledger.remaining().spent == 0
        assert ledger.history()["reason"].iloc[-1] == str(caught.value)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("call", COLUMN.values(), ids=COLUMN.keys())
    @pytest.mark.parametrize("written", ["Income", "INCOME"])
    def test_columns(self, book, call, written):
        self.refused(book(eps=1, policy={"refuse_columns": ["x", written]}), call, "does not allow column|may look at")

    @pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS.keys())
    def test_other_columns_are_answered(self, book, call):
        ledger = book(eps=1, policy={"refuse_columns": ["Income"]})
        call(ledger)
        assert events(ledger) == ["opened", "paid"]

    @pytest.mark.parametrize(
        ("refused", "call"),
        [
            ("max", lambda led: people().dprisk.max("age", eps=0.1, ledger=led, **PARTS)),
            ("quantile", lambda led: people().dprisk.quantile("age", q=0.5, eps=0.1, ledger=led, **PARTS)),
            ("median", lambda led: people().dprisk.quantile("age", q=0.5000000001, eps=0.1, ledger=led, **PARTS)),
            ("var", lambda led: people().dprisk.agg({"age": [("var", {"ddof": 0})]}, eps=1, ledger=led, **PARTS)),
            ("count", lambda led: sql("SELECT AVG(age) + COUNT(*) FROM people", led)),
            ("std", lambda led: sql("SELECT STDDEV_POP(age) FROM people", led)),
            ("sum", lambda led: sql("SELECT SUM(DISTINCT age) FROM people", led)),
            ("mean", lambda led: sql("SELECT dp_mean(age, eps := 0.1) FROM people", led)),
        ],
    )
    def test_statistics(self, book, refused, call):
        self.refused(book(eps=9, policy={"refuse_statistics": [refused]}), call, f"the owner does not allow {refused}")
        call(book(dataset="other", eps=9))

    @pytest.mark.parametrize("call", VALUE.values(), ids=VALUE.keys())
    def test_bounds_from_data(self, book, call):
        self.refused(book(eps=1), call, 'bounds="column"')
        call(book(dataset="open", eps=1, policy={"bounds_from_data": True}))

    @pytest.mark.parametrize("call", KEYS.values(), ids=KEYS.keys())
    def test_keys_from_data(self, book, call):
        self.refused(book(eps=1), call, 'keys="observed"')
        call(book(dataset="open", eps=1, policy={"keys_from_data": True}))


WAYS = {
    "frame": lambda led, where=None: people().dprisk.max("age", eps=0.1, where=where, ledger=led, **LAPLACE),
    "agg": lambda led: people().dprisk.agg({"age": ["max", "min"]}, eps=0.1, ledger=led, **LAPLACE),
    "sql": lambda led: sql(
        "SELECT dp_min(age, eps := 0.1), dp_max(age, eps := 0.1) FROM people", led, mechanism="laplace"
    ),
}
AFTER = {
    "frame": lambda led: people().dprisk.mean("age", eps=0.1, ledger=led, **PARTS),
    "agg": lambda led: people().dprisk.agg({"age": ["mean", "count"]}, eps=0.1, ledger=led, **PARTS),
    "sql": lambda led: sql("SELECT dp_mean(age, eps := 0.1) FROM people", led),
}


@pytest.fixture
def seen(monkeypatch):
    """What happens, in order; a payment with the number of warnings before it."""
    found = []
    pay = pdrisk.Ledger.pay

    def paying(*arguments):
        found.append("pay")
        return pay(*arguments)

    def noted(name, real):
        return lambda *args, **kwargs: (found.append(name), real(*args, **kwargs))[1]

    monkeypatch.setattr(pdrisk.Ledger, "pay", paying)
    for engine in (FrameEngine, CompiledQuery):
        monkeypatch.setattr(engine, "read", noted("read", engine.read))
    monkeypatch.setattr(
        "pdrisk._mechanisms.contract.draws.discrete_laplace",
        noted("draw", pdrisk._mechanisms.contract.draws.discrete_laplace),
    )
    monkeypatch.setattr("pdrisk._answer.words.doubts.warnings.warn", noted("warn", warnings.warn))
    return found


class TestOrder:
    """Warned of, paid, read, drawn: and each step only if those before it went well."""

    @pytest.mark.parametrize("call", WAYS.values(), ids=WAYS.keys())
    def test_in_this_order(self, book, seen, call):
        with pytest.warns(pdrisk.NoisyReleaseWarning):
            call(book(eps=1))
        assert [step for at, step in enumerate(seen) if seen[at - 1 : at] != [step]] == ["warn", "pay", "read", "draw"]

    @pytest.mark.parametrize("call", WAYS.values(), ids=WAYS.keys())
    @pytest.mark.parametrize("limits", [{"eps": 0.05}, {"eps": 1, "policy": {"refuse_columns": ["age"]}}], ids=str)
    def test_nothing_is_read_when_refused(self, book, seen, call, limits):
        with pytest.raises((pdrisk.BudgetExceededError, pdrisk.PolicyError)), pytest.warns(pdrisk.NoisyReleaseWarning):
            call(book(**limits))
        assert seen == ["warn", "pay"]

    @pytest.mark.parametrize("call", WAYS.values(), ids=WAYS.keys())
    def test_a_warning_that_is_an_error_costs_nothing(self, book, seen, call):
        ledger = book(eps=1)
        with warnings.catch_warnings(action="error"), pytest.raises(pdrisk.NoisyReleaseWarning):
            call(ledger)
        assert seen == ["warn"] and events(ledger) == ["opened"]

    @pytest.mark.parametrize("call", AFTER.values(), ids=AFTER.keys())
    def test_accurate_mechanisms_warn_of_their_own_interval(self, book, seen, call):
        """Which is noisy, so that it is paid for: nothing is said before, and nothing is lost for it."""
        ledger = book(eps=1)
        with warnings.catch_warnings(action="error"):
            assert call(ledger) is not None
        assert [step for at, step in enumerate(seen) if seen[at - 1 : at] != [step]] == ["pay", "read", "draw", "warn"]
        assert events(ledger) == ["opened", "paid"]

    def test_others_see_the_payment_before_the_data_is_read(self, book, tmp_path):
        def where(frame):
            with closing(sqlite3.connect(tmp_path / "budget.db")) as other:
                held.extend(other.execute("SELECT event, eps FROM records ORDER BY seq").fetchall())
            return frame["age"] > 3

        held = []
        WAYS["frame"](book(eps=1), where)
        assert held == [("opened", "0"), ("paid", "1/10")]


def failing(error):
    def work(*_):
        raise error

    return work


STOPS = [ValueError, KeyboardInterrupt, SystemExit, asyncio.CancelledError, MemoryError, pdrisk.LedgerError]


class TestFailures:
    """What fails after it was paid for stays paid and is marked, whatever stopped it."""

    @pytest.fixture
    def stopped(self, book, tmp_path):
        def stopped(call, error):
            ledger = book(eps=1)
            with pytest.raises(error):
                call(ledger)
            assert events(ledger) == ["opened", "paid", "failed"]
            assert (ledger.remaining().eps, ledger.verify()[0]) == (0.9, 3)
            with closing(sqlite3.connect(tmp_path / "budget.db")) as other:
                assert other.execute("SELECT eps, body FROM records WHERE seq = 3").fetchall() == [("0", '{"of":2}')]

        return stopped

    @pytest.mark.parametrize("error", STOPS)
    def test_a_filter(self, stopped, error):
        told = pdrisk.QueryFailedError if issubclass(error, Exception) else error
        stopped(lambda led: WAYS["frame"](led, failing(error("SENTINEL"))), told)

    @pytest.mark.parametrize("error", STOPS)
    def test_the_noise(self, stopped, monkeypatch, error):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", failing(error))
        stopped(WAYS["frame"], error)

    @pytest.mark.parametrize(
        "step", ["engines.sql.servers.sql_table.read", "_sql.together.noisy_table._NoisyTable.computed"]
    )
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_sql(self, book, monkeypatch, step, error):
        ledger = book(eps=1)
        monkeypatch.setattr(f"pdrisk.{step}", failing(error))
        with pytest.raises(pdrisk.QueryFailedError if error is ValueError else error):
            sql("SELECT COUNT(*) + 1 FROM people", ledger)
        assert (events(ledger), ledger.remaining().eps) == (["opened", "paid", "failed"], 0.7)

    def test_a_mark_that_cannot_be_made_hides_nothing(self, book, monkeypatch):
        ledger = book(eps=1)
        monkeypatch.setattr(pdrisk.Ledger, "failed", failing(pdrisk.LedgerError("locked")))
        with pytest.raises(pdrisk.QueryFailedError):
            WAYS["frame"](ledger, failing(ValueError))
        assert events(ledger) == ["opened", "paid"]


class TestObjects:
    """Ledgers and errors survive pickling, and say what they know."""

    def test_a_ledger_pickles(self, book):
        ledger = book(eps=1)
        count(ledger)
        same = pickle.loads(pickle.dumps(ledger))
        count(same)
        assert (same.dataset, same.analyst, ledger.remaining().eps) == ("survey", "ann", 0.8)

    def test_inside_its_own_block(self, book):
        with book(eps=1) as ledger:
            same = pickle.loads(pickle.dumps(ledger))
        count(same)
        assert ledger.remaining().eps == 0.9

    def test_errors_pickle(self):
        error = pdrisk.BudgetExceededError("a", Fraction(1), Fraction(2, 3), Fraction(1, 3))
        same = pickle.loads(pickle.dumps(error))
        assert (str(same), same.args, vars(same)) == ("a", error.args, vars(error))

    def test_repr(self, book):
        ledger = book(eps=1, queries=5)
        count(ledger, 0.25)
        said = repr(ledger)
        for part in ("'budget.db'", "'survey'", "'ann'", "0.75 (4 queries at eps 0.1)", "queries left      4", "0.25"):
            assert part in said

    @pytest.mark.parametrize(
        ("limits", "expected"),
        [
            ({"eps": 1}, (0.7, None, 7)), ({"queries": 5}, (None, 4, 4)), ({"eps": 1, "queries": 5}, (0.7, 4, 4)),
            ({"eps": 1, "each_analyst": {"eps": 0.5}}, (0.2, None, 2)), ({"eps_per_day": 0.35}, (0.05, None, 0)),
            ({"eps": 1, "each_analyst": {"queries": 2}}, (0.7, 1, 1)), ({"eps_per_query": 0.3}, (None, None, None)),
        ],
        ids=str,
    )  # fmt: skip
    def test_remaining(self, book, limits, expected):
        ledger = book(**limits)
        count(ledger, 0.3)
        left = ledger.remaining()
        assert (left.eps, left.queries, left.queries_at_tenth) == expected
        most = float(posterior(1)) if "eps" in limits else None
        assert (left.spent, left.risk, left.risk_limit) == (0.3, float(posterior(0.3)), most)

    def test_remaining_promises_nothing_that_is_refused(self, book):
        ledger = book(eps=Fraction(11, 30), each_analyst={"eps_per_query": 0.25})
        assert ledger.remaining().queries_at_tenth == 3
        for _ in range(3):
            count(ledger)
        count(ledger, ledger.remaining().eps)
        ledger.amend(each_analyst={"eps_per_query": 0.05}, eps=1)
        assert ledger.remaining().queries_at_tenth == 0


def test_who_may_not_count_gets_no_histogram(book):
    ledger = book(eps=1, policy={"refuse_statistics": ["count"]})
    with pytest.raises(pdrisk.PolicyError, match="does not allow count"):
        people().dprisk.hist("age", eps=0.1, bins=[0, 50, 100], ledger=ledger)
    assert ledger.remaining().spent == 0


def test_people_are_counted_as_often_as_a_query_is_paid():
    """Groups that nobody knows to be disjoint: each is another answer, and has a noisy number of people of its own."""
    policy = Policy.given({"least_group": {"size": 20, "eps": 0.1}})
    line = Line("age", Mean(), Universe(0, 99), "given")
    for times in (1, 3):
        assert policy.cost(Query((line,), (Fraction(1, 2),), times=times)) == Fraction(3, 5) * times


@pytest.mark.parametrize("limits", [{"eps": 1, "each_analyst": {"eps": 0.5}}, {"eps": 0.5, "each_analyst": {"eps": 1}}])
def test_verify_finds_what_went_over_a_limit(book, monkeypatch, limits):
    """Of all together or of one analyst, however it came to be answered."""
    ledger = book(**limits)
    count(ledger, 0.4)
    ledger.verify()
    monkeypatch.setattr("pdrisk._ledger.accounts.account.check", lambda *_: None)
    count(ledger, 0.4)
    with pytest.raises(pdrisk.LedgerError, match="record 3 went over the limits that held then"):
        ledger.verify()


@pytest.mark.parametrize(("most", "left"), [(0.1, 10), (0.099, 0)])
def test_queries_that_are_left_are_those_that_may_be_asked(book, most, left):
    assert book(eps=1, eps_per_query=most).remaining().queries_at_tenth == left


@pytest.mark.parametrize(("people_there", "is_withheld"), [(19, True), (20, False), (21, False)])
def test_as_many_as_the_least_group_are_enough(book, noiseless, people_there, is_withheld):
    ledger = book(eps=1, policy={"least_group": {"size": 20, "eps": 0.1}})
    answer = pd.DataFrame({"x": range(people_there)}).dprisk.count(eps=0.1, ledger=ledger)
    assert np.isnan(answer.value) == is_withheld


def test_facts_of_what_eps_does_not_cover_are_not_kept(book):
    """Bounds of the data are two people's values: such an answer counts in full."""
    ledger = book(eps=1, policy={"bounds_from_data": True, "curator_facts": True, "curators": ["ann"]})
    for bounds in ("column", (0, 1000)):
        people().dprisk.median("age", eps=0.1, bounds=bounds, ledger=ledger)
    facts = ledger.facts()
    assert facts["known"].tolist() == [False, True]
    assert facts["loss"].iloc[0] == 0.1 > facts["loss"].iloc[1]


def test_the_curator_sees_what_looking_for_people_cost(book):
    ledger = book(eps=1, policy={"least_group": {"size": 1, "eps": 0.1}, "curators": ["ann"]})
    release = people().dprisk.count(eps=0.2, ledger=ledger, curator=True)
    assert release.curator.loss == pytest.approx(0.3)
    assert release.curator.two_worlds == pytest.approx(float(posterior(0.3)))


LOOKING = {"least_group": {"size": 20, "eps": 0.1}}


def test_what_is_withheld_has_no_interval(book, noiseless):
    answer = people().dprisk.count(eps=0.1, ledger=book(eps=1, policy=LOOKING))
    assert np.isnan([answer.value, answer.low, answer.high]).all()


def test_whether_an_answer_was_given_tells_too(book):
    """Who sees that it is withheld or not learns from the noisy number of people: the worst case bounds both."""
    release = people().dprisk.mean("age", eps=0.4, bounds=(0, 99), ledger=book(eps=1, policy=LOOKING))
    assert release.risk.worst_case == float(posterior(0.5))
    alone = people().dprisk.mean("age", eps=0.4, bounds=(0, 99)).risk.mu
    assert release.risk.mu == pytest.approx(math.hypot(alone, mu_of_pure(0.1)), rel=1e-9)
    assert release.risk.success == pytest.approx(success_of(release.risk.mu**2), rel=1e-9)


def test_rounded_answers_stay_within_their_range(book, noiseless):
    ledger = book(eps=1, policy={"round_to": {"mean": 1000}})
    release = people().dprisk.mean("distance", eps=0.1, bounds=(500, 675), ledger=ledger)
    assert release.value == 675 and 500 <= release.low <= release.high <= 675


def test_only_curators_may_ask_for_the_curators_numbers(book):
    ledger = book(eps=1)
    with pytest.raises(pdrisk.PolicyError, match="curator=True"):
        people().dprisk.count(eps=0.1, ledger=ledger, curator=True)
    assert (events(ledger), ledger.remaining().spent) == (["opened", "refused"], 0)
