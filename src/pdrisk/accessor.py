"""``df.dprisk`` and ``series.dprisk``: thin, and without state, since pandas makes a new one whenever it likes."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypedDict, TypeVar, Unpack, cast, get_type_hints

import pandas as pd

from pdrisk.answer import answered, answers
from pdrisk.assess import assessment, individual_risk, planned_epsilon
from pdrisk.declared import declare
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.frames import judged_lines, judged_query, lines_of_request
from pdrisk.query import MECHANISM, statistic
from pdrisk.release import Release
from pdrisk.rowwise import EXPRESSION

__all__ = ["FrameAccessor", "Options", "SeriesAccessor"]

Answer = Release | pd.DataFrame


class Options(TypedDict, total=False):
    """What every statistic takes, by keyword.

    ``eps`` or ``risk`` (exactly one; ``prior`` and ``metric`` belong to ``risk``), ``bounds``, ``where``, ``by``,
    ``keys``, ``mechanism``: see `OPTIONS_DOC`.
    """

    eps: Any
    risk: float | None
    prior: float | None
    metric: str
    bounds: Any
    where: Any
    by: Any
    keys: Any
    mechanism: str


DEFAULTS: dict[str, Any] = {
    "eps": None, "risk": None, "prior": None, "metric": "worst_case", "bounds": None,
    "where": None, "by": None, "keys": None, "mechanism": MECHANISM,
}  # fmt: skip

OPTIONS_DOC = """
Options
-------
eps : float
    Privacy loss to spend, in nats, finite and above 0. Exactly one of ``eps`` and ``risk``.
risk : float
    Highest belief instead that an attacker may reach who starts at ``prior`` (1/2 unless given), in (0, 1) and above
    it; the ``worst_case`` of a release is always that of a prior of 1/2. ``metric`` can only be ``"worst_case"``: an
    eps from any other would depend on the data.
bounds : (lo, hi) or "column"
    The range values can have, in the unit of the column; values outside are clamped. Not needed where declared with
    ``df.dprisk.declare``. ``"column"`` takes the data's own, which is not differential privacy.
where : str, pd.col expression, boolean mask or callable
    Which rows to use, decided row by row. A missing decision is no.
by, keys : column or list of columns, and the public list of their keys
    For several columns tuples, or a dict of lists for all combinations; ``keys="observed"`` says that the keys which
    occur are public. Not for a series.
mechanism : {"laplace"}

Returns
-------
Release
    With ``by`` or from ``agg`` a DataFrame, one row for each key or line, whose ``attrs`` name the curator's columns.

Raises
------
ParameterError
    Whatever can be seen to be wrong without the data, in words.
QueryFailedError
    One fixed sentence for whatever went wrong on the data.
"""

Method = TypeVar("Method", bound=Callable[..., Any])


def _with_options(method: Method) -> Method:
    """Show the options one by one to whoever asks for help or presses Tab, and refuse all others."""
    own = [p for p in inspect.signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD]
    kinds = get_type_hints(Options)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in DEFAULTS.items()
    ]
    signature = inspect.signature(method).replace(parameters=[*own, *options])

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            problem = f"{method.__name__}(): {error}.{_hint(signature, kwargs)}"
        else:
            return method(*args, **kwargs)
        raise TypeError(problem)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{OPTIONS_DOC}"
    return cast(Method, checked)


def _hint(signature: inspect.Signature, given: Mapping[str, object]) -> str:
    """What to write instead of a call that Python cannot bind."""
    unknown = [name for name in given if name not in signature.parameters]
    near = [match for name in unknown for match in difflib.get_close_matches(name, DEFAULTS, 1)]
    if near:
        return f" Did you mean {near[0]!r}?"
    return "" if unknown else " Options are passed by name, as in eps=1."


@pd.api.extensions.register_dataframe_accessor("dprisk")
class FrameAccessor:
    """Private answers from a frame, each with its sensitivity and risk.

    Every statistic takes the same options by keyword, shown by ``help(df.dprisk.mean)``.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @_with_options
    def count(self, column: Hashable | None = None, **options: Unpack[Options]) -> Answer:
        """Noisy number of rows, or of the rows where ``column`` is not missing."""
        return self._answer(column, "count", options)

    @_with_options
    def sum(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy sum."""
        return self._answer(column, "sum", options)

    @_with_options
    def mean(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy mean; the middle of the bounds if no row is left."""
        return self._answer(column, "mean", options)

    @_with_options
    def median(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy median; the middle of the bounds if no row is left."""
        return self._answer(column, "median", options)

    @_with_options
    def quantile(self, column: Hashable, q: float = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile by linear interpolation, ``q`` in [0, 1]; the middle of the bounds if no row is left."""
        return self._answer(column, ("quantile", {"q": q}), options)

    @_with_options
    def min(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy minimum; the upper bound if no row is left."""
        return self._answer(column, "min", options)

    @_with_options
    def max(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Noisy maximum; the lower bound if no row is left."""
        return self._answer(column, "max", options)

    @_with_options
    def var(self, column: Hashable, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance over n - ``ddof`` (0 or 1); 0 if too few rows are left."""
        return self._answer(column, ("var", {"ddof": ddof}), options)

    @_with_options
    def std(self, column: Hashable, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation over n - ``ddof`` (0 or 1); 0 if too few rows are left."""
        return self._answer(column, ("std", {"ddof": ddof}), options)

    @_with_options
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
        return answers(self._frame, judged_query(self._frame, lines, **chosen))

    def declare(
        self,
        *,
        bounds: Mapping[Hashable, tuple[float, float]] | None = None,
        keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
    ) -> pd.DataFrame:
        """The same frame, knowing the bounds and group keys of these columns from now on.

        They travel in ``frame.attrs`` with queries, copies, pickles and Parquet files, and belong to the column's
        name: after a change of its unit, declare again.
        """
        return declare(self._frame, bounds=bounds, keys=keys)

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

    def _answer(self, column: Hashable | None, spec: object, options: Options) -> Answer:
        chosen = DEFAULTS | options
        lines = judged_lines(self._frame, column, (statistic(spec),), chosen.pop("bounds"))
        return answered(self._frame, judged_query(self._frame, lines, **chosen))


@pd.api.extensions.register_series_accessor("dprisk")
class SeriesAccessor:
    """Private answers from one column: as `FrameAccessor`, without the column's name.

    ``where`` takes masks, callables and ``pd.col``; strings, ``by`` and ``keys`` name other columns and need the frame.
    """

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @_with_options
    def count(self, **options: Unpack[Options]) -> Answer:
        """Noisy number of values that are not missing."""
        return self._answer("count", options)

    @_with_options
    def sum(self, **options: Unpack[Options]) -> Answer:
        """Noisy sum."""
        return self._answer("sum", options)

    @_with_options
    def mean(self, **options: Unpack[Options]) -> Answer:
        """Noisy mean; the middle of the bounds if no value is left."""
        return self._answer("mean", options)

    @_with_options
    def median(self, **options: Unpack[Options]) -> Answer:
        """Noisy median; the middle of the bounds if no value is left."""
        return self._answer("median", options)

    @_with_options
    def quantile(self, q: float = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile by linear interpolation, ``q`` in [0, 1]; the middle of the bounds if no value is left."""
        return self._answer(("quantile", {"q": q}), options)

    @_with_options
    def min(self, **options: Unpack[Options]) -> Answer:
        """Noisy minimum; the upper bound if no value is left."""
        return self._answer("min", options)

    @_with_options
    def max(self, **options: Unpack[Options]) -> Answer:
        """Noisy maximum; the lower bound if no value is left."""
        return self._answer("max", options)

    @_with_options
    def var(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance over n - ``ddof`` (0 or 1); 0 if too few values are left."""
        return self._answer(("var", {"ddof": ddof}), options)

    @_with_options
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
            series = self._series
            return lambda _: where(series)
        return where

    def _answer(self, spec: object, options: Options) -> Answer:
        frame, name = self._frame()
        if options.get("by") is not None or options.get("keys") is not None:
            raise ParameterError("a series has no columns to group by: use df.dprisk with by= and keys=.")
        chosen = DEFAULTS | options | {"where": self._where(options.get("where"))}
        lines = judged_lines(frame, name, (statistic(spec),), chosen.pop("bounds"))
        return answered(frame, judged_query(frame, lines, **chosen))
