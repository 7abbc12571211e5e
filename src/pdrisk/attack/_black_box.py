"""Black-box lower bound on the privacy loss of any program, from its answers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pdrisk._core.foreign import own_errors
from pdrisk._core.risks.binomial import clopper_pearson
from pdrisk._core.summary import FloatArray
from pdrisk._model.arguments import epsilon
from pdrisk._model.declared.aliases import Eps
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._learned import learned_event
from pdrisk.attack._outcome import LEVEL, LOSS, Outcome
from pdrisk.errors import ColumnTypeError


@own_errors
def epsilon_lower_bound(
    answer: Callable[[Any], Any],
    first: Any,
    second: Any,
    *,
    eps: Eps | None = None,
    draws: int = 10_000,
    at_once: int = 1,
    level: float = LEVEL,
) -> Outcome:
    """Lower bound on the epsilon of any callable, from its answers about two neighbouring data sets.

    Parameters
    ----------
    answer : callable
        Takes a data set and returns a number, or several. It may be of pdrisk or of any other library.
    first, second : object
        Two data sets that differ by one person; each is handed to ``answer`` again and again.
    eps : float, optional
        The claimed privacy loss, in nats.
    draws : int
        Number of answers about each data set.
    at_once : int
        Number of independent answers that one call returns, along the first axis of an array.
    level : float
        Probability with which the bound is right.

    Returns
    -------
    Outcome
        ``achieved`` is the log-ratio that was observed, ``low`` the bound, both in nats; ``"broken"`` if the bound
        exceeds ``eps``.

    Raises
    ------
    ColumnTypeError
        If the callable does not return numbers, or not as many as ``at_once`` says.

    Notes
    -----
    Half of the answers choose the event whose probabilities differ most, the other half count it, so that the choice
    cannot mislead. The Clopper-Pearson ends of both probabilities, each with half of the allowed failures, bound their
    ratio. ``exp(eps)`` bounds it if the claim is true (Jagielski, Ullman & Oprea 2020).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> def laplace(data):                                     # claims eps 1 and has half the noise
    ...     return np.sum(data) + rng.laplace(scale=0.5, size=10_000)
    >>> epsilon_lower_bound(laplace, [1, 1], [1, 1, 1], eps=1, at_once=10_000).verdict
    'broken'
    """
    claimed = None if eps is None else float(epsilon(eps))
    size, batch = checked_number("draws", draws, least=100), checked_number("at_once", at_once)
    if not callable(answer):
        raise ColumnTypeError("answer is a callable that takes a data set and gives numbers.")
    both = [_answers(answer, data, size, batch) for data in (first, second)]
    return bound_of_answers(*both, claimed=claimed, level=level)


def bound_of_answers(first: Any, second: Any, *, claimed: float | None, level: float = LEVEL) -> Outcome:
    """`epsilon_lower_bound` of independent answers that were drawn already, shape (draws,) or (draws, k)."""
    half = len(first) // 2
    event = learned_event(first[:half], second[:half], by_ratio=True)
    held = len(first) - half
    likely, rare = (
        int(event.happens(answers[half:]).sum()) for answers in ((first, second) if event.of_first else (second, first))
    )
    # Each end of an interval fails with half of what it may, and two ends are used.
    more, less = clopper_pearson(likely, held, level), clopper_pearson(rare, held, level)
    low = max(0.0, math.log(more[0] / less[1])) if more[0] > 0 else 0.0
    high = math.log(more[1] / less[0]) if less[0] > 0 else math.inf
    seen = max(0.0, math.log(likely / rare)) if likely and rare else (math.inf if likely else 0.0)
    details = {"event seen": f"{likely:,} and {rare:,} times in {held:,} answers each"}
    return Outcome(
        "black box", "how much more likely is an event about one data set than about its neighbour?", claimed, seen,
        low, max(high, low), 0.0, 2 * len(first), level, details, LOSS,
    )  # fmt: skip


def _answers(answer: Callable[[Any], Any], data: Any, draws: int, at_once: int) -> FloatArray:
    parts = []
    for _ in range(-(-draws // at_once)):
        part = np.asarray(answer(data))
        if part.dtype.kind not in "biuf" or (at_once > 1 and (part.ndim == 0 or len(part) != at_once)):
            many = "a number or several" if at_once == 1 else f"an array of {at_once:,} answers"
            raise ColumnTypeError(f"the callable must give {many}.")
        parts.append(part.astype(np.float64).reshape(at_once, -1))
    return np.concatenate(parts)[:draws]
