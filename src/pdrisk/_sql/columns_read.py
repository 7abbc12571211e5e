"""Columns of tables that a statement reads, by its own text, where FROM was written out of several relations."""

from __future__ import annotations

import re

from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk._sql.tables.source import Source

__all__ = ["columns_below"]

PASSED_ON = re.compile(r'"((?:[^"]|"")*)" AS "((?:[^"]|"")*)"')


def columns_below(source: Source, said: str) -> list[str]:
    """Columns that a source reads from its tables, without those that it only passes on.

    Parameters
    ----------
    source : Source
    said : str
        The SQL of what is read of it.

    Returns
    -------
    list of str
        In lower case. A column counts as read under every name that any column of its name is passed on by.
    """
    whole = lowered(f"{as_remembered(source.text)} {said}").replace(" as ", " AS ")
    rest = PASSED_ON.sub("", whole)
    names = {name: {name} for name in source.below}
    passed = PASSED_ON.findall(whole)
    for each in names.values():
        grows = True
        while grows:
            more = {to.replace('""', '"') for of, to in passed if of.replace('""', '"') in each} - each
            each |= more
            grows = bool(more)
    return sorted(name for name, known in names.items() if any(quoted(one) in rest for one in known))
