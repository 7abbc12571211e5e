"""Parser from text in the dialect of another engine, of queries that nobody is in: subqueries may stand anywhere."""

from __future__ import annotations

from typing import Any

from pdrisk._model.expressions.nodes import Node
from pdrisk._sql.syntax.tree import Membership, Select, Subquery
from pdrisk._sql.text.sqlglot_expressions import Expression
from pdrisk._sql.text.sqlglot_parse import StatementsOfSqlglot


class StatementsOfNobody(StatementsOfSqlglot):
    """Reader of statements whose subqueries stay where they are written, as nodes.

    IN and EXISTS are a `Membership` among the nodes, and a subquery of one value is a `Subquery`.
    """

    def node(self, node: Expression) -> Node:
        if type(node).__name__ != "Exists":
            return super().node(node)
        membership: Any = Membership(self.select(self.only(node, "this").this), None, negated=False)
        return membership

    def member(self, node: Expression) -> Node:
        if node.args.get("query") is None:
            return super().member(node)
        self.only(node, "this", "query")
        membership: Any = Membership(self.select(node.args["query"]), self.node(node.this), negated=False)
        return membership

    def scalar_subquery(self, node: Expression) -> Node:
        subquery: Any = Subquery(self.select(node), "", ())
        return subquery

    def type(self, node: Expression) -> str:
        """Name of a type; a text of at most so many letters is cut elsewhere."""
        sql_type = super().type(node)
        return self.refuse("Cast") if sql_type == "VARCHAR" and node.expressions else sql_type

    def set_of(self, node: Expression) -> Select:
        """INTERSECT and EXCEPT, of which `Select` has another meaning where values are missing."""
        return self.refuse(node)
