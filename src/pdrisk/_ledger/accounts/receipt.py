"""Receipt of a query: the ledger's record, or the remembered noisy values."""

from __future__ import annotations

from dataclasses import dataclass

from pdrisk._ledger.accounts.memory import Noisy
from pdrisk._ledger.rules.policy import Policy


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of a payment, or the answer that was paid for before."""

    policy: Policy  # the rules for what is shown
    seq: int | None = None  # the number of the record; None if nothing was paid
    key: str | None = None  # what stands for the question, if its answer may be remembered
    remembered: list[Noisy] | None = None  # the noisy values of each release
    draws: list[str] | None = None  # the identities of these draws
    keys: list[str] | None = None  # the groups that were shown then, where keys are private
