"""What people with several rows cost, beside the plain aggregation in two steps."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd

import pdrisk
from cases import Case

ROWS_EACH = 10


def people_cases(rows: int) -> Iterator[Case]:
    """Ten rows a person, of ids in no order."""
    rng = np.random.default_rng(6)
    people = max(rows // ROWS_EACH, 1)
    frame = pd.DataFrame({"pid": rng.integers(0, people, rows), "x": rng.uniform(0, 100, rows)})
    survey = pdrisk.Dataset(frame, person="pid", bounds={"x": (0, 100)})
    yield Case(
        "mean, per_person=\"mean\"", lambda: survey.mean("x", eps=1, per_person="mean"),
        lambda: frame.groupby("pid")["x"].mean().mean(), "groupby(pid).mean().mean()", 2,
    )  # fmt: skip
    yield Case("count of people", lambda: survey.count(eps=1), lambda: frame["pid"].nunique(), "nunique()", 1.5)
    yield Case(
        "mean, rows=3 of some 10", lambda: survey.mean("x", eps=1, rows=3),
        lambda: frame.groupby("pid").head(3)["x"].mean(), "groupby(pid).head(3)", 1.5,
    )  # fmt: skip
    con = duckdb.connect()
    con.register("shown", frame)
    con.execute("CREATE TABLE visits AS SELECT * FROM shown")

    def private(query: str, **said: object) -> pd.DataFrame:
        return pdrisk.sql(query, con, eps=1, person="pid", **said)

    yield Case(
        "SQL: mean, per_person=\"mean\"",
        lambda: private("SELECT AVG(x) FROM visits", per_person="mean", bounds={"x": (0, 100)}),
        lambda: con.execute("SELECT avg(m) FROM (SELECT avg(x) AS m FROM visits GROUP BY pid)").df(), "avg of avg", 2,
    )  # fmt: skip
    by_person = "SELECT avg(m) FROM (SELECT pid, avg(x) AS m FROM visits GROUP BY pid) AS p"
    yield Case(
        "SQL: mean over GROUP BY person", lambda: private(by_person, bounds={"x": (0, 100), "m": (0, 100)}),
        lambda: con.execute(by_person).df(), "avg of avg", 2,
    )  # fmt: skip
    yield Case(
        "SQL: COUNT(DISTINCT person)", lambda: private("SELECT COUNT(DISTINCT pid) FROM visits"),
        lambda: con.execute("SELECT count(DISTINCT pid) FROM visits").df(), "count(DISTINCT)", 1.5,
    )  # fmt: skip
    yield Case(
        "SQL: mean, rows=3 of some 10",
        lambda: private("SELECT AVG(x) FROM visits", rows=3, bounds={"x": (0, 100)}),
        lambda: con.execute(
            "SELECT avg(x) FROM (SELECT x, row_number() OVER (PARTITION BY pid ORDER BY x) n FROM visits) WHERE n <= 3"
        ).df(), "row_number() <= 3",
    )  # fmt: skip
