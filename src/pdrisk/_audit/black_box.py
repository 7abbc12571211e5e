"""Black-box tests: the privacy loss that answers show of themselves, of every statistic and mechanism."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._audit.findings import Check
from pdrisk._core.summary import FloatArray
from pdrisk.attack._black_box import bound_of_answers

EPS: Final = 2.0  # at which events are frequent enough to be counted, and rare enough to tell
LEVEL: Final = 1 - 1e-10
LO: Final = 0.0
HI: Final = 10.0
Pair = tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class Question:
    """A statistic as both front ends ask it, and neighbours whose answers it tells apart."""

    method: str  # of the accessor; ``"agg"`` for several
    given: dict[str, Any]  # its arguments beside the column
    sql: str  # "" where SQL has no word for it
    worlds: tuple[Pair, ...]  # neighbours; in a second column everybody has what is missing to the upper bound

    @property
    def name(self) -> str:
        """Statistic and mechanism."""
        options = {name: value for name, value in self.given.items() if name != "request"}
        arguments = ", ".join(f"{name}={value}" for name, value in options.items())
        wanted = self.given.get("request")
        return f"{self.method}({arguments})" if wanted is None else f"agg {wanted['x']}"


ALONE: Final[Pair] = ([], [HI])
LOW: Final[Pair] = ([], [LO])
BESIDE: Final[Pair] = ([LO], [LO, HI])
PLENTY: Final[Pair] = ([LO] * 6 + [HI] * 6, [LO] * 6 + [HI] * 7)
SPREAD: Final[Pair] = ([1.0, 2.0, 6.0, 9.0], [1.0, 2.0, 6.0, 9.0, HI])
QUARTILES: Final = [("quantile", {"q": q}) for q in (0.25, 0.5, 0.75)]
QUESTIONS: Final = (
    Question("count", {}, "COUNT(x)", (ALONE, SPREAD)),
    Question("count", {"mechanism": "laplace"}, "COUNT(x)", (SPREAD,)),
    Question("nunique", {}, "COUNT(DISTINCT x)", (SPREAD,)),
    Question("sum", {}, "SUM(x)", (ALONE, SPREAD)),
    Question("sum", {"step": 1}, "", (ALONE,)),
    Question("mean", {}, "AVG(x)", (ALONE, LOW, SPREAD)),
    Question("mean", {"mechanism": "laplace"}, "AVG(x)", (ALONE, LOW, BESIDE)),
    Question("mean", {"mechanism": "bernstein"}, "", (SPREAD,)),
    Question("mean", {"mechanism": "two_stage", "n_at_least": 1000}, "", (SPREAD,)),
    Question("var", {}, "VAR_SAMP(x)", (BESIDE, SPREAD)),
    Question("var", {"mechanism": "laplace", "ddof": 1}, "VAR_SAMP(x)", (BESIDE, ALONE)),
    Question("std", {}, "STDDEV_SAMP(x)", (BESIDE,)),
    Question("std", {"mechanism": "laplace", "ddof": 0}, "STDDEV_POP(x)", (BESIDE,)),
    Question("median", {}, "MEDIAN(x)", (ALONE, SPREAD)),
    Question("median", {"mechanism": "laplace"}, "MEDIAN(x)", (ALONE, ([HI], [LO, HI]))),
    Question("median", {"interval": True}, "", (PLENTY,)),
    Question("quantile", {"q": 0.9}, "QUANTILE_CONT(x, 0.9)", (SPREAD,)),
    Question("quantile", {"q": 0.9, "mechanism": "laplace"}, "QUANTILE_CONT(x, 0.9)", (BESIDE,)),
    Question("min", {}, "MIN(x)", (SPREAD,)),
    Question("min", {"mechanism": "laplace"}, "MIN(x)", (LOW,)),
    Question("max", {}, "MAX(x)", (SPREAD,)),
    Question("max", {"bounds_reached": True}, "", (SPREAD,)),
    Question("max", {"mechanism": "laplace"}, "MAX(x)", (ALONE, BESIDE)),
    Question("agg", {"request": {"x": ["count", "mean", "var"]}}, "COUNT(x), AVG(x), VAR_SAMP(x)", (SPREAD,)),
    Question("agg", {"request": {"x": ["sum", "mean"]}}, "SUM(x), AVG(x)", (ALONE,)),
    Question("agg", {"request": {"x": ["mean", "median"]}}, "AVG(x), MEDIAN(x)", (ALONE,)),
    Question("agg", {"request": {"x": QUARTILES}}, "QUANTILE_CONT(x, [0.25, 0.5, 0.75])", (SPREAD,)),
    Question("corr", {}, "CORR(x, y)", (([LO, HI] * 2, [LO, HI] * 2 + [HI]),)),
    Question("cov", {}, "COVAR_SAMP(x, y)", (SPREAD,)),
    Question("slope", {}, "REGR_SLOPE(x, y)", (SPREAD,)),
)


def black_box_checks(draws: int) -> Iterator[Callable[[], Check]]:
    """The black-box checks, each to be run with so many answers about each of two neighbours."""
    for question in QUESTIONS:
        for front in ("accessor", "sql"):
            if front == "accessor" or question.sql:
                yield lambda question=question, front=front: _checked(question, front, draws)  # type: ignore[misc]


def _checked(question: Question, front: str, draws: int) -> Check:
    """The loss seen is at most eps for all pairs of neighbours."""
    worst, problem = 0.0, ""
    for pair in question.worlds:
        first, second = (_answers(question, front, world, draws) for world in pair)
        bound = bound_of_answers(first, second, claimed=EPS, level=LEVEL)
        worst = max(worst, bound.low)
        if bound.verdict == "broken":
            sizes = " and ".join(str(len(world)) for world in pair)
            problem = f"a loss of {bound.low:.3f} between neighbours of {sizes} records, where eps is {EPS:g}"
    tests = 2 * draws * len(question.worlds)
    return Check("black box", f"{front}: {question.name}", not problem, EPS, worst, tests, problem)


def _answers(question: Question, front: str, world: list[float], draws: int) -> FloatArray:
    """Independent answers about copies of a world, one for each group, with the ends of their intervals."""
    groups = np.repeat(np.arange(draws), len(world))
    values = np.tile(np.asarray(world, dtype=np.float64), draws)
    frame = pd.DataFrame({"g": groups, "x": values, "y": HI - values})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdrisk.NoisyReleaseWarning)
        table = _asked(question, front, frame, draws)
    numbers = table.select_dtypes("number")
    shown = numbers.drop(columns=[name for name in numbers if str(name).endswith(("eps", "worst_case", "release"))])
    rows = shown.to_numpy(dtype=np.float64)
    return rows.reshape(draws, -1) if len(rows) != draws * len(_wanted(question)) else _by_group(rows, draws)


def _wanted(question: Question) -> list[Any]:
    request = question.given.get("request", {"x": [None]})
    return list(request["x"])


def _by_group(rows: FloatArray, draws: int) -> FloatArray:
    """Rows that list the statistics of a group, from rows that list one statistic for all groups."""
    many = len(rows) // draws
    return rows.reshape(many, draws, -1).transpose(1, 0, 2).reshape(draws, -1)


def _asked(question: Question, front: str, frame: pd.DataFrame, draws: int) -> Any:
    bounds = {"x": (LO, HI), "y": (LO, HI)}
    if front == "sql":
        written = f"SELECT g, {question.sql} FROM t GROUP BY g ORDER BY g"
        mechanism = question.given.get("mechanism", "auto")
        table = pdrisk.sql(
            written, eps=EPS, bounds=bounds, keys={"g": range(draws)}, t=frame, mechanism=mechanism, risk_columns=True
        )
        return table.drop(columns="g")
    given = dict(question.given)
    if question.method == "agg":
        named: tuple[Any, ...] = (given.pop("request"),)
        given["bounds"] = (LO, HI)
    elif question.method in ("corr", "cov", "slope"):
        named = ()
        given |= {"x": "x", "y": "y", "bounds": bounds} | ({"y": "x", "x": "y"} if question.method == "slope" else {})
    else:
        named = ("x",)
        if question.method not in ("count", "nunique"):
            given["bounds"] = (LO, HI)
    accessor: Any = frame.dprisk
    return getattr(accessor, question.method)(*named, eps=EPS, by="g", keys=range(draws), **given)
