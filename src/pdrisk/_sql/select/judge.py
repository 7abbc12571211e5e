"""Judge of a SELECT: what is read, what is computed on the noisy table, and all errors that are known before.

Only names and types are looked at. Whatever needs no data fails before anything is paid: the statements made here are
shown to a DuckDB without people first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from pdrisk._model.answering import answered_by, joined
from pdrisk._model.arguments import epsilon
from pdrisk._model.expressions.nodes import Column, Node, Window, below
from pdrisk._model.groups.private_keys import judged_groups_shown, share_of_values
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import People, checked_rows
from pdrisk._model.unit_errors import Computed
from pdrisk._model.weights import check_weighing
from pdrisk._relations.canonical import canonical
from pdrisk._relations.pruned import columns_named, columns_read
from pdrisk._sql.expressions.judged_expressions import text
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.expressions.windows import of_records
from pdrisk._sql.noisy.first_value import with_end
from pdrisk._sql.noisy.layers import Layer, Layered, layer_over, layered, tail
from pdrisk._sql.noisy.noisy_from import aggregates
from pdrisk._sql.noisy.quantile_idioms import check_quantiles
from pdrisk._sql.noisy.weighted_means import no_weights, with_weighted_means, with_weights_of_design
from pdrisk._sql.relations.from_clause import is_by_person, public_table, relation_of
from pdrisk._sql.relations.row_numbers import limited
from pdrisk._sql.relations.row_scope import Condition, Relation, Rows, aliases_of, condition, within_where
from pdrisk._sql.relations.rows_of_nobody import adds_nothing, check_not_read, counted, left_after
from pdrisk._sql.select.aggregate_scope import Answers, Noted, bounded, checked_bounds
from pdrisk._sql.select.compiled_query import NodesAsked, compiled_query
from pdrisk._sql.select.dependent_columns import with_dependent_groups
from pdrisk._sql.select.judged_query import Judged, try_out
from pdrisk._sql.select.known_names import check_slips
from pdrisk._sql.select.listed_groups import listed_groups
from pdrisk._sql.select.select_people import (
    PeopleAsked,
    counted_people,
    known_rows,
    of_relation,
    owners_of_table,
    people_of,
    unit_of,
)
from pdrisk._sql.syntax.headings import heading, unique
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Select, Star, reads_several
from pdrisk._sql.tables.settings import Settings
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError

FROM_ELSEWHERE = ("declared", "where")  # bounds that no entry of bounds= gave
NOBODY_KNOWN = PeopleAsked()
NOBODY = People()


def judged(
    select: Select,
    sources: Sources,
    *,
    bounds: object,
    people: PeopleAsked = NOBODY_KNOWN,
    weights: Callable[[], Hashable] = no_weights,
    **asked: Any,
) -> Judged:
    """Query of a SELECT, or the error that says what is wrong with it.

    A quotient that is a weighted mean becomes one, unless what else is asked for makes that impossible.

    ``bounds, people, asked``: as `_judged` takes them.
    ``weights``: gives the column of a design's weights, for ``dp_weighted_mean(y)`` without one; None where there
        is no design.
    """
    nested = layers_of(select, sources, bounds, people)
    nested = replace(nested, core=with_weights_of_design(nested.core, weights))
    weighed = replace(nested, core=with_weighted_means(nested.core))
    if weighed.core is not nested.core:
        with suppress(ParameterError):
            return _judged(select, sources, weighed, bounds=bounds, people=people, weighs=True, **asked)
    return _judged(select, sources, nested, bounds=bounds, people=people, **asked)


def _judged(
    select: Select,
    sources: Sources,
    nested: Layered,
    *,
    eps: object,
    bounds: object,
    keys: object,
    delta: object = None,
    least_group: object = None,
    mechanism: str = "auto",
    interval: object = False,
    clip: object = None,
    people: PeopleAsked = NOBODY_KNOWN,
    even: bool = False,
    weighs: bool = False,
) -> Judged:
    """Query of a SELECT whose layers are known, or the error that says what is wrong with it.

    ``even``: no aggregate may have its own eps; ``weighs``: quotients in its text became weighted means.
    """
    shared = people.shared_name
    core, stated = nested.core, checked_bounds(bounds)
    if core.distinct:
        raise ParameterError(
            "SELECT DISTINCT is refused: the values that occur reveal who is in the data. Ask for COUNT(*) with "
            "GROUP BY and the public list of the values, or for COUNT(DISTINCT x)."
        )
    if any(isinstance(item, Star) for item, _ in core.items):
        raise ParameterError("SELECT * would show records: only groups and noisy aggregates leave the data.")
    relation = bounded(relation_of(core, sources, nested.ctes), stated)
    core = with_dependent_groups(core, relation, keys)
    nested = replace(nested, core=core)
    asked_select = replace(core, has_parameters=select.has_parameters)
    where: tuple[Condition, ...] = ()
    if core.where is not None:
        where = (condition(core.where, Rows(relation, aliases_of(core))),)
    given = stated if isinstance(stated, Mapping) else ()
    relation = within_where(relation, (*relation.owned, *relation.where, *where), given)
    answers = Answers(relation, asked_select, stated, settings=sources.settings, mechanism=mechanism)
    try:
        layers = _layers(nested, answers, sources.settings)
    except ParameterError as error:
        if not error.lacks or eps is not None:
            raise
        problem = str(error)
    else:
        problem = ""
    if problem:
        raise ParameterError(f"{problem} The query needs eps, too, the privacy loss it may spend in total: pass eps=1.")
    if not answers.noted:
        raise ParameterError(
            "the query has no aggregate, so nothing to add noise to: ask for COUNT(*), AVG(x) or another, with "
            "GROUP BY."
        )
    if isinstance(stated, Mapping):
        needed = [
            aggregate.column
            for aggregate in answers.noted
            if aggregate.column and aggregate.asked.bounds_from in FROM_ELSEWHERE
        ]
        check_slips(stated, [*(label for label, _ in relation.columns), *relation.source.below], needed, sources)
    owners = relation.owners
    if owners is None or owners.of_rows:
        name = relation.source.asked_as or relation.source.name
        if owners is None and relation.source.public:
            raise ParameterError(f"{name} is public: ask it without pdrisk, and exactly.")
        people, of_tables = people.of_table(name), people.rows
        known = people_of(people, relation.source)
        if isinstance(of_tables, Mapping):  # a fact about the table, as where several are joined
            people, known = replace(people, rows=None), replace(known, rows=checked_rows(people.rows))
    else:
        owners = limited(owners, core.where, answers.rows)
        people, known = of_relation(people, relation, owners)
    if owners is not None:
        sources.check_readable(relation.source)
    noted = counted_people(answers.noted, known, people, known.rows if owners is None else owners.most)
    lines_asked = [_line(aggregate, relation.source, mechanism, interval, clip) for aggregate in noted]
    alone = {at for at, aggregate in enumerate(noted) if aggregate.asked.eps is not None}
    lines, releases = joined(lines_asked, mechanism, alone)
    explicit = [noted[releases.index(release)].asked.eps for release in range(max(releases) + 1)]
    if even and any(explicit):
        raise ParameterError(
            "success= finds the eps of the whole query, of which every aggregate has an even share: leave out eps := "
            "in its dp_ functions, or pass eps= in place of success=."
        )
    total = None if eps is None else epsilon(eps)
    shares = _shares(explicit, None if total is None else share_of_values(keys, total))
    columns = [group.column for group in answers.groups]
    if owners is not None:
        known = known_rows(known, people, owners, noted, columns)
    conditions = (*relation.owned, *relation.where, *where)
    groups = listed_groups(answers, keys, conditions, nested.counted)
    grouped = [group.column or Computed(heading(group.node)) for group in answers.groups if group.node is not None]
    unit = unit_of(known, people, noted, lines, grouped, groups)
    check_weighing(lines, unit.per_person, quotients=weighs)
    if shared and unit.person:
        unit = replace(unit, person=shared)
    chosen = judged_groups_shown(keys, delta, least_group, None, total, unit)
    asked = Query(lines, shares, releases=releases, unit=unit)
    for at in range(len(lines)):
        asked.mechanism(at).check()
    nodes = _asked(answers, conditions, noted, known if unit.person else NOBODY)
    _check_rows_of_nobody(relation, nodes, noted)
    names, named = list(relation.source.columns), columns_named(nodes.all)
    read = [at for at, name in enumerate(names) if name in named]
    missing = relation.source.missing(names[at] for at in read)
    engine = compiled_query(answers, nodes, where, noted, asked, groups, known, owners)
    ways = [engine.plan.parts[place].way for place in engine.places]
    query = Query(
        lines,
        shares,
        None,
        groups,
        missing,
        (*(names[at] for at in read), *(() if owners is None else _columns_below(relation.source, nodes.all))),
        source=relation.source.name,
        condition=" AND ".join(predicate.shown for predicate in (*relation.inside, *conditions)) or None,
        trusted=answers.given
        or any(predicate.given for predicate in (*relation.inside, *conditions))
        or any(aggregate.given for aggregate in answers.noted),
        said=canonical(
            relation.source.relation, nodes.where, nodes.groups, nodes.read, ways, nodes.people, relation.source.zone
        ),
        places=tuple(dict.fromkeys((*read, *(names.index(str(column)) for column in known.columns if unit.person)))),
        releases=releases,
        unit=unit,
        selection=chosen,
    )
    written = [share for share in explicit if share is not None]
    judged_query = Judged(
        query, relation, engine, unique(answers.names()), tuple(answers.groups), layers,
        sum(written, Fraction(0)), len(explicit) - len(written),
    )  # fmt: skip
    try_out(judged_query, select.has_parameters)
    return judged_query


def tell(sources: Sources, bounds: object, people: PeopleAsked) -> None:
    """Tell the sources what a call says of bounds and of whose rows they hold."""
    stated = checked_bounds(bounds)
    sources.stated = stated if isinstance(stated, Mapping) else {}
    sources.owner_of = partial(owners_of_table, people) if people.knows_people else None
    sources.links = people.links
    sources.several = True  # until it is known how many tables a SELECT reads
    if sources.judged_for != (people, bounds):
        sources.judged_for = people, bounds
        sources.relations.clear()


def layers_of(select: Select, sources: Sources, bounds: object, people: PeopleAsked) -> Layered:
    """Layers of a SELECT; the sources learn what is asked and by whom."""
    tell(sources, bounds, people)
    sources.several = reads_several(select) or bool(people.links)
    sources.check(select)
    sources.check_public()
    nested = public_layers(sources)(select)
    check_quantiles(nested, sources)
    return with_end(nested, sources.settings)


def public_layers(sources: Sources) -> Callable[[Select], Layered]:
    """What gives the layers of a SELECT, of sources that have learned what is asked and by whom."""
    return partial(
        layered,
        is_by_person=lambda inner, ctes: is_by_person(inner, sources, ctes),
        is_public=lambda table: public_table(table, sources) is not None,
    )


def _line(noted: Noted, source: Source, mechanism: str, interval: object, clip: object) -> Line:
    """A line for an aggregate."""
    one = noted.asked
    shown = None if noted.filtered is None else noted.filtered.shown
    line = Line(
        noted.column, one.statistic, one.universe, one.bounds_from, shown, noted.values, other=noted.other_column
    )
    stored = None if noted.argument is None else noted.argument.column
    whole = noted.whole or (stored is not None and source.known(stored).whole)
    return answered_by(line, mechanism, whole=whole, joint=one.eps is None, interval=interval, clip=clip)


def _layers(nested: Layered, answers: Answers, settings: Settings) -> tuple[Layer, ...]:
    """Computations over groups and aggregates, and the SELECTs above."""
    core = nested.core
    items = [(alias or heading(item), item) for item, alias in core.items if not isinstance(item, Star)]
    windows = (part for _, item in items for part in below(item) if isinstance(part, Window))
    if not aggregates(core) and (of_people := next(windows, None)) is not None:
        raise of_records(of_people)
    columns = tuple((label, text(item, answers)) for label, item in items)
    having, qualify, order, rest = tail(core, [value for _, value in columns], answers)
    layers = [Layer(columns, having, rest, order, tuple(answers.windows), qualify, trees=answers.windows)]
    for over in nested.over:
        layers.append(layer_over(layers[-1], over, settings))
    return tuple(layers)


def _check_rows_of_nobody(relation: Relation, nodes: NodesAsked, noted: Sequence[Noted]) -> None:
    """Refuse what would count rows of a public table without anybody."""
    if not (absent := left_after(nodes.where, relation.absent)):
        return
    check_not_read(nodes.groups, absent, "a group by a column of people")
    for one, (value, _, kept) in zip(noted, nodes.read, strict=True):
        if not adds_nothing(value, kept, absent, is_sum=one.asked.statistic.name == "sum"):
            raise counted(heading(one.call))


def _asked(answers: Answers, conditions: Sequence[Condition], noted: Sequence[Noted], people: People) -> NodesAsked:
    """What a question reads, over the columns of the source."""
    return NodesAsked(
        tuple(predicate.node for predicate in conditions),
        tuple(resolved(group.node, answers.rows) for group in answers.groups if group.node is not None),
        tuple(
            tuple(
                None if expression is None else expression.node
                for expression in (one.argument, one.other, one.filtered)
            )
            for one in noted
        ),
        tuple(Column(str(name)) for name in people.columns),
    )


def _columns_below(source: Source, nodes: Sequence[Node]) -> list[str]:
    """Columns of tables that a question reads, in lower case, whatever they are called on the way."""
    return sorted({lowered(name) for _, name in columns_read(source.relation, nodes)})


def _shares(explicit: Sequence[Fraction | None], eps: Fraction | None) -> tuple[Fraction, ...]:
    """Cost of each release: its own eps, or an even share of what the others leave of the total."""
    written_out = sum((share for share in explicit if share is not None), Fraction(0))
    open_places = sum(share is None for share in explicit)
    if eps is None:
        if open_places:
            raise ParameterError(
                "the query needs eps, the privacy loss it may spend in total: pass eps=1, or write "
                "dp_mean(x, eps := 1)."
            )
        return tuple(share for share in explicit if share is not None)
    left = eps - written_out
    if left < 0 or (open_places and left == 0):
        raise ParameterError(
            f"the query may spend eps={float(eps):g} in total, but asks for {float(written_out):g} in its dp_ "
            "functions"
            + (f" and leaves nothing for {open_places} more" if left == 0 else "")
            + ": pass a larger eps=, or write smaller ones."
        )
    return tuple(left / open_places if share is None else share for share in explicit)
