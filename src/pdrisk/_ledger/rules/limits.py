"""Limits of spending: of a dataset by all, and by each analyst."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from pdrisk._core.foreign import shown as shown_value
from pdrisk._digits import probability, rounded_down
from pdrisk._ledger.rules.success_limits import HARDLY, most_of, reachable, success_of
from pdrisk._ledger.store.records import exact
from pdrisk._mechanisms.partition_selection import SMALLEST_DELTA
from pdrisk._model.arguments import checked_success, epsilon
from pdrisk._model.groups.private_keys import checked_delta
from pdrisk.errors import BudgetExceededError, ColumnTypeError, ParameterError

DIGITS = 10**40
LARGEST = 10**4000  # Python does not write out longer integers
WINDOWS = ("", "day", "month")  # of all time, of a calendar day and of a month, in UTC


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of spending; None is no limit."""

    # `eps`, `eps_per_day`, `eps_per_month`, `eps_per_query`: privacy loss, of all time, of a calendar day or
    # month in UTC, of one query
    eps: Fraction | None = None
    eps_per_day: Fraction | None = None
    eps_per_month: Fraction | None = None
    eps_per_query: Fraction | None = None
    queries: int | None = None
    queries_per_day: int | None = None
    queries_per_month: int | None = None
    delta: Fraction | None = None  # Of all time. Of all together None allows none; of an analyst it is no limit.
    # how often the best attacker with a coin's prior may be right about a person, by all answers of all time
    success: Fraction | None = None

    @classmethod
    def given(cls, amounts: Mapping[str, Any]) -> Limits:
        """Limits as an owner writes them; ``risk`` is the worst case of an eps."""
        known = {field.name for field in fields(cls)}
        if unknown := [name for name in islice(amounts, len(known) + 2) if name not in known | {"risk"}]:
            raise ParameterError(
                f"unknown limit {shown_value(unknown[0])}; available: {', '.join(sorted(known | {'risk'}))}."
            )
        limits: dict[str, Any] = {}
        for name, value in amounts.items():
            if value is None:
                continue
            if name.startswith("queries"):
                limits[name] = whole_number(name, value)
            elif name == "delta":
                limits[name] = checked_delta(value)
            elif name == "success":
                limits[name] = checked_success(value)
            elif name != "risk":
                limits[name] = epsilon(value)
        if amounts.get("risk") is not None:
            loss = epsilon(risk=amounts["risk"])
            limits["eps"] = min(loss, limits.get("eps", loss))
        return cls(**limits)

    @classmethod
    def stored(cls, texts: Mapping[str, str]) -> Limits:
        """Limits from the stored `texts`; raises one of `store.WRONG` for anything else."""
        return cls.given(
            {name: int(text) if name.startswith("queries") else exact(text) for name, text in texts.items()}
        )

    @property
    def texts(self) -> dict[str, str]:
        """The limits that are set, as exact texts."""
        return {f.name: str(value) for f in fields(self) if (value := getattr(self, f.name)) is not None}

    @property
    def of_all_time(self) -> Limits:
        """The limits of sums of all time alone."""
        return Limits(eps=self.eps, queries=self.queries, delta=self.delta, success=self.success)

    def eps_in(self, window: str) -> Fraction | None:
        """The limit of eps in a window."""
        return getattr(self, f"eps_per_{window}" if window else "eps")

    def queries_in(self, window: str) -> int | None:
        """The limit of queries in a window."""
        return getattr(self, f"queries_per_{window}" if window else "queries")


@dataclass(frozen=True, slots=True)
class Spent:
    """Spending in one window."""

    eps: Fraction = Fraction(0)
    queries: int = 0
    delta: Fraction = Fraction(0)
    mu2: Fraction = Fraction(0)

    def __add__(self, other: Spent) -> Spent:
        delta = self.delta + other.delta if other.delta else self.delta
        return Spent(self.eps + other.eps, self.queries + other.queries, delta, self.mu2 + other.mu2)

    def __sub__(self, other: Spent) -> Spent:
        delta = self.delta - other.delta
        return Spent(self.eps - other.eps, self.queries - other.queries, delta, self.mu2 - other.mu2)

    @property
    def texts(self) -> dict[str, str]:
        """The amounts as exact texts."""
        return {name: str(amount) for name, amount in asdict(self).items()}


def check(
    request: str,
    cost: Spent,
    limits: Limits,
    spent: Mapping[str, Spent],
    whose: str,
    askable: Callable[[Fraction], Fraction] = lambda left: left,
    fitting: Callable[[Fraction], tuple[Fraction, Fraction]] = lambda left: (Fraction(0), left),
) -> None:
    """Refuse a query that would go over a limit.

    ``request``: what is asked, as in ``answer mean(distance)``.
    ``cost``: what it costs.
    ``whose``: whose limits these are, for the message: ``"dataset 'soep'"``.
    ``askable``: the eps to ask with that costs no more than what is left.
    ``fitting``: the same for what is left of m^2, and the m^2 of that question alone.
    """
    for asked, left, problem, next_step in _overdrawn(cost, limits, spent, whose, askable):
        raise BudgetExceededError(
            f"cannot {request}: {problem}. {next_step}", asked, max(left, Fraction(0)), asked - left
        )
    _check_delta(request, cost.delta, limits, spent, whose)
    _check_success(request, cost.mu2, limits, spent, whose, fitting)


def _check_delta(request: str, delta: Fraction, limits: Limits, spent: Mapping[str, Spent], whose: str) -> None:
    if limits.delta is None:
        return
    left = limits.delta - spent.get("", Spent()).delta
    if delta > left:
        ask = f"Ask with delta={shown(left)} or less, or have" if left >= SMALLEST_DELTA else "Have"
        problem = f"{_short(delta, left, limits.delta, '', 'delta')}. {ask} the owner raise the limit of {whose}."
        raise BudgetExceededError(f"cannot {request}: {problem}", delta, max(left, Fraction(0)), delta - left)


def _check_success(
    request: str,
    mu2: Fraction,
    limits: Limits,
    spent: Mapping[str, Spent],
    whose: str,
    fitting: Callable[[Fraction], tuple[Fraction, Fraction]],
) -> None:
    if limits.success is None:
        return
    left = most_of(limits.success) - spent.get("", Spent()).mu2
    if mu2 <= left:
        return
    (eps, alone), remainder, ask = fitting(left), "nothing is left", "Have"
    if left > 0:
        still, remainder = rounded_down(reachable(left)), "hardly anything is left"
        remainder = remainder if still == HARDLY else f"one more answer may still reach success {still}"
    if eps > 0:
        asked = rounded_down(reachable(alone))  # of several queries 0.5, for which no success= can be advised
        ask = f"Ask with eps={shown(eps)}{'' if asked == HARDLY else f' or success={asked}'} or less, or have"
    raise BudgetExceededError(
        f"cannot {request}: with it, the best attacker could be right about a person more than "
        f"{shown(100 * limits.success)} of 100 times by all answers; {remainder}, and this would reach "
        f"{probability(success_of(mu2))}. {ask} the owner raise the limit of {whose}.",
        mu2, max(left, Fraction(0)), mu2 - left,
    )  # fmt: skip


def _overdrawn(
    cost: Spent,
    limits: Limits,
    spent: Mapping[str, Spent],
    whose: str,
    askable: Callable[[Fraction], Fraction],
) -> Iterator[tuple[Fraction, Fraction, str, str]]:
    raised, eps = f"have the owner raise the limit of {whose}.", cost.eps
    if limits.eps_per_query is not None and eps > limits.eps_per_query:
        most = limits.eps_per_query
        yield eps, most, _short(eps, most, most, " for one query"), _less(askable(most), "or ", raised)
    for window in WINDOWS:
        before = spent.get(window, Spent())
        when = f" for this {window} (UTC)" if window else ""
        wait = f"wait for the next {window}, or " if window else ""
        if (limit := limits.eps_in(window)) is not None and before.eps + eps > limit:
            left = limit - before.eps
            yield eps, left, _short(eps, left, limit, when), _less(askable(left), wait or "or ", raised)
        if (most_queries := limits.queries_in(window)) is not None and before.queries + cost.queries > most_queries:
            left = Fraction(most_queries - before.queries)
            many = f"{left} of {most_queries} queries are left{when}"
            problem = many if left > 0 else f"all {most_queries} queries{when} have been asked"
            yield Fraction(cost.queries), left, problem, _sentence(f"{wait}{raised}")


def _short(asked: Fraction, left: Fraction, limit: Fraction, when: str, what: str = "eps") -> str:
    of = "nothing" if left <= 0 else shown(left)
    missing = shown(asked - left, ROUND_CEILING)
    return f"it asks for {what} {shown(asked, ROUND_CEILING)}, {of} of {shown(limit)} is left{when} ({missing} short)"


def _less(eps: Fraction, wait: str, raised: str) -> str:
    """Advice for whoever may still ask with this eps."""
    if eps > 0:
        return f"Ask with eps={shown(eps)} or less, {wait}{raised}"
    return _sentence(f"{wait.removeprefix('or ')}{raised}")


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def payable(eps: Fraction) -> Fraction:
    """The eps that is paid for a loss: the loss itself, or the next decimal above if its fraction is long."""
    rest = (eps * DIGITS).denominator
    short = rest <= 2**64 and rest & (rest - 1) == 0  # decimals, and what a risk comes to
    return eps if short or eps.denominator <= 1000 else Fraction(math.ceil(eps * DIGITS), DIGITS)


def share_of(total: Fraction, number: int) -> Fraction:
    """One of so many equal shares that are paid separately: rounded down if `payable` would round it up.

    So all of them never cost more than the total.
    """
    share = total / number
    return share if payable(share) == share else Fraction(math.floor(share * DIGITS), DIGITS)


def shown(number: Fraction, rounding: str = ROUND_FLOOR) -> str:
    """A number as it was written or as a short decimal; else six digits, rounded so that it never says too much."""
    near = float(number)
    if Fraction(str(near)) == number:  # as somebody wrote it
        return f"{Decimal(str(near)):f}".removesuffix(".0")
    digits = Context(prec=40, rounding=rounding)
    whole = digits.divide(Decimal(number.numerator), Decimal(number.denominator))
    if Fraction(whole) == number and len(f"{whole:f}") <= 12:
        return f"{whole:f}"
    return f"{Context(prec=6, rounding=rounding).plus(whole):f}"


def whole_number(name: str, value: object) -> int:
    """A whole number, at least 1."""
    kind = type(value)  # not isinstance: an object may say that it is of another class
    if issubclass(kind, bool | np.timedelta64) or not issubclass(kind, numbers.Integral):
        raise ColumnTypeError(f"{name} must be a whole number, not of type {kind.__name__}.")
    number = operator.index(value)  # type: ignore[arg-type] # of Python's own type, whatever a subclass makes of itself
    if not 1 <= number < LARGEST:
        raise ParameterError(f"{name} must be at least 1 and can be written down, but is {shown_value(number)}.")
    return number
