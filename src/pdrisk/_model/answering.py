"""Choice of mechanisms: which one answers each line, and which lines one draw answers, so that they are paid once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pdrisk._core.different import DistinctSum, DistinctWholeSum
from pdrisk._core.foreign import shown
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import CorrAmong
from pdrisk._core.replaced import SumOfSize, WholeSumOfSize
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Mean, Statistic, Sum, WholeSum
from pdrisk._core.surveys.weighted import WeightedMoment, WeightedSpread
from pdrisk._core.universe import Days, Universe
from pdrisk._mechanisms import MECHANISMS, WITH_INTERVAL, ClippedSums, Exponential, mechanism_for
from pdrisk._model.arguments import checked_flag, checked_mechanism
from pdrisk._model.expressions.kinds import DATE, kind_within
from pdrisk._model.query import LARGEST_WHOLE, Line
from pdrisk.errors import ParameterError

MOMENTS = ("two_sums", "bernstein")  # mechanisms whose draw answers several statistics
QUANTILES = "approximate_quantiles"
CLIPPED = "clipped_sums"


def answered_by(
    line: Line,
    mechanism: object,
    *,
    whole: bool = False,
    joint: bool = False,
    interval: object = False,
    clip: object = None,
) -> Line:
    """The line with the mechanism that answers it.

    ``mechanism``: ``"auto"`` or the name of one.
    ``whole``: whether the values are declared to be whole numbers: then a sum is one, and so are the points that a
        quantile is chosen among, unless Laplace noise is asked for.
    ``joint``: whether the line may have to share its release with others of its column: see `joined`.
    ``interval``: whether the answer must have one, even at the cost of accuracy.
    ``clip``: whether values are clipped at points that a share of eps finds.
    """
    joint = joint and line.column is not None
    checked_flag("interval", interval)
    mechanism = _clipping(line, checked_mechanism(mechanism), clip)
    whole = whole or kind_within(line.universe) == DATE
    if whole and mechanism not in ("laplace", ClippedSums.name) and line.universe is not None:
        lo, hi = math.ceil(line.universe.lo), math.floor(line.universe.hi)
        statistic = _of_whole_numbers(line.statistic, mechanism, (lo + hi) // 2, joint=joint)
        if statistic is not None and lo < hi and line.universe.magnitude <= LARGEST_WHOLE:
            line = replace(line, statistic=statistic, universe=replace(line.universe, lo=float(lo), hi=float(hi)))
    chosen = mechanism_for(line.statistic, mechanism, joint=joint)
    if getattr(line.statistic, "bounds_reached", False) and not issubclass(chosen, Exponential):
        raise ParameterError(f"bounds_reached=True means nothing to mechanism {chosen.name!r}: leave one of them out.")
    return replace(line, mechanism=(WITH_INTERVAL.get(chosen, chosen) if interval else chosen).name)


def _clipping(line: Line, mechanism: str, clip: object) -> str:
    """Name of the mechanism; with ``clip`` that of the one that clips."""
    if clip is None or not line.statistic.bounded:
        return mechanism
    if not isinstance(clip, str) or clip != "private":
        raise ParameterError(f'clip is "private", which spends half of eps to find where to clip, not {shown(clip)}.')
    if isinstance(line.universe, Days):
        raise ParameterError('clip="private" is for numbers, not for dates: leave it out.')
    if mechanism not in ("auto", ClippedSums.name):
        raise ParameterError(
            f'clip="private" answers by mechanism {ClippedSums.name!r}: leave mechanism={mechanism!r} out.'
        )
    if line.statistic.replaces:
        raise ParameterError('clip="private" works with neighbours="add-or-remove-one" alone: leave neighbours= out.')
    if not ClippedSums.answers(line.statistic):
        raise ParameterError(
            f'clip="private" is for sum and mean of a column: leave it out for {line.statistic.label}.'
        )
    if line.universe is None:
        raise ParameterError('clip="private" needs declared bounds, not bounds="column".')
    return ClippedSums.name


def _of_whole_numbers(statistic: Statistic, mechanism: str, middle: int, *, joint: bool) -> Statistic | None:
    """The statistic for whole numbers; None if the mechanism does not know it."""
    if type(statistic) is Sum:
        return WholeSum()
    if type(statistic) is DistinctSum:
        return DistinctWholeSum()
    if type(statistic) is SumOfSize:
        return WholeSumOfSize(statistic.size, middle)
    if isinstance(statistic, Quantile | Min | Max):
        chosen = mechanism_for(statistic, mechanism, joint=joint)
        return replace(statistic, whole=True) if issubclass(chosen, Exponential) else None
    return None


def joined(
    lines: Sequence[Line], mechanism: str = "auto", alone: Collection[int] = ()
) -> tuple[tuple[Line, ...], tuple[int, ...]]:
    """The lines of a query with the mechanisms that answer them together, and the number of each line's release.

    Two or more of count, sum, mean, var and std of the same records share one: by bernstein where var or std is among
    them, else by two_sums; weighted ones likewise. With the eps of two releases each answer is more accurate than alone
    with one of them, whatever the data: a number of records by 6 % (bernstein) or a quarter, a sum by no less, a mean
    by 40 % or more.

    Quantiles between 0 and 1 share one, by approximate_quantiles, if that has fewer levels than there are lines: three
    or more, or the same one twice. Two would be chosen with half of eps each anyway, the second one less accurately.

    A mean and a sum of values that are clipped privately share one, and so the points that they are clipped at.

    Correlations of several columns share one, whose draw is about all of them.

    ``lines``: as `answered_by` gives them.
    ``mechanism``: ``"auto"``, or the name of the one that was asked for.
    ``alone``: lines that keep a release of their own, as they say themselves what they cost.
    """
    if len(lines) == 1 and mechanism == "auto":
        return tuple(lines), (0,)
    answered = list(lines)
    firsts = list(range(len(answered)))
    if mechanism == "auto" or mechanism in MOMENTS:
        for members in _weighted(answered, alone):
            spread = any(isinstance(answered[at].statistic, WeightedSpread) for at in members)
            for at in members:
                answered[at] = replace(answered[at], mechanism="weighted_bernstein" if spread else "weighted_two_sums")
                firsts[at] = members[0]
        for members, within in _moments(answered, alone):
            bounded = [at for at in members if answered[at].statistic.bounded]
            if mechanism != "auto" and not bounded:
                raise ParameterError(
                    f"mechanism {mechanism!r} answers {answered[members[0]].name} only beside a sum, mean, var or "
                    "std of its column: ask for one, or leave mechanism out."
                )
            if len(members) < 2 or not bounded:
                continue
            spread = any(isinstance(answered[at].statistic, Var) for at in members)
            name = mechanism if mechanism in MOMENTS else "bernstein" if spread else "two_sums"
            for at in members:
                universe = within if at in bounded else answered[at].universe
                answered[at] = replace(answered[at], mechanism=name, universe=universe)
                firsts[at] = members[0]
    if mechanism in ("auto", QUANTILES):
        for members in _quantiles(answered, alone):
            together = tuple(answered[at].statistic for at in members)
            levels = len({statistic.q for statistic in together if isinstance(statistic, Quantile)}).bit_length()
            if len(members) <= levels and mechanism == "auto":
                continue
            for at in members:
                answered[at] = replace(answered[at], mechanism=QUANTILES, together=together)
                firsts[at] = members[0]
    for members in (*_clipped(answered, alone), _among(answered)):
        for at in members:
            firsts[at] = members[0]
    order = list(dict.fromkeys(firsts))
    return tuple(answered), tuple(order.index(first) for first in firsts)


def _moments(lines: Sequence[Line], alone: Collection[int]) -> Iterator[tuple[list[int], Universe | None]]:
    """The lines that one draw of noisy sums can answer, with the bounds that they share."""
    of_people: dict[object, list[int]] = {}
    for at, line in enumerate(lines):
        single = at in alone or line.column is None or line.indicator is not None or line.statistic.replaces
        single = single or line.mechanism in ("two_stage", CLIPPED)
        if not single and (type(line.statistic) in (Count, Mean) or isinstance(line.statistic, Sum | Var)):
            of_people.setdefault(line.people, []).append(at)
    for members in of_people.values():
        within: dict[Universe | None, list[int]] = {}  # those of whole numbers have whole bounds, which others may not
        for at in members:
            if lines[at].statistic.bounded:
                within.setdefault(lines[at].universe, []).append(at)
        counts = [at for at in members if not lines[at].statistic.bounded]
        for at, (universe, bounded) in enumerate(within.items()):
            yield sorted([*bounded, *(counts if at == 0 else ())]), universe
        if not within:
            yield counts, None


def _weighted(lines: Sequence[Line], alone: Collection[int]) -> Iterator[list[int]]:
    """The weighted statistics that one draw of noisy sums can answer."""
    releases: dict[object, list[int]] = {}
    for at, line in enumerate(lines):
        if at not in alone and line.indicator is None and isinstance(line.statistic, WeightedMoment):
            releases.setdefault((line.people, line.universe), []).append(at)
    return (members for members in releases.values() if len(members) > 1)


def _quantiles(lines: Sequence[Line], alone: Collection[int]) -> Iterator[list[int]]:
    """The quantiles that one draw of points can answer; the smallest and largest record have scores of their own."""
    releases: dict[object, list[int]] = {}
    for at, line in enumerate(lines):
        chosen = line.mechanism in ("exponential", QUANTILES) and MECHANISMS[QUANTILES].joins(line.statistic)
        if at not in alone and chosen and isinstance(line.statistic, Quantile):
            releases.setdefault((line.people, line.universe, line.statistic.whole), []).append(at)
    return iter(releases.values())


def _clipped(lines: Sequence[Line], alone: Collection[int]) -> Iterator[list[int]]:
    """The means and sums of the same values, clipped at the same points."""
    releases: dict[object, list[int]] = {}
    for at, line in enumerate(lines):
        if line.mechanism == CLIPPED and at not in alone:
            releases.setdefault((line.people, line.universe), []).append(at)
    return iter(releases.values())


def _among(lines: Sequence[Line]) -> list[int]:
    """The correlations of several columns."""
    return [at for at, line in enumerate(lines) if isinstance(line.statistic, CorrAmong)]
