"""Errors about people and their rows, which both front ends raise."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdrisk._core.statistics import Count, Statistic
from pdrisk._model.unit_label import name_of_people
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._model.unit import People, Unit


def bounds_per_person(asked: str | None, unit: Unit) -> ParameterError:
    """The error for declared bounds of rows where a person's rows become one number."""
    return ParameterError(
        f'{asked} with per_person="{unit.per_person}" needs the bounds of that number of a person, which differ from '
        "those of a row: pass bounds=(lo, hi)."
    )


def constant_of_nobody() -> ParameterError:
    """The error for columns that are constant within a person, if nothing says who a person is."""
    return ParameterError("constant= names columns that do not differ within a person: pass person= as well.")


@dataclass(frozen=True, slots=True)
class Computed:
    """Group of an expression, as it is written: never a column, whatever columns are called."""

    text: str

    def __str__(self) -> str:
        return self.text


def in_several_groups(by: Iterable[Hashable], *, counts_people: bool = False) -> ParameterError:
    """The error for groups, where nothing says in how many of them a person counts.

    ``counts_people`` says that the question is about numbers of people, which no limit of their rows bounds.
    """
    groups = list(by)
    columns = list(map(str, groups))
    constant = (
        ""
        if any(isinstance(group, Computed) for group in groups)
        else f"; or declare constant={columns!r} if it does not differ within a person"
    )
    rows = (
        ""
        if counts_people
        else "; or rows=k without per_person=, so that at most k rows of each person count in all groups together, "
        "with k times the noise"
    )
    return ParameterError(
        f"a person may be in several groups of by={', '.join(columns)}, and the question does not say in how many: "
        "pass groups=1 to let each person count in one of them, chosen at random, or groups=g for g of them, with g "
        f"times the noise{rows}{constant}."
    )


def too_many_rows(factors: Sequence[str], number: int, most: int) -> ParameterError:
    """The error for more rows of a person than can count; ``factors`` are the numbers that make it."""
    made = f", {' times '.join(factors)}" if factors else ""
    return ParameterError(
        f"a person may have {number:,} rows here{made}, and at most {most:,} can count: pass rows=k, how many of hers "
        "do, or make fewer of them in a subquery that groups by the person."
    )


def people_as_groups(person: Iterable[Hashable]) -> ParameterError:
    """The error for ids of people as groups, of which those that occur would be shown."""
    named = ", ".join(map(str, person))
    return ParameterError(
        f'each group of {named} is one person, and keys="observed" would show who is in the data: list ids that are '
        "public, or make one number of each person's rows and ask about these."
    )


def row_of_one_table() -> ParameterError:
    """The error for a protected row where tables are joined."""
    return ParameterError('unit="row" is for one table: after a join, a row of a table may be in many rows.')


def not_of_dataset(person: Iterable[Hashable], known: Iterable[Hashable]) -> ParameterError:
    """The error for people of a call that are not those of its Dataset."""
    return ParameterError(
        f"person= is {', '.join(map(str, person))} here and {', '.join(map(str, known))} in the Dataset: losses of "
        "different units do not add up. Leave it out, or make another Dataset."
    )


def different_units() -> ParameterError:
    """The error for tables with different units, such as people and people's days."""
    return ParameterError(
        "person= names different numbers of columns in different tables: a person and a person's day are different "
        "units."
    )


def undecided(
    people: People, ways: Sequence[str], wanted: Sequence[tuple[Statistic, Sequence[Hashable]]], *, counts_rows: bool
) -> ParameterError:
    """The error for several rows of a person, where nothing says how they count: in one of these ways, or others."""
    named = ", ".join(str(column) for column in people.columns)
    labels = ", ".join(dict.fromkeys(statistic.label for statistic, _ in wanted))
    if counts_rows and any(type(statistic) is Count and not columns for statistic, columns in wanted):
        return ParameterError(
            f"COUNT is a number of rows here, of which one {named} may have several: write COUNT(DISTINCT {named}) for "
            'a number of people, or pass rows=k, so that at most k rows of each count, per_person="one", if each has '
            'one row, or unit="row", which protects one row, not a person.'
        )
    constant = (
        "In SQL constant=[...] decides only MIN, MAX and COUNT(DISTINCT x), since all others go by rows."
        if counts_rows
        else "Columns that do not differ within a person are declared with constant=[...]."
    )
    return ParameterError(
        f"{labels}: one {name_of_people(people.columns, people.unit_label)} may have several rows, and the question "
        f'does not say how they count. Pass one of per_person="{ways[0]}" (or {", ".join(ways[1:])}: first one number '
        "for each person, then the statistic of these), rows=k (at most k rows of each person count, chosen at random, "
        'with k times the noise), per_person="one" (each person has one row; of more, one is chosen), or unit="row" '
        f"(protects one row, not a person). {constant}"
    )
