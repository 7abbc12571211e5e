"""What a budget costs: paying, remembering, and knowing what answers meant."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import pdrisk
from cases import EPS, HI, LO, Case, distances

PEOPLE = 1_000_000
BUDGET = 1e9  # never spent


def ledger_cases(rows: int) -> Iterator[Case]:
    """The cost of counting; the budgets lie where the system keeps temporary files."""
    os.environ.setdefault("PDRISK_SECRET", "of the benchmark")
    with tempfile.TemporaryDirectory() as folder:
        yield from _cases(rows, Path(folder))


def _cases(rows: int, folder: Path) -> Iterator[Case]:
    few = pd.DataFrame({"x": distances(1000)})
    plain = pdrisk.Ledger(folder / "plain.db", dataset="x", eps=BUDGET)
    yield Case(
        "count with a ledger, 1e3 rows", lambda: few.dprisk.count(eps=EPS, ledger=plain), _one_row(folder),
        "one row in SQLite, as safely", 3, at_full_size=False, number=20,
    )  # fmt: skip
    frame = pd.DataFrame({"x": distances(rows)})
    known = pdrisk.Ledger(folder / "known.db", dataset="x", eps=BUDGET, data=frame)
    yield Case(
        "mean, remembered", lambda: frame.dprisk.mean("x", eps=EPS, bounds=(LO, HI), ledger=known),
        lambda: frame["x"].clip(LO, HI).mean(), "Series.clip().mean()", column=frame["x"].to_numpy().nbytes,
    )  # fmt: skip
    people = pd.DataFrame({"x": distances(PEOPLE), "pid": np.arange(PEOPLE)})
    owner = pdrisk.Ledger(folder / "owner.db", dataset="x", eps=BUDGET, policy={"person": "pid"})
    yield Case(
        "mean with an odometer, 1e6 people",
        lambda: people.dprisk.mean("x", eps=EPS, bounds=(LO, HI), ledger=owner),
        lambda: people.groupby("pid")["x"].sum(), "groupby(pid).sum()", at_full_size=False,
    )  # fmt: skip


def _one_row(folder: Path) -> Callable[[], object]:
    """The least that a payment can cost: one durable transaction."""
    con = sqlite3.connect(folder / "row.db", isolation_level=None)
    con.execute("PRAGMA synchronous = EXTRA")
    con.execute("CREATE TABLE rows (number INTEGER)")

    def write() -> None:
        con.execute("BEGIN IMMEDIATE")
        con.execute("INSERT INTO rows VALUES (1)")
        con.execute("COMMIT")

    return write
