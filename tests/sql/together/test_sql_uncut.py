"""SQL over noisy values: sums, means, arithmetic and windows read what was drawn; conditions read what is shown."""

import math
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._mechanisms.laws.whole_sums import critical_of_whole
from pdrisk._sql.syntax.pieces import quoted

pytestmark = pytest.mark.filterwarnings(
    "ignore:the noise leaves:pdrisk.NoisyReleaseWarning", "ignore:in .* of the .* cells:pdrisk.NoisyReleaseWarning"
)

# Groups 0, 1, 2, 3 of 4, 3, 2, 1 records; x is 2 in all of them.
FRAME = pd.DataFrame({"g": np.repeat([0, 1, 2, 3], [4, 3, 2, 1]), "x": 2.0, "h": list("abababbbba")})
KEYS = [0, 1, 2, 3]
COUNTS = "(SELECT g, COUNT(*) AS n FROM frame GROUP BY g)"


@pytest.fixture
def less(monkeypatch):
    """Each count is drawn 3 too small: 1, 0, -1, -2; shown are 1, 0, 0, 0."""
    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda exact, change, eps: exact - 3)


def rows(query, keys=KEYS, **options):
    found = pdrisk.sql(query, frame=FRAME, keys=keys, **{"eps": 1, **options})
    return [tuple(None if pd.isna(value) else value for value in row) for row in found.itertuples(index=False)]


class TestUncut:
    """Arithmetic is of what was drawn, and cut once, when it is shown."""

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (f"SELECT MAX(n), MIN(n) FROM {COUNTS}", [(1, 0)]),
            (f"SELECT SUM(n), AVG(n) FROM {COUNTS}", [(0, 0)]),  # -2 and -.5, which no count is
            (f"SELECT SUM(n) - 10, 2 * AVG(n) FROM {COUNTS}", [(-10, 0)]),
            (f"SELECT SUM(n + 2) FROM {COUNTS}", [(6,)]),
            (f"SELECT SUM(m) FROM (SELECT n + 2 AS m FROM {COUNTS})", [(6,)]),
            (f"SELECT SUM(n) + 5 FROM {COUNTS}", [(5,)]),
            (f"SELECT SUM(n - 1) FROM {COUNTS}", [(-6,)]),
            (f"SELECT g, n - 1 FROM {COUNTS}", [(0, 0), (1, -1), (2, -1), (3, -1)]),
            (f"SELECT g % 2, SUM(n) FROM {COUNTS} GROUP BY g % 2", [(0, 0), (1, 0)]),
            (f"SELECT SUM(n) FROM {COUNTS} WHERE g < 1", [(1,)]),
            (f"SELECT SUM(t) FROM (SELECT SUM(n) AS t FROM {COUNTS} GROUP BY g % 2)", [(0,)]),
            (f"SELECT SUM(n) FROM (SELECT DISTINCT n FROM {COUNTS})", [(1,)]),
            (f"SELECT SUM(DISTINCT n) FROM {COUNTS}", [(1,)]),  # different values are those that are shown
            (f"SELECT SUM(CASE WHEN n > 0 THEN n ELSE 0 END) FROM {COUNTS}", [(1,)]),
            (f"SELECT SUM(greatest(n, 1)) FROM {COUNTS}", [(4,)]),
            (f"SELECT SUM(CAST(n AS DOUBLE)) - 1 FROM {COUNTS}", [(-1,)]),
            ("SELECT g, COUNT(*) - SUM(COUNT(*)) OVER () FROM frame GROUP BY g", [(0, 3), (1, 2), (2, 1), (3, 0)]),
            ("SELECT g, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY g) FROM frame GROUP BY g",
             [(0, None), (1, -1), (2, -1), (3, -1)]),
            ("SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) FROM frame GROUP BY g", [(0, 1), (1, 1), (2, 0), (3, 0)]),
            ("SELECT g FROM frame GROUP BY g HAVING COUNT(*) = 0", [(1,), (2,), (3,)]),
            ("SELECT g FROM frame GROUP BY g HAVING COUNT(*) + 1 > 1", [(0,)]),
            ("SELECT g, CASE WHEN COUNT(*) < 0 THEN 1 ELSE 0 END FROM frame GROUP BY g",
             [(0, 0), (1, 0), (2, 0), (3, 0)]),
            ("SELECT g, 6 / COUNT(*), COUNT(*) / 2 FROM frame GROUP BY g",
             [(0, 6, 0.5), (1, math.inf, 0), (2, math.inf, 0), (3, math.inf, 0)]),
            ("SELECT g, COUNT(*) AS n, n * 2 AS m, m - 1 AS k FROM frame GROUP BY g",
             [(0, 1, 2, 1), (1, 0, 0, -1), (2, 0, 0, -1), (3, 0, 0, -1)]),
        ],
    )  # fmt: skip
    def test_values(self, query, expected, less):
        assert rows(query) == expected

    def test_sums_of_unions(self, less):
        one = "SELECT g, COUNT(*) AS n FROM frame WHERE h = '{}' GROUP BY g"
        union = f"({one.format('a')} UNION ALL {one.format('b')})"
        # Of a: 2, 1, 0, 1; of b: 2, 2, 2, 0: less 3 each.
        assert rows(f"SELECT SUM(n) - 1, SUM(n + 3) FROM {union}", eps=2) == [(-1, 10)]
        assert rows(f"SELECT SUM(m) FROM (SELECT n + 3 AS m FROM {union})", eps=2) == [(10,)]
        nested = f"(SELECT SUM(n) AS n FROM {union} UNION ALL SELECT COUNT(*) FROM frame)"
        assert rows(f"SELECT SUM(n) FROM {nested}", eps=3) == [(0,)]  # -14 + 7

    def test_what_is_withheld_is_left_out(self, less, tmp_path):
        ledger = pdrisk.Ledger(
            tmp_path / "budget.db", dataset="x", eps=9, policy={"least_group": {"size": 1, "eps": 1}}
        )
        query = f"SELECT SUM(n) - 1 AS s, COUNT(n) AS c FROM {COUNTS}"
        assert rows(query, ledger=ledger) == [(0, 1)]
        label = pdrisk.explain(pdrisk.sql(query, frame=FRAME, keys=KEYS, eps=1, ledger=ledger), "publication")
        assert "sums" in label and "of the cells shown, without those that are withheld" in label

    def test_of_private_keys_it_is_that_of_the_groups_shown(self):
        frame = pd.DataFrame({"g": np.repeat(["a", "b"], 1000)})
        query = "SELECT SUM(n) AS s FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)"
        answer = pdrisk.sql(query, t=frame, keys="private", delta=1e-6, eps=2)
        assert answer["s"][0] == pytest.approx(2000, abs=100)
        assert "of the groups shown" in pdrisk.explain(answer, "publication")
        assert "of the groups shown" not in pdrisk.explain(pdrisk.sql(query, t=frame, keys=["a"], eps=2), "publication")

    def test_the_papers_mechanism_is_never_cut(self, monkeypatch):
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda exact, *_: exact - 2**40)
        found = rows(f"SELECT SUM(n), MIN(n + 1) FROM {COUNTS}", mechanism="laplace")
        assert found[0][0] < -500 and found[0][1] < 0

    def test_names_of_columns_mean_nothing(self, less):
        for name in ("u0", "v0", "d1_0", "code", "k0"):
            query = f"SELECT SUM({name}) - 1 FROM (SELECT g, COUNT(*) AS {quoted(name)} FROM frame GROUP BY g)"
            assert rows(query) == [(-1,)]

    def test_a_sum_is_unbiased(self):
        """Within 2 standard errors, where sums of what is shown are off by 20."""
        frame = pd.DataFrame({"g": np.repeat(np.arange(100), 20)})
        query = "SELECT SUM(n) AS s, SUM(greatest(n, 0)) AS cut FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)"
        found = pd.concat([pdrisk.sql(query, t=frame, eps=0.1, keys=range(400)) for _ in range(60)])
        error = math.sqrt(400 * 200 / 60)
        assert abs(found["s"].mean() - 2000) < 2 * error
        assert found["cut"].mean() > 2000 + 20 * error


class TestEnds:
    """With ``risk_columns`` what is computed has an interval, by the law of all its noise."""

    @staticmethod
    def asked(query, **options):
        return pdrisk.sql(query, frame=FRAME, risk_columns=True, **{"eps": 1, "keys": KEYS, **options})

    def test_of_a_sum(self):
        found = self.asked(f"SELECT SUM(n) AS s, AVG(n) AS a, SUM(2 * n) AS d FROM {COUNTS}").iloc[0]
        reach = critical_of_whole(((1, 4, 1.0),), 0.95)  # four counts at eps 1
        assert (found["s"] - found["s_low"], found["s_high"] - found["s"]) == (reach, reach)
        assert found["d_high"] - found["d"] == 2 * reach
        assert found["a_high"] - found["a"] == pytest.approx(reach / 4)
        releases = [FRAME.dprisk.count(eps=1) for _ in range(4)]
        total = releases[0] + releases[1] + releases[2] + releases[3]
        assert total.high - total.value == reach

    def test_of_shares_and_differences_in_windows(self):
        found = self.asked(
            "SELECT g, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share, COUNT(*) - LAG(COUNT(*)) OVER "
            "(ORDER BY g) AS d FROM frame GROUP BY g ORDER BY g DESC",
            eps=20,
        )
        assert found["g"].tolist() == [3, 2, 1, 0]
        assert (found["share_low"] <= found["share"]).all() and (found["share"] <= found["share_high"]).all()
        assert ((found["share_high"] <= 1) & (found["share_high"] - found["share_low"] < 0.2)).all()
        assert found["d_low"].tolist()[:3] == found["d"].tolist()[:3] and np.isnan(found["d_low"][3])
        assert {"n_low", "n_eps", "share_low", "d_high"} <= set(found) <= set(pdrisk.public(found))

    def test_of_running_sums(self, noiseless):
        query = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS s FROM frame GROUP BY g"
        found = self.asked(query, eps=0.1)
        wide = (found["s_high"] - found["s"]).tolist()
        assert wide == sorted(wide) and wide[0] < wide[3]
        assert wide == [critical_of_whole(((1, at + 1, 10.0),), 0.95) for at in range(4)]

    def test_of_quotients_of_releases(self):
        found = self.asked(
            "SELECT SUM(x) / COUNT(*) AS r, AVG(x) - 1 AS m FROM frame", keys=None, eps=50, bounds=(0, 5)
        )
        assert found["r_low"][0] < 2 < found["r_high"][0] and found["m_low"][0] < 1 < found["m_high"][0]

    def test_with_public_numbers(self):
        """A key counts as what it is."""
        found = self.asked(f"SELECT SUM(n * (g + 1)) AS s FROM {COUNTS}", eps=100)
        assert (found["s"][0], found["s_low"][0], found["s_high"][0]) == (20, 20, 20)

    def test_of_what_is_not_known(self):
        found = self.asked(f"SELECT SUM(greatest(n, 1)) AS s, SUM(n) AS t FROM {COUNTS}")
        assert "s_low" not in found and "t_low" in found
        found = self.asked("SELECT SUM(m) AS s FROM (SELECT g, AVG(x) AS m FROM frame GROUP BY g)", bounds=(0, 5))
        assert np.isnan(found["s_low"][0])

    def test_they_hold(self):
        frame = pd.DataFrame({"g": np.arange(600) % 30})
        query = "SELECT g % 3 AS k, SUM(n) AS s FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) GROUP BY g % 3"
        found = pd.concat([pdrisk.sql(query, t=frame, eps=0.2, keys=range(30), risk_columns=True) for _ in range(100)])
        held = (found["s_low"] <= 200) & (found["s_high"] >= 200)
        assert held.mean() > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 300)
        assert (found["s_high"] - found["s_low"]).max() <= 2 * 44  # of ten counts at eps .2

    @pytest.mark.parametrize(
        ("query", "size"),
        [
            (f"SELECT SUM(n) AS s FROM {COUNTS} WHERE g > 9", 1),
            (f"SELECT SUM(s) AS s FROM (SELECT SUM(n) AS s FROM {COUNTS} WHERE g > 9)", 1),
            (f"SELECT n * 2 AS s FROM {COUNTS} WHERE g > 9", 0),
            (f"SELECT n / SUM(n) OVER () AS s FROM {COUNTS} WHERE g > 9", 0),
            (f"SELECT SUM(n) AS s FROM {COUNTS} WHERE g > 9 GROUP BY g", 0),
            (f"SELECT n - LAG(n) OVER (ORDER BY g) AS s FROM {COUNTS} WHERE g = 2", 1),
            (f"SELECT SUM(t) AS s FROM (SELECT g, n / 0 AS t FROM {COUNTS}) WHERE g > 9", 1),
        ],
    )
    def test_of_no_rows(self, query, size):
        """What was paid for is shown, whatever is left of it."""
        found = self.asked(query)
        assert len(found) == size and found["s"].isna().all() and found["s_low"].isna().all()

    def test_of_no_group_that_chance_shows(self):
        query = "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM frame GROUP BY g"
        found = self.asked(query, keys="private", delta=1e-6, eps=0.1)
        assert len(found) == 0 and "s_low" in found

    def test_rows_without_intervals_are_still_refused(self):
        with pytest.raises(pdrisk.ParameterError, match="risk columns belong to single noisy values"):
            self.asked(f"SELECT MAX(n) FROM {COUNTS}")


SELECTED = [
    f"SELECT SUM(n) AS s FROM {COUNTS} WHERE n > 1",
    f"SELECT AVG(n) AS s FROM {COUNTS} WHERE n + 1 > 1",
    f"SELECT SUM(n) FILTER (WHERE n > 1) AS s FROM {COUNTS}",
    f"SELECT SUM(n) AS s FROM (SELECT * FROM {COUNTS} ORDER BY n LIMIT 2)",
    f"SELECT SUM(n) AS s FROM (SELECT * FROM {COUNTS} QUALIFY rank() OVER (ORDER BY n) < 3)",
    f"SELECT SUM(n) AS s FROM {COUNTS} GROUP BY n > 1",
    f"SELECT SUM(n) OVER (ORDER BY n) AS s FROM {COUNTS}",
    f"SELECT SUM(n) OVER (PARTITION BY n > 1) AS s FROM {COUNTS}",
    "SELECT g, SUM(COUNT(*)) OVER () AS s FROM frame GROUP BY g HAVING COUNT(*) > 1",
    f"SELECT SUM(m) AS s FROM (SELECT n AS m, n > 1 AS b FROM {COUNTS}) WHERE b",
]
ALL_ROWS = [
    f"SELECT SUM(n) AS s FROM {COUNTS}",
    f"SELECT SUM(n) AS s FROM {COUNTS} WHERE g > 1",
    f"SELECT g % 2, SUM(n) AS s FROM {COUNTS} GROUP BY g % 2 HAVING SUM(n) > 1",
    f"SELECT SUM(n) AS s FROM (SELECT * FROM {COUNTS} ORDER BY g LIMIT 2)",
    f"SELECT SUM(n) OVER (ORDER BY g) AS s FROM {COUNTS} ORDER BY n LIMIT 1",
    f"SELECT MAX(n), COUNT(*) FROM {COUNTS} WHERE n > 1",
    f"SELECT SUM(n) AS s FROM {COUNTS} WHERE 'n > v0' <> 'u0'",
]


class TestSelected:
    """Sums over rows that noisy values chose are biased: a query that has some is warned about, once."""

    @pytest.mark.parametrize("query", SELECTED)
    def test_it_warns_once_and_has_no_ends(self, query):
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="rows that noisy values chose") as caught:
            found = pdrisk.sql(query, frame=FRAME, keys=KEYS, eps=1, risk_columns=True)
        assert len([one for one in caught if "chose" in str(one.message)]) == 1
        assert found[["s_low", "s_high"]].isna().all(axis=None)

    @pytest.mark.parametrize("query", ALL_ROWS)
    def test_otherwise_nothing_is_said(self, query):
        assert len(pdrisk.sql(query, frame=FRAME, keys=KEYS, eps=1)) > 0

    @pytest.mark.parametrize(
        ("query", "warns"),
        [
            (f"SELECT AVG(n) FROM {COUNTS}", True), (f"SELECT COUNT(*) FROM {COUNTS}", True),
            ("SELECT g, COUNT(*) - AVG(COUNT(*)) OVER () AS d FROM frame GROUP BY g", True),
            (f"SELECT 1 AS a, AVG(n) FROM {COUNTS} UNION ALL SELECT 2, SUM(n) FROM {COUNTS}", True),
            ("SELECT g, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY g) AS d FROM frame GROUP BY g", False),
            (f"SELECT SUM(n) FROM {COUNTS}", False), ("SELECT g, AVG(g) FROM frame GROUP BY g", False),
            ("SELECT g, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM frame GROUP BY g", False),
        ],
    )  # fmt: skip
    def test_groups_of_nobody(self, query, warns):
        """AVG over groups reads each listed one, as SQL would not: that is said, with the line that asked."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pdrisk.sql(query, frame=FRAME, keys=KEYS, bounds={"g": (0, 9)}, eps=1)
        said = [each for each in caught if "every listed group" in str(each.message)]
        assert len(said) == warns and all(each.filename == __file__ for each in said)
        assert all(issubclass(each.category, pdrisk.DoubtfulReleaseWarning) for each in said)

    def test_over_a_union(self):
        union = "(SELECT g, COUNT(*) AS n FROM frame GROUP BY g UNION ALL SELECT g, COUNT(*) FROM frame GROUP BY g)"
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="rows that noisy values chose"):
            pdrisk.sql(f"SELECT SUM(n) FROM {union} WHERE n > 1", frame=FRAME, keys=KEYS, eps=1)
        pdrisk.sql(f"SELECT SUM(n) FROM {union} WHERE g > 1", frame=FRAME, keys=KEYS, eps=1)


NAMED = "(SELECT h, COUNT(*) AS n, SUM(x) AS s FROM frame GROUP BY h)"


class TestFunctions:
    """Functions over noisy values are DuckDB's own business."""

    @pytest.mark.parametrize(
        "items",
        [
            "h, repeat('*', n) AS bar, repeat(h, n * 2) AS more",
            "printf('%d of %s', n, h) AS p, format('{:>6}|{:,}', n, n * 1000) AS f",
            "concat(h, ': ', n) AS c, h || n AS d, concat_ws('/', h, n + 1, n - 1) AS e, CAST(n AS VARCHAR) AS v",
            "lpad(h, CAST(n AS INT), '-') AS l, chr(64 + CAST(n AS INT)) AS a, hex(n) AS x, bar(n, 0, 9, 3) AS b",
            "md5(h) AS m, ascii(h) AS a, levenshtein(h, 'bb') AS l, gcd(n, 4) AS g, n % 4 AS r",
            "h, length(repeat('ab', n)) AS l, upper(h) AS u",
        ],
    )
    def test_are_those_of_duckdb(self, items):
        found = rows(f"SELECT {items} FROM {NAMED} ORDER BY h", ["a", "b"], eps=1e9, bounds={"x": (0, 4)})
        con = duckdb.connect()
        con.register("frame", FRAME)
        assert found == con.execute(f"SELECT {items} FROM {NAMED} ORDER BY h").fetchall()

    def test_stand_beside_aggregates_and_in_conditions(self):
        bars = "SELECT h, repeat('*', COUNT(*)) AS bar FROM frame GROUP BY h HAVING length(repeat('a', COUNT(*))) > 5"
        found = rows(bars, ["a", "b"], eps=1e9)
        assert found == [("b", "*" * 6)]
        whole = f"SELECT format('{{}}', SUM(n)) AS t FROM {NAMED}"
        assert rows(whole, ["a", "b"], eps=1e9, bounds={"x": (0, 4)}) == [("10",)]

    def test_read_what_is_shown(self, less):
        assert rows(f"SELECT concat(n, '') FROM {COUNTS}") == [("1",), ("0",), ("0",), ("0",)]

    def test_are_missing_where_they_fail_or_grow(self):
        query = f"SELECT chr(-CAST(n AS INT)) AS c, repeat('ab', n * 1000000) AS r FROM {COUNTS}"
        assert rows(query, eps=1e9) == [(None, None)] * 4

    @pytest.mark.parametrize(
        ("call", "why"),
        [
            ("random()", "differs from record to record"),
            ("now()", "changes with the clock"),
            ("error(h)", "would stop at a record"),
            ("typeof(n)", "tells how a column is stored"),
            ("current_setting('threads')", "not on the list"),
            ("getvariable('x')", "not on the list"),
            ("write_log(h)", "not on the list"),
            ("nextval('s')", "differs from record to record"),
            ("nosuch(n)", "not on the list"),
            ("repeat(n, h, h)", "DuckDB has no such function"),
            ("list_value(n)", "which no table of answers holds"),
            ("printf('%99999d', n)", "a width of more than four digits"),
            ("replace(h, 'a', 'bcd')", "may not put in more characters"),
            ("lpad(h, 2000, 'x')", "takes a length up to 1000"),
        ],
    )
    def test_of_other_kinds_are_refused(self, call, why):
        with pytest.raises(pdrisk.ParameterError, match=why):
            rows(f"SELECT {call} AS c FROM {NAMED}", ["a", "b"], bounds={"x": (0, 4)})

    def test_of_records_stay_refused(self):
        for query in ("SELECT COUNT(*) FROM frame WHERE repeat(h, 2) = 'aa'", "SELECT COUNT(md5(h)) FROM frame"):
            with pytest.raises(pdrisk.ParameterError, match="not on the list of functions"):
                rows(query, None)
