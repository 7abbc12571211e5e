"""Expressions of DuckDB's parser as nodes of rows and answers: an allow-list, in which every field is known."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pdrisk._model.expressions.nodes import Call, Case, Cast, Column, Constant, Node, Operation, Window
from pdrisk._sql.expressions.decimals import folded
from pdrisk._sql.syntax.calls import operation_of, percentile_of, rows_of_frame
from pdrisk._sql.syntax.literals import (
    Json,
    not_understood,
    of_duckdb_1,
    of_duckdb_2,
    only,
    type_of_duckdb_1,
    type_of_duckdb_2,
)
from pdrisk._sql.syntax.pieces import quoted
from pdrisk._sql.syntax.refusals import REFUSED, refuse
from pdrisk._sql.syntax.tree import Order, Star
from pdrisk._sql.text.parameters import Parameters

COMPARISONS = {
    "COMPARE_EQUAL": "==", "COMPARE_NOTEQUAL": "!=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">", "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "is distinct from", "COMPARE_NOT_DISTINCT_FROM": "is not distinct from",
}  # fmt: skip
OPERATORS = {
    "OPERATOR_NOT": "not", "OPERATOR_IS_NULL": "isna", "OPERATOR_IS_NOT_NULL": "notna",
    "OPERATOR_COALESCE": "coalesce", "OPERATOR_TRY": "try", "COMPARE_IN": "in", "COMPARE_NOT_IN": "not in",
}  # fmt: skip


class ExpressionsOfDuckDB(ABC):
    """Turns the parser's expressions into nodes, filling in parameters.

    Attributes
    ----------
    text : str
        The query.
    parameters : Parameters
    functions : set of str
        The names of the functions that were read.
    """

    def __init__(self, text: str, parameters: Parameters) -> None:
        self.text = text
        self.parameters = parameters
        self.functions: set[str] = set()

    def item(self, item: Json) -> Node | Star:
        if item["class"] != "STAR":
            return self.node(item)
        only(item, "class", "type", "alias", "relation_name", "exclude_list", "replace_list")
        replaced = {pair["key"]: self.node(pair["value"]) for pair in item.get("replace_list", [])}
        return Star(item.get("relation_name", ""), tuple(item.get("exclude_list", ())), replaced)

    def optional(self, item: Json | None) -> Node | None:
        return None if item is None else self.node(item)

    @abstractmethod
    def scalar(self, item: Json) -> Node:
        """A subquery within an expression."""

    def node(self, item: Json) -> Node:
        kind = item["class"]
        if kind == "SUBQUERY":
            return self.scalar(item)
        if kind in REFUSED:
            refuse(kind)
        read = {
            "COLUMN_REF": self.column, "CONSTANT": self.constant, "PARAMETER": self.parameter, "CAST": self.cast,
            "FUNCTION": self.function, "CASE": self.case, "COMPARISON": self.comparison,
            "CONJUNCTION": self.conjunction, "WINDOW": self.window, "OPERATOR": self.operator, "BETWEEN": self.between,
        }.get(kind)  # fmt: skip
        if read is None:
            not_understood(f"a {kind.lower().replace('_', ' ')}")
        return folded(read(item))

    def column(self, item: Json) -> Node:
        *qualifiers, name = only(item, "class", "type", "alias", "column_names")["column_names"]
        return Column(name, tuple(qualifiers), in_quotes=quoted(name) in self.text)

    def constant(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "value", "literal")
        return Constant(of_duckdb_2(item["literal"]) if "literal" in item else of_duckdb_1(item["value"]))

    def parameter(self, item: Json) -> Node:
        return self.parameters.constant(only(item, "class", "type", "alias", "identifier")["identifier"])

    def cast(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "child", "cast_type", "type_expr", "try_cast")
        to = type_of_duckdb_2(item["type_expr"]) if "type_expr" in item else type_of_duckdb_1(item["cast_type"])
        child = self.node(item["child"])
        if to == "BOOLEAN" and child in (Constant("t"), Constant("f")):  # what DuckDB 1 makes of true and false
            return Constant(child == Constant("t"))
        return Cast(child, to, bool(item["try_cast"]))

    def function(self, item: Json) -> Node:
        only(
            item, "class", "type", "alias", "function_name", "schema", "catalog", "children", "arguments", "filter",
            "order_bys", "distinct",
        )  # fmt: skip
        if item.get("catalog") or item.get("schema") not in ("", "main", None):
            not_understood("a qualified function name")
        if "arguments" in item:
            pairs = [(argument.get("name", ""), argument["expression"]) for argument in item["arguments"]]
        else:
            pairs = [(child.get("alias", ""), child) for child in item["children"]]
        name = item["function_name"].lower()
        self.functions.add(name)
        if name == "dp_count" and pairs and pairs[0][1]["class"] == "STAR":
            only(pairs.pop(0)[1], "class", "type")
            name = "dp_count_star"
        orders = [self.order(ordering) for ordering in (item["order_bys"] or {}).get("orders") or ()]
        call = Call(
            name,
            tuple(self.node(child) for _, child in pairs),
            tuple(name.lower() for name, _ in pairs),
            distinct=bool(item["distinct"]),
            ordered=bool(orders),
            condition=self.optional(item["filter"]),
        )
        return operation_of(call) or percentile_of(call, orders) or call

    def window(self, item: Json) -> Node:
        only(
            item, "class", "type", "alias", "function_name", "schema", "catalog", "children", "arguments", "partitions",
            "orders", "start", "end", "start_expr", "end_expr", "offset_expr", "default_expr", "filter_expr",
            "exclude_clause", "distinct",
        )  # fmt: skip
        if item.get("catalog") or item.get("schema") not in ("", "main", None):
            not_understood("a qualified function name")
        if item["exclude_clause"] != "NO_OTHER":
            not_understood("EXCLUDE in a window")
        given = [argument["expression"] for argument in item["arguments"]] if "arguments" in item else item["children"]
        given = [*given, *(item[name] for name in ("offset_expr", "default_expr") if item.get(name))]
        name = item["function_name"].lower()
        self.functions.add(name)
        call = Call(
            name,
            tuple(map(self.node, given)),
            distinct=bool(item["distinct"]),
            condition=self.optional(item["filter_expr"]),
        )
        order = []
        for ordering in map(self.order, item["orders"]):
            if ordering.item is None:
                not_understood("ORDER BY ALL in a window")
            order.append((ordering.item, ordering.how))
        return Window(call, tuple(map(self.node, item["partitions"])), tuple(order), self.frame(item))

    def frame(self, item: Json) -> str:
        """Frame of a window in SQL; empty if it is the default."""
        start, end = item["start"], item["end"]
        if (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
            return ""
        ends = []
        for word, expression in ((start, item["start_expr"]), (end, item["end_expr"])):
            match word.removesuffix("_ROWS").removesuffix("_RANGE"):
                case "UNBOUNDED_PRECEDING" | "UNBOUNDED_FOLLOWING" | "CURRENT_ROW" as known:
                    ends.append(known.replace("_", " "))
                case "EXPR_PRECEDING" | "EXPR_FOLLOWING" as known if word.endswith("_ROWS"):
                    ends.append(f"{rows_of_frame(self.node(expression))} {known.removeprefix('EXPR_')}")
                case _:
                    not_understood("the frame of a window")
        how = "RANGE" if any(word.endswith("_RANGE") for word in (start, end)) else "ROWS"
        return f"{how} BETWEEN {ends[0]} AND {ends[1]}"

    def case(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "case_checks", "else_expr")
        branches = ((self.node(check["when_expr"]), self.node(check["then_expr"])) for check in item["case_checks"])
        return Case(tuple(branches), self.node(item["else_expr"]))

    def comparison(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "left", "right")
        if item["type"] not in COMPARISONS:
            not_understood("a comparison")
        return Operation(COMPARISONS[item["type"]], (self.node(item["left"]), self.node(item["right"])))

    def conjunction(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "children")
        name = {"CONJUNCTION_AND": "and", "CONJUNCTION_OR": "or"}[item["type"]]
        return Operation(name, tuple(self.node(child) for child in item["children"]))

    def operator(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "children")
        if item["type"] == "GROUPING_FUNCTION":
            return Call("grouping", tuple(self.node(child) for child in item["children"]))
        if item["type"] in REFUSED:
            refuse(item["type"])
        if item["type"] not in OPERATORS:
            not_understood(f"the operator {item['type'].lower().replace('_', ' ')}")
        return Operation(OPERATORS[item["type"]], tuple(self.node(child) for child in item["children"]))

    def between(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "input", "lower", "upper")
        return Operation("between", tuple(self.node(item[name]) for name in ("input", "lower", "upper")))

    def order(self, item: Json) -> Order:
        only(item, "type", "null_order", "expression")
        words = {"ORDER_DEFAULT": "", "ASCENDING": "ASC", "DESCENDING": "DESC"}
        nulls = {"ORDER_DEFAULT": "", "NULLS FIRST": "NULLS FIRST", "NULLS LAST": "NULLS LAST"}
        how = f"{words[item['type']]} {nulls[item['null_order']]}".strip()
        expression = item["expression"]
        everything = expression["class"] == "STAR"
        return Order(None if everything else self.node(expression), how)
