"""Scalar subqueries of a text, for every parser: they are answered before the rest of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from pdrisk._model.nodes import Noisy
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Cte, Scalar, Select, Table, within
from pdrisk._sql.text.parameters import Parameters

__all__ = ["Scalars", "ScalarsRead", "standing_alone"]


@dataclass
class Scalars:
    """Scalar subqueries of a text, each once, inner ones first.

    Attributes
    ----------
    values : list
        Of the first ones: what each came to. Those after them stand for 1 in the tree.
    selects : list of Select
    """

    values: list[Scalar] = field(default_factory=list)
    selects: list[Select] = field(default_factory=list)


@dataclass
class ScalarsRead:
    """Scalar subqueries of a text that is being read.

    Attributes
    ----------
    known : Scalars or None
        Their values as far as they are known; without it there may be none.
    selects : list of Select
        Those met so far.
    around : list of dict
        The CTEs of the SELECTs that are being read.
    """

    known: Scalars | None
    selects: list[Select] = field(default_factory=list)
    around: list[dict[str, Cte]] = field(default_factory=list)

    def value(self, select: Select) -> Noisy:
        """Value of a scalar subquery."""
        assert self.known is not None
        seen = dict(chain(*(ctes.items() for ctes in self.around)))
        select = replace(select, ctes={**_asked_for(select, seen), **select.ctes})
        if select not in self.selects:
            self.selects.append(select)
        place, values = self.selects.index(select), self.known.values
        return Noisy(values[place] if place < len(values) else 1, place=place)

    def finished(self, select: Select, parameters: Parameters, functions: frozenset[str] = frozenset()) -> Select:
        """The whole statement with its parameters and functions; `known` learns first what it asks."""
        parameters.check_used()
        select, *others = (
            replace(each, functions=functions, has_parameters=bool(parameters.used)) for each in (select, *self.selects)
        )
        if self.known is not None:
            self.known.selects = others
        return select


def standing_alone(select: Select) -> Select:
    """A SELECT without what only the text around it has: equal ones ask the same."""
    return replace(select, ctes=_asked_for(select, select.ctes), functions=frozenset(), has_parameters=False)


def _asked_for(select: Select, ctes: Mapping[str, Cte]) -> dict[str, Cte]:
    """CTEs that a SELECT reads, also through others: without the rest, equal SELECTs are the same."""
    names, kept = set(_tables(select)), dict[str, Cte]()
    for name, cte in reversed(list(ctes.items())):  # each sees those before it
        if lowered(name) in names:
            kept[name] = cte
            names |= set(_tables(cte.select))
    return dict(reversed(kept.items()))


def _tables(select: Select) -> Iterator[str]:
    """The names in FROM, of its subqueries and own CTEs too."""
    for each in within(select):
        if isinstance(each, Table) and len(each.path) == 1:
            yield lowered(each.path[0])
