"""Options of the accessors' statistics: written down once, shown by help, refused if unknown; and a request of them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast

import pandas as pd

from pdrisk._answer.releasing import Asker
from pdrisk._ledger import Identity, Ledger
from pdrisk._model.aliases import Bounds, By, Eps, Keys, Where
from pdrisk._model.nearest import did_you_mean
from pdrisk._model.query import Query
from pdrisk._model.unit import People, Secret, checked_way
from pdrisk.engines.base import Engine
from pdrisk.engines.numpy.frame import FrameEngine

__all__ = [
    "NEIGHBOURS",
    "NOBODY_KNOWN",
    "OPTIONS_DOC",
    "REPLACE",
    "Opened",
    "Options",
    "Request",
    "UnitOptions",
    "frame_engine",
    "with_options",
    "with_unit_options",
]


class UnitOptions(TypedDict, total=False):
    """Who is protected, and how several rows of a person count: see `OPTIONS_DOC`."""

    person: Any
    per_person: str | None
    rows: int | None
    groups: int | None
    unit: str | None
    constant: Any


class Options(UnitOptions, total=False):
    """What every statistic takes, by keyword.

    ``eps`` or ``risk`` (exactly one; ``prior`` and ``metric`` belong to ``risk``), ``bounds``, ``where``, ``by``,
    ``keys``, ``delta``, ``least_group``, ``mechanism``, ``person``, ``per_person``, ``rows``, ``groups``, ``unit``,
    ``constant``, ``step``, ``interval``, ``clip``, ``neighbours``, ``curator``, ``ledger``, ``fresh``: see
    `OPTIONS_DOC`.
    """

    eps: Eps | None
    risk: float | None
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
    max_noise95: float | None
    n_at_least: int | None
    ledger: Ledger | None
    fresh: bool


# Of a judged query, the columns that it was judged by, the data as they are stored, what decides beside a filter's
# tree, and the secret.
Opened = Callable[[Query, pd.DataFrame, pd.DataFrame, Any, Secret], Engine[Any]]


def frame_engine(
    query: Query,  # noqa: ARG001 - a frame answers any
    frame: pd.DataFrame,
    stored: pd.DataFrame,
    given: Any,
    secret: Secret,
) -> FrameEngine:
    """What reads a frame."""
    return FrameEngine(frame, stored, given, secret)


NOBODY_KNOWN = People()
ADD_OR_REMOVE, REPLACE = NEIGHBOURS = ("add-or-remove-one", "replace-one")


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one call, as they were written: not judged yet, so of any type.

    ``people`` is what the Dataset declares of them, ``opened`` the engine that reads its data.
    """

    eps: object = None
    risk: object = None
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
    step: object = None
    interval: object = False
    clip: object = None
    neighbours: object = ADD_OR_REMOVE
    curator: object = False
    max_noise95: object = None
    n_at_least: object = None
    ledger: object = None
    fresh: object = False
    people: People = NOBODY_KNOWN
    opened: Opened = frame_engine

    @property
    def way(self) -> str | None:
        """What the rows of a person become, by the call or the Dataset, where they become one number."""
        if self.rows is not None or self.unit is not None:
            return None
        return self.people.per_person if self.per_person is None else checked_way(self.per_person)

    def asker(self, dataset: Identity | None) -> Asker:
        """Who asks and pays."""
        return Asker(self.ledger, self.fresh, self.curator, dataset)


OF_DATASET = ("people", "opened")
UNIT_OPTIONS = tuple(inspect.get_annotations(UnitOptions))
DEFAULTS: dict[str, Any] = {
    each.name: each.default for each in dataclasses.fields(Request) if each.name not in OF_DATASET
}

OPTIONS_DOC = """
Options
-------
eps : float
    Privacy loss to spend, in nats, finite and above 0. Exactly one of ``eps`` and ``risk``.
risk : float
    Highest belief instead that an attacker may reach who starts at ``prior`` (1/2 unless given), in (0, 1) and above
    it; the ``worst_case`` of a release is always that of a prior of 1/2. ``metric`` can only be ``"worst_case"``: an
    eps from any other would depend on the data.
bounds : (lo, hi) or "column"
    The range values can have, in the unit of the column; values outside are clamped. Not needed where declared with
    ``df.dprisk.declare``. ``"column"`` takes the data's own, which is not differential privacy.
where : str, pd.col or Polars expression, boolean mask or callable
    Which rows to use, decided row by row. A missing decision is no.
by, keys : column or list of columns, and the public list of their keys
    For several columns tuples, or a dict of lists for all combinations. ``"categories"`` says that the categories of a
    categorical are a public code book, ``"observed"`` that the keys which occur are public. ``"private"`` shows those
    that occur and have enough people, which half of ``eps`` and ``delta`` decide by chance. Not for a series.
delta : float, optional
    With ``keys="private"``, and needed there: with that probability the list of groups may show that somebody is in the
    data. At most 0.001; take far less than 1/number of people, such as 1e-6.
least_group : int, optional
    With ``keys="private"``: groups of fewer people are never shown.
mechanism : {"auto", "laplace", "geometric", "two_sums", "bernstein", "bernstein_products", "exponential", ...}
    How noise is made. ``"auto"`` takes the most accurate one for each statistic, or for several of one column together;
    ``"laplace"``, that of the SOEP paper, answers every statistic of one column.
person : column or list of columns, optional
    Who a person is, where one may have several rows; what is protected is then everything that a person has. Of
    several columns together, as in ``["pid", "day"]``, it is what has one value of each: a person's day. Rows without
    an id are nobody's, and left out. Of a `Dataset` it is declared there.
per_person : {"mean", "sum", "min", "max", "count", "any", "all", "one"}, optional
    What the rows of each person become, in each group, before the statistic is taken over people. ``bounds`` are then
    those of the person's number. ``"one"`` says that each person has one row; if somebody has more, one is chosen.
rows : int, optional
    Instead: how many rows of a person count at most, in each group, chosen at random; with so many times the noise.
groups : int, optional
    In how many groups of ``by`` a person counts, with so many times the noise. Not needed for columns of ``constant``.
unit : "row", optional
    Protect one row for itself, not a person.
constant : list of columns, optional
    Columns that do not differ within a person.
step : 1, optional
    For ``sum``, ``median``, ``quantile``, ``min`` and ``max``: declares that all values are whole numbers, so that the
    answer is one.
interval : bool
    Have ``low`` and ``high`` also where ``"exponential"`` answers, as ``"exponential_interval"``: two thirds of ``eps``
    choose the ends, half of it the one of ``min`` and ``max`` that is no bound. Others have them anyway, for nothing.
clip : "private", optional
    For ``mean`` and ``sum`` where nobody knows good bounds: half of ``eps`` finds round numbers, within the declared
    bounds, that few values lie beyond, and the answer by ``"clipped_sums"`` is that of values clipped there, see
    `Release.clip`. So is its interval: what clipping cuts off, nobody is told. All groups share the two points.
neighbours : {"add-or-remove-one", "replace-one"}
    ``"replace-one"``, for ``sum``, ``mean`` and ``proportion`` of all rows, declares that the number of rows is public
    and that none has a missing value; noise then hides what anybody's value is, not who is in the data. No ``where``,
    ``by`` or ledger. To replace a record is to remove one and add one: an eps of 2 promises here what 1 does otherwise.
max_noise95 : float, optional
    Refuse, before anything is paid, if the answer would be farther than this from the exact one in more than 5 % of
    cases; for mechanisms whose noise does not depend on the records, and with ``n_at_least`` for those whose noise
    depends on their number.
n_at_least : int, optional
    For ``max_noise95`` and ``mechanism="two_stage"``: declares that an answer, or that of each group, is about so many
    rows or more. It is not compared with the data.
curator : bool
    Also show the curator's numbers, which come from the data: the sensitivity and risk of the answer in these very
    data. Under a ledger only for analysts whom its policy names.
ledger : Ledger, optional
    What pays, before the data is read; that of a ``with pdrisk.Ledger(...)`` block around otherwise.
fresh : bool
    Pay and draw anew, even if the ledger remembers the answer to this question.

Returns
-------
Release
    With ``by`` or from ``agg`` a DataFrame, one row for each key or line, with columns ``value low high eps
    worst_case``; ``low`` and ``high`` are the ends of the 95 % noise interval, NaN where that is not
    known: ``"exponential"`` tells how many records an answer may be from its rank, `Release.rank95`, and with
    ``interval=True`` the ends, too.

Raises
------
ParameterError
    Whatever can be seen to be wrong without the data, in words.
QueryFailedError
    One fixed sentence for whatever went wrong on the data.
"""

KEYS_DECIDE = "the groups are those that keys= lists, in its order, whoever is in them: leave it out"
#: Options of pandas that mean nothing here, and why.
OF_PANDAS: dict[str, str] = {
    **dict.fromkeys(("observed", "sort"), KEYS_DECIDE),
    "dropna": "missing values are never used, and rows with a missing key are in no group: leave it out, or list None "
    "among the keys",
    "skipna": "missing values are never used: leave it out",
    "as_index": "groups are the index of the answer: leave it out, and write .reset_index() behind the call",
    "group_keys": "groups are the index of the answer: leave it out",
    "numeric_only": "each answer is of the columns that are named: leave it out",
    "axis": "answers are about rows of people: leave it out",
    "level": "groups are columns: write by=, after df.reset_index() for a level of the index",
    "normalize": "shares are quotients of noisy answers: table['value'] / table['value'].sum() costs nothing",
    **dict.fromkeys(("range", "density"), "bins= lists the edges, or divides bounds= evenly: leave it out"),
    "percentiles": "describe has the quartiles; others are quantile(q=[0.1, 0.9])",
    "margins": "sums of the noisy values cost nothing: leave it out",
    **dict.fromkeys(("epsilon", "privacy_budget", "budget"), "write eps="),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise has no seed: it would protect nobody"),
    "weights": "a weighted mean is a quotient of noisy sums: .sum() of the products, by .sum() of the weights",
    "groupby": "write by=",
    "lower": "write bounds=(lo, hi)",
    "upper": "write bounds=(lo, hi)",
}  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])


def with_options(method: Method, *, names: bool = False) -> Method:
    """Show the options one by one to whoever asks for help or presses Tab, and refuse all others.

    With ``names`` further ones are the method's own, which are named as the caller likes.
    """
    parameters = inspect.signature(method).parameters.values()
    own, rest = ([p for p in parameters if (p.kind is p.VAR_KEYWORD) is is_rest] for is_rest in (False, True))
    signature = inspect.signature(method).replace(parameters=[*own, *_offered(DEFAULTS), *(rest if names else ())])
    most = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in own)
    least = sum(each.default is each.empty for each in own)

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if least <= len(args) <= most and kwargs.keys() <= DEFAULTS.keys():  # as nearly always: binding takes longer
            return args[0]._shown(method(*args, **kwargs))
        _check_bound(method.__name__, signature, args, kwargs)
        loose = [name for name, value in kwargs.items() if name not in signature.parameters and not _is_pair(value)]
        if not loose:
            return args[0]._shown(method(*args, **kwargs))
        raise TypeError(
            f"{method.__name__}(): got an unexpected keyword argument {loose[0]!r}.{_hint(signature, kwargs)} "
            f'A named statistic is a pair, as in {loose[0]}=("distance", "mean").'
        )

    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{OPTIONS_DOC}"
    return cast(Method, checked)


def with_unit_options(method: Method) -> Method:
    """Show the options about people one by one, as `with_options` does all, and refuse others."""
    written = inspect.signature(method)
    own = [each for each in written.parameters.values() if each.kind is not each.VAR_KEYWORD]
    signature = written.replace(parameters=[*own, *_offered(dict.fromkeys(UNIT_OPTIONS))])

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= signature.parameters.keys():
            _check_bound(method.__name__, signature, args, kwargs)
        return method(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Method, checked)


def _offered(defaults: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Options as parameters, with what they are: by name, as `Bounds`, since what aliases stand for fills a screen."""
    written = inspect.get_annotations(UnitOptions) | inspect.get_annotations(Options)
    kinds = {name: getattr(kind, "__forward_arg__", kind) for name, kind in written.items()}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in defaults.items()
    ]


def _check_bound(called: str, signature: inspect.Signature, args: Sequence[Any], given: Mapping[str, Any]) -> None:
    """Refuse arguments that a function does not take, with what to write instead."""
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        problem = f"{called}(): {error}.{_hint(signature, given)}"
    else:
        return
    raise TypeError(problem)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _hint(signature: inspect.Signature, given: Mapping[str, object]) -> str:
    """What to write instead of a call that Python cannot bind."""
    unknown = [name for name in given if name not in signature.parameters]
    offered = [name for name in signature.parameters if name != "self"]
    if not unknown:
        return " Options are passed by name, as in eps=1."
    meant = (f" {name}=: {OF_PANDAS[name]}." if name in OF_PANDAS else did_you_mean(name, offered) for name in unknown)
    return next(filter(None, meant), "")
