"""Explanation of a release, in words for each who has to know: always without and with it, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.curator import Exposed
from pdrisk._answer.words.counts import chances
from pdrisk._answer.words.groups import groups_said
from pdrisk._answer.words.labels import clamped, hidden_values, of_survey, title
from pdrisk._answer.words.languages import of_rows, texts
from pdrisk._answer.words.left_out import of_truncated, rule_of, share_left_out, where_rows_count
from pdrisk._answer.words.spent import SoFar, spent_so_far
from pdrisk._core.foreign import shown
from pdrisk._core.risks.whole_numbers import common_denominator, counted, reached
from pdrisk._digits import probability, rounded_up
from pdrisk._mechanisms import MECHANISMS
from pdrisk._model.arguments import checked_probability
from pdrisk._model.unit import ONE_RECORD
from pdrisk._printing import DisplayedText, laid_out, printable
from pdrisk.errors import NotPublicError, ParameterError

PUBLIC: Final = ("participant", "publication")
AUDIENCES: Final = ("participant", "analyst", "curator", "publication")
Rows = list[tuple[str, str]]


def participant(worst_case: float) -> str:
    """What one release means to a person who thinks about taking part."""
    wording = texts("en")
    out_of = common_denominator([worst_case])
    lines = [
        *_pair(wording, worst_case, out_of, "one"),
        wording["unit_of_record"],
        wording["one_release"],
        wording["not_covered"],
    ]
    return "\n".join(lines)


def explained(
    answer: Answer,
    audience: object = "participant",
    so_far: object = None,
    language: object = "en",
    *,
    prior: object = None,
    exposed: Sequence[Exposed | None] = (),
) -> str:
    """A release in words.

    ``audience``: {"participant", "analyst", "curator", "publication"}
    ``so_far``: the eps of all releases so far, this one included; or the ledger that paid.
    ``prior``: the chance that an attacker starts from, instead of a coin's 1/2.
    ``exposed``: the curator's numbers of each line, as far as they are known; only the curator's text shows them.
    """
    wording = texts(language, answer)
    if not isinstance(audience, str) or audience not in AUDIENCES:
        raise ParameterError(f"unknown audience {shown(audience)}; available: {', '.join(AUDIENCES)}.")
    if audience in PUBLIC and answer.bounds_from_data:
        raise not_for_others(answer.name)
    start = None if prior is None else checked_probability("prior", prior)
    spent = spent_so_far(so_far, answer, wording)
    if answer.delta and audience == "curator":
        raise ParameterError(
            "the curator's text bounds what an attacker may come to believe, and with delta no such bound holds: see "
            "the columns n, local_sensitivity and clamped of the table, asked with curator=True."
        )
    if spent.delta and start is not None:
        raise ParameterError(
            "prior= asks what an attacker may come to believe, and with delta no such bound holds for everybody: leave "
            "it out, to be told how often the best attacker is right."
        )
    telling = _Telling(answer, wording, spent, start, exposed)
    return DisplayedText(getattr(telling, audience)())


def not_for_others(name: str) -> NotPublicError:
    """The error for an explanation for other people if the bounds are two people's values."""
    return NotPublicError(
        f"{name} took its bounds from the data, so nothing of it may be told to others: declare bounds=(lo, hi) "
        "without looking at the data and ask again."
    )


@dataclass(frozen=True, slots=True)
class _Telling:
    """Explanation of one release, in the parts that texts are made of.

    With a ``prior`` the attacker starts from it, else from a coin's 1/2.
    """

    answer: Answer
    said: Mapping[str, str]
    spent: SoFar
    prior: float | None
    exposed: Sequence[Exposed | None]

    def participant(self) -> str:
        answer, wording = self.answer, self.said
        out_of, number = self._out_of(), "several" if answer.several else "one"
        if self.prior is None:
            lines = _pair(wording, self._own, out_of, number)
        else:
            before, after, together = self._chances(self.prior)
            lines = [
                wording["imagine_prior"].format(before=before),
                wording[f"with_prior_{number}"].format(after=after),
            ]
        unit = wording["unit_of_person" if answer.has_person else "unit_of_record"]
        lines.append(unit.format(unit=printable(answer.unit)))
        if answer.delta:
            lines.append(wording["delta_told"].format(one_in=f"{math.floor(1 / Fraction(repr(answer.delta))):,}"))
        if answer.withheld:
            lines.append(wording["withheld"])
        if self._all is None:
            lines.append(wording["one_release"])
        elif self.prior is None:
            lines.append(_counts(wording, f"so_far{self._limited}", self._all, out_of))
        else:
            lines.append(wording["so_far_prior"].format(after=together))
        lines += self.spent.doubts
        return "\n".join([*lines, wording["not_covered"]])

    def _chances(self, prior: float) -> tuple[str, str, str]:
        """Chances before, after this release, and after all so far (the same as after this one if unknown)."""
        losses = [self.answer.eps, self.answer.eps if self.spent.total is None else self.spent.total]
        before, (after, together) = chances(self.said, prior, losses)
        return before, after, together

    def analyst(self) -> str:
        answers, rule = of_truncated(self._answers(), self.answer, self.said), rule_of(self.answer, self.said)
        left_out = [(self.said["left_out"], rule)] if rule else []
        rows = [*self._caution(), *answers, *left_out, *groups_said(self.answer, self.said)]
        rows += [*self._protected(), *self._eps()]
        rows.append((self.said["left"], self.spent.left))
        return laid_out(self._title("analyst"), [*rows, *self._risk("together")])

    def curator(self) -> str:
        known = [one for one in self.exposed if one is not None]
        if not known:
            raise ParameterError(
                "this answer does not hold the curator's numbers: ask with curator=True, and pass the answer as pdrisk "
                "returned it."
            )
        out_of = self._out_of([one.numbers.two_worlds for one in known])
        head = [*self._caution(), *self._protected(), *self._eps(), *self._risk("together", out_of)]
        sections = [
            laid_out(f"  {line.name}", [("  " + self.said["label_not_held"], self.said["not_held"])])
            if one is None
            else self._exposed(line, one, out_of)
            for line, one in zip(self.answer.lines, self.exposed, strict=True)
        ]
        return "\n".join([laid_out(self._title("curator"), head), f"  -- {self.said['curator_only']} --", *sections])

    def publication(self) -> str:
        answer, wording = self.answer, self.said
        hidden, where, rule = hidden_values(answer), printable(answer.where or ""), rule_of(answer, wording)
        which = "hidden" if hidden else "all" if not where else "trusted" if answer.where_trusted else "some"
        asked = wording[f"asked_of_{which}"].format(where=where, names=hidden)
        rows = [
            *of_truncated(self._answers(), answer, wording),
            (wording["asked_of"], f"{asked}; {rule}" if rule else asked),
        ]
        if answer.bins_clamp is not None:
            rows.append((wording["bins"], wording["bins_clamp" if answer.bins_clamp else "bins_leave_out"]))
        rows += groups_said(answer, wording)
        neighbours = wording["neighbours_is_person" if answer.has_person else "neighbours_is"]
        rows += [
            (wording["unit"], self._unit()),
            (wording["neighbours"], neighbours.format(unit=printable(answer.unit))),
        ]
        rows += [(line.name, self._declared(line)) for line in answer.lines]
        rows += [*self._eps(), *self._risk("composition"), (wording["uncovered"], wording["uncovered_is"])]
        return laid_out(self._title("publication"), rows)

    @property
    def _own(self) -> float:
        return reached(self.answer.eps, self.answer.delta)

    @property
    def _limited(self) -> str:
        """The end of the fields about all releases together where a limit of success holds, for those to come, too."""
        return "" if self.spent.limit is None else "_limit"

    @property
    def _all(self) -> float | None:
        if self.spent.limit is not None:
            return self.spent.limit
        return None if self.spent.total is None else reached(self.spent.total, self.spent.delta)

    def _out_of(self, others: list[float] | None = None) -> int:
        """The one denominator of everything that a text says in whole numbers."""
        return common_denominator([self._own, *([] if self._all is None else [self._all]), *(others or [])])

    def _title(self, audience: str) -> str:
        return self.said[f"{audience}_title"].format(name=title(self.answer))

    def _caution(self) -> Rows:
        return [(self.said["caution"], self.said["caution_from_data"])] if self.answer.bounds_from_data else []

    def _answers(self) -> Rows:
        answer, wording = self.answer, self.said
        value = answer.lines[0].value
        if answer.several or value is None:
            covered = [self._interval()] if any(map(_has_interval, answer.lines)) else []
            return [*((line.name, self._noise(line)) for line in answer.lines), *covered, *self._clips()]
        if answer.withheld:
            return [(wording["answer"], wording["answer_withheld"])]
        one = answer.lines[0]
        noisy, low, high = one.shown(value), one.shown(one.low, "before"), one.shown(one.high, "after")
        if not _has_interval(one) and one.rank95 is not None:
            text = wording["interval_by_rank"].format(ranks=self._ranks(one))
            return [(wording["answer"], wording["answer_by_rank"].format(value=noisy)), (wording["interval"], text)]
        text = wording["answer_is"].format(value=noisy, low=low, high=high)
        return [(wording["answer"], text), self._interval(), *self._clips()]

    def _interval(self) -> tuple[str, str]:
        """What an interval covers."""
        is_clamped = any(clamped(self.answer, line) for line in self.answer.lines)
        return self.said["interval"], self.said["interval_is_clamped" if is_clamped else "interval_is"]

    def _clips(self) -> Rows:
        """The clipping points of all lines."""
        ends = dict.fromkeys(line.clip for line in self.answer.lines if line.clip is not None)
        texts = [tuple(map(formatting.number, end)) for end in ends]
        return [(self.said["clip"], self.said["clip_is"].format(low=low, high=high)) for low, high in texts]

    def _ranks(self, line: AnswerLine) -> str:
        ranks, step = (math.nan if number is None else number for number in (line.rank95, line.step))
        if (few := formatting.records_said_of(ranks)) is None:
            return self.said["ranks_unknown"]
        field, weight = ("ranks_within", 1) if line.weights is None else ("ranks_within_weight", line.weights[1])
        return self.said[field].format(
            ranks=formatting.number(ranks * weight), step=line.length(step), few=f"{few * weight:,.6g}"
        )

    def _noise(self, line: AnswerLine) -> str:
        """The error by noise."""
        eps, of = self._eps_of_values(line), clamped(self.answer, line)
        of += ", " * bool(of)
        if line.rank95 is not None and math.isnan(line.noise95):
            return of + self.said["noise_by_rank"].format(ranks=self._ranks(line), eps=eps)
        if math.isnan(line.noise95):
            return self.said["noise_of_nothing"].format(eps=eps)
        field = "noise_is" + "_widest" * self.answer.grouped
        return of + self.said[field].format(half=line.length(line.noise95), eps=eps)

    def _eps_of_values(self, line: AnswerLine) -> str:
        """The eps that pays for the values, without the share that chooses the groups."""
        return _eps(line.eps - line.eps_groups - line.sampling_eps)

    def _eps(self) -> Rows:
        answer, wording = self.answer, self.said
        field = "eps_groups" if answer.grouped else "eps_is"
        if answer.grouped and answer.has_person:
            field += "_person" if answer.groups_each == 1 else "_overall" if answer.overall else "_several"
        elif answer.grouped and of_rows(answer):
            field += "_row"
        most = {"rows": f"{answer.rows:,}", "groups": f"{answer.groups_each:,}"}
        text = wording[field].format(eps=_eps(answer.eps), unit=printable(answer.unit), **most)
        for names in answer.shared:
            text += wording["eps_shared"].format(names=names)
        if answer.least_group is not None:
            text += wording["eps_counted"].format(extra=_eps(answer.extra), size=f"{answer.least_group:,}")
        if not answer.delta:
            return [(wording["eps"], text)]
        text += wording["eps_of_groups"].format(groups=_eps(answer.eps_groups))
        return [(wording["eps"], text), (wording["delta"], wording["delta_is"].format(delta=_eps(answer.delta)))]

    def _unit(self) -> str:
        """Who is protected, and how the rows of a person count."""
        answer, wording, unit = self.answer, self.said, printable(self.answer.unit)
        if not answer.has_person:
            return wording["unit_row" if of_rows(answer) else "unit_is"].format(unit=unit)
        way = "per_person" if answer.per_person else "one" if answer.rows == 1 else "rows"
        counted = wording[f"counted_{way}"].format(way=answer.per_person, rows=f"{answer.rows:,}")
        counted += f",{where}" if (where := where_rows_count(answer, wording)) else ""
        return wording["unit_person"].format(unit=unit, counted=counted)

    def _protected(self) -> Rows:
        """Who is protected, unless that is the usual: one record, which is assumed to be a person."""
        return [] if self.answer.unit == ONE_RECORD else [(self.said["unit"], self._unit())]

    def _risk(self, label: str, out_of: int | None = None) -> Rows:
        """The chances with and without this release, and with all releases so far."""
        wording, denominator = self.said, self._out_of() if out_of is None else out_of
        if self.prior is None:
            risk = _counts(wording, "risk", self._own, denominator)
        else:
            before, after, both = self._chances(self.prior)
            risk = wording["risk_prior"].format(before=before, after=after)
        total = self.spent.total
        if self._all is None or total is None:
            together = wording["together_unknown"]
        elif self.prior is None:
            together = _counts(wording, f"together{self._limited}", self._all, denominator, eps=_eps(total))
        else:
            together = wording["together_prior"].format(eps=_eps(total), after=both)
        doubts = [(wording["label_doubts"], text) for text in self.spent.doubts]
        return [(wording["label_risk"], risk), (wording[f"label_{label}"], together), *doubts]

    def _declared(self, line: AnswerLine) -> str:
        wording = self.said
        ranges = line.bounds_as(wording["bounds_range"], wording["bounds_of_column"])
        without = "bounds_none" if self.answer.bins_clamp is None else "bounds_of_bins"
        source = "bounds_by_where" if line.bounds_by_where else "bounds_are"
        bounds = wording[source].format(ranges=ranges) if ranges else wording[without]
        bounds += of_survey(line, wording)
        noise = MECHANISMS[line.mechanism].noise
        if line.scale is not None:
            noise = wording["noise_scaled"].format(noise=noise, scale=line.length(line.scale))
        base = line.rounded_to
        rounded = "" if base is None else wording["rounded_to"].format(base=formatting.number(base))
        return wording["line_is"].format(
            bounds=bounds,
            noise=noise,
            rounded=rounded,
            sensitivity=line.length(line.global_sensitivity),
            eps=self._eps_of_values(line),
        )

    def _exposed(self, line: AnswerLine, exposed: Exposed, out_of: int) -> str:
        """The curator's numbers of one line."""
        answer, wording, numbers = self.answer, self.said, exposed.numbers
        whole, local = line.length(line.global_sensitivity), wording["local_sensitivity_unknown"]
        if not math.isnan(numbers.local_sensitivity):
            share = rounded_up(min(numbers.local_sensitivity / line.global_sensitivity, 1.0))
            value = line.length(numbers.local_sensitivity)
            local = wording["local_sensitivity_is"].format(value=value, share=share)
        even, loss = MECHANISMS[line.mechanism].is_even, rounded_up(min(numbers.loss, line.eps), 6)
        of = "even" if even else "is"
        moved_most = wording["global_sensitivity_is" + "_person" * answer.has_person].format(
            value=whole, unit=printable(answer.unit), where=wording["in_all_groups"] * answer.grouped
        )
        moved = wording["clamped_none"]
        if numbers.clamped > 0:
            moved = wording["clamped_is"].format(share=formatting.share(numbers.clamped))
        rows = [
            (wording["global_sensitivity"], moved_most),
            (wording["local_sensitivity"], local),
            (wording["records"], f"{numbers.n:,}"),
            *([(wording["clamped"], moved)] if line.bounds else []),
            *share_left_out(numbers.left_out, answer, wording),
            (wording["privacy_loss"], wording[f"privacy_loss_{of}"].format(loss=loss, eps=_eps(line.eps))),
        ]
        one_of_n = 1 / max(numbers.n, 1)
        priors = {"worst_case": 0.5, "two_worlds": 0.5, "many_worlds": one_of_n, "identifiability": one_of_n}
        for metric, prior in priors.items():
            risk = line.risk.worst_case if metric == "worst_case" else getattr(numbers, metric)
            text = wording["risk_none"]
            if answer.replaces and math.isnan(risk):
                text = wording["risk_undefined"]
            elif prior == 1 and numbers.n:
                text = wording["risk_certain"]
            elif not math.isnan(risk):
                meaning = wording[f"{metric}_means"]
                text = wording["risk_row"].format(prior=probability(prior), risk=probability(risk), meaning=meaning)
            rows.append((wording[metric], text))
        field = "most_exposed" + (
            "_even" if even else "_by_rank" if line.rank95 is not None or line.clip is not None else ""
        )
        rows.append((wording["label_most_exposed"], _counts(wording, field, numbers.two_worlds, out_of)))
        if not answer.several:
            return laid_out("", rows)
        name = line.name if exposed.group is None else wording["group_is"].format(name=line.name, group=exposed.group)
        return laid_out(f"  {name}", [(f"  {label}", text) for label, text in rows])


def _pair(wording: Mapping[str, str], risk: float, out_of: int, number: str) -> list[str]:
    """The chances without and with a release of one or several numbers; neither stands alone."""
    without = wording[f"without_{number}"].format(coin=f"{out_of // 2:,}", out_of=f"{out_of:,}")
    return [wording["imagine"], without, _counts(wording, f"with_{number}", risk, out_of)]


def _counts(wording: Mapping[str, str], field: str, risk: float, out_of: int, **other: str) -> str:
    """A text about a risk in whole numbers; near certainty the one that says "more than"."""
    times, at_most = counted(risk, out_of)
    coin = out_of // 2
    return wording[field if at_most else f"{field}_over"].format(
        times=f"{times:,}", out_of=f"{out_of:,}", coin=f"{coin:,}", more=f"{times - coin:,}", **other
    )


def _has_interval(line: AnswerLine) -> bool:
    return not math.isnan(line.noise95)


def _eps(eps: float) -> str:
    return f"{eps:.6g}"
