"""Accessors ``df.dprisk`` and ``series.dprisk``. They keep no state, because pandas may make a new one at any time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from pdrisk._answer.tables.inequality import MEASURES, Inequality
from pdrisk._core.foreign import own_errors_of
from pdrisk._imported import later
from pdrisk._ledger import Ledger
from pdrisk._model.arguments import statistics as judged_statistics
from pdrisk._model.declared.aliases import Bounds, Eps, Where
from pdrisk._model.design import Design
from pdrisk._model.rowwise import EXPRESSION
from pdrisk._model.unit import People, judged_people
from pdrisk._pandas.curators.assess import USUAL_EPS
from pdrisk._pandas.curators.hints import Hinting
from pdrisk._pandas.noisy.statistics import DESCRIBED, Answer
from pdrisk._pandas.requests.declared import declarations_of, declare, declared_table
from pdrisk._pandas.requests.options import Options, with_options
from pdrisk._pandas.suggested_bounds import SuggestedBounds
from pdrisk._pandas.suggestions import Suggestions
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    import pdrisk._pandas.randomized_response as coins
    from pdrisk._pandas.curators.compare import Comparison
    from pdrisk._pandas.randomized_response import RandomizedAnswers
    from pdrisk.identifiability.result import Identifiability
else:
    coins = later("pdrisk._pandas.randomized_response")


@own_errors_of
class FrameAccessor(Suggestions):
    """Noisy statistics of a pandas frame, each with its interval and its risk.

    Every statistic takes the same keyword options, which ``help(df.dprisk.mean)`` shows. A `Dataset` has the same
    statistics and also keeps people and a ledger.
    """

    _is_plain_frame = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self._own = frame

    @property
    def _frame(self) -> pd.DataFrame:
        return self._own

    @property
    def _people(self) -> People:
        return declarations_of(self._own).people or super()._people

    @property
    def _design(self) -> Design | None:
        weights = declarations_of(self._own).weights
        return None if weights is None else Design(weights)

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
        unit_label: str | None = None,
    ) -> pd.DataFrame:
        """Copy of the frame with declared bounds, group keys, missing codes and ids of people.

        The declarations are kept in ``frame.attrs`` through queries, copies, pickles and Parquet files. They belong to
        a column's name. Declare again after a change of unit, ``rename``, ``merge`` or ``concat``.

        Parameters
        ----------
        schema : pandera DataFrameSchema or DataFrameModel, optional
            Its ranges, ``isin`` checks, listed categories and ``metadata={"dprisk": {...}}`` are declared; nothing is
            validated. A frame that pandera validated has its schema declared already.
        bounds : dict from column to (lo, hi), optional
            Range of values, in the column's unit. It replaces the range of the schema, and must lie within it.
        keys : dict from column to list, optional
            The public group keys; ``"categories"`` lists those of a categorical as they are now.
        missing : dict from column to list, optional
            Codes that stand for a missing answer, such as -1. They become missing before anything else is done.
        person, per_person, constant, unit_label : optional
            Column of people's ids, how several rows of a person count, and what texts call one, as for `Dataset`.

        Returns
        -------
        DataFrame

        Raises
        ------
        ParameterError
            If a declaration does not fit the frame, or contradicts the schema.
        """
        judged = judged_people(person, per_person, constant, unit_label)
        people = None if person is None else judged
        return declare(self._frame, schema, bounds=bounds, keys=keys, missing=missing, people=people)

    @property
    def declared(self) -> pd.DataFrame:
        """Declarations of the frame: one row for each column that has any.

        ``lo`` and ``hi`` are the bounds, ``valid_lo`` and ``valid_hi`` the range
        that the schema's checks allow, ``keys`` and ``missing`` are lists, and ``source`` says where the declaration
        comes from.
        """
        return declared_table(self._frame)


@own_errors_of
class SeriesAccessor(Hinting):
    """Noisy statistics of one column: as those of a frame, without the column's name.

    ``where`` takes masks, callables and ``pd.col``. Query strings, ``by`` and ``keys`` name other columns, so they need
    the frame.
    """

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @with_options
    def count(self, **options: Unpack[Options]) -> Answer:
        """Noisy count of the values that are not missing."""
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
        """Noisy median.

        Without any value it is some public point, or with ``"laplace"`` the middle of the bounds.
        """
        return self._ask("median", options)

    @with_options
    def quantile(self, q: float | Sequence[float] = 0.5, **options: Unpack[Options]) -> Answer:
        """Noisy quantile, ``q`` in [0, 1]; a list of quantiles shares ``eps`` and gives a table.

        Three or more come from one release and rise with ``q``.
        """
        return self._ask("quantile", options, q=q)

    @with_options
    def min(self, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy minimum.

        ``bounds_reached=True`` declares that values lie at the bound, which makes ``"exponential"`` more accurate.
        """
        return self._ask("min", options, bounds_reached=bounds_reached)

    @with_options
    def max(self, bounds_reached: bool = False, **options: Unpack[Options]) -> Answer:
        """Noisy maximum.

        ``bounds_reached=True`` declares that values lie at the bound, which makes ``"exponential"`` more accurate.
        """
        return self._ask("max", options, bounds_reached=bounds_reached)

    @with_options
    def var(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy variance, with n - ``ddof`` (0 or 1) in the denominator; 0 if too few values are left."""
        return self._ask("var", options, ddof=ddof)

    @with_options
    def std(self, ddof: int = 1, **options: Unpack[Options]) -> Answer:
        """Noisy standard deviation, with n - ``ddof`` (0 or 1) in the denominator; 0 if too few values are left."""
        return self._ask("std", options, ddof=ddof)

    @with_options
    def proportion(self, **options: Unpack[Options]) -> Answer:
        """Noisy proportion: the share of values that are true."""
        return self._ask("proportion", options)

    @with_options
    def nunique(self, **options: Unpack[Options]) -> Answer:
        """Noisy number of different values, missing values not counted."""
        return self._ask("nunique", options)

    @with_options
    def agg(self, statistics: Sequence[Any], **options: Unpack[Options]) -> pd.DataFrame:
        """Several noisy statistics for one ``eps``, split evenly over releases; a table indexed by ``statistic``.

        Count, sum, mean, var and std come from one release, and so do three or more quantiles, as in the ``agg`` of a
        frame.
        """
        frame, name = self._frame()
        labels = [statistic.label for statistic in judged_statistics(statistics)]
        return frame.dprisk._answers_of(name, list(statistics), ("statistic", labels), self._own(options))

    @with_options
    def describe(self, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy summary: count, mean, standard deviation, quartiles, minimum and maximum, as `agg` gives them.

        Count, mean and standard deviation come from one release, the quartiles from another.
        """
        return self.agg(DESCRIBED, **options)

    @with_options
    def hist(
        self, bins: int | Sequence[float] = 10, *, normalize: bool = False, **options: Unpack[Options]
    ) -> pd.DataFrame:
        """Noisy histogram: the number of values in each bin, as ``df.dprisk.hist`` gives it."""
        return self._ask("hist", options, bins=bins, normalize=normalize)

    @with_options
    def inequality(
        self, bins: int | Sequence[float], *, line: float = 0.6, of: Any = MEASURES, **options: Unpack[Options]
    ) -> Inequality:
        """Inequality of incomes from one noisy histogram, as ``df.dprisk.inequality`` gives it."""
        return self._ask("inequality", options, bins=bins, line=line, of=of)

    @with_options
    def value_counts(self, sort: bool = True, *, normalize: bool = False, **options: Unpack[Options]) -> pd.DataFrame:
        """Noisy value counts: how often each value of the public list ``keys`` occurs; the largest number first.

        ``normalize=True`` gives shares, which add up to 1.
        """
        keys = options.pop("keys", None)
        return self._ask("value_counts", options, sort=sort, normalize=normalize, keys=keys)

    def randomized_response(
        self,
        *,
        eps: float | None = None,
        p_truth: float | None = None,
        keys: Sequence[Hashable] | None = None,
        collected: bool = False,
    ) -> RandomizedAnswers:
        """Randomised response: each answer is randomised on its own, and the true shares are estimated without bias.

        This is *local* differential privacy. It hides what a person answered, even from whoever collects the answers,
        but not that they answered. It needs many more people than noise on a count, which anybody can add who may hold
        the data. Each row is one answer: a person with k rows loses up to k times eps.

        Parameters
        ----------
        eps : float, optional
            Local privacy loss of one answer, in nats, at most 40. A survey with two coins has ``ln 3``.
        p_truth : float, optional
            Instead of ``eps``, the probability that an answer is the true one. It is 3/4 with two coins, if the first
            decides whether to tell the truth and the second what to say otherwise.
        keys : list, optional
            The public list of possible answers. Not needed if it is declared, or if the column holds truth values.
        collected : bool
            The answers in the column were randomised like this when they were given, so only estimate. Answers that are
            not listed are then not counted.

        Returns
        -------
        RandomizedAnswers
            ``answers``; ``table``, the shares with 95 % intervals; ``explain()``; and ``design``, whose ``posterior``
            says what an answer reveals and whose ``respondents`` says how many people an interval needs.

        Raises
        ------
        ParameterError
            If the possible answers are not known, if not exactly one of ``eps`` and ``p_truth`` is given, or inside the
            ``with`` block of a ledger.

        Notes
        -----
        Missing answers stay missing. An answer that is not listed is replaced by a listed one, at random. See
        `pdrisk.risk.RandomizedResponse` for the proof, and for planning a survey.
        """
        _, name = self._frame()
        return coins.randomized(self._series, name, eps=eps, p_truth=p_truth, keys=keys, collected=collected)

    def assess(
        self,
        statistics: Any = ("mean", "median", "min", "max", "var"),
        eps: Eps | Sequence[Eps] = USUAL_EPS,
        *,
        success: float | Sequence[float] | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
    ) -> pd.DataFrame:
        """Curator only: sensitivities and risks of answers about this column, as ``df.dprisk.assess`` gives them."""
        options = {"success": success, "bounds": bounds, "mechanism": mechanism}
        return self._view("assess", statistics, eps, where=where, **options)

    def compare(
        self,
        statistic: Any = "mean",
        *,
        eps: Eps | None = None,
        risk: float | None = None,
        success: float | None = None,
        noise95: float | None = None,
        mechanisms: Sequence[str] | None = None,
        bounds: Bounds | None = None,
        where: Where | None = None,
    ) -> Comparison:
        """Curator only: comparison of mechanisms for this column, as ``df.dprisk.compare`` gives it."""
        options = {"eps": eps, "risk": risk, "success": success, "noise95": noise95, "mechanisms": mechanisms}
        return self._view("compare", statistic, where=where, bounds=bounds, **options)

    def individual_risk(
        self,
        statistic: Any = "mean",
        *,
        eps: Eps,
        bounds: Bounds | None = None,
        where: Where | None = None,
        mechanism: str = "auto",
    ) -> pd.Series:
        """Curator only: risk of each row's person from one release, as ``df.dprisk.individual_risk`` gives it."""
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
        """Curator only: the eps at which a risk metric reaches ``risk``, as ``df.dprisk.epsilon_for`` gives it."""
        options = {"risk": risk, "metric": metric, "prior": prior, "bounds": bounds}
        return self._view("epsilon_for", statistic, where=where, mechanism=mechanism, **options)

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
        """Curator only: differential identifiability of one release, as ``df.dprisk.identifiability`` gives it."""
        options = {"eps": eps, "risk": risk, "prior": prior, "bounds": bounds}
        return self._view("identifiability", statistic, where=where, mechanism=mechanism, **options)

    def suggest_bounds(
        self,
        *,
        eps: Eps | None = None,
        success: float | None = None,
        ledger: Ledger | None = None,
        fresh: bool = False,
    ) -> SuggestedBounds:
        """Bounds found with differential privacy, as ``df.dprisk.suggest_bounds`` gives them."""
        frame, name = self._frame()
        return frame.dprisk.suggest_bounds(name, eps=eps, success=success, ledger=ledger, fresh=fresh)

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

    def _ask(self, method: str, options: Options, **arguments: Any) -> Any:
        frame, name = self._frame()
        return getattr(frame.dprisk, method)(name, **arguments, **self._own(options))

    def _view(self, method: str, *given: Any, where: Where | None, **options: Any) -> Any:
        frame, name = self._frame()
        return getattr(frame.dprisk, method)(name, *given, where=self._where(where), **options)
