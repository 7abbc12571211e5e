"""Nearest name: the question "Did you mean ...?" at the end of an error about an unknown name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from pdrisk._core.foreign import shown
from pdrisk._core.nearest import LONGEST, did_you_mean
from pdrisk.errors import UnknownColumnError

__all__ = ["did_you_mean", "misspelt", "unknown_column"]


def misspelt(
    name: object, known: Iterable[str], form: str = "{!r}", *, is_other: Callable[[str], object] = lambda _: False
) -> str:
    """The question "Did you mean ...?" for a name with one slip of the finger; empty for every other name.

    Functions whose names are alike mean different things, so none is offered for less.

    ``name, known, form``: as for `did_you_mean`.
    ``is_other``: whether a name is that of another function elsewhere, and so not misspelt.

    Examples
    --------
    >>> misspelt("medain", ["median", "mean"]), misspelt("mode", ["median", "mean"])
    (" Did you mean 'median'?", '')
    """
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = [by_lower[lower] for lower in by_lower if _is_one_slip(name.lower(), lower)]
    if len(near) != 1 or (near[0].lower() != name.lower() and is_other(name.lower())):
        return ""
    return f" Did you mean {form.format(near[0])}?"


def _is_one_slip(one: str, other: str) -> bool:
    """Whether two names differ by one letter, missing, added or changed, or by two swapped neighbours."""
    short = min(len(one), len(other)) <= 3
    begin = _shared(one, other)
    one, other = one[begin:], other[begin:]
    end = _shared(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    return one == other or (len(one) == 2 and one == other[::-1]) or (not short and max(len(one), len(other)) <= 1)


def _shared(one: str, other: str) -> int:
    """Number of letters with which two names begin alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def unknown_column(column: object, columns: Iterable[Hashable]) -> UnknownColumnError:
    """The error for a column that is not there, with the nearest name."""
    names = [str(name) for name in columns]
    is_condition = isinstance(column, str) and any(sign in column for sign in "<>=")
    some = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return UnknownColumnError(
        f"unknown column {shown(column)}; the frame has: {some or 'no columns'}.{did_you_mean(column, names)}"
        + " Pass several columns as a list." * isinstance(column, tuple)
        + " A condition stands in where=, and its share is proportion(...)." * is_condition
    )
