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
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.statistics import Count, Mean, WholeSum
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS, Mechanism
from pdrisk._model.query import Line, Query, _mu2_of_draw
from pdrisk._model.unit import Unit
from pdrisk._pandas.noisy import statistics as noisy
from pdrisk._pandas.requests import repeated
from pdrisk.engines.numpy.frame import FrameEngine

OWN = str(Path(pdrisk.__file__).parent)


def small() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(1000) % 100 / 1.0})


QUESTIONS: dict[str, Callable[..., object]] = {
    "count": lambda frame: frame.dprisk.count(eps=1),
    "mean": lambda frame, **more: frame.dprisk.mean("x", eps=1, bounds=(0, 100), **more),
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

    @pytest.mark.parametrize(("name", "most"), [("count", 137), ("mean", 192), ("median", 283)])
    def test_a_small_question_calls_few_functions(self, name: str, most: int) -> None:
        assert calls_of(QUESTIONS[name], small()) <= most


def declared(frame: pd.DataFrame, **said: Any) -> pd.DataFrame:
    return frame.dprisk.declare(**said)


TWO = pd.DataFrame({"x": np.arange(1000) % 100 / 1.0, "y": np.arange(1000) % 7})
FRAMES = {
    "plain": TWO,
    "whole numbers": TWO.astype({"x": "int64"}),
    "truth": TWO.assign(x=TWO["x"] > 50),
    "text": TWO.assign(x=TWO["x"].astype(str)),
    "objects": TWO.assign(x=TWO["x"].astype(object)),
    "nullable": TWO.astype({"x": "Float64"}),
    "dates": TWO.assign(x=pd.Timestamp("2020-01-01") + pd.to_timedelta(TWO["y"], unit="D")),
    "text as objects": TWO.assign(x=TWO["x"].astype(str).astype(object)),
    "without x": TWO[["y"]],
    "x alone": TWO[["x"]],
    "two named x": pd.concat([TWO, TWO], axis=1),
    "by position": TWO.set_axis([0, 1], axis=1),
    "declared": declared(TWO, bounds={"x": (0, 200)}),
    "otherwise": declared(TWO, bounds={"x": (0, 300)}),
    "codes": declared(TWO, missing={"x": [99]}),
    "people": declared(TWO, person="y"),
    "people unknown": declared(TWO, person="y")[["x"]],
    "damaged": TWO.assign(),
}
FRAMES["damaged"].attrs.update(declared(TWO, bounds={"x": (0, 200)}).attrs)
FRAMES["damaged"].attrs = dict.fromkeys(FRAMES["damaged"].attrs, "{")
ASKED: list[tuple[str, tuple[object, ...], dict[str, object]]] = [
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": True, "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": 1.0, "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": "1", "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": 10**5000, "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": 1, "bounds": (False, 100)}),
    ("mean", ("x",), {"eps": 1, "bounds": [0, 100]}),
    ("mean", ("x",), {"eps": 1, "bounds": (0.0, 100)}),
    ("mean", ("x",), {"eps": 1, "bounds": (-0.0, 100)}),
    ("mean", ("x",), {"eps": 1, "bounds": {"x": (0, 100)}}),
    ("mean", ("x",), {"eps": 1, "bounds": "column"}),
    ("mean", ("x",), {"eps": 1}),
    ("mean", ("x",), {"bounds": (0, 100)}),
    ("mean", (True,), {"eps": 1, "bounds": (0, 100)}),
    ("mean", (1,), {"eps": 1, "bounds": (0, 100)}),
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100), "where": "y > 3"}),
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100), "mechanism": "laplace"}),
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100), "person": "y", "per_person": "mean"}),
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100), "clip": "private"}),
    ("mean", ("x",), {"eps": 1, "bounds": (0, 100), "max_noise95": 1e-9}),
    ("sum", ("x",), {"eps": 1, "bounds": (0, 100), "step": 1}),
    ("sum", ("x",), {"eps": 1, "bounds": (0, 100)}),
    ("sum", ("x",), {"eps": 1, "bounds": (0, 100), "neighbours": "replace-one"}),
    ("median", ("x",), {"eps": 1, "bounds": (0, 100)}),
    ("median", ("x",), {"eps": 1, "bounds": (0, 100), "interval": True}),
    ("quantile", ("x", 0.25), {"eps": 1, "bounds": (0, 100)}),
    ("quantile", ("x", 0.75), {"eps": 1, "bounds": (0, 100)}),
    ("var", ("x",), {"eps": 1, "bounds": (0, 100)}),
    ("var", ("x", 0), {"eps": 1, "bounds": (0, 100)}),
    ("count", (), {"eps": 1}),
    ("count", ("x",), {"eps": 1}),
    ("count", (), {"risk": 0.6}),
    ("nunique", ("x",), {"eps": 1}),
]


class TestRepeatedQuestions:
    """A question that was judged before is not judged again, and means what it would mean the first time."""

    @staticmethod
    def judged(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
        """The queries that are answered from now on, with nothing drawn."""
        found: list[Query] = []

        def kept(query: Query, engine: FrameEngine, *_: object) -> pd.DataFrame:
            found.append(query)
            if engine.looked_up is not None:
                pd.testing.assert_series_equal(engine.looked_up, engine.frame["x"])
            return pd.DataFrame()

        monkeypatch.setattr(noisy, "answered", kept)
        return found

    def test_whatever_was_asked_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every question about every frame, in three orders: the query or the error is that of a fresh judgement."""
        found = self.judged(monkeypatch)

        def said(frame: pd.DataFrame, name: str, args: tuple[object, ...], options: dict[str, object]) -> object:
            try:
                getattr(frame.dprisk, name)(*args, **options)
            except (pdrisk.errors.PdriskError, TypeError) as error:
                return type(error), str(error)
            return found.pop()

        expected = {}
        every = [(name, at) for name in FRAMES for at in range(len(ASKED))]
        for name, at in every:
            repeated._remembered.clear()
            expected[name, at] = said(FRAMES[name], *ASKED[at])
        assert sum(isinstance(each, Query) for each in expected.values()) > len(every) / 4
        repeated._remembered.clear()
        for _ in range(3):
            for name, at in np.random.default_rng(5).permutation(np.array(every, dtype=object)):
                assert said(FRAMES[name], *ASKED[at]) == expected[name, at], (name, ASKED[at])
        assert len(repeated._remembered) > 50

    def test_it_is_judged_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = self.judged(monkeypatch)
        for _ in range(2):
            small().dprisk.mean("x", eps=1, bounds=(0, 99.5))
        assert found[0] is found[1]

    def test_what_a_ledger_refuses(self, tmp_path: Path) -> None:
        """Bounds beyond 0 and 1 of truth values: without a ledger they are accepted."""
        frame = FRAMES["truth"]
        QUESTIONS["mean"](frame)
        with (
            pdrisk.Ledger(tmp_path / "ledger.db", dataset="survey", analyst="ann", eps=5),
            pytest.raises(pdrisk.ParameterError, match="counts as truth values"),
        ):
            QUESTIONS["mean"](frame)

    def test_who_pays_is_not_remembered(self, tmp_path: Path) -> None:
        frame, ledger = small(), pdrisk.Ledger(tmp_path / "ledger.db", dataset="survey", analyst="ann", eps=5)
        question = QUESTIONS["mean"]
        question(frame)
        with ledger:
            question(frame)
        question(frame, ledger=ledger)  # type: ignore[call-arg]
        question(frame)
        assert ledger.remaining().spent == 2

    def test_few_are_kept(self) -> None:
        for number in range(repeated.KEPT + 10):
            small().dprisk.count(eps=1 + number / 1000)
        assert len(repeated._remembered) <= repeated.KEPT


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
