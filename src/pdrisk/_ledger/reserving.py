"""Reserving: the methods of a ledger that set budget aside for planned questions."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pdrisk._core.foreign import own_errors
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.rules.limits import Spent, payable, shown
from pdrisk._ledger.rules.names import known_as, named
from pdrisk._ledger.rules.reserved import ReservedBudget, end_of, planned
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk.errors import BudgetExceededError, ParameterError, PolicyError

if TYPE_CHECKING:
    from pdrisk._ledger.reservation import Reservation


class Reserving(Payer):
    """Ledger as whoever plans uses it."""

    @own_errors
    def reserve(
        self,
        plan: Any,
        *,
        purpose: str,
        analyst: str | None = None,
        until: float | datetime.date | datetime.timedelta = 30,
    ) -> Reservation:
        """Reservation of budget for planned questions: set aside now at the price that they will pay.

        Its answers pay from it, as in ``with ledger.reserve(plan, purpose="annual tables"):``. What was never asked
        comes back when it is closed, when it ends, or after the last of its questions. It fixes amounts alone: the
        questions, their bounds and their keys are judged when they are asked, and one that is refused costs nothing.

        Parameters
        ----------
        plan : Plan, dict or list of dict
            What `pdrisk.plan` gives with ``success=`` or targets, or the eps of each question, as in
            ``[{"eps": 0.1}, {"eps": 0.2, "mu": 0.18}]``; ``mu`` as `pdrisk.risk.mu` says, by default that of any answer
            of this eps. ``{"eps": 0.5, "delta": 1e-6}`` is one with private keys.
        purpose : str
            What the questions are for, in one line, for the history.
        analyst : str, optional
            Who asks them, and whose limits hold; only the owner reserves for others.
        until : float, timedelta, date or datetime, default 30
            When it ends: after so many days or that long, with the end of that day, or then (UTC without a zone). At
            most a year from now; as the owner, ten.

        Returns
        -------
        Reservation

        Raises
        ------
        BudgetExceededError
            If that much is not left. Limits of a day, a month and a query hold later, for each question.
        PolicyError
            If the plan costs delta, and the dataset has no budget of that.
        """
        from pdrisk._ledger.reservation import Reservation

        if self._reservation is not None:
            raise ParameterError("a reservation holds no other: reserve from the ledger itself.")
        cost, why = planned(plan), named("purpose", purpose)
        with self._writing() as account:
            rules = account.rules()
            end = end_of(until, account.now, rules.is_owner(account.analyst))
            who = account.analyst if analyst is None else named("analyst", analyst)
            who = known_as(account.ask, account.place, account.dataset, who)
            if who != account.analyst and not rules.is_owner(account.analyst):
                raise ParameterError("only the owner of a dataset reserves for others: leave analyst= out.")
            its = replace(account, analyst=who)
            looks = rules.policy.least_group
            if looks is not None:  # one for each question
                look = Spent(payable(looks.eps), 0, Fraction(0), payable(mu2_of_pure(looks.eps)))
                cost = sum([look] * cost.queries, cost)
            request = f"reserve eps {shown(cost.eps)} for {why!r}"
            try:
                its.check_delta(request, cost.delta, rules)
                whole, analyst_limits = rules.whole.of_all_time, rules.of_analyst(who).of_all_time
                its.check(request, cost, whole, analyst_limits, its.spent(), lambda _: Fraction(0))
                held = ReservedBudget(0, who, why, end, cost)
                return Reservation(self, replace(held, number=account.reserve(held)))
            except (BudgetExceededError, PolicyError) as error:
                refusal = error
            account.record("refused", {"purpose": why, "reason": str(refusal)})
        raise refusal

    def reservations(self) -> list[Reservation]:
        """Reservations that have not ended: your own; as the dataset's owner, all."""
        from pdrisk._ledger.reservation import Reservation

        with self._reading() as account:
            rules, analyst = account.rules(), account.analyst
            return [
                Reservation(self, held)
                for held in account.reservations()
                if held.is_of(analyst) or rules.is_owner(analyst)
            ]
