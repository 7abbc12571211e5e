"""Frames that pandera validated know their schema, however pandera and pdrisk are imported.

pandera keeps the schema with the frame itself, and the first ``query`` or copy loses it; ``attrs`` stay. So what
pandera attaches is written there as well.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pdrisk._pandas.declared import attach

__all__ = ["watch"]

MODULE = "pandera.accessors.pandas_accessor"
MARK = "_remembered_by_pdrisk"


def watch() -> None:
    """Listen to what pandera attaches to frames: at once, or as soon as it is imported."""
    if MODULE in sys.modules:
        _listen(sys.modules[MODULE])
    if not any(type(finder).__name__ == _Waiting.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting(MetaPathFinder):
    """Looks out for one module; all others are somebody else's."""

    def find_spec(self, fullname: str, *rest: Any) -> ModuleSpec | None:
        """The module as the other finders find it, with a loader that listens afterwards."""
        if fullname != MODULE:
            return None
        for finder in sys.meta_path:
            find: Any = None if finder is self else getattr(finder, "find_spec", None)  # Python asks no others
            spec: ModuleSpec | None = None if find is None else find(fullname, *rest)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Listening(spec.loader)
                return spec
        return None


class _Listening(Loader):
    """A loader of somebody else, and what happens after it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """As the other does."""
        self._loader.exec_module(module)
        _listen(module)


def _listen(module: ModuleType) -> None:
    accessor: Any = getattr(module, "PanderaAccessor", None)
    add_schema = getattr(accessor, "add_schema", None)
    if add_schema is None or hasattr(add_schema, MARK):
        return

    @wraps(add_schema)
    def remembered(self: Any, schema: Any) -> Any:
        data = add_schema(self, schema)
        with suppress(Exception):  # validation is pandera's: what pdrisk cannot understand, declare(schema) says
            attach(data, schema)
        return data

    setattr(remembered, MARK, True)
    accessor.add_schema = remembered
