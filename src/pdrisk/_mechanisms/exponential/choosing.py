"""Choice among weighted items by exact whole numbers, of many groups at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.exponential.items import Items
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Weights
from pdrisk._mechanisms.noise.entropy import Bits

WORD = 64
KEPT = 62  # bits of a word that floating-point shares are compared with
ERROR = 2**10  # of a cumulative share, in units of 2**-62, for each item


def chosen_points(items: Items, index: IntArray, weights: Weights, measure: Measure, bits: Bits) -> IntArray:
    """For each group a point, with a probability of exactly its weight, times its places, over the sum of all.

    ``index``: shape (m,). Where the items' weights stand in the table.
    """
    mass = weights.shares[index] * items.places

    def exact(part: slice) -> list[int]:
        places = items.places[part].tolist()
        return [weights.table[h] * w for h, w in zip(index[part].tolist(), places, strict=True)]

    place = chosen_items(mass, items.group, items.first, exact, bits)
    return measure.point(measure.before(items.start[place]) + uniform_below(items.places[place], bits))


def chosen_items(
    mass: FloatArray, group: IntArray, first: IntArray, exact: Callable[[slice], list[int]], bits: Bits
) -> IntArray:
    """For each group one of its items, with a probability of exactly its mass over the sum of all.

    A uniform U in [0, 1) of infinitely many bits chooses the item whose cumulative share contains it. Let a group have
    m items, u = 2**-53. Its shares are floats: rounded ten times; divided by their sum, of at most m - 1 additions in
    whatever order. All in all each is off by at most (m + 13) u of itself, to first order; cut to whole units of 2**-62
    by one unit more; then they are added up without any error, as integers. So cumulative shares are off by at most
    ``(m + 13) 2**9 + m <= 2**10 (m + 8)`` units, the terms of higher order included. The first 62 bits of U say that it
    lies in an interval of one unit. If that is farther than this from both ends of the item's interval, the item is the
    one; if not, exact integers and as many bits of U as it takes decide, which happens to one in 2**40 of small groups.

    ``mass``: shape (m,). Changed here. Each is rounded ten times at most.
    ``group``: shape (m,)
    ``first``: shape (G + 1,)
    ``exact``: the masses of a slice of items as whole numbers, times one number.
    """
    sizes = first[1:] - first[:-1]
    words = bits(len(sizes))
    mass *= (2.0**KEPT / np.add.reduceat(mass, first[:-1]))[group]
    units = mass.astype(np.uint64).cumsum()  # modulo 2**64: differences within a group are exact
    start = np.concatenate([units[:1] * np.uint64(0), units])[first[:-1]]
    up_to = (units - start[group]).view(np.int64)
    wanted = (words >> np.uint64(WORD - KEPT)).view(np.int64)
    place = np.add.reduceat((up_to <= wanted[group]).astype(np.int64), first[:-1])
    place = first[:-1] + np.minimum(place, sizes - 1)
    slack = ERROR * (sizes + 8)
    low = np.where(place > first[:-1], up_to[place - 1], -1 - slack)
    high = np.where(place < first[1:] - 1, up_to[place], 2**KEPT + 1 + slack)
    undecided = (wanted - low < slack) | (high - wanted - 1 < slack)
    for at in undecided.nonzero()[0].tolist():
        part = slice(int(first[at]), int(first[at + 1]))
        place[at] = part.start + _decided(exact(part), int(words[at]), bits)
    return place


def _decided(masses: list[int], uniform: int, bits: Bits) -> int:
    """The item in whose share the uniform number lies, exactly, given its first 64 bits."""
    sums = list(itertools.accumulate(masses))
    known = WORD
    while True:
        low, high = uniform * sums[-1], (uniform + 1) * sums[-1]
        place = next(at for at, total in enumerate(sums) if total << known > low)
        if high <= sums[place] << known:
            return place
        uniform = uniform << WORD | int(bits(1)[0])
        known += WORD


def uniform_below(sizes: IntArray, bits: Bits) -> IntArray:
    """Uniform whole numbers from 0 to below each size; words that would favour some are drawn again."""
    result = np.zeros(len(sizes), dtype=np.int64)
    left = (sizes > 1).nonzero()[0]
    while len(left):
        size = sizes[left].astype(np.uint64)
        words = bits(len(left))
        spare = (np.uint64(2**WORD - 1) - size + np.uint64(1)) % size  # 2**64 mod size
        fair = words <= np.uint64(2**WORD - 1) - spare
        result[left[fair]] = (words[fair] % size[fair]).astype(np.int64)
        left = left[~fair]
    return result
