"""Surveys: weighted statistics, and the error of a sample by its design."""
