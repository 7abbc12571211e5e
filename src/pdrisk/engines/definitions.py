"""Definitions of places and points, spelled out on whole numbers and fractions: what engines are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from pdrisk._core.lattice import PLACES, PlaceGrid
from pdrisk._core.universe import Universe


def place(record: float, universe: Universe) -> int:
    """The place of a clamped record: the one rule, in float64."""
    grid = PlaceGrid.of(universe)
    return math.floor((record - grid.origin) * grid.per_unit + grid.shift)


def products(k: int, l: int, degrees: tuple[int, int]) -> list[int]:  # noqa: E741
    """The parts of one record: k is divided, then each part like l; a weight l is divided itself, like k."""

    def divided(whole: int, parts: Sequence[Fraction]) -> list[int]:
        pieces = [math.floor(whole * part) for part in parts]
        left = 0 if len(parts) == 2 else 1
        pieces[left] += whole - sum(pieces)
        return pieces

    def shares(place: int, degree: int) -> list[int]:
        w = Fraction(place, PLACES)
        return divided(PLACES, [1 - w, w] if degree == 1 else [(1 - w) ** 2, 2 * w * (1 - w), w**2])

    if degrees[1] == 0:  # l is a weight
        return divided(l, [Fraction(share, PLACES) for share in shares(k, degrees[0])])
    others = [Fraction(share, PLACES) for share in shares(l, degrees[1])]
    return [part for share in shares(k, degrees[0]) for part in divided(share, others)]


def weight_steps(place: int) -> int:
    """Steps of a weight as it counts at points: of 256 for the largest one, halves up."""
    return math.floor(Fraction(place, PLACES) * 256 + Fraction(1, 2))


@cache
def _step(universe: Universe) -> int:
    """The exponent of the steps between public points: 2**16 of them at least, and less than ten times as many."""
    return next(e for e in range(100, -130, -1) if Fraction(universe.width) / Fraction(10) ** e >= 2**16)


def point(record: float, universe: Universe, *, whole: bool) -> int:
    """The index of the public point of a clamped record: the one rule, in float64."""
    step = 0 if whole else _step(universe)

    def multiple(value: float) -> int:
        scaled = value / float(f"1e{step}") if step > 0 else value * float(f"1e{-step}")
        return math.floor(scaled + 0.5)

    return multiple(record) - multiple(universe.lo)
