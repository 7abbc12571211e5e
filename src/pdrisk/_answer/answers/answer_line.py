"""Lines of an answer: what may be published of one statistic of one column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._core.days import written_day
from pdrisk._core.risks.risk import Risk
from pdrisk._core.surveys.weighted import OF_ANYTHING, WEIGHTED
from pdrisk._core.universe import Rectangle
from pdrisk._model.expressions.kinds import NUMBER, TIME, kind_within
from pdrisk._model.plain import plain_label
from pdrisk._model.query import Query
from pdrisk._printing import printable


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One statistic of one column, as far as it may be published.

    Attributes
    ----------
    name : str
        ``mean(distance)``, or the heading of a column in SQL.
    eps : float
        The privacy loss paid for it, in nats; where keys are private, for the choice of groups, too.
    scale : float or None
        Of additive noise, in the unit of the answer.
    noise95 : float
        How far the 95 % noise interval reaches from the value, to the farther side; the farthest of several groups.
        NaN where it is withheld or not known.
    value, low, high : float or None
        None where there are several, NaN where it is withheld.
    rounded_to : float or None
        The base that a ledger has answers rounded to, after the noise.
    worst_case, success : float
        The publishable risks; see `Risk`: the first NaN with delta.
    rank95 : float or None
        Of an answer chosen by its rank, how many records, each rounded to a multiple of ``step``, may lie between it
        and the rank asked for, 95 % sure; infinite where that is not known.
    step : float or None
        Of such an answer, the distance of the public points that it is one of.
    other, other_bounds
        Of a statistic of two columns, the second one.
    clip : (float, float) or None
        The points that all values were clipped at, which a share of eps found. ``name`` says them, too.
    eps_groups : float
        How much of ``eps`` chose the groups that are shown.
    mu : float
        That of `Risk`; NaN in what was kept before there was one.
    sampling_se : float or None
        Standard error by the design of the sample, without noise, in the unit of the answer; None where it was not
        asked for.
    sampling_eps : float
        How much of ``eps`` that cost.
    has_design : bool
        Whether the Dataset has a `Design`, so that its sampling error is no simple random sample's.
    dates : str
        "dates" or "timestamps", if values are some: ``bounds`` and all other numbers are in days, since 1970-01-01 or
        between two; else "".
    bounds_by_where : bool
        Whether the bounds follow from the filter of the question, as far as declared ones are no narrower.
    """

    name: str
    column: Any
    statistic: str
    mechanism: str
    eps: float
    bounds: tuple[float, float] | None
    global_sensitivity: float
    scale: float | None
    noise95: float
    worst_case: float
    success: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    rounded_to: float | None = None
    rank95: float | None = None
    step: float | None = None
    other: Any = None
    other_bounds: tuple[float, float] | None = None
    clip: tuple[float, float] | None = None
    eps_groups: float = 0.0
    mu: float = float("nan")
    sampling_se: float | None = None
    sampling_eps: float = 0.0
    has_design: bool = False
    bounds_by_where: bool = False
    dates: str = ""

    @classmethod
    def of(
        cls, query: Query, at: int, noisy: NoisyAnswers, name: str | None = None, *, one: bool = False
    ) -> AnswerLine:
        """The description of what was released for a line of a query; with its value if there is one group."""
        line, mechanism = query.lines[at], noisy.mechanism
        universe = mechanism.universe
        low, high = noisy.interval()
        reaches = noisy.noise95[~noisy.withheld]
        alone = {"value": noisy.values[0].item(), "low": float(low[0]), "high": float(high[0])} if one else {}
        return cls(
            name=formatting.clipped(line.name if name is None else name, noisy.clip),
            column=plain_label(line.column),
            statistic=line.statistic.label,
            mechanism=mechanism.name,
            eps=noisy.eps,
            bounds=(universe.lo, universe.hi) if line.statistic.bounded else None,
            global_sensitivity=query.global_sensitivity(at, universe),
            scale=mechanism.scale if query.margins is None else None,  # that of each table is another
            noise95=float(reaches.max()) if len(reaches) else float("nan"),
            worst_case=noisy.risk.worst_case,
            success=noisy.risk.success,
            mu=noisy.risk.mu,
            rounded_to=noisy.rounded_to,
            rank95=mechanism.rank95,
            step=mechanism.step,
            other=plain_label(line.other),
            clip=noisy.clip,
            eps_groups=0.0 if noisy.selection is None else float(noisy.selection.eps),
            bounds_by_where=line.bounds_from == "where",
            dates="" if (kind := kind_within(line.universe)) == NUMBER else kind,
            other_bounds=(universe.other.lo, universe.other.hi) if isinstance(universe, Rectangle) else None,
            **alone,
        )

    @property
    def risk(self) -> Risk:
        """The publishable risks."""
        return Risk(self.worst_case, self.success, self.mu)

    @property
    def is_weighted(self) -> bool:
        """Whether records count with a weight: that of the second column, or of the only one that is read."""
        return self.statistic.startswith(WEIGHTED)

    @property
    def weights(self) -> tuple[Any, float] | None:
        """The column of the weights, and the largest one, at which they are trimmed; None without weights."""
        column, ends = (self.column, self.bounds) if self.other_bounds is None else (self.other, self.other_bounds)
        return (column, ends[1]) if self.is_weighted and ends is not None else None

    def shown(self, value: float | None, side: str = "nearest") -> str:
        """A value as text: a number, or the date that stands for one, rounded to this side."""
        number = math.nan if value is None else value
        return written_day(number, times=self.dates == TIME, side=side) if self.dates else formatting.number(number)

    def length(self, value: float) -> str:
        """A distance between values as text, of dates in days."""
        unit = "" if not self.dates or math.isnan(value) else " day" if value == 1 else " days"
        return formatting.known(value) + unit

    def bounds_as(self, form: str, column: str = "{column}: {range}") -> str:
        """The bounds of values as text, "" without any; for two columns those of each, with its name.

        Parameters
        ----------
        form : str
            Of one range, with ``{low}`` and ``{high}``.
        column : str
            Of a column and its range.
        """
        known = [(name, ends) for name, ends in self.ranges if ends is not None]
        spans = [form.format(low=self.shown(low), high=self.shown(high)) for _, (low, high) in known]
        if len(known) == 1:
            return spans[0]
        names = [printable(str(name)) for name, _ in known]
        return "; ".join(column.format(column=one, range=text) for one, text in zip(names, spans, strict=True))

    @property
    def ranges(self) -> list[tuple[Any, tuple[float, float] | None]]:
        """The columns of values with their bounds."""
        ranges = [(self.column, self.bounds)]
        if self.is_weighted:
            return ranges if self.other_bounds is not None and self.statistic not in OF_ANYTHING else []
        return ranges if self.other_bounds is None else [*ranges, (self.other, self.other_bounds)]
