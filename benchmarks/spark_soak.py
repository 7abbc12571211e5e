"""Spark in local mode: pdrisk's answers on Parquet files against Spark's plain aggregates, and the memory they take.

    python benchmarks/spark_soak.py 1e6            # rows; 1e8 takes 1.2 GB on the disk
    python benchmarks/spark_soak.py 1e8 --runs 1 --only count mean median "mean by 1e3 groups"
    python benchmarks/spark_soak.py 1e6 --connect  # by Spark Connect, with a server of its own

Each line is the best of some runs of each, in turns. Memory is the largest that the virtual machine of Spark ever
held, with a heap of 4 GB: it stays below 8 GiB.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

import pdrisk

LO, HI, FEW, MANY = 0.0, 300.0, 1_000, 100_000
MOST_EXACT = 2e7  # rows: Spark's exact median keeps all different values in the heap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=float)
    parser.add_argument("--connect", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session(connect=asked.connect)
    with tempfile.TemporaryDirectory() as folder:
        people = spark.read.parquet(stored(int(asked.rows), folder))
        small = spark.createDataFrame(people.limit(1000).toArrow())
        print(f"{int(asked.rows):,} rows, Spark {spark.version}")
        for name, ours, theirs, rows in cases(people, small, asked.rows):
            if asked.only and name not in asked.only:
                continue
            times = [(seconds(ours), seconds(theirs)) for _ in range(asked.runs)]
            own, plain = map(min, zip(*times, strict=True))
            print(f"{name:32} {own:8.2f} s {plain:8.2f} s {own / plain:6.1f} x {rows}", flush=True)
        print(f"memory of all virtual machines: {memory():.1f} GiB")
    spark.stop()


def session(*, connect: bool) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    builder = builder.remote("local[2]") if connect else builder.master("local[2]")
    for name, value in {
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stored(rows: int, folder: str) -> str:
    """Long-tailed distances, and groups of two sizes, in a Parquet file."""
    path = str(Path(folder) / "people.parquet")
    made = f"-20 * ln(1 - random()) AS x, i * 7919 % {MANY} AS g, i * 7919 % {FEW} AS h"
    duckdb.sql(f"COPY (SELECT {made} FROM range({rows}) AS made (i)) TO '{path}'")
    return path


def cases(people: Any, small: Any, rows: float) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], str]]:
    """What is measured, ours and theirs, and what theirs is."""
    d, few = (pdrisk.Dataset(data, bounds={"x": (LO, HI)}) for data in (people, small))
    by, of_few = ({"by": name, "keys": list(range(groups)), "eps": 1} for name, groups in (("g", MANY), ("h", FEW)))

    def plain(aggregate: str, *groups: str) -> Callable[[], Any]:
        return lambda: people.groupBy(*groups).agg({"x": aggregate}).toArrow()

    middle = "median" if rows <= MOST_EXACT else "avg"
    yield "count", lambda: d.count("x", eps=1), plain("count"), "count"
    yield "mean", lambda: d.mean("x", eps=1), plain("avg"), "avg"
    yield "var", lambda: d.var("x", eps=1), plain("var_samp"), "var_samp"
    yield "median", lambda: d.median("x", eps=1), plain(middle), middle
    yield "median, laplace", lambda: d.median("x", eps=1, mechanism="laplace"), plain(middle), middle
    yield "mean by 1e3 groups", lambda: d.mean("x", **of_few), plain("avg", "h"), "avg by groups"
    yield "mean by 1e5 groups", lambda: d.mean("x", **by), plain("avg", "g"), "avg by groups"
    yield "mean of 1e3 rows", lambda: few.mean("x", eps=1), lambda: small.agg({"x": "avg"}).toArrow(), "avg"


def seconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def memory() -> float:
    """The largest resident memory of Java's processes that this one started, in GiB."""
    import os
    import re

    children, found = {os.getpid()}, 0.0
    told = {int(each.parent.name): each.read_text() for each in Path("/proc").glob("[0-9]*/status")}
    for pid in sorted(told):
        if (parent := re.search(r"PPid:\s*(\d+)", told[pid])) and int(parent[1]) in children:
            children.add(pid)
            peak = re.search(r"VmHWM:\s*(\d+)", told[pid])
            if "Name:\tjava" in told[pid] and peak:
                found += int(peak[1]) / 2**20
    return found


if __name__ == "__main__":
    main()
