"""Surveys of pandas users: sampling errors by the design of a sample."""
