"""Answers as values: their numbers, what was asked, and the curator's part."""
