"""Spark reads what every engine reads, in the ways that its plans tell, and leaves nothing behind."""

import re
import warnings

import pandas as pd
import pytest

import day_keys
import pdrisk
import test_calendar as calendar
import test_one_meaning as meaning
from functions_on_duckdb import without_noise
from ledgers import script
from paths import SUPPORT
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk.engines.conformance import ASKED, TABLES, UNIVERSES, check, check_group_sizes
from pdrisk.engines.sql.servers.spark_engine import SparkDialect, SparkFrame
from pdrisk.errors import ColumnTypeError, ParameterError, QueryFailedError
from spark_sessions import CONNECT, needs_spark, session
from statements_asked import asked_by_methods
from test_tables_like_frames import BOUNDS, QUESTIONS, WAYS, made_rows, numbers

pytestmark = [needs_spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")]

TYPES = {"DOUBLE": "double", "BIGINT": "bigint", "TINYINT": "tinyint", "DECIMAL(20, 4)": "decimal(20, 4)"}
COLUMNS = (
    "pid bigint, age tinyint, income double, hours float, region string, works boolean, day date, born timestamp_ntz"
)


@pytest.fixture(scope="module")
def spark():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session()
    assert type(made).__module__.startswith("pyspark.sql.connect.") == CONNECT
    yield made
    made.stop()


@pytest.fixture
def settings(spark):
    """Sets what the session says, for one test."""
    changed = []

    def change(**said):
        for name, value in said.items():
            changed.append(name.replace("__", "."))
            spark.conf.set(changed[-1], value)

    yield change
    for name in changed:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def opened(spark):
    stored = []  # the last table and what is read of it

    def open_(table, query):
        if not stored or stored[0] is not table:
            of = TYPES[table.type]
            rows = list(zip(table.values, table.others, table.groups, strict=True))
            frame = spark.createDataFrame(rows, f"x {of}, y {of}, g string")
            stored[:] = table, SparkFrame(frame).table()
        return stored[1].opened(query, stored[1].header, None, bytes)

    return open_


def spark_rows(spark, rows):
    """The same rows in Spark."""
    plain = rows.astype(object).where(rows.notna(), None)
    times = {"day": lambda each: each.date(), "born": lambda each: each.to_pydatetime()}
    for name, made in times.items():
        plain[name] = pd.Series([None if each is None else made(each) for each in plain[name]], dtype=object)
    return spark.createDataFrame([tuple(row) for row in plain.itertuples(index=False)], COLUMNS)


@pytest.fixture(scope="module")
def stored(spark):
    return spark_rows(spark, made_rows())


@pytest.fixture(scope="module")
def both(stored):
    """A Dataset of the DataFrame, and one of the same in pandas with its dtypes."""
    table = pdrisk.Dataset(stored, bounds=BOUNDS)
    return table, pdrisk.Dataset(made_rows().astype(table._frame.dtypes.to_dict()), bounds=BOUNDS)


def left_behind(spark):
    from pyspark import SparkContext

    views = [each.name for each in spark.catalog.listTables() if each.name.startswith("pdrisk")]
    return views, SparkContext.getOrCreate()._jsc.getPersistentRDDs().size()  # Connect's server is of this process, too


class TestConformance:
    """The same integers as every engine."""

    def test_of_floats_with_all_groups(self, opened):
        check(opened, TABLES[:1], UNIVERSES[:1])

    def test_of_the_groups_that_occur(self, opened):
        check_group_sizes(opened, TABLES[:1])

    @pytest.mark.parametrize("table", TABLES[-4:], ids=lambda table: f"{table.type} {len(table.values)}")
    def test_of_other_types_without_ansi_and_without_generated_code(self, settings, opened, table):
        settings(
            spark__sql__ansi__enabled="false",
            spark__sql__codegen__wholeStage="false",
            spark__sql__codegen__factoryMode="NO_CODEGEN",
        )
        check(opened, [table], UNIVERSES[2:3])


class TestDays:
    """Keys of dates and timestamps in every spelling."""

    def test_by_methods_and_in_sql(self, spark):
        rows = spark.createDataFrame([*zip(day_keys.DAYS, day_keys.TIMES, strict=True)], "d DATE, t TIMESTAMP_NTZ")
        day_keys.check_methods(rows)
        day_keys.check_time_of_day(rows)
        rows.createOrReplaceTempView("people")
        for column in ("d", "t"):
            day_keys.check_sql(spark, column)


class TestMeaning:
    """Times have the parts of Python's calendar, and conditions the meaning that they have everywhere."""

    def test_parts_and_beginnings_of_times(self, settings, spark):
        settings(spark__sql__session__timeZone="America/St_Johns")
        rows = spark.createDataFrame([*enumerate(map(calendar.ticks, calendar.times()))], "place INT, t BIGINT")
        asked = [f"{sql} AS c{at}" for at, sql in enumerate(calendar.listed(SparkDialect(), 1000))]
        found = rows.selectExpr("place", *asked).orderBy("place").collect()
        assert [tuple(row)[1:] for row in found] == [calendar.wanted(each, 1) for each in calendar.times()]

    def test_missing_values_in_conditions(self, monkeypatch, spark):
        without_noise(monkeypatch)
        rows = spark.createDataFrame(
            [[*record.values()] for record in meaning.RECORDS], "x DOUBLE, y BIGINT, s STRING, b BOOLEAN"
        )
        rows.createOrReplaceTempView("people_of_a_meaning")
        wanted, d = meaning.Decided(), pdrisk.Dataset(rows)
        query = "SELECT COUNT(*) FROM people_of_a_meaning WHERE {}"
        asked = meaning.STRINGS[::20]
        assert not meaning.wrong(asked, wanted, meaning.counter(query, spark))
        assert not meaning.wrong(asked, wanted, lambda text: d.count(where=text, eps=1).value)
        assert not meaning.shares(asked[:3], wanted, d)


def same(both, asked):
    found, wanted = (numbers(asked(each)) for each in both)
    if isinstance(found, pd.Series):
        pd.testing.assert_series_equal(found, wanted, rtol=1e-12)
    else:
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-12)


class TestLikeFrames:
    """A Dataset of a DataFrame of Spark answers as one of the same rows in pandas."""

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("question", "way"),
        [*((question, "where") for question in QUESTIONS), *(("agg", way) for way in WAYS if way != "where")],
    )
    def test_same_numbers(self, both, question, way):
        same(both, lambda each: QUESTIONS[question](each, curator=True, **WAYS[way]))

    @pytest.mark.whole
    @pytest.mark.parametrize("ansi", ["true", "false"])
    @pytest.mark.parametrize(
        "where",
        [
            "age // 7 in (2, 4) or age % -7 == -1",
            "income // 7 > 400 and income % 3 < 1",
            "income / (age - 20) > 100",
            "income * 1e300 * 1e300 > 1",
            "age > income or age ** 15 > 40000000000000000000.5",
            "region == 'o\\'west' or region < 'b'",
            "day < '2020-03-01' and born >= '1960-01-01 12:00:00.000001'",
            "works and not (region in ['', 'South'])",
            "age ** 6 // 1000000 == 729 or pid == 9007199254740993",
        ],
    )
    def test_filters(self, settings, both, where, ansi):
        settings(spark__sql__ansi__enabled=ansi)
        same(both, lambda each: each.count(where=where, eps=1, curator=True))

    @pytest.mark.parametrize("escaped", ["true", "false"])
    def test_texts_of_any_letters(self, spark, settings, escaped):
        settings(spark__sql__parser__escapedStringLiterals=escaped)
        texts = ["a'b", 'a"b', "a\\b", "a\\'b", "\\u0041", "ä", "Ä", "a ", "a", "A", "", "`", "$x", "${x}", "\n", ":k"]
        frame = pd.DataFrame({"text": texts}, dtype="string[python]")
        rows = spark.createDataFrame([(each,) for each in texts], "text string")
        data = pdrisk.Dataset(rows), pdrisk.Dataset(frame)
        same(data, lambda d: d.count(by="text", keys=[*texts, "nobody"], eps=1, curator=True))
        for text in ("a'b", "a\\b", "a"):
            same(data, lambda d, text=text: d.count(where=pd.col("text") == text, eps=1, curator=True))

    def test_texts_are_compared_by_code_points_whatever_their_collation(self, spark):
        frame = spark.createDataFrame([("a",), ("A",), ("a",)], "text string collate UTF8_LCASE")
        texts = pd.DataFrame({"text": ["a", "A", "a"]}, dtype="string[python]")
        data = pdrisk.Dataset(frame), pdrisk.Dataset(texts)
        same(data, lambda d: d.count(by="text", keys=["a", "A", "b"], eps=1, curator=True))
        same(data, lambda d: d.count(where="text == 'a'", eps=1, curator=True))
        same(data, lambda d: d.nunique("text", eps=1, curator=True))
        data = pdrisk.Dataset(frame, person="text"), pdrisk.Dataset(texts, person="text")
        same(data, lambda d: d.count(rows=1, eps=1, curator=True))
        people = "SELECT COUNT(DISTINCT text) AS n FROM data a JOIN data b USING (text)"
        for query, how in (("SELECT COUNT(*) AS n FROM data", {"rows": 1}), (people, {})):
            assert [d.sql(query, eps=1, curator=True, **how)["n_n"].item() for d in data] == [2, 2]

    def test_names_of_any_letters(self, spark):
        names = ["a b", "c`d", 'e"f', "g.h", "select", "i'j"]
        own = (f"{at}.5D AS `{name.replace('`', '``')}`" for at, name in enumerate(names))
        frame = spark.range(3).selectExpr(*own)
        pandas = pd.DataFrame({name: [at + 0.5] * 3 for at, name in enumerate(names)})
        data = pdrisk.Dataset(frame), pdrisk.Dataset(pandas)
        for name in names:
            same(data, lambda d, name=name: d.mean(name, bounds=(0, 10), mechanism="laplace", eps=1, curator=True))

    def test_names_twice_are_refused(self, spark):
        with pytest.raises(ColumnTypeError, match="several columns of one name"):
            pdrisk.Dataset(spark.range(3).selectExpr("id AS x", "id AS x")).count(eps=1)

    def test_sql(self, spark, stored, both):
        query = "SELECT region, AVG(age) AS m, COUNT(*) AS c FROM {} WHERE age <> 40 AND NOT works GROUP BY region"
        asked = {"eps": 1, "bounds": {"age": (18, 90)}, "keys": ["north", "o'west", "nowhere"], "curator": True}
        found, wanted = (d.sql(query.format("data"), **asked) for d in both)
        numbers = [name for name in wanted if name.rpartition("_")[2] in ("n", "sensitivity", "worlds", "clamped")]
        assert len(numbers) > 4
        pd.testing.assert_frame_equal(found[["region", *numbers]], wanted[["region", *numbers]], check_dtype=False)
        stored.createOrReplaceTempView("people_of_a_test")
        again = pdrisk.sql(query.format("people_of_a_test"), spark, **asked)
        spark.catalog.dropTempView("people_of_a_test")
        pd.testing.assert_frame_equal(again[numbers], wanted[numbers], check_dtype=False)

    def test_sql_is_refused(self, spark, both):
        with pytest.raises(ParameterError, match="knows no table 'nowhere'"):
            pdrisk.sql("SELECT COUNT(*) FROM nowhere", spark, eps=1)
        with pytest.raises(ParameterError, match="the function java_method"):
            both[0].sql("SELECT java_method('java.lang.System', 'exit', 1), COUNT(*) FROM data", eps=1)

    def test_a_function_is_refused(self, both):
        with pytest.raises(ParameterError, match="needs a frame in Python"):
            both[0].count(where=lambda rows: rows.age > 40, eps=1)


class TestReading:
    """What Spark is told to do, and what is there afterwards."""

    @staticmethod
    def plan_of(frame):
        if CONNECT:
            return frame._explain_string(mode="simple")
        return frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")

    def plans(self, spark, monkeypatch, query):
        """The physical plans of all statements that a query takes."""
        from pdrisk.engines.sql.servers import spark_engine as own

        found, asked = [], own._asked

        def noted(session, sql, values):
            frame = asked(session, sql, values)
            found.append(self.plan_of(frame))
            return frame

        monkeypatch.setattr(own, "_asked", noted)
        rows = spark.range(1000).selectExpr("CAST(id AS DOUBLE) AS x", "CAST(id % 7 AS DOUBLE) AS y", "'a' AS g")
        table = SparkFrame(rows.repartition(3)).table()
        table.opened(query, table.header, None, bytes).read(query)
        return found

    @staticmethod
    def faults(plan):
        """Python over rows, and sorts of what was brought to one partition."""
        python = re.findall(r"\w*(?:Python|InPandas|InArrow)\w*", plan)
        return python + re.findall(r"(?:Sort|Window)\b[^\n]*\n[^\n]*Exchange SinglePartition", plan)

    @pytest.mark.parametrize("grouped", [False, True])
    def test_no_plan_sorts_in_one_partition_or_calls_python(self, spark, monkeypatch, grouped):
        lines = tuple(Line("x", each, UNIVERSES[0], "given", mechanism=mechanism) for each, mechanism in ASKED)
        groups = Groups(("g",), (("a",), ("b",)), "given") if grouped else None
        plans = self.plans(spark, monkeypatch, Query(lines, (), groups=groups))
        assert plans
        assert [fault for plan in plans for fault in self.faults(plan)] == []

    def test_listed_keys_are_put_in_order_by_the_driver(self, spark, monkeypatch):
        line = Line("x", ASKED[0][0], UNIVERSES[0], "given", mechanism=ASKED[0][1])
        plans = self.plans(spark, monkeypatch, Query((line,), (), groups=Groups(("g",), (("b",), ("a",)), "given")))
        assert plans and not any("rangepartitioning" in plan for plan in plans)

    def test_a_variance_scans_its_records_twice_and_plans_no_subquery(self, spark, monkeypatch):
        asked = next(each for each in ASKED if each[0].needs.squares)
        plans = self.plans(
            spark, monkeypatch, Query((Line("x", asked[0], UNIVERSES[0], "given", mechanism=asked[1]),), ())
        )
        _, *passes = plans  # the first keeps the records
        assert [plan.count("InMemoryTableScan") for plan in passes] == [1, 1]
        assert not any("Subquery" in plan for plan in passes)

    def test_a_plan_that_does_is_noticed(self, spark):
        rows = spark.range(1000).repartition(3)
        rows.createOrReplaceTempView("some_rows")
        spark.udf.register("in_python", lambda value: value, "bigint")
        sorts = "SELECT row_number() OVER (ORDER BY id) FROM some_rows"
        for statement in (sorts, "SELECT sum(in_python(id)) FROM some_rows"):
            assert self.faults(self.plan_of(spark.sql(statement)))

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("question", "options"),
        [
            ("mean(x)", {"where": "x > -40"}),
            ("var(x)", {}),
            ("median(x)", {"mechanism": "laplace"}),
            ({"x": ["var", "median"]}, {"by": "g", "keys": ["a", "b"], "curator": True}),
            ("mean(x)", {"by": "g", "keys": "observed"}),
            ("sum(x)", {"person": "pid", "rows": 2}),
        ],
    )
    def test_statements_are_what_is_sent(self, spark, monkeypatch, question, options):
        from pdrisk.engines.sql.servers import spark_engine as own

        sent, asked = [], own._asked

        def noted(session, sql, values):
            sent.append(re.sub("'[0-9a-f]{64}'", f"'{'0' * 64}'", sql))
            return asked(session, sql, values)

        monkeypatch.setattr(own, "_asked", noted)
        rows = spark.range(-50, 51).selectExpr("CAST(id AS DOUBLE) AS x", "'a' AS g", "id AS pid")  # their mean is 0
        asked_by_methods(pdrisk.Dataset(rows), question, {"eps": 1, "bounds": {"x": (-60, 60)}, **options})
        columns = {"x": "double", "g": "string", "pid": "bigint"}
        found = pdrisk.statements(
            question, "a_view", columns, dialect="spark", eps=1, bounds={"x": (-60, 60)}, **options
        )
        steps = "CAST('671088.64' AS DOUBLE)"  # to one unit: 2**26 of these 100
        sent = [each.replace(steps, "CAST('1.0' AS DOUBLE)") for each in sent]
        sent = [re.sub("pdrisk_[0-9a-f]{32}(_kept)?", r"`a_view\1`", each) for each in sent]
        assert found == sent[: len(found)]

    def test_no_record_is_collected(self, spark, monkeypatch):
        from pdrisk.engines.sql.servers import spark_engine as own

        lines, fetched = [], own.fetched

        def counted(session, sql, values):
            found = fetched(session, sql, values)
            lines.append(len(next(iter(found.values()))))
            return found

        monkeypatch.setattr(own, "fetched", counted)
        rows = spark.range(5000).selectExpr("CAST(id % 100 AS DOUBLE) AS x")
        d = pdrisk.Dataset(rows, bounds={"x": (0, 100)})
        d.mean("x", eps=1)
        assert lines == [1]
        d.median("x", mechanism="laplace", eps=1)  # by cells, of which there are no more than values
        assert lines[1:] == [1, 100]

    def test_nothing_is_left(self, spark, both):
        both[0].median("income", eps=1)
        assert left_behind(spark) == ([], 0)

    def test_what_was_set_stays(self, spark, both):
        before = spark.sql("SET").collect()
        both[0].mean("income", by="region", keys=["North"], eps=1)
        assert spark.sql("SET").collect() == before

    def test_functions_of_a_user_stand_in_for_none(self, spark, both):
        for name in ("sum", "count", "min", "floor"):
            spark.udf.register(name, lambda *_: 5.0, "double")
        same(both, lambda each: each.mean("income", eps=1, curator=True))

    def test_a_source_that_is_drawn_anew_is_read_once(self, spark):
        drawn = spark.range(2000).selectExpr("rand() * 100 AS x")
        assert pdrisk.Dataset(drawn, bounds={"x": (0, 100)}).median("x", eps=10).value is not None


def in_view(frame, sql):
    frame.createOrReplaceTempView("some_files")
    return frame.sparkSession.sql(sql)


def in_python():
    from pyspark.sql.functions import udf

    return udf(lambda value: value, "double")


SAME = {
    "files": lambda files: files,
    "columns and filters": lambda files: files.filter("x > 3 AND g LIKE 'a%'").selectExpr("x * 2 AS x", "g"),
    "union": lambda files: files.union(files.filter("g IS NOT NULL")),
    "view": lambda files: in_view(files, "SELECT g, CASE WHEN x > 3 THEN x END AS x FROM some_files"),
    "rows of the driver": lambda files: files.sparkSession.createDataFrame(files.limit(90).toArrow()),
}
OTHERS = {
    "sample": lambda files: files.sample(0.5, seed=1),
    "limit": lambda files: files.limit(90),
    "random column": lambda files: files.selectExpr("rand() * 100 AS x", "g"),
    "random filter": lambda files: files.filter("rand() > 0.5"),
    "function of Python": lambda files: files.select(in_python()("x").alias("x"), "g"),
    "Java method": lambda files: files.selectExpr("x + java_method('java.lang.System', 'nanoTime') % 2 AS x", "g"),
    "time of day": lambda files: files.filter("current_timestamp() > TIMESTAMP'2020-01-01'"),
    "join": lambda files: files.join(files.select("g").distinct(), "g"),
    "aggregate": lambda files: files.groupBy("g").agg({"x": "max"}).toDF("g", "x"),
    "distinct": lambda files: files.distinct(),
    "subquery": lambda files: in_view(files, "SELECT * FROM some_files WHERE x > (SELECT rand())"),
    "window": lambda files: in_view(files, "SELECT g, x + row_number() OVER (ORDER BY g) AS x FROM some_files"),
    "rows of Python": lambda files: files.mapInArrow(lambda batches: batches, "x double, g string"),
    "range": lambda files: files.sparkSession.range(90).selectExpr("CAST(id AS DOUBLE) AS x", "'a' AS g"),
}
if not CONNECT:
    OTHERS["RDD"] = lambda files: files.sparkSession.createDataFrame(files.rdd, "x double, g string")
BY = {"by": "g", "keys": ["a", "b", "nobody"]}


class TestKept:
    """Records are kept between two looks, unless they are the same each time and noise is added to the first alone."""

    @pytest.fixture(scope="class")
    def files(self, spark, tmp_path_factory):
        path = str(tmp_path_factory.mktemp("files") / "rows.parquet")
        x = "CASE WHEN id % 11 = 0 THEN double('NaN') WHEN id % 13 > 0 THEN (id * 37 % 1009) / 7.0D - 20 END AS x"
        spark.range(2000).selectExpr(
            x, "CASE id % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'ab' END AS g"
        ).repartition(3).write.parquet(path)
        return spark.read.parquet(path)

    @pytest.fixture
    def kept(self, spark, monkeypatch):
        """How often something was kept."""
        of, found = type(spark.range(1)), []
        persist = of.persist

        def noted(self, *level):
            found.append(level)
            return persist(self, *level)

        monkeypatch.setattr(of, "persist", noted)
        return found

    @pytest.mark.parametrize("made", SAME)
    def test_a_variance_of_files_keeps_nothing(self, spark, files, kept, made):
        frame = SAME[made](files)
        table = pdrisk.Dataset(frame, bounds={"x": (0, 100)})
        rows = frame.toArrow().to_pandas().astype(table._frame.dtypes.to_dict())
        frames = table, pdrisk.Dataset(rows, bounds={"x": (0, 100)})
        for asked in (
            lambda each: each.var("x", eps=1, curator=True),
            lambda each: each.std("x", eps=1, ddof=0, curator=True),
            lambda each: each.query("x > 5").agg({"x": ["var", "mean", "count"]}, eps=1, curator=True),
            lambda each: each.var("x", eps=1, curator=True, **BY),
        ):
            same(frames, asked)
        assert len(kept) == 4 * CONNECT
        assert left_behind(spark) == ([], 0)

    @pytest.mark.parametrize("made", OTHERS)
    def test_of_others_the_records_are_kept(self, spark, files, kept, made):
        d = pdrisk.Dataset(OTHERS[made](files), bounds={"x": (0, 100)})
        assert d.var("x", eps=1).value is not None and not kept
        assert d.var("x", eps=1, curator=True).value is not None
        assert len(kept) == 1
        assert left_behind(spark) == ([], 0)

    def test_a_curator_looks_later(self, files):
        d = pdrisk.Dataset(files, bounds={"x": (0, 100)})
        for name in ("mean", "var"):
            later, at_once = (getattr(d, name)("x", eps=1, curator=asked).curator for asked in (False, True))
            assert later == at_once
        drawn_anew = files.filter("double(java_method('java.lang.Math', 'random')) < 0.5")
        with pytest.raises(QueryFailedError, match="has changed since the answer"):
            pdrisk.Dataset(drawn_anew, bounds={"x": (0, 100)}).mean("x", eps=1).curator  # noqa: B018

    @pytest.mark.parametrize("kind", ["orc", "csv", "json"])
    def test_files_of_text_are_kept_and_those_of_columns_are_not(self, spark, files, kept, tmp_path, kind):
        files.write.format(kind).save(str(tmp_path / "rows"))
        frame = spark.read.schema("x double, g string").format(kind).load(str(tmp_path / "rows"))
        pdrisk.Dataset(frame, bounds={"x": (0, 100)}).var("x", eps=1, curator=True)
        assert len(kept) == (CONNECT or kind != "orc")

    @pytest.mark.parametrize(
        "ask",
        [
            lambda d: d.var("x", eps=1, mechanism="laplace"),
            lambda d: d.median("x", eps=1),
            lambda d: d.agg({"x": ["var", "median"]}, eps=1, curator=True),
        ],
        ids=["laplace", "median", "var and median"],
    )
    def test_what_noise_is_added_to_by_a_later_look_is_kept(self, spark, files, kept, ask):
        ask(pdrisk.Dataset(files, bounds={"x": (0, 100)}))
        assert len(kept) == 1
        assert left_behind(spark) == ([], 0)

    def test_sql_of_files_keeps_nothing(self, spark, files, kept):
        files.createOrReplaceTempView("some_files")
        asked = "SELECT VAR_SAMP(x) AS spread FROM some_files WHERE x > 5"
        how = {"eps": 1, "bounds": {"x": (0, 100)}}
        found = pdrisk.sql(asked, spark, curator=True, **how)
        wanted = pdrisk.sql(asked, some_files=files.toArrow().to_pandas(), curator=True, **how)
        facts = [
            each.filter(regex="_(n|clamped|local_sensitivity|two_worlds|many_worlds)$") for each in (found, wanted)
        ]
        assert len(facts[0].columns) == 5
        pd.testing.assert_frame_equal(*facts, rtol=1e-12)
        assert len(kept) == CONNECT


class TestFailures:
    """What fails says nothing of a record, and is paid for once."""

    @pytest.fixture
    def failing(self, spark):
        """Fails on a record, whose value the error of Spark would quote."""
        return spark.range(5).selectExpr("CAST(id AS DOUBLE) AS x", "assert_true(id < 3, concat('secret ', id)) AS y")

    def test_the_cause_is_hidden_and_the_charge_stays(self, spark, failing, book):
        ledger = book()
        d = pdrisk.Dataset(failing.filter("y IS NULL"), ledger=ledger)
        with pytest.raises(QueryFailedError) as caught:
            d.mean("x", bounds=(0, 5), eps=0.5)
        assert "secret" not in str(caught.value) and caught.value.__cause__ is caught.value.__context__ is None
        assert ledger.remaining().eps == 10**9 - 0.5
        assert left_behind(spark) == ([], 0)

    def test_a_task_that_is_tried_again_is_paid_for_once(self, spark, book, tmp_path):
        marked = str(tmp_path / "tried")

        def first_fails(batches):
            import os

            for batch in batches:
                if not os.path.exists(marked):
                    open(marked, "w").close()
                    raise RuntimeError("this task is lost")
                yield batch

        ledger = book()
        frame = spark.range(100).selectExpr("CAST(id AS DOUBLE) AS x").mapInArrow(first_fails, "x double")
        found = pdrisk.Dataset(frame, ledger=ledger).count(eps=0.5)
        assert (tmp_path / "tried").exists() and abs(found.value - 100) < 100
        assert ledger.remaining().eps == 10**9 - 0.5

    def test_a_driver_that_dies_leaves_it_paid(self, book, path):
        ledger = book()
        script(
            """
            sys.path.insert(0, sys.argv[2])
            import warnings
            from spark_sessions import session
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", analyst="ann", eps=10**9)

            def dies_when_it_is_paid():
                while ledger.remaining().eps == 10**9:
                    pass
                os.kill(os.getpid(), signal.SIGKILL)

            warnings.simplefilter("ignore")
            slow = "CAST(java_method('java.lang.Thread', 'sleep', 20000L) IS NULL AS INT) + id AS x"
            data = session().range(5).selectExpr(slow)
            threading.Thread(target=dies_when_it_is_paid, daemon=True).start()
            pdrisk.Dataset(data, ledger=ledger).mean("x", bounds=(0, 5), eps=0.5)
            """,
            path,
            SUPPORT,
            killed=True,
        )
        assert ledger.remaining().eps == 10**9 - 0.5
