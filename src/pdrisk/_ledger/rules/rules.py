"""Rules of a dataset: limits of all together and of each analyst, and what the owner allows."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pdrisk._ledger.rules.limits import Limits, shown
from pdrisk._ledger.rules.names import folded, named
from pdrisk._ledger.rules.policy import Policy
from pdrisk.errors import ColumnTypeError, ParameterError


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits and rules of a dataset."""

    # `whole`, `each`: of all analysts together, and of each one alone whom ``analysts`` does not name
    whole: Limits
    each: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    # of one analyst alone, by the name that `folded` makes of hers
    analysts: Mapping[str, Limits] = field(default_factory=dict)
    # Who entered the dataset: she has no limit of her own by default. None in ledgers of an earlier version,
    # where ``each`` holds for everybody.
    owner: str | None = None

    @classmethod
    def stored(cls, text: str) -> Rules:
        """Rules from their stored `text`; raises one of `store.WRONG` for anything else."""
        fields = json.loads(text)
        return cls(
            Limits.stored(fields["whole"]),
            Limits.stored(fields["each_analyst"]),
            Policy.stored(fields["policy"]),
            {
                folded(named("analyst", name)): Limits.stored(limits)
                for name, limits in fields.get("analysts", {}).items()
            },
            named("owner", fields["owner"]) if "owner" in fields else None,
        )

    def is_owner(self, name: str) -> bool:
        """Whether this analyst entered the dataset; names are compared like those of analysts."""
        return self.owner is not None and folded(name) == folded(self.owner)

    def of_analyst(self, name: str) -> Limits:
        """Limits of one analyst alone."""
        default = Limits() if self.is_owner(name) else self.each
        return self.analysts.get(folded(name), default)

    @property
    def has_limits(self) -> bool:
        """Whether any limit is set, as a dataset needs."""
        return bool((self.whole.texts | self.each.texts).keys() - {"delta"})

    @property
    def text(self) -> str:
        """As JSON."""
        fields: dict[str, Any] = {
            "whole": self.whole.texts,
            "each_analyst": self.each.texts,
            "policy": self.policy.said,
        }
        if self.analysts:
            fields["analysts"] = {name: limits.texts for name, limits in self.analysts.items()}
        if self.owner is not None:
            fields["owner"] = self.owner
        return json.dumps(fields, sort_keys=True)

    def amended(self, each_analyst: object, policy: object, analysts: object, limits: dict[str, Any]) -> Rules:
        """These rules with changes, as `Ledger.amend` takes them."""
        new = Limits.given(limits)
        if "risk" in limits and limits["risk"] is None:
            limits = {"eps": None} | limits
        merged = self.whole.texts | new.texts
        for name, value in limits.items():
            if value is None and name not in new.texts and name != "risk":
                merged.pop(name, None)
        after = replace(
            self,
            whole=Limits.stored(merged),
            each=self.each if each_analyst is None else each_given(each_analyst),
            policy=self.policy if policy is None else replace(Policy.given(policy), person=self.policy.person),
            analysts={**self.analysts, **({} if analysts is None else analysts_given(analysts))},
        )
        if not after.has_limits:
            raise ParameterError("a dataset needs a limit: without one a ledger holds nothing.")
        return after

    def __str__(self) -> str:
        phrases = [f"{name}={shown(Fraction(text))}" for name, text in self.whole.texts.items()]
        phrases += [f"{name}={shown(Fraction(text))} for each analyst" for name, text in self.each.texts.items()]
        for analyst, analyst_limits in self.analysts.items():
            limits = ", ".join(f"{name}={shown(Fraction(text))}" for name, text in analyst_limits.texts.items())
            phrases.append(f"{limits or 'no limit'} for analyst {analyst!r}")
        return ", ".join([*phrases, *(f"{name}={value}" for name, value in self.policy.said.items())])


def each_given(limits: object) -> Limits:
    """Limits of each analyst, as an owner writes them."""
    if not isinstance(limits, Mapping):
        raise ColumnTypeError('each_analyst must be a dict of limits, as in {"eps": 1}.')
    return Limits.given(limits)


def analysts_given(analysts: object) -> dict[str, Limits]:
    """Limits of single analysts, as an owner writes them: a number is an eps, None no limit."""
    if not isinstance(analysts, Mapping):
        raise ColumnTypeError('analysts must be a dict from name to limit, as in {"ann": 2, "dpo": None}.')
    limits: dict[str, Limits] = {}
    for name, limit in analysts.items():
        known = folded(named("analyst", name))
        if known in limits:
            raise ParameterError(f"analysts names {known!r} twice: names that differ in capitals or blanks are one.")
        if limit is None or isinstance(limit, Mapping):
            limits[known] = Limits.given(limit or {})
        elif isinstance(limit, numbers.Real) and not isinstance(limit, bool):
            limits[known] = Limits.given({"eps": limit})
        else:
            raise ColumnTypeError(
                f'the limit of an analyst is an eps, a dict of limits as in {{"queries_per_day": 20}}, or None, not of '
                f"type {type(limit).__name__}."
            )
    return limits


def largest(limits: Sequence[Mapping[str, str]], name: str) -> Fraction | None:
    """The largest value of a limit that is still set; of what may be spent although it no longer is, none."""
    if name not in limits[-1]:
        return None
    return max(Fraction(limit[name]) for limit in limits if name in limit)
