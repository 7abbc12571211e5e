"""Differencing and trackers: harmless queries whose sums and differences isolate one person (Denning 1979)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors, shown
from pdrisk._ledger import check_curator
from pdrisk._model.declared.aliases import Eps
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._outcome import LEVEL, Outcomes
from pdrisk.attack._publications import Isolating, selected
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError

MOST_CONDITIONS = 12
MOST_VALUES = 200  # of a column that a general tracker is looked for in
KINDS = ("individual", "general")


@own_errors
def differencing(
    frame: pd.DataFrame,
    secret: str,
    where: str,
    without: str,
    *,
    eps: Eps = 0.5,
    least: int = 5,
    base: int = 10,
    trials: int = 10_000,
    level: float = LEVEL,
) -> Outcomes:
    """Differencing attack: two filters that differ by one person reveal that person's secret. Curator only.

    Parameters
    ----------
    frame : DataFrame
        One row for each person.
    secret : str
        What the attacker wants to know: a column of truth values, or a query string such as ``"income > 1e5"``.
    where, without : str
        Filters as query strings. The second selects the same rows as the first except for one person.
    eps : float
        Privacy loss of each noisy answer, in nats.
    least : int
        Fewest records, and fewest left out, for which the restricted publication answers.
    base : int
        Base to whose multiples the rounded publication rounds.
    trials : int
        Number of attacks; before each a coin decides the person's secret.

    Returns
    -------
    Outcomes
        ``"exact"``, ``"rounded"``, ``"restricted"`` (queries about few records are refused) and ``"noisy"``. Only the
        last claims anything: the worst case of the eps of all answers that the person is in. The details have the
        queries and how many records each selects.

    Raises
    ------
    ParameterError
        If the filters do not differ by exactly one person.

    Examples
    --------
    >>> import pandas as pd
    >>> staff = pd.DataFrame({"age": range(20, 60), "ill": [False, True] * 20})
    >>> found = differencing(staff, "ill", "age >= 30", "age >= 31")
    >>> found["exact"].achieved, found["noisy"].verdict
    (1.0, 'kept')
    """
    check_curator(None, "attack.differencing()")
    has = selected(frame, secret)
    first, second = selected(frame, where), selected(frame, without)
    apart = int((first & ~second).sum())
    if apart != 1 or (second & ~first).any():
        raise ParameterError(
            f"the filters isolate nobody: {apart} people are in the first and not in the second, and "
            f"{int((second & ~first).sum())} the other way round, where it should be 1 and 0."
        )
    others = has & ~(first & ~second)
    isolating = Isolating(
        (where, without),
        (1, -1),
        (int(first.sum()), int(second.sum())),
        (int((others & first).sum()), int((others & second).sum())),
        (True, False),
        len(frame),
    )
    question = f"{secret}: is it true of the one person that the filters differ by?"
    return _of(isolating, question, eps=eps, least=least, base=base, trials=trials, level=level)


@own_errors
def tracker(
    frame: pd.DataFrame,
    person: Mapping[Hashable, Any],
    secret: str,
    *,
    kind: str = "individual",
    eps: Eps = 0.5,
    least: int = 5,
    base: int = 10,
    trials: int = 10_000,
    level: float = LEVEL,
) -> Outcomes:
    """Tracker attack: padded queries evade a least query size and isolate one person. Curator only.

    A database may refuse queries about fewer than ``least`` records, or about all but fewer. It still answers each of
    these:

    - *individual tracker*: of the conditions A and B that together only this person meets, ``[A]`` less ``[A and not
      B]``;
    - *general tracker*: with any T of medium size, the same for everybody, ``[C or T] + [C or not T] - [T] - [not T]``.

    Parameters
    ----------
    frame : DataFrame
        One row for each person.
    person : dict from column to value
        What the attacker knows about the person; nobody else may have all these values.
    secret, eps, least, base, trials, level
        As for `differencing`.
    kind : {"individual", "general"}
        Kind of tracker.

    Returns
    -------
    Outcomes
        As for `differencing`; the details show the queries and the number of records each selects.

    Raises
    ------
    ParameterError
        If not exactly one person meets the conditions, or there is no tracker of this kind.

    References
    ----------
    D. E. Denning, P. J. Denning, M. D. Schwartz, The tracker: a threat to statistical database security, ACM TODS 4
    (1979) 76-96.

    Examples
    --------
    >>> import pandas as pd
    >>> staff = pd.DataFrame({"age": [30, 40] * 20, "sex": ["f"] * 21 + ["m"] * 19, "ill": [True, False] * 20})
    >>> staff.loc[7, "age"] = 61
    >>> found = tracker(staff, {"sex": "f", "age": 61}, "ill")
    >>> found["restricted"].achieved, found["restricted"].details["queries"]
    (1.0, "[sex == 'f'] - [sex == 'f' and not age == 61]")
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"kind is one of {', '.join(KINDS)}, not {shown(kind)}.")
    check_curator(None, "attack.tracker()")
    has = selected(frame, secret)
    conditions = _conditions(frame, person)
    both = np.logical_and.reduce([rows for _, rows in conditions])
    if int(both.sum()) != 1:
        raise ParameterError(f"{int(both.sum())} people meet the conditions of person=, where it should be one.")
    few = checked_number("least", least)
    filters, signs = _individual(conditions, few) if kind == "individual" else _general(frame, conditions, both, few)
    others = has & ~both
    isolating = Isolating(
        tuple(name for name, _ in filters),
        signs,
        tuple(int(rows.sum()) for _, rows in filters),
        tuple(int((rows & others).sum()) for _, rows in filters),
        tuple(bool((rows & both).any()) for _, rows in filters),
        len(frame),
    )
    question = f"{secret}: is it true of the one person with {' and '.join(name for name, _ in conditions)}?"
    return _of(isolating, question, eps=eps, least=few, base=base, trials=trials, level=level)


Filter = tuple[str, Any]


def _of(isolating: Isolating, question: str, *, eps: Any, least: int, base: int, trials: int, level: float) -> Outcomes:
    checked = {name: checked_number(name, value) for name, value in (("least", least), ("base", base))}
    return isolating.outcomes(
        question, eps=eps, trials=checked_number("trials", trials, least=100), level=level, **checked
    )


def _plain(value: Any) -> Any:
    """A value of a frame as Python has it, which is how a query writes it."""
    is_time = isinstance(value, np.datetime64 | np.timedelta64)  # of nanoseconds Python has none
    return value.item() if isinstance(value, np.generic) and not is_time else value


def _conditions(frame: pd.DataFrame, person: object) -> list[Filter]:
    if not isinstance(person, Mapping) or not person:
        raise ColumnTypeError('person is a dict from column to value, as in {"sex": "f", "age": 61}.')
    if len(person) > MOST_CONDITIONS:
        raise ParameterError(f"person has {len(person)} conditions: name the {MOST_CONDITIONS} that tell most.")
    if unknown := [column for column in person if column not in frame.columns]:
        raise UnknownColumnError(f"unknown column {shown(unknown[0])}.")
    return [(f"{column} == {_plain(value)!r}", (frame[column] == value).to_numpy()) for column, value in person.items()]


def _individual(conditions: list[Filter], least: int) -> tuple[list[Filter], tuple[int, ...]]:
    """The conditions parted so that the smaller query is as large as can be, and both are answered."""
    best: tuple[int, list[Filter]] = (-1, [])
    for size in range(1, len(conditions)):
        for known in itertools.combinations(conditions, size):
            rest = [condition for condition in conditions if condition not in known]
            first = np.logical_and.reduce([rows for _, rows in known])
            second = first & ~np.logical_and.reduce([rows for _, rows in rest])
            smaller = min(int(second.sum()), len(first) - int(first.sum()))
            if smaller > best[0]:
                one, other = (" and ".join(name for name, _ in part) for part in (known, rest))
                negated = f"({other})" if len(rest) > 1 else other
                best = smaller, [(one, first), (f"{one} and not {negated}", second)]
    if best[0] < least:
        raise ParameterError(
            f"there is no individual tracker: however the conditions are parted, a query is about fewer than {least} "
            'records, or all but fewer. Try kind="general".'
        )
    return best[1], (1, -1)


def _general(
    frame: pd.DataFrame, conditions: list[Filter], both: Any, least: int
) -> tuple[list[Filter], tuple[int, ...]]:
    """The value of a column that splits the table most evenly."""
    splits: list[tuple[int, str, Any]] = []
    for column in frame.columns:
        values = frame[column].value_counts()
        for value, times in values.head(MOST_VALUES).items():
            splits.append((min(int(times), len(frame) - int(times)), f"{column} == {_plain(value)!r}", (column, value)))
    size, name, place = max(splits, key=lambda split: split[0])
    if size < 2 * least:
        raise ParameterError(
            f"there is no general tracker: no value of a column is that of {2 * least} records or more, and of all but "
            "as many."
        )
    rows = (frame[place[0]] == place[1]).to_numpy()
    person = " and ".join(condition for condition, _ in conditions)
    filters = [
        (f"({person}) or {name}", both | rows),
        (f"({person}) or not {name}", both | ~rows),
        (name, rows),
        (f"not {name}", ~rows),
    ]
    return filters, (1, 1, -1, -1)
