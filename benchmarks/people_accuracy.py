"""What counting fewer rows of each person costs and gains: ``python benchmarks/people_accuracy.py``.

Ends with status 1 if an error is more than a tenth above what a prototype reached on data of the same size.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

import pdrisk

PEOPLE, ROWS, MOST, BOUNDS, DRAWS = 5_000, 16_862, 25, (0, 1000), 400
GOALS = {"rows=10": 0.57, "rows=25": 1.91, 'per_person="mean"': 0.178}  # of fewer rows the data decide, not the noise
SLACK = 1.1


def panel() -> pd.DataFrame:
    """People with 1 to 25 rows each, most with few."""
    rng = np.random.default_rng(5)
    numbers = np.clip(rng.geometric(0.28, PEOPLE), 1, MOST)
    while (missing := ROWS - numbers.sum()) != 0:
        free = np.flatnonzero(numbers < MOST if missing > 0 else numbers > 1)
        numbers[rng.choice(free, min(abs(missing), len(free)), replace=False)] += np.sign(missing)
    people = np.repeat(np.arange(PEOPLE), numbers)
    own = rng.normal(400, 100, PEOPLE)[people]
    return pd.DataFrame({"pid": people, "x": np.clip(own + rng.normal(0, 100, ROWS), *BOUNDS)})


def error(asked: Callable[[pdrisk.Dataset], float], frame: pd.DataFrame, exact: float) -> float:
    """Mean absolute error, each time with another choice of rows."""
    draws = (pdrisk.Dataset(frame, person="pid", bounds={"x": BOUNDS}) for _ in range(DRAWS))
    return float(np.mean([abs(asked(each) - exact) for each in draws]))


def main() -> int:
    warnings.simplefilter("ignore")
    frame = panel()
    rows, people = frame["x"].mean(), frame.groupby("pid")["x"].mean().mean()
    found = {
        f"rows={k}": error(lambda data, k=k: data.mean("x", eps=1, rows=k).value, frame, rows)
        for k in (1, 3, 5, 10, MOST)
    }
    found['per_person="mean"'] = error(lambda data: data.mean("x", eps=1, per_person="mean").value, frame, people)
    missed = [name for name, goal in GOALS.items() if found[name] > SLACK * goal]
    for name, each in found.items():
        print(f"{name:20} {each:.3f}{f'   goal {GOALS[name]}' if name in GOALS else ''}{' MISSED' * (name in missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
