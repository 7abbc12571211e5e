"""SQL engines: one statement that summarises where the data are."""
