"""Options of all statistics: their documentation, their defaults, and the request that one call makes of them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast

import pandas as pd

from pdrisk._answer.releasing import Asker
from pdrisk._core.foreign import shown
from pdrisk._core.nearest import unknown_keyword
from pdrisk._ledger import Identity, Ledger
from pdrisk._model.declared.aliases import Bounds, By, Eps, Keys, Where
from pdrisk._model.design import Design
from pdrisk._model.margins import NO_MARGINS, MarginsAsked
from pdrisk._model.query import Query
from pdrisk._model.unit import People, Secret, checked_way
from pdrisk._pandas.requests.option_texts import OF_PANDAS, documented
from pdrisk.engines.base import Engine
from pdrisk.engines.numpy.frame import FrameTable


class UnitOptions(TypedDict, total=False):
    """Options that say who is protected, and how several rows of a person, or a weighted one, count: `OPTIONS_DOC`."""

    person: Any
    per_person: str | None
    rows: int | None
    groups: int | None
    unit: str | None
    constant: Any
    unit_label: str | None
    weights: Any


class Options(UnitOptions, total=False):
    """Keyword options of every statistic.

    ``eps``, ``risk`` or ``success`` (exactly one; ``prior`` and ``metric`` belong to ``risk``), ``bounds``, ``where``,
    ``by``, ``keys``, ``delta``, ``least_group``, ``mechanism``, ``person``, ``per_person``, ``rows``, ``groups``,
    ``unit``, ``constant``, ``unit_label``, ``weights``, ``step``, ``interval``, ``clip``, ``neighbours``, ``curator``,
    ``measured``, ``ledger``, ``fresh``: see `OPTIONS_DOC`.
    """

    eps: Eps | None
    risk: float | None
    success: float | None
    prior: float | None
    metric: str
    bounds: Bounds | None
    where: Where | None
    by: By | None
    keys: Keys | None
    delta: float | None
    least_group: int | None
    mechanism: str
    step: int | None
    interval: bool
    clip: str | None
    neighbours: str
    curator: bool
    measured: bool
    max_noise95: float | None
    n_at_least: int | None
    ledger: Ledger | None
    fresh: bool


# Makes the engine from the judged query, the frame whose columns it was judged by, the data as they are stored, a mask
# or callable that filters beside the tree, and the secret by which a person's rows are chosen.
Opened = Callable[[Query, pd.DataFrame, pd.DataFrame, Any, Secret], Engine[Any]]


NOBODY_KNOWN = People()
ADD_OR_REMOVE, REPLACE = NEIGHBOURS = ("add-or-remove-one", "replace-one")


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one call as they were written, before they are judged.

    ``tables`` are options of the few statistics whose tables add up. ``people`` and ``design`` are what the Dataset
    declares of people and of how they were drawn; ``opened`` is the engine that reads its data.
    """

    eps: object = None
    risk: object = None
    success: object = None
    prior: object = None
    metric: object = "worst_case"
    bounds: Any = None
    where: Any = None
    by: Any = None
    keys: object = None
    delta: object = None
    least_group: object = None
    mechanism: object = "auto"
    person: object = None
    per_person: object = None
    rows: object = None
    groups: object = None
    unit: object = None
    constant: object = None
    unit_label: object = None
    weights: Any = None
    step: object = None
    interval: object = False
    clip: object = None
    neighbours: object = ADD_OR_REMOVE
    curator: object = False
    measured: object = False
    max_noise95: object = None
    n_at_least: object = None
    ledger: object = None
    fresh: object = False
    tables: MarginsAsked = NO_MARGINS
    people: People = NOBODY_KNOWN
    design: Design | None = None
    opened: Opened = FrameTable.opened

    @property
    def weighing(self) -> Any:
        """The column of weights, by the call or else the design; None without."""
        if self.weights is False:
            return None
        return self.design.weights if self.weights is None and self.design is not None else self.weights

    @property
    def way(self) -> str | None:
        """How a person's rows become one number, by the call or else the Dataset; None where they do not."""
        if self.rows is not None or self.unit is not None:
            return None
        return self.people.per_person if self.per_person is None else checked_way(self.per_person)

    def asker(self, dataset: Identity | None) -> Asker:
        """The ledger, the Dataset and the wishes of whoever asks."""
        return Asker(self.ledger, self.fresh, self.curator, dataset, self.measured)


NO_OPTIONS = ("people", "design", "opened", "tables")  # of all statistics
UNIT_OPTIONS = tuple(inspect.get_annotations(UnitOptions))
DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in dataclasses.fields(Request) if field.name not in NO_OPTIONS
}

Method = TypeVar("Method", bound=Callable[..., Any])


def with_options(method: Method, *, names: bool = False) -> Method:
    """The method with all options in its signature, for help and the Tab key, and with unknown options refused.

    With ``names`` the caller may use other names too, for statistics: ``typical=("distance", "median")``.
    """
    parameters = inspect.signature(method).parameters.values()
    fixed, rest = ([p for p in parameters if (p.kind is p.VAR_KEYWORD) is is_rest] for is_rest in (False, True))
    named = {p.name for p in fixed if p.kind is p.KEYWORD_ONLY}
    needed = {p.name for p in fixed if p.name in named and p.default is p.empty}
    offered = inspect.signature(method).replace(parameters=[*fixed, *_offered(DEFAULTS)])
    signature = offered.replace(parameters=[*offered.parameters.values(), *(rest if names else ())])
    most = sum(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) for parameter in fixed)
    least = sum(parameter.default is parameter.empty and parameter.name not in named for parameter in fixed)
    known = DEFAULTS.keys() | named

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if least <= len(args) <= most and needed <= kwargs.keys() <= known:  # as nearly always: binding takes longer
            return args[0]._shown(method(*args, **kwargs))
        _check_bound(method.__name__, signature, args, kwargs)
        loose = [name for name, value in kwargs.items() if name not in signature.parameters and not _is_pair(value)]
        if not loose:
            return args[0]._shown(method(*args, **kwargs))
        raise TypeError(
            f"{method.__name__}(): {unknown_keyword(offered, loose, OF_PANDAS)} A named statistic is a pair, as in "
            f'{loose[0]}=("distance", "mean").'
        )

    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked.__doc__ = documented(inspect.cleandoc(method.__doc__ or ""))
    return cast(Method, checked)


def with_unit_options(method: Method) -> Method:
    """The method with the options about people in its signature, as `with_options` has all; others are refused."""
    written = inspect.signature(method)
    fixed = [parameter for parameter in written.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    signature = written.replace(parameters=[*fixed, *_offered(dict.fromkeys(UNIT_OPTIONS))])

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= signature.parameters.keys():
            _check_bound(method.__name__, signature, args, kwargs)
        return method(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Method, checked)


def _offered(defaults: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Options as parameters. Annotations are names such as ``Bounds``: what they stand for would fill a screen."""
    written = inspect.get_annotations(UnitOptions) | inspect.get_annotations(Options)
    kinds = {name: getattr(kind, "__forward_arg__", kind) for name, kind in written.items()}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in defaults.items()
    ]


def _check_bound(called: str, signature: inspect.Signature, args: Sequence[Any], given: Mapping[str, Any]) -> None:
    """Refuse arguments that the function does not take, and say what to write instead."""
    problem = unknown_keyword(signature, given, OF_PANDAS)
    if called == "slope" and len(args) > 1:  # besides self
        one, other = ([shown(arg) for arg in args[1:]] + ["..."])[:2]
        problem = (
            f"name both columns, as in slope(y={other}, x={one}), by how much {other} grows with {one}, or "
            f"slope(y={one}, x={other})."
        )
    if not problem:
        try:
            signature.bind(*args, **given)
        except TypeError as error:
            problem = f"{error}. Options are passed by name, as in eps=1."
        else:
            return
    raise TypeError(f"{called}(): {problem}")


def _is_pair(value: object) -> bool:
    return isinstance(value, pd.NamedAgg) or (isinstance(value, tuple | list) and len(value) == 2)
