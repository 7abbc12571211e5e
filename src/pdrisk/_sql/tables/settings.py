"""Settings and macros of the caller's connection that could change what a query means: honoured, or refused by name.

What pdrisk writes out reads the same under any of them, but for those in `PINNED`, which are set on cursors of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.pieces import quoted, written_constant
from pdrisk._sql.tables.catalog import Catalog
from pdrisk.engines.sql.servers.duckdb_engine import asked
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FILES = frozenset({"read_parquet", "parquet_scan"})
REPLACEABLE = {*FUNCTIONS, *AGGREGATES, *FILES} - {name for name in AGGREGATES if name.startswith("dp_")}
VARIADIC = frozenset({"+", "concat", "greatest", "least"})
_FLOATING = "/ // % mod fmod ^ ** pow power sqrt ln log log2 log10 exp asin acos sin cos tan"
# By name: what pdrisk takes for granted, and for which functions; None: whatever is asked.
REFUSED: dict[str, tuple[str, Collection[str] | None]] = {
    "dialect_compatibility_mode": ("none", None),
    "current_dialect": ("", None),
    "integer_division": ("false", {"/"}),
    "ieee_floating_point_ops": (
        "true",
        frozenset(_FLOATING.split()),
    ),
    "regex_match_operator_semantics": ("partial", {"regexp_matches", "regexp_full_match"}),
}
# What would change a statement of pdrisk's own.
PINNED = {"default_collation": "", "ieee_floating_point_ops": "true", "max_expression_depth": "1000"}
IN_FILES = {"binary_as_string": "false", "file_search_path": ""}
ORDERED = {"asc": "ASC", "ascending": "ASC", "desc": "DESC", "descending": "DESC", "default": "ASC"}
NULLS = {  # last or first in ascending, and in descending order
    **dict.fromkeys(("nulls_last", "last", "nulls last", "default"), ("LAST", "LAST")),
    **dict.fromkeys(("nulls_first", "first", "nulls first"), ("FIRST", "FIRST")),
    **dict.fromkeys(("nulls_first_on_asc_last_on_desc", "sqlite", "mysql"), ("FIRST", "LAST")),
    **dict.fromkeys(("nulls_last_on_asc_first_on_desc", "postgres"), ("LAST", "FIRST")),
}
STANDARD = {
    "TimeZone": "UTC", "Calendar": "gregorian", "default_order": "asc", "default_null_order": "nulls_last",
    **{name: value for name, (value, _) in REFUSED.items()}, **PINNED, **IN_FILES,
}  # fmt: skip
# To ask for one setting costs as much as to parse a short query.
ASKED_TOGETHER: tuple[Collection[str], ...] = (
    [name for name, (_, where) in REFUSED.items() if where is None],
    *([name] for name, (_, where) in REFUSED.items() if where is not None),
    ("default_order", "default_null_order"), ("TimeZone", "Calendar"), IN_FILES,
)  # fmt: skip


@cache
def _known() -> tuple[str, ...]:
    """Those settings that this DuckDB has."""
    rows = workspace.bench().execute("SELECT name FROM system.main.duckdb_settings()").fetchall()
    return tuple(sorted({row[0] for row in rows} & set(STANDARD)))


def _expressions(names: Collection[str], others: Sequence[str] = ()) -> dict[str, str]:
    """What gives the values of settings, by name, and of other expressions, by what they are."""
    here = [name for name in _known() if name in names]
    chosen = {name: f"system.main.current_setting({written_constant(name)})" for name in here}
    return chosen | dict(zip(others, others, strict=True))


def _values(connection: DuckDBPyConnection, asked_for: Mapping[str, str]) -> dict[str, str]:
    """Values of expressions."""
    if not asked_for:
        return {}
    (row,) = asked(connection, f"SELECT {', '.join(asked_for.values())}", [])
    return _by_name(asked_for, row)


def _by_name(asked_for: Mapping[str, str], row: Sequence[object]) -> dict[str, str]:
    """Values as DuckDB writes them; to have it do so takes longer."""
    texts = (str(value).lower() if isinstance(value, bool) else "" if value is None else str(value) for value in row)
    return dict(zip(asked_for, texts, strict=True))


@dataclass(frozen=True)
class Settings:
    """Settings of a connection, read when they matter; without one DuckDB's defaults and UTC."""

    connection: DuckDBPyConnection | None = None
    values: dict[str, str] = field(default_factory=dict)  # those asked for
    with_catalog: bool = True  # whether the first statement asks for that, too: each statement takes a while
    catalogs: list[Catalog] = field(default_factory=list)  # one, once it is read

    def __getitem__(self, name: str) -> str:
        if name not in self.values:
            self._ask(next(group for group in ASKED_TOGETHER if name in group))
        return self.values[name]

    def _ask(self, names: Collection[str], others: Sequence[str] = ()) -> dict[str, str]:
        """Ask for settings, and return the values of other expressions, by what they are."""
        asked_for, answers = _expressions(names, others), dict[str, str]()
        if self.connection is not None and self.with_catalog and not self.catalogs:
            catalog, row = Catalog.read(self.connection, list(asked_for.values()))
            self.catalogs.append(catalog)
            answers = _by_name(asked_for, row)
        elif self.connection is not None:
            answers = _values(self.connection, asked_for)
        self.values.update({name: answers.pop(name, STANDARD[name]) for name in names})
        return answers

    @property
    def zone(self) -> str:
        """Time zone by which times with a zone are read."""
        return self["TimeZone"]

    @property
    def catalog(self) -> Catalog | None:
        """The connection's catalog when it was first asked; None without a connection."""
        if self.connection is not None and not self.catalogs:
            self.catalogs.append(Catalog.read(self.connection)[0])
        return self.catalogs[0] if self.catalogs else None

    def check(self, functions: Collection[str], known: Collection[str]) -> None:
        """Refuse settings that change the meaning of these functions, and macros in place of those that are not known.

        To list macros takes 30 ms, so a plan of each call is asked for first: who it is shows in why it cannot be made.
        """
        plans = {name: _plan_of(name) for name in sorted((set(functions) - set(known)) & REPLACEABLE)}
        answers = self._ask(ASKED_TOGETHER[0], list(plans.values())) if plans else {}
        for name, (standard, where) in REFUSED.items():
            used = None if where is None else sorted(set(where) & set(functions))
            if used != [] and self[name].lower() != standard:
                raise _refusal(name, self[name], f"{used[0]} means something else then" if used else "")
        if self.connection is not None and (unclear := _unclear(plans, answers)):
            _check_macros(self.connection, unclear)

    def are(self, values: Mapping[str, str], functions: Collection[str]) -> bool:
        """Whether settings have these values, and no macro can stand in for a function; in one statement."""
        plans = {name: _plan_of(name) for name in sorted(set(functions) & REPLACEABLE)}
        answers = self._ask(values, list(plans.values()))
        return self.values == values and not _unclear(plans, answers)

    def check_calendar(self) -> None:
        """Refuse other calendars for times with a zone."""
        if self["Calendar"].lower() != "gregorian":
            raise _refusal("Calendar", self["Calendar"], "times with a zone are read by the gregorian one")

    def check_files(self) -> None:
        """Refuse settings that change which file is read, or what is in it."""
        for name, standard in IN_FILES.items():
            if self[name].lower() != standard:
                raise _refusal(name, self[name], "files are read without it")

    def order(self, how: str) -> str:
        """The words after an item of ORDER BY, written out."""
        direction, _, nulls = map(str.strip, how.partition("NULLS"))
        for name, known in (("default_order", ORDERED), ("default_null_order", NULLS)):
            if self[name].lower() not in known:
                raise _refusal(name, self[name], "pdrisk does not know this order")
        direction = direction or ORDERED[self["default_order"].lower()]
        nulls = nulls or NULLS[self["default_null_order"].lower()][direction == "DESC"]
        return f"{direction} NULLS {nulls}"


def _refusal(name: str, value: str, why: str) -> ParameterError:
    return ParameterError(
        f"the connection's setting {name} is {value!r}, which pdrisk.sql cannot honour"
        + (f": {why}" if why else "")
        + f". RESET {name}, or pass another connection."
    )


def pin(cursor: DuckDBPyConnection, *, is_own: bool) -> None:
    """Pin the meaning of a statement, whatever the settings are.

    ``is_own``: whether it is pdrisk's, so that it can be set; else what differs is refused.
    """
    import duckdb

    for name, value in _values(cursor, _expressions(PINNED)).items():
        if value.lower() == PINNED[name] or (name == "max_expression_depth" and int(value) > int(PINNED[name])):
            continue
        try:
            if is_own:
                cursor.execute(f"SET SESSION {name} = {written_constant(PINNED[name])}")
                continue
        except duckdb.Error:  # the configuration is locked
            pass
        why = "the configuration is locked" if is_own else "what only this connection sees is read on the connection"
        raise _refusal(name, value, why)


def _plan_of(name: str) -> str:
    nothing = ", ".join(["NULL"] * 12)  # no function has as many arguments
    return f"system.main.json_serialize_plan({written_constant(f'SELECT {quoted(name)}({nothing})')})"


def _check_macros(connection: DuckDBPyConnection, functions: Collection[str]) -> None:
    for (name,) in asked(connection, _MACROS, []):
        if name.lower() in functions:
            raise ParameterError(
                f"a macro of the connection is named {name}, as a function of the query is: pdrisk.sql does not know "
                "what it does. Drop the macro, give it another name, or pass another connection."
            )


def _unclear(plans: Mapping[str, str], answers: Mapping[str, str]) -> set[str]:
    """Functions of which what a connection says of their plans does not tell that they are DuckDB's own."""
    return {name for name, plan in plans.items() if name in FILES or not _is_built_in(name, answers[plan])}


def _is_built_in(name: str, message: str) -> bool:
    return '"No function matches' in message or (name in VARIADIC and '"error":false' in message)


_MACROS = "SELECT function_name FROM system.main.duckdb_functions() WHERE NOT internal"
