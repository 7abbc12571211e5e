"""Groups between the ends of listed keys, read without carrying the keys: they say what a join with the keys says."""

from dataclasses import fields, replace

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.summary import Needs, Ranks
from pdrisk._core.universe import Universe
from pdrisk._model.asked_groups import SingleKeys, listed_at
from pdrisk.engines.sql.dialects.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.servers import carried_keys
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.summary import reading
from pdrisk.engines.sql.summary.listed_span import FARTHEST, FEWEST, WIDEST, at_keys, by_span
from pdrisk.engines.sql.summary.summary_plan import Counted, Summarised, SummaryPlan

DUCKDB = DuckDBDialect()
UNIVERSE = Universe(-1.0, 3.0)
MEAN = Needs(places=True, steps=True, ends=True)
ROWS = 4000


def table(groups: int, first: int, dtype: str = "BIGINT") -> duckdb.DuckDBPyConnection:
    """Records of every kind in groups from ``first`` on, of which some are empty, and of the missing group."""
    rng = np.random.default_rng(groups)
    numbers = first + rng.integers(-groups, 2 * groups, ROWS) // 3 * 3
    gaps = np.array([np.nan, np.inf, -np.inf, 1e300, -0.0])
    x = np.where(rng.random(ROWS) < 0.1, rng.choice(gaps, ROWS), rng.normal(1, 3, ROWS))
    frame = pd.DataFrame({"g": pd.array(numbers, dtype="Int64"), "x": x})
    frame.loc[rng.random(ROWS) < 0.05, "g"] = pd.NA
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute(
        f"CREATE TABLE t AS SELECT CAST(g AS {dtype}) AS g, CASE WHEN x < 9 OR x > 9 THEN x END AS x FROM frame"
    )
    return con


def plan_of(keys: list[int], *parts: Summarised | Counted, group: str = "CAST(g AS BIGINT)") -> SummaryPlan:
    relation, _ = DUCKDB.keys(["BIGINT"], [keys])
    return SummaryPlan("t", (), (), (group,), relation, parts or (Summarised("x", UNIVERSE, MEAN), Counted("x > 0.5")))


def listed(keys):
    return listed_at(SingleKeys(keys), 0)


def both(con: duckdb.DuckDBPyConnection, plan: SummaryPlan, keys: list[int]):
    """What is read by a join with the keys, and by the span of them, with the statements."""
    answers, seen = [], []

    def fetch(sql, values):
        seen.append(sql)
        return fetched(con, sql, values)

    for own in (plan, by_span(plan, [listed(keys)], DUCKDB)):
        answers.append(reading.read(fetch, own, [listed(keys)], DUCKDB)[0])
    return answers, seen


def assert_equal(one, other) -> None:
    for a, b in zip(one, other, strict=True):
        for field in fields(a):
            left, right = (getattr(each, field.name) for each in (a, b))
            if isinstance(left, np.ndarray):
                np.testing.assert_array_equal(left, right, err_msg=field.name)
                assert left.dtype == right.dtype
            elif not isinstance(left, dict):
                assert (left is None) == (right is None)


@pytest.mark.parametrize("first", [0, -500, 2**31, FARTHEST - 2 * FEWEST - 7, -FARTHEST + 3 * FEWEST])
@pytest.mark.parametrize("step", [1, WIDEST])
@pytest.mark.parametrize("condition", ["", "x BETWEEN -5 AND 5"])
def test_it_is_what_a_join_says(first, step, condition):
    """Of groups in any order, some without records, beside others that are not listed."""
    keys = list(range(first, first + step * FEWEST, step))
    np.random.default_rng(1).shuffle(keys)
    plan = plan_of(keys)
    plan = replace(plan, where=(condition,)) if condition else plan
    (joined, spanned), seen = both(table(2 * FEWEST, first), plan, keys)
    assert_equal(joined, spanned)
    assert any("$1" in sql for sql in seen) and any("BETWEEN CAST" in sql and "$1" not in sql for sql in seen)
    assert 0 < (joined[0].n > 0).sum() < FEWEST


def test_nobody_in_any_group():
    """No group of the span occurs, or no row at all."""
    for first in (10**6, 0):
        con = table(300, 0)
        if not first:
            con.execute("DELETE FROM t")
        keys = list(range(first, first + FEWEST))
        (joined, spanned), _ = both(con, plan_of(keys), keys)
        assert_equal(joined, spanned)
        assert not spanned[0].n.any() and len(spanned[0].n) == FEWEST


def test_keys_beside_a_group_that_is_wide():
    """Whole numbers that may not fit 64 bits, as they are of computed keys: none makes a statement fail."""
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE t AS SELECT CAST(i % 400 AS HUGEINT) AS g, CAST(i % 7 AS DOUBLE) AS x FROM range({ROWS}) r(i)"
    )
    con.execute("INSERT INTO t VALUES (CAST('9223372036854775808' AS HUGEINT), 1.0)")
    keys = list(range(FEWEST))
    (joined, spanned), _ = both(con, plan_of(keys, group="g"), keys)
    assert_equal(joined, spanned)


class TestWhichPlans:
    def between(self, keys, *parts, dialect=DUCKDB):
        return by_span(plan_of(list(range(9)), *parts), [listed(keys)], dialect).between

    def test_the_limits(self):
        keys = list(range(FEWEST))
        assert self.between(keys) == (0, FEWEST - 1)
        assert self.between(keys[1:]) is None
        assert self.between([*keys[1:], WIDEST * FEWEST]) == (1, WIDEST * FEWEST)
        assert self.between([*keys[1:], WIDEST * FEWEST + 1]) is None
        assert self.between([FARTHEST - 1 - key for key in keys]) == (FARTHEST - FEWEST, FARTHEST - 1)
        assert self.between([FARTHEST - key for key in keys]) is None
        assert self.between([key - FARTHEST for key in keys]) is None

    @pytest.mark.parametrize("other", [None, True, 1.0, "1"])
    def test_keys_that_are_no_whole_numbers(self, other):
        assert self.between([*range(2, FEWEST + 2), other]) is None

    @pytest.mark.parametrize(
        "needs",
        [
            Needs(squares=True), Needs(windows=frozenset({0.5})), Needs(ends=True, seconds=True),
            Needs(size_sums=True), Needs(places=True, ranks=frozenset({Ranks(1, 2, 0, 5, 5)})),
        ],
        ids=["squares", "windows", "seconds", "sizes", "ranks"],
    )  # fmt: skip
    def test_more_than_one_pass(self, needs):
        assert self.between(list(range(FEWEST)), Summarised("x", UNIVERSE, needs)) is None

    def test_others(self):
        keys = listed(range(FEWEST))
        assert self.between(keys, dialect=Dialect()) is None
        plan = plan_of(keys)
        assert by_span(replace(plan, keys=None), [keys], DUCKDB).between is None
        assert by_span(plan, None, DUCKDB) is plan and by_span(plan, [keys, keys], DUCKDB) is plan


def test_masked_numbers_stay_masked():
    found = {"g0": np.array([7, 5]), "n": np.ma.array([1, 2], mask=[False, True])}
    taken = at_keys(found, (5, 8), listed([8, 5, 7]))["n"]
    assert np.ma.getmaskarray(taken).tolist() == [True, True, False] and taken[2] == 1


def test_the_statement_shown_is_the_one_sent():
    keys = list(range(FEWEST))
    asked = {"eps": 1, "bounds": (0, 9), "by": "g", "keys": keys}
    (text,) = pdrisk.statements("mean(x)", "t", {"x": "DOUBLE", "g": "BIGINT"}, dialect="duckdb", **asked)
    assert f"BETWEEN CAST('0' AS BIGINT) AND CAST('{FEWEST - 1}' AS BIGINT)" in text and "$1" not in text


@pytest.mark.parametrize("person", [{}, {"person": "p", "groups": 2, "per_person": "mean"}])
def test_public_answers(person):
    """Answers at a huge eps are those of a plain query; of people with rows in several groups, too."""
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT i % 300 AS g, i // 2 AS p, CAST(i % 7 AS DOUBLE) AS x FROM range(3000) r(i)")
    keys = [*range(299, 20, -1), 400]
    data = pdrisk.Dataset((con, "t"), bounds={"x": (0, 7)})
    with pytest.warns(pdrisk.DoubtfulReleaseWarning):
        found = data.count("x", eps=1e6, by="g", keys=keys, **person)
    expected = con.execute("SELECT g, COUNT(*) FROM t GROUP BY g").df().set_index("g").iloc[:, 0]
    assert list(found.index) == keys
    assert found.iloc[:, 0].to_numpy().round().tolist() == expected.reindex(keys).fillna(0).tolist()


def test_whole_numbers_are_carried_as_they_are(monkeypatch):
    """Those of several columns, too: to look at each of a million takes seconds."""
    monkeypatch.setattr(carried_keys, "_carried", None)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 3 AS g, i % 4 AS h FROM range(12) r(i)")
        for by, keys in (("g", [2, 0, 1]), ("g, h", {"g": [0, 1, 2], "h": [3, 0]})):
            answer = pdrisk.sql(f"SELECT {by}, COUNT(*) AS n FROM t GROUP BY {by}", con, eps=10**6, keys=keys)
            assert answer["n"].tolist() == ([4] * 3 if by == "g" else [1] * 6)
