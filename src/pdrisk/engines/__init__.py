"""What reads the data: each engine turns a query into one `Summary` per line, and knows nothing of privacy."""
