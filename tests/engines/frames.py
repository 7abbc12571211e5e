"""The same people as a frame of pandas, and as frames of Polars and Arrow, held or computed."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

DAY = dt.date(2020, 1, 1)
ROWS = 240


def columns():
    """Values by column; None is missing everywhere."""
    rng = np.random.default_rng(5)
    at = np.arange(ROWS)
    numbers = rng.normal(40, 20, ROWS).round(3).tolist()
    numbers[::17] = [None] * len(numbers[::17])
    numbers[3], numbers[4], numbers[5] = float("inf"), -0.0, 1e300
    whole = [None if each % 13 == 0 else 2**53 + int(each) % 4 for each in at]
    return {
        "x": numbers,
        "y": rng.uniform(0, 10, ROWS).round(2).tolist(),
        "age": [int(each) % 70 for each in at],
        "i": whole,
        "yes": [None if each % 11 == 0 else bool(each % 3) for each in at],
        "region": [None if each % 19 == 0 else ("north", "south", "east")[each % 3] for each in at],
        "level": [("low", "middle", "high")[each % 3] for each in at],
        "day": [dt.datetime(2020, 1, 1) + dt.timedelta(days=int(each) % 9) for each in at],
        "pid": [int(each) // 2 for each in at],
    }


def of_pandas():
    held = columns()
    dtypes = {"x": "float64", "i": "Int64", "yes": "boolean", "day": "datetime64[us]"}
    made = {name: pd.Series(values, dtype=dtypes.get(name)) for name, values in held.items()}
    made["x"] = pd.Series([np.nan if each is None else each for each in held["x"]])
    made["level"] = pd.Series(pd.Categorical(held["level"], ["low", "middle", "high"], ordered=True))
    return pd.DataFrame(made)


def of_polars():
    """NaN stands beside null, and both are missing."""
    held = columns()
    schema = {"x": pl.Float64, "i": pl.Int64, "yes": pl.Boolean, "region": pl.Categorical}
    frame = pl.DataFrame(held, schema_overrides=schema | {"level": pl.Enum(["low", "middle", "high"])})
    nan = pl.when(pl.col("x").is_null() & (pl.col("age") % 2 == 0)).then(float("nan")).otherwise(pl.col("x"))
    return frame.with_columns(nan.alias("x"))


def of_arrow():
    types = {"x": pa.float64(), "i": pa.int64(), "yes": pa.bool_(), "day": pa.timestamp("us")}
    made = {name: pa.array(values, types.get(name)) for name, values in columns().items()}
    made["region"] = made["region"].dictionary_encode()
    return pa.table(made)


def in_pieces():
    """Chunks of different lengths, of which none has all categories."""
    table = of_arrow()
    return pa.concat_tables([table[:1], table[1:1], table[1:200], table[200:]])


FRAMES = {
    "Polars": of_polars,
    "LazyFrame": lambda: of_polars().lazy(),
    "Arrow": in_pieces,
    "Arrow dataset": lambda: ds.dataset([of_arrow()[:100], of_arrow()[100:]]),
}
