"""Accessors ``dprisk`` of pandas frames and series, which are imported once they are asked for something."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pdrisk._imported import imported

NAME = "dprisk"


def register() -> None:
    """Give all frames and series their accessor."""
    extensions = pd.api.extensions
    for kind, registering, made in (
        (pd.DataFrame, extensions.register_dataframe_accessor, "FrameAccessor"),
        (pd.Series, extensions.register_series_accessor, "SeriesAccessor"),
    ):
        accessor = _Accessor(made)
        registering(NAME)(accessor)  # type: ignore[type-var] # pandas knows the name, and warns if somebody has it
        setattr(kind, NAME, accessor)


class _Accessor:
    """Class of accessors, and of a frame or series its own one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: Any = None

    def __get__(self, asked: Any, _: type | None = None) -> Any:
        if self._made is None:
            self._made = getattr(imported("pdrisk._pandas.accessor"), self._name)
        return self._made if asked is None else self._made(asked)
