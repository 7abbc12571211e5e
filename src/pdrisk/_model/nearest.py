"""Nearest name: the question "Did you mean ...?" at the end of an error about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable

from pdrisk._core.foreign import LONGEST, shown
from pdrisk.errors import UnknownColumnError

__all__ = ["did_you_mean", "unknown_column"]


def did_you_mean(name: object, known: Iterable[str], form: str = "{!r}") -> str:
    """The question after the known name that is nearest, whatever its case; empty if none is near.

    Parameters
    ----------
    name : object
        What was asked for; only a text of ordinary length has a nearest name.
    known : iterable of str
    form : str
        How the nearest name is written, such as ``"{}()"``.

    Examples
    --------
    >>> did_you_mean("Mean", ["median", "mean"])
    " Did you mean 'mean'?"
    """
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" Did you mean {form.format(by_lower[near[0]])}?" if near else ""


def unknown_column(column: object, columns: Iterable[Hashable]) -> UnknownColumnError:
    """The error for a column that is not there, with the nearest name."""
    names = [str(name) for name in columns]
    some = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return UnknownColumnError(
        f"unknown column {shown(column)}; the frame has: {some or 'no columns'}.{did_you_mean(column, names)}"
        + " Pass several columns as a list." * isinstance(column, tuple)
    )
