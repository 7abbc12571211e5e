"""Charts and styled tables: what is drawn are the published numbers, legible, and nothing of the curator's."""

import math

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import ColumnTypeError, NotPublicError, ParameterError
from pdrisk._answer.tables.answer_table import wide_table
from pdrisk._answer.tables.quality import intervals
from seen import unreadable, words_of

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
SIZE = 4000
LONG = [f"municipality of ${at % 2} with a long name {at:02}" for at in range(50)]
FRAME = pd.DataFrame(
    {
        "x": np.arange(SIZE) % 100.0,
        "sex": np.where(np.arange(SIZE) % 3 == 0, "female", "male"),
        "year": 2010 + np.arange(SIZE) % 8,
        "day": pd.Timestamp("2020-01-31") + pd.to_timedelta(np.arange(SIZE) % 5 * 40, unit="D"),
        "town": np.array(LONG)[np.arange(SIZE) % 50],
    }
)
SEX = {"by": "sex", "keys": ["female", "male", "none"]}
BOUNDS = {"bounds": (0, 100), "eps": 0.1}


def by(*names):
    return {"by": list(names), "keys": {name: sorted(FRAME[name].unique().tolist()) for name in names}}


def days():
    return {"by": "day", "keys": sorted(FRAME["day"].unique())}


def segments(axes, along):
    """Ends of the drawn intervals along one axis."""
    found = []
    for collection in axes.collections:
        if hasattr(collection, "get_segments"):
            found += [tuple(sorted(segment[:, along])) for segment in collection.get_segments()]
    return np.array(sorted(found))


def ends(table):
    return np.array(sorted(zip(table["low"], table["high"], strict=True)))


QUESTIONS = {
    "one number": lambda frame: frame.dprisk.mean("x", **BOUNDS),
    "points": lambda frame: frame.dprisk.mean("x", **BOUNDS, **SEX),
    "counts": lambda frame: frame.dprisk.count(eps=0.1, **SEX),
    "two keys": lambda frame: frame.dprisk.mean("x", **BOUNDS, **by("year", "sex")),
    "days": lambda frame: frame.dprisk.sum("x", **BOUNDS, **days()),
    "fifty": lambda frame: frame.dprisk.mean("x", bounds=(0, 100), eps=1, **by("town")),
    "fifty by sex": lambda frame: frame.dprisk.count(eps=1, **by("town", "sex")),
    "three keys": lambda frame: frame.dprisk.count(eps=1, **by("year", "day", "sex")).iloc[:30],
    "statistics": lambda frame: frame.dprisk.agg({"x": ["mean", "std"]}, **BOUNDS, **SEX),
    "named": lambda frame: frame.dprisk.agg(mid=("x", "mean"), most=("x", "max"), **BOUNDS),
    "describe": lambda frame: frame.dprisk.describe("x", **BOUNDS),
    "crosstab": lambda frame: frame.dprisk.crosstab("year", "sex", eps=0.1, keys=by("year", "sex")["keys"]),
    "margins": lambda frame: frame.dprisk.crosstab(
        "year", "sex", eps=0.1, keys=by("year", "sex")["keys"], margins=True
    ),
    "shares": lambda frame: frame.dprisk.crosstab(
        "year", "sex", eps=0.1, keys=by("year", "sex")["keys"], margins=True, normalize="index"
    ),
    "pairs": lambda frame: frame.assign(y=frame["x"] % 7, z=frame["x"] % 11, w=frame["x"] % 13).dprisk.corr(
        ["x", "y", "z", "w"], eps=60, bounds=dict.fromkeys("xyzw", (0, 100))
    ),
    "bins": lambda frame: frame.dprisk.hist("x", eps=0.1, bins=[0, 10, 50, 100]),
    "medians": lambda frame: frame.dprisk.median("x", **BOUNDS, **SEX),
    "sql": lambda frame: pdrisk.sql(
        "SELECT sex, COUNT(*) AS n, AVG(x) AS mid FROM f GROUP BY sex", eps=1, bounds={"x": (0, 100)},
        keys={"sex": ["female", "male"]}, f=frame, risk_columns=True,
    ),
}  # fmt: skip


class TestLegible:
    """No text is cut off or lies on another one, whatever is asked."""

    @pytest.mark.parametrize("name", QUESTIONS)
    def test_every_kind_of_answer(self, name):
        assert unreadable(pdrisk.plot(QUESTIONS[name](FRAME)).figure) == []

    def test_long_labels_that_begin_alike_stay_apart(self):
        axes = pdrisk.plot(QUESTIONS["fifty"](FRAME))
        shown = [label.get_text() for label in axes.get_yticklabels()]
        assert len(set(shown)) == 50 and max(map(len, shown)) <= 24

    def test_on_axes_of_the_caller(self):
        figure = matplotlib.figure.Figure(figsize=(5, 3), layout="constrained")
        axes = figure.add_subplot()
        assert pdrisk.plot(QUESTIONS["fifty"](FRAME), ax=axes) is axes
        assert 1 < len(axes.get_yticklabels()) < 25 and unreadable(figure) == []


class TestDrawn:
    """Intervals are those of the table, and values those that were published."""

    def test_points(self):
        table = QUESTIONS["points"](FRAME)
        axes = pdrisk.plot(table)
        assert segments(axes, 0) == pytest.approx(ends(table))
        drawn = [x for line in axes.lines for x in np.atleast_1d(line.get_xdata()) if line.get_linestyle() == "None"]
        assert set(table["value"]) <= set(drawn)
        assert QUESTIONS["one number"](FRAME).plot().get_xlabel() == "mean(x), with 95 % noise intervals"

    def test_bars_begin_at_zero(self):
        table = QUESTIONS["counts"](FRAME)
        axes = pdrisk.plot(table)
        assert [bar.get_width() for bar in axes.patches] == table["value"].tolist()
        assert {bar.get_x() for bar in axes.patches} == {0}
        assert segments(axes, 0) == pytest.approx(ends(table))

    def test_a_line_stands_at_its_years(self):
        table = QUESTIONS["two keys"](FRAME)
        axes = pdrisk.plot(table)
        curves = [line for line in axes.lines if line.get_label() in ("female", "male")]
        assert [line.get_xdata().tolist() for line in curves] == [list(range(2010, 2018))] * 2
        assert curves[0].get_ydata().tolist() == table.xs("female", level="sex")["value"].tolist()
        assert segments(axes, 1) == pytest.approx(ends(table))

    def test_bars_of_unequal_bins_have_the_area_of_their_number(self):
        table = QUESTIONS["bins"](FRAME)
        axes = pdrisk.plot(table)
        area = [bar.get_width() * bar.get_height() for bar in axes.patches]
        assert area == pytest.approx(table["value"].tolist())
        assert axes.get_ylabel().replace("\n", " ") == "count per unit of x"

    def test_a_crosstab_has_the_intervals_of_its_cells(self):
        table = QUESTIONS["crosstab"](FRAME)
        lines = pdrisk.plot(table, kind="points")
        reach = segments(lines, 0)
        # The noise of a count is symmetric, and no cell is near 0: each value is the middle of its own interval.
        assert len(reach) == 16 and np.sort(reach.mean(axis=1)) == pytest.approx(np.sort(table.to_numpy().ravel()))

    @pytest.mark.parametrize("form", [{"margins": True}, {"normalize": ["year"]}, {"normalize": "all"}])
    def test_a_crosstab_of_margins_or_shares_has_the_intervals_of_the_long_table(self, form):
        table = FRAME.dprisk.count(eps=0.1, **by("year", "sex"), **form)
        wide = wide_table(table)
        drawn = segments(pdrisk.plot(wide, kind="bars"), 0)
        assert drawn == pytest.approx(ends(table)) and np.isfinite(drawn).all()
        for name, cells in zip(("value", "low", "high"), intervals(wide), strict=True):
            assert cells.tolist() == [[table.loc[(row, column), name] for column in wide] for row in wide.index]
        assert "not known" in pdrisk.plot(wide.iloc[:2]).get_xlabel()  # of a part it is not known which

    def test_shares_are_no_whole_numbers(self):
        table = FRAME.dprisk.count(eps=1, **by("year", "sex"), normalize="all")
        axes = pdrisk.plot(table, kind="bars")
        shown = {text.get_text() for text in words_of(axes.figure)}
        assert axes.get_xlabel() == "share, with 95 % noise intervals" and len(axes.patches) == 16
        assert all(any(f"{value:.{digits}f}" in shown for digits in (3, 4)) for value in pdrisk.rounded(table)["value"])

    @pytest.mark.parametrize("name", ["points", "two keys", "crosstab", "margins", "shares", "statistics", "bins"])
    def test_keys_that_have_become_columns_are_still_keys(self, name):
        table = QUESTIONS[name](FRAME)
        axes, other = pdrisk.plot(table), pdrisk.plot(table.reset_index())
        assert [text.get_text() for text in words_of(axes.figure, ticks=True)] == [
            text.get_text() for text in words_of(other.figure, ticks=True)
        ]

    def test_a_difference_of_releases(self):
        change = FRAME.dprisk.mean("x", **BOUNDS) - FRAME.dprisk.mean("x", where="x > 20", **BOUNDS)
        axes = change.plot()
        assert segments(axes, 0) == pytest.approx(np.array([change.interval()]))
        assert axes.get_xlabel() == "noisy value, with 95 % noise intervals"

    @pytest.mark.parametrize(("name", "kind"), [("bar", "bars"), ("barh", "bars"), ("hist", "histogram")])
    def test_kinds_by_the_names_that_pandas_has(self, name, kind):
        table = QUESTIONS["bins"](FRAME)
        widths = [[bar.get_width() for bar in pdrisk.plot(table, kind=each).patches] for each in (name, kind)]
        assert widths[0] == widths[1]

    def test_numbers_stay_out_of_the_axes_beside_them(self):
        for layout, count in ((None, 0), ("constrained", 3)):
            figure = matplotlib.figure.Figure(layout=layout)
            left, _ = figure.subplots(1, 2)
            assert len(pdrisk.plot(QUESTIONS["points"](FRAME), ax=left).texts) == count

    def test_numbers_are_rounded_to_their_noise(self):
        table = QUESTIONS["counts"](FRAME)
        shown = [text.get_text() for text in words_of(pdrisk.plot(table).figure)]
        assert set(shown) >= {f"{value:,}" for value in pdrisk.rounded(table)["value"]}

    def test_what_has_no_interval_is_hollow(self):
        axes = pdrisk.plot(QUESTIONS["medians"](FRAME))
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert sum(len(line.get_xdata()) for line in hollow) == 3 and "not known" in axes.get_xlabel()

    def test_missing_values_are_dashes(self):
        table = QUESTIONS["counts"](FRAME).astype({"value": "Int64"})
        table.loc["female", ["value", "low", "high"]] = pd.NA
        axes = pdrisk.plot(table)
        assert len(axes.patches) == 2 and "–" in [text.get_text() for text in words_of(axes.figure)]

    def test_one_column_of_sql(self):
        table = QUESTIONS["sql"](FRAME)[["sex", "mid", "mid_low", "mid_high"]]
        drawn = segments(pdrisk.plot(table), 0)
        assert drawn == pytest.approx(np.array(sorted(zip(table["mid_low"], table["mid_high"], strict=True))))

    @pytest.mark.parametrize("form", ["polars", "arrow"])
    def test_tables_of_other_libraries(self, form):
        table = pdrisk.Dataset(FRAME, as_=form).mean("x", **BOUNDS, **SEX)
        drawn = pdrisk.plot(table)
        pairs = sorted(zip(*(table[name].to_numpy().tolist() for name in ("low", "high")), strict=True))
        assert segments(drawn, 0) == pytest.approx(np.array(pairs))
        assert [label.get_text() for label in drawn.get_yticklabels()] == ["female", "male", "none"]


class TestCurator:
    """Nothing that depends on the data beyond the noisy values is drawn."""

    def test_columns_of_the_curator_change_nothing(self):
        table = FRAME.dprisk.mean("x", curator=True, **BOUNDS, **SEX)
        bare = pdrisk.public(table)
        axes, other = pdrisk.plot(table), pdrisk.plot(bare)
        assert [text.get_text() for text in words_of(axes.figure, ticks=True)] == [
            text.get_text() for text in words_of(other.figure, ticks=True)
        ]
        assert (segments(axes, 0) == segments(other, 0)).all()
        assert "two_worlds" not in pdrisk.show(table).to_html()

    def test_computed_from_bounds_of_the_data(self):
        one = FRAME.dprisk.mean("x", eps=1, bounds="column")
        with pytest.raises(NotPublicError, match="bounds from the data"):
            (one - FRAME.dprisk.mean("x", **BOUNDS)).plot()

    def test_bounds_from_the_data(self):
        table = FRAME.dprisk.mean("x", eps=1, bounds="column", **SEX)
        for function in (pdrisk.plot, pdrisk.show):
            with pytest.raises(NotPublicError, match="bounds from the data"):
                function(table)


class TestRefused:
    @pytest.mark.parametrize(
        ("answer", "options", "error", "words"),
        [
            (FRAME, {}, ParameterError, "does not say what was asked"),
            (3, {}, ColumnTypeError, "a release or a table that pdrisk returned"),
            (None, {"kind": "pie"}, ParameterError, "kind can be 'points', 'bars'"),
            (None, {"kind": 1}, ParameterError, "kind can be"),
            (None, {"kind": "histogram"}, ParameterError, "needs bins"),
            (None, {"ax": 1}, ColumnTypeError, "ax is an Axes of matplotlib, not of type int"),
        ],
    )
    def test_arguments(self, answer, options, error, words):
        with pytest.raises(error, match=words):
            pdrisk.plot(QUESTIONS["counts"](FRAME) if answer is None else answer, **options)

    def test_no_rows(self):
        with pytest.raises(ParameterError, match="no rows"):
            pdrisk.plot(QUESTIONS["counts"](FRAME).iloc[:0])

    def test_without_intervals(self):
        with pytest.raises(ParameterError, match=r"no noise intervals: ask pdrisk\.sql with risk_columns=True"):
            pdrisk.show(QUESTIONS["sql"](FRAME)[["sex", "n", "mid"]])
        with pytest.raises(ColumnTypeError, match=r"a pandas table of pdrisk, not one of type builtins\.int"):
            pdrisk.show(3)
        with pytest.raises(ColumnTypeError, match="this is a release: print it"):
            pdrisk.show(QUESTIONS["one number"](FRAME))
        with pytest.raises(ParameterError, match="does not say what was asked"):
            pdrisk.show(FRAME)


class TestShow:
    """Values as `rounded` has them, grey where half of the interval is wider than the value."""

    @pytest.mark.parametrize("name", ["counts", "crosstab", "statistics", "margins", "shares"])
    def test_by_definition(self, name):
        table = QUESTIONS[name](FRAME)
        text = pdrisk.show(table).to_html()
        kept = pdrisk.rounded(table)
        kept = kept[["value", "low", "high"]] if "value" in kept else kept
        for number in kept.to_numpy(dtype=float).ravel().tolist():
            texts = {f">{number + 0.0:,.{digits}f}<" for digits in range(6)}
            assert any(each in text for each in texts), number

    def test_columns_of_sql_by_their_own_intervals(self):
        table = QUESTIONS["sql"](FRAME)
        text = pdrisk.show(table).to_html()
        steps = [s * 10.0**p for p in range(3, -9, -1) for s in (5, 2, 1)]
        for name in ("n", "mid"):
            for value, low, high in table[[name, f"{name}_low", f"{name}_high"]].to_numpy(dtype=float).tolist():
                step = next(each for each in steps if each <= (high - low) / 2 / 1.96 / 2 * (1 + 1e-9))
                step = max(step, 1.0) if name == "n" else step
                digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
                for end, near in ((value, round), (low, math.floor), (high, math.ceil)):
                    assert f">{near(end / step) * step:,.{digits}f}<" in text

    def test_keys_that_have_become_columns(self):
        table = QUESTIONS["crosstab"](FRAME)
        assert pdrisk.show(table.reset_index()).to_string() == pdrisk.show(table).to_string()

    def test_grey(self, noiseless):
        # At eps 0.1 the noise of a count reaches 30: 1,334 and 2,666 stay black, 0 turns grey in all three columns.
        text = pdrisk.show(QUESTIONS["counts"](FRAME)).to_html()
        style = text[: text.index("</style>")]
        assert style.count("_row2_col") == 3 and style.count("_row0_col") == style.count("_row1_col") == 0
        assert "#999999" in style
