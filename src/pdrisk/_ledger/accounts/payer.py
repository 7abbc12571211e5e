"""Payer: the budget of one dataset as releases use it; each payment is one transaction of its ledger."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pdrisk._guard import guarded
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.accounts.curator_facts import Meaning, who_by, who_lost
from pdrisk._ledger.accounts.memory import Identity, key_of
from pdrisk._ledger.accounts.publication import beside
from pdrisk._ledger.accounts.receipt import Receipt
from pdrisk._ledger.rules.names import known_as
from pdrisk._ledger.rules.policy import Policy, check_policy
from pdrisk._ledger.rules.price import price_of
from pdrisk._ledger.rules.question import events, identity, name_of, question
from pdrisk._ledger.rules.reserved import ReservedBudget
from pdrisk._ledger.store.secret import secret
from pdrisk._ledger.store.store import Ask, Store
from pdrisk._model.query import Query
from pdrisk._model.unit import Unit, same_people
from pdrisk.engines.base import Origin
from pdrisk.errors import BudgetExceededError, ParameterError, PolicyError


class Payer:
    """Ledger as releases use it: payments, what is recorded of them, and the check of who is a curator.

    Parameters
    ----------
    store : Store
        Where the ledger is kept.
    dataset, analyst : str
        Name of the dataset that pays, and name of the analyst.
    """

    _reservation: int | None = None  # the number of the reservation that pays

    def __init__(self, store: Store, dataset: str, analyst: str) -> None:
        self._store = store
        self._dataset = dataset
        self._analyst = analyst

    @property
    def dataset(self) -> str:
        """Name of the dataset that this budget belongs to."""
        return self._dataset

    @property
    def analyst(self) -> str:
        """Name of the analyst."""
        return self._store.analyst or self._analyst

    @property
    def _payer(self) -> tuple[str, str, str]:
        """Identity of the payer, however often the ledger is opened: the ledger, the dataset and the analyst."""
        return self._store.where, self._dataset, self.analyst

    @property
    def _budget(self) -> tuple[str, str]:
        """Identity of the budget, whoever asks: the ledger and the dataset."""
        return self._store.where, self._dataset

    def identify(self, data: Identity) -> None:
        """Record which data a Dataset holds and which columns say who a person is, if that is new to the ledger.

        Raises
        ------
        ParameterError
            If another column told people apart before.
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
        """Refuse another unit than that of the budget: losses of a person and of a person's day do not add up."""
        if known is not None and asked is not None and not same_people(known, asked):
            raise ParameterError(
                f"the people of dataset {self._dataset!r} are told apart by column {known!r}, not {asked!r}, "
                f"and a budget holds for one kind of person: declare person={known!r}."
            )

    def _check_unit(self, unit: Unit, account: Account) -> None:
        """Refuse another unit than that of the budget; the first unit of people becomes the budget's."""
        unit, known = Unit() if unit.of_clusters else unit, account.person()
        self._check_person(known, unit.label)
        of_people = f"the budget of dataset {self._dataset!r} is that of people, told apart by {known!r}, and"
        if unit.of_rows and known is not None:
            raise ParameterError(f'{of_people} unit="row" promises something else for its eps: leave it out.')
        if not unit.person and account.declared_person() is not None:
            raise ParameterError(
                f"{of_people} this question does not say who a person is, so that its eps would be that of a row: ask "
                f"the Dataset, or pass person={known!r} and how the rows of a person count."
            )
        if unit.is_of_people and known is None:
            account.record("person", {"column": unit.label})

    def pay(
        self, query: Query, fresh: bool = False, dataset: Identity | None = None, origin: Origin | None = None
    ) -> Receipt:
        """Payment of a query: check, record and spend in one transaction, unless a paid answer is remembered.

        Parameters
        ----------
        query : Query
        fresh : bool
            Pay even if the answer is remembered.
        dataset : Identity, optional
            The Dataset that is asked. Without it nothing is remembered, and it is not known who a person is.
        origin : Origin, optional
            Place of the data that will be read. Without it nothing is remembered.

        Raises
        ------
        BudgetExceededError
            If the query goes over a limit. It is recorded; nothing is spent.
        PolicyError
            If the owner's rules do not allow the query. It is recorded; nothing is spent.
        LedgerError
            If the ledger cannot be written.
        """
        asked = question(query)
        json.dumps(asked)  # whatever a label does when it is written out, it does before the transaction
        data = Identity({}) if dataset is None else dataset
        had_changed, about = data.has_changed, data.about(query, origin, self._budget)
        with self._writing() as account:
            if data.has_changed and not had_changed:
                account.record("changed", {})
            try:
                rules = account.rules()
                self._check_unit(query.unit, account)
                policy = rules.policy.for_person(data.person if data.is_known_to(self._budget) else None)
                check_policy(query, rules.policy, name_of(query))
                extra, key = beside(query, rules.policy, account, self._budget), None
                asked = _ruled(asked, policy)
                if about is not None:
                    key = key_of(identity(query, asked), about)
                    kept = None if fresh else account.remembered(key)
                    if kept is not None:
                        record, noisy, draws, keys = kept
                        account.record("remembered", extra | {"question": asked, "of": record})
                        return Receipt(policy, remembered=noisy, draws=draws, keys=keys)
                body = extra | {"question": asked, "events": events(query, policy.counted(query))}
                return Receipt(policy, account.pay(query, rules, body, self._reservation), key)
            except (BudgetExceededError, PolicyError) as error:
                refusal = error
            account.record("refused", {"question": asked, "reason": str(refusal)})
        raise refusal

    def check(self, queries: Sequence[tuple[Query, Origin]], dataset: Identity | None = None) -> None:
        """Check of whether queries can be paid one after another; nothing is spent.

        Parameters
        ----------
        queries : sequence of (Query, Origin)
            And where the data are that each will read.
        dataset : Identity, optional
            The Dataset that is asked: its answers that may be remembered are not counted.

        Raises
        ------
        BudgetExceededError, PolicyError
            As `pay` raises them for the first query that cannot be paid. This is recorded.
        """
        paid = [query for query, origin in queries if dataset is None or not dataset.keeps(query, origin, self._budget)]
        asked = [question(query) for query in paid]
        if not asked:
            return
        with self._writing() as account:
            rules, number = account.rules(), self._reservation
            spent = account.spent() if number is None else account.paid()
            held: ReservedBudget | None = None
            for query, description in zip(paid, asked, strict=True):
                try:
                    check_policy(query, rules.policy, name_of(query))
                    held = held or (None if number is None else account.held(number))
                    cost = account.cost_of(query, rules, spent, held, len(paid) > 1)
                    spent = {who: {at: had + cost for at, had in sums.items()} for who, sums in spent.items()}
                    held = None if held is None else held.after(cost)
                except (BudgetExceededError, PolicyError) as error:
                    refusal = error
                    account.record("refused", {"question": description, "reason": str(refusal)})
                    break
            else:
                return
        raise refusal

    def preview(self, queries: Sequence[Query]) -> Policy:
        """The rules that queries would be answered by, after recording that each was previewed; nothing is spent.

        Raises
        ------
        PolicyError
            If the owner's rules do not allow one of them. It is recorded.
        """
        asked = [question(query) for query in queries]
        with self._writing() as account:
            policy = account.rules().policy
            for query, description in zip(queries, asked, strict=True):
                try:
                    check_policy(query, policy, name_of(query))
                except PolicyError as error:
                    refusal = error
                    account.record("refused", {"question": description, "reason": str(refusal)})
                    break
                account.record("previewed", {"question": description})
            else:
                return policy
        raise refusal

    def remembers(self, query: Query, data: Identity, origin: Origin) -> bool:
        """Whether the answer to a question is remembered, so that it costs nothing."""
        about = data.about(query, origin, self._budget)
        if about is None:
            return False
        with self._reading() as account:
            policy = account.rules().policy.for_person(data.person if data.is_known_to(self._budget) else None)
            return account.remembered(key_of(identity(query, _ruled(question(query), policy)), about)) is not None

    def failed(self, receipt: Receipt) -> None:
        """Record that a paid query failed; it stays paid."""
        if receipt.seq is not None:
            with self._writing() as account:
                account.record("failed", {"of": receipt.seq})

    def keep(self, query: Query, receipt: Receipt, answer: str, meaning: Meaning | None) -> None:
        """Store what the owner wants to keep of an answer; its noisy values are a text made by `memory.text_of`."""
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
                account.keep_odometer(
                    before.after(receipt.policy.cost(query), price_of(query, receipt.policy), *people)
                )

    def check_curator(self, asked: str) -> None:
        """Refusal to show what depends on the data to anybody but the curators. No data is read, and nothing is paid.

        Parameters
        ----------
        asked : str
            What is asked for, as the audit shows it: ``"assess"``.

        Raises
        ------
        PolicyError
            If the policy does not name the analyst as a curator. This is recorded.
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


def _ruled(asked: dict[str, Any], policy: Policy) -> dict[str, Any]:
    """What is asked under a policy: where it withholds, what was withheld before it is another answer."""
    if policy.least_group is None:
        return asked
    # Of private keys: questions that differ in it are not the same.
    shown = {"least_shown": asked["least_group"]} if asked.get("least_group", 1) != 1 else {}
    return asked | shown | {"least_group": policy.said["least_group"]}
