"""Records far from the rank that is asked for are moved together: answers and losses are the same as without."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from every_engine import of_frame
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.summary import Needs, Ranks
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import exponential
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk.engines.conformance import GroupedColumn
from pdrisk.engines.numpy import cells, ranks, small_groups
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary import bands

UNIVERSE = Universe(0.0, 100.0)
STATISTICS = [
    Quantile(0.5),
    Quantile(0.3),
    Quantile(0.0),
    Min(),
    Max(),
    Min(bounds_reached=True),
    Max(bounds_reached=True),
    Quantile(0.999),
]
LOSSES = [Fraction(1), Fraction(30), Fraction(1000)]
KEYS = ("many", "heaped", "few", "one", "nobody", "alike", "two heaps")


def table(seed):
    """Groups of records with gaps and heaps, in any order."""
    rng = np.random.default_rng(seed)
    groups = {
        "many": rng.uniform(-5, 105, 150),
        "heaped": rng.choice([-3, 20, 30, 30.0004, 30.0006, 60, 60.0009, 104.0], 90),
        "few": rng.integers(40, 45, 5).astype(float),
        "one": np.array([7.25]),
        "alike": np.full(40, 12.5),
        "two heaps": np.repeat([12.5, 99.0], [30, 31]),
    }
    rows = [(float(value), key) for key, values in groups.items() for value in values] + [(None, "few"), (1.0, None)]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    return GroupedColumn("DOUBLE", *zip(*rows, strict=True), keys=KEYS)


def told(mechanism, summary, records):
    """Whatever is made of the cells of each group."""

    def bits(size):
        return np.random.default_rng(5).integers(0, 2**64, size, dtype=np.uint64)

    own = summary if len(summary.n) == 1 else summary.of_rows(np.zeros(len(records), dtype=int))
    return [
        mechanism.loss(summary),
        mechanism.loss_between_worlds(summary),
        mechanism.loss_between_worlds_by_eps(summary),
        mechanism.loss_of_records(records, own),
        mechanism.noise95(summary),
        *(mechanism.draw(summary, bits=lambda size, at=at: bits(size + at)[at:]) for at in range(3)),
    ]


def compare(opened, asked, statistics, eps, *, grouped):
    lines = tuple(Line("x", each, UNIVERSE, "given", mechanism="exponential") for each in statistics)
    groups = Groups(("g",), tuple((key,) for key in KEYS), "given") if grouped else None
    near = Query(lines, (eps,) * len(lines), groups=groups, reads=("x", "g") if grouped else ("x",))
    every = replace(near, shares=())
    first = [x for x, key in zip(asked.values, asked.groups, strict=True) if x is not None and key in (KEYS[0], None)]
    records = np.clip(np.array(first if not grouped else first[:-1]), 0, 100)
    for line, summary, full in zip(
        lines, opened(asked, near).read(near).summaries, opened(asked, every).read(every).summaries, strict=True
    ):
        mechanism = line.calibrated(eps)
        known = [name for name in ("cells", "whole_cells") if getattr(summary, name) is not None]
        assert known, "cells are read"
        for one, other in zip(told(mechanism, summary, records), told(mechanism, full, records), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{line.statistic.label} at {eps}")
        for q, window in full.windows.items():
            np.testing.assert_array_equal(summary.windows[q][:2], window[:2])


@pytest.mark.parametrize("grouped", [False, True], ids=["all rows", "groups"])
@pytest.mark.parametrize("eps", [LOSSES[1], *(pytest.param(each, marks=pytest.mark.slow) for each in LOSSES[::2])])
def test_nothing_is_told_otherwise(engine, eps, grouped):
    asked = table(1)
    for whole in (False, True):
        statistics = [replace(each, whole=whole) for each in STATISTICS]
        for each in statistics[:: 1 if whole else 3]:
            compare(engine, asked, [each], eps, grouped=grouped)
        compare(engine, asked, statistics, eps, grouped=grouped)


@pytest.mark.parametrize("spare", [0, ranks.SPARE_STEPS])
@pytest.mark.parametrize("grouped", [False, True], ids=["all rows", "groups"])
def test_nor_by_a_sample(monkeypatch, grouped, spare):
    """Of many records; bands may end among those of a point, and at the end of all records."""
    monkeypatch.setattr(ranks, "SAMPLE", 1000)
    monkeypatch.setattr(ranks, "SAMPLE_OF_MANY", 300)
    monkeypatch.setattr(ranks, "WORTH_SAMPLING", 1)
    monkeypatch.setattr(ranks, "SPARE_STEPS", spare)
    monkeypatch.setattr(cells, "RANKED", 0)
    rng = np.random.default_rng(4)
    heap = 30 + rng.uniform(0, 0.0004, 3000)  # at one point
    groups = {
        "many": rng.uniform(-5, 105, 3000),
        "heaped": np.concatenate([heap, rng.uniform(29.99, 30.01, 1000)]),
        "alike": heap,
        "two heaps": np.concatenate([heap, heap + 1]),
    }
    rows = [(float(value), key) for key, values in groups.items() for value in values]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    asked = GroupedColumn("DOUBLE", *zip(*rows, strict=True), keys=KEYS)
    for each in STATISTICS[:3]:
        compare(of_frame, asked, [each], Fraction(30), grouped=grouped)


@pytest.mark.parametrize("bits", [small_groups.CELL_BITS, 6])
def test_nor_by_cells(monkeypatch, bits):
    """Of groups too small for a sample."""
    monkeypatch.setattr(small_groups, "CELL_BITS", bits)
    monkeypatch.setattr(cells, "RANKED", 0)
    rng = np.random.default_rng(4)
    groups = dict(zip(KEYS, (rng.uniform(-5, 105, 70), 30 + rng.uniform(0, 0.0004, 60), [30.0] * 50), strict=False))
    rows = [(float(value), key) for key, values in groups.items() for value in values]
    asked = GroupedColumn("DOUBLE", *zip(*rows, strict=True), keys=KEYS)
    for each in STATISTICS[:3]:
        compare(of_frame, asked, [each], Fraction(30), grouped=True)


@pytest.fixture(scope="module")
def heaps():
    """A table with heaps, some of several values at one point; and a DuckDB that has it."""
    rng = np.random.default_rng(6)
    parts = [rng.uniform(-5, 105, 3000), np.full(2000, 30.0), 60 + rng.uniform(0, 0.0004, 1500), [np.inf, -np.inf]]
    values = rng.permutation(np.concatenate(parts))
    con = duckdb.connect()
    con.register("frame", pd.DataFrame({"x": np.append(values, np.nan)}))
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    return con, values


@pytest.mark.parametrize("reach", [bands.REACH, 0, -9], ids=["as it is", "few", "missed"])
@pytest.mark.parametrize("q", [0.4545, 0.5, 0.7])  # the first at the end of a heap
def test_a_band_in_sql_tells_the_same(monkeypatch, heaps, q, reach):
    """Whatever the sample: a band that misses the ranks is noticed."""
    con, values = heaps
    monkeypatch.setattr(bands, "SAMPLE", 800)
    monkeypatch.setattr(bands, "REACH", reach)
    lines = tuple(
        Line("x", Quantile(q), UNIVERSE, "given", mechanism=name) for name in ("exponential", "laplace", "exponential")
    )
    query = Query(lines, (Fraction(5),) * 3)
    people = SQLTable("people", stored_columns({"x": "DOUBLE"}), DuckDBDialect(), partial(fetched, con))
    summary, *_ = people.opened(query, people.header, None, bytes).read(query).summaries
    mechanism = lines[0].calibrated(Fraction(5))
    full = summary_of_one(values, UNIVERSE, mechanism.needs(mechanism.statistic))
    assert summary.n[0] == full.n[0] == 6502
    assert 3 <= len(summary.cells.point) < 200
    assert summary.windows[q][:3].tolist() == full.windows[q][:3].tolist()
    records = np.clip(values[:500], 0, 100)
    for one, other in zip(told(mechanism, summary, records), told(mechanism, full, records), strict=True):
        np.testing.assert_array_equal(one, other)


def test_few_records_are_told_apart():
    values = np.random.default_rng(1).uniform(0, 100, 200_000)
    mechanism = Line("x", Quantile(0.5), UNIVERSE, "given", mechanism="exponential").calibrated(Fraction(1))
    found = summary_of_one(values, UNIVERSE, mechanism.reads)
    assert 50 < len(found.cells.point) < 150
    assert found.cells.count.sum() == 200_000 == found.n[0]


def test_ranks_by_fractions():
    """Of n records those from ``before`` below the rank, rounded down, to ``after`` above it, rounded up."""
    n = np.arange(60)
    for a, b, offset, before, after in [(1, 2, 0, 2, 3), (3, 10, 1, 0, 0), (1, 3, -1, 1, 4), (999, 1000, 7, 3, 1)]:
        near = Ranks(a, b, offset, before, after)
        middle = [Fraction(a * one + offset, b) for one in n.tolist()]
        assert near.first(n).tolist() == [max(math.floor(at) - before, 1) for at in middle]
        assert near.last(n).tolist() == [min(math.ceil(at) + after, one) for at, one in zip(middle, n, strict=True)]
    everything = Ranks(1, 2, 0, None, None)
    assert everything.first(n).tolist() == [1] * 60 and everything.last(n).tolist() == n.tolist()


def test_whole_cells_win_over_ranks():
    mechanism = Line("x", Min(), UNIVERSE, "given", mechanism="exponential").calibrated(Fraction(1))
    assert not (mechanism.reads | Needs(whole_cells=True)).ranks
    assert (mechanism.reads | Needs(total=True)).ranks == mechanism.reads.ranks


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("first", [123.45, 400.0])
def test_a_quantile_that_is_answered_as_a_near_fraction(monkeypatch, first, grouped):
    """Of 60,000 records 30 are between q and the fraction: the list around one does not reach the rank of the other."""
    monkeypatch.setattr(exponential, "LARGEST_DENOMINATOR", 200)  # q .5000000009 of ten thousand million, made small
    exponential.fraction_of.cache_clear(), exponential.score_of.cache_clear()
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE t AS SELECT CASE WHEN i = 0 THEN {first} ELSE 400 + i / 100 END AS x, 'a' AS g "
        "FROM range(60000) r(i)"
    )
    options = {"eps": 10, "bounds": {"x": (0, 1000)}, **({"keys": {"g": ["a"]}} if grouped else {})}
    answer = pdrisk.sql(f"SELECT quantile_cont(x, 0.502) AS v FROM t{' GROUP BY g' * grouped}", con, **options)
    exponential.fraction_of.cache_clear(), exponential.score_of.cache_clear()
    assert answer["v"][0] == pytest.approx(700, abs=5)


def test_lists_that_are_too_short_are_read_again(monkeypatch):
    """Whatever a pivot misses: then all records are counted at their points."""
    monkeypatch.setattr("pdrisk.engines.sql.summary.aggregates.sides", lambda part, q: (4, 4))
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT i / 100 AS x, 'a' AS g FROM range(60000) r(i)")
    answer = pdrisk.sql("SELECT g, MEDIAN(x) AS v FROM t GROUP BY g", con, eps=1, bounds=(0, 1000), keys=["a"])
    assert answer["v"][0] == pytest.approx(300, abs=5)
