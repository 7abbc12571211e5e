"""A year's release of twelve tables, by a budget of eps and by one of success: ``python benchmarks/success_year.py``.

Ends with status 1 if the tables by the budget of success are off by more than 10 in 95 of 100 answers, or an attacker
does better than the limit. ``--write docs`` draws the pictures of docs/epsilon.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._core.risks.gaussian_dp import largest_eps, limit_of, mu_of_pure, squared
from pdrisk._core.risks.risk import privacy_loss
from pdrisk._pictures.canvas import COLOURS, INK, SIZE, WORDS, canvas, styled

SUCCESS, TABLES, GOAL = 0.75, 12, 10
YEARS = 10  # releases of all tables, each by a ledger of its own
TRIALS = 20_000  # of the attack, in each of two worlds
DIMENSIONS = ["sex", "state", "education", "employment", "age group", "household head"]


def survey() -> pd.DataFrame:
    """The synthetic survey, with the columns that tables are made of."""
    frame = pdrisk.datasets.soep_like(missing="nan")
    frame["age group"] = pd.cut(frame["age"], [0, 30, 45, 60, 75, 120]).astype(str)
    frame["household head"] = ~frame["household_id"].duplicated()
    return frame


def tables() -> list[list[str]]:
    """The columns of each table: one of each, then pairs."""
    pairs = [["state", "sex"], ["state", "age group"], ["sex", "age group"], ["education", "sex"]]
    pairs += [["employment", "sex"], ["education", "employment"]]
    return [[column] for column in DIMENSIONS] + pairs


def asked(frame: pd.DataFrame, eps: float, **limit: Any) -> dict[str, Any]:
    """What twelve tables of counts at this eps are like, and what the best attacker makes of all of them."""
    errors: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for year in range(YEARS):
            book = pdrisk.Ledger(f"{folder}/{year}.db", dataset="year", **limit)
            with book:
                errors += [error for columns in tables() for error in errors_of(frame, columns, eps)]
        attack = pdrisk.attack.ledger(book, trials=TRIALS)
    reach = pdrisk.plan("count()", n=len(frame), eps=eps)["noise95"][0]
    within = float(np.mean(np.array(errors) <= reach))
    return {"eps": eps, "reach": reach, "counts": len(errors), "within": within, "attack": attack}


def errors_of(frame: pd.DataFrame, columns: list[str], eps: float) -> list[float]:
    """How far the counts of one table are off."""
    keys = {column: sorted(frame[column].dropna().unique()) for column in columns}
    several = len(columns) > 1
    found = frame.dprisk.count(eps=eps, by=columns, keys=keys if several else keys[columns[0]])["value"]
    groups = pd.MultiIndex.from_product(keys.values()) if several else keys[columns[0]]
    exact = frame.groupby(columns if several else columns[0]).size().reindex(groups).fillna(0)
    return list(np.abs(found.to_numpy(dtype=float) - exact.to_numpy()))


def most_of_eps(number: int) -> float:
    """The eps of each of so many tables by the sum of eps, rounded down."""
    return float(privacy_loss(SUCCESS, 0.5)) / number


def most_of_success(number: int) -> float:
    """The same by the filter of success."""
    return float(largest_eps(lambda eps: squared(mu_of_pure(float(eps))) * number, limit_of(SUCCESS)))


def year_picture() -> Any:
    """Half-width of counts against the number of tables that share a budget."""
    numbers = np.unique(np.geomspace(1, 100, 40).astype(int))
    figure = canvas(2.9, f"Counts in tables that share a budget of {SUCCESS:g}")
    axes = styled(figure.subplots())
    for most, colour, dashes, label in (
        (most_of_eps, COLOURS[5], (0, (4, 1.5)), "sum of eps"),
        (most_of_success, COLOURS[0], "-", "success"),
    ):
        reach = [pdrisk.plan("count()", n=10_000, eps=most(int(number)))["noise95"][0] for number in numbers]
        axes.plot(numbers, reach, color=colour, linestyle=dashes, linewidth=1.5)
        axes.annotate(
            label,
            (numbers[-1], reach[-1]),
            (-4, 6),
            textcoords="offset points",
            ha="right",
            color=colour,
            fontsize=SIZE,
        )
    axes.axvline(TABLES, color=INK, linewidth=0.6, linestyle=(0, (1, 2)))
    axes.annotate(f"{TABLES} tables", (TABLES, 2.2), (4, 0), textcoords="offset points", color=INK, fontsize=SIZE)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks([2, 5, 10, 20, 50, 100, 200], ["2", "5", "10", "20", "50", "100", "200"])
    axes.minorticks_off()
    axes.set_xlabel("number of tables", labelpad=2, **WORDS)
    axes.set_ylabel("each count is off by at most, 95 % sure", labelpad=3, **WORDS)
    return figure


def curve_picture(frame: pd.DataFrame) -> Any:
    """The curve of one of the twelve tables, and that which all keep to."""
    with tempfile.TemporaryDirectory() as folder:
        with pdrisk.Ledger(f"{folder}/budget.db", dataset="year", success=SUCCESS) as book:
            table = frame.dprisk.count(eps=math.floor(1e4 * most_of_success(TABLES)) / 1e4)
        return pdrisk.tradeoff(table, so_far=book).picture()


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--write", type=Path, metavar="FOLDER", help="draw the pictures into this folder")
    folder = reader.parse_args().write
    warnings.simplefilter("ignore")
    frame = survey()
    limits = {"sum of eps": {"risk": SUCCESS}, "success": {"success": SUCCESS}}
    eps = {"sum of eps": most_of_eps(TABLES), "success": most_of_success(TABLES)}
    found = {name: asked(frame, math.floor(1e4 * eps[name]) / 1e4, **limit) for name, limit in limits.items()}
    print(
        "| budget | eps of each table | each count is off by at most | counts within | attacker, at most | attacked |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name, row in found.items():
        attack = row["attack"]
        print(
            f"| {name} | {row['eps']:.4f} | {row['reach']:.0f} | {100 * row['within']:.1f} % of {row['counts']:,} | "
            f"{attack.claimed:.4f} | {attack.achieved:.4f} ({attack.low:.4f} to {attack.high:.4f}) |"
        )
    if folder is not None:
        curve_picture(frame).savefig(folder / "success.png")
        year_picture().savefig(folder / "success_year.png")
    own = found["success"]
    return 1 if own["reach"] > GOAL or any(row["attack"].verdict == "broken" for row in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
