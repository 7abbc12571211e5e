"""Averaging attack: an attacker who asks the same question again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdrisk._core.foreign import own_errors
from pdrisk._core.risks.risk import posterior
from pdrisk._core.summary import FloatArray
from pdrisk._ledger import check_curator
from pdrisk._model.arguments import checked_flag
from pdrisk._model.declared.aliases import Bounds, Eps
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._informed import worst_pair
from pdrisk.attack._likelihood import Unknown, log_likelihoods
from pdrisk.attack._outcome import LEVEL, Outcomes, of_guesses
from pdrisk.attack._worlds import draws_of, mechanism_of, present, records_of, summary_of
from pdrisk.errors import ParameterError

MOST_DRAWS = 20_000_000


@own_errors
def averaging(
    asked: Any,
    records: Any = None,
    *,
    answers: int = 100,
    memory: bool = False,
    eps: Eps | None = None,
    bounds: Bounds | None = None,
    mechanism: str = "auto",
    step: int | None = None,
    trials: int = 2_000,
    level: float = LEVEL,
) -> Outcomes:
    """Averaging attack: many answers to one question, each drawn anew, or remembered by a ledger.

    The attacker wants to know whether one person is in the data, and combines all answers: by their mean, by their
    median, and by how likely all of them are in either world, which no method beats.

    Parameters
    ----------
    asked, records, eps, bounds, mechanism, step, level
        As for `two_worlds`. ``records`` are everybody's; the last one is the person's.
    answers : int
        Number of times the question is asked.
    memory : bool
        Whether the question is remembered. Then all answers equal the first one, and only that is paid.
    trials : int
        Number of attacks in each of the two worlds.

    Returns
    -------
    Outcomes
        ``"mean"``, ``"median"`` and ``"likelihood"``. The claim is the success of one answer with memory, and the worst
        case of the whole eps without. The details of the first two have the share of attacks that come ``nearer than
        half`` the distance of the two exact answers; for a count such an attack finds the number itself.

    Examples
    --------
    >>> found = averaging("count", eps=0.5, answers=124)
    >>> bool(found["mean"].details["nearer than half"] > 0.9), found["likelihood"].verdict
    (True, 'kept')
    >>> averaging("count", eps=0.5, answers=124, memory=True)["likelihood"].verdict
    'reached'
    """
    calibrated = mechanism_of(
        asked, eps=eps, bounds=bounds, mechanism=mechanism, step=step, interval=False, n_at_least=None
    )  # fmt: skip
    times, size = checked_number("answers", answers), checked_number("trials", trials, least=100)
    once = checked_flag("memory", memory)
    if 2 * size * times > MOST_DRAWS:
        raise ParameterError(f"answers times trials is {size * times:,}: at most {MOST_DRAWS // 2:,} can be simulated.")
    is_bounded = bool(np.isfinite(calibrated.statistic.value_range(calibrated.universe)).all())
    if records is None:
        worlds = worst_pair(calibrated, alone=is_bounded)  # few are cut at 0 where answers are unbounded
    else:
        check_curator(None, "attack.averaging()")
        held = present(records_of(calibrated, records))
        worlds = [held[:-1], held]
    summary = summary_of(calibrated, worlds)
    exact = calibrated.statistic.value(summary, calibrated.universe).astype(np.float64)
    drawn = draws_of(calibrated, summary, size * (1 if once else times))
    values = calibrated.value(drawn).astype(np.float64).reshape(2, size, -1)
    claimed = calibrated.success if once else float(posterior(min(float(calibrated.eps) * times, 700.0)))
    question = f"is this person in the data, after {times:,} {'times the same answer' if once else 'answers'}?"
    truth = np.array([[False], [True]])
    attacks = []
    for name, estimate in (("mean", values.mean(axis=2)), ("median", np.median(values, axis=2))):
        off = np.abs(estimate - exact[:, np.newaxis])
        evidence = (estimate - exact.mean()) * np.sign(exact[1] - exact[0])
        near = float((off < abs(exact[1] - exact[0]) / 2).mean())
        attacks.append((name, evidence, {"nearer than half": near}))
    try:
        likely = log_likelihoods(calibrated, summary, drawn)
    except Unknown:
        pass
    else:
        attacks.append(("likelihood", (likely[1] - likely[0]).reshape(2, size, -1).sum(axis=2), {}))
    return Outcomes(
        of_guesses(
            name, question, int((_decided(evidence) == truth).sum()), 2 * size, claimed=claimed, chance=0.5,
            level=level, details=details | {"mechanism": calibrated.name},
        )
        for name, evidence, details in attacks
    )  # fmt: skip


def _decided(evidence: FloatArray) -> Any:
    """Whether evidence speaks for the second world; a coin decides ties."""
    toss = np.random.default_rng().random(evidence.shape) < 0.5
    return np.where(np.abs(evidence) < 1e-9, toss, evidence > 0)
