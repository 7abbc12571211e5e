"""Noisy answers of one line of a query: values and intervals, as far as a ledger's rules let them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._answer.arithmetic.exact_expressions import Expression, Opaque
from pdrisk._answer.arithmetic.forms import Linear, form_of
from pdrisk._answer.arithmetic.measured import WITHHELD, Measurements, new_draw
from pdrisk._core.days import as_dates
from pdrisk._core.once import once
from pdrisk._core.risks.gaussian_dp import mu_of_pure, promised, root, squared, success_of
from pdrisk._core.risks.risk import Risk, belief, success_bound
from pdrisk._core.summary import FloatArray
from pdrisk._mechanisms import Drawn, Mechanism
from pdrisk._mechanisms.contract.base import farther_side
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk._model.expressions.kinds import NUMBER, TIME, kind_within


@dataclass(frozen=True)
class NoisyAnswers:
    """Drawn numbers of G groups, and the values and intervals that may be shown of them."""

    mechanism: Mechanism  # Calibrated
    drawn: Drawn  # what it drew; nothing of what is withheld; shape (G,)
    rounded_to: float | None = None  # the base that a ledger has answers rounded to
    # the eps paid besides to see, with noise, whether an answer is about enough people: what is withheld tells
    # too
    looked: float = 0.0
    weight: Fraction = Fraction(1)  # by how much a person can change the answer, as a multiple of what one record can
    selection: PartitionSelection | None = None  # what chose the groups that are shown, where keys are private
    mu2: Fraction | None = None  # `Query.mu2_at` of its release; None: that of any answer for this eps
    draw: str = field(default_factory=new_draw)  # identity of what was drawn, which lines of one release share
    hides_parts: bool = False  # as in `Policy`: then an answer that is computed of several numbers is opaque

    @property
    def eps(self) -> float:
        """The privacy loss paid, of a person: for the values, and for the groups that are shown."""
        loss = self.mechanism.eps_of(self.weight)
        return float(loss if self.selection is None else loss + self.selection.eps)

    @once
    def risk(self) -> Risk:
        """The publishable risks of the answer, and of whether it was given."""
        mu2 = squared(mu_of_pure(float(self.mechanism.eps_of(self.weight)))) if self.mu2 is None else self.mu2
        total, paid = mu2 + squared(mu_of_pure(self.looked)), self.eps + self.looked
        if self.selection is not None:
            total, delta = total + self.selection.mu2, self.selection.delta
            return Risk(float("nan"), min(success_bound(paid, float(delta)), promised(total, delta)), root(total))
        worst = float(belief(paid, 0.5))
        success = worst if self.looked else self.mechanism.success_of(self.weight, total)
        return Risk(worst, min(success, success_of(total)), root(total))

    @property
    def risk_columns(self) -> dict[str, float]:
        """The risks in a table: answers with delta have no worst case, so their success is shown instead.

        Nobody who reads the one takes the other for it.
        """
        if self.selection is None:
            return {"eps": self.eps, "worst_case": self.risk.worst_case}
        return {"eps": self.eps, "delta": float(self.selection.delta), "success": self.risk.success}

    @once
    def withheld(self) -> NDArray[np.bool_]:
        """Which answers are withheld."""
        first = self.drawn if self.drawn.ndim == 1 else self.drawn[0]
        return np.isnan(first) if first.dtype.kind == "f" else first == WITHHELD

    @once
    def has_withheld(self) -> bool:
        """Whether any answer is withheld."""
        return bool(np.count_nonzero(self.withheld))

    @once
    def measurements(self) -> Measurements | None:
        """What was drawn, uncut, with its law; None where the answer is opaque, or nothing of it may be let out."""
        law = self.mechanism.law(self.drawn)
        if law is None or (self.hides_parts and law.numbers > 1):
            return None
        measurements = Measurements.of(law, self.drawn, self.draw)
        return measurements if self.rounded_to is None else measurements.rounded(self.rounded_to)

    @property
    def estimated(self) -> FloatArray | None:
        """Estimates of several draws together, which were measured in the place of the answers; None without such."""
        return None

    @once
    def uncut(self) -> NDArray[Any]:
        """The answers before counts and sums are cut to their range, shape (G,): NaN where withheld."""
        if self.estimated is not None:
            return self.estimated
        form = None if self.measurements is None else form_of(self.measurements)
        if not isinstance(form, Linear):
            return self.values
        values = form.value()
        return values.astype(np.int64) if form.whole and not self.has_withheld else values

    def expression(self, name: str) -> Expression:
        """All answers as expressions, to compute with; ``name`` tells them from others of the same draw."""
        form = None if self.measurements is None else form_of(self.measurements)
        if form is not None:
            return form
        values = self.values.astype(np.float64)
        least, most = (np.full(len(values), end) for end in self.shown_range)
        return Opaque((self.draw, name), values, self.interval, (least, most), np.ones(len(values)))

    @property
    def shown_range(self) -> tuple[float, float]:
        """Range that answers are cut to: that of possible ones, but for ``laplace``, which is never cut."""
        if self.mechanism.name == "laplace":
            return -np.inf, np.inf
        return self.mechanism.statistic.value_range(self.mechanism.universe)

    @property
    def clip(self) -> tuple[float, float] | None:
        """The points that all values were clipped at; None without clipping, or if every answer is withheld."""
        return self.mechanism.clip(self.drawn)

    @property
    def is_whole(self) -> bool:
        """Whether all answers that are not withheld are whole numbers."""
        return self.mechanism.value(self.drawn[..., :0]).dtype.kind == "i"

    @once
    def values(self) -> NDArray[Any]:
        """The answers, shape (G,): int64 where all are whole numbers, else float64 with NaN where withheld."""
        values = self.mechanism.value(self.drawn)
        if self.rounded_to is not None:
            rounded = np.clip(np.rint(values / self.rounded_to) * self.rounded_to, *self.shown_range)
            values = rounded.astype(values.dtype) if self.rounded_to.is_integer() else rounded
        return np.where(self.withheld, np.nan, values) if self.has_withheld else values

    def in_kind(self, values: NDArray[Any], side: str = "nearest") -> NDArray[Any]:
        """Numbers as they are shown: days as dates or times, rounded to this side."""
        kind = kind_within(self.mechanism.universe)
        return values if kind == NUMBER else as_dates(values, times=kind == TIME, side=side)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Intervals of the exact answers; if answers were rounded, wider by the rounding, to multiples of the base."""
        return self._usual if level == 0.95 else self._interval(level)

    @once
    def _usual(self) -> tuple[FloatArray, FloatArray]:
        return self._interval(0.95)

    @once
    def noise95(self) -> FloatArray:
        """How far the 95 % intervals reach from the answers, to the farther side: NaN where not known or withheld."""
        return farther_side(self.values, *self.interval())

    def _interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        return self.shown(*self.mechanism.interval(self.drawn, level))

    def shown(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The interval as far as the rules of a ledger allow it to be shown."""
        if (base := self.rounded_to) is not None:  # else they would show what was rounded
            low, high = np.floor(low / base) * base, np.ceil(high / base) * base
            low, high = np.clip(low, *self.shown_range), np.clip(high, *self.shown_range)
        if not self.has_withheld:
            return low, high
        return np.where(self.withheld, np.nan, low), np.where(self.withheld, np.nan, high)


def withhold(drawn: Drawn, groups: NDArray[np.bool_]) -> Drawn:
    """The drawn numbers without those of some groups, which nobody ever sees or keeps."""
    return np.where(groups, np.nan if drawn.dtype.kind == "f" else WITHHELD, drawn)
