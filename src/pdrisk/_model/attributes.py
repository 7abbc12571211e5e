"""The entry in ``attrs`` of frames: declarations, the description of an answer, or the mark of exact numbers."""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["ATTRIBUTE", "EXACT", "mark_exact"]

ATTRIBUTE: Final = "dprisk"
EXACT: Final = {"exact": True}


def mark_exact(table: Any) -> Any:
    """A frame or series of exact numbers, marked as the curator's: `pdrisk.public` and `explain` refuse it."""
    table.attrs = {ATTRIBUTE: json.dumps(EXACT)}
    return table
