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


def merged(answer: pd.DataFrame, inner: Sequence[Answer], delta: Fraction, own: Answer | None = None) -> pd.DataFrame:
    """The answer with a description of all its parts.

    ``inner``: what was answered before.
    ``delta``: of all together.
    ``own``: of the last query, whose columns the answer has; without it they are the answer's own.
    """
    every = [*inner, *([] if own is None else [own])]
    numbers: list[int] = []
    for each in every:
        first = max(numbers, default=-1) + 1
        numbers += [first + at for at in each.releases or range(len(each.lines))]
    lines = [line for each in every for line in each.lines]
    names = unique([line.name for line in lines])
    where, most = list(dict.fromkeys(each.where for each in every)), max(every, key=lambda each: each.combinations)
    tables = next((each for each in every if each.tables), most)
    said = Answer(
        lines=tuple(replace(line, name=name) for line, name in zip(lines, names, strict=True)),
        eps=math.fsum(each.eps for each in every),
        mu=root(sum((squared(each.mu) for each in every), Fraction(0))),
        extra=math.fsum(each.extra for each in every),
        least_group=next((each.least_group for each in every if each.least_group is not None), None),
        where=where[0] if len(where) == 1 else "; ".join("all records" if each is None else each for each in where),
        where_trusted=any(each.where_trusted for each in every),
        bounds_from_data=any(each.bounds_from_data for each in every),
        keys_from=_keys_from(every),
        without_missing=tuple(dict.fromkeys(name for each in every for name in each.without_missing)),
        combinations=most.combinations,
        combined=most.combined,
        tables=tables.tables,
        shares=tables.shares,
        whole=tables.whole,
        unit=every[0].unit,
        has_person=every[0].has_person,
        per_person=every[0].per_person,
        rows=max(each.rows for each in every),
        groups_each=max(each.groups_each for each in every),
        overall=any(each.overall for each in every),
        leaves_out=tuple(dict.fromkeys(limit for each in every for limit in each.leaves_out)),
        grouped=any(each.grouped for each in every),
        headings=tuple(answer.columns) if own is None else own.headings,
        groups=() if own is None else own.groups,
        sums=own is None or any(each.sums for each in every),
        curators=() if own is None else own.curators,
        releases=tuple(numbers) if len(set(numbers)) < len(numbers) else (),
        delta=float(delta),
        eps_groups=math.fsum(each.eps_groups for each in every),
        # Settings of the groups in each list.
        sizes_shown=tuple(map(max, zip(*(each.sizes_shown for each in every if each.sizes_shown), strict=True))),
    )
    return said.attach(answer)


def _keys_from(every: Sequence[Answer]) -> str | None:
    """Source of the groups, if it is the data or a column's categories anywhere."""
    said = [each.keys_from for each in every if each.keys_from is not None]
    return next((word for word in ("data", "categories") if word in said), next(iter(said), None))


def is_made_of_several(last: Statement, risk_columns: object) -> bool:
    """Whether a row of the answer combines several noisy ones, and has no interval of its own that was asked for."""
    if not isinstance(last, Judged):
        return True
    return last.merges and not (risk_columns and has_ends(last.layers[-1]))
