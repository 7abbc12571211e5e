"""Each function of the list decides a record by that record alone: whatever the others hold, and without failing."""

import itertools

import duckdb
import pytest

import pdrisk
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

COLUMNS = {
    "tiny TINYINT": ["-128", "127", "0", None],
    "big BIGINT": [f"{-(2**63)}", f"{2**63 - 1}", "0", None],
    "unsigned UBIGINT": [f"{2**64 - 1}", "0", "1", None],
    "huge HUGEINT": [f"{-(2**127)}", f"{2**127 - 1}", "3", None],
    "wide DECIMAL(38, 0)": ["9" * 38, "-" + "9" * 38, "1", None],
    "fine DECIMAL(38, 38)": ["0." + "9" * 38, "-0.5", "0", None],
    "single FLOAT": ["3e38", "nan", "-inf", "0.5"],
    "x DOUBLE": ["1.7e308", "-5e-324", "nan", "2.5"],
    "word VARCHAR": ["", "%_\\", "äö€😀", None],
    "code VARCHAR": ["(", "1e400", "-infinity", "a\0b"],
    "yes BOOLEAN": ["true", "false", None, "true"],
    "day DATE": ["0001-01-01", "9999-12-31", None, "2020-02-29"],
    "stamp TIMESTAMP": ["2020-02-29 12:00:00.123456", "0001-01-01", "9999-12-31 23:59:59", None],
}
BY_LETTER = {
    "n": ["x", "big", "tiny", "huge", "wide", "fine", "single", "unsigned", "3", "-0.5"],
    "t": ["word", "code", "'a'"],
    "b": ["yes"],
    "d": ["day", "stamp"],
    "c": ["'a%'", "'[a-z]'", "''"],
    "u": ["'year'", "'second'"],
    "p": ["INTERVAL 1 DAY", "INTERVAL '3 months'"],
    "v": ["(stamp - day)", "(stamp - TIMESTAMP '2020-01-01')"],
    "w": ["'hour'", "'day'"],
    "i": ["2", "-400"],
}
OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
MOST = 6  # calls of one function


@pytest.fixture(scope="module")
def con():
    """All records in one table, and each in a table of its own."""
    con = duckdb.connect()
    for table, rows in {"t": range(4), **{f"t{row}": [row] for row in range(4)}}.items():
        con.execute(f"CREATE TABLE {table} ({', '.join(COLUMNS)})")
        for row in rows:
            con.execute(
                f"INSERT INTO {table} VALUES ({', '.join('?' for _ in COLUMNS)})", [v[row] for v in COLUMNS.values()]
            )
    return con


def calls(name: str) -> list[tuple[str, str]]:
    """Ways to write a function with everything it takes, and the kind of what it gives."""
    found = []
    for form in FUNCTIONS[name]:
        letters = form.arguments.replace("n*", "n").replace("t*", "t")
        combinations = list(itertools.product(*(BY_LETTER[letter] for letter in letters)))
        for at in range(min(MOST, len(combinations))):
            arguments = combinations[7 * at % len(combinations)]
            if not name[0].isalpha() and len(arguments) == 2:
                text = f"({arguments[0]} {OPERATORS.get(name, name)} {arguments[1]})"
            elif name == "position":  # which has a syntax of its own
                text = f"position({arguments[1]} IN {arguments[0]})"
            else:
                text = f"({name} {arguments[0]})" if not name[0].isalpha() else f"{name}({', '.join(arguments)})"
            found.append((text, form.result))
    return found


def release(text: str, kind: str) -> str:
    if kind == NUMBER:
        return f"dp_sum({text}, lo := -1000, hi := 1000)"
    return {TRUTH: "COUNT(*) FILTER (WHERE {})", TEXT: "COUNT(nullif({}, 'a'))", TIME: "COUNT({})", DATE: "COUNT({})"}[
        kind
    ].format(text)


def understood(asked: list[str], con) -> list[str]:
    """Those that DuckDB has a function for; it refuses others by their types, before anything is read."""
    try:
        pdrisk.sql(f"SELECT {', '.join(asked)} FROM t WHERE false", con, eps=1e3)
    except pdrisk.ParameterError:
        return [] if len(asked) == 1 else [one for each in asked for one in understood([each], con)]
    return asked


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("names", [sorted(FUNCTIONS)[at::8] for at in range(8)], ids=lambda names: names[-1])
def test_every_record_by_itself(names, con, monkeypatch):
    without_noise(monkeypatch)
    asked = []
    for name in names:
        own = understood([release(text, kind) for text, kind in calls(name)], con)
        assert own, name
        asked += own
    query = f"SELECT {', '.join(asked)} FROM "
    together = pdrisk.sql(f"{query} t", con, eps=1e3).iloc[0].to_numpy(dtype=float)
    alone = [pdrisk.sql(f"{query} t{row}", con, eps=1e3).iloc[0].to_numpy(dtype=float) for row in range(4)]
    different = [text for text, one, other in zip(asked, together, sum(alone), strict=True) if abs(one - other) > 1e-3]
    assert different == []
