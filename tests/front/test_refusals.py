"""What is refused: in words that help, before data are touched, and without a word about them."""

import copy
import math
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import ColumnTypeError, ParameterError, UnknownColumnError

B = (1, 675)
pytestmark = pytest.mark.whole


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "distance": [3, 1, 10, 675, 17],
            "age": [30, 41, 52, 63, 40],
            "region": ["north", "south", "north", "south", "east"],
            "day": pd.to_datetime(["2020-01-01"] * 5),
            "level": pd.Categorical([1, 2, 1, 2, 1]),
            "phase": np.array([1, 2, 3, 4, 5], dtype="complex64"),
            "mixed": pd.Series(["a", "b", "c", "d", "e"], dtype=object),
        }
    )


# --- The front ends: each asks about `distance`, unless the options say otherwise ---------------------------------


def _mean(frame, column="distance", **options):
    return frame.dprisk.mean(column, **{"eps": 1, "bounds": B} | options)


def _of_series(frame, column="distance", **options):
    return frame[column].dprisk.mean(**{"eps": 1, "bounds": B} | options)


def _agg(frame, column="distance", **options):
    return frame.dprisk.agg({column: ["mean", "max"]}, **{"eps": 1, "bounds": B} | options)


def _assess(frame, column="distance", **options):
    return frame.dprisk.assess(column, ["mean", "max"], **{"eps": 1, "bounds": B} | options)


def _assess_series(frame, column="distance", **options):
    return frame[column].dprisk.assess(["mean", "max"], **{"eps": 1, "bounds": B} | options)


def _individual(frame, column="distance", **options):
    return frame.dprisk.individual_risk(column, **{"eps": 1, "bounds": B} | options)


def _planned(frame, column="distance", **options):
    return frame.dprisk.epsilon_for(column, **{"risk": 0.6, "bounds": B} | options)


RELEASES = (_mean, _of_series, _agg)
WITH_EPS = (*RELEASES, _assess, _assess_series, _individual)
ALL = (*WITH_EPS, _planned)
BY_NAME = (_mean, _agg, _assess, _individual, _planned)  # a series has one column
GROUPED = (_mean, _agg, _assess)

METRICS = ("two_worlds", "many_worlds", "identifiability")
OBJECTS = pd.Series([None] * 5, dtype=object)
FINITE, NUMBER = "must be finite and above 0", "eps must be a number"
PAIR, TWO = "bounds must be a pair", "bounds"
HUGE = 10**400

TABLE = [  # front ends, options, exception, what it says
    *[(WITH_EPS, {"eps": eps}, ParameterError, FINITE) for eps in (0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf)],
    *[(WITH_EPS, {"eps": eps}, ParameterError, FINITE) for eps in (np.float64("nan"), Decimal("NaN"), Decimal("-1"))],
    *[(WITH_EPS, {"eps": eps}, ParameterError, "eps") for eps in (HUGE, Decimal("sNaN"), Decimal("Infinity"))],
    *[(WITH_EPS, {"eps": eps}, ColumnTypeError, NUMBER) for eps in ("1", True, False, np.True_, 1j, {}, pd.NA)],
    *[(RELEASES, {"eps": eps}, ParameterError, "^eps=") for eps in (1e-320, 1e-13)],
    *[(RELEASES, {"eps": eps, "bounds": "column"}, ParameterError, "^eps=") for eps in (1e-320, 1e-13)],
    (RELEASES, {"eps": 1e300, "mechanism": "laplace"}, ParameterError, "^eps="),
    (RELEASES, {"eps": 1e300, "bounds": "column", "mechanism": "laplace"}, ParameterError, "^eps="),
    (RELEASES, {"eps": np.array([1.0])}, ColumnTypeError, NUMBER),
    (RELEASES, {"eps": 1, "risk": 0.6}, ParameterError, "exactly one of eps=, risk= and success= .not both"),
    (RELEASES, {"eps": None}, ParameterError, "exactly one of eps=, risk= and success= .none was given"),
    (RELEASES, {"eps": 1, "prior": 0.5}, ParameterError, "prior= belongs to risk="),
    (RELEASES, {"eps": None, "risk": 0.5}, ParameterError, "a risk of 0.5 is not possible.*prior of 0.5"),
    (RELEASES, {"eps": None, "risk": 0.3}, ParameterError, "is not possible"),
    (RELEASES, {"eps": None, "risk": 0.3, "prior": 0.4}, ParameterError, "prior of 0.4"),
    *[(RELEASES, {"eps": None, "risk": r}, ParameterError, "risk must") for r in (0, 1, 2, math.nan, Decimal("NaN"))],
    *[(RELEASES, {"eps": None, "risk": r}, ColumnTypeError, "risk must be a number") for r in ("0.6", True, [0.6])],
    *[(RELEASES, {"eps": None, "risk": 0.6, "prior": p}, ParameterError, "prior must be") for p in (0, 1, math.nan)],
    *[(RELEASES, {"eps": None, "risk": 0.6, "metric": m}, ParameterError, "cannot calibrate") for m in METRICS],
    *[((_planned,), {"risk": r}, ParameterError, "risk") for r in (0, 1, -1, 2, math.nan, Decimal("NaN"), 0.5, 0.3)],
    *[((_planned,), {"risk": r}, ColumnTypeError, "risk must be a number") for r in ("0.6", True, None)],
    *[((_planned,), {"prior": p}, ParameterError, "prior must be") for p in (0, 1, math.nan)],
    *[((_planned,), {"metric": m}, ParameterError, "metric") for m in ("worst", "", None, ["two_worlds"])],
    ((_planned,), {"risk": 0.4, "metric": "two_worlds"}, ParameterError, "is not possible"),
    *[(ALL, {"bounds": b}, ParameterError, "is reversed: write .1, 675.") for b in ((675, 1), np.array([675, 1]))],
    (ALL, {"bounds": (5, 5)}, ParameterError, "both are 5"),
    *[(ALL, {"bounds": b}, ParameterError, "must be finite") for b in ((math.nan, 1), (1, math.inf), (1, HUGE))],
    *[(ALL, {"bounds": b}, ParameterError, PAIR) for b in ((), (1,), (1, 2, 3), [1, 2, 3, 4])],
    *[(ALL, {"bounds": b}, ColumnTypeError, TWO) for b in (5, {1, 675}, ("1", "675"), (None, 1), (True, 9))],
    *[(ALL, {"bounds": b}, ColumnTypeError, TWO) for b in (np.array(1), b"ab", (1j, 2), (pd.NA, 1))],
    *[(ALL, {"bounds": b}, ParameterError, TWO) for b in ((Decimal("sNaN"), 1), "colum", (0, 1e101), (1e9, 1e9 + 1))],
    (ALL, {"bounds": None}, ParameterError, "needs bounds, the range its values can have.*declare"),
    (BY_NAME, {"column": "distnace"}, UnknownColumnError, "unknown column 'distnace'.*Did you mean 'distance'"),
    (BY_NAME, {"column": 7}, UnknownColumnError, "unknown column 7; the frame has: distance, age"),
    (BY_NAME, {"column": ("distance", "age")}, UnknownColumnError, "unknown column"),
    (ALL, {"column": "region"}, ColumnTypeError, "needs numbers, but column 'region' holds"),
    (ALL, {"column": "mixed"}, ColumnTypeError, "needs numbers, but column 'mixed' holds text"),
    (ALL, {"column": "day"}, ColumnTypeError, "column 'day' holds timestamps"),
    (ALL, {"column": "level"}, ColumnTypeError, "column 'level' holds categories"),
    (ALL, {"column": "phase"}, ColumnTypeError, "column 'phase' holds complex numbers"),
    *[(ALL, {"where": w}, ParameterError, "another length") for w in ([True] * 4, [], np.ones(6, bool))],
    *[(ALL, {"where": pd.Series(True, index=i)}, ParameterError, "another index") for i in ([4, 3, 2, 1, 0], range(6))],
    *[(ALL, {"where": w}, ColumnTypeError, "where cannot be") for w in (True, 1, b"age", bool, {"age": 1}, range(5))],
    *[(ALL, {"where": w}, ColumnTypeError, "mask must be boolean") for w in ([1] * 5, np.ones(5), OBJECTS)],
    (ALL, {"where": np.ones((5, 1), bool)}, ColumnTypeError, "one dimension"),
    *[(BY_NAME, {"where": w}, ParameterError, "other records") for w in ("age > age.mean()", "@len(age) > 1")],
    *[(BY_NAME, {"where": w}, ParameterError, "other records") for w in ("max(age) > 1", "age.rank() < 3")],
    *[(BY_NAME, {"where": w}, ParameterError, "cannot use where=") for w in ("", "age >", "age = 1", "age", "1 == 1")],
    (BY_NAME, {"where": "age > @nowhere"}, ParameterError, "no variable 'nowhere'"),
    (BY_NAME, {"where": "agee > 1"}, UnknownColumnError, "Did you mean 'age'"),
    ((_of_series, _assess_series), {"where": "distance > 1"}, ColumnTypeError, "use df.dprisk"),
    ((_of_series,), {"by": "region", "keys": ["north"]}, ParameterError, "use df.dprisk"),
    (GROUPED, {"by": "region"}, ParameterError, r'by=region needs the public list.*keys=\[.*declare.*keys="observed"'),
    (GROUPED, {"by": "level"}, ParameterError, "needs the public list"),
    (GROUPED, {"keys": ["north"]}, ParameterError, "pass by= as well"),
    (GROUPED, {"by": "regoin", "keys": ["north"]}, UnknownColumnError, "Did you mean 'region'"),
    *[(GROUPED, {"by": by, "keys": ["north"]}, ParameterError, "by must be") for by in ([], ["region", "region"])],
    *[(GROUPED, {"by": by, "keys": ["north"]}, ColumnTypeError, "by") for by in ([["age"]], {}, np.array(["age"]))],
    (GROUPED, {"by": pd.Series(["a"] * 5), "keys": ["a"]}, ColumnTypeError, "by"),
    *[(GROUPED, {"by": "region", "keys": k}, ColumnTypeError, "keys must be a list") for k in ({"a"}, b"a", 5)],
    (GROUPED, {"by": "region", "keys": {"region": "a"}}, ColumnTypeError, "keys must be a list"),
    (GROUPED, {"by": "region", "keys": pd.DataFrame({"place": ["north"]})}, ParameterError, "a frame of keys"),
    (GROUPED, {"by": "region", "keys": "north"}, ParameterError, 'the word "observed"'),
    (GROUPED, {"by": "region", "keys": []}, ParameterError, "at least one group"),
    (GROUPED, {"by": "region", "keys": ["a", "b", "a"]}, ParameterError, "a key is listed twice"),
    (GROUPED, {"by": "region", "keys": [None, np.nan]}, ParameterError, "listed twice"),
    (GROUPED, {"by": "region", "keys": [["a"]]}, ColumnTypeError, "single value"),
    (GROUPED, {"by": "region", "keys": [1]}, ColumnTypeError, "the column holds text"),
    (GROUPED, {"by": "age", "keys": [True]}, ColumnTypeError, "the column holds numbers"),
    (GROUPED, {"by": "region", "keys": {"regoin": ["a"]}}, UnknownColumnError, "Did you mean 'region'"),
    (GROUPED, {"by": "region", "keys": {"age": [1]}}, ParameterError, "by=region needs the public list"),
    (GROUPED, {"keys": {"regoin": ["a"]}}, UnknownColumnError, "Did you mean 'region'"),
    (GROUPED, {"keys": ["a"]}, ParameterError, "by=, which is missing"),
    (GROUPED, {"by": ["region", "age"], "keys": ["a"]}, ParameterError, "tuple of 2 values"),
    (GROUPED, {"by": ["region", "age"], "keys": [("a", 1, 2)]}, ParameterError, "tuple of 2 values"),
    *[(RELEASES, {"mechanism": m}, ParameterError, "mechanism") for m in ("gauss", None, ["laplace"])],
    *[(RELEASES, {o: 1}, TypeError, f"unexpected keyword argument '{o}'") for o in ("epsilon", "bound", "seed")],
    ((_assess,), {"eps": []}, ParameterError, "eps"),
    ((_assess,), {"eps": [1, 0]}, ParameterError, FINITE),
    ((_assess,), {"column": []}, ParameterError, "at least one column"),
    ((_assess,), {"column": ["distance", "ag"]}, UnknownColumnError, "Did you mean 'age'"),
]  # fmt: skip
CASES = [
    pytest.param(front, options, error, says, id=f"{front.__name__[1:]}-{options!s:.60}")
    for fronts, options, error, says in TABLE
    for front in fronts
]
BAD_SPECS = [
    (("quantile", {"q": 1.1}), "q must be between 0 and 1"),
    (("quantile", {"q": 0.9996}), "q is 0.9996, which is no fraction of 1000 parts or fewer"),
    (("quantile", {"q": 0.12345}), "at most three decimals"), (("quantile", {"q": -0.1}), "q must be"),
    (("quantile", {"q": math.nan}), "q must be"), (("quantile", {"q": "0.5"}), "q must be a number"),
    (("quantile", {"q": True}), "q must be a number"), (("quantile", {"q": Decimal("NaN")}), "q must be"),
    (("quantile", {"q": HUGE}), "q must be"), (("quantile", {}), "needs q"), ("quantile", "needs q"),
    *[((name, {"ddof": d}), "ddof must be 0") for name in ("var", "std") for d in (2, -1, True, "1")],
    (("mean", {"ddof": 0}), "mean takes no ddof="), ("meen", "Did you mean 'mean'"), (5, "statistic"), ([], "must be"),
    (["mean", "mean"], "asked for twice"), (("quantile", 0.5), "statistic is a name"), (np.mean, "statistic"),
]  # fmt: skip


@pytest.fixture
def untouched(monkeypatch):
    """A frame whose records cannot be read and for which no noise can be drawn."""

    def forbidden(*args, **kwargs):
        raise AssertionError("the data were touched")  # never caught: this stands where the data would be read

    for name in (
        "engines.numpy.frame.FrameEngine.read",
        "_mechanisms.contract.draws.discrete_laplace",
        "engines.numpy.influence.records_read",
    ):
        monkeypatch.setattr(f"pdrisk.{name}", forbidden)
    return people()


class TestRefusals:
    """What can be seen to be wrong without the data is refused without them, by every front end, in a sentence."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("front", "options", "error", "says"), CASES)
    def test_refused_in_words(self, untouched, front, options, error, says):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # refusals go before the warning of wide noise
            with pytest.raises(error, match=says) as caught:
                front(untouched, **copy.copy(options))
        refused = caught.value
        if error is not TypeError:
            assert isinstance(refused, ParameterError)
            assert isinstance(refused, pdrisk.PdriskError)
            assert isinstance(refused, ValueError)
            assert str(refused).endswith((".", "?", "bounds."))
        assert refused.__cause__ is None
        same = pickle.loads(pickle.dumps(refused))
        assert (type(same), str(same), same.args) == (type(refused), str(refused), refused.args)
        assert all(type(argument) is str for argument in refused.args)

    @pytest.mark.parametrize(("spec", "says"), BAD_SPECS, ids=lambda part: str(part).partition(" at 0x")[0])
    def test_statistics_that_do_not_exist(self, untouched, spec, says):
        accessor = untouched.dprisk
        with pytest.raises(ParameterError, match=says):
            accessor.agg({"distance": spec if isinstance(spec, list) else [spec]}, eps=1, bounds=B)
        with pytest.raises(ParameterError, match=says):
            accessor.assess("distance", spec if isinstance(spec, list) else [spec], bounds=B)
        if not isinstance(spec, list):
            with pytest.raises(ParameterError, match=says):
                accessor.individual_risk("distance", spec, eps=1, bounds=B)
            with pytest.raises(ParameterError, match=says):
                accessor.epsilon_for("distance", spec, risk=0.6, bounds=B)
        if isinstance(spec, tuple) and isinstance(spec[1], dict) and spec[1] and spec[0] != "mean":
            for method, column in ((accessor, ["distance"]), (untouched["distance"].dprisk, [])):
                with pytest.raises(ParameterError, match=says):
                    getattr(method, spec[0])(*column, **spec[1], eps=1, bounds=B)

    @pytest.mark.parametrize("front", [_mean, _agg, _assess, _individual, _planned], ids=lambda f: f.__name__[1:])
    def test_columns_of_one_name(self, untouched, front):
        twice = untouched.set_axis(["age", "age", *untouched.columns[2:]], axis="columns")
        with pytest.raises(ParameterError, match="several columns named 'age'"):
            front(twice, column="age")
        with pytest.raises(ParameterError, match="several columns named 'age'"):
            twice.dprisk.count(eps=1, by="age", keys=[1])
        for declaration in ({"bounds": {"age": B}}, {"keys": {"age": [1]}}):
            with pytest.raises(ParameterError, match="several columns named 'age'"):
                twice.dprisk.declare(**declaration)

    @pytest.mark.parametrize(
        ("declaration", "error", "says"),
        [
            ({}, ParameterError, "declare needs"),
            ({"bounds": [("distance", B)]}, ColumnTypeError, "as a dict"),
            ({"bounds": {"distnace": B}}, UnknownColumnError, "Did you mean 'distance'"),
            ({"bounds": {"distance": (675, 1)}}, ParameterError, "is reversed"),
            ({"bounds": {"distance": None}}, ParameterError, "pair"),
            ({"bounds": {"distance": "column"}}, ParameterError, "pair"),
            ({"keys": {"regoin": ["a"]}}, UnknownColumnError, "Did you mean 'region'"),
            ({"keys": {"region": "observed"}}, ParameterError, "list"),
            ({"keys": {"region": {"a"}}}, ColumnTypeError, "keys must be a list"),
            ({"keys": {"region": []}}, ParameterError, "at least one group"),
            ({"keys": {"region": ["a", "a"]}}, ParameterError, "listed twice"),
            ({"keys": {"age": ["1"]}}, ColumnTypeError, "the column holds numbers"),
        ],
        ids=str,
    )
    def test_declarations(self, untouched, declaration, error, says):
        with pytest.raises(error, match=says):
            untouched.dprisk.declare(**declaration)

    @pytest.mark.parametrize("request_", [{}, 3, None, {"distance": []}, {"distance": None}], ids=str)
    def test_requests_of_agg(self, untouched, request_):
        with pytest.raises(ColumnTypeError, match=r"agg takes a dict|statistics must be"):
            untouched.dprisk.agg(request_, eps=1, bounds=B)

    def test_positional_options_and_missing_columns(self, untouched):
        for call in (
            lambda: untouched.dprisk.mean("distance", 1, B),
            lambda: untouched["distance"].dprisk.mean(1),
            lambda: untouched.dprisk.mean(eps=1, bounds=B),
            lambda: untouched.dprisk.declare({"distance": B}),
        ):
            with pytest.raises(TypeError):
                call()
        with pytest.raises(ParameterError, match="mean needs a column"):
            untouched.dprisk.mean(None, eps=1, bounds=B)
