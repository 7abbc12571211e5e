"""What a budget costs: paying, remembering, and knowing what answers meant."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd

import pdrisk
from cases import EPS, HI, LO, Case, distances
from pdrisk._ledger.store.records import chained

PEOPLE = 1_000_000
RECORDS = 100_000
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
    known = pdrisk.Dataset(frame, ledger=pdrisk.Ledger(folder / "known.db", dataset="x", eps=BUDGET))
    yield Case(
        "mean, remembered", lambda: known.mean("x", eps=EPS, bounds=(LO, HI)),
        lambda: frame["x"].clip(LO, HI).mean(), "Series.clip().mean()", column=frame["x"].to_numpy().nbytes,
    )  # fmt: skip
    people = pd.DataFrame({"x": distances(PEOPLE), "pid": np.arange(PEOPLE)})
    owner = pdrisk.Ledger(folder / "owner.db", dataset="x", eps=BUDGET)
    own = pdrisk.Dataset(people, ledger=owner, version="1", person="pid", per_person="one")
    yield Case(
        "mean with an odometer, 1e6 people",
        lambda: own.mean("x", eps=EPS, bounds=(LO, HI), fresh=True),
        lambda: people.groupby("pid")["x"].sum(), "groupby(pid).sum()", at_full_size=False,
    )  # fmt: skip
    place = folder / "long.db"
    long = _long(place)
    yield Case(
        f"history of {RECORDS:.0e} records".replace("e+0", "e"), long.history, lambda: _plain_history(place),
        "json.loads of each", 1000, limits="ms", at_full_size=False,
    )  # fmt: skip


def _long(place: Path) -> pdrisk.Ledger:
    """A ledger with many payments, each with its own bounds and filter."""
    ledger = pdrisk.Ledger(place, dataset="x", eps=BUDGET)
    (number, before), now = ledger.verify(), "2026-01-01T12:00:00.000000+00:00"
    rows = []
    for seq in range(number + 1, RECORDS + 1):
        line = {"bounds": [0.0, float(seq)], "column": "distance", "eps": "1/1000", "statistic": "mean"}
        asked = {"eps": "1/1000", "lines": [line], "mechanism": "laplace", "where": f"age > {seq}"}
        row = (seq, now, "x", "ann", "paid", "1/1000", json.dumps({"question": asked}))
        before = chained(before, *row)
        rows.append((*row, before))
    with closing(sqlite3.connect(place)) as con, con:
        con.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return ledger


def _plain_history(place: Path) -> pd.DataFrame:
    """The least that reading the records can cost."""
    with closing(sqlite3.connect(place)) as con:
        rows = con.execute("SELECT seq, time, analyst, event, eps, body FROM records ORDER BY seq").fetchall()
    return pd.DataFrame([(*row[:5], len(json.loads(row[5]))) for row in rows])


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
