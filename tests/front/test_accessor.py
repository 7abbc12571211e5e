"""The public face on frames and series: every statistic, every option, every kind of column and index."""

import copy
import inspect
import json
import math
import pickle
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pdrisk

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e6  # an eps at which the answer shows through the noise
BOUNDS = (1, 675)
PAPER = [3, 1, 10, 675, 17]


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {"distance": PAPER, "age": [30, 41, 52, 63, 40], "region": ["north", "south", "north", "south", "east"]}
    )


def ask(data, statistic, **options):
    """The same question to a frame or a series; ``statistic`` is a name, or a name and its parameters.

    Of the paper's mechanism unless another is named.
    """
    name, parameters = (statistic, {}) if isinstance(statistic, str) else statistic
    options = {"mechanism": "laplace"} | options
    if isinstance(data, pd.Series):
        return getattr(data.dprisk, name)(**parameters, **options)
    return getattr(data.dprisk, name)("distance", **parameters, **options)


def shows(release, answer) -> bool:
    """Whether a release hides this answer: noise beyond 40 scales has probability exp(-40)."""
    return abs(release.value - answer) <= 40 * release.scale + 1e-8 * abs(answer)


def posterior(loss, prior=0.5):
    return 1 / (1 + (1 - prior) / prior * math.exp(-loss))


# By hand from 1, 3, 10, 17, 675 in [1, 675]; the mean, medians and variances stand in the paper's Table I.
BY_HAND = [
    ("count", 5, 1, 1),
    ("sum", 706, 675, 675),
    ("mean", 141.2, 337, 133.45),
    ("median", 10, 337, 3.5),
    (("quantile", {"q": 0.9}), 17 + 0.6 * 658, 0.9 * 674, 17 + 0.6 * 658 - 14.9),
    ("min", 1, 674, 2),
    ("max", 675, 674, 658),
    ("var", 89084.2, 227138, 89084.2 - 158.75 / 3),
    (("var", {"ddof": 0}), 71267.36, 113569, 71227.6725),
    ("std", math.sqrt(89084.2), 674 / math.sqrt(2), math.sqrt(89084.2) - math.sqrt(158.75 / 3)),
    (("std", {"ddof": 0}), math.sqrt(71267.36), 337, math.sqrt(71267.36) - math.sqrt(39.6875)),
]
STATISTICS = [case[0] for case in BY_HAND]


class TestStatistics:
    """Every statistic gives the noisy answer, its sensitivities and its risks, from a frame and from a series."""

    @pytest.mark.parametrize("data", [people(), people()["distance"]], ids=["frame", "series"])
    @pytest.mark.parametrize(("statistic", "answer", "whole", "local"), BY_HAND, ids=str)
    def test_equals_the_hand_computed_numbers(self, data, statistic, answer, whole, local):
        release = ask(data, statistic, eps=EXACT, bounds=BOUNDS)
        assert isinstance(release, pdrisk.Release)
        assert shows(release, answer)
        release = ask(data, statistic, eps=1, bounds=BOUNDS)
        assert (release.eps, release.curator.n, release.column) == (1, 5, "distance")
        assert release.global_sensitivity == pytest.approx(whole, rel=1e-12)
        assert release.scale == pytest.approx(whole, rel=1e-8)
        assert release.curator.local_sensitivity == pytest.approx(local, rel=1e-9)
        assert release.risk.worst_case == pytest.approx(0.731059, abs=1e-6)
        assert release.curator.two_worlds == pytest.approx(posterior(local / whole), rel=1e-9)
        assert release.curator.many_worlds == pytest.approx(posterior(local / whole, 1 / 5), rel=1e-9)

    def test_identifiability_of_the_mean(self):
        # Without 675 the mean is 7.75, without 1 it is 176.25.
        release = ask(people(), "mean", eps=2, bounds=BOUNDS)
        assert release.curator.identifiability == pytest.approx(posterior(2 * 168.5 / 337, 1 / 5))

    def test_count_of_rows_and_of_values(self):
        frame = people().assign(distance=[3, np.nan, np.inf, None, 17])
        assert frame.dprisk.count(eps=EXACT).curator.n == 5
        assert frame.dprisk.count("distance", eps=EXACT, bounds="anything").curator.n == 3
        assert frame.dprisk.count("region", eps=EXACT).curator.n == 5
        assert shows(frame["distance"].dprisk.count(eps=EXACT), 3)
        assert frame["distance"].dprisk.count(eps=EXACT).value == 3

    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    def test_an_empty_selection_is_answered(self, statistic):
        # docs/numbers.md: the conventions that leave every global sensitivity as it is.
        nothing = {"mean": 338, "median": 338, "quantile": 338, "min": 675, "max": 1}
        name = statistic if isinstance(statistic, str) else statistic[0]
        for data in (people().head(0), people()):
            release = ask(data, statistic, eps=EXACT, bounds=BOUNDS, where=lambda frame: frame["distance"] > 1e9)
            assert shows(release, nothing.get(name, 0))
            assert release.curator.n == 0
            assert math.isnan(release.curator.many_worlds)
            assert math.isnan(release.curator.identifiability)


class TestOptions:
    """The options mean the same for every statistic."""

    @pytest.mark.parametrize(
        "kind", [int, float, Fraction, Decimal, np.float32, np.float16, np.int64, np.int32, np.uint8, np.int8]
    )
    def test_eps_may_be_any_real_number(self, kind):
        assert ask(people(), "mean", eps=kind(1), bounds=BOUNDS).eps == 1

    @pytest.mark.parametrize(
        "bounds",
        [
            [1, 675],
            np.array([1, 675]),
            pd.Series([1, 675]),
            (np.float32(1), Fraction(675)),
            (Decimal(1), np.int16(675)),
        ],
        ids=lambda bounds: type(bounds).__name__,
    )
    def test_bounds_may_be_any_pair_of_numbers(self, bounds):
        assert ask(people(), "mean", eps=1, bounds=bounds).bounds == (1.0, 675.0)

    @pytest.mark.parametrize(("risk", "prior"), [(0.6, None), (0.6, 0.5), (0.05, 1 / 68), (np.float64(0.99), 0.9)])
    def test_risk_is_solved_for_eps(self, risk, prior):
        eps = ask(people(), "mean", risk=risk, prior=prior, bounds=BOUNDS).eps
        assert posterior(eps, prior or 0.5) == pytest.approx(risk, rel=1e-12)
        assert posterior(eps, prior or 0.5) <= risk

    def test_mechanism(self):
        assert ask(people(), "mean", eps=1, bounds=BOUNDS, mechanism="laplace").mechanism == "laplace"

    def test_bounds_of_the_column_are_marked(self):
        release = ask(people().assign(distance=[3.0, np.nan, 10, np.inf, 17]), "max", eps=EXACT, bounds="column")
        assert (release.bounds, release.bounds_from_data) == ((3, 17), True)

    def test_options_are_shown_and_keyword_only(self):
        for accessor in (people().dprisk, people()["age"].dprisk):
            for name in ("count", "sum", "mean", "median", "quantile", "min", "max", "var", "std"):
                method = getattr(accessor, name)
                kinds = {p.name: p.kind for p in inspect.signature(method).parameters.values()}
                for option in ("eps", "risk", "prior", "bounds", "where", "by", "keys", "mechanism"):
                    assert kinds[option] is inspect.Parameter.KEYWORD_ONLY
                assert method.__doc__
        assert "eps" in inspect.signature(people().dprisk.agg).parameters


def where_forms():
    over = people()["age"] > 40
    forms = {
        "string": ("age > 40", "age > 40", False),
        "series": (over, "a mask or function", True),
        "boolean with NA": (over.astype("boolean").mask(~over), "a mask or function", True),
        "pyarrow": (over.astype("bool[pyarrow]"), "a mask or function", True),
        "array": (over.to_numpy(), "a mask or function", True),
        "list": (over.tolist(), "a mask or function", True),
        "callable": (lambda frame: frame["age"] > 40, "a mask or function", True),
    }
    if hasattr(pd, "col"):
        forms["pd.col"] = (pd.col("age") > 40, "age > @value", True)
    return [pytest.param(*form, id=name) for name, form in forms.items()]


class TestWhere:
    """A subgroup is chosen row by row and judged against the column's universe."""

    @pytest.mark.parametrize(("where", "text", "trusted"), where_forms())
    @pytest.mark.parametrize("index", [[0, 1, 2, 3, 4], [7, 7, 7, 1, 1]], ids=["plain", "duplicates"])
    def test_every_form_selects_the_same(self, where, text, trusted, index):
        frame = people().set_axis(index)
        if isinstance(where, pd.Series):
            where = where.set_axis(index)
        release = ask(frame, "mean", eps=EXACT, bounds=BOUNDS, where=where)
        assert shows(release, (1 + 10 + 675) / 3)
        assert (release.curator.n, release.bounds, release.global_sensitivity) == (3, (1, 675), 337)
        assert release.where_trusted is trusted
        assert release.where == text

    def test_names_of_the_caller(self):
        limit = 40
        release = people().pipe(lambda frame: frame).dprisk.count(eps=EXACT, where="age > @limit")
        assert (release.curator.n, release.where, release.where_trusted) == (3, "age > @limit", True)
        assert limit == 40

    def test_a_series_takes_masks_and_callables(self):
        series = people()["distance"]
        forms = [series > 5, (series > 5).to_numpy(), lambda values: values > 5]
        forms += [pd.col("distance") > 5] if hasattr(pd, "col") else []
        assert [ask(series, "mean", eps=1, bounds=BOUNDS, where=form).curator.n for form in forms] == [3] * len(forms)

    def test_local_sensitivity_of_the_subgroup(self):
        # {3, 10, 17} in [1, 675]: adding 675 moves the mean from 10 to 176.25.
        assert (
            ask(people(), "mean", eps=1, bounds=BOUNDS, where="age in [30, 52, 40]").curator.local_sensitivity == 166.25
        )


def arrow(values, kind):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, kind)))


nan_beside_na = pd.arrays.FloatingArray(np.array([1, np.nan, 7, 0]), np.arange(4) == 3)
COLUMNS = {  # column, and the records it means in [0, 10]
    "float64": (pd.Series([1.5, np.nan, 7, 2]), [1.5, 7, 2]),
    "float32": (pd.Series([1.5, np.nan, 7, 2], dtype="float32"), [1.5, 7, 2]),
    "float16": (pd.Series([1.5, np.nan, 7, 2], dtype="float16"), [1.5, 7, 2]),
    "longdouble": (pd.Series([1.5, 7, 2], dtype=np.longdouble), [1.5, 7, 2]),
    "int8 outside the bounds": (pd.Series([-128, 127, 3], dtype="int8"), [0, 10, 3]),
    "uint64 beyond int64": (pd.Series([2**64 - 1, 1, 2], dtype="uint64"), [10, 1, 2]),
    "bool": (pd.Series([True, False, True]), [1, 0, 1]),
    "Int64": (pd.Series([1, None, 7], dtype="Int64"), [1, 7]),
    "Float64 with NaN and NA": (pd.Series(nan_beside_na), [1, 7]),
    "boolean": (pd.Series([True, None, False, True], dtype="boolean"), [1, 0, 1]),
    "int64[pyarrow]": (arrow([1, None, 7], "int64"), [1, 7]),
    "double[pyarrow] with NaN": (arrow([1, float("nan"), None, 7], "double"), [1, 7]),
    "bool[pyarrow]": (arrow([True, None, False], "bool"), [1, 0]),
    "decimal128[pyarrow]": (arrow([Decimal("1.5"), None, Decimal(7)], pa.decimal128(5, 2)), [1.5, 7]),
    "Decimal objects": (pd.Series([Decimal("1.5"), None, Decimal("NaN"), pd.NA, Decimal("Infinity")]), [1.5, 10]),
    "int objects": (pd.Series([1, None, 7], dtype=object), [1, 7]),
    "float objects": (pd.Series([1.5, 2, np.inf, None], dtype=object), [1.5, 2, 10]),
    "bool objects": (pd.Series([True, None, False], dtype=object), [1, 0]),
    "nothing but None": (pd.Series([None, None], dtype=object), []),
    "infinities": (pd.Series([np.inf, -np.inf, 5]), [10, 0, 5]),
    "sparse": (pd.Series(pd.arrays.SparseArray([1.0, np.nan, 7.5])), [1, 7.5]),
    "sparse zeros": (pd.Series(pd.arrays.SparseArray([0, 0, 7], fill_value=0)), [0, 0, 7]),
    "one record": (pd.Series([3.0]), [3]),
    "no record": (pd.Series([], dtype="float64"), []),
}
INDEXES = {
    "duplicates": [4, 4, 4, 2, 2],
    "unsorted": [9, 1, 5, 3, 7],
    "texts": list("edcba"),
    "dates": pd.to_datetime(["2021", "2020", "2021", "2019", "2020"], format="%Y"),
    "MultiIndex": pd.MultiIndex.from_product([["a", "b"], [1, 1, 2]])[:5],
    "missing labels": [None, None, 1, 2, np.nan],
}


class TestColumnsAndIndexes:
    """The noise-free answer is pandas' own on the clamped, non-missing values, whatever holds them."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("statistic", ["sum", "mean", "median", "min", "max", "var", "std"])
    @pytest.mark.parametrize(("column", "records"), COLUMNS.values(), ids=COLUMNS.keys())
    def test_equals_pandas(self, column, records, statistic):
        release = ask(pd.DataFrame({"distance": column}), statistic, eps=EXACT, bounds=(0, 10))
        empty = {"mean": 5, "median": 5, "min": 10, "max": 0}.get(statistic, 0)
        answer = getattr(pd.Series(records, dtype="float64"), statistic)() if records else empty
        assert release.curator.n == len(records)
        assert shows(release, 0 if math.isnan(answer) else answer)

    @pytest.mark.parametrize(("column", "records"), COLUMNS.values(), ids=COLUMNS.keys())
    def test_count_means_the_same_records_alone_and_beside_a_mean(self, column, records):
        frame = pd.DataFrame({"distance": column})
        assert frame.dprisk.count("distance", eps=1).curator.n == len(records)
        assert (
            frame.dprisk.agg({"distance": ["count", "mean"]}, eps=1, bounds=(0, 10), curator=True)["n"].tolist()
            == [len(records)] * 2
        )

    @pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
    def test_any_index(self, index):
        frame = people().set_axis(index)
        assert shows(ask(frame, "mean", eps=EXACT, bounds=BOUNDS, where="age > 40"), 686 / 3)
        assert shows(ask(frame["distance"], "median", eps=EXACT, bounds=BOUNDS), 10)
        table = ask(frame, "sum", eps=EXACT, bounds=BOUNDS, by="region", keys=["south", "north"])
        assert table["value"].round(1).tolist() == [676, 13]
        assert frame.dprisk.individual_risk("distance", eps=1, bounds=BOUNDS).index.equals(frame.index)

    @pytest.mark.parametrize("name", [0, 3.5, ("a", 1), True, pd.Timestamp("2020"), "index", "count", "n", "", "a b"])
    def test_any_column_name(self, name):
        frame = pd.DataFrame({0: [1, 2]}).set_axis(pd.Index([name], tupleize_cols=False), axis="columns")
        frame["other"] = ["x", "y"]
        declared = frame.dprisk.declare(bounds={name: (0, 10)}, keys={name: [1, 2]})
        assert (declared.dprisk.mean(name, eps=1).column, declared[name].dprisk.mean(eps=1).column) == (name, name)
        assert declared.dprisk.count(by=name, eps=1).index.name == name
        assert declared.dprisk.agg({name: "mean"}, eps=1).index[0] == (name, "mean")
        assert declared.dprisk.assess(name, "mean", 1)["column"].tolist() == [name]
        assert pickle.loads(pickle.dumps(declared.dprisk.mean(name, eps=1))).column == name

    @pytest.mark.parametrize("name", [0, np.int64(0)], ids=["int", "numpy int"])
    def test_an_answer_and_a_declaration_are_json(self, name):
        frame = pd.DataFrame({0: [1, 2]}).dprisk.declare(bounds={name: (0, 10)})
        assert json.loads(json.dumps(frame.attrs)) == frame.attrs
        assert frame.dprisk.declared.loc[0, ["lo", "hi"]].tolist() == [0, 10]
        assert json.loads(json.dumps(frame.dprisk.mean(name, eps=1).public()))["column"] == 0

    def test_unnamed_series(self):
        assert shows(pd.Series(PAPER).dprisk.mean(eps=EXACT, bounds=BOUNDS, mechanism="laplace"), 141.2)

    def test_multiindex_columns(self):
        frame = people().set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]), axis="columns")
        release = frame.dprisk.mean(("a", "x"), eps=EXACT, bounds=BOUNDS)
        assert (release.curator.n, release.column) == (5, ("a", "x"))
        assert shows(frame[("a", "x")].dprisk.mean(eps=EXACT, bounds=BOUNDS, mechanism="laplace"), 141.2)
        assert frame.dprisk.count(by=[("a", "y"), ("b", "x")], keys=[(30, "north")], eps=1, curator=True)[
            "n"
        ].tolist() == [1]

    def test_frames_without_columns_or_rows(self):
        assert pd.DataFrame(index=range(5)).dprisk.count(eps=EXACT, where=[True] * 5).curator.n == 5
        assert pd.DataFrame().dprisk.count(eps=EXACT).curator.n == 0

    def test_a_subclass_and_foreign_attrs(self):
        class Survey(pd.DataFrame):
            @property
            def _constructor(self):
                return Survey

        frame = Survey(people())
        frame.attrs = {"source": "register", "deep": {"list": [1]}}
        assert shows(ask(frame, "mean", eps=EXACT, bounds=BOUNDS), 141.2)
        declared = frame.dprisk.declare(bounds={"distance": BOUNDS})
        assert type(declared) is Survey
        assert declared.attrs["source"] == "register"
        assert "dprisk" not in frame.attrs

    def test_the_data_stay_as_they_are(self):
        frame = people().assign(distance=[1e9, -np.inf, np.nan, 3, 4])
        before = copy.deepcopy(frame)
        for statistic in STATISTICS:
            ask(frame, statistic, eps=1, bounds=BOUNDS, where="age > 30", by="region", keys=["north"])
        frame.dprisk.individual_risk("distance", eps=1, bounds=BOUNDS)
        pd.testing.assert_frame_equal(frame, before)

    def test_eight_threads_at_once(self):
        frame, answers = people(), []

        def work():
            answers.append(ask(frame, "mean", eps=EXACT, bounds=BOUNDS, where=lambda rows: rows["age"] > 40))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [shows(answer, 686 / 3) for answer in answers] == [True] * 8
        assert len({answer.value for answer in answers}) > 1  # each with noise of its own


class TestColumnNames:
    def test_half_a_label_of_several_levels_names_no_column(self):
        frame = pd.DataFrame({("a", "b"): [1.0], ("a", "c"): [2.0]})
        for ask in (frame.dprisk.mean, frame.dprisk.assess, frame.dprisk.individual_risk):
            with pytest.raises(pdrisk.ParameterError, match="several columns named 'a'"):
                ask("a", eps=1, bounds=(0, 9))
        assert frame.dprisk.mean(("a", "c"), eps=3, bounds=(0, 9)).curator.n == 1
