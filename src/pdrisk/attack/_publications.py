"""Four ways to publish counts, and what an attacker computes from sums and differences of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Count
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._model.arguments import epsilon
from pdrisk._model.query import UNIT
from pdrisk.attack._arguments import check_table
from pdrisk.attack._outcome import Outcome, Outcomes, of_guesses
from pdrisk.errors import ColumnTypeError, ParameterError


@dataclass(frozen=True, slots=True)
class Isolating:
    """Queries that together isolate one person.

    Attributes
    ----------
    queries : tuple of str
        Filters, in words.
    signs : tuple of int
        By which the answers are added up: 1 or -1.
    sizes : tuple of int
        Records that each filter selects.
    others : tuple of int
        Those of them that have the secret, but for the person.
    holds : tuple of bool
        Whether each filter selects the person.
    total : int
        Records of the table.
    """

    queries: tuple[str, ...]
    signs: tuple[int, ...]
    sizes: tuple[int, ...]
    others: tuple[int, ...]
    holds: tuple[bool, ...]
    total: int

    def outcomes(self, question: str, *, eps: Any, least: int, base: int, trials: int, level: float) -> Outcomes:
        """Outcomes of guessing the person's secret from the sum of the answers; a coin decides it each time."""
        secret = np.random.default_rng().random(trials) < 0.5
        exact = np.add.outer(np.array(self.others), np.zeros(trials, dtype=np.int64))
        exact = exact + np.outer(np.array(self.holds, dtype=np.int64), secret)
        signs = np.array(self.signs)
        answered = all(least <= size <= self.total - least for size in self.sizes)
        loss = epsilon(eps)
        total = float(loss) * sum(self.holds)
        noisy = noisy_counts(exact, loss)
        guesses: dict[str, tuple[Any, float | None]] = {
            "exact": (signs @ exact > 0.5, None),
            "rounded": (signs @ _rounded(exact, base) > 0.5, None),
            "restricted": (signs @ exact > 0.5 if answered else np.random.default_rng().random(trials) < 0.5, None),
            "noisy": (signs @ noisy > 0.5, float(posterior(total))),
        }
        how = {
            "exact": "as it is",
            "rounded": f"to multiples of {base}",
            "restricted": f"refused about fewer than {least} records, or all but fewer",
            "noisy": f"geometric noise, eps {float(loss):g} for each of {len(signs)} queries",
        }
        details = {"queries": self._written, "sizes": ", ".join(map(str, self.sizes))}
        outcomes: list[Outcome] = []
        for name, (guess, claimed) in guesses.items():
            right = int((guess == secret).sum())
            all_details = {"published": how[name]} | details
            outcomes.append(
                of_guesses(name, question, right, trials, claimed=claimed, chance=0.5, level=level, details=all_details)
            )
        return Outcomes(outcomes)

    @property
    def _written(self) -> str:
        parts = [f"{'+' if sign > 0 else '-'} [{query}]" for sign, query in zip(self.signs, self.queries, strict=True)]
        return " ".join(parts).removeprefix("+ ")


def noisy_counts(exact: IntArray, eps: Any) -> IntArray:
    """Counts with geometric noise, each for eps; not cut to what is possible, which an attacker could undo anyway."""
    counted = Summary(exact.ravel())
    return drawn_once(calibrated("geometric", Count(), UNIT, eps), counted).reshape(exact.shape)


def _rounded(exact: IntArray, base: int) -> FloatArray:
    return np.floor(exact / base + 0.5) * base


def selected(frame: pd.DataFrame, condition: str) -> Any:
    """Which rows of a frame a column of truth values, or a query string, selects."""
    check_table(frame)
    if not isinstance(condition, str):
        raise ColumnTypeError("a condition is a query string, or the name of a column of truth values.")
    truths: Any
    try:
        truths = frame[condition] if condition in frame.columns else frame.eval(condition)
    except Exception as error:  # noqa: BLE001 - pandas' own, of any kind
        raise ParameterError(f"the condition {condition!r} cannot be read: {type(error).__name__}.") from None
    if getattr(truths, "dtype", None) != np.bool_ or len(truths) != len(frame):
        example = f"{condition} == 'yes'" if condition in frame.columns else "age > 40"
        raise ParameterError(
            f"the condition {condition!r} holds no truth values, yes or no of each row: compare it with something, as "
            f'"{example}".'
        )
    return truths.to_numpy()
