"""Tables with margins over simulated people: bias, coverage, adding up and time, for docs/margins.md.

``python benchmarks/margins.py`` prints the table of the page, from seeds; ``--draws 20`` is a quick look.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._core.margins.allotment import alloted
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.margins.whole import whole_table
from pdrisk._mechanisms.margin_estimates import EstimateNoise
from pdrisk._pictures.canvas import COLOURS, INK, MARKERS, SIZE, WORDS, canvas, styled

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from margin_tables import EVERY, laplace, matrix, people, summed, variance

TABLES = {(51, 8): 3000, (16, 10, 4): 3000, (4, 12, 6, 8): 3000}
HEADINGS = [
    "table", "people in", "eps", "margins that add up", "bias/SE of the total", "one way", "two ways",
    "coverage of estimates", "as shown", "error/SE of whole cells",
]  # fmt: skip
EPS = (0.1, 0.2, 0.4, 0.8, 1.6)


def design_of(sizes, eps):
    """What is measured at the default allotment, and the scales of its noise."""
    shares = alloted(sizes, EVERY[len(sizes)])
    scales = {axes: 1 / (eps * float(share)) for axes, share in shares.items()}
    return MeasuredMargins(sizes, {axes: variance(scale) for axes, scale in scales.items()}), scales


def study(sizes, n, eps, sparse, draws):
    """A line of the table."""
    k, cells = len(sizes), tuple(range(len(sizes)))
    random = np.random.default_rng([n, k, int(10 * eps), sparse])
    table = people(random, sizes, n, sparse)
    design, scales = design_of(sizes, eps)
    exact = {axes: summed(table, axes, k) for axes in EVERY[k]}
    bounds = {
        axes: float(EstimateNoise.of(design.weights(axes), scales).bound(np.ones((1, 1)), 0.95)[0]) for axes in EVERY[k]
    }
    errors = {axes: np.zeros(exact[axes].shape) for axes in EVERY[k]}
    held, shown, add_up, squares, number = 0.0, 0.0, 0, 0.0, 0
    for _ in range(draws):
        drawn = {axes: exact[axes] + laplace(random, scale, exact[axes].shape) for axes, scale in scales.items()}
        found = design.estimated_components(drawn)
        whole = whole_table(design, found)
        margins = {axes: summed(whole, axes, k) for axes in EVERY[k]}
        add_up += all(
            (summed(margins[axes], part, k) == margins[part]).all()
            for axes, part in itertools.product(EVERY[k], repeat=2)
            if set(part) <= set(axes)
        )
        for axes in EVERY[k]:
            estimate = design.estimate(found, axes)
            low, high = estimate - bounds[axes], estimate + bounds[axes]
            held += ((low <= exact[axes]) & (exact[axes] <= high)).sum()
            low, high = np.maximum(np.ceil(low), 0), np.maximum(np.floor(high), 0)
            low, high = np.minimum(low, margins[axes]), np.maximum(high, margins[axes])
            shown += ((low <= exact[axes]) & (exact[axes] <= high)).sum()
            number += exact[axes].size
            errors[axes] += margins[axes] - exact[axes]
        squares += float(((whole - table) ** 2).mean())

    def bias(ways):
        """Largest mean error of a cell of such a margin, in standard errors of its estimate."""
        listed = [
            np.abs(errors[axes]).max() / draws / design.variance(axes) ** 0.5 for axes in errors if len(axes) == ways
        ]
        return max(listed)

    return [
        " x ".join(map(str, sizes)), f"{int((table > 0).sum())} of {table.size} cells", eps, f"{add_up} of {draws}",
        bias(0), bias(1), bias(2) if k > 2 else bias(k), held / number, shown / number,
        (squares / draws) ** 0.5 / design.variance(cells) ** 0.5,
    ]  # fmt: skip


def times():
    """Seconds of least squares and of whole numbers, as multiples of reading and counting the records with pandas."""
    for sizes, n in (((400, 10), 100_000), ((4, 51, 6, 8), 100_000), ((2000, 50), 100_000)):
        random = np.random.default_rng(0)
        table, (design, scales) = people(random, sizes, n), design_of(sizes, 0.6)
        places = np.repeat(np.arange(table.size), table.ravel().astype(int))
        frame = pd.DataFrame(dict(enumerate(np.array(np.unravel_index(places, sizes)).astype(str))))
        keys = {column: list(map(str, range(size))) for column, size in enumerate(sizes)}
        start = time.perf_counter()
        frame.dprisk.count(eps=0.6, by=list(frame.columns), keys=keys)
        read = time.perf_counter() - start
        drawn = {
            axes: summed(table, axes, len(sizes)) + laplace(random, scale, summed(table, axes, len(sizes)).shape)
            for axes, scale in scales.items()
        }
        start = time.perf_counter()
        found = design.estimated_components(drawn)
        for axes in EVERY[len(sizes)]:
            design.estimate(found, axes)
        squares = time.perf_counter() - start
        start = time.perf_counter()
        whole_table(design, found)
        whole = time.perf_counter() - start
        print(
            f"{' x '.join(map(str, sizes))}: reading {read:.3f} s; least squares {squares / read:.3f} of it, "
            f"whole numbers {whole / read:.2f}"
        )


def furthest_from_dense():
    """Largest difference from dense least squares, over all margins of some tables."""
    worst = 0.0
    for sizes in ((5, 4), (3, 4, 5), (2, 3, 2, 4)):
        random, k = np.random.default_rng(1), len(sizes)
        design, _ = design_of(sizes, 0.6)
        measured = {axes: random.normal(0, 9, summed(np.zeros(sizes), axes, k).shape) for axes in design.variances}
        found = design.estimated_components(measured)
        rows = np.vstack([matrix(sizes, axes) / v**0.5 for axes, v in design.variances.items()])
        cells = np.linalg.pinv(rows) @ np.concatenate(
            [measured[a].ravel() / v**0.5 for a, v in design.variances.items()]
        )
        for axes in EVERY[k]:
            worst = max(worst, np.abs(design.estimate(found, axes).ravel() - matrix(sizes, axes) @ cells).max())
    return worst


def totals():
    """People that a table seems to have in all, at each eps: by the sums of its cells cut at 0, and with margins."""
    random = np.random.default_rng(31)
    table = people(random, (4, 51, 6, 8), 2726, sparse=True)
    places = np.repeat(np.arange(table.size), table.ravel().astype(int))
    frame = pd.DataFrame(dict(zip("abcd", np.array(np.unravel_index(places, table.shape)), strict=True)))
    keys = {column: list(range(size)) for column, size in zip("abcd", table.shape, strict=True)}
    options = {"by": list("abcd"), "keys": keys}
    cut = [frame.dprisk.count(eps=eps, **options)["value"].sum() for eps in EPS]
    found = [frame.dprisk.count(eps=eps, margins=True, **options)["value"].iloc[-1] for eps in EPS]
    return len(frame), cut, found


def picture():
    """What the cells of a table sum to, with and without margins."""
    number, cut, found = totals()
    figure = canvas(2.5, f"{number:,} people in {4 * 51 * 6 * 8:,} cells: what the table sums to")
    axes = styled(figure.subplots())
    axes.axhline(number, color=INK, linewidth=0.6, linestyle=(0, (1, 2)))
    for values, at, place, label in (
        (cut, 5, (8, 4), "cells alone, cut at 0"),
        (found, 0, (8, 8), "with margins=True"),
    ):
        axes.plot(EPS, values, color=COLOURS[at], marker=MARKERS[at], markersize=3, linewidth=1.2)
        axes.annotate(label, (EPS[1], values[1]), place, textcoords="offset points", color=COLOURS[at], fontsize=SIZE)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(EPS, [f"{eps:g}" for eps in EPS])
    axes.set_yticks([2000, 5000, 20_000, 50_000], ["2,000", "5,000", "20,000", "50,000"])
    axes.minorticks_off()
    axes.set_xlabel("eps", labelpad=2, **WORDS)
    axes.set_ylabel("people in all", labelpad=3, **WORDS)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="draw the picture of the page into this folder")
    chosen = parser.parse_args()
    if chosen.write is not None:
        picture().savefig(chosen.write / "margins.png")
        return
    draws = chosen.draws
    print(f"pdrisk {pdrisk.__version__}, {draws} tables in each line; chance alone makes a bias of a total some "
          f"{1 / draws**0.5:.2f}, the largest of many cells some {3 / draws**0.5:.2f}\n")  # fmt: skip
    print("|" + "|".join(HEADINGS) + "|\n|" + "---|" * len(HEADINGS))
    for (sizes, n), sparse, eps in itertools.product(TABLES.items(), (False, True), (0.1, 0.6, 2.0)):
        line = study(sizes, n, eps, sparse, draws)
        print(
            "|" + "|".join(f"{each:.3g}" if isinstance(each, float) else str(each) for each in line) + "|", flush=True
        )
    print(f"\nfurthest from dense least squares: {furthest_from_dense():.1g}")
    times()


if __name__ == "__main__":
    main()
