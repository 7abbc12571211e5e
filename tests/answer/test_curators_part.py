"""What an analyst can have of an answer: the noisy numbers and public facts, and nothing that the data decide."""

import copy
import gc
import io
import json
import math
import pickle
import sys
import traceback
import types

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdrisk
from ledgers import typed
from pdrisk import attack
from pdrisk._answer.answers.curator import Curator
from pdrisk._ledger.accounts import ambient
from pdrisk._mechanisms.exponential.weights import Weights

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SECRET = 2_345_678.0625  # the income of one person, and so the exact maximum and the sum of her group
N = 4127  # records with an income
BOUNDS = (0, 3_000_000)
OPTIONS = {"eps": 0.0005, "bounds": BOUNDS}
TWO = {"eps": 0.0005, "bounds": {"income": BOUNDS, "age": (0, 100)}}


@pytest.fixture(scope="module")
def frame():
    incomes = np.full(N, 1024.5)
    incomes[17] = SECRET
    region = np.where(np.arange(N) == 17, "north", "south")
    people = {"pid": np.arange(N) + 10**6, "age": 20.0 + np.arange(N) % 50}
    return typed(pd.DataFrame({"income": incomes, "region": region, "job": "x"} | people))


@pytest.fixture(params=["pandas", "Polars", "DuckDB"])
def dataset(request, frame, ledger):
    """The Dataset of the analyst's, of each kind of data."""
    with duckdb.connect() as con:
        if request.param == "DuckDB":
            con.execute("CREATE TABLE people AS SELECT * FROM frame")
        data = {"pandas": frame, "Polars": pl.from_pandas(frame), "DuckDB": (con, "people")}[request.param]
        yield pdrisk.Dataset(data, ledger=ledger)


@pytest.fixture
def ledger(tmp_path):
    return pdrisk.Ledger(
        tmp_path / "budget.db", dataset="incomes", eps=1000, delta=1e-5, analyst="bob", policy={"curators": ["anna"]}
    )


ASKED = {
    "max": lambda d, **o: d.max("income", **OPTIONS, **o),
    "mean": lambda d, **o: d.mean("income", **OPTIONS, **o),
    "sum": lambda d, **o: d.sum("income", **OPTIONS, **o),
    "count": lambda d, **o: d.count("income", eps=0.0005, **o),
    "nunique": lambda d, **o: d.nunique("income", eps=0.0005, **o),
    "proportion": lambda d, **o: d.proportion("income > 2000", eps=0.0005, **o),
    "by": lambda d, **o: d.max("income", by="region", keys=["north", "south"], **OPTIONS, **o),
    "agg": lambda d, **o: d.agg({"income": ["max", "mean", "count"]}, **OPTIONS, **o),
    "quantiles": lambda d, **o: d.quantile("income", q=[0.5, 1], **OPTIONS, **o),
    "hist": lambda d, **o: d.hist("income", bins=[0, 2000, 3e6], eps=0.0005, **o),
    "value_counts": lambda d, **o: d.value_counts("region", keys=["north", "south"], eps=0.0005, **o),
    "crosstab": lambda d, **o: d.crosstab(
        "region", "job", keys={"region": ["north", "south"], "job": ["x"]}, eps=0.0005, **o
    ),
    "min": lambda d, **o: d.min("income", **OPTIONS, **o),
    "median": lambda d, **o: d.median("income", **OPTIONS, **o),
    "quantile": lambda d, **o: d.quantile("income", 0.9, interval=True, **OPTIONS, **o),
    "var": lambda d, **o: d.var("income", **OPTIONS, **o),
    "std": lambda d, **o: d.std("income", **OPTIONS, **o),
    "corr": lambda d, **o: d.corr("income", "age", **TWO, **o),
    "cov": lambda d, **o: d.cov("income", "age", **TWO, **o),
    "slope": lambda d, **o: d.slope(y="income", x="age", **TWO, **o),
    "describe": lambda d, **o: d.describe("income", **OPTIONS, **o),
    "clipped": lambda d, **o: d.mean("income", clip="private", **OPTIONS, **o),
    "change": lambda d, **o: d.change(
        "income", wave="region", from_="south", to="north", person="pid", rows=1, **OPTIONS, **o
    ),
    "of people": lambda d, **o: d.sum("income", person="pid", per_person="sum", **OPTIONS, **o),
    "private keys": lambda d, **o: d.mean("income", by="region", keys="private", delta=1e-6, eps=5, bounds=BOUNDS, **o),
    "sql": lambda d, **o: d.sql("SELECT MAX(income) AS m, COUNT(*) AS c FROM data", **OPTIONS, **o),
    "sql risk": lambda d, **o: d.sql("SELECT MAX(income) AS m FROM data", risk_columns=True, **OPTIONS, **o),
}
OBJECTS = {  # of several numbers or tables
    "suggest_bounds": lambda d: d.suggest_bounds("income", eps=0.1),
    "suggest_rows": lambda d: d.suggest_rows(eps=1, person="pid"),
    "inequality": lambda d: d.inequality("income", [0, 2000, 3e6], eps=0.0005, by="region", keys=["north", "south"]),
}
NO_ANSWERS = {"assign", "join", "ledger", "name", "query"}
SECRETS = {SECRET, float(N), float(N - 1), SECRET + (N - 1) * 1024.5, (SECRET + (N - 1) * 1024.5) / N}


def numbers(thing, depth=12, seen=None):
    """Every number that can be reached from an object: attributes, slots, items, text, arrays, closures."""
    seen = {} if seen is None else seen  # by id, and kept: what is freed would give its id to another
    if depth < 0 or id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
        return
    seen[id(thing)] = thing
    if isinstance(thing, bool | np.bool_ | None | bytes):
        return
    if isinstance(thing, int | float | np.number):
        yield float(thing)
        return
    if isinstance(thing, str):
        for word in thing.replace(",", " ").replace("(", " ").replace(")", " ").replace("]", " ").split():
            try:
                yield float(word)
            except ValueError:
                continue
        return
    if isinstance(thing, np.ndarray):
        yield from (float(x) for x in thing.ravel() if isinstance(x, int | float | np.number))
        return
    if isinstance(thing, pd.DataFrame | pd.Series | pd.Index):
        for part in (thing.to_numpy().ravel().tolist(), getattr(thing, "attrs", {})):
            yield from numbers(part, depth - 1, seen)
        if not isinstance(thing, pd.Index):
            yield from numbers(list(thing.index), depth - 1, seen)
        return
    parts = (
        list(thing.items()) if isinstance(thing, dict) else list(thing) if isinstance(thing, list | tuple | set) else []
    )
    for name in dir(thing) if not parts else ():
        if name.startswith(("__", "_repr")):
            continue
        try:
            value = getattr(thing, name)
        except Exception:  # noqa: BLE001 - whatever cannot be had tells nothing
            continue
        parts.append(value() if callable(value) and name in ("public", "to_dict", "to_series") else value)
    yield from {float(part) for part in parts if type(part) in (int, float)}
    for part in parts:
        if type(part) not in (int, float):
            yield from numbers(part, depth - 1, seen)


def hidden(answer):
    """The numbers of an answer that are secret."""
    texts = [repr(answer), str(answer), getattr(answer, "_repr_html_", str)()]
    copies = [pickle.loads(pickle.dumps(answer)), copy.copy(answer), copy.deepcopy(answer)]
    seen = {}
    said = {number for thing in (answer, *texts, *copies) for number in numbers(thing, seen=seen)}
    return {number for number in said if any(math.isclose(number, secret, rel_tol=1e-12) for secret in SECRETS)}


WITHOUT_ALL = ("value_counts", "crosstab", "hist", "change")  # no number of theirs is that of all records


class TestSentinels:
    """No attribute, repr, pickle, copy or text of an analyst's answer holds an exact value, n or sensitivity."""

    @pytest.mark.parametrize("name", ASKED)
    def test_an_analyst(self, name, dataset):
        answer = ASKED[name](dataset)
        assert hidden(answer) == set()
        if isinstance(answer, pdrisk.Release):
            assert answer.curator is None
            with pytest.raises(pdrisk.ParameterError, match="does not hold the curator's numbers"):
                answer.explain("curator")
        else:
            assert not set(Curator.COLUMNS) & {str(column).rpartition("m_")[2] for column in answer.columns}

    @pytest.mark.parametrize("name", OBJECTS)
    def test_objects(self, name, dataset):
        assert hidden(OBJECTS[name](dataset)) == set()

    def test_tables_that_are_joined(self, frame, ledger):
        tables = {"people": frame[["pid", "region"]], "incomes": frame[["pid", "income"]]}
        d = pdrisk.Dataset(tables, person="pid", per_person="one", ledger=ledger)
        query = "SELECT region, MAX(income) AS m, AVG(income) AS a FROM people JOIN incomes USING (pid) GROUP BY region"
        for asked in ({"keys": ["north", "south"]}, {"keys": "private", "delta": 1e-6}):
            assert hidden(d.sql(query, bounds=BOUNDS, eps=0.5, **asked)) == set()

    def test_no_method_is_left_out(self):
        """Whoever adds one says what an analyst may have of it."""
        asked = set()

        class Noted:
            def __getattr__(self, name):
                asked.add(name)
                return lambda *_, **__: None

        for ask in (*ASKED.values(), *OBJECTS.values(), *VIEWS.values()):
            ask(Noted())
        public = {name for name in dir(pdrisk.Dataset) if not name.startswith("_")}
        assert public - NO_ANSWERS == asked

    @pytest.mark.parametrize("name", [name for name in ASKED if name not in WITHOUT_ALL])
    def test_the_walk_finds_what_a_curator_sees(self, name, frame):
        """Without a ledger, whoever asks holds the data; the numbers are there if asked for."""
        answer = ASKED[name](pdrisk.Dataset(frame), curator=True)
        assert float(N) in set(numbers(answer)) or name in ("by", "private keys")
        if isinstance(answer, pdrisk.Release):
            assert float(N) in set(numbers(answer.curator))
            assert float(N) not in set(numbers(pickle.loads(pickle.dumps(answer))))

    @pytest.mark.parametrize("name", ["max", "by", "agg"])
    def test_files(self, name, frame, ledger, tmp_path):
        answer = ASKED[name](pdrisk.Dataset(frame, ledger=ledger))
        if isinstance(answer, pd.DataFrame):
            text = io.StringIO()
            answer.to_csv(text)
            said = text.getvalue() + json.dumps(answer.attrs)
        else:
            said = json.dumps(answer.to_dict()) + answer.to_series().to_json()
        assert not {number for number in numbers(said) if number in SECRETS}

    def test_a_memory_dump_of_the_answer(self, frame, ledger):
        """Nothing that the garbage collector reaches from the answer is an array, but the public tables of weights."""
        answer = ASKED["max"](pdrisk.Dataset(frame, ledger=ledger))
        seen, todo = set(), [answer]
        while todo:
            thing = todo.pop()
            if id(thing) in seen or isinstance(
                thing, type | types.ModuleType | types.FunctionType | types.BuiltinFunctionType | Weights
            ):
                continue
            seen.add(id(thing))
            assert not isinstance(thing, pd.DataFrame | pd.Series), "the answer holds data"
            assert not (isinstance(thing, np.ndarray) and thing.size > 2)
            todo += gc.get_referents(thing)


VIEWS = {
    "curator=True": lambda d: d.mean("income", **OPTIONS, curator=True),
    "curator=True in SQL": lambda d: d.sql("SELECT AVG(income) AS a FROM data", **OPTIONS, curator=True),
    "curator=True by group": lambda d: d.count(eps=1, by="region", keys=["north"], curator=True),
    "curator=True in agg": lambda d: d.agg({"income": "mean"}, **OPTIONS, curator=True),
    "assess": lambda d: d.assess("income", eps=1, bounds=BOUNDS),
    "compare": lambda d: d.compare("income", eps=1, bounds=BOUNDS),
    "sampling_errors": lambda d: d.sampling_errors("income", bounds=BOUNDS),
    "individual_risk": lambda d: d.individual_risk("income", eps=1, bounds=BOUNDS),
    "epsilon_for": lambda d: d.epsilon_for("income", risk=0.6, metric="two_worlds", bounds=BOUNDS),
    "identifiability": lambda d: d.identifiability("income", eps=1, bounds=BOUNDS),
    "k_anonymity": lambda d: d.k_anonymity("region"),
    "k_map": lambda d: d.k_map("region", weights=2.0),
    "delta_presence": lambda d: d.delta_presence("region", population_counts=pd.Series({"north": 9, "south": 9999})),
    "l_diversity": lambda d: d.l_diversity("region", "job"),
    "t_closeness": lambda d: d.t_closeness("region", "income"),
    "unique_rows": lambda d: d.unique_rows("region"),
    "suggest_generalization": lambda d: d.suggest_generalization(["age"], k=2),
    "output_rules": lambda d: d.output_rules("region", "job", values="income", statistic="max"),
    "crosstab with rules": lambda d: d.crosstab("region", "job", rules=True),
}
ATTACKS = {
    "two_worlds": lambda frame: attack.two_worlds("max", frame["income"], eps=1, bounds=BOUNDS),
    "many_worlds": lambda frame: attack.many_worlds("max", frame["income"].tail(9), eps=1, bounds=BOUNDS),
    "averaging": lambda frame: attack.averaging("max", frame["income"], eps=1, bounds=BOUNDS),
    "attribute_disclosure": lambda frame: attack.attribute_disclosure(frame, ["region"], "job"),
    "intersection": lambda frame: attack.intersection(frame, frame, ["region"], "job"),
    "differencing": lambda frame: attack.differencing(frame, "job", "age > 20", "age > 21"),
    "tracker": lambda frame: attack.tracker(frame, {"region": "north"}, "job"),
    "ledger": lambda frame: attack.ledger(ambient.innermost(), records=frame, person=0),
}
OF_MADE_UP_DATA = {"Outcome", "Outcomes", "clopper_pearson", "epsilon_lower_bound", "membership", "reconstruction"}


class TestGate:
    """Under a ledger the curator's views are those of the analysts whom its policy names."""

    @pytest.mark.parametrize("view", VIEWS)
    def test_refused_unread_and_unpaid(self, view, frame, ledger, monkeypatch):
        d = pdrisk.Dataset(frame, ledger=ledger)
        monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: pytest.fail("the data were read"))
        read = "pdrisk.engines.sql.servers.sql_table.read"
        monkeypatch.setattr(read, lambda *_: pytest.fail("the data were read"))
        with pytest.raises(pdrisk.PolicyError, match="curator") as caught:
            VIEWS[view](d)
        assert ledger.remaining().spent == 0
        shown = "".join(traceback.format_exception(caught.value))
        assert not {number for number in numbers(shown) if number in SECRETS}

    @pytest.mark.parametrize("view", VIEWS)
    def test_a_named_curator(self, view, frame, ledger, tmp_path):
        anna = pdrisk.Ledger(tmp_path / "budget.db", dataset="incomes", analyst="Anna ")
        design = pdrisk.Design(psu="pid", persons=1) if view == "sampling_errors" else None
        assert VIEWS[view](pdrisk.Dataset(frame, ledger=anna, design=design)) is not None

    @pytest.mark.parametrize("view", [view for view in VIEWS if "SQL" not in view])
    def test_the_block_around(self, view, frame, ledger):
        with ledger, pytest.raises(pdrisk.PolicyError):
            VIEWS[view](frame.dprisk)

    @pytest.mark.parametrize("name", ATTACKS)
    def test_attacks_on_given_data(self, name, frame, ledger):
        with ledger, pytest.raises(pdrisk.PolicyError, match="curator") as caught:
            ATTACKS[name](frame)
        assert hidden(caught.value) == set()

    def test_no_attack_is_left_out(self):
        assert set(ATTACKS) | OF_MADE_UP_DATA == set(attack.__all__)

    def test_a_curator_who_does_not_ask_gets_what_others_get(self, frame, ledger, tmp_path):
        anna = pdrisk.Ledger(tmp_path / "budget.db", dataset="incomes", analyst="anna")
        assert frame.dprisk.count(eps=1, ledger=anna).curator is None

    def test_an_error_after_reading_holds_nothing(self, frame, ledger, monkeypatch):
        def failing(*_):
            raise ValueError(f"record {SECRET}")

        monkeypatch.setattr("pdrisk.engines.numpy.frame.summary_of_one", failing)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            pdrisk.Dataset(frame, ledger=ledger).max("income", **OPTIONS)
        shown = "".join(traceback.format_exception(caught.value))
        assert str(SECRET) not in shown
        assert caught.value.__cause__ is None and caught.value.__context__ is None

    @pytest.mark.parametrize("value", [1, "yes", None])
    def test_curator_is_a_bool(self, value, frame):
        with pytest.raises(pdrisk.ColumnTypeError, match="curator"):
            frame.dprisk.count(eps=1, curator=value)


def test_the_sentinels_are_no_public_numbers(frame):
    assert len(frame) == N
    assert not SECRETS & set(numbers([OPTIONS["eps"], *BOUNDS, sys.maxsize]))
