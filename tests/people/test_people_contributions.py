"""What databases tell of people with several rows, by definition: every small multiset of people, exact fractions."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

from oracle import DEFINITIONS
from pdrisk import Dataset
from pdrisk._core.spread import Var
from pdrisk._core.universe import Universe
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import Unit
from pdrisk.engines.conformance import GroupedColumn
from postgres_databases import connected, database, needs_server
from test_people_sensitivity import HI, LO, NAMES, additions, populations, together

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = (float(LO), float(HI))
BEYOND = {0.0: -7.0, 4.0: math.inf}  # what the bounds move to where it should be


def asked(data, name, k, **how):
    """The curator's numbers of a statistic, by its label."""
    d = Dataset(data, person="pid", bounds={"x": BOUNDS}, **how)
    call, _, option = name.removesuffix(")").partition("(")
    options = {"q": float(option)} if call == "quantile" else {"ddof": 0} if option else {}
    by = {"by": "g", "keys": how["keys"]["g"]} if "keys" in how else {}
    return getattr(d, call)("x", eps=1, rows=k, mechanism="laplace", curator=True, **options, **by)


def rows_of(every, *, moved=False):
    """A table of all populations, each a group of people of its own; some records lie beyond the bounds."""
    rows, pid = [], 0
    for g, people in enumerate(every):
        for values in people:
            pid += 1
            rows += [(g, pid, BEYOND.get(float(x), float(x)) if moved and pid % 3 else float(x)) for x in values]
    frame = pd.DataFrame(rows, columns=["g", "pid", "x"]).astype({"g": int, "pid": int, "x": float})
    return frame.sample(frac=1, random_state=1)


def largest_change(name, people, k):
    records = together(people)
    rests = [together(people[:i] + people[i + 1 :]) for i in range(len(people))]
    rests += [records + more for more in additions(records, k)]
    return max(DEFINITIONS[name].change(records, rest, LO, HI) for rest in rests)


def table_of(con, frame, name="people"):
    con.register("frame", frame)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM frame")
    return con, name


def check_groups(data, every, name, k):
    keys = {"g": list(range(len(every)))}
    found = asked(data, name, k, keys=keys, constant="g")
    expected = [largest_change(name, people, k) for people in every]
    np.testing.assert_allclose(found["local_sensitivity"], expected, atol=2e-7)
    return found


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "most"), [(2, 2), pytest.param(3, 2, marks=pytest.mark.slow),
                                         pytest.param(2, 3, marks=pytest.mark.slow)])  # fmt: skip
def test_every_small_table(name, k, most):
    every = list(populations(k, most))
    frame = rows_of(every, moved=True)
    found = check_groups(table_of(duckdb.connect(), frame), every, name, k)
    own = asked(frame, name, k, keys={"g": list(range(len(every)))}, constant="g")
    told = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"]
    np.testing.assert_allclose(found[told], own[told], atol=2e-7)


def test_different_values():
    """A value is gone with a person who alone has it."""
    every = list(populations(2, 2))
    frame, how = rows_of(every), {"keys": {"g": list(range(len(every)))}, "constant": "g"}
    found, own = (asked(data, "nunique", 2, **how) for data in (table_of(duckdb.connect(), frame), frame))
    told = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability"]
    np.testing.assert_allclose(found[told], own[told], atol=1e-12)
    pairs = [(set(people[0]), set(people[1])) if len(people) == 2 else None for people in every]
    expected = [1 / (1 + math.exp(-abs(len(each[0] - each[1]) - len(each[1] - each[0])) / 2)) for each in pairs if each]
    of_two = np.array([each is not None for each in pairs])
    np.testing.assert_allclose(found["identifiability"][of_two], expected, rtol=1e-12)


@needs_server
@pytest.mark.parametrize("name", NAMES)
def test_every_small_table_of_a_server(name):
    every = list(populations(2, 2))
    with database() as url, connected(url) as con:
        con.execute("CREATE TABLE people (g bigint, pid bigint, x double precision)")
        with con.cursor() as cursor:
            cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", rows_of(every).to_numpy().tolist())
        check_groups((con, "people"), every, name, 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_without_groups(name):
    """Where nothing is grouped, statements are others."""
    con, every = duckdb.connect(), list(populations(2, 2))[::7]
    for people in every:
        frame = rows_of([people])
        own = asked(table_of(con, frame), name, 2).curator
        assert own.local_sensitivity == pytest.approx(largest_change(name, people, 2), abs=2e-7), people
        expected = asked(frame, name, 2).curator
        for told in ("two_worlds", "many_worlds", "identifiability"):
            assert getattr(own, told) == pytest.approx(getattr(expected, told), abs=2e-7, nan_ok=True), people


@pytest.mark.whole
@pytest.mark.parametrize("name", ["median", "quantile(0.25)", "quantile(0.9)", "std", "max", "min"])
@pytest.mark.parametrize("by", [False, True])
def test_more_people(name, by):
    """Far from the ends, where most people are told by their sizes alone; ties, and one with many rows."""
    draw = np.random.default_rng(5)
    for k in (1, 5):
        sizes = draw.integers(1, k + 1, 300)
        frame = pd.DataFrame({"pid": np.repeat(np.arange(300), sizes)})
        frame["x"] = np.where(draw.random(len(frame)) < 0.2, 1.5, draw.uniform(0, 4, len(frame)))
        frame["g"] = frame["pid"] % 2
        how = {"keys": {"g": [0, 1, 7]}, "constant": "g"} if by else {}
        tables = frame, table_of(duckdb.connect(), frame)
        told = ["local_sensitivity", "two_worlds", "many_worlds", "identifiability"]
        own, found = (asked(data, name, max(k, 2), **how) for data in tables)
        if by:
            np.testing.assert_allclose(found[told], own[told], rtol=1e-9)
        else:
            for each in told:
                assert getattr(found.curator, each) == pytest.approx(getattr(own.curator, each), rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_record_nearest_the_mean(engine, grouped):
    """Distances are told with their sides where people are, and the nearest is that on whichever side."""
    of = {"a": (0.0, 1.0, 4.0), "b": (2.0, 2.5), "c": (0.0, 3.0, 3.0)}
    people = [(x, person) for person, values in of.items() for x in values]
    table = GroupedColumn("DOUBLE", *zip(*people, strict=True), keys=tuple(of))
    groups = Groups(("g",), tuple((key,) for key in of), "given") if grouped else None
    line = Line("x", Var(), Universe(0.0, 4.0), "given")
    query = Query((line,), (), groups=groups, reads=("x", "g"), unit=Unit(("g",), rows=3))
    (summary,) = engine(table, query).read(query).summaries
    expected = []
    for values in of.values() if grouped else [[x for x, _ in people]]:
        mean = sum(map(Fraction, values)) / len(values)
        expected.append(float(min(abs(Fraction(x) - mean) for x in values)))
    assert summary.nearest.tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e6])
def test_far_from_zero(offset):
    """Distances are from the mean as it was rounded: without one person nothing is left to vary, to the last digit."""
    values = np.array([0.3] * 4 + [0.7] * 2)
    frame = pd.DataFrame({"pid": [1, 1, 2, 2, 3, 3], "x": values + offset})
    added = [np.std([*values, *more], ddof=1) for more in ([0, 0], [0, 1], [1, 1], [0], [1])]
    expected = max(frame["x"].std(), *(abs(each - frame["x"].std()) for each in added))
    assert expected == frame["x"].std()
    for data in (frame, table_of(duckdb.connect(), frame)):
        d = Dataset(data, person="pid", bounds={"x": (offset, offset + 1)})
        own = d.std("x", eps=1, rows=2, mechanism="laplace", curator=True).curator
        assert own.local_sensitivity == pytest.approx(expected, rel=1e-12)
