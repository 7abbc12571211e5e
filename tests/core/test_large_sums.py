"""Sums of places of more records than 64 bits hold: one record more moves them by no more than the noise is for."""

import itertools
from fractions import Fraction
from functools import partial

import duckdb
import numpy as np
import pytest

from pdrisk._core.lattice import PLACES
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean
from pdrisk._core.summary import Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.summary.aggregates import Aggregates
from pdrisk.engines.sql.summary.placing import Placing, Sums
from pdrisk.engines.sql.summary.reading import read
from pdrisk.engines.sql.summary.summary_plan import Summarised, SummaryPlan

UNIT = Universe(0.0, 1.0)
SIZES = [2**32 - 1, 2**32, 2**32 + 1, 3 * 2**31, 2**33 - 2]
RECORDS = [0, 1, PLACES // 4, PLACES // 2, PLACES - 1, PLACES]


def asked(mechanism, n, places, squares):
    """What noise is added to."""
    found = []
    summary = Summary(np.array([n]), places=np.array([places]), place_squares=np.array([squares]))
    mechanism.draw(summary, lambda exact, *_: found.append(exact) or exact)
    return [int(each) for each in found[0][:, 0]]


@pytest.mark.parametrize("statistic", [Mean(), Var()], ids=["two_sums", "bernstein"])
def test_one_record_more_moves_the_sums_by_one_record_at_most(statistic):
    mechanism = calibrated("two_sums" if isinstance(statistic, Mean) else "bernstein", statistic, UNIT, Fraction(1))
    for n, of_all, more in itertools.product(SIZES, RECORDS, RECORDS):
        before = asked(mechanism, n, n * of_all, n * (of_all**2 // PLACES))
        after = asked(mechanism, n + 1, n * of_all + more, n * (of_all**2 // PLACES) + more**2 // PLACES)
        moved = sum(abs(a - b) for a, b in zip(after, before, strict=True))
        assert moved <= PLACES, (n, of_all, more)
        assert all(0 <= each <= 2**62 for each in (*before, *after))
        if n < 2**32 - 1:
            assert moved == PLACES


@pytest.mark.parametrize(("places", "squares"), [(2**63 - 1, 2**62), (2**63 - 1, 0), (2**62, 2**61)])
def test_two_sums_move_by_one_record_however_many_there_are(places, squares):
    mechanism = calibrated("two_sums", Mean(), UNIT, Fraction(1))
    for n in (2**33 - 2, 2**33 - 1, 2**33, 2**40):
        before, after = asked(mechanism, n, places, squares), asked(mechanism, n + 1, places, squares)
        assert sum(abs(a - b) for a, b in zip(after, before, strict=True)) <= PLACES


def test_sql_tells_sums_of_places_as_far_as_64_bits_go():
    part = Summarised("x", UNIT, Needs(places=True, place_squares=True))
    plan = SummaryPlan("(SELECT 1.0 AS x) AS people", (), (), (), None, (part,))
    held = dict(Aggregates(plan, Placing(DuckDBDialect(), Sums.CASES), False).first())["places_0"]
    rows = f"SELECT CAST('{2**62}' AS BIGINT) AS k0 FROM "
    (found,) = duckdb.connect().execute(f"SELECT {held} FROM ({rows} range(1))").fetchone()
    (more,) = duckdb.connect().execute(f"SELECT {held} FROM ({rows} range(3))").fetchone()
    assert (found, more) == (2**62, 2**63 - 1)
    assert read(partial(fetched, duckdb.connect()), plan, None, DuckDBDialect())[0][0].places.tolist() == [PLACES]
