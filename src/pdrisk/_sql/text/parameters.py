"""Values for the parameters of a query, by place or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from pdrisk._core.foreign import shown
from pdrisk._model.expressions.nodes import Constant
from pdrisk._sql.syntax.literals import literal
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.errors import ColumnTypeError, ParameterError

MOST = 100_000  # parameters by name


class Parameters:
    """Values of parameters, each of which must have its place in the query.

    Parameters
    ----------
    given : sequence or mapping or None
        A list for those by place, a dict for those by name.
    by_place, by_name : str
        How the query writes them, for people.
    """

    def __init__(self, given: object, by_place: str = "?", by_name: str = "$name") -> None:
        self.by_place, self.by_name = by_place, by_name
        self.given = self._checked(given)
        self.used: set[str] = set()

    def constant(self, name: str) -> Constant:
        """Value of a parameter, by its position from 1 on or its name; it then counts as used."""
        return Constant(self._value(name), self.by_place if name.isdigit() else self._written(name))

    def _written(self, name: str) -> str:
        return self.by_name.replace("name", name)

    def _value(self, name: str) -> Scalar:
        self.used.add(name)
        if isinstance(self.given, Mapping):
            if name in self.given:
                return literal(self.given[name], f"parameter {name}")
        elif name.isdigit() and 1 <= int(name) <= len(self.given):
            return literal(self.given[int(name) - 1], f"parameter {name}")
        shown_name = f"parameter {name} ({self.by_place})" if name.isdigit() else self._written(name)
        raise ParameterError(
            f"the query has no value for {shown_name}: pass params=, a list for {self.by_place}, a dict for "
            f"{self.by_name}."
        )

    def check_used(self) -> None:
        """Refuse values that no parameter of the query takes."""
        if isinstance(self.given, Mapping):
            unused = sorted(set(self.given) - self.used)
        else:
            unused = [str(at) for at in range(1, min(len(self.given), len(self.used) + 9) + 1)]
            unused = [at for at in unused if at not in self.used][:9]
        if unused:
            raise ParameterError(f"the query has no place for parameter {', '.join(unused)}: take it out of params.")

    def _checked(self, given: object) -> Mapping[str, object] | Sequence[object]:
        if given is None:
            return ()
        if isinstance(given, Mapping):
            names = list(islice(given, MOST + 1))
            if len(names) > MOST:
                raise ParameterError(f"params can be {MOST:,} at most: put long lists into a table.")
            return {name if isinstance(name, str) else shown(name): given[name] for name in names}
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            return given
        raise ColumnTypeError(
            f"params must be a list for {self.by_place} or a dict for {self.by_name}, not {type(given).__name__}."
        )
