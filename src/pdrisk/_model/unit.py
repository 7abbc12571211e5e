"""Privacy unit: who is protected, and how the rows of one person count.

Neighbours differ by all rows of one person. Two ways bound what that changes: the rows of a person become one number
first (``per_person``), or at most so many of them count (``rows``). With ``groups`` that holds in each group, and a
person counts in at most so many; without, at most so many rows count in all groups together. A record is what is left
of a person's rows then, so a person has at most ``weight`` records, and a mechanism that may lose ``eps / weight`` for
each record loses eps for a person.
"""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Final

import numpy as np

from pdrisk._core.foreign import as_integer, shown
from pdrisk._core.statistics import Count, Statistic
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.unit_errors import in_several_groups, people_as_groups, row_of_one_table, undecided
from pdrisk._model.unit_label import checked_label, name_of_people
from pdrisk._model.waves import Waves
from pdrisk.errors import ColumnTypeError, ParameterError

Secret = Callable[[], bytes]
ONE_RECORD: Final = "record (one per person assumed)"
ONE: Final = "one"
PER_PERSON: Final = ("mean", "sum", "min", "max", "count", "any", "all")  # what several rows of a person become
MOST_ROWS: Final = 10**6
MOST_COLUMNS: Final = 16  # that say together who a person is
ONCE: Final = Fraction(1)
ROUNDED: Final = 1 + Fraction(1, 2**30)
FINE: Final = Fraction(1, 2**20)  # of a record's eps: then Laplace noise is drawn on the steps of `Lattice.around`


@cache
def of_this_process() -> bytes:
    """The secret of frames that belong to no Dataset."""
    return secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class People:
    """Declaration of who a person is, as a Dataset keeps it."""

    # which say together who a person is; of several, one combination is what is protected, as a person's day
    columns: tuple[Hashable, ...] = ()
    per_person: str | None = None  # ``"one"`` or one of `PER_PERSON`, for all questions that say nothing else
    constant: tuple[Hashable, ...] = ()  # columns that do not differ within a person
    secret: Secret = field(default=of_this_process, repr=False)  # gives the bytes by which rows of a person are chosen
    # how many rows of a person a join has at most, for all questions that say nothing else; None if nobody
    # knows
    rows: int | None = None
    # the columns on which the rows of several tables were joined; none of one table
    joined_on: tuple[Hashable, ...] = ()
    unit_label: str | None = None  # what texts call one of them, as "household"; without, the names of the columns

    @property
    def label(self) -> Hashable | None:
        """The column that says who a person is, or a tuple of columns; None if it is not declared."""
        return label_of(self.columns)


@dataclass(frozen=True, slots=True)
class Unit:
    """Privacy unit of one query."""

    person: tuple[Hashable, ...] = ()  # the columns that say who a person is; none where one record a person is assumed
    # what the rows of a person become, one of `PER_PERSON`, in each group; with ``waves`` the change in words
    per_person: str | None = None
    rows: int = 1  # how many rows of a person count, in each group; 1 where they become one number
    groups: int = 1  # in how many groups a person counts at most
    # whether ``rows`` is the number in all groups together, not in each
    overall: bool = field(default=False, repr=False)  # ledgers remember texts of plans as they were before
    # what may be left out of people who have more of them, or of people who are not in both waves
    leaves_out: tuple[str, ...] = field(default=(), repr=False)
    of_rows: bool = False  # whether one row is protected, not a person: by the caller's word, and said everywhere
    unit_label: str | None = field(default=None, compare=False, repr=False)  # as that of `People`
    # between which the number of a person changes, where that is what her rows become
    waves: Waves | None = field(default=None, repr=False)
    # whether ``person`` is a sampling unit of several people instead, of which one record is protected
    of_clusters: bool = field(default=False, repr=False)

    @property
    def in_each_wave(self) -> Unit:
        """How the rows of a person in one wave count."""
        assert self.waves is not None
        return replace(self, per_person=None if self.waves.way == ONE else self.waves.way, leaves_out=(), waves=None)

    @property
    def is_of_people(self) -> bool:
        """Whether all rows of a person are protected together."""
        return bool(self.person) and not self.of_rows

    @property
    def label(self) -> Hashable | None:
        """As that of `People`."""
        return label_of(self.person)

    @property
    def weight(self) -> int:
        """Largest number of records of one person."""
        return self.rows if self.overall else self.rows * self.groups

    def largest_change(self, by_rows: Callable[[int], Fraction]) -> Fraction:
        """Largest change by a person in all groups together.

        ``by_rows``: the largest change of one group by so many records: concave and 0 at 0, so that of all ways in
            which a person's records may lie in groups, the most even one changes most.
        """
        few, more = divmod(self.weight, self.groups)
        change = (self.groups - more) * by_rows(few)
        return change + more * by_rows(few + 1) if more else change

    def weight_of(self, statistic: Statistic, mechanism: str, eps: Fraction) -> Fraction:
        """Largest change of an answer by a person, as a multiple of that by one record, or a little above."""
        if self.weight == 1:
            return ONCE
        if mechanism != "laplace":
            return Fraction(self.weight)

        def by_rows(rows: int) -> Fraction:
            change = statistic.rows_weight(rows)
            if change.denominator == 1:
                return change
            # Rounded answers may change by one step of at least 2**31 more; of coarser steps nothing is known.
            return change * ROUNDED if eps >= FINE * self.weight else Fraction(math.ceil(change))

        return self.largest_change(by_rows)

    @property
    def name(self) -> str:
        """Name of what is protected, in a word or two."""
        if not self.person:
            return ONE_RECORD
        named = name_of_people(self.person, self.unit_label)
        return f"row (a {named} may have several)" if self.of_rows else named


def same_people(one: Hashable | None, other: Hashable | None) -> bool:
    """Whether two labels name the same columns, in whatever order: together they say who a person is."""
    named = [frozenset(label) if isinstance(label, tuple) else frozenset((label,)) for label in (one, other)]
    return named[0] == named[1]


def label_of(columns: tuple[Hashable, ...]) -> Hashable | None:
    """One column, or the tuple of several; None for none."""
    return columns[0] if len(columns) == 1 else columns or None


def checked_columns(name: str, columns: object) -> tuple[Hashable, ...]:
    """One column, or a list of them, as a tuple; whether they exist is for the caller to say."""
    if columns is None or (isinstance(columns, list) and not columns):
        return ()
    listed: Sequence[object] = [columns]
    if isinstance(columns, list | tuple):
        listed = list(islice(columns, MOST_COLUMNS + 1))
    labels = tuple(label for label in listed if isinstance(label, str | int) and not isinstance(label, bool))
    if len(labels) < len(listed) or not labels:
        kind = type(columns).__name__
        raise ColumnTypeError(f"{name} must be the name of a column, or a list of names, not of type {kind}.")
    if len(labels) > MOST_COLUMNS:
        raise ParameterError(f"{name} lists more than {MOST_COLUMNS} columns: list fewer.")
    return tuple(dict.fromkeys(labels))


def judged_people(person: object, per_person: object, constant: object, unit_label: object = None) -> People:
    """Who a person is, as it is declared; nobody known without ``person``."""
    columns, same, way, label = (
        checked_columns("person", person),
        checked_columns("constant", constant),
        checked_way(per_person),
        checked_label(unit_label),
    )
    if not columns and (way is not None or same or label is not None):
        named = "per_person" if way is not None else "constant" if same else "unit_label"
        raise ParameterError(f"{named}= needs person=, the column of ids: pass it as well.")
    return People(columns, way, tuple(dict.fromkeys(same)), unit_label=label)


def judged_unit(
    people: People,
    statistics: Iterable[tuple[Statistic, Sequence[Hashable]]],
    by: Sequence[Hashable],
    *,
    per_person: object = None,
    rows: object = None,
    groups: object = None,
    unit: object = None,
    counts_rows: bool = False,
    listed: int | None = None,
    observed: bool = False,
) -> Unit:
    """The unit of a query, from what is declared and what the question says.

    ``statistics``: what is asked, each with the columns that it reads; in SQL without them where it goes by rows.
    ``by``: the columns of its groups.
    ``per_person, rows, groups, unit``: as the caller wrote them.
    ``counts_rows``: whether a count is one of rows, as in SQL, unless it is of the columns that say who a person
        is.
    ``listed``: how many groups are listed; None if that is not known.
    ``observed``: whether the groups that occur are shown.
    """
    given = {"per_person": per_person, "rows": rows, "groups": groups, "unit": unit}
    options = [name for name, value in given.items() if value is not None]
    if not people.columns:
        if options:
            raise ParameterError(
                f"{options[0]}= says how the rows of a person count, but no column of ids is declared: pass person= as "
                "well, the column of their ids."
            )
        return Unit()
    if unit is not None:
        return _of_rows(people, unit, options)
    way = checked_way(per_person)
    most = checked_rows(rows)
    if way is not None and most is not None:
        raise ParameterError(
            "per_person= makes one number of a person's rows, rows= lets some of them count: pass one of them."
        )
    if way is None and most is None:
        way = people.per_person
    wanted = list(statistics)
    counted = [(statistic, columns) for statistic, columns in wanted if counts_rows or type(statistic) is not Count]
    is_counted = most is None and all(_is_of_people(columns, people, way) for _, columns in counted)
    is_counted = is_counted and way not in PER_PERSON
    if way is None and most is None and not is_counted:
        most = checked_rows(people.rows)
    if way is None and most is None and not is_counted:
        raise undecided(people, PER_PERSON, wanted, counts_rows=counts_rows)
    of_values = [statistic.label for statistic, _ in wanted if statistic.needs.distinct]
    if way in PER_PERSON and of_values:
        raise ParameterError(
            f'{of_values[0]} is about the values of rows, and per_person="{way}" makes one number of them: pass rows= '
            "instead."
        )
    counts_ids = any(_is_number_of_people(asked, columns, people, counts_rows) for asked, columns in wanted)
    if observed and set(people.columns) <= set(by):
        raise people_as_groups(people.columns)
    in_groups = _groups_of(people, by, way, groups)
    in_groups = checked_rows(people.rows) if in_groups is None and is_counted else in_groups  # k rows: k groups at most
    # With rows=k alone, k rows lie in whatever groups; a frame's people are counted whichever of their rows are left.
    if in_groups is None and (most is None or (counts_ids and rows is not None and not counts_rows)):
        different = [column for column in by if column not in people.constant]
        raise in_several_groups(different, counts_people=counts_ids and not counts_rows)
    overall = most is not None and in_groups is None
    # Of people who are counted no row is left out, and nobody has more rows than the tables of a join say.
    has_one = way == ONE and bool(by)
    counts_people = (
        most in (None, 1) and not (overall or has_one) and all(type(statistic) is Count for statistic, _ in wanted)
    )
    limits = ("rows",) if (rows is not None or way == ONE) and not counts_people else ()
    if groups is not None and in_groups is not None and (listed is None or in_groups < listed):
        limits = (*limits, "groups")
    if overall and most is not None:
        in_groups = most if listed is None else min(most, max(listed, 1))
    per_person = None if most is not None or is_counted or way == ONE else way
    return Unit(people.columns, per_person, most or 1, in_groups or 1, overall, limits, unit_label=people.unit_label)


def _of_rows(people: People, unit: object, options: list[str]) -> Unit:
    if not isinstance(unit, str) or unit != "row":
        raise ParameterError(
            f'unit is "row", which protects one row instead of all rows of a person, not {shown(unit)}; leave it out '
            "to protect people."
        )
    if people.joined_on:
        raise row_of_one_table()
    if options != ["unit"]:
        raise ParameterError(f'unit="row" protects each row for itself, so {options[0]}= means nothing: leave one out.')
    return Unit(people.columns, of_rows=True, unit_label=people.unit_label)


def checked_way(per_person: object) -> str | None:
    """How the rows of a person count: ``"one"`` of them, one of `PER_PERSON`, or None if it is not said."""
    if per_person is None:
        return None
    known = (ONE, *PER_PERSON)
    if not isinstance(per_person, str) or per_person not in known:
        raise ParameterError(
            f"per_person is one of {', '.join(known)}, not {shown(per_person)}.{did_you_mean(str(per_person), known)}"
        )
    return per_person


def checked_rows(rows: object) -> int | None:
    """Number of rows of a person that count; None if it is not said."""
    return None if rows is None else checked_count("rows", rows)


def checked_count(name: str, value: object) -> int:
    value = as_integer(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ColumnTypeError(f"{name} is a whole number, not of type {type(value).__name__}.")
    number = int(value)
    if not 1 <= number <= MOST_ROWS:
        raise ParameterError(f"{name} must be between 1 and {MOST_ROWS:,}.")
    return number


def _is_of_people(columns: Sequence[Hashable], people: People, way: str | None) -> bool:
    """Whether a statistic needs no rule for several rows, because a person has one value of its columns."""
    return way is None and bool(columns) and set(columns) <= {*people.constant, *people.columns}


def _is_number_of_people(statistic: Statistic, columns: Sequence[Hashable], people: People, counts_rows: bool) -> bool:
    """Whether a statistic counts ids, not rows."""
    of_ids = bool(columns) and set(people.columns).issuperset(columns)
    return of_ids and (statistic.needs.distinct or (counts_rows and type(statistic) is Count))


def _groups_of(people: People, by: Sequence[Hashable], way: str | None, groups: object) -> int | None:
    """Number of groups in which a person counts; None if nothing says it."""
    if groups is not None:
        if not by:
            raise ParameterError("groups= says in how many groups of by= a person counts: pass by= as well.")
        return checked_count("groups", groups)
    if not by or way == ONE or set(by) <= {*people.constant, *people.columns}:
        return 1
    return None
