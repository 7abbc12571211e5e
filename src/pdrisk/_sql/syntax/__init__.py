"""Syntax of a SELECT as plain data: trees, names, types and ranges, whatever the parser."""
