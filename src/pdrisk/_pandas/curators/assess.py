"""The curator's views: exact sensitivities and risks, with no noise, no spending, and nothing to publish."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.facts import facts
from pdrisk._core.risks.gaussian_dp import largest_eps, limit_of
from pdrisk._core.risks.risk import check_metric, epsilon_for, posterior, reached_already
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._guard import guarded
from pdrisk._mechanisms.contract.base import check_smallest
from pdrisk._model.arguments import (
    checked_probability,
    checked_success,
    epsilon,
    statistic,
)
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.query import Query
from pdrisk._pandas.requests.judged_requests import (
    check_groups_are_known,
    check_rows_in_python,
    eps_values,
    judged_selection,
    listed_numbers,
)
from pdrisk._pandas.requests.lines import judged_lines, lines_of_columns
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.base import Reading
from pdrisk.engines.numpy.influence import losses_of_line
from pdrisk.errors import ParameterError

USUAL_EPS: Final = (0.1, 1)
USUAL_STATISTICS: Final = ("mean", "median", "min", "max", "var")


def assessment(frame: pd.DataFrame, columns: object, statistics: object, request: Request) -> pd.DataFrame:
    """Table with one row for each column, statistic, group and eps."""
    if statistics is USUAL_STATISTICS and request.weighing is not None:  # weights have no other variance
        statistics = [("var", {"ddof": 0}) if name == "var" else name for name in USUAL_STATISTICS]
    lines = lines_of_columns(frame, columns, statistics, request)
    if request.success is not None and request.eps is not USUAL_EPS:
        raise ParameterError("pass exactly one of eps= and success= (not both): what each answer costs is found by it.")
    limits = [limit_of(checked_success(number)) for number in listed_numbers("success", request.success)]
    losses = [] if limits else eps_values(request.eps)
    for loss in losses:
        check_smallest(loss)
    query, engine = judged_selection(frame, lines, request)
    reading = engine.read(query)
    labels = None if reading.groups is None else list(reading.groups)
    each_eps = [losses or [largest_eps(partial(query.mu2_at, at), one) for one in limits] for at in range(len(lines))]
    blocks = guarded(lambda: [_block(query, reading, line, each_eps[line], labels) for line in range(len(lines))])
    return mark_exact(pd.concat(blocks, ignore_index=True))


def _block(
    query: Query, reading: Reading, at: int, losses: list[Fraction], groups: list[Hashable] | None
) -> pd.DataFrame:
    """The rows of one column and statistic: groups outside, eps inside."""
    line, summary, people = query.lines[at], reading.summaries[at], reading.people(at)
    mechanisms = [query.mechanism(at, reading.universes[at], loss) for loss in losses]
    weights = [query.weight(at, loss) for loss in losses]
    size = len(summary.n)
    known = [
        facts(mechanism, summary, 0.0, query.unit, weight, people)
        for mechanism, weight in zip(mechanisms, weights, strict=True)
    ]

    def spread(name: str) -> FloatArray:
        parts = [np.broadcast_to(getattr(fact, name), size) for fact in known]
        return np.stack(parts, axis=1).ravel()

    grouped = {} if groups is None else {"group": pd.Index(groups).repeat(len(known))}
    eps = np.tile([float(loss) for loss in losses], size)
    widths = [mechanism.noise95(summary) for mechanism in mechanisms]
    return pd.DataFrame(
        {
            "column": pd.Series([line.column] * (size * len(known))),
            "statistic": line.statistic.label,
            "mechanism": line.mechanism,
            **grouped,
            "eps": eps,
            "n": spread("n"),
            "global_sensitivity": query.global_sensitivity(at, reading.universes[at]),
            "local_sensitivity": spread("local_sensitivity"),
            "noise95": np.stack([np.broadcast_to(width, size) for width in widths], axis=1).ravel(),
            "worst_case": posterior(eps),
            **{name: spread(name) for name in ("two_worlds", "many_worlds", "identifiability")},
        }
    )


def planned_epsilon(frame: pd.DataFrame, column: Hashable | None, spec: object, request: Request) -> float:
    """The eps at which a metric reaches ``risk`` for this very column."""
    metric = request.metric
    check_metric(metric)
    highest = checked_probability("risk", request.risk)
    own_prior = None if request.prior is None else checked_probability("prior", request.prior)
    (line,) = judged_lines(frame, column, (statistic(spec),), request)
    query, engine = judged_selection(frame, (line,), request)
    fixed = 0.5 if own_prior is None and metric in ("worst_case", "two_worlds") else own_prior
    if metric == "worst_case" or (fixed is not None and highest < fixed):
        return float(epsilon_for(highest, fixed))
    if query.unit.weight != 1:
        check_rows_in_python(engine, "epsilon_for() of people with several rows")
    reading = engine.read(query)
    summary = reading.summaries[0]
    # What grows in proportion to eps and is never less than the loss says where the risk is reached at the earliest.
    if query.unit.weight == 1:
        one = line.calibrated(Fraction(1), reading.universes[0])
        number, loss, between = summary.n, one.loss_by_eps(summary), one.loss_between_worlds_by_eps(summary)
    else:
        number, loss, between = _of_several(query, reading)
    try:
        return float(
            epsilon_for(
                highest,
                own_prior,
                metric=str(metric),
                n=int(number[0]),
                local_sensitivity=float(loss[0]),
                world_range=float(between[0]),
            )
        )
    except ParameterError:
        pass  # its words would tell n
    raise reached_already(f"a {metric} risk of {highest:g}")


def _of_several(query: Query, reading: Reading) -> tuple[IntArray, FloatArray, FloatArray]:
    """Numbers of people, and their losses at each eps, where a person may have several records.

    Below the eps at which steps of the lattice count, a person loses less than in proportion.
    """
    people = reading.people(0)
    assert people is not None
    mechanism, weight = query.mechanism(0, reading.universes[0], Fraction(1)), query.weight(0, Fraction(1))
    release_facts = guarded(lambda: facts(mechanism, reading.summaries[0], 0.0, query.unit, weight, people))
    return people.number, release_facts.loss, release_facts.loss_between_worlds


def individual_risk(frame: pd.DataFrame, column: Hashable | None, spec: object, request: Request) -> pd.Series:
    """Two-worlds risk of each row's person; NaN for rows without a person or without a used record."""
    (line,) = judged_lines(frame, column, (statistic(spec),), request)
    query, engine = judged_selection(frame, (line,), request, epsilon(request.eps))
    check_rows_in_python(engine, "individual_risk()")
    check_groups_are_known(query.groups)
    query.mechanism(0).check()
    reading = engine.read(query)
    mechanism = query.mechanism(0, reading.universes[0])

    def posterior_of(loss: FloatArray) -> None:
        np.negative(loss, out=loss)
        np.exp(loss, out=loss)
        loss += 1
        np.reciprocal(loss, out=loss)

    risks = guarded(lambda: losses_of_line(reading, 0, mechanism, posterior_of))
    return pd.Series(risks, index=reading.stored.index, name="two_worlds", copy=False)
