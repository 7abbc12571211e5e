"""The curator's numbers of an answer, apart from what may be published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Curator:
    """The curator's numbers of one answer: they come from the data and must not be published.

    Attributes
    ----------
    n : int
        Number of records used.
    local_sensitivity : float
        Largest change that one record can make to the statistic in these data, in the unit of the answer.
    loss : float
        Privacy loss of the most exposed neighbour of these data, in nats; at most eps.
    two_worlds, many_worlds, identifiability : float
        Risks of the most exposed person: MATH.md of the docs, and `pdrisk.risk`; the last two NaN where n = 0, and
        where records are replaced.
    clamped : float
        Share of the records that lay outside the bounds and were moved to an end; 0 for counts, NaN where n = 0.
    unlisted : int or None
        Number of selected records whose person is not known; None of tables in a database, which do not tell.
    left_out : float or None
        Share of the records that do not count because ``rows=`` or ``groups=`` leaves them out; where people are
        counted, the share of people in groups. NaN where there are none, None where it is not known.
    """

    n: int
    local_sensitivity: float
    loss: float
    two_worlds: float
    many_worlds: float
    identifiability: float
    clamped: float
    unlisted: int | None = 0
    left_out: float | None = 0.0

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "n",
        "local_sensitivity",
        "two_worlds",
        "many_worlds",
        "identifiability",
        "clamped",
    )
    POSTERIORS: ClassVar[tuple[str, ...]] = ("two_worlds", "many_worlds", "identifiability")

    @classmethod
    def columns(cls, has_delta: bool) -> tuple[str, ...]:
        """Names of the table's columns; answers with delta have none for beliefs, which they do not bound."""
        return tuple(name for name in cls.COLUMNS if not (has_delta and name in cls.POSTERIORS))


@dataclass(frozen=True, slots=True)
class Exposed:
    """The curator's numbers of a line; with groups those of the most exposed group, and its name."""

    numbers: Curator
    group: str | None = None
