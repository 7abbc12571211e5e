"""Hints of the accessors: what to write instead of a method that pandas has and pdrisk does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import pandas as pd

from pdrisk._model.arguments import (
    MODE,
    OF_TWO_COLUMNS,
    SAME,
)
from pdrisk._model.expressions.nearest import misspelt

MEANT = {
    "groupby": 'groups are options of each answer, as in .mean("age", eps=1, by="region", keys=["north", "south"])',
    "query": 'a filter is an option of each answer, as in .count(eps=1, where="age > 40")',
    "aggregate": "several answers for one eps are .agg(...)",
    **{other: f"write .{name}(...)" for other, name in SAME.items()},
    **dict.fromkeys(("histogram", "plot"), "write .hist(...), which is a table of counts"),
    **dict.fromkeys(("percentile", "median_high", "median_low"), "write .quantile(q=0.9)"),
    **dict.fromkeys(("gini", "lorenz", "poverty"), "write .inequality(...), which has it"),
    "mad": "write .median(...), or .std(...) for the spread",
    **dict.fromkeys(("loc", "iloc", "head"), "records do not leave; a filter is where= of each answer"),
    **dict.fromkeys(("pivot_table", "pivot"), 'write .crosstab(..., values="age", aggfunc="mean")'),
    **dict.fromkeys(("shape", "info"), "the number of records is .count(eps=...)"),
    **dict.fromkeys(
        ("resample", "rolling"), 'write .hist("day", bins="month", eps=...), or group by a column of months'
    ),
    "merge": "a Dataset has .join(codes, on=...), for a public table; or merge the frames before",
    "mode": MODE,
    "unique": "there is no private answer for it",
}
OF_ONE = {"randomized_response": 'it is of one column: ask the column, df["age"].dprisk.randomized_response(...)'}
OF_TWO = {name: f"it is of two columns: ask the frame, df.dprisk.{name}(...)" for name in OF_TWO_COLUMNS}
DISCLOSURE = (
    "k_anonymity",
    "k_map",
    "delta_presence",
    "l_diversity",
    "t_closeness",
    "unique_rows",
    "suggest_generalization",
    "output_rules",
)
CURATORS_VIEWS = (
    *("assess", "compare", "individual_risk", "epsilon_for", "identifiability", "sampling_errors"),
    *DISCLOSURE,
)
USUAL = ("count", "sum", "mean")  # that a list of methods begins with
STEPS = ("declare", "declared", "query", "assign", "join")  # they prepare questions


class Hinting:
    """Accessor with a repr that lists what it can do, and hints for names that it does not have."""

    __slots__ = ()
    _called: ClassVar[str] = "dprisk"

    def _shown(self, answer: Any) -> Any:
        """The answer in the form that the caller gets."""
        return answer

    def __repr__(self) -> str:
        return self._offers()

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(
            f'{self._called} has no columns to pick: name one in each question, as in .mean("age", eps=1), or ask the '
            'column itself, as in df["age"].dprisk.mean(eps=1).'
        )

    if not TYPE_CHECKING:  # checkers would take any name for a method

        def __getattr__(self, name: str) -> NoReturn:
            hint = ""
            if not name.startswith("_"):
                question, meant = misspelt(name, self._known(), is_other=_is_of_pandas), MEANT | OF_ONE | OF_TWO
                hint = f": {meant[name]}." if name in meant else f".{question}" if question else ""
            raise AttributeError(f"{self._called} has no {name!r}{hint}", name=name, obj=self)

    def _offers(self, *, without: tuple[str, ...] = ()) -> str:
        """All methods: which answer with noise, which prepare a question, and which show exact numbers."""
        known = [name for name in self._known() if name not in without]
        exact, steps = ([name for name in known if name in kind] for kind in (CURATORS_VIEWS, STEPS))
        noisy = [*USUAL, *(name for name in known if name not in (*exact, *steps, *USUAL))]
        listed = {"noisy answers": noisy, "preparation": steps, "exact numbers, for the curator alone": exact}
        return "; ".join(
            [*(f"{of}: {', '.join(names)}" for of, names in listed.items() if names), "see help() of each"]
        )

    def _known(self) -> list[str]:
        known = (name for kind in reversed(type(self).__mro__[:-1]) for name in vars(kind))
        return [name for name in dict.fromkeys(known) if not name.startswith("_")]


def _is_of_pandas(name: str) -> bool:
    """Whether pandas has a method of that name."""
    return hasattr(pd.DataFrame, name) or hasattr(pd.Series, name)
