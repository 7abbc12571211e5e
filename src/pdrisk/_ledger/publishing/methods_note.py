"""Statement about a publication: one methods note of all its answers, from the chain of its ledger alone.

Everything in it is a rule or a question as it was asked. Nothing depends on the data: not whether an answer was
withheld or failed, nor how many records were clamped or left out.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

from pdrisk._core.risks.whole_numbers import common_denominator, counted, reached
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.accounts.publication import Publications, Published, publications, unknown
from pdrisk._ledger.accounts.replay import paid_in
from pdrisk._ledger.publishing.promise import Promise, promise_in
from pdrisk._ledger.publishing.published_answer import PublishedAnswer, eps_text
from pdrisk._ledger.publishing.statement_words import TEXTS
from pdrisk._ledger.rules.limits import Spent
from pdrisk._ledger.rules.names import folded, named, names_of
from pdrisk._ledger.store.store import Rows, decoded
from pdrisk._printing import laid_out, printable
from pdrisk.errors import NotPublicError, ParameterError

Said = list[tuple[str, str]]
CERTAIN = 0.9999  # a limit beyond says nothing


@dataclass(frozen=True, slots=True)
class Statement:
    """Methods note of a publication, as text, HTML and a dict for the public registry of deployments.

    Attributes
    ----------
    name : str
        Of the publication.
    rows : tuple of (str, str)
        Labels and texts, in their order.
    """

    name: str
    rows: tuple[tuple[str, str], ...]
    _deployment: Mapping[str, Any] = field(hash=False)

    @property
    def title(self) -> str:
        """Title of the note."""
        return TEXTS["title"].format(name=printable(self.name))

    @property
    def text(self) -> str:
        """The note as text in two columns."""
        return laid_out(self.title, self.rows)

    @property
    def html(self) -> str:
        """The note as a heading and a table of HTML, to put into a page."""
        rows = "".join(
            f'<tr><th scope="row">{escape(label)}</th><td>{escape(text)}</td></tr>\n' for label, text in self.rows
        )
        return f"<section>\n<h2>{escape(self.title)}</h2>\n<table>\n{rows}</table>\n</section>"

    def to_dict(self) -> dict[str, Any]:
        """The entry for the registry of deployments, as JSON values; what the ledger does not know is not in it."""
        return copy.deepcopy(dict(self._deployment))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True)
class _Chain:
    """What the records of a dataset say of one publication, and of all answers."""

    answers: tuple[PublishedAnswer, ...]  # each payment once, however often its answer was given again
    dates: tuple[str, ...]
    promise: Promise  # of the ledger, with what was paid for all answers of the dataset
    from_data: int  # how many took bounds or groups from the data

    @classmethod
    def of(cls, rows: Rows, wanted: int) -> _Chain:
        """The chain from its records ``seq time event eps body``; raises one of `store.WRONG` for what none writes."""
        paid: dict[int, Spent] = {}
        questions: dict[int, tuple[Any, Any]] = {}
        dates, from_data = [], 0
        for seq, time, event, eps, text in rows:
            body = json.loads(text)
            if event == "paid":
                paid[seq], _ = paid_in(eps, body)
                from_data += _took_from_data(body["question"])
            if body.get("publication") == wanted and event in ("paid", "remembered"):
                questions.setdefault(seq if event == "paid" else body["of"], (body["question"], body["facts"]))
                dates.append(time[:10])
        kept = [row[2:] for row in rows if row[2] in ("opened", "amended", "paid")]
        return cls(
            tuple(PublishedAnswer(question, facts, paid[seq]) for seq, (question, facts) in questions.items()),
            tuple(dates),
            promise_in(kept, None),
            from_data,
        )


def statement_of(account: Account, name: object) -> Statement:
    """The statement about a publication of a dataset."""
    wanted, there = named("the name of a publication", name), publications(account)
    known = there.get(folded(wanted))
    if known is None:
        others = {
            other: publications(replace(account, dataset=other))
            for other in names_of(account.ask, account.place)
            if other != account.dataset
        }
        raise unknown(wanted, account.dataset, there, others)
    rows = account.ask(
        "SELECT seq, time, event, eps, body FROM records WHERE dataset = ? ORDER BY seq", (account.dataset,)
    )
    chain = decoded(account.place, lambda: _Chain.of(rows, known.id))
    if not chain.answers:
        raise ParameterError(
            f"publication {known.name!r} holds no answer yet: ask inside `with ledger.publication({known.name!r}):`."
        )
    for answer in chain.answers:
        if any(line["bounds"] == "column" for line in answer.question["lines"]):
            raise NotPublicError(
                f"{answer.asked} took its bounds from the data, and no eps covers what that reveals: a statement would "
                "promise what does not hold. Declare bounds and ask anew, in another publication."
            )
    return decoded(account.place, lambda: _StatementParts(known, there, account.dataset, chain).statement())


@dataclass(frozen=True)
class _StatementParts:
    """A statement in the parts that it is made of."""

    known: Published
    there: Publications
    dataset: str
    chain: _Chain

    def statement(self) -> Statement:
        """The statement."""
        answers, dates, texts = self.chain.answers, self.chain.dates, TEXTS
        between = {"dataset": printable(self.dataset), "first": min(dates), "last": max(dates)}
        asked = texts["asked_once" if min(dates) == max(dates) else "asked_between"].format(**between)
        rows = [(texts["purpose"], printable(self.known.purpose)), (texts["asked"], asked)]
        rows += [(texts["corrections"], self.corrections)] if self.corrections else []
        rows += [(texts["unit"], self.unit), (texts["neighbours"], self.neighbours)]
        for at, answer in enumerate(answers, 1):
            rows += [(texts["answer"].format(number=at), answer.asked), *answer.rows]
        rows += [(texts["left_out"], texts["left_out_is"]), *self.spent, (texts["risk"], self.risk), *self.cautions]
        uncovered = "; ".join(filter(None, [texts["uncovered_is"], self.unprotected]))
        return Statement(self.known.name, (*rows, (texts["uncovered"], uncovered)), self.registered())

    @property
    def corrections(self) -> str:
        """Publications before and after, and whether this one was withdrawn."""
        before = [publication for publication in self.there.values() if publication.id == self.known.supersedes]
        after = [publication for publication in self.there.values() if publication.supersedes == self.known.id]
        sentences = [TEXTS["supersedes"].format(name=printable(publication.name)) for publication in before]
        sentences += [
            TEXTS["superseded"].format(name=printable(publication.name), date=publication.begun[:10])
            for publication in after
        ]
        if self.known.withdrawn is not None:
            time, reason = self.known.withdrawn
            sentences.append(TEXTS["withdrawn"].format(date=time[:10], reason=printable(reason)))
        return "; ".join(sentences)

    @property
    def last(self) -> PublishedAnswer:
        """The last answer, whose unit is the one that was declared."""
        return self.chain.answers[-1]

    def _of_units(self, field: str) -> str:
        units = dict.fromkeys((answer.kind, printable(answer.facts["unit"])) for answer in self.chain.answers)
        texts = [TEXTS.get(f"{field}_{kind}", TEXTS[f"{field}_one"]).format(unit=unit) for kind, unit in units]
        return "; ".join(dict.fromkeys(texts))

    @property
    def unit(self) -> str:
        """Who is protected."""
        return self._of_units("unit")

    @property
    def neighbours(self) -> str:
        """What no answer tells apart."""
        return self._of_units("neighbours")

    @cached_property
    def own(self) -> Spent:
        """What was paid for the publication."""
        return sum((answer.paid for answer in self.chain.answers), Spent())

    @property
    def is_all(self) -> bool:
        """Whether no other answers are about these people."""
        return self.own.queries == self.chain.promise.paid.queries

    @property
    def spent(self) -> Said:
        """Eps and delta, together."""
        eps = TEXTS["eps_is"].format(eps=eps_text(self.own.eps))
        if not self.is_all:
            eps += "; " + TEXTS["eps_of_all"].format(eps=eps_text(self.chain.promise.paid.eps))
        rows = [(TEXTS["eps"], eps)]
        if self.own.delta:
            rows.append((TEXTS["delta"], TEXTS["delta_is"].format(delta=eps_text(self.own.delta), unit=self.last.unit)))
        return rows

    @property
    def risk(self) -> str:
        """How often the best attacker is right, as far as that is certain."""
        # Which answers spend delta may depend on earlier ones: what they may spend in all is the bound.
        promise, none = self.chain.promise, Fraction(0)
        delta, limit = promise.delta if promise.paid.delta else none, promise.limit
        so_far = self._reached(promise.paid.eps, delta)
        risks = {} if self.is_all else {"these": self._reached(self.own.eps, delta if self.own.delta else none)}
        risks["so_far"] = so_far
        if limit is not None and limit < CERTAIN:
            risks = {name: risk for name, risk in risks.items() if risk < limit} | {"limit": limit}
            delta = promise.delta
            if "so_far" not in risks and not promise.paid.delta:  # else an answer may tell all, however improbable
                risks["worst_case"] = so_far
        out_of = common_denominator(risks.values())
        sentences = [
            TEXTS["imagine"].format(unit=self.last.unit, coin=f"{out_of // 2:,}", out_of=f"{out_of:,}"),
            *(_counts(name, risk, out_of) for name, risk in risks.items()),
            *([TEXTS["with_delta"].format(delta=eps_text(delta))] if delta else []),
            *([TEXTS["late"].format(number=f"{promise.late:,}")] if promise.late and "limit" in risks else []),
        ]
        return " ".join(sentences)

    @staticmethod
    def _reached(eps: Fraction, delta: Fraction) -> float:
        return reached(_up(eps), _up(delta))

    @property
    def cautions(self) -> Said:
        """What the sums of eps do not tell of answers about these people."""
        numbers = {"older": self.chain.promise.older, "from_data": self.chain.from_data}
        texts = [TEXTS[name].format(number=f"{n:,}", unit=self.last.unit) for name, n in numbers.items() if n]
        return [(TEXTS["caution"], "; ".join(texts))] if texts else []

    @property
    def unprotected(self) -> str:
        """What answers took from the data without noise."""
        columns = dict.fromkeys(filter(None, (answer.keys_from_data for answer in self.chain.answers)))
        return "; ".join(TEXTS["keys_of_data"].format(columns=column) for column in columns)

    def registered(self) -> dict[str, Any]:
        """The entry for the registry of deployments, whose other fields only the publisher knows."""
        # The fields are those of schemas/deployments-schema.yaml of opendp/deployments-registry-data (2026-07), the
        # data of the Differential Privacy Deployments Registry. What it requires beside them is for people to say:
        # url_slug, status, tier, data_curators, data_product_region, publication_date, registry_authors.
        answers = self.chain.answers
        parameters = {"epsilon": _up(self.own.eps)} | ({"delta": _up(self.own.delta)} if self.own.delta else {})
        variant = {"variant_name": "Approximate DP" if self.own.delta else "Pure DP"}
        if self.unprotected:
            variant["unprotected_quantities"] = self.unprotected
        rules = dict.fromkeys(rule for answer in answers for rule in (*answer.values, *answer.limits))
        after = dict.fromkeys(text for answer in answers for text in answer.roundings)
        noises = dict.fromkeys(noise for answer in answers for noise in answer.noises)
        composition = [
            TEXTS["composition"],
            *([] if self.chain.promise.success is None else [TEXTS["composition_limit"]]),
        ]
        deployment: dict[str, Any] = {
            "basic": {
                "name": self.known.name,
                "description": TEXTS["description"].format(
                    dataset=self.dataset, asked="; ".join(answer.asked for answer in answers)
                ),
                "intended_use": self.known.purpose,
                "data_product_type": "Summary statistics",
            },
            "dp_variant": variant,
            "privacy_loss": {
                "privacy_unit": self.last.unit if self.last.kind == "person" else TEXTS["word_row"],
                "privacy_unit_details": f"{self.unit}; {self.neighbours}",
                "privacy_parameters": parameters,
                "privacy_parameters_details": " ".join([self.risk, *(f"{text}." for _, text in self.cautions)]),
            },
            "deployment_model": {"model_name": "Central"},
            "accounting": {"composition": " ".join(composition)},
            "implementation": {"mechanisms": "\n".join([TEXTS["pdrisk"], *(f"- {noise}" for noise in noises)])},
        }
        if rules:
            deployment["implementation"]["preprocessing_and_hyperparameter_tuning"] = "; ".join(rules)
        if after:
            deployment["accounting"]["post_processing"] = "; ".join(after)
        if self.corrections:
            deployment["administrative"] = {"notes": self.corrections}
        return {"deployment": deployment}


def _took_from_data(question: Mapping[str, Any]) -> bool:
    return question.get("keys") == "observed" or any(line["bounds"] == "column" for line in question["lines"])


def _counts(field: str, risk: float, out_of: int) -> str:
    times, at_most = counted(risk, out_of)
    return TEXTS[field if at_most else f"{field}_over"].format(times=f"{times:,}", out_of=f"{out_of:,}")


def _up(value: Fraction) -> float:
    """A float whose decimal text is not below the fraction."""
    near = float(value)
    return math.nextafter(near, math.inf) if Fraction(repr(near)) < value else near
