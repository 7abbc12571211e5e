"""From a judged query to a noisy answer, and what is said about it."""
