"""Ends of what is computed of noisy values: the exact law of their noise, through all layers of a query.

DuckDB computes which rows a sum or a window is over, as their numbers; the sums themselves are then forms of what was
drawn (`pdrisk._answer.arithmetic.exact_expressions`), whose intervals are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from pdrisk._answer.arithmetic.exact_expressions import (
    Added,
    Expression,
    Multiplied,
    Opaque,
    computed,
    constants,
    interval,
)
from pdrisk._answer.arithmetic.forms import Linear, Ratio
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._sql.noisy.layers import Layer
from pdrisk._sql.noisy.uncut import is_noisy

COLUMN: Final = "column"
MOST_TERMS: Final = 4_000_000  # of all sums together, as of 2,000 cells each in the total of all; some seconds
Forms = Mapping[str, Expression | None]


class Bench(Protocol):
    """Connection to a DuckDB that holds the noisy table and nothing else."""

    def execute(self, query: str, parameters: Any = None) -> Any:
        """The result of a statement."""


@dataclass(frozen=True)
class _NoisyRows:
    """Rows of a table of noisy values."""

    codes: IntArray  # their numbers; shape (R,)
    forms: Forms  # their uncut columns; None where nothing is known of the noise

    def places(self, codes: IntArray) -> IntArray:
        """Positions of rows with these numbers."""
        order = np.argsort(self.codes, kind="stable")
        return order[np.searchsorted(self.codes, codes, sorter=order)]


@dataclass(frozen=True)
class _Statements:
    """Statements over the noisy table, with the parameters that list its keys."""

    bench: Bench
    parameters: Any

    def columns(self, sql: str) -> list[Any]:
        """Columns of a result as arrays; missing numbers are NaN."""
        arrays = self.bench.execute(sql, self.parameters).fetchnumpy()
        return [
            np.ma.filled(array.astype(object), np.nan) if np.ma.is_masked(array) else np.asarray(array)
            for array in arrays.values()
        ]


def has_ends(layer: Layer) -> list[int]:
    """Places of the items of the last layer that are computed of uncut numbers, and are not single releases."""
    return [at for at, (_, value) in enumerate(layer.items) if value.uncut and not value.sql.startswith("v")]


def ends_of_items(
    layers: Sequence[Layer], forms: Forms, size: int, source: str, bench: Bench, parameters: Any
) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Ends of the 95 % intervals of the items of the last layer that have some, by their place.

    ``forms``: The uncut columns ``u0``, ``u1``, ... of the innermost table, whose rows have the numbers 0, 1, ...
    ``size``: how many rows it has.
    ``source``: its SQL.
    ``bench, parameters``: connection that has it, and the parameters of its SQL.
    """
    reader, rows = _Statements(bench, parameters), _NoisyRows(np.arange(size), forms)
    noisy = frozenset(name for column in forms for name in (column, f"v{column[1:]}"))
    for layer in layers:
        rows, item_forms = _through(layer, rows, source, reader, noisy)
        source = layer.subquery(source, ())
        noisy = frozenset(name for _, column in layer.exposed if column.uncut for name in (column.sql, column.uncut))
    ends = {}
    for at in has_ends(layers[-1]):
        form = item_forms[at]
        ends[at] = _nothing(len(rows.codes)) if form is None else interval(form, 0.95)
    return ends


def _nothing(size: int) -> tuple[FloatArray, FloatArray]:
    return np.full(size, np.nan), np.full(size, np.nan)


def _through(
    layer: Layer, rows: _NoisyRows, source: str, reader: _Statements, noisy: frozenset[str]
) -> tuple[_NoisyRows, list[Expression | None]]:
    """The rows of a layer in their order, with the forms of its items, of the rows below it."""
    if layer.aggregates:
        rows = _aggregated(layer, rows, source, reader, noisy)
    below = layer if not layer.aggregates else replace(layer, groups=layer.groups)
    windows = [(f"w{at}", sql) for at, sql in enumerate(layer.windows) if layer.trees.get(sql)]
    lists = tuple(_codes_of(sql, layer.trees[sql]) for _, sql in windows)
    first = len(layer.windows)
    known = _known([value.tree for _, value in layer.items], noisy)
    chosen = ["coalesce(code, -1) AS origin", f"coalesce({layer.code_above}, -1) AS code_above"]
    chosen += [f"w{first + at} AS l{at}" for at in range(len(lists))] + [
        f"{sql} AS y{at}" for at, sql in enumerate(known)
    ]
    wider = replace(below, windows=(*layer.windows, *lists))
    origin, above, *rest = reader.columns(wider.statement(chosen, source))
    places = rows.places(origin.astype(np.int64))
    forms: dict[str, Expression | None] = {name: taken(form, places) for name, form in rows.forms.items()}
    size = len(origin)
    for (name, sql), codes in zip(windows, rest, strict=False):
        forms[name] = _gathered(layer.trees[sql], codes, rows, size, {})
    values = dict(zip(known, rest[len(windows) :], strict=True))
    items = [_form_of(value.tree, forms, values, size) for _, value in layer.items]
    exposed = {column.uncut: form for (_, column), form in zip(layer.exposed, items, strict=True) if column.uncut}
    return _NoisyRows(above.astype(np.int64), exposed), items


def _aggregated(layer: Layer, rows: _NoisyRows, source: str, reader: _Statements, noisy: frozenset[str]) -> _NoisyRows:
    """The groups of a layer with the forms of its aggregates."""
    columns = [(f"h{at}", sql) for at, sql in enumerate(layer.aggregated) if layer.trees.get(sql)]
    lists = tuple(_codes_of(sql, layer.trees[sql]) for _, sql in columns)
    first = len(layer.aggregated)
    wider = replace(layer, aggregated=(*layer.aggregated, *lists), windows=(), having="", qualify="", tail="")
    chosen = ["coalesce(code, -1) AS origin", *(f"h{first + at} AS l{at}" for at in range(len(lists)))]
    codes, *listed = reader.columns(wider.statement(chosen, source))
    known = _known([layer.trees[sql][3] for _, sql in columns], noisy)
    values: dict[str, Any] = {}
    if known:
        row_codes, *arrays = reader.columns(f"SELECT code, {', '.join(known)} FROM {source}")
        order = rows.places(row_codes.astype(np.int64))
        values = {sql: _in_order(array, order) for sql, array in zip(known, arrays, strict=True)}
    forms = {
        name: _gathered(layer.trees[sql], members, rows, len(codes), values)
        for (name, sql), members in zip(columns, listed, strict=True)
    }
    return _NoisyRows(codes.astype(np.int64), forms)


def _in_order(values: Any, places: IntArray) -> FloatArray:
    ordered = np.empty(len(values))
    ordered[places] = values.astype(np.float64)
    return ordered


def _codes_of(sql: str, tree: Any) -> str:
    """SQL of the numbers of the rows that an aggregate or window reads."""
    _, call, codes, _ = tree
    return f"{codes}{sql[len(call) :]}"


def _gathered(tree: Any, codes: Any, rows: _NoisyRows, size: int, values: Mapping[str, Any]) -> Expression | None:
    """Forms of an aggregate or window: of the listed rows the sum or the mean, or that of one row."""
    kind, _, _, argument = tree
    form = _form_of(argument, rows.forms, values, len(rows.codes))
    if form is None:
        return None
    if kind == "row":
        origins = codes.astype(np.float64)
        there = ~np.isnan(origins)
        places = rows.places(np.where(there, origins, rows.codes[0] if len(rows.codes) else 0).astype(np.int64))
        one = taken(form, places)
        return None if one is None else computed("+", one, constants(np.where(there, 0.0, np.nan), size))
    if not isinstance(form, Linear):
        return None
    terms = np.bincount(form.noises.row, minlength=form.size)
    lengths = np.fromiter((0 if code is np.nan else len(code) for code in codes), dtype=np.int64, count=size)
    listed = [np.asarray(code, dtype=np.int64) for code in codes if code is not np.nan]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *listed])
    into = np.repeat(np.arange(size), lengths)
    some = flat >= 0
    into, source = into[some], rows.places(flat[some].astype(np.int64))
    if terms[source].sum() > MOST_TERMS:
        return None
    number = np.bincount(into, minlength=size)
    weight = np.ones(len(into)) if kind == "sum" else 1 / number[into]
    found_sum = form.gathered(into, source, weight, size)
    return computed("+", found_sum, constants(np.where(number > 0, 0.0, np.nan), size))


def _known(trees: Sequence[Any], noisy: frozenset[str]) -> list[str]:
    """SQL of all that is computed without uncut numbers, and without noise."""
    texts: dict[str, None] = {}

    def read(tree: Any) -> None:
        if tree is None or tree[0] in (COLUMN, "number"):
            return
        if tree[0] == "known":
            texts.update({tree[1]: None} if not is_noisy([tree[1]], noisy) else {})
            return
        read(tree[1])
        read(tree[2])

    for tree in trees:
        read(tree)
    return list(texts)


def _form_of(tree: Any, forms: Forms, known: Mapping[str, Any], size: int) -> Expression | None:
    """The form of a tree; None where a part of it has none."""
    if tree is None:
        return None
    kind, *parts = tree
    if kind == COLUMN:
        return forms.get(parts[0])
    if kind == "number":
        return constants(parts[0], size)
    if kind == "known":
        return constants(known[parts[0]].astype(np.float64), size) if parts[0] in known else None
    left, right = (_form_of(part, forms, known, size) for part in parts)
    return None if left is None or right is None else computed(kind, left, right)


def taken(form: Expression | None, places: IntArray) -> Expression | None:
    """Some of the numbers of an expression, by position."""
    match form:
        case Linear():
            return form.gathered(np.arange(len(places)), places, np.ones(len(places)), len(places))
        case Ratio(top, bottom):
            one, other = taken(top, places), taken(bottom, places)
            assert isinstance(one, Linear) and isinstance(other, Linear)
            return Ratio(one, other)
        case Opaque():
            limits = form.limits[0][places], form.limits[1][places]

            def ends(level: float) -> tuple[FloatArray, FloatArray]:
                low, high = form.ends(level)
                return low[places], high[places]

            key = (form.key, places.tobytes())
            return Opaque(key, form.values[places], ends, limits, form.factor[places])
        case Added(terms):
            return Added(tuple(taken(term, places) for term in terms))  # type: ignore[misc]
        case Multiplied(operation, left, right):
            return Multiplied(operation, taken(left, places), taken(right, places))  # type: ignore[arg-type]
    return None
