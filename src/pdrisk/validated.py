"""Frames that pandera validated know their schema, however pandera and pdrisk are imported.

pandera keeps the schema with the frame itself, and the first ``query`` or copy loses it; ``attrs`` stay. So what
pandera attaches is written there as well.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pdrisk.declared import attach

__all__ = ["watch"]

MODULE = "pandera.accessors.pandas_accessor"
MARK = "_remembered_by_pdrisk"


def watch() -> None:
    """Listen to what pandera attaches to frames: at once, or as soon as it is imported."""
    if MODULE in sys.modules:
        _listen(sys.modules[MODULE])
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting(MetaPathFinder):
    """Looks out for one module, and is gone once it comes."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The module as others find it, told to listen once it is executed."""
        if fullname != MODULE:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then_listen(spec.loader.exec_module)  # type: ignore[method-assign, assignment]
        return spec


def _then_listen(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def executed(module: ModuleType) -> None:
        execute(module)
        _listen(module)

    return executed


def _listen(module: ModuleType) -> None:
    accessor = getattr(module, "PanderaAccessor", None)
    add_schema = getattr(accessor, "add_schema", None)
    if add_schema is None or hasattr(add_schema, MARK):
        return

    @wraps(add_schema)
    def remembered(self: Any, schema: Any) -> Any:
        data = add_schema(self, schema)
        try:
            attach(data, schema)
        except Exception:  # noqa: BLE001
            pass  # validation is pandera's: what pdrisk cannot understand, declare(schema) says
        return data

    setattr(remembered, MARK, True)
    accessor.add_schema = remembered  # type: ignore[union-attr]
