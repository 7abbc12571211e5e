"""A query that may be asked, and its statements shown to a DuckDB without people before anything is paid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pdrisk._model.expressions.kinds import kind_within
from pdrisk._model.query import Query
from pdrisk._sql.noisy.layers import NOISY, Layer
from pdrisk._sql.relations.group_keys import Grouping
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.select.compiled_query import CompiledQuery
from pdrisk._sql.syntax.pieces import TYPES
from pdrisk._sql.text.dry_run import computed, described

COLUMN = re.compile(r"[kv]\d+")  # of the noisy table
BY_KEY = " ORDER BY code"


@dataclass(frozen=True, slots=True)
class Judged:
    """Query that may be asked."""

    query: Query
    relation: Relation
    engine: CompiledQuery  # what reads the source for it
    names: tuple[str, ...]  # a name for each line
    groups: tuple[Grouping, ...]
    # the SELECTs over the noisy table, the last of which gives the answer; HAVING of the first is a WHERE
    layers: tuple[Layer, ...]
    written_out: Fraction  # what its releases spend whose eps is written in the query
    open_releases: int  # how many others there are

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
    def types(self) -> list[str]:
        """SQL types of its releases: DOUBLE, or those of dates and times."""
        return [TYPES[kind_within(line.universe)] for line in self.query.lines]

    @property
    def plain(self) -> bool:
        """Whether SELECT lists keys and releases without computations."""
        first = self.layers[0]
        only = len(self.layers) == 1 and not (first.where or first.windows or first.tail != BY_KEY)
        return only and all(COLUMN.fullmatch(sql) for sql, _ in self.items)


def try_out(judged: Judged, has_parameters: bool) -> None:
    """Show both statements to a DuckDB without people; what it refuses there costs nothing."""
    if not judged.engine.reads_columns_only and (reading := judged.engine.over_nobody):
        described(reading, has_parameters)
    if judged.plain:
        return
    columns = [f"CAST(NULL AS {group.type}) AS k{at}" for at, group in enumerate(judged.groups)]
    columns += [f"CAST(NULL AS {sql_type}) AS v{at}" for at, sql_type in enumerate(judged.types)]
    columns += [f"CAST(NULL AS DOUBLE) AS u{at}" for at in range(len(judged.types))]
    nothing = f"(SELECT {', '.join(columns)}, CAST(0 AS BIGINT) AS code) AS {NOISY}"
    computed(judged.computed([sql for sql, _ in judged.items], nothing), has_parameters)
