"""Other questions are never taken for one that was asked before, however alike they look."""

import decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import ledgers
import pdrisk
from ledgers import REGIONS, SURE, asked, of, people, values
from pdrisk import Dataset

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def survey():
    """With objects of several kinds, truth values, text, small integers, and columns 1 and "1"."""
    frame = people()
    frame["o"] = pd.Series([1, "1", True, b"1", 1.0, "a"] * 10, dtype=object)
    frame["flag"] = frame["age"] > 35
    frame["text"] = pd.Series(["1", "0", None, "True", "a", "b"] * 10, dtype="string")
    frame["small"] = (np.arange(60) * 2).astype(np.int8)
    frame["1"] = frame["age"].where(frame["age"] > 30)
    frame[1] = frame["age"].where(frame["age"] > 40)
    return frame


def where(text, a=None):
    """A filter; ``a`` stands for @held."""

    def ask(df, led):
        held = a  # noqa: F841 - as @held
        return of(df).count(eps=SURE, where=text, ledger=led)

    return ask


def keys(*listed, by="sex"):
    return lambda df, led: of(df).count(eps=SURE, by=by, keys=list(listed), ledger=led)


def declared(**said):
    def ask(df, led):
        frame = df._frame if isinstance(df, Dataset) else df
        before = dict(frame.attrs)
        frame.attrs.update(frame.dprisk.declare(**said).attrs)
        try:
            return of(df).mean("age", eps=SURE, ledger=led)
        finally:
            frame.attrs.clear()
            frame.attrs.update(before)

    return ask


def mean(**options):
    return lambda df, led: of(df).mean("age", ledger=led, **{"eps": SURE, "bounds": (0, 100)} | options)


def quantile(q):
    return lambda df, led: of(df).quantile("age", q, eps=SURE, bounds=(0, 100), ledger=led, mechanism="laplace")


def variance(ddof):
    return lambda df, led: of(df).var("age", ddof=ddof, eps=SURE, bounds=(0, 100), ledger=led)


def agg(request):
    asked = {name for each in request.values() for name in ([each] if isinstance(each, str) else each)}
    named = {"mechanism": "laplace"} if asked & {"median", "min", "max"} else {}  # of answers that are sure
    return lambda df, led: of(df).agg(request, eps=SURE, bounds=(0, 100), ledger=led, **named)


def sql(text, **options):
    said = {"eps": SURE, "bounds": (0, 100)} | options

    def ask(df, led):
        if isinstance(df, Dataset):
            return df.sql(text.replace("FROM t", "FROM data"), ledger=led, **said)
        return pdrisk.sql(text, ledger=led, t=df, **said)

    return ask


AGE, HOURS = {"age": (0, 100)}, {"age": (0, 50)}
FILTER = "SELECT COUNT(*) {} FROM t WHERE sex = {}"
SHARES = "SELECT dp_count(age, eps := {}e6), dp_sum(age, eps := {}e6, lo := 0, hi := 99) FROM t"
CONSTANTS = [("flag", True), ("flag", False), ("text", "True"), ("text", "1"), ("small", 1), ("small", 0)]
DIFFERENT = {  # each question of a row is another one
    "eps": [mean(eps=SURE), mean(eps=SURE * 1.01), mean(eps=Fraction(SURE) + Fraction(1, 10**9))],
    "risk": [mean(eps=None, risk=1 - 1e-12), mean(eps=None, risk=1 - 2e-12)],
    "bounds": [mean(), mean(bounds=(0, 90)), mean(bounds=(-1, 100)), mean(bounds=(0, 100 + 1e-9))],
    "ends of a quantile": [quantile(q) for q in (0.25, 0.251, 0.2500000005, 0.75, 0, 1)],
    "statistics": [agg({"age": name}) for name in ("mean", "median", "sum", "min", "max", "var", "std", "count")],
    "degrees of freedom": [variance(0), variance(1)],
    "columns": [agg({"age": "mean"}), agg({"hours": "mean"}), agg({"age": "mean", "hours": "mean"})],
    "the order of lines": [agg({"age": ["min", "max"]}), agg({"age": ["max", "min"]})],
    "counts": [lambda df, led, c=c: of(df).count(c, eps=SURE, ledger=led) for c in (None, "age", "o", 1, "1")],
    "filters": [where(f"age {op} {n}") for op in "<>" for n in (30, 30.5, 31)],
    "kinds of constants": [where(f"{c} == @held", a=a) for c, a in CONSTANTS],
    "names of the same text": [where("age > @held", a=a) for a in (30, 30.5, 40, -30)],
    "lists of names": [where("region in @held", a=a) for a in (["north"], ["north", "south"], ["east"])],
    "long lists": [where("pid in @held", a=[*range(3000), last]) for last in (3000, 3001, 3002)],
    "keys": [keys(0, 1), keys(1, 0), keys(1), keys(0, 1, 2)],
    "texts": [keys(*listed, by="region") for listed in (REGIONS, REGIONS[:2], ["north,south", "east"])],
    "many keys": [keys(*range(200), last, by="pid") for last in (200, 201)],
    "declared bounds": [declared(bounds=AGE), declared(bounds=HOURS)],
    "missing codes": [declared(bounds=AGE, missing={"age": m}) for m in ([20], [21], [20, 21])],
    "sql": [sql(FILTER.format(f, s)) for f in ("", "FILTER (age > 30)", "FILTER (age > 31)") for s in (0, 1)],
    "sql parameters": [sql(FILTER.format("", "?"), params=[p]) for p in (0, 1, 2)],
    "sql shares": [sql(SHARES.format(*shares), eps=None) for shares in ((1, 3), (3, 1), (2, 2))],
    "sql bounds": [sql("SELECT AVG(age) FROM t", bounds=b) for b in ((0, 100), (0, 90), {"age": (0, 80)})],
    "sql keys": [sql("SELECT COUNT(*) FROM t GROUP BY region", keys=k) for k in (REGIONS, REGIONS[:2], REGIONS[::-1])],
    "sql expressions": [sql(f"SELECT COUNT(age {op} hours) FROM t WHERE age {op} hours > 30") for op in "+-*"],
}  # fmt: skip
SPELLED = {  # may be one question or two; the answer is right
    "eps": [mean(eps=e) for e in (1e6, 10**6, Fraction(10**6), decimal.Decimal("1E6"), np.float64(1e6))],
    "bounds": [mean(bounds=b) for b in ((0, 100), [0.0, 100.0], (-0.0, 100), (np.int8(0), np.int64(100)))],
    "constants": [where("age + @held > 100", a=a) for a in (60, np.int8(60), 60.0, np.float32(60), np.uint8(60), True)],
    "small constants": [where("small + @held > 0", a=a) for a in (100, np.int8(100), np.int64(100), 100.0)],
    "truth": [where("flag == @held", a=a) for a in (True, np.bool_(True))],
    "ones": [where("small == @held", a=a) for a in (2, 2.0, np.int8(2), np.float64(2))],
    "spaces": [where(text, 30) for text in ("age>30", "age > 30", " (age)  >  30", "age > @held", "30 < age")],
    "middle": [quantile(0.5), quantile(np.float32(0.5)), agg({"age": "median"})],
    "sql": [sql(f"SELECT {count} FROM t") for count in ("COUNT(*)", "count() AS n", "COUNT(*) + 0", "COUNT(1)")],
}  # fmt: skip
if ledgers.IS_3:
    DIFFERENT["lists of expressions"] = [where(pd.col("pid").isin([*range(3000), last])) for last in (3000, 3001)]
    DIFFERENT["kinds of expressions"] = [where(pd.col(c) == a) for c, a in CONSTANTS]
    SPELLED["expressions"] = [
        where("age > 30"), where(pd.col("age") > 30), where(~(pd.col("age") <= 30)),
        where(pd.col("age") > np.int8(30)), where(pd.col("age") >= 30),
    ]  # fmt: skip
SURELY = {name: asks for name, asks in DIFFERENT.items() if name != "risk"}  # of which noise hides nothing


class TestQuestions:
    """Whatever was asked before, each question gets its own answer."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("asks", DIFFERENT.values(), ids=DIFFERENT.keys())
    def test_different(self, book, asks):
        ledger = book(eps=10**12)
        d = Dataset(survey(), ledger=ledger)
        costs = [asked(ledger, partial(ask, d))[1] for ask in asks]
        assert all(costs)
        assert [asked(ledger, partial(ask, d))[1] for ask in asks] == [0] * len(asks)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("asks", (SURELY | SPELLED).values(), ids=(SURELY | SPELLED).keys())
    def test_right(self, book, asks):
        frame = survey()
        ledger = book(eps=10**12)
        d = Dataset(frame, ledger=ledger)
        for ask in (*asks, *reversed(asks)):
            assert values(ask(d, ledger)) == pytest.approx(values(ask(frame, None)), abs=0.5)

    def test_another_mechanism(self, book):
        d = Dataset(people(), ledger=book())
        d.count(eps=1)
        with pytest.raises(pdrisk.ParameterError, match="unknown mechanism"):
            d.count(eps=1, mechanism="gaussian")
