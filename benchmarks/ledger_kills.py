"""Kills processes at random moments while they ask, and measures what a charge takes.

Usage: python benchmarks/ledger_kills.py [--kills 200] [--charges 1000] [--success 0.999999999999]
[--url postgresql://...]; it ends with status 1 if the ledger is not whole after a kill, or if an answer was delivered
that was not paid.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._model.arguments import statistic
from pdrisk._model.query import Query
from pdrisk._pandas.requests.judged_requests import judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request

EPS = 0.01
CONTENDERS = 8
PRELOADED = ["pdrisk", "opendp.measurements", "numpy", "pandas"]
FRAME = pd.DataFrame({"age": [30, 41, 52]})
Place = tuple[str, str]  # the path or URL of a ledger, and a dataset


def opened(place: Place, success: float | None = None) -> pdrisk.Ledger:
    """The ledger, with a budget that lasts."""
    return pdrisk.Ledger(place[0], dataset=place[1], eps=10**9, success=success)


def query() -> Query:
    """What is charged when nothing else is measured."""
    request = Request(eps=EPS)
    return judged_query(FRAME, judged_lines(FRAME, "age", (statistic("count"),), request), request)[0]


def delivering(place: Place, answers: Any) -> None:
    """Ask until killed, and write one byte after each answer."""
    ledger = opened(place)
    while True:
        FRAME.dprisk.count(eps=EPS, ledger=ledger)
        os.write(answers.fileno(), b"!")


def charging(place: Place, number: int, start: Any, results: Any) -> None:
    """The seconds of each charge."""
    ledger, asked, seconds = opened(place), query(), []
    start.wait()
    for _ in range(number):
        begin = time.perf_counter()
        ledger.pay(asked)
        seconds.append(time.perf_counter() - begin)
    results.put(seconds)


def killed(context: Any, place: Place, moment: float, waits: bool) -> int:
    """How many answers a process delivered before it was killed."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=delivering, args=(place, sender))
    process.start()
    sender.close()
    delivered = len(os.read(receiver.fileno(), 1)) if waits else 0
    time.sleep(moment)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    while some := os.read(receiver.fileno(), 2**16):
        delivered += len(some)
    receiver.close()
    return delivered


def all_kills(context: Any, place: Place, kills: int, success: float | None) -> list[str]:
    """What went wrong."""
    ledger, delivered, paid, wrong = opened(place, success), 0, 0, []
    head = ledger.verify()
    for kill in range(1, kills + 1):
        delivered += killed(context, place, random.uniform(0, 0.1), waits=kill % 4 != 0)
        try:
            again = opened(place)
            paid = int(again.history()["event"].eq("paid").sum())
            head = again.verify(head)
        except pdrisk.LedgerError as error:
            wrong.append(f"kill {kill}: {error}")
            break
        if not delivered <= paid <= delivered + kill:
            wrong.append(f"kill {kill}: {delivered} answers were delivered and {paid} were paid")
        print(f"\rkill {kill} of {kills}: {delivered} answers delivered, {paid} paid", end="", flush=True)
    print(f"\n{kills} kills, {delivered} answers delivered, {paid} paid, {paid - delivered} paid for nothing")
    return wrong


def charge_times(context: Any, place: Place, hands: int, charges: int) -> str:
    """Median and 99th percentile with so many processes at once."""
    opened(place)
    start, results = context.Barrier(hands), context.Queue()
    arguments = (place, charges // hands, start, results)
    processes = [context.Process(target=charging, args=arguments) for _ in range(hands)]
    for process in processes:
        process.start()
    seconds = np.concatenate([results.get() for _ in processes])
    for process in processes:
        process.join()
    median, rare = np.quantile(seconds, [0.5, 0.99]) * 1000
    return (
        f"{hands} at once: median {median:.2f} ms, 99th percentile {rare:.2f} ms, largest {seconds.max() * 1000:.0f} ms"
    )


def main() -> int:
    """Run both, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--charges", type=int, default=1000, help="to be timed, in all processes together")
    parser.add_argument("--success", type=float, help="a limit of that, too, while it is killed")
    parser.add_argument("--folder", type=Path, help="where to keep the ledgers meanwhile: on the disk to be measured")
    parser.add_argument("--url", help="of a PostgreSQL server, instead of files; datasets are left in that ledger")
    chosen = parser.parse_args()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:

        def place(name: str) -> Place:
            return chosen.url or f"{folder}/{name}.db", f"{name} {secrets.token_hex(4)}"

        wrong = all_kills(context, place("kills"), chosen.kills, chosen.success)
        for hands in (1, CONTENDERS):
            print(charge_times(context, place(f"times_{hands}"), hands, chosen.charges))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
