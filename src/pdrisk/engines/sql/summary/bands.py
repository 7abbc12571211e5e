"""Bands in SQL: the interval in which a sample locates an order statistic, and the records in it.

A pivot is found by one thread, which holds all values; a band by counting, and only what lies in it is listed. The
counts are exact, so that a band that missed is noticed: then all is read again, from pivots. The sample decides the
speed only.
"""

from __future__ import annotations

from collections.abc import Iterator

from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.summary_plan import Summarised, SummaryPlan, pivots, sides

SAMPLE = 2**14  # records, of which a band is REACH standard deviations of its rank wide to each side: 4 %
REACH = 5
MOST_BANDS = 10


def can_be_banded(plan: SummaryPlan, dialect: Dialect) -> bool:
    """Whether a sample can spare an engine the search for pivots, which it cannot do in parallel for one group."""
    asked = sum(len(pivots(part)) for part in plan.parts if isinstance(part, Summarised))
    return dialect.by_pivot and not (plan.groups or plan.people) and 0 < asked <= MOST_BANDS


def within_band(dialect: Dialect, i: int, k: int) -> Iterator[tuple[str, str]]:
    """Records in the k-th band of part i, and the number below it; records at its ends are only counted."""
    p, lower, upper = f"p{i}", f"lower_{i}_{k}", f"upper_{i}_{k}"
    yield f"less_{i}_{k}", dialect.counted(f"{p} < {lower}")
    yield f"at_lower_{i}_{k}", dialect.counted(f"{p} = {lower}")
    yield f"at_upper_{i}_{k}", dialect.counted(f"{p} = {upper} AND {upper} > {lower}")
    yield f"inside_{i}_{k}", f"{dialect.call('LIST', p)} FILTER (WHERE {p} > {lower} AND {p} < {upper})"


def bands(plan: SummaryPlan, dialect: Dialect, rows: str) -> str:
    """SELECT of the ends of all bands: places in a sorted sample of rows, and infinity beyond it."""
    call, infix = dialect.call, dialect.infix
    parts = [(i, part) for i, part in enumerate(plan.parts) if isinstance(part, Summarised) and pivots(part)]
    columns = [f"p{i}" for i, _ in parts]
    sample = f"SELECT {', '.join(columns)} FROM {rows} USING SAMPLE reservoir({SAMPLE} ROWS)"
    order = "'ASC'", "'NULLS LAST'"  # whatever the settings say
    ordered = [f"{call('LIST_SORT', call('LIST', p), *order)} AS s{p}, {call('COUNT', p)} AS m{p}" for p in columns]
    share = infix(f"CAST({call('COUNT', '*')} AS DOUBLE)", "/", f"(SELECT {call('COUNT', '*')} FROM {rows})")
    ends = []
    for i, part in parts:
        m = f"CAST(mp{i} AS DOUBLE)"
        for k, q in enumerate(pivots(part)):
            middle = infix(m, "*", dialect.number(q))
            deviation = call("SQRT", infix(middle, "*", dialect.number(1 - q)))
            for name, sign, beyond, width in zip(
                ("lower", "upper"), ("-", "+"), ("'-infinity'", "'infinity'"), sides(part, q), strict=True
            ):
                wanted = infix("share", "*", dialect.number(width + 4.0))
                reach = infix(
                    infix(deviation, "*", dialect.number(float(REACH))), "+", infix(wanted, "+", dialect.number(4.0))
                )
                place = call("FLOOR", infix(middle, sign, reach))
                value = call("ARRAY_EXTRACT", f"sp{i}", f"CAST({place} AS BIGINT)")
                in_sample = f"CASE WHEN {place} BETWEEN 1 AND {m} THEN {value} ELSE CAST({beyond} AS DOUBLE) END"
                ends.append(f"{in_sample} AS {name}_{i}_{k}")
    return f"SELECT {', '.join(ends)} FROM (SELECT {', '.join(ordered)}, {share} AS share FROM ({sample}) AS sampled)"
