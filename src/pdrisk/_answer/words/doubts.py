"""Doubtful answers: warnings of noise that leaves little, of an eps that hides little, and of bounds that clamp."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._answer.answers import formatting
from pdrisk._caller_frame import caller
from pdrisk._core.order import Median, Quantile
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Histogram, Mean, Statistic
from pdrisk._core.summary import FloatArray
from pdrisk._mechanisms import ClippedSums
from pdrisk._mechanisms.laplace import half_width
from pdrisk._model.query import UNIT, Line, Query
from pdrisk.errors import DoubtfulReleaseWarning, NoisyReleaseWarning

if TYPE_CHECKING:
    from pdrisk._answer.answers.released import Released

HIDING = 10  # the largest eps that hides somebody
LEFT_OUT = 0.01  # of the records: curators are warned if limits of rows or groups leave out more
MANY, SMALL = 20, 0.1  # cells of a table, and the share of them whose noise may be wider than their number
USEFUL = 0.25  # of the range of possible answers: a wider noise interval is warned about
NEAR = 0.05  # of the range: so near an end, at most a tenth of the values lie in the other half, by Markov's inequality


def warn_before(query: Query) -> None:
    """Warn of a query from public facts, before anything is paid."""
    _warn_of_noise(query)
    _warn_of_eps(query)


def warn_after(releases: Sequence[Released], *, is_table: bool) -> None:
    """Warn of answers from their own published numbers, and of tables once for all cells."""
    _warn_of_width(releases)
    _warn_of_few(releases)
    if is_table:
        _warn_of_small(releases)
    _warn_of_ends(releases)


def warn_of_crowded_bins(crowded: NDArray[np.bool_]) -> None:
    """Warn of measures of inequality where noisy numbers say that most people of a group are in one bin, shape (G,)."""
    if not crowded.any():
        return
    where = "" if len(crowded) == 1 else f" in {int(crowded.sum())} of {len(crowded)} groups"
    _warn(
        f"more than half of the people{where} seem to be in one income bin. The values take their incomes as spread "
        "evenly in it, which nobody knows: look at low and high, which hold all that bins leave open. With narrower "
        "bins there they are closer together."
    )


def _warn_of_noise(query: Query) -> None:
    """Warn before anything is paid if public facts say that the noise leaves little of the answer."""
    if all(line.mechanism != "laplace" for line in query.lines):
        return
    wide = []
    is_even = len(set(query.shares)) == 1
    for number, (line, share) in enumerate(zip(query.lines, query.line_shares, strict=True)):
        if line.mechanism != "laplace":
            continue
        # The ratio of noise to range is the same in every universe, so bounds from the data stay out of it.
        low, high = line.statistic.value_range(line.universe or UNIT)
        if not math.isfinite(high - low):
            continue
        reach = half_width(query.mechanism(number, UNIT).scale)
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


def _warn_of_width(releases: Sequence[Released]) -> None:
    """Warn of answers whose own noise interval, which is published, covers much of the range of possible answers."""
    wide = []
    for release in releases:
        mechanism = release.noisy.mechanism
        if isinstance(mechanism, ClippedSums) and mechanism.clips_most(release.noisy.drawn):
            _warn(
                f'{release.line.name}: clip="private" clips some {mechanism.left:,} records at this eps, and there '
                "seem to be hardly more: the answer says little of most of them. Ask with a larger eps, or without "
                "clip."
            )
        low, high = release.line.statistic.value_range(release.noisy.mechanism.universe)
        if release.line.mechanism == "laplace" or release.line.universe is None or not math.isfinite(high - low):
            continue
        ends = tuple(map(_plain, release.noisy.interval()))
        most = 1.0 if release.noisy.mechanism.is_one_sided else USEFUL
        broad = (ends[1] - ends[0] > most * (high - low)) | ((ends[0] <= low) & (ends[1] >= high))
        if broad is False:  # of one number, as nearly always: the rest takes longer
            continue
        broad = np.atleast_1d(broad)
        if len(broad) and broad.all():
            wide.append(
                f"{release.line.name}: {float(np.min(ends[1] - ends[0])):.4g} wide, of {high - low:.6g} possible"
            )
        elif broad.any():
            wide.append(f"{release.line.name}: {int(broad.sum())} of {len(broad)} groups")
    if wide:
        _warn(
            f"the noise leaves little of the answer. 95 % noise interval of {_some(wide)}. Ask with a larger eps, "
            "narrower bounds, or about more people at once. If you expected more people, check the filter and the keys."
        )


def _warn_of_few(releases: Sequence[Released]) -> None:
    """Warn of order statistics of so few records that chance decides them, by a noisy number of records beside them."""
    if len(releases) == 1:  # no order statistic tells the number of its own records
        return
    few = []
    for release in releases:
        least = formatting.records_said_of(release.noisy.mechanism.rank95)
        if least is None:
            continue
        counted = next((n for other in releases if (n := _noisy_records(other, release.line)) is not None), None)
        if counted is None:
            continue
        too_few = (counted < least) & ~release.noisy.withheld
        if len(too_few) and too_few.all():
            few.append(f"{release.line.name}, which says nothing of fewer than some {least:,} records")
        elif too_few.any():
            few.append(
                f"{release.line.name}, which says nothing of the {int(too_few.sum())} groups of less than {least:,}"
            )
    if few:
        _warn(
            f"there seem to be too few records, by their noisy number in the same answer: {_some(few)}. Such a value "
            "may lie anywhere within the bounds. Ask with a larger eps, or about more people at once."
        )


def _warn_of_small(releases: Sequence[Released]) -> None:
    """Warn, once for each table, of many cells whose noise is wider than their number."""
    small = cells = 0
    for release in releases:
        low, high = release.noisy.interval()
        known = ~np.isnan(high - low)
        if known.sum() >= MANY and not isinstance(release.line.statistic, Histogram):  # of which many bins are empty
            cells += int(known.sum())
            small += int(((high - low) / 2 > np.abs(release.noisy.values.astype(np.float64)))[known].sum())
    if small > SMALL * cells:
        _warn(
            f"in {formatting.share(small / cells)} of the {cells:,} cells of this table the noise reaches farther than "
            "the number itself: pdrisk.quality(table) marks them. Ask for fewer groups, or with a larger eps."
        )


def _noisy_records(release: Released, line: Line) -> FloatArray | None:
    """Noisy number of the records of a line, or of more than these, as far as a release tells it."""
    if release.line.people != line.people and release.line.people != (None, None):
        return None
    if type(release.line.statistic) is Count:
        return np.where(release.noisy.withheld, np.nan, release.noisy.values)
    records = release.noisy.mechanism.least_records(release.noisy.drawn, 0.5)
    return None if records is None else np.where(release.noisy.withheld, np.nan, records)


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
    """Warn of means and medians that seem to lie at an end of their bounds, or near it: most values may be clamped.

    That is how bounds show which were declared before the column was changed, as from euros to cents. Skewed data, such
    as incomes or distances, pile up at the end that is nearer to zero without being clamped. So there an answer has to
    reach the end, and only at an end that is as far from zero as the other one is near it enough.
    """
    clamped = []
    for release in releases:
        universe, statistic = release.line.universe, release.line.statistic
        if universe is None or universe == UNIT or not isinstance(statistic, Mean | Median):
            continue
        if isinstance(statistic, Median):  # of which many are 0, and few at the upper end
            at_end = _plain(release.noisy.values) >= universe.hi
        else:
            low, high = map(_plain, release.noisy.interval())
            narrow = high - low <= USEFUL * (universe.hi - universe.lo)
            near = NEAR * (universe.hi - universe.lo)
            at_end = narrow & ((low <= universe.lo) | (high >= universe.hi))
            at_end |= (low >= universe.hi - near) & (universe.hi >= -universe.lo)
            at_end |= (high <= universe.lo + near) & (-universe.lo >= universe.hi)
        if at_end is not False and np.size(at_end) and np.all(at_end):
            clamped.append(f"{release.line.name}, within bounds {universe.lo:g} to {universe.hi:g}")
    if clamped:
        _warn(
            f"the answer lies at or near an end of its bounds, as far as its noise tells: {_some(clamped)}. Values "
            "beyond count as the bound, and nearly all may lie there. If the column was changed after its bounds were "
            "declared, such as its unit, declare them anew.",
            DoubtfulReleaseWarning,
        )


def warn_of_left_out(releases: Sequence[Released]) -> None:
    """Warn a curator, who sees numbers from the data, of limits of rows or groups that leave out many records."""
    parts = [(one.line.name, one.facts.left_out() or 0.0) for one in releases if one.facts is not None]
    many = [f"{formatting.share(part)} of the records of {name}" for name, part in parts if part > LEFT_OUT]
    if many:
        _warn(
            f"the limits of rows or groups of a person leave out {_some(many)}: the answer and its interval are about "
            "the others. With a larger rows= or groups= less is left out, and the noise grows. This comes from the "
            "data: do not publish it.",
            DoubtfulReleaseWarning,
        )


def _plain(numbers: NDArray[Any]) -> Any:
    """One number as such, others as they are: comparing arrays of one takes longer."""
    return numbers.item() if numbers.size == 1 else numbers


def _some(wide: Sequence[str]) -> str:
    return "; ".join(wide[:3]) + (f"; and {len(wide) - 3} more" if len(wide) > 3 else "")


def _warn(message: str, category: type[Warning] = NoisyReleaseWarning) -> None:
    warnings.warn(message, category, stacklevel=caller()[1])
