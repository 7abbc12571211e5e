"""Promise of a ledger: what its limits of all time keep every attacker to, whatever is asked."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pdrisk._core.risks.gaussian_dp import promised
from pdrisk._core.risks.whole_numbers import reached
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.accounts.replay import paid_in
from pdrisk._ledger.rules.limits import Spent
from pdrisk._ledger.rules.rules import largest
from pdrisk._ledger.rules.success_limits import most_of
from pdrisk._ledger.store.records import exact
from pdrisk._ledger.store.store import Rows, decoded


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
    older : int
        How many answers protected one record, though people are told apart: of a person with several, they may tell
        more than any number here.
    late : int
        How many answers were known when the limit of success was set, set anew or raised: it holds if they did not
        decide it.
    """

    success: Fraction | None
    eps: Fraction | None
    delta: Fraction
    paid: Spent
    person: Hashable | None
    older: int = 0
    late: int = 0

    @property
    def limit(self) -> float | None:
        """How often the best attacker with a coin's prior is right at most by all answers; None without a limit."""
        delta, chances = float(self.delta), []
        if self.success is not None:
            chances.append(promised(most_of(self.success), self.delta) if delta else float(self.success))
        if self.eps is not None:
            chances.append(reached(float(self.eps), delta))
        return min(chances) if chances else None


def promise_of(ledger: Payer) -> Promise:
    """The promise of a dataset's ledger."""
    with ledger._reading() as account:
        rows, person = _rows(account), account.person()
        return decoded(account.place, lambda: promise_in(rows, person))


def doubts_of(account: Account) -> tuple[int, int]:
    """What `Promise.older` and `Promise.late` are of a dataset."""
    rows, person = _rows(account), account.person()
    return decoded(account.place, lambda: _doubts([(event, json.loads(text)) for event, _, text in rows], person))


def _rows(account: Account) -> Rows:
    return account.ask(
        "SELECT event, eps, body FROM records WHERE dataset = ? AND event IN ('opened', 'amended', 'paid') "
        "ORDER BY seq",
        (account.dataset,),
    )


def promise_in(rows: Rows, person: Hashable | None) -> Promise:
    """The promise by records ``event eps body`` of a dataset; raises one of `store.WRONG` for what no ledger writes."""
    events = [(event, json.loads(text)) for event, _, text in rows]
    given = zip(rows, events, strict=True)
    paid = sum((paid_in(eps, body)[0] for (event, eps, _), (_, body) in given if event == "paid"), Spent())
    limits = [body["limits"]["whole"] for event, body in events if event != "paid"]
    success, eps, delta = (largest(limits, name) for name in ("success", "eps", "delta"))
    older, late = _doubts(events, person)
    is_kept = success is not None and paid.mu2 <= most_of(success)
    return Promise(
        success if is_kept else None,
        None if eps is None or paid.eps > eps else eps,
        max(delta or Fraction(0), paid.delta),
        paid,
        person,
        older,
        late if is_kept else 0,
    )


def _doubts(events: Sequence[tuple[str, Any]], person: Hashable | None) -> tuple[int, int]:
    of_people: list[bool] = []
    late, highest = 0, Fraction(0)
    for event, body in events:
        if event == "paid":
            of_people.append("person" in body["question"] and body["question"].get("unit") != "row")
            continue
        granted = exact(body["limits"]["whole"].get("success", "0"))
        if granted > highest:
            late = len(of_people)
        highest = max(highest, granted) if granted else Fraction(0)  # once removed, it is set anew
    return of_people.count(False) if person is not None or any(of_people) else 0, late
