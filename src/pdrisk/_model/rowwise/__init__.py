"""Row-wise filters: each record is decided by that record and constants alone.

The sensitivities of pdrisk hold for a subgroup only if its selection is row-wise: then adding or removing one record
changes the selected set by that record or not at all. A query string and a ``pd.col`` expression become one small
tree of allowed operations, checked on zero rows before data is touched. A mask and a callable cannot be checked; they
are taken at the caller's word and marked so.
"""

import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from pdrisk._caller_frame import caller
from pdrisk._core.foreign import shown
from pdrisk._guard import guarded
from pdrisk._model.declared.missing_codes import asked_for_code
from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, equalities, is_given
from pdrisk._model.rowwise.builder import EXAMPLE, Builder, Levels, text_of
from pdrisk._model.rowwise.derived import Derived
from pdrisk._model.rowwise.expression import Recorded, Recorder, state_of
from pdrisk._model.rowwise.meaning import meaning_of
from pdrisk._model.rowwise.polars_expression import is_of_polars, polars_tree
from pdrisk._model.rowwise.query_string import QueryString
from pdrisk._model.rowwise.types import BOOLEAN, check_boolean, typed
from pdrisk.errors import ColumnTypeError, ParameterError, QueryFailedError

__all__ = [
    "EXPRESSION",
    "Derived",
    "Fitted",
    "Given",
    "RowwiseFilter",
    "Within",
    "caller_names",
    "equal_to",
    "fitting",
    "given_of",
    "is_mask",
    "is_of_polars",
    "judged",
    "judged_again",
    "with_values",
]

FORMS = "a query string, a pd.col expression (pandas 3) or Polars', a boolean Series, array or list, or a callable"
EXPRESSION: Any = getattr(pd.api.typing, "Expression", ())  # pandas 2 has none, and isinstance(x, ()) is False
Given = Literal["mask", "function"]


@dataclass(frozen=True)
class RowwiseFilter:
    """A judged ``where``: the filter of a query, which decides each record by itself.

    Parameters
    ----------
    text : str or None
        What a checked filter says, with ``@names`` in the place of their values; None for masks and callables.
    trusted : bool
        Whether it is row-wise by the caller's word only: a mask, a callable, or a constant that came from a Python
        variable and may have been computed from the data.
    columns : tuple of Hashable
        The columns that the tree reads.
    rule : Node or None
        The tree; None if the caller's mask or callable decides alone.
    written : Node or None
        The tree that ``text`` was written from.
    given : {"mask", "function"}, optional
        Which kind of thing must hold as well that the caller passed, and that only the engine has: see `given_of`.
    """

    text: str | None
    trusted: bool
    columns: tuple[Hashable, ...]
    rule: Node | None = field(default=None, repr=False)
    written: Node | None = field(default=None, repr=False, compare=False)
    given: Given | None = None

    def __hash__(self) -> int:
        return hash((self.text, self.columns, self.given))  # the constants of a tree may be lists

    @property
    def is_checked(self) -> bool:
        """Whether its tree alone decides, without a mask or callable."""
        return self.given is None

    @property
    def canonical(self) -> str | None:
        """The tree with the types and values of its constants; None for masks and callables."""
        return None if self.rule is None or not self.is_checked else repr(self.rule) + meaning_of(self.rule)

    @property
    def asks_a_function(self) -> bool:
        """Whether a callable decides, which may read any column."""
        return self.given == "function"

    def check_codes(self, missing: Mapping[Hashable, tuple[Hashable, ...]]) -> None:
        """Refuse a filter that asks for a declared missing code."""
        asked = (
            (column.name, value, text_of(column), text_of(Constant(value, constant.given)))
            for column, constant in (() if self.rule is None else equalities(self.rule))
            for value in (constant.value if isinstance(constant.value, list) else [constant.value])
        )
        if problem := asked_for_code(asked, missing.get, "{}.isna() or .notna()"):
            raise ParameterError(f"cannot use where={self.text!r}: {problem}")

    def and_also(self, other: "RowwiseFilter") -> "RowwiseFilter":
        """Filter for the records that both select; the second may be a mask or callable."""
        if other.rule is None or other.written is None:
            return replace(self, text=None, trusted=True, given=other.given)
        assert self.rule is not None and self.written is not None
        written, rule = _joined(self.written, other.written), _joined(self.rule, other.rule)
        columns = tuple(dict.fromkeys((*self.columns, *other.columns)))
        return RowwiseFilter(text_of(written), self.trusted or other.trusted, columns, rule, written)


class Within(NamedTuple):
    """Filter of a Dataset together with the ``where`` of a question."""

    where: Any  # as everybody writes it
    kept: RowwiseFilter | None  # the records that the Dataset was reduced to
    derived: tuple[Derived, ...]  # the columns that were assigned
    stored: pd.DataFrame  # the frame without them


class Fitted(NamedTuple):
    """Mask that fits its data, which are no pandas frame."""

    mask: Any


def _joined(*parts: Node) -> Node:
    """Conditions joined with ``and``: ``a and b`` with ``c`` is ``a and b and c``."""
    both = (part.parts if isinstance(part, Operation) and part.symbol == "and" else (part,) for part in parts)
    return Operation("and", tuple(condition for listed in both for condition in listed))


def is_mask(where: object) -> bool:
    """Whether a ``where`` is meant as a mask, one decision for each row: a list or an array."""
    return isinstance(where, list) or hasattr(type(where), "__array__")


def fitting(mask: Any, frame: pd.DataFrame) -> Any:
    """The mask, if it is boolean and made for this frame; else the error that says what it is."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(mask, arrow.Array | arrow.ChunkedArray):
        mask = pd.arrays.ArrowExtensionArray(mask)
    if type(mask) is list:
        if not all(type(value) in (bool, np.bool_) for value in mask):
            raise ColumnTypeError("a mask must be boolean: every element of a list passed as where is True or False.")
        mask = np.array(mask, dtype=bool)
    if isinstance(mask, pd.DataFrame | np.ndarray) and mask.ndim != 1:
        raise ColumnTypeError("a mask must have one dimension: pass one boolean Series or array as where.")
    if not (type(mask) is np.ndarray or isinstance(mask, pd.Series | pd.api.extensions.ExtensionArray)):
        raise ColumnTypeError(f"where cannot be of type {type(mask).__name__}; it takes {FORMS}.")
    if str(mask.dtype) not in BOOLEAN:
        advice = "Convert it with .astype('boolean')" if mask.dtype == object else "Compare it with something"
        raise ColumnTypeError(f"a mask must be boolean (bool, boolean or bool[pyarrow]), not {mask.dtype}. {advice}.")
    if isinstance(mask, pd.Series):
        if not (mask.index is frame.index or mask.index.equals(frame.index)):
            raise ParameterError("the mask passed as where has another index than the frame. Make it from this frame.")
    elif len(mask) != len(frame):
        raise ParameterError("the mask passed as where has another length than the frame. Make it from this frame.")
    return mask


def judged(
    where: Any,
    frame: pd.DataFrame,
    names: Callable[[], Mapping[str, object]],
    levels: Levels = lambda _: None,
) -> RowwiseFilter | None:
    """The filter that ``where`` describes, None for all records.

    Columns, dtypes, index and length are looked at, never a value.

    ``where``: strings and expressions are checked to be row-wise; masks and callables are trusted.
    ``frame``: what it will select from.
    ``names``: gives the variables for ``@name``; called only if there is one.
    ``levels``: gives the categories that were declared for a column, in order; None where none were.
    """
    if isinstance(where, Within):
        rows = None if where.where is None else judged(where.where, frame, names, levels)
        return rows if where.kept is None else where.kept if rows is None else where.kept.and_also(rows)
    if isinstance(where, str):
        query = QueryString(str(where), frame, names, levels)
        return _checked(query, query.tree)
    if isinstance(where, EXPRESSION):
        builder = Builder("pd.col(...)", frame, levels)  # not its repr: that holds values, or the repr of a Series
        return _checked(builder, lambda: where._eval_expression(Recorder(builder)))
    if is_of_polars(where, "Expr"):
        builder = Builder("pl.col(...)", frame, levels)
        return _checked(builder, lambda: polars_tree(where, builder))
    given = given_of(where, frame)
    return RowwiseFilter(None, True, (), given="function" if callable(given) else "mask")


def equal_to(column: Hashable, value: Any, frame: pd.DataFrame, option: str) -> RowwiseFilter:
    """The filter of the records with this value in a column; fails as `judged`, and names the option that says it."""
    builder = Builder(shown(value), frame, lambda _: None, option)
    return _checked(builder, lambda: builder.operation("==", builder.column(column), builder.constant(value, "it")))


def with_values(columns: tuple[Hashable, ...], frame: pd.DataFrame, rows: RowwiseFilter | None) -> RowwiseFilter:
    """The filter of the records that have a value in all of these columns, and are selected by another one."""
    builder = Builder("columns", frame, lambda _: None)
    known = _joined(*(builder.operation("notna", builder.column(column)) for column in columns))
    present = _checked(builder, lambda: known)
    return present if rows is None else present.and_also(rows)


def judged_again(kept: RowwiseFilter, frame: pd.DataFrame, levels: Levels) -> RowwiseFilter:
    """A checked filter for another frame, whose columns of the same names may be of other types; fails as `judged`."""
    builder = Builder(str(kept.text), frame, levels, "query")
    assert kept.written is not None
    rule, value = typed(
        kept.written, {builder.column(column).name: frame[column].iloc[:0] for column in kept.columns}, builder
    )
    check_boolean(kept.written, value, builder)
    return replace(kept, rule=rule)


def given_of(where: Any, frame: pd.DataFrame) -> Any:
    """The part of a ``where`` that cannot be checked and goes to the engine: a callable, or a fitting mask.

    None for what is judged as a whole.
    """
    if isinstance(where, Within):
        where = where.where
    if isinstance(where, Fitted):
        return where.mask
    if where is None or isinstance(where, (str, EXPRESSION)) or is_of_polars(where, "Expr"):
        return None
    return where if callable(where) and not isinstance(where, type) else fitting(where, frame)


def _checked(builder: Builder, build: Callable[[], Any]) -> RowwiseFilter:
    def checked() -> RowwiseFilter:
        tree = build()
        tree = state_of(tree)[1] if isinstance(tree, Recorded) else tree
        if not isinstance(tree, Call | Column | Operation):
            builder.refuse(f"it names no column, so it decides nothing about a record. {EXAMPLE}.")
        rule, value = typed(tree, {name: builder.frame[name].iloc[:0] for name in builder.columns}, builder)
        check_boolean(tree, value, builder)
        return RowwiseFilter(text_of(tree), is_given(tree), tuple(builder.columns), rule, tree)

    with suppress(QueryFailedError):  # a RecursionError, or whatever foreign code inside a pd.col expression raises
        return guarded(checked)
    return builder.refuse(f"it is nested too deeply, or does something that is not an operator. {EXAMPLE}.")


def caller_names() -> Mapping[str, object]:
    """Variables of the nearest caller outside pdrisk, locals before globals."""
    frame, _ = caller()
    return {**frame.f_globals, **frame.f_locals}
