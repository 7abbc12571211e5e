"""Words of SQL that most engines share, and what each says differently."""
