"""Arguments of the command line: one or several values in one argument, with blanks or commas between them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BETWEEN = re.compile(r",(?![^(]*\))")  # a comma, but not one in brackets
STATISTIC = re.compile(r"(\w+)\((?:(q|ddof)=)?([^()]*)\)")
DATA = re.compile(r"\.(csv|parquet)(\.\w+)?$", re.IGNORECASE)
NEGATIVE = re.compile(r"-[\d.]+(,[-+]?[\d.]+)+")


class Several(argparse.Action):
    """Action that collects the words of an option, however often it is given."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs="+", **options)

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, __: object = None) -> None:
        """Add the words of one option."""
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, *(thing for word in values for thing in word)])


def several(parser: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Parser of a word that may hold several values, with commas between them."""

    def things(word: str) -> list[Any]:
        return [parser(part.strip()) for part in BETWEEN.split(word) if part.strip()]

    things.__name__ = parser.__name__  # argparse says it of a word that it cannot read
    return things


def separate(words: Sequence[str]) -> list[str]:
    """The words of a command, with -1,-2 as two words: argparse would take -1,-2 for an option."""
    return [part for word in words for part in (word.split(",") if NEGATIVE.fullmatch(word) else [word])]


def file_first(words: Sequence[str]) -> list[str]:
    """The words of a command with its data file first: an option before it would take it as one more value."""
    command, *rest = words
    single = {at + 1 for at, word in enumerate(rest) if word in ("--to", "--schema", "--file")}
    files = [at for at, word in enumerate(rest) if at not in single and DATA.search(word) and word[0] != "-"]
    if len(files) != 1:
        return list(words)
    at = files[0]
    return [command, rest[at], *rest[:at], *rest[at + 1 :]]


def folder(word: str) -> Path:
    """The path of a folder."""
    if not word.strip():
        raise argparse.ArgumentTypeError("the name of the folder is empty")
    return Path(word)


def statistic(word: str) -> Any:
    """A statistic as pdrisk writes it itself: mean, quantile(0.9), var(ddof=0)."""
    if word == "quantile":
        raise argparse.ArgumentTypeError("say which quantile, in quotes for the shell: 'quantile(0.9)'")
    match = STATISTIC.fullmatch(word)
    if match is None:
        return word
    name, parameter, value = match.groups()
    try:
        number = code(value.strip())
    except argparse.ArgumentTypeError:
        number = None
    if number is None:
        raise argparse.ArgumentTypeError(f"{word} needs a number in its brackets, as in 'quantile(0.9)'")
    return name, {parameter or ("q" if name == "quantile" else "ddof"): number}


def size(word: str) -> int | float:
    """A sample size: a number of people, or a share of the values."""
    try:
        return int(word) if word.isdigit() else float(word)
    except ValueError:
        raise argparse.ArgumentTypeError("sizes are numbers of people or shares, as in --sizes 500 0.1 1.0") from None


def unit(word: str) -> list[tuple[str, str]]:
    """Columns with their units."""
    parts = [part.rpartition("=") for part in BETWEEN.split(word) if part.strip()]
    if not all(column and named for column, _, named in parts):
        raise argparse.ArgumentTypeError("units are written COLUMN=UNIT, as in distance=km")
    return [(column.strip(), named.strip()) for column, _, named in parts]


def code(word: str) -> float:
    """A number, whole where it is written so."""
    try:
        return int(word) if word.lstrip("+-").isdigit() else float(word)
    except ValueError:
        raise argparse.ArgumentTypeError("codes are numbers, as in --missing -1 -2 or --missing=-1,-2") from None


def groups(word: str) -> int | tuple[str, int]:
    """A number of groups, or a column with the number of its keys."""
    column, _, number = word.rpartition("=")
    try:
        return (column, int(number)) if column else int(number)
    except ValueError:
        raise argparse.ArgumentTypeError("groups are a number, or COLUMN=NUMBER of keys, as in region=16") from None


def bounds(word: str) -> list[tuple[str, tuple[float, float]]]:
    """Columns with the ends of their ranges."""
    ranges, parts = [], BETWEEN.split(word)
    for part in parts if all("=" in part for part in parts) else [word]:  # a name may hold a comma
        column, _, ends = part.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            ranges.append((column, (float(low), float(high))))
        except ValueError:
            raise argparse.ArgumentTypeError("bounds are written COLUMN=LO:HI, as in income=0:200000") from None
    return ranges
