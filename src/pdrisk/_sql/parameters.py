"""Values for the parameters of a query, ``?`` or ``$name``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from pdrisk._core.foreign import shown
from pdrisk._sql.literals import literal
from pdrisk._sql.tree import Scalar
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["Parameters"]

MOST = 100_000  # parameters by name


class Parameters:
    """The values that a caller passes for parameters, each of which must have its place in the query.

    Parameters
    ----------
    given : sequence or mapping or None
        A list for ``?``, a dict for ``$name``.
    """

    def __init__(self, given: object) -> None:
        self.given = _checked(given)
        self.used: set[str] = set()

    def value(self, name: str) -> Scalar:
        """The value of a parameter, which is then used."""
        self.used.add(name)
        if isinstance(self.given, Mapping):
            if name in self.given:
                return literal(self.given[name], f"parameter {name}")
        elif name.isdigit() and 1 <= int(name) <= len(self.given):
            return literal(self.given[int(name) - 1], f"parameter {name}")
        shown_name = f"parameter {name} (?)" if name.isdigit() else f"${name}"
        raise ParameterError(f"the query has no value for {shown_name}: pass params=, a list for ?, a dict for $name.")

    def check_used(self) -> None:
        """Refuse values that no parameter of the query takes."""
        if isinstance(self.given, Mapping):
            unused = sorted(set(self.given) - self.used)
        else:
            unused = [str(at) for at in range(1, min(len(self.given), len(self.used) + 9) + 1)]
            unused = [at for at in unused if at not in self.used][:9]
        if unused:
            raise ParameterError(f"the query has no place for parameter {', '.join(unused)}: take it out of params.")


def _checked(given: object) -> Mapping[str, object] | Sequence[object]:
    if given is None:
        return ()
    if isinstance(given, Mapping):
        names = list(islice(given, MOST + 1))
        if len(names) > MOST:
            raise ParameterError(f"params can be {MOST:,} at most: put long lists into a table.")
        return {name if isinstance(name, str) else shown(name): given[name] for name in names}
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return given
    raise ColumnTypeError(f"params must be a list for ? or a dict for $name, not {type(given).__name__}.")
