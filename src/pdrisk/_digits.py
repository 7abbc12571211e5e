"""Numbers as text, rounded towards the person: risks up, an eps that is advice down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def probability(value: float) -> str:
    """A risk in four digits, rounded up so that it never looks smaller than it is; near 1 it is never called 1.

    Examples
    --------
    >>> probability(0.500000001), probability(0.25), probability(0.999999)
    ('0.5001', '0.25', '> 0.9999')
    """
    return "> 0.9999" if value > 0.9999 else rounded_up(value)


def rounded_up(value: float, digits: int = 4) -> str:
    """A number in so many digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """A number in so many digits, rounded down: an advised eps must not exceed the one that was found.

    Examples
    --------
    >>> rounded_down(2.2495966), rounded_up(2.2495966)
    ('2.249', '2.25')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, way: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    return f"{float(Context(prec=digits, rounding=way).create_decimal(repr(float(value)))):.{digits}g}"
