"""The summaries of many samples of one size: each row of a matrix is a group."""

from __future__ import annotations

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Lattice, PlaceGrid, Points
from pdrisk._core.summary import FloatArray, Needs, Summary, window_start
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import squares_of_places


def summary_of_samples(samples: FloatArray, universe: Universe, needs: Needs) -> Summary:
    """Summarise each row as one group.

    ``samples``: shape (G, n). Clamped and not missing, every row in ascending order.
    Returns: Of G groups with n records each, as `summary_of_one` gives it for every row. Sums are taken in
        ascending order and may differ from those of another order in the last digits.
    """
    groups, size = samples.shape
    n = np.full(groups, size, dtype=np.int64)

    def record(rank: int) -> FloatArray:
        """x_k of every row, padded by the universe."""
        if 1 <= rank <= size:
            return samples[:, rank - 1]
        return np.full(groups, universe.lo if rank < 1 else universe.hi)

    total, squares, nearest, steps = None, None, None, None
    if needs.total or needs.squares:
        total = samples.sum(axis=1)
    if needs.squares and total is not None:
        squares, nearest = _distances(samples, total / max(size, 1))
    if needs.steps:
        # Integers below 2**53 each, summed as integers: exact, and clamped as `summary_of_one` does.
        whole = np.rint(samples * (1 / Lattice.of_records(universe.magnitude).step)).astype(np.int64)
        steps = whole.sum(axis=1)
    places = place_squares = whole_sums = None
    if needs.places or needs.place_squares:
        placed_ = PlaceGrid.of(universe).placed(samples)
        places, place_squares = placed_.astype(np.int64).sum(axis=1), squares_of_places(placed_).sum(axis=1)
    if needs.whole:
        whole_sums = np.floor(samples + 0.5).astype(np.int64).sum(axis=1)
    cells = {name: _cells(samples, points) for name, points in needs.points(universe).items()}
    windows = {}
    for q in needs.windows:
        start = int(window_start(n[:1], q)[0]) if groups else 0
        windows[q] = np.stack([record(start + step) for step in range(4)])
    return Summary(
        n,
        total,
        steps,
        np.stack([record(1), record(2)]),
        np.stack([record(size), record(size - 1)]),
        squares,
        nearest,
        windows,
        places,
        place_squares,
        whole_sums,
        cells=cells.get("cells"),
        whole_cells=cells.get("whole_cells"),
    )


def _cells(samples: FloatArray, points: Points) -> Cells:
    keys = points.index(samples).astype(np.int64) + np.arange(len(samples))[:, np.newaxis] * points.size
    begins = np.flatnonzero(np.diff(keys.ravel(), prepend=-1))
    return Cells.of_keys(keys.ravel()[begins], np.diff(begins, append=keys.size), len(samples), points.size)


def _distances(samples: FloatArray, means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of squared distances from the mean of each row, and the smallest distance."""
    groups, size = samples.shape
    if size == 0:
        return np.zeros(groups), np.zeros(groups)
    centred = samples - means[:, np.newaxis]
    offsets = centred.sum(axis=1)
    np.abs(centred, out=centred)
    nearest = centred.min(axis=1)
    np.square(centred, out=centred)
    # The mean is rounded, so the distances do not quite add up to zero (Chan, Golub & LeVeque 1983, eq. 1.7).
    return np.maximum(centred.sum(axis=1) - offsets**2 / size, 0.0), nearest
