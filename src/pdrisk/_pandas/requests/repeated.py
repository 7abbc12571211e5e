"""Repeated requests: a plain question about one column that was judged before is not judged again.

A request is judged by names, dtypes, declarations and options. What is the same in all of these has the same query,
whatever frame it is about, so queries can be remembered, which hold nothing of any data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.releasing import Asker
from pdrisk._ledger import ledger_for
from pdrisk._model.expressions.columns import KINDS
from pdrisk._model.query import Query
from pdrisk._pandas.requests.declared import text_of
from pdrisk._pandas.requests.options import NOBODY_KNOWN, Request
from pdrisk.engines.base import Engine
from pdrisk.engines.numpy.frame import FrameEngine

KEPT = 256  # queries: of more, all are forgotten
PLAIN = frozenset((int, float, str, bool, type(None)))  # whose text says what they are
LARGEST = 2**63  # of more digits Python may refuse to make a text
LISTS = frozenset((tuple, list))
NUMBERS = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "float32", "float64")))
#: Options that are about the column asked for and nothing else of a frame.
OF_ONE_COLUMN = frozenset(
    (
        "bounds", "clip", "curator", "eps", "fresh", "interval", "max_noise95", "measured", "mechanism", "metric",
        "n_at_least", "prior", "risk", "step", "success",
    )
)  # fmt: skip
DEEPEST, LONGEST = 2, len(OF_ONE_COLUMN) + 1  # as in ("quantile", {"q": 0.9}) among all options

Judged = tuple[Query, Engine[Any], Asker]

_remembered: dict[Hashable, tuple[Query, Asker]] = {}


def judged_once(
    frame: pd.DataFrame,
    column: Hashable | None,
    spec: object,
    options: Mapping[str, Any],
    judge: Callable[[], tuple[Judged, Request]],
) -> Judged:
    """What ``judge`` makes of a statistic of a frame's column, or made of it before."""
    series = None
    declared, can_be_known = text_of(frame), options.keys() <= OF_ONE_COLUMN and is_plain((spec, *options.values()))
    if not can_be_known or declared is None or KINDS in frame.attrs or ledger_for(None) is not None:
        return judge()[0]
    if column is not None:
        if type(column) is not str or column not in frame.columns:
            return judge()[0]
        series = frame[column]
        if not isinstance(series, pd.Series) or series.dtype not in NUMBERS:  # what kind objects are, their values say
            return judge()[0]
    key = column, None if series is None else series.dtype, declared, repr(spec), repr(options)
    if (known := _remembered.get(key)) is not None:
        query, asker = known
        return query, FrameEngine(frame, frame, looked_up=series), asker
    judged, request = judge()
    if request.people is NOBODY_KNOWN and request.design is None:
        if len(_remembered) >= KEPT:
            _remembered.clear()
        _remembered[key] = judged[0], judged[2]
    return judged


def is_plain(given: Any, depth: int = 0, longest: int = LONGEST) -> bool:
    """Whether the text of a value tells it from all others: one of `PLAIN`, or a few of them."""
    kind = type(given)
    if kind in PLAIN:
        return kind is not int or abs(given) < LARGEST
    if depth > DEEPEST or (kind not in LISTS and kind is not dict) or len(given) > longest:
        return False
    parts = given if kind in LISTS else (*given, *given.values())
    kinds = set(map(type, parts))
    if not kinds <= PLAIN:
        return all(is_plain(part, depth + 1, longest) for part in parts)
    numbers = parts if kinds == {int} else [part for part in parts if type(part) is int]
    return not numbers or (min(numbers) > -LARGEST and max(numbers) < LARGEST)
