"""The accessors by a function, which type checkers understand: they do not see what pandas adds at run time."""

from __future__ import annotations

from typing import Any, overload

import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._pandas.accessor import FrameAccessor, SeriesAccessor
from pdrisk.errors import ColumnTypeError


@overload
def accessor(data: pd.DataFrame) -> FrameAccessor: ...
@overload
def accessor(data: pd.Series[Any]) -> SeriesAccessor: ...
@own_errors
def accessor(data: pd.DataFrame | pd.Series[Any]) -> FrameAccessor | SeriesAccessor:
    """Accessor of a pandas frame or column: the same as ``data.dprisk``, in a form that type checkers understand.

    Parameters
    ----------
    data : DataFrame or Series

    Returns
    -------
    FrameAccessor or SeriesAccessor
        With all statistics. mypy, pyright and editors know these and their options.

    Raises
    ------
    ColumnTypeError
        If it is neither.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 5000})
    >>> pdrisk.accessor(frame).count(eps=1, by="sex", keys=["f", "m"]).index.tolist()
    ['f', 'm']
    """
    if not isinstance(data, pd.DataFrame | pd.Series):
        kind = type(data).__name__
        raise ColumnTypeError(
            f"accessor takes a DataFrame or a Series of pandas, not of type {kind}: make a Dataset of it."
        )
    methods: Any = data.dprisk
    return methods
