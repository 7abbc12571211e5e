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


def frame_engine(
    query: Query,  # noqa: ARG001 - a frame answers any
    frame: pd.DataFrame,
    stored: pd.DataFrame,
    given: Any,
    secret: Secret,
) -> FrameEngine:
    """The engine that reads a pandas frame."""
    return FrameEngine(frame, stored, given, secret)


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
    opened: Opened = frame_engine

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
    each.name: each.default for each in dataclasses.fields(Request) if each.name not in NO_OPTIONS
}

OPTIONS_DOC = """
Options
-------
eps : float
    Privacy loss to spend, in nats; finite and above 0. Give exactly one of ``eps``, ``risk`` and ``success``.
risk : float
    Instead of ``eps``, the highest belief that an attacker may reach who starts at ``prior`` (1/2 unless given). It
    lies in (0, 1) and above the prior. The ``worst_case`` of a release is always that of a prior of 1/2. ``metric`` can
    only be ``"worst_case"``: an eps from any other metric would depend on the data.
success : float
    Instead of ``eps``, how often an attacker may be right about whether a person is in the data who gives even odds, in
    (1/2, 1): by all answers of this call together, whose eps is the largest that keeps to it. It is a mean over noise,
    where ``risk`` bounds the belief after any. What a rule of a ledger costs besides comes on top.
bounds : (lo, hi) or "column"
    The range that values can have, in the unit of the column; values outside count as its ends. Of dates and times two
    dates, also as text. Not needed where bounds are declared with ``df.dprisk.declare``. ``"column"`` takes the
    smallest and the largest value of the data, which is not differential privacy.
where : str, pd.col or Polars expression, boolean mask or callable
    Filter: which rows to use, decided row by row. A comparison with a missing value is unknown, and so is its negation;
    a row counts where the condition is known to be true. ``"x != 9"`` leaves out rows without x: write ``"x != 9 or
    x.isna()"`` to keep them.
by, keys : column or list of columns, and the public list of their keys
    Groups, one answer for each key. Keys of several columns are tuples, the rows of a frame with these columns, or a
    dict with a list for each column, which stands for all combinations, whether they occur or not. In a dict, columns
    that are no groups here are not used. Keys may be dates as text, such as ``"2020-01-31"``. Records with a missing
    key are left out, unless None is listed. ``"categories"`` declares that the categories of a categorical are public,
    ``"observed"`` that the keys which occur are public, a missing one included. ``"private"`` shows the keys that
    enough people share, which is decided by chance, for half of ``eps`` and for ``delta``. Not for a series.
delta : float, optional
    Needed with ``keys="private"``, and only there: the probability with which the list of groups may show that
    somebody is in the data. At most 0.001; choose far less than one over the number of people, such as 1e-6.
least_group : int, optional
    With ``keys="private"``: groups of fewer people are never shown.
mechanism : {"auto", "laplace", "geometric", "two_sums", "bernstein", "bernstein_products", "exponential", ...}
    Noise mechanism. ``"auto"`` takes the most accurate one for each statistic, or for several statistics of one column
    together. ``"laplace"``, that of the SOEP paper, answers every statistic of one column.
person : column or list of columns, optional
    Column of people's ids, where a person may have several rows: all rows of a person are protected together. With
    several columns, as in ``["pid", "day"]``, the unit is each combination of their values: a person's day. Rows
    without an id are left out. A `Dataset` declares it once.
per_person : {"mean", "sum", "min", "max", "count", "any", "all", "one"}, optional
    How the rows of a person become one number, in each group, before the statistic is computed over people. ``bounds``
    are then those of that number. ``"one"`` declares that each person has one row; if somebody has more, one of them
    is chosen.
rows : int, optional
    Instead of ``per_person``: at most so many rows of a person count, chosen at random: in all groups together, or with
    ``groups`` in each group. The noise grows by this factor.
groups : int, optional
    In how many groups of ``by`` a person counts. The noise grows by this factor. Not needed with ``rows``, or if the
    columns of ``by`` are ``constant``.
unit : "row", optional
    Protect each single row, not a person.
constant : list of columns, optional
    Columns with the same value in all rows of a person.
unit_label : str, optional
    What texts call one person, such as ``"household"``; without it they say the name of the column.
weights : column or False, optional
    For ``count``, ``sum``, ``mean``, ``proportion``, ``var``, ``std``, ``median``, ``quantile`` and ``change``: how
    much each row counts, as in surveys.
    ``bounds`` are a dict then, as in ``{"income": (0, 9000), "w": (0, 8)}``: weights above the declared largest one are
    trimmed at it, and the noise grows with it. A person loses ``eps`` times her weight over the largest. That weights
    were made without looking at these records is taken on your word.
step : 1, optional
    For ``sum``, ``median``, ``quantile``, ``min`` and ``max``: declares that all values are whole numbers. Then the
    answer is one, too.
interval : bool
    Get ``low`` and ``high`` also for answers by ``"exponential"``, which then becomes ``"exponential_interval"``: it
    chooses the answer and the ends together, so that the answer has about twice the error. For ``min`` and ``max`` one
    end is a bound. Other mechanisms give an interval in any case, at no cost.
clip : "private", optional
    For ``mean`` and ``sum`` if nobody knows good bounds: half of ``eps`` finds round numbers within the declared bounds
    that few values exceed, and values are clipped there. `Release.clip` tells them. The answer and its interval are
    those of the clipped values; nothing says how much clipping changed. All groups share both points. The mechanism
    is ``"clipped_sums"``.
neighbours : {"add-or-remove-one", "replace-one"}
    ``"replace-one"``, for ``sum``, ``mean`` and ``proportion`` of all rows, declares that the number of rows is public
    and that no value is missing. The noise then hides the value of each person, but not who is in the data. It excludes
    ``where``, ``by`` and a ledger. Replacing a record is removing one and adding one, so eps 2 promises here what eps 1
    promises otherwise.
max_noise95 : float, optional
    Refuse the request, before anything is paid, unless public facts say that ``noise95`` of the answer will be at most
    this, whatever the values are: always for mechanisms whose noise does not depend on the records, and, with
    ``n_at_least``, 99 times in 100 for those whose noise depends on the number of records. A rule of a ledger that
    rounds answers comes on top.
n_at_least : int, optional
    For ``max_noise95`` and ``mechanism="two_stage"``: declares that an answer, or the answer for each group, is about
    at least so many rows. It is not compared with the data.
curator : bool
    Also show the curator's numbers: the sensitivity and the risks of the answer in these very data. They depend on the
    data without noise. Under a ledger only analysts whom its policy names may see them.
measured : bool
    Add columns to tables with what was drawn, before it was cut to the range of possible answers: ``measured``, or
    ``measured_0``, ``measured_1``, ... of statistics that are made of several numbers, and ``draw``, which tells the
    noise of each row from that of others. Sums of ``measured`` are unbiased; see `Release.measured`.
ledger : Ledger, optional
    The budget that pays before the data is read. Default: the ledger of the ``with pdrisk.Ledger(...)`` block around
    the call, if there is one.
fresh : bool
    Pay and draw a new answer even if the ledger remembers one to this question.

Returns
-------
Release
    The noisy value, its 95 % noise interval and its risk.
DataFrame
    Instead, with ``by`` or from ``agg``: one row for each key or statistic, with columns ``value low high eps
    worst_case``. ``low`` and ``high`` are the ends of the 95 % noise interval. They are NaN for answers by
    ``"exponential"`` without ``interval=True``; `Release.rank95` tells how many records such an answer may be from
    its rank.

Raises
------
ParameterError
    If the request is wrong, as far as this can be known without the data; the text says what to write instead.
QueryFailedError
    If anything fails after reading began. Its text is always the same, so it tells nothing about the data.
"""

KEYS_DECIDE = "the groups are those that keys= lists, in its order, whoever is in them: leave it out"
#: Options of pandas that mean nothing here, and why.
OF_PANDAS: dict[str, str] = {
    **dict.fromkeys(("observed", "sort"), KEYS_DECIDE),
    "dropna": "missing values are never used, and rows with a missing key are in no group: leave it out, or list None "
    "among the keys",
    "skipna": "missing values are never used: leave it out",
    "as_index": "groups are the index of the answer: leave it out, and write .reset_index() after the call",
    "group_keys": "groups are the index of the answer: leave it out",
    "numeric_only": "only the columns you name are used: leave it out",
    "axis": "statistics are always over rows: leave it out",
    "level": "groups are columns: write by=, after df.reset_index() for a level of the index",
    "normalize": "shares with intervals are those of .count(by='g', normalize='all', eps=..., keys=...)",
    **dict.fromkeys(("range", "density"), "bins= lists the edges, or divides bounds= evenly: leave it out"),
    "percentiles": "describe has the quartiles; others are quantile(q=[0.1, 0.9])",
    "margins": "margins are for count, sum, mean, agg and crosstab, whose tables add up: leave it out",
    **dict.fromkeys(("epsilon", "privacy_budget", "budget"), "write eps="),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise has no seed: whoever knew it could take the noise away"),
    "groupby": "write by=",
    "missing": "codes for missing answers are declared before, as in df.dprisk.declare(missing={'age': [-1, -9]})",
    "schema": "a schema is declared before, as in df.pipe(schema.validate) or df.dprisk.declare(schema)",
    "lower": "write bounds=(lo, hi)",
    "upper": "write bounds=(lo, hi)",
}  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])


def with_options(method: Method, *, names: bool = False) -> Method:
    """The method with all options in its signature, for help and the Tab key, and with unknown options refused.

    With ``names`` the caller may use other names too, for statistics: ``typical=("distance", "median")``.
    """
    parameters = inspect.signature(method).parameters.values()
    own, rest = ([p for p in parameters if (p.kind is p.VAR_KEYWORD) is is_rest] for is_rest in (False, True))
    named = {p.name for p in own if p.kind is p.KEYWORD_ONLY}
    needed = {p.name for p in own if p.name in named and p.default is p.empty}
    offered = inspect.signature(method).replace(parameters=[*own, *_offered(DEFAULTS)])
    signature = offered.replace(parameters=[*offered.parameters.values(), *(rest if names else ())])
    most = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in own)
    least = sum(each.default is each.empty and each.name not in named for each in own)
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
    checked.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{OPTIONS_DOC}"
    return cast(Method, checked)


def with_unit_options(method: Method) -> Method:
    """The method with the options about people in its signature, as `with_options` has all; others are refused."""
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
        one, other = ([shown(each) for each in args[1:]] + ["..."])[:2]
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
