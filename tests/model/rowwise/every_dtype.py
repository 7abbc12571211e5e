"""A column of every dtype with the values at its ends, and constants of every kind, for tests of whole classes."""

import datetime as dt
import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa

BERLIN = dt.timezone(dt.timedelta(hours=1))
ENDS = {
    kind: [np.iinfo(kind).min, 0, 1, 3, np.iinfo(kind).max - 1, np.iinfo(kind).max]
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
}


class Nowhere(dt.tzinfo):
    """A time zone that fails."""

    def utcoffset(self, _):
        raise ZeroDivisionError


class Sex(enum.StrEnum):
    """A text of a class of its own."""

    MALE = "a"


class Own(float):
    """A number that answers for itself."""

    def __ne__(self, _):
        raise ZeroDivisionError

    __eq__ = __float__ = __add__ = __hash__ = __ne__


class Hostile:
    """A record of whatever kind, which answers no question."""

    def refuse(self, *_):
        raise ZeroDivisionError

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __bool__ = __len__ = __iter__ = refuse
    __float__ = __int__ = __index__ = __str__ = __repr__ = __add__ = __radd__ = __mul__ = refuse


def objects(values):
    """A column of exactly these objects."""
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return pd.Series(held, dtype=object)


def nullable(kind):
    """The name of pandas' nullable dtype."""
    return kind.replace("int", "Int").replace("uI", "UI")


def arrow(values, kind):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, type=kind)])))


WIDEST = ("int8", "uint8", "int64", "uint64")
FLOATS = [np.nan, np.inf, -0.0, 1e308, 5e-324, 3.0]
TEXTS = ["", "a", None, "b", "\U0001f600", "3"]
DATES = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), None, dt.datetime(2020, 1, 1), dt.datetime(1970, 1, 1)]
DAYS = [None if day is None else day.date() for day in DATES]
LENGTHS = [dt.timedelta(0), None, dt.timedelta(days=100_000), dt.timedelta(microseconds=-1), dt.timedelta(days=1)]
COLUMNS = {
    **{kind: pd.Series(np.array(values, kind)) for kind, values in ENDS.items()},
    **{
        nullable(kind): pd.Series(pd.array([*values[:-1], None], nullable(kind)))
        for kind, values in ENDS.items()
        if kind in WIDEST
    },
    **{f"{kind} arrow": arrow([*values[:-1], None], kind) for kind, values in ENDS.items() if kind in WIDEST},
    **{
        f"float{bits}": pd.Series(np.array(FLOATS if bits == 64 else [*FLOATS[:3], 0.1, 1e4, 3.0], f"float{bits}"))
        for bits in (16, 32, 64)
    },
    "Float32": pd.Series(pd.array(np.array([*FLOATS[:3], 3.0], "float32"), "Float32")),
    "Float64": pd.Series(pd.array(FLOATS, "Float64")),
    "double arrow": arrow(FLOATS, pa.float64()),
    "float arrow": arrow([*FLOATS[:3], 3.0], pa.float32()),
    "decimal": arrow([Decimal("5.10"), None, Decimal("-999.99"), Decimal("3"), Decimal("0")], pa.decimal128(5, 2)),
    "large decimal": arrow([Decimal(10) ** 37, None, Decimal(3)], pa.decimal128(38, 0)),
    "bool": pd.Series([True, False, True]),
    "boolean": pd.Series(pd.array([True, None, False], "boolean")),
    "bool arrow": arrow([True, None, False], pa.bool_()),
    "str": pd.Series(TEXTS, dtype="str") if pd.__version__ >= "3" else pd.Series(TEXTS),
    "string": pd.Series(TEXTS, dtype="string"),
    "string[python]": pd.Series(TEXTS, dtype="string[python]"),
    "text arrow": arrow(TEXTS, pa.string()),
    "large text arrow": arrow(TEXTS, pa.large_string()),
    "text objects": objects(TEXTS),
    "objects": objects(["a", None, dt.date(2020, 1, 1), 3, True, Decimal("5.10")]),
    "hostile objects": objects([Hostile(), [1], {}, Decimal("sNaN"), np.arange(3), ("a",), "a", 10**400, 3.0]),
    "odd dates": objects(
        [
            dt.datetime.max.replace(tzinfo=BERLIN),
            dt.datetime.min,
            pd.NaT,
            np.datetime64("2020"),
            dt.timedelta.max,
            dt.datetime(2020, 1, 1, tzinfo=Nowhere()),
        ]
    ),
    **{
        f"datetime64[{unit}]": pd.Series(np.array(DATES[2:], f"datetime64[{unit}]")) for unit in ("s", "ms", "us", "ns")
    },
    "far dates": pd.Series(np.array([2**62, -(2**62), 0], "datetime64[s]")),
    "zoned": pd.Series(np.array(DATES[2:], "datetime64[us]")).dt.tz_localize("Europe/Berlin"),
    **{f"timestamp[{unit}] arrow": arrow(DATES[2:], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "far dates arrow": arrow([2**62, -(2**62), None], pa.timestamp("s")),
    "zoned arrow": arrow(DATES[2:], pa.timestamp("us", "Europe/Berlin")),
    "date32": arrow(DAYS, pa.date32()),
    "date64": arrow(DAYS, pa.date64()),
    "timedelta": pd.Series(LENGTHS, dtype="timedelta64[us]"),
    "duration arrow": arrow(LENGTHS, pa.duration("us")),
    "month": pd.Series(pd.PeriodIndex(["2020-01", None, "1900-01"], freq="M")),
    "days": pd.Series(pd.PeriodIndex(["2020-01-01", None, "1900-01-01"], freq="D")),
    "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
    "complex": pd.Series([1j, 0, 2]),
    "numpy objects": objects(
        [
            np.timedelta64("NaT", "ns"),
            np.timedelta64(3, "ns"),
            np.longdouble("nan"),
            np.float32(3),
            np.str_("a"),
            Own(3),
        ]
    ),
    "texts of their own": objects([np.str_("a"), Sex.MALE, "b", None]),
    "sparse whole": pd.Series(pd.arrays.SparseArray([0, 3, 2**53 + 1])),
    "sparse truth": pd.Series(pd.arrays.SparseArray([True, False])),
    "sparse dates": pd.Series(pd.arrays.SparseArray(np.array(DATES[2:], "datetime64[ns]"))),
    "sparse objects": pd.Series(pd.arrays.SparseArray(np.array(["a", 3, "b"], object))),
    "sparse": pd.Series(pd.arrays.SparseArray([0.0, 3.0, np.nan])),
    "categories": pd.Series(pd.Categorical(["a", "b", None])),
    "other categories": pd.Series(pd.Categorical(["b", "z", "a", None], ["z", "b", "a"])),
    "ordered categories": pd.Series(pd.Categorical(["a", "b", None], ["b", "a"], ordered=True)),
    "numbered categories": pd.Series(pd.Categorical.from_codes([1, 0, -1, 2], [1, 3, 2**53 + 1])),
    "dated categories": pd.Series(pd.Categorical(np.array(DATES[2:], "datetime64[us]"))),
    "any categories": pd.Series(pd.Categorical.from_codes([0, 1, -1], pd.Index(["a", 3], dtype=object))),
    "time arrow": arrow([dt.time(1), None], pa.time64("us")),
    "bytes arrow": arrow([b"a", None], pa.binary()),
    "lists arrow": arrow([[1], None], pa.list_(pa.int64())),
    "dictionary arrow": arrow(["a", None, "b"], pa.string()).astype(
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "null arrow": arrow([None, None], pa.null()),
}
CONSTANTS = {
    "three": 3, "a half": 0.5, "largest": 2**64 - 1, "least": -(2**63), "beyond floats": 2**63 - 1, "huge": 1e308,
    "true": True, "text": "a", "emoji": "\U0001f600", "stamp": pd.Timestamp("2020-01-01"),
    "far": pd.Timestamp("9999-12-31"), "day": dt.date(2020, 1, 1), "zoned": pd.Timestamp("2020-01-01", tz="UTC"),
    "length": pd.Timedelta(days=1), "iso": "2020-01-01", "length in words": "1 days",
}  # fmt: skip
