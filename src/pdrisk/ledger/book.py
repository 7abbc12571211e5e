"""The ledger of one dataset."""

from __future__ import annotations

import datetime
import getpass
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from pdrisk.errors import BudgetExceededError, ColumnTypeError, LedgerError, ParameterError, PolicyError
from pdrisk.ledger.ambient import ambient
from pdrisk.ledger.audit import EVERYBODY, period, table_of, verified, written
from pdrisk.ledger.limits import WINDOWS, Limits, Spent, check, payable, shown
from pdrisk.ledger.policy import Policy, check_policy
from pdrisk.ledger.question import name_of, question
from pdrisk.ledger.records import START, chained
from pdrisk.ledger.remaining import Remaining, remaining_of
from pdrisk.ledger.store import SqliteStore, Store
from pdrisk.query import Query

__all__ = ["Ledger"]


class Ledger:
    """The budget of one dataset: limits, payments and an audit of every request, in one file.

    Parameters
    ----------
    where : path
        The file; made if it is not there. Many datasets may share it.
    dataset : str
        Whose budget this is: everything that is about the same people.
    eps, eps_per_day, eps_per_month, eps_per_query : float, optional
        Largest privacy loss, in nats: in total, in a calendar day or month (UTC), of one query.
    queries, queries_per_day, queries_per_month : int, optional
        Largest number of queries.
    risk : float, optional
        Highest worst-case risk of all releases together, another way to write ``eps``.
    analyst : str, optional
        Who asks; the name of the user unless given.
    each_analyst : dict, optional
        The same limits for every analyst alone, as in ``{"eps": 1, "queries_per_day": 20}``.
    policy : dict, optional
        Rules beside the budget: ``refuse_statistics`` and ``refuse_columns``, lists of names; ``round_to``, a dict from
        statistic to the base its answers are rounded to; ``bounds_from_data`` and ``keys_from_data``, which allow
        ``bounds="column"`` and ``keys="observed"``.

    Raises
    ------
    ParameterError
        If a new dataset gets no limit, or a known one other limits than it has.
    LedgerError
        If the file cannot be used.

    Notes
    -----
    Every answer is paid in one transaction before the data is read: whatever fails later stays paid. Sums are exact.
    Limits are set when a dataset is entered and changed by `amend` only, which the audit shows.

    Examples
    --------
    >>> import tempfile, pandas as pd, pdrisk
    >>> ledger = pdrisk.Ledger(tempfile.mkdtemp() + "/budget.db", dataset="survey 2019", eps=1)
    >>> df = pd.DataFrame({"distance": [3, 1, 10, 675, 17]})
    >>> with ledger:
    ...     answer = df.dprisk.count(eps=0.1)
    >>> ledger.remaining().eps
    0.9
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        dataset: str,
        eps: float | None = None,
        eps_per_day: float | None = None,
        eps_per_month: float | None = None,
        eps_per_query: float | None = None,
        queries: int | None = None,
        queries_per_day: int | None = None,
        queries_per_month: int | None = None,
        risk: float | None = None,
        analyst: str | None = None,
        each_analyst: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        self._dataset = _named("dataset", dataset)
        self._analyst = _named("analyst", _user() if analyst is None else analyst)
        whole = Limits.given(
            {
                "eps": eps, "eps_per_day": eps_per_day, "eps_per_month": eps_per_month, "eps_per_query": eps_per_query,
                "queries": queries, "queries_per_day": queries_per_day, "queries_per_month": queries_per_month,
                "risk": risk,
            }
        )  # fmt: skip
        each = None if each_analyst is None else _each(each_analyst)
        rules = None if policy is None else Policy.given(policy)
        self._store: Store = SqliteStore(where)  # now that nothing else is wrong: it makes the file
        self._enter_dataset(whole, each, rules)

    @classmethod
    def datasets(cls, where: str | os.PathLike[str]) -> list[str]:
        """The datasets that a ledger file knows.

        Raises
        ------
        LedgerError
            If there is no such file.
        """
        with SqliteStore(where, known=True).reading() as ask:
            return [name for (name,) in ask("SELECT name FROM datasets ORDER BY name")]

    @property
    def dataset(self) -> str:
        """Whose budget this is."""
        return self._dataset

    @property
    def analyst(self) -> str:
        """Who asks."""
        return self._analyst

    @property
    def limits(self) -> Limits:
        """What may be asked of the dataset by all together."""
        with self._store.reading() as ask:
            return self._rules(ask)[0]

    def __repr__(self) -> str:
        return f"{self._store.place}, dataset {self._dataset!r}, analyst {self._analyst!r}\n{self.remaining()!r}"

    def __enter__(self) -> Ledger:
        ambient.set((*ambient.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        # Its own, not the innermost: a generator leaves its block in whatever context closes it.
        around = list(ambient.get())
        for place in range(len(around) - 1, -1, -1):
            if around[place] is self:
                del around[place]
                break
        ambient.set(tuple(around))

    # --- Paying ---------------------------------------------------------------------------------------------------

    def pay(self, query: Query) -> tuple[int, Policy]:
        """Check, record and spend in one transaction.

        Returns
        -------
        (int, Policy)
            The number of the record, and the rules for what is shown.

        Raises
        ------
        BudgetExceededError
            If a limit is in the way: recorded, nothing spent.
        PolicyError
            If the answer would not be differentially private: recorded, nothing spent.
        LedgerError
            If the ledger cannot be written.
        """
        asked, name, cost = question(query), name_of(query), payable(query.eps)
        json.dumps(asked)  # whatever a label does when it is written out, it does before the transaction
        refusal: BudgetExceededError | PolicyError | None = None
        seq, policy = 0, Policy()
        with self._store.writing() as ask:
            now = self._now(ask)
            try:
                whole, each, policy = self._rules(ask)
                check_policy(query, policy, name)
                spent = {who: self._spent(ask, who, now) for who in (EVERYBODY, self._analyst)}
                check(name, cost, whole, spent[EVERYBODY], f"dataset {self._dataset!r}")
                check(name, cost, each, spent[self._analyst], f"analyst {self._analyst!r}")
            except (BudgetExceededError, PolicyError) as error:
                refusal = error
                self._record(ask, now, "refused", Fraction(0), {"question": asked, "reason": str(error)})
            else:
                seq = self._record(ask, now, "paid", cost, {"question": asked})
                for who, windows in spent.items():
                    for window, before in windows.items():
                        self._spend(ask, who, period(window, now), before, cost)
                    if self._spent(ask, who, now)[""].eps != spent[who][""].eps + cost:
                        raise LedgerError(f"{self._store.place} does not keep what is written; nothing was answered.")
        if refusal is not None:
            raise refusal
        return seq, policy

    def failed(self, seq: int) -> None:
        """Mark a query that was paid for and failed; it stays paid."""
        with self._store.writing() as ask:
            self._record(ask, self._now(ask), "failed", Fraction(0), {"of": seq})

    # --- Looking --------------------------------------------------------------------------------------------------

    def remaining(self) -> Remaining:
        """What may still be asked, by this analyst."""
        with self._store.reading() as ask:
            now = self._now(ask)
            whole, each, _ = self._rules(ask)
            limits = {EVERYBODY: whole, self._analyst: each}
            spent = {who: self._spent(ask, who, now) for who in limits}
        return remaining_of(limits, spent, EVERYBODY)

    def history(self) -> pd.DataFrame:
        """Every request of this dataset: when, who, what, what became of it, and what it cost.

        Returns
        -------
        DataFrame
            Indexed by ``seq``, with ``time analyst event eps total query reason``; ``total`` is the eps paid so far.
        """
        with self._store.reading() as ask:
            rows = ask(
                "SELECT seq, time, analyst, event, eps, body FROM records WHERE dataset = ? ORDER BY seq",
                (self._dataset,),
            )
        return table_of(rows)

    def verify(self, head: tuple[int, str] | None = None) -> tuple[int, str]:
        """See that no record was changed, added between, or taken out, and that the sums are those of the records.

        Parameters
        ----------
        head : (int, str), optional
            What an earlier call returned, kept elsewhere: shows too whether records were cut off at the end, or all
            hashes were computed anew.

        Returns
        -------
        (int, str)
            Number and hash of the last record: note it down.

        Raises
        ------
        LedgerError
            That says at which record the ledger is broken.
        """
        with self._store.reading() as ask:
            rows = ask("SELECT seq, time, dataset, analyst, event, eps, body, hash FROM records ORDER BY seq")
            spending = ask("SELECT dataset, analyst, period, eps, queries FROM spending")
            datasets = ask("SELECT name, limits FROM datasets")
            changed = self._store.changed(ask)
        last = verified(self._store.place, rows, spending, datasets, head)
        if changed:
            raise LedgerError(f"{self._store.place} is broken: somebody changed its tables or triggers.")
        return last

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the history to a CSV or JSON file, whole or not at all.

        Raises
        ------
        ParameterError
            If the name ends in neither ``.csv`` nor ``.json``.
        """
        if self._store.holds(Path(path)):
            raise ParameterError("export would overwrite the ledger itself: name another file.")
        return written(self.history(), path)

    def amend(
        self, each_analyst: Mapping[str, Any] | None = None, policy: Mapping[str, Any] | None = None, **limits: Any
    ) -> None:
        """The owner's: change limits and rules from now on; the audit shows it. What is not named stays.

        Parameters
        ----------
        each_analyst, policy : dict, optional
            All limits of every analyst alone, and all rules.
        **limits
            As for `Ledger`; None takes a limit away, ``risk=None`` that of eps.
        """
        new = Limits.given(limits)
        if "risk" in limits and limits["risk"] is None:
            limits.setdefault("eps", None)
        with self._store.writing() as ask:
            whole, each, rules = self._rules(ask)
            merged = whole.texts | new.texts
            for name, value in limits.items():
                if value is None and name not in new.texts and name != "risk":
                    merged.pop(name, None)
            each = each if each_analyst is None else _each(each_analyst)
            rules = rules if policy is None else Policy.given(policy)
            if not merged and not each.texts:
                raise ParameterError("a dataset needs a limit: without one a ledger holds nothing.")
            text = _rules_text(Limits.stored(merged), each, rules)
            ask("UPDATE datasets SET limits = ? WHERE name = ?", (text, self._dataset))
            self._record(ask, self._now(ask), "amended", Fraction(0), {"limits": json.loads(text)})

    # --- Inside a transaction -----------------------------------------------------------------------------------------

    def _enter_dataset(self, whole: Limits, each: Limits | None, policy: Policy | None) -> None:
        with self._store.writing() as ask:
            if not ask("SELECT 1 FROM datasets WHERE name = ?", (self._dataset,)):
                if whole == Limits() and each in (None, Limits()):
                    raise ParameterError(
                        f"dataset {self._dataset!r} is new to {self._store.place}: give it a limit, such as eps=1."
                    )
                if ask("SELECT 1 FROM records WHERE dataset = ? LIMIT 1", (self._dataset,)):
                    raise LedgerError(
                        f"{self._store.place} has records of dataset {self._dataset!r}, but not its limits: it is "
                        "damaged. Restore it from a copy."
                    )
                text = _rules_text(whole, each or Limits(), policy or Policy())
                ask("INSERT INTO datasets (name, limits) VALUES (?, ?)", (self._dataset, text))
                self._record(ask, self._now(ask), "opened", Fraction(0), {"limits": json.loads(text)})
                return
            known, known_each, known_policy = self._rules(ask)
        if (
            not whole.texts.items() <= known.texts.items()
            or (each is not None and each != known_each)
            or (policy is not None and policy != known_policy)
        ):
            raise ParameterError(
                f"dataset {self._dataset!r} has other limits ({_listed(known, known_each, known_policy)}): leave them "
                "out to use those; its owner changes them with ledger.amend(...)."
            )

    def _rules(self, ask: Any) -> tuple[Limits, Limits, Policy]:
        """The limits of all together and of each analyst, and the owner's rules."""
        ((text,),) = ask("SELECT limits FROM datasets WHERE name = ?", (self._dataset,))
        stored = json.loads(text)
        try:
            policy = Policy.given(stored["policy"])
        except ParameterError:
            raise KeyError from None  # as everything that no ledger wrote
        return Limits.stored(stored["whole"]), Limits.stored(stored["each_analyst"]), policy

    def _now(self, ask: Any) -> datetime.datetime:
        """The clock, or the last record's time if the clock went back: no window is opened twice."""
        now = datetime.datetime.now(datetime.UTC)
        rows = ask("SELECT time FROM records WHERE seq = (SELECT max(seq) FROM records)")
        return max([now, *(datetime.datetime.fromisoformat(row[0]) for row in rows)])

    def _spent(self, ask: Any, analyst: str, now: datetime.datetime) -> dict[str, Spent]:
        found = {}
        for window in WINDOWS:
            rows = ask(
                "SELECT eps, queries FROM spending WHERE dataset = ? AND analyst = ? AND period = ?",
                (self._dataset, analyst, period(window, now)),
            )
            found[window] = Spent(Fraction(rows[0][0]), rows[0][1]) if rows else Spent()
        return found

    def _spend(self, ask: Any, analyst: str, period: str, before: Spent, eps: Fraction) -> None:
        ask(
            "INSERT INTO spending (dataset, analyst, period, eps, queries) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset, analyst, period) DO UPDATE SET eps = excluded.eps, queries = excluded.queries",
            (self._dataset, analyst, period, str(before.eps + eps), before.queries + 1),
        )

    def _record(self, ask: Any, now: datetime.datetime, event: str, eps: Fraction, body: dict[str, Any]) -> int:
        rows = ask("SELECT seq, hash FROM records WHERE seq = (SELECT max(seq) FROM records)")
        last, before = rows[0] if rows else (0, START)
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        row = (last + 1, now.isoformat(timespec="microseconds"), self._dataset, self._analyst, event, str(eps), text)
        ask(
            "INSERT INTO records (seq, time, dataset, analyst, event, eps, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, chained(before, *row)),
        )
        if ask("SELECT max(seq) FROM records") != [(last + 1,)]:
            raise LedgerError(f"{self._store.place} does not keep what is written; nothing was answered.")
        return last + 1


def _rules_text(whole: Limits, each: Limits, policy: Policy) -> str:
    return json.dumps({"whole": whole.texts, "each_analyst": each.texts, "policy": policy.said}, sort_keys=True)


def _listed(whole: Limits, each: Limits, policy: Policy) -> str:
    said = [f"{name}={shown(Fraction(text))}" for name, text in whole.texts.items()]
    said += [f"{name}={shown(Fraction(text))} for each analyst" for name, text in each.texts.items()]
    return ", ".join([*said, *(f"{name}={value}" for name, value in policy.said.items())])


def _each(said: object) -> Limits:
    if not isinstance(said, Mapping):
        raise ColumnTypeError('each_analyst must be a dict of limits, as in {"eps": 1}.')
    return Limits.given(said)


def _named(what: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ColumnTypeError(f"{what} must be a name, as text in one line that is not empty.")
    return value


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
