"""Rows of each person with the smallest hashes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk.engines.numpy.chunks import SIZE

FEW: Final = 6  # rows of a person, up to which it is faster to look for the smallest again and again than to sort
LARGEST: Final = np.uint64(2**64 - 1)


def smallest_of_each(of: NDArray[np.int64], hashes: NDArray[np.uint64], most: int) -> NDArray[np.bool_]:
    """Which things have the smallest hashes of their owner's, ``most`` of each at most.

    ``of``: owners, numbered from 0; shape (N,), which is not 0
    """
    kept = _found_one_by_one(of, hashes, most) if most <= FEW else _found_in_order(of, hashes, most)
    tied = np.flatnonzero((np.bincount(of[kept]) > most)[of])
    order = tied[np.lexsort((hashes[tied], of[tied]))]
    kept[order] = rank_within(of[order]) < most
    return kept


def _found_one_by_one(of: NDArray[np.int64], hashes: NDArray[np.uint64], most: int) -> NDArray[np.bool_]:
    """The smallest ones, and those that equal the last of these."""
    last = np.full(int(of.max()) + 1, LARGEST)
    np.minimum.at(last, of, hashes)
    for _ in range(most - 1):
        following = np.full(len(last), LARGEST)
        for start in range(0, len(of), SIZE):
            owners, left = of[start : start + SIZE], hashes[start : start + SIZE]
            np.minimum.at(following, owners, np.where(left > last[owners], left, LARGEST))
        last = following
    kept = np.empty(len(of), dtype=bool)
    for start in range(0, len(of), SIZE):
        piece = slice(start, start + SIZE)
        np.less_equal(hashes[piece], last[of[piece]], out=kept[piece])
    return kept


def _found_in_order(of: NDArray[np.int64], hashes: NDArray[np.uint64], most: int) -> NDArray[np.bool_]:
    """The smallest ones, and those whose first bits equal those of the last of these.

    Owner and first bits of the hash make one number, which sorts ten times as fast as both.
    """
    bits = 64 - int(of.max()).bit_length()
    keys = (of.astype(np.uint64) << np.uint64(bits)) | (hashes >> np.uint64(64 - bits))
    sizes = np.bincount(of)
    ends = np.cumsum(sizes)
    return keys <= np.sort(keys)[np.minimum(ends - sizes + most, ends) - 1][of]


def rank_within(*sorted_keys: NDArray[Any]) -> NDArray[np.int64]:
    """For each of sorted things its place, from 0, among those with equal keys."""
    size = len(sorted_keys[0])
    starts = np.ones(size, dtype=bool)
    if size:
        starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    first = np.maximum.accumulate(np.where(starts, np.arange(size), 0))
    return np.arange(size) - first


def copies(of: NDArray[np.int64], contents: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Rows that equal another of their owner's, but one of each, and a number from 1 among these."""
    alike = perhaps_repeated(contents)
    order = alike[np.argsort(contents[alike])]
    ordered = contents[order]
    if (np.diff(of[order]) != 0)[ordered[1:] == ordered[:-1]].any():  # an owner is somebody in one of several groups
        order = alike[np.lexsort((contents[alike], of[alike]))]
        ordered = contents[order]
    number = rank_within(of[order], ordered)
    return order[number > 0], number[number > 0].astype(np.uint64)


def perhaps_repeated(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Where hashes are that occur more than once, and some others.

    The first bits of a hash name a word, the next six a bit of it. Of the sum of a word's bits as many are set as were
    added, unless one was added twice.
    """
    bits = max(len(hashes).bit_length() - 1, 1)
    by_word, by_bit, six = np.uint64(64 - bits), np.uint64(58 - bits), np.uint64(63)
    sums, added = np.zeros(2**bits, dtype=np.uint64), np.zeros(2**bits, dtype=np.uint32)
    pieces = [(start, hashes[start : start + SIZE]) for start in range(0, len(hashes), SIZE)]
    for _, piece in pieces:
        words = (piece >> by_word).view(np.intp)
        np.add.at(sums, words, np.uint64(1) << (piece >> by_bit & six))
        np.add.at(added, words, np.uint32(1))
    faulty = np.bitwise_count(sums) != added
    if not faulty.any():
        return np.zeros(0, dtype=np.intp)
    return np.concatenate([np.flatnonzero(faulty[(piece >> by_word).view(np.intp)]) + start for start, piece in pieces])
