"""Fractions in a tree of sqlglot: operands of a division that are no whole numbers, by their types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.text.sqlglot_names import ARITHMETIC, OF_ONE
from pdrisk.errors import ParameterError

ALWAYS: Final = {
    "Avg", "Median", "Extract", "Corr", "CovarPop", "CovarSamp", "RegrSlope", "Sqrt", "WithinGroup",
    *(name for name in OF_ONE if name.startswith(("Std", "Var"))),
}  # fmt: skip
#: What has the type of its first operand, or the common type of all.
LIKE_THE_FIRST: Final = {
    "Paren", "Neg", "Filter", "Alias", "Abs", "Sum", "Min", "Max", "Nullif", "Window", "Round", "Floor",
    "Ceil", "Trunc",
}  # fmt: skip
LIKE_ANY: Final = {"Coalesce", "Greatest", "Least"}
OF_FRACTIONS: Final = {"DOUBLE", "FLOAT"}  # as `Source` has them: NUMERIC is one, too
Types = Callable[[tuple[str, ...]], Mapping[str, str]]


def is_fractional(node: Any, names: Collection[str] = ()) -> bool:
    """Whether an operand of a division is, by its type, no whole number.

    ``names``: columns of which this is known, in lower case.
    """

    def of(part: Any) -> bool:
        return is_fractional(part, names)

    name = type(node).__name__
    if name in ALWAYS:
        return True
    if name == "Column":
        return lowered(str(node.name)) in names
    if name == "Literal":
        return not node.args["is_string"] and not str(node.this).isdigit()
    if name in ("Cast", "TryCast"):
        return getattr(node.args["to"].this, "name", "") in ("DOUBLE", "FLOAT", "DECIMAL")
    if name == "Subquery":  # of one value
        return type(node.this).__name__ == "Select" and any(map(of, node.this.expressions[:1]))
    if name in LIKE_THE_FIRST:
        return of(node.this)
    if name == "Distinct":
        return any(map(of, node.expressions))
    if name in LIKE_ANY:
        return any(map(of, (node.this, *node.expressions)))
    if name == "Case":
        return any(of(branch) for branch in (*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")))
    return name in (*ARITHMETIC, "Mod") and (of(node.this) or of(node.expression))


def fractional_names(root: Any, types: Types, name_of: Callable[[Any], str]) -> frozenset[str]:
    """Names of columns that hold no whole numbers wherever a statement uses them, in lower case.

    ``root``: the whole statement.
    ``types``: gives the types of a table's columns by its path; fails of what is none.
    ``name_of``: name of a table as its engine keeps it.
    """
    from sqlglot import expressions

    ctes = {lowered(cte.alias) for cte in root.find_all(expressions.CTE)}
    known: dict[str, set[str]] = {}
    for table in root.find_all(expressions.Table):
        path = tuple(name_of(table.args[part]) for part in ("catalog", "db", "this") if table.args.get(part))
        try:
            columns = types(path)
        except ParameterError:
            if len(path) > 1 or lowered(path[0]) not in ctes:
                return frozenset()
            continue
        for column, sql_type in columns.items():
            known.setdefault(lowered(column), set()).add(sql_type)
    made = [(lowered(alias.alias), alias.this) for alias in root.find_all(expressions.Alias)]
    names = {name for name, _ in made} | set(known)
    names -= {name for name, kinds in known.items() if not kinds <= OF_FRACTIONS}
    renamed = (alias.args.get("columns") or () for alias in root.find_all(expressions.TableAlias))
    names -= {lowered(str(column.name)) for columns in renamed for column in columns}
    names = {name for name in names if not name.startswith(("col", "column")) or not name[-1].isdigit()}  # of VALUES
    while lost := {name for name, node in made if name in names and not is_fractional(node, names)}:
        names -= lost
    return frozenset(names)
