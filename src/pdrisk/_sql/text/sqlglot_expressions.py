"""Expressions of sqlglot as nodes of rows and answers: an allow-list, in which every field of every node is known."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, NoReturn

from pdrisk._model.expressions.nodes import Call, Case, Column, Constant, Node, Operation, Window
from pdrisk._sql.expressions.decimals import folded
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.calls import percentile_of, rows_of_frame
from pdrisk._sql.syntax.languages import POSTGRES, Language
from pdrisk._sql.syntax.literals import literal
from pdrisk._sql.syntax.tree import Order, Select
from pdrisk._sql.text.parameters import Parameters
from pdrisk._sql.text.scalars import Scalars, ScalarsRead
from pdrisk._sql.text.sqlglot_functions import Expression, FunctionsOfSqlglot, call
from pdrisk._sql.text.sqlglot_names import (
    ADVICE,
    ARITHMETIC,
    COMPARISONS,
    ENDS,
    OF_NUMBERS,
    OF_ONE,
    OF_PLACES,
    OF_ROWS,
    OF_TEXT,
    OF_TIMES,
    OF_TWO,
    OF_TWO_NUMBERS,
    PERCENTILES,
    QUANTILES,
)
from pdrisk.errors import ParameterError

__all__ = ["PLACE", "Expression", "ExpressionsOfSqlglot"]

PLACE: Final = "pdrisk_parameter_"  # before the number of a parameter without a name


class ExpressionsOfSqlglot(FunctionsOfSqlglot):
    """Reader of expressions in a language, with the values of parameters.

    Parameters
    ----------
    language : Language
    parameters : object
        As the caller passed them.
    scalars : Scalars or None
        The values of scalar subqueries that are known.
    """

    def __init__(self, language: Language, parameters: object, scalars: Scalars | None) -> None:
        self.language = language
        self.parameters = Parameters(parameters, language.by_place, ":name")
        self.scalars = ScalarsRead(scalars)

    @abstractmethod
    def select(self, node: Expression) -> Select:
        """A SELECT."""

    def refuse(self, node: Expression | str) -> NoReturn:
        name = node if isinstance(node, str) else type(node).__name__
        what = ADVICE.get(name)
        if what is None:
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
            if name == "Anonymous" and not isinstance(node, str):
                words = f"the function {node.name}"
            what = (
                f"{words}: make a view in the database with the column that you need, and ask that, or read the table "
                "into DuckDB"
            )
        raise ParameterError(f"pdrisk does not read this in a query for {self.language.engine}: {what}.")

    def only(self, node: Expression, *known: str) -> Expression:
        """The node, if it has no field beyond the known ones."""
        for name, value in node.args.items():
            if value is None or value is False or (isinstance(value, list | str) and not value):
                continue
            if name not in known:
                part = value[0] if isinstance(value, list) else value
                self.refuse(part if hasattr(part, "args") else f"{type(node).__name__} with {name.strip('_')}")
        return node

    def name(self, node: Expression) -> str:
        if type(node).__name__ != "Identifier":
            self.refuse(node)
        return str(self.only(node, "this", "quoted").this)

    def order(self, node: Expression) -> Order:
        self.only(node, "this", "desc", "nulls_first")
        nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
        return Order(self.node(node.this), f"{'DESC' if node.args.get('desc') else 'ASC'} NULLS {nulls}")

    def under(self, node: Expression | None, field: str = "this") -> Node | None:
        return None if node is None else self.node(self.only(node, field).args[field])

    def nodes(self, node: Expression) -> tuple[Node, ...]:
        return tuple(map(self.node, node.expressions))

    def node(self, node: Expression) -> Node:
        name = type(node).__name__
        read: Callable[[Any], Node] | None = {
            "Column": self.column, "Literal": self.constant, "Boolean": self.constant, "Null": self.constant,
            "Paren": self.inner, "And": self.joined, "Or": self.joined, "Not": self.negated, "Neg": self.negated,
            "Is": self.is_null, "In": self.member, "Between": self.between, "Case": self.case, "Cast": self.cast,
            "TryCast": self.cast, "Coalesce": self.coalesce, "Nullif": self.nullif, "Count": self.count,
            "If": self.conditional, "NullSafeEQ": self.distinct_from, "NullSafeNEQ": self.distinct_from,
            "Round": self.round, "Trunc": self.round, "Log": self.logarithm, "Pi": self.pi, "WidthBucket": self.bucket,
            "Trim": self.trimmed, "Like": self.like, "ILike": self.like, "DPipe": self.joined_text,
            "Concat": self.joined_text, "Pad": self.padded, "Interval": self.interval, "TimeToStr": self.written_time,
            "DateTrunc": self.truncated, "DayOfWeek": self.weekday, "TsOrDsAdd": self.days_later,
            "AddMonths": self.months_later, **dict.fromkeys(("DateDiff", "TimestampDiff"), self.time_between),
            "TsOrDsToDate": self.dated,
            "Explode": self.series_of_rows,
            "LastDay": self.last_day, **dict.fromkeys(OF_TEXT, self.of_text),
            **dict.fromkeys(OF_TWO_NUMBERS, self.of_two_numbers),
            "WithinGroup": self.percentile, "Filter": self.filtered, "Anonymous": self.named, "Array": self.listed,
            "Extract": self.extract, "TimestampTrunc": self.truncated,
            **dict.fromkeys(OF_TIMES, self.of_time),
            "Window": self.window, "Grouping": self.grouping, "Subquery": self.scalar_subquery,
            "Parameter": self.numbered_parameter, "Placeholder": self.placeholder,
            **dict.fromkeys(COMPARISONS, self.compared), **dict.fromkeys(ARITHMETIC, self.computed),
            **dict.fromkeys(OF_ONE, self.of_one), **dict.fromkeys(OF_TWO, self.of_two),
            **dict.fromkeys(OF_NUMBERS, self.of_number), **dict.fromkeys(ENDS, self.end),
            **dict.fromkeys(QUANTILES, self.quantile),
        }.get(name)  # fmt: skip
        if read is None:
            self.refuse(node)
        return folded(read(node))

    def column(self, node: Expression) -> Node:
        self.only(node, "this", "table", "db", "catalog")
        before = [self.name(node.args[name]) for name in ("catalog", "db", "table") if node.args.get(name)]
        return Column(self.name(node.this), tuple(before), in_quotes=bool(node.this.args.get("quoted")))

    def constant(self, node: Expression) -> Node:
        if type(node).__name__ != "Literal":
            return Constant(None if type(node).__name__ == "Null" else bool(self.only(node, "this").this))
        written = str(self.only(node, "this", "is_string").this)
        if node.args["is_string"]:
            return Constant(written)
        if re.fullmatch(r"[0-9]+", written):
            return Constant(literal(int(written), "a number of the query"))
        if re.fullmatch(r"[0-9]*\.[0-9]+|[0-9]+\.", written):
            return Constant(Decimal(written))
        if re.fullmatch(r"[0-9.]+[eE][+-]?[0-9]+", written):
            return Constant(float(written))
        raise ParameterError("a number of the query has an unusual form: write 1, 1.5 or 1e3.")

    def two(self, node: Expression) -> tuple[Node, Node]:
        self.only(node, "this", "expression")
        return self.node(node.this), self.node(node.expression)

    def flat(self, node: Expression, name: str) -> list[Expression]:
        """Operands of nested operators of one name."""
        parts = []
        waiting = [node]
        while waiting:
            operand = waiting.pop()
            if type(operand).__name__ == name:
                self.only(operand, "this", "expression")
                waiting += [operand.expression, operand.this]
            else:
                parts.append(operand)
        return parts

    def joined(self, node: Expression) -> Node:
        name = type(node).__name__
        return Operation(name.lower(), tuple(map(self.node, self.flat(node, name))))

    def negated(self, node: Expression) -> Node:
        return Operation("not" if type(node).__name__ == "Not" else "unary -", (self.inner(node),))

    def is_null(self, node: Expression) -> Node:
        self.only(node, "this", "expression", "negate")
        if type(node.expression).__name__ == "Boolean":
            same = Operation("is not distinct from", (self.node(node.this), self.constant(node.expression)))
            return Operation("not", (same,)) if node.args.get("negate") else same
        if type(node.expression).__name__ != "Null":
            raise ParameterError("IS is understood before NULL, TRUE and FALSE only.")
        return Operation("notna" if node.args.get("negate") else "isna", (self.node(node.this),))

    def member(self, node: Expression) -> Node:
        if node.args.get("query") is not None:
            self.only(node, "this", "query")
            condition = self.scalars.member(self.node(node.this), self.select(node.args["query"]))
            return condition or self.refuse("Subquery")
        self.only(node, "this", "expressions")
        return Operation("in", (self.node(node.this), *self.nodes(node)))

    def between(self, node: Expression) -> Node:
        self.only(node, "this", "low", "high")
        return Operation("between", tuple(self.node(node.args[name]) for name in ("this", "low", "high")))

    def compared(self, node: Expression) -> Node:
        return Operation(COMPARISONS[type(node).__name__], self.two(node))

    def computed(self, node: Expression) -> Node:
        return self.arithmetic(node, ARITHMETIC[type(node).__name__])

    def case(self, node: Expression) -> Node:
        self.only(node, "this", "ifs", "default")
        operand = None if node.args.get("this") is None else self.node(node.this)
        branches = []
        for branch in node.args["ifs"]:
            self.only(branch, "this", "true")
            when = self.node(branch.this)
            branches.append(
                (when if operand is None else Operation("==", (operand, when)), self.node(branch.args["true"]))
            )
        default = node.args.get("default")
        return Case(tuple(branches), Constant(None) if default is None else self.node(default))

    # What is filled in

    def numbered_parameter(self, node: Expression) -> Node:
        number = self.only(node, "this").this
        if type(number).__name__ != "Literal" or not str(number.this).isdigit() or self.language is not POSTGRES:
            self.refuse(node)
        return self.parameters.constant(str(int(number.this)))

    def placeholder(self, node: Expression) -> Node:
        written = self.only(node, "this").this
        if written is None:
            self.refuse("Parameter")
        name = written if isinstance(written, str) else self.name(written)
        return self.parameters.constant(name.removeprefix(PLACE))

    def scalar_subquery(self, node: Expression) -> Node:
        if self.scalars.known is None:
            self.refuse(node)
        return self.scalars.value(self.select(node))

    # Functions

    def grouping(self, node: Expression) -> Node:
        return Call("grouping", self.nodes(self.only(node, "expressions")))

    def window(self, node: Expression) -> Node:
        self.only(node, "this", "partition_by", "order", "spec", "over")
        function, condition = node.this, None
        if type(function).__name__ == "Filter":
            self.only(function, "this", "expression")
            function, condition = function.this, self.under(function.expression)
        name = type(function).__name__
        if name in OF_PLACES:
            self.only(function)
            made = Call(OF_PLACES[name], ())
        elif name in OF_ROWS:
            self.only(function, "this", "offset", "default")
            given = (function.args.get(key) for key in ("this", "offset", "default"))
            made = call(OF_ROWS[name], *(self.node(argument) for argument in given if argument is not None))
        else:
            called = self.node(function)
            if not isinstance(called, Call):
                self.refuse(function)
            made = called
        order = node.args.get("order")
        ordered = [] if order is None else list(map(self.order, self.only(order, "expressions").expressions))
        return Window(
            replace(made, names=(), condition=condition),
            tuple(map(self.node, node.args.get("partition_by") or ())),
            tuple((ordering.item, ordering.how) for ordering in ordered if ordering.item is not None),
            self.frame(node.args.get("spec")),
        )

    def frame(self, node: Expression | None) -> str:
        """Frame of a window as DuckDB has it; empty if it is the default."""
        if node is None:
            return ""
        self.only(node, "kind", "start", "start_side", "end", "end_side")
        kind, ends = str(node.args.get("kind")).upper(), []
        for side in ("start", "end"):
            end = node.args.get(side) or "CURRENT ROW"
            if not isinstance(end, str):
                end = f"{rows_of_frame(self.node(end) if kind == 'ROWS' else None)}"
            elif end not in ("CURRENT ROW", "UNBOUNDED"):
                self.refuse("Window with this frame")
            ends.append(f"{end} {node.args.get(f'{side}_side') or ''}".strip().upper())
        if kind not in ("ROWS", "RANGE"):
            self.refuse("Window with this frame")
        return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"

    def listed(self, node: Expression) -> Node:
        return call("list_value", *self.nodes(self.only(node, "expressions", "bracket_notation")))

    # Aggregates

    def count(self, node: Expression) -> Node:
        self.only(node, "this", "big_int")
        if type(node.this).__name__ == "Star":
            self.only(node.this)
            return Call("count_star", ())
        return self.distinct("count", node.this)

    def of_one(self, node: Expression) -> Node:
        return self.distinct(OF_ONE[type(node).__name__], self.only(node, "this").this)

    def distinct(self, name: str, argument: Expression) -> Node:
        """Aggregate of all values or of different ones."""
        is_distinct = type(argument).__name__ == "Distinct"
        arguments = self.nodes(self.only(argument, "expressions")) if is_distinct else (self.node(argument),)
        return replace(call(name, *arguments), distinct=is_distinct)

    def of_two(self, node: Expression) -> Node:
        return call(OF_TWO[type(node).__name__], *self.two(node))

    def quantile(self, node: Expression) -> Node:
        self.only(node, "this", "quantile")
        return call(QUANTILES[type(node).__name__], self.node(node.this), self.node(node.args["quantile"]))

    def percentile(self, node: Expression) -> Node:
        self.only(node, "this", "expression")
        name = PERCENTILES.get(type(node.this).__name__)
        if name is None:
            self.refuse(node.this)
        q = self.inner(node.this)
        orders = tuple(map(self.order, self.only(node.expression, "expressions").expressions))
        percentile = percentile_of(call(name, q), orders)
        if percentile is None:
            raise ParameterError("a percentile is WITHIN GROUP (ORDER BY x), of one column.")
        return percentile

    def filtered(self, node: Expression) -> Node:
        self.only(node, "this", "expression")
        made = self.node(node.this)
        if not isinstance(made, Call) or made.condition is not None:
            self.refuse(node.this)
        return replace(made, condition=self.under(node.expression))

    def named(self, node: Expression) -> Node:
        self.only(node, "this", "expressions")
        if (plain := self.plain_function(node)) is not None:
            return plain
        name = str(node.this).lower()
        name = dict(self.language.functions).get(name, name)
        known = AGGREGATES.get(name)
        if known is None or not (known.private or name in dict(self.language.functions).values()):
            self.refuse(node)
        arguments = list(node.expressions)
        if name == "dp_count" and arguments and type(arguments[0]).__name__ == "Star":
            self.only(arguments.pop(0))
            name = "dp_count_star"
        pairs = [self.argument(argument) for argument in arguments]
        return Call(name, tuple(value for _, value in pairs), tuple(label for label, _ in pairs))

    def argument(self, node: Expression) -> tuple[str, Node]:
        """An argument with its name, if it has one: ``eps := 1`` or ``eps => 1``."""
        if type(node).__name__ not in ("PropertyEQ", "Kwarg"):
            return "", self.node(node)
        self.only(node, "this", "expression")
        return str(self.only(node.this, "this", "quoted").this).lower(), self.node(node.expression)
