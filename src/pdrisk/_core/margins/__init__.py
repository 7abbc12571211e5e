"""Margins of a table: least squares over noisy ones, eps for each, and whole numbers that add up."""
