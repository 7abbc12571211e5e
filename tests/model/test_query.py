"""What a query says of itself: which mechanism and bounds answer it, whether eps covers it, and what it costs."""

from fractions import Fraction

import pytest

from pdrisk._core.statistics import Count, Mean, Sum
from pdrisk._core.universe import Universe
from pdrisk._model.answering import answered_by
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query


@pytest.mark.parametrize(
    ("bounds", "mechanism", "universe"),
    [
        ((0.5, 9.5), "geometric", (1, 9)),  # the whole numbers that lie there
        ((-2, 7), "geometric", (-2, 7)),
        ((0.5, 1.5), "laplace", (0.5, 1.5)),  # only one does, and a range needs two ends
        ((0.2, 0.8), "laplace", (0.2, 0.8)),  # none does
    ],
)
def test_the_bounds_of_whole_numbers_are_whole(bounds, mechanism, universe):
    asked = answered_by(Line("x", Sum(), Universe(*bounds), "given"), "auto", whole=True)
    assert (asked.mechanism, asked.universe) == (mechanism, Universe(*universe))


def test_a_query_is_private_if_all_that_it_needs_is_declared():
    """Else eps says nothing: nothing of its answer is remembered, and it counts in full for everybody."""
    count, mean = Line(None, Count(), None, None), Line("x", Mean(), Universe(0, 9), "given")
    shares = (Fraction(1),)
    assert Query((count,), shares).is_private and Query((mean,), shares).is_private
    assert not Query((Line("x", Mean(), None, "data"),), shares).is_private
    assert not Query((mean, Line("x", Mean(), None, "data")), shares * 2).is_private
    for keys, said in ((((1,), (2,)), True), (None, False)):
        groups = Groups(("g",), keys, "given" if keys else "data")
        assert Query((count,), shares, groups=groups).is_private == said
    assert Query((count, mean), shares * 2, times=3).eps == 6


def test_lines_of_one_release_share_its_eps_and_the_records_it_is_drawn_from():
    count, mean, other = (
        Line(name, each, Universe(0, 9), "given") for name, each in (("x", Count()), ("x", Mean()), ("y", Sum()))
    )
    shares = (Fraction(1), Fraction(2))
    joint = Query((count, other, mean), shares, releases=(0, 1, 0), times=2)
    assert (joint.leads, joint.line_shares, joint.eps) == ((2, 1), (1, 2, 1), 6)
    assert Query((count, mean), shares).releases == Query((count, mean), shares).leads == (0, 1)
