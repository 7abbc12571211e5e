"""Missing arguments of a request, all named in one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pdrisk.errors import ParameterError


def missing_argument(message: str, lacks: str) -> ParameterError:
    """The error for a missing argument; ``lacks`` names it in a list of several."""
    error = ParameterError(message)
    error.lacks = lacks
    return error


def all_given(*checks: Callable[[], Any]) -> list[Any]:
    """Results of all checks of a request; missing arguments are collected into one error."""
    results, lacking = [], list[ParameterError]()
    for check in checks:
        try:
            results.append(check())
        except ParameterError as error:
            if not error.lacks and not lacking:
                raise
            if not error.lacks:
                break
            lacking.append(error)
    if not lacking:
        return results
    different = {error.lacks: error for error in reversed(lacking)}
    if len(different) == 1:
        raise lacking[0]
    lacks = "; ".join(reversed(different))
    raise missing_argument(
        f"several arguments are missing: {lacks}. Bounds and keys can be declared once for all, with "
        "df.dprisk.declare(...) or a pandera schema.",
        lacks,
    )
