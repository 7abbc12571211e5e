"""Nothing that is said before an answer is paid for, or when it fails, holds a value, a label or a count."""

import logging
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pdrisk
from errors_said import everything_said
from pdrisk import PdriskError, QueryFailedError

ROWS = 7919
SECRETS = ("987654321", "SENTINEL", "7919", "7,919", "1987-06-05", f"{1 / ROWS:g}")
B = (0, 10)


class Sentinel:
    """An object that shouts whenever it is asked for anything."""

    def __repr__(self):
        return "SENTINEL-OBJECT"

    def _shout(self, *args):
        raise ValueError("SENTINEL-OBJECT was asked")

    __float__ = __lt__ = __eq__ = _shout
    __hash__ = object.__hash__


def secret_frame() -> pd.DataFrame:
    """Every value and label is a secret, and so is the number of rows."""
    frame = pd.DataFrame({"x": np.full(ROWS, 987654321.5), "text": "SENTINEL-PERSON", "group": "SENTINEL-GROUP"})
    frame["day"] = pd.Timestamp("1987-06-05")
    frame["kind"] = pd.Categorical(frame["group"], categories=["SENTINEL-GROUP", "SENTINEL-OTHER"])
    frame["number"] = pd.Series([Decimal("987654321.5")] * ROWS, dtype=object)
    odd = {"few": "SENTINEL-ODD", "bad": Decimal("sNaN987654321"), "things": Sentinel(), "lists": ["SENTINEL"]}
    for name, value in odd.items():
        frame[name] = pd.Series([*[Decimal(1)] * (ROWS - 1), value], dtype=object)
    frame["huge"] = pd.Series([987654321 * 10**400, *range(ROWS - 1)], dtype=object)
    frame["unlike"] = pd.Series(["SENTINEL-PERSON", *range(ROWS - 1)], dtype=object)
    frame.index = pd.Index([f"SENTINEL-LABEL-{i}" for i in range(ROWS)], name="label")
    return frame


def raising(error):
    def where(frame):
        try:
            raise KeyError(f"SENTINEL {frame.iloc[0, 0]}")
        except KeyError as cause:
            raise error(f"{frame.iloc[0, 0]} of {len(frame)}") from cause

    return where


def overheard(call, caplog, capfd) -> tuple[PdriskError, str]:
    """The exception of a call, and everything that was said meanwhile."""
    with warnings.catch_warnings(record=True) as seen, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        with pytest.raises(PdriskError) as caught:
            call(secret_frame())
    error = caught.value
    said = [everything_said(error), everything_said(pickle.loads(pickle.dumps(error)))]
    said += [str(warning.message) for warning in seen] + [record.getMessage() for record in caplog.records]
    return error, "\n".join([*said, *capfd.readouterr()])


REFUSED = {
    "bounds missing": lambda f: f.dprisk.mean("x", eps=1),
    "unknown column": lambda f: f.dprisk.mean("y", eps=1, bounds=B),
    "a value as a column": lambda f: f.dprisk.mean("grou", eps=1, bounds=B),
    "texts": lambda f: f.dprisk.mean("text", eps=1, bounds=B),
    "texts of a series": lambda f: f["text"].dprisk.mean(eps=1, bounds=B),
    "dates": lambda f: f.dprisk.mean("day", eps=1, bounds=B),
    "categories": lambda f: f.dprisk.mean("kind", eps=1, bounds=B),
    "one text among numbers": lambda f: f.dprisk.mean("few", eps=1, bounds=B),
    "one object among numbers": lambda f: f.dprisk.mean("things", eps=1, bounds=B),
    "one list among numbers": lambda f: f.dprisk.mean("lists", eps=1, bounds=B),
    "one text among integers": lambda f: f.dprisk.assess("unlike", bounds=B),
    "individual texts": lambda f: f.dprisk.individual_risk("text", "mean", eps=1, bounds=B),
    "mask too short": lambda f: f.dprisk.count(eps=1, where=[True]),
    "mask too long": lambda f: f.dprisk.count(eps=1, where=np.ones(ROWS + 1, dtype=bool)),
    "mask of another index": lambda f: f.dprisk.count(eps=1, where=pd.Series(True, index=range(ROWS))),
    "mask of texts": lambda f: f.dprisk.count(eps=1, where=f["text"]),
    "mask of numbers": lambda f: f.dprisk.count(eps=1, where=f["x"]),
    "frame as a mask": lambda f: f.dprisk.count(eps=1, where=f),
    "where on texts and numbers": lambda f: f.dprisk.count(eps=1, where="text > 1"),
    "where on dates and numbers": lambda f: f.dprisk.count(eps=1, where="day > 1"),
    "where on categories": lambda f: f.dprisk.count(eps=1, where="kind > 'a'"),
    "where on objects": lambda f: f.dprisk.count(eps=1, where="things + 1 > 2"),
    "where on the index": lambda f: f.dprisk.count(eps=1, where="label == 'a'"),
    "where with a name of the data": lambda f: f.dprisk.count(eps=1, where="x > @f"),
    "where with a method": lambda f: f.dprisk.count(eps=1, where="x > x.mean()"),
    "no keys": lambda f: f.dprisk.count(eps=1, by="group"),
    "no keys for categories": lambda f: f.dprisk.count(eps=1, by="kind"),
    "numbers as keys of texts": lambda f: f.dprisk.count(eps=1, by="group", keys=[1]),
    "numbers as keys of categories": lambda f: f.dprisk.count(eps=1, by="kind", keys=[1]),
    "texts as keys of numbers": lambda f: f.dprisk.count(eps=1, by="x", keys=["a"]),
    "texts as keys of dates": lambda f: f.dprisk.count(eps=1, by="day", keys=["a"]),
    "keys of a column of many kinds": lambda f: f.dprisk.count(eps=1, by="unlike", keys=[1]),
    "keys of a column of objects": lambda f: f.dprisk.count(eps=1, by="things", keys=[1]),
    "the column as by": lambda f: f.dprisk.count(eps=1, by=f["group"], keys=["a"]),
    "the column as a column": lambda f: f.dprisk.mean(f["x"], eps=1, bounds=B),
    "the column as eps": lambda f: f.dprisk.mean("x", eps=f["x"], bounds=B),
    "the column as keys": lambda f: f.dprisk.declare(keys={"x": f["text"].head(1).map(len).astype(str)}),
    "eps": lambda f: f.dprisk.agg({"x": ["mean", "max"]}, eps=0, bounds=B),
    "plan below the prior": lambda f: f.dprisk.epsilon_for("number", risk=1e-9, metric="many_worlds", bounds=B),
    "plan below 1/n": lambda f: f.dprisk.epsilon_for("x", risk=1e-4, metric="identifiability", bounds=B),
}
ANSWERED = {  # what is no number is missing, and what is beyond floats lies beyond the bounds
    "a number too large": lambda f: f.dprisk.mean("huge", eps=1, bounds=B),
    "a number too large, in a series": lambda f: f["huge"].dprisk.max(eps=1, bounds=B),
    "a number too large, in groups": lambda f: f.dprisk.mean("huge", eps=1, bounds=B, by="group", keys=["a"]),
    "a number too large, assessed": lambda f: f.dprisk.assess("huge", eps=1, bounds=B),
    "a number too large, of a person": lambda f: f.dprisk.individual_risk("huge", eps=1, bounds=B),
    "a number too large, planned": lambda f: f.dprisk.epsilon_for("huge", risk=0.6, bounds=B, metric="two_worlds"),
    "a number that shouts": lambda f: f.dprisk.mean("bad", eps=1, bounds=B),
    "a number that shouts, beside others": lambda f: f.dprisk.agg({"x": "mean", "bad": "mean"}, eps=1, bounds=B),
}
FAILING = {
    "a filter that fails": lambda f: f.dprisk.count(eps=1, where=raising(ValueError)),
    "a filter that fails like pdrisk": lambda f: f.dprisk.count(eps=1, where=raising(pdrisk.ParameterError)),
    "a filter that fails on a series": lambda f: f["x"].dprisk.count(eps=1, where=lambda x: 1 / (x["SENTINEL"] - 1)),
    "a filter that fails in assess": lambda f: f.dprisk.assess("x", bounds=B, where=raising(RuntimeError)),
    "a filter that fails for a person": lambda f: f.dprisk.individual_risk(
        "x", eps=1, bounds=B, where=raising(OSError)
    ),
    "a filter that fails in a plan": lambda f: f.dprisk.epsilon_for(
        "x", risk=0.6, metric="two_worlds", bounds=B, where=raising(OSError)
    ),
    "a filter that gives texts": lambda f: f.dprisk.count(eps=1, where=lambda g: g["text"]),
    "a filter that gives too little": lambda f: f.dprisk.count(eps=1, where=lambda g: (g["x"] > 1).head(3)),
    "a filter that gives one value": lambda f: f.dprisk.count(eps=1, where=lambda g: len(g)),
    "observed keys of many kinds": lambda f: f.dprisk.count(eps=1, by="unlike", keys="observed"),
    "observed keys that are no keys": lambda f: f.dprisk.count(eps=1, by="lists", keys="observed"),
    "observed keys that shout": lambda f: f.dprisk.count(eps=1, by=["things", "group"], keys="observed"),
}


class TestSilence:
    """Errors, warnings, logs and reprs speak of declared things only."""

    @pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
    def test_a_refusal_holds_no_secret(self, call, caplog, capfd):
        _, said = overheard(call, caplog, capfd)
        assert [secret for secret in SECRETS if secret in said] == []

    @pytest.mark.parametrize("call", FAILING.values(), ids=FAILING.keys())
    def test_a_failure_on_the_data_is_one_fixed_sentence(self, call, caplog, capfd):
        error, said = overheard(call, caplog, capfd)
        assert [secret for secret in SECRETS if secret in said] == []
        assert type(error) is QueryFailedError
        assert (error.__cause__, error.__context__) == (None, None)
        assert "stays paid. Its cause is not shown because it could reveal a record." in str(error)

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("call", ANSWERED.values(), ids=ANSWERED.keys())
    def test_one_object_that_is_no_float_makes_nothing_fail(self, call, caplog, capfd):
        answer = call(secret_frame())
        said = [
            str(pdrisk.public(answer)) if isinstance(answer, pdrisk.Release) else "",
            caplog.text,
            *capfd.readouterr(),
        ]
        assert [secret for secret in SECRETS if secret in "".join(said)] == []

    @pytest.mark.parametrize("bounds", [B, "column"], ids=str)
    def test_the_warning_of_noise_is_the_same_for_other_data(self, bounds):
        said = []
        for frame in (secret_frame()[["x"]], pd.DataFrame({"x": [1.0, 2.0]})):
            frame = frame.assign(x=frame["x"] + np.arange(len(frame)))
            with pytest.warns(pdrisk.NoisyReleaseWarning) as seen:
                frame.dprisk.agg({"x": ["mean", "max", "var", "std"]}, eps=1, bounds=bounds, mechanism="laplace")
            said.append([str(warning.message) for warning in seen])
        assert said[0] == said[1]

    @pytest.mark.parametrize("records", [[], [1.0, 9.0], np.arange(20.0) % 11, np.arange(500.0) % 11], ids=len)
    def test_the_warning_of_an_interval_says_what_the_interval_says(self, records):
        """``two_sums`` has no width that is known beforehand: the warning is made of the published ends alone."""
        frame = pd.DataFrame({"x": np.asarray(records, dtype=float)})
        for _ in range(20):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                release = frame.dprisk.mean("x", eps=0.3, bounds=B)
            wide = release.high - release.low
            expected = [f"mean(x): {wide:.4g} wide, of 10 possible"] if wide > 10 / 4 else []
            told = [str(each.message) for each in seen if each.category is pdrisk.NoisyReleaseWarning]
            assert [each.split(" interval of ")[1].split(". Ask")[0] for each in told] == expected

    def test_accessors_say_nothing_of_the_data(self):
        frame = secret_frame()
        for accessor in (frame.dprisk, frame["x"].dprisk):
            assert not any(secret in repr(accessor) + str(accessor) for secret in SECRETS)

    @pytest.mark.sampled(99)
    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")  # made of the published interval: see above
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    def test_data_that_warn_do_so_in_silence(self, mechanism):
        # pytest turns warnings into errors: overflow, invalid and division warnings would depend on the data.
        values = [1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 0, -0.0, 3]
        frame = pd.DataFrame({"x": values, "g": [1, 2, 2, 3, 3, 3, 1, 1, 1]})
        for dtype in ("float64", np.longdouble):
            typed = frame.astype({"x": dtype})
            if dtype is np.longdouble:
                typed["x"] *= np.longdouble(10)  # beyond float64, an ordinary number there
            for statistic in ("count", "sum", "mean", "median", "min", "max", "var", "std"):
                options = {"bounds": (-1e9, 1e9), "mechanism": mechanism}
                typed.dprisk.agg({"x": [statistic]}, eps=1e6, by="g", keys=[1, 2, 3, 4], **options)
                typed.dprisk.assess("x", [statistic], 1e6, where="x > 0 or x < 0", **options)
                typed.dprisk.individual_risk("x", statistic, eps=1, **options)
                typed.dprisk.identifiability("x", statistic, eps=1, **options)
