"""Letters in lower and upper case, each by itself, as DuckDB has them: for engines whose locale decides."""

from __future__ import annotations

from functools import cache

MOST = 0x1F000  # of code points: behind them no alphabet has letters of two cases


@cache
def letters_cased(how: str) -> tuple[str, str]:
    """Letters that change and what they become, ASCII first; ``how`` is ``lower`` or ``upper``."""
    import duckdb

    rows = duckdb.connect(":memory:").execute(
        f"SELECT chr(i), {how}(chr(i)) FROM (SELECT unnest(range(1, {MOST}))::INTEGER AS i) "
        f"WHERE i NOT BETWEEN 55296 AND 57343 AND {how}(chr(i)) <> chr(i) AND length({how}(chr(i))) = 1 ORDER BY i"
    )
    pairs = rows.fetchall()
    return "".join(one for one, _ in pairs), "".join(other for _, other in pairs)
