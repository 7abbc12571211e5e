"""A ledger on a PostgreSQL server when its process forks, is interrupted, or lets it go."""

import signal
import subprocess
import sys
import textwrap
from contextlib import suppress

import pandas as pd
import pytest

import pdrisk
from postgres_databases import connections, needs_server

pytestmark = needs_server
FRAME = pd.DataFrame({"age": [30, 41, 52]})
EACH = 0.05


def opened(url, **limits):
    return pdrisk.Ledger(url, dataset="survey", **limits)


def ask(ledger):
    return FRAME.dprisk.count(eps=EACH, ledger=ledger)


def paid(ledger):
    return int(ledger.history()["event"].eq("paid").sum())


def script(text, *arguments):
    """What a Python of its own prints, in which every warning is an error."""
    code = "import os, sys, threading\nimport pandas as pd\nimport pdrisk\n" + textwrap.dedent(text)
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0 and "ResourceWarning" not in ran.stderr, ran.stderr
    return ran.stdout.split()


class TestConnections:
    """Connections are those of one process, and end with the ledger."""

    @pytest.mark.slow
    def test_a_ledger_that_is_gone_leaves_no_connection(self, url):
        ledger = opened(url, eps=1)
        ask(ledger)
        del ledger
        opened(url)
        assert connections(url) <= 1

    @pytest.mark.slow
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

    @pytest.mark.slow
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


class TestInterrupted:
    """Whoever is interrupted leaves a whole ledger, in which every delivered answer is paid."""

    @pytest.mark.slow
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

    @pytest.mark.slow
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
