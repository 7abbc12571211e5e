"""What is filled into a query while it is read, whatever its parser: parameters, and values of scalar subqueries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

from pdrisk._core.foreign import shown
from pdrisk._model.nodes import Constant, Node, Noisy
from pdrisk._sql.literals import literal
from pdrisk._sql.pieces import lowered
from pdrisk._sql.tree import Cte, Scalar, Select, Table, within
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["FilledIn", "Scalars"]

MOST: Final = 100_000  # parameters by name


@dataclass
class Scalars:
    """The scalar subqueries of a text, each once, those in others before them.

    Attributes
    ----------
    values : list
        Of the first ones: what each came to. Those after them stand for 1 in the tree.
    selects : list of Select
    """

    values: list[Scalar] = field(default_factory=list)
    selects: list[Select] = field(default_factory=list)


class FilledIn:
    """Parameters and scalar subqueries of one text.

    Parameters
    ----------
    parameters : sequence, mapping or None
        Values of parameters by place, from 1 on, or by name.
    scalars : Scalars or None
        The values of scalar subqueries that are known; without it there are none.
    by_place, by_name : str
        How the language writes a parameter without a name, and one called ``name``, for errors.
    """

    def __init__(
        self, parameters: object, scalars: Scalars | None, by_place: str = "?", by_name: str = "$name"
    ) -> None:
        self.scalars = scalars
        self.by_place, self.by_name = by_place, by_name
        self.parameters = self._checked(parameters)
        self.used: set[str] = set()
        self.subqueries: list[Select] = []
        self.around: list[dict[str, Cte]] = []  # the CTEs of the SELECTs that are being read

    def parameter(self, name: str) -> Node:
        """A parameter, by its place or name, as its value."""
        self.used.add(name)
        return Constant(self._value(name), self.by_place if name.isdigit() else self._said(name))

    def scalar(self, select: Select) -> Node:
        """A scalar subquery as the value it came to."""
        assert self.scalars is not None
        seen = dict(chain(*(ctes.items() for ctes in self.around)))
        select = replace(select, ctes={**_asked_for(select, seen), **select.ctes})
        if select not in self.subqueries:
            self.subqueries.append(select)
        place, known = self.subqueries.index(select), self.scalars.values
        return Noisy(known[place] if place < len(known) else 1, place=place)

    def finished(self, select: Select, functions: frozenset[str] = frozenset()) -> Select:
        """The whole statement, of these functions; its subqueries are told to the `Scalars`.

        Raises
        ------
        ParameterError
            If a parameter was given that the text has no place for.
        """
        self._check_used()
        select, *subqueries = (
            replace(each, functions=functions, has_parameters=bool(self.used)) for each in (select, *self.subqueries)
        )
        if self.scalars is not None:
            self.scalars.selects = subqueries
        return select

    def _said(self, name: str) -> str:
        return self.by_name.replace("name", name)

    def _checked(self, parameters: object) -> Mapping[str, object] | Sequence[object]:
        if parameters is None:
            return ()
        if isinstance(parameters, Mapping):
            names = list(islice(parameters, MOST + 1))
            if len(names) > MOST:
                raise ParameterError(f"params can be {MOST:,} at most: put long lists into a table.")
            return {name if isinstance(name, str) else shown(name): parameters[name] for name in names}
        if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
            return parameters
        raise ColumnTypeError(
            f"params must be a list for {self.by_place} or a dict for {self.by_name}, not {type(parameters).__name__}."
        )

    def _check_used(self) -> None:
        if isinstance(self.parameters, Mapping):
            unused = sorted(set(self.parameters) - self.used)
        else:
            unused = [str(at) for at in range(1, min(len(self.parameters), len(self.used) + 9) + 1)]
            unused = [at for at in unused if at not in self.used][:9]
        if unused:
            raise ParameterError(f"the query has no place for parameter {', '.join(unused)}: take it out of params.")

    def _value(self, name: str) -> Scalar:
        """The value of a parameter."""
        if isinstance(self.parameters, Mapping):
            if name in self.parameters:
                return literal(self.parameters[name], f"parameter {name}")
        elif name.isdigit() and 1 <= int(name) <= len(self.parameters):
            return literal(self.parameters[int(name) - 1], f"parameter {name}")
        said = f"parameter {name} ({self.by_place})" if name.isdigit() else self._said(name)
        raise ParameterError(
            f"the query has no value for {said}: pass params=, a list for {self.by_place}, a dict for {self.by_name}."
        )


def _asked_for(select: Select, ctes: Mapping[str, Cte]) -> dict[str, Cte]:
    """The CTEs around a SELECT that it reads, by others too: without the rest, SELECTs that ask the same are equal."""
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
