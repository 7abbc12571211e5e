"""Summary of the records of each group, as an engine reads them: the only thing the formulas see of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.products import Degrees
from pdrisk._core.size_sums import SizeSums
from pdrisk._core.universe import Universe

if TYPE_CHECKING:
    from pdrisk._core.contributions import ExtremeContributions

FEW = 2**12  # numbers that an answer may keep for those who ask for facts later

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Bins(NamedTuple):
    """Bins of numbers."""

    edges: tuple[float, ...]  # ascending; each bin holds its left edge, the last one both
    clamps: bool  # whether records beyond the edges count in the first and last bin, instead of not at all

    @property
    def universe(self) -> Universe:
        """From the first edge to the last."""
        return Universe(self.edges[0], self.edges[-1])


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks around an order statistic, counted from 1: of n records those from `first` to `last`."""

    # `a`, `b`, `offset`: the rank in the middle is ``(a n + offset) / b``
    a: int
    b: int
    offset: int
    # `before`, `after`: how many ranks below and above it; None: all of them
    before: int | None
    after: int | None
    q: float | None = None  # the quantile that it is, whose window of `window_start` lies among these ranks

    @property
    def width(self) -> int | None:
        """Number of ranks, give or take one; None if it depends on the data."""
        return None if self.before is None or self.after is None else self.before + self.after

    def first(self, n: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first rank, 1 or above."""
        if self.before is None:
            return np.ones_like(n)
        return np.maximum((self.a * n + self.offset) // self.b - self.before, 1)

    def last(self, n: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last rank, n or below; below the first where there is none."""
        return n if self.after is None else np.minimum(-(-(self.a * n + self.offset) // self.b) + self.after, n)


@dataclass(frozen=True, slots=True, repr=False)
class Needs:
    """Which parts of a `Summary` a statistic reads; an engine computes no others.

    ``windows`` lists the quantiles whose neighbouring order statistics are wanted. With ``ranks``, of the records at
    other ranks the cells need to tell only on which side of these they lie. With ``bins``, or ``sizes`` (signs
    and powers of two), the groups are bins, and ``n`` is what is told of them. ``products`` lists the degrees of the
    sums of two columns that are wanted; records with both values count, and ``ends`` are those of either column.
    """

    total: bool = False
    steps: bool = False
    ends: bool = False
    seconds: bool = False
    squares: bool = False
    places: bool = False
    place_squares: bool = False
    whole: bool = False
    distinct: bool = False
    cells: bool = False
    whole_cells: bool = False
    size_sums: bool = False
    windows: frozenset[float] = frozenset()
    bins: Bins | None = None
    sizes: bool = False
    products: frozenset[Degrees] = frozenset()
    ranks: frozenset[Ranks] = frozenset()

    def __repr__(self) -> str:
        # Part of the canonical text of questions in SQL: as the first edition wrote it, with what has come since added.
        first = ("total", "steps", "ends", "seconds", "squares", "windows")
        names = ("places", "place_squares", "whole", "distinct", "cells", "whole_cells", "size_sums")
        since = [name for name in names if getattr(self, name)]
        parts = [f"{name}={getattr(self, name)!r}" for name in (*first, *since)]
        parts += [f"products={sorted(self.products)!r}"] * bool(self.products)
        return f"Needs({', '.join(parts)})"

    def __or__(self, other: Needs) -> Needs:
        whole = any(needs.at_points and not needs.ranks for needs in (self, other))
        return Needs(
            self.total or other.total,
            self.steps or other.steps,
            self.ends or other.ends,
            self.seconds or other.seconds,
            self.squares or other.squares,
            self.places or other.places,
            self.place_squares or other.place_squares,
            self.whole or other.whole,
            self.distinct or other.distinct,
            self.cells or other.cells,
            self.whole_cells or other.whole_cells,
            self.size_sums or other.size_sums,
            self.windows | other.windows,
            self.bins or other.bins,
            self.sizes or other.sizes,
            self.products | other.products,
            frozenset() if whole else self.ranks | other.ranks,
        )

    @property
    def on_places(self) -> bool:
        """Whether records are put on the grid of `PlaceGrid`."""
        return self.places or self.place_squares or bool(self.products)

    @property
    def only_sums(self) -> bool:
        """Whether nothing but numbers of records and exact sums is read: `Summary.has_sums_of` tells them apart."""
        exact = ("steps", "places", "place_squares", "whole", "products")
        return self == Needs(**{name: getattr(self, name) for name in exact})

    @property
    def at_points(self) -> bool:
        """Whether cells are read."""
        return self.cells or self.whole_cells

    def points(self, universe: Universe) -> dict[str, Points]:
        """The public points at which records are counted, by the field of `Summary` that holds them."""
        wanted = [(name, whole) for name, whole in (("cells", False), ("whole_cells", True)) if getattr(self, name)]
        return {name: Points.between(universe.lo, universe.hi, whole) for name, whole in wanted}

    @property
    def moments(self) -> bool:
        """Whether anything but windows and the number of records is read."""
        on_grids = self.places or self.place_squares or self.whole or self.size_sums
        return self.total or self.steps or self.ends or self.seconds or self.squares or on_grids


@dataclass(frozen=True, slots=True)
class Summary:
    """The clamped, non-missing records of a batch of G groups.

    Order statistics are padded by the universe: ``x_k = lo`` for k < 1 and ``x_k = hi`` for k > n, which
    makes the formulas hold for n = 0, 1, 2 without a special case. A part that no statistic needs is None.
    """

    n: NDArray[np.int64]  # number of records; shape (G,)
    total: FloatArray | None = None  # their sum; shape (G,)
    # their sum, each record first rounded to the public lattice of `Sum`: exact in any order; shape (G,)
    steps: NDArray[np.int64] | None = None
    # `lowest`, `highest`: x_1, x_2 and x_n, x_{n-1}; the second row means nothing unless `Needs.seconds` asked
    # for it; shape (2, G)
    lowest: FloatArray | None = None
    highest: FloatArray | None = None
    squares: FloatArray | None = None  # sum of squared distances from the mean; shape (G,)
    nearest: FloatArray | None = None  # smallest absolute distance of a record from the mean; 0 where n = 0; shape (G,)
    # for each quantile q the order statistics from rank `window_start` on; shape (4, G)
    windows: Mapping[float, FloatArray] = field(default_factory=dict)
    # sum of the records' places on the grid of `PlaceGrid`: exact in any order; shape (G,)
    places: IntArray | None = None
    place_squares: IntArray | None = None  # sum of ``floor(k**2 / PLACES)`` over the records' places k; shape (G,)
    whole: IntArray | None = None  # sum of the records, each rounded to a whole number first (halves up); shape (G,)
    # `distinct`, `singles`: number of different values, and of those that one record alone has; shape (G,)
    distinct: IntArray | None = None
    singles: IntArray | None = None
    # number of records that lay outside the universe and were moved to its ends; shape (G,)
    clamped: IntArray | None = None
    # `cells`, `whole_cells`: The records rounded to the `Points` of the universe, decimal ones or whole
    # numbers. With `Needs.ranks`, those at other ranks may have been moved, but to no point on the other side
    # of a record at these.
    cells: Cells | None = None
    whole_cells: Cells | None = None
    # of two columns: the sums of `products_of_places` over the records, for each pair of degrees; shape (m, G)
    products: Mapping[Degrees, IntArray] = field(default_factory=dict)
    # Of two columns: ``n`` and the ends of the second one, of the same records. Of sums of different values:
    # those of the values that one record alone has.
    other: Summary | None = None
    size_sums: SizeSums | None = None  # sums of the records between the `SizePoints` of the universe
    # of people who may have several records: what single ones have, for curators
    contributions: ExtremeContributions | None = None
    # of people of whom not all rows count: how many records there would be if all did; shape (G,)
    offered: IntArray | None = None
    # of several lines with one draw that have columns of their own: the summaries of all, in their order
    together: tuple[Summary, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether it holds few numbers, and none of people."""
        cells = [part for part in (self.cells, self.whole_cells) if part is not None]
        return self.size_sums is None and self.contributions is None and sum(len(cell.point) for cell in cells) <= FEW

    def of_rows(self, groups: NDArray[np.integer]) -> Summary:
        """For each of R records the summary of its group, shape (R,) instead of (G,)."""

        def of(part: Any) -> Any:
            return None if part is None else part[..., groups]

        return Summary(
            self.n[groups],
            of(self.total),
            of(self.steps),
            of(self.lowest),
            of(self.highest),
            of(self.squares),
            of(self.nearest),
            {q: of(window) for q, window in self.windows.items()},
            of(self.places),
            of(self.place_squares),
            of(self.whole),
            of(self.distinct),
            of(self.singles),
            of(self.clamped),
            None if self.cells is None else self.cells.of_rows(groups),
            None if self.whole_cells is None else self.whole_cells.of_rows(groups),
            {degrees: of(sums) for degrees, sums in self.products.items()},
            None if self.other is None else self.other.of_rows(groups),
            self.size_sums,  # that of all groups, whatever the rows
        )

    def has_sums_of(self, other: Summary) -> bool:
        """Whether the numbers of records are those of another summary, and so are the exact sums that it has."""
        names = ("steps", "places", "place_squares", "whole")
        pairs = [(getattr(self, name), getattr(other, name)) for name in names]
        pairs += [(self.products.get(degrees), sums) for degrees, sums in other.products.items()]
        return np.array_equal(self.n, other.n) and all(
            theirs is None or (ours is not None and np.array_equal(ours, theirs)) for ours, theirs in pairs
        )


def whole_and_part(n: NDArray[np.int64], q: float) -> tuple[NDArray[np.int64], FloatArray]:
    """Floor and fractional part of the exact product ``n * q``.

    The plain float product is off by up to n * 2**-53, which for large n is not small against a gap
    between records. Dekker's splitting (1971) gives the rounding error of the product exactly.

    ``n``: shape (G,). At most 2**53 in absolute value.
    ``q``: in [0, 1].
    """
    count = n.astype(np.float64)
    product = count * q
    splitter = 134217729.0  # 2**27 + 1
    high_n = splitter * count - (splitter * count - count)
    high_q = splitter * q - (splitter * q - q)
    low_n, low_q = count - high_n, q - high_q
    error = ((high_n * high_q - product) + high_n * low_q + low_n * high_q) + low_n * low_q
    whole = np.floor(product)
    whole -= (product == whole) & (error < 0)
    return whole.astype(np.int64), (product - whole) + error


def window_start(n: NDArray[np.int64], q: float) -> NDArray[np.int64]:
    """Rank (1-based, 0 and below meaning lo) of the first of the four order statistics around quantile q.

    With j = floor(n q): adding or removing one record interpolates between ranks j and j + 3 for q <= 1/2
    (j + 2 suffices at 1/2), and between j - 1 and j + 2 above; the proof is in docs/numbers.md.

    ``n``: shape (G,)
    ``q``: in [0, 1].
    """
    return whole_and_part(n, q)[0] - (q > 0.5)
