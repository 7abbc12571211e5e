"""Studies of the noise that releases have by default."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._cli import main
from pdrisk.study import experiment, findings, run
from pdrisk.study.figures import noise_against_risk

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


@pytest.mark.slow
def test_command(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "own.csv", index=False)
    arguments = ["study", str(tmp_path / "out"), "--file", str(tmp_path / "own.csv"), "--columns", "x", "--bounds"]
    assert main([*arguments, "x=0:100", "--repetitions", "1", "--quiet", "--mechanism", "auto"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Noise: two_sums, exponential, bernstein." in page
    assert "Findings of the paper" not in page and not (tmp_path / "out" / "findings.csv").exists()
