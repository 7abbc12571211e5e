"""What a release means, in words for each who has to know: always without and with it, in whole numbers."""

from __future__ import annotations

import math
import numbers
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pdrisk._answer import formatting
from pdrisk._answer.words.counts import common_denominator, counted, reached
from pdrisk._answer.words.languages import texts
from pdrisk._answer.words.told import Line, Told
from pdrisk._core.foreign import shown
from pdrisk._digits import probability, rounded_up
from pdrisk._printing import printable
from pdrisk.errors import ColumnTypeError, NotPublicError, ParameterError

__all__ = ["AUDIENCES", "explained", "not_for_others", "participant"]

PUBLIC: Final = ("participant", "publication")
AUDIENCES: Final = ("participant", "analyst", "curator", "publication")
WIDTH: Final = 110
LABEL: Final = 24  # characters; a longer label pushes its text to the right
Rows = list[tuple[str, str]]


def participant(worst_case: float) -> str:
    """What one release means to a person who thinks about taking part."""
    said = texts("en")
    out_of = common_denominator([worst_case])
    return "\n".join([*_pair(said, worst_case, out_of, several=False), said["one_release"], said["not_covered"]])


def explained(told: Told, audience: object = "participant", so_far: object = None, language: object = "en") -> str:
    """A release in words.

    Parameters
    ----------
    told : Told
    audience : {"participant", "analyst", "curator", "publication"}
    so_far : float or ledger, optional
        The eps of all releases so far, this one included; or the ledger that paid.
    language : str

    Raises
    ------
    NotPublicError
        For a participant or a publication, if the bounds came from the data.
    ParameterError, ColumnTypeError
        If the audience or language is unknown, or ``so_far`` cannot include this release.
    """
    said = texts(language)
    if not isinstance(audience, str) or audience not in AUDIENCES:
        raise ParameterError(f"unknown audience {shown(audience)}; there are {', '.join(AUDIENCES)}.")
    if audience in PUBLIC and told.bounds_from_data:
        raise not_for_others(told.name)
    telling = _Telling(told, said, *_spent(so_far, told, said))
    if audience == "participant":
        return telling.participant()
    if audience == "analyst":
        return telling.analyst()
    return telling.curator() if audience == "curator" else telling.publication()


def not_for_others(name: str) -> NotPublicError:
    """The error for whoever would tell others of bounds that are two people's values."""
    return NotPublicError(
        f"{name} took its bounds from the data, so nothing of it may be told to others: declare bounds=(lo, hi) "
        "without looking at the data and ask again."
    )


@dataclass(frozen=True, slots=True)
class _Telling:
    """One release told to somebody. ``total`` is the eps of all so far, ``left`` what is left, in words."""

    told: Told
    said: Mapping[str, str]
    total: float | None
    left: str

    def participant(self) -> str:
        told, said = self.told, self.said
        out_of = self._out_of()
        lines = _pair(said, self._own, out_of, several=told.several)
        if told.withheld:
            lines.append(said["withheld"])
        if self._all is None:
            lines.append(said["one_release"])
        else:
            lines.append(_counts(said, "so_far", self._all, out_of))
        return "\n".join([*lines, said["not_covered"]])

    def analyst(self) -> str:
        rows = [*self._caution(), *self._answers(), *self._eps(), (self.said["left"], self.left)]
        return _laid_out(self._title("analyst"), [*rows, *self._risk("together")])

    def curator(self) -> str:
        risks = [line.exposed.risk.two_worlds for line in self.told.lines if line.exposed is not None]
        if len(risks) < len(self.told.lines):
            raise ParameterError(
                "this answer does not hold the curator's columns: pass it as pdrisk returned it, not what public() "
                "made of it; in SQL, ask with risk_columns=True."
            )
        out_of = self._out_of(risks)
        head = [*self._caution(), *self._eps(), *self._risk("together", out_of)]
        own = [self._exposed(line, out_of) for line in self.told.lines]
        return "\n".join([_laid_out(self._title("curator"), head), f"  -- {self.said['curator_only']} --", *own])

    def publication(self) -> str:
        told, said = self.told, self.said
        which = "all" if told.where is None else "trusted" if told.where_trusted else "some"
        rows = [
            *self._answers(),
            (said["asked_of"], said[f"asked_of_{which}"].format(where=printable(told.where or ""))),
        ]
        if told.grouped:
            rows.append((said["groups"], said["groups_from_data" if told.keys_from_data else "groups_declared"]))
        rows += [(said["unit"], said["unit_is"]), (said["neighbours"], said["neighbours_is"])]
        rows += [(line.name, self._declared(line)) for line in told.lines]
        rows += [*self._eps(), *self._risk("composition"), (said["uncovered"], said["uncovered_is"])]
        return _laid_out(self._title("publication"), rows)

    @property
    def _own(self) -> float:
        return reached(self.told.eps)

    @property
    def _all(self) -> float | None:
        return None if self.total is None else reached(self.total)

    def _out_of(self, others: list[float] | None = None) -> int:
        """The one denominator of everything that a text says in whole numbers."""
        return common_denominator([self._own, *([] if self._all is None else [self._all]), *(others or [])])

    def _title(self, audience: str) -> str:
        return self.said[f"{audience}_title"].format(name=self.told.name)

    def _caution(self) -> Rows:
        return [(self.said["caution"], self.said["caution_from_data"])] if self.told.bounds_from_data else []

    def _answers(self) -> Rows:
        told, said = self.told, self.said
        value = told.lines[0].value
        if told.several or value is None:
            return [
                (line.name, said["noise_is"].format(half=formatting.number(line.half), eps=_eps(line.eps)))
                for line in told.lines
            ]
        if told.withheld:
            return [(said["answer"], said["answer_withheld"])]
        half = told.lines[0].half
        noisy, low, high = map(formatting.number, (value, value - half, value + half))
        answer = said["answer_is"].format(value=noisy, low=low, high=high)
        return [(said["answer"], answer), (said["interval"], said["interval_is"])]

    def _eps(self) -> Rows:
        told, said = self.told, self.said
        text = said["eps_groups" if told.grouped else "eps_is"].format(eps=_eps(told.eps))
        if told.least_group is not None:
            text += said["eps_counted"].format(extra=_eps(told.extra), size=f"{told.least_group:,}")
        return [(said["eps"], text)]

    def _risk(self, label: str, out_of: int | None = None) -> Rows:
        """The pair, and what all releases so far mean together."""
        said, denominator = self.said, self._out_of() if out_of is None else out_of
        risk = _counts(said, "risk", self._own, denominator)
        if self._all is None or self.total is None:
            together = said["together_unknown"]
        else:
            together = _counts(said, "together", self._all, denominator, eps=_eps(self.total))
        return [(said["label_risk"], risk), (said[f"label_{label}"], together)]

    def _declared(self, line: Line) -> str:
        said = self.said
        bounds = said["bounds_none"]
        if line.bounds is not None:
            low, high = map(formatting.number, line.bounds)
            bounds = said["bounds_are"].format(low=low, high=high)
        return said["line_is"].format(
            bounds=bounds,
            mechanism=self.told.mechanism,
            scale=formatting.number(line.scale),
            sensitivity=formatting.number(line.global_sensitivity),
            eps=_eps(line.eps),
        )

    def _exposed(self, line: Line, out_of: int) -> str:
        """What only the curator may see of one line."""
        told, said, found = self.told, self.said, line.exposed
        assert found is not None
        share = rounded_up(min(found.local_sensitivity / line.global_sensitivity, 1.0))
        whole, local = map(formatting.number, (line.global_sensitivity, found.local_sensitivity))
        rows = [
            (said["global_sensitivity"], said["global_sensitivity_is"].format(value=whole)),
            (said["local_sensitivity"], said["local_sensitivity_is"].format(value=local, share=share)),
            (said["records"], f"{found.n:,}"),
        ]
        one_of_n = 1 / max(found.n, 1)
        priors = {"worst_case": 0.5, "two_worlds": 0.5, "many_worlds": one_of_n, "identifiability": one_of_n}
        for metric, prior in priors.items():
            risk = getattr(found.risk, metric)
            text = said["risk_none"]
            if prior == 1 and found.n:
                text = said["risk_certain"]
            elif not math.isnan(risk):
                meaning = said[f"{metric}_means"]
                text = said["risk_row"].format(prior=probability(prior), risk=probability(risk), meaning=meaning)
            rows.append((said[metric], text))
        rows.append((said["label_most_exposed"], _counts(said, "most_exposed", found.risk.two_worlds, out_of)))
        if not told.several:
            return _laid_out("", rows)
        name = line.name if found.group is None else said["group_is"].format(name=line.name, group=found.group)
        return _laid_out(f"  {name}", [(f"  {label}", text) for label, text in rows])


def _pair(said: Mapping[str, str], risk: float, out_of: int, *, several: bool) -> list[str]:
    """Without and with a release: one is never told without the other."""
    number = "several" if several else "one"
    without = said[f"without_{number}"].format(coin=f"{out_of // 2:,}", out_of=f"{out_of:,}")
    return [said["imagine"], without, _counts(said, f"with_{number}", risk, out_of)]


def _counts(said: Mapping[str, str], field: str, risk: float, out_of: int, **other: str) -> str:
    """A text about a risk in whole numbers; near certainty the one that says "more than"."""
    times, at_most = counted(risk, out_of)
    coin = out_of // 2
    return said[field if at_most else f"{field}_over"].format(
        times=f"{times:,}", out_of=f"{out_of:,}", coin=f"{coin:,}", more=f"{times - coin:,}", **other
    )


def _eps(eps: float) -> str:
    return f"{eps:.6g}"


def _spent(so_far: object, told: Told, said: Mapping[str, str]) -> tuple[float | None, str]:
    """The eps of all releases so far, and what is left, in words."""
    if so_far is None:
        return None, said["left_unknown"]
    # Of its class: an object that has whatever is asked for, such as a pd.col expression, is no ledger.
    remaining: Any = getattr(type(so_far), "remaining", None)
    if callable(remaining):  # a ledger
        account = remaining(so_far)
        total = float(account.spent)
        left = said["left_unlimited"] if account.eps is None else said["left_is"].format(eps=_eps(account.eps))
    elif isinstance(so_far, numbers.Real) and not isinstance(so_far, bool | np.timedelta64):
        try:
            total, left = float(so_far), said["left_unknown"]
        except OverflowError:
            total, left = math.inf, said["left_unknown"]
    else:
        raise ColumnTypeError(
            f"so_far must be the eps of all releases so far, a number, or the ledger that paid for them, not of type "
            f"{type(so_far).__name__}."
        )
    if not told.eps * (1 - 1e-9) <= total < math.inf:  # a sum of floats may be short of it in its last digits
        raise ParameterError(
            f"so_far must be the eps of all releases so far, this one included: it is {total:g}, but this one alone "
            f"cost {told.eps:g}. Pass the sum, or the ledger that paid."
        )
    return max(total, told.eps), left


def _laid_out(title: str, rows: Rows) -> str:
    """Labels and texts in two columns."""
    widest = min(max(len(label) for label, _ in rows), LABEL)
    lines = [title] if title else []
    for label, text in rows:
        lines += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {label:<{widest}}  ",
            subsequent_indent=" " * (widest + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
