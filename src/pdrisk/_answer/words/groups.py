"""Groups of an answer in words: who listed their keys, and which records are in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.answer import Answer
from pdrisk._printing import printable

SOURCES: Final = {"data": "groups_from_data", "categories": "groups_from_categories", "private": "groups_private"}


def groups_said(answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """The rows of an explanation about the groups of an answer and what adds up; none without groups."""
    if not answer.grouped:
        return [*_sums(answer, wording), *_margins(answer, wording)]
    text = wording[SOURCES.get(answer.keys_from or "", "groups_declared")]
    if answer.sizes_shown:  # numbers of people from which on chance shows a group
        least, half, surely = answer.sizes_shown
        text += wording["sizes_shown"].format(half=f"{half:,}", surely=f"{surely:,}")
        text += wording["sizes_hidden"].format(least=f"{least:,}") if least > 1 else ""
    if answer.combinations:
        columns = wording["names_and"].join(map(printable, answer.combined))
        text += wording["groups_combined"].format(number=f"{answer.combinations:,}", columns=columns)
    if answer.without_missing:
        columns = wording["names_or"].join(map(printable, answer.without_missing))
        text += wording["groups_without_missing"].format(columns=columns)
    return [(wording["groups"], text), *_sums(answer, wording), *_margins(answer, wording), *_shrunk(answer, wording)]


def _shrunk(answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about values that were shrunk towards a common mean; none of others."""
    if answer.shrunk is None:
        return []
    field = "shrunk_in" if answer.shrunk else "shrunk_all"
    return [(wording["shrunk"], wording[field].format(column=printable(answer.shrunk)))]


def _sums(answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about sums over noisy cells of which some are not shown; none of others."""
    if not answer.sums or (answer.least_group is None and not answer.delta):
        return []
    return [(wording["sums"], wording["sums_of_cells" if answer.least_group is not None else "sums_of_groups"])]


def _margins(answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about margins: which tables add up, what measured them, and what is shown; none without margins."""
    if answer.adjusted:
        tables = wording["names_and"].join(_table(name, wording) for name in answer.adjusted)
        text = wording["adjusted_to"].format(tables=tables) + wording["margins_whole"] * answer.whole
        state = (
            wording["adjusted_by_word"]
            if answer.state is None
            else wording["adjusted_state"].format(state=answer.state)
        )
        return [(wording["margins"], text + state)]
    if not answer.tables:
        return []
    measured = [
        wording["table_measured"].format(share=formatting.share(share), table=_table(name, wording))
        for name, share in zip(answer.tables, answer.shares, strict=True)
        if share
    ]
    text = wording["margins_are"].format(measured=wording["names_and"].join(measured))
    text += wording["margins_whole"] * answer.whole
    text += wording["margins_of_listed"] * (answer.bins_clamp is None)
    if answer.share_of is None:
        return [(wording["margins"], text)]
    of = (
        wording["share_of_groups"].format(columns=printable(answer.share_of))
        if answer.share_of
        else wording["share_of_all"]
    )
    return [(wording["shares"], of), (wording["margins"], text)]


def _table(name: str, wording: Mapping[str, str]) -> str:
    return wording["table_by"].format(columns=printable(name)) if name else wording["table_of_all"]
