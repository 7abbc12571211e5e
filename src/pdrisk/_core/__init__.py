"""Pure functions on arrays: what a statistic is, how sensitive it is, what a release of it risks. numpy only."""
