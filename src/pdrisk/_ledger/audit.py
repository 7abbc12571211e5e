"""Audit of a ledger: whether its records are complete and unchanged."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from typing import Any

from pdrisk._ledger.limits import WINDOWS, Spent, check
from pdrisk._ledger.records import EVENTS, START, chained, digest, exact
from pdrisk._ledger.rules import Rules
from pdrisk._ledger.seen import head_of
from pdrisk._ledger.store import WRONG, Head, Rows, Store
from pdrisk.errors import BudgetExceededError, LedgerError

__all__ = ["EVERYBODY", "period", "spent_of", "verify"]

EVERYBODY = ""  # the analyst of what all have spent together


def verify(store: Store, head: object = None) -> Head:
    """Number and hash of the last record if all records, sums and answers agree; raises as `Ledger.verify`."""
    with store.reading() as ask:
        if store.changed(ask):
            raise LedgerError(f"{store.place} is broken: somebody changed its tables or triggers.")
        rows = ask("SELECT seq, time, dataset, analyst, event, eps, body, hash FROM records ORDER BY seq")
        spending = ask("SELECT dataset, analyst, period, eps, queries, delta FROM spending")
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
    last, before, seen = 0, START, wanted in (None, (0, START))
    totals: dict[tuple[str, str, str], Spent] = {}
    rules: dict[str, Any] = {}
    limits: dict[str, Rules] = {}
    for seq, time, dataset, analyst, event, eps, body, own in rows:
        if seq != last + 1:
            raise LedgerError(f"{place} is broken: record {last + 1} is missing. Restore it from a copy.")
        try:
            whole = chained(before, seq, time, dataset, analyst, event, eps, body) == own and event in EVENTS
        except WRONG:
            whole = False
        if not whole:
            raise LedgerError(f"{place} is broken: record {seq} was changed. Restore it from a copy.")
        paid = None
        try:
            if event == "paid":
                delta = exact(json.loads(body).get("delta", "0"))
                paid = limits[dataset], datetime.datetime.fromisoformat(time), exact(eps), delta
            elif event in ("opened", "amended"):
                again = dataset in rules
                rules[dataset] = said = json.loads(body)["limits"]
                limits[dataset] = Rules.stored(json.dumps(said))
                whole = again == (event == "amended")
        except WRONG:
            whole = False
        if not whole:
            raise LedgerError(f"{place} is broken: record {seq} is not what a ledger writes there.")
        if paid is not None and _over(totals, dataset, analyst, *paid):
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
    dataset: str,
    analyst: str,
    rules: Rules,
    moment: datetime.datetime,
    eps: Fraction,
    delta: Fraction,
) -> bool:
    """Add a payment to the sums; whether it went over the limits of its time."""
    over = delta > 0 and rules.whole.delta is None
    for who, limits in ((EVERYBODY, rules.whole), (analyst, rules.of_analyst(analyst))):
        before = {window: totals.get((dataset, who, period(window, moment)), Spent()) for window in WINDOWS}
        try:
            check("", eps, limits, before, "", delta=delta)
        except BudgetExceededError:
            over = True
        for window, had in before.items():
            totals[dataset, who, period(window, moment)] = had.with_query(eps, delta)
    return over


def _sums(spending: Rows) -> object:
    try:
        return {(name, who, at): spent_of(*sums) for name, who, at, *sums in spending}
    except WRONG:
        return None


def spent_of(eps: str, queries: object, delta: str | None) -> Spent:
    """Spending in a row of sums; raises one of `store.WRONG` for what no ledger writes."""
    if not isinstance(queries, int) or isinstance(queries, bool) or queries < 0:
        raise TypeError
    return Spent(exact(eps), queries, Fraction(0) if delta is None else exact(delta))


def _rules(datasets: Rows) -> object:
    try:
        return {name: json.loads(limits) for name, limits in datasets}
    except WRONG:
        return None


def period(window: str, now: datetime.datetime) -> str:
    """The calendar period that a moment is in."""
    return now.strftime({"": "", "day": "%Y-%m-%d", "month": "%Y-%m"}[window])
