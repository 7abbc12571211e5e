"""Ledgers remember answers from several tables: by what is made of them, and by the identity of each."""

from functools import partial

import duckdb
import pandas as pd
import pytest

from pdrisk import Dataset

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

PATIENTS = pd.DataFrame({"pid": range(40), "canton": ["ZH", "BE"] * 20, "age": range(40)})
STAYS = pd.DataFrame({"pid": [each % 45 for each in range(90)], "code": ["a", "b", "c"] * 30, "days": 4.0})
CODES = pd.DataFrame({"code": ["a", "b", "c"], "weight": [1, 2, 3]})
JOINED = "patients p JOIN stays s USING (pid)"
QUERIES = {
    "join": f"SELECT COUNT(DISTINCT pid) AS n FROM {JOINED}",
    "public": "SELECT SUM(weight) AS n FROM stays JOIN codes USING (code)",
    "groups": f"SELECT canton, COUNT(*) AS n FROM {JOINED} GROUP BY canton",
    "in": "SELECT COUNT(DISTINCT pid) AS n FROM patients WHERE pid IN (SELECT pid FROM stays WHERE code = 'a')",
    "first one number": "SELECT AVG(n) AS n FROM (SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid)",
    "two answers": f"SELECT COUNT(*) AS n FROM {JOINED} UNION ALL SELECT COUNT(*) FROM stays",
    "a scalar": f"SELECT COUNT(*) AS n FROM {JOINED} WHERE age > (SELECT AVG(age) FROM {JOINED})",
}
OPTIONS = {
    "public": {"rows": 3, "bounds": (0, 3)},
    "groups": {"rows": 3, "groups": 1, "keys": ["ZH", "BE"]},
    "first one number": {"bounds": {"n": (0, 5)}},
    "two answers": {"rows": 3},
    "a scalar": {"rows": 3, "bounds": (0, 50)},
}


def survey(ledger, **changed):
    """A Dataset of copies: nothing but their content says that they are the same."""
    tables = {"patients": PATIENTS.copy(), "stays": STAYS.copy()} | changed
    codes = tables.pop("codes", CODES).copy()
    version = tables.pop("version", None)
    return Dataset(tables, person="pid", public={"codes": codes}, ledger=ledger, version=version)


def asked(ledger, ask):
    """The answer, and what it cost."""
    before = ledger.remaining().eps
    found = ask()
    return found, before - ledger.remaining().eps


def sql(d, name="join"):
    return lambda: d.sql(QUERIES[name], eps=1, **OPTIONS.get(name, {})).to_dict("list")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", QUERIES)
def test_again(book, name):
    """By the same Dataset, by another one of the same content, and by another analyst."""
    ledger = book()
    d = survey(ledger)
    first, cost = asked(ledger, sql(d, name))
    assert cost == 1
    assert asked(ledger, sql(d, name)) == (first, 0)
    assert asked(ledger, sql(survey(ledger), name)) == (first, 0)
    other = book(analyst="bob")
    assert asked(other, sql(survey(other), name)) == (first, 0)


@pytest.mark.slow
def test_when_nothing_is_left(book):
    ledger = book(eps=2)
    d = survey(ledger)
    first = [sql(d, name)() for name in ("two answers", "a scalar")]
    assert ledger.remaining().eps == 0
    assert [sql(d, name)() for name in ("two answers", "a scalar")] == first


CHANGED = {
    "a value": {"stays": STAYS.assign(days=[5.0, *STAYS["days"][1:]])},
    "one person less": {"patients": PATIENTS[:-1]},
    "other order": {"stays": STAYS.sample(frac=1, random_state=3)},
    "other codes": {"codes": CODES.assign(weight=[1, 2, 4])},
    "more codes": {"codes": pd.concat([CODES, CODES[:1]])},
    "another type": {"codes": CODES.astype({"weight": float})},
}


class TestPaidAgain:
    """Another content of any table that is read, or anything else asked of them, is another question."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("what", CHANGED)
    def test_of_other_tables(self, book, what):
        ledger, name = book(), "public" if "codes" in CHANGED[what] else "join"
        asked(ledger, sql(survey(ledger), name))
        assert asked(ledger, sql(survey(ledger, **CHANGED[what]), name))[1] == 1

    @pytest.mark.parametrize("table", ["stays", "codes"])
    def test_in_place(self, book, table):
        """What is done to a column's values behind the Dataset's back is seen, as of one table."""
        ledger, own = book(), {"stays": STAYS.copy(), "codes": CODES.copy()}
        d = Dataset({"stays": own["stays"]}, person={"stays": "pid"}, public={"codes": own["codes"]}, ledger=ledger)
        assert [asked(ledger, sql(d, "public"))[1] for _ in range(2)] == [1, 0]
        frame = d._given.frames[table]
        frame[frame.columns[-1]].array[:1] = 7
        assert asked(ledger, sql(d, "public"))[1] == 1

    def test_tables_that_changed_places(self, book):
        ledger = book()
        one, two = (STAYS.assign(days=days)[["pid", "days"]] for days in (1.0, 2.0))
        query = "SELECT SUM(a.days) AS n FROM {} a SEMI JOIN {} b ON a.pid = b.pid"
        d = Dataset({"one": one, "two": two}, person="pid", ledger=ledger)

        def ask(*names):
            return lambda: d.sql(query.format(*names), eps=1, rows=2, bounds=(0, 3))["n"].item()

        assert [asked(ledger, ask(*names))[1] for names in (("one", "two"), ("two", "one"), ("one", "two"))] == [
            1,
            1,
            0,
        ]

    def test_of_tables_elsewhere(self, book):
        """Temporary tables do not last, and a call without a Dataset knows nothing."""
        con = duckdb.connect()
        for name, frame in {"patients": PATIENTS, "stays": STAYS}.items():
            con.register("frame", frame)
            con.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
        ledger = book()
        d = Dataset(
            {"patients": (con, "patients"), "stays": (con, "stays")}, person="pid", ledger=ledger, version="1"
        )  # fmt: skip
        assert [asked(ledger, sql(d))[1] for _ in range(2)] == [1, 1]


class TestVersion:
    """By the owner's word for the state of the data, tables of files are remembered, and nobody compares people's."""

    @pytest.fixture
    def places(self, tmp_path):
        con = duckdb.connect(str(tmp_path / "people.db"))
        for name, frame in {"patients": PATIENTS, "stays": STAYS}.items():
            con.register("frame", frame)
            con.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            con.execute(f"COPY {name} TO '{tmp_path / name}.parquet' (FORMAT parquet)")
        return {
            "tables": {name: (con, name) for name in ("patients", "stays")},
            "files": {name: str(tmp_path / f"{name}.parquet") for name in ("patients", "stays")},
            "frames": {},
        }

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("where", ["tables", "files", "frames"])
    def test_remembered(self, book, places, where):
        ledger = book()
        first, cost = asked(ledger, sql(survey(ledger, version="1", **places[where])))
        assert cost == 1
        assert asked(ledger, sql(survey(ledger, version="1", **places[where]))) == (first, 0)
        assert asked(ledger, sql(survey(ledger, version="2", **places[where])))[1] == 1

    @pytest.mark.slow
    def test_public_content_counts_under_a_version_too(self, book):
        ledger = book()
        costs = [
            asked(ledger, sql(survey(ledger, version="1", codes=codes), "public"))[1]
            for codes in (CODES, CODES.assign(weight=9), CODES)
        ]
        assert costs == [1, 1, 0]


class TestJoins:
    """The same of ``Dataset.join``."""

    @staticmethod
    def joined(ledger, stays=STAYS, codes=CODES, how="inner", versions=(None, None)):
        first, second = (
            Dataset(frame.copy(), person="pid", ledger=ledger, version=version)
            for frame, version in zip((PATIENTS, stays), versions, strict=True)
        )
        return first, second, first.join(second, how=how).join(codes, on="code")

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "ask",
        [
            lambda d: d.count(eps=1, where="age > 3").value,
            lambda d: d.sum("weight", eps=1, bounds=(0, 3), rows=2, by="code", keys=["a"], groups=1)["value"].item(),
            lambda d: d.sql("SELECT COUNT(*) AS n FROM data", eps=1, rows=2)["n"].item(),
        ],
        ids=["count", "groups", "sql"],
    )
    def test_again(self, book, ask):
        ledger = book()
        first, second, joined = self.joined(ledger)
        found, cost = asked(ledger, partial(ask, joined))
        assert cost == 1
        assert asked(ledger, partial(ask, joined)) == (found, 0)
        both = first.join(second)
        assert asked(ledger, partial(ask, both.join(CODES.copy(), on="code"))) == (found, 0)
        assert asked(ledger, partial(ask, both.join(CODES.assign(weight=2), on="code")))[1] == 1
        assert asked(ledger, partial(ask, both.join(CODES, on="code", how="left")))[1] == 1
        assert asked(ledger, partial(ask, joined)) == (found, 0)

    @pytest.mark.slow
    def test_a_filter_is_another_question(self, book):
        ledger = book()
        _, _, joined = self.joined(ledger)
        asks = [lambda: joined.count(eps=1), lambda: joined.query("age > 3").count(eps=1), lambda: joined.count(eps=1)]
        assert [asked(ledger, ask)[1] for ask in asks] == [1, 1, 0]

    def test_the_other_changes_in_place(self, book):
        ledger = book()
        _, second, joined = self.joined(ledger)
        assert [asked(ledger, lambda: joined.count(eps=1))[1] for _ in range(2)] == [1, 0]
        second._given.frames["data"]["days"].array[:1] = 7
        assert [asked(ledger, lambda: joined.count(eps=1))[1] for _ in range(2)] == [1, 1]

    @pytest.mark.slow
    def test_versions_of_both(self, book):
        ledger = book()
        costs = [
            asked(ledger, lambda both=both: self.joined(ledger, versions=both)[2].count(eps=1))[1]
            for both in [("1", "1"), ("1", "1"), ("1", "2"), ("2", "1"), ("1", "1")]
        ]
        assert costs == [1, 0, 1, 1, 0]


def made(frame, kind):
    polars = pytest.importorskip("polars")
    found = polars.from_pandas(frame)
    return found if kind == "polars" else found.to_arrow()


@pytest.mark.parametrize("kind", ["polars", "arrow"])
class TestPolarsAndArrow:
    """What is held in memory elsewhere is known by its content, or by its version, as frames of pandas are."""

    QUERY = "SELECT SUM(weight) AS n FROM patients JOIN stays USING (pid) JOIN codes USING (code)"

    def ask(self, ledger, kind, stays=STAYS, codes=CODES, version=None):
        tables = {name: made(frame, kind) for name, frame in (("patients", PATIENTS), ("stays", stays))}
        public = {"codes": made(codes, kind)}
        d = Dataset(tables, person="pid", public=public, ledger=ledger, version=version)
        return lambda: d.sql(self.QUERY, eps=1, rows=3, bounds={"weight": (0, 3)})["n"].item()

    @pytest.mark.parametrize("version", [None, "1"])
    def test_tables(self, book, kind, version):
        ledger = book(eps=20)
        again = self.ask(ledger, kind, version=version)
        first, cost = asked(ledger, again)
        assert cost == 1
        assert asked(ledger, again) == asked(ledger, self.ask(ledger, kind, version=version)) == (first, 0)
        other_codes, other_stays = CODES.assign(weight=[3, 2, 1]), STAYS.assign(pid=STAYS["pid"] + 1)
        assert asked(ledger, self.ask(ledger, kind, codes=other_codes, version=version))[1] == 1
        if version is None:
            assert asked(ledger, self.ask(ledger, kind, stays=other_stays))[1] == 1
        assert asked(ledger, self.ask(ledger, kind, version="2"))[1] == 1
        assert asked(ledger, self.ask(ledger, kind, version=version)) == (first, 0)

    def test_values_that_pandas_would_round(self, book, kind):
        """Whole numbers with one missing are no floats here."""
        ledger = book()
        costs = []
        for last in (2**60, 2**60 + 1, 2**60):
            stays = STAYS.assign(days=pd.array([None, *[1] * (len(STAYS) - 2), last], dtype="Int64"))
            costs.append(asked(ledger, self.ask(ledger, kind, stays=stays))[1])
        assert costs == [1, 1, 0]

    def test_joined(self, book, kind):
        ledger = book()
        first, second = (Dataset(made(frame, kind), person="pid", ledger=ledger) for frame in (PATIENTS, STAYS))
        joined = first.join(second)
        found, cost = asked(ledger, lambda: joined.count(eps=1, where="age > 3").value)
        assert cost == 1
        assert asked(ledger, lambda: first.join(second).count(eps=1, where="age > 3").value) == (found, 0)
        with_codes = [asked(ledger, lambda each=each: joined.join(each, on="code").count(eps=1))[1] for each in (
            made(CODES, kind), made(CODES, kind), made(CODES.assign(weight=7), kind)
        )]  # fmt: skip
        assert with_codes == [1, 0, 1]
        assert asked(ledger, lambda: second.sql("SELECT COUNT(DISTINCT pid) AS n FROM data", eps=1))[1] == 1
        assert asked(ledger, lambda: second.sql("SELECT COUNT(DISTINCT pid) AS n FROM data", eps=1))[1] == 0
