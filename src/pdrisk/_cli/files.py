"""Files of the command line: the user's data, and what is declared of them."""

from __future__ import annotations

import argparse
import glob
import importlib
import importlib.util
import sys
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from pdrisk._cli.arguments import Several, bounds, code, several, unit
from pdrisk._ledger.store.location import is_address
from pdrisk._model.expressions.kinds import CATEGORIES, TEXT
from pdrisk._tables.duckdb_tables import ParquetFiles
from pdrisk.errors import ParameterError
from pdrisk.study.plan import usable, variables

PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
LOOKED_AT = 1000  # values of a column of text, to see whether they are numbers written in another way
DECIMAL_COMMA = r"\s*[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+\s*"


def read(chosen: argparse.Namespace) -> pd.DataFrame:
    """The frame of a CSV or Parquet file, or of a folder or pattern of Parquet files."""
    path: Path = chosen.file
    if is_address(str(path)):
        raise ParameterError(
            "this names a server, not a .csv or .parquet file (it is not shown, for it may hold a password). Ask its "
            'tables from Python: pdrisk.Dataset((url, "schema.table")).assess(...).'
        )
    kind = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() in PACKED else path.suffix.lower()
    kind = kind.removesuffix(path.suffix.lower()) if path.suffix.lower() in PACKED else kind
    if kind != ".csv" and not path.is_file():
        with suppress(ParameterError):  # a folder or pattern without any
            kind = kind if ParquetFiles(path).files == (str(path),) else ".parquet"
    if kind not in (".csv", ".parquet"):
        raise ParameterError(f"{path} is neither a .csv nor a .parquet file: write the data to one of these first.")
    if not path.exists() and (kind == ".csv" or not glob.has_magic(str(path))):
        raise ParameterError(f"there is no file {path}: see whether the path is right.")
    options = _signs(chosen) | {"encoding": chosen.encoding} if kind == ".csv" else {}
    frame: pd.DataFrame
    try:
        frame = pd.read_csv(path, **options) if kind == ".csv" else ParquetFiles(path).frame()
    except ParameterError:
        raise
    except ImportError:
        problem = 'Parquet files need pyarrow: pip install "pdrisk[arrow]"'
    except UnicodeError:
        problem = (
            f"{path.name} is not written in the encoding {chosen.encoding!r}: name its own with --encoding, such as "
            "latin-1 or cp1252."
        )
    except pd.errors.EmptyDataError:
        problem = f"{path.name} is empty: see whether it was written whole."
    except Exception as error:  # noqa: BLE001 - whatever a file may hold; the message could quote it
        advice = " Name what stands between the values with --sep, and the encoding with --encoding." * (kind == ".csv")
        problem = f"{path.name} cannot be read as a {kind} file ({type(error).__name__}).{advice}"
    else:
        if frame.shape[1] == 1 and kind == ".csv" and any(sign in str(frame.columns[0]) for sign in ",;\t|"):
            problem = f"{path.name} seems to have another separator than {options['sep']!r}: name it with --sep."
        else:
            return frame
    raise ParameterError(problem)


def _signs(chosen: argparse.Namespace) -> dict[str, Any]:
    """The separators of values, decimals and thousands: three different characters."""
    sep = "\t" if chosen.sep == r"\t" else chosen.sep  # as it is typed in a shell
    signs = {"--sep": sep, "--decimal": chosen.decimal, "--thousands": chosen.thousands}
    for option, sign in signs.items():
        if sign is not None and len(sign) != 1:
            raise ParameterError(f"{option} must be one character, but is {sign!r}.")
    for one, other in (("--decimal", "--sep"), ("--thousands", "--decimal"), ("--thousands", "--sep")):
        if signs[one] == signs[other]:
            raise ParameterError(
                f"{one} and {other} cannot both be {signs[one]!r}: --sep stands between values, --decimal and "
                "--thousands stand in numbers."
            )
    return {"sep": sep, "decimal": chosen.decimal, "thousands": chosen.thousands}


def arguments(command: argparse.ArgumentParser) -> None:
    """Options that describe a data file."""
    command.add_argument("--sep", default=",", help="what stands between the values of a CSV file (default: a comma)")
    command.add_argument("--decimal", default=".", help="what stands before decimals there (default: a point)")
    command.add_argument("--thousands", help="what stands between thousands there (default: nothing)")
    command.add_argument("--encoding", default="utf-8", help="of a CSV file, such as latin-1 (default: utf-8)")
    command.add_argument("--schema", help="a pandera schema with bounds: file.py:name or package.module:name")
    command.add_argument("--columns", type=several(str), action=Several, help="all that hold numbers, unless given")
    command.add_argument(
        "--bounds", type=bounds, action=Several, default=[], metavar="COLUMN=LO:HI",
        help="the range that values can have, as income=0:200000",
    )  # fmt: skip
    command.add_argument("--unit", type=unit, action=Several, default=[], metavar="COLUMN=UNIT", help="as distance=km")
    command.add_argument("--missing", type=several(code), action=Several, help="codes of a missing answer, everywhere")


def columns_of(
    frame: pd.DataFrame, chosen: argparse.Namespace, others: Sequence[str] = ()
) -> tuple[list[Any], dict[Hashable, str]]:
    """The columns to look at, and the reasons for leaving others out, in terms of the command line.

    ``chosen``: of `arguments`.
    ``others``: columns that are not looked at.
    """
    given: Mapping[Any, Any] = dict(chosen.bounds)
    if not chosen.columns:
        return usable(frame, given, others, _advice)
    variables(frame, chosen.columns, given, None, _advice)
    return chosen.columns, {}


def _advice(series: pd.Series, kind: str) -> str:
    """What to do with a column that holds no numbers. It may depend on the data: its reader is their curator."""
    if kind == TEXT:
        some = series.dropna().head(LOOKED_AT).astype(str)
        commas = some.str.fullmatch(DECIMAL_COMMA).mean() if len(some) else 0
        return "read decimal commas with --decimal=, and --thousands=." if commas > 0.5 else ""
    return "" if kind == CATEGORIES else "store a number made of them in the file"


def known(frame: pd.DataFrame, chosen: argparse.Namespace, others: Sequence[str] = ()) -> pd.DataFrame:
    """The frame with its declarations.

    ``chosen``: of `arguments`.
    ``others``: columns that must be there too.
    """
    named = [*(chosen.columns or ()), *others, *(column for column, _ in chosen.unit)]
    missing = [name for name in dict.fromkeys(named) if name not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise ParameterError(f"the file has no column {', '.join(missing)}; it has {there}.")
    accessor: Any = frame
    if chosen.missing:
        accessor = accessor.dprisk.declare(missing=dict.fromkeys(numbers(frame), chosen.missing))
    return accessor if chosen.schema is None else accessor.dprisk.declare(schema_of(chosen.schema))


def numbers(frame: pd.DataFrame) -> list[Any]:
    """The columns that hold numbers."""
    numeric = pd.api.types.is_numeric_dtype
    return [name for name in frame.columns if numeric(frame[name].dtype) and frame[name].dtype != bool]


def schema_of(place: str) -> Any:
    """The pandera schema at ``file.py:name`` or ``package.module:name``."""
    module, _, name = place.rpartition(":")
    if not module or not name:
        raise ParameterError("--schema is written file.py:name or package.module:name.")
    problem = None
    try:
        program = _loaded(Path(module)) if module.endswith(".py") else _imported(module)
        if hasattr(program, name):
            return getattr(program, name)
        problem = f"{module} has no {name!r}."
    except Exception as error:  # noqa: BLE001 - it is the user's own program
        problem = f"{module} cannot be imported ({type(error).__name__}: {error})."
    raise ParameterError(f"--schema: {problem}")


def _imported(module: str) -> Any:
    sys.path.insert(0, "")  # as python -m does: what lies in the current folder
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove("")


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where a DataFrameModel looks up its annotations
    spec.loader.exec_module(module)
    return module
