"""Formatting of a release as text and HTML, the curator's part set apart."""

from __future__ import annotations

import math
from html import escape

from pdrisk._digits import probability
from pdrisk._printing import printable

Rows = list[tuple[str, str]]

NOBODY = "none: no record was used"
UNDEFINED = "not defined: the number of records is public"
CURATOR = "curator only: these come from the data, do not publish"


def number(value: float) -> str:
    """A number in six digits; a large one with all digits before the point."""
    return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"


def known(value: float) -> str:
    """A number, or a word where it is not known."""
    return "not known" if math.isnan(value) else number(value)


def clipped(name: str, clip: tuple[float, float] | None) -> str:
    """The name of an answer, with the points that its values were clipped at, if there are any."""
    return name if clip is None else f"{name} of values clipped to [{number(clip[0])}, {number(clip[1])}]"


def ranks(number_of: float, step: float | None, weight: float | None = None) -> str:
    """The error of an answer in ranks, as text; ``weight`` is that of the heaviest record where they have weights."""
    if not math.isfinite(number_of):
        return "not known at such a small eps"
    steps = "" if step is None else f", in steps of {number(step)} or less"
    few = records_said_of(number_of) or 0
    if weight is not None:
        within, least = number(number_of * weight), number(few * weight)
        return f"within a weight of {within} of its rank{steps}; says nothing of less than some {least} in all"
    return f"within {number(number_of)} records of its rank{steps}; says nothing of fewer than some {few:,}"


def records_said_of(rank95: float | None) -> int | None:
    """About how many records there have to be for an order statistic to say anything; None where that is not known.

    Within twice its error in ranks, a median may be any of them, and an extreme one on the other side of the middle.
    """
    return None if rank95 is None or math.isinf(rank95) else math.ceil(2 * rank95)


def share(part: float) -> str:
    """A share of records in per cent: 0 % only for none, 100 % only for all."""
    return f"{(min(max(round(1000 * part), 1), 999) if part < 1 else 1000) / 10:g} %"


def thousands(value: float) -> str:
    """A number with its thousands set apart, for tables and pictures."""
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:,.6g}"


def risk(value: float, without: str = NOBODY) -> str:
    """A risk in four digits, rounded up; or the reason why there is none."""
    return without if math.isnan(value) else probability(value)


def text(title: str, public: Rows, curator: Rows, elsewhere: str | None = None) -> str:
    """Aligned lines under a title."""
    lines = [title]
    lines += [f"  {label:<19} {value}" for label, value in public]
    if curator:
        lines += [f"  -- {CURATOR} --", *(f"  {label:<19} {value}" for label, value in curator)]
    if elsewhere:
        lines.append(f"  {elsewhere}")
    return "\n".join(map(printable, lines))


def html(title: str, public: Rows, curator: Rows, elsewhere: str | None = None) -> str:
    """A table for notebooks, readable on light and dark pages."""

    def shown(content: str) -> str:
        return escape(printable(content))

    def rows(pairs: Rows, style: str) -> str:
        return "".join(
            f'<tr style="{style}"><th scope="row" style="text-align:left">{shown(label)}</th>'
            f'<td style="text-align:right">{shown(value)}</td></tr>'
            for label, value in pairs
        )

    heading = f'<tr><th colspan="2" style="text-align:left;border-top:1px solid;color:#d33">{CURATOR}</th></tr>'
    heading = heading if curator else ""
    note = f'<tr><td colspan="2" style="text-align:left;opacity:.75">{shown(elsewhere)}</td></tr>' if elsewhere else ""
    return (
        f'<table style="color:inherit"><caption style="text-align:left"><code>{shown(title)}</code></caption>'
        f"<tbody>{rows(public, '')}{heading}{rows(curator, 'opacity:.75')}{note}</tbody></table>"
    )
