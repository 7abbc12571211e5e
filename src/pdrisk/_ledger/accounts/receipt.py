"""Receipt of a query: the ledger's record, or the remembered noisy values."""

from __future__ import annotations

from dataclasses import dataclass

from pdrisk._ledger.accounts.memory import Noisy
from pdrisk._ledger.rules.policy import Policy

__all__ = ["Receipt"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of a payment, or the answer that was paid for before.

    Attributes
    ----------
    policy : Policy
        The rules for what is shown.
    seq : int or None
        The number of the record; None if nothing was paid.
    key : str or None
        What stands for the question, if its answer may be remembered.
    remembered : list of ndarray or None
        The noisy values of each release.
    draws : list of str or None
        The identities of these draws.
    keys : list of str or None
        The groups that were shown then, where keys are private.
    """

    policy: Policy
    seq: int | None = None
    key: str | None = None
    remembered: list[Noisy] | None = None
    draws: list[str] | None = None
    keys: list[str] | None = None
