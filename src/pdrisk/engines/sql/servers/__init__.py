"""Engines: their dialects, their types, and how a statement is run."""
