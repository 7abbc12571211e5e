"""Spending on all releases so far, as explanations say it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdrisk._answer.answers.answer import Answer
from pdrisk._digits import rounded_down
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.accounts.remaining import Remaining
from pdrisk._ledger.publishing.promise import Promise, promise_of
from pdrisk._ledger.rules.success_limits import HARDLY
from pdrisk._model.unit_label import name_of_people
from pdrisk.errors import ColumnTypeError, ParameterError


@dataclass(frozen=True, slots=True)
class SoFar:
    """Eps and delta of all releases so far, a text about what is left, and the limit of success, if one holds.

    ``doubts`` are texts about what these do not hold for.
    """

    total: float | None
    left: str
    delta: float
    limit: float | None = None
    doubts: tuple[str, ...] = ()


def spent_so_far(so_far: object, answer: Answer, wording: Mapping[str, str]) -> SoFar:
    """Spending up to an answer, as ``so_far`` says: an eps, a ledger or nothing; raises as `explained`."""
    delta, limit = answer.delta, None
    doubtful: tuple[str, ...] = ()
    if so_far is None:
        return SoFar(None, wording["left_unknown"], delta)
    # Of its class: an object that has whatever is asked for, such as a pd.col expression, is no ledger.
    remaining: Any = getattr(type(so_far), "remaining", None)
    if callable(remaining) and answer.replaces:
        raise ParameterError('no ledger pays for neighbours="replace-one": pass the sum of the eps of all releases.')
    if callable(remaining):  # a ledger
        account = remaining(so_far)
        total, delta = float(account.spent), max(float(account.delta_spent), delta)
        left = left_of(account, wording)
        if isinstance(so_far, Payer):
            promise = promise_of(so_far)
            limit, doubtful = None if promise.success is None else promise.limit, doubts(promise, wording)
    elif answer.delta:
        raise ParameterError(
            "so_far= of an answer with delta must be the ledger that paid: an eps alone says too little."
        )
    elif isinstance(so_far, numbers.Real) and not isinstance(so_far, bool | np.timedelta64):
        try:
            total, left = float(so_far), wording["left_unknown"]
        except OverflowError:
            total, left = math.inf, wording["left_unknown"]
    else:
        raise ColumnTypeError(
            f"so_far must be the eps of all releases so far, a number, or the ledger that paid for them, not of type "
            f"{type(so_far).__name__}."
        )
    if not answer.eps * (1 - 1e-9) <= total < math.inf:  # a sum of floats may be short of it in its last digits
        raise ParameterError(
            f"so_far must be the eps of all releases so far, this one included: it is {total:g}, but this one alone "
            f"cost {answer.eps:g}. Pass the sum, or the ledger that paid."
        )
    return SoFar(max(total, answer.eps), left, delta, limit, doubtful)


def doubts(promise: Promise, wording: Mapping[str, str]) -> tuple[str, ...]:
    """What the numbers of a ledger do not hold for: people whose records answers did not protect, a limit set late."""
    sentences = []
    if promise.older:
        unit = called("person" if promise.person is None else promise.person)
        sentences.append(wording["doubt_older"].format(number=f"{promise.older:,}", unit=unit))
    if promise.late:
        sentences.append(wording["doubt_late"].format(number=f"{promise.late:,}"))
    return tuple(sentences)


def called(person: Hashable) -> str:
    """What texts call one of the people that these columns tell apart."""
    return name_of_people(person if isinstance(person, tuple) else (person,), None)


def left_of(account: Remaining, wording: Mapping[str, str]) -> str:
    """What is left of a ledger's budget, as a text."""
    left = wording["left_unlimited"] if account.eps is None else wording["left_is"].format(eps=f"{account.eps:.6g}")
    if account.success is not None:
        success = rounded_down(account.success)
        hardly = "_none" if account.success <= 0.5 else "_hardly" if success == HARDLY else ""
        text = wording[f"left_success{hardly}"].format(success=success)
        left = text if account.eps is None else f"{text}; {left}"
    if account.delta is not None:
        left = wording["left_delta"].format(left=left, delta=f"{account.delta:.6g}")
    return left
