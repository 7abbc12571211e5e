"""From a judged query to noisy answers: the order of things that privacy depends on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.facts import Facts, facts_of_lines, facts_of_one, facts_read_later
from pdrisk._answer.answers.margin_tables import MarginAnswers, MarginEstimates, ShareAnswers, drawn_margins, size_of
from pdrisk._answer.answers.noisy import NoisyAnswers, withhold
from pdrisk._answer.answers.released import Released
from pdrisk._answer.arithmetic.measured import new_draw
from pdrisk._answer.words.doubts import warn_after, warn_before, warn_of_left_out
from pdrisk._core.margins.components import Axes
from pdrisk._core.risks.gaussian_dp import root
from pdrisk._core.statistics import Count
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._guard import guarded
from pdrisk._ledger import Identity, Ledger, Meaning, Payment, Policy, check_curator, key_text, ledger_for, paying
from pdrisk._ledger.rules.price import price_of
from pdrisk._mechanisms import Drawn, Mechanism, calibrated
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._model.arguments import checked_flag
from pdrisk._model.plain import plain_label
from pdrisk._model.query import UNIT, Line, Query
from pdrisk.engines.base import Engine, Origin, Reading
from pdrisk.errors import DoubtfulReleaseWarning, LedgerError, NoisyReleaseWarning, ParameterError

__all__ = [
    "Asker",
    "Results",
    "can_read_later",
    "check_affordable",
    "drawn",
    "drawn_once",
    "is_release",
    "new_draw",
    "released",
]


@dataclass(frozen=True, slots=True)
class Asker:
    """The wishes of whoever asks, and the ledger that pays."""

    ledger: object = None  # what pays; None: that of the ``with`` block around, if there is one
    fresh: object = False  # pay and draw even if the ledger remembers the answer
    # whether the curator's numbers are asked for; under a ledger only by analysts whom its policy names
    curator: object = False
    dataset: Identity | None = None  # the Dataset that is asked, for the ledger's memory and odometer
    measured: object = False  # whether tables get columns with what was drawn, uncut


COUNT = Count()
Losses = tuple[pd.Series, FloatArray]
Found = TypeVar("Found", bound=Reading)
Shown = TypeVar("Shown")


@dataclass(frozen=True, slots=True)
class Results:
    """The noisy answers to a query, before a front end gives them their form."""

    query: Query
    releases: tuple[Released, ...]
    extra: float
    least_group: int | None
    shows_curator: bool  # whether the caller asked for the curator's numbers
    unlisted: int | None = 0  # how many records are of nobody known; None where the engine does not tell
    mu: float = 0.0  # of all releases and looks at the number of people, as a ledger counts them
    shows_measured: bool = False  # whether the caller asked for columns with what was drawn
    state: str | None = None  # as in `Answer`

    def answer(self, names: Sequence[str] | None = None, *, one: bool = False) -> Answer:
        """The description of all of them.

        ``names``: of the lines, if they have others than their own.
        ``one``: whether there is one number alone, which belongs to the description.
        """
        lines = tuple(
            AnswerLine.of(self.query, at, release.noisy, None if names is None else names[at], one=one)
            for at, release in enumerate(self.releases)
        )
        meanings = None if self.state is None else _meanings(self.query)
        answer = Answer.of(self.query, lines, self.extra, self.least_group, self.mu)
        return replace(answer, state=self.state, meanings=meanings)


def _meanings(query: Query) -> dict[str, str]:
    """What the columns of a query mean: as in `Answer`."""
    meanings = {str(plain_label(column)): "" for column in query.reads}
    meanings |= {str(plain_label(column)): repr(codes) for column, codes in query.missing.items()}
    return meanings | {column.name: column.canonical for column in query.derived}


def released(
    query: Query,
    engine: Engine[Found],
    shown: Callable[[Results, Found], Shown],
    asker: Asker,
    people: Callable[[Found, Hashable], Losses | None] = lambda *_: None,
    *,
    keeps_facts: bool = True,
) -> Shown:
    """Release of a query, for every front end: warn, pay, read, draw and show, in this order.

    ``shown``: makes the answer of the releases and of what was read.
    ``people``: for the ledger: who stands in each row, by the column of that name, and the privacy loss of each;
        None where that is not known.
    ``keeps_facts``: whether one answer alone keeps the curator's numbers, for whoever asks it for them later.
    """
    curator, dataset = asker.curator, asker.dataset
    payer = _payer(asker)
    if payer is not None and query.replaces:
        raise ParameterError(
            'a ledger adds up losses by adding or removing a record, and the eps of neighbours="replace-one" promises '
            "something else: leave out the ledger or neighbours=."
        )
    warn_before(query)
    with paying(query, asker.ledger, asker.fresh, dataset, engine.origin) as payment:
        query = _with_groups_shown(query, engine, payment)
        sees = bool(curator) or payer is None
        wanted = sees and (bool(curator) or (keeps_facts and is_release(query)))
        later = wanted and not curator and engine.reads_later and can_read_later(query)
        rules = payment.policy
        at_once = (wanted and not later) or (payer is not None and rules.keeps_facts)
        reading = engine.read(query if at_once else replace(query, has_facts=False))
        mechanisms = [query.mechanism(at, universe) for at, universe in enumerate(reading.universes)]
        noisy, draws = payment.remembered, payment.remembered_draws or []
        if noisy is None or (query.selection is not None and not reading.summaries[0].n.size):  # no group is shown
            noisy = drawn(query, mechanisms, reading.summaries, rules)
            draws = [new_draw() for _ in noisy]
        elif [numbers.shape[-1:] for numbers in noisy] != [
            _shape(query, reading.summaries[lead]) for lead in query.leads
        ]:
            raise LedgerError("the ledger remembers the answer to another question: it is damaged. See verify().")
        looked = [_looked(rules, line) for line in query.lines]
        known: Sequence[Callable[[], Facts] | None] = [None] * len(looked)
        if later:
            known = [facts_read_later(query, mechanisms[0], engine, reading.summaries[0], looked[0])]
        elif wanted:
            known = _known(query, mechanisms, reading, looked)
        if query.is_private:  # else eps says nothing, and counts in full
            keys = None if query.selection is None or query.groups is None else query.groups.keys or ()
            payment.settle(
                noisy,
                draws,
                lambda: guarded(lambda: _meant(query, mechanisms, rules, people, reading)),
                None if keys is None else list(map(key_text, keys)),
            )
        tables = [_estimates(query, reading, lead, numbers) for lead, numbers in zip(query.leads, noisy, strict=True)]
        releases = tuple(
            Released(
                line,
                _answers(
                    tables[query.releases[at]],
                    mechanisms[at],
                    noisy[query.releases[at]],
                    rules.base_of(line.statistic),
                    looked[at],
                    weight,
                    query.selection,
                    query.costs[query.releases[at]],
                    draws[query.releases[at]],
                    rules.hides_parts,
                ),
                about,
            )
            for at, (line, weight, about) in enumerate(
                zip(query.lines, map(query.weight, range(len(looked))), known, strict=True)
            )
        )
        least = next((least for line in query.lines if (least := rules.least_group_of(line)) is not None), None)
        size = None if least is None else least.size
        extra, unlisted = float(rules.added(query)), reading.unlisted if sees and query.unit.is_of_people else 0
        price = root(price_of(query, rules))
        measured, state = bool(asker.measured), None if dataset is None else dataset.state_for(payer)
        results = Results(query, releases, extra, size, bool(curator), unlisted, price, measured, state)
        answer = shown(results, reading)
    try:
        warn_after(results.releases, is_table=isinstance(answer, pd.DataFrame))
        if results.shows_curator:
            warn_of_left_out(results.releases)
    except (
        NoisyReleaseWarning,
        DoubtfulReleaseWarning,
    ):  # where warnings are errors: what a ledger paid for is not lost for that
        if payer is None:
            raise
    return answer


def can_read_later(query: Query) -> bool:
    """Whether the noise of one number is added to exact sums, and the curator's numbers need more than these.

    By such sums a later reading tells that it is of the same data.
    """
    line = query.lines[0]
    if not query.shares or line.universe is None:
        return False
    draws = query.mechanism(0).draws
    return draws.only_sums and draws != line.needs


def is_release(query: Query) -> bool:
    """Whether the answer is one number, which keeps the curator's numbers unasked; tables show what was asked for."""
    return query.groups is None and len(query.lines) == 1


def check_affordable(queries: Sequence[tuple[Query, Origin]], asker: Asker) -> None:
    """Refuse several queries that cannot all be paid, before the first one is; each is paid by itself later.

    Those of a Dataset whose answers the ledger may remember are not checked: what it remembers is free, and what is
    paid stays for the next time.
    """
    payer = _payer(asker)
    if payer is not None:
        payer.check(queries, None if asker.fresh else asker.dataset)


def _payer(asker: Asker) -> Ledger | None:
    """What pays; refuses the curator's numbers to others."""
    checked_flag("curator", asker.curator)
    checked_flag("measured", asker.measured)
    payer = ledger_for(asker.ledger)
    if asker.curator and payer is not None:
        check_curator(payer, "curator=True")
    return payer


def _with_groups_shown(query: Query, engine: Engine[Found], payment: Payment) -> Query:
    """The query with the private keys that are shown: chosen by chance now, or when the answer was paid.

    A second reading then knows no others, so that nothing of the answer tells of groups that are not shown.
    """
    if query.selection is None or query.groups is None:
        return query
    sizes = engine.group_sizes(query)
    if payment.remembered_keys is None:
        chosen = np.flatnonzero(drawn_once(query.selection, Summary(sizes.n)))
        keys = tuple(sizes.keys[at] for at in chosen)
    else:
        before = set(payment.remembered_keys)
        keys = tuple(key for key in sizes.keys if key_text(key) in before)
        if len(keys) != len(before):
            raise LedgerError("the ledger remembers the answer to another question: it is damaged. See verify().")
    return replace(query, groups=replace(query.groups, keys=keys))


def drawn(query: Query, mechanisms: Sequence[Mechanism], summaries: Sequence[Summary], rules: Policy) -> list[Drawn]:
    """The drawn numbers of each release; none for groups of too few people, which a noisy count decides."""
    result: list[Drawn] = []
    sizes: dict[Any, Drawn] = {}
    for lead in query.leads:
        line, summary = query.lines[lead], summaries[lead]
        if query.margins is not None:
            parts = _mechanisms_of_margins(query, lead, mechanisms[lead].universe)
            result.append(drawn_margins(query.margins, _places(query), parts, summary, drawn_once))
            continue
        if mechanisms[lead].is_of_all_lines:
            lines = zip(summaries, query.releases, strict=True)
            summary = replace(
                summary, together=tuple(line_summary for line_summary, at in lines if at == query.releases[lead])
            )
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


def _mechanisms_of_margins(query: Query, lead: int, universe: Universe) -> dict[Axes, Mechanism]:
    """The mechanism of each table that a release measures, with its part of eps."""
    assert query.margins is not None
    share = query.shares[query.releases[lead]]
    return {axes: query.mechanism(lead, universe, share * part) for axes, part in query.margins.shares}


def _places(query: Query) -> IntArray:
    """Where the listed groups stand in the grid of the margins."""
    assert query.margins is not None
    if query.groups is None:  # bins of a histogram
        return np.arange(query.margins.cells)
    assert query.groups.keys is not None
    return query.margins.grid.places(query.groups.keys)


def _shape(query: Query, summary: Summary) -> tuple[int, ...]:
    """Shape of what is drawn for one number of a release."""
    return summary.n.shape if query.margins is None else (size_of(query.margins),)


def _estimates(query: Query, reading: Reading, lead: int, noisy: Drawn) -> MarginEstimates | None:
    """The tables that a release with margins gives; None without margins."""
    if query.margins is None:
        return None
    parts = _mechanisms_of_margins(query, lead, reading.universes[lead])
    return MarginEstimates(query.margins, _places(query), parts, noisy)


def _answers(tables: MarginEstimates | None, *arguments: Any) -> NoisyAnswers:
    """Answers of a line, with margins or without."""
    if tables is None:
        return NoisyAnswers(*arguments)
    if (divisor := tables.margins.divisor) is not None:
        return ShareAnswers(*arguments, estimates=tables, divisor=divisor)
    return MarginAnswers(*arguments, estimates=tables)


def _known(
    query: Query, mechanisms: Sequence[Mechanism], reading: Reading, looked: Sequence[float]
) -> Sequence[Callable[[], Facts]]:
    """For each line what gives the curator's numbers."""
    if len(mechanisms) == 1:
        return [facts_of_one(query, mechanisms[0], reading, looked[0])]
    return [lambda one=one: one for one in facts_of_lines(query, mechanisms, reading, looked)]  # type: ignore[misc]


def _looked(rules: Policy, line: Line) -> float:
    """The eps paid for the noisy number of people that a line needs."""
    least = rules.least_group_of(line)
    return 0.0 if least is None else float(least.eps)


def _meant(
    query: Query,
    mechanisms: Sequence[Mechanism],
    rules: Policy,
    people: Callable[[Found, Hashable], Losses | None],
    reading: Found,
) -> Meaning:
    """Meaning of an answer for the people in these data; `Meaning.counting` holds what was paid to count them."""
    known = facts_of_lines(query, mechanisms, reading, [0.0] * len(mechanisms))
    values = sum(query.shares, Fraction(0)) * query.times
    return Meaning(
        loss=float(np.max(sum(known[lead].loss for lead in query.leads), initial=0.0)),
        counting=float(rules.cost(query) - values),
        local_sensitivity=[float(np.max(one.local_sensitivity, initial=0.0)) for one in known],
        n=[int(np.min(one.n, initial=np.iinfo(np.int64).max)) for one in known],
        # What private keys cost a person depends on who else is in the group, and may be more than eps.
        people=None if rules.person is None or query.selection is not None else people(reading, rules.person),
    )
