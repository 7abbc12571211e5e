"""Promise of a ledger: what its limits of all time keep every attacker to, whatever is asked."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from pdrisk._core.gaussian import promised
from pdrisk._core.whole_numbers import reached
from pdrisk._ledger.limits import Spent
from pdrisk._ledger.payer import Payer
from pdrisk._ledger.replay import paid_in
from pdrisk._ledger.rules import largest
from pdrisk._ledger.store import Rows, decoded
from pdrisk._ledger.success import most_of

__all__ = ["Promise", "promise_in", "promise_of"]


@dataclass(frozen=True, slots=True)
class Promise:
    """Promise of a ledger about all answers, those to come included.

    Attributes
    ----------
    success, eps : Fraction or None
        The largest value that each limit of all time ever had, if it is still set and kept: raised, a limit counts as
        if granted from the start.
    delta : Fraction
        The most that answers with ``keys="private"`` may spend together.
    paid : Spent
        What was paid so far.
    person : hashable or None
        The columns that say who a person is.
    """

    success: Fraction | None
    eps: Fraction | None
    delta: Fraction
    paid: Spent
    person: Hashable | None

    @property
    def limit(self) -> float | None:
        """How often the best attacker with a coin's prior is right at most by all answers; None without a limit."""
        delta, found = float(self.delta), []
        if self.success is not None:
            found.append(promised(most_of(self.success), self.delta) if delta else float(self.success))
        if self.eps is not None:
            found.append(reached(float(self.eps), delta))
        return min(found) if found else None


def promise_of(ledger: Payer) -> Promise:
    """The promise of a dataset's ledger."""
    with ledger._reading() as account:
        rows = account.ask(
            "SELECT event, eps, body FROM records WHERE dataset = ? AND event IN ('opened', 'amended', 'paid') "
            "ORDER BY seq",
            (account.dataset,),
        )
        person = account.person()
        return decoded(account.place, lambda: promise_in(rows, person))


def promise_in(rows: Rows, person: Hashable | None) -> Promise:
    """The promise by records ``event eps body`` of a dataset; raises one of `store.WRONG` for what no ledger writes."""
    paid, limits = Spent(), []
    for event, eps, text in rows:
        body = json.loads(text)
        if event == "paid":
            paid += paid_in(eps, body)[0]
        else:
            limits.append(body["limits"]["whole"])
    success, eps, delta = (largest(limits, name) for name in ("success", "eps", "delta"))
    return Promise(
        None if success is None or paid.mu2 > most_of(success) else success,
        None if eps is None or paid.eps > eps else eps,
        max(delta or Fraction(0), paid.delta),
        paid,
        person,
    )
