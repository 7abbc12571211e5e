"""Consistent tables: answers that are already out, adjusted to each other so that they add up."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.arithmetic.measured import Measurements, unpacked
from pdrisk._answer.release import Release
from pdrisk._answer.tables.adjusted import AdjustedTables, PublishedTable, axes_of, places_of
from pdrisk._answer.tables.measured_tables import measurements_of
from pdrisk._caller_frame import caller
from pdrisk._core.foreign import own_errors
from pdrisk._core.margins.components import Axes, margin, product
from pdrisk._core.margins.whole import whole_table
from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.laws.law import Law
from pdrisk._model.arguments import checked_flag
from pdrisk._model.margins import ALL, MOST_WHOLE, Grid
from pdrisk._model.plain import plain_label
from pdrisk._printing import printable
from pdrisk.errors import ColumnTypeError, DoubtfulReleaseWarning, ParameterError

MOST_TABLES: Final = 100
UNLIKELY: Final = 3.5  # of the test whether tables are of the same data: in standard deviations, for Laplace noise
SAME: Final[dict[str, str]] = {
    "where": "filters (where=)",
    "unit": "people",
    "per_person": "per_person=",
    "rows": "rows=",
    "groups_each": "groups=",
    "overall": "rows=",
}


@own_errors
def consistent(
    tables: Iterable[pd.DataFrame | Release], *, whole: bool = False, same_data: bool = False
) -> list[pd.DataFrame]:
    """Consistent tables: answers that are already out, adjusted by least squares so that they add up.

    All of it is computed from what was published: it costs no eps, and tells nothing more about anybody. Each number
    becomes more accurate, as it takes part in what the other tables tell of it.

    Parameters
    ----------
    tables : list of DataFrame or Release
        Counts, sums or means of one column, by different columns, as pdrisk returned them: the groups of each are all
        combinations of its keys, and a column that several share has the same keys in all. A `Release` is the total.
    whole : bool, default False
        Show counts as whole numbers of at least 0 that add up; one table then has all columns. Intervals remain those
        of the estimates.
    same_data : bool, default False
        Declares that all tables are about the same state of the data, and the label says that it is your word. Not
        needed where a ledger paid for a Dataset with ``version=``, and the versions are the same.

    Returns
    -------
    list of DataFrame
        The same tables, with adjusted ``value``, ``low`` and ``high``.

    Raises
    ------
    ParameterError
        If the tables are about different people or values, if their measurements are not known, or if somebody would
        be left out of one that is in another by a rule.

    Warns
    -----
    DoubtfulReleaseWarning
        If the tables differ more than their noise allows. Then people in one of them probably have no listed key in
        another.

    Notes
    -----
    Least squares of each measured number apart (`MeasuredMargins`), then the statistic. The weighted squares of what
    the adjustment moves follow, without differences beside noise, about a chi-square distribution with variance
    ``5 df`` instead of ``2 df``, as Laplace noise has long tails.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> people = pd.DataFrame({"region": ["north", "south"] * 400, "sex": ["f", "f", "m", "m"] * 200})
    >>> keys = {"region": ["north", "south"], "sex": ["f", "m"]}
    >>> cells = people.dprisk.count(eps=1, by=["region", "sex"], keys=keys)
    >>> regions = people.dprisk.count(eps=1, by="region", keys=keys)
    >>> cells, regions = pdrisk.consistent([cells, regions], whole=True, same_data=True)
    >>> bool((cells["value"].groupby("region").sum() == regions["value"]).all())
    True
    """
    checked_flag("whole", whole)
    checked_flag("same_data", same_data)
    if isinstance(tables, pd.DataFrame | Release | str) or not isinstance(tables, Iterable):
        raise ColumnTypeError("consistent takes a list of tables, as in consistent([by_region, by_sex]).")
    given = [_given(table, at + 1) for at, table in enumerate(islice(tables, MOST_TABLES + 1))]
    if not 2 <= len(given) <= MOST_TABLES:
        raise ParameterError(f"consistent takes 2 to {MOST_TABLES} tables: with one there is nothing to adjust to.")
    _check_alike(given, same_data)
    grid = _common_grid(given)
    adjusted = AdjustedTables.of([part for published in given for part in published.parts], grid)
    _warn_of_difference(adjusted)
    shows_whole = bool(whole) and _can_be_whole(adjusted, given[0].said)
    cells = whole_table(adjusted.design, adjusted.of_first()) if shows_whole else None
    names = tuple(
        dict.fromkeys(part.by for published in given for part in published.parts if part.measured is not None)
    )
    return [_shown(published, adjusted, cells, names, same_data=bool(same_data)) for published in given]


@dataclass(frozen=True)
class _Published:
    """An answer that was passed, and the tables in it: one, or cells and margins."""

    table: pd.DataFrame
    said: Answer
    parts: tuple[PublishedTable, ...]

    @property
    def law(self) -> Law:
        """How the answer follows from what was measured."""
        return next(part.measured.law for part in self.parts if part.measured is not None)


def _given(table: object, number: int) -> _Published:
    """An answer that was passed, if what was measured of it is known."""
    called = f"table {number}"
    if isinstance(table, Release):
        answer = table.answer
        numbers = {"value": [table.value], "low": [table.low], "high": [table.high]}
        frame = pd.DataFrame(numbers | {name: [value] for name, value in table.noisy.risk_columns.items()})
        measured = [table.noisy.measurements]
    elif isinstance(table, pd.DataFrame):
        description = Answer.from_attrs(table.attrs)
        if description is None or description.headings is not None or "value" not in table:
            raise ParameterError(
                f"{called} is not an answer in the form that df.dprisk gives: pass the tables of count, sum or mean "
                "with by=, as they were returned, not those of crosstab or SQL."
            )
        answer, frame = description, table
        measured = measurements_of(table)
    else:
        raise ColumnTypeError(f"{called} is no answer of pdrisk, but of type {type(table).__name__}.")
    _check_question(answer, called)
    parts = _parts(answer, frame, measured[0], called)
    drawn = [part.measured for part in parts if part.measured is not None]
    if not drawn or any(not measurement.law.top or measurement.withheld.any() for measurement in drawn):
        withheld = any(measurement.withheld.any() for measurement in drawn)
        why = "has withheld answers" if withheld else "holds no sums with noise of known scale"
        raise ParameterError(f"{called} {why}: counts, sums and means can be adjusted.")
    return _Published(frame, answer, parts)


def _check_question(answer: Answer, called: str) -> None:
    """Refuse answers of which nobody knows whom they are about, or that leave some out by the rule of one table."""
    if len(answer.lines) != 1:
        raise ParameterError(f"{called} has several statistics: pass tables of one each, such as those of count.")
    if answer.share_of is not None or answer.adjusted:
        what = "shares" if answer.share_of is not None else "numbers that were adjusted already"
        raise ParameterError(f"{called} has {what}: pass the tables that were asked for at first.")
    if answer.where_trusted:
        raise ParameterError(
            f"{called} has a filter that is a mask, a function or a value of yours, and nobody knows whether that of "
            'another table is the same: write it as a text, as in where="age > 40".'
        )
    if answer.leaves_out or (answer.groups_each > 1 and not answer.overall):
        raise ParameterError(
            f"{called} leaves out rows or groups of people, or counts them in several, so that tables by other columns "
            "are not about the same records: declare the columns of by= as constant=, or ask for margins=."
        )


def _parts(
    answer: Answer, frame: pd.DataFrame, measured: Measurements | None, called: str
) -> tuple[PublishedTable, ...]:
    """The tables of an answer: one, or its cells and each of its margins."""
    columns = tuple(map(plain_label, frame.index.names)) if answer.grouped else ()
    listed = [key if isinstance(key, tuple) else (key,) for key in frame.index] if answer.grouped else [()]
    drawn: dict[Axes, Measurements | None] = {tuple(range(len(columns))): measured}
    if answer.tables and answer.measured_tables is not None:
        tables = (tuple(axes) for axes in answer.measured_tables["axes"])
        drawn = dict(zip(tables, unpacked(answer.measured_tables), strict=True))
    rows: dict[Axes, list[int]] = {}
    for at, key in enumerate(listed):
        rows.setdefault(tuple(axis for axis, label in enumerate(key) if not answer.tables or label != ALL), []).append(
            at
        )
    parts = []
    for axes, places in rows.items():
        keys = tuple(tuple(listed[at][axis] for axis in axes) for at in places)
        grid = Grid.of(tuple(columns[axis] for axis in axes), keys) if len(set(keys)) == len(keys) else None
        if answer.delta or grid is None:
            raise ParameterError(f"{called} does not have all combinations of the keys of its columns: list all keys.")
        parts.append(PublishedTable(grid, keys, np.array(places), _as_listed(grid, keys, drawn.get(axes), answer)))
    return tuple(parts)


def _as_listed(
    grid: Grid, keys: tuple[tuple[Hashable, ...], ...], measured: Measurements | None, answer: Answer
) -> Measurements | None:
    """What was drawn of a table in the order of its rows: with margins it was drawn row by row of the grid."""
    return measured.take(grid.places(keys)) if answer.tables and measured is not None else measured


def _check_alike(given: Sequence[_Published], same_data: bool) -> None:
    """Refuse tables of different questions, or of data of which nobody says that they are the same."""
    first = given[0]
    for number, published in enumerate(given[1:], start=2):
        for name, called in SAME.items():
            if getattr(published.said, name) != getattr(first.said, name):
                raise ParameterError(f"tables 1 and {number} have different {called}: pass those of the same question.")
        if _asked(published) != _asked(first):
            raise ParameterError(
                f"tables 1 and {number} are about {first.said.name} and {published.said.name}, by different bounds or "
                "mechanisms: pass those of one statistic, with the same bounds= and mechanism=."
            )
    if same_data:
        return
    for number, published in enumerate(given[1:], start=2):
        ours, theirs = first.said.meanings or {}, published.said.meanings or {}
        if other := next((name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]), None):
            raise ParameterError(
                f"the column {printable(other)} of table 1 is computed otherwise in table {number}, or has other "
                "codes for missing values: pass tables of one meaning."
            )
    states = {published.said.state for published in given}
    if None in states or len(states) > 1:
        several = (
            "tables are of different states of the data"
            if len(states - {None}) > 1
            else ("nothing says that all tables are about the same state of the data")
        )
        raise ParameterError(
            f"{several}. Pass same_data=True if you know that they are; or ask under a ledger, of a Dataset with "
            "version=."
        )


def _asked(given: _Published) -> tuple[Any, ...]:
    line, law = given.said.lines[0], given.law
    return line.column, line.statistic, line.bounds, law.top, law.bottom, law.constant


def _common_grid(given: Sequence[_Published]) -> Grid:
    """All columns of the tables, with their keys."""
    levels: dict[Hashable, tuple[Hashable, ...]] = {}
    every = [(number, part) for number, published in enumerate(given, start=1) for part in published.parts]
    for number, table in every:
        for column, level in zip(table.grid.columns, table.grid.levels, strict=True):
            if set(levels.setdefault(column, level)) != set(level):
                raise ParameterError(
                    f"table {number} has other keys of {column} than an earlier one: ask for all with the same keys."
                )
    return Grid(tuple(levels), tuple(levels.values()))


def _warn_of_difference(adjusted: AdjustedTables) -> None:
    if (surprise := adjusted.surprise) > UNLIKELY:
        warnings.warn(
            f"the tables differ more than their noise allows, by {surprise:.1f} standard deviations of what it would "
            "explain: probably people of one of them have no listed key in another, as if it were missing. List None "
            "among the keys, or ask again with margins=.",
            DoubtfulReleaseWarning,
            stacklevel=caller()[1],
        )


def _can_be_whole(adjusted: AdjustedTables, answer: Answer) -> bool:
    """Whether counts can be shown as whole numbers; refuses what never can, and warns of too many cells."""
    if answer.lines[0].statistic != "count":
        raise ParameterError(f"whole=True is for numbers of records, and these are {answer.name}: leave it out.")
    if adjusted.grid.axes not in adjusted.measured:
        raise ParameterError(
            "whole=True needs a table by all columns, whose cells are the whole numbers: pass it as well, or leave "
            "whole=True out."
        )
    cells = product(adjusted.grid.sizes, adjusted.grid.axes)
    if cells > MOST_WHOLE:
        warnings.warn(
            f"whole numbers are found for {MOST_WHOLE:,} cells at most, and there are {cells:,}: the estimates are "
            "shown as they are, as with whole=False.",
            DoubtfulReleaseWarning,
            stacklevel=caller()[1],
        )
    return cells <= MOST_WHOLE


def _shown(
    given: _Published, adjusted: AdjustedTables, cells: IntArray | None, names: tuple[str, ...], *, same_data: bool
) -> pd.DataFrame:
    """An answer with its adjusted numbers, and the description of them."""
    value = np.empty(len(given.table), dtype=np.float64 if cells is None else np.int64)
    low, high = np.empty(len(value)), np.empty(len(value))
    for part in given.parts:
        axes, places = axes_of(part, adjusted.grid), places_of(part, adjusted.grid)
        estimates, low[part.rows], high[part.rows] = (answer[places] for answer in adjusted.answers(axes))
        numbers = estimates if cells is None else margin(cells, cells.ndim, axes).reshape(-1)[places]
        value[part.rows] = numbers
    low, high = np.fmin(low, value), np.fmax(high, value)
    kept = [name for name in given.table.columns if name in ("eps", "worst_case")]
    table = given.table[kept].assign(value=value, low=low, high=high)[["value", "low", "high", *kept]]
    line = replace(
        given.said.lines[0],
        noise95=float(np.fmax(high - value, value - low).max(initial=0.0)),
        value=None,
        low=None,
        high=None,
        scale=None,
    )
    description = replace(
        given.said,
        lines=(line,),
        adjusted=names,
        state=None if same_data else given.said.state,
        whole=cells is not None,
        measured=None,
        measured_tables=None,
    )
    return description.attach(table)
