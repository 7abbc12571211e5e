"""The judged request: everything that can be wrong without data is refused here, for every front end."""

from __future__ import annotations

import itertools
import math
import numbers
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from pdrisk._core.foreign import LONGEST, shown
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.pairs import Corr, Cov, PairStatistic, Slope
from pdrisk._core.replaced import SumOfSize, WholeSumOfSize
from pdrisk._core.risk import check_metric, privacy_loss
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Proportion, Statistic, Sum, WholeSum
from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS, WITH_INTERVAL, Exponential, Mechanism, calibrated, mechanism_for
from pdrisk._model.nearest import did_you_mean
from pdrisk._model.plain import float_of, plain_number
from pdrisk._model.rowwise import Derived, RowwiseFilter
from pdrisk._printing import printable
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = [
    "MOST_STATISTICS",
    "OF_TWO_COLUMNS",
    "STATISTICS",
    "Groups",
    "Line",
    "Query",
    "Source",
    "answered_by",
    "checked_probability",
    "data_dependent",
    "epsilon",
    "of_numbers",
    "statistic",
    "statistic_of_two",
    "statistics",
    "universe",
    "written",
]

STATISTICS: Final = ("count", "sum", "mean", "median", "quantile", "min", "max", "var", "std", "nunique", "proportion")
OF_TWO_COLUMNS: Final = ("corr", "cov", "slope")
MOST_STATISTICS: Final = 10_000  # of one column
LARGEST_WHOLE: Final = 2**31  # of a whole sum's records: then those of 2**31 people are exact in 64 bits
MOST_BITS: Final = 4096  # of the exact fraction that an eps is: more than a thousand digits
Source = Literal["given", "declared", "data"]
UNIT: Final = Universe(0.0, 1.0)  # where bounds come from the data and are not known yet


@dataclass(frozen=True, slots=True)
class Line:
    """One statistic of one column, and the mechanism that answers it.

    A ``universe`` of None is to be taken from the data. ``condition`` says which records it alone looks at, beside the
    filter of the query; ``values`` what is read, where ``column`` is only its heading. An ``indicator`` is read in the
    place of a column: 1 where it holds, else 0. A statistic of two columns has an ``other`` one, and a `Rectangle`.
    ``together`` are the statistics drawn with it, its own among them, where the draw depends on which they are.
    """

    column: Hashable | None
    statistic: Statistic
    universe: Universe | None
    bounds_from: Source | None
    condition: str | None = None
    values: str | None = None
    mechanism: str = "laplace"
    indicator: RowwiseFilter | None = None
    other: Hashable | None = None
    together: tuple[Statistic, ...] = ()

    @property
    def needs(self) -> Needs:
        """What the statistic and its mechanism read of the data."""
        return MECHANISMS[self.mechanism].needs(self.statistic)

    @property
    def is_trusted(self) -> bool:
        """Whether a value that the caller computed is in the condition it reads."""
        return self.indicator is not None and self.indicator.trusted

    def calibrated(self, eps: Fraction, universe: Universe | None = None) -> Mechanism:
        """The mechanism at eps, within the universe that was declared, else within this one."""
        return calibrated(self.mechanism, self.statistic, self.universe or universe or UNIT, eps, self.together)

    @property
    def name(self) -> str:
        """As people write it: ``mean(distance)``."""
        return written(self.statistic.label, self.column, self.other)

    @property
    def people(self) -> tuple[Hashable | None, ...]:
        """Whose values it uses: equal for lines about the same records."""
        own = (self.column if self.values is None else self.values), self.condition
        return own if self.other is None else (*own, self.other)


@dataclass(frozen=True, slots=True)
class Groups:
    """Disjoint groups and the public list of their keys, in the order of the answer.

    Attributes
    ----------
    columns : tuple of hashable
    keys : tuple of tuple, or None
        One value for each column, None for missing; None altogether: taken from the data.
    keys_from : {"given", "declared", "data"}
    """

    columns: tuple[Hashable, ...]
    keys: tuple[tuple[Hashable, ...], ...] | None
    keys_from: Source


@dataclass(frozen=True, slots=True)
class Query:
    """An immutable request.

    Attributes
    ----------
    shares : tuple of Fraction
        What each release may spend; the groups of one release cost it once. Empty for what is only looked at.
    missing : dict from column to codes
        Values that stand for a missing answer, of every column it reads.
    reads : tuple of hashable
        The columns it looks at, as far as that is known; of derived ones those that they are made of.
    derived : tuple of Derived
        The columns it looks at that are computed row by row.
    source, condition : str or None
        What it reads in SQL, and the filter that is part of that.
    times : int
        How often it is paid: for groups that nobody knows to be disjoint.
    is_opaque : bool
        Whether nothing else is known of it: not the columns it reads, nor whether it has a filter or groups.
    trusted : bool
        Whether a value that the caller computed is in a filter of ``condition``, a group or an argument.
    said : str or None
        All that decides the answer and stands nowhere else here, in one spelling, by which ledgers remember answers;
        None where only the caller knows.
    places : tuple of int or None
        Where the columns stand that it reads, if the data have other names for them than ``reads``.
    releases : tuple of int
        The release that answers each line, numbered from 0 in the order of their first lines. Several lines may share
        one, which is drawn and paid once: their mechanisms differ in nothing but the statistic. Each line has its own
        unless said otherwise.
    """

    lines: tuple[Line, ...]
    shares: tuple[Fraction, ...]
    where: RowwiseFilter | None = None
    groups: Groups | None = None
    missing: Mapping[Any, tuple[Hashable, ...]] = field(default_factory=dict)
    reads: tuple[Hashable, ...] = ()
    derived: tuple[Derived, ...] = ()
    source: str | None = None
    condition: str | None = None
    times: int = 1
    is_opaque: bool = False
    trusted: bool = False
    said: str | None = None
    places: tuple[int, ...] | None = None
    releases: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.releases:
            object.__setattr__(self, "releases", tuple(range(len(self.lines))))

    @property
    def leads(self) -> tuple[int, ...]:
        """For each release the line whose records it is drawn from: the first that has bounds, else its first."""
        found: dict[int, int] = {}
        for at, release in enumerate(self.releases):
            before = found.setdefault(release, at)
            if self.lines[at].statistic.bounded and not self.lines[before].statistic.bounded:
                found[release] = at
        return tuple(found.values())

    @property
    def line_shares(self) -> tuple[Fraction, ...]:
        """For each line what its release may spend."""
        return tuple(self.shares[release] for release in self.releases)

    def needs_of(self, line: int, universe: Universe) -> Needs:
        """What a line reads, in its universe: at the eps that it may spend, if that is known."""
        own = self.lines[line]
        return own.calibrated(self.line_shares[line], universe).reads if self.shares else own.needs

    @property
    def is_private(self) -> bool:
        """Whether all that is declared was declared, so that eps says what it should."""
        listed = self.groups is None or self.groups.keys is not None
        return listed and all(line.universe is not None or not line.statistic.bounded for line in self.lines)

    @property
    def replaces(self) -> bool:
        """Whether neighbours differ by another value of one record, and the number of records is public."""
        return any(line.statistic.replaces for line in self.lines)

    @property
    def eps(self) -> Fraction:
        """The total of all releases."""
        return sum(self.shares, Fraction(0)) * self.times


def answered_by(
    line: Line, mechanism: object, *, whole: bool = False, joint: bool = False, interval: object = False
) -> Line:
    """The line with the mechanism that answers it.

    Parameters
    ----------
    line : Line
    mechanism : str
        ``"auto"`` or the name of one.
    whole : bool
        Whether the values are declared to be whole numbers: then a sum is one, and so are the points that a quantile is
        chosen among, unless Laplace noise is asked for.
    joint : bool
        Whether the line may have to share its release with others of its column: see `joined`.
    interval : bool
        Whether the answer must have one, even at a share of eps.
    """
    joint = joint and line.column is not None
    if not isinstance(mechanism, str):
        raise ColumnTypeError(f'mechanism is a name, such as "auto", not of type {type(mechanism).__name__}.')
    if not isinstance(interval, bool | np.bool_):
        raise ColumnTypeError(f"interval is True or False, not of type {type(interval).__name__}.")
    if whole and mechanism != "laplace" and line.universe is not None:
        lo, hi = math.ceil(line.universe.lo), math.floor(line.universe.hi)
        own = _of_whole_numbers(line.statistic, mechanism, (lo + hi) // 2, joint=joint)
        if own is not None and lo < hi and line.universe.magnitude <= LARGEST_WHOLE:
            line = replace(line, statistic=own, universe=Universe(float(lo), float(hi)))
    chosen = mechanism_for(line.statistic, mechanism, joint=joint)
    if getattr(line.statistic, "bounds_reached", False) and not issubclass(chosen, Exponential):
        raise ParameterError(f"bounds_reached=True means nothing to mechanism {chosen.name!r}: leave one of them out.")
    return replace(line, mechanism=(WITH_INTERVAL.get(chosen, chosen) if interval else chosen).name)


def _of_whole_numbers(statistic: Statistic, mechanism: str, middle: int, *, joint: bool) -> Statistic | None:
    """The statistic of whole numbers, None if the mechanism that answers it knows no such thing."""
    if type(statistic) is Sum:
        return WholeSum()
    if type(statistic) is SumOfSize:
        return WholeSumOfSize(statistic.size, middle)
    if isinstance(statistic, Quantile | Min | Max):
        chosen = mechanism_for(statistic, mechanism, joint=joint)
        return replace(statistic, whole=True) if issubclass(chosen, Exponential) else None
    return None


def written(label: str, column: Hashable | None, other: Hashable | None = None) -> str:
    """A statistic of one column, or two, as people write it: ``mean(distance)``, ``quantile(0.9) of distance``."""
    if column is None:
        return f"{label}()"
    name = ", ".join(printable(str(each)) for each in (column, other) if each is not None)
    return f"{label} of {name}" if "(" in label else f"{label}({name})"


def epsilon(eps: object = None, risk: object = None, prior: object = None) -> Fraction:
    """The privacy loss asked for, exactly as written: ``0.1`` is a tenth.

    Parameters
    ----------
    eps : int, float, Decimal or Fraction, optional
        Finite and above 0.
    risk : float, optional
        Highest worst-case risk, in (0, 1) and above the prior; exactly one of ``eps`` and ``risk`` is given.
    prior : float, optional
        What the attacker believes before, for ``risk``; 1/2 by default.

    Raises
    ------
    ParameterError
        With what was given and what may be.
    """
    if (eps is None) == (risk is None):
        both = "not both" if eps is not None else "neither was given"
        raise ParameterError(f"pass exactly one of eps= and risk= ({both}): eps=1, or risk=0.75 for the risk it means.")
    if risk is not None:
        own_prior = 0.5 if prior is None else checked_probability("prior", prior)
        return Fraction(float(privacy_loss(checked_probability("risk", risk), own_prior)))
    if prior is not None:
        raise ParameterError("prior= belongs to risk=; with eps= the loss is what it is.")
    plain = plain_number("eps", eps)
    number = float_of("eps", plain)
    if not math.isfinite(number) or number <= 0:
        raise ParameterError(
            f"eps must be finite and above 0, but is {number:g}. Usual values are 0.1 to 2; "
            "where epsilon_for answers inf, any eps will do: choose one by the accuracy you need."
        )
    if _bits(plain) > MOST_BITS:
        raise ParameterError("eps has more than a thousand digits: round it.")
    return plain if isinstance(plain, Fraction) else Fraction(str(plain))


def _bits(eps: object) -> int:
    """About how long the exact fraction is that a number is."""
    if isinstance(eps, Decimal):
        return 4 * len(eps.as_tuple().digits)
    return max(eps.numerator.bit_length(), eps.denominator.bit_length()) if isinstance(eps, Fraction) else 0


def data_dependent(metric: object) -> ParameterError:
    """The error for a metric that may not calibrate a release."""
    check_metric(metric)
    return ParameterError(
        f"{metric} cannot calibrate a release: it depends on the data, so its eps would tell about them and bound "
        f"nobody's risk. Plan with df.dprisk.epsilon_for(..., metric={metric!r}), round the result to a grid you chose "
        "beforehand, and ask with eps=."
    )


def checked_probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = float_of(name, value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} must be a probability above 0 and below 1, but is {number:g}.")
    return number


_NO_BOUNDS = 'bounds must be a pair (lo, hi) of numbers or the word "column", but is {}.'


def universe(bounds: object) -> Universe:
    """The universe that a caller's ``(lo, hi)`` declares."""
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
    return Universe(float_of("lo of bounds", ends[0]), float_of("hi of bounds", ends[1]))


def statistic(spec: object) -> Statistic:
    """A statistic from its name, or a pair of name and parameters.

    Parameters
    ----------
    spec : str or (str, dict)
        As in ``"mean"``, ``("quantile", {"q": 0.9})``, ``("var", {"ddof": 0})``.
    """
    if isinstance(spec, Statistic):
        return spec
    parameters: Mapping[str, object] = {}
    name = spec
    if isinstance(spec, tuple | list) and len(spec) == 2 and isinstance(spec[1], Mapping):
        name, parameters = spec
    if not isinstance(name, str):
        raise ColumnTypeError(
            f'a statistic is a name or a pair like ("quantile", {{"q": 0.9}}), no function; this one is {_kind(spec)}.'
        )
    if name in OF_TWO_COLUMNS:
        raise ParameterError(
            f"{name} is of two columns, and this asks for statistics of one: ask for it alone, as in "
            'df.dprisk.corr("hours", "income", eps=1), or in SQL.'
        )
    if name not in STATISTICS:
        raise ParameterError(
            f"unknown statistic {shown(name)}; it must be one of {', '.join(STATISTICS)}."
            + did_you_mean(name, STATISTICS)
        )
    allowed = {
        "quantile": {"q"},
        "var": {"ddof"},
        "std": {"ddof"},
        "min": {"bounds_reached"},
        "max": {"bounds_reached"},
    }.get(name, set())
    if extra := [each for each in itertools.islice(parameters, 3) if each not in allowed]:
        raise ParameterError(f"{name} takes no {', '.join(sorted(str(each)[:LONGEST] for each in extra))}=.")
    if name == "quantile":
        if "q" not in parameters:
            raise ParameterError('quantile needs q, as in ("quantile", {"q": 0.9}).')
        return Quantile(_checked_quantile(parameters["q"]))
    if name in ("var", "std"):
        ddof = _checked_ddof(parameters.get("ddof", 1))
        return Var(ddof) if name == "var" else Std(ddof)
    if name in ("min", "max"):
        reached = parameters.get("bounds_reached", False)
        if not isinstance(reached, bool | np.bool_):
            raise ColumnTypeError(f"bounds_reached is True or False, not {_kind(reached)}.")
        return Min(bool(reached)) if name == "min" else Max(bool(reached))
    plain: dict[str, type[Statistic]] = {
        "count": Count, "sum": Sum, "mean": Mean, "median": Median, "nunique": Distinct,
        "proportion": Proportion,
    }  # fmt: skip
    return plain[name]()


def statistic_of_two(name: str, ddof: object = 1) -> PairStatistic:
    """A statistic of two columns by its name, one of `OF_TWO_COLUMNS`; ``ddof`` is that of a covariance."""
    if name == "cov":
        return Cov(_checked_ddof(ddof))
    return Corr() if name == "corr" else Slope()


def of_numbers(found: Statistic) -> Statistic:
    """The statistic, if it is one of numbers; of possible worlds and samples nothing else is known."""
    if found.needs.distinct:
        raise ParameterError(
            f"{found.label} is about values of any kind, and not supported here: ask df.dprisk for it."
        )
    return found


def statistics(specs: object) -> tuple[Statistic, ...]:
    """One or several statistics, each as `statistic` takes it."""
    if isinstance(specs, str | Statistic) or (
        isinstance(specs, tuple) and len(specs) == 2 and isinstance(specs[1], Mapping)
    ):
        specs = [specs]
    if not isinstance(specs, list | tuple) or not specs:
        raise ColumnTypeError('statistics must be a name or a list of names, as in ["mean", "median"]; no functions.')
    found = tuple(statistic(spec) for spec in itertools.islice(specs, MOST_STATISTICS + 1))
    if len(found) > MOST_STATISTICS:
        raise ParameterError(f"statistics lists more than {MOST_STATISTICS:,}: list fewer.")
    if repeated := next((each.label for each, times in Counter(found).items() if times > 1), None):
        raise ParameterError(f"{repeated} is asked for twice; ask once.")
    return found


def _checked_quantile(q: object) -> float:
    number = float_of("q", q)
    if not 0 <= number <= 1:
        raise ParameterError(f"q must be between 0 and 1, but is {number:g}: the 90th percentile is q=0.9.")
    return number


def _checked_ddof(ddof: object) -> int:
    if isinstance(ddof, bool | np.bool_) or not isinstance(ddof, numbers.Integral) or ddof not in (0, 1):
        raise ParameterError(
            f"ddof must be 0 (population) or 1 (sample), but is {'missing' if ddof is None else shown(ddof)}."
        )
    return int(ddof)


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"
