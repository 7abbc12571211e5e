"""Mean change of people between two waves of a panel."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import Mean
from pdrisk._core.universe import Universe


@dataclass(frozen=True, slots=True)
class MeanChange(Mean):
    """Mean difference of people's numbers between two waves: a mean of one record for each person in both.

    Attributes
    ----------
    wave : hashable
        Column that says in which wave a row is.
    from_, to : hashable
        The earlier and the later wave.
    """

    wave: Hashable = None
    from_: Hashable = None
    to: Hashable = None

    name: ClassVar[str] = "change"

    @property
    def label(self) -> str:
        return f"{self.name}({self.waves})"

    @property
    def waves(self) -> str:
        """Both waves as text."""
        return " to ".join(
            str(wave) if isinstance(wave, datetime.date) else shown(wave) for wave in (self.from_, self.to)
        )


def differences(universe: Universe) -> Universe:
    """Range of the difference of two numbers of a universe."""
    return Universe(universe.lo - universe.hi, universe.hi - universe.lo)
