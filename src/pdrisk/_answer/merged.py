"""`explain` for every kind of answer: a release, or a frame whose ``attrs`` say what it is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.release import CURATOR_ONLY, Release, half_width
from pdrisk._answer.words import Exposed, Line, Told, explained
from pdrisk._core.foreign import own_errors
from pdrisk._core.risk import METRICS, Risk, most_exposed_first, posterior
from pdrisk._model.columns import plain_label
from pdrisk._model.query import written
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["explain"]

SECRETS = ("two_worlds", "many_worlds", "identifiability", "local_sensitivity", "n")  # of SQL, in their order there
SHOWN = 3  # names in a title


@own_errors
def explain(
    answer: Release | pd.DataFrame, audience: str = "participant", so_far: object = None, *, language: str = "en"
) -> str:
    """What an answer means, in words for who has to know: a `Release`, or a frame of ``by=``, ``agg`` or ``sql``.

    Parameters
    ----------
    answer : Release or DataFrame
        As pdrisk returned it; groups cost their eps once, since everybody is in at most one.
    audience : {"participant", "analyst", "curator", "publication"}
    so_far : float or Ledger, optional
        The eps of all releases so far about these people, this one included; or the ledger that paid for them.
    language : str

    Raises
    ------
    NotPublicError
        For a participant or a publication, if the bounds came from the data.
    ParameterError, ColumnTypeError
        If this is no answer, the curator's columns are asked for and gone, or ``so_far`` is less than this alone.

    See Also
    --------
    Release.explain

    Examples
    --------
    >>> import pandas as pd, pdrisk
    >>> frame = pd.DataFrame({"x": [3, 1, 10]})
    >>> answer = frame.dprisk.agg({"x": ["sum", "count"]}, eps=2, bounds=(0, 10))
    >>> print(pdrisk.explain(answer, "analyst"))
    sum(x), count(x), for the analyst
      sum(x)    with noise: ±29.9573, 95 % sure, for eps 1
      count(x)  with noise: ±2.99573, 95 % sure, for eps 1
      eps       2
      left      not known here; so_far=ledger would tell
      risk      Someone who knows everybody else's records and has to say whether one person is in the data can
                only toss a coin without this release: right 50 times out of 100. With it, at most 89 times out of
                100.
      so far    this counts one release; losses add up, so every further one adds to it
    """
    if isinstance(answer, Release):
        return answer.explain(audience, so_far, language=language)
    if not isinstance(answer, pd.DataFrame):
        raise ColumnTypeError(f"explain takes what pdrisk answered, not {type(answer).__name__}.")
    if answer.attrs.get("no_noise"):
        raise ParameterError("these are the curator's exact figures, not a release: explain the answer you publish.")
    if "lines" not in answer.attrs:
        raise ParameterError("this frame does not say what was asked: pass the answer as pdrisk returned it.")
    return explained(_told(answer), audience, so_far, language)


def _told(answer: pd.DataFrame) -> Told:
    attrs = answer.attrs
    sql = "columns" in attrs
    lines, grouped = _lines_of_sql(answer) if sql else _lines(answer)
    names = [line.name for line in lines]
    name = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    size, each = attrs.get("least_group", (None, 0.0))
    # Whether people are enough is looked at once for each column. In SQL each FILTER counts too, and is not known here.
    looks = len(attrs["lines"]) if sql else len({line["column"] for line in attrs["lines"]})
    return Told(
        name=name,
        lines=tuple(lines),
        eps=attrs["eps"] + each * looks,
        mechanism=attrs["mechanism"],
        where=attrs["where"],
        where_trusted=attrs["where_trusted"],
        bounds_from_data=attrs["bounds_from_data"],
        grouped=grouped,
        keys_from_data=attrs["keys_from_data"],
        extra=each * looks,
        least_group=size,
    )


def _lines(answer: pd.DataFrame) -> tuple[list[Line], bool]:
    """Of a ``by=`` or ``agg`` answer: its rows say what each line is."""
    if missing := [name for name in ("eps", "scale", "global_sensitivity") if name not in answer.columns]:
        raise ParameterError(f"columns {', '.join(missing)} are missing: pass the answer as pdrisk returned it.")
    asked, index = answer.attrs["lines"], answer.attrs["index"]
    several = index[:2] == ["column", "statistic"]
    labels = [[plain_label(label) for label in _level(answer, name)] for name in index[:2]] if several else []
    found = []
    for line in asked:
        rows = answer
        if several:
            own = zip(*labels, strict=True)
            rows = answer[[pair == (line["column"], line["statistic"]) for pair in own]]
        if len(rows):
            found.append(_line(line, rows, index[2:] if several else index))
    if not found:
        raise ParameterError("no row of the answer is left: pass it as pdrisk returned it.")
    return found, not several or len(index) > 2


def _level(answer: pd.DataFrame, name: Hashable) -> Any:
    """The labels that pdrisk put into the index, also where they were made a column."""
    if name in answer.index.names:
        return answer.index.get_level_values(list(answer.index.names).index(name))
    if name in answer.columns:
        return answer[name]
    raise ParameterError(
        "the index of this frame is not the one pdrisk gave it: pass the answer as pdrisk returned it."
    )


def _line(line: dict[str, Any], rows: pd.DataFrame, groups: list[Hashable]) -> Line:
    exposed = None
    if all(name in rows.columns for name in CURATOR_ONLY):
        most = _most_exposed(rows, float(rows["global_sensitivity"].iloc[0]))
        group = ", ".join(str(_level(rows, name)[most]) for name in groups) if groups else None
        row = rows.iloc[most]
        risk = Risk(**{name: float(row[name]) for name in METRICS})
        exposed = Exposed(float(row["local_sensitivity"]), int(row["n"]), risk, group)
    first = rows.iloc[0]
    return Line(
        name=written(line["statistic"], line["column"]),
        eps=float(first["eps"]),
        bounds=None if line["bounds"] is None else tuple(line["bounds"]),
        scale=float(first["scale"]),
        half=float(half_width(first["scale"], rounded_to=line.get("rounded_to"))),
        global_sensitivity=float(first["global_sensitivity"]),
        exposed=exposed,
    )


def _most_exposed(rows: pd.DataFrame, whole: float) -> int:
    """Where the row stands that exposes somebody most."""
    names = ("n", "local_sensitivity", "many_worlds", "identifiability")
    n, local, many, identified = (rows[name].to_numpy(dtype=np.float64) for name in names)
    return int(most_exposed_first(n, local / whole, many, identified)[0])


def _row_of_sql(answer: pd.DataFrame, place: int) -> str:
    """A row by its keys, as far as they were selected."""
    keys = [name for name in answer.attrs.get("groups", []) if name in answer.columns]
    return ", ".join(str(answer[name].iloc[place]) for name in keys) or f"row {place + 1}"


def _lines_of_sql(answer: pd.DataFrame) -> tuple[list[Line], bool]:
    """Of an answer in SQL: ``attrs`` say what each line is, and the curator's columns stand in the order of lines."""
    asked, secret = answer.attrs["lines"], answer.attrs["curator_only"]
    known = len(secret) == len(SECRETS) * len(asked) and len(answer) and all(name in answer.columns for name in secret)
    grouped = len(answer) > 1
    lines = []
    for place, line in enumerate(asked):
        exposed = None
        if known:
            own = secret[len(SECRETS) * place : len(SECRETS) * (place + 1)]
            facts = answer[own].set_axis(list(SECRETS), axis=1)
            most = _most_exposed(facts, line["global_sensitivity"])
            row = facts.iloc[most]
            risk = Risk(float(posterior(line["eps"])), *(float(row[name]) for name in SECRETS[:3]))
            group = _row_of_sql(answer, most) if grouped else None
            exposed = Exposed(float(row["local_sensitivity"]), int(row["n"]), risk, group)
        lines.append(
            Line(
                name=line["name"],
                eps=line["eps"],
                bounds=None if line["bounds"] is None else tuple(line["bounds"]),
                scale=line["scale"],
                half=float(half_width(line["scale"], rounded_to=line.get("rounded_to"))),
                global_sensitivity=line["global_sensitivity"],
                exposed=exposed,
            )
        )
    return lines, grouped
