"""Options of a wrong type: every public method says in pdrisk's own words what is wrong with each."""

import inspect
import warnings

import duckdb
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, PdriskError

FRAME = pd.DataFrame(
    {"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [1.0, 2.0, 3.0, 5.0] * 5, "g": ["a", "b"] * 10, "h": [1, 2] * 10}
).assign(pid=range(20), holds=[True, False] * 10)
TABLE = FRAME.dprisk.count(eps=1, by="g", keys=["a", "b"])
WRONG = {
    "a number": 3, "text": "x", "None": None, "an object": object(), "an empty list": [], "an empty dict": {},
    "NaN": float("nan"), "a list of None": [None], "a list of lists": [[]], "a set": {1}, "a type": int,
    "a function": len, "bytes": b"x", "a slice": slice(1), "a huge number": 10**400, "True": True, "-1": -1,
    "a column": pd.Series([1, 2]), "a frame": FRAME[:2], "an array": FRAME[["x"]].to_numpy(),
}  # fmt: skip

ASKED = {"eps": 1, "bounds": (0, 5)}
OF_X = {"column": "x", **ASKED}
OF_TWO = {"x": "x", "y": "y", "eps": 1, "bounds": {"x": (0, 5), "y": (0, 5)}}
ON = {"on": ["g"]}
GOOD = {
    **dict.fromkeys(("sum", "mean", "median", "quantile", "min", "max", "var", "std", "hist"), OF_X),
    **dict.fromkeys(("compare", "individual_risk", "identifiability"), OF_X),
    **dict.fromkeys(("corr", "cov", "slope"), OF_TWO),
    **dict.fromkeys(("k_anonymity", "unique_rows"), ON),
    **{name: ON | {"population": FRAME} for name in ("k_map", "delta_presence")},
    **{name: ON | {"sensitive": "h"} for name in ("l_diversity", "t_closeness")},
    "declare": {},
    "output_rules": {},
    "count": {"eps": 1},
    "proportion": {"condition": "holds", "eps": 1},
    "nunique": {"column": "g", "eps": 1},
    "agg": {"request": {"x": ["mean"]}, **ASKED},
    "describe": {"columns": "x", **ASKED},
    "value_counts": {"column": "g", "eps": 1, "keys": ["a", "b"]},
    "crosstab": {"index": "g", "columns": "h", "eps": 1, "keys": {"g": ["a"], "h": [1]}},
    "suggest_bounds": {"column": "x", "eps": 1},
    "suggest_rows": {"eps": 1, "person": "pid"},
    "assess": {"columns": "x", "bounds": (0, 5)},
    "epsilon_for": {"column": "x", "risk": 0.7, "bounds": (0, 5)},
    "suggest_generalization": ON | {"k": 2},
    "change": {"column": "x", "wave": "h", "from_": 1, "to": 2, "person": "pid", **ASKED},
    "inequality": {"column": "x", "bins": 5, **ASKED},
    "sampling_errors": {"column": "x", "bounds": (0, 5)},
    "query": {"condition": "x > 1"},
    "join": {"other": pd.DataFrame({"g": ["a", "b"], "chapter": ["I", "II"]}), "on": "g"},
    "sql": {"query": "SELECT g, SUM(x) AS s FROM data GROUP BY g", "keys": ["a", "b"], **ASKED},
}
OF_A_COLUMN = {
    name: {option: value for option, value in good.items() if option not in ("column", "columns", "condition")}
    for name, good in GOOD.items()
} | {
    "agg": {"statistics": ["mean"], **ASKED},
    "value_counts": {"eps": 1, "keys": [1.0, 2.0]},
    "randomized_response": {"eps": 1, "keys": [1.0, 2.0]},
}  # fmt: skip
WITHOUT_OPTIONS = {"declared", "name", "ledger", "assign"}  # properties, and one whose options have any name


def in_duckdb():
    con = duckdb.connect()
    con.register("frame", FRAME)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    return Dataset((con, "people"))


HELD = {
    "frame": lambda: FRAME.dprisk,
    "column": lambda: FRAME["holds"].dprisk,
    "dataset": lambda: Dataset(FRAME, person="pid", per_person="one"),
    "table": in_duckdb,
}
FUNCTIONS = {
    "sql": (pdrisk.sql, {**GOOD["sql"], "data": FRAME}),
    "Dataset": (Dataset, {"data": FRAME}),
    "explain": (pdrisk.explain, {"answer": TABLE}),
    "public": (pdrisk.public, {"answer": TABLE}),
    "plan": (pdrisk.plan, {"questions": ["mean of x"], "n": 100, "bounds": {"x": (0, 5)}, "eps": 1}),
    "attack.two_worlds": (pdrisk.attack.two_worlds, {"asked": "mean", **ASKED, "records": [1.0, 2.0], "draws": 9}),
    "attack.attribute_disclosure": (pdrisk.attack.attribute_disclosure, {"frame": FRAME, "on": ["g"], "secret": "h"}),
    "attack.clopper_pearson": (pdrisk.attack.clopper_pearson, {"times": 3, "trials": 10}),
    "risk.metrics": (
        pdrisk.risk.metrics,
        {"eps": 1.0, "n": 9, "global_sensitivity": 2.0, "local_sensitivity": 1.0, "world_range": 1.0},
    ),
    "to_dict": (FRAME.dprisk.count(eps=1).to_dict, {}),
}


def options_of(call):
    """What a call takes by name."""
    return [each.name for each in inspect.signature(call).parameters.values() if each.kind is not each.VAR_KEYWORD]


def public_methods(held):
    return [name for name in HELD[held]()._known() if name not in WITHOUT_OPTIONS]


def good_of(held, name):
    if held == "dataset" and name == "suggest_rows":
        return {"eps": 1}
    return (OF_A_COLUMN if held == "column" else GOOD)[name]


def wrongly_told(call, good):
    """What comes of each wrong value of each option that is neither an answer nor an error of pdrisk."""
    found = []
    for option in options_of(call):
        for name, value in WRONG.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(**{**good, option: value})
                except PdriskError:
                    pass
                except Exception as error:  # noqa: BLE001 - that is what is asked
                    found.append(f"{option}={name}: {type(error).__name__}: {error}")
    return found


class TestOptionsOfAWrongType:
    """No wrong value of any option brings out an error of Python's, pandas' or numpy's."""

    @pytest.mark.sampled(12)
    @pytest.mark.parametrize(
        ("held", "name"),
        [
            pytest.param(held, name, marks=pytest.mark.slow if held == "table" else ())
            for held in HELD
            for name in public_methods(held)
        ],
    )
    def test_methods(self, held, name):
        assert wrongly_told(getattr(HELD[held](), name), good_of(held, name)) == []

    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.slow if name == "sql" else ()) for name in FUNCTIONS]
    )
    def test_functions(self, name):
        assert wrongly_told(*FUNCTIONS[name]) == []


class TestUnknownOptions:
    """What is no option of a curator's view is named, with the option that is meant; ours of inside are none."""

    @pytest.mark.parametrize("name", ["assess", "compare", "individual_risk", "epsilon_for", "identifiability"])
    @pytest.mark.parametrize("option", ["people", "opened", "rowz"])
    def test_of_curators_views(self, name, option):
        meant = " Did you mean 'rows'?" if option == "rowz" else ""
        with pytest.raises(TypeError) as caught:
            getattr(FRAME.dprisk, name)(**GOOD[name], **{option: 3})
        assert str(caught.value) == f"{name}(): got an unexpected keyword argument {option!r}.{meant}"

    def test_help_shows_the_options_about_people(self):
        shown = options_of(FRAME.dprisk.assess)
        assert shown[-8:] == ["person", "per_person", "rows", "groups", "unit", "constant", "unit_label", "weights"]


MODULES = (pdrisk, pdrisk.attack, pdrisk.study, pdrisk.identifiability, pdrisk.risk)
ELSEWHERE = {
    "clopper_pearson",
    "metrics",
    "register",
    "to_dict",
    "to_series",
}  # small functions that look at no argument's own code


def public_functions():
    """Every public method and function that takes arguments of its own names."""
    found = [pdrisk.Dataset, pdrisk.Ledger]
    owners = FRAME.dprisk, FRAME["x"].dprisk, Dataset(FRAME), FRAME.dprisk.count(eps=1)
    for owner in owners:
        names = [name for name in dir(type(owner)) if not name.startswith("_") and name not in dir(tuple)]
        found += [getattr(owner, name) for name in names if inspect.isfunction(getattr(type(owner), name))]
    for module in MODULES:
        functions = [getattr(module, name) for name in getattr(module, "__all__", dir(module))]
        found += [each for each in functions if inspect.isfunction(each)]
    takes = {each: list(inspect.signature(each).parameters.values()) for each in found}
    return {
        (each, parameters[-1].name): f"{each.__name__}-{number}"
        for number, (each, parameters) in enumerate(takes.items())
        if each.__name__ not in ELSEWHERE and parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters)
    }


PUBLIC = public_functions()


class TestMisspeltOptions:
    """Every public function names an option that it does not have, and the one that is meant."""

    @pytest.mark.parametrize(("function", "option"), PUBLIC, ids=PUBLIC.values())
    def test_named(self, function, option):
        with pytest.raises(TypeError) as caught:
            function(**{f"{option}q": 1})
        said = f"{function.__name__}(): got an unexpected keyword argument '{option}q'. Did you mean {option!r}?"
        assert str(caught.value) == said

    def test_those_that_are_tried(self):
        names = {function.__name__ for function, _ in PUBLIC}
        assert names >= {
            "declare",
            "k_anonymity",
            "output_rules",
            "Dataset",
            "Ledger",
            "plan",
            "run",
            "join",
            "explain",
        }

    def test_the_fields_word_for_eps(self):
        with pytest.raises(TypeError, match=r"^plan\(\): .* 'epsilon'\. Did you mean 'eps'\?$"):
            pdrisk.plan({"x": "mean"}, n=9, epsilon=1)
