"""Histograms by groups and of dates: the numbers that numpy and pandas count, for one eps, on every engine."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdrisk
from pdrisk import ColumnTypeError, ParameterError

SURE = {"eps": 10**6}
KEYS = ["f", "m"]
YEAR = ("2024-01-01", "2024-12-31")


def people(n=400):
    draw = np.random.default_rng(3)
    days = pd.Timestamp("2023-12-01") + pd.to_timedelta(draw.integers(0, 440, n), unit="D")
    return pd.DataFrame(
        {
            "g": draw.choice([*KEYS, "x"], n),
            "x": draw.choice([np.nan, -1.0, 0.0, 2.0, 5.0, 9.99, 10.0, 10.5], n),
            "day": pd.Series(days).mask(draw.random(n) < 0.1),
            "w": draw.choice([1.0, 2.0], n),
        }
    )


def tables():
    frame = people()
    con = duckdb.connect()
    con.register("rows", frame)
    con.execute("CREATE TABLE people AS FROM rows")
    return {"pandas": frame, "DuckDB": (con, "people"), "Polars": pl.from_pandas(frame)}


@pytest.fixture(params=["pandas", "DuckDB", "Polars"])
def data(request):
    return pdrisk.Dataset(tables()[request.param])


class TestByGroups:
    def test_edges(self, data):
        table = data.hist("x", bins=[0, 2, 10], by="g", keys=KEYS, **SURE)
        frame = people()
        wanted = [n for key in KEYS for n in np.histogram(frame.loc[frame["g"] == key, "x"].dropna(), [0, 2, 10])[0]]
        assert table["value"].tolist() == wanted
        assert table.index.names == ["g", "x"]
        assert [(key, str(one)) for key, one in table.index][:3] == [
            ("f", "[0.0, 2.0)"), ("f", "[2.0, 10.0]"), ("m", "[0.0, 2.0)"),
        ]  # fmt: skip

    def test_a_number_of_bins_clamps(self, data):
        table = data.hist("x", bins=2, by="g", keys=KEYS, bounds=(0, 10), **SURE)
        frame = people()
        wanted = [
            n
            for key in KEYS
            for n in np.histogram(frame.loc[frame["g"] == key, "x"].dropna().clip(0, 10), [0, 5, 10])[0]
        ]
        assert table["value"].tolist() == wanted

    def test_keys_in_another_order(self):
        both = [people().dprisk.hist("x", bins=[0, 5, 10], by="g", keys=keys, **SURE) for keys in (KEYS, KEYS[::-1])]
        pd.testing.assert_frame_equal(both[0].loc[["m", "f"]], both[1])

    def test_it_costs_eps_once(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=3)
        d = pdrisk.Dataset(people().astype({"g": "string"}), ledger=ledger)
        d.hist("x", bins=[0, 5, 10], by="g", keys=KEYS, eps=1)
        assert ledger.remaining().spent == 1

    def test_a_record_is_in_one_cell(self):
        """So that without it one number changes, by 1."""
        frame = people(60)
        whole = frame.dprisk.hist("x", bins=[0, 5, 10], by="g", keys=KEYS, **SURE)["value"].to_numpy()
        for at in range(60):
            without = frame.drop(at).dprisk.hist("x", bins=[0, 5, 10], by="g", keys=KEYS, **SURE)["value"].to_numpy()
            assert np.abs(whole - without).sum() <= 1

    def test_weights(self):
        found = people().dprisk.hist("x", bins=[0, 5, 10], by="g", keys=KEYS, weights="w", bounds={"w": (0, 2)}, **SURE)
        frame = people().query("0 <= x <= 10 and g in @KEYS")
        wanted = frame.groupby(["g", frame["x"] >= 5])["w"].sum()
        assert found["value"].tolist() == pytest.approx(wanted.tolist(), abs=1e-3)

    def test_its_label_says_where_values_beyond_count(self):
        for asked, beyond in (
            ({"bins": 2, "bounds": (0, 10)}, "count in the first"),
            ({"bins": [0, 5, 10]}, "not counted"),
        ):
            label = pdrisk.explain(people().dprisk.hist("x", by="g", keys=KEYS, eps=1, **asked), "publication")
            assert beyond in " ".join(label.split())

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"by": "g"}, "needs the public list"),
            ({"by": "g", "keys": "private", "delta": 1e-6}, "hist needs the public list of its groups"),
            ({"by": "g", "keys": KEYS, "margins": True}, "margins of its bins alone"),
            ({"by": "g", "keys": KEYS, "bins": 1, "bounds": (0, 1)}, "two bins at least"),
        ],
    )
    def test_refused(self, options, words):
        with pytest.raises(ParameterError, match=words):
            people().dprisk.hist("x", **{"bins": [0, 1], "eps": 1, **options})


class TestDates:
    @pytest.mark.parametrize(("bins", "freq"), [("month", "MS"), ("MS", "MS"), ("quarter", "QS"), ("week", "W-MON")])
    def test_periods_of_the_calendar(self, data, bins, freq):
        """Dates beyond the bounds count in the first and the last of them."""
        table = data.hist("day", bins=bins, bounds=YEAR, **SURE)
        edges = pd.date_range("2024-01-01", "2025-01-07", freq=freq)
        edges = edges[: (edges <= "2024-12-31").sum() + 1]
        inside = people()["day"].clip(edges[0], edges[-1] - pd.Timedelta(days=1))
        wanted = pd.cut(inside, edges, right=False).value_counts(sort=False)
        rows = table.index if isinstance(table, pd.DataFrame) else table["day"].to_list()
        assert [*rows] == [*edges[:-1]]
        assert [*table["value"]] == wanted.tolist()

    def test_edges(self, data):
        edges = ["2024-01-01", "2024-03-01", pd.Timestamp("2024-12-30")]
        table = data.hist("day", bins=edges, by="g", keys=KEYS, **SURE)
        frame = people().query("'2024-01-01' <= day <= '2024-12-30'")  # the last bin holds both edges
        wanted = [
            ((frame["g"] == key) & ((frame["day"] >= "2024-03-01") == later)).sum()
            for key in KEYS
            for later in (False, True)
        ]
        assert [*table["value"]] == wanted

    def test_their_picture_has_dates(self):
        pytest.importorskip("matplotlib").use("Agg")
        frame = people()
        axes = pdrisk.plot(frame.dprisk.hist("day", bins="month", bounds=YEAR, eps=1))
        assert axes.get_xlabel().startswith("day")
        axes = pdrisk.plot(frame.dprisk.hist("day", bins=["2024-01-01", "2024-07-01", "2025-01-01"], eps=1))
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            "2024-01-01 to 2024-07-01", "2024-07-01 to 2025-01-01",
        ]  # fmt: skip

    def test_a_last_day_that_begins_a_month_has_its_month(self):
        table = people().dprisk.hist("day", bins="month", bounds=("2024-01-15", "2024-03-01"), **SURE)
        assert table.index.strftime("%Y-%m").tolist() == ["2024-01", "2024-02", "2024-03"]

    def test_within_declared_bounds(self):
        d = pdrisk.Dataset(people(), bounds={"day": YEAR})
        same = people().dprisk.hist("day", bins="month", bounds=YEAR, **SURE)
        pd.testing.assert_frame_equal(d.hist("day", bins="month", **SURE), same)

    def test_with_the_total(self):
        table = people().dprisk.hist("day", bins="quarter", bounds=YEAR, margins=True, **SURE)
        assert table["value"].tolist()[-1] == table["value"].tolist()[:-1] @ np.ones(4) == people()["day"].notna().sum()

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"bins": "monht", "bounds": YEAR}, "Did you mean 'month'?"),
            ({"bins": "month"}, "which are missing: pass bounds"),
            ({"bins": "month", "bounds": (1, 2)}, "the bounds are numbers"),
            ({"bins": "month", "bounds": "2024"}, "bounds must be a pair"),
            ({"bins": "month", "bounds": YEAR[:1]}, "bounds must be a pair"),
            ({"bins": "month", "bounds": YEAR[::-1]}, "the earlier one first"),
            ({"bins": "day", "bounds": ("2020-01-01", "2030-01-01")}, "more than 500"),
            ({"bins": "year", "bounds": YEAR}, "two bins at least"),
            ({"bounds": YEAR}, "bins of dates are"),
            ({"bins": [*YEAR], "bounds": YEAR}, "leave bounds out"),
            ({"bins": YEAR[:1]}, "must list 2 to 501 edges"),
            ({"bins": ["2024", "2024-02", "nonsense"]}, "takes dates without a time zone"),
            ({"bins": [pd.Timestamp("2024", tz="UTC"), "2025"]}, "takes dates without a time zone"),
            ({}, "bins of dates are"),
        ],
    )
    def test_refused(self, options, words):
        with pytest.raises((ParameterError, ColumnTypeError), match=words):
            people().dprisk.hist("day", eps=1, **options)
