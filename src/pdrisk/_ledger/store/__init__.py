"""Databases that hold ledgers, and the records in them."""
