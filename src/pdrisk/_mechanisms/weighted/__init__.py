"""Mechanisms of weighted statistics: a record counts with its weight, and loses as much of eps."""
