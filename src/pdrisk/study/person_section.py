"""Section of a report for a person who considers taking part: what an eps means for them."""

from __future__ import annotations

from importlib.util import find_spec

from pdrisk._answer import pictures
from pdrisk._answer.words import participant, reached
from pdrisk.study.page import Page, svg_of

OWN_BOUNDS = (
    "It holds for answers with declared bounds. Those of this page are the data's own: an answer with them is two "
    "people's values, which no eps protects."
)


def heading(eps: float) -> str:
    """Heading of the section."""
    return f"What to tell the people: one answer with eps = {eps:g}"


def tell(page: Page, eps: float, *, bounds_from_data: bool) -> None:
    """Add the section: the words for a participant, and a picture of them where matplotlib is installed."""
    page.heading(heading(eps))
    page.text(" ".join(participant(reached(eps)).split("\n")))
    if find_spec("matplotlib") is not None:
        caption = "The same as signs. " + (OWN_BOUNDS if bounds_from_data else "It depends on eps alone.")
        page.figure(svg_of(pictures.icons(eps), "icons"), caption, pictures.icons_text(eps))
