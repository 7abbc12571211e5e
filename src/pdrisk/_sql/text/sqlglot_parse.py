"""Parser from text in the dialect of another engine to `Select`, by sqlglot: what is not listed here is refused.

Nothing of the text ever runs. The tree is judged like one of DuckDB's, and what an engine is sent is written anew from
it: sqlglot decides what a query means, never what is protected. Where engines differ and the text does not say which
meaning it has, it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from pdrisk._model.expressions.nodes import Call, Cast, Node
from pdrisk._sql.syntax.first_rows import first_rows
from pdrisk._sql.syntax.languages import POSTGRES, Language
from pdrisk._sql.syntax.literals import literal
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.refusals import JOINS
from pdrisk._sql.syntax.tree import (
    Cte,
    From,
    Join,
    Membership,
    Nothing,
    Select,
    Star,
    Subquery,
    Table,
    set_of,
    union_of,
    values_of,
)
from pdrisk._sql.text.constant_series import is_day, series_in_from, with_series
from pdrisk._sql.text.scalars import Scalars
from pdrisk._sql.text.sqlglot_expressions import PLACE, Expression, ExpressionsOfSqlglot
from pdrisk._sql.text.sqlglot_fractions import Types
from pdrisk._sql.text.sqlglot_names import ADVICE
from pdrisk._sql.text.where_parts import members_apart
from pdrisk.errors import ColumnTypeError, ParameterError

LONGEST: Final = 1_000_000  # characters
MOST_SETS: Final = 4096  # GROUPING SETS, as PostgreSQL has them of CUBE
KNOWN_JOINS: Final = ("", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI")


def parsed_as(
    text: object,
    language: Language,
    parameters: object = None,
    scalars: Scalars | None = None,
    statements_of: type[StatementsOfSqlglot] | None = None,
    types: Types | None = None,
) -> Select:
    """The SELECT in a text of this language, with its parameters, as `parse.parsed` does.

    ``parameters``: values for parameters by place or by name, as the language writes them.
    ``scalars``: The values of scalar subqueries that are known. Without it they are refused.
    ``statements_of``: a reader that knows more than what queries may say.
    ``types``: gives the types of a table's columns by its path.
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
        tokens = sqlglot.tokenize(text, read=language.name)
        _check_texts(text, tokens, language)
        statements = sqlglot.parse(_numbered(text, tokens), read=language.name)
    except SqlglotError as error:
        errors = getattr(error, "errors", None)
        problem = f": {errors[0]['description']}" if errors else ""
        statements = [None]
    if len(statements) != 1 or statements[0] is None:
        raise ParameterError(f"the query is no single SELECT of {language.engine}{problem.rstrip('. ')}.")
    reader = (statements_of or StatementsOfSqlglot)(language, parameters, scalars)
    reader.types = types
    return reader.scalars.finished(reader.select(statements[0]), reader.parameters)


def _numbered(text: str, tokens: Sequence[Any]) -> str:
    """The text with a name for each parameter by position: ``?``, and ``%s`` of psycopg.

    Beside ``%s``, psycopg would look for parameters inside of texts, too.
    """
    places = [(token.start, token.end + 1) for token in tokens if token.token_type.name == "PLACEHOLDER"]
    percents = [
        (one.start, other.end + 1)
        for one, other in pairwise(tokens)
        if one.token_type.name == "MOD" and other.start == one.end + 1 and text[other.start : other.end + 1] == "s"
    ]
    if places and percents:
        raise ParameterError("parameters are written in one way in a query: all as ?, or all as %s.")
    if percents and any(token.token_type.name == "STRING" and "%" in token.text for token in tokens):
        raise ParameterError("psycopg changes a text with % in a query with %s: pass the text as a parameter.")
    for at, (start, end) in reversed(list(enumerate(places or percents, 1))):
        text = f"{text[:start]} :{PLACE}{at} {text[end:]}"
    return text


def _check_texts(text: str, tokens: Any, language: Language) -> None:
    """Refuse quoted texts whose meaning depends on the settings of a session."""
    for first, before, token in zip([None, None, *tokens], [None, *tokens], tokens, strict=False):
        if not token.token_type.name.endswith("STRING"):
            continue
        written = text[token.start : token.end + 1]
        is_compared = first is not None and first.token_type.name == "DISTINCT"  # IS DISTINCT FROM 'a'
        if before is not None and before.token_type.name in ("FROM", "ALIAS", "DOT") and not is_compared:
            quotes = "double quotes" if language is POSTGRES else "backticks"
            raise ParameterError(f"write a name in {quotes} or without quotes: quoted so it is a text.")
        if token.token_type.name != "STRING" or not written.startswith("'") or "\\" in written:
            raise ParameterError(
                f"write a text in a query for {language.engine} in single quotes and without a backslash, whose "
                "meaning depends on the settings of the session: pass other texts as parameters."
            )


class StatementsOfSqlglot(ExpressionsOfSqlglot):
    """Reader of statements in a language."""

    def select(self, node: Expression) -> Select:
        self.scalars.around.append({})
        if node.args.get("with_") is not None:
            self.ctes(self.only(node.args["with_"], "expressions"))
        match type(node).__name__:
            case "Select":
                select = self.plain_select(node)
            case "Union":
                select = self.union(node)
            case "Intersect" | "Except":
                select = self.set_of(node)
            case "Subquery":  # in brackets
                select = self.select(self.only(node, "this", "with_").this)
            case name:
                self.refuse(node if name in ADVICE else "Command")
        select = self.scalars.settled(select)
        return replace(select, ctes={**self.scalars.around.pop(), **select.ctes})

    def union(self, node: Expression) -> Select:
        self.only(node, "this", "expression", "distinct", "order", "limit", "offset", "with_")
        sides = [node]
        while self._is_part(sides[0], node):
            sides[:1] = [sides[0].this, sides[0].expression]
        parts = list(map(self.select, sides))
        return union_of(parts, **self.modifiers(node), distinct=bool(node.args.get("distinct")))

    def set_of(self, node: Expression) -> Select:
        self.only(node, "this", "expression", "distinct", "order", "limit", "offset", "with_")
        if not node.args.get("distinct"):
            self.refuse(node)
        parts = list(map(self.select, (node.this, node.expression)))
        return set_of(type(node).__name__.upper(), parts, **self.modifiers(node))

    def _is_part(self, inner: Expression, outer: Expression) -> bool:
        """Whether a UNION only nests parts of the one around it, as in long lists."""
        if inner is outer:
            return True
        same = type(inner) is type(outer) and inner.args.get("distinct") == outer.args.get("distinct")
        cut = any(inner.args.get(name) for name in ("order", "limit", "offset", "with_"))
        return same and not cut and bool(self.only(inner, "this", "expression", "distinct"))

    def modifiers(self, node: Expression) -> dict[str, Any]:
        """ORDER BY, LIMIT and OFFSET."""
        order = node.args.get("order")
        return {
            "order": tuple(map(self.order, self.only(order, "expressions").expressions)) if order else (),
            "limit": self.under(node.args.get("limit"), "expression"),
            "offset": self.under(node.args.get("offset"), "expression"),
        }

    def plain_select(self, node: Expression) -> Select:
        self.only(
            node, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
            "with_",
        )  # fmt: skip
        args = node.args
        by = []
        if (distinct := args.get("distinct")) is not None and self.only(distinct, "on").args.get("on") is not None:
            by = list(map(self.node, self.only(distinct.args["on"], "expressions").expressions))
        items = tuple(self.item(item) for item in args["expressions"])
        source = self.joined_source(args.get("from_"), args.get("joins") or ())
        where, members = self.where(args.get("where"))
        groups, sets = self.groups(args.get("group"))
        select = Select(
            items, source, where=where, members=members, groups=groups, sets=sets,
            having=self.under(args.get("having")), distinct=distinct is not None and not by, **self.modifiers(node),
        )  # fmt: skip
        select = with_series(select)
        return first_rows(select, by) if by else select

    def where(self, node: Expression | None) -> tuple[Node | None, tuple[Membership, ...]]:
        """Conditions of WHERE, with IN and EXISTS of subqueries apart."""
        if node is None:
            return None, ()
        return members_apart(self.only(node, "this").this, self.parts_of_and, self.membership, self.node)

    def parts_of_and(self, node: Expression) -> list[Expression]:
        match type(node).__name__:
            case "Paren":
                return [self.only(node, "this").this]
            case "And":
                return self.flat(node, "And")
        return []

    def membership(self, node: Expression) -> Membership | None:
        negated = type(node).__name__ == "Not"
        inner = self.only(node, "this").this if negated else node
        while negated and type(inner).__name__ == "Paren":
            inner = self.only(inner, "this").this
        match type(inner).__name__:
            case "Exists":
                return Membership(self.select(self.only(inner, "this").this), None, negated)
            case "In" if inner.args.get("query") is not None:
                self.only(inner, "this", "query")
                return Membership(self.select(inner.args["query"]), self.node(inner.this), negated)
        return None

    def groups(self, node: Expression | None) -> tuple[tuple[Node, ...], tuple[tuple[int, ...], ...] | None]:
        """GROUP BY, and the positions in each of its GROUPING SETS, the finest first; None for a single set."""
        if node is None:
            return (), None
        if node.args.get("all") is not None:
            self.refuse("GROUP BY with ALL or DISTINCT")
        nodes: list[Node] = []
        sets: list[tuple[int, ...]] = [()]
        several = False
        for expression in self.only(node, "expressions").expressions:
            several = several or type(expression).__name__ in ("GroupingSets", "Rollup", "Cube")
            sets_of_item = self.sets_of(expression, nodes)
            if len(sets) * len(sets_of_item) > MOST_SETS:
                raise ParameterError(f"GROUP BY has more than {MOST_SETS:,} grouping sets: write fewer.")
            sets = [(*one, *(at for at in other if at not in one)) for one in sets for other in sets_of_item]
        if not several:
            return tuple(nodes), None
        return tuple(nodes), tuple(sorted(map(tuple, map(sorted, sets)), key=lambda places: (-len(places), places)))

    def sets_of(self, node: Expression, nodes: list[Node]) -> list[tuple[int, ...]]:
        """Grouping sets of one item of GROUP BY, by positions of expressions, which are added."""
        parts = node.expressions
        match type(node).__name__:
            case "GroupingSets":
                return [
                    places
                    for part in self.only(node, "expressions").expressions
                    for places in self.sets_of(part, nodes)
                ]
            case "Rollup":
                positions = [self.places(part, nodes) for part in self.only(node, "expressions").expressions]
                return [_together(positions[:size]) for size in range(len(positions), -1, -1)]
            case "Cube" if len(parts) < MOST_SETS.bit_length():
                positions = [self.places(part, nodes) for part in self.only(node, "expressions").expressions]
                chosen = (
                    [places for at, places in enumerate(positions) if bits >> at & 1]
                    for bits in range(2 ** len(positions))
                )
                return list(map(_together, chosen))
            case "Cube":
                raise ParameterError(f"CUBE takes {MOST_SETS.bit_length() - 1} expressions at most: write fewer.")
        return [self.places(node, nodes)]

    def places(self, node: Expression, nodes: list[Node]) -> tuple[int, ...]:
        """Positions of an expression, or of several in brackets, in GROUP BY."""
        several = type(node).__name__ == "Tuple"
        expressions = self.nodes(self.only(node, "expressions")) if several else (self.node(node),)
        nodes += [expression for expression in dict.fromkeys(expressions) if expression not in nodes]
        return tuple(dict.fromkeys(map(nodes.index, expressions)))

    def ctes(self, node: Expression) -> None:
        for expression in node.expressions:
            self.only(expression, "this", "alias")
            name, columns = self.alias(expression.args["alias"])
            self.scalars.around[-1][name] = Cte(self.select(expression.this), columns)

    def joined_source(self, node: Expression | None, joins: Sequence[Expression]) -> From:
        """FROM with its joins."""
        if node is None and self.scalars.known is None:
            raise ParameterError("there is no FROM: ask a table.")
        source = Nothing() if node is None else self.source(self.only(node, "this").this)
        for join in joins:
            self.only(join, "this", "side", "kind", "method", "on", "using")
            side, kind, method = ((join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
            how = method or ("" if side == "LEFT" and kind in ("SEMI", "ANTI") else side) or kind
            if how in JOINS:
                raise ParameterError(f"{JOINS[how]}.")
            on, using = join.args.get("on"), tuple(map(self.name, join.args.get("using") or ()))
            if on is None and not using:
                how = how or "CROSS"
            if how not in KNOWN_JOINS or ((on is None and not using) != (how == "CROSS")):
                self.refuse(join)
            source = Join(source, self.source(join.this), how or "INNER", None if on is None else self.node(on), using)
        return source

    def source(self, node: Expression) -> From:
        name, columns = self.alias(node.args.get("alias"))
        match type(node).__name__:
            case "Table" if type(node.this).__name__ == "ExplodingGenerateSeries" and self.scalars.known is not None:
                return self.series(node, name, columns)
            case "Table":
                self.only(node, "this", "db", "catalog", "alias")
                parts = [node.args[key] for key in ("catalog", "db", "this") if node.args.get(key)]
                return Table(tuple(map(self.table_name, parts)), name, columns)
            case "Subquery":
                self.only(node, "this", "alias", "with_")
                return Subquery(self.select(node.this), name, columns)
            case "Values":
                self.only(node, "expressions", "alias")
                rows = [self.nodes(self.only(row, "expressions")) for row in node.expressions]
                return Subquery(values_of(rows, 1, self.language.values), name, columns)
        return self.refuse(node)

    def series(self, node: Expression, name: str, columns: tuple[str, ...]) -> From:
        """PostgreSQL's generate_series of constants; of dates it gives times with a zone."""
        call = self.only(self.only(node, "this", "alias").this, "start", "end", "step")
        ends = [self.node(call.args[key]) for key in ("start", "end", "step") if call.args.get(key) is not None]
        has_dates = any(is_day(end) or (isinstance(end, Cast) and end.to == "DATE") for end in ends)
        if not has_dates and self.language is POSTGRES:
            series = series_in_from(Call("generate_series", tuple(ends)), name, columns or ((name,) if name else ()))
            if series is not None:
                return series
        return self.refuse(node.this)

    def alias(self, node: Expression | None) -> tuple[str, tuple[str, ...]]:
        if node is None:
            return "", ()
        self.only(node, "this", "columns")
        return "" if node.args.get("this") is None else self.name(node.this), tuple(
            map(self.name, node.args.get("columns") or ())
        )

    def table_name(self, node: Expression) -> str:
        """Name of a table as its engine keeps it."""
        name = self.name(node)
        return name if node.args.get("quoted") or not self.language.folds else lowered(name)

    def item(self, node: Expression) -> tuple[Node | Star, str]:
        if type(node).__name__ == "Alias":
            self.only(node, "this", "alias")
            return self.node(node.this), self.name(node.args["alias"])
        star = node.this if type(node).__name__ == "Column" else node
        if type(star).__name__ == "Star":
            self.only(star)
            table = "" if star is node else self.name(self.only(node, "this", "table").args["table"])
            return Star(table), ""
        return self.node(node), "col" if type(node).__name__ == "Explode" else ""


def _together(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(at for part in parts for at in part))
