"""Compiler of expressions and of relations' plans to the SQL of an engine."""
