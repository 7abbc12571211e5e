"""Answer: the one description of a result that may be published."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.curator import Curator
from pdrisk._answer.arithmetic.measured import MEASURED_COLUMNS
from pdrisk._core.risks.gaussian_dp import root, squared, success_of
from pdrisk._core.risks.risk import belief
from pdrisk._core.statistics import Histogram
from pdrisk._model.declared.attributes import ATTRIBUTE, EXACT, from_strict_json, strict_json
from pdrisk._model.margins import Margins
from pdrisk._model.plain import plain_label
from pdrisk._model.query import Query
from pdrisk._model.unit import ONE_RECORD
from pdrisk.errors import NotPublicError, ParameterError


def _within(table: pd.DataFrame) -> bool:
    """Whether all values lie in their intervals, as those of an answer do, also where it was rounded a little."""
    if not {"value", "low", "high"} <= set(table.columns):
        return True
    value, low, high = (table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("value", "low", "high"))
    slack = 0.5 * np.nan_to_num(high - low, posinf=0.0, neginf=0.0) + 1e-6 * np.maximum(np.abs(low), np.abs(high))
    return not ((value < low - slack) | (value > high + slack)).any()


@dataclass(frozen=True, slots=True)
class Answer:
    """One release: everything that was answered, and paid for, together. All of it may be published.

    Attributes
    ----------
    eps : float
        Of everything together, also of what was paid to see whether an answer is about enough people.
    extra : float
        How much of that this last part is; 0 without such a rule of a ledger.
    least_group : int or None
        How many people are enough.
    replaces : bool
        Whether the noise hides the value of a record, the number of records being public, instead of its presence.
    unit : str
        Whose presence the noise hides: one record, or the column of persons.
    has_person : bool
        Whether a column says who a person is.
    per_person : str or None
        What the rows of each person became before the statistic was taken.
    rows, groups_each : int
        How many rows of a person count in each group, and in how many groups.
    overall : bool
        Whether so many rows count in all groups together, not in each.
    leaves_out : tuple of {"rows", "groups", "waves"}
        What is left out of people who have more of them, or of people who are not in both waves.
    keys_from : {"given", "declared", "data", "categories", "private"} or None
        Who listed the groups: the publisher, or the data.
    without_missing : tuple of str
        Columns of the groups whose missing keys are in no group.
    combinations : int
        How many groups there are, if they are all combinations of the keys of several columns; else 0.
    combined : tuple of str
        These columns.
    grouped : bool
        Whether there is an answer for each of several groups.
    bins_clamp : bool or None
        Of a histogram, whether values beyond its bins count in the first and the last one.
    index : tuple
        Names of the index levels, as pdrisk gave them.
    headings : tuple or None
        The publishable columns of an answer in SQL; None for tables, whose columns are always the same.
    groups : tuple of str
        Those of them that are group keys.
    curators : tuple of str
        In SQL the columns that only the curator may see, `Curator.COLUMNS` of each line one after another.
    releases : tuple of int
        The number of the release that answers each line, where several share one; else empty.
    names : tuple of str
        What the caller calls the lines, in the index level ``name``; empty otherwise.
    delta : float
        The probability with which eps may not hold; 0 but for private keys.
    eps_groups : float
        How much of eps chose the groups that are shown, where keys are private.
    sizes_shown : tuple of int
        Where keys are private, from how many people on a group may be shown, is shown half of the time, and always.
    mu : float
        Of everything together, as a ledger with ``success=`` counts it; 0 in what was kept before there was one.
    tables, shares : tuple of str, tuple of float
        Of cells with margins the columns of each table, "" of the total, and its share of eps; 0 where it follows from
        the others alone.
    whole : bool
        Whether their counts are shown as whole numbers that add up.
    share_of : str or None
        The columns in whose groups shares add up to 1, "" for all together; None where no shares are shown.
    adjusted : tuple of str
        The columns of all tables, "" of a single number, that were adjusted to each other after they were published.
    state : str or None
        The dataset and the version of the data that are asked, where a ledger pays for a Dataset with ``version=``.
    meanings : dict or None
        With ``state``, how each column that is read is computed, and which codes stand for missing values; "" of one
        as it is stored.
    measured_tables : dict or None
        Of a table with margins and one statistic, what was drawn of each measured table, by its ``axes``.
    measured : dict or None
        Of a table, what was drawn for each line: see `pdrisk._answer.tables.measured_tables.measurements_of`.
    sums : bool
        Whether rows of an answer in SQL are computed over several noisy ones.
    shrunk : str or None
        The column in whose groups values were shrunk towards a common mean, "" for all together; None where none were.
    ends : dict or None
        Of a crosstab whose intervals do not follow from ``measured``, their ends.
    """

    lines: tuple[AnswerLine, ...]
    eps: float
    extra: float = 0.0
    least_group: int | None = None
    where: str | None = None
    where_trusted: bool = False
    bounds_from_data: bool = False
    keys_from: str | None = None
    without_missing: tuple[str, ...] = ()
    combinations: int = 0
    combined: tuple[str, ...] = ()
    replaces: bool = False
    unit: str = ONE_RECORD
    has_person: bool = False
    per_person: str | None = None
    rows: int = 1
    groups_each: int = 1
    overall: bool = False
    leaves_out: tuple[str, ...] = ()
    grouped: bool = False
    bins_clamp: bool | None = None
    index: tuple[Any, ...] = ()
    headings: tuple[Any, ...] | None = None
    groups: tuple[str, ...] = ()
    curators: tuple[str, ...] = ()
    releases: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    delta: float = 0.0
    eps_groups: float = 0.0
    sizes_shown: tuple[int, ...] = ()
    mu: float = 0.0
    tables: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    whole: bool = False
    share_of: str | None = None
    adjusted: tuple[str, ...] = ()
    state: str | None = None
    meanings: dict[str, str] | None = None
    measured_tables: dict[str, Any] | None = None
    measured: dict[str, Any] | None = None
    sums: bool = False
    shrunk: str | None = None
    ends: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, query: Query, lines: tuple[AnswerLine, ...], extra: float, least_group: int | None, mu: float
    ) -> Answer:
        """The description of a query's answer."""
        where, trusted, chosen, kind = query.condition, query.trusted, query.selection, query.lines[0].statistic
        groups = query.groups
        combinations = 0 if groups is None else groups.combinations
        if query.where is not None:
            where = "a mask or function" if query.where.text is None else query.where.text
            trusted = query.where.trusted
        return cls(
            lines=lines,
            eps=float(query.eps) + extra,
            extra=extra,
            least_group=least_group,
            where=where,
            where_trusted=trusted or any(line.is_trusted for line in query.lines),
            bounds_from_data=any(line.bounds_from == "data" for line in query.lines),
            keys_from=None if groups is None else groups.keys_from,
            without_missing=() if groups is None else _texts(groups.without_missing),
            combinations=combinations,
            combined=_texts(groups.columns) if groups is not None and combinations else (),
            replaces=query.replaces,
            unit=query.unit.name,
            has_person=query.unit.is_of_people,
            per_person=query.unit.per_person,
            rows=query.unit.rows,
            groups_each=query.unit.groups,
            overall=query.unit.overall,
            leaves_out=query.unit.leaves_out,
            grouped=groups is not None,
            bins_clamp=kind.clamps if isinstance(kind, Histogram) else query.bins_clamp,
            releases=query.releases if len(query.leads) < len(query.lines) else (),
            delta=float(query.delta),
            eps_groups=0.0 if chosen is None else float(chosen.eps),
            sizes_shown=() if chosen is None else chosen.sizes_shown,
            mu=mu,
            **({} if query.margins is None else _of_margins(query.margins)),
        )

    def check_one_record_each(self, needed: str) -> None:
        """Refuse what needs one record for each person, if a person may have several."""
        if self.rows * self.groups_each > 1 or not (self.has_person or self.unit == ONE_RECORD):
            raise ParameterError(
                f"{needed}, and here one person may have several: ask with per_person= or rows=1, and without groups=."
            )

    def with_sampling_error(self, se: float | None, eps: float, mu: float) -> Answer:
        """The answer with its sampling error, whose eps and m belong to what it costs and tells altogether."""
        (line,) = self.lines
        extended_line = replace(line, sampling_se=se, sampling_eps=eps)
        if eps == 0:
            return replace(self, lines=(extended_line,))
        worst, total = float(belief(line.eps + eps + self.extra, 0.5)), squared(line.mu) + squared(mu)
        success = min(worst, success_of(total))
        extended_line = replace(extended_line, eps=line.eps + eps, mu=root(total), worst_case=worst, success=success)
        return replace(self, lines=(extended_line,), eps=self.eps + eps, mu=root(squared(self.mu) + squared(mu)))

    def check_numbers(self, what: str) -> None:
        """Refuse dates and times, where a function computes with numbers."""
        if dates := [line.name for line in self.lines if line.dates]:
            raise ParameterError(f"{what} takes noisy numbers, and {dates[0]} is a date: ask for numbers apart.")

    def check_unchanged(self, table: pd.DataFrame) -> None:
        """Refuse a table that was computed from others, whose ``attrs`` outlive arithmetic: its eps is no line's."""
        is_own = True
        if self.headings is None and "eps" in table:
            losses = table["eps"].to_numpy(dtype=np.float64, na_value=np.nan)
            known = np.array([line.eps for line in self.lines])
            known = np.unique([known, *(np.round(known, digits) for digits in range(1, 9))])  # of a rounded table
            near = np.isclose(losses[:, None], known[known > 0], rtol=1e-6, atol=0).any(axis=1)
            is_own = bool((np.isnan(losses) | near).all()) and _within(table)
        elif self.share_of is not None and "value" not in table:  # a crosstab of shares, perhaps in per cent
            shares = table.select_dtypes("number").to_numpy(dtype=np.float64, na_value=np.nan)
            is_own = not (shares > 1 + 1e-6).any()
        if not is_own:
            raise ParameterError(
                "this table was computed from others, and costs and tells what they do together: pass each as pdrisk "
                "returned it. Sums and differences of single releases explain themselves."
            )

    @property
    def name(self) -> str:
        """Title of the answer: the names of its lines."""
        return _some([line.name for line in self.lines])

    @property
    def shared(self) -> list[str]:
        """The lines of each release that answers several, for a text."""
        names_by_release: dict[int, list[str]] = {}
        for line, release in zip(self.lines, self.releases, strict=False):
            names_by_release.setdefault(release, []).append(line.name)
        return [_some(names) for names in names_by_release.values() if len(names) > 1]

    @property
    def several(self) -> bool:
        """Whether it is more than one number."""
        return self.grouped or len(self.lines) > 1

    @property
    def withheld(self) -> bool:
        """Whether its only number was withheld."""
        value = self.lines[0].value
        return value is not None and value != value  # NaN

    @property
    def public_columns(self) -> set[Any]:
        """Columns of its table that may be published."""
        weight_column = () if self.shrunk is None else (WEIGHT,)
        return set(TABLE + MEASURED_COLUMNS + weight_column + self.index if self.headings is None else self.headings)

    @property
    def curators_columns(self) -> tuple[str, ...]:
        """Columns of its table that only the curator may see."""
        return Curator.COLUMNS if self.headings is None else self.curators

    @property
    def text(self) -> str:
        """The description as one JSON text for ``attrs``, which pandas copies deeply at every step of a chain."""
        kept = {name: value for name, usual in USUAL.items() if (value := getattr(self, name)) != usual}
        lines = [{name: getattr(line, name) for name in OF_LINE} for line in self.lines]
        return strict_json({"answer": {**kept, "lines": lines}})

    def attach(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table, with this description alone in its attrs."""
        table.attrs = {ATTRIBUTE: self.text}
        return table

    @classmethod
    def from_attrs(cls, attrs: Mapping[Any, Any]) -> Answer | None:
        """The answer that attrs describe; None if they describe none.

        Raises
        ------
        NotPublicError
            If they mark exact numbers, which are no release.
        """
        description, answer = None, None
        try:
            description = from_strict_json(attrs.get(ATTRIBUTE, "{}"))
            if description != EXACT and "answer" in description:
                answer = cls._from_values(description["answer"])
        except (TypeError, ValueError, KeyError, AttributeError):
            return None
        if description == EXACT:
            raise NotPublicError(
                "these are the curator's exact figures, not a release: nothing of them may be published. Explain or "
                "publish the answer itself."
            )
        return answer

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Answer:
        pairs = ("bounds", "other_bounds", "clip")
        lines = [AnswerLine(**{**line, **{name: _pair(line.get(name)) for name in pairs}}) for line in values["lines"]]
        listed = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **listed, "lines": tuple(lines)})


def _of_margins(margins: Margins) -> dict[str, Any]:
    """The fields about the tables of cells with margins."""
    shares, divisor = dict(margins.shares), margins.divisor
    tables = list(dict.fromkeys([*margins.tables, *shares]))
    return {
        "tables": tuple(map(margins.named, tables)),
        "shares": tuple(float(shares.get(axes, 0)) for axes in tables),
        "whole": margins.whole,
        "share_of": None if divisor is None else margins.named(divisor),
    }


USUAL: Final[dict[str, Any]] = {field.name: field.default for field in dataclasses.fields(Answer)}
OF_LINE: Final = tuple(field.name for field in dataclasses.fields(AnswerLine))
NO_ANSWER: Final = "this frame does not say what was asked: pass the answer as pdrisk returned it."
CLIP: Final = ("clip_low", "clip_high")
SAMPLING: Final = ("sampling_se", "sampling_low", "sampling_high")
TABLE: Final = ("value", "low", "high", "eps", "worst_case", "delta", "success", *CLIP, *SAMPLING, "release")
WEIGHT: Final = "weight"  # of a shrunk table
SHOWN: Final = 3  # names in a title


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _texts(columns: Iterable[Hashable]) -> tuple[str, ...]:
    return tuple(str(plain_label(column)) for column in columns)


def _pair(bounds: Any) -> tuple[float, float] | None:
    return None if bounds is None else (float(bounds[0]), float(bounds[1]))
