"""One answer of a publication in words: from its question as it was recorded, and what was paid for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from typing import Any

from pdrisk._core.statistics import Proportion
from pdrisk._core.surveys.weighted import OF_ANYTHING, WEIGHTED
from pdrisk._ledger.publishing.statement_words import TEXTS
from pdrisk._ledger.rules.limits import Spent, shown
from pdrisk._mechanisms import MECHANISMS
from pdrisk._model.query import written
from pdrisk._printing import printable


@dataclass(frozen=True)
class PublishedAnswer:
    """One answer of a publication: its question, what stands beside it, and what was paid for it."""

    question: Mapping[str, Any]
    facts: Mapping[str, Any]
    paid: Spent

    @property
    def kind(self) -> str:
        """What is protected: ``one`` record, a ``person``, or a ``row`` where a person may have several."""
        if "person" not in self.question:
            return "one"
        return "row" if self.question["unit"] == "row" else "person"

    @property
    def unit(self) -> str:
        """The word for what is protected."""
        return printable(self.facts["unit"]) if self.kind == "person" else TEXTS[f"word_{self.kind}"]

    @property
    def names(self) -> list[str]:
        """Names of its statistics."""
        return [
            written(line["statistic"], line["column"], line.get("other"))
            + (f" filter {printable(line['filter'])}" if "filter" in line else "")
            for line in self.question["lines"]
        ]

    @property
    def asked(self) -> str:
        """The question in a few words."""
        source = f" from {printable(self.question['source'])}" if "source" in self.question else ""
        by = f" by {_listed(self.question['by'])}" if "by" in self.question else ""
        return f"{', '.join(self.names)}{source}{by}"

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """Everything else about it, with labels."""
        parts = {
            "records": self.filters, "groups": self.groups, "people": self.limits, "values": self.values,
            "noise": [*self.noises, *self.roundings], "eps": self.costs,
        }  # fmt: skip
        for label, texts in parts.items():
            if text := "; ".join(dict.fromkeys(texts)):
                yield TEXTS[f"label_{label}"], text

    @property
    def filters(self) -> Iterator[str]:
        """Which records it is about."""
        where = [self.question["where"] or TEXTS["mask"]] if "where" in self.question else []
        yield TEXTS["some"].format(where=printable(where[0])) if where else TEXTS["all"]
        if self.question.get("where_trusted"):
            where += [line.get("filter") or line.get("condition") or "" for line in self.question["lines"]]
            names = re.findall(r"(?<!\w)@\w+", " ".join(where))
            yield TEXTS["hidden"].format(names=_listed(names)) if names else TEXTS["trusted"]
        for name, text in self.question.get("derived", {}).items():
            yield TEXTS["derived"].format(name=printable(name), text=printable(text))

    @property
    def groups(self) -> Iterator[str]:
        """What its groups are, and who listed them."""
        if "by" not in self.question:
            return
        columns, keys = _listed(self.question["by"]), self.question["keys"]
        if keys == "private":
            names = dict(zip(("least", "half", "surely"), self.facts["sizes_shown"], strict=True))
            sizes = TEXTS["sizes"].format(**{name: f"{size:,}" for name, size in names.items()})
            yield TEXTS["groups_private"].format(columns=columns, sizes=sizes)
        elif keys == "observed":
            yield TEXTS["groups_of_data"].format(columns=columns)
        else:
            number = keys["count"] if isinstance(keys, Mapping) else len(keys)
            by_whom = TEXTS["by_categories" if self.facts["keys_from"] == "categories" else "by_publisher"]
            yield TEXTS["groups_listed"].format(number=f"{number:,}", columns=columns, by_whom=by_whom)
        if "margins" in self.question:
            yield TEXTS["margins"].format(measured=_listed(self._measured_tables, " and "))
        if self.facts["without_missing"]:
            yield TEXTS["without_missing"].format(columns=_listed(self.facts["without_missing"], " or "))

    @property
    def _measured_tables(self) -> Iterator[str]:
        """The tables that were measured, each with its share of eps."""
        by = self.question.get("by") or [self.question["lines"][0]["column"]]
        for axes, share in self.question["margins"]:
            columns = _listed(by[axis] for axis in axes)
            form = TEXTS["table" if axes else "total"]
            yield form.format(columns=columns, share=f"{100 * float(Fraction(share)):g}")

    @property
    def limits(self) -> Iterator[str]:
        """What counts of each person."""
        unit, limits = self.question.get("unit"), self.facts.get("leaves_out", ())
        if not isinstance(unit, Mapping):
            return
        if "per_person" in unit:
            yield TEXTS["per_person"].format(unit=self.unit, way=unit["per_person"])
        if "rows" in limits:
            where = "" if "by" not in self.question else TEXTS["each_group" if "groups" in unit else "all_groups"]
            rows = unit["rows"]
            yield TEXTS["row" if rows == 1 else "rows"].format(unit=self.unit, rows=f"{rows:,}", where=where)
        if "groups" in limits:
            groups = unit["groups"]
            yield TEXTS["group" if groups == 1 else "groups"].format(unit=self.unit, groups=f"{groups:,}")
        if "waves" in limits:
            is_weighted = self.question["lines"][0]["statistic"].startswith(WEIGHTED)
            yield TEXTS["waves"] + TEXTS["weight_of_later"] * is_weighted

    @property
    def values(self) -> Iterator[str]:
        """Bounds of values, and those that stand for missing ones."""
        for line in self.question["lines"]:
            yield from _bounds_of(line)
            if "n_at_least" in line:
                yield TEXTS["n_at_least"].format(n=f"{line['n_at_least']:,}")
        for column, codes in self.question.get("missing", ()):
            yield TEXTS["codes"].format(codes=_listed(codes), column=printable(str(column)))

    @property
    def releases(self) -> list[list[int]]:
        """The lines that each release answers."""
        lines: dict[int, list[int]] = {}
        for at, release in enumerate(self.question.get("releases", range(len(self.names)))):
            lines.setdefault(release, []).append(at)
        return list(lines.values())

    @property
    def noises(self) -> Iterator[str]:
        """The noise of each release."""
        return self._by_release(lambda line: MECHANISMS[line.get("mechanism", "laplace")].noise)

    @property
    def roundings(self) -> Iterator[str]:
        """What is done to noisy answers."""
        bases = self.facts.get("rounded_to", ())
        if any(bases):
            yield from self._by_line({at: _number(base) for at, base in enumerate(bases) if base})

    def _by_line(self, bases: Mapping[int, str]) -> Iterator[str]:
        for at, base in bases.items():
            text = TEXTS["rounded"].format(base=base)
            yield text if len(self.names) == 1 else f"{self.names[at]} {text}"

    def _by_release(self, tell: Callable[[Mapping[str, Any]], str]) -> Iterator[str]:
        """A text about each release, with the names of its statistics if there are several."""
        for lines in self.releases:
            names = ", ".join(self.names[at] for at in lines)
            text = tell(self.question["lines"][lines[0]])
            yield text if len(self.releases) == 1 else f"{names}: {text}"

    @property
    def costs(self) -> Iterator[str]:
        """Eps of each release, of what decides which groups and answers are shown, and of all together."""
        question, times = self.question, self.question.get("times", 1)
        parts = list(self._by_release(lambda line: eps_text(Fraction(line["eps"]))))
        if question.get("keys") == "private":
            values = sum(Fraction(question["lines"][lines[0]]["eps"]) for lines in self.releases)
            chosen = eps_text(Fraction(question["eps"]) / times - values)
            parts.append(TEXTS["eps_of_groups"].format(eps=chosen, delta=eps_text(self.paid.delta / times)))
        withheld, looks = question.get("least_group"), self.paid.eps / times - Fraction(question["eps"]) / times
        if isinstance(withheld, Mapping) and looks > 0:
            parts.append(TEXTS["withheld"].format(size=f"{withheld['size']:,}", eps=eps_text(looks)))
        yield from parts
        if times > 1:
            yield TEXTS["times"].format(times=f"{times:,}")
        if len(parts) > 1 or times > 1:
            yield TEXTS["eps_in_all"].format(eps=eps_text(self.paid.eps))

    @property
    def keys_from_data(self) -> str:
        """The columns whose keys it took from the data."""
        return _listed(self.question["by"]) if self.question.get("keys") == "observed" else ""


def _bounds_of(line: Mapping[str, Any]) -> Iterator[str]:
    if "edges" in line:
        beyond = TEXTS["bins_clamp" if line["clamps"] else "bins_leave_out"]
        low, high = (_number(line["edges"][at]) for at in (0, -1))
        yield TEXTS["bins"].format(number=f"{len(line['edges']) - 1:,}", low=low, high=high, beyond=beyond)
        return
    if line["statistic"] == Proportion().label:  # whose values are 0 and 1
        return
    known = [(line["column"], line["bounds"]), (line.get("other"), line.get("other_bounds"))]
    if line["statistic"].startswith(WEIGHTED):
        column, ends = known[1] if "other" in line else known[0]
        yield TEXTS["weights"].format(column=printable(str(column)), most=_number(ends[1]))
        known = known[:1] if "other" in line and line["statistic"] not in OF_ANYTHING else []
    known = [(printable(str(column)), ends) for column, ends in known if ends is not None]
    for column, ends in known:
        yield TEXTS["bounds"].format(column=column, low=_number(ends[0]), high=_number(ends[1]))


def _listed(parts: Iterable[object], last: str = ", ") -> str:
    texts = [printable(str(part)) for part in dict.fromkeys(map(str, parts))]
    return last.join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def eps_text(value: Fraction) -> str:
    """An eps or delta as text, rounded up."""
    return shown(value, ROUND_CEILING)
