"""The entry in ``attrs`` of frames: declarations, the description of an answer, or the mark of exact numbers."""

from __future__ import annotations

import json
import math
from typing import Any, Final

ATTRIBUTE: Final = "dprisk"
EXACT: Final = {"exact": True}
PUBLIC_ROWS: Final = "dprisk_public_rows"  # beside it: an answer that nobody is in
FLOAT: Final = "float"
FLOATS: Final = {str(value): value for value in (math.nan, math.inf, -math.inf)}  # one NaN, which equals itself


def mark_exact(table: Any) -> Any:
    """A frame or series of exact numbers, marked as the curator's: `pdrisk.public` and `explain` refuse it."""
    table.attrs = {ATTRIBUTE: json.dumps(EXACT)}
    return table


def strict_json(value: Any) -> str:
    """JSON of a value, with an object in the place of NaN and of infinity, for which JSON has no number."""
    try:
        return json.dumps(value, allow_nan=False)  # which reads on its own what is all finite, as nearly always
    except ValueError:
        return json.dumps(_strict(value), allow_nan=False)


def from_strict_json(text: str) -> Any:
    """The value that `strict_json` wrote; raises as ``json.loads``."""
    return json.loads(text, object_hook=lambda fields: FLOATS[fields[FLOAT]] if fields.keys() == {FLOAT} else fields)


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT: str(value)}
    if isinstance(value, dict):
        return {name: _strict(part) for name, part in value.items()}
    return [_strict(part) for part in value] if isinstance(value, list | tuple) else value
