"""Origin of a report: which file, how many rows, its hash, when, and by which command."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from pathlib import Path

from pdrisk._tables.duckdb_tables import ParquetFiles

PIECE = 2**20  # bytes read at a time


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """Origin of a report.

    Attributes
    ----------
    file, command : str
    rows : int
    hash : str
        SHA-256 of the file; "" for data that are made anew each time.
    date : str
        In UTC.
    """

    file: str
    rows: int
    hash: str
    date: str
    command: str

    @classmethod
    def now(cls, file: str, rows: int, command: str, path: Path | None = None) -> ReportOrigin:
        """Origin of a report made now."""
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        return cls(file, rows, "" if path is None else hash_of(path), date, command)

    @property
    def rows_of_head(self) -> list[tuple[str, str]]:
        """Labels and texts for the head of a report."""
        texts = {
            "file": self.file, "rows": f"{self.rows:,}", "SHA-256": self.hash, "made": self.date,
            "command": self.command,
        }  # fmt: skip
        return [(label, text) for label, text in texts.items() if text]


def hash_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal; of a folder or pattern of files, one after another by their names."""
    digest = hashlib.sha256()
    for name in ParquetFiles(path).files:
        with open(name, "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    return digest.hexdigest()
