"""Reservations: budget that is set aside for planned questions, paid from, and given back."""

import datetime
import pickle
import re
from fractions import Fraction

import pandas as pd
import pytest

import pdrisk
from ledgers import count, events, people, tables
from pdrisk._core.risks.gaussian_dp import limit_of, mu_of_laplace, mu_of_pure, squared
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.rules.limits import Spent, payable
from postgres_databases import needs_server, role, run
from test_ledger_analysts import grants

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
TWO = [{"eps": 0.3}, {"eps": 0.2}]
NEVER = [0, -1, 4000, "tomorrow", True, float("nan"), datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1),
         datetime.date.max, datetime.timedelta(0), datetime.timedelta.max]  # fmt: skip


def opened(path, analyst="ann", **limits):
    return pdrisk.Ledger(path, dataset="survey", analyst=analyst, **limits)


def left(ledger):
    """What may still be asked: the eps and the m^2."""
    remaining = ledger.remaining()
    return remaining.eps, remaining.mu2


def refused(call, words, error=pdrisk.BudgetExceededError):
    with pytest.raises(error, match=words):
        call()


class TestSetAside:
    """What is reserved is there for its questions, and for nobody else."""

    def test_counts_at_once(self, path):
        ledger = opened(path, eps=1, success=0.75)
        held = ledger.reserve(TWO, purpose="annual tables")
        both = squared(mu_of_pure(0.3)) + squared(mu_of_pure(0.2))
        assert left(ledger) == (0.5, pytest.approx(limit_of(0.75) - both))
        assert held.left == Spent(Fraction(1, 2), 2, Fraction(0), held.left.mu2)
        refused(lambda: count(ledger, 0.6), r"0.5 of 1 is left")
        count(held, 0.3)
        assert ledger.remaining().spent == 0.3 and left(ledger)[0] == 0.5 and held.left.queries == 1
        assert "eps reserved      0.2" in repr(ledger.remaining())
        with held:
            count(None, 0.1)
        assert left(ledger)[0] == 0.6 and held.left == Spent()  # after the last question the rest came back
        assert events(ledger) == ["opened", "reserved", "refused", "paid", "paid"] and ledger.verify()
        assert "has ended" in repr(held)

    def test_at_the_price_of_its_mechanism(self, path):
        """A Laplace answer costs less than any answer of its eps: five fit where four would not."""
        eps, mu = 0.4, mu_of_laplace(0.4) * (1 + 1e-4)
        ledger = opened(path, success=0.68)
        refused(lambda: ledger.reserve([{"eps": eps}] * 5, purpose="x"), "cannot reserve eps 2 for 'x': .*68 of 100")
        held = ledger.reserve([{"eps": eps, "mu": mu}] * 4, purpose="x")
        for _ in range(4):
            people().dprisk.sum("age", eps=eps, bounds=(0, 9), mechanism="laplace", ledger=held)
        assert ledger.verify() and ledger.reservations() == []

    def test_a_dearer_question(self, path):
        """One that costs more m than was planned says what would fit."""
        ledger = opened(path, success=0.75)
        held = ledger.reserve({"eps": 0.4, "mu": mu_of_laplace(0.4)}, purpose="x")
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(held, 0.4)
        assert "is left of reservation 2 ('x'). Ask with eps=0.366589 " in str(caught.value)
        count(held, float(str(caught.value).split("eps=")[1].split(" ")[0]))
        assert ledger.verify()

    def test_more_than_planned(self, path):
        ledger = opened(path, eps=2)
        held = ledger.reserve(TWO, purpose="x")
        refused(lambda: count(held, 0.6), r"eps 0.5 is left of reservation 2 \('x'\). Ask with eps=0.5 or less, or ask")
        count(held, 0.1)
        count(held, 0.1)
        refused(lambda: count(held, 0.1), "has ended", pdrisk.PolicyError)
        assert left(ledger) == (1.8, None) and ledger.verify()

    def test_of_a_plan(self, path):
        class Plan:
            eps, delta, mu2, queries = Fraction(1, 2), Fraction(0), Fraction(1, 10), 3

        held = opened(path, success=0.75).reserve(Plan(), purpose="x")
        assert held.left == Spent(Fraction(1, 2), 3, Fraction(0), Fraction(1, 10) + Fraction(3, 10**40))

    def test_of_planned_questions(self, path):
        """Whatever a plan allots can be asked, and nothing of it is short by rounding."""
        wanted = {"count()": {"noise95": 5}, "sum(age)": {"bounds": (0, 90)}, "median(age)": {"bounds": (0, 90)}}
        plan = pdrisk.plan(wanted, success=0.75, n=60)
        ledger = opened(path, success=0.75)
        with ledger.reserve(plan, purpose="as planned") as held:
            assert held.left.queries == 3
            first, second, third = plan.table["eps"]
            people().dprisk.count(eps=first)
            people().dprisk.sum("age", eps=second, bounds=(0, 90))
            people().dprisk.median("age", eps=third, bounds=(0, 90))
        assert held.left == Spent() and ledger.remaining().success < 0.52 and ledger.verify()

    def test_of_a_table_of_several_releases(self, path):
        """Each release is a query of its own, so that all can be asked though each needs another eps."""
        asked = {
            "count()": {"noise95": 20},
            "mean(age)": {"noise95": 9, "bounds": (0, 90)},
            "max(age)": {"noise95": 30},
        }
        plan = pdrisk.plan({"ages": {**asked, "by": {"sex": 2}}}, n=60, bounds=(0, 90))
        ledger = opened(path, success=0.999)
        first, second, third = (plan.table.set_index("question")["eps"][question] for question in asked)
        with ledger.reserve(plan, purpose="as planned") as held:
            assert held.left.queries == plan.queries == 3
            people().dprisk.count(eps=first, by="sex", keys=[0, 1])
            people().dprisk.mean("age", eps=second, bounds=(0, 90), by="sex", keys=[0, 1])
            people().dprisk.max("age", eps=third, bounds=(0, 90), by="sex", keys=[0, 1])
        assert held.left == Spent() and ledger.verify()

    @pytest.mark.parametrize(
        "wrong",
        [5, None, "count()", [], {"eps": 0}, {"epsilon": 1}, {"eps": 1, "mu": 0}, pd.DataFrame({"eps": [1]})],
    )
    def test_no_plan(self, path, wrong):
        ledger = opened(path, eps=1)
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError)):
            ledger.reserve(wrong, purpose="x")
        assert events(ledger) == ["opened"]

    @pytest.mark.parametrize("wrong", [{}, {"mu": 1}, [{"eps": 0.1}, {"mu": 1}], {"eps": None}])
    def test_without_an_eps(self, path, wrong):
        with pytest.raises(pdrisk.ParameterError, match=r'has an eps, as in {"eps": 0.1}'):
            opened(path, eps=1).reserve(wrong, purpose="x")

    def test_looks_at_groups_are_reserved_too(self, path):
        ledger = opened(path, eps=1, policy={"least_group": {"size": 5, "eps": 0.1}})
        held = ledger.reserve(TWO, purpose="x")
        assert held.left.eps == Fraction(7, 10)
        count(held, 0.3)
        count(held, 0.2)
        assert ledger.remaining().spent == 0.7 and ledger.verify()

    def test_delta(self, path):
        ledger = opened(path, eps=1)
        refused(lambda: ledger.reserve({"eps": 0.5, "delta": 1e-6}, purpose="x"), "has none", pdrisk.PolicyError)
        ledger.amend(delta=1e-6)
        held = ledger.reserve({"eps": 0.5, "delta": 1e-6}, purpose="x")
        assert ledger.remaining().delta == 0
        people().dprisk.count(eps=0.5, by="region", keys="private", delta=1e-6, ledger=held)
        assert ledger.remaining().delta_spent == 1e-6 and ledger.verify()


class TestEnd:
    """What was never asked comes back."""

    def test_closed(self, path):
        ledger = opened(path, eps=1, success=0.75)
        before = left(ledger)
        held = ledger.reserve(TWO, purpose="x")
        for _ in range(2):  # the second time, nothing happens
            held.close()
        assert left(ledger) == before and ledger.reservations() == [] and held.left == Spent()
        refused(lambda: count(held, 0.1), r"reservation 2 \('x'\) has ended, and what was never", pdrisk.PolicyError)
        assert events(ledger) == ["opened", "reserved", "returned", "refused"] and ledger.verify()
        count(ledger, 0.5)  # the ledger itself stays open

    def test_in_time(self, path, monkeypatch):
        ledger = opened(path, eps=1)
        now = datetime.datetime.now(datetime.UTC)
        held = ledger.reserve(TWO, purpose="x", until=now + datetime.timedelta(days=2))
        other = ledger.reserve({"eps": 0.1}, purpose="y", until=3)
        count(held, 0.3)
        assert left(ledger)[0] == 0.4

        class Later(datetime.datetime):
            @classmethod
            def now(cls, zone=None):
                return now + datetime.timedelta(days=2, seconds=1)

        monkeypatch.setattr("pdrisk._ledger.accounts.account.datetime.datetime", Later)
        assert left(ledger)[0] == 0.6 and [each.number for each in ledger.reservations()] == [other.number]
        refused(lambda: count(held, 0.1), "has ended", pdrisk.PolicyError)
        count(ledger, 0.55)
        assert ledger.verify()

    def test_by_a_span_and_by_a_date(self, path):
        """A date lasts to its end."""
        ledger, now = opened(path, eps=1), datetime.datetime.now(datetime.UTC)
        day, hours = (now + datetime.timedelta(days=3)).date(), datetime.timedelta(hours=5)
        assert abs(ledger.reserve(TWO, purpose="x", until=hours).until - now - hours) < datetime.timedelta(minutes=1)
        until = ledger.reserve(TWO, purpose="y", until=day).until
        assert until.date() == day + datetime.timedelta(days=1) and until.time() == datetime.time()

    def test_others_than_the_owner_at_most_a_year(self, path):
        opened(path, "owner", eps=5).reserve(TWO, purpose="x", until=3660)
        ann = opened(path)
        for until in (367, datetime.timedelta(days=367), datetime.datetime.now() + datetime.timedelta(days=368)):
            with pytest.raises(pdrisk.ParameterError, match=r"at most 366 days ahead; only the owner .* up to 3660"):
                ann.reserve(TWO, purpose="y", until=until)
        ann.reserve(TWO, purpose="z", until=366)

    @pytest.mark.parametrize("until", NEVER, ids=str)
    def test_no_time(self, path, until):
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError), match="until"):
            opened(path, eps=1).reserve(TWO, purpose="x", until=until)

    def test_not_asked(self, path):
        """A question that is refused or remembered pays nothing, and one that fails stays paid; the rest comes back."""
        ledger = opened(path, eps=2, policy={"refuse_statistics": ["max"]})
        data = pdrisk.Dataset(people(), ledger=ledger)
        first = data.count(eps=0.2)
        held = ledger.reserve([{"eps": 0.3}] * 3, purpose="x")
        refused(lambda: data.max("hours", bounds=(0, 9), eps=0.3, ledger=held), "does not allow", pdrisk.PolicyError)
        refused(lambda: count(held, 0.3, by="age", keys="observed"), "reveals which groups occur", pdrisk.PolicyError)
        with held:
            assert data.count(eps=0.2).value == first.value and held.left.queries == 3
            with pytest.raises(pdrisk.QueryFailedError):
                count(None, 0.3, where=lambda frame: 1 / 0)
        assert held.left == Spent(Fraction(3, 5), 2, Fraction(0), held.left.mu2)
        count(held, 0.3, by="age", keys=[30, 41])  # the same again, with keys that may be asked for
        held.close()
        assert ledger.remaining().spent == 0.8 and left(ledger)[0] == 1.2 and ledger.verify()


class TestWhoPays:
    """The reservation pays in its block, whatever names its ledger there."""

    def test_data_of_the_ledger(self, path):
        ledger = opened(path, eps=1)
        data = pdrisk.Dataset(people(), ledger=ledger)
        held = ledger.reserve([{"eps": 0.1}] * 5, purpose="x")
        with held:
            data.count(eps=0.1)
            with opened(path):
                people().dprisk.count(eps=0.1)
            count(ledger)
            pdrisk.sql("SELECT COUNT(*) FROM people", eps=0.1, people=people())
        data.count(eps=0.1, where="age > 30")
        assert held.left.queries == 1
        assert ledger.history()["event"].tolist().count("paid") == 5 and ledger.verify()

    def test_several_questions_of_one_call(self, path):
        """They are judged together before the first is paid."""
        ledger = opened(path, eps=1)
        held = ledger.reserve(TWO, purpose="x")
        said = "SELECT COUNT(*) AS a FROM people WHERE age > 30 UNION ALL SELECT COUNT(*) FROM people WHERE age <= 30"
        refused(lambda: pdrisk.sql(said, eps=0.6, ledger=held, people=people()), "is left of reservation 2")
        assert events(ledger, "paid") == []
        pdrisk.sql(said, eps=0.5, ledger=held, people=people())
        assert ledger.remaining().spent == 0.5 and held.left == Spent()

    def test_pickled(self, path):
        held = pickle.loads(pickle.dumps(opened(path, eps=1).reserve(TWO, purpose="x")))
        count(held, 0.3)
        assert held.left.eps == Fraction(1, 5) and held.purpose == "x"

    def test_no_reservation_in_one(self, path):
        held = opened(path, eps=1).reserve(TWO, purpose="x")
        refused(lambda: held.reserve(TWO, purpose="y"), "holds no other", pdrisk.ParameterError)


class TestAnalysts:
    """For oneself, or by the owner for others; the limits are those of whoever asks."""

    def test_of_the_owner_for_another(self, path):
        owner = opened(path, "owner", eps=1, each_analyst={"eps": 0.4})
        refused(lambda: owner.reserve(TWO, analyst="Bob", purpose="x"), "analyst 'Bob'")
        made = owner.reserve({"eps": 0.4}, analyst="Bob", purpose="x")
        bob, eve = opened(path, "bob"), opened(path, "eve")
        assert left(bob)[0] == 0 and left(eve)[0] == 0.4 and eve.reservations() == []
        refused(lambda: count(bob, 0.1), "analyst 'bob'")
        (held,) = bob.reservations()
        assert held.number == made.number == owner.reservations()[0].number
        count(held, 0.3)
        assert bob.history()["analyst"].tolist()[-1] == "Bob"
        made.close()
        assert left(bob)[0] == pytest.approx(0.1) and owner.verify()

    def test_only_the_owner(self, path):
        opened(path, "owner", eps=1)
        eve = opened(path, "eve")
        refused(lambda: eve.reserve(TWO, analyst="bob", purpose="x"), "only the owner", pdrisk.ParameterError)
        held = opened(path, "bob").reserve(TWO, purpose="x")
        held._analyst = "eve"
        refused(lambda: count(held, 0.1), "reservation 2 is that of 'bob'", pdrisk.PolicyError)
        refused(held.close, "only 'eve' or the owner|only 'bob' or the owner", pdrisk.PolicyError)


class TestLimitsLater:
    """Limits of a day and of a query hold for each question; a lowered limit holds for what is reserved, too."""

    def test_of_a_day(self, path):
        ledger = opened(path, eps=2, eps_per_day=0.4, eps_per_query=0.3)
        held = ledger.reserve([{"eps": 0.3}] * 4, purpose="a week")
        count(held, 0.3)
        refused(lambda: count(held, 0.2), r"0.1 of 0.4 is left for this day \(UTC\)")
        refused(lambda: count(held, 0.35), "for one query")
        count(held, 0.1)
        assert ledger.verify()

    def test_lowered(self, path):
        ledger = opened(path, eps=2)
        held = ledger.reserve([{"eps": 0.5}] * 2, purpose="x")
        count(held, 0.5)
        ledger.amend(eps=0.7)
        refused(lambda: count(held, 0.5), "0.2 of 0.7 is left")
        count(held, 0.2)
        assert ledger.remaining().spent == 0.7 and ledger.verify()


def test_in_a_file_and_on_a_server(store):
    own = {} if isinstance(store, str) else {"analyst": "ann"}
    ledger = pdrisk.Ledger(store, dataset="survey", eps=1, success=0.75, **own)
    held = ledger.reserve(TWO, purpose="tables")
    refused(lambda: count(ledger, 0.6), "0.5 of 1 is left")
    count(held, 0.3)
    (again,) = pdrisk.Ledger(store, dataset="survey", **own).reservations()
    assert again.left == held.left and again.left.eps == Fraction(1, 5)
    again.close()
    assert left(ledger) == (0.7, limit_of(0.75) - payable(squared(mu_of_pure(0.3)))) and ledger.verify()


@needs_server
def test_rights_of_analysts(url):
    """Those that docs/ledger.md lists are enough: for one's own reservation, and for one that the owner made."""
    owner = pdrisk.Ledger(url, dataset="survey", eps=9, success=0.9, each_analyst={"eps": 1})
    with role(url) as (own, name):
        run(url, re.sub(r"\banalysts\b", name, grants()))
        analyst = pdrisk.Ledger(own, dataset="survey")
        count(analyst.reserve(TWO, purpose="own"), 0.3)
        made = owner.reserve({"eps": 0.4}, analyst=name, purpose="of the owner")
        assert [held.number for held in analyst.reservations()] == [2, made.number]
        count(analyst.reservations()[1], 0.4)
        refused(lambda: count(made, 0.1), f"reservation {made.number} is that of '{name}'", pdrisk.PolicyError)
        refused(lambda: analyst.reserve(TWO, analyst="eve", purpose="x"), "only the owner", pdrisk.ParameterError)
        assert analyst.remaining().eps == 0.1 and owner.verify()


class TestTampering:
    """The audit finds sums of reservations that are not those of the records, and payments that no reservation held."""

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE spending SET eps = '9' WHERE period = 'reserved 2'",
            "UPDATE spending SET mu2 = '9' WHERE period = 'reserved 2'",
            "UPDATE spending SET queries = 9 WHERE period = 'reserved 2'",
            "DELETE FROM spending WHERE period = 'reserved 2'",
            "INSERT INTO spending VALUES ('survey', '', 'reserved 3', '1', 1, '0', '1')",
        ],
    )
    def test_sums(self, path, change):
        ledger = opened(path, eps=1)
        count(ledger.reserve(TWO, purpose="x"), 0.3)
        tables(path, change)
        refused(ledger.verify, "its sums are not those of its records", pdrisk.LedgerError)

    def test_payments(self, path, monkeypatch):
        ledger = opened(path, eps=1)
        held = ledger.reserve({"eps": 0.1}, purpose="x")
        monkeypatch.setattr("pdrisk._ledger.accounts.account.ReservedBudget.check", lambda *_: None)
        monkeypatch.setattr("pdrisk._ledger.accounts.account.ReservedBudget.after", lambda self, cost: self)
        count(held, 0.2)
        monkeypatch.undo()
        refused(ledger.verify, "record 3 went over the limits that held then", pdrisk.LedgerError)

    def test_what_was_set_aside(self, path, monkeypatch):
        """A payment that took what was reserved for others is found, though the sums are right."""
        ledger = opened(path, eps=1)
        ledger.reserve(TWO, purpose="x")
        with monkeypatch.context() as patch:
            patch.setattr(Account, "reservations", lambda _: [])
            count(ledger, 0.6)
        refused(ledger.verify, "record 3 went over the limits that held then", pdrisk.LedgerError)

    def test_nothing_half_way(self, path, monkeypatch):
        """Whatever fails while it is written leaves neither a record nor a sum."""
        ledger = opened(path, eps=1)
        head, real = ledger.verify(), Account._write_spent

        def broken(self, who, at, after):
            real(self, who, at, after)
            raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr(Account, "_write_spent", broken)
            with pytest.raises(RuntimeError):
                ledger.reserve(TWO, purpose="x")
        assert ledger.verify() == head and left(ledger)[0] == 1
