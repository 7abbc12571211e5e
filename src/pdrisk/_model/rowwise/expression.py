"""Trees of ``pd.col`` expressions: each is evaluated on a recorder that stands for the frame."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NoReturn

from pdrisk._model.expressions.nodes import ARITHMETIC, COMPARISONS, MISSING, Node
from pdrisk._model.rowwise.builder import BEHIND, GIVEN, WHY, Builder, is_row_wise, not_offered
from pdrisk._model.rowwise.functions import OF_TEXT


class Recorded:
    """Stands for a Series while a ``pd.col`` expression is evaluated, and records what is done to it."""

    def __init__(self, builder: Builder, node: Node) -> None:
        self.state = builder, node

    def __getattribute__(self, name: str) -> Any:
        if name not in RECORDED:  # the state included: the frame in it is not to be had from inside an expression
            state_of(self)[0].refuse(not_offered(name, is_row_wise(name)))
        return object.__getattribute__(self, name)

    def isin(self, values: object) -> "Recorded":
        builder, node = state_of(self)
        return Recorded(builder, builder.operation("in", node, builder.members(values, "what stands in isin()", GIVEN)))

    def between(self, left: object, right: object) -> "Recorded":
        both: Recorded = (self >= left) & (self <= right)  # type: ignore[operator]
        return both


class Behind:
    """Stands for ``.str`` or ``.dt`` of a recorded column, and for a function behind ``.str``."""

    def __init__(self, recorded: Recorded, name: str) -> None:
        self.state = recorded, name

    def __getattribute__(self, name: str) -> Any:
        recorded, path = object.__getattribute__(self, "state")
        builder, node = state_of(recorded)
        if path == "str" and name in OF_TEXT:
            return Behind(recorded, f"str.{name}")
        return Recorded(builder, builder.function(f"{path}.{name}", node, (), {}))

    def __call__(self, *given: object, **options: object) -> Recorded:
        recorded, path = object.__getattribute__(self, "state")
        builder, node = state_of(recorded)
        given = (*given, *(options.pop(name) for name in ("pat",) if name in options))
        parts = [
            builder.constant(argument, "a constant", GIVEN) for argument in given if not isinstance(argument, Recorded)
        ]
        return Recorded(builder, builder.function(path, node, parts, options))


def state_of(recorded: Recorded) -> tuple[Builder, Node]:
    """What was recorded: hidden from attribute access, since an expression is foreign code."""
    state: tuple[Builder, Node] = object.__getattribute__(recorded, "state")
    return state


def _recording(symbol: str, reverse: bool = False) -> Callable[..., Recorded]:
    def method(*operands: object) -> Recorded:
        builder = next(state_of(x)[0] for x in operands if isinstance(x, Recorded))
        parts = [
            state_of(x)[1] if isinstance(x, Recorded) else builder.constant(x, "a constant", GIVEN) for x in operands
        ]
        return Recorded(builder, builder.operation(symbol, *(reversed(parts) if reverse else parts)))

    return method


def _refusing(name: str) -> Callable[..., NoReturn]:
    return lambda self, *_, **__: state_of(self)[0].refuse(
        f"it uses `__{name}__`, which is not an operator of a filter. {WHY}. Write the column first, and only "
        "+ - * / // % **, comparisons, & | ~, isin, between, isna, notna."
    )


NAMES = {function.__name__: symbol for symbol, function in (ARITHMETIC | COMPARISONS).items()}
NAMES |= {"and": "and", "or": "or"}
for _name, _symbol in NAMES.items():
    setattr(Recorded, f"__{_name}__", _recording(_symbol))
    if _symbol not in COMPARISONS:
        setattr(Recorded, f"__r{_name}__", _recording(_symbol, reverse=True))
for _name, _symbol in (("invert", "not"), ("neg", "unary -"), ("pos", "unary +")):
    setattr(Recorded, f"__{_name}__", _recording(_symbol))
for _name in MISSING:
    setattr(Recorded, _name, _recording(_name))
for _name in BEHIND:
    setattr(Recorded, _name, property(partial(Behind, name=_name)))
for _name in (  # Python looks these up on the class, so that __getattribute__ does not see them
    *("abs", "array", "array_ufunc", "bool", "call", "contains", "divmod", "float", "getitem", "index", "int"),
    *("iter", "len", "matmul", "rdivmod", "rmatmul", "round", "rxor", "xor"),
):
    setattr(Recorded, f"__{_name}__", _refusing(_name))
RECORDED = (set(vars(Recorded)) | {"__class__"}) - {"__dict__", "__init__", "__getattribute__", "__weakref__"}


class Recorder:
    """Stands for the frame: ``pd.col`` looks into its ``columns`` and then asks for one."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.columns = self

    def __contains__(self, name: Hashable) -> bool:
        return True  # so that an unknown column meets our refusal, not pandas'

    def __getitem__(self, name: Hashable) -> Recorded:
        return Recorded(self.builder, self.builder.column(name))
