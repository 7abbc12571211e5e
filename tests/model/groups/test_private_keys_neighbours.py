"""Neighbours differ in the groups they show by (eps, delta), and given these groups in nothing but half of eps."""

import math

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._audit.replay import recorded, replayed
from pdrisk._core.risks.binomial import clopper_pearson
from pdrisk._mechanisms.partition_selection import PartitionSelection

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EPS = 2
PRIVATE = {"eps": EPS, "keys": "private", "delta": 1e-6}
BOUNDS = {"bounds": (0, 10)}
SQL = "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM data GROUP BY g"
ASKED = {
    "sum of rows": lambda d: d.dprisk.sum("x", by="g", person="pid", rows=2, groups=2, **PRIVATE, **BOUNDS),
    "mean": lambda d: d.dprisk.mean("x", by="g", person="pid", per_person="mean", groups=1, **PRIVATE, **BOUNDS),
    "clipped": lambda d: d.dprisk.mean(
        "x", by="g", person="pid", per_person="one", clip="private", **PRIVATE, **BOUNDS
    ),
    "people": lambda d: d.dprisk.count(by=["g", "h"], person="pid", groups=3, **PRIVATE),
    "filtered": lambda d: d.dprisk.count("x", by="g", where="x > 2", person="pid", rows=3, groups=2, **PRIVATE),
    "several": lambda d: d.dprisk.agg({"x": ["mean", "max"]}, by="g", unit="row", person="pid", **PRIVATE, **BOUNDS),
    "SQL": lambda d: pdrisk.sql(SQL, person="pid", rows=2, groups=2, data=d, **PRIVATE, **BOUNDS),
    "SQL, one row": lambda d: pdrisk.sql(SQL, person="pid", per_person="one", data=d, **PRIVATE, **BOUNDS),
}


def people(seed):
    """Two groups of many, whoever comes or goes, and groups that only the last person has; each has several rows."""
    rng = np.random.default_rng(seed)
    size = 160
    frame = pd.DataFrame({"pid": rng.integers(0, 40, size), "g": rng.choice(["a", "b"], size), "h": "same"})
    frame["x"] = rng.choice([0.0, 1.0, 5.0, 10.0, 99.0, np.nan], size)
    own = pd.DataFrame({"pid": 99, "g": ["a", "b", "only here", "a", None], "h": ["same"] * 4 + ["other"]})
    return frame, pd.concat([frame, own.assign(x=rng.choice([0.0, 10.0], 5))], ignore_index=True)


@pytest.mark.parametrize("name", ASKED)
def test_the_second_reading(name, monkeypatch):
    monkeypatch.setattr(PartitionSelection, "draw", lambda self, summary, *_: summary.n >= 5)
    rows = 3 if name == "several" else 1  # so many of the person are in groups that are shown, each for itself
    for seed in range(4):
        fewer, more = people(seed)
        more = more.sample(frac=1, random_state=seed)
        before = recorded(ASKED[name], fewer)
        assert before.draws, before.shown
        assert replayed(ASKED[name], more, before).loss <= rows * EPS / 2 * (1 + 1e-12)


@pytest.mark.parametrize("name", ASKED)
def test_the_first_reading(name, monkeypatch):
    """A person in a group of their own, before all others in order, moves no one else from one group to another."""
    sizes = []
    monkeypatch.setattr(PartitionSelection, "draw", lambda self, summary, *_: sizes.append(summary.n) or summary.n >= 5)
    for seed in range(4):
        fewer, more = people(seed)
        for frame in (fewer, more.replace({"g": {"only here": "A"}})):
            ASKED[name](frame)
        before, after = sizes[-2:]
        rows = 2 if name == "several" else 1
        assert set(after[-len(before) :] - before) <= set(range(rows + 1))


class TestAuditOfDelta:
    """From data to answer, neighbours differ in the groups they show by (eps, delta) at most, and by nearly that."""

    SIZE = 150_000

    def shown(self, n, ask):
        """Of so many groups of n people each, how many are shown; each is a draw of its own."""
        frame = pd.DataFrame({"g": np.repeat(np.arange(self.SIZE), n)})
        return ask(frame) if n else 0  # a group of nobody does not occur

    @pytest.mark.parametrize("engine", ["frame", "SQL"])
    def test_somebody_alone(self, engine):
        def ask(frame):
            if engine == "frame":
                return len(frame.dprisk.count(eps=2, by="g", keys="private", delta=1e-3))
            query = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
            return len(pdrisk.sql(query, eps=2, keys="private", delta=1e-3, t=frame))

        low, high = clopper_pearson(self.shown(1, ask), self.SIZE, 1 - 1e-9)
        assert low <= 1e-3 <= high < 2e-3

    def test_neighbours(self):
        def ask(frame):
            return len(frame.dprisk.count(eps=2, by="g", keys="private", delta=1e-3))

        found = {n: clopper_pearson(self.shown(n, ask), self.SIZE, 1 - 1e-7) for n in (2, 3)}
        assert found[3][0] - math.e * found[2][1] <= 1e-3
        for n, (low, high) in found.items():
            assert low <= 1e-3 * sum(math.e**at for at in range(n)) <= high


class TestHowKeysLook:
    """One record decides neither how the key of others looks, nor whether there is an answer."""

    @pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]", "category"])
    def test_of_zero(self, dtype):
        keys = pd.Series([-0.0] + [0.0] * 400).astype(dtype)
        for frame in (pd.DataFrame({"g": keys}), pd.DataFrame({"g": keys.iloc[1:]})):
            (key,) = frame.dprisk.count(eps=9, by="g", keys="private", delta=1e-6).index
            assert math.copysign(1, key) == 1

    @pytest.mark.parametrize(
        "one", [True, 1, 1.5, b"a", [1], {}, {"a": 1}, 1j, pd.Timestamp(0), np.str_("a")], ids=repr
    )
    def test_of_objects_texts_alone_are_keys(self, one):
        frame = pd.DataFrame({"g": pd.Series([one, *["a"] * 400, *["b"] * 400, *[7] * 400], dtype=object)})
        table = frame.dprisk.count(eps=9, by="g", keys="private", delta=1e-6)
        assert [(type(key), key) for key in table.index] == [(str, "a"), (str, "b")]


def test_labels_say_the_eps_that_noise_is_made_for():
    frame = pd.DataFrame({"g": ["a"] * 1000, "x": 1.0})
    table = frame.dprisk.mean("x", by="g", eps=1, bounds=(0, 10), keys="private", delta=1e-6)
    said = " ".join(pdrisk.explain(table, "publication").split())
    assert (
        "in the widest group, 95 % sure, for eps 0.5" in said
        and "global sensitivity of the statistic 5; eps 0.5" in said
    )
    assert "eps 1; assuming one record per person" in said


@pytest.mark.parametrize("key", [pd.Timestamp("2020-01-01 00:00:00.000000001"), pd.Timedelta(1), pd.Timedelta("1D")])
def test_keys_of_nanoseconds_are_found(key):
    frame = pd.DataFrame({"k": pd.Series([key] * 1000)})
    for keys in ({"keys": [key]}, {"keys": "private", "delta": 1e-6}):
        table = frame.dprisk.count(by="k", eps=9, **keys)
        assert table.index.tolist() == [key] and abs(table["value"].iloc[0] - 1000) < 50
