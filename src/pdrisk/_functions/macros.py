"""The text of the macros: native aggregates around one call of a Python function, so that only groups reach Python."""

from __future__ import annotations

from dataclasses import dataclass

from pdrisk._core.lattice import PLACE_BITS
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect

PREFIX = "__pdrisk_"
JUDGED, GRID = PREFIX + "judged", PREFIX + "grid"
EXACT = "DECIMAL(38, 0)"  # a HUGEINT as Arrow has it
HALF = 26  # bits


def call(name: str, *arguments: str) -> str:
    """Call of a built-in function, or of one of pdrisk's.

    By its full name, because a user's macro called ``count`` or ``strftime`` would come first. Operators are functions
    too and are not used at all; CASE, CAST, IN, BETWEEN and comparisons are none.
    """
    return f"system.main.{name}({', '.join(arguments)})"


def number(value: str) -> str:
    """The argument as DOUBLE; a cast that fails would quote the value, and the type is judged elsewhere."""
    return f"TRY_CAST({value} AS DOUBLE)"


LO, HI = number("lo"), number("hi")
# A branch of NULL takes its statistics away, of which those of Parquet files leave NaN out: see
# `pdrisk._sql.tables.parquet_meanings`.
# `by_record` does so by TRY, which would hide the failures of a user's expression.
X = f"CASE WHEN x IS NULL THEN NULL ELSE {number('x')} END"
RECORD = DuckDBDialect().clamped(X, LO, HI)


def whole(grid: str, value: str) -> str:
    """A value in steps of a public grid: whole numbers add up exactly, in any order."""
    # A cast rounds half to even, as numpy's rint does.
    per_unit = call(GRID, f"'{grid}'", LO, HI)
    return f"TRY_CAST({call('multiply', value, per_unit)} AS BIGINT)"


def exact_sum(value: str) -> str:
    """Exact sum of whole numbers, also beyond 64 bits."""
    return f"TRY_CAST({call('sum', value)} AS {EXACT})"


# The place by the one rule of `PlaceGrid`.
_ORIGIN, _PER_UNIT, _SHIFT = (call(GRID, f"'{name}'", LO, HI) for name in ("origin", "per_unit", "shift"))
_SCALED = call("multiply", call("subtract", RECORD, _ORIGIN), _PER_UNIT)
PLACE = f"TRY_CAST({call('floor', call('add', _SCALED, _SHIFT))} AS BIGINT)"
# A float NaN is missing. typeof is known when the query is planned, so that one branch remains.
PRESENT = (
    f"CASE WHEN {call('typeof', 'x')} IN ('FLOAT', 'DOUBLE') "
    f"THEN CASE WHEN {X} <= CAST('infinity' AS DOUBLE) THEN 1 END WHEN x IS NOT NULL THEN 1 END"
)
# A distance from lo has up to 52 bits. The products of its halves fit 64.
OFFSET = whole("squares", call("subtract", RECORD, LO))
HIGH, LOW = call('">>"', OFFSET, f"{HALF}"), call('"&"', OFFSET, f"{2**HALF - 1}")

# What is read of the data, by name: SQL type and aggregate.
COLUMNS = {
    "rows": ("BIGINT", call("count_star")),
    "nothing": ("INTEGER", call("max", "0")),
    "present": ("BIGINT", call("count", PRESENT)),
    "n": ("BIGINT", call("count", RECORD)),
    "steps": (EXACT, exact_sum(whole("steps", RECORD))),
    "places": (EXACT, exact_sum(PLACE)),
    "place_squares": (EXACT, exact_sum(call('">>"', call("multiply", PLACE, PLACE), f"{PLACE_BITS}"))),
    "total": ("DOUBLE", f"CAST({call('sum', whole('total', RECORD))} AS DOUBLE)"),
    "offsets": (EXACT, exact_sum(OFFSET)),
    "high_squares": (EXACT, exact_sum(call("multiply", HIGH, HIGH))),
    "products": (EXACT, exact_sum(call("multiply", HIGH, LOW))),
    "low_squares": (EXACT, exact_sum(call("multiply", LOW, LOW))),
    "lowest": ("DOUBLE", call("min", RECORD)),
    "highest": ("DOUBLE", call("max", RECORD)),
    "records": ("DOUBLE[]", call("list", RECORD)),
}


@dataclass(frozen=True, slots=True)
class Macro:
    """SQL function of pdrisk."""

    name: str  # as people call it: ``dp_mean``, ``dp_mean_risk``
    statistic: str  # as `pdrisk._model.arguments.statistic` knows it
    # Keys of `COLUMNS`. Two aggregates or more: a body with exactly one could be called with OVER, and would
    # then give a value for every row.
    reads: tuple[str, ...]
    risk: bool = False  # whether it gives the sensitivities and risks of a release instead of a noisy value

    @property
    def scalar(self) -> str:
        """The Python function it calls."""
        return PREFIX + self.name

    @property
    def scalar_types(self) -> list[str]:
        """SQL types of the arguments of `scalar`: the judgement, the constants, the columns."""
        return ["VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "VARCHAR", *(COLUMNS[name][0] for name in self.reads)]

    @property
    def parameter(self) -> str | None:
        """Parameter of the statistic itself, such as q."""
        return {"quantile": "q", "var": "ddof", "std": "ddof"}.get(self.statistic)

    @property
    def bounded(self) -> bool:
        """Whether it takes bounds, and a column of numbers only."""
        return self.statistic != "count"

    @property
    def constants(self) -> tuple[str, ...]:
        """Parameters that must be constants."""
        return ("eps", *(("lo", "hi") if self.bounded else ()), *((self.parameter,) if self.parameter else ()))

    def definition(self) -> str:
        """Statement that creates the macro."""
        # A parameter that is left out is NULL, so that pdrisk's own error says what is missing.
        parameters = {
            "x": "present" in self.reads or self.bounded,
            "q := NULL": self.parameter == "q",
            "eps := NULL": True,
            "lo := NULL": self.bounded,
            "hi := NULL": self.bounded,
            "ddof := 1": self.parameter == "ddof",
        }
        signature = ", ".join(text for text, has_it in parameters.items() if has_it)
        columns = (COLUMNS[name][1] for name in self.reads)
        body = call(self.scalar, self._judgement(), *self._constants, *columns)
        return f"CREATE OR REPLACE TEMP MACRO {self.name}({signature}) AS {body}"

    @property
    def _constants(self) -> tuple[str, str, str, str]:
        lo, hi = (LO, HI) if self.bounded else ("CAST(NULL AS DOUBLE)", "CAST(NULL AS DOUBLE)")
        # Text is what was written: a DECIMAL 0.1 is a tenth.
        return "CAST(eps AS VARCHAR)", lo, hi, f"CAST({self.parameter or 'NULL'} AS VARCHAR)"

    def _judgement(self) -> str:
        """A zero; the query is refused when it is planned unless every argument but x is a constant.

        strftime evaluates its format while it is bound, and takes nothing that depends on data: no column, no
        aggregate, no subquery, no random(). Literals and bound parameters it takes. What evaluates there is our own
        judgement, so that a wrong argument is refused before any data is read. It runs in the thread that asks, which
        sees the ledger around, as DuckDB's own threads do not. A zero has nothing to be formatted.
        """
        # IS NULL also makes DuckDB wait for the type of a parameter, here and in PREPARE.
        types = [f"CASE WHEN {name} IS NULL THEN 'NULL' ELSE {call('typeof', name)} END" for name in self.constants]
        if self.bounded:
            types.append(call("typeof", call("any_value", "x")))
        judged = call(JUDGED, f"'{self.name}'", *self._constants, call("list_value", *types))
        # A function whose value may change between queries makes DuckDB 1.5 plan a prepared statement whenever it runs,
        # as 2.0 does anyway: a ledger's block may be open by then.
        day = f"CASE WHEN {call('current_schema')} IS NOT NULL THEN CAST('2000-01-01' AS TIMESTAMP) END"
        return call("strftime", day, judged)


SQUARES = ("high_squares", "products", "low_squares")
PLACED = ("places", "place_squares")
RANKED = ("n", "records")  # an aggregate cannot count at all points of a group, so it hands over what is to be counted
READS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    # name: statistic, what its value is made of, what else its risks are made of
    "dp_count": ("count", ("present", "rows"), ()),
    "dp_count_star": ("count", ("rows", "nothing"), ()),
    "dp_sum": ("sum", ("n", "steps"), ("lowest", "highest")),
    "dp_mean": ("mean", ("n", "places"), ("lowest", "highest")),
    "dp_avg": ("mean", ("n", "places"), ("lowest", "highest")),
    **{f"dp_{name}": (name, RANKED, ()) for name in ("median", "quantile", "min", "max")},
    "dp_var": ("var", ("n", *PLACED), ("offsets", *SQUARES, "total", "lowest", "highest", "records")),
    "dp_std": ("std", ("n", *PLACED), ("offsets", *SQUARES, "total", "lowest", "highest", "records")),
}
MACROS = (
    *(Macro(name, statistic, value) for name, (statistic, value, _) in READS.items()),
    *(Macro(f"{name}_risk", statistic, value + more, risk=True) for name, (statistic, value, more) in READS.items()),
)
