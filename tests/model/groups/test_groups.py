"""``by`` and ``keys``: what the rows of an answer are, in which order, and which records each holds."""

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import day_keys
import pdrisk
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e6
RISKS = ("worst_case", "two_worlds", "many_worlds", "identifiability")
BOUNDS = (0, 10)


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [1.0, 2, 3, 4, 5, 6, np.nan],
            "region": ["north", "south", "north", None, "west", "south", "north"],
            "sex": ["f", "f", "m", "m", "f", "m", "f"],
            "age": [30, 41, 52, 63, 40, 20, 70],
        }
    )


def grouped(frame, by, keys, statistic="mean", **options) -> pd.DataFrame:
    options = {"eps": EXACT, "bounds": BOUNDS, "curator": True, "mechanism": "laplace"} | options
    return getattr(frame.dprisk, statistic)("x", by=by, keys=keys, **options)


def arrow(values, kind) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, kind)))


class TestOrderAndIndex:
    """Rows stand in the order of the keys; the index has the name and the dtype of the column."""

    def test_order_of_the_keys(self):
        table = grouped(people(), "region", ["south", "nowhere", "north"])
        assert table.index.tolist() == ["south", "nowhere", "north"]
        assert (table.index.name, table.index.dtype) == ("region", people()["region"].dtype)
        assert table["value"].round(1).tolist() == [4, 5, 2]
        assert table["n"].tolist() == [2, 0, 2]

    def test_columns_of_the_answer(self):
        table = grouped(people(), "region", ["north"])
        assert table.columns.tolist() == [
            *("value", "low", "high", "eps", "worst_case"),
            *("n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"),
        ]
        (line,) = Answer.from_attrs(table.attrs).lines
        assert (table["eps"].iloc[0], line.global_sensitivity) == (EXACT, 5)
        assert grouped(people(), "region", ["north"], curator=False).columns.tolist() == table.columns.tolist()[:5]
        assert table["n"].dtype == np.int64

    @pytest.mark.parametrize(
        "keys", [np.array(["west"]), pd.Index(["west"]), pd.Series(["west"]), ("west",), iter(["west"])]
    )
    def test_keys_may_be_any_list(self, keys):
        assert grouped(people(), ["region"], keys).index.tolist() == ["west"]

    @pytest.mark.parametrize("keys", [{"sex": ["m", "f"], "region": ["west", "south"]}, None])
    def test_several_columns(self, keys):
        product = [("west", "m"), ("west", "f"), ("south", "m"), ("south", "f")]
        table = grouped(people(), ["region", "sex"], keys or product)
        assert table.index.equals(pd.MultiIndex.from_tuples(product, names=["region", "sex"]))
        assert table["n"].tolist() == [0, 1, 1, 1]
        assert table["value"].round(1).tolist() == [5, 5, 6, 2]

    @pytest.mark.parametrize("by", [["region", "sex"], ["sex", "region"], "region", "sex", None])
    def test_a_dict_may_list_columns_that_are_no_groups(self, by):
        """It declares keys of columns; those that are missing in it may be declared by the frame."""
        keys = {"sex": ["m", "f"], "x": [1.0], "region": ["west", "south"]}
        columns = [] if by is None else [by] if isinstance(by, str) else by
        expected = people().dprisk.count(eps=EXACT, by=by, keys={each: keys[each] for each in columns} or None)
        declared = people().dprisk.declare(keys={"region": ["west", "south"]})
        for frame, said in ((people(), keys), (declared, {"sex": ["m", "f"], "x": [1.0]})):
            found = frame.dprisk.count(eps=EXACT, by=by, keys=said)
            if by is None:
                assert found.value == expected.value
            else:
                pd.testing.assert_frame_equal(found, expected)

    def test_bounds_of_other_columns_are_a_declaration_too(self):
        frame, bounds = people(), {"x": BOUNDS, "age": (0, 100)}
        assert frame.dprisk.proportion("age > 40", eps=EXACT, bounds=bounds).value == pytest.approx(4 / 7, abs=1e-3)
        assert frame.dprisk.value_counts("sex", keys=["f"], eps=EXACT, bounds=bounds)["value"].tolist() == [4]
        with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'age'"):
            frame.dprisk.proportion("age > 40", eps=1, bounds={"agee": (0, 100)})
        with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'age'"):
            frame.dprisk.value_counts("sex", keys=["f"], eps=1, bounds={"agee": (0, 100)})

    def test_three_columns_against_brute_force(self):
        draw = np.random.default_rng(7)
        columns = ["a", "b", "c"]
        frame = pd.DataFrame({name: draw.integers(0, 4, 300) for name in columns}).assign(x=draw.uniform(0, 10, 300))
        keys = [(a, b, c) for a in (3, 0, 9) for b in (2, 1) for c in (0, 3, 1)]
        table = grouped(frame, columns, keys, "median")
        for key, row in table.iterrows():
            chosen = frame.loc[(frame[columns] == list(key)).all(axis=1), "x"]
            assert row["n"] == len(chosen)
            assert row["value"] == pytest.approx(chosen.median() if len(chosen) else 5, abs=1e-3)

    def test_more_combinations_than_integers(self):
        # 256**9 places: in 64 bits the first column must not be shifted out.
        columns = [f"c{i}" for i in range(9)]
        frame = pd.DataFrame({name: np.arange(255) for name in columns}).assign(x=1.0)
        frame.loc[0, "c0"] = 254
        table = grouped(frame, columns, [(level,) * 9 for level in range(255)])
        assert table["n"].tolist() == [0] + [1] * 254

    def test_the_column_itself_and_odd_names(self):
        frame = people().assign(count=[1, 1, 2, 2, 1, 1, 2], index=[1] * 7)
        assert grouped(frame, "x", [2, 1])["value"].round(1).tolist() == [2, 1]
        assert grouped(frame, "count", [2])["n"].tolist() == [2]
        assert grouped(frame.set_axis([5] * 7), "index", [1])["n"].tolist() == [6]


KINDS = {  # column of the group, keys of two of its groups, rows of these, dtype of the index where it is another
    "int8": (pd.Series([1, 2, 2], dtype="int8"), [2, 5], [2, 0], None),
    "uint64": (pd.Series([2**64 - 1, 2, 2], dtype="uint64"), [2, 2**64 - 1], [2, 1], None),
    "int64 beyond floats": (pd.Series([2**60, 2**60 + 1, 2**60 + 1]), [2**60 + 1, 2**60], [2, 1], None),
    "beside a fraction": (pd.Series([2**60, 2**60 + 1, 2**60 + 1]), [2**60 + 1, 0.5], [2, 0], ...),
    "fractions of integers": (pd.Series([0, 1, 1]), [0.5, 1, 1.5], [0, 2, 0], ...),
    "a float key of integers": (pd.Series([2**53, 2**53 + 1, 2**53 + 1]), [float(2**53)], [1], ...),
    "a key beyond the column": (pd.Series([1, 2, 2]), [2, 2**70], [2, 0], ...),
    "float codes": (pd.Series([1.0, 2.5, 2.5]), [2.5, 1], [2, 1], None),
    "float16": (pd.Series([1.0, 2.5, 2.5], dtype="float16"), [2.5, 1], [2, 1], ...),
    "float32": (pd.Series([0.5, 2.5, 2.5], dtype="float32"), [2.5, np.float32(0.5)], [2, 1], None),
    "float32 decimals": (pd.Series([0.1, 0.5, 0.5], dtype="float32"), [0.5, 0.1], [2, 1], ...),
    "infinite": (pd.Series([np.inf, -np.inf, -np.inf]), [-np.inf, np.inf], [2, 1], None),
    "Int64": (pd.Series([1, 2, None], dtype="Int64"), [None, 2], [1, 1], None),
    "int64[pyarrow]": (arrow([1, 2, None], "int64"), [2, pd.NA], [1, 1], None),
    "double[pyarrow] with NaN": (arrow([1, float("nan"), None], "double"), [None, 1.0], [2, 1], None),
    "bool": (pd.Series([True, False, False]), [False, True], [2, 1], None),
    "boolean": (pd.Series([True, None, False], dtype="boolean"), [np.True_, None], [1, 1], None),
    "bool[pyarrow]": (arrow([True, None, False], "bool"), [False, None], [1, 1], None),
    "bool objects": (pd.Series([True, None, False], dtype=object), [False, None], [1, 1], None),
    "object texts": (pd.Series(["a", None, "b"], dtype=object), ["b", None], [1, 1], None),
    "string": (pd.Series(["a", None, "b"], dtype="string"), ["b", np.nan], [1, 1], None),
    "string[pyarrow]": (arrow(["a", None, "b"], "string"), ["b", None], [1, 1], None),
    "Decimal": (pd.Series([Decimal("0.5"), Decimal(1), None]), [Decimal(1), 0.5], [1, 1], None),
    "dates": (pd.Series(pd.to_datetime(["2020", "2021", None])), [pd.Timestamp("2021"), pd.NaT], [1, 1], None),
    "dates in seconds": (
        pd.Series(pd.to_datetime(["2020", "2021", None]).astype("datetime64[s]")),
        [np.datetime64("2021"), datetime.datetime(2020, 1, 1)],
        [1, 1],
        None,
    ),
    "zoned dates": (
        pd.Series(pd.to_datetime(["2020", "2021", None], utc=True)),
        [pd.Timestamp("2021", tz="UTC"), pd.Timestamp("2020-01-01 01:00", tz="Europe/Berlin")],
        [1, 1],
        ...,
    ),
    "timestamp[pyarrow]": (
        arrow([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1), None], pa.timestamp("us")),
        [pd.Timestamp("2021"), pd.Timestamp("2020")],
        [1, 1],
        None,
    ),
    "date32[pyarrow]": (
        arrow([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None], pa.date32()),
        [datetime.date(2021, 1, 1), datetime.date(2020, 1, 1)],
        [1, 1],
        ...,
    ),
    "date objects": (
        pd.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None]),
        [datetime.date(2021, 1, 1), None],
        [1, 1],
        None,
    ),
    "timedelta": (pd.Series(pd.to_timedelta([1, 2, None], unit="D")), [datetime.timedelta(2), None], [1, 1], None),
    "period": (pd.Series(pd.PeriodIndex(["2020", "2021", "2021"], freq="Y")), [pd.Period("2021", freq="Y")], [2], None),
    "intervals": (pd.Series(pd.cut([1, 4, 5], [0, 3, 6])), [pd.Interval(3, 6), pd.Interval(0, 3)], [2, 1], ...),
    "categories": (pd.Series(["a", "b", None], dtype="category"), ["b", "zz"], [1, 0], ...),
    "categories of integers": (pd.Series([1, 2, 2], dtype="category"), [2, 1], [2, 1], ...),
    "sparse": (pd.Series(pd.arrays.SparseArray([1, 2, 2])), [2, 1], [2, 1], ...),
}


PLANS = pd.DataFrame({"name": ["basic", "basic", "full"], "plan": [1, 4, 2], "x": [3.0, 4, 5]})
PAIRS = pd.DataFrame({"plan": [2, 1, 9], "name": ["full", "basic", "new"]})


@pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
class TestKeysThatExist:
    """A dict is all combinations, and says so; the rows of a frame, or tuples, are the keys that there are."""

    @pytest.mark.parametrize(
        "keys",
        [PAIRS, PAIRS[["name", "plan"]], PAIRS.astype({"name": "category"}), pl.from_pandas(PAIRS), pa.table(PAIRS)],
        ids=["pandas", "other order", "category", "Polars", "Arrow"],
    )
    @pytest.mark.parametrize("made", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
    def test_a_frame_is_its_rows(self, made, keys):
        tuples = list(PAIRS.itertuples(index=False, name=None))
        d = pdrisk.Dataset(made(PLANS))
        found = d.count(by=["plan", "name"], keys=keys, eps=EXACT)
        pd.testing.assert_frame_equal(found, d.count(by=["plan", "name"], keys=tuples, eps=EXACT))
        assert found["value"].tolist() == [1, 1, 0]
        answer = pdrisk.sql(
            "SELECT name AS n, plan, COUNT(*) AS c FROM t GROUP BY name, plan", eps=EXACT, keys=keys, t=made(PLANS)
        )
        assert answer.to_numpy().tolist() == [["full", 2, 1], ["basic", 1, 1], ["new", 9, 0]]
        least = "SELECT name, plan, COUNT(*) AS c FROM t GROUP BY ALL ORDER BY c LIMIT 1"
        assert pdrisk.sql(least, eps=EXACT, keys=keys, t=made(PLANS)).to_numpy().tolist() == [["new", 9, 0]]
        rollup = "SELECT name, plan, COUNT(*) AS c FROM t GROUP BY ROLLUP (name, plan)"
        assert pdrisk.sql(rollup, eps=EXACT, keys=keys, t=made(PLANS))["c"].tolist() == [1, 1, 0, 1, 2, 0, 3]

    def test_of_one_column_with_a_missing_key(self):
        frame = pd.DataFrame({"g": [1, None, None, 3]})
        keys = pd.DataFrame({"g": pd.array([1, None], dtype="Int64")})
        assert frame.dprisk.count(by="g", keys=keys, eps=EXACT)["value"].tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("keys", "why"),
        [
            (PAIRS[["plan"]], "one column for each of .* and no other, .* but this one has 'plan'"),
            (PAIRS.assign(x=1), "one column for each of .* but this one has 'plan', 'name', 'x'"),
            (PAIRS.rename(columns={"plan": 5}), "one column for each of .* but this one has 5, 'name'"),
            (pd.DataFrame(), "one column for each of .* but this one has no column"),
            (PAIRS.head(0), "at least one group"),
            (pd.concat([PAIRS, PAIRS]), "listed twice"),
            (PAIRS.set_axis(["plan", "plan"], axis=1), "two columns of one name"),
            (PAIRS.assign(plan="1"), "is text, but the .* holds numbers"),
            (PAIRS.assign(plan=[[1], [2], [3]]), "must be a single value"),
            (pd.DataFrame({"plan": range(10_000_001), "name": "a"}), "10,000,000 at most, but are 10,000,001"),
        ],
    )
    @pytest.mark.whole
    def test_frames_that_are_no_keys(self, keys, why):
        error = pdrisk.ParameterError | pdrisk.ColumnTypeError
        with pytest.raises(error.__args__, match=why):
            PLANS.dprisk.count(by=["plan", "name"], keys=keys, eps=1)
        for groups in ("name, plan", "ROLLUP (name, plan)"):
            query = f"SELECT name, plan, COUNT(*) AS c FROM t GROUP BY {groups}"
            with pytest.raises(error.__args__, match=why):
                pdrisk.sql(query, eps=1, keys=keys, t=PLANS)

    def test_combinations_are_named(self):
        def said(keys, query="SELECT plan, name, COUNT(*) FROM t GROUP BY plan, name"):
            methods = PLANS.dprisk.declare(keys={"plan": [1, 2], "name": ["a", "b", "c"]}).dprisk
            table = methods.count(by=["plan", "name"], keys=keys, eps=1)
            answer = pdrisk.sql(query, eps=1, t=methods.declare(bounds={"x": (0, 1)}), keys=keys)
            number = Answer.from_attrs(answer.attrs).combinations
            for each in (table, answer):
                for audience in ("analyst", "publication"):
                    text = " ".join(pdrisk.explain(each, audience).split())
                    assert ("all 6 combinations of the keys of plan and name are shown" in text) == (number == 6)
            return number

        everything = {"plan": [1, 2], "name": ["a", "b", "c"]}
        assert said(everything) == said(None) == 6
        assert said([(1, "a"), (2, "b")]) == said(PAIRS) == said([(1, "a")]) == 0
        assert said(everything, "SELECT plan, name, COUNT(*) FROM t GROUP BY ROLLUP (plan, name)") == 6


class TestKindsOfKeys:
    """Any column can group that has keys of one kind; a missing key is a group only if it is listed."""

    @pytest.mark.whole
    @pytest.mark.parametrize(("column", "keys", "rows", "dtype"), KINDS.values(), ids=KINDS.keys())
    def test_finds_its_rows(self, column, keys, rows, dtype):
        frame = pd.DataFrame({"x": [1.0, 2, 3], "g": column})
        table = grouped(frame, "g", keys)
        assert table["n"].tolist() == rows
        if dtype is None:
            assert table.index.dtype == column.dtype
        for found, key in zip(table.index, keys, strict=True):
            assert pd.isna(found) if pd.isna(key) else found == key
        two = grouped(frame.assign(one=1), ["g", "one"], [(key, 1) for key in keys])
        assert two["n"].tolist() == rows

    @pytest.mark.parametrize(("column", "keys", "rows", "dtype"), KINDS.values(), ids=KINDS.keys())
    def test_observed_keys_are_all_that_occur(self, column, keys, rows, dtype):
        """As ``groupby(dropna=False)``: sorted, then a missing key, whichever kind of missing it is."""
        frame = pd.DataFrame({"x": [1.0, 2, 3], "g": column})
        present = [value for value in column.tolist() if not pd.isna(value)]
        missing = len(column) - len(present)
        expected = [*sorted(set(present)), *[None] * (missing > 0)]
        sizes = [*(present.count(key) for key in sorted(set(present))), *[missing] * (missing > 0)]
        table = grouped(frame, "g", "observed")
        assert table["n"].tolist() == sizes
        assert [None if pd.isna(key) else key for key in table.index] == expected
        assert table.index.dtype == column.dtype or dtype is not None or column.dtype == "category"
        two = grouped(frame.assign(one=1), ["one", "g"], "observed")
        assert two["n"].tolist() == sizes
        assert [None if pd.isna(key) else key for _, key in two.index] == expected

    def test_shares_of_observed_keys_are_those_of_everybody(self):
        """The NULL group is a group: without it shares are wrong."""
        for by in ("region", ["region", "sex"]):
            assert people().dprisk.count(eps=1, by=by, keys="observed", curator=True)["n"].sum() == len(people())

    @pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
    @pytest.mark.parametrize(
        "options", [{"rows": 2, "groups": 1}, {"rows": 1, "groups": 2}, {"per_person": "mean", "groups": 1}]
    )
    @pytest.mark.parametrize(
        "made", [lambda frame: frame, pl.from_pandas, lambda frame: duckdb.from_arrow(pa.table(frame))]
    )
    def test_observed_keys_of_people_are_as_if_all_were_listed(self, made, options):
        """The missing key is one of the groups among which a person's are chosen."""
        draw = np.random.default_rng(2)
        frame = pd.DataFrame({"g": draw.choice(["a", "b", None], 200), "pid": draw.integers(0, 60, 200), "x": 1.0})
        d = pdrisk.Dataset(made(frame), person="pid", bounds={"x": (0, 1)})
        listed, observed = (
            d.sum("x", by="g", keys=keys, eps=EXACT, **options) for keys in (["a", "b", None], "observed")
        )
        pd.testing.assert_index_equal(listed.index, observed.index)
        np.testing.assert_allclose(listed["value"], observed["value"], atol=1e-2)
        assert listed["value"].sum() > 50

    def test_missing_keys_that_are_left_out_are_named(self):
        """By public facts alone: the keys, whatever the data hold."""
        for frame in (people(), people().dropna(), people().head(0)):

            def left_out(by, keys, frame=frame, **options):
                options = {"eps": 1, "keys": keys} | options
                return Answer.from_attrs(frame.dprisk.count(by=by, **options).attrs).without_missing

            assert left_out("region", ["north"]) == ("region",)
            assert left_out("region", ["north", None]) == left_out("region", "observed") == ()
            assert left_out("region", "private", delta=1e-6) == ("region",)
            assert left_out(["region", "sex"], {"region": ["north", None], "sex": ["f"]}) == ("sex",)
            assert left_out(["region", "sex"], [("north", "f"), (None, None)]) == ()
            table = frame.dprisk.count(by=["region", "sex"], keys=[("north", "f")], eps=1)
            for audience in ("analyst", "publication"):
                said = " ".join(pdrisk.explain(table, audience).split())
                assert "records whose region or sex is missing are left out of groups by it" in said

    def test_missing_keys(self):
        assert grouped(people(), "region", ["north", "south"])["n"].sum() == 4
        for missing in (None, np.nan, pd.NA):
            table = grouped(people(), "region", ["west", missing])
            assert table["value"].round(1).tolist() == [5, 4]
            assert pd.isna(table.index[1])
        pair = grouped(people(), ["region", "sex"], [(None, "m"), ("west", "f")])
        assert pair["n"].tolist() == [1, 1]

    def test_categories_that_nobody_has_never_appear(self):
        category = pd.Categorical(["b", "a", "b"], categories=["unused", "b", "a"], ordered=True)
        frame = pd.DataFrame({"x": [1.0, 2, 3], "g": category})
        observed = grouped(frame, "g", "observed")
        listed = grouped(frame, "g", ["b", "a"])
        for table in (observed, listed):
            assert "unused" not in table.index
            assert "unused" not in table.index.categories
        assert listed.index.tolist() == ["b", "a"]
        with pytest.raises(pdrisk.ParameterError, match="needs the public list"):
            grouped(frame, "g", None)

    @pytest.mark.parametrize(
        ("column", "keys"),
        [
            ([1, 2], ["1"]), ([1, 2], [True]), ([1, 2], [1, "2"]), ([1.0, 2.0], [False]), (["1", "2"], [1]),
            (["True", "b"], [True]), ([True, False], [1]), ([True, False], [0, 1]), ([True, False], ["True"]),
            (pd.array([1, None], dtype="Int64"), ["1"]), (pd.array(["1", None], dtype="string"), [1]),
            (pd.to_datetime(["2020", "2021"]), [2020]),
            (pd.to_datetime(["2020", "2021"], utc=True), [pd.Timestamp("2020")]),
            (pd.to_datetime(["2020", "2021"]), [pd.Timestamp("2020", tz="UTC")]),
            (pd.Categorical([1, 2]), ["1"]), (pd.Categorical(["1", "2"]), [1]), (["a", "b"], [("a",)]),
        ],
        ids=str,
    )  # fmt: skip
    def test_keys_of_another_kind_are_refused(self, column, keys):
        # Taken as they are, they would all be keys that nobody has, without a word.
        with pytest.raises(pdrisk.ColumnTypeError, match=r"a key of column 'g' is .*but the column holds"):
            grouped(pd.DataFrame({"x": [1.0, 2], "g": column}), "g", keys)


class TestWhereAndGroups:
    """``where`` goes first, then the groups; the keys stay what they are."""

    def test_where_first(self):
        for where in ("age > 40", people()["age"] > 40, lambda frame: frame["age"] > 40):
            table = grouped(people(), "region", ["north", "south", "west"], where=where)
            assert table["n"].tolist() == [1, 1, 0]
            assert table["value"].round(1).tolist() == [3, 2, 5]

    def test_observed_keys_are_taken_before_where(self):
        table = grouped(people(), "region", "observed", where="age > 65")
        assert table.index[:-1].tolist() == ["north", "south", "west"] and pd.isna(table.index[-1])
        assert table["n"].tolist() == [0, 0, 0, 0]
        assert Answer.from_attrs(table.attrs).keys_from == "data"
        pairs = grouped(people(), ["sex", "region"], "observed").index.tolist()
        assert pairs[:-1] == [("f", "north"), ("f", "south"), ("f", "west"), ("m", "north"), ("m", "south")]
        assert pairs[-1][0] == "m" and pd.isna(pairs[-1][1])

    def test_listed_keys_are_not_marked(self):
        assert Answer.from_attrs(grouped(people(), "region", ["north"]).attrs).keys_from == "given"

    def test_observed_keys_of_nothing(self):
        for mechanism in ("laplace", "auto"):
            table = grouped(people().head(0), "region", "observed", mechanism=mechanism)
            assert table.shape == (0, 11)
            assert table.index.name == "region"

    def test_a_key_that_nobody_has_is_answered_like_an_empty_set(self):
        for statistic, answer in {"mean": 5, "median": 5, "min": 10, "max": 0, "sum": 0, "var": 0, "std": 0}.items():
            table = grouped(people(), "region", ["nowhere"], statistic)
            assert table["value"].iloc[0] == pytest.approx(answer, abs=1e-2)
            assert table["n"].tolist() == [0]
            assert table[["many_worlds", "identifiability"]].isna().all(axis=None)

    def test_counting_in_groups(self):
        rows = people().dprisk.count(eps=EXACT, by="region", keys=["north", "west"])
        values = people().dprisk.count("x", eps=EXACT, by="region", keys=["north", "west"])
        assert (rows["value"].tolist(), values["value"].tolist()) == ([3, 1], [2, 1])

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("statistic", ["count", "sum", "mean", "median", "min", "max", "var", "std"])
    @pytest.mark.parametrize("where", [None, "age % 3 != 0"], ids=str)
    def test_equals_one_question_for_each_group(self, statistic, where):
        draw = np.random.default_rng(11)
        frame = pd.DataFrame({"g": draw.integers(0, 30, 2000), "age": draw.integers(0, 99, 2000)})
        frame["x"] = draw.normal(5, 4, 2000)
        frame.loc[draw.integers(0, 2000, 50), "x"] = np.nan
        options = {"eps": EXACT, "bounds": BOUNDS, "mechanism": "laplace"}
        table = grouped(frame, "g", range(35, -1, -1), statistic, where=where)
        chosen = frame if where is None else frame.query(where)
        for key, row in table.iterrows():
            alone = getattr(chosen[chosen["g"] == key].dprisk, statistic)("x", **options)
            assert row["value"] == pytest.approx(alone.value, abs=80 * alone.scale)
            assert row["local_sensitivity"] == pytest.approx(alone.curator.local_sensitivity, rel=1e-9, abs=1e-12)
            assert row["n"] == alone.curator.n
            risks = [row[name] for name in RISKS]
            own = [alone.to_dict(curator=True)[name] for name in RISKS]
            assert risks == pytest.approx(own, rel=1e-6, nan_ok=True)


class TestObservedKeys:
    """One missing or far value does not make the others fail."""

    def test_integer_categories_with_a_missing_row(self):
        frame = pd.DataFrame({"g": pd.Categorical([3, 1, None, 3])})
        assert frame.dprisk.count(eps=1, by="g", keys="observed", curator=True)["n"].tolist() == [1, 2, 1]

    def test_a_date_that_nanoseconds_cannot_hold(self):
        column = pd.array(pa.array([0, 253_402_214_400_000_000], pa.timestamp("us")), dtype="timestamp[us][pyarrow]")
        frame = pd.DataFrame({"g": column})
        assert frame.dprisk.count(eps=1, by="g", keys="observed", curator=True)["n"].tolist() == [1, 1]
        assert frame.dprisk.count(eps=1, by="g", keys=[pd.Timestamp("1970-01-01")], curator=True)["n"].tolist() == [1]


@pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
@pytest.mark.parametrize("held", day_keys.frames())
class TestDays:
    """Keys of dates and timestamps: a ``datetime.date``, a Timestamp and ISO text name the same day."""

    @pytest.mark.whole
    def test_every_spelling(self, held):
        day_keys.check_methods(day_keys.frames()[held])

    def test_time_of_day(self, held):
        data = day_keys.frames()[held]
        if held == "datetime64":  # which holds times, whatever their unit
            data["d"] = day_keys.DAYS
        day_keys.check_time_of_day(data)

    @pytest.mark.whole
    def test_in_sql(self, held):
        data = day_keys.frames()[held]
        if held in ("objects", "categories"):  # which SQL reads as text
            with pytest.raises(pdrisk.ColumnTypeError, match=r"make dates of it, with .* pd\.to_datetime"):
                day_keys.check_sql(None, "d", people=data)
            data = data.assign(d=pd.to_datetime(data["d"]), t=pd.to_datetime(data["t"]))
        con, tables = None, {"people": data}
        if held == "DuckDB":
            con, tables = duckdb.connect(), {}
            con.from_arrow(day_keys.frames()["Arrow"]).create("people")
        for column in ("d", "t", "CAST(t AS DATE)"):
            day_keys.check_sql(con, column, **tables)

    def test_declared(self, held):
        data = day_keys.frames()[held]
        if isinstance(data, pd.DataFrame):
            for keys in day_keys.SPELLINGS.values():
                known = data.dprisk.declare(keys={"d": keys})
                assert known.dprisk.count(eps=EXACT, by="d")["value"].tolist() == day_keys.ROWS


class TestKeysInTheColumnsPrecision:
    @pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]", "float64", "Float64"])
    def test_decimals_find_their_rows(self, dtype):
        frame = pd.DataFrame({"g": pd.Series([0.1, 0.2, 0.2], dtype=dtype)})
        assert frame.dprisk.count(eps=1, by="g", keys=[0.2, 0.1], curator=True)["n"].tolist() == [2, 1]

    def test_keys_that_fall_together_are_refused(self):
        frame = pd.DataFrame({"g": np.float32([0.1])})
        with pytest.raises(pdrisk.ParameterError, match="the same number"):
            frame.dprisk.count(eps=1, by="g", keys=[0.1, 0.1 + 1e-12])

    def test_wider_floats_are_refused(self):
        frame = pd.DataFrame({"g": np.array([0.5], dtype=np.longdouble)})
        if frame["g"].dtype.itemsize > 8:
            with pytest.raises(pdrisk.ColumnTypeError, match="float64"):
                frame.dprisk.count(eps=1, by="g", keys=[0.5])


def test_the_most_keys_are_taken_and_one_more_is_not(monkeypatch):
    """Of one list, and of the combinations of several."""
    monkeypatch.setattr("pdrisk._model.groups.keys.MOST", 8)
    frame = pd.DataFrame({"g": [1, 2], "h": [1, 2]})
    for by, keys in (("g", range(8)), (["g", "h"], {"g": [1, 2], "h": [1, 2, 3, 4]})):
        assert len(frame.dprisk.count(eps=1, by=by, keys=keys)) == 8
    for by, keys in (("g", range(9)), (["g", "h"], {"g": [1, 2, 3], "h": [1, 2, 3]})):
        with pytest.raises(pdrisk.ParameterError, match="keys can be 8 at most, but are 9"):
            frame.dprisk.count(eps=1, by=by, keys=keys)
