"""Tables as they are given: what kind of data it is, told in one place, and each kind opened as one table."""
