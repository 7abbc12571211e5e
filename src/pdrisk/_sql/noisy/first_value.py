"""The first value in an order, ORDER BY x LIMIT 1, as what it is: MIN or MAX."""

from __future__ import annotations

from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Constant, Operation, conjuncts
from pdrisk._sql.noisy.grouping_sets import folded
from pdrisk._sql.noisy.layers import Layered
from pdrisk._sql.noisy.noisy_from import aggregates
from pdrisk._sql.syntax.first_rows import meant
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.settings import Settings


def with_end(nested: Layered, settings: Settings) -> Layered:
    """Layers whose innermost SELECT asks people for the end of their values, where it names the first in their order.

    NULL would be the first of all where it is not last: then it stays as it is, unless WHERE leaves it out.
    """
    core = nested.core
    if nested.over or nested.is_put_together or len(core.items) != 1 or not core.order or not _takes_first(core):
        return nested
    (item, alias), first = core.items[0], core.order[0]
    if isinstance(item, Star) or first.item is None or folded(meant(first.item, core)) != folded(item):
        return nested
    how = settings.order(first.how)
    known = Operation("notna", (folded(item),))
    if not how.endswith("NULLS LAST") and known not in map(folded, conjuncts(core.where)):
        return nested
    end = Call("max" if how.startswith("DESC") else "min", (item,), ("",))
    return replace(
        nested, core=replace(core, items=((end, alias or heading(item)),), order=(), limit=None, distinct=False)
    )


def _takes_first(select: Select) -> bool:
    """Whether it shows the first of its rows and nothing else."""
    others = (select.sets, select.having, select.qualify, select.offset)
    return select.limit == Constant(1) and not aggregates(select) and all(other is None for other in others)
