"""One line of the audit, and the chain that ties each to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["EVENTS", "START", "Record", "chained"]

START = "0" * 64  # what the first record follows

EVENTS = {
    "opened": "the dataset was entered, with its limits",
    "amended": "the owner changed the limits",
    "paid": "a query was paid for, before the data was read",
    "refused": "a query was refused: nothing paid, nothing read",
    "failed": "a query that was paid for failed while the data was read",
    "reused": "a question was asked again and answered from memory",
}


@dataclass(frozen=True, slots=True)
class Record:
    """What happened.

    Attributes
    ----------
    seq : int
        1, 2, 3, ... in the whole ledger.
    time : str
        ISO 8601, UTC; never before the record before it.
    dataset, analyst : str
    event : str
        One of `EVENTS`.
    eps : Fraction
        What it costs.
    body : dict
        The question and public facts, as JSON values.
    hash : str
        SHA-256 of the record before and of this one, in hexadecimal.
    """

    seq: int
    time: str
    dataset: str
    analyst: str
    event: str
    eps: Fraction
    body: dict[str, Any]
    hash: str = ""

    @property
    def text(self) -> str:
        """The body as it is stored."""
        return json.dumps(self.body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def chained(before: str, seq: int, time: str, dataset: str, analyst: str, event: str, eps: str, body: str) -> str:
    """The hash of a record that follows one with the hash ``before``; its parts as they are stored."""
    line = json.dumps([before, seq, time, dataset, analyst, event, eps, body], ensure_ascii=True)
    return hashlib.sha256(line.encode("ascii")).hexdigest()
