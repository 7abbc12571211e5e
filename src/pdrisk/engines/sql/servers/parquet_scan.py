"""Parquet files as DuckDB scans them: one file, a list, a folder or a pattern."""

from __future__ import annotations

import glob
import os

from pdrisk.errors import ParameterError

Paths = str | tuple[str, ...]
# Statistics of files leave NaN out. This option of DuckDB mends filters, but neither MAX nor bloom filters of -0.0: it
# is for a DuckDB that sees through `by_record`.
CAN_HAVE_NAN = ", can_have_nan = true"


def parquet_scan(path: Paths) -> tuple[str, Paths]:
    """Scan of Parquet files as it stands in FROM, and the files; folders such as ``year=2020`` are a column of text."""
    files = _files_of(path) if isinstance(path, str) else None
    if files is None:
        return written_files(path), path
    return written_files(files, partitions=True), files


def written_files(path: Paths, *, partitions: bool = False) -> str:
    """Scan of exactly these files."""
    # As text, whatever the folders are called: another folder could change the type of all others.
    options = ", hive_partitioning = true, hive_types_autocast = false" if partitions else ""
    return f"system.main.read_parquet({written_paths(path)}{options}{CAN_HAVE_NAN})"


def written_paths(path: Paths) -> str:
    """One path of a file, or a list of them, as a literal."""
    if isinstance(path, str):
        return "'" + path.replace("'", "''") + "'"
    return f"[{', '.join(map(written_paths, path))}]"


def _files_of(path: str) -> tuple[str, ...] | None:
    """Parquet files of a folder or pattern, by name; None for the path of one file."""
    if os.path.isdir(path):
        pattern = os.path.join(glob.escape(path), "**", "*.parquet")
    elif "://" in path or not glob.has_magic(path) or os.path.exists(path):
        return None
    else:
        pattern = path
    if files := tuple(sorted(glob.glob(pattern, recursive=True))):
        return files
    raise ParameterError(f"there is no Parquet file in {os.path.basename(os.path.normpath(path))!r}: see the path.")
