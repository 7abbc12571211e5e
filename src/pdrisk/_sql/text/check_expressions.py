"""Conditions of CHECK constraints, as the catalogs of DuckDB and PostgreSQL write them."""

from __future__ import annotations

from typing import Final

from pdrisk._model.expressions.nodes import Cast, Node, Operation
from pdrisk._sql.syntax.languages import POSTGRES
from pdrisk._sql.text.parse import parsed
from pdrisk._sql.text.sqlglot_functions import Expression
from pdrisk._sql.text.sqlglot_parse import StatementsOfSqlglot, parsed_as
from pdrisk.errors import ParameterError

STATEMENT: Final = "SELECT count(*) FROM t WHERE "
KEEPING: Final = ("TEXT", "VARCHAR", "DECIMAL", "DOUBLE")  # types of arrays whose elements stay what they are


def duckdb_condition(text: str) -> Node | None:
    """The condition in a CHECK of DuckDB; None for what is not understood."""
    try:
        return parsed(STATEMENT + text).where
    except (ParameterError, RecursionError):  # or deeper than Python goes
        return None


def postgres_condition(text: str) -> Node | None:
    """The condition in a CHECK of PostgreSQL, by sqlglot; None for what is not understood."""
    try:
        import sqlglot  # noqa: F401
    except ImportError as error:
        raise ParameterError(
            'CHECKs of PostgreSQL are read by sqlglot, which is missing: pip install "pdrisk[sql-engines]".'
        ) from error
    try:
        return parsed_as(STATEMENT + text, POSTGRES, statements_of=_ChecksOfPostgres).where
    except (ParameterError, RecursionError):  # or deeper than Python goes
        return None


class _ChecksOfPostgres(StatementsOfSqlglot):
    """Reader of what the server writes: every type is there, and IN is ``= ANY (ARRAY[...])``."""

    def compared(self, node: Expression) -> Node:
        if type(node).__name__ != "EQ" or type(node.expression).__name__ != "Any":
            return super().compared(node)
        self.only(node, "this", "expression")
        listed = self._unwrapped(self.only(node.expression, "this").this)
        if type(listed).__name__ == "Cast":
            of = self.only(listed, "this", "to").args["to"].expressions
            if len(of) != 1 or of[0].expressions or of[0].this.name not in KEEPING:
                self.refuse(listed)
            listed = self._unwrapped(listed.this)
        if type(listed).__name__ != "Array":
            self.refuse(listed)
        return Operation("in", (self.node(node.this), *self.nodes(self.only(listed, "expressions"))))

    def _unwrapped(self, node: Expression) -> Expression:
        while type(node).__name__ == "Paren":
            node = self.only(node, "this").this
        return node

    def cast(self, node: Expression) -> Node:
        """A cast; one to a type of the database's own is marked as ENUM, which it may be."""
        self.only(node, "this", "to")
        to = node.args["to"]
        name = getattr(to.this, "name", "")
        if name in ("BPCHAR", "USERDEFINED") and not to.expressions:
            return Cast(self.node(node.this), "ENUM" if name == "USERDEFINED" else name, forgiving=False)
        if name in ("TEXT", "VARCHAR") and to.expressions:  # which cuts off what is longer
            self.refuse(node)
        return super().cast(node)
