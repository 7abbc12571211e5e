"""The papers' experiments: a study of the size of the SOEP paper's, and the exact posterior of many worlds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pdrisk
from cases import Case

COLUMNS = ["hours", "distance", "income"]
SHARES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5)  # and all, of which there is one sample
REPETITIONS = 100
WORLDS = 1_000_000


def paper_cases() -> Iterator[Case]:
    """Their targets hold for any number of rows: they bring their own."""
    survey = pdrisk.datasets.soep_like(missing="nan")
    values = [survey[column].dropna().to_numpy() for column in COLUMNS]

    def samples() -> None:
        """The samples themselves, drawn and put in order."""
        rng = np.random.default_rng(1)
        for column in values:
            for share in SHARES:
                size = max(round(share * len(column)), 2)
                drawn = [rng.choice(column, size, replace=False) for _ in range(REPETITIONS)]
                np.sort(np.stack(drawn), axis=1)

    yield Case(
        "study: 3 columns, 5 queries, 8 sizes, 100 samples, 10 eps",
        lambda: pdrisk.study.run(survey, COLUMNS, repetitions=REPETITIONS, progress=False),
        samples, "numpy: the samples, sorted", 5000, "ms", at_full_size=False,
    )  # fmt: skip
    worlds = np.random.default_rng(2).gamma(2, 8, WORLDS)
    yield Case(
        "exact identifiability of 1e6 worlds", lambda: pdrisk.risk.exact_identifiability(worlds, 0.1),
        lambda: np.sort(worlds), "numpy.sort(worlds)", 500, "ms", at_full_size=False,
    )  # fmt: skip
