"""Questions of SQL have one identity: whatever a query is spelled like, an answer that was paid for is remembered."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nodes import Call, Case, Cast, Column, Constant, Operation
from pdrisk._relations.canonical import canonical
from pdrisk._relations.plan import Aggregated, Joined, Numbered, PerPerson, Scan, Selection, United, Windowed
from pdrisk._relations.pruned import columns_read, pruned

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SAME = [
    ["SELECT AVG(age) AS m FROM data", "select avg( data.age ) from DATA",
    "SELECT mean(a) FROM (SELECT age AS a FROM data)",
     "WITH t AS (SELECT * FROM data) SELECT AVG(AGE) AS other FROM t",
     "SELECT AVG(d.age) FROM data AS d WHERE true AND true"
     .replace(" WHERE true AND true", "")],
    ["SELECT COUNT(*) FROM data WHERE age > 40 AND sex = 1", "SELECT COUNT(*) FROM (SELECT age, sex FROM data) WHERE "
    "age > 40 AND sex = 1",
     "SELECT COUNT(*) AS n FROM data WHERE (age > 40) AND ((sex = 1))"],
    ["SELECT COUNT(*) FROM data WHERE CAST(age AS DOUBLE) > 40.5",
    "SELECT COUNT(*) FROM data WHERE age::DOUBLE > 40.50",
     "SELECT COUNT(*) FROM data WHERE TRY_CAST(age AS FLOAT8) > 40.5"],
    ["SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM data", "SELECT SUM(if(age > 40, 1, 0)) FROM data"],
    ["SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 40", "SELECT COUNT(*) FROM data WHERE age >= 20 AND age <= "
    "40"],
    ["SELECT COUNT(*) FROM data WHERE NULLIF(age, 30) > 2", "SELECT COUNT(*) FROM data WHERE CASE WHEN age = 30 THEN "
    "NULL ELSE age END > 2"],
    ["SELECT sex, COUNT(*) FROM data GROUP BY sex", "SELECT COUNT(*), sex AS s FROM data GROUP BY 2",
    "SELECT sex, COUNT(*) FROM data GROUP BY ALL"],
    ["SELECT AVG(s) FROM (SELECT pid, SUM(age) AS s FROM data GROUP BY pid)",
    "SELECT AVG(t) FROM (SELECT pid, SUM(age) AS t, MAX(sex) AS unread FROM data GROUP BY pid)"],
]  # fmt: skip


def frame():
    at = np.arange(60)
    return pd.DataFrame({"pid": at // 2, "age": 20 + at % 50, "sex": at % 2})


def asked(tmp_path, name, queries):
    """Answers to queries of a Dataset of its own, and what they cost together."""
    ledger = pdrisk.Ledger(tmp_path / f"{name}.db", dataset="people", eps=10**6)
    person = "pid" if "pid" in queries[0] else None
    data = pdrisk.Dataset(
        frame(), bounds={"age": (0, 99)}, keys={"sex": [0, 1]}, ledger=ledger, person=person, version="1"
    )
    answers = []
    for query in queries:
        bounds = {each: (0, 200) for each in "st" if f"({each})" in query} or None
        answers.append(data.sql(query, eps=1, bounds=bounds).select_dtypes("number").to_numpy().sum())
    return answers, ledger.remaining().spent


@pytest.mark.parametrize("spelled", SAME, ids=lambda listed: listed[0])
def test_an_answer_is_remembered_however_it_is_spelled(tmp_path, spelled):
    answers, spent = asked(tmp_path, "budget", spelled)
    assert spent == 1
    assert len(set(answers)) == 1


def test_other_questions_are_drawn_anew(tmp_path):
    firsts = [listed[0] for listed in SAME if "pid" not in listed[0]]
    assert asked(tmp_path, "budget", firsts)[1] == len(firsts)


AGE, SEX = Column("age"), Column("sex")
BASE = Selection(
    Scan("t", (("age", (-9,)),)), (("age", AGE), ("sex", SEX)), (Operation(">", (AGE, Constant(1))),), ("pid",)
)
PLANS = {
    "selection": BASE,
    "join": Joined(BASE, Selection(Scan("u"), (("sex", SEX),)), "INNER", (Operation("==", (AGE, SEX)),), (("age",
    "sex"),)),
    "union": United((BASE, BASE)),
    "people": PerPerson(BASE, (("age", AGE),), (("sex", Aggregated("sum", SEX, AGE, universe=Universe(0.0, 9.0))),)),
    "windows": Numbered(BASE, (("sex", Windowed("lag", (SEX, Constant(1)), ("age",), ((SEX, "ASC NULLS LAST"),))),)),
    "expressions": Selection(BASE, (("age", Case(((SEX, Cast(AGE, "DOUBLE", True)),), Call("round", (AGE,
    Constant(2))))),)),
}  # fmt: skip
OTHER = {
    str: "another", bool: None, int: 7, float: 7.5, tuple: None, type(None): AGE, Universe: Universe(0.0, 8.0),
    Aggregated: Aggregated("max", SEX),
    Windowed: Windowed("lead", (SEX,), ("age",), ()), Scan: Scan("w"), Selection: Selection(Scan("w"), (("age", AGE),
    ("sex", SEX))),
}  # fmt: skip
NEVER = {"names", "forgiving", "ordered", "given", "in_quotes", "qualifiers", "known_as"}


def text_of(relation):
    return canonical(relation, [], [], [[AGE, SEX, None]], ["numbers"], [], "UTC")


def mutants(value):
    """Each value that differs in one field, anywhere in the tree."""
    if isinstance(value, tuple):
        for at, part in enumerate(value):
            yield from ((*value[:at], other, *value[at + 1 :]) for other in mutants(part))
        if len(value) not in (0, 2):
            yield value[:-1]
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            if each.name not in NEVER:
                yield from (
                    dataclasses.replace(value, **{each.name: other}) for other in mutants(getattr(value, each.name))
                )
    elif isinstance(value, bool):
        yield not value
    elif OTHER.get(type(value)) is not None:
        yield OTHER[type(value)]


class TestText:
    """The canonical text is equal for equal plans alone."""

    @pytest.mark.parametrize("name", PLANS)
    def test_every_field_is_written(self, name):
        plan, seen = PLANS[name], 0
        for other in mutants(plan):
            if other != plan and pruned(other, [AGE, SEX]) != pruned(plan, [AGE, SEX]):
                assert text_of(other) != text_of(plan), other
                seen += 1
        assert seen >= 6

    def test_values_of_other_types_are_others(self):
        values = [1, 1.0, True, "1", None, -0.0, 0.0, 0, "None", [1], "[1]"]
        texts = [
            canonical(Scan("t"), [Operation("==", (AGE, Constant(value)))], [], [], [], [], "UTC") for value in values
        ]
        assert len(set(texts)) == len(values)

    def test_the_version_and_the_form(self):
        """A golden text: what changes it has to raise the version, or answers that were paid are lost unseen."""
        found = json.loads(text_of(PLANS["selection"]))
        golden = [
            "pdrisk plan", 1,
            ["Selection", ["Scan", "t", ["list", ["list", "age", ["list", ["int", "-9"]]]]],
             ["list", ["list", "age", ["column", "age"]], ["list", "sex", ["column", "sex"]]],
             ["list", ["Operation", ">", ["list", ["column", "age"], ["constant", ["int", "1"]]]]], ["list", "pid"]],
            ["list"], ["list"], ["list", ["list", ["column", "age"], ["column", "sex"], None]], ["list", "numbers"],
            ["list"], "UTC",
        ]  # fmt: skip
        assert found == golden

    def test_what_nobody_reads_is_no_part_of_it(self):
        more = dataclasses.replace(BASE, columns=(*BASE.columns, ("unread", Column("income"))))
        assert text_of(more) == text_of(BASE)
        assert columns_read(more, [AGE]) == {("t", "age"), ("t", "pid")}
        numbered = dataclasses.replace(PLANS["windows"], of=more)  # there every column tells rows apart
        assert text_of(numbered) != text_of(PLANS["windows"])


@pytest.mark.parametrize(
    ("one", "other"),
    [("SUM(age)", "SUM(DISTINCT age)"), ("COUNT(age)", "COUNT(DISTINCT age)"), ("AVG(age)", "MEDIAN(age)"),
     ("COUNT(*)", "COUNT(age)"), ("VAR_POP(age)", "VAR_SAMP(age)"), ("MIN(age)", "MAX(age)"),
     ("COUNT(*) FILTER (WHERE sex = 1)", "COUNT(*) FILTER (WHERE sex = 0)"),
     ("QUANTILE_CONT(age, 0.25)", "QUANTILE_CONT(age, 0.75)"), ("CORR(age, sex)", "CORR(sex, age)")],
)  # fmt: skip
def test_other_statistics_of_a_column_are_other_questions(tmp_path, one, other):
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=10**6)
    data = pdrisk.Dataset(frame(), bounds={"age": (0, 99), "sex": (0, 1)}, ledger=ledger, version="1")
    for text in (one, other):
        data.sql(f"SELECT {text} AS v FROM data", eps=1)
    assert ledger.remaining().spent == 2


def test_tables_of_one_dataset_are_told_apart(tmp_path):
    """Of COUNT(*) no column is read: the table is a part of the question."""
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=10**6)
    data = pdrisk.Dataset({"a": frame(), "b": frame().head(9)}, ledger=ledger, version="1")
    values = [data.sql(f"SELECT COUNT(*) AS n FROM {name}", eps=100)["n"].item() for name in "aba"]
    assert ledger.remaining().spent == 200
    assert values[0] == values[2] > 40 > 20 > values[1]
