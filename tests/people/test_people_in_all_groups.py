"""`rows=k` in all groups together on every engine: which rows count, what that costs, and what texts say of it."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pdrisk
from pdrisk import Dataset, ParameterError
from pdrisk._audit import replay
from pdrisk.risk import posterior
from people_losses import BOUNDS, dataset_of, loss_between
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from sql_people import described
from test_people_neighbours import IN_ALL, KEYS, small

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

TYPES = "pid bigint, g text, x double precision, y double precision"


def in_duckdb(frame, path):
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    return con, "people"


def in_parquet(frame, path):
    """A file in small row groups."""
    file = path / f"{len(list(path.iterdir()))}.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), file, row_group_size=3)
    return file


FRAMES = {
    "pandas": lambda frame, path: frame,
    "Polars": lambda frame, path: pl.from_pandas(frame).lazy(),
    "Arrow": lambda frame, path: pa.Table.from_pandas(frame, preserve_index=False),
}
FILES = {"DuckDB": in_duckdb, "Parquet": in_parquet}


def plain(frame):
    """Rows with None for missing values, as servers take them."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


def on_server(connection):
    """Makes a table of each frame; all have one name, in schemas of their own."""
    made = []

    def of(frame, path):
        made.append(f"s{len(made)}")
        connection.execute(f"CREATE SCHEMA {made[-1]}")
        connection.execute(f"CREATE TABLE {made[-1]}.people ({TYPES})")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {made[-1]}.people VALUES (%s, %s, %s, %s)", plain(frame))
        return connection, f"{made[-1]}.people"

    return of


@pytest.fixture(scope="module", params=[
    *FRAMES, *FILES, pytest.param("PostgreSQL", marks=needs_server),
    pytest.param("Spark", marks=[needs_spark, pytest.mark.slow]),
])  # fmt: skip
def made(request):
    """Gives data of each engine for a frame."""
    if request.param == "PostgreSQL":
        with database() as url, connected(url) as connection:
            yield on_server(connection)
    elif request.param == "Spark":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark = session()
        yield lambda frame, path: spark.createDataFrame(plain(frame), "pid long, g string, x double, y double")
        spark.stop()
    else:
        yield (FRAMES | FILES)[request.param]


ALWAYS = ("count", "one row", "mean", "laplace highest", "sql")


@pytest.mark.whole
@pytest.mark.parametrize(
    "question", [*ALWAYS, *(pytest.param(name, marks=pytest.mark.slow) for name in IN_ALL if name not in ALWAYS)]
)
def test_without_somebody(made, question, tmp_path, request):
    """All rows of one person, in whatever groups, move what noise is added to by eps at most; no other row does."""
    draw = np.random.default_rng(4)
    for _ in range(1 if "Spark" in request.node.name else 2):
        frame = small(draw)
        pid = frame["pid"].mode()[0]
        rest = frame[frame["pid"] != pid].sample(frac=1, random_state=1)
        having, without = (dataset_of(made(each, tmp_path)) for each in (frame, rest))
        assert loss_between(IN_ALL[question], having, without) <= 1 + 1e-6
        assert loss_between(IN_ALL[question], without, having) <= 1 + 1e-6


def exact_numbers(ask, data):
    """The whole numbers that noise is added to."""
    return [call.exact for draw in replay.recorded(ask, dataset_of(data)).draws for call in draw.calls]


@pytest.mark.whole
@pytest.mark.parametrize("question", ["count", "one row", "mean", "laplace mean"])
def test_the_same_rows(made, question, tmp_path, request):
    """Frames choose alike, and so do databases, of values that all of them write alike as texts."""
    draw = np.random.default_rng(8)
    frame = pd.DataFrame({"pid": draw.integers(0, 9, 80), "g": draw.choice(list("abcd"), 80)})
    frame["x"], frame["y"] = draw.choice([0.5, 2.5, 3.25, 9.5], 80), 1.5
    reference = FRAMES["pandas"] if any(name in request.node.name for name in FRAMES) else in_duckdb
    found, wanted = (exact_numbers(IN_ALL[question], of(frame, tmp_path)) for of in (made, reference))
    assert wanted
    for numbers, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(numbers, expected)


RISKS = {  # question, its statistic and options
    "count": ("count", {"rows": 2}), "sum": ("sum", {"rows": 2}), "mean": ("mean", {"rows": 2}),
    "variance": ("std", {"rows": 2}), "median": ("median", {"rows": 2}), "highest": ("max", {"rows": 3}),
    "laplace mean": ("mean", {"rows": 3, "mechanism": "laplace"}),
    "laplace median": ("median", {"rows": 2, "mechanism": "laplace"}),
    "laplace highest": ("max", {"rows": 2, "mechanism": "laplace"}),
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("question", RISKS)
def test_individual_risk(question):
    """Of everybody what the answer without them tells, or where only a bound is known, no less."""
    (statistic, how), draw = RISKS[question], np.random.default_rng(21)
    for _ in range(6):
        frame = small(draw)
        if statistic == "count":
            frame["x"] = 1.0
        claimed = dataset_of(frame).individual_risk("x", statistic, eps=1, by="g", keys=KEYS, **how)
        for pid in frame["pid"].unique():
            rest = frame[frame["pid"] != pid]
            told = posterior(loss_between(IN_ALL[question], dataset_of(frame), dataset_of(rest)))
            risk = np.nanmax([0.5, *claimed[frame["pid"] == pid]])
            assert risk >= told - 1e-9
            if statistic in ("count", "mean", "std") or "mechanism" in how:
                assert risk == pytest.approx(told, abs=1e-6)


@pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
@pytest.mark.parametrize("mechanism", ["laplace", "two_sums"])
def test_assess(mechanism):
    """What an assessment says of an answer is what the answer's own curator sees, on frames and databases."""
    how = {"by": "g", "keys": KEYS, "rows": 2, "mechanism": mechanism, "eps": 1}
    for of in (FRAMES["pandas"], in_duckdb):
        d = dataset_of(of(TestLedger.FRAME, None))
        assessed, answer = d.assess("x", ["mean"], **how), d.mean("x", curator=True, **how)
        for fact in ("n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability"):
            np.testing.assert_allclose(assessed[fact], answer[fact])
        assert assessed["two_worlds"].max() <= answer["worst_case"].iloc[0] + 1e-12


class TestLedger:
    """A ledger pays eps once for all groups, and remembers each question about rows by itself."""

    FRAME = pd.DataFrame({"pid": np.repeat(np.arange(60), 4), "g": list("abca") * 60, "x": 5.0, "y": 5.0})
    FRAME["g"] = FRAME["g"].astype("string")

    def test_pays_and_remembers(self, book):
        ledger = book(eps=5)
        d = Dataset(self.FRAME, person="pid", bounds=BOUNDS, ledger=ledger)
        asked = [{"rows": 2}, {"rows": 3}, {"rows": 2, "groups": 2}, {"rows": 2, "keys": ["a", "b"]}]
        answers = [d.sum("x", eps=1, by="g", **{"keys": KEYS, **how}) for how in asked]
        assert ledger.remaining().eps == 1
        for how, before in zip(asked, answers, strict=True):
            again = d.sum("x", eps=1, by="g", **{"keys": KEYS, **how})
            pd.testing.assert_frame_equal(again, before)
        assert ledger.remaining().eps == 1

    @pytest.mark.parametrize(("mechanism", "shares"), [("two_sums", [1, 2, 3]), ("laplace", None)])
    def test_the_odometer_of_each_person(self, book, mechanism, shares):
        """Of rows in any groups: eps for k of them, and its share for fewer; by Laplace noise what they move."""
        frame = pd.DataFrame({"pid": [0, 1, 1, 2, 2, 2, 2, 2], "g": list("abbabcad"), "x": np.arange(8.0), "y": 1.0})
        frame["g"] = frame["g"].astype("string")
        ledger = book(eps=5, policy={"curators": ["ann"]})
        how = {"by": "g", "keys": KEYS, "rows": 3, "mechanism": mechanism, "eps": 1}
        d = dataset_of(frame, ledger=ledger)
        d.mean("x", **how)
        lost = ledger.odometer([0, 1, 2])["loss"].tolist()
        if shares:
            assert lost == pytest.approx([each / 3 for each in shares])
            return
        for pid, charged in enumerate(lost):
            both = map(dataset_of, (frame, frame[frame["pid"] != pid]))
            assert charged == pytest.approx(loss_between(lambda d: d.mean("x", **how), *both), rel=1e-6)


class TestWords:
    @pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
    def test_curators_of_tables_read_the_rule(self):
        """The share is a number of one answer; a table says by which rule rows are left out."""
        table = dataset_of(TestLedger.FRAME).mean("x", eps=1, by="g", keys=KEYS, rows=2, curator=True)
        text = " ".join(pdrisk.explain(table, "curator").split())
        assert "left out at most 2 rows of each pid count in all groups together; how much" in text
        assert "global sensitivity 10: the most that one pid can move the answer in all groups together" in text

    @pytest.mark.parametrize("ask", [
        lambda d: d.count(eps=1, by="g", keys=KEYS),
        lambda d: d.mean("x", eps=1, by="g", keys=KEYS, per_person="mean"),
        lambda d: d.sql("SELECT g, AVG(x) AS m FROM data GROUP BY g", eps=1, keys=KEYS, per_person="mean"),
        lambda d: d.sql("SELECT g, COUNT(DISTINCT pid) AS n FROM data GROUP BY g", eps=1, keys=KEYS),
    ])  # fmt: skip
    def test_rows_are_offered_in_place_of_groups(self, ask):
        with pytest.raises(ParameterError, match=r"pass groups=1 .*; or rows=k without per_person=, so that at most k"):
            ask(dataset_of(TestLedger.FRAME))

    def test_people_are_counted_in_groups(self):
        """No limit of rows says in how many groups somebody of a frame is counted; in SQL that of rows does."""
        with pytest.raises(ParameterError, match="pass groups=1") as caught:
            dataset_of(TestLedger.FRAME).nunique("pid", eps=1, by="g", keys=KEYS, rows=2)
        assert "rows=k" not in str(caught.value)
        query = "SELECT g, COUNT(DISTINCT pid) AS n, AVG(x) AS m FROM data GROUP BY g"
        answer = dataset_of(TestLedger.FRAME).sql(query, eps=1, keys=KEYS, rows=2)
        assert described(answer).unit == "pid"

    def test_all_columns_are_named(self):
        frame = TestLedger.FRAME.assign(h=1)
        with pytest.raises(ParameterError, match=r"declare constant=\['g', 'h'\] if"):
            dataset_of(frame).count(eps=1, by=["g", "h"], keys=[("a", 1)])


def test_plan():
    """The noise of a plan is that of the answer, which no data decide for counts."""
    asked = {"by": {"g": 3}, "person": "pid", "rows": 2}
    planned = pdrisk.plan({"count()": asked}, n=240, eps=1).table
    answer = dataset_of(TestLedger.FRAME).count(eps=1, by="g", keys=KEYS, rows=2)
    assert set(answer["high"] - answer["value"]) == {planned["noise95"].item()}
    (line,) = described(answer).lines
    assert (planned["worst_case"].item(), planned["mu"].item()) == (line.risk.worst_case, pytest.approx(line.mu))
