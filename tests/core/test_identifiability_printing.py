"""How identifiability is shown: as the curator's, and so that what it advises holds."""

import re

import pandas as pd
import pytest

import pdrisk
from paths import GOLDEN
from pdrisk._digits import probability
from pdrisk.errors import ColumnTypeError, NotPublicError
from pdrisk.identifiability import Identifiability, of_worlds, worlds_with

BOUNDS = (1, 675)


class TestShown:
    """It says that it is the curator's, in text and HTML."""

    PEOPLE = pd.DataFrame({"distance": [3, 1, 10, 675, 17]})

    @pytest.mark.parametrize(
        ("name", "options"),
        [("identifiability_eps", {"eps": 1}), ("identifiability_risk", {"risk": 0.5})],
    )
    def test_golden(self, name, options):
        found = self.PEOPLE.dprisk.identifiability("distance", bounds=BOUNDS, mechanism="laplace", **options)
        assert repr(found) + "\n" == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
        assert found._repr_html_() + "\n" == (GOLDEN / f"{name}.html").read_text(encoding="utf-8")

    @pytest.mark.parametrize("risk", [0.5, 0.9])
    def test_any_eps_will_do(self, risk):
        told = of_worlds([1.0, 1.0, 4.0, 4.0], risk=risk)
        words = repr(told)
        assert "any will do" in words and "curator only" in words
        assert ("inf" in words) is False and "nan" not in words
        nothing = repr(of_worlds([1.0, 1.0], risk=0.9))
        assert "noise scale" not in nothing and nothing.count("any will do") == 2

    @pytest.mark.parametrize("risk", [0.2, 1 / 3, 0.56, 0.58, 0.75, 0.9, 0.99])
    def test_what_it_advises_holds_as_it_is_written(self, risk):
        worlds = worlds_with([1, 3], range(1, 11))  # Lee & Clifton 2012, section 4
        told = of_worlds(worlds, risk=risk)
        rows = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in repr(told).splitlines()[2:])
        assert of_worlds(worlds, eps=float(rows["loose eps"])).bound <= risk
        assert of_worlds(worlds, eps=float(rows["tight eps"])).exact <= risk
        assert told.sensitivity / float(rows["noise scale"]) <= told.eps
        assert rows["risk, loose bound"] == rows["highest risk"] == probability(risk)

    def test_one_world_is_certain_without_an_answer(self):
        people = self.PEOPLE.dprisk.identifiability("distance", eps=1, bounds=BOUNDS, where="distance == 17")
        for found in (of_worlds([3.0], eps=1), of_worlds([3.0], risk=0.9), people):
            words = repr(found)
            assert words.count("certain without this answer") == 3 == found._repr_html_().count("certain without")
            assert "1.0000" not in words

    def test_a_belief_near_one_is_not_called_one(self):
        far = of_worlds([0.0, 5e5], eps=1, sensitivity=1.0)
        assert far.exact == far.bound == 1
        assert repr(far).count("> 0.9999") == 2 and "1.0000" not in repr(far)

    def test_as_a_series(self):
        series = self.PEOPLE.dprisk.identifiability("distance", eps=1, bounds=BOUNDS).to_series()
        assert series.name == "mean(distance)" and series["scale"] == 337
        with pytest.raises(NotPublicError, match="exact figures"):
            pdrisk.public(series.to_frame())
        with pytest.raises(ColumnTypeError):
            pdrisk.public(self.PEOPLE.dprisk.identifiability("distance", eps=1, bounds=BOUNDS))

    def test_frozen(self):
        found = of_worlds([1.0, 2.0], eps=1)
        assert isinstance(found, Identifiability)
        with pytest.raises(AttributeError):
            found.exact = 0.0
