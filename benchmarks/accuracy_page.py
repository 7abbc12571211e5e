"""Page docs/accuracy.md and the table beside it: the results of the accuracy benchmark, and how to read them."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accuracy_data import CLIPPED, LEVELS, SAMPLES, STATISTICS
from accuracy_peers import PEERS, Peer
from cases import installed

if TYPE_CHECKING:
    from accuracy import Row

__all__ = ["page", "row", "shown", "table", "verdict"]

OURS = ("auto", CLIPPED, "with interval", "laplace", "at the bound")
PACKAGES = ("pdrisk", "numpy", "opendp", "python-dp", "pipeline-dp", "diffprivlib")
GROUPED = "mean by groups"
WITH_INTERVAL = "with interval"


def shown(value: float) -> str:
    """Three digits, and all digits of whole numbers; what floats leave of 0 is 0."""
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def row(cells: Iterable[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table(rows: Sequence[Row]) -> list[list[str]]:
    """The lines of the CSV file, its head first."""
    seen = {column for each in rows for column in each.errors}
    columns = [*(each for each in OURS if each in seen), *(each.name for each in PEERS if each.name in seen)]
    head = ["statistic", "data", "n", "eps", *columns, "judged", "coverage", "half-width", "goal"]
    lines = [[*head, "best peer", "ratio", "interquartile range", "beyond all records"]]
    for each in rows:
        errors = [f"{each.errors[name].mean:.4g}" if name in each.errors else "" for name in columns]
        interval = each.errors.get(WITH_INTERVAL, each.ours)
        numbers = (interval.coverage, interval.width, each.goal, each.ratio, each.scale, each.beyond)
        coverage, width, goal, ratio, scale, beyond = ("" if one is None else f"{one:.4g}" for one in numbers)
        own = [each.statistic, each.data, str(each.n), each.eps, *errors, each.judged, coverage, width, goal]
        lines.append([*own, each.best_peer or "", ratio, scale, beyond])
    return lines


def means(rows: Sequence[Row]) -> list[str]:
    """Geometric means of the ratios by statistic and eps, as a table."""
    compared = [each for each in rows if each.ratio is not None]
    eps = sorted({each.eps for each in compared}, key=float)
    lines = [row(("", *(f"eps {each}" for each in eps))), row(("---", *["--:"] * len(eps)))]
    for statistic in dict.fromkeys(each.statistic for each in compared):
        own = [[each.ratio for each in compared if (each.statistic, each.eps) == (statistic, one)] for one in eps]
        lines.append(row((statistic, *(f"{np.exp(np.mean(np.log(np.array(ratios)))):.2f}" for ratios in own))))
    return lines


def verdict(rows: Sequence[Row]) -> str:
    """How many goals are met, the ratios, and where a peer is much better."""
    goals = [each for each in rows if each.goal is not None]
    missed = [each for each in goals if each.misses_goal]
    compared = [each for each in rows if each.ratio is not None]
    worse = [each for each in compared if each.is_much_worse]
    parts = [f"{len(goals) - len(missed)} of {len(goals)} goals are met."]
    parts += [f"Missed: {each.name} ({shown(each.ours.typical)}, goal {shown(each.goal or 0)})." for each in missed]
    text = [" ".join(parts)]
    if compared:
        text += ["", *means(rows), ""]
        text.append(
            wrapped(
                f"In {len(worse)} of {len(compared)} rows the error is more than twice that of a library, where its "
                "error is above 1 % of the interquartile range:"
            )
        )
        groups: dict[str, list[str]] = {}
        for each in worse:
            ratio = f"{each.n:,}/{each.eps}: {each.ratio:.1f}"
            groups.setdefault(f"{each.statistic}, {each.data}", []).append(ratio)
        text += ["", *(wrapped(f"- {name} (n/eps: times) {'; '.join(found)}") for name, found in groups.items())]
    beyond = [each.beyond for each in rows if each.beyond is not None and each.n * float(each.eps) >= 100]
    if beyond:
        text += [
            "",
            f"Answers beyond all records by more than 1 % of the bounds, n eps >= 100: at most {max(beyond):.3f}.",
        ]
    return "\n".join(text)


def wrapped(line: str) -> str:
    """A line of text, or of a list, in lines that can be read."""
    return textwrap.fill(line, 120, subsequent_indent="  " if line.startswith("- ") else "", break_on_hyphens=False)


def coverage(rows: Sequence[Row]) -> str:
    """Of each statistic's intervals the smallest coverage, and the half-width as a multiple of the error."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in rows:
        own = each.errors.get(WITH_INTERVAL, each.ours)
        if own.coverage is not None and own.width is not None:
            wide = own.width / own.mean if own.mean > 1e-9 else np.nan
            found.setdefault(each.statistic, []).append((own.coverage, wide))
    lines = [row(("", "rows", "least covered", "half-width, times its error")), row(("---", "--:", "--:", "--:"))]
    for name, own in found.items():
        covered, wide = np.array(own).T
        lines.append(row((name, str(len(own)), f"{covered.min():.3f}", f"{np.nanmedian(wide):.1f}")))
    return "\n".join(lines)


def page(rows: Sequence[Row], peers: Sequence[Peer] = PEERS) -> str:
    """The whole page."""
    versions = ", ".join(f"{name} {installed(name)}" for name in PACKAGES if installed(name) != "-")
    absent = [f"{peer.name}: {found}" for peer in peers if isinstance(found := peer.found(), str)]
    found = f"Python {platform.python_version()}, {versions}." + "".join(f" Left out: {each}." for each in absent)
    parts = [INTRODUCTION.format(samples=SAMPLES), f"## Result\n\n{verdict(rows)}", REASONS]
    parts += [f"{COVERAGE}\n{coverage(rows)}", WHEN_NOT, textwrap.fill(found, 120)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


assert set(LEVELS) < set(STATISTICS)

INTRODUCTION = """\
# Accuracy

How far are noisy answers from the exact ones, and those of other libraries? `python benchmarks/accuracy.py --write
docs/accuracy.md` writes this page and [all numbers](accuracy.csv) beside it. Other libraries are measured if they are
installed (`pip install opendp diffprivlib python-dp pipeline-dp`).

## What was measured

The mean absolute error of one answer that gets all of eps (.1, 1 or 3), about 30 to 10,000 records, over {samples}
samples of each kind of data. Errors of pdrisk's medians, quantiles, minima and maxima, and of OpenDP's, are computed
from the probabilities of all answers; others are averages over draws. The exact answer is that of the records within
the bounds, by numpy.

| data | bounds | what |
| --- | --- | --- |
| distance | 1 to 675 | kilometres to work of the synthetic survey, drawn with replacement: whole numbers, mean 15 |
| income | 0 to 2,700,000 | its incomes, likewise: bounds a thousand times wider than most of the data |
| uniform | 0 to 100 | spread evenly over the bounds |
| loose bounds | 0 to 1000 | normal, 400 ± 30 |
| 0 or 1 | 0 to 1 | 30 % ones |
| nearly constant | 0 to 100 | 50, but for 1 % that are uniform |
| heaped | 0 to 20,000 | log-normal around 2,000, rounded to 500s |
| ages | 0 to 120 | whole numbers from 18 to 93 |
| balances | -1000 to 1000 | Laplace, 20 ± 85 |

Every number below is the error of `mechanism="auto"` as a multiple of the *best* library that keeps the number of
records private, as pdrisk does, which may be another one in each row; the geometric mean over all data and n. Errors
below a thousandth of the interquartile range count as that. A minimum or maximum is asked for with
`bounds_reached=True` where data are declared to reach their bound: both of uniform and of 0 or 1, and the minimum of
distances. A goal is the error that a prototype reached at eps 1; the median of the samples meets it within 10 %.

All libraries get the same bounds and eps, and protect against one record added or removed. diffprivlib takes the number
of records as public (except in a count): it is in the CSV file, but not compared. OpenDP has no mean or variance of
private n: its entry is what its users write, a noisy clamped sum over a noisy count with eps/2 each (variance: a third
each). Its quantiles are chosen among 1,001 even candidates (675 whole numbers for distances). PipelineDP's entries are
the mechanisms that its engines call.
"""

REASONS = """\
## Where other libraries are better

- *A minimum or maximum* is asked for some 13 to 16/eps records short of the end, or a sixth of the records if they are
  few, so that an answer beyond all records is given once in 20 times at most, in any data. Where nobody shares the end
  (long tails, few values that are not alike), this lies far from the end. OpenDP aims at the end itself: it is nearer
  there, and anywhere in the empty rest of loose bounds. A target that keeps the promise in any data has to lie at least
  `ln(19 m)/(s eps)` records short, with m points to choose among and a slope s: [the study](mechanisms.md) has the
  numbers.
- *A quantile with less than some 5/eps records beyond it* (.05 of 30 records) is not known by anybody; libraries that
  tend to answer near the middle look good.
- *Ties*: OpenDP scores them by mid-rank and chooses by permute-and-flip, which is more often exact at small n eps.
  Permute-and-flip has no bounded range: in a budget that adds up answers by zCDP it would cost four times as much.
"""

COVERAGE = """\
## Do the intervals hold what they promise?

How often the 95 % interval of an answer holds the exact one, in the worst row (with `interval=True` the worst sample,
by exact probabilities; else 1,000 draws, unsure by .7 %, of clipped means 500), and the typical half-width as a
multiple of the mean error of the answer beside it. Twice to three times is what noise of a known shape would need.
"""

WHEN_NOT = """\
## When not to trust it

- An error is that of *such* data. For quantiles, extremes and variances it depends on the records near the answer. For
  your own data, the curator sees the noise with `df.dprisk.assess`; `pdrisk.plan` gives that of public facts.
- Sampling error is not part of it, nor are records beyond the bounds.
- Several answers share one eps. Here each answer gets all of it.
- Whether a library keeps its eps is not tested: a smaller error is no proof of quality. Equal eps is not equal risk for
  the people in the data: see [which mechanism when](mechanisms.md).
"""
