"""Noise: where it comes from, and exact draws of it."""
