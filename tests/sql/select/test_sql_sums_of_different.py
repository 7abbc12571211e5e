"""SUM(DISTINCT x): a record brings a value that nobody else has, or changes nothing."""

import itertools

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

QUERY = "SELECT SUM(DISTINCT x) AS v FROM t"
LO, HI = -2, 3
VALUES = (LO, 0, 1, HI)
MULTISETS = [each for n in range(5) for each in itertools.combinations_with_replacement(VALUES, n)]


def table(values, **columns):
    return pd.DataFrame({"x": np.array(values, dtype=float), **columns})


def asked(frame, query=QUERY, **options):
    return pdrisk.sql(query, t=frame, **{"eps": 1, "bounds": (LO, HI), **options})


@pytest.fixture
def draws(monkeypatch):
    return without_noise(monkeypatch)


class TestNeighbours:
    """By the definition: every small multiset of records, each with one more or one fewer."""

    def test_one_record_changes_it_by_the_farther_end_at_most(self):
        def value(records):
            return sum(set(records))

        changes = [abs(value((*each, one)) - value(each)) for each in MULTISETS for one in VALUES]
        assert max(changes) == 3 == max(-LO, HI)

    @pytest.mark.parametrize("sql_type", ["DOUBLE", "BIGINT"])
    def test_value_and_curators_numbers(self, sql_type, draws):
        """All multisets at once, as groups; the ranges of worlds by leaving each record out."""
        rows = [(at, x) for at, each in enumerate(MULTISETS) for x in each]
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (g INTEGER, x {sql_type})")
        con.executemany("INSERT INTO t VALUES (?, ?)", rows)
        bounds = "lo := -2, hi := 3"
        answer = pdrisk.sql(
            f"SELECT g, dp_sum(DISTINCT x, {bounds}) AS v FROM t GROUP BY g", con, eps=1, curator=True,
            keys=list(range(len(MULTISETS))),
        )  # fmt: skip
        for (_, row), records in zip(answer.iterrows(), MULTISETS, strict=True):
            assert row["v"] == pytest.approx(sum(set(records)), abs=1e-6), records
            worlds = [sum({*records[:at], *records[at + 1 :]}) for at in range(len(records))]
            spread = max(worlds, default=0) - min(worlds, default=0)
            # Lee & Clifton 2011, section 4: m worlds, one of them `spread` away from all others; sensitivity 3, eps 1.
            n = len(records)
            expected = 1 / (1 + (n - 1) * np.exp(-spread / 3)) if n else np.nan
            assert row["v_identifiability"] == pytest.approx(expected, nan_ok=True), records
            assert row["v_n"] == n
            assert row["v_local_sensitivity"] == 3

    def test_several_rows_of_a_person(self, draws):
        """Two people in each group, with up to two rows of three values: with one of them two values leave at most."""
        own = [each for n in range(3) for each in itertools.product((LO, 1, HI), repeat=n)]
        cases = list(itertools.product(own, own))
        rows = [(g, who, x) for g, case in enumerate(cases) for who, part in enumerate(case) for x in part]
        frame = pd.DataFrame(rows, columns=["g", "who", "x"]).assign(pid=lambda t: t["g"] * 2 + t["who"])
        query = "SELECT g, SUM(DISTINCT x) AS v FROM t GROUP BY g"
        for one in (frame, frame[frame["who"] == 0]):
            asked(one, query, keys=list(range(len(cases))), person="pid", constant=["g"], rows=2)
        (whole, change, eps), (rest, _, _) = draws
        lost = np.abs(np.asarray(whole) - np.asarray(rest)) * float(eps) / change
        assert lost.max() == pytest.approx(4 / 6)  # HI and 1, of two times 3


class TestAnswers:
    def test_as_duckdb(self, draws):
        rng = np.random.default_rng(4)
        frame = table(rng.integers(-9, 10, 200) / 4, g=rng.choice(["a", "b"], 200), k=rng.integers(0, 9, 200))
        query = (
            "SELECT g, SUM(DISTINCT x) AS a, SUM(DISTINCT k) FILTER (WHERE x > 0) AS b, SUM(DISTINCT x) / "
            "COUNT(DISTINCT x) AS c, SUM(x) AS d FROM t GROUP BY g ORDER BY g"
        )
        bounds = {"x": (-3, 3), "k": (0, 9)}
        with duckdb.connect() as con:
            expected = con.sql(query.replace("FROM t", "FROM frame")).df()
        found = asked(frame, query, bounds=bounds, keys=["a", "b"])
        for name in "abcd":
            assert found[name].tolist() == pytest.approx(expected[name].tolist(), abs=1e-6)

    @pytest.mark.parametrize(
        ("values", "expected"),
        [([], 0), ([np.nan], 0), ([0.0, -0.0], 0), ([7, 8, 9, 3], 3), ([np.inf, -np.inf, -9, 1, 1], 3 - 2 + 1)],
    )
    def test_values_beyond_the_bounds_are_moved_first(self, values, expected, draws):
        answer = asked(table(values), curator=True)
        assert answer["v"].item() == pytest.approx(expected, abs=1e-6)
        known = [x for x in values if not np.isnan(x)]
        if known:
            assert answer["v_clamped"].item() == sum(not LO <= x <= HI for x in known) / len(known)

    def test_declared_whole_numbers_give_whole_sums(self):
        frame = pd.DataFrame({"x": [1, 1, 2, 3]}).dprisk.declare(bounds={"x": (-2, 3)})
        whole = asked(frame, "SELECT SUM(DISTINCT CASE WHEN x > 1 THEN 2 ELSE 1 END) AS v FROM t", bounds=None)
        assert whole["v"].item() == int(whole["v"].item())

    def test_it_shares_no_release_with_a_sum_of_all(self, draws):
        asked(table([1, 1, 2]), "SELECT SUM(x), SUM(DISTINCT x), COUNT(x), AVG(x) FROM t", bounds=(LO, HI))
        assert [eps for _, _, eps in draws] == [draws[0][2]] * len(draws)
        answer = asked(table([1, 1, 2]), "SELECT SUM(x) AS s, SUM(DISTINCT x) AS v FROM t", risk_columns=True)
        assert answer[["s_eps", "v_eps"]].iloc[0].tolist() == [0.5, 0.5]

    def test_noise(self):
        """Laplace noise of scale 3 at eps 1: half of the draws are off by less than 3 ln 2."""
        frame = table([1, 1, 2] * 20_000, g=np.repeat(np.arange(20_000), 3))
        found = asked(frame, "SELECT g, SUM(DISTINCT x) AS v FROM t GROUP BY g", keys=list(range(20_000)))
        near = np.abs(found["v"] - 3) < 3 * np.log(2)
        assert 0.478 < near.mean() < 0.522  # six standard deviations; .537 and .467 with 0.9 and 1.1 of the scale


def test_a_ledger_withholds_rounds_and_remembers_it(book, draws):
    """The owner's rules for sums are about this one, too; the ledger takes neither for the other."""
    frame = table([1.0, 1.0, 2.0])
    ledger = book(eps=9, policy={"round_to": {"sum": 2}})
    d = pdrisk.Dataset({"t": frame}, ledger=ledger)
    first = d.sql("SELECT SUM(DISTINCT x) AS v FROM t", eps=1, bounds=(LO, HI))
    assert first["v"].item() % 2 == 0
    d.sql("SELECT SUM(DISTINCT x) AS v FROM t", eps=1, bounds=(LO, HI))
    assert ledger.remaining().spent == 1
    d.sql("SELECT SUM(x) AS v FROM t", eps=1, bounds=(LO, HI))
    assert ledger.remaining().spent == 2
    few = book(eps=9, dataset="few", policy={"least_group": {"size": 1000, "eps": 0.1}})
    assert pd.isna(pdrisk.sql(QUERY, eps=1, bounds=(LO, HI), ledger=few, t=frame)["v"].item())


class TestMeans:
    """AVG(DISTINCT x) is the quotient of two releases, the sum and the number of different values."""

    def test_as_written_out(self, draws):
        frame = table([1.0, 1.0, 0.0, 3.0, np.nan], g=["a", "a", "a", "b", "b"])
        both = "AVG(DISTINCT x) AS a, SUM(DISTINCT x) / COUNT(DISTINCT x) AS b, COUNT(*) AS n"
        answer = asked(
            frame, f"SELECT g, {both} FROM t GROUP BY g HAVING AVG(DISTINCT x) < 3 ORDER BY a", keys=["a", "b"]
        )
        assert answer["a"].tolist() == answer["b"].tolist() == pytest.approx([0.5], abs=1e-6)
        alone = asked(frame, "SELECT AVG(DISTINCT x) FROM t")
        assert alone.columns.tolist() == ["avg(DISTINCT x)"] and alone.iat[0, 0] == pytest.approx(4 / 3, abs=1e-6)

    def test_two_releases_are_paid(self, book):
        ledger = book(eps=1)
        answer = asked(table([1.0, 2.0]), "SELECT AVG(DISTINCT x) AS a FROM t", ledger=ledger, risk_columns=True)
        assert ledger.remaining().spent == 1
        assert answer[["sum(DISTINCT x)_eps", "count(DISTINCT x)_eps"]].to_numpy().tolist() == [[0.5, 0.5]]

    def test_of_nothing(self, draws):
        frame = table([1.0, 2.0])
        assert asked(frame, "SELECT AVG(DISTINCT x) AS a FROM t WHERE x > 9")["a"].isna().tolist() == [True]
        kept = asked(frame, "SELECT AVG(DISTINCT x) FILTER (WHERE x > 1) + 1 AS a FROM t")
        assert kept["a"].tolist() == pytest.approx([3], abs=1e-6)


REFUSED = {
    "SELECT STDDEV(DISTINCT x) FROM t": "SUM(DISTINCT ...) or AVG(DISTINCT ...)",
    "SELECT MEDIAN(DISTINCT x) FROM t": "DISTINCT",
    "SELECT VAR_SAMP(DISTINCT x) FROM t": "DISTINCT",
    "SELECT SUM(DISTINCT s) FROM t": "needs numbers",
    "SELECT SUM(DISTINCT x * x) FROM t": "needs the bounds of the expression",
    "SELECT dp_sum(DISTINCT x, lo := 0, hi := (SELECT MAX(x) FROM t)) FROM t": "dp_sum takes no value of a subquery",
}


@pytest.mark.parametrize(("query", "why"), REFUSED.items())
def test_refused(query, why, monkeypatch):
    frame = table([1.0], s=["SENTINEL"])
    assert why in str(refusal(monkeypatch, query, eps=1, bounds=(0, 1), t=frame))


@pytest.mark.parametrize("way", ["mean", "sum"])
def test_numbers_of_people_are_other_values(way, monkeypatch):
    frame = table([1.0, 2.0], pid=[1, 1])
    error = refusal(monkeypatch, QUERY, eps=1, bounds=(0, 1), person="pid", per_person=way, t=frame)
    assert "about the values of rows" in str(error)
