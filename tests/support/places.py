"""The places of records on the grid of two_sums and bernstein, one by one."""

import math

from pdrisk._core.lattice import PlaceGrid

__all__ = ["place"]


def place(x, universe):
    """The one rule, in float64, of a record that is clamped first."""
    grid, held = PlaceGrid.of(universe), min(max(x, universe.lo), universe.hi)
    return math.floor((held - grid.origin) * grid.per_unit + grid.shift)
