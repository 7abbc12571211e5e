"""Private keys: options of a request whose groups are chosen by chance, for a share of eps and for delta."""

from __future__ import annotations

import numbers
from fractions import Fraction
from typing import Final

import numpy as np

from pdrisk._core.foreign import shown
from pdrisk._mechanisms.partition_selection import LARGEST_DELTA, SMALLEST_DELTA, PartitionSelection
from pdrisk._model.arguments import as_written
from pdrisk._model.groups.keys import check_words
from pdrisk._model.missing_arguments import missing_argument
from pdrisk._model.plain import float_of, plain_number
from pdrisk._model.unit import Unit
from pdrisk.errors import ColumnTypeError, ParameterError

LACKS_DELTA: Final = 'delta=, the probability that keys="private" fails to hide somebody, far below 1/number of people'
MOST_PEOPLE: Final = 10**9


def are_private(keys: object) -> bool:
    """Whether keys are the word "private": chance chooses among those that occur, for eps and delta."""
    return isinstance(keys, str) and keys == "private"


def checked_delta(delta: object) -> Fraction:
    """A delta exactly as written: ``1e-6`` is a millionth."""
    plain = plain_number("delta", delta)
    number = float_of("delta", plain)
    exact = as_written("delta", plain) if 0 < number < 1 else None
    if exact is None or not SMALLEST_DELTA <= exact <= LARGEST_DELTA:
        raise ParameterError(
            f"delta must be between {float(SMALLEST_DELTA):g} and {float(LARGEST_DELTA):g}, but is {number:g}. With "
            "that probability the list of groups may show that a given person is in the data: choose much less than "
            "1/number of people, such as 1e-6 or 1e-8."
        )
    return exact


def check_delta_given(keys: object, delta: object) -> None:
    """Refuse private keys without delta, and words that mean nothing."""
    check_words(keys)
    if are_private(keys) and delta is None:
        raise missing_argument(
            'keys="private" shows only groups of enough people, by chance, and needs delta=, the probability that it '
            "fails to hide somebody: pass delta=1e-6, or less, far below 1/number of people.",
            LACKS_DELTA,
        )


def share_of_values(keys: object, eps: Fraction) -> Fraction:
    """The eps left for values: private keys are chosen with half of it."""
    return eps / 2 if are_private(keys) else eps


def judged_groups_shown(
    keys: object, delta: object, least_group: object, risk: object, eps: Fraction | None, unit: Unit
) -> PartitionSelection | None:
    """The choice of private keys, with half of eps; None for listed keys.

    ``keys, delta, least_group, risk``: as the caller wrote them.
    ``eps``: of the whole question; needed for private keys.
    ``unit``: says in how many groups a person counts.
    """
    if not are_private(keys):
        for name, value in (("delta", delta), ("least_group", least_group)):
            if value is not None:
                raise ParameterError(f'{name}= is for keys="private" alone: leave it out.')
        return None
    if risk is not None:
        raise ParameterError(
            "risk= bounds what an attacker may come to believe, and with delta no such bound holds for everybody: "
            'pass eps= with keys="private".'
        )
    check_delta_given(keys, delta)
    if unit.overall:
        raise ParameterError(
            'keys="private" shows groups by their numbers of people, so it has to know in how many groups a person '
            "counts: pass groups=g as well."
        )
    assert eps is not None
    selection = PartitionSelection(eps / 2, checked_delta(delta), unit.groups, _people(least_group))
    selection.check()
    return selection


def _people(least_group: object) -> int:
    if least_group is None:
        return 1
    if isinstance(least_group, bool | np.bool_) or not isinstance(least_group, numbers.Integral):
        raise ColumnTypeError(f"least_group is a whole number of people, not of type {type(least_group).__name__}.")
    size = int(least_group)
    if not 1 <= size <= MOST_PEOPLE:
        raise ParameterError(f"least_group must be between 1 and {MOST_PEOPLE:,} people, but is {shown(size)}.")
    return size
