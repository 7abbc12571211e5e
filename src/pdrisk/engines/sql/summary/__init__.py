"""Summaries of a relation in SQL: exact, and in few passes."""
