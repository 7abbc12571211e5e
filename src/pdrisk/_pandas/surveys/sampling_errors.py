"""Sampling errors by the design of a survey: private ones beside an answer, and exact ones for curators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.answers.answer import SAMPLING, Answer
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.answers.sampling import design_interval
from pdrisk._answer.release import Release
from pdrisk._answer.releasing import Asker, check_affordable, released
from pdrisk._caller_frame import caller
from pdrisk._core.lattice import PLACES
from pdrisk._core.spread import Var
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.design_variance import factors, flat_variance, most_of_unit, stratified_variance
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.universe import Universe
from pdrisk._guard import guarded
from pdrisk._ledger import ledger_for
from pdrisk._mechanisms.bernstein import moments
from pdrisk._mechanisms.noisy_moments import NoisyMoments
from pdrisk._model.arguments import epsilon, statistic
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.plain import float_of
from pdrisk._model.query import Line, Query
from pdrisk._pandas.noisy.answers import answered
from pdrisk._pandas.requests.judged_requests import judged_query, judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.objects import judging
from pdrisk._pandas.surveys.deviations import Deviations
from pdrisk.engines.base import Engine, Origin
from pdrisk.errors import BudgetExceededError, NoisyReleaseWarning, ParameterError

USUAL: Final = Fraction(1, 5)  # of eps, for the sampling error
MOST: Final = 0.9
WITH_SPREAD: Final = {"two_sums": "bernstein", "weighted_two_sums": "weighted_bernstein"}  # what tells the spread, too
SUMS: Final = (*WITH_SPREAD, *WITH_SPREAD.values())  # mechanisms that tell the sum of the weights of a mean
FINE: Final = 2**20  # parts of what a unit can be, in which the part of one person is counted
FAR: Final = 1e4  # times what one record can be, beyond which no exact sum of a unit lies


def sampled(asked: Any, column: Hashable, spec: str, options: Mapping[str, Any], share: object) -> Any:
    """A noisy mean, proportion or sum with its sampling error by the design of a Dataset.

    ``column, spec, options``: as of the statistic.
    ``share``: what part of eps the sampling error costs.
    """
    part = _checked_share(share)
    eps = _eps(options)
    answer_eps, beside = eps * (1 - part), eps * part
    first = asked._request({**options, "eps": answer_eps})
    with judging(asked._frame, first) as (frame, request):
        lines = judged_lines(frame, column, (statistic(spec),), request)
        query, engine = judged_query(frame, lines, request, answer_eps)
    deviations, asker = Deviations.of(asked, query, request), first.asker(asked._identity)
    if query.lines[0].mechanism not in (*SUMS, *(("laplace",) if deviations.is_sum else ())):
        raise ParameterError("sampling= needs an answer that is made of noisy sums: leave mechanism= and clip= out.")
    if deviations.is_sum and not deviations.design.by_stratum:
        raise ParameterError(
            "sampling= of a sum needs psus=, the number of sampling units (in each stratum), 10 or more: it depends on "
            "them much more than that of a mean."
        )
    before, reads = _question(deviations, np.full(len(deviations.keys), 0.5), options, beside)
    _check_both([(query, engine.origin), (before, reads.origin)], asker)
    seen: list[NoisyAnswers] = []
    answer = answered(query, engine, asker, seen.append)
    moments = _moments(deviations, seen[0], options, beside, asker)
    se, poor = _standard_errors(deviations, seen[0], moments)
    se = np.where(seen[0].withheld, np.nan, se)
    _warn_of_noise(query.lines[0].name, poor, asker)
    if isinstance(answer, Release):
        return _with_error(answer, float(se[0]), moments)
    for name, values in zip(SAMPLING, (se, *design_interval(seen[0], se, 0.95)), strict=True):
        answer[name] = values
    description = Answer.from_attrs(answer.attrs)
    assert description is not None
    description = description.with_sampling_error(None, moments.eps, moments.risk.mu)
    answer["eps"], answer["worst_case"] = description.lines[0].eps, description.lines[0].worst_case
    return description.attach(answer)


def with_design_effect(asked: Any, column: Hashable, spec: str, options: Mapping[str, Any]) -> Any:
    """A noisy mean or proportion of everybody with its sampling error, by a declared design effect.

    It is answered from three noisy sums, which tell the spread, too: that costs no eps.
    """
    with judging(asked._frame, asked._request(options)) as (frame, request):
        (line,) = judged_lines(frame, column, (statistic(spec),), request)
        if request.mechanism == "auto" and line.mechanism in WITH_SPREAD and request.where is None:
            line = replace(line, mechanism=WITH_SPREAD[line.mechanism])
        query, engine = judged_query(frame, (line,), request)
    seen: list[NoisyAnswers] = []
    answer = answered(query, engine, request.asker(asked._identity), seen.append)
    design = request.design
    tells = line.mechanism in WITH_SPREAD.values() and query.where is None
    if not tells or not isinstance(answer, Release) or design is None or design.deff is None:
        return answer
    if seen[0].measurements is None or bool(seen[0].withheld[0]):  # what is kept back would be told by its spread
        return answer
    sums = seen[0].drawn.astype(np.float64) / PLACES
    mean, square = moments(sums)
    assert line.universe is not None and design.n is not None
    spread = np.clip(square - mean**2, 0.0, 0.25)
    se = line.universe.width * np.sqrt(design.deff * spread / design.n)
    return _with_error(answer, float(se[0]))


def _with_error(answer: Release, se: float, moments: NoisyAnswers | None = None) -> Release:
    """The release with its sampling error, and what that cost besides."""
    eps, mu = (0.0, 0.0) if moments is None else (moments.eps, moments.risk.mu)
    description = answer.answer.with_sampling_error(se, eps, mu)
    return replace(answer, describe=lambda: description)


def _check_both(queries: list[tuple[Query, Origin]], asker: Asker) -> None:
    """Refuse both questions if the rules or the budget refuse one, unless the ledger remembers the first answer.

    Then that is free, and what the second one asks follows from it.
    """
    try:
        check_affordable(queries, replace(asker, dataset=None))
    except BudgetExceededError:
        (query, origin), payer = queries[0], ledger_for(asker.ledger)
        if asker.dataset is None or asker.fresh or payer is None or not payer.remembers(query, asker.dataset, origin):
            raise


def _checked_share(share: object) -> Fraction:
    if share is True:
        return USUAL
    number = float_of("sampling", share)
    if not 0 < number <= MOST:
        raise ParameterError(
            f"sampling is the part of eps that the sampling error costs, above 0 and at most {MOST:g}, or True for "
            f"{float(USUAL):g}, but is {number:g}."
        )
    return Fraction(str(number))


def _eps(options: Mapping[str, Any]) -> Fraction:
    if any(options.get(name) is not None for name in ("risk", "success", "prior")):
        raise ParameterError("sampling= divides eps between the answer and its sampling error: pass eps=.")
    return epsilon(options.get("eps"))


def _question(
    deviations: Deviations, means: FloatArray, options: Mapping[str, Any], eps: Fraction
) -> tuple[Query, Engine[Any]]:
    """The question of the second moments of deviations from these means, and what reads it."""
    by_stratum = deviations.design.by_stratum
    expression = deviations.centred(means)
    if not by_stratum:
        expression = deviations.scaled(expression)
    share = Fraction(1)
    if not deviations.is_unit:  # rounded upward
        share = min(share, Fraction(math.ceil(FINE / most_of_unit(deviations.persons)) + 1, FINE))
    most = deviations.most(means)
    line = Line(
        deviations.name, SecondMoments(share, by_stratum), Universe(-most, most), "given", mechanism=NoisyMoments.name
    )
    frame, request = deviations.request({deviations.name: expression}, options, by_unit=True, by_stratum=by_stratum)
    with judging(frame, replace(request, eps=eps)) as (judged, asked):
        query, engine = judged_query(judged, (line,), asked, eps)
    if deviations.is_unit:
        return query, engine
    reads = (*query.reads, *(column for column in query.unit.person if column not in query.reads))
    return replace(query, unit=replace(query.unit, of_clusters=True), reads=reads), engine


def _moments(
    deviations: Deviations, noisy: NoisyAnswers, options: Mapping[str, Any], eps: Fraction, asker: Asker
) -> NoisyAnswers:
    """Noisy second moments of the deviations from answers that are out."""
    universe = deviations.universe
    means = np.clip((noisy.values.astype(np.float64) - universe.lo) / universe.width, 0.0, 1.0)
    query, reads = _question(deviations, np.where(np.isnan(means), 0.5, means), options, eps)
    answers: NoisyAnswers = released(
        query, reads, lambda results, _: results.releases[0].noisy, asker, keeps_facts=False
    )
    return answers


def _standard_errors(
    deviations: Deviations, noisy: NoisyAnswers, moments: NoisyAnswers
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Standard errors in the unit of the answers, plus half of the noise of each; and which are mostly noise."""
    mechanism = moments.mechanism
    assert isinstance(mechanism, NoisyMoments)
    scale, most = mechanism.noise_scale, mechanism.universe.hi
    drawn = moments.drawn.astype(np.float64).reshape(len(moments.drawn), len(deviations.keys), -1) / PLACES
    if deviations.design.by_stratum:
        above, below = drawn
        units = deviations.design.units
        variance, noise = stratified_variance(above - below, above + below, units, deviations.factors, scale)
    else:
        variance, noise = flat_variance(drawn[0].sum(axis=-1), float(deviations.factors.max()), scale)
    used = np.sqrt((np.maximum(variance, 0.0) + np.sqrt(noise) / 2) * most**2)
    if deviations.is_sum:
        return np.asarray(used), np.sqrt(noise) > np.maximum(variance, 0.0)
    weight = np.maximum(noisy.drawn.astype(np.float64).sum(axis=0) / PLACES, 1.0) * deviations.largest_weight
    return np.asarray(deviations.universe.width * used / weight), np.sqrt(noise) > np.maximum(variance, 0.0)


def _warn_of_noise(name: str, poor: NDArray[np.bool_], asker: Asker) -> None:
    if not poor.any():
        return
    which = "" if len(poor) == 1 else f" in {int(poor.sum())} of {len(poor)} groups"
    try:
        warnings.warn(
            f"the sampling error of {name}{which} is mostly noise, so its interval is wider than it need be: pass a "
            "larger sampling=, or declare deff= and n= in the Design, which cost nothing.",
            NoisyReleaseWarning,
            stacklevel=caller()[1],
        )
    except NoisyReleaseWarning:  # where warnings are errors: what a ledger paid for is not lost for that
        if ledger_for(asker.ledger) is None:
            raise


def sampling_errors(asked: Any, column: Hashable, spec: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """Exact estimates with their sampling errors, for curators: those of R's survey package.

    Returns: one row for each group: ``value``, ``se``, ``deff``, ``n`` and ``weight``.
    """
    given = {**options, "eps": 1}
    with judging(asked._frame, asked._request(given)) as (frame, request):
        lines = judged_lines(frame, column, (statistic(spec),), request)
        query, engine = judged_selection(frame, lines, request)
    deviations = Deviations.of(asked, query, request, exact=True)
    design = deviations.design
    if design.strata is not None and design.psus is None:
        raise ParameterError("exact sampling errors by stratum need psus=, the number of sampling units in each.")
    index = pd.RangeIndex(1) if query.groups is None else engine.read(query).groups

    def found() -> pd.DataFrame:
        weight, value = deviations.weight(), deviations.value()
        known = f"({value} * 0.0 + {weight} * 0.0 + 1.0)"
        expressions = [known, f"{weight} * {known}", f"{weight} * {value}", f"{weight} * {value} * {value}"]
        n, total, first, second = (triple[0].sum(axis=-1) for triple in _exactly(deviations, expressions, given))
        some = np.where(total > 0, total, np.nan)
        mean = first / some
        centred = deviations.centred(np.where(np.isnan(mean), 0.0, mean))
        sums, squares, _ = _of_units(deviations, centred, given)
        corrections, units = deviations.factors, design.units or [_observed_units(deviations, given)]
        if not design.units:
            corrections = factors(units, [None])
        variance, _ = stratified_variance(sums, squares, units, corrections)
        random = np.sqrt((second / some - mean**2) / np.maximum(n - 1, 1))
        se = np.sqrt(variance) if deviations.is_sum else np.sqrt(variance) / some
        universe = deviations.universe
        estimate, unit = (first, 1.0) if deviations.is_sum else (universe.lo + universe.width * mean, universe.width)
        relative = se / (random * (some if deviations.is_sum else 1.0))
        told = {"value": estimate, "se": se * unit, "deff": relative**2, "n": n.astype(np.int64), "weight": total}
        return pd.DataFrame(told, index=index)

    return mark_exact(guarded(found))


def _observed_units(deviations: Deviations, options: Mapping[str, Any]) -> int:
    """Number of all units that there are, also beyond a filter and listed groups; at least 2."""
    everybody = replace(deviations, query=replace(deviations.query, groups=None))
    others = {name: value for name, value in options.items() if name not in ("where", "by", "keys")}
    name = next(column for column in everybody.data._frame.columns if isinstance(column, str))
    _, _, units = _of_units(everybody, f"`{name}`.isna() * 1.0", others)
    return max(int(units.sum()), 2)


def _of_units(
    deviations: Deviations, expression: str, options: Mapping[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Exact sums of an expression over units, and so on as `_exactly`.

    The sum of a unit is rounded to steps of the widest that one can be. So a first look tells how far they reach.
    """
    _, squares, _ = _exactly(deviations, [expression], options, of_units=deviations.widest * FAR)[0]
    reach = 1.01 * math.sqrt(squares.sum())
    return _exactly(deviations, [expression], options, of_units=reach if reach > 0 else deviations.widest)[0]


def _exactly(
    deviations: Deviations, expressions: list[str], options: Mapping[str, Any], *, of_units: float | None = None
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Exact sums of expressions over records, of their squares, and their numbers, each of shape (G, H).

    With ``of_units``, the farthest from 0 that one lies, over units.
    """
    largest = deviations.widest * max(deviations.universe.magnitude, 1.0) if of_units is None else of_units
    by_unit = of_units is not None
    columns = {f"{deviations.name} {at}": expression for at, expression in enumerate(expressions)}
    frame, request = deviations.request(columns, options, by_unit=by_unit, by_stratum=True)
    with judging(frame, request) as (judged, asked):
        lines = tuple(Line(name, Var(0), Universe(-largest, largest), "given") for name in columns)
        query, engine = judged_selection(judged, lines, asked)
    triples: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    shape = len(deviations.keys), -1
    for summary in engine.read(query).summaries:
        assert summary.total is not None and summary.squares is not None
        n = summary.n.astype(np.float64)
        squares = summary.squares + summary.total**2 / np.maximum(n, 1.0)
        triples.append((summary.total.reshape(shape), squares.reshape(shape), n.reshape(shape)))
    return triples
