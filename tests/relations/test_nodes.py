"""One tree of expressions: what its walkers find, and how nodes are written where answers are remembered."""

import pandas as pd
import pytest

from pdrisk._model.expressions.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Node,
    Operation,
    below,
    constants,
    is_given,
)
from pdrisk._model.rowwise import judged
from pdrisk._sql.text.parse import parsed

FRAME = pd.DataFrame({"age": [1, 2], "income": [1.5, 2.5], "region": ["north", "south"]})
AGE, LIMIT = Column("age"), Constant(40, "$limit")
EVERY = {
    "operation": Operation("and", (Operation(">", (AGE, LIMIT)), Operation("isna", (AGE,)))),
    "call": Call("round", (AGE, LIMIT), ("", "")),
    "filter": Call("count", (AGE,), ("",), condition=Operation("<", (AGE, LIMIT))),
    "case": Case(((Operation("==", (AGE, Constant(1))), Constant(2)), (Constant(True), LIMIT)), AGE),
    "otherwise": Case(((Operation("==", (AGE, Constant(1))), Constant(2)),), LIMIT),
    "cast": Cast(LIMIT, "DOUBLE", True),
}


def everything(value: object) -> list[Node]:
    """All nodes in a node, by its fields."""
    if isinstance(value, tuple):
        return [node for part in value for node in everything(part)]
    fields = getattr(value, "__dataclass_fields__", ())
    return [value, *everything(tuple(getattr(value, name) for name in fields))] if fields else []


@pytest.mark.parametrize("name", EVERY)
def test_a_walk_meets_every_node_from_left_to_right(name):
    node = EVERY[name]
    assert list(map(id, below(node))) == list(map(id, everything(node)))
    assert constants(node) == [each for each in everything(node) if isinstance(each, Constant)]
    assert is_given(node)


def test_a_deep_tree_is_walked_without_recursion():
    node: Node = AGE
    for _ in range(100_000):
        node = Operation("not", (node,))
    assert sum(1 for _ in below(node)) == 100_001
    assert not is_given(node)


# A filter and what is the same in SQL.
ALIKE = {
    "age > 40": "age > 40",
    "age == 1 and income != 2": "age = 1 AND income <> 2",
    "age + 1 < income * 2 or not (age // 7 >= 3 and income < 9)": (
        "age + 1 < income * 2 OR NOT (age // 7 >= 3 AND income < 9)"
    ),
    "-age % 5 <= +income": "-age % 5 <= +income",
    "age.isna() or income.notna()": "age IS NULL OR income IS NOT NULL",
    "age ** 2 - income / 3 > 0": "age ** 2 - income / 3 > 0",
}


@pytest.mark.parametrize("where", ALIKE)
def test_filters_and_sql_are_one_tree(where):
    found = parsed(f"SELECT count(*) FROM t WHERE {ALIKE[where]}").where
    assert repr(found) == repr(judged(where, FRAME, dict).rule)


def test_answers_are_remembered_by_values_alone():
    found = judged("age in @ages and region == @name", FRAME, lambda: {"ages": [1, 2], "name": "north"})
    assert found.canonical == (
        "Operation(symbol='and', parts=(Operation(symbol='in', parts=(Column(name='age'), Constant(value=[1, 2]))), "
        "Operation(symbol='in', parts=(Column(name='region'), Constant(value=['north'])))))"
    )
