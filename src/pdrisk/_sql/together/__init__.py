"""Statements of several SELECTs, judged and answered together."""
