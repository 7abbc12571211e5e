"""Figure that notebooks show, also where nobody imported pyplot."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure of matplotlib that needs no backend to be shown."""

    def _repr_png_(self) -> bytes:
        held = BytesIO()
        self.savefig(held, format="png")
        return held.getvalue()
