"""Names that sqlglot has for nodes, and what they are to pdrisk: the allow-list of `sqlglot_expressions`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ADVICE",
    "ARITHMETIC",
    "COMPARISONS",
    "ENDS",
    "OF_NUMBERS",
    "OF_ONE",
    "OF_PLACES",
    "OF_ROWS",
    "OF_TIMES",
    "OF_TWO",
    "PERCENTILES",
    "QUANTILES",
    "is_fractional",
]

COMPARISONS = {"EQ": "==", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
OF_ONE = {
    "Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max", "Median": "median", "CountIf": "count_if",
    "Stddev": "stddev", "StddevSamp": "stddev_samp", "StddevPop": "stddev_pop",
    "Variance": "variance", "VariancePop": "var_pop",
}  # fmt: skip
OF_TWO = {"Corr": "corr", "CovarPop": "covar_pop", "CovarSamp": "covar_samp", "RegrSlope": "regr_slope"}
QUANTILES = {"Quantile": "quantile", "ApproxQuantile": "quantile"}
PERCENTILES = {"PercentileCont": "quantile_cont", "PercentileDisc": "quantile_disc"}
OF_NUMBERS = {"Abs": "abs", "Sqrt": "sqrt", "Floor": "floor", "Ceil": "ceil"}
OF_PLACES = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist",
}  # fmt: skip
OF_ROWS = {
    "Ntile": "ntile", "Lag": "lag", "Lead": "lead", "FirstValue": "first_value", "LastValue": "last_value",
    "NthValue": "nth_value",
}  # fmt: skip
OF_TIMES = {
    "Year": "year", "Quarter": "quarter", "Month": "month", "WeekOfYear": "week", "Day": "day", "DayOfMonth": "day",
    "DayOfYear": "dayofyear", "Hour": "hour", "Minute": "minute",
}  # fmt: skip
ENDS = {"Greatest": "greatest", "Least": "least"}
FRACTIONAL = {"Avg", "Median", "Corr", "CovarPop", "CovarSamp", "RegrSlope", "Sqrt", "WithinGroup"}
FRACTIONAL |= {name for name in OF_ONE if name.startswith(("Std", "Var"))}
ADVICE = {
    "Command": "a statement, or a part of one, that is no SELECT",
    "Except": "EXCEPT: write NOT IN, or a condition",
    "Intersect": "INTERSECT: write IN, or a condition",
    "Parameter": "this way of writing a parameter: write ? or :name",
    "Subquery": "a subquery inside an expression, unless it gives one value, or stands behind IN or EXISTS in WHERE",
    "IntDiv": "a division of whole numbers: write FLOOR(a / 2.0)",
    "Like": "LIKE: make a view in the database with a column that says it, and ask that",
}


def is_fractional(node: Any) -> bool:
    """Whether an operand of a division is, as written, no whole number."""
    name = type(node).__name__
    if name in FRACTIONAL:
        return True
    if name == "Literal":
        return not node.args["is_string"] and not str(node.this).isdigit()
    if name == "Cast":
        return getattr(node.args["to"].this, "name", "") == "DOUBLE"
    if name in ("Paren", "Neg", "Filter", "Abs"):
        return is_fractional(node.this)
    if name in ARITHMETIC:
        return is_fractional(node.this) or is_fractional(node.expression)
    return False
