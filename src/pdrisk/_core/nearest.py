"""Nearest name: the question "Did you mean ...?" about a name that is not known, and about keywords of a call."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

LONGEST: Final = 100  # letters of a value in an error
SYNONYMS: Final = {"epsilon": "eps"}
NO_ADVICE: Final[Mapping[str, str]] = MappingProxyType({})


def did_you_mean(name: object, known: Iterable[str], form: str = "{!r}") -> str:
    """The question "Did you mean ...?" with the nearest known name; empty if none is near.

    ``name``: what was asked for; only a text of ordinary length has a nearest name.
    ``form``: how the nearest name is written, such as ``"{}()"``.

    Examples
    --------
    >>> did_you_mean("Mean", ["median", "mean"])
    " Did you mean 'mean'?"
    """
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    by_lower = {known_name.lower(): known_name for known_name in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" Did you mean {form.format(by_lower[near[0]])}?" if near else ""


def unknown_keyword(signature: inspect.Signature, given: Iterable[str], advice: Mapping[str, str] = NO_ADVICE) -> str:
    """What is wrong with keywords that a function does not take, and what to write instead; "" if it takes all.

    ``advice`` says it of some keywords; of others it is the nearest name.
    """
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        return ""
    offered = [name for name in signature.parameters if name != "self"]
    hints = {
        name: f" {name}=: {advice[name]}." if name in advice else did_you_mean(SYNONYMS.get(name, name), offered)
        for name in given
        if name not in signature.parameters
    }
    named = next(filter(hints.get, hints), next(iter(hints), None))
    return "" if named is None else f"got an unexpected keyword argument {named!r}.{hints[named]}"
