"""A ledger: what is charged, what is refused and with which words, and in which order things happen."""

import asyncio
import contextvars
import datetime
import itertools
import re
import sqlite3
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import opened_by_owner, typed
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

TENTH = Fraction(1, 10)
PARTS = {"bounds": (1, 675)}


def people() -> pd.DataFrame:
    frame = pd.DataFrame({"distance": [3, 1, 10, 675, 17], "age": [30, 41, 52, 63, 40], "income": [9, 8, 7, 6, 5]})
    return typed(frame.assign(region=["north", "south", "north", "south", "east"]))


def count(ledger, eps=0.1):
    return people().dprisk.count(eps=eps, ledger=ledger)


def sql(query, ledger, eps=0.3, **options):
    return pdrisk.sql(query, eps=eps, ledger=ledger, people=people(), bounds=(1, 675), **options)


def events(ledger) -> list[str]:
    return ledger.history()["event"].tolist()


@pytest.fixture
def book(tmp_path):
    """Opens the ledger of this test, as ann unless said otherwise."""
    return lambda **said: opened_by_owner(tmp_path / "budget.db", **{"analyst": "ann"} | said)


@pytest.fixture
def paid(tmp_path):
    """The exact sum of all that was paid, and of how many queries."""

    def summed() -> tuple[Fraction, int]:
        with closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
            found = connection.execute("SELECT eps FROM records WHERE event = 'paid'").fetchall()
        return sum((Fraction(eps) for (eps,) in found), Fraction(0)), len(found)

    return summed


COSTS = {
    "one statistic": lambda led: people().dprisk.mean("distance", eps=0.3, ledger=led, **PARTS),
    "of a series": lambda led: people()["distance"].dprisk.max(eps=0.3, ledger=led, **PARTS),
    "agg": lambda led: people().dprisk.agg({"distance": ["mean", "max"], "age": "sum"}, eps=0.3, ledger=led, **PARTS),
    "groups": lambda led: people().dprisk.count(eps=0.3, by="region", keys=["north", "west", "x"], ledger=led),
    "agg of groups": lambda led: people().dprisk.agg(
        {"distance": ["mean", "max"]}, eps=0.3, by="region", keys=["north", "west"], ledger=led, **PARTS
    ),
    "suggest_bounds": lambda led: pd.DataFrame({"x": [42.0] * 500}).dprisk.suggest_bounds("x", eps=0.3, ledger=led),
    "of a series, suggested": lambda led: pd.Series([42.0] * 500).dprisk.suggest_bounds(eps=0.3, ledger=led),
    "sql": lambda led: sql("SELECT AVG(age), MAX(age), COUNT(*) FROM people", led),
    "sql, one thing twice": lambda led: sql("SELECT COUNT(*), COUNT(*) + 1 FROM people", led),
    "sql, groups": lambda led: sql("SELECT region, COUNT(*) FROM people GROUP BY region", led, keys=["north", "x"]),
    "sql, own eps": lambda led: sql("SELECT dp_count(age, eps := 0.1), dp_count(eps := 0.2) FROM people", led, None),
}
FREE = {
    "assess": lambda frame: frame.dprisk.assess("distance", bounds=(1, 675)),
    "individual_risk": lambda frame: frame.dprisk.individual_risk("distance", eps=1, bounds=(1, 675)),
    "epsilon_for": lambda frame: frame.dprisk.epsilon_for("distance", risk=0.6, metric="two_worlds", bounds=(1, 675)),
    "of a series": lambda frame: frame["distance"].dprisk.assess(bounds=(1, 675)),
    "declared": lambda frame: frame.dprisk.declare(bounds={"age": (0, 99)}).dprisk.declared,
}
WRONG = {
    "a typing error": lambda: people().dprisk.mean("distnace", eps=0.1, **PARTS),
    "bounds the wrong way round": lambda: people().dprisk.mean("distance", eps=0.1, bounds=(5, 1)),
    "no bounds": lambda: people().dprisk.mean("distance", eps=0.1),
    "no eps": lambda: people().dprisk.count(),
    "eps of 0": lambda: people().dprisk.count(eps=0),
    "a risk below the prior": lambda: people().dprisk.count(risk=0.4),
    "no keys": lambda: people().dprisk.count(eps=0.1, by="region"),
    "a filter over rows": lambda: people().dprisk.count(eps=0.1, where="age > age.mean()"),
    "a mask too short": lambda: people().dprisk.count(eps=0.1, where=[True]),
    "one of several": lambda: people().dprisk.agg({"age": "max", "region": "max"}, eps=0.1, **PARTS),
    "bounds of text": lambda: people().dprisk.suggest_bounds("region", eps=0.1),
    "sql, a typing error": lambda: sql("SELECT AVG(distnace) FROM people", None),
    "sql, a record": lambda: sql("SELECT * FROM people", None),
    "sql, no eps": lambda: sql("SELECT COUNT(*) FROM people", None, None),
    "sql, what only DuckDB refuses": lambda: sql("SELECT COUNT(*) FROM people WHERE regexp_matches(region, '[')", None),
}


class TestCharging:
    """Every release costs its eps exactly once, to the last digit; nothing else costs anything."""

    @pytest.mark.parametrize(
        ("eps", "times"),
        [(0.1, 10), (Fraction(1, 3), 3), (Decimal("0.05"), 20), (np.float64(0.2), 5), (1, 1), (Fraction(1, 7), 7)],
    )
    def test_exact_to_the_last(self, book, paid, eps, times):
        ledger = book(eps=1)
        for _ in range(times):
            count(ledger, eps)
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(ledger, eps)
        each = Fraction(1, times)
        assert (caught.value.requested, caught.value.remaining, caught.value.missing) == (each, 0, each)
        assert paid() == (1, times)
        assert events(ledger) == ["opened", *["paid"] * times, "refused"]

    def test_a_risk_is_a_limit_of_its_eps(self, book):
        ledger = book(risk=0.75)
        assert float(ledger.limits.eps) == pytest.approx(np.log(3))
        people().dprisk.count(risk=0.75, ledger=ledger)
        with pytest.raises(pdrisk.BudgetExceededError):
            count(ledger, 1e-9)
        assert (ledger.remaining().eps, ledger.remaining().risk) == (0, pytest.approx(0.75))

    @pytest.mark.parametrize("call", COSTS.values(), ids=COSTS.keys())
    def test_the_total_once(self, book, paid, call):
        call(book(eps=1))
        assert paid() == (3 * TENTH, 1)

    def test_bounds_that_are_not_found_stay_paid(self, book, paid):
        with pytest.raises(pdrisk.BoundsNotFoundError):
            people().dprisk.suggest_bounds("age", eps=0.3, ledger=book(eps=1))
        assert paid() == (3 * TENTH, 1)

    @pytest.mark.parametrize("call", FREE.values(), ids=FREE.keys())
    def test_the_curators_questions_are_free(self, book, call):
        with book(eps=1, policy={"curators": ["ann"]}) as ledger:
            call(people())
        assert events(ledger) == ["opened"]

    @pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
    def test_a_wrong_request_leaves_no_trace(self, book, call):
        with book(eps=1) as ledger, pytest.raises(pdrisk.ParameterError):
            call()
        assert events(ledger) == ["opened"]

    def test_answers_are_the_same_but_for_the_noise(self, book):
        ledger, keys = book(eps=100), ["north", "x"]
        one, other = (people().dprisk.mean("distance", eps=1, ledger=led, **PARTS) for led in (None, ledger))
        noise = dict.fromkeys(["value", "low", "high", "noise95", "measured", "draw"])
        assert one.public() | noise == other.public() | noise
        ask = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
        for call in (
            lambda led: people().dprisk.agg({"age": "max"}, eps=1, by="region", keys=keys, ledger=led, **PARTS),
            lambda led: sql(ask, led, keys=keys, risk_columns=True).rename(columns=lambda c: c.removeprefix("n_")),
        ):
            tables = call(None), call(ledger)
            plain, under = (table.drop(columns=["value", "n", "low", "high"], errors="ignore") for table in tables)
            pd.testing.assert_frame_equal(plain, under)
            assert {"eps", "worst_case"} <= {*plain.columns}
            one, other = (Answer.from_attrs(table.attrs) for table in tables)
            assert [replace(line, noise95=0) for line in one.lines] == [
                replace(line, noise95=0) for line in other.lines
            ]
            assert replace(one, lines=(), measured=None) == replace(other, lines=(), measured=None)


LIMITS = {
    "eps": ([0.7], 0.4, ("2/5", "3/10", "1/10"), "asks for eps 0.4, 0.3 of 1 is left (0.1 short). Ask with eps=0.3 or"),
    "eps_per_query": ([1, 1], 1.2, ("6/5", 1, "1/5"), "1 of 1 is left for one query (0.2 short). Ask with eps=1 or"),
    "eps_per_day": ([1], 0.4, ("2/5", 0, "2/5"), "nothing of 1 is left for this day (UTC) (0.4 short). Wait for the n"),
    "eps_per_month": ([0.9], 0.4, ("2/5", "1/10", "3/10"), "for this month (UTC) (0.3 short). Ask with eps=0.1 or les"),
    "queries": ([1], 1, (1, 0, 1), "cannot answer count(): all 1 queries have been asked. Have the owner raise"),
    "queries_per_day": ([1], 1, (1, 0, 1), "all 1 queries for this day (UTC) have been asked. Wait for the next day"),
    "queries_per_month": ([1], 1, (1, 0, 1), "all 1 queries for this month (UTC) have been asked. Wait for the next"),
}
BAD = [
    *({"eps": eps} for eps in (0, -1, float("nan"), float("inf"), "1", True, 10**400)),
    *({"queries": number} for number in (0, -1, 1.5, True, "3")),
    *({"risk": risk} for risk in (0.5, 0, 1, "high")),
    *({"each_analyst": each} for each in (5, "eps", {"ep": 1}, {"queries": 0})),
    *({"eps": 1, "policy": rules} for rules in (5, {"refuse": []}, {"refuse_statistics": ["avg"]})),
    *({"eps": 1, "policy": {name: 1}} for name in ("bounds_from_data", "refuse_columns", "refuse_statistics")),
    *({"eps": 1, name: value} for name in ("dataset", "analyst") for value in ("", " ", 5)),
    *({}, {"each_analyst": {}}, {"policy": {"refuse_columns": ["age"]}}),
]


class TestLimits:
    """Whatever limit is in the way is named with its numbers, its window and the next step."""

    @pytest.mark.parametrize("limit", LIMITS)
    @pytest.mark.parametrize("whose", ["dataset 'survey'", "analyst 'ann'"])
    def test_every_limit(self, book, paid, limit, whose):
        accepted, refused, numbers, words = LIMITS[limit]
        ledger = book(**{limit: 1} if whose.startswith("dataset") else {"eps": 50, "each_analyst": {limit: 1}})
        for eps in accepted:
            count(ledger, eps)
        before = paid()
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(ledger, refused)
        error, message = caught.value, str(caught.value)
        assert tuple(map(Fraction, numbers)) == (error.requested, error.remaining, error.missing)
        assert all(type(number) is Fraction for number in (error.requested, error.remaining, error.missing))
        assert message.startswith("cannot answer count(): ") and words in message
        how = "" if whose.startswith("dataset") else ", with ledger.amend(analysts={'ann': ...})"
        assert message.endswith(f"ave the owner raise the limit of {whose}{how}.")
        assert paid() == before and ledger.history()["reason"].iloc[-1] == message
        assert ledger.history()["total"].iloc[-1] == float(before[0])

    def test_analysts_have_their_own_and_share_the_whole(self, book):
        ann = book(eps=1.5, each_analyst={"eps": 1})
        bob = book(analyst="bob")
        count(ann, 1)
        with pytest.raises(pdrisk.BudgetExceededError, match="analyst 'ann'"):
            count(ann)
        count(bob, 0.5)
        with pytest.raises(pdrisk.BudgetExceededError, match="dataset 'survey'"):
            count(bob)
        assert (ann.remaining().eps, bob.remaining().eps) == (0, 0)

    @pytest.mark.parametrize(
        "limit", [1, Fraction(1, 3), Fraction(2, 7), Fraction(1, 30_000_000), Fraction(200_000, 3)]
    )
    def test_the_next_step_can_be_taken(self, book, limit):
        ledger = book(eps=limit)
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(ledger, Fraction(limit) * 2)
        advised = re.search(r"Ask with eps=(\S+) or less", str(caught.value))
        count(ledger, Decimal(advised[1]))

    @pytest.mark.parametrize("said", BAD, ids=str)
    def test_what_is_no_limit(self, book, said):
        with pytest.raises(pdrisk.ParameterError):
            book(**said)


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that a ledger believes it is."""
    moment = {}

    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromisoformat(moment["now"] + "+00:00").astimezone(tz)

    monkeypatch.setattr("pdrisk._ledger.accounts.account.datetime", SimpleNamespace(datetime=Frozen, UTC=datetime.UTC))
    return lambda now: moment.update(now=now)


class TestWindows:
    """A window is a calendar day or month in UTC, opened once whatever the clock does."""

    @pytest.mark.parametrize(
        ("window", "last", "following"),
        [
            ("day", "2024-02-29T23:59:59.999999", "2024-03-01T00:00:00"),
            ("day", "2024-02-28T00:00:00", "2024-02-29T00:00:00"),
            ("month", "2024-02-29T23:59:59.999999", "2024-03-01T00:00:00"),
            ("month", "2023-12-31T23:59:59", "2024-01-01T00:00:00"),
            ("month", "2023-03-15T12:00:00", "2024-03-01T12:00:00"),
        ],
    )
    @pytest.mark.parametrize("kind", ["eps", "queries"])
    def test_the_next_one_is_empty(self, book, clock, window, last, following, kind):
        clock(last[:8] + "01T00:00:00" if window == "month" else last[:10] + "T00:00:00")
        ledger = book(eps=9, **{f"{kind}_per_{window}": 1})
        count(ledger, 1)
        for now, left in ((last, 0), (following, 1)):
            clock(now)
            remaining = ledger.remaining()
            assert (remaining.eps if kind == "eps" else remaining.queries) == left
            with pytest.raises(pdrisk.BudgetExceededError) if not left else warnings.catch_warnings():
                count(ledger, 1)
        assert ledger.remaining().spent == 2

    @pytest.mark.parametrize("back", ["2024-03-01T00:00:00", "2024-02-27T12:00:00", "1999-01-01T00:00:00"])
    def test_a_clock_that_goes_back(self, book, clock, back):
        clock("2024-03-02T12:00:00")
        ledger = book(eps=9, eps_per_day=1)
        count(ledger, 1)
        clock(back)
        with pytest.raises(pdrisk.BudgetExceededError):
            count(ledger, 0.1)
        ledger.amend(eps=8)
        assert ledger.history()["time"].tolist() == [pd.Timestamp("2024-03-02T12", tz="UTC")] * 4
        clock("2024-03-03T00:00:00")
        count(ledger, 1)
        assert ledger.verify()[0] == 5


async def in_task(ledger, turns):
    with ledger:
        for _ in range(turns):
            await asyncio.sleep(0)
            people().dprisk.count(eps=0.1)


async def in_tasks(*turns):
    await asyncio.gather(*(in_task(ledger, number) for ledger, number in turns))


def in_threads(*ledgers) -> list[Exception]:
    """Enter the ledgers in threads, ask in each when all are entered, leave in the same order."""
    entered, turns, failed = threading.Barrier(len(ledgers)), [threading.Event() for _ in ledgers], []
    turns[0].set()

    def work(at, ledger):
        try:
            with ledger:
                entered.wait(10)
                people().dprisk.count(eps=0.1)
                turns[at].wait(10)
        except Exception as error:  # noqa: BLE001
            failed.append(error)
        if at + 1 < len(ledgers):
            turns[at + 1].set()

    threads = [threading.Thread(target=work, args=each) for each in enumerate(ledgers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def in_a_thread(ask) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask).result()


class TestAmbient:
    """A with block pays for what is asked in it, and for nothing that others ask meanwhile."""

    def spent(self, *ledgers):
        return [round(ledger.remaining().spent, 12) for ledger in ledgers]

    def test_nested_and_left_by_an_exception(self, book):
        ledger, again = book(eps=1), book()
        with ledger:
            with ledger, again, ledger:
                people().dprisk.count(eps=0.1)
            with pytest.raises(pdrisk.BudgetExceededError), ledger, again:
                people().dprisk.count(eps=1)
            people().dprisk.count(eps=0.2)
        people().dprisk.count(eps=0.4)
        assert self.spent(ledger, again) == [0.3, 0.3]

    @pytest.mark.parametrize("other", [{"dataset": "other", "eps": 1}, {"analyst": "bob"}, {"where": "other.db"}])
    def test_one_ledger_pays(self, book, tmp_path, other):
        """A block of another ledger, dataset or analyst in a block is refused, and changes nothing."""
        outer = book(eps=1)
        if "where" in other:
            inner = pdrisk.Ledger(tmp_path / other["where"], dataset="survey", analyst="ann", eps=1)
        else:
            inner = book(**other)
        with outer:
            with (
                pytest.raises(pdrisk.ParameterError, match=r"'survey'.* is open, and inside it .* pass ledger="),
                inner,
            ):
                pytest.fail("its block began")
            people().dprisk.count(eps=0.1)
            count(inner, 0.2)
            contextvars.Context().run(inner.__enter__)  # of another task, which sees no block
            contextvars.Context().run(inner.__exit__)
        with inner:
            people().dprisk.count(eps=0.3)
        paid = [ledger.history()["eps"][lambda eps: eps > 0].tolist() for ledger in (outer, inner)]
        assert paid == ([[0.1, 0.2, 0.3]] * 2 if "analyst" in other else [[0.1], [0.2, 0.3]])

    def test_an_explicit_one_goes_before(self, book):
        around, explicit = book(dataset="around", eps=1), book(dataset="explicit", eps=1)
        with around:
            count(explicit)
            sql("SELECT COUNT(*) FROM people", explicit)
        assert self.spent(around, explicit) == [0, 0.4]

    @pytest.mark.parametrize("same", [False, True], ids=["two ledgers", "one ledger"])
    def test_threads(self, book, same):
        one, other = book(dataset="one", eps=1), book(dataset="other", eps=1)
        assert in_threads(one, one if same else other) == []
        assert self.spent(one, other) == ([0.2, 0] if same else [0.1, 0.1])
        people().dprisk.count(eps=0.1)
        assert sum(self.spent(one, other)) == 0.2

    @pytest.mark.parametrize("same", [False, True], ids=["two ledgers", "one ledger"])
    def test_tasks(self, book, same):
        one, other = book(dataset="one", eps=1), book(dataset="other", eps=1)
        asyncio.run(in_tasks((one, 2), (one if same else other, 3)))
        assert self.spent(one, other) == ([0.5, 0] if same else [0.2, 0.3])

    def test_a_thread_without_a_block_pays_nothing_and_hears_of_it(self, book):
        with book(eps=1) as ledger, pytest.warns(pdrisk.UnpaidReleaseWarning, match="no ledger pays") as heard:
            in_a_thread(lambda: people().dprisk.count(eps=0.1))
        assert (events(ledger), [warning.filename for warning in heard]) == (["opened"], [__file__])

    def test_who_pays_hears_nothing(self, book):
        with book(eps=1) as ledger:
            in_a_thread(lambda: count(ledger))
        people().dprisk.count(eps=0.1)  # no block is open
        assert events(ledger) == ["opened", "paid"]

    def test_a_generator_that_is_left_in_its_block(self, book):
        def asking(ledger):
            with ledger:
                yield

        generator = asking(book(eps=1))
        contextvars.Context().run(next, generator)
        contextvars.Context().run(generator.close)
        contextvars.Context().run(people().dprisk.count, eps=0.1)  # nobody hears of a block that is closed

    @pytest.mark.parametrize(
        "wrong", ["budget.db", 5, False, object(), pdrisk.Ledger, {}], ids=lambda it: type(it).__name__
    )
    def test_what_is_no_ledger(self, book, wrong):
        read = itertools.count()
        with book(eps=1) as around, pytest.raises(pdrisk.ColumnTypeError, match=r"must be a pdrisk\.Ledger, not of"):
            people().dprisk.count(eps=0.1, where=lambda frame: next(read) >= 0, ledger=wrong)
        with pytest.raises(pdrisk.ColumnTypeError, match=r"must be a pdrisk\.Ledger"):
            sql("SELECT COUNT(*) FROM people", wrong)
        assert next(read) == 0 and events(around) == ["opened"]
