"""Classical output rules for tables: least count, dominance and p %, as a verdict for each cell. Curator only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.checked import CheckedTable
from pdrisk._disclosure.classes import Classes, classes_of
from pdrisk._disclosure.measures import asked, somebody
from pdrisk._disclosure.sql_table import SQLKeys
from pdrisk._disclosure.tables import KeyRequest, KeyTable
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk.errors import ColumnTypeError, ParameterError

STATISTICS: Final = ("count", "sum", "mean", "min", "max")


@dataclass(frozen=True, slots=True)
class OutputRules:
    """Classical rules for tables; None switches a rule off.

    Attributes
    ----------
    least_count : int or None
        Fewer people than this in a cell fail; an empty cell passes.
    dominance : (n, k) or None
        A sum or mean fails of which the ``n`` largest contributions are more than the share ``k``.
    p_percent : float or None
        A sum or mean fails from which the second-largest contributor learns the largest within less than ``p_percent``
        percent: where all but the two largest together are less than that share of the largest. A minimum or maximum
        is somebody's contribution within 0 %: it fails unless ``least_count`` people, or 2, have it.
    """

    least_count: int | None = 10
    dominance: tuple[int, float] | None = (2, 0.9)
    p_percent: float | None = 10.0

    @classmethod
    def given(cls, rules: object) -> OutputRules:
        """Rules from ``True`` (the default rules), from a dict, or as they are.

        Raises
        ------
        ColumnTypeError, ParameterError
            If a rule is unknown, or its number can be seen to be wrong.
        """
        if isinstance(rules, cls):
            return rules
        if rules is True:
            return cls()
        if not isinstance(rules, Mapping):
            raise ColumnTypeError(
                'rules is True, for the default rules, or a dict, as in {"least_count": 10, "dominance": (2, 0.9), '
                '"p_percent": 10}; None switches a rule off.'
            )
        known = cls.__slots__
        for name in rules:
            if name not in known:
                meant = did_you_mean(name, known)
                raise ParameterError(f"unknown rule {name!r}; available: {', '.join(known)}.{meant}")
        checked = replace(cls(), **rules)
        checked._check()
        return checked

    @property
    def top(self) -> int:
        """Number of the largest contributions that the dominance rule looks at."""
        return 1 if self.dominance is None else self.dominance[0]

    def _check(self) -> None:
        least, pair = self.least_count, self.dominance
        p: Any = self.p_percent
        if least is not None and not (_is_whole(least) and least >= 1):
            raise ParameterError("least_count is a whole number of people, 1 or more; or None.")
        if pair is not None and not (
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and _is_whole(pair[0])
            and pair[0] >= 1
            and _is_share(pair[1])
        ):
            raise ParameterError(
                "dominance is a pair (n, k): n people, 1 or more, and a share k between 0 and 1; or None."
            )
        if p is not None and not (isinstance(p, int | float | np.number) and not isinstance(p, bool) and 0 < p <= 100):
            raise ParameterError("p_percent is a number of percent above 0, at most 100; or None.")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


@dataclass(frozen=True, slots=True)
class CellFacts:
    """Facts that rules need about the cells of a table: one entry for each cell.

    Attributes
    ----------
    people : ndarray of int64
    total, largest, top, rest : ndarray of float64
        Of the contributions of people: their sum, the largest, the sum of as many as the rule of dominance looks at,
        and of all but the two largest.
    negative : ndarray of bool
        Whether some contribution is below 0.
    same : ndarray of int64
        How many people have the value that is shown, where it is a minimum or maximum.
    """

    people: NDArray[np.int64]
    total: NDArray[np.float64]
    largest: NDArray[np.float64]
    top: NDArray[np.float64]
    rest: NDArray[np.float64]
    negative: NDArray[np.bool_]
    same: NDArray[np.int64]


def verdicts(cells: CellFacts, statistic: str, rules: OutputRules) -> dict[str, NDArray[np.bool_]]:
    """Cells that fail each rule, by its name, and ``negative``: cells to be reviewed.

    Hundepool et al. 2012, Statistical Disclosure Control, sections 4.2 and 4.3.

    ``statistic``: {"count", "sum", "mean", "min", "max"}
    """
    none = np.zeros(len(cells.people), dtype=bool)
    somebody = cells.people > 0
    failing = {"least_count": none, "dominance": none, "p_percent": none, "negative": none}
    if rules.least_count is not None:
        failing["least_count"] = somebody & (cells.people < rules.least_count)
    if statistic in ("sum", "mean"):
        failing["negative"] = cells.negative  # then shares of a sum say nothing of who dominates it
        judged = somebody & ~cells.negative & (cells.largest > 0)
        if rules.dominance is not None:
            failing["dominance"] = judged & (cells.top > rules.dominance[1] * cells.total)
        if rules.p_percent is not None:
            failing["p_percent"] = judged & (cells.rest < rules.p_percent / 100 * cells.largest)
    elif statistic in ("min", "max") and rules.p_percent is not None:
        failing["p_percent"] = somebody & (cells.same < (rules.least_count or 2))
    return failing


def crosstab_rules(
    table: KeyTable,
    index: Hashable,
    columns: Hashable,
    *,
    values: Hashable | None = None,
    statistic: object = "count",
    rules: object = True,
    person: object = None,
) -> CheckedTable:
    """The exact table of a statistic by two key columns, with a verdict for each cell.

    ``index, columns``: whose keys are its rows and its columns.
    ``values``: of numbers, for every statistic but a count; rows without one are left out.
    ``statistic``: {"count", "sum", "mean", "min", "max"}
    ``person``: whose contributions are added up within a cell; each row is a person unless given.
    """
    if not isinstance(statistic, str) or statistic not in STATISTICS:
        raise ParameterError(f"rules judge {', '.join(STATISTICS)}, not {statistic!r}.")
    if (values is None) != (statistic == "count"):
        raise ParameterError(
            f"{statistic} needs values=, a column of numbers."
            if values is None
            else "values= is for sum, mean, min or max: pass statistic= as well."
        )
    judged = OutputRules.given(rules)
    wanted = replace(asked([index, columns], None, person), weight=values)
    if isinstance(table, SQLKeys) and values is not None:
        side, read = table.cells(wanted, judged.top)
        classes = classes_of(side)
        somebody(classes.people())
        _check_finite(values, read["infinite"].to_numpy(dtype=bool))
        cells, shown = _of_cells(classes, read, statistic)
        return _checked(classes, cells, shown, statistic, judged, wanted)
    side = table.read(wanted)
    classes, numbers_of = classes_of(side), side.weights
    people = somebody(classes.people())
    if numbers_of is None:
        nothing = np.zeros(classes.size)
        cells = CellFacts(people, nothing, nothing, nothing, nothing, nothing > 0, people)
        return _checked(classes, cells, people, statistic, judged, wanted)
    _check_finite(values, np.isinf(numbers_of))
    cells, shown = _contributions(classes, numbers_of, statistic, judged)
    return _checked(classes, cells, shown, statistic, judged, wanted)


def _check_finite(column: Hashable | None, infinite: NDArray[np.bool_]) -> None:
    if infinite.any():
        raise ParameterError(f"column {column!r} holds infinities, of which there is no sum or share: leave them out.")


def _of_cells(classes: Classes, read: pd.DataFrame, statistic: str) -> tuple[CellFacts, NDArray[np.float64]]:
    """`_contributions` for cells that a database has read."""
    facts = read.set_index(classes.numbers[0]).reindex(range(classes.size), fill_value=0.0)
    columns = {name: facts[name].to_numpy(dtype=np.float64) for name in facts}
    people, total, end = (
        columns["people"].astype(np.int64),
        columns["total"],
        "highest" if statistic == "max" else "lowest",
    )
    same, negative = columns[f"same_{end}"].astype(np.int64), columns["negative"] > 0
    cells = CellFacts(people, total, columns["largest"], columns["top"], columns["rest"], negative, same)
    with np.errstate(invalid="ignore"):
        shown = {"sum": total, "mean": total / columns["rows"]}.get(statistic, columns[end])
    return cells, np.where(people > 0, shown, np.nan)


def _contributions(
    classes: Classes, values: NDArray[np.float64], statistic: str, rules: OutputRules
) -> tuple[CellFacts, NDArray[np.float64]]:
    """Values of the cells, and facts about people's contributions to them."""
    known = ~np.isnan(values)
    cell, x = classes.numbers[0][known], values[known]
    persons = classes.sides[0].persons
    size = classes.size
    rows = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=x, minlength=size).astype(np.float64)
    extreme = np.full(size, -np.inf if statistic == "max" else np.inf)
    (np.maximum if statistic == "max" else np.minimum).at(extreme, cell, x)
    at_extreme = x == extreme[cell]
    negative = np.bincount(cell[x < 0], minlength=size) > 0
    if persons is not None:
        pairs = cell * (int(persons.max()) + 1) + persons[known]
        codes, who = pd.factorize(pairs)
        x = np.bincount(codes, weights=x, minlength=len(who)).astype(np.float64)
        at_extreme = np.bincount(codes, weights=at_extreme, minlength=len(who)) > 0
        cell = who // (int(persons.max()) + 1)
    people = np.bincount(cell, minlength=size)
    same = np.bincount(cell[at_extreme], minlength=size)
    order = np.lexsort((-x, cell))
    cell, x = cell[order], x[order]
    rank = np.arange(len(cell)) - (np.cumsum(people) - people)[cell]  # 0: the largest of its cell

    def sum_of(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(cell[chosen], weights=x[chosen], minlength=size).astype(np.float64)

    largest, top, rest = sum_of(rank == 0), sum_of(rank < rules.top), sum_of(rank >= 2)
    cells = CellFacts(people, total, largest, top, rest, negative, same)
    with np.errstate(invalid="ignore"):
        shown = {"sum": total, "mean": total / rows}.get(statistic, extreme)
    return cells, np.where(people > 0, shown, np.nan)


def _checked(
    classes: Classes,
    cells: CellFacts,
    shown: NDArray[Any],
    statistic: str,
    rules: OutputRules,
    wanted: KeyRequest,
) -> CheckedTable:
    """The wide tables of values, people and verdicts."""
    failing = verdicts(cells, statistic, rules)
    present = classes.lines() > 0
    fails = np.any([failed for name, failed in failing.items() if name != "negative"], axis=0)
    verdict = np.where(fails, "fail", np.where(failing["negative"], "review", "pass")).astype(object)
    long = classes.table(present, {"value": shown, "people": cells.people, "verdict": verdict, **failing})
    return CheckedTable.of(long, statistic, wanted.weight, rules)
