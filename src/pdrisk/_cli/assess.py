"""``pdrisk assess FILE``: what answers about a person's own data would mean for the people in it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pdrisk._cli import files, records
from pdrisk._cli.arguments import Several, folder, several, statistic
from pdrisk._printing import inert
from pdrisk.study.assess_report import report, text
from pdrisk.study.exposure import AUTO, STATISTICS, exposure, weighing_of
from pdrisk.study.origin import ReportOrigin
from pdrisk.study.owned_folder import own_folder, remove_own, write_own

EPS = (0.1, 1.0)
FILES = ("answers.csv", "groups.csv", "columns.csv", "eps.csv", "report.html")


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument(
        "file", type=Path, help="a .csv or .parquet file, or a folder or pattern of .parquet files; before all options"
    )
    files.arguments(command)
    records.arguments(command)
    known = f"one or several (default: {' '.join(STATISTICS)}); also count, sum, std, 'quantile(0.9)', 'var(ddof=0)'"
    command.add_argument("--statistics", type=several(statistic), action=Several, help=known)
    command.add_argument("--eps", type=several(float), action=Several, help="one or several (default: 0.1 1)")
    command.add_argument(
        "--mechanism", default=AUTO, help="whose noise and risks; laplace: as in the SOEP paper (default: auto)"
    )
    records.weights_arguments(command)
    command.add_argument("--by", type=several(str), action=Several, help="columns of groups")
    command.add_argument(
        "--to", type=folder, metavar="FOLDER", help="write report.html and the tables as CSV files there"
    )


def assess(chosen: argparse.Namespace) -> str:
    """Text of ``pdrisk assess``; with a folder, the report is written there instead."""
    groups = chosen.by or []
    others = [*groups, *(chosen.person or ()), *([chosen.weights] if chosen.weights else [])]
    frame = files.known(files.read(chosen), chosen, others)
    weights, bounds = records.weights_of(frame, chosen)
    weighing_of(frame, weights, bounds)  # what is wrong with weights is said before what is with other columns
    chosen.bounds = [(column, ends) for column, ends in chosen.bounds if column != weights]
    others += [] if weights is False or weights in others else [weights]
    if chosen.to is not None:
        own_folder(chosen.to, FILES)
    columns, left_out = files.columns_of(frame, chosen, others)
    carried = [*columns, *([] if weights is False or weights in columns else [weights])]
    people, name = records.of_people(frame, carried, chosen, groups), f"{chosen.file.name}{records.said_of(chosen)}"
    exposed = exposure(
        people, columns, chosen.statistics or list(STATISTICS), chosen.eps or EPS, bounds=bounds, weights=weights,
        by=groups[0] if len(groups) == 1 else groups or None, mechanism=chosen.mechanism,
    )  # fmt: skip
    exposed = replace(exposed, left_out=left_out, units=dict(chosen.unit))
    if chosen.to is None:
        return text(name, exposed)
    tables = {"answers": exposed.answers, "groups": exposed.groups, "columns": exposed.columns.reset_index()}
    for part, table in (tables | {"eps": exposed.recommendation}).items():
        if table is not None:
            write_own(chosen.to, f"{part}.csv", lambda path, table=table: inert(table).to_csv(path, index=False))  # type: ignore[misc]
        else:
            remove_own(chosen.to, f"{part}.csv")
    origin = ReportOrigin.now(chosen.file.name, len(frame), chosen.said, chosen.file)
    page = report(name, exposed, origin)
    written = write_own(chosen.to, "report.html", lambda path: path.write_text(page, encoding="utf-8"))
    return f"written, for the curator only: {written}"
