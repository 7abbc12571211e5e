"""Records of a ledger: what is written down, and the chain that ties each record to the one before."""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction

START = "0" * 64  # what the first record follows
NEWEST = "SELECT seq, hash FROM records WHERE seq = (SELECT max(seq) FROM records)"
EXACT = re.compile(r"[0-9]+(/[0-9]+)?")

EVENTS = {
    "opened": "the dataset was entered, with its limits",
    "amended": "the owner changed the limits",
    "data": "the data differ from before, by their content or by the owner's version=",
    "person": "the column that says who a person is was declared: by it, losses of people are told apart",
    "changed": "the data changed after their Dataset was made: nothing of them is remembered until it is made anew",
    "previewed": "price and noise of a query were asked for: nothing paid, nothing read",
    "paid": "a query was paid for, before the data was read",
    "refused": "a query was refused: nothing paid, nothing read",
    "remembered": "a question that was paid for before got the same answer: nothing paid",
    "kept": "the noisy answer was kept, to be given again",
    "failed": "a query that was paid for failed while the data was read",
    "publication": "a publication was begun: answers in its block carry the number of this record",
    "withdrawn": "a publication was withdrawn: nothing of what it cost comes back",
    "reserved": "budget was set aside for planned questions, which pay from it",
    "returned": "a reservation was closed: what was never asked came back",
}


def chained(before: str, seq: int, time: str, dataset: str, analyst: str, event: str, eps: str, body: str) -> str:
    """Hash of a record after one with the hash ``before``; its parts as they are stored."""
    line = json.dumps([before, seq, time, dataset, analyst, event, eps, body], ensure_ascii=True)
    return hashlib.sha256(line.encode("ascii")).hexdigest()


def exact(text: str) -> Fraction:
    """Exact number from its text in a record; raises like `int` for what no ledger writes."""
    if not EXACT.fullmatch(text):
        raise ValueError
    number = Fraction(text)
    float(number)  # it is shown as one
    return number


def digest(question: object, answer: object) -> str:
    """Hash of a kept answer together with its question."""
    return hashlib.sha256(json.dumps([str(question), str(answer)], ensure_ascii=True).encode("ascii")).hexdigest()
