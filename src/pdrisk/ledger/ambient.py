"""The ledgers of the ``with`` blocks around: each thread and task sees its own."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ["ambient"]

ambient: ContextVar[tuple[Any, ...]] = ContextVar("pdrisk_ledgers", default=())  # the innermost last
