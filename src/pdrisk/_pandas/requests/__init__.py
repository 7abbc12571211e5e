"""Requests: the options of a call, judged."""
