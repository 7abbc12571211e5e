"""A filter decides every record on a PostgreSQL server as it decides it on a frame, and no record makes it fail."""

import random
import re

import pandas as pd
import pytest

from pdrisk._model.rowwise import judged
from pdrisk._tables.postgres_table import PostgresTable
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.servers.postgres_engine import asked, reading
from pdrisk.errors import ParameterError
from postgres_databases import connected, database, needs_server
from test_rowwise_in_sql import (
    BEHIND,
    CONSTANTS,
    EDGES,
    LEVELS,
    MOMENTS,
    ORDERS,
    asked_about,
    condition,
    in_sql,
    on_frame,
    told,
)

pytestmark = needs_server
TYPES = {
    "TINYINT": "smallint", "BIGINT": "bigint", "DOUBLE": "double precision", "FLOAT": "real", "VARCHAR": "text",
    "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamptz",
}  # fmt: skip
OWN = {
    name: (TYPES.get(sql, "grade"), values) for name, (sql, values) in EDGES.items() if name not in ("large", "fine")
}


@pytest.fixture(scope="module")
def people():
    """Rows of edge values: the connection, the table, and a frame with the dtypes that stand for its types."""
    draw = random.Random(5)
    rows = [
        [each[at % len(each)] if at < len(each) else draw.choice(each) for _, each in OWN.values()] for at in range(400)
    ]
    with database() as url, connected(url) as connection:
        connection.execute("CREATE TYPE grade AS ENUM ('low', 'middle', 'high')")
        columns = ", ".join(f"{name} {sql}" for name, (sql, _) in OWN.items())
        connection.execute(f"CREATE TABLE people ({columns}, place integer)")
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * (len(OWN) + 1))
            cursor.executemany(f"INSERT INTO people VALUES ({marks})", [[*row, at] for at, row in enumerate(rows)])
        table = PostgresTable(connection, "people").table()
        values = dict(zip(OWN, zip(*rows, strict=True), strict=True))
        yield (
            connection,
            table,
            pd.DataFrame({name: pd.Series(list(values[name]), dtype=table.columns[name].dtype) for name in OWN}),
        )


@pytest.fixture
def wrong(people):
    """What the server decides otherwise than a frame, in words; empty where it does not."""
    connection, table, frame = people

    def found(where):
        rule = judged(where, frame.iloc[:0], lambda: MOMENTS, LEVELS.get).rule
        rows = RowSQL(table.columns, {}, (), table.dialect)
        with reading(connection) as cursor:
            answers = asked(cursor, f"SELECT {asked_about(rule, rows)} FROM {table.source} ORDER BY place")
        return told(where, in_sql(answers), on_frame(rule, frame), frame)

    return found


COLUMNS = [name for name in CONSTANTS if name in OWN]
TIMES = {"day", "at", "zoned"}


@pytest.mark.parametrize("column", COLUMNS)
def test_constants(wrong, column):
    for constant in CONSTANTS[column]:
        for order in ORDERS[: 4 if column in TIMES else 6]:
            assert not wrong(f"{column} {order} {constant!r}")
            assert not wrong(f"not ({constant!r} {order} {column})")
    assert not wrong(f"{column}.isna()")


def test_functions(wrong):
    assert not "".join(wrong(text) for where in BEHIND for text in (where, f"not ({where})"))


@pytest.mark.parametrize("column", sorted(TIMES))
def test_moments(wrong, column):
    for moment in MOMENTS:
        if (column == "zoned") is (moment == "elsewhere"):  # times with a zone are compared with each other
            for order in ORDERS:
                assert not wrong(f"{column} {order} @{moment}")


@pytest.mark.parametrize("one", COLUMNS)
def test_two_columns(wrong, one):
    for other in COLUMNS:
        for order in ORDERS:
            try:
                assert not wrong(f"{one} {order} {other}")
            except ParameterError:  # they are not of one kind, for frames as well
                continue


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 20))])
def test_random_trees(wrong, seed):
    draw, decisions = random.Random(seed), 0
    for _ in range(60):
        where = re.sub(r"\blarge\b", "big", condition(draw, 3))
        try:
            assert not wrong(where)
        except ParameterError:
            continue
        decisions += 1
    assert decisions > 10
