"""Measures how far noisy answers are from the exact ones: ``python benchmarks/accuracy.py``.

Ends with status 1 if a goal is missed. Needs nothing but ``pip install pdrisk``; peers that are missing are named as
such.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accuracy_data import CLIPPED, EXACT, GOALS, GROUPED_GOALS, GROUPED_ROWS, SHAPES, STATISTICS, Shape
from accuracy_page import page, shown
from accuracy_peers import PEERS, Peer
from pdrisk._mechanisms import ClippedSums, Exponential, Mechanism
from pdrisk._model.query import Line
from pdrisk._pandas.lines import judged_lines
from pdrisk._pandas.options import Request
from pdrisk._pandas.requests import judged_selection

__all__ = ["Error", "Row", "grouped_rows", "main", "shape_rows"]

SIZES = (300, 1000, 10_000, 1_000_000)
EPS = ("0.1", "1")
DRAWS = 1000  # of pdrisk; the standard error of a mean absolute error is some 3 %
PEER_DRAWS = 200
QUICK_DRAWS = 50
FEWEST_DRAWS = 40
PATIENCE = 0.6  # seconds that the draws of a peer may take in one row
GOAL_SLACK, PEER_SLACK = 1.10, 1.05
SURE = 3.0  # standard errors, by which a goal must be missed to count as missed
GROUPED = "mean by groups"
AT_THE_BOUND = "at the bound"
WITH_INTERVAL = "with interval"
LEVEL = 0.95


@dataclass(frozen=True)
class Error:
    """Absolute errors of many draws: their mean, its standard error, and the quantile that 95 % keep within.

    ``coverage`` is the share of draws whose own 95 % interval holds the exact answer; None of answers without one.
    """

    mean: float
    standard_error: float
    quantile95: float
    coverage: float | None = None

    @classmethod
    def of(cls, values: Any, exact: Any, ends: Any = None) -> Error:
        """Errors of answers, of one draw or of one group each, and of the ends of their intervals."""
        off = np.abs(np.asarray(values, dtype=np.float64) - exact).ravel()
        rounding = 1e-9 * np.abs(exact)  # of what numpy and pdrisk sum
        covered = None if ends is None else np.mean((ends[0] <= exact + rounding) & (exact - rounding <= ends[1]))
        numbers = (off.mean(), off.std() / math.sqrt(off.size), np.quantile(off, 0.95))
        return cls(*map(float, numbers), None if covered is None else float(covered))

    def __str__(self) -> str:
        return f"{shown(self.mean)} ({shown(self.quantile95)})"


@dataclass(frozen=True)
class Row:
    """The errors of everybody who answers one statistic of one set of data at one eps.

    Attributes
    ----------
    judged : str
        The column of pdrisk that goals hold for.
    goal : float or None
    peers : frozenset of str
        Columns of the libraries that are compared with: those to which the number of records is private, too.
    """

    statistic: str
    data: str
    n: int
    eps: str
    errors: dict[str, Error]
    judged: str
    goal: float | None = None
    peers: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        return f"{self.statistic}, {self.data}, n {self.n:,}, eps {self.eps}"

    @property
    def best_peer(self) -> str | None:
        """The most accurate library to which n is private, too."""
        return min(self.peers & self.errors.keys(), key=lambda peer: self.errors[peer].mean, default=None)

    @property
    def ratio(self) -> float | None:
        """The error as a multiple of that of the best peer."""
        if self.best_peer is None:
            return None
        ours, theirs = self.errors[self.judged].mean, self.errors[self.best_peer].mean
        return ours / theirs if theirs > 0 else (1.0 if ours == 0 else math.inf)

    @property
    def misses(self) -> list[str]:
        """What is missed by more than chance."""
        ours, missed = self.errors[self.judged], []
        if self.goal is not None and ours.mean > GOAL_SLACK * self.goal + SURE * ours.standard_error:
            missed.append("goal")
        if self.best_peer is not None:
            theirs = self.errors[self.best_peer]
            unsure = SURE * math.hypot(ours.standard_error, PEER_SLACK * theirs.standard_error)
            if ours.mean > PEER_SLACK * theirs.mean + unsure:
                missed.append("peer")
        return missed

    def missed_by(self, what: str) -> str:
        """A miss in words."""
        ours = shown(self.errors[self.judged].mean)
        if what == "goal":
            return f"{ours}, goal {shown(self.goal or 0)}"
        return f"{ours}, {self.best_peer} {shown(self.errors[self.best_peer].mean)}" if self.best_peer else ours

    @property
    def is_judged(self) -> bool:
        return self.goal is not None or self.best_peer is not None

    def cells(self, columns: Sequence[str]) -> tuple[str, ...]:
        """A line of the table."""
        errors = [str(self.errors[each]) if each in self.errors else "-" for each in columns]
        errors = [f"**{error}**" if each == self.judged else error for each, error in zip(columns, errors, strict=True)]
        met = "-" if not self.is_judged else f"**no**: {', '.join(self.misses)}" if self.misses else "yes"
        compared = "-" if self.ratio is None else f"{self.ratio:.2f} of {self.best_peer}"
        compared = f"{self.best_peer} has 0" if self.ratio == math.inf else compared
        goal = "-" if self.goal is None else shown(self.goal)
        coverage = self.errors[WITH_INTERVAL if WITH_INTERVAL in self.errors else self.judged].coverage
        covered = "-" if coverage is None else f"{coverage:.3f}"
        return (self.data, f"{self.n:,}", self.eps, *errors, covered, goal, compared, met)


# --- pdrisk -----------------------------------------------------------------------------------------------------
def contenders(frame: pd.DataFrame, shape: Shape, statistic: str) -> tuple[dict[str, Line], str]:
    """The lines of pdrisk that answer a statistic, by their column of the table, and the one that is judged."""
    asked = STATISTICS[statistic]
    order = statistic in ("median", "quantile", "min", "max")
    step = 1 if shape.whole and (order or statistic == "sum") else None

    def line(mechanism: str, what: Any = asked) -> Line:
        return judged_lines(frame, "x", [what], Request(bounds=shape.bounds, mechanism=mechanism, step=step))[0]

    if statistic == CLIPPED:
        return {CLIPPED: line("clipped_sums")}, CLIPPED
    lines, judged = {"auto": line("auto"), "laplace": line("laplace")}, "auto"
    if order:
        lines[WITH_INTERVAL] = line("exponential_interval")
    if statistic in ("min", "max"):
        lines[AT_THE_BOUND] = line("exponential", replace(asked, bounds_reached=True))
        judged = AT_THE_BOUND if statistic in shape.reaches else judged
    return lines, judged


def answers(mechanism: Mechanism, summary: Any, draws: int, exact: Any) -> Error:
    """The error of independent noisy answers from one summary of one or several groups."""
    groups = len(summary.n)
    if isinstance(mechanism, Exponential):  # which remembers what it computed of the summary
        noisy = np.stack([mechanism.draw(summary) for _ in range(draws)], axis=-2)
        noisy = noisy.reshape(*noisy.shape[:-2], -1)
    else:
        noisy = mechanism.draw(summary.of_rows(np.tile(np.arange(groups), draws)))
    ends = mechanism.interval(noisy, LEVEL)
    shape = draws, groups
    known = None if np.isnan(ends[0]).all() else [each.reshape(shape) for each in ends]
    return Error.of(mechanism.value(noisy).reshape(shape), exact, known)


def clipped_answers(mechanism: Mechanism, summary: Any, draws: int, x: NDArray[np.float64]) -> Error:
    """The error of answers that clip the values x each at points of their own, from the mean of the clipped ones."""
    noisy = [mechanism.draw(summary) for _ in range(draws)]
    exact = np.array([np.clip(x, *mechanism.clip(each)).mean() for each in noisy])
    ends = np.array([mechanism.interval(each, LEVEL) for each in noisy])[..., 0].T
    return Error.of(np.array([mechanism.value(each)[0] for each in noisy]), exact, ends)


def shape_rows(
    shape: Shape, n: int, eps: Iterable[str] = EPS, draws: int = DRAWS, peers: Sequence[Peer] = PEERS
) -> list[Row]:
    """Every statistic of n records of a shape, read once."""
    x = shape.values(n)
    frame = pd.DataFrame({"x": x})
    lines = {statistic: contenders(frame, shape, statistic) for statistic in STATISTICS}
    query, engine = judged_selection(
        frame, tuple(each for found, _ in lines.values() for each in found.values()), Request()
    )
    reading = engine.read(query)
    read = list(zip(query.lines, reading.universes, reading.summaries, strict=True))
    rows = []
    for each_eps in eps:
        left = iter(read)
        for statistic, (found, judged) in lines.items():
            exact, errors = EXACT[statistic](x), {}
            for column in found:
                line, universe, summary = next(left)
                mechanism = line.calibrated(Fraction(each_eps), universe)
                if isinstance(mechanism, ClippedSums):
                    errors[column] = clipped_answers(mechanism, summary, draws, x)
                else:
                    errors[column] = answers(mechanism, summary, draws, exact)
            for peer, call in prepared(peers, statistic, x, shape, float(each_eps)):
                if (values := drawn(call, min(draws, PEER_DRAWS))) is not None:
                    # They divide by n where pdrisk, like pandas, divides by n - 1.
                    errors[peer.name] = Error.of(values, {"var": x.var(), "std": x.std()}.get(statistic, exact))
            goal = GOALS.get((statistic, shape.name, n)) if each_eps == "1" else None
            rows.append(Row(statistic, shape.name, n, each_eps, errors, judged, goal, _private(peers)))
    return rows


def grouped_rows(
    counts: Iterable[int] = tuple(GROUPED_GOALS), eps: Iterable[str] = EPS, draws: int = DRAWS,
    peers: Sequence[Peer] = PEERS, n: int = GROUPED_ROWS,
) -> list[Row]:  # fmt: skip
    """The mean distance in each of several groups of chance."""
    shape, rows = SHAPES[0], []
    x = shape.values(n)
    for count, each_eps in itertools.product(counts, eps):
        # Every group has somebody, so that there is an exact mean.
        codes = np.random.default_rng(count).permutation(np.append(np.arange(count), _codes(count, n - count)))
        frame = pd.DataFrame({"x": x, "k": codes})
        kinds = {
            name: judged_lines(frame, "x", [STATISTICS["mean"]], Request(bounds=shape.bounds, mechanism=name))[0]
            for name in ("auto", "laplace")
        }
        query, engine = judged_selection(frame, tuple(kinds.values()), Request(by="k", keys=list(range(count))))
        reading = engine.read(query)
        parts = [x[codes == group] for group in range(count)]
        exact = np.array([part.mean() for part in parts])
        errors = {}
        for column, line, universe, summary in zip(
            kinds, query.lines, reading.universes, reading.summaries, strict=True
        ):
            mechanism = line.calibrated(Fraction(each_eps), universe)
            errors[column] = answers(mechanism, summary, max(draws // count, 20), exact)
        for peer in peers:
            calls = [call for part in parts for _, call in prepared([peer], "mean", part, shape, float(each_eps))]
            if len(calls) == count:
                values = [drawn(call, max(PEER_DRAWS // count, 5), FEWEST_DRAWS // 8) for call in calls]
                if all(each is not None for each in values):
                    errors[peer.name] = Error.of(values, exact[:, None])
        goal = GROUPED_GOALS.get(count) if each_eps == "1" and n == GROUPED_ROWS else None
        rows.append(Row(GROUPED, f"{count:,} groups", n, each_eps, errors, "auto", goal, _private(peers)))
    return rows


def _codes(count: int, n: int) -> NDArray[np.int64]:
    return np.random.default_rng(4).integers(0, count, n)


# --- Peers ------------------------------------------------------------------------------------------------------
def prepared(
    peers: Iterable[Peer], statistic: str, x: NDArray[np.float64], shape: Shape, eps: float
) -> Iterator[tuple[Peer, Callable[[], float]]]:
    """The peers that are there and answer the statistic; none says which values it clipped."""
    for peer in () if statistic == CLIPPED else peers:
        module = peer.found()
        call = None if isinstance(module, str) else peer.prepared(module, statistic, x, shape.bounds, eps)
        if call is not None:
            yield peer, call


def drawn(call: Callable[[], float], draws: int, fewest: int = FEWEST_DRAWS) -> list[float] | None:
    """As many answers as `PATIENCE` allows; None where these are too few, or where the library fails."""
    values: list[float] = []
    fewest = min(fewest, draws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
            start = time.perf_counter()
            while len(values) < draws:
                values.append(float(call()))
                spent = time.perf_counter() - start
                if spent > PATIENCE or spent / len(values) * fewest > PATIENCE * 2:
                    break
        except Exception:  # noqa: BLE001 - each library has errors of its own
            return None
    return values if len(values) >= fewest and np.isfinite(values).all() else None


def _private(peers: Iterable[Peer]) -> frozenset[str]:
    return frozenset(peer.name for peer in peers if peer.private_n)


# --- Everything -------------------------------------------------------------------------------------------------
def rows_of(task: tuple[Any, ...]) -> list[Row]:
    """Rows of one process."""
    shape, size, draws = task
    return grouped_rows(size, draws=draws) if shape is None else shape_rows(SHAPES[shape], size, draws=draws)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{SIZES[0]} records, and {QUICK_DRAWS} draws")
    parser.add_argument("--jobs", type=int, default=2, help="processes, 2 by default")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page, such as docs/accuracy.md")
    chosen = parser.parse_args(arguments)
    draws, sizes = (QUICK_DRAWS, SIZES[:1]) if chosen.quick else (DRAWS, SIZES)
    groups = tuple(GROUPED_GOALS)[: 1 if chosen.quick else None]
    shapes = itertools.product(range(len(SHAPES)), sizes[::-1])
    tasks: list[tuple[Any, ...]] = [(None, groups, draws), *((shape, n, draws) for shape, n in shapes)]
    rows: list[Row] = []
    start = time.perf_counter()
    # Fresh processes: libraries that brought threads of their own do not survive a fork.
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(pool.map(rows_of, tasks), 1):
            rows += found
            print(f"{done} of {len(tasks)} after {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    order = [shape.name for shape in SHAPES]
    rows.sort(key=lambda each: (order.index(each.data) if each.data in order else 0, each.n))
    text = page(rows, draws, PEER_DRAWS, FEWEST_DRAWS)
    print(text)
    if chosen.write is not None:
        chosen.write.write_text(text, encoding="utf-8")
    return 1 if any(each.misses for each in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
