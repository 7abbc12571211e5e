"""Statistics: the noisy answers that ``df.dprisk`` and a Dataset give alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from pdrisk._answer.release import Release
from pdrisk._answer.tables.answer_table import wide_table
from pdrisk._answer.tables.measured_tables import sorted_table
from pdrisk._core.foreign import own_errors_of, shown
from pdrisk._core.pairs import PairStatistic
from pdrisk._model.arguments import (
    MOST_STATISTICS,
    checked_flag,
    statistic,
    statistic_of_two,
    statistics,
)
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.margins import NO_MARGINS, MarginsAsked
from pdrisk._model.missing_arguments import all_given
from pdrisk._model.query import Line, Query
from pdrisk._pandas.curators.disclosure_views import DisclosureViews
from pdrisk._pandas.noisy.answers import answered, answers
from pdrisk._pandas.requests.cross_tables import check_cells, checked_axes, shares_of
from pdrisk._pandas.requests.judged_requests import check_given, judged_query
from pdrisk._pandas.requests.lines import (
    bounded_columns,
    judged_lines,
    judged_pair,
    judged_pairs,
    lines_of_names,
    lines_of_request,
    listed_columns,
    paired,
)
from pdrisk._pandas.requests.objects import judging
from pdrisk._pandas.requests.options import DEFAULTS, Options, Request, with_options
from pdrisk._pandas.requests.repeated import Judged, judged_once
from pdrisk.engines.base import Engine
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._disclosure.checked import CheckedTable

Answer = Release | pd.DataFrame
DESCRIBED = ["count", "mean", "std", "min", "quantile(0.25)", "median", "quantile(0.75)", "max"]


@own_errors_of
class Statistics(DisclosureViews):
    """Noisy statistics of a frame, each with its interval and its risk.

    Every statistic takes the same keyword options, which ``help(df.dprisk.mean)`` shows.
    """

    @with_options
    def count(
        self,
        column: Hashable | None = None,
        *,
        margins: Any = False,
        allot: Any = None,
        whole: bool | None = None,
        normalize: Any = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Noisy count: the number of rows, or of the rows where ``column`` is not missing.

        ``margins=True`` adds the tables of each smaller set of the columns of ``by``, and the total: all of them add
        up. ``normalize`` gives shares with intervals: of ``"all"`` (also True), or of each group of a column or of the
        columns in a list. See ``crosstab`` for ``margins``, ``allot`` and ``whole``.
        """
        return self._answer(
            column, "count", options, MarginsAsked(margins, allot, whole, None if normalize is False else normalize)
        )

    @with_options
    def median(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy median of a column.

        Without any value it is some public point, or with ``"laplace"`` the middle of the bounds.
        """
        return self._answer(column, "median", options)

    @with_options
    def quantile(self, column: Hashable, q: float | Sequence[float] = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile of a column, ``q`` in [0, 1]; a list of quantiles shares ``eps`` and gives a table.

        Three or more come from one release and rise with ``q``.
        """
        if not isinstance(q, list | tuple | np.ndarray | pd.Index | pd.Series) or getattr(q, "ndim", 1) == 0:
            return self._answer(column, ("quantile", {"q": q}), options)
        listed = list(islice(q, MOST_STATISTICS + 1))  # which is refused as too many, however long it is
        return self._answers_of(column, [("quantile", {"q": fraction}) for fraction in listed], ("q", listed), options)

    @with_options
    def min(self, column: Hashable, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy minimum of a column.

        ``bounds_reached=True`` declares that values lie at the bound, which makes ``"exponential"`` more accurate.
        """
        return self._answer(column, _extreme("min", bounds_reached), options)

    @with_options
    def max(self, column: Hashable, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy maximum of a column.

        ``bounds_reached=True`` declares that values lie at the bound, which makes ``"exponential"`` more accurate.
        """
        return self._answer(column, _extreme("max", bounds_reached), options)

    @with_options
    def var(self, column: Hashable, ddof: int | None = None, **options: Unpack[Options]) -> Answer:
        """Noisy variance of a column: squared deviations over n - ``ddof`` (0 or 1); 0 if too few rows are left.

        Without ``ddof`` it is 1. With weights it is 0: they are squared deviations over the sum of the weights.
        """
        return self._answer(column, self._spread("var", ddof, options), options)

    @with_options
    def std(self, column: Hashable, ddof: int | None = None, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation of a column: the root of `var`, with the same ``ddof``."""
        return self._answer(column, self._spread("std", ddof, options), options)

    @with_options
    def corr(self, x: Any = None, y: Hashable | None = None, **options: Unpack[Options]) -> Answer:
        """Noisy correlation (Pearson's) of two columns, over the rows that have both values; 0 if a column is constant.

        ``bounds`` is a dict with the bounds of both columns, unless they are declared. A list of columns instead of two
        gives a table of every two of them, indexed by ``x`` and ``y``; without a column these are all columns with
        bounds. Three or more are one release, over the rows that have values in all of them, where pandas takes each
        pair's own. For those, and wherever ``success`` decides what may be spent, the pairs are releases of their own:
        ``mechanism="bernstein_products"`` with an ``eps``, which they share evenly.
        """
        if y is None and (x is None or isinstance(x, list | pd.Index)):
            return self._of_pairs(x, statistic_of_two("corr"), options)
        return self._answer_of_two(x, y, statistic_of_two("corr"), options)

    @with_options
    def cov(self, x: Hashable, y: Hashable, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy covariance of two columns, over the rows that have both values, with denominator n - ``ddof`` (0 or 1).

        ``bounds`` is a dict with the bounds of both columns, unless they are declared.
        """
        return self._answer_of_two(x, y, statistic_of_two("cov", ddof), options)

    @with_options
    def slope(self, *, y: Hashable, x: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy regression slope of ``y`` on ``x``: by how much y grows with x. SQL's ``REGR_SLOPE(y, x)``.

        It is computed over the rows that have both values, and is 0 if x is constant. ``bounds`` is a dict with the
        bounds of both columns, unless they are declared.
        """
        return self._answer_of_two(y, x, statistic_of_two("slope"), options)

    @with_options
    def nunique(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy number of different values in a column, missing values not counted."""
        return self._answer(column, "nunique", options)

    @partial(with_options, names=True)
    def agg(
        self,
        request: Mapping[Hashable, Any] | list[Any] | str | None = None,
        *,
        margins: Any = False,
        allot: Any = None,
        whole: bool | None = None,
        **named: Any,
    ) -> pd.DataFrame:
        """Several noisy statistics for one ``eps``, their total, which is split evenly over releases.

        Count, sum, mean, var and std of one column come from one release, in which each is more accurate than with a
        share of its own. So do three or more quantiles between 0 and 1, which then rise with q.

        Parameters
        ----------
        request : dict from column to statistics, or list of statistics, optional
            As in ``{"distance": ["mean", "quantile(0.9)"], "hours": "mean"}``. ``bounds`` may be a dict from column to
            bounds. A list, as in ``["mean", "std"]``, asks for these statistics of every column with bounds.
        **named : pair of column and statistic
            Instead of ``request``, as in ``typical=("distance", "median")`` or ``pd.NamedAgg("distance", "median")``.
            An option's name cannot be used.
        margins, allot, whole
            As for ``crosstab``; of counts, sums, means, variances and standard deviations.

        Returns
        -------
        DataFrame
            Indexed by column and statistic, or by the given names; with ``by`` by group, too. Lines with the same
            number in the column ``release`` come from one release and cost its eps once, together.
        """
        pairs = {name: _pair(spec) for name, spec in named.items() if name not in DEFAULTS}
        options = cast(Options, {name: value for name, value in named.items() if name in DEFAULTS})
        asked = self._request(options, MarginsAsked(margins, allot, whole))
        if not pairs:
            return self._answers(lambda frame: lines_of_request(frame, request, asked), asked)
        if request is not None:
            raise ParameterError("agg takes a dict, or named statistics, not both.")
        return self._answers(lambda frame: lines_of_names(frame, pairs, asked), asked, names=tuple(pairs))

    @with_options
    def describe(self, columns: Hashable | list[Hashable] = None, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy summary: count, mean, standard deviation, quartiles, minimum and maximum, as `agg` gives them.

        Count, mean and standard deviation of a column come from one release, the quartiles from another. Without
        ``columns`` these are all columns with bounds.
        """
        listed = self._listed(columns, self._request(options))
        for column in listed:
            check_column(self._frame, column)
        weighs = self._request(options).weighing is not None
        described = ["std(ddof=0)" if name == "std" and weighs else name for name in DESCRIBED]
        return self.agg(dict.fromkeys(listed, described), **options)

    @with_options
    def value_counts(
        self, column: Hashable, sort: bool = True, *, normalize: bool = False, **options: Unpack[Options]
    ) -> pd.DataFrame:
        """Noisy value counts: how many rows have each value of the public list ``keys``; the largest number first.

        ``normalize=True`` gives shares, which add up to 1.
        """
        checked_flag("sort", sort)
        shares = MarginsAsked(normalize="all") if checked_flag("normalize", normalize) else NO_MARGINS
        table = self._counts("value_counts", column, options, shares)
        return sorted_table(table) if sort else table

    @with_options
    def crosstab(
        self,
        index: Hashable,
        columns: Hashable,
        rules: Any = None,
        *,
        values: Hashable | None = None,
        aggfunc: Any = None,
        margins: Any = False,
        normalize: str | bool | int | None = None,
        allot: Any = None,
        whole: bool | None = None,
        **options: Unpack[Options],
    ) -> pd.DataFrame | CheckedTable:
        """Noisy cross table of two columns: the number of rows for each combination of their public ``keys``.

        ``keys`` may be a dict of two lists. ``count(by=[index, columns])`` gives the same numbers with intervals, also
        for more columns. With ``rules`` and without other options it is the exact table with a verdict for each cell,
        for curators only: see `output_rules`.

        Parameters
        ----------
        index, columns : column
        values, aggfunc : column, and name of a statistic
            A statistic of ``values`` in each cell, such as ``aggfunc="mean"``.
        margins : bool, or list of lists of columns
            True: also the margins and the total, as ``pdrisk.ALL``; or some of them, as in ``[["sex"], []]``. Cells and
            margins are measured apart and then adjusted to each other by least squares, which makes all of them more
            accurate, and makes them add up. Margins are about the rows whose keys are listed in all columns.
        normalize : {"index", "columns", "all"}, optional
            Shares of counts or sums: of each row, of each column, or of all (also 0, 1 and True, as in pandas).
            ``plot`` and ``show`` know their intervals.
        allot : {"cells", "even"} or dict from columns to share, optional
            What share of eps measures each table, as in ``{("region", "sex"): 0.6, ("region",): 0.4}``. Without it
            that follows from the number of keys: so that on average the tables have the least log noise.
        whole : bool, optional
            Show counts with margins as whole numbers of at least 0 that add up, as without it; False shows the
            least-squares estimates, which may be negative, and are right on average. Intervals are always theirs.
        """
        if rules is not None:
            if options:
                raise ParameterError(
                    f"rules= judges the exact table and takes no {next(iter(options))}=: ask for the noisy table "
                    "without rules=, and for filters or numbers in the cells see output_rules()."
                )
            return self.output_rules(index, columns, rules=rules)
        by = checked_axes(index, columns)
        tables = MarginsAsked(margins, allot, whole, shares_of(by, normalize))
        check_cells(values, aggfunc)
        if values is None:
            return wide_table(self._counts("crosstab", by, options, tables))
        self._check_no_groups("crosstab", options)
        table = self._answer(values, aggfunc, {**options, "by": by}, tables)
        assert isinstance(table, pd.DataFrame)
        return wide_table(table)

    def _check_no_groups(self, name: str, options: Options) -> None:
        if options.get("by") is not None:
            raise ParameterError(f"{name} groups by its own columns: leave by= out, or write count(by=[...]).")

    def _counts(self, name: str, by: Any, options: Options, tables: MarginsAsked = NO_MARGINS) -> pd.DataFrame:
        """Numbers of rows of each key."""
        self._check_no_groups(name, options)
        if (bounds := options.get("bounds")) is not None and not isinstance(bounds, Mapping):
            raise ParameterError(f"{name} counts rows and needs no bounds, but has {shown(bounds)}: leave them out.")
        table = self._answer(None, "count", {**options, "by": by}, tables)
        assert isinstance(table, pd.DataFrame)
        return table

    def _answer(
        self, column: Hashable | None, spec: object, options: Options, tables: MarginsAsked = NO_MARGINS
    ) -> Answer:
        def judge() -> tuple[Judged, Request]:
            asked, wanted = self._request(options, tables), (statistic(spec),)
            judged = self._judged(lambda frame: judged_lines(frame, column, wanted, asked), asked)
            return (*judged, asked.asker(self._identity)), asked

        if self._is_plain_frame and not tables.named:
            answer = answered(*judged_once(self._frame, column, spec, options, judge))
        else:
            answer = answered(*judge()[0])
        if self._design is None or not isinstance(answer, Release):
            return answer
        description = answer.answer
        line = replace(description.lines[0], has_design=True)
        return replace(answer, describe=lambda: replace(description, lines=(line,)))

    def _spread(self, name: str, ddof: object, options: Options) -> object:
        """The specification of a variance or standard deviation."""
        if ddof is None:
            ddof = 1 if self._request(options).weighing is None else 0
        return name, {"ddof": ddof}

    def _answer_of_two(self, column: Hashable, other: Hashable, wanted: PairStatistic, options: Options) -> Answer:
        asked = self._request(options)
        judged = self._judged(lambda frame: judged_pair(frame, column, other, wanted, asked), asked)
        return answered(*judged, asked.asker(self._identity))

    def _of_pairs(self, columns: Any, wanted: PairStatistic, options: Options) -> pd.DataFrame:
        asked = self._request(options)
        pairs = paired(self._frame, self._listed(columns, asked), wanted)
        level = pd.MultiIndex.from_tuples(pairs, names=["x", "y"])
        return self._answers(lambda frame: judged_pairs(frame, pairs, wanted, asked), asked, level)

    def _listed(self, columns: Any, asked: Request) -> list[Any]:
        """One column or several, without any all that have bounds."""
        if columns is not None:
            return listed_columns(self._frame, columns)
        with judging(self._frame, asked) as (frame, request):
            return bounded_columns(frame, request)

    def _answers_of(
        self, column: Hashable, specs: Sequence[object], level: tuple[str, Sequence[Hashable]], options: Options
    ) -> pd.DataFrame:
        """Several statistics of one column, told apart by an index level of their own."""
        if not specs:
            raise ParameterError(f"{level[0]} lists nothing: pass one at least.")
        asked, wanted = self._request(options), statistics(list(specs))
        labels = pd.Index(list(level[1]), name=level[0])
        return self._answers(lambda frame: judged_lines(frame, column, wanted, asked, joint=True), asked, labels)

    def _answers(
        self,
        lines: Callable[[pd.DataFrame], tuple[Line, ...]],
        asked: Request,
        level: pd.Index | None = None,
        names: tuple[str, ...] = (),
    ) -> pd.DataFrame:
        return answers(*self._judged(lines, asked), asked.asker(self._identity), level, names)

    def _judged(self, lines: Callable[[pd.DataFrame], tuple[Line, ...]], asked: Request) -> tuple[Query, Engine[Any]]:
        with judging(self._frame, asked) as (frame, request):
            judged, eps = all_given(partial(lines, frame), partial(check_given, frame, request))
            return judged_query(frame, judged, request, eps)


def _extreme(name: str, bounds_reached: object) -> object:
    """The specification of a minimum or maximum."""
    return name if bounds_reached is False else (name, {"bounds_reached": bounds_reached})


def _pair(named: Any) -> Any:
    """Column and statistic of a named aggregation, as pairs or as pandas has them."""
    if not isinstance(named, pd.NamedAgg):
        return named
    args, parameters = (getattr(named, name, None) for name in ("args", "kwargs"))  # pandas 2 has neither
    if args:
        raise ParameterError('name the parameters of a statistic, as in pd.NamedAgg("x", "quantile", q=0.9).')
    return named.column, (named.aggfunc, parameters) if parameters else named.aggfunc
