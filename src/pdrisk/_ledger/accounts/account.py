"""Account: one dataset and one analyst inside an open transaction."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from pdrisk._core.once import once
from pdrisk._ledger.accounts.curator_facts import Odometer
from pdrisk._ledger.accounts.memory import Noisy, answer_of
from pdrisk._ledger.accounts.replay import EVERYBODY, period, spent_of
from pdrisk._ledger.rules.limits import WINDOWS, Limits, Spent, check, payable, shown
from pdrisk._ledger.rules.names import folded, names_of
from pdrisk._ledger.rules.price import fitting, price_of
from pdrisk._ledger.rules.question import name_of
from pdrisk._ledger.rules.reserved import RESERVED, ReservedBudget
from pdrisk._ledger.rules.rules import Rules, largest
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk._ledger.store.records import NEWEST, START, chained, digest, exact
from pdrisk._ledger.store.store import Ask, Rows, decoded, number_in, text_in
from pdrisk._model.query import Query
from pdrisk.errors import LedgerError, ParameterError, PolicyError

Declared = TypeVar("Declared")


@dataclass(frozen=True)
class Account:
    """One dataset and one analyst in the tables: what they say, and what may be written."""

    ask: Ask
    dataset: str
    analyst: str
    place: str  # where the ledger is, for people

    # --- What holds and what was spent ----------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether the dataset is in the ledger."""
        return bool(self.ask("SELECT 1 FROM datasets WHERE name = ?", (self.dataset,)))

    def rules(self) -> Rules:
        """The limits of all together and of each analyst, and the owner's rules."""
        rows = self.ask("SELECT limits FROM datasets WHERE name = ?", (self.dataset,))
        return decoded(self.place, lambda: Rules.stored(rows[0][0]))

    def largest(self, name: str) -> Fraction | None:
        """The largest value that a limit of all together ever had, if it is set."""
        rows = self.ask(
            "SELECT body FROM records WHERE dataset = ? AND event IN ('opened', 'amended') ORDER BY seq",
            (self.dataset,),
        )
        return decoded(self.place, lambda: largest([json.loads(body)["limits"]["whole"] for (body,) in rows], name))

    @once
    def now(self) -> datetime.datetime:
        """The time: that of the clock or of the last record, whichever is later, so that no window is opened twice."""
        now = datetime.datetime.now(datetime.UTC)
        rows = self.ask("SELECT time FROM records WHERE seq = (SELECT max(seq) FROM records)")
        return decoded(self.place, lambda: max([now, *(datetime.datetime.fromisoformat(time) for (time,) in rows)]))

    def paid(self) -> dict[str, dict[str, Spent]]:
        """Spending of all together, and of the analyst, in each window."""
        return {
            who: {window: self._spent(who, period(window, self.now)) for window in WINDOWS}
            for who in (EVERYBODY, self.analyst)
        }

    def spent(self) -> dict[str, dict[str, Spent]]:
        """The same with what is set aside for questions to come."""
        return self._with_reserved(self.paid())

    def _with_reserved(self, paid: dict[str, dict[str, Spent]]) -> dict[str, dict[str, Spent]]:
        spent = {who: dict(windows) for who, windows in paid.items()}
        for held in self.reservations():
            for who in (EVERYBODY, self.analyst) if held.is_of(self.analyst) else (EVERYBODY,):
                spent[who][""] += held.left
        return spent

    def _spent(self, who: str, at: str) -> Spent:
        rows = self.ask(
            "SELECT eps, queries, delta, mu2 FROM spending WHERE dataset = ? AND analyst = ? AND period = ?",
            (self.dataset, who, at),
        )
        spent = decoded(self.place, lambda: spent_of(*rows[0]) if rows else Spent())
        return replace(spent, mu2=self._mu2_of_old(who, at)) if rows and rows[0][3] is None else spent

    def _mu2_of_old(self, who: str, at: str) -> Fraction:
        """The m^2 of what was paid before it was written down: that of the eps of each query."""
        rows = self.ask(
            "SELECT eps, count(*) FROM records WHERE dataset = ? AND event = 'paid' AND (analyst = ? OR ? = '') "
            "AND substr(time, 1, ?) = ? GROUP BY eps",
            (self.dataset, who, who, len(at), at),
        )
        return decoded(self.place, lambda: sum((mu2_of_pure(exact(eps)) * number for eps, number in rows), Fraction(0)))

    # --- Writing down -----------------------------------------------------------------------------------------------

    def enter(self, rules: Rules) -> None:
        """Enter a new dataset with its limits."""
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
        """Refuse limits and rules other than those of the dataset."""
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

    def pay(self, query: Query, rules: Rules, body: dict[str, Any], reservation: int | None = None) -> int:
        """Check, record and spend what a query costs, from a reservation if one pays; returns the record's number."""
        held = None if reservation is None else self.held(reservation)
        paid = self.paid()
        cost = self.cost_of(query, rules, self._with_reserved(paid) if held is None else paid, held)
        body = body | {"mu2": str(cost.mu2)} | ({"delta": str(cost.delta)} if cost.delta else {})
        seq = self.record("paid", body if held is None else body | {"reservation": held.number}, cost.eps)
        for who, windows in paid.items():
            for window, before in windows.items():
                self._write_spent(who, period(window, self.now), before + cost)
        if held is not None:
            self._write_spent(EVERYBODY, held.period, held.after(cost).left)
        return seq

    def _write_spent(self, who: str, at: str, after: Spent) -> None:
        sums = str(after.eps), after.queries, str(after.delta), str(after.mu2)
        self.ask(
            "INSERT INTO spending (dataset, analyst, period, eps, queries, delta, mu2) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset, analyst, period) DO UPDATE SET eps = excluded.eps, "
            "queries = excluded.queries, delta = excluded.delta, mu2 = excluded.mu2",
            (self.dataset, who, at, *sums),
        )
        if self._spent(who, at) != after:
            raise LedgerError(f"{self.place} does not keep what is written; nothing was answered.")

    def cost_of(
        self, query: Query, rules: Rules, spent: dict[str, dict[str, Spent]],
        held: ReservedBudget | None = None, of_several: bool = False,
    ) -> Spent:  # fmt: skip
        """Cost of a query under these rules, after that spending; of what a reservation holds, if one pays."""
        name, eps, delta = name_of(query), payable(rules.policy.cost(query)), payable(query.delta)
        if eps > payable(query.eps):
            name = f"{name} with its people counted for eps {shown(eps - payable(query.eps))}"
        cost = Spent(eps, 1, delta, payable(price_of(query, rules.policy)))

        def askable(left: Fraction) -> Fraction:
            return (left - (eps - query.eps)) / query.times

        ways = askable, partial(fitting, query, rules.policy, of_several)
        self.check_delta(f"answer {name}", delta, rules)
        self.check(f"answer {name}", cost, rules.whole, rules.of_analyst(self.analyst), spent, *ways)
        if held is not None:
            held.check(f"answer {name}", cost, *ways)
        return cost

    def check_delta(self, request: str, delta: Fraction, rules: Rules) -> None:
        """Refuse to spend delta where the dataset has no budget of that."""
        if delta and rules.whole.delta is None:
            raise PolicyError(
                f'cannot {request}: keys="private" spends delta={shown(delta)}, and the budget of dataset '
                f"{self.dataset!r} has none. List the keys, or have its owner allow it, as in "
                "ledger.amend(delta=1e-6)."
            )

    def check(
        self,
        request: str,
        cost: Spent,
        whole: Limits,
        analyst_limits: Limits,
        spent: dict[str, dict[str, Spent]],
        *ways: Any,
    ) -> None:
        """Refuse what would go over a limit of all together or of the analyst; ``ways`` are those of `limits.check`."""
        alone = f"analyst {self.analyst!r}, with ledger.amend(analysts={{{self.analyst!r}: ...}})"
        check(request, cost, whole, spent[EVERYBODY], f"dataset {self.dataset!r}", *ways)
        check(request, cost, analyst_limits, spent[self.analyst], alone, *ways)

    # --- Reservations -----------------------------------------------------------------------------------------------

    def reservations(self) -> list[ReservedBudget]:
        """Reservations of the dataset that something may still be paid from."""
        rows = self.ask(
            "SELECT period FROM spending WHERE dataset = ? AND analyst = '' AND queries > 0 "
            "AND period > 'r' AND substr(period, 1, 8) = ?",  # days and months come before: the index leaves them out
            (self.dataset, RESERVED),
        )
        numbers = decoded(self.place, lambda: sorted(int(at.removeprefix(RESERVED)) for (at,) in rows))
        return [held for number in numbers if (held := self.any_held(number)).lasts(self.now)]

    def held(self, number: int) -> ReservedBudget:
        """What a reservation holds."""
        held = self.any_held(number)
        if not held.is_of(self.analyst):
            raise PolicyError(f"reservation {number} is that of {held.analyst!r}, and {self.analyst!r} asks.")
        if not held.lasts(self.now):
            raise PolicyError(
                f"reservation {number} ({held.purpose!r}) has ended, and what was never asked came back: reserve anew "
                "with ledger.reserve(...), or ask the ledger itself."
            )
        return held

    def any_held(self, number: int) -> ReservedBudget:
        """The same, whoever asks and whether it has ended or not."""
        rows = self.ask(
            "SELECT body FROM records WHERE seq = ? AND dataset = ? AND event = 'reserved'", (number, self.dataset)
        )
        left = self._spent(EVERYBODY, f"{RESERVED} {number}")
        return decoded(self.place, lambda: ReservedBudget.stored(number, json.loads(rows[0][0]), left))

    def reserve(self, held: ReservedBudget) -> int:
        """Set aside what `ReservedBudget.left` says; returns the number of the record."""
        number = self.record("reserved", held.body)
        self._write_spent(EVERYBODY, f"{RESERVED} {number}", held.left)
        return number

    def give_back(self, number: int) -> None:
        """End a reservation."""
        if self.any_held(number).lasts(self.now):
            self.record("returned", {"of": number})
            self._write_spent(EVERYBODY, f"{RESERVED} {number}", Spent())

    def record(self, event: str, body: dict[str, Any], eps: Fraction = Fraction(0)) -> int:
        """Append a record to the chain; returns its number."""
        rows = self.ask(NEWEST)
        last, before = decoded(self.place, lambda: (number_in(rows[0][0]), text_in(rows[0][1])) if rows else (0, START))
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
        return self._newest("data", lambda seq, body: (seq, text_in(body["state"])))

    def person(self) -> Hashable | None:
        """The columns that say who a person is, as declared first; None if they never were."""
        known = self.rules().policy.person
        return self.declared_person() if known is None else known

    def declared_person(self) -> Hashable | None:
        """The same without the rule ``person`` of the first edition, whose people had one row each."""
        return self._newest("person", lambda _, body: _label(body["column"]))

    def _newest(self, event: str, read: Callable[[int, dict[str, Any]], Declared]) -> Declared | None:
        rows = self.ask(
            "SELECT seq, body FROM records WHERE dataset = ? AND event = ? ORDER BY seq DESC LIMIT 1",
            (self.dataset, event),
        )
        return decoded(self.place, lambda: read(number_in(rows[0][0]), json.loads(rows[0][1])) if rows else None)

    def remembered(self, key: str) -> tuple[int, list[Noisy], list[str], list[str] | None] | None:
        """Record of the payment, noisy values, draws and private keys of an answer that was kept; None without one."""
        rows = self.ask(
            "SELECT answers.body, records.body, records.hash FROM answers JOIN records ON records.seq = answers.record "
            "WHERE answers.dataset = ? AND answers.question = ?",
            (self.dataset, key),
        )

        def kept() -> tuple[int, list[Noisy], list[str], list[str] | None]:
            answer, record = rows[0][0], json.loads(rows[0][1])
            if record["answer"] != digest(key, answer):
                raise ValueError
            return number_in(record["of"]), *answer_of(answer, text_in(rows[0][2]))

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
        rows = self.ask(
            "SELECT who, counted, people, losses, mu2 FROM curator_people WHERE dataset = ?", (self.dataset,)
        )
        return decoded(self.place, lambda: Odometer.stored(rows, who))

    def keep_odometer(self, odometer: Odometer) -> None:
        """Replace the stored odometer."""
        self.ask(
            "INSERT INTO curator_people (dataset, who, counted, people, losses, mu2) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset) DO UPDATE SET who = excluded.who, counted = excluded.counted, "
            "people = excluded.people, losses = excluded.losses, mu2 = excluded.mu2",
            (self.dataset, *odometer.row),
        )


def _label(value: object) -> Hashable:
    if isinstance(value, list) and len(value) > 1:
        return tuple(_label(part) for part in value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError
    return value


def _first(others: list[str]) -> str:
    """Advice for an unknown dataset: give it a limit, or write the name of one that the ledger knows."""
    known = f", or write the name of one it knows: {', '.join(map(repr, others[:5]))}" if others else ""
    return f"give it a limit, such as eps=1{known}{' and others' if len(others) > 5 else ''}."
