"""Checkpoints of a study: its finished parts in files, so that a stopped study can be continued."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from pdrisk._atomic_file import remove_leftovers, write_whole
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

SUFFIX = ".study"


class Folder:
    """A folder with one file for each finished part, named by its fingerprint.

    A file is written beside its place, brought to the disk, and then renamed, so that it is there whole or not at
    all; it begins with the hash of what follows. Files of other studies have other names and are left alone; what
    processes left there that were killed while they wrote is removed.

    Parameters
    ----------
    path : str or path
        Made if it is not there, for its owner only: what it holds is computed from the data.

    Raises
    ------
    ParameterError
        If it cannot be a folder.
    """

    def __init__(self, path: object) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ColumnTypeError(f"resume must be the path of a folder, not {type(path).__name__}.")
        named = os.fsdecode(path)
        if not named.strip():
            raise ParameterError("resume must name a folder, and this name is empty: pass the name of a new folder.")
        self._path = Path(named)
        problem = ""
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            problem = "it is a file" if self._path.is_file() else error.strerror or "it cannot be made"
        if not problem and not os.access(self._path, os.W_OK | os.X_OK):
            problem = "it cannot be written to"
        if problem:
            raise ParameterError(
                f"resume must name a folder for the finished parts of studies, but {str(self._path)!r} is none: "
                f"{problem}. Pass the name of a new folder."
            )
        remove_leftovers(self._path)

    def load(self, fingerprint: str, shape: tuple[int, ...]) -> FloatArray | None:
        """The part that was kept; None if there is none, or if its file is damaged."""
        try:
            content = self._file(fingerprint).read_bytes()
        except OSError:
            return None
        digest, payload = content[:32], content[32:]
        if hashlib.sha256(payload).digest() != digest or len(payload) != 8 * int(np.prod(shape)):
            return None
        return np.frombuffer(payload, dtype="<f8").reshape(shape).astype(np.float64)

    def save(self, fingerprint: str, part: FloatArray) -> None:
        """Keep a part, whole or not at all."""
        payload = np.ascontiguousarray(part, dtype="<f8").tobytes()
        content = hashlib.sha256(payload).digest() + payload
        write_whole(self._file(fingerprint), lambda path: path.write_bytes(content))

    def _file(self, fingerprint: str) -> Path:
        return self._path / f"{fingerprint}{SUFFIX}"
