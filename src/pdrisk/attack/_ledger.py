"""Attack on a whole ledger: all answers that it paid for, combined by how likely they are with and without a person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.foreign import own_errors
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.risks.gaussian_dp import promised
from pdrisk._core.risks.risk import belief, posterior
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.weighted import SumOfWeights
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.publishing.promise import promise_of
from pdrisk._ledger.store.store import decoded
from pdrisk._mechanisms import Mechanism
from pdrisk._model.unit import Unit
from pdrisk.attack._arguments import check_table, checked_number
from pdrisk.attack._informed import ROUNDING, worst_pair
from pdrisk.attack._likelihood import Unknown, log_likelihoods
from pdrisk.attack._outcome import LEVEL, Outcome, of_guesses
from pdrisk.attack._publications import selected
from pdrisk.attack._worlds import draws_of, mechanism_of, present, summary_of
from pdrisk.errors import ColumnTypeError, ParameterError

OF_RECORDS: Final = ("where", "by", "person", "unit")
ELSEWHERE: Final = ("source", "derived", "missing", "where_trusted", "filter", "condition", "other")
INTERVALS: Final = {"exponential_interval": "exponential", "weighted_exponential_interval": "weighted_exponential"}
QUESTION: Final = "is this person in the data, by all answers together?"


@dataclass(frozen=True, slots=True)
class _Release:
    """One draw that a person is in: with so many records in each of so many groups."""

    mechanism: Mechanism
    rows: int = 1
    groups: int = 1
    # as JSON, what decides which records it is about: the column, the filter, the groups, and who a person is
    about: str = "{}"


@own_errors
def ledger(
    of: Any,
    records: pd.DataFrame | None = None,
    person: int | None = None,
    *,
    trials: int = 10_000,
    level: float = LEVEL,
) -> Outcome:
    """Ledger attack: all answers that a ledger paid for, combined by the best attacker, beside the ledger's limit.

    The attacker knows everybody else, the records in question and how noise is drawn, and wants to know whether one
    person is in the data, whom every answer is about. Before the answers, a coin decides. He adds up how much likelier
    each answer is with the person than without, and guesses the likelier case: no attacker is right more often.

    Parameters
    ----------
    of : Ledger
        Its audit says what was asked, at which eps, within which bounds. Answers are drawn anew.
    records : DataFrame, optional
        The data that the answers are about. Curator only. Without them no data are read: of each answer the most
        telling pair of neighbours is attacked, all of them about one person, and the outcome may be published.
    person : int, optional
        Position in ``records`` of a row of the person. Answers whose filter leaves the person out tell nothing.
    trials : int
        Number of attacks in each of the two worlds.

    Returns
    -------
    Outcome
        ``claimed`` is what the ledger's limits promise of all answers, None without a limit of success or eps. Details:
        the number of ``answers`` that were combined and of those ``left out``, whose likelihood is not known or whose
        question cannot be asked again from the audit alone, as in SQL if ``records`` are given; the claim ``if fixed``,
        had all eps been fixed beforehand; the ``highest belief`` that any attack led to, and ``worst_case``, what all
        eps together allow.

    Raises
    ------
    ParameterError
        If no answer can be attacked.

    Notes
    -----
    Questions are those of the audit, whatever came out: an attacker who chooses questions by earlier answers is not
    simulated. What was remembered tells nothing new. What failed after it was paid counts as if it had been seen, for
    the outcome must not tell which did; of given records it is left out.

    Examples
    --------
    >>> import tempfile, pandas as pd, pdrisk
    >>> book = pdrisk.Ledger(tempfile.mkdtemp() + "/budget.db", dataset="survey 2026", success=0.75)
    >>> frame = pd.DataFrame({"hours": range(60)})
    >>> with book:
    ...     answers = [frame.dprisk.mean("hours", eps=0.2, bounds=(0, 60)), frame.dprisk.count(eps=0.3)]
    >>> outcome = pdrisk.attack.ledger(book)
    >>> outcome.verdict, outcome.claimed, 0.56 < outcome.achieved < 0.62
    ('kept', 0.75, True)
    """
    if not isinstance(of, Payer):
        raise ColumnTypeError(f"attack.ledger() takes a Ledger, not {type(of).__name__}.")
    size, promise, data = checked_number("trials", trials, least=100), promise_of(of), None
    if (records is None) != (person is None):
        raise ParameterError("person= is a position in records=: pass both, or neither.")
    if records is not None:
        of.check_curator("attack.ledger()")
        data = _Data.of(records, person)
    counts: Counter[_Release] = Counter()
    left_out = 0
    for body in _paid(of, with_failed=data is None):
        releases = list(_releases(body, data is not None))
        counts.update(draw for draw in releases if draw is not None)
        left_out += sum(draw is None for draw in releases)
    odds, answers, eps = np.zeros((2, size)), 0, Fraction(0)
    for release, times in counts.items():
        try:
            odds += _log_odds(release, times, size, _worst(release) if data is None else data.worlds(release))
        except (Unknown, ParameterError, KeyError, TypeError, ValueError):  # as of data that lack a column
            left_out += times
            continue
        answers += times
        eps += times * release.groups * release.rows * release.mechanism.eps
    if not answers:
        raise ParameterError("no answer of this ledger can be attacked: nothing was paid, or no likelihood is known.")
    odds[np.abs(odds) < ROUNDING] = 0
    toss = np.random.default_rng().random(odds.shape) < 0.5
    right = int((np.where(odds == 0, toss, odds > 0) == np.array([[False], [True]])).sum())
    details = {
        "answers": answers,
        "left out": left_out,
        "if fixed": promised(promise.paid.mu2, promise.paid.delta),
        "highest belief": float(belief(np.abs(odds), 0.5).max()),
        "worst_case": float(posterior(float(eps))),
    }
    return of_guesses(
        f"ledger of {of.dataset}", QUESTION, right, 2 * size, claimed=promise.limit, chance=0.5, level=level,
        details=details,
    )  # fmt: skip


def _paid(of: Payer, with_failed: bool) -> list[Mapping[str, Any]]:
    """The records of all answers that were paid, or of those that were given: only the curator may know which."""
    with of._reading() as account:
        rows = account.ask(
            "SELECT seq, event, body FROM records WHERE dataset = ? AND event IN ('paid', 'failed')", (account.dataset,)
        )
        place = account.place

    def given() -> list[Mapping[str, Any]]:
        bodies = {seq: (event, json.loads(text)) for seq, event, text in rows}
        failed = set() if with_failed else {body["of"] for event, body in bodies.values() if event == "failed"}
        return [body for seq, (event, body) in bodies.items() if event == "paid" and seq not in failed]

    return decoded(place, given)


def _releases(body: Mapping[str, Any], of_data: bool) -> Iterator[_Release | None]:
    """The draws of one answer that a person is in; None for one that cannot be drawn again, of data or of any."""
    asked = body["question"]
    lines, times = asked["lines"], asked.get("times", 1)
    about = {name: asked[name] for name in (*OF_RECORDS, *ELSEWHERE) if name in asked} if of_data else None
    numbers = asked.get("releases", range(len(lines)))
    together: dict[int, list[Mapping[str, Any]]] = {}
    for line, number in zip(lines, numbers, strict=True):
        together.setdefault(number, []).append(line)
    unit = _unit(asked)
    for members in together.values():
        try:
            release = _release(members, unit, about)
        except (ParameterError, ColumnTypeError, TypeError, KeyError, ValueError):  # as of earlier versions
            release = None
        yield from [release] * times
    looks = [event for event in body.get("events", ())[len(together) :] if event["mechanism"] == "geometric"]
    for look in looks:
        counted = _mechanism("count", Fraction(look["eps"]), None, "geometric", {})
        yield from [_Release(counted, about=json.dumps(about or {}))] * times
    if asked.get("keys") == "private":
        yield from [None] * times  # which groups are shown


def _unit(asked: Mapping[str, Any]) -> Unit:
    """The unit of a question, as it was judged."""
    unit, keys = asked.get("unit"), asked.get("keys")
    if unit is None or unit == "row":
        return Unit()
    rows = listed = unit.get("rows", 1)
    if isinstance(keys, Mapping | list):
        listed = max(keys["count"] if isinstance(keys, Mapping) else len(keys), 1)
    return Unit(("person",), None, rows, unit.get("groups", min(rows, listed)), overall="groups" not in unit)


def _division(unit: Unit, statistic: Statistic, name: str) -> tuple[int, int]:
    """How many rows of a person there are in each of how many groups, where that moves the answers most."""
    if not unit.overall:
        return unit.rows, unit.groups
    few = unit.rows // unit.groups
    apart = name == "laplace" and unit.groups * statistic.rows_weight(few) > statistic.rows_weight(unit.rows)
    return (few, unit.groups) if apart else (unit.rows, 1)


def _release(members: list[Mapping[str, Any]], unit: Unit, about: Mapping[str, Any] | None) -> _Release | None:
    """A draw with its mechanism as it was calibrated; None if the audit does not tell it."""
    lead = next((line for line in members if line["bounds"] is not None), members[0])
    if lead["bounds"] == "column" or "neighbours" in lead:
        return None
    name, share = lead.get("mechanism", "laplace"), Fraction(lead["eps"])
    is_count = name == "geometric" and lead["bounds"] is None  # of values, people or bins: one record moves it by 1
    labels = "count" if is_count else [line["statistic"] for line in members]
    mechanism = _mechanism(labels, share, lead["bounds"], name, lead)
    weight = unit.weight_of(mechanism.statistic, name, share)
    if weight != 1:
        mechanism = _mechanism(labels, share / weight, lead["bounds"], name, lead)
    line_parts = {name: lead[name] for name in ("column", "filter", "condition", "other") if name in lead}
    text = json.dumps({} if about is None else {**about, **line_parts})
    rows, groups = _division(unit, mechanism.statistic, name)
    if about is not None and unit.overall:  # of data the rows of one group are known
        rows, groups = unit.rows, 1
    return _Release(mechanism, rows, groups, text)


def _mechanism(labels: Any, eps: Fraction, bounds: Any, name: str, lead: Mapping[str, Any]) -> Mechanism:
    interval = name in INTERVALS
    asked = labels[0] if isinstance(labels, list) and len(labels) == 1 else labels
    if asked == SumOfWeights.name and "other" not in lead:
        asked = "sum"  # of the weights
    if "other" in lead:
        bounds = [tuple(bounds), tuple(lead["other_bounds"])]
    step = 1 if name == "geometric" and bounds is not None else lead.get("step")
    return mechanism_of(
        asked, eps=eps, bounds=bounds, mechanism=INTERVALS.get(name, name), step=step, interval=interval,
        n_at_least=lead.get("n_at_least"),
    )  # fmt: skip


def _worst(release: _Release) -> list[FloatArray]:
    """The pair of worlds that a first look tells apart best, with as many records of the person as count."""
    if isinstance(release.mechanism.statistic, OfTwoColumns) and release.rows > 1:
        raise Unknown
    few = [release.mechanism.universe.lo] * 2
    if not isinstance(release.mechanism.statistic, OfTwoColumns):  # a first look, at what can be told at all
        summary = summary_of(release.mechanism, [few[:1], few])
        log_likelihoods(release.mechanism, summary, draws_of(release.mechanism, summary, 1))
    base, more = worst_pair(release.mechanism, alone=True)
    return [base, np.concatenate([base, np.repeat(more[-1:], release.rows, axis=0)])]


def _log_odds(release: _Release, times: int, size: int, worlds: list[FloatArray]) -> FloatArray:
    """How much likelier so many answers of a kind are with the person, in sum, shape (2, trials)."""
    mechanism, total = release.mechanism, np.zeros((2, size))
    if len(worlds[0]) == len(worlds[1]):
        return total  # the answer is not about the person
    summary = summary_of(mechanism, worlds)
    for _ in range(times * release.groups):
        likely = log_likelihoods(mechanism, summary, draws_of(mechanism, summary, size))
        total += (likely[1] - likely[0]).reshape(2, size)
    return total


@dataclass(frozen=True, slots=True)
class _Data:
    """The curator's data, and where in them the person is."""

    frame: pd.DataFrame
    at: int

    @classmethod
    def of(cls, frame: object, person: object) -> _Data:
        check_table(frame)
        assert isinstance(frame, pd.DataFrame)
        if isinstance(person, bool) or not isinstance(person, int | np.integer) or not 0 <= person < len(frame):
            raise ParameterError(f"person is a position from 0 to {len(frame) - 1:,} among records.")
        return cls(frame, int(person))

    def _alike(self, name: str) -> NDArray[np.bool_]:
        """The records with the person's value of a column; none where that is missing."""
        codes, _ = pd.factorize(self.frame[name])
        return np.asarray((codes == codes[self.at]) & (codes[self.at] >= 0), dtype=bool)

    def worlds(self, release: _Release) -> list[FloatArray]:
        """The records of an answer without the person, and with: of groups those of one that the person is in."""
        about = json.loads(release.about)
        if release.groups > 1 or any(name in about for name in ELSEWHERE):
            raise Unknown
        unit = about.get("unit", {})
        if unit != "row" and unit.get("per_person"):
            raise Unknown
        frame = self.frame
        rows = np.ones(len(frame), dtype=bool) if "where" not in about else selected(frame, about["where"])
        for name in about.get("by", ()):
            rows &= self._alike(name)
        person_rows = np.arange(len(frame)) == self.at
        if unit != "row" and (columns := about.get("person", ())):
            person_rows = np.logical_and.reduce([self._alike(name) for name in columns])
        column = about.get("column")
        if release.mechanism.statistic.bounded:
            values = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.where(True if column is None else frame[column].notna().to_numpy(), 0.0, np.nan) * np.ones(
                len(frame)
            )
        others, of_person = present(values[rows & ~person_rows]), present(values[rows & person_rows])
        return [others, np.concatenate([others, of_person[: release.rows]])]
