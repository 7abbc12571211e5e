"""Property that is computed once for each object, as functools.cached_property is from Python 3.12 on.

On Python 3.11 that one takes a lock which all objects of a class share, and which a signal handler that raises at the
wrong moment leaves held for good: every later use in another thread would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value", covariant=True)
Result = TypeVar("Result")


class once(Generic[Value]):  # noqa: N801 - a decorator
    """Property whose value is kept in the object's ``__dict__``; two threads may both compute it."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> once[Value] | Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def called_once(compute: Callable[[], Result]) -> Callable[[], Result]:
    """The function, which computes at its first call and keeps the result; two threads may both compute it.

    As `functools.cache`, of which making one takes longer than a small answer can afford.
    """
    kept: list[Result] = []

    def result() -> Result:
        if not kept:
            kept.append(compute())
        return kept[0]

    return result
