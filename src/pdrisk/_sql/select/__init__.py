"""Judge of one SELECT that reads people."""
