"""Uniform number whose bits are drawn as far as a comparison with exp(-x) needs them, in whole numbers."""

from __future__ import annotations

from fractions import Fraction

from pdrisk._mechanisms.noise.entropy import Bits


class ExactUniform:
    """A uniform number u in [0, 1) whose first bits are known; all other bits are independent and fair.

    Parameters
    ----------
    known : int
        The first bits: ``known <= 2**length * u < known + 1``.
    length : int
        How many they are.
    bits : callable
        Gives the others.
    """

    def __init__(self, known: int, length: int, bits: Bits) -> None:
        self._known = known
        self._length = length
        self._bits = bits

    def is_below_exp(self, exponent: Fraction) -> bool:
        """Whether ``u < exp(-exponent)``, for an exponent of 0 or more; draws bits until that is certain."""
        while True:
            low, high = scaled_exp(exponent, self._length)
            if self._known < low:
                return True
            if self._known >= high:
                return False
            self._known = (self._known << 64) | int(self._bits(1)[0])
            self._length += 64


def scaled_exp(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers ``low <= 2**bits * exp(-exponent) <= high`` that differ by at most 2.

    Every rounding of ``low`` is down, and every one of ``high`` up: that they hold it needs no analysis of errors.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:  # exp(-bits) < 2**-bits
        return 0, 1
    # exp(-x) = exp(-z)**(2**halvings) with z < 1, whose series alternates with falling terms.
    halvings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 1)
    places = bits + halvings + 24
    z = (exponent.numerator << places) // (exponent.denominator << halvings)
    low = high = least = most = one = 1 << places
    term = 0
    while most > 1:
        term += 1
        least = (least * z >> places) // term
        most = -(-most * (z + 1) // (term << places))
        low, high = (low - most, high - least) if term % 2 else (low + least, high + most)
    low, high = max(low - most, 0), min(high + most, one)
    for _ in range(halvings):
        low, high = low * low >> places, -(-high * high >> places)
    return low >> (places - bits), -(-high >> (places - bits))
