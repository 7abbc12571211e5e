"""Rules of a dataset: limits of all together and of each analyst, and what the owner allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pdrisk._ledger.limits import Limits, shown
from pdrisk._ledger.policy import Policy
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["Rules", "each_given"]


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits and rules of a dataset."""

    whole: Limits
    each: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)

    @classmethod
    def stored(cls, text: str) -> Rules:
        """Rules from their stored `text`; raises one of `store.WRONG` for anything else."""
        said = json.loads(text)
        return cls(Limits.stored(said["whole"]), Limits.stored(said["each_analyst"]), Policy.stored(said["policy"]))

    @property
    def has_limits(self) -> bool:
        """Whether any limit is set, as a dataset needs."""
        return bool((self.whole.texts | self.each.texts).keys() - {"delta"})

    @property
    def text(self) -> str:
        """As JSON."""
        said = {"whole": self.whole.texts, "each_analyst": self.each.texts, "policy": self.policy.said}
        return json.dumps(said, sort_keys=True)

    def amended(self, each_analyst: object, policy: object, limits: dict[str, Any]) -> Rules:
        """These rules with changes, as `Ledger.amend` takes them.

        Raises
        ------
        ParameterError
            If nothing is limited any more, or a rule is wrong.
        """
        new = Limits.given(limits)
        if "risk" in limits and limits["risk"] is None:
            limits = {"eps": None} | limits
        merged = self.whole.texts | new.texts
        for name, value in limits.items():
            if value is None and name not in new.texts and name != "risk":
                merged.pop(name, None)
        after = Rules(
            Limits.stored(merged),
            self.each if each_analyst is None else each_given(each_analyst),
            self.policy if policy is None else replace(Policy.given(policy), person=self.policy.person),
        )
        if not after.has_limits:
            raise ParameterError("a dataset needs a limit: without one a ledger holds nothing.")
        return after

    def __str__(self) -> str:
        said = [f"{name}={shown(Fraction(text))}" for name, text in self.whole.texts.items()]
        said += [f"{name}={shown(Fraction(text))} for each analyst" for name, text in self.each.texts.items()]
        return ", ".join([*said, *(f"{name}={value}" for name, value in self.policy.said.items())])


def each_given(said: object) -> Limits:
    """Limits of each analyst, as an owner writes them."""
    if not isinstance(said, Mapping):
        raise ColumnTypeError('each_analyst must be a dict of limits, as in {"eps": 1}.')
    return Limits.given(said)
