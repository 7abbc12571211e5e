"""The risk functions of plain SQL say what the accessor says of the same data, and draw nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions_on_duckdb import (
    FUNCTIONS,
    HI,
    LO,
    MEAN,
    Function,
    connection,
    count_draws,
    frame,
    one,
    refusal,
    rows,
    table,
)
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.risks.risk import METRICS

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FIELDS = ["eps", "scale", "global_sensitivity", "local_sensitivity", "n", *METRICS]
VALUES = st.sampled_from([None, math.nan, math.inf, -math.inf, -3.0, LO, 2.5, HI, 9e99]) | st.floats(0, 8)


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        yield own


def assert_same(found: dict, expected: dict, function: Function) -> None:
    """Equal to a billionth; what may be zero, to a trillionth of what it could be."""
    # Where a variance falls to zero, either side may have 1e-17 of rounding left, of which std takes the root.
    share = 1e-7 if function.method == "std" else 1e-12
    assert list(found) == FIELDS
    assert found["n"] == expected["n"] and isinstance(found["n"], int)
    assert found["scale"] == expected["scale"]  # None where noise is on the two sums of a mean
    for name in (name for name in FIELDS if name != "scale"):
        unit = expected["global_sensitivity"] if name == "local_sensitivity" else 1.0
        exactly = name in ("eps", "global_sensitivity", "n", "worst_case")
        tolerance = 0.0 if exactly else share * unit
        assert found[name] == pytest.approx(expected[name], rel=1e-9, abs=tolerance, nan_ok=True), name


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
class TestAgreement:
    """Every field is the accessor's, whatever is missing, infinite or out of bounds."""

    @pytest.mark.sampled(99)
    @given(values=st.lists(VALUES, max_size=12), eps=st.sampled_from(["0.1", "1", "2.5"]))
    def test_of_one_group(self, con, function, values, eps):
        table(con, values)
        expected = function.twin(frame(values), float(eps)).to_dict(curator=True)
        assert_same(one(con, function.call(eps=eps, risk=True)), expected, function)

    @pytest.mark.sampled(99)
    @given(pairs=st.lists(st.tuples(st.integers(0, 3), VALUES), min_size=1, max_size=20))
    def test_of_groups(self, con, function, pairs):
        values, groups = [value for _, value in pairs], [group for group, _ in pairs]
        table(con, values, groups)
        found = dict(rows(con, f"SELECT g, {function.call(risk=True)} FROM t GROUP BY g"))
        expected = function.twin(frame(values, groups), by="g", keys=sorted(set(groups)), curator=True)
        assert sorted(found) == expected.index.tolist()
        (line,) = Answer.from_attrs(expected.attrs).lines
        whole = {"scale": line.scale, "global_sensitivity": line.global_sensitivity}
        for group, fields in found.items():
            assert_same(fields, expected.loc[group].to_dict() | whole, function)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("bounds", [(1e9, 1e9 + 1000), (-1e100, 1e100), (0.0, 1e-100), (-40.0, 50.0)])
    def test_of_any_universe(self, con, function, bounds):
        lo, hi = bounds
        values = [lo + share * (hi - lo) for share in (0.0, 0.1, 0.1, 1 / 3, 0.5, 0.9, 1.0)]
        table(con, values)
        found = one(con, function.call(lo=f"'{lo!r}'::DOUBLE", hi=f"'{hi!r}'::DOUBLE", risk=True))
        assert_same(found, function.twin(frame(values), bounds=bounds).to_dict(curator=True), function)

    def test_nobody(self, con, function):
        table(con, [])
        found = one(con, function.call(risk=True))
        assert_same(found, function.twin(frame([])).to_dict(curator=True), function)
        assert found["n"] == 0 and math.isnan(found["many_worlds"]) and math.isnan(found["identifiability"])


class TestUse:
    """A struct that is taken apart, filtered and read again stays the same."""

    def test_a_printed_number(self, con):
        """The paper's Table I: the mean of 3, 1, 10, 17 in [1, 675], 7.75; adding 675 moves it by 133.45."""
        table(con, [3.0, 1.0, 10.0, 17.0])
        found = one(con, "dp_mean_risk(x, 1, 1, 675)")
        assert (found["global_sensitivity"], found["scale"]) == (337, None)
        assert found["local_sensitivity"] == pytest.approx(133.45)
        # Under two_sums everybody bears eps, and the four worlds without one of them are at most 2 eps 16/674 apart.
        assert found["two_worlds"] == found["worst_case"] == pytest.approx(1 / (1 + math.exp(-1)))
        assert found["many_worlds"] == pytest.approx(1 / (1 + 3 * math.exp(-1)))
        assert found["identifiability"] == pytest.approx(1 / (1 + 3 * math.exp(-32 / 674)))

    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_nothing_is_drawn(self, con, function, monkeypatch):
        table(con, [1.0, 2.0, 5.0], [0, 0, 1])
        drawn = count_draws(monkeypatch)
        rows(con, f"SELECT g, {function.call(risk=True)} FROM t GROUP BY g")
        assert drawn == []

    def test_unpacking_is_safe(self, con):
        table(con, [1.0, 2.0, 5.0])
        whole = one(con, MEAN.call(risk=True))
        call = MEAN.call(risk=True)
        fields = ", ".join(f"({call}).{name}" for name in FIELDS)
        assert rows(con, f"SELECT {fields} FROM t") == rows(con, f"SELECT unnest({call}) FROM t")
        assert rows(con, f"SELECT {fields} FROM t") == [tuple(whole[name] for name in FIELDS)]

    def test_as_a_filter(self, con):
        table(con, [1.0, 7.0, 4.0, 4.0], [0, 1, 2, 2])
        each = (
            f"SELECT g, {MEAN.call(risk=True)} AS r FROM t GROUP BY g HAVING ({MEAN.call(risk=True)}).two_worlds > 0.6"
        )
        found = rows(con, f"SELECT g, r.two_worlds, r.n FROM ({each}) WHERE r.n = 1 ORDER BY g")
        assert [(group, n) for group, _, n in found] == [(0, 1), (1, 1)]
        assert all(risk > 0.6 for _, risk, _ in found)

    def test_types(self, con):
        table(con, [1.0])
        described = con.execute(
            f"DESCRIBE SELECT {MEAN.call()} AS value, {MEAN.call(risk=True)} AS risk FROM t"
        ).fetchall()
        struct = ", ".join(f"{name} {'BIGINT' if name == 'n' else 'DOUBLE'}" for name in FIELDS)
        assert [row[1].replace('"', "") for row in described] == ["DOUBLE", f"STRUCT({struct})"]

    def test_eps_is_what_was_written(self, con):
        table(con, [1.0])
        assert one(con, MEAN.call(eps="0.1", risk=True))["eps"] == 0.1
        assert one(con, MEAN.call(eps="0.1::FLOAT", risk=True))["eps"] == 0.1


class TestCurator:
    """Without ``curator=True`` there are none."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_they_are_not_there(self, function):
        with connection(curator=False) as con:
            table(con, [1.0])
            assert f"{function.name}_risk does not exist" in refusal(con, f"SELECT {function.call(risk=True)} FROM t")
            assert (
                rows(con, "SELECT function_name FROM duckdb_functions() WHERE contains(function_name, '_risk')") == []
            )
