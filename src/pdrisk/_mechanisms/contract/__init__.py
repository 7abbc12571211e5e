"""Contract of a mechanism: what it draws, what that costs, and the one place that draws."""
