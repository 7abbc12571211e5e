"""Tables of a plan: what each is about, the noise of its answers at an eps, and the eps that a wanted noise needs."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import Count, Sum, WholeSum
from pdrisk._core.summary import Summary
from pdrisk._core.surveys.weighted import SumOfWeights
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk._model.answering import joined
from pdrisk._model.arguments import checked_flag
from pdrisk._model.groups.keys import MOST
from pdrisk._model.plain import float_of
from pdrisk._model.query import UNIT, Line, Query
from pdrisk._model.unit import judged_people, judged_unit
from pdrisk._model.weights import check_weighing
from pdrisk.engines.numpy.frame import FrameEngine
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_RECORDS: Final = 10_000_000  # of more the noise of means is smaller still
TARGETS: Final = ("noise95", "noise95_widest", "relative")
OF_PERSON: Final = ("person", "per_person", "constant", "rows", "groups")
OF_LINE: Final = ("bounds", "mechanism", "step", "interval", "clip")
OPTIONS: Final = (*TARGETS, "by", "margins", "n", *OF_PERSON, *OF_LINE)
DECADES: Final = 8  # of the eps that a plan may give, from 1e-6 to 100, each with four digits
A_DECADE: Final = 9000
GRID: Final = range(DECADES * A_DECADE)

Ask = Callable[[object, Mapping[str, Any]], Iterator[Line]]


def eps_at(place: int) -> Fraction:
    """An eps of the grid: four digits, as people write them."""
    decade, digits = divmod(place, A_DECADE)
    return Fraction(1000 + digits) * Fraction(10) ** (decade - 9)


def reading(lead: Line, eps: Fraction, size: int, weight: float | None = None) -> Summary:
    """Summary of so many values that are spread evenly between the bounds of a line, each with the same weight."""
    within, records = lead.universe or UNIT, min(size, MOST_RECORDS)
    values = np.linspace(within.lo, within.hi, records)
    if isinstance(lead.statistic, SumOfWeights):
        values = np.full(records, weight)
    frame = pd.DataFrame({lead.column: values})
    if lead.other is not None:
        frame[lead.other] = weight
    drawn = tuple(replace(lead, statistic=statistic) for statistic in lead.together) or (lead,)
    return FrameEngine(frame, stored=frame).read(Query(drawn, (eps,), releases=(0,) * len(drawn))).summaries[0]


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a plan: questions about the same groups, which are of equal size.

    Attributes
    ----------
    name : str
        What the caller calls it, with the columns of its groups.
    query : Query
        Without shares.
    wanted : tuple of (str, float) or None
        For each line the target that it has.
    size, cells : int
        Number of records of a group, and of groups.
    finer : PlannedTable or None
        Of a margin, the table whose groups add up to its own.
    weight : float or None
        That of each record, where questions are weighted.
    """

    name: str
    query: Query
    wanted: tuple[tuple[str, float] | None, ...]
    size: int
    cells: int
    finer: PlannedTable | None = None
    weight: float | None = None
    summaries: dict[Any, Summary] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def without_targets(
        cls, lines: tuple[Line, ...], releases: tuple[int, ...], size: int, weight: float | None
    ) -> PlannedTable:
        """Questions of which no noise is wanted, but their share of what there is."""
        return cls("", Query(lines, (), releases=releases), (None,) * len(lines), size, 1, weight=weight)

    @property
    def leads(self) -> tuple[int, ...]:
        """The first line of each release."""
        return self.query.leads

    def members(self, release: int) -> list[int]:
        """The lines of a release."""
        return [line for line, number in enumerate(self.query.releases) if number == release]

    def has_target(self, release: int) -> bool:
        """Whether one of its answers has one."""
        return any(self.wanted[line] is not None for line in self.members(release))

    def price(self, release: int, eps: Fraction) -> Fraction:
        """What a filter of success charges for a release at this eps: the square of its m."""
        lines = tuple(self.query.lines[line] for line in self.members(release))
        return replace(self.query, lines=lines, shares=(eps,), releases=(0,) * len(lines)).mu2

    def noise(self, line: int, eps: Fraction, column: str = "noise95") -> float:
        """What a column of the plan says of the noise of an answer; NaN where nothing public decides it."""
        mechanism = self.query.mechanism(line, eps=eps)
        if column == "noise95_widest":
            widest = mechanism.widest_noise95(self.size)
            return math.nan if widest is None else widest
        return float(mechanism.noise95(self._summary(line, eps))[0])

    def target(self, line: int, eps: Fraction) -> tuple[str, float] | None:
        """The column of the plan that is to be at most this; None without a target."""
        target = self.wanted[line]
        if target is None or target[0] != "relative":
            return target
        mechanism = self.query.mechanism(line, eps=eps)
        exact = mechanism.statistic.value(self._summary(line, eps), mechanism.universe)
        return "noise95", target[1] * float(abs(exact[0]))

    def scale(self, line: int, eps: Fraction) -> float | None:
        """Scale of the noise of an answer whose groups add up; None of others."""
        is_added = type(self.query.lines[line].statistic) in (Count, Sum, WholeSum)
        return self.query.mechanism(line, eps=eps).scale if is_added else None

    def check(self, release: int, eps: Fraction) -> None:
        """Refuse an eps that a release cannot be drawn at."""
        self.query.lines[self.leads[release]].calibrated(eps).check()

    def reaches(self, release: int, eps: Fraction, times: float = 1.0) -> bool:
        """Whether the noise of a release is within its targets, or so many times them."""
        try:
            self.check(release, eps)
        except ParameterError:  # too small an eps for the mechanism
            return False
        return all(
            self.noise(line, eps, target[0]) <= target[1] * times
            for line in self.members(release)
            if (target := self.target(line, eps)) is not None
        )

    def least_eps(self, release: int, times: float = 1.0) -> Fraction:
        """The least eps of the grid by which a release reaches its targets, or so many times them.

        Raises
        ------
        ParameterError
            If the largest one does not.
        """
        place = bisect.bisect_left(GRID, True, key=lambda at: self.reaches(release, eps_at(at), times))
        if place < len(GRID):
            return eps_at(place)
        most = eps_at(GRID[-1])
        for line in self.members(release):
            target = self.target(line, most)
            if target is not None and not (noise := self.noise(line, most, target[0])) <= target[1] * times:
                raise ParameterError(
                    f"{self.said(line)} has no known {target[0]}: give another target."
                    if math.isnan(noise)
                    else f"{target[0]}={target[1] * times:.4g} of {self.said(line)} cannot be had: it is {noise:.4g} "
                    f"at eps {float(most):g}. Ask for more noise, of more records, or within narrower bounds."
                )
        raise ParameterError(f"no eps answers {self.said(self.leads[release])}: ask by another mechanism.")

    def largest_eps(self, release: int, mu2: Fraction | None, eps: Fraction | None) -> Fraction | None:
        """The largest eps of the grid that costs no more than this; None if there is none."""

        def exceeds(place: int) -> bool:
            loss = eps_at(place)
            return (eps is not None and loss > eps) or (mu2 is not None and self.price(release, loss) > mu2)

        place = bisect.bisect_left(GRID, True, key=exceeds)
        return eps_at(place - 1) if place else None

    def from_cells(self, eps: tuple[Fraction | None, ...], times: float = 1.0) -> list[float] | None:
        """Noise of the sums of the finer table's answers, if those of all lines are within the targets; else None."""
        if self.finer is None:
            return None
        noises, together = [], self.finer.cells // self.cells
        for line, release in enumerate(self.query.releases):
            share = eps[release]
            target = None if share is None else self.target(line, share)
            scale = None if share is None else self.finer.scale(line, share)
            if target is None or scale is None:
                return None
            noise = float(critical_of_sum(np.full((together, 1), scale), 0.95)[0])
            if not noise <= target[1] * times:
                return None
            noises.append(noise)
        return noises

    def said(self, line: int) -> str:
        """A question as people write it, with its table."""
        question = self.query.lines[line].name
        return f"{question} of {self.name}" if self.name else question

    def _summary(self, line: int, eps: Fraction) -> Summary:
        lead = self.query.lines[self.leads[self.query.releases[line]]]
        reads = lead.calibrated(eps).reads
        if reads not in self.summaries:
            self.summaries[reads] = reading(lead, eps, self.size, self.weight)
        return self.summaries[reads]


def planned_tables(
    questions: Mapping[Any, Any],
    ask: Ask,
    n: int,
    common: Mapping[str, Any],
    whole: Callable[[str, object, int], int],
    weight: float | None,
) -> list[PlannedTable]:
    """The tables of a plan with targets.

    ``questions``: from question to its options, or from the name of a table to a dict of questions and of options
        that all have.
    ``ask``: gives the lines of a question with its options.
    ``common``: options of all.
    ``whole``: checks a whole number.
    ``weight``: that of each record, where questions are weighted.
    """
    tables: list[PlannedTable] = []
    for key, options in questions.items():
        if not isinstance(options, Mapping):
            raise ColumnTypeError(
                'where one question has a dict of options, all have, as in {"count()": {"noise95": 5}, "sum(x)": {}}; '
                "without a target a question has its share of what is left."
            )
        table_options = {name: value for name, value in options.items() if name in OPTIONS}
        inner = {name: value for name, value in options.items() if name not in OPTIONS}
        if not all(isinstance(value, Mapping) for value in inner.values()):
            wrong = next(name for name, value in inner.items() if not isinstance(value, Mapping))
            raise ParameterError(f"unknown option {shown(wrong)} in a plan; available: {', '.join(OPTIONS)}.")
        for value in inner.values():
            if unknown := [name for name in value if name not in (*TARGETS, *OF_LINE)]:
                raise ParameterError(
                    f"unknown option {shown(unknown[0])} of a question in a table; available: "
                    f"{', '.join((*TARGETS, *OF_LINE))}. What holds for the whole table stands beside its questions."
                )
        asked = {name: {**common, **table_options, **value} for name, value in inner.items()} or {
            key: {**common, **table_options}
        }
        tables += _of_one(str(key) if inner else "", asked, ask, n, {**common, **table_options}, whole, weight)
    return tables


def _of_one(
    name: str,
    asked: Mapping[Any, Mapping[str, Any]],
    ask: Ask,
    n: int,
    table_options: Mapping[str, Any],
    whole: Any,
    weight: float | None,
) -> Iterator[PlannedTable]:
    lines: list[Line] = []
    wanted: list[tuple[str, float] | None] = []
    for question, options in asked.items():
        of_one = list(ask(question, options))
        lines += of_one
        wanted += [_target(question, options)] * len(of_one)
    mechanisms = {str(options.get("mechanism", "auto")) for options in asked.values()}
    joint, releases = joined(lines, mechanisms.pop() if len(mechanisms) == 1 else "auto")
    by, number = _groups(table_options.get("by"), whole)
    records = whole("n", table_options.get("n", n), 0)
    people = judged_people(table_options.get("person"), table_options.get("per_person"), table_options.get("constant"))
    check_weighing(joint, people.per_person, quotients=False)

    def table(columns: tuple[Hashable, ...], finer: PlannedTable | None) -> PlannedTable:
        cells = math.prod(number[column] for column in columns)
        unit = judged_unit(
            people, [(line.statistic, () if line.column is None else (line.column,)) for line in joint], columns,
            rows=table_options.get("rows"), groups=table_options.get("groups") if columns else None, listed=cells,
        )  # fmt: skip
        query = Query(joint, (), releases=releases, unit=unit)
        titled = " by ".join(
            part for part in (name, ", ".join(str(column) for column in columns if column != "")) if part
        )
        return PlannedTable(titled, query, tuple(wanted), records // cells, cells, finer, weight)

    finest = table(by, None)
    yield finest
    if checked_flag("margins", table_options.get("margins", False)):
        for k in range(len(by) - 1, -1, -1):
            for columns in itertools.combinations(by, k):
                yield table(columns, finest)


def _target(question: object, options: Mapping[str, Any]) -> tuple[str, float] | None:
    given = [name for name in TARGETS if options.get(name) is not None]
    if len(given) > 1:
        raise ParameterError(f"{shown(question)} has several targets: pass one of {', '.join(TARGETS)}.")
    if not given:
        return None
    value = float_of(given[0], options[given[0]])
    if not 0 < value < math.inf:
        raise ParameterError(f"{given[0]} must be finite and above 0, but is {value:g}.")
    return given[0], value


def _groups(by: object, whole: Callable[[str, object, int], int]) -> tuple[tuple[Hashable, ...], dict[Hashable, int]]:
    """The columns of the groups, and how many keys each has."""
    if by is None:
        return (), {}
    if isinstance(by, str | list | tuple | set):
        raise ColumnTypeError('by is a number of groups, or a dict from column to number of keys, as in {"sex": 2}.')
    number = {column: whole("by", keys, 1) for column, keys in (by.items() if isinstance(by, Mapping) else [("", by)])}
    if math.prod(number.values()) > MOST:
        raise ParameterError(f"by= makes more than {MOST:,} groups: plan with fewer.")
    return tuple(number), number
