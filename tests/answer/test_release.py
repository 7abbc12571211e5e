"""What comes back: fields, what may be published of them, how they are shown, and the warning of wide noise."""

import copy
import dataclasses
import gc
import json
import math
import pickle
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest

import pdrisk
from paths import GOLDEN
from pdrisk import ColumnTypeError, NotPublicError, ParameterError, Release, Risk
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.release_fields import fields_of
from pdrisk._digits import probability

CURATOR = (
    "n", "local_sensitivity", "loss", "two_worlds", "many_worlds", "identifiability", "clamped", "unlisted", "left_out"
)  # fmt: skip
PUBLIC = ("statistic", "column", "where", "where_trusted", "value", "low", "high", "noise95", "eps", "bounds")
PUBLIC += ("mechanism", "scale", "unit", "global_sensitivity", "worst_case", "success", "mu")
PUBLIC += ("measured", "measured_unit", "measured_scale", "draw")
FRAME = pd.DataFrame({"distance": [3.0, 1, 10, 17], "age": 41})
BOUNDS = {"eps": 1, "bounds": (1, 675), "mechanism": "laplace"}


def drawn(release: Release, *numbers: object, **line: object) -> Release:
    """The release, had these noisy numbers been drawn."""
    noisy = dataclasses.replace(release.noisy, drawn=np.array(numbers))
    (low,), (high,) = noisy.interval()
    said = {"value": noisy.values[0].item(), "low": float(low), "high": float(high), "noise95": noisy.noise95[0]}
    line = dataclasses.replace(release.answer.lines[0], **(said | line))
    answer = dataclasses.replace(release.answer, lines=(line,))
    return dataclasses.replace(release, noisy=noisy, describe=lambda: answer)


# The sample {3, 1, 10, 17} in [1, 675] at eps = 1: numbers from docs/reproducing.md, with a value made up;
# identifiability: without 17 the mean is 14/3, without 1 it is 10, and posterior((10 - 14/3) / 337, 1/4) = .2530.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", pdrisk.NoisyReleaseWarning)
    MEAN = drawn(FRAME.dprisk.mean("distance", where="age > 40", **BOUNDS), -212.5)
    COUNT = drawn(FRAME.dprisk.count(eps=0.1, where=lambda frame: frame["age"] > 40), 12_345)
    NOBODY = drawn(FRAME.dprisk.mean("distance", where="age > 41", **BOUNDS), -212.5)
    FROM_DATA = FRAME.dprisk.quantile("distance", 0.9, eps=1, bounds="column", mechanism="laplace")
    TWO_SUMS = FRAME.dprisk.mean("distance", eps=1, bounds=(1, 15))
RELEASES = {
    "mean": MEAN,
    "mean_curator": dataclasses.replace(MEAN, shows_curator=True),
    "count": COUNT,
    "nobody": dataclasses.replace(NOBODY, shows_curator=True),
    "from_data": dataclasses.replace(drawn(FROM_DATA, -12.5), shows_curator=True),
    "odd_names": drawn(MEAN, -212.5, name="mean(<b>&\"'</b>)", column="<b>&\"'</b>"),
    # 17 is moved to 15: a mean of 7.25 from sums of the share (x - 1)/14 and of 1 less it, in steps of 2^-30.
    "two_sums": dataclasses.replace(
        drawn(TWO_SUMS, [int(25 / 14 * 2**30)], [int(31 / 14 * 2**30)]), shows_curator=True
    ),
}
RELEASES["odd_names"] = dataclasses.replace(
    RELEASES["odd_names"],
    column="<b>&\"'</b>",
    describe=lambda answer=RELEASES["odd_names"].answer: dataclasses.replace(answer, where="`<i>` > 1 & `x` < 2"),
)


class TestRelease:
    """A frozen record of the noisy value, what was declared for it, and the curator's part."""

    def test_fields(self):
        assert tuple(MEAN.public()) == PUBLIC
        for name in PUBLIC[:14]:
            assert getattr(MEAN, name) == MEAN.public()[name]
        assert (MEAN.risk.worst_case, MEAN.risk.success) == (MEAN.public()["worst_case"], MEAN.public()["success"])
        assert {field.name for field in dataclasses.fields(MEAN.curator)} == {*CURATOR}
        assert float(MEAN) == -212.5
        with pytest.raises(dataclasses.FrozenInstanceError):
            MEAN.answer = COUNT.answer
        for name in ("value", "note"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(MEAN, name, 1.0)

    def test_numbers(self):
        # global sensitivity (675 - 1)/2; half-width 337 ln 20; posterior(1); 1 - exp(-1/2)/2; 2 z(exp(-1/2)/2)
        assert (MEAN.global_sensitivity, MEAN.scale, MEAN.bounds) == (337, pytest.approx(337, rel=1e-8), (1, 675))
        assert MEAN.noise95 == pytest.approx(1009.5618, abs=1e-4)
        assert dataclasses.astuple(MEAN.risk) == pytest.approx((0.731059, 0.696735, 1.030064), abs=1e-6)
        assert dataclasses.astuple(MEAN.curator) == pytest.approx(
            (4, 133.45, 133.45 / 337, 0.597725, 0.331232, 0.252979, 0, 0, 0), abs=1e-6
        )

    def test_scale_is_that_of_additive_noise_only(self):
        assert RELEASES["two_sums"].scale is None
        assert COUNT.scale == pytest.approx(10)
        assert type(COUNT.value) is int

    @pytest.mark.parametrize("name", [*CURATOR, "risks"])
    def test_the_curators_numbers_are_no_attributes_of_a_release(self, name):
        with pytest.raises(AttributeError, match=f"release.curator.{name}" if name in CURATOR else "no 'risks'"):
            getattr(MEAN, name)

    def test_equal_to_itself_only(self):
        assert MEAN == MEAN
        assert dataclasses.replace(MEAN) != MEAN
        assert len({MEAN, COUNT, MEAN}) == 2

    @pytest.mark.parametrize(("level", "width"), [(0.95, 1009.5618), (0.5, 233.5906), (np.float64(0.99), 1551.9424)])
    def test_interval(self, level, width):
        # 337 ln(1/(1 - level)); the first is 337 ln 20 = 1010.
        low, high = MEAN.interval(level=level)
        assert (low, high) == pytest.approx((-212.5 - width, -212.5 + width), abs=1e-4)
        assert MEAN.interval() == MEAN.interval(0.95)

    @pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, 95, math.nan])
    def test_levels_that_are_none(self, level):
        with pytest.raises(ParameterError, match="level must be a probability above 0 and below 1"):
            MEAN.interval(level)

    @pytest.mark.parametrize("level", ["0.95", True, None, [0.95]])
    def test_levels_of_another_kind(self, level):
        with pytest.raises(ColumnTypeError, match="level must be a number"):
            MEAN.interval(level)

    def test_the_interval_covers_the_answer_as_often_as_it_says(self):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "g": 1})
        keys = [1, *range(2, 2001)]  # the other keys hold nobody: their answer is 5
        table = frame.dprisk.mean("x", eps=20, bounds=(0, 10), by="g", keys=keys, mechanism="laplace").iloc[1:]
        scale = Answer.from_attrs(table.attrs).lines[0].scale
        assert table["value"].between(table["low"], table["high"]).all()
        assert table["low"].le(5).mul(table["high"].ge(5)).mean() == pytest.approx(0.95, abs=0.025)
        for level in (0.5, 0.95):
            half = scale * math.log(1 / (1 - level))
            covered = ((table["value"] - 5).abs() <= half).mean()
            assert covered == pytest.approx(level, abs=6 * math.sqrt(level * (1 - level) / 1999))

    @pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES.keys())
    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
    def test_copies(self, release, again):
        same = again(release)
        assert repr(same) == repr(release)
        assert same.curator == release.curator
        assert type(same.risk) is Risk

    @pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES.keys())
    def test_pickles_hold_what_is_public(self, release):
        same = pickle.loads(pickle.dumps(release))
        assert same.curator is None
        assert fields_of(same) == fields_of(release)
        assert same.interval(0.5) == release.interval(0.5)
        assert same.bounds_from_data is release.bounds_from_data
        assert "-- curator only" not in repr(same).replace("(from the data)", "") or release.bounds_from_data
        assert "local sensitivity" not in repr(same)


class TestPublic:
    """Only fields computed from declared things are published; the curator's are asked for by name."""

    @pytest.mark.parametrize("release", [MEAN, COUNT], ids=["mean", "count"])
    def test_a_release(self, release):
        public = release.public()
        assert tuple(public) == PUBLIC
        assert public == release.to_dict() == dict(release.to_series())
        assert json.loads(json.dumps(public))["value"] == release.value
        assert release.to_series().name == release.name

    def test_what_the_curator_sees(self):
        everything = MEAN.to_dict(curator=True)
        assert set(everything) == {*PUBLIC, *CURATOR, "bounds_from_data"}
        assert (everything["n"], everything["two_worlds"]) == (4, pytest.approx(0.597725, abs=1e-6))
        assert MEAN.to_series(curator=True)["local_sensitivity"] == pytest.approx(133.45)

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("mechanism", ["laplace", "auto"])
    def test_no_public_field_depends_on_the_data(self, mechanism):
        noisy = {"value", "low", "high", "measured", "draw"} | ({"noise95"} if mechanism == "auto" else set())

        def facts(values):
            frame = pd.DataFrame({"x": values})
            release = frame.dprisk.mean("x", eps=50, bounds=(0, 10), where="x >= 0", mechanism=mechanism)
            return {name: field for name, field in release.public().items() if name not in noisy}

        first, *rest = [facts(values) for values in ([1.0], [3.0, 4.0, 99.0, np.nan], [-1.0])]
        assert rest == [first, first]

    def test_bounds_from_the_data(self):
        release = pd.DataFrame({"x": [1.0, 9.0]}).dprisk.max("x", eps=50, bounds="column")
        assert release.bounds_from_data is True
        for ask in (release.public, release.to_dict, release.to_series):
            with pytest.raises(NotPublicError, match="took its bounds from the data") as caught:
                ask()
            assert "9" not in str(caught.value)
        assert release.to_dict(curator=True)["bounds"] == (1, 9)

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    def test_frames(self):
        frame = pd.DataFrame({"x": [1.0, 9.0], "g": ["a", "b"]})
        options = {"eps": 50, "bounds": (0, 10), "curator": True}
        by = frame.dprisk.mean("x", by="g", keys=["a", "b"], **options)
        agg = frame.dprisk.agg({"x": ["mean", "max"]}, **options)
        for table in (by, agg, by.loc[["a"]], by.query("value > -1e9"), agg[["value", "n"]], by.copy()):
            public = pdrisk.public(table)
            assert not {*CURATOR} & {*public.columns}
            assert {*public.columns} == {*table.columns} - {*CURATOR}
            assert public.index.equals(table.index)
            pd.testing.assert_frame_equal(pdrisk.public(public), public)
        assert {*CURATOR} & {*by.columns} == {*CURATOR[:2], *CURATOR[3:7]}

    def test_frames_that_hold_nothing_to_publish(self):
        frame = pd.DataFrame({"x": [1.0, 9.0], "g": ["a", "b"]})
        from_data = frame.dprisk.agg({"x": ["max"]}, eps=50, bounds="column")
        one_of_two = frame.dprisk.agg({"x": "max", "g": "count"}, eps=50, bounds={"x": "column"})
        grouped = frame.dprisk.max("x", eps=50, bounds="column", by="g", keys=["a"])
        assessed = frame.dprisk.assess("x", bounds=(0, 10))
        lost = pd.DataFrame(frame.dprisk.mean("x", eps=50, bounds=(0, 10), by="g", keys=["a"]).to_dict())
        for table in (from_data, one_of_two, grouped, assessed, lost, frame):
            with pytest.raises(NotPublicError):
                pdrisk.public(table)
        for other in (None, frame["x"], {}):
            with pytest.raises(ColumnTypeError, match="public takes a frame"):
                pdrisk.public(other)

    def test_columns_that_others_added(self):
        table = pd.DataFrame({"x": [1.0]}).dprisk.agg({"x": ["mean"]}, eps=50, bounds=(0, 10), curator=True)
        with pytest.raises(ParameterError, match="columns exact are not from pdrisk"):
            pdrisk.public(table.assign(exact=1.0))
        with pytest.raises(ParameterError, match="columns people are not from pdrisk"):
            pdrisk.public(table.rename(columns={"n": "people"}))


class TestShown:
    """People see what is noisy, how far off it can be, what it risks, and what must stay with the curator."""

    @pytest.mark.parametrize("name", RELEASES)
    def test_text(self, name):
        assert repr(RELEASES[name]) + "\n" == (GOLDEN / f"{name}.txt").read_text("utf-8")

    @pytest.mark.parametrize("name", RELEASES)
    def test_html(self, name):
        assert RELEASES[name]._repr_html_() + "\n" == (GOLDEN / f"{name}.html").read_text("utf-8")

    def test_curator_lines_stand_below_the_mark(self):
        words = ("local sensitivity", "privacy loss", "two-worlds", "many-worlds", "identifiability", "\n  n ", "moved")
        for name, release in RELEASES.items():
            public, *curator = repr(release).split("-- curator only")
            assert len(curator) == release.shows_curator
            for word in words:
                assert word not in public
                assert all(word in part for part in curator)
            assert ("noisy value" in public) is (name != "from_data")
            assert ("curator's numbers: .curator" in public) is not release.shows_curator

    def test_asked_with_curator_they_are_shown(self):
        for curator in (False, True):
            shown = FRAME.dprisk.count(eps=1, curator=curator)
            assert ("-- curator only" in repr(shown)) is curator
            assert ("curator only" in shown._repr_html_()) is curator
            assert shown.curator.n == 4

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("asked", [
        ("count", {}), ("nunique", {}), ("sum", {"step": 1}), ("mean", {}), ("mean", {"mechanism": "laplace"}),
        ("median", {}), ("max", {}), ("var", {}), ("mean", {"clip": "private"}), ("mean", {"person": "pid", "rows": 2}),
    ], ids=str)  # fmt: skip
    def test_the_curators_numbers_are_those_of_the_time_of_the_question(self, asked):
        """Whenever they are read: what was read of the data before is all that they are made of, and is let go."""
        statistic, options = asked
        memory = np.arange(40.0).reshape(1, 40)
        frame = pd.DataFrame(memory.T, columns=["x"], copy=False)
        frame["pid"] = np.arange(40) // 2
        options = {"eps": 1, **options} | ({} if statistic in ("count", "nunique") else {"bounds": (0, 40)})
        first, second = (getattr(frame.dprisk, statistic)("x", **options) for _ in range(2))
        before = first.curator
        memory[:] = 7.0
        assert second.curator == before == first.curator
        assert getattr(frame.dprisk, statistic)("x", **options).curator != before or "bounds" not in options
        third = getattr(frame.dprisk, statistic)("x", **options)
        gone = weakref.ref(frame)
        del frame
        gc.collect()  # an accessor that pandas 2 keeps refers back to its frame
        assert gone() is None
        with np.errstate(all="raise"):
            assert third.curator.n == 40

    @pytest.mark.parametrize("risk", [0.54934, 0.5000000001, 0.9999, 0.99991, 1.0, 1.0000003e-06])
    def test_risks_are_those_of_explain(self, risk):
        own = dataclasses.replace(COUNT.curator, two_worlds=risk)
        shown = dataclasses.replace(COUNT, known=lambda: own, shows_curator=True)
        said = probability(risk)
        assert f"  two-worlds risk     {said}\n" in repr(shown)
        assert f"at most {said} with it" in " ".join(shown.explain("curator").split())
        assert said == "> 0.9999" or float(said) >= risk

    def test_a_large_count_shows_its_digits(self):
        # Six digits of a count of millions hide the whole interval.
        shown = repr(drawn(COUNT, 1_234_567)).replace(",", "")
        assert "1234567" in shown
        assert "1234537" in shown  # 10 ln 20 = 29.96 on either side
        assert "1234597" in shown

    def test_html_is_escaped(self):
        shown = RELEASES["odd_names"]._repr_html_()
        assert "<b>" not in shown
        assert "<i>" not in shown
        assert "&lt;b&gt;&amp;&quot;&#x27;&lt;/b&gt;" in shown


class TestNoisyReleaseWarning:
    """An interval wider than a quarter of all possible answers is said; of laplace before the data are read."""

    FRAME = pd.DataFrame({"x": [3.0, 1, 10, 675, 17]})
    LAPLACE = {"bounds": (1, 675), "mechanism": "laplace"}  # noqa: RUF012

    def said(self, frame, **options) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", pdrisk.DoubtfulReleaseWarning)  # of large eps
            frame.dprisk.mean("x", **({"mechanism": "laplace"} | options))
        assert {warning.category for warning in seen} <= {pdrisk.NoisyReleaseWarning}
        return [str(warning.message) for warning in seen]

    def test_says_the_half_width_and_the_range(self):
        (said,) = self.said(self.FRAME, eps=1, bounds=(1, 675))
        assert "95 % half-width at eps=1 is mean(x): 1010, where all possible answers lie in 1 to 675" in said

    @pytest.mark.parametrize(("eps", "warned"), [(11.97, True), (11.99, False), (50, False)])
    def test_only_where_the_interval_is_wider_than_a_quarter_of_the_range(self, eps, warned):
        # 2 * 337 ln(20) / eps = 674 / 4 at eps = 11.983.
        assert bool(self.said(self.FRAME, eps=eps, bounds=(1, 675))) is warned
        assert bool(self.said(self.FRAME, eps=eps, bounds="column")) is warned

    @pytest.mark.parametrize("bounds", [(1, 675), "column"], ids=str)
    def test_is_the_same_for_other_data(self, bounds):
        others = [self.FRAME, pd.DataFrame({"x": [987654.0, 3.0]}), pd.DataFrame({"x": range(7919)})]
        first, *rest = [self.said(frame, eps=1, bounds=bounds) for frame in others]
        assert rest == [first, first]
        if bounds == "column":
            assert "1.5 times the range of possible answers" in first[0]

    def test_others_say_it_from_their_own_interval(self):
        many = pd.DataFrame({"x": range(1, 676)})
        (said,) = self.said(self.FRAME, eps=0.05, bounds=(1, 675), mechanism="auto")
        assert "the noise leaves little of the answer. 95 % noise interval of mean(x): " in said
        assert "wide, of 674 possible. Ask with a larger eps, narrower bounds, or about more people at once" in said
        assert said.endswith("If you expected more people, check the filter and the keys.")
        assert self.said(many, eps=5, bounds=(1, 675), mechanism="auto") == []

    def test_is_a_public_fact_of_groups_and_several_lines(self):
        with pytest.warns(pdrisk.NoisyReleaseWarning) as seen:
            self.FRAME.dprisk.agg({"x": ["count", "sum", "mean", "median", "min", "max"]}, eps=1, **self.LAPLACE)
        (said,) = (str(each.message) for each in seen if each.category is pdrisk.NoisyReleaseWarning)
        assert "mean(x): 6057" in said
        assert "and 1 more" in said
        assert "count(x)" not in said

    def test_points_at_the_line_of_the_caller(self):
        for call in (
            lambda: self.FRAME.dprisk.mean("x", eps=1, **self.LAPLACE),
            lambda: self.FRAME["x"].dprisk.max(eps=1, **self.LAPLACE),
            lambda: self.FRAME.dprisk.agg({"x": "mean"}, eps=1, **self.LAPLACE),
        ):
            with pytest.warns(pdrisk.NoisyReleaseWarning) as seen:
                call()
            assert (seen[0].filename, seen[0].lineno) == (__file__, call.__code__.co_firstlineno)

    def test_comes_before_the_data_are_read(self, monkeypatch):
        monkeypatch.setattr(
            "pdrisk.engines.numpy.frame.FrameEngine.read", lambda *args: pytest.fail("the data were read")
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(pdrisk.NoisyReleaseWarning):
                self.FRAME.dprisk.mean("x", eps=1, **self.LAPLACE)


class TestPublicTable:
    """Nothing of the curator's comes out, in columns or in the index."""

    TABLE = pd.DataFrame({"x": [1.0, 2, 3], "sex": ["f", "m", "m"]}).dprisk.mean(
        "x", eps=50, bounds=(0, 9), by="sex", keys=["f", "m"], curator=True
    )

    @pytest.mark.parametrize("column", ["n", "local_sensitivity", "two_worlds"])
    @pytest.mark.parametrize("append", [False, True])
    def test_curator_columns_in_the_index_are_refused(self, column, append):
        moved = self.TABLE.set_index(column, append=append)
        for frame in (moved, moved.rename_axis(index=lambda _: None)):
            with pytest.raises(ParameterError, match="index"):
                pdrisk.public(frame)

    def test_keys_may_be_index_or_column(self):
        assert pdrisk.public(self.TABLE).index.tolist() == ["f", "m"]
        assert pdrisk.public(self.TABLE.reset_index())["sex"].tolist() == ["f", "m"]

    def test_a_release_too(self):
        release = pd.DataFrame({"x": [1.0]}).dprisk.count(eps=1)
        assert pdrisk.public(release) == release.public()
        assert f"{release:.1f}" == f"{release.value:.1f}"


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
class TestNoise95:
    """Value plus or minus noise95 covers the interval, so it holds the exact answer as often as the interval does."""

    @pytest.mark.parametrize("question", ["std of constants", "small counts", "mean near a bound"])
    def test_covers_19_of_20(self, question):
        groups = range(400)  # of two constants, in one answer
        frame = pd.DataFrame({"g": np.repeat(groups, 2 if question == "small counts" else 40), "x": 0.5})
        asked = {"eps": 1, "by": "g", "keys": list(groups)}
        if question == "std of constants":
            table, exact = frame.dprisk.std("x", bounds=(0, 1), **asked), 0
        elif question == "small counts":
            table, exact = frame.dprisk.count(**asked), 2
        else:
            table, exact = frame.assign(x=0.02).dprisk.mean("x", bounds=(0, 1), **asked), 0.02
        reach = np.maximum(table["high"] - table["value"], table["value"] - table["low"])
        held = (abs(table["value"] - exact) <= reach + 1e-9).mean()
        assert held > 0.95 - 6 * math.sqrt(0.05 * 0.95 / 400)
        assert Answer.from_attrs(table.attrs).lines[0].noise95 == reach.max()
        halves = (abs(table["value"] - exact) <= (table["high"] - table["low"]) / 2 + 1e-9).mean()
        assert question == "mean near a bound" or halves < held  # as it was computed before

    def test_is_the_farther_side_everywhere(self):
        frame = pd.DataFrame({"x": np.full(60, 0.5)})
        for release in (
            frame.dprisk.std("x", eps=1, bounds=(0, 1)),
            frame.dprisk.count(eps=1, where="x > 1"),
            frame.dprisk.max("x", eps=1, bounds=(0, 1), interval=True),
            frame.dprisk.mean("x", eps=1, bounds=(0, 1), clip="private"),
        ):
            sides = release.high - release.value, release.value - release.low
            assert release.noise95 == release.public()["noise95"] == max(sides)
