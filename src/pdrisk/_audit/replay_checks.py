"""Checks of record and replay: pieces of many random questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from pdrisk._audit.findings import Check
from pdrisk._audit.joins import random_join
from pdrisk._audit.people import random_people
from pdrisk._audit.questions import AuditQuestion, Generator, random_question
from pdrisk._audit.replay import ROUNDING, Diverged, recorded, replayed

FRONTS = ("accessor", "sql", "people", "joins")
MOST_REFUSED = 0.2  # of the questions of a piece: else it tests too little


def replay_checks(questions: Mapping[str, int], pieces: int, seed: int) -> Iterator[Callable[[], Check]]:
    """The replay checks, each to be run: so many questions to each front end, in so many pieces."""
    for front, many in questions.items():
        for piece in np.array_split(np.arange(many), min(pieces, many)):
            yield lambda front=front, piece=piece: _checked(front, range(piece[0], piece[-1] + 1), seed)  # type: ignore[misc]


def _case(generator: Generator, front: str) -> AuditQuestion:
    """A random question to a front end."""
    match front:
        case "people":
            return random_people(generator)
        case "joins":
            return random_join(generator)
        case _:
            return random_question(generator, front)


def _checked(front: str, numbers: range, seed: int) -> Check:
    """Check of all questions of a piece; it reports the first finding, with the number that repeats its question."""
    worst, refused, asked = 0.0, 0, 0
    name = f"{front}: questions {numbers[0]:,} to {numbers[-1]:,}"
    for number in numbers:
        generator = np.random.default_rng([seed, number, FRONTS.index(front)])
        case = _case(generator, front)
        pair = (case.first, case.second) if number % 2 else (case.second, case.first)
        asked += 1
        before = recorded(case.ask, pair[0])
        refused += not before.draws
        try:
            loss = replayed(case.ask, pair[1], before).loss
        except Diverged as found:
            problem = str(found)
        else:
            worst = max(worst, loss / case.eps)
            beyond = loss > case.eps + ROUNDING
            problem = f"answers that cost {case.eps:g} lose {loss:.6g} together" if beyond else ""
        if problem:
            finding = f"question {number}: {problem}. Asked: {case.words}"
            return Check("replay", name, False, 1.0, worst, asked, finding)
    if refused > MOST_REFUSED * asked + 3:
        return Check("replay", name, False, 1.0, worst, asked, f"{refused} of {asked} questions were refused")
    return Check("replay", name, True, 1.0, worst, asked)
