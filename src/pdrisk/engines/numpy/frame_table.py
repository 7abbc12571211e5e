"""A pandas frame as a table: its own header, and the engine that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pdrisk._model.query import Query
from pdrisk._model.unit import Secret
from pdrisk.engines.numpy.frame import FrameEngine


@dataclass(frozen=True, slots=True)
class FrameTable:
    """Pandas frame as a `DataTable`."""

    header: pd.DataFrame

    @staticmethod
    def opened(
        query: Query,  # noqa: ARG004 - a frame answers any
        header: pd.DataFrame,
        stored: pd.DataFrame,
        given: Any,
        secret: Secret,
    ) -> FrameEngine:
        """Engine of the frame for a judged query."""
        return FrameEngine(header, stored, given, secret)

    def selecting(self, where: Any) -> Any:
        """The ``where`` as it is: a frame takes every one."""
        return where

    def frame(self, labels: Iterable[object]) -> pd.DataFrame:  # noqa: ARG002 - all are there
        """All rows of these columns, and of others."""
        return self.header
