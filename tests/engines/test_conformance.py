"""Every engine passes the conformance suite that ships, and the suite notices engines that do not."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_engine import ENGINES, of_frame
from pdrisk.engines.base import Reading
from pdrisk.engines.conformance import TABLES, UNIVERSES, GroupedColumn, check, check_group_sizes

WAREHOUSES = [name for name in ENGINES if name.startswith("text of ")]
MIXED = (TABLES[0], *TABLES[-4:])  # all groups in one table, and a table of each type

numbers = st.sampled_from([None, np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 0.5, 0.625, 1.0, 3.0, 7.0, 1e300])
rows = st.lists(
    st.tuples(numbers | st.floats(-2, 4, width=32), st.sampled_from(["a", "a", "b", "c", None])), max_size=14
)
tables = rows.map(
    lambda of: GroupedColumn("DOUBLE", *(tuple(zip(*of, strict=True)) or ((), ())), keys=("b", "a", "nobody"))
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("table", MIXED, ids=lambda table: f"{table.type} {len(table.values)}")
def test_conforms(engine, table):
    check(engine, [table], UNIVERSES[:1])


def test_group_sizes_conform(engine):
    check_group_sizes(engine)


def test_wrong_group_sizes_are_noticed():
    class Short:
        def __init__(self, *opened):
            self.right = of_frame(*opened)

        def group_sizes(self, query):
            found = self.right.group_sizes(query)
            return dataclasses.replace(found, n=np.maximum(found.n - 1, 0))

    with pytest.raises(AssertionError, match="the groups are"):
        check_group_sizes(Short, TABLES[:1])


def test_missing_keys_that_are_left_out_are_noticed():
    def opened(table, query):
        kept = [at for at, key in enumerate(table.groups) if key is not None]
        short = dataclasses.replace(table, **{
            name: tuple(getattr(table, name)[at] for at in kept) for name in ("values", "groups")
        })  # fmt: skip
        return of_frame(short, query)

    with pytest.raises(AssertionError, match="the keys observed"):
        check_group_sizes(opened, TABLES[:1])


@pytest.mark.slow
def test_conforms_group_by_group(engine, request):
    asked = list(enumerate(TABLES))
    name = request.node.callspec.params["engine"]
    if name in WAREHOUSES:  # each statement is translated, which takes long: each warehouse gets tables of its own
        asked = asked[WAREHOUSES.index(name) :: len(WAREHOUSES)]
    for at, table in asked:
        check(engine, [table], [UNIVERSES[at % len(UNIVERSES)]], grouped=[False])  # by group: test_conforms


@pytest.mark.slow
def test_of_any_table(engine, request):
    @settings(max_examples=2 if request.node.callspec.params["engine"] in WAREHOUSES else 6)
    @given(table=tables, universe=st.sampled_from(UNIVERSES))
    def conforms(table, universe):
        check(engine, [table], [universe])

    conforms()


class Wrong:
    """An engine whose summaries are changed."""

    def __init__(self, right, change):
        self.right, self.change, self.origin = right, change, right.origin

    def read(self, query):
        reading = self.right.read(query)
        return Reading(reading.universes, tuple(map(self.change, reading.summaries)))


def changed(name, change):
    """Opens an engine that is wrong in one part."""

    def off(summary):
        part = getattr(summary, name)
        return dataclasses.replace(summary, **{name: None if part is None else change(part)})

    return lambda table, query: Wrong(of_frame(table, query), off)


@pytest.mark.parametrize("name", ["n", "places", "place_squares", "whole", "steps", "clamped", "lowest", "highest"])
def test_an_engine_that_is_off_by_one_is_noticed(name):
    with pytest.raises(AssertionError, match=name):
        check(changed(name, lambda part: part + 1), TABLES[:1])


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("products", lambda sums: {degrees: own + 1 for degrees, own in sums.items()}, "products"),
        ("products", lambda sums: {}, "products .* missing"),
        ("other", lambda own: dataclasses.replace(own, lowest=own.lowest + 1), "ends"),
        ("other", lambda own: None, "ends .* missing"),
    ],
)
def test_an_engine_that_is_wrong_about_two_columns_is_noticed(name, change, words):
    with pytest.raises(AssertionError, match=words):
        check(changed(name, change), TABLES[:1])


@pytest.mark.parametrize("name", ["n", "places", "place_squares", "steps", "lowest"])
def test_an_engine_that_is_wrong_where_nobody_sees_facts_is_noticed(name):
    wrong = changed(name, lambda part: part + 1)

    def opened(table, query):
        return (of_frame if query.has_facts else wrong)(table, query)

    with pytest.raises(AssertionError, match=f"without facts: {name}"):
        check(opened, TABLES[:1])


@pytest.mark.parametrize(("rank", "is_wrong"), [(20, True), (62, True), (63, False), (100, False)])
def test_only_records_around_a_rank_need_their_own_points(rank, is_wrong):
    """Of 101 records the quantiles at eps 10 read those up to rank 63: the median reads 12 above it."""
    (many,) = (table for table in TABLES if len(table.values) == 102 and "many" in table.keys)

    def opened(table, query):
        is_asked = not query.has_facts and query.groups and query.lines[0].mechanism == "exponential"
        return (changed("cells", moved) if is_asked else of_frame)(table, query)

    def moved(cells):
        points = np.repeat(cells.point, cells.count)
        points[rank] = points[rank - 1]
        return dataclasses.replace(cells, point=points, count=np.ones_like(points), first=np.array([0, 101, 101]))

    if is_wrong:
        with pytest.raises(AssertionError, match="without facts: cells"):
            check(opened, [many], UNIVERSES[:1])
    else:
        check(opened, [many], UNIVERSES[:1])


@pytest.mark.parametrize("part", ["point", "count"])
@pytest.mark.parametrize("name", ["cells", "whole_cells"])
def test_an_engine_that_counts_at_other_points_is_noticed(name, part):
    with pytest.raises(AssertionError, match=name):
        check(changed(name, lambda own: dataclasses.replace(own, **{part: getattr(own, part) + 1})), TABLES[:1])


@pytest.mark.parametrize("name", ["total", "squares", "nearest"])
def test_an_engine_that_is_off_by_a_little_is_noticed(name):
    with pytest.raises(AssertionError, match=name):
        check(changed(name, lambda part: part + 1e-3), TABLES[:1])


@pytest.mark.parametrize("name", ["places", "place_squares", "whole", "steps", "total", "squares"])
def test_an_engine_that_leaves_something_out_is_noticed(name):
    with pytest.raises(AssertionError, match=f"{name} is missing"):
        check(changed(name, lambda part: None), TABLES[:1])


def test_an_engine_that_takes_a_neighbouring_rank_is_noticed():
    with pytest.raises(AssertionError, match="window"):
        check(changed("windows", lambda found: {q: np.roll(each, 1, axis=0) for q, each in found.items()}), TABLES[:1])


def test_an_engine_that_knows_no_quantile_is_noticed():
    with pytest.raises(AssertionError, match="window"):
        check(changed("windows", lambda found: {}), TABLES[:1])


def test_an_engine_that_counts_nan_is_noticed():
    def opened(table, query):
        lo = query.lines[0].universe.lo
        values = tuple(lo if x is not None and x != x else x for x in table.values)
        return of_frame(dataclasses.replace(table, values=values), query)

    with pytest.raises(AssertionError, match="n is"):
        check(opened, TABLES[:1])
