"""A condition means one thing: in query strings, Polars expressions and SQL, on every engine and for every dtype.

`three_valued.truth` is the definition; NULL, NaN, None, NaT, NA and declared codes are all missing.
"""

import random
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pdrisk
from functions_on_duckdb import without_noise
from pdrisk._model.rowwise import judged
from postgres_databases import connected, database, needs_server
from three_valued import truth

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
EPS = {"eps": 1}
NAN = float("nan")
X, Y = [None, NAN, 0.0, -0.0, 1.0, 2.5, 9.0, -1.0], [None, 0, 1, 9, -1]
S, B = [None, "a", "b", ""], [None, True, False]
RECORDS = [{"x": x, "y": y, "s": s, "b": b} for x in X for y in Y for s in S[:2] for b in B]
RECORDS += [{"x": x, "y": y, "s": s, "b": b} for x in X[:4] for y in Y[:2] for s in S[2:] for b in B]


def column(name):
    return [record[name] for record in RECORDS]


def of_dtypes(x="float64", y="float64", s="object", b="object"):
    """A frame with these dtypes; missing values in their own forms."""
    frame = pd.DataFrame(
        {
            "x": pd.Series(column("x"), dtype="float64").astype(x),
            "y": pd.Series(pd.array(column("y"), dtype="Int64")).astype(y),
            "s": pd.Series(column("s"), dtype=s),
            "b": pd.Series(pd.array(column("b"), dtype="boolean")).astype(b),
        }
    )
    if x == "object":
        frame["x"] = pd.Series([*column("x")], dtype=object)
    if b == "object":
        frame["b"] = pd.Series(column("b"), dtype=object)
    return frame


def arrow():
    kinds = {"x": pa.float64(), "y": pa.int64(), "s": pa.string(), "b": pa.bool_()}
    return pa.table({name: pa.array(column(name), kind) for name, kind in kinds.items()})


def coded():
    """Missing values as declared codes."""
    frame = of_dtypes()
    codes = {"x": -99.0, "y": -9, "s": "?"}
    filled = frame.assign(**{name: frame[name].where(frame[name].notna(), code) for name, code in codes.items()})
    filled["y"] = filled["y"].astype("int64")
    return pdrisk.Dataset(filled, missing={name: [code] for name, code in codes.items()})


FRAMES = {
    "numpy": lambda: of_dtypes(),
    "numpy, str": lambda: of_dtypes(s="str", b="boolean"),
    "nullable": lambda: of_dtypes("Float64", "Int64", "string", "boolean"),
    "narrow": lambda: of_dtypes("float32", "Int8", "category", "bool[pyarrow]"),
    "objects": lambda: of_dtypes("object", "object"),
    "Arrow": lambda: of_dtypes("double[pyarrow]", "int64[pyarrow]", "string[pyarrow]", "bool[pyarrow]"),
}
TABLES = {
    **{name: lambda made=made: pdrisk.Dataset(made()) for name, made in FRAMES.items()},
    "codes": coded,
    "Polars": lambda: pdrisk.Dataset(pl.from_arrow(arrow())),
    "Arrow table": lambda: pdrisk.Dataset(arrow()),
}


def constant(draw):
    return draw.choice(["0", "1", "2.5", "9", "-1"])


def atom(draw):
    """A condition in the words of a query string, and in SQL."""
    kind = draw.randrange(10)
    number = draw.choice(["x", "y", "(x + y)", "(x - 1)", "(y * x)"])
    symbol = draw.choice(["<", "<=", ">", ">=", "==", "!="])
    in_sql = {"==": "=", "!=": "<>"}.get(symbol, symbol)
    if kind <= 3:
        other = constant(draw) if kind < 3 else draw.choice(["x", "y"])
        return f"({number} {symbol} {other})", f"({number} {in_sql} {other})"
    if kind == 4:
        listed, word = ", ".join(constant(draw) for _ in range(draw.randint(1, 3))), draw.choice(["in", "not in"])
        return f"({number} {word} [{listed}])", f"({number} {word.upper()} ({listed}))"
    if kind == 5:
        low, high = constant(draw), constant(draw)
        return f"({low} <= x <= {high})", f"(x BETWEEN {low} AND {high})"
    if kind == 6:
        text = draw.choice(["a", "b", "", "c"])
        symbol = draw.choice(["==", "!="])
        return f"(s {symbol} '{text}')", f"(s {'=' if symbol == '==' else '<>'} '{text}')"
    if kind == 7:
        return "b", "b"
    if kind == 8:
        name, like = draw.choice([("contains", "%{}%"), ("startswith", "{}%"), ("endswith", "%{}")])
        text = draw.choice(["a", "b", "ab"])
        return f"s.str.{name}('{text}')", f"(s LIKE '{like.format(text)}')"
    name, word = draw.choice("xysb"), draw.choice(["isna", "notna"])
    return f"{name}.{word}()", f"({name} IS {'NOT ' * (word == 'notna')}NULL)"


def condition(draw, depth=2):
    if depth == 0 or draw.random() < 0.3:
        return atom(draw)
    parts = [condition(draw, depth - 1) for _ in range(2)]
    word = draw.choice(["and", "or", "not"])
    if word == "not":
        return f"(not {parts[0][0]})", f"(NOT {parts[0][1]})"
    return tuple(
        f"({one} {word.upper() if at else word} {other})" for at, (one, other) in enumerate(zip(*parts, strict=True))
    )


DRAWN = random.Random(29)
CONDITIONS = [
    ("x != 9", "x <> 9"), ("not x > 4", "NOT x > 4"), ("not (x > 4 and s == 'a')", "NOT (x > 4 AND s = 'a')"),
    *dict.fromkeys(condition(DRAWN) for _ in range(260)),
][:203]  # fmt: skip


class Decided(dict):
    """What the definition says of each record, by condition; found when it is asked for."""

    frame = of_dtypes("Float64", "Int64", "string", "boolean")

    def __missing__(self, text):
        rule = judged(text, self.frame, dict).rule
        found = self[text] = [truth(rule, record) for record in RECORDS]
        return found


@pytest.fixture(scope="module")
def decided():
    return Decided()


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    without_noise(monkeypatch)


def wrong(conditions, wanted, count):
    """Conditions that keep another number of records than the definition."""
    found = {text: (count(text), sum(one is True for one in wanted[text])) for text in conditions}
    return {text: numbers for text, numbers in found.items() if numbers[0] != numbers[1]}


def shares(conditions, wanted, d):
    """Proportions that are not of the records of which it is known."""
    off = {}
    for text in conditions:
        release = d.proportion(text, **EPS, curator=True) if hasattr(d, "sql") else d.proportion(text, **EPS)
        known = [one for one in wanted[text] if one is not None]
        share = sum(known) / len(known) if known else 0.5
        if (release.curator.n, release.value) != (len(known), pytest.approx(share, abs=1e-6)):
            off[text] = release.curator.n, len(known), release.value, share
    return off


SQL_OF = dict(CONDITIONS)
STRINGS = list(SQL_OF)
SOME = STRINGS[::7]


@pytest.fixture(scope="module", params=[0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(1, 5))])
def many(request):
    """A fifth of the conditions; all of them with --runslow."""
    return STRINGS[request.param :: 5]


@pytest.mark.parametrize("table", TABLES)
def test_filters_and_proportions(table, decided, many):
    d, conditions = TABLES[table](), many
    if table == "objects":  # with which nothing is computed
        orders = re.compile(r"[xy] [<>]=? [xy]")
        conditions = [text for text in many if not (orders.search(text) or any(f" {each} " in text for each in "+-*"))]
    assert not wrong(conditions, decided, lambda text: d.count(where=text, **EPS).value)
    assert not wrong(conditions[::3], decided, lambda text: d.query(text).count(**EPS).value)
    assert not shares(conditions[::3], decided, d)


def test_negation_is_what_it_says(decided):
    """A record is kept by a condition or by its negation, unless it is not known."""
    d = TABLES["numpy"]()
    for text in SOME:
        known = sum(one is not None for one in decided[text])
        assert d.count(where=text, **EPS).value + d.count(where=f"not ({text})", **EPS).value == known


def test_assigned_columns_keep_what_is_not_known(decided):
    for table in ("numpy", "nullable", "codes", "Polars"):
        d = TABLES[table]()
        for text in SOME:
            known = d.assign(c=text)
            yes, no, missing = (sum(one is value for one in decided[text]) for value in (True, False, None))
            counts = [known.count(where=where, **EPS).value for where in ("c", "not c", "c.isna()", "c + 0 == 1")]
            assert counts == [yes, no, missing, yes], (table, text)


@pytest.mark.skipif(not hasattr(pd, "col"), reason="pandas 2 has no pd.col")
def test_expressions_of_pandas_and_polars(decided):
    forms = {
        "x != 9": lambda c: c("x") != 9,
        "not x > 4": lambda c: ~(c("x") > 4),
        "not (x > 4 and s == 'a')": lambda c: ~((c("x") > 4) & (c("s") == "a")),
    }
    for text, form in forms.items():
        kept = sum(one is True for one in decided[text])
        assert TABLES["numpy"]().count(where=form(pd.col), **EPS).value == kept
        assert TABLES["Polars"]().count(where=form(pl.col), **EPS).value == kept


def people(folder=None):
    """A table in DuckDB, or a Parquet file."""
    con = duckdb.connect()
    held = arrow()  # noqa: F841 - the statement names it
    con.execute("CREATE TABLE people AS SELECT * FROM held")
    if folder is not None:
        pq.write_table(arrow(), folder / "people.parquet")
    return con


def counter(query, con=None, **frames):
    """Asks how many records a query counts, by a condition in the words of query strings."""
    return lambda text: pdrisk.sql(query.format(SQL_OF[text]), con, **EPS, **frames).iloc[0, 0]


class TestSQL:
    """The same records by the same words in SQL."""

    def test_of_a_table(self, decided, many):
        con = people()
        counts = counter("SELECT COUNT(*) FROM people WHERE {}", con)
        assert not wrong(many, decided, counts)
        d = pdrisk.Dataset((con, "people"))
        assert not wrong(many, decided, lambda text: d.count(where=text, **EPS).value)
        assert not shares(SOME, decided, d)

    @pytest.mark.parametrize("form", ["FILTER", "CASE", "subquery", "value", "NOT"])
    def test_in_other_places(self, decided, form):
        con = people()
        asked = {
            "FILTER": "SELECT COUNT(*) FILTER (WHERE {}) FROM people",
            "CASE": "SELECT COUNT(*) FROM people WHERE CASE WHEN {} THEN 1 ELSE 0 END = 1",
            "subquery": "SELECT COUNT(*) FROM (SELECT * FROM people WHERE {}) AS p",
            "value": "SELECT COUNT(*) FROM (SELECT {} AS c FROM people) AS p WHERE c",
            "NOT": "SELECT COUNT(*) FROM (SELECT {} AS c FROM people) AS p WHERE NOT (NOT c)",
        }[form]
        counts = counter(asked, con)
        assert not wrong(SOME, decided, counts)

    @pytest.mark.parametrize("frame", ["numpy", "nullable", "Arrow"])
    def test_of_frames(self, decided, frame):
        p = FRAMES[frame]()
        counts = counter("SELECT COUNT(*) FROM p WHERE {}", p=p)
        assert not wrong(SOME, decided, counts)

    def test_of_a_file(self, decided, many, tmp_path):
        people(tmp_path)
        path = str(tmp_path / "people.parquet")
        counts = counter("SELECT COUNT(*) FROM p WHERE {}", p=path)
        assert not wrong(many, decided, counts)
        d = pdrisk.Dataset(path)
        assert not wrong(many, decided, lambda text: d.count(where=text, **EPS).value)

    @pytest.mark.parametrize(
        ("condition", "kept"),
        [
            ("x IS NOT DISTINCT FROM NULL", {None, "nan"}), ("x IS DISTINCT FROM 9", {None, "nan", 0, 1, 2.5, -1}),
            ("COALESCE(x, 9) = 9", {None, "nan", 9}), ("GREATEST(x, 0) = 0", {None, "nan", 0, -1}),
            ("NULLIF(x, 9) IS NULL", {None, "nan", 9}), ("isnan(x)", {None, "nan"}),
            ("NOT isnan(x)", {0, 1, 2.5, 9, -1}), ("NOT isinf(x)", {0, 1, 2.5, 9, -1}), ("NOT isfinite(x)", set()),
            ("sign(x) = 0", {0}), ("pow(x, 0) = 1", {0, 1, 2.5, 9, -1}), ("x / 0 IS NULL", {None, "nan", 0}),
            ("x NOT BETWEEN 0 AND 2", {2.5, 9, -1}), ("TRY_CAST(x AS BOOLEAN)", {1, 2.5, 9, -1}),
            ("x = x", {0, 1, 2.5, 9, -1}), ("x NOT IN (9, y)", None), ("(x > 2) = (y > 0)", None),
            ("x = CAST('nan' AS DOUBLE)", set()), ("NOT x > CAST('nan' AS DOUBLE)", set()),
            ("x IN (1, CAST('nan' AS DOUBLE))", {1}), ("x BETWEEN 0 AND CAST('nan' AS DOUBLE)", set()),
            ("x <> CAST('nan' AS DOUBLE)", set()), ("y < CAST('nan' AS DOUBLE)", set()),
            ("COALESCE(CAST('nan' AS DOUBLE), x) > 1", {2.5, 9}), ("GREATEST(x, CAST('nan' AS DOUBLE)) > 1", {2.5, 9}),
            ("x IS DISTINCT FROM CAST('nan' AS DOUBLE)", {0, 1, 2.5, 9, -1}), ("x = $nothing", set()),
        ],
    )  # fmt: skip
    def test_what_else_reads_a_float(self, condition, kept):
        """Functions see NaN as NULL, too: a table with NULL in its place has the same answer."""
        con = people()
        con.execute("CREATE TABLE plain AS SELECT * REPLACE (CASE WHEN isnan(x) THEN NULL ELSE x END AS x) FROM people")
        options = {"params": {"nothing": NAN}} if "$" in condition else {}
        counts = [
            pdrisk.sql(f"SELECT COUNT(*) FROM {table} WHERE {condition}", con, **options, **EPS).iloc[0, 0]
            for table in ("people", "plain")
        ]
        assert counts[0] == counts[1]
        if kept is not None:
            said = ["nan" if x is not None and np.isnan(x) else x for x in column("x")]
            assert counts[0] == sum(x in kept for x in said)


# As SQL reads a quoted number beside numbers: as the number.
QUOTED = [
    "y = '9'", "'9' = y", "y <> '-1'", "x > '+1'", "y IN ('9', '-1')", "y NOT IN (0, '9')", "x BETWEEN '0' AND '9'",
    "y + 1 = '10'", "y IS DISTINCT FROM '9'", "CASE y WHEN '9' THEN true ELSE false END", "y = '9' AND s <> '9'",
]  # fmt: skip


@pytest.mark.parametrize("condition", QUOTED)
def test_a_quoted_number_is_one_beside_numbers(condition):
    con = people()
    con.execute("CREATE TABLE plain AS SELECT * REPLACE (CASE WHEN isnan(x) THEN NULL ELSE x END AS x) FROM people")
    query = f"SELECT COUNT(*) FROM plain WHERE {condition}"
    assert pdrisk.sql(query, con, **EPS).iloc[0, 0] == con.sql(query).fetchall()[0][0] > 0
    keys = pdrisk.sql("SELECT y, COUNT(*) FROM plain WHERE y IN ('9', '0') GROUP BY y ORDER BY y", con, **EPS)
    assert keys["y"].tolist() == [0, 9]
    with_parameter = pdrisk.sql("SELECT COUNT(*) FROM plain WHERE y = $v", con, params={"v": "9"}, **EPS)
    assert with_parameter.iloc[0, 0] == con.sql("SELECT COUNT(*) FROM plain WHERE y = 9").fetchall()[0][0]


def test_of_a_missing_value_nobody_knows_whether_a_public_table_has_it():
    con = duckdb.connect()
    con.execute("CREATE TABLE people (pid INTEGER, x DOUBLE); CREATE TABLE codes AS SELECT 9.0 AS v")
    con.executemany("INSERT INTO people VALUES (?, ?)", [(1, NAN), (2, None), (3, 9), (4, 1)])
    query = "SELECT COUNT(DISTINCT pid) FROM people WHERE x {} (SELECT v FROM codes)"
    for word in ("IN", "NOT IN"):
        assert pdrisk.sql(query.format(word), con, person="pid", public=["codes"], **EPS).iloc[0, 0] == 1


def test_floats_may_be_nested_as_deep_as_before():
    con, value = people(), "x"
    for _ in range(12):
        value = f"COALESCE(GREATEST(LEAST({value}, 10.5), 0.5), 0.5)"
    assert pdrisk.sql(f"SELECT COUNT(*) FROM people WHERE {value} > 1", con, **EPS).iloc[0, 0] == sum(
        x is None or np.isnan(x) or x > 1  # LEAST and GREATEST leave missing values out
        for x in column("x")
    )


@needs_server
def test_on_postgres(decided, many):
    types = {"x": "double precision", "y": "bigint", "s": "text", "b": "boolean"}
    with database() as url, connected(url) as connection:
        connection.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
        with connection.cursor() as cursor:
            rows = [[*record.values()] for record in RECORDS]
            cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s)", rows)
        counts = counter("SELECT COUNT(*) FROM people WHERE {}", connection)
        assert not wrong(many, decided, counts)
        con = people()
        for each in (each for each in QUOTED if "x" not in each):
            query = f"SELECT COUNT(*) FROM people WHERE {each}"
            assert pdrisk.sql(query, connection, **EPS).iloc[0, 0] == con.sql(query).fetchall()[0][0]
        d = pdrisk.Dataset((connection, "people"))
        assert not wrong(many, decided, lambda text: d.count(where=text, **EPS).value)
        assert not shares(SOME, decided, d)
