"""Plans of a year's questions, before any data are read."""
