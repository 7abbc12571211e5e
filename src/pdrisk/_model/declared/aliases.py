"""Type aliases of options: what ``eps``, ``bounds``, ``where``, ``by`` and ``keys`` may be, for help and type checkers.

They say what is usual. Whatever else a caller passes is judged when the query is made.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas.api.typing import Expression
    from polars import Expr
else:
    Expression = getattr(pd.api.typing, "Expression", str)  # pandas 2 has none
    Expr = str  # Polars may not be there

#: Privacy loss in nats, read exactly as it is written: 0.1 is a tenth.
Eps = float | Fraction | Decimal
_End = Eps | date | np.datetime64 | str
_Pair = tuple[_End, _End] | Sequence[_End] | NDArray[Any]
#: A pair (lo, hi), of dates for a column of dates, or one for each column; "column" takes the data's own range, which
#: is not differential privacy.
Bounds = _Pair | Mapping[Any, _Pair | Literal["column"]] | Literal["column"]
#: A filter: query string, ``pd.col`` or Polars expression, mask, or a callable that makes a mask of the frame.
Where = str | Expression | Expr | pd.Series | NDArray[np.bool_] | Sequence[bool] | Callable[[pd.DataFrame], Any]
#: The column of the groups, or a list of columns.
By = Hashable | list[Any]
_Listed = Sequence[Hashable] | pd.Index | pd.Series | NDArray[Any]
#: The public list of group keys, one for each column, or a frame of keys; "categories" says that those of a
#: categorical are public, "observed" that the keys which occur are; "private" shows those of many people, for a share
#: of eps and a delta.
Keys = (
    _Listed
    | Mapping[Any, _Listed | Literal["categories"]]
    | pd.DataFrame
    | Literal["observed", "categories", "private"]
)
