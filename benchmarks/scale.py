"""How processor time and memory grow with rows and groups: ``python benchmarks/scale.py 1e9 --folder DIR``.

Writes Parquet folders into DIR, which it leaves there, asks each question three times in fresh processes, and writes
``docs/scale.csv`` and the picture beside it. 1e9 rows take 8 GB of disk.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
from pathlib import Path

PIECE = 10**7  # rows of a file
RUNS = 3
FEW, GROUPS, ROWS_BY_GROUPS = 10**3, (10**4, 10**5, 10**6, 10**7), 10**8
PAGE = Path(__file__).parent.parent / "docs" / "scale.csv"
COLUMNS = ("question", "rows", "groups", "seconds_min", "seconds_max", "megabytes_min", "megabytes_max")


def stored(folder: Path, rows: int, groups: tuple[int, ...]) -> Path:
    """A folder of so many rows: ``x``, a float64, and a column of group numbers for each of ``groups``."""
    import duckdb

    here = folder / f"{rows}by{'and'.join(map(str, groups))}"
    here.mkdir(parents=True, exist_ok=True)
    columns = ", ".join(f"(hash(i + {each}) % {each})::INTEGER AS g{each}" for each in groups)
    for start in range(0, rows, PIECE):
        file, end = here / f"{start // PIECE:05}.parquet", min(rows, start + PIECE)
        if not file.exists():
            made = f"SELECT (hash(i) >> 11) / pow(2, 53) * 100 AS x, {columns} FROM range({start}, {end}) AS t (i)"
            duckdb.sql(f"COPY ({made}) TO '{file}.part' (FORMAT parquet, COMPRESSION zstd)")
            Path(f"{file}.part").rename(file)
    return here


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def asked(question: str, folder: str, groups: int) -> None:
    """What one question takes in this process, which asks no other; the memory is all that the process held."""
    import pdrisk

    survey = pdrisk.Dataset(folder, bounds={"x": (0, 100)})
    by = {"by": f"g{groups}", "keys": list(range(groups))} if groups else {}
    before = processor_seconds()
    if question == "k-anonymity":
        survey.k_anonymity(by["by"])
    else:
        getattr(survey, question)("x", eps=1, **by)
    told = {"seconds": processor_seconds() - before, "kilobytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    print(json.dumps(told))


def measured(question: str, folder: Path, rows: int, groups: int = 0) -> dict[str, object]:
    """A row of the table: the least and the most of the runs."""
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, __file__, "0", "--folder", str(folder), "--ask", question, str(groups)]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    seconds, sizes = [run["seconds"] for run in runs], [run["kilobytes"] / 1e6 * 1024 for run in runs]
    ends = (f"{each:.3g}" for each in (min(seconds), max(seconds)))
    row = dict(zip(COLUMNS, (question, rows, groups, *ends, round(min(sizes)), round(max(sizes))), strict=True))
    nanoseconds = "{:.1f} to {:.1f} ns a row".format(*(each / rows * 1e9 for each in (min(seconds), max(seconds))))
    print("{:12} {:>14,} rows {:>9,} groups {:>6} to {:>6} s {:>5} to {:>5} MB".format(*row.values()), nanoseconds,
          flush=True)  # fmt: skip
    return row


def picture(rows: list[dict[str, str]]):
    """Processor time and memory by rows, and time by groups, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (time, memory, by_groups) = plt.subplots(1, 3, figsize=(9.6, 3.6), layout="constrained")
    lines = dict.fromkeys((row["question"], row["groups"] != "0") for row in rows)
    for place, (question, grouped) in enumerate(lines):
        each = [row for row in rows if (row["question"], row["groups"] != "0") == (question, grouped)]
        by_rows = [row for row in each if row["groups"] in ("0", str(FEW))]
        words = f"{question} by {FEW:,} groups" if grouped and question != "k-anonymity" else question
        for axes, name in ((time, "seconds"), (memory, "megabytes")):
            drawn(axes, by_rows, "rows", name, color=f"C{place}", label=words if axes is time else None)
        if grouped and question == "mean":
            fixed = [row for row in each if row["rows"] == str(ROWS_BY_GROUPS)]
            drawn(by_groups, fixed, "groups", "seconds", color=f"C{place}")
    time.set(xlabel="rows", ylabel="processor time, s")
    memory.set(xlabel="rows", ylabel="peak memory, MB", ylim=(100, 10_000))
    by_groups.set(
        ylim=(1, 100), xlabel=f"groups of {ROWS_BY_GROUPS:.0e} rows".replace("+0", ""), ylabel="processor time, s"
    )
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def drawn(axes, rows: list[dict[str, str]], across: str, up: str, **look: object) -> None:
    """A curve through the least of the runs, with a line from the least to the most."""
    places = [float(row[across]) for row in rows]
    least, most = ([float(row[f"{up}_{end}"]) for row in rows] for end in ("min", "max"))
    axes.plot(places, least, "o-", ms=4, lw=1.2, **look)
    axes.vlines(places, least, most, color=look["color"], lw=4, alpha=0.4)
    axes.set(xscale="log", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=float, help="the largest number of rows")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.ask:
        asked(said.ask[0], str(said.folder), int(said.ask[1]))
    else:
        rows = []
        for size in (10**power for power in range(6, 13) if 10**power <= said.rows):
            data = stored(said.folder, size, (FEW,))
            for question, groups in (("mean", 0), ("median", 0), ("mean", FEW), ("k-anonymity", FEW)):
                rows.append(measured(question, data, size, groups))
        for groups in GROUPS if said.rows >= ROWS_BY_GROUPS else ():
            data = stored(said.folder, ROWS_BY_GROUPS, GROUPS)
            rows.append(measured("mean", data, ROWS_BY_GROUPS, groups))
        with PAGE.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        with PAGE.open(encoding="utf-8", newline="") as lines:
            picture(list(csv.DictReader(lines))).savefig(PAGE.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
