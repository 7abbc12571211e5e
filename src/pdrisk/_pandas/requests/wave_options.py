"""Bounds and waves of a change, and how several rows of a person in a wave count, from what is declared and asked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.surveys.mean_change import MeanChange, differences
from pdrisk._core.surveys.weighted import change_of
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.arguments import one_wave, universe
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.groups.frame_keys import checked_keys
from pdrisk._model.missing_arguments import missing_argument
from pdrisk._model.query import Line, written
from pdrisk._model.rowwise import RowwiseFilter, equal_to
from pdrisk._model.unit import ONE, PER_PERSON, People, Unit, checked_rows, checked_way, judged_unit
from pdrisk._model.waves import Waves
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.intervals import check_numeric, interval_of
from pdrisk._pandas.requests.options import Request
from pdrisk._printing import printable
from pdrisk.errors import ParameterError

ADDED = ("mean", "sum")  # of which the range of rows has to be known
FORMS = 'rows=1 (one row in each wave; of more, one is chosen) or per_person="mean" (their mean in each wave)'


def line_of_change(
    frame: pd.DataFrame, column: Hashable, statistic: MeanChange, bounds: object, *, by_column: bool
) -> Line:
    """The line of a change: ``bounds`` are those of the difference, and those of the column in a dict."""
    check_numeric(frame[column], statistic)
    if bounds is not None and not by_column and not isinstance(bounds, str):
        return Line(column, statistic, universe(bounds), "given")
    interval, source = (None, None) if isinstance(bounds, str) else interval_of(frame, column, statistic, bounds)
    if interval is None:
        form = f"bounds={{{column!r}: (lo, hi)}}"
        how = f"pass {form}" if by_column else "pass bounds=(lo, hi), the range of the difference"
        raise missing_argument(
            f"{written(statistic.label, column)} needs bounds: {how}, or declare the range that {column!r} can have "
            f"with df.dprisk.declare({form}): then a difference is at most hi - lo, up or down.",
            form if by_column else f"bounds=(lo, hi), the range that changes of {column!r} can have",
        )
    return Line(column, statistic, differences(interval), source)


def unit_of_change(
    frame: pd.DataFrame, people: People, lines: Sequence[Line], by: Sequence[Hashable], request: Request
) -> Unit:
    """The unit of a question about changes: each person in both waves is one record."""
    change, *others = dict.fromkeys(change_of(line.statistic) for line in lines)
    if change is None or others:
        raise ParameterError("a change is about people in both of its waves, and others are not: ask it alone.")
    way = _way(people, request)
    if way != ONE and (different := [column for column in by if column not in (*people.constant, *people.columns)]):
        raise ParameterError(
            f'by={", ".join(map(str, different))} may differ within a person, of whose rows per_person="{way}" makes '
            f"one number: declare constant={[*map(str, different)]!r} if it does not, or pass rows=1, by which the "
            "later row says the group."
        )
    unit = judged_unit(people, [(change, ())], by, per_person=way)
    waves = Waves(
        (_wave(frame, change.wave, change.from_, "from_"), _wave(frame, change.wave, change.to, "to")),
        way,
        _range_of_rows(frame, lines, way, request),
    )
    if waves.rules[0] == waves.rules[1]:
        raise one_wave(change.to)
    named = "one row" if way == ONE else f"the {way} of the rows"
    weighted = ", with the weight of the later" * isinstance(lines[0].universe, Rectangle)
    words = printable(f"change by {change.wave} from {change.waves}, of {named} in each{weighted}")
    return Unit(unit.person, words, leaves_out=("waves",), unit_label=unit.unit_label, waves=waves)


def _way(people: People, request: Request) -> str:
    """How several rows of a person in one wave count."""
    if not people.columns:
        raise ParameterError(
            "change is between two rows of one person, and no column of ids is declared: pass person=, the column of "
            "ids."
        )
    if request.unit is not None or request.groups is not None:
        named = "unit" if request.unit is not None else "groups"
        raise ParameterError(f"{named}= means nothing to a change, in which each person is one record: leave it out.")
    rows, way = checked_rows(request.rows), checked_way(request.per_person)
    if rows is not None and way is not None:
        raise ParameterError("rows=1 takes one row in each wave, per_person= a number of all: pass one of them.")
    if rows is None and way is None:
        way, rows = people.per_person, people.rows
    if way is None and rows == 1:
        way = ONE
    if way is None:
        how = "and the question does not say how they count" if rows is None else f"and rows={rows} takes several"
        raise ParameterError(f"change: one person may have several rows in a wave, {how}. Pass {FORMS}.")
    if way == "count":
        others = ", ".join(choice for choice in PER_PERSON if choice != way)
        raise ParameterError(f'a change of per_person="count" would not look at the column: pass one of {others}.')
    return way


def _wave(frame: pd.DataFrame, column: Hashable, wave: Hashable, option: str) -> RowwiseFilter:
    """The rows of a wave; refuses one that the column cannot have, as far as types and declared keys say."""
    check_column(frame, column)
    rows, known = equal_to(column, wave, frame, option), declared(frame, column).keys
    if known is not None and checked_keys(frame, (column,), [wave])[0][0] not in known:
        some = ", ".join(map(shown, known[:5])) + ", ..." * (len(known) > 5)
        raise ParameterError(f"{option}={shown(wave)} is none of the declared keys of {column!r}: {some}.")
    return rows


def _range_of_rows(frame: pd.DataFrame, lines: Sequence[Line], way: str, request: Request) -> Universe | None:
    """Range of the rows that are added up for a person, from the bounds of their columns; None if none are."""
    if way not in ADDED:
        return None
    columns = dict.fromkeys(line.column for line in lines)
    if len(columns) > 1:
        raise ParameterError(f'changes of several columns with per_person="{way}": ask one at a time, or rows=1.')
    (column,) = columns
    by_column = isinstance(request.bounds, Mapping)
    if way == "sum" and (by_column or request.bounds is None):
        raise ParameterError(
            f'{lines[0].name} with per_person="sum" needs the bounds of differences of sums, which differ from those '
            "of rows: pass bounds=(lo, hi)."
        )
    bounds = request.bounds.get(column) if by_column else None
    interval, _ = interval_of(frame, column, lines[0].statistic, bounds)
    if interval is None:
        raise ParameterError(
            f'per_person="{way}" adds up the rows of a wave, whose range is not known: declare bounds of {column!r}, '
            "beside bounds=(lo, hi) of the difference, or pass rows=1."
        )
    within = lines[0].universe
    return Rectangle(interval.lo, interval.hi, within.other) if isinstance(within, Rectangle) else interval
