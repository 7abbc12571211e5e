"""A Dataset of a PostgreSQL table: the answers of a frame, whatever its records, settings, schemas and rights are."""

import itertools
import math
import random
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import day_keys
import pdrisk
from pdrisk.engines.sql.servers.postgres_engine import PostgresDialect, asked, fetched, reading
from postgres_databases import connected, database, needs_server, role
from test_tables_like_frames import ASKED, BOUNDS, QUESTIONS, WAYS, made_rows, numbers

psycopg = pytest.importorskip("psycopg")
from psycopg.pq import TransactionStatus  # noqa: E402 - where it is
from psycopg.rows import tuple_row  # noqa: E402

pytestmark = [needs_server, pytest.mark.filterwarnings("ignore::UserWarning")]
TYPES = (
    "pid bigint, age smallint, income double precision, hours real, region text, works boolean, day date, "
    "born timestamp, seen timestamptz, paid numeric"
)


def insert(connection, table, rows):
    rows = [
        tuple(None if value is pd.NaT or value is pd.NA or value != value else value for value in row) for row in rows
    ]
    marks = ", ".join(["%s"] * len(rows[0]))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


@pytest.fixture(scope="module")
def server():
    with database() as url:
        yield url


@pytest.fixture
def con(server):
    with connected(server) as connection:
        yield connection


@pytest.fixture(scope="module")
def people(server):
    """The same rows as a frame, and as the table ``people``."""
    rows = made_rows()
    rows["seen"] = pd.to_datetime(rows["born"], utc=True)
    rows["paid"] = [None if pd.isna(each) else Decimal(str(each)) for each in rows["income"]]
    with connected(server) as connection:
        connection.execute(f"CREATE TABLE people ({TYPES})")
        insert(connection, "people", rows.astype(object).itertuples(index=False))
    return rows


def made(con, sql, values):
    """A Dataset of a new table of one column x."""
    con.execute("DROP TABLE IF EXISTS made CASCADE")
    con.execute(f"CREATE TABLE made (x {sql})")
    insert(con, "made", [(value,) for value in values])
    return pdrisk.Dataset((con, "made"), bounds=None if sql.startswith(("date", "time")) else {"x": (0, 100)})


def n(release):
    return release.curator.n


USUALLY = ("agg", "by"), ("mean", "people")


class TestSameAsAFrame:
    """Every question has the same curator's numbers, index and dtypes as on a frame of the same rows."""

    @pytest.mark.parametrize(
        ("question", "way"),
        [pytest.param(*each.values, marks=[] if each.values in USUALLY else pytest.mark.slow) for each in ASKED],
    )
    def test_numbers(self, con, people, question, way):
        table = pdrisk.Dataset((con, "people"), bounds=BOUNDS)
        frame = pdrisk.Dataset(people.astype(table._frame.dtypes.to_dict()), bounds=BOUNDS)
        found, wanted = (numbers(QUESTIONS[question](each, curator=True, **WAYS[way])) for each in (table, frame))
        same = pd.testing.assert_frame_equal if isinstance(found, pd.DataFrame) else pd.testing.assert_series_equal
        same(found, wanted, rtol=1e-12)

    @pytest.mark.parametrize(
        "where",
        ["seen >= '1960-01-01' and seen < '1970-06-01 12:00+02:00'", "paid > 3000.5", "born == born", "not (age < 30)",
         "income * 1e200 * 1e200 > 1e308", "income / 1e300 / 1e100 > 0", "age % 7 == 3 and pid // -10 < -2"],
    )  # fmt: skip
    def test_filters(self, con, people, where):
        table = pdrisk.Dataset((con, "people"))
        frame = pdrisk.Dataset(people.astype(table._frame.dtypes.to_dict()))
        assert n(table.count(eps=1, where=where)) == n(frame.count(eps=1, where=where))


def edges():
    """Floats near all ends, powers of two where the formulas change, and others of any size."""
    draw = random.Random(1)
    powers = [-1074, -1022, -562, -560, -540, -538, -537, -512, -500, -51, 0, 51, 500, 511, 512, 540, 900, 970, 1023]
    values = [0.0, -0.0, math.inf, -math.inf, math.nan, -3.5, 1.5 * 2.0**-1073, 1.7976931348623157e308]
    values += [each for power in powers for each in (2.0**power, math.nextafter(2.0**power, 0), -(2.0**power) * 1.5)]
    return values + [draw.choice((-1, 1)) * draw.random() * 2.0 ** draw.randint(-1074, 1023) for _ in range(60)]


class TestArithmetic:
    """Arithmetic of floats is that of IEEE 754, to the last bit, where PostgreSQL would raise."""

    @pytest.mark.parametrize("sign", "+-*/")
    def test_any_two_numbers(self, con, sign):
        pairs = [pair for pair in itertools.product(edges(), edges()) if sign != "/" or pair[1] != 0]
        dialect = PostgresDialect()
        written = dialect.divided("x", "y") if sign == "/" else dialect.arithmetic("x", sign, "y")
        statement = f"SELECT {written} FROM unnest(CAST($1 AS float8[]), CAST($2 AS float8[])) AS t(x, y)"
        with reading(con) as cursor:
            found = [each for (each,) in asked(cursor, statement, [list(each) for each in zip(*pairs, strict=True)])]
        named = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
        with np.errstate(all="ignore"):
            wanted = named[sign](*np.array(pairs).T)
        np.testing.assert_array_equal(np.array(found), wanted)

    @pytest.mark.parametrize(("value", "quotient"), [(2.0, math.inf), (-1.0, -math.inf), (0.0, None), (math.nan, None)])
    def test_by_zero(self, con, value, quotient):
        written = PostgresDialect().divided(f"CAST('{value}' AS float8)", "CAST(0 AS float8)")
        with reading(con) as cursor:
            assert asked(cursor, f"SELECT {written}") == [(quotient,)]


HUGE, NAN, INF = map(Decimal, ("1e400", "NaN", "Infinity"))
LARGEST = Decimal(2**1024 - 2**970)  # and above, decimals are nearer to an infinity than to any float


class TestRecords:
    """No record can make a statement fail, be it as large, small or strange as its type allows."""

    @pytest.mark.parametrize(
        ("sql", "values", "there"),
        [
            ("double precision", [1e308, -1e308, 5e-324, -5e-324, math.inf, -math.inf, math.nan, -0.0, 7.0], 8),
            ("double precision", [5e-324, -0.0, 1e-200], 3),
            ("real", [3e38, 1e-45, math.inf, math.nan, 7.0], 4),
            ("bigint", [2**63 - 1, -(2**63), 2**53 + 1, 7] * 3, 12),
            ("smallint", [32767, -32768, 7], 3),
            ("numeric", [HUGE, -HUGE, 1 / HUGE, NAN, INF, -INF, Decimal(7)], 6),
            ("numeric", [LARGEST, Decimal(2**1024 - 2**970 - 1), Decimal("2.4703282292062327e-324")], 3),
            ("numeric(6, 3)", [Decimal("999.999"), Decimal("NaN")], 1),
            ("numeric(3, -900)", [Decimal("1e902")], 1),
        ],
    )  # fmt: skip
    def test_extremes(self, con, sql, values, there):
        data = made(con, sql, values)
        for ask in (data.mean, data.var, data.sum, data.median, data.max):
            for mechanism in ("auto", "laplace"):
                assert n(ask("x", eps=1, mechanism=mechanism)) == there
        for bounds in ((0, 1e100), (-1e-100, 1e-100)):
            assert n(data.var("x", eps=1, bounds=bounds)) == n(data.median("x", eps=1, bounds=bounds)) == there
        assert n(data.mean("x", eps=1, clip="private", bounds=(0, 1e100))) == there
        assert data.nunique("x", eps=50).value == len({value for value in values if value == value})
        where = "x > 30" if sql == "real" else "x * 2 > 10 or x - 3 < 1 or x / 3 == 1 or x > 1e300"
        assert n(data.count(eps=1, where=where)) <= len(values)

    def test_minus_zero_is_zero(self, con):
        data = made(con, "double precision", [0.0, -0.0, -0.0])
        assert data.nunique("x", eps=50).value == 1
        assert data.count(eps=1, by="x", keys=[0], curator=True)["n"].tolist() == [3]

    def test_times_beyond_all_years(self, con):
        for sql in ("date", "timestamp", "timestamptz"):
            data = made(con, sql, ["infinity", "-infinity", "4000-01-01 BC", "20000-01-01", "2020-01-01"])
            assert n(data.count("x", eps=1)) == 1
            assert n(data.count(eps=1, where="x >= '2019-12-31'")) == 1

    def test_every_digit_of_a_float_counts(self, con):
        data = made(con, "double precision", [0.1, math.nextafter(0.1, 1)])
        con.execute("SET extra_float_digits = 0")
        assert data.nunique("x", eps=50).value == 2
        assert n(data.count(eps=1, where=f"x == {math.nextafter(0.1, 1)!r}")) == 1

    def test_texts_are_compared_by_code_points(self, con):
        values = ["a", "A", "á", "a ", "", "B", "\U0001f600"]
        con.execute("DROP COLLATION IF EXISTS loose")
        con.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
        data = made(con, "text COLLATE loose", values)
        assert data.nunique("x", eps=50).value == len(values)
        for value in values:
            assert n(data.count(eps=1, where=f"x <= {value!r}")) == sum(other <= value for other in values)
        assert data.count(eps=1, by="x", keys=values, curator=True)["n"].tolist() == [1] * len(values)
        assert data.count(eps=1, by="x", keys="observed")["value"].index.tolist() == sorted(values)


class TestDays:
    """Keys of dates and timestamps in every spelling."""

    def test_by_methods_and_in_sql(self, con):
        con.execute("DROP TABLE IF EXISTS people_days; CREATE TABLE people_days (d date, t timestamp)")
        insert(con, "people_days", list(zip(day_keys.DAYS, day_keys.TIMES, strict=True)))
        con.execute("CREATE TEMP VIEW people AS SELECT * FROM people_days")
        con.commit()
        day_keys.check_methods((con, "people_days"))
        day_keys.check_time_of_day((con, "people_days"))
        for column in ("d", "t"):
            day_keys.check_sql(con, column)


class TestRanks:
    """What is read at some ranks is what a sorted list has there."""

    def test_of_groups_of_all_sizes(self, con):
        rows = [
            (n, float(random.Random(n * 100 + at).choice([-1, 0, 0.5, 0.5, at])))
            for n in range(1, 60)
            for at in range(n)
        ]
        con.execute("DROP TABLE IF EXISTS made CASCADE")
        con.execute("CREATE TABLE made (n bigint, x double precision)")
        insert(con, "made", rows)
        for first, last, ranks in (("1", "n", slice(None)), ("n / 3", "n / 2 + 1", None)):
            listed = PostgresDialect().at_ranks("x", "n", f"GREATEST({first}, 1)", f"LEAST({last}, n)")
            for n, found in con.execute(f"SELECT n, {listed} FROM made GROUP BY n").fetchall():
                kept = ranks or slice(max(n // 3, 1) - 1, min(n // 2 + 1, n))
                assert found == sorted(x for size, x in rows if size == n)[kept]

    def test_of_many_records(self, con):
        n = 1_000_003
        listed = PostgresDialect().at_ranks("x", f"{n}", f"{n - 2}", f"{n}")
        rows = f"(SELECT CAST(at AS DOUBLE PRECISION) AS x FROM generate_series({n}, 1, -1) AS made (at)) AS made"
        assert con.execute(f"SELECT {listed} FROM {rows}").fetchone()[0] == [n - 2, n - 1, n]

    def test_of_nobody(self, con):
        listed = PostgresDialect().at_ranks("x", "0", "1", "0")
        rows = "(SELECT CAST(1 AS DOUBLE PRECISION) AS x WHERE false) AS made"
        assert not con.execute(f"SELECT {listed} FROM {rows}").fetchone()[0]


class TestArrays:
    """Lists of numbers are read in binary form: the same numbers that psycopg makes of them."""

    @pytest.mark.parametrize(
        ("kind", "lists"),
        [
            ("double precision", [[0.1, -0.0, 5e-324, math.inf], None, [], [-1e308], [math.nan, -math.inf, 1 / 3]]),
            ("bigint", [[2**63 - 1, -(2**63)], [], None, [0], [-1, 1, 2**40 + 1]]),
            ("double precision", [None, []]),
        ],
    )
    def test_of_any_length(self, con, kind, lists):
        arrays = ["NULL" if each is None else "'{" + ",".join(map(repr, each)) + "}'" for each in lists]
        rows = ", ".join(f"({at}, CAST({each} AS {kind}[]))" for at, each in enumerate(arrays))
        sql = f"SELECT x FROM (VALUES {rows}) AS made (at, x) ORDER BY at"
        plain = [each or [] for (each,) in con.execute(sql).fetchall()]
        with reading(con) as cursor:
            found = fetched(cursor, sql, [])["x"]
        assert np.diff(found.first).tolist() == list(map(len, plain))
        assert list(map(repr, found.values.tolist())) == [repr(value) for each in plain for value in each]

    @pytest.mark.parametrize("array", ["{1, NULL}", "{NULL, NULL, NULL}"])
    def test_without_a_number(self, con, array):
        with reading(con) as cursor, pytest.raises(ValueError, match=r"NULL|size"):
            fetched(cursor, f"SELECT CAST('{array}' AS double precision[]) AS x", [])


class TestTypes:
    """Columns are what the catalog says, and no record decides it."""

    def test_of_columns(self, con):
        con.execute("DROP TABLE IF EXISTS typed CASCADE; DROP DOMAIN IF EXISTS years; DROP TYPE IF EXISTS grade")
        con.execute("CREATE DOMAIN years AS smallint CHECK (VALUE >= 0)")
        con.execute("CREATE TYPE grade AS ENUM ('low', 'high')")
        con.execute(
            'CREATE TABLE typed (a years, b grade, c varchar(5), d char(3), e uuid, f numeric(9, 2), "G ""h" integer, '
            "i integer GENERATED ALWAYS AS (a * 2) STORED, j integer[], k jsonb, l interval, m bytea)"
        )
        data = pdrisk.Dataset((con, "typed"), bounds={"f": (0, 9)})
        assert list(map(str, data._frame.dtypes)) == [
            "Int16", "category", "string", "string", "string", "float64", "Int32", "Int32", *["object"] * 4,
        ]  # fmt: skip
        con.execute("INSERT INTO typed VALUES (3, 'high', 'x', 'y', gen_random_uuid(), 4.5, 7)")
        con.execute("INSERT INTO typed (b) VALUES ('low')")
        grades = data.count(eps=1, by="b", keys="categories", curator=True)["n"]
        assert dict(grades) == {"low": 1, "high": 1}
        for where in ("b == 'high'", "d == 'y'", '`G "h` == 7', "i == 6"):
            assert n(data.count(eps=1, where=where)) == 1
        assert n(data.count("e", eps=1)) == n(data.mean("f", eps=1)) == 1

    @pytest.mark.parametrize("sql", ["integer[]", "jsonb", "interval", "bytea", "point", "int4range", "xml"])
    def test_that_nothing_can_be_asked_of(self, con, sql):
        data = made(con, sql, [None])
        with pytest.raises(pdrisk.PdriskError, match="which no question takes"):
            data.count("x", eps=1)
        assert n(data.count(eps=1)) == 1

    def test_texts_without_an_encoding(self, tmp_path):
        """Nobody can read these bytes as text, so what asks for them is refused before it is paid."""
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9, delta=1e-3)
        options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        with database(options) as url, connected(url) as con:
            con.execute("CREATE TABLE people (pid bigint, x text, y varchar(9), z uuid)")
            con.execute(r"INSERT INTO people SELECT i, E'\xe4', E'\xe4' FROM generate_series(1, 500) AS i")
            data = pdrisk.Dataset((con, "people"), person="pid", ledger=ledger)
            for column in ("x", "y"):
                private = {"keys": "private", "delta": 1e-4, "groups": 1}
                with pytest.raises(pdrisk.PdriskError, match="SQL_ASCII, without an encoding, which no question takes"):
                    data.count(eps=1, by=column, **private)
                with pytest.raises(pdrisk.PdriskError):
                    data.sql(f"SELECT {column}, COUNT(DISTINCT pid) FROM data GROUP BY {column}", eps=1, **private)
            assert ledger.remaining().eps == 9
            assert data.count(eps=1).eps == data.count("z", rows=1, eps=1).eps == 1

    def test_a_table_that_changes_is_not_asked(self, con):
        data = made(con, "integer", [1])
        assert n(data.count("x", eps=1)) == 1
        con.execute("ALTER TABLE made ALTER x TYPE text")
        with pytest.raises(pdrisk.ParameterError, match="new Dataset"):
            data.count("x", eps=1)


class TestTables:
    """Tables, views, partitions and foreign names are read; what is none of these is refused in words."""

    def test_of_every_sort(self, con):
        con.execute(
            """
            DROP TABLE IF EXISTS "Parts", base CASCADE; CREATE TABLE "Parts" (x integer, y text) PARTITION BY LIST (x);
            CREATE TABLE part_1 PARTITION OF "Parts" FOR VALUES IN (1);
            CREATE TABLE part_2 PARTITION OF "Parts" DEFAULT;
            INSERT INTO "Parts" VALUES (1, 'a'), (2, 'b'), (3, 'c'); CREATE SCHEMA IF NOT EXISTS "odd.one";
            CREATE OR REPLACE VIEW "odd.one"."v""w" AS SELECT x AS "select", y FROM "Parts" WHERE x > 1;
            CREATE MATERIALIZED VIEW IF NOT EXISTS "odd.one".stored AS SELECT * FROM "Parts";
            CREATE TEMP TABLE IF NOT EXISTS mine AS SELECT 1 AS x;
            """
        )
        for name, rows in (('"Parts"', 3), ('"odd.one"."v""w"', 2), ('"odd.one".stored', 3), ("mine", 1)):
            assert n(pdrisk.Dataset((con, name)).count(eps=1)) == rows
        assert n(pdrisk.Dataset((con, '"odd.one"."v""w"')).count(eps=1, where="`select` == 2")) == 1

    @pytest.mark.parametrize(
        "name", ["nowhere", "public.nowhere", "Parts", "a b", "", "people; DROP TABLE people", "pg_class_oid_index"]
    )
    def test_that_are_none(self, con, name):
        with pytest.raises(pdrisk.ParameterError, match="server"):
            pdrisk.Dataset((con, name)).count(eps=1)

    def test_functions_belong_to_frames(self, con):
        data = made(con, "integer", [1])
        with pytest.raises(pdrisk.ParameterError, match="frame in Python"):
            data.count(eps=1, where=lambda frame: frame.x > 0)


class TestSession:
    """Neither settings nor other schemas change what is read, and nothing is left behind."""

    HOSTILE = (
        "SET DateStyle = 'SQL, DMY'", "SET TimeZone = 'America/New_York'", "SET transform_null_equals = on",
        "SET array_nulls = off", "SET extra_float_digits = -15", "SET standard_conforming_strings = off",
        "SET client_encoding = 'LATIN1'", "SET bytea_output = 'escape'", "SET enable_hashjoin = off",
        "SET jit_above_cost = 0", "SET escape_string_warning = off",
    )  # fmt: skip

    def test_of_settings(self, con, people):
        wanted = None
        for settings in ((), self.HOSTILE):
            for each in settings:
                con.execute(each)
            before = con.execute("SELECT name, setting FROM pg_settings ORDER BY 1").fetchall()
            data = pdrisk.Dataset((con, "people"), bounds=BOUNDS)
            where = "day >= '2020-03-01' and seen > '1955-01-01' and region != 'a\\\\b'"
            found = [
                n(data.count(eps=1, where=where)),
                data.mean("income", eps=1, by="region", keys=["ä", "", None], curator=True)["n"].tolist(),
                data.nunique("income", eps=50).value,
            ]
            wanted = wanted or found
            assert found == wanted
            assert con.execute("SELECT name, setting FROM pg_settings ORDER BY 1").fetchall() == before

    def test_of_backslashes(self, con):
        data = made(con, "text", ["a\\b"])
        con.execute("SET standard_conforming_strings = off")
        con.execute("SET escape_string_warning = off")
        assert n(data.count(eps=1, where=r"x == 'a\\b'")) == n(data.count(eps=1, where=r"x in ['a\\b']")) == 1

    def test_of_schemas_that_stand_first(self, con):
        con.execute("DROP SCHEMA IF EXISTS evil CASCADE; CREATE SCHEMA evil; CREATE DOMAIN evil.bigint AS text")
        x, y = "double precision", "double precision, double precision"
        for name, takes, gives, body in (
            ("floor", x, x, "SELECT 0.0::float8"), ("abs", x, x, "SELECT 0.0::float8"),
            ("plus", y, x, "SELECT 0.0::float8"), ("less", y, "boolean", "SELECT true"),
            ("to_regclass", "text", "regclass", "SELECT 'pg_class'::regclass"),
        ):  # fmt: skip
            con.execute(f"CREATE FUNCTION evil.{name}({takes}) RETURNS {gives} LANGUAGE sql AS $${body}$$")
        for sign, name in (("+", "plus"), ("<", "less")):
            con.execute(f"CREATE OPERATOR evil.{sign} (LEFTARG = {x}, RIGHTARG = {x}, FUNCTION = evil.{name})")
        made(con, "double precision", [10.0, 20.0, 60.0])
        con.execute("SET search_path = evil, pg_catalog, public")
        data = pdrisk.Dataset((con, "made"), bounds={"x": (0, 100)})
        assert abs(float(data.mean("x", eps=1e6)) - 30) < 0.1
        assert n(data.count(eps=1, where="x + 0.5 < 20")) == 1

    def test_of_an_open_transaction(self, server, con):
        import psycopg

        made(con, "integer", [1])
        with psycopg.connect(server, row_factory=psycopg.rows.dict_row) as own:
            own.execute("INSERT INTO made VALUES (2)")  # begins it
            own.execute("SET LOCAL search_path = public")
            data = pdrisk.Dataset((own, "made"), bounds={"x": (0, 9)})
            assert n(data.mean("x", eps=1)) == 2
            own.execute("INSERT INTO made VALUES (3)")
            assert n(data.mean("x", eps=1)) == 3
            assert own.execute("SHOW search_path").fetchone() == {"search_path": "public"}
            with pytest.raises(psycopg.Error):
                own.execute("SELECT 1 / 0")
            with pytest.raises(pdrisk.ParameterError, match="roll it back"):
                data.mean("x", eps=1)
            own.rollback()
            assert n(data.mean("x", eps=1)) == 1
            assert own.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def test_it_only_reads(self, con):
        made(con, "integer", [1, 2])
        con.execute("CREATE TABLE IF NOT EXISTS spied (x integer)")
        con.execute(
            "CREATE OR REPLACE FUNCTION spy(integer) RETURNS integer LANGUAGE plpgsql AS "
            "$$BEGIN INSERT INTO public.spied VALUES ($1); RETURN $1; END$$"
        )
        con.execute("CREATE OR REPLACE VIEW spying AS SELECT spy(x) AS x FROM made")
        with pytest.raises(pdrisk.QueryFailedError):
            pdrisk.Dataset((con, "spying")).count("x", eps=1)
        with con.transaction(), pytest.raises(pdrisk.QueryFailedError):
            pdrisk.Dataset((con, "spying")).count("x", eps=1)
        assert con.execute("SELECT count(*) FROM spied").fetchone() == (0,)

    @pytest.mark.parametrize("kind", ["engine", "connection"])
    def test_by_sqlalchemy(self, server, con, kind):
        alchemy = pytest.importorskip("sqlalchemy")
        made(con, "integer", [1, 2])
        engine = alchemy.create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
        try:
            if kind == "engine":
                assert n(pdrisk.Dataset((engine, "made")).count(eps=1)) == 2
                assert engine.pool.checkedout() == 0
            else:
                with engine.connect() as own:
                    assert n(pdrisk.Dataset((own, "made")).count(eps=1)) == 2
        finally:
            engine.dispose()

    def test_of_another_kind(self):
        with pytest.raises(pdrisk.ColumnTypeError, match="psycopg"):
            pdrisk.Dataset((object(), "people"))


def state(connection):
    """What a question must leave as it was."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        shown = [cursor.execute(f"SHOW {each}").fetchone()[0] for each in ("search_path", "transaction_read_only")]
    return *shown, connection.info.transaction_status


class TestThreads:
    """Threads that share a connection get their answers, one after another, and leave it as it was."""

    @pytest.mark.parametrize("kind", ["psycopg", "alchemy", "engine", "static"])
    def test_questions_of_all_kinds(self, server, con, kind, tmp_path):
        alchemy = pytest.importorskip("sqlalchemy")
        made(con, "double precision", list(range(50)))
        pool = alchemy.StaticPool if kind == "static" else alchemy.QueuePool
        engine = alchemy.create_engine(server.replace("postgresql://", "postgresql+psycopg://"), poolclass=pool)
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1e6)
        with connected(server) as plain, ExitStack() as held:
            held.callback(engine.dispose)
            shared = (
                plain if kind == "psycopg" else held.enter_context(engine.connect()) if kind == "alchemy" else engine
            )
            data = pdrisk.Dataset((shared, "made"), bounds={"x": (0, 100)}, ledger=ledger)
            own = plain if kind == "psycopg" else shared.connection.driver_connection if kind == "alchemy" else None
            before = own and state(own)
            if kind == "alchemy":
                own.rollback()  # what looking began
                before = *before[:2], own.info.transaction_status

            def ask(at):
                if at % 3 == 0:
                    return float(data.count("x", eps=100))
                if at % 3 == 1:
                    return round(data.sql("SELECT count(*) AS n FROM data", eps=100)["n"][0])
                return round(pdrisk.sql("SELECT count(*) AS n FROM made WHERE x >= 0", shared, eps=100)["n"][0])

            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(ask, range(48)))
            assert np.allclose(answers, 50, atol=1)
            if own is not None:
                assert own.info.transaction_status == TransactionStatus.IDLE
                after = state(own)
                own.rollback()
                assert (*after[:2], own.info.transaction_status) == (*before[:2], TransactionStatus.IDLE)

    @pytest.mark.parametrize("opened", [False, True])
    def test_an_interrupt_at_any_time(self, server, con, opened):
        made(con, "double precision", list(range(50)))
        draw = random.Random(1)

        def interrupt(*_):
            raise KeyboardInterrupt

        usual = signal.signal(signal.SIGALRM, interrupt)
        own = psycopg.connect(server, autocommit=not opened)
        try:
            before, interrupted = state(own), 0
            for _ in range(150):
                if own.closed or own.info.transaction_status == TransactionStatus.INERROR:
                    own.close()
                    own = psycopg.connect(server, autocommit=not opened)
                    state(own)  # begins a transaction, unless each statement is one
                data = pdrisk.Dataset((own, "made"), bounds={"x": (0, 100)})
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0005, 0.02))
                    data.mean("x", eps=1)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except (KeyboardInterrupt, pdrisk.PdriskError):
                    interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert own.closed or own.info.transaction_status == TransactionStatus.INERROR or state(own) == before
            assert interrupted > 5
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, usual)
            own.close()

    def test_statements_that_fail(self, server, con):
        made(con, "integer", [1])
        con.execute("CREATE VIEW halting AS SELECT 1 / (x - 1) > 0 AS y, x FROM made")
        with connected(server) as own:
            before = state(own)
            data = pdrisk.Dataset((own, "halting"))

            def ask(_):
                with pytest.raises(pdrisk.QueryFailedError):
                    data.count(eps=1, where="y")

            with ThreadPoolExecutor(4) as pool:
                assert len(list(pool.map(ask, range(8)))) == 8
            assert state(own) == before


class TestRights:
    """SELECT is enough, and what a role may not see is not read."""

    def test_select_alone(self, server, con):
        con.execute("DROP TABLE IF EXISTS held CASCADE")
        con.execute(
            "CREATE TABLE held (x integer, secret integer, who text); INSERT INTO held VALUES (1, 2, 'a'), (3, 4, 'b')"
        )
        with role(server) as (url, name), connected(url) as theirs:
            with pytest.raises(pdrisk.ParameterError, match="no table"):
                pdrisk.Dataset((theirs, "held")).count(eps=1)
            con.execute(f"GRANT SELECT (x, who) ON held TO {name}")
            data = pdrisk.Dataset((theirs, "held"), bounds={"x": (0, 9)})
            assert list(data._frame.columns) == ["x", "who"]
            assert n(data.count(eps=1)) == n(data.mean("x", eps=1, where="who < 'z'")) == 2
            con.execute("ALTER TABLE held ENABLE ROW LEVEL SECURITY")
            con.execute(f"CREATE POLICY own_rows ON held FOR SELECT TO {name} USING (who = 'a')")
            assert n(data.count(eps=1)) == 1


class TestFailures:
    """What fails on the data says nothing about them, and stays paid."""

    @pytest.fixture
    def ledger(self, tmp_path):
        return pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)

    def failed(self, data, ledger):
        before = ledger.remaining().eps
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            data.count("x", eps=1)
        assert "77123" not in repr(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert ledger.remaining().eps == before - 1

    def test_of_a_view(self, con, ledger, capfd):
        made(con, "integer", [1, 77123])
        con.execute("CREATE VIEW quotient AS SELECT CAST('n' || x AS integer) AS x FROM made")
        notices = []
        con.add_notice_handler(notices.append)
        self.failed(pdrisk.Dataset((con, "quotient"), ledger=ledger), ledger)
        assert not notices
        assert capfd.readouterr() == ("", "")

    def test_of_time(self, con, ledger):
        made(con, "integer", [1])
        con.execute("CREATE VIEW slow AS SELECT x, pg_sleep(9) IS NULL AS y FROM made")
        con.execute("SET statement_timeout = 50")
        data = pdrisk.Dataset((con, "slow"), ledger=ledger)
        with pytest.raises(pdrisk.QueryFailedError, match="time limit of the server"):
            data.count(eps=1, where="not y")
        assert ledger.remaining().eps == 8

    def test_of_the_connection(self, server, con, ledger):
        made(con, "integer", [77123])
        con.execute("CREATE VIEW dying AS SELECT pg_terminate_backend(pg_backend_pid()) AS y, x FROM made")
        with connected(server) as own:
            data = pdrisk.Dataset((own, "dying"), ledger=ledger)
            with pytest.raises(pdrisk.QueryFailedError):
                data.count(eps=1, where="y")
            assert ledger.remaining().eps == 8
            with pytest.raises(pdrisk.ParameterError, match="closed"):
                data.count(eps=1)
            assert ledger.remaining().eps == 8


class TestLedger:
    """A ledger is where it likes, and remembers what it may."""

    def test_on_the_same_server(self, server, con):
        made(con, "integer", [1, 2])
        ledger = pdrisk.Ledger(server, dataset="people", eps=9)
        data = pdrisk.Dataset((con, "made"), ledger=ledger, bounds={"x": (0, 9)}, version="2019")
        first, again = (data.mean("x", eps=1, where="x > 0") for _ in range(2))
        assert first.value == again.value
        assert ledger.remaining().eps == 8
        assert pdrisk.Dataset((con, "made"), ledger=ledger, version="2020").count(eps=1).eps == 1
        data.query("x > 1").count(eps=1)
        assert ledger.remaining().eps == 6

    def test_without_a_version_nothing_is_remembered(self, con, tmp_path):
        made(con, "integer", [1, 2])
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        data = pdrisk.Dataset((con, "made"), ledger=ledger)
        for _ in range(2):
            data.count(eps=1)
        assert ledger.remaining().eps == 7


class TestKeys:
    """Keys are parameters: any text, and any number of them."""

    def test_texts(self, con):
        keys = ["o'west", 'a"b', "\\", "{a,b}", "NULL", "%s", "$1", "ä\U0001f600", ""]
        data = made(con, "text", [*keys, None])
        listed = data.count(eps=1, by="x", keys=[*keys, None, "nobody"], curator=True)
        assert listed["n"].tolist() == [1] * 10 + [0]

    def test_that_no_record_can_have(self, con):
        with pytest.raises(pdrisk.ParameterError, match="cannot store"):
            made(con, "text", ["a"]).count(eps=1, by="x", keys=["a", "a\0b"])

    def test_of_several_columns(self, con):
        con.execute(
            "DROP TABLE IF EXISTS several; CREATE TABLE several (a text, b double precision, c bigint, d boolean)"
        )
        con.execute("INSERT INTO several VALUES ('x', 0.1, 1, true), ('x', 0.1, 1, true), (NULL, -0.0, 2, NULL)")
        data = pdrisk.Dataset((con, "several"))
        keys = [("x", 0.1, 1, True), (None, 0, 2, None), ("x", 0.1, 2, False)]
        assert data.count(eps=1, by=list("abcd"), keys=keys, curator=True)["n"].tolist() == [2, 1, 0]

    @pytest.mark.slow
    def test_many(self, con):
        data = made(con, "integer", [5, 299_999, 299_999])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts = data.count(eps=1, by="x", keys=list(range(300_000)), curator=True)["n"]
        assert counts[counts > 0].to_dict() == {5: 1, 299_999: 2}
