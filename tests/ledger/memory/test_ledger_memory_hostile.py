"""Whoever wants to learn from memory itself: an old answer to a new question, or whom the data hold.

The frame that a Dataset holds is its own, but a function in ``where=`` gets it and may change it.
"""

import contextlib
import decimal
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import SURE, asked, events, of, people, tables, values
from pdrisk import Dataset

pytestmark = [
    pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]

NAN = float("nan")


def count(frame, ledger, column=None, eps=1, **options):
    """By a mechanism that hardly draws one number twice."""
    return of(frame).count(column, eps=eps, ledger=ledger, mechanism="laplace", **options)


def objects(*listed):
    return pd.Series(listed, dtype=object)


class Alike:
    """Shows nothing of what it is."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return "alike"


def categories(*listed, **said):
    return pd.Series(pd.Categorical(list(listed), **said))


def categories_of(*listed):
    """Categories that are objects of several kinds, as they are."""
    return pd.Series(pd.Categorical.from_codes([0, 1], pd.Index(listed, dtype=object)))


PAIRS = {
    "the sign of zero": ([0.0, 1.0], [-0.0, 1.0]),
    "another number": ([1, 2], [1, 3]),
    "the order": ([1, 2], [2, 1]),
    "floats": ([1, 2], [1.0, 2.0]),
    "smaller integers": (np.array([1, 2]), np.array([1, 2], np.int8)),
    "without signs": (np.array([1, 2]), np.array([1, 2], np.uint64)),
    "truth": ([1, 0], [True, False]),
    "truth of a size": (np.array([1, 0], np.uint8), [True, False]),
    "missing": ([1.0, 2.0], [1.0, NAN]),
    "an object": ([1, 2], objects(1, 2)),
    "1 and True": (objects(1, "b"), objects(True, "b")),
    "1 and its text": (objects(1, "b"), objects("1", "b")),
    "1 and 1.0": (objects(1, "b"), objects(1.0, "b")),
    "1 and a small 1": (objects(1, "b"), objects(np.int8(1), "b")),
    "text and bytes": (objects("a", 1), objects(b"a", 1)),
    "None and NaN": (objects(None, "b"), objects(NAN, "b")),
    "None and NA": (objects(None, "b"), objects(pd.NA, "b")),
    "NaN and NaT": (objects(NAN, "b"), objects(pd.NaT, "b")),
    "None and its text": (objects(None, "b"), objects("None", "b")),
    "decimals": (objects(decimal.Decimal("1"), 2), objects(decimal.Decimal("1.0"), 2)),
    "lists": (objects([1], 2), objects([2], 2)),
    "what looks alike": (objects(Alike(1), 2), objects(Alike(2), 2)),
    "missing text": (pd.Series([None, "b"], dtype="string"), pd.Series(["nan", "b"], dtype="string")),
    "missing text, NA": (pd.Series([None, "b"], dtype="string"), pd.Series(["<NA>", "b"], dtype="string")),
    "empty text": (pd.Series(["", "b"], dtype="string"), pd.Series([None, "b"], dtype="string")),
    "text as objects": (pd.Series(["a", "b"], dtype="string"), objects("a", "b")),
    "spaces": (pd.Series(["a", "b"], dtype="string"), pd.Series(["a ", "b"], dtype="string")),
    "borders of texts": (objects("ab", "c"), objects("a", "bc")),
    "NA and 0": (pd.array([None, 2], dtype="Int64"), pd.array([0, 2], dtype="Int64")),
    "NA and 1": (pd.array([None, 2], dtype="Int64"), pd.array([1, 2], dtype="Int64")),
    "NA and False": (pd.array([None, True], dtype="boolean"), pd.array([False, True], dtype="boolean")),
    "NA of floats": (pd.array([None, 2.0], dtype="Float64"), pd.array([0.0, 2.0], dtype="Float64")),
    "the sign of a nullable zero": (pd.array([0.0, 2.0], dtype="Float64"), pd.array([-0.0, 2.0], dtype="Float64")),
    "Float64 and Int64": (pd.array([1.0, 2.0], dtype="Float64"), pd.array([1, 2], dtype="Int64")),
    "categories": (categories("a", "b"), categories("b", "a")),
    "categories, 1 and its text": (categories_of(1, "b"), categories_of("1", "b")),
    "categories, 1 and True": (categories_of(1, "b"), categories_of(True, "b")),
    "categories, text and bytes": (categories_of("a", "b"), categories_of(b"a", b"b")),
    "categories, floats": (categories(1, 2), categories(1.0, 2.0)),
    "categories, missing": (categories("a", None), categories("a", "b")),
    "the order of categories": (
        categories("a", "b", categories=["a", "b", "c"], ordered=True),
        categories("a", "b", categories=["c", "b", "a"], ordered=True),
    ),
    "ordered": (categories("a", "b", ordered=True), categories("a", "b", ordered=False)),
    "units of time": (
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).astype("datetime64[s]"),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).astype("datetime64[ns]"),
    ),
    "time zones": (
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.tz_localize("UTC"),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
    ),
    "no time": (pd.Series(pd.to_datetime(["2020-01-01", None])), pd.Series(pd.to_datetime(["2020-01-01"] * 2))),
    "sparse": (pd.arrays.SparseArray([0.0, 1.0]), pd.arrays.SparseArray([0.0, 2.0])),
    "periods": (pd.period_range("2020", periods=2, freq="Y"), pd.period_range("2020-01", periods=2, freq="M")),
    "intervals": (pd.interval_range(0, 2, closed="left"), pd.interval_range(0, 2, closed="right")),
    "complex": (np.array([1 + 1j, 2]), np.array([1 - 1j, 2])),
}  # fmt: skip

IN_PLACE = {
    "a cell": lambda df: df.loc.__setitem__((0, "age"), 77),
    "a cell by position": lambda df: df.iloc.__setitem__((0, df.columns.get_loc("age")), 77),
    "a cell by at": lambda df: df.at.__setitem__((5, "age"), 77),
    "the last cell": lambda df: df.iat.__setitem__((len(df) - 1, df.columns.get_loc("age")), 77),
    "two people changed": lambda df: df.loc.__setitem__(([0, 1], "age"), df.loc[[1, 0], "age"].to_numpy()),
    "columns change their names": lambda df: setattr(df, "columns", ["age", "pid", "hours", "sex", "region", "box"]),
    "a column of that name anew": lambda df: (df.pop("age"), df.insert(0, "age", 1)),
    "updated": lambda df: df.update(pd.DataFrame({"age": [77.0]})),
    "a list inside": lambda df: df.loc[0, "box"].append(1),
    "one person less": lambda df: df.drop(index=3, inplace=True),
    "one person more": lambda df: df.loc.__setitem__(len(df), df.loc[0]),
    "other order": lambda df: df.sort_values("age", ascending=False, inplace=True, ignore_index=True),
    "codes are missing": lambda df: df.attrs.update(df.dprisk.declare(missing={"age": [20]}).attrs),
}
NOTHING = {
    "nothing": lambda df: None,
    "another column": lambda df: df.__setitem__("hours", 0),
    "a cell of another column": lambda df: df.loc.__setitem__((0, "region"), "west"),
    "a new column": lambda df: df.__setitem__("new", 1),
    "a column less": lambda df: df.pop("sex"),
    "the order of columns": lambda df: (df.insert(0, "first", df.pop("sex")), df.insert(3, "sex", df.pop("first"))),
    "attributes": lambda df: df.attrs.update(title="survey"),
    "the same values": lambda df: df.__setitem__("age", df["age"].copy()),
    "and back": lambda df: (df.__setitem__("age", df["age"] + 1), df.__setitem__("age", df["age"] - 1)),
    "declared for another": lambda df: df.attrs.update(df.dprisk.declare(missing={"hours": [1]}).attrs),
}


KINDS = {
    "nullable integers": pd.array([1, None, 3], dtype="Int64"),
    "nullable floats": pd.array([1.5, None, 3], dtype="Float64"),
    "nullable truth": pd.array([True, None, False], dtype="boolean"),
    "nullable text": pd.array(["a", None, "b"], dtype="string"),
    "objects": objects("a", 1, [2]),
    "categories": pd.Categorical(["a", None, "b"]),
    "times": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])),
    "time zones": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])).dt.tz_localize("UTC"),
    "periods": pd.period_range("2020", periods=3, freq="Y"),
    "intervals": pd.interval_range(0, 3),
    "sparse": pd.arrays.SparseArray([0.0, 1.0, NAN]),
}
ARROW = ["int64[pyarrow]", "double[pyarrow]", "string[pyarrow]", "timestamp[ns][pyarrow]"]


def looked_at(frame):
    """What everybody does with a frame, and what may leave traces in it."""
    column = frame["x"]
    for way in (repr, len, pd.Series.isna, pd.Series.unique, pd.Series.nunique, pd.Series.to_numpy, pd.Series.describe):
        with contextlib.suppress(TypeError):  # lists have no hash
            way(column)
    pickle.dumps(frame), frame.copy(), frame.memory_usage(deep=True), column.astype(object), column == column.iloc[0]


class TestOldAnswers:
    """Data that are not what they were get no old answer, however they were changed; other columns do not matter."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("swapped", [False, True])
    @pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
    def test_values(self, book, pair, swapped):
        before, after = reversed(pair) if swapped else pair
        ledger = book()
        d = Dataset(pd.DataFrame({"x": before}), ledger=ledger)
        frame, ask = d._frame, partial(count, d, column="x")
        assert asked(ledger, ask)[1] == 1
        frame["x"] = after
        assert asked(ledger, ask)[1] == 1

    @pytest.mark.parametrize("kind", [*KINDS, *ARROW])
    def test_looking_is_no_change(self, book, kind):
        if kind in ARROW:
            pytest.importorskip("pyarrow")
        listed = {"s": ["1", "2"], "t": [pd.Timestamp(1), pd.Timestamp(2)]}.get(kind[0], [1, 2])
        frame = pd.DataFrame({"x": KINDS[kind] if kind in KINDS else pd.array(listed, dtype=kind)})
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        frame, ask = d._frame, partial(count, d, column="x")
        first, _ = asked(ledger, ask)
        for _ in range(2):
            looked_at(frame)
            assert asked(ledger, ask) == (first, 0)
        assert "changed" not in events(ledger)

    @pytest.mark.parametrize("kind", ARROW)
    def test_values_of_arrow(self, book, kind):
        pytest.importorskip("pyarrow")
        listed = {"s": ["1", "2"], "t": [pd.Timestamp(1), pd.Timestamp(2)]}.get(kind[0], [1, 2])
        frame = pd.DataFrame({"x": pd.array(listed, dtype=kind)})
        for state in ([listed[0], None], listed[::-1]):
            ledger = book()
            d = Dataset(frame, ledger=ledger)
            frame, ask = d._frame, partial(count, d, column="x")
            assert [asked(ledger, ask)[1] for _ in range(2)] == [1, 0]
            frame["x"] = pd.array(state, dtype=kind)
            assert asked(ledger, ask)[1] == 1

    @pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE.keys())
    def test_in_place(self, book, change):
        frame = people()
        frame["box"] = [[] for _ in range(len(frame))]
        column = "box" if change is IN_PLACE["a list inside"] else "age"
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        ask = partial(count, d, column=column)
        first, _ = asked(ledger, ask)
        change(d._frame)
        second, cost = asked(ledger, ask)
        assert cost == 1 and second != first

    def test_behind_its_back(self, book):
        """Written into the memory of the values, which pandas does not see."""
        frame, ledger = people().astype({"age": "float64"}), book()
        ask = partial(count, Dataset(frame, ledger=ledger), column="age")
        asked(ledger, ask)
        held = frame["age"].to_numpy()
        held.flags.writeable = True
        held[0] = NAN
        assert frame["age"].isna().sum() == 1 and asked(ledger, ask)[1] == 1

    @pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING.keys())
    def test_what_does_not_matter(self, book, change):
        ledger = book()
        d = Dataset(people(), ledger=ledger)
        asks = [partial(count, d, column="age"), partial(count, d, where="age > 30")]
        before = [asked(ledger, ask)[0] for ask in asks]
        change(d._frame)
        assert [asked(ledger, ask) for ask in asks] == [(answer, 0) for answer in before]

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("columns", [["a", "A", "A_1"], ["A_1", "a", "A"], ["a", "A_1", "A"]], ids=str)
    def test_names_that_sql_cannot_tell_apart(self, book, columns):
        d = Dataset(pd.DataFrame([[1] * 3] * 8, columns=columns), ledger=book())
        frame = d._frame
        for text in ('SELECT COUNT(*) FROM t WHERE "A_1" > 0', "SELECT COUNT(*) FROM t WHERE a > 0"):
            for column in columns:
                frame[column] = 1
            own = text.replace("FROM t", "FROM data")
            d.sql(own, eps=SURE)
            for column in columns:
                frame[column] = 0
                now = values(d.sql(own, eps=SURE))
                assert now == pytest.approx(values(pdrisk.sql(text, eps=SURE, t=frame)), abs=0.01)
                frame[column] = 1

    @pytest.mark.parametrize("op", ["x == 1", "x == '1'", "x == True", "x == 1.0", "x != 'b'"])
    @pytest.mark.parametrize("now", ["1", True, 1.0, b"1", "b"], ids=repr)
    def test_filters_of_mixed_categories(self, book, op, now):
        d = Dataset(pd.DataFrame({"x": categories_of(1, "c").repeat(9).reset_index(drop=True)}), ledger=book())
        frame = d._frame
        d.count(eps=SURE, where=op)
        frame["x"] = frame["x"].cat.rename_categories(pd.Index([now, "c"], dtype=object))
        found = values(d.count(eps=SURE, where=op))
        assert found == pytest.approx(values(count(frame, None, eps=SURE, where=op)), abs=0.01)


def sold(d, person):
    """What somebody tries, to see whether a person is there, or has a value, for the price of nothing."""
    frame = d._frame
    there = frame["pid"] != person
    return {
        "a selection": lambda led: count(frame[there], led),
        "a query": lambda led: count(frame.query(f"pid != {person}"), led),
        "a query of the Dataset": lambda led: count(d.query(f"pid != {person}"), led, where=there),
        "a mask": lambda led: count(d, led, where=there),
        "a function": lambda led: count(d, led, where=lambda df: df["pid"] != person),
        "a copy that was changed": lambda led: count(frame.assign(age=frame["age"].where(there)), led, "age"),
        "a column": lambda led: frame["age"][there].dprisk.count(eps=1, ledger=led),
        "dropped in place": lambda led: (frame.drop(index=frame.index[~there], inplace=True), count(d, led)),
        "asked in place": lambda led: (frame.query(f"pid != {person}", inplace=True), count(d, led)),
        "in sql": lambda led: pdrisk.sql("SELECT COUNT(*) FROM t", eps=1, ledger=led, t=frame[there]),
        "without duplicates": lambda led: (frame.drop_duplicates("pid", inplace=True), count(d, led)),
    }


class TestWhoIsThere:
    """What is remembered and what is not tells nobody whether a person is in the data."""

    @pytest.mark.whole
    @pytest.mark.parametrize("way", sold(Dataset(people()), 0).keys())
    def test_one_person(self, book, way):
        """The costs and records are the same, whether the person is there or not."""
        seen = []
        for dataset, person in (("without", 9999), ("with", 107)):
            ledger = book(dataset=dataset)
            d = Dataset(people(), ledger=ledger)
            d.count(eps=1)
            d.count("age", eps=1)
            for _ in range(2):
                sold(d, person)[way](ledger)
            seen.append((ledger.remaining().spent, events(ledger)))
        assert seen[0] == seen[1] and seen[0][0] == 4

    def test_what_the_file_holds(self, book, path, monkeypatch):
        """The same data look like others under another secret: nobody can try out tables."""
        frame, kept = people(), []
        for key in ("one", "two", "two", "one"):
            monkeypatch.setenv("PDRISK_SECRET", key)
            kept.append(asked(book(), lambda led: Dataset(frame, ledger=led).count("age", eps=1))[1])
        assert kept == [1, 1, 0, 1]
        states = tables(path, "SELECT body FROM records WHERE event = 'data'")
        assert len(states) == 3 and states[0] == states[2] != states[1]

    def test_no_answer_in_the_history(self, book, path, tmp_path):
        ledger = book(policy={"curator_facts": True})
        d = Dataset(people(), ledger=ledger, person="pid", per_person="one")
        (answer,) = values(count(d, ledger))
        written = ledger.export(tmp_path / "history.csv").read_text() + ledger.history().to_string() + repr(ledger)
        assert not {str(answer), f"{answer:.4f}", "local_sensitivity", "losses"} & set(
            written.replace('"', " ").split()
        )
        assert str(answer) not in str(tables(path, "SELECT body FROM records"))
