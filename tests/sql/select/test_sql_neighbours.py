"""One record more changes what a query makes of no other record, whatever dtype pandas infers then."""

import datetime
import itertools
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BIG = 2**53 + 1
NUMBERS = [0, 1, 2, 3, -3, 40, 127, 128, 255, 1000, -(2**31), 2**31, 2**53 - 1, BIG, -BIG, 2**62, 2**63 - 1, -(2**63)]
COMPARED = ["0", "3", "-3", "2.5", "40.0", "1e300", f"{BIG}", "9223372036854775807", "-9223372036854775808"]
COMPARED += ["9223372036854775808", "0.1", "123456789012345678.9"]
OPERATORS = ["=", "<>", "<", ">=", "IS DISTINCT FROM"]
VALUES = [
    *(f"x {sign} {number}" for sign in ("+", "-", "*", "//", "%", "/", "^") for number in ("3", "-7", "0", "2.5")),
    *(f"{number} {sign} x" for sign in ("+", "-", "*", "//", "%", "/") for number in ("7", f"{BIG}", "0.5")),
    f"x * {BIG}", "x * 9223372036854775807", "x * x", "x * x - x", "x - 1 + 1", "x // 10 * 10", "-x", "+x", "-(-x)",
    "(x * 3 + 1) % 7", "x * 1000000007 % 10", "x - x * 1.0", "CASE WHEN x > 2 THEN x ELSE 0.5 END", "COALESCE(x, 7)",
    "CASE WHEN x // 2 * 2 = x THEN x ELSE -x END", "NULLIF(x, 3)", "IF(x > 0, x, NULL)", "greatest(x, 5, x * 2)",
    "least(x, 2.5)", "round(x, 1)", "round(x / 7, 2)", "pow(x, 2)", "mod(x, 10)", "fmod(x, 10)", "atan2(x, 2)",
    "length(left('abcdefgh', x))", "length(substr('abcdefgh', x, 2))",
    *(f"TRY_CAST(x AS {to})" for to in (
        "TINYINT", "UTINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "BOOLEAN",
        "DECIMAL(5,1)", "DECIMAL(38,0)", "VARCHAR", "DATE")),
    *(f"CAST(x AS {to})" for to in ("INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "VARCHAR")),
    *(f"{name}(x)" for name, forms in FUNCTIONS.items() if name.isalpha() for form in forms
      if form.arguments == "n" and form.result == NUMBER),
]  # fmt: skip
CONDITIONS = [
    *(f"x {operator} {number}" for operator, number in itertools.product(OPERATORS, COMPARED)),
    *(f"x * {BIG} {operator} {3 * BIG}" for operator in OPERATORS),
    "x * 9223372036854775807 < 0", "x + 9223372036854775807 > 0", "x IN (3, 2.5, 9007199254740993)", "x NOT IN (3, 40)",
    "x BETWEEN -3 AND 9007199254740993", "x IS NULL", "x = y", "x < y", "x IS NOT DISTINCT FROM y", "x + y = 4",
    "x // 2 = y", "x % 2 = 1 AND NOT x < 3", "TRY_CAST(x AS VARCHAR) = '40'", "CAST(x AS VARCHAR) < '5'",
    "x || '' = '40'", "concat(x, 'a') = '40a'", "x = '40'", "x LIKE '4%'", "isnan(x)", "isfinite(x * 1e300)",
    "length(TRY_CAST(x AS VARCHAR)) = 2", "COALESCE(x, 0) = 0", "CASE x WHEN 3 THEN true WHEN 40 THEN false END",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


Found = dict[str, list[float] | str]


def rows_of(frame: pd.DataFrame, expressions: list[str], kept: int, before: Found | None = None) -> Found:
    """For each expression what becomes of each of the first records, or why it is refused."""
    names = [str(at) for at in range(kept)]
    frame = frame.assign(row=pd.Series([str(at) for at in range(len(frame))], dtype="string", index=frame.index))

    def asked(some: list[str]) -> Found:
        try:
            answer = pdrisk.sql(
                f"SELECT {', '.join(some)} FROM t GROUP BY row", eps=1, keys=names, t=frame, mechanism="laplace"
            )
        except pdrisk.ParameterError as error:
            if len(some) == 1:
                return {some[0]: str(error)}
            return asked(some[: len(some) // 2]) | asked(some[len(some) // 2 :])
        return {one: answer.iloc[:, at].tolist() for at, one in enumerate(some)}

    if before is None:
        return asked(expressions)
    found = asked([one for one in expressions if isinstance(before[one], list)])
    return found | {name: said for one in expressions if one not in found for name, said in asked([one]).items()}


def released() -> list[str]:
    """Every kind of place in which a query looks at a record."""
    return [
        *(f"COUNT(*) FILTER (WHERE {condition})" for condition in CONDITIONS),
        *(f"dp_sum({value}, lo := -1000, hi := 1000)" for value in VALUES),
        *(f"COUNT({value})" for value in VALUES[::3]),
    ]


def longer(values: list[object], new: object, dtype: str) -> pd.Series:
    """The column with one record more, as pandas makes it."""
    with np.errstate(all="ignore"):
        return pd.concat([pd.Series(values, dtype=dtype), pd.Series([new], dtype=None)], ignore_index=True)


NEW = {
    "missing": None,
    "NaN": np.nan,
    "a float": 2.5,
    "a huge number": 2**64,
    "one too many": 2**63,
    "of 1e300": 10**300,
}
TYPES = ["int8", "int32", "int64", "uint8", "uint64"]


class TestWholeNumbers:
    """A column of whole numbers becomes one of floats or objects by one record: nothing else changes."""

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", TYPES)
    @pytest.mark.filterwarnings("ignore::FutureWarning")
    def test_one_record_more(self, dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = [number for number in NUMBERS if low <= number <= high]
        other = pd.Series(range(len(values) + 1), dtype="Float64")
        before = pd.DataFrame({"x": pd.Series(values, dtype=dtype), "y": other[:-1]})
        expected = rows_of(before, released(), len(values))
        assert sum(isinstance(found, list) for found in expected.values()) > 150  # most are accepted
        for new in NEW.values() if dtype == "int64" else (None, 2**64):
            after = pd.DataFrame({"x": longer(values, new, dtype), "y": other})
            assert rows_of(after, released(), len(values), expected) == expected

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("group", ["x", "x * 3", "x // 10 * 10", "x - 1", "x % 7", "CASE WHEN x > 3 THEN x END"])
    @pytest.mark.parametrize("new", NEW.values(), ids=NEW.keys())
    def test_groups(self, group, new):
        keys = [-3, 0, 1, 2, 3, 9, 30, 40, 120, 2**53 - 1, 2**53, 2**62]
        query = f"SELECT {group} AS k, COUNT(*) FILTER (WHERE old) AS n FROM t GROUP BY k"
        after = pd.DataFrame({"x": longer(NUMBERS, new, "int64")})
        before = pd.DataFrame({"x": NUMBERS})
        answers = [
            pdrisk.sql(query, eps=1, keys=keys, t=frame.assign(old=np.arange(len(frame)) < len(NUMBERS)))
            for frame in (before, after)
        ]
        assert answers[0]["n"].sum() > 2
        assert answers[0].equals(answers[1])

    @pytest.mark.parametrize("new", NEW.values(), ids=NEW.keys())
    def test_missing_codes(self, new):
        values = [5, -1, 99, 40, 127]
        found = []
        for column in (pd.Series(values), longer(values, new, "int64")):
            frame = pd.DataFrame({"x": column}).dprisk.declare(missing={"x": [-1, 99, 2.5]})
            asked = ["COUNT(x)", "COUNT(*) FILTER (WHERE x < 50)", "dp_sum(x * 2, lo := 0, hi := 99)"]
            found.append(rows_of(frame, asked, len(values)))
        assert found[0] == found[1]
        assert found[0]["COUNT(x)"] == [1, 0, 0, 1, 1]

    def test_the_example(self):
        frame = pd.DataFrame({"age": [40] * 500})
        more = pd.concat([frame, pd.DataFrame({"age": [None]})], ignore_index=True).astype({"age": "float64"})
        for condition, people in (("age * 9223372036854775807 < 0", 0), ("age // 3 = 13", 500), ("age % 3 = 1", 500)):
            query = f"SELECT COUNT(*) FROM t WHERE {condition}"
            assert [pdrisk.sql(query, eps=1, t=each).iat[0, 0] for each in (frame, more)] == [people] * 2


class TestFilesOfFrames:
    """A Parquet file and an Arrow table that pandas made have the dtypes that pandas inferred."""

    @pytest.mark.parametrize("kind", ["file", "arrow"])
    def test_one_record_more(self, kind, tmp_path):
        pa = pytest.importorskip("pyarrow")
        found = []
        for at, values in enumerate((NUMBERS, [*NUMBERS, None])):
            frame = pd.DataFrame({"x": values, "row": [str(row) for row in range(len(values))]})
            path = str(tmp_path / f"{at}.parquet")
            frame.to_parquet(path)
            table = path if kind == "file" else pa.Table.from_pandas(frame)
            query = f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE {c})' for c in CONDITIONS[:40])} FROM t GROUP BY row"
            keys = [str(row) for row in range(len(NUMBERS))]
            found.append(pdrisk.sql(query, eps=1, keys=keys, t=table).to_numpy().tolist())
        assert found[0] == found[1]


class TestOtherColumns:
    """Nor does one record of another kind of column."""

    COLUMNS: ClassVar = {
        "truth values": ([True, False] * 4, ["x", "NOT x", "x = true", "x IS NULL", "TRY_CAST(x AS DOUBLE) = 1"]),
        "text": (["a", "b", "40", "4.5"] * 2, ["x = 'a'", "x < 'b'", "lower(x) = 'a'", "TRY_CAST(x AS DOUBLE) = 40"]),
        "floats": ([1.5, 2.0, 40.0, -3.25], ["x = 40", "x // 2 = 20", "x % 2 = 0", "TRY_CAST(x AS BIGINT) = 2"]),
        "objects": ([Decimal("1.5"), Decimal(2), Decimal("4.5")], ["x = 4.5", "TRY_CAST(x AS BIGINT) = 2", "x < 2"]),
        "days": ([datetime.datetime(2020, 1, day) for day in (1, 2, 3)], ["x > '2020-01-01'", "year(x) = 2020"]),
        "categories": (pd.Categorical(["a", "b", "a"]), ["x = 'a'", "x < 'b'", "x IN ('a', 'c')"]),
        "categories of numbers": (pd.Categorical([1, 3, 1]), ["x = 1", "x < 3", "x * 2 = 6", "x // 2 = 0"]),
    }  # fmt: skip
    TEXT: ClassVar = {  # what an object column is read as differs with its values, so it is not cast
        "mixed": [True, False, "a", 40, 4.5, datetime.date(2020, 1, 1), Decimal("4.50")],
        "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
        "texts": ["a", "40"],
    }

    @pytest.mark.parametrize("name", COLUMNS)
    def test_a_missing_value(self, name):
        values, conditions = self.COLUMNS[name]
        asked = [f"COUNT(*) FILTER (WHERE {condition})" for condition in conditions]
        column = pd.Series(values)
        before = rows_of(pd.DataFrame({"x": column}), asked, len(column))
        after = rows_of(pd.DataFrame({"x": pd.Series([*values, None])}), asked, len(column))
        if name == "text" and pd.Series(["a"]).dtype == object:  # of pandas 2
            assert "Convert the column before" in before.pop(asked[-1])
            assert "Convert the column before" in after.pop(asked[-1])
        if not name.startswith("categories"):
            assert before == after
        elif name == "categories":
            more = pd.Series(pd.Categorical([*values, "spy"]))
            assert before == rows_of(pd.DataFrame({"x": more}), asked, len(column))
        else:
            for one in (2, 2.5, None):
                more = pd.Series(pd.Categorical([*values, one]))
                assert before == rows_of(pd.DataFrame({"x": more}), asked, len(column))
        assert all(isinstance(found, list) for found in before.values())

    @pytest.mark.parametrize("to", ["DOUBLE", "BIGINT", "DATE", "BOOLEAN", "VARCHAR"])
    @pytest.mark.parametrize("values", TEXT.values(), ids=TEXT.keys())
    def test_objects_are_not_cast(self, values, to):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        for asked in (f"TRY_CAST(x AS {to})", f"TRY_CAST(lower(x) AS {to})", f"TRY_CAST(COALESCE(x, 'a') AS {to})"):
            with pytest.raises(pdrisk.ParameterError, match=r"Python objects.*Convert the column before"):
                pdrisk.sql(f"SELECT COUNT({asked}) FROM t", eps=1, t=frame)
        assert pdrisk.sql("SELECT COUNT(x) FROM t", eps=1, t=frame).iat[0, 0] == len(values)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("column", ["number", "truth", "day", "moment", "zoned", "span"])
    @pytest.mark.parametrize(
        "cast", ["TRY_CAST({} AS VARCHAR)", "CAST({} AS VARCHAR)", "{}::TEXT", "TRY_CAST({} AS STRING)"]
    )
    def test_nothing_but_text_is_cast_to_text(self, column, cast, con):
        with pytest.raises(pdrisk.ParameterError, match="VARCHAR is refused: how they are written depends on"):
            pdrisk.sql(f"SELECT COUNT(*) FROM t WHERE {cast.format(column)} = '40'", con, eps=1)

    @pytest.fixture
    def con(self):
        import duckdb

        con = duckdb.connect()
        con.execute("""CREATE TABLE t AS SELECT CAST(40 AS DOUBLE) AS number, true AS truth, DATE '2020-01-01' AS day,
            TIMESTAMP '2020-01-01' AS moment, TIMESTAMPTZ '2020-01-01 00:00:00+00' AS zoned, INTERVAL 1 DAY AS span""")
        return con

    def test_what_is_noisy_can_be_written_as_text(self, con):
        answer = pdrisk.sql("SELECT CAST(COUNT(*) AS VARCHAR) AS n FROM t", con, eps=1)
        assert answer["n"].tolist() == ["1"]
