"""Arguments of requests, read into values: an eps, bounds, statistics."""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from pdrisk._core.foreign import LONGEST, as_integer, shown
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.pairs import Corr, Cov, PairStatistic, Slope
from pdrisk._core.risks.risk import check_metric, privacy_loss
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Proportion, Statistic, Sum
from pdrisk._core.surveys.mean_change import MeanChange
from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nearest import misspelt
from pdrisk._model.missing_arguments import missing_argument
from pdrisk._model.plain import are_dates, days_between, float_of, plain_key, plain_number, plain_value
from pdrisk.errors import ColumnTypeError, ParameterError

STATISTICS: Final = ("count", "sum", "mean", "median", "quantile", "min", "max", "var", "std", "nunique", "proportion")
OF_TWO_COLUMNS: Final = ("corr", "cov", "slope")
LACKS_EPS: Final = "eps=, the privacy loss to spend, usually 0.1 to 2, or risk="
#: What to write instead of a mode.
MODE: Final = 'the most frequent value is the first of .value_counts("region", keys=[...], eps=1), as noise permits'
TABLES: Final = ("crosstab", "describe", "hist", "value_counts")
#: Other names of the same statistics.
SAME: Final = {
    **dict.fromkeys(("average", "avg"), "mean"), **dict.fromkeys(("size", "len"), "count"), "variance": "var",
    **dict.fromkeys(("stddev", "stdev"), "std"), "minimum": "min", "maximum": "max", "total": "sum",
    **dict.fromkeys(("n_unique", "count_distinct", "distinct"), "nunique"),
}  # fmt: skip
#: A statistic with its parameter, as in ``quantile(0.9)``, ``quantile(q=0.9)`` or ``var(ddof=0)``.
_WRITTEN: Final = re.compile(r"(?P<name>\w+)\s*\(\s*(?:(?P<parameter>\w+)\s*=\s*)?(?P<value>[\w.+-]+)\s*\)")
#: Parts of the fraction that a quantile may be, and how far q may be from it, since floats are rounded.
SMALL: Final = 1000
NEAR: Final = 1e-9
_PARAMETER: Final = {
    "quantile": "q", "var": "ddof", "std": "ddof", "min": "bounds_reached", "max": "bounds_reached",
}  # fmt: skip
MOST_STATISTICS: Final = 10_000  # of one column
MOST_ROWS: Final = 2**53  # that noise is judged by: of more it is no wider
MOST_BITS: Final = 4096  # of the exact fraction that an eps is: more than a thousand digits
_NO_BOUNDS = 'bounds must be a pair (lo, hi) of numbers or the word "column", but is {}.'


def epsilon(eps: object = None, risk: object = None, prior: object = None) -> Fraction:
    """The privacy loss asked for, exactly as written: ``0.1`` is a tenth.

    ``eps``: finite and above 0.
    ``risk``: highest worst-case risk, in (0, 1) and above the prior; exactly one of ``eps`` and ``risk`` is given.
    ``prior``: what the attacker believes before, for ``risk``; 1/2 by default.
    """
    if (eps is None) == (risk is None):
        both = "not both" if eps is not None else "neither was given"
        advice = f"pass exactly one of eps= and risk= ({both}): eps=1, or risk=0.75 for the risk it means."
        raise ParameterError(advice) if eps is not None else missing_argument(advice, LACKS_EPS)
    if risk is not None:
        own_prior = 0.5 if prior is None else checked_probability("prior", prior)
        return Fraction(float(privacy_loss(checked_probability("risk", risk), own_prior)))
    if prior is not None:
        raise ParameterError("prior= belongs to risk=; with eps= the loss is what it is.")
    plain = plain_number("eps", eps)
    number = float_of("eps", plain)
    if not math.isfinite(number) or number <= 0:
        advice = "Usual values are 0.1 to 2."
        if number == 0:
            advice = f"An answer that costs no privacy at all would be noise alone. {advice}"
        if number == math.inf:
            advice = "Where epsilon_for returns inf, any eps will do: choose one by the accuracy you need."
        raise ParameterError(f"eps must be finite and above 0, but is {number:g}. {advice}")
    return as_written("eps", plain)


def asked_epsilon(eps: object, risk: object, prior: object, success: object) -> Fraction:
    """The same, where ``success`` may be given instead: then 1, which stands for what only the whole question tells.

    See `eps_for`.
    """
    given = sum(argument is not None for argument in (eps, risk, success))
    if given != 1:
        which = ("none was given", "", "not both", "not all")[given]
        advice = (
            f"pass exactly one of eps=, risk= and success= ({which}): eps=1, risk=0.75 for the highest belief it may "
            "lead to, or success=0.6 for how often an attacker may be right."
        )
        raise ParameterError(advice) if given else missing_argument(advice, LACKS_EPS)
    if success is None:
        return epsilon(eps, risk, prior)
    checked_success(success)
    if prior is not None:
        raise ParameterError("prior= belongs to risk=: success= is that of an attacker who gives even odds.")
    return Fraction(1)


def checked_success(value: object) -> Fraction:
    """How often the best attacker with a coin's prior may be right, exactly as written."""
    plain = plain_number("success", value)
    number = float_of("success", plain)
    if not 0.5 < number < 1:
        raise ParameterError(
            f"success must be above 0.5, which guessing reaches, and below 1, but is {number:g}: 0.6 means that the "
            "best attacker is right about one person at most 60 of 100 times."
        )
    return as_written("success", plain)


def as_written(name: str, plain: Fraction | Decimal | float) -> Fraction:
    """A finite number exactly as it is written, unless that is too long."""
    if _bits(plain) > MOST_BITS:
        raise ParameterError(f"{name} has more than a thousand digits: round it.")
    return plain if isinstance(plain, Fraction) else Fraction(str(plain))


def _bits(number: object) -> int:
    """About the length in bits of the exact fraction of a number."""
    if isinstance(number, Decimal):
        return 4 * len(number.as_tuple().digits)
    return max(number.numerator.bit_length(), number.denominator.bit_length()) if isinstance(number, Fraction) else 0


def data_dependent(metric: object) -> ParameterError:
    """The error for a metric that may not calibrate a release."""
    check_metric(metric)
    return ParameterError(
        f"{metric} cannot calibrate a release: it depends on the data, so its eps would reveal something about them, "
        f"and bound nobody's risk. Plan with df.dprisk.epsilon_for(..., metric={metric!r}), round the result to a grid "
        "you chose beforehand, and ask with eps=."
    )


def checked_flag(name: str, value: object) -> bool:
    """A truth value, or the error for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ColumnTypeError(f"{name} is True or False, not of type {type(value).__name__}.")
    return bool(value)


def checked_mechanism(name: object) -> str:
    """The name of a mechanism, or the error for anything but a text; `mechanism_for` knows the names."""
    if not isinstance(name, str):
        raise ColumnTypeError(f'mechanism is a name, such as "auto", not of type {type(name).__name__}.')
    return name


def checked_number(n_at_least: object) -> int | None:
    """Declared least number of rows; None if it is not declared."""
    if n_at_least is None:
        return None
    if isinstance(n_at_least, bool | np.bool_) or not isinstance(n_at_least, numbers.Integral):
        raise ColumnTypeError(f"n_at_least is a whole number, not of type {type(n_at_least).__name__}.")
    if n_at_least < 1:
        raise ParameterError("n_at_least, how many rows there are at the least, must be 1 or more.")
    return min(int(n_at_least), MOST_ROWS)


def checked_probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1, or the error for anything else."""
    number = float_of(name, value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} must be a probability above 0 and below 1, but is {number:g}.")
    return number


def universe(bounds: object, *, dates: bool = False) -> Universe:
    """The universe that a caller's ``(lo, hi)`` declares; with ``dates`` it may be one of `Days`."""
    if isinstance(bounds, str | bytes | Mapping | set | frozenset) or not isinstance(bounds, Iterable):
        raise ColumnTypeError(_NO_BOUNDS.format(_kind(bounds)))
    if isinstance(bounds, np.ndarray) and bounds.ndim != 1:
        raise ColumnTypeError(_NO_BOUNDS.format("an array that is not one-dimensional"))
    try:
        ends = list(itertools.islice(bounds, 3))
    except TypeError:  # as a pd.col expression, which looks as if it could be iterated
        ends = None
    if ends is None:
        raise ColumnTypeError(_NO_BOUNDS.format(_kind(bounds)))
    if len(ends) != 2:
        has = ("no value", "one value", "", "more than two values")[len(ends)]
        raise ParameterError(f"bounds must be a pair (lo, hi), but has {has}.")
    if dates and are_dates(ends):
        return days_between(ends)
    return Universe(float_of("lo of bounds", ends[0]), float_of("hi of bounds", ends[1]))


def statistic(spec: object) -> Statistic:
    """A statistic from its name, with its parameter if it has one, or from a pair of name and parameters.

    ``spec``: as in ``"mean"``, ``"quantile(0.9)"``, ``"var(ddof=0)"``, ``("quantile", {"q": 0.9})``.
    """
    if isinstance(spec, Statistic):
        return spec
    parameters: Mapping[str, object] = {}
    name = spec
    if isinstance(spec, tuple | list) and len(spec) == 2 and isinstance(spec[1], Mapping):
        name, parameters = spec
    if not isinstance(name, str):
        raise ColumnTypeError(
            f'a statistic is a name, as "mean" or "quantile(0.9)"; this one is {_kind(spec)}.{_of_function(spec)}'
        )
    if not parameters and "(" in name and (match := _WRITTEN.fullmatch(name.strip()[: LONGEST + 1])):
        name = match["name"]
        if name in STATISTICS and name not in _PARAMETER:
            raise ParameterError(f"{name} takes no parameter.")
        parameters = {match["parameter"] or _PARAMETER.get(name, ""): _written(match["value"])}
    if name in OF_TWO_COLUMNS:
        raise ParameterError(
            f"{name} is a statistic of two columns, and only those of one column can be asked for here: ask for it "
            'alone, as in df.dprisk.corr("hours", "income", eps=1), or in SQL.'
        )
    if name == MeanChange.name:
        return _change(parameters)
    if name == "mode":
        raise ParameterError(f"mode is no statistic: {MODE}.")
    if name in TABLES:
        raise ParameterError(f"{name} gives a table and is no statistic: ask df.dprisk.{name}(...).")
    if name not in STATISTICS:
        hint = f" Write {SAME[name.lower()]!r}." if name.lower() in SAME else misspelt(name, STATISTICS)
        raise ParameterError(f"unknown statistic {shown(name)}; it must be one of {', '.join(STATISTICS)}.{hint}")
    if extra := [parameter for parameter in itertools.islice(parameters, 3) if parameter != _PARAMETER.get(name)]:
        raise ParameterError(f"{name} takes no {', '.join(sorted(str(parameter)[:LONGEST] for parameter in extra))}=.")
    if name == "quantile":
        if "q" not in parameters:
            raise ParameterError('quantile needs q, as in "quantile(0.9)".')
        return Quantile(_checked_quantile(parameters["q"]))
    if name in ("var", "std"):
        ddof = _checked_ddof(parameters.get("ddof", 1))
        return Var(ddof) if name == "var" else Std(ddof)
    if name in ("min", "max"):
        reached = checked_flag("bounds_reached", parameters.get("bounds_reached", False))
        return Min(reached) if name == "min" else Max(reached)
    plain: dict[str, type[Statistic]] = {
        "count": Count, "sum": Sum, "mean": Mean, "median": Median, "nunique": Distinct,
        "proportion": Proportion,
    }  # fmt: skip
    return plain[name]()


def one_wave(wave: object) -> ParameterError:
    """The error for a change from a wave to itself."""
    return ParameterError(f"change is between two waves, and from_ and to are both {shown(wave)}: pass another.")


def _change(parameters: Mapping[str, object]) -> MeanChange:
    """A change between two waves; whether the column has such values is for the data's types to say."""
    if set(itertools.islice(parameters, 4)) != {"wave", "from_", "to"}:
        raise ParameterError('a change is ("change", {"wave": column, "from_": wave, "to": wave}).')
    wave = plain_key(parameters["wave"], "wave, the name of a column,")
    ends = [plain_value(parameters[name], name) for name in ("from_", "to")]
    if None in ends:
        raise ParameterError("change is between two waves, and a missing value is none: pass from_= and to=.")
    if ends[0] == ends[1]:
        raise one_wave(ends[0])
    return MeanChange(wave=wave, from_=ends[0], to=ends[1])


def statistic_of_two(name: str, ddof: object = 1) -> PairStatistic:
    """A statistic of two columns by its name, one of `OF_TWO_COLUMNS`; ``ddof`` is that of a covariance."""
    if name == "cov":
        return Cov(_checked_ddof(ddof))
    return Corr() if name == "corr" else Slope()


def of_numbers(candidate: Statistic) -> Statistic:
    """The statistic, unless it is about values of any kind: worlds and samples are numbers."""
    if candidate.needs.distinct:
        raise ParameterError(
            f"{candidate.label} is about values of any kind, and not supported here: ask df.dprisk for it."
        )
    return candidate


def statistics(specs: object) -> tuple[Statistic, ...]:
    """One or several statistics, each as `statistic` takes it."""
    if isinstance(specs, str | Statistic) or (
        isinstance(specs, tuple) and len(specs) == 2 and isinstance(specs[1], Mapping)
    ):
        specs = [specs]
    if not isinstance(specs, list | tuple) or not specs:
        raise ColumnTypeError(
            'statistics must be a name or a list of names, as in ["mean", "median"]; no functions.'
            + _of_function(specs)
        )
    listed = tuple(statistic(spec) for spec in itertools.islice(specs, MOST_STATISTICS + 1))
    if len(listed) > MOST_STATISTICS:
        raise ParameterError(f"statistics lists more than {MOST_STATISTICS:,}: list fewer.")
    if repeated := next((entry.label for entry, times in Counter(listed).items() if times > 1), None):
        raise ParameterError(f"{repeated} is asked for twice; ask once.")
    return listed


def check_step(step: object) -> None:
    """Refuse a step that declares nothing about whole numbers."""
    if step is not None and (isinstance(step, bool) or not isinstance(step, numbers.Real) or step != 1):
        raise ParameterError("step is 1, which declares that the values are whole numbers; leave it out otherwise.")


def _checked_quantile(q: object) -> float:
    number = float_of("q", q)
    if not 0 <= number <= 1:
        raise ParameterError(f"q must be between 0 and 1, but is {number:g}: the 90th percentile is q=0.9.")
    if abs(Fraction(number).limit_denominator(SMALL) - Fraction(number)) > NEAR:
        raise ParameterError(
            f"q is {number}, which is no fraction of {SMALL} parts or fewer: give at most three decimals, as in "
            "0.995, or a small fraction, as in 1/3."
        )
    return number


def _checked_ddof(ddof: object) -> int:
    ddof = as_integer(ddof)
    if isinstance(ddof, bool | np.bool_) or not isinstance(ddof, numbers.Integral) or ddof not in (0, 1):
        raise ParameterError(
            f"ddof must be 0 (population) or 1 (sample), but is {'missing' if ddof is None else shown(ddof)}."
        )
    return int(ddof)


def _written(value: str) -> object:
    """A parameter in a statistic's name: a whole number, another number, a truth value, or text."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return {"True": True, "False": False}.get(value, value)


def _of_function(value: object) -> str:
    """What to write instead of a function such as ``np.mean``; "" for anything else."""
    name = getattr(value, "__name__", "") if type(value).__module__ in ("builtins", "numpy") else ""
    return f" Write {SAME.get(name, name)!r}." if name in STATISTICS or name in SAME else ""


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"
