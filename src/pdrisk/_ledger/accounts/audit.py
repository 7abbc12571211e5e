"""Audit of a ledger: whether its records are complete and unchanged."""

from __future__ import annotations

import json

from pdrisk._ledger.accounts.replay import Replay
from pdrisk._ledger.store.records import EVENTS, START, chained, digest
from pdrisk._ledger.store.rollback import head_of
from pdrisk._ledger.store.store import WRONG, Head, Rows, Store
from pdrisk.errors import LedgerError


def verify(store: Store, head: object = None) -> Head:
    """Number and hash of the last record if all records, sums and answers agree; raises as `Ledger.verify`."""
    with store.reading() as ask:
        if store.changed(ask):
            raise LedgerError(f"{store.place} is broken: somebody changed its tables or triggers.")
        rows = ask("SELECT seq, time, dataset, analyst, event, eps, body, hash FROM records ORDER BY seq")
        spending = ask("SELECT dataset, analyst, period, eps, queries, delta, mu2 FROM spending")
        datasets = ask("SELECT name, limits FROM datasets")
        answers = ask("SELECT dataset, question, record, body FROM answers")
    last = _verified(store.place, rows, spending, datasets, head)
    kept = {(row[2], row[0]): str(row[6]) for row in rows if row[4] == "kept"}
    for dataset, question, record, body in answers:
        if digest(question, body) not in kept.get((dataset, record), ""):
            raise LedgerError(f"{store.place} is broken: an answer that it keeps is not that of record {record}.")
    return last


def _verified(place: str, rows: Rows, spending: Rows, datasets: Rows, head: object) -> Head:
    wanted = head_of(head)
    last, before, seen, replay = 0, START, wanted in (None, (0, START)), Replay()
    for seq, time, dataset, analyst, event, eps, body, recorded_hash in rows:
        if seq != last + 1:
            raise LedgerError(f"{place} is broken: record {last + 1} is missing. Restore it from a copy.")
        try:
            whole = chained(before, seq, time, dataset, analyst, event, eps, body) == recorded_hash and event in EVENTS
        except WRONG:
            whole = False
        if not whole:
            raise LedgerError(f"{place} is broken: record {seq} was changed. Restore it from a copy.")
        try:
            step = replay.step(seq, time, dataset, analyst, event, eps, json.loads(body))
        except WRONG:
            step = None
        if step is None:
            raise LedgerError(f"{place} is broken: record {seq} is not what a ledger writes there.")
        if step():
            raise LedgerError(f"{place} is broken: record {seq} went over the limits that held then.")
        last, before = seq, recorded_hash
        seen = seen or (seq, recorded_hash) == wanted
    if not seen:
        raise LedgerError(
            f"{place} does not hold the record that was noted down: records were cut off or written anew."
        )
    if not replay.has_sums(spending):
        raise LedgerError(f"{place} is broken: its sums are not those of its records. Restore it from a copy.")
    if not replay.has_limits(datasets):
        raise LedgerError(f"{place} is broken: its limits are not those of its records. Restore it from a copy.")
    return last, before
