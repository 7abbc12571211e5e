"""Records are not kept for a second pass where noise is added to nothing that it finds."""

from dataclasses import replace

import numpy as np
import pytest

from every_engine import of_frame
from pdrisk._core.order import Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.statements import asked_of
from pdrisk.engines.conformance import ASKED, SHARE, TABLES, UNIVERSES
from pdrisk.engines.sql.servers.schema_only import described
from pdrisk.engines.sql.summary.caching import is_drawn_at_once, is_read_once
from pdrisk.engines.sql.summary.summary_plan import for_query

TABLE = described("spark", "people", {"x": "double", "y": "double", "g": "string", "pid": "bigint"})
GROUPED = Groups(("g",), (("many",), ("one",)), "given")


def looks(plan):
    """How a plan is read: by one pass, by a second one of records that need not be kept, or of such that are."""
    return "one" if is_read_once(plan) else "not kept" if is_drawn_at_once(plan) else "kept"


def plan_of(query):
    engine = TABLE.opened(query, TABLE.header, None, bytes)
    return for_query(engine.plan, query, engine.places)


def asked(question, **options):
    bounds = {"x": (0, 100), "y": (0, 100)}
    query, engine = asked_of(TABLE, question, Request(**{"eps": 1, "bounds": bounds, "curator": True, **options}))
    return for_query(engine.plan, query, engine.places)


@pytest.mark.parametrize("groups", [None, GROUPED], ids=["all", "groups"])
@pytest.mark.parametrize(("statistic", "mechanism"), [*ASKED, (Std(), "bernstein"), (Std(), "laplace")])
def test_noise_is_added_to_what_the_first_pass_finds(statistic, mechanism, groups):
    query = Query((Line("x", statistic, UNIVERSES[0], "given", mechanism=mechanism),), (SHARE,), groups=groups)
    found = looks(plan_of(query))
    own = query.mechanism(0)
    if isinstance(statistic, Var):
        assert found == ("not kept" if mechanism == "bernstein" else "kept")
    assert found != "one" or not own.reads.squares
    if found == "not kept":
        (summary,) = of_frame(TABLES[0], query).read(query).summaries
        first = replace(summary, squares=None, nearest=None)
        drawn = [own.draw(each, lambda exact, *_: exact) for each in (first, summary)]
        np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize(
    ("question", "options", "found"),
    [
        ("mean(x)", {}, "one"),
        ("var(x)", {}, "not kept"),
        ({"x": ["var", "mean", "count", "std"], "y": "var"}, {}, "not kept"),
        ({"x": ["var", "mean"]}, {"by": "g", "keys": ["a", "b"]}, "not kept"),
        ({"x": ["var", "median"]}, {}, "kept"),
        ({"x": "var", "y": "median"}, {}, "kept"),
        ({"x": ["var", "max"]}, {}, "kept"),
        ({"x": "var", "g": "nunique"}, {}, "kept"),
        ({"x": ["var", "mean"]}, {"mechanism": "laplace"}, "kept"),
        ("var(x)", {"person": "pid", "rows": 2}, "kept"),
        ("var(x)", {"person": "pid", "per_person": "mean"}, "kept"),
        ("median(x)", {"mechanism": "laplace"}, "kept"),
        ("median(x)", {}, "kept"),
    ],
)
def test_questions(question, options, found):
    assert looks(asked(question, **options)) == found


def test_of_two_lines_with_one_part_the_one_that_draws_from_squares_decides():
    var = [Line("x", Var(), UNIVERSES[0], "given", mechanism=each) for each in ("bernstein", "laplace")]
    assert looks(plan_of(Query(tuple(var), (SHARE, SHARE)))) == "kept"
    assert looks(plan_of(Query(tuple(var[:1] * 2), (SHARE, SHARE)))) == "not kept"


def test_what_is_only_looked_at_is_kept_as_nobody_says_what_is_drawn():
    assert looks(plan_of(Query((Line("x", Var(), UNIVERSES[0], "given", mechanism="bernstein"),), ()))) == "kept"


def test_without_facts_there_is_no_second_pass():
    query = Query((Line("x", Var(), UNIVERSES[0], "given", mechanism="bernstein"),), (SHARE,), has_facts=False)
    assert looks(plan_of(query)) == "one"
    order = Query((Line("x", Quantile(0.5), UNIVERSES[0], "given", mechanism="laplace"),), (SHARE,), has_facts=False)
    assert looks(plan_of(order)) == "kept"
