"""Tables that a Dataset holds, for its methods and for SQL."""
