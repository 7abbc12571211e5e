"""``pdrisk plan QUESTION...``: the noise to expect of questions, without data."""

from __future__ import annotations

import argparse

import pdrisk
from pdrisk._cli.arguments import Several, bounds

__all__ = ["arguments", "plan"]


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument("questions", nargs="+", help="such as 'mean(distance)' 'quantile(0.9) of distance' 'count()'")
    command.add_argument("--n", type=int, required=True, help="about how many records there will be")
    command.add_argument("--eps", type=float, default=1.0, help="privacy loss of all questions together (default: 1)")
    command.add_argument(
        "--bounds", type=bounds, action=Several, default=[], metavar="COLUMN=LO:HI",
        help="the range that values can have, as income=0:200000",
    )  # fmt: skip
    command.add_argument("--groups", type=int, default=1, help="of how many groups each question asks (default: 1)")
    command.add_argument("--mechanism", default="auto", help="auto, laplace or another (default: auto)")
    command.add_argument("--whole", action="store_true", help="the values are whole numbers")


def plan(chosen: argparse.Namespace) -> str:
    """The text of ``pdrisk plan``."""
    table = pdrisk.plan(
        chosen.questions, n=chosen.n, eps=chosen.eps, bounds=dict(chosen.bounds), groups=chosen.groups,
        mechanism=chosen.mechanism, step=1 if chosen.whole else None,
    )  # fmt: skip
    for column in ("noise95", "noise95_widest"):
        table[column] = ["not known" if noise != noise else f"± {noise:.4g}" for noise in table[column]]
    return table.to_string(index=False, float_format=lambda number: f"{number:.4g}")
