"""Frames of Polars and Arrow get the answers that a frame of pandas gets, and read no more than a question needs."""

import datetime as dt
import subprocess
import sys
from functools import partial

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pdrisk
from frames import FRAMES, ROWS, columns, in_pieces, of_arrow, of_pandas, of_polars
from pdrisk import Dataset
from pdrisk._core.foreign import shown
from pdrisk.engines.columnar.table import column_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning"),
]

REGIONS = ["north", "south", "nowhere"]
BOUNDS = {"x": (0, 100), "y": (0, 10), "age": (0, 90), "i": (2**52, 2**54)}
EPS = 0.7
HELD = [name for name in FRAMES if name not in ("LazyFrame", "Arrow dataset")]

ASKS = {
    "count": lambda d: d.count(eps=EPS),
    "count of a column": lambda d: d.count("x", eps=EPS),
    "sum": lambda d: d.sum("x", eps=EPS),
    "sum of whole numbers": lambda d: d.sum("age", eps=EPS, step=1),
    "mean": lambda d: d.mean("x", eps=EPS),
    "mean beyond 2**53": lambda d: d.mean("i", eps=EPS),
    "mean of truth values": lambda d: d.mean("yes", eps=EPS),
    "median": lambda d: d.median("x", eps=EPS),
    "median by Laplace": lambda d: d.median("x", eps=EPS, mechanism="laplace"),
    "quantiles": lambda d: d.quantile("x", [0.1, 0.5, 0.9], eps=EPS, curator=True),
    "min": lambda d: d.min("x", eps=EPS, mechanism="laplace"),
    "max": lambda d: d.max("x", eps=EPS, mechanism="laplace"),
    "var": lambda d: d.var("x", eps=EPS),
    "std": lambda d: d.std("x", eps=EPS, mechanism="laplace"),
    "corr": lambda d: d.corr("x", "y", eps=EPS),
    "slope": lambda d: d.slope(y="y", x="x", eps=EPS),
    "proportion": lambda d: d.proportion("age > 40 or region == 'north'", eps=EPS),
    "proportion of a column": lambda d: d.proportion("yes", eps=EPS),
    "nunique": lambda d: d.nunique("region", eps=EPS),
    "nunique of numbers": lambda d: d.nunique("i", eps=EPS),
    "clipped": lambda d: d.mean("x", eps=EPS, clip="private"),
    "by": lambda d: d.mean("x", eps=EPS, by="region", keys=REGIONS, curator=True),
    "by categories": lambda d: d.mean("x", eps=EPS, by="level", keys=["high", "low"], curator=True),
    "by numbers": lambda d: d.median("x", eps=EPS, by="i", keys=[2**53 + 1, 2**53 + 2, None], curator=True),
    "by two": lambda d: d.count(eps=EPS, by=["region", "yes"], keys=[("north", True), (None, None)], curator=True),
    "by days": lambda d: d.count(eps=EPS, by="day", keys=list(pd.date_range("2020-01-01", periods=3)), curator=True),
    "observed": lambda d: d.count(eps=EPS, by="region", keys="observed", curator=True),
    "agg": lambda d: d.agg({"x": ["mean", "std"], "age": ["median"]}, eps=EPS, curator=True),
    "describe": lambda d: d.describe("x", eps=EPS, curator=True),
    "value_counts": lambda d: d.value_counts("region", eps=EPS, keys=REGIONS, sort=False, curator=True),
    "hist": lambda d: d.hist("x", bins=5, eps=EPS, curator=True),
    "where": lambda d: d.mean("x", eps=EPS, where="age > 30 and region == 'north'"),
    "where exact": lambda d: d.count(eps=EPS, where=f"i == {2**53 + 1}"),
    "where in": lambda d: d.count(eps=EPS, where="region in ['north', 'east'] and not yes"),
    "where isna": lambda d: d.count(eps=EPS, where="x.isna() or region.isna()"),
    "where days": lambda d: d.count(eps=EPS, where="'2020-01-03' <= day < '2020-01-07'"),
    "query and assign": lambda d: d.query("age > 9").assign(z="x * 2 + age").mean("z", eps=EPS, bounds=(0, 300)),
    "assign in place": lambda d: d.assign(age="age // 10").count(eps=EPS, where="age == 3"),
    "people": lambda d: d.mean("x", eps=EPS, person="pid", per_person="mean"),
    "rows of people": lambda d: d.mean("x", eps=EPS, person="pid", rows=2),
    "rows in groups": lambda d: d.count(eps=EPS, person="pid", rows=2, groups=2, by="yes", keys=[True], curator=True),
    "rows of all groups": lambda d: d.sum(
        "x", eps=EPS, person="pid", rows=2, by="region", keys=REGIONS, mechanism="laplace", curator=True
    ),
    "people counted": lambda d: d.count(eps=EPS, person="pid"),
    "bounds of the data": lambda d: d.mean("y", eps=EPS, bounds="column"),
    "assess": lambda d: d.assess(["x", "age"], ["mean", "max"], by="region", keys=REGIONS),
    "compare": lambda d: d.compare("x", "mean", eps=EPS, mechanisms=["laplace", "two_sums"]),
    "individual_risk": lambda d: d.individual_risk("x", "mean", eps=EPS, where="age > 3"),
    "epsilon_for": lambda d: d.epsilon_for("x", "mean", risk=0.7, metric="two_worlds"),
    "identifiability": lambda d: d.identifiability("y", "mean", eps=EPS, where="age < 20"),
    "identifiability with a prior": lambda d: d.identifiability("y", "mean", eps=EPS, prior=[1.0] * ROWS),
    "k_anonymity": lambda d: d.query("age > 20").k_anonymity(["region", "level"]).k,
    "unique_rows": lambda d: shown(d.assign(z="age // 9").unique_rows(["z", "day"]).unique),
}  # fmt: skip


def exact(answer):
    """The curator's numbers of an answer, by which no noise is told."""
    if isinstance(answer, pdrisk.Release):
        return answer.curator
    if isinstance(answer, pd.DataFrame) and "value" in answer:
        columns = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"]
        return [list(map(str, row)) for row in answer[columns].itertuples(index=False)]
    if isinstance(answer, pd.DataFrame | pd.Series):
        return answer.to_csv()
    return answer


def dataset(make, **options):
    return Dataset(make(), bounds=BOUNDS, **options)


@pytest.fixture(scope="module")
def made():
    return {name: dataset(make) for name, make in FRAMES.items()} | {"pandas": dataset(of_pandas)}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_to_the_last_digit(made, ask):
    expected = str(exact(ask(made["pandas"])))
    assert {name: str(exact(ask(made[name]))) for name in FRAMES} == dict.fromkeys(FRAMES, expected)


@pytest.mark.parametrize("name", FRAMES)
def test_replace_one(made, name):
    """The number of rows is declared to be public, so it is looked at where it is known."""
    asked = [partial(made[which].mean, "age", eps=EPS, neighbours="replace-one") for which in ("pandas", name)]
    if name in HELD:
        assert str(asked[0]().curator) == str(asked[1]().curator)
    else:
        with pytest.raises(pdrisk.ParameterError, match="not known before"):
            asked[1]()


def test_keys_have_the_columns_own_type(made):
    for name in FRAMES:
        index = made[name].count(eps=1, by="i", keys=[2**53 + 1]).index
        assert index.tolist() == [2**53 + 1] and index.dtype == "int64[pyarrow]", name


KINDS = {
    "Int64": (pl.Int64, [1, 2, 3]),
    "UInt64": (pl.UInt64, [2**64 - 1, 2**63, 3]),
    "Float32": (pl.Float32, [1.5, float("nan"), 3.0]),
    "Decimal": (pl.Decimal(20, 4), ["1.5", "2.25", "3"]),
    "Boolean": (pl.Boolean, [True, False, True]),
    "String": (pl.String, ["a", "b", "c"]),
    "Categorical": (pl.Categorical, ["a", "b", "c"]),
    "Enum": (pl.Enum(["a", "b", "c"]), ["a", "b", "c"]),
    "Date": (pl.Date, [dt.date(2020, 1, day) for day in (1, 2, 3)]),
    "Datetime": (pl.Datetime("ns"), [dt.datetime(2020, 1, day) for day in (1, 2, 3)]),
    "Datetime with a zone": (pl.Datetime("ms", "Europe/Berlin"), [dt.datetime(2020, 1, day) for day in (1, 2, 3)]),
    "Duration": (pl.Duration("us"), [dt.timedelta(day) for day in (1, 2, 3)]),
}


class TestTypes:
    """What is judged of a column is its type alone."""

    @pytest.mark.parametrize(("kind", "values"), KINDS.values(), ids=KINDS)
    def test_no_record_decides(self, kind, values):
        frames = [pl.DataFrame({"c": pl.Series(held, dtype=kind, strict=False)}) for held in (values, [None] * 3, [])]
        lists = [[column_table(form).header.dtypes["c"] for form in (f, f.lazy(), f.to_arrow())] for f in frames]
        assert lists[0] == lists[1] == lists[2]
        for frame in frames:
            present = frame.height - frame["c"].null_count() - (sum(each != each for each in frame["c"]))
            for form in (frame, frame.lazy(), frame.to_arrow()):
                assert Dataset(form).count("c", eps=1).curator.n == present
                assert Dataset(form).nunique("c", eps=1).curator.n == present

    def test_categories_of_an_enum_are_its_type(self):
        frame = pl.DataFrame({"c": pl.Series(["a", None], dtype=pl.Enum(["b", "a", "none"]))})
        counts = Dataset(frame).count(eps=1, by="c", keys="categories", curator=True)["n"]
        assert counts.to_dict() == {"b": 0, "a": 1, "none": 0}
        categorical = frame.cast(pl.Categorical)
        with pytest.raises(pdrisk.ParameterError, match="categories"):
            Dataset(categorical).count(eps=1, by="c", keys="categories")

    def test_integers_stay_exact(self):
        ends = [2**63 - 1, 2**63 - 2, -(2**63), None]
        frame = pl.DataFrame(
            {"s": pl.Series(ends, dtype=pl.Int64), "u": pl.Series([*range(3), 2**64 - 1], dtype=pl.UInt64)}
        )
        for form in (frame, frame.lazy(), frame.to_arrow()):
            d = Dataset(form)
            assert d.count(eps=1, where=f"s == {2**63 - 2}").curator.n == 1
            assert d.count(eps=1, where=f"u > {2**64 - 2}").curator.n == 1
            assert d.count(eps=1, by="s", keys=ends, curator=True)["n"].tolist() == [1] * 4

    def test_whole_numbers_of_128_bits(self):
        frame = pl.DataFrame({"w": pl.Series([2**100, 2**53 + 1, None, -(2**127)], dtype=pl.Int128)})
        d = Dataset(frame)
        if pl.__version__.startswith("1.20"):  # which cannot hand them on
            with pytest.raises(pdrisk.ColumnTypeError, match="Int128, which pdrisk does not read"):
                d.count("w", eps=1)
        else:
            assert d.count(eps=1, where=f"w == {2**53 + 1}").curator.n == 1
            assert d.max("w", eps=1, bounds=(0, 1e30), mechanism="laplace").curator.n == 3

    @pytest.mark.parametrize(
        "column",
        [
            pl.Series([[1], [2]]),
            pl.Series([{"a": 1}, {"a": 2}]),
            pl.Series([b"a", b"b"]),
            pl.Series([None, None]),
            pl.Series([dt.time(1), dt.time(2)]),
            pl.Series([object(), object()], dtype=pl.Object),
        ],
        ids=lambda column: str(column.dtype),
    )
    def test_what_is_not_read(self, column):
        frame = pl.DataFrame({"x": [1.0, 2.0]}).with_columns(column.alias("held"))
        forms = [frame, frame.lazy()] if column.dtype == pl.Object else [frame, frame.lazy(), frame.to_arrow()]
        for form in forms:
            d = Dataset(form)
            assert d.mean("x", eps=1, bounds=(0, 1)).curator.n == 2  # beside it
            for ask in (
                lambda d: d.mean("held", eps=1, bounds=(0, 1)),
                lambda d: d.count("held", eps=1),
                lambda d: d.count(eps=1, by="held", keys="observed"),
                lambda d: d.count(eps=1, where="held.isna()"),
                lambda d: d.k_anonymity("held"),
                lambda d: d.assign(z="held * 2"),
            ):
                with pytest.raises(pdrisk.ColumnTypeError, match=r"'held' is of type .*, which pdrisk does not read"):
                    ask(d)
            with pytest.raises(pdrisk.ColumnTypeError, match="pdrisk does not read"):
                Dataset(form, person="held", per_person="one")

    def test_a_column_behind_one_that_is_not_read(self):
        frame = pl.DataFrame({"held": [[1], [2]], "y": [1.0, 1.0], "x": [3.0, 4.0]})
        expected = pd.DataFrame({"x": [3.0, 4.0]}).dprisk.mean("x", eps=1, bounds=(0, 9)).curator
        for form in (frame, frame.lazy(), frame.to_arrow()):
            assert Dataset(form).mean("x", eps=1, bounds=(0, 9)).curator == expected

    def test_two_columns_of_one_name(self):
        table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], ["a", "a", "b"])
        assert Dataset(table).count("b", eps=1).curator.n == 2
        with pytest.raises(pdrisk.ParameterError, match="several columns"):
            Dataset(table).count("a", eps=1)


class TestReading:
    """Columns are read when the answer is paid, and no others."""

    def test_only_those_asked_about(self):
        asked = []

        def told(name):
            return pl.col(name).map_batches(lambda series: asked.append(name) or series, return_dtype=pl.Int64)

        frame = pl.LazyFrame({"a": [1, 2], "b": [3, 4], "c": [5, 6]}).with_columns(told("a"), told("b"), told("c"))
        d = Dataset(frame, bounds={"a": (0, 9)})
        d.query("b > 3")
        assert asked == []
        d.mean("a", eps=1, where="b > 3")
        assert sorted(asked) == ["a", "b"]

    def test_nothing_before_it_is_paid(self, book):
        asked = []
        told = pl.col("a").map_batches(lambda series: asked.append(1) or series, return_dtype=pl.Int64)
        d = Dataset(pl.LazyFrame({"a": [1, 2]}).with_columns(told), ledger=book(eps=1))
        with pytest.raises(pdrisk.BudgetExceededError):
            d.mean("a", eps=2, bounds=(0, 9))
        assert asked == []

    def test_what_fails_says_nothing(self, book):
        def fails(series):
            raise ValueError("the secret of 4711")

        ledger = book(eps=3)
        broken = pl.LazyFrame({"a": [4711]}).with_columns(pl.col("a").map_batches(fails, return_dtype=pl.Int64))
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            Dataset(broken, ledger=ledger).mean("a", eps=1, bounds=(0, 9))
        assert "4711" not in repr(caught.value) and caught.value.__cause__ is caught.value.__context__ is None
        assert ledger.remaining().eps == 2

    @pytest.mark.parametrize("frame", [pl.LazyFrame({"a": [1]}).select("b"), pl.scan_parquet("/4711/none.parquet")])
    def test_a_plan_without_columns(self, frame):
        with pytest.raises(pdrisk.ParameterError, match="cannot tell the columns") as caught:
            Dataset(frame)
        assert "4711" not in str(caught.value) and caught.value.__context__ is None

    def test_a_panic_says_nothing(self):
        class Broken:
            def collect(self):
                raise pl.exceptions.PanicException("the secret of 4711")

        from pdrisk.engines.columnar.sources import _without_panic

        with pytest.raises(pdrisk.QueryFailedError) as caught:
            _without_panic(Broken().collect)
        assert caught.value.__context__ is None

    def test_what_is_done_to_the_frame_later(self):
        frame = pl.DataFrame({"a": [1, 2, 3]})
        d = Dataset(frame)
        frame.insert_column(0, pl.Series("b", [None, None, 3]))
        frame[0, "a"] = None
        assert d.count("a", eps=1).curator.n == 3
        assert d.sql("SELECT COUNT(a) AS n FROM data", eps=1e6)["n"].item() == 3
        with pytest.raises(pdrisk.UnknownColumnError):
            d.count("b", eps=1)


class TestMasks:
    """A mask fits rows that are there; functions are for frames of pandas."""

    @pytest.mark.parametrize("name", HELD)
    def test_of_a_frame_that_is_held(self, made, name):
        mask = [each % 3 == 0 for each in range(ROWS)]
        for form in (
            mask,
            pl.Series(mask),
            pa.array(mask),
            pd.Series(mask),
            pd.array(mask, dtype="boolean").to_numpy(),
        ):
            release = made[name].query("age > 3").mean("x", eps=EPS, where=form)
            expected = made["pandas"].query("age > 3").mean("x", eps=EPS, where=mask)
            assert release.curator == expected.curator and release.where_trusted

    @pytest.mark.whole
    @pytest.mark.parametrize("name", FRAMES)
    def test_refused(self, made, name):
        for where in (lambda frame: frame["age"] > 3, pc.field("age") > 3):
            with pytest.raises(pdrisk.ColumnTypeError, match="query string"):
                made[name].count(eps=1, where=where)
        with pytest.raises(pdrisk.PdriskError, match="another length" if name in HELD else "a mask needs rows"):
            made[name].count(eps=1, where=[True])
        with pytest.raises(pdrisk.ColumnTypeError, match=r"^where cannot be of type int; it takes a query string"):
            made[name].count(eps=1, where=3)


class TestLedger:
    """What is held is known by its content, what is computed by the owner's word alone."""

    @staticmethod
    def again(ledger, data, **said):
        left = ledger.remaining().eps
        value = Dataset(data, ledger=ledger, **said).mean("y", eps=0.25, bounds=(0, 10)).value
        return value, round(left - ledger.remaining().eps, 9)

    @pytest.mark.parametrize("name", HELD)
    def test_remembered(self, book, name):
        ledger = book(eps=9)
        first, cost = self.again(ledger, FRAMES[name]())
        assert cost == 0.25
        assert self.again(ledger, FRAMES[name]()) == (first, 0)
        changed = of_polars().with_columns(pl.col("y") + 1)
        assert self.again(ledger, changed if name == "Polars" else changed.to_arrow())[1] == 0.25

    @pytest.mark.parametrize("name", FRAMES)
    def test_by_version(self, book, name):
        ledger = book(eps=9)
        first, cost = self.again(ledger, FRAMES[name](), version="2019")
        assert cost == 0.25
        assert self.again(ledger, FRAMES[name](), version="2019") == (first, 0)
        assert self.again(ledger, FRAMES[name](), version="2020")[1] == 0.25

    @pytest.mark.parametrize("name", [name for name in FRAMES if name not in HELD])
    def test_what_is_computed_is_not(self, book, name):
        ledger = book(eps=9)
        assert [self.again(ledger, FRAMES[name]())[1] for _ in range(2)] == [0.25, 0.25]

    def test_losses_of_people(self, book):
        ledgers = {}
        for name, make in {"pandas": of_pandas, **FRAMES}.items():
            ledgers[name] = book(eps=9, dataset=name, policy={"curators": ["ann"]})
            Dataset(make(), person="pid", ledger=ledgers[name]).mean(
                "y", eps=1, bounds=(0, 10), per_person="mean", mechanism="laplace"
            )
        losses = {name: ledger.odometer([7, 8])["loss"].tolist() for name, ledger in ledgers.items()}
        assert 0 < max(losses["pandas"]) < 1
        assert losses == dict.fromkeys(losses, losses["pandas"])


class TestForms:
    """Tables come as the library's that was asked for; a Release stays one."""

    def test_tables(self):
        d = dataset(of_polars, as_="polars")
        table = d.count(eps=EPS, by=["region", "yes"], keys=[("north", True), (None, False)])
        assert isinstance(table, pl.DataFrame)
        assert table.columns == ["region", "yes", "value", "low", "high", "eps", "worst_case"]
        assert table["region"].to_list() == ["north", None] and table.schema["value"] == pl.Int64
        assert isinstance(d.mean("x", eps=EPS), pdrisk.Release)
        names = d.agg({"x": ["mean", "median"]}, eps=EPS).columns
        assert names == ["column", "statistic", "value", "low", "high", "eps", "worst_case", "release"]
        assert d.quantile("x", [0.5, 0.9], eps=EPS).columns[0] == "q"
        assert d.hist("x", bins=3, eps=EPS).columns[:2] == ["left", "right"]
        wide = d.crosstab("region", "yes", keys={"region": REGIONS, "yes": [True, False]}, eps=EPS)
        assert wide.columns == ["region", "True", "False"] and wide.height == 3
        sql = d.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region", keys={"region": REGIONS}, eps=EPS)
        assert isinstance(sql, pl.DataFrame) and sql.columns == ["region", "n"]
        assert isinstance(d.assess("x"), pd.DataFrame)  # a curator's view
        assert d.describe("x", eps=EPS).height == 8 and d.value_counts("region", keys=REGIONS, eps=EPS).height == 3

    @pytest.mark.parametrize("make", [of_pandas, of_polars, of_arrow], ids=["pandas", "Polars", "Arrow"])
    def test_of_whatever_data(self, make):
        expected = dataset(make).count(eps=1e6, by="level", keys=["high", "low"]).reset_index()
        for form, rows in (("polars", lambda t: t.to_dicts()), ("arrow", lambda t: t.to_pylist())):
            table = dataset(make, as_=form).query("age > -1").count(eps=1e6, by="level", keys=["high", "low"])
            assert rows(table) == expected.astype({"level": object}).to_dict("records")

    @pytest.mark.parametrize(
        "ask",
        [
            lambda d: d.count(eps=1, by="region", keys=REGIONS, curator=True),
            lambda d: d.agg({"x": ["mean", "median"]}, eps=1, curator=True),
            lambda d: d.quantile("x", [0.5, 0.9], eps=1, by="region", keys=REGIONS, curator=True),
            lambda d: d.sql(
                "SELECT region, COUNT(*) AS n FROM data GROUP BY region", keys=REGIONS, eps=1, curator=True
            ),
        ],
    )
    def test_tables_of_arrow_are_explained(self, ask):
        table, plain = ask(dataset(of_polars, as_="arrow")), ask(dataset(of_pandas))
        for audience in ("participant", "publication", "curator"):
            assert pdrisk.explain(table, audience).split("\n")[0] == pdrisk.explain(plain, audience).split("\n")[0]
        assert "most exposed" in pdrisk.explain(table, "curator")
        with pytest.raises(pdrisk.ParameterError, match="does not say what was asked"):
            pdrisk.explain(table.replace_schema_metadata(None))

    def test_what_is_unknown_is_null(self):
        table = dataset(of_polars, as_="arrow").median("x", eps=1, by="region", keys=REGIONS)
        assert table["low"].null_count == 3

    def test_names_that_are_taken(self):
        frame = pl.DataFrame({"value": ["a", "b"], "eps": [1, 2], "value_": [True, False]})
        for keys in ([("a", 1, True)], [("a", 1, False), ("b", None, None)]):
            table = Dataset(frame, as_="polars").count(eps=1, by=["value", "eps", "value_"], keys=keys)
            assert table.columns[:4] == ["value_", "eps_", "value__", "value"]
            assert table["value_"].to_list() == [key[0] for key in keys]

    def test_keys_without_a_type(self):
        keys = [2**70, -(2**70), None]
        frame = pd.DataFrame({"k": pd.Series([1, 2, None], dtype=object)})
        table = Dataset(frame, as_="polars").count(eps=1, by="k", keys=keys)
        assert table["k"].to_list() == [str(2**70), str(-(2**70)), None]

    @pytest.mark.parametrize(("form", "error"), [("Polars", "can be"), (None, "a name"), ("spark", "can be")])
    def test_refused(self, form, error):
        with pytest.raises(pdrisk.PdriskError, match=error):
            Dataset(of_pandas(), as_=form)


def said_by(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class TestNamespace:
    """``dprisk`` of a Polars frame, whichever is imported first."""

    ASK = "print(type(pl.DataFrame({'x': [1, 2]}).dprisk.count(eps=1, by='x', keys=[1])).__module__.split('.')[0])"

    @pytest.mark.slow
    @pytest.mark.parametrize("order", ["import pdrisk\nimport polars as pl\n", "import polars as pl\nimport pdrisk\n"])
    def test_imports(self, order):
        code = order + self.ASK
        assert (
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            == "polars\n"
        )

    def test_answers(self, made):
        for frame in (of_polars(), of_polars().lazy()):
            release = frame.dprisk.mean("x", eps=EPS, bounds=(0, 100), where=pl.col("age") > 30)
            assert release.curator == made["pandas"].mean("x", eps=EPS, where="age > 30").curator
            assert frame.dprisk.k_anonymity("region").k == made["pandas"].k_anonymity("region").k
            assert isinstance(frame.dprisk.assess("x", bounds=(0, 9)), pd.DataFrame)

    def test_declared(self, made):
        d = of_polars().dprisk.declare(bounds=BOUNDS, keys={"region": REGIONS}, person="pid", per_person="mean")
        assert isinstance(d.mean("age", eps=EPS, bounds=(0, 90), groups=2, by="region"), pl.DataFrame)
        expected = made["pandas"].mean("age", eps=EPS, person="pid", per_person="mean")
        assert d.mean("age", eps=EPS).curator == expected.curator

    def test_the_frame_as_it_is_now(self):
        frame = pl.DataFrame({"a": [1, 2, 3]})
        frame.dprisk.count("a", eps=1)
        frame.insert_column(0, pl.Series("b", [1, None, 3]))
        assert frame.dprisk.count("b", eps=1).curator.n == 2

    @pytest.mark.slow
    def test_without_pyarrow(self):
        code = """
import sys
sys.modules["pyarrow"] = None
import polars as pl, pdrisk
try:
    pl.DataFrame({"x": [1]}).dprisk.count(eps=1)
except pdrisk.ParameterError as error:
    print(error)
"""
        assert "pdrisk[arrow]" in said_by(code)

    def test_a_ledger_around(self, book):
        with book(eps=1) as ledger:
            of_polars().dprisk.count(eps=0.25)
        assert ledger.remaining().eps == 0.75


def test_people_and_declarations():
    """A Dataset of any of them knows its people, codes and keys."""
    held = columns()
    known = {pid for pid, age in zip(held["pid"], held["age"], strict=True) if age not in (0, 1, 7)}
    for make in (of_pandas, *FRAMES.values()):
        said = {"missing": {"age": [0, 1, 7]}, "keys": {"region": REGIONS}, "person": "pid", "per_person": "one"}
        d = dataset(make, **said)
        assert d.count("age", eps=1).curator.n == len(known) < 120
        assert d.count(eps=1, by="region").index.tolist() == REGIONS
        with pytest.raises(pdrisk.ParameterError, match="missing"):
            d.count(eps=1, where="age == 7")
        sql = d.sql("SELECT COUNT(DISTINCT pid) AS n FROM data WHERE age IS NOT NULL", eps=1e6)
        assert sql["n"].item() == len(known)


def test_pieces_are_one_table():
    assert in_pieces().num_rows == ROWS and in_pieces().column(0).num_chunks > 1
