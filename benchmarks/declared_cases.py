"""What declarations cost: missing codes, wide schemas, bounds found privately."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
import pandera.pandas as pa
from pandera.accessors.pandas_accessor import PanderaAccessor

import pdrisk
from cases import EPS, HI, LO, Case, distances

CODES = (-1, -2, -5, -8)
COLUMNS = 200


def declared_cases(rows: int) -> Iterator[Case]:
    """The cost of knowing."""
    column = np.rint(distances(rows)).astype(np.int64)
    column[np.random.default_rng(6).random(rows) < 0.4] = CODES[1]
    frame = pd.DataFrame({"x": column})
    schema = pdrisk.schema_for({"x": (LO, HI)}, missing={"x": CODES})
    known = frame.dprisk.declare(schema)
    yield Case(
        "mean, four missing codes, 40 % missing", lambda: known.dprisk.mean("x", eps=EPS),
        lambda: frame["x"].mask(frame["x"].isin(CODES)).clip(LO, HI).mean(), "Series.mask(isin).clip().mean()", 1,
        target="< 1", column=column.nbytes, memory_limit=2,
    )  # fmt: skip
    yield Case(
        "suggest_bounds", lambda: frame.dprisk.suggest_bounds("x", eps=EPS), lambda: np.clip(column, LO, HI).mean(),
        "numpy.clip(x).mean()", column=column.nbytes,
    )  # fmt: skip
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    con.unregister("frame")
    answers = f"CASE WHEN x IN {CODES} THEN NULL ELSE x END"
    yield Case(
        "SQL: mean, four missing codes", lambda: pdrisk.sql("SELECT AVG(x) FROM people", con, eps=EPS, schema=schema),
        lambda: con.execute(f"SELECT avg(greatest({LO}, least({HI}, {answers}))) FROM people").df(),
        "clamped avg without codes",
    )  # fmt: skip
    yield from _wide()


def _wide() -> Iterator[Case]:
    """1e3 rows, and a schema that speaks of every one of many columns."""
    wide = pd.DataFrame(np.random.default_rng(5).random((1000, COLUMNS)), columns=[f"c{i}" for i in range(COLUMNS)])
    schema = pa.DataFrameSchema({name: pa.Column(float, pa.Check.in_range(0, 1)) for name in wide})
    known = schema.validate(wide)
    yield Case(
        f"mean, 1e3 rows, schema of {COLUMNS} columns", lambda: known.dprisk.mean("c1", eps=EPS),
        lambda: np.clip(wide["c1"].to_numpy(), 0, 1).mean(), "numpy.clip(x).mean()", 1.5, "ms",
        at_full_size=False, number=50,
    )  # fmt: skip

    def unwatched() -> pd.DataFrame:
        with patch.object(PanderaAccessor, "add_schema", PanderaAccessor.add_schema.__wrapped__):
            return schema.validate(wide)

    yield Case(
        f"pandera validates {COLUMNS} columns", lambda: schema.validate(wide), unwatched, "without pdrisk", 1.25,
        at_full_size=False,
    )  # fmt: skip
