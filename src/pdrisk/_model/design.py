"""`Design`: how a sample was drawn, as far as its sampling error depends on it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from pdrisk._core.foreign import as_integer, own_errors_of
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.plain import float_of
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_UNITS: Final = 10**12
MOST_STRATA: Final = 1000
FEWEST_BY_STRATUM: Final = 10  # units, with fewer of which in a stratum noise would drown what strata explain


@own_errors_of
@dataclass(frozen=True, repr=False)
class Design:
    """Survey design: weights, strata, clusters, and the public sizes that sampling errors are made of.

    All numbers here are public facts about how the sample was drawn, and on your word: nothing is compared with the
    data, which would tell about them. Records with an infinite value or weight, or without a stratum or sampling unit,
    are left out of sampling errors: such values count as the ends of their bounds in the answer alone.

    Parameters
    ----------
    weights : column, optional
        The default of ``weights=`` in all statistics that take weights; in `Dataset.sql` of ``dp_weighted_mean(y)``.
    strata : column, optional
        Of which units were drawn independently.
    psu : column, optional
        The primary sampling units, such as villages; by default the persons.
    psus : int or dict from stratum to int, optional
        How many primary sampling units are in the sample: in each stratum, those without any answer included.
    fpc : int or dict from stratum to int, optional
        How many there are in the population, where that is not many times as many.
    persons : int, optional
        Of how many records one primary sampling unit consists at the most.
    deff : float, optional
        The design effect of means: how many times the variance of a simple random sample theirs is. With it and ``n``
        sampling errors of means cost no eps.
    n : int, optional
        The number of persons in the sample, for ``deff``.

    Raises
    ------
    ParameterError, ColumnTypeError
        If the numbers contradict each other; the text says what holds.

    Examples
    --------
    >>> import pdrisk
    >>> pdrisk.Design("w", strata="region", psus={"north": 400, "south": 600})
    Design(weights='w', strata='region', psus={'north': 400, 'south': 600})
    """

    weights: Hashable | None = None
    strata: Hashable | None = None
    psu: Hashable | None = None
    psus: Any = None
    fpc: Any = None
    persons: int | None = None
    deff: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        for name in ("weights", "strata", "psu"):
            if (given := getattr(self, name)) is not None and not isinstance(given, str | int):
                raise ColumnTypeError(f"{name} is the name of a column, not of type {type(given).__name__}.")
        for name in ("psus", "fpc"):
            object.__setattr__(self, name, self._sizes(name, getattr(self, name)))
        for name in ("persons", "n"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _number(name, given, 1))
        if self.psu is not None and self.persons is None:
            raise ParameterError(
                f"psu={self.psu!r} needs persons=, the largest number of records of one: noise is scaled by what one "
                "person changes of it."
            )
        self._check_fpc()
        if self.deff is not None:
            deff = float_of("deff", self.deff)
            if not 0 < deff < math.inf:
                raise ParameterError(f"deff is above 0 and finite, but is {deff:g}: 1 is that of a random sample.")
            if self.n is None:
                raise ParameterError("deff= needs n=, the public number of persons in the sample.")
            object.__setattr__(self, "deff", deff)

    def __repr__(self) -> str:
        fields = [(name, getattr(self, name)) for name in self.__dataclass_fields__]
        return f"Design({', '.join(f'{name}={value!r}' for name, value in fields if value is not None)})"

    @property
    def by_stratum(self) -> bool:
        """Whether there are units enough in each stratum to look at each of them."""
        return self.psus is not None and min(self.units) >= FEWEST_BY_STRATUM

    @property
    def units(self) -> list[int]:
        """How many units are in each stratum, or in all; none where nobody said."""
        if self.psus is None:
            return []
        return list(self.psus.values()) if isinstance(self.psus, Mapping) else [self.psus]

    @property
    def populations(self) -> list[int | None]:
        """How many units the strata have in the population; None where nobody said."""
        if self.fpc is None:
            return [None] * len(self.units)
        return [self.fpc[stratum] for stratum in self.psus] if isinstance(self.fpc, Mapping) else [self.fpc]

    def _sizes(self, name: str, given: object) -> Any:
        """Numbers of units by stratum, or of all."""
        if given is None:
            return None
        if self.strata is None:
            if isinstance(given, Mapping):
                raise ParameterError(
                    f"{name}= by stratum needs strata=, the column of the strata; else it is a number."
                )
            return _number(name, given, 2)
        if not isinstance(given, Mapping) or not given:
            raise ParameterError(f"with strata={self.strata!r}, {name} is a dict from each stratum to a number.")
        if len(given) > MOST_STRATA:
            raise ParameterError(f"{name} lists more than {MOST_STRATA:,} strata: merge those that are alike.")
        return {key: _number(f"{name} of stratum {key!r}", value, 2) for key, value in given.items()}

    def _check_fpc(self) -> None:
        if self.fpc is None:
            return
        if self.psus is None:
            raise ParameterError("fpc= needs psus=, the numbers of units in the sample.")
        if isinstance(self.psus, Mapping) and self.fpc.keys() != self.psus.keys():
            raise ParameterError("psus= and fpc= name the same strata, each with a number.")
        for sampled, all_ in zip(self.units, self.populations, strict=True):
            if all_ is not None and all_ < sampled:
                raise ParameterError(
                    f"fpc= says {all_:,} units in the population, fewer than the {sampled:,} of the sample."
                )


def checked_design(design: object, frame: Callable[[], pd.DataFrame]) -> Design | None:
    """The design of a Dataset, if its columns are there."""
    if design is None:
        return None
    if not isinstance(design, Design):
        raise ColumnTypeError(f"design must be a pdrisk.Design, not of type {type(design).__name__}.")
    for column in (design.weights, design.strata, design.psu):
        if column is not None:
            check_column(frame(), column)
    return design


def _number(name: str, given: object, least: int) -> int:
    value = as_integer(given)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ColumnTypeError(f"{name} is a whole number, not of type {type(given).__name__}.")
    number = int(value)
    if not least <= number <= MOST_UNITS:
        raise ParameterError(
            f"{name} is {int(value):,}, and must be at least {least}"
            + (
                ": of one unit nothing tells how units differ; merge its stratum with one like it."
                if least == 2
                else "."
            )
        )
    return int(value)
