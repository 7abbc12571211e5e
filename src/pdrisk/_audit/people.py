"""Random questions about people with several rows, where one person is there with all rows or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._audit.questions import AuditQuestion, Generator, shuffled

BOUNDS: Final = (0, 10)
YEARS: Final = [2018, 2019, 2020, 2021]
EPS: Final = (0.5, 1.0, 2.0)
SPECIAL: Final = (0.0, 10.0, 5.0, -3.0, 99.0, 2.5, np.inf, np.nan)
STATISTICS: Final = ("count", "sum", "mean", "median", "min", "max", "var", "std")
# What a filter says to pandas, and to DuckDB.
FILTERS: Final = (("y > 3", "y > 3"), ("year >= 2020", "year >= 2020"), ("sex == 'f'", "sex = 'f'"))
SQL: Final = (
    "COUNT(DISTINCT pid)", "SUM(x)", "AVG(x)", "MEDIAN(x)", "MIN(x)", "MAX(x)", "VAR_SAMP(x)", "COUNT(x), AVG(x)",
    "CORR(x, y)",
)  # fmt: skip


def random_people(generator: Generator) -> AuditQuestion:
    """A random question about people, to either front end, and a table in which one person less has rows."""
    first = _panel(generator)
    known = first["pid"].dropna().unique()
    person = known[generator.integers(len(known))]
    second = shuffled(generator, first[~(first["pid"] == person).to_numpy(dtype=bool, na_value=False)])
    eps = EPS[generator.integers(len(EPS))]
    ask, words = (_sql if generator.random() < 0.25 else _accessor)(generator, eps)
    return AuditQuestion(f"{words}, of {len(known)} people with {len(first)} rows", ask, second, first, eps)


def _panel(generator: Generator) -> pd.DataFrame:
    """Up to a few dozen people with one to six rows each, and rows without a person."""
    people = int(generator.choice([1, 2, 4, 9, 25]))
    rows = generator.integers(1, 7, people)
    pid = np.repeat(np.arange(people), rows)
    size = len(pid)
    special = np.array(SPECIAL)[generator.integers(0, len(SPECIAL), size)]
    x = np.where(generator.random(size) < 0.6, special, generator.uniform(*BOUNDS, size))
    if generator.random() < 0.3:  # ties, also among the rows of one person
        x[:] = x[0]
    ids = pd.Series(pid, dtype="Int64")
    if size > 3 and generator.random() < 0.3:
        nobody = int(generator.integers(size))
        ids = ids.mask((ids.index == nobody) & (ids.duplicated(keep=False)))
    columns = {"pid": ids, "x": x, "y": generator.uniform(*BOUNDS, size), "year": generator.choice(YEARS, size)}
    frame = pd.DataFrame(columns)
    frame["sex"] = np.where(pid % 2, "f", "m")
    return frame


def _accessor(generator: Generator, eps: float) -> tuple[Callable[[pd.DataFrame], Any], str]:
    options = _counted(generator) | {"eps": eps, "person": "pid"}
    if generator.random() < 0.4:
        options["where"] = FILTERS[generator.integers(len(FILTERS))][0]
    if generator.random() < 0.25:
        options |= {"by": "sex", "keys": ["f", "m", "q"], "constant": "sex"}
    elif generator.random() < 0.33:
        options |= {"by": "year", "keys": YEARS, "groups": int(generator.integers(1, 4))}
    ranged = options | {"bounds": BOUNDS}
    kind = generator.random()
    if kind < 0.15:
        return lambda frame: frame.dprisk.agg({"x": ["count", "mean", "var"]}, **ranged), f"agg {ranged}"
    if kind < 0.25:
        pair = options | {"bounds": {"x": BOUNDS, "y": BOUNDS}}
        return lambda frame: frame.dprisk.corr("x", "y", **pair), f"corr {pair}"
    name = STATISTICS[generator.integers(len(STATISTICS))]
    arguments = dict(options if name == "count" else ranged)
    if generator.random() < 0.3:
        arguments["mechanism"] = "laplace"
    return lambda frame: getattr(frame.dprisk, name)("x", **arguments), f"{name} {arguments}"


def _sql(generator: Generator, eps: float) -> tuple[Callable[[pd.DataFrame], Any], str]:
    written = f"SELECT {SQL[generator.integers(len(SQL))]} FROM t"
    options = _counted(generator) | {"eps": eps, "person": "pid", "bounds": {"x": BOUNDS, "y": BOUNDS}}
    if generator.random() < 0.4:
        written += f" WHERE {FILTERS[generator.integers(len(FILTERS))][1]}"
    if generator.random() < 0.25:
        written = written.replace("SELECT ", "SELECT sex, ") + " GROUP BY sex"
        options |= {"keys": {"sex": ["f", "m", "q"]}, "constant": "sex"}
    elif generator.random() < 0.33:
        written = written.replace("SELECT ", "SELECT year, ") + " GROUP BY year"
        options |= {"keys": {"year": YEARS}, "groups": int(generator.integers(1, 4))}
    return lambda frame: pdrisk.sql(written, t=frame, **options), f"{written} {options}"


def _counted(generator: Generator) -> dict[str, Any]:
    """How several rows of one person count."""
    kind = generator.random()
    if kind < 0.4:
        return {"rows": int(generator.integers(1, 4))}
    words = ("one", "mean", "sum", "min", "max")
    return {"per_person": words[generator.integers(len(words))]}
