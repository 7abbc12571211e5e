"""Kills processes at random moments while they ask, and measures what a charge takes.

Usage: python benchmarks/ledger_kills.py [--kills 200] [--charges 1000]; it ends with status 1 if the ledger is not
whole after a kill, or if an answer was delivered that was not paid.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pdrisk
from pdrisk.frames import judged_lines, judged_query
from pdrisk.options import DEFAULTS
from pdrisk.query import Query, statistic

EPS = 0.01
CONTENDERS = 8
PRELOADED = ["pdrisk", "opendp.measurements", "numpy", "pandas"]
FRAME = pd.DataFrame({"age": [30, 41, 52]})


def opened(path: Path) -> pdrisk.Ledger:
    """The ledger, with a budget that lasts."""
    return pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=10**9)


def query() -> Query:
    """What is charged when nothing else is measured."""
    options = {name: value for name, value in DEFAULTS.items() if name not in ("bounds", "ledger")}
    lines = judged_lines(FRAME, "age", (statistic("count"),), None)
    return judged_query(FRAME, lines, **(options | {"eps": EPS}))


def delivering(path: Path, answers: Any) -> None:
    """Ask until killed, and write one byte after each answer."""
    ledger = opened(path)
    while True:
        FRAME.dprisk.count(eps=EPS, ledger=ledger)
        os.write(answers.fileno(), b"!")


def charging(path: Path, number: int, start: Any, results: Any) -> None:
    """The seconds of each charge."""
    ledger, asked, seconds = opened(path), query(), []
    start.wait()
    for _ in range(number):
        begin = time.perf_counter()
        ledger.pay(asked)
        seconds.append(time.perf_counter() - begin)
    results.put(seconds)


def killed(context: Any, path: Path, moment: float, waits: bool) -> int:
    """How many answers a process delivered before it was killed."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=delivering, args=(path, sender))
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


def all_kills(context: Any, path: Path, kills: int) -> list[str]:
    """What went wrong."""
    ledger, delivered, paid, wrong = opened(path), 0, 0, []
    head = ledger.verify()
    for kill in range(1, kills + 1):
        delivered += killed(context, path, random.uniform(0, 0.1), waits=kill % 4 != 0)
        try:
            again = opened(path)
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


def charge_times(context: Any, path: Path, hands: int, charges: int) -> str:
    """Median and 99th percentile with so many processes at once."""
    opened(path)
    start, results = context.Barrier(hands), context.Queue()
    arguments = (path, charges // hands, start, results)
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
    parser.add_argument("--folder", type=Path, help="where to keep the ledgers meanwhile: on the disk to be measured")
    chosen = parser.parse_args()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        wrong = all_kills(context, Path(folder) / "kills.db", chosen.kills)
        for hands in (1, CONTENDERS):
            print(charge_times(context, Path(folder) / f"times_{hands}.db", hands, chosen.charges))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
