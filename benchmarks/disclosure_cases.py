"""What disclosure measures cost, beside counting the same groups with pandas or DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import duckdb
import numpy as np
import pandas as pd

import pdrisk
from cases import Case, Skipped, installed

SIZES = {"region": 50, "age": 16, "job": 8, "school": 4}
ON = list(SIZES)
PEER_ROWS = 100_000  # pycanon needs seconds for a million


def disclosure_cases(rows: int) -> Iterator[Case | Skipped]:
    """Four keys of ``rows / 10`` people, and a population five times as large."""
    people = max(rows // 10, 1)
    for kind, limit in (("categorical", 0.5), ("text", 1.2)):
        table, population = (_survey(n, kind) for n in (people, 5 * people))
        yield Case(
            f"k-anonymity, {people:,} rows, four {kind} keys",
            lambda table=table: table.dprisk.k_anonymity(ON),
            lambda table=table: table.groupby(ON, observed=True).size(), "groupby.size()", limit,
        )  # fmt: skip
        yield Case(
            f"k-map, {people:,} of {5 * people:,} people, four {kind} keys",
            lambda table=table, population=population: table.dprisk.k_map(
                ON, population=population, on_missing="pessimistic"
            ),
            lambda table=table, population=population: (
                table.groupby(ON, observed=True).size(), population.groupby(ON, observed=True).size()
            ), "both groupby.size()", 2,
        )  # fmt: skip
    table = _survey(people, "categorical").assign(illness=np.random.default_rng(5).integers(0, 20, people))
    plain = table.groupby(ON, observed=True)["illness"]
    yield Case(
        f"l-diversity, {people:,} rows, four categorical keys", lambda: table.dprisk.l_diversity(ON, "illness"),
        lambda: plain.nunique(), "groupby.nunique()",
    )  # fmt: skip
    con = duckdb.connect()
    con.register("shown", _survey(people, "text"))
    con.execute("CREATE TABLE people AS SELECT * FROM shown")
    stored = pdrisk.Dataset((con, "people"))
    yield Case(
        f"k-anonymity, {people:,} rows in DuckDB, four text keys", lambda: stored.k_anonymity(ON),
        lambda: con.execute(f"SELECT {', '.join(ON)}, count(*) FROM people GROUP BY ALL").df(), "GROUP BY ALL",
    )  # fmt: skip
    yield _peer(min(people, PEER_ROWS))


def _survey(rows: int, kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    columns = {}
    for name, size in SIZES.items():
        codes, labels = rng.integers(0, size, rows), [f"{name} {each}" for each in range(size)]
        column = pd.Categorical.from_codes(codes, labels)
        columns[name] = column if kind == "categorical" else pd.Series(column).astype(str)
    return pd.DataFrame(columns)


def _peer(rows: int) -> Case | Skipped:
    name = f"k-anonymity, {rows:,} rows; plain: pycanon {installed('pycanon')}"
    try:
        peer = import_module("pycanon.anonymity")
    except ImportError:
        return Skipped(name, "not installed")
    table = _survey(rows, "text")
    return Case(
        name, lambda: table.dprisk.k_anonymity(ON), lambda: peer.k_anonymity(table, ON), "pycanon k_anonymity", 1
    )
