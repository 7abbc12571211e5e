"""``pdrisk ledger``: what was asked of a dataset, and what is left."""

from __future__ import annotations

import argparse
import io
import json

import pdrisk
from pdrisk._ledger import store_at, verify
from pdrisk._printing import printable

SHOWN = ["time", "analyst", "event", "asked", "eps", "delta", "total", "query"]


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument("action", choices=["show", "verify", "export", "statement"])
    command.add_argument("file", help="the ledger's file, or the URL of its server")
    command.add_argument("publication", nargs="?", help="for statement: the name of a publication")
    command.add_argument("--dataset", help="which of several")
    command.add_argument("--head", help="NUMBER:HASH that verify printed before: what was cut off is found")
    command.add_argument("--to", help="for export: the .csv or .json file to write, instead of printing CSV")
    command.add_argument("--format", choices=["text", "html", "json"], default="text", help="for statement")


def ledger(chosen: argparse.Namespace) -> str:
    """The text of ``pdrisk ledger``."""
    if (chosen.publication is None) == (chosen.action == "statement"):
        raise pdrisk.ParameterError("statement, and no other action, takes the name of a publication after the file.")
    head = _head(chosen.head)
    if chosen.action == "verify":
        number, last = verify(store_at(chosen.file, known=True), head)
        return f"{number} records, whole and in order; note down {number}:{last}"
    known = pdrisk.Ledger.datasets(chosen.file, head=head)
    if chosen.dataset is None and len(known) != 1:
        raise pdrisk.ParameterError(f"pass --dataset, one of {', '.join(known) or 'none'}.")
    name = chosen.dataset or (known[0] if known else "")
    if name not in known:
        raise pdrisk.ParameterError(f"unknown dataset {name!r}; the ledger has {', '.join(known) or 'none'}.")
    book = pdrisk.Ledger(chosen.file, dataset=name)
    if chosen.action == "export":
        if chosen.to is not None:
            return f"written: {book.export(chosen.to)}"
        text = io.StringIO()
        book.export(text)
        return text.getvalue().rstrip("\n")
    if chosen.action == "statement":
        told = book.statement(chosen.publication)
        ways = {"text": told.text, "html": told.html, "json": json.dumps(told.to_dict(), indent=1, ensure_ascii=False)}
        return ways[chosen.format]
    history = book.history()
    shown = history.assign(time=history["time"].dt.strftime("%Y-%m-%d %H:%M:%S"), query=history["query"].fillna(""))
    columns = [name for name in SHOWN if name != "delta" or history["delta"].any()]
    shown = shown[columns].map(lambda cell: printable(cell) if isinstance(cell, str) else cell)
    return f"{book!r}\n\n{shown.to_string()}"


def _head(head: str | None) -> tuple[int, str] | None:
    if head is None:
        return None
    number, _, last = head.partition(":")
    if not number.isdigit() or not last:
        raise pdrisk.ParameterError("--head must be what verify printed, NUMBER:HASH.")
    return int(number), last
