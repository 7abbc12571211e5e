"""Arguments whose own code fails: shown in errors and judged without somebody else's exception coming out."""

from __future__ import annotations

import array
import datetime
import inspect
import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.nearest import LONGEST, unknown_keyword
from pdrisk.errors import ColumnTypeError, PdriskError

__all__ = ["LONGEST", "array_of", "as_integer", "own_errors", "own_errors_of", "shown"]

SHOWN = (str, bytes, numbers.Number, Decimal, datetime.date, datetime.timedelta, np.generic, type(None), type)
DEEPEST = 50  # containers within each other
MANY = 10_000_000  # values in them
CONTAINERS: tuple[type, ...] = (list, tuple, set, frozenset, dict)
DIMENSIONS = 32  # of lists within each other that make an array
LISTS = (list, tuple, range, array.array, deque, memoryview)
#: Where kinds come from that do what they should: what fails with them is a mistake of ours.
PLAIN = (
    "builtins", "datetime", "decimal", "fractions", "numpy", "pathlib", "pandas", "pandera", "polars", "pyarrow",
    "duckdb", "_duckdb", "pdrisk",
)  # fmt: skip

#: Whether tracebacks show where in pdrisk an error was found: for its developers.
WHOLE_TRACEBACKS = os.environ.get("PDRISK_TRACEBACK") == "whole"

Given = ParamSpec("Given")
Result = TypeVar("Result")
Made = TypeVar("Made", bound=type)


def shown(value: object, depth: int = 0) -> str:
    """A value as an error quotes it: as it is written if it is a short number or text, else its type."""
    try:
        if isinstance(value, list | tuple) and type(value) in CONTAINERS and len(value) <= 3 and not depth:
            text = ", ".join(shown(part, depth + 1) for part in value)
            text = f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
        elif isinstance(value, SHOWN):
            text = repr(value[: LONGEST + 1] if isinstance(value, str | bytes) else value)
        else:
            text = ""
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - its own code, nesting beyond Python's, or thousands of digits
        text = ""
    if not text:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def array_of(name: str, value: object) -> NDArray[Any]:
    """The numpy array of a number, or of numbers in a list, an array or a column; nothing else is looked into."""
    kind, inner, depth = type(value), value, 0
    while isinstance(inner, list | tuple) and inner and depth <= DIMENSIONS:
        inner, depth = inner[0], depth + 1
    listed = kind in LISTS or (issubclass(kind, list | tuple) and kind.__iter__ in (list.__iter__, tuple.__iter__))
    if (listed and depth <= DIMENSIONS) or isinstance(value, numbers.Number | Decimal) or hasattr(kind, "__array__"):
        try:
            return np.asarray(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            pass
    raise ColumnTypeError(f"{name} must be a number or an array of numbers.")


def own_errors(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, with errors of its own for arguments that fail when they are looked at.

    Whatever comes of an argument that is no plain value is pdrisk's own error. A function that fails on plain
    arguments is mistaken itself, and its exception stays. A keyword that it does not take is named with the nearest
    one. The traceback of pdrisk's own error ends here: it says in
    words what is wrong, and where in pdrisk that was found helps nobody who calls it.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def judged(*args: Given.args, **given: Given.kwargs) -> Result:
        try:
            return function(*args, **given)
        except PdriskError as error:
            if not WHOLE_TRACEBACKS:
                error.__traceback__ = None
            raise
        except MemoryError:
            raise
        except Exception as error:
            unfit = unknown_keyword(signature, given) if _is_of_the_call(error) else ""
            foreign = _foreign(signature, args, given)
            if foreign is None and not unfit:
                raise
            kind = type(error).__name__
        if unfit:
            names = function.__qualname__.split(".")
            raise TypeError(f"{names[-2 if names[-1] == '__init__' else -1]}(): {unfit}")
        # Out here: the cause of an error travels with it, and could quote data.
        raise ColumnTypeError(
            f"{foreign} cannot be used: it fails with {kind} when it is looked at. Pass plain numbers, text or lists."
        )

    return judged


def own_errors_of(made: Made) -> Made:
    """The class, with `own_errors` around each of its public methods."""
    for name, method in list(vars(made).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(made, name, own_errors(method))
    return made


def _is_of_the_call(error: Exception) -> bool:
    """Whether Python found an error in the arguments before anything of the function ran."""
    return isinstance(error, TypeError) and error.__traceback__ is not None and error.__traceback__.tb_next is None


def _foreign(signature: inspect.Signature, args: Iterable[Any], given: dict[str, Any]) -> str | None:
    """The name and type of the first argument that is no plain value; None if all are, or do not fit the function."""
    try:
        bound = signature.bind(*args, **given).arguments
    except TypeError:
        return None
    named = {name: value for name, value in bound.items() if name != "self"}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= named.pop(parameter.name, {})
    return next(
        (f"{name}, a value of type {type(value).__name__}," for name, value in named.items() if not _is_plain(value)),
        None,
    )


def _is_plain(value: Any) -> bool:
    """Whether a value, and what it holds as far as it is looked at, runs no code of the caller."""
    left = [(value, 0)]
    for _ in range(MANY):
        if not left:
            return True
        one, depth = left.pop()
        kind = type(one)
        if kind in CONTAINERS:
            if depth == DEEPEST:
                return False
            parts = [part for item in one.items() for part in item] if kind is dict else one
            left += [(part, depth + 1) for part in parts]
        elif kind is np.ndarray:
            if one.dtype.hasobject:
                return False
        else:
            if kind.__module__.partition(".")[0] not in PLAIN or hasattr(kind, "__next__"):
                return False
    return False


def as_integer(value: object) -> object:
    """A whole float as an integer, since R and others write whole numbers as 10.0; anything else as it is."""
    return int(float(value)) if isinstance(value, float | np.floating) and float(value).is_integer() else value
