"""``pdrisk.sql``: private answers from ordinary SELECTs.

text ─> parse ─> relations ─> judge ──> SummaryPlan ──> engines/sql ──> Summary ──> mechanism ─┐
                 (FROM, row-wise)  └──> Query: what each release is, and costs                ├─> DataFrame
                                   └──> SELECT list, HAVING, ORDER BY, LIMIT on noisy values ─┘
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from pdrisk._answer.releasing import Asker, check_affordable, released
from pdrisk._core.foreign import own_errors
from pdrisk._guard import guarded
from pdrisk._ledger import Identity, Ledger, ledger_for
from pdrisk._model.arguments import asked_epsilon, checked_flag, checked_mechanism, epsilon
from pdrisk._model.declared.aliases import Bounds, Eps, Keys
from pdrisk._model.groups.private_keys import are_private, check_delta_given
from pdrisk._model.missing_arguments import all_given
from pdrisk._model.query import eps_for
from pdrisk._pandas.requests.objects import advising
from pdrisk._sql.dataset.dataset_tables import check_one_or_other, public_tables
from pdrisk._sql.noisy.layers import Layered
from pdrisk._sql.noisy.weighted_means import no_weights
from pdrisk._sql.select.judge import judged, layers_of, tell
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.select.select_people import PeopleAsked, check_units
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Select
from pdrisk._sql.tables.clients import connected
from pdrisk._sql.tables.declared_links import checked_links
from pdrisk._sql.tables.server_sources import of_connection
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.no_select import too_deep
from pdrisk._sql.text.scalars import Scalars
from pdrisk._sql.together.created import destination_of, without_create
from pdrisk._sql.together.merged_answers import is_made_of_several, of_nobody
from pdrisk._sql.together.nobodys_query import rows_of_nobody
from pdrisk._sql.together.noisy_table import answer_table
from pdrisk._sql.together.preview import checked_size, previewed, without_explain
from pdrisk._sql.together.repeated_questions import planned_once, text_of_question
from pdrisk._sql.together.selected import warn_of_equality, warn_of_nobodys_groups, warn_of_selected
from pdrisk._sql.together.several import Share
from pdrisk.errors import ColumnTypeError, ParameterError, QueryFailedError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


NOT_IN_SQL: Final = {
    "where": "write WHERE into the query",
    "by": "write GROUP BY into the query",
    "metric": "an eps from the data is not for releases",
    "neighbours": 'ask df.dprisk for sums and means by neighbours="replace-one"',
}  # which take text, as tables do


@own_errors
def sql(
    query: str,
    con: DuckDBPyConnection | None = None,
    *,
    eps: Eps | None = None,
    success: float | None = None,
    bounds: Bounds | None = None,
    keys: Keys | None = None,
    delta: float | None = None,
    least_group: int | None = None,
    schema: object = None,
    person: Any = None,
    per_person: Any = None,
    rows: Any = None,
    groups: int | None = None,
    unit: str | None = None,
    constant: Any = None,
    unit_label: str | None = None,
    public: Any = None,
    links: Any = None,
    ledger: Ledger | None = None,
    fresh: bool = False,
    params: Sequence[object] | Mapping[str, object] | None = None,
    mechanism: str = "auto",
    interval: bool = False,
    clip: str | None = None,
    curator: bool = False,
    risk_columns: bool = False,
    measured: bool = False,
    explain: bool = False,
    n: int | None = None,
    tables: Mapping[str, Any] | None = None,
    **frames: Any,
) -> pd.DataFrame:
    """Noisy answers to a SELECT: every aggregate in it gets noise, everything else is computed from noisy values.

    Parameters
    ----------
    query : str, or text() of SQLAlchemy
        One SELECT over tables, views, frames or named Parquet files. Aggregates: ``COUNT``, ``SUM``, ``AVG``,
        ``MEDIAN``, ``QUANTILE_CONT``, ``MIN``, ``MAX``, ``VAR_*``, ``STDDEV_*``, ``CORR``, ``COVAR_*``, ``REGR_SLOPE``,
        or with arguments of their own ``dp_mean(x, eps := 1, lo := 1, hi := 675)`` and the like. Clauses: ``WHERE``,
        ``FILTER``, ``GROUP BY``, ``HAVING``, ``ORDER BY``, ``LIMIT``, row-wise subqueries, CTEs, and with ``person``
        joins of several tables. ``CREATE TABLE t AS SELECT ...`` also writes the answer to ``con``, of DuckDB.
    con : DuckDBPyConnection, psycopg.Connection, Engine or Connection of SQLAlchemy, or URL, optional
        Connection to the tables and views. SQLAlchemy reaches DuckDB by duckdb-engine and PostgreSQL by psycopg 3, and
        so does a URL such as ``postgresql://...``. The query is written in the dialect of that database. Without a
        connection and without frames: DuckDB's own default connection.
    eps : float, optional
        Privacy loss of the whole query, in nats. Aggregates without an eps of their own share evenly what the others
        leave. COUNT, SUM, AVG, VARIANCE and STDDEV of the same values come from one release, which has one share, and
        so do three or more quantiles.
    success : float, optional
        Instead of ``eps``, how often an attacker may be right about whether a person is in the data who gives even
        odds, in (1/2, 1), by the whole answer.
    bounds : (float, float) or dict, optional
        Range of the values, for every column or by column, unless it is declared; of dates two dates, also as text. An
        expression needs its own ``lo`` and ``hi``, unless its bounds follow from those of its columns by name.
    keys : list, dict, frame, "observed", "categories" or "private", optional
        The public list of groups, as for ``by`` of ``df.dprisk``; for several columns tuples, a frame whose rows are
        the keys that exist, or a dict of lists for all combinations. Columns of ``public`` tables need none.
        ``"private"`` shows the groups that enough people share, which is decided by chance, for half of ``eps`` and for
        ``delta``.
    delta : float, optional
        Needed with ``keys="private"``, and only there: the probability with which the list of groups may show that
        somebody is in the data. Choose far less than one over the number of people. Several lists, as of GROUPING SETS,
        share it evenly.
    least_group : int, optional
        With ``keys="private"``: groups of fewer people are never shown.
    schema : pandera DataFrameSchema or DataFrameModel, optional
        Declares bounds, keys and missing codes of the table's columns. ``bounds`` and ``keys`` replace the schema's,
        and must lie within them.
    person : column, list of columns, or dict by table, optional
        Column of people's ids, where a person may have several rows: all rows of a person are protected together.
        ``COUNT(DISTINCT person)`` is the number of people; other aggregates need one of the next four options.
    per_person : {"mean", "sum", "min", "max", "count", "any", "all", "one"} or dict by table, optional
        How the rows of a person become one number, in each group, before they are aggregated.
    rows : int or dict by table, optional
        Instead of ``per_person``: at most so many rows of a person count, in all groups together, or with ``groups`` in
        each group. The noise grows by this factor.
    groups : int, optional
        In how many groups a person counts. The noise grows by this factor. Not needed with ``rows``, or for columns of
        ``constant``.
    unit : "row", optional
        Protect each single row, not a person.
    constant : list of columns or dict by table, optional
        Columns with the same value in all rows of a person.
    unit_label : str, optional
        What `pdrisk.explain` calls one person, such as ``"household"``; without it the name of the column.
    public : list of names, or dict from name to frame or path, optional
        Tables without any person in them, such as lists of codes, for joins with tables of people. Their rows list the
        keys of groups, and what reads them alone is free and exact.
    links : dict from table to (columns, table, columns) or a list of such, optional
        Tables whose rows belong to the person of the row they lead to, as in ``{"lineitem": ("l_orderkey", "orders",
        "o_orderkey")}``; only the table at the end of the way needs ``person``. The columns that a link leads to must
        be ids of people, or unique by the database's catalog, or by your word, ``"unique"`` at the end.
    ledger : Ledger, optional
        The budget that pays the total before the data is read. Default: the ledger of the ``with pdrisk.Ledger(...)``
        block around the call, if there is one.
    fresh : bool, default False
        Pay and draw new answers even if the ledger remembers them.
    params : list or dict, optional
        Values for ``?`` or ``$name``; for other databases in the style of their drivers.
    mechanism : str, default "auto"
        Noise mechanism, as for every statistic of ``df.dprisk``.
    interval : bool, default False
        Get an interval also for MEDIAN, QUANTILE_CONT, MIN and MAX, as for ``df.dprisk``; `risk_columns` show it.
    clip : "private", optional
        Clip the values of every AVG and SUM at points that half of its eps finds, as for ``df.dprisk``.
        `pdrisk.explain` tells them, and `risk_columns` add ``<name>_clip_low`` and ``_clip_high``.
    curator : bool, default False
        Add the curator's numbers for each noisy value, ``<name>_n``, ``_local_sensitivity``, ``_two_worlds``,
        ``_many_worlds``, ``_identifiability`` and ``_clamped``, beside those of ``risk_columns``. They come from the
        data without noise; `pdrisk.public` removes them. Under a ledger only analysts whom its policy names may see
        them.
    risk_columns : bool, default False
        Add ``<name>_low``, ``_high`` (ends of the 95 % noise interval), ``_eps`` and ``_worst_case``; with
        ``keys="private"`` ``_delta`` and ``_success`` instead of ``_worst_case``. What is computed of noisy values has
        ``<name>_low`` and ``_high`` alone, missing where noisy values choose the rows of a sum.
    measured : bool, default False
        Add ``<name>_measured``, what was drawn before it was cut to the range of possible answers (``_measured_0``,
        ``_measured_1``, ... of statistics that are made of several numbers), and ``<name>_draw``, which tells its noise
        from that of others.
    explain : bool, default False
        Give a preview in place of the answer, as ``EXPLAIN SELECT ...`` does: a row for each noisy number, with eps,
        mechanism and expected noise. No record is read, and nothing is paid; a ledger records that it was asked for.
    n : int, optional
        With a preview, the number of records of each answer, which the noise of means, medians and the like needs.
    tables : dict from name to frame or path, optional
        As ``**frames``, for tables named like an option.
    **frames
        Tables under the names that the query uses: pandas, Polars or Arrow frames, paths of Parquet files, or lists of
        paths.

    Returns
    -------
    DataFrame
        In the order of the keys unless ORDER BY says otherwise. `pdrisk.explain` says what each release is and what it
        cost.

    Raises
    ------
    ParameterError
        If the query is not understood or not supported; the text says what to write instead. Nothing is read.
    QueryFailedError
        If reading the data fails; the eps stays paid.

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like(missing="nan")
    >>> answer = pdrisk.sql(
    ...     "SELECT sex, COUNT(*) AS people, SUM(hours) / COUNT(hours) AS hours FROM survey GROUP BY sex",
    ...     eps=3, bounds={"hours": (0, 18)}, keys=["female", "male"], survey=survey,
    ... )
    >>> answer.columns.tolist(), len(answer)
    (['sex', 'people', 'hours'], 2)
    """
    names, public_frames = public_tables(public)
    named = _tables(public_frames, _tables(tables, frames))
    check_one_or_other(named, names)
    query, new = without_create(query)
    with sources_of(con, named, schema, names) as sources:
        place = None if new is None else destination_of(con, sources)
        if new is not None:
            new.check(place, curator)
        answer = answered(
            query, sources, eps=eps, success=success, bounds=bounds, keys=keys, delta=delta,
            least_group=least_group, ledger=ledger, fresh=fresh, params=params, mechanism=mechanism, interval=interval,
            clip=clip, curator=curator, risk_columns=risk_columns, measured=measured, explain=explain, n=n,
            people=PeopleAsked(
                person, per_person, rows, groups, unit, constant, unit_label, links=checked_links(links, person)
            ),
        )  # fmt: skip
        if new is not None and not explain:
            new.write(place, answer)
        return answer


@contextmanager
def sources_of(con: Any, named: Mapping[str, Any], schema: object, public: frozenset[str]) -> Iterator[Sources]:
    """Sources that a call may read while its connection is open; fails as `connected` and `of_connection` do."""
    if (elsewhere := of_connection(con, named, schema, public)) is not None:
        with closing(elsewhere):
            yield elsewhere
        return
    with connected(con) as opened:
        yield Sources(opened, named, schema, public=public)


def answered(
    query: str,
    sources: Sources,
    *,
    eps: object,
    success: object,
    bounds: object,
    keys: object,
    delta: object,
    least_group: object,
    ledger: object,
    fresh: object,
    params: object,
    mechanism: object,
    interval: object,
    clip: object,
    curator: object,
    risk_columns: object,
    people: PeopleAsked,
    weights: Callable[[], Hashable] = no_weights,
    measured: object = False,
    explain: object = False,
    n: object = None,
    dataset: Identity | None = None,
) -> pd.DataFrame:
    """Noisy answer to a SELECT over these sources, which are closed afterwards; options as for `sql`."""
    try:
        checked_flag("risk_columns", risk_columns)
        checked_flag("measured", measured)
        bare, is_preview = without_explain(query)
        is_preview = checked_flag("explain", explain) or is_preview
        size = checked_size(n, explains=is_preview)
        sources.by_declarations = ledger_for(ledger) is not None
        frames = [frame for frame in sources.named.values() if isinstance(frame, pd.DataFrame)]
        name = checked_mechanism(mechanism)

        def judge(select: Select, group_keys: object, share: Share) -> Judged:
            is_part = are_private(keys) and not are_private(group_keys)  # without groups, among those that have some
            return judged(
                select, sources, eps=share.eps, bounds=bounds, keys=group_keys, delta=None if is_part else share.delta,
                least_group=None if is_part else least_group, mechanism=name, interval=interval, clip=clip,
                people=people, weights=weights, even=success is not None,
            )  # fmt: skip

        def nest(select: Select) -> Layered:
            return layers_of(select, sources, bounds, people)

        reader = sources.reader(bare, params)
        tell(sources, bounds, people)

        def read(scalars: Scalars) -> Select:
            select = reader(scalars)
            sources.selects = (select, *scalars.selects)
            return select

        if success is not None:
            if eps is not None:
                raise ParameterError(
                    "pass exactly one of eps= and success= (not both): the privacy loss of the query, or how often an "
                    "attacker may be right by it."
                )
            eps = asked_epsilon(None, None, None, success)
        arguments = bare, params, eps, success, bounds, keys, delta, least_group, name, interval, clip
        text = text_of_question(sources, people, weights, arguments)
        all_given(partial(_check_eps_given, keys, eps), partial(check_delta_given, keys, delta))
        try:
            with advising(*frames if sources.by_declarations else (), asked=bare if isinstance(bare, str) else ""):
                plan = planned_once(text, Share(eps, delta), keys, sources, read, nest, judge)
                if success is not None and plan.queries:
                    eps = eps_for(success, [question.query for question in plan.queries])
                    plan = planned_once(text, Share(eps, delta), keys, sources, read, nest, judge)
        except ParameterError:
            if (rows := rows_of_nobody(bare, params, sources, runs=not is_preview)) is None:
                raise
            return previewed((), ledger, size) if is_preview else of_nobody(rows)
        check_units([question.query.unit for question in plan.queries])
        warn_of_selected(plan.statements)
        warn_of_nobodys_groups(plan.statements)
        warn_of_equality(sources.selects, plan.statements)
        if is_preview:
            return previewed(plan.statements, ledger, size)
        last = plan.statements[-1]
        if is_made_of_several(last, risk_columns) and (risk_columns or measured or curator is True):
            raise ParameterError(
                "risk columns belong to single noisy values, and a row of this answer is made of several: leave out "
                "risk_columns, measured and curator, or ask for the inner SELECT alone."
            )

        def ask(question: Judged, is_last: bool) -> pd.DataFrame:
            shows, sees = (bool(risk_columns), curator) if is_last else (False, False)
            asker = Asker(ledger, fresh, sees, dataset, measured if is_last else False)
            return released(
                question.query,
                question.engine,
                lambda results, reading: guarded(
                    lambda: answer_table(question, results, reading, shows or results.shows_curator, not is_last)
                ),
                asker,
                keeps_facts=False,
            )

        if isinstance(last, Judged) and len(plan.statements) == 1:
            if are_private(keys):  # groups are counted before they are read
                sources.take_snapshot()
            return ask(last, True)
        sources.take_snapshot()
        check_affordable(
            [(question.query, question.engine.origin) for question in plan.queries],
            Asker(ledger, fresh, curator, dataset),
        )
        return plan.answered(ask)
    except QueryFailedError:
        workspace.forget()
        raise
    except RecursionError:
        pass
    finally:
        sources.close()
    raise too_deep()


def _check_eps_given(keys: object, eps: object) -> None:
    """Refuse private keys without an eps for the whole query: half of it chooses them."""
    if are_private(keys):
        epsilon(eps)


def _tables(tables: object, frames: dict[str, Any]) -> dict[str, Any]:
    """All frames and paths by name."""
    for name, advice in NOT_IN_SQL.items():
        if isinstance(frames.get(name), str):  # else it would be a path that the query does not read
            raise ParameterError(f"{name}= is an option of df.dprisk, not of pdrisk.sql: {advice}.")
    if tables is None:
        return frames
    if not isinstance(tables, Mapping):
        raise ColumnTypeError(f"tables is a dict from name to frame, not of type {type(tables).__name__}.")
    named = {lowered(name) for name in frames}  # in SQL names that differ in case are one
    for name in tables:
        if not isinstance(name, str):
            raise ColumnTypeError(f"tables has a name of type {type(name).__name__}: names of tables are text.")
        if lowered(name) in named:
            raise ParameterError(f"table {name} is given twice, in tables= and by keyword: give it once.")
    return {**frames, **tables}
