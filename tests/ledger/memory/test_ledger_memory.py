"""The same question of data that have not changed: the same answer again, for nothing."""

import copy
import gc
import pickle
import time
from functools import partial
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pytest

import ledgers
import pdrisk
from ledgers import REGIONS, asked, events, of, people, tables, values
from pdrisk import Dataset

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

AGES = {"bounds": (0, 100)}


def count(frame, ledger, eps=1, **options):
    """By a mechanism that hardly draws one number twice."""
    return of(frame).count(eps=eps, ledger=ledger, mechanism="laplace", **options)


def sql(text, frame, ledger, **options):
    options = {"eps": 1, "bounds": (0, 100), "ledger": ledger, "mechanism": "laplace"} | options
    if isinstance(frame, Dataset):
        return frame.sql(text.replace("FROM t", "FROM data"), **options)
    return pdrisk.sql(text, t=frame, **options)


ASKS = {
    "count": count,
    "count of a column": lambda df, led, **o: count(df, led, column="age", **o),
    "whole sum": lambda df, led, **o: of(df).sum("pid", eps=1, bounds=(-(10**9), 10**9), step=1, ledger=led, **o),
    "sum": lambda df, led, **o: of(df).sum("age", eps=1, ledger=led, **AGES, **o),
    "mean": lambda df, led, **o: of(df).mean("age", eps=1, ledger=led, **AGES, **o),
    "by risk": lambda df, led, **o: of(df).mean("age", risk=0.7, ledger=led, **AGES, **o),
    "median": lambda df, led, **o: of(df).median("age", eps=1, ledger=led, **AGES, **o),
    "quantile": lambda df, led, **o: of(df).quantile("age", 0.9, eps=1, ledger=led, **AGES, **o),
    "min": lambda df, led, **o: of(df).min("age", eps=1, ledger=led, **AGES, **o),
    "max": lambda df, led, **o: of(df).max("age", eps=1, ledger=led, **AGES, **o),
    "var": lambda df, led, **o: of(df).var("age", eps=1, ledger=led, **AGES, **o),
    "std": lambda df, led, **o: of(df).std("age", ddof=0, eps=1, ledger=led, **AGES, **o),
    "where": lambda df, led, **o: count(df, led, where="age > 30 and region == 'north'", **o),
    "groups": lambda df, led, **o: count(df, led, by="region", keys=REGIONS, **o),
    "agg": lambda df, led, **o: of(df).agg({"age": ["mean", "max"], "sex": "sum"}, eps=1, ledger=led, **AGES, **o),
    "agg of groups": lambda df, led, **o: of(df).agg(
        {"age": ["mean", "max"]}, eps=1, by=["region", "sex"], keys={"region": REGIONS, "sex": [0, 1]}, ledger=led,
        **AGES, **o,
    ),
    "sql mean": lambda df, led, **o: sql("SELECT AVG(age) FROM t", df, led, mechanism="auto", **o),
    "sql": lambda df, led, **o: sql("SELECT COUNT(*), AVG(age) FROM t", df, led, **o),
    "sql filter": lambda df, led, **o: sql("SELECT COUNT(*) FILTER (age > 30) FROM t WHERE sex = 1", df, led, **o),
    "sql groups": lambda df, led, **o: sql(
        "SELECT region, COUNT(*) FROM t GROUP BY region", df, led, keys=REGIONS, **o
    ),
    "sql parameters": lambda df, led, **o: sql("SELECT COUNT(*) FROM t WHERE age > ?", df, led, params=[30], **o),
}  # fmt: skip
if ledgers.IS_3:
    ASKS["pd.col"] = lambda df, led, **o: count(df, led, where=pd.col("age") > 30, **o)


class TestAgain:
    """Every kind of question is answered again, to the last digit, for nothing."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
    def test_for_nothing(self, book, ask):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        first, cost = asked(ledger, partial(ask, d))
        assert cost > 0.8 and events(ledger) == ["opened", "paid", "kept"]
        gc.collect()
        for _ in range(2):
            assert asked(ledger, partial(ask, d)) == (first, 0)
        assert events(ledger)[3:] == ["remembered", "remembered"]
        assert asked(book(analyst="bob"), partial(ask, d)) == (first, 0)
        fresh, draws = first, 0
        while fresh == first and draws < 5:  # a point among few may be chosen twice
            (fresh, again), draws = asked(ledger, partial(ask, d, fresh=True)), draws + 1
            assert again == pytest.approx(cost)
        assert fresh != first
        assert asked(ledger, partial(ask, d)) == (fresh, 0)
        ledger.verify()

    def test_suggested_bounds(self, book):
        frame = pd.DataFrame({"x": [42.0] * 500})
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        costs = [
            asked(ledger, lambda led, fresh=fresh: d.suggest_bounds("x", eps=1, ledger=led, fresh=fresh))[1]
            for fresh in (False, False, True, False)
        ]
        assert costs == [1, 0, 1, 0]

    def test_everything_else_is_as_it_was(self, book):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        ways = (lambda: count(d, ledger), lambda: count(d, ledger, by="region", keys=REGIONS))
        for first, second in [(way(), way()) for way in ways]:
            if isinstance(first, pd.DataFrame):
                pd.testing.assert_frame_equal(first, second)
                assert first.attrs == second.attrs
            else:
                assert first.public() == second.public() and first.interval(0.5) == second.interval(0.5)

    def test_a_block(self, book):
        frame = people()
        d = Dataset(frame, ledger=book())
        with book() as ledger:
            first, second = (values(d.agg({"age": "mean"}, eps=1, **AGES)) for _ in range(2))
        assert first == second and ledger.remaining().spent == 1

    def test_several_selects_over_one_release(self, book):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        texts = ["SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) + 5 FROM t", "SELECT COUNT(*) * 2 AS d FROM t"]
        (one, paid), (five, free), (double, gratis) = (
            asked(ledger, lambda led, text=text: sql(text, d, led)) for text in texts
        )
        assert (paid, free, gratis) == (1, 0, 0)
        assert five[0] == pytest.approx(one[0] + 5) and double[0] == pytest.approx(one[0] * 2)

    @pytest.mark.slow
    def test_many_groups(self, book):
        frame = pd.DataFrame({"g": np.arange(100_000), "x": 1.0})
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        first = values(count(d, ledger, by="g", keys=range(100_000)))
        start = time.perf_counter()
        assert values(count(d, ledger, by="g", keys=range(100_000))) == first
        assert time.perf_counter() - start < 5 and ledger.remaining().spent == 1

    def test_data_that_return(self, book):
        """Once they were seen to change, nothing is remembered until the Dataset is made anew."""
        frame, ask, ledger = people(), ASKS["mean"], book()
        d = Dataset(frame, ledger=ledger)
        first, _ = asked(ledger, partial(ask, d))
        held = frame["age"].to_numpy()
        held.flags.writeable = True
        held += 1
        second, cost = asked(ledger, partial(ask, d))
        held -= 1
        third, again = asked(ledger, partial(ask, d))
        assert (cost, again) == (1, 1) and len({*first, *second, *third}) == 3
        assert events(ledger) == ["opened", "paid", "kept", "changed", "paid", "paid"]
        assert asked(ledger, partial(ask, Dataset(frame, ledger=ledger))) == (first, 0)

    def test_what_is_done_to_the_frame_later(self, book):
        """A Dataset is the data as they were when it was made."""
        frame, ask, ledger = people(), ASKS["mean"], book()
        d = Dataset(frame, ledger=ledger)
        first, _ = asked(ledger, partial(ask, d))
        frame["age"] = 33
        frame.loc[0, "hours"] = 7
        frame.columns = [*"abcde"]
        assert asked(ledger, partial(ask, d)) == (first, 0)
        assert d.count(eps=ledgers.SURE).value == pytest.approx(60, abs=0.01)
        assert asked(ledger, partial(ask, Dataset(frame.rename(columns={"b": "age"}), ledger=ledger)))[1] == 1

    def test_data_that_others_followed(self, book):
        """The audit says which data were asked; an answer about earlier ones is not given for later ones."""
        old, new = people(), people().assign(age=33)
        frames = (old, old.copy(), new, new, old, old)
        costs = [asked(book(), lambda led, frame=frame: Dataset(frame, ledger=led).count(eps=1))[1] for frame in frames]
        assert costs == [1, 0, 1, 0, 1, 0]
        assert len(events(book(), "data")) == 3 and "changed" not in events(book())
        book().verify()


FRAME = people()
PAID_AGAIN = {
    "a mask": lambda df: lambda led: count(df, led, where=FRAME["age"] > 30),
    "a mask of a selection": lambda df: lambda led: count(df.query("sex == 1"), led, where=FRAME["age"] > 30),
    "a list": lambda df: lambda led: count(df, led, where=[True] * len(FRAME)),
    "a function": lambda df: lambda led: count(df, led, where=lambda frame: frame["age"] > 30),
    "bounds from the data": lambda df: lambda led: of(df).mean("age", eps=1, bounds="column", ledger=led),
    "keys from the data": lambda df: lambda led: count(df, led, by="region", keys="observed"),
    "keys from the data in sql": lambda df: lambda led: sql(
        "SELECT region, COUNT(*) FROM t GROUP BY region", df, led, keys="observed"
    ),
    "the frame without the Dataset": lambda _: partial(count, FRAME),
    "a column": lambda _: lambda led: FRAME["age"].dprisk.count(eps=1, ledger=led),
    "sql without the Dataset": lambda _: partial(sql, "SELECT COUNT(*) FROM t", FRAME),
}  # fmt: skip


class TestPaidAgain:
    """What only the caller knows, and what is asked without the Dataset, is never remembered: nothing is kept."""

    @pytest.mark.whole
    @pytest.mark.parametrize("ask", PAID_AGAIN.values(), ids=PAID_AGAIN.keys())
    @pytest.mark.parametrize("version", [None, pytest.param("2019", marks=pytest.mark.slow)])
    def test_twice(self, book, ask, version):
        ledger = book(policy={"bounds_from_data": True, "keys_from_data": True})
        way = ask(Dataset(FRAME, ledger=ledger, version=version))
        assert [asked(ledger, way)[1] for _ in range(2)] == [1, 1]
        assert events(ledger) == ["opened", "paid", "paid"]

    def test_by_another_ledger(self, book, tmp_path):
        """The number that names the data in one ledger names others in another."""
        d, other = Dataset(people(), ledger=book()), pdrisk.Ledger(tmp_path / "other.db", dataset="survey", eps=9)
        ask = partial(ASKS["mean"], d)
        (theirs,) = values(ASKS["mean"](Dataset(people().assign(age=33), ledger=other), other))
        first, cost = asked(other, ask)
        assert cost == 1 and first != [theirs]
        assert asked(other, ask) == (first, 0)
        assert asked(d.ledger, ask)[1] == 1

    @pytest.mark.parametrize(
        ("way", "cost"), [(copy.copy, 0), (copy.deepcopy, 1), (lambda d: pickle.loads(pickle.dumps(d)), 1)]
    )
    @pytest.mark.parametrize("version", [None, "2019"])
    def test_a_copied_dataset(self, book, way, cost, version):
        ledger = book()
        d = Dataset(people(), ledger=ledger, version=version)
        d.count(eps=1)
        assert asked(ledger, lambda _: way(d).count(eps=1))[1] == cost

    def test_another_dataset(self, book):
        frame, other = people(), book(dataset="other")
        Dataset(frame, ledger=book()).count(eps=1)
        assert asked(other, lambda led: Dataset(frame, ledger=led).count(eps=1))[1] == 1

    def test_an_answer_that_failed(self, book, monkeypatch):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)

        def failing(*_):
            raise pdrisk.QueryFailedError

        with monkeypatch.context() as broken:
            broken.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", failing)
            with pytest.raises(pdrisk.QueryFailedError):
                count(d, ledger)
        assert asked(ledger, partial(count, d))[1] == 1
        assert events(ledger) == ["opened", "paid", "failed", "paid", "kept"]


@pytest.fixture
def places(tmp_path):
    """A database file with a table, a view and a temporary table, and a Parquet file."""
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("CREATE TABLE t AS SELECT range AS x FROM range(50)")
        con.execute("CREATE TABLE other AS FROM t")
        con.execute("CREATE VIEW v AS FROM t")
        con.execute("CREATE TEMP TABLE temporary AS FROM t")
        con.execute("ATTACH ':memory:' AS m")
        con.execute("CREATE TABLE m.t AS FROM t")
        con.execute("CREATE VIEW m.v AS FROM m.t")
        con.execute(f"COPY t TO '{tmp_path / 'people.parquet'}' (FORMAT parquet)")
        con.execute(f"CREATE VIEW of_file AS FROM '{tmp_path / 'people.parquet'}'")
        yield SimpleNamespace(con=con, parquet=tmp_path / "people.parquet")


def of_table(name):
    return lambda places: (places.con, name)


def of_file(places):
    return places.parquet


def sql_count(data, version, led):
    return Dataset(data, ledger=led, version=version).sql("SELECT COUNT(*) FROM data", eps=1, mechanism="laplace")


class TestVersion:
    """By the owner's word, tables of database files and Parquet files are remembered too, and nothing is compared."""

    @pytest.mark.parametrize("ask", [of_table("t"), of_file], ids=["table", "parquet"])
    def test_remembered(self, places, book, ask):
        one, two, none = (partial(sql_count, ask(places), version) for version in ("1", "2", None))
        first, _ = asked(book(), one)
        assert asked(book(analyst="bob"), one) == (first, 0)
        second, cost = asked(book(), two)
        assert cost == 1 and second != first
        assert asked(book(), one) == (first, 0)
        assert asked(book(), none)[1] == asked(book(), none)[1] == 1

    @pytest.mark.parametrize("name", ["temporary", "m.t", "m.v"])
    def test_what_does_not_last(self, places, book, name):
        ask = partial(sql_count, (places.con, name), "1")
        assert [asked(book(), ask)[1] for _ in range(2)] == [1, 1]

    @pytest.mark.parametrize("now", ["FROM t WHERE x < 9", "FROM t WHERE x < 8", "FROM other"])
    def test_a_view_that_means_something_else(self, places, book, now):
        ledger, ask = book(), partial(sql_count, (places.con, "v"), "1")
        asked(ledger, ask)
        places.con.execute(f"CREATE OR REPLACE VIEW v AS {now}")
        assert asked(ledger, ask)[1] == 1

    def test_two_tables(self, places, book):
        asks = [partial(sql_count, (places.con, name), "1") for name in ("t", "other", "t")]
        assert [asked(book(), ask)[1] for ask in asks] == [1, 1, 0]

    @pytest.mark.parametrize("ask", [of_file, of_table("of_file")], ids=["file", "view"])
    def test_a_file_that_was_written_anew(self, places, book, ask):
        for rows in (9, 8):
            assert [asked(book(), partial(sql_count, ask(places), "1"))[1] for _ in range(2)] == [1, 0]
            places.con.execute(f"COPY (FROM t LIMIT {rows}) TO '{places.parquet}' (FORMAT parquet)")

    def test_several_files(self, places, book, tmp_path):
        """A pattern is the files that it fits: one more is another question."""
        ask = partial(sql_count, f"{tmp_path}/*.parquet", "1")
        assert [asked(book(), ask)[1] for _ in range(2)] == [1, 0]
        places.con.execute(f"COPY (FROM t LIMIT 3) TO '{tmp_path}/more.parquet' (FORMAT parquet)")
        assert asked(book(), ask)[1] == 1

    def test_a_frame_is_not_compared(self, book):
        frame = people()
        ledger = book()
        first, _ = asked(ledger, partial(ASKS["mean"], Dataset(frame, ledger=ledger, version="1")))
        frame["age"] = 3
        assert asked(ledger, partial(ASKS["mean"], Dataset(frame, ledger=ledger, version="1"))) == (first, 0)
        assert asked(ledger, partial(ASKS["mean"], Dataset(frame, ledger=ledger)))[1] == 1

    @pytest.mark.parametrize("version", [2019, " ", "a\nb"], ids=str)
    def test_nothing_else(self, book, version):
        with pytest.raises(pdrisk.ColumnTypeError, match="version must be"):
            Dataset(FRAME, ledger=book(), version=version)

    @pytest.mark.parametrize("fresh", [1, "yes", None, np.bool_(True)])
    def test_fresh_is_yes_or_no(self, book, fresh):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        with pytest.raises(pdrisk.ColumnTypeError, match="fresh must be"):
            count(d, ledger, fresh=fresh)
        assert events(ledger) == ["opened"]


class TestLimits:
    """A remembered answer needs no budget and uses none; the owner's rules hold for it as they are now."""

    @pytest.mark.parametrize(
        "limits",
        [
            {"eps": 1}, {"queries": 1}, {"queries_per_day": 1}, {"queries_per_month": 1}, {"eps_per_day": 1},
            {"each_analyst": {"queries": 1}}, {"each_analyst": {"eps": 1}}, {"risk": 0.732},
        ],
        ids=str,
    )  # fmt: skip
    def test_when_nothing_is_left(self, book, clock, limits):
        frame = people()
        ledger = book(**limits)
        d = Dataset(frame, ledger=ledger)
        first = asked(ledger, partial(count, d))[0]
        spent = repr(ledger.remaining())
        for _ in range(3):
            assert asked(ledger, partial(count, d)) == (first, 0)
        for refused in ({"fresh": True}, {"where": "age > 30"}):
            with pytest.raises(pdrisk.BudgetExceededError):
                count(d, ledger, **refused)
        assert repr(ledger.remaining()) == spent and asked(ledger, partial(count, d)) == (first, 0)

    def test_in_another_month(self, book, clock):
        frame = people()
        ledger = book(queries_per_month=1)
        d = Dataset(frame, ledger=ledger)
        first = asked(ledger, partial(count, d))[0]
        clock(days=40)
        assert asked(ledger, partial(count, d)) == (first, 0)
        assert asked(ledger, partial(count, d, fresh=True))[1] == 1
        ledger.verify()

    @pytest.mark.parametrize(
        ("ask", "policy"),
        [
            ("mean", {"refuse_columns": ["age"]}),
            ("mean", {"refuse_statistics": ["mean"]}),
            ("where", {"refuse_columns": ["region"]}),
            ("sql", {"refuse_statistics": ["mean"]}),
        ],
    )
    def test_what_is_refused_now(self, book, ask, policy):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        first, _ = asked(ledger, partial(ASKS[ask], d))
        ledger.amend(policy=policy)
        with pytest.raises(pdrisk.PolicyError):
            ASKS[ask](d, ledger)
        ledger.amend(policy={})
        assert asked(ledger, partial(ASKS[ask], d)) == (first, 0)

    def test_rounding(self, book, path):
        """What is kept is what was drawn: the base may change, and nothing is drawn for that."""
        frame = people()
        ledger = book(policy={"round_to": {"count": 50}})
        d = Dataset(frame, ledger=ledger)
        rounded, _ = asked(ledger, partial(count, d))
        ledger.amend(policy={})
        drawn, cost = asked(ledger, partial(count, d))
        assert cost == 0 and drawn != rounded == [np.rint(drawn[0] / 50) * 50]
        ledger.amend(policy={"round_to": {"count": 7}})
        assert asked(ledger, partial(count, d)) == ([np.rint(drawn[0] / 7) * 7], 0)

    def test_a_least_group(self, book):
        """Another rule is another answer."""
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        first, _ = asked(ledger, partial(count, d))
        for size, eps in ((5, 0.5), (6, 0.5), (5, 2)):
            ledger.amend(policy={"least_group": {"size": size, "eps": eps}})
            assert [asked(ledger, partial(count, d))[1] for _ in range(2)] == [1 + eps, 0]
        ledger.amend(policy={})
        assert asked(ledger, partial(count, d)) == (first, 0)

    def test_what_is_kept_grows_with_questions_alone(self, book, path):
        frame = people()
        ledger = book()
        d = Dataset(frame, ledger=ledger)
        for eps in (1, 2, 1, 2, 1):
            count(d, ledger, eps, fresh=True)
        assert tables(path, "SELECT count(*), count(DISTINCT question) FROM answers") == [(2, 2)]
