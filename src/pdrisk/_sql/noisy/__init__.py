"""SELECTs over groups and noisy values."""
