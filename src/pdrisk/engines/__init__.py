"""Engines, which read the data: each turns a query into one `Summary` per line, and knows nothing of privacy."""
