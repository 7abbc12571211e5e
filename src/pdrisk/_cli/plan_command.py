"""``pdrisk plan QUESTION...``: the noise to expect of questions, without data."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

import pdrisk
from pdrisk._cli.arguments import Several, bounds, groups
from pdrisk._cli.records import no_weights

WITH_TARGET: Final = re.compile(r"(.*\S)\s*(?:±|\+-)\s*([\d.eE+-]+)\s*(%?)\s*")


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument(
        "questions", nargs="+",
        help="such as 'mean(distance)' 'quantile(0.9) of distance' 'count()', or with the noise that is wanted: "
        "'count() +- 5' 'mean(distance) +- 1%%'",
    )  # fmt: skip
    command.add_argument("--n", type=int, required=True, help="about how many records there will be")
    command.add_argument("--eps", type=float, help="privacy loss of all questions together (default: 1)")
    command.add_argument(
        "--success", type=float, help="how often an attacker may be right at most, by all answers together, as 0.75"
    )
    command.add_argument(
        "--bounds", type=bounds, action=Several, default=[], metavar="COLUMN=LO:HI",
        help="the range that values can have, as income=0:200000",
    )  # fmt: skip
    command.add_argument(
        "--groups", type=groups, nargs="+", default=[1],
        help="of how many groups each question asks (default: 1), or the number of keys of each column, as region=16",
    )  # fmt: skip
    command.add_argument("--margins", action="store_true", help="also plan the margins of such columns, which add up")
    command.add_argument("--mechanism", default="auto", help="auto, laplace or another (default: auto)")
    command.add_argument("--weights", metavar="COLUMN", help="weigh all questions, as in surveys, by this column")
    command.add_argument("--trim-weights", type=float, metavar="W", help="the largest weight that counts")
    command.add_argument("--total-weight", type=float, help="sum of all weights, such as the size of the population")
    command.add_argument("--whole", action="store_true", help="the values are whole numbers")


def plan(chosen: argparse.Namespace) -> str:
    """The text of ``pdrisk plan``."""
    targets = [WITH_TARGET.fullmatch(question) for question in chosen.questions]
    questions: Any = chosen.questions
    if any(targets):
        questions = dict(map(_target, chosen.questions))
        if not all(targets) and chosen.success is None and chosen.eps is None:
            first = chosen.questions[targets.index(None)]
            raise pdrisk.ParameterError(
                f"{first!r} has no target: write '{first} +- 5', or add --success 0.75 or --eps for all together."
            )
    is_budget = chosen.success is not None or any(targets)
    planned: Any = pdrisk.plan(
        questions, n=chosen.n, eps=1.0 if chosen.eps is None and not is_budget else chosen.eps,
        success=chosen.success, bounds=_bounds(chosen), groups=_groups(chosen.groups), margins=chosen.margins,
        mechanism=chosen.mechanism, step=1 if chosen.whole else None,
        weights=chosen.weights, total_weight=chosen.total_weight,
    )  # fmt: skip
    if is_budget and not any(targets):
        return repr(planned)
    if is_budget:
        return f"{planned!r}\n\nwhat all targets need, for so many times the noise:\n{_shown(planned.frontier)}"
    for column in {"noise95", "noise95_widest"} & set(planned):
        planned[column] = ["not known" if noise != noise else f"± {noise:.4g}" for noise in planned[column]]
    return _shown(planned)


def _bounds(chosen: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """The bounds of columns, with that of the weights."""
    bounds = dict(chosen.bounds)
    if chosen.weights is None:
        if chosen.trim_weights is not None:
            raise no_weights()
        return bounds
    if chosen.trim_weights is not None:
        bounds[chosen.weights] = (0.0, chosen.trim_weights)
    if chosen.weights not in bounds or chosen.total_weight is None:
        lacking = "--total-weight, their sum" if chosen.weights in bounds else "--trim-weights W, the largest one"
        raise pdrisk.ParameterError(f"--weights {chosen.weights} needs {lacking}: noise depends on both.")
    return bounds


def _groups(given: list[Any]) -> Any:
    """The number of groups, or that of the keys of each column."""
    pairs = [pair for pair in given if isinstance(pair, tuple)]
    if len(pairs) < len(given) and len(given) > 1:
        raise pdrisk.ParameterError("--groups is one number, or the number of keys of each column, as region=16 sex=2.")
    return dict(pairs) if pairs else given[0]


def _target(question: str) -> tuple[str, dict[str, float]]:
    """A question and the noise that is wanted of it; none of one without."""
    read = WITH_TARGET.fullmatch(question)
    if read is None:
        return question, {}
    try:
        number = float(read[2])
    except ValueError:
        raise pdrisk.ParameterError(f"{question!r} has no number after its ±: write 'count() +- 5'.") from None
    return read[1], {"relative": number / 100} if read[3] else {"noise95": number}


def _shown(table: Any) -> str:
    return str(table.to_string(index=False, float_format=lambda number: f"{number:.4g}"))
