"""The curator's views: exact sensitivities and risks, with no noise, no spending, and nothing to publish."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import pandas as pd

from pdrisk._answer.release import CURATOR_ONLY, half_width
from pdrisk._answer.releasing import Facts, facts
from pdrisk._core.risk import METRICS, check_metric, epsilon_for
from pdrisk._core.summary import FloatArray
from pdrisk._guard import guarded
from pdrisk._model.query import checked_probability, epsilon, statistic
from pdrisk._pandas.requests import eps_values, judged_lines, judged_selection, lines_of_columns
from pdrisk.engines.numpy.frame import read
from pdrisk.engines.numpy.influence import influences
from pdrisk.errors import ParameterError

__all__ = ["assessment", "individual_risk", "planned_epsilon"]


def assessment(
    frame: pd.DataFrame,
    columns: object,
    statistics: object,
    eps: object,
    *,
    bounds: object,
    where: object,
    by: object,
    keys: object,
) -> pd.DataFrame:
    """One row for each column, statistic, group and eps."""
    lines = lines_of_columns(frame, columns, statistics, bounds)
    losses = eps_values(eps)
    reading = read(frame, lines, *judged_selection(frame, lines, where, by, keys))
    labels = None if reading.groups is None else list(reading.groups)
    blocks = [
        _block(line.column, line.statistic.label, [facts(line, universe, summary, loss) for loss in losses], labels)
        for line, universe, summary in zip(lines, reading.universes, reading.summaries, strict=True)
    ]
    table = pd.concat(blocks, ignore_index=True)
    table.attrs = {"curator_only": list(CURATOR_ONLY), "no_noise": True}
    return table


def _block(column: Hashable, label: str, known: list[Facts], groups: list[Hashable] | None) -> pd.DataFrame:
    """The rows of one column and statistic: groups outside, eps inside."""
    size = 1 if groups is None else len(groups)

    def spread(name: str) -> FloatArray:
        parts = [np.broadcast_to(getattr(each, name), size) for each in known]
        return np.stack(parts, axis=1).ravel()

    risks = {name: np.stack([each.risk[name] for each in known], axis=1).ravel() for name in METRICS}
    grouped = {} if groups is None else {"group": pd.Index(groups).repeat(len(known))}
    return pd.DataFrame(
        {
            "column": pd.Series([column] * (size * len(known))),
            "statistic": label,
            **grouped,
            "eps": spread("eps"),
            "n": spread("n"),
            "global_sensitivity": spread("global_sensitivity"),
            "local_sensitivity": spread("local_sensitivity"),
            "noise95": half_width(spread("scale")),
            **risks,
        }
    )


def planned_epsilon(
    frame: pd.DataFrame,
    column: Hashable | None,
    spec: object,
    *,
    risk: object,
    metric: object,
    prior: object,
    bounds: object,
    where: object,
) -> float:
    """The eps at which a metric reaches ``risk`` for this very column."""
    check_metric(metric)
    highest = checked_probability("risk", risk)
    own_prior = None if prior is None else checked_probability("prior", prior)
    (line,) = judged_lines(frame, column, (statistic(spec),), bounds)
    selection = judged_selection(frame, (line,), where, None, None)
    fixed = 0.5 if own_prior is None and metric in ("worst_case", "two_worlds") else own_prior
    if metric == "worst_case" or (fixed is not None and highest < fixed):
        return float(epsilon_for(highest, fixed))
    reading = read(frame, (line,), *selection)
    known = facts(line, reading.universes[0], reading.summaries[0], Fraction(1))
    try:
        return float(
            epsilon_for(
                highest,
                own_prior,
                metric=str(metric),
                n=int(known.n[0]),
                global_sensitivity=known.global_sensitivity,
                local_sensitivity=float(known.local_sensitivity[0]),
                world_range=float(known.world_range[0]),
            )
        )
    except ParameterError:
        pass  # its words would tell n
    raise ParameterError(
        f"a {metric} risk of {highest:g} cannot be had in these data: an attacker is there without any release. "
        "Ask for a higher risk."
    )


def individual_risk(
    frame: pd.DataFrame, column: Hashable | None, spec: object, *, eps: object, bounds: object, where: object
) -> pd.Series:
    """The two-worlds risk of every row, NaN where the value is missing or not selected."""
    (line,) = judged_lines(frame, column, (statistic(spec),), bounds)
    loss = float(epsilon(eps))
    reading = read(frame, (line,), *judged_selection(frame, (line,), where, None, None))
    universe, summary = reading.universes[0], reading.summaries[0]
    per_unit = loss / line.statistic.global_sensitivity(universe)

    def posterior(out: FloatArray) -> None:
        np.exp(out, out=out)
        out += 1
        np.reciprocal(out, out=out)

    risks = guarded(lambda: influences(reading, line, universe, summary, -per_unit, posterior))
    return pd.Series(risks, index=frame.index, name="two_worlds", copy=False)
