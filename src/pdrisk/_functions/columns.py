"""From the Arrow columns of a macro to a `Summary`: one row for each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_STEPS, Lattice
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._functions.macros import HALF
from pdrisk._mechanisms import Mechanism
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one

if TYPE_CHECKING:
    import pyarrow as pa


def grid(name: str, universe: Universe) -> float:
    """Step of the public grid, a power of two, to which records are rounded before DuckDB adds them up.

    2**51 to 2**52 steps to the largest value M for ``total``, to the width R for ``squares``. A record is off by at
    most 2**-52 M, and with the roundings of sum and quotient the mean by 2**-50 M: far below the 2**-35 M of
    `Statistic.rounding`. A distance from lo is off by ``e <= 2**-51 R``: half a step, and the rounding of the
    subtraction. The standard deviation is a norm of the records over ``sqrt(n - ddof)``, so it is off by at most
    ``sqrt(2) e``; the variance by ``sqrt(2) e`` times the sum of two standard deviations, at most ``2**-49 R**2``: far
    below the 2**-34 R and 2**-36 R**2 of `Statistic.rounding`.

    ``name``: {"steps", "total", "squares"}; the grid of `Sum` itself; one for the mean that variances are about;
        one for the squared distances from lo.
    """
    if name == "steps":
        return Lattice.of_records(universe.magnitude).step
    return Lattice.of_records(universe.magnitude if name == "total" else universe.width).step * 2.0**-21


def summary_of(columns: Mapping[str, pa.ChunkedArray], mechanism: Mechanism) -> Summary:
    """Summary of the parts that these columns give.

    ``columns``: By their names in `pdrisk._functions.macros.COLUMNS`. NULL where a group has no record.
    """
    universe = mechanism.universe
    if isinstance(mechanism.statistic, Quantile | Min | Max):
        return _ranked(columns["records"], mechanism)
    count = next(columns[name] for name in ("n", "present", "rows") if name in columns)
    n = count.to_numpy().astype(np.int64)
    parts = {name: _floats(columns[name]) for name in columns if name in FLOATS}
    total = np.nan_to_num(parts["total"]) * grid("total", universe) if "total" in parts else None
    return Summary(
        n=n,
        total=total,
        steps=_steps(columns["steps"]) if "steps" in columns else None,
        lowest=_padded(parts, "lowest", universe.hi),
        highest=_padded(parts, "highest", universe.lo),
        squares=_squares(n, columns, universe) if "offsets" in columns else None,
        nearest=None if total is None or "records" not in columns else _nearest(columns["records"], n, total),
        places=_steps(columns["places"], 2**63 - 1) if "places" in columns else None,
        place_squares=_steps(columns["place_squares"], 2**63 - 1) if "place_squares" in columns else None,
    )


FLOATS = ("total", "lowest", "highest")


def _floats(column: pa.ChunkedArray) -> FloatArray:
    """The values with NaN for NULL, which stands for a missing first or second record of a group."""
    return column.to_numpy().astype(np.float64)


def _integers(column: pa.ChunkedArray) -> list[int]:
    return [0 if value is None else int(value) for value in column.to_pylist()]


def _steps(column: pa.ChunkedArray, end: int = LARGEST_STEPS) -> NDArray[np.int64]:
    clamped = [max(-end, min(value, end)) for value in _integers(column)]
    return np.array(clamped, dtype=np.int64)


def _padded(parts: Mapping[str, FloatArray], name: str, end: float) -> FloatArray | None:
    """Extreme records, shape (2, G), without the second row; the end of the universe if there is none."""
    if name not in parts:
        return None
    both = np.stack([parts[name], parts[name]])
    return np.where(np.isnan(both), end, both)


def _squares(n: NDArray[np.int64], columns: Mapping[str, pa.ChunkedArray], universe: Universe) -> FloatArray:
    # (n Σx² - (Σx)²)/n is fatal with floats and exact with integers; the quotient is rounded once.
    sums = (_integers(columns[name]) for name in ("offsets", "high_squares", "products", "low_squares"))
    squares = []
    for count, offset, high, product, low in zip(n.tolist(), *sums, strict=True):
        square = (high << 2 * HALF) + (product << HALF + 1) + low
        squares.append((count * square - offset * offset) / max(count, 1))
    step = grid("squares", universe)
    return np.array(squares, dtype=np.float64) * step * step


def _nearest(column: pa.ChunkedArray, n: NDArray[np.int64], total: FloatArray) -> FloatArray:
    records, lengths = _lists(column)
    nearest = np.zeros(len(n))
    filled = lengths > 0
    if filled.any():
        mean = total / np.maximum(n, 1)
        distances = np.abs(records - np.repeat(mean, lengths))
        starts = np.cumsum(lengths) - lengths
        nearest[filled] = np.fmin.reduceat(distances, starts[filled])
    return np.where(n > 0, nearest, 0.0)


def _ranked(column: pa.ChunkedArray, mechanism: Mechanism) -> Summary:
    records, lengths = _lists(column)
    if len(lengths) == 1:
        return summary_of_one(records, mechanism.universe, mechanism.reads)
    codes = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return summary_of_groups(records, codes, len(lengths), mechanism.universe, mechanism.reads)


def _lists(column: pa.ChunkedArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Values of all lists in a row, NULL as NaN, with the length of each list."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    return pc.list_flatten(column).to_numpy(), lengths
