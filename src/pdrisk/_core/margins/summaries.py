"""Summaries of margins: the sums of those of the cells."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pdrisk._core.margins.components import Axes, margin
from pdrisk._core.summary import IntArray, Summary

SUMS: Final = ("n", "steps", "places", "place_squares", "whole")  # parts of a summary that add up


def in_grid(numbers: IntArray, places: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """Numbers of all cells, which have these places row by row, in a table of these sizes."""
    grid = np.empty_like(numbers)
    grid[places] = numbers
    return grid.reshape(sizes)


def summary_of_margin(summary: Summary, places: IntArray, sizes: tuple[int, ...], axes: Axes) -> Summary:
    """Summary of the records of each cell of a margin, row by row: as far as it is made of sums.

    ``summary``: of the cells.
    ``places``: shape (G,). Where each of them stands in the table, row by row.
    """

    def summed(numbers: IntArray) -> IntArray:
        return margin(in_grid(numbers, places, sizes), len(sizes), axes).reshape(-1)

    totals: dict[str, Any] = {
        name: summed(cell_sums) for name in SUMS if (cell_sums := getattr(summary, name)) is not None
    }
    products = {degrees: np.stack([*map(summed, sums)]) for degrees, sums in summary.products.items()}
    return Summary(**totals, products=products)
