"""Records on the public grids, in the SQL of an engine: clamped, placed, and in terms whose sums are exact."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import PLACE_BITS, PLACES, PlaceGrid
from pdrisk._core.products import WholeArithmetic
from pdrisk._core.universe import Rectangle, Universe
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.sizes import size_place
from pdrisk.engines.sql.summary.summary_plan import Summarised, SummaryPlan

MOST_PLACES = 2.0**50  # from the lower bound, of records that are placed by arithmetic
MOST_IN_DOUBLES = 2**23  # records whose terms, whatever they are, add up to a DOUBLE
UNIT = 2.0**970  # of a term: a DOUBLE holds less than 2**54 of it


class Sums(IntEnum):
    """Ways to add up places: each is slower than the one before, and exact for more data.

    Of a record with the floored place y, and S = `PLACES`, the term ``|y| - |y - S|`` is ``2k - S`` for the place k
    that it has once clamped. Terms are written in `UNIT`, so that they are multiples of ``2 UNIT``.

    - ``DOUBLES``: the sum of terms as a DOUBLE. It is exact or not finite: what is finite lies below 2**1024, where a
      DOUBLE holds every multiple of 2**971; a record 2**54 places from either bound makes an infinity, which never
      becomes finite again, and so does a sum that would be rounded.
    - ``WHOLES``: terms as whole numbers, of which a term that is not finite is none, so that fewer are counted.
    - ``CASES``: places by comparisons with the bounds, whatever the record is.
    """

    DOUBLES = 0
    WHOLES = 1
    CASES = 2

    @classmethod
    def first(cls, plan: SummaryPlan, dialect: Dialect) -> Sums:
        """The fastest way that is likely to be exact, by the number of rows."""
        if not dialect.skips:
            return cls.CASES
        return cls.WHOLES if plan.rows > 2 * MOST_IN_DOUBLES and not plan.groups else cls.DOUBLES


def places_of(terms: NDArray[Any], n: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of places from those of the terms of n records, at most `MOST_PLACED`: finite DOUBLES or WHOLES."""
    whole = terms if terms.dtype.kind == "i" else (terms / UNIT).astype(np.int64)
    return (whole >> 1) + n * (PLACES >> 1)


@dataclass(frozen=True, slots=True)
class Placing:
    """Writer of values on the grids, from columns x0, y0, ..."""

    dialect: Dialect
    sums: Sums

    def is_summed(self, part: Summarised) -> bool:
        """Whether places of a part are added up as terms."""
        return part.needs.places and self.sums is not Sums.CASES

    def is_near(self, part: Summarised) -> bool:
        """Whether a part's records are placed by arithmetic; other readings tell if one is too far away."""
        needs = part.needs
        return self.is_summed(part) or (bool(needs.products) and needs.ends and self.sums is not Sums.CASES)

    def placed(self, i: int, part: Summarised) -> Iterator[tuple[str, str]]:
        """The floored place of which the term is made: written once, for an engine reads each word of a statement."""
        if self.is_summed(part):
            place = self._place(f"x{i}", part.universe)
            yield f"f{i}", self.dialect.infix(place, "*", self.dialect.number(UNIT))

    def derived(self, i: int, part: Summarised, *, apart: bool, summed: bool) -> Iterator[tuple[str, str]]:
        """The value without NaN, clamped, and on the grids that the needs ask for, of what `placed` gives.

        ``apart``: whether records around ranks are told apart.
        ``summed``: whether the values of each person are summed.
        """
        needs, x, dialect = part.needs, f"x{i}", self.dialect
        lo, hi = part.universe.lo, part.universe.hi
        ends = dialect.number(lo), dialect.number(hi)
        on_grid = needs.total or needs.squares or needs.steps or needs.on_places or needs.whole
        if needs.windows or needs.seconds or apart or not on_grid:
            yield f"p{i}", f"CASE WHEN {x} <= {dialect.infinity} THEN {x} END"
        for wanted, name, grid in (
            (needs.total or needs.squares or summed, "s", part.grid),
            (needs.steps, "t", part.coarse_grid),
        ):
            if wanted:
                steps = dialect.nearest_whole(dialect.scaled(x, grid))
                yield f"{name}{i}", dialect.inside(x, steps, *ends, _steps(lo, grid), _steps(hi, grid))
        is_summed = self.is_summed(part)
        if is_summed:
            yield f"h{i}", self._term(f"f{i}", UNIT)
        if needs.place_squares or needs.products or (needs.places and not is_summed):
            place = (
                self._of_term(f"f{i}", UNIT)
                if is_summed
                else self._whole_place(x, part.universe, near=self.is_near(part))
            )
            yield f"k{i}", place
        if isinstance(part.universe, Rectangle):
            yield f"l{i}", self._whole_place(f"y{i}", part.universe.other, near=self.is_near(part))
        if needs.size_sums:
            yield f"z{i}", size_place(dialect, x, part.universe)
        if needs.whole:
            rounded = f"CAST({self._rounded(x)} AS BIGINT)"
            at_ends = _whole(math.floor(lo + 0.5), math.floor(hi + 0.5))
            yield f"w{i}", dialect.inside(x, rounded, *ends, *at_ends)
        for name, points in {} if apart else part.points.items():
            scaled = dialect.scaled(x, points.factor, divides=points.divides)
            index = dialect.infix(self._rounded(scaled), "-", dialect.number(float(points.first)))
            at_ends = _whole(0, points.size - 1)
            yield f"{name}{i}", dialect.inside(x, f"CAST({index} AS BIGINT)", *ends, *at_ends)

    def whole_term(self, term: str) -> str:
        """A term as BIGINT, in places; NULL if it is not finite."""
        return f"TRY_CAST({self.dialect.infix(term, '*', self.dialect.number(1 / UNIT))} AS BIGINT)"

    def _term(self, place: str, unit: float) -> str:
        """The term in a unit, of the floored place in it."""
        call, infix = self.dialect.call, self.dialect.infix
        return infix(call("ABS", place), "-", call("ABS", infix(place, "-", self.dialect.number(PLACES * unit))))

    def _of_term(self, place: str, unit: float = 1.0) -> str:
        """The place that a term stands for, as BIGINT: all numbers are whole, so exact, or the term is not finite."""
        infix, number = self.dialect.infix, self.dialect.number
        half = infix(self._term(place, unit), "*", number(0.5 / unit))
        return f"TRY_CAST({infix(half, '+', number(PLACES / 2))} AS BIGINT)"

    def _whole_place(self, x: str, universe: Universe, *, near: bool) -> str:
        """Place of a record, which may lie outside, as BIGINT; NULL if it is missing.

        Of records that are near, all numbers are whole and below 2**53. A CASE for each record would cost more than all
        the rest.
        """
        y = self._place(x, universe)
        if near:
            return self._of_term(y)
        ends = self.dialect.number(universe.lo), self.dialect.number(universe.hi)
        return self.dialect.inside(x, f"CAST({y} AS BIGINT)", *ends, *_whole(0, PLACES))

    def _place(self, x: str, universe: Universe) -> str:
        """The place of a record on its `PlaceGrid`, as a whole DOUBLE."""
        grid = PlaceGrid.of(universe)
        from_origin = x if grid.origin == 0 else self.dialect.infix(x, "-", self.dialect.number(grid.origin))
        return self._rounded(self.dialect.scaled(from_origin, grid.per_unit), grid.shift)

    def _rounded(self, x: str, shift: float = 0.5) -> str:
        """Nearest whole number, halves up, on every engine; or so after a shift."""
        return self.dialect.call("FLOOR", self.dialect.infix(x, "+", self.dialect.number(shift)))

    def arithmetic(self) -> WholeArithmetic[str]:
        """Arithmetic of places: no product exceeds 2**60."""
        infix = self.dialect.infix
        (whole,) = _whole(PLACES)
        return WholeArithmetic(
            whole, lambda a, b: infix(a, "-", b), lambda a, b: infix(infix(a, "*", b), ">>", f"{PLACE_BITS}")
        )


def _whole(*numbers: int) -> Sequence[str]:
    """Whole numbers as literals."""
    return [f"CAST('{number}' AS BIGINT)" for number in numbers]


def _steps(value: float, grid: float) -> str:
    """Whole steps by the engine's cast, half to even; the product with a power of two is exact."""
    return f"CAST('{round(value * grid)}' AS BIGINT)"
