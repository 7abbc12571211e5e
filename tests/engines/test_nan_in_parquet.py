"""NaN is no value, and above all numbers where SQL compares it, whatever the statistics of a Parquet file say.

Arrow and Polars leave NaN out of them, as the format wants, and DuckDB takes them for the ends of all values.
"""

import itertools
import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pdrisk
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NAN, INF = math.nan, math.inf
VALUES = {
    "one NaN": [1.0, 2.0, 2.0, NAN, 5.0],
    "no NaN": [1.0, 2.0, 2.0, 4.0, 5.0],
    "constant beside NaN": [2.0, NAN, 2.0, 2.0],
    "NaN alone": [NAN, NAN, NAN],
    "row groups with and without": [1.0, 2.0, 3.0, NAN, NAN, NAN, 7.0, NAN, None, None, None, 0.5],
    "zeros of both signs": [-0.0, -0.0, -0.0, 0.0, NAN],
    "infinities": [INF, 1.0, -INF, NAN, None],
    "missing": [None, 1.0, NAN, 3.0],
}
WRITERS = {
    "Arrow": pq.write_table,
    "Arrow in row groups": lambda t, path: pq.write_table(t, path, row_group_size=3),
    "Arrow without statistics": lambda t, path: pq.write_table(t, path, write_statistics=False),
    "Polars": lambda t, path: pl.from_arrow(t).write_parquet(path, statistics="full"),
    "Polars in row groups": lambda t, path: pl.from_arrow(t).write_parquet(path, row_group_size=3),
    "Polars without statistics": lambda t, path: pl.from_arrow(t).write_parquet(path, statistics=False),
    "DuckDB": lambda t, path: duckdb.connect().from_arrow(t).write_parquet(str(path)),
}


def above(x):
    """Order of SQL: NaN equals itself and is above infinity."""
    return (1, 0.0) if math.isnan(x) else (0, x)


def lies(low, high):
    return lambda x: above(low) <= above(x) <= above(high)


# The condition, and whether it holds for a value that is there: by the definition, without DuckDB.
CONDITIONS = {
    "x <= 5": lambda x: above(x) <= above(5.0),
    "x < 2": lambda x: above(x) < above(2.0),
    "x > 1": lambda x: above(x) > above(1.0),
    "x >= 5": lambda x: above(x) >= above(5.0),
    "x > 100": lambda x: above(x) > above(100.0),
    "x = 2": lambda x: x == 2,
    "x <> 2": lambda x: x != 2,
    "x = 0": lambda x: x == 0,
    "x IN (0, 1, 2)": lambda x: x in (0, 1, 2),
    "x NOT IN (1, 2)": lambda x: x not in (1, 2),
    "x BETWEEN 1 AND 5": lies(1.0, 5.0),
    "x NOT BETWEEN 1 AND 5": lambda x: not lies(1.0, 5.0)(x),
    "NOT (x > 4)": lambda x: above(x) <= above(4.0),
    "NOT isnan(x)": lambda x: not math.isnan(x),
    "isfinite(x)": math.isfinite,
    "x IS NOT NULL": lambda x: True,
    "x + 1 <= 6": lambda x: above(x + 1) <= above(6.0),
    "-x >= -5": lambda x: above(-x) >= above(-5.0),
    "abs(x) > 4": lambda x: above(abs(x)) > above(4.0),
    "CASE WHEN x <= 5 THEN 1 ELSE 0 END = 1": lambda x: above(x) <= above(5.0),
    "x < 1 OR x > 4": lambda x: above(x) < above(1.0) or above(x) > above(4.0),
    "CAST(x AS DOUBLE) <= 5": lambda x: above(x) <= above(5.0),
}


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    without_noise(monkeypatch)


def table(values, of=None):
    rows = {
        "x": pa.array(values, of or pa.float64()),
        "pid": range(len(values)),
        "g": [each % 2 for each in range(len(values))],
    }
    return pa.table(rows)


def written(values, writer, path, of=None):
    WRITERS[writer](table(values, of), path)
    return str(path)


def answer(query, **options):
    return pdrisk.sql(query, eps=10, **options).to_numpy().tolist()


def is_missing(value):
    return value is None or math.isnan(value)


def counts(values, condition):
    """For how many values the condition is known to be true, in all and by group; NaN is missing like NULL."""
    holds = [not is_missing(value) and CONDITIONS[condition](value) for value in values]
    return [[sum(holds)]], [[g, sum(holds[g::2])] for g in (0, 1)]


CASES = [
    *((*case, pa.float64()) for case in itertools.product(VALUES, WRITERS)),
    *((name, "Polars in row groups", pa.float32()) for name in VALUES),  # compared alike whoever wrote them
]


class TestConditions:
    """A condition holds for a record by its own value alone."""

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize(("name", "writer", "of"), CASES, ids=str)
    def test_of_files(self, name, writer, of, tmp_path):
        path = written(VALUES[name], writer, tmp_path / "t.parquet", of)
        for condition in CONDITIONS:  # one by one: a file's statistics decide about a WHERE as a whole
            every, by_group = counts(VALUES[name], condition)
            assert answer(f"SELECT COUNT(*) FROM t WHERE {condition}", t=path) == every, condition
            query = f"SELECT g, COUNT(*) FROM (SELECT x, g FROM t) WHERE {condition} GROUP BY g"
            assert answer(query, t=path, keys=[0, 1]) == by_group, condition
        together = [[counts(VALUES[name], each)[0][0][0] for each in CONDITIONS]]
        for written_as in ("COUNT(*) FILTER ({})", "SUM(CASE WHEN {} THEN 1 ELSE 0 END)"):
            asked = ", ".join(f"{written_as.format(each)} AS c{at}" for at, each in enumerate(CONDITIONS))
            assert answer(f"SELECT {asked} FROM t", t=path, bounds=(0, 1)) == together, written_as
        missing = [[sum(map(is_missing, VALUES[name]))]]
        assert answer("SELECT COUNT(*) FROM t WHERE x IS NULL", t=path) == missing

    @pytest.mark.parametrize("name", [pytest.param("one NaN", marks=pytest.mark.slow), "row groups with and without"])
    def test_of_views_patterns_and_frames(self, name, tmp_path):
        values = VALUES[name]
        for year in (2019, 2020):
            (tmp_path / f"year={year}").mkdir()
            path = written(values, "Arrow", tmp_path / f"year={year}" / "t.parquet")
        con = duckdb.connect()
        con.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
        con.execute(
            "CREATE VIEW nested AS SELECT pid, x, g FROM t WHERE x <= 5 OR x > 5; CREATE TABLE stored AS FROM t"
        )
        con.execute(f"ATTACH '{tmp_path}/other.db' AS other; CREATE TABLE other.stored AS FROM t")
        held = table(values)
        for condition in CONDITIONS:
            every, _ = counts(values, condition)
            for source in ("t", "nested", "stored", "other.stored"):
                assert answer(f"SELECT COUNT(*) FROM {source} WHERE {condition}", con=con) == every, source
            for frame in (held, pl.from_arrow(held), pl.from_arrow(held).lazy(), ds.dataset(path)):
                assert answer(f"SELECT COUNT(*) FROM t WHERE {condition}", t=frame) == every, type(frame)
            twice = [[2 * every[0][0]]]
            assert answer(f"SELECT COUNT(*) FROM t WHERE {condition}", t=str(tmp_path)) == twice
            assert answer(f"SELECT COUNT(*) FROM t WHERE {condition}", t=f"{tmp_path}/*/t.parquet") == twice

    def test_of_tables_together(self, tmp_path):
        path = written(VALUES["one NaN"], "Arrow", tmp_path / "t.parquet")
        own = {"person": "pid", "rows": 1, "t": path, "s": path}
        joined = "SELECT COUNT(DISTINCT pid) FROM t JOIN s USING (pid) WHERE {}"
        one_of = "SELECT COUNT(DISTINCT pid) FROM t WHERE pid IN (SELECT pid FROM s WHERE x <= 5)"
        assert answer(joined.format("t.x <= 5 AND s.x <= 5"), **own) == [[4]]
        assert answer(joined.format("t.x > 5"), **own) == [[0]]
        assert answer(joined.format("t.x IS NULL"), **own) == [[1]]
        assert answer(one_of, **own) == [[4]]


AGGREGATES = {
    "SELECT COUNT(x), COUNT(*) FROM t": {},
    "SELECT AVG(x), SUM(x), VAR_SAMP(x) FROM t": {},
    "SELECT MEDIAN(x), MIN(x), MAX(x) FROM t": {},
    "SELECT COUNT(DISTINCT x) FROM t": {},
    "SELECT CORR(x, pid) FROM t": {},
    "SELECT dp_mean(2 * x - 1, lo := 0, hi := 4) FROM t": {},
    "SELECT g, COUNT(x), AVG(x), MAX(x) FROM t GROUP BY g": {"keys": [0, 1]},
    "SELECT x, COUNT(*) FROM t GROUP BY x": {"keys": [2, 5, 0]},
    "SELECT dp_sum(s.x, lo := 0, hi := 4) FROM t JOIN s USING (pid)": {"person": "pid", "rows": 1},
    "SELECT AVG(x) FROM t": {"person": "g", "per_person": "mean"},
    "SELECT AVG(m) FROM (SELECT g, MAX(x) AS m FROM t GROUP BY g)": {"person": "g", "bounds": {"m": (0, 4)}},
}
BOUNDS = {"x": (0, 4), "pid": (0, 20)}


def curators(query, **tables):
    """What only curators see, without what was drawn; or the refusal."""
    options = {"bounds": BOUNDS} | AGGREGATES[query]
    found = pdrisk.sql(query, eps=10, curator=True, **options, **tables)
    return found[
        [name for name in found if name.endswith(("_n", "_sensitivity", "_worlds", "_identifiability", "_clamped"))]
    ]


class TestAggregates:
    """They read the file as they read the frame in pandas, for which NaN is missing."""

    @pytest.mark.sampled(9)
    @pytest.mark.parametrize("query", AGGREGATES)
    @pytest.mark.parametrize("name", VALUES)
    def test_as_of_frames(self, query, name, tmp_path):
        frame = table(VALUES[name]).to_pandas()
        wanted = curators(query, t=frame, s=frame)
        first = list(AGGREGATES).index(query) + list(VALUES).index(name)
        for writer in itertools.islice(itertools.cycle(WRITERS), first % len(WRITERS), first % len(WRITERS) + 2):
            path = written(VALUES[name], writer, tmp_path / "t.parquet")
            pd.testing.assert_frame_equal(curators(query, t=path, s=path), wanted)

    @pytest.mark.parametrize("name", VALUES)
    def test_registered_functions(self, name, tmp_path):
        con = duckdb.connect()
        pdrisk.register(con)
        there = [x for x in VALUES[name] if x is not None and not math.isnan(x)]
        clamped = [min(max(x, 0.0), 1.5) for x in there]
        query = "SELECT dp_count(x, eps := 1e9), dp_sum(x, eps := 1e9, lo := 0, hi := 1.5) FROM '{}'"
        for writer in WRITERS:
            path = written(VALUES[name], writer, tmp_path / "t.parquet")
            assert con.execute(query.format(path)).fetchone() == pytest.approx((len(there), sum(clamped)), abs=1e-3)


QUESTIONS = {
    "count": lambda d: d.count("x", eps=10),
    "condition": lambda d: d.query("x <= 5").count(eps=10),
    "its opposite": lambda d: d.query("not (x <= 5)").count(eps=10),
    "both sides": lambda d: d.query("x >= 0 and x != 3").count(eps=10),
    "list": lambda d: d.query("x not in [1, 2]").count(eps=10),
    "sum": lambda d: d.sum("x", eps=10, bounds=(0, 4)),
    "mean": lambda d: d.mean("x", eps=10, bounds=(0, 4)),
    "var": lambda d: d.var("x", eps=10, bounds=(0, 4)),
    "median": lambda d: d.median("x", eps=10, bounds=(0, 4), mechanism="laplace"),
    "max": lambda d: d.max("x", eps=10, bounds=(0, 4), mechanism="laplace"),
    "proportion": lambda d: d.proportion("x <= 5", eps=10),
    "different": lambda d: d.nunique("x", eps=10),
    "assigned": lambda d: d.assign(y="x * 2").count("y", eps=10),
    "hist": lambda d: d.hist("x", bins=[0, 2, 4], eps=10),
}


class TestNeighbours:
    """One person's NaN changes an answer by their own record, and fails no question."""

    @pytest.mark.sampled(8)
    @pytest.mark.parametrize("question", QUESTIONS)
    @pytest.mark.parametrize("writer", WRITERS)
    def test_as_of_frames(self, question, writer, tmp_path):
        without = [1.0, 2.0, 2.0, 5.0, 3.0, 0.5]
        for values in (without, [*without, NAN], [NAN, *without], [*without, NAN, NAN]):
            frame = pdrisk.Dataset(table(values).to_pandas())
            file = pdrisk.Dataset(written(values, writer, tmp_path / "t.parquet"))
            wanted, found = (QUESTIONS[question](each) for each in (frame, file))
            if isinstance(found, pd.DataFrame):
                pd.testing.assert_frame_equal(found, wanted, check_index_type=False)
            else:
                assert found.value == wanted.value
                assert found.curator.local_sensitivity == pytest.approx(wanted.curator.local_sensitivity)

    def test_every_statement_is_paid_and_answered(self, book, tmp_path):
        ledger = book(eps=100)
        for values in ([1.0, 2.0, 3.0], [1.0, 2.0, NAN]):
            d = pdrisk.Dataset(written(values, "Arrow", tmp_path / "t.parquet"), ledger=ledger, version="1")
            assert 0 <= d.mean("x", eps=1, bounds=(0, 4), fresh=True).value <= 4


ASKED = {
    "method": lambda d: d.mean("x", eps=1, bounds=(0, 4)).value,
    "filtered": lambda d: d.query("x <= 5").count(eps=1).value,
    "SQL": lambda d: d.sql("SELECT AVG(x) FROM data WHERE x <= 5", eps=1, bounds=(0, 4)).to_numpy().tolist(),
    "relations": lambda d: d.sql(
        "SELECT COUNT(DISTINCT a.pid) FROM data a JOIN data b USING (pid) WHERE a.x <= 5", eps=1
    ).to_numpy().tolist(),
    "join": lambda d: d.join(pd.DataFrame({"x": [1.0, 2.0], "weight": [3, 4]}), on="x").sum(
        "weight", eps=1, bounds=(0, 9)
    ).value,
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_what_is_remembered_stays(name, book, tmp_path, monkeypatch):
    """Answers that were paid for when files were read by their statistics."""
    ledger, ask = book(), ASKED[name]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pid": range(9), "x": [float(each) for each in range(9)]}), path)
    with monkeypatch.context() as before:
        before.setattr("pdrisk._sql.tables.opened_sources.by_record", lambda sql, columns: sql)
        before.setattr("pdrisk.engines.sql.servers.parquet_scan.CAN_HAVE_NAN", "")
        first = ask(pdrisk.Dataset(path, person="pid", per_person="one", ledger=ledger, version="1"))
    left = ledger.remaining().eps
    assert ask(pdrisk.Dataset(path, person="pid", per_person="one", ledger=ledger, version="1")) == first
    assert ledger.remaining().eps == left
