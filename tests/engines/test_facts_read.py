"""An engine of SQL reads the curator's numbers where somebody may see them; without, the noise is added to the same."""

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk._sql.dataset import duckdb_table as fluent
from pdrisk._sql.tables import compiled_sources as engine
from pdrisk.engines.sql.summary import placing
from sql_people import BOUNDS, PEOPLE, REGIONS, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

AGGREGATES = ["COUNT(*)", "COUNT(distance)", "AVG(distance)", "SUM(distance)", "VARIANCE(distance)"]
JOINT = "AVG(distance), COUNT(distance), SUM(age), VARIANCE(age)"
OF_CURATORS = ("lowest", "clamped", "nearest", "squares")  # of the columns that a statement selects


@pytest.fixture
def con():
    con = duckdb.connect()
    con.register("frame", PEOPLE)
    con.execute("CREATE TABLE people AS FROM frame")
    return con


@pytest.fixture
def statements(monkeypatch):
    """What is asked of the people."""
    seen = []
    fetched = engine.fetched

    def noted(connection, sql, values):
        seen.append(sql)
        return fetched(connection, sql, values)

    for module in (engine, fluent):
        monkeypatch.setattr(module, "fetched", noted)
    return seen


def ask(con, aggregates, grouped, **options):
    keys = {"keys": REGIONS} if grouped else {}
    query = f"SELECT {'region, ' * grouped}{aggregates} FROM people{' GROUP BY region' * grouped}"
    return pdrisk.sql(query, con, eps=2, bounds=BOUNDS, **keys, **options)


def reads_facts(statements):
    return any(f" AS {name}" in statements[-1] for name in OF_CURATORS)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("aggregates", [*AGGREGATES, JOINT])
def test_the_same_answer(con, statements, monkeypatch, aggregates, grouped):
    draws = without_noise(monkeypatch)
    answer = ask(con, aggregates, grouped)
    assert not reads_facts(statements) and len(statements) == 1
    first = [each.tolist() for each in draws.answers]
    asked = ask(con, aggregates, grouped, curator=True)
    assert reads_facts(statements) == ("distance" in aggregates and aggregates != "COUNT(distance)")
    pd.testing.assert_frame_equal(asked[list(answer)], answer, check_flags=False)
    assert [each.tolist() for each in draws.answers[len(first) :]] == first
    noisy = [name for name in asked if name.endswith("_two_worlds")]
    assert noisy and asked[noisy].notna().all(axis=None)


def test_a_ledger_writes_down_what_answers_meant(con, statements, book):
    """Its odometer, and the least loss of people, are of these data."""
    with book():
        ask(con, "AVG(distance)", True)
    assert reads_facts(statements)


def test_a_release_keeps_them_and_a_table_does_if_asked(con, statements):
    people = pdrisk.Dataset((con, "people"), bounds=BOUNDS)
    release = people.mean("distance", eps=2)
    assert reads_facts(statements) and release.curator.two_worlds > 0
    table = people.mean("distance", eps=2, by="region", keys=REGIONS)
    assert not reads_facts(statements) and "two_worlds" not in table
    asked = people.mean("distance", eps=2, by="region", keys=REGIONS, curator=True)
    assert reads_facts(statements) and asked["two_worlds"].iloc[0] > 0


def test_large_tables_are_known_by_their_catalog(con, statements, monkeypatch):
    """A DOUBLE would not hold the sum of so many places, and nothing is read twice."""
    monkeypatch.setattr(placing, "MOST_IN_DOUBLES", len(PEOPLE) // 2 - 1)
    answer = ask(con, "AVG(distance) AS m", False)["m"]
    pdrisk.Dataset((con, "people"), bounds=BOUNDS).mean("distance", eps=2)
    assert len(statements) == 2 and all("finite_0" in each for each in statements)
    assert answer.between(1, 675).all()
