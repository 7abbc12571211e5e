"""Merged declarations of one column, with the source of each."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from pdrisk._core.days import moment, written_day
from pdrisk._core.universe import Days, Universe
from pdrisk._model.expressions.kinds import DATE, TIME
from pdrisk.errors import ColumnTypeError, ParameterError

Ends = tuple[float, float]
EVERYTHING: Final[Ends] = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Known:
    """Merged declarations of one column; each ``*_from`` names the source, None if there is none."""

    column: Hashable
    universe: Universe | None = None
    valid: Ends = EVERYTHING
    keys: tuple[Hashable, ...] | None = None
    missing: tuple[Hashable, ...] = ()
    bounds_from: str | None = None
    valid_from: str | None = None
    keys_from: str | None = None
    missing_from: str | None = None
    whole: bool = False
    dates: bool = False

    @property
    def ends(self) -> Ends | None:
        """The bounds as a pair."""
        return None if self.universe is None else (self.universe.lo, self.universe.hi)

    def universe_for(self, kind: str) -> Universe | None:
        """The bounds of values of a kind."""
        if self.universe is not None and self.dates != (kind in (DATE, TIME)):
            declared = "dates" if self.dates else "numbers"
            instead = "numbers" if self.dates else "dates, as in ('2020-01-01', '2020-12-31')"
            raise ColumnTypeError(
                f"{self.bounds_from} has {declared} as bounds of {self.column!r}, but the column holds {kind}: declare "
                f"{instead}."
            )
        return self.universe

    @property
    def source(self) -> str:
        """Sources of the declarations, as text."""
        parts = {
            "bounds": self.bounds_from,
            "range": self.valid_from,
            "keys": self.keys_from,
            "missing": self.missing_from,
        }
        parts_by_source: dict[str, list[str]] = {}
        for part, source in parts.items():
            if source is not None:
                parts_by_source.setdefault(source, []).append(part)
        if len(parts_by_source) == 1:
            return next(iter(parts_by_source))
        return "; ".join(f"{source}: {', '.join(of)}" for source, of in parts_by_source.items())

    def narrowed(self, interval: Universe | None) -> Universe | None:
        """These bounds, if they lie within the range that the schema allows."""
        low, high = self.valid if isinstance(interval, Days) == self.dates else EVERYTHING
        below, above = interval is not None and interval.lo < low, interval is not None and interval.hi > high
        if interval is None or not (below or above):
            return interval
        unit = " days" * self.dates
        by = " and ".join(
            [f"{low - interval.lo:.12g}{unit} too low"] * below + [f"{interval.hi - high:.12g}{unit} too high"] * above,
        )
        lo, hi = (_written(end, dates=self.dates) for end in (interval.lo, interval.hi))
        raise ParameterError(
            f"bounds ({lo}, {hi}) of {self.column!r} are wider than the range that {self.valid_from} allows, "
            f"{range_phrase(self.valid, dates=self.dates)} ({by}): no value can lie there, and the noise would grow "
            "for nothing. Narrow them."
        )


def written_ends(ends: Ends, *, dates: bool) -> tuple[Any, Any]:
    """Ends of a range as a caller writes them: of dates as dates, or as times if one is within a day."""
    if not dates:
        return ends
    times = any(math.isfinite(end) and not end.is_integer() for end in ends)
    lo, hi = (moment(end, times=times) if math.isfinite(end) else end for end in ends)
    return lo, hi


def range_phrase(ends: Ends, *, dates: bool) -> str:
    """A range that may be open, as text."""
    low, high = (_written(end, dates=dates) for end in ends)
    if math.isinf(ends[1]):
        return f"{low} and more"
    return f"{high} and less" if math.isinf(ends[0]) else f"{low} to {high}"


def _written(end: float, *, dates: bool) -> str:
    return written_day(end, times=not end.is_integer()) if dates and math.isfinite(end) else f"{end:.12g}"
