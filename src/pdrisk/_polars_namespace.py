"""Namespace ``dprisk`` of Polars frames: the statistics that a Dataset of the frame has, as Polars frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._core.foreign import own_errors_of
from pdrisk._pandas.requests.converted import converted
from pdrisk._pandas.suggestions import Suggestions
from pdrisk.dataset import Dataset
from pdrisk.engines.columnar.table import ColumnTable, column_table

if TYPE_CHECKING:
    import polars as pl


@own_errors_of
class PolarsAccessor(Suggestions):
    """Noisy statistics of a Polars frame as it is now, each with its interval and its risk; tables are Polars frames.

    Bounds, keys, people and a ledger are options of each call; `declare` gives a `Dataset` that keeps them.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._own = frame

    def declare(
        self,
        schema: Any = None,
        *,
        bounds: Mapping[Hashable, tuple[float, float]] | None = None,
        keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
        missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
        person: str | Sequence[str] | None = None,
        per_person: str | None = None,
        constant: str | Sequence[str] | None = None,
        unit_label: str | None = None,
    ) -> Dataset:
        """Dataset of the frame, with declared bounds, group keys, missing codes and ids of people.

        A Polars frame cannot hold declarations itself. So ask the Dataset from here on, not the frame.

        Parameters
        ----------
        schema, bounds, keys, missing, person, per_person, constant, unit_label : optional
            As for `Dataset`.

        Returns
        -------
        Dataset

        Raises
        ------
        ParameterError
            If a declaration does not fit the frame.
        """
        return Dataset(
            self._own,
            schema=schema,
            bounds=bounds,
            keys=keys,
            missing=missing,
            person=person,
            per_person=per_person,
            constant=constant,
            unit_label=unit_label,
            as_="polars",
        )

    @property
    def _table(self) -> ColumnTable:
        table = column_table(self._own)  # anew: Polars keeps this object with a frame, which may get other columns
        assert table is not None
        return table

    @property
    def _frame(self) -> pd.DataFrame:
        return self._table.header

    def _shown(self, answer: Any) -> Any:
        return converted(answer, "polars")


def register(polars: ModuleType) -> None:
    """Give Polars' frames the namespace."""
    for kind, named in (
        (polars.DataFrame, polars.api.register_dataframe_namespace),
        (polars.LazyFrame, polars.api.register_lazyframe_namespace),
    ):
        if not hasattr(kind, "dprisk"):
            named("dprisk")(PolarsAccessor)
