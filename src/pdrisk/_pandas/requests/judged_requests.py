"""Requests of pandas users, judged into a `Query`: only names, dtypes and declarations are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pdrisk._core.pairs import CorrAmong
from pdrisk._core.universe import Days
from pdrisk._digits import rounded_up
from pdrisk._imported import later
from pdrisk._mechanisms import Mechanism
from pdrisk._model.answering import joined
from pdrisk._model.arguments import (
    asked_epsilon,
    checked_number,
    data_dependent,
    epsilon,
)
from pdrisk._model.asked_groups import Groups
from pdrisk._model.asked_margins import with_margins
from pdrisk._model.declared.missing_codes import check_keys_are_no_codes
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.groups.frame_keys import checked_keys
from pdrisk._model.groups.keys import MOST, are_observed, observed_of_several, take_categories, undeclared_keys
from pdrisk._model.groups.private_keys import are_private, check_delta_given, judged_groups_shown, share_of_values
from pdrisk._model.missing_arguments import all_given
from pdrisk._model.plain import float_of
from pdrisk._model.query import Line, Query, eps_for
from pdrisk._model.rowwise import Derived, RowwiseFilter, Within, caller_names, given_of, judged, with_values
from pdrisk._model.rowwise.derived import used
from pdrisk._model.rowwise.meaning import meaning_of
from pdrisk._pandas.requests.declared import codes_of, declared
from pdrisk._pandas.requests.options import REPLACE, Request
from pdrisk._pandas.requests.people_options import unit_of
from pdrisk.engines.base import Engine
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from pdrisk.engines.sql.servers import sql_table
else:
    sql_table = later("pdrisk.engines.sql.servers.sql_table")

MOST_EPS = 10_000  # of one assessment
NUDGE = 1.001  # at least by which an eps that is not enough is raised
MOST_TIMES = 1e9
MANY = 10**9  # records, of which any noise that depends on their number is known


def judged_query(
    frame: pd.DataFrame, asked: tuple[Line, ...], request: Request, eps: Fraction | None = None
) -> tuple[Query, Engine[Any]]:
    """Query of a request for noisy answers and the engine that reads it, or the error that says what is wrong.

    ``eps`` is what `check_given` returned, if it was called before.
    """
    if not isinstance(request.metric, str) or request.metric != "worst_case":
        raise data_dependent(request.metric)
    _check_all_rows(request)
    if len({isinstance(line.universe, Days) for line in asked}) > 1:
        raise ParameterError("dates and numbers do not fit into one column of values: ask for them apart.")
    lines, releases = joined(asked, str(request.mechanism))
    if eps is None:
        eps = asked_epsilon(request.eps, request.risk, request.prior, request.success)
    query, engine = _judged_at(frame, lines, releases, request, eps)
    if request.success is not None:
        eps = eps_for(request.success, [query])
        query, engine = _judged_at(frame, lines, releases, request, eps)
    _check_margins(query, request)
    for number in range(len(lines)):
        _check_noise(query, number, request.max_noise95, request.n_at_least, eps)
    return query, engine


def _check_margins(query: Query, request: Request) -> None:
    """Refuse an eps, or with margins its smallest part, that is too small for noise, and what is about one table."""
    if query.margins is not None and (request.curator or request.max_noise95 is not None):
        option = "curator" if request.curator else "max_noise95"
        raise ParameterError(f"{option}= is about single tables: leave it out with margins=, or ask without margins.")
    for number, share in enumerate(query.line_shares):
        # The ratio of grid and sensitivity hardly depends on the universe, so one from the data can wait.
        query.mechanism(number, eps=share if query.margins is None else share * query.least_part).check()


def _judged_at(
    frame: pd.DataFrame, lines: tuple[Line, ...], releases: tuple[int, ...], request: Request, eps: Fraction
) -> tuple[Query, Engine[Any]]:
    """The query that may spend this eps in all, and the engine that reads it."""
    share, number_of_releases = share_of_values(request.keys, eps), max(releases) + 1
    if number_of_releases > 1:
        share /= number_of_releases
    query, engine = judged_selection(frame, lines, request, share, releases)
    chosen = judged_groups_shown(request.keys, request.delta, request.least_group, request.risk, eps, query.unit)
    query = query if chosen is None else replace(query, selection=chosen)
    return with_margins(query, request.tables), engine


def judged_selection(
    frame: pd.DataFrame,
    lines: tuple[Line, ...],
    request: Request,
    share: Fraction | None = None,
    releases: tuple[int, ...] = (),
) -> tuple[Query, Engine[Any]]:
    """The judged filter, groups and people of lines, and what reads them; without a share, what is only looked at."""
    where = request.where
    groups = groups_of(frame, request.by, request.keys)
    if share is None:
        check_groups_are_known(groups)
    if groups is not None and groups.keys_from == "data" and request.people.joined_on:
        raise observed_of_several()
    unit = unit_of(frame, lines, groups, request)
    rows = None if where is None else judged(where, frame, caller_names, lambda column: declared(frame, column).keys)
    if any(isinstance(line.statistic, CorrAmong) for line in lines):
        rows = with_values(tuple(dict.fromkeys(_columns_of(lines))), frame, rows)
    reads: tuple[Hashable, ...] = tuple(_read(frame, lines, rows, groups))
    if unit.waves is not None:
        reads = (*reads, *unit.waves.columns)
    missing = codes_of(frame, list(dict.fromkeys((*reads, *unit.person))))
    filters = [condition for condition in (rows, *(line.indicator for line in lines)) if condition is not None]
    filters += () if unit.waves is None else unit.waves.conditions
    for condition in filters:
        condition.check_codes(missing)
    unknown = any(condition.canonical is None for condition in filters)
    canonical = None if unknown else "".join(str(condition.canonical) for condition in filters)
    if canonical is not None:
        conditions = (line.indicator.rule for line in lines if line.indicator is not None)
        canonical += "".join(meaning_of(rule, as_value=True) for rule in conditions if rule is not None)
        canonical += "" if unit.waves is None else unit.waves.canonical
    stored, derived = frame, tuple[Derived, ...]()
    if isinstance(where, Within):
        derived, reads = used(where.derived, reads)
        if derived and canonical is not None:
            canonical = repr((canonical, [column.canonical for column in derived]))
        stored = where.stored
    shares = () if share is None else (share,) * (max(releases, default=len(lines) - 1) + 1)
    reads = (*reads, *(column for column in request.people.joined_on if column not in reads))
    query = Query(lines, shares, rows, groups, missing, reads, derived, said=canonical, releases=releases, unit=unit)
    return query, request.opened(query, frame, stored, given_of(where, frame), request.people.secret)


def _read(
    frame: pd.DataFrame, lines: tuple[Line, ...], rows: RowwiseFilter | None, groups: Groups | None
) -> Iterator[Hashable]:
    """The columns that are read; a callable may read any."""
    yield from _columns_of(lines)
    for line in lines:
        yield from () if line.indicator is None else line.indicator.columns
    yield from () if groups is None else groups.columns
    if rows is not None:
        yield from frame.columns if rows.asks_a_function else rows.columns


def _columns_of(lines: Iterable[Line]) -> Iterator[Hashable]:
    """The columns that statistics are about."""
    for line in lines:
        if line.column is not None and line.indicator is None:
            yield line.column
        if line.other is not None:
            yield line.other


def check_groups_are_known(groups: Groups | None) -> None:
    """Refuse private keys for exact numbers, which do not choose groups."""
    if groups is not None and groups.is_private:
        raise ParameterError(
            'keys="private" chooses the groups of noisy answers, and these are exact: list keys, or pass '
            'keys="observed".'
        )


def check_rows_in_python(engine: Engine[Any], asked: str) -> None:
    """Refuse a result for each row if the rows stay in a database."""
    if isinstance(engine, sql_table.TableEngine):
        raise ParameterError(
            f"{asked} looks at single rows, which stay in the database: ask assess(), which has the same risks of the "
            "answer, or make a Dataset of a frame of these rows."
        )


def eps_values(eps: object) -> list[Fraction]:
    """One or several privacy losses, as `epsilon` reads each."""
    return [epsilon(number) for number in listed_numbers("eps", [None] if eps is None else eps)]


def listed_numbers(name: str, given: object) -> list[object]:
    """One number or several, as a list; none for None."""
    if given is None:
        return []
    several = isinstance(given, list | tuple | pd.Series) or (isinstance(given, np.ndarray) and given.ndim > 0)
    listed = list(islice(given, MOST_EPS + 1)) if several and isinstance(given, Iterable) else [given]
    if not listed:
        raise ParameterError(f"{name} must be a number or a list with at least one.")
    if len(listed) > MOST_EPS:
        raise ParameterError(f"{name} lists more than {MOST_EPS:,} numbers: list fewer.")
    return listed


def _check_all_rows(request: Request) -> None:
    """Refuse replaced records together with a filter or groups, between which they could move."""
    if request.neighbours != REPLACE:
        return
    where = request.where
    chosen = where is not None and not (isinstance(where, Within) and where.where is None and where.kept is None)
    if chosen or request.by is not None:
        raise ParameterError(
            f'neighbours="replace-one" is about all rows: with {"where" if chosen else "by"}= a replaced record could '
            "move in or out, and the number of rows would reveal that. Leave one of them out."
        )


def _check_noise(query: Query, at: int, most: object, n_at_least: object, eps: Fraction) -> None:
    """Refuse noise wider than the caller wants, as far as public facts tell; ``eps`` is the total."""
    line = query.lines[at]
    number = checked_number(n_at_least)
    if most is None and number is not None and line.mechanism != "two_stage":
        raise ParameterError('n_at_least= is for max_noise95=, or for mechanism="two_stage": pass one of them as well.')
    if most is None:
        return
    limit = float_of("max_noise95", most)
    if not 0 < limit < math.inf:
        raise ParameterError(f"max_noise95 must be above 0 and finite, but is {limit:g}.")
    mechanism = query.mechanism(at)
    half = mechanism.widest_noise95(number)
    if half is None or line.universe is None:
        what, name, add = "the records", "noise95", ""
        if mechanism.rank95 is not None:
            what, name, add = "the records around its rank", "rank95", ', or ask with mechanism="laplace"'
        elif mechanism.widest_noise95(MANY) is not None:
            what, add = "how many records there are", ", or add n_at_least=, if you know so many rows for sure"
        raise ParameterError(
            f"max_noise95= cannot judge {line.name} beforehand: its noise depends on {what}. Leave it out and look at "
            f"{name} of the answer{add}."
        )
    if half > limit:
        raise ParameterError(
            f"the 95 % noise of {line.name} may reach ±{half:.6g}, more than max_noise95={limit:g}: nothing was asked. "
            + _enough(mechanism, number, limit, eps)
        )


def _enough(mechanism: Mechanism, n: int | None, limit: float, eps: Fraction) -> str:
    """Which eps of the whole question brings the noise down to a limit, if one does; that of a std falls slowly."""
    times = 1.0
    while (reach := replace(mechanism, eps=mechanism.eps * Fraction(times)).widest_noise95(n) or 0.0) > limit:
        times *= NUDGE * reach / limit
        if times > MOST_TIMES:
            return "Allow more noise: hardly any eps would do."
    return f"Some eps={rounded_up(float(eps) * times, 3)} for the whole question would do."


def check_given(frame: pd.DataFrame, request: Request) -> Fraction:
    """Eps of a request; one without it, or with groups without keys, is refused."""
    checks: list[Callable[[], object]] = [
        partial(asked_epsilon, request.eps, request.risk, request.prior, request.success),
        partial(check_delta_given, request.keys, request.delta),
    ]
    if request.by is not None and request.keys is None:
        checks.append(partial(_declared_keys, frame, _grouped_by(frame, request.by)))
    eps: Fraction = all_given(*checks)[0]
    return eps


def groups_of(frame: pd.DataFrame, by: object, keys: object) -> Groups | None:
    """The groups of a request with their keys, as they are listed or declared; None without ``by``."""
    for column in islice(keys, MOST) if isinstance(keys, Mapping) else ():  # a declaration: not all need be groups
        check_column(frame, column)
    if by is None:
        if keys is not None and not isinstance(keys, Mapping):
            raise ParameterError("keys= lists the groups of by=, which is missing: pass by= as well.")
        return None
    columns = _grouped_by(frame, by)
    if isinstance(keys, Mapping):
        given = {column: keys[column] for column in columns if column in keys}
        others = tuple(column for column in columns if column not in given)
        keys = {**given, **_declared_keys(frame, others)} if given else None
    if are_observed(keys):
        return Groups(columns, None, "data")
    if are_private(keys):
        return Groups(columns, None, "private")
    if keys is None:
        return Groups(columns, checked_keys(frame, columns, _declared_keys(frame, columns)), "declared")
    listed = checked_keys(frame, columns, keys)
    check_keys_are_no_codes(frame, columns, listed, codes_of(frame, columns))
    return Groups(columns, listed, "categories" if take_categories(keys) else "given")


def _grouped_by(frame: pd.DataFrame, by: object) -> tuple[Hashable, ...]:
    """The group columns."""
    columns = tuple(islice(by, len(frame.columns) + 1)) if isinstance(by, list) else (by,)
    for column in columns:
        if isinstance(column, pd.Grouper):
            raise ColumnTypeError(
                "by= takes columns, no Grouper: make the groups a column before, as in "
                'df.assign(month=df["day"].dt.to_period("M").astype(str)), and list its keys.'
            )
        check_column(frame, column)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("by must be a column, or a list of different columns.")
    return columns


def _declared_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> dict[Hashable, tuple[Hashable, ...]]:
    """The declared keys of each column."""
    known = {column: declared(frame, column).keys for column in columns}
    if missing := [column for column, values in known.items() if values is None]:
        listed = all(isinstance(frame[column].dtype, pd.CategoricalDtype) for column in missing)
        raise undeclared_keys(
            f"by={', '.join(map(str, missing))}",
            "keys=[...]" + ' (or keys="categories", if they are a public code book)' * listed,
            f"df.dprisk.declare(keys={{{missing[0]!r}: [...]}}) or a pandera schema (isin, or its categories)",
        )
    return {column: values for column, values in known.items() if values is not None}
