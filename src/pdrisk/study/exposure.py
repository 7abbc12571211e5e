"""Exposure: which answers, groups and columns of the user's own data expose somebody most."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._core.risks.risk import most_exposed_first, privacy_loss
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs
from pdrisk._digits import rounded_down
from pdrisk._mechanisms.laplace import half_width
from pdrisk._model.arguments import checked_mechanism, of_numbers
from pdrisk._model.arguments import statistics as judged_statistics
from pdrisk._model.columns import check_column
from pdrisk._model.declared.aliases import Bounds, By, Eps, Keys
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._pandas.curators.assess import assessment
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.study import assess_report
from pdrisk.study.plan import SOURCES, Variable, eps_list, usable, variables
from pdrisk.study.sampling import sampling95

__all__ = ["AUTO", "RISKS", "Exposure", "exposure"]

AUTO = "auto"  # the mechanism of answers that name none
STATISTICS = ("mean", "median", "min", "max", "var")
PLAIN = ("count", "sum")  # one person moves them by their global sensitivity in any data: nothing to rank
RISKS = (0.55, 0.6, 0.75)  # worst-case risks that the recommendation looks at


@dataclass(frozen=True, repr=False)
class Exposure:
    """What answers about a frame would mean for the people in it. Curator only: nothing here has noise.

    Attributes
    ----------
    answers : DataFrame
        As ``df.dprisk.assess`` gives it, the most exposed first, with ``exposure``, LS / GS (of Laplace noise, the
        share of eps that the most exposed person bears), and ``laplace95``, the noise of the paper's mechanism.
    groups : DataFrame or None
        The same for each group of ``by``; groups that hold nobody are last.
    columns : DataFrame
        For each column its bounds ``lo`` and ``hi``, who declared them, the number of values, and its most exposed
        answer.
    recommendation : DataFrame
        For each answer the largest eps of four digits at which the worst-case risk is at most each of `RISKS`, and the
        noise that comes with it in these data: ``noise95``, in the unit of the answer, and as a ``share`` of the exact
        answer, NaN where that is 0. ``laplace95`` is the noise of the paper's mechanism, the same in any data.
        ``sampling95`` is the half-width of the 95 % sampling interval, to compare with: NaN where the
        values alone tell none.
    left_out : dict from column to str
        Columns that cannot be assessed, or seem to be ids or weights, and why.
    rows : int
        Of the frame, each of which is taken for a person.
    mechanism : str
        Whose noise and risks these are.
    units : dict from column to str
        For the numbers of the report.
    """

    answers: pd.DataFrame
    groups: pd.DataFrame | None
    columns: pd.DataFrame
    recommendation: pd.DataFrame
    left_out: Mapping[Hashable, str]
    rows: int
    mechanism: str = AUTO
    units: Mapping[Hashable, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return assess_report.text("this frame", self)

    def _repr_html_(self) -> str:
        return assess_report.part("this frame", self)


@own_errors
def exposure(
    frame: pd.DataFrame,
    columns: Any = None,
    statistics: Any = STATISTICS,
    eps: Eps | Sequence[Eps] = (0.1, 1.0),
    *,
    bounds: Bounds | None = None,
    by: By | None = None,
    keys: Keys | None = None,
    mechanism: str = AUTO,
) -> Exposure:
    """Curator only: exposure report, what every possible answer about these columns would mean for the people in them.

    Parameters
    ----------
    frame : DataFrame
    columns : column or list of columns, optional
        By default all columns that can be assessed.
    statistics : name, pair or list of these
        Statistics to rank by exposure. The recommendation also considers counts and sums, which expose everybody alike.
    eps : float or list of float
        Privacy losses, in nats.
    bounds : (lo, hi), "column", or dict from column to these, optional
        Columns without declared bounds get the range of the data, as in the SOEP paper: good for looking, not for a
        release.
    by, keys
        As for every statistic; without declared keys those that occur.
    mechanism : str
        Mechanism whose noise and risks are shown, by default that of answers; ``"laplace"`` as in the SOEP paper.

    Raises
    ------
    ParameterError
        If columns that you named cannot be assessed; the text names all of them, each with its reason.
    """
    specs, losses = tuple(of_numbers(each) for each in judged_statistics(statistics)), eps_list(eps)
    mechanism = checked_mechanism(mechanism)
    groups_by = [] if by is None else by if isinstance(by, list) else [by]
    for column in groups_by:
        check_column(frame, column)
    left_out: dict[Hashable, str] = {}
    if columns is None:
        columns, left_out = usable(frame, bounds, groups_by)
    chosen = {one.column: one for one in variables(frame, columns, bounds, None)}
    answers = _ranked(_assessed(frame, chosen, specs, losses, mechanism, None, None))
    groups = None
    if by is not None:
        groups = _ranked(_assessed(frame, chosen, specs, losses, mechanism, by, _keys(frame, groups_by, keys)))
    plain = tuple(statistic for statistic in judged_statistics(list(PLAIN)) if statistic not in specs)
    recommended = _recommended(chosen, (*plain, *specs), mechanism)
    return Exposure(answers, groups, _columns(frame, answers, chosen), recommended, left_out, len(frame), mechanism)


def _keys(frame: pd.DataFrame, by: list[Hashable], keys: Any) -> Any:
    if keys is not None:
        return keys
    return None if all(declared(frame, column).keys is not None for column in by) else "observed"


def _assessed(
    frame: pd.DataFrame,
    chosen: Mapping[Hashable, Variable],
    specs: Sequence[Statistic],
    eps: Any,
    mechanism: str,
    by: Any,
    keys: Any,
) -> pd.DataFrame:
    bounds = {column: (one.universe.lo, one.universe.hi) for column, one in chosen.items()}
    asked = Request(eps=list(eps), bounds=bounds, by=by, keys=keys, mechanism=mechanism)
    table = assessment(frame, list(chosen), list(specs), asked)
    return table.assign(laplace95=half_width(table["global_sensitivity"].to_numpy() / table["eps"].to_numpy()))


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """The most exposed answers first, those of one answer together, from its largest eps down."""
    table = table.assign(exposure=table["local_sensitivity"] / table["global_sensitivity"])
    several = table["eps"].nunique()
    at_largest = table.iloc[several - 1 :: several]  # eps are the innermost, ascending
    names = ("n", "exposure", "many_worlds", "identifiability")
    order = most_exposed_first(*(at_largest[name].to_numpy() for name in names))
    ranked = table.iloc[((order[:, np.newaxis] + 1) * several - 1 - np.arange(several)).ravel()]
    ranked = ranked.reset_index(drop=True)
    return mark_exact(ranked)


def _columns(frame: pd.DataFrame, answers: pd.DataFrame, chosen: Mapping[Hashable, Variable]) -> pd.DataFrame:
    first = answers.drop_duplicates("column").set_index("column")
    sources = {
        column: str(declared(frame, column).bounds_from) if one.bounds_from == "declared" else SOURCES[one.bounds_from]
        for column, one in chosen.items()
    }
    table = pd.DataFrame(
        {
            "lo": pd.Series({column: one.universe.lo for column, one in chosen.items()}),
            "hi": pd.Series({column: one.universe.hi for column, one in chosen.items()}),
            "bounds": pd.Series(sources, dtype=object),
            "values": first["n"],
            "most_exposed": first["statistic"],
            "exposure": first["exposure"],
        }
    ).sort_values("exposure", ascending=False, kind="stable")
    table.index.name = "column"
    return mark_exact(table)


def _recommended(chosen: Mapping[Hashable, Variable], specs: Sequence[Statistic], mechanism: str) -> pd.DataFrame:
    """Table of the noise that an eps buys."""
    losses = [float(rounded_down(float(privacy_loss(risk, 0.5)))) for risk in RISKS]
    rows = []
    for column, one in chosen.items():
        noises = _noise(one, specs, losses, mechanism)
        needs = reduce(or_, (statistic.needs for statistic in specs), Needs())
        summary = summary_of_one(one.values, one.universe, needs)
        for statistic, own in zip(specs, noises, strict=True):
            exact = abs(float(statistic.value(summary, one.universe)[0]))
            sampling = sampling95(statistic, one.values)
            for risk, eps, noise in zip(RISKS, losses, own.tolist(), strict=True):
                paper = float(half_width(statistic.global_sensitivity(one.universe) / eps))
                share = noise / exact if exact else np.nan
                rows.append((column, statistic.label, risk, eps, noise, share, paper, sampling))
    names = ["column", "statistic", "worst_case", "eps", "noise95", "share", "laplace95", "sampling95"]
    table = pd.DataFrame(rows, columns=names)
    return mark_exact(table)


def _noise(one: Variable, specs: Sequence[Statistic], losses: list[float], mechanism: str) -> FloatArray:
    """The 95 % noise of a mechanism: a row for each statistic, a column for each eps."""
    asked = Request(eps=losses, bounds=(one.universe.lo, one.universe.hi), mechanism=mechanism)
    table = assessment(pd.DataFrame({"values": one.values}), "values", list(specs), asked)
    return table["noise95"].to_numpy(dtype=float).reshape(len(specs), len(losses))
