"""Risk: what an attacker learns from a release, and from tables of counts."""
