"""What somebody who knows pandas meant, said where they look for it."""

from __future__ import annotations

import difflib
from typing import NoReturn

__all__ = ["Hinting"]

MEANT = {
    "groupby": 'groups are options of each answer, as in .mean("age", eps=1, by="region", keys=["north", "south"])',
    "query": 'a filter is an option of each answer, as in .count(eps=1, where="age > 40")',
    "describe": 'several answers for one eps are .agg({"distance": ["mean", "median"]}, eps=1)',
    "value_counts": 'counts of groups are .count(eps=1, by="region", keys=["north", "south"])',
    "aggregate": "several answers for one eps are .agg(...)",
    "average": "write .mean(...)",
    "avg": "write .mean(...)",
    "size": "write .count(...)",
    **dict.fromkeys(("loc", "iloc", "head"), "records do not leave; a filter is where= of each answer"),
    **dict.fromkeys(("mode", "nunique", "unique", "corr", "cov", "hist"), "there is no private answer for it"),
}


class Hinting:
    """An accessor that shows what it can do, and names what was meant by something it cannot."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"private answers: {', '.join(self._known())}; see help() of each"

    def __getattr__(self, name: str) -> NoReturn:
        hint = ""
        if not name.startswith("_"):
            near = difflib.get_close_matches(name, self._known(), n=1)
            hint = f": {MEANT[name]}." if name in MEANT else f". Did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"dprisk has no {name!r}{hint}", name=name, obj=self)

    def _known(self) -> list[str]:
        return [name for name in vars(type(self)) if not name.startswith("_")]
