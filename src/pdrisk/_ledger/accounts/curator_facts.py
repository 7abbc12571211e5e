"""Facts of what answers meant for the people in these very data: the curator's, kept only on request."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import math
import numbers
import unicodedata
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.risks.gaussian_dp import UP
from pdrisk._core.risks.risk import posterior
from pdrisk._core.summary import FloatArray
from pdrisk._guard import guarded
from pdrisk._ledger.rules.limits import Spent
from pdrisk._ledger.rules.success_limits import mu_of_losses, success_of
from pdrisk._ledger.store.records import exact
from pdrisk._ledger.store.store import Rows
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.groups.keys import listed_values
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError

IDS, SUMS = np.dtype("<u8"), np.dtype("<f8")


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of one answer for the people in the data."""

    loss: float  # of the most exposed group: the sum over the releases
    counting: float  # the eps paid besides to see how many people there are: everybody's loss
    # `local_sensitivity`, `n`: of each line, the largest and the smallest of its groups
    local_sensitivity: list[float]
    n: list[int]
    # the loss of each person, where that is known: an object array, and floats with NaN where a row was not
    # used
    people: tuple[pd.Series, FloatArray] | None = None

    def text(self, of_people: FloatArray) -> str:
        """The meaning as JSON; losses of people only as their maximum, which may exceed that of one record."""
        loss = max(self.loss + self.counting, float(np.max(of_people, initial=0.0)))
        return json.dumps({"loss": loss, "local_sensitivity": self.local_sensitivity, "n": self.n})


@dataclass(frozen=True, slots=True)
class Odometer:
    """Losses of people by all answers: 24 bytes for each person."""

    who: str  # by which column and which secret people are told apart
    # The eps of the answers that are in ``losses``. Whatever else was paid counts in full for everybody.
    counted: Fraction
    people: NDArray[np.uint64]  # keyed hashes of who they are, in order; shape (P,)
    # `losses`, `mu2`: the sum, and the sum of m^2 between the data with and without the person; shape (P,)
    losses: FloatArray
    mu2: FloatArray

    @classmethod
    def stored(cls, rows: Rows, who: str) -> Odometer:
        """The odometer in a dataset's row; an empty one if there is none, or if it tells people apart differently."""
        if rows:
            known, counted, people, losses, mu2 = rows[0]
            ids, sums = np.frombuffer(people, IDS), np.frombuffer(losses, SUMS)
            in_order = len(ids) == len(sums) and np.all(ids[1:] > ids[:-1])
            if not in_order or not _are_sums(sums):
                raise ValueError  # as everything that no ledger wrote
            squares = mu_of_losses(sums) ** 2 if mu2 is None else np.frombuffer(mu2, SUMS)
            if len(squares) != len(ids) or not _are_sums(squares):
                raise ValueError
            if known == who:
                return cls(who, exact(counted), ids, sums, squares)
        return cls(who, Fraction(0), np.empty(0, IDS), np.empty(0, SUMS), np.empty(0, SUMS))

    @property
    def row(self) -> tuple[str, str, bytes, bytes, bytes]:
        """The odometer as it is stored."""
        sums = self.losses.astype(SUMS).tobytes(), self.mu2.astype(SUMS).tobytes()
        return self.who, str(self.counted), self.people.astype(IDS).tobytes(), *sums

    def after(self, eps: Fraction, mu2: Fraction, people: NDArray[np.uint64], losses: FloatArray) -> Odometer:
        """The odometer after one more answer, which cost ``eps`` and ``mu2``, and each of its people this loss."""
        known, sums, squares = self.people, self.losses.copy(), self.mu2.copy()
        new = people[~self._has(people)]
        if len(new):
            known = np.concatenate([known, new])
            order = np.argsort(known, kind="stable")  # of two runs in order: one merge
            known, sums, squares = known[order], *(np.pad(old, (0, len(new)))[order] for old in (sums, squares))
        at = np.searchsorted(known, people)
        sums[at] += losses
        squares[at] += np.minimum(mu_of_losses(losses) ** 2, float(mu2)) * UP
        return Odometer(self.who, self.counted + eps, known, sums, squares)

    def of(self, people: NDArray[np.uint64], paid: Spent) -> tuple[FloatArray, FloatArray]:
        """Losses and m^2 of these people by all that was ``paid``; NaN for people whom no answer can be about."""
        rest = float(max(paid.eps - self.counted, Fraction(0)))  # of answers that may be about anybody
        losses = np.full(len(people), np.nan if len(self.people) and not rest else 0.0)
        squares, there = losses.copy(), self._has(people)
        at = np.searchsorted(self.people, people[there])
        losses[there], squares[there] = self.losses[at], self.mu2[at]
        return losses + rest, np.minimum(squares + mu_of_losses(np.array([rest])) ** 2, float(paid.mu2) * UP)

    def _has(self, people: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if not len(self.people):
            return np.zeros(len(people), dtype=bool)
        place = np.minimum(np.searchsorted(self.people, people), len(self.people) - 1)
        return self.people[place] == people


def _are_sums(sums: FloatArray) -> bool:
    return bool(np.all((sums >= 0) & (sums < np.inf)))


def who_by(column: Hashable, key: bytes) -> str:
    """How people are told apart: by a column, and by a secret that this does not reveal."""
    return json.dumps([str(column), hashlib.blake2b(b"odometer", key=key, digest_size=16).hexdigest()])


def who_lost(
    ids: pd.Series, losses: FloatArray, eps: Fraction, counting: float, key: bytes
) -> tuple[NDArray[np.uint64], FloatArray]:
    """Hashes of the people in the rows, in order, and their losses by an answer that costs ``eps``.

    ``counting`` is what it cost besides to count the rows.

    ``ids``: shape (R,)
    ``losses``: shape (R,). NaN where the row was not used.
    """
    hashed, missing = people_of(ids, key)
    used = ~np.isnan(losses[~missing])
    people, place = np.unique(hashed[~missing], return_inverse=True)
    sums = np.bincount(place, weights=np.where(used, losses[~missing], 0.0), minlength=len(people))
    rows = np.bincount(place, weights=used, minlength=len(people))
    # The loss of a row is not that of a person with several: each row moves an answer by GS at most.
    return people, np.where(rows > 1, rows * float(eps), sums) + np.maximum(rows, 1) * counting


def people_of(ids: pd.Series, key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Keyed hashes of people's ids, the same for 7, 7.0 and "7"; and which ids are missing.

    ``ids``: shape (R,)
    ``key``: a secret: without it, nobody can try out whether a person is there.
    """
    missing = ids.isna().to_numpy(dtype=bool)
    present = ids[~missing]
    if not pd.api.types.is_integer_dtype(present.dtype):
        places, different = pd.factorize(present)
        spelled = np.array([_spelled(value) for value in different], dtype=object)
        texts = spelled[places] if len(spelled) else spelled
    else:
        texts = present.astype(str).to_numpy(dtype=object)
    hashed = np.zeros(len(ids), np.uint64)
    hashed[~missing] = pd.util.hash_array(texts, encoding="utf-8", hash_key=key.hex()[:16], categorize=False)
    return hashed, missing


def _spelled(value: object) -> str:
    """An id in one spelling, whatever the dtype of its column."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, numbers.Real | decimal.Decimal):
        whole = math.isfinite(value) and value == math.floor(value)
        return str(math.floor(value) if whole else float(value))
    if isinstance(value, datetime.date | np.datetime64):
        return pd.Timestamp(value).isoformat()
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return unicodedata.normalize("NFC", text).strip().encode("utf-8", "backslashreplace").decode("utf-8")


def people_table(people: object, column: Hashable, odometer: Odometer, paid: Spent, key: bytes) -> pd.DataFrame:
    """Table of the losses of these people by everything that was paid, as `Ledger.odometer` returns it."""
    ids = _ids(people, column)
    hashed, missing = guarded(lambda: people_of(ids, key))
    losses, squares = (np.where(missing, np.nan, sums) for sums in odometer.of(hashed, paid))
    known = ~np.isnan(losses)
    risks = np.full(len(losses), np.nan)
    risks[known] = posterior(losses[known])
    table = pd.DataFrame({"loss": losses, "two_worlds": risks, "fixed_success": _fixed(squares)})
    table.index = pd.Index(ids, dtype=ids.dtype, name=column)
    return mark_exact(table)


def _fixed(mu2: FloatArray) -> FloatArray:
    """Success about these people by answers whose eps were fixed beforehand; NaN stays."""
    different, at = np.unique(mu2, return_inverse=True)
    return np.array([np.nan if np.isnan(square) else success_of(Fraction(square)) for square in different])[at]


def _ids(people: object, column: Hashable) -> pd.Series:
    """The ids asked for: a list or Series of ids, or the column of ids of a frame."""
    if isinstance(people, pd.DataFrame):
        if column is None or column not in people.columns:
            lacks = "no column of ids was declared" if column is None else f"the frame has no column {column!r}"
            raise UnknownColumnError(
                f'{lacks}: ids are declared as in pdrisk.Dataset(frame, person="pid", ledger=ledger). Pass a frame '
                "with that column, or a list of ids."
            )
        check_column(people, column)
        return people[column]
    if isinstance(people, pd.Series):
        return people
    listed = (
        None
        if isinstance(people, str) or (isinstance(people, np.ndarray) and people.ndim > 1)
        else listed_values(people, "people")
    )
    if listed is None:
        raise ColumnTypeError(f"pass a frame, or a list of people's ids, not of type {type(people).__name__}.")
    with suppress(UnicodeEncodeError):
        return pd.Series(listed)
    raise ParameterError("the id of a person holds half of a surrogate pair: take it out.")


def facts_table(rows: Sequence[tuple[int, str | None, Spent, str | None]]) -> pd.DataFrame:
    """Table of what each answer meant, from ``seq query cost body``; an answer without facts counts in full."""
    facts = [None if body is None else _fact(body) for *_, body in rows]
    eps, mu2 = [float(cost.eps) for _, _, cost, _ in rows], np.array([float(cost.mu2) for _, _, cost, _ in rows])
    loss = np.array(
        [price if fact is None else fact["loss"] for price, fact in zip(eps, facts, strict=True)], dtype=float
    )
    total, squares = np.cumsum(loss), np.minimum(mu_of_losses(loss) ** 2, mu2) * UP
    table = pd.DataFrame(
        {
            "query": pd.Series([query for _, query, _, _ in rows], dtype=object),
            "eps": np.array(eps, dtype=float),
            "loss": loss,
            "known": np.array([fact is not None for fact in facts], dtype=bool),
            "total": total,
            "two_worlds": np.asarray(posterior(total), dtype=float),
            "mu": np.sqrt(squares),
            "fixed_success": _fixed(np.cumsum(squares)),
            "local_sensitivity": pd.Series([fact and fact["local_sensitivity"] for fact in facts], dtype=object),
            "n": pd.Series([fact and fact["n"] for fact in facts], dtype=object),
        }
    )
    table.index = pd.Index([seq for seq, *_ in rows], name="seq", dtype="int64")
    return mark_exact(table)


def _fact(body: str) -> dict[str, Any]:
    fact: dict[str, Any] = json.loads(body)
    if not 0 <= float(fact["loss"]) < math.inf:
        raise ValueError  # as everything that no ledger wrote
    return fact | {"n": list(fact["n"]), "local_sensitivity": list(fact["local_sensitivity"])}
