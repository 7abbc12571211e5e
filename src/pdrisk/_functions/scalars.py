"""The Python functions behind the macros: they judge the constants, read a summary, and draw or assess."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from inspect import Parameter, Signature
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from pdrisk._answer.releasing import drawn, facts
from pdrisk._core.risk import METRICS
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._functions.columns import grid, summary_of
from pdrisk._functions.macros import MACROS, Macro
from pdrisk._guard import guarded
from pdrisk._ledger import Ledger, Payment, Policy, innermost, paying
from pdrisk._mechanisms.laplace import check_scale
from pdrisk._model.query import Line, Query, epsilon, statistic, universe
from pdrisk.errors import ColumnTypeError, LedgerError, ParameterError

__all__ = ["RISK_FIELDS", "answering", "judged", "payer_of", "per_unit"]

RISK_FIELDS: Final = {
    "eps": "DOUBLE",
    "scale": "DOUBLE",
    "global_sensitivity": "DOUBLE",
    "local_sensitivity": "DOUBLE",
    "n": "BIGINT",
    **dict.fromkeys(METRICS, "DOUBLE"),
}
Column = Any  # a pyarrow ChunkedArray: DuckDB evaluates annotations, and pyarrow may not be there yet
NUMBERS: Final = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
}
MACRO: Final = {macro.name: macro for macro in MACROS}
NO_BOUNDS: Final = Universe(0.0, 1.0)  # counts have none; any will do
# Chunks may come from several threads, and OpenDP does not promise that they may share a measurement.
DRAWING = Lock()
PAYERS: Final[list[Ledger | None]] = [None]  # for as long as the process lives, as the functions that name them
AROUND: Final[WeakKeyDictionary[Ledger, int]] = WeakKeyDictionary()  # of those around queries, while they live
COUNT: Final = itertools.count(1)
PLANNED: Final[WeakValueDictionary[int, Ledger]] = WeakValueDictionary()


def judged(
    payer: Column, name: Column, eps: Column, lo: Column, hi: Column, parameter: Column, types: Column
) -> Column:
    """The payer's number if the arguments of a call are good. Nothing in here comes from a record; see `Macro`.

    Raises
    ------
    ParameterError
        With the name of the function, and what is wrong.
    """
    import pyarrow as pa

    macro = MACRO[name[0].as_py()]
    kinds = [_kind(text) for text in types[0].as_py()]
    for constant, kind in zip(macro.constants, kinds, strict=False):
        if kind not in NUMBERS | {"NULL"}:
            raise ColumnTypeError(f"{macro.name}: {constant} must be a number, but is of type {kind}.")
    if macro.bounded and kinds[-1] not in NUMBERS | {"BOOLEAN"}:
        raise ColumnTypeError(
            f"{macro.name} needs numbers or truth values, but this column is of type {kinds[-1]}: "
            "CAST it to DOUBLE if it holds numbers."
        )
    request(macro.name, *(column[0].as_py() for column in (eps, lo, hi, parameter)))
    number = payer[0].as_py() or -number_around(innermost())
    return pa.array([str(number)] * len(name))


def per_unit(name: Column, lo: Column, hi: Column) -> Column:
    """How many steps of a `grid` make one unit of the column: a power of two."""
    import pyarrow as pa

    steps = 1 / grid(name[0].as_py(), universe((lo[0].as_py(), hi[0].as_py())))
    return pa.array([steps] * len(name))


@cache
def answering(macro: Macro) -> Callable[..., Column]:
    """The function that gives one noisy value, or one row of risks, for each group.

    DuckDB calls it with at most 2048 groups at a time, perhaps from several threads.
    """

    def answers(*arguments: Column) -> Column:
        payer, *constants = arguments[: -len(macro.reads)]
        columns = dict(zip(macro.reads, arguments[-len(macro.reads) :], strict=True))

        def work() -> Column:
            asked = request(macro.name, *(_constant(macro, column) for column in constants))
            if macro.risk:
                return _risks(asked, summary_of(columns, asked.statistic, asked.universe))
            with _paid(macro, asked, payer) as payment:
                return _noisy(asked, summary_of(columns, asked.statistic, asked.universe), payment.policy)

        return guarded(work)

    # DuckDB counts parameters, and would count *arguments as one.
    names = [f"argument_{place}" for place in range(len(macro.scalar_types))]
    answers.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])  # type: ignore[attr-defined]
    return answers


@dataclass(frozen=True, slots=True)
class Request:
    """What the constants of a call ask for."""

    statistic: Statistic
    universe: Universe
    eps: Fraction


@lru_cache(maxsize=256)
def request(name: str, eps: str | None, lo: float | None, hi: float | None, parameter: str | None) -> Request:
    """What a call asks for.

    Parameters
    ----------
    name : str
        Of the macro.
    eps, parameter : str or None
        As written, None for NULL; ``parameter`` is q or ddof.
    lo, hi : float or None

    Raises
    ------
    ParameterError
        With the name of the function in front.
    """
    macro = MACRO[name]
    try:
        asked = statistic((macro.statistic, {macro.parameter: _number(parameter)} if macro.parameter else {}))
        loss = _epsilon(eps)
        bounds = _bounds(lo, hi) if asked.bounded else NO_BOUNDS
        check_scale(loss, asked.lattice(bounds))
        return Request(asked, bounds, loss)
    except ParameterError as error:
        refusal = type(error)(f"{name}: {error}")
    raise refusal


def _epsilon(text: str | None) -> Fraction:
    if text is None:
        raise ParameterError("eps is missing, the privacy loss to spend: write eps := 1.")
    return epsilon(Decimal(text))


def _bounds(lo: float | None, hi: float | None) -> Universe:
    if lo is None or hi is None:
        raise ParameterError("bounds are missing, the range the values can have: write lo := 1, hi := 675.")
    return universe((lo, hi))


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _kind(text: str) -> str:
    """The first word of a type, and whether it is a list: what stands between may be labels, as of an ENUM."""
    return re.findall(r"\w+", text)[0] + "[]" * text.endswith("]")


def _constant(macro: Macro, column: Column) -> str | float | None:
    values = column.unique()
    if len(values) != 1:
        raise ParameterError(f"{macro.name}: {', '.join(macro.constants)} must be constants or bound parameters.")
    return values[0].as_py()


def payer_of(ledger: Ledger | None) -> int:
    """A number for a ledger that a connection is registered with, by which macros name it."""
    if ledger is None:
        return 0
    with DRAWING:
        if ledger not in PAYERS:
            PAYERS.append(ledger)
        return PAYERS.index(ledger)


def number_around(ledger: Ledger | None) -> int:
    """A number for the ledger around a query when it is planned: context variables do not reach DuckDB's threads."""
    if ledger is None:
        return 0
    with DRAWING:
        if ledger not in AROUND:
            AROUND[ledger] = next(COUNT)
            PLANNED[AROUND[ledger]] = ledger
        return AROUND[ledger]


def payer_by(number: int) -> Ledger | None:
    """The ledger that pays: the one registered, else that around, else that around the query when it was planned.

    A statement may have been prepared elsewhere, so what is around when it runs goes before, as far as the thread sees.
    """
    if number > 0:
        return PAYERS[number]
    found = innermost() or PLANNED.get(-number)
    if number and found is None:
        raise LedgerError("the ledger around this query when it was prepared is gone: ask inside its block again.")
    return found


def _paid(macro: Macro, asked: Request, payer: Column) -> AbstractContextManager[Payment]:
    """Every group pays its own eps: nothing here tells whether groups are about different people."""
    line = Line(None, asked.statistic, asked.universe if asked.statistic.bounded else None, "given")
    query = Query((line,), (asked.eps,), source=macro.name, times=len(payer), is_opaque=True)
    return paying(query, payer_by(int(payer[0].as_py())))


def _noisy(asked: Request, summary: Summary, rules: Policy) -> Column:
    import pyarrow as pa

    line = Line(None, asked.statistic, asked.universe, None)
    with DRAWING:
        (values,) = drawn([line], [asked.eps], _Read((asked.universe,), (summary,)), rules)
    values = rules.rounded(asked.statistic.name, values)
    return pa.array(values, mask=np.isnan(values))


class _Read(NamedTuple):
    """What the columns of a call say."""

    universes: tuple[Universe, ...]
    summaries: tuple[Summary, ...]


def _risks(asked: Request, summary: Summary) -> Column:
    import pyarrow as pa

    line = Line(None, asked.statistic, asked.universe, None)
    known = facts(line, asked.universe, summary, asked.eps)
    fields = {name: known.risk[name] if name in METRICS else getattr(known, name) for name in RISK_FIELDS}
    columns = [np.broadcast_to(values, known.n.shape).tolist() for values in fields.values()]
    types = [pa.int64() if kind == "BIGINT" else pa.float64() for kind in RISK_FIELDS.values()]
    arrays = [pa.array(values, type=kind) for values, kind in zip(columns, types, strict=True)]
    return pa.StructArray.from_arrays(arrays, names=list(RISK_FIELDS))
