"""The curator's views of answers: sensitivities and risks, without noise and without spending anything."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from pdrisk._core.foreign import own_errors_of
from pdrisk._imported import later
from pdrisk._ledger import Identity, check_curator
from pdrisk._model.declared.aliases import Bounds, By, Eps, Keys, Where
from pdrisk._model.design import Design
from pdrisk._model.margins import NO_MARGINS, MarginsAsked
from pdrisk._model.unit import People
from pdrisk._pandas.curators.assess import USUAL_EPS, USUAL_STATISTICS, assessment, individual_risk, planned_epsilon
from pdrisk._pandas.curators.hints import Hinting
from pdrisk._pandas.requests.options import (
    NOBODY_KNOWN,
    Options,
    Request,
    UnitOptions,
    with_unit_options,
)
from pdrisk.engines.base import DataTable
from pdrisk.engines.numpy.frame import FrameTable

if TYPE_CHECKING:
    from pdrisk._pandas.curators import compare
    from pdrisk._pandas.curators.compare import Comparison
    from pdrisk.identifiability import result
    from pdrisk.identifiability.result import Identifiability
else:
    compare = later("pdrisk._pandas.curators.compare")
    result = later("pdrisk.identifiability.result")


@own_errors_of
class CuratorViews(Hinting):
    """Views of a frame for curators; under a ledger for those whom its policy names."""

    _identity: Identity | None = None  # of a Dataset: by it a ledger remembers
    _is_plain_frame: bool = False  # whether a frame and what it carries is all that answers depend on
    _defaults: Mapping[str, Any] = MappingProxyType({})  # of a Dataset: options of all its calls

    @property
    def _design(self) -> Design | None:
        """How the sample was drawn, as far as it is declared."""
        return None

    @property
    def _people(self) -> People:
        """The people of the frame, as far as they are declared."""
        return NOBODY_KNOWN

    @property
    def _table(self) -> DataTable:
        """The data."""
        return FrameTable(self._frame)

    @property
    def _frame(self) -> pd.DataFrame:
        """The frame; for data that are not one, their columns without rows."""
        raise NotImplementedError

    def _rows(self, where: object) -> Any:
        """The filter of a question, joined with that of the Dataset."""
        return self._table.selecting(where)

    def _payer(self, ledger: object) -> Any:
        """The ledger that pays; None for that of the ``with`` block around, if there is one."""
        return ledger

    def _request(self, options: Options, tables: MarginsAsked = NO_MARGINS) -> Request:
        """Request about this frame, with the Dataset's filter, defaults and ledger."""
        rows, payer = self._rows(options.get("where")), self._payer(options.get("ledger"))
        asked = {**self._defaults, **options, "where": rows, "ledger": payer}
        return Request(**asked, tables=tables, people=self._people, design=self._design, opened=self._table.opened)

    def _looked_at(self, **asked: Any) -> Request:
        """Request about this frame, without the Dataset's defaults."""
        options = {**asked, "where": self._rows(asked["where"])}
        return Request(**options, people=self._people, design=self._design, opened=self._table.opened)

    def _check_curator(self, asked: str) -> None:
        """Refuse other analysts than the curators of the ledger that would pay."""
        check_curator(self._payer(None), asked)

    @with_unit_options
    def assess(
        self,
        columns: Hashable | list[Hashable],
        statistics: Any = USUAL_STATISTICS,
        eps: Eps | Sequence[Eps] = USUAL_EPS,
        *,
        success: float | Sequence[float] | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        by: By | None = None,
        keys: Keys | None = None,
        mechanism: str = "auto",
        **people: Unpack[UnitOptions],
    ) -> pd.DataFrame:
        """Curator only: sensitivities and risks of answers, without noise and without spending.

        Parameters
        ----------
        columns : column or list of columns
        statistics : name, pair or list of these
            As in ``["mean", ("quantile", {"q": 0.9}), ("var", {"ddof": 0})]``. With weights the default has ``ddof=0``.
        eps : float or list of float
            Privacy losses to assess, in nats.
        success : float or list of float, optional
            Instead of ``eps``, how often an attacker may be right by each answer, who gives even odds.
        bounds : (lo, hi), "column", or dict from column to these
            Range of the values, in the column's unit.
        where, by, keys, mechanism
            As for every statistic.

        Returns
        -------
        DataFrame
            Columns ``column statistic mechanism [group] eps n global_sensitivity local_sensitivity noise95`` and the
            four risks. In 95 % of cases an answer is within ``noise95`` of the exact one, in the unit of the answer.
        """
        self._check_curator("assess()")
        asked = self._looked_at(
            eps=eps, success=success, bounds=bounds, where=where, by=by, keys=keys, mechanism=mechanism, **people
        )
        return assessment(self._frame, columns, statistics, asked)

    @with_unit_options
    def compare(
        self,
        column: Hashable | None,
        statistic: Any = "mean",
        *,
        eps: Eps | None = None,
        risk: float | None = None,
        success: float | None = None,
        noise95: float | None = None,
        mechanisms: Sequence[str] | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        **people: Unpack[UnitOptions],
    ) -> Comparison:
        """Curator only: comparison of mechanisms by their noise and risk for these very data, without spending.

        The mechanisms are compared at a given ``eps`` (or ``risk``, its worst case), ``success`` or ``noise95``: pass
        exactly one. An eps that is found by ``noise95`` depends on the data: round it to a grid that was declared
        beforehand.

        Parameters
        ----------
        column, statistic, bounds, where
            As for every statistic.
        noise95 : float
            What an answer may be off by in 95 % of cases, in the unit of the answer.
        mechanisms : list of str, optional
            Names of the mechanisms to compare; by default all that can answer the statistic.

        Returns
        -------
        Comparison
            A DataFrame with a row for each mechanism that can answer: ``mechanism eps noise95 worst_case two_worlds
            many_worlds identifiability success``. Weighted statistics have mechanisms of their own, a single one but
            for quantiles, and none of the others beside it. NaN where a mechanism cannot reach the given number.
            ``picture()`` draws the frontier.

        Notes
        -----
        For a mean, ``laplace`` and ``two_sums`` have about the same noise at equal ``two_worlds``. The risk of
        two_sums, however, holds whatever the data are, and may be published.
        """
        self._check_curator("compare()")
        asked = self._looked_at(eps=eps, risk=risk, success=success, bounds=bounds, where=where, **people)
        return compare.comparison(self._frame, column, statistic, asked, noise95=noise95, mechanisms=mechanisms)

    @with_unit_options
    def individual_risk(
        self,
        column: Hashable,
        statistic: Any = "mean",
        *,
        eps: Eps,
        bounds: Bounds | None = None,
        where: Where | None = None,
        by: By | None = None,
        keys: Keys | None = None,
        mechanism: str = "auto",
        **people: Unpack[UnitOptions],
    ) -> pd.Series:
        """Curator only: individual risk, the two-worlds risk of one release for the person of each row.

        With ``by`` and ``keys`` it is the risk of an answer for each group.

        Returns
        -------
        Series of float, indexed like the frame
            ``posterior`` of the privacy loss between the data with and without the person; NaN where the value is
            missing or the row is not selected.
        """
        self._check_curator("individual_risk()")
        asked = self._looked_at(eps=eps, bounds=bounds, where=where, by=by, keys=keys, mechanism=mechanism, **people)
        return individual_risk(self._frame, column, statistic, asked)

    @with_unit_options
    def epsilon_for(
        self,
        column: Hashable | None,
        statistic: Any = "mean",
        *,
        risk: float,
        metric: str = "worst_case",
        prior: float | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
        **people: Unpack[UnitOptions],
    ) -> float:
        """Curator only: epsilon at which a risk metric reaches ``risk``, for planning.

        For every metric but ``worst_case`` it depends on the data. So never use it to calibrate a release: round it to
        a grid that was declared beforehand, and release with ``eps=``.

        Returns
        -------
        float
            ``inf`` if the answer reveals nothing about anyone.
        """
        self._check_curator("epsilon_for()")
        options = {"risk": risk, "metric": metric, "prior": prior}
        asked = self._looked_at(bounds=bounds, where=where, mechanism=mechanism, **options, **people)
        return planned_epsilon(self._frame, column, statistic, asked)

    @with_unit_options
    def identifiability(
        self,
        column: Hashable | None,
        statistic: Any = "mean",
        *,
        eps: Eps | None = None,
        risk: float | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        prior: Any = None,
        mechanism: str = "auto",
        **people: Unpack[UnitOptions],
    ) -> Identifiability:
        """Curator only: differential identifiability, what one release tells an attacker who knows all but one person.

        The attacker knows all of these people, but not which one is missing. Pass ``eps`` to judge it, or the highest
        ``risk`` wanted, to get the eps of both bounds (Lee & Clifton 2011, 2012). ``prior`` is the attacker's belief
        about one person, or one number for each row; by default all are equally likely.

        Returns
        -------
        Identifiability
        """
        self._check_curator("identifiability()")
        options = {"eps": eps, "risk": risk, "prior": prior}
        asked = self._looked_at(bounds=bounds, where=where, mechanism=mechanism, **options, **people)
        return result.of_column(self._frame, column, statistic, asked)
