"""Figures and axes that notebooks show, also where nobody imported pyplot."""

from __future__ import annotations

from io import BytesIO
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure of matplotlib that needs no backend to be shown."""

    def _repr_png_(self) -> bytes:
        held = BytesIO()
        self.savefig(held, format="png")
        return held.getvalue()


class NotebookAxes(Axes):
    """Axes at the end of a cell, which a notebook shows as their figure."""

    def _repr_png_(self) -> bytes:
        held = BytesIO()
        cast(Figure, self.figure).savefig(held, format="png")
        return held.getvalue()

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, "Axes", 1)
