"""A Parquet file is what its frame is, also where Parquet keeps bare numbers for what is none."""

import base64
import datetime
import random
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pdrisk
from pdrisk._sql.syntax.pieces import quoted
from sql_people import refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SPANS = [datetime.timedelta(days=days) for days in (1, 2, 3)]
DAYS = pd.Series(SPANS, dtype="timedelta64[ns]")
MONTHS = pd.Series(pd.period_range("2020-01", periods=3, freq="M"))


def arrow(values, of: pa.DataType) -> pa.Table:
    return pa.table({"x": pa.array(values, of)})


def extended(of: pa.ExtensionType, values) -> pa.Table:
    return pa.table({"x": pa.ExtensionArray.from_storage(of, pa.array(values, of.storage_type))})


FRAMES = {
    **{f"pandas {unit}": pd.DataFrame({"x": DAYS.astype(f"timedelta64[{unit}]")}) for unit in ("s", "ms", "us", "ns")},
    "pandas with gaps": pd.DataFrame({"x": DAYS.where([True, False, True])}),
    "pandas on Arrow": pd.DataFrame({"x": DAYS.astype(pd.ArrowDtype(pa.duration("us")))}),
    "categories": pd.DataFrame({"x": DAYS.astype("category")}),
    **{f"Arrow {unit}": arrow(SPANS, pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "Arrow dictionary": pa.table({"x": pa.array(SPANS, pa.duration("ns")).dictionary_encode()}),
    **{f"Polars {unit}": pl.DataFrame({"x": pl.Series(SPANS, dtype=pl.Duration(unit))}) for unit in ("ms", "us", "ns")},
    # what is a number, or kept as what it is
    "categories of numbers": pd.DataFrame({"x": pd.Series([1, 2, 3]).astype("category")}),
    "a number too large for a float": pd.DataFrame({"x": np.array([1, 2**64 - 1, 3], dtype="uint64")}),
    "decimals": arrow([Decimal("1.5"), Decimal("2.25"), None], pa.decimal128(20, 3)),
    "nullable": pd.DataFrame({"x": pd.array([1, None, 3], "Int64")}),
    "half floats": pd.DataFrame({"x": np.array([1, 2, 3], dtype="float16")}),
    "zoned": pd.DataFrame({"x": pd.date_range("2020", periods=3, tz="Europe/Berlin")}),
    "dates": arrow([datetime.date(2020, 1, day) for day in (1, 2, 3)], pa.date32()),
    "Arrow periods": pa.Table.from_pandas(pd.DataFrame({"x": MONTHS})),
    **({"Arrow bytes of truth": extended(pa.bool8(), [1, 0, None])} if hasattr(pa, "bool8") else {}),
}
QUERIES = {
    "SELECT SUM(x) / COUNT(x) FROM t": {"bounds": (0, 100)},
    "SELECT MEDIAN(y) FROM (SELECT x AS y FROM t)": {"bounds": (0, 100)},
    "SELECT AVG(x) FROM (SELECT TRY_CAST(x AS DOUBLE) AS x FROM t)": {"bounds": (0, 100)},
    "SELECT COUNT(x), COUNT(*) FROM t": {},
    "SELECT COUNT(*) FROM t WHERE x > 2": {},
    "SELECT COUNT(*) FROM (SELECT * FROM t) WHERE x IN (1, 2)": {},
    "SELECT COUNT(*) FILTER (x IS NULL) FROM t": {},
    "SELECT COUNT(*) FROM t WHERE x = true": {},
    "SELECT COUNT(*) FROM t WHERE CAST(x AS VARCHAR) = '1'": {},
    "SELECT COUNT(*) FROM t WHERE COALESCE(x, 0) > 0": {},
    "SELECT x, COUNT(*) FROM t GROUP BY x": {"keys": [1, 2]},
    "SELECT COUNT(*) FROM t GROUP BY x": {"keys": "observed"},
}


def written(frame, path) -> str:
    """The path of a Parquet file, as whoever made the frame writes it."""
    if isinstance(frame, pd.DataFrame):
        frame.to_parquet(path)
    elif isinstance(frame, pl.DataFrame):
        frame.write_parquet(path)
    else:
        pq.write_table(frame, path)
    return str(path)


def said(query: str, t: object, con: object = None, **options: object) -> str:
    """The answer, or the refusal."""
    tables = {} if t is None else {"t": t}
    try:
        return str(pdrisk.sql(query, con, eps=1e9, **options, **tables).to_numpy().tolist())
    except pdrisk.ParameterError as error:
        return str(error)


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    without_noise(monkeypatch)


class TestFileAndFrame:
    """Both answer alike, or are refused in the same words."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("name", FRAMES)
    def test_each_query(self, name, tmp_path):
        frame = FRAMES[name]
        path = written(frame, tmp_path / "t.parquet")
        for query, options in QUERIES.items():
            assert said(query, path, **options) == said(query, frame, **options), query

    def test_durations_are_what_they_are(self, tmp_path):
        path = written(FRAMES["pandas ns"], tmp_path / "t.parquet")
        interval = "ask for a number made of them, such as epoch(x), the seconds"
        a_cast = "SELECT COUNT(*) FROM t WHERE TRY_CAST(x AS BIGINT) > 5"
        for query, why in {
            "SELECT AVG(x) FROM t": f"avg needs numbers, but its argument holds interval: {interval}.",
            "SELECT COUNT(*) FROM t WHERE x > 5": f"> compares interval with numbers: {interval}.",
            a_cast: f"no numbers can be made of interval by a cast: {interval}.",
            "SELECT COUNT(*) FROM t GROUP BY x": "GROUP BY x holds interval",
        }.items():  # fmt: skip
            assert said(query, path, bounds=(0, 100)).startswith(why)
        assert said("SELECT COUNT(x), COUNT(*) FROM t", path) == "[[3, 3]]"

    @pytest.mark.slow
    def test_a_view_on_a_file(self, tmp_path):
        path = written(FRAMES["pandas ns"], tmp_path / "t.parquet")
        con = duckdb.connect()
        con.execute(f"CREATE VIEW t AS SELECT x AS y, * FROM '{path}'")
        for query, options in QUERIES.items():
            assert said(query, None, con, **options) == said(query, path, **options), query

    @pytest.mark.parametrize("units", ["s us", "ms us", "us us", "ns us", "s ns"])
    def test_durations_of_two_units_are_compared_as_durations(self, units, tmp_path):
        first, second = units.split()
        table = pa.table({"x": pa.array(SPANS, pa.duration(first)), "y": pa.array(SPANS[::-1], pa.duration(second))})
        path = written(table, tmp_path / "t.parquet")
        for condition, expected in {"x > y": 1, "x = y": 1, "x <= y": 2}.items():
            assert said(f"SELECT COUNT(*) FROM t WHERE {condition}", path) == f"[[{expected}]]"

    def test_far_durations_stop_nothing(self, tmp_path):
        for unit in ("s", "ms", "us", "ns"):
            path = written(arrow([2**63 - 1, -(2**63) + 1, 0], pa.duration(unit)), tmp_path / f"{unit}.parquet")
            query = "SELECT COUNT(*) FROM t WHERE x IS NOT DISTINCT FROM x"
            assert said(query, path) == "[[3]]"

    def test_periods_and_what_stands_beside_them(self, tmp_path):
        frame = pd.DataFrame({"span": DAYS, "month": MONTHS, "x": [1, 2, 3]})
        path = written(frame, tmp_path / "t.parquet")
        assert "holds interval" in said("SELECT AVG(span) FROM t", path, bounds=(0, 9))
        assert "holds period: count them, or" in said("SELECT AVG(month) FROM t", path, bounds=(0, 9))
        assert "of period by a cast" in said("SELECT COUNT(TRY_CAST(month AS VARCHAR)) FROM t", path)
        assert said("SELECT SUM(x), COUNT(month) FROM t", path, bounds=(0, 9)) == "[[6.0, 3.0]]"

    def test_a_column_made_a_number_later_is_one(self, tmp_path):
        table = pa.Table.from_pandas(pd.DataFrame({"x": DAYS}))  # its pandas metadata stays
        table = table.set_column(0, "x", pa.array([1, 2, 3]))
        path = written(table, tmp_path / "t.parquet")
        assert said("SELECT SUM(x) FROM t", path, bounds=(0, 9)) == "[[6.0]]"

    @pytest.mark.slow
    def test_names_in_any_case(self, tmp_path):
        names = ["a", "A", "a_1", 'Dauer "x', "ü", "Ü"]
        for at, name in enumerate(names):
            columns = {
                each: pa.array(SPANS, pa.duration("us")) if each == name else pa.array([1, 2, 3]) for each in names
            }
            path = written(pa.table(columns), tmp_path / f"{at}.parquet")
            described = [row[0] for row in duckdb.connect().execute(f"DESCRIBE FROM '{path}'").fetchall()]
            answers = [said(f"SELECT AVG({quoted(each)}) FROM t", path, bounds=(0, 9)) for each in described]
            assert ["holds interval" in answer for answer in answers] == [each == at for each in range(len(names))]


class TestSeveralFiles:
    """Each file says for itself what its columns are."""

    @pytest.mark.parametrize(
        ("tables", "kind"),
        [
            ([arrow(SPANS, pa.duration("us"))] * 2, "interval"),
            ([arrow(SPANS, pa.duration("us")), arrow([1, 2, 3], pa.int64())], "values of several meanings"),
            ([arrow([1, 2, 3], pa.int64()), arrow(SPANS, pa.duration("us"))], "values of several meanings"),
            ([arrow(SPANS, pa.duration("us")), arrow(SPANS, pa.duration("ns"))], "values of several meanings"),
            ([arrow(SPANS, pa.duration("us")), None], "values of several meanings"),
            ([None, arrow(SPANS, pa.duration("us"))], "values of several meanings"),
        ],
        ids=["alike", "durations first", "numbers first", "units", "nothing said last", "nothing said first"],
    )
    def test_they_agree_or_nobody_knows(self, tables, kind, tmp_path):
        for at, table in enumerate(tables):
            path = tmp_path / f"{at}.parquet"
            if table is None:
                duckdb.connect().execute(f"COPY (SELECT i AS x FROM range(3) r(i)) TO '{path}'")
            else:
                pq.write_table(table, path)
        files = str(tmp_path / "*.parquet")
        assert f"argument holds {kind}" in said("SELECT AVG(x) FROM t", files, bounds=(0, 9))
        assert f"compares {kind} with numbers" in said("SELECT COUNT(*) FROM t WHERE x > 5", files)
        assert "by a cast" in said("SELECT COUNT(*) FROM t WHERE TRY_CAST(x AS DOUBLE) > 5", files)
        assert said("SELECT COUNT(x) FROM t", files) == "[[6]]"


def with_schema(words: bytes, path) -> str:
    """The path of a Parquet file with this text in place of Arrow's schema."""
    metadata = f"KV_METADATA {{'ARROW:schema': from_hex('{words.hex()}')}}"
    duckdb.connect().execute(f"COPY (SELECT i AS x FROM range(1, 4) r(i)) TO '{path}' (FORMAT parquet, {metadata})")
    return str(path)


BROKEN = "reading it fails: update pyarrow, or write the file anew without columns of unusual types."
ABSENT = 'durations, periods or truth values, and reading it needs pyarrow: pip install "pdrisk[arrow]".'
SCHEMA = pa.schema(
    {"x": pa.duration("us"), "ü": pa.list_(pa.duration("ms")), "z": pa.dictionary(pa.int8(), pa.string())},
    metadata={"pandas": "{}"},
)


class TestArrowsSchema:
    """What cannot be read is refused before anything is paid, in words that quote nothing of it."""

    @pytest.mark.parametrize(
        "words",
        [
            b"",
            b"?",
            b"AAAA",
            base64.b64encode(b"\xff" * 99),
            b"\xff",
            base64.b64encode(SCHEMA.serialize().to_pybytes())[:-8],
        ],
    )
    def test_damaged(self, words, tmp_path):
        path = with_schema(words, tmp_path / "t.parquet")
        with (
            pdrisk.Ledger(tmp_path / "ledger.db", dataset="d", eps=1) as ledger,
            pytest.raises(pdrisk.ParameterError) as caught,
        ):
            pdrisk.sql("SELECT COUNT(*) FROM t", eps=1, t=path)
        assert str(caught.value).endswith(BROKEN)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert ledger.remaining().spent == 0

    def test_the_form_before_arrow_1(self, tmp_path):
        words = base64.b64encode(SCHEMA.serialize().to_pybytes()[4:])
        path = with_schema(words, tmp_path / "t.parquet")
        assert "holds interval" in said("SELECT AVG(x) FROM t", path, bounds=(0, 9))

    @pytest.mark.slow
    def test_any_bytes_are_read_or_refused(self, tmp_path):
        message, chance = SCHEMA.serialize().to_pybytes(), random.Random(1)
        for _ in range(60):
            changed = bytearray(message[: chance.choice([len(message), chance.randrange(len(message))])])
            for _ in range(min(3, len(changed))):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            answer = said("SELECT COUNT(x) FROM t", with_schema(base64.b64encode(changed), tmp_path / "t.parquet"))
            assert answer == "[[3]]" or answer.endswith(BROKEN)

    def test_an_extension_type_that_pyarrow_does_not_know(self, tmp_path):
        path = written(FRAMES["Arrow periods"], tmp_path / "t.parquet")
        pa.unregister_extension_type("pandas.period")  # which pandas registers when it first writes one
        try:
            assert "holds period" in said("SELECT AVG(x) FROM t", path, bounds=(0, 9))
        finally:
            pa.register_extension_type(FRAMES["Arrow periods"].schema.field("x").type)

    def test_an_extension_type_that_fails(self, tmp_path):
        metadata = {"ARROW:extension:name": "pandas.period", "ARROW:extension:metadata": "secret"}  # is no JSON
        schema = pa.schema([pa.field("x", pa.int64(), metadata=metadata)])
        pd.DataFrame({"x": MONTHS}).to_parquet(tmp_path / "other.parquet")  # pandas registers its types
        path = with_schema(base64.b64encode(schema.serialize().to_pybytes()), tmp_path / "t.parquet")
        assert said("SELECT COUNT(x) FROM t", path).endswith(BROKEN)


class TestWithoutPyarrow:
    """No file is read as bare numbers because a library is missing."""

    @pytest.fixture(autouse=True)
    def missing(self, monkeypatch, exact):
        monkeypatch.setitem(sys.modules, "pyarrow", None)

    @pytest.mark.parametrize("name", ["pandas ns", "Arrow periods", "Polars us", "nullable"])
    def test_whole_numbers_need_it(self, name, tmp_path):
        with pytest.MonkeyPatch.context() as with_it:
            with_it.setitem(sys.modules, "pyarrow", pa)
            path = written(FRAMES[name], tmp_path / "t.parquet")
        assert said("SELECT COUNT(x) FROM t", path).endswith(ABSENT)

    def test_other_columns_do_not(self, tmp_path):
        with pytest.MonkeyPatch.context() as with_it:
            with_it.setitem(sys.modules, "pyarrow", pa)
            frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "name": ["a", "b", "c"]})
            path = written(frame.dprisk.declare(bounds={"x": (0, 9)}), tmp_path / "t.parquet")
        assert said("SELECT SUM(x) FROM t", path) == "[[7.5]]"  # by the bounds that travel with the file

    def test_nor_do_files_of_duckdb(self, tmp_path):
        path = str(tmp_path / "t.parquet")
        duckdb.connect().execute(f"COPY (SELECT i AS x FROM range(3) r(i)) TO '{path}'")
        assert said("SELECT SUM(x) FROM t", path, bounds=(0, 9)) == "[[3.0]]"


class TestOtherFiles:
    """Only Parquet is read, and the error says what to do with anything else."""

    @pytest.mark.parametrize("name", ["s.csv", "S.CSV", "s.csv.gz", "s.xlsx", "s.feather", "s.dta", "s.sav", "*.csv"])
    def test_advice(self, name, tmp_path, monkeypatch):
        (tmp_path / name.replace("*", "s")).write_text("x\n1\n")
        error = str(refusal(monkeypatch, "SELECT COUNT(*) FROM s", eps=1, s=tmp_path / name))
        ending = "." + name.lower().rpartition(".")[2]
        assert error.startswith(f"DuckDB cannot open this {ending} file as Parquet (")
        assert "read it with pandas (such as pd.read_csv) and pass the frame, or load it into a table" in error

    @pytest.mark.parametrize("name", ["s.duckdb", "s.db"])
    def test_a_database_is_passed_as_a_connection(self, name, tmp_path, monkeypatch):
        duckdb.connect(tmp_path / name).close()
        error = str(refusal(monkeypatch, "SELECT COUNT(*) FROM s", eps=1, s=tmp_path / name))
        assert error.endswith("pass a database as a connection, con=duckdb.connect(path).")

    def test_parquet_of_any_ending_is_read(self, tmp_path):
        for name in ("t.csv", "t", "t.parquet.zst"):
            assert said("SELECT COUNT(*) FROM t", written(arrow([1, 2], pa.int8()), tmp_path / name)) == "[[2]]"


def test_a_result_still_being_read(monkeypatch):
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS FROM range(100000)")
    relation = con.sql("FROM t")
    stream = (
        relation.to_arrow_reader(1000) if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch(1000)
    )
    for value in (stream, relation):
        error = str(refusal(monkeypatch, "SELECT COUNT(*) FROM t", eps=1, t=value))
        assert "read_all() of a reader, to_arrow_table() or df() of a relation" in error
    monkeypatch.undo()
    without_noise(monkeypatch)
    busy = said("SELECT COUNT(*) FROM t", None, con)
    if busy != "[[100000]]":  # DuckDB 1 ends the stream instead
        assert (
            "a result of it is still being read. Read that to its end (read_all() of a reader), or pass con.cursor()"
            in busy
        )
        assert said("SELECT COUNT(*) FROM t", None, con.cursor()) == "[[100000]]"
        stream.read_all()
    assert said("SELECT COUNT(*) FROM t", None, con) == "[[100000]]"
