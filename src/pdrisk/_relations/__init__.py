"""Relations as plans of values: which records a question reads, and whose they are, without the SQL of any engine."""
