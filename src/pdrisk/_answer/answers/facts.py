"""Facts of an answer that only the curator may see: sensitivities, losses and risks in these very data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock

import numpy as np

from pdrisk._answer.answers.curator import Curator
from pdrisk._core.contributions import Contributions, ExtremeContributions, PersonRecords
from pdrisk._core.once import called_once
from pdrisk._core.people import local_sensitivity, top_of_groups, world_range
from pdrisk._core.risks.risk import risks_in_data
from pdrisk._core.statistics import Histogram
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms import Mechanism
from pdrisk._model.query import Query
from pdrisk._model.unit import Unit
from pdrisk.engines.base import Engine, Reading
from pdrisk.errors import QueryFailedError

ONE_EACH, ONE = Unit(), Fraction(1)
LATER = (
    "the curator's numbers of an answer from a table are read when they are first looked at, and {}: ask with "
    "curator=True, which reads them with the answer."
)


@dataclass(frozen=True, slots=True)
class Facts:
    """The curator's numbers of the G groups of one line: arrays of shape (G,), named as in `Curator`.

    ``offered`` are the records if nobody's were left out, as in `Summary`; ``leaves_out`` says whether some may be.
    """

    n: IntArray
    local_sensitivity: FloatArray
    loss: FloatArray
    loss_between_worlds: FloatArray
    two_worlds: FloatArray
    many_worlds: FloatArray
    identifiability: FloatArray
    clamped: FloatArray
    offered: IntArray | None = None
    leaves_out: bool = False

    def of_group(self, group: int, unlisted: int | None = 0) -> Curator:
        """The numbers of one group."""
        numbers = {name: float(getattr(self, name)[group]) for name in (*Curator.COLUMNS[1:], "loss")}
        return Curator(n=int(self.n[group]), **numbers, unlisted=unlisted, left_out=self.left_out(group))

    def left_out(self, group: int | None = None) -> float | None:
        """As in `Curator`: of one group, or of all together."""
        if self.offered is None:
            return None if self.leaves_out else 0.0
        used, offered = (int((counts if group is None else counts[group]).sum()) for counts in (self.n, self.offered))
        return 1 - used / offered if offered else math.nan


def facts(
    mechanism: Mechanism,
    summary: Summary,
    looked: float = 0.0,
    unit: Unit = ONE_EACH,
    weight: Fraction = ONE,
    people: PersonRecords | ExtremeContributions | None = None,
) -> Facts:
    """Sensitivities and risks of a release.

    ``mechanism``: calibrated to what one record may lose.
    ``looked``: what was paid to see whether it is about enough people.
    ``weight``: how many times as much a person may change.
    ``people``: what those have who may have several records in a group: without it some numbers are upper bounds.
    """
    n, paid = summary.n, float(mechanism.eps_of(weight))
    contributions = None if people is None else people.of_statistic(mechanism.statistic)
    if unit.weight == 1:
        loss, between = mechanism.loss(summary), mechanism.loss_between_worlds(summary)
    else:
        loss, between = _losses_of_several(mechanism, summary, unit, paid, contributions)
    number = -(-n // unit.rows) if people is None else people.number  # of people, or as many as there are at least
    risk = risks_in_data(number, loss + looked, between)
    if mechanism.statistic.replaces:  # nobody is missing, so nobody starts from one of n
        risk["many_worlds"] = np.full(n.shape, np.nan)
    moved = (
        np.zeros(n.shape) if summary.clamped is None else np.where(n > 0, summary.clamped / np.maximum(n, 1), np.nan)
    )
    return Facts(
        n=n,
        local_sensitivity=_local_sensitivity(mechanism, summary, unit, contributions),
        loss=loss + looked,
        loss_between_worlds=between,
        clamped=moved,
        offered=summary.offered,
        leaves_out=bool(unit.leaves_out),
        **risk,
    )


def _local_sensitivity(
    mechanism: Mechanism, summary: Summary, unit: Unit, contributions: Contributions | None
) -> FloatArray:
    """Local sensitivity to one person in each group, shape (G,); NaN where it is not known."""
    statistic, universe = mechanism.statistic, mechanism.universe
    if unit.rows == 1:
        return statistic.local_sensitivity(summary, universe)
    value = np.full(summary.n.shape, np.nan) if contributions is None else statistic.value(summary, universe)
    return local_sensitivity(statistic, contributions, universe, value, unit.rows)


def _losses_of_several(
    mechanism: Mechanism, summary: Summary, unit: Unit, paid: float, contributions: Contributions | None
) -> tuple[FloatArray, FloatArray]:
    """Loss, and loss between worlds, where a person may have several records; shape (G,) each.

    A loss is that of a person in all groups. What is not computed is taken to be as large as it may be.
    """
    statistic, universe = mechanism.statistic, mechanism.universe
    most = np.full(summary.n.shape, paid)
    if unit.rows == 1:
        loss = np.minimum(top_of_groups(mechanism.loss(summary), unit.groups), paid)
        return loss, 2 * loss
    if contributions is None or mechanism.name != "laplace":
        return most, 2 * most
    local = _local_sensitivity(mechanism, summary, unit, contributions)
    unit_of_loss = float(mechanism.eps) / statistic.global_sensitivity(universe)
    loss = np.minimum(top_of_groups(local * unit_of_loss, unit.groups), paid)
    between = world_range(statistic, contributions, universe) * unit_of_loss if unit.groups == 1 else 2 * loss
    return loss, between


def facts_of_lines(
    query: Query, mechanisms: Sequence[Mechanism], reading: Reading, looked: Sequence[float]
) -> list[Facts]:
    """The facts of each line: losses and risks of its whole release, and the sensitivity of its own statistic."""
    leads, summaries = query.leads, reading.summaries
    # Nobody knows who is in which bin of a histogram, so its numbers are bounds.
    people = [
        None if isinstance(line.statistic, Histogram) else reading.people(at) for at, line in enumerate(query.lines)
    ]

    def contributions(at: int) -> Contributions | None:
        contributed = people[at]
        return None if contributed is None else contributed.of_statistic(query.lines[at].statistic)

    of_release = [
        facts(mechanisms[lead], summaries[lead], looked[lead], query.unit, query.weight(lead), people[lead])
        for lead in leads
    ]
    return [
        of_release[release]
        if at == leads[release]
        else replace(
            of_release[release],
            local_sensitivity=_local_sensitivity(mechanisms[at], summaries[at], query.unit, contributions(at)),
        )
        for at, release in enumerate(query.releases)
    ]


def facts_of_one(query: Query, mechanism: Mechanism, reading: Reading, looked: float) -> Callable[[], Facts]:
    """The facts of a query's only line: their inputs are read here, and the facts computed when they are called for.

    Sooner if it would hold many numbers, or some of people, as long as the answer lives.
    """
    (summary,) = reading.summaries
    if query.unit.weight > 1 or not summary.is_small:
        (line_facts,) = facts_of_lines(query, [mechanism], reading, [looked])
        return lambda: line_facts
    unit = query.unit

    def made() -> Facts:
        with np.errstate(all="ignore"):  # whatever the caller's is by then
            return facts(mechanism, summary, looked, unit)

    return called_once(made)


def facts_read_later(
    query: Query, mechanism: Mechanism, engine: Engine[Reading], drawn_from: Summary, looked: float
) -> Callable[[], Facts]:
    """The facts of a query's only line, which are read when they are called for.

    They raise QueryFailedError if the table cannot be read then, or if sums that noise was added to are others.
    """
    lock = Lock()

    def made() -> Facts:
        try:
            reading = engine.read(query)
        except QueryFailedError:
            reading = None
        if reading is None:
            raise QueryFailedError(LATER.format("the table could not be read now"))
        (summary,) = reading.summaries
        if not summary.has_sums_of(drawn_from):
            raise QueryFailedError(LATER.format("the table has changed since the answer"))
        with np.errstate(all="ignore"):
            return facts_of_lines(query, [mechanism], reading, [looked])[0]

    facts_once = called_once(made)

    def read() -> Facts:
        with lock:  # several threads may look at the same time
            return facts_once()

    return read
