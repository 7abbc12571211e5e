"""Self-contained HTML page that reads like a short paper; it loads nothing from elsewhere."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._digits import probability, rounded_down, rounded_up
from pdrisk._printing import printable
from pdrisk.study.origin import ReportOrigin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTICE = "Curator only: these figures come from the data without noise. Do not publish them or pass them on."
RISKS = {"worst_case", "two_worlds", "many_worlds", "identifiability", "exact", "risk"}  # columns that hold one
UP = {"scale"}  # of noise that is advised
DOWN = {"eps", "loose_eps", "tight_eps"}  # that is advised for a risk
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, "Times New Roman", serif; color: #1a1a1a; background: #fff; margin: 0 auto;
       padding: 2rem 1rem 4rem; max-width: 60rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; }
p { max-width: 44rem; margin: .5rem 0; }
.notice { border: 2px solid #a11; color: #a11; padding: .6rem 1rem; font-weight: bold; max-width: 44rem; }
.origin { display: grid; grid-template-columns: max-content 1fr; gap: 0 .8rem; font: 13px/1.5 system-ui, sans-serif; }
.origin dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; font: 13px/1.35 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-style: italic; padding: 0 0 .3rem; }
th, td { padding: .2rem .7rem .2rem 0; text-align: right; vertical-align: top; }
th.text, td.text { text-align: left; white-space: normal; }
thead th { border-bottom: 1px solid #333; } tbody tr + tr td { border-top: 1px solid #e4e4e4; }
td.pass, td.fail { text-align: left; } td.pass { color: #063; } td.fail { color: #a11; font-weight: bold; }
figure { margin: 1.2rem 0; } figure svg { width: 34rem; max-width: 100%; height: auto; }
figcaption { font-style: italic; max-width: 44rem; }
details pre { font: 12px/1.4 ui-monospace, monospace; overflow-x: auto; background: #f6f6f6; padding: .6rem; }
@media print { body { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


class Page:
    """A page, part after part.

    Parameters
    ----------
    title : str
    notice : str
        What everybody who opens it must know first.
    origin : ReportOrigin, optional
        What it was made of.
    """

    def __init__(self, title: str, notice: str, origin: ReportOrigin | None = None) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="notice" role="note">{escape(notice)}</p>']
        if origin is not None:
            rows = (
                f"<dt>{escape(label)}</dt><dd>{escape(printable(text))}</dd>" for label, text in origin.rows_of_head
            )
            self._parts.append(f'<dl class="origin">{"".join(rows)}</dl>')

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, *paragraphs: str) -> None:
        """Paragraphs."""
        self._parts += [f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs]

    def table(self, table: pd.DataFrame, caption: str, names: Mapping[str, str] | None = None) -> None:
        """A table without its index; ``names`` are headings for people."""
        heads, kinds = [], []
        for name in table.columns:
            is_text = not pd.api.types.is_numeric_dtype(table[name].dtype) or table[name].dtype == bool
            kinds.append("text" if is_text else "number")
            heads.append(f'<th scope="col" class="{kinds[-1]}">{escape(str((names or {}).get(name, name)))}</th>')
        rows = [
            "<tr>" + "".join(map(_tagged, table.columns, row, kinds)) + "</tr>"
            for row in table.itertuples(index=False, name=None)
        ]
        self._parts.append(
            f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{"".join(heads)}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )

    def figure(self, svg: str, caption: str, twin: str) -> None:
        """Picture as SVG, with the same in words and numbers for readers who cannot see it."""
        inline = re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)
        inline = inline.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
        self._parts.append(
            f"<figure>{inline}<figcaption>{escape(caption)}</figcaption>"
            f"<details><summary>The same in numbers</summary><pre>{escape(twin)}</pre></details></figure>"
        )

    @property
    def html(self) -> str:
        """The whole page."""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            # No request may leave the machine, whatever stands in a label.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            'img-src data:">'
            f'<link rel="icon" href="data:,"><title>{escape(self._title)}</title><style>{STYLE}</style></head>\n<body>'
            + self.body
            + "</body></html>\n"
        )

    @property
    def body(self) -> str:
        """Content of the page, for a place with a style of its own."""
        return "\n".join(self._parts)


def shown(value: Any) -> str:
    """A number as people read it: four digits, thousands set apart."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return printable(str(value))
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.4g}" if abs(value) < 1e3 else f"{value:,.0f}"
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e9 else f"{value:.2e}"


def cell(name: object, value: Any) -> str:
    """Text of a cell in a column of that name: rounded towards the person, and no risk is called certain."""
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, float) or not math.isfinite(plain):
        return shown(plain)
    if name in RISKS:
        return probability(plain)
    rounded = rounded_up if name in UP else rounded_down if name in DOWN else None
    return shown(plain if rounded is None else float(rounded(plain)))


def _tagged(name: object, value: Any, kind: str) -> str:
    text = cell(name, value)
    return f'<td class="{text if text in ("pass", "fail") else kind}">{escape(text)}</td>'


def svg_of(figure: Figure, name: str) -> str:
    """SVG of a figure, the same each time; ids begin with the name, so that several fit on one page."""
    import matplotlib as mpl

    target = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):  # text as text
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    # matplotlib escapes "<" and ">" in labels and attributes: what is between them is a tag of its own.
    return re.sub(
        r"<[a-zA-Z][^<>]*>",
        lambda tag: re.sub(r"""(\s(?:id=["']|(?:xlink:)?href=["']#)|url\(#)""", rf"\g<1>{name}-", tag[0]),
        target.getvalue(),
    )
