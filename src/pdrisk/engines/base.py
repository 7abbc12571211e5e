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


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of reading the data for a query."""

    universes: tuple[Universe, ...]  # for each line the universe that it declares, else that of the data
    summaries: tuple[Summary, ...]  # for each line, the summary of its groups in the order of the answer

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
    """Sizes of the groups that occur, in people."""

    keys: tuple[Key, ...]  # sorted; one value for each column, none missing
    n: IntArray  # number of people with a row that the query selects; shape (G,)


@dataclass(frozen=True, slots=True)
class Origin:
    """Place of the data, by which remembered answers know them again."""

    frame: Any = None  # the frame that is read, if it is one
    # returns the table or file that is read, with the settings it is read with; None if it does not outlive the
    # process
    place: Callable[[], str | None] | None = None
    # for data made of several tables: the place of each, by the engine's name for it
    tables: Mapping[str, Origin] = field(default_factory=dict)
    said: str = ""  # what is computed from these, if the query does not say it


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
        """Reading of a judged query."""


class DataTable(Protocol):
    """What a Dataset holds, and what a measure, a join or the command line asks: one table of any kind."""

    @property
    def header(self) -> pd.DataFrame:
        """Columns by which questions are judged, with what is declared for them; of a pandas frame, all of it."""

    def opened(
        self, query: Query, header: pd.DataFrame, stored: pd.DataFrame, given: Any, secret: Secret
    ) -> Engine[Any]:
        """Engine of the table for a judged query.

        ``header, stored``: the columns that it was judged by, with and without those that are assigned.
        ``given``: what decides beside the tree of its filter.
        ``secret``: by which a person's rows are chosen.
        """

    def selecting(self, where: Any) -> Any:
        """A filter in a form that can be judged; refuses what this kind of table cannot take."""
