"""Remaining budget: what may still be asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pdrisk._core.risks.gaussian_dp import promised
from pdrisk._core.risks.risk import success_bound
from pdrisk._core.risks.whole_numbers import reached
from pdrisk._digits import probability, rounded_down, rounded_up
from pdrisk._ledger.rules.limits import WINDOWS, Limits, Spent, shown
from pdrisk._ledger.rules.success_limits import HARDLY, LATE, most_of, mu2_of_pure, reachable
from pdrisk._printing import preformatted

USUAL = Fraction(1, 10)  # eps of the queries that are counted
SURE = """\
An attacker who gives even odds is right about whether {who} is in these data at most {times} of 100 times,
after all answers together, however they are combined."""
FIXED = """\
Had these eps been fixed beforehand, an attacker who gives even odds would be right about whether {who} is
in these data at most {times} of 100 times."""
OLDER = "{number} of the answers protected one record: of people with several, all of this may be too low."


@dataclass(frozen=True, slots=True)
class Remaining:
    """Remaining budget.

    Attributes
    ----------
    eps : float or None
        Privacy loss that is left, rounded down; None without a limit.
    delta : float or None
        Of `keys="private"`, rounded down; None where the dataset has no budget of it.
    queries : int or None
        Number of queries that is left; None without a limit.
    queries_at_tenth : int or None
        How many queries of eps 0.1 are left, by all limits.
    spent, delta_spent : float
        Privacy loss of all that was released, to all analysts together.
    risk : float
        Worst-case risk of all releases together; where delta was spent, how often the best attacker is right at most.
    risk_limit : float or None
        What it may rise to.
    success : float or None
        How often the best attacker, who gives even odds, may be right about a person by one more answer alone, so that
        all answers together stay within the limit of success; rounded down. None without that limit.
    success_limit : float or None
        How often he may be right by all answers together, with what delta adds: by this limit, or by that of eps if it
        allows less. None without a limit of success.
    mu2 : Fraction or None
        What is left of the sum of squares of ``mu``; None without a limit of success.
    reserved : float
        The eps that reservations hold.
    fixed_success : float
        How often he would be right at most had all eps so far been fixed beforehand. It is no bound if later questions
        had to do with earlier answers.
    is_of_people : bool
        Whether somebody declared who a person is; else all of it is about one record.
    older : int
        How many answers protected one record, though people are told apart.
    late : int
        How many answers were known when the limit of success was set, set anew or raised; 0 without one that is kept.
    """

    eps: float | None
    queries: int | None
    queries_at_tenth: int | None
    spent: float
    risk: float
    risk_limit: float | None
    delta: float | None = None
    delta_spent: float = 0.0
    success: float | None = None
    success_limit: float | None = None
    mu2: Fraction | None = None
    reserved: float = 0.0
    fixed_success: float = 0.5
    is_of_people: bool = False
    older: int = 0
    late: int = 0

    def __repr__(self) -> str:
        eps = "no limit"
        if self.eps is not None:
            eps = f"{shown(Fraction(str(self.eps)))} ({self.queries_at_tenth} queries at eps 0.1)"
        limit = ""
        if self.risk_limit is not None:
            limit = f" of at most {probability(self.risk_limit) if self.risk_limit <= 0.9999 else 1}"
        risk = "worst-case risk" if self.delta_spent == 0 else "right at most"
        lines = [
            f"eps left          {eps}",
            f"eps spent by all  {self.spent:g}",
            f"{risk:<18}{probability(self.risk)}{limit}",
        ]
        if self.reserved:
            lines.insert(2, f"eps reserved      {self.reserved:g}")
        if self.delta is not None:
            left = f"{self.delta:g}" if self.delta > 0 else "none"
            lines.insert(2, f"delta left        {left} ({self.delta_spent:g} spent)")
        if self.success is not None:
            still = rounded_down(self.success)
            left = "hardly any" if still == HARDLY else f"one more answer may reach {still}"
            lines.insert(1, f"success left      {left if self.success > 0.5 else 'none'}")
        who = "a person" if self.is_of_people else "one record"
        if self.success_limit is not None:
            lines += [SURE.format(times=_of_100(self.success_limit), who=who)]
            lines += [LATE.format(number=f"{self.late:,}")] if self.late else []
        elif self.spent:
            lines += [FIXED.format(times=_of_100(self.fixed_success), who=who)]
        lines += [OLDER.format(number=f"{self.older:,}")] if self.older else []
        if self.queries is not None:
            lines.insert(1, f"queries left      {self.queries}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return preformatted(repr(self))


def remaining_of(
    limits: Mapping[str, Limits],
    spent: Mapping[str, Mapping[str, Spent]],
    everybody: str,
    paid: Spent,
    promises: tuple[Fraction | None, Fraction, Fraction | None],
) -> Remaining:
    """The budget that all limits together leave.

    ``limits, spent``: ``everybody`` is the analyst of what all have spent together, with what reservations hold.
    ``paid``: the same without that.
    ``promises``: the largest success, delta and eps that were ever allowed: a raised limit counts as if granted
        from the start.
    """
    both = [(allowed, spent[who][window], window) for who, allowed in limits.items() for window in WINDOWS]
    eps = [most - before.eps for allowed, before, window in both if (most := allowed.eps_in(window)) is not None]
    queries = [
        number - before.queries
        for allowed, before, window in both
        if (number := allowed.queries_in(window)) is not None
    ]
    per_query = [allowed.eps_per_query for allowed in limits.values() if allowed.eps_per_query is not None]
    mu2 = [
        most_of(limit) - spent[who][""].mu2 for who, allowed in limits.items() if (limit := allowed.success) is not None
    ]
    least = max(min(eps), Fraction(0)) if eps else None
    left = max(min(queries), 0) if queries else None
    usual = [*([] if least is None else [int(least / USUAL)]), *([] if left is None else [left])]
    usual += [int(max(min(mu2), Fraction(0)) / mu2_of_pure(USUAL))] if mu2 else []
    usual += [0] if per_query and min(per_query) < USUAL else []
    delta = [most - spent[who][""].delta for who, allowed in limits.items() if (most := allowed.delta) is not None]
    whole, lost, total = paid.eps, paid.delta, limits[everybody].eps
    success, lose, most_eps = promises
    kept = []
    if success is not None and paid.mu2 <= most_of(success):
        kept = [float(success + lose * (1 - success))]
        kept += [] if most_eps is None or paid.eps > most_eps else [reached(float(most_eps), float(lose))]
    return Remaining(
        eps=None if least is None else _down(least),
        queries=left,
        queries_at_tenth=min(usual) if usual else None,
        spent=float(whole),
        risk=success_bound(float(whole), float(lost)),
        risk_limit=None if total is None else success_bound(float(total), float(limits[everybody].delta or 0)),
        delta=_down(max(min(delta), Fraction(0))) if limits[everybody].delta is not None else None,
        delta_spent=float(lost),
        success=reachable(min(mu2)) if mu2 else None,
        success_limit=min(kept, default=None),
        mu2=max(min(mu2), Fraction(0)) if mu2 else None,
        reserved=float(spent[everybody][""].eps - whole),
        fixed_success=promised(paid.mu2, lost) if whole else 0.5,
    )


def _of_100(success: float) -> str:
    """So many of 100 times, rounded up; 0.55 is 55, though floats make more of a hundred times that."""
    return rounded_up(float(100 * Fraction(str(success))))


def _down(value: Fraction) -> float:
    """A float whose decimal text is not above the fraction."""
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Fraction(str(nearest)) > value else nearest
