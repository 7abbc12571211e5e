"""A secret that lies outside of every ledger: without it, what a ledger keeps fits no candidate table."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from pdrisk._atomic_file import name_once, part_of, remove_leftovers
from pdrisk.errors import LedgerError

VARIABLE = "PDRISK_SECRET"
SIZE = 32


def secret() -> bytes:
    """Secret of 32 bytes: from the variable ``PDRISK_SECRET``, else from a file of the user, made when first needed."""
    text = os.environ.get(VARIABLE)
    if text:
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=SIZE).digest()
    try:
        kept = _kept(_file())
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
        problem = f"cannot be kept in the user's settings ({type(error).__name__})"
    else:
        if len(kept) == SIZE:
            return kept
        problem = f"in {_file()} is damaged"
    raise LedgerError(
        f"the secret for memory {problem}: set the environment variable {VARIABLE} to a long random text that stays "
        "the same, or give the data's version=."
    )


def _kept(path: Path) -> bytes:
    remove_leftovers(path.parent)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all, and of two processes the first one's.
        with part_of(path) as part, suppress(FileExistsError):
            part.write_bytes(secrets.token_bytes(SIZE))
            name_once(part, path)
    return path.read_bytes()


def _file() -> Path:
    return _settings() / "pdrisk" / "secret"


def _settings() -> Path:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        if os.path.isabs(os.environ.get(name, "")):
            return Path(os.environ[name])
    return Path.home() / ".config"
