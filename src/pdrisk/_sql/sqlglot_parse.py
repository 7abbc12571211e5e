"""Parser from text in the dialect of another engine to `Select`, by sqlglot: what is not listed here is refused.

Nothing of the text ever runs. The tree is judged like one of DuckDB's, and what an engine is sent is written anew from
it: sqlglot decides what a query means, never what is protected. Where engines differ and the text does not say which
meaning it has, it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from pdrisk._model.nodes import Node
from pdrisk._sql.literals import literal
from pdrisk._sql.pieces import lowered
from pdrisk._sql.sqlglot_expressions import ADVICE, Expression, ExpressionsOfSqlglot, Language
from pdrisk._sql.tree import Cte, From, Select, Star, Subquery, Table
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["parsed_as"]

LONGEST: Final = 1_000_000  # characters


def parsed_as(text: object, language: Language) -> Select:
    """The one SELECT that a text in this language holds.

    Parameters
    ----------
    text : str
    language : Language

    Raises
    ------
    ParameterError
        If it is no single SELECT, or holds what pdrisk does not understand, or sqlglot is missing.
    """
    if not isinstance(text, str):
        raise ColumnTypeError(f"a query is text, not {type(text).__name__}.")
    literal(text, "the query")
    if len(text) > LONGEST:
        raise ParameterError(f"a query has at most {LONGEST:,} characters.")
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ImportError as error:
        raise ParameterError(
            f'SQL for {language.engine} is read by sqlglot, which is missing: pip install "pdrisk[sql-engines]". Or '
            "ask the methods of a Dataset, which need no SQL."
        ) from error
    problem, statements = "", []
    try:
        _check_texts(text, sqlglot.tokenize(text, read=language.name), language)
        statements = sqlglot.parse(text, read=language.name)
    except SqlglotError as error:
        said = getattr(error, "errors", None)
        problem = f": {said[0]['description']}" if said else ""
        statements = [None]
    if len(statements) != 1 or statements[0] is None:
        raise ParameterError(f"the query is no single SELECT of {language.engine}{problem.rstrip('. ')}.")
    return StatementsOfSqlglot(language).select(statements[0])


def _check_texts(text: str, tokens: Any, language: Language) -> None:
    """Refuse texts in quotes whose meaning the settings of a session decide."""
    for before, token in pairwise([None, *tokens]):
        if not token.token_type.name.endswith("STRING"):
            continue
        written = text[token.start : token.end + 1]
        if before is not None and before.token_type.name in ("FROM", "ALIAS", "DOT"):
            raise ParameterError("a name stands in double quotes or in none, not in single ones.")
        if token.token_type.name != "STRING" or not written.startswith("'") or "\\" in written:
            raise ParameterError(
                f"a text of a query for {language.engine} stands in single quotes and has no backslash, which means "
                "one thing or another by the settings of a session."
            )


class StatementsOfSqlglot(ExpressionsOfSqlglot):
    """What reads statements in a language."""

    def select(self, node: Expression) -> Select:
        if type(node).__name__ != "Select":
            self.refuse(node if type(node).__name__ in ADVICE else "Command")
        self.only(
            node, "expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"
        )
        args = node.args
        if (distinct := args.get("distinct")) is not None:
            self.only(distinct)
        if args.get("from_") is None:
            raise ParameterError("there is no FROM: ask a table.")
        return Select(
            tuple(self.item(each) for each in args["expressions"]),
            self.source(self.only(args["from_"], "this").this),
            where=self.under(args.get("where")),
            groups=self.nodes(self.only(args["group"], "expressions")) if args.get("group") else (),
            having=self.under(args.get("having")),
            order=tuple(map(self.order, self.only(args["order"], "expressions").expressions))
            if args.get("order")
            else (),
            limit=self.under(args.get("limit"), "expression"),
            offset=self.under(args.get("offset"), "expression"),
            distinct=distinct is not None,
            ctes=dict(self.ctes(args.get("with_"))),
        )

    def ctes(self, node: Expression | None) -> Iterator[tuple[str, Cte]]:
        for each in [] if node is None else self.only(node, "expressions").expressions:
            self.only(each, "this", "alias")
            name, columns = self.alias(each.args["alias"])
            yield name, Cte(self.select(each.this), columns)

    def source(self, node: Expression) -> From:
        name, columns = self.alias(node.args.get("alias"))
        match type(node).__name__:
            case "Table":
                self.only(node, "this", "db", "catalog", "alias")
                parts = [node.args[each] for each in ("catalog", "db", "this") if node.args.get(each)]
                return Table(tuple(map(self.table_name, parts)), name, columns)
            case "Subquery":
                self.only(node, "this", "alias")
                return Subquery(self.select(node.this), name, columns)
        return self.refuse(node)

    def alias(self, node: Expression | None) -> tuple[str, tuple[str, ...]]:
        if node is None:
            return "", ()
        self.only(node, "this", "columns")
        return "" if node.args.get("this") is None else self.name(node.this), tuple(
            map(self.name, node.args.get("columns") or ())
        )

    def table_name(self, node: Expression) -> str:
        """A name of a table as its engine keeps it."""
        found = self.name(node)
        return found if node.args.get("quoted") or not self.language.folds else lowered(found)

    def item(self, node: Expression) -> tuple[Node | Star, str]:
        if type(node).__name__ == "Alias":
            self.only(node, "this", "alias")
            return self.node(node.this), self.name(node.args["alias"])
        star = node.this if type(node).__name__ == "Column" else node
        if type(star).__name__ == "Star":
            self.only(star)
            table = "" if star is node else self.name(self.only(node, "this", "table").args["table"])
            return Star(table), ""
        return self.node(node), ""
