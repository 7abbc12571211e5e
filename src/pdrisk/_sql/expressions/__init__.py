"""Expressions: judged, and written in DuckDB's SQL where no records are read."""
