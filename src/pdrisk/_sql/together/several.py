"""Statements of several queries, each of which is paid: UNION ALL, GROUPING SETS, and scalar subqueries.

Scalar subqueries are answered first; what they come to is a constant of the rest. All is judged before anything is
paid, with 1 in the place of values that are not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import pandas as pd

from pdrisk._answer.answers.answer import Answer
from pdrisk._guard import guarded
from pdrisk._ledger.rules.limits import share_of
from pdrisk._model.arguments import epsilon
from pdrisk._model.asked_margins import can_have_margins, with_margins
from pdrisk._model.expressions.kinds import NOTHING
from pdrisk._model.expressions.nodes import Constant
from pdrisk._model.groups.private_keys import are_private, checked_delta
from pdrisk._model.margins import MarginsAsked
from pdrisk._sql.noisy.grouping_sets import keys_of_part
from pdrisk._sql.noisy.layers import NOISY, Layer, Layered, layer_over
from pdrisk._sql.select.judge import public_layers
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.select.known_names import is_correlated
from pdrisk._sql.syntax.pieces import TYPES
from pdrisk._sql.syntax.refusals import NO_FROM, correlated, keys_without_groups
from pdrisk._sql.syntax.tree import Beside, Scalar, Select, Union
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text import dry_run
from pdrisk._sql.text.scalars import Rows, Scalars, standing_alone
from pdrisk._sql.together.correlated_subqueries import SettledSubqueries
from pdrisk._sql.together.first_values import check_first, first_value, placeholder
from pdrisk._sql.together.merged_answers import merged, of_nobody
from pdrisk._sql.together.side_by_side import Known, Named, SideBySide, joined_tables
from pdrisk._sql.together.stacked import (
    GroupedTables,
    PublicRows,
    Stacked,
    Statement,
    joined_source,
    nothing,
    public_answer,
    put_together,
    queries,
    reads_public_rows,
    shown,
    stacked_column,
)
from pdrisk.errors import ParameterError, UnknownColumnError


class Share(NamedTuple):
    """Eps of a query or of several, and delta for private keys, as a caller writes them."""

    eps: object
    delta: object = None


Judge = Callable[[Select, object], Judged]
Value = Callable[[Statement, int], Scalar | Rows]  # of a subquery of which so many columns are needed, or one value
Free = tuple[list[tuple[str, str]], pd.DataFrame]
Nest = Callable[[Select], Layered]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a text: its judged queries, and how to ask them."""

    read: Callable[[Scalars], Select]  # reads the query, given the values of its scalar subqueries
    nest: Nest  # gives the layers of a SELECT
    # takes a SELECT of one query, what the caller says of its keys, and what it may spend
    judge: Callable[[Select, object, Share], Judged]
    total: Share  # what all may spend
    keys: object  # as the caller passed them
    sources: Sources
    # those of the scalar subqueries, in the order in which they are asked, then that of the rest
    statements: tuple[Statement, ...] = ()

    @property
    def queries(self) -> list[Judged]:
        """All queries that are asked and paid."""
        return list({id(query): query for statement in self.statements for query in queries(statement)}.values())

    def judged(self, judge: Judge, value: Value) -> tuple[Statement, ...]:
        """Statements one after another; ``value`` gives what those come to that are answered first."""
        scalars, statements = Scalars(subqueries=SettledSubqueries(self.sources)), list[Statement]()
        reader = StatementReader(self.nest, judge, self._trial, self.sources)
        while True:
            select = self.read(scalars)
            waiting = scalars.selects[len(statements) :]
            asked = waiting[0] if waiting else select
            keys = own_keys(self.keys, asked, self.nest) if scalars.selects else self.keys
            statements.append(statement_of(asked, reader, keys, is_part=bool(waiting)))
            if not waiting:
                return tuple(statements)
            columns = scalars.columns[len(statements) - 1]
            check_first(statements[-1], columns)
            scalars.values.append(value(statements[-1], columns))

    def _trial(self, select: Select, keys: object) -> Judged:
        """A SELECT judged as if it might spend all."""
        return self.judge(select, keys, self.total)

    def answered(self, ask: Callable[[Judged, bool], pd.DataFrame]) -> pd.DataFrame:
        """The answer; ``ask`` takes a query, and whether its columns are those of the answer."""
        before: list[Answer] = []
        answers_of: dict[int, tuple[Judged, pd.DataFrame]] = {}  # with what was asked, so that no number is used twice

        def asked(statement: Statement) -> pd.DataFrame:
            if isinstance(statement, PublicRows):
                return statement.rows
            if not isinstance(statement, Stacked):
                question = statement if isinstance(statement, Judged) else statement.judged
                if id(question) not in answers_of:
                    answers_of[id(question)] = question, ask(question, False)
                    before.append(_described(answers_of[id(question)][1]))
                answer = answers_of[id(question)][1]
                return answer if isinstance(statement, Judged) else statement.rows(answer)
            answers = [asked(part) for part in statement.parts]
            return guarded(lambda: put_together(statement, answers))

        last = self.statements[-1]
        if len(self.statements) > 1:  # the values of scalar subqueries are known now
            last = self.shared(lambda statement, columns: first_value(statement, asked(statement), columns))[-1]
        if not self.queries:
            return of_nobody(asked(last))
        delta = sum((query.query.delta for query in self.queries), Fraction(0))
        if isinstance(last, Judged):
            answer = ask(last, True)
            return merged(answer, before, delta, _described(answer))
        return merged(asked(last), before, delta)

    def shared(self, value: Value) -> tuple[Statement, ...]:
        """The statements, each with its share of the total."""
        shares = iter(shares_of(self.queries, self.total))
        return self.judged(lambda select, keys: self.judge(select, keys, next(shares)), value)


def planned(
    read: Callable[[Scalars], Select],
    nest: Nest,
    judge: Callable[[Select, object, Share], Judged],
    total: Share,
    keys: object,
    sources: Sources,
) -> Plan:
    """Plan of a query, judged with values such as 1 for those that only answers tell.

    How many queries share what may be spent is known once they have been judged with all of it.
    """
    plan = Plan(read, nest, judge, total, keys, sources)
    sources.free = partial(_free, sources=sources, known=[])
    path = ""
    try:
        statements = plan.judged(lambda select, keys_of_select: judge(select, keys_of_select, total), placeholder)
    except UnknownColumnError as error:
        if not error.path or not is_correlated(error.path, sources):
            raise
        path = ".".join(error.path)
    if path:
        raise correlated(path)
    judged_plan = replace(plan, statements=statements)
    if not judged_plan.queries:
        if not any(map(reads_public_rows, statements)):
            raise ParameterError(f"{NO_FROM}.")
        return judged_plan
    if len(judged_plan.statements) > 1 or isinstance(judged_plan.statements[0], Stacked):
        check_keys(keys, judged_plan.queries)
        return replace(judged_plan, statements=judged_plan.shared(placeholder))
    return judged_plan


def _free(select: Select, sources: Sources, known: list[tuple[Select, Free]]) -> Free:
    """Headings, kinds and rows of a SELECT that nobody is in; ``known`` are those that were read already."""

    def of_people(*_: object) -> Judged:
        raise ParameterError("a subquery of public tables is not understood: make a table of it, and name that.")

    table = next((free for one, free in known if one == select), None)
    if table is None:
        statement = statement_of(select, StatementReader(public_layers(sources), of_people, of_people, sources), None)
        table = shown(statement), public_answer(statement)
        known.append((select, table))
    return table


def _described(answer: pd.DataFrame) -> Answer:
    description = Answer.from_attrs(answer.attrs)
    assert description is not None
    return description


@dataclass(frozen=True)
class StatementReader:
    """How the SELECTs of a text are judged."""

    nest: Nest  # gives the layers of a SELECT
    judge: Judge  # takes a SELECT of one query, and what the caller says of its keys
    trial: Judge  # as ``judge``, of what may not be asked
    sources: Sources
    known: Known = field(default_factory=list)  # statements that are joined, each of which is asked once
    # queries, each of which is asked once, wherever it stands in the text
    judged: list[tuple[Select, object, Judged]] = field(default_factory=list)

    def known_query(self, select: Select, keys: object) -> Judged | None:
        """A query that stands elsewhere in the text, too; None if it does not."""
        plain = standing_alone(select)
        return next((one for known_select, of, one in self.judged if of is keys and known_select == plain), None)

    def query(self, select: Select, keys: object) -> Judged:
        """The query of a SELECT, judged once."""
        judged = self.known_query(select, keys)
        if judged is None:
            judged = self.judge(select, keys)
            self.judged.append((standing_alone(select), keys, judged))
        return judged


def statement_of(select: Select, reader: StatementReader, keys: object, *, is_part: bool = False) -> Statement:
    """Statement of a SELECT: one query, or several put together; ``keys`` as the caller passed them.

    ``is_part`` says that others use its numbers. The query below such a one is asked apart, since it may stand
    elsewhere in the text, too, as a CTE does that is named twice.
    """
    nest = reader.nest
    nested = nest(select)
    source = nested.core.source
    seen = {name: cte for name, (cte, _) in nested.ctes.items()}
    parts: list[Statement] = []
    kinds: tuple[str, ...] = ()
    joined, sides = None, Named()

    def inside(part: Select) -> Statement:
        part = replace(part, functions=select.functions, has_parameters=select.has_parameters)
        return statement_of(part, reader, own_keys(keys, part, nest))

    if isinstance(source, Beside):
        tables_read = SideBySide(reader.sources, nested.ctes, inside, nest, reader.known)
        joined, base, sides = joined_tables(source.join, tables_read)
        parts = tables_read.parts
    elif isinstance(source, Union):
        selects = tuple(
            replace(part, ctes={**seen, **part.ctes}, functions=select.functions, has_parameters=select.has_parameters)
            for part in source.parts
        )
        of_people = source.grouped_by is not None and nest(selects[0]).core.source == selects[0].source
        together = tables_of(replace(source, parts=selects), reader, keys) if of_people else None
        parts += [] if together is None else [together]
        for at, part_select in enumerate(selects if together is None else ()):
            places = source.grouped_by[at] if of_people and source.grouped_by is not None else None
            part_keys = own_keys(keys, part_select, nest) if places is None else keys_of_part(keys, source, places)
            parts.append(statement_of(part_select, reader, part_keys, is_part=True))
    elif not nested.is_put_together:
        core = replace(nested.core, ctes=seen, functions=select.functions, has_parameters=select.has_parameters)
        is_apart = is_part or reader.known_query(core, keys) is not None
        if not (nested.over and is_apart) or nested.counted:
            return reader.query(select, keys)
        parts = [reader.query(core, keys)]
    if joined is None:
        labels, kinds = _columns(parts)
        columns = (stacked_column(at, kind, parts) for at, kind in enumerate(kinds))
        base = Layer(tuple(zip(labels, columns, strict=True)), "", "", (), ())
        empty = f"({nothing(kinds)}) AS {NOISY}"
    else:
        tables = (nothing([kind for _, kind in shown(part)]) for part in parts)
        empty = joined_source(joined, [f"p{at} AS ({sql})" for at, sql in enumerate(tables)])
    layers = [base]
    for over in nested.over:
        layers.append(layer_over(layers[-1], over, reader.sources.settings, sides if len(layers) == 1 else ()))
    stacked = Stacked(tuple(parts), kinds, tuple(layers[1:]), select.has_parameters, joined)
    dry_run.computed(stacked.computed(empty), select.has_parameters)
    return stacked


def tables_of(union: Union, reader: StatementReader, keys: object) -> GroupedTables | None:
    """Groupings as one query, which measures the finest one and its margins together; None where they cannot be.

    That takes all combinations of listed keys, and statistics that are sums over groups.
    """
    groupings = union.grouped_by or ()
    finest = tuple(range(len(union.groups)))
    if finest not in groupings or len(groupings) < 2 or len(set(groupings)) < len(groupings):
        return None
    select, finest_keys = union.parts[groupings.index(finest)], keys_of_part(keys, union, finest)
    if are_private(keys) or isinstance(select.source, Union):
        return None
    query = reader.trial(select, finest_keys).query
    if query.groups is None or len(query.groups.columns) < len(finest) or not can_have_margins(query):
        return None
    asked = MarginsAsked([[query.groups.columns[at] for at in axes] for axes in groupings if axes != finest])
    judged = reader.judge(select, finest_keys)
    constants = (tuple(item for item, _ in part.items[len(finest) :]) for part in union.parts)
    bits = tuple(
        tuple(int(constant.value) for constant in items if isinstance(constant, Constant)) for items in constants
    )
    return GroupedTables(replace(judged, query=with_margins(judged.query, asked)), groupings, bits)


def own_keys(keys: object, select: Select, nest: Nest) -> object:
    """A caller's keys for the groups of one SELECT of several."""
    nested = nest(select)
    return None if nested.core.groups == () and not nested.is_put_together else keys


def check_keys(keys: object, questions: Sequence[Judged]) -> None:
    """Refuse a list of keys if no query has groups."""
    if keys is not None and not isinstance(keys, Mapping) and not any(question.groups for question in questions):
        raise keys_without_groups()


def _columns(parts: Sequence[Statement]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Headings of the first part, and the kinds on which all parts agree."""
    listed = [shown(part) for part in parts]
    if len({len(part) for part in listed}) > 1:
        raise ParameterError(
            f"the parts of a UNION have {' and '.join(str(len(part)) for part in listed)} columns: give all the same."
        )
    kinds = []
    for at in range(len(listed[0]) if listed else 0):
        held = list(dict.fromkeys(part[at][1] for part in listed if part[at][1] != NOTHING)) or [NOTHING]
        if held[0] not in TYPES:
            raise ParameterError(
                f"column {at + 1} of the parts of a UNION holds {held[0]}, of which nothing is put together: ask each "
                "part alone."
            )
        if len(held) > 1:
            raise ParameterError(
                f"column {at + 1} of the parts of a UNION holds {' and '.join(held)}: make them alike."
            )
        kinds.append(held[0])
    return tuple(label for label, _ in listed[0]) if listed else (), tuple(kinds)


def shares_of(questions: Sequence[Judged], total: Share) -> list[Share]:
    """Cost of each query: the eps written in it, and an even share of the rest for each other release.

    Where keys are private the same again chooses them, and each query that does so has an even share of delta.
    """
    if total.eps is None:
        return [total] * len(questions)
    eps, choosing = epsilon(total.eps), sum(question.query.selection is not None for question in questions)
    delta = share_of(checked_delta(total.delta), choosing) if choosing else None
    fixed = [question.written_out * (1 if question.query.selection is None else 2) for question in questions]
    left = eps - sum(fixed, Fraction(0))
    waiting = sum(question.open_releases for question in questions)
    if left < 0 or (waiting and left == 0):
        raise ParameterError(
            f"the query may spend eps={float(eps):g} in total, but asks for {float(eps - left):g} in its dp_ "
            "functions: pass a larger eps=, or write smaller ones."
        )
    each_open = share_of(left, waiting) if waiting else Fraction(0)
    return [
        Share(written + question.open_releases * each_open, None if question.query.selection is None else delta)
        for written, question in zip(fixed, questions, strict=True)
    ]
