"""Every measure of everything that a Dataset can hold, and of every such population, is that of the pandas frame."""

from contextlib import ExitStack
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import pdrisk
from disclosure_oracle import people
from pdrisk.errors import ColumnTypeError, ParameterError
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from test_disclosure_in_duckdb import ASKED, MEASURES

FRAME = people(5, 400).reset_index(drop=True)
FRAME = FRAME.assign(w=2.0 + FRAME["score"], sex=FRAME["sex"].astype(object), row=1)
COLUMNS = {
    "age": "bigint", "zip": "text", "sex": "text", "wage": "double precision", "away": "boolean", "since": "timestamp",
    "illness": "text", "score": "bigint", "pid": "bigint", "w": "double precision", "row": "bigint",
}  # fmt: skip
RULES = {"least_count": 3, "dominance": (2, 0.4), "p_percent": 60}


def plain_rows(frame):
    """Rows of Python's own values, None where one is missing."""
    columns = [[None if pd.isna(each) else each for each in frame[name].tolist()] for name in COLUMNS]
    return list(zip(*columns, strict=True))


def in_duckdb(frame, kept):
    con = kept.enter_context(duckdb.connect())
    con.register("shown", in_arrow(frame))
    con.execute("CREATE TABLE people AS SELECT * FROM shown; CREATE VIEW seen AS SELECT * FROM people")
    return con


def in_arrow(frame):
    kinds = {
        "bigint": pa.int64(), "text": pa.string(), "double precision": pa.float64(), "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us"),
    }  # fmt: skip
    columns = zip(*plain_rows(frame), strict=True)
    arrays = (pa.array(each, kinds[COLUMNS[name]]) for name, each in zip(COLUMNS, columns, strict=True))
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


def of_parquet(frame, kept, folder):
    for at in range(2):
        frame.iloc[at::2][list(COLUMNS)].to_parquet(folder / f"p{at}.parquet")
    return folder


def on_postgres(frame, kept):
    url = kept.enter_context(database())
    connection = kept.enter_context(connected(url))
    named = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE people ({named})")
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO people VALUES ({', '.join(['%s'] * len(COLUMNS))})",
            [tuple(each.to_pydatetime() if isinstance(each, pd.Timestamp) else each for each in row)
             for row in plain_rows(frame)],
        )  # fmt: skip
    return (connection, "people")


def on_spark(frame, kept):
    spark = session()
    kept.callback(spark.stop)
    kinds = {"text": "string", "double precision": "double", "timestamp": "timestamp_ntz"}
    rows = [tuple(each.to_pydatetime() if isinstance(each, pd.Timestamp) else each for each in row)
            for row in plain_rows(frame)]  # fmt: skip
    return spark.createDataFrame(rows, ", ".join(f"{name} {kinds.get(each, each)}" for name, each in COLUMNS.items()))


SOURCES = {
    "pandas": lambda frame, kept, folder: frame,
    "Polars": lambda frame, kept, folder: pl.from_arrow(in_arrow(frame)),
    "a plan of Polars": lambda frame, kept, folder: pl.from_arrow(in_arrow(frame)).lazy(),
    "Arrow": lambda frame, kept, folder: in_arrow(frame),
    "a dataset of Arrow": lambda frame, kept, folder: pyarrow.dataset.dataset(in_arrow(frame)),
    "a stream of Arrow": lambda frame, kept, folder: in_arrow(frame).to_reader(),
    "Parquet": of_parquet,
    "a table of DuckDB": lambda frame, kept, folder: (in_duckdb(frame, kept), "people"),
    "a view of DuckDB": lambda frame, kept, folder: (in_duckdb(frame, kept), "seen"),
    "a relation of DuckDB": lambda frame, kept, folder: in_duckdb(frame, kept).table("people"),
    "PostgreSQL": lambda frame, kept, folder: on_postgres(frame, kept),
    "Spark": lambda frame, kept, folder: on_spark(frame, kept),
}
MARKS = {"PostgreSQL": [needs_server], "Spark": [needs_spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]}


@pytest.fixture(scope="module", params=[pytest.param(name, marks=MARKS.get(name, []), id=name) for name in SOURCES])
def source(request, tmp_path_factory):
    """The frame as it is held there, anew for each call, since a stream is read once."""
    with ExitStack() as kept:
        made = SOURCES[request.param]
        folder = tmp_path_factory.mktemp("parquet")
        if request.param == "a stream of Arrow":
            yield lambda: made(FRAME, kept, folder)
        else:
            data = made(FRAME, kept, folder)
            yield lambda: data


def plain(table):
    """Rows of a table as lists, None where a value is missing."""
    return [[None if pd.isna(each) else each for each in row] for row in table.astype(object).to_numpy().tolist()]


def assert_same(found, wanted):
    """The same numbers, and the same keys in whatever dtype."""
    assert found.to_dict() == wanted.to_dict()
    assert plain(found.classes.reset_index()) == plain(wanted.classes.reset_index())


@pytest.mark.parametrize("at", range(len(ASKED)))
def test_classes(source, at):
    on, said = ASKED[at]
    data, wanted = pdrisk.Dataset(source()), pdrisk.Dataset(FRAME)
    for measure in MEASURES.values():
        assert_same(measure(data, on, **said), measure(wanted, on, **said))


def test_weights_and_suggestions(source):
    data, wanted = pdrisk.Dataset(source()), pdrisk.Dataset(FRAME)
    assert_same(*(each.k_map(["age", "zip"], weights="w") for each in (data, wanted)))
    with pytest.raises(ColumnTypeError, match="holds no numbers"):
        data.k_map("age", weights="zip")
    found, known = (each.suggest_generalization(["age", "zip"], k=4) for each in (data, wanted))
    assert found.generalize == known.generalize
    pd.testing.assert_frame_equal(found.steps, known.steps)


def test_what_a_dataset_selects_and_assigns(source):
    def asked(data):
        chosen = pdrisk.Dataset(data, missing={"age": [23]}).query("age > 20").assign(old="age > 24")
        return chosen.k_anonymity(["old", "zip"], person="pid", generalize={"zip": 2})

    found, wanted = asked(source()), asked(FRAME)
    assert found.to_dict() == wanted.to_dict()


@pytest.mark.parametrize("statistic", ["count", "sum", "mean", "min", "max"])
@pytest.mark.parametrize("person", [None, "pid"])
def test_output_rules(source, statistic, person):
    asked = {"values": None if statistic == "count" else "wage", "statistic": statistic, "rules": RULES}
    found, wanted = (
        pdrisk.Dataset(each).output_rules("zip", "away", person=person, **asked) for each in (source(), FRAME)
    )
    for name in ("table", "people", "reasons"):
        assert plain(getattr(found, name)) == plain(getattr(wanted, name))


@pytest.mark.parametrize("said", [{}, {"person": "pid"}, {"person": "pid", "generalize": {"age": [0, 22, 99]}}])
def test_populations(source, said):
    half = FRAME.iloc[: len(FRAME) // 2]
    for on in (["age"], ["zip", "since"] if "generalize" not in said else ["age", "zip"]):
        assert_same(*(half.dprisk.k_map(on, population=each, **said) for each in (source(), FRAME)))
        assert_same(*(half.dprisk.delta_presence(on, population=each, **said) for each in (source(), FRAME)))


def test_a_join_has_the_measures_of_the_merged_frame(source):
    codes = pd.DataFrame({"illness": FRAME["illness"].dropna().unique()})
    codes["chapter"] = [f"chapter {at % 2}" for at in range(len(codes))]
    data = pdrisk.Dataset(source(), person="pid")
    if data._given.remote:  # where the codes belong, too: tests/engines/servers/test_datasets_joined_on_servers.py
        with pytest.raises(ParameterError, match="write the others to tables there"):
            data.join(codes, on="illness")
        return
    merged = pdrisk.Dataset(FRAME.merge(codes.astype({"illness": FRAME["illness"].dtype}), on="illness"), person="pid")
    found = data.join(codes, on="illness").query("age > 20").l_diversity(["age", "zip"], "chapter")
    assert_same(found, merged.query("age > 20").l_diversity(["age", "zip"], "chapter"))


class TestKeysOfArrow:
    """Keys that pandas holds to be one are one in Polars and Arrow, and of a population elsewhere."""

    @pytest.mark.parametrize("values", [[0.0, -0.0, 0.0, -0.0], [1.0, None, float("nan"), 1.0]])
    def test_zeros_and_missing_values(self, values):
        frame = pd.DataFrame({"g": ["a"] * 4, "f": values})
        arrow = pa.table({"g": ["a"] * 4, "f": pa.array(values, type=pa.float64(), from_pandas=False)})
        wanted = frame.dprisk.l_diversity("g", "f"), frame.dprisk.k_anonymity("f")
        for data in (arrow, pl.from_arrow(arrow), frame.astype({"f": pd.ArrowDtype(pa.float64())})):
            asked = pdrisk.Dataset(data)
            found = asked.l_diversity("g", "f"), asked.k_anonymity("f")
            assert [each.to_dict() for each in found] == [each.to_dict() for each in wanted]

    def test_decimals(self):
        frame = pd.DataFrame({"dec": [Decimal("0.10"), Decimal("0.10"), Decimal("1.10")]})
        arrow = pa.table({"dec": pa.array(frame["dec"].tolist(), type=pa.decimal128(9, 2))})
        with duckdb.connect() as con:
            con.register("held", arrow)
            con.execute("CREATE TABLE own AS FROM held")
            kinds = [frame, arrow, pl.from_arrow(arrow), (con, "own")]
            for data in kinds:
                for population in kinds:
                    found = pdrisk.Dataset(data).k_map("dec", population=population)
                    assert (found.k_map, found.population) == (1, 3)

    @pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
    def test_bins_of_times(self, zone):
        frame = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=8, freq="D", tz=zone).as_unit("us")})
        edges = [pd.Timestamp(f"2020-01-{day}", tz=zone) for day in ("01", "04", "09")]
        wanted = frame.dprisk.k_anonymity("t", generalize={"t": edges})
        arrow = pa.Table.from_pandas(frame)
        for data in (arrow, pl.from_arrow(arrow)):
            found = pdrisk.Dataset(data).k_anonymity("t", generalize={"t": edges})
            assert found.to_dict() == wanted.to_dict()
