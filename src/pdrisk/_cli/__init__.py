"""The command ``pdrisk``."""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import pdrisk
from pdrisk._cli import assess, audit, study
from pdrisk._cli import ledger_command as ledger
from pdrisk._cli import plan_command as plan
from pdrisk._cli.arguments import file_first, separate
from pdrisk._cli.demo import demo
from pdrisk._printing import printable

__all__ = ["demo", "main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """The error, with a hint where a missing word may have gone: options for several words take all that follow."""
        hint = "; name it before options that take several words" if " are required: " in message else ""
        super().error(message + hint)


def _is_closed(error: OSError) -> bool:
    """Whether nobody reads on; Windows says so in its own way."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    The exit status is 0, 1 if an audit failed, 2 for a request that cannot be answered, 130 if it was stopped, 141 if
    nobody reads on.
    """
    parser = argparse.ArgumentParser(
        prog="pdrisk", description="Noisy answers about people, with their sensitivity and the risk they mean."
    )
    parser.add_argument("--version", action="version", version=f"pdrisk {pdrisk.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    shown = commands.add_parser("demo", help="answers and risks on a synthetic survey of 30,000 people")
    shown.add_argument("--eps", type=float, default=1.0, help="privacy loss of each answer (default: 1)")
    shown.add_argument("--seed", type=int, default=2019, help="of the synthetic survey; noise has no seed")
    study.arguments(commands.add_parser("study", help="both papers, into a folder: tables, figures and a report"))
    assess.arguments(commands.add_parser("assess", help="for the curator: what answers about a file would mean"))
    plan.arguments(commands.add_parser("plan", help="the noise to expect of questions, without data"))
    ledger.arguments(commands.add_parser("ledger", help="what was asked of a dataset, and what is left"))
    audit.arguments(commands.add_parser("audit", help="the self-test of this installation, in under two minutes"))
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = separate(given)
    chosen = parser.parse_args(file_first(words) if words[:1] == ["assess"] else words)
    chosen.said = shlex.join(["pdrisk", *given])  # for the head of a report
    run: dict[str, Callable[[], str | tuple[str, int]]] = {
        "demo": lambda: demo(eps=chosen.eps, seed=chosen.seed),
        "study": lambda: study.study(chosen),
        "assess": lambda: assess.assess(chosen),
        "plan": lambda: plan.plan(chosen),
        "ledger": lambda: ledger.ledger(chosen),
        "audit": lambda: audit.audit(chosen),
    }
    try:
        outcome = run[chosen.command]()
        text, status = outcome if isinstance(outcome, tuple) else (outcome, 0)
    except (pdrisk.PdriskError, OSError) as error:
        print(f"pdrisk: {printable(' '.join(map(str.strip, str(error).splitlines())))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pdrisk: stopped. The same command continues a study where it stopped.", file=sys.stderr)
        return 130
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that cannot write a letter shows its number
            sys.stdout.reconfigure(errors="backslashreplace")
        print(printable(text, keep="\n\t"), flush=True)  # what others named must not command the terminal
    except OSError as error:  # as of `| head`: what is left unsaid must not be said when Python ends, either
        if not _is_closed(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status
