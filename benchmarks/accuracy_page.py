"""Results of the accuracy benchmark: the section of docs/mechanisms.md, its picture, and the table beside it."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accuracy_data import CLIPPED, LEVELS, STATISTICS
from accuracy_peers import PEERS, Peer
from cases import installed

if TYPE_CHECKING:
    from accuracy import Row

__all__ = ["inserted", "picture", "row", "section", "shown", "table", "verdict"]

OURS = ("auto", CLIPPED, "with interval", "laplace", "at the bound")
PACKAGES = ("pdrisk", "numpy", "opendp", "python-dp", "pipeline-dp", "diffprivlib")
GROUPED = "mean by groups"
WITH_INTERVAL = "with interval"
START, END = "<!-- accuracy -->\n", "\n<!-- end -->"  # of the section
PICTURE = "accuracy.png"


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
                "error is above 1 % of the interquartile range. Up to so many times by kind of data:"
            )
        )
        groups: dict[str, dict[str, float]] = {}
        for each in worse:
            found = groups.setdefault(each.statistic, {})
            found[each.data] = max(each.ratio or 0.0, found.get(each.data, 0.0))
        text.append("")
        for name, found in groups.items():
            text.append(wrapped(f"- {name}: {', '.join(f'{data} {ratio:.1f}' for data, ratio in found.items())}"))
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


def section(rows: Sequence[Row], peers: Sequence[Peer] = PEERS) -> str:
    """All that is measured, as Markdown."""
    versions = ", ".join(f"{name} {installed(name)}" for name in PACKAGES if installed(name) != "-")
    absent = [f"{peer.name}: {found}" for peer in peers if isinstance(found := peer.found(), str)]
    found = f"Python {platform.python_version()}, {versions}." + "".join(f" Left out: {each}." for each in absent)
    return "\n\n".join((verdict(rows), IMAGE, f"{COVERAGE}\n{coverage(rows)}", textwrap.fill(found, 120)))


def inserted(page: str, found: str) -> str:
    """The page with this section in place of the one it has."""
    before, rest = page.split(START)
    return f"{before}{START}{found}{END}{rest.split(END, 1)[1]}"


def picture(lines: Sequence[Sequence[str]], path: Path) -> None:
    """Draw the ratios of a table, as of the CSV file: a dot for each row, by statistic and eps."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    head, *rows = lines
    statistic, eps, ratio = (head.index(name) for name in ("statistic", "eps", "ratio"))
    compared = [each for each in rows if each[ratio]]
    names = list(dict.fromkeys(each[statistic] for each in compared))
    levels = sorted({each[eps] for each in compared}, key=float)
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.axvline(1, color="#888888", linewidth=1)
    for at, (level, colour, marker) in enumerate(zip(levels, ("#0072b2", "#d55e00", "#009e73"), "os^", strict=False)):
        own = [each for each in compared if each[eps] == level]
        places = [names.index(each[statistic]) + 0.25 * (at - 1) for each in own]
        ratios = [float(each[ratio]) for each in own]
        axes.plot(ratios, places, marker, color=colour, alpha=0.5, markersize=4, label=f"eps {level}")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("error as a multiple of that of the best other library; left of 1 pdrisk is nearer")
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


assert set(LEVELS) < set(STATISTICS)

IMAGE = (
    "![Errors as multiples of the best other library's, a dot for each kind of data and n: most are below 1]"
    f"({PICTURE})"
)

COVERAGE = """\
How often the 95 % interval of an answer holds the exact one, in the worst row (with `interval=True` the worst sample,
by exact probabilities; else 1,000 draws, unsure by .7 %, of clipped means 500), and the typical half-width as a
multiple of the mean error of the answer beside it. Twice to three times is what noise of a known shape would need.
"""
