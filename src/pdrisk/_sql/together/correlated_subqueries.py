"""Subqueries of noisy groups: by a key of the SELECT around them, in its IN and EXISTS, or sides of INTERSECT.

    SELECT d.name, (SELECT COUNT(*) FROM visits v WHERE v.cid = d.cid) FROM clubs d
    ──> clubs d LEFT JOIN (SELECT v.cid, COUNT(*) FROM visits v SEMI JOIN clubs USING (cid) GROUP BY v.cid)

One noisy value for each key is a table of noisy groups. Beside public rows it is joined; beside rows of people it is
answered first, and each row looks for its key among the values, which are public then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Noisy, Operation, below, conjuncts, rebuilt
from pdrisk._sql.noisy.noisy_from import aggregates, are_noisy, gives_noisy, leaves
from pdrisk._sql.noisy.noisy_scope import looks_around
from pdrisk._sql.relations.from_clause import Ctes, is_by_person, is_free, listed_in, public_table, seen_by
from pdrisk._sql.select.names_of_from import foreign_columns, label_of, tables_with
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.tree import Cte, From, Join, Membership, Nothing, Select, Star, Subquery, Table, nodes_of
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.scalars import Around, ScalarsRead
from pdrisk._sql.together.subqueries_by_key import (
    ByKey,
    all_of,
    beside,
    by_equalities,
    by_row,
    columns_in,
    equality_around,
    labelled,
    looked_up,
    replaced,
    semi_joined,
    value_of,
)
from pdrisk.errors import UnknownColumnError

COUNT: Final = Call("count_star", ())


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
            by_key = self._by_key(inner, select.source, ctes)
            if by_key is None:  # the judge of the subquery says what is wrong
                select = replaced(select, name, read.answered(inner))
            elif by_key.is_exact or self._are_noisy(select.source, ctes):
                select = beside(labelled(select, name, inner), name, by_key)
            else:
                select = replaced(labelled(select, name, inner), name, looked_up(by_key, inner, read))
        if is_free(select.source, self.sources, ctes):
            select = self._with_numbers_of_rows(select, ctes)
        select = self._with_joined_sets(select, ctes)
        members = [(member, self._condition(member, ctes, read)) for member in select.members]
        where = [*conjuncts(select.where), *(node for _, node in members if node is not None)]
        left = tuple(member for member, node in members if node is None)
        select = replace(select, where=all_of(where), members=left) if members else select
        return self._with_public(select, ctes) if left and self._are_noisy(select.source, ctes) else select

    def listed(self, select: Select) -> Sequence[Node] | None:
        """Values in the one column of a subquery that nobody is in; None of any other."""
        return listed_in(select, self.sources)

    def _with_public(self, select: Select, ctes: Ctes) -> Select:
        """A SELECT of noisy values with each IN of a public column as a SEMI JOIN; one of public rows stays."""
        is_noisy = any(isinstance(part, Noisy) for node in nodes_of(select) for part in below(node))
        if not is_noisy and is_free(select.source, self.sources, ctes):
            return select
        with_joins = select
        for at, member in enumerate(select.members):
            if (
                member.operand is None
                or member.negated
                or member.of_sets
                or not is_free(member.select, self.sources, ctes)
            ):
                return select
            name = f"(in {at})"
            equal = Operation("==", (member.operand, Column(name, (name,))))
            joined = Join(with_joins.source, Subquery(member.select, name, (name,)), "SEMI", equal, ())
            with_joins = replace(with_joins, source=joined, members=())
        return with_joins

    def _with_numbers_of_rows(self, select: Select, ctes: Ctes) -> Select:
        """A SELECT of public rows with noisy numbers of people's rows instead of IN and EXISTS of these."""
        around, left = select.source, list[Membership]()
        for at, member in enumerate(select.members):
            numbered = self._numbered(member, around, ctes)
            by_key = None if numbered is None else self._by_key(numbered, around, ctes)
            if by_key is None or by_key.is_exact:
                left.append(member)
                continue
            name = f"(rows {at})"
            met: list[Node] = [Operation("<=" if member.negated else ">", (Column(name), Constant(0)))]
            met += [] if member.operand is None else [Operation("notna", (member.operand,))]
            select = replace(select, where=all_of([*conjuncts(select.where), *met]))
            select = beside(select, name, replace(by_key, absent=Constant(True)))  # as IN of a list of groups has it
        return replace(select, members=tuple(left))

    def _with_joined_sets(self, select: Select, ctes: Ctes) -> Select:
        """INTERSECT and EXCEPT of groups as joins of their noisy tables; of ids of people and of public rows as is."""
        first, members = select.source, select.members
        if not members or not all(member.of_sets for member in members) or not isinstance(first, Subquery):
            return select
        parts = [self._groups(side, ctes) for side in (first.select, *(member.select for member in members))]
        (label,) = first.columns
        source: From = Nothing()
        for at, part in enumerate(parts):
            if part is None:
                return select
            table = Subquery(part, f"(set {at})", (label,))
            equal = Operation("is not distinct from", (Column(label, ("(set 0)",)), Column(label, (f"(set {at})",))))
            how = "ANTI" if at and members[at - 1].negated else "SEMI"
            source = Join(source, table, how, equal, ()) if at else table
        return replace(select, source=source, members=(), distinct=False)

    def _groups(self, select: Select, ctes: Ctes) -> Select | None:
        """Noisy groups of a side of INTERSECT, of which different rows count; None of ids of people, and of numbers."""
        rows, seen, item = replace(select, distinct=False), seen_by(select, ctes), select.items[0][0]
        if is_free(select, self.sources, ctes):
            return replace(select, distinct=True)
        if isinstance(item, Star) or any(isinstance(part, Call) and part.name in AGGREGATES for part in below(item)):
            return None
        if aggregates(rows):
            return select if gives_noisy(select, seen, self._is_by_person, self._is_public) else None
        groups = replace(rows, groups=(item,), having=Operation(">", (COUNT, Constant(0))))
        return None if self._is_by_person(groups, seen) else groups

    def _numbered(self, member: Membership, around: From, ctes: Ctes) -> Select | None:
        """The number of people's rows that IN or EXISTS looks for; None of other subqueries."""
        inner = member.select
        numbered = Select(((COUNT, ""),), inner.source, inner.where, ctes=inner.ctes, members=inner.members)
        is_plain = replace(inner, items=numbered.items, distinct=False) == numbered and not aggregates(inner)
        is_one = member.operand is None or (len(inner.items) == 1 and not isinstance(inner.items[0][0], Star))
        if not (is_plain and is_one) or member.of_sets or is_free(inner, self.sources, ctes):
            return None
        if self._are_noisy(inner.source, seen_by(inner, ctes)):
            return None
        for column in foreign_columns(inner, seen_by(inner, ctes), self.sources):
            if not tables_with(column, around, ctes, self.sources):
                raise UnknownColumnError(f"unknown column {column.path!r} in the subquery of IN or EXISTS.")
        equal = [] if member.operand is None else [self._equality(member.operand, inner, around, ctes)]
        return replace(numbered, where=all_of([*conjuncts(inner.where), *equal]))

    def _equality(self, operand: Node, inner: Select, around: From, ctes: Ctes) -> Node:
        """What IN compares, with columns of the SELECT around by the names of their tables."""

        def named(node: Node) -> Node | None:
            if not isinstance(node, Column) or node.qualifiers:
                return node if isinstance(node, Column) else None
            leaf, *others = tables_with(node, around, ctes, self.sources) or [Nothing()]
            label = label_of(leaf) if isinstance(leaf, Table | Subquery) and not others else ""
            return Column(node.name, (label,)) if label else node

        return Operation("==", (value_of(inner), rebuilt(operand, named)))

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
        condition = Operation("in", (member.operand, *keys)) if keys else Noisy(False)
        return Operation("not", (condition,)) if member.negated else condition

    def _by_key(self, inner: Select, around: From, ctes: Ctes) -> ByKey | None:
        """A scalar subquery that equalities with columns of the SELECT around it decide; None of any other."""
        seen = seen_by(inner, ctes)
        foreign = set(foreign_columns(inner, seen, self.sources))
        plain = Select(inner.items[:1], inner.source, inner.where, ctes=inner.ctes, members=inner.members)
        if isinstance(inner.items[0][0], Star) or inner != plain or not aggregates(inner) or not foreign:
            return None
        tables = {column: tables_with(column, around, ctes, self.sources) for column in foreign}
        nodes = conjuncts(inner.where)
        asked = [node for node in nodes if columns_in(node) & foreign]
        bare = replace(inner, where=all_of([node for node in nodes if node not in asked]))
        is_elsewhere = foreign_columns(bare, seen, self.sources)  # than in WHERE
        if is_elsewhere or any(map(looks_around, asked)) or any(len(table) != 1 for table in tables.values()):
            return None
        pairs = [equality_around(node, foreign) for node in asked]
        is_free_itself = is_free(inner, self.sources, ctes)
        is_noisy = self._are_noisy(inner.source, seen)  # all of which are known: a key without any has no row
        by_key = by_equalities(bare, pairs)
        leaf, *others = [table for (table,) in tables.values()]
        is_whole = leaf not in _left_out(around)  # else it is NULL beside rows that fit none of its own
        has_rows = is_whole and all(other == leaf for other in others) and is_free(leaf, self.sources, ctes)
        if by_key is None or (has_rows and not all(isinstance(key, Column) for key in by_key.keys)):
            if not has_rows:
                return None
            by_key = replace(by_row(bare, leaf, asked, list(tables), pairs), is_exact=is_free_itself)
            return replace(by_key, absent=Constant(True)) if is_noisy else by_key
        if is_free_itself:
            return replace(by_key, is_exact=True)
        if self._is_by_person(by_key.select, seen):
            return None if self._are_noisy(around, ctes) else replace(by_key, is_exact=True)
        if is_noisy:
            by_key = replace(by_key, absent=Constant(True))
        for leaf in leaves(around):
            places = [at for at, key in enumerate(by_key.keys) if all(tables[one] == [leaf] for one in columns_in(key))]
            is_whole = leaf not in _left_out(around) or all(isinstance(by_key.keys[at], Column) for at in places)
            if places and is_whole and is_free(leaf, self.sources, ctes):
                by_key = replace(by_key, select=semi_joined(by_key, leaf, places))
        return by_key


def _left_out(item: From) -> list[From]:
    """Tables and subqueries of which a join keeps no row beside some rows of others."""
    if not isinstance(item, Join):
        return []
    sides = [
        *([item.left] if item.how in ("RIGHT", "FULL") else []),
        *([item.right] if item.how in ("LEFT", "FULL") else []),
    ]
    return [*(leave for side in sides for leave in leaves(side)), *_left_out(item.left), *_left_out(item.right)]
