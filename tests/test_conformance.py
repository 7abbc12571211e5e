"""Every engine passes the conformance suite that ships, and the suite notices engines that do not."""

import dataclasses

import duckdb
import numpy as np
import pandas as pd
import pytest

from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk._model.keys import key_codes
from pdrisk.engines.conformance import TABLES, check
from pdrisk.engines.numpy.frame import column_values
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.engines.sql import duckdb as duckdb_engine
from pdrisk.engines.sql.plan import Measured, SummaryPlan
from pdrisk.engines.sql.render import Dialect, DuckDBDialect

DTYPES = {"DOUBLE": "float64", "BIGINT": "Int64", "TINYINT": "Int8", "DECIMAL(20, 4)": object}


def frame_of(table):
    values = [np.nan if x is None and table.type == "DOUBLE" else x for x in table.values]
    return pd.DataFrame({"x": pd.Series(values, dtype=DTYPES[table.type]), "g": pd.Series(table.groups, dtype=object)})


def numpy_grouped(table, universe, needs):
    frame = frame_of(table)
    codes = key_codes(frame, ("g",), tuple((key,) for key in table.keys))
    return summary_of_groups(column_values(frame["x"]), codes, len(table.keys), universe, needs)


def numpy_single(table, universe, needs):
    """The groups one by one, each as the rows that a filter selects."""
    frame = frame_of(table)
    found = [
        summary_of_one(column_values(frame["x"]), universe, needs, (frame["g"] == key).to_numpy()) for key in table.keys
    ]
    parts = {field.name: [getattr(one, field.name) for one in found] for field in dataclasses.fields(found[0])}
    windows = {q: np.concatenate([window[q] for window in parts["windows"]], axis=1) for q in needs.windows}
    joined = {
        name: None if values[0] is None else np.concatenate(values, axis=-1)
        for name, values in parts.items()
        if name != "windows"
    }
    return type(found[0])(**joined, windows=windows)


def by_sql(dialect):
    con = duckdb.connect()

    def read(table, universe, needs):
        con.execute(f"CREATE OR REPLACE TABLE t (x {table.type}, g VARCHAR)")
        if table.values:
            con.executemany("INSERT INTO t VALUES (?, ?)", list(zip(table.values, table.groups, strict=True)))
        keys = ", ".join(f"('{key}', {at})" for at, key in enumerate(table.keys))
        listed = f"(SELECT * FROM (VALUES {keys}) AS k(g0, code)) AS keys_listed"
        plan = SummaryPlan("t", (), (), ("g",), listed, (Measured("CAST(x AS DOUBLE)", universe, needs),))
        (summary,), _ = duckdb_engine.read(con, plan, [], dialect)
        return summary

    return read


ENGINES = {
    "numpy, groups": numpy_grouped,
    "numpy, one group": numpy_single,
    "DuckDB": by_sql(DuckDBDialect()),
    "portable SQL": by_sql(Dialect()),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("table", [0, -4, -3, -2, -1])
def test_conforms(engine, table):
    check(ENGINES[engine], [TABLES[table]])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_conforms_group_by_group(engine):
    check(ENGINES[engine], TABLES[1:-4])


def changed(name, change):
    """An engine that is wrong in one part."""

    def read(table, universe, needs):
        summary = numpy_grouped(table, universe, needs)
        part = getattr(summary, name)
        return dataclasses.replace(summary, **{name: None if part is None else change(part)})

    return read


@pytest.mark.parametrize("name", ["n", "places", "whole", "steps", "clamped", "lowest", "highest"])
def test_an_engine_that_is_off_by_one_is_noticed(name):
    with pytest.raises(AssertionError, match=name):
        check(changed(name, lambda part: part + 1), TABLES[:1])


@pytest.mark.parametrize("name", ["total", "squares", "nearest"])
def test_an_engine_that_is_off_by_a_little_is_noticed(name):
    with pytest.raises(AssertionError, match=name):
        check(changed(name, lambda part: part + 1e-3), TABLES[:1])


def test_an_engine_that_takes_a_neighbouring_rank_is_noticed():
    def read(table, universe, needs):
        summary = numpy_grouped(table, universe, needs)
        return dataclasses.replace(
            summary, windows={q: np.roll(window, 1, axis=0) for q, window in summary.windows.items()}
        )

    with pytest.raises(AssertionError, match="window"):
        check(read, TABLES[:1])


def test_an_engine_that_counts_nan_is_noticed():
    def read(table, universe: Universe, needs: Needs):
        values = tuple(universe.lo if x is not None and x != x else x for x in table.values)
        return numpy_grouped(dataclasses.replace(table, values=values), universe, needs)

    with pytest.raises(AssertionError, match="n is"):
        check(read, TABLES[:1])
