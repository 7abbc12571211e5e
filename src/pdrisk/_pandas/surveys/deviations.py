"""Deviations of the units of a sample from an estimate, as row-wise expressions that are summed over each unit."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.statistics import Proportion, Sum
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.design_variance import factors, most_of_unit
from pdrisk._core.surveys.weighted import WeightedProportion, WeightedSum
from pdrisk._core.universe import Days, Rectangle, Universe
from pdrisk._model.design import Design
from pdrisk._model.query import Query
from pdrisk._model.unit import People
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.options import Request
from pdrisk.errors import ParameterError

MOST_GROUPS: Final = 200  # whose means stand in one expression
PASSED: Final = ("where", "ledger", "fresh")  # options that a question about deviations shares with that of the answer


@dataclass(frozen=True)
class Deviations:
    """Deviations from the answers to a query of one mean, proportion or sum, by group.

    Attributes
    ----------
    data : Dataset
        Whatever has `assign`.
    design : Design
    query : Query
    people : People
        Of the request.
    persons : int
        How many records one unit has at most.
    is_unit : bool
        Whether the unit is the person who is protected, or a record that is assumed to be one.
    """

    data: Any
    design: Design
    query: Query
    people: People
    persons: int
    is_unit: bool

    @classmethod
    def of(cls, data: Any, query: Query, request: Request, *, exact: bool = False) -> Deviations:
        """Those of the answer to a query; ``exact`` for curators alone, from whom nobody is to be protected.

        Raises
        ------
        ParameterError
            If the design does not say what they need.
        """
        design = request.design
        if design is None:
            raise ParameterError(
                "a sampling error depends on how the sample was drawn: ask a Dataset with design=pdrisk.Design(...)."
            )
        line, unit, people = query.lines[0], query.unit, request.people
        if line.universe is None or not isinstance(line.column, str) or not isinstance(line.other, str | None):
            raise ParameterError("sampling errors need declared bounds, and columns whose names are text.")
        if isinstance(line.universe, Days):
            raise ParameterError("sampling errors are of numbers, not of dates: ask without sampling=.")
        if unit.per_person is not None:
            raise ParameterError(
                f'sampling errors are about rows, and per_person="{unit.per_person}" makes one number of those of a '
                "person: pass rows= instead, how many rows of a person count."
            )
        if request.person is not None or request.constant is not None:
            raise ParameterError(
                "sampling errors are about the people of a Dataset: declare person= and constant= there."
            )
        if any("`" in str(name) for name in (line.column, line.other, design.strata)):
            raise ParameterError("sampling errors need columns whose names have no backtick: rename them.")
        _check_strata(data._frame, design)
        is_unit = design.psu is None or people.columns == (design.psu,)
        if not (is_unit or exact) and unit.is_of_people:
            raise ParameterError(
                f"a sampling unit of {design.psu!r} holds several persons, and person= says that each may have several "
                "rows, which would all move what is noisy about the unit: leave person= out where each person has one "
                "row, or declare deff= and n= in the Design instead of sampling=."
            )
        if not is_unit and people.columns and design.psu not in people.constant:
            raise ParameterError(
                f"psu={design.psu!r} may differ within a person, so it is no sampling unit of persons: declare "
                f"constant=[{design.psu!r}], or psu={people.columns[0]!r}."
            )
        if people.columns and design.strata not in (None, *people.constant, *people.columns):
            raise ParameterError(f"strata={design.strata!r} needs to be declared: constant=[{design.strata!r}].")
        groups = query.groups
        if not is_unit and (groups is not None or unit.weight > 1):
            raise ParameterError(
                "sampling errors with clusters are for one number about persons with one record each: ask for each "
                "group with where=, and leave rows= out."
            )
        if groups is not None and unit.groups > 1:
            raise ParameterError(
                "sampling errors of groups are for persons who are in one group each: ask for each group with where=."
            )
        if groups is not None and (groups.keys is None or len(groups.keys) > MOST_GROUPS):
            raise ParameterError(f"sampling errors are for at most {MOST_GROUPS} listed groups: ask for fewer at once.")
        if groups is not None and design.strata in groups.columns:
            raise ParameterError(
                f"each stratum of {design.strata!r} is a sample of its own: ask for them with where=, by a Design "
                "without strata and with psus= of this one."
            )
        persons = max(design.persons or 1, unit.weight if is_unit else 1)
        return cls(data, design, query, people, persons, is_unit)

    @property
    def name(self) -> str:
        """Name for the column of deviations, which the frame has not."""
        label = f"deviation from {self.query.lines[0].name}"
        while label in self.data._frame.columns:
            label += "_"
        return label

    @property
    def is_sum(self) -> bool:
        """Whether the answer is a sum; else a mean."""
        return isinstance(self.query.lines[0].statistic, Sum | WeightedSum)

    @property
    def universe(self) -> Universe:
        """Of the values."""
        interval = self.query.lines[0].universe
        assert interval is not None
        return interval

    @property
    def largest_weight(self) -> float:
        """Of a record; 1 without weights."""
        return self.universe.other.hi if isinstance(self.universe, Rectangle) else 1.0

    @property
    def widest(self) -> float:
        """The farthest from 0 that a record can lie, or its weight."""
        return max(self.largest_weight, 1.0) * (max(self.universe.magnitude, 1.0) if self.is_sum else 1.0)

    @property
    def keys(self) -> list[tuple[Hashable, ...]]:
        """Of the groups of the answer; one empty one without groups."""
        groups = self.query.groups
        return [()] if groups is None or groups.keys is None else list(groups.keys)

    @property
    def factors(self) -> FloatArray:
        """The factor of each stratum; 1 where no numbers of units are known."""
        units = self.design.units
        return factors(units, self.design.populations) if units else np.ones(1)

    def most(self, shares: FloatArray) -> float:
        """What the deviation of a unit is clamped at."""
        one = self.universe.magnitude if self.is_sum else float(np.maximum(shares, 1 - shares).max())
        return self.largest_weight * one * most_of_unit(self.persons)

    def weight(self) -> str:
        """The trimmed weight of a record."""
        name = self.query.lines[0].other
        return "1.0" if name is None else _clamped(f"`{name}`", 0.0, self.largest_weight)

    def value(self) -> str:
        """The clamped value of a record: as it is for a sum; for a mean its place between the bounds, from 0 to 1."""
        line = self.query.lines[0]
        if line.indicator is not None:
            return f"(({line.column}) * 1.0)"
        if isinstance(line.statistic, Proportion | WeightedProportion):
            return f"(`{line.column}` * 1.0)"
        clamped = _clamped(f"`{line.column}`", self.universe.lo, self.universe.hi)
        return clamped if self.is_sum else f"(({clamped} - {self.universe.lo!r}) / {self.universe.width!r})"

    def centred(self, means: FloatArray) -> str:
        """What a record adds to the deviation of its unit, about these means, as their places between the bounds."""
        if self.is_sum:
            return f"{self.weight()} * {self.value()}"
        numbers = [f"{mean!r}" for mean in means.tolist()]
        groups = self.query.groups
        mean = numbers[0]
        if groups is not None:
            mean = summed(
                [f"({_equal(groups.columns, key)}) * {number}" for key, number in zip(self.keys, numbers, strict=True)]
            )
        return f"{self.weight()} * ({self.value()} - ({mean}))"

    def scaled(self, deviation: str) -> str:
        """Deviation times the root of the factor of its stratum over the largest."""
        strata = self.design.strata
        if strata is None or not isinstance(self.design.psus, Mapping):
            return deviation
        largest = self.factors.max()
        roots = np.sqrt(self.factors / (largest if largest > 0 else 1.0)).tolist()  # 0 where all were asked
        parts = [f"({_equal([strata], (key,))}) * {root!r}" for key, root in zip(self.design.psus, roots, strict=True)]
        return f"{deviation} * ({summed(parts)})"

    def request(
        self, columns: Mapping[str, str], options: Mapping[str, Any], *, by_unit: bool, by_stratum: bool
    ) -> tuple[pd.DataFrame, Request]:
        """Frame with these derived columns, and a request about sums of them, by group and stratum.

        Parameters
        ----------
        columns : dict from name to expression
        options : dict
            Of the question of the answer.
        by_unit : bool
            Whether they are summed over each unit first.
        by_stratum : bool
            Whether strata are groups, too: the last level.
        """
        data, groups = self.data.assign(**columns), self.query.groups
        by, keys = [] if groups is None else list(groups.columns), self.keys
        if by_stratum and self.design.strata is not None:
            by = [*by, self.design.strata]
            keys = [(*key, stratum) for key, stratum in itertools.product(keys, self.design.psus)]
        listed: Any = [key[0] for key in keys] if len(by) == 1 else keys
        asked: Any = {name: options[name] for name in PASSED if name in options} | {"eps": 1, "weights": False}
        request = data._request({**asked, **({"by": by, "keys": listed} if by else {})})
        unit_columns = self.people.columns
        if self.design.psu is not None:  # whose numbers may begin anew in each stratum
            unit_columns = tuple(
                dict.fromkeys(column for column in (self.design.psu, self.design.strata) if column is not None)
            )
            unit_columns = self.people.columns if self.is_unit else unit_columns
        if not by_unit or not unit_columns:
            return data._frame, replace(request, people=People(), design=None)
        label = self.people.unit_label if unit_columns == self.people.columns else None
        people = People(unit_columns, "sum", tuple(by), request.people.secret, unit_label=label)
        return data._frame, replace(request, people=people, design=None)


def _check_strata(frame: pd.DataFrame, design: Design) -> None:
    """Refuse sizes of other strata than those that are declared as keys, of which some would have no sampling error."""
    listed = None if design.strata is None else declared(frame, design.strata).keys
    if listed is None or not isinstance(design.psus, Mapping):
        return
    if left := [key for key in listed if key not in design.psus]:
        raise ParameterError(f"psus= lacks stratum {left[0]!r}, which is a declared key of {design.strata!r}: add it.")


def summed(parts: Sequence[str]) -> str:
    """Sum of expressions, nested in halves so that many are not nested deeply."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({summed(parts[:half])}) + ({summed(parts[half:])})"


def _clamped(value: str, low: float, high: float) -> str:
    """A value between bounds, by truth values as numbers."""
    within = f"{value} * ({value} >= {low!r} and {value} <= {high!r})"
    return f"({within} + {low!r} * ({value} < {low!r}) + {high!r} * ({value} > {high!r}))"


def _equal(columns: Sequence[Hashable], key: Sequence[Hashable]) -> str:
    """Condition that a record belongs to a group."""
    if not all(isinstance(value, str | int | float) for value in key):
        raise ParameterError("sampling errors need groups and strata whose keys are text or numbers.")
    return " and ".join(f"`{column}` == {value!r}" for column, value in zip(columns, key, strict=True))
