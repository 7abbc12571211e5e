"""Measures pdrisk against plain pandas and numpy calls: ``python benchmarks/run.py``.

Ends with status 1 if a target is missed. Needs nothing but ``pip install pdrisk[bench]``; peers that are missing are
named as such.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import platform
import statistics
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cases import EPS, FULL, HI, LO, Case, Skipped, all_cases, installed
from declared_cases import declared_cases
from disclosure_cases import disclosure_cases
from frame_cases import frame_cases
from ledger_cases import ledger_cases
from paper_cases import paper_cases
from people_cases import people_cases
from postgres_cases import postgres_cases
from sql_cases import sql_cases
from table_cases import table_cases

PAIRS = 7
PAIRS_QUICK = 5
QUICK_ROWS = 200_000
HEAD = ("case", "plain call", "ours, ms", "plain, ms", "ratio (min to max)", "target", "within", "peak memory, columns")


@dataclass(frozen=True)
class Result:
    """The times of one case in ms, pair by pair, and the largest memory it held in columns."""

    case: Case
    ours: list[float]
    plain: list[float]
    memory: float | None
    judged: bool

    @property
    def own(self) -> float:
        return statistics.median(self.ours)

    @property
    def reference(self) -> float:
        return statistics.median(self.plain)

    @property
    def ratio(self) -> str:
        if not self.plain:
            return "-"
        each = [a / b for a, b in zip(self.ours, self.plain, strict=True)]
        return f"{shown(self.own / self.reference)} ({shown(min(each))} to {shown(max(each))})"

    @property
    def misses(self) -> list[str]:
        """What is missed; empty if nothing is, or if the case has no target that holds for these data."""
        case, missed = self.case, []
        if not self.judged:
            return missed
        if case.limit is not None:
            measured = {"ratio": lambda: self.own / self.reference, "ms": lambda: self.own}
            value = measured.get(case.limits, lambda: self.own - self.reference)()
            if value > case.limit or (case.target.startswith("< ") and value >= case.limit):
                missed.append("time")
        if case.memory_limit is not None and self.memory is not None and self.memory >= case.memory_limit:
            missed.append("memory")
        return missed

    @property
    def target(self) -> str:
        case = self.case
        if case.limit is None:
            return "-"
        said = case.target or f"<= {case.limit:g}{' ms' if case.limits == 'ms' else ''}"
        return said if case.memory_limit is None else f"{said}; memory < {case.memory_limit:g}"

    @property
    def cells(self) -> tuple[str, ...]:
        within = "-" if not self.judged or self.case.limit is None else "yes"
        return (
            self.case.name,
            self.case.plain_name or "-",
            shown(self.own),
            shown(self.reference) if self.plain else "-",
            self.ratio,
            self.target,
            f"**no**: {', '.join(self.misses)}" if self.misses else within,
            "-" if self.memory is None else f"{self.memory:.2f}",
        )


def shown(value: float) -> str:
    """Three digits, and all digits of whole numbers."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def milliseconds(call: Callable[[], Any], number: int) -> float:
    """Time of one call, from ``number`` calls in a row."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number * 1e3


def peak(call: Callable[[], Any]) -> int:
    """The most bytes held at once beyond what was held before."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(case: Case, rows: int, pairs: int) -> Result:
    """Warm-up, which also takes the memory, then ours and the plain call by turns."""
    memory = peak(case.ours) / case.column if case.column else None
    milliseconds(case.ours, case.number)
    if case.plain is not None:
        milliseconds(case.plain, case.number)
    gc.collect()
    ours, plain = [], []
    for _ in range(pairs):
        ours.append(milliseconds(case.ours, case.number))
        if case.plain is not None:
            plain.append(milliseconds(case.plain, case.number))
    return Result(case, ours, plain, memory, judged=rows >= FULL or not case.at_full_size)


def row(cells: tuple[str, ...]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def in_short_lines(page: str) -> str:
    """The page with its prose in lines of at most 120 letters."""
    lines = ([line] if line.startswith("|") else textwrap.wrap(line, 120) or [""] for line in page.split("\n"))
    return "\n".join(itertools.chain.from_iterable(lines))


def report(lines: list[str], results: list[Result], rows: int, pairs: int) -> str:
    """The page docs/benchmarks.md."""
    cores = os.cpu_count() or 1
    packages = ("numpy", "pandas", "opendp", "diffprivlib", "pyarrow", "duckdb")
    versions = ", ".join(f"{name} {installed(name)}" for name in packages)
    missed = [f"{result.case.name} ({', '.join(result.misses)})" for result in results if result.misses]
    verdict = "All judged targets are met." if not missed else f"Missed: {'; '.join(missed)}."
    if rows < FULL:
        verdict += f" Targets that speak of {FULL:,} rows were not judged."
    return f"""# Benchmarks

Written by `python benchmarks/run.py --write docs/benchmarks.md`, which anyone can run after
`pip install -e ".[bench]"`; it ends with status 1 if a target is missed.

## What was measured

Every number is the time of a complete public call: checking the request, reading the data, sensitivities, noise and
risks, with `eps={EPS:g}` and `bounds=({LO:g}, {HI:g})`. It is set against the plain call that someone without pdrisk
would make, in the same process and by turns (ours, plain, ours, plain, ...): one warm-up, then {pairs} pairs. The ratio
is that of the medians, in brackets the smallest and largest ratio of a pair. `import` is timed in pairs of fresh
processes. Ratios carry over to other machines better than milliseconds do.

The data are {rows:,} seeded exponential distances as float64 (heaped: rounded as people answer), and random groups with
their keys listed. Peak memory is the most that the first call held at once, its result included, as a multiple of the
8 bytes a row of the column; taken before any timing with `tracemalloc`, which numpy and pandas report to and Arrow
and Rust do not.
diffprivlib and OpenDP get the same numpy column; OpenDP's measurement is built before the clock starts, with the number
of rows public, and clamps and averages as its manual does. Neither computes a local sensitivity or a risk.

The SQL cases ask one DuckDB table in memory, with `eps={EPS * 10:g}` unless they say another; "clamped avg" is the
plain `avg` of a CASE expression that moves records into the bounds, "all inside" a column of which no record lies
outside.

Machine: {cores} cores. Python {platform.python_version()}, {versions}.

## Results

{chr(10).join(lines)}

## Reading it

{verdict}
A ratio below 1 means that the private answer, with its sensitivities and risks, comes sooner than the plain one: pdrisk
reads a column in pieces that stay in the processor's cache, where the plain call writes a whole clamped copy, and it
finds a median without sorting. With a million groups, reading the list of keys takes more than the noise; on a thousand
rows all of the time is checking the request and building the noise. The noise is timed against that of OpenDP, which
tests and `pdrisk.audit` compare it with.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help=f"rows of the large columns, {FULL:,} by default")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows unless --rows says otherwise")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page, such as docs/benchmarks.md")
    chosen = parser.parse_args()
    rows = chosen.rows or (QUICK_ROWS if chosen.quick else FULL)
    pairs = PAIRS_QUICK if chosen.quick else PAIRS
    if rows < 1:
        parser.error("--rows must be at least 1")

    # What only the first call does (tables of the noise) belongs to no case.
    pd.DataFrame({"x": [LO, HI]}).dprisk.mean("x", eps=EPS, bounds=(LO, HI))
    lines = [row(HEAD), row(("---", "---", "--:", "--:", "--:", "---", "---", "--:"))]
    print(*lines, sep="\n", flush=True)
    results = []
    for case in itertools.chain(
        all_cases(rows),
        sql_cases(rows),
        table_cases(rows),
        declared_cases(rows),
        disclosure_cases(rows),
        people_cases(rows),
        frame_cases(rows),
        postgres_cases(rows),
        ledger_cases(rows),
        paper_cases(),
    ):
        if isinstance(case, Skipped):
            lines.append(row((case.name, case.why, *["-"] * (len(HEAD) - 2))))
        else:
            results.append(measured(case, rows, pairs))
            lines.append(row(results[-1].cells))
        print(lines[-1], flush=True)
    if chosen.write is not None:
        chosen.write.write_text(in_short_lines(report(lines, results, rows, pairs)), encoding="utf-8")
    missed = [result.case.name for result in results if result.misses]
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nall judged targets are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
