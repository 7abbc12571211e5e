"""Suggested generalisation: the steps that make classes as large as wanted and lose least."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.answers import formatting
from pdrisk._disclosure.classes import classes_of, distinct_pairs
from pdrisk._disclosure.generalize import generalized
from pdrisk._disclosure.keys import KeyColumn
from pdrisk._disclosure.tables import KeyRequest, KeyTable, Side
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import NUMBER, TEXT, TIME, ZONED
from pdrisk._model.plain import float_of
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_BINS = 10_000
MOST_NODES = 2**18  # combinations of steps; with more, every other step of the longest ladders is left out
MOST_TRIED = 4_000  # of them that are counted
CALENDAR = ("MS", "YS", "10YS")
RARE = (0.05, 0.1, 0.2, 0.5)  # shares of people whose rare values become one
OTHER, ANYTHING = "other", "*"


@dataclass(frozen=True, repr=False, eq=False)
class SuggestedGeneralization:
    """Suggested generalisation of keys, with its steps. Curator only: it is made of the data.

    Attributes
    ----------
    generalize : dict
        Fit for ``generalize=`` of the measures.
    k : int
        What it reaches, once those in smaller classes are suppressed.
    classes : int
        How many classes are left.
    suppressed : int
        People in classes of fewer than ``k``, whose records are to be left out.
    loss : float
        Detail that is lost, from 0 to 1: the mean over keys and people of the share of a key's other values that a
        person's value is joined with. Suppressed people are not in it.
    is_least : bool
        Whether no other combination of the steps that were tried loses less; False if there were too many.
    steps : DataFrame
        One row a step: ``column``, the ``cut`` it got, ``changed`` (people whose value it joins with others, or who are
        suppressed), the ``loss`` of that key, and ``k``, ``classes`` and ``below`` (people in classes that are too
        small) after it.
    """

    generalize: dict[Hashable, Any]
    k: int
    classes: int
    suppressed: int
    loss: float
    is_least: bool
    steps: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return f"{formatting.text('suggested generalisation', [], self._lines())}\n{self.steps.to_string(index=False)}"

    def _repr_html_(self) -> str:
        return formatting.html("suggested generalisation", [], self._lines()) + self.steps.to_html(index=False)

    def _lines(self) -> formatting.Rows:
        cuts = [(str(column), _shown(how)) for column, how in self.generalize.items()]
        lost = [("suppressed", f"{self.suppressed:,}"), ("detail lost", f"{self.loss:.1%}")]
        note = [] if self.is_least else [("note", "there are too many combinations to try all: another may lose less")]
        return [("k", f"{self.k:,}"), ("classes", f"{self.classes:,}"), *lost, *cuts, *note]


@dataclass(frozen=True, slots=True)
class _Step:
    """A way to make a key column coarser."""

    how: Any  # as in ``generalize=``; None: as it is
    column: KeyColumn
    groups: NDArray[np.integer[Any]]  # the group of each value that occurs
    changed: int  # people whose value is joined with others
    loss: float  # the mean share of all other values that theirs is joined with

    @classmethod
    def of(cls, column: KeyColumn, how: Any, times: NDArray[Any] | None) -> _Step:
        used = np.flatnonzero(column.used) + 1
        distinct = replace(column, codes=np.concatenate([[0], used]))
        coarser = distinct if how is None else generalized(distinct, how)
        groups = coarser.codes[1:]
        lookup = np.zeros(column.size, dtype=np.int64)
        lookup[used] = groups
        joined = np.bincount(groups, minlength=coarser.size)[groups] - 1
        people = np.bincount(column.codes, weights=times, minlength=column.size)[used]
        known = max(1.0, float(people.sum()) * (len(used) - 1))
        made = KeyColumn(column.name, lookup[column.codes], coarser.labels)
        return cls(how, made, groups, round(float(people[joined > 0].sum())), float((people * joined).sum()) / known)

    def refines(self, other: _Step) -> bool:
        """Whether the other joins whatever this joins."""
        into = np.zeros(self.column.size, dtype=np.int64)
        into[self.groups] = other.groups  # of the last value in each group
        return bool((into[self.groups] == other.groups).all())


@dataclass(frozen=True, slots=True)
class _State:
    """Result of a choice of steps."""

    k: int
    classes: int
    below: int
    k_of_others: int  # once those below are suppressed
    large: int  # classes then


Node = tuple[int, ...]


@dataclass
class _Lattice:
    """All combinations of steps, one of each column's, from the data as they are to all columns left out.

    A combination that leaves too many in small classes rules out all that are finer; one that does not, all that lose
    as much or more.
    """

    side: Side
    ladders: Sequence[Sequence[_Step]]
    k: int
    allowed: int
    known: dict[Node, _State] = field(default_factory=dict)

    def state(self, node: Node) -> _State:
        if node not in self.known:
            columns = tuple(ladder[level].column for ladder, level in zip(self.ladders, node, strict=True))
            sample = classes_of(replace(self.side, columns=columns)).people()
            sizes = sample[sample > 0]
            large = sizes[sizes >= self.k]
            least = int(large.min()) if len(large) else 0
            below = int(sizes.sum() - large.sum())
            self.known[node] = _State(int(sizes.min()), len(sizes), below, least, len(large))
        return self.known[node]

    @cached_property
    def top(self) -> Node:
        return tuple(len(ladder) - 1 for ladder in self.ladders)

    @cached_property
    def most(self) -> int:
        """How many people may be in small classes: no fewer than are if all columns are left out."""
        return max(self.allowed, self.state(self.top).below)

    @cached_property
    def finer(self) -> list[NDArray[np.bool_]]:
        """For each column, whether one step refines another."""
        return [np.array([[a.refines(b) for b in ladder] for a in ladder]) for ladder in self.ladders]

    def loss(self, node: Node) -> float:
        return math.fsum(ladder[level].loss for ladder, level in zip(self.ladders, node, strict=True)) / len(node)

    def lowered(self, node: Node) -> Node:
        """A combination that is large enough, made finer as long as it stays so; by the most that one step gains."""
        while True:
            lower = [
                (*node[:at], step, *node[at + 1 :])
                for at, level in enumerate(node)
                for step in range(level - 1, max(-1, level - 3), -1)
            ]
            fine = [neighbour for neighbour in sorted(lower, key=self.loss) if self.state(neighbour).below <= self.most]
            if not fine:
                return node
            node = fine[0]

    def least(self) -> tuple[Node, bool]:
        """The combination that loses least, and whether all others are known to lose as much."""
        best = self.lowered(self.top)
        if math.prod(map(len, self.ladders)) > MOST_NODES:  # of dozens of columns
            return best, False
        total: NDArray[np.float64] = np.zeros(())
        for ladder in self.ladders:
            total = np.add.outer(total, [step.loss for step in ladder])
        left = np.ones(total.shape, dtype=bool)
        for _ in range(MOST_TRIED):
            left &= total < total[best] * (1 - 1e-12)
            if not left.any():
                return best, True
            at = np.where(left, total, -1).argmax()
            node = tuple(map(int, np.unravel_index(at, total.shape)))
            if self.state(node).below <= self.most:
                best = self.lowered(node)
            else:
                finer = [
                    np.flatnonzero(refinements[:, level]) for refinements, level in zip(self.finer, node, strict=True)
                ]
                left[np.ix_(*finer)] = False
        return best, False


def suggested(table: KeyTable, wanted: KeyRequest, k: object, suppress: object = 0.0) -> SuggestedGeneralization:
    """The suggestion for a table."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise ColumnTypeError(f"k must be a whole number, not of type {type(k).__name__}.")
    if k < 2:
        raise ParameterError("k must be 2 or more: with k=1 every class is large enough.")
    share = float_of("suppress", suppress)
    if not 0 <= share < 1:
        raise ParameterError("suppress is the share of people that may be left out: from 0 to below 1, such as 0.03.")
    side = _once(table.read(wanted), wanted)
    people = side.times.sum() if side.times is not None else len(np.unique(side.persons))  # type: ignore[arg-type]
    if people < k:
        raise ParameterError(f"no generalisation makes classes of {k} of {people} people: ask for a smaller k.")
    ladders = _thinned([_ladder(column, hows, side.times) for column, hows in coarser_ways(side, int(k))])
    lattice = _Lattice(side, ladders, int(k), math.floor(share * people * (1 + 1e-12)))
    node, is_least = lattice.least()
    now = lattice.state(node)
    is_enough = now.below <= lattice.allowed and now.k_of_others > 0
    suppressed = now.below if is_enough else 0
    chosen = {
        ladder[level].column.name: ladder[level].how for ladder, level in zip(ladders, node, strict=True) if level
    }
    return SuggestedGeneralization(
        chosen, now.k_of_others if suppressed else now.k, now.large if suppressed else now.classes, suppressed,
        lattice.loss(node), is_least, mark_exact(_steps(lattice, node, suppressed)),
    )  # fmt: skip


def _ladder(column: KeyColumn, hows: Sequence[Any], times: NDArray[Any] | None) -> list[_Step]:
    """Steps of a column by their loss; those that join the same values are one."""
    steps = [_Step.of(column, how, times) for how in (None, *hows)]
    different: list[_Step] = []
    for step in sorted(steps, key=lambda step: step.loss):
        if not any(step.refines(other) and other.refines(step) for other in different):
            different.append(step)
    return different


def _thinned(ladders: list[list[_Step]]) -> list[list[_Step]]:
    """The ladders, the longest with fewer steps until there are not too many combinations."""
    while math.prod(map(len, ladders)) > MOST_NODES:
        longest = max(ladders, key=len)
        if len(longest) < 3:
            break
        del longest[1:-1:2]
    return ladders


def _steps(lattice: _Lattice, node: Node, suppressed: int) -> pd.DataFrame:
    """The way to a combination: each time the column that leaves the fewest people in small classes."""
    at: Node = (0,) * len(node)
    state = lattice.state(at)
    rows: list[tuple[Any, ...]] = [("", "as it is", 0, 0.0, state.k, state.classes, state.below)]
    while at != node:
        nearer = [(*at[:i], node[i], *at[i + 1 :]) for i in range(len(node)) if at[i] != node[i]]
        after = min(nearer, key=lambda neighbour: lattice.state(neighbour).below)
        column = next(i for i in range(len(node)) if at[i] != after[i])
        at, step, state = after, lattice.ladders[column][after[column]], lattice.state(after)
        rows.append((step.column.name, _shown(step.how), step.changed, step.loss, state.k, state.classes, state.below))
    if suppressed:
        rows.append(("", "suppressed", suppressed, math.nan, state.k_of_others, state.large, 0))
    return pd.DataFrame(rows, columns=["column", "cut", "changed", "loss", "k", "classes", "below"])


def _once(side: Side, wanted: KeyRequest) -> Side:
    """Each class, or each person in a class, on one line."""
    classes = classes_of(side)
    if wanted.person and side.persons is None:
        raise ParameterError(
            "people with several rows cannot be counted anew at each step in a database: pass a pandas frame, or a "
            "table with one row a person and no person=."
        )
    number, persons = classes.numbers[0], side.persons
    if persons is None:
        sample = classes.people()
        number = np.flatnonzero(sample)
        times = sample[number]
    else:
        number, persons = distinct_pairs(number, persons)
        times = None
    columns = tuple(replace(column, codes=classes.codes(at, number)) for at, column in enumerate(side.columns))
    return Side(columns, times, persons)


def coarser_ways(side: Side, k: int) -> Iterator[tuple[KeyColumn, list[Any]]]:
    """Ways to make each column coarser."""
    for column in side.columns:
        labels = column.labels[column.used]
        kind = column_kind(pd.Series(labels)) if len(labels) else None
        if kind == NUMBER and np.isfinite(labels.to_numpy(dtype=float)).all():
            hows: list[Any] = list(_widths(labels))
        elif kind in (TIME, ZONED):
            hows = [_calendar(labels, unit) for unit in CALENDAR]
        elif kind == TEXT:
            hows = _texts(column, labels, side, k)
        else:
            hows = []
        if len(labels) > 1:
            hows.append(dict.fromkeys(labels.tolist(), ANYTHING))
        yield column, hows


def _widths(labels: pd.Index) -> Iterator[list[float]]:
    """Edges of wider and wider bins, of 2, 5, 10, 20, 50, ..., that join some values."""
    values = labels.to_numpy(dtype=float)
    low, high = float(values.min()), float(values.max())
    whole = labels.dtype.kind in "iu" or bool((values % 1 == 0).all())
    unit = 1.0 if whole else 10.0 ** math.floor(math.log10((high - low) / 1000)) if high > low else 1.0
    occupied, number = len(values), 0
    while occupied > 2:
        step = unit * (2, 5, 10)[number % 3] * 10 ** (number // 3)
        number += 1
        first, last = math.floor(low / step), math.floor(high / step)
        occupied = len(np.unique(np.floor(values / step)))
        if 1 < occupied < len(values) and last - first < MOST_BINS:
            yield _edges(first, last, step, low, high)


def _edges(first: int, last: int, step: float, low: float, high: float) -> list[float]:
    """Multiples of a step in few digits, from the lowest value on and beyond the highest."""
    if step >= 1:
        return [round(multiple * step) for multiple in range(first, last + 2)]
    digits = math.ceil(-math.log10(step))
    edges = np.round(np.arange(first - 1, last + 3) * step, digits)
    start, stop = np.searchsorted(edges, [low, high], side="right")
    return edges[start - 1 : stop + 1].tolist()


def _calendar(labels: pd.Index, unit: str) -> pd.DatetimeIndex:
    start = labels.min().normalize().replace(day=1)
    if unit != "MS":
        start = start.replace(month=1)
    if unit == "10YS":
        start = start.replace(year=start.year // 10 * 10)
    years = {"MS": 1, "YS": 1, "10YS": 10}[unit]
    return pd.date_range(start, labels.max() + pd.DateOffset(years=years, months=1), freq=unit)


def _texts(column: KeyColumn, labels: pd.Index, side: Side, k: int) -> list[Any]:
    lengths = labels.str.len()
    longest = int(lengths.max())
    if int(lengths.min()) == longest > 1:
        return list(range(longest - 1, 0, -1))
    people = np.bincount(column.codes, weights=side.times, minlength=column.size)[1:][column.used]
    order = np.argsort(people, kind="stable")
    together = np.cumsum(people[order])
    # All that are too few, and as many more as together are enough; then more and more.
    few = max(2, int(np.count_nonzero(people < k)), int(np.searchsorted(together, k)) + 1)
    numbers = [few] if people.min() < k else []
    numbers += [int(np.searchsorted(together, share * together[-1], side="right")) for share in RARE]
    names = labels.tolist()
    return [
        {**dict(zip(names, names, strict=True)), **dict.fromkeys((names[at] for at in order[:number]), OTHER)}
        for number in sorted(set(numbers))
        if 2 <= number < len(names) and together[number - 1] >= k
    ]


def _shown(how: Any) -> str:
    """A cut in a few words."""
    if isinstance(how, int):
        return f"first {how} letter{'s' if how > 1 else ''}"
    if isinstance(how, dict):
        targets = set(how.values())
        return "left out" if targets == {ANYTHING} else f"rare values as {OTHER!r}, {len(targets):,} values"
    if isinstance(how, pd.DatetimeIndex):
        days = (how[1] - how[0]).days
        return "months" if days < 32 else "years" if days < 367 else "decades"
    return f"bins of {how[1] - how[0]:.6g}"
