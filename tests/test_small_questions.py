"""A question about few rows takes little more than its arithmetic, and nothing of it outlives the answer."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.statistics import Count, Mean, WholeSum
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS, Mechanism
from pdrisk._model.query import Line, Query, _mu2_of_draw
from pdrisk._model.unit import Unit

OWN = str(Path(pdrisk.__file__).parent)


def small() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(1000) % 100 / 1.0})


QUESTIONS: dict[str, Callable[[pd.DataFrame], object]] = {
    "count": lambda frame: frame.dprisk.count(eps=1),
    "mean": lambda frame: frame.dprisk.mean("x", eps=1, bounds=(0, 100)),
    "median": lambda frame: frame.dprisk.median("x", eps=1, bounds=(0, 100)),
}


def calls_of(question: Callable[[pd.DataFrame], object], frame: pd.DataFrame) -> int:
    """How many functions of pdrisk one question calls; the least of three, since noise may be drawn again."""

    def counted() -> int:
        number = 0

        def seen(place: FrameType, event: str, _: object) -> None:
            nonlocal number
            number += event == "call" and place.f_code.co_filename.startswith(OWN)

        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            question(frame)
        finally:
            sys.setprofile(before)
        return number

    question(frame)
    return min(counted() for _ in range(3))


class TestCalls:
    """Calls of functions do not depend on the machine, as times do. Limits: a tenth above what was counted."""

    @pytest.mark.parametrize(("name", "most"), [("count", 325), ("mean", 410), ("median", 940)])
    def test_a_small_question_calls_few_functions(self, name: str, most: int) -> None:
        assert calls_of(QUESTIONS[name], small()) <= most


class TestRememberedPrice:
    """The m^2 of a draw is remembered by what is public alone."""

    @pytest.mark.parametrize("name", ["laplace", "two_sums", "geometric"])
    def test_it_is_that_of_the_mechanism(self, name: str) -> None:
        kinds = itertools.product((Fraction(1, 10), Fraction(1)), ((0.0, 1.0), (-5.0, 20.0)), (1, 3), (False, True))
        found: list[Fraction] = []
        for eps, bounds, groups, overall in [*kinds] * 2:
            statistic = WholeSum() if name == "geometric" else Mean()
            line = Line("x", statistic, Universe(*bounds), "given", mechanism=name)
            query = Query((line,), (eps,), unit=Unit(("p",), rows=2, groups=groups, overall=overall))
            mechanism = query.mechanism(0)
            expected = mechanism.mu2_of(query.weight(0), query.unit.groups, apart=query.unit.overall)
            assert query.mu2 == query.mu2_at(0, eps) == expected
            found.append(expected)
        assert len(set(found)) > 3  # these questions do not all cost the same

    def test_a_query_that_is_paid_several_times_costs_as_often(self) -> None:
        line = Line(None, Count(), Universe(0.0, 1.0), None, mechanism="geometric")
        once, thrice = (Query((line,), (Fraction(1),), times=times) for times in (1, 3))
        assert thrice.mu2 == 3 * once.mu2 > 0
        assert Query((line,), ()).mu2 == 0

    def test_no_number_of_records_is_remembered(self) -> None:
        _mu2_of_draw.cache_clear()
        small().dprisk.sum("x", eps=1, bounds=(0, 100), neighbours="replace-one")
        assert _mu2_of_draw.cache_info().currsize == 0

    def test_bounds_from_the_data_are_not_remembered(self) -> None:
        _mu2_of_draw.cache_clear()
        small().dprisk.mean("x", eps=1, bounds="column")
        assert _mu2_of_draw.cache_info().currsize == 0

    @pytest.mark.parametrize("name", QUESTIONS)
    def test_no_answer_keeps_the_frame(self, name: str) -> None:
        frame = small()
        held = weakref.ref(frame)
        answer = QUESTIONS[name](frame)
        del frame
        gc.collect()
        assert held() is None
        assert answer is not None


def test_no_mechanism_with_an_error_in_ranks_tells_how_many_records_there_are() -> None:
    """So no answer alone can be doubted for too few records, and none is asked."""
    of_ranks = [kind for kind in MECHANISMS.values() if kind.rank95 is not Mechanism.rank95]
    assert of_ranks
    assert all(kind.least_records is Mechanism.least_records for kind in of_ranks)
