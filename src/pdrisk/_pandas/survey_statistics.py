"""Statistics of surveys, each made of one release."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from pdrisk._answer.tables.inequality import Inequality
from pdrisk._core.foreign import own_errors_of
from pdrisk._pandas.income_bins import income_bins
from pdrisk._pandas.requests.objects import judging
from pdrisk._pandas.requests.options import Options, with_options
from pdrisk._pandas.statistics import Statistics

__all__ = ["SurveyStatistics"]


@own_errors_of
class SurveyStatistics(Statistics):
    """Noisy statistics of a survey: of one column, and of what a survey is made for."""

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
            return income_bins(frame, column, bins, line, of, asked, request.asker(self._identity))
