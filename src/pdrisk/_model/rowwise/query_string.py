"""Query strings of pandas as trees: a parser of what ``DataFrame.query`` takes."""

import ast
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pandas as pd

from pdrisk._model.expressions.nearest import did_you_mean, unknown_column
from pdrisk._model.expressions.nodes import MEMBERSHIP, Column, Constant, Node
from pdrisk._model.rowwise.builder import (
    BEHIND,
    EXAMPLE,
    INSTEAD,
    METHODS,
    WHY,
    Builder,
    Levels,
    is_row_wise,
    needs_backticks,
    not_offered,
    text_of,
)
from pdrisk.errors import ParameterError, UnknownColumnError

TOKENS = re.compile(
    r"""(?P<text>'''(?:\\.|[^\\])*?'''|\"""(?:\\.|[^\\])*?\"""|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
      | `(?P<column>(?:[^`]|``)+)` | @\s*(?P<local>[^\W\d]\w*) | (?P<join>[&|])(?!=) | (?P<comment>\#[^\n]*)""",
    re.VERBOSE | re.DOTALL,
)
# fmt: off
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.UAdd: "unary +", ast.USub: "unary -", ast.Not: "not", ast.Invert: "not", ast.And: "and", ast.Or: "or",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in",
}
# fmt: on
WORDS = {"and", "or", "not", "in", "is", "if", "else", "True", "False", "None"}  # of a filter, and so no lost column
COMPREHENSION = f"it holds a comprehension. {EXAMPLE}."
REFUSED: dict[type[ast.AST], str] = {
    ast.Subscript: f"it uses brackets to pick by position or label. {WHY}. {INSTEAD}.",
    ast.NamedExpr: f"it assigns with `:=`. {EXAMPLE}.",
    ast.Lambda: f"it holds a lambda. {EXAMPLE}.",
    ast.JoinedStr: "it holds an f-string. Format the text before, and name it with `@name`.",
    ast.IfExp: "it holds `if ... else`. Write it with `and`, `or`, `not`.",
    ast.List: "a list stands only after `in`: write `in` instead of `==`.",
    ast.Tuple: "a tuple stands only after `in`: write `in` instead of `==`, and join conditions with `and`.",
    ast.Set: "it holds a set. Write a list: `region in ['north', 'south']`.",
    ast.BitXor: "it uses `^`. Write `!=` between two conditions.",
    ast.Is: "it uses `is`. Write `==`.",
    ast.IsNot: "it uses `is not`. Write `!=`.",
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), COMPREHENSION),
}


class QueryString(Builder):
    """Reader of one query string: quoted names and ``@names`` become placeholders, the rest is Python."""

    def __init__(
        self,
        query: str,
        frame: pd.DataFrame,
        names: Callable[[], Mapping[str, object]],
        levels: Levels,
        option: str = "where",
    ) -> None:
        super().__init__(repr(query), frame, levels, option)
        self.query = query
        self.names = names
        self.quoted: dict[str, re.Match[str]] = {}  # placeholder -> `column` or @local
        self.prefix = "_quoted"
        while self.prefix in query:
            self.prefix += "_"
        self.source = TOKENS.sub(self.token, query).strip()

    def token(self, match: re.Match[str]) -> str:
        if match["join"]:
            return " and " if match["join"] == "&" else " or "  # as pandas does: `a > 1 & b < 2` is two conditions
        if match["text"] or match["comment"]:
            return match["text"] or ""
        name = f"{self.prefix}{len(self.quoted)}"
        self.quoted[name] = match
        return f" {name} "

    def tree(self) -> Node:
        refusal: ParameterError | None = None
        try:
            return self.parsed()
        except ParameterError as error:
            refusal = error
        if bare := self.bare_names():
            name = max(bare, key=len)
            self.refuse(f"the name of column {name!r} has to be in backticks: write {text_of(Column(name))}.")
        raise refusal

    def bare_names(self) -> list[str]:
        """The columns whose names stand in the query but would need backticks."""
        bare = TOKENS.sub(lambda match: " " if match["text"] or match["column"] else match[0], self.query)
        names = [name for name in self.frame.columns if isinstance(name, str) and any(map(str.isalpha, name))]
        return [
            name
            for name in names
            if needs_backticks(name) and name not in WORDS and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", bare)
        ]

    def parsed(self) -> Node:
        if not self.source:
            self.refuse(f"it is empty. {EXAMPLE}, or leave `where` out.")
        unreadable = (SyntaxError, ValueError, RecursionError, MemoryError)
        parsed: Any = None
        with suppress(*unreadable):
            parsed = ast.parse(self.source, mode="eval")
        if parsed is not None:
            return self.node(parsed.body)
        with suppress(*unreadable):
            parsed = ast.parse(self.source)
        if parsed is not None and len(parsed.body) > 1:
            self.refuse("it holds several statements. Join conditions with `and` or `or`.")
        if parsed is not None and isinstance(parsed.body[0], ast.Assign | ast.AugAssign | ast.AnnAssign):
            self.refuse("it assigns with `=`. Write `==` to compare.")
        return self.refuse(
            f"it cannot be read as an expression. {EXAMPLE}: text in quotes, the name of a column in backticks if it "
            "is more than one word."
        )

    def node(self, node: ast.AST) -> Node:
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float) and math.isinf(node.value):
                self.refuse("a number in it overflows. Write a smaller one.")
            return self.constant(node.value, "a constant")
        if isinstance(node, ast.BinOp):
            return self.operation(self.symbol(node.op), self.node(node.left), self.node(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.operation(self.symbol(node.op), self.node(node.operand))
        if isinstance(node, ast.BoolOp):
            return self.operation(self.symbol(node.op), *map(self.node, node.values))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            chain = [self.comparison(*three) for three in zip(sides, node.ops, sides[1:], strict=False)]
            return chain[0] if len(chain) == 1 else self.operation("and", *chain)
        if isinstance(node, ast.Call | ast.Attribute):
            return self.method(node)
        return self.refuse(
            REFUSED.get(type(node), f"it holds something other than operators and constants. {EXAMPLE}.")
        )

    def method(self, node: ast.Call | ast.Attribute) -> Node:
        named = node.func if isinstance(node, ast.Call) else node
        if isinstance(named, ast.Attribute) and isinstance(named.value, ast.Attribute):
            kind, attribute = named.value.attr, named.attr
            if attribute in BEHIND.get(kind, ()):
                return self.behind(node, f"{kind}.{attribute}", self.node(named.value.value))
        if not isinstance(named, ast.Attribute) or named.attr not in METHODS:
            return self.refuse(self.foreign(node))
        name, column = named.attr, self.node(named.value)
        if not isinstance(column, Column) or not isinstance(node, ast.Call):
            self.refuse(f"`{name}` stands behind the name of a column, with its brackets, as in `age.isna()`.")
        takes = METHODS[name]
        given = [*zip(takes, node.args, strict=False), *((word.arg, word.value) for word in node.keywords)]
        arguments = dict(given)
        if len(node.args) > len(takes) or len(given) > len(takes) or set(arguments) != set(takes):
            self.refuse(
                f"`{name}` takes something else: write `age.isna()`, `age.between(18, 65)`, which holds both ends, or "
                "`age.isin([18, 19])`, and `18 <= age < 65` for other ends."
            )
        if name == "between":
            left, right = self.node(arguments["left"]), self.node(arguments["right"])
            return self.operation("and", self.operation(">=", column, left), self.operation("<=", column, right))
        if name == "isin":
            return self.operation("in", column, self.listed(arguments["values"], "what stands in isin()"))
        return self.operation(name, column)

    def behind(self, node: ast.Call | ast.Attribute, name: str, column: Node) -> Node:
        """A function behind ``.str``, or a part of a time behind ``.dt``, which has no brackets."""
        if isinstance(node, ast.Attribute):
            return self.function(name, column, (), {})
        options = {word.arg or "**": self.node(word.value) for word in node.keywords}
        given = [*map(self.node, node.args), *(options.pop(word) for word in ("pat",) if word in options)]
        constants = [argument for argument in given if isinstance(argument, Constant)]
        if len(constants) < len(given) or name.startswith("dt."):
            self.refuse(f"`{name}` takes something else: write `name.str.contains('a')` or `day.dt.year`.")
        plain = {word: option.value if isinstance(option, Constant) else option for word, option in options.items()}
        return self.function(name, column, constants, plain)

    def foreign(self, node: ast.AST) -> str:
        """Why a function, method or attribute in this part of the query is refused."""
        used = []
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                match = self.quoted.get(part.func.id)
                used.append(match[0] if match else part.func.id)
            elif isinstance(part, ast.Attribute):
                outer = f"{part.value.attr}." if isinstance(part.value, ast.Attribute) else ""
                used.append((outer if outer in ("str.", "dt.") else "") + part.attr)
        if not used:
            return f"it calls something that is no function. {EXAMPLE}."
        others = [name for name in used if not is_row_wise(name)]
        return not_offered(others[0] if others else used[0], not others)

    def symbol(self, op: ast.AST) -> str:
        if type(op) not in SYMBOLS:
            self.refuse(REFUSED.get(type(op), f"it uses an operator that filters do not have. {EXAMPLE}."))
        return SYMBOLS[type(op)]

    def name(self, name: str) -> Node:
        if name not in self.quoted:
            return self.column(name)
        match = self.quoted[name]
        if match["column"]:
            return self.column(match["column"].replace("``", "`"))
        return self.constant(self.local(match["local"]), *(f"@{match['local']}",) * 2)

    def local(self, name: str) -> object:
        names = self.names()
        if name not in names:
            self.refuse(f"there is no variable {name!r} where you call." + did_you_mean(name, names, "'@{}'"))
        return names[name]

    def listed(self, values: ast.AST, description: str) -> Constant:
        """The constants of a list."""
        if isinstance(values, ast.Name) and (match := self.quoted.get(values.id)) and match["local"]:
            return self.members(self.local(match["local"]), *(f"@{match['local']}",) * 2)
        # pandas 3.1 reads [@a, @b] as `==` joined with `or`, pandas 2 as isin: they differ on missing values.
        if isinstance(values, ast.List | ast.Tuple) and not any(isinstance(x, ast.Name) for x in ast.walk(values)):
            plain = [part.value for part in map(self.node, values.elts) if isinstance(part, Constant)]
            return self.members(plain, description)
        return self.members(None, description)

    def check_quotes(self, side: ast.AST, other: ast.AST) -> None:
        """Hint that text needs quotes, if an unknown word stands beside a column."""
        if not isinstance(other, ast.Name) or not self.is_known(other.id):
            return
        for word in side.elts if isinstance(side, ast.List | ast.Tuple) else [side]:
            if isinstance(word, ast.Name) and word.id not in self.quoted and not self.is_known(word.id):
                unknown = unknown_column(word.id, self.frame.columns)
                raise UnknownColumnError(f"{unknown} If it is text, put it in quotes: {word.id!r}.")

    def is_known(self, name: str) -> bool:
        if name in self.quoted:
            name = (self.quoted[name]["column"] or "").replace("``", "`")
        return name in self.frame.columns or self.is_index(name)

    def comparison(self, left: ast.AST, op: ast.AST, right: ast.AST) -> Node:
        symbol = self.symbol(op)
        if symbol in ("==", "!=", *MEMBERSHIP):
            self.check_quotes(left, right)
            self.check_quotes(right, left)
        sides = [self.node(left)]
        if symbol in MEMBERSHIP:
            return self.operation(symbol, sides[0], self.listed(right, "what follows `in`"))
        sides.append(self.node(right))
        if symbol in ("==", "!="):
            for one, other in (sides, sides[::-1]):
                # In one spelling with a list of one text, as questions are remembered.
                if isinstance(one, Column) and isinstance(other, Constant) and isinstance(other.value, str):
                    return self.operation("in" if symbol == "==" else "not in", one, _alone(other))
        return self.operation(symbol, *sides)


def _alone(constant: Constant) -> Constant:
    """The list of one constant."""
    return Constant([constant.value], constant.given and f"[{constant.given}]")
