"""Declarations of columns: what is known before the data, who declared it, and which of several declarations wins."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pdrisk._core.once import once
from pdrisk._core.universe import Days, Universe
from pdrisk._model.declared.known_column import EVERYTHING, Ends, Known, range_phrase
from pdrisk._model.expressions.kinds import TEXT, TRUTH
from pdrisk._model.plain import from_json, json_value
from pdrisk._model.unit import People, judged_people
from pdrisk.errors import ParameterError

Pattern = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """Declaration of a column by one source."""

    column: Hashable  # its label, or the beginning of it as a regular expression if ``pattern``
    source: str  # who says so, for people: ``"declare"``, ``"schema 'soep'"``
    pattern: bool = False
    bounds: Ends | None = None  # what values are clamped to
    valid: Ends = EVERYTHING  # what values can be at all; infinite where nothing is said
    keys: tuple[Hashable, ...] | None = None  # the public list of groups
    missing: tuple[Hashable, ...] | None = None  # values that stand for a missing answer
    whole: bool = False  # whether all values are whole numbers
    kind: str | None = None  # of the values in a column of Python objects
    dates: bool = False  # whether ``bounds`` and ``valid`` are of dates, in days since 1970-01-01
    problem: str | None = None  # why this cannot be understood, for whoever asks for the column

    @property
    def says_something(self) -> bool:
        """Whether it says more than of what kind values are; that they are whole numbers helps only within bounds."""
        return self != Declaration(self.column, self.source, self.pattern, whole=self.whole, kind=self.kind)


@dataclass(frozen=True)
class Declarations:
    """Declarations of a frame or table: by hand, which wins, and by schemas; who a person is there, and the weights."""

    own: tuple[Declaration, ...] = ()
    schema: tuple[Declaration, ...] = ()
    people: People | None = None
    weights: Hashable | None = None

    @once
    def _by_label(
        self,
    ) -> tuple[dict[Hashable, Declaration], dict[Hashable, Declaration], list[tuple[Pattern, Declaration]]]:
        """Own entries, entries of schemas, and patterns; of two with one label the first."""
        schema = [entry for entry in self.schema if entry.says_something]
        labelled = [entry for entry in reversed(schema) if not entry.pattern]
        return (
            {entry.column: entry for entry in reversed(self.own)},
            {entry.column: entry for entry in labelled},
            [(_compiled(entry.column), entry) for entry in schema if entry.pattern],
        )

    @once
    def speak_of_codes(self) -> bool:
        """Whether there may be missing codes."""
        return any(entry.missing or entry.problem for entry in (*self.own, *self.schema))

    def speak_of(self, column: Hashable) -> bool:
        """Whether anything is declared for a column, understood or not."""
        by_hand, by_schema, patterns = self._by_label
        return column in by_hand or column in by_schema or any(_fits(pattern, column) for pattern, _ in patterns)

    def names(self, column: Hashable) -> bool:
        """Whether a schema names a column, with or without saying anything of it."""
        entries = [(_compiled(entry.column) if entry.pattern else None, entry) for entry in self.schema]
        return any(entry.column == column if form is None else _fits(form, column) for form, entry in entries)

    def kind_of(self, column: Hashable) -> str | None:
        """Kind of the values in a column, as the type in a schema names it."""
        return next((entry.kind for entry in self.schema if entry.column == column and entry.kind), None)

    def of(self, column: Hashable) -> Known:
        """Merged declarations of a column. `Known.narrowed` checks declared bounds against the range."""
        if not (self.own or self.schema):
            return Known(column)
        by_hand, by_schema, patterns = self._by_label
        declaration = by_hand.get(column, Declaration(column, "declare"))
        entries = [by_schema[column]] if column in by_schema else []
        entries += [entry for pattern, entry in patterns if _fits(pattern, column)]
        if problem := next((entry.problem for entry in entries if entry.problem), None):
            raise ParameterError(problem)
        dates = _are_dates(column, (declaration, *entries))
        missing, missing_from = _first(declaration, entries, "missing")
        valid, valid_from = _valid(column, entries)
        keys, keys_from = _keys(declaration, entries)
        if keys is not None and missing:
            codes = set(missing)
            keys = tuple(key for key in keys if key not in codes)
        bounds, bounds_from = _first(declaration, entries, "bounds")
        interval = universe_of(valid if bounds is None else bounds, dates=dates)
        if bounds is None and interval is not None:
            bounds_from = valid_from
        sources = bounds_from, valid_from, keys_from, missing_from
        whole = any(entry.whole for entry in entries)
        return Known(column, interval, valid, keys, missing or (), *sources, whole, dates)

    def and_schema(
        self,
        entries: tuple[Declaration, ...],
        people: People | None,
        weights: Hashable | None,
        objects: Collection[Hashable] = (),
    ) -> Declarations:
        """Declarations with a later schema, which replaces those of all columns that it names.

        What says no more than the kind of values is kept for columns of ``objects``.
        """
        named = {(entry.column, entry.pattern) for entry in entries}
        before = (entry for entry in self.schema if (entry.column, entry.pattern) not in named)
        kept = (e for e in entries if e.says_something or (e.kind is not None and e.column in objects))
        schema = (*kept, *before)
        weights = self.weights if weights is None else weights
        return Declarations(self.own, schema, self.people if people is None else people, weights)

    @property
    def text(self) -> str:
        """As one JSON text, for ``attrs``: a text is copied and compared for nothing, nested lists are not."""
        fields: dict[str, Any] = {name: [_json(entry) for entry in getattr(self, name)] for name in ("own", "schema")}
        if (people := self.people) is not None:
            fields["people"] = {
                "person": [json_value(column) for column in people.columns],
                "per_person": people.per_person,
                "constant": [json_value(column) for column in people.constant],
                **({} if people.unit_label is None else {"unit_label": people.unit_label}),
            }
        if self.weights is not None:
            fields["weights"] = json_value(self.weights)
        return json.dumps(fields)


def _compiled(column: Hashable) -> Pattern:
    return tuple(re.compile(str(part)) for part in (column if isinstance(column, tuple) else (column,)))


def _fits(pattern: Pattern, column: Hashable) -> bool:
    """Whether a pattern matches a label as pandera matches it, with several levels level by level."""
    levels = column if isinstance(column, tuple) else (column,)
    return len(levels) == len(pattern) and all(
        part.match(str(level)) for part, level in zip(pattern, levels, strict=True)
    )


def universe_of(valid: Ends, *, dates: bool = False) -> Universe | None:
    """The range of a schema as bounds, or None: a single value, or an open range, is none."""
    try:
        return Days(*valid) if dates else Universe(*valid)
    except ParameterError:
        return None


def _first(declaration: Declaration, entries: list[Declaration], name: str) -> tuple[Any, str | None]:
    """The first declaration that says anything."""
    for entry in (declaration, *entries):
        if (value := getattr(entry, name)) is not None:
            return value, entry.source
    return None, None


def _are_dates(column: Hashable, entries: Iterable[Declaration]) -> bool:
    """Whether declared ranges are of dates; refuses some of dates and some of numbers."""
    kinds = {entry.dates for entry in entries if entry.bounds is not None or entry.valid != EVERYTHING}
    if len(kinds) > 1:
        raise ParameterError(f"some declarations of {column!r} have dates as bounds, others numbers: correct them.")
    return True in kinds


def _valid(column: Hashable, entries: list[Declaration]) -> tuple[Ends, str | None]:
    """The range on which all agree."""
    valid, source = EVERYTHING, None
    for entry in entries:
        if entry.valid != EVERYTHING:
            valid, source = narrower(column, valid, entry.valid, dates=entry.dates), entry.source
    return valid, source


def narrower(column: Hashable, one: Ends, other: Ends, *, dates: bool = False) -> Ends:
    """Intersection of two ranges."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if low > high:
        ranges = " and ".join(range_phrase(ends, dates=dates) for ends in (one, other) if ends != EVERYTHING)
        raise ParameterError(f"the schema allows no value of {column!r}: its checks say {ranges}. Correct it.")
    return low, high


def _keys(declaration: Declaration, entries: list[Declaration]) -> tuple[tuple[Hashable, ...] | None, str | None]:
    """Keys in the order of the first list, without those that another list leaves out."""
    lists = [entry for entry in entries if entry.keys is not None]
    if declaration.keys is not None or not lists:
        return declaration.keys, declaration.source if declaration.keys is not None else None
    common = set.intersection(*(set(entry.keys or ()) for entry in lists))
    return tuple(key for key in lists[0].keys or () if key in common), lists[0].source


class BadTextError(Exception):
    """A text that `Declarations.text` did not write."""


@lru_cache(maxsize=64)
def from_text(text: str) -> Declarations:
    """The declarations that `Declarations.text` wrote."""
    try:
        stored = json.loads(text)
        by_hand, schema = (tuple(_entry(entry) for entry in stored[name]) for name in ("own", "schema"))
        unit = stored.get("people")
        parts = None if unit is None else (unit["person"], unit["per_person"], unit["constant"], unit.get("unit_label"))
        people = None if parts is None else judged_people(*parts)
        declarations = Declarations(
            by_hand, schema, people, from_json(stored["weights"]) if "weights" in stored else None
        )
        for entry in declarations.schema:
            if entry.pattern:
                _compiled(entry.column)
        # Anything else in the text, or a column declared twice, would be lost: such a text is damaged.
        if declarations.text == text and len({entry.column for entry in declarations.own}) == len(declarations.own):
            return declarations
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, re.error):
        pass
    raise BadTextError


def _json(entry: Declaration) -> dict[str, Any]:
    """Only the parts that say something."""
    fields: dict[str, Any] = {"column": json_value(entry.column), "source": entry.source}
    if entry.pattern:
        fields["pattern"] = True
    if entry.bounds is not None:
        fields["bounds"] = list(entry.bounds)
    if entry.valid != EVERYTHING:
        fields["valid"] = [end if math.isfinite(end) else None for end in entry.valid]
    for name in ("keys", "missing"):
        if (values := getattr(entry, name)) is not None:
            fields[name] = [json_value(value) for value in values]
    if entry.whole:
        fields["whole"] = True
    if entry.kind is not None:
        fields["kind"] = entry.kind
    if entry.dates:
        fields["dates"] = True
    return fields | ({} if entry.problem is None else {"problem": entry.problem})


def _entry(stored: dict[str, Any]) -> Declaration:
    bounds, valid = stored.get("bounds"), stored.get("valid")
    if bounds is not None:
        Universe(*map(float, bounds))  # refuses what no bounds can be
    str(stored["source"]).encode()  # and half of a surrogate pair, which no table can show
    if valid is not None and None not in valid and not valid[0] <= valid[1]:
        raise ValueError
    return Declaration(
        column=from_json(stored["column"]),
        source=str(stored["source"]),
        pattern=bool(stored.get("pattern", False)),
        bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        valid=EVERYTHING
        if valid is None
        else (
            -math.inf if valid[0] is None else float(valid[0]),
            math.inf if valid[1] is None else float(valid[1]),
        ),
        keys=_values(stored.get("keys")),
        missing=_values(stored.get("missing")),
        whole=bool(stored.get("whole", False)),
        dates=bool(stored.get("dates", False)),
        kind=None if "kind" not in stored else (TEXT, TRUTH)[(TEXT, TRUTH).index(stored["kind"])],
        problem=None if "problem" not in stored else str(stored["problem"]),
    )


def _values(stored: list[Any] | None) -> tuple[Hashable, ...] | None:
    return None if stored is None else tuple(map(from_json, stored))
