"""Subqueries of noisy groups: by a key of the SELECT around them, or in its IN.

    SELECT d.name, (SELECT COUNT(*) FROM visits v WHERE v.cid = d.cid) FROM clubs d
    ──> clubs d LEFT JOIN (SELECT v.cid, COUNT(*) FROM visits v SEMI JOIN clubs USING (cid) GROUP BY v.cid)

One noisy value for each key is a table of noisy groups. Beside public rows it is joined; beside rows of people it is
answered first, and each row looks for its key among the values, which are public then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

from pdrisk._model.nodes import (
    Call,
    Case,
    Column,
    Constant,
    LookedUp,
    Node,
    Noisy,
    Operation,
    below,
    conjuncts,
    rebuilt,
)
from pdrisk._sql.noisy.noisy_from import aggregates, are_noisy, gives_noisy, leaves
from pdrisk._sql.noisy.noisy_scope import looks_around
from pdrisk._sql.relations.from_clause import Ctes, is_by_person, is_free, listed_in, public_table, seen_by
from pdrisk._sql.relations.rows_of_nobody import is_missing
from pdrisk._sql.select.names_of_from import foreign_columns, label_of, tables_with
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading, unique
from pdrisk._sql.syntax.tree import (
    Cte,
    From,
    Join,
    Membership,
    Nothing,
    Select,
    Star,
    Subquery,
    Table,
    nodes_of,
    with_nodes,
)
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.scalars import Around, ScalarsRead

__all__ = ["SettledSubqueries"]

COUNT: Final = Call("count_star", ())
AROUND: Final = "(around)"  # alias of public rows of the SELECT around, beside what a subquery reads


@dataclass(frozen=True, slots=True)
class _ByKey:
    """Scalar subquery as a SELECT with GROUP BY.

    Attributes
    ----------
    select : Select
        Its keys, then its value.
    keys : tuple of Node
        What they are equal to in the SELECT around it.
    of_nobody : Node
        Its value where no row fits.
    absent : Node
        What holds around it where no row can fit, so that it has no row.
    is_exact : bool
        Whether nothing in it is noisy, and it has rows only where something fits.
    equal : str
        How keys are compared.
    """

    select: Select
    keys: tuple[Node, ...]
    of_nobody: Node
    absent: Node
    is_exact: bool = False
    equal: str = "=="


@dataclass(frozen=True, slots=True)
class SettledSubqueries:
    """Subqueries that need the SELECT around them, as `pdrisk._sql.text.scalars.Subqueries` describes it."""

    sources: Sources

    def missing(self, select: Select, around: Around) -> str:
        """First column of a SELECT that its own FROM does not have; "" if it has all."""
        foreign = foreign_columns(select, seen_by(select, self._seen(around)), self.sources)
        return foreign[0].path if foreign else ""

    def settled(self, select: Select, read: ScalarsRead) -> Select:
        """A SELECT whose subqueries of noisy groups are joined to it, or answered first."""
        ctes = self._seen(read.around)
        parts = [part for node in nodes_of(select) for part in below(node) if isinstance(part, Column)]
        for name in dict.fromkeys(part.name for part in parts if part.name in read.open and not part.qualifiers):
            inner, _ = read.open.pop(name)
            found = self._by_key(inner, select.source, ctes)
            if found is None:  # the judge of the subquery says what is wrong
                select = _replaced(select, name, read.answered(inner))
            elif found.is_exact or self._are_noisy(select.source, ctes):
                select = _beside(_labelled(select, name, inner), name, found)
            else:
                select = _replaced(_labelled(select, name, inner), name, _looked_up(found, inner, read))
        if is_free(select.source, self.sources, ctes):
            select = self._with_numbers_of_rows(select, ctes)
        members = [(each, self._condition(each, ctes, read)) for each in select.members]
        where = [*conjuncts(select.where), *(node for _, node in members if node is not None)]
        left = tuple(each for each, node in members if node is None)
        select = replace(select, where=_all_of(where), members=left) if members else select
        return self._with_public(select, ctes) if left and self._are_noisy(select.source, ctes) else select

    def listed(self, select: Select) -> Sequence[Node] | None:
        """Values in the one column of a subquery that nobody is in; None of any other."""
        return listed_in(select, self.sources)

    def _with_public(self, select: Select, ctes: Ctes) -> Select:
        """A SELECT of noisy values with each IN of a public column as a SEMI JOIN; one of public rows stays."""
        is_noisy = any(isinstance(part, Noisy) for node in nodes_of(select) for part in below(node))
        if not is_noisy and is_free(select.source, self.sources, ctes):
            return select
        found = select
        for at, each in enumerate(select.members):
            if each.operand is None or each.negated or each.of_sets or not is_free(each.select, self.sources, ctes):
                return select
            name = f"(in {at})"
            equal = Operation("==", (each.operand, Column(name, (name,))))
            joined = Join(found.source, Subquery(each.select, name, (name,)), "SEMI", equal, ())
            found = replace(found, source=joined, members=())
        return found

    def _with_numbers_of_rows(self, select: Select, ctes: Ctes) -> Select:
        """A SELECT of public rows with noisy numbers of people's rows instead of IN and EXISTS of these."""
        around, left = select.source, list[Membership]()
        for at, each in enumerate(select.members):
            inner = each.select
            plain = Select(inner.items, inner.source, inner.where, ctes=inner.ctes, members=inner.members)
            is_plain = replace(inner, distinct=False) == plain and not aggregates(inner) and not each.of_sets
            equal = self._equality(each, around, ctes)
            reads_people = not is_free(inner, self.sources, ctes) and not self._are_noisy(
                inner.source, seen_by(inner, ctes)
            )
            numbered = replace(plain, items=((COUNT, ""),), where=_all_of([*conjuncts(inner.where), *equal]))
            found = self._by_key(numbered, around, ctes) if is_plain and reads_people else None
            if found is None or found.is_exact:
                left.append(each)
                continue
            name = f"(rows {at})"
            met: list[Node] = [Operation("<=" if each.negated else ">", (Column(name), Constant(0)))]
            met += [] if each.operand is None else [Operation("notna", (each.operand,))]
            select = replace(select, where=_all_of([*conjuncts(select.where), *met]))
            select = _beside(select, name, found)
        return replace(select, members=tuple(left))

    def _equality(self, member: Membership, around: From, ctes: Ctes) -> list[Node]:
        """What IN compares, with columns of the SELECT around by the names of their tables; nothing of EXISTS."""
        if member.operand is None:
            return []

        def named(node: Node) -> Node | None:
            if not isinstance(node, Column) or node.qualifiers:
                return node if isinstance(node, Column) else None
            leaf, *others = tables_with(node, around, ctes, self.sources) or [Nothing()]
            label = label_of(leaf) if isinstance(leaf, Table | Subquery) and not others else ""
            return Column(node.name, (label,)) if label else node

        return [Operation("==", (_value_of(member.select), rebuilt(member.operand, named)))]

    def _seen(self, around: Around) -> Ctes:
        """CTEs that a SELECT sees."""

        def inside(known: Ctes, ctes: Mapping[str, Cte]) -> Ctes:
            return seen_by(Select((), Nothing(), ctes=ctes), known)

        return reduce(inside, [self.sources.ctes, *around], {})

    def _is_by_person(self, select: Select, ctes: Ctes) -> bool:
        return is_by_person(select, self.sources, ctes)

    def _is_public(self, table: Table) -> bool:
        return public_table(table, self.sources) is not None

    def _are_noisy(self, item: From, ctes: Ctes) -> bool:
        return are_noisy(item, ctes, self._is_by_person, self._is_public)

    def _condition(self, member: Membership, ctes: Ctes, read: ScalarsRead) -> Node | None:
        """IN of noisy groups as a list of what they are; None of any other."""
        inner = member.select
        seen = seen_by(inner, ctes)
        if member.operand is None or member.of_sets or is_free(inner, self.sources, ctes):
            return None
        if not gives_noisy(inner, seen, self._is_by_person, self._is_public):
            return None
        rows = [key for (key,) in read.rows(inner, 1)]
        keys = [key for key in rows if key.value is not None]
        if member.negated and len(keys) < len(rows):  # what is unknown may be equal to anything
            return Noisy(False)
        found = Operation("in", (member.operand, *keys)) if keys else Noisy(False)
        return Operation("not", (found,)) if member.negated else found

    def _by_key(self, inner: Select, around: From, ctes: Ctes) -> _ByKey | None:
        """A scalar subquery that equalities with columns of the SELECT around it decide; None of any other."""
        own = seen_by(inner, ctes)
        foreign = set(foreign_columns(inner, own, self.sources))
        plain = Select(inner.items[:1], inner.source, inner.where, ctes=inner.ctes, members=inner.members)
        if isinstance(inner.items[0][0], Star) or inner != plain or not aggregates(inner) or not foreign:
            return None
        tables = {each: tables_with(each, around, ctes, self.sources) for each in foreign}
        nodes = conjuncts(inner.where)
        asked = [node for node in nodes if _columns(node) & foreign]
        bare = replace(inner, where=_all_of([node for node in nodes if node not in asked]))
        is_elsewhere = foreign_columns(bare, own, self.sources)  # than in WHERE
        if is_elsewhere or any(map(looks_around, asked)) or any(len(each) != 1 for each in tables.values()):
            return None
        pairs = [_pair(node, foreign) for node in asked]
        is_free_itself = is_free(inner, self.sources, ctes)
        is_noisy = self._are_noisy(inner.source, own)  # all of which are known: a key without any has no row
        found = _by_equalities(bare, pairs)
        leaf, *others = [each for (each,) in tables.values()]
        is_whole = leaf not in _left_out(around)  # else it is NULL beside rows that fit none of its own
        has_rows = is_whole and all(each == leaf for each in others) and is_free(leaf, self.sources, ctes)
        if found is None or (has_rows and not all(isinstance(key, Column) for key in found.keys)):
            if not has_rows:
                return None
            found = replace(_by_row(bare, leaf, asked, list(tables), pairs), is_exact=is_free_itself)
            return replace(found, absent=Constant(True)) if is_noisy else found
        if is_free_itself:
            return replace(found, is_exact=True)
        if self._is_by_person(found.select, own):
            return None if self._are_noisy(around, ctes) else replace(found, is_exact=True)
        if is_noisy:
            found = replace(found, absent=Constant(True))
        for leaf in leaves(around):
            places = [at for at, key in enumerate(found.keys) if all(tables[one] == [leaf] for one in _columns(key))]
            is_whole = leaf not in _left_out(around) or all(isinstance(found.keys[at], Column) for at in places)
            if places and is_whole and is_free(leaf, self.sources, ctes):
                found = replace(found, select=_semi_joined(found, leaf, places))
        return found


def _left_out(item: From) -> list[From]:
    """Tables and subqueries of which a join keeps no row beside some rows of others."""
    if not isinstance(item, Join):
        return []
    sides = [
        *([item.left] if item.how in ("RIGHT", "FULL") else []),
        *([item.right] if item.how in ("LEFT", "FULL") else []),
    ]
    return [*(each for side in sides for each in leaves(side)), *_left_out(item.left), *_left_out(item.right)]


def _by_equalities(inner: Select, pairs: Sequence[tuple[Node, Node] | None]) -> _ByKey | None:
    """A subquery by what equalities compare; None if one is none, or the same is compared twice."""
    known = [pair for pair in pairs if pair is not None]
    keys = tuple(own for own, _ in known)
    if len(set(keys)) < len(pairs):
        return None
    select = replace(inner, items=(*((key, "") for key in keys), *inner.items), groups=keys)
    others = tuple(other for _, other in known)
    return _ByKey(
        select, others, _of_nobody(_value_of(inner)), _any_of([Operation("isna", (each,)) for each in others])
    )


def _by_row(
    inner: Select,
    leaf: From,
    conditions: Sequence[Node],
    columns: Sequence[Column],
    pairs: Sequence[tuple[Node, Node] | None],
) -> _ByKey:
    """A subquery that other conditions decide, by the different rows of the public table around it."""
    names = _named_apart(columns)
    keys = {column: Column(name, (AROUND,)) for column, name in zip(columns, names, strict=True)}
    rows = Select(tuple((column, key.name) for column, key in keys.items()), leaf, distinct=True)

    def moved(node: Node) -> Node | None:
        return keys.get(node) if isinstance(node, Column) else None

    condition, own = _all_of([rebuilt(node, moved) for node in conditions]), tuple(keys.values())
    source = Join(inner.source, Subquery(rows, AROUND, ()), "INNER", condition, ())
    select = replace(inner, items=(*((key, "") for key in own), *inner.items), source=source, groups=own)
    absent: list[Node] = [Operation("isna", (pair[1],)) for pair in pairs if pair is not None]
    of_around = [node for node in conditions if _columns(node) <= set(columns)]
    absent += [Case(((node, Constant(False)),), Constant(True)) for node in of_around]
    return _ByKey(select, tuple(columns), _of_nobody(_value_of(inner)), _any_of(absent), equal="is not distinct from")


def _pair(node: Node, foreign: set[Column]) -> tuple[Node, Node] | None:
    """The sides of an equality of something of the subquery with something around it."""
    if not isinstance(node, Operation) or node.symbol != "==":
        return None
    for own, other in (node.parts, node.parts[::-1]):
        if _columns(own) and not _columns(own) & foreign and _columns(other) and _columns(other) <= foreign:
            return own, other
    return None


def _columns(node: Node) -> set[Column]:
    return {part for part in below(node) if isinstance(part, Column)}


def _semi_joined(found: _ByKey, leaf: From, places: Sequence[int]) -> Select:
    """The subquery over the rows of its FROM that fit a row of a public table around it, which so lists the keys."""
    names = dict(zip(places, _named_apart([found.keys[at] for at in places]), strict=True))
    rows = Select(tuple((found.keys[at], name) for at, name in names.items()), leaf)
    own = found.select.groups or ()
    equal = _all_of([Operation("==", (own[at], Column(name, (AROUND,)))) for at, name in names.items()])
    return replace(found.select, source=Join(found.select.source, Subquery(rows, AROUND, ()), "SEMI", equal, ()))


def _named_apart(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Names that no column of the subquery has, for what stands around it."""
    return unique([f"({heading(node)})" for node in nodes])


def _value_of(inner: Select) -> Node:
    """The one item of a scalar subquery."""
    ((item, _),) = inner.items
    assert not isinstance(item, Star), "what is not read as one value"
    return item


def _of_nobody(item: Node) -> Node:
    """Value of aggregates over no row: a count is 0, all others are missing."""

    def changed(node: Node) -> Node | None:
        if isinstance(node, Call) and node.name in AGGREGATES:
            return Constant(0 if "count" in node.name else None)
        return None

    found = rebuilt(item, changed)
    return Constant(None) if is_missing(found, ()) else found


def _all_of(nodes: Sequence[Node]) -> Node | None:
    return Operation("and", tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else None


def _any_of(nodes: Sequence[Node]) -> Node:
    return Operation("or", tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else Constant(False)


def _replaced(select: Select, name: str, value: Node) -> Select:
    """The SELECT with a value for the column that stands for a subquery."""

    def changed(node: Node) -> Node | None:
        return value if isinstance(node, Column) and node.name == name and not node.qualifiers else None

    return with_nodes(select, partial(rebuilt, change=changed))


def _labelled(select: Select, name: str, inner: Select) -> Select:
    """The SELECT with a heading where the subquery stands alone."""
    label = inner.items[0][1] or heading(_value_of(inner))
    items = ((each, label if each == Column(name) and not said else said) for each, said in select.items)
    return replace(select, items=tuple(items))


def _beside(select: Select, name: str, found: _ByKey) -> Select:
    """The SELECT over its rows and the values of their keys."""
    names = [f"{name} key {at}" for at in range(len(found.keys))]
    equal = [Operation(found.equal, (key, Column(own, (name,)))) for key, own in zip(found.keys, names, strict=True)]
    source = Join(select.source, Subquery(found.select, name, (*names, name)), "LEFT", _all_of(equal), ())
    items = [
        (replace(each, excluded=(*each.excluded, *names, name)), said)
        if isinstance(each, Star) and not each.table
        else (each, said)
        for each, said in select.items
    ]
    select = replace(select, source=source, items=tuple(items))
    if found.of_nobody == Constant(None):
        return select
    nobody = found.of_nobody
    if not found.is_exact:  # else a key that keys= does not list would have no people
        nobody = Case(((found.absent, nobody),), Constant(None))
    return _replaced(select, name, Operation("coalesce", (Column(name), nobody)))


def _looked_up(found: _ByKey, inner: Select, read: ScalarsRead) -> Node:
    """The value of a row's key among those that were answered first."""
    branches: list[tuple[Node, Node]] = []
    rows = read.rows(found.select, len(found.keys) + 1)
    for *keys, value in rows:
        if all(key.value is not None for key in keys):
            equal = _all_of([Operation("==", pair) for pair in zip(found.keys, keys, strict=True)])
            assert equal is not None
            branches.append((equal, value))
    if found.of_nobody != Constant(None):
        branches.append((found.absent, found.of_nobody))
    if not branches:
        return Constant(None)
    by, number = ", ".join(map(heading, found.keys)), rows[0][0].place + 1
    return LookedUp(tuple(branches), Constant(None), f"({heading(_value_of(inner))} by {by}, subquery {number})")
