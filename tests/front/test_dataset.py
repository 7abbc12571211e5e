"""A Dataset has the statistics of its frame, its own declarations, and one ledger; what it selects is row-wise."""

from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import REGIONS, SURE, asked, events, people, values
from pdrisk import Dataset
from pdrisk._pandas.accessor import FrameAccessor

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

FRAME = people()
AGES = {"bounds": {"age": (0, 100)}}
ASKS = {
    "count": lambda d, **o: d.count(eps=SURE, **o),
    "sum": lambda d, **o: d.sum("age", eps=SURE, bounds=(0, 100), **o),
    "mean": lambda d, **o: d.mean("age", eps=SURE, bounds=(0, 100), **o),
    "median": lambda d, **o: d.median("age", eps=SURE, bounds=(0, 100), mechanism="laplace", **o),
    "quantile": lambda d, **o: d.quantile("age", 0.9, eps=SURE, bounds=(0, 100), mechanism="laplace", **o),
    "min": lambda d, **o: d.min("age", eps=SURE, bounds=(0, 100), mechanism="laplace", **o),
    "max": lambda d, **o: d.max("age", eps=SURE, bounds=(0, 100), mechanism="laplace", **o),
    "var": lambda d, **o: d.var("age", eps=SURE, bounds=(0, 100), **o),
    "std": lambda d, **o: d.std("age", eps=SURE, bounds=(0, 100), **o),
    "groups": lambda d, **o: d.count(eps=SURE, by="region", keys=REGIONS, **o),
    "agg": lambda d, **o: d.agg({"age": ["mean", "sum"]}, eps=SURE, bounds=(0, 100), **o),
}
SAME = {
    "assess": lambda d, **o: d.assess("age", ["mean", "max"], bounds=(0, 100), **o),
    "individual_risk": lambda d, **o: d.individual_risk("age", eps=1, bounds=(0, 100), **o),
    "epsilon_for": lambda d, **o: d.epsilon_for("age", risk=0.7, metric="two_worlds", bounds=(0, 100), **o),
    "identifiability": lambda d, **o: d.identifiability("age", eps=1, bounds=(0, 100), **o),
}


def same(one, other):
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.equals(other)
    return one == other


class TestStatistics:
    """They are those of ``df.dprisk``, by the same code."""

    def test_all_of_them(self):
        names = [name for name in dir(FrameAccessor) if not name.startswith("_")]
        assert [name for name in names if not hasattr(Dataset, name)] == ["declare", "declared"]
        assert Dataset.mean is FrameAccessor.mean and "bounds" in (Dataset.mean.__doc__ or "")

    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
    def test_answers(self, ask):
        assert values(ask(Dataset(FRAME))) == pytest.approx(values(ask(FRAME.dprisk)), abs=0.2)

    @pytest.mark.parametrize("ask", SAME.values(), ids=SAME)
    def test_the_curators_views(self, ask):
        assert same(ask(Dataset(FRAME)), ask(FRAME.dprisk))

    def test_suggested_bounds(self):
        frame = pd.DataFrame({"x": [42.0] * 500 + [1e6] * 500, "few": [True] * 500 + [False] * 500})
        d = Dataset(frame)
        few = [d.query("few").suggest_bounds("x", eps=9) for _ in range(5)]  # one in 150 is wider, by its noise
        assert d.suggest_bounds("x", eps=9)[1] >= 1e6
        assert all(low <= 32 < 64 <= high for low, high in few) and min(high for _, high in few) < 1e6

    def test_what_it_shows(self):
        assert repr(Dataset(FRAME, name="survey").query("age > 40")).startswith("Dataset 'survey', where age > 40; ")
        with pytest.raises(AttributeError, match=r"a Dataset has no 'meen'\. Did you mean 'mean'"):
            Dataset(FRAME).meen  # noqa: B018
        with pytest.raises(AttributeError, match=r"a Dataset has no 'groupby': groups are options"):
            Dataset(FRAME).groupby  # noqa: B018


class TestDeclarations:
    """They are judged as by ``declare``, win over the frame's own, and stay in the Dataset."""

    def test_they_hold(self):
        d = Dataset(FRAME, bounds={"age": (0, 100)}, keys={"region": REGIONS}, missing={"hours": [1]})
        assert d.mean("age", eps=SURE).value == pytest.approx(FRAME["age"].mean(), abs=0.01)
        assert d.count("hours", eps=SURE, by="region")["value"].sum() == pytest.approx(
            (FRAME["hours"] != 1).sum(), abs=1
        )
        answer = d.sql("SELECT region, AVG(age) AS age, COUNT(hours) AS n FROM data GROUP BY region", eps=SURE)
        assert answer["n"].sum() == pytest.approx((FRAME["hours"] != 1).sum(), abs=1)
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            FRAME.dprisk.mean("age", eps=1)
        assert not FRAME.attrs

    def test_the_frames_own_stay(self):
        frame = FRAME.dprisk.declare(bounds={"age": (0, 100), "hours": (0, 20)})
        d = Dataset(frame, bounds={"age": (0, 50)})
        assert (d.mean("age", eps=SURE).bounds, d.mean("hours", eps=SURE).bounds) == ((0, 50), (0, 20))

    def test_a_schema(self):
        schema = pdrisk.schema_for(bounds={"age": (0, 100), "hours": (0, 20)})
        d = Dataset(FRAME, schema=schema, bounds={"age": (0, 50)})
        assert (d.mean("age", eps=SURE).bounds, d.mean("hours", eps=SURE).bounds) == ((0, 50), (0, 20))
        with pytest.raises(pdrisk.ParameterError, match="wider than the range"):
            Dataset(FRAME, schema=schema, bounds={"age": (0, 101)})

    @pytest.mark.parametrize(
        "said",
        [
            {"bounds": {"agee": (0, 1)}},
            {"bounds": {"age": (1, 0)}},
            {"keys": {"region": []}},
            {"missing": {"age": ["x"]}},
        ],
        ids=str,
    )
    def test_what_does_not_fit(self, said):
        found = []
        for declared in (partial(Dataset, FRAME), FRAME.dprisk.declare):
            with pytest.raises(pdrisk.PdriskError) as caught:
                declared(**said)
            found.append((type(caught.value), str(caught.value)))
        assert found[0] == found[1]


REFUSED = {
    "constant": ({"constant": ["sex"]}, "constant="),
    "public": ({"public": 5}, "public is a list of names"),
    "their average": ({"person": "pid", "per_person": "average"}, "per_person is one of one, mean, sum"),
    "one row of whom": ({"per_person": "one"}, "pass it as well"),
    "an unknown person": ({"person": "pidd", "per_person": "one"}, "Did you mean 'pid'"),
    "a person of two columns, one unknown": ({"person": ["pid", "day"]}, "unknown column 'day'"),
    "a version for nobody": ({"version": "1"}, "pass ledger= as well"),
    "a path without a name": ({"ledger": "budget.db"}, "needs name="),
    "no ledger there": ({"ledger": "nowhere.db", "name": "survey"}, r"begin one with pdrisk\.Ledger"),
    "no ledger": ({"ledger": 3}, r"ledger must be a pdrisk\.Ledger"),
    "no name": ({"name": " "}, "name must be a name"),
    "no yes or no": ({"curator": 1}, "curator must be True or False"),
}


class TestWhatIsRefused:
    """What does not mean anything yet is refused in words, before a ledger is touched."""

    @pytest.mark.parametrize(("said", "words"), REFUSED.values(), ids=REFUSED)
    def test_declared(self, tmp_path, monkeypatch, said, words):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(pdrisk.PdriskError, match=words):
            Dataset(FRAME, **said)
        assert not [*tmp_path.iterdir()]

    @pytest.mark.parametrize(
        "data", [3, None, [1, 2], FRAME["age"], {}, {"t": 3}, {1: FRAME}, {"T": FRAME, "t": FRAME}]
    )
    def test_data(self, data):
        with pytest.raises(pdrisk.PdriskError, match=r"data must be|a dict of tables"):
            Dataset(data)

    def test_people_are_the_owners_word(self, book):
        """Whether each has one row is not looked at: that would be read before it is paid."""
        frame = FRAME.assign(pid=1)
        assert Dataset(frame, person="pid", per_person="one", ledger=book()).count(eps=1)


class TestItsLedger:
    """One ledger pays for all answers: the one passed to a call, its own, or that of the block, of the same name."""

    def test_its_own(self, book, path):
        book()
        for d in (Dataset(FRAME, ledger=book()), Dataset(FRAME, name="survey", ledger=path)):
            assert d.name == "survey" and d.ledger is not None
            d.count(eps=0.25, where="age > 30", fresh=True)
            d.sql("SELECT COUNT(*) FROM data", eps=0.25, fresh=True)
        assert book().remaining().spent == 1

    def test_before_that_of_a_block(self, book, tmp_path):
        d = Dataset(FRAME, ledger=book())
        with pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=1) as other:
            d.count(eps=1)
        assert (other.remaining().spent, d.ledger.remaining().spent) == (0, 1)

    @pytest.mark.parametrize(
        "ask", [*ASKS.values(), lambda d, **o: d.sql("SELECT COUNT(*) FROM data", eps=1, **o)], ids=[*ASKS, "sql"]
    )
    def test_of_other_people(self, book, ask):
        """Others do not pay for them."""
        named, owned = Dataset(FRAME, name="survey"), Dataset(FRAME, ledger=book())
        other = book(dataset="other")
        with pytest.raises(pdrisk.ParameterError, match="the ledger is that of dataset 'other', not of 'survey'"):
            ask(owned, ledger=other)
        with other, pytest.raises(pdrisk.ParameterError, match="not of 'survey'"):
            ask(named)
        with pytest.raises(pdrisk.ParameterError, match="not of 'panel'"):
            Dataset(FRAME, name="panel", ledger=book())
        assert other.remaining().spent == 0 == book().remaining().spent

    def test_an_unknown_dataset(self, book, path):
        book()
        with pytest.raises(pdrisk.ParameterError, match="survey"):
            Dataset(FRAME, name="survei", ledger=path)
        assert pdrisk.Ledger.datasets(path) == ["survey"]


class TestQuery:
    """``d.query(condition)`` is asked as ``where=condition``: the same answers, and the same question to a ledger."""

    @pytest.mark.parametrize("ask", [*ASKS.values(), *SAME.values()], ids=[*ASKS, *SAME])
    def test_as_where(self, ask):
        condition, other = "age > 30", "sex == 1 or region == 'north'"
        whole, part = Dataset(FRAME), Dataset(FRAME).query(condition)
        pairs = [
            (ask(part), ask(whole, where=condition)),
            (ask(part, where=other), ask(whole, where=f"({condition}) and ({other})")),
            (ask(part.query(other)), ask(whole, where=f"({condition}) and ({other})")),
            (ask(part, where=FRAME["sex"] == 1), ask(whole, where="age > 30 and sex == 1")),
            (ask(part, where=lambda df: df["sex"] == 1), ask(whole, where="age > 30 and sex == 1")),
        ]
        for one, two in pairs:
            try:
                assert values(one) == pytest.approx(values(two), abs=0.2, nan_ok=True)
            except AttributeError:  # no noisy answers
                assert same(one, two)

    def test_the_same_question(self, book):
        ledger = book()
        d = Dataset(FRAME, ledger=ledger)
        first, paid = asked(ledger, lambda _: d.count(eps=1, where="age > 30 and sex == 1 and hours < 5"))
        asks = [
            lambda _: d.query("age > 30 and sex == 1 and hours < 5").count(eps=1),
            lambda _: d.query("age > 30").query("sex == 1").query("hours < 5").count(eps=1),
            lambda _: d.query("age > 30").count(eps=1, where="sex == 1 and hours < 5"),
            lambda _: d.query("age > 30 and sex == 1").count(eps=1, where="hours < 5"),
        ]
        assert paid == 1 and [asked(ledger, ask) for ask in asks] == [(first, 0)] * 4
        assert asked(ledger, lambda _: d.query("age > 30").count(eps=1, where="sex == 1"))[1] == 1

    def test_what_is_shown(self):
        limit = 30
        d = Dataset(FRAME).query("age > @limit or sex == 1").query("hours < 5")
        release = d.count(eps=1, where="region == 'north'")
        assert release.where == "(age > @limit or sex == 1) and hours < 5 and region == 'north'"
        assert release.where_trusted and limit == 30

    def test_names_are_bound_when_it_is_made(self):
        limit = 200
        nobody = Dataset(FRAME).query("age > @limit")
        limit = 0
        assert nobody.count(eps=SURE).value == pytest.approx(limit, abs=0.01)

    def test_columns_that_the_owner_refuses(self, book):
        d = Dataset(FRAME, ledger=book(policy={"refuse_columns": ["sex"]}))
        with pytest.raises(pdrisk.PolicyError, match="'sex'"):
            d.query("sex == 1").count(eps=1)
        with pytest.raises(pdrisk.PolicyError, match="mask or a function"):
            d.query("age > 30").count(eps=1, where=FRAME["sex"] == 1)
        assert events(d.ledger) == ["opened", "refused", "refused"]

    def test_it_reads_nothing(self, book, monkeypatch):
        d = Dataset(FRAME, ledger=book())
        monkeypatch.setattr("pdrisk.engines.numpy.frame.selected_rows", lambda *_: pytest.fail("it was evaluated"))
        d.query("age > 30").query("sex == 1")
        assert events(d.ledger) == ["opened"]

    @pytest.mark.parametrize(
        ("condition", "words"),
        [
            ("agee > 30", "Did you mean 'age'"), ("age > age.mean()", "may look at other records"),
            ("age", "not a decision"), (FRAME["age"] > 30, "A mask or a function is where="),
            (lambda df: df["age"] > 30, "A mask or a function is where="),
            (None, "query takes a query string"), ("hours == 1", "stand for a missing answer"),
        ],
    )  # fmt: skip
    def test_what_is_no_condition(self, condition, words):
        with pytest.raises(pdrisk.PdriskError, match=words):
            Dataset(FRAME, missing={"hours": [1]}).query(condition)

    def test_not_in_sql(self):
        with pytest.raises(pdrisk.ParameterError, match="without what query"):
            Dataset(FRAME).query("age > 30").sql("SELECT COUNT(*) FROM data", eps=1)


@pytest.fixture
def forms(tmp_path):
    """The same people in every form that SQL reads."""
    pa = pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "people.parquet")
    with duckdb.connect() as con:
        con.register("registered", FRAME)
        con.execute("CREATE TABLE people AS FROM registered")
        con.execute("CREATE VIEW seen AS SELECT * FROM people")
        made = {
            "pandas": FRAME,
            "arrow": pa.Table.from_pandas(FRAME),
            "path": tmp_path / "people.parquet",
            "text of a path": str(tmp_path / "people.parquet"),
            "relation": con.table("people"),
            "table": (con, "people"),
            "table of a schema": (con, "main.people"),
        }
        try:
            made["polars"] = pytest.importorskip("polars").from_pandas(FRAME)
        except pytest.skip.Exception:
            pass
        yield made | {"view": (con, "seen")}


class TestSql:
    """One table is ``data``, several have the names of the dict; nothing else can be read."""

    def test_every_form(self, forms):
        said = {"bounds": {"age": (0, 100)}, "keys": {"region": REGIONS}, "missing": {"hours": [1]}}
        query = "SELECT region, AVG(data.age) AS age, COUNT(hours) AS n FROM data GROUP BY region"
        expected = Dataset(FRAME, **said).sql(query, eps=SURE)
        for name in forms.keys() - {"view"}:
            found = Dataset(forms[name], **said).sql(query, eps=SURE)
            assert found["region"].tolist() == REGIONS
            for column in ("age", "n"):
                assert found[column].tolist() == pytest.approx(expected[column].tolist(), abs=0.01), name
        for name in forms:
            found = Dataset(forms[name]).sql("SELECT COUNT(*) AS n FROM data", eps=SURE)
            assert found["n"].item() == pytest.approx(60, abs=0.01), name

    def test_declared_of_a_view(self, forms):
        with pytest.raises(pdrisk.ParameterError, match="unknown column 'agee'"):
            Dataset(forms["table"], bounds={"agee": (0, 1)})
        with pytest.raises(pdrisk.ParameterError, match="unknown column 'pidd'"):
            Dataset(forms["path"], person="pidd", per_person="one")
        assert Dataset(forms["path"], person="pid", per_person="one")

    def test_several(self, forms):
        d = Dataset({"one": FRAME, "two": forms["table"], "Three": FRAME[:7]})
        counts = [d.sql(f"SELECT COUNT(*) AS n FROM {name}", eps=SURE)["n"].item() for name in ("one", "TWO", "three")]
        assert counts == pytest.approx([60, 60, 7], abs=0.01)

    def test_declared_of_several(self, forms):
        """An entry holds in each table with such a column, people's or public, wherever the table is."""
        codes = pd.DataFrame({"region": REGIONS, "label": [f"in the {each}" for each in REGIONS]})
        said = {"bounds": {"age": (0, 100)}, "keys": {"region": REGIONS, "label": codes["label"]}}
        query = (
            "SELECT label, AVG(two.age) AS age FROM one JOIN two USING (pid) JOIN codes ON one.region = codes.region "
            "GROUP BY label"
        )
        people = {"one": FRAME[["pid", "region", "hours"]]}
        for form in ("pandas", "table", "polars", "path"):
            for public in ({"codes": codes}, ["codes"]):
                tables = people | {"two": forms[form]} | ({"codes": codes} if isinstance(public, list) else {})
                d = Dataset(tables, person="pid", per_person="one", public=public, missing={"hours": [1]}, **said)
                answer = d.sql(query, eps=SURE)
                assert answer["age"].tolist() == pytest.approx(
                    FRAME.groupby("region")["age"].mean()[REGIONS].tolist(), abs=0.01
                )
                hours = d.sql("SELECT COUNT(hours) AS n FROM one", eps=SURE)["n"].item()
                assert hours == pytest.approx((FRAME["hours"] != 1).sum(), abs=0.01)
        assert not FRAME.attrs
        with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'label'"):
            Dataset(tables, person="pid", public=["codes"], keys={"labell": ["in"]})
        with pytest.raises(pdrisk.ParameterError, match="bounds as a dict"):
            Dataset(tables, person="pid", public=["codes"], bounds=(0, 100))
        with pytest.raises(pdrisk.ParameterError, match="schema= is that of one table"):
            Dataset(tables, person="pid", public=["codes"], schema=pdrisk.schema_for(bounds={"age": (0, 100)}))

    @pytest.mark.parametrize("form", ["pandas", "table", "path", "arrow"])
    def test_one_with_a_public_table(self, forms, form):
        d = Dataset(forms[form], public={"codes": pd.DataFrame({"label": ["a"]})}, **AGES, keys={"label": ["a"]})
        assert d.mean("age", eps=SURE).value == pytest.approx(FRAME["age"].mean(), abs=0.01)
        assert d.k_anonymity(["region"]).k == FRAME["region"].value_counts().min()

    @pytest.mark.parametrize("name", ["people", "main.people", "seen", "frame", "other"])
    def test_nothing_else(self, forms, name):
        frame = FRAME  # noqa: F841 - DuckDB would find it
        for form in ("table", "pandas"):
            with pytest.raises(pdrisk.ParameterError, match="unknown table"):
                Dataset(forms[form]).sql(f"SELECT COUNT(*) FROM {name}", eps=1)

    def test_not_by_its_path(self, forms):
        """What is declared belongs to the name."""
        d = Dataset(forms["path"], missing={"hours": [1]})
        for source in (f"'{forms['path']}'", f"read_parquet('{forms['path']}')", f'"{forms["path"]}"'):
            with pytest.raises(pdrisk.ParameterError, match="by the names of its tables: data"):
                d.sql(f"SELECT COUNT(hours) FROM {source}", eps=1)

    @pytest.mark.parametrize("ask", [*ASKS.values(), *SAME.values(), lambda d: d.query("age > 3")])
    def test_statistics_need_one_table(self, ask):
        with pytest.raises(pdrisk.ParameterError, match=r"which d\.sql\(\.\.\.\) asks"):
            ask(Dataset({"data": FRAME}))

    @pytest.mark.parametrize("form", ["path", "table"])
    @pytest.mark.parametrize("name", ["individual_risk", "identifiability"])
    def test_single_rows_stay_in_a_database(self, forms, form, name):
        with pytest.raises(pdrisk.ParameterError, match="stay in the database"):
            SAME[name](Dataset(forms[form]))

    def test_remembered_by_what_they_hold(self, book):
        """The frames of a dict are compared as one is."""
        other = FRAME.assign(age=33)
        costs = []
        for tables in ({"a": FRAME, "b": other}, {"b": other, "a": FRAME}, {"a": FRAME, "b": FRAME}):
            d = Dataset(tables, ledger=book())
            for name in "ab":
                costs.append(asked(book(), lambda _, d=d, name=name: d.sql(f"SELECT COUNT(*) FROM {name}", eps=1))[1])
        assert costs == [1, 1, 0, 0, 1, 1]
        assert np.isclose(book().remaining().spent, 4)
