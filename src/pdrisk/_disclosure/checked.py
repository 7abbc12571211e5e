"""Tables with a verdict for each cell, roundings and suppression, and a record for output checkers. Curator only."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers import formatting
from pdrisk._core.rounding import controlled_rounding, nearest_multiple, with_margins
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.plain import json_value, plain_label, plain_value
from pdrisk.errors import ColumnTypeError, ParameterError

FAILING: Final = ("least_count", "dominance", "p_percent")
ACRO: Final = {"least_count": "threshold", "p_percent": "p-ratio", "dominance": "nk-rule", "negative": "negative"}
TOTAL: Final = "total"


@dataclass(frozen=True, repr=False, eq=False)
class CheckedTable:
    """Exact table by two keys with the verdict of classical output rules on each cell. Curator only.

    The rules judge one table at a time. They do not stop what follows from several tables, or from a total and all
    cells but one: see docs/disclosure.md.

    Attributes
    ----------
    status : str
        The worst verdict of a cell.
    """

    statistic: str
    column: Hashable | None
    rules: Any
    cells: pd.DataFrame = field(repr=False)  # all of it, one row a cell that somebody is in
    table: pd.DataFrame = field(repr=False)  # the statistic, exact: one row a key, one column a key
    people: pd.DataFrame = field(repr=False)  # how many people are in each cell
    verdicts: pd.DataFrame = field(repr=False)  # ``"pass"``, ``"review"`` or ``"fail"``
    # the rules that a cell breaks, and ``"negative"`` where it is to be looked at; empty where it passes
    reasons: pd.DataFrame = field(repr=False)

    @classmethod
    def of(cls, cells: pd.DataFrame, statistic: str, column: Hashable | None, rules: Any) -> CheckedTable:
        """The table from one row for each cell, with a column of truth values for each rule."""
        named = [np.where(cells[name], name, "") for name in (*FAILING, "negative")]
        reasons = [", ".join(filter(None, names)) for names in zip(*named, strict=True)]
        judged = cells.assign(reasons=reasons)

        def wide(name: str, empty: Any) -> pd.DataFrame:
            return mark_exact(judged[name].unstack(fill_value=empty))

        is_count = statistic == "count"
        return cls(
            statistic, column, rules, mark_exact(judged), wide("value", 0 if is_count else np.nan), wide("people", 0),
            wide("verdict", "pass"), wide("reasons", ""),
        )  # fmt: skip

    @property
    def status(self) -> str:
        """The worst verdict of a cell."""
        verdicts = set(self.cells["verdict"])
        return next(name for name in ("fail", "review", "pass") if name in verdicts)

    @property
    def summary(self) -> dict[str, int]:
        """Number of cells that break each rule."""
        return {name: int(self.cells[name].sum()) for name in (*FAILING, "negative")}

    def suppressed(self) -> pd.DataFrame:
        """The table without the cells that fail: primary suppression.

        Whoever knows a total gets a cell back that is alone in its row or column: without secondary suppression, which
        pdrisk does not do, show no totals.
        """
        return mark_exact(self.table.mask(self.verdicts == "fail"))

    def rounded(self, base: int = 5) -> pd.DataFrame:
        """Table with margins, each number rounded to a multiple of ``base``; margins no longer add up."""
        return self._with_margins(nearest_multiple(with_margins(self._whole(base)), base))

    def controlled_rounding(self, base: int = 5) -> pd.DataFrame:
        """Table with margins, all rounded to neighbouring multiples of ``base`` so that margins are sums."""
        return self._with_margins(with_margins(controlled_rounding(self._whole(base), base)))

    def record(self, name: str = "output_0") -> dict[str, Any]:
        """Record of this output in the style of ACRO, for output checkers; plain JSON values. Curator only.

        ``sdc`` has ACRO's names of rules, the number of cells of each and their places (row, column). Beside them are
        the rules with their limits, since those of ACRO are settings elsewhere.
        """
        broken = {name: self._places(name) for name in ACRO}
        counts = {ACRO[name]: len(places) for name, places in broken.items()}
        findings = "; ".join(f"{name}: {number} cells" for name, number in counts.items() if number)
        return {
            "uid": name,
            "status": self.status,
            "type": "table",
            "properties": {"method": "crosstab", "statistic": self.statistic, "column": plain_label(self.column)},
            "rules": dataclasses.asdict(self.rules),
            "sdc": {
                "summary": {"suppressed": False, "missing": 0, **counts},
                "cells": {"missing": [], **{ACRO[name]: places for name, places in broken.items()}},
            },
            "index": [_plain(key) for key in self.table.index],
            "columns": [_plain(key) for key in self.table.columns],
            "outcome": [[reason or "ok" for reason in row] for row in self.reasons.to_numpy().tolist()],
            "summary": f"{self.status}; {findings}" if findings else self.status,
        }

    def to_json(self, name: str = "output_0") -> str:
        """`record` as JSON text. Curator only."""
        return json.dumps({"results": {name: self.record(name)}}, indent=1, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"{formatting.text(self._title(), [], self._lines())}\n{self._shown().to_string()}"

    def _repr_html_(self) -> str:
        return formatting.html(self._title(), [], self._lines()) + self._shown().to_html()

    def _title(self) -> str:
        return "output rules: " + (self.statistic if self.column is None else f"{self.statistic}({self.column})")

    def _lines(self) -> formatting.Rows:
        cells = self.cells["verdict"].value_counts()
        verdicts = ", ".join(
            f"{cells[verdict]:,} {verdict}" for verdict in ("pass", "review", "fail") if verdict in cells
        )
        return [("cells", verdicts), *((name, f"{number:,} cells") for name, number in self.summary.items() if number)]

    def _shown(self) -> pd.DataFrame:
        """Each value with its verdict, where that is not pass."""
        values = self.table.map(lambda value: "" if pd.isna(value) else formatting.number(value))
        marks = self.verdicts.map(lambda verdict: "" if verdict == "pass" else f" {verdict}")
        return values + marks

    def _places(self, name: str) -> list[list[int]]:
        wide = self.cells[name].unstack(fill_value=False)
        return np.argwhere(wide.to_numpy(dtype=bool)).tolist()

    def _whole(self, base: object) -> Any:
        if isinstance(base, bool) or not isinstance(base, int | np.integer):
            raise ColumnTypeError(f"base is a whole number, not of type {type(base).__name__}.")
        if base < 2:
            raise ParameterError("base is 2 or more: multiples of 1 are the numbers themselves.")
        if self.statistic not in ("count", "sum"):
            raise ParameterError(f"a table of {self.statistic} has no margins that are sums: round counts or sums.")
        values = self.table.to_numpy(dtype=np.float64, na_value=0)
        values = np.nan_to_num(values)  # a sum over nobody
        if (values < 0).any() or (values != np.rint(values)).any() or values.sum() > 2**53:
            raise ParameterError("rounding to a base is for whole numbers of at least 0.")
        return values.astype(np.int64)

    def _with_margins(self, values: Any) -> pd.DataFrame:
        index, columns = (_with_total(labels) for labels in (self.table.index, self.table.columns))
        return mark_exact(pd.DataFrame(values, index=index, columns=columns))


def _with_total(index: pd.Index) -> pd.Index:
    return pd.Index([*index.tolist(), TOTAL], dtype=object, name=index.name)


def _plain(key: Any) -> Any:
    """A key as JSON holds it."""
    return str(key) if isinstance(key, pd.Interval) else json_value(plain_value(key, "a key"))
