"""``pdrisk.sql``: private answers from ordinary SELECTs.

text ─> parse ─> relations ─> judge ──> Plan ──> engines/duck ──> Summary ──> core ──> noise ─┐
                 (FROM, row-wise)  └──> Query: what each release is, and costs                ├─> DataFrame
                                   └──> SELECT list, HAVING, ORDER BY, LIMIT on noisy values ─┘
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdrisk._answer.release import CURATOR_ONLY
from pdrisk._answer.releasing import Released, released
from pdrisk._core.foreign import own_errors
from pdrisk._core.risk import METRICS
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._guard import guarded
from pdrisk._model.query import MECHANISM
from pdrisk._sql import workspace
from pdrisk._sql.grouping import key_lists, key_relation
from pdrisk._sql.headings import unique
from pdrisk._sql.judge import NOISY, Judged, judged
from pdrisk._sql.parse import parsed
from pdrisk._sql.sources import Sources
from pdrisk._sql.statements import too_deep
from pdrisk.engines.sql import duckdb as duckdb_engine
from pdrisk.errors import ColumnTypeError, QueryFailedError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["sql"]


@own_errors
def sql(
    query: str,
    con: DuckDBPyConnection | None = None,
    *,
    eps: float | None = None,
    bounds: object = None,
    keys: object = None,
    schema: object = None,
    ledger: object = None,
    fresh: bool = False,
    params: object = None,
    risk_columns: bool = False,
    **frames: Any,
) -> pd.DataFrame:
    """Noisy answers to a SELECT: every aggregate in it gets noise, everything else is computed from noisy values.

    Parameters
    ----------
    query : str
        One SELECT over one table, view, frame or named Parquet file: ``COUNT``, ``SUM``, ``AVG``, ``MEDIAN``,
        ``QUANTILE_CONT``, ``MIN``, ``MAX``, ``VAR_*``, ``STDDEV_*`` or ``dp_mean(x, eps := 1, lo := 1, hi := 675)`` and
        the like; ``WHERE``, ``FILTER``, ``GROUP BY``, ``HAVING``, ``ORDER BY``, ``LIMIT``, row-wise subqueries, CTEs.
    con : DuckDBPyConnection, optional
        Where tables and views are. Without it and without frames: DuckDB's own default connection.
    eps : float, optional
        The privacy loss of the whole query. Aggregates without an eps of their own share evenly what the others leave.
    bounds : (float, float) or dict, optional
        The range of values, for every column or by column; or declared for a frame. An expression needs its own
        ``lo`` and ``hi``.
    keys : list, dict or "observed", optional
        The public list of groups, as for ``by`` of ``df.dprisk``; tuples or a dict of lists for several columns.
    schema : pandera DataFrameSchema or DataFrameModel, optional
        Declares bounds, keys and missing codes of the table's columns. ``bounds`` and ``keys`` win, within its ranges.
    ledger : Ledger, optional
        What pays the total before the data is read; that of a ``with pdrisk.Ledger(...)`` block around otherwise.
    fresh : bool, default False
        Pay and draw anew, even if the ledger remembers the answers.
    params : list or dict, optional
        Values for ``?`` or ``$name``.
    risk_columns : bool, default False
        Add sensitivities and risks for each noisy value; ``pdrisk.public`` takes the curator's out again.
    **frames
        pandas, Polars or Arrow frames, or paths of Parquet files, under the names the query uses.

    Returns
    -------
    DataFrame
        In the order of the keys unless ORDER BY says otherwise. ``attrs["lines"]`` says what each release is and cost.

    Raises
    ------
    ParameterError
        If anything is not understood, with what to write instead; nothing is read then.
    QueryFailedError
        If reading the data fails; it stays paid.

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like(missing="nan")
    >>> answer = pdrisk.sql(
    ...     "SELECT sex, COUNT(*) AS people, SUM(hours) / COUNT(hours) AS hours FROM survey GROUP BY sex",
    ...     eps=3, bounds={"hours": (0, 18)}, keys=["female", "male"], survey=survey,
    ... )
    >>> answer.columns.tolist(), len(answer)
    (['sex', 'people', 'hours'], 2)
    """
    _check_connection(con)
    if not isinstance(risk_columns, bool | np.bool_):
        raise ColumnTypeError(f"risk_columns is True or False, not of type {type(risk_columns).__name__}.")
    sources = Sources(con, frames, schema)
    try:
        question = judged(parsed(query, params), sources, eps=eps, bounds=bounds, keys=keys)
        return released(
            question.query,
            lambda: guarded(lambda: _read(question)),
            lambda releases, reading: guarded(lambda: _table(question, releases, reading, risk_columns)),
            ledger,
            fresh=fresh,
        )
    except QueryFailedError:
        workspace.forget()
        raise
    except RecursionError:
        pass
    finally:
        sources.close()
    raise too_deep()


@dataclass(frozen=True, slots=True)
class _Reading:
    universes: tuple[Universe, ...]
    summaries: tuple[Summary, ...]
    keys: list[list[Any]]  # one list for each expression of GROUP BY


def _check_connection(con: object) -> None:
    if con is None:
        return
    import duckdb

    if not isinstance(con, duckdb.DuckDBPyConnection):
        advice = "pass duckdb.connect(path)" if isinstance(con, str) else "pass frames by keyword"
        raise ColumnTypeError(f"con must be a DuckDB connection, not of type {type(con).__name__}: {advice}.")


def _read(question: Judged) -> _Reading:
    groups = question.query.groups
    lists = None if groups is None or groups.keys is None else key_lists(groups.keys)
    parts, keys = duckdb_engine.read(question.relation.source.connection, question.plan, lists)
    universes = tuple(line.universe for line in question.query.lines if line.universe is not None)
    return _Reading(universes, tuple(parts[place] for place in question.places), keys)


def _table(question: Judged, releases: list[Released], reading: _Reading, risk_columns: bool) -> pd.DataFrame:
    """The SELECT list, computed on noisy values alone."""
    items = list(question.items)
    columns = {f"v{at}": one.values for at, one in enumerate(releases)}
    secret: list[bool] = []
    if risk_columns:
        for at, (name, one) in enumerate(zip(question.names, releases, strict=True)):
            for suffix, values in _risks(one).items():
                columns[f"r{at}_{suffix}"] = values
                items.append((f"r{at}_{suffix}", f"{name}_{suffix}"))
                secret.append(suffix in CURATOR_ONLY)
    labels = unique([label for _, label in items])
    if not question.groups and question.plain:  # one row of what was drawn: nothing to compute
        answer = pd.DataFrame({at: np.broadcast_to(columns[sql], 1) for at, (sql, _) in enumerate(items)})
    else:
        answer = _computed(question, [sql for sql, _ in items], columns, reading.keys)
    for at, (sql, _) in enumerate(question.items):
        if sql in question.whole_keys and not answer[answer.columns[at]].isna().any():
            answer[answer.columns[at]] = answer[answer.columns[at]].astype(np.int64)
    answer.columns = pd.Index(labels, dtype=object)
    secrets = [label for label, hidden in zip(labels[len(question.items) :], secret, strict=True) if hidden]
    answer.attrs.update(_attributes(question, releases, secrets, [label for label in labels if label not in secrets]))
    # For `explain`, which names groups by their keys.
    keys = [label for label, (sql, _) in zip(labels, question.items, strict=False) if re.fullmatch(r"k\d+", sql)]
    answer.attrs["groups"] = keys
    return answer


def _computed(question: Judged, expressions: list[str], columns: dict[str, Any], keys: list[list[Any]]) -> pd.DataFrame:
    """The expressions over the noisy table, in a DuckDB that holds nothing else."""
    # Named after: ORDER BY would take a heading for what it means, before it looks at the noisy table.
    chosen = ", ".join(f"{sql} AS i{at}" for at, sql in enumerate(expressions))
    size, carried = len(columns["v0"]), len(question.groups)
    listed = key_relation(question.groups) if question.groups else "(SELECT 0 AS code) AS keys_listed"
    lists = [
        f"unnest(CAST(${at} AS {'BIGINT' if name.endswith('_n') else 'DOUBLE'}[])) AS {name}"
        for at, name in enumerate(columns, carried + 1)
    ]
    numbered = f"(SELECT {', '.join(lists)}, unnest(system.main.range({size})) AS code) AS values_listed"
    named = ", ".join([*(f"g{at} AS k{at}" for at in range(carried)), *columns, "code"])
    noisy = f"(SELECT {named} FROM {listed} JOIN {numbered} USING (code)) AS {NOISY}"
    parameters = [*keys, *(_or_null(name, np.broadcast_to(values, size)) for name, values in columns.items())]
    bench = workspace.bench()
    try:
        return bench.execute(f"SELECT {chosen} FROM {noisy}{question.rest}", parameters).df()
    finally:
        bench.close()


def _or_null(name: str, values: FloatArray) -> list[Any]:
    """A column of the noisy table; NULL where a value is withheld: NaN would be more than any number in HAVING."""
    listed = values.tolist()
    return [None if math.isnan(value) else value for value in listed] if name.startswith("v") else listed


def _risks(one: Released) -> dict[str, Any]:
    """The risk columns of a release, by the end of their names."""
    known = one.facts
    return {
        **{metric: known.risk[metric] for metric in METRICS},
        "local_sensitivity": known.local_sensitivity,
        "global_sensitivity": known.global_sensitivity,
        "eps": known.eps,
        "scale": known.scale,
        "n": known.n,
    }


def _attributes(question: Judged, releases: list[Released], secrets: list[str], public: list[str]) -> dict[str, Any]:
    groups = question.query.groups
    return {
        "curator_only": secrets,
        "columns": public,
        "index": [],
        "bounds_from_data": False,
        "keys_from_data": groups is not None and groups.keys_from == "data",
        "lines": [
            {
                "name": name,
                "column": one.line.column,
                "statistic": one.line.statistic.label,
                "bounds": [one.universe.lo, one.universe.hi] if one.line.statistic.bounded else None,
                "eps": one.facts.eps,
                "scale": one.facts.scale,
                "global_sensitivity": one.facts.global_sensitivity,
                **({} if one.rounded_to is None else {"rounded_to": one.rounded_to}),
            }
            for name, one in zip(question.names, releases, strict=True)
        ],
        "eps": float(question.query.eps),
        "mechanism": MECHANISM,
        "where": question.query.condition,
        "where_trusted": question.query.trusted,
        **({} if releases[0].least_group is None else {"least_group": list(releases[0].least_group)}),
    }
