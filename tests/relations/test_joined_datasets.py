"""``Dataset.join``: what the joined Dataset answers, by the definition of neighbours what one person can change, and
what is paid."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, Ledger, ParameterError, PolicyError
from sql_people import without_noise
from test_relations import CANTONS, CHAPTERS, CODES, WORDS, tables, without

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"days": (0, 8), "cost": (0, 4), "age": (0, 90), "dose": (0, 2), "weight": (0, 3)}
REGIONS = pd.DataFrame({"canton": CANTONS, "language": ["de", "de", "fr"]})


def datasets(data, **said):
    """One Dataset for each table of people, all with one secret."""
    found = {}
    for name in ("patients", "stays", "drugs"):
        columns = [column for column in BOUNDS if column in data[name]]
        one = {"per_person": "one"} if name == "patients" else {}
        frame = data[name].rename(columns={"code": "drug"}) if name == "drugs" else data[name]
        d = Dataset(frame, person="pid", bounds={each: BOUNDS[each] for each in columns}, **one, **said)
        object.__setattr__(d._known_people, "secret", lambda: b"q" * 32)
        found[name] = d
    return found


JOINS = {
    "codes": lambda d: d["stays"].join(CODES, on="code"),
    "words": lambda d: d["stays"].join(WORDS, on="code", how="left"),
    "one row": lambda d: d["patients"].join(REGIONS, on="canton"),
    "times words": lambda d: d["patients"].join(WORDS.assign(canton=["ZH", "ZH", "BE", None]), on="canton"),
    "stays": lambda d: d["patients"].join(d["stays"]),
    "no stays": lambda d: d["patients"].join(d["stays"], how="left"),
    "patients": lambda d: d["stays"].join(d["patients"], on="pid"),
    "all": lambda d: d["patients"].join(d["stays"]).join(d["drugs"], on=["pid"], how="left").join(CODES, on="code"),
}
ASKS = {
    "people": lambda d, x, by: d.count(eps=1, where=f"{x} > 2"),
    "rows": lambda d, x, by: d.count(eps=1, rows=4),
    "mean": lambda d, x, by: d.mean(x, eps=1, rows=3, mechanism="laplace"),
    "person": lambda d, x, by: d.mean(x, eps=1, per_person="max"),
    "together": lambda d, x, by: d.query(f"{x} >= 0").assign(twice=f"{x} * 2").agg(
        {x: ["count", "mean", "var"], "twice": ["max"]}, eps=1, rows=2, bounds={x: (0, 90), "twice": (0, 180)}
    ),
    "groups": lambda d, x, by: d.sum(x, eps=1, rows=2, **by),
    "bins": lambda d, x, by: d.hist(x, bins=3, eps=1, rows=2),
    "different": lambda d, x, by: d.nunique(x, eps=1, rows=2),
    "sql": lambda d, x, by: d.sql(
        f"SELECT {by['by']}, COUNT(*) AS n, AVG({x}) AS m FROM data WHERE {x} > (SELECT AVG({x}) / 2 FROM data) "
        f"GROUP BY {by['by']}",
        eps=1, rows=2, groups=2, keys=by["keys"],
    ),
    "sql of people": lambda d, x, by: d.sql(
        "WITH one AS (SELECT pid, COUNT(*) AS n FROM data GROUP BY pid) SELECT SUM(n) AS v FROM one JOIN data "
        "USING (pid)",
        eps=1, rows=2, bounds={"n": (0, 9)},
    ),
}  # fmt: skip
OF_STAYS = ("codes", "words")  # which have no patient


def about(name):
    """A column of numbers that a join has, and one of groups."""
    if name in OF_STAYS:
        return "days", {"by": "code", "keys": ["a", "b"], "groups": 2}
    return "age", {"by": "canton", "keys": CANTONS, "groups": 2}


@pytest.mark.sampled(53)
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", JOINS)
def test_one_person_loses_at_most_eps(name, ask, monkeypatch):
    """All rows of one person out of every table, each person of each small set of tables."""
    draws = without_noise(monkeypatch)

    def exact(data):
        draws.clear()
        ASKS[ask](JOINS[name](datasets(data)), *about(name))
        return list(draws)

    data, moved = tables(1), 0.0
    whole = exact(data)
    for pid in range(5):
        rest = exact(without(data, pid))
        assert [each[1:] for each in rest] == [each[1:] for each in whole]
        lost = sum(
            float(np.abs(np.asarray(one, dtype=object) - np.asarray(other, dtype=object)).sum() * eps / change)
            for (one, change, eps), (other, _, _) in zip(whole, rest, strict=True)
        )
        assert lost <= 1 + 1e-6, pid
        moved = max(moved, lost)
    assert moved > 0 or ask == "different"  # values that others have, too


def pandas_joined(data, name):
    """The same with pandas, of whom nobody is unknown."""
    patients, stays, drugs = (data[each].dropna(subset=["pid"]) for each in ("patients", "stays", "drugs"))
    # pandas takes two missing codes for equal, SQL does not.
    codes, words = CODES.dropna(subset=["code"]), WORDS.dropna(subset=["code"])
    known = stays.dropna(subset=["code"])
    return {
        "codes": lambda: known.merge(codes, on="code"),
        "words": lambda: stays.merge(words, on="code", how="left"),
        "one row": lambda: patients.merge(REGIONS, on="canton"),
        "times words": lambda: patients.merge(WORDS.assign(canton=["ZH", "ZH", "BE", None]), on="canton"),
        "stays": lambda: patients.merge(stays, on="pid"),
        "no stays": lambda: patients.merge(stays, on="pid", how="left"),
        "patients": lambda: stays.merge(patients, on="pid"),
        "all": lambda: patients.merge(known, on="pid").merge(
            drugs.rename(columns={"code": "drug"}), on="pid", how="left"
        ).merge(codes, on="code"),
    }[name]()  # fmt: skip


class TestAnswers:
    """A join answers as the merged tables would, wherever they are."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("name", JOINS)
    def test_as_pandas_merges(self, name):
        data = tables(5, people=30)
        d, plain = JOINS[name](datasets(data)), pandas_joined(data, name)
        column, by = about(name)
        assert d.count(eps=10**6).value == plain["pid"].nunique()
        assert d.count(eps=10**7, rows=40).value == len(plain)
        found = d.mean(column, eps=10**7, rows=40, mechanism="laplace").value
        assert found == pytest.approx(plain[column].astype(float).mean(), rel=1e-3)
        table = d.count(column, eps=10**7, rows=40, **by)["value"]
        assert table.tolist() == [plain.loc[plain[by["by"]] == key, column].count() for key in by["keys"]]
        text = f"SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS people FROM data WHERE {column} > 3"
        answer = d.sql(text, eps=10**7, rows=40)
        rows = plain[plain[column] > 3]
        assert answer.iloc[0].tolist() == [len(rows), rows["pid"].nunique()]

    @pytest.mark.slow
    def test_where_tables_are(self, tmp_path):
        """Polars, Arrow, files and tables of DuckDB, joined with each other as frames are."""
        polars = pytest.importorskip("polars")
        data = tables(3, people=20)
        patients, stays = data["patients"], data["stays"]
        con = duckdb.connect()
        con.register("frame", stays)
        con.execute("CREATE TABLE stays AS SELECT * FROM frame")
        patients.to_parquet(tmp_path / "patients.parquet")
        expected = len(patients.merge(stays, on="pid"))
        kinds = [
            (polars.from_pandas(patients), polars.from_pandas(stays).to_arrow()),
            (str(tmp_path / "patients.parquet"), (con, "stays")),
            (patients, (con, "stays")),
            ((con, "stays"), patients),
        ]
        for first, second in kinds:
            d = Dataset(first, person="pid").join(Dataset(second, person="pid"))
            assert d.count(eps=10**6, rows=40).value == expected
        table = Dataset(polars.from_pandas(stays), person="pid", as_="polars").join(CODES, on="code").count(
            by="chapter", keys=CHAPTERS, groups=2, eps=1
        )  # fmt: skip
        assert isinstance(table, polars.DataFrame)

    def test_names_of_ids_differ(self):
        one = pd.DataFrame({"pid": [1, 2, 3], "age": [10, 20, 30]})
        two = pd.DataFrame({"who": [1, 1, 4], "days": [1, 2, 3]})
        d = Dataset(one, person="pid").join(Dataset(two, person="who"), how="left")
        assert d.count(eps=10**6).value == 3
        assert d.count("days", eps=10**6, rows=9).value == 2
        assert d.count(eps=1).unit == "pid"
        assert "who" not in d.sql("SELECT MAX(days) AS v FROM data", eps=1, rows=1, bounds=(0, 9)).columns

    def test_declarations_go_along(self):
        """Bounds, keys and missing codes of both tables."""
        stays = pd.DataFrame({"pid": [1, 1, 2], "code": ["a", "b", "a"], "days": [5, -1, 7]})
        stays = stays.dprisk.declare(bounds={"days": (0, 9)}, missing={"days": [-1]})
        codes = CODES.dprisk.declare(keys={"chapter": CHAPTERS})
        d = Dataset(stays, person="pid").join(codes, on="code")
        table = d.sum("days", eps=10**7, rows=3, by="chapter", groups=2)
        assert table["value"].tolist() == pytest.approx([12, 0], abs=1e-2)


LEAST = 20
FILTERED = {
    "first": (
        lambda p, s: p.query("age > @LEAST").assign(old="age * 2").query("old < 120").join(s),
        lambda p, s: p[(p["age"] > LEAST) & (p["age"] * 2 < 120)].assign(old=p["age"] * 2).merge(s, on="pid"),
    ),
    "both": (
        lambda p, s: p.query("canton == 'ZH' or age < 30").join(s.assign(far="days > 2").query("far"), on="pid"),
        lambda p, s: p[(p["canton"] == "ZH") | (p["age"] < 30)].merge(s[s["days"] > 2], on="pid"),
    ),
    "left": (
        lambda p, s: p.query("age > @LEAST").join(s, how="left").query("days > 1 or days.isna()"),
        lambda p, s: p[p["age"] > LEAST].merge(s, on="pid", how="left").query("days > 1 or days.isna()"),
    ),
    "of three": (
        lambda p, s: p.query("age > @LEAST").join(s.query("code == 'a'")).query("days > 1").join(CODES, on="code"),
        lambda p, s: p[p["age"] > LEAST].merge(s[(s["code"] == "a") & (s["days"] > 1)], on="pid").merge(
            CODES, on="code"
        ),
    ),
}  # fmt: skip


class TestFiltersFirst:
    """What query and assign did before a join is done before: as where tables are filtered, and then merged."""

    @pytest.mark.whole
    @pytest.mark.parametrize("name", FILTERED)
    def test_as_pandas(self, name):
        data = tables(5, people=30)
        patients, stays = (data[each].dropna(subset=["pid"]) for each in ("patients", "stays"))
        asked, merged = FILTERED[name]
        found, rows = asked(*(datasets(data)[each] for each in ("patients", "stays"))), merged(patients, stays)
        assert found.count(eps=10**6).value == rows["pid"].nunique() > 1
        assert found.count(eps=10**7, rows=40).value == len(rows)
        mean = found.mean("days", eps=10**7, rows=40, mechanism="laplace", bounds=(0, 8)).value
        assert mean == pytest.approx(rows["days"].astype(float).mean(), rel=1e-3)

    def test_types_of_the_join_decide(self):
        """A day that a frame held as datetime64[ns] is one of DuckDB then."""
        patients = pd.DataFrame({"pid": [1, 2, 3], "born": pd.to_datetime(["1990-05-01", "2001-01-01", None])})
        d = Dataset(patients, person="pid", per_person="one").query("born >= '1990-05-01' and born < '2001-01-01'")
        d = d.join(Dataset(pd.DataFrame({"pid": [1, 1, 2, 3]}), person="pid"))
        assert d.count(eps=10**6, rows=3).value == 2

    def test_a_ledger_remembers_it_as_asked_after(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        p, s = (
            Dataset(getattr(TestRowsOfAPerson, each), person="pid", ledger=ledger) for each in ("PATIENTS", "STAYS")
        )
        one, other = p.query("age > 30").join(s).count(eps=1), p.join(s).query("age > 30").count(eps=1)
        assert one.value == other.value and ledger.remaining().eps == 8


class TestRowsOfAPerson:
    """How many rows count is what the tables have at most, and the label says so."""

    STAYS = pd.DataFrame({"pid": [1, 1, 2], "code": ["a", "a", "b"]})
    PATIENTS = pd.DataFrame({"pid": [1, 2], "canton": ["ZH", "BE"], "age": [30, 40]})
    TWICE = pd.DataFrame({"canton": ["ZH", "ZH", "BE"], "year": [1, 2, 1]})

    def patients(self):
        return Dataset(self.PATIENTS, person="pid", per_person="one", bounds={"age": (0, 90)})

    def test_counted_in_the_public_table(self):
        twice = self.patients().join(self.TWICE, on="canton")
        answer = twice.mean("year", eps=1, bounds=(0, 3))
        assert "at most 2 rows of each count" in " ".join(answer.explain("publication").split())
        assert twice.nunique("year", eps=1).scale == 2
        assert twice.count(eps=10**6).value == 2  # people
        assert "one row of each counts" in " ".join(twice.mean("age", eps=1).explain("publication").split())

    def test_known_rows_need_no_groups(self):
        """They are those of a person in all groups together; none is left out, and the texts do not say so."""
        twice = self.patients().join(self.TWICE, on="canton")
        by = {"by": "year", "keys": [1, 2, 3], "eps": 1}
        for table in (
            twice.nunique("year", **by),
            twice.sum("year", bounds=(0, 3), **by),
            twice.sql("SELECT year, COUNT(*) AS n FROM data GROUP BY year", eps=1, keys=[1, 2, 3]),
        ):
            label = " ".join(pdrisk.explain(table, "publication").split())
            assert "truncated" not in label and "leaves out" not in label
            assert "at most 2 rows in all groups together" in label

    def test_one_row_needs_no_groups(self):
        table = self.patients().join(REGIONS, on="canton").count(by="language", keys=["de", "fr"], eps=10**6)
        assert table["value"].tolist() == [2, 0]
        query = "SELECT language, COUNT(*) AS n FROM data GROUP BY language"
        answer = self.patients().join(REGIONS, on="canton").sql(query, eps=10**6, keys=["de", "fr"])
        assert answer["n"].tolist() == [2, 0]

    def test_nobody_knows(self):
        with pytest.raises(
            ParameterError, match="one pid may have several rows, and the question does not say how they count"
        ):
            self.patients().join(Dataset(self.STAYS, person="pid")).nunique("code", eps=1)

    def test_rows_are_not_protected_one_by_one(self):
        joined = self.patients().join(Dataset(self.STAYS, person="pid"))
        for ask in (joined.count, lambda **said: joined.sql("SELECT COUNT(*) FROM data", **said)):
            with pytest.raises(ParameterError, match='unit="row" is for one table'):
                ask(eps=1, unit="row")

    def test_another_person(self):
        with pytest.raises(ParameterError, match="losses of different units do not add up"):
            self.patients().join(self.TWICE, on="canton").count(person="year", eps=1)


class TestRefused:
    """A join whose rows would be several people's, or whose columns do not fit, says what to write."""

    PATIENTS, STAYS = TestRowsOfAPerson.PATIENTS, TestRowsOfAPerson.STAYS

    @pytest.mark.parametrize(
        ("join", "why"),
        [
            (lambda p, s: Dataset(s).join(CODES, on="code"), "join needs to know who a person is"),
            (lambda p, s: p.join(s, on="pid"), "a table that is not a Dataset counts as one that nobody is in"),
            (lambda p, s: p.join(CODES), "a table that is not a Dataset counts as one that nobody is in"),
            (lambda p, s: p.join(Dataset(s)), "the other Dataset does not say who a person is"),
            (lambda p, s: p.join(Dataset(s, person=["pid", "code"])), "told apart by 1 and 2 columns"),
            (lambda p, s: p.join(Dataset(s, person="pid"), on="code"), "on= leaves out pid"),
            (lambda p, s: p.join(Dataset(s, person="pid"), how="outer"), 'how is "inner" or "left", not'),
            (lambda p, s: p.join(CODES, on="canton"), "unknown column 'canton'"),
            (
                lambda p, s: p.join(Dataset(s.assign(AGE=1), person="pid")),
                "both tables of the join have a column",
            ),
            (lambda p, s: p.join(Dataset(s.astype({"pid": str}), person="pid")), "ids are compared as they are"),
            (
                lambda p, s: p.join(Dataset(s, person="pid").query("code == 'a'"), how="left"),
                'how="left" keeps rows that match none',
            ),
            (lambda p, s: p.join(Dataset(s, person="pid").assign(n="pid > 1"), how="left"), 'how="left" keeps rows'),
            (
                lambda p, s: p.join(Dataset(s.rename(columns={"pid": "who"}), person="who").query("who > 1")),
                "under the name of the first table",
            ),
            (
                lambda p, s: p.assign(canton="age > 3").join(CODES.assign(canton="ZH"), on="canton"),
                "'canton' was assigned",
            ),
            (
                lambda p, s: p.assign(code="age > 3").join(Dataset(s, person="pid")),
                "both tables of the join have a col",
            ),
            (lambda p, s: p.join(Dataset(s, person="pid").assign(AGE="pid + 1")), "both tables of the join have a col"),
            (
                lambda p, s: p.assign(age="age + 1").assign(age="age * 2").join(Dataset(s, person="pid")),
                "made a column anew",
            ),
            (
                lambda p, s: (
                    Dataset(
                        s.astype({"code": pd.CategoricalDtype(["b", "a"], ordered=True)}),
                        person="pid",
                        keys={"code": ["b", "a"]},
                    )
                    .query("code > 'b'")
                    .join(CODES, on="code")
                ),
                "compared categories by their order",
            ),
            (lambda p, s: p.join(Dataset(s, person="pid").join(CODES, on="code")), "join its tables one after"),
            (lambda p, s: p.join(Dataset({"a": s, "b": s}, person="pid")), r"joins them in d\.sql"),
            (lambda p, s: p.join(s.rename(columns={"code": 7}), on="canton"), "columns whose names are text"),
            (lambda p, s: p.join(3, on="canton"), "data must be a frame"),
            (
                lambda p, s: p.join(Dataset(s, person="pid")).count(by="canton", keys="observed", eps=1),
                "the keys that occur then reveal who is in both",
            ),
        ],
    )
    def test_with_what_to_write(self, join, why):
        patients = Dataset(self.PATIENTS, person="pid", per_person="one")
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError, pdrisk.UnknownColumnError), match=why):
            join(patients, self.STAYS)

    def test_what_is_constant_is_declared(self):
        """Not read off the data, be it one row: a column made anew may have several values where nothing is said."""
        one, costs = pd.DataFrame({"pid": [1], "age": [30]}), pd.DataFrame({"pid": [1], "cost": [5]})
        for said in ({}, {"per_person": "mean"}):
            before, after = Dataset(one, person="pid", **said), Dataset(costs, person="pid", **said)
            joined = before.assign(w="age * 2").query("w > 1").join(after).assign(age="age + 1")
            assert before.assign(age="age * 2").join(after).mean("age", eps=1, bounds=(0, 99), rows=1).curator.n == 1
            assert joined.mean("w", eps=1, bounds=(0, 99), rows=1).curator.n == 1
        before, after = (Dataset(each, person="pid", per_person="one") for each in (one, costs))
        for assign in (
            lambda: before.join(after).assign(age="age + 1"),
            lambda: before.assign(age="age + 1").join(after),
            lambda: Dataset(one, person="pid", constant="age").assign(age="age + 1"),
        ):
            with pytest.raises(ParameterError, match="'age' is declared to have one value for each person"):
                assign()

    def test_another_ledger(self, tmp_path):
        one, two = (Ledger(tmp_path / f"{name}.db", dataset="people", eps=9) for name in "ab")
        first = Dataset(self.PATIENTS, person="pid", ledger=one)
        for other in (Dataset(self.STAYS, person="pid", ledger=two), Dataset(self.STAYS, person="pid")):
            with pytest.raises(ParameterError, match="the two Datasets have different ledgers"):
                first.join(other)


class TestPaid:
    """A join is paid by the ledger of its tables, under its rules."""

    def test_by_the_ledger_of_both(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=9)
        patients = Dataset(TestRowsOfAPerson.PATIENTS, person="pid", per_person="one", ledger=ledger)
        joined = patients.join(Dataset(TestRowsOfAPerson.STAYS, person="pid", ledger=ledger))
        joined.count(eps=1)
        joined.sql("SELECT COUNT(DISTINCT pid) FROM data", eps=2)
        assert ledger.remaining().eps == 6

    def test_columns_that_the_owner_does_not_allow(self, tmp_path):
        """What a join compares is read."""
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=9, policy={"refuse_columns": ["code"]})
        d = Dataset(TestRowsOfAPerson.STAYS, person="pid", ledger=ledger)
        assert d.count(eps=1).eps == 1
        for ask in (lambda j: j.count(eps=1), lambda j: j.sql("SELECT COUNT(DISTINCT pid) FROM data", eps=1)):
            with pytest.raises(PolicyError, match="does not allow column 'code'"):
                ask(d.join(CODES, on="code"))


def test_a_table_that_declares_people_is_not_public():
    stays = pd.DataFrame({"pid": [1, 2, 3], "code": ["a", "b", "a"]})
    other = pd.DataFrame({"code": ["a", "b"], "who": [1, 2]}).dprisk.declare(person="who")
    data = Dataset(stays, person="pid", public={"other": other})
    with pytest.raises(ParameterError, match="declares person=, so people are in it"):
        data.sql("SELECT COUNT(DISTINCT pid) AS n FROM data JOIN other USING (code)", eps=1)
    with pytest.raises(ParameterError, match="declares person=, so people are in it"):
        Dataset(stays, person="pid").join(other, on="code").count(eps=1)
