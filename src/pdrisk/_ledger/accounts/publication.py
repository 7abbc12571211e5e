"""Publication of a ledger: a named group of answers, recorded in its chain, which a statement is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pdrisk._core.foreign import shown
from pdrisk._ledger.accounts import ambient
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.rules.names import folded, named
from pdrisk._ledger.rules.policy import Policy
from pdrisk._ledger.store.store import decoded
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.query import Query
from pdrisk.errors import ColumnTypeError, ParameterError, PolicyError

Publications = Mapping[str, "Published"]  # by the name that `folded` makes of theirs

_around: ContextVar[tuple[Publication, ...]] = ContextVar("pdrisk_publications", default=())  # the innermost last


@dataclass(frozen=True, slots=True)
class Published:
    """What the chain says of a publication, its answers apart.

    Attributes
    ----------
    id : int
        Number of the record that began it.
    analyst : str
        Who began it.
    supersedes : int or None
        The id of the publication in whose place it stands.
    withdrawn : (str, str) or None
        When and why it was withdrawn.
    """

    id: int
    name: str
    purpose: str
    supersedes: int | None
    begun: str
    analyst: str
    withdrawn: tuple[str, str] | None = None

    def check_analyst(self, account: Account, what: str) -> None:
        """Refuse what only the analyst who began it may do, and the owner of the dataset."""
        if folded(self.analyst) != folded(account.analyst) and not account.rules().is_owner(account.analyst):
            raise PolicyError(
                f"publication {self.name!r} was begun by {self.analyst!r}: only {self.analyst!r} or the owner of the "
                f"dataset {what}."
            )

    def check_open(self) -> None:
        """Refuse to go on with what was withdrawn."""
        if self.withdrawn is not None:
            raise ParameterError(
                f"publication {self.name!r} was withdrawn on {self.withdrawn[0][:10]}: begin another one in its place, "
                f"with supersedes={self.name!r}."
            )


class Publication:
    """Block of answers that are published together, as `Ledger.publication` gives it.

    Attributes
    ----------
    name : str
    id : int or None
        The number that history and records carry; None until the block was first entered.
    """

    def __init__(self, ledger: Any, name: object, purpose: object, supersedes: object) -> None:
        self._ledger = ledger
        self.name = named("the name of a publication", name)
        self._purpose = None if purpose is None else _line("purpose", purpose)
        self._supersedes = None if supersedes is None else named("supersedes", supersedes)
        self.id: int | None = None

    def __enter__(self) -> Publication:
        ambient.enter(self._ledger)
        try:
            self.id = self._begun()
        except BaseException:
            ambient.leave(self._ledger)
            raise
        _around.set((*_around.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        around = list(_around.get())
        del around[len(around) - 1 - around[::-1].index(self)]  # a generator may leave its block anywhere
        _around.set(tuple(around))
        ambient.leave(self._ledger)

    def __repr__(self) -> str:
        return f"publication {self.name!r} of dataset {self._ledger.dataset!r}"

    def _begun(self) -> int:
        """Id of the publication, which is recorded if it is new."""
        with self._ledger._reading() as account:
            known = self._continued(account, publications(account))
        if known is not None:
            return known
        with self._ledger._writing() as account:
            there = publications(account)
            known = self._continued(account, there)  # somebody else may have begun it meanwhile
            if known is not None:
                return known
            body: dict[str, Any] = {"named": self.name, "purpose": self._purpose}
            if self._supersedes is not None:
                body["supersedes"] = there[folded(self._supersedes)].id
            return account.record("publication", body)

    def _continued(self, account: Account, there: Publications) -> int | None:
        """Id of a publication that goes on; None for a new one that may begin."""
        known, before = there.get(folded(self.name)), None
        if self._supersedes is not None:
            before = there.get(folded(self._supersedes))
            if before is None:
                raise unknown(self._supersedes, self._ledger.dataset, there)
        if known is None:
            if self._purpose is None:
                raise ParameterError(
                    f"{self.name!r} would begin a new publication: say what it is for, as in "
                    f'purpose="..."; one that is there goes on under its name.'
                    f"{did_you_mean(self.name, (publication.name for publication in there.values()))}"
                )
            return None
        known.check_analyst(account, "goes on with it: give another publication another name")
        known.check_open()
        if self._purpose not in (None, known.purpose):
            raise ParameterError(
                f"publication {known.name!r} was begun with purpose={known.purpose!r}: leave purpose= out to go on "
                "with it, or give another publication another name."
            )
        if before is not None and before.id != known.supersedes:
            raise ParameterError(
                f"publication {known.name!r} was begun {_in_place_of(known, there)}: leave supersedes= out to go on "
                "with it, or give another publication another name."
            )
        return known.id


def _in_place_of(known: Published, there: Publications) -> str:
    names = [publication.name for publication in there.values() if publication.id == known.supersedes]
    return f"with supersedes={names[0]!r}" if names else "without supersedes="


def _line(what: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ColumnTypeError(f"{what} must be a text in one line that is not empty.")
    return value


def publications(account: Account) -> dict[str, Published]:
    """Publications of a dataset as its chain says, in their order."""
    rows = account.ask(
        "SELECT seq, time, analyst, event, body FROM records "
        "WHERE dataset = ? AND event IN ('publication', 'withdrawn') ORDER BY seq",
        (account.dataset,),
    )

    def read() -> dict[str, Published]:
        told = [(seq, str(time), str(who), event, json.loads(body)) for seq, time, who, event, body in rows]
        ends = {body["of"]: (time, str(body["reason"])) for _, time, _, event, body in told if event == "withdrawn"}
        begun = [
            Published(seq, body["named"], str(body["purpose"]), body.get("supersedes"), time, who, ends.get(seq))
            for seq, time, who, event, body in told
            if event == "publication"
        ]
        return {folded(publication.name): publication for publication in begun}

    return decoded(account.place, read)


def unknown(
    name: str, dataset: str, there: Publications, others: Mapping[str, Publications] | None = None
) -> ParameterError:
    """The error for a publication that the dataset does not have, with the nearest name and the dataset that has it."""
    names = [publication.name for publication in there.values()]
    listed = ", ".join(map(repr, names[-5:])) or "none"
    elsewhere = [other for other, its in (others or {}).items() if folded(name) in its]
    where = f" Dataset {elsewhere[0]!r} has one: open the ledger with dataset={elsewhere[0]!r}." if elsewhere else ""
    return ParameterError(
        f"dataset {dataset!r} has no publication {shown(name)}; it has {listed}{' and others' * (len(names) > 5)}."
        f"{where or did_you_mean(name, names)}"
    )


def withdraw(account: Account, name: object, reason: object) -> None:
    """Record that a publication is withdrawn, and why."""
    wanted, why = named("the name of a publication", name), _line("reason", reason)
    there = publications(account)
    known = there.get(folded(wanted))
    if known is None:
        raise unknown(wanted, account.dataset, there)
    known.check_analyst(account, "withdraws it")
    if known.withdrawn is not None:
        raise ParameterError(f"publication {known.name!r} was withdrawn before, on {known.withdrawn[0][:10]}.")
    account.record("withdrawn", {"of": known.id, "reason": why})


def beside(query: Query, policy: Policy, account: Account, budget: tuple[str, str]) -> dict[str, Any]:
    """What the record of an answer holds beside its question in the block of a publication; nothing outside.

    Facts of the question and of the rules alone, which the question does not hold because ledgers remember answers by
    it.
    """
    number = next((block.id for block in reversed(_around.get()) if block._ledger._budget == budget), None)
    if number is None:
        return {}
    for publication in publications(account).values():
        if publication.id == number:
            publication.check_open()
    facts: dict[str, Any] = {"unit": query.unit.name}
    if query.unit.leaves_out:
        facts["leaves_out"] = list(query.unit.leaves_out)
    if query.groups is not None:
        facts["keys_from"] = query.groups.keys_from
        facts["without_missing"] = [str(column) for column in query.groups.without_missing]
    if query.selection is not None:
        facts["sizes_shown"] = list(query.selection.sizes_shown)
    bases = [policy.base_of(line.statistic) for line in query.lines]
    if any(bases):
        facts["rounded_to"] = bases
    return {"publication": number, "facts": facts}
