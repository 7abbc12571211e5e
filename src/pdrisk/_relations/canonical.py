"""Canonical text of a plan, by which ledgers remember answers: equal for equal plans alone, however SQL spells them.

Answers that were paid for are found by this text. Whoever changes it gives it another `VERSION`, and says in
docs/ledger.md what is paid once more.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from pdrisk._model.expressions.nodes import Column, Constant, Node
from pdrisk._relations.plan import Aggregated, Relation
from pdrisk._relations.pruned import pruned

VERSION: Final = 1


def canonical(
    relation: Relation,
    where: Sequence[Node],
    groups: Sequence[Node],
    read: Sequence[Sequence[Node | None]],
    ways: Sequence[str],
    people: Sequence[Node],
    zone: str,
) -> str:
    """The text of what a question reads.

    ``relation``: what stands in FROM.
    ``where, groups``: conditions on its rows, and what they are grouped by.
    ``read``: for each line its argument, its other one and its FILTER; None where there is none.
    ``ways``: for each line how it is read, such as once for each value.
    ``people``: columns that say who a person is.
    ``zone``: by which times with a zone are read.
    """
    asked = [*where, *groups, *people, *(node for line in read for node in line if node is not None)]
    tree = [_written(part) for part in (pruned(relation, asked), where, groups, read, ways, people)]
    return json.dumps(["pdrisk plan", VERSION, *tree, zone], separators=(",", ":"))


def _written(value: Any) -> Any:
    """A part of a plan as JSON, so that other values have other texts: 1, True, 1.0 and "1" are four."""
    match value:
        case None | str():
            return value
        case bool():
            return ["bool", value]
        case int():
            return ["int", str(value)]
        case float():
            return ["float", value.hex()]
        case Decimal():
            return ["decimal", str(value)]
        case datetime.date():
            return [type(value).__name__, value.isoformat()]
        case Column():
            return ["column", value.name]
        case Constant():  # whatever a parameter is called
            return ["constant", _written(value.value)]
        case tuple() | list():
            return ["list", *map(_written, value)]
        case frozenset() | set():
            return ["set", *sorted(map(_written, value), key=json.dumps)]
    if dataclasses.is_dataclass(value):
        fields = {field.name: _written(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return [type(value).__name__, *(fields[name] for name in fields if name not in _SAID_ELSEWHERE)]
    return [type(value).__name__, repr(value)]


#: Fields that decide no value: how an argument was passed, and what a cast that fails does.
_SAID_ELSEWHERE: Final = frozenset({"names", "forgiving", "ordered"})
assert all(field.name not in _SAID_ELSEWHERE for field in dataclasses.fields(Aggregated))
