"""Imports that wait: what runs once another library is imported, and modules that are imported once they are used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any

_ONE_AT_A_TIME = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ONE_AT_A_TIME.acquire,
        after_in_parent=_ONE_AT_A_TIME.release,
        after_in_child=_ONE_AT_A_TIME.release,
    )


def imported(name: str) -> ModuleType:
    """The module, imported now if it was not before, and never while another thread forks the process.

    The child would wait forever for a lock of Python's that nobody frees there.
    """
    with _ONE_AT_A_TIME:
        return import_module(name)


def later(name: str) -> Any:
    """What stands for a module of pdrisk until something of it is used; it then imports it."""
    return _Later(name)


class _Later:
    """Module that few questions need."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(imported(self._name), name)


Then = Callable[[ModuleType], object]


def when_imported(name: str, then: Then) -> None:
    """Call ``then`` with a module: at once, or as soon as it is imported."""
    if name in sys.modules:
        then(sys.modules[name])
    # By its name: another copy of this module may have put its own there, and each of two would ask the other.
    waiting: Any = next((finder for finder in sys.meta_path if type(finder).__name__ == _Waiting.__name__), None)
    if waiting is None:
        waiting = _Waiting()
        sys.meta_path.insert(0, waiting)
    waiting.watched[name] = then


class _Waiting(MetaPathFinder):
    """Import finder that watches for some modules and leaves all others to other finders."""

    def __init__(self) -> None:
        self.watched: dict[str, Then] = {}

    def find_spec(self, fullname: str, *rest: Any) -> ModuleSpec | None:
        """The spec that other finders give, with a loader that reports when the module is loaded."""
        then = self.watched.get(fullname)
        if then is None:
            return None
        for finder in sys.meta_path:
            find: Any = None if finder is self else getattr(finder, "find_spec", None)  # Python asks no others
            spec: ModuleSpec | None = None if find is None else find(fullname, *rest)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Followed(spec.loader, then)
                return spec
        return None


class _Followed(Loader):
    """Loader of another finder, with a call after it."""

    def __init__(self, loader: Any, then: Then) -> None:
        self._loader = loader
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """As the other loader does; then the call."""
        self._loader.exec_module(module)
        self._then(module)
