"""``pdrisk.sql(..., schema=)``: bounds, keys and missing codes of a table, wherever the people are."""

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pandera.pandas as pa
import pandera.polars
import polars as pl
import pyarrow
import pytest

import pdrisk
from errors_said import everything_said
from sql_people import ask, assert_same_facts, by_accessor, described, refusal, risks, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    return without_noise(monkeypatch)


# fmt: off
NOBODY = pd.Timestamp("1900-01-01")
CODES = {"distance": [-1, -2], "region": ["?", "NA"], "hours": [-1], "day": [NOBODY]}
PEOPLE = pd.DataFrame({
    "distance": [3, -1, 10, -2, 17, -5, 60, -1, 8, 3, 25, -2],  # -5 is an answer
    "region": ["north", "?", "south", "NA", "north", "west", "?", "south", "", "north", "NA", "elsewhere"],
    "sex": list("fmfmfmfmfmfm"),
    "hours": [7.5, -1, 8, 0, 12, 3.5, -1, 6, 9, -1, 8.5, 4],
    "day": pd.to_datetime(["1900-01-01", "2020-01-01", "1899-12-31", "1900-01-01 12:00"] * 3, format="ISO8601"),
})
QUERIES = [
    "SELECT COUNT(*), COUNT(distance), COUNT(region), COUNT(hours), COUNT(day), COUNT(distance + 1) FROM people",
    "SELECT SUM(distance), AVG(distance), MEDIAN(distance), QUANTILE_CONT(distance, 0.9), MIN(distance), MAX(distance) "
    "FROM people",
    "SELECT VAR_SAMP(hours), VAR_POP(hours), STDDEV_SAMP(hours), STDDEV_POP(hours), AVG(hours) FROM people",
    "SELECT COUNT(*), SUM(hours) FROM people WHERE distance < 5",
    "SELECT COUNT(*), SUM(hours) FROM people WHERE distance IS NULL",
    "SELECT COUNT(*), MEDIAN(hours) FROM people WHERE NOT distance > 3 OR day < DATE '1900-01-02'",
    "SELECT COUNT(*) FROM people WHERE COALESCE(distance, 50) > 20 AND region NOT IN ('north', '?')",
    "SELECT COUNT(*) FILTER (distance < 0), AVG(hours) FILTER (region IS NULL), COUNT(*) FILTER (day IS NULL) "
    "FROM people",
    "SELECT region, COUNT(*), COUNT(distance), AVG(distance) FROM people GROUP BY region",
    "SELECT region AS r, sex, COUNT(*) AS n, MAX(hours) FROM people WHERE hours < 9 GROUP BY ALL HAVING n >= 0 "
    "ORDER BY n DESC, r LIMIT 4",
    "SELECT dp_sum(distance + 1, lo := -9, hi := 200), dp_mean(abs(distance), lo := 0, hi := 10) FROM people",
    "SELECT dp_mean(distance, lo := 2, hi := 50), dp_max(hours, lo := 1, hi := 18) FROM people",
    "SELECT COUNT(*) FROM people WHERE CASE WHEN distance < 0 THEN upper(region) = 'WEST' ELSE false END",
    "SELECT SUM(d), COUNT(d) FROM (SELECT distance AS d, region FROM people WHERE distance <= 20) WHERE region >= ''",
    "SELECT r, COUNT(*), SUM(distance) FROM (SELECT * FROM (SELECT region AS r, * FROM people) WHERE hours > -2) "
    "GROUP BY r",
    "WITH near AS (SELECT * FROM people WHERE distance < 20), few AS (SELECT region AS r, hours FROM near) "
    "SELECT r, COUNT(*), SUM(hours) FROM few GROUP BY r",
    "SELECT AVG(p.Distance), COUNT(p.REGION) FROM People AS p WHERE p.dAy > '1800-01-01'",
]
# fmt: on


def column(*checks: pa.Check, **said: Any) -> pa.Column:
    return pa.Column(None, list(checks), metadata={"dprisk": said} if said else None)


def only(name: Any, *checks: pa.Check, **said: Any) -> pa.DataFrameSchema:
    return pa.DataFrameSchema({name: column(*checks, **said)})


def schema(codes: bool = True) -> pa.DataFrameSchema:
    """What is known of the people, with or without codes."""
    missing = {name: {"missing": CODES[name]} if codes else {} for name in CODES}
    return pa.DataFrameSchema(
        {
            "distance": column(pa.Check.in_range(-5, 100), **missing["distance"]),
            "region": column(pa.Check.isin(["south", *"?" * codes, "north", "west"]), **missing["region"]),
            "sex": column(pa.Check.isin(["f", "m"])),
            "hours": column(pa.Check.in_range(-1, 18), bounds=(0, 18), **missing["hours"]),
            "day": column(**missing["day"]),
        }
    )


def connected(*statements: str, frame: pd.DataFrame = PEOPLE) -> duckdb.DuckDBPyConnection:
    """A database with the table base, after these statements."""
    con = duckdb.connect()
    con.execute("CREATE TABLE base AS SELECT * FROM frame")
    for statement in statements:
        con.execute(statement)
    return con


@cache
def without_codes(query: str) -> pd.DataFrame:
    """The answer for people with a NULL where a code stood."""
    con = duckdb.connect()
    con.execute("CREATE TABLE people (distance BIGINT, region VARCHAR, sex VARCHAR, hours DOUBLE, day TIMESTAMP)")
    for row in PEOPLE.itertuples(index=False):
        values = [None if value in CODES.get(name, []) else value for name, value in zip(row._fields, row, strict=True)]
        con.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?)", values)
    return pdrisk.sql(query, con, eps=1, schema=schema(codes=False), curator=True)


def parquet(folder: Any) -> str:
    PEOPLE.to_parquet(path := folder / "it's people.parquet")
    return str(path)


SOURCES = {
    "pandas": lambda _: {"people": PEOPLE},
    "nullable pandas": lambda _: {"people": PEOPLE.convert_dtypes()},
    "categories": lambda _: {"people": PEOPLE.astype({"region": "category", "sex": "category"})},
    "polars": lambda _: {"people": pl.from_pandas(PEOPLE)},
    "lazy polars": lambda _: {"people": pl.from_pandas(PEOPLE).lazy()},
    "Arrow": lambda _: {"people": pyarrow.Table.from_pandas(PEOPLE)},
    "Parquet": lambda folder: {"con": duckdb.connect(), "people": parquet(folder)},
    "table": lambda _: {"con": connected("CREATE TABLE people AS SELECT * REPLACE (day::TIMESTAMP AS day) FROM base")},
    "temporary table": lambda _: {"con": connected("CREATE TEMP TABLE people AS FROM base")},
    "view": lambda _: {"con": connected("CREATE VIEW people AS SELECT sex, * EXCLUDE (sex) FROM base")},
    "other case": lambda _: {
        "con": connected("CREATE VIEW people AS FROM base", frame=PEOPLE.rename(columns=str.upper))
    },
    "registered": lambda _: {"con": duckdb.connect().register("people", PEOPLE)},
    "declared": lambda _: {"people": PEOPLE.dprisk.declare(missing=CODES)},
}


class TestSources:
    """A schema with codes over any source says what the table without them says."""

    @pytest.mark.sampled(17)
    @pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
    @pytest.mark.parametrize("source", SOURCES)
    def test_as_without_codes(self, source, query, tmp_path):
        found = pdrisk.sql(query, eps=1, schema=schema(), curator=True, **SOURCES[source](tmp_path))
        expected = without_codes(query)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
        assert described(found).lines == described(expected).lines
        assert found.attrs == expected.attrs if source == "table" else "without_codes" not in str(found.attrs)

    @pytest.mark.parametrize(("name", "bounds"), [("distance", (-5, 100)), ("hours", (0, 18))])
    @pytest.mark.parametrize("where", ["distance < 9", "hours >= 0 and day > '1800-01-01'"])
    def test_as_the_accessor(self, name, bounds, where):
        coded = PEOPLE.dprisk.declare(schema())
        bounds = (-5, 9) if where.startswith(name) and name == "distance" else bounds  # those that WHERE gives
        asked = [ask(one, name, where, bounds=bounds) for one in ("count", "sum", "mean", "median", "max")]
        items = ", ".join(f"dp_{one.statistic}({name}, eps := 1)" for one in asked)
        query = f"SELECT {items} FROM t WHERE {where}"
        for options in ({"t": PEOPLE, "schema": schema()}, {"t": coded}):
            found = risks(pdrisk.sql(query, eps=5, curator=True, **options))
            for one, facts in zip(asked, found, strict=True):
                assert_same_facts(facts, by_accessor(one, 1, frame=coded))


class TestBounds:
    """The schema's range is used where no bounds are given, and never exceeded."""

    @pytest.mark.parametrize(
        ("asked", "options", "expected"),
        [
            ("AVG(HOURS) FROM t", {}, [0, 18]),
            ("dp_mean(hours) FROM t", {}, [0, 18]),
            ("dp_mean(hours, lo := 1, hi := 3) FROM t", {}, [1, 3]),
            ("dp_mean(hours + 1, lo := -9, hi := 99) FROM t", {}, [-9, 99]),
            ("AVG(hours) FROM t", {"bounds": (1, 9)}, [1, 9]),
            ("AVG(hours) FROM t", {"bounds": {"HOURS": (-1, 18)}}, [-1, 18]),
            ("AVG(h) FROM (SELECT hours AS h FROM t)", {}, [0, 18]),
            ("AVG(hours) FROM (SELECT distance AS hours, hours AS distance FROM t)", {}, [-5, 100]),
            ("AVG(hours) FROM t", {"schema": only("Hours", pa.Check.ge(0), pa.Check.lt(9))}, [0, 9]),
            ("AVG(hours) FROM t", {"schema": None, "bounds": (-99, 99)}, [-99, 99]),
            ("AVG(hours) FROM t", {"t": PEOPLE.dprisk.declare(bounds={"hours": (2, 4)})}, [2, 4]),
        ],
    )
    def test_used(self, asked, options, expected):
        table = pdrisk.sql(f"SELECT {asked}", eps=1, **{"t": PEOPLE, "schema": schema()} | options)
        assert described(table).lines[0].bounds == tuple(expected)

    @pytest.mark.parametrize(
        ("asked", "options"),
        [
            ("dp_mean(hours, lo := -2, hi := 9) FROM t", {}),
            ("AVG(hours) FROM t", {"bounds": (0, 18.5)}),
            ("AVG(hours) FROM t", {"bounds": {"Hours": (-1.5, 18)}}),
            ("AVG(h) FROM (SELECT hours AS h FROM t)", {"bounds": {"h": (0, 19)}}),
            ("AVG(hours) FROM t", {"schema": only("hours", pa.Check.ge(0)), "bounds": (-1, 9)}),
            ("AVG(hours) FROM t", {"t": PEOPLE.dprisk.declare(bounds={"hours": (2, 99)})}),
        ],
    )
    def test_wider_is_refused(self, asked, options, monkeypatch):
        error = refusal(monkeypatch, f"SELECT {asked}", eps=1, **{"t": PEOPLE, "schema": schema()} | options)
        assert "wider than the range" in str(error)

    @pytest.mark.parametrize(
        "asked",
        ["AVG(hours + length(region)) FROM t", "AVG(hours) FROM (SELECT exp(hours * length(region)) AS hours FROM t)"],
    )
    def test_of_an_expression_are_not_known(self, asked, monkeypatch):
        assert "needs" in str(refusal(monkeypatch, f"SELECT {asked}", eps=1, schema=schema(), t=PEOPLE))


def counts(query: str, con: Any = None, **options: Any) -> dict[Any, float]:
    """The last column of an answer by the columns before it, in order."""
    rows = pdrisk.sql(query, con, eps=1, **{"schema": schema()} | options).to_dict("tight")["data"]
    keys = [tuple(None if pd.isna(key) else key for key in row[:-1]) for row in rows]
    return {key[0] if len(key) == 1 else key: row[-1] for key, row in zip(keys, rows, strict=True)}


BY_REGION, OF = "SELECT region, COUNT(*) FROM t GROUP BY region", {"south": 2, "north": 3, "west": 1}


class TestKeys:
    """Groups are those of ``isin``, without codes, in its order."""

    @pytest.mark.parametrize(
        ("query", "options", "expected"),
        [
            (BY_REGION, {}, OF),
            (BY_REGION, {"t": PEOPLE.dprisk.declare(keys={"region": ["west", "NA"]})}, {"west": 1}),
            (BY_REGION, {"keys": [None, "north"]}, {None: 4, "north": 3}),
            (BY_REGION, {"keys": "observed"}, {"": 1, "elsewhere": 1, "north": 3, "south": 2, "west": 1, None: 4}),
            ("SELECT region AS r, COUNT(*) FROM t GROUP BY r", {}, OF),
            ("SELECT g, COUNT(*) FROM (SELECT region AS g, sex AS region FROM t) GROUP BY g", {}, OF),
            ("SELECT REGION, COUNT(*) FROM t WHERE sex = 'f' GROUP BY 1", {}, {"south": 1, "north": 2, "west": 0}),
            ("SELECT region, COUNT(*) n FROM t GROUP BY 1 HAVING n > 1 ORDER BY n DESC", {}, {"north": 3, "south": 2}),
            ("SELECT sex, region, COUNT(*) FROM t GROUP BY ALL LIMIT 2", {}, {("f", "south"): 1, ("f", "north"): 2}),
            ("SELECT distance, COUNT(*) FROM t GROUP BY distance", {"keys": [3, None, -5]}, {3: 2, None: 4, -5: 1}),
        ],
    )  # fmt: skip
    def test_answered(self, query, options, expected):
        assert list(counts(query, **{"t": PEOPLE} | options).items()) == list(expected.items())

    def test_of_dates_and_numbers(self):
        days = only("day", pa.Check.isin([pd.Timestamp("1899-12-31"), NOBODY]), missing=[NOBODY])
        found = counts("SELECT day, COUNT(*) FROM t GROUP BY day", schema=days, t=PEOPLE)
        assert found == {pd.Timestamp("1899-12-31"): 3}
        numbers = only("distance", pa.Check.isin([3, -1, 60]), missing=[-1])
        assert counts("SELECT distance, COUNT(*) FROM t GROUP BY distance", schema=numbers, t=PEOPLE) == {3: 2, 60: 1}

    @pytest.mark.parametrize(
        "options", [{"t": PEOPLE, "schema": schema()}, {"t": PEOPLE.dprisk.declare(missing=CODES)}]
    )
    def test_a_code_is_no_key(self, options, monkeypatch):
        assert "list None" in str(refusal(monkeypatch, BY_REGION, eps=1, keys=["north", "?"], **options))


# fmt: off
SIGNED = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,0)"]
UNSIGNED = ["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"]
UNHELD = [300, -300, 0.5, -0.5, 2**70, 2**130, -(2**64), 1e300, np.inf, -np.inf, 10**400]
DATES = ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
DAYS = ["1900-01-01", "2020-01-01", None]
TYPES = [  # SQL type, values, codes, and which values stay
    *[(sql_type, [3, -1, 5, -2, 0, -3, None], [-1, -2.0, np.int8(-1)], [3, 5, 0, -3]) for sql_type in SIGNED],
    *[(sql_type, [3, 99, 5, 98, 0, None], [99, 98.0, -3, 0.5], [3, 5, 0]) for sql_type in UNSIGNED],
    *[("TINYINT", [3, 100, 0, None], [code], [3, 100, 0]) for code in UNHELD],
    *[(sql_type, [3, 100, 0, None], [*UNHELD, 100], [3, 0]) for sql_type in (*SIGNED, *UNSIGNED)],
    *[(sql_type, [0.1, -0.25, 0.2, 1], [0.1, -0.25], [0.2, 1]) for sql_type in ("FLOAT", "DOUBLE", "DECIMAL(5,2)")],
    *[(sql_type, ["inf", 1, "-inf", 2], [1, np.nan], ["inf", "-inf", 2]) for sql_type in ("FLOAT", "DOUBLE")],
    *[(sql_type, ["inf", 1, "-inf", 2], [np.inf], [1, "-inf", 2]) for sql_type in ("FLOAT", "DOUBLE")],
    ("BIGINT", [2**53, 2**53 + 1, -(2**63)], [2**53, -(2**63)], [2**53 + 1]),
    ("UBIGINT", [2**64 - 1, 2**64 - 2], [2**64 - 1], [2**64 - 2]),
    ("HUGEINT", [2**100, 2**100 + 1], [2**100], [2**100 + 1]),
    ("BOOLEAN", ["true", "false", None, "true"], [True], ["false"]),
    *[(sql_type, ["a", "A", "it's", "?", " ?", "", None, "a"], ["a", "it's", "?", '"', "'; --"], ["A", " ?", ""])
      for sql_type in ("VARCHAR", "VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOCASE.NOACCENT")],
    ("ENUM('a', 'it''s', 'c')", ["a", "it's", None, "c"], ["it's", "a", "not in it"], ["c"]),
    *[(sql_type, DAYS, codes, DAYS[1:2]) for sql_type in DATES for codes in ([NOBODY], [np.datetime64("1900-01-01")])],
    *[(sql_type, DAYS, [pd.Timestamp(code)], DAYS[:2]) for sql_type in DATES
      for code in ("9999-12-31", "0001-01-01", "1900-01-01 00:00:00.5")],
    ("TIMESTAMP", DAYS, [pd.Timestamp("1900-01-01 00:00:00.000000001")], DAYS[:2]),
    *[(sql_type, DAYS, [pd.NaT, NOBODY], DAYS[1:2]) for sql_type in DATES],
    ("TIMESTAMP", ["2020-01-01 12:30:00.5", "2020-01-01 12:30"], [pd.Timestamp("2020-01-01 12:30")], [1]),
    *[("INTEGER", [3, -1, None], codes, [3, -1]) for codes in ([], [np.nan], [None], [pd.NA])],
    *[("VARCHAR", ["a", "NA", None], ["NA", code], ["a"]) for code in (None, np.nan)],
]
WRONG = {
    "INTEGER": ["SENTINEL", True, NOBODY, pd.Timedelta(1, unit="D")], "VARCHAR": [-987654321, True],
    "BOOLEAN": [1, "SENTINEL"], "DATE": ["1900-01-01", 1, pd.Timestamp("1987", tz="UTC")],
    "TIMESTAMP": ["1900-01-01", True, pd.Timestamp("1987", tz="UTC")], "ENUM('a')": [1],
    "TIME": [1], "INTEGER[]": [1], "UUID": ["SENTINEL"], "BLOB": ["SENTINEL"],
}
# fmt: on


def typed_table(sql_type: str, values: list[Any]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (x {sql_type})")
    for value in values:
        text = None if value is None else str(value)
        con.execute(f"INSERT INTO t VALUES (CAST(? AS {sql_type.partition(' COLLATE')[0]}))", [text])
    return con


class TestCodes:
    """A code is compared as a value of its column; one that the type cannot hold takes nobody out."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize(("sql_type", "values", "codes", "left"), TYPES, ids=lambda part: str(part)[:60])
    def test_types(self, sql_type, values, codes, left):
        query = "SELECT COUNT(x), COUNT(*), COUNT(*) FILTER (x IS NULL) FROM t"
        table = pdrisk.sql(query, typed_table(sql_type, values), eps=1, schema=only("x", missing=codes))
        assert table.iloc[0].tolist() == [len(left), len(values), len(values) - len(left)]

    @pytest.mark.parametrize("name", ["select", 'a"b', "a b", "it's", "x;--", "ünï", "x.y", "X", "without_codes"])
    def test_names(self, name):
        frame, written = pd.DataFrame({name: [1, -1, 2, 1], "other": 1}), '"' + name.replace('"', '""') + '"'
        query = f"SELECT {written}, COUNT({written}) FROM t GROUP BY {written}"
        assert counts(query, t=frame, schema=only(name, pa.Check.isin([1, 2, -1]), missing=[-1])) == {1: 2, 2: 1}
        other = name if name == "ünï" else name.swapcase()
        assert counts(query, t=frame, schema=only(other, missing=[-1]), keys=[None]) == {None: 0}

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("source", ["pandas", "table", "other case", "Parquet"])
    @pytest.mark.parametrize("pattern", ["dist", "^d.*ce$", ".*TANCE", "(?i)DIST"])
    def test_regular_expressions(self, source, pattern, tmp_path):
        said = pa.Column(None, pa.Check.ge(-5), regex=True, metadata={"dprisk": {"missing": [-1]}})
        options = {"schema": pa.DataFrameSchema({pattern: said}), **SOURCES[source](tmp_path)}
        assert counts("SELECT COUNT(distance) FROM people", **options) == {(): 10}

    @pytest.mark.parametrize(
        "options",
        [{"t": pd.DataFrame({0: [1, -1]}).dprisk.declare(missing={0: [-1]})}, {"schema": only(0, missing=[-1])}],
    )
    def test_labels_that_are_no_text(self, options):
        assert counts('SELECT COUNT("0") FROM t', **{"t": pd.DataFrame({0: [1, -1]}), "schema": None} | options) == {
            (): 1
        }

    def test_dates_with_a_zone(self):
        days = pd.DataFrame({"x": pd.to_datetime(["1900-01-01", "2020-01-01"]).tz_localize("UTC")})
        coded = days.dprisk.declare(missing={"x": [pd.Timestamp("1900-01-01", tz="UTC")]})
        assert counts("SELECT COUNT(x) FROM t", t=coded, schema=None) == {(): 1}

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("sql_type", "code"), [(sql_type, code) for sql_type in WRONG for code in WRONG[sql_type]])
    def test_wrong_kinds(self, sql_type, code, monkeypatch):
        con, said = typed_table(sql_type, []), only("x", missing=[code])
        error = refusal(monkeypatch, "SELECT COUNT(x) FROM t", con, eps=1, schema=said)
        assert isinstance(error, pdrisk.ColumnTypeError) and "code of column 'x'" in str(error)
        assert not any(secret in everything_said(error) for secret in ("987654321", "1900", "1987"))

    def test_other_columns_can_still_be_asked(self):
        """What is wrong about a column is for whoever asks for it."""
        wrong = {"x": {"missing": ["a"]}, "y": {"misssing": [-1]}, "z": {"missing": [-1], "bounds": (0, 3)}}
        said = pa.DataFrameSchema({name: column(**parts) for name, parts in wrong.items()})
        frame = pd.DataFrame({"x": [1, 2, 3], "y": [1, 2, 3], "z": [1, -1, 3]})
        for options in ({"schema": said, "t": frame}, {"t": said.validate(frame)}):
            table = pdrisk.sql("SELECT SUM(z), COUNT(z) FROM t WHERE z < 9", eps=1, **options)
            assert table.iloc[0].tolist() == pytest.approx([4, 2], abs=1e-7)
            for asked in ("COUNT(y) FROM t", "COUNT(*) FROM t WHERE x > 1", "SUM(d) FROM (SELECT y AS d FROM t)"):
                with pytest.raises(pdrisk.ParameterError, match=r"column '[xy]'"):
                    pdrisk.sql(f"SELECT {asked}", eps=1, bounds={"d": (0, 3)} if "d" in asked else None, **options)


class Model(pa.DataFrameModel):
    distance: int = pa.Field(ge=-5, le=100, metadata={"dprisk": {"missing": [-1, -2]}})
    region: str = pa.Field(isin=["south", "north"])


class PolarsModel(pandera.polars.DataFrameModel):
    distance: int = pandera.polars.Field(ge=-5, le=100, metadata={"dprisk": {"missing": [-1, -2]}})
    region: str = pandera.polars.Field(isin=["south", "north"])


class TestSchemas:
    """A schema of any flavour is understood, and nothing else is."""

    @pytest.mark.parametrize("said", [Model, Model.to_schema(), PolarsModel, PolarsModel.to_schema()])
    @pytest.mark.parametrize("frame", [PEOPLE, pl.from_pandas(PEOPLE)], ids=["pandas", "polars"])
    def test_flavours(self, said, frame):
        query = "SELECT region, SUM(distance), COUNT(distance) FROM t GROUP BY region"
        table = pdrisk.sql(query, eps=1, schema=said, t=frame)
        assert table.to_numpy().tolist() == [["south", 10, 1], ["north", 23, 3]]

    @pytest.mark.parametrize("said", [5, "schema", {"distance": (0, 1)}, PEOPLE, pa.SeriesSchema(int), int, [Model]])
    def test_what_is_none_is_refused(self, said, monkeypatch):
        error = refusal(monkeypatch, "SELECT COUNT(*) FROM base", connected(), eps=1, schema=said)
        assert isinstance(error, pdrisk.ColumnTypeError)
        assert "schema must be a pandera DataFrameSchema or DataFrameModel" in str(error)


class TestConnection:
    """What the caller has on the connection stays as it is."""

    QUERY = "SELECT region, COUNT(distance) FROM people WHERE hours < 99 GROUP BY region"

    def test_nothing_is_left(self):
        con = connected("CREATE VIEW people AS FROM base")
        things = "SELECT table_name, '' FROM duckdb_tables() UNION ALL SELECT view_name, '' FROM duckdb_views()"
        things += " UNION ALL SELECT name, value FROM duckdb_settings() UNION ALL SELECT function_name, '' "
        things += "FROM duckdb_functions() ORDER BY ALL"
        before = con.execute(things).fetchall()
        assert counts(self.QUERY, con) == {"south": 1, "north": 2, "west": 1}
        assert con.execute(things).fetchall() == before
