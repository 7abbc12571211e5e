"""Files that are written whole or not at all, also if the process is killed."""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pdrisk.errors import ParameterError

if sys.platform != "win32":
    import fcntl

#: Beside ``name`` stand ``.name.<token>.part``, which is being written, and ``.name.<token>.lock``, which says that
#: somebody does: its process holds it as long as it lives.
LOCK = re.compile(r"\..+\.[0-9a-f]{16}\.lock", re.DOTALL)
PATIENCE = 2.0  # seconds in which others may close a file that is to be replaced
_HELD: set[str] = set()  # names of locks of this process, which some file systems would give it twice


def name_once(part: Path, path: Path) -> None:
    """Give a finished file its name; of two processes the first one's stays, and the other gets a FileExistsError."""
    # Windows renames over no other file, and does it too where a file cannot have two names.
    (os.rename if sys.platform == "win32" else os.link)(part, path)


def write_whole(path: Path, write: Callable[[Path], object], mode: int = 0o600) -> Path:
    """Write a file, or leave the one before as it was.

    ``write``: is given a path to write to, where an empty file is.
    ``mode``: who may read and write it, less what the process's umask forbids.
    """
    check_folder(path)
    with part_of(path, mode) as part:
        write(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        _replace(part, path)
    _sync(path.parent)
    return path


def _replace(part: Path, path: Path) -> None:
    """Rename a file over another; on Windows as soon as no program has the other open, which may be for a moment."""
    since = time.monotonic()
    while True:
        try:
            os.replace(part, path)
        except PermissionError:
            if sys.platform != "win32":
                raise
            if time.monotonic() > since + PATIENCE:
                break
            time.sleep(0.05)
        else:
            return
    raise PermissionError(f"{path} cannot be replaced: close the program that has it open, and ask again.")


def check_folder(path: Path) -> None:
    """Refuse to write a file into a folder that does not exist."""
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent}: make it first, or name another.")


@contextmanager
def part_of(path: Path, mode: int = 0o600) -> Iterator[Path]:
    """An empty file beside a path, which is gone afterwards unless it got another name."""
    part, lock, held = _begun(path)
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield part
    finally:
        os.close(held)
        _HELD.discard(lock.name)
        part.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the parts of processes that were killed while they wrote, and not of those that still write."""
    with suppress(OSError):  # whoever may not list or remove them may still write
        for lock in [lock for lock in folder.iterdir() if LOCK.fullmatch(lock.name) and lock.name not in _HELD]:
            with suppress(OSError):
                _remove_if_left(lock)


def _remove_if_left(lock: Path) -> None:
    part = lock.with_suffix(".part")
    if sys.platform == "win32":
        lock.unlink()  # fails while a process has it open
        part.unlink(missing_ok=True)
        return
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _begun(path: Path) -> tuple[Path, Path, int]:
    """A file to write to, the lock file that marks it, and the open lock."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        lock = part.with_suffix(".lock")
        _HELD.add(lock.name)
        try:
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except BaseException:
            _HELD.discard(lock.name)
            raise
        if _locked(held, lock):
            return part, lock, held
        os.close(held)  # somebody took it for left, before it was locked
        _HELD.discard(lock.name)


def _locked(held: int, lock: Path) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(held), os.stat(lock))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:
        return True  # a file system without locks: nobody can remove it either


def _sync(folder: Path) -> None:
    """Bring the renaming to the disk, where folders can be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some file systems cannot; then a file may be missing after a power cut
    finally:
        os.close(descriptor)
