"""Arrow streams of any library: a Dataset reads one at once, to its end, and knows what is missing in every type."""

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest

import pdrisk
from pdrisk import ColumnTypeError, Dataset, QueryFailedError

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
DAY, NOON = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
#: As R has them: the second of each four is missing.
COLUMNS = {
    "whole": pa.array([38, None, 20, 40] * 50, pa.int32()),
    "number": pa.array([38.5, None, 20.0, 40.0] * 50),
    "text": pa.array(["f", None, "m", "m"] * 50),
    "factor": pa.array(["a", None, "b", "a"] * 50).dictionary_encode(),
    "truth": pa.array([True, None, False, True] * 50),
    "day": pa.array([DAY, None, DAY, DAY] * 50),
    "time": pa.array([NOON, None, NOON, NOON] * 50, pa.timestamp("us", "UTC")),
}
PEOPLE = pa.table(COLUMNS)


class Stream:
    """Table of a library that pdrisk does not know: it has nothing but the protocol, and can be read once."""

    def __init__(self, table, reader=None):
        self.reader = table.to_reader(max_chunksize=64) if reader is None else reader

    def __arrow_c_stream__(self, requested_schema=None):
        reader, self.reader = self.reader, None
        return reader.__arrow_c_stream__(requested_schema)


STREAMS = {"foreign": Stream, "reader": lambda table: table.to_reader(max_chunksize=64)}


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
class TestRead:
    def test_what_is_missing(self, make):
        people = Dataset(make(PEOPLE))
        for name in COLUMNS:
            assert people.count(name, eps=1).curator.n == 150, name
            assert people.count(eps=1, where=f"{name}.isna()").curator.n == 50, name

    def test_answers_are_those_of_the_table(self, make):
        bounds = {"whole": (0, 80), "number": (0, 80)}
        ask = [
            lambda d: d.mean("whole", eps=1).curator.local_sensitivity,
            lambda d: d.proportion("truth", eps=1).curator.n,
            lambda d: d.count(eps=1, by="factor", keys=["a", "b"], curator=True)["n"].tolist(),
            lambda d: d.sql("SELECT text, COUNT(*) AS n FROM data GROUP BY text", eps=10**4, keys={"text": ["f", "m"]})[
                "n"
            ].tolist(),
        ]
        one, other = Dataset(make(PEOPLE), bounds=bounds), Dataset(PEOPLE, bounds=bounds)
        assert [each(one) for each in ask] == [each(other) for each in ask]

    def test_one_of_several_tables(self, make):
        people = Dataset({"people": make(PEOPLE), "codes": pa.table({"factor": ["a", "b"]})}, public=["codes"])
        assert people.sql("SELECT COUNT(*) AS n FROM people", eps=10**4)["n"].tolist() == [200]

    def test_a_public_table_to_join(self, make):
        people = Dataset(pd.DataFrame({"pid": range(90), "code": ["a", "b", "c"] * 30}), person="pid")
        joined = people.join(make(pa.table({"code": ["a", "b"], "chapter": ["I", "II"]})), on="code")
        assert joined.count(eps=1).curator.n == 60


def test_a_ledger_pays(tmp_path):
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", eps=1)
    people = Dataset(Stream(PEOPLE), bounds={"whole": (0, 80)}, ledger=ledger)
    first, again = (people.mean("whole", eps=0.5) for _ in range(2))
    assert first.value == again.value and ledger.remaining().eps == 0.5


def test_a_stream_that_fails_tells_nothing():
    def batches():
        yield PEOPLE.to_batches()[0]
        raise ValueError("row 7: Alice earns 100")

    stream = Stream(PEOPLE, pa.RecordBatchReader.from_batches(PEOPLE.schema, batches()))
    with pytest.raises(QueryFailedError) as caught:
        Dataset(stream)
    assert "Alice" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("wrong", [Stream(PEOPLE, PEOPLE["whole"]), PEOPLE["whole"]])
def test_what_is_no_table(wrong):
    with pytest.raises(ColumnTypeError, match=r"is no table|data must be a frame of pandas, .*, an Arrow stream"):
        Dataset(wrong)
