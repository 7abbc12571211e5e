"""From a judged query to noisy answers: the order of things that privacy depends on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pdrisk._answer.answer import Answer, AnswerLine
from pdrisk._answer.facts import Facts, facts_of_lines
from pdrisk._answer.noisy import NoisyAnswers, withhold
from pdrisk._caller_frame import caller
from pdrisk._core.order import Median, Quantile
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Mean, Statistic
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._guard import guarded
from pdrisk._ledger import Identity, Meaning, Policy, check_curator, ledger_for, paying
from pdrisk._mechanisms import ClippedSums, Drawn, Mechanism, calibrated, discrete_laplace
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._model.query import UNIT, Line, Query
from pdrisk.engines.base import Engine, Reading
from pdrisk.errors import ColumnTypeError, DoubtfulReleaseWarning, LedgerError, NoisyReleaseWarning, ParameterError

__all__ = ["Asker", "Released", "Results", "check_affordable", "drawn", "drawn_once", "released"]

HIDING = 10  # the largest eps that hides somebody
USEFUL = 0.25  # of the range of possible answers: a wider noise interval is warned about


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks and pays.

    Attributes
    ----------
    ledger : Ledger or None
        What pays; None: that of the ``with`` block around, if there is one.
    fresh : bool
        Pay and draw even if the ledger remembers the answer.
    curator : bool
        Whether the curator's numbers are asked for; under a ledger only by analysts whom its policy names.
    dataset : Identity or None
        The Dataset that is asked, for the ledger's memory and odometer.
    """

    ledger: object = None
    fresh: object = False
    curator: object = False
    dataset: Identity | None = None


COUNT = Count()
Losses = tuple[pd.Series, FloatArray]
Found = TypeVar("Found", bound=Reading)
Shown = TypeVar("Shown")


@dataclass(frozen=True, slots=True)
class Released:
    """The noisy answers of one line.

    Attributes
    ----------
    facts : Facts or None
        The curator's numbers, where the caller may see them.
    """

    line: Line
    noisy: NoisyAnswers
    facts: Facts | None


@dataclass(frozen=True, slots=True)
class Results:
    """The noisy answers to a query, whatever the front end shows them as.

    Attributes
    ----------
    shows_curator : bool
        Whether the caller asked for the curator's numbers.
    unlisted : int
        How many records are of nobody known.
    """

    query: Query
    releases: tuple[Released, ...]
    extra: float
    least_group: int | None
    shows_curator: bool
    unlisted: int = 0

    def answer(self, names: Sequence[str] | None = None, *, one: bool = False) -> Answer:
        """The description of all of them.

        Parameters
        ----------
        names : sequence of str, optional
            Of the lines, if they have others than their own.
        one : bool
            Whether there is one number alone, which belongs to the description.
        """
        lines = tuple(
            AnswerLine.of(self.query, at, each.noisy, None if names is None else names[at], one=one)
            for at, each in enumerate(self.releases)
        )
        return Answer.of(self.query, lines, self.extra, self.least_group)


def released(
    query: Query,
    engine: Engine[Found],
    shown: Callable[[Results, Found], Shown],
    asker: Asker,
    people: Callable[[Found, Hashable], Losses | None] = lambda *_: None,
) -> Shown:
    """The releases of a query, for every front end: warned of, paid, read, drawn and shown in this order.

    Parameters
    ----------
    query : Query
    engine : Engine
    shown : callable
        Makes the answer of the releases and of what was read.
    asker : Asker
    people : callable
        For the ledger: who stands in each row, by the column of that name, and the privacy loss of each; None where
        that is not known.
    """
    curator, dataset = asker.curator, asker.dataset
    if not isinstance(curator, bool | np.bool_):
        raise ColumnTypeError(f"curator is True or False, not of type {type(curator).__name__}.")
    payer = ledger_for(asker.ledger)
    if curator and payer is not None:
        check_curator(payer, "curator=True")
    if payer is not None and query.replaces:
        raise ParameterError(
            'a ledger adds up what records that come and go may lose, and neighbours="replace-one" promises something '
            "else for its eps: leave one of them out."
        )
    _warn_of_noise(query)
    _warn_of_eps(query)
    with paying(query, asker.ledger, asker.fresh, dataset, engine.origin) as payment:
        reading = engine.read(query)
        rules = payment.policy
        mechanisms = [query.mechanism(at, universe) for at, universe in enumerate(reading.universes)]
        noisy = payment.remembered
        if noisy is None:
            noisy = drawn(query, mechanisms, reading.summaries, rules)
        elif [each.shape[-1:] for each in noisy] != [reading.summaries[lead].n.shape for lead in query.leads]:
            raise LedgerError("the ledger remembers the answer to another question: it is damaged. See verify().")
        looked = [_looked(rules, line) for line in query.lines]
        sees = bool(curator) or payer is None
        known = facts_of_lines(query, mechanisms, reading, looked) if sees else [None] * len(looked)
        if query.is_private:  # else eps says nothing, and counts in full
            payment.settle(noisy, lambda: guarded(lambda: _meant(query, mechanisms, rules, people, reading)))
        own = [noisy[release] for release in query.releases]
        releases = tuple(
            Released(
                line, NoisyAnswers(mechanisms[at], own[at], rules.base_of(line.statistic), looked[at], weight), about
            )
            for at, (line, weight, about) in enumerate(
                zip(query.lines, map(query.weight, range(len(own))), known, strict=True)
            )
        )
        least = next((least for line in query.lines if (least := rules.least_group_of(line)) is not None), None)
        size = None if least is None else least.size
        extra, unlisted = float(rules.cost(query) - query.eps), reading.unlisted if sees else 0
        results = Results(query, releases, extra, size, bool(curator), unlisted)
        answer = shown(results, reading)
    try:
        _warn_of_width(results)
        _warn_of_ends(results)
    except (
        NoisyReleaseWarning,
        DoubtfulReleaseWarning,
    ):  # where warnings are errors: what a ledger paid for is not lost for that
        if payer is None:
            raise
    return answer


def check_affordable(queries: Sequence[Query], asker: Asker) -> None:
    """Refuse several queries that cannot all be paid, before the first one is; each is paid by itself later.

    Of a Dataset nothing is checked: what its ledger remembers is free, and stays for the next time.
    """
    payer = ledger_for(asker.ledger)
    if payer is not None and (asker.dataset is None or asker.fresh):
        payer.check(queries)


def drawn(query: Query, mechanisms: Sequence[Mechanism], summaries: Sequence[Summary], rules: Policy) -> list[Drawn]:
    """What is drawn for each release; nothing where the owner wants more people than there are, by a noisy number."""
    result: list[Drawn] = []
    sizes: dict[Any, Drawn] = {}
    for lead in query.leads:
        line, summary = query.lines[lead], summaries[lead]
        noisy = drawn_once(mechanisms[lead], summary)
        if (least := rules.least_group_of(line)) is not None:
            if line.people not in sizes:
                # Of people there are as many at least, and one person changes that by 1 in each of their groups.
                people = Summary(-(-summary.n // query.unit.rows))
                counted = calibrated("geometric", COUNT, UNIT, least.eps / query.unit.groups)
                sizes[line.people] = drawn_once(counted, people)
            noisy = withhold(noisy, sizes[line.people] < least.size)
        result.append(noisy)
    return result


def drawn_once(mechanism: Mechanism | RandomizedResponse, summary: Summary) -> Drawn:
    """What a mechanism draws for a summary; nothing else in pdrisk calls for noise."""
    return mechanism.draw(summary, discrete_laplace)


def _looked(rules: Policy, line: Line) -> float:
    """The eps paid to see whether a line is about enough people."""
    least = rules.least_group_of(line)
    return 0.0 if least is None else float(least.eps)


def _meant(
    query: Query,
    mechanisms: Sequence[Mechanism],
    rules: Policy,
    people: Callable[[Found, Hashable], Losses | None],
    reading: Found,
) -> Meaning:
    """What an answer means for the people in these data; `Meaning.counting` has what was paid to look for them."""
    known = facts_of_lines(query, mechanisms, reading, [0.0] * len(mechanisms))
    return Meaning(
        loss=float(np.max(sum(known[lead].loss for lead in query.leads), initial=0.0)),
        counting=float(rules.cost(query) - query.eps),
        local_sensitivity=[float(np.max(one.local_sensitivity, initial=0.0)) for one in known],
        n=[int(np.min(one.n, initial=np.iinfo(np.int64).max)) for one in known],
        people=None if rules.person is None else people(reading, rules.person),
    )


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


def _warn_of_width(results: Results) -> None:
    """Warn of answers whose own noise interval, which is published, covers much of the range of possible answers."""
    wide = []
    for each in results.releases:
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
            f"the noise leaves little of the answer; its 95 % interval is {_some(wide)}. Ask with a larger "
            "eps, narrower bounds, or about more people at once."
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


def _warn_of_ends(results: Results) -> None:
    """Warn of means and medians that lie at an end of their bounds, as far as their noise tells: they are clamped.

    That is how bounds show which were declared before the column was changed, as from euros to cents.
    """
    told = []
    for each in results.releases:
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
            told.append(f"{each.line.name}, within bounds {universe.lo:g} to {universe.hi:g}")
    if told:
        _warn(
            f"the answer lies at an end of its bounds, as far as its noise tells: {_some(told)}. Values beyond count "
            "as the bound, and nearly all may be. If the column was changed after its bounds were declared, such as "
            "its unit, declare them anew.",
            DoubtfulReleaseWarning,
        )


def _some(wide: Sequence[str]) -> str:
    return "; ".join(wide[:3]) + (f"; and {len(wide) - 3} more" if len(wide) > 3 else "")


def _warn(message: str, category: type[Warning] = NoisyReleaseWarning) -> None:
    warnings.warn(message, category, stacklevel=caller()[1])
