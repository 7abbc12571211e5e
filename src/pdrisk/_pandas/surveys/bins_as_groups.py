"""Bins of a column as groups of a derived one, so that every engine counts records, or their weights, in them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd

from pdrisk._core.statistics import Count
from pdrisk._model.asked_groups import Groups
from pdrisk._model.nodes import Column
from pdrisk._model.query import Query
from pdrisk._model.rowwise import Within
from pdrisk._model.rowwise.builder import text_of
from pdrisk._pandas.requests.assigned import assigned
from pdrisk._pandas.requests.judged_requests import judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.surveys.deviations import summed
from pdrisk.engines.base import Engine

__all__ = ["counted_in_bins", "reached"]


def counted_in_bins(
    frame: pd.DataFrame,
    column: Hashable,
    reached: str,
    by: Groups | None,
    keys: list[Any],
    request: Request,
    eps: Fraction,
) -> tuple[Query, Engine[Any]]:
    """The question of how many records, or how much weight, each group has in each bin.

    A bin is a group by a derived column, the number of edges that are reached: so every engine can count in bins.

    Parameters
    ----------
    frame, column
    reached : str
        Expression of the derived column, which is the last of the groups.
    by : Groups or None
    keys : list
        Of all groups.
    request : Request
    eps : Fraction
    """
    name = f"{column} bin"
    while name in frame.columns:
        name += "_"
    where = request.where
    within = where if isinstance(where, Within) else Within(where, None, (), frame)
    header, derived = assigned(frame, name, reached, within.derived, (), ())
    own, weights = None, request.weighing
    if weights is not None and isinstance(request.bounds, Mapping) and weights in request.bounds:
        own = {weights: request.bounds[weights]}
    asked = replace(
        request,
        bounds=own,
        by=[*(() if by is None else by.columns), name],
        keys=keys,
        where=within._replace(derived=derived),
    )
    # A record without a value is in no bin, so that the weights of those in bins are those of all with a value.
    lines = judged_lines(header, column if weights is None else None, (Count(),), asked)
    query, engine = judged_query(header, lines, asked, eps)
    return replace(query, in_bins=True), engine


def reached(column: Hashable, edges: Sequence[float]) -> str:
    """Expression for how many edges a value reaches."""
    return summed([f"1 * ({text_of(Column(column))} >= {edge!r})" for edge in edges])
