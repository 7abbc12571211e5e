"""Hints of the accessors: what to write instead of a method that pandas has and pdrisk does not have."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import pandas as pd

from pdrisk._model.arguments import (
    OF_TWO_COLUMNS,
    SAME,
)
from pdrisk._model.nearest import misspelt

__all__ = ["Hinting"]

MEANT = {
    "groupby": 'groups are options of each answer, as in .mean("age", eps=1, by="region", keys=["north", "south"])',
    "query": 'a filter is an option of each answer, as in .count(eps=1, where="age > 40")',
    "aggregate": "several answers for one eps are .agg(...)",
    **{other: f"write .{name}(...)" for other, name in SAME.items()},
    **dict.fromkeys(("histogram", "plot"), "write .hist(...), which is a table of counts"),
    **dict.fromkeys(("percentile", "median_high", "median_low"), "write .quantile(q=0.9)"),
    "mad": "write .median(...), or .std(...) for the spread",
    **dict.fromkeys(("loc", "iloc", "head"), "records do not leave; a filter is where= of each answer"),
    **dict.fromkeys(("mode", "unique"), "there is no private answer for it"),
}
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
CURATORS_VIEWS = ("assess", "compare", "individual_risk", "epsilon_for", "identifiability", *DISCLOSURE)  # named last


class Hinting:
    """Accessor with a repr that lists what it can do, and hints for names that it does not have."""

    __slots__ = ()
    _called: ClassVar[str] = "dprisk"

    def _shown(self, answer: Any) -> Any:
        """The answer in the form that the caller gets."""
        return answer

    def __repr__(self) -> str:
        return f"private answers: {', '.join(self._known())}; see help() of each"

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(
            f'{self._called} has no columns to pick: name one in each question, as in .mean("age", eps=1), or ask the '
            'column itself, as in df["age"].dprisk.mean(eps=1).'
        )

    def __getattr__(self, name: str) -> NoReturn:
        hint = ""
        if not name.startswith("_"):
            question, meant = misspelt(name, self._known(), is_other=_is_of_pandas), MEANT | OF_TWO
            hint = f": {meant[name]}." if name in meant else f".{question}" if question else ""
        raise AttributeError(f"{self._called} has no {name!r}{hint}", name=name, obj=self)

    def _known(self) -> list[str]:
        known = (name for kind in reversed(type(self).__mro__[:-1]) for name in vars(kind))
        public = [name for name in dict.fromkeys(known) if not name.startswith("_")]
        return sorted(public, key=CURATORS_VIEWS.__contains__)


def _is_of_pandas(name: str) -> bool:
    """Whether pandas has a method of that name."""
    return hasattr(pd.DataFrame, name) or hasattr(pd.Series, name)
