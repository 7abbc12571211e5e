"""Summary plan: what a query reads, in the SQL of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pdrisk._core.lattice import Lattice, Points, power_of_two_below
from pdrisk._core.once import once
from pdrisk._core.summary import Bins, Needs, Ranks
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.query import Query
from pdrisk._model.unit import Unit

MOST_TOLD_APART = 2**13  # records around a rank that are listed; of more, all are counted at their points
INFINITY = "CAST('infinity' AS DOUBLE)"


def sides_of(ranks: Ranks) -> tuple[int, int]:
    """Numbers of records to read below and above the middle rank; at an end only on one side.

    A pivot is where it should be, give or take one by rounding.
    """
    most, middle = MOST_TOLD_APART + 1, -(-ranks.offset // ranks.b)  # at an end, that rank; from the other, if negative
    before, after = (most if side is None else side + 2 for side in (ranks.before, ranks.after))
    if ranks.a == 0:
        return 0, middle + after
    return (before - middle, 0) if ranks.a == ranks.b else (before, after)


@dataclass(frozen=True)
class Summarised:
    """Records of one expression within a universe."""

    way: ClassVar[str] = "numbers"  # by which ledgers remember questions, whatever classes are called

    value: str  # SQL of type DOUBLE over the columns of the source; NULL and NaN are missing
    universe: Universe
    needs: Needs
    column: str | None = None  # the column in SQL, where the value is nothing else but its numbers

    def columns(self, value: str, other: str) -> list[tuple[str, str, Universe]]:
        """Prefix of each column's ends, its name in SQL, and its universe."""
        first = ("", value, self.universe)
        return [first, ("other_", other, self.universe.other)] if isinstance(self.universe, Rectangle) else [first]

    @once
    def grid(self) -> float:
        """Steps in one unit of the exact sum: a power of two that gives the largest record 2**51 to 2**52 steps."""
        return 2.0**51 / power_of_two_below(self.universe.magnitude)

    @once
    def points(self) -> dict[str, Points]:
        """Public points at which records are counted, by the field of `Summary` that holds them."""
        return self.needs.points(self.universe)

    @once
    def ranks(self) -> tuple[Ranks, ...]:
        """Ranks whose records are listed one by one, in an order of their own; none if all are counted."""
        wanted = sorted(self.needs.ranks, key=lambda rank: (rank.a / rank.b, str(rank)))
        return tuple(wanted) if all(sum(sides_of(rank)) <= MOST_TOLD_APART for rank in wanted) else ()

    @once
    def coarse_grid(self) -> float:
        """Steps in one unit of the grid on which sums are released."""
        return 1 / Lattice.of_records(self.universe.magnitude).step

    @once
    def finest_distance(self) -> float:
        """The shortest step that distances from the mean are measured in, 2**-45 to 2**-46 of the width.

        Off by that much, equal records have no spread: their squares are rounded to 0.
        """
        return 2 * power_of_two_below(self.universe.width) * 2.0**-45


@dataclass(frozen=True)
class SummarisedPair(Summarised):
    """Records of two expressions, where both have a value. Its universe is a `Rectangle`."""

    way: ClassVar[str] = "pairs"

    other: str = ""  # the second value in SQL, like the first one


@dataclass(frozen=True)
class Binned(Summarised):
    """Records counted in bins, without other needs."""

    way: ClassVar[str] = "bins"

    bins: Bins | None = None  # between edges; None: of each sign and size, as `pdrisk.engines.numpy.bins` numbers them


def all_told_apart(plan: SummaryPlan) -> SummaryPlan:
    """The plan with records counted at all points, not only around some ranks."""

    def whole(part: Part) -> Part:
        return replace(part, needs=replace(part.needs, ranks=frozenset())) if isinstance(part, Summarised) else part

    return replace(plan, parts=tuple(map(whole, plan.parts)))


def for_query(plan: SummaryPlan, query: Query, places: Sequence[int]) -> SummaryPlan:
    """The plan of a query, with the facts for curators or, if nobody will see them, without.

    ``plan``: of all that the lines of a query read.
    ``places``: which part of the plan each line finds its summary in.
    """
    drawn = [Needs() for _ in plan.parts]
    for line in query.drawn_from if query.shares else ():
        drawn[places[line]] |= query.mechanism(line).draws
    if query.has_facts:
        plan = replace(plan, drawn=tuple(drawn) if query.shares else None)
        people = plan.people
        if people is None or people.unit.rows == 1:
            return plan
        return replace(plan, contributions=ContributionColumns(len(people.keys), people.unit.rows))
    parts = tuple(
        replace(part, needs=drawn[at]) if isinstance(part, Summarised) and not isinstance(part, Binned) else part
        for at, part in enumerate(plan.parts)
    )
    return replace(plan, parts=parts, has_facts=False)


def pivots(part: Summarised) -> list[float]:
    """Quantiles for which a pivot is found: windows, and the middle ranks."""
    return sorted(part.needs.windows | {rank.q for rank in part.ranks if rank.q is not None})


def sides(part: Summarised, q: float) -> tuple[int, int]:
    """Number of order statistics to read on each side of a pivot.

    It stands at rank ceil(n q), give or take one by rounding; four on each side cover what `Quantile` reads. At 1/2
    the product is exact, and of what is farther than one, only a multiple of zero is read.
    """
    least = 1 if q == 0.5 else 4
    wanted = [sides_of(rank) for rank in part.ranks if rank.q == q]
    return max(least, *(below for below, _ in wanted), 0), max(least, *(above for _, above in wanted), 0)


@dataclass(frozen=True, slots=True)
class Counted:
    """Records for which a condition holds; all without one."""

    way: ClassVar[str] = "records"

    condition: str | None


@dataclass(frozen=True, slots=True)
class Different:
    """Different values of one expression, and the values with one record."""

    way: ClassVar[str] = "different values"

    value: str  # SQL that gives one value for what is equal, and NULL for what is missing


@dataclass(frozen=True, slots=True)
class DifferentNumbers(Different):
    """Different values, moved into a universe and added up.

    Attributes
    ----------
    value : str
        SQL of type DOUBLE; NULL and NaN are missing.
    """

    way: ClassVar[str] = "different numbers"

    universe: Universe
    needs: Needs


Part = Summarised | Counted | Different


@dataclass(frozen=True, slots=True)
class PeopleRead:
    """People of a source, and how their rows count."""

    keys: tuple[str, ...]  # the parts of their ids in SQL, NULL where one is missing
    unit: Unit
    secret: str  # decides, with a row's own content, which rows of a person count; letters and digits
    # whether nobody has more than one row, by the statement of the source itself
    have_one: bool = field(default=False, repr=False)
    # conditions in SQL of rows of the earlier and of the later wave, where the unit has waves
    waves: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ContributionColumns:
    """Records that say whose they are."""

    keys: int  # how many parts an id has: the columns person0, person1,
    most: int  # how many records a person has in a group at most

    @property
    def columns(self) -> list[str]:
        """The names of the parts."""
        return [f"person{at}" for at in range(self.keys)]


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """Plan of what is read from a source."""

    source: str  # as it stands in FROM
    # `inner`, `where`: conditions, those of subqueries and the query's own
    inner: tuple[str, ...]
    where: tuple[str, ...]
    groups: tuple[str, ...]  # group keys in SQL
    # A relation with the columns g0, g1, ... and code, one line for each listed key; None for the keys
    # observed.
    keys: str | None
    parts: tuple[Part, ...]
    # where rows of one person belong together
    people: PeopleRead | None = field(default=None, repr=False)  # a secret, and part of no question
    # whether one of the listed keys may be a missing one, or the keys observed include missing ones
    lists_missing: bool = field(default=True, repr=False)  # follows from the keys
    # whether the curator's numbers are read, too
    has_facts: bool = field(default=True, repr=False)  # by what is shown, and part of no question
    # the columns by which people's contributions are read, too: see `ContributionSelects`
    contributions: ContributionColumns | None = field(default=None, repr=False)  # likewise
    # How many the source has, or nearly; 0 where nobody knows. Decides the speed only.
    rows: int = field(default=0, repr=False)
    # whether one statement reads all, since another one could see another state of the data
    at_once: bool = field(default=False, repr=False)  # by the transaction that it is read in, and part of no question
    # of each part what noise is added to, where facts are read, too; None where nobody knows
    drawn: tuple[Needs, ...] | None = field(default=None, repr=False)  # follows from the question
    # ends of the listed keys, if all groups between them are read, and the keys not carried: see `by_span`
    between: tuple[int, int] | None = field(default=None, repr=False)  # follows from the keys


def combined(asked: Sequence[Part]) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """Parts to be read, each once, and the position of each request's part."""
    parts: dict[tuple[object, ...], Part] = {}
    keys: list[tuple[object, ...]] = []
    for one in asked:
        keys.append(_read(one))
        before = parts.get(keys[-1])
        if isinstance(before, Summarised) and isinstance(one, Summarised):
            one = replace(one, needs=one.needs | before.needs)
        parts[keys[-1]] = one
    order = list(parts)
    return tuple(parts.values()), tuple(order.index(key) for key in keys)


def _read(one: Part) -> tuple[object, ...]:
    """What a part reads, without its needs."""
    if isinstance(one, Different):
        return "different", one.value, getattr(one, "universe", None), getattr(one, "needs", None)
    if isinstance(one, Counted):
        return (one.condition,)
    if isinstance(one, Binned):
        return "bins", one.value, one.universe, one.bins
    return (one.value, one.universe, one.other) if isinstance(one, SummarisedPair) else (one.value, one.universe)
