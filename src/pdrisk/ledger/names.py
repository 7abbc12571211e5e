"""Whose budget, and who asks."""

from __future__ import annotations

import getpass

from pdrisk.errors import ColumnTypeError

__all__ = ["named", "user"]


def named(what: str, value: object) -> str:
    """A name of one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ColumnTypeError(f"{what} must be a name, as text in one line that is not empty.")
    return value


def user() -> str:
    """The name of who runs the program."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
