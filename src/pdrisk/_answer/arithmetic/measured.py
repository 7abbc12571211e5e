"""Measurements: the uncut numbers that noisy answers were made of, with the law of their noise and their identity.

Contract, for whoever computes with answers:

- `NoisyAnswers.measurements` (a release: ``release.noisy.measurements``) is a `Measurements` of all its cells, or None
  where the answer is opaque: chosen instead of computed with additive noise, or rounded by a ledger in such a way that
  nothing else may be let out.
- `measurements_of(table)` gives those of each line of a table that pdrisk returned, from its attrs; it refuses edited
  rows. A table of several lines (`agg`, `describe`) has one for each, in the order of ``Answer.lines``; each covers the
  rows of its line.
- ``numbers`` (k, G) are float64, uncut, NaN where withheld; ``exact(cell)`` has them as Fractions. ``law`` (`Law`) says
  what they are multiples of, the scale of the noise of each, and how the answer follows: ``top @ numbers + constant``,
  or ``(top @ numbers) / (bottom @ numbers)``; neither for variances and statistics of two columns (``top`` is empty).
- ``draw`` and ``cells`` are their identity: number i of cell g is the variable ``(draw, i, cells[g])``. Two
  measurements with one identity have the same noise; with different ones independent noise.
- Intervals: `pdrisk._answer.arithmetic.forms`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.arithmetic.packed_arrays import packed_array, unpacked_array
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.laws.law import Law

MEASURED: Final = "measured"
DRAW: Final = "draw"  # identity of the draw, the line of the answer and the cell, apart by colons
MOST_NUMBERS: Final = 9  # that a mechanism measures in each cell
MEASURED_COLUMNS: Final = (DRAW, MEASURED, *(f"{MEASURED}_{at}" for at in range(MOST_NUMBERS)))
WITHHELD: Final = np.iinfo(np.int64).min  # stands for NaN among integers
FEW: Final = 2**10  # labels that Python writes in as little time as numpy
PIECE: Final = 2**14  # labels at a time, whose digits stay in the processor's cache


def new_draw() -> str:
    """Identity of a draw: 128 random bits, which no data decide, as 32 hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurement behind an answer: what was drawn, uncut, and the law of its noise. All of it may be published.

    Attributes
    ----------
    numbers : tuple of Fraction
        The exact numbers plus noise, multiples of ``unit``: the answer itself for counts and sums; two for a mean, the
        sum of all distances of the values from the lower bound in units of the bounds' width, and from the upper one;
        three or more for variances and statistics of two columns. docs/numbers.md has them by mechanism.
    unit : Fraction
        What each number is a multiple of; with a ledger that rounds, before that.
    scale : Fraction
        Of the discrete Laplace noise of each number, in its unit: noise of ``j * unit`` has probability proportional to
        ``exp(-abs(j) * unit / scale)``, independently.
    """

    numbers: tuple[Fraction, ...]
    unit: Fraction
    scale: Fraction


@dataclass(frozen=True)
class Measurements:
    """Uncut numbers of G cells that one mechanism drew, with the law of their noise.

    Attributes
    ----------
    law : Law
    drawn : ndarray of int64 or float64, shape (k, G)
        Multiples of the unit, or the numbers themselves; marked where withheld.
    draw : str
        Identity of the draw.
    cells : ndarray of int64, shape (G,)
        Which of the cells of the draw these are.
    """

    law: Law
    drawn: NDArray[Any]
    draw: str
    cells: IntArray

    @classmethod
    def of(cls, law: Law, drawn: NDArray[Any], draw: str) -> Measurements:
        """Measurements of all cells of a draw."""
        rows = np.atleast_2d(drawn)[: law.numbers]
        return cls(law, rows, draw, np.arange(rows.shape[1]))

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Which cells are withheld, shape (G,): nothing was kept of these."""
        first: NDArray[Any] = self.drawn[0]
        return first == WITHHELD if first.dtype.kind == "i" else np.isnan(first)

    @property
    def numbers(self) -> FloatArray:
        """The uncut numbers, shape (k, G), in the unit of the law's scale; NaN where withheld."""
        return np.where(self.withheld, np.nan, self.law.measured(self.drawn))

    @property
    def variance(self) -> float:
        """Variance of the noise of each number."""
        return self.law.variance

    def exact(self, cell: int) -> Measured | None:
        """The measurement of a cell in exact fractions; None where it is withheld."""
        if self.withheld[cell]:
            return None
        return Measured(self.law.exact(self.drawn, cell), self.law.unit, self.law.scale)

    def take(self, cells: Any) -> Measurements:
        """Measurements of some of the cells, by position or a mask."""
        return replace(self, drawn=self.drawn[:, cells], cells=self.cells[cells])

    def rounded(self, base: float) -> Measurements | None:
        """What a ledger that rounds lets out: counts and sums rounded but uncut; None of others."""
        if self.law.numbers > 1 or self.law.top != (1.0,):
            return None
        numbers = np.rint(self.numbers / base) * base
        whole = self.law.whole and float(base).is_integer()
        law = replace(self.law, rounding=self.law.rounding + base / 2, whole=whole)
        return replace(self, drawn=numbers, law=law)


def packed(measurements: Sequence[Measurements | None], digest: str) -> dict[str, Any]:
    """Measurements of the lines of a table as JSON values, with the digest of its index; draws are kept once."""
    draws: list[dict[str, Any]] = []
    lines: list[dict[str, Any] | None] = []
    places: dict[tuple[str, bytes], int] = {}
    for measurement in measurements:
        if measurement is None:
            lines.append(None)
            continue
        key = measurement.draw, measurement.drawn.tobytes()
        if key not in places:
            places[key] = len(draws)
            kind, plain = (
                measurement.drawn.dtype.kind,
                measurement.cells.size and (measurement.cells == np.arange(measurement.cells.size)).all(),
            )
            packed_draw = {"draw": measurement.draw, "kind": kind, "rows": len(measurement.drawn)}
            packed_draw["drawn"] = packed_array(measurement.drawn, f"<{kind}8")
            draws.append(packed_draw if plain else packed_draw | {"cells": packed_array(measurement.cells, "<i8")})
        lines.append({"of": places[key], **measurement.law.said})
    return {"digest": digest, "draws": draws, "lines": lines}


def packed_ends(low: FloatArray, high: FloatArray, digest: str) -> dict[str, Any]:
    """Ends of the intervals of a table, row by row, as JSON values, with the digest of its labels."""
    return {"digest": digest, "low": packed_array(low, "<f8"), "high": packed_array(high, "<f8")}


def unpacked_ends(stored: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """The ends from `packed_ends`."""
    return unpacked_array(stored["low"], "<f8"), unpacked_array(stored["high"], "<f8")


def unpacked(stored: dict[str, Any]) -> list[Measurements | None]:
    """The measurements from `packed`."""
    draws = []
    for draw in stored["draws"]:
        drawn = unpacked_array(draw["drawn"], f"<{draw['kind']}8").reshape(draw["rows"], -1)
        cells = unpacked_array(draw["cells"], "<i8") if "cells" in draw else np.arange(drawn.shape[1])
        draws.append((drawn, draw["draw"], cells))
    measurements: list[Measurements | None] = []
    for line in stored["lines"]:
        if line is None:
            measurements.append(None)
            continue
        law = {name: value for name, value in line.items() if name != "of"}
        measurements.append(Measurements(Law.of_said(law), *draws[line["of"]]))
    return measurements


def digest_of(*indexes: pd.Index) -> str:
    """Digest of the labels of a table's rows, in their order, and of its columns where they are labels, too."""
    digest = blake2b(digest_size=16)
    for index in indexes:
        for at in range(index.nlevels):
            level = index.get_level_values(at)
            if _are_whole(level) and level.is_monotonic_increasing and level.is_unique:
                codes, labels = np.arange(len(level)), level
            else:
                codes, labels = pd.factorize(level, use_na_sentinel=False)
            digest.update(_written(labels))
            digest.update(codes.astype("<i8", copy=False).data)
    return digest.hexdigest()


def _are_whole(labels: pd.Index) -> bool:
    return isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iu"


def _written(labels: pd.Index) -> bytes:
    """The labels as text, apart by zero bytes."""
    if len(labels) <= FEW or not _are_whole(labels) or labels.min() < 0:
        return "\0".join(map(str, labels.tolist())).encode("utf-8", "surrogatepass")
    largest = int(labels.max())
    numbers, width = labels.to_numpy(np.uint32 if largest < 2**32 else np.uint64), len(str(largest))
    pieces = (numbers[start : start + PIECE] for start in range(0, len(numbers), PIECE))
    return b"".join(_digits(piece, width) for piece in pieces)[:-1]


def _digits(numbers: NDArray[Any], width: int) -> bytes:
    """Whole numbers of at most so many digits, a zero byte behind each."""
    digits, shown = (np.zeros((len(numbers), width + 1), dtype=kind) for kind in (np.uint8, np.bool_))
    for at in reversed(range(width)):
        shown[:, at], tens = numbers > 0, numbers // 10
        digits[:, at], numbers = numbers - tens * 10 + ord("0"), tens
    shown[:, width - 1 :] = True
    return digits[shown].tobytes()
