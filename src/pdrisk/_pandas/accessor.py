"""``df.dprisk`` and ``series.dprisk``: thin, and without state, since pandas makes a new one whenever it likes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import pandas as pd

from pdrisk._answer.release import Release
from pdrisk._answer.releasing import answered, answers
from pdrisk._core.foreign import own_errors_of
from pdrisk._model.query import statistic
from pdrisk._model.rowwise import EXPRESSION
from pdrisk._pandas.assess import assessment, individual_risk, planned_epsilon
from pdrisk._pandas.declared import declare, declared_table
from pdrisk._pandas.hints import Hinting
from pdrisk._pandas.options import DEFAULTS, PAYING, Options, with_options
from pdrisk._pandas.requests import judged_lines, judged_query, lines_of_request
from pdrisk._pandas.suggested_bounds import SuggestedBounds, suggested
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.identifiability.result import Identifiability, of_column

__all__ = ["FrameAccessor", "SeriesAccessor"]

Answer = Release | pd.DataFrame


@pd.api.extensions.register_dataframe_accessor("dprisk")
@own_errors_of
class FrameAccessor(Hinting):
    """Private answers from a frame, each with its sensitivity and risk.

    Every statistic takes the same options by keyword, shown by ``help(df.dprisk.mean)``.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @with_options
    def count(self, column: Hashable | None = None, **options: Unpack[Options]) -> Answer:
        """Noisy number of rows, or of the rows where ``column`` is not missing."""
        return self._answer(column, "count", options)

    @with_options
    def sum(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy sum."""
        return self._answer(column, "sum", options)

    @with_options
    def mean(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy mean; the middle of the bounds if no row is left."""
        return self._answer(column, "mean", options)

    @with_options
    def median(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy median; the middle of the bounds if no row is left."""
        return self._answer(column, "median", options)

    @with_options
    def quantile(self, column: Hashable, q: float = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile by linear interpolation, ``q`` in [0, 1]; the middle of the bounds if no row is left."""
        return self._answer(column, ("quantile", {"q": q}), options)

    @with_options
    def min(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy minimum; the upper bound if no row is left."""
        return self._answer(column, "min", options)

    @with_options
    def max(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy maximum; the lower bound if no row is left."""
        return self._answer(column, "max", options)

    @with_options
    def var(self, column: Hashable, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance over n - ``ddof`` (0 or 1); 0 if too few rows are left."""
        return self._answer(column, ("var", {"ddof": ddof}), options)

    @with_options
    def std(self, column: Hashable, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation over n - ``ddof`` (0 or 1); 0 if too few rows are left."""
        return self._answer(column, ("std", {"ddof": ddof}), options)

    @with_options
    def agg(self, request: Mapping[Hashable, Any], **options: Unpack[Options]) -> pd.DataFrame:
        """Several answers for one ``eps``, which is the total, split evenly and shown per line.

        Parameters
        ----------
        request : dict from column to statistics
            As in ``{"distance": ["mean", ("quantile", {"q": 0.9})], "hours": "mean"}``. ``bounds`` may be a dict
            from column to bounds.

        Returns
        -------
        DataFrame
            Indexed by column and statistic, and by group with ``by``.
        """
        chosen = DEFAULTS | options
        bounds = chosen.pop("bounds")
        lines = lines_of_request(self._frame, request, bounds)
        paid = {name: chosen.pop(name) for name in PAYING}
        return answers(self._frame, judged_query(self._frame, lines, **chosen), **paid)

    def declare(
        self,
        schema: Any = None,
        *,
        bounds: Mapping[Hashable, tuple[float, float]] | None = None,
        keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
        missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
    ) -> pd.DataFrame:
        """The same frame, knowing the bounds, group keys and missing codes of its columns from now on.

        They travel in ``frame.attrs`` with queries, copies, pickles and Parquet files, and belong to the column's
        name: after a change of its unit, ``rename``, ``merge`` or ``concat``, declare again.

        Parameters
        ----------
        schema : pandera DataFrameSchema or DataFrameModel, optional
            Its ranges, ``isin``, written categories and ``metadata={"dprisk": {...}}``; nothing is validated. A
            frame that pandera validated knows its schema already.
        bounds : dict from column to (lo, hi), optional
            Win over a schema's, and must lie within its range.
        keys : dict from column to list, optional
        missing : dict from column to list, optional
            Codes that stand for a missing answer, such as -1: missing before anything else is done.

        Raises
        ------
        ParameterError
            With what does not fit the frame, or contradicts the schema.
        """
        return declare(self._frame, schema, bounds=bounds, keys=keys, missing=missing)

    @property
    def declared(self) -> pd.DataFrame:
        """What is declared for which column, and by whom: one row for each column of which anything is known.

        ``lo`` and ``hi`` are the bounds, ``valid_lo`` and ``valid_hi`` the range that a schema's checks allow,
        ``keys`` and ``missing`` lists, ``source`` who said so.
        """
        return declared_table(self._frame)

    def suggest_bounds(
        self, column: Hashable, *, eps: float, ledger: Any = None, fresh: bool = False
    ) -> SuggestedBounds:
        """Bounds found privately, for a column of which nobody knows the range.

        A noisy histogram over powers of two: the first and last that hold clearly more people than noise are the
        ends. It is a release and costs ``eps``.

        Parameters
        ----------
        column : column
        eps : float
            Privacy loss to spend. Some 15 / eps people must share a size of value to be seen first.
        ledger : Ledger, optional
            What pays for it.
        fresh : bool, default False
            Pay and draw anew, even if the ledger remembers the answer.

        Returns
        -------
        SuggestedBounds
            A pair ``(lo, hi)``, powers of two or 0, fit for ``bounds=`` and ``declare``; its repr says what it
            assumed.

        Raises
        ------
        BoundsNotFoundError
            If no size of value stands out from the noise. It stays paid.
        """
        return suggested(self._frame, column, eps, ledger, fresh)

    def assess(
        self,
        columns: Hashable | list[Hashable],
        statistics: Any = ("mean", "median", "min", "max", "var"),
        eps: float | Sequence[float] = (0.1, 1),
        *,
        bounds: Any = None,
        where: Any = None,
        by: Any = None,
        keys: Any = None,
    ) -> pd.DataFrame:
        """Curator only: sensitivities and risks of answers, without noise and without spending anything.

        Parameters
        ----------
        columns : column or list of columns
        statistics : name, pair or list of these
            As in ``["mean", ("quantile", {"q": 0.9}), ("var", {"ddof": 0})]``.
        eps : float or list of float
        bounds : (lo, hi), "column", or dict from column to these
        where, by, keys
            As for every statistic.

        Returns
        -------
        DataFrame
            Columns ``column statistic [group] eps n global_sensitivity local_sensitivity noise95`` (half-width of
            95 % of the noise) and the four risks.
        """
        return assessment(self._frame, columns, statistics, eps, bounds=bounds, where=where, by=by, keys=keys)

    def individual_risk(
        self, column: Hashable, statistic: Any = "mean", *, eps: float, bounds: Any = None, where: Any = None
    ) -> pd.Series:
        """Curator only: the two-worlds risk that one release means for the person of each row.

        Returns
        -------
        Series of float, indexed like the frame
            ``posterior(eps |f(D) - f(D - x)| / GS)``; NaN where the value is missing or the row not selected.
        """
        return individual_risk(self._frame, column, statistic, eps=eps, bounds=bounds, where=where)

    def epsilon_for(
        self,
        column: Hashable | None,
        statistic: Any = "mean",
        *,
        risk: float,
        metric: str = "worst_case",
        prior: float | None = None,
        bounds: Any = None,
        where: Any = None,
    ) -> float:
        """Curator only: the eps at which a metric reaches ``risk``, for planning.

        All but ``worst_case`` depend on the data, so this number must not calibrate a release: round it to a grid
        that was declared beforehand, and release with ``eps=``.

        Returns
        -------
        float
            ``inf`` where the answer tells nothing about anyone.
        """
        return planned_epsilon(
            self._frame, column, statistic, risk=risk, metric=metric, prior=prior, bounds=bounds, where=where
        )

    def identifiability(
        self, column: Hashable | None, statistic: Any = "mean", *, eps: Any = None, risk: float | None = None,
        bounds: Any = None, where: Any = None, prior: Any = None,
    ) -> Identifiability:  # fmt: skip
        """Curator only: what one release tells an attacker who knows all of these people but not who is missing.

        ``eps`` to judge it, or the highest ``risk`` wanted, for the eps of both bounds (Lee & Clifton 2011, 2012).
        ``prior`` is his belief about one person, or one number for each row; all alike by default.
        """
        return of_column(self._frame, column, statistic, eps=eps, risk=risk, bounds=bounds, where=where, prior=prior)

    def _answer(self, column: Hashable | None, spec: object, options: Options) -> Answer:
        chosen = DEFAULTS | options
        paid = {name: chosen.pop(name) for name in PAYING}
        lines = judged_lines(self._frame, column, (statistic(spec),), chosen.pop("bounds"))
        return answered(self._frame, judged_query(self._frame, lines, **chosen), **paid)


@pd.api.extensions.register_series_accessor("dprisk")
@own_errors_of
class SeriesAccessor(Hinting):
    """Private answers from one column: as `FrameAccessor`, without the column's name.

    ``where`` takes masks, callables and ``pd.col``; strings, ``by`` and ``keys`` name other columns and need the frame.
    """

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @with_options
    def count(self, **options: Unpack[Options]) -> Answer:
        """Noisy number of values that are not missing."""
        return self._answer("count", options)

    @with_options
    def sum(self, **options: Unpack[Options]) -> Answer:
        """Noisy sum."""
        return self._answer("sum", options)

    @with_options
    def mean(self, **options: Unpack[Options]) -> Answer:
        """Noisy mean; the middle of the bounds if no value is left."""
        return self._answer("mean", options)

    @with_options
    def median(self, **options: Unpack[Options]) -> Answer:
        """Noisy median; the middle of the bounds if no value is left."""
        return self._answer("median", options)

    @with_options
    def quantile(self, q: float = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile by linear interpolation, ``q`` in [0, 1]; the middle of the bounds if no value is left."""
        return self._answer(("quantile", {"q": q}), options)

    @with_options
    def min(self, **options: Unpack[Options]) -> Answer:
        """Noisy minimum; the upper bound if no value is left."""
        return self._answer("min", options)

    @with_options
    def max(self, **options: Unpack[Options]) -> Answer:
        """Noisy maximum; the lower bound if no value is left."""
        return self._answer("max", options)

    @with_options
    def var(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance over n - ``ddof`` (0 or 1); 0 if too few values are left."""
        return self._answer(("var", {"ddof": ddof}), options)

    @with_options
    def std(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation over n - ``ddof`` (0 or 1); 0 if too few values are left."""
        return self._answer(("std", {"ddof": ddof}), options)

    def assess(
        self,
        statistics: Any = ("mean", "median", "min", "max", "var"),
        eps: float | Sequence[float] = (0.1, 1),
        *,
        bounds: Any = None,
        where: Any = None,
    ) -> pd.DataFrame:
        """Curator only: see `FrameAccessor.assess`."""
        frame, name = self._frame()
        return frame.dprisk.assess(name, statistics, eps, bounds=bounds, where=self._where(where))

    def individual_risk(
        self, statistic: Any = "mean", *, eps: float, bounds: Any = None, where: Any = None
    ) -> pd.Series:
        """Curator only: see `FrameAccessor.individual_risk`."""
        frame, name = self._frame()
        return frame.dprisk.individual_risk(name, statistic, eps=eps, bounds=bounds, where=self._where(where))

    def epsilon_for(
        self,
        statistic: Any = "mean",
        *,
        risk: float,
        metric: str = "worst_case",
        prior: float | None = None,
        bounds: Any = None,
        where: Any = None,
    ) -> float:
        """Curator only: see `FrameAccessor.epsilon_for`."""
        frame, name = self._frame()
        return frame.dprisk.epsilon_for(
            name, statistic, risk=risk, metric=metric, prior=prior, bounds=bounds, where=self._where(where)
        )

    def identifiability(
        self, statistic: Any = "mean", *, eps: Any = None, risk: float | None = None, bounds: Any = None,
        where: Any = None, prior: Any = None,
    ) -> Identifiability:  # fmt: skip
        """Curator only: see `FrameAccessor.identifiability`."""
        frame, name = self._frame()
        return of_column(
            frame, name, statistic, eps=eps, risk=risk, bounds=bounds, where=self._where(where), prior=prior
        )

    def suggest_bounds(self, *, eps: float, ledger: Any = None, fresh: bool = False) -> SuggestedBounds:
        """See `FrameAccessor.suggest_bounds`."""
        frame, name = self._frame()
        return frame.dprisk.suggest_bounds(name, eps=eps, ledger=ledger, fresh=fresh)

    def _frame(self) -> tuple[pd.DataFrame, Hashable]:
        name = "values" if self._series.name is None else self._series.name
        return self._series.to_frame(name=name), name

    def _where(self, where: Any) -> Any:
        if isinstance(where, str):
            raise ColumnTypeError(
                "a filter in words names columns, which a series does not have: "
                "use df.dprisk with where=..., or pass a mask, a callable or a pd.col expression."
            )
        if callable(where) and not isinstance(where, type) and not isinstance(where, EXPRESSION):
            name = self._series.name
            return lambda frame: where(frame.iloc[:, 0].rename(name))  # without missing codes
        return where

    def _answer(self, spec: object, options: Options) -> Answer:
        frame, name = self._frame()
        if options.get("by") is not None or options.get("keys") is not None:
            raise ParameterError("a series has no columns to group by: use df.dprisk with by= and keys=.")
        chosen = DEFAULTS | options | {"where": self._where(options.get("where"))}
        paid = {name: chosen.pop(name) for name in PAYING}
        lines = judged_lines(frame, name, (statistic(spec),), chosen.pop("bounds"))
        return answered(frame, judged_query(frame, lines, **chosen), **paid)
