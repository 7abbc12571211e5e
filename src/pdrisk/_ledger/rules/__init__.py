"""Limits and policies of an owner, and what a question costs."""
