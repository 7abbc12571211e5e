"""Listed keys that are whole numbers near one another: groups between the ends are read, and put in order here.

To carry a hundred thousand keys to an engine, join them and sort the answer takes as long as half a scan of ten million
rows. That there are few other groups between the ends follows from the keys alone, whatever groups occur.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._model.asked_groups import WholeKeys
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.summary_plan import Binned, Counted, Part, Summarised, SummaryPlan

FEWEST = 256  # keys: fewer are joined in no time, and a key that is computed would be computed twice
WIDEST = 2  # whole numbers between the ends for each key
FARTHEST = 2**53  # from 0, of keys: groups of some columns come as DOUBLE


def by_span(plan: SummaryPlan, key_lists: list[list[Any]] | None, dialect: Dialect) -> SummaryPlan:
    """The plan with the ends of its listed keys, if one pass over the groups between them reads all.

    Which groups of a person count is decided among the listed ones, so plans of people need them all.
    """
    if not dialect.reads_spans or key_lists is None or len(key_lists) != 1 or plan.keys is None or plan.people:
        return plan
    (keys,) = key_lists
    if len(keys) < FEWEST or not isinstance(keys, WholeKeys):
        return plan
    low, high = int(keys.array.min()), int(keys.array.max())
    is_dense = high - low < WIDEST * len(keys) and low > -FARTHEST and high < FARTHEST
    return replace(plan, between=(low, high)) if is_dense and all(map(_is_of_one_pass, plan.parts)) else plan


def _is_of_one_pass(part: Part) -> bool:
    """Whether a part is read by aggregates of one number for each group."""
    if not isinstance(part, Summarised) or isinstance(part, Binned):
        return isinstance(part, Counted)
    needs = part.needs
    return not (needs.squares or needs.windows or needs.seconds or needs.ranks or needs.size_sums or part.points)


def at_keys(columns: dict[str, Any], between: tuple[int, int], keys: list[Any]) -> dict[str, Any]:
    """Columns of the groups found, with a line for each key in their order; masked where none was found."""
    assert isinstance(keys, WholeKeys)  # as `by_span` asks for
    low, high = between
    groups = np.ma.getdata(columns["g0"]).astype(np.int64)
    line = np.full(high - low + 1, -1)
    line[groups - low] = np.arange(len(groups))
    lines = line[keys.array - low]
    return {name: _taken(np.ma.asarray(column), lines) for name, column in columns.items()}


def _taken(column: Any, lines: NDArray[np.int64]) -> Any:
    if not len(column):
        return np.ma.array(np.zeros(len(lines), dtype=column.dtype), mask=True)
    taken, is_missing = np.ma.getdata(column)[lines], lines < 0  # of -1 the last one, which is masked then
    if column.mask is not np.ma.nomask:
        is_missing |= column.mask[lines]
    return np.ma.array(taken, mask=is_missing) if is_missing.any() else taken
