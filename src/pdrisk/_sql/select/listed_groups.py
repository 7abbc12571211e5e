"""The groups of a SELECT with their keys: listed, of public tables, of dates, or of columns with listed keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pdrisk._model.asked_groups import Groups
from pdrisk._model.declared.missing_codes import check_levels_are_no_codes
from pdrisk._model.groups.keys import observed_of_several
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.expressions.where_values import Limit
from pdrisk._sql.relations.computed_keys import computed_keys
from pdrisk._sql.relations.day_keys import within_bounds
from pdrisk._sql.relations.group_keys import Grouping, PublicKeys, keys_given
from pdrisk._sql.relations.public_keys import public_keys
from pdrisk._sql.relations.row_scope import Condition, Rows
from pdrisk._sql.select.aggregate_scope import Answers
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.refusals import keys_without_groups
from pdrisk.errors import ParameterError


def listed_groups(answers: Answers, keys: object, conditions: Sequence[Condition], counted: str) -> Groups | None:
    """The groups with their keys."""
    passed = [name for name in keys if isinstance(name, str)] if isinstance(keys, Mapping) else []
    lists = {lowered(name): keys[name] for name in passed} if isinstance(keys, Mapping) else {}
    if len(set(map(lowered, passed))) < len(passed):
        raise ParameterError("keys= names a group twice, in other capitals: list its keys in one place.")
    if isinstance(keys, Mapping):
        names = {lowered(name) for group in answers.groups for name in group.names}
        keys = {name: keys[name] for name in passed if lowered(name) in names} or None
    if answers.groups:
        source = answers.relation.source
        limits = [limit for condition in conditions for limit in condition.limits()]
        known = list(answers.groups)
        if keys is None or isinstance(keys, Mapping):  # else all are listed
            known = [_on_its_days(group, limits, answers.rows) for group in known]
        listed, keys_from = keys_given(
            known,
            keys,
            lambda group: source.known(group.column).keys,
            lambda group: source.categories(group.column),
            limits,
            public=partial(_public_keys, answers, conditions, limits, lists),
            counted=counted,
            passed=passed,
        )
        for at, group in enumerate(answers.groups):
            codes = source.known(group.column).missing if listed and source.declared.speak_of_codes else ()
            if codes:
                check_levels_are_no_codes(group.names[0], (key[at] for key in listed or ()), codes)
        if keys_from == "data" and answers.relation.owners is not None:
            raise observed_of_several()
        return Groups(tuple(group.names[0] for group in answers.groups), listed, keys_from)
    if keys is not None:
        raise keys_without_groups()
    return None


def _public_keys(
    answers: Answers,
    conditions: Sequence[Condition],
    limits: Sequence[Limit],
    passed: Mapping[str, object],
    groups: Sequence[Grouping],
    given: Collection[int],
) -> list[PublicKeys]:
    """Keys that public tables list, and those of expressions of columns with listed keys."""
    source = answers.relation.source
    nodes = [None if group.node is None else resolved(group.node, answers.rows) for group in groups]
    tables = public_keys(nodes, given, answers.relation.listed, [condition.node for condition in conditions])
    listed = {at for places, _ in tables for at in places}

    def keys_of(column: Grouping) -> Sequence[Any] | None:
        keys = passed.get(lowered(column.names[0]), source.known(column.names[0]).keys)
        return keys if isinstance(keys, list | tuple) else None

    others = [None if at in listed else node for at, node in enumerate(nodes)]
    return [*tables, *computed_keys(groups, others, given, source, keys_of, limits)]


def _on_its_days(group: Grouping, limits: Sequence[Limit], rows: Rows) -> Grouping:
    """A group with its keys on the days of a date that WHERE and its bounds allow."""
    if group.day is None:
        return group
    values = within_bounds(group.sql, group.day, limits, rows.range_of(group.day), rows)
    return group if values is None else replace(group, values=values)
