"""Oracles of disclosure measures: slow, from the definitions, on plain Python values."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd

# Desfontaines, "delta-presence, for when being in the dataset is sensitive": six patients, and who lives in the ZIP.
PATIENTS = pd.DataFrame({"zip": ["85535"] * 6, "age": [10, 12, 13, 13, 16, 43]})
RESIDENTS = pd.DataFrame({"zip": ["85535"] * 5, "age": [10, 20, 30, 40, 50], "people": [5, 5, 10, 10, 20]})


def keys_of(frame: pd.DataFrame, on: list) -> list[tuple]:
    """The keys of each row; every kind of missing is None."""
    return [tuple(None if pd.isna(each) else each for each in row) for row in frame[on].itertuples(index=False)]


def sizes(frame: pd.DataFrame, on: list, person: str | None = None) -> Counter:
    """How many people share each key."""
    rows = enumerate(keys_of(frame, on)) if person is None else zip(frame[person], keys_of(frame, on), strict=True)
    return Counter(key for _, key in {(who, key) for who, key in rows if not pd.isna(who)})


def ratios(sample: Counter, population: Counter) -> list[Fraction]:
    """The share of each population class that is in the sample."""
    return [Fraction(sample[key], number) for key, number in population.items() if number]


def values_by_class(frame: pd.DataFrame, on: list, sensitive: str) -> dict[tuple, list]:
    found = defaultdict(list)
    for key, value in zip(keys_of(frame, on), frame[sensitive], strict=True):
        if not pd.isna(value):
            found[key].append(value)
    return found


def entropy_l(values: list) -> float:
    shares = [number / len(values) for number in Counter(values).values()]
    return math.exp(-sum(share * math.log(share) for share in shares))


def distance(values: list, everybody: list, *, ordered: bool) -> float:
    """Of two distributions: half of all differences, or the earth mover's by cumulative shares."""
    domain = sorted(set(everybody))
    p, q = ([Fraction(each.count(value), len(each)) for value in domain] for each in (everybody, values))
    if not ordered:
        return float(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    if len(domain) == 1:
        return 0.0
    moved, total = Fraction(0), Fraction(0)
    for a, b in zip(p, q, strict=True):
        moved += b - a
        total += abs(moved)
    return float(total / (len(domain) - 1))


def people(seed: int, n: int) -> pd.DataFrame:
    """A small survey with missing keys, several rows a person and values of every kind."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n),
            "zip": rng.choice(["855", "856", None], n),
            "sex": pd.Categorical(rng.choice(["f", "m"], n), categories=["f", "m", "x"]),
            "wage": rng.choice([1.5, 2.5, np.nan], n),
            "away": rng.choice([True, False], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "D"),
            "pid": rng.integers(0, max(2, n // 2), n),
            "illness": rng.choice(["flu", "cold", "gout", None], n),
            "score": rng.integers(0, 5, n),
        }
    )
    return frame.set_index(rng.permutation(n) + 1000)
