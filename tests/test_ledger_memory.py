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
from ledgers import REGIONS, asked, events, people, tables, values

secret, path, book, clock = ledgers.secret, ledgers.path, ledgers.book, ledgers.clock
pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

AGES = {"bounds": (0, 100)}


def count(frame, ledger, eps=1, **options):
    return frame.dprisk.count(eps=eps, ledger=ledger, **options)


def sql(text, frame, ledger, **options):
    return pdrisk.sql(text, ledger=ledger, t=frame, **{"eps": 1, "bounds": (0, 100)} | options)


ASKS = {
    "count": count,
    "count of a column": lambda df, led, **o: df.dprisk.count("age", eps=1, ledger=led, **o),
    "sum": lambda df, led, **o: df.dprisk.sum("age", eps=1, ledger=led, **AGES, **o),
    "mean": lambda df, led, **o: df.dprisk.mean("age", eps=1, ledger=led, **AGES, **o),
    "by risk": lambda df, led, **o: df.dprisk.mean("age", risk=0.7, ledger=led, **AGES, **o),
    "median": lambda df, led, **o: df.dprisk.median("age", eps=1, ledger=led, **AGES, **o),
    "quantile": lambda df, led, **o: df.dprisk.quantile("age", 0.9, eps=1, ledger=led, **AGES, **o),
    "min": lambda df, led, **o: df.dprisk.min("age", eps=1, ledger=led, **AGES, **o),
    "max": lambda df, led, **o: df.dprisk.max("age", eps=1, ledger=led, **AGES, **o),
    "var": lambda df, led, **o: df.dprisk.var("age", eps=1, ledger=led, **AGES, **o),
    "std": lambda df, led, **o: df.dprisk.std("age", ddof=0, eps=1, ledger=led, **AGES, **o),
    "where": lambda df, led, **o: count(df, led, where="age > 30 and region == 'north'", **o),
    "groups": lambda df, led, **o: count(df, led, by="region", keys=REGIONS, **o),
    "agg": lambda df, led, **o: df.dprisk.agg({"age": ["mean", "max"], "sex": "count"}, eps=1, ledger=led, **AGES, **o),
    "agg of groups": lambda df, led, **o: df.dprisk.agg(
        {"age": ["mean", "max"]}, eps=1, by=["region", "sex"], keys={"region": REGIONS, "sex": [0, 1]}, ledger=led,
        **AGES, **o,
    ),
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

    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
    def test_for_nothing(self, book, ask):
        frame = people()
        ledger = book(data=frame)
        first, cost = asked(ledger, partial(ask, frame))
        assert cost > 0.8 and events(ledger) == ["opened", "paid", "kept"]
        gc.collect()
        for _ in range(2):
            assert asked(ledger, partial(ask, frame)) == (first, 0)
        assert events(ledger)[3:] == ["remembered", "remembered"]
        assert asked(book(data=frame, analyst="bob"), partial(ask, frame)) == (first, 0)
        fresh, again = asked(ledger, partial(ask, frame, fresh=True))
        assert again == pytest.approx(cost) and all(a != b for a, b in zip(fresh, first, strict=True))
        assert asked(ledger, partial(ask, frame)) == (fresh, 0)
        ledger.verify()

    def test_suggested_bounds(self, book):
        frame = pd.DataFrame({"x": [42.0] * 500})
        ledger = book(data=frame)
        costs = [
            asked(ledger, lambda led, fresh=fresh: frame.dprisk.suggest_bounds("x", eps=1, ledger=led, fresh=fresh))[1]
            for fresh in (False, False, True, False)
        ]
        assert costs == [1, 0, 1, 0]

    def test_everything_else_is_as_it_was(self, book):
        frame = people()
        ledger = book(data=frame)
        ways = (lambda: count(frame, ledger), lambda: count(frame, ledger, by="region", keys=REGIONS))
        for first, second in [(way(), way()) for way in ways]:
            if isinstance(first, pd.DataFrame):
                pd.testing.assert_frame_equal(first, second)
                assert first.attrs == second.attrs
            else:
                assert first == second

    def test_a_block(self, book):
        frame = people()
        with book(data=frame) as ledger:
            first, second = (values(frame.dprisk.agg({"age": "mean"}, eps=1, **AGES)) for _ in range(2))
        assert first == second and ledger.remaining().spent == 1

    def test_several_selects_over_one_release(self, book):
        frame = people()
        ledger = book(data=frame)
        texts = ["SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) + 5 FROM t", "SELECT COUNT(*) * 2 AS d FROM t"]
        (one, paid), (five, free), (double, gratis) = (
            asked(ledger, lambda led, text=text: sql(text, frame, led)) for text in texts
        )
        assert (paid, free, gratis) == (1, 0, 0)
        assert five[0] == pytest.approx(one[0] + 5) and double[0] == pytest.approx(one[0] * 2)

    def test_many_groups(self, book):
        frame = pd.DataFrame({"g": np.arange(100_000), "x": 1.0})
        ledger = book(data=frame)
        first = values(count(frame, ledger, by="g", keys=range(100_000)))
        start = time.perf_counter()
        assert values(count(frame, ledger, by="g", keys=range(100_000))) == first
        assert time.perf_counter() - start < 5 and ledger.remaining().spent == 1

    def test_data_that_return(self, book):
        """Once they were seen to change, nothing is remembered until the ledger is opened anew."""
        frame, ask = people(), ASKS["mean"]
        ledger, before = book(data=frame), frame["age"].copy()
        first, _ = asked(ledger, partial(ask, frame))
        frame["age"] = before + 1
        second, cost = asked(ledger, partial(ask, frame))
        frame["age"] = before
        third, again = asked(ledger, partial(ask, frame))
        assert (cost, again) == (1, 1) and len({*first, *second, *third}) == 3
        assert events(ledger) == ["opened", "paid", "kept", "changed", "paid", "paid"]
        assert asked(book(data=frame), partial(ask, frame)) == (first, 0)

    def test_data_that_others_followed(self, book):
        """The audit says which data were asked; an answer about earlier ones is not given for later ones."""
        old, new = people(), people().assign(age=33)
        costs = [asked(book(data=frame), partial(count, frame))[1] for frame in (old, old.copy(), new, new, old, old)]
        assert costs == [1, 0, 1, 0, 1, 0]
        assert len(events(book(), "data")) == 3 and "changed" not in events(book())
        book().verify()


PAID_AGAIN = {
    "a mask": lambda df: lambda led: count(df, led, where=df["age"] > 30),
    "a list": lambda df: lambda led: count(df, led, where=[True] * len(df)),
    "a function": lambda df: lambda led: count(df, led, where=lambda frame: frame["age"] > 30),
    "bounds from the data": lambda df: lambda led: df.dprisk.mean("age", eps=1, bounds="column", ledger=led),
    "keys from the data": lambda df: lambda led: count(df, led, by="region", keys="observed"),
    "keys from the data in sql": lambda df: lambda led: sql(
        "SELECT region, COUNT(*) FROM t GROUP BY region", df, led, keys="observed"
    ),
    "a copy": lambda df: partial(count, df.copy()),
    "a query": lambda df: partial(count, df.query("age > 30")),
    "all its rows": lambda df: partial(count, df[:]),
    "its columns": lambda df: partial(count, df[["age"]]),
    "a column": lambda df: lambda led: df["age"].dprisk.count(eps=1, ledger=led),
    "declared": lambda df: partial(count, df.dprisk.declare(bounds={"age": (0, 99)})),
    "sql of a copy": lambda df: partial(sql, "SELECT COUNT(*) FROM t", df.copy()),
}  # fmt: skip


class TestPaidAgain:
    """What only the caller knows, and data that the owner did not name, are never remembered: nothing is kept."""

    @pytest.mark.parametrize("ask", PAID_AGAIN.values(), ids=PAID_AGAIN.keys())
    @pytest.mark.parametrize("version", [None, "2019"])
    def test_twice(self, book, ask, version):
        frame = people()
        ledger = book(data=frame, version=version, policy={"bounds_from_data": True, "keys_from_data": True})
        way = ask(frame)
        assert [asked(ledger, way)[1] for _ in range(2)] == [1, 1]
        assert events(ledger) == ["opened", "paid", "paid"]

    def test_without_data(self, book):
        frame = people()
        ledger = book()
        assert [asked(ledger, partial(count, frame))[1] for _ in range(2)] == [1, 1]

    @pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda led: pickle.loads(pickle.dumps(led))])
    @pytest.mark.parametrize("version", [None, "2019"])
    def test_a_copied_ledger(self, book, way, version):
        frame = people()
        ledger = book(data=frame, version=version)
        count(frame, ledger)
        assert len(pickle.dumps(ledger)) < 2000 < len(pickle.dumps(frame))
        other = way(ledger)
        assert asked(other, partial(count, frame))[1] == (
            0 if way is copy.copy and other._memory is ledger._memory else 1
        )

    def test_registered_functions(self, book):
        pytest.importorskip("pyarrow")
        with duckdb.connect() as con:
            con.execute("CREATE TABLE t AS SELECT range AS x FROM range(50)")
            ledger = book(version="1")
            pdrisk.register(con, ledger=ledger)
            drawn = {con.execute("SELECT dp_count_star(eps := 1) FROM t").fetchone() for _ in range(3)}
        assert len(drawn) == 3 and ledger.remaining().spent == 3 and "kept" not in events(ledger)

    def test_another_dataset(self, book):
        frame = people()
        count(frame, book(data=frame))
        assert asked(book(data=frame, dataset="other"), partial(count, frame))[1] == 1

    def test_an_answer_that_failed(self, book, monkeypatch):
        frame = people()
        ledger = book(data=frame)

        def failing(*_):
            raise pdrisk.QueryFailedError

        with monkeypatch.context() as broken:
            broken.setattr("pdrisk._answer.releasing.read", failing)
            with pytest.raises(pdrisk.QueryFailedError):
                count(frame, ledger)
        assert asked(ledger, partial(count, frame))[1] == 1
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
    return lambda places, led: pdrisk.sql(f"SELECT COUNT(*) FROM {name}", places.con, eps=1, ledger=led)


def of_file(places, led):
    return pdrisk.sql("SELECT COUNT(*) FROM f", eps=1, ledger=led, f=places.parquet)


class TestVersion:
    """By the owner's word, tables of database files and Parquet files are remembered too, and nothing is compared."""

    @pytest.mark.parametrize("ask", [of_table("t"), of_file], ids=["table", "parquet"])
    def test_remembered(self, places, book, ask):
        one, two, none = book(version="1"), book(version="2"), book()
        first, _ = asked(one, partial(ask, places))
        assert asked(book(version="1", analyst="bob"), partial(ask, places)) == (first, 0)
        second, cost = asked(two, partial(ask, places))
        assert cost == 1 and second != first
        assert asked(one, partial(ask, places)) == (first, 0)
        assert asked(none, partial(ask, places))[1] == asked(none, partial(ask, places))[1] == 1

    @pytest.mark.parametrize("name", ["temporary", "m.t", "m.v"])
    def test_what_does_not_last(self, places, book, name):
        ledger = book(version="1")
        assert [asked(ledger, partial(of_table(name), places))[1] for _ in range(2)] == [1, 1]

    @pytest.mark.parametrize("now", ["FROM t WHERE x < 9", "FROM t WHERE x < 8", "FROM other"])
    def test_a_view_that_means_something_else(self, places, book, now):
        ledger = book(version="1")
        ask = partial(of_table("v"), places)
        asked(ledger, ask)
        places.con.execute(f"CREATE OR REPLACE VIEW v AS {now}")
        assert asked(ledger, ask)[1] == 1

    def test_two_tables(self, places, book):
        ledger = book(version="1")
        assert [asked(ledger, partial(of_table(name), places))[1] for name in ("t", "other", "t")] == [1, 1, 0]

    @pytest.mark.parametrize("ask", [of_file, of_table("of_file")], ids=["file", "view"])
    def test_a_file_that_was_written_anew(self, places, book, ask):
        ledger = book(version="1")
        for rows in (9, 8):
            assert [asked(ledger, partial(ask, places))[1] for _ in range(2)] == [1, 0]
            places.con.execute(f"COPY (FROM t LIMIT {rows}) TO '{places.parquet}' (FORMAT parquet)")

    def test_several_files(self, places, book, tmp_path):
        ledger, files = book(version="1"), f"{tmp_path}/*.parquet"
        assert [asked(ledger, lambda led: sql("SELECT COUNT(*) FROM t", files, led))[1] for _ in range(2)] == [1, 1]

    def test_a_frame_is_not_compared(self, book):
        frame = people()
        ledger = book(data=frame, version="1")
        first, _ = asked(ledger, partial(ASKS["mean"], frame))
        frame["age"] = 3
        assert asked(ledger, partial(ASKS["mean"], frame)) == (first, 0)
        assert asked(book(data=frame), partial(ASKS["mean"], frame))[1] == 1

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"data": {"x": [1]}}, "data must be"), ({"data": people()["age"]}, "data must be"),
            ({"version": 2019}, "version must be"), ({"version": " "}, "version must be"),
        ],
        ids=str,
    )  # fmt: skip
    def test_nothing_else(self, book, options, words):
        with pytest.raises(pdrisk.ColumnTypeError, match=words):
            book(**options)

    @pytest.mark.parametrize("fresh", [1, "yes", None, np.bool_(True)])
    def test_fresh_is_yes_or_no(self, book, fresh):
        frame = people()
        ledger = book(data=frame)
        with pytest.raises(pdrisk.ColumnTypeError, match="fresh must be"):
            count(frame, ledger, fresh=fresh)
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
        ledger = book(data=frame, **limits)
        first = asked(ledger, partial(count, frame))[0]
        spent = repr(ledger.remaining())
        for _ in range(3):
            assert asked(ledger, partial(count, frame)) == (first, 0)
        for refused in ({"fresh": True}, {"where": "age > 30"}):
            with pytest.raises(pdrisk.BudgetExceededError):
                count(frame, ledger, **refused)
        assert repr(ledger.remaining()) == spent and asked(ledger, partial(count, frame)) == (first, 0)

    def test_in_another_month(self, book, clock):
        frame = people()
        ledger = book(data=frame, queries_per_month=1)
        first = asked(ledger, partial(count, frame))[0]
        clock(days=40)
        assert asked(ledger, partial(count, frame)) == (first, 0)
        assert asked(ledger, partial(count, frame, fresh=True))[1] == 1
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
        ledger = book(data=frame)
        first, _ = asked(ledger, partial(ASKS[ask], frame))
        ledger.amend(policy=policy)
        with pytest.raises(pdrisk.PolicyError):
            ASKS[ask](frame, ledger)
        ledger.amend(policy={})
        assert asked(ledger, partial(ASKS[ask], frame)) == (first, 0)

    def test_rounding(self, book, path):
        """What is kept is what was drawn: the base may change, and nothing is drawn for that."""
        frame = people()
        ledger = book(data=frame, policy={"round_to": {"count": 50}})
        rounded, _ = asked(ledger, partial(count, frame))
        ledger.amend(policy={})
        drawn, cost = asked(ledger, partial(count, frame))
        assert cost == 0 and drawn != rounded == [np.rint(drawn[0] / 50) * 50]
        ledger.amend(policy={"round_to": {"count": 7}})
        assert asked(ledger, partial(count, frame)) == ([np.rint(drawn[0] / 7) * 7], 0)

    def test_a_least_group(self, book):
        """Another rule is another answer."""
        frame = people()
        ledger = book(data=frame)
        first, _ = asked(ledger, partial(count, frame))
        for size, eps in ((5, 0.5), (6, 0.5), (5, 2)):
            ledger.amend(policy={"least_group": {"size": size, "eps": eps}})
            assert [asked(ledger, partial(count, frame))[1] for _ in range(2)] == [1 + eps, 0]
        ledger.amend(policy={})
        assert asked(ledger, partial(count, frame)) == (first, 0)

    def test_what_is_kept_grows_with_questions_alone(self, book, path):
        frame = people()
        ledger = book(data=frame)
        for eps in (1, 2, 1, 2, 1):
            count(frame, ledger, eps, fresh=True)
        assert tables(path, "SELECT count(*), count(DISTINCT question) FROM answers") == [(2, 2)]
