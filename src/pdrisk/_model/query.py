"""The judged request: everything that can be wrong without data is refused here, for every front end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from pdrisk._core.once import once
from pdrisk._core.pairs import Slope
from pdrisk._core.risks.gaussian_dp import largest_eps, limit_of, mu_of_pure, squared
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import Needs
from pdrisk._core.surveys.weighted import WEIGHTED
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import (
    MECHANISMS,
    Mechanism,
    calibrated,
)
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk._model.arguments import checked_success
from pdrisk._model.asked_groups import Groups, Source
from pdrisk._model.margins import Margins
from pdrisk._model.rowwise import Derived, RowwiseFilter
from pdrisk._model.unit import Unit
from pdrisk._printing import printable
from pdrisk.errors import ParameterError

LARGEST_WHOLE: Final = 2**31  # of a whole sum's records: then those of 2**31 people are exact in 64 bits
UNIT: Final = Universe(0.0, 1.0)  # where bounds come from the data and are not known yet


@dataclass(frozen=True, slots=True)
class Line:
    """One statistic of one column, and the mechanism that answers it.

    A ``universe`` of None is to be taken from the data. ``condition`` says which records it alone looks at, beside the
    filter of the query; ``values`` what is read, where ``column`` is only its heading. An ``indicator`` is read in the
    place of a column: 1 where it holds, else 0. A statistic of two columns has an ``other`` one, and a `Rectangle`.
    ``together`` are the statistics drawn with it, its own among them, where the draw depends on which they are.
    """

    column: Hashable | None
    statistic: Statistic
    universe: Universe | None
    bounds_from: Source | None
    condition: str | None = None
    values: str | None = None
    mechanism: str = "laplace"
    indicator: RowwiseFilter | None = None
    other: Hashable | None = None
    together: tuple[Statistic, ...] = ()

    @property
    def needs(self) -> Needs:
        """Parts of a summary that the statistic and its mechanism read."""
        return MECHANISMS[self.mechanism].needs(self.statistic)

    @property
    def is_trusted(self) -> bool:
        """Whether its condition contains a value that the caller computed."""
        return self.indicator is not None and self.indicator.trusted

    def calibrated(self, eps: Fraction, universe: Universe | None = None) -> Mechanism:
        """The mechanism at eps, within the declared universe or else within this one."""
        return calibrated(self.mechanism, self.statistic, self.universe or universe or UNIT, eps, self.together)

    @property
    def name(self) -> str:
        """Name as people write it: ``mean(distance)``."""
        return written(self.statistic.label, self.column, self.other)

    @property
    def people(self) -> tuple[Hashable | None, ...]:
        """Identity of its records: equal for lines about the same records."""
        identity = (self.column if self.values is None else self.values), self.condition
        return identity if self.other is None else (*identity, self.other)


@dataclass(frozen=True)
class Query:
    """An immutable request."""

    lines: tuple[Line, ...]
    # What each release may spend; the groups of one release cost it once. Empty for what is only looked at.
    shares: tuple[Fraction, ...]
    where: RowwiseFilter | None = None
    groups: Groups | None = None
    # values that stand for a missing answer, of every column it reads
    missing: Mapping[Any, tuple[Hashable, ...]] = field(default_factory=dict)
    # the columns it looks at, as far as that is known; of derived ones those that they are made of
    reads: tuple[Hashable, ...] = ()
    derived: tuple[Derived, ...] = ()  # the columns it looks at that are computed row by row
    # `source`, `condition`: what it reads in SQL, and the filter that is part of that
    source: str | None = None
    condition: str | None = None
    times: int = 1  # how often it is paid: for groups that nobody knows to be disjoint
    # whether nothing else is known of it: not the columns it reads, nor whether it has a filter or groups
    is_opaque: bool = False
    # whether a value that the caller computed is in a filter of ``condition``, a group or an argument
    trusted: bool = False
    # all that decides the answer and stands nowhere else here, in one spelling, by which ledgers remember
    # answers; None where only the caller knows
    said: str | None = None
    # where the columns stand that it reads, if the data have other names for them than ``reads``
    places: tuple[int, ...] | None = None
    # The release that answers each line, numbered from 0 in the order of their first lines. Several lines may
    # share one, which is drawn and paid once: their mechanisms differ in nothing but the statistic. Each line
    # has its own unless said otherwise.
    releases: tuple[int, ...] = ()
    unit: Unit = field(default_factory=Unit)  # who is protected, and how the rows of one person count
    # what shows groups, by their numbers of people, where keys are private; paid beside the releases
    selection: PartitionSelection | None = None
    # whether curators may want sensitivities and risks in these data: else an engine may leave out of a summary
    # what no noise is added to
    has_facts: bool = True
    # Tables that are published in the place of one number for each group, each measured with a part of the
    # share of every release. Engines read the groups alone.
    margins: Margins | None = None
    # whether what is shown is computed of all groups together, so that none may be withheld or rounded
    sums_cells: bool = field(default=False, repr=False)
    # if the last column of its groups are bins of another one: whether values beyond count in the outer ones
    bins_clamp: bool | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.releases:
            object.__setattr__(self, "releases", tuple(range(len(self.lines))))

    @once
    def leads(self) -> tuple[int, ...]:
        """For each release the line whose records are drawn from: the first with bounds, else the first."""
        leads: dict[int, int] = {}
        for at, release in enumerate(self.releases):
            before = leads.setdefault(release, at)
            if self.lines[at].statistic.bounded and not self.lines[before].statistic.bounded:
                leads[release] = at
        return tuple(leads.values())

    @once
    def drawn_from(self) -> tuple[int, ...]:
        """The lines whose summaries are drawn from: `leads`, and all lines of a release that is about all of them."""
        of_all = (at for at, line in enumerate(self.lines) if MECHANISMS[line.mechanism].is_of_all_lines)
        return tuple({*self.leads, *of_all})

    @once
    def line_shares(self) -> tuple[Fraction, ...]:
        """For each line the eps of its release."""
        return tuple(self.shares[release] for release in self.releases)

    def weight(self, line: int, eps: Fraction | None = None) -> Fraction:
        """Largest change of a line's answer by a person, as a multiple of that by one record."""
        asked_line, share = self.lines[line], self.shares[self.releases[line]] if eps is None else eps
        return self.unit.weight_of(asked_line.statistic, asked_line.mechanism, share)

    def mechanism(self, line: int, universe: Universe | None = None, eps: Fraction | None = None) -> Mechanism:
        """Mechanism of a line, calibrated so that a person loses at most eps, or the line's share."""
        asked_line = self.lines[line]
        is_known = eps is None and asked_line.universe is not None
        if is_known and line in self._mechanisms:
            return self._mechanisms[line]
        share = self.shares[self.releases[line]] if eps is None else eps
        weight = self.weight(line, share)
        mechanism = asked_line.calibrated(share if weight == 1 else share / weight, universe)
        if is_known:
            self._mechanisms[line] = mechanism
        return mechanism

    @once
    def _mechanisms(self) -> dict[int, Mechanism]:
        """The mechanisms that were calibrated already, of lines with declared bounds: they know nothing of data."""
        return {}

    def global_sensitivity(self, line: int, universe: Universe) -> float:
        """Largest change of the answer of a line by one person, in any data."""
        statistic = self.lines[line].statistic
        return statistic.global_sensitivity(universe) * float(self.unit.largest_change(statistic.rows_weight))

    def needs_of(self, line: int, universe: Universe) -> Needs:
        """Parts of a summary that a line reads in its universe, at its eps if that is known."""
        if not self.shares:
            return self.lines[line].needs
        needs: Needs | None = self._reads.get(line)
        if needs is None:
            needs = self.mechanism(line, universe).reads
            if line in self._mechanisms:
                self._reads[line] = needs
        return needs

    @once
    def _reads(self) -> dict[int, Needs]:
        """What the `_mechanisms` read."""
        return {}

    @once
    def least_part(self) -> Fraction:
        """Least part of a share that anything is measured with: 1, but for margins."""
        return Fraction(1) if self.margins is None else min(part for _, part in self.margins.shares)

    @once
    def is_private(self) -> bool:
        """Whether bounds and keys are declared, so that eps promises what it says."""
        listed = self.groups is None or self.groups.keys is not None or self.groups.is_private
        return listed and all(line.universe is not None or not line.statistic.bounded for line in self.lines)

    @once
    def replaces(self) -> bool:
        """Whether neighbours differ by another value of one record, and the number of records is public."""
        return any(line.statistic.replaces for line in self.lines)

    @once
    def eps(self) -> Fraction:
        """The total of all releases, and of what chooses groups."""
        paid = self.shares if self.selection is None else (*self.shares, self.selection.eps)
        total = sum(paid[1:], paid[0]) if paid else Fraction(0)
        return total if self.times == 1 else total * self.times

    def at(self, eps: Fraction) -> Query:
        """The same question, if all of it may spend this eps, before it is paid several ``times``."""
        part = eps * self.times / self.eps
        chosen = None if self.selection is None else replace(self.selection, eps=self.selection.eps * part)
        return replace(self, shares=tuple(share * part for share in self.shares), selection=chosen)

    def mu2_at(self, line: int, eps: Fraction) -> Fraction:
        """Squares of the m of Gaussian differential privacy, summed over the draws of a line about one person.

        Without declared bounds that of any answer for the same eps.
        """
        if self.margins is not None:
            parts = ((axes != self.margins.grid.axes, eps * share) for axes, share in self.margins.shares)
            return sum((self._mu2_of(line, part, apart=apart) for apart, part in parts), Fraction(0))
        return self._mu2_of(line, eps, apart=self.unit.overall)

    @once
    def costs(self) -> tuple[Fraction, ...]:
        """`mu2_at` of each release."""
        return tuple(map(self.mu2_at, self.leads, self.shares))

    def _mu2_of(self, line: int, eps: Fraction, *, apart: bool) -> Fraction:
        """That of one draw for each group; ``apart``: whether all of a person may be in one, as in a margin."""
        if self.lines[line].statistic.bounded and self.lines[line].universe is None:
            return squared(mu_of_pure(float(eps)))
        mechanism, weight = self.mechanism(line, eps=eps), self.weight(line, eps)
        apart = apart or self.unit.overall
        if mechanism.statistic.replaces:  # it knows how many records there are, which the memory below must not
            return mechanism.mu2_of(weight, self.unit.groups, apart=apart)
        return _mu2_of_draw(mechanism, weight, self.unit.groups, apart)

    @once
    def mu2(self) -> Fraction:
        """The same for all releases, and for what chooses groups: what a budget of success pays, beside `delta`."""
        selection_costs = () if self.selection is None else (self.selection.mu2,)
        paid = (*self.costs, *selection_costs)
        total = sum(paid[1:], paid[0]) if paid else Fraction(0)
        return total * self.times if self.times != 1 else total

    @property
    def delta(self) -> Fraction:
        """Probability with which eps may fail; 0 without private keys."""
        return Fraction(0) if self.selection is None else self.selection.delta * self.times


@lru_cache(maxsize=256)  # a release asks twice
def _mu2_of_draw(mechanism: Mechanism, weight: Fraction, groups: int, apart: bool) -> Fraction:
    """`Mechanism.mu2_of`, remembered: bounds are declared or `UNIT`, so that nothing of any data is kept."""
    return mechanism.mu2_of(weight, groups, apart=apart)


def eps_for(success: object, queries: Sequence[Query]) -> Fraction:
    """The eps of a whole call at which the best attacker is right this often at most, by all its answers together.

    ``queries``: all of the call, as they are at eps 1; what they cost rises in proportion to it.
    """
    highest, delta = checked_success(success), sum((query.delta for query in queries), Fraction(0))
    if (highest - delta) * 2 <= 1 - delta:
        raise ParameterError(
            f"success={float(highest):g} leaves nothing to answer with: by delta={float(delta):g} alone an attacker "
            f"may be right {float((1 + delta) / 2):g} of the time. Ask with a higher success=, or a smaller delta=."
        )

    def mu2_at(eps: Fraction) -> Fraction:
        return sum((query.at(query.eps / query.times * eps).mu2 for query in queries), Fraction(0))

    return largest_eps(mu2_at, limit_of((highest - delta) / (1 - delta)))


def written(label: str, column: Hashable | None, other: Hashable | None = None) -> str:
    """Name of a statistic as people write it: ``mean(age)``, ``quantile(0.9) of age``, ``slope of y on x``.

    Of weighted ones ``mean(age) weighted by w``, where ``column`` is that of the weights if nothing else is read.
    """
    if label.startswith(WEIGHTED):
        of, by = (None, column) if other is None else (column, other)
        return f"{written(label.removeprefix(WEIGHTED), of)} weighted by {printable(str(by))}"
    if column is None:
        return f"{label}()"
    if label == Slope.name:
        return f"{label} of {printable(str(column))} on {printable(str(other))}"
    name = ", ".join(printable(str(column_name)) for column_name in (column, other) if column_name is not None)
    return f"{label} of {name}" if "(" in label else f"{label}({name})"
