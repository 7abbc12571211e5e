"""Description of an answer that several queries made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pandas as pd

from pdrisk._answer.answers.answer import Answer
from pdrisk._core.risks.gaussian_dp import root, squared
from pdrisk._model.declared.attributes import PUBLIC_ROWS
from pdrisk._sql.noisy.ends import has_ends
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.together.stacked import Statement


def of_nobody(answer: pd.DataFrame) -> pd.DataFrame:
    """An answer that is made of public tables alone, marked as such."""
    answer.attrs = {PUBLIC_ROWS: True}
    return answer


def merged(answer: pd.DataFrame, inner: Sequence[Answer], delta: Fraction, last: Answer | None = None) -> pd.DataFrame:
    """The answer with a description of all its parts.

    ``inner``: what was answered before.
    ``delta``: of all together.
    ``last``: of the last query, whose columns the answer has; without it they are the answer's own.
    """
    every = [*inner, *([] if last is None else [last])]
    numbers: list[int] = []
    for part in every:
        first = max(numbers, default=-1) + 1
        numbers += [first + at for at in part.releases or range(len(part.lines))]
    lines = [line for part in every for line in part.lines]
    names = unique([line.name for line in lines])
    where, most = list(dict.fromkeys(part.where for part in every)), max(every, key=lambda part: part.combinations)
    tables = next((part for part in every if part.tables), most)
    description = Answer(
        lines=tuple(replace(line, name=name) for line, name in zip(lines, names, strict=True)),
        eps=math.fsum(part.eps for part in every),
        mu=root(sum((squared(part.mu) for part in every), Fraction(0))),
        extra=math.fsum(part.extra for part in every),
        least_group=next((part.least_group for part in every if part.least_group is not None), None),
        where=where[0] if len(where) == 1 else "; ".join("all records" if text is None else text for text in where),
        where_trusted=any(part.where_trusted for part in every),
        bounds_from_data=any(part.bounds_from_data for part in every),
        keys_from=_keys_from(every),
        without_missing=tuple(dict.fromkeys(name for part in every for name in part.without_missing)),
        combinations=most.combinations,
        combined=most.combined,
        tables=tables.tables,
        shares=tables.shares,
        whole=tables.whole,
        unit=every[0].unit,
        has_person=every[0].has_person,
        per_person=every[0].per_person,
        rows=max(part.rows for part in every),
        groups_each=max(part.groups_each for part in every),
        overall=any(part.overall for part in every),
        leaves_out=tuple(dict.fromkeys(limit for part in every for limit in part.leaves_out)),
        grouped=any(part.grouped for part in every),
        headings=tuple(answer.columns) if last is None else last.headings,
        groups=() if last is None else last.groups,
        sums=last is None or any(part.sums for part in every),
        curators=() if last is None else last.curators,
        releases=tuple(numbers) if len(set(numbers)) < len(numbers) else (),
        delta=float(delta),
        eps_groups=math.fsum(part.eps_groups for part in every),
        # Settings of the groups in each list.
        sizes_shown=tuple(map(max, zip(*(part.sizes_shown for part in every if part.sizes_shown), strict=True))),
    )
    return description.attach(answer)


def _keys_from(every: Sequence[Answer]) -> str | None:
    """Source of the groups, if it is the data or a column's categories anywhere."""
    sources = [part.keys_from for part in every if part.keys_from is not None]
    return next((word for word in ("data", "categories") if word in sources), next(iter(sources), None))


def is_made_of_several(last: Statement, risk_columns: object) -> bool:
    """Whether a row of the answer combines several noisy ones, and has no interval of its own that was asked for."""
    if not isinstance(last, Judged):
        return True
    return last.merges and not (risk_columns and has_ends(last.layers[-1]))
