"""Parser from text to `Select`, by DuckDB's own parser: what is read here is what DuckDB would read.

``json_serialize_sql`` gives the tree of a statement. Its shape differs between DuckDB 1 and 2 and is not promised, so
every field of every object must be known here: whatever is not, is refused.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Constant, Node
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.first_rows import first_rows
from pdrisk._sql.syntax.literals import Json, literal, not_understood, only
from pdrisk._sql.syntax.refusals import JOINS, REFUSED, refuse
from pdrisk._sql.syntax.tree import (
    Cte,
    File,
    From,
    Join,
    Membership,
    Nothing,
    Order,
    Select,
    Subquery,
    Table,
    set_of,
    union_of,
    values_of,
)
from pdrisk._sql.text.constant_series import series_in_from, with_series
from pdrisk._sql.text.duckdb_expressions import ExpressionsOfDuckDB
from pdrisk._sql.text.no_select import no_select
from pdrisk._sql.text.parameters import Parameters
from pdrisk._sql.text.scalars import Scalars, ScalarsRead
from pdrisk._sql.text.where_parts import members_apart
from pdrisk.errors import ColumnTypeError, ParameterError

PLAIN = "WITHOUT_ORDINALITY"


def parsed(text: str, parameters: object = None, scalars: Scalars | None = None) -> Select:
    """The SELECT in ``text``, with the values of its parameters and scalar subqueries.

    ``parameters``: values for ``?`` (a list) or ``$name`` (a dict).
    ``scalars``: The values of scalar subqueries that are known; it gets them as they are written. Without it they
        are refused.
    """
    if not isinstance(text, str):
        raise ColumnTypeError(f"a query is text, not {type(text).__name__}.")
    literal(text, "the query")
    answer = json.loads(workspace.serialized(text))
    statements = answer.get("statements", ())
    if answer["error"] or len(statements) != 1:
        raise no_select(text, str(answer.get("error_message", "")))
    reader = _Reader(text, Parameters(parameters), scalars)
    try:
        select = reader.select(only(statements[0], "node", "named_param_map")["node"])
    except ParameterError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError):  # of a DuckDB whose trees are made otherwise
        select = None
    if select is None:
        not_understood("a part")
    return reader.scalars.finished(select, reader.parameters, frozenset(reader.functions))


class _Reader(ExpressionsOfDuckDB):
    """Reader of the parser's statements."""

    def __init__(self, text: str, parameters: Parameters, scalars: Scalars | None) -> None:
        super().__init__(text, parameters)
        self.scalars = ScalarsRead(scalars)

    def select(self, node: Json) -> Select:
        self.scalars.around.append({})
        if node["type"] != "SET_OPERATION_NODE" and node["type"] in REFUSED:
            refuse(node["type"])
        for item in node.get("cte_map", {}).get("map", []):
            self.scalars.around[-1][item["key"]] = self.cte(item["value"])
        select = self.union(node) if node["type"] == "SET_OPERATION_NODE" else self.plain_select(node)
        select = self.scalars.settled(with_series(select))
        return replace(select, ctes=self.scalars.around.pop())

    def union(self, node: Json) -> Select:
        only(node, "type", "modifiers", "cte_map", "setop_type", "setop_all", "left", "right", "children")
        how = node["setop_type"]
        if how not in ("UNION", "INTERSECT", "EXCEPT") or (how != "UNION" and node["setop_all"]):
            refuse("SET_OPERATION_NODE")
        nodes = node["children"] if "children" in node else [node["left"], node["right"]]
        parts = list(map(self.select, nodes))
        order, limit, offset, distinct = self.modifiers(node)
        if how != "UNION":
            return set_of(how, parts, order=order, limit=limit, offset=offset)
        distinct = distinct or not node["setop_all"]
        return union_of(parts, order=order, limit=limit, offset=offset, distinct=distinct)

    def plain_select(self, node: Json) -> Select:
        if node["type"] != "SELECT_NODE":
            not_understood("a statement")
        if node.get("sample"):
            raise ParameterError(
                "TABLESAMPLE and USING SAMPLE are refused: which records it picks is not theirs to say."
            )
        only(
            node, "type", "modifiers", "cte_map", "select_list", "from_table", "where_clause", "group_expressions",
            "group_sets", "aggregate_handling", "having", "qualify",
        )  # fmt: skip
        order, limit, offset, distinct = self.modifiers(node)
        groups, sets = self.groups(node)
        where, members = self.where(node["where_clause"])
        select = Select(
            items=tuple((self.item(item), item.get("alias", "")) for item in node["select_list"]),
            source=self.source(node["from_table"]),
            where=where,
            members=members,
            groups=groups,
            having=self.optional(node["having"]),
            order=order,
            limit=limit,
            offset=offset,
            distinct=distinct,
            qualify=self.optional(node.get("qualify")),
            sets=sets,
        )
        by = [target for modifier in node["modifiers"] for target in modifier.get("distinct_on_targets") or ()]
        return first_rows(select, list(map(self.node, by))) if by else select

    def modifiers(self, node: Json) -> tuple[tuple[Order, ...], Node | None, Node | None, bool]:
        """ORDER BY, LIMIT, OFFSET and DISTINCT."""
        order: tuple[Order, ...] = ()
        limit = offset = None
        distinct = False
        for modifier in node["modifiers"]:
            match modifier["type"]:
                case "ORDER_MODIFIER":
                    order = tuple(self.order(item) for item in only(modifier, "type", "orders")["orders"])
                case "LIMIT_MODIFIER" if modifier.get("limit_type", "ROW_COUNT") == "ROW_COUNT":
                    only(modifier, "type", "limit", "offset", "limit_type")
                    limit, offset = self.optional(modifier["limit"]), self.optional(modifier["offset"])
                case "DISTINCT_MODIFIER":
                    only(modifier, "type", "distinct_on_targets")
                    distinct = not modifier.get("distinct_on_targets")  # DISTINCT ON is `first_rows`
                case "LIMIT_MODIFIER" | "LIMIT_PERCENT_MODIFIER":
                    raise ParameterError("LIMIT takes a number of rows here, no percentage.")
                case _:
                    not_understood("what stands after a SELECT")
        return order, limit, offset, distinct

    def where(self, item: Json | None) -> tuple[Node | None, tuple[Membership, ...]]:
        """Conditions of WHERE, with IN and EXISTS of subqueries apart."""
        if item is None:
            return None, ()
        return members_apart(item, self.parts_of_and, self.membership, self.node)

    def parts_of_and(self, item: Json) -> list[Json]:
        if item["class"] != "CONJUNCTION" or item["type"] != "CONJUNCTION_AND":
            return []
        children: list[Json] = only(item, "class", "type", "alias", "children")["children"]
        return children

    def membership(self, item: Json) -> Membership | None:
        negated = item["class"] == "OPERATOR" and item["type"] == "OPERATOR_NOT"
        if negated:
            (item,) = only(item, "class", "type", "alias", "children")["children"]
        kind = item.get("subquery_type") if item["class"] == "SUBQUERY" else None
        if kind not in ("ANY", "EXISTS", "NOT_EXISTS"):
            return None
        only(item, "class", "type", "alias", "subquery_type", "subquery", "child", "comparison_type")
        if kind == "ANY" and item["comparison_type"] != "COMPARE_EQUAL":
            refuse("SUBQUERY")
        select = self.select(only(item["subquery"], "node")["node"])
        operand = self.node(item["child"]) if kind == "ANY" else None
        return Membership(select, operand, negated != (kind == "NOT_EXISTS"))

    def groups(self, node: Json) -> tuple[tuple[Node, ...] | None, tuple[tuple[int, ...], ...] | None]:
        """GROUP BY, and the positions in each of its GROUPING SETS, the finest first; None for a single set."""
        expressions, sets = node["group_expressions"], node["group_sets"]
        if node["aggregate_handling"] == "FORCE_AGGREGATES":
            return None, None
        if node["aggregate_handling"] != "STANDARD_HANDLING":
            not_understood("the aggregates")
        groups = tuple(self.node(item) for item in expressions)
        if not sets or sets == [list(range(len(expressions)))]:
            return groups, None
        return groups, tuple(sorted(map(tuple, sets), key=lambda places: (-len(places), places)))

    def cte(self, value: Json) -> Cte:
        only(value, "aliases", "materialized", "query", "query_node")
        node = value["query_node"] if "query_node" in value else value["query"]["node"]
        return Cte(self.select(node), tuple(value["aliases"]))

    def source(self, table: Json) -> From:
        kind = table["type"]
        if table.get("sample"):
            raise ParameterError(
                "TABLESAMPLE and USING SAMPLE are refused: which records it picks is not theirs to say."
            )
        if kind == "EMPTY" and self.scalars.known is not None:
            return Nothing()
        if kind == "EXPRESSION_LIST" and self.scalars.known is not None:
            only(table, "type", "alias", "column_name_alias", "expected_names", "expected_types", "values")
            rows = [list(map(self.node, row)) for row in table["values"]]
            return Subquery(values_of(rows, 0, "col"), table["alias"], tuple(table.get("column_name_alias", ())))
        if kind in REFUSED and kind != "SUBQUERY":
            refuse(kind)
        if kind == "JOIN":
            return self.join(table)
        alias, columns = table["alias"], tuple(table.get("column_name_alias", ()))
        if kind == "BASE_TABLE":
            only(table, "type", "alias", "schema_name", "table_name", "catalog_name", "column_name_alias")
            path = (table["catalog_name"], table["schema_name"], table["table_name"])
            return Table(tuple(name for name in path if name), alias, columns)
        if kind == "SUBQUERY":
            only(table, "type", "alias", "subquery", "column_name_alias")
            return Subquery(self.select(only(table["subquery"], "node")["node"]), alias, columns)
        if kind == "TABLE_FUNCTION":
            only(table, "type", "alias", "function", "column_name_alias", "with_ordinality")
            call = self.node(table["function"])
            if (
                isinstance(call, Call)
                and call.name in ("read_parquet", "parquet_scan")
                and len(call.arguments) == 1
                and isinstance(call.arguments[0], Constant)
                and isinstance(call.arguments[0].value, str)
                and table.get("with_ordinality", PLAIN) == PLAIN
            ):
                return File(call.arguments[0].value, alias, columns)
            is_plain = self.scalars.known is not None and table.get("with_ordinality", PLAIN) == PLAIN
            if is_plain and (series := series_in_from(call, alias, columns)) is not None:
                return series
            raise ParameterError(
                "the only function in FROM is read_parquet('path') of a file that was named when pdrisk.sql was "
                "called: "
                "load anything else into a table first."
            )
        return not_understood("FROM")

    def join(self, table: Json) -> Join:
        only(
            table, "type", "left", "right", "condition", "join_type", "ref_type", "using_columns", "is_implicit",
            "nearest_count", "nearest_order_type",
        )  # fmt: skip
        how = table["join_type"] if table["ref_type"] == "REGULAR" else table["ref_type"]
        if how in JOINS:
            raise ParameterError(f"{JOINS[how]}.")
        if how not in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "CROSS") or table.get("nearest_count", 1) != 1:
            not_understood(f"{how.lower()} join")
        return Join(
            self.source(table["left"]),
            self.source(table["right"]),
            how,
            self.optional(table["condition"]),
            tuple(table["using_columns"]),
        )

    def scalar(self, item: Json) -> Node:
        """Value of a scalar subquery, or IN with a subquery."""
        if self.scalars.known is None or item["subquery_type"] not in ("SCALAR", "ANY"):
            refuse("SUBQUERY")
        if item["subquery_type"] == "ANY":
            member = self.membership(item)
            assert member is not None
            assert member.operand is not None
            return self.scalars.member(member.operand, member.select) or refuse("SUBQUERY")
        only(item, "class", "type", "alias", "subquery_type", "subquery", "comparison_type")
        return self.scalars.value(self.select(only(item["subquery"], "node")["node"]))
