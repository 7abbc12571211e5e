"""``pdrisk study FOLDER``: both papers, on the synthetic survey or on a person's own data."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pdrisk._cli import files, records
from pdrisk._cli.arguments import Several, folder, several, size, statistic
from pdrisk.datasets import soep_like, soep_like_schema
from pdrisk.errors import ParameterError
from pdrisk.study.experiment import EPS, STATISTICS, run
from pdrisk.study.exposure import weighing_of, weighted_means
from pdrisk.study.origin import ReportOrigin
from pdrisk.study.owned_folder import own_folder
from pdrisk.study.paper import FILES, Study, written
from pdrisk.study.points import CURVES

COLUMNS = {"hours": "h", "distance": "km", "income": "EUR"}  # that the paper studies, and their units


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument("folder", type=folder, help="where the tables, figures and report.html go")
    command.add_argument(
        "--file", type=Path, help="your own .csv or .parquet file, or folder of these, instead of the synthetic survey"
    )
    files.arguments(command)
    records.arguments(command)
    records.weights_arguments(command)
    command.add_argument("--by", type=several(str), action=Several, help="columns of groups, each studied for itself")
    several_of = f"one or several (default: {' '.join(STATISTICS)}); also 'quantile(0.9)', 'var(ddof=0)'"
    command.add_argument("--statistics", type=several(statistic), action=Several, help=several_of)
    losses = f"one or several (default: {' '.join(f'{loss:g}' for loss in EPS)})"
    command.add_argument("--eps", type=several(float), action=Several, help=losses)
    sizes = (
        "of samples: people, as 500, or shares of a column's values, as 0.1; 1 is one person, 1.0 everybody "
        "(default: eight from 0.001 to 1.0)"
    )
    command.add_argument("--sizes", type=several(size), action=Several, help=sizes)
    command.add_argument("--repetitions", type=int, default=100, help="samples of each size (default: 100)")
    command.add_argument("--mechanism", default="laplace", help="of the noise; auto: as releases (default: laplace)")
    command.add_argument("--seed", type=int, default=0, help="of the samples (default: 0)")
    command.add_argument("--quiet", action="store_true", help="no progress")


def study(chosen: argparse.Namespace) -> str:
    """Run the study and write everything; the path of the page."""
    if find_spec("matplotlib") is None:
        raise ParameterError('a study draws its figures with matplotlib: pip install "pdrisk[plots]"')
    if len(chosen.statistics or ()) > CURVES:
        raise ParameterError(f"a figure holds {CURVES} statistics: name at most so many with --statistics.")
    frame: Any
    units: dict[Any, str]
    weighted = None
    groups = chosen.by or []
    if chosen.file is None:
        of_files = ("schema", "missing", "person", "per_person", "weights", "trim_weights")
        if any(getattr(chosen, option) is not None for option in of_files):
            raise ParameterError(
                "--schema, --missing, --person, --per-person and --weights are about a file of your own: name it with "
                "--file."
            )
        frame = soep_like().pipe(soep_like_schema().validate)
        columns, name = chosen.columns or list(COLUMNS), "a survey like the Socio-Economic Panel"
        units = {**COLUMNS, **dict(chosen.unit)}
        bounds: Any = dict.fromkeys(columns, "column") | dict(chosen.bounds)  # as in the paper
        rows = len(frame)
    else:
        others = [*groups, *(chosen.person or ()), *([chosen.weights] if chosen.weights else [])]
        frame = files.known(files.read(chosen), chosen, others)
        rows = len(frame)
        if chosen.weights is None and chosen.trim_weights is not None:
            raise records.no_weights()
        weights = False
        if chosen.weights is not None:
            weights, weighing_bounds = records.weights_of(frame, chosen)
            if groups:
                raise ParameterError("--by makes a study of each group, and --weights is about all: leave one out.")
            weighing_of(frame, weights, weighing_bounds)
            chosen.bounds = [(column, ends) for column, ends in chosen.bounds if column != weights]
        units, name, bounds = dict(chosen.unit), f"{chosen.file.name}{records.said_of(chosen)}", dict(chosen.bounds)
        columns, left_out = files.columns_of(frame, chosen, others)
        for column, reason in left_out.items():
            _note(f"left out: {column} ({reason})")
        if weights is not False:
            people = records.of_people(frame, [*columns, *([] if weights in columns else [weights])], chosen)
            weighted = weighted_means(people, columns, chosen.eps or EPS, weighing_bounds, weights)
        frame = records.of_people(frame, columns, chosen, groups)
    if groups:
        bounds = records.known_bounds(frame, columns, chosen) | bounds
        frame, columns, bounds, units = records.by_group(frame, columns, bounds, units, groups)
    own_folder(chosen.folder, FILES)
    result = run(
        frame,
        columns,
        chosen.statistics or list(STATISTICS),
        eps=chosen.eps or EPS,
        sample_sizes=chosen.sizes,
        repetitions=chosen.repetitions,
        seed=chosen.seed,
        bounds=bounds,
        mechanism=chosen.mechanism,
        progress=not chosen.quiet,
        resume=chosen.folder / "parts",
    )
    file = name if chosen.file is None else chosen.file.name
    origin = ReportOrigin.now(file, rows, chosen.said, chosen.file)
    about = Study(result, name, synthetic=chosen.file is None, units=units, origin=origin, weighted=weighted)
    page = written(about, chosen.folder, noted=lambda file: None if chosen.quiet else _note(file))
    return f"written: {page}"


def _note(file: str) -> None:
    print(f"  {file}", file=sys.stderr)
