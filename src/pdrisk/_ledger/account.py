"""Account: one dataset and one analyst inside an open transaction."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from pdrisk._core.once import once
from pdrisk._ledger.audit import EVERYBODY, period, spent_of
from pdrisk._ledger.curator import Odometer
from pdrisk._ledger.limits import WINDOWS, Spent, check, payable, shown
from pdrisk._ledger.memory import Noisy, answer_of
from pdrisk._ledger.names import folded
from pdrisk._ledger.question import name_of
from pdrisk._ledger.records import NEWEST, START, chained, digest
from pdrisk._ledger.rules import Rules
from pdrisk._ledger.store import Ask, Rows, decoded
from pdrisk._model.query import Query
from pdrisk.errors import LedgerError, ParameterError, PolicyError

__all__ = ["Account", "known_as", "names_of"]

Declared = TypeVar("Declared")


@dataclass(frozen=True)
class Account:
    """One dataset and one analyst in the tables: what they say, and what may be written.

    Attributes
    ----------
    place : str
        Where the ledger is, for people.
    """

    ask: Ask
    dataset: str
    analyst: str
    place: str

    # --- What holds and what was spent ----------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether the dataset is in the ledger."""
        return bool(self.ask("SELECT 1 FROM datasets WHERE name = ?", (self.dataset,)))

    def rules(self) -> Rules:
        """The limits of all together and of each analyst, and the owner's rules."""
        rows = self.ask("SELECT limits FROM datasets WHERE name = ?", (self.dataset,))
        return decoded(self.place, lambda: Rules.stored(rows[0][0]))

    @once
    def now(self) -> datetime.datetime:
        """The time: that of the clock or of the last record, whichever is later, so that no window is opened twice."""
        now = datetime.datetime.now(datetime.UTC)
        rows = self.ask("SELECT time FROM records WHERE seq = (SELECT max(seq) FROM records)")
        return decoded(self.place, lambda: max([now, *(datetime.datetime.fromisoformat(time) for (time,) in rows)]))

    def spent(self) -> dict[str, dict[str, Spent]]:
        """Spending of all together, and of the analyst, in each window."""
        return {who: {window: self._spent(who, window) for window in WINDOWS} for who in (EVERYBODY, self.analyst)}

    def _spent(self, who: str, window: str) -> Spent:
        rows = self.ask(
            "SELECT eps, queries, delta FROM spending WHERE dataset = ? AND analyst = ? AND period = ?",
            (self.dataset, who, period(window, self.now)),
        )
        return decoded(self.place, lambda: spent_of(*rows[0]) if rows else Spent())

    # --- Writing down -----------------------------------------------------------------------------------------------

    def enter(self, rules: Rules) -> None:
        """Enter a new dataset with its limits.

        Raises
        ------
        ParameterError
            Without a limit, or with a name that differs from a known one in capitals and blanks only.
        LedgerError
            If it was entered before and somebody took that out.
        """
        others = names_of(self.ask, self.place)
        if alike := [name for name in others if folded(name) == folded(self.dataset)]:
            raise ParameterError(
                f"{self.place} knows the dataset {alike[0]!r}, not {self.dataset!r}: the same people share one budget. "
                "Write the name as it is known, or give other people a name that differs in more than capitals and "
                "blanks."
            )
        if not rules.has_limits:
            raise ParameterError(f"dataset {self.dataset!r} is new to {self.place}: {_first(others)}")
        if self.ask("SELECT 1 FROM records WHERE dataset = ? LIMIT 1", (self.dataset,)):
            raise LedgerError(
                f"{self.place} has records of dataset {self.dataset!r}, but not its limits: it is damaged. Restore it "
                "from a copy."
            )
        rules = replace(rules, owner=self.analyst)
        self.ask("INSERT INTO datasets (name, limits) VALUES (?, ?)", (self.dataset, rules.text))
        self.record("opened", {"limits": json.loads(rules.text)})

    def check_same(self, rules: Rules, each_given: bool, policy_given: bool) -> None:
        """Refuse limits and rules other than those of the dataset.

        Raises
        ------
        ParameterError
            With those that hold.
        """
        known = self.rules()
        if (
            not rules.whole.texts.items() <= known.whole.texts.items()
            or (each_given and rules.each != known.each)
            or (policy_given and rules.policy != replace(known.policy, person=None))
        ):
            raise ParameterError(
                f"dataset {self.dataset!r} has other limits ({known}): leave them out to use those; its owner changes "
                "them with ledger.amend(...)."
            )

    def amend(self, rules: Rules) -> None:
        """Change the rules from now on."""
        self.ask("UPDATE datasets SET limits = ? WHERE name = ?", (rules.text, self.dataset))
        self.record("amended", {"limits": json.loads(rules.text)})

    def pay(self, query: Query, rules: Rules, body: dict[str, Any]) -> int:
        """Check, record and spend what a query costs under these rules; returns the number of the record.

        Raises
        ------
        BudgetExceededError
            If a limit is in the way; nothing is written then.
        """
        cost, spent = self.after(query, rules, self.spent())
        if query.delta:
            body = body | {"delta": str(payable(query.delta))}
        seq = self.record("paid", body, cost)
        for who, windows in spent.items():
            for window, after in windows.items():
                self.ask(
                    "INSERT INTO spending (dataset, analyst, period, eps, queries, delta) VALUES (?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (dataset, analyst, period) DO UPDATE SET eps = excluded.eps, "
                    "queries = excluded.queries, delta = excluded.delta",
                    (self.dataset, who, period(window, self.now), str(after.eps), after.queries, str(after.delta)),
                )
            if self._spent(who, "") != windows[""]:
                raise LedgerError(f"{self.place} does not keep what is written; nothing was answered.")
        return seq

    def after(
        self, query: Query, rules: Rules, spent: dict[str, dict[str, Spent]]
    ) -> tuple[Fraction, dict[str, dict[str, Spent]]]:
        """Cost of a query under these rules, and the spending after it.

        Raises
        ------
        BudgetExceededError
            If a limit is in the way.
        PolicyError
            If it costs delta, and the dataset has no budget of that.
        """
        name, cost = name_of(query), payable(rules.policy.cost(query))
        if cost > payable(query.eps):
            name = f"{name} with its people counted for eps {shown(cost - payable(query.eps))}"

        def askable(left: Fraction) -> Fraction:
            return (left - (cost - query.eps)) / query.times

        delta = payable(query.delta)
        if delta and rules.whole.delta is None:
            raise PolicyError(
                f'cannot answer {name}: keys="private" spends delta={shown(delta)}, and the budget of dataset '
                f"{self.dataset!r} has none. List the keys, or have its owner allow it, as in "
                "ledger.amend(delta=1e-6)."
            )
        alone = f"analyst {self.analyst!r}, with ledger.amend(analysts={{{self.analyst!r}: ...}})"
        check(name, cost, rules.whole, spent[EVERYBODY], f"dataset {self.dataset!r}", askable, delta)
        check(name, cost, rules.of_analyst(self.analyst), spent[self.analyst], alone, askable, delta)
        return cost, {
            who: {window: each.with_query(cost, delta) for window, each in windows.items()}
            for who, windows in spent.items()
        }

    def record(self, event: str, body: dict[str, Any], eps: Fraction = Fraction(0)) -> int:
        """Append a record to the chain; returns its number."""
        rows = self.ask(NEWEST)
        last, before = decoded(self.place, lambda: (_number(rows[0][0]), _text(rows[0][1])) if rows else (0, START))
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        time = self.now.isoformat(timespec="microseconds")
        row = (last + 1, time, self.dataset, self.analyst, event, str(eps), text)
        self.ask(
            "INSERT INTO records (seq, time, dataset, analyst, event, eps, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, chained(before, *row)),
        )
        if self.ask("SELECT max(seq) FROM records") != [(last + 1,)]:
            raise LedgerError(f"{self.place} does not keep what is written; nothing was answered.")
        return last + 1

    # --- Datasets and the answers that are given again --------------------------------------------------------------

    def state_of_data(self) -> tuple[int, str] | None:
        """Number and content of the newest record that says which data these are."""
        return self._newest("data", lambda seq, said: (seq, _text(said["state"])))

    def person(self) -> Hashable | None:
        """The columns that say who a person is, as declared first; None if they never were."""
        known = self.rules().policy.person
        return self.declared_person() if known is None else known

    def declared_person(self) -> Hashable | None:
        """The same without the rule ``person`` of the first edition, whose people had one row each."""
        return self._newest("person", lambda _, said: _label(said["column"]))

    def _newest(self, event: str, read: Callable[[int, dict[str, Any]], Declared]) -> Declared | None:
        rows = self.ask(
            "SELECT seq, body FROM records WHERE dataset = ? AND event = ? ORDER BY seq DESC LIMIT 1",
            (self.dataset, event),
        )
        return decoded(self.place, lambda: read(_number(rows[0][0]), json.loads(rows[0][1])) if rows else None)

    def remembered(self, key: str) -> tuple[int, list[Noisy], list[str] | None] | None:
        """Record of the payment, noisy values and private keys of an answer that was kept; None without one."""
        rows = self.ask(
            "SELECT answers.body, records.body FROM answers JOIN records ON records.seq = answers.record "
            "WHERE answers.dataset = ? AND answers.question = ?",
            (self.dataset, key),
        )

        def kept() -> tuple[int, list[Noisy], list[str] | None]:
            answer, record = rows[0][0], json.loads(rows[0][1])
            if record["answer"] != digest(key, answer):
                raise ValueError
            return _number(record["of"]), *answer_of(answer)

        return decoded(self.place, kept) if rows else None

    def keep(self, seq: int, key: str, answer: str) -> None:
        """Keep the noisy values of a paid query; newer ones replace older ones."""
        record = self.record("kept", {"of": seq, "answer": digest(key, answer)})
        self.ask(
            "INSERT INTO answers (dataset, question, record, body) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (dataset, question) DO UPDATE SET record = excluded.record, body = excluded.body",
            (self.dataset, key, record, answer),
        )

    # --- The curator's --------------------------------------------------------------------------------------------

    def keep_facts(self, seq: int, text: str) -> None:
        """Keep what an answer meant for the people."""
        self.ask("INSERT INTO curator_releases (dataset, record, body) VALUES (?, ?, ?)", (self.dataset, seq, text))

    def facts(self) -> Rows:
        """``seq body eps fact`` of every paid query."""
        return self.ask(
            "SELECT records.seq, records.body, records.eps, curator_releases.body FROM records "
            "LEFT JOIN curator_releases ON curator_releases.dataset = records.dataset "
            "AND curator_releases.record = records.seq "
            "WHERE records.dataset = ? AND records.event = ? ORDER BY records.seq",
            (self.dataset, "paid"),
        )

    def odometer(self, who: str) -> Odometer:
        """Losses of each person by all answers; ``who`` says how people are told apart."""
        rows = self.ask("SELECT who, counted, people, losses FROM curator_people WHERE dataset = ?", (self.dataset,))
        return decoded(self.place, lambda: Odometer.stored(rows, who))

    def keep_odometer(self, odometer: Odometer) -> None:
        """Replace the stored odometer."""
        self.ask(
            "INSERT INTO curator_people (dataset, who, counted, people, losses) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset) DO UPDATE SET who = excluded.who, counted = excluded.counted, "
            "people = excluded.people, losses = excluded.losses",
            (self.dataset, *odometer.row),
        )


def names_of(ask: Ask, place: str) -> list[str]:
    """The datasets of a ledger, in order."""
    rows = ask("SELECT name FROM datasets")
    return decoded(place, lambda: sorted(_text(name) for (name,) in rows))


def known_as(ask: Ask, place: str, dataset: str, analyst: str) -> str:
    """An analyst's name as spelled at the first payment, so that Anna and anna share one budget."""
    if ask("SELECT 1 FROM spending WHERE dataset = ? AND analyst = ? AND period = ''", (dataset, analyst)):
        return analyst
    rows = ask("SELECT analyst FROM spending WHERE dataset = ? AND period = '' ORDER BY analyst", (dataset,))
    alike = decoded(place, lambda: [name for (name,) in rows if folded(name) == folded(analyst)])
    return alike[0] if alike else analyst


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _label(value: object) -> Hashable:
    if isinstance(value, list) and len(value) > 1:
        return tuple(_label(each) for each in value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _first(others: list[str]) -> str:
    """Advice for an unknown dataset: give it a limit, or write the name of one that the ledger knows."""
    known = f", or write the name of one it knows: {', '.join(map(repr, others[:5]))}" if others else ""
    return f"give it a limit, such as eps=1{known}{' and others' if len(others) > 5 else ''}."
