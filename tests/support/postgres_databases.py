"""Databases on the server that tests of the ledger use, each made for one test."""

import gc
import os
import secrets
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

SERVER = os.environ.get("PDRISK_TEST_POSTGRES", "")  # of somebody who may make databases and roles
needs_server = pytest.mark.skipif(not SERVER, reason="no PostgreSQL server: start one by .ci/postgres pytest")


@contextmanager
def connected(url):
    """A connection of its own, beside the ledger's."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def run(url, *statements):
    """The rows of the last one."""
    with connected(url) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def database(options=""):
    """The URL of a new one."""
    name = f"pdrisk_test_{secrets.token_hex(6)}"
    run(SERVER, f"CREATE DATABASE {name} {options}")
    try:
        yield SERVER.rpartition("/")[0] + "/" + name
    finally:
        run(SERVER, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def role(url, settings=""):
    """The URL of the same database for a new role without rights, and the name of the role."""
    name, password = f"pdrisk_test_{secrets.token_hex(6)}", secrets.token_hex(8)
    run(
        url, f"CREATE ROLE {name} LOGIN PASSWORD '{password}'", *([f"ALTER ROLE {name} {settings}"] if settings else ())
    )
    parts = urlsplit(url)
    try:
        yield parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}").geturl(), name
    finally:
        run(url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def connections(url):
    """How many of ledgers there are to this database, after a while for the server to see them end."""
    gc.collect()  # an error that was caught may hold on to what it passed
    for _ in range(100):
        found = run(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pdrisk' AND datname = "
                    "current_database()")[0][0]  # fmt: skip
        if found <= 1:
            break
        time.sleep(0.05)
    return found
