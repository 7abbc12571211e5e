"""Risk metrics of a release: one formula, four metrics, and the way back from a risk to an epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdrisk._core.foreign import array_of, own_errors, shown
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

SMALLEST: Final = 1e-300  # of a probability, so that its odds are finite
METRICS: Final = ("worst_case", "two_worlds", "many_worlds", "identifiability")


@own_errors
def posterior(loss: ArrayLike, prior: ArrayLike = 0.5) -> FloatArray:
    """Largest belief an attacker can reach in one hypothesis after a release.

    Parameters
    ----------
    loss : array_like of float, shape (...)
        Privacy loss of everything released, in nats; finite, >= 0.
    prior : array_like of float, shape (...)
        Belief before, a probability in (0, 1). For m equally likely worlds, ``1 / m``.

    Returns
    -------
    ndarray of float64, shape (...)

    Raises
    ------
    ParameterError
        If a loss is negative or not finite, or a prior leaves (0, 1).

    Notes
    -----
    Posterior odds are prior odds times a likelihood ratio, and that ratio is at most ``exp(loss)``:
    Lee & Clifton 2011, eq. 9; with ``prior = 1/2`` Mehner et al. 2021.

    Examples
    --------
    >>> float(posterior(1.0).round(4))
    0.7311
    """
    losses, priors = _floats("loss", loss), _floats("prior", prior)
    if not np.all(np.isfinite(losses) & (losses >= 0)):
        raise ParameterError("a privacy loss must be finite and at least 0; it is eps times the share of GS in play.")
    _check_probability("prior", priors)
    return belief(losses, priors)


def belief(loss: FloatArray | float, prior: FloatArray | float) -> FloatArray:
    """`posterior` without its checks: NaN passes through, and a prior of 1 stays 1."""
    result: FloatArray = np.asarray(1 / (1 + (1 - prior) / prior * np.exp(-loss)))
    return result


def success_bound(eps: float, delta: float) -> float:
    """How often the best attacker with a coin's prior is right at most about a person, after an (eps, delta) answer.

    ``(e**eps + delta) / (1 + e**eps)``: of a test between two neighbours the error rates a, b obey
    ``a + e**eps b >= 1 - delta`` and the same exchanged (Kairouz, Oh & Viswanath 2015), so that
    ``(a + b) / 2 >= (1 - delta) / (1 + e**eps)``. With delta it says nothing of the highest belief after a single
    answer, which may be 1.
    """
    alone = float(posterior(eps))
    return alone if delta == 0 else min(float(np.nextafter(alone + delta * (1 - alone), 2)), 1.0)


def reached_already(risk: str) -> ParameterError:
    """The error for a risk, in words, that an attacker reaches without any release; the prior would tell n."""
    return ParameterError(
        f"{risk} is not possible in these data: an attacker reaches it without any release. Ask for a higher risk."
    )


@own_errors
def privacy_loss(risk: ArrayLike, prior: ArrayLike = 0.5) -> FloatArray:
    """Privacy loss at which `posterior` reaches a risk: ``logit(risk) - logit(prior)``.

    Parameters
    ----------
    risk, prior : array_like of float, shape (...)
        Probabilities in (0, 1), risk above prior.

    Returns
    -------
    ndarray of float64, shape (...)
        In nats, rounded down where it cannot be exact, so that ``posterior(loss, prior) <= risk``.

    Raises
    ------
    ParameterError
        If a risk or prior leaves (0, 1), or a risk is not above its prior.
    """
    risks, priors = np.broadcast_arrays(_floats("risk", risk), _floats("prior", prior))
    return _privacy_loss(risks, priors, nothing_told=np.zeros(risks.shape, dtype=bool))


def _privacy_loss(risks: FloatArray, priors: FloatArray, *, nothing_told: NDArray[np.bool_]) -> FloatArray:
    """`privacy_loss` that also allows a risk equal to the prior, for answers that reveal nothing."""
    _check_probability("risk", risks)
    _check_probability("prior", priors)
    if not np.all((risks > priors) | (nothing_told & (risks == priors))):
        at = np.unravel_index(np.argmin(risks - priors), risks.shape)
        raise ParameterError(
            f"a risk of {risks[at]:g} is not possible: an attacker already starts from a prior of "
            f"{priors[at]:g}. Ask for a risk above the prior."
        )
    loss: FloatArray = np.asarray(np.log(risks) - np.log1p(-risks) - np.log(priors) + np.log1p(-priors))
    loss = np.maximum(loss, 0.0)
    step = np.spacing(np.maximum(loss, 1.0))
    while (over := (belief(loss, priors) > risks) & (loss > 0)).any():
        loss = np.where(over, np.maximum(loss - step, 0.0), loss)
        step = 2 * step
    return loss


@own_errors
def epsilon_for(
    risk: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    metric: str = "worst_case",
    n: ArrayLike | None = None,
    global_sensitivity: ArrayLike = 1.0,
    local_sensitivity: ArrayLike | None = None,
    world_range: ArrayLike | None = None,
) -> FloatArray:
    """Epsilon at which a risk metric reaches a given risk.

    Only ``worst_case`` may calibrate a release. An epsilon from any other metric depends on the data: the curator may
    use it for planning.

    Parameters
    ----------
    risk : array_like of float, shape (...)
        The highest risk wanted, in (0, 1) and above the prior.
    prior : array_like of float, shape (...), optional
        The attacker's belief before the release; 1/2 for ``worst_case`` and ``two_worlds``, 1/n for the other two.
    metric : {"worst_case", "two_worlds", "many_worlds", "identifiability"}
    n : array_like of int, shape (...), optional
        Number of records, at least 2; gives the prior of ``many_worlds`` and ``identifiability``.
    global_sensitivity : array_like of float, shape (...)
        GS, above 0; not used by ``worst_case``.
    local_sensitivity : array_like of float, shape (...), optional
        LS, needed by ``two_worlds`` and ``many_worlds``.
    world_range : array_like of float, shape (...), optional
        W, needed by ``identifiability``.

    Returns
    -------
    ndarray of float64, shape (...)
        In nats. ``inf`` where the distance (LS or W) is 0: such an answer reveals nothing at any epsilon.

    Raises
    ------
    ParameterError
        If a risk is not possible, a needed number is missing or out of its range, or the metric is unknown.

    Notes
    -----
    `privacy_loss` solved for eps: L for ``worst_case``, L GS / LS for ``two_worlds`` and ``many_worlds``, L GS / W for
    ``identifiability`` (Lee & Clifton 2011, section 4; 2012, section 4).

    Examples
    --------
    >>> float(epsilon_for(0.6).round(4))
    0.4055
    """
    check_metric(metric)
    if prior is None:
        prior = 0.5 if metric in ("worst_case", "two_worlds") else _one_of(metric, n)
    if metric == "worst_case":
        return privacy_loss(risk, prior)
    name, given = (
        ("world_range", world_range) if metric == "identifiability" else ("local_sensitivity", local_sensitivity)
    )
    if given is None:
        raise ParameterError(f"{metric} needs {name}=.")
    distance, whole = _floats(name, given), _floats("global_sensitivity", global_sensitivity)
    if not np.all(np.isfinite(whole) & (whole > 0)):
        raise ParameterError("global_sensitivity must be finite and above 0.")
    if not np.all(np.isfinite(distance) & (distance >= 0)):
        raise ParameterError(f"{name} must be finite and at least 0.")
    risks, priors, distance, whole = np.broadcast_arrays(
        _floats("risk", risk), _floats("prior", prior), distance, whole
    )
    loss = _privacy_loss(risks, priors, nothing_told=distance == 0)
    with np.errstate(over="ignore"):  # next to nothing is told: inf
        return np.divide(loss * whole, distance, out=np.full(loss.shape, np.inf), where=distance > 0)


def check_metric(metric: object) -> None:
    """Refuse a name that is not that of a metric."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise ParameterError(f"unknown metric {shown(metric)}; it must be one of {', '.join(METRICS)}.")


def _one_of(metric: str, n: ArrayLike | None) -> FloatArray:
    if n is None:
        raise ParameterError(f"{metric} starts from a prior of 1/n: pass n=, the number of records, or prior=.")
    records = _floats("n", n)
    if not np.all(records >= 2):
        raise ParameterError(f"{metric} needs n of at least 2: of one record, an attacker is certain already.")
    return np.asarray(1 / records)


@dataclass(frozen=True, slots=True)
class Risk:
    """Risk of a release: how likely an attacker is to be right about a person because of it. Both may be published.

    Attributes
    ----------
    worst_case : float
        Highest belief that anybody who starts from a coin's 1/2 can reach, after the most telling noisy value. It
        depends on eps alone (Mehner et al. 2021; eq. 5 of the SOEP paper). NaN for answers with delta, for which this
        belief has no bound below 1.
    success : float
        How often the best such attacker is right, over all noisy values. It depends on eps and the mechanism alone.
    mu : float
        The m of Gaussian differential privacy: of several answers, squares of m add up, and by all of them together
        such an attacker is right as often as ``pdrisk.risk.success_of([mu, ...])`` at most, if a limit of that was set
        beforehand (``Ledger(success=)``) or what each answer costs. Where keys are private, delta comes besides.
    """

    worst_case: float
    success: float
    mu: float = float("nan")


def metrics(
    eps: ArrayLike,
    n: NDArray[np.int64],
    *,
    global_sensitivity: ArrayLike,
    local_sensitivity: FloatArray,
    world_range: FloatArray,
) -> dict[str, FloatArray]:
    """The four risk metrics of releases by the Laplace mechanism.

    Parameters
    ----------
    eps, global_sensitivity : array_like of float, shape (...)
        Privacy loss in nats, and GS; both above 0.
    n : ndarray of int64, shape (...)
        Number of records.
    local_sensitivity, world_range : ndarray of float64, shape (...)
        LS and W, at least 0; LS at most GS.

    Returns
    -------
    dict of str to ndarray of float64, shape (...)
        Keys as in `METRICS`. The last two are 1 where n = 1 and NaN where n = 0.

    Notes
    -----
    Each is ``posterior(loss, prior)``: prior 1/2 or 1/n, loss eps, eps LS/GS or eps W/GS. For n >= 2: ``1/n <=
    many_worlds <= two_worlds <= worst_case``, and ``identifiability <= posterior(2 eps, 1/n)``.
    """
    epsilon, whole = _floats("eps", eps), _floats("global_sensitivity", global_sensitivity)
    local, between = _floats("local_sensitivity", local_sensitivity), _floats("world_range", world_range)
    number = array_of("n", n)
    if number.dtype.kind not in "iu":
        raise ColumnTypeError("n must be a whole number or an array of whole numbers.")
    return risks_of_losses(epsilon, number, epsilon * (local / whole), epsilon * (between / whole))


def risks_of_losses(
    eps: ArrayLike, n: NDArray[np.int64], loss: FloatArray, loss_between_worlds: FloatArray
) -> dict[str, FloatArray]:
    """The four metrics from the privacy losses of a mechanism.

    ``eps``: shape (...)
    ``n``: shape (...)
    ``loss``: shape (...). Of the most exposed neighbour.
    ``loss_between_worlds``: shape (...). Largest between two worlds that lack one record each.
    Returns: shape (...). As `metrics`.
    """
    epsilon = np.asarray(eps, dtype=np.float64)
    shape = np.broadcast_shapes(epsilon.shape, np.shape(n))
    worst = np.broadcast_to(belief(epsilon, 0.5), shape)
    return {"worst_case": worst, **risks_in_data(n, loss, loss_between_worlds)}


def risks_in_data(n: NDArray[np.int64], loss: FloatArray, loss_between_worlds: FloatArray) -> dict[str, FloatArray]:
    """The metrics of `risks_of_losses` that depend on the data, which are the curator's."""
    one_of_n = np.where(n > 0, 1 / np.maximum(n, 1), np.nan)
    return {
        "two_worlds": belief(loss, 0.5),
        "many_worlds": belief(loss, one_of_n),
        "identifiability": belief(loss_between_worlds, one_of_n),
    }


def most_exposed_first(
    n: NDArray[np.int64], share: FloatArray, many_worlds: FloatArray, identifiability: FloatArray
) -> NDArray[np.intp]:
    """Order of answers at one eps by how far they expose somebody; answers about nobody come last.

    ``n``: shape (m,)
    ``share``: shape (m,). LS/GS, which orders them as the two-worlds risk does. It is 1 for every count and every
        sum; where it is equal, the other two risks decide, which are larger among fewer people.
    ``many_worlds, identifiability``: shape (m,). NaN where n = 0: by convention LS is GS there, though there is
        nobody to expose.
    """
    return np.lexsort((-np.nan_to_num(identifiability), -np.nan_to_num(many_worlds), -share, n == 0))


def _floats(name: str, value: ArrayLike) -> FloatArray:
    array = array_of(name, value)
    if array.dtype.kind not in "iuf":
        raise ColumnTypeError(f"{name} must be a number or an array of numbers.")
    return array.astype(np.float64)


def _check_probability(name: str, values: FloatArray) -> None:
    outside = ~((values >= SMALLEST) & (values < 1))
    if outside.any():
        raise ParameterError(
            f"a {name} must be a probability above 0 and below 1, but is {float(values[outside].flat[0]):g}."
        )
