"""``pdrisk audit``: the self-test of this installation, and its report as a file."""

from __future__ import annotations

import argparse
from pathlib import Path

import pdrisk
from pdrisk._atomic_file import check_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--deep", action="store_true", help="10 to 100 times as much, for an hour or more")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write a report: audit.html or audit.json")
    parser.add_argument("--seed", type=int, help="of the random questions, to ask the same ones again")


def audit(chosen: argparse.Namespace) -> tuple[str, int]:
    """Report of the audit, and the exit status: 0 if all checks passed, else 1."""
    if chosen.to is not None and chosen.to.suffix.lower() not in (".html", ".json"):
        raise pdrisk.ParameterError("--to names a file that ends with .html or .json.")
    if chosen.to is not None:
        check_folder(chosen.to)  # before the tests, which take minutes
    report = pdrisk.audit(deep=chosen.deep, seed=chosen.seed)
    text = repr(report)
    if chosen.to is not None:
        text += f"\n  report: {report.save(chosen.to)}"
    return text, 0 if report.passed else 1
