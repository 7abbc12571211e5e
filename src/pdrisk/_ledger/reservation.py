"""Reservation: budget of a ledger that is set aside for planned questions, at the price that they will pay."""

from __future__ import annotations

from pdrisk._digits import rounded_down
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.ledger import Ledger
from pdrisk._ledger.rules.limits import Spent, shown
from pdrisk._ledger.rules.reserved import ReservedBudget
from pdrisk._ledger.rules.success_limits import reachable
from pdrisk.errors import PolicyError


class Reservation(Ledger):
    """Ledger whose answers are paid from what was set aside for them, as `Ledger.reserve` gives it.

    It is used in the place of its ledger: ``with reservation:``, or ``ledger=reservation``. Inside its block, Datasets
    with that ledger pay from it, too.

    Attributes
    ----------
    number : int
        Of the record in the history; answers that are paid from it refer to it.
    purpose : str
    until : datetime
        When it ends by itself.
    """

    def __init__(self, ledger: Payer, held: ReservedBudget) -> None:
        super(Ledger, self).__init__(ledger._store, ledger._dataset, held.analyst)
        self._reservation = held.number
        self.number, self.purpose, self.until = held.number, held.purpose, held.until

    @property
    def left(self) -> Spent:
        """What it still holds: ``eps``, ``queries``, ``delta`` and ``mu2``; nothing once it has ended."""
        with self._reading() as account:
            held = account.any_held(self.number)
            return held.left if held.lasts(account.now) else Spent()

    def close(self) -> None:
        """End of the reservation: what was never asked comes back to the ledger. The ledger itself stays open."""
        with self._writing() as account:
            rules = account.rules()
            if not account.any_held(self.number).is_of(account.analyst) and not rules.is_owner(account.analyst):
                raise PolicyError(
                    f"reservation {self.number} is that of {self._analyst!r}: only {self._analyst!r} or the owner of "
                    "the dataset ends it."
                )
            account.give_back(self.number)

    def __repr__(self) -> str:
        left = self.left
        what = f"reservation {self.number} of dataset {self._dataset!r} for {self._analyst!r}: {self.purpose}"
        if not left.queries:
            return f"{what}\nhas ended"
        delta = f", delta {shown(left.delta)}" if left.delta else ""
        return (
            f"{what}\nleft until {self.until:%Y-%m-%d %H:%M} UTC: eps {shown(left.eps)}{delta}, "
            f"{left.queries} {'questions' if left.queries > 1 else 'question'}, one of which may reach success "
            f"{rounded_down(reachable(left.mu2))}"
        )
