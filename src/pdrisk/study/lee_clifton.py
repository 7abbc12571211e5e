"""The tables of differential identifiability (Lee & Clifton 2012), computed anew."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from pdrisk._core.risks.risk import privacy_loss
from pdrisk.identifiability import of_worlds, worlds_with

RISKS = (0.2, 0.25, 1 / 3, 0.5, 0.75, 0.9, 0.99)
ROWS = 48_842  # of the Adult data
# Smallest and largest value of the columns that the paper looks at: public facts of the census questionnaire.
ADULT = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}


def toy() -> pd.DataFrame:
    """Section 4: ten people hold the numbers 1 to 10, three of them are in the data, the attacker knows 1 and 3.

    Returns: for each highest risk of the mean the loose eps, which the paper's bound gives, the tight one, and the
        exact belief that the attacker reaches at the loose one.
    """
    worlds = worlds_with([1, 3], universe=np.arange(1, 11))
    by_risk = [of_worlds(worlds, risk=risk) for risk in RISKS]
    return pd.DataFrame(
        {
            "risk": RISKS,
            "scale": [one.scale for one in by_risk],
            "loose_eps": [one.loose_eps for one in by_risk],
            "exact": [one.exact for one in by_risk],
            "tight_eps": [one.tight_eps for one in by_risk],
        }
    )


def adult(risks: tuple[float, ...] = (0.1, 0.001)) -> pd.DataFrame:
    """Section 5: the noise that the mean of five columns of the Adult data needs.

    Returns: for each column and highest risk the number of worlds, the sensitive range of the mean, the eps and the
        scale of the noise; NaN where the attacker starts above the risk already, so that no noise is enough.
    """
    rows = []
    for column, (low, high) in ADULT.items():
        worlds, reach = high - low + 1, (high - low) / ROWS
        for risk in risks:
            eps = float(privacy_loss(risk, 1 / worlds)) if risk > 1 / worlds else math.nan
            rows.append((column, worlds, reach, risk, eps, reach / eps))
    return pd.DataFrame(rows, columns=["column", "worlds", "sensitive_range", "risk", "eps", "scale"])
