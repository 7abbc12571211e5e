"""Order statistics of engines that list the records at many ranks by one sort, each group for itself.

    first pass (n) ──> spans of ranks ──> the records at these ranks, a list for each span and group

A span may be wider than what is asked for, where an engine rounds: its first rank comes back with its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdrisk._core.summary import Ranks
from pdrisk.engines.sql.dialect import Dialect
from pdrisk.engines.sql.ordered import Lists, Spanned
from pdrisk.engines.sql.plan import Measured, pivots

__all__ = ["records_at_ranks", "spanned"]

SPARE = 1  # rank around a window: rounding may move floor(n q) by one


@dataclass(frozen=True, slots=True)
class _Span:
    """Ranks that are read together, as SQL; there are no records below 1 and above n.

    Attributes
    ----------
    first, last : str
    q : float or None
        The quantile whose window it holds.
    """

    first: str
    last: str
    q: float | None


def _spans(dialect: Dialect, part: Measured, n: str) -> Iterator[_Span]:
    """Spans of a part, for a group of n records."""
    around = {each.q: each for each in part.ranks if each.q is not None}
    for q in pivots(part):
        if q in around:
            yield _span(dialect, around[q], n)
        else:
            start = f"CAST({dialect.call('FLOOR', dialect.infix(n, '*', dialect.number(q)))} AS BIGINT)"
            yield _Span(f"{start} - {1 + SPARE}", f"{start} + {3 + SPARE}", q)  # see `window_start`
    yield from (_span(dialect, each, n) for each in part.ranks if each.q is None)
    if part.needs.seconds:
        yield _Span("2", "2", None)
        yield _Span(f"{n} - 1", f"{n} - 1", None)


def _span(dialect: Dialect, ranks: Ranks, n: str) -> _Span:
    """Span of `Ranks`; quotients round towards zero, which loses no rank from 1 to n."""
    middle = f"({dialect.wide(n)} * {ranks.a} + {ranks.offset})"
    low, high = (dialect.quotient(each, f"{ranks.b}") for each in (middle, f"({middle} + {ranks.b - 1})"))
    first = "1" if ranks.before is None else f"CAST({low} AS BIGINT) - {ranks.before}"
    last = n if ranks.after is None else f"CAST({high} AS BIGINT) + {ranks.after}"
    return _Span(first, last, ranks.q)


def records_at_ranks(dialect: Dialect, i: int, part: Measured, n: str) -> list[tuple[str, str]]:
    """For the k-th span of part i, the first of its ranks, ``from_i_k``, and the list of its records, ``ranked_i_k``.

    Parameters
    ----------
    dialect : Dialect
        That is `by_rank`.
    i : int
    part : Measured
        Whose records are ``p0``, ``p1``, ... by the number of the part.
    n : str
        The number of records of the group.
    """
    columns = []
    for k, span in enumerate(_spans(dialect, part, n)):
        first, last = dialect.call("GREATEST", span.first, "1"), dialect.call("LEAST", span.last, n)
        columns += [(f"from_{i}_{k}", first), (f"ranked_{i}_{k}", dialect.at_ranks(f"p{i}", n, first, last))]
    return columns


def spanned(found: dict[str, Any], i: int, part: Measured, dialect: Dialect) -> list[Spanned]:
    """Records from the columns of `records_at_ranks`; with second records, those of the last two spans."""
    made = []
    for k, span in enumerate(_spans(dialect, part, "n")):
        first = np.ma.filled(np.ma.asarray(found[f"from_{i}_{k}"], dtype=np.int64), 1)
        made.append(Spanned(span.q, first, Lists.of(found[f"ranked_{i}_{k}"])))
    return made
