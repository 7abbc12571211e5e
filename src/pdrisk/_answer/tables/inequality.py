"""Inequality of incomes: what follows from one noisy histogram, by group, at no further cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.arithmetic.income_estimates import Estimates, IncomeBins
from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._answer.tables.answer_table import intervals_of
from pdrisk._answer.tables.measured_tables import said_of
from pdrisk._answer.words import texts
from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.surveys.inequality import gini, lorenz
from pdrisk._model.arguments import checked_probability
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.margins import ALL
from pdrisk._model.plain import plain_label
from pdrisk._pictures.canvas import COLOURS, DASHES, INK, PALE, SIZE, WORDS, canvas, shortened, styled
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES: Final = ("gini", "poverty", "s80s20", "median")
MEASURE: Final = "measure"
MOST_QUANTILES: Final = 1000
MOST_CURVES: Final = len(COLOURS)
LETTERS: Final = 24  # of a group's name in a legend


@dataclass(frozen=True, repr=False, eq=False)
class Inequality:
    """Inequality of incomes in a noisy histogram, by group. All of it may be published.

    Attributes
    ----------
    bins : DataFrame
        The release that was paid: noisy numbers of people by group and income bin.
    table : DataFrame
        One row for each group and measure, with ``value low high``: 95 % intervals of the noise and of what bins leave
        open. With groups the rows of `pdrisk.ALL` are about all of them together.
    line : float
        Poverty line as a share of the median of all groups together.

    Notes
    -----
    Everything is computed from the numbers as they were drawn, not cut at 0. docs/surveys.md has formulas and
    coverage. Intervals do not tell how far a sample is from its population. Tables are those of pandas, whatever holds
    the data.
    """

    bins: pd.DataFrame
    table: pd.DataFrame
    line: float
    _counts: IncomeBins = field(repr=False)
    _groups: pd.Index | None = field(repr=False)

    @classmethod
    def of(
        cls, bins: pd.DataFrame, measured: Measurements, edges: Sequence[float], line: float, of: Sequence[str]
    ) -> Inequality:
        """Inequality from the table of bins as it was answered.

        Parameters
        ----------
        bins : DataFrame
            With the bins as the last level of its index, the others being groups, group by group.
        measured : Measurements
            Of its rows.
        edges : sequence of float
        line : float
            Share of the median.
        of : sequence of str
            Of `MEASURES`.
        """
        counts, number = IncomeBins.of(measured, np.array(edges, dtype=np.float64), line), len(edges) - 1
        whole = bins.index
        groups = whole[::number].droplevel(-1) if isinstance(whole, pd.MultiIndex) else None
        intervals, answer = np.empty(len(bins), dtype=object), Answer.from_attrs(bins.attrs)
        intervals[:] = intervals_of(edges) * (len(bins) // number)
        last = pd.Index(intervals, dtype=object, name=bins.index.names[-1])
        bins.index = last if groups is None else _with_level(groups.repeat(number), last)
        assert answer is not None
        index = tuple(plain_label(name) for name in bins.index.names)
        answer = replace(answer, index=index, measured=said_of([measured], bins.index))
        inequality = cls(answer.attach(bins), bins, line, counts, groups)
        return replace(inequality, table=inequality._table(MEASURE, {name: getattr(counts, name)() for name in of}))

    @property
    def is_crowded(self) -> NDArray[np.bool_]:
        """Whether one bin seems to hold more than half of the people of a group, and of all: a row as in ``table``."""
        return self._counts.is_crowded

    @own_errors
    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Quantiles of incomes with 95 % intervals, whose ends are edges of bins.

        Parameters
        ----------
        q : float or list of float
            In (0, 1).

        Returns
        -------
        DataFrame
            One row for each group and quantile, with columns ``value low high``.
        """
        listed = [q] if np.ndim(q) == 0 else list(islice(q, MOST_QUANTILES + 1))  # type: ignore[arg-type]
        if not 1 <= len(listed) <= MOST_QUANTILES:
            raise ParameterError(f"q must be a number, or a list of 1 to {MOST_QUANTILES:,}.")
        wanted = [checked_probability("q", probability) for probability in listed]
        return self._table("q", {probability: self._counts.quantile(probability) for probability in wanted})

    @own_errors
    def lorenz(self, group: Hashable | None = None) -> pd.DataFrame:
        """Lorenz curve at the edges of bins: the share of people below each edge, and their share of all incomes.

        Parameters
        ----------
        group : hashable, optional
            A key of ``by``, a tuple of keys if there are several columns; without it, all groups together.

        Returns
        -------
        DataFrame
            Indexed by the edges, with columns ``people`` and ``income``, from 0 to 1; NaN where the noisy number of
            people is not above 0.
        """
        people, income = lorenz(self._counts.clean, self._counts.edges)
        self._check_incomes()
        at = self._place(group)
        edges = pd.Index(self._counts.edges, name=self.bins.index.names[-1])
        return pd.DataFrame({"people": people[at], "income": income[at]}, index=edges)

    @own_errors
    def plot(self, groups: Sequence[Hashable] | None = None, language: str = "en") -> Figure:
        """Picture of Lorenz curves, of at most six groups; needs matplotlib. `lorenz` has the same numbers.

        Parameters
        ----------
        groups : list, optional
            Keys of ``by``, and `pdrisk.ALL`. Without it all groups are drawn if they are few, else all together, and
            those with the lowest and the highest Gini coefficient.
        language : str
        """
        if not isinstance(groups, list | tuple | pd.Index | np.ndarray | None):
            raise ColumnTypeError(f"groups is a list of keys, as in groups=[pdrisk.ALL], not {type(groups).__name__}.")
        chosen = self._drawn() if groups is None else list(islice(groups, MOST_CURVES + 1))
        if not 1 <= len(chosen) <= MOST_CURVES:
            raise ParameterError(f"a picture has 1 to {MOST_CURVES} curves: list so many groups.")
        curves, wording = {group: self.lorenz(group) for group in chosen}, texts(language)
        figure = canvas(3.1, wording["lorenz_title"])
        axes = styled(figure.subplots())
        axes.set_aspect("equal")
        axes.plot((0, 100), (0, 100), color=PALE, linewidth=1.0)
        axes.annotate(
            wording["lorenz_equal"],
            (38, 41),
            rotation=45,
            color=INK,
            fontsize=SIZE,
            rotation_mode="anchor",
            ha="center",
        )
        for (group, curve), colour, dashes in zip(curves.items(), COLOURS, DASHES, strict=False):
            label = shortened(", ".join(map(str, group)) if isinstance(group, tuple) else str(group), LETTERS)
            points = 100 * curve["people"], 100 * curve["income"]
            axes.plot(*points, color=colour, linestyle=dashes, linewidth=1.3, label=label)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        axes.set_xlabel(wording["lorenz_people"], labelpad=2, **WORDS)
        axes.set_ylabel(wording["lorenz_income"], labelpad=3, **WORDS)
        if self._groups is not None:
            axes.legend(loc="upper left", frameon=False, fontsize=SIZE, labelcolor=INK, borderaxespad=0.2)
        return figure

    def _drawn(self) -> list[Hashable]:
        """The groups of a picture where nobody names them."""
        listed = [] if self._groups is None else self._groups.tolist()
        together: list[Hashable] = [ALL] if len(listed) != 1 else []
        if len(listed) < MOST_CURVES:
            return [*listed, *together]
        ginis = np.nan_to_num(gini(self._counts.clean, self._counts.edges)[: len(listed)])
        return list(dict.fromkeys([listed[int(ginis.argmin())], listed[int(ginis.argmax())], *together]))

    def _place(self, group: Hashable | None) -> int:
        """Which row of the bins a group is."""
        last = len(self._counts.numbers) - 1
        if group is None or (isinstance(group, str) and group == ALL):
            return last
        listed = [] if self._groups is None else self._groups.tolist()
        if group not in listed:
            there = f" Groups are {shown(listed[0])} and others; see table." if listed else " There are no groups."
            raise ParameterError(f"unknown group {shown(group)}.{did_you_mean(str(group), map(str, listed))}{there}")
        return listed.index(group)

    def _check_incomes(self) -> None:
        if self._counts.edges[0] < 0:
            raise ParameterError(
                "a Lorenz curve needs incomes of at least 0: ask with edges that start at 0, so that lower ones count "
                "in the first bin."
            )

    def _table(self, level: str, estimates: dict[Any, Estimates]) -> pd.DataFrame:
        """Estimates of each row of the bins as a table with one more index level."""
        columns = {
            name: np.stack([estimate[at] for estimate in estimates.values()], axis=1).ravel()
            for at, name in enumerate(("value", "low", "high"))
        }
        index: pd.Index = pd.Index(list(estimates), name=level)
        if self._groups is not None:
            rows = _with_all(self._groups) if len(self._counts.numbers) > 1 else self._groups
            index = _with_level(rows.repeat(len(estimates)), index.take(np.tile(np.arange(len(estimates)), len(rows))))
        answer = Answer.from_attrs(self.bins.attrs)
        assert answer is not None
        names = tuple(plain_label(name) for name in index.names)
        return replace(answer, index=names, measured=None).attach(pd.DataFrame(columns, index=index))

    def __repr__(self) -> str:
        return f"inequality of {self.bins.index.names[-1]}, from noisy bins (.bins)\n{self.table}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(notebook=True))


def _with_level(groups: pd.Index, level: pd.Index) -> pd.MultiIndex:
    levels = [groups.get_level_values(at) for at in range(groups.nlevels)]
    return pd.MultiIndex.from_arrays([*levels, level], names=[*groups.names, level.name])


def _with_all(groups: pd.Index) -> pd.Index:
    """The groups, and behind them all together."""
    levels = [
        pd.Index([*groups.get_level_values(at), ALL], dtype=object, name=name) for at, name in enumerate(groups.names)
    ]
    return levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=groups.names)
