"""Version of what an expression means, for the text by which a remembered answer is found again."""

from __future__ import annotations

from typing import Final

from pdrisk._model.expressions.nodes import CONDITIONS, LOGIC, Node, Operation, below

# At first, a comparison with a missing value was false in columns of numpy's dtypes, not unknown.
THREE_VALUED: Final = "; missing is unknown"


def meaning_of(rule: Node, *, as_value: bool = False) -> str:
    """What to add to the text of an expression that meant something else before; "" for all others.

    ``as_value``: whether it is read as a value of each record, and not as a filter alone, which keeps what is true.
    """
    is_other = as_value and isinstance(rule, Operation) and rule.symbol in CONDITIONS
    for node in below(rule):
        if isinstance(node, Operation):
            of_conditions = node.symbol not in LOGIC and any(
                isinstance(part, Operation) and part.symbol in CONDITIONS for part in node.parts
            )
            is_other = is_other or node.symbol in ("not", "!=", "not in", "**") or of_conditions
    return THREE_VALUED if is_other else ""
