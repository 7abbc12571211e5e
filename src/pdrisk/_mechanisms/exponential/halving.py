"""Order in which several quantiles are chosen: each one halves the rest (Kaplan, Schnapp & Stemmer 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Node:
    """One quantile, and those on either side of it."""

    row: int  # its number among all, in their order
    share: Fraction  # which quantile it is of the records between the nearest ones that were chosen before
    eps: Fraction
    left: Node | None = None
    right: Node | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing is chosen on either side of it."""
        return self.left is None and self.right is None

    def paths(self, before: tuple[Node, ...] = ()) -> Iterator[tuple[Node, ...]]:
        """For each quantile the nodes from this one to its own."""
        path = (*before, self)
        yield path
        for side in (self.left, self.right):
            if side is not None:
                yield from side.paths(path)


@lru_cache(maxsize=64)
def tree_of(quantiles: tuple[Fraction, ...], eps: Fraction) -> Node:
    """The tree of these quantiles, which rise from above 0 to below 1.

    A branch of m quantiles has ``floor(log2 m) + 1`` levels. Each level has an even share of what is left of eps, so
    that no path costs more than eps.
    """
    tree = _tree(quantiles, 0, Fraction(0), Fraction(1), eps)
    assert tree is not None
    return tree


def _tree(quantiles: Sequence[Fraction], row: int, low: Fraction, high: Fraction, eps: Fraction) -> Node | None:
    if not quantiles:
        return None
    share, middle = eps / len(quantiles).bit_length(), len(quantiles) // 2
    q = quantiles[middle]
    return Node(
        row + middle,
        (q - low) / (high - low),
        share,
        _tree(quantiles[:middle], row, low, q, eps - share),
        _tree(quantiles[middle + 1 :], row + middle + 1, q, high, eps - share),
    )
