"""Pictures of a release: what they show is true, can be read, and stands in words too."""

import math
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure

from pdrisk import NotPublicError, ParameterError
from pdrisk._answer import pictures
from pdrisk._answer.words import times_right
from pdrisk._core.risks.risk import posterior
from pdrisk._pictures.canvas import COLOURS, DASHES, MARKERS, SIZE, WIDTH, apart, legible, shortened
from seen import marks, numbers, unreadable, words_of
from test_explain import FORBIDDEN, release

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
EPS = (1e-12, 0.001, 0.01, 0.1, 0.5, 1, 2, 5, 9.22, 9.3, 10, 20, 1234.5678)
WORLDS = ((133.45, 337.0), (0.5, 337.0), (3370.0, 33.7), (0.0, 1.0), (1e-9, 4e-9), (2.7e6, 1.35e6), (2e4, 2e4))


@lru_cache
def drawn(kind: str, *given: float) -> tuple[Figure, str]:
    unit = {"unit": "km"} if kind == "two_worlds" else {}
    return getattr(pictures, kind)(*given, **unit), getattr(pictures, f"{kind}_text")(*given, **unit)


CASES = [("icons", eps) for eps in EPS] + [("risk", eps) for eps in EPS] + [("two_worlds", *each) for each in WORLDS]


@pytest.mark.parametrize("case", CASES, ids=str)
class TestEveryPicture:
    """Fits a column, 8 pt, no word cut or on another, the same in words, no forbidden word."""

    @pytest.mark.sampled(99)
    def test_can_be_read(self, case: tuple) -> None:
        figure, _ = drawn(*case)
        assert figure.get_size_inches()[0] == WIDTH
        assert unreadable(figure) == []
        assert {text.get_fontsize() for text in words_of(figure)} == {SIZE}

    @pytest.mark.sampled(3)
    def test_no_sign_is_cut_off(self, case: tuple) -> None:
        figure, _ = drawn(*case)
        figure.draw_without_rendering()
        parts = [axes.get_tightbbox() for axes in figure.axes] + [each.get_window_extent() for each in marks(figure)]
        for box in parts:
            assert min(box.x0, box.y0) >= 0
            assert box.x1 <= figure.bbox.x1
            assert box.y1 <= figure.bbox.y1

    @pytest.mark.sampled(3)
    def test_every_number_stands_in_the_words(self, case: tuple) -> None:
        figure, text = drawn(*case)
        for shown in words_of(figure):
            assert numbers(shown.get_text()) <= numbers(text)

    @pytest.mark.sampled(5)
    def test_words_that_are_not_used(self, case: tuple) -> None:
        figure, text = drawn(*case)
        assert not FORBIDDEN.search(text)
        assert not any(FORBIDDEN.search(shown.get_text()) for shown in words_of(figure, ticks=True))

    def test_says_who_may_see_it(self, case: tuple) -> None:
        figure, text = drawn(*case)
        said = " ".join(shown.get_text() for shown in words_of(figure))
        secret = case[0] == "two_worlds"
        assert ("curator only" in said) is ("curator only" in text) is secret


class TestIcons:
    """A hundred signs of three kinds that differ in colour, shape and filling, as many of each as it says."""

    @pytest.mark.parametrize("eps", [0.5, 1, 2, 4])
    def test_counts(self, eps: float) -> None:
        times, out_of = times_right(float(posterior(eps)))
        assert out_of == 100
        array = pictures.icons_text(eps).split("\n", 1)[1].split("right anyway")[0]
        counts = {sign: array.count(sign) for sign in "o#."}
        assert counts == {"o": 50 + 1, "#": times - 50, ".": 100 - times}  # and one o as the key
        figure = pictures.icons(eps)
        drawn = sorted(len(each.get_offsets()) for each in marks(figure))
        assert drawn == sorted([50, times - 50, 100 - times, 1, 1, 1])  # and a key for each

    @given(st.floats(0.001, 12))
    def test_signs_add_up_to_the_risk(self, eps: float) -> None:
        times, out_of = times_right(float(posterior(eps)))
        array = pictures._icons(eps)
        each = out_of // 100
        assert len(array.signs) == 100
        assert array.signs.count("o") == 50
        assert array.signs.count("%") == (1 if array.enlarged else 0)
        assert array.signs.count("#") * each + array.enlarged.count("#") == times - out_of // 2
        assert array.signs.count(".") * each + array.enlarged.count(".") == out_of - times
        assert array.signs == "".join(sorted(array.signs, key="o#%.".index))
        assert len(array.enlarged) in (0, each)

    def test_kinds_differ_without_colour(self) -> None:
        figure = pictures.icons(0.1)
        keys = [each for each in figure.findobj(PathCollection) if len(each.get_offsets()) == 1]
        looks = {
            (each.get_paths()[0].vertices.shape, each.get_facecolor().tobytes(), each.get_hatch()) for each in keys
        }
        assert len(looks) >= 4

    def test_finer_than_a_hundred(self) -> None:
        text = pictures.icons_text(0.1)  # 525 of 1,000
        assert "1,000 attempts" in text
        assert "# # % . ." in text
        assert text.endswith("  %  one sign, taken apart:\n  # # # # # . . . . .")

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("eps", [0.1, 9.22, 10])
    def test_what_is_taken_apart_does_not_lie_on_its_words(self, eps: float) -> None:
        figure = pictures.icons(eps)
        (said,) = (text for text in words_of(figure) if "one sign" in text.get_text())
        smallest = min(each.get_sizes()[0] for each in marks(figure))
        enlarged = [each.get_window_extent().y1 for each in marks(figure) if each.get_sizes()[0] < 2 * smallest]
        assert max(enlarged) <= said.get_window_extent().y0

    @pytest.mark.parametrize(("eps", "more"), [(1e-12, 1), (1e-20, 1), (0.1, 25), (1, 24)])
    def test_a_release_is_never_nothing(self, eps: float, more: int) -> None:
        assert f"because of this release: at most {more} more" in pictures.icons_text(eps)


class TestTwoWorlds:
    """Two Laplace densities whose overlap is exp(-distance / 2 scale)."""

    @pytest.mark.parametrize(("distance", "scale"), WORLDS[:3])
    def test_curves(self, distance: float, scale: float) -> None:
        axes = pictures.two_worlds(distance, scale).axes[0]
        for line, centre in zip(axes.lines, (0.0, distance), strict=True):
            x, y = line.get_xdata(), line.get_ydata()
            assert y == pytest.approx(np.exp(-np.abs(x - centre) / scale) / (2 * scale))
            assert centre in x
            assert np.trapezoid(y, x) == pytest.approx(1, abs=0.04)
        assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()

    def test_the_overlap_is_shaded(self) -> None:
        axes = pictures.two_worlds(200.0, 337.0).axes[0]
        (shade,) = axes.findobj(PolyCollection)
        x, y = shade.get_paths()[0].vertices.T
        area = abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2
        assert area == pytest.approx(math.exp(-200 / 674), abs=0.03)
        assert f"overlap: {math.exp(-200 / 674):.3g} " in pictures.two_worlds_text(200.0, 337.0)

    def test_the_risk_is_two_worlds(self) -> None:
        # docs/reproducing.md: LS 133.45, GS 337, eps 1: .597725
        assert "50 times out of 100 without, at most 60 with" in pictures.two_worlds_text(133.45, 337.0)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("unit", ["", "EUR", "thousand Euro a month", "W" * 12, "Kilometer je Tag " * 9])
    @pytest.mark.parametrize(("distance", "scale"), WORLDS)
    def test_the_axis_is_whole(self, distance: float, scale: float, unit: str) -> None:
        figure = pictures.two_worlds(distance, scale, unit=unit)
        assert unreadable(figure) == []
        assert "".join(figure.axes[0].get_xlabel().split()).endswith("".join(unit.split()))

    def test_thousands_are_set_apart_everywhere(self) -> None:
        figure, text = drawn("two_worlds", 2e4, 2e4)
        said = " ".join([text, *(each.get_text() for each in words_of(figure, ticks=True))])
        assert "distance 20,000 " in said
        assert "0000" not in said

    def test_nothing_to_tell(self) -> None:
        text = pictures.two_worlds_text(0.0, 1.0)
        assert "in these data no one record moves the answer" in text
        assert "at most" not in text


class TestRisk:
    """The worst case against eps, with this release, half of it and twice."""

    @pytest.mark.parametrize("eps", EPS)
    def test_curve_and_marks(self, eps: float) -> None:
        axes = pictures.risk(eps).axes[0]
        curve, *marks = axes.lines
        assert curve.get_ydata() == pytest.approx(posterior(curve.get_xdata()))
        assert [float(mark.get_xdata()[0]) for mark in marks] == [eps / 2, eps, 2 * eps]
        assert [float(mark.get_ydata()[0]) for mark in marks] == pytest.approx(posterior([eps / 2, eps, 2 * eps]))
        assert len({mark.get_marker() for mark in marks}) == 3
        assert axes.get_ylim() == (0.5, 1.0)

    def test_in_words(self) -> None:
        assert pictures.risk_text(1).splitlines() == [
            "How often an attacker is right, in the worst case",
            "  a coin: 50 of 100",
            "  half the eps: at most 63",  # posterior .6225
            "  this release, eps 1: at most 74",  # .7311
            "  twice the eps: at most 89",  # .8808
        ]


class TestOfARelease:
    """A release draws itself."""

    def test_kinds(self) -> None:
        one = release()
        assert isinstance(one.picture(), Figure)
        assert one.picture_text() == pictures.icons_text(1.0)
        assert one.picture_text("risk") == pictures.risk_text(1.0)
        assert one.picture_text("two_worlds", unit="km") == pictures.two_worlds_text(337 * 0.4, 337.0, unit="km")
        assert any("km" in text.get_text() for text in words_of(one.picture("two_worlds", unit="km")))

    def test_of_other_mechanisms(self) -> None:
        """Their noise is no Laplace curve: what is drawn has the loss, and says so."""
        frame = pd.DataFrame({"x": [3.0, 1, 10]})
        mean = frame.dprisk.mean("x", eps=1, bounds=(0, 20))
        text, figure = mean.picture_text("two_worlds", unit="km"), mean.picture("two_worlds", unit="km")
        sketch = "a sketch: Laplace curves whose privacy loss, 1, is that of the mechanism's own noise"
        assert sketch in text and "in scales of the noise" in text and "km" not in text and "sensitivity" not in text
        assert sketch in " ".join(" ".join(each.get_text() for each in words_of(figure)).split())
        assert "at most 74 with this release" in text and unreadable(figure) == []
        count = frame.dprisk.count(eps=0.5).picture_text("two_worlds", unit="people")
        assert "privacy loss, 0.5, is" in count and "people" in count and "at most 63 with" in count

    def test_looking_for_enough_people_counts(self) -> None:
        assert release(least_group=20, extra=0.5).picture_text() == pictures.icons_text(1.5)

    @pytest.mark.parametrize("kind", ["icon", None, ["risk"]])
    def test_unknown(self, kind: object) -> None:
        with pytest.raises(ParameterError, match="available: icons, two_worlds, risk"):
            release().picture(kind)

    @pytest.mark.parametrize("ask", ["picture", "picture_text"])
    def test_bounds_from_the_data(self, ask: str) -> None:
        one = release(bounds_from_data=True)
        for kind in ("icons", "risk"):
            with pytest.raises(NotPublicError, match="took its bounds from the data"):
                getattr(one, ask)(kind)
        getattr(one, ask)("two_worlds")

    def test_published_pictures_depend_on_eps_alone(self) -> None:
        one, other = release(1.0, 0.4), release(1.0, 0.9, n=77)
        for kind in ("icons", "risk"):
            assert one.picture_text(kind) == other.picture_text(kind)

    def test_a_dollar_in_a_name_is_no_formula(self) -> None:
        figure = release().picture("two_worlds", unit="$x^$")
        assert any("$x^$" in text.get_text() for text in words_of(figure))

    def test_letters_that_the_font_lacks(self, tmp_path) -> None:
        figure = release().picture("two_worlds", unit="万円")
        figure.savefig(tmp_path / "worlds.png")  # without a warning
        assert unreadable(figure) == []
        said = " ".join(text.get_text() for text in words_of(figure))
        assert "□□" in said
        assert "□: a letter that this font lacks" in said
        assert "万円" in release().picture_text("two_worlds", unit="万円")

    def test_saved(self, tmp_path) -> None:
        for suffix in ("png", "svg", "pdf"):
            release().picture().savefig(tmp_path / f"icons.{suffix}")
            assert (tmp_path / f"icons.{suffix}").stat().st_size > 1000


class TestMatplotlib:
    """Is loaded by who draws, without pyplot; whoever has none is told."""

    @pytest.mark.slow
    def test_is_not_loaded_by_words(self) -> None:
        code = (
            "import io, sys, pdrisk; from pdrisk.study import texts; from pdrisk._answer import pictures; "
            "pictures.icons_text(1); assert 'matplotlib' not in sys.modules; pictures.icons(1).savefig(io.BytesIO()); "
            "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr

    def test_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
        with pytest.raises(ParameterError, match=r'pip install "pdrisk\[plots\]"'):
            release().picture()


class TestDrawing:
    """What all pictures share."""

    @pytest.mark.parametrize(
        ("fonts", "text", "expected"),
        [
            (["DejaVu Sans"], "km² in Zürich", "km² in Zürich"),
            (["DejaVu Sans"], "万km", "□km"),
            (["DejaVu Sans"], "two\nlines\tor one\ud800", "two lines or one□"),
            (["STIXSizeOneSym"], "Ω", "□"),
            (["STIXSizeOneSym", "DejaVu Sans"], "Ω", "Ω"),
            (["no such font", "DejaVu Sans"], "Ω", "Ω"),
            (["no such font"], "Ω", "Ω"),  # matplotlib falls back on its own
        ],
    )
    def test_letters_of_the_fonts_asked_for(self, fonts: list[str], text: str, expected: str) -> None:
        with rc_context({"font.family": fonts}):
            assert legible(text) == expected

    @pytest.mark.parametrize(
        ("text", "expected"), [("abcdef", "abcdef"), ("abcdefg", "abcde…"), ("万円万", "□□□"), ("万円万円", "□□…")]
    )
    def test_cut_by_the_room_it_takes(self, text: str, expected: str) -> None:
        assert shortened(text, 6) == expected

    def test_styles_differ_without_colour(self) -> None:
        assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS) == len(set(map(str, DASHES)))

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    def test_labels_are_apart(self, places: list[float]) -> None:
        found = apart(places, 0.1, 0.0, 1.0)
        order = np.argsort(places, kind="stable")
        assert np.all(np.diff(np.array(found)[order]) >= 0.1 - 1e-9)
        assert min(found) >= -1e-9
        assert max(found) <= 1 + 1e-9

    @pytest.mark.parametrize(
        ("places", "expected"),
        [
            ([0.2, 0.5], [0.2, 0.5]),
            ([0.5, 0.5, 0.5], [0.4, 0.5, 0.6]),
            ([1.0, 1.0], [0.9, 1.0]),
            ([0.0, 0.05], [0.0, 0.1]),
            ([0.5, 0.45], [0.525, 0.425]),
        ],
    )
    def test_and_near_to_where_they_were(self, places: list[float], expected: list[float]) -> None:
        assert apart(places, 0.1, 0.0, 1.0) == pytest.approx(expected)


class TestEachRow:
    """Where each row is protected by itself, texts ask about one record: a person may have several."""

    ROWS = pd.DataFrame({"pid": [1, 1, 2, 3], "x": [3.0, 1, 10, 7]})

    def asked(self, **unit: str) -> list[str]:
        one = self.ROWS.dprisk.mean("x", eps=1, bounds=(0, 20), person="pid", curator=True, **unit)
        kinds = ("icons", "two_worlds")
        figures = [" ".join(each.get_text() for each in words_of(one.picture(kind), ticks=True)) for kind in kinds]
        texts = [one.explain(audience) for audience in ("analyst", "curator", "publication")]
        return [" ".join(text.split()) for text in (*map(one.picture_text, kinds), *figures, *texts)]

    def test_one_record(self) -> None:
        for text in self.asked(unit="row"):
            assert "one record" in text
            assert "one person" not in text.replace("one record per person", "")
            assert "the person" not in text
            assert "every person alike" not in text

    def test_one_person(self) -> None:
        for text in self.asked(per_person="mean"):
            assert "one person" in text


@pytest.mark.slow
def test_docs_of_a_real_answer() -> None:
    one = pd.DataFrame({"x": [3.0, 1, 10]}).dprisk.mean("x", eps=5, bounds=(0, 20))
    assert unreadable(one.picture("two_worlds", unit="km")) == []
