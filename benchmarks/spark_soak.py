"""Spark in local mode: pdrisk's answers on Parquet files against Spark's plain aggregates, and the memory they take.

    python benchmarks/spark_soak.py 1e6            # rows; 1e8 takes 2 GB on the disk
    python benchmarks/spark_soak.py 1e6 --connect  # by Spark Connect, with a server of its own

Each line is the best of three runs of each, in turns. Memory is the largest that the virtual machine of Spark ever
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

import pdrisk

LO, HI, MANY = 0.0, 300.0, 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=float)
    parser.add_argument("--connect", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session(connect=asked.connect)
    with tempfile.TemporaryDirectory() as folder:
        people = stored(spark, int(asked.rows), folder)
        small = spark.createDataFrame(people.limit(1000).toArrow())
        print(f"{int(asked.rows):,} rows, Spark {spark.version}")
        for name, ours, theirs, rows in cases(people, small):
            times = [(seconds(ours), seconds(theirs)) for _ in range(3)]
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


def stored(spark: Any, rows: int, folder: str) -> Any:
    """Long-tailed distances and a group of each, in Parquet files."""
    path = str(Path(folder) / "people")
    made = spark.range(rows).selectExpr("-20 * ln(1 - rand(5)) AS x", f"CAST(rand(6) * {MANY} AS BIGINT) AS g")
    made.write.parquet(path)
    return spark.read.parquet(path)


def cases(people: Any, small: Any) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], str]]:
    """What is measured, ours and theirs, and what theirs is."""
    d, few = (pdrisk.Dataset(data, bounds={"x": (LO, HI)}) for data in (people, small))
    by = {"by": "g", "keys": list(range(MANY)), "eps": 1}

    def plain(aggregate: str, *groups: str) -> Callable[[], Any]:
        return lambda: people.groupBy(*groups).agg({"x": aggregate}).toArrow()

    yield "mean", lambda: d.mean("x", eps=1), plain("avg"), "avg"
    yield "var", lambda: d.var("x", eps=1), plain("var_samp"), "var_samp"
    yield "median", lambda: d.median("x", eps=1), plain("median"), "median"
    yield "median, laplace", lambda: d.median("x", eps=1, mechanism="laplace"), plain("median"), "median"
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
