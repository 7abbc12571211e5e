"""Items of the exponential mechanism: occupied points, and the gaps between them, of which all points score alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights


@dataclass(frozen=True, slots=True)
class Items:
    """Runs of points of G groups that score alike: gap, occupied point, gap, ..., gap; a gap may be empty.

    Points so far from the rank asked for that one record more or less leaves their weight the smallest one, whatever
    their scores, belong to the first and last gap, be they occupied or not.
    """

    group: IntArray  # shape (m,)
    # `start`, `width`: first point and number of points; shape (m,)
    start: IntArray
    width: IntArray
    places: IntArray  # number of places of these points in the base measure; shape (m,)
    # `less`, `up_to`: numbers of records below a point, and up to and with it; shape (m,)
    less: IntArray
    up_to: IntArray
    holds: NDArray[np.bool_]  # whether there is a record; shape (m,)
    first: IntArray  # where each group begins, and the end; shape (G + 1,)
    n: IntArray  # shape (G,)


def items_of(
    cells: Cells, score: Score, weights: Weights, measure: Measure, low: int | IntArray = 0, end: IntArray | None = None
) -> Items:
    """The items of G groups, among all points of a measure, or those from ``low`` to before ``end``, shape (G,).

    The scores of points from left to right fall to a minimum and rise again, so those below any number are one run.
    What is left of the run scores as the gap before it does or worse, and that as the occupied point before the gap.
    """
    groups = len(cells.first) - 1
    group = np.arange(groups).repeat(cells.first[1:] - cells.first[:-1])
    total = np.concatenate([[0], cells.count.cumsum()])
    n = total[cells.first[1:]] - total[cells.first[:-1]]
    target = score.target(n)
    up_to = total[1:] - total[cells.first[group]]
    less = up_to - cells.count
    near = score.of(less, up_to, target[group]) < (weights.cap + weights.span) * weights.coarse
    first = np.concatenate([[0], near.cumsum()])[cells.first]
    group, point, less, up_to = group[near], cells.point[near], less[near], up_to[near]

    # Where no occupied point is near, all points share one gap on the better side of all records.
    some = first[1:] > first[:-1]
    outside = np.where(target < 0, 0, n)
    gaps_of = first[1:] - first[:-1] + 1
    before, after = (
        np.full(groups, limit, dtype=np.int64).repeat(gaps_of) for limit in (low, measure.size if end is None else end)
    )
    gap_before = np.arange(len(point)) + group  # of the gap before each occupied point
    after[gap_before] = point
    before[gap_before + 1] = point + 1
    ranks = np.empty(len(point) + groups, dtype=np.int64)
    ranks[gap_before + 1] = up_to
    starts = first[:-1] + np.arange(groups)
    ranks[starts] = outside
    ranks[starts[some]] = less[first[:-1][some]]

    size = 2 * len(point) + groups
    of_gaps = np.arange(groups).repeat(gaps_of)
    gaps = 2 * np.arange(len(point) + groups) - of_gaps
    occupied = 2 * np.arange(len(point)) + 1 + group
    items = {name: np.empty(size, dtype=np.int64) for name in ("group", "start", "width", "less", "up_to")}
    holds = np.ones(size, dtype=np.bool_)
    for name, in_gaps, in_points in (
        ("group", of_gaps, group),
        ("start", before, point),
        ("width", after - before, 1),
        ("less", ranks, less),
        ("up_to", ranks, up_to),
    ):
        items[name][gaps] = in_gaps
        items[name][occupied] = in_points
    holds[gaps] = False
    begin = 2 * first + np.arange(groups + 1)
    holds[begin[:-1]] = items["less"][begin[:-1]] > 0
    holds[begin[1:] - 1] |= items["up_to"][begin[1:] - 1] < n
    places = items["width"]
    if measure.zero is not None:
        last = begin[1:] - 1
        before = measure.before(items["start"])  # each item ends where the next one of its group starts
        beyond = np.concatenate([before[1:], [0]])
        beyond[last] = measure.before((items["start"] + items["width"])[last])
        places = beyond - before
    return Items(**items, places=places, holds=holds, first=begin, n=n)
