"""What is read of a frame and drawn from it: without what nobody will see, and some groups after another."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pdrisk._core import cells
from pdrisk._core.order import Median
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean
from pdrisk._core.universe import Universe
from pdrisk._model.asked_groups import Groups
from pdrisk._model.plain import plain_keys
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import Unit
from pdrisk.engines.numpy.frame import FrameEngine
from pdrisk.errors import ColumnTypeError

UNIVERSE = Universe(0.0, 100.0)
GROUPS = 70
RNG = np.random.default_rng(12)
FRAME = pd.DataFrame({"x": RNG.uniform(-5, 105, 2000).round(2), "g": RNG.integers(2, GROUPS + 2, 2000)})
EVERY = {"all rows": None, "groups": Groups(("g",), tuple((key,) for key in range(GROUPS)), "given")}


def asked(statistic, mechanism: str, groups: Groups | None) -> Query:
    line = Line("x", statistic, UNIVERSE, "given", mechanism=mechanism)
    return Query((line,), (Fraction(1),), groups=groups, reads=("x",) if groups is None else ("x", "g"))


def summary_of(query: Query):
    return FrameEngine(FRAME, FRAME).read(query).summaries[0]


@pytest.mark.parametrize("groups", EVERY.values(), ids=EVERY)
class TestFacts:
    @pytest.mark.parametrize(("statistic", "mechanism"), [(Mean(), "two_sums"), (Var(), "bernstein")])
    def test_moments(self, statistic, mechanism, groups):
        query = asked(statistic, mechanism, groups)
        full, drawn = summary_of(query), summary_of(replace(query, has_facts=False))
        assert full.lowest is not None and (full.squares is None) == (mechanism == "two_sums")
        assert drawn.total is drawn.lowest is drawn.highest is drawn.squares is drawn.nearest is None
        for name in ("n", "places", "place_squares"):
            np.testing.assert_array_equal(getattr(drawn, name), getattr(full, name))

    def test_order(self, groups):
        query = asked(Median(), "exponential", groups)
        full, drawn = summary_of(query), summary_of(replace(query, has_facts=False))
        assert set(full.windows) == {0.5} and not drawn.windows
        mechanism = query.mechanism(0)
        for one, other in zip(items_of(mechanism, full), items_of(mechanism, drawn), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_records_of_people(self, groups):
        query = replace(asked(Mean(), "two_sums", groups), unit=Unit(("g",), rows=3))
        engine = FrameEngine(FRAME, FRAME)
        assert engine.read(query).people(0) is not None
        assert engine.read(replace(query, has_facts=False)).people(0) is None


def items_of(mechanism, summary):
    items, mass = mechanism.masses(summary)
    return items.group[mass > 0], items.start[mass > 0], items.width[mass > 0], mass[mass > 0]


class TestParts:
    """Few groups at a time give the same cells, items and choices."""

    @pytest.mark.parametrize("most", [1, 50])
    def test_the_same(self, most, monkeypatch):
        query = asked(Median(), "exponential", EVERY["groups"])
        mechanism, whole = query.mechanism(0), summary_of(query)
        monkeypatch.setattr(cells, "PART", most)
        parts = summary_of(query)
        for name in ("point", "count", "first"):
            np.testing.assert_array_equal(getattr(parts.cells, name), getattr(whole.cells, name))
        np.testing.assert_array_equal(parts.windows[0.5], whole.windows[0.5])
        assert len(list(parts.cells.parts())) > 10

        def bits(size):
            return np.full(size, 2**63 + 12345, dtype=np.uint64)

        drawn = mechanism.draw(parts, bits=bits)
        monkeypatch.undo()
        assert len(list(whole.cells.parts())) == 1
        np.testing.assert_array_equal(drawn, mechanism.draw(whole, bits=bits))

    @pytest.mark.parametrize("sizes", [[], [0], [5], [0, 0], [3, 0, 9, 1, 1, 1, 0, 4, 0], [20, 20]])
    def test_runs(self, sizes, monkeypatch):
        monkeypatch.setattr(cells, "PART", 4)
        runs = list(cells.runs_of_groups(np.cumsum([0, *sizes])))
        assert [group for run in runs for group in range(run.start, run.stop)] == list(range(len(sizes)))
        assert all(sum(sizes[run]) <= 4 or run.stop == run.start + 1 for run in runs)


def test_plain_keys():
    for keys in ([], ["a", "b"], [1, 2], [1, "a", None, np.int8(3), True, float("nan")], [2**200, -(2**200)]):
        found = plain_keys(keys)
        assert found == [None if key != key else key for key in keys]
        assert all(type(key) in (str, int, bool, type(None)) for key in found)
    for wrong in ([1, 2**5000], [-(2**5000)], ["a", [1]]):
        with pytest.raises(ColumnTypeError, match="single value"):
            plain_keys(wrong)
