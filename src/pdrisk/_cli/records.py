"""Records of a file: one number for each person if a person may have several rows, and columns for each group."""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from pdrisk._cli.arguments import Several, several
from pdrisk._pandas.requests.declared import codes_of, declarations_of, declared
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.errors import ParameterError

WAYS = ("mean", "sum", "min", "max", "count")
OF_ROWS = ("mean", "min", "max")  # numbers of a person that have the bounds of one row
MOST = 20  # columns by groups, each of which has panels of its own


def arguments(command: argparse.ArgumentParser) -> None:
    """Options that say whose records a file holds."""
    command.add_argument(
        "--person",
        type=several(str),
        action=Several,
        help="columns of ids, together, if a person may have several rows",
    )
    command.add_argument("--per-person", choices=WAYS, help="what the rows of each person become: one number")


def weights_arguments(command: argparse.ArgumentParser) -> None:
    """Options that say how much records count."""
    command.add_argument("--weights", metavar="COLUMN", help="column of weights: how much each record counts")
    command.add_argument(
        "--trim-weights", type=float, metavar="W", help="the largest weight that counts, at which others are trimmed"
    )


def no_weights() -> ParameterError:
    """The error for a largest weight of no column."""
    return ParameterError("--trim-weights is about the column of weights: name it with --weights.")


def weights_of(frame: pd.DataFrame, chosen: argparse.Namespace) -> tuple[Any, dict[Any, Any]]:
    """The column of weights, named or declared by a schema, False without; and all bounds, with theirs."""
    weights, largest = chosen.weights or declarations_of(frame).weights, chosen.trim_weights
    bounds: dict[Any, Any] = dict(chosen.bounds)
    if weights is None:
        if largest is not None:
            raise no_weights()
        return False, bounds
    if chosen.per_person:
        raise ParameterError(
            f"--per-person {chosen.per_person} makes one record of several, which have a weight each: write a file "
            "with one row for each person first, with that person's weight, or ask df.dprisk.assess."
        )
    if largest is not None:
        if weights in bounds:
            raise ParameterError(f"--trim-weights and --bounds both bound {weights}: leave one of them out.")
        if not 0 < largest < math.inf:
            raise ParameterError(f"--trim-weights is the largest weight, finite and above 0, not {largest:g}.")
        bounds[weights] = (0.0, largest)
    elif weights not in bounds and declared(frame, weights).universe is None:
        raise ParameterError(
            f"--weights {weights} needs the largest weight W, at which larger ones are trimmed and by which noise is "
            "scaled: add --trim-weights W."
        )
    return weights, bounds


def said_of(chosen: argparse.Namespace) -> str:
    """What a record is, as text beside the name of the file."""
    if not chosen.person or not chosen.per_person:
        return ""
    return f" (one record for each {', '.join(chosen.person)}: the {chosen.per_person} of the rows)"


def known_bounds(frame: pd.DataFrame, columns: Sequence[Any], chosen: argparse.Namespace) -> dict[Any, Any]:
    """The bounds of columns, from the command line or else declared for a row."""
    rows = {column: declared(frame, column).universe for column in columns}
    row_bounds = {column: (one.lo, one.hi) for column, one in rows.items() if one is not None}
    return (row_bounds if not chosen.per_person or chosen.per_person in OF_ROWS else {}) | dict(chosen.bounds)


def of_people(
    frame: pd.DataFrame, columns: Sequence[Any], chosen: argparse.Namespace, groups: Sequence[str] = ()
) -> pd.DataFrame:
    """The frame with one row for each person: the columns that are looked at, and those of groups.

    Rows without an id are nobody's, and left out. As it is where no ``--person`` is named.
    """
    person = list(dict.fromkeys(chosen.person or ()))
    if not person:
        if chosen.per_person:
            raise ParameterError("--per-person is about the rows of one person: name the columns of ids with --person.")
        return frame
    records = without_codes(frame, codes_of(frame, [*person, *columns, *groups]))[[*person, *groups, *columns]]
    records = records.dropna(subset=person)
    if chosen.per_person is None:
        if records.duplicated(person).any():
            raise ParameterError(
                f"some people have several rows: say with --per-person what these become, {', '.join(WAYS)}. Where "
                "several rows count, as with rows=, ask df.dprisk.assess."
            )
        return _declared(records, frame, columns, groups, chosen)
    by = records.groupby([*person, *groups], dropna=False, observed=True, sort=False)
    numbers = by[list(columns)].agg(chosen.per_person)
    if chosen.per_person in ("sum", "count"):
        numbers = numbers.where(by[list(columns)].count() > 0)  # nothing known is no number
    numbers = numbers.reset_index()
    if numbers.duplicated(person).any():
        raise ParameterError(
            f"some people are in several groups of --by {', '.join(groups)}, so one of them moves several answers: ask "
            "df.dprisk.assess with groups=, or leave --by out."
        )
    return _declared(numbers, frame, columns, groups, chosen)


def _declared(
    records: pd.DataFrame,
    frame: pd.DataFrame,
    columns: Sequence[Any],
    groups: Sequence[str],
    chosen: argparse.Namespace,
) -> pd.DataFrame:
    """Records with the declarations of the file, without missing codes, which are missing values by now."""
    records = records.copy()
    records.attrs = {}
    bounds = known_bounds(frame, columns, chosen)
    keys = {column: column_keys for column in groups if (column_keys := declared(frame, column).keys) is not None}
    untyped: Any = records
    return untyped.dprisk.declare(bounds=bounds, keys=keys) if bounds or keys else records


def by_group(
    frame: pd.DataFrame, columns: Sequence[Any], bounds: Mapping[Any, Any], units: Mapping[Any, str], groups: list[str]
) -> tuple[pd.DataFrame, list[str], dict[Hashable, Any], dict[Hashable, str]]:
    """A column for each column and group, missing in the rows of other groups; with bounds and units."""
    records = without_codes(frame, codes_of(frame, [*columns, *groups]))
    made = records.groupby(groups, observed=True)
    if made.ngroups * len(columns) > MOST:
        raise ParameterError(
            f"--by makes {made.ngroups * len(columns):,} columns of {len(columns)}, and a study shows {MOST}: name "
            "fewer with --columns, or group by less."
        )
    of, labels = made.ngroup(), made.size().index
    names = {
        (column, at): f"{column} ({', '.join(map(str, label if isinstance(label, tuple) else (label,)))})"
        for column in columns
        for at, label in enumerate(labels)
    }
    wide = pd.DataFrame({name: records[column].where(of == at) for (column, at), name in names.items()})
    return (
        wide,
        list(names.values()),
        {name: bounds[column] for (column, _), name in names.items() if column in bounds},
        {name: units[column] for (column, _), name in names.items() if column in units},
    )
