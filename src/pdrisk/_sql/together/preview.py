"""Preview of a query, what EXPLAIN shows: the price and the noise of each answer, from public facts alone."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pandas as pd

from pdrisk._core.days import moment
from pdrisk._core.statistics import Count, Sum, WholeSum
from pdrisk._core.universe import Universe
from pdrisk._ledger import ledger_for
from pdrisk._ledger.rules.policy import Policy
from pdrisk._mechanisms import ClippedSums
from pdrisk._model.expressions.kinds import NUMBER, TIME, kind_within
from pdrisk._model.query import Query
from pdrisk._model.unit import ONE_RECORD
from pdrisk._pandas.plans.plan_tables import MOST_RECORDS, PlannedTable
from pdrisk._printing import printable
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.together.stacked import Statement, queries
from pdrisk.errors import ColumnTypeError, ParameterError

GAP: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
EXPLAIN: Final = re.compile(rf"{GAP}*EXPLAIN(?={GAP}|\()", re.IGNORECASE | re.DOTALL)
OPTIONS: Final = re.compile(rf"{GAP}*(?:ANALY[ZS]E\b|\()", re.IGNORECASE | re.DOTALL)
ANY_SIZE: Final = 1000  # of records, where their number has no effect on the noise
PARAMETERS: Final = "values of parameters"
KEYS_OBSERVED: Final = "keys are public as they occur"
KEYS_OF_CATEGORIES: Final = "keys are the categories of the column"
ONE_EACH: Final = "one record per person"


def without_explain(query: object) -> tuple[object, bool]:
    """The query without a leading EXPLAIN, and whether it had one."""
    match = EXPLAIN.match(query) if isinstance(query, str) else None
    if match is None or not isinstance(query, str):
        return query, False
    rest = query[match.end() :]
    if OPTIONS.match(rest):
        raise ParameterError(
            "EXPLAIN ANALYZE and EXPLAIN with options are refused: a preview runs nothing and reads nobody. Write "
            "EXPLAIN SELECT ..., or pass explain=True."
        )
    return rest, True


def checked_size(n: object, *, explains: bool) -> int | None:
    """The number of records that noise is told for; None where it is not given."""
    if n is None:
        return None
    if not explains:
        raise ParameterError(
            "n= is the number of records in a preview: write EXPLAIN SELECT ..., or pass explain=True."
        )
    if not isinstance(n, int) or isinstance(n, bool):
        raise ColumnTypeError(f"n must be a whole number of records, not of type {type(n).__name__}.")
    if not 1 <= n <= MOST_RECORDS:
        raise ParameterError(f"n must be from 1 to {MOST_RECORDS:,}, but is {n}.")
    return n


def previewed(statements: Sequence[Statement], ledger: object, size: int | None) -> pd.DataFrame:
    """Preview of judged statements: a row for each noisy number of a group, with what it would cost.

    A ledger records that they were previewed, and its owner's rules hold. Nothing is paid, and no engine is called.

    ``statements``: those of the scalar subqueries come first; to the others their values are not known.
    ``size``: number of records that each answer is about.
    """
    asked = [(query, at > 0) for at, statement in enumerate(statements) for query in queries(statement)]
    payer = ledger_for(ledger)
    policy = Policy() if payer is None else payer.preview([question.query for question, _ in asked])
    rows, before = [], 0
    for number, (judged, is_open) in enumerate(asked, 1):
        rows += [
            _row(judged, at, number, before, policy, size, is_open=is_open) for at in range(len(judged.query.lines))
        ]
        before += len(judged.query.leads)
    return pd.DataFrame(rows)


def _row(
    judged: Judged, at: int, number: int, before: int, policy: Policy, size: int | None, *, is_open: bool
) -> dict[str, Any]:
    """One row of a preview, about a line of a query that follows so many releases.

    Of an open one, bounds may follow from the value of a scalar subquery, for which another stands here.
    """
    query = judged.query
    line, unit, release = query.lines[at], query.unit, query.releases[at]
    share = query.shares[release]
    mechanism = query.mechanism(at)
    universe, selection = mechanism.universe, query.selection
    bounded = line.statistic.bounded
    clamps = bounded and not is_open
    return {
        "name": judged.names[at],
        "question": printable(line.name),
        "where": None if is_open else query.condition,
        "query": number,
        "release": before + release + 1,
        "unit": unit.name,
        "eps": float(mechanism.eps_of(query.weight(at)) + (0 if selection is None else selection.eps)),
        "query_eps": float(policy.cost(query)),
        "delta": float(query.delta),
        "mechanism": mechanism.name,
        "n": math.nan if size is None else float(size),
        "noise95": math.nan if bounded and is_open else _noise95(query, at, share, size),
        "rounded_to": math.nan if (base := policy.base_of(line.statistic)) is None else float(base),
        "clamped_low": _end(universe.lo, universe) if clamps else math.nan,
        "clamped_high": _end(universe.hi, universe) if clamps else math.nan,
        "per_person": unit.per_person,
        "rows": float(unit.rows) if unit.is_of_people else math.nan,
        "groups": float(unit.groups) if unit.is_of_people and not unit.overall else math.nan,
        "truncated": ", ".join(limit for limit in unit.leaves_out if limit != "waves"),
        "trusted": "; ".join(_trusted(query)),
    }


def _end(end: float, universe: Universe) -> object:
    """An end of bounds: a number, or the date or time that stands for it."""
    kind = kind_within(universe)
    return end if kind == NUMBER else pd.Timestamp(moment(end, times=kind == TIME))


def _noise95(query: Query, at: int, share: Fraction, size: int | None) -> float:
    """Expected reach of the 95 % noise interval; NaN where the data or an unknown number of records decide it.

    The numbers are those of `pdrisk.plan`: of values that are spread evenly between the bounds.
    """
    line = query.lines[at]
    if query.margins is not None or line.other is not None:  # measured several times, or of two columns
        return math.nan
    if line.mechanism == ClippedSums.name:  # as far as the points reach that it finds in the data
        return math.nan
    is_added = query.mechanism(at).scale is not None or type(line.statistic) in (Count, Sum, WholeSum)
    if size is None and not is_added:
        return math.nan
    # The plan makes up its records in one column, which the question calls as it likes.
    lines = tuple(
        replace(asked_line, column="x", condition=None, values=None, indicator=None) for asked_line in query.lines
    )
    alike = replace(query, lines=lines, where=None, groups=None, missing={}, derived=())
    return PlannedTable("", alike, (None,) * len(lines), size or ANY_SIZE, 1).noise(at, share)


def _trusted(query: Query) -> list[str]:
    """What the answer takes on the word of whoever asks or owns the data."""
    trusted = [PARAMETERS] if query.trusted else []
    keys_from = None if query.groups is None else query.groups.keys_from
    trusted += [KEYS_OBSERVED] if keys_from == "data" else []
    trusted += [KEYS_OF_CATEGORIES] if keys_from == "categories" else []
    return trusted + ([ONE_EACH] if query.unit.name == ONE_RECORD else [])
