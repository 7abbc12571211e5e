"""Schemas of one column x, and what their own validation says about values."""

import numpy as np
import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors


def schema_of(*checks, dtype=None, **column):
    return pa.DataFrameSchema({"x": pa.Column(dtype, list(checks), **column)})


def marked(**said):
    """A check of one's own that carries the mark."""
    return pa.Check(lambda series: series == series, statistics={"dprisk": said})


def said(schema, column="x", dtype=float):
    """Bounds and valid range as a frame knows them, NaN where nothing is said."""
    table = pd.DataFrame({column: pd.Series(dtype=dtype)}).dprisk.declare(schema).dprisk.declared
    if column not in table.index:
        return (np.nan, np.nan, -np.inf, np.inf)
    return tuple(table.loc[column, ["lo", "hi", "valid_lo", "valid_hi"]])


def accepted(schema, values, dtype=None):
    """Those of the values that validation lets through."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    failed = set()
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        failed = set(error.failure_cases["index"])
    assert failed <= set(frame.index)
    return [value for row, value in enumerate(values) if row not in failed]
