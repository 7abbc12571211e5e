"""Noisy numbers with weights: the terms of sums, those of one variable known by identity and put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._core.summary import FloatArray, IntArray

ROUNDING: Final = 2.0**-45  # of floats, relative to the weights that were added: what is below is none
LARGEST: Final = 2**62
VALUE, SCALE, UNIT, LEAST, MOST = range(5)


@dataclass(frozen=True)
class Noises:
    """Terms of R sums: m noisy numbers, each once at most in each sum, with its weight."""

    # Which sum; and which number: both halves of the identity of its draw, the cell, and which of its numbers.
    # Rows are in order; shape (m, 5)
    keys: IntArray
    weight: FloatArray  # shape (m,)
    # the noisy value of the number; the scale of its noise, what it is a multiple of, and its range without
    # noise; shape (m, 5)
    facts: FloatArray

    @classmethod
    def none(cls) -> Noises:
        """No terms."""
        return cls(np.zeros((0, 5), dtype=np.int64), np.zeros(0), np.zeros((0, 5)))

    @classmethod
    def of(cls, measured: Measurements, weights: tuple[float, ...]) -> Noises:
        """The numbers of each of G cells with their weights: terms of G sums."""
        size, law, draw = len(measured.cells), measured.law, int(measured.draw, 16)
        halves = np.array([draw >> 64, draw & (2**64 - 1)], dtype=np.uint64).view(np.int64)
        keys = np.empty((size, len(weights), 5), dtype=np.int64)
        keys[..., 0] = np.arange(size)[:, np.newaxis]
        keys[..., 1:3] = halves
        keys[..., 3] = measured.cells[:, np.newaxis]
        keys[..., 4] = np.arange(len(weights))
        facts = np.empty((size, len(weights), 5))
        facts[..., VALUE] = measured.numbers.T
        facts[..., 1:] = float(law.scale), float(law.unit), law.least, law.most
        flat = np.tile(np.array(weights, dtype=np.float64), size)
        return cls(keys.reshape(-1, 5), flat, facts.reshape(-1, 5)).chosen(flat != 0)

    @property
    def row(self) -> IntArray:
        """Which sum each term is in."""
        return self.keys[:, 0]

    def chosen(self, places: IntArray | NDArray[np.bool_]) -> Noises:
        """Some of the terms, by position or a mask."""
        return Noises(self.keys[places], self.weight[places], self.facts[places])

    def moved(self, row: IntArray, weight: FloatArray) -> Noises:
        """The terms in other sums, with other weights."""
        keys = self.keys.copy()
        keys[:, 0] = row
        return merged(Noises(keys, weight, self.facts))

    def plus(self, other: Noises) -> Noises:
        """These terms and others."""
        if not len(other.weight):
            return self
        return merged(_stacked(self, other))


def _stacked(one: Noises, other: Noises) -> Noises:
    return Noises(
        np.concatenate([one.keys, other.keys]),
        np.concatenate([one.weight, other.weight]),
        np.concatenate([one.facts, other.facts]),
    )


def merged(terms: Noises) -> Noises:
    """The terms with each variable once in each sum, without weights of 0."""
    if not len(terms.weight):
        return terms
    order, starts = _starts(terms.keys)
    weight = np.add.reduceat(terms.weight[order], starts)
    size = np.add.reduceat(np.abs(terms.weight[order]), starts)
    joined = replace(terms.chosen(order[starts]), weight=weight)
    return joined.chosen(np.abs(weight) > size * ROUNDING)


def aligned(one: Noises, other: Noises) -> tuple[Noises, FloatArray, FloatArray]:
    """The variables of two lists of terms, with the weight of each in the one and in the other."""
    both = _stacked(one, other)
    weights = np.zeros((2, len(both.weight)))
    weights[0, : len(one.weight)], weights[1, len(one.weight) :] = one.weight, other.weight
    if not len(both.weight):
        return both, weights[0], weights[1]
    order, starts = _starts(both.keys)
    first, second = np.add.reduceat(weights[:, order], starts, axis=1)
    return both.chosen(order[starts]), first, second


def _starts(keys: IntArray) -> tuple[IntArray, IntArray]:
    """An order in which equal keys are neighbours, and where in it another one begins."""
    packed = _packed(keys)
    order = np.lexsort(keys.T[::-1]) if packed is None else np.argsort(packed, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))


def _packed(keys: IntArray) -> IntArray | None:
    """Each key as one number, in the order of keys; None if they do not fit."""
    draws = np.zeros(len(keys), dtype=np.int64)
    if not (keys[:, 1:3] == keys[0, 1:3]).all():
        draws = np.unique(keys[:, 2], return_inverse=True)[1].reshape(-1)
    numbers, most = np.zeros(len(keys), dtype=np.int64), 1
    for column in (keys[:, 0], draws, keys[:, 3], keys[:, 4]):
        size = int(column.max()) + 1
        most *= size
        if most > LARGEST or int(column.min()) < 0:
            return None
        numbers = numbers * size + column
    return numbers


def sums(row: IntArray, terms: FloatArray, size: int) -> FloatArray:
    """Sums of the terms of each of so many rows."""
    return np.asarray(np.bincount(row, terms, size), dtype=np.float64)


def different(row: IntArray, columns: list[FloatArray], size: int) -> list[FloatArray]:
    """Different combinations of numbers in each sum, one below the other, with how often each occurs.

    ``row``: shape (m,)
    ``columns``: shape (m,)
    ``size``: r, the number of sums.
    Returns: shape (most, R). One for each column, and the numbers of times; 0 where a sum has fewer.
    """
    if not len(row):
        return [np.zeros((1, size)) for _ in range(len(columns) + 1)]
    order = np.lexsort([*columns, row])
    ordered = [column[order] for column in (row, *columns)]
    starts = np.flatnonzero(np.append(True, np.any([column[1:] != column[:-1] for column in ordered], axis=0)))
    rows, *values = (column[starts] for column in ordered)
    at = np.arange(len(rows)) - np.searchsorted(rows, rows)
    padded = np.zeros((len(values) + 1, int(at.max()) + 1, size))
    padded[:-1, at, rows] = values
    padded[-1, at, rows] = np.diff(np.append(starts, len(row)))
    return list(padded)
