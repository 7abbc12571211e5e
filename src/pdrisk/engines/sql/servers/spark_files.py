"""DataFrames of Spark that find the same records at every look: columns and filters of files that are fast to read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK: Final = "org.apache.spark.sql."
OF_FILES: Final = {"LogicalRelation", "LocalRelation", "Project", "Filter", "Union", "SubqueryAlias", "View"}
# fmt: off
BY_ROW: Final = {
    "Alias", "AttributeReference", "Literal", "Cast", "And", "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan",
    "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In", "IsNull", "IsNotNull", "IsNaN", "Coalesce", "If",
    "CaseWhen", "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "UnaryMinus", "Abs", "Floor",
    "Ceil", "Round", "Sqrt", "Exp", "Log", "Pow", "Least", "Greatest", "Like", "StartsWith", "EndsWith", "Contains",
    "Upper", "Lower", "StringTrim", "Substring", "Length", "Concat", "Year", "Month", "DayOfMonth",
}
# fmt: on
READ_BY_COLUMN: Final = {"ParquetFileFormat", "OrcFileFormat"}  # of text, all columns would be parsed once more


def finds_the_same(frame: DataFrame) -> bool:
    """Whether all that a DataFrame is made of is known to give the same records each time, if no file changes.

    Its plan holds nothing but what is named here: files that were listed when it was made, or rows of the driver, and
    what is computed of each row alone. Spark calls samples, limits, functions of Python and the time of day
    deterministic, too. Of a DataFrame of Connect nothing is known.
    """
    try:
        plan: Any = frame._jdf.queryExecution().analyzed()
        leaves = plan.collectLeaves()
        read = [leaves.apply(at) for at in range(leaves.size())]
        return _names(plan.toJSON()) <= OF_FILES | BY_ROW and all(map(_is_listed, read))
    except Exception:  # noqa: BLE001 - of Java, of Connect, or of another version: then nothing is known
        return False


def _names(plan: str) -> set[str]:
    """Classes of a plan's nodes and of all expressions in them: Spark's own without their packages."""
    nodes: list[dict[str, Any]] = []
    json.loads(plan, object_hook=nodes.append)
    classes = {str(node["class"]) for node in nodes if "class" in node}
    return {class_.rsplit(".", 1)[1] if class_.startswith(SPARK) else class_ for class_ in classes}


def _is_listed(leaf: Any) -> bool:
    """Whether a leaf of a plan holds its rows, or a list of files that stays as it is."""
    if _class(leaf) == "LocalRelation":
        return True
    relation = leaf.relation()
    return (
        _class(relation) == "HadoopFsRelation"
        and _class(relation.location()) == "InMemoryFileIndex"
        and _class(relation.fileFormat()) in READ_BY_COLUMN
    )


def _class(of: Any) -> str:
    return str(of.getClass().getSimpleName())
