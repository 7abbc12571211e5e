"""Tables of answers in SQL: what SELECT computes from noisy values, with columns for their risks and intervals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.answers.answer import CLIP
from pdrisk._answer.answers.curator import Curator
from pdrisk._answer.answers.released import Released
from pdrisk._answer.releasing import Results
from pdrisk._answer.tables.measured_tables import measured_columns
from pdrisk._core.summary import FloatArray
from pdrisk._model.asked_groups import WholeKeys
from pdrisk._model.expressions.kinds import DATE, NUMBER
from pdrisk._sql.expressions.windows import MAPS
from pdrisk._sql.noisy.ends import ends_of_items, has_ends
from pdrisk._sql.noisy.grouping_sets import with_nulls
from pdrisk._sql.noisy.layers import NOISY
from pdrisk._sql.relations.group_keys import key_relation
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import TYPES
from pdrisk._sql.together.selected import has_selected
from pdrisk._sql.together.stacked import UNCUT, columns_of
from pdrisk.engines.sql.summary.reading import TableReading

WHOLE: Final = {"TINYINT": np.int8, "SMALLINT": np.int16, "INTEGER": np.int32, "BIGINT": np.int64}
KEY: Final = re.compile(r"k\d+")  # of the noisy table


def answer_table(
    question: Judged, results: Results, reading: TableReading, risk_columns: bool, is_part: bool = False
) -> pd.DataFrame:
    """Answer to the SELECT list, computed from noisy values alone; of a part of a query with its uncut numbers."""
    items = list(question.items)
    columns = {f"v{at}": one.noisy.in_kind(one.noisy.values) for at, one in enumerate(results.releases)}
    if is_part or not question.plain:  # else nothing is computed of them
        columns |= {f"u{at}": one.noisy.uncut for at, one in enumerate(results.releases)}
    uncut = {at: value.uncut for at, value in enumerate(columns_of(question)) if is_part and value.uncut}
    secret: list[bool] = []
    for at, (name, one) in enumerate(zip(question.names, results.releases, strict=True)):
        if question.merges:  # a row of the answer belongs to no release
            break
        beside = _risks(one, results.shows_curator) if risk_columns else {}
        for suffix, values in (beside | _measured(one, at, results)).items():
            columns[f"r{at}_{suffix}"] = values
            items.append((f"r{at}_{suffix}", f"{name}_{suffix}"))
            secret.append(suffix in Curator.COLUMNS)
    expressions = [*(sql for sql, _ in items), *uncut.values()]
    ends: list[FloatArray] = []
    listed = _keys_at_hand(question, reading) if question.plain and len(expressions) == len(question.items) else None
    if listed is not None or (question.plain and not question.groups):  # what was drawn: nothing to compute
        size, known = len(columns["v0"]), (listed or {}) | columns
        answer = pd.DataFrame({at: np.broadcast_to(known[sql], size) for at, sql in enumerate(expressions)})
    else:
        keys = reading.keys if question.query.margins is None else with_nulls(question.query, reading.keys)
        with _NoisyTable(question, columns, keys) as table:
            answer = table.computed(expressions)
            ends = table.ends(results, answer) if risk_columns else []
    labels = unique([*(label for _, label in items), *_labels_of_ends(question, ends)])
    parts = dict(zip(uncut, (answer.pop(name) for name in answer.columns[len(items) :]), strict=True))
    _restore_keys(question, answer)
    answer = pd.concat([answer, pd.DataFrame(dict(enumerate(ends)))], axis=1) if ends else answer
    answer.columns = pd.Index(labels, dtype=object)
    hidden = tuple(label for label, is_hidden in zip(labels[len(question.items) :], secret, strict=False) if is_hidden)
    description = replace(
        results.answer(question.names),
        headings=tuple(label for label in labels if label not in hidden),
        curators=hidden,
        # For `explain`, which names groups by their keys.
        groups=tuple(label for label, (sql, _) in zip(labels, question.items, strict=False) if KEY.fullmatch(sql)),
        sums=question.merges or any(layer.windows for layer in question.layers),
    )
    description.attach(answer)
    if is_part:
        answer.attrs[UNCUT] = {at: list(values) for at, values in parts.items()}
    return answer


def _keys_at_hand(question: Judged, reading: TableReading) -> dict[str, NDArray[Any]] | None:
    """Keys of whole numbers by their names in the noisy table, of the types that DuckDB gives them; None of others."""
    if question.query.margins is not None or set(question.types) != {TYPES[NUMBER]}:
        return None
    at_hand: dict[str, NDArray[Any]] = {}
    for at, (group, keys) in enumerate(zip(question.groups, reading.keys, strict=True)):
        if group.type not in WHOLE or not (isinstance(keys, WholeKeys) or set(map(type, keys)) == {int}):
            return None
        own_type = WHOLE[group.type]
        at_hand[f"k{at}"] = keys.array.astype(own_type) if isinstance(keys, WholeKeys) else np.array(keys, own_type)
    return at_hand


def _labels_of_ends(question: Judged, ends: list[FloatArray]) -> list[str]:
    named = [question.items[at][1] for at in has_ends(question.layers[-1])] if ends else []
    return [f"{label}_{end}" for label in named for end in ("low", "high")]


def _restore_keys(question: Judged, answer: pd.DataFrame) -> None:
    """Give whole numbers among the keys their type back."""
    for at, (sql, _) in enumerate(question.items):
        if sql in question.whole_keys and not answer[answer.columns[at]].isna().any():
            answer[answer.columns[at]] = answer[answer.columns[at]].astype(np.int64)
    if f"k{len(question.groups) - 1}" in question.whole_keys:  # what a histogram counts by
        for at, (_, value) in enumerate(question.layers[-1].items):
            if value.kind == MAPS:
                maps = [
                    {int(key): number for key, number in histogram.items()} for histogram in answer[answer.columns[at]]
                ]
                answer[answer.columns[at]] = pd.Series(maps, index=answer.index, dtype=object)


class _NoisyTable:
    """The noisy table in a DuckDB that holds nothing else, as a context.

    Parameters
    ----------
    question : Judged
    columns : dict of ndarray
        Its columns but for the keys, one number for each group.
    keys : list of lists
        The keys of each column.
    """

    def __init__(self, question: Judged, columns: dict[str, Any], keys: list[list[Any]]) -> None:
        self._question, self._keys, self._size = question, keys, len(columns["v0"])
        self._risks = [name for name in columns if name.startswith("r")]
        listed = key_relation(question.groups) if question.groups else "(SELECT 0 AS code) AS keys_listed"
        dates = [at for at, sql_type in enumerate(question.types) if sql_type == TYPES[DATE]]
        shown = {f"v{at}": f"CAST(v{at} AS {TYPES[DATE]}) AS v{at}" for at in dates}
        keys_named = (f"g{at} AS k{at}" for at in range(len(question.groups)))
        named = ", ".join([*keys_named, *(shown.get(name, name) for name in columns), "code"])
        self._sql = f"(SELECT {named} FROM {listed} JOIN values_listed USING (code)) AS {NOISY}"
        values = {name: np.broadcast_to(column, self._size) for name, column in columns.items()}
        self._values = pd.DataFrame({**values, "code": np.arange(self._size)})

    def __enter__(self) -> _NoisyTable:
        self._bench = workspace.bench()
        # NaN, which is withheld, becomes NULL: else it would be more than any number in HAVING.
        self._bench.register("values_listed", self._values)
        return self

    def __exit__(self, *_: object) -> None:
        self._bench.close()

    def computed(self, expressions: list[str]) -> pd.DataFrame:
        """The expressions over it."""
        # Named after: ORDER BY would take a heading for what it means, before it looks at the noisy table.
        chosen = [f"{sql} AS i{at}" for at, sql in enumerate(expressions)]
        statement = self._question.computed(chosen, self._sql, self._risks)
        rows: pd.DataFrame = self._bench.execute(statement, self._keys).df()
        return rows

    def ends(self, results: Results, answer: pd.DataFrame) -> list[FloatArray]:
        """Ends of the intervals of what is computed, one after another; NaN if noisy values chose what is summed."""
        places = has_ends(self._question.layers[-1])
        if has_selected(self._question):
            return [np.full(len(answer), np.nan)] * (2 * len(places))
        if not places:
            return []
        forms = {f"u{at}": one.noisy.expression(one.line.name) for at, one in enumerate(results.releases)}
        intervals = ends_of_items(self._question.layers, forms, self._size, self._sql, self._bench, self._keys)
        values = {at: answer.iloc[:, at].to_numpy(dtype=np.float64, na_value=np.nan) for at in places}
        widened = {
            at: (np.fmin(low, values[at]), np.fmax(high, values[at])) if not np.isnan(low).all() else (low, high)
            for at, (low, high) in intervals.items()
        }
        return [end for at in places for end in widened[at]]


def _measured(one: Released, at: int, results: Results) -> dict[str, Any]:
    """The columns with what was drawn for a release, by the end of their names; none of opaque answers, or unasked."""
    measured = one.noisy.measurements
    if measured is None or not results.shows_measured:
        return {}
    return measured_columns([measured], 0, len(one.noisy.values), at)


def _risks(one: Released, shows_curator: bool) -> dict[str, Any]:
    """The risk columns of a release, by the end of their names."""
    low, high = one.noisy.interval()
    low, high = one.noisy.in_kind(low, "before"), one.noisy.in_kind(high, "after")
    public: dict[str, Any] = {"low": low, "high": high, **one.noisy.risk_columns}
    if (clip := one.noisy.clip) is not None:
        public |= dict(zip(CLIP, clip, strict=True))
    if not shows_curator or one.facts is None:
        return public
    has_delta = one.noisy.selection is not None
    return public | {name: getattr(one.facts, name) for name in Curator.columns(has_delta)}
