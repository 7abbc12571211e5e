"""Ledgers in a folder of their own, and what a question cost there."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._ledger.store.records import START, chained
from pdrisk._ledger.store.rollback import SEEN

REGIONS = ["north", "south", "east"]
SURE = 1e6  # an eps at which noise is far below what is looked at
IS_3 = pd.__version__.startswith("3")

# What a version-1 file holds, word for word.
VERSION_1 = """
CREATE TABLE datasets (name TEXT PRIMARY KEY, limits TEXT NOT NULL);
CREATE TABLE records (
    seq BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, analyst TEXT NOT NULL, event TEXT NOT NULL,
    eps TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX records_of ON records (dataset, seq);
CREATE TABLE spending (
    dataset TEXT NOT NULL, analyst TEXT NOT NULL, period TEXT NOT NULL, eps TEXT NOT NULL, queries BIGINT NOT NULL,
    PRIMARY KEY (dataset, analyst, period)
);
CREATE TRIGGER records_follow BEFORE INSERT ON records WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records)
BEGIN SELECT RAISE(ABORT, 'records follow each other'); END;
CREATE TRIGGER records_stay BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records stay as they are'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records stay'); END;
PRAGMA application_id = 1885631091;
PRAGMA user_version = 1;
"""


def of(data):
    """What answers about a Dataset or a frame."""
    return data if isinstance(data, pdrisk.Dataset) else data.dprisk


def opened_by_owner(path, *, analyst, dataset="survey", **limits):
    """The ledger of an analyst, whom the limits of each analyst hold for: somebody else entered the dataset."""
    if "each_analyst" in limits:
        pdrisk.Ledger(path, dataset=dataset, analyst="the owner", **limits)
    return pdrisk.Ledger(path, dataset=dataset, analyst=analyst, **limits)


def typed(frame):
    """The frame with text where pandas 2 makes objects of it, which a ledger takes for truth values."""
    return frame if IS_3 else frame.astype({each: "string" for each in frame if frame[each].dtype == object})


def people(n=60):
    """Everybody's own row; every third region has as many people."""
    at = np.arange(n)
    frame = pd.DataFrame({"pid": at + 100, "age": 20 + at % 50, "hours": 1.0 + at % 9, "sex": at % 2})
    return typed(frame.assign(region=np.array(REGIONS)[at % 3]))


def count(ledger, eps=0.1, **options):
    """A noisy number of three people."""
    return pd.DataFrame({"age": [30, 41, 52]}).dprisk.count(eps=eps, ledger=ledger, **options)


def at_work(path):
    """Two datasets in one file, with every usual event."""
    ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=1)
    count(ledger)
    for call in (lambda: count(ledger, 5), lambda: count(ledger, where=lambda frame: 1 / 0)):
        with pytest.raises((pdrisk.BudgetExceededError, pdrisk.QueryFailedError)):
            call()
    count(pdrisk.Ledger(path, dataset="other", analyst="bob", queries=5), 0.3)
    ledger.amend(eps=2)
    count(ledger, 0.7)
    return ledger


def values(answer):
    """The noisy numbers of any kind of answer."""
    if isinstance(answer, pd.DataFrame):
        table = answer["value"] if "value" in answer else answer.select_dtypes("number")
        return np.ravel(table.to_numpy(dtype=float)).tolist()
    return list(answer) if isinstance(answer, tuple) else [answer.value]


def events(ledger, *names):
    """All events but that data were named, or those of these names."""
    found = ledger.history()["event"].tolist()
    return [event for event in found if (event in names if names else event != "data")]


def asked(ledger, ask):
    """The numbers of an answer, and the eps that was paid for it."""
    before = Fraction(str(ledger.remaining().spent))
    answer = values(ask(ledger))
    return answer, float(Fraction(str(ledger.remaining().spent)) - before)


def tables(path, sql, *parameters):
    """What a statement gives that some other hand does to the file."""
    with closing(sqlite3.connect(path)) as other, other:
        return other.execute(sql, parameters).fetchall()


def version_one(path):
    """Put what a ledger holds into a file as the first version wrote it, without m; its number and hash."""
    with closing(sqlite3.connect(path)) as own:
        kept = {name: own.execute(f"SELECT * FROM {name}").fetchall() for name in ("datasets", "records")}
        kept["spending"] = own.execute("SELECT dataset, analyst, period, eps, queries FROM spending").fetchall()
    path.unlink()
    SEEN.pop(os.path.realpath(path), None)
    before = START
    for at, (*row, _) in enumerate(kept["records"]):
        body = {name: value for name, value in json.loads(row[6]).items() if name != "mu2"}
        row[6] = json.dumps(body, sort_keys=True, separators=(",", ":"))
        before = chained(before, *row)
        kept["records"][at] = (*row, before)
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(VERSION_1)
        for name, rows in kept.items():
            for row in rows:
                old.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    return len(kept["records"]), before


def script(texts, *arguments, killed=False):
    """What a Python of its own prints, that runs one or several texts; it ends well, or is killed."""
    texts = [texts] if isinstance(texts, str) else texts
    code = "import os, signal, sys, threading\nimport pandas as pd\nimport pdrisk\n" + "".join(
        map(textwrap.dedent, texts)
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=120)
    assert run.returncode == (-signal.SIGKILL if killed else 0), run.stderr
    return run.stdout.split()
