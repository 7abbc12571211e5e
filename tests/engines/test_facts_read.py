"""An engine of SQL reads the curator's numbers where somebody may see them; without, the noise is added to the same."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk._sql.dataset import duckdb_table as fluent
from pdrisk._sql.tables import compiled_sources as engine
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
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


@pytest.mark.parametrize("policy", [{}, {"curator_facts": True}])
def test_a_ledger_writes_down_what_answers_meant(con, statements, book, policy):
    """Its odometer, and the least loss of people, are of these data, if its policy says so."""
    with book(policy=policy):
        ask(con, "AVG(distance)", True)
    assert reads_facts(statements) == bool(policy)


def test_a_release_keeps_them_and_a_table_does_if_asked(con, statements):
    people = pdrisk.Dataset((con, "people"), bounds=BOUNDS)
    release = people.mean("distance", eps=2)
    assert reads_facts(statements)
    con.close()
    assert release.curator.two_worlds > 0


def test_a_table_has_them_if_asked(con, statements):
    people = pdrisk.Dataset((con, "people"), bounds=BOUNDS)
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


NAMES = ["count", "max", "mean", "median", "proportion", "std", "sum", "var"]
LATER = ["mean", "proportion", "std", "sum", "var"]  # noise is added to exact sums, and more is read for the curator


class TestReadLater:
    """The curator's numbers of one answer from a table on a server are read when somebody looks at them."""

    @pytest.fixture(autouse=True)
    def on_a_server(self, monkeypatch):
        """As if DuckDB were one; `test_postgres_passes` and `test_spark` ask those that are."""
        monkeypatch.setattr(DuckDBDialect, "reads_later", True)

    @staticmethod
    def people(con):
        return pdrisk.Dataset((con, "people"), bounds=BOUNDS)

    def ask(self, con, name, **options):
        column = "distance > 9" if name == "proportion" else "distance"
        return getattr(self.people(con), name)(column, eps=2, **options)

    @pytest.mark.parametrize("name", NAMES)
    def test_the_same_numbers(self, con, statements, name):
        release = self.ask(con, name)
        assert not (name in LATER and reads_facts(statements))
        before = len(statements)
        repr(release), release.to_dict(), release.explain(), release.interval(), release.picture_text()
        assert len(statements) == before
        assert repr(release.curator) == repr(self.ask(con, name, curator=True).curator)
        release.curator, release.explain("curator"), release.to_dict(curator=True)
        assert len(statements) == before + 1 + (name in LATER)

    @pytest.mark.parametrize("grouped", [False, True])
    def test_of_people(self, con, grouped):
        con.execute("ALTER TABLE people ADD pid INTEGER; UPDATE people SET pid = rowid // 3")
        people = pdrisk.Dataset((con, "people"), bounds=BOUNDS, person="pid")
        options = {"rows": 2, "eps": 2, "where": "age > 30"} if grouped else {"per_person": "mean", "eps": 2}
        later, at_once = (people.mean("distance", **options, curator=curator).curator for curator in (False, True))
        assert repr(later) == repr(at_once)

    @pytest.mark.parametrize("name", LATER)
    def test_of_other_data(self, con, name):
        """A record more, or another one, is seen by what noise was added to."""
        for change in ("INSERT INTO people FROM people LIMIT 1", "UPDATE people SET distance = 3 WHERE rowid = 1"):
            release = self.ask(con, name)
            con.execute(change)
            with pytest.raises(pdrisk.QueryFailedError, match=r"has changed since the answer: ask with curator=True"):
                release.curator  # noqa: B018
            assert "noisy value" in repr(release)

    def test_of_a_table_that_is_gone(self, con):
        release, kept = self.ask(con, "mean"), self.ask(con, "mean", curator=True)
        con.close()
        with pytest.raises(pdrisk.QueryFailedError, match=r"could not be read now: ask with curator=True") as caught:
            release.curator  # noqa: B018
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert kept.curator.two_worlds > 0

    def test_by_several_threads(self, con, statements):
        release = self.ask(con, "var")
        with ThreadPoolExecutor(8) as pool:
            assert len({each.result() for each in [pool.submit(lambda: release.curator) for _ in range(40)]}) == 1
        assert len(statements) == 2

    def test_nothing_is_pickled(self, con):
        assert pickle.loads(pickle.dumps(self.ask(con, "var"))).curator is None

    def test_nobody_under_a_ledger(self, con, statements, book):
        with book():
            assert self.ask(con, "var").curator is None
        assert not reads_facts(statements)
