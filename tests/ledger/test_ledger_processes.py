"""A ledger under many hands at once, in a file or on a server, and when the machine gives way: killed, full, locked."""

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing

import pandas as pd
import pytest

import pdrisk
from pdrisk._core.risks.gaussian_dp import mu_of_pure
from pdrisk._mechanisms.contract import draws
from postgres_databases import connections

FRAME = pd.DataFrame({"age": [30, 41, 52]})
TRIES, EACH, HANDS = 50, 0.05, 8
TWENTY = {"eps": {"eps": 1}, "success": {"success": 0.5564}}  # enough for 20 counts of eps 0.05, and not for 21
PLENTY = {"eps": {"eps": 10**6}, "success": {"success": 1 - 1e-12}}


def opened(store, analyst="ann", **limits):
    """A server's analyst is the role of the session."""
    own = {} if isinstance(store, str) else {"analyst": analyst}
    return pdrisk.Ledger(store, dataset="survey", **own, **limits)


def accepted(own) -> int:
    """How many of the tries are answered."""
    answers = 0
    for _ in range(TRIES):
        try:
            FRAME.dprisk.count(eps=EACH, ledger=own)
        except (pdrisk.BudgetExceededError, pdrisk.PolicyError):
            continue
        answers += 1
    return answers


def asking(store, number, start, results):
    start.wait()
    results.put(accepted(opened(store, f"analyst {number}")))


def opening(store, _, start, results):
    start.wait()
    opened(store, eps=1)
    results.put(0)


def reserving(store, number, start, results):
    """Set aside for two answers, give two, and one more that is refused; then those who may go on."""
    ledger = opened(store, f"analyst {number}")
    start.wait()
    answers = 0
    try:
        with ledger.reserve([{"eps": EACH}] * 2, purpose="two") as held:
            answers = accepted(held)
            held.close()
    except pdrisk.BudgetExceededError:
        pass
    results.put(answers)


def at_once(warm, work, store):
    """What the hands put."""
    start, results = warm.Barrier(HANDS), warm.Queue()
    processes = [warm.Process(target=work, args=(store, number, start, results)) for number in range(HANDS)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    return found


def delivering(store, answers):
    """Ask until killed, and say so after each answer."""
    ledger = opened(store)
    while True:
        FRAME.dprisk.count(eps=EACH, ledger=ledger)
        os.write(answers.fileno(), b"!")


def delivering_reserved(store, answers):
    """The same from what a process set aside that is gone."""
    (held,) = opened(store).reservations()
    while True:
        FRAME.dprisk.count(eps=EACH, ledger=held)
        os.write(answers.fileno(), b"!")


def setting_aside(store, answers):
    """Set aside, ask and give back until killed."""
    ledger = opened(store)
    while True:
        with ledger.reserve([{"eps": EACH}] * 2, purpose="until killed") as held:
            FRAME.dprisk.count(eps=EACH)
        held.close()
        os.write(answers.fileno(), b"!")


def script(text, *arguments, **options):
    """What a Python of its own prints."""
    code = "import os, sys, threading\nimport pandas as pd\nimport pdrisk\n" + textwrap.dedent(text)
    run = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, **options)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.fixture
def hasty():
    """Not here: these tests ask what a kill or a full disk leaves."""


@pytest.fixture
def warm():
    """Processes that start with everything imported, and hold no ledger of this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pdrisk", "opendp.measurements", "psycopg", "pytest"])
    return context


class TestContention:
    """However many ask at once, exactly what the budget allows is answered."""

    def all_spent(self, ledger, answers):
        assert sum(answers) == 20
        events = ledger.history()["event"].value_counts()
        assert (events["paid"], events["refused"]) == (20, HANDS * TRIES - 20)
        left = ledger.remaining()
        assert left.eps == 0 if left.eps is not None else 0 < left.mu2 < mu_of_pure(EACH) ** 2
        assert ledger.verify()[0] == HANDS * TRIES + 1

    @pytest.mark.slow
    @pytest.mark.parametrize("limits", TWENTY.values(), ids=TWENTY)
    def test_processes(self, store, warm, limits):
        ledger = opened(store, **limits)
        self.all_spent(ledger, at_once(warm, asking, store))

    @pytest.mark.slow
    @pytest.mark.parametrize("limits", TWENTY.values(), ids=TWENTY)
    def test_reservations(self, store, warm, limits):
        """What is set aside is there for whoever set it aside, and for nobody else."""
        ledger = opened(store, **limits)
        assert at_once(warm, reserving, store) == [2] * HANDS
        for _ in range(20 - 2 * HANDS):
            FRAME.dprisk.count(eps=EACH, ledger=ledger)
        with pytest.raises(pdrisk.BudgetExceededError):
            FRAME.dprisk.count(eps=EACH, ledger=ledger)
        assert ledger.reservations() == [] and ledger.verify()

    @pytest.mark.slow
    def test_opened_by_all_at_once(self, store, warm):
        assert at_once(warm, opening, store) == [0] * HANDS
        assert opened(store).verify()[0] == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("limits", TWENTY.values(), ids=TWENTY)
    def test_threads(self, store, limits):
        ledger, start, answers = opened(store, **limits), threading.Barrier(HANDS), []

        def work():
            start.wait()
            answers.append(accepted(ledger))

        threads = [threading.Thread(target=work) for _ in range(HANDS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.all_spent(ledger, answers)
        if isinstance(store, str):
            assert connections(store) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("limits", TWENTY)
    def test_forks(self, path, limits):
        """The ledger was opened and used before; children and parent go on with the same object."""
        text = """
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1, **eval(sys.argv[2]))
            ask = lambda: pd.DataFrame({"x": [1]}).dprisk.count(eps=0.01, ledger=ledger)
            ask()
            held = ledger._store._connection()
            for _ in range(4):
                if not os.fork():
                    for _ in range(5):
                        ask()
                    os._exit(ledger._store._connection() is held)
            for _ in range(5):
                ask()
            print(*(os.wait()[1] for _ in range(4)), ledger.verify()[0])
        """
        own = {} if limits == "eps" else {"success": 0.9}
        assert script(text, path, own) == ["0", "0", "0", "0", "27"]
        assert opened(path).remaining().eps == 0.74


def told_until_killed(warm, work, store, waits):
    """Kill a process that works on a ledger, and return how many answers it delivered before."""
    receiver, sender = warm.Pipe(duplex=False)
    process = warm.Process(target=work, args=(store, sender))
    process.start()
    sender.close()
    delivered = len(os.read(receiver.fileno(), 1)) if waits else 0
    time.sleep(random.uniform(0, 0.1))
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    while some := os.read(receiver.fileno(), 2**16):
        delivered += len(some)
    receiver.close()
    return delivered


class TestKilled:
    """Whoever is killed at whatever moment leaves a whole ledger, in which every delivered answer is paid."""

    @pytest.mark.slow
    @pytest.mark.parametrize("limits", PLENTY.values(), ids=PLENTY)
    @pytest.mark.parametrize("work", [delivering, delivering_reserved], ids=["ledger", "reservation"])
    def test_at_random_moments(self, store, warm, limits, work):
        ledger, delivered, kills = opened(store, **limits), 0, 20
        if work is delivering_reserved:
            ledger.reserve([{"eps": EACH}] * 5000, purpose="until killed")
        first = ledger.verify()[0]
        for kill in range(kills):
            delivered += told_until_killed(warm, work, store, kill % 4)
            with ledger._store.writing():  # after what a server still has of it
                pass
            paid = ledger.history()["event"].eq("paid").sum()
            assert delivered <= paid <= delivered + kill + 1
            assert ledger.verify()[0] == first + paid
            for held in ledger.reservations():
                assert held.left.queries == 5000 - paid
        assert delivered >= kills // 2
        FRAME.dprisk.count(eps=EACH, ledger=opened(store))

    @pytest.mark.slow
    def test_while_setting_aside(self, store, warm):
        """What was set aside and is not given back is still there to be closed; nothing is lost or counted twice."""
        ledger, kills = opened(store, eps=100, success=1 - 1e-9), 12
        for kill in range(kills):
            told_until_killed(warm, setting_aside, store, kill % 4)
            with ledger._store.writing():
                pass
            left, paid = ledger.remaining(), int(ledger.history()["event"].eq("paid").sum())
            assert left.spent == pytest.approx(EACH * paid) and ledger.verify()
            assert left.eps + left.reserved + left.spent == pytest.approx(100)
        assert 0 < len(ledger.reservations()) <= kills
        for held in ledger.reservations():
            held.close()
        assert ledger.remaining().eps == pytest.approx(100 - EACH * paid) and ledger.verify()

    @pytest.mark.slow
    def test_interrupted_while_waiting(self, path):
        """Ctrl-C in the queue for the file leaves it free for all others, and the ledger usable."""
        text = """
            import signal, sqlite3, time
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1)
            frame = pd.DataFrame({"x": [1]})
            frame.dprisk.count(eps=0.1, ledger=ledger)
            other = sqlite3.connect(sys.argv[1], timeout=0.2, isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")

            def interrupt():
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
                other.execute("COMMIT")

            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                frame.dprisk.count(eps=0.1, ledger=ledger)
            except KeyboardInterrupt:
                print("interrupted")
            thread.join()
            other.execute("BEGIN IMMEDIATE")
            other.execute("COMMIT")
            frame.dprisk.count(eps=0.1, ledger=ledger)
            print(ledger.remaining().eps, ledger.verify()[0])
        """
        assert script(text, path) == ["interrupted", "0.8", "3"]

    def test_what_is_paid_survives_a_power_cut(self, path):
        """As far as SQLite can know: 3 is EXTRA, and a journal of "off" or "memory" would be lost."""
        ledger = opened(path, eps=1)
        connection = ledger._store._connection()
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() in {("delete",), ("wal",)}


@pytest.fixture
def drawn(monkeypatch):
    """One entry for each draw."""
    found, real = [], draws.discrete_laplace
    monkeypatch.setattr(draws, "discrete_laplace", lambda *args: (found.append(1), real(*args))[1])
    return found


class TestNoWayToWrite:
    """What cannot be written down is not answered, and nothing is drawn; afterwards the ledger goes on."""

    def refused(self, ledger, drawn, words):
        before = len(drawn)
        with pytest.raises(pdrisk.LedgerError, match=words):
            FRAME.dprisk.count(eps=EACH, ledger=ledger)
        assert len(drawn) == before

    def goes_on(self, ledger, answers):
        assert ledger.history()["event"].eq("paid").sum() == answers
        assert ledger.verify()[0] >= answers + 1
        FRAME.dprisk.count(eps=EACH, ledger=ledger)

    def test_a_full_disk(self, path, drawn):
        ledger = opened(path, eps=1000)
        connection = ledger._store._connection()
        connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(pdrisk.LedgerError, match=r"full.*nothing was answered\. Make room on the disk"):
            [accepted(ledger) for _ in range(9)]
        self.refused(ledger, drawn, "full")
        connection.execute("PRAGMA max_page_count = 1000000")
        self.goes_on(ledger, len(drawn))

    def test_a_full_disk_hides_no_failure(self, path):
        ledger = opened(path, eps=1000)

        def filling(frame):
            ledger._store._connection().execute("PRAGMA max_page_count = 1")
            raise ValueError

        for _ in range(TRIES):
            with pytest.raises((pdrisk.QueryFailedError, pdrisk.LedgerError)):
                FRAME.dprisk.count(eps=EACH, ledger=ledger, where=filling)
        ledger._store._connection().execute("PRAGMA max_page_count = 1000000")
        assert ledger.verify()[0] == len(ledger.history())

    @pytest.mark.slow
    @pytest.mark.sampled(6)
    @pytest.mark.parametrize("size", [0, 100, 600, 4096, 40_000, 60_000])
    def test_files_may_not_grow(self, path, size):
        """The limit hits the journal, or the file itself."""
        opened(path, eps=1000)
        text = """
            import resource
            import pdrisk._answer.releasing
            drawn, real = [], pdrisk._mechanisms.contract.draws.discrete_laplace
            pdrisk._mechanisms.contract.draws.discrete_laplace = lambda *args: (drawn.append(1), real(*args))[1]
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", analyst="ann")
            ask = lambda: pd.DataFrame({"x": [1]}).dprisk.count(eps=0.05, ledger=ledger)
            ask()
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
            answers, refused = 1, 0
            while refused < 3 and answers < 200:
                try:
                    ask()
                except pdrisk.LedgerError as error:
                    assert "nothing was answered" in str(error)
                    refused += 1
                else:
                    answers += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print(answers, len(drawn), refused)
        """
        answers, draws, refused = map(int, script(text, path, size))
        assert (draws, refused) == (answers, 3)
        self.goes_on(opened(path), answers)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_read_only(self, what):
        text = """
            import tempfile
            import pdrisk._answer.releasing
            drawn, real = [], pdrisk._mechanisms.contract.draws.discrete_laplace
            pdrisk._mechanisms.contract.draws.discrete_laplace = lambda *args: (drawn.append(1), real(*args))[1]
            frame = pd.DataFrame({"x": [1]})
            frame.dprisk.count(eps=1)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "budget.db")
                ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
                frame.dprisk.count(eps=0.1, ledger=ledger)
                target = path if sys.argv[1] == "file" else folder
                mode = os.stat(target).st_mode
                os.chmod(target, mode & ~0o222)

                def ask(way):
                    try:
                        frame.dprisk.count(eps=0.1, ledger=way())
                    except pdrisk.LedgerError as error:
                        print("written" in str(error) and "nothing was answered" in str(error))

                for way in (lambda: ledger, lambda: pdrisk.Ledger(path, dataset="survey")):
                    thread = threading.Thread(target=ask, args=(way,))
                    thread.start()
                    thread.join()
                os.chmod(target, mode)
                frame.dprisk.count(eps=0.1, ledger=ledger)
                print(len(drawn), ledger.verify()[0], ledger.remaining().eps)
        """
        assert script(text, what) == ["True", "True", "3", "3", "0.8"]

    def test_locked(self, path, drawn, monkeypatch):
        monkeypatch.setattr("pdrisk._ledger.store.sqlite.PATIENCE", 0.1)
        ledger = opened(path, eps=1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            self.refused(ledger, drawn, r"locked.*nothing was answered.*timed out.*ask again")
            for look in (ledger.remaining, ledger.history, ledger.verify, lambda: opened(path)):
                with pytest.raises(pdrisk.LedgerError, match="locked"):
                    look()
            other.execute("COMMIT")
        self.goes_on(ledger, 0)

    def test_locked_after_paying(self, path, drawn, monkeypatch):
        """The failure is told, though its mark could not be made."""
        monkeypatch.setattr("pdrisk._ledger.store.sqlite.PATIENCE", 0.1)
        ledger = opened(path, eps=1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:

            def locking(frame):
                other.execute("BEGIN EXCLUSIVE")
                raise ValueError

            with pytest.raises(pdrisk.QueryFailedError):
                FRAME.dprisk.count(eps=EACH, ledger=ledger, where=locking)
        assert drawn == []
        self.goes_on(ledger, 1)
