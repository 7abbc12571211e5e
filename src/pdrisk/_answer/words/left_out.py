"""Words for rows and groups of a person that are left out: what the rule is, never how much it leaves out."""

from __future__ import annotations

from collections.abc import Mapping

from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.answer import Answer
from pdrisk._printing import printable


def rule_of(answer: Answer, wording: Mapping[str, str]) -> str:
    """What counts of each person, if an answer may leave out rows or groups of theirs; else nothing."""
    limits = []
    if "rows" in answer.leaves_out:
        limits.append(wording["limit_rows" if answer.rows > 1 else "limit_row"] + where_rows_count(answer, wording))
    if "groups" in answer.leaves_out:
        limits.append(wording["limit_groups" if answer.groups_each > 1 else "limit_group"])
    if "waves" in answer.leaves_out:
        limits.append(wording["limit_waves"] + wording["weight_of_later"] * answer.lines[0].is_weighted)
    if not limits:
        return ""
    numbers = {"rows": f"{answer.rows:,}", "groups": f"{answer.groups_each:,}"}
    rule = ", ".join(limits).format(unit=printable(answer.unit), **numbers)
    return wording["left_out_is"].format(rule=rule)


def where_rows_count(answer: Answer, wording: Mapping[str, str]) -> str:
    """The groups that a number of rows is about; nothing without groups."""
    return wording["in_all_groups"] if answer.overall else wording["in_each_group"] * answer.grouped


def share_left_out(share: float | None, answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """For curators what is left out of an answer that may leave out some: the share, or the rule if it is not known."""
    if not answer.leaves_out:
        return []
    if share is None or share != share:  # NaN
        return [(wording["left_out"], rule_of(answer, wording))]
    text = wording["left_out_share"].format(share=formatting.share(share)) if share else wording["clamped_none"]
    return [(wording["left_out"], text)]


def of_truncated(rows: list[tuple[str, str]], answer: Answer, wording: Mapping[str, str]) -> list[tuple[str, str]]:
    """Rows of a text, of which that about the interval says what it is an interval of."""
    if not answer.leaves_out:
        return rows
    return [(label, text + wording["interval_truncated"] * (label == wording["interval"])) for label, text in rows]
