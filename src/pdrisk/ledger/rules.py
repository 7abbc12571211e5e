"""What holds for a dataset: limits of all together and of each analyst, and what the owner allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.ledger.limits import Limits, shown
from pdrisk.ledger.policy import Policy

__all__ = ["Rules", "each_given"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a dataset."""

    whole: Limits
    each: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)

    @classmethod
    def stored(cls, text: str) -> Rules:
        """From what `text` gave."""
        said = json.loads(text)
        try:
            policy = Policy.given(said["policy"])
        except ParameterError:
            raise KeyError from None  # as everything that no ledger wrote
        return cls(Limits.stored(said["whole"]), Limits.stored(said["each_analyst"]), policy)

    @property
    def text(self) -> str:
        """As JSON."""
        said = {"whole": self.whole.texts, "each_analyst": self.each.texts, "policy": self.policy.said}
        return json.dumps(said, sort_keys=True)

    def __str__(self) -> str:
        said = [f"{name}={shown(Fraction(text))}" for name, text in self.whole.texts.items()]
        said += [f"{name}={shown(Fraction(text))} for each analyst" for name, text in self.each.texts.items()]
        return ", ".join([*said, *(f"{name}={value}" for name, value in self.policy.said.items())])


def each_given(said: object) -> Limits:
    """The limits of each analyst, from what an owner writes."""
    if not isinstance(said, Mapping):
        raise ColumnTypeError('each_analyst must be a dict of limits, as in {"eps": 1}.')
    return Limits.given(said)
