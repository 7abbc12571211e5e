"""Relations made a source of their own, which joins, unions and groups then read like a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pdrisk._core.universe import Universe
from pdrisk._model.declared.declarations import Declaration, Declarations
from pdrisk._model.expressions.kinds import TEXT
from pdrisk._model.expressions.nodes import Column, Node
from pdrisk._relations.owners import Owners
from pdrisk._relations.plan import Selection
from pdrisk._relations.pruned import columns_named
from pdrisk._sql.relations.day_keys import within_bounds
from pdrisk._sql.relations.public_keys import listed_as
from pdrisk._sql.relations.row_scope import Condition, Member, Relation, Rows, column_of
from pdrisk._sql.relations.rows_of_nobody import adds_nothing, counted, left_after
from pdrisk._sql.syntax.pieces import Expression, kind_of_type, lowered, quoted
from pdrisk._sql.syntax.tree import Scalar
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.dry_run import types
from pdrisk.errors import ParameterError


def owners_of(relation: Relation, sources: Sources) -> Owners:
    """Owners of a relation's rows."""
    return relation.owners if relation.owners is not None else sources.owners(relation.source)


def unused(label: str, names: Sequence[str], taken: set[str]) -> str:
    """A name like the label that no other column has; it counts as taken from now on."""
    name, at = label, 1
    if lowered(name) in taken and names:
        name = f"{names[-1]}.{label}"
    while lowered(name) in taken:
        at += 1
        name = f"{label} {at}"
    taken.add(lowered(name))
    return name


@dataclass
class _Columns:
    """The columns that are written out, each once."""

    relation: Relation
    taken: set[str]
    stated: Mapping[str, Universe]
    names: dict[str, str] = field(default_factory=dict)  # by the SQL that they have in the relation
    read: dict[str, Expression] = field(default_factory=dict)  # by the new name
    given: dict[str, Universe] = field(default_factory=dict)

    def place(self, label: str, value: Expression, names: Sequence[str]) -> str:
        """The new name of a column."""
        sql = value.sql if value.column is None else quoted(value.column)
        if sql not in self.names:
            self.names[sql] = unused(label, names, self.taken)
            self.read[self.names[sql]] = value
            name = lowered(label)
            stated = self.relation.source.stated
            if name in self.stated:
                self.given[lowered(self.names[sql])] = self.stated[name]
            elif value.column is not None and lowered(value.column) in stated:
                self.given[lowered(self.names[sql])] = stated[lowered(value.column)]
        return self.names[sql]


def written_out(relation: Relation, sources: Sources, taken: set[str]) -> Relation:
    """The relation as a source of its own, whose columns have unique names.

    Rows of nobody known are left out. Every column that says who a person is is there, named by the query or not.

    ``taken``: names in lower case that are in use; those of the new columns come to them.
    """
    owners, old = owners_of(relation, sources), relation.source
    columns = _Columns(relation, taken, sources.stated)
    for label, value in relation.columns:
        columns.place(label, value, relation.names)
    for member in relation.members:
        for label, value in member.columns:
            columns.place(label, value, member.names)
    for name in (*owners.key, *owners.extra, *sorted(owners.constant | owners.numbers)):
        columns.place(name, Expression(quoted(name), kind_of_type(old.columns[name]), column=name), relation.names)
    made = replace(
        _source(columns, old, owners.key),
        made=Selection(
            old.relation,
            tuple((name, node_of(value)) for name, value in columns.read.items()),
            tuple(condition.node for condition in (*relation.owned, *relation.where)),
            owners.key,
        ),
    )

    limits = [limit for condition in (*relation.owned, *relation.where) for limit in condition.limits()]

    def listed(value: Expression) -> tuple[Scalar, ...] | None:
        """All that a column can be, as far as the text or the bounds of dates say it."""
        if value.values is not None or value.day is None or value.column is not None:
            return value.values
        rows = Rows(relation, {})
        return within_bounds(value.sql, value.day, limits, rows.range_of(value.day), rows)

    def moved(label: str, value: Expression) -> tuple[str, Expression]:
        name = columns.names[value.sql if value.column is None else quoted(value.column)]
        new = column_of(name, made.columns[name], made)
        shown = quoted(name) if value.column is not None else value.shown
        return label, replace(
            new, shown=shown, given=value.given, range=value.range, values=listed(value), of_any_row=value.of_any_row
        )

    def renamed(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(columns.names[quoted(name)] for name in names)

    absent = left_after([condition.node for condition in (*relation.owned, *relation.where)], relation.absent)
    lacking = {name for name, value in columns.read.items() if columns_named([node_of(value)]) & absent}
    if not all(adds_nothing(node_of(columns.read[name]), None, absent, is_sum=False) for name in lacking):
        raise counted("a subquery that makes values of missing ones")
    return Relation(
        made,
        tuple(moved(*column) for column in relation.columns),
        relation.names,
        members=tuple(
            Member(member.names, tuple(moved(*one) for one in member.columns)) for member in relation.members
        ),
        owners=replace(
            owners,
            key=renamed(owners.key),
            extra=renamed(owners.extra),
            constant=frozenset(renamed(owners.constant)),
            numbers=frozenset(renamed(owners.numbers)),
            links=tuple(
                link._replace(columns=renamed(link.columns))
                for link in owners.links
                if set(map(quoted, link.columns)) <= set(columns.names)
            ),
        ),
        inside=(
            *relation.inside,
            *(replace(condition, limits=lambda: iter(())) for condition in (*relation.owned, *relation.where)),
        ),
        listed={
            name: listing
            for name, value in columns.read.items()
            if (listing := listed_as(node_of(value), relation.listed)) is not None
        },
        absent=frozenset(lacking),
    )


def with_known(base: Relation, groupings: Iterable[Iterable[str | None]]) -> Relation:
    """A relation that was written out, without rows that columns of groups do not tell the person of, being missing.

    ``groupings`` are the columns of each GROUP BY or PARTITION BY of it, None for expressions.
    """
    assert base.owners is not None
    named_alone = ([name for name in grouping if name is not None] for grouping in groupings)
    columns = tuple(dict.fromkeys(name for names in named_alone for name in base.owners.unknown_among(names)))
    if not columns:
        return base
    named = tuple((name, Column(name)) for name in base.source.columns)
    source = replace(base.source, made=Selection(base.source.relation, named, (), columns))
    conditions = (Condition(f"({quoted(source.called.get(column, column))} IS NOT NULL)", False) for column in columns)
    return replace(base, source=source, inside=(*base.inside, *conditions))


def node_of(value: Expression) -> Node:
    """The expression over the columns of the source."""
    if value.column is not None:
        return Column(value.column)
    assert value.node is not None, "columns of relations are named"
    return value.node


def _source(columns: _Columns, old: Source, key: Sequence[str]) -> Source:
    """The new source without its plan."""
    made = {name: value for name, value in columns.read.items() if value.column is None}
    given = any(value.given for value in made.values())
    made_types = dict(zip(made, types(old.columns, list(made.values()), given), strict=True))
    stored = {name: value.column for name, value in columns.read.items() if value.column is not None}
    old.missing(stored.values())  # which refuses codes of another kind
    sql_types = {name: "DOUBLE" if value.wide else made_types[name] for name, value in made.items()}
    declarations = [_declaration(old, column, name) for name, column in stored.items()]
    for name, column in stored.items():
        is_label = column in key and kind_of_type(old.columns[column]) == TEXT  # of an ENUM, whose labels are people's
        sql_types[name] = "VARCHAR" if is_label else old.columns[column]
    new = {column: name for name, column in stored.items()}
    return replace(
        old,
        sql="",
        columns={name: sql_types[name] for name in columns.read},
        declared=Declarations(
            schema=tuple(declaration for declaration in declarations if declaration.says_something or declaration.whole)
        ),
        folded=False,
        frame=None,
        place=None,
        untyped=frozenset(new[name] for name in old.untyped if name in new),
        whole=frozenset(new[name] for name in old.whole if name in new),
        stated=columns.given,
        below=old.below | frozenset(map(lowered, old.columns)),
        called={name: old.called.get(column, column) for name, column in stored.items()},
        held=old.stored,
        tables={as_remembered(old.sql): old.origin} if old.made is None else old.tables,
    )


def _declaration(source: Source, column: str, name: str) -> Declaration:
    """Declarations of a column under another name."""
    try:
        known = source.known(column)
    except ParameterError as error:  # for whoever needs the column
        return Declaration(name, "schema", problem=str(error))
    return Declaration(
        name, known.source, bounds=known.ends, valid=known.valid, keys=known.keys, missing=known.missing or None,
        whole=known.whole, dates=known.dates,
    )  # fmt: skip


def read_together(left: Source, right: Source, sources: Sources, how: str) -> Source:
    """Two sources with columns of different names as one, without its plan."""
    connection = left.connection
    if right.connection is not connection:
        shared = sources.connection
        if shared is None or shared not in (connection, right.connection) or sources.named:
            raise ParameterError(
                "temporary tables cannot be read in one statement with frames and files: make a table of them on the "
                "connection first."
            )
        connection = shared
    return replace(
        left,
        sql="",
        columns={**left.columns, **right.columns},
        connection=connection,
        declared=Declarations(schema=(*left.declared.schema, *right.declared.schema)),
        name=f"{left.name} {how} {right.name}",
        untyped=left.untyped | right.untyped,
        whole=left.whole | right.whole,
        zone=left.zone if left.zone != "UTC" else right.zone,
        is_table=left.is_table and right.is_table,
        stated={**left.stated, **right.stated},
        below=left.below | right.below,
        called={**left.called, **right.called},
        tables={**left.tables, **right.tables},
        held={**left.stored, **right.stored},
    )
