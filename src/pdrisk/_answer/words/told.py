"""What a release is, as far as it is told: declared facts, and the curator's apart."""

from __future__ import annotations

from dataclasses import dataclass

from pdrisk._core.risk import Risk

__all__ = ["Exposed", "Line", "Told"]


@dataclass(frozen=True, slots=True)
class Exposed:
    """The curator's part of a line; of several groups that of the most exposed one, with its name."""

    local_sensitivity: float
    n: int
    risk: Risk
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One statistic of one column.

    Attributes
    ----------
    value : float or None
        None where there are several, NaN where it is withheld.
    half : float
        The noise stays within it 95 % of the time; in the unit of the answer.
    """

    name: str
    eps: float
    bounds: tuple[float, float] | None
    scale: float
    half: float
    global_sensitivity: float
    value: float | None = None
    exposed: Exposed | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One release: everything that was answered, and paid for, together.

    Attributes
    ----------
    eps : float
        Of everything together, also of what was paid to see whether an answer is about enough people.
    extra : float
        How much of that this last part is; 0 without such a rule.
    least_group : int or None
        How many people are enough.
    """

    name: str
    lines: tuple[Line, ...]
    eps: float
    mechanism: str
    where: str | None = None
    where_trusted: bool = False
    bounds_from_data: bool = False
    grouped: bool = False
    keys_from_data: bool = False
    extra: float = 0.0
    least_group: int | None = None

    @property
    def several(self) -> bool:
        """Whether it is more than one number."""
        return self.grouped or len(self.lines) > 1

    @property
    def withheld(self) -> bool:
        """Whether its one number was not given out."""
        value = self.lines[0].value
        return value is not None and value != value  # NaN
