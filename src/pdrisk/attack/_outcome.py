"""Outcome of an attack: what was claimed, and what an attacker achieved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from pdrisk._core.risks.binomial import LEVEL, clopper_pearson
from pdrisk._digits import probability
from pdrisk._pictures.canvas import COLOURS, INK, LINE, PALE, SIZE, WIDTH, WORDS, canvas, legible, lines_of, styled
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LEVEL", "Outcome", "Outcomes", "of_guesses"]

ROUNDING: Final = 1e-9  # of a claim
ACROSS: Final = 50  # signs of a picture in text
RIGHT, LOSS = "share of right guesses", "privacy loss in nats"
VERDICTS: Final = {
    "kept": "the attacker stays below the claim",
    "reached": "the attacker does as well as the claim allows",
    "broken": "the attacker does better than was claimed",
    "unprotected": "nothing was claimed",
}


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """Outcome of an attack: what an attacker achieved in many simulations, and what was claimed.

    Attributes
    ----------
    name : str
        Name of the attack.
    question : str
        Question that the attacker wants to answer.
    claimed : float or None
        Claimed upper limit of what an attacker achieves; None if nothing was claimed.
    achieved : float
        Share of right guesses; or a privacy loss in nats, if ``measure`` says so.
    low, high : float
        Clopper-Pearson interval of what the attacker achieves on average.
    chance : float
        What the attacker achieves without any answer.
    trials : int
        Number of simulated attacks.
    level : float
        Confidence level of the interval.
    details : dict from str to object
        Further observations.
    measure : str
        What the numbers measure.
    """

    name: str
    question: str
    claimed: float | None
    achieved: float
    low: float
    high: float
    chance: float
    trials: int
    level: float = LEVEL
    details: Mapping[str, Any] = field(default_factory=dict)
    measure: str = RIGHT

    @property
    def verdict(self) -> str:
        """Verdict on the claim: ``"kept"``, ``"reached"`` or ``"broken"``.

        The interval lies below the claim, holds it, or lies above it. ``"unprotected"`` if nothing was claimed.
        """
        if self.claimed is None:
            return "unprotected"
        if self.low > self.claimed + ROUNDING:
            return "broken"
        return "kept" if self.high < self.claimed - ROUNDING else "reached"

    def to_dict(self) -> dict[str, Any]:
        """Dict of all fields and the verdict, flat except for the details."""
        return asdict(self) | {"verdict": self.verdict}

    def picture(self) -> Figure:
        """Picture of the claim, and of what was achieved with its interval, on one axis; needs matplotlib.

        `picture_text` is the same in signs and numbers.
        """
        title = _title(f"{self.name}: {self.question}")
        figure = canvas(1.55 + LINE * len(title), "\n".join(title))
        axes = styled(figure.subplots())
        _draw(axes, self, 0)
        axes.set_yticks([])
        return _finished(axes, (self,))

    def picture_text(self) -> str:
        """Picture as text: ``[==o==]`` is what was achieved with its interval, ``|`` the claim, ``:`` guessing."""
        return f"{self.name}: {self.question}\n{_bar(self, _top((self,)))}"

    def __repr__(self) -> str:
        rows = [
            ("measure", self.measure),
            ("claimed, at most", _claim(self)),
            ("achieved", f"{self.achieved:.4f} ({self.low:.4f} to {self.high:.4f}, {self.level:.4g} sure)"),
            ("without the answer", f"{self.chance:.4f}"),
            ("attacks", f"{self.trials:,}"),
            *((name, f"{value:.4f}" if isinstance(value, float) else str(value)) for name, value in self._shown()),
            ("verdict", f"{self.verdict}: {VERDICTS[self.verdict]}"),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join([f"{self.name}: {self.question}", *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _shown(self) -> Iterator[tuple[str, Any]]:
        return (item for item in self.details.items() if isinstance(item[1], int | float | str))


class Outcomes(tuple[Outcome, ...]):
    """Outcomes of one attack on several publications of the same data, the least protected first."""

    __slots__ = ()

    def __getitem__(self, which: Any) -> Any:
        """One outcome by its number or its name."""
        if not isinstance(which, str):
            return super().__getitem__(which)
        named = [outcome for outcome in self if outcome.name == which]
        if not named:
            raise ParameterError(
                f"no outcome is named {which!r}; available: {', '.join(outcome.name for outcome in self)}."
            )
        return named[0]

    @property
    def table(self) -> pd.DataFrame:
        """Table with a row for each outcome: ``claimed achieved low high chance verdict``, indexed by name."""
        columns = ["claimed", "achieved", "low", "high", "chance", "verdict"]
        rows = [[getattr(outcome, name) for name in columns] for outcome in self]
        return pd.DataFrame(rows, columns=columns, index=pd.Index([outcome.name for outcome in self], name="published"))

    def picture(self) -> Figure:
        """Picture of all claims and achievements, one below the other; needs matplotlib.

        `picture_text` is the same in signs and numbers.
        """
        title = _title(self[0].question)
        figure = canvas(0.95 + 0.3 * len(self) + LINE * len(title), "\n".join(title))
        axes = styled(figure.subplots())
        for at, outcome in enumerate(self):
            _draw(axes, outcome, at)
        axes.set_yticks(range(len(self)), [legible(listed.name) for listed in self], fontsize=SIZE)
        axes.invert_yaxis()
        return _finished(axes, self)

    def picture_text(self) -> str:
        """Picture as text, in signs and numbers, as `Outcome.picture_text`."""
        top = _top(self)
        return "\n".join([self[0].question, *(f"{outcome.name}\n{_bar(outcome, top)}" for outcome in self)])

    def __repr__(self) -> str:
        shown = self.table.assign(claimed=[_claim(outcome) for outcome in self])
        lines = [self[0].question, shown.to_string(float_format="{:.4f}".format)]
        if "queries" in self[0].details:
            lines.append(f"queries: {self[0].details['queries']}")
        return "\n".join(lines)


def of_guesses(
    name: str,
    question: str,
    right: int,
    trials: int,
    *,
    claimed: float | None,
    chance: float,
    level: float = LEVEL,
    details: Mapping[str, Any] | None = None,
) -> Outcome:
    """Outcome from the number of right guesses."""
    low, high = clopper_pearson(right, trials, level)
    return Outcome(name, question, claimed, right / trials, low, high, chance, trials, level, details or {})


def _claim(outcome: Outcome) -> str:
    if outcome.claimed is None:
        return "nothing"
    return probability(outcome.claimed) if outcome.measure == RIGHT else f"{outcome.claimed:.4f}"


def _top(outcomes: tuple[Outcome, ...]) -> float:
    """The right end of the axis."""
    if outcomes[0].measure == RIGHT:
        return 1.0
    return max(
        value for outcome in outcomes for value in (outcome.high, outcome.claimed or 0.0, 1e-9) if value < float("inf")
    )


def _bar(outcome: Outcome, top: float) -> str:
    def place(value: float) -> int:
        return min(max(round(value / top * ACROSS), 0), ACROSS)

    signs = [" "] * (ACROSS + 1)
    for at in range(place(outcome.low), place(outcome.high) + 1):
        signs[at] = "="
    signs[place(outcome.chance)] = ":"
    if outcome.claimed is not None:
        signs[place(outcome.claimed)] = "|"
    signs[place(outcome.achieved)] = "o"
    return (
        f"  0 [{''.join(signs)}] {top:.4g}\n"
        f"  o achieved {outcome.achieved:.4f} ({outcome.low:.4f} to {outcome.high:.4f}), | claimed {_claim(outcome)}, "
        f": guessing {outcome.chance:.4f}: {outcome.verdict}"
    )


def _title(text: str) -> list[str]:
    return lines_of(legible(text), WIDTH)


def _draw(axes: Axes, outcome: Outcome, at: int) -> None:
    broken = outcome.verdict in ("broken", "unprotected")
    axes.plot([outcome.low, outcome.high], [at, at], color=INK, linewidth=1.2)
    axes.plot(outcome.achieved, at, "o", color=COLOURS[5 if broken else 0], markersize=5)
    axes.plot(outcome.chance, at, "|", color=PALE, markersize=12)
    if outcome.claimed is not None:
        axes.plot(outcome.claimed, at, "|", color=COLOURS[1], markersize=16, markeredgewidth=2.5)


def _finished(axes: Axes, outcomes: tuple[Outcome, ...]) -> Any:
    axes.set_xlim(0, 1.02 * _top(outcomes))
    axes.set_ylim(*((len(outcomes) - 0.5, -0.5) if len(outcomes) > 1 else (-0.5, 0.5)))
    axes.set_xlabel(
        f"{outcomes[0].measure}\ndot: achieved; thick line: claimed;\nthin line: guessing", labelpad=2, **WORDS
    )
    return axes.figure
