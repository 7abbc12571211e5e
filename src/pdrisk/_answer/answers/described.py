"""Description of one answer as attributes: what was asked and declared, what it cost, and how noisy it is."""

from __future__ import annotations

from typing import Any

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._core.risks.risk import Risk


class Described:
    """Answer whose description says all but its value; all of this may be published."""

    answer: Answer

    @property
    def other(self) -> Any:
        """Second column of a statistic of two columns, else None."""
        return self._line.other

    @property
    def statistic(self) -> str:
        """Name of the statistic with its parameters, as in ``"quantile(0.9)"``."""
        return self._line.statistic

    @property
    def noise95(self) -> float:
        """Reach of the 95 % noise interval from the value, to its farther side, in the unit of the value."""
        return self._line.noise95

    @property
    def rank95(self) -> float | None:
        """Error in ranks: at most so many records lie between the value and the rank asked for, 95 % sure.

        Of fewer than some twice as many records it says nothing. Weighted ones count by their weight over the largest
        one. None where noise is added. Values are first rounded to
        multiples of `step`. The error in the unit of the value depends on the data, so ``low``, ``high`` and
        ``noise95`` are NaN unless the call says ``interval=True``.
        """
        return self._line.rank95

    @property
    def step(self) -> float | None:
        """Largest distance between the public points from which an answer is chosen; None where noise is added.

        Minima and maxima are chosen among round points, which are nearer to each other around 0.
        """
        return self._line.step

    @property
    def eps(self) -> float:
        """Privacy loss paid, in nats."""
        return self._line.eps

    @property
    def clip(self) -> tuple[float, float] | None:
        """Clipping points, found with a share of eps; None without ``clip="private"``.

        The value and its interval are those of the clipped values.
        """
        return self._line.clip

    @property
    def mechanism(self) -> str:
        """Name of the noise mechanism, as in ``"two_sums"``."""
        return self._line.mechanism

    @property
    def unit(self) -> str:
        """Privacy unit: whose presence the noise hides."""
        return self.answer.unit

    @property
    def neighbours(self) -> str:
        """Neighbouring relation: the noise hides that a record is there or, with ``"replace-one"``, its value."""
        return "replace-one" if self.answer.replaces else "add-or-remove-one"

    @property
    def global_sensitivity(self) -> float:
        """Global sensitivity: largest change that one record can make to the statistic in any data within bounds."""
        return self._line.global_sensitivity

    @property
    def scale(self) -> float | None:
        """Scale of the additive noise, in the unit of the value; None where the mechanism adds no noise to it."""
        return self._line.scale

    @property
    def risk(self) -> Risk:
        """Risks that may be published: ``worst_case``, ``success`` and ``mu``."""
        return self._line.risk

    @property
    def where(self) -> str | None:
        """Filter as text, as far as pdrisk can tell it; None for all records."""
        return self.answer.where

    @property
    def where_trusted(self) -> bool:
        """Whether pdrisk could not check that the filter decides row by row, and took the caller's word for it."""
        return self.answer.where_trusted

    @property
    def bounds_from_data(self) -> bool:
        """Whether the bounds came from the data. If so, this is not differential privacy."""
        return self.answer.bounds_from_data

    @property
    def least_group(self) -> tuple[int, float] | None:
        """Least number of people that a ledger requires an answer to be about, and the eps paid to check it."""
        return None if self.answer.least_group is None else (self.answer.least_group, self.answer.extra)

    @property
    def rounded_to(self) -> float | None:
        """Base to whose multiples a ledger had the answer rounded, after the noise."""
        return self._line.rounded_to

    @property
    def _line(self) -> AnswerLine:
        return self.answer.lines[0]
