"""People at the seams: whatever is asked, somebody's absence moves what noise is added to by what is paid, at most."""

import datetime
import pickle

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, ParameterError
from people_losses import BOUNDS, dataset, loss

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

KEYS = ["a", "b", "c"]


def small(draw):
    """Some rows of a few people: equal ones, missing ones, zeros of both signs, values beyond the bounds."""
    n = int(draw.integers(2, 13))
    frame = pd.DataFrame({"pid": draw.integers(0, 4, n), "g": draw.choice(list("abcd"), n)})
    frame["x"] = draw.choice([-3.0, 0.0, -0.0, 2.5, 4.0, 4.0, 10.0, 12.0, np.nan], n)
    frame["y"] = draw.choice([0.0, 1.0, 5.0, np.nan], n)
    return frame


BY = {"by": "g", "keys": KEYS, "groups": 2}
ALL = {"by": "g", "keys": KEYS, "rows": 2}  # in all groups together
IN_ALL = {
    "count": lambda d: d.count(eps=1, **ALL),
    "one row": lambda d: d.count(eps=1, by="g", keys=KEYS, rows=1),
    "values": lambda d: d.count("x", eps=1, where="y < 5", **ALL),
    "sum": lambda d: d.sum("x", eps=1, **ALL),
    "mean": lambda d: d.mean("x", eps=1, **ALL),
    "proportion": lambda d: d.proportion("x > 2", eps=1, **ALL),
    "median": lambda d: d.median("x", eps=1, **ALL),
    "highest": lambda d: d.max("x", eps=1, by="g", keys=KEYS, rows=3),
    "variance": lambda d: d.std("x", eps=1, **ALL),
    "different": lambda d: d.nunique("x", eps=1, **ALL),
    "laplace mean": lambda d: d.mean("x", eps=1, by="g", keys=KEYS, rows=3, mechanism="laplace"),
    "laplace median": lambda d: d.median("x", eps=1, mechanism="laplace", **ALL),
    "laplace variance": lambda d: d.var("x", eps=1, by="g", keys=["a", "b"], rows=3, mechanism="laplace"),
    "laplace highest": lambda d: d.max("x", eps=1, mechanism="laplace", **ALL),
    "clip": lambda d: d.mean("x", eps=1, clip="private", **ALL),
    "two stages": lambda d: d.mean("x", eps=1, mechanism="two_stage", n_at_least=3, **ALL),
    "together": lambda d: d.agg({"x": ["count", "mean", "var"], "y": ["max"]}, eps=1, **ALL),
    "quantiles": lambda d: d.agg({"x": [("quantile", {"q": q}) for q in (0.2, 0.5, 0.9)]}, eps=1, **ALL),
    "pairs": lambda d: d.corr("x", "y", eps=1, **ALL),
    "sql": lambda d: d.sql("SELECT g, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY g", eps=1, rows=2, keys=KEYS),
    "sql of one row": lambda d: d.sql(
        "SELECT g, COUNT(*) AS n, COUNT(y) AS m FROM data WHERE x > 1 GROUP BY g", eps=1, rows=1, keys=KEYS
    ),
    "rollup": lambda d: d.sql(
        "SELECT g, COUNT(x) AS n, MAX(y) AS m FROM data GROUP BY ROLLUP (g)", eps=1, rows=2, keys=KEYS
    ),
}
QUESTIONS = {f"{name} in all groups": ask for name, ask in IN_ALL.items()} | {
    "count": lambda d: d.count(eps=1, rows=2, where="x > 1"),
    "mean": lambda d: d.mean("x", eps=1, rows=2, **BY),
    "laplace": lambda d: d.mean("x", eps=1, rows=3, mechanism="laplace"),
    "variance": lambda d: d.var("x", eps=1, rows=3, mechanism="laplace", **BY),
    "one number": lambda d: d.median("x", eps=1, per_person="mean", **BY),
    "clip": lambda d: d.mean("x", eps=1, rows=2, clip="private"),
    "two stages": lambda d: d.mean("x", eps=1, rows=2, mechanism="two_stage", n_at_least=3),
    "together": lambda d: d.agg({"x": ["count", "mean", "var"], "y": ["max"]}, eps=1, rows=2, **BY),
    "quantiles": lambda d: d.agg({"x": [("quantile", {"q": q}) for q in (0.2, 0.5, 0.9)]}, eps=1, rows=2),
    "different": lambda d: d.nunique("x", eps=1, rows=2, **BY),
    "bins": lambda d: d.hist("x", bins=4, eps=1, rows=2),
    "bins of means": lambda d: d.hist("x", bins=4, eps=1, per_person="mean"),
    "pairs": lambda d: d.corr("x", "y", eps=1, rows=2),
    "sql": lambda d: d.sql(
        "SELECT g, COUNT(*) AS n, AVG(x) AS m FROM data WHERE x > 1 GROUP BY g", eps=1, rows=2, groups=2, keys=KEYS
    ),
    "sql of numbers": lambda d: d.sql("SELECT AVG(x) AS m, MAX(y) AS h FROM data", eps=1, per_person="mean"),
    "rollup": lambda d: d.sql(
        "SELECT g, COUNT(DISTINCT pid) AS n FROM data GROUP BY ROLLUP (g)", eps=1, groups=2, keys=KEYS
    ),
    "people in groups of rows": lambda d: d.sql(
        "SELECT g, COUNT(DISTINCT pid) AS n, COUNT(*) AS k FROM data GROUP BY g", eps=1, rows=2, keys=KEYS
    ),
    "scalar": lambda d: d.sql("SELECT COUNT(*) AS n, (SELECT AVG(x) FROM data) AS m FROM data", eps=1, rows=2),
}


@pytest.mark.parametrize("frames", [pytest.param(2), pytest.param(12, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_without_somebody(question, frames):
    draw = np.random.default_rng(11)
    for _ in range(frames):
        frame = small(draw)
        for pid in frame["pid"].unique()[:2]:
            rest = frame[frame["pid"] != pid].sample(frac=1, random_state=1)
            assert loss(QUESTIONS[question], frame, rest) <= 1 + 1e-6
            assert loss(QUESTIONS[question], rest, frame) <= 1 + 1e-6


class TestOthersChangeNothing:
    """What is chosen of somebody does not depend on what others hold, nor of which type it is."""

    @pytest.mark.parametrize(
        ("others", "dtype"),
        [
            ([None, 1, 2], "int64[pyarrow]"),
            ([None, True, False], "bool[pyarrow]"),
            ([None, 1, 2], "Int64"),
            ([None, datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], object),
            ([None, b"a", "b"], object),
            ([None, ("a", 1), 7], object),
        ],
    )
    def test_rows_of_nobody(self, others, dtype):
        """Without the rows that have no id, which do not count, nothing else counts."""
        if "pyarrow" in str(dtype):
            pytest.importorskip("pyarrow")
        draw = np.random.default_rng(2)
        for _ in range(10):
            at = draw.integers(0, 3, 12)
            ids = pd.Series([others[each] for each in at], dtype=dtype)
            frame = pd.DataFrame({"pid": ids, "x": draw.integers(0, 11, 12).astype(float)})
            assert loss(lambda d: d.sum("x", eps=1, rows=1), frame, frame[at > 0]) == 0

    def test_values_of_other_types(self):
        """1, 1.0 and True are the same value to pandas, and bytes are hashed otherwise beside texts than alone."""
        values = np.array([1, 1.0, True, "x", "1", 0, False, b"z", ("t",)], dtype=object)
        draw = np.random.default_rng(5)
        for _ in range(25):
            frame = pd.DataFrame({"pid": draw.integers(0, 4, 10), "x": draw.choice(values, 10)})
            rest = frame[frame["pid"] != 1]
            assert loss(lambda d: d.nunique("x", eps=1, rows=1), frame, rest) <= 1

    @pytest.mark.parametrize(
        "query",
        ["SELECT SUM(x) AS v FROM data", "SELECT COUNT(DISTINCT x) AS v FROM data"],
    )
    def test_zeros_of_both_signs_in_any_order(self, query):
        draw = np.random.default_rng(3)
        for at in range(8):
            frame = pd.DataFrame({"pid": draw.integers(0, 3, 12), "x": draw.choice([0.0, -0.0, 5.0, -0.0], 12)})
            shuffled = frame.sample(frac=1, random_state=at)
            assert loss(lambda d: d.sql(query, eps=1, rows=1), frame, shuffled) == 0


class TestNumbers:
    def test_bins_of_one_number_a_person(self):
        """Worked out by groupby, as numpy's histogram counts it."""
        draw = np.random.default_rng(0)
        frame = pd.DataFrame({"pid": np.repeat(np.arange(300), 3), "x": draw.uniform(0, 10, 900)})
        means = frame.groupby("pid")["x"].mean()
        table = dataset(frame).hist("x", bins=4, eps=1000, per_person="mean")
        assert table["value"].tolist() == np.histogram(means, np.linspace(0, 10, 5))[0].tolist()
        table = dataset(frame).hist("x", bins=[0, 10, 15, 30], eps=1000, per_person="sum")
        assert table["value"].tolist() == np.histogram(frame.groupby("pid")["x"].sum(), [0, 10, 15, 30])[0].tolist()

    def test_bounds_where_each_person_is_a_mean(self):
        frame = pd.DataFrame({"pid": np.repeat(np.arange(500), 2), "x": np.tile([40.0, 60.0], 500)})
        d = Dataset(frame, person="pid", per_person="mean")
        found = [tuple(d.suggest_bounds("x", eps=5)) for _ in range(9)]  # one in 150 is wider, by its noise
        assert found.count((32, 64)) >= 5
        with pytest.raises(ParameterError, match="bounds are those of the sum of a person"):
            Dataset(frame, person="pid", per_person="sum").suggest_bounds("x", eps=5)

    def test_codes_of_ids_are_nobody(self):
        frame = pd.DataFrame({"pid": [1, 1, 2, -1, -1], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
        d = dataset(frame, missing={"pid": [-1]})
        curator = d.mean("x", eps=1, rows=2).curator
        assert (curator.n, curator.unlisted) == (3, 2)
        assert d.sql("SELECT AVG(x) AS m FROM data", eps=1, rows=2, curator=True)["m_n"][0] == 3

    def test_people_are_counted_however_rows_is_written(self):
        frame = pd.DataFrame({"pid": [1, 1, 2], "x": 1.0})
        for rows in (2, np.int64(2)):
            answer = dataset(frame).sql("SELECT COUNT(DISTINCT pid) AS n FROM data", eps=1000, rows=rows)
            assert answer["n"].tolist() == [2]

    def test_groups_of_parts_that_have_some(self):
        frame = pd.DataFrame({"pid": np.repeat(np.arange(50), 2), "g": ["a", "b"] * 50})
        query = "SELECT g, COUNT(DISTINCT pid) AS n FROM data GROUP BY ROLLUP (g)"
        assert dataset(frame).sql(query, eps=1000, groups=2, keys=["a", "b"])["n"].tolist() == [50, 50, 50]
        alone = dataset(frame).sql("SELECT COUNT(DISTINCT pid) AS n FROM data", eps=1000, groups=2)  # passed over
        assert alone["n"].tolist() == [50]


class TestWhatIsSaid:
    def test_a_remembered_answer_is_about_the_same_unit(self, book):
        """One about rows, which a Dataset without a person asked, hides no person."""
        frame, ledger = pd.DataFrame({"pid": np.repeat(np.arange(100), 4)}), book(eps=2000)
        assert Dataset(frame, ledger=ledger).count(eps=1000).value == 400
        people = Dataset(frame, ledger=ledger, person="pid", per_person="one")
        assert people.count(eps=1000).value == 100
        assert ledger.remaining().eps == 0

    def test_one_statement_has_one_unit(self, book):
        """Its description has one place for it, and a budget one unit: nothing is paid before that is seen."""
        frame, ledger = pd.DataFrame({"pid": [1, 1, 2], "other": [1, 2, 3]}), book(eps=1)
        one, two = (frame.dprisk.declare(person=column) for column in ("pid", "other"))
        query = "SELECT COUNT(*) AS n FROM a UNION ALL SELECT COUNT(*) FROM b"
        with pytest.raises(ParameterError, match="different units, pid and other"):
            pdrisk.sql(query, eps=1, rows=1, a=one, b=two, ledger=ledger)
        query = "SELECT COUNT(DISTINCT pid) AS n FROM a UNION ALL SELECT COUNT(*) FROM b"
        with pytest.raises(ParameterError, match="different units, pid and record"):
            pdrisk.sql(query, eps=1, a=one, b=frame, ledger=ledger)
        assert ledger.remaining().eps == 1

    def test_rows_of_one_person_are_no_sample(self):
        frame = pd.DataFrame({"pid": np.repeat(np.arange(200), 4), "x": 5.0})
        with pytest.raises(ParameterError, match="one person may have several"):
            dataset(frame).mean("x", eps=1, rows=3).interval(0.9, kind="sampling")
        low, high = dataset(frame).mean("x", eps=1, per_person="mean").interval(0.9, kind="sampling")
        assert low < 5 < high

    def test_a_dataset_is_copied_to_other_processes(self):
        frame = pd.DataFrame({"pid": np.repeat(np.arange(9), 9), "x": np.arange(81.0) % 10})
        d = Dataset(frame, person="pid", bounds={"x": BOUNDS["x"]})
        other = pickle.loads(pickle.dumps(d))
        facts = [each.median("x", eps=1, rows=1).curator for each in (d, other)]
        assert facts[0] == facts[1]
