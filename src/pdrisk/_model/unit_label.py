"""Label of the privacy unit: what texts call a person, such as "household", instead of the names of id columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from pdrisk._printing import printable
from pdrisk.errors import ColumnTypeError, ParameterError

LONGEST: Final = 60  # characters


def checked_label(unit_label: object) -> str | None:
    """What texts call a person, as one line of text; None if it is not said."""
    if unit_label is None:
        return None
    if not isinstance(unit_label, str):
        raise ColumnTypeError(f'unit_label is a text, as "household", not of type {type(unit_label).__name__}.')
    label = str(unit_label).strip()
    if not label or len(label) > LONGEST or printable(label) != label or "(" in label:
        raise ParameterError(
            f'unit_label is a word or two for one person, as "household": at most {LONGEST} characters on one line, '
            "without parentheses."
        )
    return label


def label_of_nobody() -> ParameterError:
    """The error for a label of people, if nothing says who a person is."""
    return ParameterError("unit_label= says what texts call a person: pass person=, the column of ids, as well.")


def name_of_people(columns: Iterable[Hashable], unit_label: str | None) -> str:
    """What texts call one of the people that these columns tell apart."""
    return unit_label or ", ".join(printable(str(column)) for column in columns)
