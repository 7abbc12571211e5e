"""A query that may be asked, and its statements shown to a DuckDB without people before anything is paid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pdrisk._model.query import Query
from pdrisk._sql.noisy.layers import NOISY, Layer
from pdrisk._sql.relations.dry_run import computed, described, typed_nothing
from pdrisk._sql.relations.group_keys import Grouping
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.select.server_engine import ServerEngine
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import DuckDBEngine
from pdrisk.engines.sql.summary.statements import statement
from pdrisk.engines.sql.summary.summary_plan import Counted, Different, Part, Summarised, SummarisedPair, SummaryPlan

__all__ = ["Judged", "said_by", "try_out"]

COLUMN = re.compile(r"[kv]\d+")  # of the noisy table
BY_KEY = " ORDER BY code"


@dataclass(frozen=True, slots=True)
class Judged:
    """Query that may be asked.

    Attributes
    ----------
    engine : DuckDBEngine or ServerEngine
        What reads the source for it.
    names : tuple of str
        A name for each line.
    groups : tuple of Grouping
    layers : tuple of Layer
        The SELECTs over the noisy table, the last of which gives the answer; HAVING of the first is a WHERE.
    written_out : Fraction
        What its releases spend whose eps is written in the query.
    open_releases : int
        How many others there are.
    """

    query: Query
    relation: Relation
    engine: DuckDBEngine | ServerEngine
    names: tuple[str, ...]
    groups: tuple[Grouping, ...]
    layers: tuple[Layer, ...]
    written_out: Fraction
    open_releases: int

    @property
    def items(self) -> tuple[tuple[str, str], ...]:
        """The SELECT list of the answer, SQL and heading."""
        return tuple((value.sql, label) for label, value in self.layers[-1].items)

    @property
    def merges(self) -> bool:
        """Whether a row of the answer combines several of the noisy table."""
        return any(layer.aggregates for layer in self.layers)

    def computed(self, chosen: Sequence[str], noisy: str, carried: Sequence[str] = ()) -> str:
        """Statement that computes these expressions on the noisy table; they use the ``carried`` columns."""
        *inner, outer = self.layers
        for layer in inner:
            noisy = layer.subquery(noisy, carried)
        return outer.statement(chosen, noisy)

    @property
    def whole_keys(self) -> frozenset[str]:
        """Whole numbers among keys that were read as floats, as they were listed or as the frame has them."""
        listed = None if self.query.groups is None else self.query.groups.keys
        source = self.relation.source
        return frozenset(
            f"k{at}"
            for at, group in enumerate(self.groups)
            if group.type == "DOUBLE"
            and (group.column in source.whole if listed is None else all(type(key[at]) is int for key in listed))
        )

    @property
    def plain(self) -> bool:
        """Whether SELECT lists keys and releases without computations."""
        first = self.layers[0]
        only = len(self.layers) == 1 and not (first.where or first.windows or first.tail != BY_KEY)
        return only and all(COLUMN.fullmatch(sql) for sql, _ in self.items)


def said_by(part: Part) -> str:
    """SQL of what is read."""
    if isinstance(part, Different):
        return part.value
    if isinstance(part, SummarisedPair):
        return f"{part.value} {part.other}"
    return part.value if isinstance(part, Summarised) else part.condition or ""


def try_out(found: Judged, plan: SummaryPlan, has_parameters: bool) -> None:
    """Show both statements to a DuckDB without people; what it refuses there costs nothing.

    Also that of a table elsewhere, of which another one is read: DuckDB knows which types go together.
    """
    if not _reads_columns_only(found, plan):
        described(_without_people(found, plan), has_parameters)
    if found.plain:
        return
    columns = [f"CAST(NULL AS {group.type}) AS k{at}" for at, group in enumerate(found.groups)]
    columns += [f"CAST(NULL AS DOUBLE) AS {letter}{at}" for letter in "vu" for at in range(len(found.query.lines))]
    nothing = f"(SELECT {', '.join(columns)}, CAST(0 AS BIGINT) AS code) AS {NOISY}"
    computed(found.computed([sql for sql, _ in found.items], nothing), has_parameters)


def _reads_columns_only(found: Judged, plan: SummaryPlan) -> bool:
    """Whether nothing is read that DuckDB could refuse."""
    plain = all(isinstance(part, Summarised | Counted) and _reads_column(part) for part in plan.parts)
    return plain and not (plan.inner or plan.where or plan.people) and all(group.column for group in found.groups)


def _reads_column(part: Summarised | Counted) -> bool:
    return part.column is not None if isinstance(part, Summarised) else part.condition is None


def _without_people(found: Judged, plan: SummaryPlan) -> str:
    """The statement that reads the data, over one row of NULLs."""
    keys = None
    if plan.keys is not None:
        nothing = ", ".join(f"CAST(NULL AS {group.type}) AS g{at}" for at, group in enumerate(found.groups))
        keys = f"(SELECT {nothing}, CAST(NULL AS BIGINT) AS code) AS keys_listed"
    people = () if plan.people is None else plan.people.keys
    said = " ".join((*plan.inner, *plan.where, *plan.groups, *map(said_by, plan.parts), *people))
    return statement(replace(plan, source=typed_nothing(found.relation.source, said), keys=keys), DuckDBDialect())
