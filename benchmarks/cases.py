"""What is measured: each case is a call of pdrisk (or of a peer), the plain call it is compared with, and a target."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pandas as pd

import pdrisk  # noqa: F401 - gives frames their accessor
from pdrisk._mechanisms.noise.exact_laplace import plus_discrete_laplace
from pdrisk._mechanisms.noise.reference import opendp_measurement

FULL = 10_000_000  # rows the targets speak of
LO, HI = 1.0, 675.0
EPS = 5.0
NOTHING_ELSE = "import pandas"
WITH_PDRISK = "import pandas, pdrisk"
Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    ``limit`` bounds the ratio, or the time of a call in ms, or the ms a call takes more than the plain one.
    """

    name: str
    ours: Call
    plain: Call | None = None
    plain_name: str = ""
    limit: float | None = None
    limits: Literal["ratio", "ms", "added ms"] = "ratio"
    target: str = ""  # how to say the limit, where its number alone would not do
    at_full_size: bool = True  # the target holds for FULL rows, and is not judged on fewer
    column: int = 0  # bytes of the column, for the memory it takes; 0: not measured
    memory_limit: float | None = None  # in columns
    number: int = 1  # calls in one timing


@dataclass(frozen=True)
class Skipped:
    """A peer that could not be measured, and why."""

    name: str
    why: str


def all_cases(rows: int) -> Iterator[Case | Skipped]:
    """Every case in the order of the table. The data of a section are made when it is reached, and dropped after."""
    yield from whole_columns(rows)
    yield from several_at_once(rows)
    yield from peers(rows)
    yield from groups(rows)
    yield from many_groups(rows)
    yield from noise()
    yield from small_calls()
    yield importing()


# --- Data -------------------------------------------------------------------------------------------------------
def distances(rows: int) -> np.ndarray:
    """Kilometres to work, unheaped; some lie below and a few above the bounds."""
    return np.random.default_rng(1).exponential(60.0, rows)


def heaped(values: np.ndarray) -> np.ndarray:
    """As people answer: whole kilometres, four of five beyond ten rounded to fives."""
    rounds = (np.random.default_rng(2).random(len(values)) < 0.8) & (values > 10)
    return np.where(rounds, 5 * np.rint(values / 5), np.rint(values))


def with_missing(values: np.ndarray) -> np.ndarray:
    """5 % NaN."""
    return np.where(np.random.default_rng(3).random(len(values)) < 0.05, np.nan, values)


def group_numbers(rows: int, count: int) -> np.ndarray:
    """The group of each row, all groups about equally large."""
    return np.random.default_rng(4).integers(0, count, rows)


# --- Sections ---------------------------------------------------------------------------------------------------
def whole_columns(rows: int) -> Iterator[Case]:
    """One answer from one column."""
    x = distances(rows)
    frame = pd.DataFrame({"x": x, "heaped": heaped(x), "missing": with_missing(x)})
    x = frame["x"].to_numpy()
    column = x.nbytes
    bounds = LO, HI

    def ours(statistic: str, name: str) -> Call:
        return lambda: getattr(frame.dprisk, statistic)(name, eps=EPS, bounds=bounds)

    def clip_mean() -> float:
        return np.clip(x, LO, HI).mean()

    clipped = "numpy.clip(x).mean()"
    yield Case("mean", ours("mean", "x"), clip_mean, clipped, 0.8, column=column, memory_limit=2)
    yield Case("mean, 5 % NaN", ours("mean", "missing"), clip_mean, f"{clipped}, no NaN", 2.2, column=column)
    yield Case(
        "mean", ours("mean", "x"), lambda: frame["x"].clip(LO, HI).mean(), "Series.clip().mean()", 1, target="< 1"
    )
    for name, label in (("x", "median"), ("heaped", "median, heaped")):
        yield Case(
            label, ours("median", name), frame[name].median, "Series.median()", 0.7,
            column=column, memory_limit=2,
        )  # fmt: skip
    yield Case("max", ours("max", "x"), frame["x"].max, "Series.max()", column=column, memory_limit=2)
    yield Case(
        "var", ours("var", "x"), lambda: frame["x"].clip(LO, HI).var(), "Series.clip().var()", 2,
        column=column, memory_limit=2,
    )  # fmt: skip
    yield Case(
        "individual_risk of the mean", lambda: frame.dprisk.individual_risk("x", "mean", eps=EPS, bounds=bounds),
        clip_mean, clipped, 100, "ms", column=column, memory_limit=2,
    )  # fmt: skip


def several_at_once(rows: int) -> Iterator[Case]:
    """Two columns together, several quantiles, and means whose bounds are found first."""
    x = distances(rows)
    frame = pd.DataFrame({"x": x, "y": x / 2 + distances(rows)[::-1]})
    bounds = {"x": (LO, HI), "y": (LO, HI)}
    clipped, deciles = frame.clip(LO, HI), [i / 10 for i in range(1, 10)]
    for name in ("corr", "cov"):
        yield Case(
            f"{name} of two columns", lambda name=name: getattr(frame.dprisk, name)("x", "y", eps=EPS, bounds=bounds),
            lambda name=name: getattr(clipped["x"], name)(clipped["y"]), f"Series.{name}(), clipped before",
        )  # fmt: skip
    for name, eps in (("nine quantiles", EPS), ("nine quantiles, eps = 1", 1)):
        yield Case(
            name, lambda eps=eps: frame.dprisk.quantile("x", deciles, eps=eps, bounds=(LO, HI)),
            lambda: frame["x"].quantile(deciles), "Series.quantile([...])",
        )  # fmt: skip
    yield Case(
        'mean, clip="private"', lambda: frame.dprisk.mean("x", eps=EPS, bounds=(0, 1e6), clip="private"),
        frame["x"].mean, "Series.mean()",
    )  # fmt: skip


def peers(rows: int) -> Iterator[Case | Skipped]:
    """The mean by other libraries, on the same column."""
    x = distances(rows)

    def clip_mean() -> float:
        return np.clip(x, LO, HI).mean()

    for label, prepared in (("diffprivlib tools.mean", diffprivlib_mean), ("OpenDP mean, size known", opendp_mean)):
        call = prepared(x)
        yield Case(label, call, clip_mean, "numpy.clip(x).mean()") if callable(call) else Skipped(label, call)


def diffprivlib_mean(x: np.ndarray) -> Call | str:
    """``tools.mean``, or why there is none."""
    tools = imported("diffprivlib.tools")
    if isinstance(tools, str):
        return tools
    return lambda: tools.mean(x, epsilon=EPS, bounds=(LO, HI))


def opendp_mean(x: np.ndarray) -> Call | str:
    """The chain its manual gives for a mean of known size; made beforehand, so that only its data pass is timed."""
    dp = imported("opendp.prelude")
    if isinstance(dp, str):
        return dp
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(x)), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp((LO, HI)) >> dp.t.then_mean()
    # One changed record is a symmetric distance of 2.
    measurement = dp.binary_search_chain(lambda scale: clamped >> dp.m.then_laplace(scale), d_in=2, d_out=EPS)
    return lambda: measurement(x)


def imported(name: str) -> ModuleType | str:
    """A module of a peer, or in words why there is none."""
    package = name.split(".")[0]
    try:
        return import_module(name)
    except ImportError as error:
        try:
            found = version(package)
        except PackageNotFoundError:
            return "not installed"
        reason = str(error).split(" (")[0]  # without the path of the file
        return f"version {found} does not import with scikit-learn {installed('scikit-learn')}: {reason}"


def installed(package: str) -> str:
    """Its version, or a dash."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def groups(rows: int) -> Iterator[Case]:
    """1e3 groups, with keys of each kind."""
    count = 1000
    x, numbers = distances(rows), group_numbers(rows, count)
    labels = np.array([f"district {number:04}" for number in range(count)], dtype=object)
    # pandas 2 has no "str" dtype of its own; "string" is the nearest to it.
    text = "str" if int(pd.__version__.split(".")[0]) >= 3 else "string"
    kinds: tuple[tuple[str, Callable[[], Any], list[Any], float], ...] = (
        ("integer keys", lambda: numbers, list(range(count)), 0.7),
        ("categorical keys", lambda: pd.Categorical.from_codes(numbers, categories=labels), list(labels), 1.5),
        ("text keys", lambda: pd.Series(labels[numbers], dtype=text), list(labels), 2),
        ("text keys as objects", lambda: pd.Series(labels[numbers], dtype=object), list(labels), 2),
    )
    for kind, made, keys, limit in kinds:
        frame = pd.DataFrame({"x": x, "k": made()})
        yield grouped("mean", f"mean by 1e3 groups, {kind}", frame, keys, limit, memory_limit=2)
        if kind == "integer keys":
            yield grouped("median", "median by 1e3 groups, integer keys", frame, keys, 2, memory_limit=2)
            yield grouped("var", "var by 1e3 groups, integer keys", frame, keys, None, memory_limit=2)


def grouped(
    statistic: str,
    name: str,
    frame: pd.DataFrame,
    keys: list[Any],
    limit: float | None,
    *,
    memory_limit: float | None = None,
) -> Case:
    """A statistic by ``k``, noise included, against pandas' own."""
    return Case(
        name,
        lambda: getattr(frame.dprisk, statistic)("x", eps=EPS, bounds=(LO, HI), by="k", keys=keys),
        lambda: getattr(frame.groupby("k", observed=True)["x"], statistic)(),
        f"groupby.{statistic}()", limit, column=frame["x"].nbytes, memory_limit=memory_limit,
    )  # fmt: skip


def many_groups(rows: int) -> Iterator[Case]:
    """1e5 and 1e6 groups, and the noise on its own."""
    for name, count, limit in (("1e5", 100_000, 1), ("1e6", 1_000_000, 1.5)):
        frame = pd.DataFrame({"x": distances(rows), "k": group_numbers(rows, count)})
        yield grouped("mean", f"mean by {name} groups", frame, list(range(count)), limit)
        if count <= 100_000:
            yield grouped("median", f"median by {name} groups", frame, list(range(count)), 2)


def noise() -> Iterator[Case]:
    """Draws of the exact sampler against OpenDP's."""
    scale = Fraction(2**30)
    opendp = opendp_measurement(1, 1 / scale)
    for size in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        exact, listed = np.zeros(size, dtype=np.int64), [0] * size
        large = size >= 100_000
        yield Case(
            f"noise of {size:,} numbers", lambda exact=exact: plus_discrete_laplace(exact, scale),
            None if size > 100_000 else lambda listed=listed: np.array(opendp(listed)), "OpenDP" * (size <= 100_000),
            size / 1000 if large else None, "ms", "<= 1 µs a number" if large else "", at_full_size=False,
            number=max(1, 1000 // size),
        )  # fmt: skip


def small_calls() -> Iterator[Case]:
    """1e3 rows, where what a call costs on any data is all there is."""
    rows = 1000
    x = distances(rows)
    frame = pd.DataFrame({"x": x})
    rest = {"at_full_size": False, "number": 50}
    mean = frame["x"].clip(LO, HI).mean
    yield Case("count, 1e3 rows", lambda: frame.dprisk.count(eps=EPS), mean, "Series.mean()", 10, **rest)
    for statistic, limit in (("mean", 20), ("median", 20), ("var", None)):
        yield Case(
            f"{statistic}, 1e3 rows",
            lambda statistic=statistic: getattr(frame.dprisk, statistic)("x", eps=EPS, bounds=(LO, HI)),
            getattr(frame["x"].clip(LO, HI), statistic), f"Series.{statistic}()", limit, **rest,
        )  # fmt: skip
    table = np.random.default_rng(5).random((rows, 199))
    wide = pd.DataFrame(table, columns=[f"c{i}" for i in range(table.shape[1])])
    wide["region"] = np.array(["a", "b", "c"], dtype=object)[group_numbers(rows, 3)]
    where = "c2 > 0.5 and region == 'a'"
    yield Case(
        "mean, 1e3 rows of 200 columns, where", lambda: wide.dprisk.mean("c1", eps=EPS, bounds=(0, 1), where=where),
        lambda: wide.query(where)["c1"].mean(), "df.query()[c].mean()", 1.5, "ms", **rest,
    )  # fmt: skip


def importing() -> Case:
    """What ``import pdrisk`` adds for someone who imports pandas anyway."""

    def fresh(line: str) -> Call:
        return lambda: subprocess.run([sys.executable, "-c", line], check=True)

    return Case(
        "import pandas, pdrisk", fresh(WITH_PDRISK), fresh(NOTHING_ELSE), NOTHING_ELSE, 250, "added ms",
        target="<= 250 ms more", at_full_size=False,
    )  # fmt: skip
