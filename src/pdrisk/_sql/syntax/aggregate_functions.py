"""Aggregates of a query: the statistic that each one is, with its argument, bounds and eps."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pdrisk._core.different import DistinctSum
from pdrisk._core.statistics import Statistic, Sum
from pdrisk._core.surveys.weighted import (
    WEIGHTED,
    Weighted,
    WeightedCount,
    WeightedMean,
    WeightedMedian,
    WeightedStd,
    WeightedSum,
    WeightedVar,
    weighted,
)
from pdrisk._core.universe import Days, Rectangle, Universe
from pdrisk._model.arguments import (
    OF_TWO_COLUMNS,
    epsilon,
    statistic,
    statistic_of_two,
    universe,
)
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH, number_advice
from pdrisk._model.expressions.nodes import Call, Cast, Constant, Node, Noisy, Operation, below
from pdrisk._model.plain import are_dates
from pdrisk._model.weights import interval_of_weights
from pdrisk._sql.syntax.pieces import RANGED, Expression
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.errors import ColumnTypeError, ParameterError

OF_WEIGHTS: Mapping[str, Weighted] = {
    weighted_statistic.name: weighted_statistic
    for weighted_statistic in (
        WeightedCount(),
        WeightedSum(),
        WeightedMean(),
        WeightedVar(),
        WeightedStd(),
        WeightedMedian(),
    )
}
WEIGHTED_QUANTILE = "weighted quantile"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregate function of a statistic; ``private`` ones take eps, lo and hi."""

    statistic: str
    ddof: int | None = None
    private: bool = False

    @property
    def columns(self) -> int:
        """Number of columns that it takes."""
        return 2 if self.statistic in OF_TWO_COLUMNS or self.is_weighted else 1

    @property
    def is_weighted(self) -> bool:
        """Whether it is of a column and its weights."""
        return self.statistic.startswith(WEIGHTED)

    def weighted(self, options: Mapping[str, Scalar]) -> Weighted:
        """The weighted statistic."""
        if self.statistic != WEIGHTED_QUANTILE:
            return OF_WEIGHTS[self.statistic]
        if "q" not in options:
            raise ParameterError("dp_weighted_quantile needs the quantile after the weights, as in (income, w, 0.9).")
        quantile = weighted(statistic(("quantile", {"q": options["q"]})))
        assert quantile is not None
        return quantile

    @property
    def options(self) -> tuple[str, ...]:
        """Its arguments after the column, in their order."""
        quantile = ("q",) if self.statistic in ("quantile", WEIGHTED_QUANTILE) else ()
        if not self.private or self.is_weighted:
            return (*quantile, "eps") if self.private else quantile
        return (*quantile, "eps", "lo", "hi", *(("ddof",) if self.statistic in ("var", "std") else ()))


AGGREGATES: Mapping[str, Aggregate] = {
    "count": Aggregate("count"),
    "count_star": Aggregate("count"),
    "sum": Aggregate("sum"),
    "avg": Aggregate("mean"),
    "mean": Aggregate("mean"),
    "median": Aggregate("median"),
    # Of noisy answers there is no difference: all of them are about what lies between two records, too.
    **dict.fromkeys(("quantile_cont", "quantile_disc", "quantile", "approx_quantile"), Aggregate("quantile")),
    **dict.fromkeys(("count_if", "countif"), Aggregate("count")),
    "approx_count_distinct": Aggregate("nunique"),
    "min": Aggregate("min"),
    "max": Aggregate("max"),
    "var_pop": Aggregate("var", 0),
    "var_samp": Aggregate("var", 1),
    "variance": Aggregate("var", 1),
    "stddev_pop": Aggregate("std", 0),
    "stddev_samp": Aggregate("std", 1),
    "stddev": Aggregate("std", 1),
    "corr": Aggregate("corr"),
    "covar_pop": Aggregate("cov", 0),
    "covar_samp": Aggregate("cov", 1),
    "regr_slope": Aggregate("slope"),
    "dp_count_star": Aggregate("count", private=True),
    "dp_avg": Aggregate("mean", private=True),
    **{
        f"dp_{name}": Aggregate(name, private=True)
        for name in ("count", "sum", "mean", "median", "quantile", "min", "max", "var", "std")
    },
    **{f"dp_{name.replace(' ', '_')}": Aggregate(name, private=True) for name in (*OF_WEIGHTS, WEIGHTED_QUANTILE)},
}


DISTINCT = frozenset({"count", "nunique", "min", "max", "sum"})  # statistics that may be of different values


@dataclass(frozen=True, slots=True)
class Asked:
    """Release that a query asks for; equal ones are one release."""

    statistic: Statistic
    argument: str | None  # what is aggregated, None for COUNT(*)
    condition: str | None  # its FILTER
    universe: Universe
    bounds_from: Source | None
    eps: Fraction | None  # None: a share of what the call leaves
    other: str | None = None  # a second column
    counts_different: bool = False  # whether different values are counted


def asked(
    call: Call,
    argument: Expression | None,
    condition: str | None,
    bounds: Callable[[], tuple[Universe, Source]],
    counts_different: bool = False,
) -> Asked:
    """Release of an aggregate.

    ``call``: its first argument is the column, unless there is none.
    ``argument``: that column.
    ``condition``: its FILTER.
    ``bounds``: the bounds known from elsewhere; raises what to say if there are none.
    ``counts_different``: whether different values are counted.
    """
    kind = AGGREGATES[call.name]
    options = _options(call, kind, 0 if argument is None else 1)
    wanted = statistic("nunique" if counts_different else _spec(call.name, kind, options))
    if call.distinct and isinstance(wanted, Sum):
        wanted = DistinctSum()
    eps = epsilon(_eps(options["eps"])) if "eps" in options else None
    if not wanted.bounded:
        value = None if argument is None else argument.sql
        return Asked(wanted, value, condition, Universe(0.0, 1.0), None, eps, counts_different=counts_different)
    if argument is None:
        raise ParameterError(f"{call.name} needs a column, as in {call.name}(distance).")
    check_number(call.name, argument)
    if ("lo" in options) != ("hi" in options):
        raise ParameterError(f"{call.name} needs both ends of the bounds: lo := 1, hi := 675.")
    given = universe((options["lo"], options["hi"]), dates=True) if "lo" in options else None
    interval, source = (given, "given") if given is not None else bounds()
    return Asked(wanted, argument.sql, condition, interval, source, eps)  # type: ignore[arg-type]


def asked_of_two(
    call: Call,
    arguments: Sequence[Expression],
    condition: str | None,
    bounds: Callable[[int], tuple[Universe, Source]],
) -> Asked:
    """Release of an aggregate of two columns.

    ``call``: its arguments are the columns.
    ``arguments``: those columns in SQL.
    ``condition``: its FILTER in SQL.
    ``bounds``: the bounds of the column at a place; raises what to say if there are none.
    """
    kind = AGGREGATES[call.name]
    if len(call.arguments) < kind.columns or (not kind.is_weighted and len(call.arguments) > kind.columns):
        which = "a column and its weights" if kind.is_weighted else "two columns and nothing else"
        raise ParameterError(f"{call.name} takes {which}, as in {call.name}(income, hours).")
    options = _options(call, kind, kind.columns)
    for argument in arguments:
        check_number(call.name, argument)
    (first, source), (second, other_source) = bounds(0), bounds(1)
    both = (source, other_source)
    joint_source: Source = "given" if "given" in both else "where" if "where" in both else "declared"
    one, other = arguments
    wanted: Statistic
    if kind.is_weighted:
        wanted, second = kind.weighted(options), interval_of_weights(other.column or other.sql, second)
    else:
        wanted = statistic_of_two(kind.statistic, 1 if kind.ddof is None else kind.ddof)
    eps = epsilon(_eps(options["eps"])) if "eps" in options else None
    return Asked(wanted, one.sql, condition, Rectangle(first.lo, first.hi, second), joint_source, eps, other.sql)


def check_dates(shown: str, bounds: Universe, kind: str) -> None:
    """Refuse bounds of dates for what holds none, and others for dates."""
    if isinstance(bounds, Days) == (kind in (DATE, TIME)) or not (isinstance(bounds, Days) or kind in RANGED):
        return
    what, instead = "numbers", "write dates, as in ('2020-01-01', '2020-12-31')"
    if isinstance(bounds, Days):
        what, instead = "dates", "write TRY_CAST(x AS DATE)" if kind == TEXT else "write numbers"
    raise ColumnTypeError(f"the bounds of {shown} are {what}, but it holds {kind}: {instead}.")


def check_number(name: str, argument: Expression) -> None:
    """Refuse an argument that is no number."""
    if argument.kind in (NUMBER, TRUTH):
        return
    raise ColumnTypeError(
        f"{name} needs numbers, but its argument holds {argument.kind}: {number_advice(argument.kind, sql=True)}."
    )


def _options(call: Call, kind: Aggregate, used: int) -> dict[str, Scalar]:
    """The constants after the column, by name."""
    if call.distinct and kind.statistic not in DISTINCT:
        raise ParameterError(
            f"{call.name}(DISTINCT ...) is refused: what one person changes depends on whether others have the same "
            "value. Leave DISTINCT out, or ask for COUNT(DISTINCT ...), SUM(DISTINCT ...) or AVG(DISTINCT ...)."
        )
    if call.ordered:
        raise ParameterError(
            f"ORDER BY inside {call.name} (or WITHIN GROUP) is not understood: write PERCENTILE_CONT(0.5) WITHIN GROUP "
            "(ORDER BY x), QUANTILE_CONT(x, 0.5) or MEDIAN(x)."
        )
    if call.names and any(call.names[:used]):
        raise ParameterError(f"the first argument of {call.name} is the column, without a name.")
    if kind.private and any(isinstance(part, Noisy) for node in call.arguments for part in below(node)):
        raise ParameterError(f"{call.name} takes no value of a subquery: ask for it first, and pass it as a parameter.")
    options: dict[str, Scalar] = {}
    for at, node in enumerate(call.arguments[used:]):
        name = call.names[used + at]
        if not name:
            if at >= len(kind.options):
                takes = (
                    f"after the column: {', '.join(kind.options)}" if kind.options else "one column and nothing else"
                )
                raise ParameterError(f"{call.name} takes {takes}.")
            name = kind.options[at]
        if name not in kind.options:
            hint = "" if kind.private else f" Write dp_{kind.statistic} for eps, lo and hi."
            raise ParameterError(f"{call.name} has no option {name}.{hint}")
        if name in options:
            raise ParameterError(f"{call.name} is given {name} twice.")
        options[name] = _constant(call.name, name, node)
    return options


def _constant(function: str, option: str, node: Node) -> Scalar:
    match node:
        case Constant(value) if not isinstance(node, Noisy):
            if isinstance(value, str | datetime.date) and not (option in ("lo", "hi") and are_dates([value])):
                raise ColumnTypeError(f"{option} of {function} must be a number, not a text or date.")
            return value
        case Cast(Constant(str() as value), to) if option in ("lo", "hi") and to.upper() in ("DATE", "TIMESTAMP"):
            return value
        case Operation("unary -" | "unary +" as sign, (only,)):
            value = _constant(function, option, only)
            return -value if sign == "unary -" and isinstance(value, int | float | Decimal) else value
    raise ParameterError(
        f"{option} of {function} must be a number written out or a parameter (? or $name): a value computed from the "
        "data would tell about them."
    )


def _eps(value: Scalar) -> object:
    if value is None:
        raise ParameterError("eps is NULL: write a number above 0.")
    return value


def _spec(name: str, kind: Aggregate, options: Mapping[str, Scalar]) -> object:
    if kind.statistic == "quantile":
        if "q" not in options:
            raise ParameterError(f"{name} needs the quantile after the column, as in {name}(distance, 0.9).")
        return "quantile", {"q": options["q"]}
    if kind.statistic in ("var", "std"):
        return kind.statistic, {"ddof": options.get("ddof", 1) if kind.ddof is None else kind.ddof}
    return kind.statistic
