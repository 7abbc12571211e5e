"""Quality classes of cells, numbers rounded to what noise leaves, and the warning of tables that are mostly noise."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdrisk

pytestmark = pytest.mark.filterwarnings("ignore:the noise leaves:pdrisk.NoisyReleaseWarning")

FRAME = pd.DataFrame({"g": np.repeat([0, 1, 2], [4000, 100, 20]), "x": np.tile([1.0, 2.0, 3.0, 4.0], 1030)})
GROUPS = {"by": "g", "keys": [0, 1, 2, 9]}


def counts(eps=0.3, **options):
    return FRAME.dprisk.count(eps=eps, **GROUPS, **options)


class TestQuality:
    """A, B, C by the half-width of the interval over the size of the value."""

    def test_classes(self, noiseless):
        # The noise reaches 10 at eps .3: .0025 of 4,000, .1 of 100, .5 of 20.
        assert pdrisk.quality(counts()).tolist() == ["A", "A", "C", "C"]
        assert pdrisk.quality(counts(), limits=(0.05, 0.6)).tolist() == ["A", "B", "B", "C"]
        assert pdrisk.quality(counts()).index.equals(counts().index)
        assert pdrisk.quality(counts()).dtype.ordered

    def test_by_definition(self):
        table = FRAME.dprisk.mean("x", eps=0.5, bounds=(0, 5), **GROUPS)
        share = (table["high"] - table["low"]) / 2 / table["value"].abs()
        expected = ["A" if one <= 0.1 else "B" if one <= 0.33 else "C" for one in share]
        assert pdrisk.quality(table).tolist() == expected

    def test_of_a_crosstab(self, noiseless):
        frame = FRAME.assign(h=np.arange(4120) % 2)
        table = frame.dprisk.crosstab("g", "h", eps=0.3, keys={"g": [0, 2], "h": [0, 1]})
        found = pdrisk.quality(table)
        assert found.to_numpy().tolist() == [["A", "A"], ["C", "C"]]
        assert found.index.equals(table.index) and found.columns.equals(table.columns)

    def test_what_is_not_known_has_none(self, tmp_path):
        assert pdrisk.quality(FRAME.dprisk.median("x", eps=1, bounds=(0, 5), **GROUPS)).isna().all()
        ledger = pdrisk.Ledger(
            tmp_path / "budget.db", dataset="x", eps=9, policy={"least_group": {"size": 10**6, "eps": 1}}
        )
        assert pdrisk.quality(counts(ledger=ledger)).isna().all()

    def test_rows_may_be_taken_out(self):
        table = counts()
        assert pdrisk.quality(table.iloc[1:]).tolist() == pdrisk.quality(table).tolist()[1:]

    @pytest.mark.parametrize("limits", [(0.3, 0.1), (0, 0.5), (0.1, 0.1), (float("nan"), 1)])
    def test_limits_that_do_not_rise(self, limits):
        with pytest.raises(pdrisk.ParameterError, match="limit"):
            pdrisk.quality(counts(), limits=limits)

    @pytest.mark.parametrize("limits", [0.1, "ab", (0.1,), (0.1, 0.2, 0.3), None])
    def test_limits_that_are_no_pair(self, limits):
        with pytest.raises(pdrisk.ColumnTypeError, match="limits are two numbers"):
            pdrisk.quality(counts(), limits=limits)

    def test_other_tables(self):
        for call in (pdrisk.quality, pdrisk.rounded):
            with pytest.raises(pdrisk.ParameterError, match="does not say what was asked"):
                call(FRAME)
            with pytest.raises(pdrisk.ColumnTypeError, match="not of type int"):
                call(3)
            with pytest.raises(pdrisk.ColumnTypeError, match=r"a pandas DataFrame .* not of type polars\.DataFrame"):
                call(pl.DataFrame({"n": [1]}))
            with pytest.raises(pdrisk.ParameterError, match="no noise intervals"):
                call(counts()[["value"]])
            query = "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY g"
            with pytest.raises(pdrisk.ParameterError, match="no noise intervals"):
                call(pdrisk.sql(query, t=FRAME, eps=9, keys=[0, 1], bounds={"x": (0, 5)}))


class TestRounded:
    """To the largest 1, 2 or 5 times a power of ten that is at most half a standard deviation of the noise."""

    @pytest.mark.parametrize(
        ("eps", "base"), [(1, 0), (0.3, 2), (0.1, 5), (0.07, 10), (0.02, 20), (0.001, 500), (0.0007, 1000)]
    )
    def test_counts(self, eps, base, noiseless):
        half = math.sqrt(2) / eps / 2
        assert base == 0 or base <= half
        table = counts(eps)
        found = pdrisk.rounded(table)
        steps = base or 1
        assert found["value"].tolist() == [round(n / steps) * steps for n in (4000, 100, 20, 0)]
        assert (found["low"] <= table["low"]).all() and (found["high"] >= table["high"]).all()
        assert (found["low"] % steps == 0).all() and (found["high"] - table["high"] < steps).all()
        assert found.dtypes.equals(table.dtypes) and found.attrs == table.attrs

    def test_means(self):
        table = FRAME.dprisk.mean("x", eps=1, bounds=(0, 5), **GROUPS)
        found = pdrisk.rounded(table)
        # Of n = 4000 records, w = 1/2: 5 sqrt(2 ((1 - w)**2 + w**2)) / n is .00125, half of it .0006.
        steps = found["value"][0] / 0.0005
        assert steps == pytest.approx(round(table["value"][0] / 0.0005))
        assert found["value"][0] == float(f"{found['value'][0]:.4f}")  # a decimal, not next to one

    def test_it_costs_next_to_no_error(self):
        frame = pd.DataFrame({"g": np.repeat(np.arange(400), 100)})
        table = frame.dprisk.count(eps=0.05, by="g", keys=range(400))
        error = math.sqrt(((table["value"] - 100) ** 2).mean())
        after = math.sqrt(((pdrisk.rounded(table)["value"] - 100) ** 2).mean())
        assert after < 1.05 * error

    def test_of_a_crosstab(self, noiseless):
        frame = FRAME.assign(h=np.arange(4120) % 2)
        table = frame.dprisk.crosstab("g", "h", eps=0.02, keys={"g": [0, 2], "h": [0, 1]})
        found = pdrisk.rounded(table)
        assert found.to_numpy().tolist() == [[2000, 2000], [0, 0]]  # 10 is halfway, and goes to the even one
        assert found.dtypes.equals(table.dtypes)

    def test_what_has_no_noise_that_is_known_stays(self):
        table = FRAME.dprisk.median("x", eps=1, bounds=(0, 5), **GROUPS)
        assert pdrisk.rounded(table).equals(table)

    def test_of_several_statistics(self):
        table = FRAME.dprisk.agg({"x": ["count", "mean", "var"]}, eps=1, bounds=(0, 5), **GROUPS)
        found = pdrisk.rounded(table)
        assert (abs(found["value"] - table["value"]) <= (table["high"] - table["low"]) / 2).all()
        assert not found.equals(table)


class TestWarning:
    """Tables warn once, of how many cells have noise that reaches farther than their number."""

    def test_many_small_cells(self):
        frame = pd.DataFrame({"g": np.repeat([0, 1], 1000)})
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="in .* of the 40 cells of this table") as caught:
            frame.dprisk.count(eps=1, by="g", keys=range(40))
        assert len(caught) == 1

    def test_few_cells_or_few_small_ones_are_seen_at_a_glance(self):
        frame = pd.DataFrame({"g": np.repeat(np.arange(40), 100)})
        frame.dprisk.count(eps=1, by="g", keys=range(42))
        frame.dprisk.count(eps=1, by="g", keys=range(100, 110))
