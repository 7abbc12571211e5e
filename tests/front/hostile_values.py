"""Values that a caller may pass by mistake or by malice, for whoever tests what arguments may do."""

import array
import collections
import datetime
import decimal
import enum
import fractions
import re
import signal
import sys
import threading
import time
import types
import unittest.mock
import weakref
from contextlib import contextmanager

import numpy as np
import pandas as pd

MANY = 30_000  # items after which something without an end is no mistake of the caller's any more


class Endless(BaseException):
    """Somebody reads on and on."""


class TooSlow(BaseException):
    """Somebody takes too long."""


class ForeignError(Exception):
    """Raised by code that is not pdrisk's."""


def _fails(*_, **__):
    raise ForeignError("told by foreign code")


DUNDERS = (
    "__bool__", "__eq__", "__ne__", "__lt__", "__iter__", "__next__", "__len__", "__hash__", "__repr__", "__str__",
    "__format__", "__getitem__", "__contains__", "__float__", "__int__", "__index__", "__array__", "__call__",
    "__abs__", "__getattr__", "__getattribute__", "__add__", "__mod__", "__reduce_ex__", "__fspath__", "__enter__",
)  # fmt: skip


def hostile(*dunders):
    return object.__new__(type("Hostile", (), dict.fromkeys(dunders, _fails)))


def of_builtin(base, *of):
    """One of a builtin kind that does nothing as that does."""
    dunders = [name for name in DUNDERS if hasattr(base, name) and name not in ("__getattribute__", "__getattr__")]
    found = base.__new__(type(f"Own{base.__name__}", (base,), dict.fromkeys(dunders, _fails)), *of)
    if base in (list, dict, set):
        base.__init__(found, *of)
    return found


class Counting:
    """All numbers, one after the other; fails where nobody would have stopped."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at > MANY:
            raise Endless
        return self.at


class EndlessSequence(list):
    """A list that never ends."""

    def __iter__(self):
        return Counting()


class AsGoodAsEndless(collections.abc.Sequence):
    """A range beyond all memory, read by Python, so that whoever reads it can be stopped."""

    def __len__(self):
        return 10**15

    def __getitem__(self, place):
        return place

    def __iter__(self):
        return Counting()


class EndlessMapping(collections.abc.Mapping):
    """A dict that never ends."""

    def __iter__(self):
        return Counting()

    def __getitem__(self, key):
        return 1

    def __len__(self):
        return sys.maxsize


class Dead:
    pass


def deep(kind, depth=10_000):
    value = kind()
    for _ in range(depth):
        value = kind([value]) if kind is not dict else {"x": value}
    return value


def itself(kind):
    value = kind()
    value.append(value) if kind is list else value.update(x=value)
    return value


def self_key():
    """A tuple that holds a list that holds the tuple."""
    inner = []
    value = (inner, inner)
    inner.append(value)
    return value


class Member(enum.Enum):
    X = "x"


def values():
    """Each value's name and how to make it."""
    found = {
        # Without an end, or as good as.
        "generator": lambda: (each for each in ("x", "n")),
        "generator that fails": lambda: (_fails() for _ in range(3)),
        "endless": Counting,
        "endless map": lambda: map(str, Counting()),
        "endless list": lambda: EndlessSequence([1, 2]),
        "endless mapping": EndlessMapping,
        "as good as endless": AsGoodAsEndless,
        "large range": lambda: range(20_000),
        "list of endless": lambda: [Counting()],
        "tuple of endless": lambda: ("quantile", {"q": Counting()}),
        "dict of endless": lambda: {"x": Counting()},
        "dict of endless for g and h": lambda: {"g": Counting(), "h": Counting()},
        "dict of ranges": lambda: {"g": range(10**3), "h": range(10**3)},
        "dict of long lists": lambda: {"g": [*"ab"] * 10**3, "h": [*range(10**3)]},
        "zip": lambda: zip([1], [2], strict=True),
        "iter of a list": lambda: iter(["x"]),
        "dict view": lambda: {"x": 1}.keys(),
        "filter": lambda: filter(None, [0, 1]),
        # Numbers that are none, or too large for those of the machine.
        **{str(each): lambda each=each: each for each in (0, -1, 2**31, 2**63, 2**64, 0.0, -0.0, 1e308, 5e-324)},
        **{f"float {each}": lambda each=each: each for each in (float("nan"), float("inf"), float("-inf"))},
        "10**400": lambda: 10**400,
        "-10**400": lambda: -(10**400),
        "10**5000": lambda: 10**5000,
        "10**100000": lambda: 10**100_000,
        "complex": lambda: 1 + 2j,
        "complex nan": lambda: complex("nan"),
        **{
            f"Decimal {text}": lambda text=text: decimal.Decimal(text)
            for text in ("NaN", "sNaN", "Infinity", "-Infinity", "1", "0", "1e999999", "1e-999999", "0." + "1" * 5000)
        },
        "Fraction": lambda: fractions.Fraction(1, 3),
        "large Fraction": lambda: fractions.Fraction(10**5000, 3),
        "small Fraction": lambda: fractions.Fraction(1, 10**5000),
        "True": lambda: True,
        # Of numpy.
        "array": lambda: np.array([1.0, 2.0]),
        "array of one": lambda: np.array([1.0]),
        "array of none": lambda: np.array([]),
        "array without a dimension": lambda: np.array(1.0),
        "array without a dimension of objects": lambda: np.array({"x": 1}, dtype=object),
        "square": lambda: np.eye(2),
        "array of objects": lambda: np.array([object(), [1]], dtype=object),
        "array of text": lambda: np.array(["x", "n"]),
        "array of dates": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        "array of records": lambda: np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
        "masked array": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        "masked": lambda: np.ma.masked,
        "matrix of nan": lambda: np.full((2, 2, 2), np.nan),
        **{
            f"{each.dtype} {each}": lambda each=each: each
            for each in (
                np.float64("nan"), np.float32("inf"), np.float16(1), np.longdouble(1), np.int8(1), np.uint64(2**63),
                np.complex64(1), np.bool_(True), np.str_("x"), np.bytes_(b"x"), np.datetime64("NaT", "s"),
                np.datetime64(2**62, "Y"), np.datetime64("2020-01-01"), np.timedelta64("NaT", "ns"),
                np.timedelta64(2**62, "W"),
            )
        },
        "void": lambda: np.void(b"abc"),
        "dtype": lambda: np.dtype("float64"),
        "ufunc": lambda: np.add,
        "generator of numpy": lambda: np.random.default_rng(1),
        # Of pandas.
        "frame": lambda: pd.DataFrame({"x": [1.0, 2.0]}),
        "empty frame": pd.DataFrame,
        "series": lambda: pd.Series([1.0, 2.0]),
        "series of text": lambda: pd.Series(["x", "n"]),
        "categorical": lambda: pd.Categorical(["x", "n"]),
        "index": lambda: pd.Index(["x", "n"]),
        "multiindex": lambda: pd.MultiIndex.from_tuples([("x", "n"), ("g", "h")]),
        "NA": lambda: pd.NA,
        "NaT": lambda: pd.NaT,
        "Timestamp": lambda: pd.Timestamp("2020-01-01"),
        "Timestamp with a zone": lambda: pd.Timestamp("2020-01-01", tz="UTC"),
        "Timedelta": lambda: pd.Timedelta("1D"),
        "Period": lambda: pd.Period("2020"),
        "Interval": lambda: pd.Interval(1, 2),
        "IntervalIndex": lambda: pd.interval_range(0, 2),
        "arrow array": lambda: pd.array([1, None], dtype="Int64"),
        "groupby": lambda: pd.DataFrame({"x": [1]}).groupby("x"),
        "accessor": lambda: pd.DataFrame({"x": [1]}).dprisk,
        # Text.
        "empty text": lambda: "",
        "column": lambda: "x",
        "NUL": lambda: "x\0",
        "half a pair": lambda: "\ud800",
        "long text": lambda: "x" * 10**5,
        "long words": lambda: "x n " * 10**4,
        "braces": lambda: "{0.__class__}%s",
        "bytes": lambda: b"x",
        "bytearray": lambda: bytearray(b"x"),
        "memoryview": lambda: memoryview(b"x"),
        "regex": lambda: re.compile("x"),
        # Nested.
        "list": lambda: [1, 2],
        "list of columns": lambda: ["x", "n"],
        "empty list": list,
        "nested": lambda: [[1, 2], [3]],
        "tuple of lists": lambda: ([1], [2]),
        "deep list": lambda: deep(list),
        "deep tuple": lambda: deep(tuple),
        "deep dict": lambda: deep(dict),
        "list of a deep tuple": lambda: [deep(tuple)],
        "list of itself": lambda: itself(list),
        "dict of itself": lambda: itself(dict),
        "tuple of itself": self_key,
        "set": lambda: {"x"},
        "frozenset": lambda: frozenset("x"),
        "empty dict": dict,
        "dict": lambda: {"x": 1},
        "dict of dicts": lambda: {"x": {"x": {"x": 1}}},
        "dict of a generator": lambda: {"x": (each for each in (1, 2))},
        "dict of None": lambda: {None: None},
        "dict of nan": lambda: {float("nan"): float("nan")},
        "dict of a huge int": lambda: {10**5000: 10**5000},
        "array of array": lambda: array.array("d", [1, 2]),
        "deque": lambda: collections.deque([1, 2]),
        "mappingproxy": lambda: types.MappingProxyType({"x": (1, 2)}),
        "list of dicts": lambda: [{"x": 1}],
        "named tuple": lambda: collections.namedtuple("Pair", "lo hi")(1, 2),
        # What is no value at all.
        **{repr(each): lambda each=each: each for each in (None, Ellipsis, NotImplemented, int, type, object, print)},
        "lambda": lambda: lambda *_: 1,
        "function that fails": lambda: _fails,
        "module": lambda: sys,
        "object": object,
        "exception": lambda: ValueError("x"),
        "lock": threading.Lock,
        "mock": unittest.mock.MagicMock,
        "dead": lambda: weakref.proxy(Dead()),
        "enum": lambda: Member.X,
        "slice": lambda: slice(1, 2),
        "datetime": lambda: datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC),
        "date": lambda: datetime.date(1, 1, 1),
        "time": lambda: datetime.time(1),
        "timedelta": lambda: datetime.timedelta.max,
        # What fails when it is looked at.
        **{f"no {name}": lambda name=name: hostile(name) for name in DUNDERS},
        "nothing works": lambda: hostile(*(name for name in DUNDERS if name != "__getattribute__")),
        "nothing works at all": lambda: hostile(*DUNDERS),
        **{
            f"own {base.__name__}": lambda base=base, of=of: of_builtin(base, *of)
            for base, of in (
                (str, ("x",)), (int, (1,)), (float, (1.5,)), (list, ([1, 2],)), (tuple, ((1, 2),)), (dict, ({"x": 1},)),
                (set, ([1],)), (bytes, (b"x",)), (fractions.Fraction, (1, 3)), (decimal.Decimal, ("1",)),
                (datetime.date, (2020, 1, 1)),
            )
        },
    }  # fmt: skip
    inside = {
        "nothing works": found["nothing works"],
        "nothing works at all": found["nothing works at all"],
        "no __eq__": found["no __eq__"],
        "no __hash__": found["no __hash__"],
        "no __repr__": found["no __repr__"],
        "own str": found["own str"],
        "own float": found["own float"],
        "10**5000": found["10**5000"],
        "half a pair": found["half a pair"],
        "10**400": found["10**400"],
        "NaT": found["NaT"],
        "timedelta": found["timedelta"],
        "complex": found["complex"],
        "Decimal sNaN": found["Decimal sNaN"],
        "lambda": found["lambda"],
    }
    if hasattr(pd, "col"):
        inside |= {"pd.col": lambda: pd.col("x"), "pd.col compared": lambda: pd.col("n") > 1}
        found |= {name: inside[name] for name in ("pd.col", "pd.col compared")}
        found["pd.col of a mock"] = lambda: pd.col("x") > unittest.mock.MagicMock()
    for name, make in inside.items():
        found[f"[{name}]"] = lambda make=make: [make()]
        found[f"[{name}, {name}]"] = lambda make=make: [make(), make()]
        found[f"({name}, 1)"] = lambda make=make: (make(), 1)
        found[f"{{'x': {name}}}"] = lambda make=make: {"x": make()}
        found[f"{{'x': [{name}]}}"] = lambda make=make: {"x": [make()]}
        found[f"{{'x': ({name}, 5)}}"] = lambda make=make: {"x": (make(), 5)}
        found[f"('quantile', q={name})"] = lambda make=make: ("quantile", {"q": make()})
        try:
            hash(make())
        except Exception:  # noqa: BLE001 - it cannot be a key of a dict
            continue
        found[f"{{{name}: 1}}"] = lambda make=make: {make(): 1}
        found[f"{{{name}: (1, 2)}}"] = lambda make=make: {make(): (1, 2)}
    return found


@contextmanager
def at_most(seconds):
    """Stops what takes longer, where there are signals; elsewhere says so afterwards."""
    begun = time.monotonic()
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():

        def stop(*_):
            raise TooSlow

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    else:
        yield
    if time.monotonic() - begun > seconds:
        raise TooSlow
