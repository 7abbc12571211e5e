"""The command ``pdrisk``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pdrisk
from pdrisk.cli import assess, ledger, study
from pdrisk.cli.demo import demo

__all__ = ["demo", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 0, 2 for a request that cannot be answered, 130 if it was stopped."""
    parser = argparse.ArgumentParser(
        prog="pdrisk", description="Noisy answers about people, with their sensitivity and the risk they mean."
    )
    parser.add_argument("--version", action="version", version=f"pdrisk {pdrisk.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("demo", help="answers and risks on a synthetic survey of 30,000 people")
    shown.add_argument("--eps", type=float, default=1.0, help="privacy loss of each answer (default: 1)")
    shown.add_argument("--seed", type=int, default=2019, help="of the synthetic survey; noise has no seed")
    study.arguments(commands.add_parser("study", help="both papers, into a folder: tables, figures and a report"))
    assess.arguments(commands.add_parser("assess", help="for the curator: what answers about a file would mean"))
    ledger.arguments(commands.add_parser("ledger", help="what was asked of a dataset, and what is left"))
    chosen = parser.parse_args(arguments)
    run = {
        "demo": lambda: demo(eps=chosen.eps, seed=chosen.seed),
        "study": lambda: study.study(chosen),
        "assess": lambda: assess.assess(chosen),
        "ledger": lambda: ledger.ledger(chosen),
    }
    try:
        print(run[chosen.command]())
    except (pdrisk.PdriskError, OSError) as error:
        print(f"pdrisk: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pdrisk: stopped. A study goes on where it was when the same command is given again.", file=sys.stderr)
        return 130
    return 0
