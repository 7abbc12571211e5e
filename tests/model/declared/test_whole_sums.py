"""Sums of declared whole numbers are whole, exact, and never leave 64 bits, on every engine."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import pdrisk

MOST = 2**31
LARGE = pd.DataFrame({"x": np.full(5000, float(MOST)), "g": np.arange(5000) % 2})


@pytest.fixture
def exact(monkeypatch):
    """No noise."""
    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda numbers, *_: numbers)


def test_the_largest_records_add_up_exactly(exact):
    options = {"eps": 1, "bounds": (0, MOST), "step": 1}
    assert LARGE.dprisk.sum("x", **options).value == 5000 * MOST
    assert LARGE.dprisk.sum("x", by="g", keys=[0, 1], **options)["value"].tolist() == [2500 * MOST] * 2


def test_wider_bounds_are_refused_or_answered_by_laplace():
    with pytest.raises(pdrisk.ParameterError, match=r"within 2\*\*31 of zero"):
        LARGE.dprisk.sum("x", eps=1, bounds=(0, MOST + 1), step=1)
    for bounds in [(0.2, 0.8), (0.5, 1.5), (-0.4, 0.9)]:
        with pytest.raises(pdrisk.ParameterError, match="two whole numbers at least"):
            LARGE.dprisk.sum("x", eps=1, bounds=bounds, step=1)
    assert LARGE.dprisk.sum("x", eps=1, bounds=(0.5, 2.5), step=1).bounds == (1, 2)
    pandera = pytest.importorskip("pandera.pandas")
    schema = pandera.DataFrameSchema({"x": pandera.Column(int, pandera.Check.in_range(0, 2**40))})
    frame = pd.DataFrame({"x": [1, 2]}).pipe(schema.validate)
    assert frame.dprisk.sum("x", eps=1).mechanism == "laplace"


def test_a_schema_says_that_numbers_are_whole(exact):
    pandera = pytest.importorskip("pandera.pandas")
    schema = pandera.DataFrameSchema({"x": pandera.Column(int, pandera.Check.in_range(0, 90))})
    frame = pd.DataFrame({"x": [20, 41]}).pipe(schema.validate)
    release = frame.dprisk.sum("x", eps=1)
    assert (type(release.value), release.value, release.mechanism) == (int, 61, "geometric")
    assert pdrisk.sql("SELECT SUM(x) AS s FROM frame", eps=1, frame=frame)["s"].tolist() == [61]
    assert frame.dprisk.sum("x", eps=1, mechanism="laplace").mechanism == "laplace"


def test_a_sum_beyond_64_bits_is_moved_to_their_end_and_fails_nowhere():
    """As each engine does: whether a request fails must not depend on the data."""
    import duckdb

    from pdrisk._core.lattice import LARGEST_STEPS
    from pdrisk._core.summary import Needs
    from pdrisk._core.universe import Universe
    from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
    from pdrisk.engines.sql.servers.duckdb_engine import fetched
    from pdrisk.engines.sql.summary.reading import read
    from pdrisk.engines.sql.summary.summary_plan import Summarised, SummaryPlan

    part = Summarised("x", Universe(-(2.0**53), 2.0**53), Needs(whole=True, ends=True))
    source = "(SELECT 9007199254740992.0::DOUBLE AS x FROM range(3000)) AS people"
    plan = SummaryPlan(source, (), (), (), None, (part,))
    (summary,), _ = read(partial(fetched, duckdb.connect()), plan, None, DuckDBDialect())
    assert summary.whole.tolist() == [LARGEST_STEPS]
