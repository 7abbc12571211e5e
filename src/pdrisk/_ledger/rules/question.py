"""The canonical text of a query: what was asked, from public facts alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from pdrisk._core.days import moment
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Histogram, Mean
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms import calibrated
from pdrisk._model.expressions.kinds import NUMBER, TIME, kind_within
from pdrisk._model.plain import json_value, plain_label
from pdrisk._model.query import UNIT, Line, Query

PLANNED = '["pdrisk plan"'
HEADINGS = frozenset({"column", "other", "filter", "where", "by", "person", "missing"})
LISTED = 100  # keys that are written out; of more, a digest of the list


def question(query: Query) -> dict[str, Any]:
    """Canonical form of a query as JSON values: two queries that ask the same have the same."""
    asked: dict[str, Any] = {
        "lines": [_line(line, share) for line, share in zip(query.lines, query.line_shares, strict=True)],
        "eps": str(query.eps),
        "mechanism": ", ".join(dict.fromkeys(line.mechanism for line in query.lines)),
    }
    if len(query.leads) < len(query.lines):  # else each line has a release of its own
        asked["releases"] = list(query.releases)
    if query.times > 1:
        asked["times"] = query.times
    if query.source is not None:
        asked["source"] = query.source
    if query.condition is not None:
        asked["where"] = query.condition
    if query.trusted:
        asked["where_trusted"] = True
    if query.where is not None:
        asked["where"] = query.where.text
        if query.where.trusted:
            asked["where_trusted"] = True
    if any(line.is_trusted for line in query.lines):
        asked["where_trusted"] = True
    if query.groups is not None:
        groups = query.groups
        asked["by"] = [plain_label(column) for column in groups.columns]
        asked["keys"] = "observed" if groups.keys is None else _keys(groups.keys)
    if query.margins is not None:
        asked["margins"] = query.margins.said
    if query.selection is not None:
        asked |= {"keys": "private", "delta": str(query.delta), "least_group": query.selection.least}
    if query.unit.person:
        unit = query.unit
        asked["person"] = [plain_label(column) for column in unit.person]
        counted = {"per_person": unit.per_person, "rows": unit.rows, "groups": None if unit.overall else unit.groups}
        asked["unit"] = "row" if unit.of_rows else {name: value for name, value in counted.items() if value is not None}
    if query.derived:
        asked["derived"] = {derived_column.name: derived_column.text for derived_column in query.derived}
    if query.missing:
        asked["missing"] = [
            [plain_label(column), [_value(c) for c in codes]] for column, codes in query.missing.items()
        ]
    return asked


def events(query: Query, counted: list[Fraction]) -> list[dict[str, Any]]:
    """Events for accounting: one for each release of a query, and one for each count of people.

    ``counted``: the eps of each noisy number of people that decides what is withheld.
    """
    leads = [query.lines[lead] for lead in query.leads]
    parts = [Fraction(1)] if query.margins is None else [share for _, share in query.margins.shares]
    draws = [(line, eps * part) for line, eps in zip(leads, query.shares, strict=True) for part in parts]
    paid = [line.calibrated(eps).event for line, eps in draws]
    paid += [calibrated("geometric", Count(), UNIT, eps).event for eps in counted]
    paid += [] if query.selection is None else [query.selection.event]
    return [event | {"times": query.times} for event in paid] if query.times > 1 else paid


def name_of(query: Query) -> str:
    """Name of a query as people read it: ``mean(distance)``, ``mean(distance) and 2 more``."""
    first = query.lines[0].name
    return first if len(query.lines) == 1 else f"{first} and {len(query.lines) - 1} more"


def identity(query: Query, asked: dict[str, Any]) -> dict[str, Any]:
    """What decides the key of a question beside ``query.said``.

    Where that is the canonical text of a plan, it says what is read of ``source``: what columns and conditions are
    called in SQL decides nothing.
    """
    if not (query.said or "").startswith(PLANNED):
        return asked
    lines = [{name: value for name, value in line.items() if name not in HEADINGS} for line in asked["lines"]]
    return {name: value for name, value in asked.items() if name not in HEADINGS} | {"lines": lines}


def _line(line: Line, share: Fraction) -> dict[str, Any]:
    bounds: Any = None
    if line.statistic.bounded:
        bounds = "column" if line.universe is None else list(_ends(line.universe))
    fields = {
        "statistic": line.statistic.label,
        "column": plain_label(line.column),
        "bounds": bounds,
        "eps": str(share),
    }
    if isinstance(line.universe, Rectangle):
        beside = line.universe.other
        fields |= {"other": plain_label(line.other), "other_bounds": [beside.lo, beside.hi]}
    if isinstance(line.statistic, Histogram):
        fields |= {"edges": list(line.statistic.edges), "clamps": line.statistic.clamps}
    if line.mechanism != "laplace":  # as every question of the first edition, whose answers are remembered
        fields["mechanism"] = line.mechanism
    if isinstance(line.statistic, Mean | Var) and line.statistic.n_at_least:
        fields["n_at_least"] = line.statistic.n_at_least
    if line.statistic.replaces:
        fields["neighbours"] = "replace-one"
    if line.needs.whole_cells:
        fields["step"] = 1
    if line.indicator is not None:
        fields["condition"] = line.indicator.text
    return fields if line.condition is None else fields | {"filter": line.condition}


def _ends(universe: Universe) -> tuple[object, object]:
    """Bounds as JSON values: numbers, or dates and times as text."""
    kind = kind_within(universe)
    if kind == NUMBER:
        return universe.lo, universe.hi
    lo, hi = (str(moment(end, times=kind == TIME)) for end in (universe.lo, universe.hi))
    return lo, hi


def _keys(keys: Sequence[tuple[Hashable, ...]]) -> Any:
    listed = [[_value(part) for part in key] for key in keys]
    if len(listed) <= LISTED:
        return listed
    text = json.dumps(listed, separators=(",", ":"))
    return {"count": len(listed), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def key_text(key: tuple[Hashable, ...]) -> str:
    """Canonical text of a group's key."""
    return json.dumps([_value(part) for part in key])


def _value(value: Hashable) -> Any:
    plain = json_value(value)
    return plain if isinstance(plain, str | bool | int | float | list | dict | None) else str(plain)
