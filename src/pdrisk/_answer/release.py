"""Release: one noisy answer, what was declared for it, and the curator's numbers apart."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from pdrisk._answer import formatting, pictures
from pdrisk._answer.answer import Answer, AnswerLine, Curator, Exposed
from pdrisk._answer.combined import Arithmetic
from pdrisk._answer.noisy import NoisyAnswers
from pdrisk._answer.release_fields import fields_of, rows_of
from pdrisk._answer.sampling import sampling_interval
from pdrisk._answer.words import explained
from pdrisk._core.binomial import LEVEL
from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.risk import Risk
from pdrisk._model.arguments import checked_flag, checked_probability
from pdrisk._model.query import written
from pdrisk._model.unit import ONE_RECORD
from pdrisk._printing import DisplayedText
from pdrisk.errors import NotPublicError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdrisk.attack._outcome import Outcome

__all__ = ["Release"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Arithmetic):
    """A noisy answer. What it prints, pickles and exports may be published; `curator` holds the rest.

    Attributes
    ----------
    answer : Answer
        Its description.
    noisy : NoisyAnswers
        What was drawn, for intervals of other levels.
    column : hashable or None
        Column that was asked about, the first of two; None for a count of records.
    curator : Curator or None
        Sensitivity and risk in these data: for whoever holds the data. Under a ledger None, unless a curator whom its
        policy names asked with ``curator=True``. It stays out of reprs, pickles, `to_dict` and JSON.
    """

    answer: Answer
    noisy: NoisyAnswers
    column: Hashable | None = None
    curator: Curator | None = None
    shows_curator: bool = field(default=False)

    @property
    def other(self) -> Any:
        """Second column of a statistic of two, else None."""
        return self._line.other

    @property
    def statistic(self) -> str:
        """Name with its parameters, as in ``"quantile(0.9)"``."""
        return self._line.statistic

    @property
    def value(self) -> Any:
        """Noisy answer: an int for counts, else a float; NaN where a ledger's rule withholds it."""
        return self._line.value

    @property
    def low(self) -> float:
        """Lower end of the 95 % noise interval: sampling error comes on top."""
        return _number(self._line.low)

    @property
    def high(self) -> float:
        """Upper end of the 95 % noise interval."""
        return _number(self._line.high)

    @property
    def noise95(self) -> float:
        """Half the width of the 95 % noise interval, in the unit of the value."""
        return (self.high - self.low) / 2

    @property
    def rank95(self) -> float | None:
        """How many records may lie between the value and the rank asked for, 95 % sure; None where noise is added.

        Records are first rounded to multiples of `step`. How far that is in the unit of the value, the data decide:
        ``low``, ``high`` and ``noise95`` are NaN unless they are asked for with ``interval=True``.
        """
        return self._line.rank95

    @property
    def step(self) -> float | None:
        """The distance of the public points that an answer chosen by its rank is one of; None where noise is added."""
        return self._line.step

    @property
    def eps(self) -> float:
        """Privacy loss paid, in nats."""
        return self._line.eps

    @property
    def bounds(self) -> tuple[float, float] | dict[Any, tuple[float, float]] | None:
        """Range of values that was declared; values outside counted as its ends. None for counts.

        Of two columns a dict from column to range.
        """
        line = self._line
        return line.bounds if line.other_bounds is None else {name: ends for name, ends in line.ranges if ends}

    @property
    def clip(self) -> tuple[float, float] | None:
        """Points that all values were clipped at, which a share of eps found; None without ``clip="private"``.

        The value, and its interval, are those of the clipped values.
        """
        return self._line.clip

    @property
    def mechanism(self) -> str:
        """Name of the noise mechanism, as in ``"two_sums"``."""
        return self._line.mechanism

    @property
    def unit(self) -> str:
        """Privacy unit: whose presence the noise hides."""
        return self.answer.unit

    @property
    def neighbours(self) -> str:
        """What the noise hides: that one record is there, or with ``"replace-one"`` what its value is."""
        return "replace-one" if self.answer.replaces else "add-or-remove-one"

    @property
    def global_sensitivity(self) -> float:
        """Largest change that one record can make to the statistic, in any data within the bounds."""
        return self._line.global_sensitivity

    @property
    def scale(self) -> float | None:
        """Scale of additive noise, in the unit of the value; None where the mechanism adds no noise to the answer."""
        return self._line.scale

    @property
    def risk(self) -> Risk:
        """Publishable risks: ``worst_case`` and ``success``."""
        return self._line.risk

    @property
    def where(self) -> str | None:
        """Filter, as far as it is known; None for all records."""
        return self.answer.where

    @property
    def where_trusted(self) -> bool:
        """Whether the filter decides record by record by the caller's word only."""
        return self.answer.where_trusted

    @property
    def bounds_from_data(self) -> bool:
        """Whether the bounds are the data's own: then this is not differential privacy."""
        return self.answer.bounds_from_data

    @property
    def least_group(self) -> tuple[int, float] | None:
        """How many people a ledger wants an answer to be about, and the eps paid besides to see whether they are."""
        return None if self.answer.least_group is None else (self.answer.least_group, self.answer.extra)

    @property
    def rounded_to(self) -> float | None:
        """Base that a ledger has answers rounded to, after the noise."""
        return self._line.rounded_to

    @property
    def name(self) -> str:
        """As people write it: ``mean(distance)``, or ``mean(income) of values clipped to [0, 50000]``."""
        return formatting.clipped(written(self.statistic, self.column, self.other), self.clip)

    @property
    def _line(self) -> AnswerLine:
        return self.answer.lines[0]

    def __getattr__(self, name: str) -> NoReturn:
        said = f"a release has no {name!r}"
        if name in Curator.__dataclass_fields__:
            said = f"{name} comes from the data and is the curator's: release.curator.{name}, where there is a curator"
        raise AttributeError(said, name=name, obj=self)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Release, (self.answer, self.noisy, self.column)  # copies to disk leave the curator's numbers out

    def __copy__(self) -> Release:
        return self

    def __deepcopy__(self, _: object) -> Release:
        return self

    @own_errors
    def interval(self, level: float = 0.95, kind: str = "noise") -> tuple[float, float]:
        """Noise interval: where the noise-free answer lies, with a probability of at least ``level`` over the noise.

        Parameters
        ----------
        level : float
            In (0, 1).
        kind : {"noise", "sampling"}
            ``"sampling"``: where that of the population lies, over the noise and the choice of records together, if
            these are a simple random sample of it. Of a mean or proportion it is the population's, of values clamped
            to the bounds; of a count, or a sum of numbers of one sign, what a sample of this size holds on average.

        Returns
        -------
        (float, float)
            In the unit of the value. The noise interval says nothing about sampling error.

        Raises
        ------
        ParameterError
            For ``"sampling"`` where a person may have several records, of other statistics, and of means by
            ``"laplace"``, which does not tell how many records there are.

        Notes
        -----
        The interval of the population is made of published numbers only. So it cannot know how much values spread, and
        holds for the widest spread that is possible with this mean and these bounds (Hoeffding 1963): some 40 %
        wider than the usual one of a proportion, and several times as wide as that of a mean of values that lie close
        to each other. A mean by ``"bernstein"`` tells the variance, too, and is then much narrower.
        """
        sure = checked_probability("level", level)
        if not isinstance(kind, str) or kind not in ("noise", "sampling"):
            raise ParameterError(f'kind is "noise" or "sampling", not {shown(kind)}.')
        if kind == "sampling":
            self._check_one_record_each('kind="sampling" is for a simple random sample of records')
        low, high = self.noisy.interval(sure) if kind == "noise" else sampling_interval(self.noisy, sure)
        return float(low[0]), float(high[0])

    def public(self) -> dict[str, Any]:
        """The publishable fields.

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
        """Flat fields: the publishable ones as `public` gives them, or with ``curator=True`` all that there are."""
        if not checked_flag("curator", curator):
            return self.public()
        known = {} if self.curator is None else asdict(self.curator)
        return fields_of(self) | {"bounds_from_data": self.bounds_from_data} | known

    def to_series(self, curator: bool = False) -> pd.Series:
        """`to_dict` as a Series, named like the answer."""
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
            A person who thinks about taking part; who works with the value; who may see the data; a label for what
            is published. Only the curator's text holds the curator's numbers.
        so_far : float or Ledger, optional
            The eps of all releases so far about these people, this one included; or the ledger that paid for them.
        prior : float, optional
            The chance to begin with that a person took part, as ``1 / 551`` where one of so many is asked: said is
            what it rises to at most. Unless given, an attacker begins with a coin's 1/2, the hardest case.
        language : str

        Raises
        ------
        NotPublicError
            For a participant or a publication, if the bounds came from the data.
        ParameterError
            If the audience or language is unknown, or ``so_far`` is less than this release alone.

        Notes
        -----
        Whole numbers out of 100, 1,000 or 10,000, one denominator in each text, rounded up; never without what an
        attacker can do anyway: docs/explaining.md.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> release = pd.DataFrame({"x": [3, 1, 10]}).dprisk.count(eps=1)
        >>> print(release.explain(so_far=1.5))
        Imagine the hardest case we can think of: someone knows everybody else's answers and must say whether you took
        part.
        Without this number they can only toss a coin: right 50 times out of 100.
        With this number they are right at most 74 times out of 100, however they go about it. That is at most 24 more.
        This counts one release. All releases so far together: at most 82 of 100.
        It does not cover theft of the data itself, or conclusions about people like you that hold whether or not you
        take part.
        """
        exposed = [None if self.curator is None else Exposed(self.curator)]
        return explained(self.answer, audience, so_far, language, prior=prior, exposed=exposed)

    @own_errors
    def attack(
        self, records: Any = None, person: int | None = None, *, draws: int = 20_000, level: float = LEVEL
    ) -> Outcome:
        """Two-worlds attack on this kind of answer: how often an informed attacker is right, against ``risk.success``.

        `pdrisk.attack.two_worlds` with the question of this release. Draws are new ones, so nothing is said of the
        value that was released; with ``records``, those that it is about, it is for curators only.
        """
        from pdrisk.attack import two_worlds  # which few ask for, and `import pdrisk` need not wait for

        self._check_one_record_each("attack() is of somebody who has one record")
        return two_worlds(self, records, person, draws=draws, level=level)

    def _check_one_record_each(self, needed: str) -> None:
        """Refuse what does not hold where a person may have several records."""
        answer = self.answer
        if answer.rows * answer.groups_each > 1 or not (answer.has_person or answer.unit == ONE_RECORD):
            raise ParameterError(
                f"{needed}, and here one person may have several: ask with per_person= or rows=1, and without groups=."
            )

    @own_errors
    def picture(self, kind: str = "icons", *, unit: str = "", language: str = "en") -> Figure:
        """This release as a picture, which needs matplotlib; `picture_text` is the same in words.

        Parameters
        ----------
        kind : {"icons", "two_worlds", "risk"}
            How often an attacker is right, of a hundred signs; the noisy answer with and without the most exposed
            person; the worst case against eps. ``"two_worlds"`` is the curator's and says so; the others may be
            published.
        unit : str, optional
            Of the answer, for the axis of ``"two_worlds"``.
        language : str

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
        """`picture` as text, for a screen reader or a terminal; with the same parameters and errors."""
        return DisplayedText(pictures.of_release(self, kind, True, unit, language))

    def __repr__(self) -> str:
        return formatting.text(self.name, *rows_of(self))

    def _repr_html_(self) -> str:
        return formatting.html(self.name, *rows_of(self))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
