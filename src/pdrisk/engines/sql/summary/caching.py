"""Plans whose records are kept while they are read: which plans need this, and the plan of the kept records."""

from __future__ import annotations

from dataclasses import replace

from pdrisk.engines.sql.summary.person_rows import with_people
from pdrisk.engines.sql.summary.summary_plan import (
    Binned,
    Counted,
    Different,
    Part,
    Summarised,
    SummarisedPair,
    SummaryPlan,
)


def is_read_once(plan: SummaryPlan) -> bool:
    """Whether one pass over the records is enough, without a search by pivots."""
    listed = not plan.groups or plan.keys is not None
    return listed and plan.contributions is None and not any(map(_is_looked_at_again, plan.parts))


def _is_looked_at_again(part: Part) -> bool:
    if not isinstance(part, Summarised):
        return isinstance(part, Different)
    needs = part.needs
    of_order = needs.windows or needs.seconds or needs.squares
    return bool(of_order or part.points or needs.size_sums) or isinstance(part, Binned)


def is_drawn_at_once(plan: SummaryPlan) -> bool:
    """Whether one pass finds all that noise is added to, and a second one squares that only curators see."""
    if plan.people is not None or plan.drawn is None:
        return False
    parts = tuple(
        replace(part, needs=replace(part.needs, squares=drawn.squares)) if isinstance(part, Summarised) else part
        for part, drawn in zip(plan.parts, plan.drawn, strict=True)
    )
    return is_read_once(replace(plan, parts=parts))


def of_records(plan: SummaryPlan, source: str) -> SummaryPlan:
    """Plan with listed groups, or none, that reads the same from the result of `records_read`."""
    plan = with_people(plan)
    parts: list[Part] = []
    for i, part in enumerate(plan.parts):
        if isinstance(part, SummarisedPair):
            parts.append(replace(part, value=f"x{i}", other=f"y{i}"))
        elif isinstance(part, Summarised):
            parts.append(replace(part, value=f"x{i}", column=None))
        elif isinstance(part, Different):
            parts.append(replace(part, value=f"u{i}"))
        else:
            parts.append(Counted(None if part.condition is None else f"c{i}"))
    groups = tuple(f"g{at}" for at in range(len(plan.groups)))
    return SummaryPlan(
        source,
        (),
        (),
        groups,
        plan.keys,
        tuple(parts),
        lists_missing=plan.lists_missing,
        has_facts=plan.has_facts,
        contributions=plan.contributions,
    )
