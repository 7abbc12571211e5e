"""`explain` for every kind of answer: a release, or a frame whose ``attrs`` say what it is."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from importlib import import_module
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.curator import Curator, Exposed
from pdrisk._answer.arithmetic.combined import Combined
from pdrisk._answer.release import Release
from pdrisk._answer.words import explained
from pdrisk._answer.words.ledger import explained_ledger
from pdrisk._core.foreign import own_errors
from pdrisk._core.order import Quantile
from pdrisk._core.risks.risk import most_exposed_first, privacy_loss
from pdrisk._model.declared.attributes import ATTRIBUTE, PUBLIC_ROWS
from pdrisk._model.plain import plain_label
from pdrisk._printing import DisplayedText
from pdrisk.errors import ColumnTypeError, ParameterError

OF_NOBODY: Final = "Rows of public tables, without noise: nobody is in them, and no eps is spent."


@own_errors
def explain(
    answer: Release | Combined | pd.DataFrame | None = None,
    audience: str = "participant",
    so_far: object = None,
    *,
    prior: float | None = None,
    language: str = "en",
) -> str:
    """Explanation of an answer in plain words: of a `Release`, a sum of them, or a table of ``by=``, ``agg``, ``sql``.

    Parameters
    ----------
    answer : Release, sum or quotient of releases, DataFrame, or Polars or Arrow table, optional
        As pdrisk returned it. Groups cost their eps once, since everybody is in at most one. Without it the text is
        about all answers that the ledger ``so_far`` pays for, those to come included where it has a limit.
    audience : {"participant", "analyst", "curator", "publication"}
        Reader of the text: a person who considers taking part, somebody who works with the values, somebody who may see
        the data, or the public, as a label.
    so_far : float or Ledger, optional
        The eps of all releases so far about these people, this one included; or the ledger that paid for them.
    prior : float, optional
        Probability from which the attacker starts, as in ``1 / 551``; by default a coin's 1/2.
    language : str
        Language of the text, such as ``"en"``.

    Returns
    -------
    str

    Raises
    ------
    NotPublicError
        For a participant or a publication, if the bounds came from the data.
    ParameterError, ColumnTypeError
        If pdrisk did not make this table, if its curator's columns are needed but missing, or if ``so_far`` is less
        than this answer alone.

    See Also
    --------
    Release.explain

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"x": [3, 1, 10] * 99})
    >>> answer = frame.dprisk.agg({"x": ["sum", "count"]}, eps=2, bounds=(0, 10))
    >>> print(pdrisk.explain(answer, "analyst"))
    sum(x), count(x), for the analyst
      sum(x)    of values clamped to 0-10, with noise: ±14.9787, 95 % sure, for eps 2
      count(x)  with noise: ±2, 95 % sure, for eps 2
      interval  where the answer of the clamped values without noise lies, 95 % sure; how much clamping changes is
                not known; sampling error comes on top
      eps       2; sum(x), count(x) come from one release and cost its eps once, together
      left      not known here; so_far=ledger would tell
      risk      In the hardest case we can think of, someone knows everybody else's records and has to say whether
                one person is in the data. Without this release they can only toss a coin: right 50 times out of
                100. With it, at most 89 times out of 100.
      so far    this counts one release; losses add up, so every further one adds to it
    """
    if answer is None and so_far is not None:
        if prior is not None:
            raise ParameterError("prior= is for one answer: of all together, an attacker starts from a coin's 1/2.")
        return explained_ledger(so_far, audience, language)
    if isinstance(answer, Release | Combined):
        return answer.explain(audience, so_far, prior=prior, language=language)
    table = _in_pandas(answer)
    if table is None:
        raise ColumnTypeError(f"explain takes an answer of pdrisk, not {type(answer).__name__}.")
    description = Answer.from_attrs(table.attrs)
    if description is None and table.attrs.get(PUBLIC_ROWS):
        return DisplayedText(OF_NOBODY)
    if description is None:
        raise ParameterError(NO_ANSWER)
    description.check_unchanged(table)
    import_module("pdrisk._answer.tables.quality").check_unscaled(table)  # later: tables import their explanations
    is_curators = isinstance(audience, str) and audience == "curator" and not description.delta
    exposed = _most_exposed(description, table) if is_curators else ()
    return explained(description, audience, so_far, language, prior=prior, exposed=exposed)


def _in_pandas(answer: object) -> pd.DataFrame | None:
    """A frame, or an Arrow table as a frame with the description from its metadata; None for anything else."""
    if isinstance(answer, pd.DataFrame):
        return answer
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not isinstance(answer, arrow.Table):
        return None
    table: pd.DataFrame = answer.to_pandas()
    text = (answer.schema.metadata or {}).get(ATTRIBUTE.encode())
    table.attrs = {} if text is None else {ATTRIBUTE: text.decode()}
    return table


def _most_exposed(answer: Answer, table: pd.DataFrame) -> list[Exposed | None]:
    """The curator's numbers of the most exposed group of each line, as far as the table holds them."""
    if answer.headings is None:
        levels = answer.index[1:] if answer.names else answer.index
        return [_of_rows(_rows_of(answer, line, table), levels, line.eps, answer.grouped) for line in answer.lines]
    width = len(Curator.COLUMNS)
    shown = [answer.curators[at : at + width] for at in range(0, len(answer.curators), width)]
    headings = [()] * (len(answer.lines) - len(shown)) + shown  # what was asked before the last query has no columns
    exposed = []
    for line, columns in zip(answer.lines, headings, strict=True):
        rows = table[[name for name in columns if name in table.columns]]
        if len(rows.columns) == width:
            keys = [name for name in answer.groups if name in table.columns]
            rows = rows.set_axis(list(Curator.COLUMNS), axis=1).join(table[keys])
            exposed.append(_of_rows(rows, tuple(keys), line.eps, answer.grouped))
        else:
            exposed.append(None)
    return exposed


def _rows_of(answer: Answer, line: AnswerLine, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one line; in tables of ``agg`` the index says which these are."""
    if answer.names:
        own_name = answer.names[answer.lines.index(line)]
        return table[[name == own_name for name in _level(table, "name")]]
    if answer.index[:2] != ("column", "statistic"):
        level = answer.index[-1] if len(answer.lines) > 1 else None  # of several statistics of one column
        if level == "q":
            return table[[Quantile(float(q)).label == line.statistic for q in _level(table, level)]]
        return table if level is None else table[[label == line.statistic for label in _level(table, level)]]
    labels = [[plain_label(label) for label in _level(table, name)] for name in ("column", "statistic")]
    return table[[pair == (line.column, line.statistic) for pair in zip(*labels, strict=True)]]


def _of_rows(rows: pd.DataFrame, index: tuple[Hashable, ...], eps: float, grouped: bool) -> Exposed | None:
    """The numbers of the most exposed row, and the name of its group."""
    if not len(rows) or any(name not in rows.columns for name in Curator.COLUMNS):
        return None
    numbers = {name: rows[name].to_numpy(dtype=np.float64) for name in Curator.COLUMNS}
    order = most_exposed_first(numbers["n"], numbers["two_worlds"], numbers["many_worlds"], numbers["identifiability"])
    most = int(order[0])
    row: dict[str, Any] = {name: float(values[most]) for name, values in numbers.items()}
    loss = 0.0 if row["two_worlds"] <= 0.5 else eps  # of a risk that rounds to 1 no more is known
    if 0.5 < row["two_worlds"] < 1:
        loss = min(eps, float(privacy_loss(row["two_worlds"], 0.5)))
    groups = [name for name in index if name not in ("column", "statistic", "release")]
    named = ", ".join(str(_level(rows, name)[most]) for name in groups) or f"row {most + 1}" * grouped
    return Exposed(Curator(**row | {"n": int(row["n"]), "loss": loss, "left_out": None}), named or None)


def _level(table: pd.DataFrame, name: Hashable) -> Any:
    """The labels that pdrisk put into the index, also if they have become a column since."""
    if name in table.index.names:
        return table.index.get_level_values(list(table.index.names).index(name))
    if name in table.columns:
        return list(table[name])
    raise ParameterError(
        "the index of this frame is not the one pdrisk gave it: pass the answer as pdrisk returned it."
    )
