"""Groups of an answer in words: who listed their keys, and which records are in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.answer import Answer
from pdrisk._printing import printable

SOURCES: Final = {"data": "groups_from_data", "categories": "groups_from_categories", "private": "groups_private"}


def groups_said(answer: Answer, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """The rows of an explanation about the groups of an answer and what adds up; none without groups."""
    if not answer.grouped:
        return [*_sums(answer, said), *_margins(answer, said)]
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
    return [(said["groups"], text), *_sums(answer, said), *_margins(answer, said), *_shrunk(answer, said)]


def _shrunk(answer: Answer, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about values that were shrunk towards a common mean; none of others."""
    if answer.shrunk is None:
        return []
    field = "shrunk_in" if answer.shrunk else "shrunk_all"
    return [(said["shrunk"], said[field].format(column=printable(answer.shrunk)))]


def _sums(answer: Answer, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about sums over noisy cells of which some are not shown; none of others."""
    if not answer.sums or (answer.least_group is None and not answer.delta):
        return []
    return [(said["sums"], said["sums_of_cells" if answer.least_group is not None else "sums_of_groups"])]


def _margins(answer: Answer, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """The row about margins: which tables add up, what measured them, and what is shown; none without margins."""
    if answer.adjusted:
        tables = said["names_and"].join(_table(name, said) for name in answer.adjusted)
        text = said["adjusted_to"].format(tables=tables) + said["margins_whole"] * answer.whole
        state = said["adjusted_by_word"] if answer.state is None else said["adjusted_state"].format(state=answer.state)
        return [(said["margins"], text + state)]
    if not answer.tables:
        return []
    measured = [
        said["table_measured"].format(share=formatting.share(share), table=_table(name, said))
        for name, share in zip(answer.tables, answer.shares, strict=True)
        if share
    ]
    text = said["margins_are"].format(measured=said["names_and"].join(measured))
    text += said["margins_whole"] * answer.whole
    text += said["margins_of_listed"] * (answer.bins_clamp is None)
    if answer.share_of is None:
        return [(said["margins"], text)]
    of = said["share_of_groups"].format(columns=printable(answer.share_of)) if answer.share_of else said["share_of_all"]
    return [(said["shares"], of), (said["margins"], text)]


def _table(name: str, said: Mapping[str, str]) -> str:
    return said["table_by"].format(columns=printable(name)) if name else said["table_of_all"]
