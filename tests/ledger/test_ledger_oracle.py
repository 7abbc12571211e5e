"""Under a ledger nothing is learned for free: what is accepted does not depend on what one person answered."""

import datetime as dt
import itertools
from contextlib import suppress
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdrisk

N = 30
DECLARED = {"bounds": {"pay": (0, 9), "on": (0, 1)}, "keys": {"area": ["n", "s"], "yes": [False, True]}}


def people():
    """Columns as pandas infers them, and objects of each kind: undeclared, or with declared keys or bounds."""
    at = np.arange(N)
    frame = pd.DataFrame(
        {
            "pid": at, "smoker": at % 2 == 0, "age": at, "big": at + 2**53, "hours": at / 2,
            "day": pd.Timestamp("2020-01-01"), "grade": pd.Categorical(np.array(["a", "b"])[at % 2]),
            "sex": pd.array(np.array(["f", "m"])[at % 2], "string"),
        }
    )  # fmt: skip
    objects = {
        "thing": np.array(["n", "s"])[at % 2].tolist(), "pay": [Decimal(each % 9) for each in at.tolist()],
        "on": [each % 3 == 0 for each in at.tolist()], "area": np.array(["n", "s"])[at % 2].tolist(),
        "yes": [each % 2 == 0 for each in at.tolist()], "cents": [Decimal(each) for each in at.tolist()],
    }  # fmt: skip
    for name, values in objects.items():
        frame[name] = pd.Series(values, dtype=object)
    return frame


OBJECTS = ["thing", "pay", "on", "area", "yes", "cents"]
CONDITIONS = [
    *("{0}", "not {0}", "{0} + age > 5", "{0} * {0} == 1", "-{0} < 0", "{0} and age > 5", "{0} == True", "{0} != 1"),
    *("{0} == 'n'", "{0} > 'n'", "{0} in ['n', 's']", "{0} in [True]", "{0} > 3", "{0} <= 2.5", "{0} == age"),
    *("{0} < smoker", "{0} == sex", "{0}.isna()", "{0} >= '2020-01-01'", "{0} == {0}", "{0} < {0}"),
]
OPTIONS = [
    {"by": "{0}", "keys": keys}
    for keys in ([True, False], ["n", "s"], [0, 1], [2**53, 2**53 + 1], [0.5, None], [dt.date(2020, 1, 1)], None)
]
ASKED = [
    *(("count", None, {"where": each}) for each in CONDITIONS),
    *(("count", None, each) for each in OPTIONS),
    *((name, "{0}", {}) for name in ("count", "nunique", "mean", "sum", "proportion", "median")),
    *((name, "{0}", {"bounds": (0, top)}) for name in ("mean", "max", "std") for top in (1, 9)),
    ("hist", "{0}", {"bounds": (0, 1)}),
    ("agg", {"{0}": ["mean", "count"]}, {"bounds": (0, 9)}),
    ("corr", "{0}", {"bounds": {"{0}": (0, 9), "hours": (0, 9)}}),
    ("suggest_bounds", "{0}", {}),
]
STATEMENTS = [
    *("COUNT(*) FROM t WHERE {0}", "COUNT(*) FROM t WHERE {0} = 'n'", "COUNT(*) FROM t WHERE {0} > 'n'"),
    *("COUNT(*) FROM t WHERE {0} > 3", "COUNT({0}) FROM t", "AVG({0}) FROM t", "COUNT(*) FROM t WHERE NOT {0}"),
    *("SUM(CAST({0} AS DOUBLE)) FROM t", "COUNT(*) FROM t WHERE {0} IS NULL", "COUNT(DISTINCT {0}) FROM t"),
]


def filled(part, column):
    if isinstance(part, str):
        return part.format(column)
    if isinstance(part, dict):
        return {filled(name, column): filled(value, column) for name, value in part.items()}
    return part


def is_paid(ledger, ask):
    """Whether a question was paid; nothing else costs."""
    before = ledger.remaining().eps
    with suppress(pdrisk.PdriskError):
        ask()
    return ledger.remaining().eps < before


def accepted(frame, column, tmp_path):
    """Which questions about a column are paid, in each way to ask them."""
    ledger = pdrisk.Ledger(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", dataset="people", eps=10**6)
    found = {}
    for way, held in (("frame", frame.dprisk), ("dataset", pdrisk.Dataset(frame, ledger=ledger))):
        for name, asked, options in ASKED:
            given = {"eps": 1, "ledger": ledger} | filled(options, column)
            what = [] if asked is None else [filled(asked, column)] + ["hours"] * (name == "corr")
            found[way, name, str(asked), str(options)] = is_paid(ledger, partial(getattr(held, name), *what, **given))
    data = pdrisk.Dataset(frame, ledger=ledger)
    for each in CONDITIONS:
        text = each.format(column)
        found["query", text] = is_paid(ledger, lambda: data.query(text).count(eps=1, fresh=True))  # noqa: B023
        found["assign", text] = is_paid(ledger, lambda: data.assign(c=text).count("c", eps=1, fresh=True))  # noqa: B023
    return found


def by_sql(frame, column, tmp_path):
    ledger = pdrisk.Ledger(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", dataset="people", eps=10**6)
    bounds = {column: (0, 9)}
    texts = [f"SELECT {each.format(column)}" for each in STATEMENTS]
    options = {"eps": 1, "bounds": bounds, "ledger": ledger, "t": frame}
    return {each: is_paid(ledger, partial(pdrisk.sql, each, **options)) for each in texts}


def with_one(frame, column, value):
    """The frame with one more person, as pandas makes it of all their values."""
    columns = {name: frame[name].tolist() for name in frame}
    said = {name: [*values, value if name == column else values[0]] for name, values in columns.items()}
    made = pd.DataFrame(said).astype({"sex": "string", "grade": frame["grade"].dtype})
    return made.astype(dict.fromkeys([name for name in OBJECTS if name != column or value is not None], object))


@pytest.mark.filterwarnings("ignore")
class TestAPersonMore:
    """With one more person, whatever that person answered, the same questions are paid and the same refused."""

    @pytest.mark.parametrize("column", ["smoker", "age", "big", "hours", "day", "grade", "sex"])
    def test_who_does_not_answer(self, column, tmp_path):
        frame = people()
        more = with_one(frame, column, None)
        for before, after in ((frame, more), (frame.dprisk.declare(**DECLARED), more.dprisk.declare(**DECLARED))):
            assert accepted(before, column, tmp_path) == accepted(after, column, tmp_path)
        assert (more["smoker"].dtype == object) == (column == "smoker")

    @pytest.mark.parametrize(
        ("column", "value"), [*itertools.product(OBJECTS, [None, True, "x", 3.5, dt.date(2020, 1, 1), ("x",)])]
    )
    def test_who_answers_something_else(self, column, value, tmp_path):
        frame = people().dprisk.declare(**DECLARED)
        more = frame.copy()
        more.loc[N] = frame.iloc[0]
        more = more.astype(frame.dtypes.to_dict())
        held = np.empty(N + 1, dtype=object)
        held[:] = [*frame[column], value]
        more[column] = pd.Series(held, dtype=object)
        assert accepted(frame, column, tmp_path) == accepted(more, column, tmp_path)
        assert by_sql(frame, column, tmp_path) == by_sql(more, column, tmp_path)

    def test_what_is_declared_is_answered(self, tmp_path):
        """Each column can be asked for what it was declared to hold."""
        frame, ledger = people().dprisk.declare(**DECLARED), pdrisk.Ledger(tmp_path / "b.db", dataset="p", eps=10**9)
        sure = {"eps": 10**6, "ledger": ledger}
        assert frame.dprisk.count(where="area == 'n' and not yes", **sure).value == 0
        assert frame.dprisk.count(where="smoker + age > 5 and yes", **sure).value == 12
        assert frame.dprisk.mean("pay", **sure).value == pytest.approx(frame["pay"].astype(float).mean(), abs=0.01)
        assert frame.dprisk.count(by="area", **sure)["value"].tolist() == [15, 15]
        text = "SELECT AVG(pay) AS m, COUNT(*) FILTER (WHERE yes AND area = 'n') AS n FROM t"
        found = pdrisk.sql(text, eps=10**6, bounds={"pay": (0, 9)}, ledger=ledger, t=frame)
        assert found["n"].tolist() == [15]
        with pytest.raises(pdrisk.ParameterError, match=r"'thing' is of Python objects.*\(keys={'thing': \[...\]}\)"):
            frame.dprisk.count(where="thing == 'n'", **sure)
        with pytest.raises(pdrisk.ParameterError, match="'cents' is of Python objects"):
            pdrisk.sql("SELECT AVG(cents) FROM t", eps=1, bounds={"cents": (0, 9)}, ledger=ledger, t=frame)
        assert frame.dprisk.count(where="thing == 'n'", eps=10**6).value == 15  # without a ledger, as pandas infers
        for data, text, words in (
            (pdrisk.Dataset(frame, ledger=ledger), "thing > 'm'", True),
            (pdrisk.Dataset(frame), "thing > 3", False),
        ):
            for ask in (data.query, lambda each, data=data: data.assign(c=each)):
                with pytest.raises(pdrisk.ParameterError, match="`>`") as said:
                    ask(text)
                assert ("under a ledger" in str(said.value)) == words

    def test_the_type_in_a_schema_says_what_it_holds(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="p", eps=10**9)
        schema = pa.DataFrameSchema({"thing": pa.Column(str), "on": pa.Column("boolean"), "age": pa.Column(int)})
        for frame in (people().dprisk.declare(schema), people().dprisk.declare(schema).copy().query("age >= 0")):
            assert frame.dprisk.count(where="thing == 'n' and on", eps=10**6, ledger=ledger).value == 5
            assert frame.dprisk.declared.empty
            with pytest.raises(pdrisk.ParameterError, match="holds text"):
                frame.dprisk.mean("thing", eps=1, ledger=ledger)
            text = "SELECT COUNT(*) AS n FROM t WHERE thing = 'n' AND on_"
            renamed = frame.rename(columns={"on": "on_"})
            with pytest.raises(pdrisk.ParameterError):
                pdrisk.sql(text, eps=1, ledger=ledger, t=renamed)
            assert pdrisk.sql(text.replace("on_", '"on"'), eps=10**6, ledger=ledger, t=frame)["n"].tolist() == [5]

    def test_a_truth_value_of_objects_is_one(self):
        """Also without a ledger: the same answers as of bool, and what is missing is neither true nor false."""
        frame = pd.DataFrame({"a": [True, False, None], "b": [1, 2, 3]})
        expected = {"a": 1, "not a": 1, "a + b > 1": 2, "a and b < 3": 1, "not (a == True)": 1, "a.isna()": 1}
        for where, n in expected.items():
            assert frame.dprisk.count(where=where, eps=10**6).value == n, where
        data = pdrisk.Dataset(frame).assign(c="a + b", d="not a")
        assert data.sum("c", bounds=(0, 9), eps=10**6).value == pytest.approx(4, abs=0.01)
        assert data.count(where="d", eps=10**6).value == 1
