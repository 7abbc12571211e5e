"""A question in SQL that was judged before means what it would mean the first time, whatever happened in between."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
import pdrisk._sql
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.together import repeated_questions
from pdrisk._sql.together.repeated_questions import Remembered
from pdrisk.engines.base import Origin

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

ROWS = "FROM range(40) AS r(i)"
MEAN = {"eps": 1, "bounds": (0, 100)}
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SELECT avg(x) FROM t", MEAN),
    ("SELECT avg(x) FROM t", {"eps": 1.0, "bounds": (0, 100)}),
    ("SELECT avg(x) FROM t", {"eps": 1, "bounds": (0, 50)}),
    ("SELECT avg(x) FROM t", {"eps": 1, "bounds": {"x": (0, 100)}}),
    ("SELECT avg(x) FROM t", {"eps": 2, "bounds": (0, 100)}),
    ("SELECT avg(x) FROM t", {"eps": True, "bounds": (0, 100)}),
    ("SELECT avg(x) FROM t", {"success": 0.7, "bounds": (0, 100)}),
    ("SELECT avg(x) FROM t", MEAN | {"mechanism": "laplace"}),
    ("SELECT avg(x) FROM t", MEAN | {"clip": "private"}),
    ("SELECT avg(x) FROM t", MEAN | {"risk_columns": True}),
    ("SELECT avg(x) FROM t", MEAN | {"explain": True}),
    ("SELECT avg(x) FROM t", MEAN | {"person": "g", "per_person": "mean"}),
    ("SELECT avg(x) FROM t", MEAN | {"public": ["t"]}),
    ("SELECT avg(x) FROM t", {"eps": 1}),
    ("SELECT avg(x) FROM t", {"bounds": (0, 100)}),
    ("SELECT median(x) FROM t", MEAN),
    ("SELECT median(x) FROM t", MEAN | {"interval": True}),
    ("SELECT AVG(x) FROM main.t", MEAN),
    ("SELECT avg(x) FROM s.t", MEAN),
    ("SELECT avg(x) FROM v", MEAN),
    ("SELECT avg(x) FROM (SELECT * FROM t)", MEAN),
    ("WITH t AS (SELECT * FROM s.t) SELECT avg(x) FROM t", MEAN),
    ("SELECT sum(x) / count(*) AS a FROM t AS u WHERE u.x > ?", MEAN | {"params": [3]}),
    ("SELECT sum(x) / count(*) AS a FROM t AS u WHERE u.x > ?", MEAN | {"params": [30]}),
    ("SELECT sum(x) FROM t WHERE x // 2 > 3 AND x / 2 > 1", MEAN),
    ("SELECT g, avg(x) AS a, sqrt(avg(x)) FROM t GROUP BY g ORDER BY a", MEAN | {"keys": [0, 1, 2]}),
    ("SELECT g, avg(x) AS a, sqrt(avg(x)) FROM t GROUP BY g ORDER BY a", MEAN | {"keys": [0, 1, 3]}),
    ("SELECT g, avg(x) AS a, sqrt(avg(x)) FROM t GROUP BY g ORDER BY a", MEAN | {"keys": ["0", "1"]}),
    ("SELECT name, count(*) FROM t WHERE name <> 'A' GROUP BY name", {"eps": 1, "keys": ["a", "A", "b"]}),
    ("SELECT name, count(*) FROM t GROUP BY name", {"eps": 1, "keys": "categories"}),
    ("SELECT count(*) FROM t WHERE hour(TRY_CAST(z AS TIMESTAMP)) < 12", {"eps": 1}),
    ("SELECT avg(x) FROM t UNION ALL SELECT avg(x) FROM s.t", MEAN),
    ("SELECT avg(x) FROM t WHERE x < (SELECT avg(x) FROM s.t)", MEAN),
]
OFTEN = [0, 7, 22, 25]
MADE = [
    "i::DOUBLE AS x, i % 3 AS g, 'a' AS name",
    "i AS x, i % 3 AS g, CASE WHEN i > 9 THEN 'a' ELSE 'A' END AS name",
    "i::DOUBLE AS x, (i % 3)::VARCHAR AS g, 'b' AS name, now() AS z",
    "i::VARCHAR AS x, i % 3 AS g, 'b'::ENUM('a', 'b') AS name",
    "i::DOUBLE AS x, i % 3 AS g, 'b'::ENUM('a', 'b', 'c') AS name",
    "i % 3 AS g, i::FLOAT AS x, TIMESTAMPTZ '2020-01-01 03:00:00+00' AS z, 'a' AS name",
    "i % 3 AS g",
]
CHANGES = [
    *(f"CREATE OR REPLACE TABLE {name} AS SELECT {made} {ROWS}" for name in ("t", "s.t") for made in MADE),
    *(f"CREATE OR REPLACE TEMP TABLE t AS SELECT {made} {ROWS}" for made in MADE[:3]),
    f"CREATE OR REPLACE TABLE other.t AS SELECT {MADE[1]} {ROWS}",
    "CREATE OR REPLACE TABLE t (x DOUBLE, g INTEGER, name VARCHAR COLLATE NOCASE)",
    "CREATE OR REPLACE TABLE t (y DOUBLE, x DOUBLE AS (y + 1), g INTEGER)",
    "CREATE OR REPLACE TABLE t (x DOUBLE CHECK (x < 1000), g INTEGER, name VARCHAR)",
    "DROP TABLE IF EXISTS temp.t", "DROP TABLE temp.t", "DROP TABLE t", "DROP TABLE s.t", "DROP VIEW t",
    "CREATE VIEW t AS SELECT x / 2 AS x, g, name FROM s.t", "CREATE VIEW s.t AS SELECT * FROM main.t",
    "CREATE TEMP VIEW t AS SELECT * FROM memory.main.t", "CREATE OR REPLACE TEMP VIEW t AS SELECT x + 1 AS x FROM s.t",
    "DROP VIEW temp.t", "DROP VIEW IF EXISTS s.t", "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
    "CREATE OR REPLACE VIEW v AS SELECT x * 2 AS x FROM s.t",
    "ALTER TABLE t RENAME x TO w", "ALTER TABLE t ADD COLUMN extra INTEGER", "ALTER TABLE t RENAME TO old",
    "INSERT INTO t SELECT * FROM t", "DELETE FROM t WHERE x > 30", "UPDATE t SET x = NULL WHERE g = 1",
    "CREATE OR REPLACE MACRO avg(a) AS 3 * sum(a)", "CREATE OR REPLACE TEMP MACRO count(a) AS sum(a)", "DROP MACRO avg",
    "DROP MACRO IF EXISTS temp.count", "CREATE OR REPLACE MACRO s.sqrt(a) AS a", "DROP MACRO IF EXISTS s.sqrt",
    "SET search_path = 's'", "SET search_path = 's,main'", "RESET search_path", "USE other", "USE memory", "USE s",
    "ATTACH ':memory:' AS other", "DETACH other", "SET integer_division = true", "RESET integer_division",
    "SET default_order = 'desc'", "RESET default_order", "SET default_null_order = 'nulls_first'",
    "RESET default_null_order", "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'UTC'", "SET Calendar = 'buddhist'",
    "SET Calendar = 'gregorian'", "SET ieee_floating_point_ops = false", "RESET ieee_floating_point_ops",
    "SET default_collation = 'nocase'", "RESET default_collation", "SET GLOBAL default_collation = 'nocase'",
    "RESET GLOBAL default_collation", "SET regex_match_operator_semantics = 'full'", "BEGIN", "COMMIT", "ROLLBACK",
    "SET dialect_compatibility_mode = 'SPARK'", "RESET dialect_compatibility_mode",
]  # fmt: skip


def opened() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"CREATE SCHEMA s; CREATE TABLE t AS SELECT {MADE[0]} {ROWS}; CREATE TABLE s.t AS FROM t")
    con.execute("CREATE VIEW v AS SELECT * FROM t; ATTACH ':memory:' AS other; CREATE TABLE other.t AS FROM t")
    return con


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    repeated_questions._remembered.clear()


@pytest.fixture
def judged(monkeypatch) -> list[object]:
    """What the questions that are answered from now on consist of, beside the connection."""
    found: list[object] = []
    released = pdrisk._sql.released

    def kept(query, engine, shown, *rest, **options):
        cells = [cell.cell_contents for cell in shown.__closure__ or ()]
        (question,) = [each for each in cells if isinstance(each, Judged)]
        assert question.query is query
        assert question.engine is engine
        found.append(plain(question))
        return released(query, engine, shown, *rest, **options)

    monkeypatch.setattr(pdrisk._sql, "released", kept)
    return found


def plain(question: Judged) -> list[object]:
    """All of a question but what leads to its connection, and what says the same about nobody."""
    source, engine = question.relation.source, question.engine
    assert engine.table.fetch.args == (source.connection,)  # type: ignore[attr-defined]
    assert engine.table.rows == engine.plan.rows == source.rows
    assert (source.place is None) == (engine.origin.place is None)
    own = replace(question.relation, source=replace(source, connection=None, place=None))  # type: ignore[arg-type]
    table = replace(engine.table, fetch=None, origin=Origin())  # type: ignore[arg-type]
    engine = replace(engine, table=table, nobody=str)
    said = re.sub(" at 0x[0-9a-f]+", "", repr(replace(question, relation=own, engine=engine)))
    return [said, question.query, engine.plan]


CHOOSING = ("exponential", "exponential_interval", "clipped_sums")  # mechanisms that draw beside their noise


def outcome(ask: Callable[[], pd.DataFrame], judged: list[object]) -> tuple[object, ...]:
    judged.clear()
    try:
        answer = ask()
    except (pdrisk.errors.PdriskError, TypeError) as error:
        return type(error), str(error)
    values = answer.astype(object).where(answer.notna(), None).to_numpy().tolist()
    are_chosen = any(line.mechanism in CHOOSING for each in judged for line in each[1].lines)  # type: ignore[index]
    return None if are_chosen else values, list(answer.columns), list(map(str, answer.dtypes)), *judged


@pytest.fixture
def used(monkeypatch) -> list[Judged | None]:
    """What was made of remembered questions; None where something was not as before."""
    found: list[Judged | None] = []
    again = Remembered.again

    def noted(self: Remembered, sources: Sources) -> Judged | None:
        found.append(again(self, sources))
        return found[-1]

    monkeypatch.setattr(Remembered, "again", noted)
    return found


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happened_before(seed: int, noiseless, judged, used, monkeypatch) -> None:
    """Questions between changes of tables, names, macros and settings: each is what it is to a fresh process."""
    monkeypatch.setattr(repeated_questions, "LONG", 1 + 2 * (seed % 2))  # by which lists are told by a digest
    rng = np.random.default_rng(seed)
    known = repeated_questions._remembered
    connections: list[duckdb.DuckDBPyConnection] = []
    for step in range(36):
        if step % 6 == 0:  # what was done before may be in the way of all questions
            first = opened()
            connections = [first, first.cursor(), opened()]
        place = int(rng.choice(3, p=[0.6, 0.2, 0.2]))
        for change in rng.choice(CHANGES, rng.integers(3)):
            with suppress(duckdb.Error):
                connections[place].execute(change)
        for at in rng.choice(len(QUESTIONS), 3, replace=False) if rng.random() < 0.5 else OFTEN:
            query, options = QUESTIONS[at]
            ask = partial(pdrisk.sql, query, connections[place], **options)
            found, before = outcome(ask, judged), dict(known)
            known.clear()
            assert found == outcome(ask, judged), (place, query, options)
            known.update(before)
    assert len(used) - used.count(None) > 3
    assert used.count(None) > 3


def test_it_is_judged_once(judged, monkeypatch) -> None:
    con = opened()
    pdrisk.sql("SELECT avg(x) FROM t", con, **MEAN)
    monkeypatch.setattr(repeated_questions, "planned", None)
    pdrisk.sql("SELECT avg(x) FROM t", con, **MEAN)
    pdrisk.sql("SELECT avg(x) FROM t", opened(), **MEAN)
    assert judged[0] == judged[1] == judged[2]


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("SELECT avg(x) FROM v", {}),
    ("SELECT avg(x) FROM own", {}),
    ("SELECT avg(x) FROM (SELECT * FROM t)", {}),
    ("WITH t AS (SELECT * FROM s.t) SELECT avg(x) FROM t", {}),
    ("SELECT avg(x) FROM t WHERE x < (SELECT avg(x) FROM s.t)", {}),
    ("SELECT avg(x) FROM t UNION ALL SELECT avg(x) FROM s.t", {}),
    ("SELECT avg(x) FROM t", {"person": "g", "per_person": "mean"}),
    ("SELECT avg(x) FROM t", {"public": ["s.t"]}),
    ("SELECT avg(x) FROM t", {"unused": pd.DataFrame({"x": [1.0]})}),
    ("SELECT avg(x) FROM t", {"bounds": (0, np.float64(100))}),
    ("SELECT avg(x) FROM f", {"f": pd.DataFrame({"x": [1.0] * 40})}),
]


@pytest.mark.whole
@pytest.mark.parametrize(("query", "options"), OTHERS)
def test_what_more_decides_is_not_remembered(query: str, options: dict[str, Any]) -> None:
    con = opened()
    con.execute("CREATE TEMP TABLE own AS FROM t")
    pdrisk.sql(query, con, **(MEAN | options))
    assert not repeated_questions._remembered


def test_who_pays_is_not_remembered(book) -> None:
    con, ledger = opened(), book(eps=5)
    pdrisk.sql("SELECT avg(x) FROM t", con, **MEAN, ledger=ledger)
    assert not repeated_questions._remembered
    for own in (None, ledger):
        pdrisk.sql("SELECT avg(x) FROM t", con, **MEAN, ledger=own, fresh=True)
    assert ledger.remaining().spent == 2


def test_a_table_that_grew_is_read_by_its_size(judged) -> None:
    con = opened()
    for _ in range(2):
        pdrisk.sql("SELECT avg(x) FROM t", con, **MEAN)
        con.execute("INSERT INTO t FROM t")
    assert [each[2].rows for each in judged] == [40, 80]  # type: ignore[index]


def test_few_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(repeated_questions, "KEPT", 5)
    con = opened()
    for number in range(8):
        pdrisk.sql("SELECT count(*) FROM t", con, eps=1 + number / 1000)
    assert 0 < len(repeated_questions._remembered) <= 5


def test_few_letters_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(repeated_questions, "MOST_LETTERS", 4000)
    con, kept = opened(), []
    for keys in (range(1200), range(240), range(200), range(10), range(2000)):
        pdrisk.sql("SELECT g, avg(x) FROM t GROUP BY g", con, **MEAN, keys=list(keys))
        kept.append([len(text) for text, _ in repeated_questions._remembered])
        assert sum(kept[-1]) <= 4000
    assert list(map(len, kept)) == [0, 1, 1, 2, 2]


def test_listed_keys_are_those_of_the_call() -> None:
    """Of as many lists as there are calls, one of which the caller changes."""
    con, keys = opened(), list(range(400))
    for change in (lambda: None, keys.reverse, lambda: keys.append(-1), keys.sort, lambda: keys.remove(7)):
        change()
        answer = pdrisk.sql("SELECT g, count(x) AS n FROM t GROUP BY g", con, **MEAN, keys=keys)
        assert answer["g"].tolist() == keys


def test_lists_of_numbers_that_are_told_by_digests() -> None:
    """Each list is another: its type, the order, the last number, truth values, and numbers of more than 64 bits."""
    told = partial(
        repeated_questions.text_of_question,
        Sources(None, {}),
        repeated_questions.NOBODY_KNOWN,
        repeated_questions.no_weights,
    )
    keys = list(range(2000))
    lists: list[Any] = [
        keys, tuple(keys), keys[::-1], keys[1:], [*keys, -1], [*keys[:-1], 1998], [False, *keys[1:]],
        [*keys, 2**63], [*keys, 2**64], [*map(float, keys)], [*map(str, keys)],
    ]  # fmt: skip
    texts = [told([keys]) for keys in lists]
    assert len({text for text in texts if text is not None}) == len(lists) - texts.count(None)
    assert texts.count(None) == 2 and told([[*keys]]) == texts[0] and len(str(texts[0])) < 400


@pytest.mark.parametrize(("query", "options"), QUESTIONS[:1] + QUESTIONS[22:26])
def test_nothing_that_is_kept_leads_to_the_data(query: str, options: dict[str, Any]) -> None:
    """No connection, no frame, no function that holds one, and no number of rows."""
    pdrisk.sql(query, opened(), **options)
    waiting: list[object] = [*repeated_questions._remembered.values()]
    assert waiting
    met = set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray):
            assert one.tolist() == options["keys"]
            continue
        assert not isinstance(one, duckdb.DuckDBPyConnection | pd.DataFrame | pd.Series), one
        assert getattr(one, "rows", 0) in (0, 1, None) or not isinstance(one.rows, int), one  # type: ignore[attr-defined]
        met.add(id(one))
        if not isinstance(one, type | ModuleType):
            held = gc.get_referents(one)
            names = one.__globals__ if hasattr(one, "__globals__") else None
            waiting += [each for each in held if id(each) not in met and each is not names]
