"""The tree of a ``DataFrame.query`` string."""

import ast
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pandas as pd

from pdrisk.rowwise.tree import EXAMPLE, INSTEAD, MEMBERSHIP, WHY, Builder, Column, Constant, Node, guess

__all__ = ["Query"]

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
COMPREHENSION = f"it holds a comprehension. {EXAMPLE}."
REFUSED: dict[type[ast.AST], str] = {
    ast.Call: f"it calls a function or method, which may look at other records. {WHY}. {INSTEAD}.",
    ast.Attribute: f"it uses an attribute (`.`), which may look at other records. {WHY}. {INSTEAD}.",
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


class Query(Builder):
    """Reads one query string: quoted names and ``@names`` become placeholders, the rest is Python."""

    def __init__(self, query: str, frame: pd.DataFrame, names: Callable[[], Mapping[str, object]]) -> None:
        super().__init__(repr(query), frame)
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
        return self.refuse(f"it cannot be read as an expression. {EXAMPLE}.")

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
        return self.refuse(
            REFUSED.get(type(node), f"it holds something other than operators and constants. {EXAMPLE}.")
        )

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
        return self.constant(self.local(match["local"]), f"@{match['local']}")

    def local(self, name: str) -> object:
        names = self.names()
        if name not in names:
            self.refuse(f"there is no variable {name!r} where you call." + guess(name, list(names), "@"))
        return names[name]

    def comparison(self, left: ast.AST, op: ast.AST, right: ast.AST) -> Node:
        symbol = self.symbol(op)
        sides = [self.node(left)]
        if symbol in MEMBERSHIP:
            said, values = "what follows `in`", None
            if isinstance(right, ast.Name) and (match := self.quoted.get(right.id)) and match["local"]:
                said, values = f"@{match['local']}", self.local(match["local"])
            # pandas 3.1 reads [@a, @b] as `==` joined with `or`, pandas 2 as isin: they differ on missing values.
            elif isinstance(right, ast.List | ast.Tuple) and not any(isinstance(x, ast.Name) for x in ast.walk(right)):
                values = [part.value for part in map(self.node, right.elts) if isinstance(part, Constant)]
            return self.operation(symbol, sides[0], self.members(values, said))
        sides.append(self.node(right))
        if symbol in ("==", "!="):
            for one, other in (sides, sides[::-1]):
                # As DataFrame.query does: a column equals a text by isin, so a missing value is unequal, not unknown.
                if isinstance(one, Column) and isinstance(other, Constant) and isinstance(other.value, str):
                    return self.operation("in" if symbol == "==" else "not in", one, Constant([other.value]))
        return self.operation(symbol, *sides)
