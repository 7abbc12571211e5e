"""Readers of SQL texts: by DuckDB's own parser, and by sqlglot for other engines."""
