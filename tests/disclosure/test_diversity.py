"""l-diversity and t-closeness: what all of a class have in common."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from disclosure_oracle import distance, entropy_l, people, values_by_class
from pdrisk.errors import ParameterError

seeds = st.integers(0, 10_000)
ON = ["age", "zip"]


class TestDiversity:
    """Different values, entropy and the commonest value of each class, without missing ones."""

    @given(seeds, st.integers(1, 60), st.sampled_from(["illness", "score", "away", "wage"]))
    def test_equals_the_definition(self, seed, n, sensitive):
        frame = people(seed, n)
        values = values_by_class(frame, ON, sensitive)
        assume(values)
        found = frame.dprisk.l_diversity(ON, sensitive)
        assert found.l == min(len(set(each)) for each in values.values())
        assert found.entropy_l == pytest.approx(min(map(entropy_l, values.values())), rel=1e-12)
        assert found.largest_share == max(max(Counter(each).values()) / len(each) for each in values.values())
        assert found.entropy_l <= found.classes["distinct"].max()

    def test_a_class_without_values_is_not_judged(self):
        frame = pd.DataFrame({"zip": list("aab"), "illness": ["flu", "cold", None]})
        found = frame.dprisk.l_diversity("zip", "illness")
        assert found.l == 2 and found.people == 3
        assert found.classes.loc["b"].isna().tolist() == [False, True, True, True]
        assert found.worst().index.tolist() == ["a"]

    def test_several_rows_of_one_person(self):
        frame = pd.DataFrame({"zip": ["a"] * 4, "illness": ["flu"] * 3 + ["cold"], "pid": [1, 1, 1, 2]})
        assert frame.dprisk.l_diversity("zip", "illness").largest_share == 0.75
        assert frame.dprisk.l_diversity("zip", "illness", person="pid").largest_share == 0.5

    def test_said(self):
        frame = pd.DataFrame({"zip": ["a"], "illness": [None]})
        with pytest.raises(ParameterError, match="has no value"):
            frame.dprisk.l_diversity("zip", "illness")
        with pytest.raises(ParameterError, match="a key and the sensitive column"):
            frame.dprisk.l_diversity("zip", "zip")


class TestCloseness:
    """Distance of a class's values from those of the whole table."""

    @given(seeds, st.integers(1, 60), st.sampled_from(["illness", "score", "wage", "since"]), st.booleans())
    def test_equals_the_definition(self, seed, n, sensitive, ordered):
        frame = people(seed, n)
        values = values_by_class(frame, ON, sensitive)
        assume(values)
        everybody = [value for each in values.values() for value in each]
        found = frame.dprisk.t_closeness(ON, sensitive, distance="ordered" if ordered else "equal")
        wanted = max(distance(each, everybody, ordered=ordered) for each in values.values())
        assert found.t == pytest.approx(wanted, abs=1e-12)
        assert frame.dprisk.t_closeness(ON, sensitive).distance == ("equal" if sensitive == "illness" else "ordered")

    def test_the_salaries_of_the_paper(self):
        # Li, Li & Venkatasubramanian 2007, section 5.1: P1 = {3k, 4k, 5k} of nine salaries has distance .375,
        # P2 = {6k, 8k, 11k} has .167.
        frame = pd.DataFrame({"salary": [3, 4, 5, 6, 11, 8, 7, 9, 10], "zip": list("aaabbbccc")})
        table = frame.dprisk.t_closeness("zip", "salary").classes
        assert table.loc["a", "distance"] == pytest.approx(0.375)
        assert round(table.loc["b", "distance"], 3) == 0.167

    def test_ordered_categories_keep_their_order(self):
        levels = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
        frame = pd.DataFrame({"zip": list("ab"), "school": pd.Series(["low", "middle"], dtype=levels)})
        found = frame.dprisk.t_closeness("zip", "school")
        assert (found.distance, found.t) == ("ordered", 0.5)  # "high" occurs nowhere: one step apart, half of it moved
        assert frame.astype({"school": str}).dprisk.t_closeness("zip", "school").distance == "equal"

    @given(seeds, st.integers(1, 60))
    def test_coarser_classes_are_closer(self, seed, n):
        frame = people(seed, n)
        for how in ("equal", "ordered"):
            fine = frame.dprisk.t_closeness(ON, "score", distance=how).t
            assert frame.dprisk.t_closeness("age", "score", distance=how).t <= fine + 1e-12
        diverse = frame.dprisk.l_diversity(ON, "score")
        coarse = frame.dprisk.l_diversity("age", "score")
        assert coarse.l >= diverse.l and coarse.entropy_l >= diverse.entropy_l - 1e-12

    def test_many_values_in_many_classes(self):
        """Sparse: the table of all classes and values would have 10^9 cells."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"zip": rng.integers(0, 30_000, 60_000), "wage": rng.permutation(60_000)})
        t = frame.dprisk.t_closeness("zip", "wage").t
        lonely = frame[~frame["zip"].duplicated(keep=False)]["wage"].rank() - 1
        assert t == pytest.approx(0.5, abs=0.01) and len(lonely) > 0

    def test_said(self):
        with pytest.raises(ParameterError, match="distance is one of"):
            people(0, 5).dprisk.t_closeness("age", "score", distance="hierarchical")
