"""Names that sqlglot has for nodes, and what they are to pdrisk: the allow-list of `sqlglot_expressions`."""

from __future__ import annotations

COMPARISONS = {"EQ": "==", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
OF_ONE = {
    "Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max", "Median": "median", "CountIf": "count_if",
    "AnyValue": "any_value",
    "Stddev": "stddev", "StddevSamp": "stddev_samp", "StddevPop": "stddev_pop",
    "Variance": "variance", "VariancePop": "var_pop", "LogicalOr": "bool_or", "LogicalAnd": "bool_and",
}  # fmt: skip
OF_TWO = {"Corr": "corr", "CovarPop": "covar_pop", "CovarSamp": "covar_samp", "RegrSlope": "regr_slope"}
QUANTILES = {"Quantile": "quantile", "ApproxQuantile": "quantile"}
PERCENTILES = {"PercentileCont": "quantile_cont", "PercentileDisc": "quantile_disc"}
_NUMERIC = "abs sqrt cbrt floor ceil sign exp ln sin cos tan asin acos atan degrees radians"
OF_NUMBERS = {name.title(): name for name in _NUMERIC.split()}
OF_TWO_NUMBERS = ("Mod", "Pow", "IntDiv")
OF_TEXT = {  # the function, and the fields of its arguments
    "Lower": ("lower", "this"), "Upper": ("upper", "this"), "Length": ("length", "this"),
    "Left": ("left", "this", "expression"), "Right": ("right", "this", "expression"),
    "Substring": ("substring", "this", "start", "length"), "StrPosition": ("strpos", "this", "substr"),
    "Replace": ("replace", "this", "expression", "replacement"), "Contains": ("contains", "this", "expression"),
    "StartsWith": ("starts_with", "this", "expression"), "EndsWith": ("ends_with", "this", "expression"),
    "Repeat": ("repeat", "this", "times"), "SplitPart": ("split_part", "this", "delimiter", "part_index"),
}  # fmt: skip
#: Types of casts, by sqlglot's names. A FLOAT has 32 bits in some languages.
TYPES = {
    "DOUBLE": "DOUBLE", "DECIMAL": "DECIMAL", "BOOLEAN": "BOOLEAN", "DATE": "DATE",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), "TIMESTAMP"), **dict.fromkeys(("TEXT", "VARCHAR"), "VARCHAR"),
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT",
}  # fmt: skip
_OF_DAYS = {"year", "quarter", "month", "week", "day", "doy", "hour", "minute"}
#: What EXTRACT takes. Seconds have fractions there, and weekdays other numbers in Spark.
PARTS = {
    "postgres": _OF_DAYS | {"dow", "isodow", "isoyear", "decade", "century"},
    "spark": _OF_DAYS | {"dayofyear"},
}
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
    "DayOfYear": "dayofyear", "Hour": "hour", "Minute": "minute", "Second": "second", "DayOfWeekIso": "isodow",
}  # fmt: skip
ENDS = {"Greatest": "greatest", "Least": "least"}
ADVICE = {
    "Command": "a statement, or a part of one, that is no SELECT",
    "Except": "EXCEPT ALL: write EXCEPT",
    "Intersect": "INTERSECT ALL: write INTERSECT",
    "Parameter": "this way of writing a parameter: write ? or :name",
    "Subquery": "a subquery inside an expression, unless it gives one value, or stands behind IN or EXISTS in WHERE",
    "Like": "LIKE with a pattern that is not written out, or has a backslash",
    "Extract": "this part of a time, on which engines do not agree: ask for year, quarter, month, week, day, doy, hour "
    "or minute",
    "Cast": "a cast to this type: write DOUBLE PRECISION, NUMERIC(p, s), INT, BIGINT, TEXT, DATE, TIMESTAMP or "
    "BOOLEAN; for Spark DOUBLE, STRING and TIMESTAMP_NTZ",
    "Explode": "rows of an array: explode(sequence(1, 9)) takes constants, whole numbers or dates",
    "Series of months": "a sequence of months or years from a day after the 28th: begin on one that every month has",
    "TimeToStr": "a time written out in this form: write years, months, days, hours and minutes alone",
    "Number by a pattern": "TO_CHAR of a number by this pattern: write 9, 0, commas between thousands, a point and FM "
    "alone",
    "RegexpLike": "a regular expression, of which engines have different ones: write LIKE, or POSITION",
}
