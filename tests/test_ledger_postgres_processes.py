"""A ledger on a PostgreSQL server under many hands at once, and when clients, connections or the server give way."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress

import pandas as pd
import pytest

import pdrisk
from postgres_databases import database, needs_server, run

pytestmark = needs_server
FRAME = pd.DataFrame({"age": [30, 41, 52]})
TRIES, EACH, HANDS = 50, 0.05, 8


@pytest.fixture
def url():
    with database() as made:
        yield made


@pytest.fixture
def warm():
    """Processes that start with everything imported, and hold no ledger of this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pdrisk", "opendp.measurements", "psycopg", "pytest"])
    return context


def opened(url, **limits):
    return pdrisk.Ledger(url, dataset="survey", **limits)


def ask(ledger):
    return FRAME.dprisk.count(eps=EACH, ledger=ledger)


def paid(ledger):
    return int(ledger.history()["event"].eq("paid").sum())


def accepted(ledger):
    """How many of the tries are answered."""
    answers = 0
    for _ in range(TRIES):
        with suppress(pdrisk.BudgetExceededError):
            ask(ledger)
            answers += 1
    return answers


def asking(url, start, results):
    start.wait()
    results.put(accepted(opened(url)))


def opening(url, start, results):
    start.wait()
    opened(url, eps=1)
    results.put(0)


def delivering(url, answers):
    """Ask until killed, and say so after each answer."""
    ledger = opened(url)
    while True:
        ask(ledger)
        os.write(answers.fileno(), b"!")


def script(text, *arguments):
    """What a Python of its own prints, in which every warning is an error."""
    code = "import os, sys, threading\nimport pandas as pd\nimport pdrisk\n" + textwrap.dedent(text)
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0 and "ResourceWarning" not in ran.stderr, ran.stderr
    return ran.stdout.split()


def at_once(warm, work, url):
    """What the hands put."""
    start, results = warm.Barrier(HANDS), warm.Queue()
    processes = [warm.Process(target=work, args=(url, start, results)) for _ in range(HANDS)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    return found


class TestContention:
    """However many ask at once, exactly what the budget allows is answered."""

    def all_spent(self, ledger, answers):
        assert sum(answers) == 20
        events = ledger.history()["event"].value_counts()
        assert (events["paid"], events["refused"]) == (20, HANDS * TRIES - 20)
        assert (ledger.remaining().eps, ledger.verify()[0]) == (0, HANDS * TRIES + 1)

    def test_processes(self, url, warm):
        ledger = opened(url, eps=1)
        self.all_spent(ledger, at_once(warm, asking, url))

    def test_threads(self, url):
        ledger, start, answers = opened(url, eps=1), threading.Barrier(HANDS), []

        def work():
            start.wait()
            answers.append(accepted(ledger))

        threads = [threading.Thread(target=work) for _ in range(HANDS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.all_spent(ledger, answers)
        assert self.left(url) == 1

    def left(self, url):
        """How many connections of ledgers there are, after a while for the server to see them end."""
        gc.collect()  # an error that was caught may hold on to what it passed
        for _ in range(100):
            found = run(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pdrisk' AND datname = "
                        "current_database()")[0][0]  # fmt: skip
            if found <= 1:
                break
            time.sleep(0.05)
        return found

    def test_a_ledger_that_is_gone_leaves_no_connection(self, url):
        ledger = opened(url, eps=1)
        ask(ledger)
        del ledger
        opened(url)
        assert self.left(url) <= 1

    def test_forks(self, url):
        """The ledger was opened and used before; children and parent go on with the same object."""
        text = """
            import gc
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1)
            ask = lambda: pd.DataFrame({"x": [1]}).dprisk.count(eps=0.01, ledger=ledger)
            ask()
            held = ledger._store._local.held
            pid = held._connection.info.backend_pid
            for number in range(4):
                if not os.fork():
                    for _ in range(5):
                        ask()
                    same = ledger._store._local.held is held
                    del held
                    gc.collect()
                    if number < 2:
                        os._exit(same)
                    del ledger, ask
                    sys.exit(same)
            for _ in range(5):
                ask()
            codes = [os.wait()[1] for _ in range(4)]
            ask()
            print(*codes, held._connection.info.backend_pid == pid, ledger.verify()[0])
        """
        assert script(text, url) == ["0", "0", "0", "0", "True", "28"]
        assert opened(url).remaining().eps == 0.73

    def test_a_fork_while_it_is_written(self, url):
        """The child has no part in what the parent began."""
        text = """
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1)
            child = None
            try:
                with ledger._store.writing() as ask:
                    ask("UPDATE spending SET queries = 5")
                    child = os.fork()
                    if not child:
                        ask("SELECT 1")
            except pdrisk.LedgerError as error:
                os._exit("forked" not in str(error))
            print(os.waitpid(child, 0)[1])
            pd.DataFrame({"x": [1]}).dprisk.count(eps=0.01, ledger=ledger)
            print(ledger.verify()[0])
        """
        assert script(text, url) == ["0", "2"]

    def test_opened_by_all_at_once(self, url, warm):
        assert at_once(warm, opening, url) == [0] * HANDS
        assert opened(url).verify()[0] == 1


class TestKilled:
    """Whoever is killed at whatever moment leaves a whole ledger, in which every delivered answer is paid."""

    def test_clients_at_random_moments(self, url, warm):
        ledger, delivered, kills = opened(url, eps=10**6), 0, 20
        for kill in range(kills):
            receiver, sender = warm.Pipe(duplex=False)
            process = warm.Process(target=delivering, args=(url, sender))
            process.start()
            sender.close()
            if kill % 4:
                delivered += len(os.read(receiver.fileno(), 1))
            time.sleep(random.uniform(0, 0.1))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            while some := os.read(receiver.fileno(), 2**16):
                delivered += len(some)
            receiver.close()
            with ledger._store.writing():  # after what the server still has of it
                pass
            assert delivered <= paid(ledger) <= delivered + kill + 1
            assert ledger.verify()[0] == 1 + paid(ledger)
        assert delivered >= kills // 2
        ask(opened(url))

    def test_interrupted_while_waiting(self, url):
        """Ctrl-C in the queue leaves it free for all others, and the ledger usable."""
        text = """
            import signal, time
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", eps=1)
            frame = pd.DataFrame({"x": [1]})
            frame.dprisk.count(eps=0.1, ledger=ledger)
            entered, done = threading.Event(), threading.Event()

            def hold():
                with ledger._store.writing():
                    entered.set()
                    done.wait(20)

            def interrupt():
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGINT)

            holder, killer = threading.Thread(target=hold), threading.Thread(target=interrupt)
            holder.start()
            entered.wait(20)
            killer.start()
            try:
                frame.dprisk.count(eps=0.1, ledger=ledger)
            except KeyboardInterrupt:
                print("interrupted")
            done.set()
            holder.join()
            frame.dprisk.count(eps=0.1, ledger=ledger)
            print(ledger.remaining().eps, ledger.verify()[0])
        """
        assert script(text, url) == ["interrupted", "0.8", "3"]

    def test_a_signal_handler_that_asks(self, url):
        ledger, given = opened(url, eps=20), [0]

        def answered(*_):
            with suppress(pdrisk.PdriskError):
                ask(ledger)
                given[0] += 1

        before = signal.signal(signal.SIGALRM, answered)
        try:
            for place in range(100):
                signal.setitimer(signal.ITIMER_REAL, 5e-4 * (1 + place % 20))  # once, somewhere in what follows
                answered()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert 100 <= given[0] <= paid(ledger) and ledger.verify()[0] == len(ledger.history())
