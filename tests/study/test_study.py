"""The experiment of the SOEP paper on any frame: what a cell is, how samples are drawn, what decides them."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import pdrisk
from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.samples import summary_of_samples
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.study import experiment, run
from pdrisk.study.plan import PROPORTIONS

VALUES = [0.0, 1.0, 1.0, 2.5, 4.0, 7.0, 7.5, 10.0]
FRAME = pd.DataFrame({"x": VALUES, "y": [3.0, 1.0, 10.0, 675.0, 17.0, math.nan, math.nan, math.nan]})
STATISTICS = (
    "count", "sum", "mean", "median", ("quantile", {"q": 0.9}), ("quantile", {"q": 0.25}), "min", "max", "var",
    ("var", {"ddof": 0}), "std", ("std", {"ddof": 0}),
)  # fmt: skip


def drawn(monkeypatch, *args, **options):
    """The result of a study and, by size, every sample it looked at, in the order of repetitions."""
    seen = {}

    def spy(samples, universe, needs):
        seen.setdefault(samples.shape[1], []).extend(samples.tolist())
        return summary_of_samples(samples, universe, needs)

    monkeypatch.setattr(experiment, "summary_of_samples", spy)
    return run(*args, workers=1, **options), seen


class TestSummaryOfSamples:
    """A row of a matrix of samples has the summary that it has on its own."""

    @given(
        rows=st.integers(0, 6).flatmap(
            lambda n: st.lists(st.lists(st.floats(-3, 5), min_size=n, max_size=n), min_size=1, max_size=4)
        )
    )
    def test_it_is_that_of_one_group(self, rows):
        universe, needs = Universe(-3.0, 5.0), Needs(True, True, True, True, True, frozenset({0.0, 0.3, 0.5, 0.9, 1.0}))
        samples = np.sort(np.array(rows, dtype=np.float64).reshape(len(rows), -1), axis=1)
        batch = summary_of_samples(samples, universe, needs)
        for place, row in enumerate(samples):
            one = summary_of_one(row, universe, needs)
            assert batch.n[place] == one.n[0]
            for name in ("total", "squares", "nearest"):
                assert getattr(batch, name)[place] == pytest.approx(getattr(one, name)[0], rel=1e-12, abs=1e-12)
            assert batch.steps[place] == one.steps[0]
            np.testing.assert_array_equal(batch.lowest[:, place], one.lowest[:, 0])
            np.testing.assert_array_equal(batch.highest[:, place], one.highest[:, 0])
            for q in needs.windows:
                # Of the median the fourth is never read.
                read = 3 if q == 0.5 else 4
                np.testing.assert_array_equal(batch.windows[q][:read, place], one.windows[q][:read, 0])

    def test_equal_records_far_from_zero_do_not_vary(self):
        samples = np.repeat(1e9 + np.arange(50)[:, np.newaxis] / 10, 3, axis=1)
        summary = summary_of_samples(samples, Universe(0.0, 1e10), Needs(total=True, squares=True))
        assert (summary.total / 3 != samples[:, 0]).any()  # a rounded mean, and still:
        assert summary.squares.max() == 0

    def test_what_nobody_needs_is_not_computed(self):
        summary = summary_of_samples(np.ones((2, 3)), Universe(0.0, 1.0), Needs(ends=True))
        assert summary.total is summary.squares is summary.nearest is summary.steps is None
        assert not summary.windows


class TestCells:
    """Every cell is what the definitions give for that very sample."""

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
    @pytest.mark.parametrize("bounds", [None, (-1.0, 12.0), (1.0, 7.0)])
    def test_they_are_those_of_brute_force(self, monkeypatch, size, bounds):
        losses = [0.1, 1.0, 8.0]
        table, seen = drawn(
            monkeypatch, FRAME, "x", STATISTICS, eps=losses, sample_sizes=size, repetitions=6, bounds=bounds
        )
        lo, hi = oracle.fractions(bounds or (0.0, 10.0))
        samples = [oracle.fractions(sample) for sample in seen[size]]
        assert len(samples) == (1 if size == 8 else 6)
        rows = table.set_index(["statistic", "repetition", "eps"])
        whole = {  # docs/numbers.md, as shares of the width or its square
            "mean": 1 / 2, "median": 1 / 2, "quantile(0.9)": 0.9, "quantile(0.25)": 0.75, "min": 1.0, "max": 1.0,
            "std": 1 / math.sqrt(2), "std(ddof=0)": 1 / 2,
        }  # fmt: skip
        width = float(hi - lo)
        gs = {name: share * width for name, share in whole.items()}
        gs |= {"var": width**2 / 2, "var(ddof=0)": width**2 / 4, "count": 1.0, "sum": float(max(abs(lo), abs(hi)))}
        assert set(rows.index.get_level_values(0)) == set(gs)
        for (label, repetition, eps), row in rows.iterrows():
            sample = samples[repetition]
            definition = (
                oracle.Definition(oracle.quantile(float(label[9:-1]))) if "quantile" in label
                else oracle.DEFINITIONS[label]
            )  # fmt: skip
            local = definition.local_sensitivity(sample, lo, hi)
            between = definition.world_range(sample, lo, hi)
            close = {"rel": 1e-9, "abs": 1e-9}
            assert row["n"] == row["sample_size"] == size == len(sample)
            assert row["global_sensitivity"] == pytest.approx(gs[label])
            assert row["local_sensitivity"] == pytest.approx(local, **close)
            assert row["noise95"] == pytest.approx(gs[label] / eps * math.log(20))
            assert row["worst_case"] == pytest.approx(1 / (1 + math.exp(-eps)))
            loss = eps * local / gs[label]
            assert row["two_worlds"] == pytest.approx(1 / (1 + math.exp(-loss)))
            assert row["many_worlds"] == pytest.approx(1 / (1 + (size - 1) * math.exp(-loss)))
            across = eps * between / gs[label]
            assert row["identifiability"] == pytest.approx(1 / (1 + (size - 1) * math.exp(-across)))

    def test_the_example_of_the_paper(self):
        table = run(FRAME, "y", eps=1, sample_sizes=1.0).set_index("statistic")
        # Table I of the paper and its section 3.2: universe [1, 675], the sample of all five
        expected = {"mean": (337, 133.45), "median": (337, 3.5), "min": (674, 2), "max": (674, 658)}
        expected["var"] = (227138, 89031.283333)
        for label, (whole, local) in expected.items():
            assert table.loc[label, "global_sensitivity"] == pytest.approx(whole)
            assert table.loc[label, "local_sensitivity"] == pytest.approx(local)
        assert table.loc["mean", "two_worlds"] == pytest.approx(0.5977, abs=5e-5)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("bounds", ["column", (0, 20)])
    def test_of_everybody_they_are_those_of_assess(self, bounds):
        frame = pdrisk.datasets.soep_like(missing="nan").sample(3000, random_state=1)
        ours = run(frame, ["hours", "distance"], STATISTICS, eps=[0.1, 2], sample_sizes=1.0, bounds=bounds)
        options = {"bounds": bounds, "mechanism": "laplace"}
        usual = frame.dprisk.assess(["hours", "distance"], list(STATISTICS), [0.1, 2], **options)
        named = ["column", "statistic", "eps"]
        left, right = ours.set_index(named), usual.set_index(named)
        assert list(left.index) == list(right.index)
        assert set(right.pop("mechanism")) == {"laplace"}
        for name in right.columns:
            np.testing.assert_allclose(left[name], right[name], rtol=1e-9, atol=1e-300, err_msg=name)


class TestSamples:
    """Samples are drawn without replacement, each set of people as likely as any other."""

    def test_nobody_is_drawn_twice(self, monkeypatch):
        _, seen = drawn(monkeypatch, FRAME, "x", "mean", sample_sizes=[3, 5, 7], repetitions=30)
        assert sorted(seen) == [3, 5, 7]
        for samples in seen.values():
            assert len(samples) == 30
            assert not any(Counter(sample) - Counter(VALUES) for sample in samples)
            assert len(set(map(tuple, samples))) > 5

    def test_every_pair_is_as_likely(self, monkeypatch):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0]})
        _, seen = drawn(monkeypatch, frame, "x", "mean", sample_sizes=2, repetitions=5000)
        counts = Counter(map(tuple, seen[2]))
        assert set(counts) == set(itertools.combinations(range(1, 6), 2))
        # Binomial, 5000 times 1/10: a standard deviation of 21
        assert all(abs(count - 500) < 6 * 21.3 for count in counts.values())

    def test_everybody_is_looked_at_once(self, monkeypatch):
        table, seen = drawn(monkeypatch, FRAME, "x", "mean", eps=1, sample_sizes=[4, 1.0], repetitions=9)
        assert {size: len(samples) for size, samples in seen.items()} == {4: 9, 8: 1}
        assert table["repetition"].tolist() == [*range(9), 0]
        assert table["proportion"].tolist() == [0.5] * 9 + [1.0]

    def test_the_usual_sizes(self):
        frame = pd.DataFrame({"x": np.arange(10_000.0), "few": [*range(20), *[None] * 9980]})
        sizes = run(frame, ["x", "few"], "max", eps=1, repetitions=1).groupby("column")["sample_size"].unique()
        assert sizes["x"].tolist() == [round(share * 10_000) for share in PROPORTIONS]
        assert sizes["few"].tolist() == [2, 5, 10, 20]

    @pytest.mark.parametrize(
        ("given", "sizes"),
        [
            (3, [3]), (8.0, [8]), (1.0, [8]), (1, [1]), (0.5, [4]), ([4, 0.5], [4]), ((7, 2), [2, 7]),
            (np.array([2, 3]), [2, 3]), (range(2, 5), [2, 3, 4]), ([0.01], [1]), ([np.float64(0.25)], [2]),
        ],
    )  # fmt: skip
    def test_sizes_are_counts_or_shares(self, given, sizes):
        table = run(FRAME, "x", "max", eps=1, repetitions=2, sample_sizes=given)
        assert table["sample_size"].drop_duplicates().tolist() == sizes

    def test_a_share_stands_there_as_it_was_asked_for(self):
        """Unless two of them come to the same number of people, or one is a person off or more."""
        frame = pd.DataFrame({"x": np.arange(300.0), "few": [*range(10), *[None] * 290]})
        table = run(frame, ["x", "few"], "max", eps=1, repetitions=1, sample_sizes=[0.011, 0.25, 0.999, 5])
        shares = table.groupby(["column", "sample_size"])["proportion"].first()
        assert shares["x"].to_dict() == {3: 0.011, 5: 5 / 300, 75: 0.25, 300: 0.999}
        assert shares["few"].to_dict() == {1: 0.011, 2: 0.25, 5: 0.5, 10: 0.999}
        table = run(frame, "few", "max", eps=1, repetitions=1, sample_sizes=[0.04, 0.06, 0.5])
        assert table.groupby("sample_size")["proportion"].first().to_dict() == {1: 0.1, 5: 0.5}

    def test_memory_is_bounded(self, monkeypatch):
        whole = run(FRAME, ["x", "y"], STATISTICS, repetitions=7, sample_sizes=[2, 3, 1.0])
        held = []
        monkeypatch.setattr(experiment, "PIECE", 4)
        monkeypatch.setattr(
            experiment, "summary_of_samples",
            lambda samples, *rest: held.append(samples.shape) or summary_of_samples(samples, *rest),
        )  # fmt: skip
        pd.testing.assert_frame_equal(
            run(FRAME, ["x", "y"], STATISTICS, repetitions=7, sample_sizes=[2, 3, 1.0]), whole
        )
        assert max(rows * size for rows, size in held if rows > 1) <= 4


class TestSeeds:
    """A sample depends on the seed, the column's name and values, and its size: on nothing else."""

    def again(self, frame=FRAME, columns=("x", "y"), **options):
        usual = {"sample_sizes": [3, 5, 1.0], "repetitions": 8, "eps": [0.5, 2]}
        return run(frame, list(columns), **(usual | options))

    def test_the_same_seed_gives_the_same_frame(self):
        pd.testing.assert_frame_equal(self.again(), self.again())
        assert self.again().attrs == self.again().attrs
        assert not self.again().equals(self.again(seed=1))

    @pytest.mark.parametrize("workers", [2, 3])
    def test_workers_change_nothing(self, workers):
        pd.testing.assert_frame_equal(self.again(workers=workers), self.again(workers=1))

    def test_the_order_of_rows_changes_nothing(self):
        pd.testing.assert_frame_equal(self.again(FRAME[::-1]), self.again())

    def test_other_columns_change_nothing(self):
        both = self.again()
        alone = self.again(columns=["y"])
        pd.testing.assert_frame_equal(both[both["column"] == "y"].reset_index(drop=True), alone)

    def test_other_statistics_eps_and_sizes_change_nothing(self):
        part = self.again(statistics="median", eps=2, sample_sizes=5)
        whole = self.again()
        same = (whole["statistic"] == "median") & (whole["eps"] == 2) & (whole["sample_size"] == 5)
        pd.testing.assert_frame_equal(whole[same].reset_index(drop=True), part)

    def test_more_repetitions_leave_the_first_as_they_are(self):
        few, more = self.again(), self.again(repetitions=20)
        first = more[more["repetition"] < 8].reset_index(drop=True)
        pd.testing.assert_frame_equal(first, few)

    def test_columns_of_equal_values_have_samples_of_their_own(self):
        twins = FRAME.assign(z=FRAME["x"])
        table = self.again(twins, ["x", "z"], sample_sizes=3)
        x, z = (table.loc[table["column"] == name, "local_sensitivity"].to_numpy() for name in "xz")
        assert not np.array_equal(x, z)

    def test_sizes_have_samples_of_their_own(self, monkeypatch):
        _, seen = drawn(monkeypatch, pd.DataFrame({"x": np.arange(1000.0)}), "x", "max", sample_sizes=[5, 6])
        assert not set(seen[5][0]) & set(seen[6][0])
