"""Questions keep their keys in a ledger: with another key, a remembered answer would be paid and drawn anew.

A difference is a release note: say in docs/ledger.md what is paid once more, and write the file anew with
``PDRISK_WRITE_GOLDEN=1 pytest -n0 tests/ledger/test_golden_questions.py``.
"""

import json
import os
import re

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from paths import GOLDEN
from pdrisk._ledger.accounts import payer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
QUESTIONS = GOLDEN / "questions.json"
BOUNDS = {"age": (0, 99), "hours": (0, 60)}
REGIONS = ["north", "south", "east"]
FLUENT = {
    "the number of records": lambda d: d.count(eps=1),
    "the number of present values": lambda d: d.count("hours", eps=1),
    "a mean": lambda d: d.mean("hours", eps=1),
    "a mean of Laplace noise": lambda d: d.mean("hours", eps=1, mechanism="laplace"),
    "a mean with bounds of its own": lambda d: d.mean("hours", eps=1, bounds=(0, 40)),
    "a mean for another eps": lambda d: d.mean("hours", eps=0.25),
    "a sum": lambda d: d.sum("hours", eps=1),
    "a median": lambda d: d.median("hours", eps=1),
    "a quantile": lambda d: d.quantile("hours", q=0.25, eps=1),
    "a minimum": lambda d: d.min("age", eps=1),
    "a maximum": lambda d: d.max("age", eps=1),
    "a variance": lambda d: d.var("hours", eps=1),
    "a variance of a population": lambda d: d.var("hours", ddof=0, eps=1),
    "a standard deviation": lambda d: d.std("hours", eps=1),
    "a number of different values": lambda d: d.nunique("age", eps=1),
    "a histogram": lambda d: d.hist("age", bins=[0, 30, 60, 99], eps=1),
    "several statistics": lambda d: d.agg({"age": ["mean", "max"], "hours": "sum"}, eps=1),
    "a number by groups": lambda d: d.count(by="region", keys=REGIONS, eps=1),
    "a mean by groups": lambda d: d.mean("hours", by="region", keys=REGIONS, eps=1),
    "a mean by two columns": lambda d: d.mean(
        "hours", by=["region", "sex"], keys=[(r, s) for r in REGIONS for s in (0, 1)], eps=1
    ),
    "a median by groups": lambda d: d.median("hours", by="sex", keys=[0, 1], eps=1),
    "a filter": lambda d: d.count(where="age > 40", eps=1),
    "a filter of two parts": lambda d: d.mean("hours", where="age > 40 and sex == 1", eps=1),
    "a filter by text": lambda d: d.count(where="region == 'north'", eps=1),
    "a filter by a list": lambda d: d.count(where="region in ['north', 'east']", eps=1),
    "a filter with arithmetic": lambda d: d.count(where="hours * 2 + age > 90", eps=1),
    "a filter of groups": lambda d: d.sum("age", by="sex", keys=[0, 1], where="hours <= 5", eps=1),
    "a filter that something differs": lambda d: d.count(where="age != 40", eps=1),
    "a filter of a negation": lambda d: d.count(where="not (age > 40 and hours < 9)", eps=1),
    "a filter of what is not listed": lambda d: d.count(where="region not in ['north']", eps=1),
    "a share of a condition": lambda d: d.proportion("age > 40", eps=1),
    "an assigned condition": lambda d: d.assign(old="age > 40").count(where="old", eps=1),
    "a filtered Dataset": lambda d: d.query("age > 30").count(eps=1),
}  # fmt: skip
SQL = {
    "COUNT(*)": "SELECT COUNT(*) AS n FROM data",
    "COUNT of a column": "SELECT COUNT(hours) AS n FROM data",
    "AVG": "SELECT AVG(hours) AS m FROM data",
    "SUM": "SELECT SUM(age) AS s FROM data",
    "MEDIAN": "SELECT MEDIAN(hours) AS m FROM data",
    "MIN": "SELECT MIN(age) AS m FROM data",
    "MAX": "SELECT MAX(age) AS m FROM data",
    "VAR_SAMP": "SELECT VAR_SAMP(hours) AS v FROM data",
    "STDDEV_SAMP": "SELECT STDDEV_SAMP(hours) AS v FROM data",
    "WHERE": "SELECT COUNT(*) AS n FROM data WHERE age > 40 AND sex = 1",
    "WHERE with a list": "SELECT COUNT(*) AS n FROM data WHERE region IN ('north', 'east')",
    "WHERE with a cast": "SELECT COUNT(*) AS n FROM data WHERE CAST(age AS DOUBLE) > 40.5",
    "CASE": "SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) AS n FROM data",
    "FILTER": "SELECT COUNT(*) FILTER (WHERE age > 40) AS n FROM data",
    "a subquery": "SELECT AVG(h) AS m FROM (SELECT hours AS h FROM data WHERE age > 30) AS t",
    "two aggregates": "SELECT COUNT(*) AS n, AVG(hours) AS m FROM data",
}


def frame():
    at = np.arange(60)
    made = pd.DataFrame({"age": 20 + at % 50, "hours": 1.0 + at % 9, "sex": at % 2})
    return made.assign(region=pd.array(np.array(REGIONS)[at % 3].tolist(), dtype="string"))


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """Key of every question by its sentence, whatever the folder, and the size and time of a file are."""
    monkeypatch.setenv("PDRISK_SECRET", "golden")
    usual, asked = payer.key_of, []

    def key_of(question, about):
        text = json.dumps(about).replace(str(tmp_path), "FOLDER").replace(os.path.realpath(tmp_path), "FOLDER")
        text = re.sub(r"\.parquet \d+ \d+ ", ".parquet SIZE TIME ", text)
        asked.append(usual(question, json.loads(text)))
        return usual(question, about)

    monkeypatch.setattr(payer, "key_of", key_of)
    keys = {}
    with duckdb.connect(str(tmp_path / "people.db")) as con:
        con.register("rows", frame().astype({"region": object}))
        con.execute("CREATE TABLE people AS SELECT * FROM rows")
        con.execute(f"COPY people TO '{tmp_path / 'people.parquet'}'")
        for kind, data, options in (
            ("frame", frame(), {"version": "1"}),
            ("DuckDB", (con, "people"), {"version": "1"}),
            ("Parquet", str(tmp_path / "people.parquet"), {"version": "1"}),
            ("frame by its content", frame()[["age", "hours", "sex"]], {}),
        ):
            ledger = pdrisk.Ledger(tmp_path / f"{kind}.ledger", dataset="people", eps=10**6)
            dataset = pdrisk.Dataset(data, bounds=BOUNDS, ledger=ledger, **options)
            questions = {
                **FLUENT,
                **{f"SQL, {name}": (lambda d, text=text: d.sql(text, eps=1)) for name, text in SQL.items()},
            }
            for name, ask in questions.items():
                if kind == "frame by its content" and name not in list(FLUENT)[:10]:
                    continue
                asked.clear()
                ask(dataset)
                keys[f"{kind}: {name}"] = list(asked)
    return keys


def test_every_question_has_the_key_that_it_had(keys):
    if os.environ.get("PDRISK_WRITE_GOLDEN"):
        QUESTIONS.write_text(json.dumps(keys, indent=1) + "\n", encoding="utf-8")
    golden = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    assert len(golden) > 80 and keys.keys() == golden.keys()
    assert {name: key for name, key in keys.items() if key != golden[name]} == {}


def test_no_two_questions_have_the_same_key():
    """Else one would be answered by the other's noisy values."""
    golden = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    all_keys = [key for name, listed in golden.items() if "SQL" not in name for key in listed]
    assert len(set(all_keys)) == len(all_keys)
