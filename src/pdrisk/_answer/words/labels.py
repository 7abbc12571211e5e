"""Labels of answers: their titles, with what values were clamped to, and the values from Python that they hide."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.formatting import number
from pdrisk._core.statistics import Proportion
from pdrisk._printing import printable


def title(answer: Answer) -> str:
    """Names of all lines; of one alone with what its values were clamped to, of changes with whom they are about."""
    ends = clamped(answer, answer.lines[0]) if len(answer.lines) == 1 else ""
    about = ", of those in both" * ("waves" in answer.leaves_out)
    if not ends:
        return answer.name + about
    return f"{answer.name}{' ' if ends.startswith('of ') else ', '}{ends}{about}"


def clamped(answer: Answer, line: AnswerLine) -> str:
    """What the values of a line were clamped to, as text; "" where none can lie beyond, as of counts.

    Values that were clipped have a name that says so, and the data's own bounds clamp nothing.
    """
    if answer.bounds_from_data or line.clip is not None or line.statistic == Proportion().label:
        return ""
    known = [(printable(str(name)), ends) for name, ends in line.ranges if ends is not None]
    form = "{} to {}" if line.dates else "{}-{}"
    spans = [(form if low >= 0 else "{} to {}").format(line.shown(low), line.shown(high)) for _, (low, high) in known]
    if len(known) > 1:
        spans = [f"{name} {span}" for (name, _), span in zip(known, spans, strict=True)]
    by_where = " (bounds from WHERE)" * line.bounds_by_where
    parts = [f"of values clamped to {' and '.join(spans)}{by_where}"] if spans else []
    if line.weights is not None:
        parts.append(f"weights trimmed at {number(line.weights[1])}")
    return ", ".join(parts)


def hidden_values(answer: Answer) -> str:
    """Names that stand for values from Python in the filter, as ``@limit``; "" without any."""
    names = re.findall(r"(?<!\w)@\w+", answer.where or "") if answer.where_trusted else []
    return ", ".join(dict.fromkeys(names))


def of_survey(line: AnswerLine, wording: Mapping[str, str]) -> str:
    """The weights of a line and its sampling error, in words; "" of one without either."""
    text = ""
    if line.weights is not None:
        text = wording["weights_are"].format(column=printable(str(line.weights[0])), most=number(line.weights[1]))
    if line.sampling_se is not None:
        text += wording["sampling_error_is"].format(se=number(line.sampling_se))
    if line.sampling_eps:
        text += wording["sampling_error_costs"].format(eps=f"{line.sampling_eps:.6g}")
    return text
