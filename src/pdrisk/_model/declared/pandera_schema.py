"""Declarations from pandera schemas: ranges, group keys and missing codes of columns, before any data.

Schemas of every flavour (pandas, Polars, Ibis) describe their columns alike. pandera itself is imported by `schema_for`
only; whoever has a schema has it loaded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pandas import Timestamp

from pdrisk._core.foreign import own_errors
from pdrisk._model.declared.declarations import Declaration, Declarations
from pdrisk._model.declared.known_column import written_ends
from pdrisk._model.declared.schema_column import NAME, builtin_name, declaration_of, entry_of, type_phrase
from pdrisk._model.groups.keys import listed_values
from pdrisk._model.unit import People, judged_people
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from pandera.pandas import DataFrameSchema

OF_PEOPLE = ("person", "per_person", "constant", "unit_label")
OF_ALL = (*OF_PEOPLE, "weights")


@own_errors
def bounds_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, tuple[Any, Any]]:
    """Bounds that a pandera schema declares, fit for ``bounds=``.

    Parameters
    ----------
    schema : DataFrameSchema or DataFrameModel
        Of pandas, Polars or another backend of pandera.
    columns : iterable of hashable, optional
        Columns to look for; by default those that the schema names. A regular expression names none.

    Returns
    -------
    dict from column to (lo, hi)
        For the columns whose range has two ends; floats, or dates.

    Raises
    ------
    ColumnTypeError
        If it is not a schema.
    ParameterError
        If the schema contradicts itself.

    Examples
    --------
    >>> import pandera.pandas as pa
    >>> import pdrisk
    >>> schema = pa.DataFrameSchema({"distance": pa.Column(int, pa.Check.in_range(1, 675))})
    >>> pdrisk.bounds_from(schema)
    {'distance': (1.0, 675.0)}
    """
    return {
        column: written_ends(known.ends, dates=known.dates)
        for column, known in _known(schema, columns)
        if known.ends is not None
    }


@own_errors
def keys_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, list[Hashable]]:
    """Group keys that a pandera schema declares, fit for ``keys=``; parameters and errors as for `bounds_from`."""
    return {column: list(known.keys) for column, known in _known(schema, columns) if known.keys is not None}


@own_errors
def missing_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, list[Hashable]]:
    """Missing codes that a pandera schema declares, fit for ``missing=``; parameters as for `bounds_from`."""
    return {column: list(known.missing) for column, known in _known(schema, columns) if known.missing}


def _known(schema: object, columns: Iterable[Hashable] | None) -> Iterator[tuple[Hashable, Any]]:
    listed = None if isinstance(columns, str | bytes) else listed_values(columns, "columns")
    try:
        names = None if listed is None else dict.fromkeys(listed)
    except (TypeError, RecursionError):  # no labels
        names = None
    if columns is not None and names is None:
        raise ColumnTypeError("columns must be a list of columns, as in ['distance'].")
    declarations = Declarations(schema=entries_of(schema))
    named = [entry.column for entry in declarations.schema if not entry.pattern and entry.says_something]
    for name in dict.fromkeys(named) if names is None else names:
        known = declarations.of(name)
        known.narrowed(known.universe)
        yield name, known


@own_errors
def schema_for(
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
    missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
    *,
    name: str | None = None,
) -> DataFrameSchema:
    """Pandera schema that declares these bounds, group keys and missing codes.

    Its checks accept what is declared: values within the bounds, listed keys, missing codes and missing values.

    Parameters
    ----------
    bounds : dict from column to (lo, hi)
    keys : dict from column to list
    missing : dict from column to list
    name : str, optional
        Name of the schema.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        ``bounds_from``, ``keys_from`` and ``missing_from`` return the same declarations from it.

    Raises
    ------
    ParameterError, ColumnTypeError
        As ``declare`` does.
    ImportError
        Without pandera.
    """
    import pandera.pandas as pa

    parts = {"bounds": bounds, "keys": keys, "missing": missing}
    for part, given in parts.items():
        if given is not None and not isinstance(given, Mapping):
            raise ColumnTypeError(
                f"schema_for takes {part} as a dict from column to value, not {type(given).__name__}."
            )
    columns: dict[Any, Any] = {}
    named = (listed_values(declared or (), "columns") or () for declared in parts.values())
    for column in dict.fromkeys(name for names in named for name in names):
        written = {
            part: declared[column] for part, declared in parts.items() if declared is not None and column in declared
        }
        entry = declaration_of(column, "schema", written)
        codes = list(entry.missing or ())
        checks = []
        metadata: dict[str, Any] = {"missing": codes} if codes else {}
        if entry.bounds is not None:
            alike = date if entry.dates else int | float
            ends = [
                *written_ends(entry.bounds, dates=entry.dates),
                *(code for code in codes if isinstance(code, alike)),
            ]
            comparable = [Timestamp(end) if entry.dates else float(end) for end in ends]
            checks.append(pa.Check.in_range(min(comparable), max(comparable)))
            metadata |= {"bounds": tuple(comparable[:2])} if codes else {}
        if entry.keys is not None and (entry.bounds is not None or None in entry.keys):
            metadata["keys"] = list(entry.keys)  # a check would forbid what bounds allow, and cannot list missing
        elif entry.keys is not None:
            checks.append(pa.Check.isin([*entry.keys, *(code for code in codes if code not in entry.keys)]))
        columns[column] = pa.Column(
            checks=checks, nullable=True, required=False, metadata={NAME: metadata} if metadata else None
        )
    return pa.DataFrameSchema(columns, name=name)


def entries_of(schema: object) -> tuple[Declaration, ...]:
    """Declarations of a schema for each of its columns.

    What cannot be understood is kept as the ``problem`` of its column, for whoever asks for that column.
    """
    said_of_all = _of_all(schema)
    if isinstance(schema, type) and hasattr(schema, "to_schema"):
        schema = _from_model(schema)
    components = getattr(schema, "columns", None)
    if not isinstance(components, Mapping) or not all(
        hasattr(component, "checks") for component in components.values()
    ):
        raise ColumnTypeError(
            f"schema must be a pandera DataFrameSchema or DataFrameModel, not {type_phrase(schema)}: bounds and keys "
            "alone are declared with declare(bounds={...}, keys={...})."
        )
    name = getattr(schema, "name", None)
    source = f"schema {str(name)!r}" if name else "schema"
    unknown = [name for name in said_of_all if name not in OF_ALL]
    checks = list(getattr(schema, "checks", None) or ())
    common = [check for check in checks if builtin_name(check)]
    dtype = getattr(schema, "dtype", None)
    if unknown or any(NAME in (check.statistics or {}) for check in checks):
        # Kept as an error for every column: what was meant, such as a missing code, may concern each of them.
        problem = (
            f"{NAME!r} of the {source} as a whole tells {', '.join(OF_ALL)}; all else belongs to single columns: move "
            "it there."
        )
        named = (Declaration(label, source, problem=problem) for label in components if isinstance(label, str | int))
        return (*named, Declaration("(?s:.*)", source, pattern=True, problem=problem))
    return tuple(entry_of(label, component, source, common, dtype) for label, component in components.items())


def people_of_schema(schema: object) -> People | None:
    """People declared by a schema's ``metadata={"dprisk": {"person": "pid"}}``; None without."""
    metadata = _of_all(schema)
    if not any(metadata.get(name) is not None for name in OF_PEOPLE):
        return None
    return judged_people(*(metadata.get(name) for name in OF_PEOPLE))


def weights_of_schema(schema: object) -> str | int | None:
    """Column of weights that a schema's ``metadata={"dprisk": {"weights": "w"}}`` declares; None without."""
    named = _of_all(schema).get("weights")
    if named is None or (isinstance(named, str | int) and not isinstance(named, bool)):
        return named
    raise ColumnTypeError(f"weights in the metadata of a schema is a column, not of type {type(named).__name__}.")


def _of_all(schema: object) -> dict[Any, Any]:
    """pdrisk's part of the metadata of a whole schema or model."""
    config = getattr(schema, "Config", None) if isinstance(schema, type) else schema
    written = getattr(config, "metadata", None)
    part = written.get(NAME) if isinstance(written, Mapping) else None
    if part is None:
        return {}
    return dict(part) if isinstance(part, Mapping) else {str(part): None}


def _from_model(model: Any) -> object:
    try:
        return model.to_schema()
    except Exception as error:  # noqa: BLE001 - pandera's errors about a model, and Python's
        problem = f"{type(error).__name__}: {error}".split("\n")[0]
    raise ParameterError(f"pandera cannot make a schema of {model.__name__} ({problem}).")
