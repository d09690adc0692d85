"""Hints for names that other libraries use: `node.op_type` says that the name here is `op`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Class = TypeVar("_Class", bound=type)


class _Hint:
    """An attribute that is not there: to read or write it raises AttributeError with the hint."""

    __slots__ = ("_name", "_text")

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def __get__(self, instance: object, owner: type) -> Never:
        raise AttributeError(
            f"{owner.__name__} has no {self._name!r}: {self._text}", name=self._name, obj=instance or owner
        )

    def __set__(self, instance: object, value: object) -> Never:
        self.__get__(instance, type(instance))


def hints(**names: str) -> Callable[[_Class], _Class]:
    """Return a class decorator: each of `names` raises AttributeError with its text where it is used.

    These names are descriptors and not a `__getattr__`, which would slow down every other attribute. `dir`
    does not list them.
    """

    def decorate(cls: _Class) -> _Class:
        for name, text in names.items():
            setattr(cls, name, _Hint(name, text))

        def listed(self: object) -> list[str]:
            every = object.__dir__(self)  # ruff: ignore[unnecessary-dunder-call]  `dir` would call this function
            return [name for name in every if name not in names]

        cls.__dir__ = listed  # pyright: ignore[reportAttributeAccessIssue] - a class takes any method
        return cls

    return decorate


def hinted(name: str) -> str:
    """Return the text of a hint for a name that is only spelled otherwise here."""
    return f"it is called {name!r}"
