"""Whether the records are whole."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from typing import Any

from pdrisk.errors import BudgetExceededError, ColumnTypeError, LedgerError
from pdrisk.ledger.limits import WINDOWS, Limits, Spent, check
from pdrisk.ledger.records import EVENTS, START, chained, digest
from pdrisk.ledger.store import Rows, Store

__all__ = ["EVERYBODY", "period", "verify"]

EVERYBODY = ""  # the analyst of what all have spent together


def verify(store: Store, head: object = None) -> tuple[int, str]:
    """The last record's number and hash, if everything fits together; raises as `Ledger.verify` does."""
    with store.reading() as ask:
        if store.changed(ask):
            raise LedgerError(f"{store.place} is broken: somebody changed its tables or triggers.")
        rows = ask("SELECT seq, time, dataset, analyst, event, eps, body, hash FROM records ORDER BY seq")
        spending = ask("SELECT dataset, analyst, period, eps, queries FROM spending")
        datasets = ask("SELECT name, limits FROM datasets")
        answers = ask("SELECT dataset, question, record, body FROM answers")
    last = _verified(store.place, rows, spending, datasets, head)
    kept = {(row[2], row[0]): row[6] for row in rows if row[4] == "kept"}
    for dataset, question, record, body in answers:
        if digest(question, body) not in kept.get((dataset, record), ""):
            raise LedgerError(f"{store.place} is broken: an answer that it keeps is not that of record {record}.")
    return last


def _verified(place: str, rows: Rows, spending: Rows, datasets: Rows, head: object) -> tuple[int, str]:
    wanted = None if head is None else _head(head)
    last, before, seen = 0, START, wanted in (None, (0, START))
    totals: dict[tuple[str, str, str], Spent] = {}
    rules: dict[str, Any] = {}
    for seq, time, dataset, analyst, event, eps, body, own in rows:
        if seq != last + 1:
            raise LedgerError(f"{place} is broken: record {last + 1} is missing. Restore it from a copy.")
        try:
            whole = chained(before, seq, time, dataset, analyst, event, eps, body) == own and event in EVENTS
        except TypeError:  # not what a ledger writes
            whole = False
        if not whole:
            raise LedgerError(f"{place} is broken: record {seq} was changed. Restore it from a copy.")
        over = False
        try:
            if event == "paid":
                over = _over(
                    totals, rules[dataset], dataset, analyst, datetime.datetime.fromisoformat(time), Fraction(eps)
                )
            elif event in ("opened", "amended"):
                again = dataset in rules
                rules[dataset] = json.loads(body)["limits"]
                whole = again == (event == "amended")
        except (ValueError, TypeError, KeyError, ZeroDivisionError):
            whole = False
        if not whole:
            raise LedgerError(f"{place} is broken: record {seq} is not what a ledger writes there.")
        if over:
            raise LedgerError(f"{place} is broken: record {seq} went over the limits that held then.")
        last, before = seq, own
        seen = seen or (seq, own) == wanted
    if not seen:
        raise LedgerError(
            f"{place} does not hold the record that was noted down: records were cut off or written anew."
        )
    if _sums(spending) != totals:
        raise LedgerError(f"{place} is broken: its sums are not those of its records. Restore it from a copy.")
    if _rules(datasets) != rules:
        raise LedgerError(f"{place} is broken: its limits are not those of its records. Restore it from a copy.")
    return last, before


def _over(
    totals: dict[tuple[str, str, str], Spent],
    rules: Any,
    dataset: str,
    analyst: str,
    moment: datetime.datetime,
    eps: Fraction,
) -> bool:
    """Add a payment to the sums; whether it went over the limits that held when it was made."""
    over = False
    for who, limits in ((EVERYBODY, rules["whole"]), (analyst, rules["each_analyst"])):
        before = {window: totals.get((dataset, who, period(window, moment)), Spent()) for window in WINDOWS}
        try:
            check("", eps, Limits.stored(limits), before, "")
        except BudgetExceededError:
            over = True
        for window, had in before.items():
            totals[dataset, who, period(window, moment)] = Spent(had.eps + eps, had.queries + 1)
    return over


def _head(head: object) -> tuple[int, str]:
    if not isinstance(head, tuple | list) or len(head) != 2:
        raise ColumnTypeError("head must be the pair that verify() gave, the number and the hash of a record.")
    return head[0], head[1]


def _sums(spending: Rows) -> object:
    try:
        return {(name, who, at): Spent(Fraction(eps), queries) for name, who, at, eps, queries in spending}
    except (TypeError, ValueError, ZeroDivisionError):
        return None


def _rules(datasets: Rows) -> object:
    try:
        return {name: json.loads(limits) for name, limits in datasets}
    except (TypeError, ValueError):
        return None


def period(window: str, now: datetime.datetime) -> str:
    """The calendar period that a moment is in."""
    return now.strftime({"": "", "day": "%Y-%m-%d", "month": "%Y-%m"}[window])
