"""Bins of a column as groups of a derived one, so that every engine counts records, or their weights, in them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pandas as pd

from pdrisk._core.statistics import Count
from pdrisk._model.asked_groups import Groups
from pdrisk._model.expressions.nodes import Column
from pdrisk._model.groups.keys import MOST
from pdrisk._model.margins import ALL
from pdrisk._model.query import Query
from pdrisk._model.rowwise import Within
from pdrisk._model.rowwise.builder import text_of
from pdrisk._pandas.requests.assigned import assigned
from pdrisk._pandas.requests.judged_requests import judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.surveys.deviations import summed
from pdrisk.engines.base import Engine
from pdrisk.errors import ParameterError


def counted_in_bins(
    frame: pd.DataFrame,
    column: Hashable,
    reached: str,
    by: Groups | None,
    keys: list[Any],
    clamps: bool,
    request: Request,
    eps: Fraction,
) -> tuple[Query, Engine[Any]]:
    """The question of how many records, or how much weight, each group has in each bin.

    A bin is a group by a derived column, the number of edges that are reached: so every engine can count in bins.

    ``reached``: expression of the derived column, which is the last of the groups.
    ``keys``: of all groups.
    ``clamps``: whether values beyond the edges count in the first and the last bin.
    """
    name = f"{column} bin"
    while name in frame.columns:
        name += "_"
    where = request.where
    within = where if isinstance(where, Within) else Within(where, None, (), frame)
    header, derived = assigned(frame, name, reached, within.derived, (), ())
    bounds, weights = None, request.weighing
    if weights is not None and isinstance(request.bounds, Mapping) and weights in request.bounds:
        bounds = {weights: request.bounds[weights]}
    asked = replace(
        request,
        bounds=bounds,
        by=[*(() if by is None else by.columns), name],
        keys=keys,
        where=within._replace(derived=derived),
    )
    # A record without a value is in no bin, so that the weights of those in bins are those of all with a value.
    lines = judged_lines(header, column if weights is None else None, (Count(),), asked)
    query, engine = judged_query(header, lines, asked, eps)
    return replace(query, bins_clamp=clamps), engine


def reached(column: Hashable, edges: Sequence[float | str]) -> str:
    """Expression for how many edges a value reaches."""
    return summed([f"1 * ({text_of(Column(column))} >= {edge!r})" for edge in edges])


def keys_in_bins(method: str, by: Groups | None, bins: range) -> list[Any]:
    """Keys of all groups and bins, group by group."""
    if by is None:
        return list(bins)
    if by.keys is None:
        raise ParameterError(
            f"{method} needs the public list of its groups, whose sum is the whole: pass keys=[...], or declare them."
        )
    if any(ALL in key for key in by.keys):
        raise ParameterError(
            f"rows of all groups together are labelled {ALL!r}, which is a key: name that key otherwise."
        )
    if len(by.keys) * len(bins) > MOST:
        raise ParameterError(
            f"{len(by.keys):,} groups of {len(bins):,} bins are more than {MOST:,} numbers: list fewer of either."
        )
    return [(*key, number) for key, number in product(by.keys, bins)]
