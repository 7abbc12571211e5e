"""Files that are written whole or not at all, and that only their owner may read."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from pdrisk.errors import ParameterError

__all__ = ["own_folder", "write_whole"]

_NUMBER = itertools.count()
LISTED = ".pdrisk"  # the file in a folder that names the files there which are pdrisk's to replace


def own_folder(path: Path, files: Collection[str]) -> None:
    """Make a folder for files of these names, and those above it, if it is not there; a new one is its owner's alone.

    Raises
    ------
    ParameterError
        If it is no folder, or holds a file of such a name that pdrisk did not write.
    """
    if path.exists() and not path.is_dir():
        raise ParameterError(f"{path} is a file: name a folder.")
    listed = path / LISTED
    written = set(listed.read_text(encoding="utf-8", errors="replace").splitlines()) if listed.is_file() else set()
    if others := sorted(name for name in files if name not in written and os.path.lexists(path / name)):
        raise ParameterError(
            f"the folder {path} holds {', '.join(others)} already, which pdrisk did not write there: name another "
            "folder, or move what is there."
        )
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    if not written.issuperset(files):
        names = "\n".join(sorted(written.union(files)))
        write_whole(listed, lambda file: file.write_text(f"{names}\n", encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Write a file, or leave the one before as it was.

    Parameters
    ----------
    path : Path
    write : callable
        Is given a path to write to, where an empty file is.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}-{next(_NUMBER)}.part")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        write(beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync(path.parent)
    return path


def _sync(folder: Path) -> None:
    """Bring the renaming itself to the disk, where folders can be opened."""
    try:
        found = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(found)
    except OSError:
        pass  # some file systems cannot; then a file may be missing after a power cut
    finally:
        os.close(found)
