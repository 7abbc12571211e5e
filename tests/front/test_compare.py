"""Comparison of mechanisms: the numbers of `assess`, at equal eps, equal risk or equal noise; and its picture."""

import io
import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._mechanisms import MECHANISMS
from pdrisk.risk import posterior

DISTANCES = {"bounds": (1, 675)}
COLUMNS = ["mechanism", "eps", "noise95", "worst_case", "two_worlds", "many_worlds", "identifiability", "success"]


@pytest.fixture(scope="module")
def frame():
    return pdrisk.datasets.soep_like(missing="nan")


@pytest.mark.parametrize("name", ["mean", "sum", "var", "median", "max"])
def test_each_row_is_that_of_assess(frame, name):
    found = frame.dprisk.compare("distance", name, eps=0.5, where="age > 40", **DISTANCES)
    assert found.columns.tolist() == COLUMNS
    assert "laplace" in found["mechanism"].tolist()
    for _, row in found.iterrows():
        (own,) = frame.dprisk.assess(
            "distance", name, 0.5, where="age > 40", mechanism=row["mechanism"], **DISTANCES
        ).to_dict("records")
        for column in COLUMNS[:-1]:
            assert row[column] == own[column] or (math.isnan(row[column]) and math.isnan(own[column])), column


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
def test_success_is_that_of_the_release(frame):
    found = frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES).set_index("mechanism")["success"]
    for name in ("laplace", "two_sums"):
        assert found[name] == frame.dprisk.mean("distance", eps=1, mechanism=name, **DISTANCES).risk.success


def test_at_equal_risk(frame):
    found = frame.dprisk.compare("distance", "mean", risk=0.75, **DISTANCES)
    assert (found["worst_case"].round(12) == 0.75).all()
    assert found["eps"].tolist() == pytest.approx([math.log(3)] * len(found), rel=1e-12)


def test_at_equal_noise_laplace_and_two_sums_have_equal_two_worlds(frame):
    """MECHANISMS: what two_sums adds is that its guarantee may be published."""
    found = frame.dprisk.compare("distance", "mean", noise95=1, mechanisms=["laplace", "two_sums"], **DISTANCES)
    assert found["mechanism"].tolist() == ["laplace", "two_sums"]
    assert ((found["noise95"] <= 1) & (found["noise95"] > 0.9999)).all()
    laplace, two_sums = found.to_dict("records")
    assert laplace["two_worlds"] == pytest.approx(two_sums["two_worlds"], abs=1e-4)
    assert laplace["worst_case"] > 0.9999
    assert two_sums["worst_case"] == two_sums["two_worlds"] < 0.54


def test_noise_that_cannot_be_had(frame):
    found = frame.dprisk.compare("distance", "mean", noise95=1e-12, **DISTANCES)
    assert found.drop(columns="mechanism").isna().all(axis=None)


def test_whole_sums_are_compared_with_laplace(frame):
    declared = frame.dprisk.declare(bounds={"distance": (1, 675)})
    named = declared.dprisk.compare("distance", "count", eps=1)["mechanism"].tolist()
    assert named == ["laplace", "geometric"]


def test_nobody(frame):
    found = frame.dprisk.compare("distance", "mean", eps=1, where="age > 400", **DISTANCES)
    assert found["eps"].tolist() == [1.0] * len(found)
    assert found["many_worlds"].isna().all()


def test_of_a_series(frame):
    own = frame["distance"].dprisk.compare("mean", eps=1, **DISTANCES)
    pd.testing.assert_frame_equal(
        pd.DataFrame(own), pd.DataFrame(frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES))
    )


def test_is_marked_exact_and_plain_after_the_first_step(frame):
    found = frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES)
    assert json.loads(found.attrs["dprisk"]) == {"exact": True}
    with pytest.raises(pdrisk.NotPublicError):
        pdrisk.public(found)
    assert type(found.sort_values("eps")) is pd.DataFrame


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, pdrisk.ParameterError, "exactly one of eps=, risk=, success= and noise95="),
        ({"eps": 1, "noise95": 1}, pdrisk.ParameterError, "exactly one"),
        ({"eps": 1, "risk": 0.7}, pdrisk.ParameterError, "exactly one"),
        ({"noise95": 0}, pdrisk.ParameterError, "noise95 must be finite and above 0"),
        ({"noise95": True}, pdrisk.ColumnTypeError, "noise95 must be a number"),
        ({"eps": 1, "mechanisms": "laplace"}, pdrisk.ColumnTypeError, "mechanisms is a list"),
        ({"eps": 1, "mechanisms": []}, pdrisk.ColumnTypeError, "mechanisms is a list"),
        ({"eps": 1, "mechanisms": ["gauss"]}, pdrisk.ParameterError, "unknown mechanism 'gauss'"),
        ({"eps": 1, "mechanisms": ["laplace"] * 2}, pdrisk.ParameterError, "names one twice"),
        ({"eps": 1, "mechanisms": ["geometric"]}, pdrisk.ParameterError, "cannot answer mean"),
    ],
)
def test_refused_before_anything_is_read(frame, monkeypatch, options, error, words):
    monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(error, match=words):
        frame.dprisk.compare("distance", "mean", **options, **DISTANCES)


def test_every_mechanism_that_can(frame):
    found = set()
    for name in ("count", "sum", "mean", "median", "quantile", "min", "max", "var", "std", "nunique"):
        spec = ("quantile", {"q": 0.9}) if name == "quantile" else name
        bounds = None if name in ("count", "nunique") else (1, 675)
        table = frame.head(600).dprisk.compare("distance", spec, eps=1, bounds=bounds)
        assert not table[COLUMNS[:-1]].isna().any(axis=None), name
        found |= set(table["mechanism"])
    # The others need two columns, the number of records, or several quantiles.
    assert found == set(MECHANISMS) - {
        "bernstein_products",
        "k_norm_products",
        "weighted_two_sums",
        "weighted_bernstein",
        "weighted_exponential",
        "weighted_exponential_interval",
        "noisy_moments",
        "one_sum",
        "two_stage",
        "approximate_quantiles",
        "clipped_sums",
    }


def test_weighted_statistics_have_mechanisms_of_their_own(frame):
    weighed = frame.head(600).assign(w=1.5)
    found = {
        spec: weighed.dprisk.compare("distance", spec, eps=1, bounds={"distance": (1, 675), "w": (0, 2)}, weights="w")
        for spec in ("mean", "median")
    }
    assert found["mean"]["mechanism"].tolist() == ["weighted_two_sums"]
    assert found["median"]["mechanism"].tolist() == ["weighted_exponential", "weighted_exponential_interval"]
    assert found["median"]["noise95"].is_monotonic_increasing  # the interval has its price


class TestPicture:
    """The frontier: as asked, and what else could be had."""

    def test_shows_each_mechanism(self, frame):
        pytest.importorskip("matplotlib")
        table = frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES)
        figure = table.picture()
        (axes,) = figure.axes
        assert [text.get_text() for text in axes.get_legend().get_texts()] == table["mechanism"].tolist()
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        assert [float(line.get_xdata()[0]) for line in dots] == table["noise95"].tolist()
        for line in axes.lines[::2][: len(table)]:
            assert (np.diff(line.get_ydata()) > 0).all()  # risk grows with eps,
            assert (np.diff(line.get_xdata()) < 0).all()  # and noise falls

    def test_labels_do_not_touch(self, frame):
        pytest.importorskip("matplotlib")
        figure = frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES).picture()
        figure.canvas.draw()
        boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels() if label.get_text()]
        inside = sorted((box for box in boxes if box.width), key=lambda box: box.x0)
        assert all(one.x1 < other.x0 for one, other in itertools.pairwise(inside))

    def test_says_risk_of_a_release(self, frame):
        table = frame.dprisk.compare("distance", "mean", eps=1, **DISTANCES)
        assert table["worst_case"].tolist() == [float(posterior(1.0))] * len(table)


def test_a_picture_of_no_noise_at_all(frame):
    """At this eps a count is exact in 95 % of cases, which has no place on a logarithmic axis."""
    table = frame.dprisk.compare("distance", "count", noise95=0.5)
    pytest.importorskip("matplotlib")
    assert table["noise95"].tolist()[1] == 0
    table.picture().savefig(io.BytesIO())
