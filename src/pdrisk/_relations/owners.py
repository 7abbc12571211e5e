"""Owners of a relation: whose rows it holds, through joins, unions and groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class OwnerKey(NamedTuple):
    """Columns of which equal values belong to one person, other than those that say who that is."""

    # the table in which these values are unique, and its columns: what other relations call their columns
    of: tuple[str, ...]
    columns: tuple[str, ...]
    is_link: bool  # whether they lead to that table; else they are its own
    # whether no two rows of the relation have them alike, as far as a catalog or the owner says
    is_single: bool = False
    # whether a row belongs to the person that the link leads to; else ids say whose it is, or another link
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Owners:
    """Owners of a relation's rows: each row is made of the rows of one person, and of public ones."""

    key: tuple[str, ...] = ()  # the columns that say together who that is; none of what is public
    most: int | None = None  # how many rows a person has at most, None if nobody knows
    extra: tuple[str, ...] = ()  # columns of which a person has each combination once; none if that is not known
    constant: frozenset[str] = frozenset()  # columns that do not differ within a person
    numbers: frozenset[str] = frozenset()  # columns that number the rows of each person from 1 on
    # whether the statement itself lets no person have more than ``most`` rows, so that none need be left out:
    # not what somebody declared, or what was counted in a public table
    is_proven: bool = False
    links: tuple[OwnerKey, ...] = ()
    # whether each row is somebody's alone, since nobody said who a person is; then ``most`` is 1, and has to
    # stay so
    of_rows: bool = False
    # the numbers that ``most`` is the product of, for people
    factors: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_public(self) -> bool:
        """Whether no row is of a person."""
        return not self.key and not self.of_rows

    def are_told_by(self, columns: Collection[str]) -> bool:
        """Whether equal values of these columns belong to one person."""
        ways = [self.key, *(link.columns for link in self.links)] if self.key else []
        return any(set(way) <= set(columns) for way in ways)

    def unknown_among(self, columns: Collection[str]) -> tuple[str, ...]:
        """Those of these columns that tell a person where they are known, and may be missing: of no link that decides.

        All rows in which they are missing would be one group, of many people.
        """
        ways = [link for link in self.links if set(link.columns) <= set(columns)]
        is_known = set(self.key) <= set(columns) or any(way.is_link and way.decides for way in ways)
        return () if is_known or not ways else ways[0].columns

    def times(self, factor: int | None, factors: Sequence[str] = (), *, is_proven: bool = False) -> Owners:
        """The owners if each row occurs so many times; None: unknown. For people, ``factors`` make this number."""
        if factor == 1:
            return replace(self, is_proven=self.is_proven and is_proven)
        most = None if self.most is None or factor is None else self.most * factor
        links = tuple(link._replace(is_single=False) for link in self.links)
        factors = (*self.factors, *factors)
        return replace(self, most=most, extra=(), numbers=frozenset(), is_proven=False, links=links, factors=factors)

    def limited(self, rows: int) -> Owners:
        """The owners if at most so many rows of each are kept."""
        if self.most is not None and self.most <= rows:
            return self
        return replace(self, most=rows, is_proven=False, factors=(f"{rows:,} by their numbers",))

    def with_constant(self, columns: Iterable[str]) -> Owners:
        """The owners with public columns, which are constant for a person with one row."""
        return replace(self, constant=self.constant | frozenset(columns)) if self.most == 1 else self


PUBLIC = Owners(())
ROWS = Owners((), 1, of_rows=True)
