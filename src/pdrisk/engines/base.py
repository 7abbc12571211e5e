"""Engine protocol: an engine turns a query into one `Summary` for each of its lines, and knows nothing of privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pandas as pd

from pdrisk._core.contributions import ExtremeContributions, PersonRecords
from pdrisk._core.summary import IntArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._model.groups.keys import Key
from pdrisk._model.query import Query
from pdrisk._model.unit import Secret

__all__ = ["DataTable", "Engine", "GroupSizes", "Origin", "Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of reading the data for a query.

    Attributes
    ----------
    universes : tuple of Universe
        For each line the universe that it declares, else that of the data.
    summaries : tuple of Summary
        For each line, the summary of its groups in the order of the answer.
    """

    universes: tuple[Universe, ...]
    summaries: tuple[Summary, ...]

    @property
    def unlisted(self) -> int | None:
        """Number of selected records without a person's id; None if the engine does not tell."""
        return None

    def people(self, line: int) -> PersonRecords | ExtremeContributions | None:
        """Records of a line by person, or what stands for them, where a person may have several in a group.

        None if the engine does not tell, or was not asked to (`Query.has_facts`).
        """
        return self.summaries[line].contributions


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """Sizes of the groups that occur, in people.

    Attributes
    ----------
    keys : tuple of tuple
        Sorted; one value for each column, none missing.
    n : ndarray of int64, shape (G,)
        Number of people with a row that the query selects.
    """

    keys: tuple[Key, ...]
    n: IntArray


@dataclass(frozen=True, slots=True)
class Origin:
    """Place of the data, by which remembered answers know them again.

    Attributes
    ----------
    frame : DataFrame or None
        The frame that is read, if it is one.
    place : callable or None
        Returns the table or file that is read, with the settings it is read with; None if it does not outlive the
        process.
    tables : mapping of str to Origin
        For data made of several tables: the place of each, by the engine's name for it.
    said : str
        What is computed from these, if the query does not say it.
    """

    frame: Any = None
    place: Callable[[], str | None] | None = None
    tables: Mapping[str, Origin] = field(default_factory=dict)
    said: str = ""


Read = TypeVar("Read", bound=Reading, covariant=True)


class Engine(Protocol[Read]):
    """Data of one source, and the way to read them."""

    @property
    def origin(self) -> Origin:
        """Place of the data."""

    @property
    def reads_later(self) -> bool:
        """Whether the curator's numbers of an answer are read when somebody looks at them, not with the answer."""

    def group_sizes(self, query: Query) -> GroupSizes:
        """Groups that occur, with their numbers of people; fails as `read` does."""

    def read(self, query: Query) -> Read:
        """Reading of a judged query.

        Raises
        ------
        QueryFailedError
            Whatever goes wrong: raised by `guarded`, without a cause that could reveal a record.
        """


class DataTable(Protocol):
    """What a Dataset holds, and what a measure, a join or the command line asks: one table of any kind."""

    @property
    def header(self) -> pd.DataFrame:
        """Columns by which questions are judged, with what is declared for them; of a pandas frame, all of it."""

    def opened(
        self, query: Query, header: pd.DataFrame, stored: pd.DataFrame, given: Any, secret: Secret
    ) -> Engine[Any]:
        """Engine of the table for a judged query.

        Parameters
        ----------
        query : Query
        header, stored : DataFrame
            The columns that it was judged by, with and without those that are assigned.
        given : mask, callable or None
            What decides beside the tree of its filter.
        secret : callable
            By which a person's rows are chosen.
        """

    def selecting(self, where: Any) -> Any:
        """A filter in a form that can be judged; refuses what this kind of table cannot take."""
