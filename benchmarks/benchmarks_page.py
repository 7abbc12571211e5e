"""The page of `run.py`: a table and a picture of some twenty ratios, beside a CSV file of all cases.

``python benchmarks/benchmarks_page.py docs/benchmarks.csv`` draws the picture again.
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from cases import EPS, FULL, HI, LO

COLUMNS = (
    "topic", "case", "plain", "answer_ms", "plain_ms", "ratio", "ratio_min", "ratio_max", "target", "within",
    "memory_columns", "note",
)  # fmt: skip
Row = dict[str, str]
#: What the page shows: words for a case, by its topic, name and plain call.
SHOWN = {
    ("pandas", "mean", "Series.clip().mean()"): "mean of a column",
    ("pandas", "mean", "numpy.clip(x).mean()"): "mean of an array",
    ("pandas", "OpenDP mean, size known", "numpy.clip(x).mean()"): "OpenDP's mean, size known",
    ("pandas", "median", "Series.median()"): "median",
    ("pandas", "var", "Series.clip().var()"): "var",
    ("pandas", "max", "Series.max()"): "max",
    ("pandas", "mean by 1e3 groups, integer keys", "groupby.mean()"): "mean by 1,000 groups",
    ("pandas", "mean by 1e6 groups", "groupby.mean()"): "mean by 1,000,000 groups",
    ("pandas", "mean, 1e3 rows", "Series.mean()"): "mean of 1,000 rows",
    ("pandas", "import pandas, pdrisk", "import pandas"): "import",
    ("people", 'mean, per_person="mean"', "groupby(pid).mean().mean()"): "mean over people",
    ("Polars and Arrow", "Polars: mean", "the same in Polars"): "mean in Polars",
    ("SQL", "SQL: mean", "clamped avg"): "SQL: mean, beside avg of clamped values",
    ("SQL", "SQL: mean, 1.7 % outside", "avg"): "SQL: mean, beside avg",
    ("SQL", "SQL: median", "median"): "SQL: median",
    ("SQL", "SQL: mean by 1e3 groups", "avg by groups"): "SQL: mean by 1,000 groups",
    ("PostgreSQL", "PostgreSQL: mean", "avg"): "PostgreSQL: mean",
    ("PostgreSQL", "PostgreSQL: var", "var_samp"): "PostgreSQL: var",
    ("ledger", "count with a ledger, 1e3 rows", "one row in SQLite, as safely"): "count with a ledger, 1,000 rows",
    ("disclosure", "k-anonymity, 1,000,000 rows, four text keys", "groupby.size()"): "k-anonymity of four text columns",
}


def merged(rows: Sequence[Row], file: Path) -> list[Row]:
    """The rows, and behind them those of the file whose topics were not measured, such as Spark's."""
    if not file.exists():
        return list(rows)
    measured = {row["topic"] for row in rows}
    with file.open(encoding="utf-8", newline="") as lines:
        return [*rows, *(row for row in csv.DictReader(lines) if row["topic"] not in measured)]


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """All cases, a line for each."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def chosen(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """The cases of the page that were measured, in its order, with their words."""
    found = {(row["topic"], row["case"], row["plain"]): row for row in rows if row["ratio"]}
    return [(words, found[case]) for case, words in SHOWN.items() if case in found]


def page(rows: Sequence[Row], machine: str, size: int, pairs: int, before: str = "") -> str:
    """The whole page, of measurements of ``size`` rows and so many pairs of calls.

    Of the page that was there ``before`` the section on growth stays: `scale.py` measures what it tells.
    """
    cases = chosen(rows)
    lines = [
        f"| {words} | {as_code(row['plain'])} | {row['ratio']} | {row['ratio_min']} to {row['ratio_max']} |"
        for words, row in cases
    ]
    own = [float(row["ratio"]) for words, row in cases if not words.startswith("OpenDP")]
    faster = sum(ratio < 1 for ratio in own)
    mean = next(row for row in rows if row["case"] == "mean" and row["plain"].startswith("numpy"))
    times = f"{float(mean['answer_ms']):.0f} ms (numpy {float(mean['plain_ms']):.0f} ms)"
    short = f"""Speed is measured on {size / 1e6:g} million rows, of which a mean takes {times}.
        Of {len(own)} calls of pdrisk, {faster} take less time than the plain call beside them; the middle
        one takes {statistics.median(own):.1f} times as long, the slowest {max(own):.0f} times.
        [All cases](benchmarks.csv) have milliseconds, targets and memory, too, and
        [what answers cost](engines.md#what-answers-cost) compares engines."""
    missed = [f"{beside(row)}, target {row['target']})" for row in rows if row["within"] == "no"]
    verdict = f"Targets missed: {'; '.join(missed)}." if missed else "All judged targets are met."
    if size < FULL:
        verdict += f" Targets that speak of {FULL:,} rows were not judged."
    method = METHOD.format(size=size, pairs=pairs, eps=EPS, more=10 * EPS, low=LO, high=HI)
    parts = ("# How fast is it?", short, "\n".join([HEAD, *lines]), PICTURE, READING, verdict, method, machine)
    told = "\n\n".join(part if part[0] in "|#!" and part is not method else wrapped(part) for part in parts) + "\n"
    return told + (f"\n{GROWTH}{kept[1]}" if len(kept := before.split(GROWTH, 1)) > 1 else "")


def beside(row: Row) -> str:
    """A case and, in a bracket that stays open, its plain call."""
    return f"{row['case']} (beside {row['plain']}" if row["plain"] else f"{row['case']} (alone"


def as_code(plain: str) -> str:
    """A call as code; what is told in words stays as it is."""
    return f"`{plain}`" if " " not in plain or plain.startswith("import ") else plain


def wrapped(text: str) -> str:
    """Paragraphs in lines of at most 120 letters; code and names of links are not broken."""
    blocks = (" ".join(block.split()) for block in text.strip().split("\n\n"))
    whole = (re.sub(r"`[^`]*`|\[[^]]*\]\(", lambda code: code[0].replace(" ", "\0"), block) for block in blocks)
    lines = (textwrap.fill(block, 120, break_on_hyphens=False, break_long_words=False) for block in whole)
    return "\n\n".join(lines).replace("\0", " ")


def picture(rows: Sequence[Row]):
    """The ratios of the page, largest above, each with the range of its pairs."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    each = sorted(((float(row["ratio"]), words, row) for words, row in chosen(rows)), key=lambda one: one[0])
    ratios = [ratio for ratio, _, _ in each]
    least, most = ([float(row[name]) for _, _, row in each] for name in ("ratio_min", "ratio_max"))
    figure, axes = plt.subplots(figsize=(7.2, 5.4), layout="constrained")
    places = range(len(each))
    axes.axvline(1, color="0.4", lw=0.8)
    axes.hlines(places, least, most, color="0.75", lw=6, label="smallest to largest of a pair")
    axes.plot(ratios, places, "o", color="C0", ms=5, label="ratio of medians")
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    axes.set(xscale="log", yticks=places, yticklabels=[words for _, words, _ in each], xlabel="times the plain call")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def write(rows: Sequence[Row], machine: str, size: int, pairs: int, target: Path) -> None:
    """The page, and the CSV file and the picture of its name beside it."""
    everything = merged(rows, target.with_suffix(".csv"))
    write_csv(everything, target.with_suffix(".csv"))
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(page(everything, machine, size, pairs, before), encoding="utf-8")
    picture(everything).savefig(target.with_suffix(".png"), dpi=150)


GROWTH = "## How does it grow?"
HEAD = """\
| answer | plain call | times as long | smallest to largest |
|---|---|--:|--:|"""

PICTURE = """\
![Ratios of the table above on a logarithmic axis, with the range of the pairs of each](benchmarks.png)"""

READING = """\
pdrisk can be faster because it reads a column in pieces that stay in the processor's cache, where the plain call writes
a whole clamped copy, and finds a median without sorting. On a thousand rows all of the time is checking the request and
building the noise;
`tests/front/test_small_questions.py` holds limits of how many functions are called."""

METHOD = """\
## What was measured

The time of a complete public call (checking the request, reading the data, sensitivities, noise and risks) beside the
plain call that someone without pdrisk would make, in the same process and by turns: one warm-up, then {pairs} pairs.
The ratio is that of the medians; smallest and largest are of a pair. `import` is timed in pairs of fresh processes.
Ratios carry over to other machines better than milliseconds do.

The data are {size:,} seeded exponential distances as float64 (heaped: rounded as people answer) with
`bounds=({low:g}, {high:g})`, and random groups with their keys listed; `eps={eps:g}`, in SQL `eps={more:g}` on one
DuckDB table in memory, unless a case says another. "Clamped avg" is the plain `avg` of a CASE expression that moves
records into the bounds, "all inside" a column of which no record lies outside. Peak memory is the most that the first
call held at once, its result included, as a multiple of the 8 bytes a row of the column, by `tracemalloc`, which
numpy and pandas report to and Arrow and Rust do not. OpenDP and diffprivlib get the same numpy column; OpenDP's
measurement is built before, with the number of rows public. Neither computes a local sensitivity or a risk. Noise is
timed against that of OpenDP, which tests and `pdrisk.audit` compare it with.

`pip install -e ".[bench]"` and `python benchmarks/run.py --write docs/benchmarks.md` write this page, its CSV file
and its picture, and end with status 1 if a target is missed. Spark's rows are from `python benchmarks/spark_soak.py
1e6`."""


if __name__ == "__main__":
    source = Path(sys.argv[1])
    picture(merged([], source)).savefig(source.with_suffix(".png"), dpi=150)
