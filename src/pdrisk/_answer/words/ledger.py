"""Words for a ledger as a whole: what all answers together, those to come included, let an attacker find out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pdrisk._answer.words.languages import texts
from pdrisk._answer.words.spent import called, doubts, left_of
from pdrisk._core.foreign import shown
from pdrisk._core.risks.gaussian_dp import limit_of, promised, root
from pdrisk._core.risks.tradeoff_curve import of_gaussian, of_pure, of_two_steps, sure_of, with_delta
from pdrisk._core.risks.whole_numbers import common_denominator, counted, reached
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.publishing.promise import Promise, promise_of
from pdrisk._printing import DisplayedText, laid_out, printable
from pdrisk.errors import ColumnTypeError, ParameterError

AUDIENCES: Final = ("participant", "analyst", "publication")
SURE: Final = 0.95


def explained_ledger(ledger: object, audience: object, language: object) -> str:
    """A ledger in words, for one audience."""
    if not isinstance(ledger, Payer):
        raise ColumnTypeError("explain takes an answer of pdrisk, or so_far=ledger alone for all answers together.")
    wording = texts(language)
    if not isinstance(audience, str) or audience not in AUDIENCES:
        raise ParameterError(
            f"a ledger is explained to {', '.join(AUDIENCES)}, not to {shown(audience)}: the curator's text is about "
            "one answer."
        )
    telling: Callable[[], str] = getattr(_AllAnswers(ledger, promise_of(ledger), wording), audience)
    return DisplayedText(telling())


@dataclass(frozen=True, slots=True)
class _AllAnswers:
    """Explanation of one ledger, in the parts that texts are made of."""

    ledger: Any
    promise: Promise
    said: Mapping[str, str]

    def participant(self) -> str:
        coin = {"coin": f"{self._out_of // 2:,}", "out_of": f"{self._out_of:,}"}
        return "\n".join(
            [
                self.said["imagine"],
                self.said["ledger_without"].format(**coin),
                self._right("ledger"),
                *self._lucky(),
                self._two_values(),
                self._unit("unit_of_person", "unit_of_record"),
                *doubts(self.promise, self.said),
                self.said["not_covered"],
            ]
        )

    def analyst(self) -> str:
        wording, left, paid = self.said, self.ledger.remaining(), self.promise.paid
        spent = wording["ledger_spent_is"].format(eps=f"{float(paid.eps):.6g}", queries=f"{paid.queries:,}")
        rows = [
            (wording["ledger_spent"], spent),
            (wording["left"], left_of(left, wording)),
            (wording["label_risk"], self._risk()),
        ]
        if self.promise.limit is None:
            fixed = promised(paid.mu2, paid.delta) if paid.eps else 0.5
            rows.append((wording["ledger_fixed"], self._counts("ledger_fixed_is", fixed)))
        name = wording["analyst_title"].format(name=printable(self.ledger.dataset))
        return laid_out(name, [*rows, *self._beside()])

    def publication(self) -> str:
        wording = self.said
        unit = self._unit("unit_person", "unit_is")
        neighbours = self._unit("neighbours_is_person", "neighbours_is")
        rows = [(wording["unit"], unit), (wording["neighbours"], neighbours), (wording["label_risk"], self._risk())]
        rows += [*self._beside(), (wording["uncovered"], wording["uncovered_is"])]
        return laid_out(wording["publication_title"].format(name=printable(self.ledger.dataset)), rows)

    @property
    def _so_far(self) -> float:
        """The same of all answers so far: as sure as any outcome may make him."""
        return reached(float(self.promise.paid.eps), float(self.promise.delta))

    @property
    def _either(self) -> float:
        """How often he is right at most about which of two values is a person's: two neighbours apart."""
        promise, delta = self.promise, float(self.promise.delta)
        loss = promise.paid.eps if self.promise.limit is None else promise.eps
        curves = [] if loss is None else [of_pure(float(loss))]
        if promise.success is not None:
            curves.append(of_gaussian(root(limit_of(promise.success))))
        success = min(of_two_steps(with_delta(curve, delta)).success for curve in curves)
        return min(success + delta, 1.0)  # for where the curves bend, which delta moves

    @property
    def _out_of(self) -> int:
        return common_denominator([self.promise.limit or self._so_far])

    def _right(self, field: str) -> str:
        limit = self.promise.limit
        return self._counts(f"{field}_so_far", self._so_far) if limit is None else self._counts(f"{field}_with", limit)

    def _risk(self) -> str:
        return self._right("ledger_risk")

    def _lucky(self) -> list[str]:
        """How sure lucky answers may make him, as far as success does not say it; with delta nothing is known."""
        promise = self.promise
        if promise.success is None or promise.delta:
            return []
        sentences, most = [], None if promise.eps is None else reached(float(promise.eps))
        if most is None or most > SURE:
            cases = sure_of(root(limit_of(promise.success)), SURE)
            times, _ = counted(cases, self._out_of)
            sentences.append(
                self.said["lucky"].format(times=f"{times:,}", out_of=f"{self._out_of:,}", sure=round(100 * SURE))
            )
        if most is not None:
            sentences.append(self._counts("lucky_never", most))
        elif promise.paid.eps:
            sentences.append(self._counts("lucky_so_far", self._so_far))
        return sentences

    def _beside(self) -> list[tuple[str, str]]:
        lucky = self._lucky()
        rows = [(self.said["label_lucky"], " ".join(lucky))] if lucky else []
        rows += [(self.said["label_doubts"], text) for text in doubts(self.promise, self.said)]
        return [*rows, (self.said["label_two_values"], self._two_values())]

    def _two_values(self) -> str:
        return self._counts("two_values", self._either)

    def _counts(self, field: str, risk: float) -> str:
        times, at_most = counted(risk, self._out_of)
        coin, who = self._out_of // 2, self.said["one_record" if self.promise.person is None else "a_person"]
        return self.said[field if at_most else f"{field}_over"].format(
            times=f"{times:,}", out_of=f"{self._out_of:,}", coin=f"{coin:,}", more=f"{times - coin:,}", who=who
        )

    def _unit(self, of_person: str, of_record: str) -> str:
        person = self.promise.person
        if person is None:
            return self.said[of_record]
        return self.said[of_person].format(unit=called(person), counted="")
