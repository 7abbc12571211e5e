"""Payments: the account of a dataset, what was paid, and what is remembered."""
