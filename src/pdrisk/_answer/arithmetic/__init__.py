"""Arithmetic of noisy answers: what was drawn, its law, and intervals of what is computed of it."""
