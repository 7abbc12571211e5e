"""What comes back: the noisy value, what was declared, and the curator's part, which never leaves unasked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from pdrisk._answer import formatting, pictures
from pdrisk._answer.words import Exposed, Line, Told, explained, not_for_others
from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.risk import Risk
from pdrisk._model.columns import plain_label
from pdrisk._model.query import checked_probability, written
from pdrisk.errors import ColumnTypeError, NotPublicError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CURATOR_ONLY", "Release", "half_width", "public"]

RULED = ("least_group", "rounded_to")
CURATOR_ONLY = ("local_sensitivity", "n", "two_worlds", "many_worlds", "identifiability")


def half_width(scale: Any, level: float = 0.95, rounded_to: float | None = None) -> Any:
    """Distance from the answer that Laplace noise keeps within at a confidence level: ``scale ln(1/(1-level))``.

    A value that was rounded to a base lies half of it farther away.
    """
    return scale * -math.log1p(-level) + (rounded_to or 0.0) / 2


@dataclass(frozen=True, slots=True)
class Release:
    """A noisy answer, what was declared for it, and what only the curator may see.

    Attributes
    ----------
    statistic : str
        Name with its parameters, as in ``"quantile(0.9)"``.
    column : hashable or None
        None for the count of rows.
    value : float
        The noisy answer. Not clamped to the bounds.
    eps : float
        The privacy loss paid, in nats.
    bounds : (float, float) or None
        The universe; None for counts.
    mechanism : str
        ``"laplace"``: noise of scale GS/eps.
    scale : float
        Of the noise, in the unit of the value.
    global_sensitivity : float
        Largest change one record can make, in any data within the bounds; in the unit of the value.
    local_sensitivity : float
        Curator only. The same in these data.
    n : int
        Curator only. Number of records used.
    risk : Risk
        Its ``worst_case`` is publishable, the rest is the curator's.
    where : str or None
        The filter as far as it is known; None for all rows.
    where_trusted : bool
        Whether the filter is row-wise by the caller's word only.
    bounds_from_data : bool
        Whether the bounds are the data's own: then this is not differential privacy.
    least_group : (int, float) or None
        How many people the owner of a ledger wants an answer to be about, and the eps that was paid besides to see,
        with noise, whether they are there; the value is NaN if not.
    rounded_to : float or None
        The base that the owner of a ledger has answers rounded to, after the noise.
    """

    statistic: str
    column: Hashable | None
    value: float
    eps: float
    bounds: tuple[float, float] | None
    mechanism: str
    scale: float
    global_sensitivity: float
    local_sensitivity: float
    n: int
    risk: Risk
    where: str | None = None
    where_trusted: bool = False
    bounds_from_data: bool = False
    least_group: tuple[int, float] | None = None
    rounded_to: float | None = None

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    @own_errors
    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the noise-free answer lies, with a probability of at least ``level`` over the noise.

        Parameters
        ----------
        level : float
            In (0, 1).

        Returns
        -------
        (float, float)
            In the unit of the value. It says nothing about sampling error.
        """
        reach = half_width(self.scale, checked_probability("level", level), self.rounded_to)
        return self.value - reach, self.value + reach

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
                "declare bounds=(lo, hi) without looking at the data and ask again."
            )
        return {
            "statistic": self.statistic,
            "column": plain_label(self.column),
            "where": self.where,
            "where_trusted": self.where_trusted,
            "value": self.value,
            "eps": self.eps,
            "bounds": self.bounds,
            "mechanism": self.mechanism,
            "scale": self.scale,
            "global_sensitivity": self.global_sensitivity,
            "worst_case": self.risk.worst_case,
        } | self._ruled

    def to_dict(self, curator: bool = False) -> dict[str, Any]:
        """Flat fields: the publishable ones as `public` gives them, or with ``curator=True`` all of them."""
        if not curator:
            return self.public()
        own = [field.name for field in dataclasses.fields(self)]
        left_out = {"risk"} | set(RULED) - set(self._ruled)
        fields = {name: getattr(self, name) for name in own if name not in left_out}
        return fields | dataclasses.asdict(self.risk)

    @property
    def _ruled(self) -> dict[str, Any]:
        """What the rules of a ledger made of the answer."""
        return {name: getattr(self, name) for name in RULED if getattr(self, name) is not None}

    def to_series(self, curator: bool = False) -> pd.Series:
        """`to_dict` as a Series, named like the answer."""
        return pd.Series(self.to_dict(curator), name=self.name, dtype=object)

    @own_errors
    def explain(self, audience: str = "participant", so_far: object = None, *, language: str = "en") -> str:
        """What this release means, in words for who has to know.

        Parameters
        ----------
        audience : {"participant", "analyst", "curator", "publication"}
            A person who thinks about taking part; who works with the value; who may see the data; a label for what
            is published. Only the curator's text holds the curator's numbers.
        so_far : float or Ledger, optional
            The eps of all releases so far about these people, this one included; or the ledger that paid for them.
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
        Imagine someone who already knows everybody else's answers and has to say whether you took part.
        Without this number they can only toss a coin: right 50 times out of 100.
        With this number they are right at most 74 times out of 100, however they go about it. That is at most 24 more.
        This counts one release. All releases so far together: at most 82 of 100.
        It does not cover theft of the data itself, or conclusions about people like you that hold whether or not you
        take part.
        """
        return explained(self._told(), audience, so_far, language)

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
        return self._drawn(kind, "", unit, language)

    @own_errors
    def picture_text(self, kind: str = "icons", *, unit: str = "", language: str = "en") -> str:
        """`picture` in signs, words and numbers, for who cannot see it; takes and raises the same."""
        return self._drawn(kind, "_text", unit, language)

    def _drawn(self, kind: str, form: str, unit: str, language: str) -> Any:
        if not isinstance(kind, str) or kind not in pictures.KINDS:
            raise ParameterError(f"unknown picture {shown(kind)}; there are {', '.join(pictures.KINDS)}.")
        draw = getattr(pictures, kind + form)
        if kind == "two_worlds":
            return draw(self.local_sensitivity, self.scale, unit=unit, language=language)
        if self.bounds_from_data:
            raise not_for_others(self.name)
        return draw(self._told().eps, language=language)

    def _told(self) -> Told:
        """Everything about this release that words are made of."""
        exposed = Exposed(self.local_sensitivity, self.n, self.risk)
        line = Line(
            name=self.name,
            eps=self.eps,
            bounds=self.bounds,
            scale=self.scale,
            half=float(half_width(self.scale, rounded_to=self.rounded_to)),
            global_sensitivity=self.global_sensitivity,
            value=self.value,
            exposed=exposed,
        )
        size, extra = (None, 0.0) if self.least_group is None else self.least_group
        return Told(
            name=self.name,
            lines=(line,),
            eps=self.eps + extra,
            mechanism=self.mechanism,
            where=self.where,
            where_trusted=self.where_trusted,
            bounds_from_data=self.bounds_from_data,
            extra=extra,
            least_group=size,
        )

    @property
    def name(self) -> str:
        """As people write it: ``mean(distance)``."""
        return written(self.statistic, self.column)

    def __repr__(self) -> str:
        return formatting.text(self.name, *self._rows())

    def _repr_html_(self) -> str:
        return formatting.html(self.name, *self._rows())

    def _rows(self) -> tuple[formatting.Rows, formatting.Rows]:
        """The publishable and the curator's lines of the reprs."""
        low, high = self.interval()
        bounds = (
            "none needed"
            if self.bounds is None
            else f"{formatting.number(self.bounds[0])} to {formatting.number(self.bounds[1])}"
        )
        withheld = math.isnan(self.value)
        public = [
            ("noisy value", "withheld: too few people" if withheld else formatting.number(self.value)),
            ("95 % noise interval", "none" if withheld else f"{formatting.number(low)} to {formatting.number(high)}"),
            ("eps", f"{self.eps:.6g}"),
            ("bounds", bounds + (" (from the data)" if self.bounds_from_data else "")),
            ("noise", f"{self.mechanism}, scale {formatting.number(self.scale)}"),
            ("global sensitivity", formatting.number(self.global_sensitivity)),
            ("worst-case risk", formatting.risk(self.risk.worst_case)),
        ]
        if self.where is not None:
            public.insert(3, ("where", self.where + (" (row-wise by your word)" if self.where_trusted else "")))
        if self.least_group is not None:
            size, eps = self.least_group
            public.append(("least group", f"{size} people, by a noisy number of them for eps {eps:.6g} more"))
        if self.rounded_to is not None:
            public.append(("rounded to", f"multiples of {formatting.number(self.rounded_to)}"))
        curator = [
            ("local sensitivity", formatting.number(self.local_sensitivity)),
            ("n", f"{self.n}"),
            ("two-worlds risk", formatting.risk(self.risk.two_worlds)),
            ("many-worlds risk", formatting.risk(self.risk.many_worlds)),
            ("identifiability", formatting.risk(self.risk.identifiability)),
        ]
        return ([], public + curator) if self.bounds_from_data else (public, curator)


@overload
def public(answer: pd.DataFrame) -> pd.DataFrame: ...
@overload
def public(answer: Release) -> dict[str, Any]: ...
@own_errors
def public(answer: pd.DataFrame | Release) -> pd.DataFrame | dict[str, Any]:
    """The publishable columns of a ``by=`` or ``agg`` answer; of a `Release`, its `Release.public`.

    Parameters
    ----------
    answer : DataFrame
        As pdrisk returned it, or with rows taken out; its ``attrs`` say which columns are the curator's.

    Raises
    ------
    NotPublicError
        If the bounds came from the data, or the frame does not say what it is.
    """
    if isinstance(answer, Release):
        return answer.public()
    if not isinstance(answer, pd.DataFrame):
        raise ColumnTypeError(f"public takes a frame that pdrisk returned, not {type(answer).__name__}.")
    if "curator_only" not in answer.attrs:
        raise NotPublicError(
            "this frame does not say which of its columns are the curator's: pass the answer as pdrisk returned it."
        )
    if answer.attrs.get("bounds_from_data", True):
        raise NotPublicError(
            "this answer took bounds from the data, or adds no noise, so nothing of it is publishable: "
            "ask with declared bounds=(lo, hi)."
        )
    kept = answer.drop(columns=[name for name in answer.attrs["curator_only"] if name in answer.columns])
    labels = answer.attrs.get("index", [])
    named = [plain_label(name) for name in answer.index.names]
    counted = named == [None] and answer.index.equals(pd.RangeIndex(len(answer)))  # as reset_index leaves it
    if not counted and any(name not in labels for name in named):
        raise ParameterError(
            "the index of this frame is not the one pdrisk gave it, and may hold what is the curator's."
        )
    allowed = {*PUBLIC_COLUMNS, *labels} if "columns" not in answer.attrs else set(answer.attrs["columns"])
    if unknown := [name for name in kept.columns if plain_label(name) not in allowed]:
        raise ParameterError(
            f"columns {', '.join(map(str, unknown))} are not pdrisk's, so it cannot say whether they may be published: "
            "take them out first."
        )
    return kept


PUBLIC_COLUMNS = ("value", "eps", "scale", "global_sensitivity", "worst_case")
