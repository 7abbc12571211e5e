"""Studies of the noise that releases have by default."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._cli import main
from pdrisk.study import experiment, findings, run

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


@pytest.mark.slow
def test_command(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "own.csv", index=False)
    arguments = ["study", str(tmp_path / "out"), "--file", str(tmp_path / "own.csv"), "--columns", "x", "--bounds"]
    assert main([*arguments, "x=0:100", "--repetitions", "1", "--quiet", "--mechanism", "auto"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Noise: two_sums, exponential, bernstein." in page
    assert "Findings of the paper" not in page and not (tmp_path / "out" / "findings.csv").exists()
