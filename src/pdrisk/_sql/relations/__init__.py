"""Relations of FROM: which rows there are, and whose."""
