"""Text of BigQuery, Snowflake and Trino on DuckDB: translated by sqlglot, with what their documents say otherwise.

Where an engine raises, or means something else than DuckDB, the translation does so too: then the integers are right
only because the text does not depend on it. It is no proof for the engines themselves.
"""

import sqlglot
from sqlglot import exp

from pdrisk.engines.sql.servers.duckdb_engine import fetched

IEEE = ("bigquery", "trino")  # whose comparisons with NaN are false, and whose extremes of it are NaN
WIDE = (exp.DataType.Type.BIGDECIMAL, exp.DataType.Type.DECIMAL)
MACROS = """
CREATE OR REPLACE MACRO as_double(x) AS TRY_CAST(TRY_CAST(x AS VARCHAR) AS DOUBLE);
CREATE OR REPLACE MACRO no_nan(x) AS COALESCE(NOT isnan(as_double(x)), true);
CREATE OR REPLACE MACRO min_of_all(x) AS CASE WHEN bool_or(NOT no_nan(x)) THEN CAST('nan' AS DOUBLE) ELSE min(x) END;
CREATE OR REPLACE MACRO max_of_all(x) AS CASE WHEN bool_or(NOT no_nan(x)) THEN CAST('nan' AS DOUBLE) ELSE max(x) END;
CREATE OR REPLACE MACRO whole(x) AS
    CASE WHEN as_double(x) <> floor(as_double(x)) THEN error('this cast rounds') ELSE CAST(x AS HUGEINT) END;
CREATE OR REPLACE MACRO bitwise_right_shift(x, n) AS x >> n;
CREATE OR REPLACE MACRO within_reach(x) AS CASE WHEN isinf(x) THEN NULL ELSE x END;
CREATE OR REPLACE MACRO finite(a, b) AS isfinite(CAST(a AS DOUBLE)) AND isfinite(CAST(b AS DOUBLE));
CREATE OR REPLACE MACRO safe_add(a, b) AS CASE WHEN finite(a, b) THEN within_reach(a + b) ELSE a + b END;
CREATE OR REPLACE MACRO safe_subtract(a, b) AS CASE WHEN finite(a, b) THEN within_reach(a - b) ELSE a - b END;
CREATE OR REPLACE MACRO safe_multiply(a, b) AS CASE WHEN finite(a, b) THEN within_reach(a * b) ELSE a * b END;
CREATE OR REPLACE MACRO ieee_divide(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN CAST(b AS DOUBLE) <> 0 THEN CAST(a AS DOUBLE) / b
    WHEN a > 0 THEN CAST('inf' AS DOUBLE) WHEN a < 0 THEN CAST('-inf' AS DOUBLE)
    WHEN a = 0 AND b = 0 THEN CAST('nan' AS DOUBLE) END;
"""


def parsed(text, dialect):
    """The tree of a statement, which the grammar has to know whole."""
    return sqlglot.parse_one(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)


def on_duckdb(con, dialect):
    """Fetches what the statements of a dialect become on DuckDB."""
    con.execute(MACROS)
    return lambda sql, values: fetched(con, translated(sql, dialect), [])


def translated(text, dialect):
    """A statement of a dialect in that of DuckDB."""
    tree = parsed(text, dialect).transform(lambda node: _as_meant(node, dialect), copy=False)
    return tree.sql("duckdb", copy=False)


def _called(name, *arguments):
    return exp.Anonymous(this=name, expressions=list(arguments))


def _as_meant(node, dialect):
    """A node, its children unseen so far, as the engine means it."""
    if isinstance(node, exp.Collate):
        return _as_meant(node.this, dialect)  # texts of DuckDB are compared by code points
    if isinstance(node, exp.Cast) and not isinstance(node.this, exp.Literal) and not node.meta.get("seen"):
        is_wide = node.to.this in WIDE
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        if is_wide and isinstance(inner, exp.Div):  # of what is left without the remainder
            return exp.paren(exp.IntDiv(this=inner.this, expression=inner.expression))
        if is_wide or node.to.is_type("bigint"):
            kept = exp.cast(_called("whole", node.this), "hugeint" if is_wide else "bigint", dialect="duckdb")
            kept.meta["seen"] = True
            return kept
    if isinstance(node, exp.DataType) and node.this in WIDE:
        return exp.DataType.build("hugeint", dialect="duckdb")
    if dialect in IEEE and isinstance(node, exp.Min | exp.Max):
        return _called("min_of_all" if isinstance(node, exp.Min) else "max_of_all", node.this)
    if dialect in IEEE and isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ) and not node.meta.get("seen"):
        node.meta["seen"] = True
        sides = [_called("no_nan", each.copy()) for each in (node.this, node.expression)]
        return exp.paren(exp.and_(node.copy(), *sides))
    return node
