"""Engine protocol: what turns a query into one `Summary` for each of its lines, and knows nothing of privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pdrisk._core.people import PersonRecords, PersonSums
from pdrisk._core.summary import IntArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._model.keys import Key
from pdrisk._model.query import Query

__all__ = ["Engine", "GroupSizes", "Origin", "Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the data say to a query.

    Attributes
    ----------
    universes : tuple of Universe
        For each line the one that it declares, else that of the data.
    summaries : tuple of Summary
        For each line, of its groups in the order of the answer.
    """

    universes: tuple[Universe, ...]
    summaries: tuple[Summary, ...]

    @property
    def unlisted(self) -> int | None:
        """How many selected records are of nobody known; None where the engine does not tell."""
        return None

    def people(self, line: int) -> PersonRecords | PersonSums | None:
        """The records of a line of which a person may have several in a group, or sums of them.

        None where the engine does not tell, or was not asked to (`Query.has_facts`).
        """
        return self.summaries[line].portions


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The groups that occur, and how many people each has.

    Attributes
    ----------
    keys : tuple of tuple
        Sorted; one value for each column, none missing.
    n : ndarray of int64, shape (G,)
        People with a row that the query selects.
    """

    keys: tuple[Key, ...]
    n: IntArray


@dataclass(frozen=True, slots=True)
class Origin:
    """Where data are, for whoever remembers answers.

    Attributes
    ----------
    frame : DataFrame or None
        The frame that is read, if it is one.
    place : callable or None
        Tells the table or file that is read and the settings it is read with; None if it does not outlive the process.
    tables : mapping of str to Origin
        Of data that are made of several tables: where each is, by the name that the engine has for it.
    said : str
        What is made of these, where a query does not say it.
    """

    frame: Any = None
    place: Callable[[], str | None] | None = None
    tables: Mapping[str, Origin] = field(default_factory=dict)
    said: str = ""


Read = TypeVar("Read", bound=Reading, covariant=True)


class Engine(Protocol[Read]):
    """Some data, and how to read them."""

    @property
    def origin(self) -> Origin:
        """Where they are."""

    def group_sizes(self, query: Query) -> GroupSizes:
        """The groups that occur; fails as `read` does."""

    def read(self, query: Query) -> Read:
        """What the data say to a judged query.

        Raises
        ------
        QueryFailedError
            Whatever goes wrong: as `guarded` does it, without a cause that could reveal a record.
        """
