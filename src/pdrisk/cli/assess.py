"""``pdrisk assess FILE``: what answers about a person's own data would mean for the people in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from pdrisk.cli import files
from pdrisk.errors import ParameterError
from pdrisk.study.exposure import STATISTICS, exposure
from pdrisk.study.own import report, text
from pdrisk.study.whole import own_folder, write_whole

__all__ = ["arguments", "assess"]


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument("file", type=Path, help="a .csv or .parquet file, one row a person")
    files.arguments(command)
    command.add_argument("--statistics", type=files.names, default=list(STATISTICS), help="comma-separated")
    command.add_argument("--eps", type=float, nargs="+", default=[0.1, 1.0], help="one or several (default: 0.1 1)")
    command.add_argument("--by", type=files.names, help="columns of groups, comma-separated")
    command.add_argument(
        "--to", type=Path, metavar="FOLDER", help="write report.html and the tables as CSV files there"
    )


def assess(chosen: argparse.Namespace) -> str:
    """The text of ``pdrisk assess``; writes the report instead if a folder is named."""
    frame = files.known(files.read(chosen.file, chosen.sep, chosen.encoding), chosen, chosen.by or ())
    by = None if not chosen.by else chosen.by[0] if len(chosen.by) == 1 else chosen.by
    found = exposure(frame, chosen.columns, chosen.statistics, chosen.eps, bounds=dict(chosen.bounds), by=by)
    if chosen.to is None:
        return text(chosen.file.name, len(frame), found)
    if chosen.to.exists() and not chosen.to.is_dir():
        raise ParameterError(f"{chosen.to} is a file: name a folder.")
    own_folder(chosen.to)
    tables = {"answers": found.answers, "groups": found.groups, "columns": found.columns.reset_index()}
    for name, table in (tables | {"eps": found.recommendation}).items():
        if table is not None:
            write_whole(chosen.to / f"{name}.csv", lambda path, table=table: table.to_csv(path, index=False))  # type: ignore[misc]
    page = report(chosen.file.name, len(frame), found)
    written = write_whole(chosen.to / "report.html", lambda path: path.write_text(page, encoding="utf-8"))
    return f"written, for the curator only: {written}"
