"""Declarations: bounds, keys and codes that an owner states."""
