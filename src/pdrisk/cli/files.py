"""A person's own data and what is known of them, from files."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pdrisk.errors import ParameterError

__all__ = ["arguments", "known", "names", "numbers", "read", "schema_of"]

PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
READERS: dict[str, Any] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}


def read(path: Path, sep: str = ",", encoding: str = "utf-8") -> pd.DataFrame:
    """The frame of a CSV or Parquet file.

    Raises
    ------
    ParameterError
        If it is neither, or cannot be read; without a word of what stands in it.
    """
    kind = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() in PACKED else path.suffix.lower()
    kind = kind.removesuffix(path.suffix.lower()) if path.suffix.lower() in PACKED else kind
    if kind not in READERS:
        raise ParameterError(f"{path.name} is neither a .csv nor a .parquet file.")
    if not path.is_file():
        raise ParameterError(f"there is no file {path}: see whether the path is right.")
    frame: pd.DataFrame
    try:
        frame = READERS[kind](path, **({"sep": sep, "encoding": encoding} if kind == ".csv" else {}))
    except ImportError:
        problem = 'Parquet files need pyarrow: pip install "pdrisk[functions]"'
    except Exception as error:  # noqa: BLE001 - whatever a file may hold; the message could quote it
        said = " Name what stands between the values with --sep, and the encoding with --encoding." * (kind == ".csv")
        problem = f"{path.name} cannot be read as a {kind} file ({type(error).__name__}).{said}"
    else:
        if frame.shape[1] == 1 and kind == ".csv" and any(sign in str(frame.columns[0]) for sign in ";\t|"):
            problem = f"{path.name} seems to have another separator than {sep!r}: name it with --sep."
        else:
            return frame
    raise ParameterError(problem)


def arguments(command: argparse.ArgumentParser) -> None:
    """What is known of a file."""
    command.add_argument("--sep", default=",", help="what stands between the values of a CSV file (default: a comma)")
    command.add_argument("--encoding", default="utf-8", help="of a CSV file, such as latin-1 (default: utf-8)")
    command.add_argument("--schema", help="a pandera schema with bounds: file.py:name or package.module:name")
    command.add_argument("--columns", type=names, help="comma-separated; all that hold numbers, unless given")
    command.add_argument("--bounds", type=_bounds, action="append", default=[], metavar="COLUMN=LO:HI")
    command.add_argument("--missing", type=_codes, help="codes of a missing answer in every column: --missing=-1,-2")


def known(frame: pd.DataFrame, chosen: argparse.Namespace, others: Sequence[str] = ()) -> pd.DataFrame:
    """The frame with what is declared for it.

    Raises
    ------
    ParameterError
        If a column that was asked for is not there.
    """
    missing = [name for name in [*(chosen.columns or ()), *others] if name not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise ParameterError(f"the file has no column {', '.join(missing)}; it has {there}.")
    accessor: Any = frame
    if chosen.missing is not None:
        accessor = accessor.dprisk.declare(missing=dict.fromkeys(numbers(frame), chosen.missing))
    return accessor if chosen.schema is None else accessor.dprisk.declare(schema_of(chosen.schema))


def numbers(frame: pd.DataFrame) -> list[Any]:
    """The columns that hold numbers."""
    numeric = pd.api.types.is_numeric_dtype
    return [name for name in frame.columns if numeric(frame[name].dtype) and frame[name].dtype != bool]


def names(said: str) -> list[str]:
    """A list of names on the command line."""
    return [name.strip() for name in said.split(",") if name.strip()]


def _codes(said: str) -> list[float]:
    try:
        return [int(code) if code.lstrip("+-").isdigit() else float(code) for code in names(said)]
    except ValueError:
        raise argparse.ArgumentTypeError("codes are numbers, separated by commas: --missing=-1,-2") from None


def _bounds(said: str) -> tuple[str, tuple[float, float]]:
    column, _, ends = said.rpartition("=")
    low, _, high = ends.partition(":")
    try:
        return column, (float(low), float(high))
    except ValueError:
        raise argparse.ArgumentTypeError("bounds are written COLUMN=LO:HI, as in income=0:200000") from None


def schema_of(said: str) -> Any:
    """The pandera schema at ``file.py:name`` or ``package.module:name``.

    Raises
    ------
    ParameterError
        If there is none.
    """
    module, _, name = said.rpartition(":")
    if not module or not name:
        raise ParameterError("--schema is written file.py:name or package.module:name.")
    problem = None
    try:
        found = _loaded(Path(module)) if module.endswith(".py") else _imported(module)
        if hasattr(found, name):
            return getattr(found, name)
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
