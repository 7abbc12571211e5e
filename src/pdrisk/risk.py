"""Formulas of risk, on scalars and arrays. See docs/numbers.md for what each of them assumes."""

from pdrisk._core.risks.risk import METRICS, Risk, epsilon_for, metrics, posterior, privacy_loss
from pdrisk._core.risks.worlds import exact_identifiability, tight_epsilon
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._model.gaussian import mu, success_of

__all__ = [
    "METRICS",
    "RandomizedResponse",
    "Risk",
    "epsilon_for",
    "exact_identifiability",
    "metrics",
    "mu",
    "posterior",
    "privacy_loss",
    "success_of",
    "tight_epsilon",
]
