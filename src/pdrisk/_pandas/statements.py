"""Statements that a question would send to an engine of SQL, as text: without data, and without an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import pandas as pd

from pdrisk._answer.releasing import can_read_later, is_release
from pdrisk._core.foreign import own_errors
from pdrisk._model.arguments import checked_flag
from pdrisk._model.missing_arguments import all_given
from pdrisk._model.query import Query
from pdrisk._model.unit import People, Secret
from pdrisk._pandas.plans.plan_questions import FORMS, questions_asked
from pdrisk._pandas.requests.judged_requests import check_given, judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import DEFAULTS, Options, Request
from pdrisk.engines.sql.servers.schema_only import described
from pdrisk.engines.sql.servers.sql_table import SQLTable, TableEngine
from pdrisk.engines.sql.servers.warehouses import Warehouse
from pdrisk.errors import ParameterError

OF_ANSWERS: Final = ("ledger", "fresh")  # options that only an answer has
NEVER_RUN: Final = (
    "/* pdrisk for {}: text only, never run. A grammar has parsed such statements; nobody has shown that this engine "
    "finds the same integers as others. */\n"
)


@own_errors
def statements(
    question: Mapping[Any, Any] | str | Iterable[str],
    table: str,
    columns: Mapping[str, str],
    *,
    dialect: str,
    **options: Unpack[Options],
) -> list[str]:
    """SQL statements that a question would send to an engine, as text: no data are read, and nothing is spent.

    For ``"bigquery"``, ``"snowflake"`` and ``"trino"`` this is text only, never run: pdrisk reads no data there. A
    grammar parsed such statements, and their equivalents ran on DuckDB. But nobody has shown that those engines find
    the same integers. Each text begins with a comment that says so. For ``"duckdb"``, ``"postgres"`` and ``"spark"``
    the texts are those that pdrisk sends; for ``"spark"``, of data whose records it keeps where it reads them twice.

    Parameters
    ----------
    question : dict, str or list of str
        As `agg` takes it, ``{"distance": ["mean", "median"]}``, or as `plan` does: ``"mean(distance)"``,
        ``"quantile(0.9) of distance"``, ``"count()"``.
    table : str
        Name of the table, as in ``"survey.trips"``; each part is quoted as it stands. For Spark, the view that pdrisk
        makes of a DataFrame, whose columns are c0, c1, ...
    columns : dict from name to type
        Types as the engine writes them, such as ``{"distance": "FLOAT64", "region": "STRING"}``.
    dialect : {"bigquery", "snowflake", "trino", "duckdb", "postgres", "spark"}
        Engine in whose SQL the statements are written.
    **options
        As for every statistic, such as ``eps``, ``bounds``, ``where``, ``by``, ``keys``, ``person``, ``mechanism``.
        With ``curator=True`` the statements also read what only curators see, as they do under a ledger that keeps what
        answers meant.

    Returns
    -------
    list of str
        In the order in which they would be sent. What depends on the data is left out: means in a second statement are
        0, and of the statements that search for an order statistic in ever smaller intervals there is only the first.
        Listed keys are literals; on DuckDB, PostgreSQL and Spark they are parameters, ``$1`` or ``:listed_keys``. Of
        many whole numbers near one another DuckDB is sent the ends only. The secret that decides which rows of a person
        count is written as zeros.

    Raises
    ------
    ParameterError, UnknownColumnError, ColumnTypeError
        If the question cannot be asked of such a table; the text says what to write instead.

    Examples
    --------
    >>> import pdrisk
    >>> columns = {"distance": "FLOAT64", "region": "STRING"}
    >>> asked = {"eps": 1, "bounds": (0, 300), "where": "region == 'north'"}
    >>> (text,) = pdrisk.statements("mean(distance)", "survey.trips", columns, dialect="bigquery", **asked)
    >>> "never run" in text, "FROM `survey`.`trips` WHERE" in text
    (True, True)
    """
    for name in options:
        if name not in DEFAULTS or name in OF_ANSWERS:
            why = "which an answer has, and no text" if name in OF_ANSWERS else "which no statistic has"
            raise ParameterError(f"statements() got {name}=, {why}: leave it out.")
    known = described(dialect, table, columns)
    query, engine = asked_of(known, question, Request(**options))
    sent = engine.statements(query)
    if not isinstance(known.dialect, Warehouse):
        return sent
    texts = [NEVER_RUN.format(known.dialect.engine) + statement for statement in sent]
    if max(map(len, texts)) > known.dialect.most:
        raise ParameterError(
            f"a statement would have more than {known.dialect.most:,} characters, the most that {known.dialect.engine} "
            "takes: list fewer keys or statistics."
        )
    return texts


def asked_of(table: SQLTable, question: Any, request: Request) -> tuple[Query, TableEngine]:
    """Judged question of a table, and the engine that would read it; fails as `statements` does."""

    def opened(query: Query, header: pd.DataFrame, _: pd.DataFrame, given: Any, secret: Secret) -> TableEngine:
        return table.opened(query, header, given, secret)

    frame, request = table.header, replace(request, people=People(secret=lambda: bytes(32)), opened=opened)
    checked_flag("curator", request.curator)
    asked = list(questions_asked(question))
    if not asked:
        raise ParameterError(f"question asks nothing: pass one at least, such as {FORMS}.")
    of = partial(judged_lines, frame, request=request, joint=len(asked) > 1 or isinstance(question, Mapping))
    checks = (partial(of, column, (statistic,)) for column, statistic in asked)
    *lines, _ = all_given(*checks, partial(check_given, frame, request))
    query, engine = judged_query(frame, tuple(line for part in lines for line in part), request)
    assert isinstance(engine, TableEngine)
    if query.selection is not None:
        raise ParameterError(
            'keys="private" asks a second time, for the groups that noise has chosen: list the keys, or pass '
            'keys="observed".'
        )
    at_once = request.curator or (is_release(query) and not (engine.reads_later and can_read_later(query)))
    return query if at_once else replace(query, has_facts=False), engine
