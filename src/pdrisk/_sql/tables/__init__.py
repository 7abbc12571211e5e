"""Tables that a query may read, and the connections that have them."""
