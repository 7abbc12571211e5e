"""Portions of people, what one has in one group, in the SQL of an engine: of each size the smallest and largest sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pdrisk._core.people import PersonSums
from pdrisk.engines.sql.dialect import Dialect
from pdrisk.engines.sql.ordered import Lists
from pdrisk.engines.sql.plan import Different, Measured, Part

__all__ = ["portions_of", "sums_of_portions"]

# Of the portions of each size: that, how many they are, the smallest and the largest of their sums, and all of them.
LISTS = ("sizes", "held", "low_sums", "high_sums", "all_sums")


def sums_of_portions(
    dialect: Dialect, i: int, part: Part, rows: str, groups: Sequence[str], persons: Sequence[str]
) -> str:
    """The SELECT of the lists ``sizes_i``, ``held_i``, ... of a part, for each group.

    Parameters
    ----------
    dialect : Dialect
    i : int
        The number of the part; its records stand in ``rows`` as s0, u0, c0, ...
    part : Part
    rows : str
    groups, persons : sequence of str
        The columns that tell groups and people apart.
    """
    call, double = dialect.call, dialect.double
    total = dialect.whole(0)
    if isinstance(part, Measured):
        size, total = call("COUNT", f"s{i}"), dialect.whole_sum(f"s{i}")
    else:
        size = call("COUNT", f"u{i}") if isinstance(part, Different) else dialect.counted(f"c{i}")
    keys = "".join(f"{name}, " for name in groups)
    portions = f"SELECT {keys}{size} AS sizes, {total} AS total FROM {rows} GROUP BY {keys}{', '.join(persons)}"
    sized = (
        f"SELECT {keys}sizes, {call('COUNT', '*')} AS held, {double(call('MIN', 'total'))} AS low_sums, "
        f"{double(call('MAX', 'total'))} AS high_sums, {double(call('SUM', 'total'))} AS all_sums "
        f"FROM ({portions}) AS portions WHERE sizes > {dialect.whole(0)} GROUP BY {keys}sizes"
    )
    listed = ", ".join(f"{dialect.listed(name, 'sizes')} AS {name}_{i}" for name in LISTS)
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {keys}{listed} FROM ({sized}) AS sized{by}"


def portions_of(found: dict[str, Any], i: int, part: Part, size: int) -> PersonSums:
    """What these lists tell of the records of a part in so many groups."""
    lists = [Lists.of(found[f"{name}_{i}"]) for name in LISTS]
    groups = lists[0].group
    sizes, held = (each.values.astype(np.int64) for each in lists[:2])
    grid = part.grid if isinstance(part, Measured) else 1.0
    low, high, added = (each.values.astype(np.float64) / grid for each in lists[2:])
    number, n, total = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size)
    np.add.at(number, groups, held)
    np.add.at(n, groups, sizes * held)
    np.add.at(total, groups, added)
    twice = np.concatenate([sizes, sizes]), np.concatenate([groups, groups])
    return PersonSums(*twice, np.concatenate([low, high]), number, n, total)
