"""The ledger of one dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
import pandas as pd

from pdrisk._guard import guarded
from pdrisk._ledger import ambient
from pdrisk._ledger.account import Account, known_as, names_of
from pdrisk._ledger.audit import EVERYBODY, verify
from pdrisk._ledger.curator import Meaning, facts_table, people_table, who_by, who_lost
from pdrisk._ledger.history import exported, listed, table_of, words, write
from pdrisk._ledger.limits import Limits
from pdrisk._ledger.location import is_there, store_at
from pdrisk._ledger.memory import Identity, key_of
from pdrisk._ledger.names import check_asker, named, user
from pdrisk._ledger.policy import Policy, check_policy
from pdrisk._ledger.question import events, name_of, question
from pdrisk._ledger.receipt import Receipt
from pdrisk._ledger.records import exact
from pdrisk._ledger.remaining import Remaining, remaining_of
from pdrisk._ledger.rules import Rules, each_given
from pdrisk._ledger.secret import secret
from pdrisk._ledger.store import Ask, Head, Rows, Store, decoded
from pdrisk._model.query import Query
from pdrisk._model.unit import same_people
from pdrisk._printing import preformatted
from pdrisk.engines.base import Origin
from pdrisk.errors import BudgetExceededError, ColumnTypeError, ParameterError, PolicyError

__all__ = ["Ledger"]


Told = TypeVar("Told")


class Ledger:
    """The budget of one dataset: limits, payments and an audit of every request.

    Parameters
    ----------
    where : path or URL
        A file, made if it is not there, or a PostgreSQL server, ``postgresql://user@host/database``. Many datasets may
        share it.
    dataset : str
        Whose budget this is: everything that is about the same people.
    eps, eps_per_day, eps_per_month, eps_per_query : float, optional
        Largest privacy loss, in nats: in total, in a calendar day or month (UTC), of one query.
    queries, queries_per_day, queries_per_month : int, optional
        Largest number of queries.
    risk : float, optional
        Highest worst-case risk of all releases together, another way to write ``eps``.
    delta : float, optional
        Largest sum of the ``delta`` of answers with ``keys="private"``, of all time; without it there are none.
    analyst : str, optional
        Who asks; the name of the user unless given. Capitals and blanks make no other analyst. On a PostgreSQL server
        it is the role of the session: leave it out.
    each_analyst : dict, optional
        The same limits for every analyst alone, as in ``{"eps": 1, "queries_per_day": 20}``.
    policy : dict, optional
        Rules beside the budget: ``refuse_statistics`` and ``refuse_columns``, lists of names; ``round_to``, a dict from
        statistic to the base its answers are rounded to; ``bounds_from_data`` and ``keys_from_data``, which allow
        ``bounds="column"`` and ``keys="observed"``; ``least_group={"size": 20, "eps": 0.1}``, which withholds answers
        about fewer people by a noisy number of them that costs eps; ``curator_facts``, which lets the ledger keep what
        the answers meant; ``curators``, the analysts who may see what depends on the data, as `facts` and `odometer`.
    head : (int, str), optional
        What `verify` returned earlier, kept elsewhere: a ledger that does not hold this record any more is refused.

    Raises
    ------
    ParameterError
        If a new dataset gets no limit, or a known one other limits than it has.
    LedgerError
        If the file cannot be used, or was put back to an earlier state than this process, or ``head``, knows of.

    Notes
    -----
    Every answer is paid in one transaction before the data is read: whatever fails later stays paid. Sums are exact.
    Limits are set when a dataset is entered and changed by `amend` only, which the audit shows. A ledger knows no data:
    a `Dataset` that it pays for does, and lets it remember answers.

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
        delta: float | None = None,
        analyst: str | None = None,
        each_analyst: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        head: Head | None = None,
    ) -> None:
        self._dataset = named("dataset", dataset)
        self._analyst = named("analyst", user() if analyst is None else analyst)
        whole = Limits.given(
            {
                "eps": eps, "eps_per_day": eps_per_day, "eps_per_month": eps_per_month, "eps_per_query": eps_per_query,
                "queries": queries, "queries_per_day": queries_per_day, "queries_per_month": queries_per_month,
                "risk": risk, "delta": delta,
            }
        )  # fmt: skip
        rules = Rules(
            whole,
            Limits() if each_analyst is None else each_given(each_analyst),
            Policy() if policy is None else Policy.given(policy),
        )
        if not rules.has_limits and not is_there(where):
            raise ParameterError(f"{self._dataset!r} would begin a new ledger: give it a limit, such as eps=1.")
        self._store: Store = store_at(where, head=head)  # now that nothing else is wrong: it makes the file
        check_asker(self._store, analyst)
        self._enter_dataset(rules, each_analyst is not None, policy is not None)

    @classmethod
    def datasets(cls, where: str | os.PathLike[str], *, head: Head | None = None) -> list[str]:
        """The datasets that a ledger file knows.

        Parameters
        ----------
        where : path or URL
        head : (int, str), optional
            As for `Ledger`.

        Raises
        ------
        LedgerError
            If there is no such file, or it does not hold the record that was noted down.
        """
        store = store_at(where, known=True, head=head)
        with store.reading() as ask:
            return names_of(ask, store.place)

    @property
    def dataset(self) -> str:
        """Whose budget this is."""
        return self._dataset

    @property
    def analyst(self) -> str:
        """Who asks."""
        return self._store.analyst or self._analyst

    @property
    def _payer(self) -> tuple[str, str, str]:
        """What pays, however often it is opened: the ledger, the dataset and the analyst."""
        return self._store.where, self._dataset, self.analyst

    @property
    def _budget(self) -> tuple[str, str]:
        """What is paid from, whoever asks: the ledger and the dataset."""
        return self._store.where, self._dataset

    @property
    def limits(self) -> Limits:
        """What may be asked of the dataset by all together."""
        with self._reading() as account:
            return account.rules().whole

    def __repr__(self) -> str:
        return f"{self._store.place}, dataset {self._dataset!r}, analyst {self.analyst!r}\n{self.remaining()!r}"

    def _repr_html_(self) -> str:
        return preformatted(repr(self))

    def __enter__(self) -> Ledger:
        ambient.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        ambient.leave(self)

    # --- Paying ---------------------------------------------------------------------------------------------------

    def identify(self, data: Identity) -> None:
        """Write down which data a Dataset holds and who a person is in them, if that is new to the ledger.

        Raises
        ------
        ParameterError
            If people were told apart by another column before.
        """
        if data.is_known_to(self._budget):
            return
        with self._reading() as account:
            known, person = account.state_of_data(), None if data.person is None else account.person()
        self._check_person(person, data.person)
        state = data.state
        is_new = state is not None and (known is None or known[1] != state)
        if is_new or (data.person is not None and person is None):
            with self._writing() as account:
                known = account.state_of_data()  # somebody else may have written meanwhile
                if state is not None and (known is None or known[1] != state):
                    known = account.record("data", {"state": state}), state
                if data.person is not None and account.person() is None:
                    account.record("person", {"column": data.person})
        data.know(self._budget, None if state is None or known is None else known[0])

    def _check_person(self, known: Hashable | None, asked: Hashable | None) -> None:
        """Refuse another unit than that of the budget: what a person and what a person's day may lose do not add up."""
        if known is not None and asked is not None and not same_people(known, asked):
            raise ParameterError(
                f"the people of dataset {self._dataset!r} are told apart by column {known!r}, not {asked!r}, "
                f"and a budget holds for one kind of person: declare person={known!r}."
            )

    def pay(
        self, query: Query, fresh: bool = False, dataset: Identity | None = None, origin: Origin | None = None
    ) -> Receipt:
        """Check, record and spend in one transaction, unless the answer was paid for before and is remembered.

        Parameters
        ----------
        query : Query
        fresh : bool
            Pay even if the answer is remembered.
        dataset : Identity, optional
            The Dataset that is asked; without it nothing is remembered, and nobody knows who a person is.
        origin : Origin, optional
            Where the data are that will be read; without it nothing is remembered.

        Raises
        ------
        BudgetExceededError
            If a limit is in the way: recorded, nothing spent.
        PolicyError
            If the owner's rules do not allow it: recorded, nothing spent.
        LedgerError
            If the ledger cannot be written.
        """
        asked, unit = question(query), query.unit
        json.dumps(asked)  # whatever a label does when it is written out, it does before the transaction
        data = Identity({}) if dataset is None else dataset
        had_changed, about = data.has_changed, data.about(query, origin, self._budget)
        with self._writing() as account:
            if data.has_changed and not had_changed:
                account.record("changed", {})
            try:
                rules = account.rules()
                known = account.person()
                self._check_person(known, unit.label)
                if unit.of_rows and known is not None:
                    raise ParameterError(
                        f"the budget of dataset {self._dataset!r} is that of people, told apart by {known!r}, and "
                        'unit="row" promises something else for its eps: leave it out.'
                    )
                if not unit.person and account.declared_person() is not None:
                    raise ParameterError(
                        f"the budget of dataset {self._dataset!r} is that of people, told apart by {known!r}, and this "
                        "question does not say who a person is, so that its eps would be that of a row: ask the "
                        f"Dataset, or pass person={known!r} and how the rows of a person count."
                    )
                if unit.is_of_people and known is None:
                    account.record("person", {"column": unit.label})
                policy = rules.policy.for_person(data.person if data.is_known_to(self._budget) else None)
                check_policy(query, rules.policy, name_of(query))
                key = None
                if policy.least_group is not None:
                    asked["least_group"] = policy.said["least_group"]
                if about is not None:
                    key = key_of(asked, about)
                    kept = None if fresh else account.remembered(key)
                    if kept is not None:
                        record, noisy, keys = kept
                        account.record("remembered", {"question": asked, "of": record})
                        return Receipt(policy, remembered=noisy, keys=keys)
                body: dict[str, Any] = {"question": asked, "events": events(query, policy.counted(query))}
                return Receipt(policy, account.pay(query, rules, body), key)
            except (BudgetExceededError, PolicyError) as error:
                refusal = error
            account.record("refused", {"question": asked, "reason": str(refusal)})
        raise refusal

    def check(self, queries: Sequence[Query]) -> None:
        """Refuse queries that cannot be paid one after another; nothing is spent.

        Raises
        ------
        BudgetExceededError, PolicyError
            As `pay` does for the first that cannot be paid: recorded.
        """
        asked = [question(query) for query in queries]
        with self._writing() as account:
            rules, spent = account.rules(), account.spent()
            for query, said in zip(queries, asked, strict=True):
                try:
                    check_policy(query, rules.policy, name_of(query))
                    _, spent = account.after(query, rules, spent)
                except (BudgetExceededError, PolicyError) as error:
                    refusal = error
                    account.record("refused", {"question": said, "reason": str(refusal)})
                    break
            else:
                return
        raise refusal

    def failed(self, receipt: Receipt) -> None:
        """Mark a query that was paid for and failed; it stays paid."""
        if receipt.seq is not None:
            with self._writing() as account:
                account.record("failed", {"of": receipt.seq})

    def keep(self, query: Query, receipt: Receipt, answer: str, meaning: Meaning | None) -> None:
        """Keep what the owner wants to be kept of an answer, whose noisy values are a text of `memory.text_of`."""
        if receipt.seq is None or (receipt.key is None and meaning is None):
            return
        people = None
        if meaning is not None and meaning.people is not None:
            ids, losses = meaning.people
            people = guarded(lambda: who_lost(ids, losses, query.eps, meaning.counting, secret()))
        with self._writing() as account:
            if receipt.key is not None:
                account.keep(receipt.seq, receipt.key, answer)
            if meaning is not None:
                account.keep_facts(receipt.seq, meaning.text(people[1] if people else np.empty(0)))
            if people is not None:
                before = account.odometer(who_by(receipt.policy.person, secret()))
                account.keep_odometer(before.after(receipt.policy.cost(query), *people))

    # --- Looking --------------------------------------------------------------------------------------------------

    def remaining(self) -> Remaining:
        """What may still be asked, by this analyst."""
        with self._reading() as account:
            rules, spent = account.rules(), account.spent()
        return remaining_of({EVERYBODY: rules.whole, account.analyst: rules.each}, spent, EVERYBODY)

    def history(self) -> pd.DataFrame:
        """Every request of this dataset: when, who, what, what became of it, and what it cost.

        Returns
        -------
        DataFrame
            Indexed by ``seq``, with ``time analyst event asked eps delta total query bounds mechanism of reason``: what
            was asked for and what was paid, ``total`` the eps paid so far, ``of`` the record that one is about, as the
            payment of a query that failed.
        """
        return self._told(table_of)

    def verify(self, head: Head | None = None) -> Head:
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
        return verify(self._store, head)

    def _told(self, tell: Callable[[Rows], Told]) -> Told:
        """What all records of this dataset say."""
        with self._store.reading() as ask:
            rows = ask(
                "SELECT seq, time, analyst, event, eps, body FROM records WHERE dataset = ? ORDER BY seq",
                (self._dataset,),
            )
        return decoded(self._store.place, lambda: tell(rows))

    def export(self, path: str | os.PathLike[str] | TextIO) -> Path | None:
        """Write the history, with every question as it was recorded.

        Parameters
        ----------
        path : path or open text file
            A CSV or JSON file, which is written whole or not at all; an open file gets CSV.

        Raises
        ------
        ParameterError
            If the name ends in neither ``.csv`` nor ``.json``.
        """
        if not isinstance(path, str | os.PathLike):
            if not hasattr(path, "write"):
                raise ColumnTypeError(f"export writes to a path or an open file, not to {type(path).__name__}.")
            write(self._told(listed), self._dataset, path)
            return None
        if not _names_a_file(path):
            raise ParameterError("export cannot write to a path with NUL or half of a surrogate pair: name another.")
        if self._store.holds(Path(path)):
            raise ParameterError("export would overwrite the ledger itself: name another file.")
        return exported(self._told(listed), self._dataset, path)

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
        with self._writing() as account:
            account.amend(account.rules().amended(each_analyst, policy, limits))

    # --- The curator's --------------------------------------------------------------------------------------------

    def check_curator(self, asked: str) -> None:
        """Refuse to show what depends on the data to anybody but the curators; no data is read, and nothing paid.

        Parameters
        ----------
        asked : str
            What is asked for, as the audit shows it: ``"assess"``.

        Raises
        ------
        PolicyError
            If the policy does not name the analyst as a curator: recorded.
        """
        with self._reading() as account:
            if account.rules().policy.has_curator(account.analyst):
                return
        reason = (
            f"cannot answer {asked} under a ledger: it shows what depends on the data, and {self.analyst!r} is not one "
            f"of the curators of dataset {self._dataset!r}. Its owner names them in the policy, as in "
            f'ledger.amend(policy={{"curators": [{self.analyst!r}]}}).'
        )
        with self._writing() as account:
            account.record("refused", {"curator": asked, "reason": reason})
        raise PolicyError(reason)

    def facts(self) -> pd.DataFrame:
        """Curator only: what each paid answer meant for the most exposed person in these very data.

        Kept if the policy says ``curator_facts``, and of a Dataset with a declared ``person``. An answer of which
        nothing is known counts in full.

        Returns
        -------
        DataFrame
            Indexed by ``seq``, with ``query eps loss known total two_worlds local_sensitivity n``. ``loss`` is
            that of the most exposed group, added over the releases of an answer; ``total`` adds the answers up and
            ``two_worlds`` is the risk that this total means.

        Raises
        ------
        PolicyError
            If the policy does not name you as a curator.
        """
        self.check_curator("facts()")
        with self._reading() as account:
            rows = account.facts()
        return decoded(
            self._store.place,
            lambda: facts_table([(seq, words(json.loads(body)), exact(eps), fact) for seq, body, eps, fact in rows]),
        )

    def odometer(self, people: pd.DataFrame | Iterable[Hashable]) -> pd.DataFrame:
        """Curator only: what all answers together mean for each of these people.

        Kept of a Dataset that declares the column of people's ids: ``Dataset(df, person="pid", per_person="one",
        ledger=ledger)``. Where pdrisk cannot tell whom an answer concerns (SQL, a frame without a Dataset, a filter
        that failed), everybody is charged the full eps.

        Parameters
        ----------
        people : DataFrame with that column, or list or Series of ids

        Returns
        -------
        DataFrame
            One row for each, in order, indexed by id: ``loss``, the sum of eps |f(D) - f(D - x)| / GS over all
            answers, and ``two_worlds``, the risk that it means; NaN where the id is missing, or nobody was ever asked
            about who has it.

        Raises
        ------
        PolicyError
            If the policy does not name you as a curator.
        """
        self.check_curator("odometer()")
        with self._reading() as account:
            column = account.person()
            paid, kept = account.spent()[EVERYBODY][""].eps, account.odometer(who_by(column, secret()))
        return people_table(people, column, kept, paid, secret())

    # --- Inside a transaction -------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Account]:
        with self._store.reading() as ask:
            yield self._account(ask)

    @contextmanager
    def _writing(self) -> Iterator[Account]:
        with self._store.writing() as ask:
            yield self._account(ask)

    def _account(self, ask: Ask) -> Account:
        place, analyst = self._store.place, self._store.analyst
        if analyst is None:
            analyst = known_as(ask, place, self._dataset, self._analyst)
        return Account(ask, self._dataset, analyst, place)

    def _enter_dataset(self, rules: Rules, each_given: bool, policy_given: bool) -> None:
        with self._reading() as account:
            known = account.is_known
        if not known:
            with self._writing() as account:
                known = account.is_known  # by somebody else, meanwhile
                if not known:
                    account.enter(rules)
        with self._reading() as account:
            account.check_same(rules, each_given, policy_given)
            self._analyst = account.analyst


def _names_a_file(path: str | os.PathLike[str]) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
