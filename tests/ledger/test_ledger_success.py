"""A budget in attack success: what the filter lets through, what it says, and old ledgers that get one."""

import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from functools import partial
from math import erfc, sqrt
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import count, people, tables, typed, version_one
from pdrisk._core.risks.gaussian_dp import limit_of, mu_of_laplace, mu_of_pure, squared, success_of
from pdrisk._ledger.rules.limits import payable
from pdrisk._ledger.rules.success_limits import most_of, reachable
from pdrisk._ledger.store.store import VERSION, check_version

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
M2 = {0.6: 0.506694**2, 0.75: 1.348980**2, 0.9: 2.563103**2}  # 2 z(1 - success), from tables of the normal


def opened(path, **limits):
    return pdrisk.Ledger(path, dataset="survey", **{"analyst": "ann"} | limits)


def mean(ledger, eps, **options):
    options = {"bounds": (0, 100), "mechanism": "laplace", "ledger": ledger} | options
    return people().dprisk.sum("age", eps=eps, **options)


def paid(ledger):
    """The m of each payment."""
    table = ledger.history()
    return table.loc[table["event"] == "paid", "mu"].tolist()


def accepted(ask, most=200):
    """How many answers are given before the first refusal, and that."""
    for number in range(most):
        try:
            ask()
        except pdrisk.BudgetExceededError as error:
            return number, error
    raise AssertionError("nothing was refused")


def price(mu):
    """What is paid for an m: its square, rounded up to a decimal if it is long."""
    return payable(squared(mu))


class TestFilter:
    """Squares of m add up to at most M squared, exactly."""

    @pytest.mark.parametrize(("ask", "eps"), [(mean, 0.255), (count, 0.24)], ids=["laplace", "counts"])
    def test_twenty(self, path, ask, eps):
        """SUCCESS.md's table: at .75 twenty answers, 4.65 and 4.39 times the eps that sums of eps allow."""
        ledger = opened(path, success=0.75)
        number, _ = accepted(lambda: ask(ledger, eps))
        assert number == 20 and ledger.verify()
        assert sum(m * m for m in paid(ledger)) <= M2[0.75] < 21 * paid(ledger)[0] ** 2

    @pytest.mark.parametrize("success", M2)
    def test_one_count_uses_it_up(self, path, success):
        """Tight: the best attacker on one count of eps ln(p/(1-p)) is right p of the time."""
        ledger, eps = opened(path, success=success), float(np.log(success / (1 - success)))
        with pytest.raises(pdrisk.BudgetExceededError):
            count(ledger, eps * (1 + 1e-9))
        count(ledger, eps * (1 - 1e-9))
        assert ledger.remaining().success < 0.5 + 1e-4
        with pytest.raises(pdrisk.BudgetExceededError):
            count(ledger, 1e-3)

    def test_exactly(self, path):
        """Against exact fractions of the squares, for 60 answers that are chosen at random."""
        rng, ledger, total = np.random.default_rng(7), opened(path, success=0.9), Fraction(0)
        for _ in range(60):
            eps, is_count = round(float(rng.uniform(0.02, 0.9)), 3), rng.random() < 0.5
            own = squared((mu_of_pure if is_count else mu_of_laplace)(eps))
            fits = total + own <= limit_of(0.9)
            near = abs(float((total + own) / limit_of(0.9)) - 1) < 1e-6  # noise on a lattice costs a little more
            assert not near
            try:
                (count if is_count else mean)(ledger, eps)
            except pdrisk.BudgetExceededError:
                assert not fits
            else:
                assert fits
                total += own
        assert float(total) == pytest.approx(sum(m * m for m in paid(ledger)), rel=1e-6)

    @pytest.mark.parametrize(
        ("limits", "eps", "words"),
        [
            ({"eps": 1}, 1.1, "it asks for eps 1.1, 1 of 1 is left"),
            ({"risk": 0.6}, 0.5, "it asks for eps 0.5"),
            ({"eps_per_query": 0.3}, 0.4, "for one query"),
            ({"eps_per_day": 0.5}, 0.6, r"for this day \(UTC\)"),
            ({"eps": 9, "queries": 3}, 2.5, "75 of 100 times"),
        ],
        ids=str,
    )
    def test_all_limits_hold(self, path, limits, eps, words):
        ledger = opened(path, success=0.75, **limits)
        with pytest.raises(pdrisk.BudgetExceededError, match=words):
            count(ledger, eps)
        count(ledger, 0.2)
        assert ledger.verify()

    def test_of_each_analyst(self, path):
        owner = opened(path, success=0.75, analyst="owner", each_analyst={"success": 0.6})
        ann = opened(path)
        number, error = accepted(lambda: count(ann, 0.1))
        assert number == int(M2[0.6] / mu_of_pure(0.1) ** 2) and "60 of 100" in str(error)
        assert "analyst 'ann'" in str(error)
        owner.amend(analysts={"ann": {"success": 0.7}})
        count(ann, 0.1)
        owner.amend(analysts={"bob": {"success": 0.55}})
        with pytest.raises(pdrisk.BudgetExceededError, match="analyst 'bob'"):
            count(opened(path, analyst="bob"), 0.3)
        assert ann.remaining().success < owner.remaining().success
        assert owner.verify()

    @pytest.mark.parametrize("wrong", [0.5, 1, 0, -1, 1.5, np.nan, "0.75", True, [0.75]], ids=repr)
    def test_no_limit(self, path, wrong):
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError), match="success"):
            opened(path, success=wrong)
        assert not path.exists()

    def test_known_again(self, path):
        opened(path, success=0.75)
        assert opened(path, success=Fraction(3, 4)).limits.success == Fraction(3, 4)
        with pytest.raises(pdrisk.ParameterError, match=r"has other limits \(success=0.75\)"):
            opened(path, success=0.8)

    def test_groups_looked_at_pay_as_counts(self, path):
        ledger = opened(path, success=0.75, policy={"least_group": {"size": 5, "eps": 0.1}})
        mean(ledger, 0.3)
        assert paid(ledger)[0] == pytest.approx(sqrt(mu_of_laplace(0.3) ** 2 + mu_of_pure(0.1) ** 2), rel=1e-6)
        with pytest.raises(pdrisk.BudgetExceededError, match=r"with its people counted for eps 0\.1") as caught:
            mean(ledger, 3)
        fits = float(str(caught.value).split("Ask with eps=")[1].split(" ")[0])
        with pytest.raises(pdrisk.BudgetExceededError):
            mean(ledger, fits * 1.0001)
        mean(ledger, fits)
        with pytest.raises(pdrisk.BudgetExceededError, match=r"nothing|reach") as caught:
            mean(ledger, 0.01)
        assert "Have the owner raise" in str(caught.value)

    def test_remembered_answers_are_free(self, path):
        ledger = opened(path, success=0.6)
        data = pdrisk.Dataset(people(), ledger=ledger)
        first = data.count(eps=0.4)
        with pytest.raises(pdrisk.BudgetExceededError):
            data.count(eps=0.4, fresh=True)
        assert data.count(eps=0.4).value == first.value and len(paid(ledger)) == 1

    def test_nothing_is_read_before(self, path):
        """Whether a filter fails on somebody's record is not told by a question that cannot be paid."""
        ledger, looked = opened(path, success=0.51), []
        with pytest.raises(pdrisk.BudgetExceededError):
            count(ledger, 5, where=lambda frame: looked.append(frame))
        assert looked == []

    def test_failed_stays_paid(self, path):
        ledger = opened(path, success=0.75)
        with pytest.raises(pdrisk.QueryFailedError):
            count(ledger, 0.5, where=lambda frame: 1 / 0)
        assert ledger.remaining().mu2 == limit_of(0.75) - price(mu_of_pure(0.5))

    def test_several_at_once_are_refused_before_the_first(self, path):
        """A SELECT of two tables' worth of questions is one price."""
        ledger = opened(path, success=0.6)
        with pytest.raises(pdrisk.BudgetExceededError):
            people().dprisk.agg({"age": ["max", "median"]}, eps=1.5, bounds=(0, 100), ledger=ledger)
        assert paid(ledger) == []

    def test_private_keys_add_delta(self, path):
        ledger = opened(path, success=0.75, delta=1e-3)
        frame = typed(pd.DataFrame({"town": ["a"] * 90 + ["b"] * 80}))
        frame.dprisk.count(eps=0.5, by="town", keys="private", delta=1e-4, ledger=ledger)
        left = ledger.remaining()
        assert left.success_limit == pytest.approx(1e-3 + (1 - 1e-3) * 0.75, abs=1e-12)
        assert "at most 75.03 of 100 times" in repr(left) and paid(ledger)[0] < mu_of_pure(0.5)
        assert ledger.verify()


class TestAdvice:
    """A refusal says what is left, and what would fit: it fits, and a little more does not."""

    ASKS: ClassVar = {
        "count": lambda own: people().dprisk.count(**own),
        "sum": lambda own: people().dprisk.sum("age", bounds=(0, 100), mechanism="laplace", **own),
        "mean": lambda own: people().dprisk.mean("age", bounds=(0, 100), **own),
        "median": lambda own: people().dprisk.median("age", bounds=(0, 100), **own),
        "std": lambda own: people().dprisk.std("age", bounds=(0, 100), **own),
        "nine quantiles": lambda own: people().dprisk.quantile(
            "age", q=[at / 10 for at in range(1, 10)], bounds=(0, 100), **own
        ),
        "table": lambda own: people().dprisk.count(by="region", keys=["north", "south", "east"], **own),
        "two": lambda own: people().dprisk.agg({"age": ["mean", "max"]}, bounds=(0, 100), **own),
    }

    @pytest.mark.whole
    @pytest.mark.parametrize("way", ["eps", "success"])
    @pytest.mark.parametrize("name", ASKS)
    def test_fits(self, path, name, way):
        ledger, ask = opened(path, success=0.6), self.ASKS[name]
        count(ledger, 0.3)
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            ask({"eps": 6, "ledger": ledger})
        said = str(caught.value)
        fits = float(said.split(f"{way}=")[1].split(" ")[0])
        more = fits * 1.001 if way == "eps" else fits + 0.001
        with pytest.raises(pdrisk.BudgetExceededError):
            ask({way: more, "ledger": ledger})
        ask({way: fits, "ledger": ledger})
        assert ledger.verify() and caught.value.missing == caught.value.requested - caught.value.remaining > 0

    def test_words(self, path):
        ledger = opened(path, success=0.75)
        count(ledger, 0.8)
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(ledger, 1)
        assert str(caught.value) == (
            "cannot answer count(): with it, the best attacker could be right about a person more than 75 of 100 times "
            "by all answers; one more answer may still reach success 0.6762, and this would reach 0.7311. Ask with "
            "eps=0.736724 or success=0.6762 or less, or have the owner raise the limit of dataset 'survey'."
        )


class TestRemaining:
    """What one more answer may reach, and no total that is not sure."""

    def test_may_be_asked_for(self, path):
        """What one more answer may reach, asked for, is accepted and leaves next to nothing."""
        ledger = opened(path, success=0.75)
        for _ in range(3):
            count(ledger, 0.4)
        left = ledger.remaining()
        assert left.mu2 == limit_of(0.75) - 3 * price(mu_of_pure(0.4))
        assert 0 <= success_of(left.mu2) - left.success < 1e-9
        count(ledger, None, success=left.success)
        assert ledger.remaining().success < 0.5001

    def test_words_with_a_limit(self, path):
        ledger = opened(path, success=0.75, eps=5)
        count(ledger, 0.4)
        said = repr(ledger.remaining())
        assert "success left      one more answer may reach 0.73" in said
        assert "right about whether one record is in these data at most 75 of 100 times," in said
        assert "fixed beforehand" not in said
        assert "75 of 100" in ledger.remaining()._repr_html_()

    @pytest.mark.whole
    @pytest.mark.parametrize("percent", [51, 55, 57, 58, 69, 90, 99])
    def test_as_it_was_written(self, path, percent):
        assert f"at most {percent} of 100 times" in repr(opened(path, success=percent / 100).remaining())

    def test_words_without_one(self, path):
        """Only the sentence of a plan that was fixed beforehand, and the belief that no outcome exceeds."""
        ledger = opened(path, eps=5)
        count(ledger, 0.4)
        count(ledger, 0.4)
        said = repr(ledger.remaining())
        assert "Had these eps been fixed beforehand" in said and "worst-case risk   0.69 of" in said
        reached = 1 - erfc(sqrt(2) * mu_of_pure(0.4) / 2 / sqrt(2)) / 2  # Phi(sqrt(2) m / 2)
        assert ledger.remaining().fixed_success == pytest.approx(reached, abs=1e-9)
        assert (ledger.remaining().success, ledger.remaining().mu2, ledger.remaining().success_limit) == (None,) * 3

    def test_no_promise_that_was_not_kept(self, path):
        """A limit that came when more was spent already, and one that was higher before."""
        ledger = opened(path, eps=9)
        count(ledger, 2)
        ledger.amend(success=0.6)
        assert ledger.remaining().success_limit is None and "fixed beforehand" in repr(ledger.remaining())
        ledger.amend(success=0.95)
        ledger.amend(success=0.9)
        assert ledger.remaining().success_limit == 0.95 and "at most 95 of 100 times" in repr(ledger.remaining())

    def test_reachable(self):
        """Asked for, it never costs more than what is left."""
        for left in [Fraction(1, 10**9), *(Fraction(at, 97) ** 3 for at in range(1, 400))]:
            asked = Fraction(str(reachable(left)))
            assert most_of(asked) <= left < most_of(asked + Fraction(1, 10**9))

    def test_hardly_any_left(self, path):
        """No text tells anybody to ask for the success of guessing."""
        ledger = opened(path, success=0.6)
        count(ledger, 0.4054651)
        assert ledger.remaining().success > 0.5 and "success left      hardly any" in repr(ledger.remaining())
        assert "hardly any success is left" in " ".join(pdrisk.explain(so_far=ledger, audience="analyst").split())
        with pytest.raises(pdrisk.BudgetExceededError, match="hardly anything is left, and this would") as caught:
            count(ledger, 0.1)
        assert "success=" not in str(caught.value) and "still reach" not in str(caught.value)

    @pytest.mark.parametrize(
        ("limits", "promised"), [({"eps": 0.5}, 0.6225), ({"eps": 5}, 0.75), ({"eps": 0.5, "delta": 1e-6}, 0.6225)]
    )
    def test_the_smaller_of_two_promises(self, path, limits, promised):
        ledger = opened(path, success=0.75, **limits)
        assert ledger.remaining().success_limit == pytest.approx(promised, abs=1e-4)
        assert f"at most {100 * promised:g}" in repr(ledger.remaining()) or promised < 0.75
        ledger.amend(eps=9)
        ledger.amend(eps=0.4)  # what was once allowed counts
        assert ledger.remaining().success_limit == pytest.approx(0.75, abs=1e-4)

    @pytest.mark.parametrize("least", [None, {"size": 5, "eps": 0.1}])
    def test_advice_about_several_queries(self, path, tmp_path, least):
        """What a refusal advises for a call fits: with looks, no success= is advised, as the call pays one for each."""
        text, rule = "SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(*) FROM t WHERE x > 3", {"least_group": least}
        first, second, third = (
            pdrisk.Ledger(tmp_path / f"{at}.db", dataset="s", success=0.6, policy=rule if least else None)
            for at in range(3)
        )
        frame = pd.DataFrame({"x": range(100)})
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            pdrisk.sql(text, eps=3, t=frame, ledger=first)
        said = str(caught.value)
        assert ("success=" in said) == (least is None)
        pdrisk.sql(text, eps=float(re.search(r"eps=([\d.]+\d)", said.split("Ask with")[1])[1]), t=frame, ledger=second)
        if least is None:
            pdrisk.sql(text, success=float(re.search(r"success=([\d.]+\d)", said)[1]), t=frame, ledger=third)

    @pytest.mark.parametrize("left", [100, 269, 271, 1000, 10**6])
    def test_so_much_that_floats_call_it_certain(self, path, left):
        """What is printed may be asked for, however much is left."""
        found = reachable(Fraction(left))
        assert 0.99 < found < 1 and most_of(Fraction(str(found))) <= left

    def test_a_limit_next_to_certainty(self, path):
        ledger = opened(path, success=1 - 2**-53)
        count(ledger, 0.1)
        assert 0.9999 < ledger.remaining().success < 1
        with pytest.raises(pdrisk.BudgetExceededError, match="one more answer may still reach success"):
            count(ledger, 10**6)

    def test_nothing_left(self, path):
        ledger = opened(path, success=0.75)
        count(ledger, 1)
        ledger.amend(success=0.6)
        assert (ledger.remaining().mu2, ledger.remaining().success) == (0, 0.5)
        assert "success left      none" in repr(ledger.remaining())


class TestAmend:
    """A limit that is set or changed later counts all that was paid."""

    def test_raised_as_if_granted_from_the_start(self, path):
        ledger = opened(path, success=0.6)
        number, _ = accepted(lambda: count(ledger, 0.1))
        ledger.amend(success=0.75)
        more, _ = accepted(lambda: count(ledger, 0.1))
        assert number + more == int(M2[0.75] / mu_of_pure(0.1) ** 2) and ledger.verify()

    def test_taken_away(self, path):
        ledger = opened(path, success=0.6, eps=3)
        ledger.amend(success=None)
        count(ledger, 2)
        assert ledger.limits.success is None
        with pytest.raises(pdrisk.ParameterError, match="needs a limit"):
            ledger.amend(eps=None)

    def test_later(self, path):
        """What was paid before there was such a limit, of every mechanism, by its own m."""
        ledger = opened(path, eps=9)
        mean(ledger, 1)
        count(ledger, 1)
        ledger.amend(success=0.9)
        left = float(ledger.remaining().mu2)
        assert left == pytest.approx(M2[0.9] - mu_of_laplace(1) ** 2 - mu_of_pure(1) ** 2, abs=1e-5)

    @pytest.mark.parametrize("then", ["paid before", "paid after"])
    def test_old_ledgers(self, path, then):
        """Their payments count as the costliest answers of their eps, each by itself."""
        ledger = opened(path, eps=9)
        mean(ledger, 0.5)
        mean(ledger, 0.25)
        ledger.close()
        head = version_one(path)
        ledger = opened(path)
        assert tables(path, "PRAGMA user_version") == [(VERSION,)] and ledger.verify(head) == head
        spent = squared(mu_of_pure(0.5)) + squared(mu_of_pure(0.25))
        assert paid(ledger) == pytest.approx([mu_of_pure(0.5), mu_of_pure(0.25)])
        if then == "paid after":
            count(ledger, 0.125)
            spent += price(mu_of_pure(0.125))
        ledger.amend(success=0.75)
        assert ledger.remaining().mu2 == limit_of(0.75) - spent
        number, _ = accepted(lambda: count(ledger, 0.2))
        assert number == int((limit_of(0.75) - spent) / squared(mu_of_pure(0.2)))
        assert ledger.verify(head)[0] > head[0]
        tables(path, "UPDATE spending SET mu2 = '1/1000'")
        with pytest.raises(pdrisk.LedgerError, match="its sums are not those of its records"):
            ledger.verify()

    def test_old_sums(self, store):
        """In a file and on a server, of each analyst and of all: what an older version left has no m."""
        own = {} if isinstance(store, str) else {"analyst": "ann"}
        ledger = pdrisk.Ledger(store, dataset="survey", eps=9, success=0.9, each_analyst={"success": 0.8}, **own)
        for eps in (0.5, 0.5, 0.25):
            count(ledger, eps)
        spent = 2 * squared(mu_of_pure(0.5)) + squared(mu_of_pure(0.25))
        with ledger._store.writing() as ask:
            ask("UPDATE spending SET mu2 = NULL")
        assert ledger.remaining().mu2 == limit_of(Fraction(9, 10)) - spent
        count(ledger, 0.125)
        assert ledger.remaining().mu2 == limit_of(Fraction(9, 10)) - spent - price(mu_of_pure(0.125))

    def test_an_older_pdrisk_refuses_it(self, path, monkeypatch):
        """The version before this one, by its own rule."""
        opened(path, success=0.75).close()
        monkeypatch.setattr("pdrisk._ledger.store.sqlite.VERSION", 4)
        monkeypatch.setattr("pdrisk._ledger.store.sqlite.check_version", partial(check_version, known=4))
        with pytest.raises(pdrisk.LedgerError, match=r"newer pdrisk \(version 5 of .*, this one knows 4\): upgrade"):
            opened(path)

    def test_an_older_process_that_goes_on(self, path):
        """It had the file open when it was upgraded, and writes no m: it is refused, not counted for less."""
        count(opened(path, success=0.75))
        older = (
            "INSERT INTO spending (dataset, analyst, period, eps, queries, delta) "
            "VALUES ('survey', '', '', '1', 2, '0') "
            "ON CONFLICT (dataset, analyst, period) DO UPDATE SET eps = excluded.eps, queries = excluded.queries"
        )
        with closing(sqlite3.connect(path)) as other, pytest.raises(sqlite3.IntegrityError, match="upgrade this one"):
            other.execute(older)

    def test_a_forged_payment_is_found(self, path, monkeypatch):
        """A process that lies about m goes over the limit; the audit says so of the record."""
        ledger = opened(path, success=0.6)
        with monkeypatch.context() as lie:
            lie.setattr("pdrisk._ledger.accounts.account.check", lambda *_: None)
            count(ledger, 3)
        with pytest.raises(pdrisk.LedgerError, match="record 2 went over the limits that held then"):
            ledger.verify()
