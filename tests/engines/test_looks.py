"""Order statistics that are found by counting in cells are those of the sorted records."""

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._core.universe import Universe
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.cell_search import Looked, counted_in

UNIVERSE = Universe(-1.0, 1e9)
EDGES = [0.0, -0.0, 5e-324, 1e-300, 2.0**-40, 1.0, np.nextafter(1.0, 2.0), -1.0, 1e9, -7.0, 1e300, np.inf, -np.inf]


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE people (x DOUBLE)")
        yield con


def counting(con):
    return lambda looks: con.execute(counted_in(looks, Dialect(), "x", UNIVERSE, "people")).fetchnumpy()


@given(
    values=st.lists(st.sampled_from([*EDGES, None, np.nan]) | st.floats(0, 10, width=32), max_size=40),
    asked=st.lists(st.integers(-1, 42), min_size=1),
)
def test_every_rank(con, values, asked):
    con.execute("DELETE FROM people")
    con.execute("INSERT INTO people SELECT unnest(?::DOUBLE[])", [values])
    records = np.sort([np.clip(x, UNIVERSE.lo, UNIVERSE.hi) for x in values if x is not None and x == x])
    ranks = np.array(asked)
    looked = Looked.of(counting(con), UNIVERSE, len(records), ranks)
    inside = ranks[(ranks >= 1) & (ranks <= len(records))]
    assert looked.at(inside).tolist() == [records[rank - 1] for rank in inside]


def test_records_that_change_meanwhile_are_noticed(con):
    con.execute("DELETE FROM people")
    con.execute("INSERT INTO people SELECT i / 1e9 FROM range(1000) AS t(i)")  # all in one cell
    seen = counting(con)

    def changing(looks):
        found = seen(looks)
        con.execute("DELETE FROM people WHERE x > 9e-7")
        return found

    with pytest.raises(RuntimeError, match="changed while they were read"):
        Looked.of(changing, UNIVERSE, 1000, np.array([500]))
