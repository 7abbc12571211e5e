"""Errors about people and their rows, which both front ends raise."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._model.unit import Unit

__all__ = [
    "bounds_per_person",
    "constant_of_nobody",
    "different_units",
    "in_several_groups",
    "not_of_dataset",
    "row_of_one_table",
]


def bounds_per_person(said: str | None, unit: Unit) -> ParameterError:
    """The error for declared bounds of rows where a person's rows become one number."""
    return ParameterError(
        f'{said} with per_person="{unit.per_person}" needs the bounds of that number of a person, which differ from '
        "those of a row: pass bounds=(lo, hi)."
    )


def constant_of_nobody() -> ParameterError:
    """The error for columns that are constant within a person, if nothing says who a person is."""
    return ParameterError("constant= names columns that do not differ within a person: pass person= as well.")


def in_several_groups(by: Iterable[Hashable]) -> ParameterError:
    """The error for groups, where nothing says in how many of them a person counts."""
    named = ", ".join(map(str, by))
    return ParameterError(
        f"a person may be in several groups of by={named}, and the question does not say in how many: pass groups=1 "
        "to let each person count in one of them, chosen at random, or groups=g for g of them, with g times the noise; "
        f"or declare constant=[{named!r}] if it does not differ within a person."
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
