"""Paying for a query, and what happens if it fails afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pdrisk.errors import ColumnTypeError, LedgerError
from pdrisk.ledger.ambient import ambient
from pdrisk.ledger.book import Ledger
from pdrisk.ledger.policy import Policy
from pdrisk.query import Query

__all__ = ["ledger_for", "paying"]


def ledger_for(ledger: object) -> Ledger | None:
    """The ledger that pays: the one passed, else that of the ``with`` block around, else none.

    Raises
    ------
    ColumnTypeError
        If it is no ledger.
    """
    around = ambient.get()
    payer = ledger if ledger is not None or not around else around[-1]
    if payer is None or isinstance(payer, Ledger):
        return payer
    raise ColumnTypeError(f"ledger must be a pdrisk.Ledger, not of type {type(payer).__name__}.")


@contextmanager
def paying(query: Query, ledger: object = None) -> Iterator[Policy]:
    """Pay for a query before the block that reads and draws; whatever fails in it is marked, and stays paid.

    The block gets the rules for what is shown.

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
    payer = ledger_for(ledger)
    if payer is None:
        yield Policy()
        return
    seq, policy = payer.pay(query)
    try:
        yield policy
    except BaseException:
        with suppress(LedgerError):  # it is paid; that it failed is only a remark
            payer.failed(seq)
        raise
