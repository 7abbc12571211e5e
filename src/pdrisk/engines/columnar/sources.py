"""Sources of columns: frames of Polars and Arrow, in memory or computed; each gives columns of one state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pdrisk.engines.columnar.types import ColumnType, of_arrow, of_polars
from pdrisk.errors import ParameterError, QueryFailedError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset

Read = tuple[int, Sequence[Any]]  # how many rows there are, and the columns: Polars' series or Arrow's chunked arrays
Result = TypeVar("Result")


class ColumnSource(Protocol):
    """Source of columns, in memory or computed."""

    @property
    def columns(self) -> Sequence[tuple[str, ColumnType]]:
        """Names and types of the columns."""

    @property
    def rows(self) -> int | None:
        """Number of rows; None if they are computed when they are read."""

    def read(self, places: Sequence[int]) -> Read:
        """The columns at these positions."""


@dataclass(frozen=True, slots=True)
class PolarsFrame:
    """A Polars DataFrame."""

    frame: pl.DataFrame

    @property
    def columns(self) -> Sequence[tuple[str, ColumnType]]:
        """Names and types of the columns."""
        return _in_polars(self.frame.schema)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.frame.height

    def read(self, places: Sequence[int]) -> Read:
        """The columns at these positions."""
        return self.frame.height, [self.frame.to_series(at) for at in places]


@dataclass(frozen=True, slots=True)
class PolarsPlan:
    """A Polars LazyFrame, computed each time it is read."""

    frame: pl.LazyFrame
    rows: None = None

    @property
    def columns(self) -> Sequence[tuple[str, ColumnType]]:
        """Names and types of the columns by the plan."""
        import polars as pl

        failure = "PanicException"
        try:
            schema = _without_panic(self.frame.collect_schema)
        except (pl.exceptions.PolarsError, OSError) as error:  # whose words may quote a file
            failure = type(error).__name__
        except QueryFailedError:
            pass
        else:
            return _in_polars(schema)
        raise ParameterError(
            f"Polars cannot tell the columns of this LazyFrame ({failure}): see whether its files exist, and what "
            "collect_schema() says."
        )

    def read(self, places: Sequence[int]) -> Read:
        """The columns at these positions alone, in one computation."""
        import polars as pl

        if not places:
            return int(_without_panic(self.frame.select(pl.len()).collect).item()), []
        frame = _without_panic(self.frame.select(pl.nth(*places)).collect)
        return frame.height, frame.get_columns()


@dataclass(frozen=True, slots=True)
class ArrowTable:
    """An Arrow Table."""

    table: pa.Table

    @property
    def columns(self) -> Sequence[tuple[str, ColumnType]]:
        """Names and types of the columns."""
        return [(field.name, of_arrow(field.type)) for field in self.table.schema]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def read(self, places: Sequence[int]) -> Read:
        """The columns at these positions."""
        return self.rows, [self.table.column(at) for at in places]


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """An Arrow dataset, read from its files each time."""

    dataset: pyarrow.dataset.Dataset
    rows: None = None

    @property
    def columns(self) -> Sequence[tuple[str, ColumnType]]:
        """Names and types of the columns."""
        return [(field.name, of_arrow(field.type)) for field in self.dataset.schema]

    def read(self, places: Sequence[int]) -> Read:
        """The columns at these positions alone."""
        import pyarrow.compute as pc

        if not places:
            return int(self.dataset.count_rows()), []
        names = self.dataset.schema.names
        table = self.dataset.to_table(columns={str(at): pc.field(names[at]) for at in places})
        return int(table.num_rows), table.columns


def source_of(data: object) -> ColumnSource | None:
    """Source of a Polars or Arrow frame, as it is now; None for anything else."""
    module, kind = type(data).__module__.partition(".")[0], type(data).__name__
    held: Any = data
    if module == "polars" and kind == "DataFrame":
        return PolarsFrame(held.clone())
    if module == "polars" and kind == "LazyFrame":
        return PolarsPlan(held)
    if module != "pyarrow":
        return None
    import pyarrow as pa

    if isinstance(held, pa.RecordBatch):
        held = pa.Table.from_batches([held])
    if isinstance(held, pa.Table):
        return ArrowTable(held)
    return ArrowFiles(held) if kind.endswith("Dataset") else None


def _in_polars(schema: Mapping[str, Any]) -> list[tuple[str, ColumnType]]:
    """The names and types of a schema; each type is looked at once."""
    kinds = {held: of_polars(held) for held in schema.values()}
    return [(name, kinds[held]) for name, held in schema.items()]


def _without_panic(work: Callable[[], Result]) -> Result:
    """Result of ``work``; a panic of Polars, which is no Exception and could quote a record, becomes an error."""
    import polars as pl

    try:
        return work()
    except pl.exceptions.PanicException:
        pass
    raise QueryFailedError
