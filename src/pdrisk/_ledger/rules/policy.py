"""Policy of a ledger: what an owner allows beside the budget."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from pdrisk._core.foreign import shown
from pdrisk._core.order import Quantile
from pdrisk._core.statistics import Count, Histogram, Statistic
from pdrisk._core.surveys.mean_change import MeanChange
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.surveys.weighted import WEIGHTED
from pdrisk._ledger.rules.limits import whole_number
from pdrisk._ledger.rules.names import folded
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.exponential import fraction_of
from pdrisk._model.arguments import (
    OF_TWO_COLUMNS,
    STATISTICS,
    epsilon,
)
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.query import (
    UNIT,
    Line,
    Query,
)
from pdrisk.errors import ColumnTypeError, ParameterError, PolicyError

OF_BINS = {False: {"hist"}, True: {"hist", "median", "quantile"}}  # statistics that bins are, or tell
ABOUT_A_GROUP = (*STATISTICS, *OF_TWO_COLUMNS, "hist", MeanChange.name)
SAME = {0.0: "min", 0.5: "median", 1.0: "max"}  # quantiles that have names of their own


@dataclass(frozen=True, slots=True)
class LeastGroup:
    """Least number of people for an answer; ``eps`` is the cost of the noisy number that decides it."""

    size: int
    eps: Fraction


@dataclass(frozen=True, slots=True)
class Policy:
    """Owner's rules for every question.

    Attributes
    ----------
    bounds_from_data, keys_from_data : bool
        Whether ``bounds="column"`` and ``keys="observed"`` may be asked, which are not differential privacy.
    refuse_statistics, refuse_columns : tuple of str
        What may not be asked for.
    round_to : tuple of (str, float)
        For a statistic the base that its noisy answers are rounded to.
    least_group : LeastGroup or None
        Answers about fewer people are withheld.
    curator_facts : bool
        Whether the ledger keeps what answers meant for the people in these data.
    curators : tuple of str
        The analysts who may see what depends on the data, besides noisy answers.
    person : hashable or None
        The column that says who a person is: a rule of the first edition, now declared in a `Dataset`. The ledger then
        keeps what all answers meant for each of them.
    """

    bounds_from_data: bool = False
    keys_from_data: bool = False
    refuse_statistics: tuple[str, ...] = ()
    refuse_columns: tuple[str, ...] = ()
    round_to: tuple[tuple[str, float], ...] = ()
    least_group: LeastGroup | None = None
    curator_facts: bool = False
    curators: tuple[str, ...] = ()
    person: Hashable | None = None

    @classmethod
    def given(cls, rules: object) -> Policy:
        """The rules as an owner writes them.

        Raises
        ------
        ColumnTypeError, ParameterError
            If a rule is unknown or of another kind.
        """
        policy = cls.stored(rules)
        if policy.person is not None:
            raise ParameterError(
                "a ledger has no rule about who a person is any more: declare the column of ids with the data, as in "
                'pdrisk.Dataset(frame, person="pid", per_person="one", ledger=ledger).'
            )
        return policy

    @classmethod
    def stored(cls, rules: object) -> Policy:
        """The rules from the stored `said`, also of the first edition with its rule ``person``; raises as `given`."""
        if not isinstance(rules, Mapping):
            raise ColumnTypeError('policy must be a dict of rules, as in {"refuse_columns": ["income"]}.')
        known = [field.name for field in fields(cls)]
        offered = [name for name in known if name != "person"]
        values: dict[str, Any] = {}
        for name in islice(rules, len(known) + 1):
            value = rules[name]
            if name not in known:
                raise ParameterError(
                    f"unknown rule {shown(name)}; available: {', '.join(offered)}.{did_you_mean(name, offered)}"
                )
            if name.endswith("_from_data") or name == "curator_facts":
                if not isinstance(value, bool):
                    raise ColumnTypeError(f"{name} must be True or False, not of type {type(value).__name__}.")
                values[name] = value
            elif name == "round_to":
                values[name] = _bases(value)
            elif name == "least_group":
                values[name] = _least(value)
            elif name == "person":
                if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                    raise ColumnTypeError(f"person must be the name of a column, not of type {type(value).__name__}.")
                values[name] = value
            else:
                values[name] = _names(name, value)
        named = [*values.get("refuse_statistics", ()), *(name for name, _ in values.get("round_to", ()))]
        if unknown := [name for name in named if name not in (*ABOUT_A_GROUP, "suggest_bounds")]:
            there = ", ".join((*STATISTICS, *OF_TWO_COLUMNS))
            raise ParameterError(f"unknown statistic {unknown[0]!r}; there are {there}.")
        return cls(**values)

    @property
    def said(self) -> dict[str, Any]:
        """The rules that differ from the default, as JSON values."""
        usual = asdict(Policy())
        rules = {name: value for name, value in asdict(self).items() if value != usual[name]}
        if self.round_to:
            rules["round_to"] = dict(self.round_to)
        if self.least_group is not None:
            rules["least_group"] = {"size": self.least_group.size, "eps": str(self.least_group.eps)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()}

    @property
    def keeps_facts(self) -> bool:
        """Whether the ledger keeps what answers meant."""
        return self.curator_facts or self.person is not None

    def for_person(self, person: Hashable | None) -> Policy:
        """These rules for a dataset with a column that tells people apart, if one is declared."""
        return self if person is None else replace(self, person=person)

    def has_curator(self, analyst: str) -> bool:
        """Whether an analyst is one of the curators; names are compared like those of analysts."""
        return folded(analyst) in map(folded, self.curators)

    def cost(self, query: Query) -> Fraction:
        """Cost of a query under these rules, with what they add to it."""
        return query.eps + self.added(query)

    def added(self, query: Query) -> Fraction | int:
        """Cost of the noisy numbers of people that decide what is withheld."""
        return sum(self.counted(query)) * query.times

    def counted(self, query: Query) -> list[Fraction]:
        """The eps of each noisy number of people that decides what is withheld: one for each set of records."""
        if self.least_group is None:
            return []
        return [self.least_group.eps] * len({line.people for line in query.lines if self.least_group_of(line)})

    def least_group_of(self, line: Line) -> LeastGroup | None:
        """Least number of people of a line; None for a search for bounds, which is about no group."""
        if self.least_group is None:
            return None
        return self.least_group if _plain_name(line.statistic) in ABOUT_A_GROUP else None

    @property
    def hides_parts(self) -> bool:
        """Whether the numbers that an answer is made of, such as the sum and count of a mean, may not be let out."""
        return bool(self.round_to or self.refuse_statistics)

    def base_of(self, statistic: Statistic) -> float | None:
        """Base to which answers of a statistic are rounded: the coarsest of those for its names."""
        if not self.round_to:
            return None
        return max((base for name, base in self.round_to if name in _names_of(statistic)), default=None)


def _is_one_number(line: Line) -> bool:
    return bool(_names_of(line.statistic) & {"count", "sum"})


def _names_of(statistic: Statistic) -> set[str]:
    """All names of a statistic; a quantile also by the exact fraction that is answered."""
    names = {_plain_name(statistic)}
    if isinstance(statistic, Histogram):
        names.add("count")
    if isinstance(statistic, MeanChange) or _plain_name(statistic) == MeanChange.name:
        names.add("mean")
    if isinstance(statistic, Quantile) and (same := SAME.get(float(fraction_of(statistic.q)))):
        names.add(same)
    return names


def _plain_name(statistic: Statistic) -> str:
    """Name of a statistic, or of the one that it is with all weights the same."""
    return statistic.name.removeprefix(WEIGHTED)


def _least(rule: object) -> LeastGroup:
    if not isinstance(rule, Mapping) or set(rule) != {"size", "eps"}:
        raise ColumnTypeError(
            "least_group must say how many people an answer needs, and what it may cost to look, as in "
            '{"size": 20, "eps": 0.1}.'
        )
    eps = epsilon(_exactly(rule["eps"]))
    calibrated("geometric", Count(), UNIT, eps).check()
    return LeastGroup(whole_number("size of least_group", rule["size"]), eps)


def _exactly(eps: object) -> object:
    """A stored number, which must be a text."""
    try:
        return Fraction(eps) if isinstance(eps, str) else eps
    except (ValueError, ZeroDivisionError):
        return eps  # which is then refused as text


def _names(rule: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ColumnTypeError(f"{rule} must be a list of names, not of type {type(value).__name__}.")
    return tuple(map(str, value))


def _bases(rule: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(rule, Mapping):
        raise ColumnTypeError('round_to must be a dict from statistic to base, as in {"count": 5}.')
    bases = {}
    for name, base in rule.items():
        if isinstance(base, bool) or not isinstance(base, int | float):
            raise ColumnTypeError(f"a base of round_to must be a number, not of type {type(base).__name__}.")
        bases[str(name)] = number = float(base)
        if not 0 < number < math.inf:
            raise ParameterError(f"a base of round_to must be above 0 and finite, but is {number:g}.")
    return tuple(sorted(bases.items()))


def check_policy(query: Query, policy: Policy, name: str) -> None:
    """Refuse a query that the owner's rules do not allow."""
    asked = f"cannot answer {name}"
    from_data = any(line.statistic.bounded and line.universe is None for line in query.lines)
    if from_data and not policy.bounds_from_data:
        raise PolicyError(
            f'{asked} under a ledger: bounds="column" takes two people\'s values as they are, which no eps pays for. '
            "Declare bounds=(lo, hi)."
        )
    if query.groups is not None and query.groups.keys_from == "data" and not policy.keys_from_data:
        raise PolicyError(
            f'{asked} under a ledger: keys="observed" reveals which groups occur, and no eps pays for that. List '
            'the keys, or ask with keys="private" and delta=.'
        )
    if query.groups is not None and query.groups.keys_from == "categories" and not policy.keys_from_data:
        raise PolicyError(
            f'{asked} under a ledger: keys="categories" reveals which categories a column has, which may be those that '
            'occur. List the keys, or have the owner declare them, with df.dprisk.declare(keys={"region": '
            '"categories"}).'
        )
    if query.margins is not None and policy.least_group is not None:
        raise PolicyError(
            f"{asked} with margins: the owner has answers about few people withheld, and margins less the cells that "
            "are shown would tell what they are. Ask about each set of groups in a question of its own."
        )
    if query.margins is not None and any(policy.base_of(line.statistic) for line in query.lines):
        raise PolicyError(
            f"{asked} with margins: the owner has answers rounded, and rounded cells do not add up to their margins. "
            "Ask about each set of groups in a question of its own."
        )
    if query.sums_cells and (policy.least_group or any(policy.base_of(line.statistic) for line in query.lines)):
        raise PolicyError(
            f"{asked} for measures of inequality: they are made of all income bins, and the owner has answers about "
            "few people withheld, or counts rounded. Ask for quantiles and means instead."
        )
    if query.margins is not None and policy.hides_parts and any(not _is_one_number(line) for line in query.lines):
        raise PolicyError(
            f"{asked} with margins: they are made of counts and sums, and the owner has some statistics rounded or "
            "refused. Ask about each set of groups in a question of its own."
        )
    if policy.hides_parts and any(isinstance(line.statistic, SecondMoments) for line in query.lines):
        raise PolicyError(
            f"{asked} for a sampling error: it tells of counts and sums, and the owner has some statistics rounded or "
            "refused. Leave sampling= out."
        )
    if query.is_opaque and policy.refuse_columns:
        raise PolicyError(
            f"{asked} by a function of pdrisk.register: it cannot see which columns it is about, and the owner does "
            "not allow some. Ask with pdrisk.sql."
        )
    ruled = {*policy.refuse_statistics, *(name for name, _ in policy.round_to)}
    if query.bins_clamp is not None and (refused := sorted(ruled & OF_BINS[query.sums_cells])):
        raise PolicyError(
            f"{asked} in bins: the owner does not allow {refused[0]}, or has it rounded. Ask for another statistic."
        )
    for line in query.lines:
        if refused := sorted(_names_of(line.statistic) & set(policy.refuse_statistics)):
            raise PolicyError(f"{asked}: the owner does not allow {refused[0]}. Ask for another statistic.")
    if query.where is not None and not query.where.is_checked and policy.refuse_columns:
        raise PolicyError(
            f"{asked}: its filter is a mask or a function, which may look at columns that the owner does not allow. "
            "Write it as a text."
        )
    forbidden = {_folded(label) for label in policy.refuse_columns}
    for column in query.reads:
        if any(_folded(part) in forbidden for part in (column if isinstance(column, tuple) else (column,))):
            raise PolicyError(f"{asked}: the owner does not allow column {str(column)!r}. Ask about another column.")


def _folded(name: object) -> str:
    """A name in the form by which names are compared."""
    return unicodedata.normalize("NFC", str(name)).casefold().strip()
