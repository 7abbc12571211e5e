"""Replay of the records of a ledger: the sums and limits that they come to, and payments beyond the limits."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from pdrisk._ledger.rules.limits import WINDOWS, Limits, Spent, check
from pdrisk._ledger.rules.reserved import ReservedBudget
from pdrisk._ledger.rules.rules import Rules
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk._ledger.store.records import exact
from pdrisk._ledger.store.store import WRONG, Rows
from pdrisk.errors import BudgetExceededError

Place = tuple[str, str, str]  # the dataset, the analyst and the period of a sum
SAME = 1 - Fraction(1, 2**30)  # numbers of m^2 that two machines compute differ by less
EVERYBODY = ""  # the analyst of what all have spent together


@dataclass(slots=True)
class Replay:
    """State after some records."""

    sums: dict[Place, Spent] = field(default_factory=dict)  # what is in the table of sums
    # the part of ``mu2`` of records that do not have it written down
    old: dict[Place, Fraction] = field(default_factory=dict)
    rules: dict[str, Rules] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)
    held: dict[str, dict[int, ReservedBudget]] = field(default_factory=dict)  # reservations that may not have ended

    def step(
        self, seq: int, time: str, dataset: str, analyst: str, event: str, eps: str, body: dict[str, Any]
    ) -> Callable[[], bool] | None:
        """The step that the next record is, which says whether it goes over the limits of its time.

        None for what no ledger writes there, or one of `store.WRONG` is raised.
        """
        if event in ("opened", "amended"):
            again = dataset in self.rules
            self.written[dataset] = limits = body["limits"]
            self.rules[dataset] = Rules.stored(json.dumps(limits))
            return _no if again == (event == "amended") else None
        if event not in ("paid", "reserved", "returned"):
            return _no
        rules, moment, held = self.rules[dataset], datetime.datetime.fromisoformat(time), self._open(dataset)
        if event == "reserved":
            return partial(self._reserves, dataset, rules, moment, ReservedBudget.recorded(seq, body))
        if event == "returned":
            return partial(self._returns, dataset, held[body["of"]])
        reservation = held[body["reservation"]] if "reservation" in body else None
        return partial(self._pays, dataset, analyst, rules, moment, reservation, *paid_in(eps, body))

    def _open(self, dataset: str) -> dict[int, ReservedBudget]:
        return self.held.setdefault(dataset, {})

    def _reserves(self, dataset: str, rules: Rules, moment: datetime.datetime, new: ReservedBudget) -> bool:
        limits = {EVERYBODY: rules.whole.of_all_time, new.analyst: rules.of_analyst(new.analyst).of_all_time}
        over = new.left.delta > 0 and rules.whole.delta is None
        over = self._is_over(dataset, new.left, limits, moment, {"": ""}, set_aside=True) or over
        self._open(dataset)[new.number], self.sums[dataset, EVERYBODY, new.period] = new, new.left
        return over

    def _returns(self, dataset: str, held: ReservedBudget) -> bool:
        del self._open(dataset)[held.number]
        self.sums[dataset, EVERYBODY, held.period] = Spent()
        return False

    def _pays(
        self, dataset: str, analyst: str, rules: Rules, moment: datetime.datetime, reservation: ReservedBudget | None,
        cost: Spent, is_old: bool,
    ) -> bool:  # fmt: skip
        """Add a payment to the sums; whether it went over the limits of its time."""
        limits = {EVERYBODY: rules.whole, analyst: rules.of_analyst(analyst)}
        periods = {window: period(window, moment) for window in WINDOWS}
        over = self._is_over(dataset, cost, limits, moment, periods, set_aside=reservation is None)
        over = over or (cost.delta > 0 and rules.whole.delta is None)
        if reservation is not None:
            over = (
                over
                or not reservation.is_of(analyst)
                or not reservation.lasts(moment)
                or _refused(reservation.check, "", cost)
            )
            after = self._open(dataset)[reservation.number] = reservation.after(cost)
            self.sums[dataset, EVERYBODY, reservation.period] = after.left
        for who in limits:
            for place in ((dataset, who, at) for at in periods.values()):
                self.sums[place] = self.sums.get(place, Spent()) + cost
                if is_old:
                    self.old[place] = self.old.get(place, Fraction(0)) + cost.mu2
        return over

    def _is_over(
        self, dataset: str, cost: Spent, limits: Mapping[str, Limits], moment: datetime.datetime,
        periods: Mapping[str, str], *, set_aside: bool,
    ) -> bool:  # fmt: skip
        """Whether a cost is over limits after the sums so far, and what is set aside if that counts."""
        over, kept = False, self._open(dataset)
        for number in [number for number, held in kept.items() if not held.lasts(moment)]:
            del kept[number]
        for who, allowed in limits.items():
            before = {window: self.sums.get((dataset, who, at), Spent()) for window, at in periods.items()}
            for reservation in kept.values() if set_aside else ():
                if who == EVERYBODY or reservation.is_of(who):
                    before[""] += reservation.left
            asked = cost
            if allowed.success is not None:
                asked, before[""] = _nearly(cost), _nearly(before[""])
            over = over or _refused(check, "", asked, allowed, before, "")
        return over

    def has_sums(self, spending: Rows) -> bool:
        """Whether the stored sums are these; of m^2 that was not written down, as near as machines differ."""
        try:
            stored = {(name, who, at): (spent_of(*sums), sums[-1]) for name, who, at, *sums in spending}
        except WRONG:
            return False
        if stored.keys() != self.sums.keys():
            return False
        for place, (sums, mu2) in stored.items():
            total, unwritten = self.sums[place], self.old.get(place, Fraction(0))
            near = total.mu2 == unwritten if mu2 is None else abs(sums.mu2 - total.mu2) <= unwritten * (1 - SAME)
            if not near or replace(sums, mu2=total.mu2) != total:
                return False
        return True

    def has_limits(self, datasets: Rows) -> bool:
        """Whether the stored limits are these."""
        try:
            return {name: json.loads(limits) for name, limits in datasets} == self.written
        except WRONG:
            return False


def _no() -> bool:
    return False


def _nearly(spent: Spent) -> Spent:
    return replace(spent, mu2=spent.mu2 * SAME)


def _refused(check: Any, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except BudgetExceededError:
        return True
    return False


def paid_in(eps: str, body: Mapping[str, Any]) -> tuple[Spent, bool]:
    """Cost of the query in a record of a payment, and whether its m^2 was not written down and is that of its eps.

    Raises one of `store.WRONG` for what no ledger writes.
    """
    loss, mu2 = exact(eps), body.get("mu2")
    cost = Spent(loss, 1, exact(body.get("delta", "0")), mu2_of_pure(loss) if mu2 is None else exact(mu2))
    return cost, mu2 is None


def spent_of(eps: str, queries: object, delta: str | None, mu2: str | None) -> Spent:
    """Spending in a row of sums; raises one of `store.WRONG` for what no ledger writes."""
    if not isinstance(queries, int) or isinstance(queries, bool) or queries < 0:
        raise TypeError
    none = Fraction(0)
    return Spent(exact(eps), queries, none if delta is None else exact(delta), none if mu2 is None else exact(mu2))


def period(window: str, now: datetime.datetime) -> str:
    """The calendar period that a moment is in."""
    return now.strftime({"": "", "day": "%Y-%m-%d", "month": "%Y-%m"}[window])
