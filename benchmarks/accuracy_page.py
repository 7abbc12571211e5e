"""Page docs/accuracy.md: the tables of the accuracy benchmark, and how to read them."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accuracy_data import CLIPPED, LEVEL, STATISTICS
from accuracy_peers import PEERS, Peer
from cases import installed

if TYPE_CHECKING:
    from accuracy import Row

__all__ = ["page", "row", "shown", "table", "verdict"]

OURS = ("auto", CLIPPED, "with interval", "laplace", "at the bound")
PACKAGES = ("pdrisk", "numpy", "opendp", "python-dp", "pipeline-dp", "diffprivlib")
GROUPED = "mean by groups"
TITLES = {
    "count": "Count", "sum": "Sum", "mean": "Mean", CLIPPED: "Mean of values clipped privately",
    "var": "Variance", "std": "Standard deviation",
    "median": "Median", "quantile": f"Quantile {LEVEL}", "min": "Minimum", "max": "Maximum",
    GROUPED: "Mean distance by groups",
}  # fmt: skip
NOTES = {
    "sum": "Distances, incomes and 0/1 are declared to be whole numbers.",
    CLIPPED: 'With `clip="private"`: the error is that from the mean of the values that each answer says it clipped.',
    "min": 'Judged "at the bound" (`bounds_reached=True`) where the data are declared to reach it.',
    "max": 'Judged "at the bound" (`bounds_reached=True`) where the data are declared to reach it.',
    GROUPED: "Each person is in one group, drawn at random. The error is that of one group, averaged over all.",
}


def shown(value: float) -> str:
    """Three digits, and all digits of whole numbers; what floats leave of 0 is 0."""
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def row(cells: Iterable[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table of one statistic."""
    seen = {column for each in rows for column in each.errors}
    columns = [*(each for each in OURS if each in seen), *(each.name for each in PEERS if each.name in seen)]
    public = {peer.name for peer in PEERS if not peer.private_n}
    heads = [f"{each} (n public)" if each in public else each for each in columns]
    head = ("data", "n", "eps", *heads, "covered", "goal", "error, best peer", "met")
    return [
        row(head),
        row(("---", "--:", "--:", *["--:"] * len(columns), "--:", "--:", "---", "---")),
        *(row(each.cells(columns)) for each in rows),
    ]


def coverage(rows: Sequence[Row]) -> str:
    """The smallest coverage of each mechanism's intervals, and how many rows there are."""
    found: dict[str, list[float]] = {}
    for each in rows:
        own = each.errors.get("with interval", each.errors[each.judged])
        if own.coverage is not None:
            found.setdefault(TITLES[each.statistic], []).append(own.coverage)
    lines = [row((name, f"{len(own)}", f"{min(own):.3f}", f"{np.median(own):.3f}")) for name, own in found.items()]
    return "\n".join([row(("", "settings", "least covered", "usually")), row(("---", "--:", "--:", "--:")), *lines])


def verdict(rows: Sequence[Row]) -> str:
    """How many goals are met, and which are not."""
    goals = [each for each in rows if each.goal is not None]
    compared = [each for each in rows if each.best_peer is not None]
    missed = [each for each in rows if each.misses]
    lines = [
        f"{sum('goal' not in each.misses for each in goals)} of {len(goals)} goals are met, and in "
        f"{sum('peer' not in each.misses for each in compared)} of {len(compared)} comparisons no library to which n "
        "is private, too, is better."
    ]
    if missed:
        lines += ["Missed:", "", *(f"- {each.name} ({', '.join(map(each.missed_by, each.misses))})" for each in missed)]
    return "\n".join(lines)


def page(rows: Sequence[Row], draws: int, peer_draws: int, fewest: int, peers: Sequence[Peer] = PEERS) -> str:
    """The whole page."""
    versions = ", ".join(f"{name} {installed(name)}" for name in PACKAGES if installed(name) != "-")
    absent = [f"{peer.name}: {found}" for peer in peers if isinstance(found := peer.found(), str)]
    parts = [INTRODUCTION.format(draws=draws, peer_draws=peer_draws, fewest=fewest)]
    found = f"Python {platform.python_version()}, {versions}." + "".join(f" Left out: {each}." for each in absent)
    parts.append(textwrap.fill(found, 120))
    parts += [f"## Result\n\n{verdict(rows)}", REASONS, f"{COVERAGE.format(draws=draws)}\n{coverage(rows)}"]
    for statistic in (*STATISTICS, GROUPED):
        own = [each for each in rows if each.statistic == statistic]
        if own:
            note = f"{NOTES[statistic]}\n\n" if statistic in NOTES else ""
            parts.append(f"## {TITLES[statistic]}\n\n{note}" + "\n".join(table(own)))
    return "\n\n".join(part.strip() for part in parts) + "\n"


INTRODUCTION = """\
# Accuracy

This page shows how far noisy answers are from the exact ones. It is written by
`python benchmarks/accuracy.py --write docs/accuracy.md`, which anyone can run after `pip install -e .`. It takes some
ten minutes on two processors, `--quick` one. Other libraries are measured if they are installed (`pip install opendp
diffprivlib python-dp pipeline-dp`). It ends with status 1 if a goal is missed.

## What was measured

Every entry is the mean absolute error of one answer that gets all of eps, and in brackets what 95 % of errors stay
within: over {draws:,} draws of noise by pdrisk and {peer_draws} by other libraries (fewer, but {fewest} at least, where
{peer_draws} take too long; a dash where even these would, or there is no such function). The data are read once and are
the same for all; only the noise is drawn again. It is the libraries' real noise, without a seed, so a second run
differs in the last digits: the mean of {draws:,} errors is unsure by some 3 %, that of {peer_draws} by some 7 %. The
exact answer is that of the records within the bounds, by numpy.

| data | bounds | what |
| --- | --- | --- |
| distance | 1 to 675 | kilometres to work of the synthetic survey, drawn with replacement: whole numbers, mean 15 |
| income | 0 to 2,700,000 | its incomes, likewise: bounds a thousand times wider than most of the data |
| uniform | 0 to 100 | spread evenly over the bounds |
| loose bounds | 0 to 1000 | normal, 400 ± 30 |
| 0 or 1 | 0 to 1 | 30 % ones |
| nearly constant | 0 to 100 | 50, but for 1 % that are uniform |

"auto" is pdrisk's default, "with interval" the same with `interval=True`, "laplace" the noise of the paper, "at the
bound" an extreme with `bounds_reached=True`. The bold column is compared. "covered" is the share of the bold column's
answers (of "with interval", where there is one) whose own 95 % interval holds the exact answer. A goal is the error
that a prototype reached at eps 1; it is met within 10 %. "error, best peer" is the error as a multiple of that of the
best library that keeps the number of records private, as pdrisk does; up to 1.05 is met, so ties count as met. Either
is missed only where chance, three standard errors, does not explain it.

**The other libraries.** All get the same bounds and eps, and protect against one record added or removed. diffprivlib
takes the number of records as public (except in a count), which is a weaker guarantee: it is shown, but not compared.
OpenDP has no mean or variance of private n: its entry is what its users write, a noisy clamped sum over a noisy
count with eps/2 each (variance: a third each, with the sum of squares). Its quantiles are chosen among 1,001 even
candidates (675 whole numbers for distances), since more would take minutes. PyDP is called with its own algorithms.
PipelineDP's entries are the mechanisms that its engines call, with sums made beforehand; its quantiles are PyDP's.
Impossible means and variances of OpenDP and PipelineDP are moved to the nearest possible one.

## When not to trust it

- An error is that of *these* data. For quantiles, extremes and variances it depends on the records near the answer: a
  median of rounded data is often exact, and one in a wide gap has a large error. For your own data, the curator sees
  the noise with `df.dprisk.assess`; `pdrisk.plan` gives the noise to expect from public facts.
- This page does not cover sampling error, nor the effect of records beyond the bounds: bounds that cut off values bias
  the answer even without noise.
- Several answers share one eps. Here each answer gets all of it.
- This page does not test whether a library keeps its eps, so a smaller error is no proof of quality.
- Equal eps is not equal risk for the people in the data: see [which mechanism when](mechanisms.md).
- Below about 100/eps records, no quantile or extreme means much if the bounds are much wider than the data. The answers
  then depend mostly on the bounds and on the algorithm. A library that tends to answer near the middle or near a bound
  looks good on data that happen to lie there.
"""

COVERAGE = """\
## Do the intervals hold what they promise?

How often the 95 % interval of an answer holds the exact one, over all the settings below, small n included; the share
of {draws:,} draws is itself unsure by .7 %.
"""

REASONS = """\
## Where other libraries are better

Where ranks decide (median, quantile, minimum, maximum), a row can be missed for one of these reasons:

- OpenDP scores ties by mid-rank and chooses by another rule (its manual cites permute-and-flip, McKenna & Sheldon
  2020). On data with many ties, such as rounded distances, it is more often exact at small n eps; on data without ties
  both have about the same error.
- OpenDP's few candidates: where the next candidate is farther away than the noise reaches, its error is that of the
  nearest one, which may happen to be the exact answer.
- PyDP's quantile tree is better than any choice by ranks where few records lie beyond the quantile, some 10/eps or
  fewer, and the bounds leave much empty room: there neither answer is of use.
- pdrisk's minimum and maximum, unless records are declared to reach the bound, aim some 20/eps records short of the end
  on purpose, or a quarter of the records if they are few. A long tail, as of incomes, or data that hardly vary, put
  these records far from the end. OpenDP aims at the end itself, and is then far off where bounds are loose and ranks
  say little.

Three changes would meet single rows, and are not made, since only public facts may choose and others would lose more
(mean absolute errors of 400 draws, all points weighed alike):

- *Points below a quantile of .9 counting two thirds of those above.* It is as private, and where some 10/eps records
  lie beyond the quantile far points are chosen less often (loose bounds, n 1,000, eps .1: 29 in the place of 75, PyDP
  31). But it also looks farther down: incomes of 10,000 at eps 1 are off by 9.3 instead of 3.3, distances of 1,000 by
  .05 instead of .02.
- *Extremes nearer to the end*, 6/eps records from it: the largest of 10,000 distances is off by 405 at eps 1 in the
  place of 509 (OpenDP 223), and the largest of 1,000 values in loose bounds by 84 in the place of 25.
- *Fewer points*, a thousand as OpenDP has: fewer of them lie where nobody is, which helps 300 nearly constant values,
  but no answer is then nearer than a thousandth of the bounds, however many records there are.

Permute-and-flip itself might meet the rows with ties. Its privacy loss does not have a bounded range: in a budget that
adds up answers by zCDP it would cost four times as much. And the best attacker is only known to be right at most .73 of
the time at eps 1, not .62.
"""
