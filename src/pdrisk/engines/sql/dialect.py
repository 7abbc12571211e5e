"""SQL dialects of engines, and the expressions that are the same in all."""

from __future__ import annotations

from pdrisk.engines.sql.plan import INFINITY

__all__ = ["Dialect", "DuckDBDialect", "clamped", "inside", "number"]


class Dialect:
    """SQL dialect of an engine: here in words that every engine has."""

    by_pivot = False  # whether order statistics are found around a pivot, instead of by ROW_NUMBER
    skips = False  # whether ORDER BY with LIMIT, and WHERE, leave out blocks that cannot matter

    def call(self, name: str, *arguments: str) -> str:
        """A function of the engine."""
        return f"{name}({', '.join(arguments)})"

    def counted(self, condition: str) -> str:
        """How many records a condition holds for."""
        return f"{self.call('COUNT', '*')} FILTER (WHERE {condition})"

    def listed(self, value: str, by: str) -> str:
        """The values of a group as a list, in an order."""
        return f"ARRAY_AGG({value} ORDER BY {by})"

    def infix(self, left: str, operator: str, right: str) -> str:
        """An arithmetic operation."""
        return f"({left} {operator} {right})"

    def negative(self, value: str) -> str:
        """The value with the other sign."""
        return f"(-{value})"


class DuckDBDialect(Dialect):
    """DuckDB: a pivot by QUANTILE_DISC costs half of a sort, and no memory beyond that of a median.

    Everything is called by its full name: a macro of the same name would stand in for it otherwise, operators included.
    """

    by_pivot = True
    skips = True

    def call(self, name: str, *arguments: str) -> str:  # noqa: D102
        if arguments == ("*",):
            name, arguments = "count_star", ()
        return f'system.main."{name.lower()}"({", ".join(arguments)})'

    def counted(self, condition: str) -> str:  # noqa: D102
        return f"CAST({self.call('COUNT_IF', condition)} AS BIGINT)"

    def listed(self, value: str, by: str) -> str:  # noqa: D102
        return self.call("ARRAY_AGG", f"{value} ORDER BY {by} ASC")

    def infix(self, left: str, operator: str, right: str) -> str:  # noqa: D102
        return self.call(operator, left, right)

    def negative(self, value: str) -> str:  # noqa: D102
        return self.call("-", value)


def clamped(value: str, lo: str, hi: str) -> str:
    """A DOUBLE moved into the bounds; NULL where it is NULL or NaN. Infinities are moved like any other.

    Parameters
    ----------
    value, lo, hi : str
        SQL expressions of type DOUBLE.
    """
    return inside(value, value, lo, hi, lo, hi)


def inside(value: str, then: str, lo: str, hi: str, at_lo: str, at_hi: str) -> str:
    """The first of three expressions for a value within the bounds, the others for one below and above; else NULL."""
    # The common case first: where all of a vector is inside, DuckDB evaluates no other branch. Engines that order NaN
    # last, and those that make every comparison with it false, end up at NULL alike.
    return (
        f"CASE WHEN {value} BETWEEN {lo} AND {hi} THEN {then} WHEN {value} < {lo} THEN {at_lo} "
        f"WHEN {value} <= {INFINITY} THEN {at_hi} END"
    )


def number(value: float) -> str:
    """A DOUBLE literal."""
    return f"CAST('{value!r}' AS DOUBLE)"
