"""Exposure: which answers, groups and columns of the user's own data expose somebody most."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._core.risks.risk import most_exposed_first, privacy_loss
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.weighted import WEIGHTED
from pdrisk._digits import rounded_down
from pdrisk._mechanisms.laplace import half_width
from pdrisk._model.arguments import checked_mechanism, of_numbers, statistic
from pdrisk._model.arguments import statistics as judged_statistics
from pdrisk._model.declared.aliases import Bounds, By, Eps, Keys
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.expressions.columns import check_column
from pdrisk._pandas.curators.assess import assessment
from pdrisk._pandas.requests.declared import codes_of, declarations_of, declared
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.frame import column_values
from pdrisk.study import assess_report
from pdrisk.study.plan import SOURCES, Variable, eps_list, statistics_of, usable, variables
from pdrisk.study.sampling import sampling95, weighted_sampling95

__all__ = ["AUTO", "RISKS", "Exposure", "Weighing", "exposure", "weighing_of", "weighted_means"]

AUTO = "auto"  # the mechanism of answers that name none
STATISTICS = ("mean", "median", "min", "max", "var")
PLAIN = ("count", "sum")  # one person moves them by their global sensitivity in any data: nothing to rank
RISKS = (0.55, 0.6, 0.75)  # worst-case risks that the recommendation looks at
GRID = 300  # quantiles of the noise of each of two releases, whose quotient has no simple law


@dataclass(frozen=True)
class Weighing:
    """Weights of the records of an assessment. Curator only.

    Attributes
    ----------
    column : hashable
    largest : float
        W, at which larger ones are trimmed.
    values : ndarray of float64, shape (rows,)
        As they are stored; NaN where there is none.
    """

    column: Hashable
    largest: float
    values: FloatArray = field(repr=False)

    @property
    def counted(self) -> FloatArray:
        """The weights with which records count: none is missing, and all are from 0 to W."""
        return np.clip(self.values[~np.isnan(self.values)], 0.0, self.largest)


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
        values alone tell none. Weighted statistics have no ``laplace95``: the paper weighs nobody.
    left_out : dict from column to str
        Columns that cannot be assessed, or seem to be ids or weights, and why.
    rows : int
        Of the frame, each of which is taken for a person.
    mechanism : str
        Whose noise and risks these are.
    units : dict from column to str
        For the numbers of the report.
    weighing : Weighing or None
        Of weighted answers.
    """

    answers: pd.DataFrame
    groups: pd.DataFrame | None
    columns: pd.DataFrame
    recommendation: pd.DataFrame
    left_out: Mapping[Hashable, str]
    rows: int
    mechanism: str = AUTO
    units: Mapping[Hashable, str] = field(default_factory=dict)
    weighing: Weighing | None = None

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
    weights: Hashable = None,
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
    weights : column or False, optional
        As for every statistic: with it, or where a schema declares weights, all answers but extremes are weighted.
        ``bounds``, or a declaration, has the largest weight. Variances have ``ddof=0`` then.

    Raises
    ------
    ParameterError
        If columns that you named cannot be assessed; the text names all of them, each with its reason.
    """
    weighing = weighing_of(frame, weights, bounds)
    if weighing is None:
        specs = tuple(of_numbers(spec) for spec in judged_statistics(statistics))
    else:
        specs = statistics_of(statistics, 0)
    losses, mechanism = eps_list(eps), checked_mechanism(mechanism)
    groups_by = [] if by is None else by if isinstance(by, list) else [by]
    for column in groups_by:
        check_column(frame, column)
    left_out: dict[Hashable, str] = {}
    if columns is None:
        without = groups_by if weighing is None else [*groups_by, weighing.column]
        given: Any = bounds
        if weighing is not None and isinstance(bounds, Mapping):
            given = {column: limits for column, limits in bounds.items() if column != weighing.column}
        columns, left_out = usable(frame, given, without)
    chosen = {one.column: one for one in variables(frame, columns, bounds, None)}
    answers = _ranked(_assessed(frame, chosen, specs, losses, mechanism, None, None, weighing))
    groups = None
    if by is not None:
        group_keys = _keys(frame, groups_by, keys)
        groups = _ranked(_assessed(frame, chosen, specs, losses, mechanism, by, group_keys, weighing))
    plain = tuple(statistic for statistic in judged_statistics(list(PLAIN)) if statistic not in specs)
    recommended = _recommended(frame, chosen, (*plain, *specs), mechanism, weighing)
    table = _columns(frame, answers, chosen)
    return Exposure(answers, groups, table, recommended, left_out, len(frame), mechanism, weighing=weighing)


def weighing_of(frame: pd.DataFrame, weights: Any, bounds: object) -> Weighing | None:
    """The weights that are named or else declared; None without any, or with False.

    Raises
    ------
    ParameterError, ColumnTypeError
        As every weighted statistic does.
    """
    if not isinstance(frame, pd.DataFrame):  # `variables` says so
        return None
    if weights is None:
        weights = declarations_of(frame).weights
    if weights is None or weights is False:
        return None
    given = bounds.get(weights) if isinstance(bounds, Mapping) and isinstance(weights, Hashable) else None
    asked = Request(weights=weights, bounds=None if given is None else {weights: given})
    (line,) = judged_lines(frame, None, (statistic("count"),), asked)
    assert line.universe is not None
    return Weighing(weights, line.universe.hi, _stored(frame, weights))


def _stored(frame: pd.DataFrame, column: Hashable) -> FloatArray:
    """The numbers of a column without missing codes, NaN where there is none."""
    return column_values(without_codes(frame[[column]], codes_of(frame, [column]))[column]).astype(np.float64)


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
    weighing: Weighing | None,
) -> pd.DataFrame:
    bounds = {column: (one.universe.lo, one.universe.hi) for column, one in chosen.items()}
    weights: Hashable = False
    if weighing is not None:
        weights, bounds = weighing.column, bounds | {weighing.column: (0.0, weighing.largest)}
    asked = Request(eps=list(eps), bounds=bounds, by=by, keys=keys, mechanism=mechanism, weights=weights)
    table = assessment(frame, list(chosen), list(specs), asked)
    paper = half_width(table["global_sensitivity"].to_numpy() / table["eps"].to_numpy())
    is_weighted = table["statistic"].str.startswith(WEIGHTED).to_numpy()
    return table.assign(laplace95=np.where(is_weighted, np.nan, paper))


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


def weighted_means(
    frame: pd.DataFrame, columns: Sequence[Hashable], eps: Sequence[float], bounds: object, weights: Any
) -> pd.DataFrame:
    """Table of the noise of weighted means by eps: of one release, and of the recipe of two. Curator only.

    The recipe divides a noisy sum of products of value and weight by a noisy sum of weights, which cost half of eps
    each: Laplace noise of scale ``2 W max(|lo|, |hi|) / eps`` and ``2 W / eps``. Its quotient is cut to the bounds.
    Its errors are those of all pairs of `GRID` equally likely values of both noises.

    Parameters
    ----------
    frame, columns, eps, bounds, weights
        As for `exposure`.

    Returns
    -------
    DataFrame
        Columns ``column eps n mean noise95 recipe95 sampling95``, all but ``eps`` and ``n`` in the unit of the column;
        ``n`` is the number of records with a value and a weight.
    """
    weighing = weighing_of(frame, weights, bounds)
    assert weighing is not None
    given = (
        {column: limits for column, limits in bounds.items() if column != weighing.column}
        if isinstance(bounds, dict)
        else None
    )
    place = (np.arange(GRID) + 0.5) / GRID - 0.5
    laplace = -np.sign(place) * np.log1p(-2 * np.abs(place))
    above, below = (grid.ravel() for grid in np.meshgrid(laplace, laplace))
    rows = []
    for one in variables(frame, list(columns), given, None):
        lo, hi, largest = one.universe.lo, one.universe.hi, weighing.largest
        asked = Request(eps=list(eps), bounds={one.column: (lo, hi), weighing.column: (0.0, largest)}, weights=weights)
        known = pd.DataFrame({"values": _stored(frame, one.column), "weights": weighing.values}).dropna()
        known = known.sort_values("values")
        values, counted = known["values"].clip(lo, hi).to_numpy(), known["weights"].clip(0.0, largest).to_numpy()
        total = float(counted.sum())
        mean = float(counted @ values) / total if total else (lo + hi) / 2
        sampling = weighted_sampling95(Mean(), values, counted)
        table = assessment(frame, one.column, "mean", asked)
        for loss, n, noise in table[["eps", "n", "noise95"]].to_numpy(dtype=float):
            scale = 2 * largest / loss
            sums = mean * total + one.universe.magnitude * scale * above
            quotients = np.clip(sums / np.maximum(total + scale * below, largest * 1e-9), lo, hi)
            recipe = float(np.quantile(np.abs(quotients - mean), 0.95))
            rows.append((one.column, loss, int(n), mean, noise, recipe, sampling))
    table = pd.DataFrame(rows, columns=["column", "eps", "n", "mean", "noise95", "recipe95", "sampling95"])
    return mark_exact(table)


def _recommended(
    frame: pd.DataFrame,
    chosen: Mapping[Hashable, Variable],
    specs: Sequence[Statistic],
    mechanism: str,
    weighing: Weighing | None,
) -> pd.DataFrame:
    """Table of the noise that an eps buys."""
    losses = [float(rounded_down(float(privacy_loss(risk, 0.5)))) for risk in RISKS]
    rows = []
    for column, one in chosen.items():
        universe, values = one.universe, one.values
        bounds, weights = {"values": (universe.lo, universe.hi)}, np.zeros(0)
        records = pd.DataFrame({"values": values})
        if weighing is not None:
            records = pd.DataFrame({"values": _stored(frame, column), "weights": weighing.values}).dropna(
                subset="values"
            )
            known = records.dropna().sort_values("values")
            values = known["values"].clip(universe.lo, universe.hi).to_numpy()
            weights = known["weights"].clip(0.0, weighing.largest).to_numpy()
            bounds["weights"] = (0.0, weighing.largest)
        asked = Request(
            eps=losses, bounds=bounds, mechanism=mechanism, weights=False if weighing is None else "weights"
        )
        table = assessment(records, "values", list(specs), asked)
        noises = table["noise95"].to_numpy(dtype=float).reshape(len(specs), len(losses))
        query, engine = judged_selection(records, judged_lines(records, "values", specs, asked), asked)
        reading = engine.read(query)
        for at, (spec, widths) in enumerate(zip(specs, noises, strict=True)):
            answered = query.lines[at].statistic
            exact = abs(float(answered.value(reading.summaries[at], reading.universes[at])[0]))
            is_weighted = answered.label.startswith(WEIGHTED)
            sampling = weighted_sampling95(spec, values, weights) if is_weighted else sampling95(spec, one.values)
            for risk, eps, noise in zip(RISKS, losses, widths.tolist(), strict=True):
                paper = np.nan if is_weighted else float(half_width(spec.global_sensitivity(universe) / eps))
                share = noise / exact if exact else np.nan
                rows.append((column, answered.label, risk, eps, noise, share, paper, sampling))
    names = ["column", "statistic", "worst_case", "eps", "noise95", "share", "laplace95", "sampling95"]
    table = pd.DataFrame(rows, columns=names)
    return mark_exact(table)
