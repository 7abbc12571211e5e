"""A ledger that was put back to an earlier state answers nothing to whoever has seen a later one."""

import os
import pickle
import random
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest

import pdrisk
from ledgers import people, script
from pdrisk._cli import main
from pdrisk._ledger.store import rollback as seen
from pdrisk._ledger.store.records import START

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def count(ledger, eps):
    return people(9).dprisk.count(eps=eps, ledger=ledger).eps


def over(copy, path):
    """Into the same file, of which nobody sees that it is another."""
    shutil.copyfile(copy, path)


def replaced(copy, path):
    shutil.copyfile(copy, path.with_name("new.db"))
    os.replace(path.with_name("new.db"), path)


def by_sqlite(copy, path):
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def by_hand(copy, path):
    """The rows of the copy, as somebody writes them who may write the file; nothing but the rows is another."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        file.execute("ATTACH ? AS copy", (str(copy),))
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER main.{name}")
        for table in ("records", "spending", "datasets"):
            file.execute(f"DELETE FROM main.{table}")
            file.execute(f"INSERT INTO main.{table} SELECT * FROM copy.{table}")
        for _, sql in triggers:
            file.execute(sql)


def put_back(copy, path):
    """As over, and then some other record is written, so that there are as many as before."""
    shutil.copyfile(copy, path)
    script(
        """
        ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", analyst="ann")
        ledger.amend(eps=1)
        """,
        path,
    )


WAYS = {"over": over, "replaced": replaced, "by SQLite": by_sqlite, "by hand": by_hand, "and written": put_back}
LOOKS = {
    "ask": lambda ledger: count(ledger, 0.01),
    "remaining": pdrisk.Ledger.remaining,
    "history": pdrisk.Ledger.history,
    "verify": pdrisk.Ledger.verify,
    "amend": lambda ledger: ledger.amend(eps=2),
    "facts": pdrisk.Ledger.facts,
    "repr": repr,
}


@pytest.fixture
def spent(book, path):
    """A ledger that paid 0.9 of 1, and the file as it was before."""
    ledger = book()
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    count(ledger, 0.9)
    return ledger, copy


@pytest.fixture
def book(path):
    """Opens the ledger of this test."""
    return lambda **said: pdrisk.Ledger(path, **({"dataset": "survey", "analyst": "ann", "eps": 1} | said))


class TestInTheProcess:
    """Whatever this process saw of a file counts: for open ledgers, and for those that are opened later."""

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("look", LOOKS)
    def test_an_open_one(self, spent, path, way, look):
        ledger, copy = spent
        WAYS[way](copy, path)
        held = path.read_bytes()
        with pytest.raises(pdrisk.LedgerError, match=r"put back to an earlier state|was moved or replaced") as caught:
            LOOKS[look](ledger)
        assert "nothing was answered" in str(caught.value) and path.read_bytes() == held

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("again", ["opened", "datasets", "shell", "another spelling", "a link", "another dataset"])
    def test_opened_again(self, spent, book, path, way, again, capsys, monkeypatch):
        ledger, copy = spent
        del ledger
        WAYS[way](copy, path)
        monkeypatch.chdir(path.parent)
        link = path.with_name("link.db")
        link.symlink_to(path)
        tries = {
            "opened": book,
            "datasets": lambda: pdrisk.Ledger.datasets(path),
            "another spelling": lambda: pdrisk.Ledger("sqlite:///./budget.db", dataset="survey"),
            "a link": lambda: pdrisk.Ledger(link, dataset="survey"),
            "another dataset": lambda: book(dataset="other"),
        }
        if again == "shell":
            assert main(["ledger", "verify", str(path)]) == 2
            assert "put back to an earlier state" in capsys.readouterr().err
            return
        with pytest.raises(pdrisk.LedgerError, match=r"put back to an earlier state.*it does not hold record 2"):
            tries[again]()

    def test_in_a_thread_and_a_fork(self, spent, path):
        ledger, copy = spent
        over(copy, path)
        found = []

        def ask():
            try:
                count(ledger, 0.5)
            except pdrisk.LedgerError as error:
                found.append("put back" in str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        ask()
        assert found == [True, True]

    @pytest.mark.slow
    def test_a_fork_knows_what_its_parent_knew(self, path):
        text = """
            import shutil
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1)
            shutil.copyfile(sys.argv[1], sys.argv[1] + ".copy")
            ask = lambda of: pd.DataFrame({"x": [1]}).dprisk.count(eps=0.6, ledger=of)
            ask(ledger)
            shutil.copyfile(sys.argv[1] + ".copy", sys.argv[1])
            from pdrisk._ledger.store import rollback as seen
            held, done = threading.Event(), threading.Event()

            def hold():
                with seen.LOCK:
                    held.set()
                    done.wait(20)

            thread = threading.Thread(target=hold)
            thread.start()
            held.wait(20)
            if not os.fork():
                signal.alarm(10)
                told = 0
                for way in (lambda: ledger, lambda: pdrisk.Ledger(sys.argv[1], dataset="survey")):
                    try:
                        ask(way())
                    except pdrisk.LedgerError as error:
                        told += "put back" in str(error)
                os._exit(told)
            done.set()
            thread.join()
            print(os.waitstatus_to_exitcode(os.wait()[1]))
        """
        assert script(text, path) == ["2"]

    @pytest.mark.slow
    def test_what_is_pickled_knows_it_too(self, spent, path):
        ledger, copy = spent
        pickled = path.with_name("pickled")
        pickled.write_bytes(pickle.dumps(ledger))
        over(copy, path)
        text = """
            import pickle
            ledger = pickle.load(open(sys.argv[1], "rb"))
            try:
                ledger.remaining()
            except pdrisk.LedgerError as error:
                print("put" in str(error))
        """
        assert script(text, pickled) == ["True"]

    @pytest.mark.slow
    def test_an_attacker(self, book, path):
        """Who copies, puts back and opens at random moments gets no more than the budget out of one process."""
        random.seed(12)
        copies, answered, ledger = [], 0.0, book()
        for step in range(200):
            try:
                match random.randrange(5):
                    case 0:
                        copies.append(path.with_name(f"{step}.db"))
                        shutil.copyfile(path, copies[-1])
                    case 1 if copies:
                        random.choice([over, by_sqlite, replaced])(random.choice(copies), path)
                    case 2:
                        ledger = book()
                    case _:
                        answered += count(ledger, 0.05)
            except (pdrisk.LedgerError, pdrisk.BudgetExceededError):
                if copies:  # the newest copy: else nothing would be answered ever after
                    shutil.copyfile(path, path.with_name("lost.db"))
                    over(max(copies, key=lambda copy: pdrisk_records(copy)), path)
        assert 0.05 <= answered <= 1 + 1e-9


def pdrisk_records(copy):
    with closing(sqlite3.connect(copy)) as file:
        return file.execute("SELECT count(*) FROM records").fetchone()[0]


class TestNoFalseAlarm:
    """What is no rollback goes on."""

    def test_a_new_one_at_the_same_path(self, book, path):
        for _ in range(3):
            ledger = book()
            count(ledger, 0.9)
            assert book().verify()[0] == 2
            path.unlink()
            with pytest.raises(pdrisk.LedgerError):
                ledger.remaining()

    def test_the_first_one_comes_back(self, book, path):
        """Moved away and back, with another in its place meanwhile: each is known by its own."""
        first = book()
        copy = path.with_name("copy.db")
        shutil.copyfile(path, copy)
        count(first, 0.5)
        shutil.copyfile(path, path.with_name("kept.db"))
        path.unlink()
        count(book(), 0.9)
        over(copy, path)
        with pytest.raises(pdrisk.LedgerError, match="put back"):
            book()
        over(path.with_name("kept.db"), path)
        assert book().remaining().eps == 0.5

    def test_a_copy_elsewhere(self, spent):
        """A backup is looked at."""
        ledger, copy = spent
        assert pdrisk.Ledger(copy, dataset="survey").remaining().eps == 1 and ledger.remaining().eps == 0.1

    @pytest.mark.slow
    def test_others_write_meanwhile(self, book, path):
        ledger = book()
        for at in range(1, 4):
            script(
                """
                pd.DataFrame({"x": [1]}).dprisk.count(eps=0.1, ledger=pdrisk.Ledger(sys.argv[1], dataset="survey"))
                """,
                path,
            )
            assert ledger.remaining().spent == pytest.approx(at / 10)
        assert pickle.loads(pickle.dumps(ledger)).verify()[0] == 4

    @pytest.mark.slow
    def test_readers_and_writers_at_once(self, book, path):
        """What one thread has read is not older than what another wrote meanwhile."""
        ledger, failed, done = book(), [], threading.Event()
        ledger.amend(eps=100)

        def look():
            while not done.is_set():
                try:
                    pdrisk.Ledger(path, dataset="survey").remaining()
                    ledger.remaining()
                except pdrisk.PdriskError as error:
                    failed.append(error)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            count(ledger, 1)
        done.set()
        for thread in threads:
            thread.join()
        assert failed == []

    def test_what_was_not_written_is_not_remembered(self, book, monkeypatch):
        ledger = book()

        def failing(account, *_):
            record(account, "amended", {})
            raise KeyboardInterrupt

        from pdrisk._ledger.accounts.account import Account

        record = Account.record
        with monkeypatch.context() as broken:
            broken.setattr(Account, "record", failing)
            with pytest.raises(KeyboardInterrupt):
                count(ledger, 0.1)
        assert ledger.remaining().eps == 1 and book().verify()[0] == 1

    def test_one_look_at_one_record(self, book, monkeypatch):
        """What is asked of the file does not grow with what was seen."""
        ledger, asked = book(), []
        for _ in range(5):
            count(ledger, 0.1)
        with ledger._store.reading() as ask:
            plan = ask(f"EXPLAIN QUERY PLAN {seen.NEWEST} UNION ALL {seen.NUMBERED}", (3,))
        assert not [row for row in plan if "SCAN" in row[3] and "CONSTANT" not in row[3]]
        real = seen.Seen.check
        monkeypatch.setattr(
            seen.Seen, "check", lambda own, ask, *rest: real(own, lambda *sql: (asked.append(sql), ask(*sql))[1], *rest)
        )
        ledger.remaining()
        assert len(asked) == 1


class TestHead:
    """What verify() returned is asked for when a ledger is opened, in another process too."""

    def test_the_right_one(self, spent, book, path):
        ledger, _ = spent
        for head in (ledger.verify(), list(ledger.verify()), None, (0, START)):
            assert book(head=head).remaining().eps == 0.1
            assert pdrisk.Ledger.datasets(path, head=head) == ["survey"]

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("way", ["over", "replaced", "and written"])
    def test_in_another_process(self, spent, path, way):
        ledger, copy = spent
        head = ledger.verify()
        WAYS[way](copy, path)
        text = """
            head = int(sys.argv[2]), sys.argv[3]
            for call in (
                lambda: pdrisk.Ledger(sys.argv[1], dataset="survey", head=head),
                lambda: pdrisk.Ledger.datasets(sys.argv[1], head=head),
            ):
                try:
                    call()
                except pdrisk.LedgerError as error:
                    print("noted" in str(error))
            print(pdrisk.Ledger(sys.argv[1], dataset="survey").remaining().eps)
        """
        assert script(text, path, *head) == ["True", "True", "1.0"]

    @pytest.mark.slow
    def test_it_is_remembered(self, spent, path):
        """Opened with it once, the process knows it."""
        ledger, copy = spent
        text = """
            import shutil
            head = int(sys.argv[2]), sys.argv[3]
            pdrisk.Ledger(sys.argv[1], dataset="survey", head=head)
            shutil.copyfile(sys.argv[4], sys.argv[1])
            try:
                pdrisk.Ledger(sys.argv[1], dataset="survey")
            except pdrisk.LedgerError as error:
                print("put" in str(error))
        """
        assert script(text, path, *ledger.verify(), copy) == ["True"]

    @pytest.mark.parametrize("limits", [{}, {"eps": 1}])
    def test_no_ledger_is_begun(self, path, limits):
        with pytest.raises(pdrisk.PdriskError):
            pdrisk.Ledger(path, dataset="survey", head=(3, "f" * 64), **limits)
        assert not path.exists()

    @pytest.mark.parametrize("head", [5, "head", (1,), (1, 2), ("1", "2"), (True, "f"), (1, "f", 3), {1: 2}], ids=str)
    def test_no_head(self, spent, book, path, head):
        for call in (lambda: book(head=head), lambda: pdrisk.Ledger.datasets(path, head=head)):
            with pytest.raises(pdrisk.ColumnTypeError, match=r"the pair that verify\(\) gave"):
                call()

    def test_from_the_shell(self, spent, path, capsys):
        number, last = spent[0].verify()
        for action in ("show", "export", "verify"):
            assert main(["ledger", action, str(path), "--head", f"{number}:{last}"]) == 0
            capsys.readouterr()
            assert main(["ledger", action, str(path), "--head", f"{number}:{last[::-1]}"]) == 2
            printed = capsys.readouterr()
            assert printed.out == "" and "noted down" in printed.err
