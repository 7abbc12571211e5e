"""Random questions about random frames and their neighbours: what record and replay, and black boxes, are tried on."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pandas as pd

import pdrisk

Generator = np.random.Generator

BOUNDS: Final = ((0, 10), (-5, 5), (1, 675), (0, 1), (-1e6, 1e9), (2, 2.5))
EPS: Final = (0.1, 0.5, 1, 2)
GROUPS: Final = ["a", "b", "c"]  # of which "c" is rare; "d" is in no list of keys
DAYS: Final = pd.date_range("2020-01-01", periods=300, freq="D")
FLOATS: Final = ("float64", "Float64", "float32")
WHOLE: Final = ("int64", "Int64", "Int16", "int8")
DTYPES: Final = (*FLOATS, *WHOLE, "object", "boolean", "bool")
MANY: Final = 40_000  # rows of a large frame: more than are read at once
PAID: Final = 0.04  # of the questions, which a ledger pays for
LOOKING: Final = 0.1  # eps by which it is seen whether an answer is about enough people
POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"least_group": {"size": 5, "eps": LOOKING}},
    {"round_to": {"count": 5, "mean": 0.5}},
)
HARD: Final = 0.06  # of the questions, for which one record moves the answer as far as any can

# What a filter says to pandas, and to DuckDB.
FILTERS: Final = (
    ("y > 3", "y > 3"),
    ("x < 5 and y >= 2", "x < 5 AND y >= 2"),
    ("not (y == 3)", "NOT (y = 3)"),
    ("g == 'a'", "g = 'a'"),
    ("g in ['a', 'd'] or y < 0", "g IN ('a', 'd') OR y < 0"),
    ("day >= '2020-04-01'", "day >= DATE '2020-04-01'"),
    ("x * 2 + y < 8", "x * 2 + y < 8"),
    ("x.isna()", "x IS NULL"),
)
# Statistics of one column: accessor's method, its parameters, SQL, and the mechanisms beside the best one.
STATISTICS: Final[tuple[tuple[str, dict[str, Any], str, tuple[str, ...]], ...]] = (
    ("count", {}, "COUNT({x})", ("laplace",)),
    ("sum", {}, "SUM({x})", ("laplace", "bernstein", "two_sums")),
    ("mean", {}, "AVG({x})", ("laplace", "two_sums", "bernstein")),
    ("median", {}, "MEDIAN({x})", ("laplace",)),
    ("quantile", {"q": 0.9}, "QUANTILE_CONT({x}, 0.9)", ("laplace",)),
    ("min", {}, "MIN({x})", ("laplace",)),
    ("max", {"bounds_reached": True}, "", ("auto",)),
    ("max", {}, "MAX({x})", ("laplace",)),
    ("var", {}, "VAR_SAMP({x})", ("laplace",)),
    ("std", {"ddof": 0}, "STDDEV_POP({x})", ("laplace",)),
    ("nunique", {}, "COUNT(DISTINCT {x})", ("laplace",)),
)
SEVERAL: Final = (
    ["count", "mean", "var"],
    ["sum", "mean"],
    [("quantile", {"q": 0.25}), "median", ("quantile", {"q": 0.75})],
    ["mean", "median", "max"],
)
SQL_OF_SEVERAL: Final = (
    "COUNT({x}), AVG({x}), VAR_SAMP({x})",
    "SUM({x}), AVG({x})",
    "QUANTILE_CONT({x}, [0.25, 0.5, 0.75])",
    "AVG({x}), MEDIAN({x}), MAX({x})",
)


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """A question, two neighbouring frames or sets of tables by name, and the eps that is asked for.

    Attributes
    ----------
    words : str
        The question, for people.
    """

    words: str
    ask: Callable[[Any], Any]
    first: Any
    second: Any
    eps: float


def random_question(generator: Generator, front: str) -> AuditQuestion:
    """A random question about a random frame, and a neighbour with one record more in another order."""
    hard = generator.random() < HARD
    bounds = BOUNDS[generator.integers(len(BOUNDS))]
    # Of a column of Python objects DuckDB takes the type from the values: docs/threat-model.md.
    dtype = str(generator.choice([name for name in DTYPES if front == "accessor" or name != "object"]))
    dtype = str(generator.choice(["float64", "int64"])) if hard else dtype
    first, second = _neighbours(generator, bounds, dtype, hard=hard)
    eps = EPS[generator.integers(len(EPS))]
    ask, words = (
        _at_the_edge(generator, front, bounds, dtype, eps)
        if hard
        else (_accessor if front == "accessor" else _sql)(generator, bounds, dtype, eps)
    )
    total = float(eps)
    if front == "accessor" and generator.random() < PAID:
        policy = POLICIES[generator.integers(len(POLICIES))]
        ask, words = _paid(ask, policy), f"{words}, paid by a ledger with {policy}"
        total += LOOKING if "least_group" in policy else 0.0
    return AuditQuestion(f"{words}, x of {dtype}, {len(first)} rows", ask, first, second, total)


def _paid(ask: Callable[[pd.DataFrame], Any], policy: dict[str, Any]) -> Callable[[pd.DataFrame], Any]:
    """The answer, paid by a new ledger, and what is left in this ledger."""

    def paid(frame: pd.DataFrame) -> tuple[Any, object]:
        with TemporaryDirectory() as folder:
            # Closed before the folder goes: Windows removes no file that is open.
            path = Path(folder) / "audit.db"
            with closing(pdrisk.Ledger(path, dataset="audit", eps=10, policy=policy)) as ledger:
                with ledger:
                    answer = ask(frame)
                return answer, ledger.remaining().eps

    return paid


def _neighbours(
    generator: Generator, bounds: tuple[float, float], dtype: str, *, hard: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frames that differ by one record; hard ones differ by a record at the end of the bounds farther from 0."""
    size = int(
        generator.choice(
            [0, 1, 2, 5, 12, 40, MANY],
            p=[0.0, 0.1, 0.1, 0.2, 0.1, 0.1, 0.4] if hard else [0.05, 0.1, 0.1, 0.25, 0.25, 0.22, 0.03],
        )
    )
    rows = size + 1
    x, y = _values(generator, bounds, dtype, rows), _values(generator, (0, 6), "float64", rows)
    g = generator.choice(np.array([*GROUPS, "d", None], dtype=object), rows, p=[0.4, 0.3, 0.05, 0.15, 0.1])
    h = generator.integers(0, 3, rows)
    day = DAYS[generator.integers(0, len(DAYS), rows)]
    if generator.random() < 0.3:  # many alike: ties
        x[:] = x[0]
    columns: dict[str, Any] = {
        "x": pd.Series(list(x), dtype="object" if dtype == "object" else dtype),
        "y": pd.Series(y, dtype="float64"),
        "g": pd.Series(g, dtype=object if generator.random() < 0.7 else pd.CategoricalDtype([*GROUPS, "d"])),
        "h": pd.Series(h),
        "day": pd.Series(day).where(generator.random(rows) > 0.1),
    }
    frame = pd.DataFrame(columns)
    index: list[Any] = [pd.RangeIndex(rows), pd.Index(generator.permutation(rows)), pd.Index(np.zeros(rows, dtype=int))]
    frame.index = index[generator.integers(3)]
    person = int(generator.integers(rows))
    if hard:
        end = max(bounds, key=abs)
        frame.iloc[person, 0] = math.trunc(end) if dtype in WHOLE else end
    return _without(frame, person), shuffled(generator, frame)


def _without(frame: pd.DataFrame, person: int) -> pd.DataFrame:
    return frame.iloc[np.delete(np.arange(len(frame)), person)]


def shuffled(generator: Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows, half of the time in another order."""
    return frame.iloc[generator.permutation(len(frame))] if generator.random() < 0.5 else frame


def _values(generator: Generator, bounds: tuple[float, float], dtype: str, rows: int) -> Any:
    """Numbers within the bounds, at them, near and far outside, and missing, as far as the dtype can hold them."""
    lo, hi = bounds
    if dtype in ("bool", "boolean"):
        values = generator.integers(0, 2, rows).astype(bool).astype(object)
    elif dtype in WHOLE:
        edges = {"int8": 127, "Int16": 2**15 - 1}.get(dtype, 2**62)
        some = np.array([math.ceil(lo), math.floor(hi), 0, 1, -1, 7, edges, -edges, math.floor(hi) + 1])
        values = np.clip(some, -edges, edges)[generator.integers(0, len(some), rows)].astype(object)
    else:
        inside = generator.uniform(lo, hi, rows)
        special = np.array([lo, hi, -0.0, np.inf, -np.inf, lo - 1, hi + 1, 1e30, (lo + hi) / 2, 5e-324, np.nan])
        values = np.where(generator.random(rows) < 0.5, inside, special[generator.integers(0, len(special), rows)])
        values = np.where(generator.random(rows) < 0.2, np.round(inside), values).astype(object)
    if dtype in ("Int64", "Int16", "boolean", "Float64", "object"):
        values[generator.random(rows) < 0.15] = None
    return values


def _at_the_edge(
    generator: Generator, front: str, bounds: tuple[float, float], dtype: str, eps: float
) -> tuple[Callable[[pd.DataFrame], Any], str]:
    """Sums of all records, in which one at the end of the bounds counts in full."""
    options: dict[str, Any] = {"eps": eps, "bounds": bounds}
    if front == "sql":
        return lambda frame: pdrisk.sql("SELECT SUM(x) FROM t", t=frame, **options), f"SUM(x) {options}"
    if dtype in WHOLE and generator.random() < 0.7:
        options |= {"step": 1, "bounds": (math.ceil(bounds[0]), math.floor(bounds[1]))}
    return lambda frame: frame.dprisk.sum("x", **options), f"sum {options}"


def _accessor(
    generator: Generator, bounds: tuple[float, float], dtype: str, eps: float
) -> tuple[Callable[[pd.DataFrame], Any], str]:
    options: dict[str, Any] = {"eps": eps}
    if generator.random() < 0.5:
        options["where"] = FILTERS[generator.integers(len(FILTERS))][0]
    if generator.random() < 0.4:
        options |= {"by": "g", "keys": GROUPS}
        if generator.random() < 0.3:
            options |= {"by": ["g", "h"], "keys": [(g, h) for g in GROUPS for h in (0, 1)]}
    ranged = options if dtype in ("bool", "boolean") else options | {"bounds": bounds}
    kind = generator.random()
    if kind < 0.2:
        wanted = SEVERAL[generator.integers(len(SEVERAL))]
        return lambda frame: frame.dprisk.agg({"x": wanted}, **ranged), f"agg {wanted} {ranged}"
    if kind < 0.3:
        pair = options | {"bounds": {"x": bounds, "y": (0, 6)}}
        name = ("corr", "cov", "slope")[generator.integers(3)]
        return lambda frame: getattr(frame.dprisk, name)(y="x", x="y", **pair), f"{name} {pair}"
    if kind < 0.4:
        plain = {name: value for name, value in options.items() if name in ("eps", "where")}
        if generator.random() < 0.5:
            return lambda frame: frame.dprisk.value_counts("g", keys=GROUPS, **plain), f"value_counts {plain}"
        edges = [bounds[0], sum(bounds) / 2, bounds[1]]
        return lambda frame: frame.dprisk.hist("y", edges, **plain), f"hist {edges} {plain}"
    if kind < 0.45:
        condition = FILTERS[generator.integers(len(FILTERS))][0]
        return lambda frame: frame.dprisk.proportion(condition, **options), f"proportion {condition!r} {options}"
    name, parameters, _, others = STATISTICS[generator.integers(len(STATISTICS))]
    arguments = dict(options if name in ("count", "nunique") else ranged)
    if generator.random() < 0.4:
        arguments["mechanism"] = others[generator.integers(len(others))]
    elif name in ("median", "quantile", "min", "sum") and dtype in WHOLE and generator.random() < 0.5:
        arguments["step"] = 1
    elif name in ("median", "quantile", "min", "max") and generator.random() < 0.3:
        arguments["interval"] = True
    elif name == "mean" and generator.random() < 0.2:
        arguments |= {"mechanism": "two_stage", "n_at_least": 1000}
    elif name in ("mean", "sum") and "step" not in arguments and generator.random() < 0.2:
        arguments["clip"] = "private"
    return lambda frame: getattr(frame.dprisk, name)("x", **parameters, **arguments), f"{name} {parameters} {arguments}"


def _sql(
    generator: Generator, bounds: tuple[float, float], dtype: str, eps: float
) -> tuple[Callable[[pd.DataFrame], Any], str]:
    if generator.random() < 0.3:
        selected = SQL_OF_SEVERAL[generator.integers(len(SQL_OF_SEVERAL))]
    elif generator.random() < 0.15:
        selected = ("CORR(x, y)", "COVAR_POP(x, y)", "COUNT(*)")[generator.integers(3)]
    else:
        selected = ""
        while not selected:
            selected = STATISTICS[generator.integers(len(STATISTICS))][2]
    written = f"SELECT {selected.format(x='x' if dtype not in ('bool', 'boolean') else 'CAST(x AS INTEGER)')} FROM t"
    if generator.random() < 0.5:
        written += f" WHERE {FILTERS[generator.integers(len(FILTERS))][1]}"
    options: dict[str, Any] = {"eps": eps, "bounds": {"x": bounds, "y": (0, 6)}}
    if generator.random() < 0.4:
        written = written.replace("SELECT ", "SELECT g, ") + " GROUP BY g"
        options["keys"] = {"g": GROUPS}
    if generator.random() < 0.3 and "CO" not in selected.replace("COUNT", ""):
        options["mechanism"] = "laplace"
    if generator.random() < 0.3:
        options["risk_columns"] = True
    return lambda frame: pdrisk.sql(written, t=frame, **options), f"{written} {options}"
