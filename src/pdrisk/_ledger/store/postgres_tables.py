"""The tables of a ledger on a PostgreSQL server, what guards them, and whether anybody changed either."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import NamedTuple

from pdrisk._ledger.store.ledger_tables import TABLES
from pdrisk._ledger.store.store import Ask

SCHEMA = "pdrisk"
IDENTITY = "CREATE TABLE ledger (id TEXT PRIMARY KEY, version BIGINT NOT NULL)"
# Names are looked up in pg_catalog and nowhere else, whatever the caller's search path is.
SETTING = "search_path=pg_catalog, pg_temp"
FOLLOW = f"""
BEGIN
    IF NEW.seq IS DISTINCT FROM (SELECT coalesce(max(seq), 0) + 1 FROM {SCHEMA}.records) THEN
        RAISE EXCEPTION 'records follow each other';
    END IF;
    RETURN NEW;
END
"""
STAY = """
BEGIN
    RAISE EXCEPTION 'records stay as they are';
END
"""
# Not current_user, which SET ROLE and functions change. Sums of all together have no name.
OWN = """
BEGIN
    IF NEW.analyst IS DISTINCT FROM CAST(session_user AS text)
        AND NOT (TG_TABLE_NAME = 'spending' AND NEW.analyst = '') THEN
        RAISE EXCEPTION 'analysts write in their own name';
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.analyst IS DISTINCT FROM OLD.analyst THEN
        RAISE EXCEPTION 'analysts write in their own name';
    END IF;
    RETURN NEW;
END
"""


class Function(NamedTuple):
    """Function that triggers run, since a version of the tables."""

    version: int
    body: str


class Trigger(NamedTuple):
    """Trigger that runs a function, since a version of the tables; ``number`` is PostgreSQL's for its moment."""

    version: int
    table: str
    function: str
    moment: str
    each: str
    number: int


FUNCTIONS = {"follow": Function(1, FOLLOW), "stay": Function(1, STAY), "own": Function(3, OWN)}
TRIGGERS = {
    "records_follow": Trigger(1, "records", "follow", "BEFORE INSERT", "FOR EACH ROW", 7),
    "records_stay": Trigger(1, "records", "stay", "BEFORE UPDATE", "FOR EACH STATEMENT", 18),
    "records_remain": Trigger(1, "records", "stay", "BEFORE DELETE", "FOR EACH STATEMENT", 10),
    "records_not_emptied": Trigger(1, "records", "stay", "BEFORE TRUNCATE", "FOR EACH STATEMENT", 34),
    "records_own": Trigger(3, "records", "own", "BEFORE INSERT", "FOR EACH ROW", 7),
    "spending_own": Trigger(3, "spending", "own", "BEFORE INSERT OR UPDATE", "FOR EACH ROW", 23),
}
# Of the tables and what guards them here; a number is that of one version, in files and on servers.
VERSION = max([*TABLES, *(function.version for function in FUNCTIONS.values())])


def guards(version: int) -> Iterator[str]:
    """Functions and triggers that a version added to guard the records."""
    for name, function in FUNCTIONS.items():
        if function.version == version:
            yield (
                f"CREATE FUNCTION {SCHEMA}.{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SET {SETTING.replace('=', ' = ')} AS $${function.body}$$"
            )
    for name, trigger in TRIGGERS.items():
        if trigger.version == version:
            yield (
                f"CREATE TRIGGER {name} {trigger.moment} ON {trigger.table} {trigger.each} "
                f"EXECUTE FUNCTION {SCHEMA}.{trigger.function}()"
            )


def statements(version: int) -> Iterator[str]:
    """Statements that bring tables of a version to today's; version 0 is no tables."""
    if version == 0:
        yield IDENTITY
    for number in range(version + 1, VERSION + 1):
        yield from (statement.format(blob="BYTEA") for statement in TABLES.get(number, ()))
        yield from guards(number)


# Whether the schema is there, how much is in it, and whether that is a ledger.
FOUND = f"""
WITH own AS (SELECT oid FROM pg_namespace WHERE nspname = '{SCHEMA}')
SELECT (SELECT count(*) FROM own),
    (SELECT count(*) FROM pg_class JOIN own ON relnamespace = own.oid)
        + (SELECT count(*) FROM pg_proc JOIN own ON pronamespace = own.oid),
    (SELECT count(*) FROM own JOIN pg_class AS c ON c.relnamespace = own.oid JOIN pg_attribute AS a
        ON a.attrelid = c.oid AND a.attname IN ('id', 'version') AND NOT a.attisdropped
        WHERE c.relname = 'ledger' AND c.relkind = 'r')
"""

# Plain facts of the catalog, which are written alike in all versions: no text that PostgreSQL makes of a definition.
# NOT NULL is a constraint (contype n) since version 18, and a fact of the column in all.
STRUCTURE = f"""
WITH space AS (SELECT oid FROM pg_namespace WHERE nspname = '{SCHEMA}'),
own AS (
    SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity
    FROM pg_class AS c JOIN space ON c.relnamespace = space.oid
)
SELECT 'table', CAST(relname AS text), concat_ws(' ', relkind, relpersistence, relrowsecurity,
    EXISTS (SELECT 1 FROM pg_inherits AS i WHERE own.oid IN (i.inhparent, i.inhrelid)))
FROM own WHERE relkind <> 'i'
UNION ALL
SELECT 'column', own.relname, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '' OR a.attcollation <> t.typcollation)
FROM own JOIN pg_attribute AS a ON a.attrelid = own.oid JOIN pg_type AS t ON t.oid = a.atttypid
WHERE own.relkind <> 'i' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'index', own.relname, concat_ws(' ', t.relname, i.indisunique, i.indisprimary,
    i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL,
    (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = own.oid))
FROM own JOIN pg_index AS i ON i.indexrelid = own.oid JOIN pg_class AS t ON t.oid = i.indrelid
UNION ALL
SELECT 'constraint', own.relname, concat_ws(' ', conname, contype, convalidated, condeferrable)
FROM own JOIN pg_constraint ON conrelid = own.oid WHERE contype <> 'n'
UNION ALL
SELECT 'trigger', own.relname, concat_ws(' ', g.tgname, n.nspname, p.proname, g.tgtype, g.tgenabled, g.tgnargs,
    g.tgqual IS NULL AND CAST(g.tgattr AS text) = '' AND g.tgconstraint = 0)
FROM own JOIN pg_trigger AS g ON g.tgrelid = own.oid JOIN pg_proc AS p ON p.oid = g.tgfoid
JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE NOT g.tgisinternal
UNION ALL
SELECT 'function', p.proname, concat_ws(' ', l.lanname, p.prokind, p.prosecdef, p.pronargs,
    format_type(p.prorettype, NULL), array_to_string(p.proconfig, ';'), p.prosrc)
FROM pg_proc AS p JOIN space ON p.pronamespace = space.oid JOIN pg_language AS l ON l.oid = p.prolang
UNION ALL
SELECT 'operator', oprname, '' FROM pg_operator JOIN space ON oprnamespace = space.oid
UNION ALL
SELECT 'rule', own.relname, rulename FROM own JOIN pg_rewrite ON ev_class = own.oid
UNION ALL
SELECT 'policy', own.relname, polname FROM own JOIN pg_policy ON polrelid = own.oid
"""


@cache
def expected() -> list[tuple[str, str, str]]:
    """The answer to `STRUCTURE` if nobody changed anything.

    SQLite reads the same statements and says which columns and keys they make.
    """
    structure = []
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.execute(IDENTITY)
        for added in TABLES.values():
            for statement in added:
                fresh.execute(statement.format(blob="BYTEA"))
        for (table,) in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            keys = {}
            structure.append(("table", table, "r p f f"))
            for _, name, kind, full, _, key in fresh.execute(f"PRAGMA table_info({table})").fetchall():
                structure.append(("column", table, f"{name} {kind.lower()} {'t' if full or key else 'f'} f"))
                if key:
                    keys[key] = name
            columns = ",".join(keys[key] for key in sorted(keys))
            structure.append(("index", f"{table}_pkey", f"{table} t t t {columns}"))
            structure.append(("constraint", table, f"{table}_pkey p t f"))
            for _, name, unique, origin, _ in fresh.execute(f"PRAGMA index_list({table})").fetchall():
                if origin == "c":
                    columns = ",".join(row[2] for row in fresh.execute(f"PRAGMA index_info({name})").fetchall())
                    structure.append(("index", name, f"{table} {'t' if unique else 'f'} f t {columns}"))
    for name, trigger in TRIGGERS.items():
        structure.append(("trigger", trigger.table, f"{name} {SCHEMA} {trigger.function} {trigger.number} O 0 t"))
    for name, function in FUNCTIONS.items():
        structure.append(("function", name, f"plpgsql f f 0 trigger {SETTING} {function.body}"))
    return sorted(structure)


def changed(ask: Ask) -> bool:
    """Whether somebody changed the tables or their guards."""
    return sorted(ask(STRUCTURE)) != expected()
