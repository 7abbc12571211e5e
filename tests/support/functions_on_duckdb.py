"""Every function of `pdrisk.register`, the call of it in SQL, and its twin on a pandas frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

import pdrisk  # noqa: F401 - gives frames their accessor
from pdrisk._functions import register, scalars
from pdrisk._mechanisms.contract import draws

LO, HI = 1.0, 7.0


@dataclass(frozen=True)
class Function:
    """A function of SQL, the method of the accessor that must agree, and the constant that both take."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        return self.method != "count"

    def call(self, x: str = "x", *, eps: str = "1", lo: str = f"{LO}", hi: str = f"{HI}", risk: bool = False) -> str:
        constants = [f"{name} := {value}" for name, value in self.options.items()] + [f"eps := {eps}"]
        if self.bounded:
            constants += [f"lo := {lo}", f"hi := {hi}"]
        columns = [] if self.name == "dp_count_star" else [x]
        return f"{self.name}{'_risk' * risk}({', '.join([*columns, *constants])})"

    def twin(self, frame: pd.DataFrame, eps: float = 1, bounds: tuple[float, float] = (LO, HI), **options: Any):
        """The answer of the accessor, by the mechanism of the function."""
        columns = [] if self.name == "dp_count_star" else ["x"]
        limits = {"bounds": bounds} if self.bounded else {}
        return getattr(frame.dprisk, self.method)(*columns, **self.options, eps=eps, **limits, **options)

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{value}" for value in self.options.values())])


PLAIN = [
    *(Function(f"dp_{method}", method) for method in ("count", "sum", "mean", "median", "min", "max", "var", "std")),
    Function("dp_count_star", "count"),
    Function("dp_avg", "mean"),
    Function("dp_quantile", "quantile", {"q": 0.9}),
]
FUNCTIONS = [
    *PLAIN,
    *(Function("dp_quantile", "quantile", {"q": q}) for q in (0.0, 0.1, 0.5, 1.0)),
    *(Function(name, name[3:], {"ddof": ddof}) for name in ("dp_var", "dp_std") for ddof in (0, 1)),
]
CHOSEN = [function for function in FUNCTIONS if function.method in ("median", "quantile", "min", "max")]
ADDED = [function for function in FUNCTIONS if function not in CHOSEN]  # whose noise is added to numbers
LAPLACE = [function for function in ADDED if function.method == "sum"]
SUMS = [function for function in FUNCTIONS if function.method in ("mean", "var", "std")]  # noise on several of them
MEAN, MEDIAN, SUM = (Function(f"dp_{name}", name) for name in ("mean", "median", "sum"))


def connection(*, curator: bool = True, **options: Any) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(**options)
    register(con, curator=curator)
    return con


def table(con: duckdb.DuckDBPyConnection, values: list[float | None], groups: list[int] | None = None) -> None:
    """A table t of x and g. None is NULL, and NaN stays NaN: a pandas frame would make it NULL."""
    keys = [0] * len(values) if groups is None else groups
    columns = {"g": pa.array(keys, type=pa.int64()), "x": pa.array(values, type=pa.float64())}
    con.register("t", pa.table(columns))


def frame(values: list[float | None], groups: list[int] | None = None) -> pd.DataFrame:
    keys = [0] * len(values) if groups is None else groups
    x = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    return pd.DataFrame({"g": pd.Series(keys, dtype="int64"), "x": x})


def rows(con: duckdb.DuckDBPyConnection, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return con.execute(sql, *parameters).fetchall()


def one(con: duckdb.DuckDBPyConnection, expression: str, *parameters: Any) -> Any:
    """The value of an expression over the whole table t."""
    ((value,),) = rows(con, f"SELECT {expression} FROM t", *parameters)
    return value


def refusal(con: duckdb.DuckDBPyConnection, sql: str, *parameters: Any) -> str:
    """What DuckDB says instead of an answer, without the stack that versions before 2 append."""
    try:
        answer = con.execute(sql, *parameters).fetchall()
    except duckdb.Error as error:
        return str(error).split("\n\nAt:\n")[0]
    raise AssertionError(f"answered: {answer}")


def count_draws(monkeypatch) -> list[int]:
    """A list that grows by the number of values at every draw."""
    drawn: list[int] = []
    once = scalars.drawn_once

    def counted(mechanism, summary):
        drawn.append(len(summary.n))
        return once(mechanism, summary)

    monkeypatch.setattr(scalars, "drawn_once", counted)
    return drawn


def without_noise(monkeypatch) -> None:
    """Answers on their lattice, and nothing added."""
    monkeypatch.setattr(draws, "discrete_laplace", lambda exact, change, eps: exact)
