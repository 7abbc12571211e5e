"""Cross tables as a caller asks for them: their two columns, what is in the cells, and what shares are of."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk.errors import ColumnTypeError, ParameterError

AXES: Final = ("index", "columns")


def checked_axes(index: Any, columns: Any) -> list[Any]:
    """The names of both columns."""
    if isinstance(index, pd.Series) or isinstance(columns, pd.Series):
        names = [shown(axis.name if isinstance(axis, pd.Series) else axis) for axis in (index, columns)]
        raise ColumnTypeError(f"crosstab names columns of its own frame: write crosstab({', '.join(names)}, ...).")
    if isinstance(index, list) or isinstance(columns, list):
        raise ColumnTypeError(
            "crosstab has one column on each side: ask count(by=[...]) of all of them, and unstack its values."
        )
    return [index, columns]


def check_cells(values: object, aggfunc: object) -> None:
    """Refuse one option without the other, and several statistics."""
    if (values is None) != (aggfunc is None):
        raise ParameterError('values= and aggfunc= belong together, as in values="hours", aggfunc="mean".')
    if isinstance(aggfunc, list | dict):
        raise ColumnTypeError(
            'crosstab has one statistic in its cells: ask for several with agg({"hours": ["mean", "std"]}, by=[...]).'
        )


def shares_of(by: list[Any], normalize: object) -> Any:
    """What the shares are of, as `MarginsAsked` takes it: ``normalize`` as pandas has it."""
    if normalize is None or normalize is False:
        return None
    if normalize is True or (isinstance(normalize, str) and normalize == "all"):
        return "all"
    name = AXES[normalize] if isinstance(normalize, int) and normalize in (0, 1) else normalize
    if not isinstance(name, str) or name not in AXES:
        raise ParameterError(f'normalize can be "index", "columns" or "all", not {shown(normalize)}.')
    return [by[AXES.index(name)]]
