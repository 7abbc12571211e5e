"""Tables that DuckDB reads have the same measures as the frame of the same rows."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from disclosure_oracle import people
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError

FRAME = people(5, 400).reset_index(drop=True)
MEASURES = {
    "k_anonymity": lambda d, on, **said: d.k_anonymity(on, **said),
    "k_map": lambda d, on, **said: d.k_map(on, population=pd.concat([FRAME, FRAME]), **said),
    "delta_presence": lambda d, on, **said: d.delta_presence(on, population=FRAME, **said),
    "l_diversity": lambda d, on, **said: d.l_diversity(on, "illness", **said),
    "t_closeness": lambda d, on, **said: d.t_closeness(on, "score", **said),
    "unique_rows": lambda d, on, **said: d.unique_rows(on, **said),
    "estimate": lambda d, on, **said: d.k_map(on, weights=3, **said),
}
ASKED = [
    (["age", "zip"], {}),
    (["wage", "away", "since"], {}),
    (["sex", "age"], {"generalize": {"age": [0, 22, 30]}}),
    (["age", "zip"], {"person": "pid"}),
    (["zip", "age", "since"], {"person": "pid", "generalize": {"zip": 2, "age": [20, 23, 26]}}),
    (["zip", "sex"], {"person": ["pid", "away"], "generalize": {"sex": {"f": "*", "m": "*"}}}),
]


@pytest.fixture(scope="module")
def con():
    connection = duckdb.connect()
    connection.register("shown", FRAME)
    connection.execute("CREATE TABLE people AS SELECT * FROM shown")
    connection.execute("CREATE TEMP TABLE passing AS SELECT * FROM shown")
    return connection


def assert_same(found, wanted):
    assert found.to_dict() == wanted.to_dict()
    pd.testing.assert_frame_equal(found.classes, wanted.classes, check_index_type=False, check_dtype=False)


class TestSameResults:
    """One GROUP BY in the place of the rows."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("asked", range(len(ASKED)))
    @pytest.mark.parametrize("measure", MEASURES)
    def test_of_a_table(self, con, measure, asked):
        on, said = ASKED[asked]
        wanted = MEASURES[measure](FRAME.dprisk, on, **said)
        assert_same(MEASURES[measure](pdrisk.Dataset((con, "people")), on, **said), wanted)

    @pytest.mark.whole
    @pytest.mark.parametrize("kind", ["parquet", "arrow", "polars", "temporary", "relation"])
    def test_of_other_tables(self, con, kind, tmp_path):
        if kind == "parquet":
            data = tmp_path / "people.parquet"
            FRAME.to_parquet(data)
        else:
            data = {
                "arrow": lambda: con.table("people").to_arrow_table(),
                "polars": lambda: con.table("people").pl(),
                "temporary": lambda: (con, "passing"),
                "relation": lambda: con.table("people"),
            }[kind]()
        for on, said in (ASKED[0], ASKED[4]):
            assert_same(pdrisk.Dataset(data).k_anonymity(on, **said), FRAME.dprisk.k_anonymity(on, **said))
        assert_same(FRAME.dprisk.k_map("zip", population=data), FRAME.dprisk.k_map("zip", population=FRAME))

    def test_missing_codes_are_missing(self, con):
        said = {"missing": {"age": [20, 21], "pid": [3]}}
        for on, asked in (("age", {}), ("age", {"person": "pid"}), ("zip", {"person": "pid"})):
            stored = pdrisk.Dataset((con, "people"), **said)
            assert_same(stored.k_anonymity(on, **asked), pdrisk.Dataset(FRAME, **said).k_anonymity(on, **asked))

    def test_views_of_frames(self, con):
        assert_same(pdrisk.Dataset((con, "shown")).k_anonymity("zip"), FRAME.dprisk.k_anonymity("zip"))

    def test_suggestions(self, con):
        on = ["age", "zip", "sex"]
        found, wanted = (d.suggest_generalization(on, k=4) for d in (pdrisk.Dataset((con, "people")), FRAME.dprisk))
        assert found.generalize == wanted.generalize
        pd.testing.assert_frame_equal(found.steps, wanted.steps)

    def test_weights(self, con):
        con.execute("CREATE OR REPLACE TABLE weighted AS SELECT *, 2 + score AS w FROM people")
        stored = pdrisk.Dataset((con, "weighted"))
        assert_same(
            stored.k_map(["age", "zip"], weights="w"),
            FRAME.assign(w=2 + FRAME["score"]).dprisk.k_map(["age", "zip"], weights="w"),
        )

    def test_weights_are_of_people(self, con):
        con.execute("CREATE OR REPLACE TABLE weighted AS SELECT *, 2 + score AS w FROM people")
        stored = pdrisk.Dataset((con, "weighted"))
        known = {"missing": {"w": [2]}}
        for d in (pdrisk.Dataset((con, "weighted"), **known), pdrisk.Dataset(con.table("weighted").df(), **known)):
            with pytest.raises(ParameterError, match="none missing"):
                d.k_map("age", weights="w")
        with pytest.raises(ParameterError, match="some have several rows in one class"):
            stored.k_map("sex", weights="w", person="pid")
        con.execute("UPDATE weighted SET w = NULL WHERE age = 20")
        with pytest.raises(ParameterError, match="none missing"):
            stored.k_map("age", weights="w")

    def test_nan_is_missing_and_large_numbers_are_exact(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (9007199254740993, 'NaN'::DOUBLE, 1), "
                    "(9007199254740992, NULL, 1), (NULL, 0.5, 2), (NULL, 0.5, 3)) v(id, x, pid)")  # fmt: skip
        stored = pdrisk.Dataset((con, "t"))
        assert stored.k_anonymity("id").unique == 2
        assert stored.k_anonymity("x").classes["sample"].tolist() == [2, 2]
        assert stored.k_anonymity("x", person="pid").classes["sample"].tolist() == [2, 1]

    @pytest.mark.whole
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(
        "sql_type",
        [
            "BOOLEAN",
            "TINYINT",
            "BIGINT",
            "UBIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(9,2)",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMP_NS",
            "TIMESTAMPTZ",
            "VARCHAR",
            "UUID",
            "ENUM('0','1')",
        ],
    )
    def test_keys_of_all_types(self, sql_type):
        """Also where they are made coarser before people are counted: what a join misses would become missing."""
        con = duckdb.connect()
        value = {
            "DATE": "DATE '2020-01-01' + CAST(i AS INT)", "VARCHAR": "'v' || i", "DECIMAL(9,2)": "i + 0.25",
            "TIMESTAMP": "TIMESTAMP '2020-01-01' + i * INTERVAL 1 HOUR", "FLOAT": "i + CAST(0.1 AS FLOAT)",
            "UUID": "'00000000-0000-0000-0000-00000000000' || i", "DOUBLE": "i + 0.1",
            "UBIGINT": "i + 18446744073709551610", "BIGINT": "i + 9007199254740993",
            "ENUM('0','1')": "CAST(i AS VARCHAR)",
        }  # fmt: skip
        made = value.get(sql_type, value["TIMESTAMP"] if "TIMESTAMP" in sql_type else "i")
        con.execute(
            f"CREATE TABLE t AS SELECT CASE WHEN j < 5 THEN CAST({made} AS {sql_type}) END AS key, j AS pid "
            "FROM range(2) a(i), range(6) b(j)"
        )
        stored = pdrisk.Dataset((con, "t"))
        values = stored.k_anonymity("key").classes
        assert values["sample"].tolist() == [5, 5, 2] and pd.isna(values.index[2])
        labels = values.index[:2].tolist()
        coarse = {"key": dict(zip(labels, ["one", "other"], strict=True))}
        counted = stored.k_anonymity("key", person="pid", generalize=coarse).classes
        assert counted["sample"].tolist() == [5, 5, 1] and counted.index[:2].tolist() == ["one", "other"]

    def test_names_are_quoted(self):
        con = duckdb.connect()
        con.execute("""CREATE TABLE "odd table" AS SELECT 1 AS "a ""b", 2 AS "select" """)
        for data in ((con, "odd table"), con.table('"odd table"')):
            assert pdrisk.Dataset(data).k_anonymity(['a "b', "select"]).k == 1


def shadow(con, names):
    """Macros in the place of these functions: 42, or true."""
    for name in names:
        value = "true" if name.startswith("is") else "42"
        made = ", ".join(f"({each}) AS {value}" for each in ("", "a", "a, b", "a, b, c"))
        con.execute(f'CREATE MACRO "{name}"{made}; CREATE TEMP MACRO "{name}"{made}')


@pytest.fixture(scope="module")
def shadowed():
    """The same people on a connection with a macro for every function of DuckDB's, but for the one that is refused."""
    con = duckdb.connect()
    con.register("shown", FRAME)
    con.execute("CREATE TABLE people AS SELECT *, 2 + score AS w, wage * 1 AS x FROM shown")
    rows = con.execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name <> 'count_star'")
    shadow(con, [name for (name,) in rows.fetchall()])
    return con


class TestMacros:
    """A macro of the connection stands in for no function that a measure calls."""

    def test_they_would(self, shadowed):
        with pytest.raises(duckdb.Error, match="Macro"):
            shadowed.sql("SELECT count(DISTINCT age) FROM people")
        assert shadowed.sql("SELECT 1 + 1, isnan(age) FROM people LIMIT 1").fetchall() == [(42, True)]

    @pytest.mark.parametrize("asked", range(len(ASKED)))
    def test_of_classes(self, shadowed, asked):
        on, said = ASKED[asked]
        for measure in MEASURES.values():
            assert_same(measure(pdrisk.Dataset((shadowed, "people")), on, **said), measure(FRAME.dprisk, on, **said))

    def test_of_a_population(self, shadowed):
        con = shadowed.cursor()
        con.execute("CREATE MACRO count_star() AS 42; CREATE TEMP MACRO count_star() AS 42")
        for on, said in ASKED:
            known = [(con, "people"), FRAME, con.table("people")]
            first, *others = (FRAME.dprisk.k_map(on, population=each, **said) for each in known)
            for other in others:
                assert_same(other, first)
        con.execute("DROP MACRO memory.main.count_star")

    def test_of_weights(self, shadowed):
        frame = FRAME.assign(w=2 + FRAME["score"])
        stored = pdrisk.Dataset((shadowed, "people"))
        assert_same(*(d.k_map(["age", "zip"], weights="w") for d in (stored, frame.dprisk)))

    @pytest.mark.parametrize("person", [None, "pid"])
    def test_of_output_rules(self, shadowed, person):
        frame = FRAME.assign(x=FRAME["wage"], row=1).dprisk
        shadowed.execute('CREATE OR REPLACE VIEW ones AS SELECT *, 1 AS "row" FROM people')
        stored = pdrisk.Dataset((shadowed, "ones"))
        for statistic in ("sum", "min"):
            tables = [
                d.output_rules("zip", "row", values="x", statistic=statistic, person=person) for d in (stored, frame)
            ]
            for name in ("table", "people", "reasons"):
                own, wanted = (TestOutputRules.cells(getattr(each, name)) for each in tables)
                pd.testing.assert_frame_equal(own, wanted, check_dtype=False, check_column_type=False)

    def test_the_example_of_the_report(self):
        """k of 10 became 40 where missing values, which are one class, took all others with them."""
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT i % 4 + 0.5::DOUBLE AS x FROM range(40) r(i)")
        con.execute("CREATE MACRO isnan(v) AS true")
        assert pdrisk.Dataset((con, "t")).k_anonymity("x").k == 10


class TestTextsAreCompared:
    """Texts that differ in a letter's case are two values, as on frames, whatever a column or connection says."""

    @pytest.mark.parametrize("how", ["COLLATE NOCASE", "", "setting"])
    def test_by_their_bytes(self, how):
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (key VARCHAR {how.removeprefix('setting')}, pid VARCHAR "
                    f"{how.removeprefix('setting')}, x DOUBLE)")  # fmt: skip
        if how == "setting":
            con.execute("SET default_collation = 'nocase'")
        rows = [(key, pid, 5.0) for key in ("a", "A", "b") for pid in ("p", "P", "q", "q")]
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        frame = pd.DataFrame(rows, columns=["key", "pid", "x"])
        coarse = {"key": {"a": "one", "A": "two", "b": "two"}}
        for said in ({}, {"missing": {"key": ["a"]}}, {"missing": {"pid": ["P"]}}):
            stored, held = pdrisk.Dataset((con, "t"), **said), pdrisk.Dataset(frame, **said)
            for asked in ({}, {"person": "pid"}, {"generalize": coarse}, {"person": "pid", "generalize": coarse}):
                assert_same(*(d.k_anonymity("key", **asked) for d in (stored, held)))
            for asked in ({}, {"person": "pid"}):
                own, wanted = (d.query("x > 0").k_anonymity("key", **asked).to_dict() for d in (stored, held))
                assert own == wanted
        stored, held = pdrisk.Dataset((con, "t")), pdrisk.Dataset(frame)
        tables = [d.output_rules("key", "pid", values="x", statistic="sum", person="x") for d in (stored, held)]
        assert TestOutputRules.cells(tables[0].people.rename(columns={"p": 1, "P": 2, "q": 3})).to_dict() == (
            TestOutputRules.cells(tables[1].people.rename(columns={"p": 1, "P": 2, "q": 3})).to_dict()
        )


class TestFilesOfAPopulation:
    """The files of a population are those of a Dataset of the same path, with the same columns."""

    def test_folders_are_a_column(self, tmp_path):
        for number, (name, rows) in enumerate(FRAME.groupby("score")):
            (tmp_path / f"score={name}").mkdir()
            rows.drop(columns="score").to_parquet(tmp_path / f"score={name}" / f"p{number % 2}.parquet")
        with_text = FRAME.assign(score=FRAME["score"].astype(str))
        listed = sorted(tmp_path.glob("*/*.parquet"))
        for path in (tmp_path, tmp_path / "*" / "*.parquet", tmp_path / "**" / "*.parquet"):
            data = pdrisk.Dataset(str(path))
            for on in ("score", ["score", "age"]):
                assert_same(data.k_anonymity(on), with_text.dprisk.k_anonymity(on))
                assert_same(*(with_text.dprisk.k_map(on, population=each) for each in (str(path), with_text)))
                assert_same(*(with_text.dprisk.delta_presence(on, population=each) for each in (path, with_text)))
        # Files that are named themselves: as DuckDB has them, for a Dataset and a population alike.
        for one in (listed, listed[0]):
            types = pdrisk.Dataset(one).k_anonymity("score").classes.index
            population = pdrisk.Dataset(one).k_map("score", population=one)
            assert population.classes.index.equals(types)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(ParameterError, match="no Parquet file"):
            FRAME.dprisk.k_map("age", population=str(tmp_path / "*.parquet"))

    @pytest.mark.parametrize("writer", ["arrow", "polars"])
    def test_nan_is_missing(self, tmp_path, writer):
        """Statistics in files leave NaN out, so DuckDB takes conditions on it for decided."""
        pa, path = pytest.importorskip("pyarrow"), tmp_path / "f.parquet"
        values = {"x": [1.0, float("nan"), 2.0, None, float("nan"), 2.0], "pid": [1, 2, 3, 2, 4, 5], "g": [0] * 6}
        if writer == "arrow":
            pytest.importorskip("pyarrow.parquet").write_table(pa.table(values), path)
        else:
            pytest.importorskip("polars").DataFrame(values).write_parquet(path)
        data = pdrisk.Dataset(path)
        assert data.k_anonymity("x").classes["sample"].tolist() == [1, 2, 3]
        assert data.k_anonymity("x", person="pid").classes["sample"].tolist() == [1, 2, 2]
        rules = {"least_count": None, "dominance": None, "p_percent": None}
        assert data.output_rules("g", "pid", values="x", statistic="sum", rules=rules).people.to_numpy().sum() == 3


class TestTheConnection:
    """What the caller has open stays, and nothing is left behind."""

    def test_open_results_stay(self, con):
        before = con.execute("SHOW TABLES").fetchall()
        con.execute("SELECT * FROM range(3)")
        asked = {"person": "pid", "generalize": {"age": [0, 30]}}
        FRAME.dprisk.k_map("age", population=(con, "people"), **asked)
        assert con.fetchall() == [(0,), (1,), (2,)]
        pdrisk.Dataset((con, "people")).k_anonymity("age", **asked)
        assert con.execute("SHOW TABLES").fetchall() == before


class TestRefusals:
    """What a database cannot be asked is said."""

    def test_said(self, con):
        stored = pdrisk.Dataset((con, "people"))
        con.execute("CREATE OR REPLACE TABLE lists AS SELECT [age] AS age FROM people")
        with pytest.raises(ParameterError, match="only a pandas frame has rows"):
            stored.k_anonymity("age").per_row()
        with pytest.raises(UnknownColumnError, match="Did you mean 'age'"):
            stored.k_anonymity("aeg")
        with pytest.raises(ParameterError, match="cannot be counted anew"):
            stored.suggest_generalization("age", person="pid")
        with pytest.raises(ColumnTypeError, match="cannot be a key"):
            pdrisk.Dataset((con, "lists")).k_anonymity("age")
        with pytest.raises(ColumnTypeError, match="which pdrisk does not read"):
            FRAME.dprisk.k_map("age", population=con.sql("FROM lists"))
        with pytest.raises(ColumnTypeError, match=r"\(connection, \"table\"\) of DuckDB or PostgreSQL"):
            FRAME.dprisk.k_map("age", population=3)
        con.execute("CREATE OR REPLACE VIEW broken AS SELECT CAST(zip || 'x' AS INTEGER) AS age FROM people")
        with pytest.raises(ParameterError, match=r"classes of this table \(ConversionE") as caught:
            FRAME.dprisk.k_map("age", population=(con, "broken"))
        assert caught.value.__context__ is None
        with pytest.raises(ParameterError, match="several tables"):
            pdrisk.Dataset({"a": FRAME, "b": FRAME}).k_anonymity("age")


class TestOutputRules:
    """Contributions that DuckDB ranks fail the same rules as those of the frame of the same rows."""

    RULES = {"least_count": 3, "dominance": (2, 0.4), "p_percent": 60}  # noqa: RUF012 - never changed

    @staticmethod
    def rows(seed, n=80):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"region": rng.choice(["n", "s", "w", None], n), "age": rng.integers(-1, 3, n)})
        frame["wage"] = rng.choice(
            [1.0, 2.0, 3.0, 50.0, -2.0, -9.0, np.nan], n, p=[0.3, 0.2, 0.2, 0.1, 0.02, 0.1, 0.08]
        )
        frame["pid"] = pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(0, 25, n)), dtype="Int64")
        frame["year"] = rng.integers(2020, 2022, n)
        return frame

    @staticmethod
    def cells(wide):
        """By the keys of a cell, a missing one last."""
        named = wide.rename(index=lambda key: "z" if pd.isna(key) else str(key))
        named = named.rename(columns=lambda key: "z" if pd.isna(key) else f"{key:g}")
        return named.sort_index(axis=0).sort_index(axis=1).rename_axis(index=None, columns=None)

    @pytest.mark.parametrize("statistic", ["count", "sum", "mean", "min", "max"])
    @pytest.mark.parametrize("person", [None, "pid", ["pid", "year"]])
    @pytest.mark.parametrize("seed", range(3))
    def test_as_the_frame(self, statistic, person, seed):
        frame = self.rows(seed)
        declared = {"missing": {"wage": [-9.0], "age": [-1]}}
        con = duckdb.connect()
        con.register("shown", frame)
        con.execute("CREATE TABLE rows_of_people AS SELECT * FROM shown")
        asked = {"values": None if statistic == "count" else "wage", "statistic": statistic, "rules": self.RULES}
        of_frame = pdrisk.Dataset(frame, **declared).output_rules("region", "age", person=person, **asked)
        found = pdrisk.Dataset((con, "rows_of_people"), **declared).output_rules(
            "region", "age", person=person, **asked
        )
        for name in ("table", "people", "verdicts", "reasons"):
            own, wanted = self.cells(getattr(found, name)), self.cells(getattr(of_frame, name))
            pd.testing.assert_frame_equal(
                own, wanted, check_dtype=False, check_index_type=False, check_column_type=False
            )
        assert found.record()["summary"] == of_frame.record()["summary"]

    def test_every_rule_is_met(self):
        reasons = set()
        for seed in range(3):
            con = duckdb.connect()
            con.register("shown", self.rows(seed))
            dataset = pdrisk.Dataset((con, "shown"), missing={"wage": [-9.0]})
            for statistic in ("sum", "max"):
                said = dataset.output_rules("region", "age", values="wage", statistic=statistic, rules=self.RULES)
                reasons |= {each for cell in said.reasons.to_numpy().ravel() for each in cell.split(", ")}
        assert reasons >= {"", "least_count", "dominance", "p_percent"}

    @pytest.mark.parametrize(
        ("values", "error", "said"),
        [("name", ColumnTypeError, "holds no numbers"), ("huge", ParameterError, "holds infinities")],
    )
    def test_refused(self, values, error, said):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b, 'SENTINEL' AS name, CAST('infinity' AS DOUBLE) AS huge")
        with pytest.raises(error, match=said) as caught:
            pdrisk.Dataset((con, "t")).output_rules("a", "b", values=values, statistic="sum")
        assert "SENTINEL" not in str(caught.value)
