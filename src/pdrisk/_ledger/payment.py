"""Payment for a query, and what happens if the query fails afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass

from pdrisk._core.foreign import shown
from pdrisk._ledger.accounts import ambient
from pdrisk._ledger.accounts.curator_facts import Meaning
from pdrisk._ledger.accounts.memory import Identity, Noisy, text_of
from pdrisk._ledger.accounts.receipt import Receipt
from pdrisk._ledger.ledger import Ledger
from pdrisk._ledger.rules.policy import Policy
from pdrisk._ledger.store.location import is_there
from pdrisk._model.query import Query
from pdrisk.engines.base import Origin
from pdrisk.errors import ColumnTypeError, LedgerError, ParameterError, PdriskError

UNPAID = Receipt(Policy())


@dataclass(frozen=True, slots=True)
class Payment:
    """Permission to answer a query: the rules, and a remembered answer if there is one."""

    query: Query
    receipt: Receipt = UNPAID  # what was paid, and the rules for what is shown
    payer: Ledger | None = None

    @property
    def policy(self) -> Policy:
        """The owner's rules."""
        return self.receipt.policy

    @property
    def remembered(self) -> list[Noisy] | None:
        """The noisy values of each release, if the question was asked before; nothing was paid then."""
        return self.receipt.remembered

    @property
    def remembered_draws(self) -> list[str] | None:
        """The identities of the draws that are remembered."""
        return self.receipt.draws

    @property
    def remembered_keys(self) -> list[str] | None:
        """The groups that were shown, by `key_text`, if keys are private."""
        return self.receipt.keys

    def settle(
        self,
        noisy: Sequence[Noisy],
        draws: Sequence[str],
        meant: Callable[[], Meaning],
        keys: Sequence[str] | None = None,
    ) -> None:
        """Record what is kept of an answer: its noisy values for the next time, its facts for the curator.

        With the identity of each draw, and the groups that are shown where keys are private.
        """
        if self.payer is None or self.remembered is not None:
            return
        # The answer is paid for: a failure to keep it is no reason to withhold it.
        with suppress(PdriskError):
            meaning = meant() if self.policy.keeps_facts else None
            self.payer.keep(self.query, self.receipt, text_of(noisy, draws, keys), meaning)


def ledger_for(ledger: object) -> Ledger | None:
    """The ledger that pays: the one passed, else that of the ``with`` block around, else none.

    In the block of a reservation of that ledger, it is the reservation.
    """
    payer = ambient.innermost() if ledger is None else ledger
    if payer is None:
        return None
    if isinstance(payer, Ledger):
        return payer if payer._reservation is not None else ambient.reservation(payer)
    raise ColumnTypeError(f"ledger must be a pdrisk.Ledger, not of type {type(payer).__name__}.")


def opened_ledger(ledger: object, name: str | None) -> Ledger | None:
    """The ledger itself, or the one at a path or URL; None without either."""
    if ledger is None:
        return None
    if isinstance(ledger, str | os.PathLike):
        if name is None:
            raise ParameterError("a ledger's path or URL needs name=, the dataset that it knows these people as.")
        if not is_there(ledger):
            raise ParameterError(
                "there is no ledger at the path that ledger= names: begin one with "
                f"pdrisk.Ledger(path, dataset={shown(name)}, eps=1)."
            )
        return Ledger(ledger, dataset=name)
    payer = ledger_for(ledger)
    if payer is not None and name not in (None, payer.dataset):
        raise ParameterError(
            f"the ledger is that of dataset {payer.dataset!r}, not of {shown(name)}: leave name= out, or pass the "
            "ledger of these people."
        )
    return payer


def check_curator(ledger: object, asked: str) -> None:
    """Refuse what depends on the data, if a ledger pays and the analyst is not one of its curators.

    ``ledger``: None: that of the ``with`` block around, if there is one.
    ``asked``: what is asked for, as the audit shows it.
    """
    payer = ledger_for(ledger)
    if payer is not None:
        payer.check_curator(asked)


def paying(
    query: Query,
    ledger: object = None,
    fresh: object = False,
    dataset: Identity | None = None,
    origin: Origin | None = None,
) -> AbstractContextManager[Payment]:
    """Context that pays for a query first; if the block fails, the payment stays and is marked as failed.

    ``ledger``: None: that of the ``with`` block around, if there is one.
    ``fresh``: pay and draw even if the answer is remembered.
    ``dataset``: the Dataset that is asked, for memory and the odometer.
    ``origin``: where the data are that will be read, for memory.
    """
    if not isinstance(fresh, bool):
        raise ColumnTypeError(f"fresh must be True or False, not of type {type(fresh).__name__}.")
    payer = ledger_for(ledger)
    if payer is None:
        ambient.warn_of_others()
        return nullcontext(Payment(query))
    return _paid_by(payer, query, fresh, dataset, origin)


@contextmanager
def _paid_by(
    payer: Ledger, query: Query, fresh: bool, dataset: Identity | None, origin: Origin | None
) -> Iterator[Payment]:
    receipt = payer.pay(query, fresh, dataset, origin)
    try:
        yield Payment(query, receipt, payer)
    except BaseException:
        with suppress(LedgerError):  # it is paid; that it failed is only a remark
            payer.failed(receipt)
        raise
