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
        said = json.loads(text)
        return cls(
            Limits.stored(said["whole"]),
            Limits.stored(said["each_analyst"]),
            Policy.stored(said["policy"]),
            {folded(named("analyst", name)): Limits.stored(own) for name, own in said.get("analysts", {}).items()},
            named("owner", said["owner"]) if "owner" in said else None,
        )

    def is_owner(self, name: str) -> bool:
        """Whether this analyst entered the dataset; names are compared like those of analysts."""
        return self.owner is not None and folded(name) == folded(self.owner)

    def of_analyst(self, name: str) -> Limits:
        """Limits of one analyst alone."""
        own = Limits() if self.is_owner(name) else self.each
        return self.analysts.get(folded(name), own)

    @property
    def has_limits(self) -> bool:
        """Whether any limit is set, as a dataset needs."""
        return bool((self.whole.texts | self.each.texts).keys() - {"delta"})

    @property
    def text(self) -> str:
        """As JSON."""
        said: dict[str, Any] = {"whole": self.whole.texts, "each_analyst": self.each.texts, "policy": self.policy.said}
        if self.analysts:
            said["analysts"] = {name: own.texts for name, own in self.analysts.items()}
        if self.owner is not None:
            said["owner"] = self.owner
        return json.dumps(said, sort_keys=True)

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
        said = [f"{name}={shown(Fraction(text))}" for name, text in self.whole.texts.items()]
        said += [f"{name}={shown(Fraction(text))} for each analyst" for name, text in self.each.texts.items()]
        for analyst, own in self.analysts.items():
            limits = ", ".join(f"{name}={shown(Fraction(text))}" for name, text in own.texts.items())
            said.append(f"{limits or 'no limit'} for analyst {analyst!r}")
        return ", ".join([*said, *(f"{name}={value}" for name, value in self.policy.said.items())])


def each_given(said: object) -> Limits:
    """Limits of each analyst, as an owner writes them."""
    if not isinstance(said, Mapping):
        raise ColumnTypeError('each_analyst must be a dict of limits, as in {"eps": 1}.')
    return Limits.given(said)


def analysts_given(said: object) -> dict[str, Limits]:
    """Limits of single analysts, as an owner writes them: a number is an eps, None no limit."""
    if not isinstance(said, Mapping):
        raise ColumnTypeError('analysts must be a dict from name to limit, as in {"ann": 2, "dpo": None}.')
    found: dict[str, Limits] = {}
    for name, own in said.items():
        known = folded(named("analyst", name))
        if known in found:
            raise ParameterError(f"analysts names {known!r} twice: names that differ in capitals or blanks are one.")
        if own is None or isinstance(own, Mapping):
            found[known] = Limits.given(own or {})
        elif isinstance(own, numbers.Real) and not isinstance(own, bool):
            found[known] = Limits.given({"eps": own})
        else:
            raise ColumnTypeError(
                f'the limit of an analyst is an eps, a dict of limits as in {{"queries_per_day": 20}}, or None, not of '
                f"type {type(own).__name__}."
            )
    return found


def largest(limits: Sequence[Mapping[str, str]], name: str) -> Fraction | None:
    """The largest value of a limit that is still set; of what may be spent although it no longer is, none."""
    if name not in limits[-1]:
        return None
    return max(Fraction(limit[name]) for limit in limits if name in limit)
