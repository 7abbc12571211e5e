"""Publications: which answers are out together, and what may be said of them."""
