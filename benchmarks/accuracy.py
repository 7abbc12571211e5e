"""Measures how far noisy answers are from the exact ones: ``python benchmarks/accuracy.py``.

Ends with status 1 if a goal is missed. Needs nothing but ``pip install pdrisk``; peers that are missing are named as
such.
"""

from __future__ import annotations

import argparse
import csv
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

from accuracy_data import (
    CLIPPED,
    EXACT,
    GOALS,
    GROUPED_GOALS,
    GROUPED_ROWS,
    LEVELS,
    SAMPLES,
    SHAPES,
    STATISTICS,
    Shape,
)
from accuracy_exact import chosen_beyond, chosen_ends, chosen_errors, opendp_law
from accuracy_page import PICTURE, inserted, picture, section, table
from accuracy_peers import PEERS, Peer, opendp_candidates
from pdrisk._mechanisms import ClippedSums, Exponential, ExponentialInterval, Mechanism
from pdrisk._model.query import Line
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request

__all__ = ["Error", "Row", "grouped_rows", "main", "shape_rows"]

SIZES = (30, 100, 300, 1000, 10_000)
EPS = ("0.1", "1", "3")
DRAWS = 50  # of pdrisk for each sample, where the law of an answer is not computed
PEER_DRAWS = {"count": 30, "sum": 30}  # for each sample; of other statistics
FEW_DRAWS = 10
FEWEST_DRAWS = 2
PATIENCE = 0.02  # seconds of a processor that the draws of a peer may take for one sample
GOAL_SLACK = 1.10
SURE = 3.0  # standard errors, by which a goal must be missed to count as missed
MUCH = 2.0  # times the error of a peer
FLOOR, FELT = 0.001, 0.01  # of the interquartile range: errors that count as none, and that matter
FAR = 0.01  # of the bounds, which an extreme may be answered by beyond all records
GROUPED = "mean by groups"
AT_THE_BOUND = "at the bound"
WITH_INTERVAL = "with interval"
LEVEL = 0.95


@dataclass(frozen=True)
class Error:
    """Absolute errors of answers about several samples.

    ``mean`` is that of all, ``typical`` the median of the samples' own means. ``coverage`` is the share of answers
    whose own 95 % interval holds the exact one, ``width`` half of its mean width; None of answers without one.
    ``halves`` are the means of every second draw; None where the law of the answers gave the mean.
    """

    mean: float
    typical: float
    standard_error: float = 0.0
    coverage: float | None = None
    width: float | None = None
    halves: tuple[float, float] | None = None

    def half(self, at: int) -> float:
        """The mean of every second draw, or by the law of the answers."""
        return self.mean if self.halves is None else self.halves[at]

    @classmethod
    def of(cls, values: Any, exact: Any, ends: Any = None) -> Error:
        """Errors of answers, of one sample each or, in rows, of many draws, and of the ends of their intervals."""
        off = np.atleast_2d(np.abs(np.asarray(values, dtype=np.float64) - exact))
        rounding = 1e-9 * np.abs(exact)  # of what numpy and pdrisk sum
        covered = width = None
        if ends is not None:
            covered = float(np.mean((ends[0] <= exact + rounding) & (exact - rounding <= ends[1])))
            width = float(np.mean(np.subtract(ends[1], ends[0])) / 2)
        return cls.of_samples(off.mean(axis=0), float(off.std() / math.sqrt(off.size)), covered, width)

    @classmethod
    def of_samples(cls, means: Any, standard_error: float = 0.0, coverage: Any = None, width: Any = None) -> Error:
        """From the mean errors about each sample."""
        return cls(float(np.mean(means)), float(np.median(means)), standard_error, coverage, width)


@dataclass(frozen=True)
class Row:
    """The errors of everybody who answers one statistic of one shape of data at one eps.

    Attributes
    ----------
    judged : str
        The column of pdrisk that goals hold for.
    goal : float or None
    peers : frozenset of str
        Columns of the libraries that are compared with: those to which the number of records is private, too.
    scale : float
        Interquartile range of the data, or a thousandth of the bounds if that is more.
    beyond : float or None
        Of an extreme, how often "auto" answers beyond all records by more than a hundredth of the bounds.
    """

    statistic: str
    data: str
    n: int
    eps: str
    errors: dict[str, Error]
    judged: str
    goal: float | None = None
    peers: frozenset[str] = field(default_factory=frozenset)
    scale: float = 0.0
    beyond: float | None = None

    @property
    def name(self) -> str:
        return f"{self.statistic}, {self.data}, n {self.n:,}, eps {self.eps}"

    @property
    def ours(self) -> Error:
        return self.errors[self.judged]

    @property
    def best_peer(self) -> str | None:
        """The most accurate library to which n is private, too."""
        return min(self.peers & self.errors.keys(), key=lambda peer: self.errors[peer].mean, default=None)

    @property
    def ratio(self) -> float | None:
        """The error as a multiple of that of the best peer; differences of errors that count as none do not matter.

        Half of a peer's draws say whether it is the best, and the others how good it is: the luckiest of several that
        are equally good would look better than it is.
        """
        if self.best_peer is None:
            return None
        least = FLOOR * self.scale
        known = [self.errors[peer] for peer in self.peers & self.errors.keys()]
        best = [min(known, key=lambda each: each.half(at)).half(1 - at) for at in (0, 1)]
        ours, theirs = self.ours.mean + least, sum(best) / 2 + least
        return ours / theirs if theirs > 0 else (1.0 if ours == 0 else math.inf)

    @property
    def is_much_worse(self) -> bool:
        """Whether the error is more than twice that of a peer, who has one that matters."""
        if self.best_peer is None:
            return False
        theirs = self.errors[self.best_peer]
        unsure = SURE * math.hypot(self.ours.standard_error, MUCH * theirs.standard_error)
        return theirs.mean > FELT * self.scale and self.ours.mean > MUCH * theirs.mean + unsure

    @property
    def misses_goal(self) -> bool:
        """Whether the goal is missed, by more than chance."""
        ours, least = self.ours, FLOOR * self.scale
        return self.goal is not None and ours.typical > GOAL_SLACK * self.goal + least + SURE * ours.standard_error


# --- pdrisk -----------------------------------------------------------------------------------------------------
def contenders(frame: pd.DataFrame, shape: Shape, statistic: str) -> tuple[dict[str, Line], str]:
    """The lines of pdrisk that answer a statistic, by their column of the table, and the one that is judged."""
    asked = STATISTICS[statistic]
    order = statistic in LEVELS
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
    if isinstance(mechanism, Exponential):
        exact = np.broadcast_to(exact, groups)
        means = chosen_errors(mechanism, summary, exact)
        if not isinstance(mechanism, ExponentialInterval):
            return Error.of_samples(means)
        width, missed = chosen_ends(mechanism, summary, exact)
        return Error.of_samples(means, coverage=float(1 - missed.max()), width=float(width.mean()))
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
    return Error.of(np.array([mechanism.value(each)[0] for each in noisy])[:, None], exact[:, None], ends[..., None])


def beyond_all(mechanism: Mechanism, summary: Any, exact: NDArray[np.float64], is_max: bool) -> float | None:
    """How often an answer lies beyond all records by more than `FAR` of the bounds, about the worst sample."""
    if not isinstance(mechanism, Exponential):
        return None
    limit = exact + (FAR if is_max else -FAR) * mechanism.universe.width
    return float(chosen_beyond(mechanism, summary, limit, above=is_max).max())


def shape_rows(
    shape: Shape, n: int, eps: Iterable[str] = EPS, draws: int = DRAWS, peers: Sequence[Peer] = PEERS,
    samples: int = SAMPLES,
) -> list[Row]:  # fmt: skip
    """Every statistic of several samples of n records of a shape, read once, as groups."""
    parts = [shape.values(n, sample) for sample in range(samples)]
    frame = pd.DataFrame({"x": np.concatenate(parts), "k": np.repeat(np.arange(samples), n)})
    lines = {each: contenders(frame, shape, each) for each in STATISTICS if each != CLIPPED}
    asked = tuple(line for found, _ in lines.values() for line in found.values())
    query, engine = judged_selection(frame, asked, Request(by="k", keys=list(range(samples))))
    reading = engine.read(query)
    read = list(zip(query.lines, reading.universes, reading.summaries, strict=True))
    width = shape.bounds[1] - shape.bounds[0]
    scale = max(float(np.mean([np.subtract(*np.quantile(x, [0.75, 0.25])) for x in parts])), width / 1000)
    rows = []
    for each_eps in eps:
        left = iter(read)
        for statistic, (found, judged) in lines.items():
            exact, errors, beyond = np.array([EXACT[statistic](x) for x in parts]), {}, None
            for column in found:
                line, universe, summary = next(left)
                mechanism = line.calibrated(Fraction(each_eps), universe)
                errors[column] = answers(mechanism, summary, draws, exact)
                if column == "auto" and statistic in ("min", "max"):
                    beyond = beyond_all(mechanism, summary, exact, statistic == "max")
            errors |= peer_errors(peers, statistic, parts, shape, float(each_eps))
            goal = GOALS.get((statistic, shape.name, n)) if each_eps == "1" else None
            rows.append(Row(statistic, shape.name, n, each_eps, errors, judged, goal, _private(peers), scale, beyond))
        if CLIPPED in STATISTICS:
            rows.append(clipped_row(shape, n, each_eps, draws, scale))
    return rows


def clipped_row(shape: Shape, n: int, eps: str, draws: int, scale: float) -> Row:
    """The mean of values that an answer clips at points of its own, of one sample."""
    x = shape.values(n)
    frame = pd.DataFrame({"x": x})
    query, engine = judged_selection(frame, tuple(contenders(frame, shape, CLIPPED)[0].values()), Request())
    reading = engine.read(query)
    mechanism = query.lines[0].calibrated(Fraction(eps), reading.universes[0])
    assert isinstance(mechanism, ClippedSums)
    error = clipped_answers(mechanism, reading.summaries[0], 10 * draws, x)
    goal = GOALS.get((CLIPPED, shape.name, n)) if eps == "1" else None
    return Row(CLIPPED, shape.name, n, eps, {CLIPPED: error}, CLIPPED, goal, scale=scale)


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
            error = answers(mechanism, summary, draws, exact)
            errors[column] = replace(error, typical=error.mean)
        errors |= peer_errors(peers, "mean", parts, shape, float(each_eps))
        goal = GROUPED_GOALS.get(count) if each_eps == "1" and n == GROUPED_ROWS else None
        scale = float(np.subtract(*np.quantile(x, [0.75, 0.25])))
        rows.append(Row(GROUPED, f"{count:,} groups", n, each_eps, errors, "auto", goal, _private(peers), scale))
    return rows


def _codes(count: int, n: int) -> NDArray[np.int64]:
    return np.random.default_rng(4).integers(0, count, n)


# --- Peers ------------------------------------------------------------------------------------------------------
def peer_errors(
    peers: Iterable[Peer], statistic: str, parts: Sequence[NDArray[np.float64]], shape: Shape, eps: float
) -> dict[str, Error]:
    """Errors of the peers that are there and answer the statistic of every sample."""
    errors = {}
    for peer in peers:
        module = peer.found()
        if isinstance(module, str):
            continue
        exact = np.array([_exact_of_peers(statistic, x) for x in parts])
        if peer.name == "OpenDP" and statistic in LEVELS:
            candidates = opendp_candidates(shape.bounds)
            laws = [opendp_law(x, candidates, LEVELS[statistic], eps) for x in parts]
            means = [law @ np.abs(candidates - each) for law, each in zip(laws, exact, strict=True)]
            errors[peer.name] = Error.of_samples(means)
            continue
        values = list(_values(peer, module, statistic, parts, shape, eps))
        if len(values) == len(parts):
            off = [np.abs(np.array(each) - one) for each, one in zip(values, exact, strict=True)]
            unsure = math.sqrt(sum(each.var() / len(each) for each in off)) / len(off)
            error = Error.of_samples([each.mean() for each in off], unsure)
            halves = [float(np.mean([each[at::2].mean() for each in off])) for at in (0, 1)]
            errors[peer.name] = replace(error, halves=(halves[0], halves[1]))
    return errors


def _values(
    peer: Peer, module: Any, statistic: str, parts: Sequence[NDArray[np.float64]], shape: Shape, eps: float
) -> Iterator[list[float]]:
    for x in parts:
        call = peer.prepared(module, statistic, x, shape.bounds, eps)
        values = None if call is None else drawn(call, PEER_DRAWS.get(statistic, FEW_DRAWS))
        if values is None:
            return
        yield values


def _exact_of_peers(statistic: str, x: NDArray[np.float64]) -> float:
    """They divide by n where pdrisk, like pandas, divides by n - 1."""
    return {"var": x.var, "std": x.std}.get(statistic, lambda: EXACT[statistic](x))()


def drawn(call: Callable[[], float], draws: int, fewest: int = FEWEST_DRAWS) -> list[float] | None:
    """As many answers as `PATIENCE` allows; None where these are too few, or where the library fails."""
    values: list[float] = []
    fewest = min(fewest, draws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
            start = time.process_time()
            while len(values) < draws:
                values.append(float(call()))
                spent = time.process_time() - start
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
    parser.add_argument("--quick", action="store_true", help="300 records only")
    parser.add_argument("--jobs", type=int, default=2, help="processes, 2 by default")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the section of docs/mechanisms.md, accuracy.csv and a picture"
    )
    chosen = parser.parse_args(arguments)
    sizes = (300,) if chosen.quick else SIZES
    groups = tuple(GROUPED_GOALS)[: 1 if chosen.quick else None]
    shapes = itertools.product(range(len(SHAPES)), sizes[::-1])
    tasks: list[tuple[Any, ...]] = [(None, groups, 20), *((shape, n, DRAWS) for shape, n in shapes)]
    rows: list[Row] = []
    start = time.perf_counter()
    # Fresh processes: libraries that brought threads of their own do not survive a fork.
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(pool.map(rows_of, tasks), 1):
            rows += found
            print(f"{done} of {len(tasks)} after {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    statistics, shapes_ = [*STATISTICS, GROUPED], [shape.name for shape in SHAPES]
    rows.sort(
        key=lambda each: (
            statistics.index(each.statistic),
            shapes_.index(each.data) if each.data in shapes_ else 0,
            each.n,
            float(each.eps),
        )
    )
    text = section(rows)
    print(text)
    if chosen.write is not None:
        chosen.write.write_text(inserted(chosen.write.read_text(encoding="utf-8"), text), encoding="utf-8")
        with chosen.write.with_name("accuracy.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table(rows))
        picture(table(rows), chosen.write.with_name(PICTURE))
    return 1 if any(each.misses_goal for each in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
