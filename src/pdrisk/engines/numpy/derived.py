"""Derived columns of a frame, computed where something was paid for."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pdrisk._model.query import DerivedColumn
from pdrisk.engines.numpy.codes import without_codes

__all__ = ["with_derived"]


def with_derived(frame: pd.DataFrame, derived: Sequence[DerivedColumn]) -> pd.DataFrame:
    """The frame with these columns computed in the place of what stands there."""
    result = frame.copy(deep=False) if derived else frame
    for each in derived:
        source = with_derived(each.frame[list(each.columns)], each.earlier)
        result[each.name] = each.values(without_codes(source, each.missing))
    return result
