"""Options of ``pdrisk.sql`` beside its query: tables by name, mechanism, risk columns, the curator's columns."""

import math
from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.curator import Curator
from sql_people import PEOPLE, REGIONS, connection, lines, refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
COUNT = "SELECT COUNT(*) AS n FROM {}"
PUBLIC = ("low", "high", "eps", "worst_case")


@pytest.fixture(scope="module")
def con():
    return connection()


class TestTables:
    """``tables=`` names tables as keywords do, also those named like an option."""

    @pytest.mark.parametrize("name", ["bounds", "con", "query", "eps", "tables", "frames", "a table", "людей"])
    def test_named_like_an_option(self, name, monkeypatch):
        without_noise(monkeypatch)
        query = COUNT.format(f'"{name}"')
        assert pdrisk.sql(query, eps=1, tables={name: PEOPLE})["n"].item() == len(PEOPLE)

    def test_beside_keywords_and_a_connection(self, con, tmp_path, monkeypatch):
        without_noise(monkeypatch)
        PEOPLE.head(7).to_parquet(tmp_path / "some.parquet")
        tables = {"keys": tmp_path / "some.parquet", "people": PEOPLE.head(3)}
        for name, n in (("keys", 7), ("people", 3), ("few", 2), ("memory.people", len(PEOPLE))):
            answer = pdrisk.sql(COUNT.format(name), con, eps=1, tables=tables, few=PEOPLE.head(2))
            assert answer["n"].item() == n

    @pytest.mark.parametrize("name", ["people", "PEOPLE"])
    def test_given_twice(self, name, monkeypatch):
        error = refusal(monkeypatch, COUNT.format("people"), eps=1, tables={name: PEOPLE}, people=PEOPLE.head(3))
        assert str(error) == f"table {name} is given twice, in tables= and by keyword: give it once."

    @pytest.mark.parametrize(
        ("tables", "why"),
        [
            ([PEOPLE], "tables is a dict from name to frame, not of type list."),
            (PEOPLE, "tables is a dict from name to frame, not of type DataFrame."),
            ({3: PEOPLE}, "tables has a name of type int: names of tables are text."),
            ({None: PEOPLE, "eps": PEOPLE}, "tables has a name of type NoneType: names of tables are text."),
            ({"eps": 5}, "a pandas, Polars or Arrow frame, or the path of a Parquet file, not of type int."),
        ],
        ids=["list", "frame", "number", "none", "no frame"],
    )
    def test_another_kind(self, tables, why, monkeypatch):
        error = refusal(monkeypatch, COUNT.format("people"), eps=1, tables=tables)
        assert isinstance(error, pdrisk.ColumnTypeError)
        assert str(error).endswith(why)


class TestMechanism:
    """``mechanism=`` holds for every aggregate of the query."""

    QUERY = (
        "SELECT COUNT(*) AS n, AVG(age) AS a, SUM(age) AS s, MEDIAN(age) AS m, dp_mean(age, eps := 1) AS b FROM people"
    )

    @pytest.mark.parametrize(
        ("options", "used"),
        [
            ({}, ["geometric", "two_sums", "two_sums", "exponential", "two_sums"]),
            ({"mechanism": "auto"}, ["geometric", "two_sums", "two_sums", "exponential", "two_sums"]),
            ({"mechanism": "laplace"}, ["laplace"] * 5),
        ],
    )
    def test_of_each_line(self, options, used, con):
        answer = pdrisk.sql(self.QUERY, con, eps=5, bounds=(18, 90), **options)
        assert [line.mechanism for line in lines(answer)] == used
        assert [line.scale is None for line in lines(answer)] == [each in ("two_sums", "exponential") for each in used]
        assert answer["n"].dtype.kind == ("i" if used[0] == "geometric" else "f")

    def test_by_name(self, con):
        (line,) = lines(pdrisk.sql("SELECT AVG(age) FROM people", con, eps=1, bounds=(0, 9), mechanism="two_sums"))
        assert line.mechanism == "two_sums"
        (line,) = lines(pdrisk.sql("SELECT COUNT(age) FROM people", con, eps=1, mechanism="geometric"))
        assert line.mechanism == "geometric"

    def test_answers_of_auto_are_possible_ones(self, con):
        query = "SELECT id, COUNT(*) AS n, dp_mean(age, lo := 0, hi := 1) AS m FROM people GROUP BY id"
        answer = pdrisk.sql(query, con, eps=0.1, keys=range(200, 260), risk_columns=True)
        assert (answer["n"] >= 0).all()
        assert answer[["m", "m_low", "m_high"]].stack().between(0, 1).all()
        assert answer["m_low"].le(answer["m_high"]).all()

    @pytest.mark.parametrize("values", [[0, 4, 12, -7, 9], [0.25, 4.5, 12.75, -7.5, 8.5], []], ids=str)
    def test_sums_of_declared_integers_are_whole(self, values, monkeypatch):
        pa = pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema({"k": pa.Column(int, pa.Check.in_range(-3, 9))})
        drawn = without_noise(monkeypatch)
        frame = pd.DataFrame({"k": np.array(values, dtype=float)}).dprisk.declare(schema)
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS FROM frame")
        release = frame.dprisk.sum("k", eps=5)
        assert release.mechanism == "geometric"
        for source in ({"con": con, "schema": schema}, {"t": frame}):
            answer = pdrisk.sql("SELECT SUM(k) AS s FROM t", eps=5, curator=True, **source)
            (line,) = lines(answer)
            assert (line.mechanism, line.bounds, line.global_sensitivity) == ("geometric", (-3, 9), 9)
            assert answer["s"].dtype.kind == "i"
            assert answer["s"].item() == release.value == sum(math.floor(min(max(x, -3), 9) + 0.5) for x in values)
            assert (answer["s_low"].item(), answer["s_high"].item()) == (release.low, release.high)
            for name in Curator.COLUMNS:
                assert answer[f"s_{name}"].item() == pytest.approx(getattr(release.curator, name), nan_ok=True), name
        assert {change for _, change, _ in drawn} == {9}

    @pytest.mark.parametrize(
        ("item", "mechanism", "why"),
        [
            ("COUNT(*)", "two_sums", "mechanism 'two_sums' cannot answer count; available for it: auto, laplace, "),
            ("AVG(age)", "geometric", "mechanism 'geometric' cannot answer mean; available for it: auto, laplace, "),
            ("COUNT(*), AVG(age)", "two_sums", "cannot answer count"),
            ("COUNT(*)", "gaussian", "unknown mechanism 'gaussian'; available: auto, laplace, "),
            ("COUNT(*)", None, 'mechanism is a name, such as "auto", not of type NoneType.'),
        ],
    )
    def test_refused(self, item, mechanism, why, con, monkeypatch):
        query = f"SELECT {item} FROM people"
        assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=(0, 99), mechanism=mechanism))


class TestColumns:
    """``risk_columns=True`` adds what may be published, ``curator=True`` that and what may not."""

    QUERY = "SELECT region, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY region"
    OPTIONS: ClassVar = {"eps": 2, "bounds": (18, 90), "keys": REGIONS}

    @staticmethod
    def named(*suffixes: str) -> list[str]:
        return ["region", "a", "n", *(f"{name}_{suffix}" for name in "an" for suffix in suffixes)]

    def test_public(self, con):
        answer = pdrisk.sql(self.QUERY, con, **self.OPTIONS, risk_columns=True)
        assert answer.columns.tolist() == self.named(*PUBLIC)
        assert pdrisk.public(answer).columns.tolist() == answer.columns.tolist()
        assert answer["a_eps"].tolist() == [1.0] * 3
        assert answer["a_worst_case"].tolist() == [pytest.approx(1 / (1 + math.exp(-1)))] * 3

    @pytest.mark.parametrize("risk_columns", [False, True])
    def test_the_curators_columns_come_with_the_public_ones(self, risk_columns, con):
        answer = pdrisk.sql(self.QUERY, con, **self.OPTIONS, curator=True, risk_columns=risk_columns)
        assert answer.columns.tolist() == self.named(*PUBLIC, *Curator.COLUMNS)
        assert pdrisk.public(answer).columns.tolist() == self.named(*PUBLIC)

    def test_neither(self, con):
        answer = pdrisk.sql(self.QUERY, con, **self.OPTIONS)
        assert answer.columns.tolist() == self.named()
        assert not any(name in answer.attrs["dprisk"] for name in ("identifiability", "two_worlds", "clamped"))

    @pytest.mark.parametrize(
        ("option", "value"), [("curator", "yes"), ("curator", 1), ("risk_columns", 1), ("risk_columns", None)]
    )
    def test_another_kind(self, option, value, con, monkeypatch):
        error = refusal(monkeypatch, self.QUERY, con, **self.OPTIONS, **{option: value})
        assert str(error) == f"{option} is True or False, not of type {type(value).__name__}."
        assert isinstance(error, pdrisk.ColumnTypeError)

    def test_a_ledger_shows_the_curators_columns_to_curators_only(self, tmp_path):
        asked = {"eps": 1, "people": PEOPLE, "curator": True}
        owner = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        with pytest.raises(pdrisk.PolicyError, match="curator"):
            pdrisk.sql(COUNT.format("people"), ledger=owner, **asked)
        assert owner.remaining().eps == 9
        answer = pdrisk.sql(COUNT.format("people"), eps=1, people=PEOPLE, ledger=owner, risk_columns=True)
        assert answer.columns.tolist() == ["n", *(f"n_{suffix}" for suffix in PUBLIC)]


class TestClamped:
    """The share of records outside the bounds, gaps left out, is that of the accessor."""

    X = (-5, 0.5, 3, 99, math.nan, math.inf, -math.inf, 1, 0, 4, None, 4.0000001)
    GROUPS = tuple("aaaabbbbccdd")

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("bounds", [(0, 4), (-5, 99), (0.5, 1), (200, 300)])
    @pytest.mark.parametrize("statistic", ["mean", "sum", "median", "min", "max", "var", "std", "count"])
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    def test_as_the_accessor(self, mechanism, statistic, bounds):
        frame = pd.DataFrame({"x": np.array(self.X, dtype=float), "g": self.GROUPS})
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT CASE WHEN x IS NOT NULL THEN x END AS x, g FROM frame")
        options = {"eps": 1, "mechanism": mechanism, "curator": True}
        given = {} if statistic == "count" else {"bounds": bounds}
        lo, hi = bounds if given else (-math.inf, math.inf)
        known = frame["x"].dropna()
        outside = (known < lo) | (known > hi)
        shares = {"all": outside.mean(), **outside.groupby(frame["g"]).mean(), "nobody": math.nan if given else 0.0}
        alone = getattr(frame.dprisk, statistic)("x", **options, **given).curator.clamped
        keys = ["d", "a", "nobody", "b", "c"]
        grouped = getattr(frame.dprisk, statistic)("x", by="g", keys=keys, **options, **given)["clamped"]
        for source in ({"con": con}, {"t": frame}):
            query = f"SELECT dp_{statistic}(x) AS s FROM t"
            answer = pdrisk.sql(query, **options, **given, **source)
            assert answer["s_clamped"].item() == pytest.approx(shares["all"]) == alone
            answer = pdrisk.sql(f"{query} GROUP BY g", keys=keys, **options, **given, **source)
            expected = pytest.approx([shares[key] for key in keys], nan_ok=True)
            assert answer["s_clamped"].tolist() == expected
            assert grouped.tolist() == expected

    def test_of_a_filter_and_an_expression(self, con):
        query = "SELECT AVG(age) FILTER (WHERE member) AS a, dp_mean(age * 2, lo := 40, hi := 100) AS b FROM people"
        answer = pdrisk.sql(query, con, eps=1, bounds=(30, 50), curator=True)
        members, doubled = PEOPLE["age"][PEOPLE["member"]], PEOPLE["age"] * 2
        assert answer["a_clamped"].item() == pytest.approx(1 - members.between(30, 50).mean())
        assert answer["b_clamped"].item() == pytest.approx(1 - doubled.between(40, 100).mean())


class TestTruthValues:
    """Columns and conditions that are true or false have the bounds 0 and 1 by type."""

    @pytest.mark.parametrize(
        "item", ["AVG(member)", "AVG(age > 50)", "SUM(member)", "dp_mean(NOT member)", "MAX(sex = 'f')"]
    )
    @pytest.mark.parametrize("bounds", [None, {"age": (0, 99)}, {}])
    def test_need_no_bounds(self, item, bounds, con):
        for source in ({"con": con}, {"people": PEOPLE}):
            (line,) = lines(pdrisk.sql(f"SELECT {item} FROM people", eps=1, bounds=bounds, **source))
            assert line.bounds == (0.0, 1.0)

    def test_own_bounds_are_taken(self, con):
        queries = {
            "SELECT dp_mean(member, lo := 0, hi := 2) FROM people": None,
            "SELECT AVG(member) FROM people": {"member": (0, 2)},
        }
        for query, bounds in queries.items():
            (line,) = lines(pdrisk.sql(query, con, eps=1, bounds=bounds))
            assert line.bounds == (0.0, 2.0)

    def test_as_the_accessor(self, con, monkeypatch):
        without_noise(monkeypatch)
        release = PEOPLE.dprisk.mean("member", eps=1)
        answer = pdrisk.sql("SELECT AVG(member) AS m FROM people", con, eps=1, curator=True)
        assert release.bounds == (0.0, 1.0)
        assert answer["m"].item() == release.value == pytest.approx(0.2)
        assert answer["m_clamped"].item() == 0
        assert answer["m_local_sensitivity"].item() == pytest.approx(release.curator.local_sensitivity)

    def test_numbers_still_need_them(self, con, monkeypatch):
        error = refusal(monkeypatch, "SELECT AVG(CASE WHEN member THEN 1 ELSE age END) FROM people", con, eps=1)
        assert "needs the bounds of the expression" in str(error)
