"""Statistics of surveys, each made of one release."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from pdrisk._core.foreign import own_errors_of
from pdrisk._imported import later
from pdrisk._model.declared.aliases import Bounds, By, Keys, Where
from pdrisk._model.margins import NO_MARGINS, MarginsAsked
from pdrisk._pandas.noisy.statistics import Answer, Statistics
from pdrisk._pandas.requests.objects import judging
from pdrisk._pandas.requests.options import Options, with_options
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._answer.tables.inequality import Inequality
    from pdrisk._core.surveys import mean_change
    from pdrisk._pandas.surveys import histogram, income_bins, sampling_errors
else:
    mean_change = later("pdrisk._core.surveys.mean_change")
    histogram, income_bins, sampling_errors = (
        later(f"pdrisk._pandas.surveys.{name}") for name in ("histogram", "income_bins", "sampling_errors")
    )


@own_errors_of
class SurveyStatistics(Statistics):
    """Noisy statistics of surveys: with sampling errors, counted in bins, and what a survey is made for."""

    @with_options
    def sum(
        self,
        column: Hashable,
        *,
        margins: Any = False,
        allot: Any = None,
        normalize: Any = None,
        sampling: Any = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Noisy sum of a column.

        ``margins`` and ``allot`` as for ``crosstab``, ``normalize`` as for ``count``, ``sampling`` as for ``mean``.
        """
        tables = MarginsAsked(margins, allot, normalize=None if normalize is False else normalize)
        return self._estimate(column, "sum", options, sampling, tables)

    @with_options
    def mean(
        self,
        column: Hashable,
        *,
        margins: Any = False,
        allot: Any = None,
        sampling: Any = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Noisy mean of a column.

        ``margins`` and ``allot`` as for ``crosstab``. ``sampling=0.2`` spends so much of ``eps`` on the sampling error
        by the `Design` of a Dataset: ``interval(kind="sampling")`` is then that of the population, and tables get
        ``sampling_se``, ``sampling_low`` and ``sampling_high``.
        """
        return self._estimate(column, "mean", options, sampling, MarginsAsked(margins, allot))

    @with_options
    def proportion(self, condition: Hashable, *, sampling: Any = None, **options: Unpack[Options]) -> Answer:
        """Noisy proportion: the share of rows where a column of truth values, or a condition, is true.

        ``condition`` is the name of a column, or a row-wise query string such as ``"age > 40"``. A row without an age
        is left out, since nobody knows whether it is above 40; ``"age > 40 and age.notna()"`` counts it as no.
        ``sampling`` as for ``mean``.
        """
        return self._estimate(condition, "proportion", options, sampling)

    @with_options
    def hist(
        self,
        column: Hashable,
        bins: int | Sequence[float] = 10,
        *,
        margins: Any = False,
        allot: Any = None,
        whole: bool | None = None,
        normalize: Any = None,
        **options: Unpack[Options],
    ) -> pd.DataFrame:
        """Noisy histogram: the number of rows in each bin, indexed by the bins.

        A list of ``bins`` gives the edges, as for numpy: each bin holds its left edge, the last one both edges, and
        values outside are not counted. A number of bins divides the bounds evenly; values outside count in the first
        and the last bin. Bins of dates are ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"`` within
        ``bounds``, labelled by their first day, or a list of edges. With ``by`` each group of the public ``keys`` has
        its bins. ``margins=True`` adds the total, ``pdrisk.ALL``; ``allot`` and ``whole`` as for ``crosstab``:
        ``allot="cells"`` moves empty bins to 0 without moving the total up. ``normalize=True`` gives shares of all, and
        with a column of ``by`` shares in each of its groups.
        """
        tables = MarginsAsked(margins, allot, whole, None if normalize is False else normalize)
        request = self._request(options, tables)
        with judging(self._frame, request) as (frame, asked):
            return histogram.histogram(frame, column, bins, asked, request.asker(self._identity))

    @with_options
    def change(self, column: Hashable, *, wave: Hashable, from_: Any, to: Any, **options: Unpack[Options]) -> Answer:
        """Noisy mean change of people between two waves of a panel: of those who have a value in both.

        A person becomes one number, their value in the later wave less that in the earlier one. It needs ``person``,
        and ``rows=1``, which takes one row of a person in each wave, or ``per_person``, which makes one number of their
        rows in each. With ``where``, both rows must be selected. Groups are those of the later rows; with
        ``per_person`` other than ``"one"`` columns of ``by`` must be ``constant``.

        With ``weights`` the mean is weighted: a person has the weight of the later row, and is left out if it is
        missing. Earlier rows need no weight.

        Parameters
        ----------
        column : column
            Of numbers or truth values. ``bounds=(lo, hi)`` is the range of the *difference*. Without it, the declared
            bounds of the column, or those that ``bounds`` has for it as a dict, allow every difference up to hi - lo.
            With ``weights``, such a dict has the bounds of both columns; beside a pair, those of the weights must be
            declared.
        wave : column
            In which wave a row is, such as a year.
        from_, to : value of ``wave``
            The earlier and the later wave.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> panel = pd.DataFrame({"pid": [*range(900)] * 2, "year": [1980] * 900 + [1987] * 900})
        >>> panel["wage"] = 20.0 + (panel["year"] == 1987) * 3
        >>> d = pdrisk.Dataset(panel, person="pid", bounds={"wage": (0, 50)})
        >>> rise = d.change("wage", wave="year", from_=1980, to=1987, rows=1, eps=1, bounds=(-10, 20))
        >>> rise.name, abs(rise.value - 3) < 1
        ('change(1980 to 1987) of wage', True)
        """
        spec = (mean_change.MeanChange.name, {"wave": wave, "from_": from_, "to": to})
        return self._answer(column, spec, options)

    @with_options
    def inequality(
        self,
        column: Hashable,
        bins: int | Sequence[float],
        *,
        line: float = 0.6,
        of: str | Sequence[str] = ("gini", "poverty", "s80s20", "median"),
        **options: Unpack[Options],
    ) -> Inequality:
        """Inequality of incomes: Gini coefficient, poverty rate, S80/S20 and median, from one noisy histogram.

        Incomes are counted in bins, in each group of ``by``. That is one release; all else is computed from it, at no
        cost. The result has ``table``, ``bins``, ``quantile(q)``, ``lorenz(group)`` and ``plot()``.

        Parameters
        ----------
        column : column
        bins : list of float, or int
            Edges of 2 to 500 bins: each holds its left edge, the last one both. Incomes beyond the outer edges count in
            the first and the last bin, as if they were at these edges. A number divides the bounds evenly.
        line : float
            Poverty line as a share of the median, in (0, 1]. With ``by`` it is that of all listed groups together.
        of : list of {"gini", "poverty", "s80s20", "median"}
            Rows of the table.
        """
        request = self._request(options)
        with judging(self._frame, request) as (frame, asked):
            return income_bins.income_bins(frame, column, bins, line, of, asked, request.asker(self._identity))

    def sampling_errors(
        self,
        column: Hashable,
        statistic: str = "mean",
        *,
        bounds: Bounds | None = None,
        where: Where | None = None,
        by: By | None = None,
        keys: Keys | None = None,
        weights: Any = None,
        rows: int | None = None,
    ) -> pd.DataFrame:
        """Curator only: exact sampling errors of a mean, proportion or sum by the `Design` of a Dataset.

        They are those of R's survey package: linearised, over the primary sampling units of each stratum.

        Parameters
        ----------
        column, bounds, where, by, keys, weights, rows
            As for every statistic.
        statistic : {"mean", "proportion", "sum"}

        Returns
        -------
        DataFrame
            One row for each group: ``value``, its standard error ``se``, ``deff`` (how many times its variance is that
            of a random sample of ``n`` records), ``n``, and ``weight``, the sum of the weights.
        """
        self._check_curator("sampling_errors()")
        if not isinstance(statistic, str) or statistic not in ("mean", "proportion", "sum"):
            raise ParameterError('sampling_errors knows "mean", "proportion" and "sum".')
        given = {"bounds": bounds, "where": where, "by": by, "keys": keys, "weights": weights, "rows": rows}
        return sampling_errors.sampling_errors(
            self, column, statistic, {n: value for n, value in given.items() if value is not None}
        )

    def _estimate(
        self, column: Hashable, spec: str, options: Options, sampling: object, tables: MarginsAsked = NO_MARGINS
    ) -> Answer:
        """A mean, proportion or sum, with its sampling error if that is asked for or a design effect is declared."""
        if sampling is not None:
            if tables.named:
                raise ParameterError(f"{tables.named}= and sampling= do not go together: leave one of them out.")
            answer: Answer = sampling_errors.sampled(self, column, spec, options, sampling)
            return answer
        design = self._design
        if spec == "sum" or tables.named or options.get("by") is not None or design is None or design.deff is None:
            return self._answer(column, spec, options, tables)
        return sampling_errors.with_design_effect(self, column, spec, options)
