"""Results of disclosure measures: small frozen objects with numbers, a table of classes, a picture. Curator only."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.answers import formatting
from pdrisk._core.risks.loglinear import MOST_CELLS
from pdrisk._core.risks.table_disclosure import probability_below
from pdrisk._disclosure.classes import Classes
from pdrisk._disclosure.pictures import Bars, of_shares, of_sizes
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.plain import plain_label
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATED = "an estimate: a model stands in for the people outside the table"
MAIN_EFFECTS = f"too high rather than too low: more than {MOST_CELLS:,} combinations of keys, so no interactions"


@dataclass(frozen=True, slots=True)
class Found:
    """Columns of values over all class numbers, and the classes that there are."""

    classes: Classes
    present: NDArray[np.bool_]
    values: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, repr=False, eq=False)
class ClassMeasure:
    """Result of a measure of equivalence classes. Curator only: nothing of it is publishable.

    Attributes
    ----------
    on : tuple of hashable
        The key columns.
    people : int
        How many are in the table; with ``person=``, a person with rows in several classes counts in each.
    left_out : int
        Rows without a person's id, which belong to nobody known.
    """

    on: tuple[Hashable, ...]
    people: int
    left_out: int
    _found: Found = field(repr=False)
    _main: ClassVar[str] = "sample"  # the column that stands for each row
    _worst_first: ClassVar[bool] = True  # whether small values are the bad ones

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Table of the classes, sorted and indexed by their keys, with a column for each number."""
        return self._found.classes.table(self._found.present, self._found.values)

    def worst(self, n: int = 5) -> pd.DataFrame:
        """The ``n`` classes with the highest risk, the worst first."""
        ordered = self.classes.sort_values(self._main, ascending=self._worst_first, kind="stable")
        return mark_exact(ordered.dropna(subset=[self._main]).head(n))

    def per_row(self) -> pd.Series:
        """Number of each row's class, aligned to the index of the frame; missing for rows not counted.

        Raises
        ------
        ParameterError
            If the table was no pandas frame.
        """
        rows = self._found.classes.sides[0].rows
        if rows is None:
            raise ParameterError(
                "only a pandas frame has rows to align to: join the table of .classes to your data by its keys."
            )
        return self._found.classes.aligned(self._found.values[self._main], self._main, rows)

    def picture(self) -> Figure:
        """Bars of the number of people in classes of each size; needs matplotlib. Curator only.

        Raises
        ------
        ParameterError
            If matplotlib is not installed; `picture_text` needs nothing.
        """
        return self._bars().figure()

    def picture_text(self) -> str:
        """Picture as text, in signs and numbers."""
        return self._bars().text()

    def to_dict(self) -> dict[str, Any]:
        """Dict of the numbers, without the table of classes. Curator only."""
        return {"measure": self._title(), "on": [plain_label(name) for name in self.on], **self._numbers()}

    def __repr__(self) -> str:
        return formatting.text(self._title(), [], self._lines())

    def _repr_html_(self) -> str:
        return formatting.html(self._title(), [], self._lines())

    def _title(self) -> str:
        return f"{self._name} of {', '.join(map(str, self.on))}"

    _name: ClassVar[str] = ""

    def _numbers(self) -> dict[str, Any]:
        """Numbers of the result by name."""
        shown = {name: getattr(self, name) for name in self._told}
        return {**shown, "people": self.people, "left_out": self.left_out}

    _told: ClassVar[tuple[str, ...]] = ()
    _note: ClassVar[str] = ""

    def _lines(self) -> formatting.Rows:
        rows = [(name.replace("_", " "), _shown(getattr(self, name))) for name in self._told]
        rows += [("classes", f"{np.count_nonzero(self._found.present):,}"), ("people", f"{self.people:,}")]
        rows += [("rows without an id", f"{self.left_out:,}")] if self.left_out else []
        return [*rows, ("note", self._note)] if self._note else rows

    def _bars(self) -> Bars:
        values = self._found.values
        return of_sizes(
            f"{self._title()}: sizes of classes", "size", *self._of_present(values["sample"], values["sample"])
        )

    def _of_present(self, *values: NDArray[Any]) -> list[NDArray[Any]]:
        return [value[self._found.present] for value in values]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else value if isinstance(value, str) else formatting.number(value)


@dataclass(frozen=True, repr=False, eq=False)
class KAnonymity(ClassMeasure):
    """k-anonymity: the size of the smallest class of people who share all keys.

    Attributes
    ----------
    k : int
        Everybody shares the keys with at least k - 1 others in the table.
    unique : int
        People who share them with nobody.
    """

    k: int = 0
    unique: int = 0
    _name: ClassVar = "k-anonymity"
    _told: ClassVar = ("k", "unique")

    def below(self, k: int) -> int:
        """Number of people in classes of fewer than ``k``."""
        sample = self._found.values["sample"]
        return int(sample[sample < k].sum())


@dataclass(frozen=True, repr=False, eq=False)
class KMap(ClassMeasure):
    """k-map: the smallest size in the population of a class with somebody in the table.

    Attributes
    ----------
    k_map : int
        Everybody in the table shares the keys with at least k_map - 1 others in the population.
    k : int
        The same within the table: k-anonymity.
    population : int
        How many people are in it.
    """

    k_map: int = 0
    k: int = 0
    population: int = 0
    _main: ClassVar = "population"
    _name: ClassVar = "k-map"
    _told: ClassVar = ("k_map", "k", "population")

    def _bars(self) -> Bars:
        sizes, people = self._of_present(self._found.values["population"], self._found.values["sample"])
        return of_sizes(f"{self._title()}: sizes of classes", "in the population", sizes, people)


@dataclass(frozen=True, repr=False, eq=False)
class DeltaPresence(ClassMeasure):
    """delta-presence: smallest and largest share of a population class that is in the table.

    Attributes
    ----------
    delta_min, delta_max : float
        Who knows somebody's keys and the population knows with this probability that they are in the table, at least
        and at most. The least is over all classes of the population, also those of which nobody is in the table.
    k_map, k : int
    population : int
        How many people are in it.
    """

    delta_min: float = 0.0
    delta_max: float = 0.0
    k_map: int = 0
    k: int = 0
    population: int = 0
    _main: ClassVar = "ratio"
    _worst_first: ClassVar = False
    _name: ClassVar = "delta-presence"
    _told: ClassVar = ("delta_min", "delta_max", "k_map", "k", "population")

    def _bars(self) -> Bars:
        shares, people = self._of_present(self._found.values["ratio"], self._found.values["population"])
        return of_shares(f"{self._title()}: share in the table", "share of the class", shares, people)


@dataclass(frozen=True, repr=False, eq=False)
class LDiversity(ClassMeasure):
    """l-diversity: the least number of different sensitive values within a class.

    Attributes
    ----------
    sensitive : hashable
    l : int
        Distinct l-diversity: the fewest different values in a class. Missing values are not counted.
    entropy_l : float
        Entropy l-diversity: ``exp`` of the smallest entropy of a class.
    largest_share : float
        How often an attacker who guesses the commonest value of the class is right, in the worst class.
    """

    sensitive: Hashable = None
    l: int = 0  # noqa: E741 - its name
    entropy_l: float = 0.0
    largest_share: float = 0.0
    _main: ClassVar = "distinct"
    _name: ClassVar = "l-diversity"
    _told: ClassVar = ("l", "entropy_l", "largest_share")

    def _title(self) -> str:
        return f"l-diversity of {self.sensitive} within {', '.join(map(str, self.on))}"

    def _bars(self) -> Bars:
        values, people = self._of_present(self._found.values["distinct"], self._found.values["sample"])
        known = np.isfinite(values)
        return of_sizes(f"{self._title()}: different values", "values", values[known], people[known])


@dataclass(frozen=True, repr=False, eq=False)
class TCloseness(ClassMeasure):
    """t-closeness: the largest distance of a class's sensitive values from those of the whole table.

    Attributes
    ----------
    sensitive : hashable
    t : float
        In [0, 1].
    distance : {"ordered", "equal"}
        Earth mover's distance of ordered values, or with equal distances between any two.
    """

    sensitive: Hashable = None
    t: float = 0.0
    distance: str = "equal"
    _main: ClassVar = "distance"
    _worst_first: ClassVar = False
    _name: ClassVar = "t-closeness"
    _told: ClassVar = ("t", "distance")

    def _title(self) -> str:
        return f"t-closeness of {self.sensitive} within {', '.join(map(str, self.on))}"

    def _bars(self) -> Bars:
        values, people = self._of_present(self._found.values["distance"], self._found.values["sample"])
        known = np.isfinite(values)
        return of_shares(f"{self._title()}: distances", "distance", values[known], people[known])


@dataclass(frozen=True, repr=False, eq=False)
class UniqueRows(ClassMeasure):
    """Unique rows: people who share their keys with nobody else in the table.

    Attributes
    ----------
    unique : int
    share : float
        Of all people.
    population_unique, population_unique_range : float, (float, float); or None
        With ``weights=``, as those of `KMapEstimate`.
    """

    unique: int = 0
    share: float = 0.0
    population_unique: float | None = None
    population_unique_range: tuple[float, float] | None = None
    _main: ClassVar = "unique"
    _worst_first: ClassVar = False
    _name: ClassVar = "unique rows"

    @property
    def _told(self) -> tuple[str, ...]:  # type: ignore[override]
        estimates = () if self.population_unique is None else ("population_unique", "population_unique_range")
        return ("unique", "share", *estimates)

    @property
    def _note(self) -> str:  # type: ignore[override]
        return "" if self.population_unique is None else f"population unique is {ESTIMATED}"


@dataclass(frozen=True, repr=False, eq=False)
class KMapEstimate(ClassMeasure):
    """Estimate of k-map from a sample alone, by its weights, and the individual risk of re-identification.

    Attributes
    ----------
    k_map : float
        The smallest estimated size in the population of a class in the table.
    k : int
        k-anonymity of the sample.
    highest_risk : float
        The largest expectation of 1/F of a class with F people in the population: the individual risk.
    reidentified : float
        How many people an attacker would re-identify who guesses one of each class, by a log-linear model of all
        classes together (Skinner & Shlomo 2008); of one key, by the individual risk.
    population_unique : float
        How many people are unique in the population, of those unique in the sample, by the same model.
    reidentified_range, population_unique_range : (float, float)
        From the least to the most that three models say: of each class alone, as in the individual risk; the log-linear
        model; and its main effects alone.
    model : {"negative_binomial", "poisson"}
        Of those who were not sampled, for the individual risk.
    interactions : tuple of (hashable, hashable)
        The pairs of keys whose interaction the log-linear model has, beside the main effects of all.
    """

    k_map: float = 0.0
    k: int = 0
    highest_risk: float = 0.0
    reidentified: float = 0.0
    reidentified_range: tuple[float, float] = (0.0, 0.0)
    population_unique: float = 0.0
    population_unique_range: tuple[float, float] = (0.0, 0.0)
    model: str = "negative_binomial"
    interactions: tuple[tuple[Hashable, Hashable], ...] = ()
    is_whole: bool = field(default=True, repr=False)  # whether interactions were looked for
    _main: ClassVar = "risk"
    _worst_first: ClassVar = False
    _name: ClassVar = "k-map estimate"
    _told: ClassVar = (
        "k_map", "k", "highest_risk", "reidentified", "reidentified_range", "population_unique",
        "population_unique_range", "model",
    )  # fmt: skip

    @property
    def _note(self) -> str:  # type: ignore[override]
        return ESTIMATED if self.is_whole else f"{ESTIMATED}; {MAIN_EFFECTS}"

    def below(self, k: int) -> float:
        """Expected number of people in the table whose class has fewer than ``k`` in the population."""
        sample, size = self._of_present(self._found.values["sample"], self._found.values["expected"])
        model = self.model if len(self.on) == 1 else "poisson"
        return math.fsum(sample * probability_below(k, sample.astype(float), size, model))

    def _bars(self) -> Bars:
        sizes, people = self._of_present(self._found.values["population"], self._found.values["sample"])
        return of_sizes(f"{self._title()}: sizes of classes", "estimated size", sizes, people)
