"""Order statistics of engines that list the records at many ranks by one sort.

    first pass (n) ──> spans of ranks ──> the records at these ranks, a list for each span
    groups: ranks and n by windows ──> a line a group, with the records in the spans, and n and the ends, if all is that

A span may be wider than what is asked for, where an engine rounds: its first rank comes back with its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdrisk._core.summary import Ranks
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.order_lists import Lists, Spanned
from pdrisk.engines.sql.summary.summary_plan import Summarised, pivots

SPARE = 1  # rank around a window: rounding may move floor(n q) by one


@dataclass(frozen=True, slots=True)
class _Span:
    """Ranks that are read together, as SQL; there are no records below 1 and above n."""

    first: str
    last: str
    q: float | None  # the quantile whose window it holds


def _spans(dialect: Dialect, part: Summarised, n: str) -> Iterator[_Span]:
    """Spans of a part, for a group of n records."""
    around = {rank.q: rank for rank in part.ranks if rank.q is not None}
    for q in pivots(part):
        if q in around:
            yield _span(around[q], n)
        else:
            start = f"CAST({dialect.call('FLOOR', dialect.infix(n, '*', dialect.number(q)))} AS BIGINT)"
            yield _Span(f"{start} - {1 + SPARE}", f"{start} + {3 + SPARE}", q)  # see `window_start`
    yield from (_span(rank, n) for rank in part.ranks if rank.q is None)
    if part.needs.seconds:
        yield _Span("2", "2", None)
        yield _Span(f"{n} - 1", f"{n} - 1", None)


def _span(ranks: Ranks, n: str) -> _Span:
    """Span of `Ranks`; quotients round towards zero, which loses no rank from 1 to n."""
    middle = f"({n} * {ranks.a} + {ranks.offset})"  # of BIGINTs: a is 1,000 at most
    first = "1" if ranks.before is None else f"{middle} / {ranks.b} - {ranks.before}"
    last = n if ranks.after is None else f"({middle} + {ranks.b - 1}) / {ranks.b} + {ranks.after}"
    return _Span(first, last, ranks.q)


def records_at_ranks(dialect: Dialect, i: int, part: Summarised, n: str) -> list[tuple[str, str]]:
    """For the k-th span of part i, the first of its ranks, ``from_i_k``, and the list of its records, ``ranked_i_k``.

    ``dialect``: that is `by_rank`.
    ``part``: Whose records are ``p0``, ``p1``, ... by the number of the part.
    ``n``: the number of records of the group.
    """
    columns = []
    for k, span in enumerate(_spans(dialect, part, n)):
        first, last = dialect.call("GREATEST", span.first, "1"), dialect.call("LEAST", span.last, n)
        columns += [(f"from_{i}_{k}", first), (f"ranked_{i}_{k}", dialect.at_ranks(f"p{i}", n, first, last))]
    return columns


def grouped_at_ranks(
    dialect: Dialect, i: int, part: Summarised, rows: str, groups: Sequence[str], *, alone: bool
) -> str | None:
    """The SELECT of the same for each group, in any order; None where there is no span.

    With ``alone``, nobody else tells the numbers of records, ``n_i``, and their ends.
    """
    call, keys, by = dialect.call, "".join(f"{name}, " for name in groups), ", ".join(groups)
    spans = [f"place BETWEEN {span.first} AND {span.last}" for span in _spans(dialect, part, "n")]
    if not spans:
        return None
    columns, n = [], call("MIN", "n")
    for k, (within, span) in enumerate(zip(spans, _spans(dialect, part, n), strict=True)):
        columns.append(f"{call('GREATEST', span.first, '1')} AS from_{i}_{k}")
        columns.append(f"{call('ARRAY_AGG', 'p')} FILTER (WHERE {within}) AS ranked_{i}_{k}")
    if alone:
        lowest, highest = call("MIN", "p"), call("MIN", dialect.negative("p"))
        columns += [f"{n} AS n_{i}", f"{lowest} AS lowest_{i}", f"{highest} AS lowest_of_negatives_{i}"]
        spans += ["place = 1", "place = n"]
    whole = f"(PARTITION BY {by} ORDER BY p{i} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    placed = (
        f"(SELECT {keys}p{i} AS p, ROW_NUMBER() OVER whole AS place, COUNT(*) OVER whole AS n FROM {rows} "
        f"WHERE p{i} IS NOT NULL WINDOW whole AS {whole}) AS placed"
    )
    return f"SELECT {keys}{', '.join(columns)} FROM {placed} WHERE {' OR '.join(spans)} GROUP BY {by}"


def spanned(columns: dict[str, Any], i: int, part: Summarised, dialect: Dialect) -> list[Spanned]:
    """Records from the columns of `records_at_ranks`; with second records, those of the last two spans."""
    made = []
    for k, span in enumerate(_spans(dialect, part, "n")):
        first = np.ma.filled(np.ma.asarray(columns[f"from_{i}_{k}"], dtype=np.int64), 1)
        made.append(Spanned(span.q, first, Lists.of(columns[f"ranked_{i}_{k}"]).ascending()))
    return made
