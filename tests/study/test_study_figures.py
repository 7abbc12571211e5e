"""The figures of a study: their numbers by brute force, their twins in text, and whether they can be read."""

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import pdrisk
from pdrisk import ColumnTypeError, ParameterError
from pdrisk._core.risks.risk import posterior
from pdrisk._pictures.canvas import SIZE, WIDTH
from pdrisk.study import figures, texts
from pdrisk.study.page import svg_of
from pdrisk.study.points import by_epsilon, by_proportion, by_query, noise_and_risk, unit_of
from seen import lines_of, unreadable, words_of

EPS = [0.1, 1.0, 10.0]
SIZES = {2: 21, 5: 4, 20: 1}  # and how often
STATISTICS = ["mean", "median", "min", "max", "var"]
RISKS = ["worst_case", "two_worlds", "many_worlds", "identifiability"]
UNITS = {"km": "km", "hours": "h"}


def study(columns: tuple[str, ...] = ("km", "hours"), eps: list[float] = EPS) -> pd.DataFrame:
    """A small study, put together of assessments."""
    draw = np.random.default_rng(7)
    people = pd.DataFrame({name: draw.lognormal(at, 1, 20).round(1) for at, name in enumerate(columns, 1)})
    bounds = dict.fromkeys(columns, (0.0, 100.0))
    parts = []
    for size, times in SIZES.items():
        for repetition in range(times):
            sample = people.sample(size, random_state=draw.integers(2**31))
            table = sample.dprisk.assess(list(columns), STATISTICS, eps=eps, bounds=bounds, mechanism="laplace")
            parts.append(table.assign(sample_size=size, proportion=size / 20, repetition=repetition))
    return pd.concat(parts, ignore_index=True)


@cache
def usual() -> pd.DataFrame:
    """The study that most tests look at; none of them changes it."""
    return study()


FIGURES: dict[str, dict[str, Any]] = {
    "risk_by_query": {},
    "risk_by_proportion": {},
    "risk_by_epsilon": {},
    "noise_against_risk": {"units": UNITS},
}


def quantile(rows: pd.DataFrame, metric: str, level: float) -> float:
    """Every sample size and eps weighs the same: each is copied until all are equally long."""
    cells = [cell[metric].tolist() for _, cell in rows.groupby(["sample_size", "eps"])]
    longest = math.lcm(*map(len, cells))
    values = sorted(value for cell in cells for value in cell * (longest // len(cell)))
    return values[max(math.ceil(round(level * len(values), 9)), 1) - 1]


class TestPoints:
    """What is shown is an actual sample's: quantiles by their definition."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("metric", RISKS)
    def test_by_query(self, metric: str) -> None:
        for panel, column in zip(by_query(usual(), metrics=metric), ["km", "hours"], strict=True):
            assert (panel.title, panel.metric) == (column, metric)
            assert panel.start == (0.5 if metric in RISKS[:2] else 1 / 20)
            assert panel.points["statistic"].tolist() == STATISTICS
            for row in panel.points.itertuples():
                own = usual()[(usual()["column"] == column) & (usual()["statistic"] == row.statistic)]
                expected = [quantile(own, metric, level) for level in (0, 0.25, 0.5, 0.75, 1)]
                assert [row.lowest, row.lower, row.median, row.upper, row.highest] == expected

    def test_a_size_with_few_samples_weighs_as_much(self) -> None:
        often = pd.concat([usual(), *[usual()[usual()["sample_size"] == 20]] * 3], ignore_index=True)
        for one, other in zip(by_query(usual()), by_query(often), strict=True):
            pd.testing.assert_frame_equal(one.points, other.points)

    @pytest.mark.slow
    def test_by_proportion(self) -> None:
        panels = by_proportion(usual(), statistic="max", metrics=["two_worlds"])
        assert [panel.title for panel in panels] == ["km", "hours"]
        for panel in panels:
            assert len(panel.points) == 9
            for row in panel.points.itertuples():
                own = usual()[
                    (usual()["column"] == panel.title)
                    & (usual()["statistic"] == "max")
                    & (usual()["eps"] == row.eps)
                    & (usual()["sample_size"] == row.sample_size)
                ]
                assert row.proportion == row.sample_size / 20
                assert [row.lower, row.median, row.upper] == [quantile(own, "two_worlds", q) for q in (0.05, 0.5, 0.95)]

    @pytest.mark.parametrize(
        ("proportion", "size"), [(None, 20), (1, 20), (0.7, 20), (0.5, 5), (0.1, 2), (0.625, 20), (1e-9, 2)]
    )
    def test_one_size(self, proportion: float | None, size: int) -> None:
        for panels in (
            by_epsilon(usual(), proportion=proportion),
            noise_and_risk(usual(), proportion=proportion, units=UNITS),
        ):
            assert {int(each) for panel in panels for each in panel.points["sample_size"]} == {size}

    def test_noise_and_risk(self) -> None:
        panels = noise_and_risk(usual(), units=UNITS)
        assert [(panel.title, panel.unit) for panel in panels] == [
            ("km", "km"), ("km", "km²"), ("hours", "h"), ("hours", "h²"),
        ]  # fmt: skip
        assert panels[1].points["statistic"].unique().tolist() == ["var"]
        whole = usual()[(usual()["sample_size"] == 20) & (usual()["column"] == "km")].set_index(["statistic", "eps"])
        for row in [*panels[0].points.itertuples(), *panels[1].points.itertuples()]:
            assert row.noise95 == whole.loc[(row.statistic, row.eps), "noise95"]
            assert row.median == whole.loc[(row.statistic, row.eps), "two_worlds"]
            assert row.worst_case == whole.loc[(row.statistic, row.eps), "worst_case"]

    @pytest.mark.parametrize(
        ("statistic", "units", "expected"),
        [
            ("mean", {"km": "km"}, "km"),
            ("var(ddof=0)", {"km": "km"}, "km²"),
            ("std", None, "its unit"),
            ("var", {}, "its unit, squared"),
            ("count", {"km": "km"}, "records"),
        ],
    )
    def test_units(self, statistic: str, units: dict | None, expected: str) -> None:
        assert unit_of(statistic, "km", units) == expected

    @pytest.mark.slow
    def test_six_eps_of_many(self) -> None:
        many = study(("km",), [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 50])
        shown = sorted(by_proportion(many)[0].points["eps"].unique())
        assert len(shown) == 6
        assert (shown[0], shown[-1]) == (0.01, 50)

    def test_no_curve_between_two_columns(self) -> None:
        mixed = usual().sample(frac=1, random_state=1)
        for panel in by_epsilon(mixed):
            own = usual()[(usual()["column"] == panel.title) & (usual()["sample_size"] == 20)]
            assert sorted(panel.points["median"]) == sorted(own["two_worlds"])

    def test_labels_that_are_no_text(self) -> None:
        renamed = usual().assign(column=usual()["column"].map({"km": 1, "hours": ("a", "b")}))
        assert [panel.title for panel in by_epsilon(renamed)] == ["1", "('a', 'b')"]


class Copied:
    """Counts how often it is copied."""

    times = 0

    def __deepcopy__(self, memo: dict) -> "Copied":
        type(self).times += 1
        return self


def wide(columns: int) -> pd.DataFrame:
    """A study of many columns."""
    own = usual()[(usual()["column"] == "km") & (usual()["repetition"] == 0)]
    return pd.concat([own.assign(column=f"c{at}") for at in range(columns)], ignore_index=True)


class TestManyColumns:
    """A figure holds the first dozen columns and says so; what a study says of itself is not copied at each step."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("name", FIGURES)
    @pytest.mark.parametrize("module", [figures, texts])
    def test_attrs_are_not_copied(self, module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        result = usual().copy()
        result.attrs["study"] = Copied()
        monkeypatch.setattr(Copied, "times", 0)
        getattr(module, name)(result)
        assert Copied.times <= 3
        assert isinstance(result.attrs["study"], Copied)

    @pytest.mark.slow
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("show", [by_query, by_proportion, by_epsilon, noise_and_risk])
    def test_the_first_dozen(self, show: Callable[..., Any]) -> None:
        for columns, part in ((12, ""), (1_000, "the first 12 of 1,000 columns; for others pass their rows")):
            panels = show(wide(columns))
            assert list(dict.fromkeys(panel.title for panel in panels)) == [f"c{at}" for at in range(12)]
            assert {panel.part for panel in panels} == {part}

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("name", FIGURES)
    def test_says_so(self, name: str) -> None:
        assert "\n(the first 12 of 13 columns; for others pass their rows)\n" in getattr(texts, name)(wide(13))
        assert "first 12" not in getattr(texts, name)(wide(12))

    @pytest.mark.slow
    @pytest.mark.parametrize("name", FIGURES)
    def test_says_so_in_the_figure(self, name: str) -> None:
        assert "the first 12 of 13 columns; for others pass their rows" in lines_of(getattr(figures, name)(wide(13)))

    def test_no_value_of_a_metric_is_no_panel_row(self) -> None:
        for panel in by_query(usual().assign(many_worlds=np.nan), metrics="many_worlds"):
            assert panel.points.columns.tolist() == ["statistic", "lowest", "lower", "median", "upper", "highest"]
            assert panel.points.empty


class TestRefusals:
    """What is no result, and what a panel cannot show."""

    @pytest.mark.parametrize("name", FIGURES)
    @pytest.mark.parametrize("module", [figures, texts])
    def test_no_result(self, module: Any, name: str) -> None:
        show = getattr(module, name)
        with pytest.raises(ColumnTypeError, match="frame that a study returned"):
            show([1, 2])
        with pytest.raises(ParameterError, match="the result has no sample_size, noise95"):
            show(usual().drop(columns=["sample_size", "noise95"]))
        with pytest.raises(ParameterError, match="has no rows"):
            show(usual().iloc[:0])

    @pytest.mark.parametrize(
        ("show", "options", "words"),
        [
            (by_query, {"metrics": "twoworlds"}, "unknown metric"),
            (by_query, {"metrics": []}, "at least one metric"),
            (by_query, {"eps": 3}, "has no eps 3; it has 0.1, 1, 10"),
            (by_proportion, {"statistic": "sum"}, "no statistic 'sum'; it has mean, median"),
            (by_epsilon, {"proportion": 0}, "above 0 and at most 1"),
            (by_epsilon, {"proportion": 20}, "above 0 and at most 1"),
        ],
    )
    def test_options(self, show: Callable[..., Any], options: dict[str, Any], words: str) -> None:
        with pytest.raises(ParameterError, match=words):
            show(usual(), **options)

    @pytest.mark.slow
    def test_too_many_curves(self) -> None:
        eight = pd.concat([usual().assign(statistic=f"quantile(0.{at})") for at in range(1, 9)])
        with pytest.raises(ParameterError, match="holds 6 curves"):
            by_epsilon(eight)
        with pytest.raises(ParameterError, match="at most so many eps"):
            by_proportion(study(("km",), [float(at) for at in range(1, 9)]), eps=list(range(1, 9)))


def cells(text: str, row: str) -> list[list[str]]:
    """The cells of rows that begin with some words."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip().startswith(row)]


class TestTwins:
    """Every number of a figure stands in its text."""

    @pytest.mark.parametrize("name", FIGURES)
    def test_the_same_options(self, name: str) -> None:
        one, other = getattr(figures, name), getattr(texts, name)
        assert one.__kwdefaults__ == other.__kwdefaults__
        assert {k: v for k, v in one.__annotations__.items() if k != "return"} == {
            k: v for k, v in other.__annotations__.items() if k != "return"
        }

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("name", FIGURES)
    def test_every_mark(self, name: str) -> None:
        options = FIGURES[name]
        figure, text = getattr(figures, name)(usual(), **options), getattr(texts, name)(usual(), **options)
        shown = set(text.replace(",", "").split())
        drawn = [
            float(value)
            for axes in figure.axes
            for line in axes.lines
            if line.get_marker() not in ("None", None) and line.get_transform().contains_branch(axes.transData)
            for value in np.ravel(line.get_xdata() if name == "risk_by_query" else line.get_ydata())
        ]
        assert len(drawn) >= 20
        assert {pdrisk._answer.words.probability(value) for value in drawn} <= shown | {"> 0.9999"}

    @pytest.mark.slow
    def test_spread_of_a_query(self) -> None:
        text = texts.risk_by_query(usual(), metrics="two_worlds")
        figure = figures.risk_by_query(usual(), metrics="two_worlds")
        ends = [
            segment[:, 0].tolist() for each in figure.axes[0].findobj(LineCollection) for segment in each.get_segments()
        ]
        rows = cells(text, "max")
        row = by_query(usual(), metrics="two_worlds")[0].points.iloc[3]
        assert [row.lowest, row.highest] in ends
        assert [row.lower, row.upper] in ends
        assert rows[0][:6] == ["max", *map(pdrisk._answer.words.probability, row.iloc[1:])]

    def test_noise_and_unit(self) -> None:
        text = texts.noise_against_risk(usual(), units=UNITS)
        assert "noise ±, km²" in text
        # the mean in [0, 100] at eps .1: 50 ln 20 / .1 = 1497.87; worst case .52498
        assert ["mean", "0.1", "100 %", "20", "1,497.87", "0.525"] in [row[:6] for row in cells(text, "mean")]

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("name", FIGURES)
    def test_says_that_it_is_the_curators(self, name: str) -> None:
        figure, text = getattr(figures, name)(usual()), getattr(texts, name)(usual())
        assert "curator only: computed from the data, do not publish" in text
        assert any("curator only" in shown.get_text() for shown in words_of(figure))

    @pytest.mark.slow
    def test_certainty_is_not_claimed(self) -> None:
        assert "> 0.9999" in texts.risk_by_epsilon(study(("km",), [0.1, 50.0]))


LONG = {"km": "distance_to_the_place_of_work_in_km_one_way", "hours": "$x^$ {y}"}


class TestSeen:
    """In a column of print, 8 pt, no word cut off or on another, and in grey."""

    @pytest.mark.slow
    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("name", FIGURES)
    @pytest.mark.parametrize(
        "result",
        [
            usual,
            lambda: study(("km",), [1e-6, 1e-3, 1.0, 1e3]),
            lambda: study(("km",), [1.0]),
            lambda: usual().assign(column=usual()["column"].map(LONG)),
            lambda: (
                usual()
                .assign(statistic=usual()["statistic"].replace("max", "quantile(0.975)"))
                .replace({"statistic": {"mean": "max"}})
            ),
            lambda: usual().assign(column=usual()["column"].map({"km": "W" * 60, "hours": "WEG_ZUR_ARBEIT_" * 3})),
            lambda: usual().assign(noise95=usual()["noise95"] * 1e9),
            lambda: usual().assign(column=usual()["column"].map({"km": "通勤距離" * 20, "hours": "労働\n時間"})),
            lambda: wide(14),
        ],
        ids=[
            "usual",
            "far eps",
            "one eps",
            "long names",
            "long query",
            "wide letters",
            "large numbers",
            "no such letters",
            "wide",
        ],
    )
    def test_can_be_read(self, name: str, result: Callable[[], pd.DataFrame]) -> None:
        figure = getattr(figures, name)(result())
        assert unreadable(figure) == []
        assert {text.get_fontsize() for text in words_of(figure, ticks=True)} == {SIZE}
        assert figure.get_size_inches()[0] == WIDTH

    @pytest.mark.slow
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("factor", [1, 2, 10, 1000, 10**6])
    def test_labels_of_powers_stay_apart(self, factor) -> None:
        """By the height of a letter at least: side by side 100,000 and 10,000 would be one number."""
        frame = pd.DataFrame({"x": np.arange(1, 200.0) ** 2 * factor})
        found = pdrisk.study.run(
            frame, "x", ["mean", "max"], eps=[0.003, 0.1, 100], sample_sizes=[1.0], repetitions=1, progress=False
        )
        figure = figures.noise_against_risk(found)
        figure.draw_without_rendering()
        for axes in figure.axes:
            shown = [label for label in axes.get_xticklabels() if label.get_text()]
            boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
            assert len(boxes) > 1
            for one, other in itertools.pairwise(boxes):
                assert other.x0 - one.x1 > 0.8 * one.height

    @pytest.mark.parametrize("name", FIGURES)
    def test_each_row_has_labels_at_its_ticks(self, name: str) -> None:
        figure = getattr(figures, name)(usual())
        figure.draw_without_rendering()
        for axes in figure.axes:
            assert sum(bool(label.get_text()) and label.get_visible() for label in axes.get_xticklabels()) > 1

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", FIGURES)
    def test_letters_that_the_font_lacks(self, name: str, tmp_path) -> None:
        result = usual().assign(column=usual()["column"].replace("km", "通勤"))
        figure, text = getattr(figures, name)(result), getattr(texts, name)(result)
        figure.savefig(tmp_path / "figure.png")  # without a warning
        heads = ("max of □□", "max of hours") if name == "risk_by_proportion" else ("□□", "hours")
        assert {*heads, "□: a letter that this font lacks"} <= lines_of(figure)
        assert "通勤" in text
        assert "□" not in text
        assert not any("□" in each.get_text() for each in words_of(getattr(figures, name)(usual())))

    @pytest.mark.slow
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("metric", RISKS)
    def test_every_metric_begins_at_its_prior(self, metric: str) -> None:
        lowest = {figures.risk_by_epsilon(usual(), metric=metric).axes[0].get_ylim()[0]}
        lowest |= {figures.risk_by_proportion(usual(), metrics=metric).axes[0].get_ylim()[0]}
        lowest |= {figures.risk_by_query(usual(), metrics=metric).axes[0].get_xlim()[0]}
        assert lowest == {0.5 if metric in RISKS[:2] else 1 / 20}
        assert unreadable(figures.risk_by_query(usual(), metrics=metric)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("metric", RISKS)
    def test_panels_above_one_another_share_the_labels_of_one_scale(self, metric: str) -> None:
        # Excesses of 1e-6 and of 0.1: panels of their own would begin at other powers of ten.
        result = study(("km", "hours", "days"))
        result.loc[result["column"] == "hours", "two_worlds"] = 0.5 + (result["two_worlds"] - 0.5) / 1e5
        drawn = figures.risk_by_query(result, metrics=[metric])
        scales = {
            (
                axes.get_xlim(),
                tuple(axes.transData.transform([(tick, 0.0) for tick in axes.get_xticks()])[:, 0].round(3)),
            )
            for axes in drawn.axes
        }
        assert len(drawn.axes) == 3 and len(scales) == 1

    @pytest.mark.slow
    def test_curves_of_eps_get_darker(self) -> None:
        axes = figures.risk_by_proportion(usual()).axes[0]
        lines = [line for line in axes.lines if line.get_transform().contains_branch(axes.transData)]
        dark = [sum(to_rgb(line.get_color())) for line in lines]
        assert dark == sorted(dark, reverse=True)
        assert len(set(dark)) == 3

    @pytest.mark.slow
    def test_queries_differ_in_line_and_mark(self) -> None:
        axes = figures.risk_by_epsilon(usual()).axes[0]
        marks = [line.get_marker() for line in axes.lines if line.get_marker() != "None"]
        assert len(set(marks)) == 5
        assert len({str(line._dash_pattern) for line in axes.lines if line.get_marker() == "None"}) >= 5

    def test_between_eps_a_curve_is_exact(self) -> None:
        whole = usual()[(usual()["sample_size"] == 20) & (usual()["column"] == "km")]
        axes = figures.risk_by_epsilon(whole).axes[0]
        curves = [line for line in axes.lines if len(line.get_xdata()) > 100]
        assert len(curves) == 1 + len(STATISTICS)
        shares = [1.0, *(whole["local_sensitivity"] / whole["global_sensitivity"])[::3]]
        for curve, share in zip(curves, shares, strict=True):
            assert curve.get_ydata() == pytest.approx(posterior(share * np.asarray(curve.get_xdata())))

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", FIGURES)
    def test_a_figure_by_itself(self, name: str, tmp_path) -> None:
        figure = getattr(figures, name)(usual())
        assert isinstance(figure, Figure)
        figure.savefig(tmp_path / "figure.svg")
        assert (tmp_path / "figure.svg").stat().st_size > 5_000

    @pytest.mark.slow
    def test_several_on_one_page(self) -> None:
        parts = {name: svg_of(getattr(figures, name)(usual()), name) for name in FIGURES}
        ids, asked = [], set()
        for name, svg in parts.items():
            for tag in ET.fromstring(svg).iter():
                ids += [tag.attrib["id"]] if "id" in tag.attrib else []
                for key, value in tag.attrib.items():
                    linked = [value[1:]] if key.endswith("href") and value.startswith("#") else []
                    linked += re.findall(r"url\(#([^)]*)\)", value)
                    assert all(each.startswith(f"{name}-") for each in linked)
                    asked |= set(linked)
        assert len(set(ids)) == len(ids) > 500
        assert len(asked) > 50
        assert asked <= set(ids)

    @pytest.mark.slow
    def test_labels_stay_as_they_are_on_a_page(self) -> None:
        odd = "<g id='figure_1'> url(#a)"
        with rc_context({"svg.fonttype": "none"}):
            svg = svg_of(figures.risk_by_epsilon(usual().assign(column=odd)), "odd")
        assert odd in "".join(ET.fromstring(svg).itertext())

    @pytest.mark.slow
    def test_the_real_study(self) -> None:
        survey = pdrisk.datasets.soep_like(missing="nan")
        result = pdrisk.study.run(survey, ["distance", "income"], sample_sizes=[50, 1.0], repetitions=5, progress=False)
        for name in FIGURES:
            assert unreadable(getattr(figures, name)(result)) == []
            assert "income" in getattr(texts, name)(result)
