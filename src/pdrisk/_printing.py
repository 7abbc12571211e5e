"""Escaping of other people's text: on a terminal, which could obey it, and in a spreadsheet, which could compute it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any
from unicodedata import category

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 110
LABEL = 24  # characters; a longer label pushes its text to the right

# What spreadsheets take for a formula, be it after blanks and signs that nobody sees; tab and line break begin a cell.
FORMULA = re.compile(
    r"[\s\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]"
)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def printable(text: str, keep: str = "") -> str:
    r"""The text with signs that cannot be seen, or that command a terminal, written as in Python: ``\x1b``.

    ``keep``: signs that stay as they are, such as the line breaks of pdrisk's own sentences.
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or sign in keep or category(sign) == "Zs"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


class DisplayedText(str):
    """Text of several lines that notebooks and IPython show as it is, not as Python would write it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(self)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(str(self))


def preformatted(text: str) -> str:
    """Text of several lines as HTML, for notebooks; long lines are wrapped."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


def laid_out(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Labels and texts in two columns under a title, which may be empty."""
    widest = min(max(len(label) for label, _ in rows), LABEL)
    lines = [title] if title else []
    for label, text in rows:
        lines += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {label:<{widest}}  ",
            subsequent_indent=" " * (widest + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def inert(table: pd.DataFrame) -> pd.DataFrame:
    """The table for a CSV file: texts that a spreadsheet would take for a formula have an apostrophe before them.

    Numbers stay numbers, texts such as ``-1.5`` too.
    """
    sheet = table.copy(deep=False)
    for place in range(table.shape[1]):
        cells = table.iloc[:, place]
        if cells.dtype.kind == "O":
            texts = (cell for cell in cells.unique() if isinstance(cell, str))
            quoted = {cell: text for cell in texts if (text := _quoted(cell)) is not cell}
            if quoted:
                sheet.isetitem(place, [quoted.get(cell, cell) for cell in cells])
    sheet.columns = [_quoted(name) if isinstance(name, str) else name for name in table.columns]
    return sheet


def _quoted(cell: str) -> str:
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell
