"""Charts and styled tables: what is drawn are the published numbers, legible, and nothing of the curator's."""

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import ColumnTypeError, NotPublicError, ParameterError
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
        with pytest.raises(ParameterError, match="no noise intervals"):
            pdrisk.show(QUESTIONS["sql"](FRAME))
        with pytest.raises(ColumnTypeError):
            pdrisk.show(3)


class TestShow:
    """Values as `rounded` has them, grey where half of the interval is wider than the value."""

    @pytest.mark.parametrize("name", ["counts", "crosstab", "statistics"])
    def test_by_definition(self, name):
        table = QUESTIONS[name](FRAME)
        text = pdrisk.show(table).to_html()
        kept = pdrisk.rounded(table)
        kept = kept[["value", "low", "high"]] if "value" in kept else kept
        for number in kept.to_numpy(dtype=float).ravel().tolist():
            texts = {f">{number + 0.0:,.{digits}f}<" for digits in range(6)}
            assert any(each in text for each in texts), number

    def test_grey(self, noiseless):
        # At eps 0.1 the noise of a count reaches 30: 1,334 and 2,666 stay black, 0 turns grey in all three columns.
        text = pdrisk.show(QUESTIONS["counts"](FRAME)).to_html()
        style = text[: text.index("</style>")]
        assert style.count("_row2_col") == 3 and style.count("_row0_col") == style.count("_row1_col") == 0
        assert "#999999" in style
