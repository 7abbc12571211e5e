"""Expressions of one record: judged, and written in DuckDB's SQL."""
