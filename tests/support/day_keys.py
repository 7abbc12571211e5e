"""One column of dates and one of timestamps, and keys of both in every spelling."""

import datetime as dt
import itertools

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk

SURE = 1e6
DAYS = [dt.date(2020, 1, 2), dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(1969, 12, 31)]
TIMES = [None if day is None else dt.datetime(day.year, day.month, day.day) for day in DAYS]
SPELLINGS = {
    "date": [dt.date(2020, 1, 2), dt.date(2020, 1, 1), dt.date(1999, 1, 1), None],
    "Timestamp": [pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-01"), pd.Timestamp("1999-01-01"), pd.NaT],
    "ISO text": ["2020-01-02", "2020-01-01", "1999-01-01", None],
    "ISO text with a time": ["2020-01-02T00:00:00", "2020-01-01 00:00", "1999-01-01 00:00:00.000", None],
}
ROWS = [2, 1, 0, 1]  # of each key


def frames():
    """Frames that hold the days as ``d`` and the timestamps as ``t``, by what holds them."""
    times = pd.Series(pd.to_datetime(TIMES))
    arrow = {"d": pa.array(DAYS, pa.date32()), "t": pa.array(TIMES, pa.timestamp("us"))}
    return {
        "objects": pd.DataFrame({"d": pd.Series(DAYS, dtype=object), "t": pd.Series(TIMES, dtype=object)}),
        "datetime64": pd.DataFrame({"d": times.astype("datetime64[s]"), "t": times.astype("datetime64[ns]")}),
        "Arrow dtypes": pd.DataFrame({name: pd.arrays.ArrowExtensionArray(held) for name, held in arrow.items()}),
        "categories": pd.DataFrame({"d": pd.Categorical(DAYS), "t": pd.Categorical(TIMES)}),
        "Polars": pl.DataFrame({"d": DAYS, "t": TIMES}),
        "Arrow": pa.table(arrow),
        "DuckDB": duckdb.from_arrow(pa.table(arrow)),
    }


def check_methods(data):
    """Every spelling finds the same rows, and the index is that of the column's own values."""
    d = pdrisk.Dataset(data)
    for column, keys in itertools.product("dt", SPELLINGS.values()):
        found = d.count(eps=SURE, by=column, keys=keys)
        assert found["value"].tolist() == ROWS
        pd.testing.assert_index_equal(found.index, d.count(eps=SURE, by=column, keys=own_values(d, column)).index)
        two = d.count(eps=SURE, by=["d", "t"], keys=[(key, key) for key in keys])
        assert two["value"].tolist() == ROWS
    for wrong in ("2020", "2020-02-30", "01.02.2020", "2020-01-01T00:00Z", 20200101, pd.Timestamp("2020", tz="UTC")):
        for column in "dt":
            with pytest.raises((pdrisk.ColumnTypeError, pdrisk.ParameterError), match=r"a key of column .[dt]. is "):
                d.count(eps=1, by=column, keys=[wrong])


def own_values(d, column):
    """The listed keys as values that the column holds, as an answer about those that occur shows them."""
    occur = {pd.Timestamp(key): key for key in d.count(eps=SURE, by=column, keys="observed").index if not pd.isna(key)}
    day = type(next(iter(occur.values())))(1999, 1, 1)
    return [occur[pd.Timestamp("2020-01-02")], occur[pd.Timestamp("2020-01-01")], day, None]


def check_time_of_day(data):
    """A time of day is no day: an error for dates, a key of timestamps."""
    d = pdrisk.Dataset(data)
    for key in (pd.Timestamp("2020-01-01 12:30"), "2020-01-01 12:30", dt.datetime(2020, 1, 1, 12, 30)):
        with pytest.raises(pdrisk.ParameterError, match=r".d. has a time of day, .* list the day alone"):
            d.count(eps=1, by="d", keys=[key])
        assert d.count(eps=SURE, by="t", keys=[key])["value"].tolist() == [0]


def check_sql(con, column, **options):
    """Every spelling finds the same rows in SQL, and is shown alike."""
    answers = []
    for keys in SPELLINGS.values():
        query = f"SELECT {column} AS k, COUNT(*) AS n FROM people GROUP BY k"
        answers.append(pdrisk.sql(query, con, eps=SURE, keys=keys, **options))
        assert answers[-1]["n"].tolist() == ROWS
        pd.testing.assert_frame_equal(answers[0], answers[-1])
    with pytest.raises(pdrisk.ColumnTypeError, match="no ISO date"):
        pdrisk.sql(query, con, eps=1, keys=["2020"], **options)
