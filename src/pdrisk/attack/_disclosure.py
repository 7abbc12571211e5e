"""Attribute disclosure and intersection: what tables reveal about everybody though nobody in them is alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._ledger import check_curator
from pdrisk._model.arguments import epsilon
from pdrisk._model.declared.aliases import Eps
from pdrisk._model.expressions.columns import check_column
from pdrisk.attack._arguments import check_table
from pdrisk.attack._outcome import LEVEL, Outcome, Outcomes, of_guesses
from pdrisk.attack._publications import noisy_counts
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_CELLS = 50_000_000


@own_errors
def attribute_disclosure(
    frame: pd.DataFrame, on: Hashable | list[Hashable], secret: Hashable, *, eps: Eps = 1, level: float = LEVEL
) -> Outcomes:
    """Attribute disclosure: everybody's secret is guessed from a table of counts of their class. Curator only.

    The attacker knows each person's values of the columns ``on`` and guesses the most frequent secret of the class. If
    a whole class shares one secret, the guess is right for everybody in it, however large the class is.

    Parameters
    ----------
    frame : DataFrame
        One row for each person; a missing value counts as a value.
    on : column or list of columns
        Columns that the attacker knows.
    secret : column
        Column that the attacker wants to know, with few different values.
    eps : float
        Privacy loss of the whole noisy table, in nats.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    Outcomes
        ``"exact"`` and ``"noisy"``. Nothing is claimed: a table may tell what people like you are like, with and
        without your row in it. ``chance`` is the share of right guesses from the exact table of everybody but the
        person; what is achieved beyond it is due to the person's own row. The details of ``"exact"`` have the share of
        people ``sure``, whose whole class has one secret.

    Notes
    -----
    Guesses about people of one class depend on each other; the interval is computed as if they did not.

    Examples
    --------
    >>> import pandas as pd
    >>> staff = pd.DataFrame({"job": ["a"] * 5 + ["b"] * 6, "ill": [True] * 5 + [True, False] * 3})
    >>> attribute_disclosure(staff, "job", "ill")["exact"].details["sure"]         # five of eleven, in a class of five
    0.45454545454545453
    """
    check_curator(None, "attack.attribute_disclosure()")
    codes, values, table = _counts(frame, on, secret)
    rows = np.arange(len(codes))
    others = table[codes].astype(np.float64)
    others[rows, values] -= 1
    alone = others.sum(axis=1) == 0
    frequent = int(np.argmax(table.sum(axis=0)))
    without = np.where(alone, frequent, _likeliest(others))
    chance = float((without == values).mean())
    sure = float(((table > 0).sum(axis=1) == 1)[codes].mean())
    loss = epsilon(eps)
    guesses = {"exact": (_likeliest(table), {"sure": sure}), "noisy": (_likeliest(noisy_counts(table, loss)), {})}
    question = f"what is the {secret} of somebody whose class is known?"
    outcomes: list[Outcome] = []
    for name, (best, details) in guesses.items():
        right = int((best[codes] == values).sum())
        outcomes.append(
            of_guesses(
                name, question, right, len(codes), claimed=None, chance=chance, level=level,
                details=details | {"classes": len(table)},
            )
        )  # fmt: skip
    return Outcomes(outcomes)


@own_errors
def intersection(
    first: pd.DataFrame,
    second: pd.DataFrame,
    on: Sequence[Any],
    secret: Hashable,
    *,
    level: float = LEVEL,
) -> Outcomes:
    """Intersection attack: two publications, each k-anonymous, of tables that share people. Curator only.

    The attacker knows a person's values in both tables, and that the secret is among those of the person's class in
    each. So it is among the secrets that both classes have. The guess is the one with the largest product of both
    shares.

    Parameters
    ----------
    first, second : DataFrame
        One row for each person, whose index says who it is; both have the secret of the people in both.
    on : pair of columns, or of lists of columns
        The columns by which each table is published in classes.
    secret : column
        Column that the attacker wants to know.

    Returns
    -------
    Outcomes
        ``"first"``, ``"second"`` and ``"both"``, about the people in both tables; nothing is claimed. Details: ``k``,
        the size of the smallest class, and ``sure``, the share of people for whom only one secret is left.

    References
    ----------
    S. R. Ganta, S. P. Kasiviswanathan, A. Smith, Composition attacks and auxiliary information in data privacy, KDD
    2008.
    """
    check_curator(None, "attack.intersection()")
    if not isinstance(on, list | tuple) or len(on) != 2:
        raise ColumnTypeError("on is a pair: the columns of the first table, and those of the second.")
    for frame in (first, second):
        if not isinstance(frame, pd.DataFrame) or not frame.index.is_unique:
            raise ColumnTypeError("both tables are DataFrames, whose index says who each row is, each person once.")
    shared = first.index.intersection(second.index)
    if not len(shared):
        raise ParameterError("nobody is in both tables: there is nothing to intersect.")
    known = pd.Index(pd.concat([first[secret], second[secret]]).unique())
    held, shares, smallest = {}, {}, {}
    for name, frame, columns in (("first", first, on[0]), ("second", second, on[1])):
        codes, _, table = _counts(frame, columns, secret, known)
        at = frame.index.get_indexer(shared)
        shares[name] = table[codes[at]] / table.sum(axis=1)[codes[at], np.newaxis]
        held[name] = known.get_indexer(pd.Index(frame[secret].iloc[at]))
        smallest[name] = int(table.sum(axis=1).min())
    if not np.array_equal(held["first"], held["second"]):
        raise ParameterError("the secret of somebody differs between the tables: it must be the same in both.")
    truth = held["first"]
    shares["both"], smallest["both"] = shares["first"] * shares["second"], min(smallest.values())
    chance = float(np.bincount(truth).max() / len(truth))
    outcomes: list[Outcome] = []
    for name, share in shares.items():
        details = {"k": smallest[name], "sure": float(((share > 0).sum(axis=1) == 1).mean())}
        right = int((_likeliest(share) == truth).sum())
        question = f"what is the {secret} of somebody in both tables?"
        outcomes.append(
            of_guesses(name, question, right, len(truth), claimed=None, chance=chance, level=level, details=details)
        )
    return Outcomes(outcomes)


def _counts(frame: pd.DataFrame, on: Any, secret: Hashable, known: Any = None) -> tuple[IntArray, IntArray, IntArray]:
    """The class of each row, its secret, and how many of each class have each secret."""
    check_table(frame)
    columns = list(on) if isinstance(on, list) else [on]
    for column in (*columns, secret):
        check_column(frame, column)
    if not columns:
        raise ParameterError("on= names no column: list what the attacker knows.")
    if not len(frame):
        raise ParameterError("the table is empty: there is nobody to guess about.")
    codes = frame.groupby(columns, dropna=False, observed=True, sort=False).ngroup().to_numpy()
    index = pd.Index(frame[secret].unique()) if known is None else known
    values = index.get_indexer(pd.Index(frame[secret]))
    classes, secrets = int(codes.max()) + 1, len(index)
    if classes * secrets > MOST_CELLS:
        raise ParameterError(f"{classes:,} classes by {secrets:,} secrets is too large a table: take fewer of either.")
    table = np.bincount(codes * secrets + values, minlength=classes * secrets).reshape(classes, secrets)
    return codes.astype(np.int64), values.astype(np.int64), table.astype(np.int64)


def _likeliest(table: IntArray | FloatArray) -> Any:
    """The column of the largest number in each row; one of several at random."""
    tied = table >= table.max(axis=1, keepdims=True)
    return np.argmax(tied * np.random.default_rng().random(table.shape), axis=1)
