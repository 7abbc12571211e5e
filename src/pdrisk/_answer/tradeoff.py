"""`tradeoff`: how often tests for a person miss, at each share of false alarms, by one answer or by a whole budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.release import Release
from pdrisk._answer.words import not_for_others, texts
from pdrisk._answer.words.spent import doubts
from pdrisk._core.foreign import array_of, own_errors
from pdrisk._core.risks.gaussian_dp import limit_of, on_lattice, root, squared, success_of
from pdrisk._core.risks.tradeoff_curve import (
    Curve,
    of_coin,
    of_exponential,
    of_gaussian,
    of_geometric,
    of_laplace,
    of_pure,
    with_delta,
)
from pdrisk._core.risks.whole_numbers import common_denominator, counted
from pdrisk._core.summary import FloatArray
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.publishing.promise import Promise, promise_of
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._pictures.canvas import (
    COLOURS,
    EDGE,
    INK,
    LINE,
    PALE,
    SIZE,
    WIDTH,
    WORDS,
    canvas,
    lines_of,
    shortened,
    styled,
    under,
)
from pdrisk._printing import DisplayedText, preformatted
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS: Final = 16  # of a name in a legend
ALARMS: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)  # of the text
EXACT: Final = ("laplace", "two_sums", "weighted_two_sums", "one_sum", "geometric")
OF_LAPLACE: Final = (
    *("laplace", "two_sums", "one_sum", "bernstein", "bernstein_products"),
    *("weighted_two_sums", "weighted_bernstein"),
)
MOST_CORNERS: Final = 1000  # of a curve that is drawn
ROUNDING: Final = 1e-9  # of a curve, when it is told in whole numbers


@dataclass(frozen=True, repr=False)
class Tradeoff:
    """Trade-off between false alarms and missed detections of the best test for one person.

    Call it with shares of false alarms, one or an array, for the least share of missed detections.

    Attributes
    ----------
    name : str
        What it is about.
    mu : float
        The m that a ledger with ``success=`` counts for it, or that it allows: no curve lies below ``G_m``.
    success : float
        How often the best attacker with a coin's prior is right.
    is_exact : bool
        Whether the worst pair of neighbours has this curve; else none has a lower one.
    curve, filter : Curve
        Of it, and the dashed one of pictures: of what a ledger counts for it, or allows.
    promise : Promise or None
        Of the ledger, if one allows it: what its answers so far make doubtful is said.
    """

    name: str
    mu: float
    success: float
    is_exact: bool
    curve: Curve = field(compare=False)
    filter: Curve = field(compare=False)
    beside: str = "filter"
    is_limit: bool = False
    promise: Promise | None = field(default=None, compare=False)

    @own_errors
    def __call__(self, alarms: ArrayLike) -> Any:
        """Least share of missed detections at these shares of false alarms."""
        given = array_of("alarms", alarms)
        if given.dtype.kind not in "iuf":
            raise ColumnTypeError("alarms must be a number or an array of numbers, from 0 to 1.")
        shares = given.astype(np.float64)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ParameterError("alarms are shares from 0 to 1.")
        missed = self.curve.missed(np.atleast_1d(shares))
        return missed if shares.ndim else float(missed[0])

    @property
    def table(self) -> pd.DataFrame:
        """Curve as a table: ``alarms``, ``missed``, and ``filter``, which is G_m of what a ledger counts or allows."""
        alarms = np.unique(np.concatenate([np.linspace(0, 1, 101), self.curve.kinks]))
        return pd.DataFrame(
            {"alarms": alarms, "missed": self.curve.missed(alarms), "filter": self.filter.missed(alarms)}
        )

    @own_errors
    def picture(self, language: str = "en") -> Figure:
        """Picture of the curve with the coin's diagonal and, dashed, that of the filter; needs matplotlib.

        `picture_text` is the same in words.
        """
        wording = texts(language)
        notes = [line for text in self._notes(wording) for line in lines_of(text, WIDTH - 2 * EDGE)]
        figure = canvas(3.1 + LINE * len(notes), wording["tradeoff_title"])
        axes = styled(figure.subplots())
        axes.set_aspect("equal")
        alarms = np.unique(np.concatenate([np.linspace(0, 1, 401), self.curve.kinks, self.filter.kinks]))
        axes.plot((0, 100), (100, 0), color=PALE, linewidth=1.0)
        axes.annotate(
            wording["tradeoff_coin"],
            (62, 40),
            rotation=-45,
            color=INK,
            fontsize=SIZE,
            rotation_mode="anchor",
            ha="center",
        )
        if not self.is_limit:
            label = wording["tradeoff_exact" if self.is_exact else "tradeoff_bound"].format(
                name=shortened(self.name, LETTERS)
            )
            axes.plot(100 * alarms, 100 * self.curve.missed(alarms), color=COLOURS[0], linewidth=1.6, label=label)
        axes.plot(
            100 * alarms, 100 * self.filter.missed(alarms), color=COLOURS[5], linewidth=1.2, linestyle=(0, (4, 1.5)),
            label=wording[f"tradeoff_{self.beside}"],
        )  # fmt: skip
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        axes.set_xlabel(wording["tradeoff_alarms"], labelpad=2, **WORDS)
        axes.set_ylabel(wording["tradeoff_missed"], labelpad=3, **WORDS)
        axes.legend(loc="upper right", frameon=False, fontsize=SIZE, labelcolor=INK, borderaxespad=0, handlelength=1.6)
        under(figure, notes)
        return figure

    @own_errors
    def picture_text(self, language: str = "en") -> str:
        """Picture in words: of 100 attempts about somebody who is in the data, so many miss at least."""
        wording = texts(language)
        rows = [(wording["tradeoff_of_alarms"], wording["tradeoff_of_missed"], wording["tradeoff_of_coin"])]
        for alarms in ALARMS:
            missed = math.floor(100 * float(self.curve.missed(np.array([alarms]))[0]) + ROUNDING)
            rows.append((f"{round(100 * alarms)}", f"{missed}", f"{round(100 * (1 - alarms))}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return DisplayedText(
            "\n".join([wording["tradeoff_title"], *table, *(f"  {note}" for note in self._notes(wording))])
        )

    def _notes(self, wording: Mapping[str, str]) -> list[str]:
        out_of = common_denominator([self.success])
        times, at_most = counted(self.success, out_of)
        right = wording["tradeoff_right" + "_all" * self.is_limit + "_over" * (not at_most)]
        notes = [right.format(coin=f"{out_of // 2:,}", times=f"{times:,}", out_of=f"{out_of:,}")]
        if self.promise is None:
            return notes
        of_records = self.is_limit and self.promise.person is None
        return [*notes, *([wording["doubt_records"]] if of_records else []), *doubts(self.promise, wording)]

    def __repr__(self) -> str:
        return f"{self.name}\n{self.picture_text()}"

    def _repr_html_(self) -> str:
        return preformatted(repr(self))


@own_errors
def tradeoff(of: object, so_far: object = None) -> Tradeoff:
    """Trade-off curve: false alarms against missed detections of the best test for one person.

    Parameters
    ----------
    of : Release, DataFrame, RandomizedResponse or Ledger
        An answer as pdrisk returned it; or a ledger with a limit of success or of eps, whose curve no test undercuts by
        all answers together, whatever will be asked.

    so_far : Ledger, optional
        The ledger that pays for an answer: pictures then show the curve that its limits keep beside that of the answer,
        instead of the curve of what a ledger counts for this answer.

    Returns
    -------
    Tradeoff
        Callable; with ``table``, ``picture()`` and ``picture_text()``. All of it may be published.

    Raises
    ------
    NotPublicError
        If the bounds of an answer came from the data.
    ParameterError
        If a ledger limits neither success nor eps of all time: then nothing that holds can be said beforehand.

    Notes
    -----
    Answers of one number have a closed form: with Laplace noise, with discrete Laplace noise, and a bound for choices
    by the exponential mechanism. Of several numbers together, and where a ledger looked at the number of people, it is
    G_m of the m that is paid. See docs/epsilon.md.

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> release = pd.DataFrame({"x": range(100)}).dprisk.count(eps=1)
    >>> curve = pdrisk.tradeoff(release)
    >>> round(curve(0.1), 4), round(curve.success, 4)
    (0.7282, 0.7311)
    """
    if so_far is not None:
        if not isinstance(so_far, Payer):
            raise ColumnTypeError(f"so_far is the ledger that pays, not of type {type(so_far).__name__}.")
        kept = _of_ledger(so_far)
        return replace(tradeoff(of), filter=kept.curve, beside="allowed", promise=kept.promise)
    if isinstance(of, Release):
        return _of_answer(of.answer)
    if isinstance(of, RandomizedResponse):
        lie = (1 - of.p_truth) / (of.categories - 1)
        return _paired("randomised response", of.mu, of_coin(of.p_truth, lie), 1 / 2 + (of.p_truth - lie) / 2, True)
    if isinstance(of, Payer):
        return _of_ledger(of)
    if not isinstance(of, pd.DataFrame):
        raise ColumnTypeError(f"tradeoff takes an answer of pdrisk or a ledger, not {type(of).__name__}.")
    answer = Answer.from_attrs(of.attrs)
    if answer is None:
        raise ParameterError(NO_ANSWER)
    return _of_answer(answer)


def _of_answer(answer: Answer) -> Tradeoff:
    if answer.bounds_from_data:
        raise not_for_others(answer.name)
    releases = answer.releases or tuple(range(len(answer.lines)))
    first = {release: line for line, release in zip(reversed(answer.lines), reversed(releases), strict=True)}
    one = next(iter(first.values()))
    paid = sum(line.eps for line in first.values())
    times = max(round((answer.eps - answer.extra) / paid), 1)  # of groups that nobody knows to be disjoint
    # Of one that was kept before it said its mu, lines count what they share, such as a look, once each.
    mu2 = squared(answer.mu) or times * sum((squared(line.mu) for line in first.values()), Fraction(0))
    is_plain = len(first) == times == answer.groups_each == 1 and not (answer.extra or answer.delta)
    curve = _closed_form(one) if is_plain else None
    if curve is not None:
        return _paired(answer.name, root(mu2), curve, one.success, one.mechanism in EXACT)
    success = answer.delta + (1 - answer.delta) * success_of(mu2)
    return _paired(answer.name, root(mu2), with_delta(of_gaussian(root(mu2)), answer.delta), success, False)


def _closed_form(line: AnswerLine) -> Curve | None:
    """The curve of one release by itself; None where only its m is known."""
    if line.sampling_eps:  # which paid for a second one
        return None
    if line.mechanism == "geometric":
        change = max(round(line.global_sensitivity), 1)
        finer = line.eps + on_lattice(line.eps / change)  # of so many steps nobody sees the corners
        return of_geometric(line.eps, change) if change <= MOST_CORNERS else of_laplace(finer)
    if line.mechanism in OF_LAPLACE:
        return of_laplace(line.eps)
    return of_exponential(line.eps) if line.mechanism == "exponential" else None


def _paired(name: str, mu: float, curve: Curve, success: float, is_exact: bool) -> Tradeoff:
    return Tradeoff(name, mu, success, is_exact, curve, of_gaussian(mu))


def _of_ledger(ledger: Payer) -> Tradeoff:
    """The curve that a ledger's limits of all time keep, whatever is asked: the higher one, if there are two."""
    promise = promise_of(ledger)
    delta = float(promise.delta)
    kept, mu = [], math.inf
    if promise.success is not None:
        mu = root(limit_of(promise.success))
        kept.append(of_gaussian(mu))
    if promise.eps is not None:
        kept.append(of_pure(float(promise.eps)))
    if promise.limit is None:
        raise ParameterError(
            f"dataset {ledger.dataset!r} limits neither success nor eps of all time, so nothing is known beforehand of "
            "what all answers together may tell: set one, as in ledger.amend(success=0.75)."
        )
    kinks = tuple(kink for curve in kept for kink in curve.kinks)

    def missed(alarms: FloatArray) -> FloatArray:
        return np.asarray(np.max([curve.missed(alarms) for curve in kept], axis=0))

    curve = with_delta(Curve(missed, kinks), delta)
    return Tradeoff(f"dataset {ledger.dataset}", mu, promise.limit, False, curve, curve, "allowed", True, promise)
