"""Disclosure measures of a table: how many share a key, how likely a person is to be in it. Curator only."""
