"""Accessors ``df.dprisk`` and ``series.dprisk``: without state, since pandas makes a new one whenever it likes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import pandas as pd

from pdrisk._core.foreign import own_errors_of
from pdrisk._ledger import Ledger
from pdrisk._model.aliases import Bounds, Eps, Where
from pdrisk._model.arguments import statistics as judged_statistics
from pdrisk._model.rowwise import EXPRESSION
from pdrisk._model.unit import People, judged_people
from pdrisk._pandas.compare import Comparison
from pdrisk._pandas.declared import declarations_of, declare, declared_table
from pdrisk._pandas.hints import Hinting
from pdrisk._pandas.options import Options, with_options
from pdrisk._pandas.randomized_response import RandomizedAnswers, randomized
from pdrisk._pandas.statistics import DESCRIBED, Answer, Statistics
from pdrisk._pandas.suggested_bounds import SuggestedBounds
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.identifiability.result import Identifiability

__all__ = ["FrameAccessor", "SeriesAccessor"]


@pd.api.extensions.register_dataframe_accessor("dprisk")
@own_errors_of
class FrameAccessor(Statistics):
    """Noisy statistics of a frame, each with its interval and risk: the anonymous `Dataset` of the frame.

    Every statistic takes the same options by keyword, shown by ``help(df.dprisk.mean)``.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._own = frame

    @property
    def _frame(self) -> pd.DataFrame:
        return self._own

    @property
    def _people(self) -> People:
        return declarations_of(self._own).people or super()._people

    def declare(
        self,
        schema: Any = None,
        *,
        bounds: Mapping[Hashable, tuple[float, float]] | None = None,
        keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
        missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
        person: str | int | Sequence[str | int] | None = None,
        per_person: str | None = None,
        constant: str | int | Sequence[str | int] | None = None,
    ) -> pd.DataFrame:
        """Frame with declared bounds, group keys and missing codes of its columns, and ids of its people.

        Declarations are kept in ``frame.attrs`` through queries, copies, pickles and Parquet files. They belong to the
        column's name: after a change of its unit, ``rename``, ``merge`` or ``concat``, declare again.

        Parameters
        ----------
        schema : pandera DataFrameSchema or DataFrameModel, optional
            Its ranges, ``isin``, written categories and ``metadata={"dprisk": {...}}``; nothing is validated. A
            frame that pandera validated knows its schema already.
        bounds : dict from column to (lo, hi), optional
            Win over a schema's, and must lie within its range.
        keys : dict from column to list, optional
            The public group keys; ``"categories"`` lists those of a categorical, as they are now.
        missing : dict from column to list, optional
            Codes that stand for a missing answer, such as -1: missing before anything else is done.
        person, per_person, constant : optional
            Who a person is, and how several rows of one count, as for `Dataset`.

        Raises
        ------
        ParameterError
            With what does not fit the frame, or contradicts the schema.
        """
        people = None if person is None else judged_people(person, per_person, constant)
        if people is None:
            judged_people(None, per_person, constant)
        return declare(self._frame, schema, bounds=bounds, keys=keys, missing=missing, people=people)

    @property
    def declared(self) -> pd.DataFrame:
        """Declarations of the frame: one row for each column with a declaration.

        ``lo`` and ``hi`` are the bounds, ``valid_lo`` and ``valid_hi`` the range that a schema's checks allow,
        ``keys`` and ``missing`` lists, ``source`` where the declaration comes from.
        """
        return declared_table(self._frame)


@pd.api.extensions.register_series_accessor("dprisk")
@own_errors_of
class SeriesAccessor(Hinting):
    """Noisy statistics of one column: as those of a frame, without the column's name.

    ``where`` takes masks, callables and ``pd.col``; strings, ``by`` and ``keys`` name other columns and need the frame.
    """

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @with_options
    def count(self, **options: Unpack[Options]) -> Answer:
        """Noisy number of values that are not missing."""
        return self._ask("count", options)

    @with_options
    def sum(self, **options: Unpack[Options]) -> Answer:
        """Noisy sum."""
        return self._ask("sum", options)

    @with_options
    def mean(self, **options: Unpack[Options]) -> Answer:
        """Noisy mean."""
        return self._ask("mean", options)

    @with_options
    def median(self, **options: Unpack[Options]) -> Answer:
        """Noisy median; of no values, any public point, or with ``"laplace"`` the middle of the bounds."""
        return self._ask("median", options)

    @with_options
    def quantile(self, q: float | Sequence[float] = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile, ``q`` in [0, 1]; a list of them shares ``eps`` and gives a table.

        Three or more come from one release and rise with ``q``.
        """
        return self._ask("quantile", options, q=q)

    @with_options
    def min(self, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy minimum; ``bounds_reached=True`` declares that values lie at the bound, for ``"exponential"``."""
        return self._ask("min", options, bounds_reached=bounds_reached)

    @with_options
    def max(self, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy maximum; ``bounds_reached=True`` declares that values lie at the bound, for ``"exponential"``."""
        return self._ask("max", options, bounds_reached=bounds_reached)

    @with_options
    def var(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance over n - ``ddof`` (0 or 1); 0 if too few values are left."""
        return self._ask("var", options, ddof=ddof)

    @with_options
    def std(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation over n - ``ddof`` (0 or 1); 0 if too few values are left."""
        return self._ask("std", options, ddof=ddof)

    @with_options
    def proportion(self, **options: Unpack[Options]) -> Answer:
        """Noisy share of values that are true."""
        return self._ask("proportion", options)

    @with_options
    def nunique(self, **options: Unpack[Options]) -> Answer:
        """Noisy number of different values; missing ones are none."""
        return self._ask("nunique", options)

    @with_options
    def agg(self, statistics: Sequence[Any], **options: Unpack[Options]) -> pd.DataFrame:
        """Several statistics for one ``eps``, split evenly over releases; indexed by ``statistic``.

        Count, sum, mean, var and std come from one release, and so do three or more quantiles, as in the ``agg`` of a
        frame.
        """
        frame, name = self._frame()
        labels = [each.label for each in judged_statistics(statistics)]
        return frame.dprisk._answers_of(name, list(statistics), ("statistic", labels), self._own(options))

    @with_options
    def describe(self, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy count, mean, standard deviation, quartiles, minimum and maximum, as `agg` of all of them.

        Count, mean and standard deviation come from one release, the quartiles from another.
        """
        return self.agg(DESCRIBED, **options)

    @with_options
    def hist(self, bins: int | Sequence[float] = 10, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy histogram: numbers of values in bins, as that of a frame."""
        return self._ask("hist", options, bins=bins)

    @with_options
    def value_counts(self, sort: bool = True, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy numbers of each value in the public list ``keys``; the largest noisy number first."""
        keys = options.pop("keys", None)
        return self._ask("value_counts", options, sort=sort, keys=keys)

    def randomized_response(
        self,
        *,
        eps: float | None = None,
        p_truth: float | None = None,
        keys: Sequence[Hashable] | None = None,
        collected: bool = False,
    ) -> RandomizedAnswers:
        """Randomised response: each answer randomised by itself, and unbiased estimates of the true shares.

        This is *local* differential privacy: what somebody answers is hidden even from whoever collects it, and that
        they answered is not. It takes many more people than noise on a count, which whoever may hold the data can add.
        Each row is one answer: somebody with k rows loses up to k times eps.

        Parameters
        ----------
        eps : float, optional
            Local privacy loss of one answer, at most 40; ``ln 3`` is the survey of two coins.
        p_truth : float, optional
            Instead, the probability that an answer is the true one: 3/4 with two coins, of which the first says whether
            to tell the truth and the second what to say otherwise.
        keys : list, optional
            The public list of possible answers, unless declared or by dtype: truth values are yes or no.
        collected : bool
            The column holds answers that were randomised so when they were given: only estimate. Others than those
            listed do not count then.

        Returns
        -------
        RandomizedAnswers
            ``answers``, ``table`` (shares with 95 % intervals), ``explain()``, and ``design``, whose ``posterior`` says
            what an answer tells and whose ``respondents`` how many people an interval takes.

        Raises
        ------
        ParameterError
            If the possible answers are not known, not exactly one of ``eps`` and ``p_truth`` is given, or a ledger's
            block is around.

        Notes
        -----
        Missing answers stay missing. An answer that is not listed is replaced by one of those listed, at random. See
        `pdrisk.risk.RandomizedResponse` for the proof, and for planning a survey.
        """
        _, name = self._frame()
        return randomized(self._series, name, eps=eps, p_truth=p_truth, keys=keys, collected=collected)

    def assess(
        self,
        statistics: Any = ("mean", "median", "min", "max", "var"),
        eps: Eps | Sequence[Eps] = (0.1, 1),
        *,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
    ) -> pd.DataFrame:
        """Curator only: see that of a frame."""
        return self._view("assess", statistics, eps, bounds=bounds, where=where, mechanism=mechanism)

    def compare(
        self,
        statistic: Any = "mean",
        *,
        eps: Eps | None = None,
        risk: float | None = None,
        noise95: float | None = None,
        mechanisms: Sequence[str] | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
    ) -> Comparison:
        """Curator only: see that of a frame."""
        said = {"eps": eps, "risk": risk, "noise95": noise95, "mechanisms": mechanisms, "bounds": bounds}
        return self._view("compare", statistic, where=where, **said)

    def individual_risk(
        self,
        statistic: Any = "mean",
        *,
        eps: Eps,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
    ) -> pd.Series:
        """Curator only: see that of a frame."""
        return self._view("individual_risk", statistic, eps=eps, bounds=bounds, where=where, mechanism=mechanism)

    def epsilon_for(
        self,
        statistic: Any = "mean",
        *,
        risk: float,
        metric: str = "worst_case",
        prior: float | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
    ) -> float:
        """Curator only: see that of a frame."""
        said = {"risk": risk, "metric": metric, "prior": prior, "bounds": bounds}
        return self._view("epsilon_for", statistic, where=where, mechanism=mechanism, **said)

    def identifiability(
        self,
        statistic: Any = "mean",
        *,
        eps: Eps | None = None,
        risk: float | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        prior: Any = None,
        mechanism: str = "auto",
    ) -> Identifiability:
        """Curator only: see that of a frame."""
        said = {"eps": eps, "risk": risk, "prior": prior, "bounds": bounds}
        return self._view("identifiability", statistic, where=where, mechanism=mechanism, **said)

    def suggest_bounds(self, *, eps: Eps, ledger: Ledger | None = None, fresh: bool = False) -> SuggestedBounds:
        """Bounds found privately: see that of a frame."""
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

    def _own(self, options: Options) -> Options:
        """Options that make sense for one column."""
        if options.get("by") is not None or options.get("keys") is not None:
            raise ParameterError("a series has no columns to group by: use df.dprisk with by= and keys=.")
        return {**options, "where": self._where(options.get("where"))}

    def _ask(self, method: str, options: Options, **own: Any) -> Any:
        frame, name = self._frame()
        return getattr(frame.dprisk, method)(name, **own, **self._own(options))

    def _view(self, method: str, *given: Any, where: Where | None, **own: Any) -> Any:
        frame, name = self._frame()
        return getattr(frame.dprisk, method)(name, *given, where=self._where(where), **own)
