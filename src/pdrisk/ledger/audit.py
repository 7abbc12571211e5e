"""Reading the records: whether they are whole, and what they say."""

from __future__ import annotations

import datetime
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pdrisk.errors import BudgetExceededError, ColumnTypeError, LedgerError, ParameterError
from pdrisk.ledger.limits import WINDOWS, Limits, Spent, check
from pdrisk.ledger.records import EVENTS, START, chained, digest
from pdrisk.ledger.store import Rows, Store

__all__ = ["EVERYBODY", "period", "table_of", "verify", "words", "written"]

UNREADABLE: Final = "backslashreplace"  # what is no character, as half of a pair in a column's label
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


def words(body: dict[str, Any]) -> str | None:
    """What was asked, for people."""
    if "limits" in body:
        rules = {**body["limits"]["whole"], **body["limits"]["policy"]}
        rules |= {f"{name} for each analyst": value for name, value in body["limits"]["each_analyst"].items()}
        return ", ".join(f"{name}={value}" for name, value in rules.items())
    asked = body.get("question")
    if asked is None:
        return None
    lines = [
        f"{line['statistic']}({'' if line['column'] is None else line['column']})"
        + (f" filter {line['filter']}" if "filter" in line else "")
        for line in asked["lines"]
    ]
    said = ", ".join(lines)
    if "where" in asked:
        said += f" where {asked['where'] or 'a mask or function'}"
    if "source" in asked:
        said += f" from {asked['source']}"
    return said + (f" by {', '.join(map(str, asked['by']))}" if "by" in asked else "")


def table_of(rows: Rows) -> pd.DataFrame:
    """The history as `Ledger.history` gives it, from ``seq time analyst event eps body``."""
    bodies = [json.loads(row[5]) for row in rows]
    eps = [Fraction(row[4]) for row in rows]
    totals, total = [], Fraction(0)
    for each in eps:
        total += each
        totals.append(float(total))
    table = pd.DataFrame(
        {
            "time": pd.to_datetime([row[1] for row in rows], format="ISO8601", utc=True),
            "analyst": [row[2] for row in rows],
            "event": [row[3] for row in rows],
            "eps": [float(each) for each in eps],
            "total": totals,
            "query": pd.Series([words(body) for body in bodies], dtype=object),
            "reason": pd.Series([body.get("reason") for body in bodies], dtype=object),
        }
    )
    return table.set_index(pd.Index([row[0] for row in rows], name="seq", dtype="int64"))


def written(history: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a history to a CSV or JSON file, whole or not at all."""
    target = Path(path)
    if target.suffix not in (".csv", ".json"):
        raise ParameterError(f"export writes .csv or .json, not {target.suffix or 'a file without an ending'!r}.")
    table = history.reset_index()
    table["time"] = table["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    part = target.with_name(f".{target.name}.part")
    try:
        if target.suffix == ".csv":
            table.to_csv(part, index=False, errors=UNREADABLE)
        else:  # every digit, which to_json does not write
            records = table.astype(object).where(table.notna(), None).to_dict("records")
            text = json.dumps(records, indent=1, ensure_ascii=False)
            part.write_text(text, encoding="utf-8", errors=UNREADABLE)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target
