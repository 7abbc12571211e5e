"""Release: one noisy answer, what was declared for it, and the curator's numbers apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from pdrisk._answer import pictures
from pdrisk._answer.answers import formatting
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.curator import Curator, Exposed
from pdrisk._answer.answers.described import Described
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.answers.sampling import sampling_interval
from pdrisk._answer.arithmetic.combined import Arithmetic
from pdrisk._answer.arithmetic.exact_expressions import Expression
from pdrisk._answer.arithmetic.measured import Measured
from pdrisk._answer.release_fields import fields_of, rows_of
from pdrisk._answer.words import explained
from pdrisk._answer.words.labels import title
from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.once import once
from pdrisk._core.risks.binomial import LEVEL
from pdrisk._core.universe import Days
from pdrisk._model.arguments import checked_flag, checked_probability
from pdrisk._model.query import written
from pdrisk._printing import DisplayedText
from pdrisk.errors import NotPublicError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdrisk.attack._outcome import Outcome


@dataclass(frozen=True, eq=False, repr=False)  # with slots, setting what is no field is a TypeError: CPython gh-90562
class Release(Described, Arithmetic):
    """Noisy answer with its interval and its risk. What it prints, pickles and exports may be published.

    Attributes
    ----------
    describe : callable
        Gives the description of the answer, which few ask for: `answer` calls it once.
    noisy : NoisyAnswers
        The noisy numbers that were drawn, from which intervals of other levels are computed.
    column : hashable or None
        The column, or the first of two; None for a count of rows.
    known : callable or None
        Gives the curator's numbers.
    """

    describe: Callable[[], Answer]
    noisy: NoisyAnswers
    column: Hashable | None = None
    known: Callable[[], Curator] | None = None
    shows_curator: bool = field(default=False)

    @once
    def answer(self) -> Answer:
        """Description of the answer; all of it may be published."""
        return self.describe()

    @property
    def curator(self) -> Curator | None:
        """Curator's numbers: sensitivity and risk in these very data, for whoever may see the data.

        Under a ledger it is None, unless a curator named by the policy asked with ``curator=True``. It is never in
        reprs, pickles, `to_dict` and JSON. Of a mean, sum, proportion or variance of a table on a server or of Spark it
        is read when it is first looked at, unless the question was asked with ``curator=True``.

        Raises
        ------
        QueryFailedError
            If it is read then, and the table cannot be read any more, or the sums that noise was added to are others.
        """
        return None if self.known is None else self.known()

    @property
    def measured(self) -> Measured | None:
        """Measurement: what was drawn, uncut, in exact fractions, with the law of its noise.

        None where the answer was chosen instead of computed with additive noise (medians, quantiles, minima, maxima),
        where it is withheld, and where a ledger has means and other statistics of several numbers rounded.
        """
        measurements = self.noisy.measurements
        return None if measurements is None else measurements.exact(0)

    @once
    def _form(self) -> Expression:
        return self.noisy.expression(self.name)

    def _sources(self) -> set[Hashable]:
        return {(self.noisy.draw, self.name)}

    @property
    def value(self) -> Any:
        """Noisy value: an int for counts, else a float; NaN if a rule of the ledger withholds it.

        Of dates and times it is a Timestamp; noise, scale and sensitivity are in days then.
        """
        return self._shown(self.noisy.values[0].item())

    @property
    def low(self) -> Any:
        """Lower end of the 95 % noise interval, in the unit of the value. Sampling error comes on top."""
        return self._shown(_number(self._line.low), "before")

    @property
    def high(self) -> Any:
        """Upper end of the 95 % noise interval, in the unit of the value."""
        return self._shown(_number(self._line.high), "after")

    @property
    def bounds(self) -> tuple[Any, Any] | dict[Any, tuple[float, float]] | None:
        """Declared range of the values; values outside counted as its ends. None for counts.

        For a statistic of two columns, or a weighted one, a dict from column to range.
        """
        line = self._line
        if line.bounds is not None and self.is_date:
            return self._shown(line.bounds[0], "before"), self._shown(line.bounds[1], "after")
        both = {line.column: line.bounds, line.other: line.other_bounds}
        return line.bounds if line.other_bounds is None else {name: ends for name, ends in both.items() if ends}

    @property
    def name(self) -> str:
        """Name of the answer: ``mean(distance)``, or ``mean(income) of values clipped to [0, 50000]``."""
        return formatting.clipped(written(self.statistic, self.column, self.other), self.clip)

    def __getattr__(self, name: str) -> NoReturn:
        text = f"a release has no {name!r}"
        if name in Curator.__dataclass_fields__:
            text = f"{name} comes from the data and is the curator's: release.curator.{name}, where there is a curator"
        raise AttributeError(text, name=name, obj=self)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.answer, self.noisy, self.column)  # copies to disk leave the curator's numbers out

    def __copy__(self) -> Release:
        return self

    def __deepcopy__(self, _: object) -> Release:
        return self

    @own_errors
    def interval(self, level: float = 0.95, kind: str = "noise") -> tuple[Any, Any]:
        """Noise interval: the noise-free answer lies in it with a probability of at least ``level`` over the noise.

        Parameters
        ----------
        level : float
            Probability, in (0, 1).
        kind : {"noise", "sampling"}
            ``"sampling"`` gives the interval for the population, over the noise and the choice of records together, if
            the records are a simple random sample. For a mean or proportion it is that of the population, with values
            clamped to the bounds. For a count, or a sum of numbers of one sign, it is what a sample of this size holds
            on average. Of answers with ``sampling=`` it is the interval by the `Design` of the Dataset.

        Returns
        -------
        (float, float)
            In the unit of the value. The noise interval does not contain the sampling error.

        Raises
        ------
        ParameterError
            For ``"sampling"``: if a person may have several records, for other statistics, and for means by
            ``"laplace"``, which does not tell how many records there are.

        Notes
        -----
        The interval of the population is made of published numbers only. That of a proportion is Clopper and Pearson's
        exact one, a little wider for the noise. A mean by ``"bernstein"`` tells the variance, too, and its interval
        comes close to the usual one where there are many records. Other means do not: their interval holds for the
        widest spread that this mean and these bounds allow, and a warning says so.
        """
        sure = checked_probability("level", level)
        if not isinstance(kind, str) or kind not in ("noise", "sampling"):
            raise ParameterError(f'kind is "noise" or "sampling", not {shown(kind)}.')
        se = self._line.sampling_se
        if kind == "sampling" and se is None and self._line.has_design:
            raise ParameterError(
                'kind="sampling" depends on the Design here: ask for a mean, proportion or sum with sampling= '
                "or for a mean of everybody with deff= and n= in the Design."
            )
        if kind == "sampling" and se is None:
            self.answer.check_one_record_each('kind="sampling" is for a simple random sample of records')
        low, high = self.noisy.interval(sure) if kind == "noise" else sampling_interval(self.noisy, sure, se)
        return self._shown(float(low[0]), "before"), self._shown(float(high[0]), "after")

    @property
    def is_date(self) -> bool:
        """Whether the value is a date or time."""
        return isinstance(self.noisy.mechanism.universe, Days)

    @property
    def number(self) -> Any:
        """The value as a number, of dates in days since 1970-01-01."""
        return self.noisy.values[0].item()

    def _shown(self, number: Any, side: str = "nearest") -> Any:
        """A number as it is shown: one of days as a Timestamp."""
        return pd.Timestamp(self.noisy.in_kind(np.array([number]), side)[0]) if self.is_date else number

    def public(self) -> dict[str, Any]:
        """Publishable fields of the release.

        Returns
        -------
        dict

        Raises
        ------
        NotPublicError
            If the bounds came from the data: their ends are two people's values.
        """
        if self.bounds_from_data:
            raise NotPublicError(
                f"{self.name} took its bounds from the data, so nothing of it is publishable: "
                "declare bounds=(lo, hi) and ask again."
            )
        return fields_of(self)

    def to_dict(self, curator: bool = False) -> dict[str, Any]:
        """Flat dict of the publishable fields, as `public` gives them; with ``curator=True`` of all fields."""
        if not checked_flag("curator", curator):
            return self.public()
        known = {} if self.curator is None else asdict(self.curator)
        return fields_of(self) | {"bounds_from_data": self.bounds_from_data} | known

    def to_series(self, curator: bool = False) -> pd.Series:
        """Series of the fields of `to_dict`, named like the answer."""
        return pd.Series(self.to_dict(curator), name=self.name, dtype=object)

    @own_errors
    def explain(
        self,
        audience: str = "participant",
        so_far: object = None,
        *,
        prior: float | None = None,
        language: str = "en",
    ) -> str:
        """Explanation of this release in plain words, for one audience.

        Parameters
        ----------
        audience : {"participant", "analyst", "curator", "publication"}
            Reader of the text: a person who considers taking part, somebody who works with the value, somebody who may
            see the data, or the public, as a label. Only the curator's text holds the curator's numbers.
        so_far : float or Ledger, optional
            The eps of all releases so far about these people, this one included; or the ledger that paid for them.
        prior : float, optional
            Probability, before the release, that a person took part, as in ``1 / 551`` if one of so many people is
            asked. The text says to what it rises at most. By default an attacker starts from a coin's 1/2, the hardest
            case.
        language : str
            Language of the text, such as ``"en"``.

        Returns
        -------
        str

        Raises
        ------
        NotPublicError
            For a participant or a publication, if the bounds came from the data.
        ParameterError
            If the audience or language is unknown, or ``so_far`` is less than this release alone.

        Notes
        -----
        Numbers are whole numbers out of 100, 1,000 or 10,000, with one denominator in each text, and rounded up. They
        always stand beside what an attacker can do without the release. See docs/explaining.md.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> release = pd.DataFrame({"x": [3, 1, 10]}).dprisk.count(eps=1)
        >>> print(release.explain(so_far=1.5))
        Imagine the hardest case we can think of: someone knows everybody else's answers and must say whether you took
        part.
        Without this number they can only toss a coin: right 50 times out of 100.
        With this number they are right at most 74 times out of 100, however they go about it. That is at most 24 more.
        It holds if one record in the data is yours. With several, they may be right more often.
        This counts one release. All releases so far together: at most 82 of 100.
        It does not cover theft of the data itself, or conclusions about people like you that hold whether or not you
        take part.
        """
        curator = self.curator if isinstance(audience, str) and audience == "curator" else None
        exposed = [None if curator is None else Exposed(curator)]
        return explained(self.answer, audience, so_far, language, prior=prior, exposed=exposed)

    @own_errors
    def attack(
        self, records: Any = None, person: int | None = None, *, draws: int = 20_000, level: float = LEVEL
    ) -> Outcome:
        """Two-worlds attack on this kind of answer: how often an informed attacker is right, against ``risk.success``.

        It calls `pdrisk.attack.two_worlds` with the question of this release. The answers that are attacked are drawn
        anew, so nothing is said about the value that was released. With ``records``, those that the answer is about,
        the result is for curators only.
        """
        from pdrisk.attack import two_worlds  # which few ask for, and `import pdrisk` need not wait for

        self.answer.check_one_record_each("attack() is of somebody who has one record")
        return two_worlds(self, records, person, draws=draws, level=level)

    @own_errors
    def picture(self, kind: str = "icons", *, unit: str = "", language: str = "en") -> Figure:
        """Picture of this release, drawn with matplotlib; `picture_text` has the same content as text.

        Parameters
        ----------
        kind : {"icons", "two_worlds", "risk"}
            ``"icons"``: how often an attacker is right, as a hundred signs. ``"two_worlds"``: the noisy answer with and
            without the most exposed person; for the curator only, and it says so. ``"risk"``: the worst case against
            eps.
        unit : str, optional
            Unit of the answer, for the axis of ``"two_worlds"``.
        language : str
            Language of the texts, such as ``"en"``.

        Returns
        -------
        matplotlib.figure.Figure
            ``savefig("icons.svg")`` saves it; a notebook shows it.

        Raises
        ------
        NotPublicError
            For a picture that may be published, if the bounds came from the data.
        ParameterError
            If the kind or language is unknown, or matplotlib is not installed.
        """
        return pictures.of_release(self, kind, False, unit, language)

    @own_errors
    def picture_text(self, kind: str = "icons", *, unit: str = "", language: str = "en") -> str:
        """Picture as text, for a screen reader or a terminal; parameters and errors as for `picture`."""
        return DisplayedText(pictures.of_release(self, kind, True, unit, language))

    @own_errors
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot of the value with its 95 % noise interval; `pdrisk.plot` names its errors."""
        charts = import_module("pdrisk._answer.tables.charts")  # later: charts of tables import this module
        return charts.plot(self, ax=ax)

    def __repr__(self) -> str:
        return formatting.text(title(self.answer), *rows_of(self))

    def _repr_html_(self) -> str:
        return formatting.html(title(self.answer), *rows_of(self))


def _unpickled(answer: Answer, noisy: NoisyAnswers, column: Hashable | None) -> Release:
    return Release(lambda: answer, noisy, column)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
