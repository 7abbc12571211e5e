"""HISTOGRAM(x): a count for each public value of x, as a MAP, for one eps, since the values are disjoint groups."""

from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

ROWS = [("a", 1, True), ("a", 1, False), ("a", 2, True), ("b", 2, True), ("b", None, False), (None, 1, True)]


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute("CREATE TABLE t (g VARCHAR, x INTEGER, b BOOLEAN)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    return con


@pytest.fixture
def draws(monkeypatch):
    return without_noise(monkeypatch)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT HISTOGRAM(x) AS h FROM t", {"x": [1, 2]}),
        ("SELECT HISTOGRAM(x) FROM t", [1, 2, None]),
        ("SELECT HISTOGRAM(b) AS h FROM t WHERE g = 'a'", None),
        ("SELECT HISTOGRAM(g) FILTER (WHERE b) AS h FROM t WHERE g IN ('a', 'b')", None),
        ("SELECT g, HISTOGRAM(b) AS h FROM t WHERE g IN ('a', 'b') GROUP BY g ORDER BY g DESC", None),
        ("SELECT HISTOGRAM(IF(x = 1, 1, 0)) AS h, upper(g) AS u FROM t GROUP BY ALL", {"u": ["A", "B"]}),
        ("WITH c AS (SELECT x + 1 AS y, g FROM t) SELECT HISTOGRAM(y) AS h FROM c", [2, 3]),
        ("SELECT g AS k, HISTOGRAM(x) AS h FROM t GROUP BY 1 ORDER BY k LIMIT 1", {"k": ["a", "b"], "x": [1, 2]}),
    ],
)  # fmt: skip
def test_it_is_that_of_duckdb(query, keys, con, draws):
    """With zeros for listed values that do not occur, where DuckDB has no entry."""
    answer = pdrisk.sql(query, con, eps=1, keys=keys)
    exact = con.execute(query).df()
    exact = exact[exact.iloc[:, -1].notna()]  # a group of nobody's town is not listed
    assert answer.columns.tolist() == exact.columns.tolist()
    for name in answer:
        if isinstance(answer[name][0], dict):
            assert [Counter(each) for each in answer[name]] == [Counter(each) for each in exact[name]]
            assert {type(number) for each in answer[name] for number in each.values()} == {int}
        else:
            assert answer[name].tolist() == exact[name].tolist()
    assert {eps for _, _, eps in draws} == {1}  # of each count, and they cost it once


def test_one_record_changes_one_count_by_one(con, draws):
    query = "SELECT g, HISTOGRAM(x) AS h FROM t GROUP BY g"
    keys = {"g": ["a", "b"], "x": [1, 2]}

    def counts(rows):
        table = pd.DataFrame(rows, columns=["g", "x", "b"])
        return np.array([list(each.values()) for each in pdrisk.sql(query, eps=1, keys=keys, t=table)["h"]])

    all_of_them = counts(ROWS)
    for at in range(len(ROWS)):
        change = all_of_them - counts(ROWS[:at] + ROWS[at + 1 :])
        assert np.abs(change).sum() == (None not in ROWS[at][:2])


def test_it_is_paid_once(con, book):
    ledger = book(eps=1)
    answer = pdrisk.sql("SELECT HISTOGRAM(x) AS h FROM t", con, eps=Fraction(1, 2), keys=[1, 2, 3], ledger=ledger)
    assert ledger.remaining().spent == 0.5 and list(answer["h"][0]) == [1, 2, 3]
    said = " ".join(pdrisk.explain(answer, "publication").split())
    assert "h with noise" in said and "all groups cost it once" in said


def test_whole_numbers_of_frames_stay_whole(draws):
    frame = pd.DataFrame({"x": [3, 3, 4], "y": [0.5, 0.5, 1.0]})
    (found,) = pdrisk.sql("SELECT HISTOGRAM(x) AS h FROM t", eps=1, keys=[3, 4], t=frame)["h"]
    assert repr(found) == "{3: 2, 4: 1}"
    (found,) = pdrisk.sql("SELECT HISTOGRAM(y) AS h FROM t", eps=1, keys=[0.5, 1.0], t=frame)["h"]
    assert repr(found) == "{0.5: 2, 1.0: 1}"


def test_private_keys():
    frame = pd.DataFrame({"g": ["a"] * 300 + ["b"] * 200, "x": [1] * 250 + [2] * 249 + [3]})
    query = "SELECT HISTOGRAM(x) AS h FROM t"
    (found,) = pdrisk.sql(query, eps=1e4, keys="private", delta=1e-6, t=frame)["h"]
    assert found == {1: 250, 2: 249}
    (none,) = pdrisk.sql(f"{query} WHERE x > 3", eps=1, keys="private", delta=1e-6, t=frame)["h"]
    assert none == {}
    by = pdrisk.sql("SELECT g, HISTOGRAM(x) AS h FROM t GROUP BY g", eps=1e4, keys="private", delta=1e-6, t=frame)
    assert by.to_numpy().tolist() == [["a", {1: 250, 2: 50}], ["b", {2: 199}]]


def test_what_is_withheld_is_null(con, book):
    ledger = book(eps=9, policy={"least_group": {"size": 1000, "eps": 0.1}})
    (found,) = pdrisk.sql("SELECT HISTOGRAM(x) AS h FROM t", con, eps=1, keys=[1, 2], ledger=ledger)["h"]
    assert found == {1: None, 2: None}


def test_people_with_several_rows(draws):
    frame = pd.DataFrame({"pid": [1, 1, 2, 3], "x": [1, 1, 1, 2]})
    options = {"keys": [1, 2], "person": "pid", "t": frame}
    with pytest.raises(pdrisk.ParameterError, match="COUNT is a number of rows here"):
        pdrisk.sql("SELECT HISTOGRAM(x) AS h FROM t", eps=1, **options)
    for query in ("SELECT HISTOGRAM(pid) AS h FROM t", "SELECT pid, HISTOGRAM(x) AS h FROM t GROUP BY pid"):
        with pytest.raises(pdrisk.ParameterError, match="HISTOGRAM by the person would"):
            pdrisk.sql(query, eps=1, per_person="one", **options)
    (found,) = pdrisk.sql("SELECT HISTOGRAM(x) AS h FROM t", eps=1, per_person="one", **options)["h"]
    assert found == {1: 2, 2: 1}
