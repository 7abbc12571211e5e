"""Parts of WHERE that AND joins, in whatever brackets: IN and EXISTS of subqueries apart from other conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pdrisk._model.expressions.nodes import Node, Operation
from pdrisk._sql.syntax.tree import Membership

Item = TypeVar("Item")


def members_apart(
    item: Item,
    parts: Callable[[Item], Sequence[Item]],
    membership: Callable[[Item], Membership | None],
    node: Callable[[Item], Node],
) -> tuple[Node | None, tuple[Membership, ...]]:
    """Condition of WHERE without its memberships, and these.

    ``item``: the condition, as a parser has it.
    ``parts``: what an AND joins, or what stands in brackets; nothing of any other item.
    ``membership, node``: an item as a membership, None if it is none, or as a condition.
    """
    conjuncts, waiting = list[Item](), [item]
    while waiting:
        part = waiting.pop()
        inner = parts(part)
        waiting += reversed(inner)
        conjuncts += () if inner else (part,)
    members = [membership(conjunct) for conjunct in conjuncts]
    if not any(members):
        return node(item), ()
    rest = [node(conjunct) for conjunct, member in zip(conjuncts, members, strict=True) if member is None]
    kept = Operation("and", tuple(rest)) if len(rest) > 1 else rest[0] if rest else None
    return kept, tuple(member for member in members if member is not None)
