"""Paying for a query, and what happens if it fails afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pdrisk.errors import ColumnTypeError, LedgerError
from pdrisk.ledger.ambient import ambient
from pdrisk.ledger.book import Ledger
from pdrisk.query import Query

__all__ = ["paying"]


@contextmanager
def paying(query: Query, ledger: object = None) -> Iterator[None]:
    """Pay for a query before the block that reads and draws; whatever fails in it is marked, and stays paid.

    Parameters
    ----------
    query : Query
    ledger : Ledger or None
        None: that of the ``with`` block around, if there is one.

    Raises
    ------
    ColumnTypeError
        If it is no ledger.
    BudgetExceededError, PolicyError, LedgerError
        As `Ledger.pay` does; the block is not entered.
    """
    around = ambient.get()
    if ledger is None and not around:
        yield
        return
    payer = around[-1] if ledger is None else ledger
    if not isinstance(payer, Ledger):
        raise ColumnTypeError(f"ledger must be a pdrisk.Ledger, not of type {type(payer).__name__}.")
    seq = payer.pay(query)
    try:
        yield
    except BaseException:
        with suppress(LedgerError):  # it is paid; that it failed is only a remark
            payer.failed(seq)
        raise
