"""Noisy statistics of a frame or table, and the form of their answers."""
