"""Reserved budget: what a reservation holds, and what planned questions cost."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pdrisk._core.foreign import shown as shown_value
from pdrisk._core.risks.gaussian_dp import squared
from pdrisk._digits import rounded_down
from pdrisk._ledger.rules.limits import DIGITS, Spent, payable, shown
from pdrisk._ledger.rules.names import folded
from pdrisk._ledger.rules.success_limits import mu2_of_pure, reachable
from pdrisk._ledger.store.records import exact
from pdrisk._model.arguments import epsilon
from pdrisk._model.groups.private_keys import checked_delta
from pdrisk._model.plain import float_of, plain_number
from pdrisk.errors import BudgetExceededError, ColumnTypeError, ParameterError

RESERVED = "reserved"  # begins the period in which the sums of a reservation are kept
DAYS = 30
LONGEST = 3660  # days
A_YEAR = 366


@dataclass(frozen=True, slots=True)
class ReservedBudget:
    """What a reservation holds."""

    number: int  # of its record; 0 before there is one
    analyst: str  # who asks the questions
    purpose: str
    until: datetime.datetime  # when it ends, if nobody ends it before
    left: Spent

    @classmethod
    def stored(cls, number: int, body: Mapping[str, Any], left: Spent) -> ReservedBudget:
        """A reservation from the body of its record, and what is left of it; raises one of `store.WRONG`."""
        until = datetime.datetime.fromisoformat(body["until"])
        return cls(number, str(body["analyst"]), str(body["purpose"]), until, left)

    @classmethod
    def recorded(cls, number: int, body: Mapping[str, Any]) -> ReservedBudget:
        """The same as it was when it was made."""
        amounts = body["reserved"]
        eps, delta, mu2 = (exact(amounts[name]) for name in ("eps", "delta", "mu2"))
        return cls.stored(number, body, Spent(eps, int(exact(amounts["queries"])), delta, mu2))

    @property
    def body(self) -> dict[str, Any]:
        """The body of its record."""
        return {
            "reserved": self.left.texts, "analyst": self.analyst, "purpose": self.purpose,
            "until": self.until.isoformat(),
        }  # fmt: skip

    def is_of(self, analyst: str) -> bool:
        """Whether it is for this analyst; names are compared like those of analysts."""
        return folded(self.analyst) == folded(analyst)

    @property
    def period(self) -> str:
        """The period in which its sums are kept."""
        return f"{RESERVED} {self.number}"

    def lasts(self, now: datetime.datetime) -> bool:
        """Whether something may still be paid from it."""
        return self.left.queries > 0 and now < self.until

    def after(self, cost: Spent) -> ReservedBudget:
        """What it holds after a payment; after the last of its questions it has ended."""
        return replace(self, left=self.left - cost)

    def check(
        self,
        request: str,
        cost: Spent,
        askable: Callable[[Fraction], Fraction] = lambda left: left,
        cheaper: Callable[[Fraction], tuple[Fraction, Fraction]] = lambda left: (Fraction(0), left),
    ) -> None:
        """Refuse what costs more than it holds."""
        left, where = self.left, f"is left of reservation {self.number} ({self.purpose!r})"
        beside = "ask the ledger itself, outside of the reservation."
        if cost.eps > left.eps:
            reason, asked, there = f"eps {shown(left.eps)} {where}", cost.eps, left.eps
            fits = askable(left.eps)
        elif cost.mu2 > left.mu2:
            reason, asked, there = f"success {rounded_down(reachable(left.mu2))} {where}", cost.mu2, left.mu2
            fits = cheaper(left.mu2)[0]
        elif cost.delta > left.delta:
            reason, asked, there, fits = f"delta {shown(left.delta)} {where}", cost.delta, left.delta, Fraction(0)
        elif cost.queries > left.queries:
            reason, asked, there, fits = (
                f"no question {where}",
                Fraction(cost.queries),
                Fraction(left.queries),
                Fraction(0),
            )
        else:
            return
        ask = f"Ask with eps={shown(fits)} or less, or {beside}" if fits > 0 else beside.capitalize()
        raise BudgetExceededError(f"cannot {request}: {reason}. {ask}", asked, there, asked - there)


def end_of(until: object, now: datetime.datetime, is_owner: bool) -> datetime.datetime:
    """When a reservation ends, from a number of days, a span or a time; a time without a zone is UTC."""
    longest = LONGEST if is_owner else A_YEAR
    if isinstance(until, datetime.datetime):
        ahead = (until if until.tzinfo is not None else until.replace(tzinfo=datetime.UTC)) - now
    elif isinstance(until, datetime.date):  # to its end
        ahead = datetime.datetime.combine(until, datetime.time(), datetime.UTC) - now + datetime.timedelta(days=1)
    elif isinstance(until, datetime.timedelta):
        ahead = until
    else:
        days = float_of("until", plain_number("until", until))
        ahead = datetime.timedelta(days=days if 0 < days <= LONGEST else 0)
    if not datetime.timedelta(0) < ahead <= datetime.timedelta(days=longest):
        raise ParameterError(
            f"until must be later than now, and at most {longest} days ahead"
            f"{'' if is_owner else f'; only the owner of the dataset reserves for longer, up to {LONGEST}'}."
        )
    return (now + ahead).astimezone(datetime.UTC)


def planned(plan: object) -> Spent:
    """Cost of planned questions: of a `pdrisk.plan`, or of dicts such as ``{"eps": 0.1}``."""
    if isinstance(plan, Mapping):
        return _of_dict(plan)
    if isinstance(plan, list | tuple):
        total = sum(map(planned, plan), Spent())
        if not plan:
            raise ParameterError('a reservation is of one question at least, such as {"eps": 0.1}.')
        return total
    amounts = [getattr(plan, name, None) for name in ("eps", "queries", "delta", "mu2")]
    eps, queries, delta, mu2 = amounts
    if (
        isinstance(eps, Fraction) and isinstance(delta, Fraction) and isinstance(mu2, Fraction)
        and isinstance(queries, int) and min(eps, mu2) > 0 <= delta and queries > 0
    ):  # fmt: skip
        # Each question pays its own m^2, rounded up: so much more than their sum.
        return Spent(payable(eps), queries, payable(delta), payable(mu2) + Fraction(queries, DIGITS))
    raise ColumnTypeError(
        "reserve takes what pdrisk.plan(..., success=...) gives, or the eps of each question, as in "
        f'[{{"eps": 0.1}}, {{"eps": 0.2}}], not of type {type(plan).__name__}.'
    )


def _of_dict(question: Mapping[Any, Any]) -> Spent:
    """Cost of one question; without ``mu`` that of any answer of this eps."""
    if unknown := [name for name in question if name not in ("eps", "mu", "delta")]:
        raise ParameterError(
            f'a planned question is written {{"eps": 0.1}}, with "mu" and "delta", not with {shown_value(unknown[0])}.'
        )
    if question.get("eps") is None:
        raise ParameterError('a planned question has an eps, as in {"eps": 0.1} or {"eps": 0.2, "mu": 0.18}.')
    eps = epsilon(question["eps"])
    mu2 = mu2_of_pure(eps)
    if question.get("mu") is not None:
        mu = float_of("mu", plain_number("mu", question["mu"]))
        if not mu > 0:
            raise ParameterError(f"mu must be above 0, but is {mu:g}.")
        mu2 = min(mu2, squared(mu))
    delta = checked_delta(question["delta"]) if question.get("delta") is not None else Fraction(0)
    return Spent(payable(eps), 1, payable(delta), payable(mu2))
