"""A Dataset answers on tables of DuckDB and Parquet files what it answers on a frame: the same curator's numbers."""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pdrisk

BOUNDS = {"age": (0, 100), "income": (0, 8000), "hours": (0, 60)}
TYPES = "pid BIGINT, age TINYINT, income DOUBLE, hours FLOAT, region VARCHAR, works BOOLEAN, day DATE, born TIMESTAMP"
DRAWN = ["value", "low", "high", "clip_low", "clip_high"]


def made_rows():
    source = np.random.default_rng(7)
    n = 600
    frame = pd.DataFrame(
        {
            "pid": source.integers(0, 150, n),
            "age": source.integers(0, 110, n),
            "income": source.normal(3000, 1500, n).round(2),
            "hours": source.normal(35, 9, n).astype(np.float32),
            "region": source.choice(["north", "South", "o'west", "", "ä"], n),
            "works": source.random(n) < 0.6,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(source.integers(0, 400, n), unit="D"),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(source.integers(0, 10**15, n), unit="us"),
        }
    ).astype({"pid": "Int64", "age": "Int8", "region": "string", "works": "boolean"})
    for column in frame.columns:
        frame.loc[source.random(n) < 0.05, column] = None
    return frame


@pytest.fixture(scope="module")
def rows():
    return made_rows()


@pytest.fixture(scope="module")
def tables(rows, tmp_path_factory):
    """The same rows as a frame, a table, a view and a file."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people ({TYPES})")
    con.register("given", rows)
    con.execute("INSERT INTO people SELECT * FROM given")
    con.execute('CREATE VIEW shown AS SELECT pid, age, income, hours, region, works, day, born AS "born" FROM people')
    path = tmp_path_factory.mktemp("files") / "people.parquet"
    con.execute(f"COPY people TO '{path}' (FORMAT parquet)")
    floats = {name: pa.array(rows[name].to_numpy()) for name in ("income", "hours")}  # with NaN, where others have null
    others = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(
        pa.table({name: floats.get(name, others[name]) for name in rows}), path.parent / "nan", row_group_size=99
    )
    return {"table": (con, "people"), "view": (con, "shown"), "file": path, "file with NaN": path.parent / "nan"}


@pytest.fixture(params=["table", "view", "file", "file with NaN"])
def both(request, rows, tables):
    """A Dataset of the table, and one of the frame with its dtypes."""
    table = pdrisk.Dataset(tables[request.param], bounds=BOUNDS)
    dtypes = table._frame.dtypes.to_dict()
    return table, pdrisk.Dataset(rows.astype(dtypes), bounds=BOUNDS)


QUESTIONS = {
    "count": lambda d, **o: d.count(eps=1, **o),
    "values": lambda d, **o: d.count("income", eps=1, **o),
    "mean": lambda d, **o: d.mean("income", eps=1, **o),
    "sum": lambda d, **o: d.sum("age", eps=1, **o),
    "median": lambda d, **o: d.median("hours", eps=1, **o),
    "var": lambda d, **o: d.var("income", eps=1, **o),
    "agg": lambda d, **o: d.agg({"income": ["mean", "std"], "age": ["count", "max"]}, eps=2, **o),
    "quantiles": lambda d, **o: d.quantile("income", q=[0.1, 0.5, 0.9], eps=1, **o),
    "describe": lambda d, **o: d.describe(["income", "age"], eps=9, **o),
    "nunique": lambda d, **o: d.nunique("region", eps=1, **o),
    "proportion": lambda d, **o: d.proportion("age >= 50 and income < 3000", eps=1, **o),
    "share": lambda d, **o: d.proportion("works", eps=1, **o),
    "corr": lambda d, **o: d.corr("age", "income", eps=1, **o),
    "hist": lambda d, **o: d.hist("income", bins=[0, 500, 1000.5, 6000], eps=1, **o),
    "even bins": lambda d, **o: d.hist("hours", bins=7, eps=1, **o),
    "value counts": lambda d, **o: d.value_counts("works", keys=[True, False], eps=1, sort=False, **o),
    "clipped": lambda d, **o: d.mean("income", eps=1, clip="private", **o),
}  # fmt: skip
WAYS = {
    "plain": {},
    "where": {"where": "income > 1000 and not (region == 'South') and day >= '2020-03-01'"},
    "by": {"by": ["region", "works"], "keys": {"region": ["o'west", "", "ä", None], "works": [True, False]}},
    "by age": {"by": "age", "keys": [20, 21, None], "where": "hours < 40"},
    "laplace": {"mechanism": "laplace"},
    "people": {"person": "pid", "per_person": "mean", "where": "pid != 3"},
}


def numbers(answer):
    """What is not drawn: the curator's numbers of a Release, or the columns of a table."""
    if isinstance(answer, pd.DataFrame):
        return answer.drop(columns=DRAWN, errors="ignore")
    own = answer.curator
    return pd.Series({name: getattr(own, name) for name in own.COLUMNS}, dtype=float)


USUAL = {"mean", "median", "agg"}
LAPLACE_CANNOT = {"corr", "clipped"}
OF_PEOPLE_ALONE = {"values", "nunique"}  # what has no one number a person
ASKED = [
    pytest.param(question, way, marks=[] if question in USUAL and way != "laplace" else pytest.mark.slow)
    for question in QUESTIONS
    for way in WAYS
    if not (way.startswith("by") and question in {"hist", "even bins", "value counts"})
    and not (way == "people" and question == "value counts")
    and not (way == "laplace" and question in LAPLACE_CANNOT)
    and not (way == "people" and question in OF_PEOPLE_ALONE)
]


@pytest.mark.parametrize(("question", "way"), ASKED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_same_numbers(both, question, way):
    options = WAYS[way]
    found, wanted = (numbers(QUESTIONS[question](each, curator=True, **options)) for each in both)
    if isinstance(found, pd.Series):
        pd.testing.assert_series_equal(found, wanted, rtol=1e-12)
    else:
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-12)


class TestFiles:
    """A folder and a pattern are one table, with the names of its folders as columns of text."""

    @pytest.fixture
    def folder(self, tables, tmp_path):
        con, _ = tables["table"]
        parts = "FORMAT parquet, PARTITION_BY (year, part)"
        con.execute(
            f"COPY (SELECT *, 2020 + pid % 2 AS year, age % 3 AS part FROM people) TO '{tmp_path}/all' ({parts})"
        )
        return tmp_path / "all"

    def test_a_folder(self, tables, folder):
        con, _ = tables["table"]
        for data in (folder, f"{folder}/**/*.parquet", f"{folder}/year=20*/*/*.parquet"):
            d = pdrisk.Dataset(data)
            table = d.count(eps=1, by=["year", "part"], keys=[("2020", "1"), ("2021", "0")], curator=True)
            wanted = "SELECT COUNT(*) FROM people WHERE pid % 2 = {} AND age % 3 = {}"
            assert table["n"].tolist() == [con.execute(wanted.format(*each)).fetchone()[0] for each in ((0, 1), (1, 0))]
            answer = d.sql("SELECT COUNT(*) AS n FROM data WHERE year = '2020'", eps=50)
            assert answer["n"][0] == con.execute("SELECT COUNT(*) FROM people WHERE pid % 2 = 0").fetchone()[0]

    def test_its_disclosure_measures(self, tables, folder):
        con, _ = tables["table"]
        sizes = con.execute("SELECT count(*) FROM people GROUP BY pid % 2, region").fetchall()
        assert pdrisk.Dataset(folder).k_anonymity(["year", "region"]).k == min(size for (size,) in sizes)

    def test_no_file(self, tmp_path):
        for data in (tmp_path, f"{tmp_path}/*.parquet"):
            with pytest.raises(pdrisk.ParameterError, match="there is no Parquet file"):
                pdrisk.Dataset(data).count(eps=1)
