"""What a Dataset of a database table takes, refuses and remembers; nothing in it can be turned against it."""

import datetime as dt
import math

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk

SURE = 1e6  # an eps at which no noise is left to see
warns = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def con():
    return duckdb.connect()


def table(con, columns, rows):
    """A table of these columns, as (connection, name)."""
    con.execute(f"CREATE TABLE people ({columns})")
    if rows:
        con.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return con, "people"


@warns
class TestNamesAndKeys:
    def test_keys_of_floats(self, con):
        """A key is rounded to the column's precision, and there is one zero."""
        d = pdrisk.Dataset(table(con, "x FLOAT, y DOUBLE", [(0.1, -0.0), (0.2, 0.0)]))
        assert d.count(eps=1, by="x", keys=[0.1, 0.3], curator=True)["n"].tolist() == [1, 0]
        zeros = d.count(eps=1, by="y", keys="observed", curator=True)["n"]
        assert zeros.tolist() == [2] and str(zeros.index[0]) == "0.0"

    def test_numbers_that_only_one_side_can_hold(self, con):
        """Neither side is rounded to the type of the other."""
        d = pdrisk.Dataset(table(con, "i BIGINT, x DOUBLE", [(3, 3.5), (4, 3.5), (3, 3.0), (2**53 + 1, 2.0**53)]))
        found = {symbol: d.count(eps=1, where=f"i {symbol} x").curator.n for symbol in ("<", "<=", ">", ">=", "==")}
        assert found == {"<": 1, "<=": 2, ">": 2, ">=": 3, "==": 1}
        between = 2**53 + 1
        found = {symbol: d.count(eps=1, where=f"x {symbol} {between}").curator.n for symbol in ("<", "<=", ">", ">=")}
        assert found == {"<": 4, "<=": 4, ">": 0, ">=": 0}

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", ['a"b', "select", "group", "ä ö", "x; DROP TABLE people", "g0", "n_0", "code"])
    def test_any_name_of_a_column(self, con, name):
        quoted = '"' + name.replace('"', '""') + '"'
        d = pdrisk.Dataset(table(con, f"{quoted} BIGINT", [(1,), (2,), (2,), (None,)]))
        assert d.count(name, eps=SURE).value == 3
        assert d.mean(name, eps=SURE, bounds=(0, 4)).value == pytest.approx(5 / 3, abs=0.01)
        assert d.count(eps=SURE, by=name, keys=[2, None, 1])["value"].tolist() == [2, 1, 1]
        assert d.median(name, eps=SURE, bounds=(0, 4), by=name, keys=[2])["value"].tolist() == pytest.approx(
            [2], abs=0.1
        )

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("key", ["o'west", "'); DROP TABLE people; --", '"', "\\", "$1", "\x00", "\U0001f600", ""])
    def test_any_text_of_a_key(self, con, key):
        d = pdrisk.Dataset(table(con, "g VARCHAR", [(key,), (key,), (key + "x",), (None,)]))
        assert d.count(eps=SURE, by="g", keys=[key, "other"])["value"].tolist() == [2, 0]

    def test_text_is_compared_letter_by_letter(self, con):
        d = pdrisk.Dataset(table(con, "g VARCHAR COLLATE NOCASE", [("a",), ("A",), ("a ",), ("ä",)]))
        assert d.count(eps=SURE, by="g", keys=["a", "A", "a "])["value"].tolist() == [1, 1, 1]
        assert [d.count(eps=SURE, where=f"g {each}").value for each in ("== 'a'", "<= 'Z'", "in ['a', 'ä']")] == [
            1,
            1,
            2,
        ]
        assert d.nunique("g", eps=SURE).value == 4

    def test_collation_of_the_connection(self, con):
        d = pdrisk.Dataset(table(con, "g VARCHAR", [("a",), ("A",)]))
        con.execute("SET default_collation = 'NOCASE'")
        assert d.count(eps=SURE, where="g == 'a'").value == 1

    def test_zeros_and_missing_numbers_are_one_group_each(self, con):
        d = pdrisk.Dataset(table(con, "g DOUBLE", [(0.0,), (-0.0,), (math.nan,), (None,), (math.inf,)]))
        assert d.count(eps=SURE, by="g", keys=[0.0, None, math.inf])["value"].tolist() == [2, 2, 1]
        assert d.nunique("g", eps=SURE).value == 2

    def test_ids_beyond_floats(self, con):
        """Different ids are different people, however long they are."""
        rows = [(2**100 + each, 2**63 + each, "1" * 19 + f".{each}") for each in range(9)]
        d = pdrisk.Dataset(table(con, "a HUGEINT, b UBIGINT, c DECIMAL(38, 2)", rows))
        for column in "abc":
            assert d.nunique(column, eps=SURE).value == 9
            assert d.count(eps=SURE, person=column).value == 9
        assert d.count(eps=SURE, by="b", keys=[2**63 + 3, 7])["value"].tolist() == [1, 0]

    def test_observed(self, con):
        rows = [("b", True, dt.date(2020, 1, 2)), ("a", None, dt.date(1999, 1, 1)), ("b", False, None)]
        d = pdrisk.Dataset(table(con, "g VARCHAR, t BOOLEAN, day DATE", rows))
        assert d.count(eps=SURE, by="g", keys="observed").index.tolist() == ["a", "b"]
        assert d.count(eps=SURE, by="t", keys="observed").index.tolist() == [False, True, pd.NA]
        days = d.count(eps=SURE, by="day", keys="observed", where="g == 'b'")
        assert days.index.tolist() == [pd.Timestamp("1999-01-01"), pd.Timestamp("2020-01-02"), pd.NaT]
        assert days["value"].tolist() == [0, 1, 1]

    def test_categories_of_an_enum(self, con):
        con.execute("CREATE TYPE grade AS ENUM ('low', 'it''s', 'high')")
        d = pdrisk.Dataset(table(con, "g grade", [("low",), ("it's",), (None,)]))
        found = d.count(eps=SURE, by="g", keys="categories")
        assert (found.index.tolist(), found["value"].tolist()) == (["low", "it's", "high"], [1, 1, 0])

    def test_a_key_that_its_type_cannot_hold(self, con):
        d = pdrisk.Dataset(table(con, "g TINYINT, day DATE", [(1, None)]))
        nanosecond = pd.Timestamp("2020-01-01 00:00:00.000000001")
        for by, key, why in (("g", 1.5, "no record"), ("g", 300, "no record"), ("day", nanosecond, "time of day")):
            with pytest.raises(pdrisk.ParameterError, match=why):
                d.count(eps=1, by=by, keys=[key])


@warns
class TestRefused:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "sql_type", ["BIGINT[]", "STRUCT(a BIGINT)", "BLOB", "INTERVAL", "TIME", "MAP(VARCHAR, INT)"]
    )
    def test_types_without_a_question(self, con, sql_type):
        d = pdrisk.Dataset(table(con, f"x {sql_type}, y BIGINT", []), bounds={"y": (0, 1)})
        asks = (
            lambda: d.count("x", eps=1),
            lambda: d.nunique("x", eps=1),
            lambda: d.count(eps=1, where="x.isna()"),
            lambda: d.count(eps=1, person="x", per_person="one"),
            lambda: d.count(eps=1, by="x", keys=["a"]),
        )
        for ask in asks:
            with pytest.raises(pdrisk.ParameterError, match="is of type"):
                ask()
        assert d.count("y", eps=SURE).value == 0

    def test_what_belongs_to_a_frame(self, con):
        d = pdrisk.Dataset(table(con, "x BIGINT", [(1,)]))
        for where in (lambda rows: rows["x"] > 0, pd.Series([True]), np.array([True]), [False]):
            with pytest.raises(pdrisk.ParameterError, match="needs a frame in Python"):
                d.count(eps=1, where=where)
        for where in (3, 0.5, ("x", 1), {"x": 1}, object()):
            with pytest.raises(
                pdrisk.ColumnTypeError, match=f"^where cannot be of type {type(where).__name__}; here it takes"
            ):
                d.count(eps=1, where=where)
        with pytest.raises(pdrisk.ParameterError, match="from frames in Python only"):
            d.mean("x", eps=1, bounds="column")

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "where", ["x * x * x > 1", "x * x > y * y", "x * x / 2 > 1", "x ** 0.5 > 1", "x // y > 1", "f + f > 1"]
    )
    def test_arithmetic_that_no_engine_has_exactly(self, con, where):
        d = pdrisk.Dataset(table(con, "x BIGINT, y BIGINT, f FLOAT", [(1, 1, 1)]))
        with pytest.raises(pdrisk.ParameterError, match=r"is arithmetic|frames round it"):
            d.count(eps=1, where=where)

    def test_long_lists_and_many_bins(self, con, monkeypatch):
        d = pdrisk.Dataset(table(con, "x BIGINT", [(each,) for each in range(50)]))
        listed = list(range(0, 4_000, 2))
        assert d.count(eps=SURE, where=f"x in {listed}").value == 25
        assert d.hist("x", bins=200, bounds=(0, 200), eps=SURE)["value"].tolist() == [1] * 50 + [0] * 150
        with pytest.raises(pdrisk.ParameterError, match="2,000 bins at most"):
            d.hist("x", bins=2001, bounds=(0, 2000), eps=1)
        monkeypatch.setattr("pdrisk.engines.sql.compiler.values.LONGEST", 10_000)
        with pytest.raises(pdrisk.ParameterError, match="too long for a database"):
            d.count(eps=1, where=f"x in {list(range(1_000))}")

    def test_a_table_that_changed(self, con):
        d = pdrisk.Dataset(table(con, "x BIGINT", [(1,)]))
        assert d.count(eps=SURE).value == 1
        con.execute("ALTER TABLE people ALTER x TYPE VARCHAR")
        with pytest.raises(pdrisk.ParameterError, match="other columns or types"):
            d.count(eps=1)
        con.execute("DROP TABLE people")
        with pytest.raises(pdrisk.ParameterError):
            d.count(eps=1)

    def test_a_view_that_looks_at_other_records(self, con):
        table(con, "x BIGINT", [(1,)])
        con.execute("CREATE VIEW shown AS SELECT x - avg(x) OVER () AS x FROM people")
        with pytest.raises(pdrisk.ParameterError):
            pdrisk.Dataset((con, "shown")).count(eps=1)

    def test_settings_and_macros(self, con):
        d = pdrisk.Dataset(table(con, "x BIGINT", [(7,), (-7,)]))
        con.execute("SET integer_division = true")
        con.execute("CREATE MACRO count(x) AS 99")
        con.execute("CREATE MACRO floor(x) AS 99")
        con.execute('CREATE MACRO "+"(x, y) AS 99')
        con.execute("SET default_null_order = 'nulls_first'")
        try:
            value = d.count(eps=SURE, where="x / 2 == 3.5 and x + 1 == 8").value
        except pdrisk.ParameterError:
            pytest.fail("what pdrisk writes out means the same under any of these")
        assert value == 1

    def test_nothing_fails_on_a_record(self, con):
        rows = [(2**63 - 1, 1e308, "9" * 400, dt.date(9999, 12, 31)), (-(2**63), -math.inf, "", dt.date(1, 1, 1))]
        d = pdrisk.Dataset(table(con, "x BIGINT, y DOUBLE, s VARCHAR, day DATE", rows))
        con.execute("INSERT INTO people SELECT 0, 'nan', 'x', 'infinity'")
        con.execute("INSERT INTO people SELECT 0, 0, 'x', DATE '5881580-07-10'")
        for where in (
            "x * x > 0",
            "y * y > 0",
            "x // -1 > 0",
            "x / y > 0",
            "y % 7 > 0",
            "-x > 0",
            "day > '2020-01-01'",
        ):
            d.count(eps=1, where=where)
        for column in ("x", "y"):
            d.agg({column: ["mean", "var", "median"]}, eps=9, bounds=(0, 1))
        assert d.count(eps=SURE, where="day.isna()").value == 2  # beyond the years that a date of Python has


@warns
class TestDeclared:
    def test_bounds_keys_and_codes(self, con):
        rows = [("n", 10), ("s", -1), ("n", 20), ("x", 0)]
        said = {"bounds": {"y": (0, 20)}, "keys": {"g": ["n", "s"]}, "missing": {"y": [-1], "g": ["x"]}}
        d = pdrisk.Dataset(table(con, "g VARCHAR, y TINYINT", rows), **said)
        assert d.mean("y", eps=SURE).value == pytest.approx(10, abs=0.01)
        assert d.count("y", eps=SURE, by="g")["value"].tolist() == [2, 0]
        assert d.count(eps=SURE, where="y.isna()").value == d.count(eps=SURE, where="g.isna()").value == 1
        assert d.assign(z="y + 1").count("z", eps=SURE).value == 3
        with pytest.raises(pdrisk.ParameterError, match="missing"):
            d.count(eps=1, where="y == -1")

    def test_those_behind_a_view(self, con):
        table(con, "g VARCHAR, y TINYINT", [("n", 10), ("s", -1)])
        con.execute("CREATE VIEW shown AS SELECT y AS years, g FROM people WHERE g <> 'z'")
        d = pdrisk.Dataset((con, "shown"))
        assert d.count("years", eps=SURE).value == 2
        assert d.count(eps=SURE, by="years", keys=[10, -1])["value"].tolist() == [1, 1]

    def test_codes_are_gone_before_a_view_looks(self, con):
        table(con, "g VARCHAR, y TINYINT", [("n", 10), ("s", -1), ("n", 3), (None, 7)])
        con.execute("CREATE VIEW few AS SELECT g, y FROM (SELECT * FROM people WHERE y < 9) WHERE g IS NOT NULL")
        d = pdrisk.Dataset((con, "few"), missing={"y": [-1]}, bounds={"y": (0, 9)})
        assert d.count(eps=SURE).value == d.sql("SELECT COUNT(*) AS n FROM data", eps=SURE)["n"][0] == 1
        assert d.mean("y", eps=SURE).value == pytest.approx(3, abs=0.01)

    def test_in_a_file(self, tmp_path):
        frame = pd.DataFrame({"y": [1.0, -9.0, 3.0]})
        frame.dprisk.declare(bounds={"y": (0, 4)}, missing={"y": [-9]}).to_parquet(tmp_path / "people.parquet")
        d = pdrisk.Dataset(tmp_path / "people.parquet")
        assert d.mean("y", eps=SURE).value == pytest.approx(2, abs=0.01)

    def test_people_of_a_file(self, tmp_path):
        """Who a person is stands in the file, as bounds do: nobody needs to say it again to be protected by it."""
        frame = pd.DataFrame({"pid": [1, 1, 2, 3], "y": [1.0, 3.0, 2.0, 2.0]})
        frame.dprisk.declare(person="pid", bounds={"y": (0, 4)}).to_parquet(tmp_path / "people.parquet")
        d = pdrisk.Dataset(tmp_path / "people.parquet")
        assert d.count(eps=SURE).value == 3
        assert d.mean("y", eps=SURE, per_person="mean").unit == "pid"
        with pytest.raises(pdrisk.ParameterError, match="per_person="):
            d.mean("y", eps=1)

    def test_query_and_assign(self, con):
        rows = [(each, each % 3) for each in range(30)]
        d = pdrisk.Dataset(table(con, "x BIGINT, g BIGINT", rows)).assign(decade="x // 10 * 10", odd="x % 2 == 1")
        odd = d.query("odd and g != 0")
        wanted = [sum(x % 2 == 1 and g != 0 and x // 10 * 10 == key for x, g in rows) for key in (0, 10, 20)]
        assert odd.count(eps=SURE, by="decade", keys=[0, 10, 20])["value"].tolist() == wanted
        assert d.proportion("odd", eps=SURE).value == pytest.approx(0.5, abs=0.01)


class TestBounds:
    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("values", [[0.5, 3.0, 700.0], [-1e9, -1e8, 0.0], [1e-5, 2e-5, 0.0], [math.inf, 5.0, -5.0]])
    def test_sizes_as_on_a_frame(self, con, values, monkeypatch):
        """Of each sign and size there are as many."""
        seen = []
        ends = "pdrisk._pandas.suggested_bounds.ends"
        monkeypatch.setattr(ends, lambda counts, _: seen.append(np.rint(counts).tolist()) or (0.0, 1.0))
        rows = [(each,) for each in values * 40] + [(None,), (math.nan,)]
        pdrisk.Dataset(table(con, "x DOUBLE", rows)).suggest_bounds("x", eps=SURE)
        pd.DataFrame({"x": np.array(rows, dtype=float)[:, 0]}).dprisk.suggest_bounds("x", eps=SURE)
        assert seen[0] == seen[1]
        assert sum(seen[0]) == 40 * len(values)


@warns
class TestPeople:
    ROWS = ((1, "d1", 5.0), (1, "d1", 7.0), (1, "d2", 9.0), (2, "d1", 1.0), (None, "d1", 3.0), (2, None, 3.0))

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("way", ["mean", "sum", "min", "max", "count"])
    @pytest.mark.parametrize("person", ["pid", ["pid", "day"]])
    def test_as_on_a_frame(self, con, way, person):
        frame = pd.DataFrame(list(self.ROWS), columns=["pid", "day", "x"]).astype({"pid": "Int64", "day": "string"})
        found, wanted = (
            pdrisk.Dataset(data, person=person, per_person=way).agg(
                {"x": ["count", "mean", "max"]}, eps=SURE, bounds=(0, 30), curator=True, mechanism="laplace"
            )
            for data in (table(con, "pid BIGINT, day VARCHAR, x DOUBLE", self.ROWS), frame)
        )
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-2, atol=0.1)
        assert found["n"].tolist() == wanted["n"].tolist() == [2 if person == "pid" else 3] * 3

    def test_rows_and_one(self, con):
        d = pdrisk.Dataset(table(con, "pid BIGINT, day VARCHAR, x DOUBLE", self.ROWS), person="pid", per_person="one")
        assert d.count(eps=SURE).value == 2
        assert d.count(eps=SURE, rows=2).value == 4
        assert 1 <= d.max("x", eps=SURE, bounds=(0, 10)).value <= 10
        assert int(d.suggest_rows(eps=SURE, share=0.4)) == 2


@warns
class TestLedger:
    def test_pays_and_remembers_by_version(self, tmp_path):
        con = duckdb.connect(str(tmp_path / "people.duckdb"))
        data = table(con, "x BIGINT, g VARCHAR", [(each, "a") for each in range(100)])
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        d = pdrisk.Dataset(data, ledger=ledger, version="1", bounds={"x": (0, 100)})
        first = d.mean("x", eps=1, where="x > 3")
        assert d.mean("x", eps=1, where="x > 3").value == first.value
        assert ledger.remaining().eps == 8
        con.execute("CREATE TABLE others AS SELECT * FROM people")
        pdrisk.Dataset((con, "others"), ledger=ledger, version="1", bounds={"x": (0, 100)}).mean(
            "x", eps=1, where="x > 3"
        )
        assert ledger.remaining().eps == 7
        con.close()

    def test_failure_stays_paid(self, con, tmp_path, monkeypatch):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        d = pdrisk.Dataset(table(con, "x BIGINT", [(1,)]), ledger=ledger)
        monkeypatch.setattr("pdrisk._sql.dataset.duckdb_table.fetched", lambda *_: 1 / 0)
        with pytest.raises(pdrisk.QueryFailedError) as failed:
            d.count(eps=1)
        assert failed.value.__cause__ is failed.value.__context__ is None
        assert ledger.remaining().eps == 8

    def test_refused_before_it_is_paid(self, con, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        d = pdrisk.Dataset(table(con, "x BIGINT, y BIGINT[]", [(1, [1])]), ledger=ledger)
        for ask in (lambda: d.count("y", eps=1), lambda: d.count(eps=1, where="x * x * x > 1")):
            with pytest.raises(pdrisk.ParameterError):
                ask()
        assert ledger.remaining().eps == 9
