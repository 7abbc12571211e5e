"""What pandas has and an accessor has not, and what an accessor says of itself."""

import copy
import pickle
import re

import pandas as pd
import pytest

import pdrisk
from pdrisk._pandas.curators.hints import MEANT

FRAME = pd.DataFrame({"x": [1.0, 2.0], "member": [True, False]})


@pytest.mark.parametrize("accessor", [FRAME.dprisk, FRAME["x"].dprisk], ids=["frame", "series"])
class TestNames:
    """An unknown name says what was meant; a repr names what there is, and nothing of the data."""

    @pytest.mark.parametrize("name", MEANT)
    def test_of_pandas(self, accessor, name):
        with pytest.raises(AttributeError, match=rf"^dprisk has no '{name}': .*[.]$"):
            getattr(accessor, name)

    def test_misspelled(self, accessor):
        with pytest.raises(AttributeError, match="Did you mean 'median'"):
            accessor.medain(eps=1)
        with pytest.raises(AttributeError, match=r"^dprisk has no 'zzz'$"):
            _ = accessor.zzz

    def test_what_only_python_looks_for(self, accessor):
        assert not hasattr(accessor, "_repr_mimebundle_")
        assert copy.copy(accessor).mean is not None
        assert pickle.loads(pickle.dumps(accessor)).count is not None

    def test_repr(self, accessor):
        kinds = dict(part.split(": ") for part in repr(accessor).removesuffix("; see help() of each").split("; "))
        listed = {kind: names.split(", ") for kind, names in kinds.items()}
        assert listed["noisy answers"][:3] == ["count", "sum", "mean"]
        assert all(hasattr(accessor, name) for names in listed.values() for name in names)
        exact = {*listed["exact numbers, for the curator alone"]}
        assert {"assess", "individual_risk", "identifiability"} <= exact
        assert ("k_anonymity" in exact) == hasattr(accessor, "k_anonymity")
        assert not {"declare", "declared", *exact} & {*listed["noisy answers"]}


class TestWords:
    """Errors and warnings name the way out."""

    @pytest.mark.parametrize("ask", [lambda d: d.mode("g"), lambda d: d.agg({"g": ["mode"]}, eps=1)])
    def test_a_mode(self, ask):
        frame = pd.DataFrame({"region": ["a", "b", "b"] * 9})
        with pytest.raises((AttributeError, pdrisk.ParameterError), match="value_counts") as said:
            ask(frame.dprisk)
        advice = str(said.value).split("the first of ")[1].split(", as noise")[0].replace("[...]", "['a', 'b']")
        assert eval(f"frame.dprisk{advice}", {"frame": frame}).index[0] in ("a", "b")

    def test_shares(self):
        """What is written instead of normalize= runs; counts and cross tables take it as pandas does."""
        frame = pd.DataFrame({"g": ["a", "b"] * 50, "h": [1, 1, 2, 2] * 25})
        with pytest.raises(TypeError, match="normalize") as said:
            frame.dprisk.nunique("g", normalize=True, eps=10**6)
        advice = (
            re.search(r"\.count\(.*\)", str(said.value))[0]
            .replace("eps=...", "eps=10**6")
            .replace("=...", "=['a', 'b']")
        )
        assert eval(f"frame.dprisk{advice}", {"frame": frame})["value"].tolist() == [0.5, 0.5]
        shares = frame.dprisk.value_counts("g", normalize=True, eps=10**6, keys=["a", "b"])
        assert shares["value"].tolist() == [0.5, 0.5]
        asked = {"eps": 10**6, "keys": {"g": ["a", "b"], "h": [1, 2]}}
        assert (frame.dprisk.crosstab("g", "h", normalize=True, **asked) == 0.25).all(axis=None)
        assert (frame.dprisk.crosstab("g", "h", normalize=False, **asked) == 25).all(axis=None)

    @pytest.mark.parametrize("column", [["x", "member"], FRAME["x"]], ids=["a list", "a series"])
    def test_what_is_no_label(self, column):
        with pytest.raises(pdrisk.ColumnTypeError, match=r"several columns with df\.dprisk\.agg.*df\.assign"):
            FRAME.dprisk.mean(column, eps=1, bounds=(0, 5))

    def test_a_method_of_a_column(self):
        with pytest.raises(AttributeError, match=r'ask the column, df\["age"\]\.dprisk\.randomized_response'):
            FRAME.dprisk.randomized_response(eps=1)

    def test_truth_values(self):
        assert FRAME.dprisk.mean("member", eps=50).bounds == (0, 1)
        with pytest.raises(pdrisk.ParameterError, match=r"not differential privacy\.$"):
            FRAME.dprisk.mean("x", eps=1)

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ({"bounds": (0, 5)}, r'the range of its values, as in {"distance": \(1, 675\)}, not tuple'),
            ({"missing": [-1]}, r'the list of its codes, as in {"distance": \[-1, -2\]}, not list'),
            ({"keys": ["a"]}, r'the list of its public keys, as in {"region": .*}, not list'),
            ({"keys": {"x": "observed"}}, 'keys must be a list.* cannot be declared'),
        ],
    )  # fmt: skip
    def test_declare(self, said, words):
        with pytest.raises(pdrisk.ColumnTypeError, match=words):
            FRAME.dprisk.declare(**said)

    def test_a_mean_with_much_noise(self):
        with pytest.warns(pdrisk.NoisyReleaseWarning, match=r'mechanism="auto" is far more accurate for a mean'):
            FRAME.dprisk.mean("x", eps=1, bounds=(0, 5), mechanism="laplace")
        with pytest.warns(pdrisk.NoisyReleaseWarning, match=r'mechanism="auto" is far more accurate for a median'):
            FRAME.dprisk.median("x", eps=1, bounds=(0, 5), mechanism="laplace")
        with pytest.warns(pdrisk.NoisyReleaseWarning, match=r'mechanism="auto" is far more accurate for a variance'):
            FRAME.dprisk.var("x", eps=1, bounds=(0, 5), mechanism="laplace")
        with pytest.warns(pdrisk.NoisyReleaseWarning, match=r"make it smaller\.$"):
            FRAME.dprisk.max("x", eps=1, bounds=(0, 5), mechanism="laplace")
        with pytest.warns(pdrisk.NoisyReleaseWarning, match=r"narrower bounds, or about more people at once\. If"):
            FRAME.dprisk.mean("x", eps=1, bounds=(0, 5))
