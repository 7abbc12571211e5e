"""People with several rows in SQL: the curator's numbers, as on frames of the same rows."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
import pdrisk._sql.tables.compiled_sources
from pdrisk import Dataset
from pdrisk._core.contributions import Contributions
from pdrisk._core.people import local_sensitivity, world_range
from pdrisk._core.universe import Universe
from pdrisk._model.arguments import statistic
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from test_people import panel
from test_people_sensitivity import people_of, populations, together

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FACTS = ("n", "local_sensitivity", "two_worlds", "many_worlds", "clamped", "identifiability")
K = 3
IN_ALL = {"by": "g", "keys": ["a", "b", "nobody's"]}  # groups, with K rows of a person in all of them
GROUPS = {**IN_ALL, "groups": 2}
BOUNDS = {"x": (-1, 10)}


def rows(seed, people=25):
    """Nobody has more than K rows, so that none is chosen: some equal, missing, or beyond the bounds."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({"pid": np.repeat(np.arange(people), draw.integers(1, K + 1, people))})
    frame["x"] = draw.choice([-3.0, -1.0, 0.0, 2.5, 9.0, 12.0, np.nan], len(frame))
    frame["g"] = draw.choice(list("abc"), len(frame))
    frame.loc[::9, "pid"] = np.nan
    return frame


def table_of(frame, con):
    con.register("frame", frame)
    con.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM frame")
    return con, "people"


def summed(people):
    """The sums that an engine tells, by their definition."""
    sizes, groups, own = [], [], []
    contributions = {}
    for group, person, value in zip(people.groups, people.persons, people.values, strict=True):
        contributions.setdefault((int(group), int(person)), []).append(float(value))
    for group in range(people.size):
        alike = {}
        for (of, _), values in contributions.items():
            if of == group:
                alike.setdefault(len(values), []).append(sum(values))
        for size, sums in alike.items():
            sizes += [size, size]
            groups += [group, group]
            own += [min(sums), max(sums)]
    integers = np.array(groups, dtype=np.int64), np.array(sizes, dtype=np.int64)
    return Contributions(*integers, people.n, people.sums(people.values)[0], np.array(own))


@pytest.mark.parametrize("name", ["count", "sum", "mean", "proportion"])
@pytest.mark.parametrize(("k", "most"), [(2, 3), pytest.param(3, 3, marks=pytest.mark.slow)])
def test_the_ends_of_sums_tell_all(name, k, most):
    """Of every small multiset of people: no other contribution of a size moves the answer farther."""
    asked, universe = statistic(name), Universe(0.0, 4.0)
    groups = list(populations(k, most))
    people = people_of(*groups)
    both = summed(people), people.of_statistic(asked)
    value = np.array([0.0 if name in ("count", "sum") else 2.0] * len(groups))
    for at, group in enumerate(groups):
        records = together(group)
        if records:
            value[at] = {"count": len(records), "sum": sum(records)}.get(name, sum(records) / len(records))
    changes = [local_sensitivity(asked, each, universe, value, k) for each in both]
    assert np.isfinite(changes).all()
    np.testing.assert_allclose(*changes, rtol=1e-12)
    np.testing.assert_allclose(*(world_range(asked, each, universe) for each in both), atol=1e-12)


ASKS = {
    "count": lambda d, **how: d.count("x", **how),
    "rows": lambda d, **how: d.count(**how),
    "sum": lambda d, **how: d.sum("x", **how),
    "whole sum": lambda d, **how: d.sum("x", step=1, **how),
    "mean": lambda d, **how: d.mean("x", **how),
    "proportion": lambda d, **how: d.proportion("x > 2", **how),
    "together": lambda d, **how: d.agg({"x": ["count", "mean", "sum"]}, **how),
    "different": lambda d, **how: d.nunique("x", **how),
    "median": lambda d, **how: d.median("x", **how),
    "quantile": lambda d, **how: d.quantile("x", 0.9, **how),
    "min": lambda d, **how: d.min("x", **how),
    "max": lambda d, **how: d.max("x", **how),
    "var": lambda d, **how: d.var("x", **how),
    "std": lambda d, **how: d.std("x", ddof=0, **how),
    "several": lambda d, **how: d.agg({"x": ["median", "max", "var", "count"]}, **how),
}
HOW = {"eps": 1, "rows": K, "curator": True}


def facts_of(answer):
    """The curator's numbers, of each group."""
    if isinstance(answer, pd.DataFrame):
        return answer[list(FACTS)].to_numpy(dtype=float)
    return np.array([getattr(answer.curator, name) for name in FACTS])


class TestAsOfFrames:
    @pytest.mark.sampled(13)
    @pytest.mark.parametrize("by", [{}, GROUPS, IN_ALL], ids=["all", "groups", "in all groups"])
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    @pytest.mark.parametrize("ask", ASKS)
    def test_methods(self, ask, mechanism, by):
        for seed in range(2):
            frame, con = rows(seed), duckdb.connect()
            found = [
                facts_of(ASKS[ask](Dataset(data, person="pid", bounds=BOUNDS), mechanism=mechanism, **HOW, **by))
                for data in (frame, table_of(frame, con))
            ]
            assert not np.isnan(found[0][..., 1]).any()
            np.testing.assert_allclose(*found, rtol=1e-9)

    @needs_server
    @pytest.mark.parametrize("by", [GROUPS, IN_ALL], ids=["groups", "in all groups"])
    @pytest.mark.parametrize("ask", ASKS)
    def test_on_a_server(self, ask, by):
        frame = rows(5).dropna(subset=["pid"])
        with database() as url, connected(url) as con:
            con.execute("CREATE TABLE people (pid bigint, x double precision, g text)")
            with con.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", frame.itertuples(index=False, name=None))
            found = [
                facts_of(ASKS[ask](Dataset(data, person="pid", bounds=BOUNDS), mechanism="laplace", **HOW, **by))
                for data in (frame, (con, "people"))
            ]
        np.testing.assert_allclose(*found, rtol=1e-9)

    @pytest.mark.parametrize("by", [GROUPS, IN_ALL], ids=["groups", "in all groups"])
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    @pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "AVG(x)", "MEDIAN(x)", "MIN(x)"])
    def test_sql(self, aggregate, mechanism, by):
        d = Dataset(rows(3), person="pid", bounds=BOUNDS)
        name = {"COUNT(*)": "rows", "SUM(x)": "sum", "AVG(x)": "mean", "MEDIAN(x)": "median", "MIN(x)": "min"}[
            aggregate
        ]
        own = facts_of(ASKS[name](d, mechanism=mechanism, **HOW, **by))
        how = {**by, "mechanism": mechanism}
        del how["by"]
        answer = d.sql(f"SELECT g, {aggregate} AS v FROM data GROUP BY g", **HOW, **how)
        np.testing.assert_allclose(answer[[f"v_{each}" for each in FACTS]].to_numpy(dtype=float), own, rtol=1e-9)

    @needs_server
    @pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_as_many_rows_of_all_groups(self, rows):
        """Of those in listed groups that the filter keeps, and that hold a value; on each engine some of their own."""
        frame = panel(50, 3)[["pid", "x", "g"]].astype({"pid": "int64"})
        used = frame[frame["x"].notna() & (frame["x"] < 9) & frame["g"].isin(["a", "b"])]
        expected = used.groupby("pid").size().clip(upper=rows).sum()
        how = {"eps": 1, "rows": rows, "keys": ["a", "b", "nobody's"], "curator": True}
        query = "SELECT g, AVG(x) AS v FROM data WHERE x < 9 GROUP BY g"
        with database() as url, connected(url) as con:
            con.execute("CREATE TABLE people (pid bigint, x double precision, g text)")
            with con.cursor() as cursor:
                written = frame.astype(object).where(frame.notna(), None)
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", written.itertuples(index=False, name=None))
            for data in (frame, table_of(frame, duckdb.connect()), (con, "people")):
                d = Dataset(data, person="pid", bounds=BOUNDS)
                numbers = [
                    d.mean("x", by="g", where="x < 9", **how)["n"], d.count("x", by="g", where="x < 9", **how)["n"],
                    d.sql(query, **how)["v_n"],
                ]  # fmt: skip
                assert [int(each.sum()) for each in numbers] == [expected] * 3
                assert all(each.iloc[-1] == 0 for each in numbers)
                alone = frame[frame["x"] < 9].groupby("pid").size()
                left_out = d.mean("x", where="x < 9", eps=1, rows=rows).curator.left_out
                assert left_out == pytest.approx(1 - alone.clip(upper=rows).sum() / alone.sum())

    def test_assess(self):
        frame = rows(4)
        found = [
            Dataset(data, person="pid", bounds=BOUNDS).assess(
                "x", ["count", "mean", "median", "std"], eps=[0.1, 1], rows=K
            )
            for data in (frame, table_of(frame, duckdb.connect()))
        ]
        pd.testing.assert_frame_equal(*found, rtol=1e-9)

    def test_joined(self):
        """The rows of a join are those of the merged frame."""
        codes = pd.DataFrame({"g": ["a", "b"], "chapter": ["I", "II"]})
        frame = rows(6)
        joined = Dataset(frame, person="pid", bounds=BOUNDS).join(codes, on="g")
        merged = Dataset(frame.merge(codes, on="g"), person="pid", bounds=BOUNDS)
        how = {"by": "chapter", "keys": ["I", "II"], "groups": 2}
        found = [facts_of(each.mean("x", mechanism="laplace", **HOW, **how)) for each in (joined, merged)]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


class TestWhatIsRead:
    """In the statement of the answer itself, and only for curators."""

    @pytest.fixture
    def statements(self, monkeypatch):
        seen, fetched = [], pdrisk._sql.tables.compiled_sources.fetched

        def noted(connection, sql, values):
            seen.append(sql)
            return fetched(connection, sql, values)

        for module in ("pdrisk._sql.tables.compiled_sources", "pdrisk._sql.dataset.duckdb_table"):
            monkeypatch.setattr(f"{module}.fetched", noted)
        return seen

    @pytest.mark.parametrize("ask", [
        lambda d, **how: d.mean("x", eps=1, rows=K, **GROUPS, **how),
        lambda d, **how: d.sql(
            "SELECT g, AVG(x) AS v FROM data GROUP BY g", eps=1, rows=K, groups=2, keys=GROUPS["keys"], **how
        ),
    ], ids=["method", "sql"])  # fmt: skip
    def test_one_statement(self, statements, ask):
        d = Dataset(table_of(rows(1), duckdb.connect()), person="pid", bounds=BOUNDS)
        ask(d)
        (plain,) = statements
        ask(d, curator=True)
        (_, with_contributions) = statements
        assert "contributions_0" not in plain
        assert "contributions_0" in with_contributions

    def test_not_where_a_person_has_one_record(self, statements):
        d = Dataset(table_of(rows(1), duckdb.connect()), person="pid", bounds=BOUNDS)
        d.mean("x", eps=1, per_person="mean", curator=True)
        assert "contributions_0" not in statements[-1]


def test_curators_numbers_of_bins_are_those_of_duckdb():
    """Nobody tells who is in which bin, so risks are bounds; a person may bring all of her rows to one bin."""
    frame = pd.DataFrame({"pid": [1, 1, 2, 3] * 9, "x": [1.0, 2, 3, 4] * 9})
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    asked = {"bins": 2, "bounds": (0, 5), "eps": 1, "rows": 18, "curator": True}
    of_frame, of_table = (Dataset(each, person="pid").hist("x", **asked) for each in (frame, (con, "people")))
    known = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"]
    pd.testing.assert_frame_equal(of_frame[known], of_table[known])
    assert of_frame["local_sensitivity"].tolist() == [18, 18]


@pytest.fixture(scope="module")
def spark():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session()
    yield made
    made.stop()


@needs_spark
@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("by", [{}, GROUPS, IN_ALL], ids=["all", "groups", "in all groups"])
@pytest.mark.parametrize("ask", ["different", "several"])
def test_on_spark(spark, ask, by):
    frame = rows(2)
    plain = frame.astype(object).where(frame.notna(), None)
    stored = spark.createDataFrame([*plain.itertuples(index=False, name=None)], "pid double, x double, g string")
    found = [
        facts_of(ASKS[ask](Dataset(data, person="pid", bounds=BOUNDS), mechanism="laplace", **HOW, **by))
        for data in (frame, stored)
    ]
    assert not np.isnan(found[0][..., 1]).any()
    np.testing.assert_allclose(*found, rtol=1e-9)
    used = frame.dropna().groupby("pid").size()
    left_out = Dataset(stored, person="pid", bounds=BOUNDS).mean("x", eps=1, rows=1).curator.left_out
    assert left_out == pytest.approx(1 - len(used) / used.sum())
