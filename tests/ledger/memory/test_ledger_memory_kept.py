"""What a ledger keeps of answers: under many hands, killed half-way, and when somebody else writes into it."""

import json
import os
import stat
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import asked, events, of, people, script, tables, values
from pdrisk import Dataset
from pdrisk._ledger.accounts.memory import answer_of, text_of

ASKING = """
    frame = pd.DataFrame({"x": range(60)})
    d = pdrisk.Dataset(frame, name="survey", ledger=sys.argv[1], person="x", per_person="one")
    ask = lambda: d.count(eps=1).value
"""


def count(frame, ledger, eps=1, **options):
    return of(frame).count(eps=eps, ledger=ledger, **options)


def counted(frame, ledger):
    return Dataset(frame, ledger=ledger).count(eps=1)


@pytest.fixture
def two(book):
    """A ledger that keeps two answers: a frame, the questions and what they got."""
    ledger = book(eps=5)
    d = Dataset(people(), ledger=ledger)
    asks = [partial(count, d), partial(count, d, eps=2, where="age > 30")]
    return ledger, asks, [asked(ledger, ask)[0] for ask in asks]


TAMPERED = {  # of `answers`, written into a copy without keys
    "another number": "UPDATE held SET body = '[[1.0]]'",
    "one digit more": "UPDATE held SET body = replace(body, ']]', '1]]')",
    "another record": "UPDATE held SET record = 2",
    "the other's record": "UPDATE held SET record = (SELECT max(record) FROM answers)",
    "the other's answer": "UPDATE held SET body = (SELECT body FROM answers ORDER BY record LIMIT 1)",
    "no JSON": "UPDATE held SET body = 'nothing'",
    "NULL for JSON": "UPDATE held SET body = 'null'",
    "a blob": "UPDATE held SET body = x'00'",
    "a record that is none": "UPDATE held SET record = 99",
    "questions exchanged": "UPDATE held SET question = "
    "(SELECT o.question FROM answers o WHERE o.record <> held.record)",
    "one answer to another question": "INSERT INTO held SELECT dataset, 'other', record, body FROM answers LIMIT 1",
    "of another dataset": "UPDATE held SET dataset = 'other'",
}


class TestTampered:
    """An answer that somebody changed, or put in the place of another, is never given, and found by verify()."""

    @pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
    def test_found(self, two, path, statement):
        ledger, asks, answers = two
        ledger.verify()
        for each in (
            "CREATE TABLE held AS SELECT * FROM answers",
            statement,
            "DELETE FROM answers",
            "INSERT INTO answers SELECT * FROM held",
            "DROP TABLE held",
        ):
            tables(path, each)
        with pytest.raises(pdrisk.LedgerError, match="broken"):
            ledger.verify()
        for ask, answer in zip(asks, answers, strict=True):
            try:
                given, cost = asked(ledger, ask)
            except (pdrisk.LedgerError, pdrisk.BudgetExceededError):
                continue
            assert given == answer or cost

    def test_taken_out(self, two, path):
        """Then it is paid again."""
        ledger, asks, _ = two
        tables(path, "DELETE FROM answers")
        ledger.verify()
        assert asked(ledger, asks[0])[1] == 1

    @pytest.mark.parametrize("body", ["[[1.0, 2.0]]", "[[1.0], [2.0]]", "[]", "[[]]", "[[[1, 2], [3, 4]]]"])
    def test_of_another_form(self, two, path, monkeypatch, body):
        """Even with all hashes made anew."""
        ledger, asks, _ = two
        monkeypatch.setattr("pdrisk._ledger.accounts.account.digest", lambda *_: json.loads(record)["answer"])
        ((record,),) = tables(path, "SELECT body FROM records WHERE event = 'kept' LIMIT 1")
        tables(path, "UPDATE answers SET body = ? WHERE record = (SELECT min(record) FROM answers)", body)
        with pytest.raises(pdrisk.LedgerError, match=r"another question.*verify"):
            asks[0](ledger)

    @pytest.mark.parametrize("numbers", [[0.1, -0.0, 1e308, 5e-324], [float("nan")], [], [2.0**53 + 2]])
    def test_every_digit(self, numbers):
        """NaN is what was withheld."""
        (again,), draws, _ = answer_of(text_of([pd.array(numbers, dtype="float64").to_numpy()], ["0f"]), "")
        assert [*map(repr, again.tolist())] == [*map(repr, numbers)] and draws == ["0f"]

    @pytest.mark.parametrize("numbers", [[3, -1], [[2**62, -5, 0], [2**53 + 1, 7, 1]], [[4]]], ids=str)
    def test_whole_numbers(self, numbers):
        """Stay whole, in the shape that they had, beside lines of floats."""
        (whole, floats), draws, keys = answer_of(text_of([np.array(numbers), np.array([25.0, -0.0])], ["0f", "1f"]), "")
        assert keys is None and draws == ["0f", "1f"]
        assert whole.dtype == np.int64 and floats.dtype == np.float64
        assert whole.tolist() == numbers and repr(floats.tolist()) == "[25.0, -0.0]"


class TestManyHands:
    """Payments, records and answers agree, whoever asks at once and wherever a process dies."""

    @pytest.mark.slow
    def test_two_processes(self, book, path):
        """Started together, each gets an answer of its own or the other's; what is kept later is one of them."""
        ledger = book()
        d = Dataset(pd.DataFrame({"x": range(60)}), ledger=ledger, person="x", per_person="one")
        found = []
        threads = [
            threading.Thread(target=lambda: found.extend(script([ASKING, "print(ask(), ask())"], path)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        (answer,), cost = asked(ledger, partial(count, d))
        assert cost == 0 and repr(answer) in found
        paid = events(ledger, "paid")
        assert len(set(found)) <= len(paid) == len(events(ledger, "kept")) == ledger.remaining().spent <= 2
        assert len(events(ledger, "remembered")) == 5 - len(paid)
        ledger.verify()

    def test_threads(self, book):
        ledger = book()
        d = Dataset(people(), ledger=ledger)
        start, found = threading.Barrier(6), []

        def work():
            start.wait()
            found.extend(tuple(values(count(d, ledger, eps=0.1))) for _ in range(3))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        paid = len(events(ledger, "paid"))
        assert len(found) == 18 and len(set(found)) == paid == round(10 * ledger.remaining().spent)
        assert len(events(ledger, "remembered")) == 18 - paid
        ledger.verify()

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize(
        ("place", "left"),
        [
            ("pdrisk._ledger.ledger.Ledger.keep", ["opened", "paid"]),
            ("pdrisk._ledger.accounts.account.Account.keep", ["opened", "paid"]),
            ("pdrisk._ledger.accounts.account.Account.keep_facts", ["opened", "paid"]),
            ("pdrisk._ledger.accounts.account.Account.keep_odometer", ["opened", "paid"]),
            ("pdrisk._pandas.noisy.answers.one_answer", ["opened", "paid", "kept"]),
        ],
    )
    def test_killed(self, book, path, place, left):
        """Before it is kept: paid, and paid again. After: kept, though nobody saw it."""
        ledger = book(policy={"curators": ["ann"]})
        d = Dataset(pd.DataFrame({"x": range(60)}), ledger=ledger, person="x", per_person="one")
        text = """
            import importlib
            owner, name = sys.argv[2].rsplit(".", 1)
            module, _, kind = owner.rpartition(".") if owner[owner.rfind(".") + 1].isupper() else (owner, "", "")
            owner = importlib.import_module(module)
            owner = getattr(owner, kind) if kind else owner
            setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            ask()
        """
        script([ASKING, text], path, place, killed=True)
        assert events(ledger) == [left[0], "person", *left[1:]]
        assert (
            len(tables(path, "SELECT * FROM curator_releases"))
            == left.count("kept")
            == len(tables(path, "SELECT * FROM curator_people"))
        )
        (loss,) = ledger.odometer([0])["loss"]
        assert loss == 1
        assert asked(ledger, partial(count, d))[1] == 1 - left.count("kept")
        ledger.verify()

    def test_what_cannot_be_kept(self, book, path, monkeypatch):
        """The answer is paid and given; nothing of it is remembered, and everybody counts it in full."""
        frame = people()
        ledger = book(policy={"curators": ["ann"], "curator_facts": True})
        d = Dataset(frame, ledger=ledger, person="pid", per_person="one")

        def failing(*_):
            raise pdrisk.LedgerError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr("pdrisk._ledger.accounts.account.Account.keep_odometer", failing)
            assert asked(ledger, partial(count, d, where="age > 30"))[1] == 1
        assert [len(tables(path, f"SELECT * FROM {name}")) for name in ("answers", "curator_releases")] == [0, 0]
        assert set(ledger.odometer(frame)["loss"]) == {1.0} == set(ledger.facts()["loss"])
        assert asked(ledger, partial(count, d, where="age > 30"))[1] == 1


class TestSecret:
    """The secret is made once for each user, whole, and for no other eyes; without one, nothing is remembered."""

    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        monkeypatch.delenv("PDRISK_SECRET")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
        return tmp_path / "settings" / "pdrisk" / "secret"

    def test_made_once(self, home, book):
        frame = people()
        assert asked(book(), partial(counted, frame))[1] == 1
        held = home.read_bytes()
        assert len(held) == 32 and stat.S_IMODE(os.stat(home).st_mode) == 0o600
        assert asked(book(), partial(counted, frame))[1] == 0
        assert home.read_bytes() == held and [*home.parent.iterdir()] == [home]
        home.unlink()
        assert asked(book(), partial(counted, frame))[1] == 1
        assert home.read_bytes() != held

    def test_not_made_without_need(self, home, book):
        frame = people()
        count(frame, book())
        for said in ({"version": "1"}, {"version": "1", "person": "pid", "per_person": "one"}):
            Dataset(frame, ledger=book(), **said)
        Dataset(frame, person="pid", per_person="one").count(eps=1)
        assert not home.exists()

    @pytest.mark.parametrize("wrong", [b"", b"short", b"x" * 33])
    def test_no_secret(self, home, book, path, wrong):
        home.parent.mkdir(parents=True)
        home.write_bytes(wrong)
        with pytest.raises(pdrisk.LedgerError, match=r"PDRISK_SECRET.*version="):
            Dataset(people(), ledger=book())
        assert events(book()) == ["opened"] and home.read_bytes() == wrong

    def test_nowhere_to_keep_it(self, home, book, tmp_path):
        (tmp_path / "settings").write_text("a file")
        with pytest.raises(pdrisk.LedgerError, match="cannot be kept"):
            Dataset(people(), ledger=book())
