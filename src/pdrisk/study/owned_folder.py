"""Files in a folder that only their owner may read, with a list of the files that pdrisk wrote."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from pathlib import Path

from pdrisk._atomic_file import remove_leftovers, write_whole
from pdrisk.errors import ParameterError

LISTED = ".pdrisk"  # the file in a folder that names the files there which pdrisk wrote, each with its hash
KEPT = 2  # hashes of a name: of what stands there, and of what was about to


def own_folder(path: Path, files: Collection[str]) -> None:
    """Make a folder, and those above it, for files of these names; a new one is readable by its owner alone."""
    if path.exists() and not path.is_dir():
        raise ParameterError(f"{path} is a file: name a folder.")
    listed = _listed(path)
    there = sorted(name for name in files if os.path.lexists(path / name))
    if others := [name for name in there if (_digest(path / name), name) not in listed]:
        raise ParameterError(
            f"the folder {path} holds {', '.join(others)} already, and not as pdrisk wrote it there: name another "
            "folder, or move what is there."
        )
    if path.is_dir():
        remove_leftovers(path)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def write_own(folder: Path, name: str, write: Callable[[Path], object]) -> Path:
    """Write a file as `write_whole` does, and note that pdrisk may replace it."""

    def noted(path: Path) -> None:
        write(path)
        before = _listed(folder)
        kept = [*[entry for entry in before if entry[1] == name], (_digest(path), name)][-KEPT:]
        lines = [f"{digest} {of}\n" for digest, of in [*(entry for entry in before if entry[1] != name), *kept]]
        write_whole(folder / LISTED, lambda file: file.write_text("".join(lines), encoding="utf-8"))

    return write_whole(folder / name, noted)


def remove_own(folder: Path, name: str) -> None:
    """Remove files that an earlier run wrote and this one does not write."""
    if (folder / name).is_file() and (_digest(folder / name), name) in _listed(folder):
        (folder / name).unlink()


def _listed(folder: Path) -> list[tuple[str, ...]]:
    listed = folder / LISTED
    text = listed.read_text(encoding="utf-8", errors="replace") if listed.is_file() else ""
    return [tuple(line.split(" ", 1)) for line in text.splitlines()]


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
