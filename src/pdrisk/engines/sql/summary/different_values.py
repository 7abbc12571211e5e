"""Different values of each group: how many there are, how many records have each, and their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdrisk._core.lattice import Lattice
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.summary_plan import Different, DifferentNumbers


def different_values(
    dialect: Dialect, i: int, part: Different, rows: str, groups: Sequence[str], held: Callable[[str], str]
) -> str:
    """SELECT over the different values of a part, one line for each group, in brackets.

    ``i``: the number of the part.
    ``rows``: A relation with the value as ``u0``, ``u1``, ... by the number of the part.
    ``groups``: columns of ``rows``.
    ``held``: writes a sum of whole numbers that stays within 64 bits.
    """
    keys, by = "".join(f"{name}, " for name in groups), ", ".join(groups)
    value, sums = f"u{i}", ""
    if isinstance(part, DifferentNumbers):
        value, sums = _moved(dialect, f"u{i}", part), _sums(dialect, i, part, held)
    sizes = (
        f"(SELECT {keys}{value} AS u, {dialect.call('COUNT', '*')} AS n FROM {rows} WHERE u{i} IS NOT NULL "
        f"GROUP BY {keys}{value}) AS sizes"
    )
    counted = f"{dialect.call('COUNT', '*')} AS distinct_{i}, {dialect.counted('n = 1')} AS singles_{i}"
    return f"(SELECT {keys}{counted}{sums} FROM {sizes}{f' GROUP BY {by}' if by else ''})"


def _moved(dialect: Dialect, value: str, part: DifferentNumbers) -> str:
    """Number within the universe, with -0 as 0."""
    moved = dialect.clamped(value, dialect.number(part.universe.lo), dialect.number(part.universe.hi))
    return dialect.infix(f"({moved})", "+", dialect.number(0.0))


def _sums(dialect: Dialect, i: int, part: DifferentNumbers, held: Callable[[str], str]) -> str:
    """Sum of different numbers on the grid on which it is released, and the ends of those with one record."""
    if part.needs.whole:
        floor = dialect.call("FLOOR", dialect.infix("u", "+", dialect.number(0.5)))
        name, one = f"whole_{i}", f"CAST({floor} AS BIGINT)"
    else:
        grid = 1 / Lattice.of_records(part.universe.magnitude).step
        name, one = f"steps_{i}", dialect.nearest_whole(dialect.infix("u", "*", dialect.number(grid)))
    alone = "CASE WHEN n = 1 THEN u END"
    ends = (f"{dialect.call(end, alone)} AS {of}_{i}" for end, of in (("MIN", "lowest"), ("MAX", "highest")))
    return "".join(f", {aggregate}" for aggregate in (f"{held(one)} AS {name}", *ends))
