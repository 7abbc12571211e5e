"""The curator's assessment of a person's own data: which answers, groups and columns expose somebody most."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk.assess import assessment
from pdrisk.columns import check_column, column_kind
from pdrisk.core.risk import privacy_loss
from pdrisk.core.universe import Universe
from pdrisk.declared import declared
from pdrisk.engines.frame import own_universe
from pdrisk.errors import ParameterError, QueryFailedError
from pdrisk.query import statistics as judged_statistics
from pdrisk.query import universe
from pdrisk.release import half_width

__all__ = ["RISKS", "Exposure", "exposure"]

STATISTICS = ("mean", "median", "min", "max", "var")
PLAIN = ("count", "sum")  # one person moves them by their global sensitivity in any data: nothing to rank
RISKS = (0.55, 0.6, 0.75)  # worst-case risks that the recommendation looks at
KINDS = ("numbers", "truth values")


@dataclass(frozen=True)
class Exposure:
    """What answers about a frame would mean for the people in it. Curator only: nothing here has noise.

    Attributes
    ----------
    answers : DataFrame
        As ``df.dprisk.assess`` gives it, the most exposed first, with ``exposure``, the share LS / GS of eps that the
        most exposed person bears.
    groups : DataFrame or None
        The same for each group of ``by``.
    columns : DataFrame
        For each column its bounds ``lo`` and ``hi``, who declared them, the number of values, and its most exposed
        answer.
    recommendation : DataFrame
        For each answer the eps at which the worst-case risk reaches `RISKS`, and the noise that comes with it:
        ``noise95``, in the unit of the answer, and as a ``share`` of the range of possible answers.
    left_out : dict from column to str
        Columns that cannot be assessed, and why.
    """

    answers: pd.DataFrame
    groups: pd.DataFrame | None
    columns: pd.DataFrame
    recommendation: pd.DataFrame
    left_out: Mapping[Hashable, str]


def exposure(
    frame: pd.DataFrame,
    columns: Sequence[Hashable] | None = None,
    statistics: Sequence[Any] = STATISTICS,
    eps: Sequence[float] = (0.1, 1.0),
    *,
    bounds: Mapping[Hashable, Any] | None = None,
    by: Any = None,
    keys: Any = None,
) -> Exposure:
    """Assess every answer that could be asked of these columns.

    Parameters
    ----------
    frame : DataFrame
    columns : list of columns, optional
        All that hold numbers, unless given.
    statistics : list of names or pairs
        Ranked by exposure. The recommendation looks at counts and sums besides, which expose everybody alike.
    eps : list of float
    bounds : dict from column to (lo, hi), optional
        Columns without declared bounds get the data's own, as in the SOEP paper: good for looking, not for a release.
    by, keys
        As for every statistic; without declared keys those that occur.

    Raises
    ------
    ParameterError
        If columns that were asked for cannot be assessed: all of them, each with its reason.
    """
    judged_statistics(list(statistics))
    groups_by = [] if by is None else by if isinstance(by, list) else [by]
    wanted = [name for name in frame.columns.unique() if name not in groups_by] if columns is None else list(columns)
    given = dict(bounds or {})
    used: dict[Hashable, tuple[tuple[float, float], str]] = {}
    left_out: dict[Hashable, str] = {}
    for column in wanted:
        check_column(frame, column)
        found = _bounds_of(frame, column, given.get(column))
        if isinstance(found, str):
            left_out[column] = found
        else:
            used[column] = found
    if columns is not None and left_out:
        raise ParameterError(
            "these columns cannot be assessed: "
            + "; ".join(f"{column} ({reason})" for column, reason in left_out.items())
            + ". Leave them out, convert them to numbers, or declare bounds."
        )
    if not used:
        raise ParameterError("no column of the frame can be assessed: none holds numbers with a range.")
    chosen = {column: interval for column, (interval, _) in used.items()}
    answers = _ranked(_assessed(frame, chosen, statistics, eps, None, None))
    groups = None
    if by is not None:
        groups = _ranked(_assessed(frame, chosen, statistics, eps, by, _keys(frame, groups_by, keys)))
    return Exposure(
        answers,
        groups,
        _columns(answers, used),
        _recommended(chosen, [*(name for name in PLAIN if name not in statistics), *statistics]),
        left_out,
    )


def _bounds_of(frame: pd.DataFrame, column: Hashable, given: Any) -> tuple[tuple[float, float], str] | str:
    """The bounds of a column and who said so, or why it has none."""
    kind = column_kind(frame[column])
    if kind not in KINDS:
        return f"holds {kind}, not numbers"
    if given is not None:
        interval = universe(given)
        return (interval.lo, interval.hi), "given"
    known = declared(frame, column)
    if known.universe is not None:
        return (known.universe.lo, known.universe.hi), str(known.bounds_from)
    values = frame[column].mask(frame[column].isin(list(known.missing))) if known.missing else frame[column]
    try:
        own = own_universe(values)
    except QueryFailedError:
        return "has fewer than two different values and no declared bounds"
    return (own.lo, own.hi), "the data's own"


def _keys(frame: pd.DataFrame, by: list[Hashable], keys: Any) -> Any:
    if keys is not None:
        return keys
    for column in by:
        check_column(frame, column)
    return None if all(declared(frame, column).keys is not None for column in by) else "observed"


def _assessed(
    frame: pd.DataFrame, bounds: Mapping[Hashable, Any], statistics: Any, eps: Any, by: Any, keys: Any
) -> pd.DataFrame:
    columns, specs = list(bounds), list(statistics)
    return assessment(frame, columns, specs, list(eps), bounds=bounds, where=None, by=by, keys=keys)


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """The most exposed answers first, those of one answer together."""
    share = table["local_sensitivity"] / table["global_sensitivity"]
    ranked = table.assign(exposure=share).sort_values(
        ["exposure", "identifiability"], ascending=False, kind="stable", ignore_index=True
    )
    ranked.attrs = {**table.attrs, "curator_only": [*table.attrs["curator_only"], "exposure"]}
    return ranked


def _columns(answers: pd.DataFrame, used: Mapping[Hashable, tuple[tuple[float, float], str]]) -> pd.DataFrame:
    first = answers.drop_duplicates("column").set_index("column")
    table = pd.DataFrame(
        {
            "lo": pd.Series({column: ends[0] for column, (ends, _) in used.items()}),
            "hi": pd.Series({column: ends[1] for column, (ends, _) in used.items()}),
            "bounds": pd.Series({column: source for column, (_, source) in used.items()}, dtype=object),
            "values": first["n"],
            "most_exposed": first["statistic"],
            "exposure": first["exposure"],
        }
    ).sort_values("exposure", ascending=False, kind="stable")
    table.index.name = "column"
    return table


def _recommended(bounds: Mapping[Hashable, tuple[float, float]], statistics: Any) -> pd.DataFrame:
    """What an eps buys: nothing here but the universe depends on the data."""
    rows = []
    for column, ends in bounds.items():
        interval = Universe(*ends)
        for statistic in judged_statistics(list(statistics)):
            low, high = statistic.value_range(interval)
            for risk in RISKS:
                eps = float(privacy_loss(risk, 0.5))
                noise = float(half_width(statistic.global_sensitivity(interval) / eps))
                share = noise / (high - low) if np.isfinite(high - low) else np.nan
                rows.append((column, statistic.label, risk, eps, noise, share))
    return pd.DataFrame(rows, columns=["column", "statistic", "worst_case", "eps", "noise95", "share"])
