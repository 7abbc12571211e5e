"""Noise mechanisms: the only place that draws."""
