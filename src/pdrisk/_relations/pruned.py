"""Pruned plans: without the columns that nothing reads, so that they are no part of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pdrisk._model.expressions.nodes import Column, Node, below
from pdrisk._relations.plan import Joined, Numbered, OneRow, PerPerson, Relation, Scan, Selection, United

TIED = ("rank", "dense_rank")  # windows that give equal rows one number, so that no other column decides


def pruned(relation: Relation, read: Sequence[Node]) -> Relation:
    """The relation with the columns that these expressions read, and those of its own conditions."""
    return _pruned(relation, columns_named(read))


def columns_read(relation: Relation, read: Sequence[Node]) -> set[tuple[str, str]]:
    """Stored columns that are read, with the tables that they are of, whatever they are called on the way."""
    return set(_stored(relation, columns_named(read)))


def columns_named(nodes: Iterable[Node]) -> set[str]:
    """Columns in expressions."""
    return {str(part.name) for node in nodes for part in below(node) if isinstance(part, Column)}


def _pruned(relation: Relation, names: set[str]) -> Relation:
    match relation:
        case Scan():
            return replace(relation, codes=tuple(code for code in relation.codes if code[0] in names))
        case OneRow():
            return relation
        case Selection():
            kept = tuple((name, node) for name, node in relation.columns if name in names)
            return replace(relation, of=_pruned(relation.of, _below(relation, names)), columns=kept)
        case Joined():
            needed = _below(relation, names)
            return replace(relation, left=_pruned(relation.left, needed), right=_pruned(relation.right, needed))
        case United():
            return replace(relation, parts=tuple(_part(part, names) for part in relation.parts))
        case PerPerson():
            made = tuple((name, aggregate) for name, aggregate in relation.made if name in names)
            return replace(relation, of=_pruned(relation.of, _below(relation, names)), made=made)
        case Numbered():
            made_here = tuple((name, window) for name, window in relation.made if name in names)
            if not made_here:
                return _pruned(relation.of, names)
            needed = _below(replace(relation, made=made_here), names)
            return replace(relation, of=_pruned(relation.of, needed), made=made_here)


def _part(part: Selection, names: set[str]) -> Selection:
    selection = _pruned(part, names)
    assert isinstance(selection, Selection)
    return selection


def _below(relation: Relation, names: set[str]) -> set[str]:
    """Columns of the relation below that are read, if these are read of it."""
    match relation:
        case Selection():
            nodes = [node for name, node in relation.columns if name in names]
            return columns_named([*nodes, *relation.where]) | set(relation.known)
        case Joined():
            return names | columns_named(relation.on) | {name for pair in relation.same for name in pair}
        case PerPerson():
            made = [aggregate for name, aggregate in relation.made if name in names]
            parts = [part for aggregate in made for part in (aggregate.argument, aggregate.where) if part is not None]
            return columns_named([*(node for _, node in relation.by), *parts])
        case Numbered():
            windows = [window for name, window in relation.made if name in names]
            nodes = [node for window in windows for node in (*window.arguments, *(key for key, _ in window.order))]
            needed = names | columns_named(nodes) | {label for window in windows for label in window.partition}
            if any(window.function not in TIED for window in windows):  # ties are broken by every column
                needed |= _columns_of(relation.of)
            return needed
    return names


def _columns_of(relation: Relation) -> set[str]:
    """Columns of a relation that was selected."""
    match relation:
        case Selection():
            return {name for name, _ in relation.columns}
        case Numbered():
            return _columns_of(relation.of) | {name for name, _ in relation.made}
        case PerPerson():
            return {name for name, _ in (*relation.by, *relation.made)}
        case Joined(left, right, how):
            return _columns_of(left) | (set() if how in ("SEMI", "ANTI") else _columns_of(right))
        case United(parts):
            return _columns_of(parts[0])
    return set()


def _stored(relation: Relation, names: set[str]) -> Iterable[tuple[str, str]]:
    match relation:
        case Scan():
            return ((relation.table, name) for name in names)
        case OneRow():
            return ()
        case Joined():
            needed = _below(relation, names)
            left, right = needed & _columns_of(relation.left), needed & _columns_of(relation.right)
            return (*_stored(relation.left, left), *_stored(relation.right, right))
        case United():
            return (pair for part in relation.parts for pair in _stored(part, names))
    return _stored(relation.of, _below(relation, names))
