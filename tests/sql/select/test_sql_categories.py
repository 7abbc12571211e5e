"""Which categories or labels of an ENUM there are decides neither what is accepted nor what is answered."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

VALUES = ["baker", "nurse", "clerk", None, "nurse"]
OTHERS = ["clerk", "nurse", "nurse", "baker", None]
LABELS = ["nurse", "baker", "clerk"]  # in an order that is not the alphabet's
TEXTS = ("spy", "clerk", "", "Nurse")
CONDITIONS = [
    *(f"job {operator} '{text}'" for operator in ("=", "<>", "<", "<=", ">", ">=") for text in TEXTS),
    *(f"job {operator} other" for operator in ("=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")),
    *(f"job {operator} plain" for operator in ("=", "<", "IS DISTINCT FROM")), "plain = other",
    "job IN ('spy', 'clerk')", "job NOT IN ('spy', 'nurse')", "job IN (other, 'clerk')", "job BETWEEN 'c' AND 'o'",
    "job IS NULL", "job LIKE 'n%'", "lower(job) = 'nurse'", "job || '!' = 'nurse!'", "length(job) = 5",
    "COALESCE(job, 'spy') = 'spy'", "COALESCE(job, other) = 'baker'", "NULLIF(job, other) IS NULL",
    "CASE WHEN job < other THEN job ELSE other END = 'baker'", "NULLIF(job, 'spy') = job",
    "CASE job WHEN 'spy' THEN true WHEN 'nurse' THEN false END", "TRY_CAST(job AS VARCHAR) = 'nurse'",
    "CAST(job AS VARCHAR) < 'o'", "TRY_CAST(job AS INTEGER) IS NULL", "TRY_CAST(job AS DATE) IS NULL",
    "contains(job, 'ur')", "regexp_matches(job, 'n.r')",
]  # fmt: skip
REFUSED = [
    "job = 5", "job < 1", "job + 1 = 2", "job = true", "job > DATE '2020-01-01'",
    "max(job) = 'a'", "greatest(job, 'a') = 'a'",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


def tables(labels: list[str], others: list[str], ordered: bool):
    """The same people, with columns of such categories, in each kind of table that has them."""
    ids = [str(at) for at in range(len(VALUES))]
    frame = pd.DataFrame(
        {
            "id": pd.Series(ids, dtype="string"),
            "plain": pd.Series(VALUES, dtype="string"),
            "job": pd.Categorical(VALUES, categories=labels, ordered=ordered),
            "other": pd.Categorical(OTHERS, categories=others, ordered=ordered),
        }
    )
    yield None, {"t": frame}
    con = duckdb.connect()
    listed = ("', '".join(each) for each in (labels, others))
    con.execute("CREATE TABLE t (id VARCHAR, plain VARCHAR, job ENUM ('{}'), other ENUM ('{}'))".format(*listed))
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [*zip(ids, VALUES, VALUES, OTHERS, strict=True)])
    yield con, {}
    if ordered:
        return
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    yield None, {"t": pa.Table.from_pandas(frame)}
    enums = {name: pl.Series(column, dtype=pl.Enum(kept)) for name, column, kept in (
        ("job", VALUES, labels), ("other", OTHERS, others))}  # fmt: skip
    yield None, {"t": pl.DataFrame({"id": ids, "plain": VALUES, **enums})}


def outcome(query: str, con, frames, **options) -> object:
    try:
        answer = pdrisk.sql(query, con, eps=1, **options, **frames)
    except pdrisk.ParameterError as error:
        return str(error)
    return answer.to_numpy().tolist()


def outcomes(con, frames) -> dict[str, object]:
    keys = [str(at) for at in range(len(VALUES))]
    found = {one: outcome(f"SELECT COUNT(*) FROM t WHERE {one}", con, frames) for one in REFUSED}
    listed = ", ".join(f"COUNT(*) FILTER (WHERE {condition})" for condition in CONDITIONS)
    found["each"] = outcome(f"SELECT {listed} FROM t GROUP BY id", con, frames, keys=keys)
    assert not isinstance(found["each"], str)
    assert all(isinstance(found[one], str) for one in REFUSED)
    for one, people in zip(CONDITIONS, zip(*found["each"], strict=True), strict=True):
        found[one] = sum(people)
    for group, listed in (
        ("job", ["nurse", "spy", None, "Baker"]), ("COALESCE(job, other)", ["nurse", "spy", "baker"]),
        ("job, other", [("nurse", "nurse"), ("spy", "spy"), (None, "baker")]), ("job = 'spy'", [True, False, None]),
    ):  # fmt: skip
        found[group] = outcome(f"SELECT COUNT(*) FROM t GROUP BY {group} ORDER BY {group}", con, frames, keys=listed)
    for asked in ("MAX(job)", "AVG(job)", "MEDIAN(job)", "MIN(other)"):
        found[asked] = outcome(f"SELECT {asked} FROM t", con, frames, bounds=(0, 1))
    return found


class TestCategories:
    """One label more, or another order of them, changes nothing."""

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("ordered", [True, False])
    def test_acceptance_and_decisions(self, ordered):
        expected = None
        for more, of_others in [([], []), (["spy"], []), ([], ["", "Nurse"]), (["spy", "zebra"], ["spy", "zebra"])]:
            labels, others = LABELS[:: -1 if more else 1] + more, LABELS + of_others
            for con, frames in tables(labels, others, ordered):
                found = outcomes(con, frames)
                expected = expected or found
                assert found == expected
        assert expected is not None
        assert expected["job < 'spy'"] == 4
        assert expected["job < 'clerk'"] == 1  # as texts are ordered, not as the labels are
        assert expected["job = other"] == 1
        assert expected["job"] == [[0], [2], [0], [1]]

    def test_no_label_at_all(self):
        for values in ([None, None], ["a", None]):
            frame = pd.DataFrame({"job": pd.Categorical(values)})
            assert pdrisk.sql("SELECT COUNT(*) FROM t WHERE job = 'spy'", eps=1, t=frame).iat[0, 0] == 0
            answer = pdrisk.sql("SELECT COUNT(*) FROM t GROUP BY job", eps=1, keys=["a", None], t=frame)
            assert answer.iloc[:, 0].tolist() == [values.count("a"), values.count(None)]

    def test_no_label_in_an_error(self):
        frame = pd.DataFrame({"job": pd.Categorical(["SENTINEL", "a"])})
        for query in ("SELECT AVG(job) FROM t", "SELECT COUNT(*) FROM t WHERE job = 1", "SELECT job FROM t"):
            assert "SENTINEL" not in outcome(query, None, {"t": frame}, bounds=(0, 1))

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("values", [[1, 2, 1], [1.5, 2, 1.5], [True, False, True]])
    def test_categories_that_are_no_texts(self, values):
        plain, categories = pd.DataFrame({"x": values}), pd.DataFrame({"x": pd.Categorical(values)})
        for condition in ("x = 1", "x < 2", "x", "x = 'a'", "x * 2 = 2", "x IS NULL", "TRY_CAST(x AS DOUBLE) = 1"):
            query = f"SELECT COUNT(*) FROM t WHERE {condition}"
            assert outcome(query, None, {"t": plain}) == outcome(query, None, {"t": categories}), condition
        query = "SELECT AVG(x) FROM t"
        assert np.allclose(*(outcome(query, None, {"t": t}, bounds=(0, 2)) for t in (plain, categories)))
