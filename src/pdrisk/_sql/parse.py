"""Parser from text to `Select`, by DuckDB's own parser: what is read here is what DuckDB would read.

``json_serialize_sql`` gives the tree of a statement. Its shape differs between DuckDB 1 and 2 and is not promised, so
every field of every object must be known here: whatever is not, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from pdrisk._core.foreign import shown
from pdrisk._model.nodes import Call, Case, Cast, Column, Constant, Node, Noisy, Operation, Window
from pdrisk._sql import workspace
from pdrisk._sql.calls import operation_of, percentile_of
from pdrisk._sql.literals import (
    Json,
    literal,
    not_understood,
    of_duckdb_1,
    of_duckdb_2,
    only,
    type_of_duckdb_1,
    type_of_duckdb_2,
)
from pdrisk._sql.pieces import lowered, quoted
from pdrisk._sql.refusals import JOINS, REFUSED, refuse
from pdrisk._sql.statements import no_select
from pdrisk._sql.tree import (
    Cte,
    File,
    From,
    Join,
    Membership,
    Nothing,
    Order,
    Scalar,
    Select,
    Star,
    Subquery,
    Table,
    Union,
    within,
)
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["Scalars", "parsed"]

STAR = ((Star(), ""),)

COMPARISONS = {
    "COMPARE_EQUAL": "==", "COMPARE_NOTEQUAL": "!=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">", "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "is distinct from", "COMPARE_NOT_DISTINCT_FROM": "is not distinct from",
}  # fmt: skip
OPERATORS = {
    "OPERATOR_NOT": "not", "OPERATOR_IS_NULL": "isna", "OPERATOR_IS_NOT_NULL": "notna",
    "OPERATOR_COALESCE": "coalesce", "OPERATOR_TRY": "try", "COMPARE_IN": "in", "COMPARE_NOT_IN": "not in",
}  # fmt: skip


def parsed(text: str, parameters: object = None, scalars: Scalars | None = None) -> Select:
    """The one SELECT that ``text`` holds, its parameters filled in, and the values of its scalar subqueries.

    Parameters
    ----------
    text : str
    parameters : sequence or mapping, optional
        Values for ``?`` (a list) or ``$name`` (a dict).
    scalars : Scalars, optional
        The values of scalar subqueries that are known; it is told which ones there are. Without it they are refused.

    Raises
    ------
    ParameterError
        If it is no single SELECT, or holds what pdrisk does not understand.
    """
    if not isinstance(text, str):
        raise ColumnTypeError(f"a query is text, not {type(text).__name__}.")
    literal(text, "the query")
    answer = json.loads(workspace.serialized(text))
    statements = answer.get("statements", ())
    if answer["error"] or len(statements) != 1:
        raise no_select(text, str(answer.get("error_message", "")))
    reader = _Reader(text, _checked(parameters), scalars)
    try:
        select = reader.select(only(statements[0], "node", "named_param_map")["node"])
    except ParameterError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError):  # of a DuckDB whose trees are made otherwise
        select = None
    if select is None:
        not_understood("a part")
    reader.check_used()
    functions, has_parameters = frozenset(reader.functions), bool(reader.used)
    select, *subqueries = (
        replace(each, functions=functions, has_parameters=has_parameters) for each in (select, *reader.subqueries)
    )
    if scalars is not None:
        scalars.selects = subqueries
    return select


@dataclass
class Scalars:
    """The scalar subqueries of a text, each once, those in others before them.

    Attributes
    ----------
    values : list
        Of the first ones: what each came to. Those after them stand for 1 in the tree.
    selects : list of Select
    """

    values: list[Scalar] = field(default_factory=list)
    selects: list[Select] = field(default_factory=list)


MOST = 100_000  # parameters by name
Parameters = Mapping[str, object] | Sequence[object]


def _checked(parameters: object) -> Parameters:
    if parameters is None:
        return ()
    if isinstance(parameters, Mapping):
        names = list(islice(parameters, MOST + 1))
        if len(names) > MOST:
            raise ParameterError(f"params can be {MOST:,} at most: put long lists into a table.")
        return {name if isinstance(name, str) else shown(name): parameters[name] for name in names}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        return parameters
    raise ColumnTypeError(f"params must be a list for ? or a dict for $name, not {type(parameters).__name__}.")


def _asked_for(select: Select, ctes: Mapping[str, Cte]) -> dict[str, Cte]:
    """The CTEs around a SELECT that it reads, by others too: without the rest, SELECTs that ask the same are equal."""
    names, kept = set(_tables(select)), dict[str, Cte]()
    for name, cte in reversed(list(ctes.items())):  # each sees those before it
        if lowered(name) in names:
            kept[name] = cte
            names |= set(_tables(cte.select))
    return dict(reversed(kept.items()))


def _tables(select: Select) -> Iterator[str]:
    """The names in FROM, of its subqueries and own CTEs too."""
    for each in within(select):
        if isinstance(each, Table) and len(each.path) == 1:
            yield lowered(each.path[0])


class _Reader:
    """Turns the parser's objects into ours, filling in parameters."""

    def __init__(self, text: str, parameters: Parameters, scalars: Scalars | None) -> None:
        self.text = text
        self.parameters = parameters
        self.scalars = scalars
        self.used: set[str] = set()
        self.functions: set[str] = set()
        self.subqueries: list[Select] = []
        self.around: list[dict[str, Cte]] = []  # the CTEs of the SELECTs that are being read

    def check_used(self) -> None:
        if isinstance(self.parameters, Mapping):
            unused = sorted(set(self.parameters) - self.used)
        else:
            unused = [str(at) for at in range(1, min(len(self.parameters), len(self.used) + 9) + 1)]
            unused = [at for at in unused if at not in self.used][:9]
        if unused:
            raise ParameterError(f"the query has no place for parameter {', '.join(unused)}: take it out of params.")

    def value(self, name: str) -> Scalar:
        """The value of a parameter."""
        if isinstance(self.parameters, Mapping):
            if name in self.parameters:
                return literal(self.parameters[name], f"parameter {name}")
        elif name.isdigit() and 1 <= int(name) <= len(self.parameters):
            return literal(self.parameters[int(name) - 1], f"parameter {name}")
        shown = f"parameter {name} (?)" if name.isdigit() else f"${name}"
        raise ParameterError(f"the query has no value for {shown}: pass params=, a list for ?, a dict for $name.")

    # statements

    def select(self, node: Json) -> Select:
        self.around.append({})
        if node["type"] != "SET_OPERATION_NODE" and node["type"] in REFUSED:
            refuse(node["type"])
        for item in node.get("cte_map", {}).get("map", []):
            self.around[-1][item["key"]] = self.cte(item["value"])
        found = self.union(node) if node["type"] == "SET_OPERATION_NODE" else self.plain_select(node)
        return replace(found, ctes=self.around.pop())

    def union(self, node: Json) -> Select:
        """UNION as the SELECT of all that its parts give, so that ORDER BY and LIMIT are about all of it."""
        only(node, "type", "modifiers", "cte_map", "setop_type", "setop_all", "left", "right", "children")
        if node["setop_type"] != "UNION":
            refuse("SET_OPERATION_NODE")
        nodes = node["children"] if "children" in node else [node["left"], node["right"]]
        parts: list[Select] = []
        for part in map(self.select, nodes):
            same = part == Select(STAR, part.source) and isinstance(part.source, Union)
            parts += part.source.parts if same and isinstance(part.source, Union) else (part,)
        order, limit, offset, distinct = self.modifiers(node)
        return Select(
            STAR,
            Union(tuple(parts)),
            order=order,
            limit=limit,
            offset=offset,
            distinct=distinct or not node["setop_all"],
        )

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
        return Select(
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
                case "DISTINCT_MODIFIER" if not modifier.get("distinct_on_targets"):
                    distinct = True
                case "LIMIT_MODIFIER" | "LIMIT_PERCENT_MODIFIER":
                    raise ParameterError("LIMIT takes a number of rows here, no percentage.")
                case _:
                    raise ParameterError("DISTINCT ON picks records by their order, which is refused.")
        return order, limit, offset, distinct

    def where(self, item: Json | None) -> tuple[Node | None, tuple[Membership, ...]]:
        """The conditions of WHERE, and those of them that are IN or EXISTS of a subquery."""
        if item is None:
            return None, ()
        conjuncts = [item]
        if item["class"] == "CONJUNCTION" and item["type"] == "CONJUNCTION_AND":
            conjuncts = only(item, "class", "type", "alias", "children")["children"]
        members = [self.membership(each) for each in conjuncts]
        if not any(members):
            return self.node(item), ()
        rest = [self.node(each) for each, member in zip(conjuncts, members, strict=True) if member is None]
        kept = Operation("and", tuple(rest)) if len(rest) > 1 else rest[0] if rest else None
        return kept, tuple(member for member in members if member is not None)

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
        """GROUP BY, and the places of each of its GROUPING SETS, the finest first; None if there is one alone."""
        expressions, sets = node["group_expressions"], node["group_sets"]
        if node["aggregate_handling"] == "FORCE_AGGREGATES":
            return None, None
        if node["aggregate_handling"] != "STANDARD_HANDLING":
            not_understood("the aggregates")
        groups = tuple(self.node(item) for item in expressions)
        if not sets or sets == [list(range(len(expressions)))]:
            return groups, None
        return groups, tuple(sorted(map(tuple, sets), key=lambda each: (-len(each), each)))

    def order(self, item: Json) -> Order:
        only(item, "type", "null_order", "expression")
        words = {"ORDER_DEFAULT": "", "ASCENDING": "ASC", "DESCENDING": "DESC"}
        nulls = {"ORDER_DEFAULT": "", "NULLS FIRST": "NULLS FIRST", "NULLS LAST": "NULLS LAST"}
        how = f"{words[item['type']]} {nulls[item['null_order']]}".strip()
        expression = item["expression"]
        everything = expression["class"] == "STAR"
        return Order(None if everything else self.node(expression), how)

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
        if kind == "EMPTY" and self.scalars is not None:
            return Nothing()
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
                and table.get("with_ordinality", "WITHOUT_ORDINALITY") == "WITHOUT_ORDINALITY"
            ):
                return File(call.arguments[0].value, alias, columns)
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
        if how not in ("INNER", "LEFT", "SEMI", "ANTI", "CROSS") or table.get("nearest_count", 1) != 1:
            not_understood(f"{how.lower()} join")
        return Join(
            self.source(table["left"]),
            self.source(table["right"]),
            how,
            self.optional(table["condition"]),
            tuple(table["using_columns"]),
        )

    # expressions

    def item(self, item: Json) -> Node | Star:
        if item["class"] != "STAR":
            return self.node(item)
        only(item, "class", "type", "alias", "relation_name", "exclude_list", "replace_list")
        replaced = {pair["key"]: self.node(pair["value"]) for pair in item.get("replace_list", [])}
        return Star(item.get("relation_name", ""), tuple(item.get("exclude_list", ())), replaced)

    def optional(self, item: Json | None) -> Node | None:
        return None if item is None else self.node(item)

    def scalar(self, item: Json) -> Node:
        """A scalar subquery as the value it came to."""
        if self.scalars is None or item["subquery_type"] != "SCALAR":
            refuse("SUBQUERY")
        only(item, "class", "type", "alias", "subquery_type", "subquery", "comparison_type")
        select = self.select(only(item["subquery"], "node")["node"])
        seen = dict(chain(*(ctes.items() for ctes in self.around)))
        select = replace(select, ctes={**_asked_for(select, seen), **select.ctes})
        if select not in self.subqueries:
            self.subqueries.append(select)
        place, known = self.subqueries.index(select), self.scalars.values
        return Noisy(known[place] if place < len(known) else 1, place=place)

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
        return read(item)

    def column(self, item: Json) -> Node:
        *qualifiers, name = only(item, "class", "type", "alias", "column_names")["column_names"]
        return Column(name, tuple(qualifiers), in_quotes=quoted(name) in self.text)

    def constant(self, item: Json) -> Node:
        only(item, "class", "type", "alias", "value", "literal")
        return Constant(of_duckdb_2(item["literal"]) if "literal" in item else of_duckdb_1(item["value"]))

    def parameter(self, item: Json) -> Node:
        name = only(item, "class", "type", "alias", "identifier")["identifier"]
        self.used.add(name)
        return Constant(self.value(name), "?" if name.isdigit() else f"${name}")

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
        orders = [self.order(each) for each in (item["order_bys"] or {}).get("orders") or ()]
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
        given = [each["expression"] for each in item["arguments"]] if "arguments" in item else item["children"]
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
        for each in map(self.order, item["orders"]):
            if each.item is None:
                not_understood("ORDER BY ALL in a window")
            order.append((each.item, each.how))
        return Window(call, tuple(map(self.node, item["partitions"])), tuple(order), self.frame(item))

    def frame(self, item: Json) -> str:
        """The frame of a window in SQL; none if it is the one that windows have anyway."""
        start, end = item["start"], item["end"]
        if (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
            return ""
        ends = []
        for word, expression in ((start, item["start_expr"]), (end, item["end_expr"])):
            match word.removesuffix("_ROWS").removesuffix("_RANGE"):
                case "UNBOUNDED_PRECEDING" | "UNBOUNDED_FOLLOWING" | "CURRENT_ROW" as known:
                    ends.append(known.replace("_", " "))
                case "EXPR_PRECEDING" | "EXPR_FOLLOWING" as known if word.endswith("_ROWS"):
                    rows = self.node(expression)
                    if not isinstance(rows, Constant) or type(rows.value) is not int or rows.value < 0:
                        raise ParameterError("ROWS of a window takes whole numbers that are written out or parameters.")
                    ends.append(f"{rows.value} {known.removeprefix('EXPR_')}")
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
