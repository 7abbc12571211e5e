"""Studies of the noise that releases have by default."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._cli import main
from pdrisk.study import experiment, findings, run
from pdrisk.study.figures import noise_against_risk, risk_by_epsilon

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"x": RNG.gamma(2, 8, 400).round(1), "y": RNG.integers(0, 30, 400)})
STATISTICS = ["count", "sum", "mean", "median", ("quantile", {"q": 0.9}), "min", "max", "var", "std"]
EPS = [0.5, 2.0]
OPTIONS = {"eps": EPS, "bounds": {"x": (0, 100), "y": (0, 29)}, "progress": False, "seed": 4}


def test_everybody_is_as_assessed():
    table = run(FRAME, ["x", "y"], STATISTICS, sample_sizes=1.0, mechanism="auto", **OPTIONS)
    assessed = FRAME.dprisk.assess(["x", "y"], STATISTICS, eps=EPS, bounds=OPTIONS["bounds"], mechanism="auto")
    for name in assessed.columns:
        if pd.api.types.is_float_dtype(assessed[name]):
            np.testing.assert_allclose(table[name], assessed[name], rtol=1e-9, err_msg=name)
        else:
            assert table[name].tolist() == assessed[name].tolist(), name
    assert set(table["mechanism"]) == {"geometric", "laplace", "two_sums", "bernstein", "exponential"}


def test_samples_are_those_of_any_mechanism(tmp_path):
    asked = {"sample_sizes": [30], "repetitions": 3, "resume": tmp_path, **OPTIONS}
    paper = run(FRAME, "x", ["max", "mean"], **asked)
    own = run(FRAME, "x", ["max", "mean"], mechanism="auto", **asked)
    # A mean is told by places on a grid, or by a sum.
    assert own["local_sensitivity"].tolist() == pytest.approx(paper["local_sensitivity"].tolist(), rel=1e-7)
    assert (own["two_worlds"] != paper["two_worlds"]).any() and len(list(tmp_path.iterdir())) == 2
    # The parts are kept by mechanism and, unless the noise is the paper's, by eps.
    pd.testing.assert_frame_equal(run(FRAME, "x", ["max", "mean"], mechanism="auto", **asked), own)
    run(FRAME, "x", ["max", "mean"], mechanism="auto", **asked | {"eps": 1})
    assert len(list(tmp_path.iterdir())) == 3
    run(FRAME, "x", ["max", "mean"], **asked | {"eps": 1})
    assert len(list(tmp_path.iterdir())) == 3
    pd.testing.assert_frame_equal(run(FRAME, "x", ["max", "mean"], **asked), paper)


def test_pieces_change_nothing(monkeypatch):
    asked = {"sample_sizes": [20], "repetitions": 5, "mechanism": "auto", **OPTIONS}
    whole = run(FRAME, "x", ["median", "var"], **asked)
    monkeypatch.setattr(experiment, "PIECE", 45)
    pd.testing.assert_frame_equal(run(FRAME, "x", ["median", "var"], **asked), whole)


def test_refusals():
    with pytest.raises(pdrisk.ParameterError, match="unknown mechanism 'nois'; available"):
        run(FRAME, "x", mechanism="nois")
    with pytest.raises(pdrisk.ParameterError, match="cannot answer median"):
        run(FRAME, "x", mechanism="two_sums")
    with pytest.raises(pdrisk.ColumnTypeError, match="mechanism is a name"):
        run(FRAME, "x", mechanism=None)
    with pytest.raises(pdrisk.ParameterError, match="Laplace noise"):
        findings(run(FRAME, "x", mechanism="auto", sample_sizes=1.0, **OPTIONS))


@pytest.mark.parametrize(("statistics", "ticks"), [(["mean", "median"], {"0", "0.1"}), (["median"], {"0", "1"})])
def test_noise_of_zero_has_a_place_in_the_figure(statistics, ticks):
    """Where many people share the median, no answer is off: a power of ten is never 0."""
    heaped = pd.DataFrame({"x": np.repeat([0, 7, 18], [300, 900, 20])})
    own = run(
        heaped, "x", statistics, eps=EPS, sample_sizes=1.0, mechanism="auto", bounds={"x": (0, 18)}, progress=False
    )
    noise = own["noise95"]
    assert (noise[own["statistic"] == "median"] == 0).all()
    (axes, *_) = noise_against_risk(own).axes
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert set(shown) == ticks
    place = axes.get_xticks()[shown.index("0")]
    right = min(axes.get_xlim())
    drawn = {float(x) for line in axes.lines for x in np.atleast_1d(line.get_xdata()) if x > 0}
    assert right < place == pytest.approx(min(drawn)) and (len(statistics) == 1 or place < noise[noise > 0].min())


def test_queries_whose_noise_is_zero_do_not_lie_on_each_other():
    """Each has a column of its own at 0, and no line leads there across powers of ten that it never had."""
    ages = pd.DataFrame({"x": np.random.default_rng(1).integers(18, 90, 1000)})
    own = run(
        ages, "x", ["median", "min", "max"], eps=[*EPS, 20, 50], sample_sizes=1.0, mechanism="auto",
        bounds={"x": (0, 120)}, progress=False,
    )  # fmt: skip
    exact = own[own["noise95"] == 0]
    assert set(exact["statistic"]) == {"median", "min", "max"}
    (axes, *_) = noise_against_risk(own).axes
    least = own["noise95"][own["noise95"] > 0].min()
    lines = [line for line in axes.lines if line.get_marker() not in ("None", None) and line.get_color() != "white"]
    columns = [{float(x) for x in np.atleast_1d(line.get_xdata()) if 0 < x < least / 2} for line in lines]
    places = [place for column in columns for place in column if place < 1 and place > min(axes.get_xlim())]
    assert len({round(np.log10(place), 6) for place in places}) == 3 == sum(len(column) == 1 for column in columns)
    for line in axes.lines:
        x = np.asarray(line.get_xdata(), dtype=float)
        between = (x < least * 0.99) & (x > 1.01 * max(places))
        assert not between.any()


def test_queries_whose_risk_adds_nothing_do_not_lie_on_each_other():
    """Removing anybody leaves the median and the least of these as they are: each has a row of its own at 0."""
    many = pd.DataFrame({"x": np.repeat([0, 5, 10], [50, 100, 1])})
    found = run(many, "x", ["median", "min", "mean"], eps=EPS, sample_sizes=1.0, bounds={"x": (0, 20)}, progress=False)
    nothing = found.loc[found["two_worlds"] == 0.5, "statistic"]
    assert set(nothing) == {"median", "min"}
    for drawn in (risk_by_epsilon, noise_against_risk):
        (axes,) = drawn(found).axes
        heights = [set(np.asarray(line.get_ydata(), dtype=float)) for line in axes.lines if len(line.get_xdata()) == 2]
        flat = {height.pop() for height in heights if len(height) == 1 and max(height) < 0.6}
        lowest = found.loc[found["statistic"] == "mean", "two_worlds"].min()
        assert len(flat) == 2 and 0.5 < min(flat) < max(flat) < lowest
        at = axes.transData.transform([(1, height) for height in (*sorted(flat), lowest)])[:, 1]
        assert (np.diff(at) > 3).all()  # dots
        (zero,) = (tick for tick in axes.get_yticklabels() if tick.get_text() == "0")
        assert min(flat) <= zero.get_position()[1] <= max(flat)


@pytest.mark.slow
def test_command(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "own.csv", index=False)
    arguments = ["study", str(tmp_path / "out"), "--file", str(tmp_path / "own.csv"), "--columns", "x", "--bounds"]
    assert main([*arguments, "x=0:100", "--repetitions", "1", "--quiet", "--mechanism", "auto"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Noise: two_sums, exponential, bernstein." in page
    assert "Findings of the paper" not in page and not (tmp_path / "out" / "findings.csv").exists()
