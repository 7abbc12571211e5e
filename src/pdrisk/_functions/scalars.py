"""The Python functions behind the macros: they judge the constants, read a summary, and draw or assess."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from inspect import Parameter, Signature
from typing import Any, Final

import numpy as np

from pdrisk._answer.answers.facts import facts
from pdrisk._core.lattice import PlaceGrid
from pdrisk._core.risks.risk import METRICS, posterior
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._functions.columns import grid, summary_of
from pdrisk._functions.macros import MACROS, Macro
from pdrisk._guard import guarded
from pdrisk._ledger import innermost, warn_of_others
from pdrisk._mechanisms import Mechanism, calibrated, mechanism_for
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._model.arguments import (
    epsilon,
    statistic,
    universe,
)
from pdrisk.errors import ColumnTypeError, ParameterError, PolicyError

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


def judged(name: Column, eps: Column, lo: Column, hi: Column, parameter: Column, types: Column) -> Column:
    """A zero if the arguments of a call are valid; nothing in here comes from a record: see `Macro`."""
    import pyarrow as pa

    macro = MACRO[name[0].as_py()]
    if innermost() is not None:
        raise PolicyError(
            f"{macro.name} cannot charge a ledger, and the `with` block of one is open: ask with pdrisk.sql, which can."
        )
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
    if not macro.risk:
        warn_of_others()
    return pa.array(["0"] * len(name))


def grid_constant(name: Column, lo: Column, hi: Column) -> Column:
    """A constant of `PlaceGrid`, by its name; or of another grid the number of steps in one unit of the column."""
    import pyarrow as pa

    bounds = universe((lo[0].as_py(), hi[0].as_py()))
    kind = name[0].as_py()
    constant = getattr(PlaceGrid.of(bounds), kind) if kind in PlaceGrid.__slots__ else 1 / grid(kind, bounds)
    return pa.array([constant] * len(name))


@cache
def answering(macro: Macro) -> Callable[..., Column]:
    """Function that gives one noisy value, or one row of risks, for each group.

    DuckDB calls it with at most 2048 groups at a time, perhaps from several threads.
    """

    def answers(*arguments: Column) -> Column:
        _, *constants = arguments[: -len(macro.reads)]
        columns = dict(zip(macro.reads, arguments[-len(macro.reads) :], strict=True))

        def work() -> Column:
            asked = request(macro.name, *(_constant(macro, column) for column in constants))
            summary = summary_of(columns, asked)
            return _risks(asked, summary) if macro.risk else _noisy(asked, summary)

        return guarded(work)

    # DuckDB counts parameters, and would count *arguments as one.
    names = [f"argument_{place}" for place in range(len(macro.scalar_types))]
    answers.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])  # type: ignore[attr-defined]
    return answers


@lru_cache(maxsize=256)
def request(name: str, eps: str | None, lo: float | None, hi: float | None, parameter: str | None) -> Mechanism:
    """Statistic, bounds and eps of a call.

    ``name``: of the macro.
    ``eps, parameter``: as written, None for NULL; ``parameter`` is q or ddof.
    """
    macro = MACRO[name]
    try:
        asked = statistic((macro.statistic, {macro.parameter: _number(parameter)} if macro.parameter else {}))
        loss = _epsilon(eps)
        bounds = _bounds(lo, hi) if asked.bounded else NO_BOUNDS
        mechanism = calibrated(mechanism_for(asked, "auto").name, asked, bounds, loss)
        mechanism.check()
    except ParameterError as error:
        refusal = type(error)(f"{name}: {error}")
    else:
        return mechanism
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
    """First word of a type, and whether it is a list; the words between may be labels, as of an ENUM."""
    return re.findall(r"\w+", text)[0] + "[]" * text.endswith("]")


def _constant(macro: Macro, column: Column) -> str | float | None:
    values = column.unique()
    if len(values) != 1:
        raise ParameterError(f"{macro.name}: {', '.join(macro.constants)} must be constants or bound parameters.")
    return values[0].as_py()


def _noisy(mechanism: Mechanism, summary: Summary) -> Column:
    import pyarrow as pa

    return pa.array(mechanism.value(drawn_once(mechanism, summary)).astype(np.float64))


def _risks(mechanism: Mechanism, summary: Summary) -> Column:
    import pyarrow as pa

    known = facts(mechanism, summary)
    eps, size = float(mechanism.eps), len(known.n)
    public: dict[str, Any] = {
        "eps": eps,
        "scale": mechanism.scale,
        "global_sensitivity": mechanism.statistic.global_sensitivity(mechanism.universe),
        "worst_case": float(posterior(eps)),
    }
    arrays = []
    for name, kind in RISK_FIELDS.items():
        values = [public[name]] * size if name in public else getattr(known, name).tolist()
        arrays.append(pa.array(values, type=pa.int64() if kind == "BIGINT" else pa.float64()))
    return pa.StructArray.from_arrays(arrays, names=list(RISK_FIELDS))
