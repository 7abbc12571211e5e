"""Plan of a table with margins: the noise to expect in its cells and in each margin, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from pdrisk._core.margins.components import product
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Count
from pdrisk._mechanisms import MECHANISMS
from pdrisk._mechanisms.contract.base import farther_side
from pdrisk._mechanisms.margin_estimates import EstimateNoise, estimate, estimate_interval, law_of
from pdrisk._model.margins import Grid, Margins, MarginsAsked
from pdrisk._model.query import Line
from pdrisk._pandas.plans.plan_tables import reading
from pdrisk.errors import ParameterError


def planned_margins(
    lines: Sequence[Line],
    leads: Sequence[Line],
    share: Fraction,
    n: int,
    groups: Mapping[Any, int],
    asked: MarginsAsked,
) -> pd.DataFrame:
    """The plan of questions about cells and margins, a row for each table and question.

    ``lines, leads``: and those whose records they are drawn from.
    ``share``: the eps of each release.
    ``n``: number of records in all groups together, which are of equal size.
    ``groups``: numbers of keys.
    """
    for line in lines:
        if not MECHANISMS[line.mechanism].adds_up(line.statistic):
            raise ParameterError(
                f"margins= is for numbers of records, sums, means, var and std: leave out {line.name}."
            )
    grid = Grid(tuple(groups), tuple(tuple(range(size)) for size in groups.values()))
    margins = asked.judged(grid, of_counts=any(type(line.statistic) is Count for line in lines))
    assert margins is not None
    both = zip(lines, leads, strict=True)
    return pd.DataFrame([row for line, lead in both for row in _rows(line, lead, share, n, margins)])


def _rows(line: Line, lead: Line, share: Fraction, n: int, margins: Margins) -> list[dict[str, Any]]:
    """The rows of one question, one for each table."""
    mechanisms = {axes: line.calibrated(share * part) for axes, part in margins.shares}
    for mechanism in mechanisms.values():
        mechanism.check()
    design = MeasuredMargins(
        margins.grid.sizes, {axes: law_of(mechanism).variance for axes, mechanism in mechanisms.items()}
    )
    scales = {axes: float(law_of(mechanism).scale) for axes, mechanism in mechanisms.items()}
    whole, rows = line.calibrated(share), []
    for axes in margins.tables:
        size = n // product(margins.grid.sizes, axes)
        summary = reading(lead, share, size)
        numbers = law_of(whole).measured(whole.draw(summary, lambda exact, *_: exact))
        noise = EstimateNoise.of(design.weights(axes), scales)
        ends = estimate_interval(whole, numbers, noise, 0.95)
        rows.append(
            {
                "table": f"by {margins.named(axes)}" if axes else "total",
                "question": line.name,
                "mechanism": line.mechanism,
                "share": float(dict(margins.shares).get(axes, 0)),
                "eps": float(share),
                "n": size,
                "noise95": float(farther_side(estimate(whole, numbers), *ends)[0]),
                "worst_case": float(posterior(float(share))),
            }
        )
    return rows
