"""Numbers in the figures of a study, once for the figures and their twins in text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.risks.risk import METRICS, check_metric
from pdrisk._core.surveys.weighted import WEIGHTED
from pdrisk._model.plain import plain_label
from pdrisk._pandas.requests.judged_requests import eps_values
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.study.plan import share

NOTE: Final = "curator only: computed from the data, do not publish"
NOBODYS: Final = "synthetic data: nobody in them is real"
NAMES: Final = {
    "worst_case": "worst-case risk",
    "two_worlds": "two-worlds risk",
    "many_worlds": "many-worlds risk",
    "identifiability": "identifiability",
}
COIN: Final = ("worst_case", "two_worlds")  # metrics that start from a coin's 1/2; the others start from 1/n
ON_AXIS: Final = 0.025  # how near to 1/2 a curve is no more seen
FLOOR: Final = 1e-8  # above 1/2: what is less is rounding
BESIDE: Final = 0.05  # of an axis: from one place of 0 to the next
CURVES: Final = 6  # that a panel holds at most
MOST_UNITS = 10_000
COLUMNS: Final = 12  # that a figure holds at most
SPREAD: Final = {"lowest": 0.0, "lower": 0.25, "median": 0.5, "upper": 0.75, "highest": 1.0}
BAND: Final = {"lower": 0.05, "median": 0.5, "upper": 0.95}
NEEDED: Final = ("column", "statistic", "sample_size", "proportion", "eps", "n", "noise95")


@dataclass(frozen=True, slots=True)
class Panel:
    """Numbers of one panel.

    Attributes
    ----------
    title : str
    priors : (float, float)
        What an attacker starts from, the smallest and the largest: samples of several sizes have several.
    points : DataFrame
    unit : str
        Of the noise.
    part : str
        Which columns of the study are shown; "" if all are.
    note : str
        Who may see it.
    sampling : dict from statistic to float
        The sampling error of each, as far as it is known, in ``unit``; of panels that show noise.
    statistic : str
        The one that all curves are of; "" where each has its own.
    zeros : tuple of float
        Places on an axis of the excess over 1/2 at which curves lie that add nothing, the highest first: see
        `apart_at_zero`.
    least : float or None
        `least_excess` of the others.
    """

    title: str
    priors: tuple[float, float]
    points: pd.DataFrame
    metric: str
    unit: str = ""
    part: str = ""
    note: str = NOTE
    sampling: Mapping[str, float] = field(default_factory=dict)
    statistic: str = ""
    zeros: tuple[float, ...] = ()
    least: float | None = None

    def apart_at_zero(self, by: str = "statistic") -> Panel:
        """Panel whose curves that add nothing to 1/2 lie side by side below all others, and not on each other."""
        nothing = self.points["median"] <= 0.5 + FLOOR
        names = self.points.loc[nothing, by].unique()
        if not self.shows_excess or not len(names):
            return self
        least = self.least_excess
        step = (least / 0.5) ** BESIDE
        zeros = {name: 0.5 + least * step ** (at + 1) for at, name in enumerate(names)}
        places = self.points[by].map(zeros)
        moved = {name: self.points[name].mask(nothing, places) for name in BAND}
        return replace(self, points=self.points.assign(**moved), zeros=tuple(zeros.values()), least=least)

    def noise_from_zero(self, zeros: Mapping[Hashable, float]) -> Panel:
        """Panel whose noises of 0 are at the place of their query on a logarithmic axis."""
        noise, places = self.points["noise95"], self.points["statistic"].map(dict(zeros))
        return replace(self, points=self.points.assign(noise95=noise.where(noise > 0, places), is_zero=noise == 0))

    @property
    def heading(self) -> str:
        """Title of the panel."""
        return f"{self.statistic} of {self.title}" if self.statistic else self.title

    @property
    def start(self) -> float:
        """Start of its risk axis."""
        return self.priors[0]

    @property
    def shows_excess(self) -> bool:
        """Whether a query's risk would be indistinguishable from 1/2, so that its excess is shown instead."""
        if self.metric not in COIN or "statistic" not in self.points.columns or not len(self.points):
            return False
        return float(self.points.groupby("statistic")["median"].max().min()) < 0.5 + ON_AXIS

    @property
    def least_excess(self) -> float:
        """Power of ten at which an axis of the excess over 1/2 begins: below the smallest, at least `FLOOR`.

        What adds nothing at all lies on it, or below it: see `apart_at_zero`.
        """
        if self.least is not None:
            return self.least
        known = [name for name in ("lower", "median", "upper", "highest") if name in self.points.columns]
        above = self.points[known].to_numpy(dtype=float) - 0.5
        least = float(above[above > FLOOR].min(initial=0.1))
        return float(10.0 ** math.floor(math.log10(least)))


def show_excess(panels: Sequence[Panel]) -> bool:
    """Whether panels with a common risk axis show the excess over 1/2."""
    return any(panel.shows_excess for panel in panels)


def by_query(result: pd.DataFrame, *, metrics: Any = ("many_worlds", "two_worlds"), eps: Any = None) -> list[Panel]:
    """For each metric and column, the spread of each query's risks over all samples and eps.

    Like all of these, of the first dozen columns; each panel says so.

    Every sample size and eps weighs the same, however many samples of it there are.

    Returns: ``points`` has a row for each statistic: ``statistic lowest lower median upper highest``, the last five
        of the risk: its ends, quartiles and median.
    """
    chosen = _asked(metrics)
    table = _of_eps(_checked(result, chosen), eps)
    panels = []
    for column, rows, part in _columns(table):
        for metric in chosen:
            points = _spread(rows, ["statistic"], metric, SPREAD)
            panels.append(Panel(str(column), _priors(rows, metric), points, metric, part=part, note=_note(result)))
    return panels


def by_proportion(
    result: pd.DataFrame, *, statistic: str = "max", metrics: Any = ("many_worlds", "two_worlds"), eps: Any = None
) -> list[Panel]:
    """For each column and metric, the risk against the share of the values in the sample, by eps.

    Returns: ``points`` has a row for each eps and size: ``eps proportion sample_size lower median upper``; nine of
        ten samples lie between lower and upper.
    """
    chosen = _asked(metrics)
    table = _checked(result, chosen)
    if not isinstance(statistic, str) or statistic not in set(table["statistic"]):
        raise ParameterError(
            f"the study has no statistic {shown(statistic)}; it has {', '.join(result['statistic'].unique())}."
        )
    table = table[table["statistic"] == statistic]
    table = _of_eps(table, _telling(table) if eps is None else eps)
    if table["eps"].nunique() > CURVES:
        raise ParameterError(f"a panel holds {CURVES} curves: pass at most so many eps.")
    panels = []
    for column, rows, part in _columns(table):
        for metric in chosen:
            points = _spread(rows, ["eps", "proportion", "sample_size"], metric, BAND)
            own_panel = Panel(str(column), _priors(rows, metric), points, metric, part=part, note=_note(result))
            panels.append(replace(own_panel, statistic=statistic))
    return panels


def by_epsilon(result: pd.DataFrame, *, metric: str = "two_worlds", proportion: float | None = None) -> list[Panel]:
    """For each column, the risk against eps, by query, for samples of one size.

    ``proportion``: of the sizes there are, the nearest to this share of the values; the largest by default.
    Returns: ``points`` has a row for each statistic and eps: ``statistic eps proportion sample_size lower median
        upper worst_case``.
    """
    table = _of_size(_checked(result, [*_asked(metric), "worst_case"]), proportion)
    _few_curves(table["statistic"])
    panels = []
    for column, rows, part in _columns(table):
        points = _spread(rows, ["statistic", "eps", "proportion", "sample_size"], metric, BAND, also=["worst_case"])
        panels.append(Panel(str(column), _priors(rows, metric), points, metric, part=part, note=_note(result)))
    return panels


def noise_and_risk(
    result: pd.DataFrame,
    *,
    metric: str = "two_worlds",
    proportion: float | None = None,
    units: Mapping[Hashable, str] | None = None,
) -> list[Panel]:
    """For each column and unit, the noise against the risk, by query, for samples of one size.

    Returns: ``points`` has a row for each statistic and eps: ``statistic eps proportion sample_size noise95 lower
        median upper worst_case``, noise95 in ``unit``.
    """
    if units is not None and not isinstance(units, Mapping):
        raise ColumnTypeError(f"units must be a dict from column to unit, not {type(units).__name__}.")
    if not all(isinstance(unit, str) for unit in islice((units or {}).values(), MOST_UNITS)):
        raise ColumnTypeError("units must be texts, as in {'distance': 'km'}.")
    table = _of_size(_checked(result, [*_asked(metric), "worst_case"]), proportion)
    _few_curves(table["statistic"])
    panels = []
    for column, column_rows, part in _columns(table):
        unit = {name: unit_of(name, column, units) for name in column_rows["statistic"].unique()}
        for unit_name in dict.fromkeys(unit.values()):
            rows = column_rows[column_rows["statistic"].isin([name for name in unit if unit[name] == unit_name])]
            keys = ["statistic", "eps", "proportion", "sample_size"]
            rows = rows.assign(noise95=rows.groupby(keys, sort=False, observed=True)["noise95"].transform("median"))
            points = _spread(rows, keys, metric, BAND, also=["noise95", "worst_case"])
            sampling = {name: error for name, error in _sampling(result, column).items() if unit.get(name) == unit_name}
            own_panel = Panel(
                str(column), _priors(rows, metric), points, metric, unit_name, part, _note(result), sampling
            )
            panels.append(own_panel)
    return panels


def unit_of(statistic: object, column: Hashable, units: Mapping[Hashable, str] | None) -> str:
    """The unit of an answer about a column, which is named beside it."""
    name = str(statistic).removeprefix(WEIGHTED)
    if name.startswith("count"):
        return "records"
    unit = (units or {}).get(column)
    if name.startswith("var"):
        return f"{unit}²" if unit else "its unit, squared"
    return unit or "its unit"


def _asked(metrics: Any) -> list[str]:
    chosen = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(chosen, list | tuple):
        raise ColumnTypeError(f"metrics must be a list of {', '.join(METRICS)}.")
    for metric in chosen:
        check_metric(metric)
    if not chosen:
        raise ParameterError(f"pass at least one metric of {', '.join(METRICS)}.")
    return list(chosen)


def _checked(result: object, metrics: Iterable[str]) -> pd.DataFrame:
    """The result of a study, or the error if it is not one."""
    if not isinstance(result, pd.DataFrame):
        raise ColumnTypeError(f"a figure is made of the frame that a study returned, not of {type(result).__name__}.")
    if missing := [name for name in (*NEEDED, *dict.fromkeys(metrics)) if name not in result.columns]:
        raise ParameterError(
            f"the result has no {', '.join(missing)}: pass the frame of pdrisk.study.run, with these metrics."
        )
    if result.empty:
        raise ParameterError("the result has no rows: there is nothing to show.")
    table = result.reset_index(drop=True)
    # What a study says of each column: pandas would copy all of it at every step.
    table.attrs = {}
    return table


def _columns(table: pd.DataFrame) -> Iterator[tuple[Hashable, pd.DataFrame, str]]:
    """The first columns with their rows, and a note of how many there are, "" if all are shown."""
    every = table["column"].unique()
    first = table[table["column"].isin(every[:COLUMNS])] if len(every) > COLUMNS else table
    part = f"the first {COLUMNS} of {len(every):,} columns; for others pass their rows" if len(every) > COLUMNS else ""
    for (column,), rows in first.groupby(["column"], sort=False, observed=True):
        yield plain_label(column), rows, part


def _of_eps(table: pd.DataFrame, eps: Any) -> pd.DataFrame:
    if eps is None:
        return table
    wanted = np.array([float(value) for value in eps_values(eps)])
    known = table["eps"].unique()
    if len(missing := [loss for loss in wanted if loss not in known]):
        raise ParameterError(
            f"the study has no eps {', '.join(f'{loss:g}' for loss in missing)}; it has "
            f"{', '.join(f'{loss:g}' for loss in known)}."
        )
    return table[table["eps"].isin(wanted)]


def _telling(table: pd.DataFrame) -> list[float]:
    """At most as many eps as a panel holds, evenly spread on a logarithmic scale, with both ends."""
    left = sorted(table["eps"].unique().tolist())
    while len(left) > CURVES:
        ratios = [left[at + 1] / left[at - 1] for at in range(1, len(left) - 1)]
        del left[1 + int(np.argmin(ratios))]
    return left


def _of_size(table: pd.DataFrame, proportion: float | None) -> pd.DataFrame:
    """The rows of one sample size for each column."""
    wanted = 1.0 if proportion is None else share("proportion", proportion)
    away = (table["proportion"] - wanted).abs()
    near = table[away == away.groupby(table["column"], sort=False).transform("min")]
    # Two sizes may be equally far away: the larger one.
    return near[near["proportion"] == near.groupby("column", sort=False)["proportion"].transform("max")]


def _few_curves(statistics: pd.Series) -> None:
    if statistics.nunique() > CURVES:
        raise ParameterError(f"a panel holds {CURVES} curves, the study has more statistics: pass a part of its rows.")


def _priors(rows: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The smallest and the largest prior."""
    return (0.5, 0.5) if metric in COIN else (float(1 / rows["n"].max()), float(1 / rows["n"].min()))


def _sampling(result: pd.DataFrame, column: Hashable) -> dict[str, float]:
    """Sampling errors of the statistics of all values of a column, from the study's attributes."""
    study = result.attrs.get("study")
    columns = study.get("columns", []) if isinstance(study, dict) else []
    return next((entry.get("sampling95", {}) for entry in columns if entry["column"] == column), {})


def _note(result: pd.DataFrame) -> str:
    study = result.attrs.get("study")
    return NOBODYS if isinstance(study, dict) and study.get("synthetic") is True else NOTE


def _spread(
    table: pd.DataFrame, keys: list[str], metric: str, levels: Mapping[str, float], also: Iterable[str] = ()
) -> pd.DataFrame:
    """Quantiles of a metric in each group of rows, in the order of the table; NaN is left out."""
    known = table[table[metric].notna()]
    by = known.groupby(keys, sort=False, observed=True)
    cells = known.groupby([by.ngroup().rename("group"), "sample_size", "eps"], observed=True)[metric]
    weights, risks, group = 1 / cells.transform("size").to_numpy(), known[metric].to_numpy(), by.ngroup().to_numpy()
    order = np.lexsort((risks, group))
    ends = np.cumsum(np.bincount(group))
    wanted = np.array(list(levels.values())) - 1e-9  # a sum of floats may be short in its last digits
    quantiles = np.empty((len(ends), len(wanted)))
    for row, of_group in zip(quantiles, np.split(order, ends[:-1]), strict=False):  # no group: one split of nothing
        reached = np.cumsum(weights[of_group])
        # The first risk that a share of the weight does not exceed.
        row[:] = risks[of_group][np.searchsorted(reached / reached[-1], wanted)]
    heads = known.loc[~by.ngroup().duplicated(), [*keys, *also]].reset_index(drop=True)
    return heads.assign(**dict(zip(levels, quantiles.T, strict=True)))
