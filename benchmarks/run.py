"""Measures pdrisk against plain pandas and numpy calls: ``python benchmarks/run.py``.

Ends with status 1 if a target is missed. Needs nothing but ``pip install pdrisk[bench]``; peers that are missing are
named as such.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks_page import Row, write
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
    def told(self) -> Row:
        """A row of the CSV file of the page, without its topic."""
        within = "" if not self.judged or self.case.limit is None else "yes"
        told = {
            "case": self.case.name,
            "plain": self.case.plain_name,
            "answer_ms": shown(self.own),
            "ratio": "",
            "target": "" if self.case.limit is None else self.target,
            "within": "no" if self.misses else within,
            "memory_columns": "" if self.memory is None else f"{self.memory:.2f}",
            "note": f"missed: {', '.join(self.misses)}" if self.misses else "",
        }
        if self.plain:
            each = [a / b for a, b in zip(self.ours, self.plain, strict=True)]
            ratios = {"ratio": self.own / self.reference, "ratio_min": min(each), "ratio_max": max(each)}
            told |= {"plain_ms": shown(self.reference), **{name: shown(value) for name, value in ratios.items()}}
        return told

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


def machine() -> str:
    """What the page says of machine and versions."""
    packages = ("numpy", "pandas", "opendp", "diffprivlib", "pyarrow", "duckdb")
    versions = ", ".join(f"{name} {installed(name)}" for name in packages)
    return f"Machine: {os.cpu_count() or 1} cores. Python {platform.python_version()}, {versions}."


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
    print(row(HEAD), row(("---", "---", "--:", "--:", "--:", "---", "---", "--:")), sep="\n", flush=True)
    results = []
    told: list[Row] = []
    topics = {
        "pandas": all_cases(rows),
        "SQL": sql_cases(rows),
        "table of DuckDB": table_cases(rows),
        "declared": declared_cases(rows),
        "disclosure": disclosure_cases(rows),
        "people": people_cases(rows),
        "Polars and Arrow": frame_cases(rows),
        "PostgreSQL": postgres_cases(rows),
        "ledger": ledger_cases(rows),
        "study": paper_cases(),
    }
    for topic, case in ((topic, case) for topic, cases in topics.items() for case in cases):
        if isinstance(case, Skipped):
            told.append({"topic": topic, "case": case.name, "plain": "", "ratio": "", "within": "", "note": case.why})
            print(row((case.name, case.why, *["-"] * (len(HEAD) - 2))), flush=True)
        else:
            results.append(measured(case, rows, pairs))
            told.append({"topic": topic, **results[-1].told})
            print(row(results[-1].cells), flush=True)
    if chosen.write is not None:
        write(told, machine(), rows, pairs, chosen.write)
    missed = [result.case.name for result in results if result.misses]
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nall judged targets are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
