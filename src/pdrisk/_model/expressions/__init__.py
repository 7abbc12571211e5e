"""Expressions of records: their nodes, kinds of values and of columns, and what an operation takes."""
