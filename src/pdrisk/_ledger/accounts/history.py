"""History of a ledger: its records as a table, for people and for files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import pandas as pd

from pdrisk._atomic_file import remove_leftovers, write_whole
from pdrisk._core.risks.gaussian_dp import root
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk._ledger.store.records import EVENTS, exact
from pdrisk._ledger.store.store import Rows
from pdrisk._model.query import written
from pdrisk._printing import inert, printable
from pdrisk.errors import ParameterError

UNREADABLE: Final = "backslashreplace"  # what is no character, as half of a pair in a column's label


def words(body: dict[str, Any]) -> str | None:
    """The question of a record, as people read it."""
    question = _words(body)
    return None if question is None else printable(question)


def _words(body: dict[str, Any]) -> str | None:
    if "limits" in body:
        rules = {**body["limits"]["whole"], **body["limits"]["policy"]}
        rules |= {f"{name} for each analyst": value for name, value in body["limits"]["each_analyst"].items()}
        for analyst, limits in body["limits"].get("analysts", {}).items():
            rules |= {f"{name} for {analyst}": value for name, value in limits.items()} or {
                f"limits of {analyst}": None
            }
        return ", ".join(f"{name}={value}" for name, value in rules.items())
    if "curator" in body:
        return str(body["curator"])
    if "named" in body:
        return f"{body['named']}: {body['purpose']}"
    if "column" in body:
        return f"person={body['column']}"
    if "reserved" in body:
        amounts = body["reserved"]
        delta = "" if amounts["delta"] == "0" else f", delta={amounts['delta']}"
        what = f"eps={amounts['eps']}{delta}, queries={amounts['queries']}"
        return f"{body['purpose']}: {what} for {body['analyst']} until {body['until'][:10]}"
    asked = body.get("question")
    if asked is None:
        return None
    lines = [
        written(line["statistic"], line.get("column"), line.get("other"))
        + (f" filter {line['filter']}" if "filter" in line else "")
        for line in asked["lines"]
    ]
    text = ", ".join(lines)
    if "where" in asked:
        text += f" where {asked['where'] or 'a mask or function'}"
    if "source" in asked:
        text += f" from {asked['source']}"
    return text + (f" by {', '.join(map(str, asked['by']))}" if "by" in asked else "")


def table_of(rows: Rows) -> pd.DataFrame:
    """The history as `Ledger.history` gives it, from ``seq time analyst event eps body``.

    Raises one of `store.WRONG` for what no ledger writes.
    """
    texts = {kind for place in range(1, 6) for kind in set(map(type, map(itemgetter(place), rows)))}
    if not texts <= {str} or not set(map(itemgetter(3), rows)) <= EVENTS.keys():
        raise TypeError
    # Each body is let go at once: a hundred thousand of them would keep the garbage collector busy.
    records = {row[0]: _said(json.loads(row[5])) for row in rows}
    paid = [row[4] for row in rows]
    numbers = {text: exact(text) for text in {*paid, *(record.asked for record in records.values())}}
    number = {text: float(eps) for text, eps in numbers.items()}
    deltas = {text: float(exact(text)) for text in {record.delta for record in records.values()}}
    squares = [
        (row[4], record.mu2 if row[3] == "paid" else "0") for row, record in zip(rows, records.values(), strict=True)
    ]
    mu = {(eps, mu2): root(mu2_of_pure(exact(eps)) if mu2 is None else exact(mu2)) for eps, mu2 in set(squares)}
    whole = math.lcm(*(eps.denominator for eps in numbers.values()))  # integers add up exactly and fast
    parts = {text: int(eps * whole) for text, eps in numbers.items()}
    table = pd.DataFrame(
        {
            "time": pd.to_datetime([row[1] for row in rows], format="ISO8601", utc=True),
            "analyst": [row[2] for row in rows],
            "event": [row[3] for row in rows],
            "asked": [number[record.asked] for record in records.values()],
            "eps": [number[text] for text in paid],
            "delta": [deltas[record.delta] for record in records.values()],
            "mu": [mu[square] for square in squares],
            "total": [total / whole for total in accumulate(parts[text] for text in paid)],
            "query": pd.Series([_query(record, records) for record in records.values()], dtype=object),
            "bounds": pd.Series([record.bounds for record in records.values()], dtype=object),
            "mechanism": pd.Series([record.mechanism for record in records.values()], dtype=object),
            "of": pd.array([record.of for record in records.values()], dtype="Int64"),
            "reason": pd.Series([record.reason for record in records.values()], dtype=object),
            "publication": pd.array([record.publication for record in records.values()], dtype="Int64"),
        }
    )
    return table.set_index(pd.Index(list(records), name="seq", dtype="int64"))


class _Said(NamedTuple):
    """Content of a record; ``asked``, and what was paid, ``delta`` and ``mu2``, are exact numbers as text."""

    query: str | None
    bounds: str | None
    mechanism: str | None
    asked: str
    delta: str
    mu2: str | None
    of: int | None
    reason: str | None
    publication: int | None


def _said(body: dict[str, Any]) -> _Said:
    asked = body.get("question", {})
    return _Said(
        words(body),
        _bounds(asked.get("lines", ())),
        asked.get("mechanism"),
        asked.get("eps", "0"),
        body.get("delta", "0"),
        body.get("mu2"),
        body.get("of"),
        body.get("reason"),
        body.get("publication"),
    )


def _bounds(lines: Iterable[dict[str, Any]]) -> str | None:
    """The bounds of columns as text: ``distance: 1.0 to 675.0``."""
    texts: dict[str, None] = {}
    for line in lines:
        if line["bounds"] is not None:
            low_high = line["bounds"] if line["bounds"] == "column" else "{} to {}".format(*line["bounds"])
            texts[printable(f"{line['column']}: {low_high}")] = None
        if "other_bounds" in line:
            texts[printable("{}: {} to {}".format(line["other"], *line["other_bounds"]))] = None
    return "; ".join(texts) or None


def _query(record: _Said, records: dict[int, _Said]) -> str | None:
    """The question of this record, or of the record that it refers to."""
    return records[record.of].query if record.query is None and record.of in records else record.query


def listed(rows: Rows) -> pd.DataFrame:
    """The history with the numbers of the records as a column, and with each question as it was recorded."""
    table = table_of(rows).reset_index()
    return table.assign(question=pd.Series([json.loads(row[5]).get("question") for row in rows], dtype=object))


def exported(table: pd.DataFrame, dataset: str, path: str | os.PathLike[str]) -> Path:
    """Export of `listed` to a CSV or JSON file, written whole or not at all."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in (".csv", ".json"):
        raise ParameterError(f"export writes .csv or .json, not {target.suffix or 'a file without an ending'!r}.")

    def write_part(part: Path) -> None:
        with open(part, "w", encoding="utf-8", errors=UNREADABLE, newline="") as file:
            write(table, dataset, file, ending)

    remove_leftovers(target.parent)
    return write_whole(target, write_part, mode=0o666)


def write(table: pd.DataFrame, dataset: str, file: TextIO, ending: str = ".csv") -> None:
    """Export of `listed` into an open file; ``ending`` is ``.csv`` or ``.json``."""
    table = table.assign(time=table["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    table.insert(1, "dataset", dataset)
    if ending == ".csv":
        asked = [None if asked is None else json.dumps(asked, sort_keys=True) for asked in table["question"]]
        inert(table.assign(question=pd.Series(asked, dtype=object))).to_csv(file, index=False)
        return
    # Every digit, which to_json does not write.
    records = table.astype(object)
    json.dump(records.where(records.notna(), None).to_dict("records"), file, indent=1, ensure_ascii=False)
