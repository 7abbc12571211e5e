"""Suggestions: bounds and numbers of rows, found with differential privacy where nobody knows them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pdrisk._core.foreign import own_errors_of
from pdrisk._pandas.requests.objects import judging
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.suggested_bounds import SuggestedBounds, suggested
from pdrisk._pandas.suggested_rows import SuggestedRows, suggested_rows
from pdrisk._pandas.surveys.survey_statistics import SurveyStatistics


@own_errors_of
class Suggestions(SurveyStatistics):
    """Noisy statistics of a frame, and the bounds and numbers of rows that some of them need."""

    def suggest_bounds(
        self,
        column: Hashable,
        *,
        eps: float | None = None,
        success: float | None = None,
        ledger: Any = None,
        fresh: bool = False,
    ) -> SuggestedBounds:
        """Bounds found with differential privacy, for a column whose range nobody knows.

        They come from a noisy histogram over powers of two: its first and its last bin that clearly hold more people
        than noise are the ends. This is a release and costs ``eps``.

        Parameters
        ----------
        column : column
        eps : float
            Privacy loss to spend, in nats. A bin is seen only if at least some 15 / eps people are in it.
        success : float
            Instead of ``eps``, how often an attacker may be right, as for every statistic.
        ledger : Ledger, optional
            The budget that pays.
        fresh : bool, default False
            Pay and draw a new answer even if the ledger remembers one.

        Returns
        -------
        SuggestedBounds
            A pair ``(lo, hi)`` of powers of two or 0, fit for ``bounds=`` and ``declare``. Its repr says what the
            search assumed.

        Raises
        ------
        BoundsNotFoundError
            If no bin stands out from the noise. The eps stays paid.
        """
        request = Request(
            eps=eps,
            success=success,
            where=self._rows(None),
            ledger=self._payer(ledger),
            fresh=fresh,
            people=self._people,
            opened=self._table.opened,
        )
        with judging(self._frame, request) as (frame, asked):
            return suggested(frame, column, asked, request.asker(self._identity))

    def suggest_rows(
        self,
        *,
        eps: float | None = None,
        success: float | None = None,
        share: float = 0.95,
        most: int = 1000,
        person: Any = None,
        ledger: Any = None,
        fresh: bool = False,
    ) -> SuggestedRows:
        """Number of rows per person, found with differential privacy and fit for ``rows=``.

        A share of the people has at most so many rows. It is a noisy quantile, a release that costs ``eps``.

        Parameters
        ----------
        eps : float
            Privacy loss to spend, in nats.
        success : float
            Instead of ``eps``, how often an attacker may be right, as for every statistic.
        share : float
            Share of the people, in (0, 1), who should have no more rows than this. A larger number leaves out fewer
            rows but needs more noise: if most people have few rows and some have many, a smaller one is often better.
        most : int
            Most rows that one person can have; people with more count as having so many.
        person : column or list of columns, optional
            Column of people's ids, unless it is declared.
        ledger : Ledger, optional
            The budget that pays.
        fresh : bool, default False
            Pay and draw a new answer even if the ledger remembers one.

        Returns
        -------
        SuggestedRows
            An int; its repr says what it means.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> visits = pd.DataFrame({"pid": [each % 500 for each in range(2000)], "cost": 10.0})
        >>> int(pdrisk.Dataset(visits, person="pid").suggest_rows(eps=1))
        4
        """
        request = self._looked_at(
            eps=eps, success=success, where=None, person=person, ledger=self._payer(ledger), fresh=fresh
        )
        with judging(self._frame, request) as (frame, asked):
            return suggested_rows(frame, share, most, asked, request.asker(self._identity))
