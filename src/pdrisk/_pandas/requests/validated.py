"""Frames that pandera validated know their schema, however pandera and pdrisk are imported.

pandera keeps the schema with the frame itself, and the first ``query`` or copy loses it; ``attrs`` stay. So what
pandera attaches is written there as well.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pdrisk._imported import later, when_imported

if TYPE_CHECKING:
    import pdrisk._pandas.requests.declared as declared
else:
    declared = later("pdrisk._pandas.requests.declared")

MODULE = "pandera.accessors.pandas_accessor"
MARK = "_remembered_by_pdrisk"


def watch() -> None:
    """Listen to what pandera attaches to frames: at once, or as soon as it is imported."""
    when_imported(MODULE, _listen)


def _listen(module: ModuleType) -> None:
    accessor: Any = getattr(module, "PanderaAccessor", None)
    add_schema = getattr(accessor, "add_schema", None)
    if add_schema is None or hasattr(add_schema, MARK):
        return

    @wraps(add_schema)
    def remembered(self: Any, schema: Any) -> Any:
        data = add_schema(self, schema)
        with suppress(Exception):  # validation is pandera's: what pdrisk cannot understand, declare(schema) says
            declared.attach(data, schema)
        return data

    setattr(remembered, MARK, True)
    accessor.add_schema = remembered
