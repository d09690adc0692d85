"""`dataclass` of the standard library, which makes the methods of a class in a quarter of the time.

The standard one compiles a text for each method of each class. For the classes of a session that takes longer
than to plan a model. Here one text has all methods of a class, and what refuses changes is the same for all.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import MISSING
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fields = Sequence[dataclasses.Field[Any]]

_Made = TypeVar("_Made")
_set = object.__setattr__  # which a frozen class refuses


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,  # ruff: ignore[builtin-argument-shadowing]  the standard library's name
    weakref_slot: bool = False,
) -> Callable[[type[_Made]], type[_Made]]:
    """Return a decorator that makes a class a dataclass, as `dataclasses.dataclass` does, in less time.

    `field`, `fields` and `replace` of the standard library work with it.

    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """

    def complete(plain: type[_Made]) -> type[_Made]:
        cls = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot
        )(plain)  # fmt: skip
        fields: Fields = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType] - it is a dataclass now
        texts = [_init_text(fields, frozen=frozen, then=hasattr(cls, "__post_init__"))]
        if eq:
            texts.append(_eq_text(fields))
        if eq and frozen:
            texts.append(_hash_text(fields))
        methods = _compiled(texts, fields, vars(sys.modules[cls.__module__]))
        if repr:
            methods["__repr__"] = _repr_of([f.name for f in fields if f.repr])
        if eq and not frozen:
            methods["__hash__"] = None
        if frozen:
            methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_removal}
        if frozen and slots:
            methods |= _state_methods([f.name for f in fields])
        for name, method in methods.items():
            if vars(cls).get(name) is None:  # else the class has a method of its own
                setattr(cls, name, method)
        cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"  # errors name it
        cls.__init__.__annotations__ = {**{f.name: f.type for f in fields if f.init}, "return": None}
        return cls

    return complete


def _compiled(texts: Sequence[str], fields: Fields, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the methods of texts by name; `namespace` is that of the class's module."""
    known: dict[str, Any] = {"_set": _set, "_absent": MISSING}
    for field in fields:
        if field.default_factory is not MISSING:
            known[f"_{field.name}_made"] = field.default_factory
        elif field.default is not MISSING:
            known[f"_{field.name}_default"] = field.default
    text = "\n".join([f"def _methods({', '.join(known)}):", *texts, " return locals()"])
    made: dict[str, Any] = {}
    exec(text, namespace, made)  # ruff: ignore[exec-builtin]  the text has names of fields alone
    return {name: x for name, x in made["_methods"](**known).items() if name not in known}


def _init_text(fields: Fields, *, frozen: bool, then: bool) -> str:
    parameters, lines = ["self"], ["  pass"]
    for field in fields:
        name = value = field.name
        if field.default_factory is not MISSING:
            value = f"_{name}_made()"
            if field.init:
                parameters.append(f"{name}=_absent")
                value = f"{value} if {name} is _absent else {name}"
        elif not field.init:
            continue
        else:
            parameters.append(name if field.default is MISSING else f"{name}=_{name}_default")
        lines.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    if then:
        lines.append("  self.__post_init__()")
    return "\n".join([f" def __init__({', '.join(parameters)}):", *lines])


def _eq_text(fields: Fields) -> str:
    same = f"{_values('self', fields)} == {_values('other', fields)}"
    return f" def __eq__(self, other): return {same} if type(other) is type(self) else NotImplemented"


def _hash_text(fields: Fields) -> str:
    return f" def __hash__(self): return hash({_values('self', fields)})"


def _values(owner: str, fields: Fields) -> str:
    """Return the text of a tuple of what is compared."""
    return f"({''.join(f'{owner}.{f.name}, ' for f in fields if f.compare)})"


def _repr_of(names: Sequence[str]) -> Any:
    @recursive_repr()
    def shown(self: object) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in names]
        return f"{type(self).__qualname__}({', '.join(fields)})"

    return shown


def _state_methods(names: Sequence[str]) -> dict[str, Any]:
    """Return the methods by which an immutable object with slots is copied and pickled."""

    def get(self: object) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: object, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    return {"__getstate__": get, "__setstate__": restore}


def _refuse_change(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
