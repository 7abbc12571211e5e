"""People with several rows in SQL: the same numbers as of frames, and nothing that others or an order would change."""

import math

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, ParameterError
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from test_people import BOUNDS, panel

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FRAME = panel(60, 5).assign(y=lambda df: df["x"] / 2 + 1)
KEYS = list("abcd")
FACTS = ("n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability")


def dataset(frame=FRAME, **said):
    return Dataset(frame, person="pid", bounds={"x": BOUNDS, "y": BOUNDS}, constant=["sex"], **said)


ONE_RECORD_EACH = {
    "AVG(x)": lambda d, **how: d.mean("x", **how),
    "MEDIAN(x)": lambda d, **how: d.median("x", **how),
    "MAX(x)": lambda d, **how: d.max("x", **how),
    "STDDEV(x)": lambda d, **how: d.std("x", **how),
    "SUM(x)": lambda d, **how: d.sum("x", **how),
    "CORR(x, y)": lambda d, **how: d.corr("x", "y", **how),
    "COUNT(*)": lambda d, **how: d.count(**how),
    "COUNT(x)": lambda d, **how: d.count("x", **how),
}


class TestAsOfFrames:
    """One question, two front ends, one curator's answer."""

    @pytest.mark.parametrize("way", ["mean", "min", "max", "count", "sum"])
    @pytest.mark.parametrize("aggregate", ONE_RECORD_EACH)
    def test_numbers_of_people(self, aggregate, way):
        bounds = {"bounds": {"x": (0, 60), "y": (0, 60)}} if way in ("sum", "count") else {}
        if bounds and aggregate.startswith("COUNT"):
            bounds = {}
        plain = {"bounds": (0, 60)} if bounds and "CORR" not in aggregate else bounds
        answer = dataset().sql(f"SELECT {aggregate} AS v FROM data", eps=1, per_person=way, curator=True, **bounds)
        own = ONE_RECORD_EACH[aggregate](dataset(), eps=1, per_person=way, **plain).curator
        for name in FACTS:
            assert answer[f"v_{name}"][0] == pytest.approx(getattr(own, name), rel=1e-9, nan_ok=True), name

    @pytest.mark.parametrize("aggregate", ["AVG(x)", "MEDIAN(x)", "COUNT(x)"])
    def test_in_groups(self, aggregate):
        query = f"SELECT g, {aggregate} AS v FROM data WHERE sex = 'f' GROUP BY g"
        how = {"eps": 1, "per_person": "mean", "groups": 4, "keys": KEYS, "curator": True}
        answer = dataset().sql(query, **how)
        own = ONE_RECORD_EACH[aggregate](dataset(), by="g", where="sex == 'f'", **how)
        for name in FACTS:
            np.testing.assert_allclose(answer[f"v_{name}"], own[name], rtol=1e-9)

    def test_as_many_rows_count(self):
        query = "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY g"
        answer = dataset().sql(query, eps=1, rows=2, groups=3, keys=KEYS, curator=True)
        table = dataset().agg({"x": ["count", "mean"]}, eps=1, by="g", keys=KEYS, rows=2, groups=4, curator=True)
        assert (answer["m_n"] <= table["n"].to_numpy()[:4]).all()  # of one group fewer each
        whole = dataset().sql("SELECT AVG(x) AS m FROM data", eps=1, rows=3, curator=True)
        assert whole["m_n"][0] == FRAME[FRAME["x"].notna()].groupby("pid").size().clip(upper=3).sum()

    def test_the_noise_is_that_of_all_rows(self):
        table = dataset().sql("SELECT COUNT(*) AS n FROM data", eps=1, rows=5, risk_columns=True)
        assert table["n_high"][0] - table["n_low"][0] == pytest.approx(2 * 5 * math.log(20), abs=3)
        table = dataset().sql("SELECT COUNT(DISTINCT pid) AS n FROM data", eps=1, risk_columns=True)
        assert table["n_high"][0] - table["n_low"][0] == 6

    def test_people_are_counted(self):
        answer = dataset().sql(
            "SELECT sex, COUNT(DISTINCT pid) AS n FROM data GROUP BY sex", eps=100, keys=["f", "m"], curator=True
        )
        assert answer["n_n"].tolist() == FRAME.groupby("sex")["pid"].nunique().tolist()


class TestWhichRowsCount:
    """Over frames without one person or in another order, what others have left is the same."""

    def sums(self, frame, secret, **how):
        """The records that count, as the exact sums of one-hot columns tell."""
        con_frame = frame.assign(**{f"is_{at}": (frame["x"] == value) for at, value in enumerate(self.VALUES)})
        d = Dataset(con_frame, person="pid", constant=["sex"])
        object.__setattr__(d._known_people, "secret", lambda: secret)
        chosen = ", ".join(f"COUNT(*) FILTER (WHERE is_{at}) AS n{at}" for at in range(len(self.VALUES)))
        found = d.sql(f"SELECT {chosen} FROM data", eps=1000, curator=True, **how)
        return np.array([found[f"n{at}_n"][0] for at in range(len(self.VALUES))])

    VALUES = (0.0, 0.5, 4.0, 9.5)

    def test_without_somebody(self):
        secret = b"x" * 32
        whole = self.sums(FRAME, secret, rows=2)
        for pid in (1, 2, 3):
            rest = FRAME[FRAME["pid"] != pid].sample(frac=1, random_state=pid)
            alone = FRAME[FRAME["pid"] == pid]
            np.testing.assert_array_equal(self.sums(rest, secret, rows=2) + self.sums(alone, secret, rows=2), whole)

    def test_a_mean_of_rows_that_count(self):
        """The same records whatever order they stand in: of one chosen row each, the curator's numbers."""

        def facts(frame):
            d = dataset(frame)
            object.__setattr__(d._known_people, "secret", lambda: b"y" * 32)
            found = d.sql("SELECT AVG(x) AS m, MAX(x) AS h FROM data", eps=1, rows=1, curator=True)
            return [found[f"{v}_{name}"][0] for v in "mh" for name in FACTS]

        assert facts(FRAME) == facts(FRAME.sample(frac=1, random_state=4))


class TestCalls:
    @pytest.mark.parametrize("joined", [False, True])
    @pytest.mark.parametrize("by", ["", "GROUP BY g"])
    @pytest.mark.parametrize("beside", ["", ", COUNT(*) AS rows", ", AVG(x) AS m", ", MAX(x) AS m, COUNT(x) AS rows"])
    def test_numbers_of_people_beside_those_of_rows(self, beside, by, joined):
        """However many rows of a person count, by what the tables say: people are counted once."""
        rows = pd.DataFrame({"pid": [n // 3 for n in range(90)], "x": range(90), "g": [n % 2 for n in range(90)]})
        people = pd.DataFrame({"pid": range(30)})
        source = "visits JOIN people USING (pid)" if joined else "visits"
        tables = {"visits": rows, "people": people} if joined else {"visits": rows}
        answer = pdrisk.sql(
            f"SELECT COUNT(DISTINCT pid) AS n{beside} FROM {source} {by}", eps=1e9,
            person={"people": "pid", "visits": "pid"}, rows={"visits": 3}, per_person={"people": "one"},
            bounds={"x": (0, 90)}, keys={"g": [0, 1]}, tables=tables,
        )  # fmt: skip
        assert answer["n"].tolist() == ([30, 30] if by else [30])
        if "rows" in answer:
            assert answer["rows"].tolist() == ([45, 45] if by else [90])

    def test_groups_of_people_follow_from_their_rows(self):
        """Who has three rows at most is in three groups at most, and the noise is that of three."""
        rows = pd.DataFrame({"pid": [n // 3 for n in range(90)], "g": [n % 9 for n in range(90)]})
        answer = pdrisk.sql(
            "SELECT g, COUNT(DISTINCT pid) AS n FROM t GROUP BY g",
            eps=1,
            person="pid",
            rows={"t": 3},
            keys=range(9),
            t=rows,
        )
        assert "each pid counts in 3 groups at most" in " ".join(pdrisk.explain(answer, "publication").split())

    def test_ids_are_no_groups_to_be_observed(self):
        """Those that occur are who is in the data, under any name; a list of them is public."""
        rows = pd.DataFrame({"pid": [1, 1, 2], "day": [1, 2, 1]})
        told = {"eps": 1, "person": "pid", "rows": 2}
        for query in (
            "SELECT pid, COUNT(*) AS n FROM t GROUP BY pid",
            "SELECT p, COUNT(*) AS n FROM (SELECT pid AS p, day FROM t) GROUP BY p, day",
        ):
            with pytest.raises(ParameterError, match="would show who is in the data"):
                pdrisk.sql(query, t=rows, keys="observed", **told)
        for by in ("pid", ["pid", "day"]):
            with pytest.raises(ParameterError, match="would show who is in the data"):
                rows.dprisk.count(by=by, keys="observed", **told)
        assert rows.dprisk.count(by="pid", keys=[1, 7], **told).index.tolist() == [1, 7]

    def test_by_table(self):
        answer = pdrisk.sql(
            "SELECT COUNT(DISTINCT patient) AS n FROM stays", eps=100, person={"stays": "patient"},
            stays=pd.DataFrame({"patient": [1, 1, 2]}),
        )  # fmt: skip
        assert answer["n"].tolist() == [2]

    def test_a_persons_day(self):
        frame = pd.DataFrame({"pid": [1, 1, 1, 2, 2], "day": [1, 1, 2, 1, None], "x": 1.0})
        answer = pdrisk.sql(
            "SELECT COUNT(*) AS n FROM t", eps=100, person=["pid", "day"], rows=1, curator=True, t=frame
        )
        assert answer["n_n"].tolist() == [3]

    def test_ids_that_are_missing_are_nobody(self):
        frame = pd.DataFrame({"pid": ["a", None, "b", "b"], "z": [1.0, math.nan, 2, 2]})
        for person in ("pid", "z"):
            answer = pdrisk.sql("SELECT COUNT(*) AS n FROM t", eps=1, person=person, rows=1, curator=True, t=frame)
            assert answer["n_n"].tolist() == [2]

    @pytest.mark.parametrize(
        ("sql_type", "largest"),
        [("BIGINT", 2**63 - 1), ("HUGEINT", 2**100), ("DECIMAL(9, 1)", 0.5), ("DOUBLE", "infinity")],
    )
    def test_ids_of_numbers(self, sql_type, largest):
        """People are those of the different numbers; NULL is nobody, and so is NaN."""
        con = duckdb.connect()
        con.execute(f"CREATE TABLE stays (pid {sql_type}); CREATE TABLE drugs (pid {sql_type})")
        somebody = [1, 1, 2, largest, largest]
        nobody = [None, None, *(["nan"] * 3 if sql_type == "DOUBLE" else [])]
        for table in ("stays", "drugs"):
            con.executemany(f"INSERT INTO {table} VALUES (CAST(? AS {sql_type}))", [[pid] for pid in somebody + nobody])
        queries = {
            "SELECT COUNT(DISTINCT pid) AS n FROM stays": ({}, 3),
            "SELECT COUNT(*) AS n FROM stays": ({"rows": 9}, 5),
            "SELECT COUNT(pid) AS n FROM stays": ({"rows": 1}, 3),
            "SELECT COUNT(DISTINCT pid) AS n FROM stays JOIN drugs USING (pid)": ({}, 3),
            "SELECT COUNT(*) AS n FROM stays JOIN drugs USING (pid)": ({"rows": 9}, 9),
            "SELECT SUM(n) AS n FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid)": (
                {"bounds": {"n": (0, 9)}},
                3,
            ),
        }
        for query, (how, people) in queries.items():
            answer = pdrisk.sql(query, con, eps=1, person="pid", curator=True, **how)
            assert answer["n_n"].tolist() == [people], query

    def test_labels(self):
        answer = dataset().sql("SELECT g, AVG(x) AS m FROM data GROUP BY g", eps=1, rows=2, groups=2, keys=KEYS)
        said = " ".join(pdrisk.explain(answer, "publication").split())
        assert "each pid counts in 2 groups at most" in said and "at most 2 rows of each count" in said

    @pytest.mark.parametrize(
        ("query", "options", "says"),
        [
            ("SELECT COUNT(*) FROM data", {}, r"write COUNT\(DISTINCT pid\) for a number of people"),
            ("SELECT AVG(x) FROM data", {}, 'Pass one of per_person="mean"'),
            ("SELECT g, AVG(x) FROM data GROUP BY g", {"per_person": "mean", "keys": KEYS}, "several groups of by=g"),
            ("SELECT COUNT(DISTINCT g) FROM data", {"per_person": "mean"}, "pass rows= instead"),
            ("SELECT SUM(x) FROM data", {"per_person": "sum"}, "needs the bounds of that number of a person"),
            ("SELECT AVG(x) FROM data", {"rows": 1, "per_person": "max"}, "pass one of them"),
        ],
    )
    def test_refused_in_words(self, query, options, says):
        with pytest.raises(ParameterError, match=says):
            dataset().sql(query, eps=1, **options)

    def test_unknown_column(self):
        with pytest.raises(pdrisk.UnknownColumnError, match="pidd"):
            pdrisk.sql("SELECT COUNT(*) FROM t", eps=1, person="pidd", rows=1, t=FRAME)

    def test_table_that_is_not_read(self):
        with pytest.raises(ParameterError, match="person= names table visits, and the query reads t"):
            pdrisk.sql("SELECT COUNT(*) FROM t", eps=1, person={"visits": "pid"}, rows=1, t=FRAME)

    def test_a_ledger_remembers_people(self, book):
        ledger = book(eps=2)
        d = dataset(ledger=ledger)
        first, again = (d.sql("SELECT AVG(x) AS m FROM data", eps=1, rows=2) for _ in range(2))
        other = d.sql("SELECT AVG(x) AS m FROM data", eps=1, rows=3)
        assert first["m"][0] == again["m"][0] != other["m"][0]
        assert ledger.remaining().eps == 0


def test_equal_rows_are_those_with_equal_texts(monkeypatch):
    """Numbers are compared instead of hashes of their texts; the same rows of each person count."""
    values = [0.0, -0.0, 0.0, 1.0, 1.5, math.inf, -math.inf, math.nan, 40.0]
    x = np.random.default_rng(4).choice(values, 2400)
    data = dataset(pd.DataFrame({"pid": np.arange(2400) % 200, "x": x, "y": x, "sex": "f"}))

    def found():
        answer = data.sql("SELECT VARIANCE(x) AS v FROM data", eps=1, rows=2, curator=True)
        return answer[[f"v_{name}" for name in FACTS]]

    plain = found()
    monkeypatch.setattr(DuckDBDialect, "writes_all_digits", False)
    pd.testing.assert_frame_equal(found(), plain, check_exact=True, check_flags=False)
