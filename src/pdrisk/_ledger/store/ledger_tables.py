"""The tables of a ledger, in SQL that SQLite and PostgreSQL share; {blob} is the type of bytes."""

from __future__ import annotations

# What each version of the tables added. A ledger of an older version is brought forward when it is opened.
TABLES: dict[int, tuple[str, ...]] = {
    1: (
        "CREATE TABLE datasets (name TEXT PRIMARY KEY, limits TEXT NOT NULL);",
        """CREATE TABLE records (
    seq BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, analyst TEXT NOT NULL, event TEXT NOT NULL,
    eps TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
);""",
        "CREATE INDEX records_of ON records (dataset, seq);",
        """CREATE TABLE spending (
    dataset TEXT NOT NULL, analyst TEXT NOT NULL, period TEXT NOT NULL, eps TEXT NOT NULL, queries BIGINT NOT NULL,
    PRIMARY KEY (dataset, analyst, period)
);""",
    ),
    2: (
        # Noisy answers that are given again for nothing; `record` says what they were when they were kept.
        """CREATE TABLE answers (
    dataset TEXT NOT NULL, question TEXT NOT NULL, record BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (dataset, question)
);""",
        # The curator's: what answers meant for the people in these very data. No export shows them.
        """CREATE TABLE curator_releases (
    dataset TEXT NOT NULL, record BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (dataset, record)
);""",
        """CREATE TABLE curator_people (
    dataset TEXT PRIMARY KEY, who TEXT NOT NULL, counted TEXT NOT NULL, people {blob} NOT NULL, losses {blob} NOT NULL
);""",
    ),
    # Version 3 is one of what guards the tables on a server.
    4: ("ALTER TABLE spending ADD COLUMN delta TEXT;",),  # NULL is 0, as before
    # NULL: all that was paid, or lost, is older, and counts as the costliest answers of its eps.
    5: ("ALTER TABLE spending ADD COLUMN mu2 TEXT;", "ALTER TABLE curator_people ADD COLUMN mu2 {blob};"),
}
VERSION = max(TABLES)
