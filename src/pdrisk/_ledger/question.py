"""The canonical text of a query: what was asked, from public facts alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from pdrisk._model.columns import plain_label
from pdrisk._model.declarations import coded
from pdrisk._model.query import MECHANISM, Line, Query

__all__ = ["name_of", "question"]

LISTED = 100  # keys that are written out; of more, a digest of the list


def question(query: Query) -> dict[str, Any]:
    """What is asked, as JSON values; two queries that ask the same give the same."""
    asked: dict[str, Any] = {
        "lines": [_line(line, share) for line, share in zip(query.lines, query.shares, strict=True)],
        "eps": str(query.eps),
        "mechanism": MECHANISM,
    }
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
    if query.groups is not None:
        groups = query.groups
        asked["by"] = [plain_label(column) for column in groups.columns]
        asked["keys"] = "observed" if groups.keys is None else _keys(groups.keys)
    if query.missing:
        asked["missing"] = [
            [plain_label(column), [_value(c) for c in codes]] for column, codes in query.missing.items()
        ]
    return asked


def name_of(query: Query) -> str:
    """What is asked, for people: ``mean(distance)``, ``mean(distance) and 2 more``."""
    first = query.lines[0].name
    return first if len(query.lines) == 1 else f"{first} and {len(query.lines) - 1} more"


def _line(line: Line, share: Fraction) -> dict[str, Any]:
    bounds: Any = None
    if line.statistic.bounded:
        bounds = "column" if line.universe is None else [line.universe.lo, line.universe.hi]
    said = {
        "statistic": line.statistic.label,
        "column": plain_label(line.column),
        "bounds": bounds,
        "eps": str(share),
    }
    return said if line.condition is None else said | {"filter": line.condition}


def _keys(keys: tuple[tuple[Hashable, ...], ...]) -> Any:
    listed = [[_value(part) for part in key] for key in keys]
    if len(listed) <= LISTED:
        return listed
    text = json.dumps(listed, separators=(",", ":"))
    return {"count": len(listed), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _value(value: Hashable) -> Any:
    found = coded(value)
    return found if isinstance(found, str | bool | int | float | list | dict | None) else str(found)
