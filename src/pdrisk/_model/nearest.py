"""Nearest name: the question "Did you mean ...?" at the end of an error about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pdrisk._core.foreign import LONGEST

__all__ = ["did_you_mean"]


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
