"""What type checkers know: statistics and options of `pdrisk.accessor` and of a Dataset."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pandas as pd
import pytest

import pdrisk

FRAME = pd.DataFrame({"age": [20.0, 40.0] * 30, "sex": ["f", "m"] * 30})
QUESTIONS = """
import pandas as pd
import pdrisk

frame = pd.DataFrame({"age": [20.0], "sex": ["f"]})
people, ages = pdrisk.accessor(frame), pdrisk.accessor(frame["age"])
reveal_type(people)
reveal_type(ages)
reveal_type(people.mean("age", eps=1))
reveal_type(people.agg({"age": ["mean"]}, eps=1))
reveal_type(ages.hist(bins=3, eps=1, bounds=(0, 99)))
reveal_type(people.declare(bounds={"age": (0, 99)}))
reveal_type(pdrisk.Dataset(frame).median("age", eps=1))
people.mean("age", epss=1)
people.meen("age", eps=1)
ages.mean(eps="a lot")
pdrisk.accessor([1, 2])
"""
REVEALED = [
    "FrameAccessor", "SeriesAccessor", "Release | pandas.*DataFrame", "DataFrame", "DataFrame", "DataFrame",
    "Release | pandas.*DataFrame",
]  # fmt: skip


@pytest.mark.skipif(
    find_spec("mypy") is None or find_spec("pandas-stubs") is None, reason="no mypy: pip install mypy pandas-stubs"
)
def test_mypy(tmp_path):
    """Revealed types are those of the answers, and each wrong line is found."""
    path = tmp_path / "questions.py"
    path.write_text(QUESTIONS)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout.splitlines()
    revealed = [line.partition("Revealed type is ")[2] for line in lines if "Revealed type is" in line]
    assert len(revealed) == len(REVEALED), lines
    assert all(re.search(wanted, found) for wanted, found in zip(REVEALED, revealed, strict=True)), revealed
    first = QUESTIONS.splitlines().index('people.mean("age", epss=1)') + 1
    wrong = sorted({int(match[1]) for line in lines if (match := re.match(r".*questions\.py:(\d+): error", line))})
    assert wrong == list(range(first, first + 4)), lines


def test_it_is_the_accessor():
    assert pdrisk.accessor(FRAME).count(eps=1).curator.n == FRAME.dprisk.count(eps=1).curator.n == 60
    assert pdrisk.accessor(FRAME["age"]).mean(eps=1, bounds=(0, 99)).curator.n == 60
    declared = FRAME.dprisk.declare(bounds={"age": (0, 99)})
    assert pdrisk.accessor(declared).mean("age", eps=1).bounds == (0, 99)


@pytest.mark.parametrize("wrong", [None, 3, [1], {"age": [1]}, pd.Index([1])])
def test_nothing_else(wrong):
    with pytest.raises(pdrisk.ColumnTypeError, match="accessor takes a DataFrame or a Series"):
        pdrisk.accessor(wrong)
