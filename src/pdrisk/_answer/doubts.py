"""Doubtful answers: warnings of noise that leaves little, of an eps that hides little, and of bounds that clamp."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pdrisk._caller_frame import caller
from pdrisk._core.order import Median, Quantile
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._mechanisms import ClippedSums, Mechanism
from pdrisk._model.query import UNIT, Line, Query
from pdrisk.errors import DoubtfulReleaseWarning, NoisyReleaseWarning

if TYPE_CHECKING:
    from pdrisk._answer.releasing import Released

__all__ = ["warn_after", "warn_before"]

HIDING = 10  # the largest eps that hides somebody
USEFUL = 0.25  # of the range of possible answers: a wider noise interval is warned about


def warn_before(query: Query) -> None:
    """Warn of a query from public facts, before anything is paid."""
    _warn_of_noise(query)
    _warn_of_eps(query)


def warn_after(releases: Sequence[Released]) -> None:
    """Warn of answers from their own published numbers."""
    _warn_of_width(releases)
    _warn_of_ends(releases)


def _warn_of_noise(query: Query) -> None:
    """Warn before anything is paid if public facts say that the noise leaves little of the answer."""
    wide = []
    is_even = len(set(query.shares)) == 1
    for number, (line, share) in enumerate(zip(query.lines, query.line_shares, strict=True)):
        if line.mechanism != "laplace":
            continue
        # The ratio of noise to range is the same in every universe, so bounds from the data stay out of it.
        low, high = line.statistic.value_range(line.universe or UNIT)
        if not math.isfinite(high - low):
            continue
        reach = _reach(query.mechanism(number, UNIT))
        if 2 * reach <= USEFUL * (high - low):
            continue
        at = line.name if is_even else f"{line.name} at eps={float(share):.3g}"
        if line.universe is None:
            wide.append(f"{at}: {reach / (high - low):.2g} times the range of possible answers")
        else:
            wide.append(f"{at}: {reach:.4g}, where all possible answers lie in {low:.6g} to {high:.6g}")
    if wide:
        loss = f" at eps={float(query.shares[0]):.3g}" if is_even else ""
        accurate = (Mean, "a mean"), (Var, "a variance"), (Quantile, "a median or quantile")
        named = [name for kind, name in accurate if any(_is_laplace(line, kind) for line in query.lines)]
        advice = f' mechanism="auto" is far more accurate for {" and ".join(named)}.' if named else ""
        _warn(
            f"the noise leaves little of the answer: its 95 % half-width{loss} is {_some(wide)}. "
            f"A larger eps or narrower bounds make it smaller.{advice}"
        )


def _is_laplace(line: Line, kind: type[Statistic]) -> bool:
    return isinstance(line.statistic, kind) and line.mechanism == "laplace"


def _reach(mechanism: Mechanism) -> float:
    """Half the width of the 95 % interval of Laplace noise."""
    low, high = mechanism.interval(np.zeros(1), 0.95)
    return float(high[0] - low[0]) / 2


def _warn_of_width(releases: Sequence[Released]) -> None:
    """Warn of answers whose own noise interval, which is published, covers much of the range of possible answers."""
    wide = []
    for each in releases:
        mechanism = each.noisy.mechanism
        if isinstance(mechanism, ClippedSums) and mechanism.clips_most(each.noisy.drawn):
            _warn(
                f'{each.line.name}: clip="private" clips some {mechanism.left:,} records at this eps, and there seem '
                "to be hardly more: the answer says little of most of them. Ask with a larger eps, or without clip."
            )
        low, high = each.line.statistic.value_range(each.noisy.mechanism.universe)
        if each.line.mechanism == "laplace" or each.line.universe is None or not math.isfinite(high - low):
            continue
        if each.noisy.mechanism.is_one_sided:
            continue
        ends = each.noisy.interval()
        broad = ends[1] - ends[0] > USEFUL * (high - low)
        if len(broad) and broad.all():
            wide.append(f"{each.line.name}: {float(np.min(ends[1] - ends[0])):.4g} wide, of {high - low:.6g} possible")
        elif broad.any():
            wide.append(f"{each.line.name}: {int(broad.sum())} of {len(broad)} groups")
    if wide:
        _warn(
            f"the noise leaves little of the answer. 95 % noise interval of {_some(wide)}. Ask with a larger eps, "
            "narrower bounds, or about more people at once. If you expected more people, check the filter and the keys."
        )


def _warn_of_eps(query: Query) -> None:
    """Warn before anything is paid of an eps that hardly hides anybody."""
    if query.eps > HIDING:
        _warn(
            f"an eps of {float(query.eps):g} hardly hides anybody: whoever knows everybody else and tosses a coin is "
            "right 50 times out of 100 without the answer, and more than 9,999 times out of 10,000 with it. Usual "
            "values are 0.1 to 2.",
            DoubtfulReleaseWarning,
        )


def _warn_of_ends(releases: Sequence[Released]) -> None:
    """Warn of means and medians that seem to lie at an end of their bounds: most values may be clamped.

    That is how bounds show which were declared before the column was changed, as from euros to cents.
    """
    clamped = []
    for each in releases:
        universe, statistic = each.line.universe, each.line.statistic
        if universe is None or universe == UNIT or not isinstance(statistic, Mean | Median):
            continue
        low, high = each.noisy.interval()
        if isinstance(statistic, Median):  # of which many are 0, and few at the upper end
            at_end = each.noisy.values >= universe.hi
        else:
            narrow = high - low <= USEFUL * (universe.hi - universe.lo)
            at_end = narrow & ((low <= universe.lo) | (high >= universe.hi))
        if len(at_end) and at_end.all():
            clamped.append(f"{each.line.name}, within bounds {universe.lo:g} to {universe.hi:g}")
    if clamped:
        _warn(
            f"the answer lies at an end of its bounds, as far as its noise tells: {_some(clamped)}. Values beyond "
            "count as the bound, and nearly all may be. If the column was changed after its bounds were declared, such "
            "as its unit, declare them anew.",
            DoubtfulReleaseWarning,
        )


def _some(wide: Sequence[str]) -> str:
    return "; ".join(wide[:3]) + (f"; and {len(wide) - 3} more" if len(wide) > 3 else "")


def _warn(message: str, category: type[Warning] = NoisyReleaseWarning) -> None:
    warnings.warn(message, category, stacklevel=caller()[1])
