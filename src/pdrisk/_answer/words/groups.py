"""Groups of an answer in words: who listed their keys, and which records are in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pdrisk._answer.answer import Answer
from pdrisk._printing import printable

__all__ = ["groups_said"]

SOURCES: Final = {"data": "groups_from_data", "categories": "groups_from_categories", "private": "groups_private"}


def groups_said(answer: Answer, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row of an explanation about the groups of an answer; none without groups."""
    if not answer.grouped:
        return []
    text = said[SOURCES.get(answer.keys_from or "", "groups_declared")]
    if answer.sizes_shown:  # numbers of people from which on chance shows a group
        least, half, surely = answer.sizes_shown
        text += said["sizes_shown"].format(half=f"{half:,}", surely=f"{surely:,}")
        text += said["sizes_hidden"].format(least=f"{least:,}") if least > 1 else ""
    if answer.combinations:
        columns = said["names_and"].join(map(printable, answer.combined))
        text += said["groups_combined"].format(number=f"{answer.combinations:,}", columns=columns)
    if answer.without_missing:
        columns = said["names_or"].join(map(printable, answer.without_missing))
        text += said["groups_without_missing"].format(columns=columns)
    return [(said["groups"], text)]
