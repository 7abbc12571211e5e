"""People of a frame: who they are, and how their rows count, from what is declared and what a call says."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pdrisk._core.surveys.weighted import change_of
from pdrisk._model.asked_groups import Groups
from pdrisk._model.expressions.columns import check_column, check_ids
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import People, Unit, checked_columns, judged_unit
from pdrisk._model.unit_errors import bounds_per_person, constant_of_nobody, not_of_dataset
from pdrisk._model.unit_label import checked_label, label_of_nobody
from pdrisk._pandas.requests.lines import OTHER_NUMBERS
from pdrisk._pandas.requests.options import REPLACE, Request
from pdrisk._pandas.requests.wave_options import unit_of_change
from pdrisk.errors import ParameterError

ON_ONE_LINE = ("laplace", "geometric")  # mechanisms whose loss between two worlds is the distance of their answers


def people_of(frame: pd.DataFrame, request: Request) -> People:
    """People of a call: those of the Dataset, or those that the call names for a frame."""
    people = request.people
    named = {name: checked_columns(name, getattr(request, name)) for name in ("person", "constant")}
    for column in (*named["person"], *named["constant"]):
        check_column(frame, column)
    if named["person"] and people.columns and set(named["person"]) != set(people.columns):
        raise not_of_dataset(named["person"], people.columns)
    if named["constant"] and not (named["person"] or people.columns):
        raise constant_of_nobody()
    columns = people.columns or named["person"]
    for column in columns:
        check_column(frame, column)  # of a declaration, which it may have lost since
        check_ids(frame[column])
    label = checked_label(request.unit_label)
    if label is not None and not columns:
        raise label_of_nobody()
    if columns == people.columns and not named["constant"] and label is None:
        return people
    same = (*people.constant, *named["constant"])
    return replace(people, columns=columns, constant=same, unit_label=label or people.unit_label)


def unit_of(frame: pd.DataFrame, lines: tuple[Line, ...], groups: Groups | None, request: Request) -> Unit:
    """The unit of a call."""
    people = people_of(frame, request)
    asked = [(line.statistic, _columns(line)) for line in lines]
    by = () if groups is None else groups.columns
    if any(change_of(line.statistic) for line in lines):
        return unit_of_change(frame, people, lines, by, request)
    unit = judged_unit(
        people, asked, by, per_person=request.per_person, rows=request.rows, groups=request.groups, unit=request.unit,
        listed=None if groups is None or groups.keys is None else len(groups.keys),
        observed=groups is not None and groups.keys_from == "data",
    )  # fmt: skip
    if unit.is_of_people and request.neighbours == REPLACE:
        raise ParameterError(
            'neighbours="replace-one" is about rows, whose number is public: leave it out, or leave out person=.'
        )
    if unit.per_person in OTHER_NUMBERS:
        unbounded = [line.name for line in lines if line.statistic.bounded and line.bounds_from != "given"]
        if unbounded:
            raise bounds_per_person(unbounded[0], unit)
    return unit


def check_worlds_of_people(query: Query, prior: object) -> None:
    """Refuse worlds without all records of a person, unless they lie on one line with one belief each."""
    name = query.lines[0].mechanism
    if name not in ON_ONE_LINE:
        raise ParameterError(
            f"identifiability by {name} is worked out where a person has one record, and here one may have "
            f'{query.unit.weight}: ask with mechanism="laplace", per_person= or rows=1. compare(), assess() and '
            "individual_risk() are for several, too."
        )
    if prior is not None and not isinstance(prior, int | float):
        raise ParameterError(
            "prior of several records a person is one number, the belief about one person: leave "
            "out beliefs about rows."
        )


def _columns(line: Line) -> tuple[object, ...]:
    """The columns that a line reads."""
    if line.indicator is not None:
        return tuple(line.indicator.columns)
    return tuple(column for column in (line.column, line.other) if column is not None)
