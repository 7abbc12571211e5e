"""What answers about Polars and Arrow frames cost, beside what Polars itself computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pdrisk
from cases import EPS, HI, LO, Case, Skipped, distances, group_numbers, imported

GROUPS = 100_000


def frame_cases(rows: int) -> Iterator[Case | Skipped]:
    """Floats with 5 % of nulls, and groups that are whole numbers."""
    polars = imported("polars")
    if isinstance(polars, str):
        yield Skipped("Polars frames", polars)
        return
    missing = np.random.default_rng(8).random(rows) < 0.05
    values = polars.Series("x", distances(rows))
    frame = polars.DataFrame({"x": values, "g": group_numbers(rows, GROUPS)})
    frame = frame.with_columns(x=polars.when(polars.Series(missing)).then(None).otherwise(polars.col("x")))
    d = pdrisk.Dataset(frame, bounds={"x": (LO, HI)})
    arrow = pdrisk.Dataset(frame.to_arrow(), bounds={"x": (LO, HI)})
    x = polars.col("x")
    clipped = x.clip(LO, HI)
    for name, ours, plain in (
        ("mean", lambda: d.mean("x", eps=EPS), clipped.mean()),
        ("var", lambda: d.var("x", eps=EPS), clipped.var()),
        ("median", lambda: d.median("x", eps=EPS), x.median()),
        ("mean where x > 10", lambda: d.mean("x", eps=EPS, where=x > 10), clipped.filter(x > 10).mean()),
    ):
        yield Case(f"Polars: {name}", ours, lambda plain=plain: frame.select(plain), "the same in Polars")
    yield Case(
        "Arrow: mean", lambda: arrow.mean("x", eps=EPS), lambda: frame.select(clipped.mean()), "the same in Polars"
    )
    keys = range(GROUPS)
    yield Case(
        "Polars: mean by 1e5 groups", lambda: d.mean("x", eps=EPS, by="g", keys=keys),
        lambda: frame.group_by("g").agg(clipped.mean()), "the same in Polars",
    )  # fmt: skip
